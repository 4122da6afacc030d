"""What we want to reach, as ratios, and whether a run reached it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

BEST = ("torch", "torch fused", "torch compile")  # the best of PyTorch is whichever of these is fastest


class Goal(NamedTuple):
    """A ratio that shall be at most so large, in float32 and in float64."""

    work: str
    ours: str
    against: tuple[str, ...]
    most: tuple[float, float]
    what: str = "best"  # or "peak": the memory of the first two steps
    checks: float = 1.0  # so many times the goal is allowed, if it is checks that cost it

    def words(self) -> str:
        """Against whom, in words."""
        who = "the best of PyTorch" if self.against == BEST else _NAMES[self.against[0]]
        return f"memory of {who}" if self.what == "peak" else who


_NAMES = {"torch": "PyTorch", "torch fused": "PyTorch's fused attention", "jax": "JAX jit"}

CHECKS = 1.2
"""The goals of the small steps come from an engine that checked nothing: no names, no look at what is not finite."""

GOALS = (
    *(Goal(work, "tape", ("torch",), (0.45, 0.45)) for work in ("W0add", "W0mul", "W0mat", "W0tanh")),
    Goal("W1s", "tape", ("torch",), (0.12, 0.12), checks=CHECKS),
    Goal("W1s", "compiled", ("torch",), (0.012, 0.012)),
    Goal("W1t", "tape", ("torch",), (0.15, 0.15), checks=CHECKS),
    Goal("W2", "tape", ("torch",), (0.22, 0.22), checks=CHECKS),
    Goal("W2", "compiled", ("torch",), (0.13, 0.13)),
    Goal("W2", "compiled", ("jax",), (0.65, 0.65)),
    Goal("W3", "tape", ("torch",), (0.23, 0.29), checks=CHECKS),
    Goal("W3", "compiled", ("torch",), (0.17, 0.21)),
    Goal("W4", "tape", ("torch",), (0.90, 0.78)),
    Goal("W4", "tape", BEST, (0.97, 0.78)),
    Goal("W4", "tape", ("torch fused",), (0.65, 0.98), "peak"),
    Goal("W5", "tape", ("torch",), (0.07, 0.07)),
    Goal("W5", "tape", BEST, (0.45, 0.45)),
    Goal("W5", "tape", ("torch fused",), (0.55, 0.75), "peak"),
    Goal("W5x", "tape", ("torch",), (0.25, 0.25)),
    Goal("W5x", "tape", BEST, (0.96, 0.72)),
    Goal("W5x", "tape", ("torch fused",), (0.65, 0.65), "peak"),
    Goal("W6", "tape", ("torch",), (1.0, 0.85)),
    Goal("W6", "tape", BEST, (1.0, 0.85)),
    Goal("W6", "tape", ("torch",), (1.0, 1.0), "peak"),
    Goal("W7a", "tape", ("torch",), (0.2, 0.2)),
    Goal("W7b", "tape", ("torch",), (0.2, 0.2)),
    Goal("W7c", "tape", ("torch",), (0.2, 0.2)),
    Goal("W7a", "nameless", ("torch",), (0.15, 0.15)),
    Goal("W7b", "nameless", ("torch",), (0.15, 0.15)),
    Goal("W7c", "nameless", ("torch",), (0.15, 0.15)),
)

DTYPES = ("float32", "float64")
SMALL = ("W0add", "W0mul", "W0mat", "W0tanh", "W1s", "W1t", "W2", "W3")  # where the names could be felt


def engines_for(work: str) -> tuple[str, ...]:
    """Who takes part in a workload: who is asked for by a goal."""
    asked = [engine for goal in GOALS if goal.work == work for engine in (goal.ours, *goal.against)]
    small = work in SMALL
    beside = ["nameless"] if small else ["products"] if work in ("W4", "W5", "W5x", "W6") else []
    return tuple(dict.fromkeys(["tape", "torch", *asked, *beside] if small else asked + beside))


def row(
    work: str, what: str, dtype: str, value: float, goal: float, unit: str = "", checks: float = 1.0
) -> dict[str, Any]:
    """One line of the table; a value that was not measured has no verdict."""
    verdict = "not measured" if not math.isfinite(value) else "reached" if value <= goal else "missed"
    if verdict == "missed" and value <= checks * goal:
        verdict = "allowed"
    return {"work": work, "what": what, "dtype": dtype, "value": value, "goal": goal, "unit": unit, "verdict": verdict}


def rows_of(times: dict[str, Any]) -> list[dict[str, Any]]:
    """The goals that are ratios of two engines in one run."""
    made = []
    for goal in GOALS:
        for place, dtype in enumerate(DTYPES):
            found = times.get(goal.work, {}).get(dtype)
            if found is None:
                continue
            mine = found.get(goal.ours, {}).get(goal.what, math.nan)
            others = [found[name][goal.what] for name in goal.against if goal.what in found.get(name, {})]
            value = mine / min(others) if others else math.nan
            what = f"{goal.ours} / {goal.words()}"
            made.append(row(goal.work, what, dtype, value, goal.most[place], checks=goal.checks))
    return made
