r"""Graphviz's HTML-like labels: escaping, widths, and the small tables of a picture.

Graphviz has two traps here.  It expands ``\N`` and its kin inside HTML-like labels too, even when the
backslash is written as an entity, so a backslash is doubled.  And it guesses the width of what is not
ASCII, so such a text gets a cell of its own with the width computed here.  Record shapes are never used:
they lose text.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence

WIDE, NARROW = 1.0, 0.55
"""Widths in em: East Asian wide and full-width characters, and most others."""

_THIN, _BROAD = frozenset(" !'(),-./:;I[]fijlt|·"), frozenset("mwMW@%…→")

Attribute = str | int | float


def escaped(text: str) -> str:
    r"""Text for an HTML-like label; it appears in the picture exactly as it is here.

    A control character, which SVG cannot hold, becomes its visible code.

    >>> escaped("f<x> & \\N")
    'f&lt;x&gt; &amp; \\\\N'
    """
    text = visible(text)
    for plain, safe in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("\\", "\\\\")):
        text = text.replace(plain, safe)
    return text


def visible(text: str) -> str:
    r"""The text on one line, with everything that XML cannot hold written as a code.

    >>> visible("a\nb\x00")
    'a⏎b\\x00'
    """
    if text.isprintable():
        return text
    return "".join(_visible_character(c) for c in text)


def em_width(text: str) -> float:
    """The width of a text in em, as wide as any usual font makes it.

    >>> em_width("查询"), round(em_width("ab"), 2)
    (2.0, 1.1)
    """
    return math.fsum(_character_width(c) for c in text)


def has_wide(text: str) -> bool:
    """True when a text has characters that only a CJK or emoji font can show."""
    return not text.isascii() and any(unicodedata.east_asian_width(c) in "WF" for c in text)


def text(
    words: str, size: float, *, colour: str = "", bold: bool = False, italic: bool = False, align: str = ""
) -> str:
    """A piece of text in a font size, in a cell of computed width where Graphviz would guess.

    ``align`` ("LEFT" or "RIGHT") is that of the cell which will hold the text.

    >>> text("Q", 12)
    '<FONT POINT-SIZE="12">Q</FONT>'
    """
    inner = escaped(words) or " "
    inner = f"<B>{inner}</B>" if bold else inner
    inner = f"<I>{inner}</I>" if italic else inner
    font = tag("FONT", inner, point_size=size, color=colour)
    if words.isascii():
        return font
    width = em_width(words) * size * (1.07 if bold else 1.0) + 2
    box: dict[str, Attribute] = {"width": round(width), "height": math.ceil(1.2 * size)}
    start: dict[str, Attribute] = {"border": 0, "cellborder": 0, "cellspacing": 0, "cellpadding": 0}
    cell = tag("TD", font, align="LEFT")
    return tag("TABLE", tag("TR", cell), **start, **box, align=align, fixedsize="TRUE")


def tag(name: str, inner: str, **attributes: Attribute) -> str:
    """An element; empty attributes are left out, and ``cell_padding`` style names lose the underscore.

    >>> tag("TD", "x", colspan=2, bgcolor="")
    '<TD COLSPAN="2">x</TD>'
    """
    written = "".join(
        f' {key.upper().replace("_", "-")}="{value}"' for key, value in attributes.items() if value != ""
    )
    return f"<{name}{written}>{inner}</{name}>"


def table(rows: Iterable[Sequence[str]], **attributes: Attribute) -> str:
    """A table without borders from rows of finished cells (``<TD>`` elements).

    >>> table([["<TD>a</TD>"]])
    '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1"><TR><TD>a</TD></TR></TABLE>'
    """
    start: dict[str, Attribute] = {"border": 0, "cellborder": 0, "cellspacing": 0, "cellpadding": 1}
    body = "".join(tag("TR", "".join(row)) for row in rows)
    return tag("TABLE", body, **(start | attributes))


def label(inner: str) -> str:
    """The finished label for a DOT attribute."""
    return f"<{inner}>"


def _character_width(c: str) -> float:
    if c in _THIN or c in _BROAD:
        return 0.32 if c in _THIN else 0.95
    if c.isascii():
        return NARROW if not c.isupper() else 0.7
    if unicodedata.category(c) in ("Mn", "Me", "Cf"):  # accents, joiners: they stand on their neighbour
        return 0.0
    return WIDE if unicodedata.east_asian_width(c) in "WF" else NARROW


def _visible_character(c: str) -> str:
    if c.isprintable():
        return c
    if c == "\n":
        return "⏎"
    if c == "\t" or unicodedata.category(c) == "Zs":
        return " "
    if c in "\u200c\u200d":  # the joiners inside emoji and some scripts
        return c
    return c.encode("unicode_escape").decode("ascii") if not 0xD800 <= ord(c) <= 0xDFFF else "\ufffd"
