"""Softmax without overflow: every row is shifted by its largest entry, which changes nothing in a ratio."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.kernels.small import LONG, quiet_dot, sums_along


def softmax(x: Any, axis: int, keep: Any) -> Any:
    """The exponentials of a row divided by their sum."""
    if keep is not None:
        return _kept_softmax(x, axis, keep)
    e = _shifted_exp(x, axis)
    return e / sums_along(e, axis)


def _kept_softmax(x: Any, axis: int, keep: Any) -> Any:
    """Hidden entries get weight 0 and are not read; a row with nothing kept is a row of zeros."""
    keep = np.broadcast_to(keep, x.shape)
    nothing = ~keep.any(axis=axis, keepdims=True)
    shift = np.where(nothing, 0.0, _highest(np.where(keep, x, -np.inf), axis))
    e = np.where(keep, np.exp(np.where(keep, x - shift, 0.0)), 0.0)
    return e / np.where(nothing, 1.0, np.add.reduce(e, axis=axis, keepdims=True))


def log_softmax(x: Any, axis: int) -> Any:
    """The scores minus the logarithm of the sum of their exponentials, both shifted by the largest."""
    shifted = x - _highest(x, axis)
    return shifted - np.log(np.add.reduce(np.exp(shifted), axis=axis, keepdims=True))


def _highest(x: Any, axis: int) -> Any:
    """The largest entry along an axis, for a shift that cancels; where there is none, any shift will do."""
    if x.shape[axis] == 0:
        return np.zeros(tuple(1 if a == axis % x.ndim else size for a, size in enumerate(x.shape)), x.dtype)
    return np.maximum.reduce(x, axis=axis, keepdims=True)


def _shifted_exp(x: Any, axis: int) -> Any:
    """exp(x - the largest entry): no overflow, and the shift cancels in every ratio.

    Small entries need no shift.  If the squares of all entries add up to less than 60 squared, none is beyond 60;
    that product costs a fifth of finding and subtracting the largest of each row.
    """
    if x.dtype.char in "fd":
        entries = x.ravel()
        if (entries.dot(entries) if entries.size <= LONG else quiet_dot(entries, entries)) < 3600:
            return np.exp(x)
    return np.exp(x - _highest(x, axis))
