"""Layers and attention: numbers from independent hands, gradients against differences, names in the graph."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn


def differences(loss, leaf: ta.Tensor, h: float = 1e-5) -> np.ndarray:
    """The slope of a loss along every entry of a leaf, by central differences."""
    start, slopes = leaf.numpy(), np.zeros(leaf.shape)
    for place in np.ndindex(*leaf.shape):
        values = []
        for step in (h, -h):
            moved = start.copy()
            moved[place] += step
            leaf.assign(moved)
            values.append(float(loss()))
        slopes[place] = (values[0] - values[1]) / (2 * h)
    leaf.assign(start)
    return slopes


def rows(rng: np.random.Generator, *shape: int) -> ta.Tensor:
    return ta.tensor(rng.normal(size=shape), requires_grad=True)


KEEP = np.array([[True, True, False], [False, False, False], [True, False, True]])
CASES = {
    "linear": (lambda: nn.Linear(4, 2, rng=1), {}),
    "linear without bias": (lambda: nn.Linear(4, 2, bias=False, rng=1), {}),
    "attention": (lambda: nn.SelfAttention(4, 3, 2, rng=1), {}),
    "attention, causal": (lambda: nn.SelfAttention(4, rng=1), {"causal": True}),
    "attention, masked": (lambda: nn.SelfAttention(4, rng=1), {"keep": KEEP}),
    "sinusoidal position": (lambda: nn.SinusoidalPosition(4), {}),
    "learned position": (lambda: nn.LearnedPosition(5, 4, rng=1), {}),
}


@pytest.mark.parametrize("batch", [(), (2,)], ids=["one sentence", "two sentences"])
@pytest.mark.parametrize("case", CASES)
def test_gradients_agree_with_differences(case: str, batch: tuple, rng: np.random.Generator) -> None:
    make, options = CASES[case]
    layer, x = make(), rows(rng, *batch, 3, 4)
    c = rng.normal(size=layer(x, **options).shape)

    def loss() -> ta.Tensor:
        return ta.sum(layer(x, **options) * c)

    loss().backward()
    for leaf in [x, *layer.parameters()]:
        np.testing.assert_allclose(leaf.grad, differences(loss, leaf), rtol=1e-7, atol=1e-8)


def test_embedding_gradient_is_added_where_a_word_comes_twice(rng: np.random.Generator) -> None:
    layer, c = nn.Embedding(5, 2, rng=0), rng.normal(size=(3, 2))
    ta.sum(layer([3, 1, 3]) * c).backward()
    expected = np.zeros((5, 2))
    expected[3], expected[1] = c[0] + c[2], c[1]
    np.testing.assert_array_equal(layer.table.grad, expected)


@pytest.mark.parametrize("freeze", [True, False])
def test_vectors_from_elsewhere_stay_or_learn(freeze: bool) -> None:
    given = np.arange(6.0).reshape(3, 2)
    layer = nn.Embedding.from_pretrained(given, freeze=freeze)
    given[:] = 9.0
    assert layer([2, 0]).tolist() == [[4.0, 5.0], [0.0, 1.0]] and list(layer.state_dict()) == ["table"]
    assert len(layer.parameters()) == (not freeze)


def test_linear_by_hand() -> None:
    layer = nn.Linear(2, 1, rng=0)
    layer.W.assign([[2.0], [3.0]])
    layer.b.assign([1.0])
    assert layer([[10.0, 100.0]]).tolist() == [[321.0]]


def test_one_row_needs_no_batch() -> None:
    assert nn.Linear(2, 3, rng=0)([1.0, 2.0]).shape == (3,)


def one_query_at_a_time(x, W_q, W_k, W_v, keep=None) -> np.ndarray:
    """The lecture's loop over single vectors, in plain Python numbers."""
    result = []
    for i, a in enumerate(x):
        q = a @ W_q
        alphas = [q @ (b @ W_k) / math.sqrt(W_k.shape[1]) for b in x]
        powers = [math.exp(alpha) if keep is None or keep[i][j] else 0.0 for j, alpha in enumerate(alphas)]
        total = sum(powers) or 1.0
        result.append(sum(p / total * (b @ W_v) for p, b in zip(powers, x)))
    return np.array(result)


