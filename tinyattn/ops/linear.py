"""Products of matrices: ``matmul`` in all its cases, and ``einsum``.

Where the transposes come from: in ``y[i,k] = sum_j a[i,j] b[j,k]`` replace the factor by the cotangent of y
and sum over the index that is missing.  For a that leaves ``sum_k g[i,k] b[j,k]``, which is ``g @ b.mT``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyattn.ops.helpers import letters, matrix_product, sum_to, swap
from tinyattn.ops.record import Call, Op, register


def _left_rule(g: Any, y: Any, a: Any, b: Any) -> Any:
    if a.ndim == 2 == b.ndim:
        return matrix_product(g, b.T)
    if len(b.shape) == 1:  # a matrix times a vector: every row of a meets the same b
        return sum_to(np.expand_dims(g, -1) * b, a.shape)
    if len(a.shape) == 1:
        return sum_to(matrix_product(b, np.expand_dims(g, -1)).reshape(b.shape[:-1]), a.shape)
    return sum_to(matrix_product(g, swap(b)), a.shape)


def _right_rule(g: Any, y: Any, a: Any, b: Any) -> Any:
    if a.ndim == 2 == b.ndim:
        return matrix_product(a.T, g)
    if len(a.shape) == 1 == len(b.shape):
        return a * g
    if len(a.shape) == 1:
        return sum_to(a.reshape((-1, 1)) * np.expand_dims(g, -2), b.shape)
    if len(b.shape) == 1:
        return sum_to((a * np.expand_dims(g, -1)), b.shape)
    if len(b.shape) == 2 and len(a.shape) > 2:  # one matrix for the whole batch: fold the batch into the rows
        rows = math.prod(a.shape[:-1])
        return matrix_product(swap(a.reshape((rows, a.shape[-1]))), g.reshape((rows, g.shape[-1])))
    return sum_to(matrix_product(swap(a), g), b.shape)


def _matmul_definition(call: Call) -> str:
    a, b = (len(shape) for shape in call.shapes)
    batch = "..., " if a > 2 or b > 2 else ""
    left = "j" if a == 1 else f"{batch if a > 2 else ''}i,j"
    right = "j" if b == 1 else f"{batch if b > 2 else ''}j,k"
    kept = ",".join((["i"] if a > 1 else []) + (["k"] if b > 1 else []))
    out = (batch + kept) if kept else batch.rstrip(", ")
    return f"y[{out}] = sum_j a[{left}] * b[{right}]"


def _why_matmul(operands: Any, shapes: Any, params: Any) -> tuple[str, str]:
    (left, right), (a, b) = operands, shapes
    if not a or not b:
        return "A matrix product needs at least one axis on both sides.", f"Write {left} * {right} for a number."
    inner, where_inner = (b[0], "only axis") if len(b) == 1 else (b[-2], "second-to-last axis")
    if a[-1] == inner:
        return (
            f"The batch axes {a[:-2]} and {b[:-2]} do not broadcast.",
            "Insert an axis of size 1 with expand_dims, or reshape one of them.",
        )
    why = f"The last axis of {left} ({a[-1]}) must equal the {where_inner} of {right} ({inner})."
    if len(b) >= 2 and a[-1] == b[-1]:
        rows = a[-2:-1]
        return why, f"Did you mean {left} @ {right}.mT? That gives shape {(*b[:-2], *rows, b[-2])}."
    if len(a) >= 2 and a[-2] == inner:
        return why, f"Did you mean {left}.mT @ {right}? That gives shape {(*a[:-2], a[-1], *b[-1:])}."
    return why, f"Check how {left} and {right} were made."


def _matmul_samples(rng: Any) -> list[Any]:
    shapes: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        ((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 2, 3), (2, 3, 2)), ((2, 2, 3), (3, 2)),
        ((2, 3), (2, 3, 2)), ((2, 2, 3), (3,)), ((3,), (2, 3, 2)), ((2, 1, 2, 3), (3, 3, 2)),
    )  # fmt: skip
    return [((rng.normal(size=a), rng.normal(size=b)), ()) for a, b in shapes]


matmul = register(
    Op(
        "matmul",
        matrix_product,
        (_left_rule, _right_rule),
        _matmul_definition,
        inputs=("a", "b"),
        sample=_matmul_samples,
        explain=_why_matmul,
    )
)


def split_subscripts(subscripts: str) -> tuple[list[str], str]:
    """``"ij,jk->ik"`` as its operands and its result; both sides are written out by `expand_subscripts`."""
    left, right = subscripts.split("->")
    return left.split(","), right


def expand_subscripts(subscripts: str, ranks: list[int]) -> str:
    """Write an einsum text in full: no blanks, capital letters for the axes of ``...``, an explicit result.

    >>> expand_subscripts("...ij, ...jk", [3, 2])
    'Aij,jk->Aik'
    """
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    operands = left.split(",")
    extra = [rank - len(labels.replace("...", "")) for labels, rank in zip(operands, ranks, strict=True)]
    most = max([n for labels, n in zip(operands, extra, strict=True) if "..." in labels], default=0)
    dots = "ABCDEFGH"[:most]
    if not arrow:
        named = left.replace("...", "").replace(",", "")
        right = ("..." if "..." in left else "") + "".join(sorted(c for c in set(named) if named.count(c) == 1))
    operands = [labels.replace("...", dots[most - n :] if n > 0 else "") for labels, n in zip(operands, extra, strict=True)]
    return ",".join(operands) + "->" + right.replace("...", dots)


def _einsum(*operands: Any) -> Any:
    *arrays, subscripts = operands
    return np.einsum(subscripts, *arrays)


def _einsum_rule(g: Any, y: Any, *rest: Any) -> tuple[Any, ...]:
    """Replace the factor by the cotangent and sum the missing indices; what no index fixes is spread."""
    *inputs, subscripts = rest
    names, result = split_subscripts(subscripts)
    return tuple(_einsum_contribution(g, inputs, names, result, slot) for slot in range(len(inputs)))


def _einsum_contribution(g: Any, inputs: list[Any], names: list[str], result: str, slot: int) -> Any:
    x, own = inputs[slot], names[slot]
    others = [(n, v) for i, (n, v) in enumerate(zip(names, inputs, strict=True)) if i != slot]
    sizes = _label_sizes(inputs, names)
    distinct = "".join(dict.fromkeys(own))
    known = result + "".join(n for n, _ in others)
    target = "".join(label for label in distinct if label in known)
    # An operand of size 1 stands for all values of its label: it is stretched, and summed at the end.
    text = ",".join([result, *(n for n, _ in others)]) + "->" + target
    core = np.einsum(text, g, *(v for _, v in others)) if others or target != result else g
    full = tuple(sizes[label] for label in distinct)
    found = dict(zip(target, core.shape, strict=True))
    shaped = core.reshape(tuple(found.get(label, 1) for label in distinct))
    spread_out = np.broadcast_to(shaped, full) if shaped.shape != full else shaped
    small = tuple(x.shape[own.index(label)] for label in distinct)
    return diagonal_put(sum_to(spread_out, small), own, x.shape)


def _label_sizes(inputs: list[Any], names: list[str]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for x, labels in zip(inputs, names, strict=True):
        for label, size in zip(labels, x.shape, strict=True):
            sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    return sizes


def diagonal_put(g: Any, labels: str, shape: tuple[int, ...]) -> Any:
    """Put ``g`` on the diagonal that repeated labels name: ``"ii"`` puts a vector on a matrix's diagonal."""
    distinct = "".join(dict.fromkeys(labels))
    if len(distinct) == len(labels):
        return g
    mask = np.ones(shape, bool)
    grid = np.indices(shape, sparse=True)
    for axis, label in enumerate(labels):
        mask = mask & (grid[axis] == grid[labels.index(label)])
    first_axes = tuple(labels.index(label) for label in distinct)
    stretched = g.reshape(tuple(size if axis in first_axes else 1 for axis, size in enumerate(shape)))
    return np.where(mask, np.broadcast_to(stretched, shape), 0.0)


