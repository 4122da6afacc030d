"""What is a parameter, an input and a constant; what follows the arguments; and what cannot be handed over."""

from __future__ import annotations

import builtins
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from handover.agree import FEW, MODELS, TIGHT, all_agree, far, graph_loss, model_loss

import tinyattn as ta
from tinyattn import handover, nn
from tinyattn.models import Tagger


@pytest.fixture
def x(rng: np.random.Generator) -> ta.Tensor:
    return ta.tensor(rng.normal(size=(4, 5, 6)), name="x")


def test_a_value_or_gradient_of_another_library_that_is_wrong_would_be_seen() -> None:
    y = ta.tensor([1.0, 2.0], requires_grad=True) * 2.0
    asked: list[ta.Tensor] = []
    all_agree([y], lambda results: [each.data for each in results], asked.append)
    assert [float(total) for total in asked] == [10.0]  # the gradients of the mean square are asked for
    with pytest.raises(AssertionError):
        all_agree([y], lambda results: [each.data + 1e-11 for each in results])
    with pytest.raises(ValueError, match="longer"):
        all_agree([y], lambda results: [])


# -- a recorded result -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*MODELS, *FEW], ids=lambda each: getattr(each, "__name__", str(each)))
def test_the_function_gives_the_recorded_number(loss: Any) -> None:
    y = graph_loss(loss) if isinstance(loss, int) else model_loss(loss)
    f = handover.to_function(y, np)
    assert far(f(f.parameters), y) < TIGHT


def test_leaves_with_gradient_are_parameters_other_tensors_are_inputs_and_numbers_are_fixed() -> None:
    x, w = ta.tensor([1.0, 2.0]), ta.tensor([3.0, 4.0], requires_grad=True)
    y = (x * w * 2.0).sum()
    f = handover.to_function(y)
    assert list(f.parameters) == ["w"] and list(f.inputs) == ["x"]
    assert float(f({"w": np.ones(2)}, np.array([5.0, 6.0]))) == 22.0
    assert float(f({"w": np.ones(2)}, x=np.array([5.0, 6.0]))) == 22.0
    assert float(f({"w": np.ones(2)})) == 6.0


def test_names_and_scopes_survive() -> None:
    layer = nn.MultiHeadAttention(4, 2, rng=0)
    f = handover.to_function(layer, np, ta.tensor(np.arange(12.0).reshape(3, 4) / 7))
    values = f.intermediates(f.parameters)
    weights = next(name for name in values if name.endswith("weights"))
    assert weights.startswith("MultiHeadAttention/") and values[weights].shape == (2, 3, 3)
    np.testing.assert_allclose(values[weights].sum(-1), 1)
    assert list(f.parameters) == [name for name, _ in layer.named_parameters()]
    assert "MultiHeadAttention/" + "q = " in str(f) and "W_q = parameter, shape (4, 4)" in str(f)


def test_a_model_gives_a_recorded_loss_the_names_of_its_parameters() -> None:
    model = nn.GPT(5, 4, 2, 1, 4, rng=0)
    loss = model.loss([0, 1, 2, 3])
    f = handover.to_function(loss, np, model=model)
    assert set(f.parameters) == {name for name, _ in model.named_parameters()}
    assert far(f(model.state_dict()), loss) < TIGHT


def test_several_results_come_as_a_tuple() -> None:
    x = ta.tensor([1.0, 2.0])
    f = handover.to_function([x * 2.0, x + 1.0, x])
    assert [each.tolist() for each in f({})] == [[2, 4], [2, 3], [1, 2]]
    (only,) = handover.to_function([x * 2.0])({})
    assert only.tolist() == [2, 4]


def test_nothing_of_the_engine_is_needed_or_changed_when_the_function_runs() -> None:
    w = ta.tensor([1.0, 2.0], requires_grad=True)
    f = handover.to_function((w * w).sum())
    w.assign([7.0, 7.0])
    assert float(f(f.parameters)) == 5.0
    assert w.grad is None


