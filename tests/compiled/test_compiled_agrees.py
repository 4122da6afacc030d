"""A program gives what the tape gives: value and gradient, for every operation, function and random graph."""

from __future__ import annotations

import numpy as np
import pytest
from public_calls import CALLS

import tinyattn as ta
from tinyattn.ops import REGISTRY

TAKEN_APART = {name for name, op in REGISTRY.items() if op.composed is not None}
"""Fused operations: the program computes them from plain ones, so the last bits may differ."""

OPS = [(name, at) for name, op in REGISTRY.items() for at in range(len(op.sample(np.random.default_rng(0))))]


def tensors_of(inputs, dtype):
    return [ta.tensor(np.asarray(x, dtype)) for x in inputs]


def assert_agrees(got, want, exactly, rtol):
    assert got.shape == want.shape and got.dtype == want.dtype
    if exactly:
        np.testing.assert_array_equal(got.data, want.data)
    else:
        np.testing.assert_allclose(got.data, want.data, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "at"), OPS)
def test_every_operation_has_the_same_value_and_gradient(name, at, dtype):
    op = REGISTRY[name]
    inputs, params = op.sample(np.random.default_rng(3))[at]
    xs = tensors_of(inputs, dtype)
    rtol = 1e-13 if dtype == np.float64 else 2e-6
    by_math = name in ("exp", "log", "sin", "cos", "tanh", "sigmoid", "erf", "power") and any(x.ndim == 0 for x in xs)
    exactly = name not in TAKEN_APART and dtype == np.float64 and not by_math
    y = ta.apply(op, tuple(xs), params)
    assert_agrees(ta.compile(lambda *t: ta.apply(op, t, params))(*xs), y, exactly, rtol)
    if y.dtype.kind != "f" or not op.differentiable:
        return
    g = np.random.default_rng(5).normal(size=y.shape).astype(y.dtype)
    both = ta.value_and_grad(lambda *t: (ta.apply(op, t, params) * g).sum(), tuple(range(len(xs))))
    (value, slopes), (ours, our_slopes) = both(*xs), ta.compile(both)(*xs)
    assert_agrees(ours, value, exactly, rtol)
    for got, want in zip(our_slopes, slopes, strict=True):
        assert_agrees(got, want, exactly, rtol)


@pytest.mark.parametrize("shape", [(3,), (3, 4), (20, 30), (50, 40)])
def test_a_single_number_beside_an_array_has_the_same_gradient_to_the_last_bit(shape):
    rng = np.random.default_rng(7)
    both = ta.value_and_grad(lambda x: ((x - x.mean()) ** 2 / x.sum()).sum())
    compiled = ta.compile(both)
    for _ in range(20):
        x = ta.tensor(rng.normal(size=shape))
        for got, want in zip(compiled(x), both(x), strict=True):
            np.testing.assert_array_equal(got.data, want.data)


@pytest.mark.parametrize("call", [call for call in CALLS if call.name != "dropout"], ids=str)  # chance is refused
def test_every_public_function_agrees(call):
    xs = tensors_of(call.inputs(), np.float64)
    f = lambda *t: call.ours(ta, *t)
    y = f(*xs)
    assert_agrees(ta.compile(f)(*xs), y, False, 1e-13)
    g = np.random.default_rng(5).normal(size=y.shape).astype(y.dtype)
    if y.dtype.kind != "f":
        return
    both = ta.value_and_grad(lambda *t: (ta.astype(f(*t), np.float64) * g).sum(), tuple(range(len(xs))))
    (value, slopes), (ours, our_slopes) = both(*xs), ta.compile(both)(*xs)
    assert_agrees(ours, value, False, 1e-12)
    for got, want in zip(our_slopes, slopes, strict=True):
        assert_agrees(got, want, False, 1e-12)


def test_what_one_input_of_a_fused_operation_owes_another_is_counted_once():
    f = lambda x: (
        (ta.scaled_dot_product_attention(x, x, ta.relu(x)) ** 2).sum()
        + (ta.layer_norm(x, x[0] * x[0], x[1]) ** 2).sum()
    )
    x = ta.tensor(np.random.default_rng(0).normal(size=(2, 3)))
    np.testing.assert_allclose(ta.compile(ta.grad(f))(x).data, ta.grad(f)(x).data, rtol=1e-12)


# -- random graphs -----------------------------------------------------------------------------------------------------


def entries(a, ids):
    return a[ids % a.shape[0]] if a.ndim else a


STEPS = [
    lambda a, b, c, ids: a + b, lambda a, b, c, ids: a * b * c, lambda a, b, c, ids: a - b,
    lambda a, b, c, ids: a / (b * b + 1.0), lambda a, b, c, ids: ta.maximum(a, b),
    lambda a, b, c, ids: ta.softmax(a), lambda a, b, c, ids: a @ b, lambda a, b, c, ids: a.T,
    lambda a, b, c, ids: a.sum(axis=0), lambda a, b, c, ids: ta.max(a, axis=-1, keepdims=True),
    lambda a, b, c, ids: a.reshape(-1), lambda a, b, c, ids: ta.tanh(a), lambda a, b, c, ids: ta.relu(a),
    lambda a, b, c, ids: a[0], lambda a, b, c, ids: ta.concatenate([a, b]),
    lambda a, b, c, ids: ta.sigmoid(a) * c, lambda a, b, c, ids: entries(a, ids), lambda a, b, c, ids: ta.stack([a, b]),
    lambda a, b, c, ids: ta.where(a > b, a, b * c), lambda a, b, c, ids: ta.layer_norm(a, np.ones(a.shape[-1]), 0.0),
]  # fmt: skip


def random_graph(rng):
    """Inputs and a function of them: some twenty operations on whatever fits."""
    n, m = rng.integers(1, 5, 2)
    inputs = [rng.normal(size=shape) for shape in [(n, m), (n, m), (m, n), (m,), (n, 1), ()]]
    pool, chosen = tensors_of(inputs, np.float64), []
    for _ in range(rng.integers(5, 30)):
        step = (
            STEPS[rng.integers(len(STEPS))], *rng.integers(0, len(pool), 2), float(rng.normal()),
            rng.integers(0, 50, 3),
        )  # fmt: skip
        try:
            y = step[0](pool[step[1]], pool[step[2]], *step[3:])
        except (ValueError, IndexError, TypeError):
            continue
        if y.ndim <= 3 and 0 < y.size <= 200:
            chosen.append(step)
            pool.append(y)

    def loss(*xs):
        pool = list(xs)
        for step, i, j, c, ids in chosen:
            pool.append(step(pool[i], pool[j], c, ids))
        return sum(((x * x).sum() for x in pool[-4:]), start=0.0)

    return inputs, loss


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_agree_also_on_other_numbers_and_nothing_handed_out_changes(seed):
    rng = np.random.default_rng(seed)
    inputs, loss = random_graph(rng)
    both = ta.value_and_grad(loss, tuple(range(len(inputs))))
    compiled = ta.compile(both)
    earlier = []
    for again in range(3):
        xs = tensors_of([x if again == 0 else rng.normal(size=x.shape) for x in inputs], np.float64)
        (value, slopes), (ours, our_slopes) = both(*xs), compiled(*xs)
        for got, want in zip([ours, *our_slopes], [value, *slopes], strict=True):
            assert got.shape == want.shape
            largest = max(1.0, float(np.abs(want.data).max()))
            np.testing.assert_allclose(got.data, want.data, rtol=0, atol=1e-12 * largest)
            earlier.append((got, got.numpy()))
    assert len(compiled.programs) == 1
    for got, then in earlier:
        np.testing.assert_array_equal(got.data, then)
