"""Calls that small arrays feel: of several spellings that NumPy has for one thing, the cheapest.

Each works on tensors and exact numbers too, by the plain spelling.
"""

from __future__ import annotations

import functools
import math
import sys
from _thread import _local
from collections.abc import Iterable
from typing import Any

import numpy as np

ndarray = np.ndarray
FEW = 1024  # numbers; so many ones are kept for sums


class Inside(_local):
    """Whether this thread is doing a part of something: see `tinyattn.kernels.threads`."""

    now = False


inside = Inside()


def column_sums(g: Any) -> Any:
    """The sum of the rows of a matrix, as a product with ones: at a third of a reduction's cost."""
    rows, kind = g.shape[0], g.dtype.char
    if kind in "fd" and rows:
        return quiet_dot(_ones_of(rows, kind), g)
    return np.add.reduce(g, axis=0)


def quiet_dot(a: Any, b: Any) -> Any:
    """``a.dot(b)`` where one is a vector: of many numbers in one thread, because a BLAS that has started threads for so
    little lets them spin for milliseconds afterwards, on a core that others want.
    """
    if (a.size <= LONG and b.size <= LONG) or inside.now:  # inside a part BLAS is held to one thread already
        return a.dot(b)
    from tinyattn.kernels import blas

    with blas.one_thread():
        return a.dot(b)


LONG = 9_000  # numbers; up to here OpenBLAS takes one thread for a vector


def all_finite(arrays: Iterable[Any]) -> bool:
    """Whether all numbers are finite, and none too large to be squared: that costs a third of asking each of them."""
    for g in arrays:
        if g.__class__ is ndarray:
            g = g.ravel("K")  # in the order of memory: no copy
            g = g.dot(g) if g.size <= LONG else quiet_dot(g, g)
        if not math.isfinite(g):
            return False
    return True


def row_sums(x: Any, weights: Any = None) -> Any:
    """The sums of the rows, or of the rows times weights, (..., 1): a product at a fifth of a reduction's cost."""
    n = x.shape[-1]
    if x.dtype.char in "fd" and n and x.flags.c_contiguous:
        rows = x.reshape(math.prod(x.shape[:-1]), n)
        sums = quiet_dot(rows, _ones_of(n, x.dtype) if weights is None else weights)
        return sums.reshape(*x.shape[:-1], 1)
    return np.add.reduce(x if weights is None else x * weights, axis=-1, keepdims=True)


def row_squares(x: Any) -> Any:
    """The sums of the squares of rows, (..., 1); of real numbers without an array for the squares."""
    if x.__class__ is ndarray and x.dtype.char in "fd":
        return np.vecdot(x, x)[..., None]
    return row_sums(x * x)


def sum_of_all(x: Any) -> Any:
    """The sum of all numbers; of few it is a product with ones, at half of a reduction's cost."""
    if x.__class__ is ndarray and (size := x.size) <= FEW and (kind := x.dtype.char) in "fd":
        return x.ravel().dot(_row_of_ones(size, kind))
    return np.add.reduce(x, axis=None)


def sums_along(x: Any, axis: int) -> Any:
    """Sums along an axis, in a shape that broadcasts against ``x``.

    For the rows of a small matrix it is a product with a matrix of ones: that costs a third of a reduction, and
    the result is already spread over the row.
    """
    if x.__class__ is ndarray:
        if x.ndim == 2 and (axis == 1 or axis == -1) and (size := x.shape[1]) <= 32 and x.size <= LONG:
            if (kind := x.dtype.char) in "fd":
                return x.dot(_square_of_ones(size, kind))
        return np.add.reduce(x, axis=axis, keepdims=True)
    return x.sum(axis=axis, keepdims=True)


def _ones_of(size: int, dtype: Any) -> Any:
    """A vector of ones; of a few it is there already."""
    return _row_of_ones(size, dtype) if size <= FEW else np.ones(size, dtype)


