"""The command line: which exit code, what is said where, and never a stack trace for what users do."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import tinyattn as ta
from tinyattn import cli


def tinyattn(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **settings}
    command = [sys.executable, "-m", "tinyattn", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, encoding="utf-8")


def test_without_a_word_it_says_what_there_is(capsys) -> None:
    assert cli.main([]) == 0
    out = capsys.readouterr().out
    assert "demo" in out and "learn" in out


def test_the_version() -> None:
    done = tinyattn("--version")
    assert (done.returncode, done.stdout) == (0, f"tinyattn {ta.__version__}\n")


@pytest.mark.parametrize(("words", "said"), [
    (["dem"], "invalid choice"),
    (["demo", "--sentense", "a"], "unrecognized arguments: --sentense"),
    (["demo", "--width", "0"], "'0' is no whole number from 1 to 64"),
    (["demo", "--width", "1e3"], "'1e3' is no whole number"),
    (["demo", "--seed", "-1"], "'-1' is no whole number from 0"),
    (["demo", "--sentence", ""], "The sentence is empty"),
    (["demo", "--word", "dog"], "'dog' is not in the sentence"),
    (["demo", "--corpus", "no-such-file"], "tinyattn: there is no file no-such-file."),
    (["demo", "--corpus", ""], "tinyattn: '' is no name of a file."),
    (["demo", "--vectors", "."], "was expected; this is a folder."),
])
def test_what_cannot_be_done_ends_with_2_and_words_on_stderr(words: list[str], said: str, tmp_path: Path) -> None:
    if "--out" not in words and words[0] == "demo":
        words = [*words, "--out", str(tmp_path)]
    done = tinyattn(*words)
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr and done.stdout == ""


def test_help_of_the_demo_names_every_option(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["demo", "--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    for option in ("sentence", "word", "position", "corpus", "vectors", "out", "width", "seed", "ascii"):
        assert f"--{option}" in out


def command(monkeypatch: pytest.MonkeyPatch, error: BaseException | None = None, code: int = 0) -> list[list[str]]:
    """Put a command in place of the lessons, which raises or returns."""
    calls: list[list[str]] = []

    def learn(words: list[str]) -> int:
        calls.append(list(words))
        if error is not None:
            raise error
        return code

    monkeypatch.setitem(sys.modules, "tinyattn.learn.command", types.SimpleNamespace(main=learn))
    return calls


def test_learn_gets_its_own_words_and_gives_its_own_code(monkeypatch) -> None:
    calls = command(monkeypatch, code=1)
    assert cli.main(["learn", "10", "--all"]) == 1 and calls == [["10", "--all"]]


@pytest.mark.parametrize(("error", "code", "said"), [
    (KeyboardInterrupt(), 130, "\nStopped.\n"),
    (ta.DataFileError("no word", "a.conllu", 3), 2, "tinyattn: a.conllu, line 3: no word\n"),
    (OSError(28, "No space left on device", "x.svg"), 2, "tinyattn: x.svg: No space left on device\n"),
    (OSError("odd"), 2, "tinyattn: odd\n"),
], ids=["Ctrl-C", "a wrong file", "a full disk", "an odd error"])
def test_errors_become_words(error, code: int, said: str, monkeypatch, capsys) -> None:
    command(monkeypatch, error)
    assert cli.main(["learn"]) == code
    assert capsys.readouterr().err == said


def test_a_mistake_in_the_program_itself_keeps_its_stack_trace(monkeypatch) -> None:
    command(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        cli.main(["learn"])


def test_a_missing_library_is_named_with_what_to_write(monkeypatch, capsys, tmp_path: Path) -> None:
    def run(options: object) -> int:
        raise ModuleNotFoundError("No module named 'sympy'", name="sympy")

    monkeypatch.setattr("tinyattn.demo.run", run)
    assert cli.main(["demo", "--out", str(tmp_path)]) == 2
    assert "pip install sympy" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="there is no head")
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    script = ("import sys; from tinyattn import cli; cli._COMMANDS['learn'] = "
              "lambda words: [print('x' * 80) for _ in range(100_000)] and 0; sys.exit(cli.main(['learn']))")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment)
    assert child.stdout.readline().startswith(b"xxx")
    child.stdout.close()
    err = child.stderr.read()
    child.stderr.close()
    assert child.wait(timeout=60) == 141 and err == b""
