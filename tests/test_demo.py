"""The demo: what it prints is true, what it cannot do it says, and a wrong rule does not get past it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import data, nn, ops
from tinyattn.demo import Options, gradients, run, step, tagger
from tinyattn.demo.paper import Paper
from tinyattn.demo.sentence import read
from tinyattn.errors import MissingLibraryError

FILES = ["graph.dot", "graph.svg", "graph.txt", "weights.dot", "weights.svg", "weights.txt"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training of a few steps, where the training is not what is looked at."""
    monkeypatch.setattr(tagger, "STEPS", 3)


def demo(tmp_path: Path, capsys: pytest.CaptureFixture[str], code: int = 0, **options: object) -> str:
    """Run it in this process and give what it printed."""
    assert run(Options(out=str(tmp_path / "out"), **options)) == code
    return capsys.readouterr().out


def numbers(line: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+", line)]


def test_the_default_run_is_whole(tmp_path: Path, capsys) -> None:
    pytest.importorskip("graphviz")
    out = demo(tmp_path, capsys)
    assert [line for line in out.splitlines() if re.match(r"\d\. ", line)] == [
        "1. One self-attention step, seen from saw (2)",
        "2. What is remarkable",
        "3. The gradient, four ways",
        "4. What attention is good for: tagging words",
        "5. Pictures",
    ]
    assert sorted(os.listdir(tmp_path / "out")) == FILES
    assert all(str(tmp_path / "out" / name) in out for name in FILES)


def test_the_printed_numbers_are_those_of_plain_numpy(tmp_path: Path, capsys, quick) -> None:
    out = demo(tmp_path, capsys)
    given = read(Options())
    layer = nn.SelfAttention(4, rng=0)
    q, k, v = (given.x @ w.data for w in layer.parameters())
    scores = q @ k.T / 2
    powers = np.exp(scores)
    weights = powers / powers.sum(axis=1, keepdims=True)
    lines = out.splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("word"))
    for j, line in enumerate(lines[head + 2 : head + 6]):
        shown = [*k[j], k[j] @ q[1], scores[1, j], weights[1, j], *v[j]]
        assert numbers(line) == pytest.approx(shown, abs=6e-4)
    output = next(line for line in lines if "output[2] =" in line)
    assert numbers(output) == pytest.approx((weights @ v)[1], abs=6e-4)
    table = next(place for place, line in enumerate(lines) if line.split() == "I (1) saw (2) a (3) saw (4)".split())
    for i, line in enumerate(lines[table + 2 : table + 6]):
        assert numbers(line) == pytest.approx(weights[i], abs=6e-5)


def test_equal_words_are_said_to_be_identical_and_positions_part_them(tmp_path: Path, capsys, quick) -> None:
    out = demo(tmp_path, capsys)
    assert "'saw' stands at 2 and 4; its outputs there are identical: every number is exactly equal." in out
    moved = demo(tmp_path, capsys, position=True)
    assert "the tie is gone" in " ".join(moved.split()) and "are identical" not in moved


def test_a_tie_is_claimed_only_where_it_is_one(capsys) -> None:
    given = read(Options())
    uneven = given._replace(vectors=given.vectors + np.eye(4))
    step.remark(uneven, nn.SelfAttention(4, rng=0), nn.SelfAttention(4, rng=0).steps(uneven.x), False, Paper())
    assert "every number is exactly equal" not in capsys.readouterr().out


@pytest.mark.parametrize("options", [
    {"sentence": "saw"},
    {"sentence": "我用锁锁门"},
    {"sentence": "I saw a saw", "width": 1},
    {"sentence": "one two three four five six seven eight nine ten", "seed": 3},
    {"sentence": " ".join(f"w{number % 70}" for number in range(200))},
    {"sentence": "🙂 saw 🙂 \x1b[31m \udcff"},
    {"sentence": "a" * 300 + " b"},
    {"width": 9, "position": True, "ascii": True},
], ids=["one word", "Chinese", "width 1", "ten words", "200 words", "odd signs", "a long word", "wide"])
def test_any_sentence_will_do(options: dict, tmp_path: Path, capsys, quick) -> None:
    out = demo(tmp_path, capsys, **options)
    assert "All four ways agree." in out and "DO NOT" not in out and "nan" not in out
    assert "\x1b" not in out
    assert (tmp_path / "out" / "weights.txt").is_file()


