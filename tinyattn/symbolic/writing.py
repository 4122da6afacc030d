"""What both notations share: letters for indices, names for lengths, coefficients, names of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from tinyattn.symbolic.layout import Layout, row
from tinyattn.symbolic.terms import Exact, Index, Quantity, Term

ROW_LETTERS = "ijlrstpq"
WIDTH_LETTERS = "abcuvwxyz"
HEAD_LETTERS = "gw"


class Letters:
    """Names of size classes, and the letter that an index of each class takes by preference.

    Parameters
    ----------
    names : mapping of int to str
        The name of every size class: n, m, d, ...
    widths, heads : sets of int
        Classes that occur as last axes, and those that number heads.
    """

    def __init__(self, names: Mapping[int, str], widths: set[int], heads: set[int]) -> None:
        self.names, self.widths, self.heads = names, widths, heads
        self.base: dict[int, str] = {}
        taken: set[str] = set()
        counts: dict[str, int] = {}
        for cls in names:
            pool = self._pool(cls)
            letter = next((each for each in pool if each not in taken), None)
            if letter is None:  # more lengths than letters: letters come again, and only each line keeps them apart
                counts[pool] = counts.get(pool, -1) + 1
                letter = pool[counts[pool] % len(pool)]
            taken.add(letter)
            self.base[cls] = letter
        self.bases = taken

    def _pool(self, cls: int) -> str:
        return HEAD_LETTERS if cls in self.heads else WIDTH_LETTERS if cls in self.widths else ROW_LETTERS

    def line(self) -> LineLetters:
        """Start a line, in which every index gets a letter of its own."""
        return LineLetters(self)


class LineLetters:
    """The letters of one line."""

    __slots__ = ("given", "letters", "solved", "taken")

    def __init__(self, letters: Letters) -> None:
        self.letters = letters
        self.given: dict[Index, str] = {}
        self.taken: set[str] = set()
        self.solved: dict[Index, Layout] = {}

    def __getitem__(self, index: Index) -> str:
        letter = self.given.get(index)
        if letter is None:
            letter = self.given[index] = self._choose(index.cls)
            self.taken.add(letter)
        return letter

    def _choose(self, cls: int) -> str:
        base = self.letters.base.get(cls, "i")
        if base not in self.taken:
            return base
        pool = self.letters._pool(cls)
        free = [letter for letter in pool if letter not in self.taken]
        if free:
            return next((letter for letter in free if letter not in self.letters.bases), free[-1])
        while base in self.taken:
            base += "'"
        return base

    def below(self, at: tuple[Index, ...]) -> Layout:
        """Write indices as a subscript."""
        if not self.solved:
            return ("ix", "".join([self[index] for index in at]))
        parts: list[Layout] = []
        for index in at:
            if parts and (index in self.solved or parts[-1][0] != "ix"):
                parts.append(("sign", ","))
            parts.append(self.solved.get(index) or ("ix", self[index]))
        return row(*parts)

    def release(self, indices: Iterable[Index]) -> None:
        """Let letters of summed indices be used again, outside of their sum; another sum may run over the same."""
        for index in indices:
            self.solved.pop(index, None)
            if index in self.given:
                self.taken.discard(self.given.pop(index))


def quantity_name(quantity: Quantity) -> Layout:
    """Write the name of a tensor; a cotangent has a bar, one of second order two."""
    name: Layout = ("id", quantity.name)
    if quantity.kind == "adjoint":
        return ("bar", name)
    if quantity.kind == "tangent":
        return ("id", quantity.name + "'")
    return name


def number(value: Exact) -> Layout:
    """Write an exact number without its sign."""
    value = Fraction(value) if value >= 0 else -Fraction(value)
    if value.denominator == 1:
        return ("num", str(int(value)))
    if value.denominator not in (2, 4, 16, 32, 64) and 10**8 % value.denominator == 0:
        decimal = f"{float(value):.10g}"
        if len(decimal) <= 9 and Fraction(decimal) == value:
            return ("num", decimal)
    return ("frac", ("num", str(value.numerator)), ("num", str(value.denominator)))


def coefficient(term: Term, names: Mapping[int, str]) -> Layout | None:
    """Write the number and the powers of lengths in front of a term, without sign; None for 1."""
    coef = abs(Fraction(term.coef))
    decimal = number(coef)
    above: list[Layout] = []
    below: list[Layout] = []
    if decimal[0] == "num":
        if coef != 1:
            above.append(decimal)
    else:
        if coef.numerator != 1:
            above.append(("num", str(coef.numerator)))
        below.append(("num", str(coef.denominator)))
    for cls, power in term.sizes:
        (above if power > 0 else below).append(_length(names.get(cls, "?"), abs(Fraction(power))))
    if not above and not below:
        return None
    if not below:
        return row(*above)
    return ("frac", row(*above) if above else ("num", "1"), row(*below))


def _length(name: str, power: Exact) -> Layout:
    base: Layout = ("id", name)
    if power == 1:
        return base
    if power == Fraction(1, 2):
        return ("sqrt", base)
    return ("sup", base, ("num", str(power)))
