"""``Page``: one self-contained HTML page, in the forms it can be wanted in, and how its parts are put together.

What a learner wrote is data here, never markup: it is escaped in the page, and stands in an inert JSON element
for the script.  A policy in the page forbids every address outside.  The bytes are the same in every run.
"""

from __future__ import annotations

import html
import json
import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tinyattn.errors import ArgumentError, message
from tinyattn.files import path_text, write_whole
from viz import colours

WARN_BYTES = 1_000_000
"""A larger page is slow to open; it is written all the same."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


class Page:
    """A page, made by :func:`viz.step` or :func:`viz.attention_page`.

    In a notebook it shows itself, in a frame of its own.  ``save`` writes it.

    Attributes
    ----------
    title : str
    html : str
        The whole page.
    text : str
        What the page says, without pictures.
    """

    def __init__(self, title: str, make: Callable[[], str], text: str, height: int = 760) -> None:
        self.title, self.text, self._make, self._height = title, text, make, height
        self._html = ""

    @property
    def html(self) -> str:
        """The page; it needs nothing beside itself, and no network."""
        if not self._html:
            self._html = self._make()
            size = len(self._html.encode("utf-8"))
            if size > WARN_BYTES:
                warnings.warn(
                    f"The page has {size / 1e6:.1f} MB and will be slow to open. "
                    "Step through a smaller model, or give a smaller max_nodes so that more is folded.",
                    stacklevel=2,
                )
        return self._html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, or its text.

        Parameters
        ----------
        path : str or path
            Ends in .html or .txt.  A missing folder is made.
        """
        suffix = os.path.splitext(path_text(path))[1].lower()
        if suffix not in (".html", ".htm", ".txt"):
            raise ArgumentError(
                message(
                    f"A page cannot be saved as {os.fspath(path)!r}.",
                    "It is HTML, and its text can be had by itself.",
                    "End the name in .html or .txt.",
                )
            )
        content = self.text if suffix == ".txt" else self.html
        os.makedirs(os.path.dirname(os.path.abspath(os.fspath(path))), exist_ok=True)
        write_whole(path, content)

    def show(self) -> None:
        """Show the page here: in its frame in a notebook, as its text in a terminal."""
        from viz.drawing import display

        display(self, self.text.rstrip("\n"))

    def __repr__(self) -> str:
        return f"<Page {self.title!r}: .save('page.html'), .text>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """For notebooks: a sandboxed frame, so that pages do not meet each other or the notebook."""
        frame = (
            f'<iframe sandbox="allow-scripts" title="{html.escape(self.title)}" '
            f'style="width:100%;height:{self._height}px;border:0" srcdoc="{html.escape(self.html)}"></iframe>'
        )
        return {"text/plain": repr(self), "text/html": frame}


def document(
    *,
    title: str,
    lang: str,
    styles: str,
    body: str,
    data: dict[str, Any] | None = None,
    script: str = "",
    theme: str | None = None,
) -> str:
    """The text of a page.

    Parameters
    ----------
    title : str
    lang : {"en", "zh"}
    styles : str
        The style sheet, beside that of the colours.
    body : str
        Finished markup.
    data : dict, optional
        For the script, as JSON that no markup can break out of.
    script : str
    theme : {"light", "dark"}, optional
        Otherwise the page follows the reader's setting.
    """
    chosen = f' data-theme="{theme}"' if theme else ""
    inert = ""
    if data is not None:
        inert = f'<script type="application/json" id="data">{inert_json(data)}</script>\n<script>\n{script}</script>\n'
    text = (
        f'<!doctype html>\n<html lang="{lang}"{chosen}>\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<title>{html.escape(title)}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{variables()}{styles}</style>\n</head>\n<body>\n{body}{inert}</body>\n</html>\n"
    )
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is no character


def inert_json(data: Any) -> str:
    r"""JSON for a script element: nothing in it can end the element or begin markup.

    >>> inert_json({"name": "</script>&"})
    '{"name":"\\u003c/script>&"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def filled(template: str, parts: Mapping[str, str]) -> str:
    """A template with its parts, named %LIKE_THIS%, in their places; what a part holds is not looked at again.

    >>> filled("<b>%A%</b>%B%", {"A": "%B%", "B": "x"})
    '<b>%B%</b>x'
    """
    return re.sub(r"%([A-Z_]+)%", lambda found: parts[found[1]], template)


def asset(name: str) -> str:
    """A file of the folder ``assets``."""
    return (Path(__file__).parent / "assets" / name).read_text(encoding="utf-8")


def variables() -> str:
    """The colours of both themes as CSS variables, and the classes of the heat tables."""
    light, dark = _theme("light"), _theme("dark")
    names = [f"h{step}" for step in range(-colours.STEPS, colours.STEPS + 1)]
    names += [f"s{step}" for step in range(colours.STEPS + 1)]
    classes = "".join(f".{name}{{background:var(--{name});color:var(--i{name})}}" for name in names)
    return (
        f":root{{{light}}}\n@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f":root[data-theme=dark]{{{dark}}}\n{classes}\n"
        ":root[data-theme=light]{color-scheme:light}\n:root[data-theme=dark]{color-scheme:dark}\n"
    )


def _theme(theme: colours.Theme) -> str:
    parts = [f"--{role.replace(' ', '-')}:{code}" for role, code in colours.palette(theme).items()]
    for scale, low in (("signed", -colours.STEPS), ("share", 0)):
        for step in range(low, colours.STEPS + 1):
            code = colours.heat(step, "share" if scale == "share" else "signed", theme)
            name = f"{scale[0] if scale == 'share' else 'h'}{step}"
            parts.append(f"--{name}:{code};--i{name}:{colours.ink(code)}")
    parts.append(f"--above:{colours.heat(8, 'signed', theme)};--below:{colours.heat(-8, 'signed', theme)}")
    return ";".join(parts)


_MUTED, _NAME = 'font-size="11.00" fill="var(--muted)"', 'font-weight="bold" font-size="14.00" fill="var(--text)"'
_SHORTER = {
    ' xml:space="preserve"': "",
    ' text-anchor="start"': "",
    _MUTED: 'class="m"',
    _NAME: 'class="b"',
    '<path fill="none" stroke="var(--edge)"': "<path",
    '<polygon fill="var(--edge)" stroke="var(--edge)"': "<polygon",
}
"""What the page's style sheet says once need not stand at every box."""


def embedded(svg: str, prefix: str) -> str:
    """An SVG of a drawing for a page: its colours become variables, its ids get a prefix, its places one decimal.

    Parameters
    ----------
    svg : str
        In the light theme.
    prefix : str
        Ids of several pictures in one page must differ.
    """
    return re.sub("<[^<>]+>", lambda found: _tag(found[0], prefix), svg)  # what stands between tags is text


def _tag(tag: str, prefix: str) -> str:
    """One tag of an SVG, made fit for the page."""
    for role, code in colours.LIGHT.items():
        tag = tag.replace(f'="{code}"', f'="var(--{role.replace(" ", "-")})"')
    for long, short in _SHORTER.items():
        tag = tag.replace(long, short)
    tag = re.sub(r' id="', f' id="{prefix}', tag)
    tag = re.sub(r'aria-labelledby="(\S+) (\S+)"', rf'aria-labelledby="{prefix}\1 {prefix}\2"', tag)
    if tag.startswith(("<path", "<polygon", "<text", "<polyline", "<ellipse")):
        tag = re.sub(r"(\d\.\d)\d+", r"\1", tag)
    return tag
