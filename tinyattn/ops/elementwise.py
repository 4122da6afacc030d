"""Operations on each number by itself, and on pairs of numbers with broadcasting.

The forwards of arithmetic are the plain operators: on 0-d numbers they cost a tenth of NumPy's ufuncs.  A rule that belongs to a broadcasting op ends in
``sum_to``: what was copied forward is summed backward.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from tinyattn.ops.helpers import sum_to, times_slope, zero_of
from tinyattn.ops.record import Call, Op, register


def _one(low: float, high: float) -> Any:
    """A sampler of one array with entries between two bounds."""
    return lambda rng: [((rng.uniform(low, high, shape),), ()) for shape in ((2, 3), ())]


def _two(low: float, high: float, apart: float = 0.0) -> Any:
    """A sampler of two arrays that broadcast in every way; ``apart`` keeps them from being equal."""

    def sample(rng: Any) -> list[Any]:
        shapes = (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((1,), (2, 1)))
        pairs = [(rng.uniform(low, high, left), rng.uniform(low, high, right)) for left, right in shapes]
        return [((a, b + apart * np.sign(rng.normal(size=b.shape))), ()) for a, b in pairs]

    return sample


def why_not_broadcast(operands: Any, shapes: Any, params: Any) -> tuple[str, str]:
    """Say which axes clash when shapes do not broadcast."""
    for axis in range(1, max(map(len, shapes)) + 1):
        sizes = [shape[-axis] for shape in shapes if len(shape) >= axis]
        clashing = sorted({size for size in sizes if size != 1})
        if len(clashing) > 1:
            why = f"Axis -{axis} has the sizes {' and '.join(map(str, sizes))}; they must be equal, or one of them 1."
            return why, _hint_for_broadcast(operands, shapes)
    return "", ""


def _hint_for_broadcast(operands: Any, shapes: Any) -> str:
    (left, right), (a, b) = operands[:2], shapes[:2]
    if len(a) == len(b) == 2 and a == b[::-1]:
        return f"Did you mean {right}.mT, shape {a}?"
    if len(b) == 1 and len(a) == 2 and b[0] == a[0]:
        return f"Did you mean {right}[:, None], shape {(b[0], 1)}, one number for each row?"
    if len(a) == 1 and len(b) == 2 and a[0] == b[0]:
        return f"Did you mean {left}[:, None], shape {(a[0], 1)}, one number for each row?"
    return "Insert an axis of size 1 with expand_dims, or reshape one of them."


def _binary(name: str, forward: Any, vjps: Any, definition: str, sample: Any, kinks: str = "") -> Op:
    return register(
        Op(
            name,
            forward,
            vjps,
            definition,
            sample=sample,
            inputs=("a", "b"),
            kinks=kinks,
            explain=why_not_broadcast,
        )
    )


add = _binary(
    "add",
    operator.add,
    (lambda g, y, a, b: sum_to(g, a.shape), lambda g, y, a, b: sum_to(g, b.shape)),
    "y[...] = a[...] + b[...]",
    _two(-2, 2),
)
subtract = _binary(
    "subtract",
    operator.sub,
    (lambda g, y, a, b: sum_to(g, a.shape), lambda g, y, a, b: sum_to(-g, b.shape)),
    "y[...] = a[...] - b[...]",
    _two(-2, 2),
)
multiply = _binary(
    "multiply",
    operator.mul,
    (lambda g, y, a, b: sum_to(g * b, a.shape), lambda g, y, a, b: sum_to(g * a, b.shape)),
    "y[...] = a[...] * b[...]",
    _two(-2, 2),
)
divide = _binary(
    "divide",
    operator.truediv,
    (
        lambda g, y, a, b: sum_to(times_slope(g, lambda b: 1 / b, b), a.shape),
        lambda g, y, a, b: sum_to(times_slope(-g * a, lambda b: 1 / (b * b), b), b.shape),
    ),
    "y[...] = a[...] / b[...]",
    _two(0.5, 2),
    kinks="where b is 0 the slope is infinite; a cotangent of 0 meets it as 0",
)


def _power_of_exponent(g: Any, y: Any, a: Any, b: Any) -> Any:
    """y log(a); where a is 0 the power stays 0 whatever the exponent, so that slope is 0."""
    log_a = np.log(np.where(a == 0, 1.0, a))
    return sum_to(times_slope(g, lambda log_a: y * log_a, log_a), b.shape)


power = _binary(
    "power",
    np.power,
    (
        lambda g, y, a, b: sum_to(times_slope(g * b, lambda a: a ** (b - 1), a), a.shape),
        _power_of_exponent,
    ),
    "y[...] = a[...] ^ b[...]",
    _two(0.5, 2),
    kinks="slope to the exponent is 0 where the base is 0, and nan where it is negative",
)


def _integer_power(x: Any, exponent: int) -> Any:
    return x * x if exponent == 2 else x**exponent


def _integer_power_rule(g: Any, y: Any, x: Any, exponent: int) -> Any:
    if exponent == 0:
        return g * 0
    if exponent == 2:
        gx = g * x
        return gx + gx
    if exponent > 0:
        return g * (exponent * x ** (exponent - 1))
    return times_slope(g, lambda x: exponent / x ** (1 - exponent), x)


integer_power = register(
    Op(
        "integer_power",  # needs no logarithm, so negative bases are no trouble
        _integer_power,
        (_integer_power_rule,),
        "y[...] = x[...] ^ exponent",
        params=("exponent",),
        sample=lambda rng: [((rng.uniform(0.5, 2, (2, 3)) * s,), (n,)) for n, s in ((2, -1), (3, -1), (-2, 1), (0, 1), (1, 1))],
        kinks="a negative power has an infinite slope at 0; a cotangent of 0 meets it as 0",
    )
)


maximum = _binary(
    "maximum",
    np.maximum,
    (
        lambda g, y, a, b: sum_to(np.where(a == b, g / 2, np.where(a > b, g, 0.0)), a.shape),
        lambda g, y, a, b: sum_to(np.where(a == b, g / 2, np.where(a < b, g, 0.0)), b.shape),
    ),
    "y[...] = maximum(a[...], b[...])",
    _two(-2, 2, apart=5),
    kinks="a tie is shared equally: 1/2 each",
)
minimum = _binary(
    "minimum",
    np.minimum,
    (
        lambda g, y, a, b: sum_to(np.where(a == b, g / 2, np.where(a < b, g, 0.0)), a.shape),
        lambda g, y, a, b: sum_to(np.where(a == b, g / 2, np.where(a > b, g, 0.0)), b.shape),
    ),
    "y[...] = minimum(a[...], b[...])",
    _two(-2, 2, apart=5),
    kinks="a tie is shared equally: 1/2 each",
)


def _unary(name: str, forward: Any, rule: Any, formula: str, sample: Any, kinks: str = "") -> Op:
    return register(Op(name, forward, (rule,), f"y[...] = {formula}", sample=sample, kinks=kinks))


negative = _unary("negative", operator.neg, lambda g, y, x: -g, "-x[...]", _one(-2, 2))
exp = _unary(
    "exp",
    np.exp,
    lambda g, y, x: times_slope(g, lambda y: y, y),  # y overflows to infinity from 710 on
    "exp(x[...])",
    _one(-2, 2),
)
log = _unary(
    "log",
    np.log,
    lambda g, y, x: times_slope(g, lambda x: 1 / x, x),
    "log(x[...])",
    _one(0.5, 3),
    kinks="infinite slope at 0; a cotangent of 0 meets it as 0",
)
sqrt = _unary(
    "sqrt",
    np.sqrt,
    lambda g, y, x: times_slope(g, lambda y: 1 / (2 * y), y),
    "sqrt(x[...])",
    _one(0.5, 3),
    kinks="infinite slope at 0; a cotangent of 0 meets it as 0",
)
sin = _unary("sin", np.sin, lambda g, y, x: g * np.cos(x), "sin(x[...])", _one(-2, 2))
cos = _unary("cos", np.cos, lambda g, y, x: -g * np.sin(x), "cos(x[...])", _one(-2, 2))
tanh = _unary("tanh", np.tanh, lambda g, y, x: g - g * (y * y), "tanh(x[...])", _one(-2, 2))


def _sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x) by way of tanh, which cannot overflow."""
    return (np.tanh(x / 2) + 1) / 2


