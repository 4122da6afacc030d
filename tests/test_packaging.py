"""What a user gets who installs the package: both packages, types, lessons and the sample corpus."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from repository import ROOT, files

pytestmark = pytest.mark.skipif(importlib.util.find_spec("hatchling") is None,
                                reason="hatchling, which builds the wheel, is only in `run.py test --all`")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the repository's own files and nothing else."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("dist")
    for path in files():
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(out)]
    subprocess.run(command, cwd=copy, check=True)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def listed(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


def ours(folder: str, pattern: str) -> list[Path]:
    return [path for path in files() if (ROOT / folder) in path.parents and path.match(pattern)]


@pytest.mark.parametrize(("folder", "pattern", "inside"), [
    ("tinyattn", "*.py", "tinyattn"), ("viz", "*.py", "viz"),
    ("tinyattn", "py.typed", "tinyattn"), ("viz", "py.typed", "viz"),
    ("tutorials", "*.py", "tinyattn/tutorials"), ("tutorials", "*.md", "tinyattn/tutorials"),
    ("tinyattn/learn/assets", "*.css", "tinyattn/learn/assets"), ("tinyattn/data", "*.conllu", "tinyattn/data"),
])
def test_the_wheel_holds(listed: list[str], folder: str, pattern: str, inside: str) -> None:
    wanted = {f"{inside}/{path.relative_to(ROOT / folder).as_posix()}" for path in ours(folder, pattern)}
    assert wanted and wanted <= set(listed)


def test_the_wheel_holds_nothing_else(listed: list[str]) -> None:
    assert {name.split("/")[0] for name in listed} == {"tinyattn", "viz", "pytest_tinyattn.py", information(listed)}
    assert not [name for name in listed if "__pycache__" in name or "/tests/" in name]


def information(listed: list[str]) -> str:
    (folder,) = {name.split("/")[0] for name in listed if ".dist-info/" in name}
    return folder


def test_the_wheel_says_what_it_is(wheel: Path, listed: list[str]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        facts = archive.read(f"{information(listed)}/METADATA").decode("utf-8")
        commands = archive.read(f"{information(listed)}/entry_points.txt").decode("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Version: {project['version']}\n" in facts and "License-Expression: MIT\n" in facts
    assert set(re.findall("Provides-Extra: (.*)", facts)) == set(project["optional-dependencies"])
    assert "tinyattn = tinyattn.cli:main" in commands
    assert f"{information(listed)}/licenses/LICENSE" in listed


def test_the_installed_wheel_runs_without_the_repository(wheel: Path, tmp_path: Path) -> None:
    """Unpacked as pip does it, in another folder, with both packages and the lessons taken from there."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-P", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True,
                              encoding="utf-8").stdout

    places = run("-c", "import tinyattn, viz; print(tinyattn.__file__); print(viz.__file__)").split("\n")
    assert all(place.startswith(str(tmp_path)) for place in places if place)
    assert "demo" in run("-m", "tinyattn", "--help")
    assert "10" in run("-m", "tinyattn", "learn")
