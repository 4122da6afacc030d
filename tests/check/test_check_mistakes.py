# ruff: noqa: E501 - a table reads best with one line for each case
"""Classic mistakes in gradients written by hand, each in the words of somebody who makes it, and its name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.check import check_gradients, check_rule

RNG = np.random.default_rng(42)
X = RNG.normal(size=(3, 3))
POSITIVE = RNG.uniform(0.5, 2.0, (2, 3))
A, B = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))
TARGETS = np.array([2, 0, 1])
KEEP = np.array([[True, True, False], [True, False, True], [True, True, True]])
ROWS = np.array([0, 2, 2, 1, 2])


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def masked_softmax(x):
    e = np.where(KEEP, np.exp(x - x.max(axis=-1, keepdims=True)), 0.0)
    return e / e.sum(axis=-1, keepdims=True)


def masked_afterwards(g, y, x):
    p = softmax(x)
    g = np.where(KEEP, g, 0.0)
    return p * (g - (g * p).sum(axis=-1, keepdims=True))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def relu(x):
    return np.where(x > 0, x, 0.0)


def lookup(table):
    return table[ROWS]


def lookup_backward(g, table):
    out = np.zeros_like(table)
    out[ROWS] = g
    return out


def cross_entropy(x):
    shifted = x - x.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return -(log_p * np.eye(3)[TARGETS]).sum() / 3


def layer_norm(x):
    centred = x - x.sum(axis=-1, keepdims=True) / 3
    variance = (centred * centred).sum(axis=-1, keepdims=True) / 3
    return centred / np.sqrt(variance + 1e-5)


def spread_of(x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


def layer_norm_without_variance(g, y, x):
    return (g - g.mean(axis=-1, keepdims=True)) * spread_of(x)


def scores(q, k):
    return q @ k.mT / np.sqrt(3)


@dataclass(frozen=True)
class Classic:
    said: str
    forward: Any
    backward: Any
    sample: Any
    name: str

    def __str__(self) -> str:
        return self.said.replace(" ", "-")


CLASSICS = [
    Classic("softmax diagonal", softmax, lambda g, y, x: g * y * (1 - y), X, "only the diagonal of the softmax Jacobian"),
    Classic("softmax like exp", softmax, lambda g, y, x: g * y, X, "softmax without its correction"),
    Classic("softmax summed down", softmax, lambda g, y, x: y * (g - (g * y).sum(axis=0)), X, "wrong axis"),
    Classic("softmax summed over all", softmax, lambda g, y, x: y * (g - (g * y).sum()), X, "wrong axis"),
    Classic("mask after softmax", masked_softmax, masked_afterwards, X, "mask applied after softmax"),
    Classic("matmul left not transposed", lambda a, b: a @ b, lambda g, a, b: (g @ b, a.T @ g), (A, B), "transposed"),
    Classic("matmul right not transposed", lambda a, b: a @ b, lambda g, a, b: (g @ b.T, a @ g), (A, B), "transposed"),
    Classic("matmul factors in the wrong order", lambda a, b: a @ b, lambda g, a, b: (b.T @ g, a.T @ g), (A, B), "transposed"),
    Classic("matmul gradients exchanged", lambda a, b: a @ b, lambda g, a, b: (a.T @ g, g @ b.T), (A, B), "gradients exchanged"),
    Classic("result transposed", lambda a, b: a @ b, lambda g, a, b: ((g @ b.T).T, a.T @ g), (A, B), "transposed"),
    Classic("bias not summed", lambda x, b: x + b, lambda g, x, b: (g, g), (X, X[0]), "missing sum over a broadcast axis"),
    Classic("bias of one row", lambda x, b: x + b, lambda g, x, b: (g, g[0]), (X, X[0]), "missing sum over a broadcast axis"),
    Classic("scale of the last row", lambda x, s: x * s, lambda g, x, s: (g * s, (g * x)[-1]), (X, X[0]), "missing sum over a broadcast axis"),
    Classic("bias averaged", lambda x, b: x + b, lambda g, x, b: (g, g.mean(axis=0)), (X, X[0]), "averaged instead of summed"),
    Classic("mean without n", lambda x: x.mean(), lambda g, x: g * np.ones_like(x), X, "gradient of the mean without 1/n"),
    Classic("squared error without n", lambda p, t: ((p - t) ** 2).mean(), lambda g, p, t: (2 * (p - t) * g, -2 * (p - t) * g), (A, B), "gradient of the mean without 1/n"),
    Classic("cross entropy without n", cross_entropy, lambda g, x: g * (softmax(x) - np.eye(3)[TARGETS]), X, "gradient of the mean without 1/n"),
    Classic("squared error without 2", lambda p, t: ((p - t) ** 2).sum(), lambda g, p, t: ((p - t) * g, -(p - t) * g), (A, B), "off by a constant factor"),
    Classic("root without 2", lambda x: np.sqrt(x), lambda g, y, x: g / y, POSITIVE, "off by a constant factor"),
    Classic("scores not scaled", scores, lambda g, q, k: (g @ k, g.mT @ q), (A, B), "off by a constant factor"),
    Classic("embedding overwritten", lookup, lookup_backward, X, "overwritten instead of accumulated"),
    Classic("used twice counted once", lambda x: x * np.sin(x) + 0.5 * x, lambda g, x: 0.5 * g, X, "overwritten instead of accumulated"),
    Classic("minus forgotten", lambda a, b: a - b, lambda g, a, b: (g, g), (A, B), "sign"),
    Classic("quotient without minus", lambda a, b: a / b, lambda g, a, b: (g / b, g * a / b**2), (A, POSITIVE[0]), "missing sum over a broadcast axis"),
    Classic("reciprocal without minus", lambda x: 1 / x, lambda g, x: g / x**2, POSITIVE, "sign"),
    Classic("tanh of x", lambda x: np.tanh(x), lambda g, x: g * (1 - x**2), X, "slope taken at the wrong place"),
    Classic("sigmoid of x", sigmoid, lambda g, x: g * x * (1 - x), X, "slope taken at the wrong place"),
    Classic("exp gives x", lambda x: np.exp(x), lambda g, x: g * x, X, "slope taken at the wrong place"),
    Classic("chain rule forgotten", lambda x: np.tanh(x), lambda g, y, x: 1 - y**2, X, "incoming gradient left out"),
    Classic("slope forgotten", lambda x: np.exp(x), lambda g, x: g, X, "local slope left out"),
    Classic("relu turned round", relu, lambda g, x: np.where(x < 0, g, 0.0), X, "condition the wrong way round"),
    Classic("exponent not lowered", lambda x: x**3, lambda g, x: g * 3 * x**3, X, "wrong power"),
    Classic("log times", lambda x: np.log(x), lambda g, x: g * x, POSITIVE, "wrong power"),
    Classic("norm not divided", lambda x: np.sqrt((x * x).sum()), lambda g, x: g * x, X, "wrong power"),
    Classic("variance a constant", layer_norm, layer_norm_without_variance, X, "detached branch"),
    Classic("mean and variance constants", layer_norm, lambda g, y, x: g * spread_of(x), X, "detached branch"),
    Classic("product rule half", lambda x: x * np.tanh(x), lambda g, x: g * np.tanh(x), X, "detached branch"),
    Classic("input forgotten", lambda a, b: a * b, lambda g, a, b: (g * b, np.zeros_like(b)), (A, B), "detached branch"),
]  # fmt: skip


def found(classic: Classic):
    return check_rule(classic.forward, classic.backward, classic.sample)


@pytest.mark.parametrize("classic", CLASSICS, ids=str)
def test_a_classic_mistake_is_found(classic):
    report = found(classic)
    assert report.verdict == "wrong" and report.blame is not None
    assert str(report).splitlines()[0].endswith("the gradient is WRONG.")


def test_nine_of_ten_classic_mistakes_are_called_by_their_name():
    said = {str(classic): (found(classic).mistake, classic.name) for classic in CLASSICS}
    wrong = {title: pair for title, pair in said.items() if pair[0] != pair[1]}
    assert len(CLASSICS) >= 20
    assert len(wrong) <= len(CLASSICS) / 10, wrong


RIGHT = {
    "softmax": (softmax, lambda g, y, x: y * (g - (g * y).sum(axis=-1, keepdims=True)), X),
    "masked softmax": (masked_softmax, lambda g, y, x: y * (g - (g * y).sum(axis=-1, keepdims=True)), X),
    "matmul": (lambda a, b: a @ b, lambda g, a, b: (g @ b.T, a.T @ g), (A, B)),
    "bias": (lambda x, b: x + b, lambda g, x, b: (g, g.sum(axis=0)), (X, X[0])),
    "mean": (lambda x: x.mean(), lambda g, x: g * np.ones_like(x) / x.size, X),
    "cross entropy": (cross_entropy, lambda g, x: g * (softmax(x) - np.eye(3)[TARGETS]) / 3, X),
    "tanh": (lambda x: np.tanh(x), lambda g, y, x: g * (1 - y**2), X),
    "sigmoid": (sigmoid, lambda g, y, x: g * y * (1 - y), X),
    "relu": (relu, lambda g, x: np.where(x > 0, g, 0.0), X),
    "log": (lambda x: np.log(x), lambda g, x: g / x, POSITIVE),
    "one rule each": (lambda a, b: a * b, (lambda g, a, b: g * b, lambda g, a, b: g * a), (A, B)),
    "layer norm": (
        layer_norm,
        lambda g, y, x: spread_of(x) * (g - g.mean(axis=-1, keepdims=True) - y * (g * y).mean(axis=-1, keepdims=True)),
        X,
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_the_right_rule_passes(name):
    report = check_rule(*RIGHT[name])
    assert report, str(report)
    assert "WRONG" not in str(report)


def test_a_rule_that_is_right_but_not_decidable_exactly_says_so():
    """log_softmax by way of exp(y): right, but no identity of arithmetic."""
    log_softmax = lambda x: x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
    report = check_rule(log_softmax, lambda g, y, x: g - np.exp(y) * g.sum(axis=-1, keepdims=True), X)
    assert report and "not decidable exactly" in report.exact


def test_the_names_cover_what_is_promised():
    names = Counter(classic.name for classic in CLASSICS)
    assert {
        "transposed", "missing sum over a broadcast axis", "only the diagonal of the softmax Jacobian",
        "overwritten instead of accumulated", "off by a constant factor", "sign", "wrong axis", "detached branch",
        "gradient of the mean without 1/n", "mask applied after softmax",
    } <= set(names)  # fmt: skip


def test_a_detached_branch_of_tensors_is_named_with_its_line():
    report = check_gradients(lambda x: ta.sum(x**3 * 0.97 + (x**3).detach() * 0.03), np.array([1.5, -2.0]), order=1)
    assert report.mistake == "detached branch"
    assert report.blame.place.startswith("test_check_mistakes.py:")
