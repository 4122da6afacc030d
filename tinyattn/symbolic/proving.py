"""Proofs for all sizes: the derived lines against the definitions, by the product rule alone.

For every line `x̄ = ...` the statement is: for arbitrary tangents ẋ and arbitrary cotangents of the consumers,
`Σ x̄ ẋ = Σ_consumers Σ ȳ ẏ`, where ẏ is the change of y's *definition* when x changes by ẋ (forward mode). Both
sides are written out over opaque atoms (`exp(S_ij)`, `1/Z_i`), summed indices are renamed to a canonical form, and
the two sums of terms are compared. Nothing depends on a length, so what holds, holds for every one. The lines
compose by the chain rule.

The adjoint lines come from `pulling.py` and `tidying.py`; the tangents are made here, by other code. Both use the
table of derivatives of scalar functions, which SymPy proves in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tinyattn.errors import GraphError
from tinyattn.symbolic.canonical import Heads, collected, expression_key
from tinyattn.symbolic.holding import Brackets
from tinyattn.symbolic.pulling import slopes, winners
from tinyattn.symbolic.reading import raised
from tinyattn.symbolic.terms import (
    Exact,
    Expr,
    Factor,
    Head,
    Index,
    Quantity,
    Term,
    fresh,
    opened,
    settled,
    times,
)
from tinyattn.symbolic.tidying import is_one_hot, one_hot_summed, without_softmax

TOO_MANY_TERMS = 20_000


def tangent(heads: Heads, expr: Expr, moves: Mapping[Quantity, Quantity]) -> Expr:
    """Differentiate a formula in the direction in which some quantities move: the product rule, nothing else."""
    result: list[Term] = []
    for term in expr:
        for place, (head, at, power) in enumerate(term.factors):
            if not head.varies:
                continue
            change = _factor_tangent(heads, head, at, moves)
            if not change:
                continue
            rest = Term(term.coef, term.factors[:place] + term.factors[place + 1 :], term.dummies, term.sizes)
            if power != 1:
                rest = times(rest, Term(power, ((head, at, power - 1),)))
            result.extend([times(rest, part) for part in change])
    return tuple(result)


def _factor_tangent(heads: Heads, head: Head, at: tuple[Index, ...], moves: Mapping[Quantity, Quantity]) -> Expr:
    if head.kind == "ref":
        moved = moves.get(head.data)
        return (Term(factors=((heads.of(moved), at, 1),)),) if moved is not None else ()
    if head.kind == "sum":
        return tangent(heads, opened(head, at), moves)
    if head.kind == "fn":
        parts: list[Term] = []
        for which, slope in slopes(heads, head, at):
            inside = tangent(heads, opened(head, at, which), moves)
            parts.extend([times(left, fresh(right, {})) for left in slope for right in inside])
        return tuple(parts)
    if head.kind in ("max", "min"):
        return tuple([
            times(share, change) for body, share in winners(heads, head, at) for change in tangent(heads, body, moves)
        ])  # fmt: skip
    if head.kind == "softmax":
        return tangent(heads, (without_softmax(heads, head, at),), moves)
    return ()


class Expander:
    """Writes formulas out: parentheses multiplied out, folded values replaced by what they stand for.

    Parameters
    ----------
    heads : Heads
        The heads of the derivation.
    meanings : mapping of Quantity to (indices, formula)
        Quantities to be replaced.
    everywhere : mapping of Head to int
        Brackets that are known to be 1, or 0, at all indices.
    """

    def __init__(
        self, heads: Heads, meanings: Mapping[Quantity, tuple[tuple[Index, ...], Expr]],
        everywhere: Mapping[Head, int] | None = None,
    ) -> None:  # fmt: skip
        self.heads, self.meanings, self.brackets = heads, meanings, Brackets(heads, everywhere)

    def expand(self, expr: Expr) -> list[Term]:
        """Give the terms of a formula, none with a parenthesis to a positive whole power."""
        done: list[Term] = []
        waiting = list(reversed(expr))
        while waiting:
            found = self.brackets.term(waiting.pop())
            if found is None or found.coef == 0:
                continue
            term = found
            split = self._split(term) or self._split(term, negations=True)
            if split is None and contradictory(term):
                continue
            if split is None:
                done.append(one_hot_summed(settled(term)))
            else:
                waiting.extend(split)
            if len(done) + len(waiting) > TOO_MANY_TERMS:
                raise GraphError("the proof of the whole derivation has too many terms; prove it node by node.")
        return done

    def _split(self, term: Term, negations: bool = False) -> list[Term] | None:
        """Open the first factor that is not atomic; None if there is none. Negated brackets come last, for as long as
        they stand whole, they say something of what is beside.
        """
        for place, (head, at, power) in enumerate(term.factors):
            inside = self._negated(head, at) if negations else self._inside(head, at, power)
            if inside is None:
                continue
            rest = Term(term.coef, term.factors[:place] + term.factors[place + 1 :], term.dummies, term.sizes)
            if power < 0 or power != int(power):
                return [times(rest, raised(self.heads, inside, power))]
            if len(inside) == 1:
                for _ in range(int(power)):
                    rest = times(rest, fresh(inside[0], {}))
                return [rest]
            if power > 1:
                rest = times(rest, Term(factors=((head, at, power - 1),)))
            return [times(rest, part) for part in inside]
        return None

    def _inside(self, head: Head, at: tuple[Index, ...], power: Exact) -> Expr | None:
        """Give what a factor stands for, unless it is an atom."""
        if head.kind == "sum" and power > 0 and power == int(power):
            return opened(head, at)
        if head.kind == "softmax":
            return (without_softmax(self.heads, head, at),)
        if head.kind == "ref" and head.data in self.meanings:
            return self._meaning(head.data, at)
        if head.kind == "fn" and head.data == "sign" and power == 1:
            x = opened(head, at)
            return self._holds("<", (), x), Term(-1, self._holds("<", x, ()).factors)
        if head.kind == "fn" and head.data == "log":
            return self._logarithms(opened(head, at))
        if head.kind == "cond" and head.data == "<":
            return self._parted(head, at)
        return None

    def _negated(self, head: Head, at: tuple[Index, ...]) -> Expr | None:
        """Write [a ≠ b] as 1 - [a = b], and [c = 0] as 1 - [c = 1] for an array of zeros and ones."""
        if head.kind == "cond" and head.data == "!=":
            return Term(), Term(-1, self._holds("==", opened(head, at, 0), opened(head, at, 1)).factors)
        if head.kind == "cond" and head.data == "==" and _is_false(head):
            return Term(), Term(-1, self._holds("==", opened(head, at, 1) or opened(head, at, 0), (Term(),)).factors)
        return None

    def _logarithms(self, inside: Expr) -> Expr | None:
        """Write log(exp(x) / z) as x - log(z); None where what stands inside is no such product of positive factors."""
        if len(inside) != 1 or inside[0].sizes or inside[0].coef != 1:
            return None
        factors = inside[0].factors
        if inside[0].dummies:
            return self._logarithm_of_chosen(inside[0])
        if len(factors) == 1 and factors[0][0].kind == "softmax" and factors[0][2] == 1:
            factors = without_softmax(self.heads, *factors[0][:2]).factors
        if not any(head.kind == "fn" for head, _, _ in factors) or not all(map(_positive, factors)):
            return None
        parts: list[Term] = []
        for head, at, power in factors:
            if head.kind == "fn":
                parts += [times(term, Term(power)) for term in opened(head, at)]
            else:
                parts.append(Term(power, (self.heads.make("fn", "log", (opened(head, at),)),)))
        return tuple(parts)

    def _logarithm_of_chosen(self, term: Term) -> Expr | None:
        """Write log(Σ_a [c = a] p_a), in which one entry is chosen, as Σ_a [c = a] log(p_a)."""
        if len(term.dummies) != 1:
            return None
        for place, factor in enumerate(term.factors):
            if term.dummies[0] in factor[1] and is_one_hot(factor, term.dummies[0]):
                rest = Term(1, term.factors[:place] + term.factors[place + 1 :])
                return (Term(1, (factor, self.heads.make("fn", "log", ((rest,),))), term.dummies),)
        return None

    def _parted(self, head: Head, at: tuple[Index, ...]) -> Expr | None:
        """Part [max(x, a) < b] into [x < b] [a < b], and decide a bracket between two numbers."""
        left, right = opened(head, at, 0), opened(head, at, 1)
        numbers = [number_of(left), number_of(right)]
        if None not in numbers:
            return (Term(),) if (numbers[0] or 0) < (numbers[1] or 0) else ()
        for side, word in ((left, "maximum"), (right, "minimum")):
            if len(side) == 1 and side[0].coef == 1 and not side[0].sizes and len(side[0].factors) == 1:
                inner, there, power = side[0].factors[0]
                if inner.kind == "fn" and inner.data == word and power == 1:
                    parts = [opened(inner, there, which) for which in (0, 1)]
                    pairs = [(part, right) if word == "maximum" else (left, part) for part in parts]
                    return (times(self._holds("<", *pairs[0]), self._holds("<", *pairs[1])),)
        return None

    def _holds(self, sign: str, left: Expr, right: Expr) -> Term:
        return Term(factors=(self.heads.make("cond", sign, (left, right)),))

    def _meaning(self, quantity: Quantity, at: tuple[Index, ...]) -> Expr:
        out, expr = self.meanings[quantity]
        names = dict(zip(out, at, strict=True))
        return tuple([fresh(term, names) for term in expr])


def _positive(factor: Factor) -> bool:
    """Say whether a factor is exp, or a sum of such products: positive whatever the numbers."""
    head = factor[0]
    if head.kind == "sum":
        return all(term.coef > 0 and term.factors and all(map(_positive, term.factors)) for term in head.inners[0])
    return head.kind == "fn" and head.data == "exp"


def number_of(expr: Expr) -> float | None:
    """Give the number that a formula without entries stands for."""
    total = 0.0
    for term in expr:
        value = float(term.coef)
        for head, _, power in term.factors:
            if head.kind != "scalar" or head.data[1] is None:
                return None
            value *= float(head.data[1]) ** float(power)
        if term.sizes or term.dummies:
            return None
        total += value
    return total


def _is_false(head: Head) -> bool:
    """Say whether a bracket is [c = 0] for an array of zeros and ones: it is 1 - [c = 1]."""
    left, right = head.inners
    other = right if not left else left if not right else None
    if other is None or len(other) != 1 or len(other[0].factors) != 1 or other[0].coef != 1:
        return False
    inside = other[0].factors[0][0]
    return inside.kind == "ref" and bool(inside.data.boolean)


def contradictory(term: Term) -> bool:
    """Notice brackets that cannot both be true: [a < b] [b < a] and [a < b] [a = b]."""
    conditions = [(head, at) for head, at, _ in term.factors if head.kind == "cond" and head.data in ("<", "==")]
    for place, (head, at) in enumerate(conditions):
        for other, there in conditions[place + 1 :]:
            if head.data == other.data == "==":
                continue
            labels = {index: label for label, index in enumerate(dict.fromkeys((*at, *there)))}
            one = [expression_key(opened(head, at, side), labels) for side in (0, 1)]
            two = [expression_key(opened(other, there, side), labels) for side in (0, 1)]
            if one == two[::-1] or (head.data != other.data and one == two):
                return True
    return False


def difference(left: Iterable[Term], right: Iterable[Term], labels: Mapping[Index, int]) -> dict[object, object]:
    """Give what remains of left minus right when like terms are added up: nothing, if they are equal."""
    minus = tuple([Term(-term.coef, term.factors, term.dummies, term.sizes) for term in right])
    return dict(collected((*left, *minus), labels))


def summed(expr: Expr, factors: tuple[Factor, ...], over: tuple[Index, ...]) -> Expr:
    """Multiply a formula by factors and sum it over indices."""
    return tuple([
        times(term, Term(factors=factors, dummies=over)) if factors or over else term for term in expr
    ])  # fmt: skip
