"""A stretch of a long graph, written out once and gone along again and again, gives what the plain loop gives."""

import tracemalloc

import numpy as np
import pytest
from support import altered

import tinyattn as ta
from tinyattn import repeated, stretches
from tinyattn.autodiff import walk
from tinyattn.ops import REGISTRY
from tinyattn.quick import run


@pytest.fixture
def turns(monkeypatch):
    """How many stretches of the graph were left to the loop.  What was known is forgotten, and little is enough."""
    monkeypatch.setattr(repeated, "COST", 3)
    repeated.forget()
    counted = []
    monkeypatch.setattr(stretches, "run", lambda *args, **kwargs: counted.append(1) or run(*args, **kwargs))
    return counted


def leaf(rng, *shape, dtype=np.float64):
    return ta.tensor((0.3 * rng.normal(size=shape)).astype(dtype), requires_grad=True)


def chain(rng, n, dtype=np.float64):
    x = leaf(rng, dtype=dtype)
    for _ in range(n):
        x = x + ta.tanh(x)
    return x


def recurrent(rng, n):
    h, w, u, b = leaf(rng, 2, 3), leaf(rng, 3, 3), leaf(rng, 2, 3), leaf(rng, 3)
    inputs = [leaf(rng, 2, 2) for _ in range(n)]
    for x in inputs:
        h = ta.tanh(h @ w + x @ u + b)
    return ta.sum(h * h)


def layers(rng, n):
    h = leaf(rng, 2, 3)
    for _ in range(n):
        w, b = leaf(rng, 3, 3), leaf(rng, 3)
        h = h + 0.1 * ta.relu(h @ w + b)
    return ta.mean(h)


def norms(rng, n):
    h, gain, bias = leaf(rng, 2, 3), leaf(rng, 3), leaf(rng, 3)
    for _ in range(n):
        h = ta.layer_norm(h + ta.scaled_dot_product_attention(h, h, h), gain, bias)
        h = ta.where(np.eye(2, 3, dtype=bool), h, 0.5 * h)
    return ta.sum(ta.stack([h, h]))


def two_parts(rng, n):
    """It repeats itself, but in two ways, one after the other."""
    x, w = leaf(rng, 3), leaf(rng, 3)
    for _ in range(n):
        x = x * w + 0.1
    for _ in range(n):
        x = ta.tanh(x) + x
    return ta.sum(x)


