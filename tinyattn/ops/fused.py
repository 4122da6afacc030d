"""Operations that are one op because the fused form is stabler or faster than its parts.

Where a record has a ``composed`` form, gradients of gradients and exact numbers go through that; tests hold
the two equal.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyattn.ops.describing import calls, entry, letters
from tinyattn.ops.helpers import matrix_product, number_like, sum_to, sums_along, swap, where_asked
from tinyattn.ops.record import Call, Op, register
from tinyattn.ops.reductions import size_of

# -- softmax -----------------------------------------------------------------------------------------------------


def highest(x: Any, axis: int) -> Any:
    """The largest entry along an axis, for a shift that cancels; where there is none, any shift will do."""
    if x.shape[axis] == 0:
        return np.zeros(tuple(1 if a == axis % x.ndim else size for a, size in enumerate(x.shape)), x.dtype)
    return np.maximum.reduce(x, axis=axis, keepdims=True)


def shifted_exp(x: Any, axis: int) -> Any:
    """exp(x - the largest entry): no overflow, and the shift cancels in every ratio.

    Small entries need no shift.  If the squares of all entries add up to less than 60 squared, none is beyond 60;
    that product costs a fifth of finding and subtracting the largest of each row.
    """
    if x.dtype.kind == "f" and x.dtype.itemsize >= 4:
        entries = x.ravel()
        if entries.dot(entries) < 3600:
            return np.exp(x)
    return np.exp(x - highest(x, axis))


def _softmax(x: Any, axis: int, keep: Any) -> Any:
    if keep is not None:
        return _kept_softmax(x, axis, keep)
    e = shifted_exp(x, axis)
    return e / sums_along(e, axis)


def _kept_softmax(x: Any, axis: int, keep: Any) -> Any:
    """Hidden entries get weight 0 and are not read; a row with nothing kept is a row of zeros."""
    keep = np.broadcast_to(keep, x.shape)
    nothing = ~keep.any(axis=axis, keepdims=True)
    shift = np.where(nothing, 0.0, highest(np.where(keep, x, -np.inf), axis))
    e = np.where(keep, np.exp(np.where(keep, x - shift, 0.0)), 0.0)
    return e / np.where(nothing, 1.0, np.add.reduce(e, axis=axis, keepdims=True))


def _softmax_rule(g: Any, y: Any, x: Any, axis: int, keep: Any) -> Any:
    """The gradient y (g - sum(g y)): every output depends on every input, so the sum couples the whole row."""
    if keep is not None:
        g = np.where(keep, g, 0.0)  # what was hidden is not read going back either
    y = where_asked(y, g, axis)
    gy = g * y
    return gy - y * sums_along(gy, axis)


def _row(call: Call) -> tuple[str, str, str]:
    """The indices of an entry, the letter of another one in its row, and the indices of that."""
    *names, other = letters(len(call.shapes[0]) + 1)
    there = [other if axis == call.params["axis"] else name for axis, name in enumerate(names)]
    return ",".join(names), other, ",".join(there)


def _softmax_definition(call: Call) -> str:
    here, other, there = _row(call)
    top, below = (f"exp(x[{at}])" for at in (here, there))
    if call.params["keep"] is not None:
        top, below = f"[keep[{here}] == 1] * {top}", f"[keep[{there}] == 1] * {below}"
    return f"y[{here}] = {top} / sum_{other} {below}"


softmax = register(Op(
    "softmax",
    _softmax,
    (_softmax_rule,),
    _softmax_definition,
    params=("axis", "keep"),
    sample=calls(
        ((2, 3), 1, None), ((2, 3), 0, None), ((3,), 0, None), ((2, 2, 3), 1, None),
        ((2, 3), 1, np.array([[True, True, False], [True, False, True]])),
    ),
))


def _log_softmax(x: Any, axis: int) -> Any:
    shifted = x - highest(x, axis)
    return shifted - np.log(np.add.reduce(np.exp(shifted), axis=axis, keepdims=True))


def _log_softmax_rule(g: Any, y: Any, x: Any, axis: int) -> Any:
    """The gradient g - softmax(x) sum(g); with exp(y) for the softmax the exact check could not decide."""
    return g - where_asked(softmax(x, axis, None), g, axis) * g.sum(axis=axis, keepdims=True)


def _log_softmax_definition(call: Call) -> str:
    here, other, there = _row(call)
    return f"y[{here}] = x[{here}] - log(sum_{other} exp(x[{there}]))"


log_softmax = register(Op(
    "log_softmax",
    _log_softmax,
    (_log_softmax_rule,),
    _log_softmax_definition,
    params=("axis",),
    sample=calls(((2, 3), 1), ((2, 3), 0), ((3,), 0), ((2, 2, 3), 1)),
))

# -- layer norm --------------------------------------------------------------------------------------------------


def _layer_norm(x: Any, gain: Any, bias: Any, eps: float) -> tuple[Any, Any]:
    n = x.shape[-1]
    centred = x - np.add.reduce(x, axis=-1, keepdims=True) / n
    r = 1 / np.sqrt(np.add.reduce(centred * centred, axis=-1, keepdims=True) / n + eps)
    z = centred * r
    return z * gain + bias, (z, r)


def _layer_norm_rule(g: Any, y: Any, saved: Any, x: Any, gain: Any, bias: Any, eps: float) -> Any:
    """The mean and the spread depend on every entry of the row: two corrections to the plain slope."""
    z, r = (where_asked(part, g, -1) for part in saved)
    n, leading = x.shape[-1], tuple(range(x.ndim - 1))
    gz = g * gain
    inner = gz - np.add.reduce(gz, -1, keepdims=True) / n - z * (np.add.reduce(gz * z, -1, keepdims=True) / n)
    return inner * r, np.add.reduce(g * z, leading), np.add.reduce(g, leading)


def _composed_layer_norm(x: Any, gain: Any, bias: Any, eps: float) -> Any:
    n = x.shape[-1]
    centred = x - x.sum(axis=-1, keepdims=True) / n
    variance = (centred * centred).sum(axis=-1, keepdims=True) / n
    return centred / np.sqrt(variance + eps) * gain + bias


layer_norm = register(Op(
    "layer_norm",
    _layer_norm,
    _layer_norm_rule,
    "y[..., i] = (x[..., i] - (sum_j x[..., j]) / size(i))"
    " / sqrt((sum_k (x[..., k] - (sum_j x[..., j]) / size(i))^2) / size(i) + eps) * gain[i] + bias[i]",
    inputs=("x", "gain", "bias"),
    params=("eps",),
    composed=_composed_layer_norm,
    saves=True,
    sample=calls(([(2, 3), (3,), (3,)], 1e-5), ([(4,), (4,), (4,)], 1e-5), ([(2, 2, 3), (3,), (3,)], 1e-5)),
))

# -- cross entropy -----------------------------------------------------------------------------------------------


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


def _cross_entropy(x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str) -> tuple[Any, Any]:
    weights, counts = target_weights(x.shape, x.dtype, targets, ignore, smoothing)
    shifted = x - np.maximum.reduce(x, axis=-1, keepdims=True)
    e = np.exp(shifted)
    total = np.add.reduce(e, axis=-1, keepdims=True)
    losses = -np.add.reduce(np.where(weights != 0, weights * (shifted - np.log(total)), 0.0), axis=-1)
    result = losses if reduction == "none" else losses.sum() / x.dtype.type(_divisor(reduction, counts))
    return result, (e / total, weights, counts)


def _cross_entropy_rule(
    g: Any, y: Any, saved: Any, x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str
) -> Any:
    """Probability minus target, shared among the rows that count."""
    p, weights, counts = saved
    share = g[..., None] if reduction == "none" else g / x.dtype.type(_divisor(reduction, counts))
    return (np.where(counts[..., None] & (share != 0), p - weights, 0.0) * share,)


def _composed_cross_entropy(x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str) -> Any:
    weights, counts = target_weights(x.shape, np.dtype(np.float64), targets, ignore, smoothing)
    weights = number_like(weights, x)
    losses = -np.where(weights != 0, weights * log_softmax(x, len(x.shape) - 1), 0.0).sum(axis=-1)
    return losses if reduction == "none" else losses.sum() / _divisor(reduction, counts)


def _cross_entropy_definition(call: Call) -> str:
    ignore, smoothing, reduction = (call.params[name] for name in ("ignore", "smoothing", "reduction"))
    *rows, c, other = letters(len(call.shapes[0]) + 1)
    target = f"[{entry('targets', rows)} == {c}]"
    weight = f"((1 - smoothing) * {target} + smoothing / size({c}))" if smoothing else target
    counted = f"[{entry('targets', rows)} != ignore]" if ignore is not None else ""
    log_p = f"({entry('x', [*rows, c])} - log(sum_{other} exp({entry('x', [*rows, other])})))"
    term = " * ".join(filter(None, [counted, weight, log_p]))
    if reduction == "none":
        return f"{entry('y', rows)} = -(sum_{c} {term})"
    total = f"y[] = -(sum_{','.join([*rows, c])} {term})"
    if reduction == "sum" or not rows:
        return total
    how_many = f"sum_{','.join(rows)} {counted}" if counted else " * ".join(f"size({row})" for row in rows)
    return f"{total} / ({how_many})"


_TARGETS = np.array([0, 2, 1, 2])

cross_entropy = register(Op(
    "cross_entropy",
    _cross_entropy,
    _cross_entropy_rule,
    _cross_entropy_definition,
    params=("targets", "ignore", "smoothing", "reduction"),
    composed=_composed_cross_entropy,
    saves=True,
    sample=calls(
        ((4, 3), _TARGETS, None, 0.0, "mean"), ((4, 3), _TARGETS, 2, 0.0, "mean"), ((4, 3), _TARGETS, None, 0.1, "sum"),
        ((4, 3), _TARGETS, 1, 0.1, "none"), ((4, 3), _TARGETS, None, 0.0, "none"),
        ((2, 2, 3), _TARGETS.reshape(2, 2), None, 0.0, "mean"),
    ),
))

# -- attention ---------------------------------------------------------------------------------------------------


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


def _attention(q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> tuple[Any, Any]:
    if q.ndim < 2 or k.ndim < 2 or v.ndim < 2:
        raise ValueError("queries, keys and values are matrices")
    c = q.dtype.type(1 / math.sqrt(k.shape[-1]) if scale is None else scale)
    seen = visible(keep, causal, q.shape[-2], k.shape[-2])
    if seen is None:
        weights = _softmax((q @ swap(k)) * c, -1, None)
        return weights @ v, (weights, c, None)
    with np.errstate(invalid="ignore"):  # what is hidden may hold anything
        weights = _softmax((q @ swap(k)) * c, -1, seen)
        return read_only_seen(weights, v), (weights, c, seen)


def _attention_rule(g: Any, y: Any, saved: Any, q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> Any:
    weights, c, seen = saved
    d_scores = _softmax_rule(g @ swap(v), weights, None, -1, seen) * c
    if seen is not None:  # a key hidden from a query is not read, whatever it holds
        d_q, d_k = read_only_seen(d_scores, k), read_only_seen(swap(d_scores), q)
    else:
        d_q, d_k = d_scores @ k, swap(d_scores) @ q
    return sum_to(d_q, q.shape), sum_to(d_k, k.shape), sum_to(swap(weights) @ g, v.shape)


def _composed_attention(q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> Any:
    c = 1 / np.sqrt(size_of(k, (len(k.shape) - 1,))) if scale is None else scale
    scores = matrix_product(q, swap(k)) * c  # (..., n, m)
    seen = visible(keep, causal, q.shape[-2], k.shape[-2])
    return matrix_product(softmax(scores, len(scores.shape) - 1, seen), v)  # (..., n, d_v)


def _attention_definition(call: Call) -> str:
    scale = "(1 / sqrt(size(d)))" if call.params["scale"] is None else "scale"

    def weight(key: str) -> str:
        kept = f"[keep[...,i,{key}] == 1] * " if call.params["keep"] is not None else ""
        before = f"[{key} - size(j) <= i - size(i)] * " if call.params["causal"] else ""
        return f"{kept}{before}exp({scale} * (sum_d q[...,i,d] * k[...,{key},d]))"

    return f"y[...,i,e] = sum_j ({weight('j')} / sum_m {weight('m')}) * v[...,j,e]"


_QKV = [(2, 3), (4, 3), (4, 2)]
_KEEP = np.array([[True, True, False, True], [True, False, True, True]])

scaled_dot_product_attention = register(Op(
    "scaled_dot_product_attention",
    _attention,
    _attention_rule,
    _attention_definition,
    inputs=("q", "k", "v"),
    params=("keep", "causal", "scale"),
    composed=_composed_attention,
    saves=True,
    sample=calls(
        (_QKV, None, False, None), (_QKV, _KEEP, False, 0.5), (_QKV, None, True, None),
        ([(2, *shape) for shape in _QKV], _KEEP, True, None),
    ),
))