def _einsum_definition(call: Call) -> str:
    names, result = split_subscripts(call.params["subscripts"])
    rename = dict(zip(dict.fromkeys("".join(names)), letters(26), strict=False))
    used = set(result)
    gone = ",".join(rename[c] for c in dict.fromkeys("".join(names)) if c not in used)
    factors = " * ".join(f"x{slot}[{','.join(rename[c] for c in labels)}]" for slot, labels in enumerate(names))
    start = f"sum_{gone} " if gone else ""
    return f"y[{','.join(rename[c] for c in result)}] = {start}{factors}"


def _why_einsum(operands: Any, shapes: Any, params: Any) -> tuple[str, str]:
    names, _ = split_subscripts(params["subscripts"])
    seen: dict[str, tuple[str, int]] = {}
    for operand, labels, shape in zip(operands, names, shapes, strict=True):
        for label, size in zip(labels, shape, strict=False):
            name, before = seen.setdefault(label, (operand, size))
            if before != size and 1 not in (before, size):
                return f"Label {label!r} has size {before} in {name} and {size} in {operand}.", "One label, one size."
    return "", "Write one letter per axis, for example 'ij,jk->ik'."


def _einsum_samples(rng: Any) -> list[Any]:
    forms: list[tuple[str, list[tuple[int, ...]]]] = [
        ("ij,jk->ik", [(2, 3), (3, 2)]), ("ii->i", [(3, 3)]), ("ii->", [(3, 3)]), ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]),
        ("i,j->ij", [(2,), (3,)]), ("ij,kj,k->i", [(2, 3), (2, 3), (2,)]), ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]), ("iij->ij", [(2, 2, 3)]),
    ]  # fmt: skip
    return [(tuple(rng.normal(size=shape) for shape in shapes), (text,)) for text, shapes in forms]


einsum = register(
    Op(
        "einsum",
        _einsum,
        _einsum_rule,
        _einsum_definition,
        params=("subscripts",),
        variadic=True,
        sample=_einsum_samples,
        explain=_why_einsum,
    )
)
