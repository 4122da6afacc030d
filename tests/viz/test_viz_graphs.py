"""The drawn graph: what is in it, and that it is the graph that was recorded."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from repository import printed, same_as_kept
from svg import SVG

import tinyattn as ta
import viz
from tinyattn.errors import ArgumentError, MissingToolError
from tinyattn.graph import Graph
from viz import colours
from viz.labels import visible


def facts(drawing):
    """What Graphviz made of a drawing: texts, boxes by class, arrows as a count of tips."""
    root = ET.fromstring(drawing.svg)
    groups = list(root.iter(f"{SVG}g"))
    boxes = {g.get("id"): set(g.get("class").split()) - {"node"} for g in groups if "node" in g.get("class")}
    arrows = Counter(g.findtext(f"{SVG}title") for g in groups if g.get("class") == "edge")
    frames = [g.findtext(f"{SVG}text") for g in groups if g.get("class") == "cluster"]
    texts = [t.text.replace("\xa0", " ") for t in root.iter(f"{SVG}text")]
    return texts, boxes, arrows, frames


def texts(drawing):
    return facts(drawing)[0]


def test_both_operands_of_x_times_x_have_an_arrow():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    y = ta.sum(x * x)
    _, boxes, arrows, _ = facts(viz.draw(y))
    assert boxes == {"n0": {"parameter"}, "n1": {"op"}, "n2": {"op", "output"}}
    assert arrows == {"x → multiply": 2, "multiply → y": 1}


def test_arrows_are_named_only_where_the_order_of_operands_matters():
    a, b = ta.tensor([[2.0]], requires_grad=True), ta.tensor([[3.0]])
    assert facts(viz.draw(a @ b - b))[2].keys() >= {"a → matmul (a)", "b → matmul (b)"}
    assert set(facts(viz.draw(a + b))[2]) == {"a → add", "b → add"}
    squared = a @ a
    assert set(facts(viz.draw(squared))[2]) == {"a → squared (a)", "a → squared (b)"}


def test_the_picture_has_the_nodes_and_slots_of_the_graph():
    """Nothing hidden and no calculated constants here: boxes are nodes, arrows are inputs, one to one."""
    x = ta.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    w = ta.tensor([[1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    with ta.scope("layer"):
        h = ta.tanh(x @ w) + x
    y = ta.sum(h * h * w)
    graph = Graph.of(y)
    data = json.loads(viz.draw(graph).json)
    assert [box["nodes"] for box in data["boxes"]] == [[node.index] for node in graph.nodes]
    wanted = Counter(
        (f"n{source}", f"n{node.index}", slot)
        for node in graph.nodes
        for slot, source in enumerate(node.inputs)
    )
    assert Counter((a["from"], a["to"], a["slot"]) for a in data["arrows"]) == wanted
    _, boxes, arrows, frames = facts(viz.draw(graph))
    assert len(boxes) == len(graph.nodes) and sum(arrows.values()) == sum(wanted.values())
    assert "layer" in frames


def test_every_kind_of_box_can_be_told_without_colour():
    x, w = ta.tensor([1.0, 2.0]), ta.tensor([3.0, 4.0], requires_grad=True)
    drawing = viz.draw(ta.sum(x * w * 0.5))
    kinds = {" ".join(sorted(classes)): key for key, classes in facts(drawing)[1].items()}
    look = {line.split()[0]: line for line in drawing.dot.split("\n") if " id=n" in line}
    assert "rounded" in look[kinds["input"]] and "rounded" not in look[kinds["op"]]
    assert "peripheries=2" in look[kinds["parameter"]]
    assert "dashed" in look[kinds["constant"]]
    assert "penwidth=3" in look[kinds["op output"]]
    shown = texts(drawing)
    for word in ("parameter", "input", "constant", "operation", "output", "below 0", "above 0"):
        assert word in shown, word  # the legend
    assert "below 0" not in texts(viz.draw(ta.sum(x * w), legend=False))


def test_a_gradient_has_its_own_state():
    x = ta.tensor([1.0, 2.0])
    w = ta.tensor([3.0, 4.0], requires_grad=True)
    unused = ta.tensor([5.0, 6.0], requires_grad=True)
    y = ta.sum(x * w + 0.0 * unused)
    before = texts(viz.draw(y))
    assert "gradient: not needed" in before and "gradient: not computed" in before
    y.backward()
    after = viz.draw(y)
    assert "gradient: zero" in texts(after) and "gradient: not needed" in texts(after)
    assert "w          : (2,) = parameter  |  [3 4]  |  gradient [1 2]" in after.text
    assert "gradient zero" in after.text


def test_gradients_for_the_picture_leave_the_tensors_alone():
    w = ta.tensor([3.0, 4.0], requires_grad=True)
    y = ta.sum(w * w)
    assert "gradient [6 8]" in viz.draw(y, gradients=True).text
    assert w.grad is None and "gradient not computed" in viz.draw(y).text


def test_what_is_calculated_from_sizes_and_constants_is_one_constant():
    k = ta.tensor(np.ones((2, 4)), requires_grad=True)
    y = k / ta.sqrt(ta.size_of(k, axis=-1))
    shown, boxes, arrows, _ = facts(viz.draw(y))
    assert "sqrt(4) = 2" in shown
    assert Counter(frozenset(kinds) for kinds in boxes.values()) == Counter(
        [frozenset({"parameter"}), frozenset({"constant"}), frozenset({"op", "output"})]
    )
    assert sum(arrows.values()) == 2
    scale = 1 / ta.sqrt(ta.size_of(k, axis=-1))
    assert "1 / sqrt(4) = 0.5" in texts(viz.draw(k * scale)) and "scale" in texts(viz.draw(k * scale))


def test_when_the_constant_is_the_result_its_calculation_is_drawn():
    k = ta.tensor(np.ones((2, 4)))
    root = ta.sqrt(ta.size_of(k, axis=-1))
    shown, boxes, _, _ = facts(viz.draw(root))
    assert len(boxes) == 3 and "size_of  ()" not in shown and "value: 2" in shown


def test_casts_are_passed_over():
    single = ta.tensor(np.array([1.0, 2.0], dtype=np.float32), requires_grad=True)
    double = ta.tensor([3.0, 4.0])
    graph = Graph.of(single * double)
    assert any(node.hidden for node in graph.nodes)
    shown, boxes, arrows, _ = facts(viz.draw(graph))
    assert len(boxes) == 3 and any("float32" in line for line in shown)
    assert set(arrows) == {"single → multiply", "double → multiply"}


def test_a_leaf_a_number_nothing_and_strange_numbers_are_drawn():
    leaf = ta.tensor(3.0, requires_grad=True)
    _, boxes, arrows, _ = facts(viz.draw(leaf))
    assert boxes == {"n0": {"parameter", "output"}} and not arrows
    empty = ta.tensor(np.zeros((0, 3)), requires_grad=True)
    assert "value: empty" in texts(viz.draw(ta.sum(empty)))
    assert "empty" in viz.draw(empty).text
    strange = ta.tensor([np.nan, np.inf, -np.inf, 1.0])
    shown = texts(viz.draw(strange))
    assert {"nan", "inf", "-inf", "1"} <= set(shown)
    many = ta.tensor(np.array([np.nan] * 100 + [1.0]))
    assert {"nan", "×100", "min", "mean", "max"} <= set(texts(viz.draw(many)))
    flags = ta.tensor(np.array([True, False]))
    assert {"True", "False"} <= set(texts(viz.draw(flags)))


def test_several_outputs_of_which_one_is_an_input():
    x = ta.tensor([1.0], requires_grad=True)
    y = ta.exp(x)
    _, boxes, _, _ = facts(viz.draw([x, y]))
    assert boxes == {"n0": {"parameter", "output"}, "n1": {"op", "output"}}
    assert viz.draw([x, y]).title == "Computation graph of x and y"
    assert viz.draw([x, y]).text.endswith("return x, y\n")


def test_a_deeper_array_is_shown_slice_by_slice_with_indices():
    x = ta.tensor(np.arange(12.0).reshape(2, 2, 3))
    assert {"[0]", "[1]", "11"} <= set(texts(viz.draw(x)))


def test_show_chooses_what_a_box_says():
    x = ta.tensor([[1.5, 2.0]], requires_grad=True)
    y = ta.exp(x)
    plain = texts(viz.draw(y, show=(), legend=False))
    assert "x" in plain and not any("1.50" in line or "gradient" in line for line in plain)
    assert "1.50" in texts(viz.draw(y, show=["value"]))
    assert "exp  output" in texts(viz.draw(y, show=["op"]))


def test_own_names_given_names_and_scopes():
    a = ta.tensor([1.0], requires_grad=True)
    with ta.scope("block"), ta.scope("head 1"):
        b = ta.exp(a)
    assert "α" in texts(viz.draw(b, names={"α": a}))
    assert {"block", "head 1"} <= set(facts(viz.draw(b))[3])
    assert facts(viz.draw(b, scopes=False))[3] == ["Computation graph of b"]
    assert "# block / head 1" in viz.draw(b).text


def test_a_weight_stands_in_the_frame_where_it_is_used():
    w = ta.tensor([1.0], requires_grad=True)
    x = ta.tensor([1.0])
    with ta.scope("layer"):
        y = x * w
    data = {box["title"]: box["scope"] for box in json.loads(viz.draw(ta.sum(y)).json)["boxes"]}
    assert data["w"] == ["layer"] and data["x"] == []


def test_chinese_text_stays_within_its_box():
    """Measured as a browser would: a Chinese character is as wide as the font is high."""
    x = ta.tensor([[1.0]], requires_grad=True, name="一个相当长的中文名字，写在小表上面")
    with ta.scope("也很长的作用域名字在这里"):
        y = ta.exp(x)
    root = ET.fromstring(viz.draw(y, lang="zh", legend=False).svg)
    seen = 0
    for group in root.iter(f"{SVG}g"):
        if group.get("class").split()[0] not in ("node", "cluster"):
            continue
        drawn = [line.get("points") or line.get("d") for line in group if line.get("points") or line.get("d")]
        across = [float(x) for x in re.findall(r"(-?[\d.]+),", " ".join(drawn))]
        for text in group.iter(f"{SVG}text"):
            start, size = float(text.get("x")), float(text.get("font-size"))
            end = start + size * sum(1.0 if "\u2e80" <= c else 0.3 for c in text.text)
            assert min(across) <= start and (not across or end <= max(across)), text.text
            seen += "\u4e00" <= text.text[0]
    assert seen >= 6


# Folding --------------------------------------------------------------------------------------------------


def heads(count):
    x = ta.tensor(np.ones((2, 2)))
    made = []
    for number in range(count):
        with ta.scope("attention"), ta.scope(f"head {number + 1}"):
            w = ta.tensor(np.eye(2), requires_grad=True)
            made.append(ta.softmax(ta.tanh(x @ w) @ x))
    return ta.sum(ta.concatenate(made, axis=-1))


def test_scopes_fold_first_then_siblings_and_it_is_told():
    small = heads(8)
    assert not json.loads(viz.draw(small).json)["folded"]
    data = json.loads(viz.draw(small, max_nodes=12).json)
    assert data["folded"] == [f"head {n} (5 nodes)" for n in range(1, 9)]
    drawing = viz.draw(small, max_nodes=5)
    data = json.loads(drawing.json)
    assert data["folded"] == ["head × 8 (40 nodes)"]
    assert [box["kind"] for box in data["boxes"]] == ["input", "fold", "op", "op"]
    assert "Folded: head × 8 (40 nodes)." in texts(drawing)
    assert {"40 nodes", "parameter ×8: 32"} <= set(texts(drawing))
    assert "head × 8" in drawing.alt_text


def test_every_node_is_in_exactly_one_box_after_folding():
    data = json.loads(viz.draw(heads(8), max_nodes=9).json)
    members = [index for box in data["boxes"] for index in box["nodes"]]
    assert sorted(members) == list(range(len(data["nodes"])))
    keys = {box["id"] for box in data["boxes"]}
    assert all(arrow["from"] in keys and arrow["to"] in keys for arrow in data["arrows"])


def test_without_scopes_a_repeated_run_folds():
    h = ta.tensor(np.eye(2))
    for _ in range(50):
        W, b = ta.tensor(np.eye(2), requires_grad=True), ta.tensor(np.zeros(2), requires_grad=True)
        h = ta.tanh(h @ W + b)
    drawing = viz.draw(h, max_nodes=20)
    data = json.loads(drawing.json)
    assert data["folded"] == ["matmul, add, tanh × 49 (245 nodes)"]
    assert len(data["boxes"]) == 7 and "parameter ×98: 294" in texts(drawing)
    x = h = ta.tensor(1.0, requires_grad=True)
    for _ in range(200):
        h = ta.tanh(h)
    data = json.loads(viz.draw(h, max_nodes=20).json)
    assert [box["title"] for box in data["boxes"]] == ["x", "tanh × 199", "h·200"] and x is not h


def test_what_repeats_nowhere_folds_in_the_middle():
    ops = [ta.tanh, ta.exp, ta.sin, ta.cos, ta.sigmoid, ta.abs]
    h = ta.tensor(1.0, requires_grad=True)
    for number in np.random.default_rng(0).integers(0, 6, 60):
        h = ops[number](h)
    data = json.loads(viz.draw(h, max_nodes=8).json)
    assert len(data["boxes"]) <= 8 and any("the middle of the graph" in told for told in data["folded"])


def test_scopes_are_folded_by_depth_and_by_name():
    model = heads(2)
    boxes = [json.loads(viz.draw(model, depth=depth).json)["boxes"] for depth in (0, 1)]
    titles = [[box["title"] for box in found] for found in boxes]
    assert "attention" in titles[0] and {"head 1", "head 2"} <= set(titles[1])
    data = json.loads(viz.draw(model, fold=["head 2"]).json)
    assert [told for told in data["folded"]] == ["head 2 (5 nodes)"]
    assert {"attention", "head 1"} <= set(facts(viz.draw(model, fold=["head 2"]))[3])


@pytest.mark.slow
def test_a_hundred_thousand_nodes_are_drawn_folded_and_listed():
    h = ta.tensor(1.0, requires_grad=True)
    for _ in range(100_000):
        h = ta.tanh(h)
    drawing = viz.draw(h)
    assert "<svg" in drawing.svg and drawing.text.count("\n") == 100_002
    assert len(str(drawing).split("\n")) < 300 and len(drawing.alt_text) < 20_000


def test_five_hundred_boxes_are_laid_out_when_asked_for():
    h = ta.tensor(1.0, requires_grad=True)
    for _ in range(500):
        h = ta.tanh(h)
    drawing = viz.draw(h, max_nodes=1000, legend=False)
    assert "nslimit" in drawing.dot and len(facts(drawing)[1]) == 501


# Safe in every form ---------------------------------------------------------------------------------------

NASTY = [
    "f<x>", "<> <>", "{k|v}", "\\", "Q&A &lt;", "</script><img src=x onerror=alert(1)>", "]]>", "-->", '"q"',
    "'", "node", "a:b", "查询 Q·Kᵀ/√d", "\U0001f600", "\U0001f469\u200d\U0001f3eb", "\\N\\G\\L", "a\\\\b",
    "x\\", "é e\u0301", "%", "#n0", " lead", "a  b", "line\nbreak", "tab\there", "nul\x00", "right\u202eleft",
    "<B>bold</B>", "&#65;", "${x}", "`", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("name", NASTY)
def test_a_name_appears_exactly_as_it_is(name):
    x = ta.tensor([1.0], requires_grad=True, name=name)
    with ta.scope(name):
        y = ta.exp(x)
    drawing = viz.draw(y, title=name)
    shown, _, arrows, frames = facts(drawing)
    wanted = visible(name)
    assert shown.count(wanted) == 3  # title, frame, box
    assert wanted in [frame.replace("\xa0", " ") for frame in frames if frame]
    assert list(arrows) == [f"{wanted} → y"]
    assert f"exp({wanted})" in drawing.text
    assert json.loads(drawing.json)["nodes"][0]["name"] == name.encode("utf-8", "replace").decode()
    assert ET.fromstring(drawing.svg).findtext(f"{SVG}title") == wanted


def test_no_outside_address_and_no_script_in_any_form():
    x = ta.tensor([1.0], requires_grad=True)
    for drawing in (viz.draw(ta.exp(x)), viz.attention([[1.0]], ["w"])):
        svg = drawing.svg.replace("http://www.w3.org/2000/svg", "")
        traces = ("http:", "https:", "//www", "<script", "url(", "DOCTYPE", "@import", "href")
        for form in (svg, drawing.dot, drawing.text, drawing.json):
            assert not [trace for trace in traces if trace in form]


def test_a_picture_tells_a_reader_who_does_not_see_it():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    y = ta.sum(x)
    drawing = viz.draw(y)
    root = ET.fromstring(drawing.svg)
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert title.text == "Computation graph of y"
    assert description.text == drawing.alt_text
    assert drawing.alt_text.startswith("2 nodes: parameter ×1, operation ×1. Output: y.\nx : (2,) = param")


def test_the_theme_of_the_reader_is_followed_only_when_wanted():
    x = ta.tensor([1.0, -2.0], requires_grad=True)
    auto, light, dark = (viz.draw(x, theme=theme).svg for theme in ("auto", "light", "dark"))
    assert "prefers-color-scheme:dark" in auto and "tinyattn-auto" in auto
    assert "<style" not in light and "<style" not in dark
    assert 'fill="#ffffff"' in light and 'fill="#15171a"' in dark
    assert not any(f'"{code}"' in dark for code in colours.LIGHT.values())


def test_graphviz_itself_draws_the_same_boxes_and_arrows():
    """Layouts differ between renderers, so only what is drawn is compared, with the one that is there."""
    x = ta.tensor([[1.0, 2.0]], requires_grad=True)
    with ta.scope("层 <1>"):
        y = ta.tanh(x * x) @ x.mT
    drawing = viz.draw(y)
    pure = ET.fromstring(drawing.svg)
    for program in filter(None, [shutil.which("dot")]):
        other = ET.fromstring(drawing.render("svg", renderer=program).decode("utf-8"))
        for root in (pure, other):
            root.set("shown", sorted((g.get("id"), g.get("class")) for g in root.iter(f"{SVG}g")))
            root.set("texts", sorted(t.text.replace("\xa0", " ") for t in root.iter(f"{SVG}text")))
        assert pure.get("shown") == other.get("shown") and pure.get("texts") == other.get("texts")


# Forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["svg", "png", "dot", "gv", "txt", "json"])
def test_the_ending_chooses_the_form_and_nothing_else_is_left(suffix, tmp_path):
    y = ta.exp(ta.tensor([1.0]))
    folder = tmp_path / "图 一"
    viz.draw(y).save(folder / f"计算图.{suffix}")
    assert [path.name for path in folder.iterdir()] == [f"计算图.{suffix}"]
    content = (folder / f"计算图.{suffix}").read_bytes()
    start = {"svg": b"<svg", "png": b"\x89PNG", "dot": b"digraph", "gv": b"digraph", "txt": b"", "json": b"{"}
    assert content.startswith(start[suffix]) and content


@pytest.mark.parametrize("name", ["x.html5", "x", "x.tiff"])
def test_another_ending_is_refused_with_those_that_exist(name, tmp_path):
    with pytest.raises(ArgumentError, match=r"\.svg, \.png, \.pdf.*\.json"):
        viz.draw(ta.tensor(1.0)).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_picture_that_cannot_be_made_leaves_no_file(tmp_path):
    with pytest.raises(MissingToolError, match="needs Graphviz itself"):
        viz.draw(ta.tensor(1.0)).save(tmp_path / "new" / "x.pdf")
    assert not list(tmp_path.iterdir())


def test_text_forms_need_no_renderer(monkeypatch, tmp_path):
    monkeypatch.setattr("viz.render.find", lambda setting=None: None)
    drawing = viz.draw(ta.exp(ta.tensor([1.0])))
    assert drawing.dot.startswith("digraph") and "exp" in drawing.text and json.loads(drawing.json)
    drawing.save(tmp_path / "x.dot")
    bundle = drawing._repr_mimebundle_()
    assert list(bundle) == ["text/plain"] and "No Graphviz renderer was found" in bundle["text/plain"]


def test_a_notebook_gets_picture_and_text_and_never_an_error(monkeypatch):
    drawing = viz.draw(ta.exp(ta.tensor([1.0])))
    bundle = drawing._repr_mimebundle_(include=None)
    assert bundle["image/svg+xml"].startswith("<svg") and "exp" in bundle["text/plain"]
    broken = viz.draw(ta.exp(ta.tensor([1.0])))
    monkeypatch.setattr(type(broken), "svg", property(lambda self: 1 / 0))
    assert "could not be drawn" in broken._repr_mimebundle_()["text/plain"]


def test_show_prints_the_listing_in_a_terminal(capsys):
    y = ta.exp(ta.tensor([0.0]))
    viz.draw(y).show()
    assert "= exp(input)" in capsys.readouterr().out
    assert repr(viz.draw(y)).startswith("<Drawing 'Computation graph of y'")


def test_wrong_choices_are_refused_in_words():
    x = ta.tensor(1.0)
    for options, words in [
        ({"show": ["values"]}, "'values'"),
        ({"direction": "up"}, "left to right"),
        ({"theme": "blue"}, "'auto', 'light' or 'dark'"),
        ({"max_nodes": 1}, "at least 4"),
        ({"lang": "fr"}, "'en', 'zh'"),
    ]:
        with pytest.raises(ArgumentError, match=words):
            viz.draw(x, **options)
    with pytest.raises(ArgumentError, match="already holds both"):
        viz.draw(Graph.of(x), gradients=True)
    with pytest.raises(TypeError, match="a tensor or a list of tensors"):
        viz.draw(np.ones(3))


def test_chinese_words():
    x = ta.tensor([1.0], requires_grad=True)
    shown = texts(viz.draw(ta.exp(x), lang="zh", title="图"))
    assert {"参数  (1,)", "梯度: 未计算", "值", "运算"} <= set(shown)


# The same everywhere --------------------------------------------------------------------------------------

MODEL = """
import tinyattn as ta, viz
def model():
    X = ta.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    W = ta.tensor([[2.0, -1.0], [0.0, 1.0]], requires_grad=True)
    with ta.scope("头 <1>"):
        S = X @ W
        P = S * S
    half = P * 0.5
    loss = ta.sum(half - X)
    return viz.draw(loss, gradients=True)
"""


def model():
    space = {}
    exec(compile(MODEL, "model.py", "exec"), space)
    return space["model"]()


def test_the_same_bytes_in_every_process(tmp_path):
    script = tmp_path / "model_script.py"
    script.write_text(
        MODEL + "import hashlib\nd = model()\n"
        "for form in (d.dot, d.text, d.json, d.svg):\n    print(hashlib.sha256(form.encode()).hexdigest())\n",
        encoding="utf-8",
    )
    assert len(printed(script)) == 1


@pytest.mark.parametrize("form", ["dot", "text", "json", "svg"])
def test_golden(form):
    """Compared byte by byte; TINYATTN_WRITE_GOLDEN=1 writes the files anew, to be looked at."""
    path = Path(__file__).parent / "golden" / f"model.{form.replace('text', 'txt')}"
    made = getattr(model(), form)
    assert same_as_kept(made, path)
