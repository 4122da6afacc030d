"""The lines of a program: a record with everything taken out that need not be computed.

Each step becomes a `Line`, once: what is computed twice is one line, what depends on constants only is a constant, a
product with 1 is nothing, and what no result needs is left out.  Lines know what they compute, not how it is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tinyattn.compiled.recording import Record, Step
from tinyattn.compiled.watched import TESTS, raw
from tinyattn.errors import GraphError, message
from tinyattn.tensor import Tensor

Shape = tuple[int, ...]

BINARY = {"add", "subtract", "multiply", "divide", "power", "maximum", "minimum"} | {
    name for name, op in TESTS.items() if len(op.input_names) == 2
}
UNARY = {"negative", "exp", "log", "sqrt", "sin", "cos", "tanh", "abs"} | {
    name for name, op in TESTS.items() if len(op.input_names) == 1
}
ENTRYWISE = BINARY | UNARY | {"clip"}
"""What NumPy does entry by entry and can write over one of its operands."""


class Line:
    """One quantity of a program.

    Attributes
    ----------
    op : str
        An operation's name, or "input" or "constant".
    inputs : tuple of Line
    params : tuple
        The operation's parameters; a line in the place of an array that is computed.
    shape, dtype
    value : ndarray or number
        Of a constant; None otherwise.
    name : str
        The learner's word, or nothing.
    hint : str
        A word that is better than nothing.
    place : str
        ``lesson.py:12``.
    backward : bool
        True for a part of a gradient.
    """

    __slots__ = ("backward", "dtype", "hint", "inputs", "name", "op", "params", "place", "shape", "value")

    def __init__(self, op: str, inputs: tuple[Line, ...], params: tuple[Any, ...], shape: Shape, dtype: Any) -> None:
        self.op, self.inputs, self.params, self.shape, self.dtype = op, inputs, params, shape, np.dtype(dtype)
        self.value: Any = None
        self.name, self.hint, self.place, self.backward = "", "", "", False

    @property
    def constant(self) -> bool:
        """True when it is the same in every call."""
        return self.op == "constant"

    @property
    def number(self) -> bool:
        """True for a single number, which the program computes as Python computes numbers."""
        return self.shape == () and self.op not in ("constant",)

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return math.prod(self.shape)

    def needs(self) -> list[Line]:
        """The lines that must come before."""
        return [*self.inputs, *lines_in(self.params)]

    def __repr__(self) -> str:
        return f"Line({self.op} {self.name} {self.shape})"


def lines_in(params: Any) -> Iterator[Line]:
    """The lines among parameters, also inside tuples."""
    if isinstance(params, Line):
        yield params
    elif isinstance(params, tuple):
        for part in params:
            yield from lines_in(part)


def constant(value: Any) -> Line:
    """A line that is the same in every call."""
    array = np.asarray(value)
    line = Line("constant", (), (), array.shape, array.dtype)
    line.value = array
    return line


class Builder:
    """Makes lines, each once."""

    def __init__(self) -> None:
        self.order: list[Line] = []
        self._made: dict[Any, Line] = {}

    def given(self, x: Any, name: str) -> Line:
        """Make the line of an argument, or of a tensor from outside."""
        line = Line("input", (), (), x.shape, x.dtype)
        line.name = name
        self.order.append(line)
        return line

    def constant(self, value: Any) -> Line:
        """Make the line of a constant."""
        array = np.asarray(value)
        key = ("constant", _key(array))
        if key not in self._made:
            self._made[key] = constant(array)
        return self._made[key]

    def make(self, op: str, inputs: Iterable[Line], params: tuple[Any, ...], shape: Shape, dtype: Any) -> Line:
        """Make the line of an operation, or give one that is equal to it."""
        inputs = tuple(inputs)
        rewrite = REWRITES.get(op)
        if rewrite is not None:
            simpler: Line | None = rewrite(self, inputs, params, shape, dtype)
            if simpler is not None:
                return simpler
        if op in BINARY or op == "where":
            for slot in range(len(inputs)):
                inputs = _unstretched(slot, inputs, params, shape)
        key = (op, tuple(id(x) for x in inputs), _key(params), shape, np.dtype(dtype).char)
        if key not in self._made:
            self._made[key] = line = Line(op, inputs, params, shape, dtype)
            self.order.append(line)
        return self._made[key]


def _key(param: Any) -> Any:
    """Something that is equal for equal parameters, and hashable."""
    if isinstance(param, tuple):
        return tuple(_key(part) for part in param)
    if isinstance(param, (np.ndarray, np.generic)):
        return ("array", param.shape, param.dtype.char, param.tobytes())
    if isinstance(param, slice):
        return ("slice", param.start, param.stop, param.step)
    if isinstance(param, Line):
        return ("line", id(param))
    return (type(param).__name__, repr(param))


def _unstretched(slot: int, inputs: tuple[Line, ...], params: tuple[Any, ...], shape: Shape) -> tuple[Line, ...]:
    """The operands with one as it was before it was broadcast, where NumPy would broadcast it by itself."""
    if inputs[slot].op != "broadcast_to":
        return inputs
    shorter = (*inputs[:slot], inputs[slot].inputs[0], *inputs[slot + 1 :])
    shapes = [x.shape for x in (*shorter, *params) if hasattr(x, "shape")]
    return shorter if np.broadcast_shapes(*shapes) == shape else inputs


# -- what need not be computed --------------------------------------------------------------------------------------


def _is(x: Line, number: float) -> bool:
    return x.constant and x.value.dtype.kind in "fiub" and x.value.size > 0 and bool((x.value == number).all())


def _times(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    return next((x for x, y in (inputs, inputs[::-1]) if _is(y, 1) and x.shape == shape), None)


def _over(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Any:
    return inputs[0] if _is(inputs[1], 1) and inputs[0].shape == shape else None


def _plus(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    """Numbers that are put at places of one array are put together before they are an array."""
    x, y = inputs
    if x.op != "pack" or y.op != "pack" or x.shape != y.shape:
        return None
    places = dict(zip(x.params[0], x.inputs, strict=True))
    for place, number in zip(y.params[0], y.inputs, strict=True):
        both = places.get(place)
        places[place] = number if both is None else b.make("add", (both, number), (), (), dtype)
    return b.make("pack", places.values(), (tuple(places),), shape, dtype)


def _same(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    return inputs[0] if inputs[0].shape == shape and inputs[0].dtype == dtype else None


def _alias(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Any:
    return inputs[0]


def _reshape(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    (x,) = inputs
    if x.shape == shape:
        return x  # type: ignore[no-any-return]
    if x.constant:
        return b.constant(x.value.reshape(shape))
    if x.op == "reshape":
        return b.make("reshape", x.inputs, (shape,), shape, dtype)
    if x.op == "sum" and x.params[1] and shape == _without(x.shape, x.params[0]):
        return b.make("sum", x.inputs, (x.params[0], False), shape, dtype)
    return None if params == (shape,) else b.make("reshape", inputs, (shape,), shape, dtype)


def _without(shape: Shape, axes: Shape) -> Shape:
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _transpose(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    (x,), (axes,) = inputs, params
    if axes == tuple(range(len(axes))):
        return x  # type: ignore[no-any-return]
    if x.op == "transpose":
        together = tuple(x.params[0][axis] for axis in axes)
        return b.make("transpose", x.inputs, (together,), shape, dtype)
    return None


def _where(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    condition = params[0]
    if isinstance(condition, Line):
        return None
    for chosen, all_of_it in zip(inputs, (np.all(condition), not np.any(condition)), strict=True):
        if all_of_it and chosen.shape == shape:
            return chosen  # type: ignore[no-any-return]
    return None


def _sum(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    return inputs[0] if params[0] == () or inputs[0].shape == () else None


def _integer_power(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    (x,), (exponent,) = inputs, params
    if exponent == 1:
        return x  # type: ignore[no-any-return]
    if exponent == 2:
        return b.make("multiply", (x, x), (), shape, dtype)
    return b.make("power", (x, b.constant(np.array(exponent, dtype))), (), shape, dtype) if exponent > 2 else None


def _relu(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    return b.make("maximum", (inputs[0], b.constant(np.zeros((), dtype))), (), shape, dtype)


def _sigmoid(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    """(tanh(x/2) + 1) / 2: no exponential can overflow."""
    one, two = (b.constant(np.array(n, dtype)) for n in (1, 2))
    half = b.make("divide", (inputs[0], two), (), shape, dtype)
    shifted = b.make("add", (b.make("tanh", (half,), (), shape, dtype), one), (), shape, dtype)
    return b.make("divide", (shifted, two), (), shape, dtype)


# -- entries and places ----------------------------------------------------------------------------------------------


def numbers_of(key: Any, shape: Shape) -> Shape | None:
    """A key of whole numbers only, each from 0 on; None for another key."""
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) > len(shape) or not all(type(part) is int or isinstance(part, np.integer) for part in parts):
        return None
    return tuple(int(part) % size for part, size in zip(parts, shape, strict=False))


def _only_drops_or_adds_ones(key: Any, shape: Shape) -> bool:
    """Whether a key takes everything, and changes axes of size 1 only."""
    parts = key if isinstance(key, tuple) else (key,)
    if not all(part is None or part is Ellipsis or type(part) is int or part == slice(None) for part in _plain(parts)):
        return False
    if len(_plain(parts)) != len(parts):
        return False
    dots = next((at for at, part in enumerate(parts) if part is Ellipsis), len(parts))
    after = sum(part is not None for part in parts[dots + 1 :])
    sizes = [*shape[: sum(part is not None for part in parts[:dots])], *shape[len(shape) - after :]]
    used = [part for part in parts if part is not None and part is not Ellipsis]
    return all(not isinstance(part, int) or size == 1 for part, size in zip(used, sizes, strict=False))


def _plain(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(part for part in parts if not isinstance(part, (Line, np.ndarray)))


def _index(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    (x,), (key,) = inputs, params
    if any(part.dtype.kind == "b" for part in lines_in(key)):
        raise GraphError(
            message(
                "compile: an index that is a mask takes as many entries as happen to be True.",
                "A program is for arrays of fixed shapes.",
                "Write ta.where(mask, x, 0) or multiply by the mask; or index with whole numbers.",
            )
        )
    if _only_drops_or_adds_ones(key, x.shape):
        return b.make("reshape", inputs, (shape,), shape, dtype)
    place = numbers_of(key, x.shape)
    if place is None:
        return None
    if x.op == "index" and (before := numbers_of(x.params[0], x.inputs[0].shape)) is not None:
        return b.make("index", x.inputs, ((*before, *place),), shape, dtype)
    if x.op == "stack" and x.params[0] == 0 and len(place) == 1:
        return x.inputs[place[0]]  # type: ignore[no-any-return]
    return None if params == (place,) else b.make("index", inputs, (place,), shape, dtype)


def _scatter_add(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    (g,), (key, _) = inputs, params
    if _only_drops_or_adds_ones(key, shape):
        return b.make("reshape", inputs, (shape,), shape, dtype)
    place = numbers_of(key, shape)
    if place is None:
        return None
    if g.shape == () and len(place) == len(shape):
        return b.make("pack", inputs, ((place,),), shape, dtype)
    if g.op == "pack":
        return b.make("pack", g.inputs, (tuple((*place, *inner) for inner in g.params[0]),), shape, dtype)
    return None


def _take_along(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    """One entry from each row of a matrix."""
    (x,), (indices, axis) = inputs, params
    if len(shape) != 2 or axis != 1 or shape[1] != 1 or shape[0] != x.shape[0]:
        return None
    key = (np.arange(shape[0]), _flat(b, indices))
    return b.make("reshape", (b.make("index", inputs, (key,), shape[:1], dtype),), (shape,), shape, dtype)


def _put_along(b: Builder, inputs: Any, params: Any, shape: Shape, dtype: Any) -> Line | None:
    (g,), (indices, axis, _) = inputs, params
    if len(shape) != 2 or axis != 1 or g.shape != (shape[0], 1):
        return None
    key = (np.arange(shape[0]), _flat(b, indices))
    column = b.make("reshape", inputs, (shape[:1],), shape[:1], dtype)
    return b.make("scatter_add", (column,), (key, shape), shape, dtype)


def _flat(b: Builder, indices: Any) -> Any:
    if isinstance(indices, Line):
        return b.make("reshape", (indices,), ((indices.size,),), (indices.size,), indices.dtype)
    return indices.ravel()


REWRITES: dict[str, Any] = {
    "multiply": _times, "divide": _over, "add": _plus, "cast": _same, "broadcast_to": _same, "detach": _alias,
    "reshape": _reshape, "expand_dims": _reshape, "squeeze": _reshape, "transpose": _transpose, "where": _where,
    "sum": _sum, "integer_power": _integer_power, "relu": _relu, "sigmoid": _sigmoid, "index": _index,
    "scatter_add": _scatter_add, "take_along_axis": _take_along, "put_along_axis": _put_along,
}  # fmt: skip


# -- from a record to lines ------------------------------------------------------------------------------------------


class Lines:
    """The lines of a record, in the order in which they are computed.

    Attributes
    ----------
    arguments : list of Line
    outside : list of (Tensor, Line)
        Tensors that the function takes from outside, such as the parameters of a model.
    results : list of Line
    every : list of Line
        What has to be computed.
    """

    def __init__(self, found: Record, results: list[Tensor], names: list[str], called: dict[int, str]) -> None:
        self.builder = Builder()
        self._line: dict[int, Line] = {}
        self._outside = {id(other): x for x, other in found.outside.values()}
        self._called = called
        self.outside: list[tuple[Tensor, Line]] = []
        self.arguments = [self.builder.given(x, name) for x, name in zip(found.arguments, names, strict=True)]
        self._line.update((id(x), line) for x, line in zip(found.arguments, self.arguments, strict=True))
        for step in found.steps:
            self._add(step)
        self.results = [self._of(x) for x in results]
        needed = _behind(self.results)
        self.every = [line for line in self.builder.order if id(line) in needed and line.op != "input"]
        self.outside = [(x, line) for x, line in self.outside if id(line) in needed]
        spread_row_sums(self.every, self.results)

    def _of(self, x: Tensor) -> Line:
        if id(x) not in self._line:
            original = self._outside.get(id(x))
            if original is None:
                self._line[id(x)] = self.builder.constant(raw(x))
            else:
                line = self._line[id(x)] = self.builder.given(x, self._called.get(id(original), ""))
                self.outside.append((original, line))
        return self._line[id(x)]

    def _param(self, param: Any) -> Any:
        if isinstance(param, Tensor):
            line = self._of(param)
            return np.asarray(line.value) if line.constant else line
        return tuple(self._param(part) for part in param) if isinstance(param, tuple) else param

    def _add(self, step: Step) -> None:
        inputs, params = [self._of(x) for x in step.inputs], self._param(step.params)
        result = step.result
        fixed = all(x.constant for x in inputs) and not any(True for _ in lines_in(params))
        if fixed or step.op.name == "size_of":
            self._line[id(result)] = self.builder.constant(raw(result))
            return
        before = len(self.builder.order)
        line = self.builder.make(step.op.name, inputs, params, result.shape, result.dtype)
        for fresh in self.builder.order[before:]:
            fresh.backward, fresh.place = step.rule, step.place
        if step.title and not line.name and line.op != "constant":
            line.name = step.title
        line.hint = line.hint or step.hint
        self._line[id(result)] = line


def _behind(results: list[Line]) -> set[int]:
    """Everything that some lines depend on."""
    found: set[int] = set()
    waiting = list(results)
    while waiting:
        line = waiting.pop()
        if id(line) not in found:
            found.add(id(line))
            waiting += line.needs()
    return found


def spread_row_sums(every: list[Line], results: list[Line]) -> None:
    """Let row sums of small matrices in a gradient be spread over the row: one product with ones, as the tape does."""
    users: dict[int, list[Line]] = {}
    for line in every:
        for x in line.needs():
            users.setdefault(id(x), []).append(line)
    kept = {id(x) for x in results}
    for line in every:
        if line.op != "sum" or not line.backward or id(line) in kept or line.params != ((1,), True):
            continue
        shape = line.inputs[0].shape
        if len(shape) == 2 and shape[1] <= 32 and line.dtype.kind == "f":
            if all(user.op in ENTRYWISE and user.shape == shape for user in users.get(id(line), [])):
                line.op, line.params, line.shape = "row_sums", (), shape
