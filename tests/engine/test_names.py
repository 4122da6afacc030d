"""Names come from the learner's own code, lines too; repeats get a running number."""

import re
import textwrap

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.names import line_of

MADE_HERE = re.compile(r"test_names\.py$")


def leaf(*shape):
    return ta.tensor(np.ones(shape), requires_grad=True)


def names(y, **options):
    return [node.name for node in ta.Graph.of(y, **options).nodes]


def stored(y):
    """Names without looking at variables: only what the code itself tells."""
    return names(y, variables={})


def run(source, **given):
    """Execute a piece of code as a lesson would, and give its variables."""
    variables = {"ta": ta, "np": np, **given}
    exec(compile(textwrap.dedent(source), "lesson.py", "exec"), variables)
    return variables


# -- the target of an assignment -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("y = x * 2", "y"),
        ("y: object = x * 2", "y"),
        ("y = x + 1\ny *= 2", "y"),
        ("y = x + 1\ny @= np.eye(2)", "y"),
        ("(y := x * 2)", "y"),
        ("print(y := x * 2)", "y"),
        ("y = z = x * 2", "y"),
        ("y = -x", "y"),
        ("y = x[0]", "y"),
        ("y = x.mT", "y"),
        ("y = x.sum()", "y"),
        ("y = x.sum(axis=0)", "y"),
        ("y = ta.exp(x)", "y"),
        ("y = np.exp(x)", "y"),
        ("y = np.eye(2) @ x", "y"),
        ("y = 2 * x", "y"),
        ("y = ta.softmax(x, axis=-1)", "y"),
        ("y = ta.mean(x)", "y"),
        ("y = x.mean(axis=0)", "y"),
        ("y = ta.gelu(x)", "y"),
        ("y = np.mean(x)", "y"),
        ("y = ta.rms_norm(x, [1.0, 1.0])", "y"),
        ("y = ta.concatenate([x, x])", "y"),
        ("y = (\n    x\n    * 2\n)", "y"),
        ("y = x * 2 if True else None", "y"),
        ("for y in [1]:\n    y = x * 2", "y"),
        ("with ta.scope('a'):\n    y = x * 2", "y"),
        ("global y\ny = x * 2", "y"),
        ("Größe = x * 2\ny = Größe", "Größe"),
        ("权重 = x * 2\ny = 权重", "权重"),
        ("S_̄ = x * 2\ny = S_̄" if "S_̄".isidentifier() else "y = x * 2", "S_̄" if "S_̄".isidentifier() else "y"),
    ],
    ids=range(31),
)
def test_the_stored_variable_names_the_node(source, name, capsys):
    y = run(source, x=leaf(2, 2))["y"]
    assert stored(y)[-1].split("·")[0] == name
    assert y.name == name


@pytest.mark.parametrize(
    "source",
    [
        "y = [x * 2][0]",
        "y = (x * 2,)[0]",
        "y = {'a': x * 2}['a']",
        "y = (lambda: x * 2)()",
        "d = {}\nd['y'] = x * 2\ny = d['y']",
    ],
    ids=["list", "tuple", "dict", "lambda", "item"],
)
def test_what_is_not_stored_at_once_has_the_name_of_its_op(source):
    y = run(source, x=leaf(2, 2))["y"]
    assert stored(y)[-1] == "multiply"
    assert y.name is None


def test_attributes_are_no_variables_but_the_object_s_holder_may_be():
    variables = run("class Box: pass\nbox = Box()\nbox.y = x * 2\ny = box.y", x=leaf(2))
    assert names(variables["y"], variables={})[-1] == "multiply"
    assert names(variables["y"], variables=variables)[-1] == "y"


def test_inside_functions_and_nested_functions():
    def outer(x):
        hidden = x * 2

        def inner():
            nonlocal hidden
            deeper = hidden + 1
            hidden = deeper * 3
            return hidden

        return inner()

    assert stored(outer(leaf(2))) == ["input", "2", "1", "3", "hidden·1", "deeper", "hidden·2"]


