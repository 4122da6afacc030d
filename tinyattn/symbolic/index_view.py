"""Formulas in index notation: S_ij = 1/√d Σ_a Q_ia K_ja. Always possible, whatever the number of indices."""

from __future__ import annotations

from fractions import Fraction

from tinyattn.symbolic.layout import MINUS, PLUS, SPACE, Layout, fenced, is_sum, row, spaced
from tinyattn.symbolic.terms import Expr, Factor, Head, Index, Quantity, Term, is_index, opened, opened_whole
from tinyattn.symbolic.writing import LineLetters, coefficient, quantity_name

SIGNS = {"==": "=", "!=": "≠", "<=": "≤", "<": "<"}
EQUALS: Layout = ("op", "=")
FEW = 1


def index_line(quantity: Quantity, out: tuple[Index, ...], expr: Expr, letters: LineLetters) -> Layout:
    """Write a whole line, `S_ij = ...`."""
    return row(entry(quantity, out, letters), EQUALS, sum_of(expr, letters))


def entry(quantity: Quantity, at: tuple[Index, ...], letters: LineLetters) -> Layout:
    """Write an entry of a tensor."""
    name = quantity_name(quantity)
    return ("sub", name, letters.below(at)) if at else name


def sum_of(expr: Expr, letters: LineLetters) -> Layout:
    """Write a sum of terms."""
    if not expr:
        return ("num", "0")
    if len(expr) == 1 and expr[0].coef > 0:
        return _term(expr[0], letters)
    parts: list[Layout] = []
    for at, term in enumerate(expr):
        if term.coef < 0:
            parts.append(MINUS if at else ("sign", "−"))
        elif at:
            parts.append(PLUS)
        parts.append(_term(term, letters))
    return row(*parts)


def _term(term: Term, letters: LineLetters) -> Layout:
    """Write a term without its sign: coefficient, factors outside of sums, then one Σ for each group of indices."""
    factors, dummies = _solved(term, letters)
    parts: list[Layout] = []
    front = coefficient(term, letters.letters.names)
    if front is not None:
        parts.append(front)
    for over, group in _groups(factors, dummies):
        for index in over:
            letters[index]  # summed indices take their letters before what stands inside
        body = _product(group, letters)
        if over:
            sign: Layout = ("sum", "Σ", ("ix", "".join([letters[index] for index in over])))
            parts.append(row(sign, SPACE, body))
        elif parts and body[0] == "frac" and body[1] == ("num", "1"):
            parts[-1] = _divided(parts[-1], body[2])
        else:
            parts.append(body)
    letters.release(term.dummies)
    return spaced(parts)


def _divided(front: Layout, below: Layout) -> Layout:
    """Write 1/2 beside 1/v as 1/(2 v)."""
    if front[0] == "frac":
        return ("frac", front[1], row(front[2], SPACE, fenced(below) if is_sum(below) else below))
    return ("frac", front, below)


def _groups(factors: list[Factor], dummies: list[Index]) -> list[tuple[list[Index], list[Factor]]]:
    """Part a product into what is outside of sums and one group for each set of connected summed indices."""
    if not dummies:
        return [([], factors)] if factors else []
    outside = [factor for factor in factors if not any(index in dummies for index in factor[1])]
    groups: list[tuple[list[Index], list[Factor]]] = []
    for factor in factors:
        mine = [index for index in factor[1] if index in dummies]
        if not mine:
            continue
        touching = [group for group in groups if any(index in group[0] for index in mine)]
        merged = (
            list(dict.fromkeys([i for g in touching for i in g[0]] + mine)),
            [f for g in touching for f in g[1]] + [factor],
        )
        groups = [group for group in groups if group not in touching] + [merged]
    return ([([], outside)] if outside else []) + groups


def _solved(term: Term, letters: LineLetters) -> tuple[list[Factor], list[Index]]:
    """Write Σ_p [p = index_t] x_pj as x_(index_t),j: a bracket that names an index's value is put in its place."""
    if not any(head.kind == "cond" and head.data == "==" for head, _, _ in term.factors):
        return list(term.factors), list(term.dummies)
    factors, dummies = list(term.factors), list(term.dummies)
    for factor in term.factors:
        head, at, _ = factor
        if head.kind != "cond" or head.data != "==":
            continue
        left, right = opened(head, at, 0), opened(head, at, 1)
        for bare, value in ((left, right), (right, left)):
            if is_index(bare) and (index := bare[0].factors[0][1][0]) in dummies and not _mentions(value, index):
                if any(index in other[1] for other in factors if other[0].kind == "ref"):
                    letters.solved[index] = sum_of(value, letters)
                    factors.remove(factor)
                    dummies.remove(index)
                    break
    return factors, dummies


