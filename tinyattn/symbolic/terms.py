"""The representation of formulas: sums of terms in index notation.

A formula (`Expr`) is a tuple of terms. A term is an exact coefficient, powers of lengths, factors with powers, and
the indices that are summed over: `1/√d Σ_a Q_ia K_ja` is one term. A factor is a *head* applied to indices: an entry
of a tensor, a function value such as `exp(S_ij)`, a bracket, or a sum in parentheses.

A head knows what it is made of through formal indices, so renaming the indices of a term never has to look inside a
factor, and no index can be captured. Heads are interned in a `Heads`: the same formula up to the names of its
indices is the same object. That makes equality of formulas decidable by renaming (`canonical.py`), and keeps
everything fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

Exact: TypeAlias = int | Fraction


class Index:
    """An index; `cls` is the number of the length that it runs over (its size class)."""

    __slots__ = ("cls",)

    def __init__(self, cls: int) -> None:
        self.cls = cls


class Quantity:
    """A tensor that formulas mention: the value of a node, its cotangent, a tangent, or a parameter array.

    Attributes
    ----------
    name : str
        What it is called in print.
    kind : {"value", "adjoint", "tangent", "parameter"}
        What it is. Derivatives are taken by values only.
    node : int
        The node of the graph that it belongs to.
    axes : tuple of tuple of int
        For each axis the size classes that make it up: one as a rule, none for an axis of length 1 that is kept or
        stretched, several for a merged axis such as (h d).
    boolean : bool
        Whether its entries are only 0 and 1.
    """

    __slots__ = ("axes", "boolean", "classes", "head", "kind", "name", "node")

    def __init__(
        self, name: str, kind: str, node: int, axes: tuple[tuple[int, ...], ...], boolean: bool = False
    ) -> None:
        self.name, self.kind, self.node, self.axes, self.boolean = name, kind, node, axes, boolean
        self.classes = tuple(cls for axis in axes for cls in axis)
        self.head: Head | None = None

    def __repr__(self) -> str:
        return f"Quantity({self.name}, {self.kind})"


class Head:
    """What a factor is, apart from the indices that it stands at.

    Attributes
    ----------
    kind : {"ref", "fn", "sum", "cond", "max", "min", "index", "scalar", "softmax"}
        `ref`: entry of a tensor; `fn`: function value; `sum`: several terms, or one that is summed, in parentheses;
        `cond`: a bracket; `max`: the largest over bound indices; `index`: an index as a number; `scalar`: a named
        number.
    data : object
        The quantity, the function's name, the comparison sign, (name, value) of a scalar, the places of `softmax`.
    params, bound : tuple of Index
        The formal indices, and those that a `max` binds.
    inners : tuple of Expr
        What it is made of, over the formal indices.
    """

    __slots__ = ("bound", "data", "id", "inners", "kind", "params", "varies")

    def __init__(
        self,
        number: int,
        kind: str,
        data: Any,
        params: tuple[Index, ...],
        inners: tuple[Expr, ...],
        bound: tuple[Index, ...],
    ) -> None:
        self.id, self.kind, self.data, self.params, self.inners, self.bound = number, kind, data, params, inners, bound
        self.varies = _varies(self)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.data}>"


Factor: TypeAlias = tuple[Head, tuple[Index, ...], Exact]


class Term:
    """A coefficient, powers of lengths, factors, and the indices that are summed over."""

    __slots__ = ("coef", "dummies", "factors", "sizes")

    def __init__(
        self,
        coef: Exact = 1,
        factors: tuple[Factor, ...] = (),
        dummies: tuple[Index, ...] = (),
        sizes: tuple[tuple[int, Exact], ...] = (),
    ) -> None:
        self.coef, self.factors, self.dummies, self.sizes = coef, factors, dummies, sizes

    def __repr__(self) -> str:
        return f"Term({self.coef}, {self.factors}, dummies={len(self.dummies)}, sizes={self.sizes})"


Expr: TypeAlias = tuple[Term, ...]
ONE = Term()


def _varies(head: Head) -> bool:
    """Say whether a head depends on values that derivatives are taken by."""
    if head.kind == "ref":
        return bool(head.data.kind == "value")
    if head.kind in ("cond", "index", "scalar"):
        return False
    return any(factor[0].varies for expr in head.inners for term in expr for factor in term.factors)


def times(left: Term, right: Term) -> Term:
    """Multiply two terms; equal factors at equal indices become powers."""
    coef: Exact
    if left.coef == 1:
        coef = right.coef
    elif right.coef == 1:
        coef = left.coef
    else:
        coef = left.coef * right.coef
    if not right.factors:
        factors = left.factors
    elif not left.factors:
        factors = right.factors
    else:
        factors = merged(left.factors, right.factors)
    return Term(coef, factors, left.dummies + right.dummies, merge_sizes(left.sizes, right.sizes))


def merged(left: tuple[Factor, ...], right: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Join two lists of factors, adding the powers of equal ones."""
    powers: dict[tuple[Head, tuple[Index, ...]], Exact] = {(head, at): power for head, at, power in left}
    for head, at, power in right:
        here = (head, at)
        if here in powers:
            powers[here] = 1 if head.kind == "cond" else powers[here] + power
        else:
            powers[here] = power
    return tuple([(head, at, power) for (head, at), power in powers.items() if power != 0])


