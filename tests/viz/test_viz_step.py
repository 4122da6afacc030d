"""The replay: its steps are the engine's backward pass, its numbers the engine's numbers, its names only text."""

import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from replayed import MODEL, attention, data_of, numbers
from repository import printed, same_as_kept

import tinyattn as ta
import viz
from tinyattn.errors import ArgumentError, GraphError
from tinyattn.ops import REGISTRY, Op
from viz.formulas import RuleBook
from viz.labels import visible
from viz.numeric import compare
from viz.trace import Trace
from viz.view import view_of
from viz.words import Words
from viz.worked import worked_out


def trace_of(y, **options):
    graph = y if isinstance(y, ta.Graph) else ta.Graph.of(y, gradients=True)
    return Trace(view_of(graph, Words("en"), **options))


# The steps ------------------------------------------------------------------------------------------------


def test_every_vector_jacobian_product_is_a_step_in_the_engines_order():
    graph = ta.Graph.of(attention(), gradients=True)
    pulls = [step for step in trace_of(graph).steps if step.kind == "pull"]
    made = [(c.node, c.slot, c.target) for c in graph.contributions]
    assert [(s.node, s.slot, s.target) for s in pulls] == made
    assert all(step.value is c.value for step, c in zip(pulls, graph.contributions, strict=True))


def test_contributions_are_counted_and_add_up_to_the_gradient():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    y = ta.sum(x * x + ta.exp(x))
    graph = ta.Graph.of(y, gradients=True)
    steps = trace_of(graph).steps
    to_x = [s for s in steps if s.kind == "pull" and s.target == 0]
    assert [(s.number, s.of) for s in to_x] == [(1, 3), (2, 3), (3, 3)]
    (total,) = [s for s in steps if s.kind == "sum"]
    assert total.of == 3 and steps.index(total) == steps.index(to_x[-1]) + 1
    np.testing.assert_array_equal(sum(s.value for s in to_x), graph.nodes[0].grad)
    assert [s.kind for s in steps[-3:]] == ["sum", "leaf", "check"]


def test_forward_first_then_seed_then_backward_then_checks():
    kinds = [step.kind for step in trace_of(attention()).steps]
    order = [kinds.index(kind) for kind in ("forward", "seed", "pull", "leaf", "check")]
    assert order == sorted(order) and kinds.count("seed") == 1
    assert kinds.count("leaf") == kinds.count("check") == 4
    assert "forward" not in kinds[kinds.index("seed") :]


def test_a_cast_is_seen_through():
    x = ta.tensor(np.array([1, 2], np.float32), requires_grad=True)
    w = ta.tensor([3.0, 4.0], requires_grad=True)
    loss = ta.sum(x * w * x)
    trace = trace_of(loss)
    assert not any(trace.graph.nodes[i].hidden for s in trace.steps for i in (s.node, s.target))
    assert [(s.number, s.of) for s in trace.steps if s.kind == "pull" and s.target == 0] == [(1, 2), (2, 2)]


def test_several_outputs_and_a_result_that_is_used_again():
    x = ta.tensor([2.0], requires_grad=True)
    y = x * x
    z = ta.exp(y)
    steps = trace_of([y, z]).steps
    assert [s.kind for s in steps].count("seed") == 2
    (total,) = [s for s in steps if s.kind == "sum" and s.target == 1]
    assert total.of == 2  # its own seed, and what z passes back
    np.testing.assert_allclose(total.value, 1 + np.exp(4.0))


def test_a_folded_graph_is_stepped_over_in_one():
    x = h = ta.tensor(1.0, requires_grad=True)
    for _ in range(500):
        h = ta.tanh(h)
    page = viz.step(h, max_nodes=20)
    data = data_of(page)
    assert len(data["steps"]) < 60 and "folded" in page.text and x is not h


# The numbers ----------------------------------------------------------------------------------------------


def test_every_number_in_the_page_is_the_engines():
    graph = ta.Graph.of(attention(), gradients=True)
    page = viz.step(graph)
    data, steps = data_of(page), trace_of(graph).steps
    for made, step in zip(data["steps"], steps, strict=True):
        shown = {key: data["tables"][number] for _, key, _, number in made["p"]}
        node = graph.nodes[step.node]
        wanted = {"upstream": node.grad, "contribution": step.value, "gradient": graph.nodes[step.target].grad}
        wanted |= {"value": node.value, "seed": step.value, "result": node.value}
        for key, table in shown.items():
            if key in wanted:
                assert table["s"] == list(np.shape(wanted[key]))
                largest = max(1.0, np.abs(wanted[key]).max())
                got = numbers(table["r"]).reshape(np.shape(wanted[key]))
                np.testing.assert_allclose(got, wanted[key], rtol=0, atol=6e-4 * largest)


