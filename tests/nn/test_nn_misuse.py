"""Every layer and function of `nn` meets every kind of wrong argument: what is refused is refused in our words.

The table holds a call that works; each of its arguments is then exchanged for what it cannot be, one at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn

X = np.random.default_rng(0).normal(size=(3, 4))
LEAF = ta.tensor(X, requires_grad=True)
ALL = np.ones((3, 3), bool)
WORDS = [True, True, False]


class Anything:
    """An object that is nothing of what is asked for."""


WRONG: dict[str, Any] = {
    "text": "text", "nothing": None, "tensors": [LEAF, LEAF], "numbers": [1.0, 2.0], "object": Anything(),
    "negative": -3, "zero": 0, "fraction": 1.5, "truth": True, "rows": np.ones((7, 5)), "batch": np.ones((2, 7, 5)),
    "empty": np.zeros(0), "no rows": np.zeros((0, 4)), "complex": np.array([1j]), "dict": {"a": 1}, "module": np,
    "huge": 10**15, "nan": float("nan"), "infinity": float("inf"), "tensor": LEAF, "0-d": ta.tensor(1.0),
    "bytes": b"x", "truths": np.array([True, False]), "set": {1}, "none of it": (), "objects": np.array([None]),
}  # fmt: skip


def gpt() -> nn.GPT:
    return nn.GPT(5, 4, 2, 1, 4, rng=0)


LAYERS: dict[str, tuple[type[nn.Module], dict[str, Any], dict[str, Any]]] = {
    "Linear": (nn.Linear, {"n_in": 4, "n_out": 3, "bias": True, "rng": 0}, {"x": X}),
    "Embedding": (nn.Embedding, {"words": 4, "d": 3, "scale": 1.0, "rng": 0}, {"ids": [1, 2]}),
    "LayerNorm": (nn.LayerNorm, {"d": 4, "eps": 1e-5, "bias": True}, {"x": X}),
    "RMSNorm": (nn.RMSNorm, {"d": 4, "eps": 1e-5}, {"x": X}),
    "Dropout": (nn.Dropout, {"p": 0.5, "rng": 0}, {"x": X}),
    "MLP": (nn.MLP, {"d": 4, "hidden": 3, "activation": "relu", "dropout": 0.1, "bias": True, "rng": 0}, {"x": X}),
    "SelfAttention": (
        nn.SelfAttention, {"d": 4, "d_k": 2, "d_v": 3, "score": "dot", "normalise": "relu", "rng": 0},
        {"x": X, "keep": ALL, "bias": np.ones((3, 3)), "causal": True}),
    "MultiHeadAttention": (
        nn.MultiHeadAttention,
        {"d": 4, "heads": 2, "d_k": 2, "d_v": 2, "d_keys": 4, "d_values": 4, "bias": True, "dropout": 0.1,
         "score": "dot", "normalise": "softmax", "position": None, "fused": False, "rng": 0},
        {"x": X, "keys": X, "values": X, "keep": ALL, "bias": np.ones((3, 3)), "causal": True, "cache": None}),
    "TransformerBlock": (
        nn.TransformerBlock,
        {"d": 4, "heads": 2, "hidden": 3, "norm": "pre", "norm_kind": "layer", "activation": "relu", "dropout": 0.1,
         "bias": True, "norm_bias": True, "eps": 1e-5, "rng": 0, "d_k": 2},
        {"x": X, "keep": ALL, "bias": np.ones((3, 3)), "causal": True, "cache": None}),
    "TransformerEncoder": (
        nn.TransformerEncoder, {"layers": 1, "d": 4, "heads": 2, "hidden": 3, "last_norm": None, "rng": 0, "eps": 0.1},
        {"x": X, "keep": ALL, "bias": np.ones((3, 3)), "causal": True, "caches": None}),
    "GPT": (
        nn.GPT,
        {"words": 5, "d": 4, "heads": 2, "layers": 1, "length": 4, "hidden": 3, "position": "rotary", "tied": True,
         "dropout": 0.1, "activation": "relu", "rng": 0, "d_k": 2, "norm": "pre"}, {"ids": [1, 2, 3], "caches": None}),
    "LinearAttention": (
        nn.LinearAttention, {"d": 4, "d_k": 2, "d_v": 3, "rng": 0}, {"x": X, "keep": WORDS, "causal": True}),
    "Fastformer": (nn.Fastformer, {"d": 4, "d_k": 2, "heads": 2, "rng": 0}, {"x": X, "keep": WORDS}),
    "SinusoidalPosition": (nn.SinusoidalPosition, {"d": 4, "base": 100.0}, {"x": X, "before": 0}),
    "LearnedPosition": (nn.LearnedPosition, {"length": 9, "d": 4, "scale": 1.0, "rng": 0}, {"x": X, "before": 0}),
    "RotaryPosition": (nn.RotaryPosition, {"d": 4, "base": 100.0}, {"x": X, "before": 0}),
    "DistanceBias": (nn.DistanceBias, {"heads": 2, "reach": 2}, {"n": 3, "m": 4}),
    "AdditiveScore": (nn.AdditiveScore, {"d_q": 4, "d_k": 4, "hidden": 3, "rng": 0}, {"q": X, "k": X}),
    "GeneralScore": (nn.GeneralScore, {"d_q": 4, "d_k": 4, "rng": 0}, {"q": X, "k": X}),
}  # fmt: skip

FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "attention": (
        nn.attention,
        {"q": X, "k": X, "v": X, "score": "dot", "normalise": "softmax", "keep": ALL, "bias": np.ones((3, 3)),
         "causal": True, "scale": 0.5, "return_steps": True}),
    "steps": (nn.SelfAttention(4, rng=0).steps, {"x": X, "keep": ALL, "bias": np.ones((3, 3)), "causal": True}),
    "split_heads": (nn.split_heads, {"x": X, "heads": 2}),
    "merge_heads": (nn.merge_heads, {"x": np.ones((2, 3, 4))}),
    "mean_over_words": (nn.mean_over_words, {"x": X, "keep": WORDS}),
    "sinusoidal": (nn.sinusoidal, {"n": 3, "d": 4, "base": 100.0, "before": 1}),
    "causal": (nn.masks.causal, {"n": 3, "m": 4}),
    "window": (nn.masks.window, {"n": 3, "reach": 1, "m": 4}),
    "padding": (nn.masks.padding, {"keep": WORDS}),
    "distances": (nn.masks.distances, {"n": 3, "m": 4}),
    "glorot": (nn.init.glorot, {"rng": np.random.default_rng(0), "n_in": 3, "n_out": 3}),
    "normal": (nn.init.normal, {"rng": np.random.default_rng(0), "shape": (2,), "scale": 1.0}),
    "from_pretrained": (nn.Embedding.from_pretrained, {"vectors": X, "freeze": True}),
    "loss": (gpt().loss, {"ids": [1, 2, 3], "ignore": -1}),
    "generate": (gpt().generate, {"ids": [1, 2, 3], "steps": 2, "temperature": 1.0, "top_k": 2, "end": 1, "rng": 0}),
    "dot": (nn.scores.dot, {"q": X, "k": X}),
    "general": (nn.scores.general, {"q": X, "k": X, "W": np.ones((4, 4))}),
    "additive": (nn.scores.additive, {"q": X, "k": X, "W_q": np.ones((4, 2)), "W_k": np.ones((4, 2)), "v": np.ones(2)}),
    "relu": (nn.normalise.relu, {"scores": X, "keep": None}),
}  # fmt: skip


def exchanged(arguments: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The arguments with one of them exchanged for something wrong, and what that is called."""
    for name in arguments:
        for label, wrong in WRONG.items():
            if (name, label) != ("steps", "huge"):  # so many words take their time, and are no mistake
                yield f"{name}: {label}", {**arguments, name: wrong}


