"""Derivatives of functions: grad, vjp, jvp, jacobian, hessian and what can be built from them.

Each calls a function of tensors with fresh leaves in the places to differentiate, and runs the backward pass of
`tinyattn.autodiff` over what was recorded.  Called inside one another they give derivatives of any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, overload

import numpy as np

from tinyattn import explain
from tinyattn import functions as ta
from tinyattn.arguments import as_array, constant, known_arguments, operand, yes_or_no
from tinyattn.autodiff import gradients_of, propagate, reachable
from tinyattn.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from tinyattn.mode import mode, switched
from tinyattn.tensor import Tensor, tensor


@overload
def grad(target: Tensor, wrt: Tensor, *, seed: Any = ..., create_graph: bool = ...) -> Tensor: ...
@overload
def grad(target: Tensor, wrt: Sequence[Tensor], *, seed: Any = ..., create_graph: bool = ...) -> list[Tensor]: ...
@overload
def grad(
    target: Callable[..., Tensor], wrt: int | tuple[int, ...] = ..., *, create_graph: bool = ...
) -> Callable[..., Any]: ...


@known_arguments
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
    create_graph = yes_or_no(create_graph, "grad", "create_graph")
    if isinstance(target, Tensor):
        single = isinstance(wrt, Tensor)
        wanted = [wrt] if single else wrt
        if not isinstance(wanted, (list, tuple)) or not all(isinstance(x, Tensor) for x in wanted):
            raise explain.not_tensors()
        gradients = gradients_of(target, wanted, seed, create_graph)
        return gradients[0] if single else gradients
    _differentiable(target, "grad", "a tensor or a function")
    _places(wrt, "grad", "wrt")
    if seed is not None:
        raise ArgumentError(message("grad: a seed belongs to a result, and a function was given.", "", _SEEDED))

    both = value_and_grad(target, wrt, create_graph=create_graph)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return gradient


_SEEDED = "Write ta.vjp(f, x)[1](seed), or ta.grad(y, x, seed=seed)."


def _places(wanted: Any, name: str, what: str) -> tuple[int, ...]:
    """The numbers of the arguments to differentiate."""
    if isinstance(wanted, Tensor):
        why = "A function has no tensors yet: which of its arguments is meant?"
        instead = "Write ta.grad(f)(x), or ta.grad(f, 1)(a, b); with a result ta.grad(y, x)."
        raise ArgumentTypeError(message(f"{name}: {what} is a tensor.", why, instead))
    each = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
    for n in each:
        if isinstance(n, (bool, np.bool_)) or not isinstance(n, (int, np.integer)):
            shown = repr(n) if isinstance(n, str) else f"a {type(n).__name__}"
            instead = f"Write {what}=0, or {what}=(0, 1)."
            raise ArgumentTypeError(message(f"{name}: {what} holds {shown}.", "Arguments are counted from 0.", instead))
    if not each:
        raise ArgumentError(f"{name}: {what}={wanted!r} names no argument.")
    return tuple(int(n) for n in each)


def _differentiable(f: Any, name: str, needed: str = "a function") -> None:
    if not callable(f):
        raise explain.no_function(f, name, needed)


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
    _differentiable(f, name)
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
            given = f"{len(args)} {'was' if len(args) == 1 else 'were'} given"
            what = f"{name}: argument {n} is to be differentiated, but only {given}."
            why = "Only arguments that are given by place count."
            raise ArgumentError(message(what, why, f"Write ta.{name}(f)(x)."))
        x = operand(args[n], name)
        array = x.data if x.dtype.kind == "f" else x.data.astype(float)
        values[n] = x * 1 if x.requires_grad and nested else tensor(array, requires_grad=True)
    return values, [values[n] for n in argnums]


def _watched(y: Tensor, fresh: Sequence[Tensor]) -> bool:
    """Whether something older than the call is behind a result: an argument's past, or what ``f`` closes over."""
    start = min((x.order for x in fresh), default=0)
    behind = reachable([y]) if y.requires_grad else []
    return any(x.op is not None for x in fresh) or any(x.op is None and x.order < start for x in behind)


