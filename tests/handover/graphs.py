"""Random recorded graphs in which every operation of the rule book comes up; the same for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np

import tinyattn as ta
from tinyattn.ops import REGISTRY

Rng = np.random.Generator


def axis_of(x: ta.Tensor, rng: Rng) -> int:
    return int(rng.integers(0, x.ndim))


def some_key(x: ta.Tensor, rng: Rng) -> Any:
    """A key of any kind that NumPy knows."""
    n, last = x.shape[0], x.shape[-1]
    numbers = rng.integers(-n, n, (2, 2))
    kinds = [
        int(rng.integers(-n, n)), slice(None, None, -1), (slice(0, n), None), (Ellipsis, slice(-1, None, -2)),
        rng.integers(0, n, 3), numbers, (Ellipsis, rng.integers(0, last, 2)), (None, numbers),
        rng.random(n) < 0.7, (Ellipsis, None, int(rng.integers(last))),
    ]  # fmt: skip
    if x.ndim > 1:
        kinds += [(0, rng.integers(0, x.shape[1], 3)), (numbers, rng.integers(0, x.shape[1], 2))]
    if x.ndim > 2:
        kinds += [(rng.integers(0, n, 2), slice(None), rng.integers(0, last, 2)), (0, slice(None), numbers % last)]
    return kinds[int(rng.integers(len(kinds)))]


def applied(name: str, x: ta.Tensor, *params: Any) -> ta.Tensor:
    return ta.apply(REGISTRY[name], (x,), params)


def put_along(x: ta.Tensor, rng: Rng) -> ta.Tensor:
    axis = axis_of(x, rng)
    shape = tuple(n + 1 if a == axis else n for a, n in enumerate(x.shape))
    return applied("put_along_axis", x, rng.integers(0, shape[axis], x.shape), axis, shape)


def scattered(x: ta.Tensor, rng: Rng) -> ta.Tensor:
    shape = (x.shape[0] + 1, *x.shape[1:])
    return applied("scatter_add", x, rng.integers(0, shape[0], x.shape[0]), shape)


def attention(q: ta.Tensor, rng: Rng) -> ta.Tensor:
    m = int(rng.integers(1, 4))
    k, v = ta.tanh(q[..., :1, :] + rng.normal(size=(m, 1))), ta.tensor(rng.normal(size=(m, 2)))
    keep = rng.random((q.shape[-2], m)) < 0.8 if rng.random() < 0.5 else None
    scale = None if rng.random() < 0.5 else 0.3
    return ta.scaled_dot_product_attention(q, k, v, keep=keep, causal=bool(rng.random() < 0.5), scale=scale)


def entropy(x: ta.Tensor, rng: Rng) -> ta.Tensor:
    targets = rng.integers(0, x.shape[-1], x.shape[:-1])
    ignore = int(rng.integers(0, x.shape[-1])) if rng.random() < 0.5 else None
    smoothing, reduction = float(rng.choice([0.0, 0.1])), str(rng.choice(["mean", "sum", "none"]))
    return ta.cross_entropy(x, targets, ignore_index=ignore, label_smoothing=smoothing, reduction=reduction)


def reduced(function: Any) -> Any:
    def step(x: ta.Tensor, b: ta.Tensor, rng: Rng) -> ta.Tensor:
        axes = (None, axis_of(x, rng), tuple(range(x.ndim))[:2])[int(rng.integers(3))]
        return function(x, axis=axes, keepdims=bool(rng.integers(2)))

    return step


STEPS = (
    lambda a, b, rng: a + b, lambda a, b, rng: a - b, lambda a, b, rng: a * b, lambda a, b, rng: a / (b * b + 1),
    lambda a, b, rng: ta.abs(a + 0.1) ** (b * 0.5), ta.maximum, ta.minimum, lambda a, b, rng: -a,
    lambda a, b, rng: ta.where(rng.random(a.shape) < 0.5, a, b),
    lambda a, b, rng: ta.exp(a * 0.3), lambda a, b, rng: ta.log(a * a + 1), lambda a, b, rng: ta.sqrt(a * a + 0.5),
    lambda a, b, rng: ta.sin(a), lambda a, b, rng: ta.cos(a), lambda a, b, rng: ta.tanh(a),
    lambda a, b, rng: ta.gelu(a, "tanh"), lambda a, b, rng: ta.sigmoid(a),
    lambda a, b, rng: ta.erf(a), lambda a, b, rng: ta.abs(a - 0.6),
    lambda a, b, rng: ta.relu(a - 0.6), lambda a, b, rng: (a + 3) ** int(rng.integers(-2, 4)),
    lambda a, b, rng: ta.clip(a, -0.5, 0.7), lambda a, b, rng: ta.clip(a, None, 0.8),
    lambda a, b, rng: ta.astype(ta.astype(a, np.float32), np.float64) * 0 + a,
    lambda a, b, rng: ta.layer_norm(a, rng.normal(size=a.shape[-1]), b.sum() * 0.1 + np.zeros(a.shape[-1])),
    lambda a, b, rng: entropy(a, rng), lambda a, b, rng: attention(a, rng),
    lambda a, b, rng: a[some_key(a, rng)], lambda a, b, rng: a[some_key(a, rng)],
    lambda a, b, rng: scattered(a, rng), lambda a, b, rng: put_along(a, rng),
    lambda a, b, rng: ta.take_along_axis(a, rng.integers(0, a.shape[-1], (*a.shape[:-1], 2)), -1),
    lambda a, b, rng: a @ b, lambda a, b, rng: a @ b.mT, lambda a, b, rng: ta.einsum("...i,...j->...ij", a, b),
    lambda a, b, rng: ta.einsum("...ij,...kj->...ik", a, b), lambda a, b, rng: ta.einsum("ij,j->", a, b),
    lambda a, b, rng: ta.einsum("ii->i", a @ a.mT),
    reduced(ta.sum), reduced(ta.max), reduced(ta.min), reduced(ta.prod), reduced(ta.mean),
    lambda a, b, rng: a / ta.sqrt(ta.size_of(b, axis=-1)),
    lambda a, b, rng: a.reshape(-1), lambda a, b, rng: a.reshape(1, -1), lambda a, b, rng: a.transpose(),
    lambda a, b, rng: ta.expand_dims(a, (0, -1)), lambda a, b, rng: ta.squeeze(a[:1], 0),
    lambda a, b, rng: ta.broadcast_to(a, (2, *a.shape)), lambda a, b, rng: ta.concatenate([a, b, a], axis=0),
    lambda a, b, rng: ta.stack([a, b], axis=axis_of(a, rng)),
    lambda a, b, rng: ta.pad(a, [(int(rng.integers(3)), 1)] * a.ndim, 0.5),
    lambda a, b, rng: ta.softmax(a, axis=axis_of(a, rng)),
    lambda a, b, rng: ta.softmax(a, axis=axis_of(a, rng), keep=rng.random(a.shape) < 0.6),
    lambda a, b, rng: ta.log_softmax(a, axis=axis_of(a, rng)), lambda a, b, rng: ta.logsumexp(a, axis=axis_of(a, rng)),
    lambda a, b, rng: ta.where(a > 0.2, a, b),
)  # fmt: skip


def fitting(step: Any, pool: list[ta.Tensor], rng: Rng) -> ta.Tensor | None:
    """One step on two tensors of the pool, or none when they do not fit each other."""
    a, b = (pool[int(rng.integers(len(pool)))] for _ in range(2))
    try:
        c = step(a, b) if step in (ta.maximum, ta.minimum) else step(a, b, rng)
    except (ValueError, IndexError, TypeError):
        return None
    return c if c.ndim <= 4 and 0 < c.size <= 120 and np.abs(c.data).max() < 20 else None


def random_graph(seed: int) -> tuple[ta.Tensor, list[ta.Tensor]]:
    """A number, made in a few random steps from five leaves; and the leaves that it depends on."""
    rng = np.random.default_rng(seed)
    n, m, d = map(int, rng.integers(1, 4, 3))
    shapes = ((n, d), (m, d), (d, d), (d,), (2, n, d))
    leaves = [ta.tensor(rng.uniform(-1.2, 1.2, shape), requires_grad=True, name=f"x{at}")
              for at, shape in enumerate(shapes)]  # fmt: skip
    pool = [*leaves, ta.tensor(rng.normal(size=(n, d)), name="given")]
    first = STEPS[seed % len(STEPS)]  # each kind of step gets its turn
    for step in [first, *(STEPS[int(rng.integers(len(STEPS)))] for _ in range(int(rng.integers(4, 9))))]:
        tries = (fitting(step, pool, rng) for _ in range(8))
        made = next((c for c in tries if c is not None), None)
        if made is not None and made.ndim:
            with ta.scope(f"part {len(pool)}"):
                pool.append(made * 1.0)
        elif made is not None:
            pool.append(made.reshape(1))
    loss = sum(((c * c).mean() for c in pool[-3:]), start=(leaves[seed % 5] ** 3).sum())
    if seed % 4 == 0:  # second order: the gradient is part of what is computed
        used = [x for x in leaves if x in reached(loss)]
        slopes = ta.grad(loss, used, create_graph=True)
        loss = loss + sum(((g * 0.1) ** 2).sum() for g in slopes)
    return loss, [x for x in leaves if x in reached(loss)]


def reached(y: ta.Tensor) -> set[ta.Tensor]:
    seen, waiting = {y}, [y]
    while waiting:
        for x in waiting.pop().inputs:
            if x not in seen:
                seen.add(x)
                waiting.append(x)
    return seen
