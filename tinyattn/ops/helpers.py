"""What several rules share: undoing a broadcast, giving axes back, slopes that may be infinite.

Each of these is written so that it works in all three readings of a rule: numbers, recorded Tensors and
exact numbers.
"""

from __future__ import annotations

import functools
from _thread import allocate_lock, get_ident
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinyattn.kernels.small import column_sums, sum_of_all

_ARRAYS = (np.ndarray, np.generic)


def sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Sum ``g`` back to the shape that was broadcast to it: the transpose of broadcasting.

    >>> import numpy as np
    >>> sum_to(np.ones((2, 3)), (3,))
    array([2., 2., 2.])
    """
    if g.shape == shape:
        return g
    if g.__class__ is np.ndarray and (not shape or (g.ndim == 2 and shape == g.shape[1:])):
        # A bias under rows, the commonest case, or a single number; a compiled program sums in these ways too.
        return column_sums(g) if shape else sum_of_all(g)
    new = len(g.shape) - len(shape)
    stretched = tuple(new + axis for axis, size in enumerate(shape) if size == 1 != g.shape[new + axis])
    return g.sum(axis=tuple(range(new)) + stretched, keepdims=True).reshape(shape)


def summed_back(rule: Callable[..., Any], slot: int) -> Callable[..., Any]:
    """The rule of a broadcasting op for input ``slot``: what was copied forward is summed backward.

    The rule itself stays within reach as ``even``, for inputs of one shape, where nothing was copied.
    """

    def whole(g: Any, y: Any, a: Any, b: Any) -> Any:
        return sum_to(rule(g, y, a, b), (b if slot else a).shape)

    whole.even = rule  # type: ignore[attr-defined]
    return whole


@functools.cache
def inverse_order(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The order of axes that undoes a transposition."""
    return tuple(axes.index(axis) for axis in range(len(axes)))


def with_axes(g: Any, axes: tuple[int, ...], ndim: int) -> Any:
    """Give the axes back, as size 1, that a reduction of ``ndim`` axes dropped."""
    sizes = iter(g.shape)
    return g.reshape(tuple(1 if axis in axes else next(sizes) for axis in range(ndim)))


class Care:
    """The threads that run a backward pass carefully.

    Whoever only looks for what is not finite may do so for the sake of another thread: that costs nothing but time.
    Whoever would compute in another way asks `here`: else the last bits would depend on what other threads do.
    """

    __slots__ = ("wanted",)

    def __init__(self) -> None:
        self.wanted: list[int] = []

    def here(self) -> bool:
        """Whether this thread is among them."""
        return get_ident() in self.wanted


care, _counting = Care(), allocate_lock()


@contextmanager
def carefully() -> Iterator[None]:
    """Let `times`, `times_slope` and `where_asked` look for what is not finite in this block.

    A backward pass on numbers runs without that first, and is repeated carefully only when a gradient came out
    infinite or nan; recorded rules always run carefully.
    """
    with _counting:
        care.wanted.append(get_ident())
    try:
        yield
    finally:
        with _counting:
            care.wanted.remove(get_ident())


def at_ease(x: Any) -> bool:
    """Whether ``x`` is plain floats and nobody looks for what is not finite: a product may then stand for a choice.

    ``g * np.sign(x)`` costs a third of ``np.where``, but makes nan of an infinite cotangent where the sign is 0.
    """
    return not (care.wanted and care.here()) and isinstance(x, _ARRAYS) and x.dtype.kind == "f"


def times(g: Any, factor: Any) -> Any:
    """``g * factor``, where a cotangent of 0 meets a factor that is infinite or nan as 0."""
    return times_slope(g, lambda factor: factor, factor) if care.wanted else g * factor


def times_slope(g: Any, slope: Callable[[Any], Any], at: Any) -> Any:
    """``g * slope(at)``, where an entry with cotangent 0 and an infinite or nan slope gives 0.

    Both conditions matter.  Without the first, ``where(x > 0, sqrt(x), 0)`` gets nan from the branch not
    taken.  Without the second, d2(w sqrt(x))/dw dx at w = 0 would be lost.  The point is replaced before the
    slope is computed there, so that the gradient of this gradient is clean too.
    """
    if not care.wanted:
        return g * slope(at)
    hidden = (g == 0) & _not_finite(slope, at)
    if not np.any(hidden):
        return g * slope(at)
    return np.where(hidden, 0, g * slope(np.where(hidden, 1, at)))


def where_asked(y: Any, g: Any, axis: int) -> Any:
    """``y``, but 0 in rows that hold a nan and whose cotangent is 0: nobody asked about them."""
    if not care.wanted or (numbers := plain(y)).dtype == object:
        return y
    asked = np.isfinite(numbers).all(axis=axis, keepdims=True) | (plain(g) != 0).any(axis=axis, keepdims=True)
    return y if asked.all() else np.where(asked, y, 0)


def _not_finite(slope: Callable[[Any], Any], at: Any) -> Any:
    values = plain(at)
    if values.dtype == object:  # exact numbers are always finite
        return np.zeros(values.shape, bool)
    with np.errstate(all="ignore"):
        return ~np.isfinite(slope(values))


def plain(x: Any) -> Any:
    """The numbers of an array or a Tensor, without recording."""
    return np.asarray(getattr(x, "data", x)) if not isinstance(x, _ARRAYS) else x


def number_like(count: Any, g: Any) -> Any:
    """A count in the dtype of ``g``; exact numbers keep the integer."""
    return count if g.dtype == object else count.astype(g.dtype)


def swap(x: Any) -> Any:
    """The last two axes exchanged: the transpose of each matrix."""
    return x.T if len(x.shape) == 2 else x.mT
