"""Write `performance.md` and its pictures from a run of the benchmarks that was kept in `performance/run.json`.

    python3 run.py bench --json docs/performance/run.json --peers PYTHON      measures
    python3 docs/performance.py                                           writes the page and docs/performance/*.svg
    python3 docs/performance.py --check                                   says what is out of date, exit code 1

Nothing is measured here, so the page is the same on every machine.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))  # the packages beside this folder, installed or not
sys.path.insert(0, str(DOCS.parent / "benchmarks"))
os.environ.setdefault("TINYATTN_DOT", "graphviz-pure")

from workloads import WORKLOADS  # noqa: E402

import viz  # noqa: E402, F401
from tinyattn.files import write_whole  # noqa: E402
from viz.drawing import Drawing, Parts  # noqa: E402
from viz.plots import Plot, decades  # noqa: E402

START = """# How fast it is

Everything here was measured in one run of `python3 run.py bench` and written by `docs/performance.py` from the figures
that run kept in [performance/run.json](performance/run.json). A ratio is the best step of one divided by the best step of the
other; below 1 we are faster. Every engine works in a process of its own, in short bursts that take turns, and its loss
and gradients are compared with a truth by hand in float64 before its time counts. Memory is what the first two steps
add to the process, weights and inputs not counted.
"""

ALLOWED = """{} more are "allowed". The goals of the small steps, W1 to W3, come from an engine that checked nothing, and
up to a fifth above them is allowed where it is checks that cost it. Here names and lines, the look at what is not
finite, gradients in arrays of one's own, silence of NumPy's warnings and an update that Ctrl-C cannot cut in two take
12 to 15 % of a step of W2 and W3, 15 % of W1s and 20 % of W1t: measured by taking them out."""

HOW = """## What makes it so

* **Little work around NumPy.** A node is one object with slots; the backward pass is one loop; rules are plain NumPy
  calls, the cheapest of several spellings. On lesson sizes that is the whole difference: PyTorch needs 4 to 8 µs of
  dispatch for each node.
* **A backward pass that comes again is written out.** A training loop records the same graph in each step. When a pass
  from one line has come some thirty times (`tinyattn/repeated.py`), it becomes a piece of Python with one line for each
  vector-Jacobian product, behind a condition that holds for the same graph only (`tinyattn/straight.py`); of a long
  graph with one state from step to step, one stretch becomes a loop (`tinyattn/stretches.py`). The bits are the same,
  the way back costs half. Graphs with operations of one's own go by the loop.
* **Small parameters move side by side.** An optimiser keeps small parameters as pieces of one long array, so that a
  step is a few NumPy calls in all (`tinyattn/bundles.py`).
* **Compiled.** `ta.compile(f)` writes a recorded function out as a straight-line NumPy program, forward and backward:
  no node, no loop, buffers made once.
* **Tiles.** Attention over many words never holds its scores: 160 x 640 of them at a time stay in the cache, forward
  keeps a number or two a row, backward computes them again (`tinyattn/kernels/tiles.py`). The sum of a row divides the result,
  not the weights. Of short sequences as many heads as fit into the cache are computed together, and the weights are kept
  (`tinyattn/kernels/short.py`).
* **Softmax without its shift.** exp(score) is taken as it is; the sum of the row says afterwards whether anything
  overflowed or vanished, and only then the row's maximum is looked for (`tinyattn/kernels/heads.py`). That spares two
  passes which cost more than exp. Where NumPy has vector code for exp2, on Linux with AVX-512, it stands in for exp:
  0.21 ns a number for 0.45 in float32, 0.71 for 0.82 in float64, and the factor log2(e) goes into the scale.
* **Few long calls.** After each call of NumPy a thread wants Python's lock back, and where the other one has it that
  costs 3 to 10 µs. So GELU goes by pieces of a megabyte and not by what fits into the nearest cache, cross entropy
  asks nothing that its sums have told, and rows are added at few places by a product with zeros and ones.
* **Threads of ours, one for each core, and a BLAS of one thread in each.** Heads, tiles of large products and, with
  `ta.backward_in_parts`, parts of a batch with a graph each. What a part is depends on sizes alone, so
  `ta.set_threads(1)`, or `TINYATTN_THREADS=1` in the environment, changes no bit. Whoever has threads of his own may
  use it from all of them: one at a time gets ours. The user's BLAS setting and Python's switch interval, 50 µs
  meanwhile, are back after each piece of work.
* **Memory that stays.** Before the first large work one block of 32 MB is made and freed, after which the C library of
  Linux keeps freed blocks instead of giving them back page by page (`TINYATTN_WARM=0` leaves it out).

