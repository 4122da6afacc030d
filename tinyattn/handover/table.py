"""What each operation of the rule book means, in the words of `tinyattn.handover.words`.

One line an operation, as near to NumPy's spelling as can be.  Parameters come by name and as the rule book has them,
except that lengths may follow the arguments and that masks and indices may be arguments themselves.  Points where a
slope jumps are said so that other libraries decide as tinyattn does: 0 for relu, abs and clip, shared among equals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyattn.errors import ArgumentError, message
from tinyattn.handover.keys import read
from tinyattn.handover.words import Axes, Words

Saying = Callable[..., Any]


def _integer_power(w: Words, x: Any, exponent: int) -> Any:
    return x * x if exponent == 2 else w.pow(x, exponent)


def _clip(w: Words, x: Any, low: float | None, high: float | None) -> Any:
    if low is not None:
        x = w.where(x <= low, w.number(low, x), x)
    return x if high is None else w.where(x >= high, w.number(high, x), x)


def _reduction(name: str) -> Saying:
    """A reduction; over no axes at all it changes nothing."""
    return lambda w, x, axis, keepdims: getattr(w, name)(x, axis, keepdims) if axis else x


def _lengths(w: Words, x: Any, axis: Axes) -> Any:
    return w.size(1, [w.length(x, a) for a in axis], 0)


def _scatter_add(w: Words, g: Any, key: Any, shape: tuple[Any, ...]) -> Any:
    """Where each number goes is what indexing reads from an array of positions."""
    size = w.size(1, list(shape), 0)
    positions = read(w, w.reshape(w.arange(size), shape), key)
    return w.reshape(w.add_at(size, w.reshape(positions, (-1,)), w.reshape(g, (-1,))), shape)


def _take_along(w: Words, x: Any, indices: Any, axis: int) -> Any:
    n = w.length(x, axis)
    return w.take_along(x, w.where(indices < 0, indices + n, indices), axis)


def _put_along(w: Words, g: Any, indices: Any, axis: int, shape: tuple[Any, ...]) -> Any:
    size, rank = w.size(1, list(shape), 0), len(shape)
    place: Any = 0
    for a in range(rank):
        along = indices if a == axis else w.expand(w.arange(shape[a]), tuple(b for b in range(rank) if b != a))
        place = place * shape[a] + along if a else along
    flat = w.reshape(w.spread(place, g), (-1,))
    return w.reshape(w.add_at(size, flat, w.reshape(g, (-1,))), shape)


def _einsum(w: Words, *parts: Any, subscripts: str) -> Any:
    """An operand of size 1 stands for all values of its label; such an axis is left out, as libraries disagree."""
    labels, result = subscripts.split("->")
    shapes = [dict(zip(own, x.shape, strict=True)) for own, x in zip(labels.split(","), parts, strict=True)]
    long = {label for shape in shapes for label, size in shape.items() if size != 1}
    kept, operands = [], []
    for own, x in zip(labels.split(","), parts, strict=True):
        gone = tuple(axis for axis, label in enumerate(own) if label in long and x.shape[axis] == 1)
        operands.append(w.squeeze(x, gone) if gone else x)
        kept.append("".join(label for axis, label in enumerate(own) if axis not in gone))
    return w.einsum(f"{','.join(kept)}->{result}", *operands)


# -- rows: what couples the numbers of an axis -----------------------------------------------------------------------


def _softmax(w: Words, x: Any, axis: int, keep: Any) -> Any:
    if 0 in x.shape:
        return x
    if keep is None:
        return w.softmax(x, axis)
    keep = w.spread(keep, x)
    seen = w.any(keep, axis)  # a row of which nothing is kept is a row of zeros
    highest = w.still(w.max(w.where(keep, x, w.number(-math.inf, x)), (axis,), True))
    shifted = x - w.where(seen, highest, w.number(0.0, x))
    e = w.where(keep, w.exp(w.where(keep, shifted, w.number(0.0, x))), w.number(0.0, x))
    return e / w.where(seen, w.sum(e, (axis,), True), w.number(1.0, x))


def _log_softmax(w: Words, x: Any, axis: int) -> Any:
    return x if 0 in x.shape else w.log_softmax(x, axis)


def _layer_norm(w: Words, x: Any, gain: Any, bias: Any, eps: float) -> Any:
    last = (len(x.shape) - 1,)
    n = w.float_of(w.length(x, last[0]), x)
    centred = x - w.sum(x, last, True) / n
    variance = w.sum(centred * centred, last, True) / n
    return centred / w.sqrt(variance + eps) * gain + bias


def _cross_entropy(w: Words, x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str) -> Any:
    last = len(x.shape) - 1
    classes, zero = w.length(x, last), w.number(0.0, x)
    counts = targets == targets if ignore is None else targets != ignore
    right = w.arange(classes) == w.expand(w.where(counts, targets, targets * 0), (last,))
    weights = w.where(w.expand(counts, (last,)), w.astype(right, x.dtype), zero)
    if smoothing:
        share = w.where(w.expand(counts, (last,)), smoothing / w.float_of(classes, x), zero)
        weights = weights * (1 - smoothing) + share
    terms = w.where(weights != 0, weights * _log_softmax(w, x, last), zero)
    losses = -w.sum(terms, (last,), False)
    if reduction == "none" or not last:
        return losses
    total = w.sum(losses, tuple(range(last)), False)
    if reduction == "sum":
        return total
    many = w.sum(w.astype(counts, x.dtype), tuple(range(last)), False)
    return total / w.maximum(many, w.number(1.0, x))  # all ignored: the loss is 0


def _causal(w: Words, n: Any, m: Any) -> Any:
    """Query i sees the keys up to its own position, aligned at the end."""
    rows, columns = w.arange(n) - n, w.arange(m) - m
    return w.expand(columns, (0,)) <= w.expand(rows, (1,))


def _attention(w: Words, q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: float | None) -> Any:
    rank, rank_k = len(q.shape), len(k.shape)
    seen = _causal(w, w.length(q, rank - 2), w.length(k, rank_k - 2)) if causal else None  # (n, m)
    if keep is not None:
        seen = keep if seen is None else keep & seen  # (..., n, m)
        if len(keep.shape) > 1:  # a key that nobody may see is not read, whatever it holds
            anyone = w.any(keep, len(keep.shape) - 2)  # (..., 1, m)
            anyone = _turned(w, anyone)  # (..., m, 1)
            k, v = w.where(anyone, k, w.number(0.0, k)), w.where(anyone, v, w.number(0.0, v))
    c = 1 / w.sqrt(w.float_of(w.length(k, len(k.shape) - 1), k)) if scale is None else scale
    scores = (q @ _turned(w, k)) * c  # (..., n, m)
    return _softmax(w, scores, len(scores.shape) - 1, seen) @ v  # (..., n, d_v)


def _turned(w: Words, x: Any) -> Any:
    """The last two axes exchanged."""
    *before, i, j = range(len(x.shape))
    return w.permute(x, (*before, j, i))


# -- the table ---------------------------------------------------------------------------------------------------------

TABLE: dict[str, Saying] = {
    "add": lambda w, a, b: a + b,
    "subtract": lambda w, a, b: a - b,
    "multiply": lambda w, a, b: a * b,
    "divide": lambda w, a, b: a / b,
    "power": lambda w, a, b: w.pow(a, b),
    "maximum": lambda w, a, b: w.maximum(a, b),
    "minimum": lambda w, a, b: w.minimum(a, b),
    "where": lambda w, a, b, condition: w.where(condition, a, b),
    "negative": lambda w, x: -x,
    "exp": lambda w, x: w.exp(x),
    "log": lambda w, x: w.log(x),
    "sqrt": lambda w, x: w.sqrt(x),
    "sin": lambda w, x: w.sin(x),
    "cos": lambda w, x: w.cos(x),
    "tanh": lambda w, x: w.tanh(x),
    "sigmoid": lambda w, x: (w.tanh(x / 2) + 1) / 2,
    "erf": lambda w, x: w.erf(x),
    "abs": lambda w, x: w.where(x > 0, x, w.where(x < 0, -x, x * x)),
    "relu": lambda w, x: w.where(x <= 0, w.number(0.0, x), x),
    "gelu_tanh": lambda w, x: x / 2 * (1 + w.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi))),
    "integer_power": _integer_power,
    "clip": _clip,
    "cast": lambda w, x, dtype: w.astype(x, w.dtype(np.dtype(dtype).name)),
    "sum": _reduction("sum"),
    "max": _reduction("max"),
    "min": _reduction("min"),
    "prod": _reduction("prod"),
    "size_of": lambda w, x, axis: w.float_of(_lengths(w, x, axis), x),
    "reshape": lambda w, x, shape: w.reshape(x, shape),
    "transpose": lambda w, x, axes: w.permute(x, axes),
    "expand_dims": lambda w, x, axis: w.expand(x, tuple(sorted(axis))),
    "squeeze": lambda w, x, axis: w.squeeze(x, axis) if axis else x,
    "broadcast_to": lambda w, x, shape: w.broadcast_to(x, shape),
    "concatenate": lambda w, *parts, axis: w.concat(list(parts), axis),
    "stack": lambda w, *parts, axis: w.concat([w.expand(x, (axis,)) for x in parts], axis),
    "pad": lambda w, x, widths, value: w.pad(x, widths, value),
    "index": lambda w, x, key: read(w, x, key),
    "scatter_add": _scatter_add,
    "take_along_axis": _take_along,
    "put_along_axis": _put_along,
    "matmul": lambda w, a, b: a @ b,
    "einsum": _einsum,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "layer_norm": _layer_norm,
    "cross_entropy": _cross_entropy,
    "scaled_dot_product_attention": _attention,
}
"""Operation -> how it is said.  An operation of your own is added by `say`."""


def say(name: str, how: Saying) -> None:
    """Teach the hand-over an operation of your own.

    Parameters
    ----------
    name : str
        The name of its record.
    how : callable
        ``how(w, *inputs, **params)`` says it in the words ``w`` of a namespace; see `Words`.

    Raises
    ------
    ArgumentError
        When there is a saying already.

    Examples
    --------
    >>> say("softsign", lambda w, x: x / (1 + w.maximum(x, -x)))
    >>> del TABLE["softsign"]
    """
    if name in TABLE:
        raise ArgumentError(message(f"say: there is a saying of {name!r} already.", "", "Give the op another name."))
    TABLE[name] = how
