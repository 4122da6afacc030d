"""When two formulas are the same: the names of summed indices and the order of terms and factors do not matter.

`expression_key` gives a formula a key that is equal for equal formulas; `Heads` keeps one object for each different
head. Two formulas that differ only by a relation that is not looked for here get different keys: a proof may fail
to see an equality, it can never see one that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations, product
from typing import Any

from tinyattn.symbolic.terms import Exact, Expr, Factor, Head, Index, Quantity, Term, free_indices

FIRST_DUMMY = 1000
TOO_MANY = 5040

TermKey = tuple[Any, ...]


class Heads:
    """All heads of one derivation, each once."""

    def __init__(self) -> None:
        self._known: dict[Any, Head] = {}
        self._count = 0

    def of(self, quantity: Quantity) -> Head:
        """Give the head for the entries of a tensor."""
        if quantity.head is None:
            params = tuple(Index(cls) for cls in quantity.classes)
            quantity.head = self._new("ref", quantity, params, (), ())
        return quantity.head

    def index(self, index: Index) -> Factor:
        """Give an index as a number."""
        key = ("index", index.cls)
        if key not in self._known:
            self._known[key] = self._new("index", None, (Index(index.cls),), (), ())
        return self._known[key], (index,), 1

    def scalar(self, name: str, value: Any) -> Factor:
        """Give a named number."""
        key = ("scalar", name, value)
        if key not in self._known:
            self._known[key] = self._new("scalar", (name, value), (), (), ())
        return self._known[key], (), 1

    def make(
        self, kind: str, data: Any, inners: tuple[Expr, ...], bound: tuple[Index, ...] = (), power: Exact = 1
    ) -> Factor:
        """Give the factor for a function, a parenthesis, a bracket or a maximum of formulas."""
        if data == "==" and _weight(inners[1]) < _weight(inners[0]):
            inners = inners[::-1]
        at = _ordered([index for index in _all_free(inners) if index not in bound], inners)
        labels = {index: label for label, index in enumerate(at)}
        labels.update((index, -1 - label) for label, index in enumerate(bound))
        parts = tuple([expression_key(inner, labels) for inner in inners])
        key = (kind, data, parts, tuple([index.cls for index in at]), tuple([index.cls for index in bound]))
        head = self._known.get(key)
        if head is None:
            head = self._known[key] = self._new(kind, data, at, inners, bound)
        return head, at, power

    def _new(
        self, kind: str, data: Any, params: tuple[Index, ...], inners: tuple[Expr, ...], bound: tuple[Index, ...]
    ) -> Head:
        self._count += 1
        return Head(self._count, kind, data, params, inners, bound)


def _weight(expr: Expr) -> list[Any]:
    """Order the sides of an equation, which may stand either way round."""
    return sorted((sorted((head.id, power) for head, _, power in term.factors), term.coef) for term in expr)


def _all_free(inners: tuple[Expr, ...]) -> list[Index]:
    if len(inners) == 1:
        return free_indices(inners[0])
    return list(dict.fromkeys(index for inner in inners for index in free_indices(inner)))


def _ordered(free: list[Index], inners: tuple[Expr, ...]) -> tuple[Index, ...]:
    """Order free indices by where they stand, so that equal formulas list them alike."""
    if len(free) < 2:
        return tuple(free)
    places: dict[Index, list[Any]] = {index: [] for index in free}
    for number, inner in enumerate(inners):
        for term in inner:
            shape = sorted((head.id, power) for head, _, power in term.factors)
            for head, at, power in term.factors:
                for position, index in enumerate(at):
                    if index in places:
                        places[index].append((number, shape, head.id, power, position))
    return tuple(sorted(free, key=lambda index: (sorted(places[index]), index.cls)))


def expression_key(expr: Expr, labels: Mapping[Index, int]) -> tuple[Any, ...]:
    """Give a key that equal formulas share; like terms are added up first.

    Parameters
    ----------
    expr : Expr
        The formula.
    labels : mapping of Index to int
        A number for every free index.
    """
    if len(expr) == 1:
        term = expr[0]
        return ((term_key(term, labels), term.sizes, term.coef),) if term.coef != 0 else ()
    return tuple(sorted((*key, coef) for key, (coef, _) in collected(expr, labels).items()))


def collected(expr: Expr, labels: Mapping[Index, int]) -> dict[TermKey, tuple[Exact, Term]]:
    """Add up like terms: (key, powers of lengths) to (coefficient, one of the terms)."""
    found: dict[TermKey, tuple[Exact, Term]] = {}
    for term in expr:
        key = (term_key(term, labels), term.sizes)
        before = found.get(key)
        found[key] = (term.coef, term) if before is None else (before[0] + term.coef, before[1])
    return {key: entry for key, entry in found.items() if entry[0] != 0}


def term_key(term: Term, labels: Mapping[Index, int]) -> TermKey:
    """Give a key of the factors of a term that does not depend on the names of its summed indices."""
    dummies = term.dummies
    if not dummies:
        return _key_with(term, labels)
    if len(dummies) == 1:
        return _key_with(term, {**labels, dummies[0]: FIRST_DUMMY})
    groups = _ranked(term, labels)
    orders = [tuple(permutations(group)) if len(group) > 1 else ((group[0],),) for group in groups]
    best: TermKey | None = None
    for count, choice in enumerate(product(*orders)):
        flat = [dummy for group in choice for dummy in group]
        key = _key_with(term, {**labels, **{dummy: FIRST_DUMMY + at for at, dummy in enumerate(flat)}})
        best = key if best is None or key < best else best
        if count > TOO_MANY:
            break
    return best if best is not None else ()


def _key_with(term: Term, labels: Mapping[Index, int]) -> TermKey:
    rows = [(head.id, power, tuple([labels[index] for index in at])) for head, at, power in term.factors]
    rows.sort()
    return tuple(rows)


def _ranked(term: Term, labels: Mapping[Index, int]) -> list[list[Index]]:
    """Tell summed indices apart by where they stand: groups in order, members of a group look alike so far."""
    rank: dict[Index, int] = {dummy: -2 - dummy.cls for dummy in term.dummies}
    distinct = len(set(rank.values()))
    while True:
        places: dict[Index, list[Any]] = {dummy: [] for dummy in term.dummies}
        for head, at, power in term.factors:
            row = tuple([labels[index] if index in labels else rank[index] for index in at])
            for position, index in enumerate(at):
                if index in places:
                    places[index].append((head.id, power, position, row))
        keys = {dummy: (rank[dummy], sorted(places[dummy])) for dummy in term.dummies}
        values = _distinct(sorted(keys.values()))
        rank = {dummy: -FIRST_DUMMY - values.index(keys[dummy]) for dummy in term.dummies}
        if len(values) == distinct or len(values) == len(term.dummies):
            ordered = sorted(term.dummies, key=lambda dummy: -rank[dummy])
            return list(_grouped(ordered, rank))
        distinct = len(values)


def _distinct(values: list[Any]) -> list[Any]:
    return [value for at, value in enumerate(values) if at == 0 or value != values[at - 1]]


def _grouped(ordered: list[Index], rank: Mapping[Index, int]) -> Iterator[list[Index]]:
    group: list[Index] = []
    for dummy in ordered:
        if group and rank[group[0]] != rank[dummy]:
            yield group
            group = []
        group.append(dummy)
    if group:
        yield group


def tidied(expr: Expr, labels: Mapping[Index, int]) -> Expr:
    """Add up like terms, keeping the order of their first appearance."""
    if len(expr) < 2:
        return tuple(term for term in expr if term.coef != 0)
    return tuple(Term(coef, term.factors, term.dummies, term.sizes) for coef, term in collected(expr, labels).values())
