"""How each operation is written: as a call of NumPy on arrays, as Python on single numbers.

An array phrase takes the line, the words for its operands and the array to write to, which is None where the result
shall be a new array.  A number phrase is a format for its operands, with how tightly it binds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyattn.compiled.lines import BINARY, UNARY, Line
from tinyattn.errors import GraphError, message
from tinyattn.kernels.small import FEW

Phrase = Callable[..., str]

NUMPY_NAME = {"abs": "absolute"}


def _out(out: str | None) -> str:
    return f", {out}" if out else ""


def _ufunc(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    spelled = f", out={out}" if out and line.op in ("maximum", "minimum") else _out(out)  # NumPy wants it so for these
    return f"{w.np(NUMPY_NAME.get(line.op, line.op))}({', '.join(a)}{spelled})"


def _product(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    if all(len(x.shape) <= 2 for x in line.inputs):
        return f"{a[0]}.dot({a[1]}{_out(out)})"
    return f"{w.np('matmul')}({a[0]}, {a[1]}{_out(out)})"


def _reduction(name: str) -> Phrase:
    def phrase(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
        axes, keep = line.params
        shape = line.inputs[0].shape
        small = line.op == "sum" and line.backward and len(shape) == 2 and axes == (0,) and 0 < shape[0] <= 32
        if small and not keep and line.dtype.kind == "f":  # as the tape sums the rows of a small matrix
            return f"{w.fixed(np.ones(shape[0], line.dtype))}.dot({a[0]}{_out(out)})"
        whole = len(axes) == len(shape) and not keep
        if whole and line.op == "sum" and shape and math.prod(shape) <= FEW and line.dtype.char in "fd":  # as the tape
            return f"{a[0]}.ravel().dot({w.fixed(np.ones(math.prod(shape), line.dtype))}{_out(out)})"
        axis = "None" if whole else str(axes[0] if len(axes) == 1 else axes)
        rest = ", None, " + (out or "None") if out or keep else ""
        return f"{w.np(name)}.reduce({a[0]}, {axis}{rest}{', True' if keep else ''})"

    return phrase


def _row_sums(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    size = line.shape[1]
    return f"{a[0]}.dot({w.fixed(np.ones((size, size), line.dtype))}{_out(out)})"


def _where(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    return f"{w.np('where')}({w.param(line.params[0])}, {a[0]}, {a[1]})"


def _clip(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    low, high = line.params
    return f"np.clip({a[0]}, {low!r}, {high!r}{_out(out)})"


def _cast(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    return f"{w.np('copyto')}({out}, {a[0]}, 'unsafe')" if out else f"{a[0]}.astype({w.dtype(line.dtype)})"


def _filled(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    """Repeat an array, or a number, along more axes."""
    (x,) = line.inputs
    if x.number:
        number = w.number(x)
        return f"{out}.fill({number})" if out else f"np.full({line.shape}, {number}, {w.dtype(line.dtype)})"
    return f"{w.np('copyto')}({out}, {a[0]})" if out else f"np.broadcast_to({a[0]}, {line.shape}).copy()"


def _reshape(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    (x,) = line.inputs
    if x.number:
        return _filled(w, line, a, out)
    return f"{w.np('copyto')}({out}.reshape({x.shape}), {a[0]})" if out else f"{a[0]}.copy().reshape({line.shape})"


def _transposed(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    axes = line.params[0]
    return f"{a[0]}.T" if axes == tuple(range(len(axes)))[::-1] else f"{a[0]}.transpose({axes})"


def _viewed(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    return f"{a[0]}.reshape({line.shape})"


def _index(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    _check_rows(w, line.params[0], line.inputs[0].shape)
    return f"{a[0]}[{w.key(line.params[0])}]"


def _scatter_add(w: Any, line: Line, a: Sequence[str], out: str | None) -> str | list[str]:
    key, shape = line.params
    made = f"{out}.fill(0)" if out else f"np.zeros({shape}, {w.dtype(line.dtype)})"
    target = w.name(line)
    how = f"{target}[{w.key(key)}] = {a[0]}" if _reads_once(key) else f"np.add.at({target}, {_pair(w, key)}, {a[0]})"
    return [made, how]


def _check_rows(w: Any, key: Any, shape: tuple[int, ...]) -> None:
    """Let the program look whether whole numbers that it is given are rows; the tape says it if they are not."""
    parts = key if isinstance(key, tuple) else (key,)
    for axis, part in enumerate(parts):
        if part is None or part is Ellipsis:
            return
        if isinstance(part, Line):
            w.check_rows(part, shape[axis])


def _pair(w: Any, key: Any) -> str:
    text: str = w.key(key)
    if not isinstance(key, tuple):
        return text
    return f"np.s_[{text}]" if any(isinstance(part, slice) or part is Ellipsis for part in key) else f"({text})"


def _reads_once(key: Any) -> bool:
    """Whether no place is named twice: numbers and slices, or one row after the other."""
    parts = key if isinstance(key, tuple) else (key,)
    arrays = [part for part in parts if isinstance(part, (Line, np.ndarray))]
    if not arrays:
        return True
    first = arrays[0]
    return (
        len(arrays) == len(parts) == 2
        and isinstance(first, np.ndarray)
        and np.array_equal(first, np.arange(first.size))
    )


def _embedded(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    """Rows added at numbers, as a product with a matrix of zeros and ones: far faster than adding row by row."""
    key, shape = line.params
    hot = f"({w.fixed(np.arange(shape[0])[:, None])} == {w.param(key)}.ravel())"
    rows = a[0] if len(line.inputs[0].shape) == 2 else f"{a[0]}.reshape((-1, {shape[1]}))"
    return f"{hot}.astype({w.dtype(line.dtype)}).dot({rows}{_out(out)})"


def scattered(w: Any, line: Line, a: Sequence[str], out: str | None) -> str | list[str]:
    """Numbers added at places that a key names."""
    key, shape = line.params
    _check_rows(w, key, shape)
    few = isinstance(key, (Line, np.ndarray)) and key.dtype.kind in "iu" and len(shape) == 2
    if few and shape[0] * key.size <= 1 << 16:
        return _embedded(w, line, a, out)
    return _scatter_add(w, line, a, out)


def _packed(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    places = dict(zip(line.params[0], line.inputs, strict=True))

    def nested(prefix: tuple[int, ...]) -> str:
        if len(prefix) == len(line.shape):
            return w.number(places[prefix]) if prefix in places else "0.0"
        return f"[{', '.join(nested((*prefix, i)) for i in range(line.shape[len(prefix)]))}]"

    return f"np.array({nested(())}, {w.dtype(line.dtype)})"


def _stacked(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    if line.inputs[0].shape == ():
        return f"np.array([{', '.join(w.number(x) for x in line.inputs)}], {w.dtype(line.dtype)})"
    return f"np.stack(({', '.join(a)},), {line.params[0]})"


def _joined(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    return f"{w.np('concatenate')}(({', '.join(a)},), {line.params[0]}{_out(out)})"


def _padded(w: Any, line: Line, a: Sequence[str], out: str | None) -> list[str]:
    widths, value = line.params
    inside = tuple(slice(n, n + size) for (n, _), size in zip(widths, line.inputs[0].shape, strict=True))
    made = f"{out}.fill({value!r})" if out else f"np.full({line.shape}, {value!r}, {w.dtype(line.dtype)})"
    return [made, f"{w.name(line)}[{w.key(inside)}] = {a[0]}"]


def _einsum(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    return f"np.einsum({line.params[0]!r}, {', '.join(a)}{f', out={out}' if out else ''})"


def _softmax(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    axis, keep = line.params
    shape = line.shape
    if keep is not None:
        return f"{w.helper('softmax_of_kept')}({a[0]}, {w.param(keep)}, {axis}, {out})"
    if len(shape) == 2 and axis == 1 and shape[1] <= 32:
        return f"{w.helper('softmax_of_rows')}({a[0]}, {w.fixed(np.ones((shape[1],) * 2, line.dtype))}, {out})"
    return f"{w.helper('softmax')}({a[0]}, {axis}, {out})"


def _log_softmax(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    return f"{w.helper('log_softmax')}({a[0]}, {line.params[0]}, {out})"


def _erf(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    return f"{w.helper('erf')}({a[0]}).astype({w.dtype(line.dtype)})"


def _power(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    return f"{a[0]} ** {line.params[0]}"


def _take_along(w: Any, line: Line, a: Sequence[str], out: str | None) -> str:
    if isinstance(line.params[0], Line):
        w.check_rows(line.params[0], line.inputs[0].shape[line.params[1]])
    return f"np.take_along_axis({a[0]}, {w.param(line.params[0])}, {line.params[1]})"


def _put_along(w: Any, line: Line, a: Sequence[str], out: str | None) -> list[str]:
    indices, axis, shape = line.params
    if isinstance(indices, Line):
        w.check_rows(indices, shape[axis])
    grid = [f"{w.fixed(part)}" for part in np.indices(indices.shape, sparse=True)]
    grid[axis] = w.param(indices)
    return [f"np.zeros({shape}, {w.dtype(line.dtype)})", f"np.add.at({w.name(line)}, ({', '.join(grid)},), {a[0]})"]


PHRASES: dict[str, Any] = {
    **dict.fromkeys(BINARY | UNARY, _ufunc), "matmul": _product, "sum": _reduction("add"),
    "max": _reduction("maximum"), "min": _reduction("minimum"), "prod": _reduction("multiply"),
    "row_sums": _row_sums, "where": _where, "clip": _clip, "cast": _cast, "broadcast_to": _filled,
    "reshape": _reshape, "expand_dims": _reshape, "squeeze": _reshape, "index": _index, "scatter_add": scattered,
    "pack": _packed, "stack": _stacked, "concatenate": _joined, "pad": _padded, "einsum": _einsum,
    "softmax": _softmax, "log_softmax": _log_softmax, "erf": _erf, "integer_power": _power,
    "take_along_axis": _take_along, "put_along_axis": _put_along,
}  # fmt: skip
VIEWS: dict[str, Any] = {"transpose": _transposed, "reshape": _viewed, "index": _index}

# -- single numbers ----------------------------------------------------------------------------------------------------

LOOSE, COMPARED, SUM, PRODUCT, SIGN, CLOSED = range(6)
NUMBERS: dict[str, tuple[str, int]] = {
    "add": ("{0} + {1}", SUM), "subtract": ("{0} - {1}", SUM), "multiply": ("{0} * {1}", PRODUCT),
    "divide": ("{0} / {1}", PRODUCT), "negative": ("-{0}", SIGN), "power": ("math.pow({0}, {1})", CLOSED),
    "exp": ("math.exp({0})", CLOSED), "log": ("math.log({0})", CLOSED), "sqrt": ("math.sqrt({0})", CLOSED),
    "sin": ("math.sin({0})", CLOSED), "cos": ("math.cos({0})", CLOSED), "tanh": ("math.tanh({0})", CLOSED),
    "erf": ("math.erf({0})", CLOSED), "abs": ("abs({0})", CLOSED), "cast": ("{0}", LOOSE),
    "equal": ("{0} == {1}", COMPARED), "not_equal": ("{0} != {1}", COMPARED), "less": ("{0} < {1}", COMPARED),
    "less_equal": ("{0} <= {1}", COMPARED), "greater": ("{0} > {1}", COMPARED),
    "greater_equal": ("{0} >= {1}", COMPARED), "logical_and": ("({0} and {1})", CLOSED),
    "logical_or": ("({0} or {1})", CLOSED), "logical_xor": ("({0} != {1})", CLOSED),
    "logical_not": ("(not {0})", CLOSED), "isfinite": ("math.isfinite({0})", CLOSED),
    "isnan": ("math.isnan({0})", CLOSED), "isinf": ("math.isinf({0})", CLOSED),
    "signbit": ("(math.copysign(1.0, {0}) < 0)", CLOSED),
}  # fmt: skip
"""Where Python has no number to give (1/0, the logarithm of 0), it raises; the caller then asks the tape."""

_CHOICES = {"maximum": ("<=", ">="), "minimum": (">=", "<=")}


def number_phrase(w: Any, line: Line, a: Sequence[str], binds: Sequence[int]) -> tuple[str, int]:
    """A number as an expression of numbers, and how tightly it binds."""
    if line.op in NUMBERS:
        form, own = NUMBERS[line.op]
        right = own + 1 if line.op in ("subtract", "divide", "negative") or own == COMPARED else own
        least = (own, right if line.op != "add" and line.op != "multiply" else own + 1)
        inside = [
            x if own == CLOSED or bind >= need else f"({x})" for x, bind, need in zip(a, binds, least, strict=False)
        ]
        if line.op == "negative" and binds[0] <= SIGN:
            inside = [f"({a[0]})"]
        if line.op == "cast":
            return a[0], binds[0]
        return form.format(*inside), own
    if line.op in _CHOICES:
        one_way, other_way = _CHOICES[line.op]
        x, limit = (a[1], a[0]) if line.inputs[0].constant else (a[0], a[1])
        if any(y.constant and not math.isnan(float(y.value)) for y in line.inputs):
            return f"({limit} if {x} {one_way} {limit} else {x})", CLOSED  # nan is neither, and stays
        return f"({x} if {x} {other_way} {limit} or {x} != {x} else {limit})", CLOSED
    if line.op == "where":
        return f"({a[0]} if {w.param(line.params[0])} else {a[1]})", CLOSED
    if line.op == "clip":
        return f"float(np.clip({a[0]}, {line.params[0]!r}, {line.params[1]!r}))", CLOSED
    if line.op == "integer_power":
        return f"({a[0]}) ** {line.params[0]}", CLOSED
    if line.op in _NOTHING_TO_DO:
        return a[0], binds[0]
    raise no_phrase(line.op)


_NOTHING_TO_DO = {
    "sum",
    "max",
    "min",
    "prod",
    "reshape",
    "expand_dims",
    "squeeze",
    "transpose",
    "broadcast_to",
    "index",
}
"""What leaves a single number as it is."""


def no_phrase(op: str) -> GraphError:
    """Say that an operation of the user's own cannot be written."""
    return GraphError(
        message(
            f"compile: there is no line for the operation {op!r}.",
            "A program is NumPy alone, and only the operations of tinyattn's rule book are known in that form.",
            "Write it from those operations, or leave this function uncompiled.",
        )
    )


