"""The documentation is true: its examples run, its links lead somewhere, its generated parts are current."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from repository import ROOT

PAGES = sorted([ROOT / "README.md", ROOT / "README.zh.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(text: str, language: str) -> list[tuple[int, str]]:
    """Code blocks of a language, with the number of the line before the first of theirs."""
    return [(text.count("\n", 0, found.start(2)), found[2]) for found in BLOCK.finditer(text) if found[1] == language]


def run_examples(text: str, page: str) -> str:
    """Run the examples of a page as one session; give what went wrong, as doctest tells it."""
    session = ""
    for before, block in blocks(text, "python"):
        if ">>>" in block:
            session += "\n" * (before - session.count("\n")) + block
    test = doctest.DocTestParser().get_doctest(session, {}, page, page, 0)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(test, out=said.append)
    return "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_example_gives_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # an example may write a file
    assert run_examples(page.read_text(encoding="utf-8"), name(page)) == ""


def test_a_wrong_example_would_be_seen() -> None:
    wrong = "Text.\n\n```python\n>>> 1 + 1\n3\n```\n"
    assert "line 4" in run_examples(wrong, "page") and "Expected:" in run_examples(wrong, "page")
    assert run_examples(wrong.replace("3", "2"), "page") == ""


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_python_block_is_an_example_that_runs(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [before for before, block in blocks(text, "python") if ">>>" not in block] == []
    assert text.count("\n```") % 2 == 0


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    lost = []
    for found in LINK.finditer(BLOCK.sub("", text)):
        target, _, heading = (found[1] or found[2]).partition("#")
        if "://" in target:
            continue
        there = page if not target else page.parent / target
        if not there.exists() or (heading and heading not in anchors(there.read_text(encoding="utf-8"))):
            lost.append(found[0])
    assert lost == []


def anchors(text: str) -> set[str]:
    """The addresses that a Markdown page gives its headings."""
    outside = BLOCK.sub("", text)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.+)$", outside, re.MULTILINE)}


def test_headings_get_the_addresses_that_they_have_on_a_page() -> None:
    assert anchors("# A b, c\n## `x.y`\n```text\n# no\n```\n") == {"a-b-c", "xy"}
