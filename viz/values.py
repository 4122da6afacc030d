"""Numbers as they stand in a picture or a listing: short, aligned, and never a lie.

An exact zero is written ``0``, a small number that only rounds to zero ``0.00``; nan and the infinities
are words.  Knows nothing of graphs or colours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MOST_ROWS, MOST_COLUMNS = 6, 8
"""A table with more rows or columns than this is summarised instead."""


def number(x: float, digits: int = 4) -> str:
    """One number by itself, with so many significant digits.

    >>> number(0.70710678), number(3.0), number(float("nan")), number(-1.5e-9)
    ('0.7071', '3', 'nan', '-1.5e-09')
    """
    if not math.isfinite(x):
        return _word(x)
    if x == int(x) and abs(x) < 1e9:
        return str(int(x))
    return format(x, f".{digits}g")


def cells(array: Array, decimals: int | None = None, digits: int = 3) -> list[list[str]]:
    """The entries of a matrix as text, all with the same number of decimals.

    Parameters
    ----------
    array : array, shape (n, m)
    decimals : int, optional
        How many; chosen so that the largest entry keeps so many digits when absent.
    digits : int
        Three, when not given.

    >>> cells(np.array([[0.5, -0.25], [0.0, 1e-9]]))
    [['0.500', '-0.250'], ['0', '0.000']]
    """
    if array.dtype == bool:
        return [[str(bool(x)) for x in row] for row in array]
    places = _decimals(array, digits) if decimals is None else decimals
    return [[_cell(float(x), places) for x in row] for row in array]


def is_small(shape: tuple[int, ...]) -> bool:
    """True when an array of this shape is shown entry by entry.

    >>> is_small((6, 8)), is_small((2, 3, 4)), is_small((7, 2)), is_small(())
    (True, True, False, True)
    """
    rows, columns = table_shape(shape)
    return rows <= MOST_ROWS and columns <= MOST_COLUMNS


def table_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of an array laid out as one table, the last axis across.

    >>> table_shape(()), table_shape((3,)), table_shape((2, 3, 4))
    ((1, 1), (1, 3), (6, 4))
    """
    return math.prod(shape[:-1]), shape[-1] if shape else 1


@dataclass(frozen=True, slots=True)
class Summary:
    """What is said of an array that is too large to show: its finite entries, and the others counted."""

    low: float
    mean: float
    high: float
    nans: int
    infinities: int

    @classmethod
    def of(cls, array: Array) -> Summary:
        """Look at an array of any shape, also an empty one.

        >>> Summary.of(np.array([1.0, 3.0, np.nan]))
        Summary(low=1.0, mean=2.0, high=3.0, nans=1, infinities=0)
        """
        flat = array.ravel() if array.dtype == np.float64 else array.ravel().astype(np.float64)
        if flat.size and math.isfinite(low := float(flat.min())) and math.isfinite(high := float(flat.max())):
            with np.errstate(over="ignore"):
                return cls(low, float(np.add.reduce(flat)) / flat.size, high, 0, 0)
        finite = flat[np.isfinite(flat)]
        nans = int(np.isnan(flat).sum()) if finite.size < flat.size else 0
        if not finite.size:
            return cls(math.nan, math.nan, math.nan, nans, flat.size - nans)
        with np.errstate(over="ignore"):
            mean = float(finite.mean())
        return cls(float(finite.min()), mean, float(finite.max()), nans, flat.size - finite.size - nans)

    def parts(self) -> list[tuple[str, str]]:
        """Pairs of word and number, in reading order; the words are keys of :mod:`viz.words`."""
        three = (self.low, self.mean, self.high)
        finite = [] if math.isnan(self.low) else [_cell(x, places) for places in [_places(three, 3)] for x in three]
        shown = list(zip(("min", "mean", "max"), finite))
        counts = (("nan", self.nans), ("inf", self.infinities))
        return shown + [(key, f"×{count}") for key, count in counts if count]


def is_zero(array: Array) -> bool:
    """True when there are entries and all are exactly zero."""
    return array.size > 0 and not np.any(array)


def jsonable(array: Array) -> Any:
    """Nested lists of numbers; what JSON cannot hold is a word.

    >>> jsonable(np.array([1.0, np.nan, -np.inf]))
    [1.0, 'nan', '-inf']
    """
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        flat: list[Any] = [float(x) if math.isfinite(x) else _word(float(x)) for x in array.ravel()]
        packed = np.empty(array.size, dtype=object)
        packed[:] = flat
        return packed.reshape(array.shape).tolist()
    return array.tolist()


def _word(x: float) -> str:
    if math.isnan(x):
        return "nan"
    return "inf" if x > 0 else "-inf"


def _decimals(array: Array, digits: int = 3) -> int | None:
    """Decimals that keep so many digits of the largest entry; None: each entry in powers of ten."""
    return _places(array[np.isfinite(array)].astype(np.float64).ravel().tolist(), digits)


def _places(finite: Sequence[float], digits: int) -> int | None:
    largest = max(map(abs, finite), default=0.0)
    if largest == 0.0 or (largest < 1e5 and all(x == math.floor(x) for x in finite)):
        return 0
    if not 1e-2 <= largest < 1e4:
        return None
    return max(1, digits - 1 - math.floor(math.log10(largest)))


def _cell(x: float, decimals: int | None) -> str:
    if not math.isfinite(x):
        return _word(x)
    if x == 0.0:
        return "0"
    if decimals is None:
        return format(x, ".2g")
    text = format(x, f".{decimals}f")
    return text.lstrip("-") if float(text) == 0.0 else text
