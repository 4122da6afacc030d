"""The definition of an operation, read from its one line of text.

A definition is the textbook meaning of an operation in index notation::

    y[i,k] = sum_j a[i,j] * b[j,k]
    y[..., i] = exp(x[..., i]) / sum_j exp(x[..., j])

Here the text becomes a small tree. `entrywise.py` computes with it, `read.py` makes formulas of it, `referee.py`
hands it to SymPy. It knows neither an operation's forward nor its gradient rules.

The grammar, with what was settled where the design left room:

* Left of `=` stands the output, `y[...]`; `y[]` is a single number. A position holds a letter, `...`, a group
  `(h d)` (two or more letters, row-major), or the number `0` for an axis of length 1.
* An index letter is one lowercase letter with optional digits. It is an index because the left side or a `sum_`
  introduces it; every other bare name is a scalar parameter, `pi` excepted. A letter of the left side that occurs in no
  input has length 1 (kept axes).
* `sum_i,j`, `prod_i`, `max_i`, `min_i` (no blank inside) bind the product that follows, divisions included, up to
the next
  `+` or `-` of the same level: `sum_j x[j] / size(j)` is the mean. `sum_...` binds all axes that `...` stands for.
* `...` may stand once in an index list, usually first. Among operands it is right-aligned, and a length 1 in it is
  stretched. A plain letter is never stretched.
* `^` binds tighter than the unary minus; its right operand is a number, a name, an element or a parenthesis.
* `[i <= j, t[i] != ignore]` is 1 if all conditions hold, else 0; a bare value (`[keep[i,j]]`) holds if it is not 0.
In a
  product, a factor made of brackets and numbers alone that is 0 makes the product 0 whatever its other factors are
  (nan, 1/0, an element out of range), so `[keep[i]] * x[i] / z[]` and `(1 - [keep[i]]) * x[i]` both hide.
* `size(i)` is the length of the axis of `i`, `size(x, 1)` that of axis 1 of `x`.
* `x[2*i + 1, index[t]]`: positions of inputs are whole-number expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from tinyattn.errors import ArgumentError

FUNCTIONS = frozenset("exp log sqrt sin cos tanh sigmoid erf abs sign maximum minimum".split())
TWO_ARGUMENTS = frozenset(("maximum", "minimum"))


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number: `2`, `0.5`."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Letter:
    """An index letter, as an index or as a value (`[i <= j]`)."""

    name: str


@dataclass(frozen=True, slots=True)
class Scalar:
    """A parameter by its name (`eps`, `exponent`), or `pi`."""

    name: str


@dataclass(frozen=True, slots=True)
class Size:
    """The length of the axis that a letter runs over, or of a numbered axis of an operand."""

    of: str
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class Ellipsis_:
    """`...` in an index list."""


@dataclass(frozen=True, slots=True)
class Group:
    """`(h d)`: one axis, seen as several in row-major order."""

    letters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """An entry of an input or of an array parameter: `x[i, j]`."""

    name: str
    indices: tuple[Position, ...]


@dataclass(frozen=True, slots=True)
class Add:
    """A sum of two or more terms."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Multiply:
    """A product; a division is a factor with power -1, a minus sign a factor -1."""

    factors: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Power:
    """`base ^ exponent`."""

    base: Expression
    exponent: Expression


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of one or two values."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Over:
    """`sum_`, `prod_`, `max_` or `min_` over letters (`...` among them for all leading axes)."""

    kind: str
    letters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class Comparison:
    """One condition of a bracket; `sign` is one of == != < <= > >=."""

    left: Expression
    sign: str
    right: Expression


@dataclass(frozen=True, slots=True)
class Bracket:
    """1 if every condition holds, else 0."""

    conditions: tuple[Comparison, ...]


Expression: TypeAlias = Number | Letter | Scalar | Size | Element | Add | Multiply | Power | Apply | Over | Bracket
Position: TypeAlias = Expression | Ellipsis_ | Group


