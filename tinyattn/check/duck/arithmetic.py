"""How ducks are added, multiplied, compared and reduced, made of the few steps that a subclass gives.

Stands on `shape`; what NumPy's functions make of it is in `protocols`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyattn.check.duck.shape import Axes, CannotRun, Shaped, plain_numbers


class Calculating(Shaped):
    """An array with Python's operators, comparisons and the reductions of an array."""

    __slots__ = ()

    # -- what a subclass says -------------------------------------------------------------------------------

    def plus(self, other: Any) -> Any:
        """Sum, entry by entry."""
        raise NotImplementedError

    def minus(self, other: Any) -> Any:
        """Difference, entry by entry."""
        return self.plus(other.negated())

    def times(self, other: Any) -> Any:
        """Product, entry by entry."""
        raise NotImplementedError

    def over(self, other: Any) -> Any:
        """Quotient, entry by entry."""
        raise NotImplementedError

    def negated(self) -> Any:
        """Each entry with the other sign."""
        raise NotImplementedError

    def raised(self, other: Any) -> Any:
        """Power, entry by entry, with an array as exponent."""
        raise NotImplementedError

    def matrix_product(self, other: Any) -> Any:
        """What ``@`` gives."""
        raise NotImplementedError

    def added_up(self, axis: Axes, keepdims: bool) -> Any:
        """Sum along axes."""
        raise NotImplementedError

    def mapped(self, name: str) -> Any:
        """A function of each entry: exp, log, sqrt, tanh, sin, cos, erf."""
        raise CannotRun(f"np.{name}")

    # -- operators --------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return self.plus(self.lift(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self.minus(self.lift(other))

    def __rsub__(self, other: Any) -> Any:
        return self.lift(other).minus(self)

    def __mul__(self, other: Any) -> Any:
        return self.times(self.lift(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self.over(self.lift(other))

    def __rtruediv__(self, other: Any) -> Any:
        return self.lift(other).over(self)

    def __neg__(self) -> Any:
        return self.negated()

    def __pos__(self) -> Any:
        return self.copy()

    def __abs__(self) -> Any:
        return self.joined(lambda ab: np.where(self.data < 0, ab[1], ab[0]), [self, self.negated()])

    def __matmul__(self, other: Any) -> Any:
        return self.matrix_product(self.lift(other))

    def __rmatmul__(self, other: Any) -> Any:
        return self.lift(other).matrix_product(self)

    def __pow__(self, exponent: Any) -> Any:
        whole = _whole(exponent)
        return self.raised(self.lift(exponent)) if whole is None else self.multiplied_out(whole)

    def __rpow__(self, base: Any) -> Any:
        return self.lift(base).raised(self)

    def multiplied_out(self, exponent: int) -> Any:
        """A whole power, by squaring."""
        if exponent < 0:
            return self.lift(1.0).over(self.multiplied_out(-exponent))
        result, square = None, self
        while exponent:
            if exponent & 1:
                result = square if result is None else result.times(square)
            exponent >>= 1
            square = square.times(square) if exponent else square
        return self.each(np.zeros_like) + 1.0 if result is None else result

    def __iadd__(self, other: Any) -> Any:
        return self.become(self + other)

    def __isub__(self, other: Any) -> Any:
        return self.become(self - other)

    def __imul__(self, other: Any) -> Any:
        return self.become(self * other)

    def __itruediv__(self, other: Any) -> Any:
        return self.become(self / other)

    # -- comparisons ------------------------------------------------------------------------------------------

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        return self.data == plain_numbers(other)

    def __ne__(self, other: object) -> Any:
        return self.data != plain_numbers(other)

    def __lt__(self, other: Any) -> Any:
        return self.data < plain_numbers(other)

    def __le__(self, other: Any) -> Any:
        return self.data <= plain_numbers(other)

    def __gt__(self, other: Any) -> Any:
        return self.data > plain_numbers(other)

    def __ge__(self, other: Any) -> Any:
        return self.data >= plain_numbers(other)

    def any(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """Whether an entry differs from 0."""
        return self.data.any(axis=axis, keepdims=keepdims)

    def all(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """Whether all entries differ from 0."""
        return self.data.all(axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None) -> Any:
        """The place of the largest entry."""
        return self.data.argmax(axis)

    def argmin(self, axis: int | None = None) -> Any:
        """The place of the smallest entry."""
        return self.data.argmin(axis)

    # -- reductions -------------------------------------------------------------------------------------------

    def sum(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """Sum along axes."""
        return self.added_up(axis, keepdims)

    def mean(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """Sum along axes, by how many there are."""
        total = self.added_up(axis, keepdims)
        return total / float(self.size // max(total.size, 1))

    def dot(self, other: Any) -> Any:
        """Product of vectors and matrices."""
        return self @ other

    def prod(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """Product along axes."""
        rows, shape = self.rows(axis, keepdims)
        result = rows[..., 0] if rows.shape[-1] else self.lift(np.ones(rows.shape[:-1]))
        for i in range(1, rows.shape[-1]):
            result = result.times(rows[..., i])
        return result.reshape(shape)

    def max(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """The largest entry along axes."""
        return self._chosen(axis, keepdims, np.argmax)

    def min(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """The smallest entry along axes."""
        return self._chosen(axis, keepdims, np.argmin)

    def _chosen(self, axis: Axes, keepdims: bool, best: Callable[..., Any]) -> Any:
        rows, shape = self.rows(axis, keepdims)
        at = np.ravel(best(rows.data, axis=-1))
        at = at + rows.shape[-1] * np.arange(at.size)
        return rows.each(lambda p: p.reshape(-1).take(at).reshape(shape))

    def rows(self, axis: Axes, keepdims: bool) -> tuple[Any, tuple[int, ...]]:
        """The axes to reduce as one last axis, and the shape of the reduction."""
        axes = (
            tuple(range(self.ndim)) if axis is None else (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
        )
        axes = tuple(a % self.ndim for a in axes)
        rest = tuple(a for a in range(self.ndim) if a not in axes)
        shape = tuple(1 if a in axes else size for a, size in enumerate(self.shape) if keepdims or a not in axes)
        length = math.prod(self.shape[a] for a in axes)
        if axes == (self.ndim - 1,):
            return self, shape
        return self.transpose(rest + axes).reshape((*(self.shape[a] for a in rest), length)), shape


def _whole(exponent: Any) -> int | None:
    if isinstance(exponent, Shaped) or isinstance(exponent, (bool, np.bool_)):
        return None
    if isinstance(exponent, (int, np.integer)):
        return int(exponent)
    return int(exponent) if isinstance(exponent, float) and exponent.is_integer() and abs(exponent) < 64 else None
