"""Self-attention, taken apart: what each word asks, what it answers to, and the weighted mean of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, overload

import numpy as np

import tinyattn as ta
from tinyattn.errors import ShapeError, message
from tinyattn.functions import boolean, operand
from tinyattn.nn import init
from tinyattn.nn.module import Module, check_size, check_width
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tinyattn.functions import TensorLike

    Mask = NDArray[np.bool_]


class AttentionSteps(NamedTuple):
    """Everything that one attention computed, step by step; n words ask, m words answer.

    Attributes
    ----------
    q : Tensor, shape (..., n, d_k)
        Queries: what each word asks.
    k : Tensor, shape (..., m, d_k)
        Keys: what each word answers to.
    v : Tensor, shape (..., m, d_v)
        Values: what each word passes on.
    scores : Tensor, shape (..., n, m)
        How well key j answers query i.
    weights : Tensor, shape (..., n, m)
        The scores after softmax: each row sums to 1.
    output : Tensor, shape (..., n, d_v)
        For each word the mean of the values, weighted.
    keep : ndarray of bool, shape broadcast to (..., n, m), or None
        Who may attend to whom; None when everybody may.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    scores: Tensor
    weights: Tensor
    output: Tensor
    keep: Mask | None = None

    @property
    def masked_scores(self) -> np.ndarray:
        """The scores as softmax sees them: minus infinity where a key is hidden.  Not recorded."""
        seen = np.True_ if self.keep is None else self.keep
        return np.where(seen, self.scores.data, -np.inf)


@overload
def attention(
    q: TensorLike, k: TensorLike, v: TensorLike, *, keep: ArrayLike | None = ..., causal: bool = ...,
    scale: float | None = ..., return_steps: Literal[False] = ...,
) -> Tensor: ...  # fmt: skip
@overload
def attention(
    q: TensorLike, k: TensorLike, v: TensorLike, *, keep: ArrayLike | None = ..., causal: bool = ...,
    scale: float | None = ..., return_steps: Literal[True],
) -> AttentionSteps: ...  # fmt: skip


def attention(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    *,
    keep: ArrayLike | None = None,
    causal: bool = False,
    scale: float | None = None,
    return_steps: bool = False,
) -> Tensor | AttentionSteps:
    """Scaled dot-product attention: each query takes a weighted mean of the values (Vaswani et al. 2017).

    Each step is recorded by itself, so that it can be printed, drawn and checked.  The same in one op is
    `tinyattn.scaled_dot_product_attention`.

    Parameters
    ----------
    q : Tensor, shape (..., n, d_k)
        Queries, one row per position that asks.
    k : Tensor, shape (..., m, d_k)
        Keys, one row per position that answers.
    v : Tensor, shape (..., m, d_v)
        Values, what each position passes on.
    keep : bool array that broadcasts to (..., n, m), optional
        True where a query may attend to a key.  A query that may attend to nothing gets zeros.
    causal : bool
        Whether a query may only attend to keys up to its own position, aligned at the end.
    scale : float, optional
        The factor on the dot products, 1/√d_k by default.
    return_steps : bool
        Whether to give all steps instead of the output alone.

    Returns
    -------
    Tensor, shape (..., n, d_v), or AttentionSteps

    Examples
    --------
    >>> steps = attention([[0.0]], [[1.0], [2.0]], [[1.0], [3.0]], return_steps=True)
    >>> steps.weights
    tensor([[0.5, 0.5]], shape=(1, 2))
    >>> steps.output
    tensor([[2.]], shape=(1, 1))
    """
    q, k, v = (operand(x, "attention") for x in (q, k, v))
    _check_shapes(q, k, v)
    seen = _mask(keep, causal, q.shape[-2], k.shape[-2])
    k, v = _readable(k, seen), _readable(v, seen)
    d_k = ta.size_of(k, -1)  # recorded, so that formulas say √d_k and not 2
    scores = (q @ k.mT) * (1 / ta.sqrt(d_k) if scale is None else scale)  # (..., n, m)  does key j answer query i?
    weights = ta.softmax(scores, axis=-1, keep=seen)  # (..., n, m)  rows sum to 1
    output = weights @ v  # (..., n, d_v)  the values, weighted
    return AttentionSteps(q, k, v, scores, weights, output, seen) if return_steps else output


