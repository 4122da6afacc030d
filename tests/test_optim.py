"""Optimisers: by hand, against PyTorch, and what they refuse."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.optim import SGD, Adam, AdamW, Optimiser, clip_gradients, cosine, inverse_root


def leaf(*numbers: float) -> ta.Tensor:
    return ta.tensor(list(numbers), requires_grad=True)


def step(optimiser: Optimiser, w: ta.Tensor, gradient: list[float]) -> list[float]:
    w.grad = gradient
    optimiser.step()
    return w.tolist()


def test_sgd_by_hand() -> None:
    w = leaf(1.0, 2.0)
    assert step(SGD([w], lr=0.5), w, [2.0, -4.0]) == [0.0, 4.0]


def test_momentum_by_hand() -> None:
    w = leaf(0.0)
    optimiser = SGD([w], lr=1.0, momentum=0.5)
    assert step(optimiser, w, [1.0]) == [-1.0]  # u = 1
    assert step(optimiser, w, [1.0]) == [-2.5]  # u = 0.5 + 1
    assert step(optimiser, w, [0.0]) == [-3.25]  # u = 0.75


def test_adam_by_hand() -> None:
    w = leaf(1.0)
    optimiser = Adam([w], lr=0.1, betas=(0.5, 0.75), eps=1e-8)
    # m = 0.5 * 2 = 1, s = 0.25 * 4 = 1; corrected: m / 0.5 = 2, s / 0.25 = 4; step 0.1 * 2 / 2
    assert step(optimiser, w, [2.0]) == pytest.approx([0.9], abs=1e-8)
    # m = 0.5 + 0.5 * 0 = 0.5, s = 0.75; corrected: m / 0.75 = 2/3, s / (1 - 0.75^2) = 0.75 / 0.4375
    second = 0.1 * (2 / 3) / math.sqrt(0.75 / 0.4375)
    assert step(optimiser, w, [0.0]) == pytest.approx([0.9 - second], abs=1e-8)


def test_a_parameter_without_gradient_stays_and_its_adam_clock_too() -> None:
    w, still = leaf(1.0), leaf(5.0)
    optimiser = Adam([w, still], lr=0.1)
    for _ in range(3):
        step(optimiser, w, [1.0])
    assert still.tolist() == [5.0]
    assert step(optimiser, still, [1.0]) == pytest.approx([4.9])


def test_an_array_taken_before_a_step_does_not_change() -> None:
    w = leaf(1.0)
    optimiser, before = SGD([w], lr=1.0), w.data
    step(optimiser, w, [1.0])
    between = w.data
    step(optimiser, w, [1.0])
    assert (before[0], between[0], w.data[0]) == (1.0, 0.0, -1.0)


def test_a_graph_from_before_a_step_refuses_to_run_backward() -> None:
    w = leaf(1.0)
    loss, optimiser = ta.sum(w * w), SGD([w], lr=1.0)
    loss.backward()
    optimiser.step()
    with pytest.raises(ta.GraphError, match="assigned"):
        loss.backward()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [SGD, Adam])
def test_the_dtype_stays(kind: type[Optimiser], dtype: type) -> None:
    w = ta.tensor(np.ones((2, 2)), requires_grad=True, dtype=dtype)
    scalar = ta.tensor(1.0, requires_grad=True, dtype=dtype)
    ta.sum(w * scalar).backward()
    kind([w, scalar], lr=0.1).step()
    assert w.dtype == dtype and scalar.dtype == dtype and scalar.shape == ()


class Signs(Optimiser):
    """One of a learner's own."""

    def _move(self, place: int, old, gradient, new) -> None:
        new[...] = old - self.lr * np.sign(gradient)


def test_an_optimiser_of_ones_own_writes_the_numbers_of_one_parameter_at_a_time() -> None:
    v, w, s = leaf(1.0, 2.0), leaf(3.0), ta.tensor(4.0, requires_grad=True)
    v.grad, w.grad, s.grad = [5.0, -5.0], [7.0], 9.0
    Signs([v, w, s], lr=0.5).step()
    assert (v.tolist(), w.tolist(), s.item()) == ([0.5, 2.5], [2.5], 3.5)


