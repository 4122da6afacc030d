"""``python -m benchmarks.exact``: the exact check of a Transformer block against that block's own float step."""

from __future__ import annotations

import sys
import time

import numpy as np

import tinyattn as ta
from tinyattn.check import exact_check

GOAL = 4.0


def measure(n: int, d: int, batch: int, rounds: int = 40) -> tuple[int, float, float]:
    """Parameters, seconds of a float step and seconds of the exact check, the best of several turns each.

    They are the processor's seconds, all threads together: what else the machine has to do does not count.
    """
    block = ta.nn.TransformerBlock(d, 4, rng=np.random.default_rng(0))
    parameters = block.parameters()
    x = ta.tensor(np.random.default_rng(1).normal(size=(batch, n, d)), requires_grad=True)

    def step() -> None:
        for p in parameters:
            p.zero_grad()
        y = block(x)
        y.backward(np.ones(y.shape))

    graph = ta.Graph.of(block(x), variables={})
    best = {"step": float("inf"), "exact": float("inf")}
    for _ in range(rounds):
        for name, work in (("step", step), ("exact", lambda: exact_check(graph))):
            start = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - start)
    return sum(p.size for p in parameters), best["step"], best["exact"]


def main() -> int:
    met = True
    for n, d, batch, rounds in ((16, 48, 1, 60), (64, 48, 4, 40), (64, 128, 16, 8)):
        size, step, exact = measure(n, d, batch, rounds)
        met = met and exact <= GOAL * step
        times = f"step {step * 1e3:.2f} ms, exact check {exact * 1e3:.1f} ms, ratio {exact / step:.2f} (goal {GOAL:g})"
        print(f"{size} parameters, batch {batch}, n={n}, d={d}: {times}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
