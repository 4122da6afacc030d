"""PyTorch doing the same work, for comparison: written out (eager), with its fused attention, or compiled.

The functions are those of `adapter_tape`; which way they go is set by `way` before they are called.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

Pair = tuple[Callable[[], None], Callable[[], tuple[float, dict[str, Any]]]]

way = "eager"  # or "fused", or "compile"


def versions() -> dict[str, str]:
    return {"torch": torch.__version__, "threads": str(torch.get_num_threads())}


def leaves(arrays: dict[str, np.ndarray], *left_out: str) -> dict[str, Any]:
    chosen = {name: a for name, a in arrays.items() if name not in left_out}
    return {name: torch.from_numpy(np.array(a)).requires_grad_() for name, a in chosen.items()}


def pair(parameters: dict[str, Any], loss_of: Callable[[], Any], update: Callable[[], None] | None = None) -> Pair:
    state: dict[str, Any] = {}
    compute = torch.compile(loss_of) if way == "compile" else loss_of

    def step() -> None:
        for x in parameters.values():
            x.grad = None
        loss = compute()
        loss.backward()
        state["loss"] = loss.item()
        if update is not None:
            update()

    return step, lambda: (state["loss"], {name: x.grad.numpy() for name, x in parameters.items()})


def ops(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p = leaves(arrays)
    once: dict[str, Callable[[Any, Any], Any]] = {
        "add": lambda x, b: x + b, "mul": lambda x, b: x * b, "matmul": lambda x, b: x @ b,
        "tanh": lambda x, b: torch.tanh(x),
    }  # fmt: skip
    apply = once[cfg["op"]]

    def loss() -> Any:
        x, b = p["x"], p.get("b")
        for _ in range(cfg["N"]):
            x = apply(x, b)
        return x.sum()

    return pair(p, loss)


def sgd(parameters: list[Any], lr: float) -> Callable[[], None]:
    return torch.optim.SGD(parameters, lr=lr).step


def mlp(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p, y = leaves(arrays, "y"), torch.from_numpy(np.array(arrays["y"]))
    last = len(cfg["sizes"]) - 2

    def loss() -> Any:
        h = p["X"]
        for i in range(last + 1):
            h = h @ p[f"W{i}"] + p[f"b{i}"]
            h = h if i == last else torch.relu(h)
        return ((h - y) ** 2).sum()

    return pair(p, loss, sgd([x for name, x in p.items() if name != "X"], cfg["lr"]))


def mlp_scalar(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    sizes, samples = cfg["sizes"], cfg["samples"]
    last = len(sizes) - 2
    p = {
        name: [torch.from_numpy(np.array(v)).requires_grad_() for v in a.ravel()]
        for name, a in arrays.items() if name != "y"
    }  # fmt: skip
    y = arrays["y"].ravel().tolist()
    everything = [x for group in p.values() for x in group]
    update = sgd([x for name, group in p.items() if name != "X" for x in group], cfg["lr"])
    state: dict[str, float] = {}

    def loss() -> Any:
        total: Any = None
        for row in range(samples):
            h = p["X"][row * sizes[0] : (row + 1) * sizes[0]]
            for i in range(last + 1):
                made = []
                for j in range(sizes[i + 1]):
                    z = p[f"b{i}"][j]
                    for k, value in enumerate(h):
                        z = z + p[f"W{i}"][k * sizes[i + 1] + j] * value
                    made.append(z if i == last else torch.relu(z))
                h = made
            error = h[0] - y[row]
            total = error * error if total is None else total + error * error
        return total

    def step() -> None:
        for x in everything:
            x.grad = None
        found = loss()
        found.backward()
        state["loss"] = found.item()
        update()

    return step, lambda: (state["loss"], {name: np.array([float(x.grad) for x in group]) for name, group in p.items()})


def attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    if way != "eager":
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    scores = (q @ k.transpose(-1, -2)) * (1 / math.sqrt(q.shape[-1]))
    if causal:
        keep = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~keep, -math.inf)
    return torch.softmax(scores, -1) @ v


def attn(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p = leaves(arrays)
    return pair(p, lambda: attention(*(p["X"] @ p[name] for name in ("Wq", "Wk", "Wv")), causal=False).sum())


def split_heads(x: Any, h: int) -> Any:
    b, n, d = x.shape
    return x.view(b, n, h, d // h).transpose(1, 2)


def merge_heads(x: Any) -> Any:
    b, h, n, e = x.shape
    return x.transpose(1, 2).reshape(b, n, h * e)


def mha(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p, weights = leaves(arrays, "G"), torch.from_numpy(np.array(arrays["G"]))

    def loss() -> Any:
        q, k, v = (split_heads(p["X"] @ p[name], cfg["h"]) for name in ("Wq", "Wk", "Wv"))
        return ((merge_heads(attention(q, k, v, cfg["causal"])) @ p["Wo"]) * weights).sum()

    return pair(p, loss)


def core(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p, weights = leaves(arrays, "G"), torch.from_numpy(np.array(arrays["G"]))
    return pair(p, lambda: (attention(p["q"], p["k"], p["v"], cfg["causal"]) * weights).sum())


def block(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p = leaves(arrays, "tok", "tgt")
    words, targets = (torch.from_numpy(arrays[name].astype(np.int64)) for name in ("tok", "tgt"))
    width = (cfg["d"],)

    def loss() -> Any:
        x = p["E"][words] + p["P"]
        y = functional.layer_norm(x, width, p["g1"], p["c1"])
        q, k, v = (split_heads(part, cfg["h"]) for part in (y @ p["Wqkv"] + p["bqkv"]).chunk(3, -1))
        x = x + (merge_heads(attention(q, k, v, True)) @ p["Wo"] + p["bo"])
        y = functional.layer_norm(x, width, p["g2"], p["c2"])
        x = x + (functional.gelu(y @ p["W1"] + p["b1"], approximate="tanh") @ p["W2"] + p["b2"])
        y = functional.layer_norm(x, width, p["gf"], p["cf"])
        return functional.cross_entropy((y @ p["Wh"]).view(-1, cfg["V"]), targets.view(-1))

    return pair(p, loss, torch.optim.Adam(p.values(), lr=cfg["lr"]).step)


def chain(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p = leaves(arrays)

    def loss() -> Any:
        x = p["x0"]
        for _ in range(cfg["N"] // 2):
            x = x + torch.tanh(x)
        return x

    return pair(p, loss)
