"""Which path was forgotten: the forward traced step by step, and its gradient with one step left out.

A gradient of layer norm that treats the variance as a constant is exactly the right gradient with the path through
the variance cut.  So the forward is recorded in small steps, each step is cut in turn, and what remains is held
against the wrong numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinyattn.check.replay import Replay
from tinyattn.errors import GradientLost

LONGEST = 60  # steps of a forward that is still looked at
SHORT = 16  # of which two are cut at once


def candidates_by_path(scene: Any) -> Iterator[tuple[str, Any, str]]:
    """Gradients with one step detached, and with one of several contributions kept."""
    graph = traced(scene)
    if graph is None:
        return
    leaf = next((node.index for node in graph.nodes if node.name == "the input"), None)
    if leaf is None:
        return
    replay = Replay(graph, np.asarray, lambda node: node.value)
    replay.forward()
    for node in graph.nodes:
        if node.op is not None and node.requires_grad and node.index not in graph.outputs:
            found = _gradient(replay, scene.g, leaf, dropped=lambda n, slot, at=node.index: n == at)
            where = f"{node.name} (a {node.op_name})" if node.name != node.op_name else node.op_name
            yield "detached branch", found, f"the path through {where} was left out: it was treated as a constant"
    yield from _two_steps(replay, scene.g, leaf)
    for node in graph.nodes:
        readers = graph.consumers(node.index)
        if len(readers) > 1 and node.requires_grad:
            for reader in readers:
                found = _gradient(
                    replay,
                    scene.g,
                    leaf,
                    dropped=lambda n, slot, at=node.index, kept=reader: (
                        (n, slot) != kept and graph.nodes[n].inputs[slot] == at
                    ),
                )
                what = "the input" if node.index == leaf else node.name
                yield (
                    "overwritten instead of accumulated",
                    found,
                    f"{what} is used {len(readers)} times, but only one contribution counts; "
                    "contributions are added (+=)",
                )


def _two_steps(replay: Replay, g: np.ndarray, leaf: int) -> Iterator[tuple[str, Any, str]]:
    """Two steps cut at once, in a short forward: mean and variance of layer norm, for instance."""
    graph = replay.graph
    steps = [
        node for node in graph.nodes if node.op is not None and node.requires_grad and node.index not in graph.outputs
    ]
    if len(steps) > SHORT:
        return
    for at, first in enumerate(steps):
        for second in steps[at + 1 :]:
            found = _gradient(replay, g, leaf, dropped=lambda n, slot, both=(first.index, second.index): n in both)
            yield (
                "detached branch",
                found,
                f"the paths through {first.name} and {second.name} were left out: they were treated as constants",
            )


def traced(scene: Any) -> Any:
    """The forward in small steps, recorded on tensors; None where it does not run on them."""
    from tinyattn import Graph, tensor

    leaves = [
        tensor(x, requires_grad=x.dtype.kind == "f" and slot == scene.slot) for slot, x in enumerate(scene.inputs)
    ]
    forward = scene.op.composed or scene.op.forward
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", GradientLost)  # a forward that leaves the graph cannot be looked into
            result = forward(*leaves, *scene.params.values())
        result = result[0] if scene.op.saves and scene.op.composed is None else result
        graph = Graph.of(result, names={"the input": leaves[scene.slot]}, variables={})
    except Exception:
        return None
    return graph if len(graph) <= LONGEST and graph.nodes[graph.outputs[0]].requires_grad else None


def _gradient(replay: Replay, g: np.ndarray, leaf: int, dropped: Any) -> np.ndarray:
    """The gradient of the leaf without the contributions that are dropped."""
    graph = replay.graph
    totals: dict[int, Any] = {graph.outputs[0]: g}
    for node in reversed(graph.nodes):
        if node.op is None or not node.requires_grad or node.index not in totals:
            continue
        for slot, c in enumerate(replay.pull(node.index, totals[node.index])):
            if c is not None and not dropped(node.index, slot):
                source = node.inputs[slot]
                totals[source] = totals[source] + c if source in totals else c
    return np.asarray(totals.get(leaf, np.zeros(graph.nodes[leaf].shape)))
