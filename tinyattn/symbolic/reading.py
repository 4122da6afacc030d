"""A recorded graph read as formulas: for every node its definition, over the node's own indices.

The definitions of the operations are the only source; no forward and no gradient rule is looked at. Views (reshape,
transpose, kept axes) rename indices and cost nothing. A place that is not a plain index (`x[index[t], j]`, `x[i - 3]`)
becomes a sum over the whole axis with a bracket, `Σ_p [p = index_t] x_pj`, so that one rule derives everything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from tinyattn.errors import GraphError
from tinyattn.symbolic.canonical import Heads
from tinyattn.symbolic.definition import (
    Add,
    Apply,
    Bracket,
    Element,
    Expression,
    Group,
    Letter,
    Multiply,
    Number,
    Over,
    Position,
    Power,
    Scalar,
    Size,
    names_in,
)
from tinyattn.symbolic.fitting import Fitted, fit
from tinyattn.symbolic.lengths import Lengths
from tinyattn.symbolic.operands import Array, array_parameters
from tinyattn.symbolic.terms import (
    ONE,
    Exact,
    Expr,
    Factor,
    Index,
    Quantity,
    Term,
    counted,
    product,
    times,
)

MOST_UNDER_A_ROOT = 100.0


class Axes:
    """The axes of everything in a graph, joined by the operations' shape rules."""

    def __init__(self, graph: Any, wanted: Iterable[int]) -> None:
        self.graph = graph
        self.lengths = Lengths()
        self.nodes: dict[int, tuple[int, ...]] = {}
        self.fitted: dict[int, Fitted] = {}
        self.arrays: dict[int, dict[str, Array]] = {}
        self.array_axes: dict[tuple[int, str], tuple[int, ...]] = {}
        self.letters: dict[int, dict[str, int]] = {}
        for index in wanted:
            node = graph.nodes[index]
            self.nodes[index] = tuple([self.lengths.new(length) for length in node.shape])
            if node.op is not None:
                self._join(node)

    def _join(self, node: Any) -> None:
        sources = [self.graph.nodes[each] for each in node.inputs]
        shapes = tuple([source.shape for source in sources])
        text = node.op.definition_text(shapes, node.params)
        arrays = array_parameters(node.params, shapes[0] if shapes else (), names_in(text)) if node.params else {}
        names = node.op.names_of(len(sources))
        known = dict(zip(names, shapes, strict=True))
        known.update((name, value.shape) for name, value in arrays.items())
        fitted = fit(text, known, node.shape)
        operands = {name: self.nodes[source.index] for name, source in zip(names, sources, strict=True)}
        for name, value in arrays.items():
            if value.ndim:
                operands[name] = self.array_axes[node.index, name] = tuple([self.lengths.new(n) for n in value.shape])
        self.fitted[node.index], self.arrays[node.index] = fitted, arrays
        self.letters[node.index] = self._letters(fitted, self.nodes[node.index], operands)

    def _letters(self, fitted: Fitted, out: tuple[int, ...], operands: dict[str, tuple[int, ...]]) -> dict[str, int]:
        """Give every letter the number of an axis, and join all axes that it runs over."""
        letters = {
            part.name: axis for part, axis in zip(fitted.output.indices, out, strict=True) if isinstance(part, Letter)
        }
        places = [(position, operands[name][axis]) for name, axis, position in fitted.places]
        lengths = self.lengths
        for position, axis in places:
            if isinstance(position, Letter):
                if position.name not in letters:
                    letters[position.name] = axis
                else:
                    lengths.join(letters[position.name], axis)
        named = {position.name for position, _ in places if isinstance(position, Letter)}
        named |= {letter for position, _ in places if isinstance(position, Group) for letter in position.letters}
        for part, axis in zip(fitted.output.indices, out, strict=True):
            if isinstance(part, Number) or (
                isinstance(part, Letter) and lengths.length[axis] == 1 and part.name not in named
            ):
                lengths.bind(axis, ())
            elif isinstance(part, Group):
                lengths.bind(axis, [letters[letter] for letter in part.letters])
        for position, axis in places:
            if isinstance(position, Group):
                lengths.bind(axis, [letters[letter] for letter in position.letters])
            elif isinstance(position, Number) and lengths.length[axis] == 1:
                lengths.bind(axis, ())
        return letters