class SelfAttention(Module):
    """One head of self-attention: queries, keys and values are three linear views of the same rows.

    Parameters
    ----------
    d : int
        Width of the rows that come in.
    d_k, d_v : int, optional
        Width of queries and keys, and of values; d when not given.
    rng : numpy Generator, int or None
        Where the start of the weights comes from.

    Attributes
    ----------
    W_q, W_k : Tensor, shape (d, d_k)
    W_v : Tensor, shape (d, d_v)

    Examples
    --------
    >>> import tinyattn as ta
    >>> layer = ta.nn.SelfAttention(4, rng=0)
    >>> x = ta.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    >>> output = layer(x)
    >>> bool((output[0] == output[2]).all())
    True
    >>> layer.steps(x).weights.shape
    (3, 3)
    """

    def __init__(
        self, d: int, d_k: int | None = None, d_v: int | None = None, *, rng: init.Rng = None
    ) -> None:
        d = check_size(d, "SelfAttention", "d")
        d_k = check_size(d if d_k is None else d_k, "SelfAttention", "d_k")
        d_v = check_size(d if d_v is None else d_v, "SelfAttention", "d_v")
        source = init.generator(rng)
        self.W_q = ta.tensor(init.glorot(source, d, d_k), requires_grad=True, name="W_q")
        self.W_k = ta.tensor(init.glorot(source, d, d_k), requires_grad=True, name="W_k")
        self.W_v = ta.tensor(init.glorot(source, d, d_v), requires_grad=True, name="W_v")

    def forward(self, x: TensorLike, *, keep: ArrayLike | None = None, causal: bool = False) -> Tensor:
        """Give the output alone; see `steps`.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
        keep : bool array that broadcasts to (..., n, n), optional
        causal : bool

        Returns
        -------
        Tensor, shape (..., n, d_v)
        """
        return self._attend(x, keep, causal).output

    def steps(self, x: TensorLike, *, keep: ArrayLike | None = None, causal: bool = False) -> AttentionSteps:
        """Do the same as a call, and give every step.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
            One row per word.
        keep : bool array that broadcasts to (..., n, n), optional
            True where the word of the row may attend to the word of the column.
        causal : bool
            Whether a word may only attend to itself and the words before it.

        Returns
        -------
        AttentionSteps
        """
        with ta.scope(self.scope_name):
            return self._attend(x, keep, causal)

    def _attend(self, x: TensorLike, keep: ArrayLike | None, causal: bool) -> AttentionSteps:
        rows = operand(x, "SelfAttention")
        check_width(rows, self.W_q.shape[0], "SelfAttention")
        q = rows @ self.W_q  # (..., n, d_k)  what does each word ask?
        k = rows @ self.W_k  # (..., n, d_k)  what does each word answer to?
        v = rows @ self.W_v  # (..., n, d_v)  what does each word pass on?
        return attention(q, k, v, keep=keep, causal=causal, return_steps=True)

    def sizes(self) -> str:
        """The three widths."""
        return f"d={self.W_q.shape[0]}, d_k={self.W_k.shape[1]}, d_v={self.W_v.shape[1]}"


def _mask(keep: ArrayLike | None, causal: bool, n: int, m: int) -> Mask | None:
    """Who may attend to whom, or None when everybody may."""
    mask = None if keep is None else boolean(keep, "attention", "keep")
    if not causal:
        return mask
    triangle = np.tri(n, m, m - n, dtype=bool)
    return triangle if mask is None else triangle & mask


def _readable(x: Tensor, seen: Mask | None) -> Tensor:
    """Zeros in place of a row that is hidden from every query: whatever it holds, it must not be read."""
    if seen is None or np.isfinite(x.data).all():
        return x
    by_anybody = np.any(np.atleast_2d(seen), axis=-2, keepdims=True)  # (..., 1, m)
    return ta.where(np.swapaxes(by_anybody, -1, -2), x, 0.0)


def _check_shapes(q: Tensor, k: Tensor, v: Tensor) -> None:
    asked = f"attention(q: {q.shape}, k: {k.shape}, v: {v.shape})"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(message(f"{asked}: each needs a row per word.", "", "Write q[None] for one row."))
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(
            message(
                f"{asked}: a query has width {q.shape[-1]} and a key {k.shape[-1]}.",
                "Their dot product is the score, so they must be equally wide.",
                "Give W_q and W_k the same number of columns.",
            )
        )
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"{asked}: {k.shape[-2]} keys, but {v.shape[-2]} values; each key needs its value.")
