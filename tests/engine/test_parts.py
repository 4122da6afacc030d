"""A batch in parts gives the gradients of the whole, to the same bits with threads or without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.kernels import threads


@pytest.fixture(autouse=True)
def as_before() -> Any:
    before = threads.setting.most
    yield
    threads.setting.most = before


def model_and_batch(dtype: str = "float64") -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    model = ta.nn.TransformerBlock(8, 2, rng=0, fused=True)
    for p in model.parameters():
        p.assign(p.data + 0.1 * rng.normal(size=p.shape))
    return model, rng.normal(size=(7, 5, 8)).astype(dtype), rng.normal(size=(7, 5, 8)).astype(dtype)


def gradients(model: Any) -> list[Any]:
    found = [p.grad for p in model.parameters()]
    for p in model.parameters():
        p.zero_grad()
    return found


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_gradients_are_those_of_the_whole_batch(parts: int, reduction: str) -> None:
    model, x, y = model_and_batch()

    def loss_of(x: Any, y: Any) -> ta.Tensor:
        apart = (model(x) - y) ** 2
        return ta.mean(apart) if reduction == "mean" else ta.sum(apart)

    whole = loss_of(x, y)
    whole.backward()
    right = gradients(model)
    loss = ta.backward_in_parts(loss_of, x, y, parts=parts, reduction=reduction)
    assert loss.item() == pytest.approx(whole.item(), rel=1e-13) and not loss.requires_grad
    for mine, other in zip(gradients(model), right, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-12)


def test_threads_change_no_bit() -> None:
    model, x, y = model_and_batch("float32")
    found = []
    for most in (1, 2, 4, None):
        ta.set_threads(most)
        loss = ta.backward_in_parts(lambda x, y: ta.mse(model(x), y), x, y, parts=4)
        found.append([loss.data.tobytes(), *(g.tobytes() for g in gradients(model))])
    assert all(other == found[0] for other in found)


def test_a_leaf_of_the_batch_gets_its_own_gradient() -> None:
    w = ta.tensor([2.0, 3.0], requires_grad=True)
    x = ta.tensor(np.arange(10.0).reshape(5, 2), requires_grad=True)
    ta.backward_in_parts(lambda x: ta.sum(x * x * w), x, reduction="sum", parts=3)
    assert x.grad is not None and w.grad is not None
    np.testing.assert_allclose(x.grad, 2 * x.data * w.data)
    np.testing.assert_allclose(w.grad, (x.data**2).sum(0))


def test_gradients_add_up_until_they_are_cleared_as_with_backward() -> None:
    w = ta.tensor(2.0, requires_grad=True)
    for _ in range(2):
        ta.backward_in_parts(lambda x: ta.mean(x * w), np.array([1.0, 3.0]))
    assert w.grad is not None and w.grad == 4.0


def test_a_parameter_that_only_some_parts_use_gets_what_these_give() -> None:
    w, u = ta.tensor(2.0, requires_grad=True), ta.tensor(5.0, requires_grad=True)
    ta.backward_in_parts(
        lambda x: ta.sum(x * (w if x[0] > 0 else u)), np.array([1.0, -3.0]), reduction="sum"
    )  # fmt: skip
    assert w.grad == 1.0 and u.grad == -3.0


def test_a_scope_outside_holds_inside() -> None:
    w = ta.tensor(2.0, requires_grad=True)
    seen = []

    def loss_of(x: Any) -> ta.Tensor:
        product = x * w
        seen.append(product.scope)
        return ta.sum(product)

    with ta.scope("step"):
        ta.backward_in_parts(loss_of, np.ones(4), parts=4)
    assert seen == [("step",)] * 4


def test_a_part_that_fails_leaves_every_gradient_as_it_was() -> None:
    w = ta.tensor([1.0, 1.0], requires_grad=True)

    def loss_of(x: Any) -> ta.Tensor:
        return ta.sum(w * x) if x[0, 0] == 0 else ta.sum(w * np.ones(3))

    with pytest.raises(ta.ShapeError):
        ta.backward_in_parts(loss_of, np.arange(4.0).reshape(2, 2))
    assert w.grad is None


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda f, w: ta.backward_in_parts(f, np.ones(3), np.ones(4)), ta.ShapeError, "shapes"),
        (lambda f, w: ta.backward_in_parts(f), ta.ShapeError, "of nothing"),
        (lambda f, w: ta.backward_in_parts(f, np.ones((0, 2))), ta.ShapeError, "at least 1"),
        (lambda f, w: ta.backward_in_parts(f, np.ones(3), parts=0), ta.ArgumentError, "parts=0"),
        (lambda f, w: ta.backward_in_parts(f, np.ones(3), reduction="max"), ta.ArgumentError, "'max'"),
        (lambda f, w: ta.backward_in_parts(lambda x: 1.0, np.ones(3)), ta.ArgumentTypeError, "gave float"),
        (lambda f, w: ta.backward_in_parts(lambda x: w * x, np.ones(4)), ta.ArgumentTypeError, "shape"),
        (lambda f, w: ta.backward_in_parts(f, w * np.ones(3)), ta.ArgumentError, "not a leaf"),
        (
            lambda f, w: ta.backward_in_parts(lambda x: ta.sum(ta.tensor(x)), np.ones(3)),
            ta.GraphError,
            "does not depend on anything",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_words(call: Any, kind: type[Exception], text: str) -> None:
    w = ta.tensor(1.0, requires_grad=True)
    with pytest.raises(kind, match=text):
        call(lambda x: ta.sum(x * w), w)
    assert w.grad is None
