"""Cross entropy from scores: softmax, logarithm and choice of the right class in one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.kernels.small import row_sums
from tinyattn.ops.helpers import number_like
from tinyattn.ops.softmax import log_softmax


def target_weights(shape: tuple[int, ...], dtype: Any, targets: Any, ignore: Any, smoothing: float) -> tuple[Any, Any]:
    """How much each class of each row counts in the loss, and how many rows count at all."""
    classes = shape[-1]
    counts = np.ones(targets.shape, bool) if ignore is None else targets != ignore
    hot = (np.arange(classes) == np.where(counts, targets, 0)[..., None]).astype(dtype)
    weights = hot * (1 - smoothing) + smoothing / classes if smoothing else hot
    return np.where(counts[..., None], weights, 0.0).astype(dtype), counts


def _divisor(reduction: str, counts: Any, targets: Any) -> int:
    """What the sum of the rows' losses is divided by; 1 when every target is ignored, so that the loss is 0."""
    if reduction != "mean":
        return 1
    return (targets.size if counts is None else int(counts.sum())) or 1


def forward(x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str) -> tuple[Any, Any]:
    """The losses of the rows, reduced; kept are the probabilities, what each class weighs, and which rows count.

    Without smoothing one class of each row has all the weight: it is picked, and no matrix of zeros and ones is made.
    """
    if smoothing:
        weights, counts = target_weights(x.shape, x.dtype, targets, ignore, smoothing)
        e, total, scores = exponentials(x)  # (..., c), (..., 1), (..., c)
        losses = -np.add.reduce(np.where(weights != 0, weights * (scores - np.log(total)), 0.0), axis=-1)
    else:
        weights, counts = None, None if ignore is None else targets != ignore
        e, total, scores = exponentials(x)
        losses = np.log(total[..., 0]) - scores.reshape(-1)[_places(targets, counts, x.shape[-1])]  # (...)
        losses = losses if counts is None else np.where(counts, losses, 0)
    result = losses if reduction == "none" else losses.sum() / x.dtype.type(_divisor(reduction, counts, targets))
    return result, (np.divide(e, total, out=e), weights, counts)


def exponentials(x: Any) -> tuple[Any, Any, Any]:
    """exp(scores), the sums of its rows, and the scores; shifted by the largest of each row where that is needed.

    Finding the largest costs twice as much as exp.  Sums between a thousandth and a thousand say that it need not be
    known: no entry was large, and none that counts was small.
    """
    with np.errstate(over="ignore"):
        e = np.exp(x, order="C")  # (..., c)
    total = row_sums(e)  # (..., 1)
    if ((total > 1e-3) & (total < 1e3)).all():
        return e, total, x
    shifted = np.subtract(x, np.maximum.reduce(x, axis=-1, keepdims=True), order="C")
    e = np.exp(shifted, out=e)
    return e, row_sums(e), shifted


def _places(targets: Any, counts: Any, classes: int) -> Any:
    """Where the entries that targets name stand, row after row: picking by it takes a quarter of `take_along_axis`."""
    return _rows_of(targets) * classes + (targets if counts is None else np.where(counts, targets, 0))


def _rows_of(targets: Any) -> Any:
    return np.arange(targets.size).reshape(targets.shape)


def rule(g: Any, y: Any, saved: Any, x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str) -> Any:
    """Probability minus target, shared among the rows that count."""
    p, weights, counts = saved
    share = g[..., None] if reduction == "none" else g / x.dtype.type(_divisor(reduction, counts, targets))
    if weights is not None:
        return (np.where(counts[..., None] & (share != 0), p - weights, 0.0) * share,)
    share = share.reshape(-1) if reduction == "none" else share  # (n,) or one number
    d = p.reshape(targets.size, x.shape[-1]) * (share[:, None] if reduction == "none" else share)
    # (n, c), and of its own: no rule may write into a view, as the checker sees to.
    named = targets if counts is None else np.where(counts, targets, 0)
    d[np.arange(targets.size), named.reshape(-1)] -= share
    silent = share == 0 if counts is None else ~counts.reshape(-1) | (share == 0)
    if silent.any():
        d[silent] = 0
    return (d.reshape(p.shape),)


def composed(x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str) -> Any:
    """The same from `log_softmax`."""
    weights, counts = target_weights(x.shape, np.dtype(np.float64), targets, ignore, smoothing)
    weights = number_like(weights, x)
    losses = -np.where(weights != 0, weights * log_softmax(x, len(x.shape) - 1), 0.0).sum(axis=-1)
    return losses if reduction == "none" else losses.sum() / _divisor(reduction, counts, targets)
