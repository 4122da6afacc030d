"""The command line of the pictures, on a learner's own file."""

import os
import subprocess
import sys
import webbrowser

import pytest

from tinyattn import cli

LESSON = """
import sys
import numpy as np
import tinyattn as ta
from helper import factor

x = ta.tensor([1.0, 2.0], requires_grad=True)
loss = ta.sum(x * x * factor)

def model():
    Q = ta.tensor([[1.0, 2.0]], requires_grad=True)
    K = ta.tensor([[3.0, 4.0]], requires_grad=True)
    S = Q @ K.mT
    return S

def weights():
    return np.array([[0.75, 0.25], [0.5, 0.5]])

def needs(a, b=1):
    return a

def broken():
    return ta.tensor([[1.0]]) @ ta.tensor([[1.0], [2.0]])

def text():
    return "no tensor"

if __name__ == "__main__":
    print("running", sys.argv)
"""


@pytest.fixture
def lesson(tmp_path, monkeypatch):
    folder = tmp_path / "我的 课"
    folder.mkdir()
    (folder / "lesson.py").write_text(LESSON, encoding="utf-8")
    (folder / "helper.py").write_text("factor = 3.0\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield "我的 课/lesson.py"
    sys.modules.pop("helper", None)


def test_draw_writes_a_picture_in_the_format_of_its_name(lesson, tmp_path, capsys):
    for suffix in ("svg", "html", "dot", "txt", "json", "png"):
        assert cli.main(["draw", f"{lesson}:loss", "-o", f"out/graph.{suffix}"]) == 0
        assert (tmp_path / "out" / f"graph.{suffix}").stat().st_size > 100
    out = capsys.readouterr().out
    assert "out/graph.svg: Computation graph of loss" in out and "running" in out


def test_draw_without_a_file_lists_the_graph(lesson, capsys):
    assert cli.main(["draw", f"{lesson}:model", "--gradients", "--show", "op,shape,value,grad,rule"]) == 0
    out = capsys.readouterr().out
    assert "S         : (1, 1) = matmul(Q, transpose)  |  11  |  gradient 1" in out and "Q̄ = " in out


def test_module_variables_give_their_names(lesson, capsys):
    assert cli.main(["draw", f"{lesson}:loss", "--ascii"]) == 0
    assert capsys.readouterr().out.count("x ") > 0


def test_step_writes_the_page_and_opens_it(lesson, tmp_path, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert cli.main(["step", f"{lesson}:model", "-o", "page.html", "--open", "--lang", "zh"]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "S = Q @ K.mT" in page and 'lang="zh"' in page
    assert opened == [(tmp_path / "page.html").resolve().as_uri()]
    assert cli.main(["step", f"{lesson}:loss"]) == 0
    assert "Backward begins: the gradient of loss with respect to itself is 1." in capsys.readouterr().out


def test_attention_in_a_picture_a_page_and_as_text(lesson, tmp_path, capsys):
    words = ["attention", f"{lesson}:weights", "--tokens", "I saw"]
    assert cli.main(words) == 0 and "looks most at" in capsys.readouterr().out
    assert cli.main([*words, "-o", "w.svg"]) == 0 and cli.main([*words, "-o", "w.html", "--title", "<b>"]) == 0
    assert "<figure" in (tmp_path / "w.html").read_text(encoding="utf-8")
    assert cli.main([*words[:2], "--tokens", "a"]) == 2


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("lesson.py", "is not FILE.py:NAME"),
        ("lesson.py:", "is not FILE.py:NAME"),
        ("{}:nothing", "There are broken, loss, model"),
        ("{}:needs", "takes 1 arguments"),
        ("{}:broken", "matmul"),
        ("{}:text", "a tensor or a list of tensors is needed, not str"),
        ("missing.py:x", "No such file"),
    ],
)
def test_what_cannot_be_drawn_ends_with_2_and_words(lesson, target, said, capsys):
    assert cli.main(["draw", target.format(lesson)]) == 2
    err = capsys.readouterr().err
    assert said in err and "commands.py" not in err


def test_the_learners_own_line_is_shown_when_it_fails(lesson, capsys):
    cli.main(["draw", f"{lesson}:broken"])
    assert "return ta.tensor([[1.0]]) @ ta.tensor([[1.0], [2.0]])" in capsys.readouterr().err


def test_a_file_that_does_not_compile_or_ends_itself(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.py").write_text("x = (\n", encoding="utf-8")
    (tmp_path / "ends.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    (tmp_path / "bytes.py").write_bytes(b"x = '\xff'\n")
    assert cli.main(["draw", "odd.py:x"]) == 2 and "SyntaxError" in capsys.readouterr().err
    assert cli.main(["draw", "ends.py:x"]) == 2 and "exit code 3" in capsys.readouterr().err
    assert cli.main(["draw", "bytes.py:x"]) == 2


def test_nothing_of_the_interpreter_stays_changed(lesson):
    before = sys.modules["__main__"], sys.path[:], sys.argv[:]
    cli.main(["draw", f"{lesson}:model"])
    assert (sys.modules["__main__"], sys.path, sys.argv) == before


def test_a_strangers_viz_beside_the_lesson_is_not_run(lesson, tmp_path):
    (tmp_path / "viz.py").write_text("print('stranger')\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "tinyattn", "draw", f"{lesson}:loss"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=120)
    assert done.returncode == 2 and "not tinyattn's" in done.stderr and "stranger" not in done.stdout


def test_help_and_wrong_options(lesson, capsys):
    for words, code in ([["draw", "--help"], 0], [["step", f"{lesson}:loss", "--open"], 2], [["draw"], 2]):
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        assert ended.value.code == code
    assert "--show" in capsys.readouterr().out
