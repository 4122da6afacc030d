"""Bounded: floats that carry a bound of their own rounding error.

The rules of the engine run on these unchanged, so every gradient comes with the error that float64, or float32,
allows it: no tolerance needs to be guessed.  The model is the usual one, fl(a o b) = (a o b)(1 + d) with
|d| <= u; sums and products of k terms err by at most k u times the sum of magnitudes, in whatever order; exp and its
like are off by at most four units in the last place.  What is below the smallest normal number is added throughout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyattn.check.duck import Axes, CannotRun, Duck
from tinyattn.check.primes import labels_of

LIBRARY = 8.0  # units u that exp, log and their like may be off by
PARTIAL = 4.0  # units u for one written constant that is not a whole number, and for what a path of code may add


class Bounded(Duck):
    """Floats with the bound of their error.

    Attributes
    ----------
    v : ndarray of float
        What the engine computes.
    e : ndarray of float64
        How far that may be from what exact arithmetic would give.

    Examples
    --------
    >>> import numpy as np
    >>> third = Bounded.lift(np.array([1.0])) / 3.0
    >>> bool(0 < third.e[0] < 2e-16)
    True
    """

    __slots__ = state = ("e", "v", "weak")

    def __init__(self, v: Any, e: Any, weak: bool = False) -> None:
        self.v, self.e = v, e
        self.weak = weak  # a number written in the code: it takes the precision of what it meets

    @property
    def parts(self) -> tuple[Any, ...]:
        """The ordinary arrays this one is made of."""
        return self.v, self.e

    @property
    def data(self) -> np.ndarray:
        """The floats."""
        return self.v  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.v.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the floats, so that rules take the way they take for those."""
        return self.v.dtype  # type: ignore[no-any-return]

    @property
    def u(self) -> float:
        """Half the distance from 1 to the next number."""
        return float(np.finfo(self.v.dtype).eps) / 2

    @property
    def tiny(self) -> float:
        """The smallest normal number: below it, errors are no longer relative."""
        return float(np.finfo(self.v.dtype).tiny)

    @classmethod
    def made_of(cls, *parts: Any) -> Any:
        """An array from its parts."""
        return cls(*parts)

    @classmethod
    def lift(cls, x: Any) -> Any:
        """Plain numbers: whole numbers are exact, others may stand for a number half a unit away."""
        if x.__class__ is cls:
            return x
        try:
            array = np.asarray(x, dtype=np.float64) if np.asarray(x).dtype.kind != "f" else np.asarray(x)
        except (TypeError, ValueError):
            raise CannotRun(f"a {type(x).__name__} among bounded numbers") from None
        written = isinstance(x, (float, np.floating)) and not float(x).is_integer()
        error = np.abs(array) * (2.0**-53) if written and math.isfinite(x) else np.zeros(array.shape)
        return cls(array, error, type(x) in (float, int, bool))

    @classmethod
    def exact(cls, value: Any) -> Any:
        """Numbers that are what they are: leaves."""
        array = np.asarray(value)
        return cls(array, np.zeros(array.shape))

    @classmethod
    def joined(cls, function: Any, pieces: Sequence[Any]) -> Any:
        """One array from several, in the precision of those that are not single numbers."""
        lifted = [cls.lift(x) for x in pieces]
        kinds = [x.v.dtype for x in lifted if not x.weak] or [x.v.dtype for x in lifted]
        dtype = np.result_type(*kinds)
        return super().joined(function, [x if x.v.dtype == dtype else cls(x.v.astype(dtype), x.e) for x in lifted])

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """In another precision; what is rounded away is added to the bound."""
        dtype = np.dtype(dtype)
        if dtype.kind != "f" or dtype == self.v.dtype:
            return self.copy()
        v = np.asarray(self.v.astype(dtype))
        coarser = dtype.itemsize < self.v.dtype.itemsize
        return type(self)(
            v,
            self.e + np.abs(self.v) * (float(np.finfo(dtype).eps) / 2) + float(np.finfo(dtype).tiny)
            if coarser
            else self.e,
        )

    def _new(self, v: Any, e: Any, units: float = 1.0) -> Any:
        v = np.asarray(v)
        new = type(self)(v, e)
        error = e + units * new.u * np.abs(v) + new.tiny
        new.e = np.asarray(np.where(np.isnan(error), np.inf, error))
        return new

    def plus(self, other: Any) -> Any:
        """Sum."""
        a, b = _one_kind(self, other)
        return a._new(a.v + b.v, a.e + b.e)

    def negated(self) -> Any:
        """The other sign."""
        return type(self)(np.asarray(-self.v), self.e, self.weak)

    def times(self, other: Any) -> Any:
        """Product."""
        a, b = _one_kind(self, other)
        return a._new(a.v * b.v, _product(np.abs(a.v), b.e) + _product(np.abs(b.v), a.e) + a.e * b.e)

    def over(self, other: Any) -> Any:
        """Quotient."""
        a, b = _one_kind(self, other)
        v = np.asarray(a.v / b.v)
        left = np.abs(b.v) - b.e
        e = np.where(left > 0, (a.e + _product(np.abs(v), b.e)) / np.where(left > 0, left, 1.0), np.inf)
        return a._new(v, np.where(np.isfinite(v), e, 0.0))

    def raised(self, other: Any) -> Any:
        """Power."""
        a, b = _one_kind(self, other)
        v = np.asarray(np.power(a.v, b.v))
        base = np.where(a.v > 0, a.v, 1.0)
        relative = np.abs(b.v) * a.e / np.maximum(base - a.e, a.tiny) + np.abs(np.log(base)) * b.e
        return a._new(v, np.abs(v) * np.expm1(np.minimum(relative, 700.0)), LIBRARY * (1 + np.abs(np.log(base) * b.v)))

    def matrix_product(self, other: Any) -> Any:
        """Matrix product."""
        a, b = _one_kind(self, other)
        x, y = np.abs(a.v), np.abs(b.v)
        length = a.v.shape[-1] + 1
        e = x @ b.e + a.e @ (y + b.e) + length * a.u * (x @ y)
        return a._new(a.v @ b.v, e + length * a.tiny)

    def added_up(self, axis: Axes, keepdims: bool) -> Any:
        """Sum along axes."""
        axes: Any = tuple(axis) if isinstance(axis, (list, tuple)) else axis
        v = np.asarray(self.v.sum(axis=axes, keepdims=keepdims))
        terms = self.v.size // max(v.size, 1) + 1
        e = (self.e + terms * self.u * np.abs(self.v)).sum(axis=axes, keepdims=keepdims)
        return self._new(v, e)

    def tidied(self) -> Any:
        """After NumPy added numbers up: at most all of them."""
        return self._new(self.v, self.e, float(self.v.size))

    @classmethod
    def contracted(cls, subscripts: str, operands: Sequence[Any]) -> Any:
        """``einsum`` of any number of operands."""
        labels_of(subscripts)
        values = [x.v for x in operands]
        v = np.asarray(np.einsum(subscripts, *values))
        most = [np.abs(x.v) for x in operands]
        total = np.asarray(np.einsum(subscripts, *most))
        e = np.zeros(v.shape)
        for slot, x in enumerate(operands):
            e = e + np.einsum(
                subscripts,
                *most[:slot],
                x.e,
                *[m + y.e for m, y in zip(most[slot + 1 :], operands[slot + 1 :], strict=True)],
            )
        terms = math.prod(x.size for x in operands) ** (1 / len(operands)) if operands else 1
        longest = (
            max((x.size for x in operands), default=1)
            if len(operands) == 1
            else max(terms, *(max(x.shape, default=1) ** 2 for x in operands))
        )
        return operands[0]._new(v, e + (longest + 2) * operands[0].u * total, len(operands) + 1.0)

    def mapped(self, name: str) -> Any:
        """Exp and its like."""
        v = np.asarray(_erf(self.v) if name == "erf" else getattr(np, name)(self.v))
        return self._new(
            v, np.minimum(_SPREAD[name](self.v, v, self.e), _MOST.get(name, np.inf)), 1.0 if name == "sqrt" else LIBRARY
        )


