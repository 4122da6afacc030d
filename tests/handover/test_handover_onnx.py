"""ONNX as a witness: the file is valid, and ONNX Runtime computes the same from it, on numbers it never saw."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from handover.agree import FEW, MODELS, TIGHT, all_agree, far, graph_loss, model_loss
from handover.test_handover_functions import CASES

import tinyattn as ta
from tinyattn import handover, nn
from tinyattn.handover.onnx_file import OPSET

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
runtime.set_default_logger_severity(3)


def session(model: Any) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(model: Any, numbers: dict[str, Any]) -> list[np.ndarray]:
    opened = session(model)
    wanted = [*opened.get_inputs(), *opened.get_overridable_initializers()]
    return opened.run(None, {each.name: np.asarray(numbers[each.name]) for each in wanted})


def agrees(loss: ta.Tensor) -> None:
    """Also on other numbers, where what is fixed in the graph is fixed on both sides."""
    f, model = handover.to_function(loss), handover.to_onnx(loss, parameters_as_inputs=True)
    assert far(run(model, f.parameters | f.inputs)[0], loss) < TIGHT
    other = {name: np.asarray(array) * 0.9 for name, array in (f.parameters | f.inputs).items()}
    parameters = {name: other[name] for name in f.parameters}
    assert far(run(model, other)[0], f(parameters, *(other[name] for name in f.inputs))) < TIGHT


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_model_of_the_lessons_agrees(model: Any) -> None:
    agrees(model_loss(model))


@pytest.mark.parametrize("seed", range(200))
def test_a_random_graph_agrees(seed: int) -> None:
    agrees(graph_loss(seed))


@pytest.mark.slow
def test_whatever_a_lesson_computes_agrees(computed: list[ta.Tensor]) -> None:
    def values(results: list[ta.Tensor]) -> Any:
        return run(handover.to_onnx(results), handover.to_function(results).inputs)

    all_agree(computed, values)


@pytest.mark.parametrize("case", CASES)
def test_batch_and_length_are_free(case: str) -> None:
    function, args, dynamic, others = CASES[case]
    model = handover.to_onnx(function, *args, dynamic=dynamic)
    opened = session(model)
    for given in (args, others):
        feed = {each.name: array for each, array in zip(opened.get_inputs(), given, strict=True)}
        assert far(opened.run(None, feed)[0], function(*given)) < TIGHT
    assert [each.shape for each in opened.get_inputs()] == [list(axes) for axes in dynamic.values()]


def test_the_free_lengths_have_their_names_in_the_results_too() -> None:
    x = ta.tensor(np.arange(24.0).reshape(4, 3, 2))
    model = handover.to_onnx(nn.SelfAttention(2, rng=0), x, dynamic={"x": ("batch", "n", None)})
    assert session(model).get_outputs()[0].shape == ["batch", "n", 2]


def test_the_opset_is_the_stated_one_and_the_reference_of_onnx_agrees() -> None:
    from onnx.reference import ReferenceEvaluator

    x = ta.tensor(np.arange(12.0).reshape(3, 4) / 5)
    layer = nn.MultiHeadAttention(4, 2, rng=0)
    model = handover.to_onnx(layer, x)
    assert [(each.domain, each.version) for each in model.opset_import] == [("", OPSET)]
    assert far(ReferenceEvaluator(model).run(None, {"x": x.data})[0], layer(x)) < TIGHT


def test_names_and_scopes_are_in_the_file() -> None:
    model = handover.to_onnx(nn.MultiHeadAttention(4, 2, rng=0), ta.tensor(np.arange(12.0).reshape(3, 4) / 7))
    made = {name for node in model.graph.node for name in node.output}
    assert {"MultiHeadAttention/q", "MultiHeadAttention/weights"} <= made
    assert {"W_q", "W_k", "W_v", "W_o"} <= {each.name for each in model.graph.initializer}


def test_parameters_can_be_inputs_with_the_recorded_ones_for_defaults() -> None:
    w, x = ta.tensor([1.0, 2.0], requires_grad=True), ta.tensor([3.0, 4.0])
    model = handover.to_onnx((w * x).sum(), parameters_as_inputs=True)
    opened = session(model)
    assert opened.run(None, {"x": x.data})[0] == 11
    assert opened.run(None, {"x": x.data, "w": np.array([0.0, 1.0])})[0] == 4
    assert "w" not in [each.name for each in handover.to_onnx((w * x).sum()).graph.input]


def test_it_is_written_whole_and_the_same_every_time(tmp_path: Any) -> None:
    x = ta.tensor(np.arange(12.0).reshape(3, 4) / 7)
    for name in ("one", "two"):
        handover.to_onnx(nn.MultiHeadAttention(4, 2, rng=0), x, path=tmp_path / f"{name}.onnx")
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()
    assert onnx.load(tmp_path / "one.onnx").producer_name == "tinyattn"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.onnx", "two.onnx"]


def test_float32_and_whole_numbers_keep_their_types() -> None:
    x = ta.tensor(np.float32([[1.0, 2.0], [3.0, 4.0]]), name="x")
    y = [ta.gelu(x), ta.tensor([3, 4], name="n") / 2, x.astype(np.float64)]
    f = handover.to_function(y)
    got = run(handover.to_onnx(y), f.inputs)
    assert [each.dtype.name for each in got] == ["float32", "float64", "float64"]
    assert all(far(a, b) < 1e-6 for a, b in zip(got, y, strict=True))


def test_a_result_that_is_an_argument_or_comes_twice_is_valid_too() -> None:
    x = ta.tensor([1.0, 2.0], name="x")
    y = x * 2.0
    assert [each.tolist() for each in run(handover.to_onnx([x, y, y]), {"x": x.data})] == [[1, 2], [2, 4], [2, 4]]


def test_a_file_that_is_wrong_would_be_seen() -> None:
    model = handover.to_onnx(ta.tensor([1.0, 2.0], name="x") * 2.0)
    model.graph.node[0].op_type = "Times"
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize("seed", FEW)
def test_nothing_is_warned_of(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        handover.to_onnx(graph_loss(seed))
