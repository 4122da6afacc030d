"""Scaled dot-product attention.

The plain form is the textbook's.  Where there are many scores, those of short sequences are computed in the cache
(`tinyattn.kernels.short`: three quarters of the time), and those of long ones tile by tile and not kept
(`tinyattn.kernels.tiles`): eight heads over 2,048 words then take a sixtieth of the memory and a tenth of the time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyattn.kernels import softmax as kernel
from tinyattn.kernels.small import matrix_product
from tinyattn.ops.helpers import care, sum_to, swap
from tinyattn.ops.reductions import size_of
from tinyattn.ops.softmax import softmax, softmax_rule

MANY = 65_536  # from so many scores on, a fast form is asked


def visible(keep: Any, causal: bool, queries: int, keys: int) -> Any:
    """The boolean mask of who may attend to whom; None when everybody may.  Causal is aligned at the end."""
    if not causal:
        return keep
    triangle = np.tri(queries, keys, keys - queries, dtype=bool)
    return triangle if keep is None else keep & triangle


def read_only_seen(weights: Any, v: Any) -> Any:
    """``weights @ v`` in which a weight of 0 does not read its value: 0 times nan would be nan."""
    if np.isfinite(v).all():
        return weights @ v
    products = weights[..., :, :, None] * v[..., None, :, :]
    return np.where(weights[..., :, :, None] == 0, 0.0, products).sum(axis=-2)


def forward(q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> tuple[Any, Any]:
    """The weighted means of the values, and what the way back wants; of many finite scores in a fast form."""
    if q.ndim < 2 or k.ndim < 2 or v.ndim < 2:
        raise ValueError("queries, keys and values are matrices")
    if math.prod(q.shape[:-1]) * math.prod(k.shape[:-1]) >= MANY and _fit(q, k, v):
        from tinyattn.kernels import short, tiles  # late, for a shorter `import tinyattn`

        form: Any = short if q.shape[-2] * k.shape[-2] <= short.MOST else tiles
        found = form.forward(q, k, v, keep, causal, _factor(k, scale))
        if found is not None:
            return found  # type: ignore[no-any-return]
    return plain_forward(q, k, v, keep, causal, scale)


def _fit(q: Any, k: Any, v: Any) -> bool:
    """Whether a fast form can do it and pays: one dtype that BLAS multiplies, and many scores."""
    heads = math.prod(np.broadcast_shapes(q.shape[:-2], k.shape[:-2]))
    many = heads * q.shape[-2] * k.shape[-2] >= MANY
    return many and q.dtype.char in "fd" and q.dtype == k.dtype == v.dtype and k.shape[-2] == v.shape[-2]


def rule(g: Any, y: Any, saved: Any, q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> Any:
    """Back as it went forward; but what is not finite is left to the plain form, which looks at each entry."""
    if saved.__class__ is tuple:
        return plain_rule(g, y, saved, q, k, v, keep, causal, scale)
    if care.wanted and care.here():
        return plain_rule(g, y, plain_forward(q, k, v, keep, causal, scale)[1], q, k, v, keep, causal, scale)
    from tinyattn.kernels import short, tiles

    form: Any = short if saved.__class__ is short.Weights else tiles
    return form.rule(g, y, saved, q, k, v, keep, causal, _factor(k, scale))


def _factor(k: Any, scale: Any) -> Any:
    """The factor on the scores, in their dtype."""
    return k.dtype.type(1 / math.sqrt(k.shape[-1]) if scale is None else scale)


def plain_forward(q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> tuple[Any, Any]:
    """The same in the textbook's three lines; kept are the weights, the scale and the mask."""
    c = _factor(k, scale)
    seen = visible(keep, causal, q.shape[-2], k.shape[-2])
    if seen is None:
        weights = kernel.softmax((q @ swap(k)) * c, -1, None)  # (..., n, m)
        return weights @ v, (weights, c, None)  # (..., n, d_v)
    with np.errstate(invalid="ignore"):  # what is hidden may hold anything
        weights = kernel.softmax((q @ swap(k)) * c, -1, seen)  # (..., n, m)
        return read_only_seen(weights, v), (weights, c, seen)  # (..., n, d_v)


def plain_rule(g: Any, y: Any, saved: Any, q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> Any:
    """Back through the mean, the softmax and the scores, in matrix products only."""
    weights, c, seen = saved
    d_scores = softmax_rule(g @ swap(v), weights, None, -1, seen) * c  # (..., n, m)
    if seen is not None:  # a key hidden from a query is not read, whatever it holds
        d_q, d_k = read_only_seen(d_scores, k), read_only_seen(swap(d_scores), q)
    else:
        d_q, d_k = d_scores @ k, swap(d_scores) @ q
    return sum_to(d_q, q.shape), sum_to(d_k, k.shape), sum_to(swap(weights) @ g, v.shape)


def composed(q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> Any:
    """The same from `matmul` and `softmax`: the textbook's three lines."""
    c = 1 / np.sqrt(size_of(k, (len(k.shape) - 1,))) if scale is None else scale
    scores = matrix_product(q, swap(k)) * c  # (..., n, m)
    seen = visible(keep, causal, q.shape[-2], k.shape[-2])
    seen = seen if seen is None else np.broadcast_to(seen, scores.shape)  # as many axes as the scores
    return matrix_product(softmax(scores, len(scores.shape) - 1, seen), v)  # (..., n, d_v)
