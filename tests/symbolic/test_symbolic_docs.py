"""The page of derivations is what the tool prints today."""

import subprocess
import sys

from repository import ROOT


def test_page_of_derivations_is_current():
    result = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "derivations.py"), "--check"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
