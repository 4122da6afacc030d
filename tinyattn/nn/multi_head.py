"""Several heads at once: each asks in its own way, and a matrix joins what they found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tinyattn as ta
from tinyattn.arguments import as_array, known_arguments, operand, yes_or_no
from tinyattn.composed import named_by_caller
from tinyattn.errors import ArgumentTypeError, ShapeError, message
from tinyattn.names import describe
from tinyattn.nn import init
from tinyattn.nn.apart import project
from tinyattn.nn.attention import AttentionSteps, attention, check_linear, checked_parts, fused_attention
from tinyattn.nn.layers import maybe_dropout
from tinyattn.nn.module import Module, check_size, check_width
from tinyattn.nn.normalise import Normalise, normalise_named
from tinyattn.nn.positions import DistanceBias, RotaryPosition
from tinyattn.nn.scores import Score
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tinyattn.arguments import TensorLike

    Mask = NDArray[np.bool_]


@named_by_caller
def split_heads(x: TensorLike, heads: int) -> Tensor:
    """Cut each row into h pieces, one for each head: (..., n, h·d) becomes (..., h, n, d).

    Examples
    --------
    >>> split_heads([[1.0, 2.0, 3.0, 4.0]], 2).tolist()
    [[[1.0, 2.0]], [[3.0, 4.0]]]
    """
    rows = operand(x, "split_heads")
    heads = check_size(heads, "split_heads", "heads")
    if rows.ndim < 2 or rows.shape[-1] % heads:
        raise ShapeError(
            message(
                f"split_heads({describe(rows)}): width {rows.shape[-1:]} cannot be cut into {heads} equal pieces.",
                "Each head gets the same part of every row.",
                f"Take a width that {heads} divides, or another number of heads.",
            )
        )
    *batch, n, d = rows.shape
    pieces = ta.reshape(rows, *batch, n, heads, d // heads)  # (..., n, h, d)
    return ta.swapaxes(pieces, -3, -2)  # (..., h, n, d)


@named_by_caller
def merge_heads(x: TensorLike) -> Tensor:
    """Put the pieces of the heads side by side again: (..., h, n, d) becomes (..., n, h·d).

    Examples
    --------
    >>> merge_heads([[[1.0, 2.0]], [[3.0, 4.0]]]).tolist()
    [[1.0, 2.0, 3.0, 4.0]]
    """
    heads = operand(x, "merge_heads")
    if heads.ndim < 3:
        raise ShapeError(f"merge_heads({describe(heads)}): shape (..., h, n, d) is needed.")
    *batch, h, n, d = heads.shape
    return ta.reshape(ta.swapaxes(heads, -3, -2), *batch, n, h * d)  # (..., n, h·d)


class KeyValueCache:
    """The keys and values of the words so far, so that a new word need not compute them again.

    Attributes
    ----------
    k, v : Tensor, shape (..., h, length, d), or None
        None as long as there is no word.

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> layer, cache = ta.nn.MultiHeadAttention(4, 2, rng=0), ta.nn.KeyValueCache()
    >>> words = np.eye(4)[:3]
    >>> with ta.no_grad():
    ...     one_by_one = [layer(words[i : i + 1], causal=True, cache=cache).data[0] for i in range(3)]
    ...     at_once = layer(words, causal=True)
    >>> cache.length, bool(np.allclose(one_by_one, at_once.data, rtol=0, atol=1e-15))
    (3, True)
    """

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    @property
    def length(self) -> int:
        """How many words there are."""
        return 0 if self.k is None else self.k.shape[-2]

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new words, and give those of all."""
        k, v = operand(k, "KeyValueCache"), operand(v, "KeyValueCache")
        if self.k is not None and self.v is not None:
            k, v = ta.concatenate([self.k, k], axis=-2), ta.concatenate([self.v, v], axis=-2)
        self.k, self.v = k, v
        return k, v


def check_cache(cache: object, layer: str, what: str) -> None:
    """Refuse what holds no keys and values."""
    if not isinstance(cache, KeyValueCache):
        raise ArgumentTypeError(
            message(
                f"{layer}: {what} is a {type(cache).__name__}, and holds no keys and values.",
                "It is filled call by call with those of the words so far.",
                "Make it once, cache = nn.KeyValueCache(), and hand it to every call.",
            )
        )


