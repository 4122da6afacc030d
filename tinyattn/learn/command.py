"""``tinyattn learn``: list the lessons, step through one, run one through."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tinyattn.errors import TinyattnError
from tinyattn.files import check_folder, write_folder_whole, write_whole
from tinyattn.learn import given, grading, library
from tinyattn.learn.exercises import Exercise, find_exercise
from tinyattn.learn.lesson import Lesson, LessonError
from tinyattn.learn.notebook import notebook
from tinyattn.learn.progress import Progress
from tinyattn.learn.session import Screen, Session, begin, checked_folder, steps_of
from tinyattn.learn.words import language_of_the_locale
from tinyattn.terminal import say, say_table


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``tinyattn learn`` with these words after it.

    Returns
    -------
    int
        0; 1 when a lesson's check failed; 2 when the words make no sense; 130 after Ctrl-C.
    """
    arguments = _parser().parse_args(argv)
    screen = Screen(arguments.lang or language_of_the_locale(), arguments.ascii)
    try:
        if arguments.teacher:
            return _write_for_teachers(arguments.out or Path("tinyattn-teacher"), screen)
        arguments.out = arguments.out or Path("tinyattn-out")
        arguments.lesson = arguments.lesson or _lesson_of_the_exercise(arguments)
        return _list(screen) if arguments.lesson is None else _walk(arguments, screen)
    except TinyattnError as error:
        say(str(error), ascii=arguments.ascii, stream=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tinyattn learn", description="Lessons to step through: without a number, the list of them."
    )
    parser.add_argument("lesson", nargs="?", help="number or part of the name: 10, one_query")
    parser.add_argument("--all", action="store_true", help="run it through without waiting")
    parser.add_argument("--notebook", action="store_true", help="write it as a notebook into the folder of --out")
    asked = parser.add_mutually_exclusive_group()
    for option, text in (
        ("--hint", "show the next hint of an exercise; without its name, of the first that is not solved"),
        ("--reveal", "show the solution of an exercise, when its hints are used up or it is solved"),
    ):
        asked.add_argument(option, nargs="?", const="", metavar="EXERCISE", help=text)
    parser.add_argument("--anyway", action="store_true", help="with --reveal: even if hints are left")
    parser.add_argument("--teacher", action="store_true", help="write plan, figures, steppers, solutions into --out")
    parser.add_argument("--vectors", type=Path, metavar="FILE", help="word vectors (GloVe text) for lesson 08")
    parser.add_argument("--restart", action="store_true", help="begin at the first step, not where you stopped")
    parser.add_argument("--lang", choices=["en", "zh"], help="language of the prose; default: from the locale")
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for pictures (default: tinyattn-out; with --teacher: tinyattn-teacher)",
    )
    parser.add_argument("--ascii", action="store_true", help="show formulas and tables in ASCII")
    return parser


def _walk(arguments: argparse.Namespace, screen: Screen) -> int:
    lesson = library.find(arguments.lesson, screen.lang)
    if arguments.hint is not None or arguments.reveal is not None:
        return _help_with(lesson, arguments, screen)
    if arguments.notebook:
        return _write_notebook(lesson, screen, checked_folder(arguments.out))
    vectors = _checked_vectors(arguments.vectors, lesson)
    progress = Progress()
    if progress.trouble:
        screen.alarm(progress.trouble)
    session = Session(lesson, screen, progress, checked_folder(arguments.out))
    session.waiting = not arguments.all
    start = 0 if arguments.all else begin(lesson, progress, screen, arguments.restart)
    with given.vectors_from(vectors):
        code = session.walk(start)
    if code == 0 and progress.done(lesson.number) and not progress.step(lesson.number, lesson.fingerprint):
        _say_next(lesson, screen)
    return code


def _lesson_of_the_exercise(arguments: argparse.Namespace) -> str | None:
    """The lesson that `--hint 07.softmax` means."""
    word = arguments.hint if arguments.hint is not None else arguments.reveal
    if word is None:
        return None
    number, dot, _ = word.partition(".")
    if not dot:
        raise LessonError(f"which lesson? Write: tinyattn learn 7 --{'reveal' if arguments.hint is None else 'hint'}")
    return str(number)


