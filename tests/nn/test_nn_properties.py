"""Properties that hold whatever the numbers are; and gradients, formulas and pictures of every kind of attention."""

from __future__ import annotations

import numpy as np
import pytest
from support import close

import tinyattn as ta
from tinyattn import nn

LAYERS = {
    "self": lambda: nn.SelfAttention(4, rng=1),
    "dot": lambda: nn.SelfAttention(4, 3, 2, score="dot", rng=1),
    "additive": lambda: nn.SelfAttention(4, score="additive", rng=1),
    "general": lambda: nn.SelfAttention(4, score="general", rng=1),
    "relu": lambda: nn.SelfAttention(4, normalise="relu", rng=1),
    "raw relu": lambda: nn.SelfAttention(4, normalise="relu_raw", rng=1),
    "linear": lambda: nn.SelfAttention(4, normalise="linear", rng=1),
    "heads": lambda: nn.MultiHeadAttention(4, 2, rng=1),
    "linear at linear cost": lambda: nn.LinearAttention(4, rng=1),
    "Fastformer": lambda: nn.Fastformer(4, rng=1),
    "Fastformer, two heads": lambda: nn.Fastformer(4, heads=2, rng=1),
}
every_layer = pytest.mark.parametrize("kind", LAYERS)


@every_layer
def test_another_order_of_words_gives_the_same_outputs_in_that_order(kind: str, rng) -> None:
    x, layer, order = rng.normal(size=(6, 4)), LAYERS[kind](), rng.permutation(6)
    close(layer(x[order]), layer(x).data[order], rtol=1e-12, atol=1e-14)


@every_layer
def test_equal_words_get_equal_outputs(kind: str, rng) -> None:
    me, saw, a = rng.normal(size=(3, 4))
    output = LAYERS[kind]()(np.array([me, saw, a, saw])).data
    assert np.array_equal(output[1], output[3]) and not np.array_equal(output[1], output[2])


@pytest.mark.parametrize("kind", [kind for kind in LAYERS if not kind.startswith("Fastformer")])
def test_a_causal_output_does_not_depend_on_later_words(kind: str, rng) -> None:
    x, layer = rng.normal(size=(5, 4)), LAYERS[kind]()
    other = x.copy()
    other[3:] = 1e3 * rng.normal(size=(2, 4))
    assert np.array_equal(layer(x, causal=True).data[:3], layer(other, causal=True).data[:3])


def test_heads_in_another_order_with_the_blocks_of_W_o_change_nothing(rng) -> None:
    layer, x = nn.MultiHeadAttention(6, 3, bias=True, rng=1), rng.normal(size=(4, 6))
    for b in (layer.b_q, layer.b_k, layer.b_v):
        b.assign(rng.normal(size=6))
    before = layer(x).data
    columns = np.arange(6).reshape(3, 2)[[2, 0, 1]].ravel()
    for W, b in ((layer.W_q, layer.b_q), (layer.W_k, layer.b_k), (layer.W_v, layer.b_v)):
        W.assign(W.data[:, columns])
        b.assign(b.data[columns])
    layer.W_o.assign(layer.W_o.data[columns])
    close(layer(x), before, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("d", "heads", "bias"), [(8, 1, False), (8, 4, False), (12, 3, True)])
def test_the_number_of_heads_changes_no_number_of_parameters(d: int, heads: int, bias: bool) -> None:
    layer = nn.MultiHeadAttention(d, heads, bias=bias, rng=0)
    assert sum(p.size for p in layer.parameters()) == 4 * d * d + (4 * d if bias else 0)


def test_parameter_counts_by_formula() -> None:
    def count(layer: nn.Module) -> int:
        return sum(p.size for p in layer.parameters())

    d, d_k, d_v, h = 8, 3, 5, 2
    assert count(nn.SelfAttention(d, d_k, d_v, rng=0)) == 2 * d * d_k + d * d_v
    assert count(nn.MultiHeadAttention(d, h, d_k=d_k, d_v=d_v, d_keys=6, d_values=7, rng=0)) == (
        d * h * d_k + 6 * h * d_k + 7 * h * d_v + h * d_v * d
    )
    assert count(nn.AdditiveScore(d, d_k, 4, rng=0)) == d * 4 + d_k * 4 + 4
    assert count(nn.Fastformer(d, d_k, rng=0)) == 3 * d * d_k + 2 * d_k + d_k * d_k
    assert count(nn.Fastformer(d, d_k, heads=2, rng=0)) == 3 * d * 2 * d_k + 2 * 2 * d_k + (2 * d_k) ** 2
    assert count(nn.MLP(d, 9, rng=0)) == d * 9 + 9 + 9 * d + d


def test_the_causal_mask_and_an_equal_keep_are_the_same(rng) -> None:
    q, k, v = rng.normal(size=(3, 4, 4))
    assert (nn.attention(q[2:], k, v, causal=True) == nn.attention(q[2:], k, v, keep=nn.masks.causal(2, 4))).all()


