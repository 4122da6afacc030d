"""Operations on each number by itself, and on pairs of numbers with broadcasting.

The forwards of arithmetic are the plain operators: on 0-d numbers they cost a tenth of NumPy's ufuncs.  The
rules of pairs are written for two operands of one shape; ``summed_back`` adds what broadcasting needs.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from tinyattn.kernels.small import by_sign, positive_part
from tinyattn.ops.describing import calls
from tinyattn.ops.helpers import at_ease, care, sum_to, summed_back, times, times_slope
from tinyattn.ops.record import Call, Op, register

# -- pairs of numbers --------------------------------------------------------------------------------------------

_PAIRS = [[(2, 3), (2, 3)], [(2, 3), (3,)], [(2, 1), (1, 3)], [(), (2,)], [(1,), (2, 1)]]


def _pairwise(name: str, forward: Any, formula: str, left: Any, right: Any, low: float = -2.0, kinks: str = "") -> Op:
    """A record of two inputs, with the rule of each; what was copied by broadcasting is summed backward."""
    rules, sample = (summed_back(left, 0), summed_back(right, 1)), calls(*zip(_PAIRS), low=low)
    return register(Op(name, forward, rules, f"y[...] = {formula}", inputs=("a", "b"), sample=sample, kinks=kinks))


add = _pairwise("add", operator.add, "a[...] + b[...]", lambda g, y, a, b: g, lambda g, y, a, b: g)
subtract = _pairwise("subtract", operator.sub, "a[...] - b[...]", lambda g, y, a, b: g, lambda g, y, a, b: -g)
multiply = _pairwise(
    "multiply", operator.mul, "a[...] * b[...]",
    lambda g, y, a, b: times(g, b) if care.wanted else g * b,
    lambda g, y, a, b: times(g, a) if care.wanted else g * a,
)
divide = _pairwise(
    "divide", operator.truediv, "a[...] / b[...]",
    lambda g, y, a, b: times_slope(g, lambda b: 1 / b, b),
    lambda g, y, a, b: times_slope(-g * a, lambda b: 1 / (b * b), b),
    low=0.5, kinks="where b is 0 the slope is infinite; a cotangent of 0 meets it as 0",
)


def _power_of_exponent(g: Any, y: Any, a: Any, b: Any) -> Any:
    """The slope y log(a); where a is 0 the power stays 0 whatever the exponent, so that slope is 0."""
    log_a = np.log(np.where(a == 0, 1.0, a))
    return times_slope(g, lambda log_a: y * log_a, log_a)


power = _pairwise(
    "power", np.power, "a[...] ^ b[...]",
    lambda g, y, a, b: times_slope(g * b, lambda a: a ** (b - 1), a),
    _power_of_exponent,
    low=0.5, kinks="slope to the exponent is 0 where the base is 0, and nan where it is negative",
)
maximum = _pairwise(
    "maximum", np.maximum, "maximum(a[...], b[...])",
    lambda g, y, a, b: np.where(a == b, g / 2, np.where(a > b, g, 0)),
    lambda g, y, a, b: np.where(a == b, g / 2, np.where(a < b, g, 0)),
    kinks="a tie is shared equally: 1/2 each",
)
minimum = _pairwise(
    "minimum", np.minimum, "minimum(a[...], b[...])",
    lambda g, y, a, b: np.where(a == b, g / 2, np.where(a < b, g, 0)),
    lambda g, y, a, b: np.where(a == b, g / 2, np.where(a > b, g, 0)),
    kinks="a tie is shared equally: 1/2 each",
)

where = register(Op(
    "where", lambda a, b, condition: np.where(condition, a, b),
    (
        lambda g, y, a, b, condition: sum_to(np.where(condition, g, 0), a.shape),
        lambda g, y, a, b, condition: sum_to(np.where(condition, 0, g), b.shape),
    ),
    "y[...] = [condition[...] == 1] * a[...] + [condition[...] == 0] * b[...]",
    inputs=("a", "b"), params=("condition",),
    sample=calls(
        ([(2, 3), (2, 3)], np.eye(2, 3, dtype=bool)), ([(3,), (2, 1)], np.eye(2, 3, dtype=bool)),
        ([(), (2, 3)], np.array([True, False, True])),
    ),
))

# -- single numbers ----------------------------------------------------------------------------------------------

_STEEP = "infinite slope at 0; a cotangent of 0 meets it as 0"


def _each(name: str, forward: Any, rule: Any, formula: str, low: float = -2.0, kinks: str = "") -> Op:
    """A record of one input that treats each entry by itself."""
    sample = calls(((2, 3),), ((),), low=low)
    return register(Op(name, forward, (rule,), f"y[...] = {formula}", sample=sample, kinks=kinks))


def _sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x) by way of tanh, which cannot overflow."""
    return (np.tanh(x / 2) + 1) / 2


