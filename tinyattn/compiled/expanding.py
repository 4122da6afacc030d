"""Fused operations as several plain ones, so that a program shows what they do, forward and backward.

Each form is written in public functions; it is what the textbook says, shifted where a number could overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tinyattn as ta
from tinyattn.ops import REGISTRY, Op
from tinyattn.tensor import Tensor


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Each row brought to mean 0 and variance 1, then scaled and shifted."""
    n = x.shape[-1]
    centred = x - ta.sum(x, axis=-1, keepdims=True) / n
    variance = ta.sum(centred * centred, axis=-1, keepdims=True) / n
    return centred * (1 / ta.sqrt(variance + eps)) * gain + bias


def cross_entropy(x: Tensor, targets: Any, ignore: int | None, smoothing: float, reduction: str) -> Tensor:
    """Minus the logarithm of the softmax of the right class, for the rows that count."""
    counted = None if ignore is None else targets != ignore
    right = targets if counted is None else _chosen(counted, targets)
    log_p = ta.log_softmax(x, axis=-1)
    picked = ta.take_along_axis(log_p, _column(right), axis=-1)[..., 0]
    losses = -picked
    if smoothing:
        losses = losses * (1 - smoothing) - ta.sum(log_p, axis=-1) * (smoothing / x.shape[-1])
    if counted is not None:
        losses = ta.where(counted, losses, 0.0)
    if reduction == "none":
        return losses
    total = ta.sum(losses)
    if reduction == "sum":
        return total
    if counted is None:
        return total / max(losses.size, 1)
    if isinstance(counted, np.ndarray):
        return total / max(int(counted.sum()), 1)
    ones = ta.where(counted, np.ones((), x.dtype), np.zeros((), x.dtype))
    return total / ta.maximum(ta.sum(ones), 1.0)


def _chosen(counted: Any, targets: Any) -> Any:
    zero = np.zeros((), targets.dtype)
    return np.where(counted, targets, zero) if isinstance(targets, np.ndarray) else ta.where(counted, targets, zero)


def _column(targets: Any) -> Any:
    return targets[..., None]


def attention(q: Tensor, k: Tensor, v: Tensor, keep: Any, causal: bool, scale: float | None) -> Tensor:
    """The weighted mean of the values, weights by the softmax of the scaled scores."""
    n, m = q.shape[-2], k.shape[-2]
    scores = (q @ k.mT) * (1 / math.sqrt(k.shape[-1]) if scale is None else scale)
    seen = keep
    if causal:
        triangle = np.tri(n, m, m - n, dtype=bool)
        seen = triangle if keep is None else keep & triangle
    return ta.softmax(scores, axis=-1, keep=seen) @ v


def gelu_tanh(x: Tensor) -> Tensor:
    """The share of a normal distribution that lies below, in the tanh form."""
    return x / 2 * (1 + ta.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))


def _expanded(name: str, composed: Callable[..., Tensor]) -> Op:
    op = REGISTRY[name]
    return Op(
        name, op.forward, op.vjps, op.definition, sample=op.sample, inputs=op.input_names, params=op.param_names,
        composed=composed, saves=op.saves, kinks=op.kinks,
    )  # fmt: skip


EXPANDED = {
    "layer_norm": _expanded("layer_norm", layer_norm),
    "cross_entropy": _expanded("cross_entropy", cross_entropy),
    "scaled_dot_product_attention": _expanded("scaled_dot_product_attention", attention),
    "gelu_tanh": _expanded("gelu_tanh", gelu_tanh),
}
