"""``grade``, ``hint`` and ``reveal``: what a learner calls.

>>> from tinyattn.learn import grade
>>> def attend(q, K, V):
...     ...
>>> grade("10.attend", attend)
10.attend: nothing written yet. ...
"""

from __future__ import annotations

import json
import linecache
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from tinyattn._viz import load_viz
from tinyattn.errors import TinyattnError
from tinyattn.learn.carry import pack
from tinyattn.learn.exercises import Exercise, find_exercise, is_unwritten
from tinyattn.learn.judge import Verdict
from tinyattn.learn.progress import Progress
from tinyattn.learn.words import Sayings, as_typed, language_of_the_locale
from tinyattn.terminal import say

SECONDS = 10.0
"""How long an answer may take; starting the process counts."""

language = ""
"""The language of the messages, where a session has chosen one; else that of the locale."""

switched_off = False
"""Whether `grade` does nothing, as in the process that grades."""


@contextmanager
def speaking(lang: str) -> Iterator[None]:
    """Let the grading and the pictures speak a language for a while.

    Parameters
    ----------
    lang : {"en", "zh"}
    """
    global language
    before, language = language, lang
    try:
        words: Any = import_module(f"{load_viz().__name__}.words")
    except TinyattnError:  # without pictures there is nothing to say in them
        words = SimpleNamespace(language="")
    before_in_pictures, words.language = words.language, lang
    try:
        yield
    finally:
        language, words.language = before, before_in_pictures


def grade(name: str, function: Any, *, seconds: float = SECONDS) -> None:
    """Try an answer to an exercise, and say what came out.

    The answer runs in a process of its own, so it may print, exit or loop for ever.

    Parameters
    ----------
    name : str
        The exercise: ``"10.attend"``.
    function : callable
        Your function.
    seconds : float
        How long it may take.

    Examples
    --------
    >>> grade("10.scores", lambda q, K: K @ q)
    10.scores: 7 of 7 public checks passed.
    """
    if switched_off:
        return
    exercise = find_exercise(name)
    says = Sayings(language or language_of_the_locale())
    if is_unwritten(function):
        say(says("unwritten", name=name, signature=exercise.signature, task=exercise.task[says.lang == "zh"]))
        return
    verdict, printed = tried(exercise, function, says.lang, seconds)
    for line in report(exercise, verdict, printed, says):
        say(line)
    progress = Progress()
    before = progress.exercise(name)
    progress.keep_exercise(name, tries=before.get("tries", 0) + 1, passed=verdict.right or bool(before.get("passed")))


def hint(name: str) -> None:
    """Show the next of the three hints of an exercise.

    Parameters
    ----------
    name : str
        The exercise: ``"10.attend"``.
    """
    show_hint(name, f'reveal("{name}")')


def show_hint(name: str, solution: str) -> None:
    """Show the next hint; `solution` is how the solution is had after the last."""
    exercise, progress = find_exercise(name), Progress()
    says = Sayings(language or language_of_the_locale())
    shown = min(progress.exercise(name).get("hints", 0), len(exercise.hints) - 1)
    say(says("hint", at=shown + 1, of=len(exercise.hints), text=exercise.hints[shown][says.lang == "zh"]))
    progress.keep_exercise(name, hints=shown + 1)
    if shown + 1 == len(exercise.hints):
        say(as_typed(says("no more hints", solution=solution)))


def reveal(name: str, anyway: bool = False) -> None:
    """Show the solution of an exercise, after its hints, or when it has been solved.

    Parameters
    ----------
    name : str
        The exercise: ``"10.attend"``.
    anyway : bool
        Show it even if there are hints left.
    """
    show_solution(name, anyway, f'hint("{name}")', f'reveal("{name}", anyway=True)')


def show_solution(name: str, anyway: bool, hint: str, solution: str) -> bool:
    """Show the solution, or say how the hints that are left, or the solution now, are had; whether it was shown."""
    exercise, progress = find_exercise(name), Progress()
    says = Sayings(language or language_of_the_locale())
    known = progress.exercise(name)
    left = len(exercise.hints) - known.get("hints", 0)
    if left > 0 and not anyway and not known.get("passed"):
        say(as_typed(says("hints left", count=left, hint=hint, solution=solution)))
        return False
    say(exercise.solution_source().rstrip())
    progress.keep_exercise(name, revealed=True)
    return True


def tried(exercise: Exercise, function: Any, lang: str, seconds: float = SECONDS) -> tuple[Verdict, str]:
    """Judge an answer in a child process: the verdict, and what the answer printed."""
    says = Sayings(lang)
    call = pickle.dumps((exercise.name, lang, pack(function)))
    command = [sys.executable, "-m", "tinyattn.learn.child"]
    try:
        run = subprocess.run(command, input=call, capture_output=True, timeout=seconds, env=_environment(), check=False)
    except subprocess.TimeoutExpired:
        return Verdict(lines=[says("too long", seconds=f"{seconds:g}")]), ""
    try:
        facts = json.loads(run.stdout)
    except ValueError:
        last = run.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        return Verdict(lines=[says("died", code=run.returncode, text=last)]), ""
    printed = facts.pop("printed")
    return Verdict(**{**facts, "place": tuple(facts["place"])}), printed


def report(exercise: Exercise, verdict: Verdict, printed: str, says: Sayings) -> list[str]:
    """The lines that a learner reads."""
    lines = (
        [says("passed", name=exercise.name, passed=verdict.passed, of=verdict.of)]
        if verdict.of
        else [f"{exercise.name}:"]
    )
    if not verdict.right:
        lines += [f"  {line}" for text in verdict.lines for line in text.split("\n")]
        file, line = verdict.place
        source = linecache.getline(file, line).strip() if file else ""
        if line:
            lines.append("  " + says("at line", line=line, source=source))
        if verdict.mistake:
            lines.append("  " + says("mistake", text=verdict.mistake))
        lines.append("  " + says("more help", name=exercise.name))
    if printed.strip():
        lines += [says("printed"), *(f"  | {line}" for line in printed.rstrip().split("\n")[:10])]
    return lines


def _environment() -> dict[str, str]:
    """The child finds the same packages as this process; one thread is enough, and takes less memory."""
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return os.environ | threads | {"PYTHONPATH": paths}
