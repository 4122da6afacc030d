"""What the engine promises about arrays, gradients and graphs, whatever the operation."""

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from support import altered, close

import tinyattn as ta
from tinyattn.errors import RuleError
from tinyattn.ops import REGISTRY


def leaf(*numbers, **options):
    return ta.tensor(np.array(numbers), requires_grad=True, **options)


# -- arrays inside a graph are immutable ---------------------------------------------------------------------


def test_a_leaf_copies_what_it_is_given():
    source = np.array([1.0, 2.0])
    x = ta.tensor(source, requires_grad=True)
    y = ta.sum(x * x)
    source[...] = 100.0
    y.backward()
    close(x.data, [1.0, 2.0])
    close(x.grad, [2.0, 4.0])


def test_a_constant_in_an_expression_is_copied_too():
    factor, x = np.array([3.0, 4.0]), leaf(1.0, 2.0)
    y = ta.sum(x * factor)
    factor[...] = 0.0
    y.backward()
    close(x.grad, [3.0, 4.0])


def test_masks_indices_and_targets_are_copied_too():
    mask, rows, targets = np.array([True, False]), np.array([0, 0]), np.array([1, 1])
    keep, along = np.array([True, True]), np.array([1, 1])
    x = leaf(1.0, 2.0)
    square = ta.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    results = [
        ta.sum(ta.where(mask, x, 0.0)),
        ta.sum(x[rows]),
        ta.cross_entropy(square, targets),
        ta.sum(x[mask]),
        ta.sum(ta.softmax(x, keep=keep) * x),
        ta.sum(ta.take_along_axis(x, along, 0)),
        ta.sum(ta.scaled_dot_product_attention(square, square, square, keep=keep)),
    ]
    inputs = [x, x, square, x, x, x, square]
    before = [ta.grad(y, t).data for y, t in zip(results, inputs, strict=True)]
    mask[:], rows[:], targets[:], keep[:], along[:] = [False, True], [1, 1], [0, 0], [True, False], [0, 0]
    after = [ta.grad(y, t).data for y, t in zip(results, inputs, strict=True)]
    for was, now in zip(before, after, strict=True):
        np.testing.assert_array_equal(was, now)


def test_data_is_read_only():
    x = leaf(1.0, 2.0)
    for t in (x, x * 2, x.reshape(2, 1), ta.sum(x), ta.tensor(1.0), x.detach()):
        with pytest.raises(ValueError, match="read-only"):
            t.data[...] = 0.0


def test_numpy_gives_a_copy_that_may_be_written():
    x = leaf(1.0, 2.0)
    x.numpy()[...] = 7.0
    close(x, [1.0, 2.0])


def test_item_assignment_is_refused_with_what_to_write():
    x = leaf(1.0, 2.0)
    for t in (x, x * 2, ta.tensor([1.0, 2.0])):
        with pytest.raises(ta.GraphError, match=r"ta.where\(mask, new, t\)"):
            t[0] = 5.0


@pytest.mark.parametrize("change", ["+=", "-=", "*=", "/="])
def test_in_place_operators_are_refused_on_parameters_with_the_update_to_write(change):
    names = {"W": leaf(1.0, 2.0)}
    with pytest.raises(ta.GraphError, match=r"W: \(2,\).*\n.*\n.*W.assign\(W.data - lr \* W.grad\)"):
        exec(f"W {change} 0.1", names)
    close(names["W"], [1.0, 2.0])


def test_data_cannot_be_set_and_the_update_to_write_is_said():
    w = ta.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ta.GraphError, match=r"Write W.assign\(W.data - lr \* W.grad\)"):
        w.data = w.data - 0.1
    with pytest.raises(ta.GraphError, match="Its numbers follow from its inputs"):
        (w * 2.0).data = w.data
    with pytest.raises(ta.GraphError, match=r"(?s)^((?!gradient).)*Write t.assign"):
        ta.tensor([1.0]).data = w.data
    np.testing.assert_array_equal(w.data, [1.0, 2.0])


