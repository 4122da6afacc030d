"""What `prove` hands out: for every line that it holds for all sizes, or where it does not, with numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyattn.errors import GraphError
from tinyattn.show import Worded
from tinyattn.symbolic.derivation import Line, Lines
from tinyattn.symbolic.numeric import Values
from tinyattn.symbolic.proving import Expander, difference, summed, tangent
from tinyattn.symbolic.terms import Expr, Index, Quantity, Term, mentioned
from tinyattn.symbolic.tidying import Pattern

Meanings = dict[Quantity, tuple[tuple[Index, ...], Expr]]


class Claim:
    """One proved (or refuted) line.

    Attributes
    ----------
    name, op : str
        The line, and the operation of the node that it belongs to.
    node : int
        The node of the graph.
    holds : bool
        Whether both sides are the same sum of terms.
    terms : int
        How many canonical terms were compared.
    counterexample : str
        Sizes, values and both numbers, where the line is wrong; "undecided" where numbers agree but the proof does
        not close.
    given : str
        What the recorded arrays were taken to be at every size, in words; "" for nothing.
    """

    __slots__ = ("counterexample", "given", "holds", "name", "node", "op", "terms")

    def __init__(
        self, name: str, op: str, node: int, holds: bool, terms: int, counterexample: str = "", given: str = ""
    ) -> None:
        self.name, self.op, self.node, self.holds, self.terms = name, op, node, holds, terms
        self.counterexample, self.given = counterexample, given

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        if self.holds:
            given = f", given that {self.given}" if self.given else ""
            return f"{self.name}: proved for all sizes ({self.terms} term{'s' if self.terms != 1 else ''}){given}"
        return f"{self.name} ({self.op}): NOT proved\n    {self.counterexample}"


class Certificate(Worded):
    """The result of `prove`; true if every line is proved.

    Attributes
    ----------
    claims : tuple of Claim
    whole : bool
        Whether the whole derivation was proved at once as well.
    assumptions : tuple of str
        What is taken for granted: that arrays of whole numbers hold valid indices.
    missing : tuple of str
        Tensors whose gradient was asked for and has no formula, so that nothing is said of it.
    """

    def __init__(
        self, claims: Sequence[Claim], milliseconds: float, whole: bool, assumptions: Sequence[str] = (),
        missing: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.claims, self.milliseconds, self.whole = tuple(claims), milliseconds, whole
        self.assumptions, self.missing = tuple(assumptions), tuple(missing)

    def __bool__(self) -> bool:
        return all(claim.holds for claim in self.claims)

    @property
    def refuted(self) -> tuple[Claim, ...]:
        """The lines that are not proved."""
        return tuple(claim for claim in self.claims if not claim.holds)

    def __str__(self) -> str:
        terms = sum(claim.terms for claim in self.claims)
        if self:
            how = "line by line and as a whole" if self.whole else "line by line"
            given = f" (given that {', '.join(self.assumptions)} hold valid indices)" if self.assumptions else ""
            count = f"{len(self.claims)} lines, {terms} terms, {self.milliseconds:.1f} ms"
            silent = f"; no formula for the gradient by {', '.join(self.missing)}" if self.missing else ""
            return f"proved for all sizes, {how}{given}: {count}{silent}"
        return "\n".join(str(claim) for claim in self.refuted)


def prove(lines: Lines, whole: bool) -> Certificate:
    """Prove every line, and with `whole` also the sum over all leaves at once."""
    start = time.perf_counter()
    claims = [_forward_claim(lines, line) for line in lines.forward if line.expr is not line.definition]
    readers = readers_of(lines)
    backward = [*lines.backward, *_silent_lines(lines)]
    claims += [_backward_claim(lines, line, readers.get(line.node, [])) for line in backward]
    if whole:
        claims.append(_whole_claim(lines))
    assumed = sorted({each.name for each in lines.definitions.parameters.values() if each.head and not each.boolean})
    missing = [lines.quantities[index].name for index in lines.wrt if index in lines.blocked]
    return Certificate(claims, (time.perf_counter() - start) * 1000, whole, assumed, missing)


def readers_of(lines: Lines) -> dict[int, list[Line]]:
    """Give for every node the lines whose definition depends on it, and to which a cotangent comes."""
    readers: dict[int, list[Line]] = {}
    told = {lines.output, *(line.node for line in lines.backward)}
    for line in (each for each in lines.forward if each.node in told):
        for quantity in sorted(mentioned(line.definition), key=lambda each: each.node):
            if quantity.kind == "value":
                readers.setdefault(quantity.node, []).append(line)
    return readers


def _silent_lines(lines: Lines) -> list[Line]:
    """Give a line `x̄ = 0`, to be proved too, for every value that has none because nothing comes back to it."""
    told = {line.node for line in lines.backward}
    told |= set(lines.blocked)
    silent = [line for line in lines.forward if line.node in lines.reached and line.node not in told]
    return [
        Line(lines.adjoint(each.node), tuple(map(Index, each.quantity.classes)), (), each.node, "", "backward")
        for each in silent
        if each.node != lines.output
    ]


def operations_behind(lines: Lines, line: Line) -> str:
    """Name the operations whose backward rules make a gradient."""
    return _ops(lines, readers_of(lines).get(line.node, []))


def _forward_claim(lines: Lines, line: Line) -> Claim:
    labels = {index: label for label, index in enumerate(line.out)}
    expander = Expander(lines.heads, {})
    shown, meant = expander.expand(lines.unnamed(line.expr)), expander.expand(lines.unnamed(line.definition))
    rest = difference(shown, meant, labels)
    return Claim(
        line.quantity.name,
        line.rule,
        line.node,
        not rest,
        len(meant),
        "" if not rest else _forward_numbers(lines, line),
    )


def _backward_claim(lines: Lines, line: Line, readers: Sequence[Line]) -> Claim:
    """Compare Σ x̄ ẋ with what the consumers' definitions change by."""
    value = lines.quantities[line.node]
    moved = _tangent_of(lines, line.node)
    expander = Expander(lines.heads, _patterns(lines, readers))
    left = expander.expand(summed(lines.unnamed(line.expr), ((lines.heads.of(moved), line.out, 1),), line.out))
    right: list[Term] = []
    for reader in readers:
        change = tangent(lines.heads, reader.definition, {value: moved})
        right += expander.expand(summed(lines.unnamed(change), lines.seed(reader), reader.out))
    rest = difference(left, right, {})
    name, op = f"{value.name} (gradient)", _ops(lines, readers)
    return Claim(name, op, line.node, not rest, len(right), "" if not rest else _backward_numbers(lines, line, readers))