class Definitions:
    """The definition of each node as a formula over quantities.

    Parameters
    ----------
    axes : Axes
        The axes of the graph, joined.
    quantities : dict of int to Quantity
        The tensor of each node.
    """

    def __init__(self, axes: Axes, quantities: dict[int, Quantity], heads: Heads) -> None:
        self.axes, self.quantities, self.heads = axes, quantities, heads
        self.inlined: dict[int, tuple[tuple[Index, ...], Expr]] = {}
        self.parameters: dict[tuple[int, str], Quantity] = {}

    def of(self, index: int) -> tuple[tuple[Index, ...], Expr]:
        """Give the indices of a node's entries and the formula of one entry."""
        return _Reader(self, index).read()

    def constant(self, node: Any) -> Term | None:
        """Give a number that was written into an expression as an exact one: a short decimal, or the root of a whole
        number.
        """
        if node.op is None and node.shape == () and node.kind == "constant":
            number = float(node.value)
            text = repr(number)
            if len(text) <= 8 and text not in ("inf", "-inf", "nan"):
                value = Fraction(text)
                return Term(int(value) if value.denominator == 1 else value)
            square = round(number * number) if 1 < number < MOST_UNDER_A_ROOT else 0
            if square and number == math.sqrt(square):
                return Term(factors=(self.heads.make("sum", None, ((Term(square),),), (), Fraction(1, 2)),))
        return None


