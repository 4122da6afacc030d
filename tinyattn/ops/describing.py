"""How records describe themselves: index letters and entries for definitions, calls for samplers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np


def letters(count: int, skip: Iterable[str] = "") -> list[str]:
    """Index letters: i, j, k, ..., in the order a reader expects.

    >>> letters(3, skip="j")
    ['i', 'k', 'l']
    """
    alphabet = [letter for letter in "ijklmnopqrstuvw" if letter not in skip]
    return (alphabet + [f"{letter}{n}" for n in range(1, 9) for letter in alphabet])[:count]


def entry(name: str, indices: Iterable[str]) -> str:
    """One entry of an array: ``x[i,j]``."""
    return f"{name}[{','.join(indices)}]"


def over(names: Iterable[str], reduction: str = "sum") -> str:
    """What stands before a sum: ``sum_i,j``, or nothing where nothing is summed."""
    together = ",".join(names)
    return f"{reduction}_{together} " if together else ""


def flat(names: list[str], shape: tuple[int, ...]) -> str:
    """The position in memory of an entry: ``3*i + j`` for shape (2, 3)."""
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return " + ".join(name if step == 1 else f"{step}*{name}" for name, step in zip(names, steps, strict=True)) or "0"


def calls(*forms: Any, low: float = -2.0, high: float = 2.0) -> Callable[[Any], list[Any]]:
    """A sampler with one call for each form ``(shape, *params)``; with several inputs ``([shape, shape], *params)``.

    No two entries of a call are close to each other and none is close to 0, so that kinks and ties are not near.

    >>> calls(((2,), "a parameter"))(np.random.default_rng(0))
    [((array([-0.68417063,  1.13277882]),), ('a parameter',))]
    """

    def one(rng: Any, shapes: Any, *params: Any) -> Any:
        sizes = [math.prod(shape) for shape in shapes]
        places = rng.permutation(sum(sizes)) + rng.uniform(0.55, 0.95, sum(sizes))  # each in a cell of its own
        entries = np.split(low + (high - low) / sum(sizes) * places, np.cumsum(sizes)[:-1])
        return tuple(x.reshape(shape) for x, shape in zip(entries, shapes, strict=True)), params

    return lambda rng: [
        one(rng, shapes if isinstance(shapes, list) else [shapes], *params) for shapes, *params in forms
    ]
