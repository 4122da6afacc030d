"""A view as DOT text, put together with the ``graphviz`` package.

Every box is a plain box with an HTML-like label, its id the number of the node, so that the text is the
same in every process.  What a box is can be told without colour: a parameter has two lines around it, an
input round corners, a constant a dashed line, an output a thick one, a fold a notch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from viz import backward, colours, labels, render, tables, text, values
from viz.formulas import RuleBook
from viz.view import Arrow, Box, Scope, View
from viz.words import Words

if TYPE_CHECKING:
    from tinyattn.graph import Node

NAME_SIZE, TEXT_SIZE, DIGIT_SIZE = 14, 11, 10
FONT = "Helvetica"
_QUICK_LAYOUT_FROM = 300
_LONGEST_NAME = 40
_MOST_FOLDS = 4


@dataclass(frozen=True)
class Style:
    """How a picture looks: what the boxes show, in which direction, theme and words."""

    show: frozenset[str]
    direction: str
    theme: colours.Theme
    legend: bool
    title: str
    words: Words
    flow: backward.Direction = "forward"
    passed: backward.Passed = field(default_factory=backward.Passed)
    book: RuleBook | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    part: str = ""  # before the numbers of clusters, where several views stand in one picture
    roles: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "roles", colours.palette(self.theme))


def source(view: View, style: Style) -> str:
    """The DOT text of a view."""
    graph = new_graph(style.theme, rankdir=style.direction, ranksep="0.35", nodesep="0.25")
    if len(view.boxes) > _QUICK_LAYOUT_FROM:
        graph.attr("graph", **render.LAYOUT_LIMITS)
    if style.legend and view.boxes:
        graph.attr("graph", label=labels.label(_legend(view, style)), labelloc="b", labeljust="l")
    with graph.subgraph(name="cluster_all") as whole:
        heading = {"label": labels.label(_heading(view, style))} if style.title or view.folded else {}
        whole.attr(peripheries="0", margin="10", labelloc="t", labeljust="l", **heading)
        _boxes(whole, view, style)
    for arrow in view.arrows:
        if style.flow != "backward":
            _arrow(graph, arrow, style)
        if style.flow != "forward":
            _back(graph, arrow, style)
    if style.flow == "backward":
        for key in style.passed.sums:
            graph.edge(key, backward.sum_key(key), **_BACK, color=style.roles["back"])
    return str(graph.source)


def side_by_side(views: Sequence[View], titles: Sequence[str], style: Style, notes: Mapping[str, str]) -> str:
    """The DOT text of several views in frames of their own; boxes with a note carry it and a thick line.

    Parameters
    ----------
    views : sequence of View
        Their boxes must have different keys.
    titles : sequence of str
    style : Style
    notes : mapping of box key to str
    """
    graph = new_graph(style.theme, rankdir=style.direction, ranksep="0.35", nodesep="0.25")
    heading = labels.text(style.title, NAME_SIZE + 2, colour=style.roles["text"], bold=True)
    graph.attr("graph", label=labels.label(heading), labelloc="t", labeljust="l")
    for number, (view, title) in reversed(list(enumerate(zip(views, titles)))):  # drawn from below
        with graph.subgraph(name=f"cluster_side{number}") as side:
            side.attr(**_cluster(title, style))
            _boxes(side, view, replace(style, notes=notes, part=f"side{number}_"))
        for arrow in view.arrows:
            _arrow(graph, arrow, style)
    return str(graph.source)


def new_graph(theme: colours.Theme, **attributes: str) -> Any:
    """An empty directed graph with the fonts and colours of a theme."""
    roles = colours.palette(theme)
    graph = render.library().Digraph("tinyattn")
    graph.attr("graph", bgcolor=roles["background"], pad="0.15", fontname=FONT, **attributes)
    graph.attr("node", shape="box", fontname=FONT, fontcolor=roles["text"], margin="0.08,0.05")
    graph.attr("edge", fontname=FONT, fontsize=str(TEXT_SIZE), color=roles["edge"], fontcolor=roles["muted"])
    graph.attr("edge", arrowsize="0.7")
    return graph


# Boxes ----------------------------------------------------------------------------------------------------


def _boxes(graph: Any, view: View, style: Style) -> None:
    """All boxes, each in the cluster of its scope; clusters are numbered as they are first met."""
    members: dict[Scope, list[Box]] = {(): []}
    for box in view.boxes:
        for depth in range(len(box.scope) + 1):
            members.setdefault(box.scope[:depth], [])
        members[box.scope].append(box)
    numbers = {scope: number for number, scope in enumerate(members)}

    def fill(part: Any, scope: Scope) -> None:  # as deep as scopes are nested, not as the graph
        for box in members[scope]:
            part.node(box.key, **_box(view, box, style))
            if style.flow == "backward" and box.key in style.passed.sums:
                part.node(backward.sum_key(box.key), **_sum(style))
        for inner in members:
            if len(inner) == len(scope) + 1 and inner[: len(scope)] == scope:
                with part.subgraph(name=f"cluster_{style.part}{numbers[inner]}") as cluster:
                    cluster.attr(**_cluster(inner[-1], style))
                    fill(cluster, inner)

    fill(graph, ())


def _cluster(name: str, style: Style) -> dict[str, str]:
    heading = labels.text(_short(name), TEXT_SIZE + 1, colour=style.roles["muted"], italic=True)
    return {
        "label": labels.label(heading), "labeljust": "l", "labelloc": "t", "margin": "10",
        "peripheries": "1", "style": "rounded,filled", "color": style.roles["cluster"],
        "fillcolor": style.roles["cluster fill"],
    }  # fmt: skip


_SHAPES = {
    "parameter": {"peripheries": "2"},
    "input": {"style": "rounded,filled"},
    "constant": {"style": "dashed,filled", "margin": "0.04,0.02"},
    "op": {},
    "fold": {"shape": "folder"},
}


def _box(view: View, box: Box, style: Style) -> dict[str, str]:
    look = {
        "style": "filled",
        "id": box.key,
        "fillcolor": style.roles[box.kind],
        "color": style.roles[f"{box.kind} line"],
        **_SHAPES[box.kind],
    }
    if box.output:
        look["penwidth"] = "3"
    rows = _fold_rows(view, box, style) if box.kind == "fold" else _node_rows(view, box, style)
    if box.key in style.notes:
        look |= {"penwidth": "3", "color": style.roles["back"]}
        rows.append(labels.text(f"≠ {style.notes[box.key]}", TEXT_SIZE, colour=style.roles["back"], bold=True))
    return look | {"label": labels.label(labels.table([[labels.tag("TD", row)] for row in rows]))}


def _node_rows(view: View, box: Box, style: Style) -> list[str]:
    node = view.graph.nodes[box.members[0]]
    if box.kind == "constant" and not box.output:
        return list(_constant_rows(box, node, style))
    rows = [labels.text(_short(box.title), NAME_SIZE, colour=style.roles["text"], bold=True)]
    if facts := _facts(box, node, style):
        rows.append(_muted(facts, style))
    if "value" in style.show:
        rows += _array_rows(node.value, tables.scale_of(node.op_name, node.value), "value", style)
    if "grad" in style.show:
        rows += _gradient_rows(node, style)
    if style.flow == "both" and box.key in style.passed.sums:
        rows.append(_muted(style.words("added up", count=style.passed.sums[box.key]), style))
    return rows + _formula_rows(node, style)


def _formula_rows(node: Node, style: Style) -> list[str]:
    """The formula of a node and the rule of each operand, as far as they are wanted."""
    rules = style.book.of(node.index) if style.book is not None else None
    lines: list[str] = []
    if rules is not None and "formula" in style.show:
        lines.append(rules.forward.text or rules.definition)
    if rules is not None and "rule" in style.show:
        lines += [rule.text for rule in rules.backward.values()]
    return [labels.text(line, TEXT_SIZE, colour=style.roles["text"], italic=True) for line in dict.fromkeys(lines)]


def _constant_rows(box: Box, node: Node, style: Style) -> Iterable[str]:
    """A constant is small: its name if the learner gave one, how it was calculated, its value."""
    small = node.value.size == 1
    value = values.number(float(node.value.reshape(-1)[0])) if small else ""
    if node.named or not small:
        yield labels.text(_short(box.title), TEXT_SIZE, colour=style.roles["text"], bold=True)
    if box.formula and box.formula != value:
        value = f"{box.formula} = {value}"
    if value:
        yield labels.text(value, TEXT_SIZE, colour=style.roles["text"])
    elif "value" in style.show:
        yield from _array_rows(node.value, "signed", "value", style)


def _facts(box: Box, node: Node, style: Style) -> str:
    """The line under the name: operation or kind, shape, dtype if unusual, and whether it is an output."""
    facts = []
    if not node.op_name:
        facts.append(style.words(box.kind))
    elif "op" in style.show and (node.named or not box.title.startswith(node.op_name)):
        facts.append(node.op_name)
    if "shape" in style.show:
        facts.append(str(tuple(node.shape)))
        facts += [str(node.dtype)] if str(node.dtype) != "float64" else []
    if box.output:
        facts.append(style.words("output"))
    return "  ".join(facts)


def _gradient_rows(node: Node, style: Style) -> list[str]:
    grad = node.grad if node.gradient_state == "computed" else None
    if grad is None or grad.size == 0 or values.is_zero(grad):
        return [_muted(f"{style.words('gradient')}: {text.gradient_text(node, style.words)}", style)]
    return _array_rows(grad, "signed", "gradient", style)


def _array_rows(array: values.Array, scale: colours.Scale, caption: str, style: Style) -> list[str]:
    said = style.words(caption)
    if array.size == 0:
        return [_muted(f"{said}: {style.words('empty')}", style)]
    if array.ndim == 0:
        return [labels.text(f"{said}: {values.number(float(array))}", TEXT_SIZE, colour=style.roles["text"])]
    if values.is_small(array.shape):
        return [_muted(said, style), tables.entry_table(array, scale, style.theme, DIGIT_SIZE)]
    parts = values.Summary.of(array).parts()
    return [_muted(said, style), _summary(parts, style)]


def _summary(parts: list[tuple[str, str]], style: Style) -> str:
    """Smallest, mean and largest entry side by side, under their words."""
    heads = [labels.tag("TD", _muted(style.words(key), style)) for key, _ in parts]
    numbers = [labels.tag("TD", labels.text(x, DIGIT_SIZE, colour=style.roles["text"])) for _, x in parts]
    return labels.table([heads, numbers], cellspacing=2)


def _fold_rows(view: View, box: Box, style: Style) -> list[str]:
    """What is inside a fold: how many nodes, the commonest operations, and its parameters."""
    nodes = [view.graph.nodes[index] for index in box.members]
    ops = Counter(node.op_name for node in nodes if node.op_name).most_common(4)
    rows = [labels.text(_short(box.title), NAME_SIZE, colour=style.roles["text"], bold=True)]
    rows.append(_muted(style.words("nodes", count=len(nodes)), style))
    if ops:
        rows.append(_muted("  ".join(f"{name} ×{count}" for name, count in ops), style))
    sizes = [node.value.size for node in nodes if node.kind == "parameter"]
    if sizes:
        rows.append(_muted(f"{style.words('parameter')} ×{len(sizes)}: {sum(sizes)}", style))
    return rows


def _muted(words: str, style: Style) -> str:
    return labels.text(words, TEXT_SIZE, colour=style.roles["muted"])


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _arrow(graph: Any, arrow: Arrow, style: Style) -> None:
    looks = {"id": arrow.key}
    if arrow.label:
        cell = labels.tag("TD", _muted(arrow.label, style))  # padding keeps the text off the line
        looks["label"] = labels.label(labels.table([[cell]], cellpadding=2))
    graph.edge(arrow.source, arrow.target, **looks)


_BACK = {"dir": "back", "style": "dashed", "penwidth": "1.4"}


def _back(graph: Any, arrow: Arrow, style: Style) -> None:
    """The way back along an arrow, with the cotangent on it; where none goes, a faint line."""
    if not backward.goes_back(arrow, style.passed, style.flow):
        if style.flow == "backward":
            graph.edge(arrow.source, arrow.target, id=arrow.key, style="dotted", arrowhead="none")
        return
    start, looks = arrow.source, {**_BACK, "id": arrow.key, "color": style.roles["back"]}
    if style.flow == "both":
        looks |= {"id": f"b{arrow.key}", "constraint": "false"}
    elif start in style.passed.sums:
        start = backward.sum_key(start)
    contribution = style.passed.along[arrow.key]
    if contribution is None:
        looks["label"] = labels.label(labels.table([[labels.tag("TD", _muted(f"×{arrow.count}", style))]]))
    elif style.flow == "backward":
        looks["label"] = labels.label(labels.table([[labels.tag("TD", x)] for x in _cotangent(contribution, style)]))
    graph.edge(start, arrow.target, **looks)


def _cotangent(array: values.Array, style: Style) -> list[str]:
    """What is passed back: its shape, and its entries when they are few."""
    if array.ndim == 0 or array.size == 0:
        return _array_rows(array, "signed", "cotangent", style)
    said = [_muted(str(tuple(array.shape)), style)]
    if values.is_small(array.shape) and "grad" in style.show:
        said.append(tables.entry_table(array, "signed", style.theme, DIGIT_SIZE - 1))
    return said


def _sum(style: Style) -> dict[str, str]:
    plus = labels.text("+", NAME_SIZE, colour=style.roles["text"], bold=True)
    return {
        "label": labels.label(plus), "shape": "circle", "margin": "0", "width": "0.3", "fixedsize": "true",
        "color": style.roles["back"],
    }  # fmt: skip


# Above and below the picture ------------------------------------------------------------------------------


def _heading(view: View, style: Style) -> str:
    """The title, and what was folded, which is always told."""
    title = labels.text(style.title, NAME_SIZE + 2, colour=style.roles["text"], bold=True, align="LEFT")
    rows = [[labels.tag("TD", title, align="LEFT")]]
    if view.folded:
        told = list(view.folded[:_MOST_FOLDS]) + ["…"] * (len(view.folded) > _MOST_FOLDS)
        line = style.words("folded line", what=style.words("list").join(told))
        muted = labels.text(line, TEXT_SIZE, colour=style.roles["muted"], align="LEFT")
        rows.append([labels.tag("TD", muted, align="LEFT")])
    return labels.table(rows)


def _legend(view: View, style: Style) -> str:
    present = {box.kind for box in view.boxes}
    row = [_sample(kind, style) for kind in _SHAPES if kind in present]
    if any(box.output for box in view.boxes):
        row.append(_framed(style.words("output"), "op", style, border=3))
    words = style.words
    if style.flow != "forward":
        row.append(_muted(f"- - ◁  {words('passed back')}", style))
    if style.show & {"value", "grad"}:
        row.append(_ramp("signed", ((-8, words("below")), (0, "0"), (8, words("above"))), style))
    if "value" in style.show and any(_shows_shares(view, box) for box in view.boxes):
        row.append(_ramp("share", ((0, "0"), (4, ""), (8, "1")), style))
    return labels.table([[labels.tag("TD", cell) for cell in row]], cellspacing=6)


def _shows_shares(view: View, box: Box) -> bool:
    node = view.graph.nodes[box.members[0]]
    small = box.kind == "op" and values.is_small(node.shape)
    return small and tables.scale_of(node.op_name, node.value) == "share"


def _sample(kind: str, style: Style) -> str:
    """A small box drawn as the boxes of this kind are."""
    if kind == "input":
        return _framed(style.words(kind), kind, style, outline="ROUNDED")
    if kind == "constant":
        return _framed(style.words(kind), kind, style, outline="DASHED")
    inner = _framed(style.words(kind), kind, style)
    if kind != "parameter":
        return inner
    line = style.roles["parameter line"]
    return labels.table([[labels.tag("TD", inner)]], border=1, color=line, cellpadding=1)


def _framed(words: str, kind: str, style: Style, border: int = 1, outline: str = "") -> str:
    cell = labels.tag("TD", labels.text(words, TEXT_SIZE, colour=style.roles["text"]))
    fill, line = style.roles[kind], style.roles[f"{kind} line"]
    return labels.table([[cell]], border=border, bgcolor=fill, color=line, cellpadding=2, style=outline)


def _ramp(scale: colours.Scale, steps: Iterable[tuple[int, str]], style: Style) -> str:
    """The colours of the numbers, each with its meaning on it."""
    row = []
    for step, words in steps:
        background = colours.heat(step, scale, style.theme)
        piece = labels.text(words, DIGIT_SIZE, colour=colours.ink(background))
        row.append(labels.tag("TD", piece, bgcolor=background, width=22))
    return labels.table([row], cellpadding=3)
