"""The definitions as oracles: formulas and SymPy, which know no rule and no forward."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.check import check_gradients
from tinyattn.ops import REGISTRY, Op

OPS = [op for op in REGISTRY.values() if op.name not in ("cast", "size_of")]
SOFTMAX = "y[..., i] = exp(x[..., i]) / sum_j exp(x[..., j])"
SCORES = np.array([[0.5, -1.0, 2.0], [1.5, 0.2, -0.3]])


def softmax(x):
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


def right(g, y, x):
    return y * (g - (g * y).sum(axis=-1, keepdims=True))


def diagonal(g, y, x):
    return g * y * (1 - y)


def oracles_of(report):
    return {row.oracle for row in report.rows}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_rule_agrees_with_its_formula(op):
    report = check_gradients(op, order=1, modes=("reverse",), oracles=("formula",))
    assert report and not any("otherwise" in note for note in report.notes)
    assert "formula" in oracles_of(report) or any("formula was not asked" in note for note in report.notes)


@pytest.mark.parametrize(
    "name", ["multiply", "tanh", "sigmoid", "relu", "sum", "softmax", "matmul", "index", "concatenate"]
)
def test_and_with_what_sympy_makes_of_its_definition(name):
    report = check_gradients(REGISTRY[name], order=1, modes=("reverse",), oracles=("sympy",))
    assert report and "SymPy" in oracles_of(report) and "formula" not in oracles_of(report)


def test_attention_agrees_with_both(rng):
    q, k, v = (rng.normal(size=(2, 2)) for _ in range(3))
    attend = lambda q, k, v: ta.softmax(q @ k.mT) @ v
    report = check_gradients(attend, q, k, v, order=1, oracles=("formula", "sympy"))
    assert report and {"formula", "SymPy", "differences"} <= oracles_of(report)
    single = check_gradients(attend, *(x.astype(np.float32) for x in (q, k, v)), order=1)
    assert single and "formula" in oracles_of(single)


def test_both_see_a_wrong_rule_and_sympy_takes_sides():
    report = ta.check_rule(softmax, diagonal, SCORES, definition=SOFTMAX, oracles=("formula", "sympy"))
    failed = {row.oracle for row in report.rows if not row.passed}
    assert report.verdict == "wrong" and {"formula", "SymPy"} <= failed
    assert report.blame.sympy == pytest.approx(report.blame.expected, rel=1e-8)
    assert "as the forward says" in str(report)
    assert json.loads(json.dumps(report.as_dict()))["blame"]["sympy"] == report.blame.sympy


def test_a_forward_that_is_not_its_definition_is_told_from_a_wrong_rule():
    doubled = lambda x: softmax(2 * x)
    rule_of_the_definition = lambda g, y, x: right(g, softmax(x), x)
    report = ta.check_rule(doubled, rule_of_the_definition, SCORES, definition=SOFTMAX)
    assert report.verdict == "wrong" and "it is the forward that does not compute its definition" in str(report)
    report = ta.check_rule(doubled, lambda g, y, x: 2 * right(g, y, x), SCORES, definition=SOFTMAX)
    assert report.verdict == "wrong" and report.mistake == "forward differs from its definition"
    assert report.blame.entry and "first wrong forward" in str(report)


def test_neither_is_said_when_all_three_differ():
    report = ta.check_rule(lambda x: softmax(2 * x), diagonal, SCORES, definition=SOFTMAX)
    assert "which is neither" in str(report)


def test_what_cannot_be_asked_is_noted_only_when_it_was_named(rng):
    nameless = Op("nameless", np.exp, (lambda g, y, x: g * y,), "", sample=lambda rng: [((rng.normal(size=3),), ())])
    assert not any("not asked" in note for note in check_gradients(nameless).notes)
    notes = check_gradients(nameless, oracles=("formula", "sympy")).notes
    assert "SymPy was not asked: nameless has no definition" in notes
    large = check_gradients(lambda x: ta.tanh(x), rng.normal(size=(40, 40)), order=1, oracles=("sympy",))
    assert large and any("numbers, more than" in note for note in large.notes)


def test_an_unknown_oracle_is_refused():
    for wrong in ("sympy", ("delphi",)):
        with pytest.raises(ta.ArgumentError, match="oracles="):
            check_gradients(ta.exp, SCORES, oracles=wrong)


def test_sympy_is_not_imported_by_a_check_that_passes(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys, numpy as np, tinyattn as ta\n"
        "assert ta.check_gradients(lambda x: ta.softmax(x), np.eye(2))\n"
        "assert 'sympy' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ta.__path__[0] + "/..", check=False).returncode == 0
