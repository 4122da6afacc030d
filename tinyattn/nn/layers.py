"""Layers that look at one token at a time: Linear, Embedding, norms, dropout and the MLP.  Tokens are rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import tinyattn as ta
from tinyattn.arguments import known_arguments, one_number, operand, yes_or_no
from tinyattn.errors import ArgumentError, ShapeError
from tinyattn.nn import init
from tinyattn.nn.module import Module, check_size, check_width
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tinyattn.arguments import TensorLike


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
        added = yes_or_no(bias, "Linear", "bias")
        self.b = ta.tensor(init.equal(0.0, n_out), requires_grad=True, name="b") if added else None

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

    @classmethod
    @known_arguments
    def from_pretrained(cls, vectors: TensorLike, freeze: bool = True) -> Embedding:
        r"""Start from word vectors that were learned elsewhere, such as those of `tinyattn.data.read_glove`.

        Parameters
        ----------
        vectors : array_like, shape (words, d), float
            Row i is the vector of word number i.
        freeze : bool
            Whether they stay as they are; False lets learning change them.

        Returns
        -------
        Embedding

        Examples
        --------
        >>> import tinyattn as ta
        >>> words, matrix = ta.data.parse_glove("i 1 2\nsaw 3 4\na 5 6")
        >>> embedding = ta.nn.Embedding.from_pretrained(matrix)
        >>> embedding([words.index(word) for word in ("i", "saw", "a", "saw")]).tolist()
        [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [3.0, 4.0]]
        >>> embedding.table.requires_grad, ta.nn.Embedding.from_pretrained(matrix, freeze=False).table.requires_grad
        (False, True)
        """
        start = operand(vectors, "Embedding.from_pretrained")
        if start.ndim != 2 or start.dtype.kind != "f":
            given = f"vectors of shape {start.shape}, {start.dtype}"
            raise ShapeError(f"Embedding.from_pretrained: {given}; a row per word is needed, in floating point.")
        embedding = cls(start.shape[0], start.shape[1], rng=0)
        learned = not yes_or_no(freeze, "Embedding.from_pretrained", "freeze")
        embedding.table = ta.tensor(start.data, requires_grad=learned, name="table")
        return embedding

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


class LayerNorm(Module):
    """Bring each row to mean 0 and variance 1, then scale and shift each column (Ba et al. 2016).

    Parameters
    ----------
    d : int
        Width of a row.
    eps : float
        Added to the variance, so that a row of equal numbers can be divided.
    bias : bool
        Whether columns are shifted, too.

    Attributes
    ----------
    gain, bias : Tensor, shape (d,)
        Start from ones and zeros; without a bias it is None.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.nn.LayerNorm(2, eps=0)([[1.0, 3.0], [10.0, 30.0]])
    tensor([[-1.,  1.],
            [-1.,  1.]], shape=(2, 2), made by layer_norm)
    """

    def __init__(self, d: int, eps: float = 1e-5, bias: bool = True) -> None:
        d, self.eps = check_size(d, "LayerNorm", "d"), _checked_eps(eps, "LayerNorm")
        self.gain = ta.tensor(init.equal(1.0, d), requires_grad=True, name="gain")
        shifted = yes_or_no(bias, "LayerNorm", "bias")
        self.bias = ta.tensor(init.equal(0.0, d), requires_grad=True, name="bias") if shifted else None

    def forward(self, x: TensorLike) -> Tensor:
        """Norm each row.

        Parameters
        ----------
        x : Tensor, shape (..., d)

        Returns
        -------
        Tensor, shape (..., d)
        """
        rows = operand(x, "LayerNorm")
        check_width(rows, self.gain.shape[0], "LayerNorm")
        bias = np.zeros(self.gain.shape, self.gain.dtype) if self.bias is None else self.bias
        return ta.layer_norm(rows, self.gain, bias, self.eps)

    def sizes(self) -> str:
        """The width."""
        return str(self.gain.shape[0]) + ("" if self.bias is not None else ", bias=False")


class RMSNorm(Module):
    """Divide each row by its root mean square, then scale each column (Zhang and Sennrich 2019).

    Parameters
    ----------
    d : int
        Width of a row.
    eps : float
        Added to the mean square.

    Attributes
    ----------
    gain : Tensor, shape (d,)
        Starts from ones.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.nn.RMSNorm(2, eps=0)([[1.0, 1.0], [3.0, -3.0]]).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """

    def __init__(self, d: int, eps: float = 1e-5) -> None:
        d, self.eps = check_size(d, "RMSNorm", "d"), _checked_eps(eps, "RMSNorm")
        self.gain = ta.tensor(init.equal(1.0, d), requires_grad=True, name="gain")

    def forward(self, x: TensorLike) -> Tensor:
        """Norm each row.

        Parameters
        ----------
        x : Tensor, shape (..., d)

        Returns
        -------
        Tensor, shape (..., d)
        """
        rows = operand(x, "RMSNorm")
        check_width(rows, self.gain.shape[0], "RMSNorm")
        return ta.rms_norm(rows, self.gain, self.eps)

    def sizes(self) -> str:
        """The width."""
        return str(self.gain.shape[0])


def _checked_eps(eps: float, layer: str) -> float:
    number = one_number(eps, layer, "eps")
    if not 0 <= number < float("inf"):
        raise ArgumentError(f"{layer}: eps={eps!r} must be a number from 0 on; it keeps the root real.")
    return number


class Dropout(Module):
    """While learning, set entries to 0 by chance and scale the rest up, so that the mean stays; otherwise do nothing.

    Parameters
    ----------
    p : float from 0 to 1
        The share of entries that are dropped.
    rng : numpy Generator, int or None
        Where chance comes from; a checkpoint keeps its state.

    Examples
    --------
    >>> import tinyattn as ta
    >>> dropout = ta.nn.Dropout(0.5, rng=0)
    >>> dropout([1.0, 1.0, 1.0, 1.0])
    tensor([2., 0., 0., 0.], shape=(4,))
    >>> dropout.eval()([1.0, 1.0, 1.0, 1.0])
    tensor([1., 1., 1., 1.], shape=(4,))
    """

    def __init__(self, p: float, *, rng: init.Rng = None) -> None:
        if isinstance(p, bool) or not isinstance(p, (int, float, np.number)) or not 0 <= p <= 1:
            raise ArgumentError(f"Dropout: p={p!r} must be from 0 to 1.")
        self.p, self.rng = p, init.generator(rng)

    def forward(self, x: TensorLike) -> Tensor:
        """Drop entries.

        Parameters
        ----------
        x : Tensor, any shape

        Returns
        -------
        Tensor, shape of x
        """
        return ta.dropout(x, self.p, self.rng, self.training)

    def sizes(self) -> str:
        """The share."""
        return str(self.p)


def maybe_dropout(share: float, layer: str, source: np.random.Generator) -> Dropout | None:
    """The dropout of a layer that has one, or None where nothing is dropped."""
    if isinstance(share, (bool, str)) or not isinstance(share, (int, float, np.number)) or not 0 <= share <= 1:
        raise ArgumentError(f"{layer}: dropout={share!r} must be a share from 0 to 1.")
    return Dropout(share, rng=source) if share else None


Activation = Callable[[Tensor], Tensor]
ACTIVATIONS: dict[str, Activation] = {
    "relu": ta.relu,
    "gelu": ta.gelu,
    "gelu_tanh": partial(ta.gelu, approximate="tanh"),
    "silu": ta.silu,
    "tanh": ta.tanh,
}


class MLP(Module):
    """Two linear layers with a bend in between: what a word does with what it has found.

    Parameters
    ----------
    d : int
        Width of a row before and after.
    hidden : int, optional
        Width in between; 4·d when not given.
    activation : "relu", "gelu", "gelu_tanh", "silu", "tanh", or a callable
        The bend.
    dropout : float
        Share of the hidden entries that are dropped while learning.
    bias : bool
        Whether the two layers have one.
    rng : numpy Generator, int or None
        Where the start of the weights comes from.

    Attributes
    ----------
    up, down : Linear

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> mlp = ta.nn.MLP(2, 3, activation="gelu", rng=0)
    >>> mlp(np.ones((4, 2))).shape
    (4, 2)
    """

    def __init__(
        self,
        d: int,
        hidden: int | None = None,
        *,
        activation: str | Activation = "relu",
        dropout: float = 0.0,
        bias: bool = True,
        rng: init.Rng = None,
    ) -> None:
        d = check_size(d, "MLP", "d")
        hidden, source = check_size(4 * d if hidden is None else hidden, "MLP", "hidden"), init.generator(rng)
        if not callable(activation) and not (isinstance(activation, str) and activation in ACTIVATIONS):
            known = ", ".join(map(repr, ACTIVATIONS))
            raise ArgumentError(f"MLP: activation={activation!r} is not known.\n  Write {known}, or a function.")
        self.activation = activation
        bias = yes_or_no(bias, "MLP", "bias")
        self.up = Linear(d, hidden, bias, rng=source)
        self.down = Linear(hidden, d, bias, rng=source)
        self.dropout = maybe_dropout(dropout, "MLP", source)

    def forward(self, x: TensorLike) -> Tensor:
        """Change each row by itself.

        Parameters
        ----------
        x : Tensor, shape (..., d)

        Returns
        -------
        Tensor, shape (..., d)
        """
        bend = self.activation if callable(self.activation) else ACTIVATIONS[self.activation]
        hidden = bend(self.up(x))  # (..., hidden)
        if self.dropout is not None:
            hidden = self.dropout(hidden)
        result: Tensor = self.down(hidden)  # (..., d)
        return result

    def sizes(self) -> str:
        """The bend."""
        return f"{self.activation}"
