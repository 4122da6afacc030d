"""A definition fitted to the shapes of one call: `...` written out as letters, and the length of every letter.

The shape rule of an operation follows from its definition; this is where it is read off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod

from tinyattn.errors import ArgumentError, ShapeError
from tinyattn.symbolic.definition import (
    Add,
    Apply,
    Bracket,
    Comparison,
    Element,
    Ellipsis_,
    Expression,
    Group,
    Letter,
    Multiply,
    Number,
    Over,
    Position,
    Power,
    letters_of,
    parse,
    walk,
)

Shape = tuple[int, ...]
ZERO = Number(Fraction(0))


@dataclass(frozen=True)
class Fitted:
    """A definition without `...`, how long each of its letters is, and every (operand, axis, position) in it."""

    output: Element
    value: Expression
    sizes: dict[str, int]
    output_shape: Shape
    places: tuple[tuple[str, int, Position], ...]

    @property
    def output_letters(self) -> tuple[str, ...]:
        """The letters of the left side, in order, groups opened."""
        return tuple(letter for part in self.output.indices for letter in letters_of(part))


def fit(text: str, shapes: Mapping[str, Shape], output_shape: Shape | None = None) -> Fitted:
    """Fit a definition to the shapes of its operands (inputs and array parameters).

    Parameters
    ----------
    text : str
        The definition.
    shapes : mapping of name to tuple of int
        Shape of every array that the definition may mention.
    output_shape : tuple of int, optional
        Needed only where the inputs do not tell it (slices, concatenation, views that split an axis).

    Examples
    --------
    >>> fit("y[..., i, k] = sum_j a[..., i, j] * b[..., j, k]", {"a": (5, 2, 3), "b": (3, 4)}).output_shape
    (5, 2, 4)
    """
    return _fit(text, tuple(sorted(shapes.items())), output_shape)


@lru_cache(maxsize=4096)
def _fit(text: str, shapes: tuple[tuple[str, Shape], ...], output_shape: Shape | None) -> Fitted:
    definition = parse(text)
    known = dict(shapes)
    leading = _LeadingAxes(definition.value, known, text)
    output = Element(definition.output.name, leading.written_out(definition.output.indices, len(leading.sizes)))
    value = leading.expression(definition.value)
    sizes = _letter_sizes(text, output, value, known, output_shape, leading.sizes)
    shape = tuple(prod([sizes[letter] for letter in letters_of(part)]) for part in output.indices)
    if output_shape is not None and shape != output_shape:
        raise ShapeError(f"{text!r} gives shape {shape} for {known}, but the result has shape {output_shape}.")
    elements = [part for part in walk(value) if isinstance(part, Element)]
    places = tuple((part.name, axis, position) for part in elements for axis, position in enumerate(part.indices))
    return Fitted(output, value, sizes, shape, places)


class _LeadingAxes:
    """What `...` stands for in one call: letters `.n ... .1`, counted from the right."""

    def __init__(self, value: Expression, shapes: Mapping[str, Shape], text: str) -> None:
        self.shapes = shapes
        self.text = text
        self.sizes: dict[str, int] = {}
        for part in walk(value):
            if isinstance(part, Element) and any(isinstance(each, Ellipsis_) for each in part.indices):
                for letter, size in zip(self._letters(self._count(part)), self._lengths(part), strict=True):
                    if size != 1 or letter not in self.sizes:
                        if self.sizes.get(letter, 1) not in (1, size):
                            raise ShapeError(f"{text!r}: the axes of ... do not fit together in {dict(shapes)}.")
                        self.sizes[letter] = size
        self.sizes = {letter: self.sizes[letter] for letter in self._letters(len(self.sizes))}

    @staticmethod
    def _letters(count: int) -> list[str]:
        return [f".{position}" for position in range(count, 0, -1)]

    def _count(self, element: Element) -> int:
        count = len(_shape_of(element.name, self.shapes, self.text)) - (len(element.indices) - 1)
        if count < 0:
            raise ShapeError(f"{self.text!r}: {element.name} has too few axes, shape {self.shapes[element.name]}.")
        return count

    def _lengths(self, element: Element) -> Shape:
        start = next(at for at, each in enumerate(element.indices) if isinstance(each, Ellipsis_))
        return self.shapes[element.name][start : start + self._count(element)]

    def written_out(
        self, indices: tuple[Position, ...], count: int, lengths: Shape | None = None
    ) -> tuple[Position, ...]:
        """Replace `...` by letters; an axis of length 1 that is stretched is read at 0."""
        result: list[Position] = []
        for each in indices:
            if isinstance(each, Ellipsis_):
                for at, letter in enumerate(self._letters(count)):
                    stretched = lengths is not None and lengths[at] == 1 != self.sizes[letter]
                    result.append(ZERO if stretched else Letter(letter))
            else:
                result.append(each if isinstance(each, Group) else self.expression(each))
        return tuple(result)

    def expression(self, tree: Expression) -> Expression:
        """Write `...` out everywhere in an expression."""
        match tree:
            case Element(name, indices):
                if any(isinstance(each, Ellipsis_) for each in indices):
                    return Element(name, self.written_out(indices, self._count(tree), self._lengths(tree)))
                return Element(name, self.written_out(indices, 0))
            case Add(terms):
                return Add(tuple(map(self.expression, terms)))
            case Multiply(factors):
                return Multiply(tuple(map(self.expression, factors)))
            case Power(base, exponent):
                return Power(self.expression(base), self.expression(exponent))
            case Apply(function, arguments):
                return Apply(function, tuple(map(self.expression, arguments)))
            case Over(kind, letters, body):
                opened = [name for each in letters for name in (self.sizes if each == "..." else (each,))]
                return Over(kind, tuple(opened), self.expression(body))
            case Bracket(conditions):
                return Bracket(tuple(map(self._comparison, conditions)))
            case _:
                return tree

    def _comparison(self, each: Comparison) -> Comparison:
        return Comparison(self.expression(each.left), each.sign, self.expression(each.right))


def _shape_of(name: str, shapes: Mapping[str, Shape], text: str) -> Shape:
    if name not in shapes:
        raise ArgumentError(f"{text!r} mentions {name}, which is not among {', '.join(shapes)}.")
    return shapes[name]


def _axes(value: Expression, shapes: Mapping[str, Shape], text: str) -> Iterator[tuple[Position, int]]:
    """Give every index position of the value with the length of the axis that it indexes."""
    for part in walk(value):
        if isinstance(part, Element):
            shape = _shape_of(part.name, shapes, text)
            if len(shape) != len(part.indices):
                raise ShapeError(f"{text!r}: {part.name} has {len(part.indices)} indices but shape {shape}.")
            yield from zip(part.indices, shape, strict=True)


def _letter_sizes(
    text: str,
    output: Element,
    value: Expression,
    shapes: Mapping[str, Shape],
    output_shape: Shape | None,
    leading: Mapping[str, int],
) -> dict[str, int]:
    """Find how long every letter is, from the operands first, from the result where one is known."""
    found: dict[str, set[int]] = {letter: {size} for letter, size in leading.items()}
    groups: list[tuple[tuple[str, ...], int]] = []
    for position, length in _axes(value, shapes, text):
        if isinstance(position, Letter) and position.name not in leading:
            found.setdefault(position.name, set()).add(length)
        elif isinstance(position, Group):
            groups.append((position.letters, length))
    left = [letter for part in output.indices for letter in letters_of(part)]
    if output_shape is not None:
        _add_output(text, output, output_shape, found, groups)
    for letters, length in groups:
        _solve_group(letters, length, found)
    grouped = {letter for letters, _ in groups for letter in letters}
    for letter in left:
        if letter not in found and letter not in grouped:
            found[letter] = {1}
    for letter, sizes in found.items():
        if len(sizes) > 1:
            what = "give output_shape" if letter in left else "the operands do not fit"
            raise ShapeError(f"{text!r}: index {letter} runs over axes of lengths {sorted(sizes)}; {what}.")
    missing = sorted((set(left) | grouped) - set(found))
    if missing:
        raise ShapeError(f"{text!r}: the length of {', '.join(missing)} cannot be told; give output_shape.")
    return {letter: next(iter(sizes)) for letter, sizes in found.items()}


def _add_output(
    text: str,
    output: Element,
    shape: Shape,
    found: dict[str, set[int]],
    groups: list[tuple[tuple[str, ...], int]],
) -> None:
    """Let the shape of the result decide the letters of the left side."""
    if len(shape) != len(output.indices):
        raise ShapeError(f"{text!r} has {len(output.indices)} output axes, but the result has shape {shape}.")
    for part, length in zip(output.indices, shape, strict=True):
        if isinstance(part, Letter):
            found[part.name] = {length}
        elif isinstance(part, Group):
            groups.append((part.letters, length))


def _solve_group(letters: tuple[str, ...], length: int, found: dict[str, set[int]]) -> None:
    """Find the one unknown length of a group from the length of its axis."""
    unknown = [letter for letter in letters if letter not in found]
    known = prod(next(iter(found[letter])) for letter in letters if letter in found)
    if len(unknown) == 1 and known and length % known == 0:
        found[unknown[0]] = {length // known}