sigmoid = _unary("sigmoid", _sigmoid, lambda g, y, x: g * (y * (1 - y)), "sigmoid(x[...])", _one(-3, 3))

_erf_of_each = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Any) -> Any:
    """The error function, entry by entry: NumPy has none."""
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype != object:
        return np.asarray(_erf_of_each(x), dtype=x.dtype)[()]
    return _erf_of_each(x)


erf = _unary(
    "erf",
    _erf,
    lambda g, y, x: g * (2 * np.exp(-(x * x)) / math.sqrt(math.pi)),
    "erf(x[...])",
    _one(-2, 2),
)
absolute = _unary(
    "abs",
    np.abs,
    lambda g, y, x: np.where(x > 0, g, np.where(x < 0, -g, 0.0)),
    "abs(x[...])",
    lambda rng: [((rng.uniform(0.2, 2, (2, 3)) * rng.choice([-1, 1], (2, 3)),), ())],
    kinks="0 at 0",
)
relu = _unary(
    "relu",
    lambda x: np.maximum(x, zero_of(x)),
    lambda g, y, x: np.where(x > zero_of(x), g, zero_of(g)),
    "maximum(x[...], 0)",
    lambda rng: [((rng.uniform(0.2, 2, (2, 3)) * rng.choice([-1, 1], (2, 3)),), ())],
    kinks="0 at 0",
)


