"""The scripts in ``tutorials/extra``, as a user runs them."""

from __future__ import annotations

import pytest
from repository import ROOT, script


@pytest.mark.slow
def test_many_seeds_asks_whether_a_gain_is_luck(capsys: pytest.CaptureFixture[str]) -> None:
    assert script(ROOT / "tutorials" / "extra" / "many_seeds.py").main(["--seeds", "2"]) == 0
    heading, *rows, last = capsys.readouterr().out.splitlines()
    assert heading.split("  ")[1:] == [
        "most frequent tag", "no attention", "attention without position", "attention with position",
    ]  # fmt: skip
    assert [row.split()[0] for row in rows] == ["0", "1"]
    assert last == "attention with position is ahead of no attention for 2 of 2 seeds."
