"""Large products are split on our threads: the same numbers, the same bits with threads or without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.kernels import blas, products, small, threads


@pytest.fixture(autouse=True)
def as_before() -> Any:
    before = threads.setting.most
    yield
    threads.setting.most = before


SHAPES = [((300, 200), (200, 400)), ((2048, 64), (64, 64)), ((3, 5000), (5000, 900)), ((5, 300, 100), (5, 100, 200)),
          ((2, 3, 200, 100), (2, 3, 100, 200)), ((4, 250, 100), (100, 300)), ((80, 60), (60, 80))]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_a_large_product_is_the_product_to_the_same_bits_with_any_number_of_threads(shapes: Any, dtype: str) -> None:
    a, b = (np.random.default_rng(0).normal(size=shape).astype(dtype) for shape in shapes)
    found = []
    for most in (1, 2, 5, None):
        ta.set_threads(most)
        found.append(small.matrix_product(a, b))
    right = a.astype(float) @ b.astype(float)
    assert found[0].dtype == dtype
    np.testing.assert_allclose(found[0], right, rtol=0, atol={"float32": 2e-3, "float64": 1e-11}[dtype])
    assert all(x.tobytes() == found[0].tobytes() for x in found)


def test_transposed_matrices_are_split_too() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(500, 300)), rng.normal(size=(400, 300))
    np.testing.assert_allclose(small.matrix_product(a, b.T), a @ b.T, rtol=0, atol=1e-11)
    np.testing.assert_allclose(small.matrix_product(b.T, b), b.T @ b, rtol=0, atol=1e-11)


def test_a_product_inside_a_part_is_not_split_again(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.random.default_rng(2).normal(size=(600, 600))
    inside: list[Any] = []
    threads.run(lambda _: inside.append(products.product(a, a)), range(1))
    asked: list[Any] = []
    monkeypatch.setattr(threads, "run", lambda work, parts: asked.append([work(part) for part in parts]))
    small.inside.now = True
    try:
        products.product(a, a)
    finally:
        small.inside.now = False
    assert asked == []
    products.product(a, a)
    assert len(asked) == 1 and len(asked[0]) == 8
    np.testing.assert_allclose(inside[0], a @ a, rtol=0, atol=1e-10)


def test_the_blas_has_one_thread_meanwhile_and_its_own_number_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [6]
    monkeypatch.setattr(blas, "control", lambda: (lambda: told[-1], told.append))
    a = np.ones((100, 100))
    products.product(a, a)
    assert told == [6, 1, 6]


def test_shapes_that_do_not_fit_are_refused_as_ever() -> None:
    with pytest.raises(ValueError):
        small.matrix_product(np.ones((300, 300)), np.ones((200, 300)))
    with pytest.raises(ta.ShapeError, match="matmul"):
        ta.matmul(np.ones((300, 300)), np.ones((200, 300)))


def test_other_dtypes_take_the_plain_way() -> None:
    for dtype in (np.int64, np.float16, complex):
        a = np.ones((80, 80), dtype)
        assert (small.matrix_product(a, a) == 80).all() and small.matrix_product(a, a).dtype == dtype
    mixed = small.matrix_product(np.ones((80, 80), np.float32), np.ones((80, 80)))
    assert mixed.dtype == np.float64


def test_an_array_is_taken_over_only_when_nobody_else_holds_it() -> None:
    found = {"a": np.ones(3), "b": np.ones(3)}
    other, part = found["b"], np.ones((2, 2))[0]
    a, b = found.pop("a"), found.pop("b")
    assert small.owned(a) is a
    assert small.owned(b) is not b and other is b
    assert small.owned(part) is not part  # a view: somebody may hold what it looks at
    a.flags.writeable = False
    assert small.owned(a) is not a
    assert small.owned(np.float64(2)).shape == ()


def test_a_gradient_shares_its_memory_with_nothing() -> None:
    x = ta.tensor(np.ones((40, 30)), requires_grad=True)
    u, v = ta.tensor(np.zeros((40, 30)), requires_grad=True), ta.tensor(np.zeros((30, 40)), requires_grad=True)
    seed = np.ones((40, 30))
    y = (x + u) + v.mT
    y.backward(seed)
    grads = [leaf.grad for leaf in (x, u, v)]
    for i, one in enumerate(grads):
        assert one is not None and one.flags.writeable
        assert not any(np.shares_memory(one, other) for other in [*grads[:i], seed, x.data, u.data, v.data, y.data])
