"""Indexing with any key, said in slices and ``take``.

Libraries agree about slices, and about reading along one axis by number; they differ in everything else that NumPy
lets stand between brackets.  So a key is taken apart first: slices, then one ``take``, then new axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.handover.words import Words

_ALL = slice(None)


def read(w: Words, x: Any, key: Any) -> Any:
    """Read ``x[key]`` as NumPy would, with arrays of numbers already turned into arrays of the namespace."""
    parts = _spelled_out(key, len(x.shape))
    arrays = [part for part in parts if _is_array(part)]
    if not arrays:
        return _with_new_axes(w, w.getitem(x, tuple(part for part in parts if part is not None)), parts)
    sources = [part for part in parts if part is not None]  # one for each axis of x
    slices = tuple(part if isinstance(part, slice) else _ALL for part in sources)
    if any(part != _ALL for part in slices):
        x = w.getitem(x, slices)
    axes = [axis for axis, part in enumerate(sources) if not isinstance(part, slice)]
    y, rank = _taken(w, x, [sources[axis] for axis in axes], axes)  # the axes of the indices stand in front
    return _in_place(w, y, parts, rank)


def _is_array(part: Any) -> bool:
    return hasattr(part, "dtype") and len(part.shape) > 0


def _spelled_out(key: Any, rank: int) -> list[Any]:
    """A part for each axis: ``...`` written out, constant booleans as the places where they are true."""
    parts: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        truth = isinstance(part, (np.ndarray, np.bool_, bool)) and np.asarray(part).dtype == bool
        parts.extend(np.nonzero(part) if truth else [part])
    read = sum(part is not None and part is not Ellipsis for part in parts)
    dots = next((at for at, part in enumerate(parts) if part is Ellipsis), len(parts))
    parts[dots : dots + 1] = [_ALL] * (rank - read)
    return parts


def _with_new_axes(w: Words, y: Any, parts: list[Any]) -> Any:
    """Axes of size 1 where the key has None; whole numbers have taken their axes away."""
    left = [part for part in parts if part is None or isinstance(part, slice)]
    new = tuple(at for at, part in enumerate(left) if part is None)
    return w.expand(y, new) if new else y


def _taken(w: Words, x: Any, indices: list[Any], axes: list[int]) -> tuple[Any, int]:
    """Read along several axes at once: they are merged into one, and so are the indices."""
    lengths = [w.length(x, axis) for axis in axes]
    place: Any = None
    for index, n in zip(indices, lengths, strict=True):
        index = _from_the_front(w, index, n)
        place = index if place is None else place * n + index
    others = [axis for axis in range(len(x.shape)) if axis not in axes]
    if axes + others != list(range(len(x.shape))):
        x = w.permute(x, (*axes, *others))
    if len(axes) > 1:
        rest = [w.length(x, axis) for axis in range(len(axes), len(x.shape))]
        x = w.reshape(x, (w.size(1, lengths, 0), *rest))
    return w.take(x, place, 0), len(place.shape)


def _from_the_front(w: Words, index: Any, n: Any) -> Any:
    """Numbers that count from the end, counted from the front."""
    if isinstance(index, (int, np.integer)):
        return index if index >= 0 else w.size(1, [n], int(index))
    if isinstance(index, np.ndarray):
        all_from_the_front, index = bool((index >= 0).all()), w.constant(index.astype(np.int64))
        if all_from_the_front:
            return index
    return w.where(index < 0, index + n, index)


def _in_place(w: Words, y: Any, parts: list[Any], rank: int) -> Any:
    """Bring the axes of the indices to where NumPy has them: their own place if they stood together, else in front."""
    at = [place for place, part in enumerate(parts) if part is not None and not isinstance(part, slice)]
    together = at == list(range(at[0], at[-1] + 1))
    before = [part for part in parts[: at[0]] if together]
    moved = sum(part is not None for part in before)
    if moved:
        total = len(y.shape)
        y = w.permute(y, (*range(rank, rank + moved), *range(rank), *range(rank + moved, total)))
    rest = [part for place, part in enumerate(parts) if place not in at and not (together and place < at[0])]
    shown = [*before, *[_ALL] * rank, *rest]
    return _with_new_axes(w, y, shown)
