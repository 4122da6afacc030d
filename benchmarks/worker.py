"""One engine doing one workload in a process of its own, told what to do line by line.

It is run by file name in whatever Python the engine lives in, and talks in lines of JSON:

    {"do": "build", "engine": ..., "work": ..., "dtype": ..., "small": ..., "answer": file}
    {"do": "burst", "seconds": ..., "most": ...}

Building takes two steps, during which the memory is watched; loss and gradients of the first go into ``answer``.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ENGINES = {  # name -> module, and settings of that module
    "tape": ("adapter_tape", {}),
    "nameless": ("adapter_nameless", {}),
    "compiled": ("adapter_compiled", {}),
    "torch": ("adapter_torch", {"way": "eager"}),
    "torch fused": ("adapter_torch", {"way": "fused"}),
    "torch compile": ("adapter_torch", {"way": "compile"}),
    "jax": ("adapter_jax", {}),
    "products": ("adapter_products", {}),
}


def resident(field: str) -> float:
    """Megabytes of this process that are (VmRSS), or were at most (VmHWM), in memory; nan where no system says so."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field))
    except (OSError, StopIteration):
        return float("nan")


def forget_peak() -> None:
    try:
        with open("/proc/self/clear_refs", "w") as control:
            control.write("5")
    except OSError:
        pass


def build(order: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Make the work, take the first two steps, and write down what came out."""
    import numpy as np
    from workloads import WORKLOADS, numbers

    module, settings = ENGINES[order["engine"]]
    adapter = importlib.import_module(module)
    for name, value in settings.items():
        setattr(adapter, name, value)
    work = WORKLOADS[order["work"]]
    cfg = {**work.cfg(order.get("small", False)), **order.get("sizes", {})}
    made = getattr(adapter, work.family)(cfg, numbers(work, cfg, order["dtype"]))
    if made is None:
        raise NotImplementedError(f"{order['engine']} does not do {order['work']}")
    step, result = made
    gc.collect()
    forget_peak()
    before, start = resident("VmRSS"), time.perf_counter()
    step()
    first = time.perf_counter() - start
    peak = resident("VmHWM")
    loss, found = result()  # of the first step: the next one starts from other parameters
    np.savez(order["answer"], loss=np.float64(loss), **{name: np.asarray(g) for name, g in found.items()})
    del found
    forget_peak()
    step()
    peak = max(peak, resident("VmHWM")) - before
    return step, {"peak": peak, "first": first, "versions": adapter.versions()}


def burst(step: Any, seconds: float, most: int) -> dict[str, float]:
    """The shortest of several steps."""
    best, taken, cpu, end = float("inf"), 0, time.process_time(), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        step()
        now = time.perf_counter()
        best, taken = min(best, now - start), taken + 1
        if now > end or taken >= most:
            return {"best": best, "cpu": (time.process_time() - cpu) / taken}


def main() -> None:
    sys.path[:0] = [HERE, os.path.dirname(HERE)]
    talk = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    step: Any = None
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if order["do"] == "build":
                step, answer = build(order)
            else:
                answer = burst(step, order["seconds"], order["most"])
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=talk, flush=True)


if __name__ == "__main__":
    main()
