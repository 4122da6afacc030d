"""What parameters start from: seeded random numbers of a size at which signals neither grow nor die out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyattn.arguments import one_number, shape_tuple
from tinyattn.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from tinyattn.nn.module import check_size

Rng = np.random.Generator | int | None

_shared = np.random.default_rng(0)


def generator(rng: Rng) -> np.random.Generator:
    """Where a layer's random numbers come from.

    Parameters
    ----------
    rng : numpy Generator, int or None
        A generator is drawn from in turn; an int starts one of its own.  None stands for one generator that
        all layers share and that starts alike in every process: a script gives the same numbers each time it
        runs, and two layers never start out equal.

    Examples
    --------
    >>> bool(generator(7).integers(100) == generator(7).integers(100))
    True
    """
    if rng is None:
        return _shared
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise ArgumentTypeError(
        message(
            f"rng={rng!r} is not a source of random numbers.",
            "",
            "Give a seed (a whole number from 0 on), or np.random.default_rng(seed).",
        )
    )


def glorot(rng: np.random.Generator, n_in: int, n_out: int) -> Any:
    """Uniform numbers with variance 2/(n_in + n_out) (Glorot and Bengio 2010, equation 16).

    Returns
    -------
    ndarray, shape (n_in, n_out)

    Examples
    --------
    >>> bool(abs(glorot(generator(0), 100, 200).var() - 2 / 300) < 1e-4)
    True
    """
    source = _checked(rng, "glorot")
    shape = check_size(n_in, "glorot", "n_in"), check_size(n_out, "glorot", "n_out")
    bound = math.sqrt(6 / sum(shape))
    return _with_room(shape, lambda: source.uniform(-bound, bound, size=shape))


def normal(rng: np.random.Generator, shape: tuple[int, ...], scale: float = 1.0) -> Any:
    """Numbers of a normal distribution around 0 with standard deviation ``scale``.

    Returns
    -------
    ndarray of the given shape

    Examples
    --------
    >>> normal(generator(0), (2, 3), scale=0.1).shape
    (2, 3)
    """
    source = _checked(rng, "normal")
    sizes = tuple(check_size(size, "normal", "shape", least=0) for size in shape_tuple((shape,), "normal"))
    spread = one_number(scale, "normal", "scale")
    if not 0 <= spread < math.inf:
        raise ArgumentError(f"normal: scale={scale!r} is no standard deviation; it must be a number from 0 on.")
    return _with_room(sizes, lambda: source.normal(0.0, spread, size=sizes))


def equal(value: float, n: int) -> Any:
    """One number n times.

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> equal(1.0, 2)
    array([1., 1.])
    """
    return _with_room((n,), lambda: np.full(n, value))


def _checked(rng: object, name: str) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    what = f"{name}: rng={rng!r} is no generator of random numbers."
    raise ArgumentTypeError(message(what, "", "Write nn.init.generator(seed), or np.random.default_rng(seed)."))


def _with_room(shape: tuple[int, ...], make: Callable[[], Any]) -> Any:
    """The numbers that are made, or words where there is no room for so many of them."""
    try:
        return make()
    except (MemoryError, ValueError):  # NumPy's ValueError says that no array could be so big
        why = f"They are {math.prod(shape):,} numbers of 8 bytes."
        what = f"parameters of shape {shape} do not fit into memory."
        raise ShapeError(message(what, why, "Take smaller sizes.")) from None
