"""Self-attention, taken apart: score, mask, weights, weighted mean; each part can be exchanged by name.

What stands in for the parts is in `scores`, `normalise` and `masks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, overload

import numpy as np

import tinyattn as ta
from tinyattn.arguments import as_array, known_arguments, operand, values_of, yes_or_no
from tinyattn.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from tinyattn.nn import init
from tinyattn.nn.apart import project, rows_apart
from tinyattn.nn.masks import visible
from tinyattn.nn.module import Module, check_size, check_width
from tinyattn.nn.normalise import Normalise, normalise_named
from tinyattn.nn.scores import SCORES, AdditiveScore, GeneralScore, Score, score_named
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tinyattn.arguments import TensorLike

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
        How well key j answers query i, with the bias where there is one.
    weights : Tensor, shape (..., n, m)
        The scores after softmax, or what stands in for it: each row sums to 1.
    output : Tensor, shape (..., n, d_v)
        For each word the mean of the values, weighted.
    keep : ndarray of bool, shape broadcast to (..., n, m), or None
        Who may attend to whom; None when everybody may.

    Examples
    --------
    >>> steps = attention([[0.0]], [[1.0], [2.0]], [[1.0], [3.0]], return_steps=True)
    >>> steps.scores.tolist(), steps.weights.tolist(), steps.output.tolist()
    ([[0.0, 0.0]], [[0.5, 0.5]], [[2.0]])
    """

    q: Tensor
    k: Tensor
    v: Tensor
    scores: Tensor
    weights: Tensor
    output: Tensor
    keep: Mask | None = None

    @property
    def masked_scores(self) -> Tensor:
        """The scores as softmax sees them: minus infinity where a key is hidden; the scores where nothing is.

        Softmax takes the mask itself, so that minus infinity enters no computation: this stands beside its way.

        Examples
        --------
        >>> steps = attention([[0.0]], [[1.0], [2.0]], [[1.0], [3.0]], keep=[True, False], return_steps=True)
        >>> steps.masked_scores
        tensor([[  0., -inf]], shape=(1, 2))
        """
        if self.keep is None:
            return self.scores
        masked_scores = ta.where(self.keep, self.scores, -np.inf)  # (..., n, m)
        return masked_scores


@overload
def attention(
    q: TensorLike, k: TensorLike, v: TensorLike, *, score: str | Score | None = ..., normalise: str | Normalise = ...,
    keep: ArrayLike | None = ..., bias: TensorLike | None = ..., causal: bool = ..., scale: float | None = ...,
    return_steps: Literal[False] = ...,
) -> Tensor: ...  # fmt: skip
@overload
def attention(
    q: TensorLike, k: TensorLike, v: TensorLike, *, score: str | Score | None = ..., normalise: str | Normalise = ...,
    keep: ArrayLike | None = ..., bias: TensorLike | None = ..., causal: bool = ..., scale: float | None = ...,
    return_steps: Literal[True],
) -> AttentionSteps: ...  # fmt: skip


@known_arguments
def attention(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    *,
    score: str | Score | None = None,
    normalise: str | Normalise = "softmax",
    keep: ArrayLike | None = None,
    bias: TensorLike | None = None,
    causal: bool = False,
    scale: float | None = None,
    return_steps: bool = False,
) -> Tensor | AttentionSteps:
    """Attention: each query takes a weighted mean of the values (Vaswani et al. 2017).

    Each step is recorded by itself, so that it can be printed, drawn and checked.  The usual one as a single op is
    `tinyattn.scaled_dot_product_attention`.

    Parameters
    ----------
    q : Tensor, shape (..., n, d_k)
        Queries, one row per position that asks.
    k : Tensor, shape (..., m, d_k)
        Keys, one row per position that answers.
    v : Tensor, shape (..., m, d_v)
        Values, what each position passes on.
    score : "scaled_dot", "dot", "kernel", or a callable f(q, k), optional
        How well a key answers a query; "scaled_dot" by default, "kernel" with ``normalise="linear"``.
        `AdditiveScore` and `GeneralScore` are such callables.
    normalise : "softmax", "relu", "relu_raw", "linear", or a callable f(scores, keep)
        How scores become weights: see `tinyattn.nn.normalise`.
    keep : bool array that broadcasts to (..., n, m), optional
        True where a query may attend to a key.  A query that may attend to nothing gets zeros, and what is hidden
        from a query is not read for it, whatever it holds.  See `tinyattn.nn.masks`.
    bias : Tensor that broadcasts to (..., n, m), optional
        Added to the scores: a number per distance, say.  Minus infinity hides the key.
    causal : bool
        Whether a query may only attend to keys up to its own position, aligned at the end.
    scale : float, optional
        The factor on the scores; by default 1/√d_k with "scaled_dot", otherwise 1.
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

    With relu for softmax:

    >>> attention([[1.0]], [[1.0], [2.0]], [[1.0], [3.0]], score="dot", normalise="relu")
    tensor([[3.5]], shape=(1, 1))
    """
    given = q, k, v = operand(q, "attention"), operand(k, "attention"), operand(v, "attention")
    bias = bias if bias is None or isinstance(bias, (Tensor, float, int)) else as_array(bias, name="attention: bias")
    match, weigh = _parts_named(score, normalise, bias, scale)
    _check_shapes(q, k, v, match)
    seen = visible(keep, causal, q.shape[-2], k.shape[-2], values_of(bias))
    (q, k, v), lost = rows_apart(q, k, v, seen=seen)
    scores = match(q, k)  # (..., n, m)  how well does key j answer query i?
    _check_part(scores, q, k, "score")
    if scale is not None:
        scores = scores * scale  # (..., n, m)
    if bias is not None:
        scores = scores + bias  # (..., n, m)  a number for each pair, whatever the words are
    weights = weigh(scores, seen)  # (..., n, m)  hidden keys get 0
    _check_part(weights, q, k, "normalise")
    output = weights @ v  # (..., n, d_v)  the values, weighted
    if lost is not None:
        output = ta.where(lost, np.nan, output)  # a query that looks at nan gets nan, the others do not
    whole = yes_or_no(return_steps, "attention", "return_steps")
    return AttentionSteps(*given, scores, weights, output, seen) if whole else output


