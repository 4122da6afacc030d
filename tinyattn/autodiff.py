"""Backward: walk a recorded graph from a result to its leaves.

There is one loop, `walk`, and it knows no operation: it asks each op for its vector-Jacobian products,
checks every contract (type, shape, dtype) and adds contributions up.  Given arrays, the rules compute numbers;
given tensors, the same rules are recorded, so a gradient can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

import numpy as np

from tinyattn import explain
from tinyattn import functions as ta
from tinyattn.arguments import as_array, constant
from tinyattn.kernels.small import all_finite, owned
from tinyattn.mode import mode, switched, switches
from tinyattn.ops.helpers import carefully
from tinyattn.quick import check_contract, quick_walk
from tinyattn.repeated import repeated_walk
from tinyattn.tensor import Tensor, latest, tensor

Observer = Callable[[Tensor, int, Any], None]


def reachable(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Everything that the outputs depend on and that needs a gradient, newest first.

    An op's inputs are always older than its result, so sorting by creation number is a topological order.
    """
    seen = set(outputs)
    waiting = list(seen)
    while waiting:
        node = waiting.pop()
        for x in node.inputs:
            if x.requires_grad:
                if x.order > node.order:
                    raise explain.stale(x, node)
                if x not in seen:
                    seen.add(x)
                    waiting.append(x)
    return sorted(seen, key=attrgetter("order"), reverse=True)


@np.errstate(all="ignore")  # an infinite slope is no news here; what comes out of it is looked at below
def propagate(
    starts: Sequence[tuple[Tensor, Any]],
    targets: Sequence[Tensor] | None = None,
    create_graph: bool = False,
    observe: Observer | None = None,
) -> dict[Tensor, Any]:
    """Run the backward pass and give the cotangents of the targets, or of all leaves.

    Parameters
    ----------
    starts : pairs of a result and its cotangent
        Where to start, and with what (arrays; tensors with ``create_graph``).
    targets : sequence of Tensor, optional
        Whose cotangents are wanted; leaves that require a gradient by default.
    create_graph : bool
        Whether the rules run on tensors, so that the result can be differentiated again.
    observe : callable, optional
        ``observe(node, slot, contribution)`` sees every vector-Jacobian product as it is made.

    Returns
    -------
    dict
        Cotangents by tensor; a target that the outputs do not depend on is missing.
    """
    observe = observe or (mode.watch_backward if switches.set else None)
    if targets is None and observe is None and not create_graph:
        found, oldest, finite = repeated_walk(starts)
        if oldest < latest.assigned:
            reachable([y for y, _ in starts])  # refuses a leaf that was assigned since it was used
        if finite:
            return found
    nodes = reachable([y for y, _ in starts])
    on_the_way = None if targets is None else _on_the_way(nodes, set(targets))
    if targets is not None and on_the_way is not None and observe is None and not create_graph:
        some = len(on_the_way) < len(nodes) or any(x.op is not None for x in targets)
        found = walk(starts, targets, on_the_way) if some else quick_walk(starts)[0]
        if all_finite(found.values()):
            return found
    with carefully():
        return walk(starts, targets or (), on_the_way, create_graph, observe)


def walk(
    starts: Sequence[tuple[Tensor, Any]],
    targets: Sequence[Tensor] = (),
    on_the_way: Collection[Tensor] | None = None,
    create_graph: bool = False,
    observe: Observer | None = None,
    ends: Collection[Tensor] = (),
) -> dict[Tensor, Any]:
    """One backward pass: newest first, each node passes on to its inputs what has come together for it.

    An op's inputs are older than its result, so when a node's turn comes nothing more can arrive there.
    It goes no further than ``ends``.  `tinyattn.quick` has the fast form of this, for the commonest case.
    """
    cotangents: dict[Tensor, Any] = {}
    kept = set(targets)
    waiting: list[tuple[int, Tensor]] = []  # a heap: the newest result is the first to go

    def arrive(x: Tensor, g: Any) -> None:
        if x in cotangents:
            cotangents[x] = cotangents[x] + g
            return
        cotangents[x] = g
        if x.op is not None and x not in ends:
            heappush(waiting, (-x.order, x))

    for output, seed in starts:
        arrive(output, seed)
    while waiting:
        node = heappop(waiting)[1]
        g = cotangents[node]
        if node not in kept and (node.notes is None or node.notes.grad is None):
            del cotangents[node]
        inputs = node.inputs
        made = _contributions(node, inputs, g, on_the_way, create_graph)
        for slot, (x, contribution) in enumerate(zip(inputs, made, strict=True)):
            if contribution is not None:
                check_contract(node, slot, x, contribution)
                if observe is not None:
                    observe(node, slot, contribution)
                arrive(x, contribution)
    return cotangents


