"""Sums and their kin: many numbers become one along some axes.

Parameters are normalised before they come here: ``axis`` is a tuple of non-negative numbers.  Going
forward an axis disappears, so going backward the cotangent is spread along it again.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from tinyattn.kernels.small import spread, sum_of_all
from tinyattn.ops.describing import calls, entry, letters, over
from tinyattn.ops.helpers import inverse_order, number_like, with_axes
from tinyattn.ops.record import Call, Op, register

Axes = tuple[int, ...]


def _restore(g: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    return g if keepdims else with_axes(g, axis, len(x.shape))


def _reduce(ufunc: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    return ufunc.reduce(x, axis=axis, keepdims=keepdims)


def _sum(x: Any, axis: Axes, keepdims: bool) -> Any:
    if len(axis) == x.ndim and not keepdims:
        return sum_of_all(x)
    return _reduce(np.add, x, axis, keepdims)


def _sum_rule(g: Any, y: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    return spread(g if g.ndim == 0 else _restore(g, x, axis, keepdims), x.shape)


def _extreme_rule(g: Any, y: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    """The cotangent goes to the winner; equal winners share it equally."""
    wins = x == _restore(y, x, axis, keepdims)
    share = _restore(g, x, axis, keepdims) / number_like(wins.sum(axis=axis, keepdims=True), g)
    return np.where(wins, spread(share, x.shape), 0)


def _prod_rule(g: Any, y: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    if not axis or 0 in x.shape:
        return spread(_restore(g, x, axis, keepdims), x.shape)
    return _restore(g, x, axis, keepdims) * _others_product(x, axis)


def _others_product(x: Any, axis: Axes) -> Any:
    """For each entry the product of the others along ``axis``, right where entries are 0.

    Two running products, one from each end, meet at the entry: no division is needed.
    """
    order = tuple(a for a in range(len(x.shape)) if a not in axis) + axis
    moved = x.transpose(order)
    rows = moved.reshape((*moved.shape[: -len(axis)], -1))
    columns = [rows[..., i : i + 1] for i in range(rows.shape[-1])]
    before, after = [columns[0] * 0 + 1], [columns[0] * 0 + 1]
    for left, right in zip(columns[:-1], reversed(columns[1:]), strict=True):
        before.append(before[-1] * left)
        after.append(after[-1] * right)
    products = [left * right for left, right in zip(before, reversed(after), strict=True)]
    return np.concatenate(products, axis=-1).reshape(moved.shape).transpose(inverse_order(order))


_FORMS = [
    ((2, 3), (0,), False), ((2, 3), (1,), True), ((2, 3), (0, 1), False), ((2, 3, 2), (0, 2), True), ((), (), False)
]


def _reduction(name: str, forward: Any, rule: Any, low: float = -2.0, kinks: str = "") -> Op:
    """A record whose definition is ``y[i] = sum_j x[i,j]``, for the axes of the call."""

    def definition(call: Call) -> str:
        rank, axes = len(call.shapes[0]), call.params["axis"]
        names, ones = letters(rank), iter(letters(2 * rank)[rank:])
        kept = [next(ones) if axis in axes else name for axis, name in enumerate(names)]
        gone = [name for axis, name in enumerate(names) if axis in axes]
        to = kept if call.params["keepdims"] else [name for name in names if name not in gone]
        return f"{entry('y', to)} = {over(gone, name)}{entry('x', names)}"

    sample = calls(*_FORMS, low=low)
    return register(Op(name, forward, (rule,), definition, params=("axis", "keepdims"), sample=sample, kinks=kinks))


sum = _reduction("sum", _sum, _sum_rule)
max = _reduction("max", partial(_reduce, np.maximum), _extreme_rule, kinks="a tie is shared equally")
min = _reduction("min", partial(_reduce, np.minimum), _extreme_rule, kinks="a tie is shared equally")
prod = _reduction("prod", partial(_reduce, np.multiply), _prod_rule, low=0.5)

size_of = register(Op(
    # A length that stays a symbol in formulas: 1/√d is 1/√d there, never 0.7071.
    "size_of", lambda x, axis: x.dtype.type(math.prod(x.shape[a] for a in axis)), (None,),
    lambda call: "y[] = " + (" * ".join(f"size(x, {axis})" for axis in call.params["axis"]) or "1"),
    params=("axis",), sample=calls(((2, 3), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1))),
))
