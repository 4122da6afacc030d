"""How the demo prints: headings, paragraphs, tables, and numbers in rows that stay short."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tinyattn.terminal import display_width, say, say_table

_WIDTH = 92
_LONGEST_WORD = 20
_MOST_NUMBERS = 6
_JOINER = "\u200d"  # makes one picture of several emoji


class Paper:
    """Where the demo prints.

    Parameters
    ----------
    ascii : bool
        Use ASCII signs only, as far as the words allow it.
    """

    def __init__(self, ascii: bool = False) -> None:
        self.ascii = ascii
        self._at_gap = True

    def gap(self) -> None:
        """Leave one line blank, if the last one is not."""
        if not self._at_gap:
            self.lines("")
        self._at_gap = True

    def heading(self, text: str) -> None:
        """Begin a part."""
        self.gap()
        say_table([], [text], self.ascii)  # which draws a line under it, as long as what the terminal can show
        self._at_gap = False

    def text(self, text: str) -> None:
        """Print a paragraph, in lines of ordinary length."""
        self.lines("\n".join(_wrapped(text, _WIDTH)))

    def item(self, text: str) -> None:
        """Print one item of a list."""
        self.lines("  - " + "\n    ".join(_wrapped(text, _WIDTH - 4)))

    def lines(self, text: str) -> None:
        """Print a text whose lines are meant as they are."""
        say(text, self.ascii)
        self._at_gap = False

    def table(self, rows: Sequence[Sequence[object]], headers: Sequence[str] = ()) -> None:
        """Print a table, with a blank line before and after it."""
        self.gap()
        say_table(rows, headers, self.ascii)
        self._at_gap = False
        self.gap()

    def flush(self) -> None:
        """Bring out what was printed, before a progress bar draws on the other stream."""
        sys.stdout.flush()


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def shown(word: str) -> str:
    """Write a word so that it can stand in a line: nothing invisible, and not endlessly long.

    Examples
    --------
    >>> shown("saw"), shown(chr(7) + "bell"), shown("a" * 99)
    ('saw', '<07>bell', 'aaaaaaaaaaaaaaaaaaa…')
    """
    visible = "".join(sign if sign.isprintable() or sign == _JOINER else f"<{ord(sign):02x}>" for sign in word)
    if display_width(visible) <= _LONGEST_WORD:
        return visible
    while display_width(visible) >= _LONGEST_WORD:
        visible = visible[:-1]
    return visible + "…"


def numbered(words: Sequence[str]) -> list[str]:
    """Words with their places, counted from 1, so that equal ones can be told apart.

    Examples
    --------
    >>> numbered(["I", "saw"])
    ['I (1)', 'saw (2)']
    """
    return [f"{shown(word)} ({place})" for place, word in enumerate(words, 1)]


def row(numbers: npt.ArrayLike) -> str:
    """Write a vector with three decimals, in columns; of a long one the beginning.

    Examples
    --------
    >>> row([0.5, -1.25])
    ' 0.500 -1.250'
    """
    array = np.asarray(numbers)
    long = len(array) > _MOST_NUMBERS
    return " ".join(f"{number: .3f}" for number in array[: 4 if long else _MOST_NUMBERS]) + (" …" if long else "")


def listed(items: Sequence[str]) -> str:
    """Join a few things as they would be said.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]
