"""The kinds of work that are timed: their sizes, their seeded numbers, and what is right, by hand in float64.

The names are those of the table in docs/performance.md.  A step is forward, backward and where it says so the update.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Arrays = dict[str, np.ndarray]
Answer = tuple[float, Arrays]  # the loss, and the gradients by name


class Workload(NamedTuple):
    """One kind of work: the function of an adapter that does it, its sizes at full length and in the smoke run."""

    name: str
    family: str
    what: str
    sizes: dict[str, Any]
    small: dict[str, Any] = {}  # noqa: RUF012

    def cfg(self, small: bool = False) -> dict[str, Any]:
        return {"name": self.name, **self.sizes, **(self.small if small else {})}


_MLP = {"samples": 4, "sizes": (3, 4, 4, 1), "lr": 1e-4}

WORKLOADS = {
    work.name: work
    for work in (
        Workload("W0add", "ops", "200 times x + b, 4x8: the cost of a node", {"op": "add", "N": 200}),
        Workload("W0mul", "ops", "200 times x * b, 4x8", {"op": "mul", "N": 200}),
        Workload("W0mat", "ops", "200 times x @ b, 4x8 by 8x8", {"op": "matmul", "N": 200}),
        Workload("W0tanh", "ops", "200 times tanh(x), 4x8", {"op": "tanh", "N": 200}),
        Workload("W1s", "mlp_scalar", "small MLP step, a node for each number, SGD", _MLP),
        Workload("W1t", "mlp", "the same step, a node for each array", _MLP),
        Workload("W2", "attn", "one head of attention, n=4, d=8", {"n": 4, "d": 8}),
        Workload("W3", "attn", "one head of attention, n=12, d=64", {"n": 12, "d": 64}),
        Workload(
            "W4", "mha", "multi-head attention, batch 8, n=128, d=256, 8 heads",
            {"B": 8, "n": 128, "d": 256, "h": 8, "causal": False}, {"B": 3, "n": 100, "d": 32},
        ),
        Workload(
            "W5", "mha", "multi-head attention, n=2048, d=64, 8 heads, causal",
            {"B": 1, "n": 2048, "d": 64, "h": 8, "causal": True}, {"n": 300},
        ),
        Workload(
            "W5x", "core", "attention alone, n=2048, 8 heads of 64, causal",
            {"B": 1, "n": 2048, "hd": 64, "h": 8, "causal": True}, {"n": 300, "hd": 16},
        ),
        Workload(
            "W6", "block", "Transformer block step with cross entropy and Adam, batch 16, n=64, d=128",
            {"B": 16, "n": 64, "d": 128, "h": 4, "V": 64, "lr": 1e-5}, {"B": 5, "n": 40, "d": 16},
        ),
        Workload("W7a", "chain", "x = x + tanh(x), 10,000 nodes", {"N": 10_000}, {"N": 100}),
        Workload("W7b", "chain", "x = x + tanh(x), 100,000 nodes", {"N": 100_000}, {"N": 1000}),
        Workload("W7c", "chain", "x = x + tanh(x), 1,000,000 nodes", {"N": 1_000_000}, {"N": 3000}),
    )
}  # fmt: skip


# -- the numbers ------------------------------------------------------------------------------------------------------


def numbers(work: Workload, cfg: dict[str, Any], dtype: str) -> Arrays:
    """The arrays of a workload: drawn in float64, then rounded, so that both dtypes do the same work."""
    made = _NUMBERS[work.family](np.random.default_rng(7), cfg)
    return {name: a.astype(dtype) if a.dtype.kind == "f" else a for name, a in made.items()}


def _scaled(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    return rng.normal(size=(rows, columns)) / math.sqrt(rows)


def _mlp_numbers(rng: np.random.Generator, cfg: dict[str, Any]) -> Arrays:
    sizes, samples = cfg["sizes"], cfg["samples"]
    made = {"X": rng.normal(size=(samples, sizes[0])), "y": rng.choice([-1.0, 1.0], (samples, 1))}
    for i, (rows, columns) in enumerate(itertools.pairwise(sizes)):
        made |= {f"W{i}": _scaled(rng, rows, columns), f"b{i}": 0.1 * rng.normal(size=columns)}
    return made


def _ops_numbers(rng: np.random.Generator, cfg: dict[str, Any]) -> Arrays:
    other = {
        "add": lambda: {"b": rng.normal(size=(4, 8))},
        "mul": lambda: {"b": 1 + 0.001 * rng.normal(size=(4, 8))},
        "matmul": lambda: {"b": np.linalg.qr(rng.normal(size=(8, 8)))[0]},
        "tanh": dict,
    }
    return {"x": rng.normal(size=(4, 8)), **other[cfg["op"]]()}


def _mha_numbers(rng: np.random.Generator, cfg: dict[str, Any]) -> Arrays:
    rows, d = (cfg["B"], cfg["n"], cfg["d"]), cfg["d"]
    weights = {name: _scaled(rng, d, d) for name in ("Wq", "Wk", "Wv", "Wo")}
    return {"X": rng.normal(size=rows), **weights, "G": rng.normal(size=rows)}


def _block_numbers(rng: np.random.Generator, cfg: dict[str, Any]) -> Arrays:
    b, n, d, v = (cfg[name] for name in ("B", "n", "d", "V"))
    made = {name: rng.integers(0, v, (b, n)) for name in ("tok", "tgt")}
    made |= {"E": 0.5 * rng.normal(size=(v, d)), "P": 0.5 * rng.normal(size=(n, d))}
    made |= {name: 1 + 0.1 * rng.normal(size=d) for name in ("g1", "g2", "gf")}
    made |= {name: 0.1 * rng.normal(size=d) for name in ("c1", "c2", "cf")}
    for name, rows, columns in (("qkv", d, 3 * d), ("o", d, d), ("1", d, 4 * d), ("2", 4 * d, d)):
        made |= {f"W{name}": _scaled(rng, rows, columns), f"b{name}": 0.1 * rng.normal(size=columns)}
    return made | {"Wh": _scaled(rng, d, v)}


_NUMBERS: dict[str, Callable[[np.random.Generator, dict[str, Any]], Arrays]] = {
    "ops": _ops_numbers,
    "mlp": _mlp_numbers,
    "mlp_scalar": _mlp_numbers,
    "attn": lambda rng, cfg: {
        "X": rng.normal(size=(cfg["n"], cfg["d"])),
        **{name: _scaled(rng, cfg["d"], cfg["d"]) for name in ("Wq", "Wk", "Wv")},
    },
    "mha": _mha_numbers,
    "core": lambda rng, cfg: {
        name: rng.normal(size=(cfg["B"], cfg["h"], cfg["n"], cfg["hd"])) for name in ("q", "k", "v", "G")
    },
    "block": _block_numbers,
    "chain": lambda rng, cfg: {"x0": np.array(0.5)},
}


# -- what is right ----------------------------------------------------------------------------------------------------


def truth(work: Workload, cfg: dict[str, Any], arrays: Arrays) -> Answer:
    """Loss and gradients, by the textbook's formulas in float64."""
    return _TRUTH[work.family](cfg, {name: a.astype(float) if a.dtype.kind == "f" else a for name, a in arrays.items()})


