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


def _divisor(reduction: str, counts: Any) -> int:
    """What the sum of the rows' losses is divided by; 1 when every target is ignored, so that the loss is 0."""
    return int(counts.sum()) or 1 if reduction == "mean" else 1


def forward(x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str) -> tuple[Any, Any]:
    """The losses of the rows, reduced; kept are the probabilities, what each class weighs, and which rows count."""
    shifted = np.subtract(x, np.maximum.reduce(x, axis=-1, keepdims=True), order="C")  # (..., c)
    if smoothing:
        weights, counts = target_weights(x.shape, x.dtype, targets, ignore, smoothing)
        e = np.exp(shifted)
        total = row_sums(e)  # (..., 1)
        losses = -np.add.reduce(np.where(weights != 0, weights * (shifted - np.log(total)), 0.0), axis=-1)
    else:  # one class of each row has all the weight: it is picked, and no matrix of zeros and ones is made
        weights, counts = None, np.ones(targets.shape, bool) if ignore is None else targets != ignore
        picked = shifted.reshape(-1)[_places(targets, counts, x.shape[-1])]  # (...)
        e = np.exp(shifted, out=shifted)
        total = row_sums(e)  # (..., 1)
        losses = np.where(counts, np.log(total[..., 0]) - picked, 0)
    result = losses if reduction == "none" else losses.sum() / x.dtype.type(_divisor(reduction, counts))
    return result, (np.divide(e, total, out=e), weights, counts)


def _places(targets: Any, counts: Any, classes: int) -> Any:
    """Where the entries that targets name stand, row after row: picking by it takes a quarter of `take_along_axis`."""
    return np.arange(targets.size).reshape(targets.shape) * classes + np.where(counts, targets, 0)


def rule(g: Any, y: Any, saved: Any, x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str) -> Any:
    """Probability minus target, shared among the rows that count."""
    p, weights, counts = saved
    share = g[..., None] if reduction == "none" else g / x.dtype.type(_divisor(reduction, counts))
    if weights is not None:
        return (np.where(counts[..., None] & (share != 0), p - weights, 0.0) * share,)
    share = share.reshape(-1) if reduction == "none" else share  # (n,) or one number
    d = p.reshape(targets.size, x.shape[-1]) * (share[:, None] if reduction == "none" else share)
    # (n, c), and of its own: no rule may write into a view, as the checker sees to.
    d[np.arange(targets.size), np.where(counts, targets, 0).reshape(-1)] -= share
    silent = ~counts.reshape(-1) | (share == 0)
    if silent.any():
        d[silent] = 0
    return (d.reshape(p.shape),)


def composed(x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str) -> Any:
    """The same from `log_softmax`."""
    weights, counts = target_weights(x.shape, np.dtype(np.float64), targets, ignore, smoothing)
    weights = number_like(weights, x)
    losses = -np.where(weights != 0, weights * log_softmax(x, len(x.shape) - 1), 0.0).sum(axis=-1)
    return losses if reduction == "none" else losses.sum() / _divisor(reduction, counts)
