"""Worked cases from public bug reports, in the folder that TINYATTN_SHARED points to.

Each case lists the answers that reasonable engines give; the first is the best one.  Here the first is
required, except where the documented decisions of tinyattn lead to another.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections import Counter
from pathlib import Path

import cases_adapter
import pytest
from repository import script

import tinyattn as ta

FOLDER = os.environ.get("TINYATTN_SHARED")
NAMES = {name: thing for name, thing in vars(cases_adapter).items() if not name.startswith("_")}

DECIDED = {
    # mean over no axis gives as many numbers as went in, and backward of several numbers asks for a seed
    "mean-empty-tuple": 3,
}
"""Where a decision of ours makes another accepted answer the right one: case and number of the answer."""

LIBRARIES = {"drawing": "graphviz", "symbolic": "sympy"}


def all_cases():
    if FOLDER is None:
        return []
    return json.loads((Path(FOLDER) / "cases" / "cases.json").read_text(encoding="utf-8"))["cases"]


CASES = all_cases()


@pytest.fixture(scope="module")
def runner(shared):
    return script(shared / "cases" / "run_cases.py")


def lacking(case):
    """Why a case cannot be run; empty when it can."""
    missing = [name for name in case["uses"] if name not in NAMES]
    if missing:
        return f"not offered yet: {', '.join(missing)}"
    library = LIBRARIES.get(case["theme"])
    if library and importlib.util.find_spec(library) is None:
        return f"{library} is not installed"
    return ""


def answer(case):
    return [case["expect"][DECIDED.get(case["id"], 0)]]


@pytest.mark.skipif(FOLDER is None, reason="TINYATTN_SHARED does not point to the folder with the cases")
@pytest.mark.parametrize("case", CASES, ids=[f"{case['theme']}-{case['id']}" for case in CASES])
def test_case_gives_the_preferred_answer(case, runner):
    if why := lacking(case):
        pytest.skip(f"TINYATTN_SHARED: {why}")
    state, reason = runner.run_case({**case, "expect": answer(case)}, NAMES)
    if state == "skip":
        pytest.skip(f"TINYATTN_SHARED: {reason}")
    assert state == "pass", reason


def fused(q, k, v, keep=None, causal=False, scale=None):
    return ta.scaled_dot_product_attention(q, k, v, keep=keep, causal=causal, scale=scale)


WITH_ATTENTION = [case for case in CASES if "attention" in case["uses"]]


@pytest.mark.skipif(FOLDER is None, reason="TINYATTN_SHARED does not point to the folder with the cases")
@pytest.mark.parametrize("case", WITH_ATTENTION, ids=[case["id"] for case in WITH_ATTENTION])
def test_the_fused_form_of_attention_gives_the_same_answers(case, runner):
    state, reason = runner.run_case({**case, "expect": answer(case)}, {**NAMES, "attention": fused})
    assert state == "pass", reason


@pytest.mark.skipif(FOLDER is None, reason="TINYATTN_SHARED does not point to the folder with the cases")
def test_how_many_cases_are_skipped_is_said(capsys):
    skipped = Counter(case["theme"] for case in CASES if lacking(case))
    with capsys.disabled():
        by_theme = ", ".join(f"{theme} {count}" for theme, count in sorted(skipped.items())) or "none"
        print(f"\ncases: {len(CASES)}, of which skipped: {skipped.total()} ({by_theme})")
    assert skipped.total() < len(CASES) / 4


@pytest.mark.skipif(FOLDER is None, reason="TINYATTN_SHARED does not point to the folder with the cases")
def test_a_decision_of_ours_names_a_case_and_one_of_its_other_answers():
    counts = {case["id"]: len(case["expect"]) for case in CASES}
    assert all(0 < number < counts[name] for name, number in DECIDED.items())


@pytest.mark.skipif(FOLDER is None, reason="TINYATTN_SHARED does not point to the folder with the cases")
def test_the_runner_notices_a_wrong_gradient(runner):
    """An engine that forgets the second use of x must fail the case about it."""
    case = next(case for case in CASES if case["id"] == "reuse-operand-twice")
    forgetful = {**NAMES, "grad": lambda t: NAMES["grad"](t) / 2}
    assert runner.run_case(case, forgetful)[0] == "fail"
