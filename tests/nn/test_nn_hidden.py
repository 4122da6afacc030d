"""What is hidden is not read, whatever it holds: in no value and in no gradient; and nothing to see is zeros."""

from __future__ import annotations

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn

BROKEN = [np.nan, np.inf, -np.inf]
WAYS = {
    "usual": {},
    "dot": {"score": "dot"},
    "kernel": {"score": "kernel"},
    "additive": {"score": nn.AdditiveScore(4, 4, rng=0)},
    "general": {"score": nn.GeneralScore(4, 4, rng=0)},
    "relu": {"normalise": "relu"},
    "raw relu": {"normalise": "relu_raw"},
    "linear": {"normalise": "linear"},
}
LAYERS = {
    "self": nn.SelfAttention(4, rng=1),
    "additive": nn.SelfAttention(4, score="additive", rng=1),
    "relu": nn.SelfAttention(4, normalise="relu", rng=1),
    "heads": nn.MultiHeadAttention(4, 2, bias=True, rng=1),
    "fused": nn.MultiHeadAttention(4, 2, bias=True, fused=True, rng=1),
    "rotary": nn.MultiHeadAttention(4, 2, position=nn.RotaryPosition(2), rng=1),
    "distance": nn.MultiHeadAttention(4, 2, position=nn.DistanceBias(2, 3), rng=1),
    "Fastformer": nn.Fastformer(4, rng=1),
    "linear": nn.LinearAttention(4, rng=1),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_key_hidden_from_every_query_is_not_read(way: dict, rng) -> None:
    q, rows, c = rng.normal(size=(3, 4)), rng.normal(size=(4, 4)), rng.normal(size=(3, 4))
    keep, clean = np.array([[True, False, True, True]]), None
    for filler in (0.0, *BROKEN):
        rows[1] = filler
        leaves = [ta.tensor(x, requires_grad=True) for x in (q, rows, -rows)]
        output = nn.attention(*leaves, keep=keep, **way)
        found = [output.data, *(g.data for g in ta.grad(ta.sum(output * c), leaves))]
        assert not found[2][1].any() and not found[3][1].any()
        clean = clean or found
        assert all(np.array_equal(a, b) for a, b in zip(clean, found, strict=True))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_query_that_no_loss_asks_about_reaches_no_other_gradient(way: dict, rng) -> None:
    q, k, v, c = (rng.normal(size=(4, 4)) for _ in range(4))
    c[2], clean = 0.0, None
    for filler in (0.0, *BROKEN):
        q[2] = filler
        leaves = [ta.tensor(x, requires_grad=True) for x in (q, k, v)]
        output = nn.attention(*leaves, **way)
        assert np.isnan(output.data[2]).all() == (filler != 0)
        loss = ta.sum(ta.where(c != 0, output, 0.0) * c)
        found = [np.delete(output.data, 2, 0), *(g.data for g in ta.grad(loss, leaves))]
        clean = clean or found
        assert all(np.array_equal(a, b) for a, b in zip(clean, found, strict=True))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_nan_that_one_query_sees_spreads_to_that_query_only(way: dict, rng) -> None:
    q, k, v = rng.normal(size=(3, 4, 4))
    whole = nn.attention(q, k, v, causal=True, **way).data
    k[3], v[3] = np.nan, np.inf
    found = nn.attention(q, k, v, causal=True, **way).data
    assert np.array_equal(found[:3], whole[:3]) and np.isnan(found[3]).all()


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_padding_of_a_layer_may_hold_anything(layer: nn.Module, rng) -> None:
    """Neither the outputs of words nor the gradient of any weight depend on what a padding row holds."""
    words, c, clean = np.array([True, True, False, True]), rng.normal(size=(4, 4)), None
    wide = words if isinstance(layer, (nn.Fastformer, nn.LinearAttention)) else nn.masks.padding(words)
    x = rng.normal(size=(4, 4))
    for filler in (0.0, 5.0, *BROKEN):
        x[2] = filler
        output = layer(x, keep=wide)
        loss = ta.sum(output[words] * c[words])
        found = [output.data[words], *(g.data for g in ta.grad(loss, layer.parameters()))]
        clean = clean or found
        assert all(np.allclose(a, b, rtol=1e-14, atol=1e-15) for a, b in zip(clean, found, strict=True))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("hide", ["keep", "no keys", "bias"])
def test_a_query_with_nothing_to_see_gets_zeros_in_value_and_gradient(hide: str, way: dict, rng) -> None:
    n, m = 3, 0 if hide == "no keys" else 4
    leaves = [ta.tensor(rng.normal(size=(rows, 4)), requires_grad=True) for rows in (n, m, m)]
    options = {"keep": np.zeros((n, m), bool)}
    if hide == "bias":
        if way.get("normalise") == "linear":
            return
        options = {"bias": np.full((n, m), -np.inf)}
    output = nn.attention(*leaves, **way, **options)
    assert not output.data.any() and output.shape == (n, 4)
    assert not any(g.data.any() for g in ta.grad(ta.sum(output), leaves))


def test_a_row_with_nothing_to_see_leaves_the_others_as_they_are(rng) -> None:
    q, k, v = rng.normal(size=(3, 4, 4))
    keep = rng.random((4, 4)) < 0.7
    keep[:, 0] = True
    whole = nn.attention(q, k, v, keep=keep).data
    keep[2] = False
    some = nn.attention(q, k, v, keep=keep).data
    assert np.array_equal(np.delete(some, 2, 0), np.delete(whole, 2, 0)) and not some[2].any()


def test_a_bias_of_minus_infinity_hides_as_keep_does(rng) -> None:
    q, k, v = (ta.tensor(rng.normal(size=(3, 4)), requires_grad=True) for _ in range(3))
    keep, c = np.array([[True, False, True]] * 3), rng.normal(size=(3, 4))
    one = nn.attention(q, k, v, bias=np.where(keep, 0.0, -np.inf))
    other = nn.attention(q, k, v, keep=keep)
    assert (one == other).all()
    for a, b in zip(ta.grad(ta.sum(one * c), [q, k, v]), ta.grad(ta.sum(other * c), [q, k, v]), strict=True):
        assert np.array_equal(a.data, b.data)


def test_gradients_to_a_masked_key_are_exactly_zero(rng) -> None:
    layer = nn.MultiHeadAttention(4, 2, rng=0)
    x, keys = (ta.tensor(rng.normal(size=(2, 3, 4)), requires_grad=True) for _ in range(2))
    keep = np.ones((2, 1, 3), bool)
    keep[0, 0, 1] = False
    ta.sum(layer(x, keys, keep=keep) * rng.normal(size=(2, 3, 4))).backward()
    assert not keys.grad[0, 1].any() and keys.grad[1, 1].all()


def test_relu_divides_by_the_keys_that_are_seen_so_padding_changes_nothing(rng) -> None:
    q, k, v = rng.normal(size=(3, 4, 4))
    short = nn.attention(q, k[:2], v[:2], normalise="relu")
    padded = nn.attention(q, k, v, normalise="relu", keep=np.array([True, True, False, False]))
    np.testing.assert_allclose(padded.data, short.data, rtol=1e-15, atol=1e-16)


def test_without_the_rows_kept_apart_a_nan_would_spread(rng) -> None:
    """The plain product does what these tests forbid, so they would notice."""
    weights, v = np.eye(3)[:2], ta.tensor([[1.0], [2.0], [np.nan]])
    assert np.isnan((weights @ v).data).all()
