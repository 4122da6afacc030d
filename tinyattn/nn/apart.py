"""Rows that hold nan or infinity, kept apart from the others.

0 times nan is nan: a matrix product would carry the nan of a hidden word, or of a query that no loss asks about, to
everybody else and into every gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import tinyattn as ta
from tinyattn.composed import named_by_caller
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


def rows_apart(*parts: Tensor, seen: Mask | None) -> tuple[tuple[Tensor, ...], Mask | None]:
    """Set rows that hold nan or infinity aside, so that only the queries that look at them are lost.

    Parameters
    ----------
    parts : Tensor
        Queries, shape (..., n, d_k); then keys and values, shape (..., m, d).
    seen : bool array that broadcasts to (..., n, m), or None

    Returns
    -------
    parts : tuple of Tensor
        With zeros in those rows; the tensors themselves where all is finite.
    lost : bool array, shape (..., n, 1), or None
        The queries whose output is nan: they hold one, or look at one.
    """
    finite = [np.isfinite(part.data).all(axis=-1) for part in parts]  # (..., n), (..., m), (..., m)
    if all(rows.all() for rows in finite):
        return parts, None
    clean = tuple(
        part if rows.all() else ta.where(rows[..., None], part, 0.0) for part, rows in zip(parts, finite, strict=True)
    )
    asks, *answers = finite
    broken = ~asks[..., :, None] | ~np.logical_and(*answers)[..., None, :]  # (..., n, m)
    lost = (broken if seen is None else broken & seen).any(axis=-1, keepdims=True)
    return clean, lost if lost.any() else None


@named_by_caller
def project(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """``x @ W + b`` row by row; a row that holds nan gives a row of nan, and passes nothing back to W."""
    finite = np.isfinite(x.data).all(axis=-1, keepdims=True)
    rows = x if finite.all() else ta.where(finite, x, 0.0)
    product = rows @ W  # (..., d)
    result = product if b is None else product + b
    return result if finite.all() else ta.where(finite, result, np.nan)
