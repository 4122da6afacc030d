"""Numbers and arrays of numbers that a rule makes from lengths, read back as formulas.

A rule may count rows, or make a triangle, in plain NumPy; what comes out no longer says of what it was made. So a rule
is traced with lengths that nothing else has (`OWN`): a number that is made of them is then no accident.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.symbolic.scope import NotTraceable, Scope
from tinyattn.symbolic.terms import Expr, Index, Term, is_index, merge_sizes, product, renamed

OWN = (101, 211, 331, 467, 613, 773, 953, 1151)  # primes; differences of two, and 2 more or less, tell them apart
UNUSUAL = 50  # a plain number from here on may be made of lengths, where these are `OWN`

Axes = tuple[tuple[Index, ...], ...]


def known_lengths(scope: Scope) -> dict[int, int]:
    """Give the size class of each length that is unusual and no other's; none where any number may be an accident."""
    if not scope.own:
        return {}
    lengths = [scope.lengths[cls] for cls in scope.classes]
    return {scope.lengths[cls]: cls for cls in scope.classes
            if scope.lengths[cls] >= UNUSUAL and lengths.count(scope.lengths[cls]) == 1}  # fmt: skip


def product_of_lengths(scope: Scope, number: int) -> Term | None:
    """Give a number as a product of unusual lengths; None if it is none."""
    term, rest = Term(), number
    for length, cls in known_lengths(scope).items():
        while rest > 1 and rest % length == 0:
            term, rest = Term(1, (), (), merge_sizes(term.sizes, ((cls, 1),))), rest // length
    return term if rest == 1 and number > 1 else None


def whole_number(scope: Scope, number: int) -> Expr:
    """Give a whole number as a formula: small, a product of lengths, or a difference of two and something small."""
    if abs(number) < UNUSUAL:
        return (Term(number),) if number else ()
    one = product_of_lengths(scope, abs(number))
    if one is not None:
        return (Term(1 if number > 0 else -1, (), (), one.sizes),)
    known = known_lengths(scope)
    for first, plus in known.items():
        for second, minus in (*known.items(), (0, -1)):
            for sign in (1, -1):
                rest = number - sign * (first - second)
                if abs(rest) <= 2 and plus != minus:
                    away = (Term(-sign, (), (), ((minus, 1),)),) if second else ()
                    return (Term(sign, (), (), ((plus, 1),)), *away, *((Term(rest),) if rest else ()))
    raise NotTraceable(f"the number {number}")


def array_formula(scope: Scope, array: np.ndarray[Any, Any]) -> tuple[Axes, Expr]:
    """Give an array that counts evenly along its axes, or whose entries say where `j <= i + k`, as a formula."""
    axes = tuple(_axis(scope, length) for length in array.shape)
    if array.dtype == bool:
        return _threshold(scope, axes, array)
    if array.dtype.kind not in "iu":
        raise NotTraceable("an array of numbers")
    start = int(array.flat[0])
    steps = [int(np.take(array, 1, axis).flat[0]) - start if own else 0 for axis, own in enumerate(axes)]
    counted = start + sum(step * place for step, place in zip(steps, np.indices(array.shape, sparse=True), strict=True))
    if not np.array_equal(array, np.broadcast_to(counted, array.shape)):
        raise NotTraceable("an array of numbers")
    expr = whole_number(scope, start)
    for step, own in zip(steps, axes, strict=True):
        number = scope.heads.index(own[0]) if own else None
        expr += tuple(Term(term.coef, (number,), (), term.sizes) for term in whole_number(scope, step) if number)
    return axes, expr


def _axis(scope: Scope, length: int) -> tuple[Index, ...]:
    if length == 1:
        return ()
    known = known_lengths(scope)
    if length not in known:
        raise NotTraceable("an array of numbers")
    return (Index(known[length]),)


