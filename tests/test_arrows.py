"""The arrows of the house point one way: who may import whom, and who may look inside a tensor."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT, module_name, modules

UPPER = {"check", "symbolic", "nn", "optim", "train", "data", "learn", "handover", "testing", "cli"}
# What an area may import from the package, at any time; None: anything.
MAY_IMPORT: dict[str, set[str]] = {
    "ops": {"ops", "kernels", "errors", "late"},
    "kernels": {"ops", "kernels", "errors"},
    "errors": set(),
    "late": set(),
    "files": {"errors"},
    "terminal": set(),
}
# What an area must not import, at any time.
MUST_NOT_IMPORT: dict[str, set[str]] = {
    "tensor": UPPER, "graph": UPPER, "autodiff": UPPER, "names": UPPER, "functions": UPPER, "show": UPPER,
    "quick": UPPER, "straight": UPPER, "stretches": UPPER, "repeated": UPPER,
    "bundles": UPPER | {"ops", "kernels", "autodiff", "functions"},
    "arguments": UPPER, "explain": UPPER, "composed": UPPER, "places": UPPER, "mode": UPPER,
    "check": {"nn", "optim", "train", "learn", "cli"},
    "symbolic": {"nn", "optim", "train", "learn", "cli"},
    "compiled": {"check", "symbolic", "nn", "optim", "train", "learn", "handover", "cli"},
    "handover": {"train", "learn", "cli"},
    "nn": {"ops", "kernels", "check", "symbolic", "handover", "train", "learn", "cli"},
    "optim": {"ops", "kernels", "check", "symbolic", "nn", "handover", "train", "learn", "cli"},
}
READERS = ("tinyattn/check", "tinyattn/symbolic", "tinyattn/handover", "tinyattn/nn", "viz")


def imports(text: str, module: str, late: bool = True) -> Iterator[str]:
    """Every module or name that a text imports; what is for type checkers only is left out.

    ``module`` is the package that relative imports start from; ``late`` adds imports inside functions.
    """
    def visit(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.FunctionDef | ast.Lambda) and not late:
            return
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = module.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(part for part in (start, node.module) if part)
            yield from (f"{base}.{name.name}" for name in node.names)
        for child in ast.iter_child_nodes(node):
            yield from visit(child)

    return visit(ast.parse(text))


def imported(path: Path, late: bool = True) -> set[str]:
    package = module_name(path if path.name == "__init__.py" else path.parent / "__init__.py")
    return set(imports(path.read_text(encoding="utf-8"), package, late))


def area(name: str) -> str:
    """Give the part of the package: ``tinyattn.ops.record.Op`` -> ``ops``; ``tinyattn.Tensor`` -> ``""``."""
    first = [*name.split("."), ""][1]
    there = (ROOT / "tinyattn" / first).is_dir() or (ROOT / "tinyattn" / f"{first}.py").is_file()
    return first if there else ""


@pytest.mark.parametrize("path", modules("tinyattn"), ids=module_name)
def test_a_part_imports_only_what_it_stands_on(path: Path) -> None:
    here = area(module_name(path))
    used = {area(name) for name in imported(path) if name.startswith("tinyattn.")} - {"", here}
    assert used <= MAY_IMPORT.get(here, used)
    assert not used & MUST_NOT_IMPORT.get(here, set())


@pytest.mark.parametrize("path", modules("tinyattn"), ids=module_name)
def test_pictures_are_loaded_late_and_in_one_place(path: Path) -> None:
    names = imported(path, late=path.name != "_viz.py")
    assert not {name for name in names if name.split(".")[0] == "viz"}


@pytest.mark.parametrize("name", ["autodiff", "graph", "names"])
def test_walking_a_record_needs_to_know_no_operation(name: str) -> None:
    path = ROOT / "tinyattn" / f"{name}.py"
    general = {"record", "helpers", "REGISTRY", "Op"}
    taken = {name for name in imported(path) if name.startswith("tinyattn.ops.")}
    assert {name for name in taken if name.split(".")[2] not in general} == set()


def private_parts() -> set[str]:
    """Names with one underscore that a Tensor has: slots, attributes and methods."""
    tree = ast.parse((ROOT / "tinyattn" / "tensor.py").read_text(encoding="utf-8"))
    tensor = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    names = {getattr(node, "attr", None) or getattr(node, "name", None) or getattr(node, "value", None)
             for node in ast.walk(tensor)}
    return {name for name in names
            if isinstance(name, str) and name.isidentifier() and name[0] == "_" and name[1:2] != "_"}


@pytest.mark.parametrize("path", modules(*READERS), ids=module_name)
def test_readers_leave_a_tensors_private_parts_alone(path: Path) -> None:
    parts, tree = private_parts(), ast.parse(path.read_text(encoding="utf-8"))
    looked = {f"line {node.lineno}: .{node.attr}" for node in ast.walk(tree)
              if isinstance(node, ast.Attribute) and node.attr in parts
              and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))}
    taken = {name for name in imported(path)
             if re.match(r"tinyattn\.(tensor|graph|autodiff|functions)\._", name)}
    assert not looked and not taken


def test_a_tensor_has_private_parts_to_be_left_alone() -> None:
    assert {"_value", "_grad"} <= private_parts()


@pytest.mark.parametrize(("text", "late", "names"), [
    ("def f():\n    from tinyattn.tensor import Tensor", True, ["tinyattn.tensor.Tensor"]),
    ("def f():\n    import viz", False, []),
    ("if TYPE_CHECKING:\n    from tinyattn.tensor import Tensor", True, []),
    ("from ..tensor import Tensor", True, ["tinyattn.tensor.Tensor"]),
    ("from . import record", True, ["tinyattn.ops.record"]),
    ("import numpy, viz.draw", True, ["numpy", "viz.draw"]),
])
def test_a_forbidden_arrow_would_be_seen(text: str, late: bool, names: list[str]) -> None:
    assert list(imports(text, "tinyattn.ops", late)) == names


def test_importing_the_engine_loads_numpy_and_little_else() -> None:
    code = ("import sys, numpy; before = set(sys.modules); import tinyattn; "
            "print(*set(sys.modules) - before)")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    heavy = {"sympy", "mpmath", "graphviz", "matplotlib", "torch", "viz", "asyncio", "dataclasses", "inspect",
             "unittest", "subprocess", "email", "http", "urllib", "threading"}
    assert not loaded & heavy, sorted(loaded)
