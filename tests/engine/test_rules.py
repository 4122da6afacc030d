"""Every operation of the rule book against witnesses that do not know its rules.

The registry drives everything: a new record is tested without a line here, and fails if a part is missing.
"""

import inspect

import numpy as np
import pytest
from support import (
    along,
    close,
    complex_step,
    cotangent,
    first_along,
    gradients,
    leaves_of,
    rule_errors,
    sampled,
    second_gradients,
)

import tinyattn as ta
from tinyattn.ops import REGISTRY

OPS = list(REGISTRY.values())
each_op = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
each_rule = pytest.mark.parametrize("op", [op for op in OPS if op.name != "size_of"], ids=lambda op: op.name)
"""All but the one whose result does not depend on the numbers."""

NOT_COMPLEX = {
    "erf": "the error function of the standard library takes real numbers only",
    "cast": "a cast to a real dtype drops the imaginary part",
    "size_of": "a length does not depend on the numbers",
}
ANALYTIC_AWAY_FROM_ITS_KINKS = {"divide", "power", "integer_power", "log", "sqrt"}

BINARY_FORMS = {
    # name: inputs of equal shape that may be one and the same tensor, and parameters
    **{
        name: ((2, 2), 2, ())
        for name in ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "matmul")
    },
    "where": ((2, 2), 2, (np.array([[True, False], [False, True]]),)),
    "einsum": ((2, 2), 2, ("ij,jk->ik",)),
    "concatenate": ((2, 2), 3, (1,)),
    "stack": ((2, 2), 3, (0,)),
    "scaled_dot_product_attention": ((3, 2), 3, (None, True, None)),
    "layer_norm": ((3,), 3, (1e-5,)),
}


@each_op
def test_record_has_every_part(op):
    assert callable(op.forward) and callable(op.sample) and op.definition
    rules = op.vjps if isinstance(op.vjps, tuple) else (op.vjps,)
    assert any(callable(rule) for rule in rules) or op.name == "size_of"
    assert not isinstance(op.vjps, tuple) or len(op.vjps) == len(op.input_names)
    calls = sampled(op)
    assert calls, "a sampler that gives nothing checks nothing"
    for inputs, params in calls:
        assert len(params) == len(op.param_names)
        assert op.variadic or len(inputs) == len(op.input_names)
        text = op.definition_text(tuple(x.shape for x in inputs), params)
        assert text.startswith("y[") and " = " in text


