"""Where the lessons are: in a checkout beside the package, in an installed wheel inside it."""

from __future__ import annotations

from pathlib import Path

from tinyattn.learn.lesson import Lesson, LessonError, read_lesson


def folder() -> Path:
    """The folder with the lessons.

    Raises
    ------
    LessonError
        When the package came without them.
    """
    package = Path(__file__).resolve().parents[1]
    inside, beside = package / "tutorials", package.parent / "tutorials"
    if inside.is_dir():
        return inside
    if beside.is_dir() and (package.parent / "pyproject.toml").is_file():  # not some other package's tutorials
        return beside
    raise LessonError("the folder with the lessons is missing; install tinyattn again.", str(inside))


def paths() -> list[Path]:
    """The files of the lessons by number."""
    return sorted(path for path in folder().glob("[0-9][0-9]_*.py"))


def lessons(lang: str = "en") -> list[Lesson]:
    """All lessons, read; their code prints in that language."""
    return [read_lesson(path, lang) for path in paths()]


def find(wanted: str, lang: str = "en") -> Lesson:
    """One lesson by its number or a part of its name.

    Parameters
    ----------
    wanted : str
        ``"10"``, ``"7"``, ``"10_one_query"`` or ``"query"``.
    lang : {"en", "zh"}
        What its code prints in.

    Raises
    ------
    LessonError
        When there is none, or more than one; the message lists them.
    """
    every = paths()
    word = wanted.lower().removesuffix(".py")
    number = word.zfill(2)
    found = [path for path in every if path.name.startswith(f"{number}_")] if word.isdigit() else []
    found = found or [path for path in every if path.stem.lower() == word]
    found = found or ([path for path in every if word in path.stem.lower()] if not word.isdigit() and word else [])
    if len(found) == 1:
        return read_lesson(found[0], lang)
    names = ", ".join(path.stem for path in (found or every))
    if found:
        raise LessonError(f"{wanted!r} could be {names}; give the number.")
    raise LessonError(f"there is no lesson {wanted!r}; there are {names}.")