def test_upstream_times_slope_adds_up_to_the_contribution_for_every_operation(rng):
    seen = 0
    for op in REGISTRY.values():
        for inputs, params in op.sample(rng):
            tensors = [ta.tensor(x, requires_grad=True) for x in inputs if np.asarray(x).dtype.kind == "f"]
            if not op.differentiable or len(tensors) != len(inputs):
                continue
            y = op(*tensors, *params)
            weights = ta.tensor(rng.normal(size=y.shape))
            graph = ta.Graph.of(ta.sum(y * weights), gradients=True)
            for c in graph.contributions:
                if graph.nodes[c.node].op is not op or (work := worked_out(graph, c.node, c.slot, c.value)) is None:
                    continue
                upstream = np.asarray(graph.nodes[c.node].grad).ravel()
                for entry, terms in work.entries.items():
                    total = sum(upstream[out] * slope for out, slope in terms)
                    np.testing.assert_allclose(total, c.value.ravel()[entry], rtol=1e-9, atol=1e-12, err_msg=op.name)
                    seen += 1
    assert seen > 300


def test_slopes_of_an_elementwise_operation_are_a_table_of_its_own():
    x = ta.tensor([[1.0, 2.0]], requires_grad=True)
    y = ta.sum(ta.exp(x))
    graph = ta.Graph.of(y, gradients=True)
    np.testing.assert_allclose(worked_out(graph, 1, 0, graph.contributions[-1].value).diagonal, np.exp([[1.0, 2.0]]))
    assert worked_out(graph, 2, 0, graph.contributions[0].value).diagonal is None


def test_the_numeric_derivative_does_not_ask_the_rule():
    """A wrong rule must show at the end of the replay, in words."""
    wrong = Op("double", lambda x: 2 * x, (lambda g, y, x: 3 * g,), "y[...] = 2 * x[...]", sample=lambda rng: [])
    x = ta.tensor([1.0, -2.0], requires_grad=True)
    loss = ta.sum(wrong(x))
    graph = ta.Graph.of(loss, gradients=True)
    found = compare(graph, 0)
    np.testing.assert_allclose(found.numeric, [2.0, 2.0], atol=1e-8)
    assert not found.agrees and found.largest == pytest.approx(1.0)
    page = viz.step(graph)
    assert "the numeric derivative DIFFERS by up to 1" in page.text and data_of(page)["steps"][-1]["bad"]


def test_of_a_large_leaf_the_largest_gradients_are_checked(rng):
    x = ta.tensor(rng.normal(size=(20, 20)), requires_grad=True)
    loss = ta.sum(x * x)
    found = compare(ta.Graph.of(loss, gradients=True), 0, most=10)
    assert (found.moved, found.size) == (10, 400) and found.agrees and np.isfinite(found.numeric).sum() == 10
    assert "(64 of 400 entries moved)" in viz.step(loss).text


def test_numbers_that_are_none_are_words():
    x = ta.tensor([0.0, np.nan, np.inf], requires_grad=True)
    loss = ta.sum(x * 2.0)
    data = data_of(viz.step(loss))
    assert data["tables"][0]["r"] == ["0 nan inf"]
    assert "nothing to compare" in viz.step(loss).text


# Formulas and sentences -----------------------------------------------------------------------------------


def test_rules_are_under_the_learners_names():
    graph = ta.Graph.of(attention(), gradients=True)
    book, at = RuleBook(graph), {node.name: node.index for node in graph.nodes}
    assert book.of(at["Q"]).forward.matrix == "Q = X W_q"
    assert {slot: rule.matrix for slot, rule in book.of(at["O"]).backward.items()} == {0: "Ā = Ō Vᵀ", 1: "V̄ = Aᵀ Ō"}
    assert book.of(at["A"]).backward[0].index == "S̄_ia = A_ia (Ā_ia − Σ_b Ā_ib A_ib)"
    assert book.of(at["W_q"]) is None


def test_the_rule_of_a_sum_has_its_upstream():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    s = ta.sum(x)
    assert "s̄" in RuleBook(ta.Graph.of(s, gradients=True)).of(1).backward[0].index


