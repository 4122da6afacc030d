"""The Transformer: attention and MLP, each with a norm and a way around it; and a stack of such blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tinyattn as ta
from tinyattn.arguments import boolean, known_arguments, operand, yes_or_no
from tinyattn.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from tinyattn.nn import init
from tinyattn.nn.layers import MLP, Activation, LayerNorm, RMSNorm, maybe_dropout
from tinyattn.nn.module import Module, check_size
from tinyattn.nn.multi_head import KeyValueCache, MultiHeadAttention, check_cache
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tinyattn.arguments import TensorLike


class TransformerBlock(Module, passes_on_to=MultiHeadAttention):
    """Attention, then an MLP; what each finds is added to what was there (Vaswani et al. 2017, section 3.1).

    Parameters
    ----------
    d, heads : int
        Width of a row, and how many heads.
    hidden : int, optional
        Width inside the MLP; 4·d when not given.
    norm : "pre" or "post"
        Before each part, on its way in ("pre": x + f(norm(x)), learns without warm-up), or after the sum, as in the
        paper ("post": norm(x + f(x))).
    norm_kind : "layer" or "rms"
        `LayerNorm` or `RMSNorm`.
    activation : str or callable
        As in `MLP`.
    dropout : float
        Share that is dropped while learning: of the weights, inside the MLP, and of what each part adds.
    bias : bool
        Whether the linear maps have one.
    norm_bias : bool
        Whether a `LayerNorm` has one.
    eps : float
        As in the norms.
    rng : numpy Generator, int or None
        Where the start of the weights, and dropout, come from.
    **attention
        More for `MultiHeadAttention`: score, normalise, position, d_k, d_v.

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> block = ta.nn.TransformerBlock(4, 2, activation="gelu", rng=0)
    >>> y = block(np.ones((3, 4)), causal=True)
    >>> y.shape
    (3, 4)
    >>> block
    TransformerBlock(pre
      attention: MultiHeadAttention(d=4, heads=2, d_k=2, d_v=2, bias=True)
      mlp: MLP(gelu
        up: Linear(4, 16)
        down: Linear(16, 4)
      )
      norm1: LayerNorm(4)
      norm2: LayerNorm(4)
    )
    """

    def __init__(
        self,
        d: int,
        heads: int,
        hidden: int | None = None,
        *,
        norm: str = "pre",
        norm_kind: str = "layer",
        activation: str | Activation = "relu",
        dropout: float = 0.0,
        bias: bool = True,
        norm_bias: bool = True,
        eps: float = 1e-5,
        rng: init.Rng = None,
        **attention: Any,
    ) -> None:
        if not isinstance(norm, str) or norm not in ("pre", "post"):
            raise ArgumentError(f"TransformerBlock: norm={norm!r} must be 'pre' or 'post'.")
        source = init.generator(rng)
        self.norm = norm
        self.attention = MultiHeadAttention(d, heads, bias=bias, dropout=dropout, rng=source, **attention)
        self.mlp = MLP(d, hidden, activation=activation, dropout=dropout, bias=bias, rng=source)
        self.norm1, self.norm2 = _norm(norm_kind, d, eps, norm_bias), _norm(norm_kind, d, eps, norm_bias)
        self.dropout = maybe_dropout(dropout, "TransformerBlock", source)

    def forward(
        self,
        x: TensorLike,
        *,
        keep: ArrayLike | None = None,
        bias: TensorLike | None = None,
        causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Let the words look at each other, then let each think.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
        keep, bias, causal, cache
            As in `MultiHeadAttention.steps`.

        Returns
        -------
        Tensor, shape (..., n, d)
        """
        rows = operand(x, "TransformerBlock")
        options = {"keep": keep, "bias": bias, "causal": causal, "cache": cache}
        if self.norm == "pre":
            rows = rows + self._dropped(self.attention(self.norm1(rows), **options))  # (..., n, d)
            return rows + self._dropped(self.mlp(self.norm2(rows)))  # (..., n, d)
        rows = self.norm1(rows + self._dropped(self.attention(rows, **options)))  # (..., n, d)
        result: Tensor = self.norm2(rows + self._dropped(self.mlp(rows)))  # (..., n, d)
        return result

    def _dropped(self, found: Tensor) -> Tensor:
        return found if self.dropout is None else self.dropout(found)

    def sizes(self) -> str:
        """Where the norms stand."""
        return self.norm


