"""``python -m benchmarks.lessons``: how long each lesson runs, in a process of its own as a learner starts it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tinyattn.learn import library
from tinyattn.terminal import say

EACH, TOGETHER = 10.0, 90.0
"""Seconds that a lesson, and all of them one after the other, may take."""


def measure(path: Path, folder: str) -> float:
    """Seconds from the start of the process to its end; a lesson that fails ends the measuring."""
    root = str(Path(__file__).resolve().parents[1])
    environment = os.environ | {"PYTHONPATH": root, "TINYATTN_HOME": folder, "PYTHONIOENCODING": "utf-8"}
    start = time.perf_counter()
    subprocess.run([sys.executable, str(path)], cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        seconds = {path.stem: measure(path, folder) for path in library.paths()}
    for name, took in seconds.items():
        say(f"{name:24} {took:5.1f} s" + (f"   more than {EACH:g} s" if took > EACH else ""))
    total = sum(seconds.values())
    say(f"{'all':24} {total:5.1f} s   (goals: {EACH:g} s each, {TOGETHER:g} s together)")
    return 0 if max(seconds.values()) <= EACH and total <= TOGETHER else 1


if __name__ == "__main__":
    sys.exit(main())
