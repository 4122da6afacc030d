"""What a report says of the Taylor remainder: no number that seems to contradict the verdict."""

from __future__ import annotations

import math

import pytest

from tinyattn.check.report import Report


@pytest.mark.parametrize(("verdict", "slope", "words"), [
    ("right", 1.98, "falls with slope 1.98 (2 is right, 1 is wrong)"),
    ("right", 1.4, "tells nothing here (slope 1.40)"),
    ("right", -0.8, "tells nothing here (slope -0.80)"),
    ("wrong", 1.0, "falls with slope 1.00 (2 is right, 1 is wrong)"),
    ("right", math.inf, "nothing is left, the function is linear"),
])
def test_the_remainder_in_words(verdict: str, slope: float, words: str) -> None:
    report = Report("f")
    report.verdict, report.remainder = verdict, slope
    assert f"Taylor remainder: {words}" in str(report)
