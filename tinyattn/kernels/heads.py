"""What the two fast forms of attention share: all heads of a call, cut into parts, and what may be trusted.

`tinyattn.kernels.short` takes sequences whose scores fit into the cache, `tinyattn.kernels.tiles` the longer ones.
Both do without the usual shift of softmax: exp(score) is taken as it is, and the sum of the row says afterwards
whether that was right.  The maximum and the subtraction would cost more than exp itself.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

LOWEST = {"f": 1e-12, "d": 1e-130}  # by dtype.char: sums of a row between these have lost nothing that counts
HIGHEST = {"f": 1e12, "d": 1e130}


def trusted(sums: Any) -> Any:
    """Which rows have a sum of exponentials from which no large entry overflowed and no small one is missed.

    The largest entry of a row is at least its sum divided by how many there are; what vanished beside it is smaller
    by twenty orders of magnitude.  A row that sees nothing has the sum 0 and is not trusted either.
    """
    return (sums > LOWEST[sums.dtype.char]) & (sums < HIGHEST[sums.dtype.char])


@functools.cache
def power(char: str) -> tuple[Callable[..., Any], float]:
    """The fastest power that NumPy has for a dtype, exp or exp2, and the factor that scores need before it.

    exp(x) is exp2(x log2(e)), and the factor costs nothing where scores have one anyway.  With AVX-512 on Linux exp2
    takes half the time of exp in single precision; elsewhere it is no vector code, and takes twice as long.

    >>> raised, factor = power("d")
    >>> bool(abs(raised(3.0 * factor) - np.exp(3.0)) < 1e-12)
    True
    """
    introspect = getattr(np.lib, "introspect", None)  # from NumPy 2.0 on
    known = {} if introspect is None else introspect.opt_func_info(func_name="^exp2$")
    code = known.get("exp2", {}).get(2 * char, {}).get("current", "baseline")
    return (np.exp, 1.0) if code.startswith("baseline") else (np.exp2, math.log2(math.e))


def sides(start: int, stop: int, step: int) -> Iterator[slice]:
    """An axis, or a part of it, cut into pieces of one length and a shorter last one."""
    return (slice(first, min(first + step, stop)) for first in range(start, stop, step))


@functools.lru_cache(maxsize=8)
def triangle_of(rows: int, columns: int, diagonal: int, char: str) -> Any:
    """1 where the key is not after the query, as numbers: multiplying costs a third of choosing."""
    triangle = np.tri(rows, columns, diagonal, dtype=char)
    triangle.flags.writeable = False
    return triangle


class Whole:
    """All heads of a call, with as many leading axes for every part, and at least one; nothing is copied."""

    def __init__(self, q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> None:
        masks = () if keep is None else keep.shape[:-2]
        self.lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2], masks)
        self.heads = self.lead or (1,)
        self.n, self.m = q.shape[-2], k.shape[-2]
        self.q, self.k, self.v = (
            part if part.shape[:-2] == self.heads else np.broadcast_to(part, self.heads + part.shape[-2:])
            for part in (q, k, v)
        )
        self.keep = None if keep is None else np.broadcast_to(keep, (*self.heads, self.n, self.m))
        self.causal, self.scale = causal, scale

    def full(self, x: Any) -> Any:
        """An array of results with at least one leading axis, to write into."""
        return x if self.lead else x[None]

    def like(self, x: Any, width: int) -> Any:
        """A new array, (..., rows of x, width), which lies in memory as x does: so joining the heads is free."""
        return np.empty_like(x, shape=(*self.lead, x.shape[-2], width))
