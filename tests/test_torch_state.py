"""Translating weights to PyTorch's names and back, without PyTorch: nothing is lost, nothing is guessed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn
from tinyattn.torch_state import load_torch_state, torch_state

MODULES = {
    "linear": lambda rng: nn.Linear(3, 2, rng=rng), "linear without bias": lambda rng: nn.Linear(3, 2, False, rng=rng),
    "embedding": lambda rng: nn.Embedding(5, 2, rng=rng), "norm": lambda rng: nn.LayerNorm(3),
    "heads": lambda rng: nn.MultiHeadAttention(4, 2, bias=True, rng=rng),
    "cross": lambda rng: nn.MultiHeadAttention(4, 2, d_keys=3, d_values=5, rng=rng),
    "block": lambda rng: nn.TransformerBlock(4, 2, 5, rng=rng),
    "norm without bias": lambda rng: nn.LayerNorm(3, bias=False),
    "block without bias": lambda rng: nn.TransformerBlock(4, 2, 5, bias=False, norm_bias=False, rng=rng),
    "encoder without last norm": lambda rng: nn.TransformerEncoder(2, 4, 2, 5, last_norm=False, rng=rng),
    "encoder after post": lambda rng: nn.TransformerEncoder(2, 4, 2, 5, norm="post", last_norm=True, rng=rng),
    "encoder": lambda rng: nn.TransformerEncoder(2, 4, 2, 5, rng=rng),
    "gpt": lambda rng: nn.GPT(7, 4, 2, 2, 5, rng=rng),
    "gpt with head": lambda rng: nn.GPT(7, 4, 2, 2, 5, tied=False, rng=rng),
}  # fmt: skip


@pytest.mark.parametrize("kind", MODULES)
def test_there_and_back_is_the_same(kind: str, rng) -> None:
    one, other = MODULES[kind](0), MODULES[kind](1)
    for p in one.parameters():
        p.assign(rng.normal(size=p.shape))
    load_torch_state(other, torch_state(one))
    assert all(np.array_equal(a, other.state_dict()[name]) for name, a in one.state_dict().items())
    assert sum(a.size for a in torch_state(one).values()) == sum(p.size for p in one.parameters())


def test_a_prefix_picks_one_part_of_a_larger_model() -> None:
    one, other = nn.Linear(2, 3, rng=0), nn.Linear(2, 3, rng=1)
    state = {f"encoder.fc.{name}": array for name, array in torch_state(one).items()}
    load_torch_state(other, {**state, "more.weight": np.ones(1)}, prefix="encoder.fc.")
    assert (one.W == other.W).all()


def without(name: str, state: dict) -> dict:
    return {key: array for key, array in state.items() if key != name}


HEADS, GPT = MODULES["heads"](0), MODULES["gpt"](0)


@pytest.mark.parametrize(("module", "state", "words"), [
    (HEADS, lambda: without("in_proj_bias", torch_state(HEADS)), "missing in_proj_bias"),
    (nn.MultiHeadAttention(4, 2, rng=0), lambda: torch_state(HEADS), r"Theirs adds a bias, .*\n.*bias=True"),
    (nn.Linear(2, 3, rng=0), lambda: {"weight": np.ones((3, 2))}, r": missing bias\.\n.*\n.*bias=False"),
    (HEADS, lambda: {**torch_state(HEADS), "bias_k": np.ones(4)}, "no place here for bias_k"),
    (HEADS, lambda: {**torch_state(HEADS), "in_proj_weight": np.ones((4, 12))}, r"\(4, 12\) there.*\(12, 4\)"),
    (HEADS, lambda: {**torch_state(HEADS), "in_proj_bias": np.array(["a"])}, "no numbers"),
    (GPT, lambda: {**torch_state(GPT), "lm_head.weight": np.ones((7, 4))}, "no place here for lm_head.weight"),
    (nn.GPT(7, 4, 2, 1, 5, position="rotary", rng=0), lambda: {}, "learned positions"),
    (nn.TransformerBlock(4, 2, norm_kind="rms", rng=0), lambda: {}, "RMSNorm has no counterpart"),
    (nn.TransformerBlock(4, 2, score="additive", rng=0), lambda: {}, r"score=AdditiveScore\(.*\) has no counterpart"),
    (nn.Fastformer(4, rng=0), lambda: {}, "Fastformer has no counterpart"),
], ids=range(11))
def test_what_does_not_belong_is_refused_and_changes_nothing(module, state, words: str) -> None:
    before = module.state_dict()
    with pytest.raises(ta.TinyattnError, match=words):
        load_torch_state(module, state())
    assert all(np.array_equal(before[name], array) for name, array in module.state_dict().items())


@pytest.mark.parametrize(("module", "words"), [
    (nn.MultiHeadAttention(4, 2, normalise="relu", rng=0), "normalise='relu'"),
    (nn.MultiHeadAttention(4, 2, score="additive", rng=0), "score=AdditiveScore"),
    (nn.MultiHeadAttention(4, 2, position=nn.RotaryPosition(2), rng=0), "position=RotaryPosition"),
    (nn.TransformerBlock(4, 2, normalise="relu", rng=0), "normalise='relu'"),
    (nn.GPT(7, 4, 2, 1, 5, norm="post", rng=0), "norm='pre' and bias=True"),
    (nn.GPT(7, 4, 2, 1, 5, bias=False, rng=0), "norm='pre' and bias=True"),
], ids=range(6))  # fmt: skip
def test_what_pytorch_would_compute_otherwise_is_not_handed_over(module, words: str) -> None:
    with pytest.raises(ta.TinyattnError, match=words):
        torch_state(module)


@pytest.mark.parametrize("given", [None, nn.Linear(2, 3, rng=0), 3])
def test_what_is_no_state_is_refused_in_words(given) -> None:
    with pytest.raises(ta.TinyattnError, match=r"names and arrays are needed"):
        load_torch_state(nn.Linear(2, 3, rng=0), given)


class Theirs(SimpleNamespace):
    """What is looked at in a module of PyTorch."""

    def state_dict(self) -> dict[str, np.ndarray]:
        return torch_state(self.ours)


def layer_of_theirs(norm: str = "pre", heads: int = 2, activation: str = "gelu", eps: float = 1e-5) -> Theirs:
    ours = nn.TransformerBlock(4, heads, 5, norm=norm, activation=activation, eps=eps, rng=5)
    bend = SimpleNamespace(__name__=activation)
    return Theirs(
        ours=ours, norm_first=norm == "pre", activation=bend, self_attn=Theirs(num_heads=heads), norm1=Theirs(eps=eps)
    )


def test_the_weights_of_a_module_of_theirs_that_computes_the_same_are_taken() -> None:
    ours, theirs = nn.TransformerBlock(4, 2, 5, activation="gelu", rng=0), layer_of_theirs()
    load_torch_state(ours, theirs)
    assert all(np.array_equal(array, theirs.ours.state_dict()[name]) for name, array in ours.state_dict().items())


@pytest.mark.parametrize(("setting", "words"), [
    ({"norm": "post"}, r"norm_first of their module means norm='post', and here is norm='pre'"),
    ({"heads": 4}, r"self_attn.num_heads of their module means heads=4, and here is heads=2"),
    ({"activation": "relu"}, r"activation of their module means activation='relu', and here is activation='gelu'"),
    ({"eps": 1e-6}, r"norm1.eps of their module means eps=1e-06, and here is eps=1e-05"),
], ids=["norm", "heads", "activation", "eps"])  # fmt: skip
@pytest.mark.parametrize("whole", ["a block", "an encoder", "a part of more"])
def test_what_weights_do_not_show_is_asked_of_a_module_of_theirs(setting: dict, words: str, whole: str) -> None:
    theirs, prefix = layer_of_theirs(**setting), ""
    ours: nn.Module = nn.TransformerBlock(4, 2, 5, activation="gelu", rng=0)
    if whole == "an encoder":
        ours = nn.TransformerEncoder(2, 4, 2, 5, activation="gelu", rng=0)
        good, bad = layer_of_theirs(), theirs
        theirs, words = Theirs(layers=SimpleNamespace(**{"0": good, "1": bad})), rf"layers\.1\.{words}"
    elif whole == "a part of more":
        theirs, prefix, words = Theirs(more=theirs), "more.", rf"more\.{words}"
    before = ours.state_dict()
    with pytest.raises(ta.ArgumentError, match=words):
        load_torch_state(ours, theirs, prefix)
    assert all(np.array_equal(before[name], array) for name, array in ours.state_dict().items())


def test_an_activation_that_has_no_name_here_is_left_to_its_owner() -> None:
    ours, theirs = nn.TransformerBlock(4, 2, 5, activation="gelu", rng=0), layer_of_theirs()
    theirs.activation = SimpleNamespace()
    load_torch_state(ours, theirs)
    theirs = layer_of_theirs(activation="relu")
    load_torch_state(nn.TransformerBlock(4, 2, 5, activation=ta.relu, rng=0), theirs)


def test_watched_tensors_are_taken_and_short_ones_refused_in_words() -> None:
    torch = pytest.importorskip("torch")
    theirs, ours = torch.nn.Linear(2, 3), nn.Linear(2, 3, rng=0)
    load_torch_state(ours, dict(theirs.named_parameters()))
    assert np.array_equal(ours.b.data, theirs.bias.detach().numpy())
    with pytest.raises(ta.TinyattnError, match=r"weight cannot be had.*\n.*theirs.float"):
        load_torch_state(ours, theirs.to(torch.bfloat16).state_dict())


def test_a_setting_that_ours_have_nothing_like_is_refused() -> None:
    ours, theirs = nn.TransformerBlock(4, 2, 5, activation="gelu", rng=0), layer_of_theirs()
    parts = [("", theirs), ("self_attn", SimpleNamespace(add_zero_attn=False, max_norm=None))]
    theirs.named_modules = lambda: parts
    load_torch_state(ours, theirs)
    parts[1][1].add_zero_attn = True
    before = ours.state_dict()
    with pytest.raises(ta.ArgumentError, match=r"their self_attn\.add_zero_attn is set; nothing here does that"):
        load_torch_state(ours, theirs)
    assert all(np.array_equal(array, before[name]) for name, array in ours.state_dict().items())