@pytest.mark.parametrize("change", ["@= W", "**= 2"])
def test_no_other_operator_changes_a_parameter_in_place(change):
    """What Python spells with two characters makes a new tensor where it is not refused."""
    names = {"W": ta.tensor([[1.0, 2.0], [0.0, 1.0]], requires_grad=True)}
    before = names["W"]
    try:
        exec(f"W {change}", names)
    except ta.GraphError:
        pass
    close(before, [[1.0, 2.0], [0.0, 1.0]])


def test_augmented_assignment_of_a_result_makes_a_new_tensor():
    x = leaf(1.0, 2.0)
    y = first = x * 2
    y += 1
    y *= 3
    close(first, [2.0, 4.0])
    close(y, [9.0, 15.0])
    ta.sum(y).backward()
    close(x.grad, [6.0, 6.0])


def test_assign_takes_new_numbers_in_the_own_dtype_and_refuses_another_shape():
    w = ta.tensor(np.ones(2, "float32"), requires_grad=True)
    fresh = np.array([3.0, 4.0])
    assert w.assign(fresh) is w
    fresh[...] = 0
    close(w, [3.0, 4.0])
    assert w.dtype == np.float32
    with pytest.raises(ta.ShapeError, match=r"w: \(2,\).assign: .*\(3,\)"):
        w.assign(np.zeros(3))
    with pytest.raises(ta.GraphError, match="result of multiply"):
        (w * 2).assign(fresh)


def test_assign_does_not_reach_results_computed_before():
    w = leaf(1.0, 2.0)
    view = w.reshape(2, 1)
    old = w.data
    w.assign([5.0, 6.0])
    close(view, [[1.0], [2.0]])
    close(old, [1.0, 2.0])


def test_backward_after_assign_is_refused_and_touches_nothing():
    w, other = leaf(1.0, 2.0), leaf(3.0, 4.0)
    loss = ta.sum(w * w + other)
    other.grad = [9.0, 9.0]
    w.assign([0.0, 0.0])
    with pytest.raises(ta.GraphError, match=r"w: \(2,\) was assigned new numbers after multiply"):
        loss.backward()
    with pytest.raises(ta.GraphError, match=r"w: \(2,\) was assigned new numbers after multiply"):
        ta.grad(loss, other)
    assert w.grad is None
    close(other.grad, [9.0, 9.0])
    ta.sum(w * w + other).backward()
    close(other.grad, [10.0, 10.0])


# -- grad --------------------------------------------------------------------------------------------------------


def test_grad_is_none_then_an_own_writable_array():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    assert a.grad is None
    ta.sum(a + b).backward()
    assert type(a.grad) is np.ndarray and a.grad.flags.writeable and a.grad.flags.owndata
    a.grad[...] = 7.0
    close(b.grad, [1.0, 1.0])
    close(a.grad, [7.0, 7.0])
    assert a.grad is a.grad


def test_grad_of_a_number_is_an_array_too():
    x = leaf(3.0).reshape(())
    x = ta.tensor(3.0, requires_grad=True)
    (x * x).backward()
    assert isinstance(x.grad, np.ndarray) and x.grad.shape == ()
    x.grad *= 2
    close(x.grad, 12.0)


def test_grad_does_not_share_memory_with_the_seed_or_another_gradient():
    a, b, seed = leaf(1.0, 2.0), leaf(3.0, 4.0), np.array([1.0, 1.0])
    y = a + b
    y.backward(seed)
    assert not np.shares_memory(a.grad, b.grad)
    assert not np.shares_memory(a.grad, seed)
    seed[...] = 0
    close(a.grad, [1.0, 1.0])


