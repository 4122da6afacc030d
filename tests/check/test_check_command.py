# ruff: noqa: E501 - a table reads best with one line for each case
"""``tinyattn check FILE.py:NAME``: what it takes, what it prints, how it ends."""

from __future__ import annotations

import json

import pytest

FILE = """
import numpy as np
import tinyattn as ta
from tinyattn.ops import Op

right = Op("twice", lambda x: 2 * x, (lambda g, y, x: 2 * g,), "y[...] = 2 * x[...]", sample=lambda rng: [((rng.normal(size=3),), ())])
wrong = Op("my_tanh", np.tanh, (lambda g, y, x: g * (1 - x * x),), "y[...] = tanh(x[...])",
           sample=lambda rng: [((rng.normal(size=(2, 3)),), ())])
layer = ta.nn.Linear(4, 2, rng=0)
W = ta.tensor([[1.0, 2.0]], requires_grad=True)
points = (np.ones((2, 2)), np.eye(2))

def attend(q, k):
    return ta.softmax(q @ k.mT) @ k

def bent(x):
    hidden = x * 2.0
    return ta.sum(ta.apply(wrong, (hidden,), ()) * x)

def loss():
    return ta.sum(ta.tanh(W) ** 2)

def pair():
    return attend, np.ones((2, 3)), np.eye(3)

def infinite(x):
    return ta.log(x * 0.0)

def soft(x):
    return np.exp(x) / np.exp(x).sum()

def soft_backward(g, y, x):
    return g * y

def crash(x):
    raise KeyError("boom")

def leave(x):
    raise SystemExit(0)

def affine(x, w):
    return x @ w, (x, w)

def affine_backward(g, cache):
    return g @ cache[1].T, cache[0].T @ g

class Square:
    def forward(self, x):
        self.x = x
        return x * x

    def backward(self, g):
        return 2 * g * self.x

class Cube(Square):
    def forward(self, x):
        self.x = x
        return x * x * x

square, cube = Square(), Cube()

if __name__ == "__main__":
    raise SystemExit("only as a script")
"""


@pytest.mark.parametrize(
    "words",
    [
        ["lesson.py:right"], ["lesson.py:layer", "--shape", "3,4"], ["lesson.py:attend", "--shape", "3,4", "--shape", "5x4"],
        ["lesson.py:square", "--shape", "3"], ["lesson.py:affine", "--backward", "affine_backward", "--saves", "--shape", "3,4", "--shape", "4,2"],
        ["lesson.py:attend", "--inputs", "points"], ["lesson.py:loss"], ["lesson.py:pair", "--order", "1", "--mode", "reverse"],
    ],
    ids=["op", "layer", "function", "object", "cache", "inputs", "loss", "pair"],
)  # fmt: skip
def test_what_is_right_ends_with_0(run, words):
    code, out, _ = run(*words)
    assert code == 0 and "the gradient is right" in out


def test_what_is_wrong_ends_with_1_and_says_where(run):
    code, out, _ = run("lesson.py:bent", "--shape", "3")
    assert code == 1
    assert "first wrong rule: my_tanh" in out and "lesson.py:18" in out and "slope taken at the wrong place" in out
    code, out, _ = run("lesson.py:soft", "--backward", "soft_backward", "--shape", "4")
    assert code == 1 and "softmax without its correction" in out
    code, out, _ = run("lesson.py:cube", "--shape", "4")
    assert code == 1 and "wrong" in out.lower()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lesson.py:nothing"], "has no 'nothing'"), (["lesson.py:attend"], "--shape 3,4"), (["lesson.py"], "FILE.py:NAME"),
        (["lesson.py:crash", "--shape", "2"], "crash raised KeyError: 'boom', at lesson.py:"), (["lesson.py:leave", "--shape", "2"], "raised SystemExit"),
        (["lesson.py:Square", "--shape", "2"], "is a class"), (["lesson.py:attend", "--shape", "2,-1"], "whole numbers"), (["lesson.py:bent", "--shape", "2", "--order", "0"], "order=0"),
        (["lesson.py:affine", "--backward", "affine_backward", "--shape", "3,4", "--shape", "4,2"], "saves=True"),
        (["missing.py:x"], "no such file"), (["lesson.py:W"], "is a Tensor"), (["lesson.py:attend", "--shape", "a"], "whole numbers"),
    ],
    ids=["name", "point", "target", "crash", "exit", "class", "negative", "order", "cache", "file", "kind", "shape"],
)  # fmt: skip
def test_what_cannot_be_asked_ends_with_2_and_words(run, words, said):
    code, out, err = run(*words)
    assert code == 2 and said in err and out == ""


@pytest.mark.parametrize(
    "text",
    ["import nosuch", "def f(:", "raise SystemExit(5)", "1 / 0", "\x00"],
    ids=["import", "syntax", "exit", "error", "null"],
)
def test_a_file_that_cannot_be_run_ends_with_2(run, tmp_path, text):
    (tmp_path / "broken.py").write_text(text, encoding="utf-8")
    code, out, err = run("broken.py:f")
    assert code == 2 and "cannot be run" in err and out == ""


def test_a_page_that_cannot_be_written_ends_with_2(run, tmp_path):
    code, _, err = run("lesson.py:right", "--html", str(tmp_path / "nowhere" / "page.html"))
    assert code == 2 and "cannot be written" in err


def test_sympy_is_asked_when_it_is_named(run):
    code, out, _ = run("lesson.py:right", "--oracle", "sympy")
    assert code == 0 and "SymPy" in out


def test_what_cannot_be_checked_ends_with_2(run):
    code, out, _ = run("lesson.py:infinite", "--shape", "3")
    assert code == 2 and "could not be checked" in out


def test_json_is_the_report_as_data(run):
    code, out, _ = run("lesson.py:wrong", "--json")
    data = json.loads(out)
    assert code == 1 and data["verdict"] == "wrong" and data["blame"]["op"] == "my_tanh"


def test_ascii_is_ascii(run):
    _, out, _ = run("lesson.py:wrong", "--ascii")
    assert out.isascii()


def test_html_marks_the_faulty_node(run, tmp_path):
    code, _, _ = run("lesson.py:bent", "--shape", "3", "--html", "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert code == 1 and page.startswith("<!doctype html>")
    assert "my_tanh" in page and ("#n3 polygon" in page or "&lt;-- here" in page)
    assert "src=" not in page and 'href="http' not in page


def test_html_without_a_drawing_program_lists_the_steps(monkeypatch):
    import numpy as np

    import tinyattn as ta
    from tinyattn import _viz
    from tinyattn.check import check_gradients
    from tinyattn.check.page import page

    def missing():
        raise ta.MissingLibraryError("no drawings here")

    monkeypatch.setattr(_viz, "load_viz", missing)
    html = page(check_gradients(lambda x: ta.sum(ta.exp(x)), np.ones(2)))
    assert "exp(x)" in html and "<svg" not in html
