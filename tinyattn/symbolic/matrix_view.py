"""Formulas in matrix notation, where they have one: S̄ = P ⊙ (P̄ − (P̄ ⊙ P) 1 1ᵀ).

A term is a graph: its indices are points, a factor with two indices is an edge, one with one index hangs at a point.
Factors at the same two points make a Hadamard product; a summed index that joins two edges makes a matrix product;
one at a single edge a product with the vector 1. What is not of this kind has no matrix form (`NoMatrixForm`) and is
shown by indices.
"""

from __future__ import annotations

from fractions import Fraction

from tinyattn.symbolic.layout import MINUS, ONES, PLUS, SPACE, TRANSPOSE, Layout, fenced, row, spaced
from tinyattn.symbolic.terms import Exact, Expr, Factor, Head, Index, Quantity, Term, opened
from tinyattn.symbolic.writing import LineLetters, coefficient, quantity_name

SUM, HADAMARD, PRODUCT, ATOM = range(4)
ENTRYWISE: Layout = ("op", "⊙")


class NoMatrixForm(Exception):
    """A formula that cannot be written with matrices; the message says why."""


class Piece:
    """A scalar, column vector or matrix: how it is written, how tightly it binds, and its indices."""

    __slots__ = ("at", "binding", "pair", "parts")

    def __init__(
        self, parts: tuple[tuple[Layout, bool], ...], at: tuple[Index, ...], binding: int,
        pair: tuple[Piece, Piece] | None = None,
    ) -> None:  # fmt: skip
        self.parts, self.at, self.binding = parts, at, binding
        self.pair = pair  # two vectors whose entrywise product it is: summed they are u^T v

    def turned(self) -> Piece:
        """Give the transpose; that of a product is the product of the transposes in reverse."""
        if self.binding < PRODUCT:
            return Piece(((self.written(ATOM), True),), self.at[::-1], ATOM)
        return Piece(tuple((part, not flipped) for part, flipped in reversed(self.parts)), self.at[::-1], self.binding)

    def written(self, least: int) -> Layout:
        """Write it for a place that needs at least this binding."""
        shown = [("sup", part, TRANSPOSE) if flipped and not _diagonal(part) else part for part, flipped in self.parts]
        joined = spaced(shown)
        return fenced(joined) if self.binding < least else joined


def _diagonal(part: Layout) -> bool:
    return bool(part[0] == "row" and part[1][0] == ("fn", "diag"))


def _atom(shown: Layout, at: tuple[Index, ...]) -> Piece:
    return Piece(((shown, False),), at, ATOM)


def matrix_line(quantity: Quantity, out: tuple[Index, ...], expr: Expr, letters: LineLetters) -> Layout:
    """Write a whole line, `S = 1/√d · Q Kᵀ`, or raise `NoMatrixForm`."""
    name, at = _named(quantity, out, letters)
    return row(name, ("op", "="), formula(expr, at, letters))


def _named(quantity: Quantity, at: tuple[Index, ...], letters: LineLetters) -> tuple[Layout, tuple[Index, ...]]:
    """Write a tensor as a matrix; an index that numbers heads goes above it in brackets."""
    heads = tuple(index for index in at if index.cls in letters.letters.heads)
    rest = tuple(index for index in at if index.cls not in letters.letters.heads)
    if len(rest) > 2:
        raise NoMatrixForm(f"{quantity.name} has {len(at)} indices")
    name = quantity_name(quantity)
    if heads:
        name = ("sup", name, fenced(("ix", "".join(letters[index] for index in heads))))
    return name, rest


def formula(expr: Expr, at: tuple[Index, ...], letters: LineLetters) -> Layout:
    """Write a formula whose entries are at the given indices: none, one (a column) or two."""
    return _formula(expr, at, letters).written(SUM)


