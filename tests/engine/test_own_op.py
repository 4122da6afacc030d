"""An operation of one's own is one record with the same rights as the built-in ones."""

import threading

import numpy as np
import pytest
from support import (
    altered,
    close,
    cotangent,
    differences,
    first_along,
    gradients,
    rule_errors,
    sampled,
    second_gradients,
)

import tinyattn as ta
from tinyattn.ops import REGISTRY, Op, register
from tinyattn.ops.helpers import sum_to

logaddexp = Op(
    "logaddexp",
    lambda a, b: np.maximum(a, b) + np.log(1 + np.exp(-np.abs(a - b))),
    (
        lambda g, y, a, b: sum_to(g * np.exp(a - y), a.shape),
        lambda g, y, a, b: sum_to(g * np.exp(b - y), b.shape),
    ),
    "y[...] = log(exp(a[...]) + exp(b[...]))",
    inputs=("a", "b"),
    sample=lambda rng: [
        ((rng.normal(size=(2, 3)), rng.normal(size=3)), ()),
        ((rng.normal(size=()), rng.normal(size=2)), ()),
    ],
)


def test_it_is_outside_the_registry_until_it_is_registered_once():
    assert "logaddexp" not in REGISTRY
    with pytest.raises(ValueError, match="already an op named 'exp'"):
        register(altered(REGISTRY["exp"]))


def test_it_computes_on_arrays_and_records_on_tensors(rng):
    a, b = rng.normal(size=(2, 3)), rng.normal(size=3)
    close(logaddexp(a, b), np.logaddexp(a, b))
    y = logaddexp(ta.tensor(a, requires_grad=True), b)
    assert y.requires_grad and y.name == "y"
    close(y, np.logaddexp(a, b))


def test_its_rules_are_checked_like_any_other(rng):
    for inputs, params in sampled(logaddexp):
        g = cotangent(rng, logaddexp, inputs, params)
        assert max(rule_errors(logaddexp, inputs, params, g)) < 1e-9
        directions = [rng.normal(size=x.shape) for x in inputs]
        for got, want in zip(
            second_gradients(logaddexp, inputs, g, directions),
            first_along(logaddexp, inputs, g, directions),
            strict=True,
        ):
            close(got, want, atol=1e-8)


def test_its_definition_is_held_against_its_forward():
    entrywise = pytest.importorskip("tinyattn.symbolic.entrywise")
    (a, b), _ = sampled(logaddexp)[0]
    close(entrywise.evaluate(logaddexp.definition, {"a": a, "b": b}, {}, (2, 3)), logaddexp(a, b), rtol=1e-13)


def test_it_stands_in_a_graph_with_its_name_and_in_transforms():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    y = ta.sum(logaddexp(x, x * 2))
    graph = ta.Graph.of(y, gradients=True)
    assert [node.op_name for node in graph.nodes if node.op is not None] == ["multiply", "logaddexp", "sum"]
    f = lambda x: ta.sum(logaddexp(x, x * 2))
    close(ta.grad(f)([1.0, 2.0]), differences(lambda x: np.logaddexp(x, 2 * x), [np.array([1.0, 2.0])])[0], rtol=1e-9)
    close(ta.hessian(f, [1.0]), [[np.exp(1.0) / (1 + np.exp(1.0)) ** 2]])


def test_shapes_that_do_not_fit_are_refused_in_its_name():
    a, b = ta.tensor(np.ones((2, 3))), ta.tensor(np.ones(4))
    with pytest.raises(ta.ShapeError, match=r"(?s)logaddexp\(a: \(2, 3\), b: \(4,\)\).*b was made at test_own_op\.py"):
        logaddexp(a, b)