def worst_error(loss: float, found: Arrays, right: Answer) -> float:
    """The largest relative error of loss and gradients; a missing gradient is infinitely wrong."""
    errors = [abs(loss - right[0]) / max(1.0, abs(right[0]))]
    for name, wanted in right[1].items():
        if found.get(name) is None:
            return math.inf
        difference = np.abs(np.asarray(found[name], float).reshape(np.shape(wanted)) - wanted)
        errors.append(float(difference.max() / max(np.abs(wanted).max(), 1e-30)))
    return max(errors) if all(map(math.isfinite, errors)) else math.inf


TOLERANCE = {"float32": 2e-3, "float64": 1e-9}


def _ops_truth(cfg: dict[str, Any], a: Arrays) -> Answer:
    x, b, op = a["x"], a.get("b", np.zeros(())), cfg["op"]
    forward: dict[str, Callable[[Any], Any]] = {
        "add": lambda x: x + b, "mul": lambda x: x * b, "matmul": lambda x: x @ b, "tanh": np.tanh,
    }  # fmt: skip
    seen = [x]
    for _ in range(cfg["N"]):
        seen.append(forward[op](seen[-1]))
    g: Any = np.ones_like(x)
    to_b: Any = 0
    for before, after in zip(seen[-2::-1], seen[:0:-1], strict=True):
        if op == "add":
            to_b = to_b + g
        elif op == "mul":
            to_b, g = to_b + g * before, g * b
        elif op == "matmul":
            to_b, g = to_b + before.T @ g, g @ b.T
        else:
            g = g * (1 - after * after)
    return float(seen[-1].sum()), {"x": g, **({} if op == "tanh" else {"b": to_b})}


