"""Backward: walk a recorded graph from a result to its leaves, and what can be built from that.

There is one loop, `propagate`, and it knows no operation: it asks each op for its vector-Jacobian products,
checks every contract (type, shape, dtype) and adds contributions up.  Given arrays, the rules compute numbers;
given tensors, the same rules are recorded, so a gradient can be differentiated again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import attrgetter
from typing import Any, overload

import numpy as np

from tinyattn import explain
from tinyattn import functions as ta
from tinyattn.arguments import constant, operand, values_of
from tinyattn.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from tinyattn.mode import mode, switched
from tinyattn.ops.helpers import carefully
from tinyattn.tensor import Tensor, tensor

ndarray = np.ndarray
_by_creation = attrgetter("order")
Observer = Callable[[Tensor, int, Any], None]


def reachable(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Everything that the outputs depend on and that needs a gradient, newest first.

    An op's inputs are always older than its result, so sorting by creation number is a topological order.
    """
    seen = set(outputs)
    waiting = list(seen)
    while waiting:
        node = waiting.pop()
        order = node.order
        for x in node.inputs:
            if x.requires_grad and x not in seen:
                if x.order > order:
                    raise explain.stale(x, node)
                seen.add(x)
                waiting.append(x)
    return sorted(seen, key=_by_creation, reverse=True)