def test_a_mask_for_each_head_and_one_for_all(rng) -> None:
    layer, x = nn.MultiHeadAttention(4, 2, rng=0), rng.normal(size=(3, 5, 4))
    keep = rng.random((3, 5, 5)) < 0.7
    for_each = np.broadcast_to(keep[:, None], (3, 2, 5, 5))
    assert (layer(x, keep=keep) == layer(x, keep=for_each)).all()
    bias = rng.normal(size=(3, 5, 5))
    assert (layer(x, bias=bias) == layer(x, bias=np.broadcast_to(bias[:, None], (3, 2, 5, 5)))).all()
    close(layer(x, keep=keep).data[1], layer(x[1], keep=keep[1]), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    "options", [{}, {"causal": True}, {"keep": np.tri(5, dtype=bool)[:, ::-1]}], ids=["all", "causal", "keep"]
)
def test_one_op_and_its_steps_agree_in_value_and_gradient(options: dict, rng) -> None:
    one, other = (nn.MultiHeadAttention(4, 2, fused=fused, rng=3) for fused in (True, False))
    x, c = rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 4))
    close(one(x, **options), other(x, **options), rtol=1e-13, atol=1e-14)
    for layer in (one, other):
        ta.sum(layer(x, **options) * c).backward()
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        close(a.grad, b.grad, rtol=1e-12, atol=1e-13)
    assert one.steps(x).weights.shape == (2, 2, 5, 5)


def test_float32_stays_float32_through_a_model(rng) -> None:
    for position in ("learned", "sinusoidal", "rotary", "distance"):
        model = nn.GPT(7, 8, 2, 1, 5, position=position, fused=position != "learned", dropout=0.1, rng=0)
        loss = model.astype(np.float32).loss([[1, 2, 3, 4]])
        loss.backward()
        assert {loss.dtype, *(p.grad.dtype for p in model.parameters())} == {np.dtype(np.float32)}
    with pytest.raises(ta.TinyattnError, match="float32 or float64"):
        model.astype(int)


def test_dropout_of_weights_acts_while_learning_only(rng) -> None:
    x, plain = rng.normal(size=(5, 4)), nn.MultiHeadAttention(4, 2, rng=3)
    layer = nn.MultiHeadAttention(4, 2, dropout=0.5, rng=3)
    assert (layer.eval()(x) == plain(x)).all()
    weights = layer.train().steps(x).weights.data
    assert 0.2 < (weights == 0).mean() < 0.8


def test_steps_of_several_heads_have_their_shapes(rng) -> None:
    layer = nn.MultiHeadAttention(6, 3, d_k=2, d_v=5, rng=0)
    steps = layer.steps(rng.normal(size=(2, 4, 6)), rng.normal(size=(2, 7, 6)))
    shapes = [part.shape for part in steps[:6]]
    assert shapes == [(2, 3, 4, 2), (2, 3, 7, 2), (2, 3, 7, 5), (2, 3, 4, 7), (2, 3, 4, 7), (2, 4, 6)]


def loss_of(kind: str, rng) -> tuple[ta.Tensor, list[ta.Tensor]]:
    layer, x = LAYERS[kind](), ta.tensor(rng.normal(size=(3, 4)), requires_grad=True, name="x")
    output = layer(x)
    return ta.sum(output * rng.normal(size=output.shape)), [x, *layer.parameters()]


@every_layer
def test_gradients_and_formulas_agree(kind: str, rng) -> None:
    loss, leaves = loss_of(kind, rng)
    report = ta.compare(loss, wrt=leaves, methods=("autograd", "formula", "difference"))
    assert report, str(report)
    assert set(report.found) == {"autograd", "formula", "difference"}, report.unavailable


@every_layer
def test_every_kind_can_be_drawn_with_its_steps_by_name(kind: str, rng) -> None:
    pytest.importorskip("graphviz")
    viz = pytest.importorskip("viz")
    loss, _ = loss_of(kind, rng)
    dot = viz.draw(loss).dot
    for name in ("q", "k", "v", "output") + (("alpha", "beta") if kind.startswith("Fastformer") else ()):
        assert name in dot


@pytest.mark.parametrize(("call", "words"), [
    (lambda x: nn.attention(x, x, x, score="scaled"), "'scaled' is not known.*'dot', 'scaled_dot', 'kernel'"),
    (lambda x: nn.attention(x, x, x, normalise="soft"), "'soft' is not known.*'softmax', 'relu'"),
    (lambda x: nn.SelfAttention(4, score="adition"), "'adition' is not known"),
    (lambda x: nn.attention(x, x, x, normalise="linear", score="dot"), "no score may be negative"),
    (lambda x: nn.attention(x, x, x, normalise="linear", bias=1.0), "with a bias"),
    (lambda x: nn.attention(x, x, x, keep=np.ones((2, 3), int)), "boolean"),
    (lambda x: nn.attention(x, x, x, keep=np.ones((2, 3), bool)), r"\(2, 3\).*\(\.\.\., 3, 3\)"),
    (lambda x: nn.AdditiveScore(3, 4, rng=0)(x, x), "AdditiveScore.*width 3"),
    (lambda x: nn.MultiHeadAttention(4, 3), "width 4 cannot be shared equally among 3 heads"),
    (lambda x: nn.MultiHeadAttention(4, 2, d_keys=5, rng=0)(x, x), "must have width 5"),
    (lambda x: nn.MultiHeadAttention(4, 0), "heads=0"),
    (lambda x: nn.MultiHeadAttention(4, 2, dropout=2.0), "dropout=2.0"),
    (lambda x: nn.split_heads(x, 3), "4.*cannot be cut into 3"),
    (lambda x: nn.Fastformer(4, rng=0)(x, keep=np.ones((3, 3), bool)), "no weights between two words"),
    (lambda x: nn.RotaryPosition(3), "odd"),
    (lambda x: nn.MLP(4, activation="swish"), "'swish' is not known"),
    (lambda x: nn.LearnedPosition(4, 4, rng=0)(x, before=2), "5 positions, but only 4"),
])
def test_what_does_not_fit_is_refused_in_words(call, words: str) -> None:
    with pytest.raises(ta.TinyattnError, match=f"(?s){words}"):
        call(np.ones((3, 4)))
