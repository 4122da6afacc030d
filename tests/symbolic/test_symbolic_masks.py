"""Masks in formulas: whatever their shape, attention with them is derived, proved, and equal to its parts."""

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn
from tinyattn.ops import REGISTRY
from tinyattn.symbolic import prove_equal

ATTENTION = REGISTRY["scaled_dot_product_attention"]
MASKS = {
    "none": None,
    "padding (m)": np.array([True, True, True, False]),
    "padding (1, m)": np.array([[True, True, True, False]]),
    "each pair (n, m)": np.array([[1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]], bool),
    "one query (n, 1)": np.array([[True], [False], [True]]),
}
BATCHES = {"": (), "batch": (2,), "batch and heads": (2, 3)}


def leaves(batch=(), seed=0):
    rng = np.random.default_rng(seed)
    shapes = {"q": (3, 2), "k": (4, 2), "v": (4, 5)}
    return [ta.tensor(rng.normal(size=(*batch, *s)), requires_grad=True, name=name) for name, s in shapes.items()]


def holds(y, wrt):
    """Say whether the derivation is proved and computes what autograd computes."""
    loss = (y * y).sum()
    assert ta.compare(loss, wrt=wrt, methods=("autograd", "formula"))
    return ta.derive(loss, wrt=wrt).prove()


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("batch", BATCHES)
def test_fused_attention_is_derived_and_equal_to_its_parts(batch, mask, causal):
    q, k, v = leaves(BATCHES[batch])
    fused = ta.scaled_dot_product_attention(q, k, v, keep=MASKS[mask], causal=causal)
    parts = ATTENTION.composed(q, k, v, MASKS[mask], causal, None)
    assert holds(fused, [q, k, v]) and holds(parts, [q, k, v])
    claim = prove_equal(fused, parts)
    assert claim.holds, str(claim)
    assert ("causal" in claim.given) == causal


@pytest.mark.parametrize("normalise", ["softmax", "relu", "linear"])
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("mask", MASKS)
def test_attention_in_steps_is_derived(mask, causal, normalise):
    q, k, v = leaves((2,))
    assert holds(nn.attention(q, k, v, keep=MASKS[mask], causal=causal, normalise=normalise), [q, k, v])


def test_causal_self_attention_knows_queries_from_keys():
    """Queries and keys are as many and of one length; a mask of keys is still no mask of queries."""
    X = ta.tensor(np.random.default_rng(0).normal(size=(4, 3)), requires_grad=True, name="X")
    keys = np.array([[True, True, False, True]])
    for keep in (None, keys, keys.T, np.random.default_rng(1).random((4, 4)) > 0.4):
        for causal in (False, True):
            assert prove_equal(ATTENTION(X, X, X, keep, causal, None), ATTENTION.composed(X, X, X, keep, causal, None))
    wrong = prove_equal(ATTENTION(X, X, X, keys, False, None), ATTENTION.composed(X, X, X, keys.T, False, None))
    assert not wrong and "apart at the recorded numbers" in str(wrong)


def test_a_forgotten_causal_mask_is_refused():
    q, k, v = leaves()
    claim = prove_equal(ATTENTION(q, k, v, None, True, None), ATTENTION.composed(q, k, v, None, False, None))
    assert not claim and not claim.given


def test_what_was_taken_for_granted_of_a_mask_is_said():
    q, k, v = leaves()
    claim = prove_equal(ATTENTION(q, k, v, None, True, None), ATTENTION.composed(q, k, v, None, True, None))
    assert "given that keep of node" in str(claim) and str(claim).endswith("is causal")
