"""A training loop: shows how far it is, can be stopped with Ctrl-C between two steps, and goes on where it was.

Stands on `nn`, `optim` and `checkpoints`.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, Generic, TextIO, TypeVar

import numpy as np

from tinyattn.arguments import known_arguments, one_number, yes_or_no
from tinyattn.checkpoints import load_checkpoint, save_checkpoint
from tinyattn.errors import ArgumentError, ArgumentTypeError, NanError, message
from tinyattn.mode import no_grad
from tinyattn.names import describe
from tinyattn.nn import init
from tinyattn.nn.module import Module
from tinyattn.optim import Adam, Optimiser, Schedule, clip_gradients
from tinyattn.tensor import Tensor
from tinyattn.terminal import ProgressBar, say
from tinyattn.weights import format_of

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
    validations : list of float
        What ``validate`` gave after every epoch.
    best : int or None
        The number of the best epoch, counted from 1, where there was ``patience``; the model is that of it.
    stopped_early : bool
        True when patience ended it.
    interrupted : bool
        True when Ctrl-C ended it; the model has what was learned until then.
    seconds : float
        How long it took, after a checkpoint only from there.

    Examples
    --------
    >>> import tinyattn as ta
    >>> model = ta.nn.Linear(1, 1, rng=0)
    >>> history = fit(model, [[[1.0]], [[2.0]]], lambda model, x: ta.mse(model(x), x), epochs=3, progress=False)
    >>> len(history.losses), len(history.epochs), history.steps, history.interrupted
    (6, 3, 6, False)
    """

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.epochs: list[float] = []
        self.validations: list[float] = []
        self.best: int | None = None
        self.stopped_early = False
        self.interrupted = False
        self.seconds = 0.0

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return len(self.losses)

    def __repr__(self) -> str:
        last = f", loss {self.epochs[-1]:.4g} in the last epoch" if self.epochs else ""
        early = f", stopped early; epoch {self.best} was the best" if self.stopped_early else ""
        return f"History({self.steps} steps{last}{early}{', interrupted' if self.interrupted else ''})"


