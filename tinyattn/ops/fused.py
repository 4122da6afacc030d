"""Operations that are one op because the fused form is stabler or faster than its parts.

Each has a composed form in `tinyattn.functions` or `tinyattn.composed`, and tests hold the two equal.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyattn.ops.helpers import letters, matrix_product, number_like, plain, sum_to, sums_along, swap
from tinyattn.ops.reductions import size_of
from tinyattn.ops.record import Call, Op, register


def _along_axis(text: str) -> Any:
    """A definition written for the last axis, moved to the axis of the call."""

    def definition(call: Call) -> str:
        names, axis = letters(len(call.shapes[0])), call.params["axis"]
        own = ",".join(names)
        other = letters(1, skip="".join(names))[0]
        summed = ",".join(other if a == axis else name for a, name in enumerate(names))
        result = text.replace("OWN", own).replace("OTHER", other).replace("SUMMED", summed)
        if call.params.get("keep") is None:
            return result.replace("KEPT ", "").replace("SEEN ", "")
        seen = f"[keep[{summed}] == 1] * "
        return result.replace("KEPT ", seen.replace(summed, own)).replace("SEEN ", seen)

    return definition


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
        flat = x.ravel()
        if flat.dot(flat) < 3600:
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
    first = np.where(keep, x, -np.inf)
    shift = np.where(nothing, 0.0, highest(first, axis))
    e = np.where(keep, np.exp(np.where(keep, x - shift, 0.0)), 0.0)
    total = np.add.reduce(e, axis=axis, keepdims=True)
    return e / np.where(nothing, 1.0, total)


def _softmax_rule(g: Any, y: Any, x: Any, axis: int, keep: Any) -> Any:
    """y (g - sum(g y)): every output depends on every input, so the sum couples the whole row."""
    if keep is not None:
        g = np.where(keep, g, 0.0)  # what was hidden is not read going back either
    gy = g * y
    result = gy - y * sums_along(gy, axis)
    if result.__class__ is np.ndarray:
        flat = result.ravel()
        if result.dtype == object or math.isfinite(flat.dot(flat)):  # a third of the time of isfinite(...).all()
            return result
    y = where_asked(y, g, axis)
    gy = g * y
    return gy - y * sums_along(gy, axis)


def where_asked(y: Any, g: Any, axis: int) -> Any:
    """``y``, but 0 in rows that hold a nan and whose cotangent is 0: nobody asked about them."""
    numbers = plain(y)
    if numbers.dtype == object or math.isfinite(numbers.sum()):
        return y
    finite = np.isfinite(numbers).all(axis=axis, keepdims=True)
    return np.where(finite | (plain(g) != 0).any(axis=axis, keepdims=True), y, 0.0)


def _rows(rng: Any) -> list[Any]:
    keep = np.array([[True, True, False], [True, False, True]])
    return [
        ((rng.normal(size=(2, 3)),), (1, None)),
        ((rng.normal(size=(2, 3)),), (0, None)),
        ((rng.normal(size=(2, 3)),), (1, keep)),
        ((rng.normal(size=(3,)),), (0, None)),
        ((rng.normal(size=(2, 2, 3)),), (1, None)),
    ]


softmax = register(
    Op(
        "softmax",
        _softmax,
        (_softmax_rule,),
        _along_axis("y[OWN] = KEPT exp(x[OWN]) / sum_OTHER SEEN exp(x[SUMMED])"),
        params=("axis", "keep"),
        sample=_rows,
    )
)


def _log_softmax(x: Any, axis: int) -> Any:
    shifted = x - highest(x, axis)
    return shifted - np.log(np.add.reduce(np.exp(shifted), axis=axis, keepdims=True))


def _log_softmax_rule(g: Any, y: Any, x: Any, axis: int) -> Any:
    """g - softmax(x) sum(g).  With exp(y) for the softmax the exact check could not decide (see its docs)."""
    return g - where_asked(softmax(x, axis, None), g, axis) * g.sum(axis=axis, keepdims=True)


log_softmax = register(
    Op(
        "log_softmax",
        _log_softmax,
        (_log_softmax_rule,),
        _along_axis("y[OWN] = x[OWN] - log(sum_OTHER exp(x[SUMMED]))"),
        params=("axis",),
        sample=lambda rng: [(inputs, params[:1]) for inputs, params in _rows(rng) if params[1] is None],
    )
)


def _moments(x: Any, eps: float) -> tuple[Any, Any]:
    """The rows centred, and one over their standard deviation."""
    n = x.shape[-1]
    centred = x - np.add.reduce(x, axis=-1, keepdims=True) / n
    variance = np.add.reduce(centred * centred, axis=-1, keepdims=True) / n
    return centred, 1 / np.sqrt(variance + eps)


def _layer_norm(x: Any, gain: Any, bias: Any, eps: float) -> tuple[Any, Any]:
    centred, r = _moments(x, eps)
    z = centred * r
    return z * gain + bias, (z, r)


def _layer_norm_rule(g: Any, y: Any, saved: Any, x: Any, gain: Any, bias: Any, eps: float) -> Any:
    """The mean and the spread depend on every entry of the row: two corrections to the plain slope."""
    z, r = saved
    n, leading = x.shape[-1], tuple(range(x.ndim - 1))
    gz = g * gain
    inner = gz - np.add.reduce(gz, -1, keepdims=True) / n - z * (np.add.reduce(gz * z, -1, keepdims=True) / n)
    return inner * r, np.add.reduce(g * z, leading), np.add.reduce(g, leading)


def _composed_layer_norm(x: Any, gain: Any, bias: Any, eps: float) -> Any:
    n = x.shape[-1]
    centred = x - x.sum(axis=-1, keepdims=True) / n
    variance = (centred * centred).sum(axis=-1, keepdims=True) / n
    return centred / np.sqrt(variance + eps) * gain + bias


def _why_layer_norm(operands: Any, shapes: Any, params: Any) -> tuple[str, str]:
    wide = shapes[0][-1:] if shapes[0] else ()
    return f"Gain and bias need one number for each of the {wide} entries of a row.", "Give both that shape."


layer_norm = register(
    Op(
        "layer_norm",
        _layer_norm,
        _layer_norm_rule,
        "y[..., i] = (x[..., i] - (sum_j x[..., j]) / size(i)) / sqrt((sum_k (x[..., k] - (sum_j x[..., j]) / size(i))^2)"
        " / size(i) + eps) * gain[i] + bias[i]",
        inputs=("x", "gain", "bias"),
        params=("eps",),
        composed=_composed_layer_norm,
        saves=True,
        sample=lambda rng: [
            ((rng.normal(size=shape), rng.normal(size=shape[-1:]), rng.normal(size=shape[-1:])), (1e-5,))
            for shape in ((2, 3), (4,), (2, 2, 3))
        ],
        explain=_why_layer_norm,
    )
)


def target_weights(shape: tuple[int, ...], dtype: Any, targets: Any, ignore: Any, smoothing: float) -> tuple[Any, Any]:
    """How much each class of each row counts in the loss, and how many rows count at all."""
    classes = shape[-1]
    counts = np.ones(targets.shape, bool) if ignore is None else targets != ignore
    hot = (np.arange(classes) == np.where(counts, targets, 0)[..., None]).astype(dtype)
    weights = hot * (1 - smoothing) + smoothing / classes if smoothing else hot
    return np.where(counts[..., None], weights, 0.0).astype(dtype), counts


def _scale_of(reduction: str, counts: Any) -> int:
    """What the sum of the rows' losses is divided by; 1 when every target is ignored, so that the loss is 0."""
    return int(counts.sum()) or 1 if reduction == "mean" else 1


