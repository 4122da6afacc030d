"""Depth, width and sharing: nothing is recursive, nothing is walked twice, nothing needs the cycle collector."""

import gc
import sys
import weakref

import numpy as np
import pytest
from support import close

import tinyattn as ta


@pytest.fixture
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def chain(x, length):
    """A chain of ``length`` operations, half of them additions of x, so that the gradient has a closed form."""
    y = x
    for _ in range(length // 2):
        y = y * 1.0 + x
    return y


def test_sixty_doublings_of_a_diamond_are_walked_once_each():
    """Following every path would take 2 to the power of 60 steps."""
    x = ta.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(60):
        y = y + y
    assert float(y) == 2.0**60
    y.backward()
    close(x.grad, 2.0**60)
    graph = ta.Graph.of(y, gradients=True)
    assert len(graph) == 61 and len(graph.contributions) == 120
    close(graph.nodes[0].grad, 2.0**60)
    assert float(ta.grad(y, x, create_graph=True)) == 2.0**60


def test_diamond_of_real_operations():
    x = ta.tensor(0.3, requires_grad=True)
    y = x
    for _ in range(40):
        y = y * 0.5 + ta.tanh(y) * 0.25 + y * 0.25
    y.backward()
    step = 1e-6

    def value(v):
        for _ in range(40):
            v = v * 0.5 + np.tanh(v) * 0.25 + v * 0.25
        return v

    close(x.grad, (value(0.3 + step) - value(0.3 - step)) / (2 * step), rtol=1e-7)


def test_wide_fan_out_adds_every_reader():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    ta.sum(ta.stack([x * float(n) for n in range(2000)])).backward()
    close(x.grad, np.full(2, 2000 * 1999 / 2))


def test_wide_fan_in():
    leaves = [ta.tensor(float(n), requires_grad=True) for n in range(500)]
    ta.sum(ta.stack(leaves) ** 2).backward()
    assert [float(leaf.grad) for leaf in leaves] == [2.0 * n for n in range(500)]


def test_chain_beyond_the_recursion_limit(without_collector):
    length = 4 * sys.getrecursionlimit()
    x = ta.tensor(1.0, requires_grad=True)

    def everything():
        y = chain(x, length)
        y.backward()
        assert len(ta.Graph.of(y, gradients=True).nodes) > length
        repr(y), y.name
        return weakref.ref(y)

    assert everything()() is None
    close(x.grad, 1 + length // 2)


def test_second_order_along_a_chain_beyond_the_recursion_limit():
    length = 2 * sys.getrecursionlimit()
    x = ta.tensor(0.5, requires_grad=True)
    y = x
    for _ in range(length):
        y = y + x * x
    slope = ta.grad(y, x, create_graph=True)
    close(slope, 1 + 2 * 0.5 * length)
    close(ta.grad(slope, x), 2.0 * length)


@pytest.mark.slow
def test_a_million_nodes_forward_backward_and_freed_without_recursion_or_collector(without_collector):
    x = ta.tensor(1.0, requires_grad=True)
    y = chain(x, 1_000_000)
    middle = weakref.ref(y.inputs[0].inputs[0])
    y.backward()
    close(x.grad, 500_001.0)
    del y
    assert middle() is None


@pytest.mark.slow
def test_a_million_nodes_as_a_graph_and_as_text():
    viz_text = pytest.importorskip("viz")
    x = ta.tensor(1.0, requires_grad=True)
    y = chain(x, 666_666)  # each round is a product, its constant and a sum
    assert len(ta.Graph.of(y)) == 1_000_000
    assert viz_text.draw(y).text.count("\n") >= 1_000_000


@pytest.mark.slow
def test_memory_of_a_chain_is_at_most_300_bytes_a_node():
    import tracemalloc

    x = ta.tensor(1.0, requires_grad=True)
    tracemalloc.start()
    y = x
    for _ in range(100_000):
        y = y + x
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / 100_000 <= 300
    del y
