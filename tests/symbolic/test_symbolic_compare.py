"""The comparison agrees where all is right, never cries wolf, and says who is wrong where something is."""

import numpy as np
import pytest
from symbolic.models import MODELS, attention, causal, cross_entropy, layer_norm_fused, multi_head, self_attention

import tinyattn as ta
from tinyattn.errors import ArgumentError
from tinyattn.ops import REGISTRY
from tinyattn.symbolic.comparing import compare_graph
from tinyattn.symbolic.derivation import Lines
from tinyattn.symbolic.referee import sympy_gradients

FAST = ("autograd", "formula", "complex", "difference")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_all_quick_ways_agree(model):
    loss, leaves = model()
    report = ta.compare(loss, wrt=leaves, methods=FAST)
    assert report, str(report)
    assert set(report.found) | set(report.unavailable) == set(FAST)


def test_all_five_ways_agree_on_self_attention_and_say_so():
    loss, leaves = self_attention(n=4, d=2)
    report = ta.compare(loss, wrt=leaves)
    assert report, str(report)
    assert report.camps() == [["autograd", "formula", "sympy", "complex", "difference"]]
    assert len(report.pairs) == len(leaves) * 10
    text, last = str(report).rsplit("\n", 1)
    first, second = ([line for line in part.splitlines()] for part in text.split("\n\n"))
    assert first[0].split() == ["leaf", "farthest", "apart", "difference", "bound", "verdict"]
    assert [row.split()[0] for row in first[1:]] == [leaf.name for leaf in leaves]
    assert second[0].split() == ["ways", "at", "difference", "bound", "verdict"] and len(second) == 1 + 10
    assert all(row.endswith("agree") for row in (*first[1:], *second[1:]))
    assert last == "sympy differentiated the whole loss at once"


@pytest.mark.parametrize(
    ("model", "op", "rule"),
    [
        (attention, "softmax", (lambda g, y, x, axis, keep: g * y * (1 - y),)),
        (causal, "softmax", (lambda g, y, x, axis, keep: y * (g - g.sum(axis=axis, keepdims=True)),)),
        (attention, "matmul", (lambda g, y, a, b: 2 * (g @ b.mT), lambda g, y, a, b: a.mT @ g)),
        (attention, "divide", (lambda g, y, a, b: g * b, lambda g, y, a, b: (g * a).sum())),
        (
            layer_norm_fused,
            "layer_norm",
            lambda g, y, s, x, gain, bias, eps: (g * gain * s[1], (g * s[0]).sum(0), g.sum(0)),
        ),
        (cross_entropy, "cross_entropy", lambda g, y, s, x, t, *rest: (g * (s[0] - np.eye(x.shape[1])[t]),)),
    ],
    ids=lambda part: getattr(part, "__name__", str(part))[:20],
)
def test_a_broken_rule_is_blamed_by_name_with_the_formula_that_should_have_held(monkeypatch, model, op, rule):
    monkeypatch.setattr(REGISTRY[op], "vjps", rule)
    loss, leaves = model()
    report = ta.compare(loss, wrt=leaves, methods=("autograd", "formula", "complex", "difference"))
    assert not report
    assert op in report.op and "should have been" in report.blame
    assert ["formula", "complex", "difference"] in report.camps()
    assert "formula, complex and difference agree; autograd stands alone" in str(report)


def test_softmax_without_its_correction_reads_as_the_guide_says(monkeypatch):
    monkeypatch.setattr(REGISTRY["softmax"], "vjps", (lambda g, y, x, axis, keep: g * y,))
    L, leaves = attention()
    text = str(ta.compare(L, wrt=leaves, methods=("autograd", "formula")))
    assert "first wrong gradient: S, made by the backward rule of softmax" in text
    assert "it should have been S̄ = P ⊙ (P̄ − (P̄ ⊙ P) 1 1ᵀ)" in text


@pytest.mark.parametrize("spread", [1.0, 10.0, 100.0, 1000.0])
def test_saturated_softmax_raises_no_false_alarm(spread):
    for seed in range(10):
        loss, leaves = attention(seed, spread)
        assert ta.compare(loss, wrt=leaves, methods=("autograd", "formula"))


