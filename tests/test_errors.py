"""Optional libraries: what is said when one is not there, and that nothing else is taken for that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tinyattn.errors import MissingLibraryError, missing_library, optional_library

WHAT_FOR = "It draws boats."


def library(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Put a library of that text where Python looks; it is forgotten after the test."""
    (folder / "boats_of_paper").mkdir()
    (folder / "boats_of_paper" / "__init__.py").write_text(text, encoding="utf-8")
    (folder / "boats_of_paper" / "sails.py").write_text("colour = 'red'\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    for name in ("boats_of_paper", "boats_of_paper.sails"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("name", ["boats_of_paper", "boats_of_paper.sails"])
def test_a_library_that_is_not_there_is_named_with_its_use_and_the_line_that_installs_it(name: str) -> None:
    with pytest.raises(MissingLibraryError) as caught:
        optional_library(name, WHAT_FOR, "boats sails")
    what, why, instead = str(caught.value).splitlines()
    assert what == "The library boats_of_paper is not installed."
    assert why == f"  {WHAT_FOR}" and instead == "  Write: pip install boats sails"
    assert caught.value.__suppress_context__  # no second error before it


def test_a_program_that_waits_for_an_import_error_gets_one() -> None:
    with pytest.raises(ImportError, match=r"Write: pip install boats_of_paper$"):
        raise missing_library("boats_of_paper")


def test_a_part_of_a_library_is_given_when_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library(tmp_path, monkeypatch, "")
    assert optional_library("boats_of_paper.sails", WHAT_FOR).colour == "red"


@pytest.mark.parametrize(("text", "name", "said"), [
    ("import boats_of_steel", "boats_of_paper", "boats_of_steel"),
    ("raise ImportError('a broken mast')", "boats_of_paper", "a broken mast"),
    ("", "boats_of_paper.oars", "boats_of_paper.oars"),
], ids=["it needs another", "it is broken", "it has no such part"])  # fmt: skip
def test_a_library_that_is_there_is_not_called_missing(
    text: str, name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library(tmp_path, monkeypatch, text)
    with pytest.raises(ImportError, match=said) as caught:
        optional_library(name, WHAT_FOR)
    assert not isinstance(caught.value, MissingLibraryError)


def test_a_library_that_is_hidden_is_missing_even_when_its_part_was_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library(tmp_path, monkeypatch, "")
    optional_library("boats_of_paper.sails", WHAT_FOR)
    monkeypatch.setitem(sys.modules, "boats_of_paper", None)
    with pytest.raises(MissingLibraryError):
        optional_library("boats_of_paper.sails", WHAT_FOR)