def test_without_a_formula_the_definition_is_shown(monkeypatch):
    monkeypatch.setattr("tinyattn.symbolic.deriving.Derivation", lambda *a: 1 / 0)
    x = ta.tensor([1.0], requires_grad=True)
    loss = ta.sum(ta.tanh(x))
    assert "y[...] = tanh(x[...])" in viz.step(loss).html


def test_the_text_tells_the_whole_replay_in_both_languages():
    page = viz.step(attention())
    assert "Contribution 2 of 2 to error: multiply passes its gradient back" in page.text
    assert "error was used 2 times, so its gradient is the sum of 2 contributions." in page.text
    assert "Check of W_q: moving each entry a little gives the same derivative" in page.text
    chinese = viz.step(attention(), lang="zh")
    assert "传给 error 的第 2 份贡献（共 2 份）" in chinese.text and 'lang="zh"' in chinese.html


def test_questions_have_their_answer_among_the_options():
    data = data_of(viz.step(attention()))
    asked = [step["ask"] for step in data["steps"] if "ask" in step]
    assert {ask["q"] for ask in asked} == {"shape", "sign"}
    assert all(0 <= ask["a"] < len(ask.get("o", [0, 1, 2])) for ask in asked)


def test_the_code_panel_has_the_lines_that_made_the_nodes():
    page = viz.step(attention())
    graph = ta.Graph.of(attention())
    (q,) = [node for node in graph.nodes if node.name == "Q"]
    assert data_of(page)["nodes"][str(q.index)] == [0, q.line]
    assert f'<div id="c0-{q.line}"><i>{q.line}</i>    Q = X @ W_q</div>' in page.html


# The page -------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.texts.append(data)


NASTY = "</script><img src=x onerror=alert(1)>"


NAMES = [NASTY, "<!--", "]]>", "${x}", "&lt;b&gt;", "%STEPS%", "\ud800", "</template>", '"><b>']


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_text_and_never_markup(name):
    x = ta.tensor([1.0, 2.0], requires_grad=True, name=name)
    with ta.scope(name):
        loss = ta.sum(ta.exp(x) * x)
    page = viz.step(loss, title=name)
    plain = ta.tensor([1.0, 2.0], requires_grad=True, name="a b")
    with ta.scope("a b"):
        loss = ta.sum(ta.exp(plain) * plain)
    other = Tags(viz.step(loss, title="a b").html)
    parsed = Tags(page.html)
    assert "img" not in parsed.tags and "onerror" not in parsed.attributes
    assert sorted(parsed.tags) == sorted(other.tags)
    assert sum(visible(name) in text for text in parsed.texts) > 5
    assert data_of(page)["steps"]


def test_nothing_points_outside():
    text = viz.step(attention()).html.replace("http://www.w3.org/2000/svg", "")
    traces = ("http:", "https:", "//cdn", "url(", "@import", "src=", "fetch(", "XMLHttp", "eval(")
    assert not [trace for trace in traces if trace in text]
    assert "default-src 'none'" in text


def test_a_lesson_sized_page_is_small_and_a_large_one_is_warned_of(monkeypatch):
    assert len(viz.step(attention()).html.encode()) <= 150_000
    monkeypatch.setattr("viz.page.WARN_BYTES", 1000)
    with pytest.warns(UserWarning, match="slow to open"):
        _ = viz.step(attention()).html


def test_what_would_make_a_page_too_large_is_folded_and_told(monkeypatch):
    monkeypatch.setattr("viz.page.WARN_BYTES", 200_000)
    h = ta.tensor(np.eye(3), requires_grad=True)
    for number in range(40):
        with ta.scope(f"layer {number}"):
            h = ta.tanh(h @ ta.tensor(np.eye(3), requires_grad=True, name="W"))
    with pytest.warns(UserWarning, match="more was folded: layer"):
        page = viz.step(ta.sum(h))
    assert len(data_of(page)["steps"]) < 130 and "folded into one" in page.text
    assert len(page.html.encode()) <= 200_000


def test_many_parameters_are_checked_in_few_entries_each():
    h = ta.tensor(np.ones(3))
    for _ in range(40):
        h = h + ta.tensor(np.ones(30), requires_grad=True)[:3] * 0.5
    assert "of 30 entries moved)" in viz.step(ta.sum(h)).text


def test_show_prints_the_replay_in_a_terminal(capsys):
    viz.step(ta.tensor(3.0, requires_grad=True)).show()
    assert "Backward begins" in capsys.readouterr().out


