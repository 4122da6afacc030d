"""Threads change no bit, end before they are missed, and leave everything as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.kernels import blas, threads


@pytest.fixture(autouse=True)
def as_before() -> Any:
    before = threads.setting.most
    yield
    threads.setting.most = before


def attention_step(n: int, causal: bool, dtype: str) -> list[bytes]:
    rng = np.random.default_rng(n)
    heads = (2, 3) if n < 1000 else (1,)  # of one head alone, stretches of queries and keys are the parts
    leaves = [ta.tensor(rng.normal(size=(*heads, n, 8)).astype(dtype), requires_grad=True) for _ in range(3)]
    y = ta.scaled_dot_product_attention(*leaves, causal=causal)
    y.backward(np.ones(y.shape))
    return [y.data.tobytes(), *(x.grad.tobytes() for x in leaves if x.grad is not None)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [110, 300, 1100])
def test_one_thread_or_many_give_the_same_bits(n: int, causal: bool, dtype: str) -> None:
    found = []
    for most in (1, 2, 3, 7, None):
        ta.set_threads(most)
        found.append(attention_step(n, causal, dtype))
    assert all(other == found[0] for other in found)


def test_every_part_is_done_once_whatever_the_number_of_threads() -> None:
    for most in (1, 2, 5):
        ta.set_threads(most)
        done = np.zeros(200, int)

        def work(i: int, done: Any = done) -> None:
            done[i] += 1

        threads.run(work, range(200))
        assert (done == 1).all()


def test_many_threads_do_work_at_the_same_time() -> None:
    if blas.control() is None:
        pytest.skip("this BLAS cannot be told its number of threads, so work is not split")
    ta.set_threads(3)
    meet = threading.Barrier(3, timeout=30)  # passes only when three parts are being done at once
    threads.run(lambda _: meet.wait(), range(3))
    ta.set_threads(1)
    alone = []
    threads.run(lambda _: alone.append(threading.get_ident()), range(3))
    assert alone == [threading.get_ident()] * 3


def test_an_error_in_a_part_comes_out_when_all_have_ended_and_the_next_job_runs() -> None:
    for most in (1, 3):
        ta.set_threads(most)

        def work(i: int) -> None:
            if i == 2:
                raise ZeroDivisionError(f"part {i}")

        with pytest.raises(ZeroDivisionError, match="part 2"):
            threads.run(work, range(50))
        assert threads.team.free.acquire(blocking=False)
        threads.team.free.release()
        done: list[int] = []
        threads.run(done.append, range(5))
        assert sorted(done) == [0, 1, 2, 3, 4]


def test_a_part_that_splits_its_own_work_does_it_alone() -> None:
    ta.set_threads(4)
    seen: list[tuple[int, int]] = []

    def inner(i: int) -> None:
        outside = threading.get_ident()
        threads.run(lambda j: seen.append((outside, threading.get_ident())), range(3))

    threads.run(inner, range(4))
    assert len(seen) == 12 and all(one == other for one, other in seen)


def test_threads_of_the_user_may_all_compute_and_get_the_same_bits() -> None:
    right = attention_step(300, True, "float32")
    found: list[list[bytes]] = []
    users = [threading.Thread(target=lambda: found.append(attention_step(300, True, "float32"))) for _ in range(5)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert found == [right] * 5


def test_never_more_threads_than_were_allowed() -> None:
    ta.set_threads(2)
    attention_step(300, True, "float32")
    now = {"threads": 0, "most": 0}
    lock = threading.Lock()

    def work(_: int) -> None:
        with lock:
            now["threads"] += 1
            now["most"] = max(now["most"], now["threads"])
        np.ones(10_000).sum()
        with lock:
            now["threads"] -= 1

    threads.run(work, range(100))
    assert now["most"] <= 2


def test_what_numpy_says_about_errors_holds_in_every_thread() -> None:
    ta.set_threads(3)
    meet = threading.Barrier(3, timeout=30)
    kinds: list[str] = []

    def work(_: int) -> None:
        if blas.control() is not None:
            meet.wait()
        kinds.append(np.geterr()["over"])

    with np.errstate(over="raise"):
        threads.run(work, range(3))
    assert kinds == ["raise"] * 3


def test_the_wait_for_pythons_lock_is_short_inside_and_the_users_afterwards() -> None:
    if blas.control() is None:
        pytest.skip("this BLAS cannot be told its number of threads, so work is not split")
    ta.set_threads(2)
    before, inside = sys.getswitchinterval(), []
    threads.run(lambda _: inside.append(sys.getswitchinterval()), range(2))
    assert inside == [pytest.approx(threads.PATIENCE)] * 2 and sys.getswitchinterval() == before
    try:
        sys.setswitchinterval(1e-5)  # the user is more impatient than we are
        threads.run(lambda _: inside.append(sys.getswitchinterval()), range(2))
        assert inside[-1] == pytest.approx(1e-5) == sys.getswitchinterval()
        sys.setswitchinterval(before)
        threads.run(lambda _: sys.setswitchinterval(0.002), range(2))  # what is set meanwhile stays
        assert sys.getswitchinterval() == pytest.approx(0.002)
    finally:
        sys.setswitchinterval(before)


# -- the BLAS ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A BLAS that only remembers what it was told; it begins with 6 threads."""
    told = [6]
    monkeypatch.setattr(blas, "control", lambda: (lambda: told[-1], told.append))
    return told