def _patterns(lines: Lines, readers: Sequence[Line]) -> Meanings:
    found: Meanings = {}
    for reader in readers:
        if Pattern.of(reader.quantity, reader.out, reader.definition) is not None:
            found[reader.quantity] = (reader.out, lines.unnamed(reader.definition))
    return found


def _ops(lines: Lines, readers: Sequence[Line]) -> str:
    """Name the operations through which a cotangent comes, those written into a line included."""
    names: dict[str, None] = {}
    for reader in readers:
        for index in (*reader.absorbed, reader.node):
            names[lines.graph.nodes[index].op_name] = None
    return ", ".join(names) or "no consumer"


def _tangent_of(lines: Lines, index: int) -> Quantity:
    value = lines.quantities[index]
    return Quantity(value.name, "tangent", index, value.axes)


def _whole_claim(lines: Lines) -> Claim:
    """Compare Σ over leaves of x̄ ẋ with the change of the loss, everything in terms of forward values."""
    meanings: Meanings = _patterns(lines, lines.forward)
    pushes = {index: _tangent_of(lines, index) for index in lines.free()}
    computed = {line.node for line in lines.forward}
    moves = {lines.quantities[index]: push for index, push in pushes.items() if index not in computed}
    change: Expr = ()
    for line in lines.forward:
        if line.node not in lines.reached:
            continue
        change = lines.unnamed(tangent(lines.heads, line.definition, moves))
        if line.node in pushes:  # in the middle: it moves with what it was made from, and is pushed by itself too
            change = (*change, Term(factors=((lines.heads.of(pushes[line.node]), line.out, 1),)))
        moves[line.quantity] = _tangent_of(lines, line.node)
        meanings[moves[line.quantity]] = (line.out, change)
    for line in lines.backward:
        meanings[line.quantity] = (line.out, lines.unnamed(line.expr))
    last = lines.forward[-1]
    expander = Expander(lines.heads, meanings)
    left: list[Term] = []
    for index, push in pushes.items():
        line = next(each for each in lines.backward if each.node == index)
        left += expander.expand(summed(lines.unnamed(line.expr), ((lines.heads.of(push), line.out, 1),), line.out))
    right = expander.expand(summed(change, lines.seed(last), last.out))
    rest = difference(left, right, {})
    message = "" if not rest else f"{len(rest)} terms of the whole derivation do not cancel"
    return Claim("the whole derivation", "all", lines.output, not rest, len(right), message)


