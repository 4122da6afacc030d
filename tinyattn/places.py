"""Whose code a line is: the engine's own, another part of the package, or the learner's.

A node is named after the innermost line outside the engine (so ``scores`` inside a layer is found), and its
source line is the innermost one outside the whole package.
"""

from __future__ import annotations

import os
from typing import Any

ENGINE, PACKAGE, OUTSIDE = "engine", "package", "outside"

_HERE = os.path.dirname(os.path.abspath(__file__))
_VIZ = os.path.join(os.path.dirname(_HERE), "viz")
_ENGINE_FILES = {"tensor.py", "functions.py", "numpy_protocol.py", "autodiff.py", "mode.py", "names.py"}


class _Places(dict[str, str]):
    """Filename to place, found out once for each file."""

    def __missing__(self, filename: str) -> str:
        folder, base = os.path.split(filename)
        if (folder == _HERE and base in _ENGINE_FILES) or folder == os.path.join(_HERE, "ops") or base == "contextlib.py":
            place = ENGINE
        elif folder.startswith(_HERE) and "tutorials" not in folder or folder.startswith(_VIZ):
            place = PACKAGE
        else:
            place = OUTSIDE
        self[filename] = place
        return place


place_of = _Places()


def outside_package(frame: Any) -> tuple[Any, int] | None:
    """The code object and offset of the innermost caller that does not belong to the package."""
    while frame is not None and place_of[frame.f_code.co_filename] is not OUTSIDE:
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lasti)


def caller_variables(frame: Any) -> dict[str, Any]:
    """The variables that the innermost caller outside the package can see."""
    while frame is not None and place_of[frame.f_code.co_filename] is not OUTSIDE:
        frame = frame.f_back
    return {} if frame is None else {**frame.f_globals, **frame.f_locals}