@pytest.mark.parametrize("keep", [None, KEEP])
def test_attention_is_the_lectures_loop_over_vectors(keep, rng: np.random.Generator) -> None:
    layer, x = nn.SelfAttention(4, 3, 2, rng=1), rng.normal(size=(3, 4))
    expected = one_query_at_a_time(x, layer.W_q.data, layer.W_k.data, layer.W_v.data, keep)
    np.testing.assert_allclose(layer(x, keep=keep).data, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    "options", [{}, {"causal": True}, {"keep": KEEP}, {"scale": 0.3}, {"keep": KEEP, "causal": True}]
)
def test_steps_and_the_fused_op_agree_in_value_and_gradient(options, rng: np.random.Generator) -> None:
    q, k, v = (rows(rng, 2, 3, 4) for _ in range(3))
    c = rng.normal(size=(2, 3, 4))
    one = ta.grad(ta.sum(nn.attention(q, k, v, **options) * c), [q, k, v])
    other = ta.grad(ta.sum(ta.scaled_dot_product_attention(q, k, v, **options) * c), [q, k, v])
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a.data, b.data, rtol=1e-12, atol=1e-14)


def test_steps_have_their_names_in_the_graph(rng: np.random.Generator) -> None:
    layer = nn.SelfAttention(4, 3, 2, rng=1)
    steps = layer.steps(ta.tensor(rng.normal(size=(5, 4)), name="x"))
    graph = ta.Graph.of(steps.output, variables={})
    expected = {
        "x": (5, 4), "W_q": (4, 3), "W_k": (4, 3), "W_v": (4, 2), "q": (5, 3), "k": (5, 3), "v": (5, 2),
        "scores": (5, 5), "weights": (5, 5), "output": (5, 2),
    }
    assert {name: graph.find(name).shape for name in expected} == expected
    assert {node.scope for node in graph.nodes if node.kind == "op"} == {("SelfAttention",)}
    for name in ("q", "k", "v", "scores", "weights", "output"):
        np.testing.assert_array_equal(graph.find(name).value, getattr(steps, name).data)


def test_the_scope_is_the_attribute_of_the_model(rng: np.random.Generator) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.head = nn.SelfAttention(2, rng=0)

        def forward(self, x: ta.Tensor) -> ta.Tensor:
            return self.head(x)

    y = Model()(rng.normal(size=(3, 2)))
    assert ta.Graph.of(y).find("weights").scope == ("Model", "head")


def test_equal_words_get_equal_outputs_and_positions_part_them(rng: np.random.Generator) -> None:
    me, saw, a = rng.normal(size=(3, 4))
    x, layer = np.array([me, saw, a, saw]), nn.SelfAttention(4, rng=2)
    steps = layer.steps(x)
    assert (steps.output[1] == steps.output[3]).all() and (steps.weights[:, 1] == steps.weights[:, 3]).all()
    moved = layer.steps(nn.SinusoidalPosition(4)(x))
    assert not (moved.output[1] == moved.output[3]).any()


def test_another_order_of_words_gives_the_same_outputs_in_that_order(rng: np.random.Generator) -> None:
    x, layer, order = rng.normal(size=(6, 4)), nn.SelfAttention(4, rng=2), rng.permutation(6)
    np.testing.assert_allclose(layer(x[order]).data, layer(x).data[order], rtol=1e-13, atol=1e-15)


def test_a_causal_output_does_not_depend_on_later_words(rng: np.random.Generator) -> None:
    x, layer = rng.normal(size=(5, 4)), nn.SelfAttention(4, rng=2)
    other = x.copy()
    other[3:] = rng.normal(size=(2, 4))
    assert (layer(x, causal=True)[:3] == layer(other, causal=True)[:3]).all()


