"""Making a derived formula readable without changing it: fold, drop what vanishes, add like terms, factor out.

Every step here is an equality; `proving.py` checks the result against the definitions all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tinyattn.symbolic.canonical import Heads, tidied
from tinyattn.symbolic.pulling import heads_group
from tinyattn.symbolic.terms import (
    Exact,
    Expr,
    Factor,
    Head,
    Index,
    Quantity,
    Term,
    is_index,
    merge_sizes,
    opened,
    settled,
    times,
)


class Pattern:
    """A node whose definition is one term with a function or a parenthesis in it: recognised, it is the node itself."""

    __slots__ = ("factors", "out", "quantity", "term")

    def __init__(self, quantity: Quantity, out: tuple[Index, ...], term: Term) -> None:
        self.quantity, self.out, self.term = quantity, out, term
        self.factors = sorted(term.factors, key=lambda factor: -len(factor[1]))

    @classmethod
    def of(cls, quantity: Quantity, out: tuple[Index, ...], expr: Expr) -> Pattern | None:
        """Give the pattern of a definition, or None where recognising it would not help."""
        if len(expr) != 1 or expr[0].dummies or expr[0].coef == 0:
            return None
        inside = [head.kind in ("fn", "sum", "max", "min") or power != int(power) for head, _, power in expr[0].factors]
        mentioned = {index for _, at, _ in expr[0].factors for index in at}
        return cls(quantity, out, expr[0]) if any(inside) and mentioned == set(out) else None


def folded(heads: Heads, term: Term, pattern: Pattern) -> Term:
    """Replace what a pattern describes by the node's own value, as often as it occurs."""
    while True:
        found = _match(term, pattern)
        if found is None:
            return term
        names, count = found
        at = tuple([names[index] for index in pattern.out])
        powers = {(head, here): power for head, here, power in term.factors}
        for head, here, power in pattern.factors:
            key = (head, tuple([names[index] for index in here]))
            powers[key] -= 0 if head.kind == "cond" and _needed_again(powers, pattern, head) else count * power
        left = tuple((head, here, power) for (head, here), power in powers.items() if power != 0)
        coef = Fraction(term.coef) / Fraction(pattern.term.coef) ** int(count)
        sizes = merge_sizes(term.sizes, tuple((cls, -count * power) for cls, power in pattern.term.sizes))
        rest = Term(int(coef) if coef.denominator == 1 else coef, left, term.dummies, sizes)
        term = times(rest, Term(factors=((heads.of(pattern.quantity), at, count),)))


def _folded_inside(heads: Heads, term: Term, pattern: Pattern) -> Term:
    """Fold within parentheses too: 1 - tanh(x)^2 is 1 - y^2."""
    for place, (head, at, power) in enumerate(term.factors):
        if head.kind == "sum" and power == 1:
            inside = opened(head, at)
            new = tuple([folded(heads, part, pattern) for part in inside])
            if any(one is not other for one, other in zip(inside, new, strict=True)):
                rest = Term(term.coef, term.factors[:place] + term.factors[place + 1 :], term.dummies, term.sizes)
                return _folded_inside(heads, times(rest, heads_group(heads, new)), pattern)
    return term


def _needed_again(powers: dict[tuple[Head, tuple[Index, ...]], Exact], pattern: Pattern, cond: Head) -> bool:
    """Keep a bracket that hides another instance of the same pattern too."""
    places = {at for head, at in powers if head is cond}
    instances = max(
        (
            abs(Fraction(power))
            for (head, _), power in powers.items()
            for known, _, _ in pattern.factors
            if head is known and head.kind != "cond"
        ),
        default=1,
    )
    return len(places) == 1 and instances > 1


def _match(term: Term, pattern: Pattern) -> tuple[dict[Index, Index], Exact] | None:
    return next(_matches(term.factors, pattern.factors, 0, {}, None), None)


def _matches(
    factors: tuple[Factor, ...], wanted: list[Factor], at: int, names: dict[Index, Index], count: Exact | None
) -> Iterator[tuple[dict[Index, Index], Exact]]:
    if at == len(wanted):
        if count is not None:
            yield names, count
        return
    head, formal, power = wanted[at]
    for other, actual, have in factors:
        if other is not head:
            continue
        times_here = _times_contained(power, have, alone=len(wanted) == 1)
        if head.kind != "cond" and times_here is None:
            continue
        extended = _unified(formal, actual, names)
        if extended is not None:
            yield from _matches(factors, wanted, at + 1, extended, count if head.kind == "cond" else times_here)


