"""What the tests about the repository itself share: its files, and how much code a file holds."""

from __future__ import annotations

import ast
import importlib.util
import io
import os
import subprocess
import sys
import tokenize
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
            tokenize.ENCODING, tokenize.ENDMARKER}
_OURS = {"tests", "tinyattn", "viz", "tutorials", "benchmarks", "docs", ".ci", ".github"}


def files() -> list[Path]:
    """Every file that belongs to the repository; where git is missing, what lies in its folders."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8")
    except (OSError, subprocess.CalledProcessError):
        inside = [path for folder in _OURS for path in (ROOT / folder).rglob("*")]
        return sorted(path for path in [*ROOT.glob("*"), *inside]
                      if path.is_file() and "__pycache__" not in path.parts)
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def script(path: Path) -> ModuleType:
    """A file that belongs to no package, run as a module of its own."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(file: Path, seeds: Iterable[int] = range(3)) -> set[str]:
    """What a script prints in processes that hash texts differently: one thing, when nothing depends on that."""
    found = set()
    given = filter(None, [os.environ.get("PYTHONPATH")])  # not sys.path: other tests leave folders of scripts in it
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *given])
    for seed in seeds:
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": paths, "PYTHONUTF8": "1"}
        command = [sys.executable, str(file)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, timeout=120)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    return found


def same_as_kept(made: str, path: Path) -> bool:
    """Whether a text is byte for byte what a file holds; TINYATTN_WRITE_GOLDEN=1 writes it anew, to be looked at."""
    if os.environ.get("TINYATTN_WRITE_GOLDEN"):
        path.write_text(made, encoding="utf-8", newline="\n")
    return made == path.read_bytes().decode("utf-8")


def modules(*packages: str) -> list[Path]:
    """The Python files of some packages."""
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


def module_name(path: Path) -> str:
    """How a file is imported: ``tinyattn.ops.record``."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def code_lines(text: str) -> set[int]:
    """The numbers of the lines that hold code: no blank line, comment or docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))  # a docstring, or `...`
    return lines
