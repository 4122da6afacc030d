"""``attention``: a table of attention weights, who asks down the side, who answers across the top.

The table is a Graphviz label like every other picture here; no plotting library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tinyattn.arguments import known_arguments
from tinyattn.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from tinyattn.terminal import display_width
from viz import colours, data, dot, labels, tables, values
from viz.choices import check_theme, heading_of
from viz.drawing import AnyTheme, Drawing, Parts
from viz.labels import em_width, visible
from viz.words import Words

if TYPE_CHECKING:
    from tinyattn.tensor import Tensor

MOST_KEYS = 64
"""Beyond this many tokens on a side the numbers could not be read any more."""

MOST_HEADS = 16

_SIZE = 12
_MOST_TIES = 3
_ACROSS = 4


@known_arguments
def attention(
    weights: Tensor | values.Array | Sequence[Sequence[float]],
    tokens: Sequence[str],
    keys: Sequence[str] | None = None,
    *,
    scores: Tensor | values.Array | None = None,
    masked: Tensor | values.Array | None = None,
    title: str | None = None,
    theme: AnyTheme = "auto",
    lang: Literal["en", "zh"] | None = None,
) -> Drawing:
    """Draw attention weights as a table: each row is a word that asks, each column one that answers.

    Parameters
    ----------
    weights : Tensor or array, shape (n, m) or (h, n, m), or AttentionSteps
        Row i holds how much query i takes from each key.  Several heads stand beside each other.  All steps
        of an attention, as ``return_steps=True`` gives them, are drawn as the stages that they are.
    tokens : sequence of str, length n
        The words that ask.
    keys : sequence of str, length m, optional
        The words that answer; the same words when absent.
    scores, masked : Tensor or array, of the shape of the weights, optional
        The stages before the weights: how well each key answers, and the same with hidden keys at minus
        infinity.
    title : str, optional
    theme : {"auto", "light", "dark"}
    lang : {"en", "zh"}, optional

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
    check_theme(theme)
    asking = labels_of(tokens, "attention: tokens")
    answering = asking if keys is None else labels_of(keys, "attention: keys")
    stages = stages_of(weights, scores, masked)
    for matrix in stages.values():
        check(matrix, asking, answering, keys is not None, stages["weights"].shape)
    heading = heading_of(title, words("map title"))
    shade: colours.Theme = "dark" if theme == "dark" else "light"

    def chart(matrix: values.Array, caption: str, read: bool) -> Chart:
        return Chart(matrix, asking, answering, caption, shade, words, read)

    picture = Grid.of(stages, heading, chart, words) if len(stages) > 1 or stages["weights"].ndim > 2 else None
    shown = picture or chart(stages["weights"], heading, True)
    parts = Parts(dot=shown.dot, text=shown.text, alt_text=shown.text, data=shown.data)
    return Drawing(heading, theme, parts, words.lang)


_SOURCE = "Write layer.steps(x), or the weights themselves: a row for each query, a column for each key."


def labels_of(given: object, what: str) -> list[str]:
    """The words at the edges of a picture.

    >>> labels_of(("I", 3), "attention: tokens")
    ['I', '3']
    """
    if not isinstance(given, Iterable):
        kind = type(given).__name__
        raise ArgumentTypeError(message(f"{what} is a {kind}; a list of words is needed.", "", "Write ['I', 'saw']."))
    return [str(each) for each in given]


def stages_of(weights: Any, scores: Any = None, masked: Any = None) -> dict[str, values.Array]:
    """The stages that are there, by name, in the order in which they are computed."""
    if hasattr(weights, "masked_scores"):
        steps = weights
        scores = steps.scores if scores is None else scores
        masked = steps.masked_scores if masked is None and steps.keep is not None else masked
        weights = steps.weights
    if weights is None:
        raise ArgumentTypeError(message("attention: weights is None; a matrix is needed.", "", _SOURCE))
    given = {"scores": scores, "masked": masked, "weights": weights}
    return {name: _matrix(stage) for name, stage in given.items() if stage is not None}


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


class Chart:
    """A checked heat map: its parts are the parts of a Drawing."""

    def __init__(
        self,
        matrix: values.Array,
        asking: list[str],
        answering: list[str],
        title: str,
        theme: colours.Theme,
        words: Words,
        read: bool = True,
    ) -> None:
        self.matrix, self.title, self.theme, self.words = matrix, title, theme, words
        self.asking = [f"{visible(token)} ({at})" for at, token in enumerate(asking, 1)]
        self.answering = [f"{visible(token)} ({at})" for at, token in enumerate(answering, 1)]
        queries = [f"'{visible(token)}' ({at})" for at, token in enumerate(asking, 1)]
        answers = [f"'{visible(token)}' ({at})" for at, token in enumerate(answering, 1)]
        self.sentences = [reading(row, query, answers, words) for row, query in zip(matrix, queries)] if read else []
        finite = matrix[np.isfinite(matrix)]
        self.shares = read and bool(((finite >= 0) & (finite <= 1)).all())
        self.cells = values.cells(matrix, 2 if self.shares else None)
        self.tokens = asking, answering
        self.roles = colours.palette(theme)

    def dot(self) -> str:
        """The picture: one node that is a table."""
        graph = dot.new_graph(self.theme)
        graph.node("n0", shape="plain", label=labels.label(self.table()), id="n0")
        return str(graph.source)

    def table(self, read: bool = True) -> str:
        """The heat map as a label's table, with or without the sentences below it."""
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
        if self.sentences and read:
            rows.append([labels.tag("TD", self.said(), colspan=across + 2, align="LEFT")])
        return labels.table(rows, cellspacing=2, cellpadding=4)

    def said(self) -> str:
        """The sentences as a label's table; a blank where there are none."""
        lines = self.sentences or [" "]
        return labels.table([[self._cell(line, align="LEFT")] for line in lines], cellpadding=0)

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
        """The same table as text, with the sentences."""
        side = max(map(display_width, self.asking))
        longest = [max(map(len, column)) for column in zip(*self.cells)]
        widths = [2 + max(display_width(name), length) for name, length in zip(self.answering, longest)]
        lines = [visible(self.title), self.words("axes")]
        lines.append(" " * side + "".join(map(_right, self.answering, widths)))
        for name, row in zip(self.asking, self.cells):
            lines.append(name + " " * (side - display_width(name)) + "".join(map(_right, row, widths)))
        return "\n".join([*lines, *self.sentences]) + "\n"

    def data(self) -> dict[str, Any]:
        """The table as plain data."""
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