def _formula(expr: Expr, at: tuple[Index, ...], letters: LineLetters) -> Piece:
    if not expr:
        return _atom(("num", "0"), at)
    if len(expr) == 1 and expr[0].coef > 0:
        return _term(expr[0], at, letters)
    parts: list[Layout] = []
    for place, term in enumerate(expr):
        if term.coef < 0:
            parts.append(MINUS if place else ("sign", "−"))
        elif place:
            parts.append(PLUS)
        parts.append(_term(term, at, letters).written(HADAMARD))
    return Piece(((row(*parts), False),), at, SUM)


def _term(term: Term, at: tuple[Index, ...], letters: LineLetters) -> Piece:
    heads = [index for index in term.dummies if index.cls in letters.letters.heads]
    dummies = [index for index in term.dummies if index not in heads]
    for index in heads:
        letters[index]  # they take their letters before what stands inside
    pieces = _matched([_piece(factor, at, letters) for factor in term.factors], at)
    while dummies:
        dummy = min(dummies, key=lambda each: _cost(each, pieces))
        dummies.remove(dummy)
        pieces = _matched(_summed(pieces, dummy), at)
    core = _spread(pieces, at)
    front = coefficient(term, letters.letters.names)
    if heads:
        sign: Layout = ("sum", "Σ", ("ix", "".join(letters[index] for index in heads)))
        core = Piece(((row(sign, SPACE, core.written(PRODUCT)), False),), core.at, HADAMARD)
        letters.release(heads)
    if front is None:
        return core
    if core.parts and core.parts[0][0] == ("num", "1") and not core.at:
        return Piece(((front, False),), at, PRODUCT)
    return Piece(
        ((row(front, ("op", "·"), core.written(PRODUCT if core.binding != HADAMARD else ATOM)), False),),
        core.at,
        HADAMARD,
    )


def _cost(dummy: Index, pieces: list[Piece]) -> tuple[int, int]:
    """Sum first over what stands in few factors, and there over columns."""
    touching = [piece for piece in pieces if dummy in piece.at]
    return len(touching), sum(len(piece.at) == 2 and piece.at[0] is dummy for piece in touching)


def _piece(factor: Factor, at: tuple[Index, ...], letters: LineLetters) -> Piece:
    """Write one factor, with its power entrywise."""
    head, places, power = factor
    base = _base(head, places, at, letters)
    if power == 1 or not base.at:
        return _powered(base, power)
    if power == Fraction(1, 2):
        return _atom(row(("fn", "sqrt"), fenced(base.written(SUM))), base.at)
    return _powered(base, power)


def _powered(base: Piece, power: Exact) -> Piece:
    if power == 1:
        return base
    if power < 0 and not base.at:
        return _atom(("frac", ("num", "1"), _powered(base, -power).written(ATOM)), ())
    above: Layout = ("num", str(power))
    if power == Fraction(1, 2) and not base.at:
        return _atom(("sqrt", base.written(SUM)), ())
    shown = base.written(ATOM)
    if base.at:
        sign: tuple[Layout, ...] = (("sign", "−"),) if power < 0 else ()
        above = row(("sign", "⊙"), *sign, ("num", str(abs(power))))
    if shown[0] == "sup":
        shown = fenced(shown)
    return _atom(("sup", shown, above), base.at)


def _base(head: Head, places: tuple[Index, ...], at: tuple[Index, ...], letters: LineLetters) -> Piece:
    match head.kind:
        case "ref":
            name, rest = _named(head.data, places, letters)
            return _atom(name, rest)
        case "scalar":
            return _atom(("fn", "π") if head.data[1] is None else ("id", head.data[0]), ())
        case "sum":
            inside = opened(head, places)
            return _formula(inside, _natural(inside, _orientation(places, at, letters)), letters)
        case "fn" if len(head.inners) == 1:
            turned = _orientation(places, at, letters)
            return _atom(row(("fn", head.data), fenced(formula(opened(head, places), turned, letters))), turned)
        case "fn" if head.data in ("maximum", "minimum"):
            turned = _orientation(places, at, letters)
            inner = [formula(opened(head, places, which), turned, letters) if head.inners[which] and
            head.inners[which][0].factors
                     else _constant(head.inners[which], letters) for which in (0, 1)]  # fmt: skip
            return _atom(row(("fn", head.data[:3]), fenced(row(inner[0], ("sign", ","), SPACE, inner[1]))), turned)
        case "softmax":
            return _softmax(head, places, letters)
        case "cond":
            return _condition(head, places, at, letters)
        case _:
            raise NoMatrixForm(f"{head.data or head.kind} is written by entries")