@known_arguments
def fit(
    model: Model,
    batches: Sequence[Any],
    loss: Callable[[Model, Any], Tensor],
    *,
    optimiser: Optimiser | None = None,
    epochs: int = 10,
    steps: int | None = None,
    rng: init.Rng = 0,
    schedule: Schedule | None = None,
    clip: float | None = None,
    validate: Callable[[Model], float] | None = None,
    patience: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 1,
    resume: bool = False,
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
    steps : int, optional
        The most steps in all; the last epoch may end before its end.
    rng : numpy Generator, int or None
        Where the order of the batches comes from.
    schedule : callable, optional
        The learning rate of step 1, 2, ...: see `tinyattn.optim.cosine`.
    clip : float, optional
        The most that all gradients together may be long: see `tinyattn.optim.clip_gradients`.
    validate : callable, optional
        ``validate(model)`` after each epoch gives a number, the smaller the better, such as the loss on held-out data.
    patience : int, optional
        Stop when so many epochs were no better than the best, by ``validate`` or else the mean loss, and give the
        model the numbers of the best.
    checkpoint : str or path, optional
        A file ending in ``.npz`` or ``.safetensors``, written whole after epochs and at the end, also after Ctrl-C.
    every : int
        How many epochs lie between two checkpoints.
    resume : bool
        Go on from the checkpoint where there is one: to the same bits as without the stop.  Random numbers are
        brought back where a generator stands in an attribute of the model.
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
    DataFileError
        When the checkpoint to go on from is not one of this training.

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
    batches = _checked(batches, {"epochs": epochs, "steps": steps, "patience": patience, "every": every})
    _check_parts(model, optimiser, schedule, checkpoint, resume)
    _check_settings(loss, validate, clip, progress, label, ascii, stream)
    optimiser = Adam(model.parameters(), lr=0.01) if optimiser is None else optimiser
    run = _Run(model, batches, loss, optimiser, init.generator(rng))
    run.schedule, run.clip, run.validate, run.patience = schedule, clip, validate, patience
    run.checkpoint, run.every = checkpoint, every
    if resume and checkpoint is not None and os.path.exists(checkpoint):
        run.resume(checkpoint)
    total = int(epochs) * len(batches) if steps is None else min(int(epochs) * len(batches), int(steps))
    bar = ProgressBar(total, label, stream=stream, ascii=ascii) if progress is True else progress or None
    start, training_before = time.monotonic(), model.training
    model.train()
    with _Interrupts() as interrupts:
        try:
            while run.goes_on(epochs, steps) and not interrupts.asked:
                run.step()
                if bar is not None:
                    bar.update(run.history.steps, run.note()) if bar is not progress else bar.step(note=run.note())
            run.finish()
        finally:
            model.train(training_before)
            if bar is not None and (bar is not progress or interrupts.asked):
                bar.close()
    history = run.history
    history.seconds, history.interrupted = time.monotonic() - start, interrupts.asked
    if history.interrupted and bar is not None and bar is not progress:
        say(_stopped(history.steps, total), ascii, sys.stderr if stream is None else stream)
    return history


def _stopped(done: int, total: int) -> str:
    return f"Stopped after {done} of {total} steps; what was learned is kept."


class _Run(Generic[Model]):
    """A training under way: everything that changes while it goes on is here, in the model and in the optimiser."""

    schedule: Schedule | None = None
    clip: float | None = None
    validate: Callable[[Model], float] | None = None
    patience: int | None = None
    checkpoint: str | os.PathLike[str] | None = None
    every = 1

    def __init__(
        self,
        model: Model,
        batches: Sequence[Any],
        loss: Callable[[Model, Any], Tensor],
        optimiser: Optimiser,
        source: np.random.Generator,
    ) -> None:
        self.model, self.batches, self.loss, self.optimiser, self.source = model, batches, loss, optimiser, source
        self.history = History()
        self.order, self.place = np.zeros(0, np.int64), 0  # the batches of this epoch, and how many are done
        self.best: dict[str, np.ndarray] = {}  # the numbers of the best epoch
        self.best_value, self.saved_at = math.inf, -1

    def goes_on(self, epochs: int, steps: int | None) -> bool:
        over = len(self.history.epochs) >= epochs or (steps is not None and self.history.steps >= steps)
        return not over and not self.history.stopped_early

    def note(self) -> str:
        return f"loss {self.history.losses[-1]:.3f}"

    def step(self) -> None:
        """One step, and after the last of an epoch what belongs to its end."""
        if self.place == len(self.order):
            self.order, self.place = self.source.permutation(len(self.batches)), 0
        number = self.history.steps + 1
        if self.schedule is not None:
            self.optimiser.lr = _rate(self.schedule(number), number)
        batch = self.batches[self.order[self.place]]
        self.history.losses.append(_step(self.model, batch, self.loss, self.optimiser, number, self.clip))
        self.place += 1
        if self.place == len(self.order):
            self.end_epoch()

    def end_epoch(self) -> None:
        history = self.history
        history.epochs.append(float(np.mean(history.losses[-len(self.batches) :])))
        if self.validate is not None:
            history.validations.append(_validated(self.model, self.validate))
        if self.patience is not None:
            self.judge(history.validations[-1] if history.validations else history.epochs[-1], self.patience)
        if len(history.epochs) % self.every == 0:
            self.save()

    def judge(self, value: float, patience: int) -> None:
        """Keep the best numbers, and notice when there were none for too long."""
        epoch = len(self.history.epochs)
        if value < self.best_value or self.history.best is None:
            self.best_value, self.history.best, self.best = value, epoch, self.model.state_dict()
        self.history.stopped_early = epoch - self.history.best >= patience

    def finish(self) -> None:
        if self.history.steps != self.saved_at:
            self.save()
        if self.best and self.place == len(self.order):  # not in the middle of an epoch, after Ctrl-C
            self.model.load_state_dict(self.best)

    # -- keeping and bringing back ------------------------------------------------------------------------------

    def save(self) -> None:
        if self.checkpoint is None:
            return
        history, self.saved_at = self.history, self.history.steps
        arrays = {"losses": history.losses, "epochs": history.epochs, "validations": history.validations}
        kept = {name: np.array(numbers, float) for name, numbers in arrays.items()}
        kept["order"] = np.asarray(self.order, np.int64)
        kept.update({f"best/{name}": array for name, array in self.best.items()})
        notes = {"place": self.place, "batches": len(self.batches), "best": history.best, "value": self.best_value}
        save_checkpoint(self.checkpoint, self.model, self.optimiser, self.source, kept, notes)

    def resume(self, path: str | os.PathLike[str]) -> None:
        load_checkpoint(path, self.model, self.optimiser, self.source, self._take)
        if self.patience is not None and self.history.best is not None:
            self.history.stopped_early = len(self.history.epochs) - self.history.best >= self.patience
        self.saved_at = self.history.steps

    def _take(self, arrays: dict[str, np.ndarray], notes: dict[str, Any]) -> None:
        """Where it was; what `save` did not write is refused with ValueError, TypeError or KeyError."""
        batches, place, order = int(notes["batches"]), int(notes["place"]), arrays.pop("order")
        if batches != len(self.batches):
            raise ValueError(f"it has {batches} batches there, {len(self.batches)} here")
        losses, epochs, validations = (arrays.pop(name) for name in ("losses", "epochs", "validations"))
        best = {name.removeprefix("best/"): array for name, array in arrays.items()}
        own = {name: array.shape for name, array in self.model.state_dict().items()}
        complete = order.dtype.kind == "i" and sorted(order.ravel().tolist()) in ([], list(range(batches)))
        if not (complete and order.ndim == losses.ndim == epochs.ndim == validations.ndim == 1):
            raise ValueError("its order of batches or its losses are none")
        if not 0 <= place <= len(order) or len(losses) < len(epochs) * batches:
            raise ValueError(f"it says place {place} after {len(losses)} steps and {len(epochs)} epochs")
        if best and {name: array.shape for name, array in best.items()} != own:
            raise ValueError("its best numbers are those of another model")
        if (notes["best"] is None) != (not best) or (best and not 1 <= int(notes["best"]) <= len(epochs)):
            raise ValueError(f"its best epoch is {notes['best']!r} of {len(epochs)}")
        self.history.best, self.best_value, self.best = notes["best"], float(notes["value"]), best
        self.history.losses, self.history.epochs = losses.tolist(), epochs.tolist()
        self.history.validations, self.order, self.place = validations.tolist(), order, place


def _rate(rate: object, number: int) -> float:
    """What a schedule gave as the learning rate, if it can be one."""
    if isinstance(rate, (int, float, np.number)) and not isinstance(rate, bool) and 0 <= rate < math.inf:
        return float(rate)
    shown = f"{rate!r}" if isinstance(rate, (int, float, str)) else f"a {type(rate).__name__}"
    raise ArgumentError(
        message(
            f"fit: schedule gave {shown} in step {number}; a learning rate is needed.",
            "It is a number from 0 on.",
            "Write schedule=ta.optim.cosine(lr, steps), or a function of the step that returns a number.",
        )
    )


def _validated(model: Model, validate: Callable[[Model], float]) -> float:
    model.eval()
    try:
        with no_grad():
            value = validate(model)
    finally:
        model.train()
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            message(
                f"fit: validate gave a {type(value).__name__}; one number is needed.",
                "The smaller it is, the better.",
                "End the function in return float(...).",
            )
        ) from None


