"""Every kind of attention equals the lecture's loop over single vectors, in value and in every gradient."""

from __future__ import annotations

import numpy as np
import pytest
from nn import reference
from support import close

import tinyattn as ta
from tinyattn import nn

N, M, D, D_V = 3, 4, 4, 2


def agree(ours, theirs, leaves, rng: np.random.Generator) -> None:
    """Equal values, and equal gradients of a random sum of them to every leaf."""
    close(ours, theirs, rtol=1e-12, atol=1e-13)
    c = rng.normal(size=ours.shape)
    for got, want in zip(ta.grad(ta.sum(ours * c), leaves), ta.grad(ta.sum(theirs * c), leaves), strict=True):
        close(got, want, rtol=1e-11, atol=1e-12)


def rows(rng: np.random.Generator, *shape: int) -> ta.Tensor:
    return ta.tensor(rng.normal(size=shape), requires_grad=True)


def qkv(rng: np.random.Generator) -> list[ta.Tensor]:
    return [rows(rng, N, D), rows(rng, M, D), rows(rng, M, D_V)]


PARTS = [("dot", "softmax"), ("scaled_dot", "softmax"), ("kernel", "softmax"), ("dot", "relu"), ("dot", "relu_raw"),
         ("scaled_dot", "relu"), ("kernel", "linear")]
MASKS = {
    "all": lambda rng: {},
    "keep": lambda rng: {"keep": reference.random_mask(rng, N, M)},
    "causal": lambda rng: {"causal": True},
    "padding": lambda rng: {"keep": nn.masks.padding([True, True, True, False])},
    "bias": lambda rng: {"bias": rng.normal(size=(N, M))},
    "keep, bias, causal": lambda rng: {
        "keep": reference.random_mask(rng, N, M), "bias": rng.normal(size=(N, M)), "causal": True
    },
}


def seen_in_loop(options: dict) -> list[list[bool]]:
    keep = np.broadcast_to(options.get("keep", True), (N, M))
    return (keep & np.array(reference.see_up_to(N, M))).tolist() if options.get("causal") else keep.tolist()


@pytest.mark.parametrize(("score", "normalise", "masking"), [
    (*parts, masking) for parts in PARTS for masking in MASKS if "linear" not in parts or "bias" not in masking
])
def test_a_kind_of_attention_is_the_loop(score: str, normalise: str, masking: str, rng) -> None:
    options, leaves = MASKS[masking](rng), qkv(rng)
    ours = nn.attention(*leaves, score=score, normalise=normalise, **options)
    theirs = reference.attention(
        *map(reference.vectors, leaves), score=getattr(reference, score), weigh=getattr(reference, normalise),
        keep=seen_in_loop(options), bias=options.get("bias"),
    )
    agree(ours, theirs, leaves, rng)


@pytest.mark.parametrize("normalise", ["softmax", "relu", "relu_raw"])
@pytest.mark.parametrize("kind", ["additive", "general"])
def test_scores_with_weights_are_the_loop(kind: str, normalise: str, rng) -> None:
    q, k, v = rows(rng, N, 3), rows(rng, M, D), rows(rng, M, D_V)
    keep = reference.random_mask(rng, N, M)
    score = nn.AdditiveScore(3, D, 5, rng=1) if kind == "additive" else nn.GeneralScore(3, D, rng=1)
    weights = score.parameters()
    ours = nn.attention(q, k, v, score=score, normalise=normalise, keep=keep)
    theirs = reference.attention(
        *map(reference.vectors, (q, k, v)), score=lambda a, b: getattr(reference, kind)(a, b, *weights),
        weigh=getattr(reference, normalise), keep=keep,
    )
    agree(ours, theirs, [q, k, v, *weights], rng)


@pytest.mark.parametrize("score", ["scaled_dot", "dot", "additive", "general"])
def test_the_layer_is_the_lectures_seven_steps(score: str, rng) -> None:
    layer, a = nn.SelfAttention(4, 3, 2, score=score, rng=1), rows(rng, 4, 4)
    weights = [] if isinstance(layer.score, str) else layer.score.parameters()
    theirs = reference.self_attention(
        reference.vectors(a), layer.W_q, layer.W_k, layer.W_v,
        score=lambda q, k: getattr(reference, score)(q, k, *weights),
    )
    agree(layer(a), theirs, [a, *layer.parameters()], rng)


def test_a_local_window_is_the_loop(rng) -> None:
    q, k, v = (rows(rng, 5, 3) for _ in range(3))
    ours = nn.attention(q, k, v, keep=nn.masks.window(5, 1))
    agree(ours, reference.attention(*map(reference.vectors, (q, k, v)), keep=reference.within(5, 1)), [q, k, v], rng)


@pytest.mark.parametrize("cross", [False, True])
def test_several_heads_are_one_after_the_other(cross: bool, rng) -> None:
    sizes = {"d_keys": 3, "d_values": 6} if cross else {}
    layer = nn.MultiHeadAttention(4, 2, d_k=3, d_v=2, rng=1, **sizes)
    x = rows(rng, N, 4)
    keys, values = (rows(rng, M, 3), rows(rng, M, 6)) if cross else (x, x)
    keep = reference.random_mask(rng, N, keys.shape[0])
    ours = layer(x, keys, values, keep=keep) if cross else layer(x, keep=keep)
    theirs = reference.multi_head(
        *map(reference.vectors, (x, keys, values)), layer.W_q, layer.W_k, layer.W_v, layer.W_o, 2, keep=keep
    )
    agree(ours, theirs, list(dict.fromkeys([x, keys, values, *layer.parameters()])), rng)


