"""The few words that every operation is said in, for each NumPy-like namespace.

`Words` speaks the array API standard, which NumPy, JAX, array-api-strict and others share.  Where a library says a
thing in another way, or has no word for it, a subclass says it: those are all the exceptions there are.  What an
operation means in these words stands in `tinyattn.handover.table`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from tinyattn.errors import ArgumentTypeError, message

Axes = tuple[int, ...]

_PLAIN = ("exp", "log", "sqrt", "sin", "cos", "tanh", "pow", "maximum", "minimum", "where", "isfinite")


class Words:
    """How things are said in a namespace of the array API standard.

    Parameters
    ----------
    xp : module
        Such as ``numpy``, ``jax.numpy`` or ``array_api_strict``.

    Examples
    --------
    >>> import numpy as np
    >>> w = Words(np)
    >>> w.take(np.array([10.0, 20.0, 30.0]), np.array([2, 0]), 0)
    array([30., 10.])
    """

    exp: Any
    log: Any
    sqrt: Any
    sin: Any
    cos: Any
    tanh: Any
    pow: Any
    maximum: Any
    minimum: Any
    where: Any
    isfinite: Any

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        if lacking := [name for name in _PLAIN if not hasattr(type(self), name) and not hasattr(xp, name)]:
            raise ArgumentTypeError(message(
                f"{getattr(xp, '__name__', repr(xp))} is no namespace of arrays: it has no {lacking[0]}.", "",
                "Write numpy, jax.numpy, torch, or another of the array API standard: the module, not its name.",
            ))  # fmt: skip
        for name in _PLAIN:
            if not hasattr(type(self), name):
                setattr(self, name, getattr(xp, name))

    def __reduce__(self) -> Any:
        """A module cannot be pickled, but its name can."""
        return _words_by_name, (self.xp.__name__,)

    # -- arrays ----------------------------------------------------------------------------------------------------

    def array(self, numbers: Any) -> Any:
        """A plain NumPy array as an array of this namespace."""
        return self.xp.asarray(numbers)

    def constant(self, numbers: np.ndarray) -> Any:
        """The same for numbers that belong to the computation itself."""
        return self.array(numbers)

    def dtype(self, name: str) -> Any:
        """A dtype by NumPy's name for it."""
        return getattr(self.xp, name)

    def astype(self, x: Any, dtype: Any) -> Any:
        """Another type for the numbers."""
        return self.xp.astype(x, dtype)

    def number(self, value: float, like: Any) -> Any:
        """One number in the dtype of an array."""
        return self.xp.asarray(value, dtype=like.dtype)

    def full(self, shape: tuple[Any, ...], value: float, like: Any) -> Any:
        """An array of one number, in the dtype of another array."""
        return self.broadcast_to(self.number(value, like), shape)

    def arange(self, n: Any) -> Any:
        """The numbers 0 to n - 1."""
        return self.xp.arange(n)

    def still(self, x: Any) -> Any:
        """The same numbers, through which no gradient flows; where there are no gradients, x itself."""
        return x

    @contextmanager
    def inside(self, scope: tuple[str, ...], name: str) -> Iterator[None]:
        """What is said in this block belongs to that scope and makes the value of that name."""
        yield

    # -- sizes: numbers that may follow the arguments --------------------------------------------------------------

    def length(self, x: Any, axis: int) -> Any:
        """The length of an axis."""
        return x.shape[axis]

    def size(self, factor: int, lengths: list[Any], offset: int) -> Any:
        """The product of lengths times a factor, plus an offset."""
        return factor * math.prod(lengths) + offset

    def float_of(self, size: Any, like: Any) -> Any:
        """A length as a number in the dtype of an array."""
        return self.number(size, like)

    # -- views -----------------------------------------------------------------------------------------------------

    def reshape(self, x: Any, shape: tuple[Any, ...]) -> Any:
        """The same numbers in another shape."""
        return self.xp.reshape(x, shape)

    def permute(self, x: Any, axes: Axes) -> Any:
        """Axes in another order."""
        return self.xp.permute_dims(x, axes)

    def expand(self, x: Any, axes: Axes) -> Any:
        """New axes of size 1; their places count in the result, in rising order."""
        for axis in axes:
            x = self.xp.expand_dims(x, axis=axis)
        return x

    def squeeze(self, x: Any, axes: Axes) -> Any:
        """Without these axes of size 1."""
        return self.xp.squeeze(x, axis=axes)

    def broadcast_to(self, x: Any, shape: tuple[Any, ...]) -> Any:
        """Repeated along axes of size 1, and along new ones."""
        return self.xp.broadcast_to(x, shape)

    def spread(self, x: Any, like: Any) -> Any:
        """Broadcast to the shape of another array."""
        return self.xp.broadcast_to(x, like.shape)

    def concat(self, parts: list[Any], axis: int) -> Any:
        """Arrays behind each other."""
        return self.xp.concat(parts, axis=axis)

    def getitem(self, x: Any, key: tuple[Any, ...]) -> Any:
        """Read ``x[key]`` for a key of whole numbers and slices, one for each axis."""
        return x[key]

    def beginning(self, x: Any, sizes: tuple[Any, ...]) -> Any:
        """The first entries along each axis."""
        return self.getitem(x, tuple(slice(0, size) for size in sizes))

    def take(self, x: Any, indices: Any, axis: int) -> Any:
        """Entries by number along one axis, which the axes of the indices replace."""
        shape = x.shape
        flat = self.xp.take(x, self.xp.reshape(indices, (-1,)), axis=axis)
        return self.xp.reshape(flat, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))

    def take_along(self, x: Any, indices: Any, axis: int) -> Any:
        """``take_along_axis``."""
        return self.xp.take_along_axis(x, indices, axis=axis)

    def add_at(self, size: Any, positions: Any, values: Any) -> Any:
        """Zeros, shape (size,), with each value added at its position: a product with the matrix of who goes where."""
        goes = self.astype(self.xp.arange(size)[:, None] == positions[None, :], values.dtype)
        return goes @ values

    def pad(self, x: Any, widths: tuple[tuple[int, int], ...], value: float) -> Any:
        """Edges of one value."""
        for axis, both in enumerate(widths):
            edges = [self.full((*x.shape[:axis], width, *x.shape[axis + 1 :]), value, x) for width in both]
            x = self.concat([edges[0], x, edges[1]], axis)
        return x

    # -- many numbers become one -----------------------------------------------------------------------------------

    def sum(self, x: Any, axes: Axes, keepdims: bool) -> Any:
        """Sums."""
        return self.xp.sum(x, axis=axes, keepdims=keepdims)

    def max(self, x: Any, axes: Axes, keepdims: bool) -> Any:
        """The largest."""
        return self.xp.max(x, axis=axes, keepdims=keepdims)

    def min(self, x: Any, axes: Axes, keepdims: bool) -> Any:
        """The smallest."""
        return self.xp.min(x, axis=axes, keepdims=keepdims)

    def prod(self, x: Any, axes: Axes, keepdims: bool) -> Any:
        """Products."""
        return self.xp.prod(x, axis=axes, keepdims=keepdims)

    def any(self, x: Any, axis: int) -> Any:
        """Whether one is true along an axis, which stays."""
        return self.xp.any(x, axis=axis, keepdims=True)

    def einsum(self, subscripts: str, *parts: Any) -> Any:
        """Sums of products by index letters: here from diagonals, broadcasting and one sum."""
        labels, result = subscripts.split("->")
        operands = [_diagonal(self, x, own) for x, own in zip(parts, labels.split(","), strict=True)]
        order = list(dict.fromkeys(result + "".join(own for _, own in operands)))
        product: Any = 1
        for x, own in operands:
            x = self.permute(x, tuple(own.index(label) for label in order if label in own))
            product = self.expand(x, tuple(at for at, label in enumerate(order) if label not in own)) * product
        gone = tuple(range(len(result), len(order)))
        return self.sum(product, gone, False) if gone else product

    def softmax(self, x: Any, axis: int) -> Any:
        """Shares of each row, shifted by the largest so that nothing overflows."""
        e = self.exp(x - self.still(self.max(x, (axis,), True)))
        return e / self.sum(e, (axis,), True)

    def log_softmax(self, x: Any, axis: int) -> Any:
        """Their logarithms, without a logarithm of 0."""
        shifted = x - self.still(self.max(x, (axis,), True))
        return shifted - self.log(self.sum(self.exp(shifted), (axis,), True))

    # -- functions of one number -----------------------------------------------------------------------------------

    def erf(self, x: Any) -> Any:
        """The error function from its series of positive terms.

        erf(x) = 2/sqrt(pi) exp(-x^2) sum_n 2^n x^(2n+1) / (2n+1)!!  (Abramowitz and Stegun 1964, 7.1.6).  Nothing
        cancels in it; beyond 6 the value is 1 to the last bit, and up to 6 a hundred terms are enough.
        """
        near = self.minimum(self.maximum(x, self.number(-6.0, x)), self.number(6.0, x))
        square, total = near * near, near * 0 + 1
        for n in range(100, 0, -1):  # 1 + 2x²/3 (1 + 2x²/5 (1 + ...)), from the inside
            total = 1 + total * square * (2 / (2 * n + 1))
        return near * total * self.exp(-square) * (2 / math.sqrt(math.pi))


