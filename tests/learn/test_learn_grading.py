"""Grading: right answers pass, stubs are met kindly, every known mistake is called by its own name.

The exercises themselves are tested here too: their cases against their solutions, their catalogues against
each other, and against mutations that no catalogue lists.
"""

from __future__ import annotations

import functools
import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from repository import ROOT

import tinyattn as ta
from tinyattn.learn import grade, grading, hint, library, reveal
from tinyattn.learn.carry import pack, unpack
from tinyattn.learn.exercises import Exercise, every_exercise, find_exercise, is_unwritten
from tinyattn.learn.judge import judge
from tinyattn.learn.lesson import LessonError, read_lesson
from tinyattn.learn.progress import Progress

EXERCISES = every_exercise()
MISTAKES = [(one, at) for one in EXERCISES for at in range(len(one.wrong))]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINYATTN_HOME", str(tmp_path))
    monkeypatch.setattr(grading, "language", "en")


# -- the exercises ---------------------------------


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda one: one.name)
def test_the_solution_passes_every_check(exercise: Exercise) -> None:
    verdict = judge(exercise, exercise.solution)
    assert verdict.right and not verdict.lines, verdict.lines


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda one: one.name)
def test_the_solution_that_is_revealed_passes_as_it_is_printed(exercise: Exercise) -> None:
    names: dict[str, Any] = {"np": np, "ta": ta}
    exec(exercise.solution_source(), names)
    assert judge(exercise, names[exercise.function]).right


@pytest.mark.parametrize(("exercise", "at"), MISTAKES, ids=lambda x: getattr(x, "name", str(x)))
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_known_mistake_is_called_by_its_own_name(exercise: Exercise, at: int, lang: str) -> None:
    wrong = exercise.wrong[at]
    verdict = judge(exercise, wrong.function, lang)
    assert not verdict.right and verdict.lines
    assert verdict.mistake == wrong.says[lang == "zh"]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda one: one.name)
def test_an_exercise_has_all_its_parts(exercise: Exercise) -> None:
    assert len(exercise.wrong) >= 4 and len(exercise.cases) >= 1 and 0 < exercise.minutes <= 30
    texts = [exercise.task, *exercise.hints, *(w.says for w in exercise.wrong), *(p.says for p in exercise.properties)]
    assert all(len(both) == 2 and all(both) for both in texts)
    assert all(any("一" <= letter <= "鿿" for letter in chinese) for _, chinese in texts)
    assert len({w.says for w in exercise.wrong}) == len(exercise.wrong)
    assert f"def {exercise.function}(" in exercise.solution_source()


def changed(solution: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(solution)
    def answer(*args: Any) -> Any:
        return change(solution(*args))

    return answer


MUTATIONS: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda y: y * 0,
    "doubled": lambda y: y * 2,
    "halved": lambda y: y / 2,
    "negated": lambda y: -y,
    "off by a little": lambda y: y + 1e-4,
    "one too many axes": lambda y: y[None] if np.ndim(y) or hasattr(y, "shape") else np.array([y]),
    "transposed": lambda y: y.mT if np.ndim(getattr(y, "data", y)) >= 2 else y[..., None],
    "summed": lambda y: y.sum(),
    "nan": lambda y: y * float("nan"),
}


def has_axes(exercise: Exercise) -> bool:
    return np.ndim(exercise.cases[0].expected) > 0


SPOILED = [
    (one, mutation)
    for one in EXERCISES
    for mutation in MUTATIONS
    if has_axes(one) or mutation not in ("transposed", "summed", "one too many axes")
]


