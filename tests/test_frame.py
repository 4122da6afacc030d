"""run.py: when it makes an environment anew, what it says, and that two of them at once do no harm."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest
from repository import ROOT, script

LOCKS = ("requirements.lock", "requirements-all.lock", "requirements-torch.lock", "requirements-lint.lock",
         "requirements-lowest.lock", "pyproject.toml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose name holds blanks and Chinese, with run.py and what it reads, and nothing else."""
    folder = tmp_path / "a folder 带空格"
    folder.mkdir()
    for name in ("run.py", *LOCKS):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def frame(folder: Path) -> ModuleType:
    """The module run.py of that folder."""
    return script(folder / "run.py")


def pretend_made(frame: ModuleType) -> None:
    """What a finished environment looks like to run.py."""
    environment = frame.ORDINARY
    frame.empty(environment.folder)
    python = frame.python_of(environment.folder)
    python.parent.mkdir(parents=True)
    python.touch()
    (environment.folder / frame.STAMP).write_text(frame.fingerprint(environment), encoding="utf-8")


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "run.py"), *arguments]
    return subprocess.run(command, cwd=folder.parent, env=os.environ | environment, capture_output=True,
                          encoding="utf-8")


def test_an_old_python_can_read_the_file_and_is_told_before_anything_happens() -> None:
    tree = ast.parse((ROOT / "run.py").read_text(encoding="utf-8"), feature_version=(3, 6))
    check = next(index for index, node in enumerate(tree.body) if isinstance(node, ast.If))
    assert "version_info" in ast.unparse(tree.body[check].test)
    assert all(isinstance(node, ast.Import | ast.Expr) for node in tree.body[:check])


def test_an_old_python_is_told_in_words(folder: Path) -> None:
    code = "import sys; sys.version_info = (3, 8, 18); exec(open(sys.argv[1], encoding='utf-8').read())"
    command = [sys.executable, "-c", code, str(folder / "run.py")]
    told = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert told.returncode == 1 and "needs Python 3.11 or later" in told.stderr
    assert "Traceback" not in told.stderr


def test_only_the_standard_library_is_imported() -> None:
    tree = ast.parse((ROOT / "run.py").read_text(encoding="utf-8"))
    names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert names <= sys.stdlib_module_names and not [node for node in ast.walk(tree)
                                                     if isinstance(node, ast.ImportFrom)]


def test_run_py_stays_short() -> None:
    assert len((ROOT / "run.py").read_text(encoding="utf-8").splitlines()) < 300


def test_help_needs_no_environment(folder: Path) -> None:
    for arguments in ([], ["--help"], ["help"]):
        told = run(folder, *arguments)
        assert told.returncode == 0 and "run.py demo" in told.stdout
    assert not (folder / ".venv").exists()


def test_an_unknown_command_is_answered_in_words(folder: Path) -> None:
    told = run(folder, "dmeo")
    assert told.returncode == 1 and "'dmeo'" in told.stderr and "demo, test" in told.stderr
    assert "Traceback" not in told.stderr


