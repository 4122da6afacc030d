"""Sums and their kin: many numbers become one along some axes.

Parameters are normalised before they come here: ``axis`` is a tuple of non-negative numbers.  Going
forward an axis disappears, so going backward the cotangent is spread along it again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyattn.ops.helpers import letters, number_like, spread, with_axes
from tinyattn.ops.record import Call, Op, register


def _definition(reduction: str) -> Any:
    """``y[i] = sum_j x[i,j]`` for the shape and the axes of the call."""

    def text(call: Call) -> str:
        names = letters(len(call.shapes[0]))
        axes, keepdims = call.params["axis"], call.params["keepdims"]
        gone = ",".join(name for axis, name in enumerate(names) if axis in axes)
        kept = [name for axis, name in enumerate(names) if axis not in axes]
        if keepdims:
            fresh = iter(letters(len(axes), skip="".join(names)))
            kept = [next(fresh) if axis in axes else name for axis, name in enumerate(names)]
        start = f"{reduction}_{gone} " if gone else ""
        return f"y[{','.join(kept)}] = {start}x[{','.join(names)}]"

    return text


def _calls(low: float, high: float) -> Any:
    """Samples over all the ways to name axes, with entries that are never equal."""

    def sample(rng: Any) -> list[Any]:
        forms: tuple[tuple[tuple[int, ...], tuple[int, ...], bool], ...] = (
            ((2, 3), (0,), False), ((2, 3), (1,), True), ((2, 3), (0, 1), False), ((2, 3, 2), (0, 2), True), ((), (), False),
        )  # fmt: skip
        return [
            ((rng.permutation(np.linspace(low, high, math.prod(shape))).reshape(shape),), (axis, keepdims))
            for shape, axis, keepdims in forms
        ]

    return sample


def _restore(g: Any, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    return g if keepdims else with_axes(g, axis, len(x.shape))


def _sum(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    if len(axis) == x.ndim and not keepdims:
        return np.add.reduce(x, axis=None)
    return np.add.reduce(x, axis=axis, keepdims=keepdims)


def _sum_rule(g: Any, y: Any, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    if g.ndim == 0:
        return spread(g, x.shape)
    return spread(_restore(g, x, axis, keepdims), x.shape)


def _extreme_rule(g: Any, y: Any, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The cotangent goes to the winner; equal winners share it equally."""
    wins = x == _restore(y, x, axis, keepdims)
    share = _restore(g, x, axis, keepdims) / number_like(wins.sum(axis=axis, keepdims=True), g)
    return np.where(wins, spread(share, x.shape), 0.0)


def _others_product(x: Any, axis: tuple[int, ...]) -> Any:
    """For each entry the product of the others along ``axis``, right where entries are 0.

    Two running products, one from each end, meet at the entry: no division is needed.
    """
    rest = tuple(a for a in range(len(x.shape)) if a not in axis)
    order = rest + axis
    rows = x.transpose(order).reshape(tuple(x.shape[a] for a in rest) + (-1,))
    length = rows.shape[-1]
    columns = [rows[..., i : i + 1] for i in range(length)]
    before, after = [columns[0] * 0 + 1], [columns[0] * 0 + 1]
    for i in range(1, length):
        before.append(before[-1] * columns[i - 1])
        after.append(after[-1] * columns[length - i])
    products = [left * right for left, right in zip(before, reversed(after), strict=True)]
    flat = np.concatenate(products, axis=-1).reshape(tuple(x.shape[a] for a in order))
    return flat.transpose(tuple(order.index(a) for a in range(len(order))))


def _prod_rule(g: Any, y: Any, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    if not axis or 0 in x.shape:
        return spread(_restore(g, x, axis, keepdims), x.shape)
    return _restore(g, x, axis, keepdims) * _others_product(x, axis)


def _why_empty(operands: Any, shapes: Any, params: Any) -> tuple[str, str]:
    return "An empty axis has no largest or smallest number.", "Check that there is at least one row, or pad it."


def _reduction(name: str, forward: Any, rule: Any, sample: Any, kinks: str = "", explain: Any = None) -> Op:
    return register(
        Op(
            name,
            forward,
            (rule,),
            _definition(name),
            params=("axis", "keepdims"),
            sample=sample,
            kinks=kinks,
            explain=explain,
        )
    )


sum = _reduction("sum", _sum, _sum_rule, _calls(-2, 2))
max = _reduction(
    "max",
    lambda x, axis, keepdims: np.maximum.reduce(x, axis=axis, keepdims=keepdims),
    _extreme_rule,
    _calls(-2, 2),
    kinks="a tie is shared equally",
    explain=_why_empty,
)
min = _reduction(
    "min",
    lambda x, axis, keepdims: np.minimum.reduce(x, axis=axis, keepdims=keepdims),
    _extreme_rule,
    _calls(-2, 2),
    kinks="a tie is shared equally",
    explain=_why_empty,
)
prod = _reduction(
    "prod",
    lambda x, axis, keepdims: np.multiply.reduce(x, axis=axis, keepdims=keepdims),
    _prod_rule,
    _calls(0.5, 2),
)


def _size_definition(call: Call) -> str:
    sizes = " * ".join(f"size(x, {axis})" for axis in call.params["axis"]) or "1"
    return f"y[] = {sizes}"


size_of = register(
    Op(
        "size_of",  # a length that stays a symbol in formulas: 1/√d is 1/√d there, never 0.7071
        lambda x, axis: x.dtype.type(math.prod(x.shape[a] for a in axis)),
        (None,),
        _size_definition,
        params=("axis",),
        sample=lambda rng: [((rng.normal(size=(2, 3)),), (axis,)) for axis in ((0,), (1,), (0, 1))],
    )
)