@pytest.mark.parametrize(("exercise", "mutation"), SPOILED, ids=lambda x: getattr(x, "name", x))
def test_a_spoiled_solution_fails(exercise: Exercise, mutation: str) -> None:
    verdict = judge(exercise, changed(exercise.solution, MUTATIONS[mutation]))
    assert not verdict.right and verdict.lines


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda one: one.name)
def test_the_stub_in_the_lesson_is_met_kindly(exercise: Exercise, capsys: pytest.CaptureFixture[str]) -> None:
    lesson = library.find(exercise.name[:2])
    (cell,) = [cell for cell in lesson.cells if cell.tags.get("exercise") == exercise.name]
    names: dict[str, Any] = {"np": np, "ta": ta, "grade": grade}
    exec(cell.code, names)
    shown = capsys.readouterr().out
    assert "nothing written yet" in shown and exercise.task[0] in shown and "Traceback" not in shown
    stub, solution = names[exercise.function], exercise.solution
    assert list(inspect.signature(stub).parameters) == list(inspect.signature(solution).parameters)
    assert is_unwritten(stub) and stub.__doc__


@pytest.mark.parametrize("path", library.paths(), ids=lambda path: path.stem)
def test_a_lesson_and_its_exercises_belong_together(path: Path) -> None:
    lesson = read_lesson(path)
    assert list(lesson.exercises) == [one.name for one in EXERCISES if one.name.startswith(lesson.number + ".")]
    assert 1 <= len(lesson.exercises) <= 3


# -- judging ---------------------------------


def attend(q: Any, K: Any, V: Any) -> Any:
    return ta.softmax(K @ q) @ V


def test_a_failure_says_expected_received_and_the_first_place() -> None:
    verdict = judge(find_exercise("10.scores"), lambda q, K: K @ q + ta.tensor([0.0] * (K.shape[0] - 1) + [0.5]))
    said = "\n".join(verdict.lines)
    assert "expected [3., 2., 1., 2.], shape (4,)" in said and "received [3. , 2. , 1. , 2.5], shape (4,)" in said
    assert "first difference at [3]: expected 2, received 2.5" in said


@pytest.mark.parametrize(("answer", "said"), [
    (3, "A function is expected"),
    (lambda q: q, "It must be possible to call it as attend(q, K, V); yours takes (q)"),
    (lambda q, K, V: None, "Nothing is returned"),
    (lambda q, K, V: "soft", "A tensor is expected; this is a str"),
    (lambda q, K, V: np.array([1.0, 2.0]), "A tensor is expected; this is a ndarray"),
    (lambda q, K, V: [q, "x"], "A tensor is expected"),
    (lambda q, K, V: q @ K, "It raised ShapeError"),
    (lambda q, K, V: undefined_name, "It raised NameError"),  # noqa: F821
    (lambda q, K, V: sys.exit(1), "It raised SystemExit"),
    (lambda q, K, V: ta.tensor(attend(q, K, V).data), "no gradient flows back"),
])  # fmt: skip
def test_what_is_no_answer_is_told_in_words(answer: Any, said: str) -> None:
    verdict = judge(find_exercise("10.attend"), answer)
    assert not verdict.right and said in "\n".join(verdict.lines)


def test_right_numbers_with_a_broken_gradient_do_not_pass() -> None:
    def half_detached(q: Any, K: Any, V: Any) -> Any:
        return ta.softmax(K @ q).detach() @ V

    verdict = judge(find_exercise("10.attend"), half_detached)
    assert verdict.passed == verdict.of - 1 and "The gradient for q is wrong at [0]" in verdict.lines[0]


def test_an_answer_that_raises_for_one_call_only_is_told_the_call_and_keeps_its_other_checks() -> None:
    def fits_squares_only(G: Any, X: Any, W: Any) -> Any:
        return G @ W.T if W.shape == (2, 2) else G @ W

    verdict = judge(find_exercise("05.grad_left"), fits_squares_only)
    assert verdict.passed == 1 and verdict.lines[0].startswith("grad_left(G=[[1., 0.]]")
    assert "(2) must equal the second-to-last axis of the right one (3)" in verdict.lines[1]
    assert "gufunc" not in verdict.lines[1] and verdict.place[1] > 0