@pytest.mark.parametrize(("make", "words"), [
    (lambda: SGD(ta.nn.Linear(1, 1, rng=0), lr=1.0), r"SGD\(model.parameters\(\)"),
    (lambda: SGD(leaf(1.0), lr=1.0), "Write a list"),
    (lambda: SGD([], lr=1.0), "no parameter"),
    (lambda: SGD([ta.tensor([1.0])], lr=1.0), "requires_grad=True"),
    (lambda: SGD([leaf(1.0) * 2], lr=1.0), "leaf"),
    (lambda: SGD([np.ones(1)], lr=1.0), "ndarray"),
    (lambda: SGD([leaf(1.0)], lr=-1.0), "lr=-1.0"),
    (lambda: SGD([leaf(1.0)], lr=math.nan), "lr=nan"),
    (lambda: SGD([leaf(1.0)], lr=1.0, momentum=1.0), "momentum=1.0"),
    (lambda: Adam([leaf(1.0)], betas=(0.9, 1.5)), r"betas\[1\]=1.5"),
    (lambda: SGD([leaf(1.0)], lr=1.0).step(), "Call loss.backward"),
    (lambda: AdamW([leaf(1.0)], decay=-1.0), "decay=-1.0"),
    (lambda: SGD([leaf(1.0)], learning_rate=1.0), "SGD: there is no argument 'learning_rate'(.|\n)*Write lr=..."),
    (lambda: SGD(params=[leaf(1.0)], lr=1.0), "Write parameters=..."),
    (lambda: SGD([leaf(1.0)], lr=1.0, nesterov=True), "Its arguments are parameters, lr, momentum"),
    (lambda: Adam([leaf(1.0)], beta=(0.9, 0.9)), "Adam: there is no argument 'beta'(.|\n)*Write betas=..."),
    (lambda: Adam([leaf(1.0)], weight_decay=0.1), r"Write ta.optim.AdamW\(..., decay=...\)"),
    (lambda: AdamW([leaf(1.0)], weight_decay=0.1), "AdamW: there is no argument(.|\n)*Write decay=..."),
    (lambda: Signs([leaf(1.0)], learning_rate=0.1), "Signs: there is no argument 'learning_rate'"),
    (lambda: cosine(1.0, steps=3, warmup=3), "warmup=3"),
    (lambda: cosine(1.0, steps=3, floor="a"), "floor='a' must be one number"),
    (lambda: inverse_root(1.0, 0), "warmup=0"),
    (lambda: clip_gradients([leaf(1.0)], 0.0), "norm=0.0"),
])
def test_what_cannot_be_is_refused_in_words(make, words: str) -> None:
    with pytest.raises(ta.TinyattnError, match=words):
        make()


def test_the_same_parameter_twice_moves_once() -> None:
    w = leaf(1.0)
    assert step(SGD([w, w], lr=1.0), w, [1.0]) == [0.0]


