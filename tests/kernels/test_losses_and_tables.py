"""Fast forms of cross entropy, looking up rows and GELU equal their plain forms, also where they must give way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinyattn.kernels import cross_entropy, gelu, scatter

ROWS, CLASSES = 40, 8


def _scores(kind: str, rng: np.random.Generator, dtype: str) -> Any:
    """Scores of which the kind says how far they lie from 0, row by row or in single entries."""
    x = rng.normal(size=(ROWS, CLASSES))
    if kind == "far up":
        x += 2000
    elif kind == "far down":
        x -= 2000
    elif kind == "one row far":
        x[3] += 500
    elif kind == "one entry far":
        x[5, 2] = 300
    elif kind == "one entry gone":
        x[5, 2] = -np.inf
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["near", "far up", "far down", "one row far", "one entry far", "one entry gone"])
@pytest.mark.parametrize(("ignore", "smoothing"), [(None, 0.0), (2, 0.0), (None, 0.1), (2, 0.1)])
def test_cross_entropy_with_and_without_a_shift_is_the_composed_one(
    kind: str, dtype: str, ignore: Any, smoothing: float, rng: np.random.Generator
) -> None:
    x, targets = _scores(kind, rng, dtype), rng.integers(0, CLASSES, ROWS)
    targets[5] = 3  # not the entry that is gone
    settings = (targets, ignore, smoothing, "none")
    found = cross_entropy.forward(x, *settings)[0]
    if smoothing and kind == "one entry gone":  # every class has some weight, so the loss is infinite
        assert found[5] == np.inf
        x, targets, found = np.delete(x, 5, 0), np.delete(targets, 5), np.delete(found, 5)
        settings = (targets, ignore, smoothing, "none")
    with np.errstate(invalid="ignore"):  # 0 times infinity, not chosen
        wanted = cross_entropy.composed(x.astype(np.float64), *settings)
    np.testing.assert_allclose(found, wanted, rtol=2e-6 if dtype == "float32" else 1e-13, atol=0)


def test_only_scores_near_0_go_without_a_shift() -> None:
    near, far = np.zeros((2, 4)), np.array([[0.0, 0, 0, 0], [0, 0, 0, 30]])
    assert cross_entropy.exponentials(near)[2] is near
    assert cross_entropy.exponentials(far)[2].max() == 0  # each row's largest


@pytest.mark.parametrize("places", [5, 48, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_are_added_at_few_places_and_at_many(places: int, dtype: str, rng: np.random.Generator) -> None:
    g, key = rng.normal(size=(30, 40, 16)).astype(dtype), rng.integers(-places, places, (30, 40))
    wanted = np.zeros((places, 16))
    np.add.at(wanted, key, g.astype(np.float64))
    found = scatter.scatter_add(g, key, (places, 16), basic=False)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_row_that_is_not_finite_spoils_its_own_place_only(wrong: float, rng: np.random.Generator) -> None:
    g, key = rng.normal(size=(1200, 16)), rng.integers(0, 10, 1200)
    key[7], g[7, 3] = 4, wrong
    found = scatter.scatter_add(g, key, (10, 16), basic=False)
    assert np.argwhere(~np.isfinite(found)).tolist() == [[4, 3]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gelu_in_several_pieces_is_gelu_in_one(dtype: str, rng: np.random.Generator, monkeypatch: Any) -> None:
    x = rng.normal(size=(37, 101)).astype(dtype) * 3
    whole = gelu.forward(x)
    monkeypatch.setattr(gelu, "PIECE", 1000 * x.itemsize)
    for found, wanted in zip(gelu.forward(x), whole, strict=True):
        assert np.array_equal(found, wanted)
    np.testing.assert_allclose(whole[0], gelu.composed(x), rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-7)
