"""Lessons and exercises: find them, run them, grade them.

The lessons are plain Python files in ``tutorials``; ``tinyattn learn`` steps through them in a terminal,
and an editor or a notebook opens them as they are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyattn.learn.grading import grade, hint, reveal

__all__ = ["grade", "hint", "reveal"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("tinyattn.learn.grading"), name)