def test_scopes_can_be_folded_in_the_page():
    data = data_of(viz.step(attention()))
    unfolded, folded = data["levels"]
    assert len(set(folded["box"].values())) < len(set(unfolded["box"].values()))
    known = set(folded["box"].values())
    pulls = [step for step in data["steps"] if step["k"] == "pull"]
    assert all(f"{s['n']}-{s['slot']}" in unfolded["edge"] for s in pulls)
    assert all(folded["box"][str(s["t"])] in known for s in pulls)


def test_what_is_text_in_the_picture_stays_as_it_is():
    """Colours, ids and places are changed for the page, never words that look like them."""
    odd = 'id="x" fill="#1a1a1b" 1.23456'
    x = ta.tensor([1.0], requires_grad=True, name=odd)
    scale = 1 / ta.sqrt(ta.tensor(2.0))
    page = viz.step(ta.sum(x * scale))
    shown = "".join(Tags(page.html.split("<svg", 1)[1].split("</svg>")[0]).texts)
    assert shown.count(odd) >= 2


def test_ids_of_the_pictures_differ():
    page = viz.step(attention()).html
    ids = [part.split('"')[0] for part in page.split(' id="')[1:]]
    assert len(ids) == len(set(ids))


def test_pictures_are_well_formed_and_told():
    start = viz.step(attention()).html.split("<svg", 1)[1].split("</svg>")[0]
    root = ET.fromstring(f"<svg{start}</svg>")
    assert root.get("role") == "img" and "parameter ×4" in root.findtext("{http://www.w3.org/2000/svg}desc")


def test_without_a_renderer_the_page_says_so_and_still_steps(monkeypatch):
    monkeypatch.setattr("viz.render.find", lambda setting=None: None)
    page = viz.step(attention())
    assert "No Graphviz renderer was found" in page.html and data_of(page)["steps"]


def test_a_notebook_shows_a_sandboxed_frame():
    bundle = viz.step(attention(), title='a "title" <b>')._repr_mimebundle_()
    tags = Tags(bundle["text/html"])
    assert tags.tags == ["iframe"] and "srcdoc" in tags.attributes and 'sandbox="allow-scripts"' in bundle["text/html"]


def test_saving(tmp_path):
    page = viz.step(attention())
    page.save(tmp_path / "new" / "回放.html")
    page.save(tmp_path / "new" / "回放.txt")
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["回放.html", "回放.txt"]
    assert (tmp_path / "new" / "回放.html").read_text(encoding="utf-8") == page.html
    with pytest.raises(ArgumentError, match=r"\.html or \.txt"):
        page.save(tmp_path / "x.svg")
    assert repr(page).startswith("<Page 'Replay of loss")


def test_what_cannot_be_replayed_is_refused_in_words():
    x = ta.tensor([1.0])
    with pytest.raises(GraphError, match="requires a gradient"):
        viz.step(ta.exp(x))
    w = ta.tensor([1.0], requires_grad=True)
    with pytest.raises(GraphError, match="gradients=True"):
        viz.step(ta.Graph.of(ta.exp(w)))
    with pytest.raises(ArgumentError, match="takes no names"):
        viz.step(ta.Graph.of(ta.exp(w), gradients=True), names={"w": w})
    with pytest.raises(ArgumentError, match="at least 4"):
        viz.step(ta.exp(w), max_nodes=1)


def test_a_leaf_alone_can_be_stepped_through():
    w = ta.tensor(3.0, requires_grad=True)
    assert [s["k"] for s in data_of(viz.step(w))["steps"]] == ["forward", "seed", "leaf", "check"]


def test_no_gradient_of_a_tensor_is_touched():
    w = ta.tensor([3.0], requires_grad=True)
    _ = viz.step(ta.sum(w * w)).html
    assert w.grad is None


def test_the_same_bytes_in_every_process(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        MODEL + "\nimport viz, hashlib\nprint(hashlib.sha256(viz.step(attention()).html.encode()).hexdigest())\n",
        encoding="utf-8",
    )
    assert len(printed(script)) == 1


@pytest.mark.parametrize("form", ["txt", "html"])
def test_golden(form, monkeypatch):
    """Compared byte by byte; TINYATTN_WRITE_GOLDEN=1 writes the files anew, to be looked at.

    Formulas belong to another part with tests of its own; here the page shows the definitions instead.
    """
    monkeypatch.setattr("tinyattn.symbolic.deriving.Derivation", lambda *a: 1 / 0)
    path = Path(__file__).parent / "golden" / f"attention.{form}"
    page = viz.step(attention(), title="I saw a saw: one head of self-attention")
    made = page.html if form == "html" else page.text
    assert same_as_kept(made, path)