def test_a_function_can_be_sent_to_another_process() -> None:
    f = handover.to_function(nn.Linear(2, 3, rng=0), np, ta.tensor([1.0, 2.0]))
    again = pickle.loads(pickle.dumps(f))
    assert (again(f.parameters) == f(f.parameters)).all()


def test_numbers_that_were_taken_from_the_graph_follow_it() -> None:
    """logsumexp shifts by a constant that it read from its argument: with it fixed, other numbers would overflow."""
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    for y in (ta.logsumexp(x * 1.0), ta.softplus(x * 1.5).sum()):
        f = handover.to_function(y)
        assert float(f({"x": np.array([1000.0, 999.0])})) > 999
    h = x * 1.25
    y = (h * h.detach()).sum()
    f = handover.to_function(y)
    assert far(f({"x": np.array([2.0, 4.0])}), ((np.array([2.0, 4.0]) * 1.25) ** 2).sum()) < TIGHT


def test_a_constant_that_happens_to_be_a_round_number_of_the_graph_stays_a_constant() -> None:
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    y = ((x * 2.0) * np.array([2.0, 4.0])).sum()
    f = handover.to_function(y)
    assert float(f({"x": np.array([10.0, 0.0])})) == 40.0


# -- functions: what follows the arguments -----------------------------------------------------------------------------

IDS = np.array([[0, 3, 1, 2, 5, 4], [1, 1, 0, 6, 2, 3], [6, 5, 4, 3, 2, 1], [2, 0, 2, 0, 1, 3]])
KEEP = np.arange(6) < np.array([6, 4, 5, 3])[:, None]
SHORT, SHORT_KEEP = IDS[1:3, 1:5], KEEP[:2, 1:5]
GPT = {"words": 7, "d": 8, "heads": 2, "layers": 1, "length": 6, "rng": 0}


def decoder(**options: Any) -> Any:
    return nn.GPT(**GPT, **options)


