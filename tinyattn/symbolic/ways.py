"""The ways to a gradient that `compare` holds against each other, each with what its result may be off by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyattn.errors import ArgumentError, GraphError
from tinyattn.symbolic.derivation import Lines
from tinyattn.symbolic.numeric import UNIT, Values
from tinyattn.symbolic.terms import Quantity

Array = NDArray[np.float64]
Found = dict[int, tuple[Array, Array]]  # leaf to (gradient, bound of its error)
SAMPLE = 400  # entries of a leaf that the ways by steps look at, unless told; the others are nan
SIMPLE_BOUND = 1e-12  # times max|g|, where no formula gives a bound


def by_autograd(graph: Any, leaves: Sequence[int], formula: Found | None) -> Found:
    """Take the engine's own gradients; their bound is that of the same formulas, evaluated as the engine does."""
    found: Found = {}
    for leaf in leaves:
        node = graph.nodes[leaf]
        grad = np.zeros(node.shape) if node.grad is None else np.asarray(node.grad, dtype=np.float64)
        simple = np.full(node.shape, SIMPLE_BOUND * max(_most(grad), 1e-300))
        bound = formula[leaf][1] if formula and leaf in formula else simple
        single = np.finfo(np.float32).eps / np.finfo(np.float64).eps if node.dtype == np.float32 else 1.0
        found[leaf] = (grad, bound * single)
    return found


class Formula:
    """The derived lines, evaluated at the recorded numbers of the leaves."""

    def __init__(self, lines: Lines, seed: Callable[[tuple[int, ...]], Any] = np.ones) -> None:
        self.lines = lines
        lengths = lines.axes.lengths.length
        self.values = Values({cls: lengths[cls] for cls in range(len(lengths))})
        for index, quantity in lines.quantities.items():
            node = lines.graph.nodes[index]
            if node.op is None or index in lines.definitions.inlined or index in lines.given:
                self._put(quantity, node.value)
        for (index, name), quantity in lines.definitions.parameters.items():
            self._put(quantity, lines.axes.arrays[index][name])
        output = lines.quantities[lines.output]
        if lines.output in lines.adjoints:
            self._put(lines.adjoints[lines.output], seed(lines.graph.nodes[lines.output].shape))
        forward, backward = lines.in_order()
        for line in (*forward, *backward):
            result = self.values.with_bound(line.expr, line.out)
            self.values.put(line.quantity, result.value, result.error)
        self.loss = self.values.array(output) if lines.forward else None

    def _put(self, quantity: Quantity, array: Any) -> None:
        shape = tuple(self.values.sizes[cls] for cls in quantity.classes)
        self.values.put(quantity, np.asarray(array).reshape(shape))

    def gradient(self, index: int) -> tuple[Array, Array]:
        """Give the gradient of a node that has a line, and its bound, in the shape of the node."""
        shape = self.lines.graph.nodes[index].shape
        result = self.values.bounded(self.lines.adjoints[index])
        return np.reshape(result.value, shape), np.reshape(result.error, shape)


def by_formula(lines: Lines) -> tuple[Found, Formula]:
    """Evaluate the derived formulas."""
    formula = Formula(lines)
    return {leaf: formula.gradient(leaf) for leaf in lines.wrt if leaf not in lines.blocked}, formula


def by_sympy(graph: Any, leaves: Sequence[int]) -> Found:
    """Let SymPy derive from the definitions; evaluated with many digits and rounded once."""
    from tinyattn.symbolic.referee import sympy_gradients

    found = sympy_gradients(graph, leaves)
    return {leaf: (value, UNIT * np.abs(value)) for leaf, value in found.items()}


