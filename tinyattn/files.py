"""Files and folders are written whole or not at all: something temporary beside the target, then a rename."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping

from tinyattn.errors import ArgumentError, message


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
    OSError
        When the folder is missing or cannot be written; the old file is then untouched.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> write_whole(target, "查询\n")
    >>> target.read_text(encoding="utf-8")
    '查询\n'
    """
    target = os.path.abspath(os.fspath(path))
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".part-")
    except (FileNotFoundError, NotADirectoryError) as error:  # say what was asked for, not what was tried
        raise type(error)(error.errno, error.strerror, os.path.dirname(target)) from None
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
