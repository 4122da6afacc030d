"""The exact check: no tolerance, so the smallest fault is found and rounding is never one."""

from __future__ import annotations

import numpy as np
import pytest
from support import altered

import tinyattn as ta
from tinyattn.check import check_gradients, exact_check
from tinyattn.check.field import field_of
from tinyattn.ops import REGISTRY

OPS = [op for op in REGISTRY.values() if op.differentiable]


def of_call(op, inputs, params):
    leaves = [ta.tensor(x, requires_grad=True) for x in inputs]
    return ta.Graph.of(ta.apply(op, tuple(leaves), params), variables={})


@pytest.mark.parametrize("large", [False, True], ids=["fast field", "large field"])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_rule_of_the_book_is_decided(op, large):
    for seed, (inputs, params) in enumerate(op.sample(np.random.default_rng(1))):
        graph = of_call(op, inputs, params)
        found = exact_check(graph, seed=seed, large=large)
        assert not found.cut
        if op.name == "cross_entropy" and params[2]:
            # Smoothing rounds its weights: they do not quite sum to 1, as the fused rule takes for granted.
            found = exact_check(graph, seed=seed, large=large, composed=frozenset(found.wrong))
        assert found


def moved(op, slot, by):
    """A rule that is off in one entry only, by a relative amount."""

    def wrong(g, y, *rest):
        c = right(g, y, *rest)
        spot = np.zeros(c.shape)
        spot[(0,) * len(c.shape)] = by
        return c + c * spot

    right = op.vjps[slot]
    return altered(op, vjps=tuple(wrong if i == slot else rule for i, rule in enumerate(op.vjps)))


