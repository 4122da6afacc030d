"""Formulas: definitions, gradients as formulas, proofs, and SymPy as the independent referee.

Everything here reads a `Graph` and `Op` records. SymPy is imported only inside the functions that need it.
"""

from __future__ import annotations

from typing import Any

from tinyattn.late import of_package

_WHERE = {
    "parse": "definition",
    "fit": "fitting",
    "evaluate": "entrywise",
    "output_shape": "entrywise",
    "sympy_gradients": "referee",
    "derive": "deriving",
    "Derivation": "deriving",
    "compare": "comparing",
    "Report": "comparing",
    "op_formulas": "opbook",
    "prove_equal": "equality",
    "prove_rule": "rules",
    "prove_at_sizes": "explicit",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    """Import a name from its module when it is first asked for."""
    return of_package(__name__, _WHERE, name)
