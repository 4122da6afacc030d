"""The kinds of work that are timed: each in tinyattn, by hand in NumPy, and in PyTorch where it is installed.

A way to do the work takes the arrays and returns ``(step, result)``: ``step()`` runs forward and backward,
``result()`` gives the loss and the gradients by name.  The one by hand is the yardstick for speed and truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import adapter_tape as tape
import numpy as np

Pair = tuple[Callable[[], None], Callable[[], tuple[float, dict[str, Any]]]]
Way = Callable[[dict[str, Any], dict[str, np.ndarray]], Pair]


class Workload(NamedTuple):
    """One kind of work: what it is, its sizes, and the ways to do it."""

    name: str
    what: str
    cfg: dict[str, Any]
    arrays: Callable[[np.random.Generator, dict[str, Any]], dict[str, np.ndarray]]
    tinyattn: Way
    by_hand: Way
    torch: Way


def remembered(compute: Callable[[], tuple[float, dict[str, Any]]]) -> Pair:
    """A step that keeps what it computed."""
    state: dict[str, Any] = {}

    def step() -> None:
        state["last"] = compute()

    return step, lambda: state["last"]


def torch_pair(arrays: dict[str, np.ndarray], loss_of: Callable[[dict[str, Any]], Any]) -> Pair:
    import torch

    p = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in arrays.items()}
    state: dict[str, Any] = {}

    def step() -> None:
        for x in p.values():
            x.grad = None
        loss = loss_of(p)
        loss.backward()
        state["loss"] = loss

    return step, lambda: (float(state["loss"].detach()), {name: x.grad.numpy() for name, x in p.items()})


# -- one small operation, many times ------------------------------------------------------------------------------


def node_arrays(rng: np.random.Generator, cfg: dict[str, Any]) -> dict[str, np.ndarray]:
    arrays = {"x": rng.normal(size=(4, 8))}
    if cfg["op"] == "add":
        arrays["b"] = rng.normal(size=(4, 8))
    elif cfg["op"] == "mul":
        arrays["b"] = 1 + 0.001 * rng.normal(size=(4, 8))
    elif cfg["op"] == "matmul":
        arrays["b"] = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    return arrays


FORWARD: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, b: x + b, "mul": lambda x, b: x * b, "matmul": lambda x, b: x @ b, "tanh": lambda x, b: np.tanh(x),
}  # fmt: skip


def node_by_hand(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    op, times = cfg["op"], cfg["N"]

    def compute() -> tuple[float, dict[str, Any]]:
        x, b = arrays["x"], arrays.get("b")
        seen = [x]
        for _ in range(times):
            x = FORWARD[op](x, b)
            seen.append(x)
        g: Any = np.ones_like(x)
        total: Any = 0
        for i in reversed(range(times)):
            if op == "add":
                total = total + g
            elif op == "mul":
                total, g = total + g * seen[i], g * b
            elif op == "matmul":
                total, g = total + seen[i].T @ g, g @ b.T  # type: ignore[union-attr]
            else:
                g = g - g * seen[i + 1] * seen[i + 1]
        return float(x.sum()), {"x": g} if b is None else {"x": g, "b": total}

    return remembered(compute)


def node_torch(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    import torch

    def loss(p: dict[str, Any]) -> Any:
        x, b = p["x"], p.get("b")
        for _ in range(cfg["N"]):
            x = torch.tanh(x) if cfg["op"] == "tanh" else FORWARD[cfg["op"]](x, b)
        return x.sum()

    return torch_pair(arrays, loss)


# -- one attention head ----------------------------------------------------------------------------------------------


def head_arrays(rng: np.random.Generator, cfg: dict[str, Any]) -> dict[str, np.ndarray]:
    n, d = cfg["n"], cfg["d"]
    weights = {name: rng.normal(size=(d, d)) / math.sqrt(d) for name in ("Wq", "Wk", "Wv")}
    return {"X": rng.normal(size=(n, d)), **weights}


def head_by_hand(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    x, w_q, w_k, w_v = (arrays[name] for name in ("X", "Wq", "Wk", "Wv"))
    c = x.dtype.type(1 / math.sqrt(cfg["d"]))

    def compute() -> tuple[float, dict[str, Any]]:
        q, k, v = x.dot(w_q), x.dot(w_k), x.dot(w_v)  # (n, d)
        scores = q.dot(k.T) * c  # (n, n)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        p = e / e.sum(-1, keepdims=True)  # (n, n)  rows sum to 1
        out = p.dot(v)  # (n, d)
        g = np.ones_like(out)
        g_v, g_p = p.T.dot(g), g.dot(v.T)
        g_s = p * (g_p - (g_p * p).sum(-1, keepdims=True)) * c
        g_q, g_k = g_s.dot(k), g_s.T.dot(q)
        g_x = g_q.dot(w_q.T) + g_k.dot(w_k.T) + g_v.dot(w_v.T)
        return float(out.sum()), {"X": g_x, "Wq": x.T.dot(g_q), "Wk": x.T.dot(g_k), "Wv": x.T.dot(g_v)}

    return remembered(compute)


def head_torch(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    import torch

    def loss(p: dict[str, Any]) -> Any:
        q, k, v = p["X"] @ p["Wq"], p["X"] @ p["Wk"], p["X"] @ p["Wv"]
        return (torch.softmax((q @ k.transpose(-1, -2)) * (1 / math.sqrt(cfg["d"])), -1) @ v).sum()

    return torch_pair(arrays, loss)


# -- a long chain of numbers ------------------------------------------------------------------------------------------


def chain_arrays(rng: np.random.Generator, cfg: dict[str, Any]) -> dict[str, np.ndarray]:
    return {"x0": np.array(0.5)}


def chain_by_hand(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    def compute() -> tuple[float, dict[str, Any]]:
        x, slope = float(arrays["x0"]), 1.0
        for _ in range(cfg["N"] // 2):
            t = math.tanh(x)
            slope *= 2 - t * t
            x += t
        return x, {"x0": np.array(slope)}

    return remembered(compute)


def chain_torch(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    import torch

    def loss(p: dict[str, Any]) -> Any:
        x = p["x0"]
        for _ in range(cfg["N"] // 2):
            x = x + torch.tanh(x)
        return x

    return torch_pair(arrays, loss)


def workloads() -> list[Workload]:
    """All of them, from the cost of one node to chains of a hundred thousand."""
    nodes = [
        Workload(
            f"node {op}", f"200 times {op}, 4x8", {"op": op, "N": 200}, node_arrays, tape.ops, node_by_hand, node_torch
        )
        for op in ("add", "mul", "matmul", "tanh")
    ]
    heads = [
        Workload(
            f"head {n}x{d}", f"attention, n={n} d={d}", {"n": n, "d": d},
            head_arrays, tape.attn, head_by_hand, head_torch,
        )
        for n, d in ((4, 8), (12, 64))
    ]
    chains = [
        Workload(
            f"chain {size}", "x = x + tanh(x), again and again", {"N": size},
            chain_arrays, tape.chain, chain_by_hand, chain_torch,
        )
        for size in (10_000, 100_000)
    ]
    return nodes + heads + chains
