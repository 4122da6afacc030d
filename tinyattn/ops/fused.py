"""Operations that are one op because the fused form is stabler or faster than its parts.

How they are computed stands in `tinyattn.kernels`, beside the composed form that gradients of gradients and exact
numbers go through; here is what they mean.
"""

from __future__ import annotations

import numpy as np

from tinyattn.kernels import attention, gelu
from tinyattn.kernels import cross_entropy as entropy
from tinyattn.kernels import layer_norm as norm
from tinyattn.ops.describing import calls, entry, letters
from tinyattn.ops.record import Call, Op, register

layer_norm = register(Op(
    "layer_norm", norm.forward, norm.rule,
    "y[..., i] = (x[..., i] - (sum_j x[..., j]) / size(i))"
    " / sqrt((sum_k (x[..., k] - (sum_j x[..., j]) / size(i))^2) / size(i) + eps) * gain[i] + bias[i]",
    inputs=("x", "gain", "bias"), params=("eps",), composed=norm.composed, saves=True,
    sample=calls(([(2, 3), (3,), (3,)], 1e-5), ([(4,), (4,), (4,)], 1e-5), ([(2, 2, 3), (3,), (3,)], 1e-5)),
))

gelu_tanh = register(Op(
    "gelu_tanh", gelu.forward, gelu.rule,
    "y[...] = x[...] / 2 * (1 + tanh(sqrt(2 / pi) * (x[...] + 0.044715 * x[...]^3)))",
    composed=gelu.composed, saves=True, sample=calls(((2, 3),), ((),)),
))


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
_SETTINGS = [(None, 0.0, "mean"), (2, 0.0, "mean"), (None, 0.1, "sum"), (1, 0.1, "none"), (None, 0.0, "none")]

cross_entropy = register(Op(
    "cross_entropy", entropy.forward, entropy.rule, _cross_entropy_definition,
    params=("targets", "ignore", "smoothing", "reduction"), composed=entropy.composed, saves=True,
    sample=calls(
        *(((4, 3), _TARGETS, *settings) for settings in _SETTINGS),
        ((2, 2, 3), _TARGETS.reshape(2, 2), None, 0.0, "mean"),
    ),
))


def _kept(shape: tuple[int, ...], queries: int, keys: int, key: str) -> str:
    """The condition that query i may see a key; an axis of length 1, or none, says the same for all."""
    i, j = "i" if shape[-2:-1] == (queries,) else "0", key if shape[-1:] == (keys,) else "0"
    return f"[{entry('keep', ['...', i, j][max(0, 3 - len(shape)):])} == 1] * "


def _attention_definition(call: Call) -> str:
    (*_, queries, _), (*_, keys, _), _ = call.shapes
    keep = call.params["keep"]
    scale = "(1 / sqrt(size(d)))" if call.params["scale"] is None else "scale"

    def weight(key: str) -> str:
        kept = "" if keep is None else _kept(np.shape(keep), queries, keys, key)
        before = f"[{key} - size(j) <= i - size(i)] * " if call.params["causal"] else ""
        return f"{kept}{before}exp({scale} * (sum_d q[...,i,d] * k[...,{key},d]))"

    return f"y[...,i,e] = sum_j ({weight('j')} / sum_m {weight('m')}) * v[...,j,e]"


_QKV = [(2, 3), (4, 3), (4, 2)]
_KEEP = np.array([[True, True, False, True], [True, False, True, True]])

scaled_dot_product_attention = register(Op(
    "scaled_dot_product_attention", attention.forward, attention.rule, _attention_definition,
    inputs=("q", "k", "v"), params=("keep", "causal", "scale"), composed=attention.composed, saves=True,
    sample=calls(
        (_QKV, None, False, None), (_QKV, _KEEP, False, 0.5), (_QKV, None, True, None),
        ([(2, *shape) for shape in _QKV], _KEEP, True, None),
    ),
))
