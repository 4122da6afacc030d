"""Formulas evaluated on NumPy arrays, with a running bound of the rounding error beside every number.

The bound follows the standard model, fl(x∘y) = (x∘y)(1 + δ) with |δ| ≤ u: a sum of k products errs by at most γ_k
times the sum of magnitudes, whatever the order of the sum; functions of NumPy are taken to err by at most 4 ulp. It is
relative to the magnitudes and not to the result, so a saturated softmax, whose gradient is a difference of nearly
equal terms, gets the large bound that it deserves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyattn.symbolic.terms import Exact, Expr, Factor, Head, Index, Quantity, Term

Array = NDArray[Any]
UNIT = 2.0**-53
FUNCTION = 8 * UNIT  # what a function value may err by, relatively: 4 units in the last place


class Bounded:
    """An array and a bound of the error of each entry."""

    __slots__ = ("error", "value")

    def __init__(self, value: Array, error: Array) -> None:
        self.value, self.error = value, error


class Values:
    """Numbers for quantities, and what formulas make of them.

    Parameters
    ----------
    sizes : dict of int to int
        The length of every size class.
    """

    def __init__(self, sizes: dict[int, int]) -> None:
        self.sizes = sizes
        self._arrays: dict[Quantity, Bounded] = {}

    def put(self, quantity: Quantity, array: Any, error: Any = 0.0) -> None:
        """Set the numbers of a quantity: an array with one axis for each of its size classes."""
        value = np.asarray(array)
        if value.dtype.kind in "bui":
            value = value.astype(np.float64)
        self._arrays[quantity] = Bounded(value, np.broadcast_to(np.asarray(error, dtype=np.float64), value.shape))

    def array(self, quantity: Quantity) -> Array:
        """Give the numbers of a quantity."""
        return self._arrays[quantity].value

    def bounded(self, quantity: Quantity) -> Bounded:
        """Give the numbers of a quantity with their bounds."""
        return self._arrays[quantity]

    def moved(self, quantity: Quantity, array: Array) -> Values:
        """Give the same values with one quantity changed."""
        other = Values(self.sizes)
        other._arrays = dict(self._arrays)
        other.put(quantity, array)
        return other

    def of(self, expr: Expr, out: tuple[Index, ...]) -> Array:
        """Evaluate a formula: one axis for each index of `out`."""
        return self.with_bound(expr, out).value

    def with_bound(self, expr: Expr, out: tuple[Index, ...]) -> Bounded:
        """Evaluate a formula and bound the rounding error of every entry."""
        shape = tuple(self.sizes[index.cls] for index in out)
        total = Bounded(np.zeros(shape), np.zeros(shape))
        with np.errstate(all="ignore"):
            for number, term in enumerate(expr):
                part = self._term(term, out)
                value = total.value + part.value
                error = total.error + part.error + (UNIT * np.abs(value) if number else 0)
                total = Bounded(value, error)
        return total

    def _term(self, term: Term, out: tuple[Index, ...]) -> Bounded:
        coef = float(term.coef)
        for cls, power in term.sizes:
            coef *= float(self.sizes[cls]) ** float(power)
        factors = [(self._factor(factor), factor[1]) for factor in term.factors if factor[1]]
        scalars = [self._factor(factor) for factor in term.factors if not factor[1]]
        if any(map(_has_condition, (head for head, _, _ in term.factors))):
            factors = _hidden(factors)
        used = {index for _, at in factors for index in at}
        for index in (*out, *term.dummies):
            if index not in used:
                ones = np.ones(self.sizes[index.cls])
                factors.append((Bounded(ones, np.zeros_like(ones)), (index,)))
        letters = {index: at for at, index in enumerate(dict.fromkeys(i for _, at in factors for i in at))}
        target = [letters[index] for index in out]
        value = _einsum([(f.value, [letters[i] for i in at]) for f, at in factors], target)
        size = _einsum([(np.abs(f.value), [letters[i] for i in at]) for f, at in factors], target)
        most = _einsum([(np.abs(f.value) + f.error, [letters[i] for i in at]) for f, at in factors], target)
        length = int(np.prod([self.sizes[index.cls] for index in term.dummies])) if term.dummies else 1
        count = length + len(term.factors) + len(term.sizes) + 3
        result = Bounded(value, (most - size) + (count + 2) * UNIT * most)
        for scalar in scalars:
            value = result.value * scalar.value
            error = (
                np.abs(result.value) * scalar.error
                + result.error * (np.abs(scalar.value) + scalar.error)
                + UNIT * np.abs(value)
            )
            result = Bounded(value, error)
        return Bounded(coef * result.value, abs(coef) * result.error * (1 + 4 * UNIT))

    def _factor(self, factor: Factor) -> Bounded:
        head, _, power = factor
        base = self._head(head)
        return base if power == 1 else _power(base, power)

    def _head(self, head: Head) -> Bounded:
        match head.kind:
            case "ref":
                return self._arrays[head.data]
            case "index":
                return _exact(np.arange(float(self.sizes[head.params[0].cls])))
            case "scalar":
                value = np.asarray(np.pi if head.data[1] is None else head.data[1])
                return Bounded(value, UNIT * np.abs(value))
            case "sum":
                return self.with_bound(head.inners[0], head.params)
            case "fn":
                return self._function(head)
            case "cond":
                return self._condition(head)
            case "softmax":
                return self._softmax(head)
            case _:
                inside = self.with_bound(head.inners[0], (*head.params, *head.bound))
                axes = tuple(range(len(head.params), inside.value.ndim))
                pick = np.max if head.kind == "max" else np.min
                return Bounded(pick(inside.value, axis=axes), np.max(inside.error, axis=axes))

    def _function(self, head: Head) -> Bounded:
        arguments = [self.with_bound(inner, head.params) for inner in head.inners]
        x = arguments[0]
        name = head.data
        if name in ("maximum", "minimum"):
            pick = np.maximum if name == "maximum" else np.minimum
            return Bounded(pick(x.value, arguments[1].value), np.maximum(x.error, arguments[1].error))
        if name == "power":
            return _general_power(x, arguments[1])
        value = _FUNCTIONS[name](x.value)
        if name == "exp":
            return Bounded(value, value * (np.expm1(x.error) + FUNCTION * np.exp(x.error)))
        if name == "log":
            relative = np.minimum(x.error / np.abs(x.value), 1 - 1e-16)
            return Bounded(value, -np.log1p(-relative) + FUNCTION * np.abs(value))
        if name in ("abs", "sign"):
            return Bounded(
                value, x.error if name == "abs" else np.where(np.abs(x.value) <= x.error, 2.0, 0.0) * (x.value != 0)
            )
        return Bounded(value, _STEEPEST[name] * x.error + FUNCTION * np.abs(value))

    def _condition(self, head: Head) -> Bounded:
        left, right = (self.with_bound(inner, head.params) for inner in head.inners)
        value = _COMPARE[head.data](left.value, right.value).astype(np.float64)
        near = np.abs(left.value - right.value) <= left.error + right.error
        unsure = near & ((left.error > 0) | (right.error > 0)) & (left.value != right.value)
        return Bounded(value, unsure.astype(np.float64))

    def _softmax(self, head: Head) -> Bounded:
        x = self.with_bound(head.inners[0], head.params)
        axes = head.data
        e = np.exp(x.value - np.max(x.value, axis=axes, keepdims=True))
        value = e / np.sum(e, axis=axes, keepdims=True)
        length = int(np.prod([x.value.shape[axis] for axis in axes]))
        spread = np.abs(x.value) + np.max(np.abs(x.value), axis=axes, keepdims=True)
        moved = 2 * np.max(x.error, axis=axes, keepdims=True) + 2 * UNIT * np.max(spread, axis=axes, keepdims=True)
        return Bounded(value, value * np.expm1(moved + (length + 4) * UNIT + 2 * FUNCTION))


def _has_condition(head: Head) -> bool:
    """Say whether a factor is a condition or has one inside."""
    return head.kind == "cond" or any(
        _has_condition(factor[0]) for inner in head.inners for term in inner for factor in term.factors
    )


def _hidden(factors: list[tuple[Bounded, tuple[Index, ...]]]) -> list[tuple[Bounded, tuple[Index, ...]]]:
    """Let a false condition hide what is not finite beside it: a row of which nothing is kept has sum 0, and 1/0 too.

    An entry is put to 0 where the other factors are 0 whatever the other indices are.
    """
    result = list(factors)
    for place, (factor, at) in enumerate(factors):
        if np.isfinite(factor.value).all():
            continue
        rest = [each for number, each in enumerate(result) if number != place]
        others = [(np.where(np.isfinite(f.value), np.abs(f.value), 1.0), there) for f, there in rest]
        every = dict.fromkeys((*at, *(index for _, there in others for index in there)))
        letters = {index: number for number, index in enumerate(every)}
        missing = [index for index in at if not any(index in there for _, there in others)]
        ones = [(np.ones(factor.value.shape[at.index(index)]), (index,)) for index in missing]
        alive = _einsum([(f, [letters[i] for i in there]) for f, there in (*others, *ones)], [letters[i] for i in at])
        result[place] = (Bounded(np.where(alive == 0, 0.0, factor.value), np.where(alive == 0, 0.0, factor.error)), at)
    return result


def _exact(value: Array) -> Bounded:
    return Bounded(value, np.zeros_like(value))


def _einsum(factors: list[tuple[Array, list[int]]], target: list[int]) -> Array:
    arguments: list[Any] = []
    for array, letters in factors:
        arguments += [array, letters]
    return np.asarray(np.einsum(*arguments, target, optimize=len(factors) > 2)) if factors else np.asarray(1.0)


def _power(base: Bounded, power: Exact) -> Bounded:
    exponent = float(power)
    value = base.value ** (int(power) if power == int(power) else exponent)
    size, error = np.abs(base.value), base.error
    if exponent > 0:
        far = (size + error) ** exponent - size**exponent
    else:
        low = size - error
        far = np.where(
            low > 0, np.where(low > 0, low, 1.0) ** exponent - size**exponent, np.where(error > 0, np.inf, 0.0)
        )
    return Bounded(value, far + (abs(exponent) + 2) * FUNCTION * np.abs(value))


def _general_power(base: Bounded, exponent: Bounded) -> Bounded:
    value = base.value**exponent.value
    moved = (
        np.abs(exponent.value) * base.error / np.abs(base.value) + np.abs(np.log(np.abs(base.value))) * exponent.error
    )
    return Bounded(value, np.abs(value) * (np.expm1(2 * moved) + 4 * FUNCTION))


def _erf(x: Array) -> Array:
    import math

    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _sigmoid(x: Array) -> Array:
    return np.asarray((np.tanh(x / 2) + 1) / 2)


_FUNCTIONS: Mapping[str, Any] = {
    "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "abs": np.abs, "sign": np.sign,
    "erf": _erf, "sigmoid": _sigmoid,
}  # fmt: skip
_STEEPEST = {"sin": 1.0, "cos": 1.0, "tanh": 1.0, "sigmoid": 0.25, "erf": 1.13}
_COMPARE: Mapping[str, Any] = {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal}