def _contributions(
    node: Any, inputs: tuple[Tensor, ...], g: Any, on_the_way: Collection[Tensor] | None, create_graph: bool
) -> list[Any]:
    """The vector-Jacobian products of a node: one for each input, None where none is wanted."""
    wanted = [x.requires_grad if on_the_way is None else x in on_the_way for x in inputs]
    try:
        if create_graph:
            made = _pull_recorded(node, g, wanted)
        else:
            made = node.op.pull(g, node._value, node.saved, [x._value for x in inputs], node.params, wanted)
        return [contribution if want else None for want, contribution in zip(wanted, made, strict=True)]
    except Exception as error:
        explain.note_rule(node, error)
        raise


def _on_the_way(nodes: list[Tensor], targets: set[Tensor]) -> set[Tensor]:
    """Only the nodes that lie between the outputs and a target."""
    depends: set[Tensor] = set()
    for node in reversed(nodes):  # oldest first, so inputs come before results
        if node in targets or any(x in depends for x in node.inputs):
            depends.add(node)
    return depends


def _pull_recorded(node: Any, g: Any, wanted: list[bool]) -> Any:
    """The vector-Jacobian products of one node, recorded, so that they can be differentiated again.

    The rule of a fused op serves numbers only; going through its composed form gives the same, recorded.  It ends at
    the inputs, also where one depends on another: what lies behind them is for the walk that this is a part of.
    """
    place = node.site or (node.code, node.lasti)
    with switched(rule_of=place if place[0] is not None else None, scope=("backward", *node.scope), recording=True):
        if node.op.composed is None:
            return node.op.pull(g, node, None, list(node.inputs), node.params, wanted)
        ends = {x for x, want in zip(node.inputs, wanted, strict=True) if want}
        result = node.op.composed(*node.inputs, *node.params)
        between = _on_the_way(reachable([result]), ends)
        found = walk([(result, g)], (), between, create_graph=True, observe=mode.watch_backward, ends=ends)
        return [found.pop(x, None) for x in node.inputs]  # the same tensor twice: its whole cotangent counts once


# -- from results to gradients ----------------------------------------------------------------------------------------


_ONE = {np.dtype(kind): kind(1) for kind in (np.float16, np.float32, np.float64)}


def seed_for(output: Tensor, seed: Any, name: str) -> Any:
    """The cotangent to start from, checked; 1 for a single number."""
    if not output.requires_grad:
        raise explain.nothing_to_differentiate(output, name)
    if seed is None:
        if output.shape and output.size != 1:
            raise explain.seed_needed(output, name)
        return np.ones(output.shape, output.dtype) if output.shape else _ONE.get(output.dtype) or output.dtype.type(1)
    array = np.array(as_array(seed, None, name))
    if array.shape != output.shape:
        raise explain.seed_shape(output, name, array.shape)
    return array.astype(output.dtype)[()]


def backward(output: Tensor, seed: Any = None) -> None:
    """Add the gradient of ``output`` to ``.grad`` of every leaf it depends on; see `Tensor.backward`."""
    for x in list(found := propagate([(output, seed_for(output, seed, "backward"))])):
        notes, g = x.notes or x.own_notes(), found.pop(x)
        if x.op is None and notes.grad is not None:
            notes.grad = np.add(notes.grad, g)
        else:  # results, kept by retain_grad, never carry sums over
            notes.grad = owned(g)


def gradients_of(output: Tensor, wrt: Sequence[Tensor], seed: Any = None, create_graph: bool = False) -> list[Tensor]:
    """Gradients to several tensors; zeros where the output does not depend on one."""
    if not all(x.requires_grad for x in wrt):
        raise explain.not_recorded()
    start: Any = seed_for(output, seed, "grad")
    if create_graph:
        start = ta.astype(seed, output.dtype) if isinstance(seed, Tensor) else constant(start)
    found = propagate([(output, start)], wrt, create_graph)
    cotangents = (found[x] if x in found else np.zeros(x.shape, x.dtype) for x in wrt)
    return [g if isinstance(g, Tensor) else tensor(g) for g in cotangents]
