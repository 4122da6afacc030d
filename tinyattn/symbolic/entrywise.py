"""Compute what a definition says, entry by entry: slow, obvious, and independent of every forward.

Tests hold each operation to its definition with `evaluate`. The same walk runs on other numbers than floats:
`referee.py` runs it on SymPy expressions with its own `Numbers`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinyattn.errors import ArgumentError, IndexRangeError
from tinyattn.symbolic.definition import (
    Add,
    Apply,
    Bracket,
    Comparison,
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
)
from tinyattn.symbolic.fitting import Fitted, Shape, fit

Array = NDArray[Any]


def evaluate(
    definition_text: str,
    inputs: Mapping[str, ArrayLike],
    params: Mapping[str, Any] | None = None,
    output_shape: Shape | None = None,
) -> NDArray[np.float64]:
    """Compute the output of a definition, one entry after the other.

    Parameters
    ----------
    definition_text : str
        The definition, for example ``y[i] = sum_j a[i,j] * x[j]``.
    inputs : mapping of name to array
        The operands.
    params : mapping of name to number or array
        What else the text mentions: whole-number arrays (``index``), masks, scalars (``eps``).
    output_shape : tuple of int, optional
        Needed where the inputs do not tell it (slices, concatenation, splitting views).

    Examples
    --------
    >>> evaluate("y[i] = x[i] / sum_j x[j]", {"x": [1.0, 3.0]})
    array([0.25, 0.75])

    A false bracket hides what it multiplies:

    >>> evaluate("y[i] = [i > 0] * log(x[i])", {"x": [-1.0, 1.0]})
    array([0., 0.])
    """
    operands = {name: np.asarray(value) for name, value in {**(params or {}), **inputs}.items() if _is_number(value)}
    with np.errstate(all="ignore"):
        entries = entrywise(definition_text, operands, output_shape, Numbers())
    return np.asarray(entries, dtype=np.float64)


def output_shape(definition_text: str, shapes: Mapping[str, Shape]) -> Shape:
    """Give the shape of the result that the definition makes of operands of these shapes.

    Examples
    --------
    >>> output_shape("y[..., i] = exp(x[..., i]) / sum_j exp(x[..., j])", {"x": (2, 3)})
    (2, 3)
    """
    return fit(definition_text, shapes).output_shape


class Numbers:
    """What the walk needs to know of a kind of number; here: float64."""

    def number(self, value: Fraction) -> Any:
        """Give an exact number of a definition in this kind."""
        return np.float64(value.numerator) / np.float64(value.denominator)

    def pi(self) -> Any:
        """Give the circle number."""
        return np.float64(math.pi)

    def power(self, base: Any, exponent: Any) -> Any:
        """Raise to a power."""
        return np.float64(base) ** np.float64(exponent)

    def apply(self, function: str, arguments: list[Any]) -> Any:
        """Apply a function of the grammar."""
        return _FLOAT_FUNCTIONS[function](*map(np.float64, arguments))

    def extreme(self, kind: str, values: list[Any]) -> Any:
        """Give the largest (`max`) or the smallest (`min`) value; nan if one is nan."""
        return (np.max if kind == "max" else np.min)(np.asarray(values, dtype=np.float64))

    def bracket(self, comparisons: list[tuple[Any, str, Any]]) -> Any:
        """Give 1 if all comparisons hold, else 0."""
        return np.float64(all(holds(left, sign, right) for left, sign, right in comparisons))


def holds(left: Any, sign: str, right: Any) -> bool:
    """Decide a comparison of the grammar on ordinary numbers."""
    match sign:
        case "==":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)


def entrywise(text: str, operands: Mapping[str, Array], shape: Shape | None, numbers: Numbers) -> Array:
    """Compute every entry of the output, on any kind of number, as an object array."""
    fitted = fit(text, {name: value.shape for name, value in operands.items()}, shape)
    letters = fitted.output_letters
    result = np.zeros(fitted.output_shape, dtype=object)
    for values in product(*(range(fitted.sizes[letter]) for letter in letters)):
        walk = _Walk(fitted, operands, numbers, dict(zip(letters, values, strict=True)))
        result[tuple(walk.index(part) for part in fitted.output.indices)] = walk.value(fitted.value)
    return result


class _Walk:
    """The value of one entry: letters have values, the expression is walked."""

    def __init__(self, fitted: Fitted, operands: Mapping[str, Array], numbers: Numbers, at: dict[str, int]) -> None:
        self.fitted = fitted
        self.operands = operands
        self.numbers = numbers
        self.at = at

    def value(self, tree: Expression) -> Any:
        """Compute an expression at the current letters."""
        match tree:
            case Number(value):
                return self.numbers.number(value)
            case Letter(name):
                return self.at[name]
            case Size():
                return self._size(tree)
            case Scalar(name):
                return self._scalar(name)
            case Element():
                return self._element(tree)
            case Add(terms):
                return _total(self.value(term) for term in terms)
            case Multiply(factors):
                return self._product(factors)
            case Power(base, exponent):
                return self.numbers.power(self.value(base), self.value(exponent))
            case Apply(function, arguments):
                return self.numbers.apply(function, [self.value(each) for each in arguments])
            case Over(kind, letters, body):
                return self._over(kind, letters, body)
            case Bracket(conditions):
                return self.numbers.bracket([self._sides(each) for each in conditions])

    def index(self, position: Position) -> int:
        """Compute a position of an index list."""
        if isinstance(position, Group):
            flat = 0
            for letter in position.letters:
                flat = flat * self.fitted.sizes[letter] + self.at[letter]
            return flat
        if isinstance(position, Letter):
            return self.at[position.name]
        return int(self._whole(position))

    def _whole(self, tree: Position) -> Any:
        """Index arithmetic is done in whole numbers, whatever kind of number the values are."""
        match tree:
            case Number(value):
                return value
            case Scalar(name):
                return int(self.operands[name])
            case Element():
                return int(self._element(tree))
            case Letter(name):
                return self.at[name]
            case Size():
                return self._size(tree)
            case Add(terms):
                return sum(self._whole(term) for term in terms)
            case Multiply(factors):
                return math.prod(self._whole(factor) for factor in factors)
            case _:
                raise ArgumentError(f"{self.fitted.output.name}: an index must be a whole-number expression.")

    def _size(self, size: Size) -> int:
        return self.fitted.sizes[size.of] if size.axis is None else self.operands[size.of].shape[size.axis]

    def _scalar(self, name: str) -> Any:
        if name == "pi":
            return self.numbers.pi()
        if name not in self.operands:
            raise ArgumentError(f"the definition mentions {name}, which is not among {', '.join(self.operands)}.")
        return self.operands[name][()]

    def _element(self, element: Element) -> Any:
        where = tuple(self.index(each) for each in element.indices)
        array = self.operands[element.name]
        if any(not 0 <= at < length for at, length in zip(where, array.shape, strict=True)):
            raise IndexRangeError(f"the definition reads {element.name}[{where}], outside of shape {array.shape}.")
        return array[where]

    def _product(self, factors: tuple[Expression, ...]) -> Any:
        """Look at the conditions first: a false one hides the rest."""
        result: Any = None
        for factor in sorted(factors, key=lambda each: not _is_condition(each)):
            value = self.value(factor)
            if _is_condition(factor) and isinstance(value, (int, float, np.number)) and value == 0:
                return self.numbers.number(Fraction(0))
            result = value if result is None else result * value
        return result

    def _over(self, kind: str, letters: tuple[str, ...], body: Expression) -> Any:
        saved = dict(self.at)
        values = []
        for where in product(*(range(self.fitted.sizes[letter]) for letter in letters)):
            self.at.update(zip(letters, where, strict=True))
            values.append(self.value(body))
        self.at.clear()
        self.at.update(saved)
        if kind == "sum":
            return _total(values) if values else self.numbers.number(Fraction(0))
        if kind == "prod":
            return math.prod(values) if values else self.numbers.number(Fraction(1))
        return self.numbers.extreme(kind, values)

    def _sides(self, comparison: Comparison) -> tuple[Any, str, Any]:
        return self.value(comparison.left), comparison.sign, self.value(comparison.right)


def _total(values: Iterable[Any]) -> Any:
    total: Any = None
    for value in values:
        total = value if total is None else total + value
    return total


def _is_condition(tree: Expression) -> bool:
    """Say whether a factor is made of brackets and numbers alone, with a bracket in it."""
    match tree:
        case Bracket():
            return True
        case Add(terms):
            return all(isinstance(t, Number) or _is_condition(t) for t in terms) and any(map(_is_condition, terms))
        case Multiply(factors):
            return all(isinstance(f, Number) or _is_condition(f) for f in factors) and any(map(_is_condition, factors))
        case _:
            return False


def _is_number(value: Any) -> bool:
    """Leave out parameters that are not numbers (axis=None, names)."""
    return value is not None and np.asarray(value).dtype.kind in "biuf"


def _sigmoid(x: np.float64) -> np.float64:
    return np.float64(1 / (1 + np.exp(-x)))


_FLOAT_FUNCTIONS: dict[str, Any] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "erf": lambda x: np.float64(math.erf(float(x))),
    "abs": np.abs,
    "sign": np.sign,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