def _threshold(scope: Scope, axes: Axes, array: np.ndarray[Any, Any]) -> tuple[Axes, Expr]:
    """Read a triangle as [j <= i + k], written [j - m <= i - n] where k is m - n and a little; rows as [i <= k]."""
    if array.all() or not array.any():
        return ((),) * array.ndim, whole_number(scope, int(array.all()))
    make, index = scope.heads.make, scope.heads.index
    own = [axis[0] for axis in axes if axis]
    if array.ndim == 2 and len(own) == 2:
        rows, columns = array.shape
        row = int(np.argmax(array.any(axis=1) & ~array.all(axis=1)))
        k = int(array[row].sum()) - 1 - row
        if np.array_equal(array, np.tri(rows, columns, k, dtype=bool)):
            places: list[Expr] = [(Term(factors=(index(at),)),) for at in own]
            little = k - (columns - rows)
            if abs(little) <= 2:  # aligned at the end, so both are counted from there
                places = [(*place, Term(-1, (), (), ((at.cls, 1),))) for place, at in zip(places, own, strict=True)]
                k = little
            i, j = places
            return axes, (Term(factors=(make("cond", "<=", (j, (*i, *whole_number(scope, k)))),)),)
    if len(own) == 1:
        last = int(array.sum()) - 1
        if np.array_equal(array.reshape(-1), np.arange(array.size) <= last):
            place = (Term(factors=(index(own[0]),)),)
            return axes, (Term(factors=(make("cond", "<=", (place, whole_number(scope, last))),)),)
    raise NotTraceable("a condition on numbers")


def places_along(axis: tuple[Index, ...], place: Expr) -> list[Expr]:
    """Part places in memory, `size(c) i + t_i`, into the place along each axis: i and t_i.

    An entry of an array of whole numbers is taken for a valid index, as everywhere; anything else is refused.
    """
    rest = list(place)
    parts: list[Expr] = []
    for at in range(len(axis)):
        stride = product([Term(sizes=((each.cls, 1),)) for each in axis[at + 1 :]]).sizes
        found = [term for term in rest if term.sizes == stride and not term.dummies and term.coef == 1]
        if len(found) != 1 or not _valid(found[0], axis[at]):
            raise NotTraceable("entries by number")
        rest.remove(found[0])
        parts.append((Term(1, found[0].factors),))
    if rest:
        raise NotTraceable("entries by number")
    return parts


def _valid(term: Term, along: Index) -> bool:
    bare = (Term(1, term.factors),)
    if is_index(bare):
        return term.factors[0][1][0].cls == along.cls
    entries = [factor for factor in term.factors if factor[0].kind != "cond"]
    return len(entries) == 1 and entries[0][2] == 1 and entries[0][0].kind == "ref" and (
        entries[0][0].data.kind == "parameter" and not entries[0][0].data.boolean
    )  # fmt: skip


def one_in_each_row(
    scope: Scope, axis: tuple[Index, ...], key_axes: Axes, place: Expr
) -> tuple[Term, tuple[Index, ...], Axes]:
    """Give brackets that say which entries of a merged axis are named, one for each entry of the key.

    Returns
    -------
    hot : Term
        The brackets, over the indices of the axis.
    gone : tuple of Index
        The indices of the axis that a bracket fixes.
    axes : Axes
        The axes of the key, by the indices of the axis.
    """
    parts = places_along(axis, place)
    names = {part[0].factors[0][1][0]: own for own, part in zip(axis, parts, strict=True) if is_index(part)}
    gone = tuple(own for own, part in zip(axis, parts, strict=True) if not is_index(part))
    rows = [index for each in key_axes for index in each]
    if set(rows) != set(names) or len(rows) + len(gone) != len(axis):
        raise NotTraceable("places that are not one in each row")
    hot = Term()
    for own, part in zip(axis, parts, strict=True):
        if own in gone:
            sides = ((Term(factors=(scope.heads.index(own),)),), (renamed(part[0], names),))
            hot = Term(1, (*hot.factors, scope.heads.make("cond", "==", sides)))
    return hot, gone, tuple(tuple(names[index] for index in each) for each in key_axes)
