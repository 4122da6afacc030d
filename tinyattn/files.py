"""Files and folders are written whole or not at all: something temporary beside the target, then a rename."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping

from tinyattn.errors import ArgumentError, ArgumentTypeError, DataFileError, MissingFileError, listed, message


def path_text(path: object) -> str:
    """A path as text, or a refusal of what can be none.

    >>> path_text(None)
    Traceback (most recent call last):
        ...
    tinyattn.errors.ArgumentTypeError: a path is needed, not a NoneType.
      Write the name of the file as a text.
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(text, str):
        what = f"a path is needed, not a {type(path).__name__}."
        raise ArgumentTypeError(message(what, "", "Write the name of the file as a text."))
    if not text or "\0" in text:
        raise ArgumentError(f"{text!r} is no name of a file.")
    return text


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """Every byte of a file.

    Raises
    ------
    MissingFileError
        When there is none.
    DataFileError
        When it is a folder.
    OSError
        When it cannot be read.

    Examples
    --------
    >>> read_whole("/nowhere/weights.npz")
    Traceback (most recent call last):
        ...
    tinyattn.errors.MissingFileError: there is no file /nowhere/weights.npz.
      There is no folder /nowhere either.
    """
    name = path_text(path)
    try:
        with open(name, "rb") as stream:
            return stream.read()
    except (FileNotFoundError, NotADirectoryError):
        raise missing_file(name) from None
    except IsADirectoryError:
        raise DataFileError("this is a folder; a file is needed.", name) from None


def missing_file(path: str) -> MissingFileError:
    """That there is no such file, and what of its kind there is beside it."""
    folder, name = os.path.split(os.path.abspath(path))
    ending = os.path.splitext(name)[1]
    try:
        there = sorted(other for other in os.listdir(folder) if os.path.splitext(other)[1] == ending)
        why = f"In {folder} there {'is' if len(there) == 1 else 'are'} {listed(there)}."
    except OSError:
        there, why = [], f"There is no folder {folder} either."
    if not there and os.path.isdir(folder):
        why = f"It was looked for in {folder}."
    return MissingFileError(message(f"there is no file {path}.", why), path)


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    r"""Write a file so that a reader sees the old content or the new, never a part.

    Parameters
    ----------
    path : str or path
        Where the file goes; its folder must exist.
    content : str or bytes
        Text is written as UTF-8 with ``\n`` line ends on every platform.

    Raises
    ------
    MissingFileError
        When the folder is missing.
    OSError
        When it cannot be written; the old file is then untouched.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> write_whole(target, "查询\n")
    >>> target.read_text(encoding="utf-8")
    '查询\n'
    """
    target = os.path.abspath(path_text(path))
    if os.path.isdir(target):
        raise ArgumentError(message(f"{target} is a folder.", "", "Write the name of a file in it."))
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".part-")
    except (FileNotFoundError, NotADirectoryError):  # say what was asked for, not what was tried
        folder = os.path.dirname(target)
        instead = "Make it first: os.makedirs(folder)."
        raise MissingFileError(message(f"there is no folder {folder}.", "", instead), folder) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp makes it private; an ordinary file is not
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def write_folder_whole(path: str | os.PathLike[str], files: Mapping[str, str | bytes], kind: str) -> None:
    r"""Write a folder of files: the old folder stays until the new one is complete.

    A file ``contents.json`` in it says what it is and lists its files; only a folder that has such a list, and
    nothing beside what it lists, is replaced.

    Parameters
    ----------
    path : str or path
        The folder; the one it stands in is made.
    files : mapping of str to str or bytes
        What each file holds, by its path inside the folder, with ``/`` between folders.
    kind : str
        What the folder is: ``"book"``.

    Raises
    ------
    ArgumentError
        When there is something at this place that is not ours to replace.
    OSError
        When it cannot be written; the old folder is then untouched.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "site"
    >>> write_folder_whole(target, {"index.html": "<p>1\n", "zh/index.html": "<p>1\n"}, "book")
    >>> sorted(one.name for one in target.rglob("*.html"))
    ['index.html', 'index.html']
    """
    target = os.path.realpath(os.fspath(path))
    check_folder(target, kind)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    beside = tempfile.mkdtemp(dir=os.path.dirname(target), prefix=".part-")
    try:
        new, old = os.path.join(beside, "new"), os.path.join(beside, "old")
        os.mkdir(new)
        listed = json.dumps({"kind": kind, "files": sorted(files)}, ensure_ascii=False, indent=1) + "\n"
        for name, content in [*files.items(), (_CONTENTS, listed)]:
            inside = os.path.join(new, *name.split("/"))
            os.makedirs(os.path.dirname(inside), exist_ok=True)
            write_whole(inside, content)
        _exchange(new, target, old)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


_CONTENTS = "contents.json"


def _exchange(new: str, target: str, old: str) -> None:
    """Put a folder into the place of another, which goes to `old`; if that fails, it comes back."""
    there = os.path.isdir(target)
    if there:
        os.rename(target, old)
    try:
        os.rename(new, target)
    except BaseException:
        if there:
            os.rename(old, target)
        raise


def check_folder(path: str | os.PathLike[str], kind: str) -> None:
    """Refuse what `write_folder_whole` would refuse: to be asked before the work, and again before the writing.

    Parameters
    ----------
    path : str or path
        Nothing, an empty folder, or one that we wrote and nobody added to is fine.
    kind : str
        What the folder is: ``"book"``.

    Raises
    ------
    ArgumentError
    """
    target = os.path.realpath(os.fspath(path))
    if not os.path.lexists(target) or (os.path.isdir(target) and not os.listdir(target)):
        return
    instead = "Name another folder, or remove this one yourself."
    if not os.path.isdir(target):
        raise ArgumentError(message(f"{target} is a file; a folder is needed for the {kind}.", instead=instead))
    listed = _listed(target, kind)
    if listed is None:
        raise ArgumentError(message(f"The folder {target} is there already, and is no {kind}.", instead=instead))
    found = {
        os.path.relpath(os.path.join(where, name), target).replace(os.sep, "/")
        for where, _, names in os.walk(target)
        for name in names
    }
    strange = sorted(found - listed)
    if strange:
        more = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
        raise ArgumentError(
            message(
                f"The {kind} in {target} would be replaced, and with it {', '.join(strange[:3])}{more}, "
                "which did not come from it.",
                instead=f"Move that away. {instead}",
            )
        )


def _listed(target: str, kind: str) -> set[str] | None:
    """What the folder's own list names; None where there is none of this kind."""
    try:
        with open(os.path.join(target, _CONTENTS), encoding="utf-8") as stream:
            facts = json.load(stream)
        if facts["kind"] != kind:
            return None
        return {_CONTENTS, *map(str, facts["files"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
