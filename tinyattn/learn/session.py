"""Step through a lesson in the terminal: show a cell, wait, run it, show what it gives.

The session keeps a place (a step: some prose, then a cell of code or a question) and nothing else; the cells
before it can always be run again, which is how it goes back and how it resumes.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from tinyattn.errors import ArgumentError, TinyattnError
from tinyattn.files import write_whole
from tinyattn.learn import grading
from tinyattn.learn.exercises import find_exercise
from tinyattn.learn.lesson import Cell, Lesson
from tinyattn.learn.progress import Progress
from tinyattn.learn.prose import coloured, rendered, wrap
from tinyattn.learn.runner import CellFailed, Runner, is_page, is_picture
from tinyattn.learn.words import Sayings, as_typed, interpreter
from tinyattn.terminal import ascii_form, display_width, say

_IMPORTS = """import numpy as np

import tinyattn as ta
from tinyattn.learn import grade, hint, reveal
"""
_LINES = 18  # a step shows about this much prose
_WIDEST = 96
_FAINT, _RED, _OFF = "\x1b[2m", "\x1b[31m", "\x1b[0m"


class Screen:
    """Where a lesson is shown: width, colours, letters, language."""

    def __init__(self, lang: str, ascii: bool = False) -> None:
        self.lang, self.ascii = lang, ascii
        self.sayings = Sayings(lang)
        self.stream = sys.stdout  # kept, because a cell that runs prints elsewhere
        self.colour = _has_colours(self.stream)

    def say(self, text: str = "") -> None:
        """Print a text."""
        say(text, ascii=self.ascii, stream=self.stream)
        self.stream.flush()

    def prose(self, text: str) -> None:
        """Print Markdown."""
        if self.ascii:
            text = ascii_form(text)
        width = min(shutil.get_terminal_size().columns, _WIDEST)
        self.say(rendered(text, width, self.colour, self.ascii))
        self.say()

    def code(self, text: str) -> None:
        """Print Python with a line at its left."""
        shown = coloured(text) if self.colour else text
        self.say("\n".join(f"  │ {line}".rstrip() for line in shown.split("\n")))

    def faint(self, text: str) -> None:
        """Print what the machinery says, not the lesson."""
        text = as_typed(text)
        self.say(f"{_FAINT}{text}{_OFF}" if self.colour else text)

    def alarm(self, text: str) -> None:
        """Print what went wrong."""
        self.say(f"{_RED}{text}{_OFF}" if self.colour else text)


def _has_colours(stream: TextIO) -> bool:
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return os.name != "nt" or bool(os.environ.get("WT_SESSION") or os.environ.get("ANSICON") or os.environ.get("TERM"))


class Leave(Exception):
    """The reader wants to stop here."""


class Session:
    """One walk through a lesson.

    Parameters
    ----------
    lesson : Lesson
    screen : Screen
    progress : Progress
    out : Path
        The folder for pictures.
    ask : callable
        Shows nothing, gives the line that the reader typed; raises EOFError at the end of the input.
    """

    def __init__(
        self,
        lesson: Lesson,
        screen: Screen,
        progress: Progress,
        out: Path,
        ask: Callable[[], str] = lambda: input("> "),
    ) -> None:
        self.lesson, self.screen, self.progress, self.ask = lesson, screen, progress, ask
        self.runner = Runner(lesson, out)
        self.steps = steps_of(lesson, screen.lang)
        self.waiting = True
        self.guess = ""
        self._say = screen.sayings

    def walk(self, start: int = 0) -> int:
        """Go from a step to the end.

        Returns
        -------
        int
            The exit code: 0, or 1 when a cell failed.
        """
        with grading.speaking(self.screen.lang):
            return self._walk(start)

    def _walk(self, start: int) -> int:
        at = start
        try:
            if at:
                self.screen.faint(self._say("resumed", at=at + 1, of=len(self.steps)))
                self.screen.say()
                self.runner.replay(self.steps[at][0])
            while at < len(self.steps):
                self._keep(at)
                at = self._step(at)
        except Leave:
            self._leave(at)
            return 0
        except CellFailed as failure:
            self.told(failure)
            return 1
        except KeyboardInterrupt:
            self.screen.say()
            self.screen.faint(self._say("interrupted"))
            self._leave(at)
            return 130
        self.progress.keep(self.lesson.number, self.lesson.fingerprint, 0, done=True)
        self.screen.faint(self._say("finished", number=self.lesson.number))
        return 0

    def told(self, failure: CellFailed) -> None:
        """Say which cell failed, where, and what the message is."""
        say = self.screen
        say.say()
        say.alarm(self._say("check failed" if failure.is_check else "cell failed"))
        say.say(self._say("where", cell=failure.cell, path=self.lesson.path.name, line=failure.line))
        say.code(failure.source)
        say.say(f"  {failure.text}")

    def _keep(self, at: int) -> None:
        self.progress.keep(self.lesson.number, self.lesson.fingerprint, at)

    def _leave(self, at: int) -> None:
        self.screen.faint(self._say("left", at=at + 1, of=len(self.steps), number=self.lesson.number))
        if self.progress.trouble:
            self.screen.alarm(self.progress.trouble)

    def _step(self, at: int) -> int:
        """Show a step, wait, run its cell; gives the next step."""
        cells = self.steps[at]
        last = self.lesson.cells[cells[-1]]
        for number in cells:
            self._show(self.lesson.cells[number])
        moved = self._wait(at, last) if self.waiting else None
        if moved is not None:
            return moved
        if last.is_code:
            self.screen.say()
            if self.waiting and self._solved(last):
                self.runner.run(cells[-1], line=lambda text: None)  # a stub that is solved is not graded again
                self.screen.faint(self._say("solved", name=last.tags["exercise"]))
            else:
                self._run(cells[-1])
            if self.guess:
                self.screen.faint(self._say("guessed", guess=self.guess))
                self.guess = ""
            self.screen.say()
        return at + 1

    def _show(self, cell: Cell) -> None:
        if cell.is_code:
            self.screen.code(cell.code)
        else:
            self.screen.prose(cell.text(self.screen.lang))

    def _wait(self, at: int, last: Cell) -> int | None:
        """Let the reader decide: None goes on here, a number goes to that step."""
        asks = last.tags.get("role") == "predict"
        if "exercise" in last.tags:
            self.screen.faint(self._say("exercise", name=last.tags["exercise"]))
        self.screen.faint(self._say("guess" if asks else "run" if last.is_code else "on"))
        while True:
            typed = self._typed()
            if typed in ("b", "s", "r", "q", "e", "h", "?"):
                moved = self._command(typed, at, last)
                if moved is not None:
                    return moved if moved >= 0 else None
            elif not typed or asks:
                self.guess = typed if asks else self.guess
                return None
            else:
                self._try(typed)

    def _solved(self, cell: Cell) -> bool:
        """Whether the cell's exercise is solved, perhaps a moment ago in another window: so it is read anew."""
        name = cell.tags.get("exercise")
        return name is not None and bool(Progress(self.progress.path.parent).exercise(name).get("passed"))

    def _try(self, typed: str) -> None:
        try:
            self._give(self.runner.try_out(typed, self.screen.say))
        except SystemExit:  # exit() and quit() mean what they say
            raise Leave from None

    def _typed(self) -> str:
        try:
            return self.ask().strip()
        except EOFError:
            self.screen.say()
            raise Leave from None

    def _command(self, typed: str, at: int, last: Cell) -> int | None:
        """Do what a letter means: a step to go to, -1 to go on here, None to keep waiting."""
        if typed == "q":
            raise Leave
        if typed == "b":
            if at:
                self.runner.replay(self.steps[at - 1][0])
                return at - 1
            self.screen.faint(self._say("first"))
        elif typed == "s":
            self.runner.run(self.steps[at][-1], line=lambda text: None)
            self.screen.faint(self._say("skipped"))
            return at + 1
        elif typed == "r":
            self.waiting = False
            return -1
        elif typed == "e":
            self._write_exercise(last)
        else:
            self.screen.faint(self._say("keys"))
        return None

    def _run(self, number: int) -> None:
        value = self.runner.run(number, line=self.screen.say)
        if is_picture(value):
            self._picture(value, number)
        else:
            self._give(value)

    def _give(self, value: Any) -> None:
        if is_picture(value):
            self.screen.say(str(value))
        elif value is not None:
            self.screen.say(repr(value))

    def _picture(self, picture: Any, number: int) -> None:
        if not is_page(picture):
            self.screen.say(str(picture))
        try:
            path = self.runner.save_picture(picture, number)
        except TinyattnError as error:
            what, *more = str(error).split("\n")
            instead = [line.strip() for line in more if line.strip().startswith("Write:")]
            self.screen.faint(self._say("no picture", why=" ".join([what, *instead])))
        else:
            self.screen.faint(self._say("page" if is_page(picture) else "picture", path=path))

    def _write_exercise(self, cell: Cell) -> None:
        name = cell.tags.get("exercise")
        if name is None:
            self.screen.faint(self._say("no exercise"))
            return
        path = Path(f"exercise_{name.replace('.', '_')}.py")
        try:
            written = write_exercise(self.lesson, cell, path, self.screen.lang)
        except OSError as error:
            self.screen.alarm(f"{path}: {error.strerror}")
            return
        self.screen.faint(
            self._say("exercise written" if written else "exercise there", path=path, python=interpreter())
        )


