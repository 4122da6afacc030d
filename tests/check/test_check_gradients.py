# ruff: noqa: E501 - a table reads best with one line for each case
"""What a check says about right and wrong gradients, and about what is neither."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import altered

import tinyattn as ta
from tinyattn.check import check_gradients
from tinyattn.ops import REGISTRY

SQUARE = np.array([[0.5, -1.0], [2.0, 0.3]])
WRONG_SOFTMAX = altered(REGISTRY["softmax"], vjps=(lambda g, y, x, axis, keep: g * y * (1 - y),))


def attention_with(softmax):
    def attend(q, k, v):
        scores = q @ k.mT
        weights = ta.apply(softmax, (scores,), (1, None))
        return weights @ v

    return attend


@pytest.fixture
def qkv(rng):
    return [rng.normal(size=shape) for shape in ((3, 4), (5, 4), (5, 2))]


@pytest.fixture
def failed(qkv):
    return check_gradients(attention_with(WRONG_SOFTMAX), *qkv)


def test_a_right_gradient_is_true_and_lists_what_was_compared(qkv):
    report = check_gradients(attention_with(REGISTRY["softmax"]), *qkv)
    assert report and report.verdict == "right" and report.exact == "equal"
    assert {row.input for row in report.rows} == {"q", "k", "v", "all"}
    assert {(row.order, row.way) for row in report.rows} == {(o, w) for o in (1, 2) for w in ("reverse", "forward")}
    assert 1.9 < report.remainder < 2.1


def test_a_wrong_rule_is_blamed_with_name_line_entry_values_formula_and_mistake(failed):
    blame = failed.blame
    assert not failed and blame.op == "softmax" and blame.node == "weights"
    assert blame.place.startswith("test_check_gradients.py:")
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[blame.line - 1]
    assert "weights = ta.apply(softmax" in line
    assert blame.input == "x (here scores)" and len(blame.entry) == 2
    assert blame.found != pytest.approx(blame.expected, rel=1e-3)
    assert "ȳ" in blame.formula and "Σ" in blame.formula
    assert failed.mistake == "only the diagonal of the softmax Jacobian"
    assert failed.remainder == pytest.approx(1.0, abs=0.1)


def test_both_values_at_the_worst_entry_are_those_of_rule_and_forward(failed):
    fault = failed.faults[0]
    scores = ta.tensor(fault.node.value, requires_grad=True)  # its weights; the row sums say softmax was taken
    np.testing.assert_allclose(np.sum(scores.data, axis=1), 1.0)
    assert fault.got[fault.entry] == failed.blame.found
    assert fault.want[fault.entry] == failed.blame.expected
    assert abs(fault.got - fault.want).max() == pytest.approx(abs(failed.blame.found - failed.blame.expected))


def test_every_wrong_rule_is_listed_and_the_one_nearest_the_result_comes_first(qkv):
    wrong_exp = altered(REGISTRY["exp"], vjps=(lambda g, y, x: g * y * 2,))

    def f(x):
        inner = ta.apply(wrong_exp, (x,), ())
        outer = ta.apply(WRONG_SOFTMAX, (inner,), (1, None))
        return ta.sum(outer * outer)

    report = check_gradients(f, qkv[0])
    assert report.blame.op == "softmax"
    assert [words.split(",")[0] for words in report.others] == ["exp"]


def test_a_layer_is_checked_by_its_parameters_and_left_as_it_was(rng):
    layer = ta.nn.SelfAttention(4, rng=0)
    before = layer.state_dict()
    x = rng.normal(size=(3, 4))
    loss = ta.sum(layer(x))
    report = check_gradients(layer, x)
    assert report and {"W_q", "W_k", "W_v", "x"} <= {row.input for row in report.rows}
    for name, array in layer.state_dict().items():
        np.testing.assert_array_equal(array, before[name])
    loss.backward()  # a graph recorded before is not stale


def test_an_op_is_checked_at_its_own_samples_or_at_given_numbers():
    assert check_gradients(REGISTRY["matmul"])
    assert check_gradients(REGISTRY["softmax"], SQUARE, 1, None)
    assert check_gradients(WRONG_SOFTMAX).blame.op == "softmax"


def test_what_is_not_a_floating_point_number_is_passed_on(rng):
    def f(x, keep, ids, word, times=1):
        assert keep.dtype == bool and ids.dtype == int and word == "sum" and times == 2
        return ta.softmax(x[ids], keep=keep) * times

    keep = np.array([[True, False], [True, True]])
    assert check_gradients(f, SQUARE, keep, np.array([1, 0]), "sum", 2)


def test_several_results_in_tuples_and_dicts_are_all_checked():
    wrong = altered(REGISTRY["tanh"], vjps=(lambda g, y, x: g,))
    assert check_gradients(lambda x: (ta.exp(x), {"a": ta.sin(x)}), SQUARE)
    assert not check_gradients(lambda x: (ta.exp(x), {"a": ta.apply(wrong, (x,), ())}), SQUARE)


def test_a_kink_at_the_point_is_called_a_kink_and_is_no_fault():
    report = check_gradients(ta.relu, np.array([0.0, 1.0, -1.0]))
    assert report
    assert any(
        "kink at x[0] = 0 of relu" in note and "slope 0 on the left, 1 on the right" in note for note in report.notes
    )


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (ta.abs, [0.0, 2.0]), (lambda x: ta.maximum(x, 1.0), [1.0, 3.0]), (ta.max, [2.0, 2.0, 1.0]), (ta.norm, [0.0, 0.0]),
        (lambda x: ta.clip(x, -1.0, 1.0), [1.0, 0.0]), (lambda x: ta.std(x), [1.0, 1.0]),
    ],
    ids=["abs", "maximum", "max", "norm", "clip", "std"],
)  # fmt: skip
def test_documented_choices_at_kinks_pass(f, x):
    report = check_gradients(f, np.array(x))
    assert report and any("kink" in note for note in report.notes), str(report)


def test_a_wrong_slope_beside_a_kink_is_still_wrong():
    leaky = altered(REGISTRY["relu"], vjps=(lambda g, y, x: np.where(x > 0, g * 1.01, 0.0),))
    assert check_gradients(lambda x: ta.apply(leaky, (x,), ()), np.array([0.0, 1.0])).verdict == "wrong"


def test_a_slope_that_is_none_of_both_sides_is_wrong_even_at_a_kink():
    odd = altered(REGISTRY["relu"], vjps=(lambda g, y, x: np.where(x > 0, g, np.where(x == 0, 5 * g, 0.0)),))
    assert check_gradients(lambda x: ta.apply(odd, (x,), ()), np.array([0.0, 1.0])).verdict == "wrong"


def test_float32_is_held_to_what_float32_allows(rng):
    x = rng.normal(size=(4, 4)).astype(np.float32)
    report = check_gradients(lambda x: ta.sum(ta.softmax(x @ x.mT)), x)
    assert report and any("float32" in note for note in report.notes)
    slightly = altered(
        REGISTRY["softmax"],
        vjps=(lambda g, y, x, a, k: REGISTRY["softmax"].vjps[0](g, y, x, a, k) * np.float32(1.001),),
    )
    assert not check_gradients(lambda x: ta.apply(slightly, (x,), (1, None)), x)


def test_a_number_that_float32_cannot_hold_is_said_to_be_that():
    report = check_gradients(lambda a, b: a / b, np.float32([1e-30]), np.float32([1e-30]))
    assert report and any("too large or too small" in note for note in report.notes)


def test_chance_is_recognised():
    chance = np.random.default_rng(5)  # goes on from call to call, so no two calls drop the same entries
    report = check_gradients(lambda x: ta.dropout(x, 0.5, chance), np.linspace(1, 2, 40).reshape(8, 5))
    assert report and any("chance" in note for note in report.notes)


def test_a_constant_function_is_said_to_be_constant():
    report = check_gradients(lambda x: ta.tensor(3.0), SQUARE)
    assert report and any("constant" in note for note in report.notes)


def test_a_softmax_that_is_summed_is_constant_and_right():
    assert check_gradients(lambda x: ta.sum(ta.softmax(x)), SQUARE)


def test_a_result_that_is_not_finite_cannot_be_checked_and_its_maker_is_named():
    report = check_gradients(lambda x: ta.sqrt(ta.log(x - 2)), np.array([1.0, 4.0]))
    assert report.verdict == "undecided" and not report
    assert any("log" in note and "nan" in note and "entry [0]" in note for note in report.notes)


def test_a_nan_gradient_of_a_finite_result_is_wrong():
    leaks = altered(REGISTRY["where"], vjps=(lambda g, y, a, b, c: g * c / c, REGISTRY["where"].vjps[1]))
    report = check_gradients(lambda x: ta.apply(leaks, (x, x * 2), (np.array([True, False]),)), np.array([1.0, 2.0]))
    assert report.verdict == "wrong" and report.blame.op == "where"


def test_second_order_finds_a_rule_that_is_only_right_once():
    once = altered(REGISTRY["sin"], vjps=(lambda g, y, x: g * np.cos(np.asarray(getattr(x, "data", x))),))

    def f(x):
        return ta.apply(once, (x * 2.0,), ())

    assert check_gradients(f, np.array([1.0, 2.0]), order=1)
    report = check_gradients(f, np.array([1.0, 2.0]), order=2)
    assert report.verdict == "wrong" and report.order == 2
    assert "of order 2 is WRONG" in str(report)


def test_third_order_and_single_modes():
    f = lambda x: ta.sum(ta.exp(x) * x)
    report = check_gradients(f, np.array([0.5, -0.5]), order=3, modes=("reverse",))
    assert (
        report and {row.order for row in report.rows} == {1, 2, 3} and {row.way for row in report.rows} == {"reverse"}
    )


def test_a_tolerance_of_ones_own_is_taken():
    near = altered(REGISTRY["tanh"], vjps=(lambda g, y, x: (g - g * (y * y)) * 1.001,))
    f = lambda x: ta.apply(near, (x,), ())
    assert not check_gradients(f, SQUARE, order=1)
    rows = check_gradients(f, SQUARE, order=1, rtol=0.01).rows
    assert all(row.passed for row in rows)


def test_what_cannot_be_checked_is_refused_in_words():
    with pytest.raises(ta.ArgumentError, match="nothing to differentiate"):
        check_gradients(lambda x: x, 3)
    with pytest.raises(ta.ArgumentTypeError, match=r"(?s)returned a float.*check_rule"):
        check_gradients(lambda x: 1.0, SQUARE)
    with pytest.raises(ta.ArgumentError, match="order"):
        check_gradients(ta.exp, SQUARE, order=0)
    with pytest.raises(ta.ArgumentError, match="modes"):
        check_gradients(ta.exp, SQUARE, modes=("sideways",))


def test_an_error_in_the_function_comes_through():
    with pytest.raises(ta.ShapeError):
        check_gradients(lambda a: a @ np.ones((3, 3)), SQUARE)


def test_a_rule_that_raises_is_blamed():
    def broken(g, y, x):
        raise KeyError("lost")

    report = check_gradients(lambda x: ta.apply(altered(REGISTRY["exp"], vjps=(broken,)), (x,), ()), SQUARE)
    assert report.verdict == "wrong" and "KeyError" in report.blame.problem


def test_the_report_is_plain_data_too(failed):
    import json

    data = json.loads(json.dumps(failed.as_dict()))
    assert data["verdict"] == "wrong" and data["blame"]["op"] == "softmax"
    assert data["blame"]["mistake"]["name"] == failed.mistake
    assert any(not row["passed"] for row in data["rows"])


def test_checking_is_deterministic(qkv):
    first, second = (str(check_gradients(attention_with(REGISTRY["softmax"]), *qkv)) for _ in range(2))
    assert first == second
