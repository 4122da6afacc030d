"""Attention at a cost that grows with n, not with n²: the kernel trick, and Fastformer's global query and key."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import tinyattn as ta
from tinyattn.arguments import boolean, known_arguments, operand, yes_or_no
from tinyattn.composed import named_by_caller
from tinyattn.errors import ArgumentError, ShapeError, message
from tinyattn.nn import init
from tinyattn.nn.apart import project, rows_apart
from tinyattn.nn.attention import attention
from tinyattn.nn.module import Module, check_size, check_width
from tinyattn.nn.multi_head import merge_heads, split_heads, width_of_head
from tinyattn.nn.scores import feature_map
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tinyattn.arguments import TensorLike

    Mask = NDArray[np.bool_]


class LinearAttention(Module):
    """Self-attention with the score φ(q)·φ(k), multiplied from the other side (Katharopoulos et al. 2020).

    (φ(q) φ(k)ᵀ) v = φ(q) (φ(k)ᵀ v): the matrix in brackets on the right has d_k rows, however many words there are.
    Causal attention is computed with all weights, as `attention` does with ``normalise="linear"``.

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
    >>> import numpy as np, tinyattn as ta
    >>> x, layer = np.eye(3), ta.nn.LinearAttention(3, rng=0)
    >>> q, k, v = x @ layer.W_q, x @ layer.W_k, x @ layer.W_v
    >>> by_weights = ta.nn.attention(q, k, v, normalise="linear")
    >>> bool(np.allclose(layer(x).data, by_weights.data, rtol=0, atol=1e-15))
    True
    """

    def __init__(self, d: int, d_k: int | None = None, d_v: int | None = None, *, rng: init.Rng = None) -> None:
        d = check_size(d, "LinearAttention", "d")
        d_k = check_size(d if d_k is None else d_k, "LinearAttention", "d_k")
        d_v = check_size(d if d_v is None else d_v, "LinearAttention", "d_v")
        source = init.generator(rng)
        self.W_q = ta.tensor(init.glorot(source, d, d_k), requires_grad=True, name="W_q")
        self.W_k = ta.tensor(init.glorot(source, d, d_k), requires_grad=True, name="W_k")
        self.W_v = ta.tensor(init.glorot(source, d, d_v), requires_grad=True, name="W_v")

    def forward(self, x: TensorLike, *, keep: ArrayLike | None = None, causal: bool = False) -> Tensor:
        """Mix the values.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
        keep : bool array, shape (..., n), optional
            True where there is a word; padding is not read.
        causal : bool
            Whether a word may only attend to itself and the words before it.

        Returns
        -------
        Tensor, shape (..., n, d_v)
        """
        rows = _rows(x, self.W_q.shape[0], "LinearAttention")
        word = _words(keep, rows, "LinearAttention")
        q = project(rows, self.W_q)  # (..., n, d_k)
        k = project(rows, self.W_k)  # (..., n, d_k)
        v = project(rows, self.W_v)  # (..., n, d_v)
        if yes_or_no(causal, "LinearAttention", "causal"):
            return attention(q, k, v, normalise="linear", keep=None if word is None else word.mT, causal=True)
        (q, k, v), lost = rows_apart(q, k, v, seen=None if word is None else word.mT)
        phi_q = feature_map(q)  # (..., n, d_k)
        phi_k = feature_map(k)  # (..., n, d_k)
        if word is not None:
            phi_k = ta.where(word, phi_k, 0.0)  # (..., n, d_k)  padding counts for nothing
        summary = phi_k.mT @ v  # (..., d_k, d_v)  all words in one matrix, of the same size for any n
        total = phi_q @ ta.sum(phi_k, axis=-2, keepdims=True).mT  # (..., n, 1)  what the weights of a row sum to
        nothing = total == 0  # (..., n, 1)
        output = phi_q @ summary / (ta.where(nothing, 1.0, total) if np.any(nothing) else total)  # (..., n, d_v)
        return output if lost is None else ta.where(lost, np.nan, output)

    def sizes(self) -> str:
        """The three widths."""
        return f"d={self.W_q.shape[0]}, d_k={self.W_k.shape[1]}, d_v={self.W_v.shape[1]}"


class FastformerSteps(NamedTuple):
    """What one Fastformer layer computed, in the words of the paper; several heads have an axis: (..., h, n).

    Attributes
    ----------
    alpha : Tensor, shape (..., n)
        How much each query counts in the global query.
    global_query : Tensor, shape (..., 1, d_k)
    p : Tensor, shape (..., n, d_k)
        Each key times the global query, entry by entry.
    beta : Tensor, shape (..., n)
        How much each of these counts in the global key.
    global_key : Tensor, shape (..., 1, d_k)
    output : Tensor, shape (..., n, h·d_k)

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> steps = ta.nn.Fastformer(4, rng=0).steps(np.ones((3, 4)))
    >>> steps.alpha.shape, steps.global_query.shape, steps.p.shape, steps.beta.shape, steps.global_key.shape
    ((3,), (1, 4), (3, 4), (3,), (1, 4))
    """

    alpha: Tensor
    global_query: Tensor
    p: Tensor
    beta: Tensor
    global_key: Tensor
    output: Tensor


class Fastformer(Module):
    """Additive attention (Wu et al. 2021): all queries in one, all keys in one, and no word looks at a single other.

    The lecture's "may the dot product be an addition" points here; Bahdanau's `AdditiveScore` is something else.

    Parameters
    ----------
    d : int
        Width of the rows that come in.
    d_k : int, optional
        Width of queries, keys and values in each head; d / heads when not given.
    heads : int
        How many; each has a global query and a global key of its own, and W_u mixes what they found.
    rng : numpy Generator, int or None
        Where the start of the weights comes from.

    Attributes
    ----------
    W_q, W_k, W_v : Tensor, shape (d, h·d_k)
    w_alpha, w_beta : Tensor, shape (d_k,), with several heads (h, 1, d_k)
    W_u : Tensor, shape (h·d_k, h·d_k)

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> layer = ta.nn.Fastformer(4, rng=0)
    >>> layer(np.ones((3, 4))).shape
    (3, 4)
    >>> layer.steps(np.ones((2, 4))).alpha.tolist()
    [0.5, 0.5]
    >>> ta.nn.Fastformer(4, heads=2, rng=0).steps(np.ones((3, 4))).global_query.shape
    (2, 1, 2)
    """

    def __init__(self, d: int, d_k: int | None = None, *, heads: int = 1, rng: init.Rng = None) -> None:
        d, self.heads = check_size(d, "Fastformer", "d"), check_size(heads, "Fastformer", "heads")
        d_k = width_of_head(d, self.heads, "Fastformer", "d_k=...") if d_k is None else d_k
        d_k = check_size(d_k, "Fastformer", "d_k")
        source, width = init.generator(rng), self.heads * d_k
        self.W_q = ta.tensor(init.glorot(source, d, width), requires_grad=True, name="W_q")
        self.W_k = ta.tensor(init.glorot(source, d, width), requires_grad=True, name="W_k")
        self.W_v = ta.tensor(init.glorot(source, d, width), requires_grad=True, name="W_v")
        self.w_alpha = ta.tensor(_vectors(source, self.heads, d_k), requires_grad=True, name="w_alpha")
        self.w_beta = ta.tensor(_vectors(source, self.heads, d_k), requires_grad=True, name="w_beta")
        self.W_u = ta.tensor(init.glorot(source, width, width), requires_grad=True, name="W_u")

    def forward(self, x: TensorLike, *, keep: ArrayLike | None = None) -> Tensor:
        """Give the output alone; see `steps`.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
        keep : bool array, shape (..., n), optional

        Returns
        -------
        Tensor, shape (..., n, h·d_k)
        """
        return self._attend(x, keep).output

    @known_arguments
    def steps(self, x: TensorLike, *, keep: ArrayLike | None = None) -> FastformerSteps:
        """Do the same as a call, and give every step.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
        keep : bool array, shape (..., n), optional
            True where there is a word; padding is not read.

        Returns
        -------
        FastformerSteps
        """
        with ta.scope(self.scope_name):
            return self._attend(x, keep)

    def _attend(self, x: TensorLike, keep: ArrayLike | None) -> FastformerSteps:
        rows = _rows(x, self.W_q.shape[0], "Fastformer")
        word = _words(keep, rows, "Fastformer")
        (rows, _, _), lost = rows_apart(rows, rows, rows, seen=None if word is None else word.mT)
        seen = None if word is None else word[..., 0] if self.heads == 1 else word.mT  # (..., n) or (..., 1, n)
        q = _in_heads(rows @ self.W_q, self.heads)  # (..., n, d_k), several heads (..., h, n, d_k)
        k = _in_heads(rows @ self.W_k, self.heads)  # (..., n, d_k)
        v = _in_heads(rows @ self.W_v, self.heads)  # (..., n, d_k)
        root = ta.sqrt(ta.size_of(k, -1))  # ()
        alpha = ta.softmax(_along(q, self.w_alpha) / root, keep=seen)  # (..., n)  how much does each query count?
        global_query = ta.expand_dims(alpha, -2) @ q  # (..., 1, d_k)  all queries in one
        p = k * global_query  # (..., n, d_k)
        beta = ta.softmax(_along(p, self.w_beta) / root, keep=seen)  # (..., n)
        global_key = ta.expand_dims(beta, -2) @ p  # (..., 1, d_k)  all keys in one
        r = _joined(v * global_key, self.heads) @ self.W_u  # (..., n, h·d_k)
        output = r + _joined(q, self.heads)  # (..., n, h·d_k)
        if lost is not None:
            output = ta.where(lost, np.nan, output)  # (..., n, h·d_k)
        return FastformerSteps(alpha, global_query, p, beta, global_key, output)

    def sizes(self) -> str:
        """The two widths, and how many heads."""
        several = "" if self.heads == 1 else f", heads={self.heads}"
        return f"d={self.W_q.shape[0]}, d_k={self.w_alpha.shape[-1]}{several}"


def _vectors(source: np.random.Generator, heads: int, d_k: int) -> NDArray[np.float64]:
    """One vector, shape (d_k,), or one for each head, shape (h, 1, d_k)."""
    each = np.stack([init.glorot(source, d_k, 1).T for _ in range(heads)])
    return each[0, 0] if heads == 1 else each


@named_by_caller
def _in_heads(x: Tensor, heads: int) -> Tensor:
    return x if heads == 1 else split_heads(x, heads)


@named_by_caller
def _joined(x: Tensor, heads: int) -> Tensor:
    return x if heads == 1 else merge_heads(x)


@named_by_caller
def _along(x: Tensor, w: Tensor) -> Tensor:
    """The dot product of each row with w, in each head with its own: (..., n, d_k) becomes (..., n)."""
    return x @ w if w.ndim == 1 else ta.sum(x * w, axis=-1)  # (..., n), several heads (..., h, n)


def _rows(x: TensorLike, d: int, layer: str) -> Tensor:
    rows = operand(x, layer)
    check_width(rows, d, layer)
    if rows.ndim < 2:
        raise ShapeError(f"{layer}: x of shape {rows.shape} needs a row per word, shape (..., n, {d}).")
    return rows


def _words(keep: ArrayLike | None, rows: Tensor, layer: str) -> Mask | None:
    """Which rows are words, as a column: shape (..., n, 1)."""
    if keep is None:
        return None
    words = boolean(keep, layer, "keep")
    if words.shape[-1:] != rows.shape[-2:-1] or words.ndim > rows.ndim - 1:
        raise ArgumentError(
            message(
                f"{layer}: keep has shape {words.shape}, and x {rows.shape}.",
                "It says for each row whether it is a word; there are no weights between two words to be hidden.",
                f"Give keep with shape {rows.shape[:-1]}.",
            )
        )
    return words[..., None]
