"""One entry of a contribution, worked out: which upstream entries it comes from, and with which slopes.

The slopes are the engine's: its rule is asked with one upstream entry at a time set to 1.  So
*upstream times slope, added up, equals contribution* can be read number by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from viz import values

if TYPE_CHECKING:
    from tinyattn.graph import Graph

MOST_SIZE = 64
MOST_TERMS = 240
"""Beyond so many terms in all, only the largest entry is worked out."""


@dataclass(frozen=True, slots=True)
class Worked:
    """Slopes of one vector-Jacobian product.

    Attributes
    ----------
    entries : dict of int to list of (int, float)
        For entries of the contribution (counted row by row) the upstream entries and their slopes.
    chosen : int
        The entry that is shown first: the largest.
    diagonal : array or None
        The slopes as an array of the operand's shape, where entry i depends on entry i alone.
    """

    entries: dict[int, list[tuple[int, float]]]
    chosen: int
    diagonal: values.Array | None


def worked_out(graph: Graph, index: int, slot: int, contribution: values.Array) -> Worked | None:
    """Find the slopes of a product; None where the arrays are too large to be read entry by entry.

    Examples
    --------
    >>> import tinyattn as ta
    >>> x = ta.tensor([1.0, 2.0], requires_grad=True)
    >>> graph = ta.Graph.of(ta.sum(ta.exp(x)), gradients=True)
    >>> worked_out(graph, 1, 0, graph.contributions[-1].value).diagonal.round(3)
    array([2.718, 7.389])
    """
    node = graph.nodes[index]
    if not 0 < node.value.size <= MOST_SIZE or not 0 < contribution.size <= MOST_SIZE:
        return None
    slopes = _slopes(graph, index, slot)
    if slopes is None or slopes.shape != (node.value.size, contribution.size):
        return None
    shape, magnitude = contribution.shape, np.abs(np.nan_to_num(contribution.ravel().astype(float)))
    chosen = int(np.argmax(magnitude))
    each = {
        entry: [(int(out), float(slopes[out, entry])) for out in np.flatnonzero(slopes[:, entry])]
        for entry in range(contribution.size)
    }
    if sum(map(len, each.values())) > MOST_TERMS:
        each = {chosen: each[chosen]}
    square = node.shape == shape and contribution.size > 0
    alone = square and not np.any(slopes - np.diag(np.diagonal(slopes)))
    return Worked(each, chosen, np.diagonal(slopes).reshape(shape) if alone else None)


def _slopes(graph: Graph, index: int, slot: int) -> values.Array | None:
    """The local Jacobian, (entries of the result, entries of the operand), asked of the engine's rule."""
    node = graph.nodes[index]
    if node.op is None:
        return None
    inputs = [graph.nodes[source].value for source in node.inputs]
    params = tuple(node.params.values())
    saved = node.op.forward(*inputs, *params)[1] if node.op.saves else None
    wanted = [at == slot for at in range(len(inputs))]
    rows = []
    for out in range(node.value.size):
        g = np.zeros(node.value.size, node.dtype)
        g[out] = 1
        pulled = node.op.pull(g.reshape(node.shape), node.value, saved, inputs, params, wanted)[slot]
        if pulled is None:
            return None
        rows.append(np.asarray(pulled).ravel())
    return np.array(rows)