## What stands between us and the floor

`products` in the table is the floor on NumPy: only the matrix products that the work cannot do without, in two
threads. In W4 and W6 they are two thirds to three quarters of a step; PyTorch's run at the same speed, so that little is left to win:
the rest are passes over the numbers between them (exp, norms, GELU, sums, Adam), each near what NumPy needs for it.
In W5 the heads are so narrow that exp is an eighth of the work, at 0.21 ns a number twice: that is the processor's.
What is left there are hand-overs of Python's lock between the two threads, some thousand a step. On a quiet machine a
hand-over costs little; on a busy one the thread that waits has to be given a core first, so W5 suffers most from
other processes, and PyTorch least.

One half of W6 alone on one core takes 11.1 ms in float32, and both at once 12.5 to 12.9. Two processes with a half
each take 11.5: so of the difference most is Python's lock, a little is the memory that both share, and Adam on one
thread comes after them (0.55). Layer norm shows it best, forward and back: 181 µs alone or in two processes, 245 in
two threads, whatever the switch interval is and whether the threads are bound to their cores or not.

In the small steps what is left is Python: a node going forward costs 0.35 µs beside NumPy (the call, the object, its
place in the learner's code, shape and dtype), going back 0.15. W1s has 300 nodes of single numbers, for which NumPy
takes 0.03 µs each: its step without names and checks is 0.13 of PyTorch's. Of a recording of a million operations more
than half is Python's cycle collector, which walks through the growing graph seven times and finds nothing: a node takes
2.1 µs with it and 0.95 without (`gc.disable()`), which would be 0.14 of PyTorch. It belongs to the learner's process,
so nothing here switches it off.

A product that reads or writes what is not in the cache takes a tenth to a fifth more than one that does: in W4 that
is 0.7 ms of the 8.6 that the large products of a half take in float32, and 2.5 of 18.1 in float64.

Tried, and left out: Adam on both cores (nothing in float32, 1 % of W6 in float64) and in chunks (nothing: its numbers
come from afar in any case), huge pages (2 % in W6, none in W4, for 15 % more memory), four parts on two cores (W6 a
fifth slower), more heads at once (nothing since each is read in order), the division by a row's sum put off to the
narrower result (slower: a factor for each row of 32 numbers costs as much as for each row of 128), a lock around
layer norms so that the threads do them in turn (nothing), fewer calls on a number for each row (nothing), wider or
narrower tiles (0 to 17 % slower), a column of ones beside the values (nine columns cost twice what eight do). Not
tried: one product for queries, keys and values together. In W4 that would spare some hundredths, by estimate, if the
way back of taking its result apart wrote into one array; as it is, three arrays of its size are filled and added up.
"""


def main(arguments: Sequence[str] = ()) -> int:
    """Write everything, or with ``--check`` compare."""
    stale = []
    for name, text in files(json.loads((DOCS / "performance" / "run.json").read_text(encoding="utf-8"))).items():
        path = DOCS / name
        if "--check" in arguments:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            write_whole(path, text)
            print(f"wrote {name}")
    if stale:
        print(f"out of date: {', '.join(stale)}; run docs/performance.py")
    return 1 if stale else 0


def files(found: dict[str, Any]) -> dict[str, str]:
    """The page and its pictures, by name."""
    return {
        "performance.md": page(found),
        "performance/goals.svg": goals_picture(found["rows"]).svg,
        "performance/growth.svg": growth_picture(found["growth"]).svg,
    }


# -- the page ---------------------------------------------------------------------------------------------------------


def page(found: dict[str, Any]) -> str:
    """The page."""
    reached = sum(row["verdict"] == "reached" for row in found["rows"])
    allowed = sum(row["verdict"] == "allowed" for row in found["rows"])
    measured = sum(row["verdict"] != "not measured" for row in found["rows"])
    parts = [
        START,
        "Measured on: " + ", ".join(f"{name} {value}" for name, value in found["machine"].items()) + ".\n",
        f"## Goals\n\n{reached} of {measured} goals were reached in this run.\n",
        f"{ALLOWED.format(allowed)}\n",
        "![Each goal as a bar: measured divided by the goal](performance/goals.svg)\n",
        markdown(["work", "what", "dtype", "measured", "goal", "verdict"], map(goal_cells, found["rows"])),
        "## Times\n\n" + markdown(["", "what"], ([name, work.what] for name, work in WORKLOADS.items())),
        "`tape` is everyday use, `nameless` the same inside `ta.no_names()`, `compiled` what `ta.compile` makes.\n",
        markdown(["work", "dtype", "engine", "best step", "processor time", "memory", "error"], time_cells(found)),
        "## How the cost grows\n",
        "![Cost against size, both in powers: straight lines](performance/growth.svg)\n",
        "A cost of c n^p is a straight line of slope p. The slope was fitted to the larger half of the sizes.\n",
        markdown(["cost of", "grows with", "from", "to", "expected power", "measured"], map(growth_cells, found["growth"])),
        HOW,
    ]  # fmt: skip
    return "\n".join(parts)


def markdown(head: Sequence[str], rows: Any) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def goal_cells(row: dict[str, Any]) -> list[str]:
    """A goal as cells."""
    value = f"{number(row['value'])} {row['unit']}".strip()
    goal = f"{row['goal']:g} {row['unit']}".strip()
    return [row["work"], row["what"], row["dtype"], value, goal, row["verdict"]]


def time_cells(found: dict[str, Any]) -> list[list[str]]:
    """Every engine that was timed, as rows of cells."""
    cells = []
    for work, dtypes in found["times"].items():
        for dtype, engines in dtypes.items():
            for name, engine in engines.items():
                if "best" in engine:
                    cells.append([work, dtype, name, duration(engine["best"]), duration(engine["cpu"]),
                                  f"{engine['peak']:.1f} MB", f"{engine['error']:.0e}"])  # fmt: skip
    return cells


def growth_cells(growth: dict[str, Any]) -> list[str]:
    """A growth as cells."""
    first, last = growth["values"][0], growth["values"][-1]
    return [growth["name"], growth["size"], f"{first:,}", f"{last:,}", growth["expected"], f"{growth['exponent']:.2f}"]


def number(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}" if math.isfinite(value) else "-"


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    return f"{seconds * 1e6:.3g} µs" if seconds < 1e-3 else f"{seconds * 1e3:.4g} ms"


# -- pictures ---------------------------------------------------------------------------------------------------------


def drawing(title: str, plot: Any, listing: str) -> Drawing:
    """A plot as a picture with its text."""
    parts = Parts(dot=lambda: plot("light"), text=lambda: listing, alt_text=lambda: listing, data=dict)
    return Drawing(title, "auto", parts, "en")


def goals_picture(rows: list[dict[str, Any]]) -> Drawing:
    """Every measured goal as a bar; a bar that ends left of the line at 1 is reached."""
    known = [row for row in rows if math.isfinite(row["value"])]
    shares = [row["value"] / row["goal"] for row in known]
    title = "Measured / goal: left of 1 is reached"

    def plot(shade: Any) -> str:
        count, far = len(known), max([*shares, 1.2])
        ends = far * 0.05 / 1.05, far  # a plot leaves a twentieth of room on each side; bars begin at 0
        area = Plot(title, "measured / goal", "", ends, (0, count), shade, y_ticks=[], height=13.0 * count + 20)
        for place, (row, share) in enumerate(zip(known, shares, strict=True)):
            at = count - place - 0.5
            area.bar(share, at, 0 if share <= 1 else 1, height=8)
            area.words_at(f"{row['work']} {row['what']} {row['dtype']}".strip(), max(share, 0), at)
        area.mark(1.0)
        return area.source()

    said = [f"{row['work']} {row['what']} {row['dtype']}: {share:.2f}" for row, share in zip(known, shares, strict=True)]
    return drawing(title, plot, "\n".join([title, *said]))


def growth_picture(growths: list[dict[str, Any]]) -> Drawing:
    """Costs against sizes, each as a multiple of its first, both axes in powers."""
    title = "How many times the cost, for how many times the size"
    lines = [(np.log10(np.array(g["values"]) / g["values"][0]), np.log10(np.array(g["costs"]) / g["costs"][0]), g)
             for g in growths if not g["memory"]][:6]  # fmt: skip

    def plot(shade: Any) -> str:
        far = max((float(x[-1]) for x, _, _ in lines), default=1.0)
        low = min((float(y.min()) for _, y, _ in lines), default=0.0)
        high = max((float(y.max()) for _, y, _ in lines), default=1.0)
        area = Plot(title, "size / first size", "cost / first cost", (0, far), (low, high), shade,
                    x_ticks=decades(0, far), y_ticks=decades(low, high))  # fmt: skip
        for series, (x, y, _) in enumerate(lines):
            area.line(x, y, series)
        area.legend([f"{g['name']}: {g['size']}^{g['exponent']:.2f}" for _, _, g in lines])
        return area.source()

    said = [f"{g['name']}, {g['size']} from {g['values'][0]} to {g['values'][-1]}: power {g['exponent']:.2f}"
            for _, _, g in lines]  # fmt: skip
    return drawing(title, plot, "\n".join([title, *said]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
