"""What learners write by mistake around attention, modules and optimisers is refused in words, not computed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn, optim

X = np.random.default_rng(0).normal(size=(3, 4))
LEAF = ta.tensor([1.0, 2.0], requires_grad=True)


def heads(**options) -> nn.MultiHeadAttention:
    return nn.MultiHeadAttention(4, 2, rng=0, **options)


class Keys(nn.Module):
    """Two parameters whose names are the same as text."""

    def __init__(self) -> None:
        self.table = {1: ta.tensor(1.0, requires_grad=True), "1": ta.tensor(2.0, requires_grad=True)}


MISTAKES = {
    "position by name": (lambda: heads(position="rotary"), "'rotary' does not act inside the heads"),
    "position to add": (lambda: heads(position=nn.SinusoidalPosition(4)), "does not act inside the heads"),
    "position of a width": (lambda: heads(position=nn.RotaryPosition(4)), r"Write nn.RotaryPosition\(2\)"),
    "position of heads": (lambda: heads(position=nn.DistanceBias(3)), r"or nn.DistanceBias\(2\)"),
    "linear, distance": (lambda: heads(normalise="linear", position=nn.DistanceBias(2))(X), "'linear' with a bias"),
    "linear, bias": (lambda: heads(normalise="linear", dropout=0.1)(X, bias=np.ones((3, 3))), "'linear' with a bias"),
    "scale of text": (lambda: nn.attention(X, X, X, scale="a"), "scale='a' must be one number"),
    "scale of columns": (lambda: nn.attention(X, X, X, scale=np.ones(3)), "must be one number"),
    "score of nothing": (lambda: nn.attention(X, X, X, score=lambda q, k: None), "score= gave nothing"),
    "score of a shape": (lambda: nn.attention(X, X, X, score=lambda q, k: q), r"gave shape \(3, 4\).\n.*\(..., 3, 3\)"),
    "weights of a shape": (
        lambda: nn.attention(X, X, X, normalise=lambda s, keep: s.sum(axis=-1)), r"normalise= gave shape \(3,\)"),
    "score without brackets": (lambda: nn.SelfAttention(4, score=nn.AdditiveScore), r"write AdditiveScore\(...\)"),
    "score in a list": (lambda: nn.attention(X, X, X, score=["dot"]), r"score=\['dot'\] is not known"),
    "normalise in a list": (lambda: nn.attention(X, X, X, normalise=["relu"]), r"\['relu'\] is not known"),
    "activation in a list": (lambda: nn.MLP(4, activation=["relu"]), r"\['relu'\] is not known"),
    "dropout of text": (lambda: nn.Dropout("a"), "p='a' must be from 0 to 1"),
    "eps below 0": (lambda: nn.LayerNorm(4, eps=-1), "eps=-1 must be a number from 0 on"),
    "eps of text": (lambda: nn.RMSNorm(4, eps="a"), "eps='a' must be one number"),
    "position before": (lambda: nn.LearnedPosition(4, 4, rng=0)(X, -2), "before"),
    "too few caches": (lambda: nn.TransformerEncoder(2, 4, 2, rng=0)(X, caches=[]), "0 caches for 2 blocks"),
    "mean of others": (lambda: nn.mean_over_words(X, keep=[True] * 4), r"keep has shape \(4,\)"),
    "temperature": (lambda: nn.GPT(5, 4, 2, 1, 4, rng=0).generate([1], 2, temperature="a"), "temperature='a'"),
    "same name": (lambda: Keys().state_dict(), "two parameters are called 'table.1'"),
    "state of a path": (lambda: nn.Linear(1, 1).load_state_dict("a.npz"), r"weights.load\(model, path\)"),
    "state of nothing": (lambda: nn.Linear(1, 1).load_state_dict(None), "a NoneType; a mapping"),
    "ragged state": (lambda: nn.Linear(1, 1).load_state_dict({"W": [[1.0], [1.0, 2.0]], "b": [1.0]}), "equally long"),
    "astype of a word": (lambda: nn.Linear(1, 1).astype("junk"), "'junk' must be float32 or float64"),
    "no brackets": (lambda: optim.SGD(nn.Linear(1, 1).parameters, lr=0.1), "the method itself was given"),
    "no parameters": (lambda: optim.SGD(None, lr=0.1), "a NoneType was given"),
    "one beta": (lambda: optim.Adam([LEAF], betas=0.9), "betas=0.9 must be two numbers"),
    "steps of text": (lambda: optim.cosine(1.0, "a"), "steps='a'"),
    "warmup of text": (lambda: optim.inverse_root(1.0, "a"), "warmup='a'"),
    "state of text": (lambda: optim.SGD([LEAF], 0.1).load_state_dict({"lr": "a", "steps": 0}), "lr"),
    "rate of nan": (lambda: optim.SGD([LEAF], 0.1).load_state_dict({"lr": np.nan, "steps": 0}), "no finite number"),
    "steps below 0": (lambda: optim.SGD([LEAF], 0.1).load_state_dict({"lr": 1.0, "steps": -1}), "counts steps"),
    "optimiser state of nothing": (lambda: optim.SGD([LEAF], 0.1).load_state_dict(None), "state_dict"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_in_words(name: str) -> None:
    make, words = MISTAKES[name]
    with pytest.raises(ta.TinyattnError, match=words):
        make()


def test_a_rotary_position_has_the_width_that_the_heads_were_given() -> None:
    model = nn.GPT(5, 6, 2, 1, 8, position="rotary", d_k=4, rng=0)
    assert model([1, 2, 3]).shape == (3, 5)


def test_a_score_of_ones_own_may_give_an_array_and_a_bias_may_bring_the_batch() -> None:
    same = nn.attention(X, X, X, score=lambda q, k: np.ones((3, 3)), bias=np.zeros((2, 3, 3)))
    assert np.allclose(same.data, X.mean(axis=0)) and same.shape == (2, 3, 4)


def test_a_parameter_with_two_names_in_a_module_is_one_row_of_the_summary() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            self.w = ta.tensor([1.0, 2.0], requires_grad=True)
            self.again = self.w

    lines = Twice().summary().splitlines()
    assert len(lines) == 4 and lines[2].split() == ["Twice", "w", "(2,)", "2"] and lines[3].split() == ["total", "2"]


def test_a_part_that_knows_its_whole_can_be_printed() -> None:
    class Part(nn.Module):
        def __init__(self, whole: nn.Module) -> None:
            self.whole = whole

    class Whole(nn.Module):
        def __init__(self) -> None:
            self.part = Part(self)

    assert repr(Whole()) == "Whole(\n  part: Part(\n    whole: ...\n  )\n)"


def test_gradients_whose_squares_are_too_large_are_clipped_like_others() -> None:
    w = ta.tensor([0.0, 0.0], requires_grad=True)
    w.grad = [3e200, 4e200]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert optim.clip_gradients([w], 1.0) == pytest.approx(5e200)
    assert np.allclose(w.grad, [0.6, 0.8])


def test_a_schedule_can_be_asked_for_step_0_and_a_tiny_temperature_is_greedy() -> None:
    assert optim.cosine(1.0, 5)(0) == 1.0 and optim.cosine(1.0, 5, warmup=2)(0) == 0.0
    model = nn.GPT(5, 4, 2, 1, 4, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny = model.generate([1], 6, temperature=1e-320)
    assert tiny.tolist() == model.generate([1], 6, temperature=0).tolist()


def test_generating_leaves_every_part_as_it_was() -> None:
    model = nn.GPT(5, 4, 2, 1, 4, dropout=0.3, rng=0)
    model.decoder.eval()
    model.generate([1], 3)
    assert model.training and not model.decoder.training and not model.decoder.blocks[0].dropout.training
