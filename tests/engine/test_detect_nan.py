"""``detect_nan`` stops at the operation that first makes a nan or an infinity, and at no other."""

import warnings

import numpy as np
import pytest
from support import close

import tinyattn as ta

HERE = r"test_detect_nan\.py:\d+"


def leaf(*numbers):
    return ta.tensor(np.array(numbers), requires_grad=True)


def caught(match):
    return pytest.raises(ta.NanError, match=match)


def test_the_inner_root_is_blamed_not_the_outer():
    x = leaf(4.0, 1.0)
    with ta.detect_nan(), caught(rf"(?s)^sqrt first made nan, at entry \[1\].*went in .* = -1\..*{HERE}"):
        ta.sqrt(ta.sqrt(x - 2))


def test_log_of_zero_is_blamed_not_the_product_with_zero():
    x = leaf(1.0, 0.0)
    with ta.detect_nan(), caught(r"(?s)^log first made -inf, at entry \[1\].*went in x = 0\."):
        ta.log(x) * 0


def test_zero_by_zero_in_a_masked_row():
    scores, keep = (
        ta.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True),
        np.array([[True, False], [False, False]]),
    )
    weights = ta.exp(scores) * keep
    total = ta.sum(weights, 1, keepdims=True)
    with ta.detect_nan(), caught(r"(?s)^divide first made nan, at entry \[1, 0\].*weights = 0, total = 0"):
        weights / total


def test_zero_times_infinity_and_the_difference_of_infinities():
    x = ta.tensor([np.inf, 1.0])
    with ta.detect_nan(), caught("^multiply first made nan"):
        x * 0
    with ta.detect_nan(), caught("^subtract first made nan"):
        x - x


@pytest.mark.parametrize(
    ("make", "op", "word"),
    [
        (lambda x: ta.exp(x * 1000), "exp", "inf"),
        (lambda x: 1 / (x - 1), "divide", "inf"),
        (lambda x: (x - 1) ** -1, "integer_power", "inf"),
        (lambda x: (x - 2) ** 0.5, "power", "nan"),
        (lambda x: x * 1e308 * 1e10, "multiply", "inf"),
        (lambda x: ta.sum(x * 1e308) * 1 + 0, "sum", "inf"),
        (lambda x: ta.reshape(x * 1e200, 1, 2) @ ta.reshape(x * 1e200, 2, 1), "matmul", "inf"),
        (lambda x: ta.prod(x * 1e200), "prod", "inf"),
    ],
    ids=["exp", "divide", "integer_power", "power", "multiply", "sum", "matmul", "prod"],
)
def test_overflow_and_poles_are_found_where_they_arise(make, op, word):
    with ta.detect_nan(), caught(f"^{op} first made {word}"):
        make(leaf(1.0, 1.0))


@pytest.mark.parametrize(
    "spread",
    [
        lambda x: ta.softmax(x),
        lambda x: ta.log_softmax(x),
        lambda x: x @ np.ones((3, 3)),
        lambda x: ta.layer_norm(x, np.ones(3), np.ones(3)),
        lambda x: ta.sum(x),
        lambda x: ta.mean(x, keepdims=True) + x,
        lambda x: ta.scaled_dot_product_attention(x[None], x[None], x[None]),
        lambda x: ta.exp(x),
        lambda x: x[[2, 1, 0]],
        lambda x: ta.flip(x),
        lambda x: ta.norm(x),
        lambda x: ta.stack([x, x]).mT @ np.ones(2),
    ],
    ids="softmax log_softmax matmul layer_norm sum mean attention exp index flip norm stack".split(),
)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_op_that_only_passes_on_what_it_was_given_is_not_blamed_for_a_nan(spread, bad):
    """A nan that was in the data is the data's; infinities may meet and make a nan, which is then blamed."""
    x = ta.tensor([1.0, bad, 2.0], requires_grad=True)
    with ta.detect_nan():
        if np.isnan(bad):
            spread(x)
            return
        try:
            spread(x)
        except ta.NanError as error:
            assert "first made nan" in str(error)


def test_nothing_happens_where_everything_is_finite_or_the_block_has_ended():
    x = leaf(1.0, 2.0)
    with ta.detect_nan():
        y = ta.sum(ta.log(x))
        y.backward()
    close(x.grad, 1 / x.data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(ta.log(x - 5).data).all()


def test_integers_are_let_through():
    with ta.detect_nan():
        ta.tensor([1, 2]) * 2


@pytest.mark.parametrize(
    ("f", "at", "op"),
    [
        (lambda x: ta.sqrt(x), [4.0, 0.0], "sqrt"),
        (lambda x: ta.sqrt(x) * 3 + 1, [4.0, 0.0], "sqrt"),
        (lambda x: x**0.5, [4.0, 0.0], "power"),
    ],
    ids=["root", "chain", "power"],
)
def test_the_backward_pass_blames_the_op_whose_slope_is_infinite(f, at, op):
    x = leaf(*at)
    y = ta.sum(f(x))
    with (
        ta.detect_nan(),
        caught(rf"(?s)^the backward pass of {op} first made inf, at entry \[1\].*x is 0.*{HERE}"),
    ):
        y.backward()
    assert x.grad is None


def test_the_where_trick_is_not_blamed():
    x = leaf(4.0, 0.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = ta.sum(ta.where(x.data > 0, ta.sqrt(x), 0.0))
    with ta.detect_nan():
        y.backward()
    close(x.grad, [0.25, 0.0, 0.0])


def test_second_order_is_watched_too():
    x = leaf(4.0, 0.0)
    y = ta.sum(x**1.5)
    with ta.detect_nan():
        slope = ta.grad(y, x, create_graph=True)
    with ta.detect_nan(), caught("(?s)backward pass of power first made inf"):
        ta.grad(ta.sum(slope), x)


def test_inside_composed_functions_the_primitive_is_named_with_the_learner_s_line():
    x = leaf(1.0, 0.0)
    with ta.detect_nan(), caught(rf"(?s)^divide first made inf, at entry \[1\].*{HERE}"):
        ta.reciprocal(x)
    with ta.detect_nan(), caught(rf"(?s)^log first made -inf.*{HERE}"):
        ta.logsumexp(ta.log(x))


def test_the_blocks_nest_and_work_inside_no_grad():
    x = leaf(-1.0)
    with ta.detect_nan():
        with ta.detect_nan():
            pass
        with ta.no_grad(), caught("^log first made nan"):
            ta.log(x)