def test_one_word_gets_an_explanation(tmp_path: Path, capsys, quick) -> None:
    assert "A single word can only look at itself" in demo(tmp_path, capsys, sentence="saw")


def test_chinese_tables_line_up(tmp_path: Path, capsys, quick) -> None:
    from tinyattn.terminal import display_width

    lines = demo(tmp_path, capsys, sentence="我用锁锁门").splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("word"))
    ends = {display_width(line) for line in lines[head : head + 7]}
    assert len(ends - {display_width(lines[head])}) == 1


def test_where_the_whole_is_slow_for_sympy_it_says_so(tmp_path: Path, capsys, quick) -> None:
    long = " ".join(demo(tmp_path, capsys, sentence="one two three four five six seven eight nine ten").split())
    assert "of the first 4 words at width 2, because the whole would be slow" in long
    assert "central differences: of the whole sentence." in long
    assert "definitions of the operations: of the whole sentence" in " ".join(demo(tmp_path, capsys).split())


def test_the_gradient_rows_are_one_a_weight_and_one_for_each_two_ways(tmp_path: Path, capsys, quick) -> None:
    lines = demo(tmp_path, capsys).splitlines()
    weights = [line.split() for line in lines if line.startswith("W_")]
    ways = [line.split() for line in lines if re.match(r"\w+ - \w+ ", line)]
    assert [row[0] for row in weights] == ["W_q", "W_k", "W_v"]
    assert {(row[0], row[2]) for row in ways} == {
        ("autograd", "formula"), ("autograd", "sympy"), ("autograd", "difference"), ("formula", "sympy"),
        ("formula", "difference"), ("sympy", "difference"),
    }  # fmt: skip
    for row in (*weights, *ways):
        off, allowed = map(float, row[-3:-1])
        assert row[-1] == "agree" and off < 0.1 * allowed < 1e-8


def test_the_table_is_the_one_that_compare_gives(tmp_path: Path, capsys, quick) -> None:
    given, layer = read(Options()), nn.SelfAttention(4, rng=0)
    loss, _ = gradients.record(given.x, layer)
    report = ta.compare(loss, layer.parameters()[:3], methods=("autograd", "formula", "sympy", "difference"))
    rows = [line.split() for line in demo(tmp_path, capsys).splitlines() if line.startswith("W_")]
    assert [[row[0], " ".join(row[3:6]), *row[6:]] for row in rows] == [list(row) for row in report.of_leaves()]


@pytest.mark.parametrize(("op", "rules", "wrong"), [
    ("softmax", (lambda g, y, x, axis, keep: g * y * (1 - y),), {"W_q", "W_k"}),
    ("matmul", (lambda g, y, a, b: g @ b.T, lambda g, y, a, b: 1.001 * (a.T @ g)), {"W_q", "W_k", "W_v"}),
    ("divide", (lambda g, y, a, b: g / b * 2, lambda g, y, a, b: None), {"W_q", "W_k", "W_v"}),
    ("matmul", (lambda g, y, a, b: np.full(a.shape, np.nan), lambda g, y, a, b: a.T @ g), {"W_q", "W_k"}),
], ids=["softmax without its correction", "matmul off by a thousandth", "divide doubled", "nan"])
def test_a_wrong_rule_makes_the_demo_fail(op, rules, wrong, tmp_path: Path, capsys, quick, monkeypatch) -> None:
    monkeypatch.setattr(ops.REGISTRY[op], "vjps", rules)
    out = demo(tmp_path, capsys, code=1)
    rows = [line for line in out.splitlines() if line.startswith("W_")]
    assert {line[:3] for line in rows if line.endswith("DO NOT AGREE")} == wrong
    assert "They do not agree" in out and "tagging" not in out


def test_a_rule_with_a_wrong_shape_makes_the_demo_fail(tmp_path: Path, capsys, quick, monkeypatch) -> None:
    monkeypatch.setattr(ops.REGISTRY["softmax"], "vjps", (lambda g, y, x, axis, keep: g[0],))
    assert "the rule of softmax" in demo(tmp_path, capsys, code=1)


