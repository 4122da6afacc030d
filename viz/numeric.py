"""The numeric derivative beside the engine's: the recorded forward pass run again with one entry moved.

Only forwards are called, never a rule, so that an error in a rule shows.  Casts are left out and numbers are
double, because a difference quotient needs the digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from viz import values

if TYPE_CHECKING:
    from tinyattn.graph import Graph

MOST_ENTRIES = 64
"""So many entries of a leaf are moved; of a larger one, those with the largest gradients."""

STEP = 6e-6
"""About the third root of the machine's precision: there the two errors of a central difference meet."""

TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Comparison:
    """The engine's gradient beside the numeric one.

    Attributes
    ----------
    numeric : array
        Of the gradient's shape; nan where no entry was moved.
    moved, size : int
        How many entries were moved, and how many there are.
    largest : float
        The largest difference.
    agrees : bool
    """

    numeric: values.Array
    moved: int
    size: int
    largest: float
    agrees: bool


def compare(graph: Graph, leaf: int, most: int = MOST_ENTRIES) -> Comparison:
    """Compare the gradient of a leaf with central differences of the recorded computation.

    Parameters
    ----------
    graph : Graph
        With gradients.
    leaf : int
    most : int
        How many entries are moved.

    Examples
    --------
    >>> import tinyattn as ta
    >>> x = ta.tensor([1.0, 2.0], requires_grad=True)
    >>> graph = ta.Graph.of(ta.sum(x * x * x), gradients=True)
    >>> compare(graph, 0).numeric.round(6)
    array([ 3., 12.])
    """
    gradient = np.asarray(graph.nodes[leaf].grad, dtype=np.float64)
    start = np.asarray(graph.nodes[leaf].value, dtype=np.float64)
    order = np.argsort(-np.abs(gradient), axis=None, kind="stable")[:most]
    behind = _behind(graph, leaf)
    known = [np.asarray(node.value, np.float64) if node.dtype.kind == "f" else node.value for node in graph.nodes]
    numeric = np.full(start.shape, np.nan)
    if not np.isfinite(start).all():
        return Comparison(numeric, 0, start.size, 0.0, False)
    for place in order:
        at = np.unravel_index(int(place), start.shape)
        step = STEP * max(1.0, abs(float(start[at])))
        ends = []
        for side in (step, -step):
            moved = start.copy()
            moved[at] += side
            ends.append(_total(graph, behind, known, leaf, moved))
        numeric[at] = (ends[0] - ends[1]) / (2 * step)
    difference = np.abs(numeric - gradient)[~np.isnan(numeric)]
    largest = float(difference.max(initial=0.0))
    single = graph.nodes[leaf].dtype != np.float64
    scale = max(1.0, float(np.abs(gradient).max(initial=0.0)))
    allowed = (1e-3 if single else TOLERANCE) * scale
    agrees = bool(np.isfinite(numeric.reshape(-1)[order]).all()) and largest <= allowed
    return Comparison(numeric, len(order), start.size, largest, agrees)


def _behind(graph: Graph, leaf: int) -> list[int]:
    """The nodes that change when a leaf changes, in order."""
    changed = {leaf}
    for node in graph.nodes:
        if any(source in changed for source in node.inputs):
            changed.add(node.index)
    return sorted(changed - {leaf})


def _total(
    graph: Graph, behind: Sequence[int], known: Sequence[values.Array], leaf: int, moved: values.Array
) -> float:
    """The sum of all outputs with the leaf at another place."""
    fresh: dict[int, values.Array] = {leaf: moved}
    for index in behind:
        node = graph.nodes[index]
        inputs = [fresh.get(source, known[source]) for source in node.inputs]
        if node.op is None:
            continue
        fresh[index] = inputs[0] if node.hidden else np.asarray(node.op(*inputs, *node.params.values()))
    return float(sum(np.sum(fresh.get(index, known[index])) for index in graph.outputs))
