"""tinyattn's ordinary eager use, as an adapter for a measuring driver: one function per family of work.

Each function takes the shape fields and the arrays of a workload, builds its tensors once, and returns
``(step, result)``: ``step()`` runs forward, backward and the update; ``result()`` gives loss and gradients.
Only the public API is used, as a reader of the docs would.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tinyattn as ta

Pair = tuple[Callable[[], None], Callable[[], tuple[float, dict[str, Any]]]]
MlpParts = tuple[dict[str, ta.Tensor], Callable[[], ta.Tensor], Callable[[], None]]


def versions() -> dict[str, str]:
    return {"tinyattn": ta.__version__, "numpy": np.__version__}


def leaves(arrays: dict[str, np.ndarray], *left_out: str) -> dict[str, ta.Tensor]:
    return {name: ta.tensor(array, requires_grad=True) for name, array in arrays.items() if name not in left_out}


def pair(
    parameters: dict[str, ta.Tensor], loss_of: Callable[[], ta.Tensor], update: Callable[[], None] | None = None
) -> Pair:
    """The step that clears gradients, computes the loss and runs backward; and the way to read its outcome."""
    state: dict[str, float] = {}

    def step() -> None:
        for x in parameters.values():
            x.zero_grad()
        loss = loss_of()
        loss.backward()
        state["loss"] = loss.item()
        if update is not None:
            update()

    return step, lambda: (state["loss"], {name: x.grad for name, x in parameters.items()})


def ops(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p = leaves(arrays)
    times = range(cfg["N"])

    def chain() -> ta.Tensor:
        x, b = p["x"], p.get("b")
        if cfg["op"] == "add":
            for _ in times:
                x = x + b
        elif cfg["op"] == "mul":
            for _ in times:
                x = x * b
        elif cfg["op"] == "matmul":
            for _ in times:
                x = x @ b
        else:
            for _ in times:
                x = ta.tanh(x)
        return ta.sum(x)

    return pair(p, chain)


def mlp_parts(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> MlpParts:
    """The leaves, the loss and the step of the optimiser."""
    p = leaves(arrays, "y")
    y, depth = ta.tensor(arrays["y"]), len(cfg["sizes"]) - 1
    optimiser = ta.optim.SGD([x for name, x in p.items() if name != "X"], lr=cfg["lr"])

    def loss() -> ta.Tensor:
        h = p["X"]
        for i in range(depth):
            h = h @ p[f"W{i}"] + p[f"b{i}"]
            if i < depth - 1:
                h = ta.relu(h)
        return ta.sum((h - y) ** 2)

    return p, loss, optimiser.step


def mlp(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    return pair(*mlp_parts(cfg, arrays))


def mlp_scalar(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    sizes = cfg["sizes"]
    depth = len(sizes) - 1
    given = {name: array for name, array in arrays.items() if name != "y"}
    p = {name: [ta.tensor(v, requires_grad=True) for v in array.ravel()] for name, array in given.items()}
    y = [float(v) for v in arrays["y"].ravel()]
    everything = [x for group in p.values() for x in group]
    optimiser = ta.optim.SGD([x for name, group in p.items() if name != "X" for x in group], lr=cfg["lr"])
    state: dict[str, float] = {}

    def step() -> None:
        for x in everything:
            x.zero_grad()
        loss = None
        for row in range(cfg["samples"]):
            h = p["X"][row * sizes[0] : (row + 1) * sizes[0]]
            for i in range(depth):
                weights, width = p[f"W{i}"], sizes[i + 1]
                following = []
                for j in range(width):
                    z = p[f"b{i}"][j]
                    for k, value in enumerate(h):
                        z = z + weights[k * width + j] * value
                    following.append(ta.relu(z) if i < depth - 1 else z)
                h = following
            error = h[0] - y[row]
            loss = error * error if loss is None else loss + error * error
        loss.backward()
        state["loss"] = loss.item()
        optimiser.step()

    return step, lambda: (state["loss"], {name: np.array([float(x.grad) for x in group]) for name, group in p.items()})


def attention(q: ta.Tensor, k: ta.Tensor, v: ta.Tensor, causal: bool = False) -> ta.Tensor:
    """Attention from primitive operations, as the lessons build it."""
    scores = (q @ k.mT) * (1 / math.sqrt(q.shape[-1]))
    keep = np.tri(q.shape[-2], dtype=bool) if causal else None
    return ta.softmax(scores, axis=-1, keep=keep) @ v


def attn_parts(arrays: dict[str, np.ndarray]) -> tuple[dict[str, ta.Tensor], Callable[[], ta.Tensor]]:
    """The leaves, and what computes the loss."""
    p = leaves(arrays)
    x, w_q, w_k, w_v = p["X"], p["Wq"], p["Wk"], p["Wv"]
    return p, lambda: ta.sum(attention(x @ w_q, x @ w_k, x @ w_v))


def attn(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    return pair(*attn_parts(arrays))


def batch_pair(
    parameters: dict[str, ta.Tensor],
    loss_of: Callable[..., ta.Tensor],
    batch: list[Any],
    reduction: str,
    update: Callable[[], None] | None = None,
) -> Pair:
    """The same step, one graph for each half of the batch."""
    state: dict[str, float] = {}

    def step() -> None:
        for x in parameters.values():
            x.zero_grad()
        state["loss"] = ta.backward_in_parts(loss_of, *batch, reduction=reduction).item()
        if update is not None:
            update()

    return step, lambda: (state["loss"], {name: x.grad for name, x in parameters.items()})


def split_heads(x: ta.Tensor, h: int) -> ta.Tensor:
    b, n, d = x.shape
    return ta.transpose(ta.reshape(x, b, n, h, d // h), 0, 2, 1, 3)


def merge_heads(x: ta.Tensor) -> ta.Tensor:
    b, h, n, e = x.shape
    return ta.reshape(ta.transpose(x, 0, 2, 1, 3), b, n, h * e)


def mha(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p = leaves(arrays, "G")

    def loss_of(x: ta.Tensor, weights: ta.Tensor) -> ta.Tensor:
        q, k, v = (split_heads(x @ p[name], cfg["h"]) for name in ("Wq", "Wk", "Wv"))
        mixed = merge_heads(ta.scaled_dot_product_attention(q, k, v, causal=cfg["causal"]))
        return ta.sum((mixed @ p["Wo"]) * weights)

    weights = ta.tensor(arrays["G"])
    if cfg["B"] == 1:
        return pair(p, lambda: loss_of(p["X"], weights))
    return batch_pair(p, loss_of, [p["X"], weights], "sum")


def block(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p = leaves(arrays, "tok", "tgt")
    optimiser = ta.optim.Adam(list(p.values()), lr=cfg["lr"])

    def loss_of(words: np.ndarray, targets: np.ndarray) -> ta.Tensor:
        x = ta.embedding(p["E"], words) + p["P"]
        y = ta.layer_norm(x, p["g1"], p["c1"])
        parts = zip(ta.split(p["Wqkv"], 3, axis=-1), ta.split(p["bqkv"], 3), strict=True)
        q, k, v = (split_heads(y @ weights + bias, cfg["h"]) for weights, bias in parts)
        x = x + (merge_heads(ta.scaled_dot_product_attention(q, k, v, causal=True)) @ p["Wo"] + p["bo"])
        y = ta.layer_norm(x, p["g2"], p["c2"])
        x = x + (ta.gelu(y @ p["W1"] + p["b1"], "tanh") @ p["W2"] + p["b2"])
        y = ta.layer_norm(x, p["gf"], p["cf"])
        return ta.cross_entropy(y @ p["Wh"], targets)

    return batch_pair(p, loss_of, [arrays["tok"], arrays["tgt"]], "mean", optimiser.step)


def core(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p = leaves(arrays, "G")
    weights = ta.tensor(arrays["G"])
    causal = cfg["causal"]
    return pair(p, lambda: ta.sum(ta.scaled_dot_product_attention(p["q"], p["k"], p["v"], causal=causal) * weights))


def chain(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p = leaves(arrays)
    times = range(cfg["N"] // 2)

    def loss() -> ta.Tensor:
        x = p["x0"]
        for _ in times:
            x = x + ta.tanh(x)
        return x

    return pair(p, loss)
