"""The definitions as oracles: the formulas that are derived from them, and what SymPy derives from them by itself.

Neither knows a forward or a rule of an operation, only its textbook meaning.  So they also tell a rule that fits a
wrong forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Found = dict[int, tuple[np.ndarray, np.ndarray]]  # node to gradient and bound of its error

MANY_NODES = 400  # of a graph whose formulas are still derived
MANY_NUMBERS = 400_000  # in such a graph
SMALL = 600  # numbers of a graph that SymPy is asked about, one entry after the other
TINY = 64  # and of the input of a single operation


class CannotSay(Exception):
    """Why a definition gives no gradient here, in words."""


class _Node:
    """What the symbolic side reads of a node."""

    grad: Any = None
    file, line, scope = "", 0, ""

    def __init__(self, index: int, name: str, value: Any, op: Any, inputs: tuple[int, ...], params: Any) -> None:
        self.index, self.name, self.value, self.op = index, name, np.asarray(value), op
        self.inputs, self.params, self.requires_grad = inputs, params, op is not None
        self.op_name: str = op.name if op is not None else ""
        self.kind = "op" if op is not None else "input"
        self.named = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def dtype(self) -> Any:
        return self.value.dtype


class WeightedSum:
    """A graph continued to one number: the sum of all entries of its outputs, each with its cotangent as weight."""

    def __init__(self, nodes: Sequence[Any], outputs: Sequence[int], cotangents: Sequence[np.ndarray]) -> None:
        from tinyattn.ops import REGISTRY

        self.nodes: list[Any] = [node if node.value.dtype != np.float32 else _wide(node) for node in nodes]
        last = -1
        for at, c in zip(outputs, cotangents, strict=True):
            weight = self._add("g", np.asarray(c, np.float64), None, (), {})
            value = self.nodes[at].value * self.nodes[weight].value
            product = self._add("p", value, REGISTRY["multiply"], (at, weight), {})
            axes = {"axis": tuple(range(value.ndim)), "keepdims": False}
            total = self._add("L", np.sum(value), REGISTRY["sum"], (product,), axes)
            both = None if last < 0 else self.nodes[last].value + self.nodes[total].value
            last = total if last < 0 else self._add("L", both, REGISTRY["add"], (last, total), {})
        self.outputs = (last,)

    def _add(self, name: str, value: Any, op: Any, inputs: tuple[int, ...], params: Any) -> int:
        self.nodes.append(_Node(len(self.nodes), name, value, op, inputs, params))
        return len(self.nodes) - 1


def _wide(node: Any) -> _Node:
    wide = _Node(node.index, node.name, node.value.astype(np.float64), node.op, node.inputs, node.params)
    wide.named, wide.kind = node.named, node.kind
    return wide


def _checked(graph: Any, most: int) -> None:
    lacking = sorted({node.op_name for node in graph.nodes if node.op is not None and not node.op.definition})
    if lacking:
        raise CannotSay(f"{', '.join(lacking)} has no definition")
    size = sum(int(node.value.size) for node in graph.nodes)
    if size > most:
        raise CannotSay(f"the graph holds {size} numbers, more than {most}")


def by_formula(graph: Any, leaves: Sequence[int], cotangents: Sequence[np.ndarray]) -> Found:
    """Derive the gradients of some nodes as formulas, and evaluate those.

    Raises
    ------
    CannotSay
    """
    if len(graph.nodes) > MANY_NODES:
        raise CannotSay(f"the graph has {len(graph.nodes)} nodes, more than {MANY_NODES}")
    _checked(graph, MANY_NUMBERS)
    from tinyattn.symbolic.derivation import Lines
    from tinyattn.symbolic.ways import by_formula as evaluated

    try:
        lines = Lines(WeightedSum(graph.nodes, graph.outputs, cotangents), list(leaves))
        found, _ = evaluated(lines)
    except Exception as error:  # whatever it is, there is no formula, and nothing is said about the gradient
        raise CannotSay(_words(error)) from None
    if lines.blocked:
        raise CannotSay(_words(lines.given[next(iter(lines.blocked.values()))]))
    return found


def by_sympy(graph: Any, leaves: Sequence[int], cotangents: Sequence[np.ndarray]) -> Found:
    """Let SymPy differentiate the definitions.

    Raises
    ------
    CannotSay
    """
    _checked(graph, SMALL)
    from tinyattn.symbolic.ways import by_sympy as derived

    try:
        return derived(WeightedSum(graph.nodes, graph.outputs, cotangents), list(leaves))
    except Exception as error:
        raise CannotSay(_words(error)) from None


def sympy_of_node(graph: Any, node: Any, slot: int, g: np.ndarray) -> np.ndarray | None:
    """What SymPy makes of the definition of one operation, for one of its inputs; None where it is not asked."""
    sizes = [graph.nodes[source].value.size for source in node.inputs]
    if max([*sizes, node.value.size]) > TINY:
        return None
    named = zip(node.op.names_of(len(node.inputs)), node.inputs, strict=True)
    leaves = [_Node(at, name, graph.nodes[source].value, None, (), {}) for at, (name, source) in enumerate(named)]
    last = _Node(len(leaves), "y", node.value, node.op, tuple(range(len(leaves))), dict(node.params))
    try:
        return by_sympy(_Part([*leaves, last], [last.index]), [slot], [g])[slot][0]
    except CannotSay:
        return None


class _Part:
    """Nodes and outputs: all that is read of a graph here."""

    def __init__(self, nodes: Sequence[Any], outputs: Sequence[int]) -> None:
        self.nodes, self.outputs = nodes, outputs


def value_by_definition(graph: Any, node: Any) -> np.ndarray:
    """The value of a node by its definition, entry by entry.

    Raises
    ------
    CannotSay
    """
    if not node.op.definition:
        raise CannotSay(f"{node.op_name} has no definition")
    from tinyattn.symbolic.entrywise import evaluate
    from tinyattn.symbolic.operands import operands_of

    inputs = [np.asarray(graph.nodes[source].value) for source in node.inputs]
    try:
        operands = operands_of(node.op, inputs, node.params)
        text = node.op.definition_text(tuple(x.shape for x in inputs), dict(node.params))
        return np.asarray(evaluate(text, operands, output_shape=node.shape))
    except Exception as error:
        raise CannotSay(_words(error)) from None


def _words(reason: Any) -> str:
    lines = str(reason).splitlines()
    return lines[0] if lines else type(reason).__name__