def fused_attention(q: Tensor, k: Tensor, v: Tensor, *, keep: ArrayLike | None = None, causal: bool = False) -> Tensor:
    """The usual attention in one op: faster, but without steps to look at.  Hidden rows are not read here either.

    Examples
    --------
    >>> import tinyattn as ta
    >>> q, k, v = ta.tensor([[0.0]]), ta.tensor([[1.0], [2.0]]), ta.tensor([[1.0], [3.0]])
    >>> fused_attention(q, k, v).tolist()
    [[2.0]]
    """
    seen = visible(keep, causal, q.shape[-2], k.shape[-2])
    (q, k, v), lost = rows_apart(q, k, v, seen=seen)
    output = ta.scaled_dot_product_attention(q, k, v, keep=keep, causal=causal)  # (..., n, d_v)
    return output if lost is None else ta.where(lost, np.nan, output)


def _parts_named(
    score: str | Score | None, normalise: str | Normalise, bias: object, scale: float | None
) -> tuple[Score, Normalise]:
    """The two exchangeable parts; a scale of one's own takes the place of 1/√d_k."""
    _refuse_what_is_no_part(score, normalise)
    if score is None:
        score = "kernel" if normalise == "linear" else "scaled_dot"
    if scale is not None and (np.shape(values_of(scale)) or np.asarray(values_of(scale)).dtype.kind not in "fiu"):
        raise ArgumentError(f"attention: scale={scale!r} must be one number, the factor on all scores.")
    if normalise == "linear":
        check_linear(score, bias)
    return score_named("dot" if score == "scaled_dot" and scale is not None else score), normalise_named(normalise)


def _refuse_what_is_no_part(score: str | Score | None, normalise: str | Normalise) -> None:
    """What is neither a name nor a function cannot be compared with names."""
    for what, part in (("score", score), ("normalise", normalise)):
        if isinstance(part, type):
            raise ArgumentTypeError(f"attention: {what} is the class {part.__name__}; write {part.__name__}(...).")
    if score is not None and not isinstance(score, str):
        score_named(score)
    if not isinstance(normalise, str):
        normalise_named(normalise)


def check_linear(score: str | Score, bias: object) -> None:
    """Refuse what could make a score negative, where the sum of a row divides."""
    if score in ("dot", "scaled_dot") or bias is not None:
        raise ArgumentError(
            message(
                f"attention: normalise='linear' with {'a bias' if bias is not None else f'score={score!r}'}.",
                "It divides by the sum of a row, so no score may be negative.",
                "Leave score and bias away, which gives score='kernel'.",
            )
        )


