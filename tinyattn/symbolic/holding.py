"""What the brackets of a term say about the rest of it: `[a] f([a])` is `[a] f(1)`, also inside functions and sums.

A term counts only where all its brackets hold. There, the same bracket inside another factor is 1, one that cannot
hold beside it is 0, and `[v ≠ 0]` beside `v` itself says nothing. So masked softmax, which shifts by a maximum that it
takes only where something is kept, comes to the formula of its definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyattn.symbolic.canonical import Heads, collected, expression_key
from tinyattn.symbolic.reading import raised
from tinyattn.symbolic.terms import Exact, Expr, Factor, Head, Index, Term, free_indices, opened, times

Place = tuple[Head, tuple[Index, ...]]  # a bracket at its indices


class Brackets:
    """Rewrites formulas by the brackets that stand beside.

    Parameters
    ----------
    heads : Heads
        The heads of the derivation.
    everywhere : mapping of Head to int
        Brackets that are known to be 1, or 0, at all indices.
    """

    def __init__(self, heads: Heads, everywhere: Mapping[Head, int] | None = None) -> None:
        self.heads, self.everywhere = heads, dict(everywhere or {})
        self._holds_some: dict[Head, bool] = {}

    def inside(self, head: Head) -> bool:
        """Say whether there is a bracket in a head."""
        if head not in self._holds_some:
            below = (factor[0] for expr in head.inners for term in expr for factor in term.factors)
            self._holds_some[head] = head.kind == "cond" or any(map(self.inside, below))
        return self._holds_some[head]

    def of(self, expr: Expr, beside: Sequence[Place] = ()) -> Expr:
        """Rewrite each term of a formula; `beside` holds wherever the formula counts."""
        terms = [self.term(term, beside) for term in expr]
        return tuple(term for term in terms if term is not None)

    def term(self, term: Term, beside: Sequence[Place] = ()) -> Term | None:
        """Rewrite a term; None if it is 0."""
        if not any(self.inside(head) for head, _, _ in term.factors):
            return term
        own = [(head, at) for head, at, power in term.factors if head.kind == "cond" and power > 0]
        positive = {(head, at) for head, at, power in term.factors if power > 0}
        result = Term(term.coef, (), term.dummies, term.sizes)
        for head, at, power in term.factors:
            if head.kind == "cond":
                verdict = self._verdict(head, at, beside, own, positive - {(head, at)})
                if verdict == 0:
                    return None
                if verdict == 1:
                    continue
            others = [*beside, *(place for place in own if place != (head, at))]
            factor = self._factor(head, at, power, others)
            if factor is None:
                return None
            result = times(result, factor)
        return result

    def _verdict(
        self, head: Head, at: tuple[Index, ...], beside: Sequence[Place], own: Sequence[Place], positive: set[Place]
    ) -> int | None:
        """Decide a bracket: 1 only by what stays, the brackets outside; 0 by any that it cannot hold beside."""
        if head in self.everywhere:
            return self.everywhere[head]
        if (head, at) in beside:
            return 1
        every = [*beside, *(place for place in own if place != (head, at))]
        sign, left, right = head.data, opened(head, at, 0), opened(head, at, 1)
        if sign in ("==", "!=") and not (left and right) and (value := left or right):
            if self._is_beside(value, positive):
                return int(sign == "!=")
            if _some_hold(value, every if sign == "==" else beside):
                return int(sign == "!=")
        return 0 if any(_exclude((head, at), other) for other in every) else None

    def _is_beside(self, value: Expr, positive: set[Place]) -> bool:
        """Say whether a term is 0 wherever the value is 0, because the value or its factors stand beside."""
        if len(value) == 1 and not value[0].dummies:
            wanted = {(head, at) for head, at, power in value[0].factors if power > 0}
            return bool(wanted) and wanted <= positive
        return self.heads.make("sum", None, (value,))[:2] in positive

    def _factor(self, head: Head, at: tuple[Index, ...], power: Exact, beside: Sequence[Place]) -> Term | None:
        """Rewrite what a factor is made of; None if that makes it 0."""
        same = Term(factors=((head, at, power),))
        if head.kind not in ("sum", "fn", "cond") or not self.inside(head):
            return same
        old = tuple(opened(head, at, which) for which in range(len(head.inners)))
        new = tuple(self.of(expr, beside) for expr in old)
        if all(_alike(one, other) for one, other in zip(old, new, strict=True)):
            return same
        if head.kind == "sum":
            return raised_apart(self.heads, new[0], power) if new[0] else None if power > 0 else same
        if head.kind == "fn" and head.data == "exp":
            return exponential(self.heads, flattened(new[0]), power)
        return Term(factors=(self.heads.make(head.kind, head.data, new, (), power),))


def raised_apart(heads: Heads, expr: Expr, power: Exact) -> Term:
    """Raise a formula, taking factors that a sum does not touch out of it first."""
    if len(expr) == 1 and expr[0].dummies and power == int(power):
        term = expr[0]
        touched = [factor for factor in term.factors if any(index in term.dummies for index in factor[1])]
        outside = tuple(factor for factor in term.factors if factor not in touched)
        front = raised(heads, (Term(term.coef, outside, (), term.sizes),), power)
        return times(front, raised(heads, (Term(1, tuple(touched), term.dummies),), power))
    return raised(heads, expr, power)


def exponential(heads: Heads, expr: Expr, power: Exact = 1) -> Term:
    """Give exp of a sum as a product, so that a shift by the maximum cancels."""
    result = Term()
    for term in expr:
        result = times(result, Term(factors=(heads.make("fn", "exp", ((term,),), (), power),)))
    return result


def flattened(expr: Expr) -> Expr:
    """Multiply out a parenthesis that stands alone in its term."""
    found: list[Term] = []
    for term in expr:
        if len(term.factors) == 1 and term.factors[0][0].kind == "sum" and term.factors[0][2] == 1:
            rest = Term(term.coef, (), term.dummies, term.sizes)
            found.extend(flattened(tuple(times(rest, part) for part in opened(*term.factors[0][:2]))))
        else:
            found.append(term)
    return tuple(found)


def _alike(one: Expr, other: Expr) -> bool:
    free = dict.fromkeys((*free_indices(one), *free_indices(other)))
    labels = {index: label for label, index in enumerate(free)}
    return expression_key(one, labels) == expression_key(other, labels)


def _some_hold(value: Expr, facts: Sequence[Place]) -> bool:
    """Say whether a sum of products of brackets is not 0, because all brackets of one of its products hold."""
    for term in value:
        if term.coef <= 0 or any(head.kind != "cond" for head, _, _ in term.factors):
            return False
    return any(_match(list(term.factors), {index: None for index in term.dummies}, facts) for term in value)


def _match(factors: list[Factor], summed: dict[Index, Index | None], facts: Sequence[Place]) -> bool:
    """Find one choice of the summed indices for which every bracket is among the facts."""
    if not factors:
        return True
    (head, at, _), *rest = factors
    for other, there in facts:
        if other is head:
            chosen = dict(summed)
            for mine, theirs in zip(at, there, strict=True):
                if mine in chosen and chosen[mine] is None:
                    chosen[mine] = theirs
                elif chosen.get(mine, mine) is not theirs:
                    break
            else:
                if _match(rest, chosen, facts):
                    return True
    return False


def _exclude(one: Place, other: Place) -> bool:
    """Say whether two inequalities cannot hold together, because their sum says that something negative is not."""
    gaps = [_gap(*place) for place in (one, other)]
    if None in gaps or not set(one[1]) & set(other[1]):
        return False
    both = tuple(term for gap in gaps for term in gap or ())
    labels = {index: label for label, index in enumerate(free_indices(both))}
    left = [Term(coef, term.factors, (), term.sizes) for coef, term in collected(both, labels).values()]
    least = any(not term.factors and not term.sizes for term in left)  # a number: all else may be 0
    return least and all(term.coef < 0 and _counts(term) for term in left)


def _gap(head: Head, at: tuple[Index, ...]) -> Expr | None:
    """Give b - a of [a <= b]."""
    if head.data != "<=":
        return None
    return (*opened(head, at, 1), *(Term(-t.coef, t.factors, t.dummies, t.sizes) for t in opened(head, at, 0)))


def _counts(term: Term) -> bool:
    return not term.dummies and all(head.kind == "index" for head, _, _ in term.factors)
