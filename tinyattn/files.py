"""Files are written whole or not at all: a temporary file beside the target, then a rename."""

from __future__ import annotations

import os
import tempfile


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
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp makes it private; an ordinary file is not
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
