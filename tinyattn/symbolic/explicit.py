"""Rules held against SymPy at explicit sizes, 1 to 4, where index notation cannot prove them for every size.

A product over an axis, entries by number, a diagonal: for each of these, and for rules with masks and targets beside
their proof, there are calls here in which one length is `n`, and SymPy's derivative of the definition decides, entry
by entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinyattn.errors import ArgumentError
from tinyattn.ops.describing import calls
from tinyattn.symbolic.rules import RuleProof, rule_at_this_size

SIZES = (1, 2, 3, 4)
Forms = list[tuple[Any, ...]]  # (shape or shapes of the inputs, *parameters)


def prove_at_sizes(op: Any, sizes: Sequence[int] = SIZES) -> RuleProof:
    """Hold the gradient rule of an operation against SymPy at several sizes.

    Parameters
    ----------
    op : Op
        One of the operations in `CALLS`.
    sizes : sequence of int

    Returns
    -------
    RuleProof
        The first wrong one, which says at which size; else one that says for how many calls of which sizes they agree.
    """
    name = getattr(op, "name", type(op).__name__)
    if name not in CALLS:
        raise ArgumentError(f"there are no calls of {name} at explicit sizes; prove_rule proves it for all.")
    count = 0
    for size in sizes:
        for inputs, params in calls(*CALLS[op.name](size), low=0.5)(np.random.default_rng(size)):
            named = dict(zip(op.param_names, params, strict=True))
            found = rule_at_this_size(op, inputs, named, "")
            count += 1
            if not found:
                return RuleProof(op.name, found.verdict, f"at size {size}, {named}: {found.why}")
    return RuleProof(op.name, f"agrees with SymPy at sizes {', '.join(map(str, sizes))}", f"{count} calls")


def _reductions(n: int) -> Forms:
    return [*_extremes(n), ((n, 2), (0, 1), False)]


def _extremes(n: int) -> Forms:
    """One axis at a time: SymPy's Max of eight numbers takes seconds."""
    return [((n,), (0,), False), ((n, 2), (0,), False), ((2, n), (1,), True)]


def _keys(n: int) -> list[Any]:
    every = slice(None)
    return [
        n - 1, -1, (every, 2), slice(0, n, 2), slice(None, None, -1), np.array([0, n - 1, 0]),
        (every, np.array([[2, 0]])), (None, 0), (np.arange(n), np.arange(n) % 3),
    ]  # fmt: skip


def _scattered(n: int) -> Forms:
    return [(np.empty((n, 3))[key].shape, key, (n, 3)) for key in _keys(n)]


def _places(n: int) -> list[tuple[Any, int, tuple[int, ...]]]:
    """Indices, their axis, and the shape that they point into."""
    rows = np.arange(2 * n).reshape(n, 2) % 3
    return [(rows, 1, (n, 3)), (np.array([0, n - 1, 0]), 0, (n,)), (np.full((1, 2), n - 1), 0, (n, 2))]


def _losses(n: int) -> Forms:
    targets = np.arange(n) % 3
    settings = [(None, 0.0, "mean"), (1, 0.0, "mean"), (None, 0.1, "sum"), (0, 0.1, "none")]
    return [*(((n, 3), targets, *each) for each in settings), ((2, n), np.array([0, n - 1]), None, 0.0, "mean")]


def _attentions(n: int) -> Forms:
    qkv, keep = [(n, 2), (3, 2), (3, 1)], np.tri(n, 3, dtype=bool)
    return [(qkv, keep, False, None), (qkv, None, n <= 3, 0.5), ([(2, 1), (n, 1), (n, 2)], None, n >= 2, None)]


def _long_losses() -> Forms:
    targets = np.random.default_rng(0).integers(0, 59, 53)
    return [((53, 59), targets, None, 0.0, reduction) for reduction in ("mean", "sum", "none")]


# Calls of lengths that nothing else has: a rule that divides by a count then shows which length it is.
LONG_CALLS: Mapping[str, Callable[[], Forms]] = {"cross_entropy": _long_losses}

CALLS: Mapping[str, Callable[[int], Forms]] = {
    "prod": _reductions,
    "max": _extremes,
    "min": _extremes,
    "index": lambda n: [((n, 3), key) for key in _keys(n)],
    "scatter_add": _scattered,
    "take_along_axis": lambda n: [(shape, places, axis) for places, axis, shape in _places(n)],
    "put_along_axis": lambda n: [(places.shape, places, axis, shape) for places, axis, shape in _places(n)],
    "concatenate": lambda n: [([(n, 2), (1, 2)], 0), ([(2, 1), (2, n), (2, n)], 1)],
    "stack": lambda n: [([(n, 2)] * 2, 0), ([(n,)] * n, 1)],
    "pad": lambda n: [((n, 2), ((1, 0), (0, n)), 0.0), ((n,), ((n, 1),), 1.5)],
    "reshape": lambda n: [((2, 3 * n), (3, 2 * n)), ((n, 4), (4, n)), ((n, 2), (2 * n, 1))],
    "einsum": lambda n: [([(n, n)], "ii->i"), ([(n, n)], "ii->"), ([(n, n, 2), (n, 2)], "iij,ij->j")],
    "cross_entropy": _losses,
    "scaled_dot_product_attention": _attentions,
}
