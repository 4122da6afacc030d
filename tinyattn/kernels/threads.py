"""Large work on all cores: parts that do not touch each other, handed to threads that wait for them.

NumPy lets go of Python's lock inside large array operations and matrix products, so two threads do compute at once.
What a part is depends on sizes alone, never on the number of cores, and each part has a BLAS of one thread; so
results are the same bit for bit with one thread or many.

One piece of work at a time has the threads.  Whoever comes while they are busy - another thread of the user, or a
part itself - does its parts one after the other, so there are never more of our threads than cores.
"""

from __future__ import annotations

import contextvars
import math
import os
import sys
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tinyattn.errors import ArgumentError
from tinyattn.kernels import blas
from tinyattn.kernels.small import inside


class Setting:
    """How many threads may work at once; None: as many as there are cores."""

    __slots__ = ("most",)

    def __init__(self) -> None:
        text = os.environ.get("TINYATTN_THREADS", "")
        self.most: int | None = max(1, int(text)) if text.isdecimal() else None


setting = Setting()


def set_threads(most: int | None) -> None:
    """Say how many threads large work may use; results do not depend on it, not even in the last bit.

    The environment variable ``TINYATTN_THREADS`` says it for a whole process.

    Parameters
    ----------
    most : int from 1, or None
        1 switches threads off; None means as many as this process may use cores, which is the start.

    Raises
    ------
    ArgumentError
        For anything else.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.set_threads(1)
    >>> ta.set_threads(None)
    """
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise ArgumentError(f"set_threads: most={most!r} must be a whole number from 1, or None for every core.")
    setting.most = most


def count() -> int:
    """How many threads may work at once."""
    return setting.most or _cores()


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Job:
    """Parts to do, taken one by one by whoever is free, and what went wrong in one."""

    __slots__ = ("errors", "todo", "work")

    def __init__(self, work: Callable[[Any], None], parts: Iterable[Any]) -> None:
        self.work, self.todo = work, deque(parts)
        self.errors: list[BaseException] = []

    def do(self) -> None:
        """Take part after part until none is left; an error leaves the others undone."""
        before, inside.now = inside.now, True
        try:
            while self.todo:
                try:
                    part = self.todo.popleft()
                except IndexError:  # somebody else took the last one
                    return
                self.work(part)
        except BaseException as error:
            self.todo.clear()
            self.errors.append(error)
        finally:
            inside.now = before


class Worker:
    """A thread that waits for a job, helps with it, and waits again; it keeps no process alive."""

    __slots__ = ("context", "done", "job", "wake")

    def __init__(self) -> None:
        self.wake, self.done = allocate_lock(), allocate_lock()
        self.wake.acquire()
        self.done.acquire()
        self.job: Job | None = None
        self.context: contextvars.Context | None = None
        start_new_thread(self._wait, ())

    def help(self, job: Job) -> None:
        """Start to help; np.errstate and the like hold in it as for who asked."""
        self.job, self.context = job, contextvars.copy_context()
        self.wake.release()

    def _wait(self) -> None:
        while True:
            self.wake.acquire()
            job, context = self.job, self.context
            self.job = self.context = None  # keeps no array alive while it waits
            if job is not None and context is not None:
                context.run(job.do)
            del job, context
            self.done.release()


class Team:
    """The threads there are, and whether they are taken."""

    __slots__ = ("free", "workers")

    def __init__(self) -> None:
        self.workers: list[Worker] = []
        self.free = allocate_lock()

    def helpers(self, wanted: int) -> list[Worker]:
        """So many workers, or as many as can be started."""
        try:
            while len(self.workers) < wanted:
                self.workers.append(Worker())
        except RuntimeError:  # no more threads: a limit of the system, or the interpreter is ending
            pass
        return self.workers[:wanted]


team = Team()


def run(work: Callable[[Any], None], parts: Iterable[Any]) -> None:
    """``work(part)`` for every part, on all cores where they are free; the first error is raised when all have ended.

    >>> squares = [0] * 4
    >>> def work(i):
    ...     squares[i] = i * i
    >>> run(work, range(4))
    >>> squares
    [0, 1, 4, 9]
    """
    job = Job(work, parts)
    with blas.one_thread() as told:
        helpers = min(count(), len(job.todo)) - 1
        if not told or helpers < 1 or not team.free.acquire(blocking=False):
            job.do()
        else:
            try:
                with _impatient():
                    _together(job, team.helpers(helpers))
            finally:
                team.free.release()
    if job.errors:
        raise job.errors[0]


PATIENCE = 50e-6  # seconds
"""How long a thread of a job waits for Python's lock before it insists.

After each array operation a thread wants the lock back.  Another one holds it and lets go at its next operation, but
takes it again before this one, which has to wake up first, is there.  By itself Python ends that after 5 ms; operations
here take a hundredth of it.  Measured on a busy machine, attention over 2,048 words: 33 ms for 54.
"""


@contextmanager
def _impatient() -> Iterator[None]:
    """A shorter wait for Python's lock in this block, for all threads; afterwards the user's is back."""
    before = sys.getswitchinterval()
    if before > PATIENCE:
        sys.setswitchinterval(PATIENCE)
    try:
        yield
    finally:
        if before > PATIENCE and math.isclose(sys.getswitchinterval(), PATIENCE):  # else somebody else has set it
            sys.setswitchinterval(before)


def _together(job: Job, helpers: list[Worker]) -> None:
    """Do a job with helpers, and leave only when all of them have ended, whatever happens."""
    for worker in helpers:
        worker.help(job)
    job.do()
    for worker in helpers:
        while True:
            try:
                worker.done.acquire()
                break
            except KeyboardInterrupt as error:  # its part is short; leaving now would let it write behind our back
                job.todo.clear()
                job.errors.append(error)


def _after_fork() -> None:
    """A child process has none of its parent's threads."""
    global team
    team = Team()
    blas.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
