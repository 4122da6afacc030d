"""A backward pass that is written out fits the graphs it was written for and no others."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest
from support import altered, leaves_of

import tinyattn as ta
from tinyattn import repeated, straight
from tinyattn.autodiff import walk
from tinyattn.ops import REGISTRY
from tinyattn.quick import quick_walk
from tinyattn.straight import straight_line


def one_like(y):
    return np.ones(y.shape, y.dtype)[()]


def assert_same(found, plain):
    assert set(found) == set(plain)
    for x, g in plain.items():
        np.testing.assert_array_equal(found[x], g, strict=True)


def leaves(rng, *shapes, dtype=np.float64):
    return leaves_of([rng.normal(size=shape).astype(dtype) for shape in shapes])


def attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    return ta.sum(ta.softmax((q @ k.mT) * 0.5) @ v)


def test_the_same_graph_of_other_numbers_fits(rng):
    shapes = [(4, 3), (3, 3), (3, 3), (3, 3)]
    line = straight_line(attention(*leaves(rng, *shapes)))
    for _ in range(3):
        y = attention(*leaves(rng, *shapes))
        found, oldest, finite = line(y, one_like(y))
        assert_same(found, walk([(y, one_like(y))]))
        assert oldest == quick_walk([(y, one_like(y))])[1] and finite


def _shared(x, y):
    z = x * y
    return z + z


def _backwards(x, y):
    late, early = ta.exp(y), ta.tanh(x)
    return early * late


SMALL = {  # all of two leaves of shape (2, 3): each written text is tried on each graph
    "sum": lambda x, y: x + y,
    "sum the other way": lambda x, y: y + x,
    "difference": lambda x, y: x - y,
    "same leaf twice": lambda x, y: x + x,
    "shared result": _shared,
    "two results alike": lambda x, y: x * y + x * y,
    "a constant": lambda x, y: x * y + 2.0,
    "no gradient for one": lambda x, y: x + y.detach(),
    "no gradient for the other": lambda x, y: x.detach() + y,
    "smaller": lambda x, y: x[:1] + y[:1],
    "spread": lambda x, y: x[:1] + y,
    "spread the other way": lambda x, y: x + y[:1],
    "turned": lambda x, y: (x.mT + y.mT).mT,
    "in order": lambda x, y: ta.tanh(x) * ta.exp(y),
    "in the other order": _backwards,
    "two stacked": lambda x, y: ta.concatenate([x, y]),
    "three stacked": lambda x, y: ta.concatenate([x, y, x]),
    "three, two alike": lambda x, y: ta.concatenate([x, x, y]),
    "one stacked": lambda x, y: ta.stack([x]) + y,
    "einsum of one": lambda x, y: ta.einsum("ij->ji", x) @ y,
    "einsum of two": lambda x, y: ta.einsum("ij,kj->ik", x, y),
    "einsum of three": lambda x, y: ta.einsum("ij,kj,lj->ik", x, y, x),
    "norm": lambda x, y: ta.layer_norm(x, y[0], y[1]),
    "norm of one row": lambda x, y: ta.layer_norm(x, y[0], y[0]),
    "attention": lambda x, y: ta.scaled_dot_product_attention(x, y, y),
    "attention of one": lambda x, y: ta.scaled_dot_product_attention(x, x, y),
    "loss": lambda x, y: ta.cross_entropy(x * y, [0, 2]),
    "chosen": lambda x, y: ta.where(np.eye(2, 3, dtype=bool), x, y),
    "cast": lambda x, y: ta.astype(x, np.float32) * ta.astype(y, np.float32),
    "summed": lambda x, y: ta.sum(x, axis=0) * ta.sum(y, axis=0),
    "summed along the other axis": lambda x, y: ta.sum(x, axis=1) * ta.sum(y, axis=1),
}

ALIKE = [{"sum", "sum the other way"}, {"norm", "norm of one row"}]  # only the order of leaves or a parameter differs


@pytest.mark.parametrize("name", SMALL)
def test_a_text_gives_what_is_right_or_nothing(name, rng):
    """Each graph gets its own text; the texts of all others say no, or give the same."""
    x, y = leaves(rng, (2, 3), (2, 3))
    line, own = straight_line(SMALL[name](x, y)), 0
    for other, graph in SMALL.items():
        z = graph(*leaves(rng, (2, 3), (2, 3)))
        found = line(z, one_like(z))
        if found is not None:
            assert_same(found[0], walk([(z, one_like(z))]))
            assert other == name or {name, other} in ALIKE
            own += other == name
    assert own == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_other_sizes_and_dtypes_do_not_fit(rng, dtype):
    shapes = [(4, 3), (3, 3), (3, 3), (3, 3)]
    line = straight_line(attention(*leaves(rng, *shapes, dtype=dtype)))
    other = np.float64 if dtype is np.float32 else np.float32
    for y in (attention(*leaves(rng, *shapes, dtype=other)), attention(*leaves(rng, (5, 3), *shapes[1:], dtype=dtype))):
        assert line(y, one_like(y)) is None


def test_a_gradient_to_be_kept_does_not_fit(rng):
    x, y = leaves(rng, (2, 3), (2, 3))
    line = straight_line(ta.exp(x * y))
    product = x * y
    z = ta.exp(product)
    product.retain_grad()
    assert line(z, one_like(z)) is None
    assert line(ta.exp(x * y), one_like(z)) is not None
    last = ta.exp(x * y).retain_grad()
    assert line(last, one_like(last)) is None


@pytest.mark.parametrize("part", ["vjps", "forward"])
def test_an_exchanged_rule_does_not_fit(rng, monkeypatch, part):
    x, y = leaves(rng, (2, 3), (2, 3))
    line = straight_line(x * y)
    monkeypatch.setattr(REGISTRY["multiply"], part, getattr(REGISTRY["add"], part))
    assert line(ta.apply(REGISTRY["multiply"], (x, y)), np.ones((2, 3))) is None


def test_a_constant_of_another_shape_does_not_fit(rng):
    (w,) = leaves(rng, (3,))
    line = straight_line(ta.sum(w * np.ones((2, 3))))
    for shape in ((5, 3), (3,), (2, 1, 3)):
        y = ta.sum(w * np.ones(shape))
        assert line(y, one_like(y)) is None


def test_a_leaf_of_another_shape_does_not_fit(rng):
    line = straight_line(ta.sum(leaves(rng, (3,))[0] * np.ones((2, 3))))
    for shape in ((1, 3), (2, 3), (2, 1), ()):
        y = ta.sum(leaves(rng, shape)[0] * np.ones((2, 3)))
        assert line(y, one_like(y)) is None


def test_another_number_of_inputs_does_not_fit(rng):
    x, y = leaves(rng, (3, 3), (3, 3))
    graphs = [
        lambda: ta.einsum("ij->ij", x), lambda: ta.einsum("ij,ij->ij", x, y),
        lambda: ta.einsum("ij,ij,ij->ij", x, y, x), lambda: ta.einsum("ij,ij,ij,ij->ij", x, y, x, y),
    ]  # fmt: skip
    for graph in graphs:
        line = straight_line(graph())
        for other in graphs:
            z = other()
            assert (line(z, np.ones((3, 3))) is not None) == (graph is other)


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_one_gradient_that_is_not_finite_is_seen_among_others(bad, rng):
    x = leaves(rng, (2,), (2,), (2,))

    def graph(factors):
        return ta.sum(x[0] * factors[0] + x[1] * factors[1] + x[2] * factors[2])

    factors = [np.ones(2)] * 3
    line = straight_line(graph(factors))
    assert line(graph(factors), np.float64(1.0))[2] is True
    factors[bad] = np.array([1.0, np.inf])
    assert line(graph(factors), np.float64(1.0))[2] is False


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_bias_under_many_rows_has_every_bit(rng, dtype):
    y = ta.sum(ta.tanh(ta.add(*leaves(rng, (50, 7), (7,), dtype=dtype))))
    assert_same(straight_line(y)(y, dtype(1))[0], walk([(y, dtype(1))]))


def test_a_text_goes_when_nobody_holds_it(rng):
    gc.disable()
    try:
        line = straight_line(ta.sum(leaves(rng, (3,))[0]))
        gone = weakref.ref(line)
        del line
        assert gone() is None
    finally:
        gc.enable()


# -- when a text is written, and used ----------------------------------------------------------------------------------


@pytest.fixture
def walks(monkeypatch):
    """How many passes the loop made.  What was known is forgotten, and three passes are enough for a text."""
    monkeypatch.setattr(repeated, "COST", 3)
    repeated.forget()
    counted = []
    monkeypatch.setattr(repeated, "quick_walk", lambda starts: counted.append(1) or quick_walk(starts))
    return counted


def train(steps, rng, shape=lambda step: (2, 3), loss_of=ta.sum):
    w = ta.tensor(rng.normal(size=3), requires_grad=True)
    for step in range(steps):
        w.zero_grad()
        x = np.full(shape(step), 0.5)
        loss = loss_of(ta.tanh(x * w) ** 2)
        loss.backward()
        w.assign(w.data - 0.1 * w.grad)
    return w


def test_the_fourth_pass_from_a_place_needs_no_loop(walks, rng):
    train(10, rng)
    assert len(walks) == repeated.COST


def test_training_gives_the_same_bits_with_and_without(walks, rng, monkeypatch):
    numbers = rng.bit_generator.state
    w = train(10, rng)
    monkeypatch.setattr(repeated, "COST", 1000)
    repeated.forget()
    rng.bit_generator.state = numbers
    assert train(10, rng).data.tobytes() == w.data.tobytes() and len(walks) > 10


LOSSES = {
    "sum": ta.sum,
    "mean": ta.mean,
    "mse": lambda y: ta.mse(y, 0 * y.data),
    "with more": lambda y: ta.sum(y) + 0.1,
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_two_graphs_in_turn_do_not_push_each_other_out(walks, rng, loss):
    train(20, rng, lambda step: (2 + step % 2, 3), loss)
    assert 4 <= len(walks) <= 2 * repeated.COST  # each shape is known by itself


def test_where_the_graph_is_always_another_no_more_texts_are_written(walks, rng, monkeypatch):
    written = []
    monkeypatch.setattr(repeated, "straight_line", lambda y: written.append(1) or straight_line(y))
    w = ta.tensor(rng.normal(size=3), requires_grad=True)
    for step in range(40):
        y = w
        for _ in range(step):
            y = ta.tanh(y)
        ta.sum(y).backward()
    assert len(written) == repeated.MOST and len(walks) == 40
    (passes,) = (passes for passes in repeated._known.values() if passes.texts)
    assert passes.written is None


def test_texts_that_lasted_do_not_count(walks, rng):
    """One line of code may train one model after another."""
    w = ta.tensor(rng.normal(size=3), requires_grad=True)
    for depth in range(2 * repeated.MOST):
        for _ in range(repeated.LASTED + 10):
            y = w
            for _ in range(depth):
                y = ta.tanh(y)
            ta.sum(y * 2.0).backward()
    assert len(walks) == 2 * repeated.MOST * repeated.COST


def test_the_places_known_are_not_more_than_so_many(walks, rng):
    for size in range(3 * repeated.KNOWN):
        for _ in range(1 + 3 * (size % 2)):  # some get a text
            ta.sum(ta.tensor(np.ones(size), requires_grad=True)).backward()
        assert len(repeated._known) <= repeated.KNOWN


def test_a_long_graph_that_does_not_repeat_itself_is_left_to_the_loop(walks, rng):
    w = ta.tensor(rng.normal(size=3), requires_grad=True)
    for _ in range(10):
        y = w
        for n in range(repeated.LONGEST + 1):
            y = ta.tanh(y) if rng.random() < 0.5 else y * 0.9
            y = y if n % 7 else ta.sin(y)
        ta.sum(y).backward()
    assert len(walks) == 10


def test_without_names_too(walks, rng):
    with ta.no_names():
        train(10, rng)
    assert len(walks) == repeated.COST


@pytest.mark.parametrize(
    "wrong", [lambda g: g.sum(), lambda g: g[:1], lambda g: g.astype("f")], ids=["sum", "shorter", "dtype"]
)
def test_a_learners_own_rule_that_goes_wrong_later_is_named(walks, wrong):
    now = []
    op = altered(REGISTRY["exp"], vjps=(lambda g, y, x: wrong(g * y) if now else g * y,))
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(6):
        ta.sum(op(x * 1.0) * 2.0).backward()
    now.append(True)
    with pytest.raises(ta.RuleError, match="the rule of exp for x"):
        ta.sum(op(x * 1.0) * 2.0).backward()


def test_an_error_inside_a_rule_comes_out_as_it_is(walks):
    calls = []

    def rule(g, y, x):
        calls.append(1)
        if len(calls) >= 6:
            raise KeyError("mine")
        return g * y

    op, x = altered(REGISTRY["exp"], vjps=(rule,)), ta.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(KeyError, match="mine"):
        for _ in range(10):
            ta.sum(op(x)).backward()
    assert len(calls) == 6


@pytest.mark.parametrize("module", [None, "learner"])
def test_a_learners_own_rule_is_called_once_in_each_pass(walks, module):
    """Also where it gives nothing, or now and then something wrong: it may count, or draw random numbers."""
    calls = []

    def rule(g, y, x):
        calls.append(1)
        return None if len(calls) < 7 else g[:1]

    rule.__module__ = module  # it has none where a text of the learner's was run without a name
    op, x = altered(REGISTRY["exp"], vjps=(rule,)), ta.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(6):
        ta.sum(op(x) + x).backward()
    with pytest.raises(ta.RuleError, match="the rule of exp for x"):
        ta.sum(op(x) + x).backward()
    assert len(calls) == 7
    np.testing.assert_array_equal(x.grad, [6.0, 6.0])
    assert repeated.budget.nodes >= repeated.ADVANCE  # what was not written costs nothing


def test_optional_parameters_reach_a_learners_rule(walks):
    op = altered(REGISTRY["exp"], forward=lambda x, k=2.0: x * k, vjps=(lambda g, y, x, k=2.0: g * k,), params=("k",))
    for params in [()] * 6 + [(5.0,)]:
        x = ta.tensor([1.0, 2.0], requires_grad=True)
        ta.sum(ta.apply(op, (x,), params)).backward()
    np.testing.assert_array_equal(x.grad, [5.0, 5.0])


@pytest.mark.parametrize("last", [True, False])
def test_operations_are_not_kept_alive(walks, last):
    """Their rules may hold whole batches."""

    class Held:
        pass

    alive, x = [], ta.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(10):
        held = Held()
        alive.append(weakref.ref(held))
        op = altered(REGISTRY["exp"], vjps=(lambda g, y, x, held=held: g * y,))
        y = op(x) if last else ta.sum(op(x))
        y.backward(np.ones(y.shape))
    del held, op, y
    gc.collect()
    assert not any(ref() for ref in alive)


def test_a_leaf_is_a_pass_too(walks):
    x = ta.tensor(1.0, requires_grad=True)
    for _ in range(200):
        x.backward()
    assert x.grad == 200
    with pytest.raises(straight.LeftToTheLoop):
        straight_line(x)


def test_a_result_that_is_told_to_need_no_gradient_does_not_fit(rng):
    def graph():
        x, y = leaves(rng, (2, 3), (2, 3))
        h = x * x
        return h, ta.sum(h * y)

    line = straight_line(graph()[1])
    h, z = graph()
    h.requires_grad = False
    assert line(z, one_like(z)) is None


@pytest.mark.parametrize("graph", [lambda w: w * w, ta.exp], ids=["two", "one"])
def test_a_graph_whose_leaves_need_no_gradient_any_more(walks, graph):
    for _ in range(6):
        w = ta.tensor([1.0, 2.0], requires_grad=True)
        y = ta.sum(graph(w))
        w.requires_grad = False
        y.backward()
        assert w.grad is None


@pytest.mark.parametrize("wanted", [1, 5000])
def test_thousands_of_inputs_are_left_to_the_loop(walks, wanted):
    many = [ta.tensor(float(n), requires_grad=n < wanted) for n in range(5000)]
    for _ in range(6):
        ta.sum(ta.stack(many)).backward()
    assert {float(x.grad) for x in many[:wanted]} == {6.0} and len(walks) == 6


def test_what_cannot_be_written_is_left_to_the_loop(walks, rng, monkeypatch):
    def too_deep(y):
        raise RecursionError

    monkeypatch.setattr(repeated, "straight_line", too_deep)
    train(10, rng)
    assert len(walks) == 10


def test_two_operations_with_equal_rules(rng):
    x, y = leaves(rng, (2, 3), (2, 3))
    line = straight_line(ta.sum(ta.max(x, axis=0) * ta.min(y, axis=0)))
    z = ta.sum(ta.max(x, axis=0) * ta.min(y, axis=0))
    assert_same(line(z, one_like(z))[0], walk([(z, one_like(z))]))


def test_shapes_without_end_are_not_all_written_out(walks, rng, monkeypatch):
    """A text costs as much as thirty passes."""
    written = []
    monkeypatch.setattr(repeated, "ADVANCE", 20)
    monkeypatch.setattr(repeated, "straight_line", lambda y: written.append(1) or straight_line(y))
    repeated.forget()
    w = ta.tensor(rng.normal(size=3), requires_grad=True)
    for length in [*range(1, 50)] * 10:
        ta.sum(w * np.ones((length, 3))).backward()
    assert 1 <= len(written) < 15


def test_a_stale_leaf_is_refused_by_the_text_too(walks):
    w = ta.tensor([1.0, 2.0], requires_grad=True)
    for step in range(6):
        y = ta.sum(w * w)
        if step == 5:
            w.assign([3.0, 4.0])
            before = w.grad.copy()
            with pytest.raises(ta.GraphError, match="was assigned new numbers"):
                y.backward()
            np.testing.assert_array_equal(w.grad, before)
        else:
            y.backward()
    assert len(walks) == repeated.COST


def test_what_is_infinite_is_looked_at_carefully_all_the_same(walks):
    for _ in range(6):
        x = ta.tensor([0.0, 4.0], requires_grad=True)
        ta.sum(ta.where(x.data > 0, ta.sqrt(x), 0.0)).backward()
        np.testing.assert_array_equal(x.grad, [0.0, 0.25])


def test_cotangents_are_let_go_on_the_way():
    x = ta.tensor(np.ones(100_000), requires_grad=True)
    y = x
    for _ in range(30):
        y = ta.tanh(y)
    line, g = straight_line(y), np.ones(100_000)
    tracemalloc.start()
    line(y, g)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * g.nbytes


@pytest.mark.parametrize("unused", [0, 700])
def test_what_was_made_in_between_does_not_make_a_graph_long(walks, unused):
    w = ta.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(10):
        early = w * w
        for _ in range(unused):
            ta.tensor(1.0)
        ta.sum(early * 2.0).backward()
    assert len(walks) <= repeated.COST
