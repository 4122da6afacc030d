"""Reading entries by number, and the way back: adding into the places that were read.

An entry that is read twice gets both cotangents, so the transpose of indexing *adds*; ``z[key] = g``
would keep only the last.  Both directions are ops, because each is the gradient of the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.kernels import scatter
from tinyattn.ops.describing import calls, entry, flat, letters, over
from tinyattn.ops.record import Call, Op, register

Shape = tuple[int, ...]


def is_basic(key: Any) -> bool:
    """True for numbers, slices, None and ...: such a key reads no entry twice."""
    parts = key if isinstance(key, tuple) else (key,)
    basic = (int, np.integer, slice, type(None), type(Ellipsis))
    return all(isinstance(part, basic) and not isinstance(part, (bool, np.bool_)) for part in parts)


def _places(key: Any, shape: Shape) -> tuple[list[str], list[str]] | None:
    """Indices of ``x[key]`` and where each reads in x, for numbers, slices, None, and integer arrays side by side.

    Other keys have no short form; it is None.  So has an array beside a number: NumPy then moves its axes to the front.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    dots = next((place for place, part in enumerate(parts) if part is Ellipsis), len(parts))
    read = sum(part is not None and part is not Ellipsis for part in parts)
    parts[dots : dots + 1] = [slice(None)] * (len(shape) - read)
    at = [place for place, part in enumerate(parts) if isinstance(part, np.ndarray)]
    alike = len({(parts[place].shape, place - first, parts[place].dtype.kind == "b") for first, place in enumerate(at)})
    if alike > 1 or (at and (parts[at[0]].dtype == bool or any(isinstance(part, (int, np.integer)) for part in parts))):
        return None
    names, sizes = iter(letters(26)), iter(shape)
    to: list[str] = []
    source: list[str] = []
    for place, part in enumerate(parts):
        count = 1 if part is None or isinstance(part, slice) else np.ndim(part)
        own = to[-count:] if place in at[1:] and count else [next(names) for _ in range(count)]
        to += [] if place in at[1:] else own
        if part is not None:
            called = "index" if len(at) < 2 else f"index{place - at[0]}"
            source.append(_place(part, next(sizes), own, called))
    return to, source


def _place(part: Any, size: int, own: list[str], called: str) -> str:
    """Where one part of a key reads along an axis of that size; the first of several arrays may count it through."""
    if isinstance(part, np.ndarray):
        return own[0] if called == "index0" and np.array_equal(part, np.arange(size)) else entry(called, own)
    if not isinstance(part, slice):
        return str(int(part) % size)
    start, _, step = part.indices(size)
    return (own[0] if step == 1 else f"{step}*{own[0]}") + (f" + {start}" if start else "")


def _index_definition(call: Call) -> str:
    shape = call.shapes[0]
    if places := _places(call.params["key"], shape):
        return f"{entry('y', places[0])} = {entry('x', places[1])}"
    names = letters(len(shape))  # any key at all, by the position in memory of each entry that it reads
    return f"y[...] = {over(names)}[position[...] == {flat(names, shape)}] * {entry('x', names)}"


def _scatter_definition(call: Call) -> str:
    shape = call.params["shape"]
    places = _places(call.params["key"], shape)
    read = places[0] if places else letters(len(call.shapes[0]))
    to = letters(len(shape), skip=read)
    test = f"{entry('position', read)} == {flat(to, shape)}"
    if places:
        test = ", ".join(f"{name} == {place}" for name, place in zip(to, places[1], strict=True))
    return f"{entry('y', to)} = {over(read)}[{test}] * {entry('g', read)}"


_KEYS: list[Any] = [
    1, (slice(None), 2), (slice(0, 2), slice(1, None, 2)), np.array([0, 2, 2, 1]),
    (slice(None), np.array([[3, 0], [0, 1]])), (None, 0), (0, np.array([1, 1])), (np.arange(3), np.array([3, 0, 3])),
]

index: Op = register(Op(
    "index", lambda x, key: x[key],
    (lambda g, y, x, key: scatter_add(g, key, x.shape),),
    _index_definition, params=("key",),
    sample=calls(*(((3, 4), key) for key in _KEYS)),
))

scatter_add: Op = register(Op(
    "scatter_add", lambda g, key, shape: scatter.scatter_add(g, key, shape, is_basic(key)),
    (lambda g, y, x, key, shape: index(g, key),),
    _scatter_definition, inputs=("g",), params=("key", "shape"),
    sample=calls(*((np.zeros((3, 4))[key].shape, key, (3, 4)) for key in _KEYS)),
))


def _put_along(g: Any, indices: np.ndarray, axis: int, shape: Shape) -> Any:
    out, grid = np.zeros(shape, g.dtype), np.indices(indices.shape, sparse=True)
    np.add.at(out, (*grid[:axis], indices, *grid[axis + 1 :]), g)
    return out


def _take_along_definition(call: Call) -> str:
    names, axis = letters(len(call.shapes[0])), call.params["axis"]
    source = [entry("indices", names) if a == axis else name for a, name in enumerate(names)]
    return f"{entry('y', names)} = {entry('x', source)}"


def _put_along_definition(call: Call) -> str:
    axis, (*read, place) = call.params["axis"], letters(len(call.shapes[0]) + 1)
    to = [place if a == axis else name for a, name in enumerate(read)]
    return f"{entry('y', to)} = {over([read[axis]])}[{entry('indices', read)} == {place}] * {entry('g', read)}"


take_along_axis: Op = register(Op(
    "take_along_axis", lambda x, indices, axis: np.take_along_axis(x, indices, axis),
    (lambda g, y, x, indices, axis: put_along_axis(g, indices, axis, x.shape),),
    _take_along_definition, params=("indices", "axis"),
    sample=calls(
        ((2, 3), np.array([[0, 2], [1, 1]]), 1), ((3,), np.array([2, 2, 0, 1]), 0), ((3, 2), np.array([[0, 2]]), 0)
    ),
))

put_along_axis: Op = register(Op(
    "put_along_axis", _put_along,  # adds where two indices meet
    (lambda g, y, x, indices, axis, shape: take_along_axis(g, indices, axis),),
    _put_along_definition, inputs=("g",), params=("indices", "axis", "shape"),
    sample=calls(((2, 2), np.array([[0, 2], [1, 1]]), 1, (2, 3)), ((4,), np.array([2, 2, 0, 1]), 0, (3,))),
))