# -- numbers where a line is wrong ----------------------------------------------------------------------------


def _values_for(lines: Lines, needed: Mapping[Quantity, Any], meanings: Meanings, seed: int) -> Values:
    """Give random numbers to what is free, and to names the numbers that follow."""
    every = dict(needed)
    for quantity in needed:
        if quantity in meanings:
            every |= mentioned(meanings[quantity][1])
    values = _random_values(lines, {quantity: None for quantity in every if quantity not in meanings}, seed)
    for quantity, (out, expr) in meanings.items():
        if quantity in every:
            values.put(quantity, values.of(expr, out))
    return values


class _Sizes(dict[int, int]):
    """Lengths by size class; one that no tensor has here, but a coefficient, is 2."""

    def __missing__(self, cls: int) -> int:
        self[cls] = 2
        return 2


def _random_values(lines: Lines, quantities: Mapping[Quantity, Any], seed: int) -> Values:
    rng = np.random.default_rng(seed)
    sizes = _Sizes()
    fixed = {cls for quantity in quantities if quantity.kind == "parameter" for cls in quantity.classes}
    values = Values(sizes)
    for quantity in sorted(quantities, key=lambda each: (each.node, each.kind, each.name)):
        for cls in quantity.classes:
            recorded = lines.axes.lengths.length[cls]
            sizes.setdefault(cls, recorded if cls in fixed else int(rng.integers(2, 4)))
        shape = tuple(sizes[cls] for cls in quantity.classes)
        if quantity.kind == "parameter":
            values.put(quantity, lines.axes.arrays[quantity.node][quantity.name].reshape(shape))
        else:
            values.put(quantity, rng.uniform(0.5, 1.5, shape))
    return values


def _forward_numbers(lines: Lines, line: Line) -> str:
    expr = lines.unnamed(line.expr)
    values = _values_for(lines, mentioned(expr) | mentioned(line.definition), {}, 1)
    shown, meant = values.of(expr, line.out), values.of(line.definition, line.out)
    return _compared(lines, values, line, shown, meant, "the line gives", "the definition gives")


def _backward_numbers(lines: Lines, line: Line, readers: Sequence[Line]) -> str:
    """Evaluate the line, and differentiate the consumers' definitions numerically, at random sizes and values."""
    value = lines.quantities[line.node]
    expr = lines.unnamed(line.expr)
    needed = mentioned(expr) | {value: None}
    for reader in readers:
        needed |= mentioned(reader.definition)
        if lines.seed(reader):
            needed[lines.adjoint(reader.node)] = None
    values = _values_for(lines, needed, _patterns(lines, readers), 2)
    shown = values.of(expr, line.out)
    meant = np.zeros_like(shown)
    for place in np.ndindex(*shown.shape):
        meant[place] = sum(_slope(lines, values, value, place, reader) for reader in readers)
    return _compared(lines, values, line, shown, meant, "the line gives", "the definitions give")


def _slope(lines: Lines, values: Values, quantity: Quantity, place: tuple[int, ...], reader: Line) -> float:
    step = 1e-6
    seed = summed(reader.definition, lines.seed(reader), reader.out)
    sides = []
    for sign in (1, -1):
        array = values.array(quantity).copy()
        array[place] += sign * step
        sides.append(float(values.moved(quantity, array).of(seed, ())))
    return (sides[0] - sides[1]) / (2 * step)


def _compared(lines: Lines, values: Values, line: Line, shown: Any, meant: Any, left: str, right: str) -> str:
    gap = np.abs(shown - meant)
    if gap.size == 0 or gap.max() < 1e-6 * (1 + np.abs(meant).max()):
        return "undecided: both sides agree in numbers, but the terms could not be brought to the same form"
    place = tuple(int(each) for each in np.unravel_index(int(np.argmax(gap)), gap.shape))
    sizes = ", ".join(f"{lines.length_name(cls)} = {size}" for cls, size in sorted(values.sizes.items()))
    at = f"entry {place}: " if place else ""
    return f"at sizes {sizes}: {at}{left} {shown[place]:.6g}, {right} {meant[place]:.6g}"


def prove_or_explain(lines: Lines, whole: bool | None) -> Certificate:
    """Prove; with `whole` None the whole is attempted where the derivation is small."""
    attempt = len(lines.forward) <= 12 if whole is None else whole
    try:
        return prove(lines, attempt)
    except GraphError:
        if whole:
            raise
        return prove(lines, False)
