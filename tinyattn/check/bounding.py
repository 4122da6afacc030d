"""A recorded graph run on numbers that carry bounds of their own rounding error."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.check.bounded import Bounded
from tinyattn.check.replay import Replay


def bounded_run(graph: Any, wide: bool) -> Replay:
    """The forwards of a graph on numbers that carry bounds; ``wide`` in float64 whatever was recorded."""

    def exact(value: Any) -> Bounded:
        array = np.asarray(value)
        array = array.astype(np.float64) if wide and array.dtype.kind == "f" else array
        return Bounded.exact(array)  # type: ignore[no-any-return]

    def leaf(node: Any) -> Bounded:
        if node.op is None:
            return exact(node.value)
        value = exact(node.value)  # a node that does not run on these numbers: taken as it is, with a wide bound
        return Bounded(value.v, 1e3 * float(np.finfo(value.v.dtype).eps) * np.abs(value.v))

    replay = Replay(
        graph,
        lambda x: x if isinstance(x, Bounded) else exact(x) if isinstance(x, np.ndarray) else Bounded.lift(x),
        leaf,
    )
    replay.forward()
    return replay


def pulled_plainly(replay: Replay, index: int, g: Any) -> list[Any]:
    """A rule that does not run on bounded numbers, on plain ones, with a wide bound."""
    node = replay.graph.nodes[index]
    inputs = [np.array(replay.graph.nodes[source].value)[()] for source in node.inputs]
    params = tuple(node.params.values())
    wanted = [replay.graph.nodes[source].requires_grad for source in node.inputs]
    result = node.op.forward(*inputs, *params)
    y, saved = result if node.op.saves else (result, None)
    made = node.op.pull(np.array(g.v, node.dtype), y, saved, inputs, params, wanted)
    share = float(np.max(g.e / np.maximum(np.abs(g.v), 1e-300), initial=0.0)) if g.v.size else 0.0
    off = min(share, 1.0) + 1e3 * float(np.finfo(node.dtype).eps)
    return [
        None
        if c is None or not want
        else Bounded(np.asarray(c), off * float(np.abs(c).max(initial=0.0)) * np.ones(np.shape(c)))
        for c, want in zip(made, wanted, strict=True)
    ]