class _Reader:
    """One node's definition turned into terms."""

    def __init__(self, definitions: Definitions, index: int) -> None:
        self.all, self.heads = definitions, definitions.heads
        self.node = definitions.axes.graph.nodes[index]
        self.fitted = definitions.axes.fitted[index]
        self.lengths = definitions.axes.lengths
        self.arrays = definitions.axes.arrays[index]
        names = self.node.op.names_of(len(self.node.inputs))
        self.inputs = dict(zip(names, self.node.inputs, strict=True))
        self.axis_of = definitions.axes.letters[index]
        self.letters: dict[str, tuple[Index, ...]] = {}

    def read(self) -> tuple[tuple[Index, ...], Expr]:
        out: list[Index] = []
        for part in self.fitted.output.indices:
            for letter in (part.name,) if isinstance(part, Letter) else part.letters if isinstance(part, Group) else ():
                self.letters[letter] = self._fresh(letter)
                out.extend(self.letters[letter])
        return tuple(out), tuple([term for term in self.value(self.fitted.value) if term.coef != 0])

    def _fresh(self, letter: str) -> tuple[Index, ...]:
        return tuple([Index(cls) for cls in self.lengths.atoms(self.axis_of[letter])])

    def value(self, tree: Expression) -> Expr:
        """Give a part of the definition as a formula."""
        match tree:
            case Element():
                return self._element(tree)
            case Multiply(factors):
                return (product([self.single(self.value(factor)) for factor in factors]),)
            case Over(kind, letters, body):
                return self._over(kind, letters, body)
            case Number(value):
                return (Term(int(value) if value.denominator == 1 else value),) if value else ()
            case Add(terms):
                return tuple([term for part in terms for term in self.value(part)])
            case Power(base, exponent):
                return self._power(base, exponent)
            case Apply(function, arguments):
                return self._apply(function, arguments)
            case Bracket():
                return self._bracket(tree)
            case Letter(name):
                return self._letter_value(name)
            case Size(of, axis):
                atoms = self.lengths.atoms(self.axis_of[of] if axis is None else self._axis(of, axis))
                return (product([Term(sizes=((cls, 1),)) for cls in atoms]),)
            case Scalar(name):
                return self._scalar(name)

    def single(self, expr: Expr) -> Term:
        """Give a formula as one term, in parentheses if it has several."""
        if len(expr) == 1:
            return expr[0]
        return Term(factors=(self.heads.make("sum", None, (expr,)),)) if expr else Term(0)

    def _axis(self, operand: str, axis: int) -> int:
        return self.all.axes.nodes[self.inputs[operand]][axis]

    def _scalar(self, name: str) -> Expr:
        if name == "pi":
            return (Term(factors=(self.heads.scalar("pi", None),)),)
        value = self.arrays[name][()]
        if float(value) == int(value):
            return (Term(int(value)),)
        return (Term(factors=(self.heads.scalar(name, float(value)),)),)

    def _letter_value(self, name: str) -> Expr:
        """Give an index as a number; a merged one by its parts."""
        atoms = self.letters[name]
        terms = []
        for at, index in enumerate(atoms):
            stride = product([Term(sizes=((each.cls, 1),)) for each in atoms[at + 1 :]])
            terms.append(times(stride, Term(factors=(self.heads.index(index),))))
        return tuple(terms)

    def _element(self, element: Element) -> Expr:
        places, conditions = self._at(element)
        if element.name not in self.inputs:
            quantity = self._parameter(element.name)
            term = Term(factors=((self.heads.of(quantity), places, 1),))
            return (self._where(term, places, conditions),)
        source = self.inputs[element.name]
        constant = self.all.constant(self.all.axes.graph.nodes[source])
        if constant is not None:
            return (constant,)
        if source in self.all.inlined:
            return self._inlined(source, places, conditions)
        term = Term(factors=((self.heads.of(self.all.quantities[source]), places, 1),))
        return (self._where(term, places, conditions),)

    def _inlined(self, source: int, places: tuple[Index, ...], conditions: list[Factor]) -> Expr:
        from tinyattn.symbolic.terms import fresh

        out, expr = self.all.inlined[source]
        names = dict(zip(out, places, strict=True))
        return tuple([self._where(fresh(term, names), places, conditions) for term in expr])

    def _where(self, term: Term, places: tuple[Index, ...], conditions: list[Factor]) -> Term:
        """Sum over the places that are not plain indices, each tied by its bracket."""
        if not conditions:
            return term
        known = {index for group in self.letters.values() for index in group}
        extra = tuple([index for index in places if index not in known])
        return times(term, Term(factors=tuple(conditions), dummies=extra))

    def _at(self, element: Element) -> tuple[tuple[Index, ...], list[Factor]]:
        """Give the indices of an entry, and a bracket for every place that is not a plain index."""
        if element.name in self.inputs:
            axes = self.all.axes.nodes[self.inputs[element.name]]
        else:
            axes = self.all.axes.array_axes.get((self.node.index, element.name), ())
        places: list[Index] = []
        conditions: list[Factor] = []
        for position, axis in zip(element.indices, axes, strict=True):
            atoms = self.lengths.atoms(axis)
            plain = self._plain(position)
            if plain is not None and [each.cls for each in plain] == list(atoms) and not set(plain) & set(places):
                places.extend(plain)
            elif atoms:
                own = tuple([Index(cls) for cls in atoms])
                places.extend(own)
                self.letters["."], value = own, self._position_value(position)
                conditions.append(self.heads.make("cond", "==", (self._letter_value("."), value)))
                del self.letters["."]
        return tuple(places), conditions

    def _plain(self, position: Position) -> tuple[Index, ...] | None:
        if isinstance(position, Letter):
            return self.letters[position.name]
        if isinstance(position, Group):
            return tuple([index for letter in position.letters for index in self.letters[letter]])
        return None

    def _position_value(self, position: Position) -> Expr:
        if isinstance(position, Group):
            value: Expr = ()
            for letter in position.letters:
                size = product([Term(sizes=((each.cls, 1),)) for each in self.letters[letter]])
                value = tuple([times(term, size) for term in value]) + self._letter_value(letter)
            return value
        return self.value(position)  # type: ignore[arg-type]  # fitted definitions hold no `...`

    def _parameter(self, name: str) -> Quantity:
        key = (self.node.index, name)
        if key not in self.all.parameters:
            axes = tuple([self.lengths.atoms(axis) for axis in self.all.axes.array_axes[key]])
            self.all.parameters[key] = Quantity(
                name, "parameter", self.node.index, axes, self.arrays[name].dtype == bool
            )
        return self.all.parameters[key]

    def _over(self, kind: str, letters: tuple[str, ...], body: Expression) -> Expr:
        saved = {letter: self.letters.get(letter) for letter in letters}
        for letter in letters:
            self.letters[letter] = self._fresh(letter)
        dummies = tuple([index for letter in letters for index in self.letters[letter]])
        inside = self.value(body)
        for letter, before in saved.items():
            if before is None:
                del self.letters[letter]
            else:
                self.letters[letter] = before
        if kind == "sum":
            return tuple([self._summed(term, dummies) for term in inside])
        if kind in ("max", "min"):
            return (Term(factors=(self.heads.make(kind, None, (inside,), dummies),)),) if dummies else inside
        raise GraphError(
            f"{self.node.op_name} cannot be expressed in the index notation used here: "
            "it takes a product over an axis.\n"
            "  Its gradient is still checked at explicit sizes; for a formula, write the product with exp, log and sum."
        )

    @staticmethod
    def _summed(term: Term, dummies: tuple[Index, ...]) -> Term:
        return counted(Term(term.coef, term.factors, term.dummies + dummies, term.sizes))

    def _power(self, base: Expression, exponent: Expression) -> Expr:
        power = self._exact(self.value(exponent))
        inside = self.value(base)
        if power is None:
            return (Term(factors=(self.heads.make("fn", "power", (inside, self.value(exponent))),)),)
        return (raised(self.heads, inside, power),)

    @staticmethod
    def _exact(expr: Expr) -> Exact | None:
        if not expr:
            return 0
        return expr[0].coef if len(expr) == 1 and not expr[0].factors and not expr[0].sizes else None

    def _apply(self, function: str, arguments: tuple[Expression, ...]) -> Expr:
        values = tuple([self.value(each) for each in arguments])
        if function == "sqrt":
            return (raised(self.heads, values[0], Fraction(1, 2)),)
        return (Term(factors=(self.heads.make("fn", function, values),)),)

    def _bracket(self, bracket: Bracket) -> Expr:
        factors = []
        for each in bracket.conditions:
            left, sign, right = self.value(each.left), each.sign, self.value(each.right)
            if sign in (">", ">="):
                left, right, sign = right, left, "<" + sign[1:]
            factors.append(Term(factors=(self.heads.make("cond", sign, (left, right)),)))
        return (product(factors),)


