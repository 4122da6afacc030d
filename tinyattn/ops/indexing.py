"""Reading entries by number, and the way back: adding into the places that were read.

An entry that is read twice gets both cotangents, so the transpose of indexing *adds*; ``z[key] = g``
would keep only the last.  Both directions are ops, because each is the gradient of the other.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tinyattn.ops.helpers import letters
from tinyattn.ops.record import Call, Op, register

_BASIC = (int, np.integer, slice, type(None), type(Ellipsis))


def is_basic(key: Any) -> bool:
    """True for numbers, slices, None and ...: such a key reads no entry twice."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(isinstance(part, _BASIC) and not isinstance(part, (bool, np.bool_)) for part in parts)


def _scatter_add(g: Any, key: Any, shape: tuple[int, ...]) -> Any:
    out = np.zeros(shape, g.dtype)
    if is_basic(key):
        out[key] = g
    else:
        np.add.at(out, key, g)
    return out


def positions(key: Any, shape: tuple[int, ...]) -> np.ndarray:
    """For each entry of ``x[key]`` its flat position in x: NumPy's own rules decide, none are repeated here."""
    return np.arange(int(np.prod(shape))).reshape(shape)[key]


def _index_definition(call: Call) -> str:
    simple = _simple_index(call.shapes[0], call.params["key"])
    return f"y[{','.join(simple[0])}] = x[{','.join(simple[1])}]" if simple else _flat_index(call.shapes[0])