def test_it_may_save_arrays_for_one_joint_rule(rng):
    def forward(x, w):
        hidden = np.tanh(x * w)
        return hidden.sum(), hidden

    joint = Op(
        "tanh_sum",
        forward,
        lambda g, y, hidden, x, w: (g * (1 - hidden * hidden) * w, g * (1 - hidden * hidden) * x),
        "y[] = sum_i tanh(x[i] * w[i])",
        inputs=("x", "w"),
        saves=True,
        composed=lambda x, w: np.tanh(x * w).sum(),
        sample=lambda rng: [((rng.normal(size=3), rng.normal(size=3)), ())],
    )
    inputs, params = sampled(joint)[0]
    assert max(rule_errors(joint, inputs, params, np.array(1.5))) < 1e-9
    directions = [rng.normal(size=3), rng.normal(size=3)]
    for got, want in zip(
        second_gradients(joint, inputs, np.array(1.5), directions),
        first_along(joint, inputs, np.array(1.5), directions),
        strict=True,
    ):
        close(got, want, atol=1e-8)


def test_an_input_without_derivative_gets_none_and_is_zero():
    half = Op(
        "half",
        lambda x, step: x * step,
        (lambda g, y, x, step: g * step, None),
        "y[...] = x[...] * step[...]",
        inputs=("x", "step"),
        sample=lambda rng: [((rng.normal(size=2), rng.normal(size=2)), ())],
    )
    x, step = ta.tensor([1.0, 2.0], requires_grad=True), ta.tensor([3.0, 4.0], requires_grad=True)
    ta.sum(half(x, step)).backward()
    close(x.grad, [3.0, 4.0])
    assert step.grad is None
    close(gradients(half, [x.data, step.data])[1], [0.0, 0.0])


def test_one_variable_in_two_inputs_of_a_joint_rule_adds_up():
    for name, params in (("layer_norm", (1e-5,)), ("scaled_dot_product_attention", (None, False, None))):
        op = REGISTRY[name]
        count = len(op.input_names)
        x = np.array([0.3, 1.5, -0.4]) if name == "layer_norm" else np.arange(6.0).reshape(3, 2) / 5
        f = lambda t, op=op, count=count, params=params: op(*[t] * count, *params)
        close(gradients(f, [x])[0], differences(f, [x])[0], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", [np.int64, np.complex128])
def test_a_result_whose_dtype_no_gradient_can_have_is_refused_in_words(kind):
    rounding = altered(REGISTRY["exp"], name="rounding", forward=lambda x: x.astype(kind), vjps=(lambda g, y, x: g,))
    x = ta.tensor([1.5, 2.5], requires_grad=True)
    for y in (ta.apply(rounding, (x,)).sum(), ta.apply(rounding, (ta.sum(x),))):
        with pytest.raises(ta.RuleError, match=f"the rule of rounding for x gave .* {np.dtype(kind)}"):
            y.backward()


def test_threads_may_use_one_op_at_once():
    results = []

    def work():
        x = ta.tensor([1.0, 2.0], requires_grad=True)
        ta.sum(logaddexp(x, 0.0)).backward()
        results.append(x.grad)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(np.array_equal(results[0], r) for r in results)


def _raising(*arguments):
    return 1 / 0


@pytest.mark.parametrize("rules", [(_raising,), _raising, lambda g, y, x: (g, g)], ids=["each", "joint", "too many"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_rule_that_raises_is_named_with_its_line(rules, create_graph):
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    y = altered(REGISTRY["exp"], vjps=rules)(x)
    with pytest.raises((ZeroDivisionError, ValueError)) as raised:
        ta.sum(y).backward() if not create_graph else ta.grad(ta.sum(y), x, create_graph=True)
    (note,) = raised.value.__notes__
    assert note.startswith("while the rule of exp computed a gradient for (2,), made at test_own_op.py:")


def test_a_seed_that_is_no_array_is_refused_in_words():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    for seed in ([[1.0], [1.0, 2.0]], "a", [1j, 2j]):
        with pytest.raises(ta.TinyattnError, match=r"^backward: "):
            (x * 2.0).backward(seed)
    assert x.grad is None