def test_a_mistake_that_raises_is_recognised_whatever_its_variables_are_called() -> None:
    def mine(G: Any, X: Any, W: Any) -> Any:
        arrived, weights = G, W
        return arrived @ weights

    assert judge(find_exercise("05.grad_left"), mine).mistake.startswith("G W:")
    assert judge(find_exercise("05.grad_left"), lambda G, X, W: G @ W.undefined).mistake == ""
    assert judge(find_exercise("06.tanh_rule"), lambda g, y: g * (1 - y ^ 2)).mistake.startswith("^ is no power")
    assert judge(find_exercise("06.tanh_rule"), lambda g, y: g(1 - y)).mistake == ""  # a TypeError, but another


def test_shapes_that_do_not_line_up_are_said_in_plain_words() -> None:
    verdict = judge(find_exercise("07.softmax"), lambda x: x + np.ones(x.shape[-1] + 2))
    assert "lined up at the right" in "\n".join(verdict.lines)


@pytest.mark.parametrize(("name", "answer", "changed"), [
    ("02.run", lambda leaves, steps: [leaves.append(0.0)] and find_exercise("02.run").solution(leaves[:-1], steps),
     "leaves"),
    ("07.softmax", lambda x: x.__isub__(x.max()) * 0 + find_exercise("07.softmax").solution(x), "x"),
])  # fmt: skip
def test_an_answer_that_changes_what_it_was_given_is_told_which(name: str, answer: Any, changed: str) -> None:
    verdict = judge(find_exercise(name), answer)
    assert not verdict.right and f"{changed} is changed on the way" in "\n".join(verdict.lines)


def test_a_single_number_has_no_shape_and_a_truth_is_said_as_such() -> None:
    verdict = judge(find_exercise("09.parameters"), lambda k, vocabulary, tags: 7)
    assert verdict.lines[1:] == ["expected 948", "received 7"]
    verdict = judge(find_exercise("16.equivariant"), lambda f, X, order: False)
    assert verdict.lines[1:] == ["expected True", "received False"]


def test_an_overflow_that_small_numbers_hide_does_not_pass() -> None:
    def naive(q: Any, K: Any, V: Any) -> Any:
        e = ta.exp(K @ q)
        return (e / e.sum()) @ V

    with np.errstate(all="ignore"):
        verdict = judge(find_exercise("10.attend"), naive)
    assert verdict.passed == verdict.of - 1 and "nan" in verdict.lines[0]


# -- grading in a process of its own ---------------------------------


def shown(capsys: pytest.CaptureFixture[str], name: str, answer: Any, **more: Any) -> str:
    grade(name, answer, **more)
    return capsys.readouterr().out


def test_a_right_answer_says_how_many_checks_passed_and_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "10.attend", attend) == "10.attend: 9 of 9 public checks passed.\n"
    assert Progress().exercise("10.attend") == {"passed": True, "tries": 1}


def test_names_from_outside_travel_with_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    factor, unused = 1.0, open(os.devnull)

    def weights(scores: Any) -> Any:
        return ta.softmax(scores * factor)

    def answer(q: Any, K: Any, V: Any) -> Any:
        return weights(K @ q) @ V if unused is not answer else None

    assert "9 of 9" in shown(capsys, "10.attend", answer)
    unused.close()


def test_what_an_answer_prints_is_shown_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(q: Any, K: Any) -> Any:
        for _ in range(100_000):
            print("looking at K")
        return K @ q

    said = shown(capsys, "10.scores", answer)
    assert "7 of 7" in said and said.count("| looking at K") == 10


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("while True: pass", "had not finished after 3 seconds"),
        ("import os; os._exit(5)", "ended without a result (code 5)"),
        ("input('q? ')", "It raised EOFError"),
        ("raise ValueError('odd')", "It raised ValueError: odd"),
        ("return [0] * 10**12", "It raised MemoryError"),
        ("import os; os.write(1, b'{}'); return K @ q", "7 of 7"),
        ("import sys; sys.stdout.close(); return K @ q", "7 of 7"),
    ],
)
def test_an_answer_that_misbehaves_does_no_harm(capsys: pytest.CaptureFixture[str], body: str, said: str) -> None:
    names: dict[str, Any] = {}
    exec(f"def answer(q, K):\n    {body}", names)
    assert said in shown(capsys, "10.scores", names["answer"], seconds=3 if "while" in body else 20)


