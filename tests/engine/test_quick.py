"""The fast backward loop and the written-out pass give what the plain loop gives, and refuse what that refuses."""

import threading

import numpy as np
import pytest
from support import altered, leaves_of

import tinyattn as ta
from tinyattn.autodiff import walk
from tinyattn.ops import REGISTRY, Op
from tinyattn.ops.helpers import carefully, sum_to, summed_back
from tinyattn.quick import quick_walk
from tinyattn.straight import straight_line


def both(y, seed):
    """Cotangents of the leaves by every loop, in the order in which the leaves were made."""
    written = straight_line(y)(y, seed)
    loops = [walk([(y, seed)]), quick_walk([(y, seed)])[0], *([] if written is None else [written[0]])]
    assert written is not None or any(x.op is not None for x in loops[0])  # a gradient of a result is to be kept
    return [sorted(((x.order, g) for x, g in found.items()), key=lambda pair: pair[0]) for found in loops]


def same(y, seed=None):
    seed = np.random.default_rng(0).normal(size=y.shape).astype(y.dtype)[()] if seed is None else seed
    plain, *fast = both(y, seed)
    for quick in fast:
        assert [order for order, _ in plain] == [order for order, _ in quick] and plain
        for (_, a), (_, b) in zip(plain, quick, strict=True):
            assert type(a) is type(b) and a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("op", [op for op in REGISTRY.values() if op.differentiable], ids=lambda op: op.name)
def test_every_op_alone(op: Op, rng):
    for inputs, params in op.sample(rng):
        leaves = leaves_of(inputs)
        same(ta.apply(op, tuple(leaves), params))
        same(ta.apply(op, tuple(x * 2.0 for x in leaves), params))


STEPS = [
    lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - 0.5 * b, lambda a, b: ta.tanh(a),
    lambda a, b: a / (1 + b * b), lambda a, b: ta.where(a > b, a, b),
]


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_with_sharing_broadcasting_and_constants(seed):
    rng = np.random.default_rng(seed)
    shapes = [(), (3,), (2, 3), (2, 1), (1, 3)]
    pool = [ta.tensor(rng.uniform(0.5, 1.5, shapes[n % 5]), requires_grad=n != 2) for n in range(6)]
    for _ in range(25):
        a, b = (pool[int(n)] for n in rng.integers(len(pool), size=2))
        pool.append(STEPS[rng.integers(len(STEPS))](a, b))
        if rng.random() < 0.2 and pool[-1].op is not None:
            pool[-1].retain_grad()
    y = ta.sum(ta.stack([ta.mean(x) for x in pool[6:]]))
    same(y)


def test_a_result_among_several_outputs_and_the_same_one_twice():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    z = y + x
    one = np.ones(2)
    for outputs in ([y, z], [z, y], [y, y], [x, z]):
        starts = [(output, one) for output in outputs]
        plain, quick = walk(starts), quick_walk(starts)[0]
        np.testing.assert_array_equal(plain[x], quick[x])


@pytest.mark.parametrize("loop", [walk, quick_walk])
@pytest.mark.parametrize("wrong", [
    pytest.param(lambda g, y, a, b: g.sum(), id="shape"), pytest.param(lambda g, y, a, b: g[None], id="axes"),
    pytest.param(lambda g, y, a, b: g.astype(np.float32), id="dtype"), pytest.param(lambda *a: 1.0, id="type"),
])
@pytest.mark.parametrize("slot", [0, 1])
def test_a_wrong_rule_is_refused_also_where_shapes_are_equal(loop, wrong, slot):
    rules = list(REGISTRY["add"].vjps)
    rules[slot] = wrong
    op = altered(REGISTRY["add"], vjps=tuple(rules))
    y = op(*leaves_of([np.ones((2, 3))] * 2))
    with pytest.raises(ta.RuleError, match=f"the rule of add for {'ab'[slot]}"):
        loop([(y, np.ones((2, 3)))])


@pytest.mark.parametrize("slot", [0, 1])
def test_a_rule_for_equal_shapes_is_held_to_its_contract_too(slot):
    rules = [summed_back(lambda g, y, a, b: g, n) for n in (0, 1)]
    rules[slot].even = lambda g, y, a, b: g[:1]
    op = altered(REGISTRY["add"], vjps=tuple(rules))
    with pytest.raises(ta.RuleError, match=f"the rule of add for {'ab'[slot]}"):
        ta.sum(op(*leaves_of([np.ones((2, 3))] * 2))).backward()


def test_the_rule_for_equal_shapes_goes_with_its_rule():
    """Exchange a rule, and the short form of the old one is not used any more."""
    assert REGISTRY["multiply"].even is not None
    changed = altered(REGISTRY["multiply"], vjps=(REGISTRY["multiply"].vjps[0], lambda g, y, a, b: sum_to(g, b.shape)))
    assert changed.even is None


def test_a_leaf_assigned_between_two_readers_is_refused():
    w = ta.tensor([1.0], requires_grad=True)
    early = w * 2.0
    w.assign([5.0])
    late = w * 3.0
    for y in (early + late, late + early, early):
        with pytest.raises(ta.GraphError, match="was assigned new numbers"):
            y.backward()
    late.backward()
    np.testing.assert_array_equal(w.grad, [3.0])


@pytest.mark.parametrize("use", [lambda w: w * w, ta.exp, ta.softmax, lambda w: ta.stack([w, w])], ids=list("abcd"))
def test_a_module_cast_since_it_was_used_is_called_stale_and_no_rule_is_blamed(use):
    w = ta.tensor([1.0, 2.0], requires_grad=True)
    y = use(w).sum()
    w.exchange(w.numpy().astype(np.float32))
    with pytest.raises(ta.GraphError, match="was assigned new numbers after"):
        y.backward()
    assert w.grad is None


def test_assigning_another_leaf_does_no_harm():
    w, other = ta.tensor([1.0], requires_grad=True), ta.tensor([1.0], requires_grad=True)
    y = w * w
    other.assign([2.0])
    y.backward()
    np.testing.assert_array_equal(w.grad, [2.0])


@pytest.mark.parametrize("use", [
    lambda x: -ta.relu(x), lambda x: -ta.abs(x), lambda x: ta.scaled_dot_product_attention(x, x, x) * x,
], ids=["relu", "abs", "attention"])
def test_no_bit_depends_on_a_careful_pass_in_another_thread(use, rng):
    numbers = rng.normal(size=(2, 400, 8)).round(1)

    def gradient():
        x = ta.tensor(numbers, requires_grad=True)
        ta.sum(use(x)).backward()
        return x.grad.tobytes()

    alone, begun, done = gradient(), threading.Event(), threading.Event()

    def other():
        with carefully():
            begun.set()
            done.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert begun.wait(60) and gradient() == alone
    finally:
        done.set()
        thread.join()