def test_only_the_final_op_of_a_line_gets_the_name():
    x = ta.tensor(1.0, requires_grad=True)
    y = ta.exp(x * 2) + 1
    assert stored(y) == ["x", "2", "1", "multiply", "exp", "y"]


def test_a_loop_gives_running_numbers():
    x = ta.tensor(1.0, requires_grad=True)
    for _ in range(3):
        x = x * x
    assert stored(x) == ["x·1", "x·2", "x·3", "x·4"]


def test_unpacked_targets_are_found_through_the_variables():
    x = leaf(4)
    first, second = ta.split(x, 2)
    (q, k), *_ = (x * 2, x * 3), x * 4
    graph = ta.Graph.of([first, second, q, k])
    assert [graph.nodes[i].name for i in graph.outputs] == ["first", "second", "q", "k"]
    assert graph.nodes[0].name == "x" and all(graph.nodes[i].named for i in graph.outputs)


def test_composed_functions_name_their_inner_results_and_the_caller_names_the_last():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    average = ta.mean(x, axis=0)
    assert stored(average) == ["x", "total", "count", "average"]


def test_rows_of_a_loop_are_named_by_its_variable():
    x = leaf(2)
    rows = [part * 2 for part in x]
    assert stored(rows) == ["input", "2·1", "2·2", "part·1", "multiply·1", "part·2", "multiply·2"]


def test_exec_and_the_interactive_prompt_name_their_nodes():
    x, variables = leaf(2), {}
    exec("y = x * 2", {"x": x}, variables)
    assert stored(variables["y"])[-1] == "y"
    exec(compile("z = x + 1", "<stdin>", "single"), {"x": x}, variables)
    assert stored(variables["z"])[-1] == "z"


# -- which name wins -------------------------------------------------------------------------------------------------


def test_order_of_names():
    w = ta.tensor([1.0], requires_grad=True, name="given")
    y = w * 2
    alias = y
    assert names(alias, names={"explicit": w})[0] == "explicit"
    graph = ta.Graph.of(alias)
    assert graph.nodes[0].name == "given"
    assert graph.nodes[-1].name == "alias"  # the first variable in alphabetical order that is this tensor now
    assert names(alias, variables={})[-1] == "y"
    assert names(alias, variables={"here": y})[-1] == "here"


def test_generated_names_are_told_from_the_learner_s():
    x = ta.tensor(1.0, requires_grad=True)
    y = ta.exp(x * 3)
    by_name = {node.name: node.named for node in ta.Graph.of(y, variables={}).nodes}
    assert by_name == {"x": True, "3": False, "multiply": False, "y": True}


def test_every_name_is_unique():
    x = leaf(2)
    a = x * x
    b = (x * x) + (x * x)
    found = names([a, b])
    assert len(set(found)) == len(found)


def test_a_name_that_looks_like_a_numbered_one_stays_unique():
    a = ta.tensor([1.0], requires_grad=True, name="x")
    b = ta.tensor([1.0], requires_grad=True, name="x")
    c = ta.tensor([1.0], requires_grad=True, name="x·1")
    found = names(a + b + c, variables={})
    assert len(set(found)) == len(found)


def test_constants_show_their_number():
    x = leaf(2)
    y = x * 0.5 + np.array([1.0, 2.0])
    assert "0.5" in stored(y) and "constant" in stored(y)


# -- errors use the same names --------------------------------------------------------------------------------------


def test_errors_name_operands_by_variable_then_by_what_was_stored():
    Q, K = leaf(2, 3), leaf(4, 3)
    with pytest.raises(
        ta.ShapeError,
        match=r"matmul\(Q: \(2, 3\), K: \(4, 3\)\).*\n.*\n.*Q @ K\.mT.*\(2, 4\).*K was made at test_names\.py",
    ):
        Q @ K

    def product(a, b):
        return a @ b

    with pytest.raises(ta.ShapeError, match=r"matmul\(a: \(2, 3\), b: \(4, 3\)\)"):
        product(Q, K)
    with pytest.raises(ta.ShapeError, match=r"matmul\(exp\(\.\.\.\): \(2, 3\), K: \(4, 3\)\)"):
        ta.exp(Q) @ K