@each_op
def test_sampler_is_repeatable_and_follows_its_generator(op):
    first, again, other = sampled(op, 1), sampled(op, 1), sampled(op, 2)
    for (a, _), (b, _) in zip(first, again, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    assert any(
        not np.array_equal(x, y)
        for (a, _), (b, _) in zip(first, other, strict=True)
        for x, y in zip(a, b, strict=True)
        if x.size
    )


@each_op
def test_rule_agrees_with_differences(op, rng):
    for inputs, params in sampled(op):
        errors = rule_errors(op, inputs, params, cotangent(rng, op, inputs, params))
        assert max(errors) < 1e-9, f"parameters {params}: {dict(zip(op.names_of(len(inputs)), errors, strict=True))}"


@each_op
def test_rule_agrees_with_the_complex_step(op, rng):
    if op.name in NOT_COMPLEX or (op.kinks and op.name not in ANALYTIC_AWAY_FROM_ITS_KINKS):
        assert op.name in NOT_COMPLEX or op.kinks
        return
    for inputs, params in sampled(op):
        g = cotangent(rng, op, inputs, params)
        assert max(rule_errors(op, inputs, params, g, complex_step)) < 2e-14, params


def test_every_exception_from_the_complex_step_is_an_op():
    assert set(NOT_COMPLEX) | ANALYTIC_AWAY_FROM_ITS_KINKS <= set(REGISTRY)
    assert all(not REGISTRY[name].kinks for name in NOT_COMPLEX)


@each_op
def test_forward_mode_agrees_with_differences(op, rng):
    """Twice transposed: this also differentiates every rule with respect to its cotangent."""
    for inputs, params in sampled(op):
        directions = [rng.normal(size=x.shape) for x in inputs]
        _, dy = ta.jvp(lambda *xs, p=params, op=op: op(*xs, *p), inputs, directions)
        close(dy, along(lambda *xs, p=params, op=op: op(*xs, *p), inputs, directions), atol=1e-9)


@each_rule
def test_second_order_agrees_with_differences_of_first_order(op, rng):
    for inputs, params in sampled(op):
        g, directions = cotangent(rng, op, inputs, params), [rng.normal(size=x.shape) for x in inputs]
        f = lambda *xs, p=params, op=op: op(*xs, *p)
        for got, want in zip(
            second_gradients(f, inputs, g, directions), first_along(f, inputs, g, directions), strict=True
        ):
            close(got, want, atol=1e-8)


@each_rule
def test_recorded_gradient_equals_the_plain_one(op, rng):
    for inputs, params in sampled(op):
        g = cotangent(rng, op, inputs, params)
        leaves = leaves_of(inputs)
        y = op(*leaves, *params)
        for recorded, plain in zip(
            ta.grad(y, leaves, seed=g, create_graph=True), ta.grad(y, leaves, seed=g), strict=True
        ):
            assert recorded.dtype == plain.dtype
            close(recorded, plain, rtol=1e-13, atol=1e-14)


@each_op
def test_rule_is_linear_in_the_cotangent(op, rng):
    for inputs, params in sampled(op):
        f = lambda *xs, p=params, op=op: op(*xs, *p)
        one, two = cotangent(rng, op, inputs, params), cotangent(rng, op, inputs, params)
        for a, b, both in zip(
            gradients(f, inputs, one),
            gradients(f, inputs, two),
            gradients(f, inputs, 2 * one - 3 * two),
            strict=True,
        ):
            close(both, 2 * a - 3 * b, rtol=1e-12, atol=1e-12)


@each_op
def test_cotangent_of_zero_gives_exactly_zero(op):
    for inputs, params in sampled(op):
        zero = np.zeros(np.shape(op(*inputs, *params)))
        for gradient in gradients(lambda *xs, p=params, op=op: op(*xs, *p), inputs, zero):
            assert not gradient.any()


@each_rule
def test_rule_does_not_write_into_what_it_was_given(op, rng):
    for inputs, params in sampled(op):
        g, leaves = cotangent(rng, op, inputs, params), leaves_of(inputs)
        y = op(*leaves, *params)
        before = [y.numpy(), *(x.numpy() for x in leaves), np.array(g)]
        y.backward(g)
        y.backward(g)
        for was, now in zip(before, [y.data, *(x.data for x in leaves), g], strict=True):
            np.testing.assert_array_equal(was, now)


@each_op
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gradient_has_the_dtype_of_its_input(op, dtype, rng):
    for inputs, params in sampled(op):
        if op.name == "cast":
            params = (np.dtype(dtype),)
        leaves = leaves_of([x.astype(dtype) for x in inputs])
        y = op(*leaves, *params)
        assert y.dtype == dtype
        if not y.requires_grad:
            continue
        y.backward(np.ones(y.shape))
        for x in leaves:
            assert x.grad is None or (x.grad.dtype == dtype and x.grad.shape == x.shape)
        recorded = ta.grad(y, leaves, seed=np.ones(y.shape), create_graph=True)
        assert {g.dtype for g in recorded} == {np.dtype(dtype)}
        if dtype == "float32":
            exact = gradients(lambda *xs, p=params, op=op: op(*xs, *p), [x.data.astype(float) for x in leaves])
            for got, want in zip(ta.grad(y, leaves, seed=np.ones(y.shape)), exact, strict=True):
                close(got, want, rtol=1e-4, atol=1e-5)


def test_a_length_is_no_function_of_the_numbers(rng):
    x = ta.tensor(rng.normal(size=(2, 3)), requires_grad=True)
    assert not ta.size_of(x).requires_grad
    assert (x * ta.size_of(x, 0)).requires_grad


def test_every_op_of_several_inputs_has_a_form_for_one_tensor_twice():
    several = {op.name for op in OPS if op.variadic or len(op.input_names) > 1}
    assert several == set(BINARY_FORMS)


@pytest.mark.parametrize("name", list(BINARY_FORMS))
def test_the_same_tensor_twice_gets_the_sum_of_both_gradients(name, rng):
    shape, count, params = BINARY_FORMS[name]
    op, x = REGISTRY[name], rng.uniform(0.5, 1.5, shape)
    g = rng.normal(size=np.shape(op(*[x] * count, *params)))
    (once,) = gradients(lambda t: op(*[t] * count, *params), [x], g)
    if name not in ("maximum", "minimum"):
        apart = gradients(lambda *ts: op(*ts, *params), [x] * count, g)
        close(once, sum(apart), rtol=1e-13)
        direction = rng.normal(size=shape)
        f = lambda t: op(*[t] * count, *params)
        close(second_gradients(f, [x], g, [direction])[0], first_along(f, [x], g, [direction])[0], atol=1e-8)
    else:
        close(once, g)  # a tie with itself: half and half


@pytest.mark.parametrize("op", [op for op in OPS if op.composed is not None], ids=lambda op: op.name)
def test_fused_equals_composed_in_value_gradient_and_second_gradient(op, rng):
    for inputs, params in sampled(op):
        fused, plain = (lambda *xs, form=form, p=params: form(*xs, *p) for form in (op, op.composed))
        g, directions = cotangent(rng, op, inputs, params), [rng.normal(size=x.shape) for x in inputs]
        close(fused(*leaves_of(inputs)), plain(*leaves_of(inputs)), rtol=1e-13)
        for a, b in zip(gradients(fused, inputs, g), gradients(plain, inputs, g), strict=True):
            close(a, b, rtol=1e-12)
        seconds = (second_gradients(form, inputs, g, directions) for form in (fused, plain))
        for a, b in zip(*seconds, strict=True):
            close(a, b, rtol=1e-11)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_and_log_softmax_equal_their_textbook_forms(axis, rng):
    x, g, d = (rng.normal(size=(2, 3, 4)) for _ in range(3))

    def plain(t):
        e = ta.exp(t)
        return e / ta.sum(e, axis, keepdims=True)

    for fused, composed in (
        (lambda t: ta.softmax(t, axis), plain),
        (lambda t: ta.log_softmax(t, axis), lambda t: ta.log(plain(t))),
    ):
        close(fused(ta.tensor(x)), composed(ta.tensor(x)), rtol=1e-13)
        close(gradients(fused, [x], g)[0], gradients(composed, [x], g)[0], rtol=1e-11)
        close(second_gradients(fused, [x], g, [d])[0], second_gradients(composed, [x], g, [d])[0], rtol=1e-9)


@each_op
def test_op_on_arrays_gives_arrays_and_records_nothing(op):
    inputs, params = sampled(op)[0]
    result = op(*inputs, *params)
    assert isinstance(result, (np.ndarray, np.generic)) and result.dtype == np.float64


def test_names_of_ops_are_unique_words():
    assert all(name == op.name and name.isidentifier() for name, op in REGISTRY.items())


def test_signature_of_the_forward_has_inputs_first_and_params_after():
    for op in OPS:
        if isinstance(op.forward, np.ufunc) or op.variadic:
            continue
        names = list(inspect.signature(op.forward).parameters)
        assert len(names) == len(op.input_names) + len(op.param_names), op.name
