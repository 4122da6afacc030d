"""A lesson as a notebook: the right form, the same bytes, cells that run one after the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tinyattn.learn import command, library
from tinyattn.learn.notebook import notebook

WANTED = ["10", "07"]


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINYATTN_HOME", str(tmp_path / "home"))


def code(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


@pytest.mark.parametrize("number", WANTED)
def test_the_command_writes_the_same_bytes_each_time(
    number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contents = []
    for _ in range(2):
        assert command.main([number, "--notebook", "--lang", "en", "--out", "books"]) == 0
        (path,) = (tmp_path / "books").glob(f"{number}_*.ipynb")
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] and path.name in capsys.readouterr().out


@pytest.mark.parametrize("number", WANTED)
def test_a_notebook_has_the_form_that_jupyter_reads(number: str) -> None:
    book = json.loads(notebook(library.find(number), "en"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids) and all(1 <= len(one) <= 64 for one in ids)
    for cell in book["cells"]:
        assert cell["cell_type"] in ("markdown", "code") and code(cell).strip()
        assert ("outputs" in cell) == ("execution_count" in cell) == (cell["cell_type"] == "code")


@pytest.mark.parametrize("number", WANTED)
def test_its_cells_run_one_after_the_other(number: str) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads(notebook(library.find(number), "en"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile(code(cell), cell["id"], "exec"), names)
    assert "grade" in names


def test_the_prose_is_in_the_language_that_was_asked_for() -> None:
    english, chinese = (json.loads(notebook(library.find("10"), lang))["cells"] for lang in ("en", "zh"))
    assert code(english[0]).startswith("# 10 One query") and code(chinese[0]).startswith("# 10 一个查询")
    assert [cell["cell_type"] for cell in english] == [cell["cell_type"] for cell in chinese]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert command.main(["10", "--notebook", "--out", "file/inside"]) == 2
    assert "cannot be written" in capsys.readouterr().err
