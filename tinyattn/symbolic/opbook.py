"""The formula of one operation and of its gradients, for tables: read from its definition, derived by the one rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyattn.errors import GraphError
from tinyattn.symbolic.deriving import Derivation
from tinyattn.symbolic.layout import text


class _CallNode:
    """A leaf or the result of the one call, with what the symbolic side reads of a node."""

    def __init__(
        self, index: int, name: str, value: Any, op: Any, inputs: tuple[int, ...], params: Mapping[str, Any]
    ) -> None:
        self.index, self.name, self.value, self.op = index, name, np.asarray(value), op
        self.inputs, self.params, self.named = inputs, dict(params), True
        self.shape, self.dtype = self.value.shape, self.value.dtype
        self.op_name = op.name if op is not None else ""
        self.kind = "op" if op is not None else "parameter"
        self.grad = None


class CallGraph:
    """The graph of a single call of an operation.

    Parameters
    ----------
    op : Op
    inputs : sequence of array
    params : mapping of name to anything
    """

    def __init__(self, op: Any, inputs: Sequence[Any], params: Mapping[str, Any]) -> None:
        names = op.names_of(len(inputs))
        leaves = [
            _CallNode(at, name, value, None, (), {}) for at, (name, value) in enumerate(zip(names, inputs, strict=True))
        ]
        result = op(*[leaf.value for leaf in leaves], *params.values())
        last = _CallNode(len(leaves), "y", result, op, tuple(range(len(leaves))), params)
        self.nodes: tuple[_CallNode, ...] = (*leaves, last)
        self.outputs = (last.index,)


def weighted_sum(op: Any, inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple[CallGraph, Any]:
    """Give the graph of one call whose result is weighted and summed to one number, and the weights."""
    from tinyattn.ops import REGISTRY

    graph = CallGraph(op, inputs, params)
    last = graph.nodes[-1]
    seed = np.random.default_rng(7).normal(size=last.shape)
    weights = _CallNode(last.index + 1, "g", seed, None, (), {})
    weights.kind = "input"
    product = _CallNode(last.index + 2, "p", last.value * seed, REGISTRY["multiply"], (last.index, weights.index), {})
    every = {"axis": tuple(range(len(last.shape))), "keepdims": False}
    total = _CallNode(last.index + 3, "L", np.sum(product.value), REGISTRY["sum"], (product.index,), every)
    graph.nodes = (*graph.nodes, weights, product, total)
    graph.outputs = (total.index,)
    return graph, seed


def op_formulas(op: Any, sample_shapes: Sequence[tuple[int, ...]], params: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Give an operation's formula and the cotangent of each of its inputs, in Unicode index notation.

    Parameters
    ----------
    op : Op
    sample_shapes : sequence of tuple of int
        Shapes of the inputs; they decide which letters there are.
    params : mapping of name to anything
        The parameters of the call.

    Returns
    -------
    formula : str
        ``y_ik = Σ_j a_ij b_jk``
    derivatives : list of str
        One for each input; where the index notation cannot express the operation, words that say so.

    Examples
    --------
    >>> from tinyattn.ops import REGISTRY
    >>> op_formulas(REGISTRY["softmax"], [(2, 3)], {"axis": 1, "keep": None})
    ('y_ia = softmax_a(x_ia)', ['x̄_ia = y_ia (ȳ_ia − Σ_b ȳ_ib y_ib)'])
    """
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(0.5, 1.5, shape) for shape in sample_shapes]
    return formulas_of_call(CallGraph(op, inputs, params))


def formulas_of_call(graph: CallGraph) -> tuple[str, list[str]]:
    """Give the formulas of a recorded call."""
    leaves = [node.index for node in graph.nodes if node.op is None]
    op = graph.nodes[-1].op
    shapes = tuple(graph.nodes[leaf].shape for leaf in leaves)
    definition = op.definition_text(shapes, graph.nodes[-1].params)
    try:
        derivation = Derivation(graph, leaves, seeded=True)
    except GraphError as reason:
        return definition, [str(reason).splitlines()[0] for _ in leaves]
    steps = {(step.phase, step.node): step for step in derivation.steps}
    backward = [text(steps["backward", leaf].layout("index")) for leaf in leaves]
    forward = [text(step.layout("index")) for step in derivation.steps if step.phase == "forward"]
    where = f" where {', '.join(forward[:-1])}" if len(forward) > 1 else ""
    return forward[-1] + where, backward
