"""The exact check: reverse mode by the rules against forward mode by dual numbers, over a finite field.

For a random direction v and a random cotangent g the two numbers <g, J v> and <J^T g, v> are equal, or a rule is
wrong: nothing is rounded, so there is no tolerance.  A wrong rule is missed with a chance of about one in eight
million for the fast field.  When the two differ, the same identity is asked of each node by itself, which points at
the first wrong one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyattn.arguments import known_arguments
from tinyattn.check.field import FieldArray, field_of
from tinyattn.check.replay import Replay
from tinyattn.errors import ArgumentTypeError, message
from tinyattn.graph import Graph


class Exact:
    """What the exact check found.

    Attributes
    ----------
    equal : bool
        Whether both numbers are equal.
    wrong : tuple of int
        Nodes whose own two numbers differ, the one nearest the result first.
    cut : dict of int to str
        Nodes that do not run on exact numbers, and why; nothing is said about them.
    composed : tuple of int
        Fused nodes whose own code does not run on exact numbers, so that their composed form was decided instead;
        `check_gradients` holds the two against each other.
    """

    __slots__ = ("composed", "cut", "equal", "wrong")

    def __init__(
        self, equal: bool, wrong: tuple[int, ...], cut: dict[int, str], composed: tuple[int, ...] = ()
    ) -> None:
        self.equal, self.wrong, self.cut, self.composed = equal, wrong, cut, composed

    def __bool__(self) -> bool:
        return self.equal

    def __repr__(self) -> str:
        return f"Exact(equal={self.equal}, wrong={self.wrong}, cut={sorted(self.cut)})"


@known_arguments
def exact_check(graph: Any, *, seed: int = 0, large: bool = False, composed: frozenset[int] = frozenset()) -> Exact:
    """Run a recorded graph over a finite field, forward with tangents and backward by the rules.

    Parameters
    ----------
    graph : Graph
        What `ta.Graph.of` gives.
    seed : int
        Where the random numbers come from.
    large : bool
        Use Python integers modulo 2^61 - 1: slower, and the chance to miss a fault is 4e-19.
    composed : frozenset of int
        Fused nodes that shall be checked by their composed form instead of their own rule.

    Returns
    -------
    Exact
        True when the rules are right; ``wrong`` names the nodes that are not.

    Examples
    --------
    >>> import tinyattn as ta
    >>> x = ta.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    >>> y = ta.softmax(x @ x.mT, axis=-1)
    >>> bool(exact_check(ta.Graph.of(y)))
    True
    """
    if not isinstance(graph, Graph):
        what = f"exact_check: a {type(graph).__name__} was given; a recorded graph is needed."
        raise ArgumentTypeError(message(what, "", "Write exact_check(ta.Graph.of(y)) for a result y."))
    with np.errstate(all="ignore"):
        run = _Run(graph, field_of(seed, large), composed, brief=True)
        if run.whole() and not run.replay.cut:
            return Exact(True, (), {}, run.replay.composed_nodes)
        run = _Run(graph, field_of(seed, large), composed)
        equal = run.whole()
        wrong = () if equal else run.by_node()
    return Exact(equal and not wrong, wrong, dict(run.replay.cut), run.replay.composed_nodes)


class _Run:
    """One run of the graph; a brief one lets go of every number as soon as the sum of all can do without it."""

    def __init__(self, graph: Any, kind: type[FieldArray], composed: frozenset[int], brief: bool = False) -> None:
        self.graph, self.kind = graph, kind
        self.replay = Replay(graph, kind.lift, lambda node: kind.leaf(node.value), lambda x: x.still(), composed)
        self.replay.forward(self._forgetting() if brief else None)
        self.seeds = {
            at: kind.leaf(np.ones(graph.nodes[at].shape), tangent=False)
            for at in graph.outputs
            if graph.nodes[at].requires_grad
        }
        self.ahead = sum(self._along(at, seed) for at, seed in self.seeds.items())
        self.passed: list[tuple[int, int, Any]] = []
        self.loose = 0  # what was put in behind cut nodes, in the direction of their inputs
        self._plain: dict[int, Any] | None = None
        watch = None if brief else lambda *each: self.passed.append(each)
        self.totals = self.replay.backward(self.seeds, watch, self._behind, self._seen, brief)

    def _forgetting(self) -> Callable[[int], None]:
        """Tangents of steps on the way are needed until the last of their readers has run."""
        last: dict[int, list[int]] = {}
        for node in self.graph.nodes:
            readers = self.graph.consumers(node.index)
            if node.op is not None and readers and node.index not in self.graph.outputs:
                last.setdefault(max(reader for reader, _ in readers), []).append(node.index)

        def after(index: int) -> None:
            for at in last.get(index, ()):
                self.replay.values[at] = self.replay.values[at].still()

        return after

    def _seen(self, index: int, g: Any) -> Any:
        """A cotangent with floats of its own, so that nobody must keep what it was made from."""
        return g.foreseen(lambda: self._float(index))

    def _float(self, index: int) -> Any:
        """The cotangent of a node in ordinary floats, for rules that compare it."""
        if self._plain is None:
            replay = Replay(self.graph, np.asarray, lambda node: node.value)
            replay.forward()
            self._plain = replay.backward({at: np.ones(self.graph.nodes[at].shape) for at in self.seeds})
        shape = self.graph.nodes[index].shape
        return np.asarray(self._plain.get(index, np.ones(shape)), np.float64)

    def _behind(self, index: int, g: Any) -> list[Any]:
        """Random cotangents behind a node that does not run."""
        found: list[Any] = []
        for source in self.graph.nodes[index].inputs:
            node = self.graph.nodes[source]
            c = self.kind.leaf(np.ones(node.shape), tangent=False) if node.requires_grad else None
            if c is not None:
                self.loose += self._along(source, c)
            found.append(c)
        return found

    def _along(self, index: int, cotangent: Any) -> int:
        return int(self.replay.values[index].along(cotangent))

    def whole(self) -> bool:
        """Ask the identity of the whole graph."""
        p = self.kind.numbers.p
        forward = self.ahead + self.loose
        ends = [node.index for node in self.graph.nodes if node.op is None and node.requires_grad] + list(
            self.replay.cut
        )
        backward = sum(self._along(at, self.totals[at]) for at in ends if at in self.totals)
        return forward % p == backward % p

    def by_node(self) -> tuple[int, ...]:
        """Ask the identity of each node; gives those where it fails."""
        p = self.kind.numbers.p
        received: dict[int, int] = {}
        for index, slot, c in self.passed:
            source = self.graph.nodes[index].inputs[slot]
            received[index] = received.get(index, 0) + self._along(source, c)
        wrong = []
        for node in reversed(self.graph.nodes):
            if node.op is None or node.index not in self.totals or node.index in self.replay.cut:
                continue
            if self._along(node.index, self.totals[node.index]) % p != received.get(node.index, 0) % p:
                wrong.append(node.index)
        return tuple(wrong)
