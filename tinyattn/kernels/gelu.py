"""GELU in its tanh form: fourteen passes over long pieces, in memory that is there; its parts take twenty arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

PIECE = 1_048_576  # bytes at a time: few long calls, as after each one a thread may have to wait for the lock of Python
A = math.sqrt(2 / math.pi)
B = 0.044715 * A


def forward(x: Any) -> tuple[Any, Any]:
    """x/2 (1 + tanh(A x + B x^3)), and its slope, which costs half as much now as later."""
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.kind != "f":
        return _plain(x)
    flat = x.reshape(-1)
    y, slope = np.empty_like(flat), np.empty_like(flat)
    step = PIECE // flat.itemsize
    room = np.empty((2, min(step, flat.size)), flat.dtype)
    with np.errstate(over="ignore"):
        for start in range(0, flat.size, step):
            here = slice(start, start + step)
            _piece(flat[here], y[here], slope[here], *room[:, : flat[here].size])
    return y.reshape(x.shape)[()], slope.reshape(x.shape)[()]


def _plain(x: Any) -> tuple[Any, Any]:
    """The same as one formula each."""
    t = np.tanh(A * (x + 0.044715 * (x * x * x)))
    return x / 2 * (1 + t), (1 + t + x * (1 - t * t) * A * (1 + 3 * (0.044715 * (x * x)))) / 2


def _piece(x: Any, y: Any, slope: Any, t: Any, other: Any) -> None:
    """One piece, in place.

    With t = (1 + tanh)/2 the value is y = x t.  As tanh' = 1 - tanh^2 = 4 t (1 - t), the slope is
    t + (1 - t) y (2 A + 6 B x^2).
    """
    np.multiply(x, x, out=slope)
    np.multiply(slope, B, out=t)
    t += A
    t *= x
    _half_of_one_and_tanh(t)
    np.multiply(t, x, out=y)
    slope *= 6 * B
    slope += 2 * A
    slope *= y
    slope *= np.subtract(1, t, out=other)
    slope += t


def _half_of_one_and_tanh(z: Any) -> None:
    """(1 + tanh z)/2, which is 1/(1 + exp(-2 z)), in place: in double precision exp takes half the time of tanh."""
    if z.dtype.char == "d":
        z *= -2
        np.exp(z, out=z)
        z += 1
        np.divide(1, z, out=z)
    else:
        np.tanh(z, out=z)
        z *= 0.5
        z += 0.5


def rule(g: Any, y: Any, slope: Any, x: Any) -> Any:
    """The slope of each entry by itself."""
    return (g * slope,)


def composed(x: Any) -> Any:
    """The same from tanh and products."""
    return x / 2 * (1 + np.tanh(A * (x + 0.044715 * (x * x * x))))