def merge_sizes(
    left: tuple[tuple[int, Exact], ...], right: tuple[tuple[int, Exact], ...]
) -> tuple[tuple[int, Exact], ...]:
    """Join two products of powers of lengths."""
    if not left:
        return right
    if not right:
        return left
    powers = dict(left)
    for cls, power in right:
        powers[cls] = powers.get(cls, 0) + power
    return tuple(sorted((cls, power) for cls, power in powers.items() if power != 0))


def product(factors: Iterable[Term]) -> Term:
    """Multiply several terms."""
    result = ONE
    for factor in factors:
        result = times(result, factor)
    return result


def scaled(expr: Expr, coef: Exact) -> Expr:
    """Multiply a formula by a number."""
    return tuple(Term(coef * term.coef, term.factors, term.dummies, term.sizes) for term in expr)


def renamed(term: Term, names: Mapping[Index, Index]) -> Term:
    """Put other indices in the place of free ones."""
    return Term(term.coef, renamed_factors(term.factors, names), term.dummies, term.sizes)


def renamed_factors(factors: tuple[Factor, ...], names: Mapping[Index, Index]) -> tuple[Factor, ...]:
    """Rename in factors; two that become equal are joined."""
    new = [(head, tuple([names.get(index, index) for index in at]), power) for head, at, power in factors]
    if len({(head, at) for head, at, _ in new}) < len(new):
        return merged((), tuple(new))
    return tuple(new)


def fresh(term: Term, names: Mapping[Index, Index]) -> Term:
    """Rename free indices, and give the summed ones new identities."""
    if term.dummies:
        names = dict(names)
        dummies = []
        for dummy in term.dummies:
            new = Index(dummy.cls)
            names[dummy] = new
            dummies.append(new)
        return Term(term.coef, renamed_factors(term.factors, names), tuple(dummies), term.sizes)
    return Term(term.coef, renamed_factors(term.factors, names), (), term.sizes)


def opened(head: Head, at: tuple[Index, ...], which: int = 0) -> Expr:
    """Give what a head is made of, at actual indices."""
    names = dict(zip(head.params, at, strict=True))
    return tuple([fresh(term, names) for term in head.inners[which]])


def opened_whole(head: Head, at: tuple[Index, ...]) -> tuple[tuple[Index, ...], Expr]:
    """Give new indices for those that a head itself runs over, and what it is made of, at these and at actual ones."""
    own = tuple([Index(index.cls) for index in head.bound])
    names = dict(zip(head.params, at, strict=True)) | dict(zip(head.bound, own, strict=True))
    return own, tuple([fresh(term, names) for term in head.inners[0]])


def free_indices(expr: Expr) -> list[Index]:
    """Give the indices of a formula that are not summed over, in order of appearance."""
    found: dict[Index, None] = {}
    for term in expr:
        for _, at, _ in term.factors:
            for index in at:
                if index not in term.dummies:
                    found[index] = None
    return list(found)


def settled(term: Term) -> Term:
    """Carry out what needs no thought: sums over an index that nothing mentions, sums over a Kronecker delta."""
    if not term.dummies:
        return term
    factors, dummies = term.factors, term.dummies
    for head, at, _ in factors:
        if head.kind == "cond" and len(at) == 2 and is_delta(head) and (at[0] in dummies or at[1] in dummies):
            gone, kept = at if at[0] in dummies else (at[1], at[0])
            rest = tuple(factor for factor in factors if not (factor[0] is head and factor[1] == at))
            left = tuple(dummy for dummy in dummies if dummy is not gone)
            return settled(Term(term.coef, renamed_factors(rest, {gone: kept}), left, term.sizes))
    return counted(term)


def counted(term: Term) -> Term:
    """Replace the sum over an index that nothing mentions by its length."""
    used = {index for _, at, _ in term.factors for index in at}
    if all(dummy in used for dummy in term.dummies):
        return term
    sizes = term.sizes
    for dummy in term.dummies:
        if dummy not in used:
            sizes = merge_sizes(sizes, ((dummy.cls, 1),))
    return Term(term.coef, term.factors, tuple(dummy for dummy in term.dummies if dummy in used), sizes)


def is_delta(head: Head) -> bool:
    """Say whether a bracket is `[i = j]` for two indices of the same length."""
    if head.kind != "cond" or head.data != "==" or len(head.params) != 2:
        return False
    first, second = head.params
    return first.cls == second.cls and all(is_index(inner) for inner in head.inners)


def is_index(expr: Expr) -> bool:
    """Say whether a formula is one bare index."""
    if len(expr) != 1:
        return False
    term = expr[0]
    return term.coef == 1 and not term.sizes and len(term.factors) == 1 and term.factors[0][0].kind == "index"


def mentioned(expr: Expr) -> dict[Quantity, None]:
    """Give the quantities that a formula mentions, in order."""
    found: dict[Quantity, None] = {}
    waiting = [head for term in expr for head, _, _ in term.factors]
    seen: set[Head] = set()
    while waiting:
        head = waiting.pop()
        if head in seen:
            continue
        seen.add(head)
        if head.kind == "ref":
            found[head.data] = None
        else:
            waiting.extend(inside for inner in head.inners for term in inner for inside, _, _ in term.factors)
    return found