def test_the_users_setting_is_back_afterwards_also_after_an_error(counter: list[int]) -> None:
    with blas.one_thread() as known:
        assert known and counter == [6, 1]
        with blas.one_thread():  # inside another one nothing is asked or told
            assert counter == [6, 1]
        assert counter == [6, 1]
    assert counter == [6, 1, 6]
    with pytest.raises(KeyError), blas.one_thread():
        raise KeyError
    assert counter == [6, 1, 6, 1, 6]


def test_what_the_user_sets_meanwhile_stays(counter: list[int]) -> None:
    with blas.one_thread():
        counter.append(4)
    assert counter[-1] == 4


def test_a_blas_of_one_thread_is_told_nothing(counter: list[int]) -> None:
    counter.append(1)
    with blas.one_thread():
        pass
    assert counter == [6, 1]


def test_the_real_one_is_set_back_after_a_step() -> None:
    ways = blas.control()
    if ways is None:
        pytest.skip("this BLAS cannot be told its number of threads")
    before = ways[0]()
    try:
        ways[1](2)
        attention_step(300, False, "float64")
        assert ways[0]() == 2
    finally:
        ways[1](before)


def test_where_the_blas_cannot_be_told_nothing_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "control", lambda: None)
    ta.set_threads(4)
    here: list[int] = []
    threads.run(lambda _: here.append(threading.get_ident()), range(20))
    assert here == [threading.get_ident()] * 20


# -- processes --------------------------------------------------------------------------------------------------------

STEP = """
import numpy as np, tinyattn as ta
from tinyattn.kernels import threads
ta.set_threads({most})
def step():
    x = ta.tensor(np.arange(2400.0).reshape(300, 8) % 7, requires_grad=True)
    y = ta.sum(ta.scaled_dot_product_attention(ta.stack([x, x]), ta.stack([x, x]), ta.stack([x, x])))
    y.backward()
    return x.grad.tobytes()
"""


def answer(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", STEP.format(most=3) + code], capture_output=True, text=True, timeout=120,
        env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_computes_with_threads_of_its_own() -> None:
    code = """
import os
before = step()
child = os.fork()
if child == 0:
    same = step() == before
    os._exit(0 if same else 1)
print(os.waitpid(child, 0)[1], step() == before)
"""
    assert answer(code) == "0 True"


def test_waiting_threads_keep_no_process_alive() -> None:
    assert answer("step(); print(len(threads.team.workers) >= 0)") == "True"


def test_work_while_the_interpreter_ends_is_done_too() -> None:
    assert answer("import atexit; atexit.register(lambda: print(len(step())))") == str(300 * 8 * 8)


def test_the_environment_switches_threads_off() -> None:
    code = "ta.set_threads(None) if False else None; print(threads.Setting().most)"
    assert answer(code, TINYATTN_THREADS="1") == "1"
    assert answer(code, TINYATTN_THREADS="") == "None"


@pytest.mark.parametrize("most", [0, -1, 1.5, "2", True])
def test_a_number_of_threads_that_is_none_is_refused(most: Any) -> None:
    with pytest.raises(ValueError, match=r"set_threads: .* whole number from 1"):
        ta.set_threads(most)
