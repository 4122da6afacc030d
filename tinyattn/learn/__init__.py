"""Lessons and exercises: find them, run them, grade them.

The lessons are plain Python files in ``tutorials``; ``tinyattn learn`` steps through them in a terminal,
and an editor or a notebook opens them as they are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyattn.learn.given import vectors_file
    from tinyattn.learn.grading import grade, hint, reveal

__all__ = ["grade", "hint", "reveal", "vectors_file"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "given" if name == "vectors_file" else "grading"
    return getattr(import_module(f"tinyattn.learn.{home}"), name)
