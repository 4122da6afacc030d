"""Names for what a derivation says several times: `v_i = 1/d Σ_a U_ia² + eps`, then `v` wherever that occurs.

Only the printed formulas change. A proof puts the meaning back in the place of the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tinyattn.symbolic.canonical import Heads
from tinyattn.symbolic.terms import Exact, Expr, Factor, Head, Index, Quantity, Term, opened, opened_whole, times
from tinyattn.symbolic.tidying import softmax_factor

NAMES = {"softmax": "PAW", "max": "mMq", "min": "mMq", 2: "UDEG", 1: "vrsu", 0: "cz"}


class Auxiliary:
    """A name for a factor that occurs several times."""

    __slots__ = ("head", "quantity")

    def __init__(self, head: Head, quantity: Quantity) -> None:
        self.head, self.quantity = head, quantity


def repeated(exprs: Iterable[Expr]) -> list[Head]:
    """Give the reductions, softmaxes and maxima that formulas mention more than once, inner ones first."""
    counts: dict[Head, int] = {}
    waiting = [factor[0] for expr in exprs for term in expr for factor in term.factors if factor[0].inners]
    while waiting:
        head = waiting.pop()
        counts[head] = counts.get(head, 0) + 1
        if counts[head] == 1:
            waiting.extend(f[0] for inner in head.inners for term in inner for f in term.factors if f[0].inners)
    return sorted(
        (head for head, count in counts.items() if count > 1 and _deserves_a_name(head)), key=lambda head: head.id
    )


def _deserves_a_name(head: Head) -> bool:
    if head.kind in ("softmax", "max", "min"):
        return True
    return head.kind == "sum" and len(head.params) <= 2 and any(_reduces(term) for term in head.inners[0])


def _reduces(term: Term) -> bool:
    if term.dummies:
        return True
    return any(head.kind == "sum" and any(_reduces(part) for part in head.inners[0]) for head, _, _ in term.factors)


def named(heads: Iterable[Head], taken: set[str], node: int) -> Iterator[Auxiliary]:
    """Give each head a name that is not taken."""
    for head in heads:
        pool = NAMES.get(head.kind) or NAMES.get(len(head.params), "T")
        name = next((letter for letter in pool if letter not in taken), None)
        number = 1
        while name is None:
            number += 1
            name = f"{pool[0]}{number}" if f"{pool[0]}{number}" not in taken else None
        taken.add(name)
        kind = "value" if head.varies else "constant"
        yield Auxiliary(head, Quantity(name, kind, node, tuple((index.cls,) for index in head.params)))


class Renaming:
    """Puts heads in the place of others, with the same indices: names for what they stand for, or the other way
    round.
    """

    def __init__(self, heads: Heads, names: Mapping[Head, Head]) -> None:
        self.heads, self.names = heads, dict(names)
        self._touched: dict[Head, bool] = {}

    def of(self, expr: Expr) -> Expr:
        """Rewrite a formula."""
        return tuple([self._term(term) for term in expr])

    def inside(self, head: Head) -> Expr:
        """Give what a named head is made of, other names put in."""
        if head.kind == "sum":
            return self.of(head.inners[0])
        return (Term(factors=(self._rebuilt(head, head.params, 1),)),)

    def _term(self, term: Term) -> Term:
        if not any(head in self.names or self._holds(head) for head, _, _ in term.factors):
            return term
        result = Term(term.coef, (), term.dummies, term.sizes)
        for head, at, power in term.factors:
            result = times(result, Term(factors=(self._factor(head, at, power),)))
        return result

    def _factor(self, head: Head, at: tuple[Index, ...], power: Exact) -> Factor:
        head = self.names.get(head, head)
        return self._rebuilt(head, at, power) if self._holds(head) else (head, at, power)

    def _holds(self, head: Head) -> bool:
        """Say whether a head has a named one inside."""
        if head not in self._touched:
            inside = [f[0] for inner in head.inners for term in inner for f in term.factors]
            self._touched[head] = any(each in self.names or self._holds(each) for each in inside)
        return self._touched[head]

    def _rebuilt(self, head: Head, at: tuple[Index, ...], power: Exact) -> Factor:
        if head.kind == "softmax":
            over = [at[place] for place in head.data]
            new, where, _ = softmax_factor(self.heads, self.of(opened(head, at)), over)
            return new, where, power
        if head.bound:
            own, body = opened_whole(head, at)
            return self.heads.make(head.kind, head.data, (self.of(body),), own, power)
        inners = tuple(self.of(opened(head, at, which)) for which in range(len(head.inners)))
        return self.heads.make(head.kind, head.data, inners, (), power)
