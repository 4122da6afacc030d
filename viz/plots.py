"""Plots: lines, points and bars between two axes, as DOT text with every place given.

Graphviz draws them like all pictures here, in every format and both themes; nothing is laid out, the places
are computed in this file.  Series differ by colour and by stroke or shape, so colour is never needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from viz import colours, dot, labels, values

WIDTH, HEIGHT = 520.0, 300.0
"""The area between the axes, in points."""

SERIES = ("series 1", "series 2", "series 3", "series 4", "series 5", "series 6")
_STROKES = ("solid", "dashed", "dotted", "bold", "solid", "dashed")
_SHAPES = ("circle", "triangle", "square", "diamond", "invtriangle", "pentagon")
_TEXT = 11
_MOST_PLACES = 700
"""More points of a line than this cannot be told apart; it is thinned, keeping the extremes."""

_LONGEST_EDGE = 250
"""Places of one edge: Graphviz reads no quoted text of more than 16,384 characters."""


class Plot:
    """An empty area with axes, to be filled.

    Parameters
    ----------
    title, x_title, y_title : str
    x_range, y_range : (float, float)
        What the axes go from and to.
    theme : {"light", "dark"}
    x_ticks, y_ticks : sequence of (float, str), optional
        Places and words; round numbers when absent.
    """

    def __init__(
        self,
        title: str,
        x_title: str,
        y_title: str,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        theme: colours.Theme,
        x_ticks: Sequence[tuple[float, str]] | None = None,
        y_ticks: Sequence[tuple[float, str]] | None = None,
        height: float = HEIGHT,
    ) -> None:
        self.x_range, self.y_range, self.height = _wider(x_range), _wider(y_range), height
        self.roles = colours.palette(theme)
        self.graph = dot.new_graph(theme, layout="nop2")
        self._count = 0
        self._frame()
        for place, words in ticks(*self.x_range) if x_ticks is None else x_ticks:
            self._tick(self._x(place), words, below=True)
        for place, words in ticks(*self.y_range) if y_ticks is None else y_ticks:
            self._tick(self._y(place), words, below=False)
        self._words(x_title, WIDTH / 2, -36, muted=True)
        self._words(y_title, 0, height + 16, muted=True, align="LEFT")
        self._words(title, 0, height + 38, size=_TEXT + 4, bold=True, align="LEFT")

    def line(self, x: values.Array, y: values.Array, series: int = 0) -> None:
        """A line through points; where a number is missing it is broken."""
        for part in _unbroken(x, y):
            places = [(self._x(a), self._y(b)) for a, b in zip(*_thinned(*part))]
            if len(places) == 1:
                self._spot(*places[0], series, 0.05)
            else:
                self._stroke(places, series)

    def point(self, x: float, y: float, series: int = 0, words: str = "") -> None:
        """A point, with words to its right."""
        across, up = self._x(x), self._y(y)
        self._spot(across, up, series, 0.12)
        if words:
            self._words(words, across + 8, up, align="LEFT")

    def bar(self, x: float, at: float, series: int = 0, height: float = 10) -> None:
        """A bar from the left edge to a value, its middle at a place on the vertical axis."""
        width = self._x(x)
        look = {"shape": "box", "style": "filled", "label": "", "fixedsize": "true", "margin": "0"}
        colour = self.roles[SERIES[series % len(SERIES)]]
        size = {"width": f"{max(width, 0.5) / 72:.4f}", "height": f"{height / 72:.4f}"}
        self.graph.node(self._name(), pos=_at(width / 2, self._y(at)), color=colour, fillcolor=colour, **look, **size)

    def words_at(self, words: str, x: float, y: float) -> None:
        """Words to the right of a place."""
        self._words(words, self._x(x) + 4, self._y(y), align="LEFT", muted=True)

    def mark(self, x: float) -> None:
        """A thin vertical line."""
        across = self._x(x)
        self._edge([(across, 0), (across, self.height)], color=self.roles["table line"], style="solid")

    def legend(self, names: Sequence[str], points: bool = False) -> None:
        """The names of the series, at the right, each with its stroke or shape."""
        for series, name in enumerate(names):
            up = self.height - 8 - 18 * series
            if points:
                self._spot(WIDTH + 26, up, series, 0.12)
            else:
                self._stroke([(WIDTH + 14, up), (WIDTH + 38, up)], series)
            self._words(name, WIDTH + 46, up, align="LEFT")

    def source(self) -> str:
        """The DOT text."""
        return str(self.graph.source)

    # Places -------------------------------------------------------------------------------------------

    def _x(self, x: float) -> float:
        low, high = self.x_range
        return WIDTH * (x - low) / (high - low)

    def _y(self, y: float) -> float:
        low, high = self.y_range
        return self.height * (y - low) / (high - low)

    def _name(self) -> str:
        self._count += 1
        return f"p{self._count}"

    # Strokes ------------------------------------------------------------------------------------------

    def _frame(self) -> None:
        look = {"shape": "box", "label": "", "fixedsize": "true", "color": self.roles["table line"]}
        size = {"width": f"{WIDTH / 72:.4f}", "height": f"{self.height / 72:.4f}"}
        self.graph.node("frame", pos=_at(WIDTH / 2, self.height / 2), **look, **size)

    def _tick(self, place: float, words: str, below: bool) -> None:
        if below:
            self._edge([(place, 0), (place, -5)], color=self.roles["edge"], style="solid")
            self._words(words, place, -16)
        else:
            self._edge([(0, place), (-5, place)], color=self.roles["edge"], style="solid")
            self._words(words, -9, place, align="RIGHT")

    def _stroke(self, places: Sequence[tuple[float, float]], series: int) -> None:
        kind = series % len(SERIES)
        look = {"color": self.roles[SERIES[kind]], "style": _STROKES[kind], "penwidth": "3" if kind == 3 else "1.6"}
        for start in range(0, len(places) - 1, _LONGEST_EDGE):
            self._edge(places[start : start + _LONGEST_EDGE + 1], **look)

    def _spot(self, x: float, y: float, series: int, size: float) -> None:
        kind = series % len(SERIES)
        look = {"shape": _SHAPES[kind], "style": "filled", "label": "", "fixedsize": "true"}
        colour = self.roles[SERIES[kind]]
        size_text = f"{size:.3f}"
        self.graph.node(
            self._name(), pos=_at(x, y), width=size_text, height=size_text, color=colour, fillcolor=colour, **look
        )

    def _edge(self, places: Sequence[tuple[float, float]], **look: str) -> None:
        """A polyline: each piece a spline that is straight."""
        points = [_at(*places[0])]
        for start, end in pairwise(places):
            points += [_at(*start), _at(*end), _at(*end)]
        ends = self._name(), self._name()
        for name, place in zip(ends, (places[0], places[-1])):
            self.graph.node(name, pos=_at(*place), shape="point", width="0.001", height="0.001", style="invis")
        self.graph.edge(*ends, pos=" ".join(points), arrowhead="none", **look)

    def _words(
        self,
        words: str,
        x: float,
        y: float,
        *,
        size: float = _TEXT,
        bold: bool = False,
        muted: bool = False,
        align: str = "",
    ) -> None:
        """Words with their left end, right end or middle at a place."""
        if not words:
            return
        width = labels.em_width(words) * size * (1.07 if bold else 1.0) + 4
        across = {"LEFT": x + width / 2, "RIGHT": x - width / 2}.get(align, x)
        text = labels.text(words, size, bold=bold, colour=self.roles["muted" if muted else "text"])
        cell = labels.tag("TD", text, align=align, width=round(width))
        look = {"shape": "plain", "width": f"{width / 72:.4f}", "height": f"{1.3 * size / 72:.4f}"}
        self.graph.node(self._name(), pos=_at(across, y), label=labels.label(labels.table([[cell]])), **look)


def ticks(low: float, high: float, about: int = 5) -> list[tuple[float, str]]:
    """Round numbers between two, and how they are written.

    >>> [words for _, words in ticks(0.0, 1.0)]
    ['0', '0.2', '0.4', '0.6', '0.8', '1']
    """
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * min((1, 2, 5, 10), key=lambda m: abs(m * power - rough))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(k * step, f"{k * step:.6g}") for k in range(first, last + 1)]


def decades(low: float, high: float) -> list[tuple[float, str]]:
    """Powers of ten between two exponents, not more than about eight.

    >>> decades(-2.0, 0.0)
    [(-2, '0.01'), (-1, '0.1'), (0, '1')]
    """
    first, last = math.ceil(low), math.floor(high)
    every = max(1, math.ceil((last - first) / 8))
    return [(k, f"{10.0**k:g}") for k in range(first, last + 1, every)]


def span(arrays: Iterable[values.Array]) -> tuple[float, float]:
    """The smallest and the largest finite number; 0 and 1 where there is none."""
    finite = np.concatenate([np.ravel(a)[np.isfinite(np.ravel(a))] for a in arrays] or [np.zeros(0)])
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def _wider(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    room = 0.05 * (high - low) or max(abs(low), 1.0) * 0.5
    return low - room, high + room


def _unbroken(x: values.Array, y: values.Array) -> Iterable[tuple[values.Array, values.Array]]:
    good = np.isfinite(x) & np.isfinite(y)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]]).astype(np.int8)))
    for start, end in zip(edges[::2], edges[1::2]):
        yield x[start:end], y[start:end]


def _thinned(x: values.Array, y: values.Array) -> tuple[values.Array, values.Array]:
    """A long line by the smallest and the largest value of each of its stretches."""
    if len(y) <= _MOST_PLACES:
        return x, y
    kept: list[Any] = []
    for stretch in np.array_split(np.arange(len(y)), _MOST_PLACES // 2):
        kept += sorted({int(stretch[np.argmin(y[stretch])]), int(stretch[np.argmax(y[stretch])])})
    return x[kept], y[kept]


def _at(x: float, y: float) -> str:
    return f"{x:.2f},{y:.2f}".replace("-0.00", "0.00")
