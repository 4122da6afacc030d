"""From scores to weights.  The lecture asks whether softmax may be relu; here are both, and the linear kernel's way.

Each is called with scores, shape (..., n, m), and a mask or None, and gives weights of that shape: 0 for a hidden key,
and a row of zeros for a query that may look at nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

import tinyattn as ta
from tinyattn.arguments import operand
from tinyattn.composed import named_by_caller
from tinyattn.errors import ArgumentError, message
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinyattn.arguments import TensorLike

    Mask = NDArray[np.bool_]

Normalise = Callable[..., Tensor]


@named_by_caller
def softmax(scores: TensorLike, keep: Mask | None = None) -> Tensor:
    """Weights exp(score) / sum of exp(score): positive, and each row sums to 1.

    Examples
    --------
    >>> softmax([[1.0, 1.0, 9.0]], np.array([True, True, False]))
    tensor([[0.5, 0.5, 0. ]], shape=(1, 3))
    """
    return ta.softmax(scores, axis=-1, keep=keep)  # (..., n, m)  rows sum to 1


@named_by_caller
def relu_raw(scores: TensorLike, keep: Mask | None = None) -> Tensor:
    """Weights relu(score): many are 0, and a row may sum to anything.

    Examples
    --------
    >>> relu_raw([[-1.0, 2.0, 4.0]])
    tensor([[0., 2., 4.]], shape=(1, 3))
    """
    weights = ta.relu(scores)  # (..., n, m)
    return weights if keep is None else ta.where(keep, weights, 0.0)  # (..., n, m)  hidden keys get 0


@named_by_caller
def relu(scores: TensorLike, keep: Mask | None = None) -> Tensor:
    """Weights relu(score) / n, where n is how many keys the query sees, so that size and padding do not matter.

    Examples
    --------
    >>> relu([[-1.0, 2.0, 4.0, 0.0]])
    tensor([[0. , 0.5, 1. , 0. ]], shape=(1, 4))
    """
    weights = relu_raw(scores, keep)  # (..., n, m)
    if keep is None:
        return weights / ta.size_of(weights, -1)  # (..., n, m)
    keys = np.broadcast_to(keep, weights.shape).sum(axis=-1, keepdims=True)  # (..., n, 1)
    count = ta.tensor(np.maximum(keys, 1).astype(weights.dtype))  # (..., n, 1)
    return weights / count  # (..., n, m)


@named_by_caller
def linear(scores: TensorLike, keep: Mask | None = None) -> Tensor:
    """Weights score / sum of scores, for scores that are never negative, such as those of `scores.kernel`.

    Examples
    --------
    >>> linear([[1.0, 3.0]])
    tensor([[0.25, 0.75]], shape=(1, 2))
    """
    shares = operand(scores, "linear") if keep is None else ta.where(keep, scores, 0.0)  # (..., n, m)
    total = ta.sum(shares, axis=-1, keepdims=True)  # (..., n, 1)
    nothing = total == 0  # (..., n, 1)
    return shares / (ta.where(nothing, 1.0, total) if np.any(nothing) else total)  # (..., n, m)  rows sum to 1, or 0


NORMALISE: dict[str, Normalise] = {"softmax": softmax, "relu": relu, "relu_raw": relu_raw, "linear": linear}


def normalise_named(normalise: str | Normalise) -> Normalise:
    """A way to weights by its name, or a function ``f(scores, keep)`` of one's own.

    Examples
    --------
    >>> normalise_named("relu") is relu
    True
    """
    if callable(normalise):
        return normalise
    if isinstance(normalise, str) and normalise in NORMALISE:
        return NORMALISE[normalise]
    raise ArgumentError(
        message(
            f"attention: normalise={normalise!r} is not known.",
            f"By name there are {', '.join(map(repr, NORMALISE))}.",
            "A function f(scores, keep) of your own will do, too.",
        )
    )
