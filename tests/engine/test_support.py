"""The referees say no when they should: each checker meets a rule, or a forward, that is wrong."""

import numpy as np
import pytest
from support import (
    along,
    altered,
    close,
    complex_step,
    cotangent,
    differences,
    first_along,
    gradients,
    rule_errors,
    sampled,
    second_gradients,
)

import tinyattn as ta
from tinyattn.ops import REGISTRY

X = np.array([[0.3, -1.2], [0.7, 2.0]])


def test_differences_of_a_cubic_are_exact_up_to_rounding():
    close(differences(lambda x: x**3, [X])[0], 3 * X**2, rtol=1e-11)


def test_differences_weigh_each_result_with_its_cotangent():
    g = np.array([[1.0, 0.0], [-2.0, 0.5]])
    close(differences(np.exp, [X], g)[0], g * np.exp(X), rtol=1e-10)


def test_complex_step_is_right_to_the_last_digit():
    np.testing.assert_array_max_ulp(complex_step(np.exp, [X])[0], np.exp(X), 2)


def test_complex_step_rejects_a_forward_that_is_not_analytic():
    assert not np.allclose(complex_step(np.abs, [X])[0], np.sign(X))


def test_jacobian_times_vector_by_differences():
    direction = np.array([[1.0, 2.0], [-1.0, 0.0]])
    close(along(np.sin, [X], [direction]), np.cos(X) * direction, rtol=1e-10)


def test_close_refuses_a_shape_that_only_broadcasts():
    with pytest.raises(AssertionError, match="shape"):
        close(np.ones((2, 1)), np.ones((2, 2)))


@pytest.mark.parametrize("factor", [0.97, -1.0, 0.0])
@pytest.mark.parametrize("name", ["exp", "multiply", "matmul", "softmax", "sum"])
def test_a_rule_that_is_off_by_a_factor_is_rejected(name, factor, rng):
    op = REGISTRY[name]
    wrong = altered(op, vjps=tuple((lambda *a, rule=rule: rule(*a) * factor) for rule in op.vjps))
    inputs, params = sampled(op)[0]
    g = cotangent(rng, op, inputs, params)
    assert max(rule_errors(op, inputs, params, g)) < 1e-9
    assert min(rule_errors(wrong, inputs, params, g)) > 1e-3


def test_a_softmax_rule_with_the_diagonal_only_is_rejected(rng):
    wrong = altered(REGISTRY["softmax"], vjps=(lambda g, y, x, axis, keep: g * y * (1 - y),))
    inputs, params = sampled(wrong)[0]
    assert rule_errors(wrong, inputs, params, cotangent(rng, wrong, inputs, params))[0] > 1e-3


def test_a_wrong_rule_for_one_input_is_blamed_on_that_input(rng):
    left, _ = REGISTRY["multiply"].vjps
    wrong = altered(REGISTRY["multiply"], vjps=(left, lambda g, y, a, b: g))
    inputs, params = sampled(wrong)[0]
    errors = rule_errors(wrong, inputs, params, cotangent(rng, wrong, inputs, params))
    assert errors[0] < 1e-9 < 1e-3 < errors[1]


def test_a_rule_that_is_right_in_numbers_but_not_recorded_fails_at_second_order(rng):
    """Rules that leave the recorded calls lose the second derivative silently: the check must see it."""
    frozen = altered(
        REGISTRY["tanh"], vjps=(lambda g, y, x: g * (1 - np.tanh(np.asarray(getattr(x, "data", x))) ** 2),)
    )
    g, direction = rng.normal(size=X.shape), rng.normal(size=X.shape)
    close(gradients(frozen, [X], g)[0], g * (1 - np.tanh(X) ** 2))
    got = second_gradients(frozen, [X], g, [direction])[0]
    want = first_along(frozen, [X], g, [direction])[0]
    assert np.abs(got - want).max() > 1e-3


def test_second_gradients_agree_with_a_known_hessian(rng):
    g, direction = rng.normal(size=X.shape), rng.normal(size=X.shape)
    close(second_gradients(ta.sin, [X], g, [direction])[0], -g * np.sin(X) * direction)
    close(first_along(ta.sin, [X], g, [direction])[0], -g * np.sin(X) * direction)


def test_gradients_of_an_input_that_is_not_used_are_zeros():
    found = gradients(lambda a, b: ta.exp(a), [X, X])
    close(found[1], np.zeros_like(X))
