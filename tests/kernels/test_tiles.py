"""The fast forms of attention equal the plain one: every mask, sizes beside the tile's, large scores, both dtypes."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.kernels import attention, heads, short, threads, tiles

CLOSE = {"float32": 3e-5, "float64": 1e-12}


def textbook(q: Any, k: Any, v: Any, seen: Any, scale: float) -> Any:
    """Attention by its definition, in float64, with a loop over the queries."""
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    q, k, v = (np.broadcast_to(x, lead + x.shape[-2:]).astype(float) for x in (q, k, v))
    seen = np.broadcast_to(seen, (*lead, q.shape[-2], k.shape[-2]))
    y = np.zeros((*lead, q.shape[-2], v.shape[-1]))
    for place in np.ndindex(y.shape[:-1]):
        keys, values = k[place[:-1]][seen[place]], v[place[:-1]][seen[place]]
        if len(keys):
            scores = keys @ q[place] * scale
            e = np.exp(scores - scores.max())
            y[place] = e @ values / e.sum()
    return y


def arrays(dtype: str, lead_q: Any, lead_k: Any, n: int, m: int, d: int, d_v: int, size: float = 1.0) -> list[Any]:
    rng = np.random.default_rng(n * m + d)
    shapes = (*lead_q, n, d), (*lead_k, m, d), (*lead_k, m, d_v)
    sizes = size, 1.0, 1.0
    return [(factor * rng.normal(size=shape)).astype(dtype) for factor, shape in zip(sizes, shapes, strict=True)]


def masks(n: int, m: int) -> dict[str, tuple[Any, bool]]:
    """Every kind of mask: none, causal, by pair, by key, by query, both together, rows that see nothing."""
    rng = np.random.default_rng(n)
    by_pair = rng.random((n, m)) < 0.5
    nothing = by_pair.copy()
    nothing[[0, n // 2, n - 1]] = False
    by_key = np.arange(m) < m - 9
    return {
        "none": (None, False), "causal": (None, True), "pair": (by_pair, False), "pair and causal": (by_pair, True),
        "key": (by_key, False), "key and causal": (by_key[None], True), "query": (rng.random((n, 1)) < 0.5, False),
        "nothing": (nothing, False), "nothing at all": (np.zeros((n, m), bool), False),
        "block": (np.arange(n)[:, None] // 100 == np.arange(m) // 100, False),
    }  # fmt: skip


SIZES = [(257, 300), (300, 257), (700, 512), (40, 1700), (1700, 40), (1, 70_000)]


@pytest.mark.parametrize("kind", masks(5, 15))
@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("form", [short, tiles], ids=["short", "tiles"])
def test_a_fast_form_equals_the_plain_one_forward_and_backward(form: Any, n: int, m: int, kind: str) -> None:
    keep, causal = masks(n, m)[kind]
    for dtype, size in (("float32", 1.0), ("float64", 1.0), ("float64", 3000.0)):
        q, k, v = arrays(dtype, (), (), n, m, 8, 5, size)
        c = q.dtype.type(0.3)
        y, saved = form.forward(q, k, v, keep, causal, c)
        assert form is short or (saved.shifts is not None) == (size > 1)
        plain, kept = attention.plain_forward(q, k, v, keep, causal, c)
        g = np.random.default_rng(1).normal(size=y.shape).astype(dtype)
        ours = form.rule(g, y, saved, q, k, v, keep, causal, c)
        theirs = attention.plain_rule(g, plain, kept, q, k, v, keep, causal, c)
        for mine, other, like in zip((y, *ours), (plain, *theirs), (y, q, k, v), strict=True):
            assert mine.dtype == like.dtype and mine.shape == like.shape
            near = CLOSE[dtype] * max(1.0, size / 30)  # a score of thousands is itself rounded so much more
            assert np.abs(mine - other).max() <= near * max(1.0, np.abs(other).max())


POWERS = {"exp": (np.exp, 1.0), "exp2": (np.exp2, math.log2(math.e))}


@pytest.mark.parametrize("size", [1.0, 3000.0])
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("form", [short, tiles], ids=["short", "tiles"])
def test_the_power_that_is_fast_elsewhere_is_right_too(
    form: Any, power: str, size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    q, k, v = arrays("float64", (2,), (2,), 300, 170, 8, 5, size)
    g, c = np.random.default_rng(1).normal(size=v.shape[:-2] + (300, 5)), np.float64(0.3)
    plain, kept = attention.plain_forward(q, k, v, None, True, c)
    wanted = plain, *attention.plain_rule(g, plain, kept, q, k, v, None, True, c)
    monkeypatch.setattr(form, "power", lambda char: POWERS[power])
    y, saved = form.forward(q, k, v, None, True, c)
    found = y, *form.rule(g, y, saved, q, k, v, None, True, c)
    for mine, other in zip(found, wanted, strict=True):
        assert np.abs(mine - other).max() <= 1e-12 * max(1.0, size / 30) * max(1.0, np.abs(other).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_power_times_its_factor_is_exp(dtype: str) -> None:
    raised, factor = heads.power(np.dtype(dtype).char)
    x = np.linspace(-20, 20, 1001)
    found = raised((x * factor).astype(dtype))
    np.testing.assert_allclose(found, np.exp(x), rtol=4e-6 if dtype == "float32" else 2e-14)


@pytest.mark.parametrize(("current", "wanted"), [("X86_V4", np.exp2), ("baseline(X86_V2)", np.exp)])
def test_exp2_is_taken_only_where_it_is_vector_code(current: str, wanted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"exp2": {"ff": {"current": current, "available": current}}}
    monkeypatch.setattr(np.lib.introspect, "opt_func_info", lambda **asked: known)
    assert heads.power.__wrapped__("f")[0] is wanted
    assert heads.power.__wrapped__("d")[0] is np.exp  # of which nothing is known


@pytest.mark.parametrize(
    ("lead_q", "lead_k", "n"),
    [
        ((2, 3), (2, 3), 150), ((7,), (7,), 130), ((2, 1), (1, 3), 110), ((4,), (), 260), ((), (3,), 160),
        ((1,), (1,), 513),
    ],
)  # fmt: skip
@pytest.mark.parametrize("causal", [False, True])
def test_heads_of_any_shape_equal_the_textbook(lead_q: Any, lead_k: Any, n: int, causal: bool) -> None:
    for dtype, close in (("float32", 2e-5), ("float64", 1e-12)):
        q, k, v = arrays(dtype, lead_q, lead_k, n, n + 7, 6, 4)
        seen = np.tri(n, n + 7, 7, dtype=bool) if causal else np.True_
        y, saved = attention.forward(q, k, v, None, causal, None)
        assert isinstance(saved, short.Weights if n <= 250 else tiles.Saved)
        np.testing.assert_allclose(y, textbook(q, k, v, seen, 6**-0.5), rtol=0, atol=close)


def test_a_mask_for_each_head_is_cut_with_the_heads() -> None:
    q, k, v = arrays("float64", (2, 5), (2, 5), 90, 90, 6, 4)
    for shape in ((2, 5, 90, 90), (5, 1, 90), (2, 1, 90, 90), (90,)):
        keep = np.random.default_rng(0).random(shape) < 0.7
        for form in (short, tiles):
            y, _ = form.forward(q, k, v, keep, False, q.dtype.type(6**-0.5))  # type: ignore[attr-defined]
            np.testing.assert_allclose(y, textbook(q, k, v, keep, 6**-0.5), rtol=0, atol=1e-12)


def test_the_slopes_are_those_of_finite_differences() -> None:
    q, k, v = arrays("float64", (2,), (2,), 260, 260, 4, 3)
    g = np.random.default_rng(2).normal(size=v.shape)
    y, saved = attention.forward(q, k, v, None, True, None)
    slopes = attention.rule(g, y, saved, q, k, v, None, True, None)
    rng = np.random.default_rng(3)
    for place, (x, slope) in enumerate(zip((q, k, v), slopes, strict=True)):
        way = rng.normal(size=x.shape)
        ends = []
        for step in (1e-5, -1e-5):
            moved = [q, k, v]
            moved[place] = x + step * way
            ends.append((attention.forward(*moved, None, True, None)[0] * g).sum())
        assert (slope * way).sum() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-7)


def test_a_row_with_nothing_to_attend_to_is_0_and_passes_nothing_back() -> None:
    q, k, v = (ta.tensor(x, requires_grad=True) for x in arrays("float32", (), (), 300, 300, 8, 8, 100.0))
    keep = np.ones((300, 300), bool)
    keep[[0, 255, 256, 299]] = False
    keep[:, 17] = False
    y = ta.scaled_dot_product_attention(q, k, v, keep=keep)
    y.backward(np.ones(y.shape))
    assert (y.data[[0, 255, 256, 299]] == 0).all()
    assert q.grad is not None and k.grad is not None and v.grad is not None
    assert (q.grad[[0, 255, 256, 299]] == 0).all() and (k.grad[17] == 0).all() and (v.grad[17] == 0).all()


def test_queries_before_the_first_key_of_a_causal_mask_are_0() -> None:
    q, k, v = arrays("float64", (), (), 600, 200, 8, 8)
    y, saved = attention.forward(q, k, v, None, True, None)
    assert isinstance(saved, tiles.Saved)
    assert (y[:400] == 0).all()
    np.testing.assert_allclose(y[400], v[0], rtol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_takes_the_plain_form(bad: float) -> None:
    q, k, v = arrays("float64", (), (), 300, 300, 8, 8)
    k[5, 3] = v[5, 3] = bad
    keep = np.arange(300) != 5
    y, saved = attention.forward(q, k, v, keep, False, None)
    assert saved.__class__ is tuple
    assert np.isfinite(y).all()


@pytest.mark.parametrize("form", [short, tiles], ids=["short", "tiles"])
@pytest.mark.parametrize("kind", ["none", "causal", "nothing"])
def test_a_row_of_which_every_score_overflows_is_not_taken_for_one_that_sees_nothing(form: Any, kind: str) -> None:
    q, k, v = arrays("float32", (2,), (2,), 300, 300, 4, 4)
    q[1, 7], k[...] = -1e38, np.abs(k) + 10
    keep, causal = masks(300, 300)[kind]
    assert form.forward(q, k, v, keep, causal, np.float32(1)) is None
    with np.errstate(over="ignore", invalid="ignore"):
        y, saved = attention.forward(q, k, v, keep, causal, None)
    assert saved.__class__ is tuple and np.isnan(y[1, 7]).all() and np.isfinite(np.delete(y[1], 7, axis=0)).all()


def test_a_cotangent_that_is_not_finite_gives_what_the_plain_form_gives() -> None:
    values = arrays("float64", (), (), 300, 300, 4, 4)
    leaves = [ta.tensor(x, requires_grad=True) for x in values]
    keep = np.arange(300)[:, None] // 10 == np.arange(300) // 10
    y = ta.scaled_dot_product_attention(*leaves, keep=keep)
    g = np.zeros(y.shape)
    g[7] = np.inf
    y.backward(g)
    plain, kept = attention.plain_forward(*values, keep, False, None)
    with np.errstate(invalid="ignore"):
        right = attention.plain_rule(g, plain, kept, *values, keep, False, None)
    for x, slope in zip(leaves, right, strict=True):
        np.testing.assert_array_equal(x.grad, slope)
    assert (leaves[0].grad[10:] == 0).all()  # type: ignore[index]


def test_second_order_goes_through_the_composed_form() -> None:
    values = arrays("float64", (), (), 270, 270, 3, 2)

    def loss(q: ta.Tensor, k: ta.Tensor, v: ta.Tensor, attend: Any) -> ta.Tensor:
        return ta.sum(attend(q, k, v) ** 2)

    def plain(q: ta.Tensor, k: ta.Tensor, v: ta.Tensor) -> ta.Tensor:
        scores = (q @ k.mT) * (1 / np.sqrt(3))
        return ta.softmax(scores, axis=-1, keep=np.tri(270, dtype=bool)) @ v

    def tiled(q: ta.Tensor, k: ta.Tensor, v: ta.Tensor) -> ta.Tensor:
        return ta.scaled_dot_product_attention(q, k, v, causal=True)

    second = []
    for attend in (plain, tiled):
        leaves = [ta.tensor(x, requires_grad=True) for x in values]
        first = ta.grad(loss(*leaves, attend), leaves, create_graph=True)
        total = ta.sum(first[0] * first[1]) + ta.sum(first[2] ** 2)
        second.append(ta.grad(total, leaves))
    for one, other in zip(*second, strict=True):
        np.testing.assert_allclose(one.data, other.data, rtol=1e-9, atol=1e-9)


def test_few_scores_and_other_dtypes_keep_the_plain_form() -> None:
    for dtype, n in (("float64", 12), ("float16", 300), ("object", 300)):
        values = [x.astype(dtype) for x in arrays("float64", (), (), n, n, 2, 2)]
        assert dtype == "object" or attention.forward(*values, None, False, None)[1].__class__ is tuple
        assert not attention._fit(*values)
    assert attention._fit(*arrays("float64", (), (), 300, 300, 2, 2))


@pytest.mark.parametrize("form", [short, tiles], ids=["short", "tiles"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_of_every_size_are_right_and_only_the_odd_ones_take_the_careful_way(form: Any, dtype: str) -> None:
    """All scores of a row moved by one number: softmax does not care, but exp overflows, or gives nothing."""
    q, k, v = arrays(dtype, (2,), (2,), 260, 260, 8, 8)
    k[..., -1] = 1
    right = textbook(q, k, v, np.True_, 0.3)
    for shift in (0.0, 20.0, -20.0, 100.0, -100.0, 800.0, -800.0):
        moved = q.copy()
        moved[1, 100:110, -1] += shift / 0.3  # some rows of one head
        y, saved = form.forward(moved, k, v, None, False, q.dtype.type(0.3))
        close = {"float32": 2e-5 * max(1.0, abs(shift) / 10), "float64": 1e-11}[dtype]
        np.testing.assert_allclose(y, right, rtol=0, atol=close)
        if form is tiles:
            assert (saved.shifts is not None) == (abs(shift) > {"float32": 40, "float64": 300}[dtype])


def test_sums_are_trusted_only_between_bounds_and_never_when_nan() -> None:
    for dtype in ("float32", "float64"):
        sums = np.array([1.0, 1e-11, 1e11, 0.0, np.inf, np.nan, np.finfo(dtype).tiny, np.finfo(dtype).max], dtype)
        assert heads.trusted(sums).tolist() == [True] * 3 + [False] * 5


@pytest.mark.parametrize(
    ("q", "k", "v", "text"),
    [
        ((300, 8), (300, 9), (300, 8), "width 8 and a key 9"),
        ((300, 8), (300, 8), (400, 8), "300 keys and 400 values"),
        ((300, 8), (300, 8), (200, 8), "300 keys and 200 values"),
        ((2, 300, 8), (3, 300, 8), (3, 300, 8), "do not broadcast"),
    ],
)
def test_what_does_not_fit_is_refused_with_many_scores_too(q: Any, k: Any, v: Any, text: str) -> None:
    with pytest.raises(ta.ShapeError, match=text):
        ta.scaled_dot_product_attention(*(ta.tensor(np.ones(shape)) for shape in (q, k, v)))


def test_sizes_without_rows_or_columns_keep_the_plain_form() -> None:
    y = ta.scaled_dot_product_attention(np.ones((70_000, 0, 4)), np.ones((70_000, 3, 4)), np.ones((70_000, 3, 2)))
    assert y.shape == (70_000, 0, 2)
    y = ta.scaled_dot_product_attention(np.ones((70_000, 0)), np.ones((3, 0)), np.ones((3, 2)), scale=1.0)
    assert (y.data == 1).all()


def test_heads_of_short_sequences_are_done_together_as_far_as_they_fit_into_the_cache() -> None:
    for lead, n in (((7, 6), 64), ((3, 40), 64), ((5,), 250), ((2, 3), 700)):
        cut = list(short.shares(lead, n * n * 4))
        seen = np.zeros(lead, int)
        for share in cut:
            seen[share] += 1
            part = seen[share].size
            assert part == 1 or part * n * n * 4 <= short.TOGETHER
        assert (seen == 1).all()
    assert len(list(short.shares((4, 8), 64 * 64 * 4))) == 1


@pytest.mark.parametrize("size", [1.0, 200.0])
def test_memory_grows_with_the_words_and_not_with_their_square(size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads.setting, "most", 1)  # so that the memory of tiles is counted once
    peaks = []
    for n in (1024, 2048, 4096):
        q, k, v = arrays("float32", (2,), (2,), n, n, 8, 8, size)
        few = [x[:, :800] for x in (q, k, v)]
        attention.rule(few[0], *attention.forward(*few, None, True, None), *few, None, True, None)  # made once: masks
        tracemalloc.start()
        y, saved = attention.forward(q, k, v, None, True, None)
        attention.rule(y, y, saved, q, k, v, None, True, None)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * 1024 * 2048 * 4  # less than half of the scores alone
    assert peaks[2] / peaks[1] < 2.1 and peaks[2] - peaks[1] < 2.2 * (peaks[1] - peaks[0])


def test_a_result_lies_in_memory_as_its_queries_do_so_that_joining_heads_copies_nothing() -> None:
    x = np.random.default_rng(0).normal(size=(2, 200, 4, 8))
    heads = x.transpose(0, 2, 1, 3)
    y, saved = attention.forward(heads, heads, heads, None, False, None)
    assert np.shares_memory(y.transpose(0, 2, 1, 3).reshape(2, 200, 32), y)
    slopes = attention.rule(y, y, saved, heads, heads, heads, None, False, None)
    assert all(np.shares_memory(d.transpose(0, 2, 1, 3).reshape(2, 200, 32), d) for d in slopes)


@pytest.mark.parametrize(("form", "n"), [(short, 250), (tiles, 300)], ids=["short", "tiles"])
def test_a_form_that_forgot_its_correction_would_be_noticed(form: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above says no when backward leaves the row's correction out, the commonest mistake."""
    q, k, v = arrays("float64", (2,), (2,), n, n, 8, 8)
    y, saved = attention.forward(q, k, v, None, False, None)
    right = attention.rule(y, y, saved, q, k, v, None, False, None)
    ones = form._with_column

    def forgetful(*given: Any) -> Any:
        g1 = ones(*given)
        g1[..., -1] = 0
        return g1

    monkeypatch.setattr(form, "_with_column", forgetful)
    wrong = attention.rule(y, y, saved, q, k, v, None, False, None)
    assert np.abs(wrong[0] - right[0]).max() > 1e-3 and np.abs(wrong[2] - right[2]).max() == 0
