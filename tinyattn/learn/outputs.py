"""What the cells of a lesson give when they are run: printed text, derivations, pictures, pages, values."""

from __future__ import annotations

import builtins
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tinyattn.learn import grading
from tinyattn.learn.lesson import Lesson, LessonError
from tinyattn.learn.runner import CellFailed, Runner, is_page, is_picture

_CLOCK = re.compile(r", \d+\.\d+ ms$")  # how long a proof took


@dataclass
class Output:
    """One thing that a cell gave.

    Attributes
    ----------
    kind : {"text", "derivation", "picture", "page"}
    value : object
        The text, the `Derivation`, or what ``viz`` made.
    """

    kind: Literal["text", "derivation", "picture", "page"]
    value: Any


class _Writer(Runner):
    """A runner whose lesson prints a derivation as an object, not as text."""

    def __init__(self, lesson: Lesson) -> None:
        self.given: list[Output] = []
        super().__init__(lesson, Path())

    def restart(self) -> None:
        super().restart()
        self.names["print"] = self._print

    def _print(self, *values: Any, **how: Any) -> None:
        if len(values) == 1 and not how and _is_derivation(values[0]):
            self.given.append(Output("derivation", values[0]))
        else:
            builtins.print(*values, **how)

    def line(self, text: str) -> None:
        """Take a line that was printed, without what a clock said: the book is the same in every run."""
        text = _CLOCK.sub("", text)
        if self.given and self.given[-1].kind == "text":
            self.given[-1].value += "\n" + text
        else:
            self.given.append(Output("text", text))


def outputs(lesson: Lesson, lang: str) -> list[list[Output]]:
    """Run a lesson; what each of its cells gave, in order; nothing for prose.

    Parameters
    ----------
    lesson : Lesson
        Read in that language, so that what it prints is in it too.
    lang : {"en", "zh"}
        The language in which pictures and grading speak.

    Raises
    ------
    LessonError
        When a cell fails; a book of a lesson that does not hold is not written.
    """
    writer, made = _Writer(lesson), []
    try:
        with grading.speaking(lang), np.printoptions():  # what a lesson sets is its own affair
            for at in range(len(lesson.cells)):
                writer.given = []
                value = writer.run(at, line=writer.line)
                made.append([*writer.given, *_value(value)])
    except CellFailed as failure:
        raise LessonError(f"a cell cannot be run: {failure.text}", str(lesson.path), failure.line) from None
    return made


def _value(value: Any) -> list[Output]:
    if value is None:
        return []
    if is_picture(value):
        return [Output("page" if is_page(value) else "picture", value)]
    return [Output("derivation" if _is_derivation(value) else "text", value if _is_derivation(value) else repr(value))]


def _is_derivation(value: Any) -> bool:
    kind = type(value)
    return kind.__module__.startswith("tinyattn.symbolic.") and hasattr(kind, "steps") and hasattr(kind, "mathml")
