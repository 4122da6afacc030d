"""Functions that worker processes call in `test_sweeps.py`; in a file of their own, so that workers can import them."""

from __future__ import annotations

import os
import pathlib
import signal

import numpy as np

import tinyattn as ta


def total(seed: int, n: int) -> float:
    """The sum of a random attention's gradient: floating-point numbers to be compared bit by bit."""
    q, k, v = (ta.tensor(x, requires_grad=True) for x in np.random.default_rng(seed).normal(size=(3, n, 2)))
    ta.sum(ta.tanh(ta.scaled_dot_product_attention(q, k, v))).backward()
    return float(q.grad.sum() + k.grad.sum() + v.grad.sum())


def dies_once(folder: str, seed: int) -> int:
    """Kill its own process the first time that it is called with seed 3."""
    mark = pathlib.Path(folder, "died")
    if seed == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return seed * seed


def always_dies(seed: int) -> int:
    if seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return seed


def refuses(seed: int) -> int:
    if seed == 2:
        raise ValueError("not this one")
    return seed