def raised(heads: Heads, base: Expr, power: Exact) -> Term:
    """Raise a formula to an exact power; a product by its factors where that is always right."""
    if power == 1 and len(base) == 1:
        return base[0]
    if power == 0:
        return ONE
    if len(base) == 1 and not base[0].dummies:
        term = base[0]
        whole = power == int(power)
        single = term.coef == 1 and len(term.factors) == 1 and not term.sizes
        positive = term.coef > 0 and all(_positive(factor) for factor in term.factors)
        simple = single and term.factors[0][2] == 1
        if (whole and term.coef != 0) or simple or positive:
            coef = _power_of(term.coef, power)
            if coef is not None:
                factors = tuple([(head, at, _clean(exponent * power)) for head, at, exponent in term.factors])
                sizes = tuple([(cls, _clean(exponent * power)) for cls, exponent in term.sizes])
                return Term(coef, factors, (), sizes)
    return Term(factors=(heads.make("sum", None, (base,), (), _clean(power)),))


def _positive(factor: Factor) -> bool:
    head = factor[0]
    return (head.kind == "fn" and head.data == "exp") or (
        head.kind == "scalar" and (head.data[1] is None or head.data[1] > 0)
    )


def _clean(value: Exact) -> Exact:
    return int(value) if value == int(value) else value


def _power_of(coef: Exact, power: Exact) -> Exact | None:
    """Raise a number exactly, or give None."""
    if coef == 1:
        return 1
    if power == int(power):
        return _clean(Fraction(coef) ** int(power)) if coef != 0 else None
    return None
