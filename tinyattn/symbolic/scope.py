"""What a trace of a rule stands on: lengths that remember what they are the length of, and what its arrays share."""

from __future__ import annotations

from collections.abc import Sequence

from tinyattn.symbolic.canonical import Heads


class NotTraceable(Exception):
    """The rule does something that has no formula; the message says what."""


class SymbolicLength(int):
    """The length of an axis: its number in this call, and the size classes that it is the product of."""

    classes: tuple[int, ...]

    def __new__(cls, number: int, classes: tuple[int, ...]) -> SymbolicLength:
        """Make a length of some number."""
        length = super().__new__(cls, number)
        length.classes = classes
        return length

    def __mul__(self, other: int) -> int:
        """Multiply, keeping track of the classes."""
        if isinstance(other, SymbolicLength):
            return SymbolicLength(int(self) * int(other), self.classes + other.classes)
        return self if other == 1 else int(self) * other

    __rmul__ = __mul__


class Scope:
    """What all arrays of one trace share: the heads, the length of every size class, and which classes there are.

    `answer` is what `any` answers, and `asked` whether it was: a rule must be right whichever it is. With `away`, no
    two numbers that `np.where` asks about are equal: that is, away from kinks.
    """

    __slots__ = ("answer", "asked", "away", "classes", "heads", "lengths")

    def __init__(
        self, heads: Heads, lengths: Sequence[int], classes: Sequence[int], answer: bool = True, away: bool = False
    ) -> None:
        self.heads, self.lengths, self.classes = heads, lengths, tuple(classes)
        self.answer, self.asked, self.away = answer, False, away