def test_rotary_positions_inside_the_heads_are_the_loop(rng) -> None:
    layer = nn.MultiHeadAttention(4, 1, position=nn.RotaryPosition(4), rng=1)
    x = rows(rng, 5, 4)
    q, k, v = ([b @ W for b in reference.vectors(x)] for W in (layer.W_q, layer.W_k, layer.W_v))
    turned = [[reference.rotated(b, i) for i, b in enumerate(each)] for each in (q, k)]
    agree(layer(x), reference.attention(*turned, v) @ layer.W_o, [x, *layer.parameters()], rng)


@pytest.mark.parametrize("reach", [None, 2])
def test_a_distance_bias_is_the_loop(reach, rng) -> None:
    position = nn.DistanceBias(1, reach)
    if position.table is not None:
        position.table.assign(rng.normal(size=(1, 5)))
    layer, x = nn.MultiHeadAttention(4, 1, position=position, rng=1), rows(rng, 5, 4)
    number = (lambda far: -abs(far) / 256) if reach is None else lambda far: position.table[0, max(-2, min(far, 2)) + 2]
    bias = [[number(j - i) for j in range(5)] for i in range(5)]
    theirs = reference.self_attention(reference.vectors(x), layer.W_q, layer.W_k, layer.W_v, bias=bias) @ layer.W_o
    agree(layer(x), theirs, [x, *layer.parameters()], rng)


def test_fastformer_is_the_loop(rng) -> None:
    layer, x = nn.Fastformer(4, 3, rng=1), rows(rng, 5, 4)
    agree(layer(x), reference.fastformer(reference.vectors(x), *layer.parameters()), [x, *layer.parameters()], rng)


@pytest.mark.parametrize(("d_k", "heads"), [(None, 2), (None, 4), (3, 2)])
def test_fastformer_in_several_heads_is_the_loop(d_k, heads: int, rng) -> None:
    layer, x = nn.Fastformer(4, d_k, heads=heads, rng=1), rows(rng, 5, 4)
    slow = reference.fastformer_in_heads(reference.vectors(x), *layer.parameters())
    agree(layer(x), slow, [x, *layer.parameters()], rng)


def test_fastformer_in_several_heads_does_not_read_padding_and_takes_batches(rng) -> None:
    layer, x = nn.Fastformer(4, heads=2, rng=1), rng.normal(size=(2, 5, 4))
    padded = x.copy()
    padded[1, 3:] = np.nan
    words = np.array([[True] * 5, [True] * 3 + [False] * 2])
    steps = layer.steps(padded, keep=words)
    assert steps.alpha.shape == (2, 2, 5) and (steps.alpha.data[1, :, 3:] == 0).all()
    assert np.allclose(steps.output.data[0], layer(x[0]).data)
    assert np.allclose(steps.output.data[1, :3], layer(x[1, :3]).data)
    assert repr(layer) == "Fastformer(d=4, d_k=2, heads=2)"
    with pytest.raises(ta.ShapeError, match="Fastformer: width 4 cannot be shared equally among 3 heads"):
        nn.Fastformer(4, heads=3)


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_is_the_loop(causal: bool, rng) -> None:
    layer, x = nn.LinearAttention(4, 3, 2, rng=1), rows(rng, 5, 4)
    theirs = reference.self_attention(
        reference.vectors(x), *layer.parameters(), score=reference.kernel, weigh=reference.linear,
        keep=reference.see_up_to(5, 5) if causal else None,
    )
    agree(layer(x, causal=causal), theirs, [x, *layer.parameters()], rng)


def test_vectors_in_columns_are_the_transpose_of_rows(rng) -> None:
    layer, x = nn.SelfAttention(4, 3, 2, rng=1), rows(rng, 5, 4)
    columns = reference.in_columns(x.mT, *(W.mT for W in layer.parameters()))
    agree(layer(x), columns.mT, [x, *layer.parameters()], rng)


@pytest.mark.parametrize("layer", [
    nn.SelfAttention(4, rng=1), nn.SelfAttention(4, score="additive", normalise="relu", rng=1),
    nn.MultiHeadAttention(4, 2, rng=1), nn.Fastformer(4, rng=1), nn.LinearAttention(4, rng=1),
], ids=lambda layer: repr(layer).split("\n")[0])
def test_a_batch_is_its_sentences_one_by_one(layer, rng) -> None:
    x, c = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4))
    close(layer(x), np.stack([layer(sentence).data for sentence in x]), rtol=1e-13, atol=1e-14)
    whole = ta.grad(ta.sum(layer(x) * c), layer.parameters())
    parts = [ta.grad(ta.sum(layer(a) * b), layer.parameters()) for a, b in zip(x, c, strict=True)]
    for got, *each in zip(whole, *parts, strict=True):
        close(got, sum(part.data for part in each), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("layer", [nn.MultiHeadAttention(4, 2, bias=True, rng=1),
                                   nn.MultiHeadAttention(4, 2, position=nn.RotaryPosition(2), rng=1),
                                   nn.MultiHeadAttention(4, 2, position=nn.DistanceBias(2), rng=1)],
                         ids=["plain", "rotary", "distance"])
def test_the_cache_equals_full_computation(layer, rng) -> None:
    x, cache, found = rng.normal(size=(2, 6, 4)), nn.KeyValueCache(), []
    with ta.no_grad():
        for start, end in ((0, 2), (2, 3), (3, 6)):
            found.append(layer(x[:, start:end], causal=True, cache=cache).data)
        close(np.concatenate(found, axis=1), layer(x, causal=True), rtol=1e-13, atol=1e-14)
