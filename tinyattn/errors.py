"""The exceptions of tinyattn, and how their text is put together.

Every message has three parts: what happened, with names, shapes and numbers; why it cannot be; what to
write instead.  Each class also derives from the usual Python exception, so that ``except ValueError``
catches what a reader of the standard library would expect.  This module stands on nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class TinyattnError(Exception):
    """The common ancestor: ``except ta.TinyattnError`` catches whatever the package raises on purpose."""


class ShapeError(TinyattnError, ValueError):
    """Shapes that do not fit each other, or the operation."""


class AxisError(TinyattnError, ValueError, IndexError):
    """An axis that the array does not have, or that is named twice."""


class DTypeError(TinyattnError, TypeError):
    """A dtype that the operation, or a gradient, cannot have."""


class ArgumentError(TinyattnError, ValueError):
    """An argument of the right type with a value that makes no sense."""


class ArgumentTypeError(TinyattnError, TypeError):
    """An argument of the wrong type, one too many, or one missing."""


class IndexRangeError(TinyattnError, IndexError):
    """An index outside the axis it points into."""


class GraphError(TinyattnError, RuntimeError):
    """A request that the recorded graph cannot answer."""


class RuleError(GraphError):
    """An operation's own gradient rule is wrong: its result has a wrong shape, dtype or type."""


class NanError(TinyattnError, FloatingPointError):
    """``detect_nan`` found the operation that first made a nan or an infinity."""


class DataFileError(TinyattnError, ValueError):
    """A data file that is not what it should be: the message names file, line and expectation.

    Parameters
    ----------
    what : str
        What is wrong and what was expected.
    path : str
        The file, as the user named it.
    line : int, optional
        The line, counted from 1.
    """

    def __init__(self, what: str, path: str = "", line: int | None = None) -> None:
        self.path, self.line = path, line
        place = ", ".join(filter(None, (path, f"line {line}" if line is not None else "")))
        super().__init__(f"{place}: {what}" if place else what)


class MissingFileError(TinyattnError, FileNotFoundError):
    """A file to read, or a folder to write into, that is not there.

    Parameters
    ----------
    what : str
        The message.
    path : str
        What was looked for; it becomes ``filename``, as in Python's own error.
    """

    def __init__(self, what: str, path: str) -> None:
        super().__init__(what)
        self.errno, self.filename = 2, path

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], self.filename)


class MissingToolError(TinyattnError, RuntimeError):
    """A program outside Python that is not there, such as a Graphviz renderer."""


class MissingLibraryError(TinyattnError, ImportError):
    """An optional library that is not installed; the message has the line that installs it."""


class SweepError(TinyattnError, RuntimeError):
    """A sweep whose workers keep dying, or do not answer."""


class GradientLost(UserWarning):
    """A tensor was turned into a plain array where its gradient would have been wanted."""


def message(what: str, why: str = "", instead: str = "") -> str:
    """Put the three parts together, one a line, leaving out what is empty.

    >>> print(message("f(x: (2,)) does not fit.", "It needs a matrix.", "Write f(x[None])."))
    f(x: (2,)) does not fit.
      It needs a matrix.
      Write f(x[None]).
    """
    return "\n  ".join(part for part in (what, why, instead) if part)


def listed(names: list[str]) -> str:
    """Name the first of many names, and say how many more there are.

    >>> listed(list("abcdefgh")), listed([])
    ('a, b, c, d, e, f and 2 more', 'none')
    """
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return shown or "none"


def missing_library(library: str, what_for: str = "", install: str = "") -> MissingLibraryError:
    """Say that an optional library is not there, what it would do, and the line that installs it.

    Parameters
    ----------
    library : str
        The name it is imported by.
    what_for : str
        A sentence: what it does here.
    install : str
        What ``pip install`` takes, when that is more than the library's name.

    Examples
    --------
    >>> print(missing_library("distributed", "It runs a sweep on many machines."))
    The library distributed is not installed.
      It runs a sweep on many machines.
      Write: pip install distributed
    """
    return MissingLibraryError(
        message(f"The library {library} is not installed.", what_for, f"Write: pip install {install or library}")
    )


def optional_library(name: str, what_for: str, install: str = "") -> Any:
    """Import an optional library, or a module of it, where it is needed and not before.

    A library that is there but lacks a part of its own is not called missing: what it says itself is told.

    Parameters
    ----------
    name : str
        What to import, such as ``"jax"`` or ``"safetensors.numpy"``.
    what_for, install : str
        See `missing_library`.

    Returns
    -------
    module

    Raises
    ------
    MissingLibraryError
        When it is not installed.

    Examples
    --------
    >>> optional_library("numpy.fft", "It knows waves.").__name__
    'numpy.fft'
    """
    library = name.partition(".")[0]
    try:
        import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise missing_library(library, what_for, install) from None
    return import_module(name)