def test_ctrl_c_waits_until_the_step_is_complete() -> None:
    class Impatient(SGD):
        def _move(self, place: int, old, gradient, new) -> None:
            super()._move(place, old, gradient, new)
            if place == 0:
                os.kill(os.getpid(), signal.SIGINT)

    one, two = leaf(1.0), leaf(1.0)
    one.grad, two.grad = [1.0], [1.0]
    with pytest.raises(KeyboardInterrupt):
        Impatient([one, two], lr=1.0).step()
    assert one.tolist() == two.tolist() == [0.0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("kind", [Signs, SGD])
def test_a_step_in_another_thread_than_the_main_one_leaves_ctrl_c_alone(kind: type[Optimiser]) -> None:
    one, two = leaf(1.0), leaf(1.0)
    one.grad, two.grad = [1.0], [1.0]
    thread = threading.Thread(target=kind([one, two], lr=1.0).step)
    thread.start()
    thread.join()
    assert one.tolist() == two.tolist() == [0.0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.torch
@pytest.mark.parametrize("options", [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.03, "momentum": 0.9}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-6}),
])
def test_fifty_steps_agree_with_pytorch(options, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    name, settings = options
    start, data = rng.normal(size=(3, 4)), rng.normal(size=(5, 3))
    ours, theirs = ta.tensor(start, requires_grad=True), torch.tensor(start, requires_grad=True)
    one, other = getattr(ta.optim, name)([ours], **settings), getattr(torch.optim, name)([theirs], **settings)
    for _ in range(50):
        for optimiser, loss in (
            (one, ta.mean(ta.tanh(data @ ours) ** 2)),
            (other, (torch.tanh(torch.tensor(data) @ theirs) ** 2).mean()),
        ):
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    np.testing.assert_allclose(ours.data, theirs.detach().numpy(), rtol=0, atol=1e-12)


def test_adamw_by_hand() -> None:
    w = leaf(1.0)
    # first 1 - 0.1 * 0.5 of it, then a step of Adam of size 0.1
    assert step(AdamW([w], lr=0.1, decay=0.5, eps=1e-12), w, [2.0]) == pytest.approx([0.95 - 0.1])


def test_without_decay_adamw_is_adam(rng: np.random.Generator) -> None:
    one, other = leaf(1.0, -2.0), leaf(1.0, -2.0)
    for optimiser, w in ((AdamW([one], lr=0.1, decay=0.0), one), (Adam([other], lr=0.1), other)):
        for number in range(5):
            step(optimiser, w, [float(number), -1.0])
    assert one.tolist() == other.tolist()


@pytest.mark.parametrize("make", [
    lambda w: SGD([w], lr=0.1), lambda w: SGD([w], lr=0.1, momentum=0.9), lambda w: Adam([w]), lambda w: AdamW([w]),
], ids=["SGD", "momentum", "Adam", "AdamW"])
def test_what_an_optimiser_remembers_can_be_kept_and_brought_back(make, rng: np.random.Generator) -> None:
    gradients = rng.normal(size=(6, 2)).tolist()
    w = leaf(1.0, 2.0)
    whole = make(w)
    for gradient in gradients[:3]:
        step(whole, w, gradient)
    other, later = leaf(*w.tolist()), make(leaf(0.0, 0.0))
    later = make(other)
    later.load_state_dict(whole.state_dict())
    for gradient in gradients[3:]:
        assert step(whole, w, gradient) == step(later, other, gradient)
    assert later.steps == 6


def test_the_state_of_another_optimiser_is_refused_and_changes_nothing() -> None:
    adam, small = Adam([leaf(1.0)], lr=0.5), Adam([leaf(1.0, 2.0)])
    for state, words in ((SGD([leaf(1.0)], lr=1.0).state_dict(), "Adam"), (small.state_dict(), r"\(1,\) here, \(2,\)")):
        with pytest.raises(ta.TinyattnError, match=words):
            adam.load_state_dict(state)
    assert adam.lr == 0.5


def test_schedules_at_their_corners() -> None:
    rate = cosine(2.0, steps=10, warmup=4, floor=0.5)
    assert [rate(s) for s in (1, 4, 10, 99)] == pytest.approx([0.5, 2.0, 0.5, 0.5]) and rate(7) == pytest.approx(1.25)
    assert cosine(1.0, steps=2)(1) == pytest.approx(0.5)
    paper = inverse_root(1 / math.sqrt(512 * 4000), 4000)
    for s in (1, 100, 4000, 50_000):  # the formula of the paper
        assert paper(s) == pytest.approx(512**-0.5 * min(s**-0.5, s * 4000**-1.5))


def test_clipping_shortens_all_gradients_by_one_factor() -> None:
    a, b, still = leaf(0.0), leaf(0.0, 0.0), leaf(0.0)
    a.grad, b.grad = [2.0], [1.0, 2.0]
    assert clip_gradients([a, b, still], 1.5) == 3.0
    assert (a.grad.tolist(), b.grad.tolist(), still.grad) == ([1.0], [0.5, 1.0], None)
    assert clip_gradients([a, b, still], 1.5) == pytest.approx(1.5) and a.grad.tolist() == [1.0]


def test_gradients_whose_squares_are_too_large_are_clipped() -> None:
    a, b = leaf(0.0), leaf(0.0)
    a.grad, b.grad = [3e200], [-4e200]
    assert clip_gradients([a, b], 1.0) == pytest.approx(5e200, rel=1e-15)
    assert (a.grad[0], b.grad[0]) == pytest.approx((0.6, -0.8), rel=1e-15)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_gradient_that_is_not_finite_is_not_clipped_but_named(number: float) -> None:
    a, b = leaf(0.0), ta.tensor([0.0], requires_grad=True, name="W_q")
    a.grad, b.grad = [3.0], [number]
    with pytest.raises(ta.NanError, match="W_q"):
        clip_gradients([a, b], 1.0)
    assert a.grad.tolist() == [3.0]


@pytest.mark.parametrize("fewer", [0, 1])
def test_numbers_looked_at_before_a_step_stay_whatever_this_python_counts_as_a_reference(fewer):
    """Since Python 3.14 an argument that is only read is not counted."""
    code = f"""
import sys
count = sys.getrefcount
sys.getrefcount = lambda x: count(x) - 1 - {fewer}
import tinyattn as ta
w = ta.tensor([1.0, 2.0], requires_grad=True)
step = ta.optim.SGD([w], lr=0.5)
kept = w.data
for _ in range(3):
    (w * w).sum().backward()
    step.step()
print(kept.tolist())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[1.0, 2.0]"


def test_parameters_can_not_be_exchanged_in_silence():
    """The optimiser keeps small ones side by side, so another list would be looked at by nobody."""
    optimiser = SGD([ta.tensor([1.0], requires_grad=True) for _ in range(2)], lr=0.1)
    with pytest.raises(TypeError):
        optimiser.parameters[0] = ta.tensor([1.0], requires_grad=True)
    assert not hasattr(optimiser.parameters, "append")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_adam_leaves_what_has_no_slope_where_it_is(dtype, recwarn):
    """In float16 the usual eps is 0, and 0 / 0 is no step."""
    leaves = [ta.tensor(np.ones(3, dtype), requires_grad=True) for _ in range(2)]
    optimiser = Adam(leaves, lr=0.1)
    for w in leaves:
        w.grad = [1.0, 0.0, -1.0]
    optimiser.step()
    for w in leaves:
        np.testing.assert_allclose(w.data, [0.9, 1.0, 1.1], rtol=2e-3)
    assert not recwarn.list