def propagate(
    outputs: Sequence[Tensor],
    seeds: Sequence[Any],
    targets: Sequence[Tensor] | None = None,
    create_graph: bool = False,
    observe: Observer | None = None,
) -> dict[Tensor, Any]:
    """Run the backward pass and give the cotangents of the targets, or of all leaves.

    Parameters
    ----------
    outputs, seeds : sequences of the same length
        Where to start, and with which cotangents (arrays; tensors with ``create_graph``).
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
    observe = observe or mode.watch_backward
    nodes, on_the_way = reachable(outputs), None
    if targets is not None:
        nodes = _on_the_way(nodes, set(targets))
        on_the_way = set(nodes)
    start: dict[Tensor, Any] = {}
    for output, seed in zip(outputs, seeds, strict=True):
        start[output] = start[output] + seed if output in start else seed
    kept = set(targets or ())
    with np.errstate(all="ignore"):  # an infinite slope is no news here; what came out of it is looked at below
        if observe is None and not create_graph:
            found = _walk(nodes, dict(start), kept, on_the_way, False, None)
            if all(_finite(g) for g in found.values()):
                return found
        with carefully():
            return _walk(nodes, start, kept, on_the_way, create_graph, observe)


def _finite(g: Any) -> bool:
    """Whether all numbers are finite; a product with itself costs a third of asking each of them."""
    if g.__class__ is not ndarray:
        return math.isfinite(g)
    flat = g.ravel()
    return math.isfinite(flat.dot(flat))


def _walk(
    nodes: list[Tensor], cotangents: dict[Tensor, Any], kept: set[Tensor], on_the_way: set[Tensor] | None,
    create_graph: bool, observe: Observer | None,
) -> dict[Tensor, Any]:
    """One backward pass: newest first, each node passes on to its inputs what has come together for it."""
    simple = on_the_way is None and not create_graph and observe is None
    take = cotangents.pop
    for node in nodes:
        op = node.op
        if op is None or (g := take(node, None)) is None:
            continue
        if (node.notes is not None or kept) and (node in kept or node._grad is not None):
            cotangents[node] = g
        if simple and op.plain == 2:  # the two commonest cases without a loop: half the time of a backward pass
            (a, b), (left, right) = node.inputs, op.vjps
            x, z = a._value, b._value
            if a.requires_grad:
                c = left(g, node._value, x, z)
                kind = c.__class__
                if kind is not x.__class__ or (kind is ndarray and (c.shape != x.shape or c.dtype is not x.dtype)):
                    _check_contract(node, 0, c)
                cotangents[a] = cotangents[a] + c if a in cotangents else c
            if b.requires_grad:
                c = right(g, node._value, x, z)
                kind = c.__class__
                if kind is not z.__class__ or (kind is ndarray and (c.shape != z.shape or c.dtype is not z.dtype)):
                    _check_contract(node, 1, c)
                cotangents[b] = cotangents[b] + c if b in cotangents else c
        elif simple and op.plain == 1:
            a = node.inputs[0]
            x = a._value
            c = op.vjps[0](g, node._value, x, *node.params)
            kind = c.__class__
            if kind is not x.__class__ or (kind is ndarray and (c.shape != x.shape or c.dtype is not x.dtype)):
                _check_contract(node, 0, c)
            cotangents[a] = cotangents[a] + c if a in cotangents else c
        else:
            for slot, c in _contributions(node, g, on_the_way, create_graph):
                _check_contract(node, slot, c)
                if observe is not None:
                    observe(node, slot, c)
                a = node.inputs[slot]
                cotangents[a] = cotangents[a] + c if a in cotangents else c
    return cotangents


def _contributions(node: Any, g: Any, on_the_way: set[Tensor] | None, create_graph: bool) -> list[tuple[int, Any]]:
    """The vector-Jacobian products of a node, each with the slot of the input that it is for."""
    wanted = [x.requires_grad if on_the_way is None else x in on_the_way for x in node.inputs]
    if create_graph:
        made = _pull_recorded(node, g, wanted)
    else:
        made = node.op.pull(g, node._value, node.saved, [x._value for x in node.inputs], node.params, wanted)
    pairs = enumerate(zip(wanted, made, strict=True))
    return [(slot, contribution) for slot, (want, contribution) in pairs if want and contribution is not None]


def _check_contract(node: Tensor, slot: int, contribution: Any) -> None:
    """A cotangent has the shape and the dtype of what it belongs to, whatever the rule."""
    x, shape, dtype = node.inputs[slot], getattr(contribution, "shape", None), getattr(contribution, "dtype", None)
    if shape != x.shape or dtype != x.dtype:
        raise explain.wrong_rule(node, slot, contribution)


def _on_the_way(nodes: list[Tensor], targets: set[Tensor]) -> list[Tensor]:
    """Only the nodes that lie between the outputs and a target."""
    depends = set()
    for node in reversed(nodes):  # oldest first, so inputs come before results
        if node in targets or any(x in depends for x in node.inputs):
            depends.add(node)
    return [node for node in nodes if node in depends]


def _pull_recorded(node: Any, g: Any, wanted: list[bool]) -> Any:
    """The vector-Jacobian products of one node, recorded, so that they can be differentiated again.

    The rule of a fused op serves numbers only; going through its composed form gives the same, recorded.
    """
    place = node.site or (node.code, node.lasti)
    with switched(rule_of=place if place[0] is not None else None, scope=("backward", *node.scope), recording=True):
        if node.op.composed is None:
            return node.op.pull(g, node, None, list(node.inputs), node.params, wanted)
        targets = [x for x, want in zip(node.inputs, wanted, strict=True) if want]
        found = propagate([node.op.composed(*node.inputs, *node.params)], [g], targets, create_graph=True)
        return [found.pop(x, None) for x in node.inputs]  # the same tensor twice: its whole cotangent counts once


# -- what learners call ------------------------------------------------------------------------------------------


def seed_for(output: Tensor, seed: Any, name: str) -> Any:
    """The cotangent to start from, checked; 1 for a single number."""
    if not output.requires_grad:
        raise explain.nothing_to_differentiate(output, name)
    if seed is None:
        if output.size != 1:
            raise explain.seed_needed(output, name)
        return output.dtype.type(1) if output.shape == () else np.ones(output.shape, output.dtype)
    array = np.array(values_of(seed))
    if array.shape != output.shape:
        raise explain.seed_shape(output, name, array.shape)
    if array.dtype.kind not in "fiub":
        raise DTypeError(f"{name}: the seed has dtype {array.dtype}; numbers are needed.")
    return array.astype(output.dtype)[()]


def backward(output: Tensor, seed: Any = None) -> None:
    """Add the gradient of ``output`` to ``.grad`` of every leaf it depends on; see `Tensor.backward`."""
    start = seed_for(output, seed, "backward")
    for x, g in propagate([output], [start]).items():
        notes = x.own_notes()
        if x.op is None and notes.grad is not None:
            notes.grad = np.add(notes.grad, g)
        else:  # results, kept by retain_grad, never carry sums over
            notes.grad = g.copy() if g.__class__ is ndarray else np.array(g)


@overload
def grad(target: Tensor, wrt: Tensor, *, seed: Any = ..., create_graph: bool = ...) -> Tensor: ...
@overload
def grad(target: Tensor, wrt: Sequence[Tensor], *, seed: Any = ..., create_graph: bool = ...) -> list[Tensor]: ...
@overload
def grad(
    target: Callable[..., Tensor], wrt: int | tuple[int, ...] = ..., *, create_graph: bool = ...
) -> Callable[..., Any]: ...


def grad(target: Any, wrt: Any = 0, *, seed: Any = None, create_graph: bool = False) -> Any:
    """The gradient of a recorded result, or of a function.

    Parameters
    ----------
    target : Tensor or callable
        A result, as in ``grad(loss, [W, b])``; or a function of tensors, as in ``grad(f)(x)``.
    wrt : Tensor or sequence of Tensor; for a function the number of the argument, or a tuple of numbers
        What to differentiate with respect to.  Any tensor of the graph may be named, not only leaves.
    seed : array_like, optional
        The cotangent to start from, for a result that is not a single number.
    create_graph : bool
        Whether the gradient can be differentiated again.  Inside a function given to `grad`, that is so by itself.

    Returns
    -------
    Tensor or list of Tensor, shapes of ``wrt``
        No ``.grad`` is touched.

    Examples
    --------
    >>> import tinyattn as ta
    >>> cube = lambda x: x ** 3
    >>> float(ta.grad(cube)(2.0)), float(ta.grad(ta.grad(cube))(2.0))
    (12.0, 12.0)
    >>> w = ta.tensor([1.0, 2.0], requires_grad=True)
    >>> ta.grad((w * w).sum(), w)
    tensor([2., 4.], shape=(2,))
    """
    if isinstance(target, Tensor):
        single = isinstance(wrt, Tensor)
        wanted = [wrt] if single else wrt
        if not isinstance(wanted, (list, tuple)) or not all(isinstance(x, Tensor) for x in wanted):
            raise explain.not_tensors()
        gradients = gradients_of(target, wanted, seed, create_graph)
        return gradients[0] if single else gradients
    if not callable(target):
        raise ArgumentTypeError(f"grad: a tensor or a function is needed, not a {type(target).__name__}.")

    def gradient(*args: Any, **kwargs: Any) -> Any:
        return value_and_grad(target, wrt, create_graph=create_graph)(*args, **kwargs)[1]

    return gradient


def gradients_of(output: Tensor, wrt: Sequence[Tensor], seed: Any = None, create_graph: bool = False) -> list[Tensor]:
    """Gradients to several tensors; zeros where the output does not depend on one."""
    if not all(x.requires_grad for x in wrt):
        raise explain.not_recorded()
    start: Any = seed_for(output, seed, "grad")
    if create_graph:
        start = ta.astype(seed, output.dtype) if isinstance(seed, Tensor) else constant(start)
    found = propagate([output], [start], wrt, create_graph)
    cotangents = [found[x] if x in found else np.zeros(x.shape, x.dtype) for x in wrt]
    return [g if isinstance(g, Tensor) else tensor(g) for g in cotangents]


def _slopes(y: Tensor, fresh: Sequence[Tensor], seed: Any = None, record: bool = False) -> list[Tensor]:
    """Gradients to the arguments of a function; all zeros when the result does not depend on them."""
    return gradients_of(y, fresh, seed, record) if y.requires_grad else [_zeros_like(x) for x in fresh]


def _zeros_like(x: Tensor) -> Tensor:
    return tensor(np.zeros(x.shape, x.dtype))


def _recording() -> AbstractContextManager[None]:
    """What was asked for inside `no_grad` is still a gradient, so what it needs is recorded there too."""
    return nullcontext() if mode.recording else switched(recording=True)


def _run(
    name: str, f: Callable[..., Any], args: Sequence[Any], argnums: Sequence[int], kwargs: dict[str, Any] | None = None
) -> tuple[Tensor, list[Tensor], bool]:
    """Call ``f`` with fresh tensors in the places to differentiate.

    Gives the result, the fresh tensors, and whether something outside differentiates too: then this gradient must
    be recorded.
    """
    recorded_outside = mode.recording
    with _recording():
        values, fresh = _traced(name, args, argnums, recorded_outside)
        y = f(*values, **(kwargs or {}))
    if not isinstance(y, Tensor):
        raise explain.not_a_tensor_result(y, f, name)
    return y, fresh, recorded_outside and _watched(y, fresh)


def _traced(name: str, args: Sequence[Any], argnums: Sequence[int], nested: bool) -> tuple[list[Any], list[Tensor]]:
    """Arguments with fresh tensors in the places to differentiate.

    A tensor that already requires a gradient is multiplied by 1: the inner gradient stops at the
    copy, the outer one goes on, and the two cannot be confused.
    """
    values = list(args)
    for n in argnums:
        if not -len(args) <= n < len(args):
            raise ArgumentError(f"{name}: argument {n} is to be differentiated, but only {len(args)} were given.")
        x = operand(args[n], name)
        array = x.data if x.dtype.kind == "f" else x.data.astype(float)
        values[n] = x * 1 if x.requires_grad and nested else tensor(array, requires_grad=True)
    return values, [values[n] for n in argnums]


def _watched(y: Tensor, fresh: Sequence[Tensor]) -> bool:
    """Whether something older than the call is behind a result: an argument's past, or what ``f`` closes over."""
    start = min((x.order for x in fresh), default=0)
    behind = reachable([y]) if y.requires_grad else []
    return any(x.op is not None for x in fresh) or any(x.op is None and x.order < start for x in behind)


