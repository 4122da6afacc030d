"""What NumPy's functions do on ducks: an explicit table, as `tinyattn.numpy_protocol` is one for tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyattn.check.duck import CannotRun, Duck, plain_numbers

Kind = type[Duck]


def _where(cls: Kind, condition: Any, a: Any, b: Any) -> Any:
    chosen = plain_numbers(condition)
    return cls.joined(lambda ab: np.where(chosen, ab[0], ab[1]), [a, b])


def _moved(function: Any) -> Callable[..., Any]:
    """A function that moves the numbers of one array about, whatever its other arguments are."""

    def call(cls: Kind, x: Any, *args: Any, **kwargs: Any) -> Any:
        return cls.lift(x).each(lambda p: function(p, *args, **kwargs))

    return call


def _joined(function: Any) -> Callable[..., Any]:
    def call(cls: Kind, pieces: Any, axis: int = 0, **kwargs: Any) -> Any:
        return cls.joined(lambda parts: function(parts, axis=axis), list(pieces))

    return call


def _summed(function: Any) -> Callable[..., Any]:
    """A linear function that adds numbers up: done part by part, then tidied."""

    def call(cls: Kind, x: Any, *args: Any, **kwargs: Any) -> Any:
        return cls.lift(x).tight().each(lambda p: function(p, *args, **kwargs)).tidied()

    return call


def _pad(cls: Kind, x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0.0) -> Any:
    if mode != "constant":
        raise CannotRun(f"np.pad with mode={mode!r}")
    inside = np.pad(np.ones(x.shape, bool), pad_width)
    return _where(cls, inside, x.each(lambda p: np.pad(p, pad_width)), constant_values)


def _method(name: str) -> Callable[..., Any]:
    def call(cls: Kind, x: Any, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        return getattr(cls.lift(x), name)(axis=axis, keepdims=keepdims)

    return call


def _clip(cls: Kind, x: Any, low: Any = None, high: Any = None, **kwargs: Any) -> Any:
    low, high = kwargs.get("min", low), kwargs.get("max", high)
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _einsum(cls: Kind, subscripts: str, *operands: Any, **kwargs: Any) -> Any:
    return cls.contracted(subscripts, [cls.lift(x) for x in operands])


def _outer(cls: Kind, a: Any, b: Any) -> Any:
    return cls.lift(a).reshape((-1, 1)) * cls.lift(b).reshape((1, -1))


def _trace(cls: Kind, x: Any) -> Any:
    return cls.contracted("ii->", [cls.lift(x)])


def _var(cls: Kind, x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False, **kwargs: Any) -> Any:
    x = cls.lift(x)
    distance = x - x.mean(axis=axis, keepdims=True)
    total = (distance * distance).sum(axis=axis, keepdims=keepdims)
    return total / float(x.size // max(total.size, 1) - ddof)


def _kind(x: Any) -> Any:
    """The precision of an array, where it has one."""
    return x.dtype if x.dtype.kind == "f" else np.float64


def _like(value: float) -> Callable[..., Any]:
    return lambda cls, x, *args, **kwargs: cls.lift(np.full(x.shape, value, _kind(x)))


def _plain(function: Any) -> Callable[..., Any]:
    return lambda cls, *args, **kwargs: function(*map(plain_numbers, args), **kwargs)


def _split(cls: Kind, x: Any, sections: Any, axis: int = 0) -> Any:
    pieces = np.split(np.arange(x.shape[axis]), sections)
    return [x.each(lambda p, at=at: np.take(p, at, axis)) for at in pieces]


def _put_along_axis(cls: Kind, x: Any, at: Any, value: Any, axis: int) -> None:
    x.written(lambda own, part: np.put_along_axis(own, at, part, axis), value)


def _copyto(cls: Kind, x: Any, value: Any, where: Any = True, **kwargs: Any) -> None:
    x.written(lambda own, part: np.copyto(own, part, where=plain_numbers(where)), value)


def _fill_diagonal(cls: Kind, x: Any, value: Any) -> None:
    x.written(lambda own, part: np.fill_diagonal(own, part), value)


def _norm(cls: Kind, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord not in (None, 2):
        raise CannotRun(f"np.linalg.norm with ord={ord!r}")
    x = cls.lift(x)
    return (x * x).sum(axis=axis, keepdims=keepdims).mapped("sqrt")


def _full_like(cls: Kind, x: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    return cls.lift(value) + cls.lift(np.zeros(x.shape, _kind(x)))


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.concatenate: _joined(np.concatenate),
    np.stack: _joined(np.stack),
    np.einsum: _einsum,
    np.pad: _pad,
    np.clip: _clip,
    np.outer: _outer,
    np.trace: _trace,
    np.dot: lambda cls, a, b: cls.lift(a) @ cls.lift(b),
    np.broadcast_to: _moved(np.broadcast_to),
    np.reshape: _moved(np.reshape),
    np.transpose: _moved(np.transpose),
    np.matrix_transpose: _moved(np.matrix_transpose),
    np.swapaxes: _moved(np.swapaxes),
    np.moveaxis: _moved(np.moveaxis),
    np.expand_dims: _moved(np.expand_dims),
    np.squeeze: _moved(np.squeeze),
    np.take_along_axis: _moved(np.take_along_axis),
    np.take: _moved(np.take),
    np.flip: _moved(np.flip),
    np.roll: _moved(np.roll),
    np.repeat: _moved(np.repeat),
    np.tile: _moved(np.tile),
    np.tril: _moved(np.tril),
    np.triu: _moved(np.triu),
    np.diagonal: _moved(np.diagonal),
    np.diag: _moved(np.diag),
    np.ravel: _moved(np.ravel),
    np.copy: _moved(np.copy),
    np.rot90: _moved(np.rot90),
    np.cumsum: _summed(np.cumsum),
    np.split: _split,
    np.var: _var,
    np.sum: _method("sum"),
    np.prod: _method("prod"),
    np.mean: _method("mean"),
    np.max: _method("max"),
    np.min: _method("min"),
    np.std: lambda cls, *args, **kwargs: _var(cls, *args, **kwargs).mapped("sqrt"),
    np.zeros_like: _like(0.0),
    np.empty_like: _like(0.0),
    np.full_like: _full_like,
    np.put_along_axis: _put_along_axis,
    np.copyto: _copyto,
    np.fill_diagonal: _fill_diagonal,
    np.linalg.norm: _norm,
    np.ones_like: _like(1.0),
    np.shape: lambda cls, x: x.shape,
    np.ndim: lambda cls, x: x.ndim,
    np.size: lambda cls, x: x.size,
    np.any: _plain(np.any),
    np.all: _plain(np.all),
    np.argmax: _plain(np.argmax),
    np.argmin: _plain(np.argmin),
    np.argsort: _plain(np.argsort),
    np.isclose: _plain(np.isclose),
    np.allclose: _plain(np.allclose),
}
"""NumPy function to what it means here: called with the kind of duck first, then as NumPy is called."""
