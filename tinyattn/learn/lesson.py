"""A lesson as data: the cells of a py:percent file, its prose in several languages, its title and needs.

A lesson is a plain Python file.  ``# %%`` begins a cell of code, ``# %% [markdown] lang="en"`` one of prose;
the same prose in Chinese follows as ``# %% [markdown] lang="zh" of="3f9c2a"``, where ``of`` is the
fingerprint of the English it was made from, so that a test sees a translation that has fallen behind.
Other tags: ``role="predict"`` (the reader is asked), ``picture="name"`` (how the picture that the cell gives
is called), ``exercise="10.scores"`` (the cell holds the stub of an exercise).

What code prints, and what its pictures are called, is in English; ``strings.zh.toml`` beside the lessons says what
stands there instead for a Chinese reader, who sees, runs and changes a program with Chinese strings.

This module reads and knows nothing of running or showing.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tinyattn.errors import DataFileError

LANGUAGES = ("en", "zh")
_MARK = re.compile(r"# %%(?P<rest>.*)")
_HEADER = re.compile(r'\s*(?P<kind>\[markdown\])?(?P<tags>(?:\s*\w+="[^"]*")*)\s*')
_TAG = re.compile(r'(\w+)="([^"]*)"')
_HEAD = re.compile(
    r"^\*\*(?:Needs|需要)\*\*\s*(?P<needs>[^·]*?)\s*·\s*\*\*(?:Minutes|分钟)\*\*\s*(?P<minutes>\d+)",
    re.MULTILINE,
)


class LessonError(DataFileError):
    """A lesson that cannot be read or found, with the file, the line and what was expected."""


@dataclass(frozen=True)
class Cell:
    """One cell: code, or one piece of prose in each language it is written in.

    Attributes
    ----------
    line : int
        The line of the file in which the cell's mark stands.
    code : str
        The source; empty for prose.
    texts : mapping from language to text
        Markdown; empty for code.  The language is "" where the text is the same in all.
    tags : mapping
        ``role``, ``picture``, ``exercise`` and whatever else the mark says.
    """

    line: int
    code: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_code(self) -> bool:
        """Whether the cell is run, not read."""
        return not self.texts

    def text(self, lang: str) -> str:
        """The prose in a language; in English where it has not been translated."""
        return self.texts.get(lang) or self.texts.get("en") or self.texts.get("", "")


@dataclass(frozen=True)
class Lesson:
    """A lesson: its number, its file, its cells, and what its head says."""

    number: str
    path: Path
    cells: tuple[Cell, ...]
    titles: Mapping[str, str]
    needs: tuple[str, ...]
    minutes: int
    fingerprint: str

    def title(self, lang: str) -> str:
        """The title without the number."""
        return self.titles.get(lang) or self.titles["en"]

    @property
    def exercises(self) -> tuple[str, ...]:
        """The names of its exercises, in their order."""
        return tuple(cell.tags["exercise"] for cell in self.cells if "exercise" in cell.tags)


def fingerprint(text: str) -> str:
    r"""Six letters that change when a text does; blanks and line breaks do not count.

    >>> fingerprint("A  short\ntext.") == fingerprint("A short text.")
    True
    """
    return hashlib.sha256("".join(text.split()).encode("utf-8")).hexdigest()[:6]


def read_lesson(path: Path, lang: str = "en") -> Lesson:
    """Read a lesson file.

    Parameters
    ----------
    path : Path
        Called ``NN_title.py``.
    lang : {"en", "zh"}
        The language of the strings in its code; prose is read in all languages.

    Raises
    ------
    LessonError
        With the line, when the file is not what a lesson looks like.
    """
    try:
        source = path.read_text(encoding="utf-8")
    except OSError as error:
        raise LessonError(f"the lesson cannot be read: {error.strerror}.", str(path)) from None
    except UnicodeDecodeError:
        raise LessonError("the lesson is not UTF-8 text.", str(path)) from None
    cells = parse(source, str(path))
    head = cells[0]
    if head.is_code:
        raise LessonError("a lesson begins with a cell of prose that holds its title.", str(path), head.line)
    found = _HEAD.search(head.text("en"))
    if found is None:
        raise LessonError("the first cell says what it needs: **Needs** 03, 07 · **Minutes** 40.", str(path), head.line)
    needs = tuple(re.findall(r"\d\d", found["needs"]))
    titles = {lang: _title(text, str(path), head.line) for lang, text in head.texts.items()}
    spoken = tuple(_spoken(cells, strings(path, lang)))
    return Lesson(path.name[:2], path, spoken, titles, needs, int(found["minutes"]), fingerprint(source))


def strings(path: Path, lang: str) -> dict[str, str]:
    """Pieces of a lesson's code, and what stands there in another language: strings, or parts of them.

    Parameters
    ----------
    path : Path
        The lesson; ``strings.zh.toml`` in its folder has a table for each number.
    lang : {"en", "zh"}

    Raises
    ------
    LessonError
        When that file cannot be read.
    """
    table = path.parent / f"strings.{lang}.toml"
    if not table.is_file():
        return {}
    try:
        found = tomllib.loads(table.read_text(encoding="utf-8")).get(path.name[:2], {})
    except ValueError as error:  # no TOML, or no UTF-8
        raise LessonError(f"the strings cannot be read: {error}", str(table)) from None
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise LessonError(f"[{path.name[:2]}] is no table of strings.", str(table))
    return found


def _spoken(cells: tuple[Cell, ...], pieces: Mapping[str, str]) -> Iterator[Cell]:
    """The cells with other strings in their code."""
    for cell in cells:
        code = cell.code
        for english, other in pieces.items():
            code = code.replace(english, other)
        yield replace(cell, code=code)


def parse(source: str, name: str = "") -> tuple[Cell, ...]:
    """The cells of a py:percent text, prose and its translation as one cell.

    Examples
    --------
    >>> text = '''# %% [markdown] lang="en"
    ... # Look.
    ... # %%
    ... x = 1
    ... '''
    >>> [(cell.is_code, cell.code or cell.text("en")) for cell in parse(text)]
    [(False, 'Look.'), (True, 'x = 1')]
    """
    cells: list[Cell] = []
    for cell in _pieces(source, name):
        if cell.tags.get("of") and not cell.is_code:
            _join(cells, cell, name)
        else:
            cells.append(cell)
    if not cells:
        raise LessonError("there is no cell; a cell begins with a line # %%.", name)
    return tuple(cells)


def _pieces(source: str, name: str) -> Iterator[Cell]:
    """Cell after cell as it stands in the file."""
    header: tuple[int, str] | None = None
    lines: list[str] = []
    for number, line in enumerate([*source.split("\n"), "# %%"], 1):
        mark = _MARK.fullmatch(line)
        if mark is None:
            lines.append(line)
            continue
        if header is not None:
            yield _cell(*header, lines, name)
        elif any(text.strip() and not text.startswith("#") for text in lines):
            raise LessonError("code stands before the first cell; a cell begins with a line # %%.", name, 1)
        header, lines = (number, mark["rest"]), []


def _cell(number: int, rest: str, lines: list[str], name: str) -> Cell:
    header = _HEADER.fullmatch(rest)
    if header is None:
        wanted = '# %% or # %% [markdown] lang="en", then tags like picture="weights"'
        raise LessonError(f"the mark of a cell is {wanted}; this one is # %%{rest}.", name, number)
    tags = dict(_TAG.findall(header["tags"]))
    if header["kind"] is None:
        return Cell(number, code="\n".join(lines).strip("\n"), tags=tags)
    for at, line in enumerate(lines, number + 1):
        if line.strip() and not line.startswith("#"):
            raise LessonError(f"a line of prose begins with #; this one is {line!r}.", name, at)
    text = "\n".join(line[2:] if line.startswith("# ") else line[1:] for line in lines).strip("\n")
    if not text:
        raise LessonError("a cell of prose is empty.", name, number)
    return Cell(number, texts={tags.pop("lang", ""): text}, tags=tags)


def _join(cells: list[Cell], translation: Cell, name: str) -> None:
    """Put a translation to the prose before it."""
    if not cells or cells[-1].is_code:
        raise LessonError("a translation stands right after the prose that it translates.", name, translation.line)
    before, tags = cells[-1], dict(translation.tags)
    ((lang, text),) = translation.texts.items()
    cells[-1] = Cell(before.line, texts={**before.texts, lang: text}, tags={**before.tags, f"of {lang}": tags["of"]})


def _title(text: str, name: str, line: int) -> str:
    found = re.match(r"# \d\d (.+)", text)
    if found is None:
        raise LessonError("the first line is the title with the number: # # 10 One query.", name, line)
    return found[1].strip()
