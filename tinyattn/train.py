"""A training loop: shows how far it is, can be stopped with Ctrl-C between two steps, and keeps what it has.

Stands on `nn` and `optim`.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, TextIO, TypeVar

import numpy as np

from tinyattn.errors import ArgumentError, ArgumentTypeError, NanError, message
from tinyattn.nn import init
from tinyattn.nn.module import Module
from tinyattn.optim import Adam, Optimiser
from tinyattn.tensor import Tensor, describe
from tinyattn.terminal import ProgressBar, say

__all__ = ["History", "fit"]

Model = TypeVar("Model", bound=Module)


class History:
    """What happened in a training.

    Attributes
    ----------
    losses : list of float
        The loss of every step, before the step was taken.
    epochs : list of float
        The mean loss of every epoch that was completed.
    interrupted : bool
        True when Ctrl-C ended it; the model has what was learned until then.
    seconds : float
    """

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.epochs: list[float] = []
        self.interrupted = False
        self.seconds = 0.0

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return len(self.losses)

    def __repr__(self) -> str:
        last = f", loss {self.epochs[-1]:.4g} in the last epoch" if self.epochs else ""
        return f"History({self.steps} steps{last}{', interrupted' if self.interrupted else ''})"


def fit(
    model: Model,
    batches: Sequence[Any],
    loss: Callable[[Model, Any], Tensor],
    *,
    optimiser: Optimiser | None = None,
    epochs: int = 10,
    rng: init.Rng = 0,
    label: str = "training",
    progress: bool | ProgressBar = True,
    ascii: bool = False,
    stream: TextIO | None = None,
) -> History:
    """Take one step a batch, through all batches in a new order in each epoch.

    Ctrl-C stops after the step that is being taken, and a second one at once.

    Parameters
    ----------
    model : Module
        Its parameters are learned in place.
    batches : sequence
        Whatever ``loss`` can take; a single one may be all data.
    loss : callable
        ``loss(model, batch)`` gives one number as a tensor.
    optimiser : Optimiser, optional
        Adam with a learning rate of 0.01 when not given.
    epochs : int
        How often to go through all batches.
    rng : numpy Generator, int or None
        Where the order of the batches comes from.
    label : str
        What the progress line begins with.
    progress : bool or ProgressBar
        Whether to show one; a bar of one's own can go on over several trainings.
    ascii : bool
        Draw it with ASCII signs.
    stream : text stream, optional
        Where to draw it; standard error by default.

    Returns
    -------
    History

    Raises
    ------
    NanError
        When a loss is nan or infinite; that step is not taken.

    Examples
    --------
    >>> import tinyattn as ta
    >>> model = ta.nn.Linear(1, 1, rng=0)
    >>> x, y = [[0.0], [1.0], [2.0]], [[1.0], [3.0], [5.0]]
    >>> history = fit(model, [(x, y)], lambda model, batch: ta.mse(model(batch[0]), batch[1]),
    ...               optimiser=ta.optim.SGD(model.parameters(), lr=0.2), epochs=200, progress=False)
    >>> model.W.data.round(3), model.b.data.round(3)
    (array([[2.]]), array([1.]))
    >>> history
    History(200 steps, loss ... in the last epoch)
    """
    batches, epochs = _checked(batches, epochs)
    optimiser = Adam(model.parameters(), lr=0.01) if optimiser is None else optimiser
    source, history, start = init.generator(rng), History(), time.monotonic()
    training_before = model.training
    model.train()
    total = epochs * len(batches)
    bar = ProgressBar(total, label, stream=stream, ascii=ascii) if progress is True else progress or None
    with _Interrupts() as interrupts:
        try:
            for _ in range(epochs):
                for place in source.permutation(len(batches)):
                    if interrupts.asked:
                        break
                    history.losses.append(_step(model, batches[place], loss, optimiser, history.steps + 1))
                    if bar is not None:
                        bar.step(note=f"loss {history.losses[-1]:.3f}")
                if interrupts.asked:
                    break
                history.epochs.append(float(np.mean(history.losses[-len(batches) :])))
        finally:
            model.train(training_before)
            if bar is not None and (bar is not progress or interrupts.asked):
                bar.close()
    history.seconds, history.interrupted = time.monotonic() - start, interrupts.asked
    if history.interrupted and bar is not None and bar is not progress:
        done = f"Stopped after {history.steps} of {total} steps; what was learned is kept."
        say(done, ascii, sys.stderr if stream is None else stream)
    return history


def _step(
    model: Model, batch: Any, loss: Callable[[Model, Any], Tensor], optimiser: Optimiser, number: int
) -> float:
    """One step.  The recorded graph ends with this function, so that two of them never live at once."""
    optimiser.zero_grad()
    value = loss(model, batch)
    if not isinstance(value, Tensor) or value.size != 1:
        what = describe(value) if isinstance(value, Tensor) else type(value).__name__
        raise ArgumentTypeError(
            message(
                f"fit: the loss gave {what}; one number as a tensor is needed.",
                "The gradient that a step follows is that of one number.",
                "End the loss in .mean() or .sum(), and return the tensor itself, not float(loss).",
            )
        )
    if not math.isfinite(float(value)):
        raise NanError(
            message(
                f"fit: the loss is {float(value)} in step {number}.",
                "A step along its gradient would turn the parameters into nan, so it was not taken.",
                "Take a smaller learning rate, or look for a logarithm or a division of 0 in the model.",
            )
        )
    value.backward()
    optimiser.step()
    return float(value)


class _Interrupts:
    """Notes a first Ctrl-C, so that the loop can end between two steps; a second one is raised at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> _Interrupts:
        main = threading.current_thread() is threading.main_thread()
        if main and callable(signal.getsignal(signal.SIGINT)):  # not where it is ignored
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def _checked(batches: Sequence[Any], epochs: int) -> tuple[Sequence[Any], int]:
    if not hasattr(batches, "__len__") or not hasattr(batches, "__getitem__"):
        raise ArgumentTypeError(
            message(
                f"fit: batches is a {type(batches).__name__}; a list of batches is needed.",
                "Each epoch goes through them again, in another order.",
                "Write list(batches).",
            )
        )
    if len(batches) == 0:
        raise ArgumentError(message("fit: there is no batch.", "", "Give at least one: [batch]."))
    if isinstance(epochs, bool) or not isinstance(epochs, (int, np.integer)) or epochs < 1:
        raise ArgumentError(f"fit: epochs={epochs!r} must be a whole number from 1 on.")
    return batches, int(epochs)
