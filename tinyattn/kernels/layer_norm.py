"""Layer normalisation: each row brought to mean 0 and variance 1, then scaled and shifted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyattn.kernels.small import column_sums, row_squares, row_sums
from tinyattn.ops.helpers import where_asked
from tinyattn.ops.reductions import size_of


def forward(x: Any, gain: Any, bias: Any, eps: float) -> tuple[Any, Any]:
    """The rows, normalised, scaled and shifted; kept are the normalised rows and one over their spread."""
    n = x.shape[-1]
    z = x - row_sums(x) / n  # (..., n)
    r = 1 / np.sqrt(row_squares(z) / n + eps)  # (..., 1)
    z *= r  # in memory that is there: a new array costs more than numbers
    y = z * gain
    y += bias
    return y, (z, r)


def rule(g: Any, y: Any, saved: Any, x: Any, gain: Any, bias: Any, eps: float) -> Any:
    """The mean and the spread depend on every entry of the row: two corrections to the plain slope.

    With gz = g gain it is (gz - mean(gz) - z mean(gz z)) r.  The means come as products with gain, before gz is made.
    """
    z, r = (where_asked(part, g, -1) for part in saved)
    n, rows = x.shape[-1], (math.prod(x.shape[:-1]), x.shape[-1])
    gz = g * z  # (..., n)
    d_gain, d_bias = column_sums(gz.reshape(rows)), column_sums(g.reshape(rows))  # (n,), (n,)
    share = gain / n  # (n,)
    first, second = row_sums(g, share), row_sums(gz, share)  # (..., 1), (..., 1)
    inner = g * gain  # (..., n)
    inner -= np.multiply(z, second, out=gz)
    inner -= first
    inner *= r
    return inner, d_gain, d_bias


def composed(x: Any, gain: Any, bias: Any, eps: float) -> Any:
    """The same from means and a square root."""
    n = size_of(x, (len(x.shape) - 1,))
    centred = x - x.sum(axis=-1, keepdims=True) / n
    variance = (centred * centred).sum(axis=-1, keepdims=True) / n
    return centred / np.sqrt(variance + eps) * gain + bias
