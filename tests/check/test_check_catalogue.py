"""The catalogue of faults: every rule of the rule book made wrong in several ways, and each of them found and blamed.

A fault counts when it changes the rule: those that give the same numbers as the right rule, such as turning round a
gradient that is the same everywhere, are listed and must be few.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from support import altered

import tinyattn as ta
from tinyattn.check import check_gradients
from tinyattn.ops import REGISTRY, Op


def _shifted(c):
    return np.roll(c, 1, axis=-1) if c.ndim else c + 0.5


def _turned(c):
    return c[::-1] if c.ndim else c * 1.5


def _one_entry(c):
    out = np.array(c)
    if out.size:
        out.reshape(-1)[out.size // 2] *= 1.001
        out.reshape(-1)[out.size // 2] += 1e-4
    return out


MUTATIONS = {
    "sign": lambda c, g: -c,
    "twice": lambda c, g: c * 2,
    "off by a thousandth": lambda c, g: c * 1.001,
    "nothing": lambda c, g: c * 0,
    "shifted": lambda c, g: _shifted(c),
    "turned round": lambda c, g: _turned(c),
    "one entry": lambda c, g: _one_entry(c),
    "something added": lambda c, g: c + 0.01,
}


def mutant(op: Op, slot: int, change) -> Op:
    """A copy of an op whose rule for one input is wrong."""

    def made_wrong(c, g):
        return (
            c if c is None else np.asarray(change(np.asarray(c), g), dtype=np.asarray(c).dtype).reshape(np.shape(c))[()]
        )

    if isinstance(op.vjps, tuple):
        rules = list(op.vjps)
        right = rules[slot]
        rules[slot] = lambda g, y, *rest: made_wrong(right(g, y, *rest), g)
        return altered(op, vjps=tuple(rules))
    joint = op.vjps

    def wrong(g, y, *rest):
        made = list(joint(g, y, *rest))
        made[slot] = made_wrong(made[slot], g)
        return tuple(made)

    return altered(op, vjps=wrong)


def slots_of(op: Op) -> range:
    inputs, _ = op.sample(np.random.default_rng(0))[0]
    return range(len(inputs) if not isinstance(op.vjps, tuple) else sum(rule is not None for rule in op.vjps))


FAULTS = [
    (name, slot, mutation)
    for name, op in REGISTRY.items()
    if op.differentiable
    for slot in slots_of(op)
    for mutation in MUTATIONS
]


def pulled(op: Op, g, inputs, params):
    result = op.forward(*inputs, *params)
    y, saved = result if op.saves else (result, None)
    return op.pull(g, y, saved, list(inputs), params, [True] * len(inputs))


def changes(right: Op, wrong: Op, slot: int, inputs, params) -> bool:
    """Whether a fault is one at all at this call: asked of the two rules themselves, not of the checker."""
    rng = np.random.default_rng(3)
    g = np.asarray(rng.normal(size=np.shape(right(*inputs, *params))))[()]
    a, b = (np.asarray(pulled(op, g, inputs, params)[slot]) for op in (right, wrong))
    return not np.allclose(a, b, rtol=1e-9, atol=1e-12)


def in_company(op: Op, params):
    """The op between others, so that it has to be told from them."""

    def f(*xs):
        moved = [x * 1.0 + 0.0 for x in xs]
        return ta.tanh(ta.apply(op, tuple(moved), params)) * 0.5

    return f


def call_of(op: Op, wrong: Op, slot: int):
    """The first of the op's own samples at which the fault is one; None when there is none."""
    for inputs, params in op.sample(np.random.default_rng(11)):
        inputs = tuple(np.asarray(x, dtype=float) for x in inputs)
        if slot < len(inputs) and changes(op, wrong, slot, inputs, params):
            return inputs, params
    return None


def test_the_catalogue_is_large():
    assert len(FAULTS) >= 120


def run(fault):
    name, slot, mutation = fault
    op = REGISTRY[name]
    wrong = mutant(op, slot, MUTATIONS[mutation])
    call = call_of(op, wrong, slot)
    if call is None:
        return "same"
    inputs, params = call
    report = check_gradients(in_company(wrong, params), *inputs, order=1, modes=("reverse",))
    if report:
        return "missed"
    return "blamed" if report.blame is not None and report.blame.op == name else "found"


@pytest.mark.parametrize("name", sorted({name for name, _, _ in FAULTS}))
def test_every_fault_of_an_op_is_found_and_blamed_on_it(name):
    outcome = {fault: run(fault) for fault in FAULTS if fault[0] == name}
    wrong = [fault for fault, what in outcome.items() if what not in ("same", "blamed")]
    assert wrong == []
    assert Counter(outcome.values())["same"] <= len(outcome) / 2
