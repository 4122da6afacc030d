"""Positions: what tells two equal words apart.  Attention by itself does not see the order of its input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tinyattn as ta
from tinyattn.arguments import known_arguments, one_number, operand
from tinyattn.errors import ArgumentError, ShapeError, message
from tinyattn.names import describe
from tinyattn.nn import init
from tinyattn.nn.masks import distances
from tinyattn.nn.module import Module, check_size, check_width
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from tinyattn.arguments import TensorLike


@known_arguments
def sinusoidal(n: int, d: int, base: float = 10000.0, before: int = 0) -> Any:
    """Waves of growing length: sin in even columns, cos in odd ones (Vaswani et al. 2017, section 3.5).

    Parameters
    ----------
    n, d : int
        How many positions, and the width.
    base : float
        The longest wave has a length of 2 pi times this.
    before : int
        The first position.

    Returns
    -------
    ndarray, shape (n, d)

    Examples
    --------
    >>> sinusoidal(2, 4).round(2)
    array([[0.  , 1.  , 0.  , 1.  ],
           [0.84, 0.54, 0.01, 1.  ]])
    """
    n, d = check_size(n, "sinusoidal", "n", least=0, most=_MOST), check_size(d, "sinusoidal", "d", most=_MOST)
    before, base = _checked_before(before, "sinusoidal"), _checked_base(base, "sinusoidal")
    column = np.arange(d)
    angle = np.arange(before, before + n)[:, None] / base ** (2 * (column // 2) / d)  # (n, d)
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
        self.d, self.base = check_size(d, "SinusoidalPosition", "d"), _checked_base(base, "SinusoidalPosition")

    def forward(self, x: TensorLike, before: int = 0) -> Tensor:
        """Add the positions.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
        before : int
            How many positions came before the first row.

        Returns
        -------
        Tensor, shape (..., n, d)
        """
        rows, before = _rows(x, self.d, "SinusoidalPosition"), _checked_before(before, "SinusoidalPosition")
        waves = sinusoidal(rows.shape[-2], self.d, self.base, before)
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

    def forward(self, x: TensorLike, before: int = 0) -> Tensor:
        """Add the positions.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
        before : int
            How many positions came before the first row; with n, at most length.

        Returns
        -------
        Tensor, shape (..., n, d)
        """
        length, d = self.P.shape
        rows = _rows(x, d, "LearnedPosition")
        n = _checked_before(before, "LearnedPosition") + rows.shape[-2]
        if n > length:
            raise ShapeError(
                message(
                    f"LearnedPosition({describe(rows)}): {n} positions, but only {length} have a vector.",
                    "A learned position exists only for the lengths that were planned.",
                    f"Make it longer, LearnedPosition({n}, {d}), or take SinusoidalPosition({d}).",
                )
            )
        positions = self.P[before:n]  # (n, d)
        return rows + positions

    def sizes(self) -> str:
        """How many positions, and the width."""
        return ", ".join(map(str, self.P.shape))


class RotaryPosition(Module):
    """Turn pairs of columns of queries and keys by an angle that grows with the position (Su et al. 2021).

    The dot product of two turned vectors depends on how far apart they stand, not on where.  Nothing is learned.

    Parameters
    ----------
    d : int
        Width of a query or key; even.
    base : float
        The slowest pair turns by about 1/base in each position.

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> rotary = ta.nn.RotaryPosition(2)
    >>> q, k = rotary([[1.0, 0.0]] * 4), rotary([[0.5, 2.0]] * 4)
    >>> scores = (q @ k.mT).data.round(6)
    >>> bool(scores[0, 1] == scores[1, 2] == scores[2, 3])
    True
    """

    def __init__(self, d: int, base: float = 10000.0) -> None:
        self.d, self.base = check_size(d, "RotaryPosition", "d"), _checked_base(base, "RotaryPosition")
        if d % 2:
            raise ShapeError(f"RotaryPosition: width {d} is odd, but columns are turned in pairs.")

    def forward(self, x: TensorLike, before: int = 0) -> Tensor:
        """Turn each row.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
        before : int
            How many positions came before the first row.

        Returns
        -------
        Tensor, shape (..., n, d)
        """
        rows = _rows(x, self.d, "RotaryPosition")
        before = _checked_before(before, "RotaryPosition")
        speed = self.base ** (-np.arange(0, self.d, 2) / self.d)  # (d/2,)
        angle = np.arange(before, before + rows.shape[-2])[:, None] * speed  # (n, d/2)
        cos = ta.tensor(np.cos(angle).astype(rows.dtype), name="cos")  # (n, d/2)
        sin = ta.tensor(np.sin(angle).astype(rows.dtype), name="sin")  # (n, d/2)
        even, odd = rows[..., 0::2], rows[..., 1::2]  # (..., n, d/2)  the two of each pair
        turned = ta.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1)  # (..., n, d/2, 2)
        return ta.reshape(turned, rows.shape)  # (..., n, d)

    def sizes(self) -> str:
        """The width."""
        return f"d={self.d}"


class DistanceBias(Module):
    """A number for each distance between query and key, for each head, to be added to the scores.

    Parameters
    ----------
    heads : int
        How many heads.
    reach : int, optional
        With it, the numbers are learned, one for each distance from -reach to reach, what is farther counts as that
        far.  Without it, head i takes away 2^(-8 i/h) for each word in between, i = 1, ..., h (Press et al. 2022).

    Attributes
    ----------
    table : Tensor, shape (h, 2·reach + 1), or None

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.nn.DistanceBias(1)(2, 3).data * 256
    array([[[-1., -0., -1.],
            [-2., -1., -0.]]])
    """

    def __init__(self, heads: int, reach: int | None = None) -> None:
        self.heads = check_size(heads, "DistanceBias", "heads")
        self.reach = None if reach is None else check_size(reach, "DistanceBias", "reach")
        zeros = None if self.reach is None else init.equal(0.0, self.heads * (2 * self.reach + 1))
        learned = None if zeros is None else zeros.reshape(self.heads, -1)
        self.table = None if learned is None else ta.tensor(learned, requires_grad=True, name="table")

    def forward(self, n: int, m: int | None = None) -> Tensor:
        """Give the bias of n queries and m keys, aligned at the end.

        Returns
        -------
        Tensor, shape (h, n, m)
        """
        far = distances(n, m)  # (n, m)
        if self.table is not None and self.reach is not None:
            return self.table[:, np.clip(far, -self.reach, self.reach) + self.reach]  # (h, n, m)
        slopes = 2.0 ** (-8 * np.arange(1, self.heads + 1) / self.heads)  # (h,)
        return ta.tensor(-slopes[:, None, None] * np.abs(far), name="distance")  # (h, n, m)

    def sizes(self) -> str:
        """How many heads, and the reach."""
        return f"heads={self.heads}" + ("" if self.reach is None else f", reach={self.reach}")


_MOST = 1 << 30


def _checked_before(before: int, layer: str) -> int:
    return check_size(before, layer, "before", least=0, most=_MOST)


def _checked_base(base: float, layer: str) -> float:
    number = one_number(base, layer, "base")
    if not 0 < number < np.inf:
        raise ArgumentError(f"{layer}: base={base!r} must be a number above 0; waves grow longer by its power.")
    return number


def _rows(x: TensorLike, d: int, layer: str) -> Tensor:
    rows = operand(x, layer)
    rows = rows if rows.dtype.kind == "f" else ta.astype(rows, float)
    check_width(rows, d, layer)
    if rows.ndim < 2:
        raise ShapeError(f"{layer}({describe(rows)}): one row a position is needed, shape (..., n, {d}).")
    return rows
