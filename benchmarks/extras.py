"""What is measured apart from steps: importing, formulas, drawings, the exact check, a whole training."""

from __future__ import annotations

import importlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from goals import row

import tinyattn as ta


def best_of(work: Callable[[], object], times: int) -> float:
    """Seconds of the shortest of several runs."""
    best = math.inf
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def import_row(times: int = 15) -> dict[str, Any]:
    """``import tinyattn`` against ``import numpy``, in fresh processes that take turns."""
    best = {"numpy": math.inf, "tinyattn": math.inf}
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # as installed: compiled once
    for _ in range(times):
        for name in best:
            code = f"import time; start = time.perf_counter(); import {name}; print(time.perf_counter() - start)"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=kept)
            best[name] = min(best[name], float(done.stdout))
    return row("import", "import tinyattn / import numpy", "", best["tinyattn"] / best["numpy"], 1.1)


def one_attention() -> tuple[ta.Tensor, list[ta.Tensor]]:
    """A loss through one head, and the weights."""
    rng = np.random.default_rng(0)
    X = ta.tensor(rng.normal(size=(4, 8)), name="X")
    W_q, W_k, W_v = (ta.tensor(rng.normal(size=(8, 8)), requires_grad=True, name=f"W_{c}") for c in "qkv")
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    A = ta.softmax(Q @ K.mT / math.sqrt(8), axis=-1)
    return ta.sum(A @ V), [W_q, W_k, W_v]


def picture_rows() -> list[dict[str, Any]]:
    """Formulas and drawings: milliseconds of one attention without the layout, seconds of a thousand nodes with it."""
    import viz

    loss, weights = one_attention()
    derive = best_of(lambda: str(ta.derive(loss, weights)), 20) * 1e3
    draw = best_of(lambda: viz.draw(ta.Graph.of(loss)).dot, 20) * 1e3
    made = [row("formulas", "derive() of one attention", "", derive, 5.0, "ms"),
            row("drawing", "draw() of one attention, layout apart", "", draw, 5.0, "ms")]  # fmt: skip
    x = ta.tensor(np.ones((2, 2)), requires_grad=True)
    for i in range(250):
        x = ta.tanh(x * (1 + i / 1000)) + x
    long = ta.Graph.of(x)
    try:
        seconds = best_of(lambda: viz.draw(long, max_nodes=2000).svg, 1)
    except ta.MissingToolError:
        seconds = math.nan
    return [*made, row("drawing", f"drawing of {len(long):,} nodes", "", seconds, 3.0, "s")]


def exact_row() -> dict[str, Any]:
    """The exact check of a block of 25,000 parameters against that block's own float step."""
    exact = importlib.import_module("exact")
    _, step, check = exact.measure(16, 48, 1)
    return row("exact check", "of a block of 25,000 parameters / its step", "float64", check / step, exact.GOAL)


def training_rows(names: str) -> list[dict[str, Any]]:
    """A small GPT trained for a thousand steps on a file of names; nothing where there is no such file."""
    path = names or os.path.join(os.environ.get("TINYATTN_SHARED", ""), "data", "names", "names.txt")
    if not os.path.isfile(path):
        return []
    microgpt = importlib.import_module("microgpt")
    found = microgpt.measure(path)
    return [row("microgpt", "1,000 steps of a GPT of 4,192 parameters", "float64", found["seconds"], 1.0, "s"),
            row("microgpt", "its time / that of an engine of scalars", "float64", 1 / found["ratio"], 0.01),
            row("microgpt", "loss of the last 100 steps", "float64", found["last"], 2.7)]  # fmt: skip
