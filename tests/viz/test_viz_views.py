"""More views of a graph: gradients going back, rules on the nodes, two graphs compared, the tree of modules."""

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter

import numpy as np
import pytest
from replayed import attention
from svg import SVG, texts

import tinyattn as ta
import viz
from tinyattn import nn
from tinyattn.errors import ArgumentError
from viz.comparing import Pairing


def edges(drawing):
    """Edges of the DOT text as Graphviz wrote them to SVG: title to how often."""
    root = ET.fromstring(drawing.svg)
    return Counter(g.get("id") for g in root.iter(f"{SVG}g") if g.get("class", "").startswith("edge"))


# Backward -------------------------------------------------------------------------------------------------


def test_the_backward_view_has_an_arrow_for_every_contribution():
    graph = ta.Graph.of(attention(), gradients=True)
    dot = viz.draw(graph, view="backward", show=("op", "shape")).dot
    back = re.findall(r"-> \w+ \[.*dir=back.* id=\"?(e\d+-\d+)", dot)
    assert sorted(back) == sorted(f"e{c.node}-{c.slot}" for c in graph.contributions)


def test_what_goes_back_stands_on_the_arrow_and_is_added_up():
    x = ta.tensor([3.0, 5.0], requires_grad=True)
    y = ta.sum(x * x + ta.exp(x))
    drawing = viz.draw(y, view="backward")
    assert len(re.findall(r"\bsn0 -> ", drawing.dot)) == 3 and "n0 -> sn0" in drawing.dot
    shown = texts(drawing.svg)
    assert shown.count("+") == 1 and {"20.1", "148.4"} <= set(shown)  # exp(3) and exp(5), the smaller path
    assert "gradient passed back; + adds up" in " ".join(shown)


def test_arrows_that_carry_no_gradient_are_faint():
    x, w = ta.tensor([1.0]), ta.tensor([2.0], requires_grad=True)
    lines = [line for line in viz.draw(x * w, view="backward").dot.split("\n") if " -> " in line]
    assert sum("dotted" in line for line in lines) == 1 and sum("dir=back" in line for line in lines) == 1


def test_both_ways():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    drawing = viz.draw(ta.sum(x * x), view="both")
    lines = [line for line in drawing.dot.split("\n") if " -> " in line]
    assert len(lines) == 6 and sum("constraint=false" in line for line in lines) == 3
    assert "gradient: the sum of 2 contributions" in texts(drawing.svg)


def test_a_backward_view_touches_no_gradient_and_needs_one():
    w = ta.tensor([2.0], requires_grad=True)
    y = ta.exp(w)
    _ = viz.draw(y, view="backward").svg
    assert w.grad is None
    with pytest.raises(ArgumentError, match="gradients=True"):
        viz.draw(ta.Graph.of(y), view="backward")
    with pytest.raises(ArgumentError, match="'forward', 'backward' or 'both'"):
        viz.draw(y, view="up")


def test_a_folded_backward_view_counts_what_it_bundles():
    drawing = viz.draw(attention(), view="backward", depth=0, show=("op", "shape"))
    assert "×3" in texts(drawing.svg) and "head" in " ".join(texts(drawing.svg))


# Rules ----------------------------------------------------------------------------------------------------


def test_rules_and_formulas_stand_on_the_nodes_in_the_text_and_in_the_data():
    drawing = viz.draw(attention(), show=("op", "rule", "formula"))
    shown = texts(drawing.svg)
    assert "Q = X W_q" in shown and "V̄ = Aᵀ Ō" in shown
    assert "    V̄ = Aᵀ Ō" in drawing.text
    nodes = {node["name"]: node for node in json.loads(drawing.json)["nodes"]}
    assert nodes["Q"]["definition"] == "y[i,k] = sum_j a[i,j] * b[j,k]" and set(nodes["Q"]["rules"]) == {"0", "1"}
    assert "rules" not in nodes["W_q"]
    assert "    V̄" not in viz.draw(attention(), show=("op", "formula")).text