def _times_contained(power: Exact, have: Exact, alone: bool) -> Exact | None:
    """Say how often a power is contained in another; alone, also a negative number of times."""
    if alone:
        ratio = Fraction(have) / Fraction(power)
        return int(ratio) if ratio.denominator == 1 else None
    return 1 if (have > 0) == (power > 0) and abs(Fraction(have)) >= abs(Fraction(power)) else None


def _unified(
    formal: tuple[Index, ...], actual: tuple[Index, ...], names: dict[Index, Index]
) -> dict[Index, Index] | None:
    extended = dict(names)
    for mine, other in zip(formal, actual, strict=True):
        if extended.setdefault(mine, other) is not other:
            return None
    return extended


def tidy(heads: Heads, expr: Expr, out: tuple[Index, ...], patterns: list[Pattern]) -> Expr:
    """Make a formula readable: the steps of this module, in order."""
    terms = [settled(term) for term in expr]
    for pattern in patterns:
        terms = [_folded_inside(heads, folded(heads, term, pattern), pattern) for term in terms]
    terms = [with_softmax(heads, one_hot_summed(term)) for term in terms if not _vanishes(heads, term)]
    labels = {index: label for label, index in enumerate(out)}
    merged = tidied(tuple(terms), labels)
    return factored(heads, merged, out) if len(merged) > 1 else merged


def one_hot_summed(term: Term) -> Term:
    """Use Σ_c [targets_t = c] = 1: every entry of a parameter array is a valid index."""
    for dummy in term.dummies:
        holding = [factor for factor in term.factors if dummy in factor[1]]
        if len(holding) == 1 and is_one_hot(holding[0], dummy):
            rest = tuple(factor for factor in term.factors if factor is not holding[0])
            left = tuple(each for each in term.dummies if each is not dummy)
            return one_hot_summed(settled(Term(term.coef, rest, left, term.sizes)))
    return term


def is_one_hot(factor: Factor, dummy: Index) -> bool:
    """Say whether a factor is [targets_t = c] for the index c: true for exactly one."""
    head, at, _ = factor
    if head.kind != "cond" or head.data != "==":
        return False
    formal = head.params[at.index(dummy)]
    left, right = head.inners
    for bare, other in ((left, right), (right, left)):
        if is_index(bare) and bare[0].factors[0][1] == (formal,):
            inside = [f for term in other for f in term.factors]
            return bool(inside) and all(
                f[0].kind == "ref" and f[0].data.kind == "parameter" and formal not in f[1] for f in inside
            )
    return False


def _vanishes(heads: Heads, term: Term) -> bool:
    """Notice Σ_j (x_j - mean) = 0: a parenthesis that is summed by itself and adds up to nothing."""
    if term.coef == 0:
        return True
    for head, at, power in term.factors:
        if head.kind == "sum" and power == 1:
            alone = [
                d
                for d in term.dummies
                if d in at and not any(d in f[1] for f in term.factors if f[0] is not head or f[1] != at)
            ]
            if alone:
                rest = [index for index in at if index not in alone]
                total = tuple(
                    settled(Term(part.coef, part.factors, part.dummies + tuple(alone), part.sizes))
                    for part in opened(head, at)
                )
                if not tidied(total, {index: label for label, index in enumerate(rest)}):
                    return True
    return False


def with_softmax(heads: Heads, term: Term) -> Term:
    """Recognise `exp(x_ij) / Σ_l exp(x_il)` and call it softmax_j(x_ij)."""
    for head, at, power in term.factors:
        if head.kind == "fn" and head.data == "exp" and power >= 1:
            for other, there, less in term.factors:
                places = _normalised(head, at, other, there) if other.kind == "sum" and less <= -1 else None
                if places is not None:
                    powers = {(h, a): p for h, a, p in term.factors}
                    powers[head, at] -= 1
                    powers[other, there] += 1
                    factors = tuple((h, a, p) for (h, a), p in powers.items() if p != 0)
                    softmax = _softmax(heads, head, at, places)
                    return with_softmax(heads, times(Term(term.coef, factors, term.dummies, term.sizes), softmax))
    return term