def _cross_entropy(x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str) -> tuple[Any, Any]:
    weights, counts = target_weights(x.shape, x.dtype, targets, ignore, smoothing)
    shifted = x - np.maximum.reduce(x, axis=-1, keepdims=True)
    e = np.exp(shifted)
    total = np.add.reduce(e, axis=-1, keepdims=True)
    log_p = shifted - np.log(total)
    losses = -np.add.reduce(np.where(weights != 0, weights * log_p, 0.0), axis=-1)
    saved = (e / total, weights, counts)
    if reduction == "none":
        return losses, saved
    return losses.sum() / x.dtype.type(_scale_of(reduction, counts)), saved


def _cross_entropy_rule(g: Any, y: Any, saved: Any, x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str) -> Any:
    """Probability minus target, shared among the rows that count."""
    p, weights, counts = saved
    share = g[..., None] if reduction == "none" else g / x.dtype.type(_scale_of(reduction, counts))
    return (np.where(counts[..., None] & (share != 0), p - weights, 0.0) * share,)


def _composed_cross_entropy(x: Any, targets: Any, ignore: Any, smoothing: float, reduction: str) -> Any:
    weights, counts = target_weights(x.shape, np.dtype(np.float64), targets, ignore, smoothing)
    weights = number_like(weights, x) if x.dtype != object else weights
    losses = -np.where(weights != 0, weights * log_softmax(x, len(x.shape) - 1), 0.0).sum(axis=-1)
    return losses if reduction == "none" else losses.sum() / _scale_of(reduction, counts)


def _cross_entropy_definition(call: Call) -> str:
    rank, smoothing = len(call.shapes[0]), call.params["smoothing"]
    rows = letters(rank)[: rank - 1]
    c, other = letters(rank + 1)[rank - 1 :]
    at = ",".join([*rows, c])
    target = f"[targets[{','.join(rows)}] == {c}]"
    weight = f"((1 - smoothing) * {target} + smoothing / size({c}))" if smoothing else target
    log_p = f"(x[{at}] - log(sum_{other} exp(x[{','.join([*rows, other])}])))"
    counted = f"[targets[{','.join(rows)}] != ignore]" if call.params["ignore"] is not None else ""
    term = f"{counted + ' * ' if counted else ''}{weight} * {log_p}"
    if call.params["reduction"] == "none":
        return f"y[{','.join(rows)}] = -(sum_{c} {term})"
    total = f"-(sum_{','.join([*rows, c])} {term})"
    if call.params["reduction"] == "sum" or not rows:
        return f"y[] = {total}"
    how_many = f"(sum_{','.join(rows)} {counted})" if counted else "(" + " * ".join(f"size({r})" for r in rows) + ")"
    return f"y[] = {total} / {how_many}"


