"""Lessons and exercises: find them, run them, grade them.

The lessons are plain Python files in ``tutorials``; ``tinyattn learn`` steps through them in a terminal,
and an editor or a notebook opens them as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyattn.late import of_package

if TYPE_CHECKING:
    from tinyattn.learn.given import vectors_file
    from tinyattn.learn.grading import grade, hint, reveal

_WHERE = {"grade": "grading", "hint": "grading", "reveal": "grading", "vectors_file": "given"}

__all__ = ["grade", "hint", "reveal", "vectors_file"]


def __getattr__(name: str) -> Any:
    return of_package(__name__, _WHERE, name)
