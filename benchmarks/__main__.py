"""``python3 run.py bench``: the table of goals, measured, with a verdict for each.

Every engine works in a process of its own; they take turns in short bursts, and the best step counts.  Nobody's time
counts before its loss and gradients have been compared with a truth by hand in float64.  PyTorch and JAX are optional:
what is not installed is left out.  They may live in another Python, given by ``--peers``.

    python3 run.py bench                        everything, some minutes
    python3 run.py bench --only W4,W6           some workloads
    python3 run.py bench --peers PYTHON         a Python that has PyTorch
    python3 run.py bench --smoke                gradients only, at small sizes; times nothing
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
from typing import Any

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import driver
import extras
import growth
from goals import DTYPES, engines_for, row, rows_of
from workloads import TOLERANCE, WORKLOADS, Workload, numbers, truth, worst_error

from tinyattn.files import write_whole
from tinyattn.kernels import threads
from tinyattn.terminal import say, table


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 run.py bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--smoke", action="store_true", help="check the gradients of every workload, time nothing")
    parser.add_argument("--only", default="", help="workloads, separated by commas; then nothing else is measured")
    parser.add_argument("--peers", action="append", default=[], metavar="PYTHON", help="where PyTorch or JAX is")
    parser.add_argument("--rounds", type=int, default=5, help="how many turns everybody gets")
    parser.add_argument("--seconds", type=float, default=0.6, help="length of one burst")
    parser.add_argument("--names", default="", help="a text file of names, for the small GPT")
    parser.add_argument("--json", default="", help="write everything measured to this file")
    options = parser.parse_args(argv)
    names = [name for name in options.only.split(",") if name] or list(WORKLOADS)
    if unknown := [name for name in names if name not in WORKLOADS]:
        parser.error(f"there is no workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    if options.smoke:
        return smoke([WORKLOADS[name] for name in names])
    peers = options.peers or [p for p in os.environ.get("TINYATTN_BENCH_PEERS", "").split(os.pathsep) if p]
    found = run(names, not options.only, driver.interpreters(peers), options)
    show(found)
    if options.json:
        write_whole(options.json, json.dumps(found, indent=1, default=float) + "\n")
    return 1 if any("wrong" in str(e.get("failed")) for e in _every(found["times"])) else 0


# -- correctness, quickly ---------------------------------------------------------------------------------------------


def smoke(works: list[Workload]) -> int:
    """Every way of tinyattn through every workload, at small sizes; the gradients must be right."""
    import adapter_compiled
    import adapter_tape

    right = wrong = 0
    for work in works:
        for name, adapter in (("tape", adapter_tape), ("compiled", adapter_compiled)):
            if not hasattr(adapter, work.family) or (name == "compiled" and work.family == "chain"):
                continue
            for dtype in DTYPES:
                cfg = work.cfg(small=True)
                arrays = numbers(work, cfg, dtype)
                made = getattr(adapter, work.family)(cfg, arrays)
                if made is None:
                    continue
                step, result = made
                step()
                error = worst_error(*result(), truth(work, cfg, arrays))
                if error <= TOLERANCE[dtype]:
                    right += 1
                else:
                    wrong += 1
                    say(f"{work.name} {dtype}: {name} is off by {error:.1e}")
    say(f"{right} of {right + wrong} ways through the workloads give the right gradients.")
    return 1 if wrong else 0


# -- measuring --------------------------------------------------------------------------------------------------------


def run(names: list[str], everything: bool, pythons: dict[str, str], options: Any) -> dict[str, Any]:
    """Measure all of it; what is found goes into the JSON as it is."""
    times: dict[str, Any] = {}
    where = machine(pythons)  # first, so that the load is that of others
    for name in names:
        for dtype in DTYPES if WORKLOADS[name].family != "chain" else DTYPES[1:]:
            _progress(f"{name} {dtype}")
            rounds = 2 if name == "W7c" else options.rounds
            found = driver.measure(name, dtype, engines_for(name), pythons, rounds, options.seconds)
            times.setdefault(name, {})[dtype] = found
    rows = rows_of(times)
    if "W5" in names:
        rows += longer_row(times, pythons)
    if "W6" in names and "torch" in pythons:
        rows.append(busy_row(pythons, options))
    rows += chain_rows(times)
    found = {"machine": where, "times": times, "rows": rows, "growth": []}
    if everything:
        _progress("imports, formulas, drawings, exact check, training")
        rows += [extras.import_row(), *extras.picture_rows(), extras.exact_row(), *extras.training_rows(options.names)]
        for each in growth.GROWTHS:
            _progress(f"growth: {each.name}")
            found["growth"].append(growth.measure(each))
    return found


def longer_row(times: dict[str, Any], pythons: dict[str, str]) -> list[dict[str, Any]]:
    """Twice the words: the memory may double, not more."""
    made = []
    for dtype in DTYPES:
        _progress(f"W5 {dtype}, n=4096")
        twice = driver.measure("W5", dtype, ["tape"], pythons, 0, 0.0, {"n": 4096})["tape"]
        value = twice.get("peak", math.nan) / times["W5"][dtype]["tape"].get("peak", math.nan)
        made.append(row("W5", "memory at n=4096 / at n=2048", dtype, value, 2.1))
    return made


def busy_row(pythons: dict[str, str], options: Any) -> dict[str, Any]:
    """The Transformer step while somebody else has one of the cores."""
    _progress("W6 float32, one core busy")
    with driver.OneCoreBusy():
        found = driver.measure("W6", "float32", ["tape", "torch"], pythons, options.rounds, options.seconds)
    value = found["tape"].get("best", math.nan) / found["torch"].get("best", math.nan)
    return row("W6", "tape / PyTorch, one core busy", "float32", value, 0.75)


def chain_rows(times: dict[str, Any]) -> list[dict[str, Any]]:
    """What one node of a long chain costs: bytes, and how much more in a longer chain."""
    chains = {name: times[name]["float64"].get("tape", {}) for name in ("W7a", "W7c") if name in times}
    if not all("best" in chain for chain in chains.values()) or len(chains) < 2:
        return []
    short, long = (chains[name]["best"] / WORKLOADS[name].sizes["N"] for name in ("W7a", "W7c"))
    bytes_of_a_node = chains["W7c"]["peak"] * 2**20 / WORKLOADS["W7c"].sizes["N"]
    return [row("W7c", "memory of a node", "float64", bytes_of_a_node, 250, "bytes"),
            row("W7c", "time of a node / in W7a", "float64", long / short, 1.35)]  # fmt: skip


def machine(pythons: dict[str, str]) -> dict[str, str]:
    """What it was measured on."""
    try:
        with open("/proc/cpuinfo") as file:
            models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        models = []
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[call-overload, index]
    return {
        "processor": (models or [platform.processor() or platform.machine()])[0],
        "cores": str(threads.count()),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas.get('name')} {blas.get('version')}",
        "peers": ", ".join(sorted(set(pythons) - {"numpy"})) or "none",
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
    }


def _progress(words: str) -> None:
    print(f"measuring {words} ...", file=sys.stderr, flush=True)


# -- showing ----------------------------------------------------------------------------------------------------------


def _every(times: dict[str, Any]) -> list[dict[str, Any]]:
    return [engine for work in times.values() for found in work.values() for engine in found.values()]


def show(found: dict[str, Any]) -> None:
    say(", ".join(f"{name} {value}" for name, value in found["machine"].items()))
    say("")
    head = ["work", "dtype", "engine", "best ms", "processor ms", "memory MB", "error"]
    lines = []
    for work, dtypes in found["times"].items():
        for dtype, engines in dtypes.items():
            for name, e in engines.items():
                if "failed" in e:
                    lines.append([work, dtype, name, e["failed"][:60], "", "", ""])
                else:
                    shown = f"{e['best'] * 1e3:.4g}", f"{e['cpu'] * 1e3:.4g}", f"{e['peak']:.1f}", f"{e['error']:.0e}"
                    lines.append([work, dtype, name, *shown])
    say(table(lines, head))
    say("")
    head = ["work", "what", "dtype", "measured", "goal", "verdict"]
    say(table([_verdict_row(r) for r in found["rows"]], head))
    if found["growth"]:
        say("")
        grown = [[g["name"], g["size"], g["expected"], f"{g['exponent']:.2f}"] for g in found["growth"]]
        say(table(grown, ["cost of", "grows with", "expected power", "measured"]))


def _verdict_row(r: dict[str, Any]) -> list[str]:
    value, goal = f"{r['value']:.3g} {r['unit']}".strip(), f"{r['goal']:g} {r['unit']}".strip()
    return [r["work"], r["what"], r["dtype"], value, goal, r["verdict"]]


if __name__ == "__main__":
    raise SystemExit(main())
