"""Views and joins: the numbers stay, their places change.  Each op's rule is the way back.

Parameters arrive normalised: shapes as tuples without -1, axes as non-negative numbers.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyattn.ops.describing import calls, entry, flat, letters, over
from tinyattn.ops.helpers import inverse_order, sum_to, with_axes
from tinyattn.ops.record import Call, Op, register

Shape = tuple[int, ...]
Indices = tuple[list[str], list[str]]


def _view(name: str, param: str, forward: Any, rule: Any, indices: Callable[[Shape, Any], Indices], sample: Any) -> Op:
    """A record of one input, in which ``indices(shape, param)`` gives the indices of y and those of x."""

    def definition(call: Call) -> str:
        to, source = indices(call.shapes[0], call.params[param])
        return f"{entry('y', to)} = {entry('x', source)}"

    return register(Op(name, forward, (rule,), definition, params=(param,), sample=sample))


def _regrouped(old: Shape, new: Shape) -> Indices | None:
    """Indices for a reshape that only splits and merges whole axes, ``y[i,j,k] = x[i,(j k)]``; None for any other.

    Axes of size 1 come and go: ``y[i,k] = x[0,i]``.
    """
    if 0 in old + new:
        return None
    longer = ((size for size in shape if size > 1) for shape in (old, new))
    before, after = (list(itertools.accumulate(sizes, operator.mul, initial=1)) for sizes in longer)
    names, to, source = iter(letters(26)), [], []
    for start, end in itertools.pairwise(sorted({*before} & {*after})):  # where both have the end of an axis
        count, wanted = (ends.index(end) - ends.index(start) for ends in (before, after))
        if count > 1 and wanted > 1:
            return None
        own = [next(names) for _ in range(max(count, wanted))]
        source += own if count == len(own) else [f"({' '.join(own)})"]
        to += own if wanted == len(own) else [f"({' '.join(own)})"]
    inside, outside = iter(source), iter(to)
    ones = [next(names) if size == 1 else next(outside) for size in new]
    return ones, ["0" if size == 1 else next(inside) for size in old]


def _reshape_definition(call: Call) -> str:
    old, new = call.shapes[0], call.params["shape"]
    if old == new:
        return "y[...] = x[...]"
    if grouped := _regrouped(old, new):
        return f"{entry('y', grouped[0])} = {entry('x', grouped[1])}"
    names = letters(len(new) + len(old))
    to, source = names[: len(new)], names[len(new) :]
    return f"{entry('y', to)} = {over(source)}[{flat(to, new)} == {flat(source, old)}] * {entry('x', source)}"


reshape = register(Op(
    "reshape", lambda x, shape: x.reshape(shape),
    (lambda g, y, x, shape: g.reshape(x.shape),),
    _reshape_definition, params=("shape",),
    sample=calls(((2, 3), (6,)), ((6,), (2, 3)), ((2, 6), (4, 3)), ((2, 6), (2, 2, 3)), ((1, 2), (2, 1, 1))),
))


def _permuted(old: Shape, axes: Shape) -> Indices:
    names = letters(len(old))
    return [names[axis] for axis in axes], names


transpose = _view(
    "transpose", "axes", lambda x, axes: x.transpose(axes),
    lambda g, y, x, axes: g.transpose(inverse_order(axes)),
    _permuted,
    calls(((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 3), (0, 1)), ((3,), (0,))),
)


def _inserted(old: Shape, axis: Shape) -> Indices:
    names = letters(len(old) + len(axis))
    return names, [name for a, name in enumerate(names) if a not in axis]


expand_dims = _view(
    "expand_dims", "axis", lambda x, axis: with_axes(x, axis, len(x.shape) + len(axis)),
    lambda g, y, x, axis: g.reshape(x.shape),
    _inserted,
    calls(((2, 3), (0,)), ((2, 3), (2,)), ((2, 3), (0, 3))),
)


def _dropped(old: Shape, axis: Shape) -> Indices:
    source = ["0" if a in axis else name for a, name in enumerate(letters(len(old)))]
    return [name for name in source if name != "0"], source


squeeze = _view(
    "squeeze", "axis", lambda x, axis: x.reshape(tuple(size for a, size in enumerate(x.shape) if a not in axis)),
    lambda g, y, x, axis: g.reshape(x.shape),
    _dropped,
    calls(((1, 3, 1), (0,)), ((1, 3, 1), (0, 2))),
)


def _stretched(old: Shape, new: Shape) -> Indices:
    names, fresh = letters(len(new)), len(new) - len(old)
    return names, ["0" if size == 1 != new[fresh + a] else names[fresh + a] for a, size in enumerate(old)]


broadcast_to = _view(
    "broadcast_to", "shape", lambda x, shape: np.broadcast_to(x, shape),
    lambda g, y, x, shape: sum_to(g, x.shape),
    _stretched,
    calls(((3,), (2, 3)), ((2, 1), (2, 3)), ((), (2,)), ((1, 3), (2, 2, 3)), ((2,), (2,))),
)


def _ranges(sizes: list[int]) -> list[tuple[int, int]]:
    """Where each piece starts and ends in what is joined."""
    return list(itertools.pairwise(itertools.accumulate(sizes, initial=0)))


def _piece(g: Any, axis: int, start: int, end: int) -> Any:
    return g[(slice(None),) * axis + (slice(start, end),)]


def _concatenate_rule(g: Any, y: Any, *rest: Any) -> tuple[Any, ...]:
    *pieces, axis = rest
    return tuple(_piece(g, axis, start, end) for start, end in _ranges([piece.shape[axis] for piece in pieces]))


def _concatenate_definition(call: Call) -> str:
    axis, names = call.params["axis"], letters(len(call.shapes[0]))
    at, terms = names[axis], []
    for slot, (start, end) in enumerate(_ranges([shape[axis] for shape in call.shapes])):
        own = [f"{at} - {start}" if start and a == axis else name for a, name in enumerate(names)]
        terms.append(f"[{start} <= {at}, {at} < {end}] * {entry(f'x{slot}', own)}")
    return f"{entry('y', names)} = {' + '.join(terms)}"


concatenate = register(Op(
    "concatenate", lambda *rest: np.concatenate(rest[:-1], axis=rest[-1]), _concatenate_rule, _concatenate_definition,
    params=("axis",), variadic=True,
    sample=calls(([(2, 3), (1, 3)], 0), ([(2, 1), (2, 2), (2, 1)], 1), ([(3,)], 0), ([(0, 2), (1, 2)], 0)),
))


def _stack_rule(g: Any, y: Any, *rest: Any) -> tuple[Any, ...]:
    *pieces, axis = rest
    return tuple(_piece(g, axis, slot, slot + 1).reshape(x.shape) for slot, x in enumerate(pieces))


def _stack_definition(call: Call) -> str:
    axis, names = call.params["axis"], letters(len(call.shapes[0]) + 1)
    own = names[:axis] + names[axis + 1 :]
    terms = [f"[{names[axis]} == {slot}] * {entry(f'x{slot}', own)}" for slot in range(len(call.shapes))]
    return f"{entry('y', names)} = {' + '.join(terms)}"


stack = register(Op(
    "stack", lambda *rest: np.stack(rest[:-1], axis=rest[-1]), _stack_rule, _stack_definition,
    params=("axis",), variadic=True,
    sample=calls(([(2, 3), (2, 3)], 0), ([(2,), (2,), (2,)], 1), ([(), ()], 0)),
))


def _pad_rule(g: Any, y: Any, x: Any, widths: tuple[tuple[int, int], ...], value: float) -> Any:
    return g[tuple(slice(before, before + size) for (before, _), size in zip(widths, x.shape, strict=True))]


def _pad_definition(call: Call) -> str:
    shape, widths = call.shapes[0], call.params["widths"]
    axes = list(zip(letters(len(shape)), widths, shape, strict=True))
    tests = [f"{before} <= {i}, {i} < {before + n}" for i, (before, after), n in axes if before or after]
    if not tests:
        return "y[...] = x[...]"
    inside = f"[{', '.join(tests)}]"
    at = [f"{i} - {before}" if before else i for i, (before, _), _ in axes]
    edge = f" + (1 - {inside}) * value" if call.params["value"] else ""
    return f"{entry('y', letters(len(shape)))} = {inside} * {entry('x', at)}{edge}"


pad = register(Op(
    "pad", lambda x, widths, value: np.pad(x, widths, constant_values=value), (_pad_rule,), _pad_definition,
    params=("widths", "value"),
    sample=calls(((2, 3), ((1, 0), (0, 2)), 0.0), ((3,), ((2, 1),), 1.5)),
))
