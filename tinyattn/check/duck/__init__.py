"""Duck: arrays of other numbers that the rule book's plain NumPy runs on unchanged.

A duck is made of a few ordinary arrays of one shape, its parts: a value and the bound of its error, or a number of a
finite field, its tangent and a float that decides comparisons.  What only moves numbers about is done on every part
alike (`shape`); a subclass says how its numbers are added and multiplied, and what exp makes of them (`arithmetic`
makes the operators and reductions of that, `protocols` what NumPy asks for).
"""

from __future__ import annotations

from tinyattn.check.duck.protocols import WRITERS, Duck
from tinyattn.check.duck.shape import Axes, CannotRun, plain_numbers

__all__ = ["WRITERS", "Axes", "CannotRun", "Duck", "plain_numbers"]