def _mlp_truth(cfg: dict[str, Any], a: Arrays) -> Answer:
    last = len(cfg["sizes"]) - 2
    inputs = [a["X"]]
    for i in range(last + 1):
        z = inputs[-1] @ a[f"W{i}"] + a[f"b{i}"]
        inputs.append(z if i == last else np.maximum(z, 0))
    error = inputs[-1] - a["y"]
    g, found = 2 * error, {}
    for i in range(last, -1, -1):
        if i < last:
            g = g * (inputs[i + 1] > 0)
        found |= {f"W{i}": inputs[i].T @ g, f"b{i}": g.sum(0)}
        g = g @ a[f"W{i}"].T
    return float((error**2).sum()), {**found, "X": g}


def _attention(q: Any, k: Any, v: Any, causal: bool) -> tuple[Any, Callable[[Any], tuple[Any, Any, Any]]]:
    """One head: its output, and the way back."""
    c = 1 / math.sqrt(q.shape[-1])
    scores = q @ k.T * c  # (n, n)
    if causal:
        scores[~np.tri(len(q), dtype=bool)] = -np.inf
    e = np.exp(scores - scores.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)  # (n, n)

    def back(g: Any) -> tuple[Any, Any, Any]:
        g_p = g @ v.T
        g_s = p * (g_p - (p * g_p).sum(-1, keepdims=True)) * c
        return g_s @ k, g_s.T @ q, p.T @ g

    return p @ v, back


def _heads(q: Any, k: Any, v: Any, g_of: Callable[[Any], Any], causal: bool) -> tuple[Any, list[Any]]:
    """All heads, (B, h, n, e), one by one so that the truth needs little memory; ``g_of`` a head's place is its g."""
    y, found = np.empty_like(v), [np.empty_like(x) for x in (q, k, v)]
    for place in np.ndindex(q.shape[:2]):
        y[place], back = _attention(q[place], k[place], v[place], causal)
        g = g_of(place)
        if g is not None:
            for whole, part in zip(found, back(g), strict=True):
                whole[place] = part
    return y, found


def _split(x: Any, h: int) -> Any:
    b, n, d = x.shape
    return x.reshape(b, n, h, d // h).transpose(0, 2, 1, 3)


def _merge(x: Any) -> Any:
    b, h, n, e = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, n, h * e)


def _rows(x: Any) -> Any:
    return x.reshape(-1, x.shape[-1])


def _attn_truth(cfg: dict[str, Any], a: Arrays) -> Answer:
    x = a["X"]
    y, back = _attention(x @ a["Wq"], x @ a["Wk"], x @ a["Wv"], False)
    slopes = dict(zip(("Wq", "Wk", "Wv"), back(np.ones_like(y)), strict=True))
    to_x = sum(g @ a[name].T for name, g in slopes.items())
    return float(y.sum()), {"X": to_x, **{name: x.T @ g for name, g in slopes.items()}}


def _mha_truth(cfg: dict[str, Any], a: Arrays) -> Answer:
    h, x = cfg["h"], a["X"]
    q, k, v = (_split(x @ a[name], h) for name in ("Wq", "Wk", "Wv"))
    to_heads = _split(a["G"] @ a["Wo"].T, h)
    y, slopes = _heads(q, k, v, lambda place: to_heads[place], cfg["causal"])
    merged = _merge(y)
    found = {"Wo": _rows(merged).T @ _rows(a["G"]), "X": np.zeros_like(x)}
    for name, slope in zip(("Wq", "Wk", "Wv"), slopes, strict=True):
        g = _merge(slope)
        found[name] = _rows(x).T @ _rows(g)
        found["X"] += g @ a[name].T
    return float((merged @ a["Wo"] * a["G"]).sum()), found