# A page ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["auto", "dark"])
def test_a_drawing_can_be_saved_as_a_page(theme, tmp_path):
    x = ta.tensor([1.0], requires_grad=True, name="</pre><script>alert(1)</script>")
    drawing = viz.draw(ta.exp(x), theme=theme)
    drawing.save(tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "<svg" in text and "<script" not in text
    assert ('data-theme="dark"' in text) == (theme == "dark")
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


# Two graphs -----------------------------------------------------------------------------------------------


def scores(scaled, factor=1.0):
    Q = ta.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    K = ta.tensor([[1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    S = Q @ K.mT
    if scaled:
        S = S / 2.0
    A = ta.softmax(S * factor, axis=-1)
    return A


def test_equal_computations_are_equal():
    pairing = Pairing(ta.Graph.of(scores(True)), ta.Graph.of(scores(True)))
    assert pairing.first() is None and not pairing.alone
    assert "all of them are equal" in viz.diff(scores(True), scores(True)).text


def test_a_forgotten_operation_is_found_where_it_is_missing():
    drawing = viz.diff(scores(False), scores(True))
    assert "+ S·2" in drawing.text and "only in the reference" in drawing.text
    assert "the first that differs is multiply" in drawing.text
    shown = texts(drawing.svg)
    assert {"yours", "reference"} <= set(shown) and any("only here" in line for line in shown)


def test_another_value_is_told_apart_from_another_operation():
    text = viz.diff(scores(True, 1.0), scores(True, 3.0)).text
    assert "~ A" in text
    x = ta.tensor([1.0, 2.0])
    mine, reference = x * 2.0, ta.tensor([1.0, 2.5], name="x") * 2.0
    said = viz.diff(mine, reference).text
    assert "x: values differ by up to 0.5" in said and "the first that differs is x" in said


def test_another_shape_is_told():
    x = ta.tensor(np.ones((2, 3)))
    mine, reference = ta.sum(x, axis=0), ta.sum(x, axis=1)
    assert "its shape is (2,)" in viz.diff(mine, reference).text


def test_a_diff_in_every_form():
    drawing = viz.diff(scores(False), scores(True), lang="zh", theme="dark")
    assert json.loads(drawing.json)["kind"] == "diff" and "只在参考中" in drawing.text
    assert drawing.svg.count("<svg") == 1 and drawing.dot.startswith("digraph")


# Modules --------------------------------------------------------------------------------------------------


class Model(nn.Module):
    def __init__(self):
        self.embed = nn.Linear(3, 4, rng=0)
        self.heads = [nn.SelfAttention(4, rng=0), nn.SelfAttention(4, rng=1)]
        self.out = nn.Linear(4, 2, rng=0)


def test_a_model_is_a_tree_of_its_modules():
    drawing = viz.modules(Model())
    data = json.loads(drawing.json)["root"]
    assert data["class"] == "Model" and [part["class"] for part in data["parts"]].count("SelfAttention") == 2
    shown = texts(drawing.svg)
    assert {"embed", "W (3, 4)", "b (4,)", "W_q (4, 4)"} <= set(shown)
    total = sum(leaf.size for leaf in Model().parameters())
    assert f"with its parts: {total} numbers" in shown and f"Model: Model, {total} numbers" in drawing.text
    assert len(edges(drawing)) == 4


def test_what_is_no_module_is_refused():
    with pytest.raises(TypeError, match="a Module is needed, not Tensor"):
        viz.modules(ta.tensor(1.0))


# What may be folded together ------------------------------------------------------------------------------


def chain(scopes, ops=3):
    h = ta.tensor(np.eye(2), requires_grad=True)
    for name in scopes:
        with ta.scope(name):
            for _ in range(ops):
                h = ta.tanh(h @ ta.tensor(np.eye(2), requires_grad=True))
        h = ta.exp(h)
    return h


def flows_forward(drawing):
    """True when the arrows between the boxes of a drawing have no circle."""
    data = json.loads(drawing.json)
    waiting = {box["id"]: set() for box in data["boxes"]}
    for arrow in data["arrows"]:
        waiting[arrow["to"]].add(arrow["from"])
    while ready := [key for key, sources in waiting.items() if not sources]:
        for key in ready:
            del waiting[key]
        for sources in waiting.values():
            sources -= set(ready)
    return not waiting


def test_a_scope_that_is_entered_again_is_a_fold_of_its_own_each_time():
    drawing = viz.draw(chain(["a", "b", "a", "b"]), depth=0)
    titles = [box["title"] for box in json.loads(drawing.json)["boxes"] if box["kind"] == "fold"]
    assert titles == ["a", "b", "a", "b"] and flows_forward(drawing)


def test_scopes_in_turns_are_one_fold_each_where_no_path_comes_back():
    x = ta.tensor(np.eye(2), requires_grad=True)
    parts = [x, x]
    for _ in range(3):
        for head in (0, 1):
            with ta.scope(f"head {head}"):
                parts[head] = ta.tanh(parts[head])
    drawing = viz.draw(parts[0] + parts[1], depth=0)
    folds = [box for box in json.loads(drawing.json)["boxes"] if box["kind"] == "fold"]
    assert [len(box["nodes"]) for box in folds] == [3, 3] and flows_forward(drawing)


def test_a_module_that_is_used_many_times_folds_into_a_run():
    layer = nn.Linear(4, 4, rng=0)
    h = ta.tensor(np.eye(4))
    for _ in range(30):
        h = ta.tanh(layer(h))
    drawing = viz.draw(h, max_nodes=20)
    assert any("× 2" in told or "× 3" in told for told in json.loads(drawing.json)["folded"]) and flows_forward(drawing)


def test_modules_in_a_list_fold_with_their_number():
    drawing = viz.draw(chain([f"blocks[{i}]" for i in range(12)]), max_nodes=10)
    assert flows_forward(drawing) and "blocks, exp × 11" in " ".join(json.loads(drawing.json)["folded"])


@pytest.mark.parametrize("most", [4, 7, 12, 25])
def test_no_folding_makes_a_circle(most):
    rng = np.random.default_rng(most)
    x = ta.tensor(np.eye(2), requires_grad=True)
    known = [x]
    for _ in range(80):
        names = [f"s{rng.integers(3)}", f"t{rng.integers(2)}"][: rng.integers(3)]
        a, b = (known[int(rng.integers(max(0, len(known) - 6), len(known)))] for _ in range(2))
        with ta.scope(names[0] if names else "top"), ta.scope(names[1] if len(names) > 1 else "rest"):
            known.append(ta.tanh(a) + b if rng.integers(2) else ta.tanh(a @ b))
    y = ta.sum(ta.stack(known[-5:]))
    assert flows_forward(viz.draw(y, max_nodes=most)) and flows_forward(viz.draw(y, depth=1))
