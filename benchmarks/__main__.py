"""``python -m benchmarks``: how fast tinyattn is, as ratios against work by hand in NumPy and against PyTorch.

Everybody runs short bursts in turn in one process and the best burst counts, so all see the same noise.  No
figure is shown for a gradient that is wrong.  ``--smoke`` checks the gradients only, and times nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from workloads import Workload, workloads

from tinyattn.terminal import say, table

TOLERANCE = {"float32": 2e-3, "float64": 1e-9}


def worst_error(found: tuple[float, dict[str, Any]], truth: tuple[float, dict[str, Any]]) -> float:
    """The largest relative error of loss and gradients; a missing gradient is infinitely wrong."""
    errors = [abs(found[0] - truth[0]) / max(1.0, abs(truth[0]))]
    for name, right in truth[1].items():
        if found[1].get(name) is None:
            return float("inf")
        difference = np.abs(np.asarray(found[1][name], float).reshape(np.shape(right)) - right)
        errors.append(float(difference.max() / max(np.abs(right).max(), 1e-30)))
    return max(errors)


def burst(step: Callable[[], None], seconds: float) -> float:
    """The shortest of several steps, in seconds."""
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        step()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


def measure(work: Workload, dtype: str, rounds: int, seconds: float) -> dict[str, Any]:
    """Check every way against the one by hand, then time them in turn."""
    arrays = work.arrays(np.random.default_rng(0), work.cfg)
    compute, answer = work.by_hand(work.cfg, arrays)
    compute()
    truth = answer()
    rounded = {name: array.astype(dtype) for name, array in arrays.items()}
    ways = {"tinyattn": work.tinyattn, "by hand": work.by_hand}
    if rounds and importlib.util.find_spec("torch"):
        ways["torch"] = work.torch
    steps = {}
    for name, way in ways.items():
        step, result = way(work.cfg, rounded)
        step()
        error = worst_error(result(), truth)
        if not error <= TOLERANCE[dtype]:
            return {"name": work.name, "dtype": dtype, "wrong": name, "error": error}
        steps[name] = step
    best = dict.fromkeys(steps, float("inf"))
    for turn in range(rounds):
        for name in list(steps) if turn % 2 == 0 else reversed(list(steps)):
            best[name] = min(best[name], burst(steps[name], seconds))
    return {"name": work.name, "dtype": dtype, "what": work.what, "best": best}


def row(result: dict[str, Any]) -> list[str]:
    if "wrong" in result:
        wrong = f"WRONG: {result['wrong']} is off by {result['error']:.1e}"
        return [result["name"], result["dtype"], wrong, "", "", ""]
    best = result["best"]
    peer = best.get("torch")
    return [
        result["name"], result["dtype"], f"{best['tinyattn'] * 1e6:.1f}", f"{best['by hand'] * 1e6:.1f}",
        f"{best['tinyattn'] / best['by hand']:.2f}", f"{best['tinyattn'] / peer:.2f}" if peer else "not installed",
    ]  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="check the gradients of every workload, time nothing")
    parser.add_argument("--rounds", type=int, default=6, help="how many turns everybody gets")
    parser.add_argument("--seconds", type=float, default=0.2, help="length of one burst")
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--json", default="", help="write the figures to this file")
    options = parser.parse_args(argv)
    rounds = 0 if options.smoke else options.rounds
    chosen = [work for work in workloads() if options.only in work.name]
    results = [measure(work, dtype, rounds, options.seconds) for work in chosen for dtype in ("float32", "float64")]
    wrong = [result for result in results if "wrong" in result]
    if options.smoke:
        for result in wrong:
            say(f"{result['name']} {result['dtype']}: {result['wrong']} is off by {result['error']:.1e}")
        say(f"{len(results) - len(wrong)} of {len(results)} workloads give the right gradients.")
        return 1 if wrong else 0
    machine = f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}"
    say(f"{machine}; microseconds a step, best burst")
    say(table([row(result) for result in results], ["work", "dtype", "tinyattn", "by hand", "/ by hand", "/ torch"]))
    if options.json:
        from tinyattn.files import write_whole

        write_whole(options.json, json.dumps(results, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
