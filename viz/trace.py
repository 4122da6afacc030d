"""The replay as a list of steps: forward a box a step, the seed, then one step per vector-Jacobian product.

A step says what happens and to whom; what a page shows of it is put together in :mod:`viz.panels`.  All
numbers are the engine's own: nothing is differentiated here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from viz import values
from viz.view import View

if TYPE_CHECKING:
    from tinyattn.graph import Contribution, Graph

_MOST_FOLDED_CHECKS = 10


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the replay.

    Attributes
    ----------
    kind : {"forward", "seed", "pull", "sum", "leaf", "check"}
    node : int
        The node whose turn it is; in a pull the one that passes back.
    target : int
        In a pull the node that receives, else the node itself.
    slot : int
        In a pull the operand that receives; -1 elsewhere.
    number, of : int
        "Contribution 2 of 3": which one, and how many there are; a seed counts as one.
    value : array or None
        The contribution, the seed or the gradient.
    """

    kind: str
    node: int
    target: int
    slot: int = -1
    number: int = 0
    of: int = 0
    value: values.Array | None = None


class Trace:
    """The steps of a graph as a view shows it.

    Parameters
    ----------
    view : View
        Its graph must hold a backward pass: ``Graph.of(loss, gradients=True)``.

    Attributes
    ----------
    steps : tuple of Step
    home : dict of int to str
        The box that each node is in, also of nodes that are passed over.
    """

    def __init__(self, view: View) -> None:
        self.view, self.graph = view, view.graph
        self.shown = _passed_over(self.graph)
        self.home = self.homes(view)
        self.box = {box.key: box for box in view.boxes}
        crossing = [(c, self.shown[c.target]) for c in self.graph.contributions if self._crosses(c)]
        self.arriving: dict[int, list[Contribution]] = {}
        for contribution, target in crossing:
            self.arriving.setdefault(target, []).append(contribution)
        self.seeded = [i for i in dict.fromkeys(self.graph.outputs) if self.graph.nodes[i].grad is not None]
        self.steps = (*self._forward(), *self._backward(crossing), *self._checks())

    @staticmethod
    def homes(view: View) -> dict[int, str]:
        """The box of each node of a view, also of the nodes that are passed over."""
        home = {index: box.key for box in view.boxes for index in box.members}
        for index, stand_in in enumerate(_passed_over(view.graph)):
            if index not in home and stand_in in home:
                home[index] = home[stand_in]
        return home

    def _crosses(self, c: Contribution) -> bool:
        ends = self.home.get(c.node), self.home.get(c.target)
        return None not in ends and ends[0] != ends[1] and not self.graph.nodes[c.node].hidden

    def count(self, target: int) -> int:
        """How many parts the gradient of a node is added up from."""
        return len(self.arriving.get(target, ())) + (target in self.seeded)

    def _forward(self) -> Iterator[Step]:
        for box in self.view.boxes:
            yield Step("forward", box.members[-1], box.members[-1])

    def _backward(self, crossing: list[tuple[Contribution, int]]) -> Iterator[Step]:
        arrived: Counter[int] = Counter()
        for index in self.seeded:
            arrived[index] += 1
            yield Step("seed", index, index, number=1, of=self.count(index), value=seed_of(self.graph, index))
            if arrived[index] == self.count(index):
                yield from self._complete(index)
        for c, target in crossing:
            arrived[target] += 1
            yield Step("pull", c.node, target, c.slot, arrived[target], self.count(target), c.value)
            if arrived[target] == self.count(target):
                yield from self._complete(target)

    def _complete(self, target: int) -> Iterator[Step]:
        node = self.graph.nodes[target]
        many = self.count(target)
        if many > 1:
            yield Step("sum", target, target, of=many, value=node.grad)
        if node.kind == "parameter":
            yield Step("leaf", target, target, of=many, value=node.grad)

    def _checks(self) -> Iterator[Step]:
        """The parameters that are seen; where all of them are folded, the first of these."""
        leaves = [n for n in self.graph.nodes if n.kind == "parameter" and n.grad is not None and n.index in self.home]
        seen = [node for node in leaves if self.box[self.home[node.index]].kind != "fold"]
        for node in seen or leaves[:_MOST_FOLDED_CHECKS]:
            yield Step("check", node.index, node.index, value=node.grad)


def seed_of(graph: Graph, output: int) -> values.Array:
    """What the backward pass starts from at an output: 1 for each entry."""
    return np.ones_like(graph.nodes[output].value)


def _passed_over(graph: Graph) -> list[int]:
    """For each node the one that stands for it in the picture: a cast is seen through."""
    through = list(range(len(graph.nodes)))
    for node in graph.nodes:
        if node.hidden and node.inputs:
            through[node.index] = through[node.inputs[0]]
    return through
