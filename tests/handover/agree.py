"""What the tests of all libraries share: distances, models, and the results of the lessons."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from handover.graphs import random_graph
from symbolic.models import MODELS

import tinyattn as ta
from tinyattn.ops import REGISTRY

TIGHT = 1e-12
FEW = range(0, 200, 14)  # seeds that every run of the tests takes; all 200 are slow ones


def far(got: Any, want: Any) -> float:
    """The largest distance, in units of the largest number where that is above 1."""
    a, b = (np.asarray(getattr(x, "data", x) if isinstance(x, ta.Tensor) else x) for x in (got, want))
    assert a.shape == b.shape, (a.shape, b.shape)
    assert a.dtype == b.dtype
    if not a.size:
        return 0.0
    assert (np.isfinite(a) == np.isfinite(b)).all()
    finite = np.isfinite(b)
    return float(
        np.abs(np.where(finite, a, 0) - np.where(finite, b, 0)).max() / max(1, np.abs(b[finite]).max(initial=0))
    )


def slopes(loss: ta.Tensor) -> dict[str, np.ndarray]:
    """The engine's gradient to every parameter, under the names that a hand-over gives them."""
    graph = ta.Graph.of(loss, variables={}, gradients=True)
    return {
        node.name: np.zeros(node.shape) if node.grad is None else node.grad
        for node in graph.nodes if node.kind == "parameter"
    }  # fmt: skip


def model_loss(model: Any) -> ta.Tensor:
    return model()[0]


def graph_loss(seed: int) -> ta.Tensor:
    return random_graph(seed)[0]


def lesson_results(path: Path) -> list[ta.Tensor]:
    """Every tensor that a lesson computed and still holds at its end, by operations of the rule book."""
    found = runpy.run_path(str(path)).values()
    flat = [x for value in found for x in (value if isinstance(value, (list, tuple)) else [value])]
    computed = {id(x): x for x in flat if isinstance(x, ta.Tensor) and x.op is not None}.values()
    return [x for x in computed if {node.op_name for node in ta.Graph.of(x).nodes} <= {"", *REGISTRY}]


def all_agree(
    results: list[ta.Tensor],
    values: Callable[[list[ta.Tensor]], Iterable[Any]],
    gradients: Callable[[ta.Tensor], Any] | None = None,
) -> None:
    """Another library computes the same numbers, and, where it has gradients, those of one number made of all."""
    if not results:
        return
    assert all(far(got, y) < TIGHT for got, y in zip(values(results), results, strict=True))
    total = _total_of(results)
    if gradients is not None and total.requires_grad:
        gradients(total)


def _total_of(results: list[ta.Tensor]) -> ta.Tensor:
    """One number that depends on every entry of all results; what is not finite is left out."""
    squares = [(ta.where(np.isfinite(y.data), ta.astype(y, float), 0.0) ** 2).mean() for y in results if y.size]
    return sum(squares, start=ta.tensor(0.0))


__all__ = ["FEW", "MODELS", "TIGHT", "all_agree", "far", "graph_loss", "lesson_results", "model_loss", "slopes"]
