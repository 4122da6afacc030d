"""The measuring stick itself: its truths are true, a wrong gradient is noticed, verdicts say what was measured."""

from __future__ import annotations

import importlib
import json
import math
import sys
from typing import Any

import numpy as np
import pytest
from repository import ROOT, script


@pytest.fixture(scope="module")
def bench() -> Any:
    """The modules of the benchmarks, which import each other as scripts do."""
    before, folder = list(sys.path), str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    names = ("workloads", "goals", "growth", "driver", "adapter_tape")
    modules = {name: importlib.import_module(name) for name in names}
    yield type("Bench", (), modules)
    sys.path[:] = before
    for name in names:
        sys.modules.pop(name, None)


FAMILIES = ["W0add", "W0mul", "W0mat", "W0tanh", "W1s", "W2", "W4", "W5", "W5x", "W6", "W7a"]
TINY: dict[str, dict[str, Any]] = {
    "W0add": {"N": 5}, "W0mul": {"N": 5}, "W0mat": {"N": 5}, "W0tanh": {"N": 5}, "W2": {"n": 3, "d": 4},
    "W4": {"B": 2, "n": 4, "d": 6, "h": 2}, "W5": {"n": 5, "d": 6, "h": 2}, "W5x": {"n": 5, "hd": 3, "h": 2},
    "W6": {"B": 2, "n": 4, "d": 6, "h": 2, "V": 5}, "W7a": {"N": 20},
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_what_counts_as_right_agrees_with_central_differences(bench: Any, name: str) -> None:
    work = bench.workloads.WORKLOADS[name]
    cfg = {**work.cfg(), **TINY.get(name, {})}
    arrays = bench.workloads.numbers(work, cfg, "float64")
    _, slopes = bench.workloads.truth(work, cfg, arrays)
    rng = np.random.default_rng(0)
    for key, slope in slopes.items():
        way = rng.normal(size=np.shape(slope))
        ends = [
            bench.workloads.truth(work, cfg, {**arrays, key: arrays[key] + step * way})[0] for step in (1e-5, -1e-5)
        ]
        assert (slope * way).sum() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-7), key


@pytest.mark.parametrize("name", FAMILIES)
def test_tinyattn_gives_the_right_gradients_in_both_dtypes(bench: Any, name: str) -> None:
    work = bench.workloads.WORKLOADS[name]
    for dtype in bench.goals.DTYPES:
        cfg = work.cfg(small=True)
        arrays = bench.workloads.numbers(work, cfg, dtype)
        step, result = getattr(bench.adapter_tape, work.family)(cfg, arrays)
        step()
        error = bench.workloads.worst_error(*result(), bench.workloads.truth(work, cfg, arrays))
        assert error <= bench.workloads.TOLERANCE[dtype]


def test_a_wrong_a_missing_and_a_nan_gradient_are_noticed(bench: Any) -> None:
    right = 2.0, {"a": np.array([1.0, 2.0]), "b": np.array(3.0)}
    worst = bench.workloads.worst_error
    assert worst(2.0, right[1], right) == 0
    assert worst(2.0, {**right[1], "a": np.array([1.0, 2.1])}, right) == pytest.approx(0.05)
    assert worst(2.5, right[1], right) == pytest.approx(0.25)
    assert worst(2.0, {"a": right[1]["a"]}, right) == math.inf
    assert worst(2.0, {**right[1], "b": np.array(math.nan)}, right) == math.inf
    assert worst(math.nan, right[1], right) == math.inf


def test_a_verdict_is_about_the_fastest_peer_and_only_about_what_was_measured(bench: Any) -> None:
    times = {"W4": {"float32": {
        "tape": {"best": 0.9, "peak": 10.0}, "torch": {"best": 1.2, "peak": 30.0},
        "torch fused": {"best": 1.0, "peak": 20.0}, "torch compile": {"failed": "no compiler"},
    }}}  # fmt: skip
    rows = {row["what"]: row for row in bench.goals.rows_of(times)}
    assert rows["tape / PyTorch"]["value"] == pytest.approx(0.75) and rows["tape / PyTorch"]["verdict"] == "reached"
    assert rows["tape / the best of PyTorch"]["value"] == pytest.approx(0.9)
    assert rows["tape / memory of PyTorch's fused attention"]["value"] == pytest.approx(0.5)
    del times["W4"]["float32"]["torch"], times["W4"]["float32"]["torch fused"]
    assert {row["verdict"] for row in bench.goals.rows_of(times)} == {"not measured"}
    assert bench.goals.row("", "", "", 1.1, 1.0)["verdict"] == "missed"
    assert bench.goals.row("", "", "", 1.0, 1.0)["verdict"] == "reached"
    allowed = [bench.goals.row("", "", "", value, 1.0, checks=1.2)["verdict"] for value in (1.0, 1.1, 1.3, math.nan)]
    assert allowed == ["reached", "allowed", "missed", "not measured"]


def test_the_exponent_of_an_exact_power_is_that_power(bench: Any) -> None:
    for power in (0.0, 1.0, 2.0):
        assert bench.growth.exponent([1, 2, 4, 8, 16], [7.0 * n**power for n in (1, 2, 4, 8, 16)]) == pytest.approx(
            power
        )


def test_every_growth_can_be_measured_at_its_smallest_size(bench: Any) -> None:
    for growth in bench.growth.GROWTHS:
        growth.step_of(growth.values[0])()


def test_an_engine_that_does_not_know_a_workload_says_so_and_lives_on(bench: Any, tmp_path: Any) -> None:
    engine = bench.driver.Engine(sys.executable, "tape")
    order = {"do": "build", "engine": "tape", "dtype": "float64", "sizes": {}, "answer": str(tmp_path / "answer.npz")}
    try:
        with pytest.raises(bench.driver.Failed, match="KeyError"):
            engine.ask(60, **order, work="W99")
        assert engine.ask(60, **order, work="W2")["first"] > 0
        assert engine.ask(60, do="burst", seconds=0.0, most=1)["best"] > 0
    finally:
        engine.close()
    with np.load(tmp_path / "answer.npz") as file:
        assert set(file.files) == {"loss", "X", "Wq", "Wk", "Wv"}


def test_the_page_shows_the_run_that_is_kept(bench: Any) -> None:
    module = script(ROOT / "docs" / "performance.py")
    found = json.loads((ROOT / "docs" / "performance" / "run.json").read_text(encoding="utf-8"))
    for name, text in module.files(found).items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, f"{name} is out of date: docs/performance.py"