def value_and_grad(
    f: Callable[..., Tensor], argnums: int | tuple[int, ...] = 0, *, create_graph: bool = False
) -> Callable[..., Any]:
    """A function that gives the value of ``f`` and its gradient.

    Parameters
    ----------
    f : callable
        Takes tensors (or arrays, which become tensors) and returns one number as a tensor.
    argnums : int or tuple of int
        Which arguments to differentiate.
    create_graph : bool
        Whether the gradient can be differentiated again.  Inside another transform, that is so by itself.

    Returns
    -------
    callable
        Called as ``f`` is; gives a pair of value and gradient, of several gradients for several arguments.

    Examples
    --------
    >>> import tinyattn as ta
    >>> value, slope = ta.value_and_grad(lambda x: x * x)(3.0)
    >>> float(value), float(slope)
    (9.0, 6.0)
    """
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)

    def both(*args: Any, **kwargs: Any) -> Any:
        y, fresh, nested = _run("grad", f, args, numbers, kwargs)
        record = nested or create_graph
        slopes, value = _slopes(y, fresh, None, record), y if record else y.detach()
        return value, slopes[0] if isinstance(argnums, int) else tuple(slopes)

    return both


def vjp(f: Callable[..., Tensor], *primals: Any) -> tuple[Tensor, Callable[[Any], tuple[Tensor, ...]]]:
    """The value of ``f``, and the function from a cotangent of the result to cotangents of the arguments.

    Parameters
    ----------
    f : callable
        Takes tensors and returns one tensor, shape (m...).
    *primals : array_like, any shapes
        The arguments.

    Returns
    -------
    Tensor, shape (m...); callable
        The callable takes a cotangent, shape (m...), and gives a tuple with the shapes of the primals.

    Examples
    --------
    >>> import tinyattn as ta
    >>> y, pull = ta.vjp(lambda x: x * x, [1.0, 2.0])
    >>> pull([1.0, 10.0])
    (tensor([ 2., 40.], shape=(2,)),)
    """
    y, fresh, nested = _run("vjp", f, primals, range(len(primals)))

    def pull(cotangent: Any) -> tuple[Tensor, ...]:
        watched = isinstance(cotangent, Tensor) and cotangent.requires_grad and mode.recording
        return tuple(_slopes(y, fresh, cotangent, nested or watched))

    return (y if nested else y.detach()), pull


