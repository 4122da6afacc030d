"""Engines side by side: each in its own process, in short bursts that take turns, so that all see the same noise."""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from workloads import TOLERANCE, WORKLOADS, numbers, truth, worst_error

HERE = os.path.dirname(os.path.abspath(__file__))
PAUSE = 0.05  # seconds between bursts, so that threads that spin have gone to sleep
NEEDS = {"tape": "numpy", "nameless": "numpy", "compiled": "numpy", "products": "numpy", "jax": "jax", "torch": "torch",
         "torch fused": "torch", "torch compile": "torch"}  # fmt: skip


def interpreters(given: Iterable[str]) -> dict[str, str]:
    """For each library the first Python that has it: this one, then those given."""
    found: dict[str, str] = {}
    look = "import importlib.util as u; print(*[n for n in ('numpy', 'torch', 'jax') if u.find_spec(n)])"
    for python in (sys.executable, *given):
        try:
            answer = subprocess.run([python, "-c", look], capture_output=True, text=True, timeout=60, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{python} does not answer and is left out: {error}", file=sys.stderr)
            continue
        for name in answer.stdout.split():
            found.setdefault(name, python)
    return found


class Failed(Exception):
    """An engine could not do it; why, in its own words."""


class Engine:
    """A worker process and the lines that go back and forth."""

    def __init__(self, python: str, name: str) -> None:
        self.name = name
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        self.process = subprocess.Popen(
            [python, os.path.join(HERE, "worker.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=environment,
        )  # fmt: skip

    def ask(self, limit: float, **order: Any) -> dict[str, Any]:
        """Give an order and wait for the answer, but not for ever."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            print(json.dumps(order), file=self.process.stdin, flush=True)
            ready = select.select([self.process.stdout], [], [], limit)[0] if os.name != "nt" else [True]
            line = self.process.stdout.readline() if ready else ""
        except OSError:
            line = ""
        answer = json.loads(line) if line else {"failed": f"no answer within {limit:.0f} seconds"}
        if "failed" in answer:
            raise Failed(answer["failed"])
        return dict(answer)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def measure(
    name: str, dtype: str, engines: Iterable[str], pythons: dict[str, str], rounds: int, seconds: float,
    sizes: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Times and memory of one workload by engine: best step, processor time of a step, peak of two steps, error."""
    work = WORKLOADS[name]
    cfg = {**work.cfg(), **(sizes or {})}
    right = truth(work, cfg, numbers(work, cfg, dtype))
    found: dict[str, Any] = {}
    running: list[Engine] = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for engine in engines:
                if NEEDS[engine] not in pythons:
                    continue
                process = Engine(pythons[NEEDS[engine]], engine)
                running.append(process)
                order = {"do": "build", "engine": engine, "work": name, "dtype": dtype, "sizes": sizes or {}}
                order["answer"] = os.path.join(folder, f"{engine}.npz")
                found[engine] = _built(process, order, right, dtype)
                if "failed" in found[engine]:
                    running.remove(process)
                    process.close()
        for turn in range(rounds):
            for process in running if turn % 2 == 0 else running[::-1]:
                time.sleep(PAUSE)
                now = process.ask(600, do="burst", seconds=seconds, most=100_000)
                before = found[process.name]
                before["best"] = min(before.get("best", math.inf), now["best"])
                before["cpu"] = min(before.get("cpu", math.inf), now["cpu"])
    finally:
        for process in running:
            process.close()
    return found


def _built(engine: Engine, order: dict[str, Any], right: Any, dtype: str) -> dict[str, Any]:
    """What the first two steps say; an engine with a wrong gradient is not timed."""
    try:
        answer = engine.ask(300, **order)
    except Failed as why:
        return {"failed": str(why)}
    if engine.name == "products":  # computes nothing that could be checked
        return {**answer, "error": 0.0}
    with np.load(order["answer"]) as file:
        error = worst_error(float(file["loss"]), {key: file[key] for key in file.files if key != "loss"}, right)
    if not error <= TOLERANCE[dtype]:
        return {"failed": f"wrong by {error:.1e}", "error": error}
    return {**answer, "error": error}


class OneCoreBusy:
    """A process that does nothing, all the time, on one core."""

    def __enter__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", "while True: pass"])

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.wait()
