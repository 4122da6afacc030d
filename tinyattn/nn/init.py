"""What parameters start from: seeded random numbers of a size at which signals neither grow nor die out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinyattn.errors import ArgumentTypeError, message

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
    bound = math.sqrt(6 / (n_in + n_out))
    return rng.uniform(-bound, bound, size=(n_in, n_out))


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
    return rng.normal(0.0, scale, size=shape)