@dataclass(frozen=True, slots=True)
class Definition:
    """What a definition says: the output's index list and the value of one entry."""

    output: Element
    value: Expression
    text: str


MINUS_ONE = Number(Fraction(-1))
ONE = Number(Fraction(1))

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.\d+|\d+)"
    r"|(?P<over>(?:sum|prod|max|min)_(?:\.\.\.|[a-z]\d*)(?:,(?:\.\.\.|[a-z]\d*))*(?![a-z_0-9]))"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<sign>\.\.\.|==|!=|<=|>=|[-+*/^()\[\],=<>]))"
)
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))


@lru_cache(maxsize=4096)
def parse(text: str) -> Definition:
    """Read a definition.

    Examples
    --------
    >>> parse("y[i] = 2 * x[i]").value
    Multiply(factors=(Number(value=Fraction(2, 1)), Element(name='x', indices=(Letter(name='i'),))))
    """
    return _Parser(text).definition()


@lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    """Give the names of all operands and parameters that a definition mentions."""
    return frozenset(part.name for part in walk(parse(text).value) if isinstance(part, (Element, Scalar)))


def is_letter(name: str) -> bool:
    """Say whether a name can be an index letter: `i`, `j2`."""
    return name[0].islower() and (len(name) == 1 or name[1:].isdigit())


def walk(tree: Position) -> Iterator[Position]:
    """Give every part of an expression, parents first."""
    yield tree
    for part in parts(tree):
        yield from walk(part)


def parts(tree: Position) -> tuple[Position, ...]:
    """Give the direct parts of an expression."""
    match tree:
        case Element(_, indices):
            return indices
        case Add(terms):
            return terms
        case Multiply(factors):
            return factors
        case Power(base, exponent):
            return (base, exponent)
        case Apply(_, arguments):
            return arguments
        case Over(_, _, body):
            return (body,)
        case Bracket(conditions):
            return tuple(side for each in conditions for side in (each.left, each.right))
        case _:
            return ()


