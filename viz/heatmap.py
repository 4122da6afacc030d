"""``attention``: a table of attention weights, who asks down the side, who answers across the top.

The table is a Graphviz label like every other picture here; no plotting library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tinyattn.errors import ArgumentError, ShapeError, message
from tinyattn.terminal import display_width
from viz import colours, data, dot, labels, tables, values
from viz.drawing import AnyTheme, Drawing, Parts
from viz.labels import em_width, visible
from viz.words import Words

if TYPE_CHECKING:
    from tinyattn.tensor import Tensor

MOST_KEYS = 64
"""Beyond this many tokens on a side the numbers could not be read any more."""

_SIZE = 12
_MOST_TIES = 3


def attention(
    weights: Tensor | values.Array | Sequence[Sequence[float]],
    tokens: Sequence[str],
    keys: Sequence[str] | None = None,
    *,
    title: str | None = None,
    theme: AnyTheme = "auto",
    lang: Literal["en", "zh"] = "en",
) -> Drawing:
    """Draw attention weights as a table: each row is a word that asks, each column one that answers.

    Parameters
    ----------
    weights : Tensor or array, shape (n, m)
        Row i holds how much query i takes from each key.
    tokens : sequence of str, length n
        The words that ask.
    keys : sequence of str, length m, optional
        The words that answer; the same words when absent.
    title : str, optional
    theme : {"auto", "light", "dark"}
    lang : {"en", "zh"}

    Returns
    -------
    Drawing

    Raises
    ------
    ShapeError
        When the weights do not fit the words.

    Examples
    --------
    >>> import viz
    >>> print(viz.attention([[0.75, 0.25], [0.5, 0.5]], ["I", "saw"]).text)
    Attention weights
    query asks (rows) / key answers (columns)
              I (1)  saw (2)
    I (1)      0.75     0.25
    saw (2)    0.50     0.50
    'I' (1) looks most at 'I' (1): 0.75
    'saw' (2) looks most at 'I' (1) and 'saw' (2), equally: 0.50
    <BLANKLINE>
    """
    words = Words(lang)
    if theme not in ("auto", "light", "dark"):
        raise ArgumentError(f"theme={theme!r}; it is 'auto', 'light' or 'dark'.")
    matrix = _matrix(weights)
    asking = [str(token) for token in tokens]
    answering = asking if keys is None else [str(key) for key in keys]
    _check(matrix, asking, answering, keys is not None)
    heading = title if title is not None else words("map title")
    chart = _Chart(matrix, asking, answering, heading, "dark" if theme == "dark" else "light", words)
    parts = Parts(dot=chart.dot, text=chart.text, alt_text=chart.text, data=chart.data)
    return Drawing(heading, theme, parts, lang)


def reading(row: values.Array, query: str, answers: Sequence[str], words: Words) -> str:
    """The sentence that says what a row means.

    >>> reading(np.array([0.9, 0.1]), "'saw' (2)", ["'I' (1)", "'saw' (2)"], Words("en"))
    "'saw' (2) looks most at 'I' (1): 0.90"
    """
    if np.isnan(row).any():
        return words("reading nan", query=query)
    if not row.any():
        return words("reading none", query=query)
    best = row.max()
    tied = [answer for answer, x in zip(answers, row) if x >= best - 1e-12 * abs(best)]
    named = words.joined(tied) if len(tied) <= _MOST_TIES else words("many", count=len(tied))
    key = "reading" if len(tied) == 1 else "reading tie"
    return words(key, query=query, key=named, weight=values.cells(np.array([[best]]), 2)[0][0])


class _Chart:
    """A checked heat map: its parts are the parts of a Drawing."""

    def __init__(
        self,
        matrix: values.Array,
        asking: list[str],
        answering: list[str],
        title: str,
        theme: colours.Theme,
        words: Words,
    ) -> None:
        self.matrix, self.title, self.theme, self.words = matrix, title, theme, words
        self.asking = [f"{visible(token)} ({at})" for at, token in enumerate(asking, 1)]
        self.answering = [f"{visible(token)} ({at})" for at, token in enumerate(answering, 1)]
        queries = [f"'{visible(token)}' ({at})" for at, token in enumerate(asking, 1)]
        answers = [f"'{visible(token)}' ({at})" for at, token in enumerate(answering, 1)]
        self.sentences = [
            reading(row, query, answers, words) for row, query in zip(matrix, queries)
        ]
        finite = matrix[np.isfinite(matrix)]
        self.shares = bool(((finite >= 0) & (finite <= 1)).all())
        self.cells = values.cells(matrix, 2 if self.shares else None)
        self.tokens = asking, answering
        self.roles = colours.palette(theme)

    def dot(self) -> str:
        graph = dot.new_graph(self.theme)
        graph.node("n0", shape="plain", label=labels.label(self._table()), id="n0")
        return str(graph.source)

    def _table(self) -> str:
        scale: colours.Scale = "share" if self.shares else "signed"
        across = len(self.answering)
        width = round(max(map(em_width, self.answering)) * _SIZE * 1.07 + 4)  # one for all columns
        rows = [
            [self._cell(self.title, size=_SIZE + 3, bold=True, colspan=across + 2, align="LEFT")],
            [self._cell("", colspan=2), self._cell(f"{self.words('answers')} →", muted=True, colspan=across)],
            [self._cell("", colspan=2)]
            + [self._cell(name, bold=True, width=width) for name in self.answering],
        ]
        asks = self._cell(f"{self.words('asks')} ↓", muted=True, rowspan=len(self.asking))
        heats = tables.heat_rows(self.matrix, self.cells, scale, self.theme, _SIZE)
        for at, (name, heat) in enumerate(zip(self.asking, heats)):
            rows.append([*([] if at else [asks]), self._cell(name, align="RIGHT"), *heat])
        said = labels.table([[self._cell(line, align="LEFT")] for line in self.sentences], cellpadding=0)
        rows.append([labels.tag("TD", said, colspan=across + 2, align="LEFT")])
        return labels.table(rows, cellspacing=2, cellpadding=4)

    def _cell(
        self,
        words: str,
        *,
        size: int = _SIZE,
        bold: bool = False,
        muted: bool = False,
        align: str = "",
        **place: labels.Attribute,
    ) -> str:
        colour = self.roles["muted" if muted else "text"]
        inner = labels.text(words, size, bold=bold, colour=colour, align=align)
        return labels.tag("TD", inner, align=align, **place)

    def text(self) -> str:
        side = max(map(display_width, self.asking))
        longest = [max(map(len, column)) for column in zip(*self.cells)]
        widths = [2 + max(display_width(name), length) for name, length in zip(self.answering, longest)]
        lines = [visible(self.title), self.words("axes")]
        lines.append(" " * side + "".join(map(_right, self.answering, widths)))
        for name, row in zip(self.asking, self.cells):
            lines.append(name + " " * (side - display_width(name)) + "".join(map(_right, row, widths)))
        return "\n".join([*lines, *self.sentences]) + "\n"

    def data(self) -> dict[str, Any]:
        asking, answering = self.tokens
        return {
            "format": data.FORMAT,
            "kind": "attention",
            "title": self.title,
            "queries": asking,
            "keys": answering,
            "weights": values.jsonable(self.matrix),
            "reading": self.sentences,
        }


def _right(words: str, width: int) -> str:
    return " " * (width - display_width(words)) + words


def _matrix(weights: Any) -> values.Array:
    """The numbers of a tensor, an array or nested lists."""
    array = np.asarray(weights.data if hasattr(weights, "requires_grad") else weights)
    if array.dtype.kind not in "biuf":
        raise ArgumentError(f"The weights must be numbers; their dtype is {array.dtype}.")
    return array.astype(np.float64)


def _check(matrix: values.Array, asking: list[str], answering: list[str], with_keys: bool) -> None:
    wanted = f"({len(asking)}, {len(answering)})"
    counts = f"{len(asking)} tokens" + (f" and {len(answering)} keys" if with_keys else "")
    if matrix.ndim != 2:
        raise ShapeError(
            message(
                f"attention(weights: {matrix.shape}, {counts}): expected weights of shape {wanted}.",
                "One picture shows one head of one sentence: a row for each query, a column for each key.",
                _picking(matrix.shape, wanted),
            )
        )
    if matrix.shape != (len(asking), len(answering)):
        raise ShapeError(
            message(
                f"attention(weights: {matrix.shape}, {counts}): expected weights of shape {wanted}.",
                "Each row belongs to one token that asks, each column to one key that answers.",
                "Give the tokens of the keys as keys=[...]."
                if not with_keys and matrix.shape[0] == len(asking)
                else "Give as many words as there are rows and columns.",
            )
        )
    if not asking or not answering:
        raise ArgumentError("attention: there is no token, so there is nothing to draw.")
    if max(matrix.shape) > MOST_KEYS:
        raise ArgumentError(
            message(
                f"attention(weights: {matrix.shape}): more than {MOST_KEYS} tokens on a side.",
                "Every cell shows its number, and these could not be read.",
                f"Draw a part: weights[:{MOST_KEYS}, :{MOST_KEYS}] with the words that belong to it.",
            )
        )


def _picking(shape: tuple[int, ...], wanted: str) -> str:
    if len(shape) < 2:
        return f"Give one row for each query: shape {wanted}."
    first = ", ".join("0" for _ in shape[:-2])
    return f"Choose one: weights[{first}] has shape {shape[-2:]}."
