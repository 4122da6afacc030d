"""tinyattn with ``ta.compile``, as an adapter for a measuring driver: see `adapter_tape` for the form.

The functions are those of the tape, or the same work on numbers; a step is ``compiled.backward()``, which adds
gradients to the leaves as ``loss.backward()`` does, and the optimiser's step.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tinyattn as ta

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from adapter_tape import Pair, attn_parts, leaves, mlp_parts, versions

__all__ = ["attn", "chain", "mha", "mlp", "mlp_scalar", "ops", "versions"]


def pair(
    parameters: dict[str, ta.Tensor], loss_of: Callable[[], ta.Tensor], update: Callable[[], None] | None = None
) -> Pair:
    """The compiled step; and the way to read its outcome."""
    state: dict[str, ta.Tensor] = {}
    compiled = ta.compile(loss_of)
    everything = list(parameters.values())

    def step() -> None:
        for x in everything:
            x.zero_grad()
        state["loss"] = compiled.backward()
        if update is not None:
            update()

    return step, lambda: (state["loss"].item(), {name: x.grad for name, x in parameters.items()})


def attn(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    return pair(*attn_parts(arrays))


def mlp(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    return pair(*mlp_parts(cfg, arrays))


def mlp_scalar(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    """One node for each number.  All weights lie in one vector, so that the optimiser has one step to make."""
    sizes, samples = cfg["sizes"], cfg["samples"]
    depth = len(sizes) - 1
    names = [name for i in range(depth) for name in (f"W{i}", f"b{i}")]
    flat = np.concatenate([arrays[name].ravel() for name in names])
    theta = ta.tensor(flat, requires_grad=True)
    inputs = ta.tensor(arrays["X"].ravel(), requires_grad=True)
    y = [float(v) for v in arrays["y"].ravel()]
    optimiser = ta.optim.SGD([theta], lr=cfg["lr"])
    starts = dict(zip(names, np.cumsum([0] + [arrays[name].size for name in names]).tolist(), strict=False))

    def loss() -> ta.Tensor:
        total = None
        for row in range(samples):
            h = [inputs[row * sizes[0] + k] for k in range(sizes[0])]
            for i in range(depth):
                w, b, width = starts[f"W{i}"], starts[f"b{i}"], sizes[i + 1]
                following = []
                for j in range(width):
                    z = theta[b + j]
                    for k, value in enumerate(h):
                        z = z + theta[w + k * width + j] * value
                    following.append(ta.relu(z) if i < depth - 1 else z)
                h = following
            error = h[0] - y[row]
            total = error * error if total is None else total + error * error
        return total

    state: dict[str, Any] = {}
    compiled = ta.compile(loss)

    def step() -> None:
        theta.zero_grad()
        inputs.zero_grad()
        state["loss"] = compiled.backward()
        state["slopes"] = theta.grad
        optimiser.step()

    def result() -> tuple[float, dict[str, Any]]:
        slopes = {name: state["slopes"][starts[name] : starts[name] + arrays[name].size] for name in names}
        return state["loss"].item(), {**slopes, "X": inputs.grad}

    return step, result


def ops(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p = leaves(arrays)

    def chain() -> ta.Tensor:
        x, b = p["x"], p.get("b")
        for _ in range(cfg["N"]):
            if cfg["op"] == "tanh":
                x = ta.tanh(x)
            else:
                x = x + b if cfg["op"] == "add" else x * b if cfg["op"] == "mul" else x @ b
        return ta.sum(x)

    return pair(p, chain)


def mha(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair | None:
    p = leaves(arrays, "G")
    weights = ta.tensor(arrays["G"])
    b, n, d, h = (cfg[name] for name in ("B", "n", "d", "h"))

    def heads(x: ta.Tensor) -> ta.Tensor:
        return ta.transpose(ta.reshape(x, b, n, h, d // h), 0, 2, 1, 3)

    def loss() -> ta.Tensor:
        q, k, v = (heads(p["X"] @ p[name]) for name in ("Wq", "Wk", "Wv"))
        mixed = ta.scaled_dot_product_attention(q, k, v, causal=cfg["causal"])
        merged = ta.reshape(ta.transpose(mixed, 0, 2, 1, 3), b, n, d)
        return ta.sum((merged @ p["Wo"]) * weights)

    return pair(p, loss) if n <= 512 else None  # the scores of long sequences are for the tape's tiles


def chain(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair | None:
    p = leaves(arrays)

    def loss() -> ta.Tensor:
        x = p["x0"]
        for _ in range(cfg["N"] // 2):
            x = x + ta.tanh(x)
        return x

    return pair(p, loss) if cfg["N"] <= 20_000 else None  # a program has one line for each of them
