"""What the tests of all libraries get: the results of a lesson that was run."""

from __future__ import annotations

from pathlib import Path

import pytest
from handover.agree import lesson_results

import tinyattn as ta
from tinyattn.learn import library


@pytest.fixture(params=library.paths(), ids=lambda path: path.stem)
def computed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[ta.Tensor]:
    """Whatever one lesson computed; it runs in a folder and with a home of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINYATTN_HOME", str(tmp_path / "home"))
    return lesson_results(request.param)