def _cross_entropy_samples(rng: Any) -> list[Any]:
    targets = np.array([0, 2, 1, 2])
    forms = [(None, 0.0, "mean"), (2, 0.0, "mean"), (None, 0.1, "sum"), (1, 0.1, "none"), (None, 0.0, "none")]
    calls = [((rng.normal(size=(4, 3)),), (targets, *form)) for form in forms]
    return [*calls, ((rng.normal(size=(2, 2, 3)),), (targets.reshape(2, 2), None, 0.0, "mean"))]


cross_entropy = register(
    Op(
        "cross_entropy",
        _cross_entropy,
        _cross_entropy_rule,
        _cross_entropy_definition,
        params=("targets", "ignore", "smoothing", "reduction"),
        composed=_composed_cross_entropy,
        saves=True,
        sample=_cross_entropy_samples,
    )
)


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
    c = q.dtype.type(1 / math.sqrt(k.shape[-1]) if scale is None else scale)
    seen = visible(keep, causal, q.shape[-2], k.shape[-2])
    with np.errstate(invalid="ignore" if seen is not None else "warn"):
        weights = _softmax((q @ swap(k)) * c, -1, seen)
        return read_only_seen(weights, v) if seen is not None else weights @ v, (weights, c, seen)


def _attention_rule(g: Any, y: Any, saved: Any, q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> Any:
    weights, c, seen = saved
    d_weights = g @ swap(v)
    d_scores = _softmax_rule(d_weights, weights, None, -1, seen) * c
    if seen is not None:  # a key hidden from a query is not read, whatever it holds
        d_q, d_k = read_only_seen(d_scores, k), read_only_seen(swap(d_scores), q)
    else:
        d_q, d_k = d_scores @ k, swap(d_scores) @ q
    return sum_to(d_q, q.shape), sum_to(d_k, k.shape), sum_to(swap(weights) @ g, v.shape)


def _attention_definition(call: Call) -> str:
    scale = "(1 / sqrt(size(d)))" if call.params["scale"] is None else "scale"
    score = f"{scale} * (sum_d q[...,i,d] * k[...,KEY,d])"
    tests = []
    if call.params["keep"] is not None:
        tests.append("[keep[...,i,KEY] == 1]")
    if call.params["causal"]:
        tests.append("[KEY - size(j) <= i - size(i)]")
    seen = "".join(f"{test} * " for test in tests)
    top, bottom = (f"{seen}exp({score})".replace("KEY", key) for key in ("j", "m"))
    return f"y[...,i,e] = sum_j ({top} / sum_m {bottom}) * v[...,j,e]"


def _composed_attention(q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> Any:
    c = 1 / np.sqrt(size_of(k, (len(k.shape) - 1,))) if scale is None else scale
    scores = matrix_product(q, swap(k)) * c  # (..., n, m)
    seen = visible(keep, causal, q.shape[-2], k.shape[-2])
    return matrix_product(softmax(scores, len(scores.shape) - 1, seen), v)  # (..., n, d_v)


def _why_attention(operands: Any, shapes: Any, params: Any) -> tuple[str, str]:
    (q, k, v), (a, b, c) = operands, shapes
    if min(len(a), len(b), len(c)) < 2:
        return "Queries, keys and values are matrices: one row per position.", f"Write {q}[None] for a single row."
    if a[-1] != b[-1]:
        return f"A query has width {a[-1]} and a key {b[-1]}; their dot product needs equal widths.", ""
    if b[-2] != c[-2]:
        return f"There are {b[-2]} keys and {c[-2]} values; each key needs its value.", ""
    if params["keep"] is not None:
        return f"The mask has shape {params['keep'].shape}; it must broadcast to (..., {a[-2]}, {b[-2]}): queries by keys.", ""
    return "The batch axes do not broadcast.", ""


def _attention_samples(rng: Any) -> list[Any]:
    keep = np.array([[True, True, False, True], [True, False, True, True]])

    def qkv(*batch: int) -> Any:
        return tuple(rng.normal(size=(*batch, n, d)) for n, d in ((2, 3), (4, 3), (4, 2)))

    return [(qkv(), (None, False, None)), (qkv(), (keep, False, 0.5)), (qkv(), (None, True, None)), (qkv(2), (keep, True, None))]


scaled_dot_product_attention = register(
    Op(
        "scaled_dot_product_attention",
        _attention,
        _attention_rule,
        _attention_definition,
        inputs=("q", "k", "v"),
        params=("keep", "causal", "scale"),
        composed=_composed_attention,
        saves=True,
        sample=_attention_samples,
        explain=_why_attention,
    )
)