CASES: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = {
    **{
        f"decoder, {kind} positions": (decoder(position=kind), (IDS,), {"ids": ("batch", "n")}, (SHORT,))
        for kind in ("learned", "sinusoidal", "rotary", "distance")
    },
    "its loss": (decoder().loss, (IDS,), {"ids": ("batch", "n")}, (SHORT,)),
    "tagger": (
        Tagger(7, 3, "attention with position", d=8, heads=2, rng=0).eval(), (IDS, KEEP),
        {"ids": ("batch", "n"), "keep": ("batch", "n")}, (SHORT, SHORT_KEEP),
    ),
    "loss of targets": (
        lambda ids, targets: ta.cross_entropy(decoder()(ids), targets, ignore_index=3), (IDS, IDS[::-1].copy()),
        {"ids": ("batch", "n"), "targets": ("batch", "n")}, (SHORT, SHORT[:, ::-1].copy()),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_indices_masks_and_lengths_follow_the_arguments(case: str) -> None:
    function, args, dynamic, others = CASES[case]
    f = handover.to_function(function, np, *args, dynamic=dynamic)
    assert far(f(f.parameters), function(*args)) < TIGHT
    assert far(f(f.parameters, *others), function(*others)) < TIGHT


LAYERS = {
    "block": nn.TransformerBlock(6, 2, 7, rng=0), "attention": nn.SelfAttention(6, rng=0),
    "heads": nn.MultiHeadAttention(6, 2, rng=0), "linear": nn.LinearAttention(6, rng=0),
    "fast": nn.Fastformer(6, rng=0),
    "causal": lambda x: nn.MultiHeadAttention(6, 2, rng=0)(x, causal=True),
    "leaky": lambda x: ta.leaky_relu(x), "softplus": lambda x: ta.softplus(x),
    "where": lambda x: ta.where(x > 0.25, x, 0.0) + ta.where(x <= (y := x * x), 1.0, y),
    "mask of comparisons": lambda x: x * (x > 0).astype(float), "std": lambda x: ta.std(x, axis=1),
    "one answer": lambda x: ta.where(np.bool_(True), x, 0.0),
    "last": lambda x: x[:, -1], "all but the last": lambda x: x[:, :-1] - x[:, 1:],
    "flat": lambda x: x.reshape(-1, 6).sum(axis=0), "halves": lambda x: ta.concatenate([x, x * 2.0], axis=1),
    "zeros": lambda x: ta.concatenate([x, np.zeros_like(x.data)], axis=1),
    "backward in it": lambda x: ta.grad((ta.tanh(x) ** 3).sum(), x, create_graph=True) * 2.0,
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_takes_other_batches_and_lengths(name: str, x: ta.Tensor, rng: np.random.Generator) -> None:
    example = ta.tensor(x.data, requires_grad=name == "backward in it")
    f = handover.to_function(LAYERS[name], np, example, dynamic={"x": ("batch", "n", None)})
    for shape in ((4, 5, 6), (2, 3, 6), (7, 4, 6)):
        other = ta.tensor(rng.normal(size=shape), requires_grad=name == "backward in it")
        assert far(f(f.parameters, other.data), LAYERS[name](other)) < TIGHT


def test_free_axes_can_be_given_by_number(rng: np.random.Generator) -> None:
    layer, x = nn.Linear(6, 2, rng=0), ta.tensor(rng.normal(size=(4, 6)))
    f = handover.to_function(layer, np, x, dynamic={"x": {0: "n"}})
    assert far(f(f.parameters, x.data[:1]), layer(x.data[:1])) < TIGHT


def test_a_table_reaches_as_far_as_in_the_example(rng: np.random.Generator) -> None:
    f = handover.to_function(decoder(position="sinusoidal"), np, IDS, dynamic={"ids": ("batch", "n")})
    with pytest.raises(ta.ShapeError, match=r"a length of 7 is needed, and 6 was the longest(.|\n)*longer example"):
        f(f.parameters, rng.integers(0, 7, (4, 7)))


def test_the_opposite_of_a_mask_and_a_part_of_an_array_are_seen() -> None:
    x = ta.tensor(np.arange(6.0).reshape(2, 3))
    f = handover.to_function(lambda x, hide: ta.where(~hide, x, 0.0), np, x, np.array([True, False, True]))
    assert f({}, x.data, np.array([False, False, True])).tolist() == [[0, 1, 0], [3, 4, 0]]


def test_arrays_are_inputs_like_tensors_and_settings_are_fixed() -> None:
    f = handover.to_function(lambda data, power: (ta.tensor(1.0) * data) ** power, np, np.array([1.5, 2.5]), 2)
    assert list(f.inputs) == ["data"]
    assert f({}, np.array([3.0, 4.0])).tolist() == [9, 16]


# -- wrong use ---------------------------------------------------------------------------------------------------------


def wrong(what: Any, *args: Any, **options: Any) -> Any:
    return lambda: handover.to_function(what, np, *args, **options)


ONE = ta.tensor([1.0, 2.0, 3.0], name="x")
FREE = {"x": ("n",)}
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "numbers computed with NumPy": (
        wrong(lambda x: x * np.tanh(x.data), ONE), ta.GraphError,
        r"constant \(constant, shape \(3,\)\)(.|\n)*hand it in",
    ),
    "a decision by NumPy": (
        wrong(lambda x: ta.where(np.tanh(x.data) > 0.9, x, 0.0), ONE), ta.GraphError,
        "where .*: its condition would be",
    ),
    "indices from numbers": (
        wrong(lambda x: x[np.argsort(x.data)], ONE), ta.GraphError, "index .*: its key would be another one",
    ),
    "a loop over a length": (
        wrong(lambda x: sum((x[i] for i in range(len(x))), start=ta.tensor(0.0)), ONE, dynamic=FREE), ta.GraphError,
        "another graph for other arguments: .* steps(.|\n)*if or for",
    ),
    "chance": (
        wrong(nn.Dropout(0.5, rng=0), ONE), ta.GraphError, r"model.eval\(\)",
    ),
    "a length that cannot change": (
        wrong(lambda x: x @ np.ones((3, 2)), ONE, dynamic=FREE), ta.GraphError, "with n = 2 the function fails: matmul",
    ),
    "an example that tells nothing": (
        wrong(lambda x, keep: ta.where(keep, x, 0.0), ONE, np.array([True, True, True])), ta.ArgumentError,
        "keep holds the same value everywhere",
    ),
    "an example too short": (
        wrong(lambda x: x, ta.tensor([1.0, 2.0]), dynamic=FREE), ta.ArgumentError, "length 2(.|\n)*at least 3",
    ),
    "axes of nothing": (wrong(lambda x: x, ONE, dynamic={"y": ("n",)}), ta.ArgumentError, "no array argument .* 'y'"),
    "too few axes": (wrong(lambda x: x, ONE, dynamic={"x": ()}), ta.ArgumentError, r"shape \(3,\), and 0 axes"),
    "two lengths of one name": (
        wrong(lambda x, y: x.sum() + y.sum(), ONE, ta.tensor(np.arange(4.0)), dynamic={**FREE, "y": ("n",)}),
        ta.ArgumentError, "'n' has length 3 and 4",
    ),
    "arguments beside a result": (wrong(ONE * 2.0, ONE), ta.ArgumentError, r"to_jax\(model, x, dynamic"),
    "no tensor comes out": (wrong(lambda x: 3, ONE), ta.ArgumentTypeError, "gives a int"),
    "neither result nor function": (wrong(3.0), ta.ArgumentTypeError, "not a float"),
    "no namespace": (
        lambda: handover.to_function(ONE * 2.0, "numpy"), ta.ArgumentTypeError, "'numpy' is no namespace of arrays",
    ),
    "a module without arrays": (
        lambda: handover.to_function(ONE * 2.0, builtins), ta.ArgumentTypeError, "builtins is no .*it has no exp",
    ),
    "words": (wrong(lambda x: ONE, np.array(["a"])), ta.ArgumentTypeError, "holds <U1"),
    "a shape that was baked in": (
        lambda: handover.to_function(ONE * 2.0)({}, np.ones(4)), ta.ShapeError,
        r"x has shape \(4,\), and was recorded with \(3,\)(.|\n)*dynamic={'x': \('n',\)}",
    ),
    "a parameter of another size": (
        lambda: handover.to_function(nn.Linear(3, 2, False, rng=0), np, ONE)({"W": np.ones((4, 2))}, ONE.data),
        ta.ShapeError, r"W has shape \(4, 2\)(.|\n)*Make the model in the new size",
    ),
    "an input too many": (lambda: handover.to_function(ONE * 2.0)({}, 1, 2), ta.ArgumentError, "2 inputs.*are 1: x"),
    "an unknown input": (lambda: handover.to_function(ONE * 2.0)({}, y=1), ta.ArgumentError, "no input is named y"),
    "an input twice": (
        lambda: handover.to_function(ONE * 2.0)({}, np.ones(3), x=np.ones(3)), ta.ArgumentError, "x was given twice",
    ),
    "no parameters": (lambda: handover.to_function(ONE * 2.0)(ONE.data), ta.ArgumentTypeError, "f.parameters"),
    "a parameter too many": (lambda: handover.to_function(ONE * 2.0)({"w": 1.0}), ta.ArgumentError, "w is missing or"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_told_with_names(case: str) -> None:
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(("function", "library"), [("to_jax", "jax"), ("to_torch", "torch"), ("to_onnx", "onnx")])
def test_a_missing_library_is_told_with_the_line_that_installs_it(
    function: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    with pytest.raises(ta.MissingLibraryError, match=f"Write: pip install {library}"):
        getattr(handover, function)(ONE * 2.0)


def test_handing_over_to_numpy_imports_no_other_library(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def watched(name: str, *rest: Any, **more: Any) -> Any:
        assert name.split(".")[0] not in ("jax", "torch", "onnx", "onnxruntime"), name
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", watched)
    f = handover.to_function(nn.Linear(3, 2, rng=0), np, ONE)
    assert f(f.parameters).shape == (2,)