def test_grad_adds_up_per_call_until_zero_grad():
    w = leaf(1.0, -2.0)
    ta.sum(w * 3).backward()
    ta.sum(w * w).backward()
    close(w.grad, [5.0, -1.0])
    w.zero_grad()
    assert w.grad is None
    ta.sum(w).backward()
    close(w.grad, [1.0, 1.0])


def test_accumulation_does_not_write_into_an_array_that_was_taken_out():
    w = leaf(1.0, 2.0)
    ta.sum(w).backward()
    kept = w.grad
    ta.sum(w).backward()
    close(kept, [1.0, 1.0])
    close(w.grad, [2.0, 2.0])


def test_backward_twice_through_one_graph_counts_twice_and_intermediates_do_not_add_up():
    w = leaf(2.0)
    middle = (w * w).retain_grad()
    loss = ta.sum(middle * 3)
    loss.backward()
    close(w.grad, [12.0])
    loss.backward()
    close(w.grad, [24.0])
    close(middle.grad, [3.0])


def test_two_losses_of_one_graph_give_the_sum():
    x = leaf(1.5)
    f = x + 1
    z = 2 * f
    ta.sum(z**2).backward()
    ta.sum(z**3).backward()
    close(x.grad, 2 * 2 * z.data + 3 * z.data**2 * 2)


def test_grad_may_be_set_to_numbers_or_none_of_the_right_shape():
    x = leaf(1.0, 2.0)
    x.grad = [1, 2]
    assert x.grad.dtype == np.float64
    with pytest.raises(ta.ShapeError, match=r"x: \(2,\)"):
        x.grad = np.ones(3)
    x.grad = None
    assert x.grad is None


def test_missing_grad_of_a_result_explains_itself():
    x = leaf(1.0, 2.0)
    y = x * x
    with pytest.warns(UserWarning, match=r"y: \(2,\) is the result of multiply.*\n.*\n.*retain_grad"):
        assert y.grad is None


def test_retain_grad_keeps_the_gradient_of_a_result():
    x = leaf(1.0, 2.0)
    y = x * x
    assert y.retain_grad() is y
    loss = ta.sum(y * y)
    loss.backward()
    close(y.grad, 2 * y.data)
    close(x.grad, 4 * x.data**3)
    assert loss.retain_grad().grad is None
    loss.backward()
    close(loss.grad, 1.0)


def test_retained_gradient_of_a_result_off_the_path_stays_empty():
    x = leaf(1.0, 2.0)
    y, z = (x * x).retain_grad(), (x * 2).retain_grad()
    ta.sum(z).backward()
    close(z.grad, [1.0, 1.0])
    assert y.grad is None


def test_retain_grad_of_a_leaf_changes_nothing():
    x = leaf(1.0).retain_grad()
    ta.sum(x).backward()
    close(x.grad, [1.0])


# -- what needs a gradient ---------------------------------------------------------------------------------------


def test_a_constant_gets_no_gradient():
    x, c = leaf(1.0, 2.0), ta.tensor([3.0, 4.0])
    ta.sum(x * c).backward()
    assert c.grad is None and not c.requires_grad


def test_detach_stops_the_gradient_and_keeps_the_numbers():
    x = leaf(1.0, 2.0)
    y = (x * x).detach()
    assert not y.requires_grad and y.op is None
    ta.sum(y * x).backward()
    close(x.grad, [1.0, 4.0])


def test_no_grad_records_nothing_and_ends_with_its_block():
    x = leaf(1.0, 2.0)
    with ta.no_grad():
        y = x * x
        with ta.no_grad():
            pass
        z = x * x
    assert not y.requires_grad and not z.requires_grad and z.op is None
    assert (x * x).requires_grad
    with pytest.raises(ZeroDivisionError), ta.no_grad():
        1 / 0
    assert (x * x).requires_grad


def test_no_grad_serves_as_a_decorator():
    @ta.no_grad()
    def double(x):
        return x * 2

    assert not double(leaf(1.0)).requires_grad
    assert not double(leaf(1.0)).requires_grad


