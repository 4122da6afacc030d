"""Views and joins: the numbers stay, their places change.  Each op's rule is the way back.

Parameters arrive normalised: shapes as tuples without -1, axes as non-negative numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyattn.ops.helpers import inverse_order, letters, sum_to
from tinyattn.ops.record import Call, Op, register


def _groups(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[str, str] | None:
    """Index texts of a reshape that only splits and merges whole axes; None when it does not."""
    names = iter(letters(26))
    left: list[str] = []
    right: list[str] = []
    i = j = 0
    while i < len(old) or j < len(new):
        a, b = i + 1, j + 1
        while (p := math.prod(old[i:a])) != (q := math.prod(new[j:b])):
            if (p < q and a >= len(old)) or (p > q and b >= len(new)):
                return None
            a, b = (a + 1, b) if p < q else (a, b + 1)
        if a - i > 1 and b - j > 1:
            return None
        parts = [next(names) for _ in range(max(a - i, b - j))]
        right += parts if a - i == len(parts) else ([f"({' '.join(parts)})"] if i < len(old) else [])
        left += parts if b - j == len(parts) else ([f"({' '.join(parts)})"] if j < len(new) else [])
        i, j = a, b
    return ",".join(left), ",".join(right)


def _flat(names: list[str], shape: tuple[int, ...]) -> str:
    """The position in memory of an entry: ``3*i + j`` for shape (2, 3)."""
    terms = []
    for axis, name in enumerate(names):
        step = math.prod(shape[axis + 1 :])
        terms.append(name if step == 1 else f"{step}*{name}")
    return " + ".join(terms) or "0"


def _reshape_definition(call: Call) -> str:
    old, new = call.shapes[0], call.params["shape"]
    if old == new:
        return "y[...] = x[...]"
    if 1 not in old + new and 0 not in old + new:
        grouped = _groups(old, new)
        if grouped is not None:
            return f"y[{grouped[0]}] = x[{grouped[1]}]"
    names = letters(len(old) + len(new))
    to, source = names[: len(new)], names[len(new) :]
    start = f"sum_{','.join(source)} " if source else ""
    return f"y[{','.join(to)}] = {start}[{_flat(to, new)} == {_flat(source, old)}] * x[{','.join(source)}]"


def _why_reshape(operands: Any, shapes: Any, params: Any) -> tuple[str, str]:
    old, new = math.prod(shapes[0]), math.prod(params["shape"])
    return f"{operands[0]} has {old} numbers, the new shape {params['shape']} has room for {new}.", "One size may be -1."


reshape = register(
    Op(
        "reshape",
        lambda x, shape: x.reshape(shape),
        (lambda g, y, x, shape: g.reshape(x.shape),),
        _reshape_definition,
        params=("shape",),
        sample=lambda rng: [
            ((rng.normal(size=old),), (new,))
            for old, new in (((2, 3), (6,)), ((6,), (2, 3)), ((2, 6), (4, 3)), ((2, 6), (2, 2, 3)), ((1, 2), (2, 1, 1)))
        ],
        explain=_why_reshape,
    )
)


def _transpose_definition(call: Call) -> str:
    names = letters(len(call.shapes[0]))
    return f"y[{','.join(names[axis] for axis in call.params['axes'])}] = x[{','.join(names)}]"


transpose = register(
    Op(
        "transpose",
        lambda x, axes: x.transpose(axes),
        (lambda g, y, x, axes: g.transpose(inverse_order(axes)),),
        _transpose_definition,
        params=("axes",),
        sample=lambda rng: [
            ((rng.normal(size=shape),), (axes,))
            for shape, axes in (((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 3), (0, 1)), ((3,), (0,)))
        ],
    )
)


def _expand_definition(call: Call) -> str:
    total = len(call.shapes[0]) + len(call.params["axis"])
    names = letters(total)
    kept = [name for axis, name in enumerate(names) if axis not in call.params["axis"]]
    return f"y[{','.join(names)}] = x[{','.join(kept)}]"


expand_dims = register(
    Op(
        "expand_dims",
        lambda x, axis: x.reshape(_with_ones(x.shape, axis)),
        (lambda g, y, x, axis: g.reshape(x.shape),),
        _expand_definition,
        params=("axis",),
        sample=lambda rng: [((rng.normal(size=(2, 3)),), (axis,)) for axis in ((0,), (2,), (0, 3))],
    )
)


def _with_ones(shape: tuple[int, ...], axis: tuple[int, ...]) -> tuple[int, ...]:
    sizes = iter(shape)
    return tuple(1 if a in axis else next(sizes) for a in range(len(shape) + len(axis)))


def _squeeze_definition(call: Call) -> str:
    names = letters(len(call.shapes[0]))
    kept = [name for axis, name in enumerate(names) if axis not in call.params["axis"]]
    inner = ["0" if axis in call.params["axis"] else name for axis, name in enumerate(names)]
    return f"y[{','.join(kept)}] = x[{','.join(inner)}]"


squeeze = register(
    Op(
        "squeeze",
        lambda x, axis: x.reshape(tuple(size for a, size in enumerate(x.shape) if a not in axis)),
        (lambda g, y, x, axis: g.reshape(x.shape),),
        _squeeze_definition,
        params=("axis",),
        sample=lambda rng: [((rng.normal(size=(1, 3, 1)),), (axis,)) for axis in ((0,), (0, 2))],
    )
)


def _broadcast_definition(call: Call) -> str:
    names = letters(len(call.params["shape"]))
    old, new = call.shapes[0], call.params["shape"]
    own = names[len(new) - len(old) :]
    inner = ["0" if size == 1 != big else name for name, size, big in zip(own, old, new[len(new) - len(old) :], strict=True)]
    return f"y[{','.join(names)}] = x[{','.join(inner)}]"


def _why_broadcast_to(operands: Any, shapes: Any, params: Any) -> tuple[str, str]:
    return (
        f"Read from the right, each size of {shapes[0]} must be 1 or the one of {params['shape']}.",
        f"Insert axes of size 1 into {operands[0]} with expand_dims first.",
    )


broadcast_to = register(
    Op(
        "broadcast_to",
        lambda x, shape: np.broadcast_to(x, shape),
        (lambda g, y, x, shape: sum_to(g, x.shape),),
        _broadcast_definition,
        params=("shape",),
        sample=lambda rng: [
            ((rng.normal(size=old),), (new,))
            for old, new in (((3,), (2, 3)), ((2, 1), (2, 3)), ((), (2,)), ((1, 3), (2, 2, 3)), ((2,), (2,)))
        ],
        explain=_why_broadcast_to,
    )
)


def _ranges(sizes: list[int]) -> list[tuple[int, int]]:
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _pick(axis: int, start: int, end: int, ndim: int) -> tuple[slice, ...]:
    return tuple(slice(start, end) if a == axis else slice(None) for a in range(ndim))


def _concatenate(*operands: Any) -> Any:
    *pieces, axis = operands
    return np.concatenate(pieces, axis=axis)


def _concatenate_rule(g: Any, y: Any, *rest: Any) -> tuple[Any, ...]:
    *pieces, axis = rest
    ranges = _ranges([piece.shape[axis] for piece in pieces])
    return tuple(g[_pick(axis, start, end, len(g.shape))] for start, end in ranges)


def _concatenate_definition(call: Call) -> str:
    axis, names = call.params["axis"], letters(len(call.shapes[0]))
    terms = []
    for slot, (start, end) in enumerate(_ranges([shape[axis] for shape in call.shapes])):
        at = f"{names[axis]} - {start}" if start else names[axis]
        inner = ",".join(at if a == axis else name for a, name in enumerate(names))
        terms.append(f"[{start} <= {names[axis]}, {names[axis]} < {end}] * x{slot}[{inner}]")
    return f"y[{','.join(names)}] = {' + '.join(terms)}"


def _why_join(operands: Any, shapes: Any, params: Any) -> tuple[str, str]:
    axis = params["axis"]
    for name, shape in zip(operands, shapes, strict=True):
        if len(shape) != len(shapes[0]):
            return f"{operands[0]} has {len(shapes[0])} axes and {name} has {len(shape)}.", "Add axes with expand_dims."
        for a, (left, right) in enumerate(zip(shapes[0], shape, strict=True)):
            if a != axis and left != right:
                return f"Axis {a} is {left} in {operands[0]} and {right} in {name}; only the joined axis may differ.", ""
    return "", ""


concatenate = register(
    Op(
        "concatenate",
        _concatenate,
        _concatenate_rule,
        _concatenate_definition,
        params=("axis",),
        variadic=True,
        sample=lambda rng: [
            (tuple(rng.normal(size=shape) for shape in shapes), (axis,))
            for shapes, axis in ((((2, 3), (1, 3)), 0), (((2, 1), (2, 2), (2, 1)), 1), (((3,),), 0), (((0, 2), (1, 2)), 0))
        ],
        explain=_why_join,
    )
)


def _stack(*operands: Any) -> Any:
    *pieces, axis = operands
    return np.stack(pieces, axis=axis)


def _stack_rule(g: Any, y: Any, *rest: Any) -> tuple[Any, ...]:
    *pieces, axis = rest
    ndim = len(g.shape)
    return tuple(g[_pick(axis, i, i + 1, ndim)].reshape(pieces[0].shape) for i in range(len(pieces)))


def _stack_definition(call: Call) -> str:
    axis, names = call.params["axis"], letters(len(call.shapes[0]) + 1)
    own = ",".join(name for a, name in enumerate(names) if a != axis)
    terms = [f"[{names[axis]} == {slot}] * x{slot}[{own}]" for slot in range(len(call.shapes))]
    return f"y[{','.join(names)}] = {' + '.join(terms)}"


stack = register(
    Op(
        "stack",
        _stack,
        _stack_rule,
        _stack_definition,
        params=("axis",),
        variadic=True,
        sample=lambda rng: [
            (tuple(rng.normal(size=shape) for _ in range(count)), (axis,))
            for shape, count, axis in (((2, 3), 2, 0), ((2,), 3, 1), ((), 2, 0))
        ],
        explain=_why_join,
    )
)


def _pad(x: Any, widths: tuple[tuple[int, int], ...], value: float) -> Any:
    return np.pad(x, widths, constant_values=value)


def _pad_rule(g: Any, y: Any, x: Any, widths: tuple[tuple[int, int], ...], value: float) -> Any:
    return g[tuple(slice(before, before + size) for (before, _), size in zip(widths, x.shape, strict=True))]


def _pad_definition(call: Call) -> str:
    names, widths, shape = letters(len(call.shapes[0])), call.params["widths"], call.shapes[0]
    inside = [
        f"{before} <= {name}, {name} < {before + size}"
        for name, (before, after), size in zip(names, widths, shape, strict=True)
        if before or after
    ]
    if not inside:
        return "y[...] = x[...]"
    at = ",".join(f"{name} - {before}" if before else name for name, (before, _) in zip(names, widths, strict=True))
    test = f"[{', '.join(inside)}]"
    edge = f" + (1 - {test}) * value" if call.params["value"] else ""
    return f"y[{','.join(names)}] = {test} * x[{at}]{edge}"


pad = register(
    Op(
        "pad",
        _pad,
        (_pad_rule,),
        _pad_definition,
        params=("widths", "value"),
        sample=lambda rng: [
            ((rng.normal(size=(2, 3)),), (((1, 0), (0, 2)), 0.0)),
            ((rng.normal(size=(3,)),), (((2, 1),), 1.5)),
        ],
    )
)
