"""What the tests of ``tinyattn check`` share: a file to check, and how the command is run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tinyattn.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Check something in ``lesson.py``, which holds the test module's ``FILE``; gives code, output and errors."""
    (tmp_path / "lesson.py").write_text(request.module.FILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> tuple[int, str, str]:
        code = main(["check", *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command
