"""Another module called viz must not be taken for ours."""

import os
import subprocess
import sys

import pytest
from repository import ROOT

from tinyattn._viz import load_viz
from tinyattn.errors import MissingLibraryError


def run(code, folder):
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"}
    script = folder / "lesson.py"
    script.write_text(code, encoding="utf-8")
    return python(script, environment)


def python(script, environment):
    return subprocess.run(
        [sys.executable, str(script)],
        capture_output=True, text=True, encoding="utf-8", env=environment, timeout=60,
    )  # fmt: skip


LOAD = "from tinyattn._viz import load_viz\nprint(load_viz().__tinyattn_viz__)\n"


def test_our_own_package_is_loaded():
    assert load_viz().__tinyattn_viz__ is True


def test_a_viz_py_beside_the_script_is_named_and_not_run(tmp_path):
    (tmp_path / "viz.py").write_text("print('I was run')\n", encoding="utf-8")
    done = run(LOAD, tmp_path)
    assert done.returncode == 1
    assert f"The module viz that Python found is {tmp_path / 'viz.py'}, not tinyattn's." in done.stderr
    assert "Rename that file or start Python from another folder." in done.stderr
    assert "I was run" not in done.stdout


def test_a_script_that_is_itself_called_viz_gets_the_same_message(tmp_path):
    (tmp_path / "viz.py").write_text(LOAD, encoding="utf-8")
    done = python(tmp_path / "viz.py", {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"})
    assert done.returncode == 1 and "not tinyattn's" in done.stderr


def test_a_foreign_module_that_is_already_loaded_is_named(tmp_path):
    (tmp_path / "viz.py").write_text("", encoding="utf-8")
    done = run("import viz\n" + LOAD, tmp_path)
    assert str(tmp_path / "viz.py") in done.stderr and "not tinyattn's" in done.stderr


def test_a_folder_called_viz_without_code_does_no_harm(tmp_path):
    (tmp_path / "viz").mkdir()
    assert run(LOAD, tmp_path).stdout == "True\n"


def test_no_viz_at_all_is_told(monkeypatch):
    monkeypatch.delitem(sys.modules, "viz", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingLibraryError, match="was not found"):
        load_viz()


def test_importing_viz_is_cheap(tmp_path):
    code = "import sys, viz\nprint([m for m in ('numpy', 'graphviz', 'viz.drawing') if m in sys.modules])\n"
    assert run(code, tmp_path).stdout == "[]\n"


def test_a_public_name_is_the_function_whatever_was_imported_before(tmp_path):
    code = "import viz.graphs, viz.heatmap, viz.drawing, viz.dot\n"
    code += "print(callable(viz.draw), callable(viz.attention))"
    assert run(code, tmp_path).stdout == "True True\n"
    assert "draw" in run("import viz; print(dir(viz))", tmp_path).stdout
