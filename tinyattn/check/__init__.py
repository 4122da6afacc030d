"""Verification that points: is a gradient right, and if it is not, which rule is wrong and how?

`check_gradients` takes functions on tensors, layers and operations; `check_rule` takes plain NumPy with a
gradient written by hand; `exact_check` decides a recorded graph without any tolerance.
"""

from __future__ import annotations

from typing import Any

from tinyattn.late import of_package

_WHERE = {
    "Report": "report",
    "check_gradients": "gradients",
    "check_rule": "rules",
    "Exact": "exact",
    "exact_check": "exact",
    "numeric_gradient": "numeric",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    """Import a name from its module when it is first asked for."""
    return of_package(__name__, _WHERE, name)