def test_the_line_that_raised_is_shown(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "from tinyattn.learn import grade\n\ndef scores(q, K):\n    return q.upper()\n\ngrade('10.scores', scores)\n",
        encoding="utf-8",
    )
    run = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"},
    )
    assert "at line 4: return q.upper()" in run.stdout and "Traceback" not in run.stdout + run.stderr


def test_a_module_that_grades_when_imported_does_not_grade_in_the_child(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(grading, "switched_off", True)
    grade("10.attend", attend)
    assert capsys.readouterr().out == ""


def test_messages_are_in_chinese_where_that_is_chosen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading, "language", "zh")
    assert "公开检验" in shown(capsys, "10.scores", lambda q, K: K @ q)
    assert "少了softmax" in shown(capsys, "10.attend", lambda q, K, V: (K @ q) @ V)


def test_an_exercise_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LessonError, match=r"10\.scores, 10\.attend"):
        grade("10.nothing", attend)
    with pytest.raises(LessonError, match="named by a text"):
        grade(attend, "10.attend")  # type: ignore[arg-type]


def test_three_hints_and_then_the_solution(capsys: pytest.CaptureFixture[str]) -> None:
    reveal("10.attend")
    assert "Hints left: 3" in capsys.readouterr().out
    for number in (1, 2, 3):
        hint("10.attend")
        assert f"Hint {number} of 3" in capsys.readouterr().out
    hint("10.attend")
    assert "Hint 3 of 3" in capsys.readouterr().out
    reveal("10.attend")
    assert "def attend(q, K, V):" in capsys.readouterr().out
    assert Progress().exercise("10.attend") == {"hints": 3, "revealed": True}


def test_the_solution_is_shown_at_once_when_one_insists(capsys: pytest.CaptureFixture[str]) -> None:
    reveal("10.scores", anyway=True)
    assert "return K @ q" in capsys.readouterr().out


# -- carrying a function ---------------------------------


def test_a_function_travels_with_defaults_closure_and_itself() -> None:
    base = 10

    def factorial(n: int, *, one: int = 1) -> int:
        return one if n < 2 else n * factorial(n - 1)

    def outer(x: int, y: int = 2) -> int:
        return sum(inner(v) for v in (x, y)) + base

    def inner(v: int) -> int:
        return v * factorial(3)

    assert unpack(pack(outer))(1) == 6 + 12 + 10


def test_what_cannot_travel_fails_by_name() -> None:
    names: dict[str, Any] = {"stream": (x for x in "ab")}
    exec("def f(): return stream", names)
    with pytest.raises(NameError, match="stream"):
        unpack(pack(names["f"]))()


def test_library_functions_travel_by_name() -> None:
    assert unpack(pack(np.sum)) is np.sum and unpack(pack(ta.softmax)) is ta.softmax


@pytest.mark.parametrize(
    ("source", "unwritten"),
    [
        ("def f(x): ...", True),
        ("def f(x): pass", True),
        ("def f(x):\n    'Say.'\n    ...", True),
        ("def f(x): return x", False),
        ("def f(x): return 3", False),
        ("def f(x): g(x)", False),
        ("def f(x):\n    while True: pass", False),
    ],
)
def test_a_stub_is_told_from_an_answer(source: str, unwritten: bool) -> None:
    names: dict[str, Any] = {}
    exec(source, names)
    assert is_unwritten(names["f"]) is unwritten
