"""Positions: what tells two equal words apart.  Attention by itself does not see the order of its input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tinyattn as ta
from tinyattn.errors import ShapeError, message
from tinyattn.functions import operand
from tinyattn.nn import init
from tinyattn.nn.module import Module, check_size, check_width
from tinyattn.tensor import Tensor, describe

if TYPE_CHECKING:
    from tinyattn.functions import TensorLike


def sinusoidal(n: int, d: int, base: float = 10000.0) -> Any:
    """Waves of growing length: sin in even columns, cos in odd ones (Vaswani et al. 2017, section 3.5).

    Returns
    -------
    ndarray, shape (n, d)

    Examples
    --------
    >>> sinusoidal(2, 4).round(2)
    array([[0.  , 1.  , 0.  , 1.  ],
           [0.84, 0.54, 0.01, 1.  ]])
    """
    column = np.arange(d)
    angle = np.arange(n)[:, None] / base ** (2 * (column // 2) / d)  # (n, d)
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle))


class SinusoidalPosition(Module):
    """Add to each row the waves of its position; nothing is learned, and any length is possible.

    Parameters
    ----------
    d : int
        Width of a row.
    base : float
        The longest wave has a length of 2 pi times this.

    Examples
    --------
    >>> import tinyattn as ta
    >>> position = ta.nn.SinusoidalPosition(2)
    >>> y = position([[0.0, 0.0], [0.0, 0.0]])
    >>> bool((y[0] == y[1]).all())
    False
    """

    def __init__(self, d: int, base: float = 10000.0) -> None:
        self.d, self.base = check_size(d, "SinusoidalPosition", "d"), base

    def forward(self, x: TensorLike) -> Tensor:
        """Add the positions.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)

        Returns
        -------
        Tensor, shape (..., n, d)
        """
        rows = _rows(x, self.d, "SinusoidalPosition")
        waves = sinusoidal(rows.shape[-2], self.d, self.base)
        positions = ta.tensor(waves.astype(rows.dtype), name="positions")  # (n, d)
        return rows + positions

    def sizes(self) -> str:
        """The width."""
        return f"d={self.d}"


class LearnedPosition(Module):
    """Add to each row a vector that belongs to its position and is learned.

    Parameters
    ----------
    length : int
        The most positions there can be.
    d : int
        Width of a row.
    scale : float
        Standard deviation of the start.
    rng : numpy Generator, int or None
        Where the start comes from.

    Attributes
    ----------
    P : Tensor, shape (length, d)

    Examples
    --------
    >>> import tinyattn as ta
    >>> position = ta.nn.LearnedPosition(10, 2, rng=0)
    >>> y = position([[0.0, 0.0], [0.0, 0.0]])
    >>> bool((y == position.P[:2]).all())
    True
    """

    def __init__(self, length: int, d: int, scale: float = 1.0, rng: init.Rng = None) -> None:
        length, d = check_size(length, "LearnedPosition", "length"), check_size(d, "LearnedPosition", "d")
        start = init.normal(init.generator(rng), (length, d), scale)
        self.P = ta.tensor(start, requires_grad=True, name="P")

    def forward(self, x: TensorLike) -> Tensor:
        """Add the positions.

        Parameters
        ----------
        x : Tensor, shape (..., n, d), n at most length

        Returns
        -------
        Tensor, shape (..., n, d)
        """
        length, d = self.P.shape
        rows = _rows(x, d, "LearnedPosition")
        n = rows.shape[-2]
        if n > length:
            raise ShapeError(
                message(
                    f"LearnedPosition({describe(rows)}): {n} positions, but only {length} have a vector.",
                    "A learned position exists only for the lengths that were planned.",
                    f"Make it longer, LearnedPosition({n}, {d}), or take SinusoidalPosition({d}).",
                )
            )
        positions = self.P[:n]  # (n, d)
        return rows + positions

    def sizes(self) -> str:
        """How many positions, and the width."""
        return ", ".join(map(str, self.P.shape))


def _rows(x: TensorLike, d: int, layer: str) -> Tensor:
    rows = operand(x, layer)
    rows = rows if rows.dtype.kind == "f" else ta.astype(rows, float)
    check_width(rows, d, layer)
    if rows.ndim < 2:
        raise ShapeError(f"{layer}({describe(rows)}): one row a position is needed, shape (..., n, {d}).")
    return rows