def test_a_leaf_made_inside_no_grad_may_require_a_gradient_outside():
    with ta.no_grad():
        w = leaf(2.0)
    (w * w).sum().backward()
    close(w.grad, [4.0])


def test_no_grad_belongs_to_its_thread():
    x, seen, entered, leave = leaf(1.0), {}, threading.Event(), threading.Event()

    def without():
        with ta.no_grad(), ta.scope("other"):
            entered.set()
            leave.wait(10)
            seen["inside"] = (x * x).requires_grad

    worker = threading.Thread(target=without)
    worker.start()
    assert entered.wait(10)
    y = x * x
    leave.set()
    worker.join()
    assert y.requires_grad and y.scope == () and seen == {"inside": False}


def test_threads_build_and_differentiate_their_own_graphs():
    results = {}

    def work(number):
        x = ta.tensor(np.full(3, float(number)), requires_grad=True)
        y = x
        for _ in range(50):
            y = y + x * x
        ta.sum(y).backward()
        results[number] = x.grad

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        close(results[number], np.full(3, 1 + 100.0 * number))


def test_threads_may_differentiate_one_shared_graph():
    w = leaf(2.0, 3.0)
    loss = ta.sum(w * w * w)
    found = [None] * 8

    def work(slot):
        found[slot] = ta.grad(loss, w).data

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(g, [12.0, 27.0]) for g in found) and w.grad is None


# -- seeds and refusals ------------------------------------------------------------------------------------------


def test_backward_of_several_numbers_shows_the_three_usual_intents():
    x = leaf(1.0, 2.0)
    y = x * 2
    with pytest.raises(ta.GraphError) as caught:
        y.backward()
    text = str(caught.value)
    assert "backward: y: (2,) has 2 numbers" in text
    assert all(words in text for words in ("y.sum()", "backward(seed)", "shape (2,)", "ta.jacobian(f, x)"))
    assert x.grad is None


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_number_of_any_rank_needs_no_seed(shape):
    x = ta.tensor(np.full(shape, 3.0), requires_grad=True)
    (x * x).backward()
    close(x.grad, np.full(shape, 6.0))


def test_seed_weighs_the_results():
    x = leaf(1.0, 2.0)
    (x * x).backward([10.0, 0.5])
    close(x.grad, [20.0, 2.0])


def test_seed_may_be_a_tensor_or_whole_numbers_and_is_taken_in_the_result_s_dtype():
    x = ta.tensor(np.ones(2, "float32"), requires_grad=True)
    (x * x).backward(ta.tensor([1, 2]))
    assert x.grad.dtype == np.float32
    close(x.grad, [2.0, 4.0])


@pytest.mark.parametrize(
    "seed", [np.ones((2, 1)), np.ones(3), 1.0, [[1.0, 1.0]]], ids=["column", "three", "one", "row"]
)
def test_seed_of_another_shape_is_refused_even_if_it_would_broadcast(seed):
    x = leaf(1.0, 2.0)
    with pytest.raises(ta.ShapeError, match=r"backward: the seed has shape .*y: \(2,\)"):
        y = x * x
        y.backward(seed)
    assert x.grad is None


@pytest.mark.parametrize("seed", ["ab", [None, None], [1j, 0]], ids=["text", "none", "complex"])
def test_seed_that_is_not_numbers_is_refused_in_the_name_of_backward(seed):
    x = leaf(1.0, 2.0)
    with pytest.raises(ta.TinyattnError, match="backward: "):
        (x * x).backward(seed)
    assert x.grad is None


def test_backward_without_anything_to_differentiate_says_why():
    for y in (ta.tensor(1.0), ta.sum(ta.tensor([1.0])), leaf(1.0).detach()):
        with pytest.raises(ta.GraphError, match="requires_grad=True"):
            y.backward()