_erf_of_each = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Any) -> Any:
    """The error function, entry by entry: NumPy has none."""
    values = _erf_of_each(x)
    plain = isinstance(x, (np.ndarray, np.generic)) and x.dtype != object
    return np.asarray(values, dtype=x.dtype)[()] if plain else values


# In the rule of exp, y overflows to infinity from 710 on; `times` keeps that from a cotangent of 0.
negative = _each("negative", operator.neg, lambda g, y, x: -g, "-x[...]")
exp = _each("exp", np.exp, lambda g, y, x: times(g, y), "exp(x[...])")
log = _each("log", np.log, lambda g, y, x: times_slope(g, lambda x: 1 / x, x), "log(x[...])", 0.5, _STEEP)
sqrt = _each("sqrt", np.sqrt, lambda g, y, x: times_slope(g, lambda y: 1 / (2 * y), y), "sqrt(x[...])", 0.5, _STEEP)
sin = _each("sin", np.sin, lambda g, y, x: g * np.cos(x), "sin(x[...])")
cos = _each("cos", np.cos, lambda g, y, x: -g * np.sin(x), "cos(x[...])")
tanh = _each("tanh", np.tanh, lambda g, y, x: g - g * (y * y), "tanh(x[...])")
sigmoid = _each("sigmoid", _sigmoid, lambda g, y, x: g * (y * (1 - y)), "sigmoid(x[...])")
erf = _each("erf", _erf, lambda g, y, x: g * (2 * np.exp(-(x * x)) / math.sqrt(math.pi)), "erf(x[...])")
absolute = _each(
    "abs", np.abs, lambda g, y, x: by_sign(g, x) if at_ease(x) else np.where(x > 0, g, np.where(x < 0, -g, 0)),
    "abs(x[...])", kinks="0 at 0",
)


def _relu_rule(g: Any, y: Any, x: Any) -> Any:
    return by_sign(g, y) if at_ease(y) else np.where(x > 0, g, 0)


relu = _each("relu", positive_part, _relu_rule, "maximum(x[...], 0)", kinks="0 at 0")


def _integer_power_rule(g: Any, y: Any, x: Any, exponent: int) -> Any:
    if exponent == 0:
        return g * 0
    if exponent == 2:
        gx = times(g, x)
        return gx + gx
    if exponent > 0:
        return times(g, exponent * x ** (exponent - 1))
    return times_slope(g, lambda x: exponent / x ** (1 - exponent), x)


integer_power = register(Op(
    "integer_power", lambda x, exponent: x * x if exponent == 2 else x**exponent,  # no logarithm: any sign will do
    (_integer_power_rule,), "y[...] = x[...] ^ exponent", params=("exponent",),
    sample=calls(*(((2, 3), exponent) for exponent in (2, 3, -2, 0, 1)), high=-0.5),
    kinks="a negative power has an infinite slope at 0; a cotangent of 0 meets it as 0",
))


def _clip_definition(call: Call) -> str:
    above = "x[...]" if call.params["low"] is None else "maximum(x[...], low)"
    return "y[...] = " + (above if call.params["high"] is None else f"minimum({above}, high)")


def _clip_rule(g: Any, y: Any, x: Any, low: Any, high: Any) -> Any:
    inside = (low is None or x > low) & (high is None or x < high)
    return np.where(inside, g, 0)


clip = register(Op(
    "clip", lambda x, low, high: np.clip(x, low, high), (_clip_rule,), _clip_definition, params=("low", "high"),
    sample=calls(((4,), -1.0, 1.0), ((4,), None, 1.0), ((4,), -1.0, None)), kinks="0 at a bound",
))

cast: Op = register(Op(
    "cast", lambda x, dtype: x.astype(dtype), (lambda g, y, x, dtype: cast(g, x.dtype),), "y[...] = x[...]",
    params=("dtype",), sample=calls(((2, 3), np.dtype(np.float64))), hidden=True,
))
