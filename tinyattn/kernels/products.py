"""Large matrix products, in rows of blocks on our own threads instead of those of the BLAS.

The threads of OpenBLAS spin for some milliseconds after a product, in case another one comes.  When tiles of attention
come instead, in threads of ours, three threads share two cores: a step of 30 ms then takes 60.  So no product here
lets the BLAS start its threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyattn.kernels import blas, threads
from tinyattn.kernels.small import inside

PART = 4_000_000  # multiplications of a part: 80 µs, against 20 to give it to another thread
MOST = 8  # parts


def product(a: Any, b: Any) -> Any:
    """``a @ b`` of two matrices, or of two stacks of as many."""
    ways = blas.control()
    if inside.now or ways is None:  # the cores have other parts of this work already
        return _multiply(a, b)
    parts = min(MOST, math.prod(a.shape) * b.shape[-1] // PART, a.shape[0])
    if parts < 2:
        with blas.one_thread():
            return _multiply(a, b)
    out = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    rows = a.shape[0]
    cuts = [slice(rows * i // parts, rows * (i + 1) // parts) for i in range(parts)]
    if a.ndim == 2:
        threads.run(lambda cut: np.dot(a[cut], b, out=out[cut]), cuts)
    else:
        threads.run(lambda cut: np.matmul(a[cut], b[cut], out=out[cut]), cuts)
    return out


def _multiply(a: Any, b: Any) -> Any:
    return a.dot(b) if a.ndim == 2 else a @ b