@functools.cache
def _row_of_ones(size: int, dtype: Any) -> Any:
    return _fixed(np.ones(size, dtype))


@functools.cache
def _square_of_ones(size: int, dtype: Any) -> Any:
    return _fixed(np.ones((size, size), dtype))


def _fixed(array: Any) -> Any:
    array.flags.writeable = False
    return array


def owned(g: Any) -> Any:
    """An array of one's own with these numbers: ``g`` itself where nothing but the caller's variable holds it."""
    if g.__class__ is np.ndarray and g.base is None and g.flags.writeable and sys.getrefcount(g) <= _ALONE:
        return g
    return np.array(g)


def _holders(g: Any) -> int:
    return sys.getrefcount(g)


def _holders_of_one_variable() -> int:
    """What is counted when only the caller's variable holds an array: versions of Python differ."""
    g = np.empty(0)
    return _holders(g)


_ALONE = _holders_of_one_variable()


def spread(g: Any, shape: tuple[int, ...]) -> Any:
    """Repeat ``g`` along its axes of size 1: the transpose of a sum that kept them."""
    if not shape:
        return g
    if (g.__class__ is ndarray or isinstance(g, np.generic)) and g.dtype.kind == "f":
        out = np.empty(shape, g.dtype)  # a fifth of the time of np.broadcast_to on small arrays
        out[...] = g
        return out
    return np.broadcast_to(g, shape)


_KINDS = (np.float16, np.float32, np.float64)
_ZEROS: dict[Any, Any] = {np.dtype(kind): _fixed(np.zeros((), kind)) for kind in _KINDS} | {k: k(0) for k in _KINDS}


def zero_of(x: Any) -> Any:
    """A zero of the same kind: beside arrays one without axes costs half of a Python number."""
    return _ZEROS.get(x.dtype if x.__class__ is ndarray else x.__class__, 0)


def positive_part(x: Any) -> Any:
    """The larger of ``x`` and 0; of a single number by a comparison, at a sixth of NumPy's cost.  A nan stays."""
    if x.__class__ is ndarray:
        return np.maximum(x, zero_of(x))
    zero = zero_of(x)
    if isinstance(x, np.floating):
        return zero if x <= zero else x
    return np.maximum(x, zero)


def by_sign(g: Any, x: Any) -> Any:
    """``g`` times the sign of ``x``, plain floats, and never -0: at less than the cost of a choice by `numpy.where`."""
    if x.__class__ is ndarray:
        return g * np.sign(x) + zero_of(x)
    # Of a single number at a fifth of the cost of `numpy.sign`; the last case is for 0 and nan.
    return (g if x > 0 else -g if x < 0 else g * x) + zero_of(x)


def matrix_product(a: Any, b: Any) -> Any:
    """``a @ b``; two plain matrices take ``dot``, which costs a third of ``@`` at lesson size.

    A batch of matrices times one matrix is one large product, not many small ones: a tenth to a third faster.
    """
    if not (a.__class__ is ndarray is b.__class__):
        return a @ b
    if b.ndim == 2:
        if a.ndim == 2:
            return a.dot(b) if a.size < FEW or a.size * b.shape[1] < SMALL else _product(a, b)
        if a.ndim > 2 and a.flags.c_contiguous:
            flat = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
            return matrix_product(flat, b).reshape(*a.shape[:-1], b.shape[-1])
    elif a.ndim == b.ndim > 2 and a.shape[:-2] == b.shape[:-2] and a.size * b.shape[-1] > SMALL:
        return _product(a, b)
    return a @ b


SMALL = 200_000  # multiplications; up to about here a BLAS starts no threads of its own


def _product(a: Any, b: Any) -> Any:
    """A large product: see `tinyattn.kernels.products`."""
    if a.dtype.char not in "fd" or a.dtype != b.dtype or a.shape[-1] != b.shape[-2]:
        return a @ b
    from tinyattn.kernels import products  # late, for a shorter `import tinyattn`

    return products.product(a, b)
