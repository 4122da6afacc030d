"""Stepping through a lesson: what is shown, what the letters do, where one goes on, what a failure says."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from repository import ROOT

from tinyattn.learn import command, given, grading, library
from tinyattn.learn.lesson import read_lesson
from tinyattn.learn.progress import Progress, home
from tinyattn.learn.session import Screen, Session, steps_of
from tinyattn.learn.words import as_typed, interpreter

REAL = library.folder()
TEXT = """# %% [markdown] lang="en"
# # 77 Small
#
# **Needs** — · **Minutes** 1
# %% [markdown] lang="zh" of="x"
# # 77 小
#
# **需要** — · **分钟** 1
# %%
x = 2
print("x is", x)
# %% [markdown] lang="en" role="predict"
# What is x squared?
# %% [markdown] lang="zh" of="x"
# x的平方是多少？
# %%
y = x * x
y
# %%
assert y == 4, "y must be 4"
print("end")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of lessons with one small lesson, and a home of its own."""
    place = tmp_path / "lessons"
    place.mkdir()
    (place / "77_small.py").write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr(library, "folder", lambda: place)
    monkeypatch.setenv("TINYATTN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return place


Walk = Callable[..., tuple[int, str]]


@pytest.fixture
def walk(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Walk:
    """Run ``tinyattn learn 77`` and type some lines; the exit code and what was printed."""

    def run(*typed: str, arguments: tuple[str, ...] = ()) -> tuple[int, str]:
        lines = iter(typed)

        def answer(prompt: str = "") -> str:
            for line in lines:
                if line == "^C":
                    raise KeyboardInterrupt
                return line
            raise EOFError

        monkeypatch.setattr("builtins.input", answer)
        code = command.main(["77", "--lang", "en", *arguments])
        return code, capsys.readouterr().out

    return run


def test_enter_goes_through_to_the_end(walk: Walk) -> None:
    code, shown = walk("", "16?", "", "")
    assert code == 0
    assert shown.index("77 Small") < shown.index("x is 2") < shown.index("What is x squared?") < shown.index("\n4\n")
    assert "Your guess was: 16?" in shown and "end" in shown and "Lesson 77 is done." in shown


def test_a_cell_is_shown_before_it_is_run(walk: Walk) -> None:
    _, shown = walk()
    assert 'print("x is", x)' in shown and "x is 2" not in shown


def test_all_runs_through_without_asking(walk: Walk) -> None:
    code, shown = walk("q", arguments=("--all",))
    assert code == 0 and "x is 2" in shown and "end" in shown


def test_the_prose_is_in_the_language_that_was_chosen(walk: Walk) -> None:
    _, shown = walk(arguments=("--all", "--lang", "zh"))
    assert "x的平方是多少？" in shown and "What is" not in shown and "第 77 课已完成。" in shown


def test_one_goes_on_where_one_stopped_and_names_are_there_again(walk: Walk) -> None:
    code, shown = walk("", "4", "q")
    assert code == 0 and "You stopped at step 3 of 4" in shown
    code, shown = walk("", "")
    assert code == 0 and "Going on at step 3 of 4" in shown
    assert "x is 2" not in shown and "\n4\n" in shown and "Lesson 77 is done" in shown


def test_a_finished_lesson_begins_anew_and_stays_done(walk: Walk, folder: Path) -> None:
    walk(arguments=("--all",))
    _, shown = walk("q")
    assert "77 Small" in shown and Progress().done("77")


def test_restart_begins_at_the_first_step(walk: Walk) -> None:
    walk("", "q")
    assert "77 Small" in walk("q", arguments=("--restart",))[1]


def test_a_changed_lesson_begins_anew_and_says_so(walk: Walk, folder: Path) -> None:
    walk("", "", "q")
    (folder / "77_small.py").write_text(TEXT + "print('more')\n", encoding="utf-8")
    _, shown = walk("q")
    assert "has changed" in shown and "77 Small" in shown


def test_back_shows_the_step_before_with_fresh_names(walk: Walk) -> None:
    _, shown = walk("", "b", "x = 99", "", "", "", "")
    assert shown.count("x is 2") == 2 and shown.count("77 Small") == 2 and "\n4\n" in shown
    assert "This is the first step." in walk("b", "q", arguments=("--restart",))[1]


def test_skip_runs_a_cell_without_showing_it(walk: Walk) -> None:
    _, shown = walk("s", "", "", "")
    assert "x is 2" not in shown and "\n4\n" in shown


def test_run_to_the_end_asks_no_more(walk: Walk) -> None:
    code, shown = walk("r")
    assert code == 0 and "end" in shown


def test_one_can_try_python_in_the_lessons_names(walk: Walk) -> None:
    _, shown = walk("", "", "x + 40", "nonsense +", "1 / 0", "z = 5", "z * z", "")
    assert "\n42\n" in shown and "SyntaxError" in shown and "ZeroDivisionError" in shown and "\n25\n" in shown
    assert "\n4\n" in shown
    assert "You stopped at step 1" in walk("exit()", arguments=("--restart",))[1]


def test_help_says_what_the_letters_do(walk: Walk) -> None:
    assert "b back, s skip" in walk("h", "q")[1]


def test_the_end_of_the_input_and_an_interrupt_keep_the_place(walk: Walk) -> None:
    assert walk("")[0] == 0
    assert Progress().step("77", read_lesson(library.paths()[0]).fingerprint) == 1
    code, shown = walk("^C")
    assert code == 130 and "Interrupted." in shown and "You stopped at step 2" in shown


def test_an_interrupt_while_a_cell_runs_keeps_the_place(walk: Walk, folder: Path) -> None:
    (folder / "77_small.py").write_text(TEXT.replace("y = x * x\ny", "raise KeyboardInterrupt"), encoding="utf-8")
    code, shown = walk("", "", "")
    assert code == 130 and "Interrupted." in shown and "You stopped at step 3 of 4" in shown


def test_a_failed_check_stops_with_cell_line_source_and_message(walk: Walk, folder: Path) -> None:
    path = folder / "77_small.py"
    path.write_text(TEXT.replace("y = x * x", "y = x + x + 1") + "# %%\nprint('after')\n", encoding="utf-8")
    code, shown = walk(arguments=("--all",))
    line = path.read_text(encoding="utf-8").split("\n").index('assert y == 4, "y must be 4"') + 1
    assert code == 1 and "A check of this lesson failed." in shown and "y must be 4" in shown
    assert f"Cell 5 of 77_small.py, line {line}:" in shown and shown.count("assert y == 4") == 2
    assert "Traceback" not in shown and "after" not in shown
    assert not Progress().done("77")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def f():\n    return 1 / 0\nf()", "ZeroDivisionError"),
        ("for (", "SyntaxError"),
        ("exit(3)", "SystemExit"),
        ("import tinyattn as ta\nta.ones_like_nothing", "AttributeError"),
        ("assert not True", "it should hold, and does not"),
    ],
)
def test_whatever_a_cell_raises_is_told_without_a_stack(walk: Walk, folder: Path, code: str, said: str) -> None:
    (folder / "77_small.py").write_text(TEXT.replace("y = x * x\ny", code), encoding="utf-8")
    result, shown = walk(arguments=("--all",))
    assert result == 1 and said in shown and "Traceback" not in shown


def test_a_check_also_fails_under_python_without_asserts(folder: Path) -> None:
    (folder / "77_small.py").write_text(TEXT.replace("== 4", "== 5"), encoding="utf-8")
    code = (
        f"from pathlib import Path; from tinyattn.learn import library, command; "
        f"library.folder = lambda: Path({str(folder)!r}); raise SystemExit(command.main(['77', '--all']))"
    )
    run = subprocess.run(
        [sys.executable, "-O", "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert run.returncode == 1 and "y must be 4" in run.stdout


def test_a_picture_is_saved_under_the_cells_name_and_shown_as_text(walk: Walk, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("graphviz")
    cell = '# %% picture="small map"\nimport viz\nviz.attention([[0.75, 0.25]], ["I"], ["I", "saw"])\n'
    (folder / "77_small.py").write_text(TEXT + cell, encoding="utf-8")
    code, shown = walk(arguments=("--all", "--out", "pictures"))
    picture = tmp_path / "pictures" / "77_small_map.svg"
    assert code == 0 and "0.75" in shown and "77_small_map.svg" in shown
    assert picture.read_text(encoding="utf-8").startswith("<") and not list(picture.parent.glob(".part*"))


def test_a_picture_that_cannot_be_drawn_is_told_with_the_line_that_mends_it(
    walk: Walk, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = "# %%\nimport viz\nviz.attention([[1.0]], ['a'])\n"
    (folder / "77_small.py").write_text(TEXT + cell, encoding="utf-8")
    monkeypatch.setitem(sys.modules, "graphviz", None)  # as if it were not installed
    _, shown = walk(arguments=("--all",))
    assert "was not drawn" in shown and "Write: pip install graphviz" in shown and "Lesson 77 is done." in shown


def test_a_folder_for_pictures_that_is_a_file_is_refused_first(walk: Walk, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    code, shown = walk(arguments=("--out", "taken"))
    assert code == 2 and shown == ""


def test_an_exercise_is_written_into_a_file_once(walk: Walk, folder: Path, tmp_path: Path) -> None:
    cell = '# %% exercise="10.scores"\ndef scores(q, K):\n    ...\n'
    (folder / "77_small.py").write_text(TEXT + cell, encoding="utf-8")
    shutil.copytree(REAL / "exercises", folder / "exercises")
    _, shown = walk("", "", "", "", "e", "e", "")
    path = tmp_path / "exercise_10_scores.py"
    assert "def scores(q, K):" in path.read_text(encoding="utf-8")
    assert "Written: exercise_10_scores.py" in shown and "is there already" in shown
    assert "There is no exercise at this step." in walk("e", "q", arguments=("--restart",))[1]


def test_a_stub_whose_exercise_is_solved_is_not_graded_again(walk: Walk, folder: Path) -> None:
    cell = '# %% exercise="10.scores"\nfrom tinyattn.learn import grade\n\ndef scores(q, K):\n    ...\n\n'
    (folder / "77_small.py").write_text(TEXT + cell + 'grade("10.scores", scores)\n', encoding="utf-8")
    shutil.copytree(REAL / "exercises", folder / "exercises")
    assert "nothing written yet" in walk("", "", "", "", "")[1]
    _, shown = walk("", "", "", "", 'grade("10.scores", lambda q, K: K @ q)', "")
    assert "7 of 7" in shown and "Exercise 10.scores is solved." in shown and "nothing written yet" not in shown


# -- the list -------------------------


def test_the_list_shows_title_minutes_and_progress(
    folder: Path, walk: Walk, capsys: pytest.CaptureFixture[str]
) -> None:
    def listed(lang: str) -> str:
        assert command.main(["--lang", lang]) == 0
        return capsys.readouterr().out

    assert "Small" in listed("en") and "new" in listed("en") and "tinyattn learn 77" in listed("en")
    walk("", "", "q")
    assert "step 3 of 4" in listed("en") and "第 3 步" in listed("zh")
    walk(arguments=("--all",))
    assert "done" in listed("en") and "已完成" in listed("zh")


def test_a_lesson_that_is_not_there_is_told_on_the_error_stream(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["12"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "77_small" in err


# -- progress -------------------------


def test_an_unreadable_progress_is_put_aside_and_told(walk: Walk, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "progress.json").write_text("{broken", encoding="utf-8")
    code, shown = walk("", "q")
    assert code == 0 and "could not be read" in shown
    assert (tmp_path / "home" / "progress-unreadable.json").read_text(encoding="utf-8") == "{broken"
    assert json.loads((tmp_path / "home" / "progress.json").read_text(encoding="utf-8"))["lessons"]["77"]["step"] == 1


@pytest.mark.parametrize(
    "facts",
    ["[]", '{"format": 9}', '{"format": 1, "lessons": 3}', '{"format": 1, "lessons": {"77": {"step": "x"}}}'],
)
def test_a_progress_of_another_form_does_no_harm(walk: Walk, tmp_path: Path, facts: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "progress.json").write_text(facts, encoding="utf-8")
    assert walk("", "q")[0] == 0


def test_a_home_that_cannot_be_written_is_told_and_the_lesson_goes_on(walk: Walk, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    code, shown = walk("", "q")
    assert code == 0 and "x is 2" in shown and "could not be" in shown


def test_two_windows_do_not_wipe_out_each_other(folder: Path) -> None:
    one, other = Progress(), Progress()
    one.keep("01", "f", 3)
    other.keep("02", "f", 5)
    assert Progress().step("01", "f") == 3 and Progress().step("02", "f") == 5


def test_progress_lies_where_the_platform_keeps_such_things(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TINYATTN_HOME", str(tmp_path))
    assert home() == tmp_path
    monkeypatch.delenv("TINYATTN_HOME")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert home() == tmp_path / "data" / "tinyattn"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert home().parts[-2:] == ("Application Support", "tinyattn")


# -- in a real process -------------------------


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)} | more


def learn(*arguments: str, typed: str = "", cwd: Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "tinyattn.learn", *arguments],
        input=typed.encode(),
        cwd=cwd,
        env=environment(TINYATTN_HOME=str(cwd / "home"), **more),
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("encoding", "lang"), [("gbk", "zh"), ("gbk", "en"), ("ascii", "en"), ("ascii", "zh"), ("utf-8", "zh")]
)
def test_lesson_10_runs_through_in_any_encoding(tmp_path: Path, encoding: str, lang: str) -> None:
    run = learn("10", "--all", "--lang", lang, cwd=tmp_path, PYTHONIOENCODING=encoding)
    assert run.returncode == 0, run.stderr.decode(encoding, "replace")
    shown = run.stdout.decode(encoding)
    assert "0.5344" in shown and "[2.4621 1.7864]" in shown
    if lang == "zh" and encoding != "ascii":
        assert "查询" in shown


def test_ascii_is_ascii_in_english(tmp_path: Path) -> None:
    run = learn("10", "--all", "--ascii", "--lang", "en", cwd=tmp_path)
    written = run.stdout.replace(sys.executable.encode(), b"")  # the folder may have any name
    assert run.returncode == 0 and written.isascii() and b"W_k^T" in written


def test_lesson_10_is_stepped_through_by_typing(tmp_path: Path) -> None:
    run = learn("10", "--lang", "en", typed="\n\n2 1\nq\n", cwd=tmp_path)
    assert run.returncode == 0 and b"You stopped at step 4" in run.stdout
    again = learn("10", "--lang", "en", typed="\n" * 60, cwd=tmp_path)
    assert again.returncode == 0 and b"Going on at step 4" in again.stdout and b"Lesson 10 is done." in again.stdout


def test_a_reader_of_the_output_may_close_early(tmp_path: Path) -> None:
    run = subprocess.run(
        f'"{sys.executable}" -m tinyattn.learn 10 --all --lang en | head -n 3',
        shell=True,
        cwd=tmp_path,
        env=environment(TINYATTN_HOME=str(tmp_path / "home")),
        capture_output=True,
        check=False,
    )
    assert run.stderr == b"" and run.stdout.count(b"\n") == 3


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    pty = pytest.importorskip("pty")
    main, other = pty.openpty()
    yield main, other
    os.close(main)


def test_a_real_terminal_gets_colours_and_takes_keys(tmp_path: Path, terminal: tuple[int, int]) -> None:
    main, other = terminal
    process = subprocess.Popen(
        [sys.executable, "-m", "tinyattn.learn", "10", "--lang", "en"],
        stdin=other,
        stdout=other,
        stderr=other,
        cwd=tmp_path,
        start_new_session=True,
        env=environment(TINYATTN_HOME=str(tmp_path / "home"), TERM="xterm", PYTHONIOENCODING="utf-8"),
    )
    os.close(other)
    assert "Enter: go on" in until(main, b"> ")
    os.write(main, b"\n")
    assert "Enter: run this cell" in until(main, b"> ")
    os.write(main, b"\n")
    assert "what is its query" in until(main, b"> ").lower()
    os.write(main, b"2 1\n")
    shown = until(main, b"> ")
    assert "\x1b[36m" in shown
    os.write(main, b"\n")
    assert "Your guess was: 2 1" in until(main, b"> ")
    os.write(main, b"\x04")  # Ctrl-D
    assert "You stopped at step" in until(main, None)
    assert process.wait(timeout=20) == 0


def until(main: int, mark: bytes | None) -> str:
    """What a terminal shows up to a prompt, or to the end."""
    shown = b""
    while mark is None or not shown.endswith(mark):
        try:
            part = os.read(main, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    return shown.decode("utf-8", "replace")


def test_the_steps_of_a_lesson_end_in_code_or_a_question(folder: Path) -> None:
    assert steps_of(read_lesson(folder / "77_small.py"), "en") == [[0, 1], [2], [3], [4]]


def test_a_session_can_be_driven_without_a_terminal(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = Session(read_lesson(folder / "77_small.py"), Screen("en"), Progress(), tmp_path, ask=lambda: "")
    assert session.walk() == 0 and "end" in capsys.readouterr().out


# -- hints and solutions from the command line ----------------------------------------------------------------


def test_started_as_a_module_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = learn("10", "--lang", "en", typed="q\n", cwd=tmp_path)
    assert f"Go on with: {interpreter()} -m tinyattn learn 10".encode() in run.stdout
    assert as_typed("tinyattn learn 10") == "tinyattn learn 10"  # these tests were not started so


@pytest.mark.skipif(os.name == "nt", reason="paths of another form")
def test_python_is_called_by_the_word_that_starts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", str(python.parent))
    assert interpreter() == "python"
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert interpreter() == ".venv/bin/python"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert interpreter() == shlex.quote(str(python))


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TINYATTN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(grading, "language", "")
    return tmp_path


def helped(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = command.main([*words, "--lang", "en"])
    out, err = capsys.readouterr()
    return code, out + err


def test_hints_come_one_after_the_other_and_then_the_solution(
    at_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = helped(capsys, "7", "--reveal", "softmax_vjp")
    assert code == 2 and "Hints left: 3" in said and "tinyattn learn 7 --reveal softmax_vjp --anyway" in said
    assert "def softmax_vjp" not in said
    for at in (1, 2, 3):
        code, said = helped(capsys, "7", "--hint", "softmax_vjp")
        assert code == 0 and f"Hint {at} of 3" in said and said.startswith("07.softmax_vjp (10 minutes)")
    assert "tinyattn learn 7 --reveal softmax_vjp" in said
    code, said = helped(capsys, "7", "--reveal", "softmax_vjp")
    assert code == 0 and "def softmax_vjp(g, s):" in said
    assert Progress(home()).exercise("07.softmax_vjp") == {"hints": 3, "revealed": True}


@pytest.mark.parametrize("words", [["7", "--reveal", "2", "--anyway"], ["--reveal", "07.softmax_vjp", "--anyway"]])
def test_an_exercise_by_its_number_or_whole_name_and_the_solution_at_once(
    words: list[str], at_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = helped(capsys, *words)
    assert code == 0 and "def softmax_vjp(g, s):" in said


def test_without_a_name_it_is_the_first_that_is_not_solved(at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert helped(capsys, "7", "--hint")[1].startswith("07.softmax (")
    Progress(home()).keep_exercise("07.softmax", passed=True)
    assert helped(capsys, "7", "--hint")[1].startswith("07.softmax_vjp (")
    assert helped(capsys, "7", "--reveal", "softmax")[0] == 0  # who has solved it may look


def test_hints_in_chinese(at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["7", "--hint", "softmax", "--lang", "zh"]) == 0
    assert "提示 1/3：每个分数取exp" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["7", "--hint", "attend"], "lesson 07 has no exercise 'attend'; it has softmax, softmax_vjp"),
        (["--hint"], "which lesson? Write: tinyattn learn 7 --hint"),
        (["--reveal", "7"], "which lesson? Write: tinyattn learn 7 --reveal"),
        (["--hint", "99.x"], "there is no lesson '99'"),
    ],
)
def test_what_help_cannot_be_given(
    words: list[str], said: str, at_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown = helped(capsys, *words)
    assert code == 2 and said in shown


# -- word vectors of the reader's own ---------------------------------------------------------------------------

GLOVE = "king 1 2 3\nqueen 1 2.5 3\nman 0 1 1\nwoman 0 1.5 1\n"


def test_word_vectors_that_are_given_are_drawn(at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (at_home / "glove.txt").write_text(GLOVE, encoding="utf-8")
    code, said = helped(capsys, "8", "--all", "--vectors", "glove.txt", "-o", "out")
    assert code == 0 and "queen" in said.split("def drawn")[1]
    assert "queen" in (at_home / "out" / "08_real_words.svg").read_text(encoding="utf-8")
    code, said = helped(capsys, "8", "--all", "-o", "out")  # and the file is not remembered
    assert code == 0 and "no file of vectors was given" in said.split("drawn(path) if path")[1]


def test_the_lesson_as_a_script_takes_them_too(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["lessons/08_sequences.py", "--vectors", "glove.txt"])
    assert given.vectors_file() == Path("glove.txt")
    monkeypatch.setattr(sys, "argv", ["anything.py", "--vectors", "glove.txt"])  # somebody else's option
    assert given.vectors_file() is None


def test_a_file_of_vectors_that_is_broken_is_told_with_its_line(
    at_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (at_home / "glove.txt").write_text(GLOVE + "dog 1 x 2\n", encoding="utf-8")
    code, said = helped(capsys, "8", "--all", "--vectors", "glove.txt")
    assert code == 1 and "glove.txt, line 5" in said and "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["8", "--vectors", "none.txt"], "--vectors none.txt: there is no such file."),
        (["7", "--vectors", "none.txt"], "lesson 07 uses no word vectors; lesson 08 does."),
    ],
)
def test_vectors_that_are_not_there_or_not_wanted(
    words: list[str], said: str, at_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown = helped(capsys, *words)
    assert code == 2 and said in shown