def write_exercise(lesson: Lesson, cell: Cell, path: Path, lang: str = "en") -> bool:
    """Write the stub of an exercise into a file of the reader's, unless it is there already."""
    if path.exists():
        return False
    exercise = find_exercise(cell.tags["exercise"])
    task = "\n".join(f"# {line}" for line in wrap(exercise.task[lang == "zh"], 100))
    title = f"# {exercise.name}, {lesson.title(lang)}"
    stub = "\n".join(line for line in cell.code.split("\n") if not line.startswith(("import ", "from ")))
    write_whole(path, f"{title}\n{task}\n\n{_IMPORTS}\n\n{stub.strip()}\n")
    return True


def steps_of(lesson: Lesson, lang: str) -> list[list[int]]:
    """The cells that are shown together: some prose, up to the code, the question or a full screen.

    A step's number is the same in every language only if its prose is cut in the same places, so the longer
    text of all languages decides.
    """
    steps: list[list[int]] = [[]]
    lines = 0
    for number, cell in enumerate(lesson.cells):
        height = max((_height(text) for text in cell.texts.values()), default=0)
        if steps[-1] and lines and not cell.is_code and lines + height > _LINES:
            steps.append([])
            lines = 0
        steps[-1].append(number)
        lines += height
        if cell.is_code or cell.tags.get("role") == "predict":
            steps.append([])
            lines = 0
    if not steps[-1]:
        steps.pop()
    return steps


def _height(text: str) -> int:
    return sum(1 + display_width(line) // _WIDEST for line in text.split("\n")) + 1


def begin(lesson: Lesson, progress: Progress, screen: Screen, restart: bool) -> int:
    """The step at which to begin: where the reader stopped, if the lesson is still the same."""
    if restart:
        return 0
    if progress.changed(lesson.number, lesson.fingerprint):
        screen.faint(screen.sayings("changed"))
        return 0
    at = progress.step(lesson.number, lesson.fingerprint)
    return at if at < len(steps_of(lesson, screen.lang)) else 0


def checked_folder(out: Path) -> Path:
    """The folder for pictures; a file of that name is refused before the lesson begins."""
    if out.exists() and not out.is_dir():
        raise ArgumentError(f"--out {out}: this is a file; a folder is needed for the pictures.")
    return out
