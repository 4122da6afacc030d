"""Scores: how well does key j answer query i?  The lecture asks whether the dot product may be an addition.

Each is called with queries, shape (..., n, d_q), and keys, shape (..., m, d_k), and gives (..., n, m).  A function or
module of one's own may stand in for any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import tinyattn as ta
from tinyattn.arguments import operand
from tinyattn.composed import named_by_caller
from tinyattn.errors import ArgumentError, message
from tinyattn.nn import init
from tinyattn.nn.module import Module, check_size, check_width
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from tinyattn.arguments import TensorLike

Score = Callable[[Tensor, Tensor], Tensor]


@named_by_caller
def dot(q: TensorLike, k: TensorLike) -> Tensor:
    """Score by the dot product q·k.

    Examples
    --------
    >>> dot([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]])
    tensor([[11.,  2.]], shape=(1, 2))
    """
    return ta.matmul(q, ta.matrix_transpose(k))  # (..., n, m)


@named_by_caller
def scaled_dot(q: TensorLike, k: TensorLike) -> Tensor:
    """Score by q·k / √d_k: of independent entries with variance 1 it has variance 1, for any d_k (Vaswani et al. 2017).

    Examples
    --------
    >>> scaled_dot([[1.0, 2.0, 0.0, 0.0]], [[3.0, 4.0, 0.0, 0.0]])
    tensor([[5.5]], shape=(1, 1))
    """
    d_k = ta.size_of(k, -1)  # recorded, so that formulas say √d_k and not 2
    return dot(q, k) * (1 / ta.sqrt(d_k))  # (..., n, m)


@named_by_caller
def kernel(q: TensorLike, k: TensorLike) -> Tensor:
    """Score by φ(q)·φ(k) with `feature_map`, which is never negative (Katharopoulos et al. 2020).

    Examples
    --------
    >>> kernel([[1.0, 0.0]], [[0.0, 0.0]])
    tensor([[3.]], shape=(1, 1))
    """
    return dot(feature_map(q), feature_map(k))  # (..., n, m)


@named_by_caller
def feature_map(x: TensorLike) -> Tensor:
    """Make every entry positive: x + 1 above 0, exp(x) below; smooth at 0.

    Examples
    --------
    >>> feature_map([0.0, 2.0])
    tensor([1., 3.], shape=(2,))
    """
    x = operand(x, "feature_map")
    above = x > 0
    below = ta.exp(ta.where(above, 0.0, x))  # shape of x; no overflow where it is not taken
    return ta.where(above, x + 1, below)  # shape of x


@named_by_caller
def additive(q: TensorLike, k: TensorLike, W_q: TensorLike, W_k: TensorLike, v: TensorLike) -> Tensor:
    """Score by v·tanh(q W_q + k W_k), a small network with one hidden layer (Bahdanau et al. 2015).

    Parameters
    ----------
    q : Tensor, shape (..., n, d_q)
    k : Tensor, shape (..., m, d_k)
    W_q : Tensor, shape (d_q, d)
    W_k : Tensor, shape (d_k, d)
    v : Tensor, shape (d,)

    Returns
    -------
    Tensor, shape (..., n, m)

    Examples
    --------
    >>> additive([[1.0]], [[0.0], [-1.0]], [[1.0]], [[1.0]], [1.0])
    tensor([[0.76159416, 0.        ]], shape=(1, 2))
    """
    asked = ta.expand_dims(ta.matmul(q, W_q), -2)  # (..., n, 1, d)
    answered = ta.expand_dims(ta.matmul(k, W_k), -3)  # (..., 1, m, d)
    hidden = ta.tanh(asked + answered)  # (..., n, m, d)  every pair
    return hidden @ v  # (..., n, m)


@named_by_caller
def general(q: TensorLike, k: TensorLike, W: TensorLike) -> Tensor:
    """Score by q W k with a matrix in between (Luong et al. 2015, section 3.1).

    Parameters
    ----------
    q : Tensor, shape (..., n, d_q)
    k : Tensor, shape (..., m, d_k)
    W : Tensor, shape (d_q, d_k)

    Returns
    -------
    Tensor, shape (..., n, m)

    Examples
    --------
    >>> general([[1.0, 0.0]], [[5.0]], [[2.0], [3.0]])
    tensor([[10.]], shape=(1, 1))
    """
    return dot(ta.matmul(q, W), k)  # (..., n, m)


class AdditiveScore(Module):
    """The score `additive` with weights that are learned; queries and keys may differ in width.

    Parameters
    ----------
    d_q, d_k : int
        Width of queries and keys.
    hidden : int, optional
        Width of the hidden layer; d_k when not given.
    rng : numpy Generator, int or None
        Where the start of the weights comes from.

    Attributes
    ----------
    W_q : Tensor, shape (d_q, hidden)
    W_k : Tensor, shape (d_k, hidden)
    v : Tensor, shape (hidden,)

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> score = ta.nn.AdditiveScore(4, 3, 5, rng=0)
    >>> score(np.ones((2, 4)), np.ones((6, 3))).shape
    (2, 6)
    """

    def __init__(self, d_q: int, d_k: int, hidden: int | None = None, *, rng: init.Rng = None) -> None:
        d_q, d_k = check_size(d_q, "AdditiveScore", "d_q"), check_size(d_k, "AdditiveScore", "d_k")
        hidden = check_size(d_k if hidden is None else hidden, "AdditiveScore", "hidden")
        source = init.generator(rng)
        self.W_q = ta.tensor(init.glorot(source, d_q, hidden), requires_grad=True, name="W_q")
        self.W_k = ta.tensor(init.glorot(source, d_k, hidden), requires_grad=True, name="W_k")
        self.v = ta.tensor(init.glorot(source, hidden, 1)[:, 0], requires_grad=True, name="v")

    def forward(self, q: TensorLike, k: TensorLike) -> Tensor:
        """Score every pair of query and key.

        Parameters
        ----------
        q : Tensor, shape (..., n, d_q)
        k : Tensor, shape (..., m, d_k)

        Returns
        -------
        Tensor, shape (..., n, m)
        """
        check_width(operand(q, "AdditiveScore"), self.W_q.shape[0], "AdditiveScore")
        check_width(operand(k, "AdditiveScore"), self.W_k.shape[0], "AdditiveScore")
        return additive(q, k, self.W_q, self.W_k, self.v)

    def sizes(self) -> str:
        """Widths of query, key and hidden layer."""
        return f"{self.W_q.shape[0]}, {self.W_k.shape[0]}, hidden={self.v.shape[0]}"


class GeneralScore(Module):
    """The score `general` with a matrix that is learned; queries and keys may differ in width.

    Parameters
    ----------
    d_q, d_k : int
        Width of queries and keys.
    rng : numpy Generator, int or None
        Where the start of the matrix comes from.

    Attributes
    ----------
    W : Tensor, shape (d_q, d_k)

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> ta.nn.GeneralScore(4, 3, rng=0)(np.ones((2, 4)), np.ones((6, 3))).shape
    (2, 6)
    """

    def __init__(self, d_q: int, d_k: int, *, rng: init.Rng = None) -> None:
        d_q, d_k = check_size(d_q, "GeneralScore", "d_q"), check_size(d_k, "GeneralScore", "d_k")
        self.W = ta.tensor(init.glorot(init.generator(rng), d_q, d_k), requires_grad=True, name="W")

    def forward(self, q: TensorLike, k: TensorLike) -> Tensor:
        """Score every pair of query and key.

        Parameters
        ----------
        q : Tensor, shape (..., n, d_q)
        k : Tensor, shape (..., m, d_k)

        Returns
        -------
        Tensor, shape (..., n, m)
        """
        check_width(operand(q, "GeneralScore"), self.W.shape[0], "GeneralScore")
        check_width(operand(k, "GeneralScore"), self.W.shape[1], "GeneralScore")
        return general(q, k, self.W)

    def sizes(self) -> str:
        """Widths of query and key."""
        return ", ".join(map(str, self.W.shape))


SCORES: dict[str, Score] = {"dot": dot, "scaled_dot": scaled_dot, "kernel": kernel}


def score_named(score: str | Score) -> Score:
    """A score by its name, or a function or module of one's own.

    Examples
    --------
    >>> score_named("dot") is dot
    True
    """
    if callable(score):
        return score
    if isinstance(score, str) and score in SCORES:
        return SCORES[score]
    raise ArgumentError(
        message(
            f"attention: score={score!r} is not known.",
            f"By name there are {', '.join(map(repr, SCORES))}; additive and general scores have weights.",
            "Write score=nn.AdditiveScore(d_q, d_k), nn.GeneralScore(d_q, d_k), or any f(q, k).",
        )
    )
