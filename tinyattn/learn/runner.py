"""Run the cells of a lesson one after the other, and say in words what failed.

A cell runs as it would in a notebook: in the names that the cells before it have made, and the value of its
last line is what it gives.  The code keeps the line numbers of its file, so messages point there.
"""

from __future__ import annotations

import ast
import linecache
import re
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, TextIO

from tinyattn.errors import TinyattnError, missing_library
from tinyattn.learn.lesson import Cell, Lesson


class CellFailed(Exception):
    """A cell that raised, told as a reader can use it.

    Attributes
    ----------
    is_check : bool
        Whether an ``assert`` of the lesson was what failed.
    cell : int
        The number of the cell, from 1.
    line : int
        The line of the file.
    source : str
        The statement that failed.
    text : str
        The message, or the kind of exception with its message.
    """

    def __init__(self, is_check: bool, cell: int, line: int, source: str, text: str) -> None:
        super().__init__(text)
        self.is_check, self.cell, self.line, self.source, self.text = is_check, cell, line, source, text


class SayingStream:
    """A text stream that passes each line on as soon as it is complete; what a cell prints goes here."""

    encoding = "utf-8"

    def __init__(self, line: Callable[[str], None]) -> None:
        self._line, self._rest = line, ""

    def write(self, text: str) -> int:
        """Take a text; whole lines go on."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._line(line)
        return len(text)

    def flush(self) -> None:
        """A line that is not complete waits for its end."""

    def isatty(self) -> bool:
        """No: a progress bar writes lines here."""
        return False

    def finish(self) -> None:
        """Pass on what came without a line end."""
        if self._rest:
            self.write("\n")


class Runner:
    """The names that a lesson has made so far, and how to run one more of its cells.

    Parameters
    ----------
    lesson : Lesson
    out : Path
        The folder for pictures; it is made when the first one is saved.
    """

    def __init__(self, lesson: Lesson, out: Path) -> None:
        self.lesson, self.out = lesson, out
        self.names: dict[str, Any] = {}
        self.restart()
        linecache.checkcache(str(lesson.path))

    def restart(self) -> None:
        """Forget what was run."""
        self.names = {
            "__name__": "__lesson__",
            "__file__": str(self.lesson.path),
            "__builtins__": __builtins__,
        }

    def replay(self, cells: int) -> None:
        """Run the first cells anew without showing anything."""
        self.restart()
        for at in range(cells):
            self.run(at, line=lambda text: None)

    def run(self, at: int, line: Callable[[str], None]) -> Any:
        """Run one cell; prose gives nothing.

        Parameters
        ----------
        at : int
            Which, from 0.
        line : callable
            Takes each line that the cell prints; it stands for ``sys.stdout``, so it must not print there.

        Returns
        -------
        object
            The value of the cell's last line; None where that is no expression.

        Raises
        ------
        CellFailed
        """
        cell = self.lesson.cells[at]
        if not cell.is_code:
            return None
        stream = SayingStream(line)
        try:
            with redirect_stdout(_as_stream(stream)):
                return self._execute(cell)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a lesson's exit() must not end the session
            raise self._told(error, at) from None
        finally:
            stream.finish()

    def try_out(self, text: str, line: Callable[[str], None]) -> Any:
        """Run what the reader typed; errors come as a line of text."""
        from tinyattn.learn import grade, hint, reveal

        for helper in (grade, hint, reveal):
            self.names.setdefault(helper.__name__, helper)
        stream = SayingStream(line)
        try:
            with redirect_stdout(_as_stream(stream)):
                steps, value = compiled(text, "<you>", 1)
                exec(steps, self.names)
                return eval(value, self.names) if value is not None else None
        except Exception as error:
            stream.finish()
            line("".join(traceback.format_exception_only(error)).rstrip())
            return None
        finally:
            stream.finish()

    def picture_path(self, at: int) -> Path:
        """What the picture of a cell is called, without ending: the lesson's number and the cell's word."""
        return self.out / picture_name(self.lesson, at)

    def save_picture(self, picture: Any, at: int) -> Path:
        """Write the picture that a cell gave.

        Raises
        ------
        TinyattnError
            Where nothing that draws is installed.
        """
        path = self.picture_path(at).with_suffix(".html" if is_page(picture) else ".svg")
        try:
            picture.save(path)
        except TinyattnError:
            raise
        except ImportError as error:
            raise missing_library(f"{error.name}", "It draws the picture.") from None
        except OSError as error:
            raise TinyattnError(f"{path} cannot be written: {error.strerror}") from None
        return path

    def _execute(self, cell: Cell) -> Any:
        steps, value = compiled(cell.code, str(self.lesson.path), cell.line + 1)
        exec(steps, self.names)
        return eval(value, self.names) if value is not None else None

    def _told(self, error: BaseException, at: int) -> CellFailed:
        cell, path = self.lesson.cells[at], str(self.lesson.path)
        line = _last_line(error.__traceback__, path) or getattr(error, "lineno", None) or cell.line + 1
        statement = _statement(cell, line)
        is_check = isinstance(error, AssertionError) and statement.startswith("assert")
        if is_check:
            text = str(error) or "it should hold, and does not"
        else:
            text = "".join(traceback.format_exception_only(error)).rstrip()
        return CellFailed(is_check, at + 1, line, statement, text)


def picture_name(lesson: Lesson, at: int) -> str:
    """What the picture of a cell is called: the lesson's number, and the word in the cell's mark."""
    word = lesson.cells[at].tags.get("picture", f"cell{at + 1}")
    return f"{lesson.number}_{re.sub(r'[^a-zA-Z0-9_-]+', '_', word)}"


def is_picture(value: Any) -> bool:
    """Whether a cell gave something to look at; the type is asked: the value would draw itself."""
    kind = type(value)
    return kind.__module__.startswith("viz.") and hasattr(kind, "save")


def is_page(value: Any) -> bool:
    """Whether a picture is a page to open in a browser, which a terminal does not show."""
    return not hasattr(type(value), "svg")


def compiled(source: str, path: str, line: int) -> tuple[CodeType, CodeType | None]:
    """A cell as code at its place in the file: the statements, and the last expression by itself.

    Asserts are kept, also under ``python -O``.
    """
    tree = ast.parse("\n" * (line - 1) + source, path)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    steps = compile(tree, path, "exec", dont_inherit=True, optimize=0)
    if not isinstance(last, ast.Expr) or source.rstrip().endswith(";"):
        return steps if last is None else compile(ast.Module([*tree.body, last], []), path, "exec", optimize=0), None
    return steps, compile(ast.Expression(last.value), path, "eval", dont_inherit=True, optimize=0)


def _as_stream(stream: SayingStream) -> TextIO:
    return stream  # type: ignore[return-value]  # print needs no more than this


def _last_line(trace: TracebackType | None, path: str) -> int:
    """The last line of the lesson on the way to the error."""
    lines = [number for frame, number in traceback.walk_tb(trace) if frame.f_code.co_filename == path]
    return lines[-1] if lines else 0


def _statement(cell: Cell, line: int) -> str:
    """The source of the statement that holds a line of the file."""
    inside = line - cell.line
    try:
        tree = ast.parse(cell.code)
    except SyntaxError:
        lines = cell.code.split("\n")
        return lines[inside - 1].strip() if 0 < inside <= len(lines) else ""
    best = ""
    for node in ast.walk(tree):  # outer statements come first, so the innermost stays
        if isinstance(node, ast.stmt) and node.lineno <= inside <= (node.end_lineno or node.lineno):
            best = ast.get_source_segment(cell.code, node) or best
    lines = best.split("\n")
    return best if len(lines) <= 4 else "\n".join([*lines[:4], "..."])
