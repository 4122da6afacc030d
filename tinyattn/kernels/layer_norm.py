"""Layer normalisation: each row brought to mean 0 and variance 1, then scaled and shifted."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.ops.helpers import where_asked
from tinyattn.ops.reductions import size_of


def forward(x: Any, gain: Any, bias: Any, eps: float) -> tuple[Any, Any]:
    """The rows, normalised, scaled and shifted; kept are the normalised rows and one over their spread."""
    n = x.shape[-1]
    centred = x - np.add.reduce(x, axis=-1, keepdims=True) / n
    r = 1 / np.sqrt(np.add.reduce(centred * centred, axis=-1, keepdims=True) / n + eps)
    z = centred * r
    return z * gain + bias, (z, r)


def rule(g: Any, y: Any, saved: Any, x: Any, gain: Any, bias: Any, eps: float) -> Any:
    """The mean and the spread depend on every entry of the row: two corrections to the plain slope."""
    z, r = (where_asked(part, g, -1) for part in saved)
    n, leading = x.shape[-1], tuple(range(x.ndim - 1))
    gz = g * gain
    inner = gz - np.add.reduce(gz, -1, keepdims=True) / n - z * (np.add.reduce(gz * z, -1, keepdims=True) / n)
    return inner * r, np.add.reduce(g * z, leading), np.add.reduce(g, leading)


def composed(x: Any, gain: Any, bias: Any, eps: float) -> Any:
    """The same from means and a square root."""
    n = size_of(x, (len(x.shape) - 1,))
    centred = x - x.sum(axis=-1, keepdims=True) / n
    variance = (centred * centred).sum(axis=-1, keepdims=True) / n
    return centred / np.sqrt(variance + eps) * gain + bias
