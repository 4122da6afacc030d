"""The documentation is true: its examples run, its links lead somewhere, its generated parts are current."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT, script

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


NEEDS = {"handover": ("jax", "torch", "onnx", "onnxruntime", "safetensors")}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_example_gives_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in NEEDS.get(page.stem, ()):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)  # an example may write a file
    try:
        assert run_examples(page.read_text(encoding="utf-8"), name(page)) == ""
    finally:
        if "jax" in NEEDS.get(page.stem, ()):  # the page switches it on for good, as its reader would
            sys.modules["jax"].config.update("jax_enable_x64", False)


def test_a_wrong_example_would_be_seen() -> None:
    wrong = "Text.\n\n```python\n>>> 1 + 1\n3\n```\n"
    assert "line 4" in run_examples(wrong, "page") and "Expected:" in run_examples(wrong, "page")
    assert run_examples(wrong.replace("3", "2"), "page") == ""


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in ("derivations", "checking")], ids=name)
def test_every_python_block_is_an_example_that_runs(page: Path) -> None:
    """Derivations and checks also show programs of their own, and have tests of their own."""
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


def test_the_generated_parts_are_what_the_code_says_now() -> None:
    generate = script(ROOT / "docs" / "generate.py")
    stale = [name(page) for page, text in generate.pages().items() if page.read_text(encoding="utf-8") != text]
    assert stale == [], "run python3 docs/generate.py"


def test_a_part_that_is_out_of_date_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate = script(ROOT / "docs" / "generate.py")
    (tmp_path / "coming-from.md").write_text("<!-- generated: methods -->\nold\n<!-- end -->\n", encoding="utf-8")
    monkeypatch.setattr(generate, "DOCS", tmp_path)
    assert generate.main(["--check"]) == 1
    assert generate.main([]) == 0 and generate.main(["--check"]) == 0
    assert "`t.softmax`" in (tmp_path / "coming-from.md").read_text(encoding="utf-8")
    assert (tmp_path / "operations.md").read_bytes() == (ROOT / "docs" / "operations.md").read_bytes()


def test_the_generated_parts_do_not_depend_on_the_hash_seed() -> None:
    """What was written under one seed is current under another."""
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": "7"}, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout) == (0, "")


def test_every_op_and_every_public_function_is_in_the_tables() -> None:
    import tinyattn as ta
    from tinyattn.ops import REGISTRY

    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    public = {each for each in ta.__all__ if each.islower()}
    assert {each for each in public if f"`ta.{each}(" not in text} == set()
    assert {op for op in REGISTRY if f"`{op}`" not in text} == set()


def test_the_pictures_are_what_the_script_draws_now() -> None:
    pytest.importorskip("graphviz")
    drawn = script(ROOT / "docs" / "pictures.py").pictures()
    assert {file.name for file in (ROOT / "docs" / "pictures").iterdir()} == set(drawn)
    for file, text in drawn.items():
        assert (ROOT / "docs" / "pictures" / file).read_text(encoding="utf-8") == text, "run docs/pictures.py"


def test_both_readmes_show_the_same_code() -> None:
    def code(page: str) -> list[str]:
        text = (ROOT / page).read_text(encoding="utf-8")
        return [re.sub(r"\s*#.*|, lang=\"zh\"", "", block) for _, block in blocks(text, "python")]

    english, chinese = code("README.md"), code("README.zh.md")
    assert english == chinese and len(english) == 3


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_readmes_commands_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    known = (ROOT / "run.py").read_text(encoding="utf-8")
    used = set(re.findall(r"python3 run\.py (\w+)", text))
    assert used >= {"demo", "test"} and all(f"def {command}(" in known for command in used)
    demos = "\n".join(line for line in text.split("\n") if "demo" in line or "--sentence" in line)
    options = set(re.findall(r"--(\w+)", demos))
    cli = (ROOT / "tinyattn" / "cli.py").read_text(encoding="utf-8")
    assert all(f'"--{option}"' in cli for option in options - {"help"})