def test_a_finished_environment_is_used_again(frame: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_made(frame)
    monkeypatch.setattr(frame, "make", lambda _: pytest.fail("made again"))
    assert frame.ready(frame.ORDINARY) == str(frame.python_of(frame.ROOT / ".venv"))


@pytest.mark.parametrize("name", ["requirements.lock", "pyproject.toml"])
def test_another_lock_or_pyproject_makes_it_anew(frame: ModuleType, name: str) -> None:
    pretend_made(frame)
    assert frame.finished(frame.ORDINARY)
    with (frame.ROOT / name).open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert not frame.finished(frame.ORDINARY)


def test_another_python_makes_it_anew(frame: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_made(frame)
    monkeypatch.setattr(sys.implementation, "cache_tag", "cpython-399")
    assert not frame.finished(frame.ORDINARY)


def test_a_half_made_environment_is_not_taken_for_a_finished_one(frame: ModuleType) -> None:
    pretend_made(frame)
    (frame.ORDINARY.folder / frame.STAMP).write_text("unfinished", encoding="utf-8")
    assert not frame.finished(frame.ORDINARY)


def test_an_environment_whose_python_is_gone_is_made_anew(frame: ModuleType) -> None:
    pretend_made(frame)
    frame.python_of(frame.ORDINARY.folder).unlink()
    assert not frame.finished(frame.ORDINARY)


def test_a_failed_installation_leaves_no_finished_environment(frame: ModuleType,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame.shutil, "which", lambda _: None)
    monkeypatch.setattr(frame, "with_pip", lambda folder: frame.empty(folder) or ["pip"])
    monkeypatch.setattr(frame, "run", lambda *_, **__: 1)
    with pytest.raises(frame.Stop, match=r"requirements\.lock did not work"):
        frame.ready(frame.ORDINARY)
    assert not frame.finished(frame.ORDINARY)


def test_a_folder_that_run_py_did_not_make_is_left_alone(frame: ModuleType) -> None:
    theirs = frame.ORDINARY.folder / "notes.txt"
    theirs.parent.mkdir()
    theirs.write_text("mine", encoding="utf-8")
    with pytest.raises(frame.Stop, match="did not make it"):
        frame.empty(frame.ORDINARY.folder)
    assert theirs.read_text(encoding="utf-8") == "mine"


def test_the_layout_of_windows_is_known(frame: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "WINDOWS", True)
    assert frame.python_of(Path("e")) == Path("e", "Scripts", "python.exe")
    monkeypatch.setattr(frame, "WINDOWS", False)
    assert frame.python_of(Path("e")) == Path("e", "bin", "python")


def test_the_second_run_py_waits_for_the_first(frame: ModuleType, monkeypatch: pytest.MonkeyPatch,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    made, first_is_in, may_finish = [], threading.Event(), threading.Event()

    def make(_: object) -> None:
        first_is_in.set()
        assert may_finish.wait(20)
        made.append(1)
        pretend_made(frame)

    monkeypatch.setattr(frame, "make", make)
    monkeypatch.setattr(frame.time, "sleep", lambda _: may_finish.set())  # called by who has to wait
    first = threading.Thread(target=frame.ready, args=[frame.ORDINARY])
    first.start()
    assert first_is_in.wait(20)
    frame.ready(frame.ORDINARY)
    first.join(20)
    assert made == [1] and "waiting for it" in capsys.readouterr().out


def without(frame: ModuleType, monkeypatch: pytest.MonkeyPatch, *missing: str) -> list[str]:
    """Let commands that hold one of some words fail, and the others do nothing; give what was run."""
    seen: list[str] = []

    def run(command: list[str], **_: object) -> int:
        seen.append(" ".join(command))
        return int(any(word in seen[-1] for word in missing))

    monkeypatch.setattr(frame, "run", run)
    return seen


def test_pip_outside_serves_where_ensurepip_is_missing(frame: ModuleType,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> int:
        inner = str(frame.ORDINARY.folder) in command[0]
        plain_venv = "venv" in command and "--without-pip" not in command
        return int(plain_venv or (inner and "pip" in command))

    monkeypatch.setattr(frame, "run", run)
    command = frame.with_pip(frame.ORDINARY.folder)
    assert command[:4] == [frame.BASE_PYTHON, "-m", "pip", "--python"]


def test_apt_is_used_by_root_alone_and_for_the_systems_own_python(frame: ModuleType,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "WINDOWS", False)
    monkeypatch.setattr(frame.shutil, "which", lambda name: name)
    monkeypatch.setattr(frame.os.path, "realpath", lambda _: "/usr/bin/python3.11")
    answers = []
    for user in 0, 1000:
        monkeypatch.setattr(frame.os, "geteuid", lambda user=user: user, raising=False)
        answers.append(frame.may_use_apt())
    monkeypatch.setattr(frame.os, "geteuid", lambda: 0, raising=False)
    monkeypatch.setattr(frame.os.path, "realpath", lambda _: "/usr/local/bin/python3.11")
    assert answers == [True, False] and not frame.may_use_apt()


def test_apt_installs_python3_venv_only_and_says_so_first(frame: ModuleType, monkeypatch: pytest.MonkeyPatch,
                                                          capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(frame, "may_use_apt", lambda: True)
    seen = without(frame, monkeypatch, "-m venv", "-m pip")
    with pytest.raises(frame.Stop):
        frame.with_pip(frame.ORDINARY.folder)
    installs = [command for command in seen if command.startswith("apt-get install")]
    assert [command.split()[-1] for command in installs] == ["python3-venv"]
    assert all(command in capsys.readouterr().out for command in installs)


def test_who_cannot_make_an_environment_is_told_the_one_line(frame: ModuleType,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "may_use_apt", lambda: False)
    without(frame, monkeypatch, "-m venv", "-m pip")
    with pytest.raises(frame.Stop, match="sudo apt install python3-venv"):
        frame.with_pip(frame.ORDINARY.folder)


def test_without_pytorch_the_other_tests_still_get_their_environment(
        frame: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(frame.shutil, "which", lambda _: None)
    without(frame, monkeypatch, "requirements-torch.lock")
    frame.make(frame.ALL)
    assert "skipped and say so" in capsys.readouterr().out
    assert (frame.ALL.folder / frame.STAMP).read_text(encoding="utf-8") == frame.fingerprint(frame.ALL)


def test_exit_codes_and_odd_arguments_pass_through(frame: ModuleType) -> None:
    code = "import sys; sys.exit(len(sys.argv))"
    assert frame.run([sys.executable, "-c", code, "a b", "我看见"]) == 3


def test_settings_that_would_lead_elsewhere_are_not_passed_on(frame: ModuleType,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.setenv("PIP_TARGET", "elsewhere")
    code = "import os, sys; sys.exit(('PYTHONPATH' in os.environ) + 2 * ('PIP_TARGET' in os.environ))"
    assert frame.run([sys.executable, "-c", code], building=True) == 0


@pytest.mark.slow
def test_an_environment_is_made_in_a_folder_with_blanks_and_chinese(folder: Path) -> None:
    """The real thing, with an empty lock file, so that nothing is fetched."""
    (folder / "requirements.lock").write_text("", encoding="utf-8")
    (folder / "tinyattn").mkdir()
    (folder / "tinyattn" / "__main__.py").write_text("import sys; print(sys.argv)", encoding="utf-8")
    first = run(folder, "demo", "--sentence", "我 看见", PYTHONIOENCODING="utf-8")
    second = run(folder, "demo", PYTHONIOENCODING="utf-8")
    assert first.returncode == second.returncode == 0, first.stdout + first.stderr
    assert "Making .venv" in first.stdout and "'--sentence', '我 看见'" in first.stdout
    assert "Making" not in second.stdout