@pytest.mark.parametrize("data", [[1, 2], np.array([1, 2]), np.array([True]), np.int32(1)], ids=str)
def test_whole_numbers_cannot_require_a_gradient_and_it_says_what_to_write(data):
    with pytest.raises(ta.DTypeError, match=r"no slope.*\n.*1\.0 instead of 1"):
        ta.tensor(data, requires_grad=True)
    assert ta.tensor(data, requires_grad=True, dtype=float).requires_grad


@pytest.mark.parametrize(
    "data", ["text", [None], [object], [1j], [[1.0], [1.0, 2.0]], {"a": 1}, np.array(["2020"], "M8")], ids=str
)
def test_what_is_not_numbers_is_refused_by_tensor(data):
    with pytest.raises(ta.TinyattnError, match="tensor"):
        ta.tensor(data)


def test_a_list_of_tensors_is_refused_with_stack():
    with pytest.raises(ta.ArgumentTypeError, match=r"ta\.stack"):
        ta.tensor([leaf(1.0), leaf(2.0)])


def test_python_numbers_take_the_dtype_of_the_tensor():
    for dtype in ("float16", "float32", "float64"):
        x = ta.tensor(np.ones(2, dtype), requires_grad=True)
        for y in (x + 1, 2.0 * x, x / 3, x**2, 1 - x, ta.where([True, False], x, 0.5), ta.maximum(x, 0)):
            assert y.dtype == dtype


@pytest.mark.parametrize(
    "pair",
    [("float32", "float64"), ("float16", "float32"), ("float32", "int64"), ("float64", "bool")],
    ids="-".join,
)
def test_mixed_dtypes_promote_as_numpy_does_and_gradients_come_back_in_their_own(pair):
    a = ta.tensor(np.ones((2, 3), pair[0]), requires_grad=True)
    b = ta.tensor(np.ones(3, pair[1]), requires_grad=pair[1].startswith("float"))
    y = a * b
    assert y.dtype == (np.ones(1, pair[0]) * np.ones(1, pair[1])).dtype
    ta.sum(y).backward()
    assert a.grad.dtype == pair[0]
    assert b.grad is None or b.grad.dtype == pair[1]


def test_numbers_in_another_byte_order_are_taken_in_the_machine_s_own():
    for order in "<>":
        x = ta.tensor(np.array([1.0, 2.0], f"{order}f8"), requires_grad=True)
        assert x.dtype is np.dtype(float)
        ta.sum(x * np.array([3.0, 4.0], f"{order}f4")).backward()
        close(x.grad, [3.0, 4.0])
    assert ta.tensor([1.0], dtype=">f4").dtype is np.dtype("float32")


# -- copies and pickles ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, bool])
def test_an_array_out_of_a_pickle_takes_the_fast_ways_too(dtype):
    """Its dtype is a copy, equal to NumPy's own; the engine asks whether two dtypes are the same object."""
    array = pickle.loads(pickle.dumps(np.ones(3, dtype)))
    for x in (ta.tensor(array), ta.tensor(array, dtype=array.dtype), (ta.tensor([True]) * array).inputs[1]):
        assert x.dtype is np.dtype(dtype) is x.data.dtype


def test_a_leaf_can_be_copied_and_pickled_with_name_and_numbers():
    w = ta.tensor(np.ones((2, 2), "float32"), requires_grad=True, name="W_q")
    w.grad = np.full((2, 2), 3.0)
    for twin in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert twin is not w and twin.requires_grad and twin.given_name == "W_q" and twin.dtype == np.float32
        close(twin, w)
        twin.assign(np.zeros((2, 2)))
        close(w, np.ones((2, 2)))
    twin = copy.deepcopy(w)
    twin.grad[...] = 0
    close(w.grad, np.full((2, 2), 3.0))


def test_deepcopy_keeps_one_tensor_one():
    w = leaf(1.0)
    twins = copy.deepcopy({"a": w, "b": [w]})
    assert twins["a"] is twins["b"][0]


