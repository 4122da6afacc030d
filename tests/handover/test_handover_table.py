"""The table: every operation of the rule book is in it, and means there what it means here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from handover.agree import FEW, TIGHT, far, graph_loss
from support import altered

import tinyattn as ta
from tinyattn import handover
from tinyattn.handover.keys import read
from tinyattn.handover.table import TABLE
from tinyattn.handover.words import NumPyWords, Words
from tinyattn.ops import REGISTRY

CALLS = [(name, at) for name, op in REGISTRY.items() for at in range(len(op.sample(np.random.default_rng(0))))]


def test_every_record_has_a_saying() -> None:
    assert set(REGISTRY) == set(TABLE)


@pytest.mark.parametrize("words", [Words, NumPyWords])
@pytest.mark.parametrize(("name", "at"), CALLS)
def test_an_operation_means_the_same_in_the_words_of_the_standard_and_of_numpy(words: Any, name: str, at: int) -> None:
    inputs, params = REGISTRY[name].sample(np.random.default_rng(5))[at]
    y = ta.apply(REGISTRY[name], tuple(map(ta.tensor, inputs)), params)
    f = handover.to_function(y)
    f.words = words(np)
    assert far(f(f.parameters), y) < TIGHT


@pytest.mark.parametrize("name", REGISTRY)
def test_an_operation_is_said_in_the_words_of_the_standard_and_no_others(name: str) -> None:
    """array-api-strict has the standard's functions, and refuses whatever the standard does not promise."""
    strict = pytest.importorskip("array_api_strict")
    for inputs, params in REGISTRY[name].sample(np.random.default_rng(5)):
        y = ta.apply(REGISTRY[name], tuple(map(ta.tensor, inputs)), params)
        f = handover.to_function(y, strict)
        assert far(np.asarray(f(f.parameters)), y) < TIGHT


@pytest.mark.parametrize("seed", FEW)
def test_a_random_graph_is_too(seed: int) -> None:
    strict, y = pytest.importorskip("array_api_strict"), graph_loss(seed)
    f = handover.to_function(y, strict)
    assert far(np.asarray(f(f.parameters)), y) < TIGHT


def test_a_wrong_saying_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    y = ta.softmax(ta.tensor([[1.0, 2.0], [3.0, 5.0]]), axis=0)
    monkeypatch.setitem(TABLE, "softmax", lambda w, x, axis, keep: w.softmax(x, 1))
    f = handover.to_function(y)
    assert far(f(f.parameters), y) > 0.1


KEYS = [
    1, -1, (0, 2), slice(None, None, -1), (slice(2, 0, -1), slice(None)), (Ellipsis, 1), (None, 1), (1, None, Ellipsis),
    np.array([2, 0, -1]), np.array([[0, 1], [2, 2]]), (slice(None), np.array([1, 0])), (Ellipsis, np.array([[3, 0]])),
    (np.array([0, 1]), np.array([2, 1])), (np.array([[0], [1]]), np.array([2, 1])), (0, slice(None), np.array([1, 3])),
    (np.array([0, 2]), slice(None), np.array([1, 3])), (slice(0, 2), np.array([0, 2]), 1), (None, np.array([1, 2]), 0),
    (np.array([1, 0]), None, np.array([1, 1])), (slice(None), np.array([1, 0]), np.array([1, 1])),
    np.array([True, False, True]), (slice(None), np.array([True, False, True])), (np.array([1]), Ellipsis, None),
    np.arange(9).reshape(3, 3) % 2 == 0, np.zeros(0, int), (Ellipsis, np.array([0, 1]), slice(1, None, 2)),
]  # fmt: skip


@pytest.mark.parametrize("words", [Words, NumPyWords])
@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_a_key_reads_what_numpy_reads(words: Any, key: Any) -> None:
    x = np.arange(36.0).reshape(3, 3, 4)
    got = read(words(np), x, key)
    assert got.shape == x[key].shape and (got == x[key]).all()


def test_the_series_of_the_error_function_is_right_to_the_last_digits() -> None:
    x = np.concatenate([np.linspace(-8, 8, 401), [0.0, 1e-300, -1e-9, 40.0]])
    want = np.array([math.erf(each) for each in x])
    np.testing.assert_allclose(Words(np).erf(x), want, rtol=2e-15, atol=0)
    assert np.isnan(Words(np).erf(np.array([np.nan]))).all()


SUBSCRIPTS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ii->i", (3, 3)),
    ("ii->", (3, 3)),
    ("iij->ji", (2, 2, 3)),
    ("i,j->ij", (2,), (3,)),
    ("ij,kj,k->i", (2, 3), (4, 3), (4,)),
    ("ijji->ij", (2, 3, 3, 2)),
    (",i->i", (), (3,)),
]


@pytest.mark.parametrize("call", SUBSCRIPTS, ids=lambda call: call[0])
def test_einsum_from_simpler_words_is_einsum(call: tuple[Any, ...], rng: np.random.Generator) -> None:
    text, *shapes = call
    parts = [rng.normal(size=shape) for shape in shapes]
    np.testing.assert_allclose(Words(np).einsum(text, *parts), np.einsum(text, *parts), rtol=1e-13)


# -- operations of one's own -------------------------------------------------------------------------------------------


def test_an_operation_without_a_saying_is_named_with_what_to_write() -> None:
    own = altered(REGISTRY["exp"], name="softsign")
    y = ta.apply(own, (ta.tensor([1.0, 2.0]),))
    with pytest.raises(ta.GraphError, match=r"'softsign' \(y\)(.|\n)*handover.say\('softsign', lambda w, x: \.\.\.\)"):
        handover.to_function(y)


def test_an_operation_that_was_said_is_handed_over() -> None:
    own = altered(REGISTRY["exp"], name="softsign", forward=lambda x: x / (1 + np.abs(x)))
    handover.say("softsign", lambda w, x: x / (1 + w.maximum(x, -x)))
    try:
        y = ta.apply(own, (ta.tensor([1.0, -2.0]),))
        f = handover.to_function(y)
        assert far(f(f.parameters), y) < TIGHT
        with pytest.raises(ta.ArgumentError, match="a saying of 'softsign' already"):
            handover.say("softsign", lambda w, x: x)
    finally:
        del TABLE["softsign"]


def test_an_operation_without_a_saying_goes_by_its_composed_form() -> None:
    own = altered(REGISTRY["scaled_dot_product_attention"], name="attention of my own")
    rng = np.random.default_rng(2)
    q, k, v = (ta.tensor(rng.normal(size=(2, 3, 4)), name=name) for name in "qkv")
    y = ta.apply(own, (q, k, v), (rng.random((3, 3)) < 0.7, True, None))
    f = handover.to_function(y)
    assert far(f(f.parameters), y) < TIGHT

    def attend(q: ta.Tensor, keep: np.ndarray) -> ta.Tensor:
        return ta.apply(own, (q, q, q), (keep, False, None))

    keep = np.tri(3, dtype=bool)
    g = handover.to_function(attend, np, q, keep, dynamic={"q": (None, "n", None), "keep": ("n", "n")})
    other, mask = rng.normal(size=(2, 2, 4)), np.array([[True, False], [True, True]])
    assert far(g({}, other, mask), attend(ta.tensor(other), mask)) < TIGHT
