"""Fused operations are proved equal to their parts, for all sizes; what differs is refused with numbers."""

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.ops import REGISTRY
from tinyattn.symbolic import prove_equal


def leaf(*shape, seed=0):
    return ta.tensor(np.random.default_rng([seed, *shape]).normal(size=shape), requires_grad=True)


def mean_and_spread(x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred, (centred * centred).mean(axis=-1, keepdims=True)


def test_softmax_is_exp_over_its_sum():
    x = leaf(3, 4)
    assert prove_equal(ta.softmax(x), ta.exp(x) / ta.exp(x).sum(axis=-1, keepdims=True))
    assert prove_equal(ta.log_softmax(x), x - ta.log(ta.exp(x).sum(axis=-1, keepdims=True)))


def test_layer_norm_is_its_parts():
    x, gain, bias = leaf(3, 4), leaf(4), leaf(4, seed=1)
    centred, variance = mean_and_spread(x)
    assert prove_equal(ta.layer_norm(x, gain, bias), centred / ta.sqrt(variance + 1e-5) * gain + bias)


def test_layer_norm_is_its_composed_form():
    op = REGISTRY["layer_norm"]
    for inputs, params in op.sample(np.random.default_rng(0)):
        tensors = [ta.tensor(x, requires_grad=True) for x in inputs]
        claim = prove_equal(op(*tensors, *params), op.composed(*tensors, *params))
        assert claim.holds, str(claim)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_softmax_of_scores_times_values(masked):
    Q, K, V = leaf(3, 2), leaf(4, 2), leaf(4, 5)
    keep = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]], bool) if masked else None
    scores = Q @ K.mT / ta.sqrt(ta.size_of(K, axis=-1))
    assert prove_equal(ta.scaled_dot_product_attention(Q, K, V, keep=keep), ta.softmax(scores, keep=keep) @ V)


def test_column_form_of_the_lecture_is_the_transpose():
    """Tokens as columns, y = W x: the same numbers, transposed."""
    X, W = leaf(3, 2), leaf(2, 4)
    assert prove_equal((X @ W).mT, W.mT @ X.mT)


def test_algebra_is_multiplied_out():
    x = leaf(3)
    assert prove_equal((x + 1) ** 2, x * x + 2 * x + 1)


def test_what_differs_is_refused_with_numbers():
    x, gain, bias = leaf(3, 4), leaf(4), leaf(4, seed=1)
    centred, variance = mean_and_spread(x)
    claim = prove_equal(ta.layer_norm(x, gain, bias), centred / ta.sqrt(variance + 1e-5) * gain - bias)
    assert not claim.holds and claim.op == "layer_norm" and "apart at the recorded numbers" in str(claim)
    assert not prove_equal(ta.softmax(x), ta.exp(x)).holds


def picked(p, t):
    return p[np.arange(len(t)), t]


TARGETS = np.array([0, 3, 1, 1, 2])
BY_HAND = {
    "picked log-probabilities": lambda x, Y: -picked(ta.log_softmax(x), TARGETS).mean(),
    "logarithm of picked probabilities": lambda x, Y: -ta.log(picked(ta.softmax(x), TARGETS)).mean(),
    "log-sum-exp minus the score": lambda x, Y: (
        ta.log(ta.exp(x).sum(axis=-1)).mean() - picked(x, TARGETS).mean()
    ),
    "one-hot times log-probability": lambda x, Y: -(Y * ta.log_softmax(x)).sum(axis=-1).mean(),
    "one-hot times logarithm": lambda x, Y: -(Y * ta.log(ta.softmax(x))).sum(axis=-1).mean(),
    "exp over its sum": lambda x, Y: -ta.log((Y * (ta.exp(x) / ta.exp(x).sum(-1, True))).sum(-1)).mean(),
}  # fmt: skip


@pytest.mark.parametrize("way", BY_HAND)
def test_cross_entropy_is_what_is_written_by_hand(way):
    x, Y = leaf(5, 4), ta.tensor(np.eye(4)[TARGETS], name="Y")
    claim = prove_equal(ta.cross_entropy(x, TARGETS), BY_HAND[way](x, Y))
    assert claim.holds, str(claim)
    assert claim.given == ("Y of node 1 is 1 at targets and 0 elsewhere" if "Y" in claim.given else "")


@pytest.mark.parametrize("reduction", ["none", "sum"])
def test_cross_entropy_is_its_composed_form(reduction):
    """The mean of it divides by a number of rows that was counted; by hand it is proved above."""
    op, x = REGISTRY["cross_entropy"], leaf(5, 4)
    arguments = (x, TARGETS, None, 0.0, reduction)
    claim = prove_equal(op(*arguments), op.composed(*arguments))
    assert claim.holds and "is 1 at targets and 0 elsewhere" in claim.given


def test_other_targets_and_rows_in_another_order_are_refused():
    x, Y = leaf(5, 4), ta.tensor(np.eye(4)[TARGETS[::-1]])
    right = ta.cross_entropy(x, TARGETS)
    for wrong in (
        -picked(ta.log_softmax(x), TARGETS[::-1]).mean(),
        -ta.log_softmax(x)[np.array([1, 0, 2, 3, 4]), TARGETS].mean(),
        -(Y * ta.log_softmax(x)).sum(axis=-1).mean(),
        -picked(ta.log_softmax(x), TARGETS).sum(),
        -(Y * ta.log(ta.softmax(x) + 0)).sum(axis=-1).mean(),
    ):
        claim = prove_equal(right, wrong)
        assert not claim and "apart at the recorded numbers" in str(claim)


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
def test_attention_is_its_composed_form(causal):
    op, (Q, K, V) = REGISTRY["scaled_dot_product_attention"], (leaf(3, 2), leaf(4, 2), leaf(4, 5))
    claim = prove_equal(op(Q, K, V, None, causal, None), op.composed(Q, K, V, None, causal, None))
    assert claim.holds and ("causal" in claim.given) == causal


def test_logarithms_of_products_are_taken_apart():
    x = leaf(3)
    assert prove_equal(ta.log(ta.softmax(x)), ta.log_softmax(x))
    assert prove_equal(ta.log(ta.exp(x) ** 2), 2 * x)


def test_what_is_equal_but_not_by_multiplying_out_is_called_undecided():
    x = leaf(3)
    claim = prove_equal(ta.sin(x) ** 2 + ta.cos(x) ** 2, ta.exp(x) * ta.exp(-x))
    assert not claim.holds and "undecided" in claim.counterexample