def _normalised(exp: Head, at: tuple[Index, ...], total: Head, there: tuple[Index, ...]) -> tuple[int, ...] | None:
    """Give the places of `exp` that the sum runs over, if it is the sum of the same exp."""
    body = total.inners[0]
    if len(body) != 1 or not body[0].dummies or body[0].coef != 1 or body[0].sizes or len(body[0].factors) != 1:
        return None
    head, formal, power = body[0].factors[0]
    if head is not exp or power != 1:
        return None
    names = dict(zip(total.params, there, strict=True))
    places = tuple(place for place, index in enumerate(formal) if index in body[0].dummies)
    fixed = all(names.get(index) is at[place] for place, index in enumerate(formal) if place not in places)
    return places if fixed and len(places) == len(body[0].dummies) else None


def _softmax(heads: Heads, exp: Head, at: tuple[Index, ...], places: tuple[int, ...]) -> Term:
    """Make the factor; its data are the places of its own indices that are normalised over."""
    return Term(factors=(softmax_factor(heads, opened(exp, at), [at[place] for place in places]),))


def softmax_factor(heads: Heads, inner: Expr, over: list[Index]) -> Factor:
    """Give the factor softmax of a formula, normalised over some of its indices."""
    _, where, _ = heads.make("softmax", len(over), (inner,))
    return heads.make("softmax", tuple(sorted(where.index(index) for index in over)), (inner,))


def without_softmax(heads: Heads, head: Head, at: tuple[Index, ...]) -> Term:
    """Write softmax out again, as exp over its sum."""
    summed = [at[place] for place in head.data]
    own = {index: Index(index.cls) for index in summed}
    names = [own.get(index, index) for index in at]
    above = heads.make("fn", "exp", (opened(head, at),))
    below = heads.make("fn", "exp", (opened(head, tuple(names)),))
    total: Expr = (Term(factors=(below,), dummies=tuple(own.values())),)
    return Term(factors=(above, heads.make("sum", None, (total,), (), -1)))


def factored(heads: Heads, expr: Expr, out: tuple[Index, ...]) -> Expr:
    """Take out what all terms have in common: P_ij P̄_ij - P_ij Σ_l ... is P_ij (P̄_ij - Σ_l ...)."""
    outside = set(out)
    expr = tuple(sorted(expr, key=lambda term: term.coef < 0))
    shared: dict[tuple[Head, tuple[Index, ...]], Exact] = {
        (head, at): power for head, at, power in expr[0].factors if outside.issuperset(at)
    }
    for term in expr[1:]:
        powers = {(head, at): power for head, at, power in term.factors}
        shared = {key: common for key, power in shared.items() if (common := _common(power, powers.get(key, 0))) != 0}
    sizes = dict(expr[0].sizes)
    for term in expr[1:]:
        own = dict(term.sizes)
        sizes = {cls: common for cls, power in sizes.items() if (common := _common(power, own.get(cls, 0))) != 0}
    magnitudes = {abs(Fraction(term.coef)) for term in expr}
    coef: Exact = magnitudes.pop() if len(magnitudes) == 1 else 1
    if not shared and not sizes and coef == 1:
        return expr
    taken = Term(
        coef, tuple((head, at, power) for (head, at), power in shared.items()), (), tuple(sorted(sizes.items()))
    )
    rest = tuple(_divided(term, taken) for term in expr)
    return (times(taken, heads_group(heads, rest)),)


def _common(first: Exact, second: Exact) -> Exact:
    if first * second <= 0:
        return 0
    return min(first, second) if first > 0 else max(first, second)


def _divided(term: Term, by: Term) -> Term:
    powers = {(head, at): power for head, at, power in term.factors}
    for head, at, power in by.factors:
        powers[head, at] -= power
    coef = Fraction(term.coef) / Fraction(by.coef)
    factors = tuple((head, at, power) for (head, at), power in powers.items() if power != 0)
    sizes = merge_sizes(term.sizes, tuple((cls, -power) for cls, power in by.sizes))
    return Term(int(coef) if coef.denominator == 1 else coef, factors, term.dummies, sizes)