def _core_truth(cfg: dict[str, Any], a: Arrays) -> Answer:
    y, slopes = _heads(a["q"], a["k"], a["v"], lambda place: a["G"][place], cfg["causal"])
    return float((y * a["G"]).sum()), dict(zip("qkv", slopes, strict=True))


def _norm(x: Any, gain: Any, bias: Any) -> tuple[Any, Callable[[Any], tuple[Any, Any, Any]]]:
    r = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    z = (x - x.mean(-1, keepdims=True)) * r

    def back(g: Any) -> tuple[Any, Any, Any]:
        gz = g * gain
        inner = gz - gz.mean(-1, keepdims=True) - z * (gz * z).mean(-1, keepdims=True)
        return inner * r, _rows(g * z).sum(0), _rows(g).sum(0)

    return z * gain + bias, back


def _gelu(x: Any) -> tuple[Any, Any]:
    """Value and slope, in the form with tanh."""
    a = math.sqrt(2 / math.pi)
    t = np.tanh(a * (x + 0.044715 * x**3))
    return x * (1 + t) / 2, (1 + t) / 2 + x / 2 * (1 - t * t) * a * (1 + 3 * 0.044715 * x * x)


def _block_truth(cfg: dict[str, Any], a: Arrays) -> Answer:
    h, words, targets = cfg["h"], a["tok"], a["tgt"].ravel()
    x0 = a["E"][words] + a["P"]
    y1, back1 = _norm(x0, a["g1"], a["c1"])
    q, k, v = (_split(part, h) for part in np.split(y1 @ a["Wqkv"] + a["bqkv"], 3, axis=-1))
    merged = _merge(_heads(q, k, v, lambda place: None, True)[0])
    x1 = x0 + merged @ a["Wo"] + a["bo"]
    y2, back2 = _norm(x1, a["g2"], a["c2"])
    hidden, slope = _gelu(y2 @ a["W1"] + a["b1"])
    x2 = x1 + hidden @ a["W2"] + a["b2"]
    y3, back3 = _norm(x2, a["gf"], a["cf"])
    scores = _rows(y3 @ a["Wh"])
    e = np.exp(scores - scores.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    each = np.arange(len(targets))
    loss = float(-np.log(p[each, targets]).mean())

    g = p.copy()
    g[each, targets] -= 1
    g /= len(targets)
    found = {"Wh": _rows(y3).T @ g}
    to_x, found["gf"], found["cf"] = back3((g @ a["Wh"].T).reshape(x2.shape))
    found |= {"W2": _rows(hidden).T @ _rows(to_x), "b2": _rows(to_x).sum(0)}
    g = to_x @ a["W2"].T * slope
    found |= {"W1": _rows(y2).T @ _rows(g), "b1": _rows(g).sum(0)}
    part, found["g2"], found["c2"] = back2(g @ a["W1"].T)
    to_x = to_x + part
    found |= {"Wo": _rows(merged).T @ _rows(to_x), "bo": _rows(to_x).sum(0)}
    to_heads = _split(to_x @ a["Wo"].T, h)
    slopes = _heads(q, k, v, lambda place: to_heads[place], True)[1]
    g = np.concatenate([_merge(part) for part in slopes], axis=-1)
    found |= {"Wqkv": _rows(y1).T @ _rows(g), "bqkv": _rows(g).sum(0)}
    part, found["g1"], found["c1"] = back1(g @ a["Wqkv"].T)
    to_x = to_x + part
    found |= {"P": to_x.sum(0), "E": np.zeros_like(a["E"])}
    np.add.at(found["E"], words, to_x)
    return loss, found


def _chain_truth(cfg: dict[str, Any], a: Arrays) -> Answer:
    x, slope = float(a["x0"]), 1.0
    for _ in range(cfg["N"] // 2):
        t = math.tanh(x)
        slope *= 2 - t * t
        x += t
    return x, {"x0": np.array(slope)}


_TRUTH: dict[str, Callable[[dict[str, Any], Arrays], Answer]] = {
    "ops": _ops_truth, "mlp": _mlp_truth, "mlp_scalar": _mlp_truth, "attn": _attn_truth, "mha": _mha_truth,
    "core": _core_truth, "block": _block_truth, "chain": _chain_truth,
}  # fmt: skip
