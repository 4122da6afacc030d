"""What a trace of a rule stands on: lengths that remember what they are the length of, and what its arrays share."""

from __future__ import annotations

from collections.abc import Sequence

from tinyattn.symbolic.canonical import Heads
from tinyattn.symbolic.terms import Expr, Head

FIRST_COUNTED = 1_000_003


class NotTraceable(Exception):
    """The rule does something that has no formula; the message says what."""


class ImpossibleError(Exception):
    """Two answers that cannot both be given."""


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

    A rule that asks about values (`any`, `all`) must be right whatever the answer is: `answers` are the first ones, and
    from there on it is True; `asked` are all that were given. `everywhere` holds brackets that an answer fixes, as 1 or
    0 at all indices, and `counted` the formula behind each whole number that was made of one. With `away`, no two
    numbers that `np.where` asks about are equal: that is, away from kinks. With `own`, nothing else has these lengths,
    so that a number made of them is read as that; at any others, a rule for one size only would pass for all.
    """

    __slots__ = ("answers", "asked", "away", "classes", "counted", "everywhere", "heads", "lengths", "own")

    def __init__(
        self, heads: Heads, lengths: Sequence[int], classes: Sequence[int], answers: Sequence[bool] = (),
        away: bool = False, own: bool = False,
    ) -> None:  # fmt: skip
        self.heads, self.lengths, self.classes, self.away, self.own = heads, lengths, tuple(classes), away, own
        self.answers, self.asked = tuple(answers), list[bool]()
        self.everywhere: dict[Head, int] = {}
        self.counted: dict[int, Expr] = {}

    def ask(self) -> bool:
        """Answer a question about values."""
        known = len(self.asked) < len(self.answers)
        self.asked.append(self.answers[len(self.asked)] if known else True)
        return self.asked[-1]

    def number_for(self, expr: Expr) -> int:
        """Give a whole number that nothing else has, and that is read back as the formula."""
        number = FIRST_COUNTED + 2 * len(self.counted)
        self.counted[number] = expr
        return number

    def fix(self, brackets: Expr, value: int) -> None:
        """Take all brackets of a product to be 1 at all indices, or the only one of a sum to be 0."""
        if len(brackets) != 1 or brackets[0].coef <= 0 or brackets[0].sizes:
            return
        factors = brackets[0].factors
        if value == 1 and brackets[0].dummies:
            return
        if value == 0 and (len(factors) != 1 or set(factors[0][1]) != set(brackets[0].dummies)):
            return
        for head, at, _ in factors:
            if head.kind == "cond" and len(set(at)) == len(at):
                if self.everywhere.setdefault(head, value) != value:
                    raise ImpossibleError