def test_a_shallow_copy_of_a_result_is_the_result_and_of_a_leaf_a_twin():
    """A result cannot change, so that two of it would be one; plotting libraries copy what they are given."""
    w = leaf(1.0)
    y = w * 2
    twin = copy.copy(w)
    assert copy.copy(y) is y and twin is not w and twin.tolist() == [1.0] and twin.requires_grad


@pytest.mark.parametrize("make", [copy.deepcopy, pickle.dumps], ids=["deepcopy", "pickle"])
def test_copying_a_result_is_refused_with_what_to_write_instead(make):
    y = leaf(1.0) * 2
    with pytest.raises(ta.GraphError, match=r"y: \(1,\) is the result of multiply"):
        make(y)


# -- one loop checks every rule ----------------------------------------------------------------------------------


def wrong_rule(rule):
    return altered(REGISTRY["exp"], vjps=(rule,))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda g, y, x: (g * y).sum(axis=0), r"shape \(3,\).*x has \(2, 3\)"),
        (lambda g, y, x: (g * y)[None], r"shape \(1, 2, 3\)(?s:.*)sum_to\(g, x\.shape\)"),
        (lambda g, y, x: (g * y).astype("float32"), "dtype float32.*float64(?s:.*)Leave conversions out"),
        (lambda g, y, x: 1.0, "a float; (?s:.*)with NumPy's operators"),
        (lambda g, y, x: [[1.0] * 3] * 2, "a list; (?s:.*)with NumPy's operators"),
    ],
    ids=["summed", "new-axis", "dtype", "number", "list"],
)
def test_a_rule_with_a_wrong_result_is_named_with_input_and_place(rule, words):
    x = ta.tensor(np.ones((2, 3)), requires_grad=True)
    y = ta.sum(wrong_rule(rule)(x))
    with pytest.raises(RuleError, match=rf"the rule of exp for x gave .*{words}"):
        y.backward()
    assert x.grad is None
    with pytest.raises(RuleError, match=r"test_contracts\.py"):
        y.backward()


@pytest.mark.parametrize("slot", [0, 1])
def test_a_wrong_rule_of_a_binary_op_names_the_input(slot):
    rules = list(REGISTRY["add"].vjps)
    rules[slot] = lambda g, y, a, b: g
    wrong = altered(REGISTRY["add"], vjps=tuple(rules))
    inputs = [ta.tensor(np.ones((2, 3)), requires_grad=True), ta.tensor(np.ones((2, 3)), requires_grad=True)]
    inputs[slot] = ta.tensor(np.ones(3), requires_grad=True)
    with pytest.raises(RuleError, match=f"the rule of add for {'ab'[slot]} gave"):
        ta.sum(wrong(*inputs)).backward()
    assert all(x.grad is None for x in inputs)


def test_a_rule_that_raises_is_an_error_and_leaves_gradients_alone():
    def broken(g, y, x):
        raise ValueError("no way back")

    x = leaf(1.0, 2.0)
    y = ta.sum(wrong_rule(broken)(x) + x)
    with pytest.raises(ValueError, match="no way back"):
        y.backward()
    assert x.grad is None


def test_nothing_is_half_done_when_a_late_rule_fails():
    """The wrong rule is reached after the gradient of ``first`` was already computed: it must not be stored."""
    first, last = leaf(1.0, 2.0), leaf(3.0, 4.0)
    wrong = wrong_rule(lambda g, y, x: g.sum())
    loss = ta.sum(wrong(last) * first)
    with pytest.raises(RuleError):
        loss.backward()
    assert first.grad is None and last.grad is None


