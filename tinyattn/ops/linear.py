"""Products of matrices: ``matmul`` in all its cases, and ``einsum``.

Where the transposes come from: in ``y[i,k] = sum_j a[i,j] b[j,k]`` replace the factor by the cotangent of y
and sum over the index that is missing.  For a that leaves ``sum_k g[i,k] b[j,k]``, which is ``g @ b.mT``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyattn.kernels.small import FEW, matrix_product, ndarray
from tinyattn.ops.describing import calls, entry, letters, over
from tinyattn.ops.helpers import sum_to, swap
from tinyattn.ops.record import Call, Op, register


def _left_rule(g: Any, y: Any, a: Any, b: Any) -> Any:
    if a.ndim == 2 == b.ndim:
        return g.dot(b.T) if g.__class__ is ndarray and g.size < FEW else matrix_product(g, b.T)
    g, _, b = _as_matrices(g, a, b)
    return sum_to(matrix_product(g, swap(b)), a.shape)


def _right_rule(g: Any, y: Any, a: Any, b: Any) -> Any:
    if a.ndim == 2 == b.ndim:
        return a.T.dot(g) if a.__class__ is ndarray and a.size < FEW else matrix_product(a.T, g)
    g, rows, columns = _as_matrices(g, a, b)
    if len(columns.shape) == 2 < len(rows.shape):  # one matrix for the whole batch: fold the batch into the rows
        count = math.prod(rows.shape[:-1])
        rows, g = rows.reshape((count, rows.shape[-1])), g.reshape((count, g.shape[-1]))
    pulled = sum_to(matrix_product(swap(rows), g), columns.shape)
    return pulled if len(b.shape) > 1 else pulled.reshape(b.shape)


def _as_matrices(g: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """A vector on the left is a row, on the right a column; the cotangent gets the axes that they lost."""
    if len(b.shape) == 1:
        g, b = np.expand_dims(g, -1), np.expand_dims(b, -1)
    if len(a.shape) == 1:
        g, a = np.expand_dims(g, -2), np.expand_dims(a, -2)
    return g, a, b


def _matmul_definition(call: Call) -> str:
    a, b = (len(shape) for shape in call.shapes)
    row, column = ["i"] * (a > 1), ["k"] * (b > 1)
    left, right = ["..."] * (a > 2), ["..."] * (b > 2)
    result = (left or right) + row + column
    return f"{entry('y', result)} = sum_j {entry('a', [*left, *row, 'j'])} * {entry('b', [*right, 'j', *column])}"


_FORMS = [
    [(2, 3), (3, 4)], [(3,), (3,)], [(2, 3), (3,)], [(3,), (3, 2)], [(2, 2, 3), (2, 3, 2)], [(2, 2, 3), (3, 2)],
    [(2, 3), (2, 3, 2)], [(2, 2, 3), (3,)], [(3,), (2, 3, 2)], [(2, 1, 2, 3), (3, 3, 2)],
]

matmul = register(Op(
    "matmul", matrix_product, (_left_rule, _right_rule), _matmul_definition, inputs=("a", "b"),
    sample=calls(*zip(_FORMS)),
))


def _split(subscripts: str) -> tuple[list[str], str]:
    left, right = subscripts.split("->")
    return left.split(","), right


def _einsum_rule(g: Any, y: Any, *rest: Any) -> tuple[Any, ...]:
    """Replace the factor by the cotangent and sum the missing indices; what no index fixes is spread."""
    *inputs, subscripts = rest
    labels, result = _split(subscripts)
    sizes = dict(zip(result, y.shape, strict=True))
    for own, x in zip(labels, inputs, strict=True):  # an operand of size 1 stands for all values of its label
        sizes |= {label: size for label, size in zip(own, x.shape, strict=True) if sizes.get(label, 1) == 1}
    return tuple(_einsum_contribution(g, inputs, labels, result, sizes, slot) for slot in range(len(inputs)))


def _einsum_contribution(
    g: Any, inputs: list[Any], labels: list[str], result: str, sizes: dict[str, int], slot: int
) -> Any:
    x, own = inputs[slot], labels[slot]
    others = [i for i in range(len(inputs)) if i != slot]
    distinct = "".join(dict.fromkeys(own))
    found = "".join(label for label in distinct if label in result or any(label in labels[i] for i in others))
    text = ",".join([result, *(labels[i] for i in others)]) + "->" + found
    core = np.einsum(text, g, *(inputs[i] for i in others)) if others or found != result else g
    shape = dict(zip(found, core.shape, strict=True))
    spread = np.broadcast_to(
        core.reshape(tuple(shape.get(label, 1) for label in distinct)), tuple(sizes[label] for label in distinct)
    )
    return _on_diagonal(sum_to(spread, tuple(x.shape[own.index(label)] for label in distinct)), own, x.shape)


def _on_diagonal(g: Any, labels: str, shape: tuple[int, ...]) -> Any:
    """Put ``g`` on the diagonal that repeated labels name: ``"ii"`` puts a vector on a matrix's diagonal."""
    first = [labels.index(label) for label in labels]
    if first == list(range(len(labels))):
        return g
    grid = np.indices(shape, sparse=True)
    mask = np.ones(shape, bool)
    for axis, same in enumerate(first):
        mask = mask & (grid[axis] == grid[same])
    stretched = g.reshape(tuple(size if axis == same else 1 for axis, (size, same) in enumerate(zip(shape, first))))
    return np.where(mask, np.broadcast_to(stretched, shape), 0)


def _einsum_definition(call: Call) -> str:
    labels, result = _split(call.params["subscripts"])
    names = dict(zip(dict.fromkeys("".join(labels)), letters(52), strict=False))
    factors = [entry(f"x{slot}", [names[label] for label in own]) for slot, own in enumerate(labels)]
    gone = [name for label, name in names.items() if label not in result]
    return f"{entry('y', [names[label] for label in result])} = {over(gone)}{' * '.join(factors)}"


einsum = register(Op(
    "einsum", lambda *rest: np.einsum(rest[-1], *rest[:-1]), _einsum_rule, _einsum_definition,
    params=("subscripts",), variadic=True,
    sample=calls(
        ([(2, 3), (3, 2)], "ij,jk->ik"), ([(2, 3), (2, 3), (2,)], "ij,kj,k->i"), ([(2,), (3,)], "i,j->ij"),
        ([(3, 3)], "ii->i"), ([(3, 3)], "ii->"), ([(2, 2, 3)], "iij->ij"), ([(2, 3)], "ij->ji"), ([(2, 3)], "ij->"),
        ([(2, 2, 3), (2, 3, 2)], "bij,bjk->bik"),
    ),
))
