"""A gradient written out: in one formula without other gradients, or one entry with every sum spelled out."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np

from tinyattn.errors import ArgumentError
from tinyattn.symbolic.canonical import Heads
from tinyattn.symbolic.derivation import Line, Lines
from tinyattn.symbolic.index_view import EQUALS, base_of, entry
from tinyattn.symbolic.layout import MINUS, PLUS, SPACE, Layout, fenced, row, spaced
from tinyattn.symbolic.pulling import heads_group
from tinyattn.symbolic.terms import Exact, Expr, Factor, Index, Quantity, Term, fresh, opened, settled, times
from tinyattn.symbolic.tidying import tidy
from tinyattn.symbolic.writing import Letters, LineLetters, coefficient, number

LONGEST = 400


def closed(lines: Lines, line: Line) -> Line:
    """Give the line with every other cotangent replaced by its formula."""
    meanings = {each.quantity: each for each in lines.backward}
    expr = tidy(lines.heads, _inlined(lines.heads, line.expr, meanings), line.out, [])
    return Line(line.quantity, line.out, expr, line.node, "closed form", line.phase)


def _inlined(heads: Heads, expr: Expr, meanings: Mapping[Quantity, Line]) -> Expr:
    return tuple([_inlined_term(heads, term, meanings) for term in expr])


def _inlined_term(heads: Heads, term: Term, meanings: Mapping[Quantity, Line]) -> Term:
    result = Term(term.coef, (), term.dummies, term.sizes)
    for head, at, power in term.factors:
        if head.kind == "ref" and head.data in meanings and power == 1:
            line = meanings[head.data]
            names = dict(zip(line.out, at, strict=True))
            inside = _inlined(heads, tuple([fresh(part, names) for part in line.expr]), meanings)
            result = times(result, inside[0] if len(inside) == 1 else heads_group(heads, inside))
        elif head.kind == "sum" and power == 1:
            result = times(result, heads_group(heads, _inlined(heads, opened(head, at), meanings)))
        else:
            result = times(result, Term(factors=((head, at, power),)))
    return settled(result)


def expanded(lines: Lines, line: Line, at: tuple[int, ...], letters: Letters) -> Layout:
    """Write one entry of a line at the recorded sizes, every sum spelled out."""
    lengths = lines.axes.lengths.length
    shape = tuple(prod(lengths[cls] for cls in axis) for axis in line.quantity.axes)
    if len(at) != len(shape) or any(not 0 <= place < size for place, size in zip(at, shape, strict=False)):
        raise ArgumentError(f"expand: the gradient of {line.quantity.name} has shape {shape}, there is no entry {at}.")
    writer = _Writer(lengths, letters.line())
    names: dict[Index, int] = {}
    own = iter(line.out)
    for place, axis in zip(at, line.quantity.axes, strict=True):  # a merged axis has several indices, a kept one none
        parts = np.unravel_index(place, tuple(lengths[cls] for cls in axis)) if axis else ()
        names.update((next(own), int(part)) for part in parts)
    left = writer.entry(line.quantity, line.out, names)
    return row(left, EQUALS, writer.sum(line.expr, names))


class _Writer:
    """Writes formulas with numbers for indices."""

    def __init__(self, lengths: list[int], letters: LineLetters) -> None:
        self.lengths, self.letters = lengths, letters
        self.written = 0

    def entry(self, quantity: Quantity, at: tuple[Index, ...], names: Mapping[Index, int]) -> Layout:
        digits, own = [], iter(at)
        for axis in quantity.axes:
            place = 0
            for cls in axis:
                place = place * self.lengths[cls] + names[next(own)]
            digits.append(str(place))
        below: Layout = ("ix", ("," if any(len(each) > 1 for each in digits) else "").join(digits))
        shown = entry(quantity, (), self.letters)
        return ("sub", shown, below) if digits else shown

    def sum(self, expr: Expr, names: Mapping[Index, int]) -> Layout:
        """Write a sum, every summed index run through."""
        parts: list[Layout] = []
        for term in expr:
            ranges = [range(self.lengths[dummy.cls]) for dummy in term.dummies]
            body = [
                self._product(term, {**names, **dict(zip(term.dummies, place, strict=True))})
                for place in product(*ranges)
            ]
            self.written += len(body)
            if self.written > LONGEST:
                raise ArgumentError(
                    f"expand: more than {LONGEST} terms; use gradient(...) for the formula, or smaller sizes."
                )
            front = self._front(term)
            spread: list[Layout] = []
            for each in body:
                spread += [PLUS, each] if spread else [each]
            inside = row(*spread) if spread else ("num", "0")
            if front is not None:
                inside = row(front, SPACE, fenced(inside) if len(body) > 1 else inside) if term.factors else front
            if parts:
                parts.append(MINUS if term.coef < 0 else PLUS)
            elif term.coef < 0:
                parts.append(("sign", "−"))
            parts.append(fenced(inside) if term.coef < 0 and len(body) > 1 and front is None else inside)
        return row(*parts) if parts else ("num", "0")

    def _front(self, term: Term) -> Layout | None:
        numbers = {cls: str(self.lengths[cls]) for cls, _ in term.sizes}
        return coefficient(term, numbers)

    def _product(self, term: Term, names: Mapping[Index, int]) -> Layout:
        above = [self._factor(factor, names, abs(Fraction(factor[2]))) for factor in term.factors if factor[2] > 0]
        below = [self._factor(factor, names, abs(Fraction(factor[2]))) for factor in term.factors if factor[2] < 0]
        return ("frac", spaced(above), spaced(below)) if below else spaced(above)

    def _factor(self, factor: Factor, names: Mapping[Index, int], power: Exact) -> Layout:
        head, at, _ = factor
        for index in at:
            self.letters.given[index] = str(names[index])
        if head.kind == "ref":
            base = self.entry(head.data, at, names)
        elif head.kind == "sum":
            base = fenced(self.sum(opened(head, at), {index: names[index] for index in at}))
        elif head.kind == "fn" and len(head.inners) == 1:
            base = row(("fn", head.data), fenced(self.sum(opened(head, at), {index: names[index] for index in at})))
        else:
            base = base_of(head, at, self.letters)
        return base if power == 1 else ("sup", base, number(power))