def test_a_word_that_may_look_at_nothing_gets_zeros(rng: np.random.Generator) -> None:
    x = rows(rng, 3, 4)
    steps = nn.SelfAttention(4, rng=2).steps(x, keep=KEEP)
    assert not steps.weights.data[1].any() and not steps.output.data[1].any()
    assert np.isneginf(steps.masked_scores.data[1]).all()


def test_a_key_hidden_from_everybody_is_not_read_whatever_it_holds(rng: np.random.Generator) -> None:
    x, hidden = rng.normal(size=(3, 4)), np.array([[True, True, False]])
    q, clean = rows(rng, 2, 4), None
    for filler in (0.0, np.nan, np.inf):
        x[2] = filler
        k, v = ta.tensor(x, requires_grad=True), ta.tensor(-x, requires_grad=True)
        output = nn.attention(q, k, v, keep=hidden)
        gradients = [g.data for g in ta.grad(ta.sum(output * output), [q, k, v])]
        found = [output.data, *gradients]
        clean = clean or found
        assert all((a == b).all() for a, b in zip(clean, found, strict=True))


def test_sinusoidal_positions_by_the_formula_of_the_paper() -> None:
    table = nn.sinusoidal(7, 5)
    for position in range(7):
        for column in range(5):
            wave = math.sin if column % 2 == 0 else math.cos
            angle = position / 10000 ** (2 * (column // 2) / 5)
            assert table[position, column] == pytest.approx(wave(angle), abs=1e-15)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: nn.Linear(2, 3, rng=0)(np.ones((4, 5))), "Linear.*width 2"),
    (lambda: nn.SelfAttention(2, rng=0)(np.ones((4, 5))), "SelfAttention.*width 2"),
    (lambda: nn.SelfAttention(2, rng=0)(np.ones(2)), "row per word"),
    (lambda: nn.attention(np.ones((2, 3)), np.ones((2, 4)), np.ones((2, 4))), "equally wide"),
    (lambda: nn.attention(np.ones((2, 3)), np.ones((2, 3)), np.ones((4, 3))), "each key needs its value"),
    (lambda: nn.SelfAttention(2, rng=0)(np.ones((3, 2)), keep=np.ones((2, 2), bool)), "broadcast"),
    (lambda: nn.LearnedPosition(2, 4, rng=0)(np.ones((3, 4))), r"LearnedPosition\(3, 4\)"),
    (lambda: nn.SinusoidalPosition(4)(np.ones(4)), "one row a position"),
    (lambda: nn.Embedding(3, 2, rng=0)([3]), "3"),
    (lambda: nn.Embedding.from_pretrained([1.0, 2.0]), "a row per word"),
    (lambda: nn.Embedding.from_pretrained(np.ones((3, 2), int)), "int"),
    (lambda: nn.Linear(0, 2), "n_in=0"),
    (lambda: nn.SelfAttention(2, d_k=True), "d_k=True"),
])
def test_what_does_not_fit_is_refused_in_words(call, words: str) -> None:
    with pytest.raises(ta.TinyattnError, match=words):
        call()


@pytest.mark.torch
def test_attention_agrees_with_pytorch(rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    layer, x, c = nn.SelfAttention(6, rng=3), rows(rng, 2, 5, 6), rng.normal(size=(2, 5, 6))
    ta.sum(layer(x) * c).backward()
    leaves = [torch.tensor(t.numpy(), requires_grad=True) for t in (x, *layer.parameters())]
    y = torch.nn.functional.scaled_dot_product_attention(*(leaves[0] @ w for w in leaves[1:]))
    (y * torch.tensor(c)).sum().backward()
    np.testing.assert_allclose(layer(x).data, y.detach().numpy(), rtol=1e-12, atol=1e-14)
    for ours, theirs in zip([x, *layer.parameters()], leaves, strict=True):
        np.testing.assert_allclose(ours.grad, theirs.grad.numpy(), rtol=1e-12, atol=1e-13)