def _mentions(expr: Expr, index: Index) -> bool:
    return any(index in factor[1] for term in expr for factor in term.factors)


def _product(factors: list[Factor], letters: LineLetters) -> Layout:
    """Write a product; negative powers go below a fraction bar."""
    above = [_factor(head, at, power, letters) for head, at, power in factors if power > 0]
    below = [_factor(head, at, -power, letters, alone=True) for head, at, power in factors if power < 0]
    return ("frac", spaced(above), spaced(below)) if below else spaced(above)


def _factor(
    head: Head, at: tuple[Index, ...], power: int | Fraction, letters: LineLetters, alone: bool = False
) -> Layout:
    base = base_of(head, at, letters)
    if power == Fraction(1, 2):
        return ("sqrt", base[2] if base[0] == "fence" else base)
    if alone and power == 1 and base[0] == "fence" and head.kind == "sum":
        inside: Layout = base[2]
        return inside
    if power == 1:
        return base
    above: Layout = ("num", str(power))
    return ("sup", base, above)


def base_of(head: Head, at: tuple[Index, ...], letters: LineLetters) -> Layout:
    """Write a factor without its power."""
    match head.kind:
        case "ref":
            return entry(head.data, at, letters)
        case "index":
            return letters.solved.get(at[0]) or ("ix", letters[at[0]])
        case "scalar":
            return ("fn", "π") if head.data[1] is None else ("id", head.data[0])
        case "sum":
            return fenced(sum_of(opened(head, at), letters))
        case "fn":
            return _function(head, at, letters)
        case "softmax":
            over: Layout = ("ix", "".join(letters[at[place]] for place in head.data))
            return row(("sub", ("fn", "softmax"), over), fenced(sum_of(opened(head, at), letters)))
        case "cond":
            return fenced(condition(head, at, letters), "[", "]")
        case _:
            return _largest(head, at, letters)


def condition(head: Head, at: tuple[Index, ...], letters: LineLetters) -> Layout:
    """Write what a bracket says: constants on the right, [x_ij > 0]; an index alone on the left, [j = l − 2]."""
    left, right, sign = opened(head, at, 0), opened(head, at, 1), SIGNS[head.data]
    if head.data in ("==", "!=") and (_is_constant(left) or (is_index(right) and _is_place(left))):
        left, right = right, left
    if head.data in ("<", "<=") and _is_constant(left):
        return row(sum_of(right, letters), ("op", ">" if sign == "<" else "≥"), sum_of(left, letters))
    return row(sum_of(left, letters), ("op", sign), sum_of(right, letters))


def _is_constant(expr: Expr) -> bool:
    return not any(term.factors for term in expr)


def _is_place(expr: Expr) -> bool:
    """Say whether a formula is made of indices and numbers, as `l − 2` is, and is no index alone."""
    return not is_index(expr) and all(head.kind == "index" for term in expr for head, _, _ in term.factors)


def _function(head: Head, at: tuple[Index, ...], letters: LineLetters) -> Layout:
    if head.data == "power":
        base = fenced(sum_of(opened(head, at, 0), letters))
        return ("sup", base, sum_of(opened(head, at, 1), letters))
    name = {"maximum": "max", "minimum": "min"}.get(head.data, head.data)
    inside = sum_of(opened(head, at, 0), letters)
    if len(head.inners) == 2:
        inside = row(inside, ("sign", ","), SPACE, sum_of(opened(head, at, 1), letters))
    return row(("fn", name), fenced(inside))


def _largest(head: Head, at: tuple[Index, ...], letters: LineLetters) -> Layout:
    own, body = opened_whole(head, at)
    sign: Layout = ("sum", head.kind, ("ix", "".join(letters[index] for index in own)))
    return row(sign, SPACE, sum_of(body, letters))
