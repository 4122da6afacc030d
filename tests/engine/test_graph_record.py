"""Graph: a recorded computation as plain data, the same in every process, read without touching a gradient."""

import textwrap

import numpy as np
import pytest
from public_calls import CALLS
from repository import printed
from support import close

import tinyattn as ta
from tinyattn.autodiff import propagate


def leaf(*numbers, **options):
    return ta.tensor(np.array(numbers), requires_grad=True, **options)


def small():
    x, w = leaf(1.0, 2.0, name="x"), leaf(3.0, 4.0, name="w")
    c = ta.tensor([5.0, 6.0], name="c")
    y = ta.sum(ta.tanh(x * w) + c * 2)
    return x, w, c, y


def test_x_times_x_has_two_edges():
    x = leaf(1.0, 2.0)
    graph = ta.Graph.of(x * x)
    assert [node.inputs for node in graph.nodes] == [(), (0, 0)]
    assert graph.consumers(0) == ((1, 0), (1, 1))


def test_nodes_stand_in_topological_order_with_their_positions():
    graph = ta.Graph.of(small()[-1])
    for position, node in enumerate(graph.nodes):
        assert node.index == position and all(i < position for i in node.inputs)
    assert graph.outputs == (len(graph) - 1,)


def test_a_node_carries_what_a_picture_needs():
    graph = ta.Graph.of(small()[-1], variables={})
    by_name = {node.name: node for node in graph.nodes}
    assert [n.kind for n in graph.nodes if n.op is None] == ["parameter", "parameter", "input", "constant"]
    x, total = by_name["x"], by_name["y"]
    assert (x.op, x.op_name, x.shape, x.dtype, x.requires_grad, x.named, x.kind) == (
        None,
        "",
        (2,),
        np.float64,
        True,
        True,
        "parameter",
    )
    assert total.op_name == "sum" and total.params == {"axis": (0,), "keepdims": False} and total.kind == "op"
    assert not total.value.flags.writeable and total.value.shape == ()
    assert not by_name["c"].requires_grad and by_name["c"].gradient_state == "not needed"
    assert "sum" in repr(total) and repr(graph) == "Graph(9 nodes, outputs y)"


def test_not_computed_is_not_zero():
    x, _w, _c, y = small()
    assert {n.gradient_state for n in ta.Graph.of(y).nodes if n.requires_grad} == {"not computed"}
    ta.sum(x * 0).backward()
    graph = ta.Graph.of(y)
    assert graph.find("x").gradient_state == "computed" and not graph.find("x").grad.any()
    assert graph.find("w").gradient_state == "not computed" and graph.find("w").grad is None


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_gradients_of_a_graph_equal_backward_and_touch_no_tensor(call):
    leaves = [ta.tensor(x, requires_grad=True) for x in call.inputs()]
    loss = ta.sum(call.ours(ta, *leaves))
    graph = ta.Graph.of(loss, gradients=True, names={f"leaf{i}": t for i, t in enumerate(leaves)})
    assert all(t.grad is None for t in leaves)
    loss.backward()
    for i, t in enumerate(leaves):
        np.testing.assert_array_equal(graph.find(f"leaf{i}").grad, t.grad)
    for node in graph.nodes:
        if node.gradient_state == "computed":
            assert node.grad.shape == node.shape and node.grad.dtype == node.dtype


def test_every_node_s_gradient_is_the_sum_of_its_contributions():
    x = leaf(0.5, 1.5)
    y = ta.sum(x * x + ta.exp(x) * x)
    graph = ta.Graph.of(y, gradients=True)
    for node in graph.nodes:
        parts = [c.value for c in graph.contributions if c.target == node.index]
        if parts:
            close(node.grad, sum(parts), rtol=1e-15)
    assert len([c for c in graph.contributions if c.target == 0]) == 4


def test_contributions_come_in_the_order_of_the_backward_pass():
    """A node passes on only after it got everything itself."""
    graph = ta.Graph.of(small()[-1], gradients=True)
    order = [c.node for c in graph.contributions]
    assert order == sorted(order, reverse=True)
    for c in graph.contributions:
        assert graph.nodes[c.node].inputs[c.slot] == c.target


def test_graph_of_several_results():
    x = leaf(1.0, 2.0)
    a, b = ta.sum(x * 2), ta.sum(x * 3)
    graph = ta.Graph.of([a, b], gradients=True)
    assert [graph.nodes[i].name for i in graph.outputs] == ["a", "b"]
    close(graph.find("x").grad, [5.0, 5.0])


def test_graph_of_one_result_twice_and_of_a_result_inside_another():
    x = leaf(1.0, 2.0)
    a = x * 2
    b = ta.sum(a)
    graph = ta.Graph.of([a, b, b])
    assert len(graph.outputs) == 3 and graph.outputs[1] == graph.outputs[2]


def test_graph_of_a_leaf():
    graph = ta.Graph.of(leaf(1.0))
    assert len(graph) == 1 and graph.nodes[0].kind == "parameter"


def test_graph_after_assign_still_lists_the_leaf_first():
    w = leaf(1.0)
    y = w * 2
    w.assign([5.0])
    graph = ta.Graph.of(y)
    assert {node.name for node in graph.nodes[:2]} == {"w", "2"}
    assert all(i < node.index for node in graph.nodes for i in node.inputs)


def test_graph_survives_its_tensors():
    x = leaf(1.0, 2.0)
    graph = ta.Graph.of(ta.sum(x * x), gradients=True)
    x.assign([7.0, 7.0])
    del x
    close(graph.nodes[0].value, [1.0, 2.0])
    close(graph.nodes[0].grad, [2.0, 4.0])


def test_find_names_what_there_is():
    graph = ta.Graph.of(small()[-1])
    with pytest.raises(KeyError, match=r"no node is named 'nothing'.*x"):
        graph.find("nothing")


@pytest.mark.parametrize("wrong", [3.0, None, [], ["x"], np.ones(2)], ids=str)
def test_graph_of_something_else_is_refused(wrong):
    with pytest.raises(ta.ArgumentTypeError, match=r"Graph\.of"):
        ta.Graph.of(wrong)


def test_observed_contributions_are_those_of_the_pass():
    x = leaf(1.0, 2.0)
    y = ta.sum(x * x)
    seen = []
    propagate([(y, np.float64(1.0))], observe=lambda node, slot, value: seen.append((node.op.name, slot)))
    assert seen == [("sum", 0), ("multiply", 0), ("multiply", 1)]


PROGRAM = """
    import numpy as np
    import tinyattn as ta

    X = ta.tensor(np.linspace(-1, 1, 12).reshape(4, 3), requires_grad=True)
    W_q, W_k = (ta.tensor(np.eye(3) * n, requires_grad=True, name=f"W{n}") for n in (1, 2))
    with ta.scope("head 1"):
        Q, K = X @ W_q, X @ W_k
        weights = ta.softmax(Q @ K.mT / ta.sqrt(ta.size_of(K, -1)))
    loss = ta.mean(ta.gelu(weights @ X) ** 2) + ta.norm(X)
    graph = ta.Graph.of(loss, gradients=True)
    for n in graph.nodes:
        print(n.index, n.name, n.op_name, n.inputs, sorted(n.params), n.scope, n.kind, n.line, n.gradient_state)
        print(float(np.sum(n.value)))
    for c in graph.contributions:
        print(c.node, c.slot, c.target, float(np.sum(c.value)))
"""


def test_graph_is_the_same_in_every_process(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    (output,) = printed(script)
    assert "weights" in output