def block(batch=1, n=16, d=48, heads=4, product=REGISTRY["matmul"]):
    """A transformer block from public operations; its last product may have another rule."""
    rng = np.random.default_rng(0)
    weights = [(d, d)] * 4 + [(d, 4 * d), (4 * d, d)]
    matrices = [ta.tensor(rng.normal(size=s) / np.sqrt(s[0]), requires_grad=True) for s in weights]
    vectors = [ta.tensor(rng.normal(size=s), requires_grad=True) for s in [d] * 8 + [4 * d, d]]
    x = ta.tensor(rng.normal(size=(batch, n, d)), requires_grad=True)
    q, k, v, o, up, down = matrices
    bq, bk, bv, bo, g1, c1, g2, c2, b1, b2 = vectors

    def apart(t):
        return ta.swapaxes(ta.reshape(t, (batch, n, heads, d // heads)), 1, 2)

    def run():
        z = ta.layer_norm(x, g1, c1)
        seen = ta.scaled_dot_product_attention(apart(z @ q + bq), apart(z @ k + bk), apart(z @ v + bv))
        y = x + ta.reshape(ta.swapaxes(seen, 1, 2), (batch, n, d)) @ o + bo
        hidden = ta.gelu(ta.layer_norm(y, g2, c2) @ up + b1, "tanh")
        return y + ta.apply(product, (hidden, down), ()) + b2

    return run, [*matrices, *vectors]


def test_a_block_with_25_000_parameters_is_right_exactly():
    run, parameters = block()
    assert sum(p.size for p in parameters) > 25_000
    assert exact_check(ta.Graph.of(run(), variables={}))


def test_one_entry_off_by_one_part_in_a_million_millions_is_found_in_it():
    run, _ = block(product=moved(REGISTRY["matmul"], 1, 1e-12))
    graph = ta.Graph.of(run(), variables={})
    found = exact_check(graph)
    assert not found and [graph.nodes[at].op_name for at in found.wrong] == ["matmul"]
    assert graph.nodes[found.wrong[0]].shape == (1, 16, 48)


@pytest.mark.parametrize("seed", range(20))
def test_a_fault_is_found_whatever_the_random_numbers_are(seed):
    op = moved(REGISTRY["multiply"], 0, 1e-12)
    x = ta.tensor(np.array([1.0, 2.0]), requires_grad=True)
    assert not exact_check(ta.Graph.of(ta.apply(op, (x, ta.sin(x)), ()), variables={}), seed=seed)


def test_gradients_of_gradients_are_decided_too(rng):
    q, k = (ta.tensor(rng.normal(size=(3, 2)), requires_grad=True) for _ in range(2))
    y = ta.sum(ta.softmax(q @ k.mT) @ k)
    first = ta.grad(y, q, create_graph=True)
    assert exact_check(ta.Graph.of(ta.sum(first * rng.normal(size=(3, 2))), variables={}))


def test_an_op_that_does_not_run_on_exact_numbers_is_cut_out_and_the_rest_decided(rng):
    odd = altered(
        REGISTRY["exp"], forward=lambda x: np.asarray(x, float) * 2, vjps=(lambda g, y, x: np.asarray(g) * 2,)
    )
    wrong = altered(REGISTRY["tanh"], vjps=(lambda g, y, x: g * (1 - y),))
    x = ta.tensor(rng.normal(size=3), requires_grad=True)

    def graph(after):
        return ta.Graph.of(ta.apply(after, (ta.apply(odd, (x * 3.0,), ()),), ()), variables={})

    right = exact_check(graph(REGISTRY["tanh"]))
    assert right and len(right.cut) == 1
    assert [graph(wrong).nodes[at].op_name for at in exact_check(graph(wrong)).wrong] == ["tanh"]


def test_masks_and_minus_infinity_are_decided(rng):
    keep = np.array([[True, False, True], [False, False, False]])
    x = ta.tensor(rng.normal(size=(2, 3)), requires_grad=True)
    for y in (
        ta.softmax(x, keep=keep),
        ta.softmax(ta.masked_fill(x, ~np.array([[True, False, True], [True, True, False]]), -np.inf)),
    ):
        assert exact_check(ta.Graph.of(y, variables={}))


def test_a_field_is_a_field(rng):
    for large in (False, True):
        kind = field_of(3, large)
        a, b = kind.leaf(rng.normal(size=(40, 30))), kind.leaf(rng.normal(size=(30, 20)))
        n = kind.numbers
        ints = lambda x, n=n: np.array([[int(v) % n.p for v in row] for row in x.tight().r], dtype=object)
        exact = (ints(a).dot(ints(b))) % n.p
        assert (ints(a @ b) == exact).all()
        assert ((ints((a @ b) / (a @ b)) == 1) | (exact == 0)).all()
        chain = a
        for _ in range(40):
            chain = (chain + a) * chain - a / 3.0 + chain @ (b @ a[:20, :])  # far beyond any float if it were one
        rows = ints(a)
        want = rows
        third = pow(3, -1, n.p)
        for _ in range(40):
            want = ((want + rows) * want - rows * third + want.dot(ints(b).dot(rows[:20]))) % n.p
        assert (ints(chain) == want).all()


@pytest.mark.parametrize("large", [False, True], ids=["fast field", "large field"])
@pytest.mark.parametrize(
    ("left", "right"), [((12, 20), (20, 9)), ((3, 12, 20), (20, 9)), ((12, 20), (20,)), ((20,), (20, 9))]
)
def test_tangents_follow_the_product_rule_whatever_they_are_made_of(large, left, right, rng):
    """Those of a matrix are a column times a row, and products take a shorter way."""
    kind = field_of(5, large)
    a, b = kind.leaf(rng.normal(size=left)), kind.leaf(rng.normal(size=right))
    whole = np.frompyfunc(int, 1, 1)
    numbers = [whole(part) for part in (a.r, a.t, b.r, b.t)]
    got = whole((a @ b).tight().t) % kind.numbers.p
    want = (np.matmul(numbers[1], numbers[2]) + np.matmul(numbers[0], numbers[3])) % kind.numbers.p
    assert (got == want).all()
    assert a.along(a) == int((numbers[0] * numbers[1]).sum()) % kind.numbers.p


def test_a_brief_run_and_one_that_keeps_everything_say_the_same():
    from tinyattn.check.exact import _Run

    for product in (REGISTRY["matmul"], moved(REGISTRY["matmul"], 0, 1e-12)):
        graph = ta.Graph.of(
            block(n=4)[0]() if product is REGISTRY["matmul"] else block(n=4, product=product)[0](), variables={}
        )
        runs = [_Run(graph, field_of(7), frozenset(), brief=brief) for brief in (True, False)]
        assert [run.whole() for run in runs] == [product is REGISTRY["matmul"]] * 2


def test_rules_that_compare_cotangents_get_their_floats(rng):
    """A rule may ask whether a cotangent is positive; its floats are those of an ordinary backward pass."""
    guided = altered(REGISTRY["relu"], vjps=(lambda g, y, x: np.where((x > 0) & (g > 0), g, 0.0),))
    plain = altered(REGISTRY["relu"], vjps=(lambda g, y, x: np.where((x > 0) & (g == g), g, 0.0),))
    x = ta.tensor(rng.uniform(1.0, 2.0, 4), requires_grad=True)

    def graph(op, sign):
        return ta.Graph.of(ta.apply(op, (x * 3.0,), ()) * sign, variables={})

    assert exact_check(graph(plain, -1.0)) and exact_check(graph(guided, 1.0))
    found = exact_check(graph(guided, -1.0))
    assert not found and not found.cut


def local_faults():
    """Every rule of the book, off by one part in a million millions in one entry."""
    for name, op in REGISTRY.items():
        if not op.differentiable:
            continue
        rules = (
            range(len(op.vjps)) if isinstance(op.vjps, tuple) else range(len(op.sample(np.random.default_rng(0))[0][0]))
        )
        yield from ((name, slot) for slot in rules)


def contributions(op, g, y, rest):
    """What the op's own rules pass back, called as a joint rule is."""
    saved, operands = (rest[0], rest[1:]) if op.saves else (None, rest)
    inputs, params = op.split(operands)
    return list(op.pull(g, y, saved, list(inputs), params, [True] * len(inputs)))


def at_a_sample(op, inputs, params):
    """The inputs as floats, the result, and what the forward saved."""
    inputs = [np.asarray(x, float) for x in inputs]
    result = op.forward(*inputs, *params)
    return inputs, *(result if op.saves else (result, None))


def slightly_off(op, slot, entry):
    """The op with a joint rule that moves one entry of one contribution."""

    def wrong(g, y, *rest):
        made = contributions(op, g, y, rest)
        spot = np.zeros(made[slot].shape)
        spot[entry] = 1e-12
        made[slot] = made[slot] + made[slot] * spot
        return tuple(made)

    return altered(op, vjps=wrong)


@pytest.mark.parametrize(("name", "slot"), list(local_faults()))
def test_one_part_in_a_million_millions_is_found_in_every_rule(name, slot):
    op, rng = REGISTRY[name], np.random.default_rng(5)
    inputs, params = next(call for call in op.sample(rng) if slot < len(call[0]))
    inputs, y, saved = at_a_sample(op, inputs, params)
    made = op.pull(np.ones(np.shape(y)), y, saved, inputs, params, [True] * len(inputs))[slot]
    if made is None:
        return
    entry = np.unravel_index(int(np.argmax(np.abs(made))), np.shape(made))
    report = check_gradients(slightly_off(op, slot, entry), *inputs, *params, order=1, modes=("reverse",))
    assert report.verdict == "wrong" and report.blame.op == name


def test_a_right_rule_that_is_not_decidable_agrees_to_many_digits_and_a_fault_in_it_does_not():
    x = np.array([[0.5, -1.0, 2.0]])
    log_softmax = lambda x: x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
    by_exp = lambda g, y, x: g - np.exp(y) * g.sum(axis=-1, keepdims=True)
    report = ta.check_rule(log_softmax, by_exp, x)
    assert report and "agrees with its forward to" in report.exact
    off = np.array([1.0, 1 + 1e-12, 1.0])
    report = ta.check_rule(log_softmax, lambda g, y, x: by_exp(g, y, x) * off, x)
    assert report.verdict == "wrong" and report.blame.entry == (0, 1)


@pytest.mark.parametrize(
    ("forward", "backward", "digits"),
    [
        (lambda x: x / 3, lambda g, x: g * 0.3333333333333333, 15),
        (lambda x: np.exp2(x), lambda g, y, x: g * y * np.log(2), 15),
        (lambda x: np.tanh(x), lambda g, x: g / np.cosh(x) ** 2, 25),
        (lambda x: np.log(1 + np.exp(x)), lambda g, x: g / (1 + np.exp(-x)), 25),
    ],
    ids=["rounded third", "rounded logarithm", "tanh by cosh", "softplus"],
)
def test_rounded_constants_and_identities_of_real_functions_are_no_faults(forward, backward, digits, rng):
    for scale in (0.01, 1.0, 5.0):
        report = ta.check_rule(forward, backward, rng.normal(size=(3, 4)) * scale)
        assert report, str(report)
        assert report.exact == "equal" or int(report.exact.split(" to ")[-1].split()[0]) >= digits


@pytest.mark.parametrize("name", sorted(name for name, op in REGISTRY.items() if op.composed is not None))
def test_fast_code_of_a_fused_op_that_only_floats_run_is_held_against_its_composed_form(name):
    """A fault that exact numbers never meet: the fast code is off, for float arrays alone."""
    op = REGISTRY[name]

    def wrong(g, y, *rest):
        made = [rule(g, y, *rest) for rule in op.vjps] if isinstance(op.vjps, tuple) else list(op.vjps(g, y, *rest))
        if isinstance(made[0], np.ndarray) and made[0].dtype.kind == "f":
            spot = np.zeros(made[0].shape)
            spot.flat[int(np.argmax(np.abs(made[0])))] = 1e-12
            made[0] = made[0] * (1 + spot)
        return tuple(made)

    report = check_gradients(altered(op, vjps=wrong), order=1)
    assert report.verdict == "wrong" and report.blame.op == name and report.exact.startswith("equal")


def fresh(rng, shape=(2, 3)):
    return field_of(4).leaf(rng.normal(size=shape))


def test_numbers_may_be_written_as_numpy_writes_them(rng):
    x = fresh(rng)
    y = x * x
    z = np.multiply(y, x, out=y)
    assert z is y and (y.tight().r == (x * x * x).tight().r).all()
    y += x
    y[0] = 0.0
    np.put_along_axis(y, np.array([[1], [1]]), x[:, :1], axis=1)
    want = x * x * x + x
    assert (y.tight().r[1, [0, 2]] == want.tight().r[1, [0, 2]]).all()
    assert (y.r[0, [0, 2]] == 0).all() and (y.r[:, 1] == x.r[:, 0]).all()
    total = np.zeros_like(x)
    np.add.at(total, np.array([1, 1]), x)
    assert (total.tight().r[1] == (x[0] + x[1]).tight().r).all() and (total.r[0] == 0).all()


def test_writing_never_changes_what_somebody_else_holds(rng):
    from tinyattn.check.duck import CannotRun

    x = fresh(rng).fixed()
    for write in (lambda: np.multiply(x, 2.0, out=x), lambda: x.__setitem__(0, 1.0), lambda: x.__iadd__(1.0)):
        with pytest.raises(CannotRun, match="others see"):
            write()
    y = x * 2.0
    row, turned, copied = y[0], y.T, y.copy()
    before = y.data.copy()
    with pytest.raises(CannotRun):
        turned += 1.0  # it would have to reach into y
    row += 1.0  # this one does
    assert (copied.data == before).all() and (y.data[0] == before[0] + 1).all() and (y.data[1] == before[1]).all()
    with pytest.raises((TypeError, AttributeError)):  # it looked into y, which is another array now
        turned + 1.0


def test_floats_are_those_of_the_time_when_they_were_computed_from(rng):
    x = fresh(rng)
    y = x + 1.0
    z = y * 2.0
    y *= 0.0
    assert (z.data == (x.data + 1.0) * 2.0).all() and (y.data == 0).all()


def test_a_rule_that_assigns_is_decided_exactly():
    ids = np.array([0, 2, 2, 1])

    def right(g, table):
        out = np.zeros_like(table)
        np.add.at(out, ids, g)
        return out

    def overwritten(g, table):
        out = np.zeros_like(table)
        out[ids] = g
        return out

    x = np.random.default_rng(0).normal(size=(3, 2))
    assert ta.check_rule(lambda table: table[ids], right, x).exact == "equal"
    assert ta.check_rule(lambda table: table[ids], overwritten, x).exact == "different"


MOVES = {
    "sign": lambda c: -c,
    "twice": lambda c: c * 2,
    "a millionth": lambda c: c * (1 + 2.0**-20),
    "nothing": lambda c: c * 0,
    "something added": lambda c: c + 0.01,
}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_no_fault_of_a_rule_passes(op):
    """Each rule made wrong in each way, at each of the op's samples: the random numbers let none through."""
    rng = np.random.default_rng(2)

    def moved_by(move, slot):
        def wrong(g, y, *rest):
            made = contributions(op, g, y, rest)
            made[slot] = move(made[slot])
            return tuple(made)

        return altered(op, vjps=wrong)

    for inputs, params in op.sample(rng):
        inputs, y, saved = at_a_sample(op, inputs, params)
        made = op.pull(np.asarray(rng.normal(size=np.shape(y)))[()], y, saved, inputs, params, [True] * len(inputs))
        for slot, c in enumerate(made):
            for name, move in MOVES.items():
                if c is None or np.array_equal(move(np.asarray(c)), c):
                    continue
                assert not exact_check(of_call(moved_by(move, slot), inputs, params)), (slot, name, params)
