"""A model that continues a text: a causal Transformer over word or character numbers, and how it chooses the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tinyattn as ta
from tinyattn.arguments import known_arguments, whole_array, whole_number, yes_or_no
from tinyattn.errors import ArgumentError, ShapeError, message
from tinyattn.nn import init
from tinyattn.nn.layers import Embedding, Linear, maybe_dropout
from tinyattn.nn.module import Module, check_size
from tinyattn.nn.multi_head import KeyValueCache
from tinyattn.nn.positions import DistanceBias, LearnedPosition, RotaryPosition, SinusoidalPosition
from tinyattn.nn.transformer import TransformerEncoder, check_caches
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Ids = NDArray[np.int64]


class GPT(Module, passes_on_to=TransformerEncoder):
    """A decoder in the shape of GPT-2 (Radford et al. 2019): from each prefix it scores every possible next word.

    Parameters
    ----------
    words : int
        How many word numbers there are.
    d, heads, layers : int
        Width, heads of each block, and how many blocks.
    length : int
        The most words it looks back on.
    hidden : int, optional
        Width inside the MLPs; 4·d when not given.
    position : "learned", "sinusoidal", "rotary" or "distance"
        What tells it the order.
    tied : bool
        Whether a word is scored by the dot product with its own embedding, instead of by a matrix of its own.
    dropout : float
        Share that is dropped while learning.
    activation : str or callable
        As in `MLP`.
    rng : numpy Generator, int or None
        Where the start of the weights, and dropout, come from.
    **options
        More for each `TransformerBlock`; ``fused=False`` for a graph with scores and weights.

    Examples
    --------
    >>> import tinyattn as ta
    >>> model = ta.nn.GPT(words=10, d=8, heads=2, layers=2, length=16, rng=0)
    >>> scores = model([3, 1, 4])
    >>> scores.shape
    (3, 10)
    >>> model.generate([3, 1, 4], 5, rng=0).shape
    (8,)
    """

    def __init__(
        self,
        words: int,
        d: int,
        heads: int,
        layers: int,
        length: int,
        *,
        hidden: int | None = None,
        position: str = "learned",
        tied: bool = True,
        dropout: float = 0.0,
        activation: str | Any = "gelu_tanh",
        rng: init.Rng = None,
        **options: Any,
    ) -> None:
        self.length, source = check_size(length, "GPT", "length"), init.generator(rng)
        d = check_size(d, "GPT", "d")
        self.embedding = Embedding(words, d, scale=0.1, rng=source)
        heads, own = check_size(heads, "GPT", "heads"), options.get("d_k")
        d_k = d // heads if own is None else check_size(own, "GPT", "d_k")
        self.position, inside = _position(position, self.length, d, heads, d_k, source)
        self.dropout = maybe_dropout(dropout, "GPT", source)
        options = {"activation": activation, "dropout": dropout, "position": inside, "fused": True, **options}
        self.decoder = TransformerEncoder(layers, d, heads, hidden, rng=source, **options)
        self.head = None if yes_or_no(tied, "GPT", "tied") else Linear(d, words, bias=False, rng=source)

    def forward(self, ids: ArrayLike, *, caches: list[KeyValueCache] | None = None) -> Tensor:
        """Score every word as the next one, after each prefix.

        Parameters
        ----------
        ids : int array, shape (..., n)
        caches : list of KeyValueCache, optional
            What was computed for the words before these, one for each block.

        Returns
        -------
        Tensor, shape (..., n, words)
        """
        check_caches(caches, len(self.decoder.blocks), "GPT")
        numbers, before = whole_array(ids, "GPT", "ids"), caches[0].length if caches else 0
        self._check_length(numbers, before)
        x = self.embedding(numbers)  # (..., n, d)
        if self.position is not None:
            x = self.position(x, before)  # (..., n, d)
        if self.dropout is not None:
            x = self.dropout(x)
        context = self.decoder(x, causal=True, caches=caches)  # (..., n, d)
        scores: Tensor = context @ self.embedding.table.mT if self.head is None else self.head(context)
        return scores  # (..., n, words)

    @known_arguments
    def loss(self, ids: ArrayLike, *, ignore: int = -1) -> Tensor:
        """Cross-entropy of each word after the words before it.

        Parameters
        ----------
        ids : int array, shape (..., n + 1)
            Where ``ignore`` stands, there is no word.

        Returns
        -------
        Tensor, shape ()
        """
        numbers, ignore = whole_array(ids, "GPT", "ids"), whole_number(ignore, "GPT.loss", "ignore")
        if numbers.ndim < 1:
            raise ShapeError("GPT.loss: ids is a single word; a sequence is needed, shape (..., n + 1).")
        scores = self(np.where(numbers[..., :-1] == ignore, 0, numbers[..., :-1]))  # (..., n, words)
        return ta.cross_entropy(scores, numbers[..., 1:], ignore_index=ignore)

    def caches(self) -> list[KeyValueCache]:
        """An empty cache for each block."""
        return [KeyValueCache() for _ in self.decoder.blocks]

    @known_arguments
    def generate(
        self,
        ids: ArrayLike,
        steps: int,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        end: int | None = None,
        rng: init.Rng = 0,
    ) -> Ids:
        """Continue a sequence word by word.

        Parameters
        ----------
        ids : int array, shape (n,)
            What it begins with; at least one word.
        steps : int
            How many words to add at most.
        temperature : float
            Scores are divided by it before softmax: above 1 more daring, below 1 safer, 0 always the likeliest.
        top_k : int, optional
            Choose among so many of the likeliest words only.
        end : int, optional
            Stop after this word.
        rng : numpy Generator, int or None
            Where chance comes from.

        Returns
        -------
        ndarray of int, shape (n + at most steps,)

        Examples
        --------
        >>> import tinyattn as ta
        >>> model = ta.nn.GPT(words=5, d=4, heads=1, layers=1, length=3, rng=0)
        >>> bool((model.generate([2], 6, temperature=0) == model.generate([2], 6, top_k=1, rng=3)).all())
        True
        """
        sequence, source = whole_array(ids, "generate", "ids"), init.generator(rng)
        if sequence.ndim != 1 or not len(sequence):
            raise ShapeError(f"generate: ids of shape {sequence.shape}; one sequence of at least one word is needed.")
        steps = check_size(steps, "generate", "steps")
        end = None if end is None else whole_number(end, "generate", "end")
        caches, new = self.caches(), sequence[-self.length :]
        learning = [(part, part.training) for _, part in self.named_modules()]
        self.eval()
        try:
            with ta.no_grad():
                for _ in range(steps):
                    if caches[0].length + len(new) > self.length:  # too long to look back on: forget the first word
                        caches, new = self.caches(), sequence[-self.length :]
                    scores = self(new, caches=caches).data[-1]
                    new = np.array([choose(scores, temperature, top_k, source)])
                    sequence = np.concatenate([sequence, new])
                    if new[0] == end:
                        break
        finally:
            for part, before in learning:
                part.training = before
        return sequence

    def _check_length(self, ids: Ids, before: int) -> None:
        if ids.ndim < 1 or before + ids.shape[-1] > self.length:
            raise ShapeError(
                message(
                    f"GPT: ids of shape {ids.shape}{f' after {before} words' if before else ''}.",
                    f"It looks back on at most {self.length} words.",
                    f"Give shape (..., n) with n up to {self.length}, or make it with a greater length.",
                )
            )

    def sizes(self) -> str:
        """How far it looks back."""
        return f"length={self.length}" + ("" if self.head is not None else ", tied")


def choose(scores: ArrayLike, temperature: float, top_k: int | None, rng: np.random.Generator) -> int:
    """Draw a word by its score.

    Parameters
    ----------
    scores : array, shape (words,)
    temperature, top_k
        As in `GPT.generate`.
    rng : numpy Generator

    Examples
    --------
    >>> choose([0.0, 9.0, 1.0], 0, None, np.random.default_rng(0))
    1
    """
    numbers = np.asarray(scores, dtype=float)
    if not isinstance(temperature, (int, float, np.number)) or not 0 <= temperature < np.inf:
        raise ArgumentError(f"generate: temperature={temperature!r} must be a number from 0 on.")
    if top_k is not None:
        least = check_size(top_k, "generate", "top_k")
        numbers = np.where(np.argsort(np.argsort(-numbers, kind="stable"), kind="stable") < least, numbers, -np.inf)
    if temperature == 0:
        return int(numbers.argmax())
    with np.errstate(over="ignore"):  # a tiny temperature: minus infinity, and 0 after exp
        odds = np.exp((numbers - numbers.max()) / temperature)
    return int(rng.choice(len(odds), p=odds / odds.sum()))


def _position(given: object, length: int, d: int, heads: int, d_k: int, source: np.random.Generator) -> tuple[Any, Any]:
    """What is added to the embeddings, and what acts inside the heads; one of them is None."""
    kind = given if isinstance(given, str) else type(given).__name__
    if kind == "learned":
        return LearnedPosition(length, d, scale=0.1, rng=source), None
    if kind == "sinusoidal":
        return SinusoidalPosition(d), None
    if kind == "rotary":
        return None, RotaryPosition(d_k)
    if kind == "distance":
        return None, DistanceBias(heads)
    raise ArgumentError(f"GPT: position={kind!r} must be 'learned', 'sinusoidal', 'rotary' or 'distance'.")
