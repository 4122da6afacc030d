"""How the cost of a step grows with the sizes: measured exponents beside those that counting operations gives.

A cost that is c·n^p is a straight line of slope p when both axes count in powers; the slope is fitted to the larger
half of the sizes, because small ones are mostly the fixed cost of a call.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tinyattn as ta


class Growth(NamedTuple):
    """One size made larger while the others stay."""

    name: str
    size: str
    values: tuple[int, ...]
    expected: str  # in words, because it may lie between two
    low: float  # and in numbers
    high: float
    step_of: Callable[[int], Callable[[], object]]
    memory: bool = False


def leaf(*shape: int) -> ta.Tensor:
    return ta.tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32), requires_grad=True)


def attention(n: int, h: int, e: int) -> Callable[[], object]:
    parts = [leaf(1, h, n, e) for _ in range(3)]
    g = np.ones((1, h, n, e), np.float32)

    def step() -> None:
        for x in parts:
            x.zero_grad()
        ta.scaled_dot_product_attention(*parts, causal=True).backward(g)

    return step


def encoder(layers: int, d: int, n: int = 64, batch: int = 4) -> Callable[[], object]:
    model = ta.nn.TransformerEncoder(layers, d, 4, rng=0, fused=True)
    parameters = model.parameters()
    x = leaf(batch, n, d)
    g = np.ones((batch, n, d))

    def step() -> None:
        for p in parameters:
            p.zero_grad()
        model(x).backward(g)

    return step


def chain(nodes: int) -> Callable[[], object]:
    x0 = ta.tensor(0.5, requires_grad=True)

    def step() -> None:
        x0.zero_grad()
        x = x0
        for _ in range(nodes // 2):
            x = x + ta.tanh(x)
        x.backward()

    return step


GROWTHS = (
    Growth("attention, 4 heads of 32, causal", "n", (256, 512, 1024, 2048, 4096), "2", 2, 2,
           lambda n: attention(n, 4, 32)),
    Growth("its memory", "n", (256, 512, 1024, 2048, 4096), "1", 1, 1, lambda n: attention(n, 4, 32), True),
    Growth("attention, n=1024, 4 heads", "width of a head", (16, 32, 64, 128, 256), "0 (exp) to 1 (products)", 0, 1,
           lambda e: attention(1024, 4, e)),
    Growth("attention, n=1024, 256 columns in all", "h", (1, 2, 4, 8, 16, 32), "0 (products) to 1 (exp)", 0, 1,
           lambda h: attention(1024, h, 256 // h)),
    Growth("Transformer block, n=64, batch 4", "d", (64, 128, 256, 512, 1024), "1 (norms) to 2 (products)", 1, 2,
           lambda d: encoder(1, d)),
    Growth("Transformer, d=64, n=64, batch 4", "depth", (1, 2, 4, 8, 16), "1", 1, 1,
           lambda layers: encoder(layers, 64)),
    Growth("chain of numbers", "nodes", (1_000, 3_000, 10_000, 30_000, 100_000), "1", 1, 1, chain),
)  # fmt: skip


def exponent(values: list[int], costs: list[float]) -> float:
    """The slope in powers, over the larger half of the sizes."""
    half = len(values) // 2
    return float(np.polyfit(np.log(values[half:]), np.log(costs[half:]), 1)[0])


def measure(growth: Growth, seconds: float = 0.4) -> dict[str, Any]:
    """The costs of all sizes, best of several steps each, and the exponent."""
    costs = [_memory(growth.step_of(v)) if growth.memory else _time(growth.step_of(v), seconds) for v in growth.values]
    kept = growth._asdict()
    del kept["step_of"]
    return {**kept, "values": list(growth.values), "costs": costs, "exponent": exponent(list(growth.values), costs)}


def _time(step: Callable[[], object], seconds: float) -> float:
    step()
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        step()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


def _memory(step: Callable[[], object]) -> float:
    """The most bytes that a step holds at once, beyond what was there."""
    step()
    tracemalloc.start()
    step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(peak)
