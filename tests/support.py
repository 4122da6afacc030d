"""Helpers for tests: numbers that come from somewhere else than the engine's own rules.

`differences` and `complex_step` know nothing but the forward; `gradients` asks the engine.  Each of them is
itself tested on functions and rules that are wrong, in ``engine/test_support.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tinyattn as ta
from tinyattn.ops import Op

Arrays = Sequence[np.ndarray]


def close(got: Any, want: Any, rtol: float = 1e-9, atol: float = 1e-11) -> None:
    """Equal shapes, and equal numbers up to rounding."""
    got, want = np.asarray(getattr(got, "data", got)), np.asarray(getattr(want, "data", want))
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def weighted(f: Callable[..., Any], g: Any) -> Callable[..., float]:
    """The number <g, f(...)>, whose gradient is the vector-Jacobian product of f with g."""
    return lambda *inputs: (np.asarray(f(*inputs)) * (1 if g is None else g)).sum()


def slope(f: Callable[[float], Any], step: float = 2e-4) -> Any:
    """The derivative of f at 0 by central differences of order 4: exact for polynomials up to degree 4."""
    near, far = f(step) - f(-step), f(2 * step) - f(-2 * step)
    return (8 * near - far) / (12 * step)


def differences(f: Callable[..., Any], inputs: Arrays, g: Any = None, step: float = 2e-4) -> list[np.ndarray]:
    """The gradient of <g, f(*inputs)> to every entry of every input, from values of f alone."""
    number = weighted(f, g)

    def moved(slot: int, place: tuple[int, ...], by: float) -> float:
        changed = [np.array(x, dtype=float) for x in inputs]
        changed[slot][place] += by
        return number(*(x[()] if x.ndim == 0 else x for x in changed))

    found = []
    for slot, x in enumerate(inputs):
        entries = [slope(lambda by, s=slot, p=place: moved(s, p, by), step) for place in np.ndindex(np.shape(x))]
        found.append(np.array(entries, dtype=float).reshape(np.shape(x)))
    return found


def along(f: Callable[..., Any], inputs: Arrays, directions: Arrays, step: float = 2e-4) -> Any:
    """The change of f(*inputs) along a direction, by differences: the Jacobian times a vector."""
    return slope(lambda by: np.asarray(f(*(x + by * d for x, d in zip(inputs, directions, strict=True)))), step)


def complex_step(f: Callable[..., Any], inputs: Arrays, g: Any = None) -> list[np.ndarray]:
    """The same gradient from one evaluation beside the real axis: no subtraction, so no rounding.

    Only for an f that is analytic and written so that it takes complex numbers.
    """
    number, tiny = weighted(f, g), 1e-30
    found = []
    for slot, x in enumerate(inputs):
        gradient = np.zeros(np.shape(x))
        for place in np.ndindex(np.shape(x)):
            changed = [np.array(other, dtype=complex) for other in inputs]
            changed[slot][place] += 1j * tiny
            gradient[place] = number(*(c[()] if c.ndim == 0 else c for c in changed)).imag / tiny
        found.append(gradient)
    return found


def leaves_of(inputs: Arrays) -> list[ta.Tensor]:
    return [ta.tensor(x, requires_grad=True) for x in inputs]


def gradients(f: Callable[..., ta.Tensor], inputs: Arrays, g: Any = None) -> list[np.ndarray]:
    """What the engine's backward pass gives; zeros for an input that the result does not depend on."""
    leaves = leaves_of(inputs)
    y = f(*leaves)
    if y.requires_grad:
        y.backward(np.ones(y.shape, y.dtype) if g is None else g)
    return [np.zeros(x.shape, x.dtype) if x.grad is None else x.grad for x in leaves]


def second_gradients(f: Callable[..., ta.Tensor], inputs: Arrays, g: Any, directions: Arrays) -> list[np.ndarray]:
    """The gradient of <directions, gradient of <g, f>>: the Hessian of <g, f> times a vector."""
    leaves = leaves_of(inputs)
    y = f(*leaves)
    first = ta.grad(y, leaves, seed=np.asarray(g), create_graph=True)
    total = sum((ta.sum(d * slope_) for d, slope_ in zip(directions, first, strict=True)), start=ta.tensor(0.0))
    if not total.requires_grad:
        return [np.zeros(x.shape) for x in leaves]
    return [np.asarray(h.data) for h in ta.grad(total, leaves)]


def first_along(
    f: Callable[..., ta.Tensor], inputs: Arrays, g: Any, directions: Arrays, step: float = 2e-4
) -> list[np.ndarray]:
    """Differences of the first-order gradient along a direction: the reference for `second_gradients`."""

    def flat(by: float) -> np.ndarray:
        moved = [x + by * d for x, d in zip(inputs, directions, strict=True)]
        return np.concatenate([np.ravel(part) for part in gradients(f, moved, g)])

    ends = np.cumsum([np.size(x) for x in inputs])[:-1]
    parts = np.split(slope(flat, step), ends)
    return [part.reshape(np.shape(x)) for part, x in zip(parts, inputs, strict=True)]


def altered(op: Op, **changes: Any) -> Op:
    """A copy of a record with some parts exchanged, outside the registry."""
    parts = {
        name: getattr(op, {"inputs": "input_names", "params": "param_names"}.get(name, name))
        for name in inspect.signature(Op).parameters
    }
    return Op(**{**parts, **changes})


def rule_errors(
    op: Op, inputs: Arrays, params: tuple[Any, ...], g: Any, reference: Callable[..., Any] = differences
) -> list[float]:
    """For each input the largest distance between rule and reference, by the size of the reference."""
    wanted = reference(lambda *arrays: op(*arrays, *params), inputs, g)
    found = gradients(lambda *tensors: op(*tensors, *params), inputs, g)
    scale = max([1.0, *(float(np.abs(w).max()) for w in wanted if w.size)])
    return [
        float(np.abs(got - want).max()) / scale if want.size else 0.0 for got, want in zip(found, wanted, strict=True)
    ]


def cotangent(rng: np.random.Generator, op: Op, inputs: Arrays, params: tuple[Any, ...]) -> np.ndarray:
    """Random numbers in the shape of an op's result."""
    return rng.normal(size=np.shape(op(*inputs, *params)))


def sampled(op: Op, seed: int = 7) -> list[tuple[tuple[np.ndarray, ...], tuple[Any, ...]]]:
    """The record's own valid calls, with arrays throughout."""
    return [
        (tuple(np.asarray(x, dtype=float) for x in inputs), params)
        for inputs, params in op.sample(np.random.default_rng(seed))
    ]
