"""Replay: a recorded graph run again on other numbers, forward by the ops' forwards and backward by their rules.

It reads a `Graph` and no tensor.  A fused op runs its own code where that runs on the numbers at hand, and its
composed form where it does not.  A node that runs on neither is *cut*: its result counts as a new leaf, and what
goes back into it as new cotangents, so that the rest of the graph can still be decided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyattn.check.duck import WRITERS, Duck

Watcher = Callable[[int, int, Any], None]


class Inside:
    """A fused node by its composed form: a small graph of its own, run on the same numbers."""

    def __init__(self, replay: Replay, node: Any, inputs: list[Any]) -> None:
        graph, self.leaves = composed_graph(replay.graph, node)
        given = {at: inputs[slot] for slot, at in self.leaves.items()}
        self.replay = Replay(graph, replay.lift, lambda inner: given[inner.index], replay.still)
        self.replay.forward()
        if self.replay.cut:
            raise ValueError(next(iter(self.replay.cut.values())))
        self.result = self.replay.values[graph.outputs[0]]

    def pull(self, g: Any, count: int) -> list[Any]:
        """The cotangent of each input; None for one that the result does not depend on."""
        totals = self.replay.backward({self.replay.graph.outputs[0]: g})
        if self.replay.cut:
            raise ValueError(next(iter(self.replay.cut.values())))
        return [totals.get(self.leaves.get(slot, -1)) for slot in range(count)]


def composed_graph(graph: Any, node: Any) -> tuple[Any, dict[int, int]]:
    """Record the composed form of a node; gives its graph and where its inputs stand in it."""
    from tinyattn import Graph, tensor

    values = [graph.nodes[source].value for source in node.inputs]
    leaves = [tensor(value, requires_grad=value.dtype.kind == "f") for value in values]
    with np.errstate(all="ignore"):
        result = node.op.composed(*leaves, *node.params.values())
    names = {f"{slot}th input": leaf for slot, leaf in enumerate(leaves)}
    inner = Graph.of(result, names=names, variables={})
    found = {each.name: each.index for each in inner.nodes}
    return inner, {slot: found[name] for slot, name in enumerate(names) if name in found}


class Replay:
    """One run of a graph.

    Parameters
    ----------
    graph : Graph
    lift : callable
        Makes numbers of this run from a plain array: for constants and for what does not need a gradient.
    leaf : callable
        ``leaf(node)`` gives the numbers of a leaf that needs a gradient.
    still : callable, optional
        What the rules shall see of a value: without its tangent, for instance.
    composed : set of int, optional
        Nodes that shall run by their composed form.

    Attributes
    ----------
    values : list
        The numbers of each node, after `forward`.
    cut : dict of int to str
        Nodes that could not be run, and why.
    """

    def __init__(
        self,
        graph: Any,
        lift: Callable[[Any], Any],
        leaf: Callable[[Any], Any],
        still: Callable[[Any], Any] | None = None,
        composed: frozenset[int] = frozenset(),
    ) -> None:
        self.graph, self.lift, self.leaf = graph, lift, leaf
        self.still = still if still is not None else lambda x: x
        self.composed = composed
        self.values: list[Any] = []
        self.cut: dict[int, str] = {}
        self._saved: dict[int, Any] = {}
        self._inside: dict[int, Inside] = {}
        self._stills: dict[int, Any] = {}

    @property
    def composed_nodes(self) -> tuple[int, ...]:
        """The fused nodes that ran by their composed form."""
        return tuple(sorted(self._inside))

    def forward(self, after: Callable[[int], None] | None = None) -> list[Any]:
        """Run every node's forward; ``after`` is told of each."""
        self.values = []
        for node in self.graph.nodes:
            if after is not None and node.index:
                after(node.index - 1)
            if node.op is None:
                self.values.append(_fixed(self.leaf(node) if node.requires_grad else self.lift(node.value)))
                continue
            inputs = [self.values[source] for source in node.inputs]
            try:
                self.values.append(self._run(node, inputs))
            except Exception as error:
                self.cut[node.index] = words_of(error)
                self.values.append(self.leaf(node))
        return self.values

    def _run(self, node: Any, inputs: list[Any]) -> Any:
        op, params = node.op, tuple(node.params.values())
        if op.composed is not None:
            try:
                if node.index in self.composed:
                    raise ValueError
                result, saved = op.forward(*inputs, *params) if op.saves else (op.forward(*inputs, *params), None)
                self._saved[node.index] = saved
                return self._shaped(node, result)
            except Exception:
                self._inside[node.index] = inside = Inside(self, node, inputs)
                return self._shaped(node, inside.result)
        if op.saves:
            result, self._saved[node.index] = op.forward(*inputs, *params)
        else:
            result = forward_of(op, inputs, params)
        return self._shaped(node, result)

    def _shaped(self, node: Any, result: Any) -> Any:
        result = self.lift(result)
        if result.shape != node.shape:
            raise ValueError(f"the forward gave shape {result.shape} where it gave {node.shape} before")
        known = getattr(result, "known", None)
        return _fixed(result if known is None else known(node.value))

    def rest(self, index: int) -> Any:
        """What a rule sees of a node's value."""
        if index not in self._stills:
            self._stills[index] = _fixed(self.still(self.values[index]))
        return self._stills[index]

    def pull(self, index: int, g: Any) -> list[Any]:
        """The cotangent that one node passes back to each of its inputs; None where none is needed."""
        node = self.graph.nodes[index]
        wanted = [self.graph.nodes[source].requires_grad for source in node.inputs]
        inside = self._inside.get(index)
        if inside is not None:
            made = inside.pull(g, len(wanted))
        else:
            inputs = [self.rest(source) for source in node.inputs]
            params = tuple(node.params.values())
            saved = self._saved.get(index)
            made = node.op.pull(g, self.rest(index), saved, inputs, params, wanted)
        return [
            self._fitting(node, slot, c) if want and c is not None else None
            for slot, (want, c) in enumerate(zip(wanted, made, strict=True))
        ]

    def _fitting(self, node: Any, slot: int, contribution: Any) -> Any:
        contribution = self.lift(contribution)
        shape = self.graph.nodes[node.inputs[slot]].shape
        if contribution.shape != shape:
            raise ValueError(f"the rule gave shape {contribution.shape} for an input of shape {shape}")
        return contribution

    def backward(
        self,
        seeds: dict[int, Any],
        watch: Watcher | None = None,
        cut: Callable[[int, Any], list[Any]] | None = None,
        seen: Callable[[int, Any], Any] | None = None,
        brief: bool = False,
    ) -> dict[int, Any]:
        """Run the rules from the outputs back; gives the cotangent of every node that has one.

        ``watch(node, slot, contribution)`` sees each vector-Jacobian product; ``cut(node, g)`` gives what goes
        on behind a node whose rule does not run; ``seen(node, g)`` is what a rule gets to see of a cotangent.
        A ``brief`` run lets go of the numbers and the cotangent of a node once both have been used; those of leaves
        and of cut nodes stay.
        """
        totals = dict(seeds)
        for node in reversed(self.graph.nodes):
            if node.op is None or not node.requires_grad or node.index not in totals:
                continue
            try:
                if node.index in self.cut:
                    raise ValueError(self.cut[node.index])
                g = totals[node.index]
                made = self.pull(node.index, _fixed(g if seen is None else seen(node.index, g)))
            except Exception as error:
                self.cut[node.index] = words_of(error)
                made = cut(node.index, totals[node.index]) if cut is not None else [None] * len(node.inputs)
            for slot, c in enumerate(made):
                if c is not None:
                    if watch is not None:
                        watch(node.index, slot, c)
                    source = node.inputs[slot]
                    totals[source] = totals[source] + c if source in totals else c
            if brief and node.index not in self.cut:
                del totals[node.index]
                self.values[node.index] = self._stills[node.index] = None
        return totals


def _fixed(x: Any) -> Any:
    """Numbers that a forward or a rule gets to see must not be written into."""
    return x.fixed() if isinstance(x, Duck) else x


def forward_of(op: Any, inputs: list[Any], params: tuple[Any, ...]) -> Any:
    """An op's forward on whatever numbers; a cast leaves complex numbers and ducks as they are."""
    if op.name == "cast" and getattr(inputs[0], "dtype", np.dtype(float)).kind == "c":
        return inputs[0]
    return op(*inputs, *params) if op.name in WRITERS else op.forward(*inputs, *params)


def words_of(error: Exception) -> str:
    """What went wrong, in a line."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