def _constant(expr: Expr, letters: LineLetters) -> Layout:
    from tinyattn.symbolic.index_view import sum_of

    return sum_of(expr, letters)


def _condition(head: Head, places: tuple[Index, ...], at: tuple[Index, ...], letters: LineLetters) -> Piece:
    """Write a bracket on values, such as [X > 0]; one on indices has no matrix."""
    from tinyattn.symbolic.index_view import SIGNS

    if any(factor[0].kind == "index" for inner in head.inners for term in inner for factor in term.factors):
        raise NoMatrixForm("a condition on indices")
    turned = _orientation(places, at, letters)
    sides = [
        formula(opened(head, places, which), turned, letters) if any(term.factors for term in head.inners[which])
        else _constant(head.inners[which], letters) for which in (0, 1)
    ]  # fmt: skip
    sign = SIGNS[head.data]
    if not any(term.factors for term in head.inners[0]):
        sides.reverse()
        sign = {"<": ">", "≤": "≥"}.get(sign, sign)
    return _atom(fenced(row(sides[0], ("op", sign), sides[1]), "[", "]"), turned)


def _orientation(places: tuple[Index, ...], at: tuple[Index, ...], letters: LineLetters) -> tuple[Index, ...]:
    """Choose rows and columns as the line has them."""
    rest = tuple(index for index in places if index.cls not in letters.letters.heads)
    if len(rest) > 2:
        raise NoMatrixForm(f"{len(rest)} indices in one factor")
    if len(rest) == 2 and (rest[1] in at[:1] or rest[0] in at[1:]):
        return rest[::-1]
    return rest


def _natural(expr: Expr, turned: tuple[Index, ...]) -> tuple[Index, ...]:
    """Prefer the way in which the matrices inside a parenthesis stand."""
    for term in expr:
        for head, at, _ in term.factors:
            if head.kind == "ref" and len(turned) == 2 and at in (turned, turned[::-1]):
                return at
    return turned


def _softmax(head: Head, places: tuple[Index, ...], letters: LineLetters) -> Piece:
    over = [places[place] for place in head.data]
    rest = [index for index in places if index not in over and index.cls not in letters.letters.heads]
    if len(over) != 1 or len(rest) > 1:
        raise NoMatrixForm("softmax over several axes")
    turned = (*rest, *over)
    return _atom(row(("fn", "softmax"), fenced(formula(opened(head, places), turned, letters))), turned)


def _matched(pieces: list[Piece], at: tuple[Index, ...]) -> list[Piece]:
    """Join pieces at the same indices into entrywise products, scalars into one."""
    groups: dict[frozenset[Index], list[Piece]] = {}
    for piece in pieces:
        groups.setdefault(frozenset(piece.at), []).append(piece)
    return [group[0] if len(group) == 1 else _hadamard(group, at) for group in groups.values()]


def _hadamard(group: list[Piece], at: tuple[Index, ...]) -> Piece:
    first = group[0]
    if len(first.at) == 2 and first.at == at[::-1]:
        first = first.turned()
    aligned = [piece if piece.at == first.at else piece.turned() for piece in group]
    if not first.at:
        return Piece(tuple((piece.written(PRODUCT), False) for piece in aligned), (), PRODUCT)
    parts: list[Layout] = []
    for piece in aligned:
        if parts:
            parts.append(ENTRYWISE)
        parts.append(piece.written(HADAMARD if piece.binding != PRODUCT else PRODUCT))
    pair = (aligned[0], aligned[1]) if len(aligned) == 2 and len(first.at) == 1 else None
    return Piece(((row(*parts), False),), first.at, HADAMARD, pair)