def one_is_other(rng, n):
    x, w, other = leaf(rng, 3), leaf(rng, 3), leaf(rng, 3)
    for at in range(n):
        x = ta.tanh(x * (other if at == n // 2 else w)) + w
    return ta.sum(x)


def same_leaf_at_times(rng, n):
    """Where two leaves are one, the text for two must not be used."""
    x, w, b = leaf(rng, 3), leaf(rng, 3), leaf(rng, 3)
    for at in range(n):
        x = ta.tanh(x * w + (w if at % 50 == 3 else b))
    return ta.sum(x)


def overlapping(rng, n):
    """Two results wait between one narrow place and the next."""
    older = x = leaf(rng) * 1.0
    for _ in range(n // 20):
        y = x
        for _ in range(20):
            y = ta.tanh(y) * 0.9
        older, x = x, y + older
    return x


def skipping(rng, n):
    x = leaf(rng)
    for _ in range(n // 60):
        early = x = x + ta.tanh(x)
        for _ in range(55):
            x = x + ta.tanh(x)
        x = x * early
    return x


def joined_at_the_end(rng, n):
    x = early = chain(rng, n)
    for _ in range(20):
        x = x + ta.tanh(x)
    return ta.sum(x * early * 0.1)


def across(rng, n):
    """An early result is needed at the end: there is no narrow place."""
    x = early = leaf(rng, 3) * 1.0
    for _ in range(n):
        x = ta.tanh(x) * 0.9
    return ta.sum(x * early)


GRAPHS = [chain, recurrent, layers, norms, two_parts, one_is_other, same_leaf_at_times]
WAITING = [chain, overlapping, skipping, joined_at_the_end]


def assert_same(found, y, seed):
    plain = walk([(y, seed)])
    assert set(found) == set(plain)
    for x, g in plain.items():
        np.testing.assert_array_equal(found[x], g, strict=True)


@pytest.mark.parametrize("graph", GRAPHS)
def test_every_bit_is_that_of_the_loop(graph, turns, rng):
    y = graph(rng, 400)
    along = stretches.stretched(y)
    for again in (y, graph(rng, 400), graph(rng, 300)):
        del turns[:]
        found, oldest, finite = along(again, np.float64(1.0))
        assert_same(found, again, np.float64(1.0))
        assert finite and oldest == min(x.order for x in _results(again))
        assert len(turns) < 50 or graph in (two_parts, same_leaf_at_times)  # these fit here and there only


def _results(y):
    found, seen = [y], {y}
    for node in found:
        new = [x for x in node.inputs if x.op is not None and x.requires_grad and x not in seen]
        seen.update(new)
        found += dict.fromkeys(new)
    return found


def test_a_graph_without_a_narrow_place_has_no_stretch(rng):
    assert stretches.stretched(across(rng, 400)) is None


@pytest.mark.parametrize("other", GRAPHS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_the_stretch_of_another_graph_does_no_harm(graph, other, rng):
    along, y = stretches.stretched(graph(rng, 300)), other(rng, 300)
    if (found := along(y, np.float64(1.0))) is not None:
        assert_same(found[0], y, np.float64(1.0))


@pytest.mark.parametrize("other", WAITING)
@pytest.mark.parametrize("graph", WAITING)
def test_a_stretch_begins_and_ends_where_nothing_else_waits(graph, other, rng):
    found = 0
    for along in [along for n in (60, 400) if (along := stretches.stretched(graph(rng, n))) is not None]:
        for n in (60, 61, 75, 300, 400, 407):
            y = other(rng, n)
            if (cotangents := along(y, np.float64(1.0))) is not None:
                assert_same(cotangents[0], y, np.float64(1.0))
                found += 1
    assert found or graph in (overlapping, skipping)


def with_two_leaves(rng, n, same=False):
    x, w, b = leaf(rng, 3), leaf(rng, 3), leaf(rng, 3)
    for _ in range(n):
        x = ta.tanh(x * w + (w if same else b))
    return ta.sum(x)


def test_a_stretch_of_two_leaves_does_not_fit_where_they_are_one(rng):
    along, y = stretches.stretched(with_two_leaves(rng, 200)), with_two_leaves(rng, 200, same=True)
    assert_same(along(y, np.float64(1.0))[0], y, np.float64(1.0))


def below_another_shape(rng, n, shape):
    b, h = leaf(rng, 2, 3), ta.tanh(leaf(rng, *shape))
    for _ in range(n):
        h = ta.tanh(h + b)
    return ta.sum(h)


def test_the_end_of_a_stretch_has_the_same_shape(rng):
    along = stretches.stretched(below_another_shape(rng, 200, (2, 3)))
    for n in range(170, 200):
        y = below_another_shape(rng, n, (3,))
        assert_same(along(y, np.float64(1.0))[0], y, np.float64(1.0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kept_gradient_on_the_way_is_kept(dtype, turns, rng):
    x = leaf(rng, dtype=dtype)
    y, kept = x, []
    for step in range(500):
        y = y + ta.tanh(y)
        if step in (100, 300):
            kept.append(y.retain_grad())
    for _ in range(2):
        x.zero_grad()
        y.backward()
        assert_same({x: x.grad[()], **{z: z._grad[()] for z in kept}}, y, dtype(1))
    assert turns


def test_it_comes_with_the_second_pass_and_leaves_little_to_the_loop(turns, rng):
    for at in range(4):
        chain(rng, 2000).backward()
        assert len(turns) <= at * stretches.SHORTEST  # no more than the rest of each pass


def test_an_exchanged_leaf_is_refused(turns, rng):
    w, x = leaf(rng, 3), leaf(rng, 3)
    for at in range(4):
        y = x
        for _ in range(400):
            y = ta.tanh(y * w)
        if at == 3:
            w.assign(np.zeros(3))
            with pytest.raises(ta.GraphError, match="was assigned new numbers"):
                ta.sum(y).backward()
        else:
            ta.sum(y).backward()


@pytest.mark.parametrize("bad", [lambda g: g[:1], lambda g: g.astype("f")], ids=["shorter", "dtype"])
def test_a_learners_own_rule_that_goes_wrong_on_the_way_is_named(bad, turns, rng):
    calls = []

    def rule(g, y, x):
        calls.append(1)
        return bad(g * y) if len(calls) > 1500 else g * y

    op, x = altered(REGISTRY["tanh"], vjps=(rule,)), leaf(rng, 3)
    with pytest.raises(ta.RuleError, match="the rule of tanh for x"):
        for _ in range(4):
            y = x
            for _ in range(700):
                y = op(y) * 0.5
            ta.sum(y).backward()


def test_a_learners_own_rule_is_called_once_where_no_stretch_fits(turns, rng):
    calls, x = [], leaf(rng, 3)
    op = altered(REGISTRY["tanh"], vjps=(lambda g, y, x: calls.append(1) or g * y,))
    for at in range(6):
        y = x
        for n in range(700):
            if at < 3:
                y = ta.tanh(y) * 1.01
            else:
                y = y * 1.01 if n == 699 else op(y) if n == 690 else ta.sin(y) if rng.random() < 0.5 else ta.cos(y)
        ta.sum(y).backward()
    assert len(calls) == 3


def test_what_is_infinite_is_looked_at_carefully_all_the_same(turns):
    def gradient():
        x = ta.tensor([0.0, 4.0], requires_grad=True)
        y = ta.where(x.data > 0, ta.sqrt(x), 0.0)
        for _ in range(400):
            y = ta.tanh(y) + 0.1
        ta.sum(y).backward()
        return x.grad

    first = gradient()
    for _ in range(3):
        np.testing.assert_array_equal(gradient(), first)
    assert np.isfinite(first).all() and turns


def test_cotangents_are_let_go_on_the_way():
    x = ta.tensor(np.ones(50_000), requires_grad=True)
    y = x
    for _ in range(700):
        y = ta.tanh(y)
    along, g = stretches.stretched(y), np.ones(50_000)
    tracemalloc.start()
    along(y, g)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * g.nbytes
