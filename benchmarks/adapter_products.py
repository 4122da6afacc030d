"""The floor: only the matrix products that the work cannot do without, on all cores, and nothing between them.

No engine on NumPy can be faster.  Nothing is computed that could be checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyattn.kernels import threads

Pair = tuple[Callable[[], None], Callable[[], tuple[float, dict[str, Any]]]]
Product = tuple[int, int, int]  # rows, inner, columns
TILE = 256


def versions() -> dict[str, str]:
    return {"numpy": np.__version__}


def linear(rows: int, n_in: int, n_out: int) -> list[Product]:
    """A product forward and the two of its way back."""
    return [(rows, n_in, n_out), (rows, n_out, n_in), (n_in, rows, n_out)]


def attention(n: int, e: int, causal: bool) -> list[Product]:
    """Of one head, tile by tile: two products forward, five back; above the diagonal none."""
    side = min(n, TILE)
    tiles = -(-n // side)
    count = tiles * (tiles + 1) // 2 if causal else tiles * tiles
    scores, means, slopes = (side, e, side), (side, side, e), (side, side, e)
    return [scores, means, scores, scores, means, slopes, slopes] * count


def pair(dtype: Any, shares: list[list[Product]]) -> Pair:
    """All products, every share in a thread."""
    sizes = {product for share in shares for product in share}
    left = {size: np.ones(size[:2], dtype) for size in sizes}
    right = {size: np.ones(size[1:], dtype) for size in sizes}

    def work(share: list[Product]) -> None:
        out = {size: np.empty((size[0], size[2]), dtype) for size in set(share)}
        for size in share:
            np.dot(left[size], right[size], out=out[size])

    return lambda: threads.run(work, shares), lambda: (0.0, {})


def mha(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    batch, n, d, h = (cfg[name] for name in ("B", "n", "d", "h"))
    rows = batch * n // 2
    each = 4 * linear(rows, d, d) + attention(n, d // h, cfg["causal"]) * (batch * h // 2)
    return pair(arrays["X"].dtype, [each, each])


def core(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    return pair(arrays["q"].dtype, [attention(cfg["n"], cfg["hd"], cfg["causal"])] * (cfg["B"] * cfg["h"]))


def block(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    batch, n, d, h, words = (cfg[name] for name in ("B", "n", "d", "h", "V"))
    rows = batch * n // 2
    layers = [(d, 3 * d), (d, d), (d, 4 * d), (4 * d, d), (d, words)]
    each = [product for layer in layers for product in linear(rows, *layer)]
    each += attention(n, d // h, True) * (batch * h // 2)
    return pair(arrays["E"].dtype, [each, each])
