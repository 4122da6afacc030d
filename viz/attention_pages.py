"""``attention_page``: attention weights to point at, several heads and several variants beside each other."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tinyattn.arguments import known_arguments
from tinyattn.errors import ArgumentError, message
from viz import colours, heatmap, page, values
from viz.choices import heading_of
from viz.labels import visible
from viz.page import Page
from viz.words import Words

if TYPE_CHECKING:
    from tinyattn.tensor import Tensor

MOST_TABLES = 48


@known_arguments
def attention_page(
    weights: Tensor | values.Array | Mapping[str, Any],
    tokens: Sequence[str],
    keys: Sequence[str] | None = None,
    *,
    title: str | None = None,
    lang: Literal["en", "zh"] | None = None,
) -> Page:
    """Make a page on which a token can be pointed at to see what it looks at, in every head and variant.

    Parameters
    ----------
    weights : Tensor or array, shape (n, m) or (h, n, m), AttentionSteps, or mapping of name to one of these
        A mapping compares variants: ``{"softmax": ..., "relu": ...}``.
    tokens : sequence of str, length n
        The words that ask.
    keys : sequence of str, length m, optional
        The words that answer; the same words when absent.
    title : str, optional
    lang : {"en", "zh"}, optional
        The language that the page opens in.

    Returns
    -------
    Page

    Examples
    --------
    >>> import viz
    >>> variants = {"softmax": [[0.75, 0.25], [0.5, 0.5]], "relu": [[1.5, 0.0], [0.0, 0.0]]}
    >>> print(viz.attention_page(variants, ["I", "saw"]).text)
    softmax
    query asks (rows) / key answers (columns)
              I (1)  saw (2)
    I (1)      0.75     0.25
    saw (2)    0.50     0.50
    'I' (1) looks most at 'I' (1): 0.75
    'saw' (2) looks most at 'I' (1) and 'saw' (2), equally: 0.50
    <BLANKLINE>
    relu
    query asks (rows) / key answers (columns)
              I (1)  saw (2)
    I (1)      1.50        0
    saw (2)       0        0
    'I' (1) looks most at 'I' (1): 1.50
    'saw' (2) looks at nothing: all its weights are 0
    <BLANKLINE>
    """
    words = Words(lang)
    asking = heatmap.labels_of(tokens, "attention_page: tokens")
    answering = asking if keys is None else heatmap.labels_of(keys, "attention_page: keys")
    variants = weights if isinstance(weights, Mapping) else {"": weights}
    if not variants:
        raise ArgumentError(message("attention_page: the mapping of variants is empty.", "", "Give at least one."))
    stacks = {str(name): heatmap.stages_of(each)["weights"] for name, each in variants.items()}
    for stack in stacks.values():
        heatmap.check(stack, asking, answering, keys is not None, stack.shape)
    tables = [_Table(name, head, matrix, asking, answering) for name, head, matrix in _each(stacks)]
    if len(tables) > MOST_TABLES:
        what = f"attention_page: {len(tables)} tables; at most {MOST_TABLES} can be looked at."
        raise ArgumentError(message(what, "", "Give fewer heads or variants."))
    heading = heading_of(title, words("map title"))
    return Page(
        heading,
        lambda: _document(tables, list(stacks), visible(heading), words),
        "\n".join(table.chart(words).text() for table in tables),
        height=520,
    )


def _each(stacks: Mapping[str, values.Array]) -> Iterator[tuple[str, int, values.Array]]:
    """Name, head (0 where there is one only) and matrix of every table."""
    for name, stack in stacks.items():
        if stack.ndim == 2:
            yield name, 0, stack
        else:
            yield from ((name, number, matrix) for number, matrix in enumerate(stack, 1))


class _Table:
    """One table: a head of a variant."""

    def __init__(self, name: str, head: int, matrix: values.Array, asking: list[str], answering: list[str]) -> None:
        self.name, self.head, self.matrix = name, head, matrix
        self.asking, self.answering = asking, answering

    def caption(self, words: Words) -> str:
        parts = [visible(self.name)] if self.name else []
        parts += [words("head", number=self.head)] if self.head else []
        return ", ".join(parts) or words("map title")

    def chart(self, words: Words) -> heatmap.Chart:
        return heatmap.Chart(self.matrix, self.asking, self.answering, self.caption(words), "light", words)

    def figure(self) -> str:
        """The table as markup, its captions and readings in both languages."""
        charts = {lang: self.chart(Words(lang)) for lang in ("en", "zh")}
        chart = charts["en"]
        captions = "".join(f'<span lang="{lang}">{_plain(self.caption(Words(lang)))}</span>' for lang in charts)
        axes = "".join(f'<span lang="{lang}">{_plain(Words(lang)("axes"))}</span>' for lang in charts)
        head = "".join(f'<th scope="col">{_plain(name)}</th>' for name in chart.answering)
        rows = "\n".join(
            f'<tr><th scope="row">{_plain(name)}</th>{"".join(self._cells(chart, at))}</tr>'
            for at, name in enumerate(chart.asking)
        )
        readings = "".join(
            "<template>"
            + "".join(f'<span lang="{lang}">{_plain(said.sentences[at])}</span>' for lang, said in charts.items())
            + "</template>"
            for at in range(len(chart.asking))
        )
        return (
            f'<figure data-variant="{_plain(self.name)}" data-head="{self.head}">\n'
            f"<figcaption>{captions}</figcaption>\n"
            f"<table>\n<caption>{axes}</caption>\n<thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n"
            f'</table>\n<p role="status" aria-live="polite"></p>\n{readings}\n</figure>'
        )

    def _cells(self, chart: heatmap.Chart, row: int) -> Iterator[str]:
        scale: colours.Scale = "share" if chart.shares else "signed"
        finite = np.abs(self.matrix[np.isfinite(self.matrix)])
        largest = float(finite.max()) if finite.size else 0.0
        for x, text in zip(self.matrix[row], chart.cells[row]):
            looks = f"{'s' if chart.shares else 'h'}{colours.level(float(x), scale, largest)}"
            yield f'<td class="{looks if math.isfinite(x) else "strange"}">{text}</td>'


def _plain(words: str) -> str:
    return html.escape(words)


def _document(tables: list[_Table], variants: list[str], title: str, words: Words) -> str:
    heads = sorted({table.head for table in tables} - {0})
    choices = [
        _choice("variant", ("Variant", "变体"), [(name, name) for name in variants if name], words),
        _choice("head", ("Head", "头"), [(str(head), str(head)) for head in heads], words),
    ]
    other = "English" if words.lang == "zh" else "中文"
    hint = (
        "Point at a row, or move with Tab and the arrow keys: one token's view in every table. Enter keeps it.",
        "指向一行，或用 Tab 与方向键移动：同一个词在每张表中的视角。回车固定。",
    )
    said = "".join(f'<span lang="{lang}">{text}</span>' for lang, text in zip(("en", "zh"), hint))
    body = (
        f"<header>\n<h1>{_plain(title)}</h1>\n{''.join(choices)}"
        f'<button class="js-only" id="language">{other}</button>\n</header>\n<main>\n'
        + "\n".join(table.figure() for table in tables)
        + f'\n</main>\n<footer class="js-only">{said}</footer>\n'
    )
    return page.document(
        title=title,
        lang=words.lang,
        styles=page.asset("attention.css"),
        body=body,
        data={},
        script=page.asset("attention.js"),
    )


def _choice(name: str, caption: tuple[str, str], options: list[tuple[str, str]], words: Words) -> str:
    """A selection, hidden where there is nothing to select."""
    everything = "全部" if words.lang == "zh" else "all"
    inner = "".join(f'<option value="{_plain(key)}">{_plain(visible(said))}</option>' for key, said in options)
    hidden = " hidden" if len(options) < 2 else ""
    return (
        f'<label class="js-only"{hidden}><span lang="en">{caption[0]}</span><span lang="zh">{caption[1]}</span> '
        f'<select id="{name}"><option value="">{everything}</option>{inner}</select></label>\n'
    )