# -- graphs are freed by counting alone --------------------------------------------------------------------------


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    "work",
    [
        lambda y, x: None,
        lambda y, x: ta.sum(y).backward(),
        lambda y, x: ta.grad(ta.sum(y), x),
        lambda y, x: ta.grad(ta.sum(ta.grad(ta.sum(y * y), x, create_graph=True)), x),
        lambda y, x: ta.Graph.of(ta.sum(y), gradients=True),
        lambda y, x: repr(y),
        lambda y, x: y.name,
        lambda y, x: [row for row in y],
        lambda y, x: y.retain_grad(),
    ],
    ids=["forward", "backward", "grad", "second", "graph", "repr", "name", "rows", "retain"],
)
def test_a_graph_is_freed_without_the_cycle_collector(work, no_collector):
    x = leaf(1.0, 2.0)
    y = ta.softmax(ta.layer_norm(x, [1.0, 1.0], [0.0, 0.0]) * 2)
    gone = weakref.ref(y)
    work(y, x)
    del y
    assert gone() is None


def test_an_error_leaves_no_cycle_behind(no_collector):
    def wrong(x):
        y = x * 2
        with pytest.raises(ta.ShapeError):
            y @ ta.tensor(np.ones((3, 3)))
        return weakref.ref(y)

    assert wrong(leaf(1.0, 2.0))() is None


def test_transforms_leave_no_cycle_behind(no_collector):
    seen = []

    def f(x):
        y = x * x
        seen.append(weakref.ref(y))
        return ta.sum(y)

    ta.grad(f)([1.0, 2.0])
    ta.hvp(f, [1.0, 2.0], [1.0, 1.0])
    ta.jvp(f, [[1.0, 2.0]], [[1.0, 1.0]])
    ta.hessian(f, [1.0, 2.0])
    assert [ref() for ref in seen if ref() is not None] == []


# -- looking at a tensor ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [lambda t: -t, lambda t: t - t], ids=["negative", "subtract"])
def test_true_and_false_are_no_numbers_and_no_operator_is_proposed_that_is_refused_too(call):
    t = ta.tensor([True, False])
    words = r"(?s)\(t: bool.*Write ta\.tensor\(\.\.\., dtype=float\).*t was made at"
    with pytest.raises(ta.DTypeError, match=words) as refused:
        call(t)
    assert "^" not in str(refused.value) and "~" not in str(refused.value)


def test_equality_gives_booleans_and_hash_goes_by_identity():
    a, b = leaf(1.0, 2.0), leaf(1.0, 3.0)
    np.testing.assert_array_equal(a == b, [True, False])
    np.testing.assert_array_equal(a != b, [False, True])
    np.testing.assert_array_equal(a < 1.5, [True, False])
    np.testing.assert_array_equal(2.0 <= b, [False, True])
    assert len({a, b, a}) == 2
    assert type(a == b) is np.ndarray


def test_one_number_is_a_float_and_several_are_refused():
    one, two = leaf(2.5), leaf(1.0, 2.0)
    assert float(one) == one.item() == 2.5 and int(one) == 2 and bool(one) and f"{one:.1f}" == "2.5"
    for ask in (float, int, bool, ta.Tensor.item, "{:.2f}".format):
        with pytest.raises(ta.ArgumentError, match=r"two: \(2,\) has 2 numbers"):
            ask(two)


def test_length_rows_and_lists():
    x = ta.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert len(x) == 2 and x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    rows = list(x)
    assert [row.tolist() for row in rows] == [[1.0, 2.0], [3.0, 4.0]]
    ta.sum(rows[1] * rows[1]).backward()
    close(x.grad, [[0.0, 0.0], [6.0, 8.0]])
    with pytest.raises(TypeError, match="0-d"):
        len(ta.tensor(1.0))
    with pytest.raises(TypeError, match="0-d"):
        list(ta.tensor(1.0))


def test_membership_and_iteration_end():
    x = leaf(1.0, 2.0)
    assert [float(row) for row in x] == [1.0, 2.0]


