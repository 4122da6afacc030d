"""Two lessons as notebooks in a Jupyter kernel: they run, print what the lesson prints, and show their pictures."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tinyattn.learn import library
from tinyattn.learn.notebook import notebook
from tinyattn.learn.outputs import outputs

pytestmark = pytest.mark.slow

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")
from jupyter_client.manager import AsyncKernelManager  # noqa: E402

WANTED = {"10": "image/svg+xml", "14": "text/html"}
"""Lessons, and the form in which each shows its picture."""


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that writes nothing outside the test's folder, finds what we find, and speaks English."""
    for name in ("TINYATTN_HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path or os.getcwd() for path in sys.path))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


def ran(text: str, tmp_path: Path) -> Any:
    """The notebook with its outputs; the kernel is spoken to by files, not by the network, where that is possible."""
    book = nbformat.reads(text, as_version=4)
    nbformat.validate(book)
    transport = "tcp" if os.name == "nt" else "ipc"
    manager = AsyncKernelManager(kernel_name="python3", transport=transport)
    if transport == "ipc":
        manager.ip = str(tmp_path / "k")
    client = nbclient.NotebookClient(book, km=manager, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    return book


def printed(cell: Any) -> str:
    return "".join(one["text"] for one in cell["outputs"] if one["output_type"] == "stream").rstrip("\n")


@pytest.mark.parametrize("number", WANTED)
def test_the_notebook_runs_in_a_kernel_and_gives_what_the_lesson_gives(number: str, tmp_path: Path) -> None:
    lesson = library.find(number, "zh")
    book = ran(notebook(lesson, "zh"), tmp_path)
    for cell, given in zip(book["cells"], outputs(lesson, "en"), strict=True):  # an exercise is graded in English there
        if cell["cell_type"] == "code":
            texts = [one.value for one in given if one.kind == "text"]
            assert printed(cell) == "\n".join(texts)
    forms = {form for cell in book["cells"] for one in cell.get("outputs", []) for form in one.get("data", {})}
    assert WANTED[number] in forms
    nbformat.validate(book)


def test_a_cell_that_fails_is_noticed(tmp_path: Path) -> None:
    facts = json.loads(notebook(library.find("10"), "en"))
    code = next(cell for cell in facts["cells"] if cell["cell_type"] == "code")
    code["source"] = ["assert 1 == 2, 'one is not two'"]
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="one is not two"):
        ran(json.dumps(facts), tmp_path)