def test_the_operation_with_the_wrong_rule_is_named(tmp_path: Path, capsys, quick, monkeypatch) -> None:
    monkeypatch.setattr(ops.REGISTRY["softmax"], "vjps", (lambda g, y, x, axis, keep: 0 * g,))
    out = demo(tmp_path, capsys, code=1)
    assert "made by the backward rule of softmax" in out and "it should have been" in out
    given, layer = read(Options()), nn.SelfAttention(4, rng=0)
    _, report = gradients.compare(given.x, layer, ("autograd", "formula", "sympy", "difference"))
    assert report.camps() == [["formula", "sympy", "difference"], ["autograd"]]


def test_checking_leaves_the_layer_as_it_was() -> None:
    given, layer = read(Options()), nn.SelfAttention(4, rng=0)
    before = layer.state_dict()
    assert gradients.compare(given.x, layer, ("autograd", "formula", "sympy", "difference"))[1]
    assert all((array == before[name]).all() for name, array in layer.state_dict().items())
    assert all(p.grad is None for p in layer.parameters())


@pytest.mark.parametrize(("options", "words"), [
    ({"sentence": ""}, "The sentence is empty"),
    ({"sentence": " \t\n"}, "The sentence is empty"),
    ({"sentence": "a " * 501}, "501 words; the demo takes up to 500"),
    ({"word": "dog"}, "'dog' is not in the sentence"),
    ({"word": "5"}, "its place from 1 to 4"),
    ({"word": "9" * 5000}, "is not in the sentence"),
    ({"vectors": "no-such-file"}, "no-such-file"),
    ({"corpus": "no-such-file"}, "no-such-file"),
])
def test_what_cannot_be_done_is_said_in_words(options: dict, words: str, tmp_path: Path, capsys) -> None:
    with pytest.raises((ta.TinyattnError, OSError), match=re.escape(words)):
        run(Options(out=str(tmp_path / "out"), **options))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("name", "text", "words"), [
    ("corpus", "1\tI\t_\tPRON\n", "line 1: 4 columns; 10 columns"),
    ("corpus", "", "no sentence"),
    ("corpus", "1\tI\t_\tPRON\t_\t_\t_\t_\t_\t_\n", "has one sentence"),
    ("vectors", "saw 1 2\na 1\n", "line 2"),
])
def test_a_wrong_file_is_answered_with_its_line(name: str, text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ta.TinyattnError, match=re.escape(words)):
        run(Options(out=str(tmp_path / "out"), **{name: str(path)}))


def test_a_folder_that_cannot_be_made_is_refused_first(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ta.ArgumentError, match="Name another folder with --out"):
        run(Options(out=str(tmp_path / "file" / "out")))


def test_vectors_from_a_file_are_used_and_what_lacks_one_is_named(tmp_path: Path, capsys, quick) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("i 1 0 2\nsaw 0.5 -1 0\nsaw 9 9 9\n", encoding="utf-8")
    given = read(Options(vectors=str(path)))
    assert given.x[0].tolist() == [1, 0, 2] and given.x[1].tolist() == given.x[3].tolist() == [0.5, -1, 0]
    out = " ".join(demo(tmp_path, capsys, vectors=str(path)).split())
    assert "There is none for 'a': random numbers stand in" in out and "the first vector is kept" in out
    with pytest.raises(ta.ArgumentError, match="do not go together"):
        run(Options(out=str(tmp_path), vectors=str(path), width=3))


def test_the_word_can_be_named_or_numbered() -> None:
    assert [read(Options(word=word)).chosen for word in (None, "a", "saw", "4")] == [1, 2, 1, 3]
    assert read(Options(sentence="1 3 2", word="3")).chosen == 1


def test_without_a_renderer_the_text_forms_are_written_and_it_is_said(tmp_path, capsys, quick, monkeypatch) -> None:
    pytest.importorskip("graphviz")
    monkeypatch.setenv("TINYATTN_DOT", "no-such-program")
    out = demo(tmp_path, capsys)
    assert "Not written: graph.svg and weights.svg." in out and "no-such-program" in out
    assert sorted(os.listdir(tmp_path / "out")) == [name for name in FILES if not name.endswith(".svg")]


