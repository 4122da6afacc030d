# ruff: noqa: E501 - a table reads best with one line for each case
"""The bound of the rounding error holds: the same graphs on 50-digit numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.check.bounded import Bounded
from tinyattn.check.bounding import bounded_run
from tinyattn.check.digits import ManyDigits
from tinyattn.check.replay import Replay


def attention(q, k, v):
    return ta.scaled_dot_product_attention(q, k, v)


def masked(q, k, v):
    keep = np.random.default_rng(5).random((8, 8)) < 0.6
    keep[2] = False  # a row with nothing to look at
    return ta.scaled_dot_product_attention(q, k, v, keep=keep)


def qkv(n, d, scale=1.0, dtype=float):
    return lambda rng: [(scale * rng.normal(size=(n, d))).astype(dtype) for _ in range(3)]


def arrays(*shapes, scale=1.0):
    return lambda rng: [scale * rng.normal(size=shape) for shape in shapes]


CASES = {
    "tiny attention": (attention, qkv(2, 2)),
    "attention": (attention, qkv(16, 8)),
    "saturated": (attention, qkv(8, 4, 3.0)),
    "very saturated": (attention, qkv(8, 4, 10.0)),
    "masked": (masked, qkv(8, 4)),
    "causal": (lambda q, k, v: ta.scaled_dot_product_attention(q, k, v, causal=True), qkv(8, 4)),
    "almost nothing": (attention, qkv(8, 4, 1e-8)),
    "float32": (attention, qkv(8, 4, 1.0, np.float32)),
    "layer norm": (ta.layer_norm, arrays((8, 16), (16,), (16,))),
    "cross entropy": (lambda x: ta.cross_entropy(x, np.arange(8)), arrays((8, 10))),
    "log softmax": (ta.log_softmax, arrays((8, 16), scale=5.0)),
    "two layers": (lambda x, w, u: ta.tanh(x @ w) @ u, arrays((8, 16), (16, 32), (32, 16))),
    "gelu": (ta.gelu, arrays((8, 16))),
    "variance": (lambda x: ta.var(x, axis=1), arrays((8, 16))),
}


def errors_and_bounds(f, inputs, rng):
    """The engine's gradients against the truth: how far off each entry is, and how far it may be."""
    leaves = [ta.tensor(x, requires_grad=True) for x in inputs]
    y = f(*leaves)
    g = np.asarray(rng.normal(size=y.shape), y.dtype)
    names = {f"input {i}": leaf for i, leaf in enumerate(leaves)}
    graph = ta.Graph.of(y, names=names, variables={})
    engine = ta.grad(y, leaves, seed=g)
    bounded, true = (
        bounded_run(graph, wide=False),
        Replay(graph, ManyDigits.lift, lambda node: ManyDigits.lift(node.value)),
    )
    true.forward()
    bounds = bounded.backward({graph.outputs[0]: Bounded.exact(g)})
    truths = true.backward({graph.outputs[0]: ManyDigits.lift(g)})
    assert not bounded.cut and not true.cut
    for name, got in zip(names, engine, strict=True):
        at = graph.find(name).index
        off = ManyDigits.lift(got.data).v - truths[at].v
        yield np.abs(off).astype(float).ravel(), np.asarray(bounds[at].e).ravel()


def test_the_bound_covers_the_error_of_every_entry_and_is_not_far_from_it():
    entries, over, ratios = 0, 0, []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        for f, make in CASES.values():
            for error, bound in errors_and_bounds(f, make(rng), rng):
                entries += error.size
                over += int((error > bound).sum())
                ratios += list(bound[error > 0] / error[error > 0])
    assert entries >= 10_000
    assert over == 0
    assert np.median(ratios) <= 500


def test_an_error_that_rounding_does_not_explain_is_above_the_bound(rng):
    """The bound is of use only if it says no."""
    x = ta.tensor(rng.normal(size=(4, 4)), requires_grad=True)
    graph = ta.Graph.of(ta.softmax(x), names={"x": x}, variables={})
    totals = bounded_run(graph, wide=False).backward({graph.outputs[0]: Bounded.exact(np.eye(4))})
    assert (np.abs(totals[0].v * 1e-9) > totals[0].e).mean() > 0.9


@pytest.mark.parametrize(
    ("compute", "units"),
    [
        (lambda x: x + x, 2), (lambda x: x * x, 2), (lambda x: x / (x + 3.0), 8), (lambda x: np.exp(x), 20), (lambda x: np.sqrt(x), 4),
        (lambda x: np.tanh(x), 20), (lambda x: x.sum(axis=0), 40), (lambda x: x @ x.T, 40), (lambda x: x**3, 8),
    ],
    ids=["sum", "product", "quotient", "exp", "root", "tanh", "column sums", "matrix product", "cube"],
)  # fmt: skip
def test_bounds_are_a_few_units_for_one_operation(compute, units, rng):
    x = rng.uniform(0.5, 1.0, (4, 4))
    result = compute(Bounded.exact(x))
    np.testing.assert_allclose(result.v, compute(x), rtol=1e-15)
    assert (result.e <= units * 2.0**-53 * np.abs(result.v) + 1e-300).all()
    assert (result.e > 0).all()


def test_numbers_written_in_the_code_do_not_widen_float32(rng):
    x = Bounded.exact(rng.normal(size=(2, 2)).astype(np.float32))
    for y in (1 - x, 1 / (x * x + 1.0), np.where(x > 0, x, 0.0), x * 0.5, (x - 1.0) / 2):
        assert y.dtype == np.float32
    assert (x + Bounded.exact(np.ones((2, 2)))).dtype == np.float64