def test_errors_use_given_names_before_variables():
    w = ta.tensor(np.ones((2, 3)), name="W_q")
    with pytest.raises(ta.ShapeError, match=r"W_q: \(2, 3\)"):
        w @ w


# -- places ----------------------------------------------------------------------------------------------------------


def line_here():
    import sys

    return sys._getframe(1).f_lineno


def test_source_line_and_function_of_each_node():
    x = leaf(2)
    here = line_here() + 1
    y = x * 2
    z = ta.mean(y)
    graph = ta.Graph.of(z)
    node = graph.find("y")
    assert (
        MADE_HERE.search(node.file)
        and node.line == here
        and node.function == "test_source_line_and_function_of_each_node"
    )
    inside = [n for n in graph.nodes if n.name in ("total", "z")]
    assert len(inside) == 2 and all(MADE_HERE.search(n.file) and n.line == here + 1 for n in inside)


def test_lines_of_a_lesson_are_those_of_its_file():
    variables = run("\n\ny = x * 2\n\nz = ta.gelu(y)\n", x=leaf(2))
    graph = ta.Graph.of(variables["z"], variables={})
    assert {(n.file, n.line) for n in graph.nodes if n.op is not None} == {("lesson.py", 3), ("lesson.py", 5)}


def test_line_of_finds_every_instruction():
    code = compile("a = 1\nb = 2\n", "two.py", "exec")
    found = {line_of(code, offset)[1] for offset in range(0, len(code.co_code), 2)}
    assert found <= {0, 1, 2} and {1, 2} <= found


def test_recorded_rules_stand_where_their_op_stands():
    x = leaf(2)
    y = ta.sum(ta.tanh(x))
    slope = ta.grad(y, x, create_graph=True)
    graph = ta.Graph.of(slope)
    rule_nodes = [n for n in graph.nodes if n.scope[:1] == ("backward",)]
    assert rule_nodes and all(MADE_HERE.search(n.file) for n in rule_nodes if n.line)


# -- scopes --------------------------------------------------------------------------------------------------------


def test_scopes_make_paths_and_end_with_their_blocks():
    x = leaf(2)
    with ta.scope("block"):
        a = x * 2
        with ta.scope("head 1"):
            b = a * 3
        c = b * 4
    d = c * 5
    scopes = {node.name: node.scope for node in ta.Graph.of(d).nodes if node.op is not None}
    assert scopes == {"a": ("block",), "b": ("block", "head 1"), "c": ("block",), "d": ()}


def test_a_scope_ends_when_its_block_raises():
    x = leaf(2)
    with pytest.raises(KeyError), ta.scope("broken"):
        raise KeyError
    assert (x * 2).scope == ()


def test_scope_and_no_grad_nest_in_either_order():
    x = leaf(2)
    with ta.no_grad(), ta.scope("a"):
        y = x * 2
    with ta.scope("b"):
        with ta.no_grad():
            pass
        z = x * 2
    assert not y.requires_grad and z.requires_grad and z.scope == ("b",)


def test_a_scope_may_have_any_text():
    x = leaf(2)
    with ta.scope('头 1 <&> "x"'):
        y = x * 2
    assert y.scope == ('头 1 <&> "x"',)


def test_without_names_results_go_by_their_operation_and_all_else_is_as_before():
    x = leaf(2)
    with ta.no_names(), ta.no_names():
        y = x * 2
        with ta.scope("inside"):
            z = ta.exp(y)
    w = z + y
    assert (y.name, z.name, w.name) == (None, None, "w") and z.scope == ("inside",)
    graph = ta.Graph.of(w, variables={})
    assert [(node.name, node.line > 0) for node in graph.nodes if node.op] == [
        ("multiply", False), ("exp", False), ("w", True)
    ]
    w.sum().backward()
    np.testing.assert_allclose(x.grad, 2 + 2 * np.exp(2 * x.data))
    with pytest.raises(KeyError), ta.no_names():
        raise KeyError
    v = x + x
    assert v.name == "v"