def _one_kind(a: Any, b: Any) -> tuple[Any, Any]:
    """Both in the dtype that NumPy gives the result; a number written in the code does not widen it."""
    if a.v.dtype == b.v.dtype:
        return a, b
    if a.weak or (not b.weak and a.v.dtype.itemsize < b.v.dtype.itemsize):
        return type(a)(np.asarray(a.v.astype(b.v.dtype)), a.e + (np.abs(a.v) * b.u if a.weak else 0.0)), b
    return a, type(b)(np.asarray(b.v.astype(a.v.dtype)), b.e + (np.abs(b.v) * a.u if b.weak else 0.0))


def _product(size: Any, error: Any) -> Any:
    """Size times error, where no error means none even of an infinite size."""
    return np.where(error == 0, 0.0, size * error)


def _root(x: Any, y: Any, e: Any) -> Any:
    return np.where(e < x, e / np.maximum(np.sqrt(np.maximum(x - e, 0.0)) + y, 1e-300), np.sqrt(np.maximum(x + e, 0.0)))


def _logarithm(x: Any, y: Any, e: Any) -> Any:
    return np.where(e == 0, 0.0, np.where(e < x, e / np.where(e < x, x - e, 1.0), np.inf))


def _erf(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), dtype=x.dtype)


_SPREAD: dict[str, Any] = {
    "exp": lambda x, y, e: _product(y, np.expm1(np.minimum(e, 700.0))),
    "log": _logarithm,
    "sqrt": _root,
    "tanh": lambda x, y, e: e * (1 - y * y + 2 * e),
    "sin": lambda x, y, e: e,
    "cos": lambda x, y, e: e,
    "erf": lambda x, y, e: e * 1.1284 * np.exp(-(np.maximum(np.abs(x) - e, 0.0) ** 2)),
}
_MOST = {"tanh": 2.0, "sin": 2.0, "cos": 2.0, "erf": 2.0}
