"""Sweeps: the same results in the same order wherever the calls are made, and nothing lost with a worker."""

from __future__ import annotations

import os
import sys
from functools import partial

import pytest
import sweep_calls

import tinyattn as ta
from tinyattn import sweeps

RANGES = {"seed": range(6), "n": [2, 3]}
SEEDS = {"seed": range(6)}
kills = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")


@pytest.fixture(scope="module")
def address():
    """The address of a Dask scheduler with two workers on this machine."""
    distributed = pytest.importorskip("distributed", reason="needs Dask's distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def test_every_combination_in_order_the_last_fastest() -> None:
    found = ta.sweep(lambda **setting: setting, {"a": [1, 2], "b": ["x", "y"], "c": [0]})
    assert [list(outcome.result.values()) for outcome in found] == [[1, "x", 0], [1, "y", 0], [2, "x", 0], [2, "y", 0]]
    assert all(outcome.setting == outcome.result for outcome in found)


def test_several_processes_give_the_same_list() -> None:
    pytest.importorskip("joblib", reason="needs joblib")
    here = ta.sweep(sweep_calls.total, RANGES)
    assert len({outcome.result for outcome in here}) == 12
    assert ta.sweep(sweep_calls.total, RANGES, jobs=2) == here


def test_the_workers_of_a_scheduler_give_the_same_list(address: str) -> None:
    assert ta.sweep(sweep_calls.total, RANGES, scheduler=address) == ta.sweep(sweep_calls.total, RANGES)


@kills
def test_a_process_killed_in_the_middle_loses_nothing(tmp_path) -> None:
    pytest.importorskip("joblib", reason="needs joblib")
    found = ta.sweep(partial(sweep_calls.dies_once, str(tmp_path)), SEEDS, jobs=2)
    assert (tmp_path / "died").exists() and [outcome.result for outcome in found] == [0, 1, 4, 9, 16, 25]


@kills
def test_a_worker_killed_in_the_middle_loses_nothing(tmp_path, address: str) -> None:
    found = ta.sweep(partial(sweep_calls.dies_once, str(tmp_path)), SEEDS, scheduler=address)
    assert (tmp_path / "died").exists() and [outcome.result for outcome in found] == [0, 1, 4, 9, 16, 25]


@kills
def test_a_setting_that_kills_every_worker_is_named() -> None:
    pytest.importorskip("joblib", reason="needs joblib")
    with pytest.raises(ta.SweepError, match=r"(?s)died 3 times in a row.*seed=1"):
        ta.sweep(sweep_calls.always_dies, {"seed": range(3)}, jobs=2)


def test_what_a_call_raises_comes_back_with_its_setting() -> None:
    with pytest.raises(ValueError, match="not this one") as caught:
        ta.sweep(sweep_calls.refuses, SEEDS)
    assert caught.value.__notes__ == ["In the sweep, at seed=2."]


def test_what_a_call_in_another_process_raises_comes_back_with_its_setting() -> None:
    pytest.importorskip("joblib", reason="needs joblib")
    with pytest.raises(ValueError, match="not this one") as caught:
        ta.sweep(sweep_calls.refuses, SEEDS, jobs=2)
    assert "In the sweep, at seed=2." in caught.value.__notes__


def test_what_a_call_on_another_machine_raises_comes_back_with_its_setting(address: str) -> None:
    with pytest.raises(ValueError, match="not this one") as caught:
        ta.sweep(sweep_calls.refuses, SEEDS, scheduler=address)
    assert "In the sweep, at seed=2." in caught.value.__notes__


def test_a_scheduler_that_is_not_there_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs Dask's distributed")
    monkeypatch.setattr(sweeps, "_SECONDS", 1)
    with pytest.raises(ta.SweepError, match=r"(?s)no scheduler answers at tcp://127.0.0.1:9.*dask scheduler"):
        ta.sweep(sweep_calls.total, RANGES, scheduler="tcp://127.0.0.1:9")


@pytest.mark.parametrize(("library", "options"), [
    ("joblib", {"jobs": 2}), ("distributed", {"scheduler": "tcp://127.0.0.1:8786"}),
])
def test_a_missing_library_gives_the_line_that_installs_it(library: str, options, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ta.MissingLibraryError, match=f"pip install {library}"):
        ta.sweep(sweep_calls.total, RANGES, **options)


@pytest.mark.parametrize(("ranges", "options", "words"), [
    ({}, {}, "has no names with values"),
    ([1, 2], {}, "has no names with values"),
    ({"seed": 3}, {}, "the values of seed must be a list or range, not 3"),
    ({"seed": "abc"}, {}, "not 'abc'"),
    (SEEDS, {"jobs": 0}, "jobs=0"),
    (SEEDS, {"jobs": True}, "jobs=True"),
    (SEEDS, {"jobs": 1.5}, r"jobs=1\.5"),
    (SEEDS, {"jobs": 2, "scheduler": "tcp://x:1"}, "knows its own workers"),
])
def test_what_makes_no_sense_is_refused_before_the_first_call(ranges, options, words: str) -> None:
    with pytest.raises(ta.TinyattnError, match=words):
        ta.sweep(pytest.fail, ranges, **options)