def jvp(f: Callable[..., Tensor], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """The value of ``f`` and its change along a direction: forward mode from reverse mode.

    A vjp is linear in its cotangent u, so differentiating <vjp(u), v> with respect to u gives J v.
    No second table of rules is needed (Townsend 2017, "A new trick for calculating Jacobian vector products").

    Parameters
    ----------
    f : callable
    primals, tangents : sequences of array_like with equal shapes
        Where, and in which direction.

    Examples
    --------
    >>> import tinyattn as ta
    >>> y, dy = ta.jvp(lambda x: x * x, [[1.0, 2.0]], [[1.0, 0.5]])
    >>> dy
    tensor([2., 2.], shape=(2,))
    """
    if len(primals) != len(tangents):
        raise ArgumentError(f"jvp: {len(primals)} primals and {len(tangents)} tangents; each needs its direction.")
    y, fresh, nested = _run("jvp", f, primals, range(len(primals)))
    pairs = zip(tangents, fresh, strict=True)
    directions = [v if isinstance(v, Tensor) else constant(np.asarray(v, x.dtype)) for v, x in pairs]
    for x, v in zip(fresh, directions, strict=True):
        if x.shape != v.shape:
            raise ShapeError(f"jvp: a primal has shape {x.shape} and its tangent {v.shape}; they must be equal.")
    nested = nested or (mode.recording and any(v.requires_grad for v in directions))
    value = y if nested else y.detach()
    if not y.requires_grad:
        return value, _zeros_like(y)
    u = tensor(np.ones(y.shape, y.dtype), requires_grad=True)
    with _recording():
        pulled = propagate([y], [u], fresh, create_graph=True)
        inner = [ta.sum(pulled[x] * v) for x, v in zip(fresh, directions, strict=True) if x in pulled]
        total = sum(inner, start=constant(0.0, y.dtype))
    return value, gradients_of(total, [u], create_graph=nested)[0] if total.requires_grad else _zeros_like(y)


def jacobian(f: Callable[..., Tensor], x: Any) -> Tensor:
    """All derivatives of all results: entry ``[i..., j...]`` is d f(x)[i...] / d x[j...].

    Parameters
    ----------
    f : callable
        Takes one tensor and returns one tensor, shape (m...).
    x : array_like, shape (n...)

    Returns
    -------
    Tensor, shape (m..., n...)

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.jacobian(lambda x: x * x, [1.0, 2.0])
    tensor([[2., 0.],
            [0., 4.]], shape=(2, 2))
    """
    y, (fresh,), nested = _run("jacobian", f, (x,), (0,))
    if not y.requires_grad or y.size == 0:
        return tensor(np.zeros(y.shape + fresh.shape, fresh.dtype))
    units = np.eye(y.size, dtype=y.dtype).reshape((y.size, *y.shape))
    rows = [gradients_of(y, [fresh], unit, create_graph=nested)[0] for unit in units]
    return ta.reshape(ta.stack(rows), y.shape + fresh.shape)


def hessian(f: Callable[..., Tensor], x: Any) -> Tensor:
    """All second derivatives of one number: entry ``[i..., j...]`` is d2 f / d x[i...] d x[j...].

    Parameters
    ----------
    f : callable
        Takes one tensor and returns one number as a tensor.
    x : array_like, shape (n...)
        Where.

    Returns
    -------
    Tensor, shape (n..., n...)

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.hessian(lambda x: (x ** 3).sum(), [1.0, 2.0])
    tensor([[ 6.,  0.],
            [ 0., 12.]], shape=(2, 2))
    """
    return jacobian(grad(f), x)


def hvp(f: Callable[..., Tensor], x: Any, v: Any) -> Tensor:
    """The Hessian of ``f`` at ``x`` times a vector, without making the Hessian.

    Parameters
    ----------
    f : callable
        Takes one tensor and returns one number as a tensor.
    x : array_like, shape (n...)
        Where.
    v : array_like, shape of x
        The vector.

    Returns
    -------
    Tensor, shape of x

    Raises
    ------
    ShapeError
        When x and v differ in shape.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.hvp(lambda x: (x ** 3).sum(), [1.0, 2.0], [1.0, 1.0])
    tensor([ 6., 12.], shape=(2,))
    """
    direction, at = operand(v, "hvp"), operand(x, "hvp")
    if direction.shape != at.shape:
        raise ShapeError(f"hvp: x has shape {at.shape} and the vector {direction.shape}; they must be equal.")
    return grad(lambda z: ta.sum(grad(f)(z) * direction))(x)  # type: ignore[no-any-return]


def elementwise_grad(f: Callable[..., Tensor], argnum: int = 0) -> Callable[..., Tensor]:
    """The slope of a function that treats each entry by itself, at every entry at once.

    Parameters
    ----------
    f : callable
        Takes tensors and returns a tensor of the same shape, each entry made from the entries in its place.
    argnum : int
        Which argument to differentiate.

    Returns
    -------
    callable
        Called as ``f`` is; gives the slopes, in the shape of that argument.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.elementwise_grad(ta.tanh)([0.0, 1.0])
    tensor([1.        , 0.41997434], shape=(2,))
    """
    return grad(lambda *args, **kwargs: ta.sum(f(*args, **kwargs)), argnum)