def test_without_the_library_the_listings_are_written_and_it_is_said(tmp_path, capsys, quick, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)
    out = demo(tmp_path, capsys)
    assert "Not written: graph.svg, graph.dot, weights.svg and weights.dot.\n  The library graphviz" in out
    assert "pip install graphviz" in out and sorted(os.listdir(tmp_path / "out")) == ["graph.txt", "weights.txt"]


def test_another_module_called_viz_is_refused_before_anything_is_computed(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "viz", ModuleType("viz"))
    with pytest.raises(MissingLibraryError, match="not tinyattn's"):
        demo(tmp_path, capsys)
    assert capsys.readouterr().out == "" and not (tmp_path / "out").exists()


def test_models_that_lose_to_the_most_frequent_tag_are_not_praised(tmp_path: Path, capsys, quick) -> None:
    said = "Neither model is as good as giving each word its most frequent tag"
    assert said in " ".join(demo(tmp_path, capsys).split())


def test_one_sentence_to_learn_from_is_said_in_the_singular(tmp_path: Path, capsys, quick) -> None:
    path = tmp_path / "two.conllu"
    path.write_text("".join(f"1\t{word}\t_\tPRON" + "\t_" * 6 + "\n\n" for word in "ab"), encoding="utf-8")
    assert " 1 sentence to learn from" in " ".join(demo(tmp_path, capsys, corpus=str(path)).split())


@pytest.mark.slow
@pytest.mark.parametrize("language", ["english", "chinese"])
def test_attention_helps_over_several_seeds(language: str) -> None:
    sentence = "I saw a saw" if language == "english" else "我用锁锁门"
    right: dict[bool, int] = {True: 0, False: 0}
    corpus = tagger.corpus_of(Options(sentence=sentence))
    for with_attention in right:
        for model in tagger.learn(corpus, with_attention, 7, 6, "training"):
            right[with_attention] += tagger.count_right(corpus, partial(tagger.predict, model, corpus))[1]
    assert right[True] > 1.2 * right[False]


def test_a_corpus_of_ones_own_is_split_and_learned(tmp_path: Path, capsys, quick) -> None:
    lines = []
    for sentence in data.sample_corpus("english")[:25]:
        lines += [f"{i}\t{word}\t_\t{tag}" + "\t_" * 6 for i, (word, tag) in enumerate(sentence, 1)] + [""]
    path = tmp_path / "mine.conllu"
    path.write_text("\n".join(lines), encoding="utf-8")
    corpus = tagger.corpus_of(Options(corpus=str(path)))
    assert (len(corpus.train), len(corpus.held_out)) == (22, 3)
    assert not set(corpus.train) & set(corpus.held_out)
    out = " ".join(demo(tmp_path, capsys, corpus=str(path), sentence="xyzzy saw it").split())
    assert "22 sentences to learn from, 3 to be judged by" in out
    assert "The corpus does not have xyzzy" in out


CHILD = """
import sys
from tinyattn import cli
from tinyattn.demo import tagger

plain, steps = tagger.loss, 0

def loss(model, batch):
    global steps
    steps += 1
    if steps == 2:
        print("ready", flush=True)
        sys.stdin.readline()
    return plain(model, batch)

tagger.loss = loss
sys.exit(cli.main(["demo", "--out", sys.argv[1]]))
"""


@pytest.mark.skipif(os.name == "nt", reason="another process cannot send Ctrl-C there")
def test_ctrl_c_ends_it_politely(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stdin=subprocess.PIPE, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    for line in child.stdout:
        if line == "ready\n":
            break
    child.send_signal(signal.SIGINT)
    _, err = child.communicate("\n", timeout=60)
    assert child.returncode == 130
    assert err.endswith("Stopped.\n") and "Traceback" not in err


@pytest.mark.parametrize("encoding", ["gbk", "ascii", "latin-1"])
def test_every_encoding_gets_every_number(encoding: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tinyattn", "demo", "--out", str(tmp_path), "--sentence", "我 saw 一 saw"]
    done = subprocess.run(command, capture_output=True, env=environment(PYTHONIOENCODING=encoding), timeout=120)
    out = done.stdout.decode(encoding)
    assert done.returncode == 0, done.stderr
    assert "All four ways agree." in out and "saw (2)" in out
    assert ("我 (1)" in out) == (encoding == "gbk")


def environment(**settings: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUTF8": "0", **settings}