def refused(function: Callable[..., Any], arguments: dict[str, Any]) -> Exception | None:
    """The error that a call ends with; nothing when it works."""
    try:
        function(**arguments)
    except Exception as error:
        return error
    return None


def in_foreign_words(function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, str]:
    """The wrong calls that end in something else than an error of this package."""
    found = {label: refused(function, wrong) for label, wrong in exchanged(arguments)}
    return {
        label: f"{type(error).__name__}: {error}"
        for label, error in found.items()
        if error is not None and not isinstance(error, ta.TinyattnError)
    }


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_made_or_refused_in_our_words(name: str) -> None:
    make, arguments, _ = LAYERS[name]
    make(**arguments)
    assert in_foreign_words(make, arguments) == {}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::tinyattn.GradientLost")
def test_a_layer_computes_or_refuses_in_our_words(name: str) -> None:
    make, arguments, call = LAYERS[name]
    layer = make(**arguments)
    layer(**call)
    assert in_foreign_words(layer, call) == {}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::tinyattn.GradientLost")
def test_a_function_computes_or_refuses_in_our_words(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    function(**arguments)
    assert in_foreign_words(function, arguments) == {}


@pytest.mark.parametrize("name", LAYERS)
def test_what_a_layer_refuses_names_the_layer_or_the_argument(name: str) -> None:
    """What is missing or not known is told with the layer's name, whoever of its parts notices."""
    make, arguments, call = LAYERS[name]
    layer = make(**arguments)
    for wrong in ({}, {**arguments, "widht": 3}):
        assert re.search(rf"\b{name}\b", str(refused(make, wrong)))
    for wrong in ({}, {**call, "widht": 3}):
        assert re.search(rf"\b{name}\b", str(refused(layer, wrong)))


def test_every_layer_is_in_the_table() -> None:
    layers = {name for name in nn.__all__ if isinstance(getattr(nn, name), type)}
    modules = {name for name in layers if issubclass(getattr(nn, name), nn.Module)}
    assert modules - {"Module", "Sequential"} == set(LAYERS)  # Sequential has no sizes, and tests of its own


def test_the_table_would_notice_foreign_words() -> None:
    def careless(n: int) -> np.ndarray:
        return np.zeros(n)

    assert "n: text" in in_foreign_words(careless, {"n": 3})


OTHERS = {
    "features": (lambda: nn.Linear(in_features=3, out_features=4), "Write n_in=... here."),
    "embed_dim": (lambda: nn.MultiHeadAttention(embed_dim=8, num_heads=2), "Write d=... here."),
    "num_heads": (lambda: nn.MultiHeadAttention(8, num_heads=2), "Write heads=... here."),
    "nhead": (lambda: nn.TransformerBlock(8, nhead=2), "Write heads=... here."),
    "a slip in a part": (lambda: nn.TransformerBlock(8, 2, positon=None), "Write position=... here."),
    "d_model": (lambda: nn.TransformerEncoder(d_model=8, nhead=2, num_layers=3), "Write d=... here."),
    "block_size": (lambda: nn.GPT(5, 4, 2, 1, block_size=8), "Write length=... here."),
    "batch_first": (lambda: nn.MultiHeadAttention(4, 2, batch_first=True), "the axes before the last two are"),
    "device": (lambda: nn.Linear(4, 4, device="cpu"), "everything is computed on the processor"),
    "dtype": (lambda: nn.Linear(4, 4, dtype=np.float32), "model.astype(np.float32)"),
    "attn_mask": (lambda: nn.MultiHeadAttention(4, 2, rng=0)(X, X, X, attn_mask=ALL), "Write keep=..., True where"),
    "need_weights": (lambda: nn.MultiHeadAttention(4, 2, rng=0)(X, need_weights=True), "Write layer.steps(...)"),
    "is_causal": (lambda: nn.SelfAttention(4, rng=0)(X, is_causal=True), "Write causal=... here."),
    "mask of steps": (lambda: nn.SelfAttention(4, rng=0).steps(X, mask=ALL), "Write keep=..., True where"),
    "mask of a function": (lambda: nn.attention(X, X, X, mask=ALL), "Write keep=..., True where"),
    "mask of words": (lambda: nn.mean_over_words(X, mask=WORDS), "Write keep=..."),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_an_argument_of_pytorch_is_answered_with_ours(name: str) -> None:
    call, instead = OTHERS[name]
    with pytest.raises(ta.ArgumentTypeError, match="there is no argument") as caught:
        call()
    assert instead in str(caught.value)


def test_a_seed_in_the_place_of_the_bias_is_noticed() -> None:
    with pytest.raises(ta.ArgumentTypeError, match="Linear: bias=0 must be True or False"):
        nn.Linear(3, 4, 0)


def test_a_module_of_ones_own_is_answered_as_well_and_may_take_anything() -> None:
    class Model(nn.Module):
        def __init__(self, hidden: int = 3) -> None:
            self.linear = nn.Linear(4, hidden, rng=0)

        def forward(self, x: Any) -> Any:
            return self.linear(x)

    class Open(Model):
        def __init__(self, **options: Any) -> None:
            super().__init__(options["width"])

        def forward(self, x: Any, **options: Any) -> Any:
            return self.linear(x)

    with pytest.raises(ta.ArgumentTypeError, match=r"Model: there is no argument 'hiden'.\n.*\n  Write hidden="):
        Model(hiden=3)  # type: ignore[call-arg]
    with pytest.raises(ta.ArgumentTypeError, match=r"Model: there is no argument 'keep'.\n  Its only argument is x."):
        Model()(X, keep=ALL)
    assert Open(width=2)(X, keep=ALL).shape == (3, 2)


def test_a_forward_that_was_put_into_one_module_alone_takes_its_own_keywords() -> None:
    layer = nn.Linear(4, 1, rng=0)
    layer.forward = lambda x, twice: x * twice  # type: ignore[method-assign]
    assert layer(LEAF, twice=2.0).tolist() == (X * 2).tolist()


def test_a_block_of_ones_own_passes_on_what_it_does_not_know_itself() -> None:
    class Mine(nn.TransformerBlock):
        def __init__(self, d: int, **options: Any) -> None:
            super().__init__(d, 2, **options)

    assert Mine(4, d_k=3, rng=0).attention.W_q.shape == (4, 6)
    with pytest.raises(ta.ArgumentTypeError, match="TransformerBlock: there is no argument 'nhead'"):
        Mine(4, nhead=2)


ATTRIBUTES = {
    "weight": (lambda: nn.Linear(2, 1).weight, r"'Linear' object .* 'weight'.\n  .* are W, b.\n.*layer.W of"),
    "modules": (lambda: nn.MLP(2).modules, r"are up, down.\n  Write model.named_modules\(\)."),
    "cuda": (lambda: nn.GPT(5, 4, 2, 1, 4).cuda(), "Instead: leave it away: everything is computed on the processor."),
    "a slip": (lambda: nn.Linear(2, 1).foward, "'Linear' object has no attribute 'foward'.\n  Its parameters"),
    "nothing of its own": (lambda: nn.Dropout(0.5).nonsense, r"^'Dropout' object has no attribute 'nonsense'\Z"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute_that_is_not_there_says_what_is(name: str) -> None:
    ask, words = ATTRIBUTES[name]
    with pytest.raises(AttributeError, match=words):
        ask()


def test_a_module_can_still_be_asked_copied_and_pickled() -> None:
    import copy
    import pickle

    layer = nn.Linear(2, 1, rng=0)
    assert not hasattr(layer, "weight") and getattr(layer, "weight", None) is None
    for other in (copy.copy(layer), copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other.state_dict().keys() == {"W", "b"} and (other.W == layer.W).all()
    assert not hasattr(nn.Module.__new__(nn.Module), "anything"), "before it is made there is nothing to list"


def test_the_batches_in_the_place_of_the_mode_are_noticed() -> None:
    with pytest.raises(ta.ArgumentTypeError, match=r"Module\.train: mode, a list, must be True or False"):
        nn.Linear(2, 1).train([X])  # type: ignore[arg-type]
