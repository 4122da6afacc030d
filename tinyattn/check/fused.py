"""A fused operation held against its composed form, entry by entry, within what rounding allows both.

Its fast code may serve floats only, in pieces and in place; then the exact check runs the composed form in its stead,
and this is what holds the two together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.check.blame import Fault
from tinyattn.check.bounded import Bounded
from tinyattn.check.bounding import bounded_run
from tinyattn.check.replay import composed_graph

LARGEST = 200_000  # entries of a value that is still looked at
ROOM = 8.0  # times the bound of the composed form: the fused one rounds in another order


def fused_faults(graph: Any, rng: np.random.Generator) -> list[Fault]:
    """The fused nodes that differ from their composed form, the one nearest the result first."""
    found = []
    for node in reversed(graph.nodes):
        if node.op is None or node.op.composed is None or not node.requires_grad or node.value.size > LARGEST:
            continue
        try:
            fault = _fault_of(graph, node, rng)
        except Exception:  # one of the two does not run here: differences judge it
            continue
        if fault is not None:
            found.append(fault)
    return found


def _fault_of(graph: Any, node: Any, rng: np.random.Generator) -> Fault | None:
    inputs = [graph.nodes[source].value for source in node.inputs]
    params = tuple(node.params.values())
    wanted = [graph.nodes[source].requires_grad for source in node.inputs]
    g = np.asarray(rng.normal(size=node.shape), dtype=node.dtype)
    inner, places = composed_graph(graph, node)
    with np.errstate(all="ignore"):
        run = bounded_run(inner, wide=False)
        totals = run.backward({inner.outputs[0]: Bounded.exact(g)})
        given = [x[()] if x.shape == () else x for x in inputs]
        result = node.op.forward(*given, *params)
        y, saved = result if node.op.saves else (result, None)
        made = node.op.pull(g[()], y, saved, given, params, wanted)
    if run.cut:
        return None
    for slot, (want, c) in enumerate(zip(wanted, made, strict=True)):
        meant = totals.get(places.get(slot, -1))
        if want and c is not None and meant is not None and np.shape(c) == meant.shape:
            entry = _apart(np.asarray(c), meant)
            if entry is not None:
                fault = Fault(node, slot, g)
                fault.entry, fault.got = entry, np.asarray(c)
                fault.found, fault.expected = float(fault.got[entry]), float(meant.v[entry])
                return fault
    return None


def _apart(got: np.ndarray, meant: Bounded) -> tuple[int, ...] | None:
    """The entry that is farthest off, of those that are off by more than rounding."""
    with np.errstate(all="ignore"):
        gap = np.abs(got.astype(np.float64) - meant.v)
        over = np.where(np.isfinite(meant.e) & np.isfinite(meant.v), gap - ROOM * meant.e, -1.0)
    if not over.size or not (np.isnan(over) | (over > 0)).any():
        return None
    at = int(np.argmax(np.where(np.isnan(over), np.inf, over)))
    return tuple(int(i) for i in np.unravel_index(at, over.shape))