HELPERS = {
    "softmax_of_rows": '''
def softmax_of_rows(x, ones, out):
    """exp(x) / its row sums; shifted by the largest of each row only where exp could overflow."""
    flat = x.ravel()
    small = flat.dot(flat) < 3600
    e = exp(x if small else x - maximum.reduce(x, 1, None, None, True), out)
    return divide(e, e.dot(ones), e)
''',
    "softmax": '''
def softmax(x, axis, out):
    """exp(x) / its sums along an axis; shifted by the largest only where exp could overflow."""
    flat = x.ravel()
    small = flat.dot(flat) < 3600
    e = exp(x if small else x - maximum.reduce(x, axis, None, None, True), out)
    return divide(e, add.reduce(e, axis, None, None, True), e)
''',
    "softmax_of_kept": '''
def softmax_of_kept(x, keep, axis, out):
    """The softmax of the entries that are kept; the others, and rows with none kept, are 0."""
    nothing = ~np.broadcast_to(keep, x.shape).any(axis, keepdims=True)
    largest = maximum.reduce(np.where(keep, x, -np.inf), axis, None, None, True)
    shift = np.where(nothing, 0.0, largest).astype(x.dtype)
    e = np.where(keep, exp(np.where(keep, x - shift, 0.0)), 0.0)
    total = np.where(nothing, 1.0, add.reduce(e, axis, None, None, True)).astype(x.dtype)
    return divide(e, total, e if out is None else out)
''',
    "log_softmax": '''
def log_softmax(x, axis, out):
    """x - log(sum(exp(x))), both shifted by the largest entry."""
    shifted = subtract(x, maximum.reduce(x, axis, None, None, True), out)
    return subtract(shifted, np.log(add.reduce(exp(shifted), axis, None, None, True)), shifted)
''',
    "check_rows": '''
def check_rows(numbers, size):
    """Refuse numbers that are no rows of an array with ``size`` rows."""
    if numbers.size and not 0 <= np.minimum.reduce(numbers, None) <= np.maximum.reduce(numbers, None) < size:
        raise IndexError(f"{numbers.tolist()} are not all from 0 to {size - 1}")
''',
    "erf": """
erf = np.frompyfunc(math.erf, 1, 1)  # NumPy has no error function
""",
}
HELPER_NEEDS = {
    "softmax_of_rows": "divide exp maximum",
    "softmax": "add divide exp maximum",
    "softmax_of_kept": "add divide exp maximum",
    "log_softmax": "add exp maximum subtract",
    "erf": "",
    "check_rows": "",
}
