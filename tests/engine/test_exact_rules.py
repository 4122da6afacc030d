"""The same rules on exact numbers: fractions go in, fractions come out, and they are the float gradient unrounded."""

from fractions import Fraction

import numpy as np
import pytest
from support import sampled

from tinyattn.ops import REGISTRY

RATIONAL = {
    "add",
    "subtract",
    "multiply",
    "divide",
    "negative",
    "integer_power",
    "sum",
    "prod",
    "matmul",
    "reshape",
    "transpose",
    "expand_dims",
    "squeeze",
    "broadcast_to",
    "concatenate",
    "stack",
    "pad",
    "index",
    "scatter_add",
    "take_along_axis",
    "put_along_axis",
    "where",
    "einsum",
    "maximum",
    "minimum",
    "abs",
    "relu",
    "clip",
    "max",
    "min",
}
"""Operations whose value and slope are fractions where the inputs are."""


def exact(x):
    """An array of the nearest fractions with a small denominator."""
    return np.array([Fraction(float(v)).limit_denominator(50) for v in np.ravel(x)], object).reshape(np.shape(x))


def number(x):
    return np.asarray(x, dtype=float)


@pytest.mark.parametrize("name", sorted(RATIONAL))
def test_rule_on_fractions_is_the_rule_on_floats_without_rounding(name, rng):
    op = REGISTRY[name]
    for inputs, params in sampled(op):
        fractions = [exact(x) for x in inputs]
        floats = [number(x) for x in fractions]
        y = np.asarray(op.forward(*fractions, *params), dtype=object)
        g = exact(rng.normal(size=y.shape))
        wanted = [True] * len(inputs)
        found = op.pull(g, y, None, fractions, params, wanted)
        plain = op.pull(number(g), np.asarray(op.forward(*floats, *params)), None, floats, params, wanted)
        for ours, theirs, x in zip(found, plain, inputs, strict=True):
            entries = np.ravel(np.asarray(ours, dtype=object))
            assert np.shape(ours) == np.shape(x)
            assert all(isinstance(v, (Fraction, int)) for v in entries), "a rule fell back to floats"
            np.testing.assert_allclose(number(ours), theirs, rtol=1e-13, atol=1e-13)


def test_the_check_notices_a_rule_that_rounds():
    x = exact(np.array([0.5, 0.25]))
    assert not all(isinstance(v, (Fraction, int)) for v in np.ravel(x * 0.5 + np.float64(0.1)))
