"""The words of ONNX: each writes a node of the file, and computes the same with NumPy beside it.

Because an example runs along, shapes and types need no inference of their own; lengths that may differ are written
as computations on the shapes of the inputs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from tinyattn.handover.words import Axes, NumPyWords, Words

_END, _BEGIN = np.iinfo(np.int64).max, np.iinfo(np.int64).min


class Value:
    """An array of the file: its name there, and what it is in the example."""

    __slots__ = ("example", "name", "words")

    def __init__(self, words: OnnxWords, name: str, example: Any) -> None:
        self.words, self.name, self.example = words, name, np.asarray(example)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes in the example."""
        return self.example.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers."""
        return self.example.dtype

    def __neg__(self) -> Value:
        return self.words.write("Neg", [self], -self.example)

    def __invert__(self) -> Value:
        return self.words.write("Not", [self], ~self.example)

    def __ne__(self, other: object) -> Any:
        return ~(self == other)

    __hash__ = object.__hash__


def _operator(node: str, compute: Callable[[Any, Any], Any], turned: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: Value, other: Any) -> Value:
        pair = (other, self) if turned else (self, other)
        return self.words.pair(node, compute, *pair)

    return method


_OPERATORS = {"add": "Add", "sub": "Sub", "mul": "Mul", "truediv": "Div", "matmul": "MatMul"}
_COMPARISONS = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
for _name, _node in (_OPERATORS | _COMPARISONS).items():
    setattr(Value, f"__{_name}__", _operator(_node, getattr(operator, _name)))
for _name, _node in _OPERATORS.items():
    setattr(Value, f"__r{_name}__", _operator(_node, getattr(operator, _name), turned=True))
setattr(Value, "__and__", _operator("And", operator.and_))  # noqa: B010  # mypy does not see assigned operators


class Length(int):
    """A length that may differ: the number in the example, and the value of shape (1,) that holds it in the file."""

    value: Value


class OnnxWords(Words):
    """Writes the nodes of one file.

    Parameters
    ----------
    dynamic : bool
        Whether there are lengths that may differ; where there are none, all are written as numbers.
    """

    def __init__(self, dynamic: bool) -> None:
        super().__init__(np)
        self.onnx, self.dynamic, self.plain = import_module("onnx"), dynamic, NumPyWords(np)
        self.nodes: list[Any] = []
        self.initializers: dict[str, np.ndarray] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
        self._prefix, self._last = "", Value(self, "", 0.0)
        for name, node in (("exp", "Exp"), ("log", "Log"), ("sqrt", "Sqrt"), ("sin", "Sin"), ("cos", "Cos"),
                           ("tanh", "Tanh")):  # fmt: skip
            setattr(self, name, self._function(node, getattr(np, name)))
        for name, node in (("pow", "Pow"), ("maximum", "Max"), ("minimum", "Min")):
            setattr(self, name, self._function_of_two(node, getattr(np, name)))

    # -- writing ---------------------------------------------------------------------------------------------------

    def write(self, op: str, inputs: list[Value], example: Any, **attributes: Any) -> Value:
        """Write one node; its name and that of its value tell the scope and the step that it belongs to."""
        name = f"{self._prefix}/{op}_{len(self.nodes)}"
        node = self.onnx.helper.make_node(op, [x.name for x in inputs], [name], name=name, **attributes)
        self.nodes.append(node)
        self._last = Value(self, name, example)
        return self._last

    @contextmanager
    def inside(self, scope: tuple[str, ...], name: str) -> Iterator[None]:
        """The last node that is written for a step gets the step's own name."""
        before, outer = len(self.nodes), self._prefix
        self._prefix = "/".join([*([outer] if outer else []), *scope, name])
        yield
        if len(self.nodes) > before:
            self.nodes[-1].output[0] = self._last.name = self._prefix
        self._prefix = outer

    def pair(self, node: str, compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Value:
        """An operation of two; plain numbers take the dtype of the other."""
        a = a if isinstance(a, Value) else self._operand(a, b)
        b = b if isinstance(b, Value) else self._operand(b, a)
        example = compute(a.example, b.example)
        return a if self._idle(node, a, b, example) else self.write(node, [a, b], example)

    def _idle(self, node: str, a: Value, b: Value, example: np.ndarray) -> bool:
        """Whether ``a`` is not changed: times 1, plus 0.  ONNX Runtime drops such nodes, and not always rightly."""
        nothing = {"Mul": 1, "Div": 1, "Add": 0, "Sub": 0}.get(node)
        fixed = b.name in self.initializers and (a.shape, a.dtype) == (example.shape, example.dtype)
        return nothing is not None and fixed and b.shape == () and bool(b.example == nothing)

    def _operand(self, number: Any, other: Value) -> Value:
        if isinstance(number, Length):
            return self.float_of(number, other)
        return self.constant(np.asarray(number, other.dtype))

    def _function(self, node: str, compute: Callable[[Any], Any]) -> Callable[[Value], Value]:
        return lambda x: self.write(node, [x], compute(x.example))

    def _function_of_two(self, node: str, compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Value]:
        return lambda a, b: self.pair(node, compute, a, b)

    # -- arrays ----------------------------------------------------------------------------------------------------

    def array(self, numbers: Any) -> Any:
        """Arguments come as values already."""
        return numbers if isinstance(numbers, Value) else self.constant(np.asarray(numbers))

    def constant(self, numbers: Any) -> Value:
        """Numbers in the file; the same numbers stand there once."""
        array = np.ascontiguousarray(numbers).reshape(np.shape(numbers))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            name = f"{self._prefix}/constant_{len(self.initializers)}"
            self.initializers[name] = array
            self._constants[key] = Value(self, name, array)
        return self._constants[key]

    def dtype(self, name: str) -> Any:
        """NumPy's."""
        return np.dtype(name)

    def astype(self, x: Value, dtype: Any) -> Value:
        """``Cast``."""
        to = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.write("Cast", [x], x.example.astype(dtype), to=to)

    def number(self, value: float, like: Any) -> Value:
        """A constant of no axes."""
        return self.constant(np.asarray(value, like.dtype))

    def arange(self, n: Any) -> Value:
        """``Range``, or a constant."""
        if not isinstance(n, Length):
            return self.constant(np.arange(n))
        edges = [self.constant(np.asarray(0)), self._scalar(n), self.constant(np.asarray(1))]
        return self.write("Range", edges, np.arange(int(n)))

    def where(self, condition: Any, a: Any, b: Any) -> Value:
        """``Where``."""
        condition, a, b = (self.array(x) for x in (condition, a, b))
        return self.write("Where", [condition, a, b], np.where(condition.example, a.example, b.example))

    # -- sizes -----------------------------------------------------------------------------------------------------

    def length(self, x: Value, axis: int) -> Any:
        """A number, or where lengths may differ what ``Shape`` says of the axis."""
        return self._length(self.write("Shape", [x], [x.shape[axis]], start=axis, end=axis + 1)) if (
            self.dynamic) else x.shape[axis]  # fmt: skip

    def _length(self, value: Value) -> Length:
        length = Length(int(value.example[0]))
        length.value = value
        return length

    def size(self, factor: int, lengths: list[Any], offset: int) -> Any:
        """Computed in the file, where a length may differ."""
        if not any(isinstance(n, Length) for n in lengths):
            return super().size(factor, lengths, offset)
        value: Any = self.constant(np.array([factor * math.prod(n for n in lengths if not isinstance(n, Length))]))
        for n in lengths:
            value = value * n.value if isinstance(n, Length) else value
        return self._length(value + offset if offset else value)

    def float_of(self, size: Any, like: Any) -> Value:
        """``Cast`` of a length."""
        return self.astype(self._scalar(size), like.dtype) if isinstance(size, Length) else self.number(size, like)

    def _scalar(self, n: Length) -> Value:
        return self.write("Squeeze", [n.value, self._vector([0])], int(n))

    def _vector(self, sizes: Any) -> Value:
        """A shape, or anything else that is a row of whole numbers."""
        if not any(isinstance(n, Length) for n in sizes):
            return self.constant(np.array(sizes, np.int64))
        parts = [n.value if isinstance(n, Length) else self.constant(np.array([n])) for n in sizes]
        return self.write("Concat", parts, np.array([int(n) for n in sizes]), axis=0)

    # -- views -----------------------------------------------------------------------------------------------------

    def reshape(self, x: Value, shape: tuple[Any, ...]) -> Value:
        """``Reshape``; in it a 0 would mean something else than no entries."""
        example = x.example.reshape(tuple(int(n) for n in shape))
        return self.write("Reshape", [x, self._vector(shape)], example, **({"allowzero": 1} if 0 in shape else {}))

    def permute(self, x: Value, axes: Axes) -> Value:
        """``Transpose``."""
        return self.write("Transpose", [x], x.example.transpose(axes), perm=list(axes))

    def expand(self, x: Value, axes: Axes) -> Value:
        """``Unsqueeze``."""
        return self.write("Unsqueeze", [x, self._vector(axes)], np.expand_dims(x.example, axes)) if axes else x

    def squeeze(self, x: Value, axes: Axes) -> Value:
        """``Squeeze``."""
        return self.write("Squeeze", [x, self._vector(axes)], np.squeeze(x.example, axes))

    def broadcast_to(self, x: Value, shape: tuple[Any, ...]) -> Value:
        """``Expand``."""
        example = np.broadcast_to(x.example, tuple(int(n) for n in shape))
        return self.write("Expand", [x, self._vector(shape)], example)

    def spread(self, x: Value, like: Value) -> Value:
        """``Expand`` to the shape that the other has when it is run."""
        shape = self.write("Shape", [like], np.array(like.shape)) if self.dynamic else self._vector(like.shape)
        return self.write("Expand", [x, shape], np.broadcast_to(x.example, like.shape))

    def concat(self, parts: list[Value], axis: int) -> Value:
        """``Concat``."""
        return self.write("Concat", parts, np.concatenate([x.example for x in parts], axis), axis=axis)

    def getitem(self, x: Value, key: tuple[Any, ...]) -> Value:
        """``Slice`` for all slices together, ``Gather`` for each whole number."""
        cuts = [(axis, part) for axis, part in enumerate(key) if isinstance(part, slice) and part != slice(None)]
        if cuts:
            steps = [1 if part.step is None else part.step for _, part in cuts]
            starts = [(0 if step > 0 else _END) if part.start is None else part.start
                      for (_, part), step in zip(cuts, steps, strict=True)]  # fmt: skip
            stops = [(_END if step > 0 else _BEGIN) if part.stop is None else part.stop
                     for (_, part), step in zip(cuts, steps, strict=True)]  # fmt: skip
            example = x.example[tuple(part if isinstance(part, slice) else slice(None) for part in key)]
            rows = [self._vector(row) for row in (starts, stops, [axis for axis, _ in cuts], steps)]
            x = self.write("Slice", [x, *rows], example)
        for axis, part in reversed(list(enumerate(key))):
            if not isinstance(part, slice):
                at = self._scalar(part) if isinstance(part, Length) else self.constant(np.asarray(part))
                x = self.write("Gather", [x, at], x.example.take(int(part), axis), axis=axis)
        return x

    def take(self, x: Value, indices: Value, axis: int) -> Value:
        """``Gather``."""
        return self.write("Gather", [x, indices], np.take(x.example, indices.example, axis), axis=axis)

    def take_along(self, x: Value, indices: Value, axis: int) -> Value:
        """``GatherElements``."""
        example = np.take_along_axis(x.example, indices.example, axis)
        return self.write("GatherElements", [x, indices], example, axis=axis)

    def add_at(self, size: Any, positions: Value, values: Value) -> Value:
        """``ScatterElements``, which adds."""
        zeros = self.full((size,), 0.0, values)
        example = self.plain.add_at(int(size), positions.example, values.example)
        return self.write("ScatterElements", [zeros, positions, values], example, axis=0, reduction="add")

    def pad(self, x: Value, widths: tuple[tuple[int, int], ...], value: float) -> Value:
        """``Pad``."""
        edges = self._vector([both[0] for both in widths] + [both[1] for both in widths])
        example = np.pad(x.example, widths, constant_values=value)
        return self.write("Pad", [x, edges, self.number(value, x)], example)

    # -- many numbers become one -----------------------------------------------------------------------------------

    def _reduced(self, node: str, compute: Any, x: Value, axes: Axes, keepdims: bool) -> Value:
        example = compute(x.example, axis=axes, keepdims=keepdims)
        return self.write(node, [x, self._vector(axes)], example, keepdims=int(keepdims))

    def sum(self, x: Value, axes: Axes, keepdims: bool) -> Value:
        """``ReduceSum``."""
        return self._reduced("ReduceSum", np.sum, x, axes, keepdims)

    def max(self, x: Value, axes: Axes, keepdims: bool) -> Value:
        """``ReduceMax``."""
        return self._reduced("ReduceMax", np.max, x, axes, keepdims)

    def min(self, x: Value, axes: Axes, keepdims: bool) -> Value:
        """``ReduceMin``."""
        return self._reduced("ReduceMin", np.min, x, axes, keepdims)

    def prod(self, x: Value, axes: Axes, keepdims: bool) -> Value:
        """``ReduceProd``."""
        return self._reduced("ReduceProd", np.prod, x, axes, keepdims)

    def any(self, x: Value, axis: int) -> Value:
        """ONNX has none: the largest of 0 and 1."""
        return self.pair("Greater", operator.gt, self.max(self.astype(x, np.int64), (axis,), True), 0)

    def einsum(self, subscripts: str, *parts: Value) -> Value:
        """``Einsum``."""
        example = np.einsum(subscripts, *(x.example for x in parts))
        return self.write("Einsum", list(parts), example, equation=subscripts)

    def softmax(self, x: Value, axis: int) -> Value:
        """``Softmax``."""
        return self.write("Softmax", [x], self.plain.softmax(x.example, axis), axis=axis)

    def log_softmax(self, x: Value, axis: int) -> Value:
        """``LogSoftmax``."""
        return self.write("LogSoftmax", [x], self.plain.log_softmax(x.example, axis), axis=axis)

    def erf(self, x: Value) -> Value:
        """``Erf``; ONNX Runtime has it for float32 only, so float64 takes the series."""
        return super().erf(x) if x.dtype == np.float64 else self.write("Erf", [x], self.plain.erf(x.example))
