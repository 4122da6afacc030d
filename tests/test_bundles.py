"""Small parameters side by side: the same bits as one by one, and nothing that anybody holds ever changes."""

from __future__ import annotations

import copy
import os
import pickle
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import bundles
from tinyattn.bundles import Strip, bundled
from tinyattn.optim import SGD, Adam, AdamW, Optimiser, _entrywise

SHAPES = [(2, 3), (), (4,), (0,), (3, 2, 2), (), (1,), (5, 1), (70, 70)]  # the last one is too long for a bundle


class SgdOneByOne(SGD):
    """Who overrides `_move` gets one parameter at a time."""

    def _move(self, place: int, old: Any, gradient: Any, new: np.ndarray) -> None:
        super()._move(place, old, gradient, new)


class AdamOneByOne(Adam):
    def _move(self, place: int, old: Any, gradient: Any, new: np.ndarray) -> None:
        super()._move(place, old, gradient, new)


class AdamWOneByOne(AdamW):
    def _move(self, place: int, old: Any, gradient: Any, new: np.ndarray) -> None:
        super()._move(place, old, gradient, new)


KINDS: list[tuple[type[Optimiser], type[Optimiser], dict[str, Any]]] = [
    (SGD, SgdOneByOne, {"lr": 0.1}),
    (SGD, SgdOneByOne, {"lr": 0.05, "momentum": 0.9}),
    (Adam, AdamOneByOne, {"lr": 0.01}),
    (AdamW, AdamWOneByOne, {"lr": 0.02, "decay": 0.1, "betas": (0.8, 0.95)}),
]
every_kind = pytest.mark.parametrize(("kind", "one_by_one", "options"), KINDS, ids=["SGD", "momentum", "Adam", "AdamW"])


def leaves(rng: np.random.Generator, dtypes: Any = (np.float32, np.float64)) -> list[ta.Tensor]:
    arrays = [rng.normal(size=shape).astype(dtype) for dtype in dtypes for shape in SHAPES]
    return [ta.tensor(np.asfortranarray(array) if array.ndim else array, requires_grad=True) for array in arrays]


def twins(parameters: list[ta.Tensor]) -> list[ta.Tensor]:
    return [ta.tensor(p.data, requires_grad=True) for p in parameters]


def bits(parameters: list[ta.Tensor]) -> list[Any]:
    return [(p.dtype, p.data.tobytes()) for p in parameters]


def give_gradients(rng: np.random.Generator, *lists: list[ta.Tensor], missing: float = 0.0) -> None:
    """The same gradients to the parameters of all lists, also such as do not lie in one piece."""
    for same in zip(*lists, strict=True):
        absent, wide = rng.random() < missing, rng.normal(size=(*same[0].shape, 2))
        for p in same:
            p.grad = None if absent else wide[..., 0]