class _Parser:
    """Recursive descent over the tokens of one definition."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split(text)
        self.at = 0
        self.letters: set[str] = set()

    def _split(self, text: str) -> list[tuple[str, str]]:
        tokens, at = [], 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise self._error(f"cannot read {text[at:].strip()[:12]!r}")
            tokens.append((str(found.lastgroup), str(found.group(str(found.lastgroup)))))
            at = found.end()
        return tokens

    def _error(self, what: str) -> ArgumentError:
        return ArgumentError(
            f"the definition {self.text!r} cannot be read: {what}.\n"
            "  A definition looks like  y[i,k] = sum_j a[i,j] * b[j,k] ."
        )

    def _peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def _next(self) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise self._error("it ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def _take(self, wanted: str) -> bool:
        if self._peek() != wanted:
            return False
        self.at += 1
        return True

    def _expect(self, wanted: str) -> None:
        if not self._take(wanted):
            raise self._error(f"expected {wanted!r} but found {self._peek() or 'the end'!r}")

    def definition(self) -> Definition:
        kind, name = self._next()
        if kind != "name" or self._peek() != "[":
            raise self._error("the left side must be y[...]")
        self.letters = {part for token, part in self.tokens if token == "name" and is_letter(part)}
        output = Element(name, self._positions())
        self._expect("=")
        bound = {letter for part in output.indices for letter in letters_of(part)}
        words = [word.partition("_")[2] for token, word in self.tokens if token == "over"]
        self.letters = (bound | {letter for word in words for letter in word.split(",")}) - {"..."}
        value = self._sum()
        if self.at < len(self.tokens):
            raise self._error(f"do not know what to do with {self._peek()!r}")
        return Definition(output, value, self.text)

    def _sum(self) -> Expression:
        terms = [self._product()]
        while self._peek() in ("+", "-"):
            minus = self._next()[1] == "-"
            term = self._product()
            terms.append(_times(MINUS_ONE, term) if minus else term)
        return terms[0] if len(terms) == 1 else Add(tuple(terms))

    def _product(self) -> Expression:
        product = self._unary()
        while self._peek() in ("*", "/"):
            divide = self._next()[1] == "/"
            factor = self._unary()
            product = _times(product, _inverse(factor) if divide else factor)
        return product

    def _unary(self) -> Expression:
        if self._take("-"):
            return _times(MINUS_ONE, self._unary())
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "over":
            kind, _, letters = self._next()[1].partition("_")
            return Over(kind, tuple(letters.split(",")), self._product())
        base = self._atom()
        return Power(base, self._exponent()) if self._take("^") else base

    def _exponent(self) -> Expression:
        if self._take("-"):
            return _times(MINUS_ONE, self._atom())
        return self._atom()

    def _atom(self) -> Expression:
        if self._peek() == "[":
            return self._bracket()
        kind, token = self._next()
        if token == "(":
            inner = self._sum()
            self._expect(")")
            return inner
        if kind == "number":
            return Number(Fraction(token))
        if kind != "name":
            raise self._error(f"a value cannot begin with {token!r}")
        return self._named(token)

    def _named(self, name: str) -> Expression:
        if self._peek() == "[":
            return Element(name, self._positions())
        if self._peek() == "(" and name == "size":
            return self._size()
        if self._peek() == "(" and name in FUNCTIONS:
            return Apply(name, self._arguments(name))
        return Letter(name) if name in self.letters else Scalar(name)

    def _size(self) -> Size:
        self._expect("(")
        of = self._next()[1]
        axis = int(self._next()[1]) if self._take(",") else None
        self._expect(")")
        return Size(of, axis)

    def _arguments(self, name: str) -> tuple[Expression, ...]:
        self._expect("(")
        arguments = [self._sum()]
        while self._take(","):
            arguments.append(self._sum())
        self._expect(")")
        if len(arguments) != 1 + (name in TWO_ARGUMENTS):
            raise self._error(f"{name} takes {1 + (name in TWO_ARGUMENTS)} values, not {len(arguments)}")
        return tuple(arguments)

    def _bracket(self) -> Bracket:
        self._expect("[")
        conditions = [self._condition()]
        while self._take(","):
            conditions.append(self._condition())
        self._expect("]")
        return Bracket(tuple(conditions))

    def _condition(self) -> Comparison:
        left = self._sum()
        if self._peek() in _COMPARISONS:
            return Comparison(left, self._next()[1], self._sum())
        return Comparison(left, "!=", Number(Fraction(0)))

    def _positions(self) -> tuple[Position, ...]:
        self._expect("[")
        positions: list[Position] = []
        while not self._take("]"):
            if positions:
                self._expect(",")
            positions.append(self._position())
        return tuple(positions)

    def _position(self) -> Position:
        if self._take("..."):
            return Ellipsis_()
        end = self.at + 1
        while end < len(self.tokens) and self.tokens[end][0] == "name":
            end += 1
        if self._peek() == "(" and end - self.at > 2 and self.tokens[end : end + 1] == [("sign", ")")]:
            letters = tuple(token for _, token in self.tokens[self.at + 1 : end])
            self.at = end + 1
            return Group(letters)
        return self._sum()


def letters_of(position: Position) -> tuple[str, ...]:
    """Give the letters that a position of the left side introduces."""
    match position:
        case Letter(name):
            return (name,)
        case Group(letters):
            return letters
        case _:
            return ()


def _times(left: Expression, right: Expression) -> Expression:
    """Multiply, keeping one flat list of factors and one number."""
    if isinstance(left, Number) and isinstance(right, Number):
        return Number(left.value * right.value)
    factors = (*_factors(left), *_factors(right))
    return Multiply(factors)


def _factors(tree: Expression) -> tuple[Expression, ...]:
    return tree.factors if isinstance(tree, Multiply) else (tree,)


def _inverse(tree: Expression) -> Expression:
    if isinstance(tree, Number) and tree.value:
        return Number(1 / tree.value)
    return Power(tree, MINUS_ONE)
