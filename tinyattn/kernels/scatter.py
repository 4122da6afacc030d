"""Adding rows into a table at the places that numbers say: the way back of looking them up."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.kernels.small import LONG, all_finite, matrix_product

FEW = 384  # bytes of a column


def scatter_add(g: Any, key: Any, shape: tuple[int, ...], basic: bool) -> Any:
    """Zeros of a shape, with ``g`` added in the places that ``key`` reads; what is read twice gets both."""
    out = np.zeros(shape, g.dtype)
    if basic:
        out[key] = g  # reads no entry twice
    elif _numbers_rows(key, shape, g):
        numbers, rows = np.where(key < 0, key + len(out), key).ravel(), g.reshape(key.size, -1)
        if not _add_to_few(out, numbers, rows):
            _add_rows(out, numbers, rows)
    else:
        np.add.at(out, key, g)
    return out


def _numbers_rows(key: Any, shape: tuple[int, ...], g: Any) -> bool:
    """Whether a key is one array of row numbers, for rows long enough to be worth sorting."""
    rows = isinstance(key, np.ndarray) and key.dtype.kind in "iu" and len(shape) > 1
    return bool(rows and key.size and g.dtype.kind == "f" and g.size >= 8 * key.size)


def _add_to_few(out: Any, numbers: Any, g: Any) -> bool:
    """As a product with a matrix of zeros and ones, (places, rows), which for few places takes half of sorting.

    False, and the places are still to be filled, where it does not pay, and where a row that is not finite would
    spoil all others through its zeros.
    """
    if g.size < LONG or len(out) * g.itemsize > FEW or g.dtype.char not in "fd":
        return False
    hot = (numbers == np.arange(len(out))[:, None]).astype(g.dtype)
    with np.errstate(invalid="ignore"):  # looked at below
        total = matrix_product(hot, g)
    if all_finite([total]):
        out.reshape(len(out), -1)[...] = total
        return True
    return False


def _add_rows(out: Any, numbers: Any, g: Any) -> None:
    """Sorted by number, the rows of one place stand together and are added by one call.

    ``np.add.at`` goes entry by entry: a thousand rows of 128 take it twelve times as long.
    """
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    out.reshape(len(out), -1)[ordered[starts]] = np.add.reduceat(g[order], starts, axis=0)