class MultiHeadAttention(Module):
    """Several attentions side by side (Vaswani et al. 2017, section 3.2.2), of a sequence to itself or to another.

    Parameters
    ----------
    d : int
        Width of the rows that ask, and of the output.
    heads : int
        How many; head i uses columns i·d_k to (i+1)·d_k of W_q and W_k.
    d_k, d_v : int, optional
        Width of queries and keys, and of values, in each head; d / heads when not given.
    d_keys, d_values : int, optional
        Width of the rows that keys and values are made of; d, and the same as d_keys, when not given.
    bias : bool
        Whether the four maps have a bias: b_q, b_k, b_v, b_o.
    dropout : float
        Share of the weights that is dropped while learning.
    score, normalise
        As in `attention`.
    position : RotaryPosition or DistanceBias, optional
        A position that acts inside the heads.
    fused : bool
        Whether a call takes the usual attention as one op, where it is the usual one: faster, but scores and weights
        do not stand in the graph.  `steps` has them in any case.
    rng : numpy Generator, int or None
        Where the start of the weights, and dropout, come from.

    Attributes
    ----------
    W_q, W_k, W_v : Tensor, shapes (d, h·d_k), (d_keys, h·d_k), (d_values, h·d_v)
    W_o : Tensor, shape (h·d_v, d)

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> layer = ta.nn.MultiHeadAttention(8, 2, rng=0)
    >>> x, context = np.ones((3, 8)), np.ones((5, 8))
    >>> layer(x).shape, layer(x, context).shape, layer.steps(x, context).weights.shape
    ((3, 8), (3, 8), (2, 3, 5))
    """

    def __init__(
        self,
        d: int,
        heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        d_keys: int | None = None,
        d_values: int | None = None,
        bias: bool = False,
        dropout: float = 0.0,
        score: str | Score | None = None,
        normalise: str | Normalise = "softmax",
        position: RotaryPosition | DistanceBias | None = None,
        fused: bool = False,
        rng: init.Rng = None,
    ) -> None:
        d, self.heads = check_size(d, "MultiHeadAttention", "d"), check_size(heads, "MultiHeadAttention", "heads")
        if d_k is None or d_v is None:
            width = width_of_head(d, self.heads, "MultiHeadAttention", "d_k=..., d_v=...")
        d_k = width if d_k is None else check_size(d_k, "MultiHeadAttention", "d_k")
        d_v = width if d_v is None else check_size(d_v, "MultiHeadAttention", "d_v")
        d_keys = d if d_keys is None else check_size(d_keys, "MultiHeadAttention", "d_keys")
        d_values = d_keys if d_values is None else check_size(d_values, "MultiHeadAttention", "d_values")
        source, h = init.generator(rng), self.heads
        sizes = {"q": (d, h * d_k), "k": (d_keys, h * d_k), "v": (d_values, h * d_v), "o": (h * d_v, d)}
        self.W_q, self.W_k, self.W_v, self.W_o = (
            ta.tensor(init.glorot(source, *size), requires_grad=True, name=f"W_{which}")
            for which, size in sizes.items()
        )
        has_bias = yes_or_no(bias, "MultiHeadAttention", "bias")
        self.b_q, self.b_k, self.b_v, self.b_o = (
            ta.tensor(init.equal(0.0, size[1]), requires_grad=True, name=f"b_{which}") if has_bias else None
            for which, size in sizes.items()
        )
        self.score, self.normalise = checked_parts(score, normalise, d_k, source)
        _check_position(position, self.heads, d_k)
        self.position, self.fused = position, yes_or_no(fused, "MultiHeadAttention", "fused")
        self.dropout = maybe_dropout(dropout, "MultiHeadAttention", source)

    def forward(
        self,
        x: TensorLike,
        keys: TensorLike | None = None,
        values: TensorLike | None = None,
        *,
        keep: ArrayLike | None = None,
        bias: TensorLike | None = None,
        causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Give the output alone; see `steps`."""
        q, k, v, seen, added = self._heads(x, keys, values, keep, bias, cache)
        if self.fused and added is None and self._is_usual():
            found = fused_attention(q, k, v, keep=seen, causal=causal)  # (..., h, n, d_v)
        else:
            found = self._attend(q, k, v, seen, added, causal).output  # (..., h, n, d_v)
        return self._joined(found)

    @known_arguments
    def steps(
        self,
        x: TensorLike,
        keys: TensorLike | None = None,
        values: TensorLike | None = None,
        *,
        keep: ArrayLike | None = None,
        bias: TensorLike | None = None,
        causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> AttentionSteps:
        """Do the same as a call, and give every step; all but the output with an axis for the heads.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
            The rows that ask.
        keys : Tensor, shape (..., m, d_keys), optional
            The rows that answer: for cross-attention, another sequence; x when not given.
        values : Tensor, shape (..., m, d_values), optional
            The rows that values are made of; those of the keys when not given.
        keep : bool array that broadcasts to (..., n, m), optional
            True where a query may attend to a key, for all heads; with one axis more, (..., h, n, m), for each head.
        bias : Tensor, optional
            Added to the scores; shapes as for keep.
        causal : bool
            Whether a query may only attend to keys up to its own position, aligned at the end.
        cache : KeyValueCache, optional
            Keys and values of the words before these; the new ones are added to it.

        Returns
        -------
        AttentionSteps
        """
        with ta.scope(self.scope_name):
            q, k, v, seen, added = self._heads(x, keys, values, keep, bias, cache)
            found = self._attend(q, k, v, seen, added, causal)
            return found._replace(output=self._joined(found.output))

    def _heads(
        self,
        x: TensorLike,
        keys: TensorLike | None,
        values: TensorLike | None,
        keep: ArrayLike | None,
        bias: TensorLike | None,
        cache: KeyValueCache | None,
    ) -> tuple[Tensor, Tensor, Tensor, Any, Any]:
        """Queries, keys and values of every head; the mask and the bias with an axis for them."""
        if cache is not None:
            check_cache(cache, "MultiHeadAttention", "cache")
        x, keys, values = self._rows(x, keys, values)
        q = split_heads(project(x, self.W_q, self.b_q), self.heads)  # (..., h, n, d_k)  what does each word ask?
        k = split_heads(project(keys, self.W_k, self.b_k), self.heads)  # (..., h, m, d_k)  what does it answer to?
        v = split_heads(project(values, self.W_v, self.b_v), self.heads)  # (..., h, m, d_v)  what does it pass on?
        if isinstance(self.position, RotaryPosition):
            before = 0 if cache is None else cache.length
            q, k = self.position(q, before), self.position(k, before)  # turned by an angle for each position
        if cache is not None:
            k, v = cache.extend(k, v)  # (..., h, m, d)  also the words before
        seen, added = _for_heads(keep, x.ndim, "keep"), _for_heads(bias, x.ndim, "bias")
        if isinstance(self.position, DistanceBias):
            distance = ta.astype(self.position(q.shape[-2], k.shape[-2]), q.dtype)  # (h, n, m)
            added = distance if added is None else distance + added
        return q, k, v, seen, added

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, seen: Any, added: Any, causal: bool) -> AttentionSteps:
        if self.normalise == "linear":
            check_linear(self.score, added)
        parts: dict[str, Any] = {"score": self.score, "normalise": self._weights}
        return attention(q, k, v, **parts, keep=seen, bias=added, causal=causal, return_steps=True)

    def _joined(self, found: Tensor) -> Tensor:
        joined = merge_heads(found)  # (..., n, h·d_v)  what the heads found, side by side
        output = project(joined, self.W_o, self.b_o)  # (..., n, d)
        return output

    def _is_usual(self) -> bool:
        dropped = self.dropout is not None and self.training
        return self.score == "scaled_dot" and self.normalise == "softmax" and not dropped

    @named_by_caller
    def _weights(self, scores: Tensor, keep: Mask | None) -> Tensor:
        weights = normalise_named(self.normalise)(scores, keep)  # (..., h, n, m)
        return weights if self.dropout is None else self.dropout(weights)

    def _rows(self, x: TensorLike, keys: TensorLike | None, values: TensorLike | None) -> tuple[Tensor, Tensor, Tensor]:
        asking = operand(x, "MultiHeadAttention")
        answering = asking if keys is None else operand(keys, "MultiHeadAttention")
        passing = answering if values is None else operand(values, "MultiHeadAttention")
        rows = (asking, answering, passing)
        for part, W in zip(rows, (self.W_q, self.W_k, self.W_v), strict=True):
            check_width(part, W.shape[0], "MultiHeadAttention")
            if part.ndim < 2:
                raise ShapeError(message(f"MultiHeadAttention({describe(part)}): each needs a row per word."))
        return rows

    def sizes(self) -> str:
        """Width, heads, and what is not as usual."""
        (d, width), d_v = self.W_q.shape, self.W_o.shape[0] // self.heads
        text = f"d={d}, heads={self.heads}, d_k={width // self.heads}, d_v={d_v}"
        other = "" if self.W_k.shape[0] == d else f", d_keys={self.W_k.shape[0]}"
        other += "" if self.W_v.shape[0] == self.W_k.shape[0] else f", d_values={self.W_v.shape[0]}"
        return text + other + ("" if self.b_q is None else ", bias=True")


def width_of_head(d: int, heads: int, layer: str, sizes: str) -> int:
    """The columns of one head, where all share the width d."""
    if d % heads:
        raise ShapeError(
            message(
                f"{layer}: width {d} cannot be shared equally among {heads} heads.",
                "Each head works on d / heads columns.",
                f"Take a width that {heads} divides, or say how wide a head is: {sizes}.",
            )
        )
    return d // heads


def _check_position(position: object, heads: int, d_k: int) -> None:
    """Refuse what would act nowhere inside the heads, or not on all of them."""
    if position is None:
        return
    if not isinstance(position, (RotaryPosition, DistanceBias)):
        raise ArgumentTypeError(
            message(
                f"MultiHeadAttention: position={position!r} does not act inside the heads.",
                "Other positions are added to the rows before attention.",
                f"Write position=nn.RotaryPosition({d_k}) or nn.DistanceBias({heads}), or add it: position(x).",
            )
        )
    fits = position.d == d_k if isinstance(position, RotaryPosition) else position.heads == heads
    if not fits:
        raise ShapeError(
            message(
                f"MultiHeadAttention: position={position!r} does not fit {heads} heads of width {d_k}.",
                "Rotary positions turn the rows of each head, a distance bias has a number for each head.",
                f"Write nn.RotaryPosition({d_k}) or nn.DistanceBias({heads}).",
            )
        )


def _for_heads(mask: Any, ndim: int, what: str) -> Any:
    """A mask or bias for all heads gets their axis; one that has it, or needs none, stays."""
    if mask is None:
        return None
    array = mask if isinstance(mask, Tensor) else as_array(mask, name=f"MultiHeadAttention: {what}")
    return mask if array.ndim <= 2 or array.ndim > ndim else array[..., None, :, :]