@every_kind
@pytest.mark.parametrize("seed", range(5))
def test_bundles_give_the_bits_of_one_by_one_whatever_happens_between_the_steps(
    kind: type[Optimiser], one_by_one: type[Optimiser], options: dict[str, Any], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    ours = leaves(rng)
    plain = twins(ours)
    bundle, single = kind(ours, **options), one_by_one(plain, **options)
    assert len(bundle._bundles) == 4 and single._bundles == []  # of two dtypes, arrays and single numbers
    for _ in range(40):
        happens = rng.integers(8)
        if happens == 0:  # a learner assigns
            which, number = rng.integers(len(ours)), rng.normal()
            for p in (ours[which], plain[which]):
                p.assign(np.full(p.shape, number))
        elif happens == 1:  # a training is resumed
            bundle.load_state_dict(bundle.state_dict())
        elif happens == 2:  # on another machine
            bundle = pickle.loads(pickle.dumps(bundle))
            ours = bundle.parameters
        elif happens == 3:
            bundle = copy.deepcopy(bundle)
            ours = bundle.parameters
        elif happens == 4:
            bundle.lr = single.lr = rng.random()
        give_gradients(rng, ours, plain, missing=0.1 if happens > 5 else 0.0)
        if not any(p.grad is not None for p in ours):
            continue
        bundle.step()
        single.step()
        assert bits(ours) == bits(plain)
    mine, theirs = bundle.state_dict(), single.state_dict()
    assert mine.keys() == theirs.keys() and all(mine[n].tobytes() == theirs[n].tobytes() for n in mine)


def test_a_step_of_a_bundle_is_the_formula_of_every_parameter(rng: np.random.Generator) -> None:
    p = leaves(rng, [np.float64])
    before = [x.numpy() for x in p]
    give_gradients(rng, p)
    SGD(p, lr=0.25).step()
    for x, old in zip(p, before, strict=True):
        np.testing.assert_array_equal(x.data, old - 0.25 * x.grad)


HOLDERS: dict[str, Callable[[ta.Tensor], Any]] = {
    "data": lambda p: p.data,
    "a part of data": lambda p: p.data[:1],
    "a transpose": lambda p: p.data.T,
    "a memoryview": lambda p: memoryview(p.data),
    "a detached tensor": lambda p: p.detach(),
    "a copy of the leaf": copy.deepcopy,
    "a recorded view": lambda p: ta.transpose(p),
    "a recorded result": lambda p: ta.sum(p * p),
    "through DLPack": lambda p: np.from_dlpack(p.detach()),
}


def numbers_in(held: Any) -> list[float]:
    return np.array(held.data if isinstance(held, ta.Tensor) else held).ravel().tolist()


@every_kind
@pytest.mark.parametrize("way", HOLDERS)
def test_what_is_held_never_changes(
    kind: type[Optimiser], one_by_one: type[Optimiser], options: dict[str, Any], way: str, rng: np.random.Generator
) -> None:
    p = [ta.tensor(rng.normal(size=(2, 2)), requires_grad=True) for _ in range(3)]
    optimiser, seen = kind(p, **options), []
    for _ in range(6):
        held = HOLDERS[way](p[1])
        seen.append((held, numbers_in(held)))
        give_gradients(rng, p)
        optimiser.step()
        assert all(numbers_in(held) == numbers for held, numbers in seen)
    assert len({tuple(numbers) for _, numbers in seen}) == 6  # and the parameter did


def test_what_nobody_holds_is_used_again(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(bundles, "Strip", lambda *given: made.append(Strip(*given)) or made[-1])
    p = [ta.tensor(rng.normal(size=(2, 2)), requires_grad=True) for _ in range(3)]
    optimiser = SGD(p, lr=0.1)
    for number in range(20):
        give_gradients(rng, p)
        optimiser.step()
        if number > 10:
            p[0].assign(np.ones((2, 2)))
    assert len(made) == 1 + 1 + 3  # the velocities, the gradients, and the numbers: present, collected and next


def test_two_optimisers_of_one_parameter_both_move_it() -> None:
    a, b, c = (ta.tensor([number], requires_grad=True) for number in (1.0, 2.0, 3.0))
    one, other = SGD([a, b], lr=1.0), SGD([b, c], lr=0.5)
    held = []
    for _ in range(4):
        for p in (a, b, c):
            p.grad = [1.0]
        one.step()
        held.append(b.data)
        other.step()
        held.append(b.data)
    assert [p.tolist() for p in (a, b, c)] == [[-3.0], [-4.0], [1.0]]
    assert [h.tolist() for h in held] == [[2.0 - n] for n in (1.0, 1.5, 2.5, 3.0, 4.0, 4.5, 5.5, 6.0)]


def test_a_graph_from_before_a_step_of_a_bundle_refuses_to_run_backward() -> None:
    v, w = (ta.tensor([number], requires_grad=True) for number in (1.0, 2.0))
    optimiser = SGD([v, w], lr=1.0)
    for _ in range(3):
        loss = ta.sum(v * w)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with pytest.raises(ta.GraphError, match="assigned"):
            loss.backward()


def test_an_optimiser_keeps_the_dtype_that_it_found_also_where_parameters_are_bundled() -> None:
    model = ta.nn.Linear(2, 2, rng=0)
    optimiser = SGD(model.parameters(), lr=0.5)
    model.W.exchange(model.W.numpy().astype(np.float32))
    before = [p.numpy() for p in optimiser.parameters]
    for p in optimiser.parameters:
        p.grad = np.ones(p.shape)
    optimiser.step()
    for p, old in zip(optimiser.parameters, before, strict=True):
        assert p.dtype == np.float64
        np.testing.assert_array_equal(p.data, old.astype(float) - 0.5)


def test_one_who_overrides_move_gets_single_parameters_of_a_bundled_optimiser(rng: np.random.Generator) -> None:
    seen = []

    class Watching(Adam):
        def _move(self, place: int, old: Any, gradient: Any, new: np.ndarray) -> None:
            seen.append((place, np.shape(old), gradient.shape, new.shape))
            super()._move(place, old, gradient, new)

    p = leaves(rng, [np.float64])
    give_gradients(rng, p)
    Watching(p).step()
    assert seen == [(place, shape, shape, shape) for place, shape in enumerate(SHAPES)]


def test_ctrl_c_waits_until_all_of_a_bundle_have_their_numbers() -> None:
    class Impatient(SGD):
        @_entrywise
        def _move(self, place: int, old: Any, gradient: Any, new: np.ndarray) -> None:
            super()._move(place, old, gradient, new)
            os.kill(os.getpid(), signal.SIGINT)

    v, w = (ta.tensor([number], requires_grad=True) for number in (1.0, 2.0))
    v.grad, w.grad = [1.0], [1.0]
    with pytest.raises(KeyboardInterrupt):
        Impatient([v, w], lr=1.0).step()
    assert (v.tolist(), w.tolist()) == ([0.0], [1.0])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_pieces_lie_where_arrays_of_their_own_would() -> None:
    strip = Strip([(3,), (2, 2), (0,), (1,)], np.dtype(np.float32))
    assert [piece.shape for piece in strip.pieces] == [(3,), (2, 2), (0,), (1,)]
    starts = [piece.ctypes.data - strip.array.ctypes.data for piece in strip.pieces if piece.size]
    assert all(start % 16 == 0 for start in starts) and len(set(starts)) == 3
    assert all(piece.flags.c_contiguous and piece.flags.writeable for piece in strip.pieces)


def test_a_strip_is_free_until_somebody_holds_a_piece_or_a_view() -> None:
    strip = Strip([(2,), (2,)], np.dtype(float))
    assert strip.is_free()
    for hold in (lambda: strip.array, lambda: strip.pieces[1], lambda: strip.pieces[0][:1], lambda: strip.pieces[1].T):
        held = hold()
        assert not strip.is_free()
        del held
        assert strip.is_free()


def test_long_parameters_and_lone_ones_move_by_themselves() -> None:
    small, long = np.zeros(8), np.zeros(bundles.SMALL // 8 + 1)
    p = [ta.tensor(array, requires_grad=True) for array in (small, long, np.float64(1.0), small)]
    assert [bundle.places for bundle in bundled(p)] == [[0, 3]]


def test_bundles_are_not_longer_than_a_cache() -> None:
    p = [ta.tensor(np.zeros(bundles.SMALL // 8), requires_grad=True) for _ in range(40)]
    sizes = [bundle.old.nbytes for bundle in bundled(p)]
    assert len(sizes) > 1 and max(sizes) <= bundles._LONG + bundles.SMALL and sum(sizes) == 40 * bundles.SMALL


def test_buffers_held_for_good_are_let_go(rng):
    leaves = [ta.tensor(rng.normal(size=3), requires_grad=True) for _ in range(3)]
    optimiser, held = SGD(leaves, lr=0.1), []
    for _ in range(50):
        held.append(leaves[0].data)
        for w in leaves:
            w.grad = np.ones(3)
        optimiser.step()
    (bundle,) = optimiser._bundles
    assert len(bundle._strips) <= 3 and len({w.tobytes() for w in held}) == 50


def test_single_numbers_stay_single_numbers(rng):
    leaves = [ta.tensor(rng.normal(), requires_grad=True) for _ in range(3)]
    optimiser = SGD(leaves, lr=0.1)
    for w in leaves:
        w.grad = 1.0
    optimiser.step()
    assert all(isinstance(w._value, np.floating) for w in leaves)
