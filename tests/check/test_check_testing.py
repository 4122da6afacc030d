"""What users of pytest get: one line, a fixture, a marker, a readable failure; and other libraries' functions."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib

import numpy as np
import pytest
from repository import ROOT

import tinyattn as ta
from tinyattn.ops import REGISTRY
from tinyattn.testing import (
    GradientsDiffer,
    assert_gradients,
    assert_gradients_jax,
    assert_gradients_torch,
    assert_rule,
)

X = np.array([[0.5, -1.0, 0.2], [2.0, 0.3, -0.4]])


def test_a_right_gradient_gives_its_report_and_a_wrong_one_an_assertion_in_words():
    assert assert_gradients(REGISTRY["tanh"]).verdict == "right"
    with pytest.raises(AssertionError, match=r"(?s)WRONG.*detached branch"):
        assert_gradients(lambda x: x.detach() * x, X)


def test_a_rule_by_hand():
    assert assert_rule(np.exp, lambda g, y, x: g * y, X)
    with pytest.raises(GradientsDiffer) as caught:
        assert_rule(lambda x: x**2, lambda g, x: g * x, X)
    assert caught.value.gradient_report.mistake == "off by a constant factor"


LESSON = """
import numpy as np
import pytest
import tinyattn as ta

@pytest.mark.gradients(order=1)
def test_right(gradients):
    report = gradients(lambda q: ta.softmax(q @ q.mT), np.eye(3))
    assert max(row.order for row in report.rows) == 1

def test_wrong(gradients):
    gradients(lambda x: x.detach() * x, np.ones((2, 2)))
"""
NOTHING = "import sys\n\ndef test_nothing():\n    assert not {'tinyattn', 'numpy'} & set(sys.modules)\n"


def run_pytest(folder, text, *options):
    (folder / "test_lesson.py").write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONUTF8": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "pytest_tinyattn",
        "-p",
        "no:cacheprovider",
        *options,
        "test_lesson.py",
    ]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )


def test_the_plugin_gives_fixture_marker_and_a_readable_section(tmp_path):
    run = run_pytest(tmp_path, LESSON, "--strict-markers")
    assert "1 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert "gradient check" in run.stdout and "held against" in run.stdout
    assert "likely mistake: detached branch" in run.stdout
    assert "site-packages/tinyattn" not in run.stdout and "def assert_gradients" not in run.stdout


def test_the_plugin_imports_nothing_until_a_test_asks(tmp_path):
    run = run_pytest(tmp_path, NOTHING)
    assert "1 passed" in run.stdout, run.stdout


def test_the_plugin_is_announced_and_shipped():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"]["pytest11"]["tinyattn"] == "pytest_tinyattn"
    assert "pytest_tinyattn.py" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]


# -- functions of other libraries -------------------------------------------------------------------------------


@pytest.mark.torch
def test_torch_functions_modules_and_rules_of_ones_own():
    torch = pytest.importorskip("torch")
    report = assert_gradients_torch(lambda q, k: torch.softmax(q @ k.T, -1), X, torch.tensor(X))
    assert {(row.order, row.way) for row in report.rows} == {(o, w) for o in (1, 2) for w in ("reverse", "forward")}
    assert assert_gradients_torch(torch.nn.Linear(3, 2).double(), X)

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.softmax(x, -1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y * (1 - y)

    with pytest.raises(GradientsDiffer) as caught:
        assert_gradients_torch(Wrong.apply, X)
    assert caught.value.gradient_report.mistake == "only the diagonal of the softmax Jacobian"

    # Among other operations it is found by itself, with the line of its backward.
    mine = Wrong.apply
    with pytest.raises(GradientsDiffer) as caught:
        assert_gradients_torch(lambda q: torch.exp(mine(torch.tanh(q))).sum(), X)
    blame = caught.value.gradient_report.blame
    assert blame.op == "Wrong" and blame.place.startswith("test_check_testing.py:")
    assert caught.value.gradient_report.mistake == "only the diagonal of the softmax Jacobian"
    with pytest.raises(GradientsDiffer, match=r"(?s)first wrong gradient.*does not show the forwards"):
        assert_gradients_torch(lambda x: x.detach() * x, X)


@pytest.mark.torch
def test_torch_functions_that_say_they_can_be_differentiated_once_are_taken_at_their_word():
    torch = pytest.importorskip("torch")

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * g * x * x

    report = assert_gradients_torch(lambda x: Once.apply(x), X)
    assert any("order 2 is not looked at" in note and "once_differentiable" in note for note in report.notes)


@pytest.mark.torch
def test_torch_functions_that_compute_in_float32_are_told_so():
    torch = pytest.importorskip("torch")
    with pytest.raises(ta.ArgumentError, match=r"(?s)torch.float32.*too coarse"):
        assert_gradients_torch(lambda x: x.float() ** 2, torch.tensor(X))


def test_jax_functions_and_rules_of_ones_own():
    jax = pytest.importorskip("jax")
    assert assert_gradients_jax(lambda q, k: jax.nn.softmax(q @ k.T), X, X)

    @jax.custom_vjp
    def wrong(x):
        return jax.nn.softmax(x)

    wrong.defvjp(lambda x: (jax.nn.softmax(x),) * 2, lambda y, g: (g * y,))
    with pytest.raises(GradientsDiffer) as caught:
        assert_gradients_jax(wrong, X)
    assert caught.value.gradient_report.mistake == "softmax without its correction"

    with pytest.raises(GradientsDiffer) as caught:
        assert_gradients_jax(jax.jit(lambda q: wrong(jax.numpy.tanh(q)).sum(axis=-1)), X)
    blame = caught.value.gradient_report.blame
    assert blame.op == "wrong" and blame.place.startswith("test_check_testing.py:")
    assert caught.value.gradient_report.mistake == "softmax without its correction"
    with pytest.raises(GradientsDiffer, match=r"(?s)first wrong gradient.*does not show the forwards"):
        assert_gradients_jax(lambda x: jax.lax.stop_gradient(x) * x, X)

    @jax.custom_vjp
    def right(x):
        return jax.numpy.tanh(x)

    right.defvjp(lambda x: (jax.numpy.tanh(x),) * 2, lambda y, g: (g * (1 - y * y),))
    assert any("forward mode" in note for note in assert_gradients_jax(right, X).notes)


@pytest.mark.parametrize(
    ("function", "library"), [(assert_gradients_torch, "torch"), (assert_gradients_jax, "jax")], ids=["torch", "jax"]
)
def test_a_library_that_is_not_installed_is_named(function, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ta.MissingLibraryError, match=f"pip install {library}"):
        function(lambda x: x, X)
