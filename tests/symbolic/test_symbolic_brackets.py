"""Rules with masks and targets, proved for all sizes by what brackets say of the rest of a term; wrong ones refused."""

import itertools

import numpy as np
import pytest
from symbolic.mutants import clone

from tinyattn.ops import REGISTRY
from tinyattn.ops.softmax import softmax_rule
from tinyattn.symbolic.recognising import OWN
from tinyattn.symbolic.rules import ALL_SIZES, EXPLICIT, WRONG, prove_rule

ATTENTION, ENTROPY = REGISTRY["scaled_dot_product_attention"], REGISTRY["cross_entropy"]
KEEP = np.array([[True, True, False, True], [True, False, True, True]])
MASKS = {"keep": (KEEP, False, 0.5), "causal": (None, True, None), "both": (KEEP, True, None)}
TARGETS = np.array([0, 2, 1, 2])
LOSSES = {
    "ignore": (TARGETS, 2, 0.0, "mean"), "smoothing": (TARGETS, None, 0.1, "mean"), "both": (TARGETS, 1, 0.1, "none"),
    "plain": (TARGETS, None, 0.0, "mean"),
}  # fmt: skip


def attention(op, params):
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=shape) for shape in ((2, 3), (4, 3), (4, 2))]
    return prove_rule(op, inputs, dict(zip(op.param_names, params, strict=True)))


def entropy(op, params):
    x = np.random.default_rng(0).normal(size=(4, 3))
    return prove_rule(op, [x], dict(zip(op.param_names, params, strict=True)))


@pytest.mark.parametrize("mask", MASKS)
def test_masked_attention_is_proved_for_all_sizes(mask):
    assert attention(ATTENTION, MASKS[mask]).verdict == ALL_SIZES


@pytest.mark.parametrize("loss", LOSSES)
def test_cross_entropy_is_proved_for_all_sizes(loss):
    assert entropy(ENTROPY, LOSSES[loss]).verdict == ALL_SIZES


def wrong_attention(change):
    def rule(g, y, saved, q, k, v, *params):
        weights, c, seen = saved
        d_weights = g @ v.T
        return change(g, weights, c, seen, d_weights, softmax_rule(d_weights, weights, None, -1, seen), q, k, v)

    return clone(ATTENTION, rule)


ATTENTION_MUTANTS = {
    "scale forgotten": lambda g, w, c, s, dw, ds, q, k, v: (ds @ k, ds.T @ q, w.T @ g),
    "sign": lambda g, w, c, s, dw, ds, q, k, v: (-(ds * c) @ k, (ds * c).T @ q, w.T @ g),
    "row not coupled": lambda g, w, c, s, dw, ds, q, k, v: (w * dw * c @ k, (ds * c).T @ q, w.T @ g),
    "mask where hidden": lambda g, w, c, s, dw, ds, q, k, v: (np.where(s, 0.0, ds * c) @ k, (ds * c).T @ q, w.T @ g),
    "mask itself added": lambda g, w, c, s, dw, ds, q, k, v: ((ds * c + s) @ k, (ds * c).T @ q, w.T @ g),
    "values by all": lambda g, w, c, s, dw, ds, q, k, v: (ds * c @ k, (ds * c).T @ q, np.where(s, 1.0, w).T @ g),
    "softmax of the whole": lambda g, w, c, s, dw, ds, q, k, v: (
        (w * (dw - (w * dw).sum())) * c @ k, (ds * c).T @ q, w.T @ g),
}  # fmt: skip


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("mutant", ATTENTION_MUTANTS)
def test_wrong_rules_of_masked_attention_are_refused(mutant, mask):
    assert attention(wrong_attention(ATTENTION_MUTANTS[mutant]), MASKS[mask]).verdict == WRONG


def with_definition(op, old, new):
    wrong = clone(op, op.vjps)
    right = op.definition
    wrong.definition = lambda call: right(call).replace(old, new)
    return wrong


@pytest.mark.parametrize(("d", "verdict"), [(3, WRONG), (4, EXPLICIT)])
def test_a_number_that_happens_to_be_the_root_of_a_length_is_not_read_as_that(d, verdict):
    """A rule with 0.5 in the place of 1/sqrt(d) is right where d is 4, and nowhere else."""

    def halved(g, w, c, seen, dw, ds, q, k, v):
        return ds * 0.5 @ k, (ds * 0.5).T @ q, w.T @ g

    inputs = [np.random.default_rng(d).normal(size=(size, d)) for size in (2, 3, 3)]
    params = dict(zip(ATTENTION.param_names, (None, False, None), strict=True))
    assert prove_rule(wrong_attention(halved), inputs, params).verdict == verdict
    assert prove_rule(ATTENTION, inputs, params).verdict == ALL_SIZES


def test_a_length_and_a_difference_of_two_are_told_apart_with_something_small_added():
    made = sorted([*OWN, *(abs(a - b) for a, b in itertools.combinations(OWN, 2))])
    assert all(b - a > 2 * 2 for a, b in itertools.pairwise(made))
    assert all(all(length % d for d in range(2, length)) for length in OWN)


DEFINITIONS = [
    ("causal", "j - size(j) <= i - size(i)", "j - size(j) <= i - size(i) + 1"),
    ("causal", "j - size(j) <= i - size(i)", "j <= i"),
    ("keep", "keep[i,j] == 1", "keep[i,j] == 0"),
    ("keep", "[keep[i,m] == 1] * ", ""),
    ("both", "[keep[i,j] == 1] * ", ""),
]


@pytest.mark.parametrize(("mask", "old", "new"), DEFINITIONS)
def test_attention_is_refused_for_another_definition(mask, old, new):
    assert old in ATTENTION.definition_text(((2, 3), (4, 3), (4, 2)), dict(zip(ATTENTION.param_names, MASKS[mask],
                                                                              strict=True)))  # fmt: skip
    assert attention(with_definition(ATTENTION, old, new), MASKS[mask]).verdict != ALL_SIZES


ENTROPY_MUTANTS = {
    "sign": lambda d, g, x, t: -d,
    "twice": lambda d, g, x, t: 2 * d,
    "mean of all rows": lambda d, g, x, t: d / len(t),
    "one too many": lambda d, g, x, t: d + (t == 1)[:, None],
    "rows of one class silent": lambda d, g, x, t: np.where((t == 0)[:, None], 0.0, d),
    "only the targets": lambda d, g, x, t: np.where(np.arange(x.shape[-1]) == t[:, None], d, 0.0),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("mutant", ENTROPY_MUTANTS)
def test_wrong_rules_of_cross_entropy_are_refused(mutant, loss):
    def rule(g, y, saved, x, targets, *rest):
        (d,) = ENTROPY.vjps(g, y, saved, x, targets, *rest)
        return (ENTROPY_MUTANTS[mutant](d, g, x, targets),)

    assert entropy(clone(ENTROPY, rule), LOSSES[loss]).verdict == WRONG