def _simple_index(shape: tuple[int, ...], key: Any) -> tuple[list[str], list[str]] | None:
    """Result and operand indices for the common keys: numbers, slices, None, and one integer array."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(part, np.ndarray) and part.dtype == bool for part in parts):
        return None
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    if Ellipsis not in [part for part in parts if not isinstance(part, np.ndarray)]:
        parts.append(Ellipsis)
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) > 1:
        return None
    names = iter(letters(26))
    out: list[str] = []
    inner: list[str] = []
    axis = 0
    for part in parts:
        if part is Ellipsis:
            for _ in range(len(shape) - taken):
                name = next(names)
                out.append(name)
                inner.append(name)
                axis += 1
            continue
        if part is None:
            out.append(next(names))
            continue
        text = _one_part(part, shape[axis], names, out, len(parts))
        inner.append(text)
        axis += 1
    return out, inner


def _one_part(part: Any, size: int, names: Any, out: list[str], count: int) -> str:
    if isinstance(part, slice):
        start, _, step = part.indices(size)
        name = next(names)
        out.append(name)
        text = name if step == 1 else f"{step}*{name}"
        return text if start == 0 else f"{text} + {start}"
    if isinstance(part, np.ndarray):
        own = [next(names) for _ in range(part.ndim)]
        out.extend(own)
        return f"index[{','.join(own)}]"
    return str(int(part) % size)


def _flat_index(shape: tuple[int, ...]) -> str:
    """Any key at all, by the flat position of each entry that it reads."""
    names = letters(len(shape))
    steps = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    flat = " + ".join(f"{step}*{name}" for step, name in zip(steps, names, strict=True))
    return f"y[...] = sum_{','.join(names)} [position[...] == {flat}] * x[{','.join(names)}]"


def _key_arrays(call: Call) -> dict[str, Any]:
    """The integer array of a key as ``index``, and the flat position of each entry read as ``position``."""
    key = call.params["key"]
    parts = key if isinstance(key, tuple) else (key,)
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    shape = call.params.get("shape", call.shapes[0])
    return {"index": arrays[0] if len(arrays) == 1 else None, "position": positions(key, shape)}


def _why_index(operands: Any, shapes: Any, params: Any) -> tuple[str, str]:
    return f"{operands[0]} has shape {shapes[0]}; indices run from 0, or from -size, to size - 1.", "Check the index against that shape."


def _keys(rng: Any) -> list[Any]:
    x = rng.normal(size=(3, 4))
    keys: list[Any] = [
        1, (slice(None), 2), (slice(0, 2), slice(1, None, 2)), np.array([0, 2, 2, 1]), (slice(None), np.array([[3, 0], [0, 1]])), (None, 0),
    ]  # fmt: skip
    return [((x,), (key,)) for key in keys]


index = register(
    Op(
        "index",
        lambda x, key: x[key],
        (lambda g, y, x, key: scatter_add(g, key, x.shape),),
        _index_definition,
        params=("key",),
        extras=_key_arrays,
        sample=_keys,
        explain=_why_index,
    )
)


def _scatter_definition(call: Call) -> str:
    shape, key = call.params["shape"], call.params["key"]
    simple = _simple_index(shape, key)
    if simple is None:
        read = letters(len(call.shapes[0]))
        to = letters(len(shape) + len(read))[len(read) :]
        flat = " + ".join(f"{int(np.prod(shape[a + 1 :]))}*{name}" for a, name in enumerate(to))
        start = f"sum_{','.join(read)} " if read else ""
        return f"y[{','.join(to)}] = {start}[position[{','.join(read)}] == {flat}] * g[{','.join(read)}]"
    read, place = simple
    to = letters(len(shape), skip="".join(read))
    tests = ", ".join(f"{name} == {text}" for name, text in zip(to, place, strict=True))
    start = f"sum_{','.join(read)} " if read else ""
    return f"y[{','.join(to)}] = {start}[{tests}] * g[{','.join(read)}]"


scatter_add = register(
    Op(
        "scatter_add",
        _scatter_add,
        (lambda g, y, x, key, shape: index(g, key),),
        _scatter_definition,
        inputs=("g",),
        params=("key", "shape"),
        extras=_key_arrays,
        sample=lambda rng: [((rng.normal(size=x[key].shape),), (key, x.shape)) for (x,), (key,) in _keys(rng)],
    )
)


def _along(index_array: np.ndarray, axis: int, ndim: int) -> tuple[Any, ...]:
    """The key that reads ``index_array`` along one axis and every other axis in step."""
    grid = np.indices(index_array.shape, sparse=True)
    return tuple(index_array if a == axis else grid[a] for a in range(ndim))


def _put_along(g: Any, indices: np.ndarray, axis: int, shape: tuple[int, ...]) -> Any:
    out = np.zeros(shape, g.dtype)
    np.add.at(out, _along(indices, axis, len(shape)), g)
    return out


def _take_along_definition(call: Call) -> str:
    names, axis = letters(len(call.shapes[0])), call.params["axis"]
    inner = [f"indices[{','.join(names)}]" if a == axis else name for a, name in enumerate(names)]
    return f"y[{','.join(names)}] = x[{','.join(inner)}]"


def _take_samples(rng: Any) -> list[Any]:
    return [
        ((rng.normal(size=(2, 3)),), (np.array([[0, 2], [1, 1]]), 1)),
        ((rng.normal(size=(3,)),), (np.array([2, 2, 0, 1]), 0)),
        ((rng.normal(size=(3, 2)),), (np.array([[0, 2]]), 0)),
    ]


take_along_axis = register(
    Op(
        "take_along_axis",
        lambda x, indices, axis: np.take_along_axis(x, indices, axis),
        (lambda g, y, x, indices, axis: put_along_axis(g, indices, axis, x.shape),),
        _take_along_definition,
        params=("indices", "axis"),
        sample=_take_samples,
        explain=_why_index,
    )
)


def _put_along_definition(call: Call) -> str:
    axis, names = call.params["axis"], letters(len(call.shapes[0]) + 1)
    source, to = names[:-1], names[-1]
    out = [to if a == axis else name for a, name in enumerate(source)]
    at = ",".join(source)
    return f"y[{','.join(out)}] = sum_{source[axis]} [indices[{at}] == {to}] * g[{at}]"


put_along_axis = register(
    Op(
        "put_along_axis",  # adds where two indices meet
        _put_along,
        (lambda g, y, x, indices, axis, shape: take_along_axis(g, indices, axis),),
        _put_along_definition,
        inputs=("g",),
        params=("indices", "axis", "shape"),
        sample=lambda rng: [
            ((rng.normal(size=indices.shape),), (indices, axis, x.shape)) for (x,), (indices, axis) in _take_samples(rng)[:2]
        ],
    )
)
