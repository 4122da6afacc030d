"""The colours of the pictures, light and dark, and the steps of the heat tables.

The hues are those of Okabe and Ito, which people who confuse red and green can tell apart; nothing is
told by colour alone.  A heat table uses a few fixed steps, so that the picture does not change with the
last digit of a number, and so that each light colour has exactly one dark partner (see :mod:`viz.svg`).
"""

from __future__ import annotations

import functools
import math
from typing import Literal

STEPS = 8
"""Steps of a heat table from nothing to full colour."""

LIGHT = {
    "background": "#ffffff",
    "text": "#1a1a1b",
    "muted": "#565659",
    "edge": "#4c4c4f",
    "cluster": "#8a8a8e",
    "cluster fill": "#f8f8f7",
    "parameter": "#fdf1dd",
    "parameter line": "#a35200",
    "input": "#e4f4ec",
    "input line": "#00664a",
    "constant": "#f2f2f3",
    "constant line": "#666669",
    "op": "#eaf3fa",
    "op line": "#005a8c",
    "fold": "#f6ecf3",
    "fold line": "#8c3f73",
    "strange": "#f0e442",
    "strange text": "#000001",
    "table line": "#c4c4c8",
    "back": "#b04e00",
    "series 1": "#0069a5",
    "series 2": "#c04f00",
    "series 3": "#007a56",
    "series 4": "#9c4a80",
    "series 5": "#3d3d40",
    "series 6": "#8a6d00",
}

DARK = {
    "background": "#15171a",
    "text": "#f1f1f2",
    "muted": "#b9b9be",
    "edge": "#a6a6ab",
    "cluster": "#77777d",
    "cluster fill": "#1c1e22",
    "parameter": "#3a2a12",
    "parameter line": "#f0a850",
    "input": "#10302a",
    "input line": "#4fc9a1",
    "constant": "#2a2b2f",
    "constant line": "#9d9da3",
    "op": "#142b3c",
    "op line": "#6bb7ea",
    "fold": "#38202f",
    "fold line": "#dd8fc2",
    "strange": "#e8dc3a",
    "strange text": "#010100",
    "table line": "#54545b",
    "back": "#f59342",
    "series 1": "#5db3ee",
    "series 2": "#f28a3c",
    "series 3": "#3fc79b",
    "series 4": "#e096c6",
    "series 5": "#d0d0d4",
    "series 6": "#e3c64a",
}

_ENDS = {  # nothing, full below zero, full above zero, full share
    "light": ("#fdfdfe", "#0072b2", "#d55e00", "#00795b"),
    "dark": ("#25282d", "#2f93d1", "#ee7a22", "#22a884"),
}

INKS = ("#000000", "#fefefe")
"""Black and white for numbers on a colour; like every other code they stand for one thing only."""

Theme = Literal["light", "dark"]
Scale = Literal["signed", "share"]


def palette(theme: Theme) -> dict[str, str]:
    """The colour of each role in a theme."""
    return DARK if theme == "dark" else LIGHT


def level(x: float, scale: Scale, largest: float) -> int:
    """The step of an entry: -8 to 8 around zero, or 0 to 8 for a share between 0 and 1.

    >>> level(-1.0, "signed", 2.0), level(0.5, "share", 1.0), level(0.0, "signed", 0.0)
    (-4, 4, 0)
    """
    top = 1.0 if scale == "share" else largest
    if not top > 0 or not math.isfinite(x):
        return 0
    return max(-STEPS, min(STEPS, round(STEPS * (x / top))))


@functools.cache  # a few steps, of thousands of cells
def heat(step: int, scale: Scale, theme: Theme) -> str:
    """The colour of a step.

    >>> heat(0, "signed", "light"), heat(8, "signed", "light")
    ('#fdfdfe', '#d55e00')
    """
    nothing, below, above, share = _ENDS[theme]
    full = share if scale == "share" else (above if step > 0 else below)
    return _mixed(nothing, full, abs(step) / STEPS)


@functools.cache
def ink(background: str) -> str:
    """Black or (nearly) white, whichever reads better on a colour; their contrast is then at least 4.5.

    >>> ink("#0072b2"), ink("#ffffff")
    ('#fefefe', '#000000')
    """
    black, white = INKS
    return black if contrast(black, background) >= contrast(white, background) else white


def contrast(one: str, other: str) -> float:
    """The contrast ratio of the Web Content Accessibility Guidelines, from 1 to 21.

    >>> round(contrast("#000000", "#ffffff"), 6)
    21.0
    """
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _mixed(one: str, other: str, share: float) -> str:
    pairs = zip(_channels(one), _channels(other))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)

    red, green, blue = (linear(c / 255) for c in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