def test_no_false_alarm_in_a_thousand_seeds():
    for seed in range(1000):
        n, m, d, k = np.random.default_rng(seed).integers(1, 5, 4)
        loss, leaves = attention(seed, 1.0 + seed % 5, n, m, d, k)
        report = ta.compare(loss, wrt=leaves, methods=("autograd", "formula"))
        assert report, f"seed {seed}: {report}"


@pytest.mark.parametrize(
    "model", [attention, causal, layer_norm_fused, cross_entropy], ids=lambda model: model.__name__
)
def test_bound_covers_the_true_error(model):
    """SymPy with 30 digits is the truth; autograd and the formulas lie within their bounds, entry by entry."""
    for seed in range(4):
        loss, leaves = model(seed)
        graph = ta.Graph.of(loss, gradients=True)
        wanted = [next(node.index for node in graph.nodes if node.name == leaf.name) for leaf in leaves]
        truth = sympy_gradients(graph, wanted, method="chain")
        report = compare_graph(graph, wanted, ("autograd", "formula"), Lines(graph, wanted))
        for leaf in wanted:
            for way in ("autograd", "formula"):
                value, bound = report.found[way][graph.nodes[leaf].name]
                assert (np.abs(value - truth[leaf]) <= bound + np.spacing(np.abs(truth[leaf]))).all()
                assert bound.max() < 1e-11 * max(1.0, np.abs(truth[leaf]).max())


def test_an_error_of_a_millionth_of_a_millionth_is_seen():
    """The bound is sharp enough to notice a relative error that a tolerance of 1e-6 would let through."""
    loss, _ = attention()
    graph = ta.Graph.of(loss, gradients=True)
    wanted = [node.index for node in graph.nodes if node.name in ("Q", "K", "V")]
    node = graph.nodes[wanted[0]]
    node.grad = node.grad * (1 + 1e-12)
    assert not compare_graph(graph, wanted, ("autograd", "formula"), Lines(graph, wanted))


def test_ways_that_cannot_be_gone_are_named():
    x = ta.tensor([0.5, 1.0], requires_grad=True, name="x")
    report = ta.compare(ta.erf(x).sum(), wrt=[x], methods=("autograd", "complex"))
    assert "erf does not run on complex numbers" in report.unavailable["complex"]
    assert "not compared: complex" in str(report)


def test_a_graph_without_a_formula_is_still_compared():
    x = ta.tensor([0.5, 1.0, 2.0], requires_grad=True, name="x")
    report = ta.compare(ta.prod(x), wrt=[x], methods=("autograd", "formula", "sympy", "difference"))
    assert report, str(report)
    assert "product" in report.unavailable["formula"]


def test_wrong_methods_are_answered_in_words():
    x = ta.tensor([0.5], requires_grad=True)
    with pytest.raises(ArgumentError, match="choose from autograd"):
        ta.compare((x * x).sum(), wrt=[x], methods=("magic",))


def test_large_leaves_are_sampled_by_the_ways_by_steps():
    W = ta.tensor(np.ones((30, 20)), requires_grad=True, name="W")
    for entries, looked_at in ({}, 400), ({"entries": 7}, 7):
        report = ta.compare((W * W).sum(), wrt=[W], methods=("autograd", "difference"), **entries)
        assert report and np.isfinite(report.found["difference"]["W"][0]).sum() == looked_at


def test_a_row_shows_where_most_of_the_bound_is_used_up(monkeypatch):
    """Not where the difference is largest, which is always where the bound is widest."""
    monkeypatch.setattr(REGISTRY["softmax"], "vjps", (lambda g, y, x, axis, keep: g * y,))
    loss, leaves = attention()
    report = ta.compare(loss, wrt=leaves, methods=("autograd", "formula", "difference"))
    rows = {row[0]: row for row in report.of_leaves()}
    assert rows["Q"][1] == "autograd - formula" and rows["Q"][-1] == "DIFFER" and rows["V"][-1] == "agree"
    assert [row[-1] for row in report.of_ways()] == ["DIFFER", "DIFFER", "agree"]


def test_heads_are_compared_too():
    loss, leaves = multi_head()
    assert ta.compare(loss, wrt=leaves, methods=("autograd", "formula", "complex"))
