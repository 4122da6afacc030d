"""Whose code a line is: the engine's own, another part of the package, or the learner's.

A node is named after the innermost line outside the engine (so ``scores`` inside a layer is found), and its
source line is the innermost one outside the whole package.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

ENGINE, PACKAGE, OUTSIDE = "engine", "package", "outside"

_HERE = os.path.dirname(os.path.abspath(__file__))
_VIZ = os.path.join(os.path.dirname(_HERE), "viz")
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))  # copy, pickle, contextlib: between a learner's line and us
_NUMPY = os.path.dirname(os.path.abspath(np.__file__))  # so is NumPy, where it calls with its errors ignored
_ENGINE_FILES = {
    "tensor.py", "functions.py", "arguments.py", "explain.py", "numpy_protocol.py", "autodiff.py", "quick.py",
    "transforms.py", "mode.py", "names.py",
}


place_of: dict[str, str] = {}
"""Filename to place, for the files met so far: a plain dict, because every recorded operation reads it."""


class Recent:
    """The function outside the package that recorded last: mostly it records again, and its file need not be asked."""

    __slots__ = ("outside",)

    def __init__(self) -> None:
        self.outside: Any = None


recent = Recent()


def find_place(filename: str) -> str:
    """The place of a file, found out once."""
    place = place_of.get(filename)
    if place is None:
        place = place_of[filename] = _decide(filename)
    return place


def _decide(filename: str) -> str:
    folder, base = os.path.split(filename)
    parts = (os.path.join(_HERE, "ops"), os.path.join(_HERE, "kernels"))
    if (folder == _HERE and base in _ENGINE_FILES) or folder in parts:
        return ENGINE
    if _inside(folder, os.path.join(_HERE, "tutorials")):
        return OUTSIDE
    if _inside(folder, _HERE) or _inside(folder, _VIZ):
        return PACKAGE
    if _inside(folder, _NUMPY):
        return ENGINE
    installed = "site-packages" in folder or "dist-packages" in folder
    return ENGINE if _inside(folder, _LIBRARY) and not installed else OUTSIDE


def _inside(folder: str, parent: str) -> bool:
    return folder == parent or folder.startswith(parent + os.sep)


def _outside(frame: Any) -> Any:
    while frame is not None and find_place(frame.f_code.co_filename) is not OUTSIDE:
        frame = frame.f_back
    return frame


def outside_package(frame: Any) -> tuple[Any, int] | None:
    """The code object and offset of the innermost caller that does not belong to the package."""
    caller = _outside(frame)
    return None if caller is None else (caller.f_code, caller.f_lasti)


def note_place(node: Any, frame: Any) -> None:
    """Note the innermost line outside the engine, and beside it the one outside the package if that is another."""
    while frame is not None and find_place(frame.f_code.co_filename) is ENGINE:
        frame = frame.f_back
    if frame is None:
        node.code, node.lasti = None, -1
        return
    node.code, node.lasti = frame.f_code, frame.f_lasti
    if find_place(frame.f_code.co_filename) is PACKAGE:
        node.site = outside_package(frame)


def caller_variables(frame: Any) -> dict[str, Any]:
    """The variables that the innermost caller outside the package can see."""
    caller = _outside(frame)
    return {} if caller is None else {**caller.f_globals, **caller.f_locals}
