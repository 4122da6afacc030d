"""Rules in whatever form people write them, and functions that do what they should not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.check import check_gradients, check_rule
from tinyattn.ops import Op

RNG = np.random.default_rng(3)
X, W, B = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2)), RNG.normal(size=2)
POSITIVE = RNG.uniform(0.5, 2.0, (3, 4))


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# -- forms ----------------------------------------------------------------------------------------------------------


class Layer:
    """What keeps its input on the object, as lecture notes do."""

    def __init__(self, factor=2):
        self.factor = factor

    def forward(self, x):
        self.x = x
        return x**2

    def backward(self, g):
        return self.factor * g * self.x


def affine(x, w, b):
    return x @ w + b, (x, w)


def affine_backward(g, cache):
    x, w = cache
    return g @ w.T, x.T @ g, g.sum(axis=0)


def test_a_backward_of_the_gradient_alone_is_called_after_the_forward():
    right, wrong = Layer(), Layer(factor=3)
    assert check_rule(right.forward, right.backward, X).exact == "equal"
    assert check_rule(wrong.forward, wrong.backward, X).mistake == "off by a constant factor"


def test_a_cache_goes_from_forward_to_backward():
    assert check_rule(affine, affine_backward, (X, W, B), saves=True).exact == "equal"
    wrong = lambda g, cache: (g @ cache[1].T, cache[0].T @ g, g)
    report = check_rule(affine, wrong, (X, W, B), saves=True)
    assert report.blame.input == "b" and report.mistake == "missing sum over a broadcast axis"
    with pytest.raises(ta.ArgumentError, match="saves=True the forward returns two"):
        check_rule(lambda x: x, lambda g, cache: g, X, saves=True)


def test_several_results_have_a_gradient_each():
    both = lambda x: (x**2, x.sum())
    assert check_rule(both, lambda g, x: 2 * x * g[0] + g[1], X).exact == "equal"
    assert check_rule(both, lambda g, y, x: 2 * x * g[0] + g[1], X)
    assert check_rule(both, lambda g, x: 2 * x * g[0], X).verdict == "wrong"
    assert check_rule(lambda x: [x.sum(), x.mean()], lambda g, x: (g[0] + g[1] / x.size) * np.ones_like(x), X)


def test_arguments_by_star_are_told_apart_by_those_before_them():
    product = lambda *xs: xs[0] * xs[1]
    assert check_rule(product, lambda g, *xs: (g * xs[1], g * xs[0]), (X, POSITIVE))
    assert check_rule(product, lambda g, y, *xs: (g * xs[1], g * xs[0]), (X, POSITIVE))
    assert check_rule(lambda x, k=2: x * k, lambda g, x, k=2: g * k, X)


@pytest.mark.parametrize("sample", [3, 3.0, [1, 2], [1.0, 2.0], np.array([1, 2, 3]), np.array(2.0)], ids=str)
def test_whole_numbers_lists_and_single_numbers_are_points_too(sample):
    assert check_rule(lambda x: x**2, lambda g, x: 2 * g * x, sample)


def test_results_that_are_plain_numbers_or_whole_numbers():
    assert check_rule(lambda x: float(x.sum()), lambda g, x: g * np.ones_like(x), X)
    report = check_rule(lambda x: (x > 0).sum(), lambda g, x: np.zeros_like(x), X)
    assert report and any("constant" in note for note in report.notes)
    assert check_rule(lambda x: (x > 0).sum(), lambda g, x: g * np.ones_like(x), X).verdict == "wrong"


def test_an_empty_array_among_others_is_no_obstacle():
    joined = lambda a, b: np.concatenate([a, b])
    assert check_rule(joined, lambda g, a, b: (g[:0], g), (np.zeros((0, 2)), np.ones((3, 2))))
    with pytest.raises(ta.ArgumentError, match="are empty"):
        check_rule(lambda x: x, lambda g, x: g, np.zeros((0, 2)))


@pytest.mark.parametrize(
    ("result", "said"),
    [(None, "NoneType"), ("words", "str"), ((X, {"x": X}), "saves=True"), (np.array(["a"]), "ndarray")],
    ids=["none", "text", "cache", "letters"],
)
def test_a_forward_without_numbers_is_refused_in_words(result, said):
    with pytest.raises(ta.ArgumentTypeError, match=said):
        check_rule(lambda x: result, lambda g, x: g, X)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (None, "a NoneType where a tuple of 2"),
        ({"a": X}, "a dict where a tuple of 2"),
        ((X,), "1 gradients for 2 inputs"),
    ],
    ids=["none", "dict", "one"],
)
def test_a_backward_that_gives_something_else_is_blamed(made, said):
    report = check_rule(lambda a, b: a * b, lambda g, a, b: made, (X, X))
    assert report.verdict == "wrong" and said in report.blame.problem


# -- what writes where it should not --------------------------------------------------------------------------------


def test_writing_into_what_others_need_is_noted_and_does_not_spoil_the_check():
    def shifted(x):
        x -= x.max()
        return np.exp(x)

    def in_place(g, y, x):
        g *= y
        return g

    before = X.copy()
    report = check_rule(shifted, lambda g, y, x: g * y - np.where(x == x.max(), (g * y).sum(), 0.0), X)
    assert report and any("forward writes into its input x" in note for note in report.notes)
    report = check_rule(np.exp, in_place, X)
    assert report and any("writes into the incoming gradient g" in note for note in report.notes)
    np.testing.assert_array_equal(X, before)


def made(name, forward, rules, definition="", **options):
    return Op(name, forward, rules, definition, sample=lambda rng: [((rng.normal(size=3),), ())], **options)


def test_a_rule_of_an_op_that_writes_into_what_it_is_given_is_blamed_for_that():
    op = made("doubling", lambda x: x * 2, (lambda g, y, x: np.multiply(g, 2, out=g),))
    report = check_gradients(op)
    assert report.verdict == "wrong" and "writes into the incoming gradient" in report.blame.problem
    op = made("square", lambda x: x * x, (lambda g, y, x: np.multiply(x, 2 * g, out=x),))
    assert "writes into its input" in check_gradients(op).blame.problem


# -- records that are not in order ----------------------------------------------------------------------------------


def test_records_that_are_not_in_order_are_refused_in_words():
    right = (lambda g, y, x: 2 * g,)
    with pytest.raises(ta.ArgumentError, match="has no sample"):
        check_gradients(Op("bare", lambda x: 2 * x, right, "", sample=None))
    with pytest.raises(ta.ArgumentError, match="1 rules for 2 inputs"):
        check_gradients(made("few", lambda a, b: a * b, right, inputs=("a", "b")), X, X)
    with pytest.raises(ta.ArgumentTypeError, match="gives list"):
        check_gradients(made("list", lambda x: [1.0], right))
    with pytest.raises(ta.ArgumentTypeError, match="gives int64"):
        check_gradients(made("whole", lambda x: (x > 0).astype(np.int64), right))
    with pytest.raises(ta.ArgumentTypeError, match="cannot be called"):
        check_gradients(3, X)
    with pytest.raises(ta.ArgumentError, match=r"1\.0 instead of 1"):
        check_gradients(lambda x: x, np.array([1, 2]))


def test_a_definition_that_cannot_be_read_is_noted():
    report = check_gradients(made("odd", lambda x: 2 * x, (lambda g, y, x: 2 * g,), "y[i = "))
    assert report and any("definition of odd cannot be read" in note for note in report.notes)


def test_no_rule_for_an_input_that_matters_is_blamed():
    op = made("product", lambda a, b: a * b, (lambda g, y, a, b: g * b, None), inputs=("a", "b"))
    report = check_gradients(op, X, POSITIVE)
    assert report.verdict == "wrong" and report.blame.input == "b" and report.mistake == "detached branch"


# -- numbers of all sizes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-310, 1e-150, 1e-8, 1.0, 1e8, 1e150])
def test_right_and_wrong_are_told_apart_at_every_size_with_the_true_values(scale):
    assert check_rule(lambda x: x * 3, lambda g, x: 3 * g, X * scale)
    report = check_rule(lambda x: x * 3, lambda g, x: 2 * g, X * scale)
    assert report.verdict == "wrong" and report.blame.expected == pytest.approx(1.5 * report.blame.found, rel=1e-4)
    if scale > 1e-300:
        report = check_rule(lambda x: x**2, lambda g, x: 3 * g * x, X * scale)
        assert report.verdict == "wrong" and report.blame.found == pytest.approx(1.5 * report.blame.expected, rel=1e-4)


def test_entries_of_all_sizes_side_by_side():
    x = np.array([1e-8, 1.0, 1e8])
    assert check_rule(lambda x: x**2, lambda g, x: 2 * g * x, x)
    report = check_rule(lambda x: x**2, lambda g, x: np.where(x < 1e-3, 3, 2) * g * x, x)
    assert report.verdict == "wrong" and report.blame.entry == (0,)


def test_chance_inside_a_forward_cannot_be_checked():
    rng = np.random.default_rng(0)
    report = check_rule(lambda x: x * rng.random(), lambda g, x: g, X)
    assert report.verdict == "undecided" and any("something else each time" in note for note in report.notes)


def test_a_kink_a_little_way_off_does_not_mislead_the_differences():
    x = np.array([1e-3, 1.0, -1.0])
    noisy = lambda x: ta.sum(ta.relu(x) * 38.0 + ta.tanh(x))
    report = check_gradients(noisy, x.astype(np.float32))
    assert report and not 0.5 < report.remainder < 1.5


def test_a_step_beside_the_point_is_no_infinite_slope():
    report = check_rule(np.floor, lambda g, x: 0 * g, np.array([0.98, -1.4]))
    assert report and not any("infinite" in note for note in report.notes)


# -- places and axes ------------------------------------------------------------------------------------------------

SQUARE = RNG.normal(size=(3, 3))


@pytest.mark.parametrize(
    ("forward", "backward", "sample", "name"),
    [
        (lambda x: x.T, lambda g, x: g, SQUARE, "transposed"),
        (lambda x: x.T, lambda g, x: g, X, "transposed"),
        (lambda x: x[:, ::-1], lambda g, x: g, X, "wrong place"),
        (lambda x: np.sort(x, axis=-1), lambda g, x: g, X, "wrong place"),
        (lambda x: np.cumsum(x, axis=-1), lambda g, x: np.cumsum(g, axis=-1), X, "transposed"),
        (lambda x: x[:, 1:], lambda g, x: g, X, "wrong shape"),
        (lambda x, b: x + b, lambda g, x, b: (g, g.sum(axis=0, keepdims=True)), (X, X[0]), "wrong shape"),
        (lambda x, b: x + b, lambda g, x, b: (g, g.sum()), (X, X[0]), "summed too much"),
        (lambda x, b: x + b, lambda g, x, b: (g, g.sum(axis=1)), (SQUARE, SQUARE[0]), "wrong axis"),
        (lambda x: np.log(np.exp(x).sum(axis=-1)), lambda g, y, x: g * np.exp(x - y[:, None]), SQUARE, "wrong axis"),
        (lambda x: x.max(axis=-1), lambda g, x: np.ones_like(x) * g[:, None], X, "local slope left out"),
        (lambda x: x.mean(axis=0), lambda g, x: np.ones_like(x) * g, X, "gradient of the mean without 1/n"),
        (lambda a, b: np.concatenate([a, b]), lambda g, a, b: (g[3:], g[:3]), (X, X[:2]), "gradients exchanged"),
        (lambda a, b: np.where(a > 0, a, b), lambda g, a, b: (g, g), (X, POSITIVE), "mask left out"),
        (lambda a, b: a**b, lambda g, y, a, b: (g * b * a ** (b - 1), g * y), (POSITIVE, POSITIVE + 1), "wrong power"),
        (lambda x: x.var(), lambda g, x: g * 2 * (x - x.mean()) / (x.size - 1), X, "off by a constant factor"),
    ],
)  # fmt: skip
def test_right_numbers_in_wrong_places_are_called_that(forward, backward, sample, name):
    report = check_rule(forward, backward, sample)
    assert report.verdict == "wrong" and report.mistake == name, str(report)


def test_a_factor_is_told_with_all_that_it_may_be():
    report = check_rule(lambda x: x.var(), lambda g, x: g * (x - x.mean()) / x.size, X)
    assert "a factor 2 is missing, or 1/√4" in str(report)


def test_a_product_that_is_right_is_not_called_transposed():
    relu_layer = lambda x, w: np.maximum(x @ w, 0)
    report = check_rule(relu_layer, lambda g, x, w: (g @ w.T, x.T @ g), (X, W))
    assert report.verdict == "wrong" and report.mistake != "transposed"


# -- what a complex step, and what float32, must not mislead --------------------------------------------------------


@pytest.mark.parametrize("share", [1e-6, 1e-12, 1e-14])
def test_a_part_that_drops_the_imaginary_one_misleads_nobody(share):
    x = np.array([0.5, -1.0, 2.0])
    forward = lambda x: np.tanh(x) + share * np.abs(x)
    assert check_rule(forward, lambda g, x: g * (1 - np.tanh(x) ** 2 + share * np.sign(x)), x)
    assert check_gradients(lambda x: ta.sum(ta.tanh(x) + share * ta.abs(x)), x)


def test_a_stable_loss_far_out_is_right():
    targets = (RNG.random((3, 4)) > 0.5) * 1.0
    loss = lambda x: np.mean(np.maximum(x, 0) - x * targets + np.log1p(np.exp(-np.abs(x))))
    rule = lambda g, x: g * (1 / (1 + np.exp(-x)) - targets) / x.size
    for seed in range(4):
        report = check_rule(loss, rule, np.random.default_rng(seed).normal(size=(3, 4)) * 30)
        assert report, str(report)


@pytest.mark.parametrize("scale", [1e-6, 0.01, 1.0, 30.0])
def test_float32_with_what_is_written_in_float64_or_in_place(scale):
    q, k, v = (np.random.default_rng(i).normal(size=(3, 4)).astype(np.float32) * np.float32(scale) for i in range(3))

    def weights(q, k):
        e = np.exp(q @ k.T / np.sqrt(q.shape[1]))  # the root is a float64, and so is what comes of it
        return e / e.sum(axis=-1, keepdims=True)

    def backward(g, q, k, v):
        p = weights(q, k)
        dp = g @ v.T
        ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True)) / np.sqrt(q.shape[1])
        return ds @ k, ds.T @ q, p.T @ g

    def looked_up(g, table):
        out = np.zeros_like(table)
        np.add.at(out, [0, 2, 2, 1], g)
        return out

    assert check_rule(lambda q, k, v: weights(q, k) @ v, backward, (q, k, v))
    assert check_rule(lambda table: table[[0, 2, 2, 1]], looked_up, q).exact == "equal"


def test_slices_that_are_added_to_write_through_and_are_decided_exactly():
    forward = lambda x: x[:, :-1] * 0.3 + x[:, 1:] * 0.7

    def right(g, x):
        d = np.zeros_like(x)
        d[:, :-1] += g * 0.3
        row = d[0]
        row[1:] += g[0] * 0.7
        d[1:, 1:] += g[1:] * 0.7
        return d

    def wrong(g, x):
        d = np.zeros_like(x)
        d[:, :-1] += g * 0.3
        d[:, 1:] = g * 0.7
        return d

    assert check_rule(forward, right, X).exact == "equal"
    assert check_rule(forward, wrong, X).exact == "different"
