"""``tinyattn check --sweep``: many checks, counted by size, the same whoever makes them."""

from __future__ import annotations

import json

import pytest

FILE = """
import numpy as np
import tinyattn as ta

layer = ta.nn.SelfAttention(4, rng=0)
calls = []

def soft(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)

def soft_backward(g, x):
    y = soft(x)
    return g * y * (1 - y)

def short(x):
    calls.append(1)
    if len(calls) > 60:
        raise RuntimeError("the file was not run anew")
    if x.shape[0] > 2:
        raise ValueError("too long")
    return ta.tanh(x)
"""


def test_a_right_layer_at_many_seeds_and_sizes(run) -> None:
    code, out, _ = run("lesson.py:layer", "--shape", "n,4", "--sweep", "seed=0:3", "n=1,3")
    assert code == 0 and out.startswith("layer: 6 checks, all right.")
    assert [line.split() for line in out.splitlines()[3:]] == [["1", "3", "0", "0"], ["3", "3", "0", "0"]]


def test_a_wrong_gradient_is_counted_by_size_and_the_first_is_shown(run) -> None:
    words = ["lesson.py:soft", "--backward", "soft_backward", "--shape", "2,d", "--sweep", "seed=0:2", "d=1,3"]
    code, out, _ = run(*words)
    assert code == 1 and "4 checks, 2 not right" in out
    assert [line.split() for line in out.splitlines()[3:5]] == [["1", "2", "0", "0"], ["3", "0", "2", "0"]]
    assert "The first of them, at seed=0, d=3:" in out and "only the diagonal of the softmax Jacobian" in out


def test_what_raises_at_one_size_does_not_stop_the_others(run) -> None:
    code, out, _ = run("lesson.py:short", "--shape", "n,2", "--sweep", "n=2,3,1")
    assert code == 2 and "3 checks, 1 not right" in out and "at n=3" in out and "too long" in out


def test_json_has_every_check_in_order(run) -> None:
    code, out, _ = run("lesson.py:layer", "--shape", "n,4", "--sweep", "n=2,1", "seed=4:6", "--json")
    found = json.loads(out)
    places = [{"n": 2, "seed": 4}, {"n": 2, "seed": 5}, {"n": 1, "seed": 4}, {"n": 1, "seed": 5}]
    assert code == 0 and [record["setting"] for record in found] == places
    assert {record["report"]["verdict"] for record in found} == {"right"}
    alone = json.loads(run("lesson.py:layer", "--shape", "1,4", "--seed", "5", "--json")[1])
    assert found[3]["report"] == alone


def test_several_processes_print_the_same(run) -> None:
    pytest.importorskip("joblib", reason="needs joblib")
    words = ["lesson.py:layer", "--shape", "n,4", "--sweep", "seed=0:2", "n=1,3", "--json"]
    assert run(*words, "--jobs", "2") == run(*words)


def test_the_workers_of_a_scheduler_print_the_same(run) -> None:
    distributed = pytest.importorskip("distributed", reason="needs Dask's distributed")
    words = ["lesson.py:layer", "--shape", "n,4", "--sweep", "seed=0:2", "n=1,3", "--json"]
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        assert run(*words, "--scheduler", cluster.scheduler_address) == run(*words)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--shape", "1,4", "--sweep", "m=1"], "--sweep gives values for m, and no --shape has that size"),
        (["--shape", "n,4", "--sweep", "seed=0:2"], "--shape has n, and --sweep does not say which sizes"),
        (["--shape", "1,4", "--sweep", "seed=2:2"], "seed=2:2: that is not a name with whole numbers"),
        (["--shape", "1,4", "--sweep", "seed"], "--sweep seed: that is not a name"),
        (["--shape", "1,4", "--sweep", "seed=a,b"], "--sweep seed=a,b"),
        (["--shape", "1,4", "--sweep", "seed=-1"], "--sweep seed=-1"),
        (["--shape", "1,4", "--sweep", "seed=1", "seed=2"], "--sweep seed=2"),
        (["--shape", "1,4", "--sweep", "seed=1", "--jobs", "0"], "jobs=0"),
        (["--shape", "1,4", "--sweep", "seed=1", "--html", "x.html"], "--html shows one check"),
        (["--shape", "1,4", "--jobs", "2"], "--jobs and --scheduler share out a sweep"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(words: list[str], reason: str, run) -> None:
    code, out, err = run("lesson.py:layer", *words)
    assert code == 2 and not out and reason in err