def _diagonal(w: Words, x: Any, labels: str) -> tuple[Any, str]:
    """Read a diagonal where a label is repeated, so that each stands once."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            one, other = labels.index(label), labels.rindex(label)
            places = tuple(slice(None) if axis not in (one, other) else axis for axis in range(len(labels)))
            order = (one, other, *(axis for axis, place in enumerate(places) if isinstance(place, slice)))
            square, n = w.permute(x, order), x.shape[one]
            flat = w.reshape(square, (n * n, *square.shape[2:]))
            x = w.take(flat, w.arange(n) * (n + 1), 0)
            labels = label + "".join(labels[axis] for axis in order[2:])
    return x, labels


class NumPyWords(Words):
    """NumPy's own, where they are shorter than the standard's."""

    def take(self, x: Any, indices: Any, axis: int) -> Any:
        """NumPy takes indices of any shape."""
        return self.xp.take(x, indices, axis=axis)

    def pad(self, x: Any, widths: tuple[tuple[int, int], ...], value: float) -> Any:
        """There is a function for it."""
        return self.xp.pad(x, widths, constant_values=value)

    def einsum(self, subscripts: str, *parts: Any) -> Any:
        """There is a function for it."""
        return self.xp.einsum(subscripts, *parts)

    def add_at(self, size: Any, positions: Any, values: Any) -> Any:
        """Write into zeros, as nobody else sees them yet."""
        out = np.zeros((size,), values.dtype)
        np.add.at(out, positions, values)
        return out

    def erf(self, x: Any) -> Any:
        """NumPy has none, but the standard library has."""
        return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), dtype=x.dtype)


class JaxWords(NumPyWords):
    """JAX: NumPy's words, and three of its own."""

    def still(self, x: Any) -> Any:
        """The standard has no word for gradients."""
        import jax

        return jax.lax.stop_gradient(x)

    def add_at(self, size: Any, positions: Any, values: Any) -> Any:
        """Arrays of JAX are not written into."""
        return self.xp.zeros((size,), values.dtype).at[positions].add(values)

    def erf(self, x: Any) -> Any:
        """JAX has it among SciPy's."""
        from jax.scipy.special import erf

        return erf(x)

    @contextmanager
    def inside(self, scope: tuple[str, ...], name: str) -> Iterator[None]:
        """JAX keeps names of scopes in its programs and profiles."""
        import jax

        with jax.named_scope("/".join([*scope, name])):
            yield


