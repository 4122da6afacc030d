"""The backward pass through a long graph that repeats itself, such as many layers, or many steps of one state.

A thousand nodes and more are not written out as `tinyattn.straight` does it: that would take too long.  But between
one step and the next such a graph often has a narrow place, where a single result is waiting for its turn.  So one
stretch from such a place to another is written out, as a loop that goes on as long as the graph repeats itself.  What
does not fit is left to `quick.run`.  A node of a chain of single numbers then takes 0.2 instead of 0.45 microseconds.
An LSTM, or a loss in every step, has no narrow place: two results wait all the time.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from tinyattn.kernels.small import all_finite
from tinyattn.quick import run
from tinyattn.straight import Found, Text, Written
from tinyattn.tensor import Tensor

SEARCHED = 400  # results; where the newest ones do not repeat themselves, no stretch is looked for further down
SHORTEST = 32  # results in a stretch
TRIES = 8  # stretches that are written before the search ends
PRICE = TRIES * SHORTEST  # results that are written out at most

Stretch = Callable[[Tensor, Any, dict[Tensor, Any]], tuple[Tensor, Any]]


def stretched(output: Tensor) -> Written | None:
    """A backward pass that goes along a stretch again and again; None where the graph does not repeat itself."""
    nodes, alone = _newest(output)
    starts = [at for at in range(len(nodes) - SHORTEST) if alone[at]]
    for start in starts[:TRIES]:
        for end in range(start + SHORTEST, len(nodes)):
            if alone[end] and _made_at(nodes[end]) == _made_at(nodes[start]):
                text = StretchText(nodes[start:end], nodes[end])
                if text.fits(nodes[end]):
                    return Along(text.function())
                break
    return None


class Along:
    """A backward pass by a stretch wherever it fits; once it fitted nowhere soon, it does no more.

    A pass that was begun is brought to its end: a learner's rule on the way must not be called a second time.
    """

    __slots__ = ("stretch", "unfit")

    def __init__(self, stretch: Stretch) -> None:
        self.stretch, self.unfit = stretch, False

    def __call__(self, output: Tensor, seed: Any) -> Found | None:
        """The pass from a result and its cotangent."""
        if self.unfit:
            return None
        cotangents: dict[Any, Any] = {output: seed}
        newest: list[Any] = [output]
        older: list[tuple[int, Any]] = []
        fitted, oldest, missed = False, 0, 0
        while newest or older:
            start = newest.pop() if newest else heappop(older)[1]
            node, cotangents[node] = self.stretch(start, cotangents.pop(start), cotangents)
            newest.append(node)
            fitted, missed = fitted or node is not start, 0 if node is not start else missed + 1
            self.unfit = missed > SEARCHED and not fitted
            oldest = run(cotangents, newest, older, until_alone=missed <= SEARCHED)
        return cotangents, oldest, all_finite(cotangents.values())


class StretchText(Text):
    """The text of a stretch: it begins with one result alone, and leads to another."""

    def __init__(self, nodes: list[Tensor], end: Tensor) -> None:
        super().__init__(nodes)
        self._in_order(nodes[-1], end)
        self.end = self.names[end]
        self.conditions += self._kind(end, self.end)
        if len(leaves := self.leaves()) > 1:
            self.conditions.append(f"len({{{', '.join(leaves)}}}) == {len(leaves)}")

    def fits(self, node: Tensor) -> bool:
        """Whether the graph goes on from a result as it does here."""
        return bool(self.run(f"def fits(output): return ({self._condition()})", "fits")(node))

    def source(self) -> str:
        """The whole text."""
        keep = [f"cotangents[{name}] = g{name[1:]}" for name in self.leaves()]
        return "\n        ".join([
            "def written(output, g0, cotangents):\n    while (", f"    {self._condition()}", "):", *self.lines, *keep,
            f"output, g0 = {self.end}, g{self.end[1:]}",
        ]) + "\n    return output, g0\n"  # fmt: skip

    def _condition(self) -> str:
        return "\n        and ".join(self.conditions)

    def _first(self, x: Tensor, made: str) -> str:
        """A leaf may have something from a stretch before."""
        name = self.names[x]
        return made if x.op is not None else f"cotangents[{name}] + {made} if {name} in cotangents else {made}"


def _newest(output: Tensor) -> tuple[list[Tensor], list[bool]]:
    """The newest results behind an output, and whether each is the only one waiting when its turn comes."""
    found: list[Tensor] = []
    alone: list[bool] = []
    waiting, seen = [(-output.order, output)], {output}
    while waiting and len(found) < SEARCHED:
        alone.append(len(waiting) == 1)
        node = heappop(waiting)[1]
        found.append(node)
        for x in node.inputs:
            if x.requires_grad and x.op is not None and x not in seen:
                seen.add(x)
                heappush(waiting, (-x.order, x))
    return found, alone


def _made_at(node: Tensor) -> Any:
    return node.code, node.lasti, node.op, node._shape