def test_repr_shows_numbers_shape_name_and_state_of_the_gradient():
    w = ta.tensor([1.0, 2.0], requires_grad=True, name="W")
    assert repr(w) == "tensor([1., 2.], shape=(2,), name='W', grad: not computed)"
    ta.sum(w * 0).backward()
    assert "grad: zero" in repr(w)
    ta.sum(w).backward()
    assert "grad: there" in repr(w)
    assert repr(w * 2) == "tensor([2., 4.], shape=(2,), made by multiply)"
    assert repr(ta.tensor(np.float32(1))) == "tensor(1., shape=(), dtype=float32)"
    assert f"{w}" == str(w) == repr(w)
    assert len(repr(ta.tensor(np.zeros((1000, 1000))))) < 1000


def test_unknown_attributes_name_the_nearest_thing():
    x = leaf(1.0)
    for wrong, nearest in (
        ("view", "reshape"),
        ("unsqueeze", "expand_dims"),
        ("clone", "detach"),
        ("cumsum", "triangle"),
    ):
        with pytest.raises(AttributeError, match=f"{wrong}.*{nearest}"):
            getattr(x, wrong)
    with pytest.raises(AttributeError, match="'nonsense'"):
        x.nonsense
    assert not hasattr(x, "nonsense")


def test_attributes_cannot_be_invented():
    """A misspelt attribute is an error, not a new attribute that nobody reads."""
    with pytest.raises(AttributeError):
        leaf(1.0).required_grad = True


# -- what a forward raises --------------------------------------------------------------------------------------


def test_a_fault_inside_an_op_of_one_s_own_keeps_its_type_and_traceback():
    def buggy(x):
        return x.no_such_attribute

    broken = altered(REGISTRY["exp"], forward=buggy)
    with pytest.raises(AttributeError) as caught:
        broken(leaf(1.0))
    assert "while computing exp" in caught.value.__notes__
    assert any(entry.name == "buggy" for entry in caught.traceback)


def test_floating_point_errors_that_were_asked_for_name_the_op():
    x = leaf(0.0)
    with (
        np.errstate(all="raise"),
        pytest.raises(FloatingPointError, match=r"log\(x: \(1,\)\): divide by zero"),
    ):
        ta.log(x)
    with np.errstate(all="raise"), pytest.raises(ta.NanError, match=r"divide\("):
        1 / x


def test_words_of_numpy_end_in_one_full_stop():
    seven = ta.Op("seven", lambda x: x.reshape(7), (lambda g, y, x: g,), "y[i] = x[i]", sample=lambda rng: [])
    with pytest.raises(ta.ShapeError, match=r"into shape \(7,\)\.\n"):
        seven(ta.tensor([1, 2]))


def test_shape_and_dtype_cannot_be_set():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    for name, value in (("shape", (2, 2)), ("dtype", np.float32)):
        with pytest.raises(AttributeError):
            setattr(x, name, value)
    assert x.shape == (4,) and x.dtype == np.float64


@pytest.mark.parametrize("function", [ta.relu, ta.abs])
@pytest.mark.parametrize("single", [False, True])
def test_no_gradient_at_a_kink_is_a_negative_zero(function, single):
    x = ta.tensor(0.0 if single else [0.0, -0.0, 0.0], requires_grad=True)
    (-function(x)).sum().backward()
    assert not np.signbit(x.grad).any() and not x.grad.any()


def test_relu_of_single_numbers_is_that_of_arrays():
    for value in (-2.0, -0.0, 0.0, 3.0, np.inf, -np.inf, np.nan):
        one, many = ta.relu(ta.tensor(value)).data, ta.relu(ta.tensor([value])).data[0]
        np.testing.assert_array_equal(one, many)
        assert np.signbit(one) == np.signbit(many)


def test_whether_a_number_is_in_a_tensor():
    x = leaf(1.0, 2.0)
    assert 2.0 in x and 3.0 not in x and 2 in x * 1.0
