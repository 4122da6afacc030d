"""``python -m benchmarks.sweep``: the same sweep one by one, on the cores with joblib, and by Dask's workers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tinyattn as ta
from tinyattn.sweeps import Outcome

JOBS = 2


def check(seed: int, n: int) -> str:
    """One gradient check of a layer of attention."""
    layer = ta.nn.SelfAttention(4, rng=0)
    x = np.random.default_rng(seed).normal(size=(n, 4))
    return str(ta.check_gradients(layer, x, order=1))


def training(seed: int) -> float:
    """A hundred steps of a small block."""
    block = ta.nn.TransformerBlock(32, 4, rng=seed)
    optimiser, x = ta.optim.AdamW(block.parameters()), np.random.default_rng(seed).normal(size=(8, 16, 32))
    for _ in range(100):
        loss = ta.mse(block(x), x)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return float(loss.data)


SWEEPS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "200 checks": (check, {"seed": range(50), "n": [1, 2, 4, 8]}),
    "16 trainings": (training, {"seed": range(16)}),
}


def timed(name: str, **options: Any) -> tuple[float, list[Outcome]]:
    """Seconds, and the results, which must be the same everywhere."""
    function, ranges = SWEEPS[name]
    start = time.perf_counter()
    outcomes = ta.sweep(function, ranges, **options)
    return time.perf_counter() - start, outcomes


def main() -> int:
    # One thread of BLAS a process: otherwise the processes would fight for the cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from distributed import LocalCluster

    start = time.perf_counter()
    with LocalCluster(n_workers=JOBS, threads_per_worker=1, dashboard_address=None) as cluster:
        print(f"Dask: {time.perf_counter() - start:.1f} s to start {JOBS} workers")
        for name in SWEEPS:
            here, results = timed(name)
            cores, by_cores = timed(name, jobs=JOBS)
            first, by_workers = timed(name, scheduler=cluster.scheduler_address)
            again, _ = timed(name, scheduler=cluster.scheduler_address)
            same = results == by_cores == by_workers
            print(f"{name}: {here:.2f} s one by one, {here / len(results) * 1e3:.0f} ms each")
            print(f"  joblib {cores:.2f} s, Dask {first:.2f} s and again {again:.2f} s; the same results: {same}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
