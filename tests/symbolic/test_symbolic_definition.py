"""Definitions are read as the grammar says, fitted to shapes, and every forward is held to its own."""

import numpy as np
import pytest

from tinyattn.errors import ArgumentError, IndexRangeError, ShapeError
from tinyattn.ops import REGISTRY
from tinyattn.symbolic.definition import Group, Over, parse
from tinyattn.symbolic.entrywise import evaluate, output_shape
from tinyattn.symbolic.fitting import fit
from tinyattn.symbolic.operands import operands_of


@pytest.mark.parametrize("op", REGISTRY.values(), ids=lambda op: op.name)
def test_forward_agrees_with_definition(op):
    for inputs, params in op.sample(np.random.default_rng(3)):
        named = dict(zip(op.param_names, params, strict=True))
        text = op.definition_text(tuple(np.shape(x) for x in inputs), named)
        result = np.asarray(op(*inputs, *params))
        by_definition = evaluate(text, operands_of(op, inputs, named), {}, result.shape)
        np.testing.assert_allclose(result, by_definition, rtol=1e-13, atol=1e-13)


def test_a_forward_that_computes_something_else_is_noticed():
    """The check above must be able to fail: a mean is not a sum."""
    x = np.arange(6.0).reshape(2, 3)
    assert not np.allclose(x.mean(1), evaluate("y[i] = sum_j x[i,j]", {"x": x}))


def test_sum_binds_the_product_that_follows_up_to_plus():
    x = np.array([1.0, 2.0, 4.0])
    assert evaluate("y[] = sum_j x[j] / size(j) + 1", {"x": x}) == pytest.approx(7 / 3 + 1)
    assert evaluate("y[] = (sum_j x[j]) * 2 - sum_j x[j] * 3", {"x": x}) == -7


def test_power_binds_tighter_than_minus():
    assert evaluate("y[] = -x[]^2 + (2^(1/2))^2", {"x": 3.0}) == pytest.approx(-7)


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = [i > 0] * log(x[i])",
        "y[i] = (1 - [i == 0]) * log(x[i])",
        "y[i] = x[i] ^ x[i] / 0 * [i > 0] * 0 * [i == 9]",
    ],
)
def test_false_bracket_hides_nan(text):
    assert evaluate(text, {"x": [-1.0, np.e]})[0] == 0


def test_false_bracket_hides_an_entry_out_of_range():
    text = "y[i] = [i < 2] * a[i] + [i >= 2] * b[i - 2]"
    np.testing.assert_array_equal(evaluate(text, {"a": [1, 2], "b": [3]}, output_shape=(3,)), [1, 2, 3])
    with pytest.raises(IndexRangeError, match="outside"):
        evaluate("y[i] = b[i - 2]", {"b": [3]}, output_shape=(3,))


def test_dots_are_right_aligned_and_stretch_ones():
    a, b = np.arange(6.0).reshape(2, 1, 3), np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(evaluate("y[...] = a[...] + b[...]", {"a": a, "b": b}), a + b)
    assert evaluate("y[] = sum_... a[...]", {"a": a}) == 15


def test_plain_letters_are_never_stretched():
    with pytest.raises(ShapeError, match="index j runs over axes of lengths"):
        evaluate("y[i] = sum_j a[i,j] * b[j]", {"a": np.ones((2, 3)), "b": np.ones(1)})


def test_groups_split_and_merge_row_major():
    x = np.arange(12.0).reshape(2, 6)
    np.testing.assert_array_equal(
        evaluate("y[i,h,d] = x[i,(h d)]", {"x": x}, output_shape=(2, 2, 3)), x.reshape(2, 2, 3)
    )
    np.testing.assert_array_equal(evaluate("y[(i d)] = x[i,d]", {"x": x}), x.reshape(12))
    assert isinstance(parse("y[(i d)] = x[i,d]").output.indices[0], Group)


def test_whole_number_operands_are_index_functions():
    x, index = np.arange(8.0).reshape(4, 2), np.array([3, 0, 3])
    np.testing.assert_array_equal(evaluate("y[t,j] = x[index[t], j]", {"x": x}, {"index": index}), x[index])


def test_shape_rule_follows_from_the_definition():
    assert output_shape("y[...,i,k] = sum_j a[...,i,j] * b[...,j,k]", {"a": (5, 1, 2, 3), "b": (7, 3, 4)}) == (
        5,
        7,
        2,
        4,
    )
    assert output_shape("y[i,u] = sum_j x[i,j]", {"x": (2, 3)}) == (2, 1)
    with pytest.raises(ShapeError, match="cannot be told"):
        output_shape("y[i,h,d] = x[i,(h d)]", {"x": (2, 6)})
    with pytest.raises(ShapeError, match="but the result has shape"):
        fit("y[i,0] = x[i]", {"x": (2,)}, (2, 3))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("y = x[i]", "left side"),
        ("y[i] = x[i", "expected ','"),
        ("y[i] = x[i] x[i]", "do not know"),
        ("y[i] = maximum(x[i])", "takes 2 values"),
        ("y[i] = x[i] +", "ends too early"),
        ("y[i] = x[i] ? 2", "cannot read"),
    ],
)
def test_unreadable_text_is_answered_in_words(text, what):
    with pytest.raises(ArgumentError, match=what):
        parse(text)


def test_an_unknown_name_is_named():
    with pytest.raises(ArgumentError, match="mentions z"):
        evaluate("y[i] = z[i]", {"x": [1.0]})
    with pytest.raises(ArgumentError, match="mentions eps"):
        evaluate("y[i] = x[i] + eps", {"x": [1.0]})


def test_letters_are_indices_only_where_bound():
    value = parse("y[i] = sum_j n * x[i,j]").value
    assert isinstance(value, Over) and value.letters == ("j",)
    assert evaluate("y[i] = sum_j n * x[i,j]", {"x": [[1.0, 2.0]]}, {"n": 10}) == 30