class Grid:
    """Several heat maps in one picture: heads below each other, their stages beside each other.

    Heads without stages stand beside each other, four in a row.
    """

    def __init__(self, rows: list[list[Chart]], title: str, theme: colours.Theme) -> None:
        self.rows, self.title, self.theme = rows, title, theme

    @classmethod
    def of(
        cls,
        stages: dict[str, values.Array],
        title: str,
        chart: Callable[[values.Array, str, bool], Chart],
        words: Words,
    ) -> Grid:
        """The grid of some stages, each (n, m) or (h, n, m)."""
        heads = stages["weights"].shape[0] if stages["weights"].ndim == 3 else None
        rows: list[list[Chart]] = []
        for head in range(heads or 1):
            row = []
            for name, stage in stages.items():
                caption = [words("head", number=head + 1)] if heads else []
                caption += [words(f"stage {name}")] if len(stages) > 1 else []
                matrix = stage[head] if heads else stage
                row.append(chart(matrix, ": ".join(caption), name == "weights"))
            rows.append(row)
        if len(stages) == 1:
            flat = [chart for row in rows for chart in row]
            rows = [flat[at : at + _ACROSS] for at in range(0, len(flat), _ACROSS)]
        return cls(rows, title, rows[0][0].theme)

    def dot(self) -> str:
        """All tables in one node, so that they line up."""
        graph = dot.new_graph(self.theme)
        ink = colours.palette(self.theme)["text"]
        heading = labels.text(self.title, _SIZE + 5, colour=ink, bold=True, align="LEFT")
        across = max(map(len, self.rows))
        cells = [[labels.tag("TD", heading, align="LEFT", colspan=across)]]
        for row in self.rows:
            cells.append([labels.tag("TD", chart.table(read=False)) for chart in row])
            cells.append([labels.tag("TD", chart.said(), align="LEFT") for chart in row])
        graph.node("n0", shape="plain", label=labels.label(labels.table(cells, cellpadding=6)), id="n0")
        return str(graph.source)

    def text(self) -> str:
        """The tables one after the other."""
        return "\n".join([visible(self.title), "", *(chart.text() for row in self.rows for chart in row)])

    def data(self) -> dict[str, Any]:
        """All tables as plain data."""
        maps = [chart.data() for row in self.rows for chart in row]
        return {"format": data.FORMAT, "kind": "attention grid", "title": self.title, "maps": maps}


def _right(words: str, width: int) -> str:
    return " " * (width - display_width(words)) + words


def _matrix(weights: Any) -> values.Array:
    """The numbers of a tensor, an array or nested lists."""
    array = np.asarray(weights.data if hasattr(weights, "requires_grad") else weights)
    if array.dtype.kind not in "biuf":
        raise ArgumentError(f"The weights must be numbers; their dtype is {array.dtype}.")
    return array.astype(np.float64)


def check(
    matrix: values.Array, asking: list[str], answering: list[str], with_keys: bool, weights: tuple[int, ...]
) -> None:
    """See that a stage fits the words and the weights; refuse it in words if not."""
    wanted = f"({len(asking)}, {len(answering)})"
    counts = f"{len(asking)} tokens" + (f" and {len(answering)} keys" if with_keys else "")
    if matrix.shape != weights:
        raise ShapeError(
            message(
                f"attention: a stage has shape {matrix.shape}, the weights have shape {weights}.",
                "The stages are the same table at different moments.",
                "Give scores, masked scores and weights of one attention.",
            )
        )
    if matrix.ndim not in (2, 3):
        raise ShapeError(
            message(
                f"attention(weights: {matrix.shape}, {counts}): expected weights of shape {wanted}.",
                "One picture shows one sentence: a row for each query, a column for each key; (h, n, m) for h heads.",
                _picking(matrix.shape, wanted),
            )
        )
    if matrix.shape[-2:] != (len(asking), len(answering)):
        raise ShapeError(
            message(
                f"attention(weights: {matrix.shape}, {counts}): expected weights of shape {wanted}.",
                "Each row belongs to one token that asks, each column to one key that answers.",
                "Give the tokens of the keys as keys=[...]."
                if not with_keys and matrix.shape[-2] == len(asking)
                else "Give as many words as there are rows and columns.",
            )
        )
    if not asking or not answering:
        raise ArgumentError("attention: there is no token, so there is nothing to draw.")
    if matrix.ndim == 3 and not 0 < len(matrix) <= MOST_HEADS:
        instead = f"Draw some of them: weights[:{MOST_HEADS}]."
        what = f"attention: {len(matrix)} heads; between 1 and {MOST_HEADS} can be drawn."
        raise ArgumentError(message(what, "", instead))
    if max(matrix.shape[-2:]) > MOST_KEYS:
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
    first = ", ".join("0" for _ in shape[:-3])
    return f"Choose one: weights[{first}] has shape {shape[-3:]}, one table a head."