class SelfAttention(Module):
    """One head of self-attention: queries, keys and values are three linear views of the same rows.

    Parameters
    ----------
    d : int
        Width of the rows that come in.
    d_k, d_v : int, optional
        Width of queries and keys, and of values; d when not given.
    score : "scaled_dot", "dot", "kernel", "additive", "general", or a callable f(q, k), optional
        How well a key answers a query.  "additive" and "general" bring weights of their own, in the part ``score``.
    normalise : "softmax", "relu", "relu_raw", "linear", or a callable f(scores, keep)
        How scores become weights.
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
    >>> ta.nn.SelfAttention(4, score="additive", normalise="relu", rng=0)
    SelfAttention(d=4, d_k=4, d_v=4, normalise=relu
      score: AdditiveScore(4, 4, hidden=4)
    )
    """

    def __init__(
        self,
        d: int,
        d_k: int | None = None,
        d_v: int | None = None,
        *,
        score: str | Score | None = None,
        normalise: str | Normalise = "softmax",
        rng: init.Rng = None,
    ) -> None:
        d = check_size(d, "SelfAttention", "d")
        d_k = check_size(d if d_k is None else d_k, "SelfAttention", "d_k")
        d_v = check_size(d if d_v is None else d_v, "SelfAttention", "d_v")
        source = init.generator(rng)
        self.W_q = ta.tensor(init.glorot(source, d, d_k), requires_grad=True, name="W_q")
        self.W_k = ta.tensor(init.glorot(source, d, d_k), requires_grad=True, name="W_k")
        self.W_v = ta.tensor(init.glorot(source, d, d_v), requires_grad=True, name="W_v")
        self.score, self.normalise = checked_parts(score, normalise, d_k, source)

    def forward(
        self, x: TensorLike, *, keep: ArrayLike | None = None, bias: TensorLike | None = None, causal: bool = False
    ) -> Tensor:
        """Give the output alone; see `steps`.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
        keep : bool array that broadcasts to (..., n, n), optional
        bias : Tensor that broadcasts to (..., n, n), optional
        causal : bool

        Returns
        -------
        Tensor, shape (..., n, d_v)
        """
        return self._attend(x, keep, bias, causal).output

    @known_arguments
    def steps(
        self, x: TensorLike, *, keep: ArrayLike | None = None, bias: TensorLike | None = None, causal: bool = False
    ) -> AttentionSteps:
        """Do the same as a call, and give every step.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
            One row per word.
        keep : bool array that broadcasts to (..., n, n), optional
            True where the word of the row may attend to the word of the column.
        bias : Tensor that broadcasts to (..., n, n), optional
            Added to the scores.
        causal : bool
            Whether a word may only attend to itself and the words before it.

        Returns
        -------
        AttentionSteps
        """
        with ta.scope(self.scope_name):
            return self._attend(x, keep, bias, causal)

    def _attend(self, x: TensorLike, keep: ArrayLike | None, bias: TensorLike | None, causal: bool) -> AttentionSteps:
        rows = operand(x, "SelfAttention")
        check_width(rows, self.W_q.shape[0], "SelfAttention")
        q = project(rows, self.W_q)  # (..., n, d_k)  what does each word ask?
        k = project(rows, self.W_k)  # (..., n, d_k)  what does each word answer to?
        v = project(rows, self.W_v)  # (..., n, d_v)  what does each word pass on?
        return attention(
            q, k, v, score=self.score, normalise=self.normalise, keep=keep, bias=bias, causal=causal, return_steps=True
        )

    def sizes(self) -> str:
        """The three widths, and the parts that are not the usual ones."""
        widths = f"d={self.W_q.shape[0]}, d_k={self.W_k.shape[1]}, d_v={self.W_v.shape[1]}"
        score = f", score={self.score}" if self.score in ("dot", "kernel") else ""
        return widths + score + ("" if self.normalise == "softmax" else f", normalise={self.normalise}")


def checked_parts(
    score: str | Score | None, normalise: str | Normalise, d_k: int, source: np.random.Generator
) -> tuple[str | Score, str | Normalise]:
    """The exchangeable parts of a layer, refused when it is made if they are not known; scores with their weights."""
    _refuse_what_is_no_part(score, normalise)
    if score == "additive":
        score = AdditiveScore(d_k, d_k, rng=source)
    elif score == "general":
        score = GeneralScore(d_k, d_k, rng=source)
    elif score is None:
        score = "kernel" if normalise == "linear" else "scaled_dot"
    _parts_named(score, normalise, None, None)
    return score, normalise


def _check_part(result: object, q: Tensor, k: Tensor, which: str) -> None:
    """Refuse what is no number for each pair: a part of the user's own may give anything."""
    wanted = (q.shape[-2], k.shape[-2])
    if np.shape(values_of(result))[-2:] == wanted:
        return
    given = "nothing" if result is None else f"shape {np.shape(values_of(result))}"
    raise ShapeError(
        message(
            f"attention(q: {q.shape}, k: {k.shape}): {which}= gave {given}.",
            f"A number for each pair of query and key is needed: shape (..., {wanted[0]}, {wanted[1]}).",
            "Write a function that returns that: f(q, k) for score, f(scores, keep) for normalise.",
        )
    )


def _check_shapes(q: Tensor, k: Tensor, v: Tensor, match: Score) -> None:
    asked = f"attention(q: {q.shape}, k: {k.shape}, v: {v.shape})"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(message(f"{asked}: each needs a row per word.", "", "Write q[None] for one row."))
    if q.shape[-1] != k.shape[-1] and match in SCORES.values():
        raise ShapeError(
            message(
                f"{asked}: a query has width {q.shape[-1]} and a key {k.shape[-1]}.",
                "Their dot product is the score, so they must be equally wide.",
                "Give W_q and W_k the same number of columns.",
            )
        )
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"{asked}: {k.shape[-2]} keys, but {v.shape[-2]} values; each key needs its value.")