class TorchWords(Words):
    """PyTorch: its words for axes, types and reductions are older than the standard."""

    device: Any = None

    def array(self, numbers: Any) -> Any:
        """PyTorch shares memory with NumPy, but not with an array that must not be written to."""
        return numbers if self.xp.is_tensor(numbers) else self.xp.tensor(np.asarray(numbers), device=self.device)

    def astype(self, x: Any, dtype: Any) -> Any:
        """``x.to(dtype)``."""
        return x.to(dtype)

    def number(self, value: float, like: Any) -> Any:
        """On the device of the other."""
        return self.xp.full((), value, dtype=like.dtype, device=like.device)

    def arange(self, n: Any) -> Any:
        """On the device of the constants."""
        return self.xp.arange(n, device=self.device)

    def still(self, x: Any) -> Any:
        """``x.detach()``."""
        return x.detach()

    def permute(self, x: Any, axes: Axes) -> Any:
        """``permute``."""
        return self.xp.permute(x, axes)

    def expand(self, x: Any, axes: Axes) -> Any:
        """``unsqueeze``."""
        for axis in axes:
            x = self.xp.unsqueeze(x, axis)
        return x

    def squeeze(self, x: Any, axes: Axes) -> Any:
        """``squeeze`` with dim."""
        return self.xp.squeeze(x, dim=axes)

    def getitem(self, x: Any, key: tuple[Any, ...]) -> Any:
        """Two kinds of slices are read entry by entry.

        Those that run backward, which PyTorch has not; and those as long as an argument, because ``torch.export``
        takes a slice of full length for a promise that the length never changes.
        """
        rest = list(key)
        for axis, part in enumerate(key):
            if isinstance(part, slice) and (part.step or 1) < 0:
                places = self.xp.tensor(list(range(*part.indices(int(x.shape[axis])))), dtype=self.xp.int64)
            elif isinstance(part, slice) and part.start in (None, 0) and not isinstance(part.stop, (int, type(None))):
                places = self.xp.arange(part.stop)
            else:
                continue
            x, rest[axis] = self.xp.index_select(x, axis, places.to(x.device)), slice(None)
        return x[tuple(rest)]

    def take(self, x: Any, indices: Any, axis: int) -> Any:
        """An index for one axis, among slices for those before it."""
        return x[(slice(None),) * axis + (indices,)]

    def take_along(self, x: Any, indices: Any, axis: int) -> Any:
        """``take_along_dim``."""
        return self.xp.take_along_dim(x, indices, dim=axis)

    def add_at(self, size: Any, positions: Any, values: Any) -> Any:
        """``index_add``."""
        return self.xp.zeros((size,), dtype=values.dtype, device=values.device).index_add(0, positions, values)

    def pad(self, x: Any, widths: tuple[tuple[int, int], ...], value: float) -> Any:
        """Its widths begin at the last axis."""
        return self.xp.nn.functional.pad(x, [width for both in reversed(widths) for width in both], value=value)

    def sum(self, x: Any, axes: Axes, keepdims: bool) -> Any:
        """``sum`` with dim."""
        return self.xp.sum(x, dim=axes, keepdim=keepdims)

    def max(self, x: Any, axes: Axes, keepdims: bool) -> Any:
        """``amax``: among equals it shares the gradient equally, as we do."""
        return self.xp.amax(x, dim=axes, keepdim=keepdims)

    def min(self, x: Any, axes: Axes, keepdims: bool) -> Any:
        """``amin``."""
        return self.xp.amin(x, dim=axes, keepdim=keepdims)

    def prod(self, x: Any, axes: Axes, keepdims: bool) -> Any:
        """One axis after the other, the last first so that the others keep their places."""
        for axis in sorted(axes, reverse=True):
            x = self.xp.prod(x, dim=axis, keepdim=keepdims)
        return x

    def any(self, x: Any, axis: int) -> Any:
        """``any`` with dim."""
        return self.xp.any(x, dim=axis, keepdim=True)

    def einsum(self, subscripts: str, *parts: Any) -> Any:
        """There is a function for it."""
        return self.xp.einsum(subscripts, *parts)

    def erf(self, x: Any) -> Any:
        """There is a function for it."""
        return self.xp.erf(x)


_OWN = {"numpy": NumPyWords, "jax.numpy": JaxWords, "torch": TorchWords}


def words_of(xp: Any) -> Words:
    """The words of a namespace: its own where it has exceptions, otherwise those of the standard.

    >>> import numpy as np
    >>> type(words_of(np)).__name__
    'NumPyWords'
    """
    return _OWN.get(getattr(xp, "__name__", ""), Words)(xp)


def _words_by_name(name: str) -> Words:
    return words_of(import_module(name))
