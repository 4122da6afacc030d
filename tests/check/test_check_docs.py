"""The page about checking shows what the tool prints today."""

from __future__ import annotations

import re

import pytest
from repository import ROOT, script

PAGE = ROOT / "docs" / "checking.md"


@pytest.fixture(scope="module")
def maker():
    return script(ROOT / "docs" / "make_checking.py")


def steady(text):
    """The text without what rounding decides: sizes of errors, digits beyond the fourth, rulers of tables."""
    text = re.sub(r"-?\d+(?:\.\d+)?e[+-]\d+", "#", text)
    text = re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.3g}", text)
    return re.sub(r"[─ ]+", " ", text)


def test_the_page_is_current(maker):
    assert steady(PAGE.read_text(encoding="utf-8")) == steady(maker.page()), "run docs/make_checking.py"


def test_it_shows_five_failures_with_their_mistakes():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("is WRONG.") >= 5
    assert page.count("likely mistake:") >= 5


def test_no_line_of_prose_is_forgotten(maker):
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"### {title}" in page for title, _, _ in (*maker.FAILURES, *maker.NO_FAULTS))