def _summed(pieces: list[Piece], dummy: Index) -> list[Piece]:
    """Carry out the sum over one index."""
    touching = [piece for piece in pieces if dummy in piece.at]
    others = [piece for piece in pieces if dummy not in piece.at]
    matrices = [piece for piece in touching if len(piece.at) == 2]
    vectors = [piece for piece in touching if len(piece.at) == 1]
    if len(matrices) > 2 or any(piece.at[0] is piece.at[1] for piece in matrices):
        raise NoMatrixForm("an index that joins more than two matrices")
    left = [piece if piece.at[1] is dummy else piece.turned() for piece in matrices[:1]]
    right = [piece if piece.at[0] is dummy else piece.turned() for piece in matrices[1:]]
    if not matrices and vectors[0].pair is not None:
        ways = [_product([left.turned(), right], ()) for left, right in (vectors[0].pair, vectors[0].pair[::-1])]
        return [*others, min(ways, key=lambda way: sum(flipped for _, flipped in way.parts))]
    if not matrices:
        return [*others, _product([_row_of_ones(), vectors[0]], ())]
    if right:
        if vectors:
            middle = _atom(row(("fn", "diag"), fenced(vectors[0].written(SUM))), (dummy, dummy))
            return [*others, _product([left[0], middle, right[0]], (left[0].at[0], right[0].at[1]))]
        return [*others, _product([left[0], right[0]], (left[0].at[0], right[0].at[1]))]
    last = vectors[0] if vectors else _atom(ONES, (dummy,))
    return [*others, _product([left[0], last], (left[0].at[0],))]


def _row_of_ones() -> Piece:
    return Piece(((ONES, True),), (), ATOM)


def _product(pieces: list[Piece], at: tuple[Index, ...]) -> Piece:
    parts: list[tuple[Layout, bool]] = []
    for piece in pieces:
        parts.extend(piece.parts if piece.binding >= PRODUCT else ((piece.written(ATOM), False),))
    return Piece(tuple(parts), at, PRODUCT)


def _spread(pieces: list[Piece], at: tuple[Index, ...]) -> Piece:
    """Bring what is left to the shape of the line, spreading with the vector 1 where an index is missing."""
    scalars = [piece for piece in pieces if not piece.at]
    arrays = [piece for piece in pieces if piece.at]
    if any(index not in at for piece in arrays for index in piece.at):
        raise NoMatrixForm("an index that is left over")
    core = _arranged(arrays, at)
    if not scalars:
        return core if core is not None else _atom(("num", "1"), at)
    if core is None:
        return scalars[0]
    front = scalars[0].written(PRODUCT)
    close = core.binding == ATOM and front[0] != "frac"
    return Piece(((row(front, SPACE if close else ("op", "·"), core.written(PRODUCT)), False),), core.at, HADAMARD)


def _arranged(arrays: list[Piece], at: tuple[Index, ...]) -> Piece | None:
    if len(at) < 2:
        if not at:
            return None
        return arrays[0] if arrays else _atom(ONES, at)
    full = [piece if piece.at == at else piece.turned() for piece in arrays if len(piece.at) == 2]
    rows = [piece for piece in arrays if piece.at == at[:1]]
    columns = [piece for piece in arrays if piece.at == at[1:]]
    if not full and rows and columns:
        return _product([rows[0], columns[0].turned()], at)
    ones = _atom(ONES, ())
    spread = [_product([piece, ones.turned()], at) for piece in rows]
    spread += [_product([ones, piece.turned()], at) for piece in columns]
    if not full and not spread:
        return _product([ones, ones.turned()], at)
    return _hadamard([*full, *spread], at) if len(full) + len(spread) > 1 else (full + spread)[0]
