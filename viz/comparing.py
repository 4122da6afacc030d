"""``diff``: two computations beside each other, with what is the same, what differs, and where that begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tinyattn.arguments import known_arguments
from viz import data, dot, text
from viz.choices import check_theme, heading_of
from viz.drawing import AnyTheme, Drawing, Parts
from viz.labels import visible
from viz.svg import Mark
from viz.view import View, view_of
from viz.words import Words

if TYPE_CHECKING:
    from tinyattn.graph import Graph, Node
    from tinyattn.tensor import Tensor

CLOSE = 1e-9
"""Values that differ relatively by less are equal: the order of additions may differ."""


@known_arguments
def diff(
    y: Tensor | Graph,
    reference: Tensor | Graph,
    *,
    theme: AnyTheme = "auto",
    title: str | None = None,
    lang: Literal["en", "zh"] | None = None,
) -> Drawing:
    """Draw two computations beside each other, such as your attempt and the reference.

    Nodes are paired from the leaves on: by the same operation on paired operands, else by the same name.  A
    pair is *equal*, *other* (another operation or other operands), or has another *shape* or another *value*;
    what has no partner is *alone*.

    Parameters
    ----------
    y, reference : Tensor or Graph
    theme : {"auto", "light", "dark"}
    title : str, optional
    lang : {"en", "zh"}, optional

    Returns
    -------
    Drawing

    Examples
    --------
    >>> import tinyattn as ta
    >>> import viz
    >>> x = ta.tensor([1.0, 2.0], requires_grad=True)
    >>> mine, reference = ta.sum(x), ta.sum(x * x)
    >>> print(viz.diff(mine, reference).text)
    2 of 2 nodes have a partner; the first that differs is mine.
      x    : (2,) = parameter  |  x
    ~ mine : () = sum(x, axis=(0,))  |  reference: another operation or other operands
    + multiply : (2,) = multiply(x, x)  |  only in the reference
    <BLANKLINE>
    """
    check_theme(theme)
    words = Words(lang)
    graphs = [_graph(y), _graph(reference)]
    pairing = Pairing(*graphs)
    heading = heading_of(title, words("diff title"))
    views = [view_of(graph, words, max_nodes=120) for graph in graphs]
    marked = [_marked(view, side) for side, view in enumerate(views)]
    style = dot.Style(
        show=frozenset(("op", "shape")),
        direction="LR",
        theme="dark" if theme == "dark" else "light",
        legend=False,
        title=heading,
        words=words,
    )
    said = text_of(pairing, words)
    sides = [words("yours"), words("reference")]
    parts = Parts(
        dot=lambda: dot.side_by_side(marked, sides, style, _notes(marked, pairing, words)),
        text=lambda: said,
        alt_text=lambda: said,
        data=lambda: {"format": data.FORMAT, "kind": "diff", "title": heading, "pairs": pairing.listed()},
        marks=lambda: {box.key: Mark(box.kind, visible(box.title)) for view in marked for box in view.boxes},
    )
    return Drawing(heading, theme, parts, words.lang)


def _graph(y: Any) -> Graph:
    from tinyattn.graph import Graph

    return y if isinstance(y, Graph) else Graph.of(y)


class Pairing:
    """Which node of one graph belongs to which of the other, and how they differ.

    Attributes
    ----------
    partner : dict of int to int
        From the first graph to the second.
    state : dict of int to str
        Of the nodes of the first graph: "equal", "other", "shape", "value" or "alone".
    """

    def __init__(self, mine: Graph, reference: Graph) -> None:
        self.mine, self.reference = mine, reference
        self.partner: dict[int, int] = {}
        self._taken: set[int] = set()
        self._pair_by_structure()
        self._pair_by_name()
        self._pair(mine.outputs, reference.outputs)
        self._pair_from_behind()
        self.state = {node.index: self._state(node) for node in mine.nodes}
        self.alone = [node.index for node in reference.nodes if node.index not in self._taken]

    def first(self) -> int | None:
        """The first node that is not equal, in the order of computation."""
        return next((index for index, state in sorted(self.state.items()) if state != "equal"), None)

    def listed(self) -> list[dict[str, Any]]:
        """The pairs as plain data."""
        pairs: list[dict[str, Any]] = [
            {"mine": node.name, "reference": self._name(node.index), "state": self.state[node.index]}
            for node in self.mine.nodes
        ]
        return pairs + [{"mine": None, "reference": self.reference.nodes[i].name, "state": "alone"} for i in self.alone]

    def _name(self, index: int) -> str | None:
        return self.reference.nodes[self.partner[index]].name if index in self.partner else None

    def _pair(self, mine: Sequence[int], others: Sequence[int]) -> None:
        for one, other in zip(mine, others):
            if one not in self.partner and other not in self._taken:
                self.partner[one] = other
                self._taken.add(other)

    def _pair_by_structure(self) -> None:
        """Leaves by name, then every operation whose operands are paired with an equal one's."""
        leaves = {node.name: node.index for node in self.reference.nodes if node.op is None}
        waiting: dict[Any, list[int]] = {}
        for node in self.reference.nodes:
            if node.op is not None:
                waiting.setdefault((node.op_name, node.inputs, _params(node)), []).append(node.index)
        for node in self.mine.nodes:
            if node.op is None:
                if node.name in leaves:
                    self._pair([node.index], [leaves[node.name]])
                continue
            operands = tuple(self.partner.get(source, -1) for source in node.inputs)
            same = waiting.get((node.op_name, operands, _params(node)), [])
            if same:
                self._pair([node.index], [same.pop(0)])

    def _pair_by_name(self) -> None:
        named = {node.name: node.index for node in self.reference.nodes if node.named and node.index not in self._taken}
        for node in self.mine.nodes:
            if node.named and node.index not in self.partner and node.name in named:
                self._pair([node.index], [named[node.name]])

    def _pair_from_behind(self) -> None:
        """Operands of paired nodes, where both are still alone and made by the same operation."""
        for node in reversed(self.mine.nodes):
            if node.index in self.partner:
                others = self.reference.nodes[self.partner[node.index]].inputs
                for one, other in zip(node.inputs, others):
                    if self.mine.nodes[one].op_name == self.reference.nodes[other].op_name != "":
                        self._pair([one], [other])

    def _state(self, node: Node) -> str:
        if node.index not in self.partner:
            return "alone"
        other = self.reference.nodes[self.partner[node.index]]
        operands = tuple(self.partner.get(source, -1) for source in node.inputs)
        if node.shape != other.shape:
            return "shape"
        if node.op_name != other.op_name or operands != other.inputs or _params(node) != _params(other):
            return "other"
        return "equal" if np.allclose(node.value, other.value, rtol=CLOSE, atol=CLOSE, equal_nan=True) else "value"


