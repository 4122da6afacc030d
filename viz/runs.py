"""Repeated runs of the same operations, for folding a graph that has no scopes.

Twelve layers written in a loop are twelve times the same few operations in a row; such a run becomes one box,
"matmul, add, tanh × 12".  Only neighbours in the order of creation are folded, so arrows never go back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from viz import values

if TYPE_CHECKING:
    from viz.view import Arrow, Box

LONGEST_PERIOD = 64
FEWEST_REPEATS = 3
_MOST_NAMES = 3


def longest_run(labels: Sequence[Hashable]) -> tuple[int, int, int] | None:
    """Where the same labels come again and again: start, period, how often; None where nothing does.

    >>> longest_run(["x", "mul", "tanh", "mul", "tanh", "mul", "tanh", "sum"])
    (1, 2, 3)
    >>> longest_run("abc") is None
    True
    """
    numbers: dict[Hashable, int] = {}
    coded = np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)
    best: tuple[int, int, int] | None = None
    for period in range(1, min(LONGEST_PERIOD, len(coded) // FEWEST_REPEATS) + 1):
        start, length = _longest_true(coded[period:] == coded[:-period])
        times = length // period + 1
        if times >= FEWEST_REPEATS and (best is None or period * times > best[1] * best[2]):
            best = (start, period, times)
    return best


def _longest_true(same: values.Array) -> tuple[int, int]:
    """Start and length of the longest stretch of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    if not edges.size:
        return 0, 0
    lengths = edges[1::2] - edges[::2]
    at = int(np.argmax(lengths))
    return int(edges[2 * at]), int(lengths[at])


def run_of(
    boxes: Sequence[Box], arrows: Sequence[Arrow], label: Callable[[Box], Hashable], name: Callable[[Box], str]
) -> tuple[set[str], str] | None:
    """The boxes of the longest run, with the leaves that only it reads, and the run's title.

    Parameters
    ----------
    boxes, arrows : sequences
        Of a view.
    label : callable
        Boxes with equal labels do the same.
    name : callable
        What a box is called in the title.
    """
    working = [box for box in boxes if box.kind in ("op", "fold")]
    found = longest_run([label(box) for box in working])
    if found is None:
        return None
    start, period, times = found
    inside = {box.key for box in working[start : start + period * times]}
    readers: dict[str, set[str]] = {}
    for arrow in arrows:
        readers.setdefault(arrow.source, set()).add(arrow.target)
    leaves = {b.key for b in boxes if b.kind in ("parameter", "constant") and not b.output}
    own = {key for key in leaves if readers.get(key, {""}) <= inside}
    inside |= own if len(own) >= times else set()  # a single leaf is what the run starts from
    names = list(dict.fromkeys(name(box) for box in working[start : start + period]))
    title = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
    return inside, f"{title} × {times}"
