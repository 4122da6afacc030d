"""Layers that look at one token at a time: Linear and Embedding.  Tokens are rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tinyattn as ta
from tinyattn.functions import operand
from tinyattn.nn import init
from tinyattn.nn.module import Module, check_size, check_width
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tinyattn.functions import TensorLike


class Linear(Module):
    """Multiply each row with a matrix and add a bias: ``x @ W + b``.

    Parameters
    ----------
    n_in, n_out : int
        Width of a row before and after.
    bias : bool
        Whether there is a b.
    rng : numpy Generator, int or None
        Where W's start comes from; see `tinyattn.nn.init.generator`.

    Attributes
    ----------
    W : Tensor, shape (n_in, n_out)
        Starts from Glorot's uniform numbers.
    b : Tensor, shape (n_out,), or None
        Starts from zeros.

    Examples
    --------
    >>> import tinyattn as ta
    >>> layer = ta.nn.Linear(2, 3, rng=0)
    >>> y = layer([[1.0, 2.0], [3.0, 4.0]])
    >>> y.shape
    (2, 3)
    >>> layer
    Linear(2, 3)
    """

    def __init__(self, n_in: int, n_out: int, bias: bool = True, rng: init.Rng = None) -> None:
        n_in, n_out = check_size(n_in, "Linear", "n_in"), check_size(n_out, "Linear", "n_out")
        start = init.glorot(init.generator(rng), n_in, n_out)
        self.W = ta.tensor(start, requires_grad=True, name="W")
        self.b = ta.tensor([0.0] * n_out, requires_grad=True, name="b") if bias else None

    def forward(self, x: TensorLike) -> Tensor:
        """Map rows of width n_in to rows of width n_out.

        Parameters
        ----------
        x : Tensor, shape (..., n_in)

        Returns
        -------
        Tensor, shape (..., n_out)
        """
        rows = operand(x, "Linear")
        check_width(rows, self.W.shape[0], "Linear")
        product = rows @ self.W  # (..., n_out)
        return product if self.b is None else product + self.b

    def sizes(self) -> str:
        """The two widths."""
        return ", ".join(map(str, self.W.shape)) + ("" if self.b is not None else ", bias=False")


class Embedding(Module):
    """A table with one vector for each word number; learning changes the vectors.

    Parameters
    ----------
    words : int
        How many word numbers there are: 0 to words - 1.
    d : int
        Width of a vector.
    scale : float
        Standard deviation of the start.
    rng : numpy Generator, int or None
        Where the start comes from.

    Attributes
    ----------
    table : Tensor, shape (words, d)

    Examples
    --------
    >>> import tinyattn as ta
    >>> embedding = ta.nn.Embedding(10, 4, rng=0)
    >>> x = embedding([3, 1, 3])
    >>> x.shape, bool((x[0] == x[2]).all())
    ((3, 4), True)
    """

    def __init__(self, words: int, d: int, scale: float = 1.0, rng: init.Rng = None) -> None:
        words, d = check_size(words, "Embedding", "words"), check_size(d, "Embedding", "d")
        start = init.normal(init.generator(rng), (words, d), scale)
        self.table = ta.tensor(start, requires_grad=True, name="table")

    def forward(self, ids: ArrayLike) -> Tensor:
        """Look the vectors up.

        Parameters
        ----------
        ids : int array, shape (...)

        Returns
        -------
        Tensor, shape (..., d)
        """
        return ta.embedding(self.table, ids)

    def sizes(self) -> str:
        """How many words, and the width."""
        return ", ".join(map(str, self.table.shape))
