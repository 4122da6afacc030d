"""The scripts in ``tutorials/extra``, as a user runs them."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from repository import ROOT


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tutorials" / "extra" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_many_seeds_asks_whether_a_gain_is_luck(capsys: pytest.CaptureFixture[str]) -> None:
    assert script("many_seeds").main(["--seeds", "2"]) == 0
    heading, *rows, last = capsys.readouterr().out.splitlines()
    assert heading.split("  ")[1:] == [
        "most frequent tag", "no attention", "attention without position", "attention with position",
    ]  # fmt: skip
    assert [row.split()[0] for row in rows] == ["0", "1"]
    assert last == "attention with position is ahead of no attention for 2 of 2 seeds."
