"""The one rule that derives: replace the factor by the output's cotangent and sum the indices that are missing.

For `y[out] = Σ coef · Π factors` the cotangent of a factor `x[at]` is the same product without it, times `ȳ[out]`,
summed over every index that is not in `at`. That single sentence is the gradient of matmul, transpose, scaling,
sums, broadcasting, masks and heads. A factor that is a function is gone through with its derivative (`slope`), a
power with `p F^(p-1)`, a maximum with the indicator of the winners. Nothing here knows an operation, or a gradient
rule of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tinyattn.errors import GraphError
from tinyattn.symbolic.canonical import Heads
from tinyattn.symbolic.terms import (
    ONE,
    Expr,
    Factor,
    Head,
    Index,
    Quantity,
    Term,
    fresh,
    opened,
    renamed_factors,
    scaled,
    settled,
    times,
)

Contribution = tuple[Quantity, tuple[Index, ...], Term, frozenset[str]]
NOTHING: frozenset[str] = frozenset()


def contributions(heads: Heads, expr: Expr, seed: Term) -> Iterator[Contribution]:
    """Go backward through a formula.

    Parameters
    ----------
    heads : Heads
        The heads of the derivation.
    expr : Expr
        The definition of one entry of y.
    seed : Term
        The cotangent of that entry.

    Yields
    ------
    quantity, at, term, ways
        The term is what the cotangent of `quantity[at]` gets, before the sum over the missing indices; `ways` says
        what was gone through: nothing ("swap"), "elementwise", "division", "largest".
    """
    for term in expr:
        for place, (head, at, power) in enumerate(term.factors):
            if not head.varies:
                continue
            rest = Term(term.coef, term.factors[:place] + term.factors[place + 1 :], term.dummies, term.sizes)
            context = times(seed, rest)
            if power != 1:
                context = times(context, Term(power, ((head, at, power - 1),)))
            ways = NOTHING if power == 1 else frozenset(("division" if power < 0 else "elementwise",))
            yield from _through(heads, head, at, context, ways)


def _through(
    heads: Heads, head: Head, at: tuple[Index, ...], context: Term, ways: frozenset[str]
) -> Iterator[Contribution]:
    if head.kind == "ref":
        yield head.data, at, context, ways
    elif head.kind == "sum":
        for quantity, place, term, more in contributions(heads, opened(head, at), context):
            yield quantity, place, term, ways | more
    elif head.kind == "fn":
        for which, slope in slopes(heads, head, at):
            for part in slope:
                inside = contributions(heads, opened(head, at, which), times(context, part))
                for quantity, place, term, more in inside:
                    yield quantity, place, term, ways | more | {"elementwise"}
    elif head.kind in ("max", "min"):
        for body, share in winners(heads, head, at):
            for quantity, place, term, more in contributions(heads, body, times(context, share)):
                yield quantity, place, term, ways | more | {"largest"}


def winners(heads: Heads, head: Head, at: tuple[Index, ...]) -> Iterator[tuple[Expr, Term]]:
    """Give the body of a maximum with its share: [body = max] / Σ [body = max], ties shared equally."""
    names = dict(zip(head.params, at, strict=True))

    def instance() -> tuple[Expr, Factor, tuple[Index, ...]]:
        own = tuple([Index(index.cls) for index in head.bound])
        here = names | dict(zip(head.bound, own, strict=True))
        body = tuple([fresh(term, here) for term in head.inners[0]])
        best: Expr = (Term(factors=((head, at, 1),)),)
        return body, heads.make("cond", "==", (body, best)), own

    body, wins, own = instance()
    _, wins_too, others = instance()
    count: Expr = (Term(factors=(wins_too,), dummies=others),)
    yield body, Term(factors=(wins, heads.make("sum", None, (count,), (), -1)), dummies=own)


def slopes(heads: Heads, head: Head, at: tuple[Index, ...]) -> Iterator[tuple[int, Expr]]:
    """Give the derivative of a function by each of its arguments; SymPy proves this table in the tests."""
    name = head.data
    this = Term(factors=((head, at, 1),))
    x = opened(head, at)
    if name in ("maximum", "minimum", "power"):
        yield from _two_slopes(heads, head, at)
    elif name == "exp":
        yield 0, (this,)
    elif name == "log":
        yield 0, (_raised(heads, x, -1),)
    elif name == "sin":
        yield 0, (Term(factors=(heads.make("fn", "cos", (x,)),)),)
    elif name == "cos":
        yield 0, (Term(-1, (heads.make("fn", "sin", (x,)),)),)
    elif name == "tanh":
        yield 0, (heads_group(heads, (ONE, Term(-1, ((head, at, 2),)))),)
    elif name == "sigmoid":
        yield 0, (times(this, heads_group(heads, (ONE, Term(-1, ((head, at, 1),))))),)
    elif name == "erf":
        square = scaled((_raised(heads, x, 2),), -1)
        pi, _, _ = heads.scalar("pi", None)
        yield 0, (Term(2, (heads.make("fn", "exp", (square,)), (pi, (), Fraction(-1, 2)))),)
    elif name == "abs":
        yield 0, (Term(factors=(heads.make("fn", "sign", (x,)),)),)
    elif name == "sign":
        return
    else:
        raise GraphError(f"no derivative is known for the function {name} in a definition.")


def _two_slopes(heads: Heads, head: Head, at: tuple[Index, ...]) -> Iterator[tuple[int, Expr]]:
    left, right = opened(head, at, 0), opened(head, at, 1)
    if head.data == "power":
        this = Term(factors=((head, at, 1),))
        lower = heads.make("fn", "power", (left, (*right, Term(-1))))
        yield 0, (times(_single(heads, right), Term(factors=(lower,))),)
        yield 1, (times(this, Term(factors=(heads.make("fn", "log", (left,)),))),)
        return
    for which, (mine, other) in enumerate(((left, right), (right, left))):
        low, high = (other, mine) if head.data == "maximum" else (mine, other)
        wins = Term(factors=(heads.make("cond", "<", (low, high)),))
        if _fixed(left) or _fixed(right):  # a bound, as in relu and clip: 0 there
            yield which, (wins,)
        else:
            yield which, (wins, Term(Fraction(1, 2), (heads.make("cond", "==", (left, right)),)))


def _fixed(expr: Expr) -> bool:
    return not any(factor[0].kind not in ("scalar",) for term in expr for factor in term.factors)


def _single(heads: Heads, expr: Expr) -> Term:
    return expr[0] if len(expr) == 1 else heads_group(heads, expr)


def heads_group(heads: Heads, expr: Expr) -> Term:
    """Give a formula of several terms as one factor, in parentheses."""
    return Term(factors=(heads.make("sum", None, (expr,)),))


def _raised(heads: Heads, expr: Expr, power: int) -> Term:
    from tinyattn.symbolic.reading import raised

    return raised(heads, expr, power)


def placed(term: Term, at: tuple[Index, ...], out: tuple[Index, ...]) -> Term:
    """Finish a contribution: name its place by the indices `out` and sum over every other index."""
    names = dict(zip(at, out, strict=True))
    kept = set(at)
    others: dict[Index, None] = dict.fromkeys(index for index in term.dummies if index not in kept)
    for _, indices, _ in term.factors:
        for index in indices:
            if index not in kept:
                others[index] = None
    return settled(Term(term.coef, renamed_factors(term.factors, names), tuple(others), term.sizes))