def _params(node: Node) -> str:
    return repr({key: np.asarray(value).tolist() for key, value in node.params.items()})


def text_of(pairing: Pairing, words: Words) -> str:
    """The listing of the first graph with a sign before each line, then what only the reference has."""
    nodes, others = pairing.mine.nodes, pairing.reference.nodes
    first = pairing.first()
    name = visible(nodes[first].name) if first is not None else ""
    head = words("diff head", paired=len(pairing.partner), count=len(nodes))
    lines = [head + " " + (words("diff first", name=name) if first is not None else words("diff none"))]
    width = min(24, max(len(node.name) for node in nodes))
    for node in nodes:
        sign = {"equal": " ", "alone": "-"}.get(pairing.state[node.index], "~")
        start = text.line_of(pairing.mine, node, words, width).split("  |  ")[0]
        lines.append(f"{sign} {start}  |  {_said(pairing, node, words)}")
    for index in pairing.alone:
        start = text.line_of(pairing.reference, others[index], words).split("  |  ")[0]
        lines.append(f"+ {start}  |  {words('only reference')}")
    return "\n".join(lines) + "\n"


def _said(pairing: Pairing, node: Node, words: Words) -> str:
    state = pairing.state[node.index]
    if state == "alone":
        return words("only yours")
    other = pairing.reference.nodes[pairing.partner[node.index]]
    name = visible(other.name)
    if state == "equal":
        return name
    if state == "shape":
        return words("diff shape", name=name, shape=other.shape)
    if state == "value":
        gap = float(np.abs(np.asarray(node.value, float) - np.asarray(other.value, float)).max())
        return words("diff value", name=name, gap=f"{gap:.2g}")
    return words("diff other", name=name)


def _marked(view: View, side: int) -> View:
    """A view whose keys belong to one side alone."""
    prefix = "ab"[side]
    boxes = tuple(replace(box, key=prefix + box.key) for box in view.boxes)
    arrows = tuple(
        replace(a, key=prefix + a.key, source=prefix + a.source, target=prefix + a.target) for a in view.arrows
    )
    return replace(view, boxes=boxes, arrows=arrows)


def _notes(views: Sequence[View], pairing: Pairing, words: Words) -> dict[str, str]:
    """For each box that is not equal a few words."""
    back = {other: mine for mine, other in pairing.partner.items()}
    notes = {}
    for side, view in enumerate(views):
        for box in view.boxes:
            said = {_note(side, index, pairing, back, words) for index in box.members} - {""}
            if said:
                notes[box.key] = words("list").join(sorted(said))
    return notes


def _note(side: int, index: int, pairing: Pairing, back: dict[int, int], words: Words) -> str:
    if side == 1:
        if index not in back:
            return words("alone")
        index = back[index]
    state = pairing.state[index]
    return "" if state == "equal" else words("alone") if state == "alone" else words(f"differs {state}")
