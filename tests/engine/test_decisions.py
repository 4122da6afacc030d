"""What tinyattn decides where engines differ: ties, kinks, branches not taken, rows with nothing to see."""

import warnings

import numpy as np
import pytest
from support import close, differences, gradients

import tinyattn as ta

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def leaf(*numbers):
    return ta.tensor(np.array(numbers), requires_grad=True)


def gradient(f, *numbers):
    return gradients(lambda x: ta.sum(f(x)), [np.array(numbers)], None)[0]


# -- kinks and ties --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "at", "slope"),
    [
        (ta.relu, [0.0], [0.0]),
        (ta.abs, [0.0, -0.0], [0.0, 0.0]),
        (lambda x: ta.clip(x, -1, 1), [-1.0, 1.0, 0.0, 2.0], [0.0, 0.0, 1.0, 0.0]),
        (ta.norm, [0.0, 0.0], [0.0, 0.0]),
        (ta.std, [3.0, 3.0, 3.0], [0.0, 0.0, 0.0]),
        (lambda x: ta.std(x, ddof=1), [3.0, 3.0], [0.0, 0.0]),
        (ta.max, [1.0, 5.0, 5.0], [0.0, 0.5, 0.5]),
        (ta.min, [1.0, 1.0, 1.0, 5.0], [1 / 3, 1 / 3, 1 / 3, 0.0]),
        (lambda x: ta.maximum(x, 2.0), [2.0, 3.0], [0.5, 1.0]),
        (lambda x: ta.minimum(x, 2.0), [2.0, 3.0], [0.5, 0.0]),
        (lambda x: ta.leaky_relu(x, 0.1), [0.0], [0.1]),
        (lambda x: x**0, [0.0, 2.0], [0.0, 0.0]),
        (lambda x: x**1, [0.0], [1.0]),
        (lambda x: x**2, [0.0], [0.0]),
        (lambda x: ta.power(x, 2.0), [0.0, -3.0], [0.0, -6.0]),
        (ta.prod, [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
        (ta.prod, [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
        (lambda x: ta.cosine_similarity(x, [1.0, 0.0]), [0.0, 0.0], [1e8, 0.0]),
    ],
    ids="relu abs clip norm std std-ddof max-tie min-tie maximum-tie minimum-tie leaky power0 power1 power2 "
    "float-power prod-zero prod-two-zeros cosine".split(),
)
def test_slope_at_a_point_without_a_derivative(f, at, slope):
    close(gradient(f, *at), slope)


def test_a_tie_of_two_tensors_is_shared():
    for f in (ta.maximum, ta.minimum):
        a, b = gradients(lambda a, b, f=f: ta.sum(f(a, b)), [np.ones(2), np.ones(2)], None)
        close(a, [0.5, 0.5])
        close(b, [0.5, 0.5])


def test_ties_are_counted_exactly_in_half_precision():
    x = ta.tensor(np.ones(3000, "float16"), requires_grad=True)
    ta.max(x).backward()
    assert (x.grad > 0).all() and x.grad.dtype == np.float16


# -- slopes that are infinite --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "safe", "bad"),
    [
        (ta.sqrt, 4.0, 0.0),
        (ta.sqrt, 4.0, -1.0),
        (ta.log, 2.0, 0.0),
        (ta.log, 2.0, -1.0),
        (lambda x: 1 / x, 2.0, 0.0),
        (lambda x: x**-2, 2.0, 0.0),
        (lambda x: x**0.5, 4.0, 0.0),
        (lambda x: x**0.5, 4.0, -1.0),
        (ta.exp, 1.0, 1000.0),
        (lambda x: ta.log(1 + ta.exp(x)), 1.0, 1000.0),
        (lambda x: x * ta.log(x), 2.0, 0.0),
        (lambda x: ta.sqrt(ta.sqrt(x)), 2.0, 0.0),
        (lambda x: x / x, 2.0, 0.0),
        (ta.reciprocal, 2.0, 0.0),
        (lambda x: 2.0 ** (1 / x), 2.0, 0.0),
    ],
    ids="sqrt-0 sqrt-neg log-0 log-neg inverse power-2 power-half power-half-neg exp-over softplus xlogx "
    "root-root x/x reciprocal nested".split(),
)
def test_the_branch_not_taken_contributes_exactly_zero(f, safe, bad):
    x = leaf(safe, bad)
    y = ta.where([True, False], f(x), 0.0)
    first = ta.grad(ta.sum(y), x, create_graph=True)
    want = differences(lambda v: f(ta.tensor(v)).data, [np.array(safe)])[0]
    close(first, [want, 0.0], rtol=1e-7)
    if first.requires_grad:
        second = ta.grad(ta.sum(first), x)
        assert np.isfinite(second.data).all() and second.data[1] == 0.0


def test_both_branches_of_where_are_independent():
    x = leaf(4.0, -4.0)
    y = ta.where(x.data > 0, ta.sqrt(x), ta.sqrt(-x))
    close(ta.grad(ta.sum(y), x), [0.25, -0.25])


def test_an_infinite_slope_that_is_asked_for_is_infinite():
    for f, at in ((ta.sqrt, 0.0), (ta.log, 0.0)):
        assert gradient(f, at)[0] == np.inf
    assert gradient(lambda x: 1 / x, 0.0)[0] == -np.inf


def test_a_cotangent_of_zero_alone_does_not_hide_a_mixed_derivative():
    """d2 (w sqrt(x)) / dw dx at w = 0 is 1 / (2 sqrt(x)); masking wherever the cotangent is 0 makes it 0."""
    for f, want in (
        (ta.sqrt, lambda x: 0.5 / np.sqrt(x)),
        (ta.log, lambda x: 1 / x),
        (lambda x: 1 / x, lambda x: -1 / x**2),
        (lambda x: x**0.5, lambda x: 0.5 / np.sqrt(x)),
        (lambda x: x**-1, lambda x: -1 / x**2),
        (ta.exp, np.exp),
    ):
        w, x = leaf(0.0), leaf(4.0)
        by_x = ta.grad(ta.sum(w * f(x)), x, create_graph=True)
        close(by_x, [0.0])
        close(ta.grad(by_x, w), want(x.data))


@pytest.mark.parametrize("f", [ta.norm, ta.std], ids=["norm", "std"])
def test_second_order_at_the_kink_of_a_root_is_finite(f):
    x = leaf(0.0, 0.0)
    slope = ta.grad(f(x) + ta.sum(x * x), x, create_graph=True)
    close(slope, [0.0, 0.0])
    assert np.isfinite(ta.grad(ta.sum(slope), x).data).all()


# -- rows with nothing to see ----------------------------------------------------------------------------------------


def qkv(n=3, m=4):
    rng = np.random.default_rng(2)
    return [rng.normal(size=shape) for shape in ((n, 2), (m, 2), (m, 3))]


def test_a_query_that_may_attend_to_nothing_gets_zeros_and_no_gradient():
    keep = np.array([[True, True, False, True], [False] * 4, [True] * 4])
    q, k, v = map(lambda x: ta.tensor(x, requires_grad=True), qkv())
    y = ta.scaled_dot_product_attention(q, k, v, keep=keep)
    assert not y.data[1].any()
    y.backward(np.ones(y.shape))
    assert not q.grad[1].any()
    assert all(np.isfinite(t.grad).all() for t in (q, k, v))
    weights = ta.softmax(q @ k.mT, keep=keep)
    assert not weights.data[1].any()
    close(weights.data.sum(1), [1.0, 0.0, 1.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
def test_a_key_hidden_from_every_query_is_not_read_whatever_it_holds(bad):
    keep = np.array([True, True, False, True])
    q, k, v = qkv()
    g = np.ones((3, 3))
    f = lambda q, k, v: ta.scaled_dot_product_attention(q, k, v, keep=keep)
    want_y, want = f(*map(ta.tensor, (q, k, v))).data, gradients(f, [q, k, v], g)
    k[2], v[2] = bad, bad
    close(f(*map(ta.tensor, (q, k, v))), want_y, atol=0, rtol=1e-13)
    for got, clean in zip(gradients(f, [q, k, v], g), want, strict=True):
        close(got, clean, rtol=1e-12)
    assert not gradients(f, [q, k, v], g)[1][2].any() and not gradients(f, [q, k, v], g)[2][2].any()


def test_a_nan_seen_by_one_query_spreads_to_that_query_only():
    q, k, v = qkv()
    keep = np.ones((3, 4), bool)
    keep[1:, 0] = False
    k[0] = np.nan
    y = ta.scaled_dot_product_attention(*map(ta.tensor, (q, k, v)), keep=keep)
    assert np.isnan(y.data[0]).all() and np.isfinite(y.data[1:]).all()


def test_causal_is_aligned_at_the_end():
    q, k, v = qkv(2, 4)
    y = ta.scaled_dot_product_attention(*map(ta.tensor, (q, k, v)), causal=True)
    keep = np.array([[True, True, True, False], [True, True, True, True]])
    close(y, ta.scaled_dot_product_attention(*map(ta.tensor, (q, k, v)), keep=keep), rtol=1e-14)


def test_more_queries_than_keys_leave_the_first_queries_with_nothing():
    q, k, v = qkv(4, 2)
    y = ta.scaled_dot_product_attention(*map(ta.tensor, (q, k, v)), causal=True)
    assert not y.data[:2].any() and y.data[2:].any()


def test_the_future_does_not_leak_forward_or_backward():
    q, k, v = qkv(4, 4)
    f = lambda q, k, v: ta.scaled_dot_product_attention(q, k, v, causal=True)
    before = f(*map(ta.tensor, (q, k, v))).data
    k2, v2 = k.copy(), v.copy()
    k2[3], v2[3] = 50.0, -50.0
    after = f(*map(ta.tensor, (q, k2, v2))).data
    np.testing.assert_array_equal(before[:3], after[:3])
    g = np.zeros((4, 3))
    g[1] = 1.0
    for got in gradients(f, [q, k, v], g)[1:]:
        assert not got[2:].any() and got[:2].any()


def test_softmax_of_a_row_of_minus_infinity_outside_attention_is_nan():
    x = ta.tensor([[-np.inf, -np.inf], [0.0, -np.inf]])
    y = ta.softmax(x).data
    assert np.isnan(y[0]).all()
    close(y[1], [1.0, 0.0])


def test_all_targets_ignored_is_a_loss_of_zero_with_gradient_zero():
    x = leaf([1.0, 2.0], [3.0, 4.0])
    for reduction in ("mean", "sum"):
        loss = ta.cross_entropy(x, [-1, -1], ignore_index=-1, reduction=reduction)
        assert float(loss) == 0.0
        assert not ta.grad(loss, x).data.any()


def test_an_ignored_row_may_hold_anything():
    x = ta.tensor([[1.0, 2.0], [np.nan, np.inf]], requires_grad=True)
    loss = ta.cross_entropy(x, [1, -1], ignore_index=-1)
    loss.backward()
    assert np.isfinite(float(loss)) and np.isfinite(x.grad).all() and not x.grad[1].any()


def test_large_scores_do_not_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in ("float16", "float32", "float64"):
            x = ta.tensor(np.array([3e4, 0.0, -3e4], dtype), requires_grad=True)
            for y in (
                ta.softmax(x),
                ta.log_softmax(x),
                ta.logsumexp(x),
                ta.cross_entropy(x, 0),
                ta.softplus(x),
                ta.sigmoid(x),
                ta.tanh(x),
            ):
                assert np.isfinite(y.data).all() and y.dtype == dtype
                y.backward(np.ones(y.shape))
                assert np.isfinite(x.grad).all()
            close(ta.sum(ta.softmax(x)), np.array(1.0, dtype))


def test_mask_is_boolean_and_true_means_may_be_attended():
    q, k, v = map(ta.tensor, qkv())
    with pytest.raises(
        ta.ArgumentTypeError,
        match=r"(?s)scaled_dot_product_attention: keep has dtype int64.*True means yes.*keep != 0",
    ):
        ta.scaled_dot_product_attention(q, k, v, keep=np.ones((3, 4), int))
    with pytest.raises(ta.ArgumentTypeError, match="softmax: keep has dtype float64"):
        ta.softmax(q @ k.mT, keep=np.zeros((3, 4)))


def test_dropout_is_seeded_scales_what_stays_and_is_the_input_when_evaluating():
    x = ta.tensor(np.ones(1000), requires_grad=True)
    y = ta.dropout(x, 0.25, rng=4)
    np.testing.assert_array_equal(y.data, ta.dropout(x, 0.25, rng=4).data)
    assert (y.data != ta.dropout(x, 0.25, rng=5).data).any()
    assert set(np.unique(y.data)) == {0.0, 1 / 0.75}
    ta.sum(y).backward()
    close(x.grad, y.data)
    assert ta.dropout(x, 0.25, rng=4, training=False) is x
    assert not ta.dropout(x, 1.0, rng=4).data.any()
    source = np.random.default_rng(4)
    assert (ta.dropout(x, 0.25, source).data != ta.dropout(x, 0.25, source).data).any()


def test_erf_against_numbers_from_a_table():
    close(
        ta.erf([0.0, 0.5, 1.0, -2.0, 6.0]),
        [0.0, 0.5204998778130465, 0.8427007929497149, -0.9953222650189527, 1.0],
        rtol=1e-14,
    )


def test_one_hot_rows_and_embedding_gather_the_same():
    table, ids = ta.tensor(np.arange(12.0).reshape(4, 3), requires_grad=True), np.array([[3, 0], [3, 3]])
    close(ta.one_hot(ids, 4) @ table, ta.embedding(table, ids), rtol=0)
    ta.sum(ta.embedding(table, ids)).backward()
    close(table.grad, np.array([1, 0, 0, 3])[:, None] * np.ones(3))
