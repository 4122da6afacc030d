"""Every public function against differences, its op's definitions, and the other ways to spell it."""

import numpy as np
import pytest
from public_calls import CALLS, NOT_IN_THE_TABLE
from support import close, differences, first_along, gradients, second_gradients

import tinyattn as ta

each_call = pytest.mark.parametrize("call", CALLS, ids=str)


def test_every_public_function_is_in_the_table():
    public = {name for name in ta.__all__ if callable(getattr(ta, name)) and name.islower()}
    known = {call.name for call in CALLS} | set(NOT_IN_THE_TABLE)
    later = {
        "detect_nan", "show_versions", "derive", "compare", "compile", "set_threads", "backward_in_parts", "sweep",
        "no_names",
    }
    assert public - known - later == set()


def value_of(call):
    return lambda *arrays: call.ours(ta, *(ta.tensor(x) for x in arrays)).data


@each_call
def test_gradient_agrees_with_differences(call, rng):
    inputs = call.inputs()
    g = rng.normal(size=value_of(call)(*inputs).shape)
    if call.name == "astype":
        return close(gradients(lambda *xs: call.ours(ta, *xs), inputs, g)[0], g)
    for got, want in zip(
        gradients(lambda *xs: call.ours(ta, *xs), inputs, g),
        differences(value_of(call), inputs, g),
        strict=True,
    ):
        close(got, want, rtol=1e-8, atol=1e-9)


@each_call
def test_second_order_agrees_with_differences_of_first_order(call, rng):
    inputs = call.inputs()
    g = rng.normal(size=value_of(call)(*inputs).shape)
    directions = [rng.normal(size=x.shape) for x in inputs]
    f = lambda *xs: call.ours(ta, *xs)
    for got, want in zip(
        second_gradients(f, inputs, g, directions), first_along(f, inputs, g, directions), strict=True
    ):
        close(got, want, rtol=1e-7, atol=1e-8)


@each_call
def test_every_node_equals_its_own_definition(call):
    """Brute force: the one line of index notation, evaluated entry by entry, gives what the forward gave."""
    entrywise = pytest.importorskip("tinyattn.symbolic.entrywise")
    operands = pytest.importorskip("tinyattn.symbolic.operands")
    graph = ta.Graph.of(call.ours(ta, *(ta.tensor(x, requires_grad=True) for x in call.inputs())))
    for node in graph.nodes:
        if node.op is None or node.op.name == "cast":
            continue
        inputs = [graph.nodes[i].value for i in node.inputs]
        text = node.op.definition_text(tuple(x.shape for x in inputs), node.params)
        given = operands.operands_of(node.op, inputs, node.params)
        close(node.value, entrywise.evaluate(text, given, {}, node.shape), rtol=1e-12, atol=1e-12)


@each_call
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_narrow_numbers_stay_narrow(call, dtype):
    if call.name == "astype":
        return
    leaves = [ta.tensor(x.astype(dtype), requires_grad=True) for x in call.inputs()]
    y = call.ours(ta, *leaves)
    assert y.dtype == dtype
    y.backward(np.ones(y.shape))
    for leaf in leaves:
        assert leaf.grad is not None and leaf.grad.dtype == dtype and leaf.grad.shape == leaf.shape
    for g in ta.grad(y, leaves, seed=np.ones(y.shape), create_graph=True):
        assert g.dtype == dtype


@each_call
def test_arrays_are_taken_as_constants(call):
    """A call on plain arrays computes the same; nothing needs a gradient."""
    inputs = call.inputs()
    if call.name in ("index", "size_of", "power", "prod", "astype", "maximum", "minimum", "split"):
        return
    y = call.ours(ta, *inputs)
    assert isinstance(y, ta.Tensor) and not y.requires_grad
    close(y, value_of(call)(*inputs), rtol=0, atol=0)


@each_call
def test_result_is_the_same_inside_no_grad(call):
    leaves = [ta.tensor(x, requires_grad=True) for x in call.inputs()]
    recorded = call.ours(ta, *leaves)
    with ta.no_grad():
        plain = call.ours(ta, *leaves)
    assert recorded.requires_grad and not plain.requires_grad and plain.op is None and plain.inputs == ()
    np.testing.assert_array_equal(recorded.data, plain.data)


def methods():
    from tinyattn.functions import METHODS

    return [call for call in CALLS if call.name in METHODS and len(call.shapes) == 1]


def test_methods_are_the_functions():
    from tinyattn.functions import METHODS

    x = ta.tensor(np.arange(6.0).reshape(2, 3) + 1)
    for name in METHODS:
        assert callable(getattr(x, name)), name
        assert name in dir(x)
    close(x.softmax(axis=0), ta.softmax(x, axis=0), atol=0)
    close(x.sum(axis=1, keepdims=True), ta.sum(x, axis=1, keepdims=True), atol=0)
    close(x.reshape(3, -1), ta.reshape(x, (3, -1)), atol=0)
    close(x.transpose(1, 0), ta.transpose(x, (1, 0)), atol=0)
    assert {call.name for call in methods()} > {"exp", "sum", "softmax", "mean", "reshape"}
