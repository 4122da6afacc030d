"""Data-parallel training on JAX: on four devices, and in two processes, equal to the engine's own steps."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys

import pytest
from repository import ROOT

pytest.importorskip("jax")
SCRIPT = ROOT / "tutorials" / "extra" / "many_devices.py"


def started(*words: str) -> subprocess.Popen[str]:
    """The script in a process of its own: how many devices there are is decided when JAX starts."""
    command = [sys.executable, str(SCRIPT), "--steps", "3", *words]
    kept = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    quiet = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return subprocess.Popen(command, env=kept | quiet, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str], devices: int, processes: int) -> None:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err[-2000:]
    assert f"devices: {devices}, processes: {processes}, sentences: 8" in out
    losses = re.findall(r"step \d: loss (\S+), tinyattn's own (\S+)", out)
    assert len(losses) == 3 and all(theirs == ours for theirs, ours in losses)
    assert float(losses[0][0]) > float(losses[-1][0])
    apart = re.search(r"after 3 steps the parameters are (\S+) apart", out)
    assert apart is not None and float(apart[1]) < 1e-12


def test_a_batch_on_four_devices_trains_as_the_engine_does() -> None:
    told(started("--devices", "4"), devices=4, processes=1)


@pytest.mark.slow
def test_two_processes_with_two_devices_each_do_the_same() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cluster = ("--devices", "2", "--cluster", f"127.0.0.1:{port}", "--processes", "2", "--process")
    first, second = started(*cluster, "0"), started(*cluster, "1")
    try:
        told(first, devices=4, processes=2)
        assert second.wait(timeout=60) == 0
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()


def test_a_batch_that_cannot_be_shared_is_refused_in_words() -> None:
    process = started("--devices", "3")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2 and "8 sentences cannot be shared by 3 devices: take 1, 2, 4 or 8" in err