def _help_with(lesson: Lesson, arguments: argparse.Namespace, screen: Screen) -> int:
    """Show a hint, or the solution; 2 where there are hints left."""
    wants_hint = arguments.hint is not None
    exercise = chosen(lesson, arguments.hint if wants_hint else arguments.reveal)
    task = exercise.task[screen.lang == "zh"]
    screen.say(screen.sayings("chosen", name=exercise.name, minutes=exercise.minutes, task=task))
    here = f"tinyattn learn {int(lesson.number)}"
    hint, solution = f"{here} --hint {exercise.function}", f"{here} --reveal {exercise.function}"
    with grading.speaking(screen.lang):
        if wants_hint:
            grading.show_hint(exercise.name, solution)
            return 0
        return 0 if grading.show_solution(exercise.name, arguments.anyway, hint, f"{solution} --anyway") else 2


def chosen(lesson: Lesson, word: str) -> Exercise:
    """An exercise of a lesson by its name, the name of its function, or its number; the first unsolved one without.

    Raises
    ------
    LessonError
        When there is no such exercise; the message lists them.
    """
    every = [find_exercise(name) for name in lesson.exercises]
    if not every:
        raise LessonError(f"lesson {lesson.number} has no exercises.")
    if not word:
        progress = Progress()
        return next((one for one in every if not progress.exercise(one.name).get("passed")), every[0])
    found = [one for at, one in enumerate(every, 1) if word in (one.name, one.function, str(at))]
    if not found:
        names = ", ".join(one.function for one in every)
        raise LessonError(f"lesson {lesson.number} has no exercise {word!r}; it has {names}.")
    return found[0]


def _checked_vectors(path: Path | None, lesson: Lesson) -> Path | None:
    """The file of word vectors; one that is not there, or is not wanted, is told before the lesson begins."""
    if path is None:
        return None
    if not any("vectors_file" in cell.code for cell in lesson.cells):
        raise LessonError(f"--vectors {path}: lesson {lesson.number} uses no word vectors; lesson 08 does.")
    if not path.is_file():
        raise LessonError(f"--vectors {path}: there is no such file.")
    return path


def _write_notebook(lesson: Lesson, screen: Screen, out: Path) -> int:
    path = out / f"{lesson.path.stem}.ipynb"
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(path, notebook(lesson, screen.lang))
    except OSError as error:
        raise LessonError(f"the notebook cannot be written: {error.strerror}.", str(path)) from None
    screen.faint(screen.sayings("notebook", path=path))
    return 0


_FOR_TEACHERS = "pack for teachers"


def _write_for_teachers(out: Path, screen: Screen) -> int:
    from tinyattn.learn.teacher import teacher_folder  # it imports the engine, which a list of lessons need not

    check_folder(out, _FOR_TEACHERS)
    files = teacher_folder(screen.lang)
    try:
        write_folder_whole(out, files, _FOR_TEACHERS)
    except OSError as error:
        raise LessonError(f"the folder cannot be written: {error.strerror}.", str(out)) from None
    screen.say(screen.sayings("teacher written", path=out / "index.html", count=len(files)))
    return 0


def _say_next(lesson: Lesson, screen: Screen) -> None:
    later = [path for path in library.paths() if path.name[:2] > lesson.number]
    if later:
        following = library.find(later[0].stem)
        screen.faint(screen.sayings("next", number=following.number, title=following.title(screen.lang)))


def _list(screen: Screen) -> int:
    progress, sayings = Progress(), screen.sayings
    lessons = library.lessons()
    rows = [
        (
            lesson.number,
            lesson.title(screen.lang),
            str(lesson.minutes),
            ", ".join(lesson.needs),
            _state(lesson, progress, screen),
        )
        for lesson in lessons
    ]
    heads = [sayings(key) for key in ("number", "title", "minutes", "needs", "progress")]
    say_table(rows, heads, ascii=screen.ascii)
    screen.say()
    unfinished = [lesson for lesson in lessons if not progress.done(lesson.number)] or lessons
    screen.faint(sayings("how", number=unfinished[0].number))
    if progress.trouble:
        screen.alarm(progress.trouble)
    return 0


def _state(lesson: Lesson, progress: Progress, screen: Screen) -> str:
    at = progress.step(lesson.number, lesson.fingerprint)
    state = screen.sayings("done" if progress.done(lesson.number) else "new")
    if at:
        state = screen.sayings("at", at=at + 1, of=len(steps_of(lesson, screen.lang)))
    if not lesson.exercises:
        return state
    passed = sum(bool(progress.exercise(name).get("passed")) for name in lesson.exercises)
    return screen.sayings("exercises", state=state, passed=passed, of=len(lesson.exercises))