@known_arguments
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
    _differentiable(f, "value_and_grad")
    numbers = _places(argnums, "value_and_grad", "argnums")
    create_graph = yes_or_no(create_graph, "value_and_grad", "create_graph")

    def both(*args: Any, **kwargs: Any) -> Any:
        y, fresh, nested = _run("grad", f, args, numbers, kwargs)
        record = nested or create_graph
        slopes, value = _slopes(y, fresh, None, record), y if record else y.detach()
        return value, tuple(slopes) if isinstance(argnums, (tuple, list)) else slopes[0]

    return both


@known_arguments
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
        if cotangent is not None:
            given = cotangent if isinstance(cotangent, Tensor) else as_array(cotangent, name="vjp: the cotangent")
            if given.shape != y.shape:
                what = f"vjp: the cotangent has shape {given.shape}, and the result of f {y.shape}."
                raise ShapeError(message(what, "It weights each number of the result, so they must be equal."))
        watched = isinstance(cotangent, Tensor) and cotangent.requires_grad and mode.recording
        return tuple(_slopes(y, fresh, cotangent, nested or watched))

    return (y if nested else y.detach()), pull


_LISTED = "ta.jvp(f, [x], [v]): lists, also for a single one"


@known_arguments
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
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (list, tuple)):
            why = "There is one for each argument of f."
            raise ArgumentTypeError(message(f"jvp: {what} is a {type(given).__name__}.", why, f"Write {_LISTED}."))
    if len(primals) != len(tangents):
        raise ArgumentError(f"jvp: {len(primals)} primals and {len(tangents)} tangents; each needs its direction.")
    y, fresh, nested = _run("jvp", f, primals, range(len(primals)))
    pairs = zip(tangents, fresh, strict=True)
    directions = [v if isinstance(v, Tensor) else constant(as_array(v, x.dtype, "jvp: a tangent")) for v, x in pairs]
    for x, v in zip(fresh, directions, strict=True):
        if x.shape != v.shape:
            raise ShapeError(f"jvp: a primal has shape {x.shape} and its tangent {v.shape}; they must be equal.")
    nested = nested or (mode.recording and any(v.requires_grad for v in directions))
    value = y if nested else y.detach()
    if not y.requires_grad:
        return value, _zeros_like(y)
    u = tensor(np.ones(y.shape, y.dtype), requires_grad=True)
    with _recording():
        pulled = propagate([(y, u)], fresh, create_graph=True)
        inner = [ta.sum(pulled[x] * v) for x, v in zip(fresh, directions, strict=True) if x in pulled]
        total = sum(inner, start=constant(0.0, y.dtype))
    return value, gradients_of(total, [u], create_graph=nested)[0] if total.requires_grad else _zeros_like(y)


@known_arguments
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


@known_arguments
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
    _differentiable(f, "hessian")
    return jacobian(grad(f), x)


@known_arguments
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
    _differentiable(f, "hvp")
    direction, at = operand(v, "hvp"), operand(x, "hvp")
    if direction.shape != at.shape:
        raise ShapeError(f"hvp: x has shape {at.shape} and the vector {direction.shape}; they must be equal.")
    return grad(lambda z: ta.sum(grad(f)(z) * direction))(x)  # type: ignore[no-any-return]


@known_arguments
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

    Raises
    ------
    ShapeError
        When ``f`` gives another shape than that argument's: then a sum of slopes would pass for a slope.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.elementwise_grad(ta.tanh)([0.0, 1.0])
    tensor([1.        , 0.41997434], shape=(2,))
    """
    _differentiable(f, "elementwise_grad")
    numbers = _places(argnum, "elementwise_grad", "argnum")

    def total(*args: Any, **kwargs: Any) -> Tensor:
        y = f(*args, **kwargs)
        if not isinstance(y, Tensor):
            raise explain.not_a_tensor_result(y, f, "elementwise_grad")
        for x in [args[n] for n in numbers]:
            if x.shape != y.shape:
                what = f"elementwise_grad: f gave shape {y.shape} for an argument of shape {x.shape}."
                why = "A slope at each entry needs one result for each entry."
                raise ShapeError(message(what, why, "Write ta.grad(f) for one number, ta.jacobian(f, x) for several."))
        return ta.sum(y)

    return grad(total, argnum)