def _step(
    model: Model,
    batch: Any,
    loss: Callable[[Model, Any], Tensor],
    optimiser: Optimiser,
    number: int,
    clip: float | None = None,
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
    if clip is not None:
        clip_gradients(optimiser.parameters, clip)
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


def _checked(batches: Sequence[Any], counts: dict[str, int | None]) -> Sequence[Any]:
    if not hasattr(batches, "__len__") or not hasattr(batches, "__getitem__") or isinstance(batches, Mapping):
        raise ArgumentTypeError(
            message(
                f"fit: batches is a {type(batches).__name__}; a list of batches is needed.",
                "Each epoch goes through them again, in another order.",
                "Write list(batches).",
            )
        )
    if len(batches) == 0:
        raise ArgumentError(message("fit: there is no batch.", "", "Give at least one: [batch]."))
    for name, value in counts.items():
        if value is None and name in ("steps", "patience"):
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ArgumentError(f"fit: {name}={value!r} must be a whole number from 1 on.")
    return batches


def _check_parts(
    model: object, optimiser: object, schedule: object, checkpoint: str | os.PathLike[str] | None, resume: bool
) -> None:
    _check_file(checkpoint, resume)
    if not isinstance(model, Module):
        raise ArgumentTypeError(f"fit: model is a {type(model).__name__}; a Module is needed, whose parameters learn.")
    if optimiser is not None and not isinstance(optimiser, Optimiser):
        raise ArgumentTypeError(
            message(
                f"fit: optimiser={optimiser!r} is no optimiser.",
                "It has to know which parameters it moves.",
                "Write optimiser=ta.optim.SGD(model.parameters(), lr=0.1).",
            )
        )
    if schedule is not None and not callable(schedule):
        raise ArgumentTypeError(
            message(
                f"fit: schedule={schedule!r} is no function of the step.",
                "It gives the learning rate of step 1, 2, ...",
                "For one rate throughout give it to the optimiser, lr=..., and leave schedule away.",
            )
        )


def _check_settings(
    loss: object, validate: object, clip: object, progress: object, label: object, ascii: object, stream: object
) -> None:
    if not callable(loss):
        why, instead = "It is called once a step.", "Write loss=lambda model, batch: ..."
        raise _wrong_kind("loss", loss, "a function", why, instead)
    if validate is not None and not callable(validate):
        why, instead = "It is called after each epoch.", "Write validate=lambda model: ..."
        raise _wrong_kind("validate", validate, "a function", why, instead)
    if clip is not None and one_number(clip, "fit", "clip") <= 0:
        raise ArgumentError(f"fit: clip={clip!r} must be above 0; gradients of that length would not move anything.")
    yes_or_no(ascii, "fit", "ascii")
    if not isinstance(progress, (bool, ProgressBar)):
        raise _wrong_kind("progress", progress, "True, False or a ProgressBar")
    if not isinstance(label, str):
        raise _wrong_kind("label", label, "a text")
    if stream is not None and not callable(getattr(stream, "write", None)):
        raise _wrong_kind("stream", stream, "a text stream such as sys.stdout")


def _wrong_kind(name: str, given: object, needed: str, why: str = "", instead: str = "") -> ArgumentTypeError:
    return ArgumentTypeError(message(f"fit: {name} is a {type(given).__name__}; {needed} is needed.", why, instead))


def _check_file(checkpoint: str | os.PathLike[str] | None, resume: bool) -> None:
    """Refuse a place for checkpoints now, not after an epoch."""
    if yes_or_no(resume, "fit", "resume") and checkpoint is None:
        raise ArgumentError(message("fit: resume=True, but no file.", "", "Write checkpoint='training.npz', too."))
    if checkpoint is not None:
        format_of(checkpoint)
        folder = os.path.dirname(os.path.abspath(checkpoint))
        if not os.path.isdir(folder):
            raise ArgumentError(message(f"fit: there is no folder {folder} for the checkpoint.", "", "Make it first."))
