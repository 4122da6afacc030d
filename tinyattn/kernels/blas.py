"""How many threads the matrix products of NumPy use: asked, and set to one for a while.

NumPy hands its products to a BLAS library, which may start threads of its own.  Beside threads of ours they only
get in the way: an idle thread of OpenBLAS spins, and a step of two threads on two cores then takes twice as long.
So where we split work, each of our threads has a BLAS of one thread, and afterwards the user's setting is back.
"""

from __future__ import annotations

import functools
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any

import numpy as np

Control = tuple[Callable[[], int], Callable[[int], object]]  # how to ask, and how to set


@functools.cache
def control() -> Control | None:
    """Find the way to ask and to set the number of threads; None where this BLAS cannot be told."""
    return _openblas() or _by_threadpoolctl()


def _openblas() -> Control | None:
    """OpenBLAS, which NumPy's own wheels bring, found through the library that NumPy has loaded: 1 µs a call."""
    import ctypes

    try:
        library: Any = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    except (AttributeError, OSError, TypeError):
        return None
    for before, after in ("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""):
        ask, tell = (f"{before}openblas_{what}_num_threads{after}" for what in ("get", "set"))
        if hasattr(library, ask) and hasattr(library, tell):
            return getattr(library, ask), getattr(library, tell)
    return None


def _by_threadpoolctl() -> Control | None:
    """Any BLAS that the library threadpoolctl knows, where somebody has installed it."""
    try:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return (found[0].get_num_threads, found[0].set_num_threads) if found else None


class Held:
    """How many blocks hold BLAS to one thread, and what to go back to when the last one ends."""

    __slots__ = ("before", "blocks", "lock")

    def __init__(self) -> None:
        self.blocks, self.before, self.lock = 0, 0, allocate_lock()


held = Held()


class one_thread:
    """Hold BLAS to one thread in this block; gives False, and changes nothing, where it cannot be told.

    Blocks may overlap, in one thread or in several: the first sets it, the last sets it back, unless somebody else
    has changed it meanwhile.  A generator would cost three times as much.

    >>> with one_thread() as told:
    ...     control() is None or control()[0]() == 1
    True
    """

    __slots__ = ("ways",)

    def __enter__(self) -> bool:
        self.ways = ways = control()
        if ways is None:
            return False
        with held.lock:
            held.blocks += 1
            if held.blocks == 1:
                held.before = ways[0]()
                if held.before != 1:
                    ways[1](1)
        return True

    def __exit__(self, *error: object) -> None:
        if self.ways is not None:
            ask, tell = self.ways
            with held.lock:
                held.blocks -= 1
                if held.blocks == 0 and held.before != 1 and ask() == 1:
                    tell(held.before)


def after_fork() -> None:
    """Start afresh in a child process: a block of another thread of the parent will never end here."""
    was_held, before = held.blocks > 0, held.before
    held.__init__()  # type: ignore[misc]
    ways = control() if was_held else None
    if ways is not None:
        ways[1](before)