class TransformerEncoder(Module, passes_on_to=TransformerBlock):
    """Blocks one after the other, and with pre-norm a last norm: every word sees every word.

    Parameters
    ----------
    layers : int
        How many blocks.
    d, heads, hidden
        As in `TransformerBlock`.
    last_norm : bool, optional
        Whether there is a last norm; with pre-norm, when not given.
    **options
        More for each `TransformerBlock`.

    Attributes
    ----------
    blocks : list of TransformerBlock
    last_norm : LayerNorm, RMSNorm or None

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> encoder = ta.nn.TransformerEncoder(2, 4, 2, rng=0)
    >>> words = np.array([[True, True, False], [True, True, True]])
    >>> encoder(np.ones((2, 3, 4)), keep=ta.nn.masks.padding(words)).shape
    (2, 3, 4)
    """

    def __init__(
        self,
        layers: int,
        d: int,
        heads: int,
        hidden: int | None = None,
        *,
        last_norm: bool | None = None,
        rng: init.Rng = None,
        **options: Any,
    ) -> None:
        source = init.generator(rng)
        count = check_size(layers, "TransformerEncoder", "layers", most=1 << 14)
        self.blocks = [TransformerBlock(d, heads, hidden, rng=source, **options) for _ in range(count)]
        norm = options.get("norm_kind", "layer"), d, options.get("eps", 1e-5), options.get("norm_bias", True)
        wanted = options.get("norm", "pre") == "pre" if last_norm is None else last_norm
        self.last_norm = _norm(*norm) if yes_or_no(wanted, "TransformerEncoder", "last_norm") else None

    def forward(
        self,
        x: TensorLike,
        *,
        keep: ArrayLike | None = None,
        bias: TensorLike | None = None,
        causal: bool = False,
        caches: list[KeyValueCache] | None = None,
    ) -> Tensor:
        """Go through the blocks.

        Parameters
        ----------
        x : Tensor, shape (..., n, d)
        keep, bias, causal
            As in `MultiHeadAttention.steps`.
        caches : list of KeyValueCache, optional
            One for each block.

        Returns
        -------
        Tensor, shape (..., n, d)
        """
        rows = operand(x, "TransformerEncoder")
        check_caches(caches, len(self.blocks), "TransformerEncoder")
        for place, block in enumerate(self.blocks):
            cache = None if caches is None else caches[place]
            rows = block(rows, keep=keep, bias=bias, causal=causal, cache=cache)  # (..., n, d)
        return rows if self.last_norm is None else self.last_norm(rows)

    def sizes(self) -> str:
        """How many blocks."""
        return f"layers={len(self.blocks)}"


def check_caches(caches: object, blocks: int, layer: str) -> None:
    """Refuse what is not one cache for each block."""
    if caches is None:
        return
    if not isinstance(caches, (list, tuple)):
        why = "Each block keeps keys and values of its own."
        instead = "Write caches = [nn.KeyValueCache() for _ in model.blocks]; a GPT makes them with model.caches()."
        raise ArgumentTypeError(message(f"{layer}: caches is a {type(caches).__name__}, no list.", why, instead))
    for cache in caches:
        check_cache(cache, layer, "one of caches")
    if len(caches) != blocks:
        raise ArgumentError(f"{layer}: {len(caches)} caches for {blocks} blocks; each needs one.")


@known_arguments
def mean_over_words(x: TensorLike, keep: ArrayLike | None = None) -> Tensor:
    """One vector for a sequence: the mean of its words, without padding; of no word at all it is zeros.

    Parameters
    ----------
    x : Tensor, shape (..., n, d)
    keep : bool array, shape (..., n), optional
        True where there is a word.

    Returns
    -------
    Tensor, shape (..., d)

    Examples
    --------
    >>> mean_over_words([[1.0], [3.0], [99.0]], keep=[True, True, False]).tolist()
    [2.0]
    """
    rows = operand(x, "mean_over_words")
    if rows.ndim < 2:
        raise ShapeError(f"mean_over_words: x of shape {rows.shape} needs a row per word, shape (..., n, d).")
    if keep is None:
        return ta.mean(rows, axis=-2)  # (..., d)
    words = boolean(keep, "mean_over_words", "keep")  # (..., n)
    rows_there = rows.shape[-words.ndim - 1 : -1]
    if words.ndim < 1 or len(rows_there) < words.ndim or any(a not in (1, b) for a, b in zip(words.shape, rows_there)):
        raise ShapeError(
            message(
                f"mean_over_words: keep has shape {words.shape}, and x {rows.shape}.",
                "It says for each row whether it is a word.",
                f"Give keep with shape {rows.shape[:-1]}.",
            )
        )
    word = words[..., None]  # (..., n, 1)
    count = ta.tensor(word.sum(axis=-2).clip(1).astype(rows.dtype))  # (..., 1)
    return ta.sum(ta.where(word, rows, 0.0), axis=-2) / count  # (..., d)


def _norm(kind: str, d: int, eps: float, bias: bool) -> LayerNorm | RMSNorm:
    if isinstance(kind, str) and kind == "layer":
        return LayerNorm(d, eps, bias)
    if isinstance(kind, str) and kind == "rms":
        return RMSNorm(d, eps)
    raise ArgumentError(f"TransformerBlock: norm_kind={kind!r} must be 'layer' or 'rms'.")