def _clip_definition(call: Call) -> str:
    text = "x[...]"
    if call.params["low"] is not None:
        text = f"maximum({text}, low)"
    if call.params["high"] is not None:
        text = f"minimum({text}, high)"
    return f"y[...] = {text}"


def _inside(x: Any, low: Any, high: Any) -> Any:
    above = True if low is None else x > low
    below = True if high is None else x < high
    return above & below if low is not None and high is not None else (above if high is None else below)


clip = register(
    Op(
        "clip",
        lambda x, low, high: np.clip(x, low, high),
        (lambda g, y, x, low, high: np.where(_inside(x, low, high), g, 0.0),),
        _clip_definition,
        params=("low", "high"),
        sample=lambda rng: [
            ((np.array([-2.0, -0.5, 0.3, 1.7]) + rng.uniform(-0.1, 0.1, 4),), bounds)
            for bounds in ((-1.0, 1.0), (None, 1.0), (-1.0, None))
        ],
        kinks="0 at a bound",
    )
)
where = register(
    Op(
        "where",
        lambda a, b, condition: np.where(condition, a, b),
        (
            lambda g, y, a, b, condition: sum_to(np.where(condition, g, 0.0), a.shape),
            lambda g, y, a, b, condition: sum_to(np.where(condition, 0.0, g), b.shape),
        ),
        "y[...] = [condition[...] == 1] * a[...] + [condition[...] == 0] * b[...]",
        inputs=("a", "b"),
        params=("condition",),
        sample=lambda rng: [
            ((rng.normal(size=left), rng.normal(size=right)), (rng.random(shape) < 0.5,))
            for left, right, shape in (((2, 3), (2, 3), (2, 3)), ((3,), (2, 1), (2, 3)), ((), (2, 3), (3,)))
        ],
        explain=why_not_broadcast,
    )
)
cast = register(
    Op(
        "cast",
        lambda x, dtype: x.astype(dtype),
        (lambda g, y, x, dtype: cast(g, x.dtype),),
        "y[...] = x[...]",
        params=("dtype",),
        sample=lambda rng: [((rng.normal(size=(2, 3)),), (np.dtype(np.float64),))],
        hidden=True,
    )
)
