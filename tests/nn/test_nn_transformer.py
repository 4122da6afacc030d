"""Norms, blocks and the decoder: by formula, by their parts, and the choice of the next word."""

from __future__ import annotations

import numpy as np
import pytest
from support import close

import tinyattn as ta
from tinyattn import nn
from tinyattn.nn.gpt import choose


def small(**options) -> nn.GPT:
    return nn.GPT(words=7, d=8, heads=2, layers=2, length=6, **{"rng": 0, **options})


def test_layer_norm_and_rms_norm_by_their_formulas(rng) -> None:
    x, gain, bias = rng.normal(size=(2, 3, 5)), rng.normal(size=5), rng.normal(size=5)
    layer, rms = nn.LayerNorm(5, eps=0.1), nn.RMSNorm(5, eps=0.1)
    layer.gain.assign(gain), layer.bias.assign(bias), rms.gain.assign(gain)
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    close(layer(x), (x - mean) / np.sqrt(var + 0.1) * gain + bias)
    close(rms(x), x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.1) * gain)


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_block_is_its_parts(norm: str, kind: str, rng) -> None:
    x, b = rng.normal(size=(3, 4)), nn.TransformerBlock(4, 2, 5, norm=norm, norm_kind=kind, rng=1)
    if norm == "pre":
        middle = x + b.attention(b.norm1(x)).data
        expected = middle + b.mlp(b.norm2(middle)).data
    else:
        middle = b.norm1(x + b.attention(x).data).data
        expected = b.norm2(middle + b.mlp(middle).data).data
    close(b(x), expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("options", [
    {}, {"norm": "post", "activation": "gelu"}, {"norm_kind": "rms", "position": nn.RotaryPosition(2), "bias": False},
    {"score": "additive"}, {"normalise": "relu"}, {"normalise": "linear", "activation": "silu"},
], ids=lambda options: ", ".join(options) or "usual")
def test_gradients_of_a_block_agree_with_differences_its_formula_and_exactly(options: dict, rng) -> None:
    block, x = nn.TransformerBlock(4, 2, 3, rng=1, **options), ta.tensor(rng.normal(size=(3, 4)), requires_grad=True)
    c = rng.normal(size=(3, 4))
    loss = ta.sum(block(x, causal=True) * c)
    report = ta.compare(loss, wrt=[x, *block.parameters()], methods=("autograd", "formula", "difference"))
    assert report and set(report.found) == {"autograd", "formula", "difference"}, str(report)
    checked = ta.check_gradients(block, x.data, order=1)
    assert checked and "exact check: equal" in str(checked), str(checked)


def test_every_parameter_of_a_model_gets_a_gradient(rng) -> None:
    for position in ("learned", "sinusoidal", "rotary", "distance"):
        for tied in (True, False):
            model = small(position=position, tied=tied)
            model.loss([[1, 2, 3, 4, 5, 6]]).backward()
            assert all(p.grad is not None and p.grad.any() for name, p in model.named_parameters() if "b_k" not in name)


def test_parameter_counts_of_a_model_by_formula() -> None:
    words, d, layers, length, hidden = 7, 8, 2, 6, 20
    block = 4 * d * d + 4 * d + 2 * d * hidden + hidden + d + 4 * d
    model = small(hidden=hidden)
    assert sum(p.size for p in model.parameters()) == words * d + length * d + layers * block + 2 * d
    assert model.summary().splitlines()[-1].split() == ["total", str(words * d + length * d + layers * block + 2 * d)]
    assert sum(p.size for p in small(hidden=hidden, tied=False).parameters()) == 2 * words * d + length * d + (
        layers * block + 2 * d
    )


@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rotary", "distance"])
def test_the_cached_decoder_equals_the_whole_one(position: str, rng) -> None:
    model, ids = small(position=position), rng.integers(0, 7, size=6)
    caches, found = model.caches(), []
    with ta.no_grad():
        for start, end in ((0, 3), (3, 4), (4, 6)):
            found.append(model(ids[start:end], caches=caches).data)
    close(np.concatenate(found), model(ids), rtol=1e-12, atol=1e-13)


def test_scores_after_a_prefix_do_not_depend_on_what_follows(rng) -> None:
    model, ids = small(), rng.integers(0, 7, size=6)
    other = np.where(np.arange(6) < 4, ids, (ids + 1) % 7)
    assert np.array_equal(model(ids).data[:4], model(other).data[:4])


def by_hand(model: nn.GPT, ids: list[int], steps: int) -> list[int]:
    """Greedy, without a cache."""
    for _ in range(steps):
        ids = [*ids, int(model(ids[-model.length :]).data[-1].argmax())]
    return ids


def test_greedy_generation_is_the_likeliest_word_each_time_also_beyond_the_length() -> None:
    model = small()
    assert model.generate([3], 12, temperature=0).tolist() == by_hand(model, [3], 12)
    assert model.generate(np.arange(7), 3, temperature=0).tolist() == by_hand(model, list(range(7)), 3)


def test_generation_is_seeded_ends_at_a_mark_and_leaves_the_mode_alone() -> None:
    model = small(dropout=0.5)
    one = model.generate([1], 20, rng=4)
    assert one.tolist() == model.generate([1], 20, rng=4).tolist() != model.generate([1], 20, rng=5).tolist()
    assert model.training and all(part.training for _, part in model.named_modules())
    mark = int(one[5])
    ended = model.generate([1], 20, end=mark, rng=4)
    assert ended.tolist() == one[: one[1:].tolist().index(mark) + 2].tolist()


def test_temperature_and_top_k_shape_the_chances(rng) -> None:
    scores = np.array([2.0, 1.0, 0.0, 2.0])
    drawn = np.bincount([choose(scores, 1.0, None, rng) for _ in range(20_000)], minlength=4) / 20_000
    np.testing.assert_allclose(drawn, np.exp(scores) / np.exp(scores).sum(), atol=0.02)
    cold = np.bincount([choose(scores, 0.5, 3, rng) for _ in range(20_000)], minlength=4) / 20_000
    kept = np.exp(2 * np.array([2.0, 1.0, -np.inf, 2.0]))
    np.testing.assert_allclose(cold, kept / kept.sum(), atol=0.02)
    assert {choose(np.zeros(5), 1.0, 2, rng) for _ in range(100)} == {0, 1}


def test_one_vector_for_a_sequence_does_not_read_padding(rng) -> None:
    x = rng.normal(size=(2, 3, 4))
    x[0, 2] = np.nan
    keep = np.array([[True, True, False], [False, False, False]])
    leaf = ta.tensor(x, requires_grad=True)
    pooled = nn.mean_over_words(leaf, keep)
    close(pooled, np.stack([x[0, :2].mean(0), np.zeros(4)]))
    ta.sum(pooled).backward()
    assert np.isfinite(leaf.grad).all() and not leaf.grad[1].any()
    close(nn.mean_over_words(x[1]), x[1].mean(0))


def test_padding_of_an_encoder_changes_no_word(rng) -> None:
    encoder, x = nn.TransformerEncoder(2, 4, 2, norm="post", rng=0), rng.normal(size=(2, 5, 4))
    words = np.array([[True] * 3 + [False] * 2, [True] * 5])
    y = encoder(x, keep=nn.masks.padding(words)).data
    close(y[0, :3], encoder(x[0, :3]), rtol=1e-12, atol=1e-13)
    close(y[1], encoder(x[1]), rtol=1e-12, atol=1e-13)
    assert encoder.last_norm is None and nn.TransformerEncoder(1, 4, 2, rng=0).last_norm is not None


def test_rotary_scores_depend_on_the_distance_only(rng) -> None:
    rotary, q, k = nn.RotaryPosition(6), rng.normal(size=(1, 6)), rng.normal(size=(1, 6))
    scores = [float((rotary(q, i) @ rotary(k, i + 3).mT).data.item()) for i in (0, 1, 17)]
    assert scores == pytest.approx([scores[0]] * 3)
    assert np.linalg.norm(rotary(q, 5).data) == pytest.approx(np.linalg.norm(q))


def test_positions_after_others_are_the_later_rows(rng) -> None:
    x = rng.normal(size=(5, 4))
    for position in (nn.SinusoidalPosition(4), nn.LearnedPosition(5, 4, rng=0), nn.RotaryPosition(4)):
        close(position(x[3:], 3), position(x).data[3:], rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: small()(np.zeros(7, int)), "at most 6 words"),
    (lambda: small()([7]), "7"),
    (lambda: small(position="none"), "position='none'"),
    (lambda: small().generate([], 3), "at least one word"),
    (lambda: small().generate([1], 0), "steps=0"),
    (lambda: small().generate([1], 1, temperature=-1), "temperature=-1"),
    (lambda: small().generate([1], 1, top_k=0), "top_k=0"),
    (lambda: nn.TransformerBlock(4, 2, norm="middle"), "'pre' or 'post'"),
    (lambda: nn.TransformerBlock(4, 2, norm_kind="batch"), "'layer' or 'rms'"),
    (lambda: nn.TransformerEncoder(0, 4, 2), "layers=0"),
    (lambda: nn.mean_over_words([1.0]), "row per word"),
])
def test_what_does_not_fit_is_refused_in_words(call, words: str) -> None:
    with pytest.raises(ta.TinyattnError, match=words):
        call()
