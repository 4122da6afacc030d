"""What is switched on at the moment, for each thread by itself: recording, scopes, the search for nan."""

from __future__ import annotations

from _thread import _local, allocate_lock  # what threading gives, without a millisecond of `import threading`
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Mode(_local):
    """The switches of one thread."""

    recording = True
    scope: tuple[str, ...] = ()
    watch: Callable[[Any], None] | None = None  # sees each result as it is recorded
    watch_backward: Callable[[Any, int, Any], None] | None = None  # sees each vector-Jacobian product
    watch_comparison: Callable[[Any, Any, Any, Any], None] | None = None  # sees each ``x > y`` and what came out
    rule_of: Any = None


mode = Mode()


class Switches:
    """How many blocks, in all threads, have a switch not at rest, and how many are without names.

    Recording asks these plain numbers first, because asking a thread-local costs four times as much.
    """

    __slots__ = ("nameless", "set")

    def __init__(self) -> None:
        self.set, self.nameless = 0, 0


switches = Switches()
_counting = allocate_lock()


@contextmanager
def switched(**settings: Any) -> Iterator[None]:
    """Set some switches for the length of a block, and set them back, whatever happens inside."""
    before = {name: getattr(mode, name) for name in settings}
    with _counting:
        switches.set += 1
    for name, value in settings.items():
        setattr(mode, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(mode, name, value)
        with _counting:
            switches.set -= 1


@contextmanager
def no_grad() -> Iterator[None]:
    """Compute without recording: results are constants, and no graph is kept.

    Examples
    --------
    >>> import tinyattn as ta
    >>> x = ta.tensor(2.0, requires_grad=True)
    >>> with ta.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """
    with switched(recording=False):
        yield


@contextmanager
def no_names() -> Iterator[None]:
    """Record results without the learner's names and lines, in all threads, for what nobody will draw.

    Pictures then call a result after its operation, and errors do not say where it was made.  It saves some 80
    nanoseconds for each operation, a twentieth of a small one with its way back.

    Examples
    --------
    >>> import tinyattn as ta
    >>> x = ta.tensor(2.0, requires_grad=True)
    >>> with ta.no_names():
    ...     y = x * x
    >>> z = x * x
    >>> y.name, z.name
    (None, 'z')
    """
    with _counting:
        switches.nameless += 1
    try:
        yield
    finally:
        with _counting:
            switches.nameless -= 1


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Group what is computed inside under a name; drawings show the group as a labelled box.

    Parameters
    ----------
    name : str
        Any text; scopes inside scopes make a path.

    Examples
    --------
    >>> import tinyattn as ta
    >>> with ta.scope("head 1"):
    ...     y = ta.exp(ta.tensor(0.0))
    >>> y.scope
    ('head 1',)
    """
    with switched(scope=(*mode.scope, str(name))):
        yield