def by_complex_step(graph: Any, leaves: Sequence[int], formula: Found | None, entries: int = SAMPLE) -> Found:
    """Replay the forwards on complex numbers: the imaginary part of f(x + ih) over h, without cancellation."""
    step = 1e-30
    for node in graph.nodes:
        if node.op_name in ("cast", "erf", "abs"):
            raise GraphError(f"{node.op_name} does not run on complex numbers")

    def slope(replay: Replay, leaf: int, place: tuple[int, ...]) -> float:
        moved = replay.graph.nodes[leaf].value.astype(complex)  # and so is all else: a forward may write in place
        moved[place] += 1j * step
        return float(np.imag(replay.loss(leaf, moved, _complex))) / step

    found = _by_steps(graph, leaves, slope, entries)
    for leaf, (value, _) in found.items():
        simple = np.full(value.shape, SIMPLE_BOUND * max(_most(value), 1e-300))
        bound = 4 * formula[leaf][1] if formula and leaf in formula else simple
        found[leaf] = (value, bound)
    return found


def _complex(value: Any) -> Any:
    return value.astype(complex) if value.dtype.kind == "f" else value


def by_difference(graph: Any, leaves: Sequence[int], entries: int = SAMPLE) -> Found:
    """Replay the forwards a step to either side: central differences, good to about ten digits.

    A second step of twice the length shows how much the first is off: by a third of the difference of both.
    """
    loss = float(np.abs(graph.nodes[graph.outputs[0]].value).max())
    both = [_by_steps(graph, leaves, _difference(graph, step), entries) for step in (6e-6, 1.2e-5)]
    most = max((_most(value) for value, _ in both[0].values()), default=0.0)
    off = 1e-8 * most + 1e-9 * max(loss, 1.0)
    return {leaf: (value, off + np.abs(value - both[1][leaf][0])) for leaf, (value, _) in both[0].items()}


def _difference(graph: Any, step: float) -> Callable[[Replay, int, tuple[int, ...]], float]:
    def slope(replay: Replay, leaf: int, place: tuple[int, ...]) -> float:
        value = graph.nodes[leaf].value
        length = step * max(1.0, abs(float(value[place])))
        sides = []
        for sign in (1, -1):
            moved = value.astype(np.float64)
            moved[place] += sign * length
            sides.append(float(replay.loss(leaf, moved)))
        return (sides[0] - sides[1]) / (2 * length)

    return slope


class Replay:
    """Runs the recorded forwards again with one leaf changed."""

    def __init__(self, graph: Any, leaf: int) -> None:
        self.graph = graph
        moved = {leaf}
        self.order = []
        for node in graph.nodes:
            if node.op is not None and any(source in moved for source in node.inputs):
                moved.add(node.index)
                self.order.append(node)

    def loss(self, leaf: int, value: Any, kind: Callable[[Any], Any] = np.asarray) -> Any:
        """Give the loss with other numbers in the leaf, all others in the kind that is wanted."""
        values: dict[int, Any] = {leaf: value}
        for node in self.order:
            inputs = [
                values[source] if source in values else kind(self.graph.nodes[source].value) for source in node.inputs
            ]
            values[node.index] = node.op(*inputs, *node.params.values())
        last = self.graph.outputs[0]
        return np.asarray(values.get(last, self.graph.nodes[last].value)).reshape(())[()]


def _by_steps(
    graph: Any, leaves: Sequence[int], slope: Callable[[Replay, int, tuple[int, ...]], float], entries: int
) -> Found:
    if graph.nodes[graph.outputs[0]].value.size != 1:
        raise ArgumentError("the ways by steps need a loss of one number")
    found: Found = {}
    for leaf in leaves:
        shape = graph.nodes[leaf].shape
        value = np.full(shape, np.nan)
        replay = Replay(graph, leaf)
        places = list(np.ndindex(*shape))
        if len(places) > entries:
            chosen = np.random.default_rng(0).choice(len(places), entries, replace=False)
            places = [places[each] for each in sorted(chosen)]
        with np.errstate(all="ignore"):
            for place in places:
                value[place] = slope(replay, leaf, place)
        found[leaf] = (value, np.zeros(shape))
    return found


def _most(value: Array) -> float:
    return float(np.nanmax(np.abs(value))) if value.size and not np.isnan(value).all() else 0.0
