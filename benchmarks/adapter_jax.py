"""JAX with jit doing one head of attention, for comparison."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

Pair = tuple[Callable[[], None], Callable[[], tuple[float, dict[str, Any]]]]


def versions() -> dict[str, str]:
    return {"jax": jax.__version__}


def attn(cfg: dict[str, Any], arrays: dict[str, np.ndarray]) -> Pair:
    p = {name: jnp.asarray(a) for name, a in arrays.items()}

    def loss(p: dict[str, Any]) -> Any:
        q, k, v = (p["X"] @ p[name] for name in ("Wq", "Wk", "Wv"))
        return (jax.nn.softmax((q @ k.T) * (1 / math.sqrt(cfg["d"])), axis=-1) @ v).sum()

    compute = jax.jit(jax.value_and_grad(loss))
    state: dict[str, Any] = {}

    def step() -> None:
        state["last"] = jax.block_until_ready(compute(p))

    return step, lambda: (float(state["last"][0]), {name: np.asarray(g) for name, g in state["last"][1].items()})
