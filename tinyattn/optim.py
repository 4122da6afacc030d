"""Optimisers: how parameters move along their gradients; schedules of the learning rate; clipping.

Each writes the new numbers into an array that nobody holds and hands it to the parameter, so that no recorded graph is
ever corrupted.  Ctrl-C waits until a step is complete.  Stands on `tensor`, and on `bundles`, which puts small
parameters side by side.
"""

from __future__ import annotations

import functools
import math
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from tinyattn.arguments import argument_names, as_array, known_to_start, one_number, values_of
from tinyattn.bundles import bundled
from tinyattn.errors import ArgumentError, ArgumentTypeError, GraphError, NanError, ShapeError, message
from tinyattn.names import describe
from tinyattn.tensor import Tensor

__all__ = ["SGD", "Adam", "AdamW", "Optimiser", "Schedule", "clip_gradients", "cosine", "inverse_root"]

Schedule = Callable[[int], float]
F = TypeVar("F", bound=Callable[..., Any])


def _known_keywords(start: F) -> F:
    """Let an ``__init__`` answer the keywords of other libraries in words."""
    return known_to_start(start, argument_names(start))


def _entrywise(move: F) -> F:
    """Mark a `_move` that treats every number alike, so that it may be given many parameters in one long array.

    Who overrides `_move` gets one parameter at a time.
    """
    move.entrywise = True  # type: ignore[attr-defined]
    return move


class Optimiser:
    """What all optimisers share: which parameters, how fast, and that a step is whole or not at all.

    Parameters
    ----------
    parameters : iterable of Tensor
        Leaves with gradient, such as ``model.parameters()``.
    lr : float
        The learning rate; may be changed between steps.

    Examples
    --------
    One of one's own writes the new numbers of one parameter at a time:

    >>> import tinyattn as ta
    >>> class Signs(Optimiser):
    ...     def _move(self, place, old, gradient, new):
    ...         new[...] = old - self.lr * np.sign(gradient)
    >>> w = ta.tensor([1.0, -1.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> Signs([w], lr=0.25).step()
    >>> w.data
    array([ 0.75, -0.75])
    """

    @_known_keywords
    def __init__(self, parameters: Iterable[Tensor], lr: float) -> None:
        self.parameters = tuple(_checked(parameters, type(self).__name__))
        self.lr = _positive(lr, type(self).__name__, "lr")
        self.steps = 0
        self._buffers = [np.empty(p.shape, p.dtype) for p in self.parameters]
        self._kept: list[list[np.ndarray]] = []
        self._bundle()

    def zero_grad(self) -> None:
        """Forget the gradients, so that the next `backward` starts from nothing."""
        for p in self.parameters:
            p.zero_grad()

    def step(self) -> None:
        """Move every parameter that has a gradient.

        Raises
        ------
        GraphError
            When no parameter has a gradient.
        """
        self._need_a_gradient()
        waiting = _HeldBack()
        try:
            self.steps += 1
            by_themselves = self._unbundled
            for place, bundle in enumerate(self._bundles, len(self.parameters)):
                if self._alike(bundle.places) and bundle.ready():
                    new = bundle.free()
                    self._move(place, bundle.old, bundle.gradient, new.array)
                    bundle.take(new)
                else:
                    by_themselves = by_themselves + bundle.places
            for place in by_themselves:
                self._move_one(place)
        finally:
            waiting.release()

    def _need_a_gradient(self) -> None:
        for p in self.parameters:
            if p.grad is not None:
                return
        raise GraphError(
            message(
                f"step: none of the {len(self.parameters)} parameters has a gradient.",
                "A step goes along the gradients, and they come from backward.",
                "Call loss.backward() before step(), and zero_grad() after it.",
            )
        )

    def _move_one(self, place: int) -> None:
        p, new = self.parameters[place], self._buffers[place]
        if (gradient := p.grad) is not None:
            self._move(place, values_of(p), gradient, new)
            self._buffers[place] = _next_buffer(p.exchange(new), new)

    def _move(self, place: int, old: Any, gradient: Any, new: np.ndarray) -> None:
        """Write the new numbers of one parameter into ``new``."""
        raise NotImplementedError

    # -- small parameters together: a bundle has a place of its own, behind those of the parameters --------------

    def _bundle(self) -> None:
        self._bundles = bundled(self.parameters) if hasattr(self._move, "entrywise") else []
        bundles = {place for bundle in self._bundles for place in bundle.places}
        self._unbundled = [place for place in range(len(self.parameters)) if place not in bundles]

    def _places(self, place: int) -> list[int]:
        """The parameters of a place: one, or those of a bundle."""
        count = len(self.parameters)
        return [place] if place < count else self._bundles[place - count].places

    def _alike(self, places: list[int]) -> bool:
        """Whether the same is to be done with these parameters."""
        return True

    def _zeros(self) -> list[np.ndarray]:
        """An array to remember something in for each parameter, and for each bundle."""
        each = [np.zeros(p.shape, p.dtype) for p in self.parameters]
        self._kept.append(each)
        self._side_by_side(each)
        return each

    def _side_by_side(self, each: list[np.ndarray]) -> None:
        """Make the arrays of bundled parameters pieces of a long one, which comes behind those of the parameters."""
        del each[len(self.parameters) :]
        for bundle in self._bundles:
            strip = bundle.strip()
            for place, piece in zip(bundle.places, strip.pieces):
                piece[...] = each[place]
                each[place] = piece
            each.append(strip.array)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy starts from: all but the bundles, which it makes for itself."""
        return {name: value for name, value in vars(self).items() if name != "_bundles"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become a copy: in it pieces are arrays of their own, so it bundles anew."""
        vars(self).update(state)
        self._bundle()
        for each in self._kept:
            self._side_by_side(each)

    # -- keeping and bringing back ------------------------------------------------------------------------------

    def _remembered(self) -> dict[str, list[Any]]:
        """What it remembers of earlier steps: for each kind, one array or number per parameter."""
        return {}

    def state_dict(self) -> dict[str, np.ndarray]:
        """Copy what it remembers: with it, and the parameters, a training goes on as if it had not stopped.

        Examples
        --------
        >>> import tinyattn as ta
        >>> optimiser = SGD([ta.tensor([1.0], requires_grad=True)], lr=0.1, momentum=0.9)
        >>> {name: array.tolist() for name, array in optimiser.state_dict().items()}
        {'lr': 0.1, 'steps': 0, 'velocity.0': [0.0]}
        """
        state = {"lr": np.array(self.lr), "steps": np.array(self.steps)}
        for kind, each in self._remembered().items():
            state.update({f"{kind}.{place}": np.array(each[place]) for place in range(len(self.parameters))})
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take what `state_dict` gave; all of it, or after an error nothing.

        Raises
        ------
        ArgumentError
            It belongs to another optimiser.
        ShapeError
            It belongs to other parameters.
        """
        if not isinstance(state, Mapping):
            raise ArgumentTypeError(f"load_state_dict: a {type(state).__name__}; what state_dict() gives is needed.")
        mine = self.state_dict()
        arrays = {name: as_array(part, name=f"load_state_dict: {name}") for name, part in state.items()}
        if mine.keys() != arrays.keys():
            odd = ", ".join(sorted(mine.keys() ^ arrays.keys())[:4])
            raise ArgumentError(
                message(
                    f"load_state_dict: the state is not one of this {type(self).__name__}: {odd}.",
                    "It was saved by another kind of optimiser, or with another number of parameters.",
                    "Make the optimiser as it was made when the state was saved.",
                )
            )
        for name, own in mine.items():
            if own.shape != arrays[name].shape:
                raise ShapeError(f"load_state_dict: {name} is {own.shape} here, {arrays[name].shape} in the state.")
            if arrays[name].dtype.kind not in "fiu" or not np.isfinite(arrays[name]).all():
                raise ArgumentError(f"load_state_dict: {name} holds what is no finite number.")
            if own.dtype.kind == "i" and (arrays[name] < 0).any():
                raise ArgumentError(f"load_state_dict: {name} counts steps, and is {arrays[name]}.")
        self.lr, self.steps = float(arrays["lr"]), int(arrays["steps"])
        for kind, each in self._remembered().items():
            for place in range(len(self.parameters)):
                new, part = arrays[f"{kind}.{place}"], each[place]
                if isinstance(part, np.ndarray):
                    part[...] = new
                else:
                    each[place] = int(new)


class SGD(Optimiser):
    """Gradient descent: a step against the gradient, with momentum one that remembers the steps before.

    With momentum the direction is ``u = momentum * u + gradient``, and the step ``W - lr * u``.

    Parameters
    ----------
    parameters : iterable of Tensor
    lr : float
    momentum : float from 0 to 1, 1 excluded

    Examples
    --------
    >>> import tinyattn as ta
    >>> w = ta.tensor([1.0, -2.0], requires_grad=True)
    >>> optimiser = SGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimiser.step()
    >>> w.data
    array([ 0.8, -1.6])
    """

    @_known_keywords
    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.0) -> None:
        super().__init__(parameters, lr)
        self.momentum = _share(momentum, "SGD", "momentum")
        self._velocities = self._zeros()

    def _remembered(self) -> dict[str, list[Any]]:
        return {"velocity": self._velocities} if self.momentum else {}

    @_entrywise
    def _move(self, place: int, old: Any, gradient: Any, new: np.ndarray) -> None:
        direction = gradient
        if self.momentum:
            direction = self._velocities[place]
            direction *= self.momentum
            direction += gradient
        rate = _number_array(float(self.lr), new.dtype)
        if new.ndim == 0:
            new[()] = old - direction[()] * rate[()]  # single numbers cost a tenth of arrays without axes
            return
        np.multiply(direction, rate, new)
        np.subtract(old, new, new)


class Adam(Optimiser):
    """Steps of about the same size for every entry, whatever the size of its gradient (Kingma and Ba 2015).

    A running mean m of the gradients is divided by the square root of a running mean s of their squares; both
    start at 0 and are corrected for it.

    Parameters
    ----------
    parameters : iterable of Tensor
    lr : float
    betas : pair of float from 0 to 1, 1 excluded
        How much m and s remember.
    eps : float
        Keeps the division away from 0.

    Examples
    --------
    >>> import tinyattn as ta
    >>> w = ta.tensor([1.0, -200.0], requires_grad=True)
    >>> optimiser = Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimiser.step()
    >>> w.data.round(6)
    array([   0.9, -199.9])
    """

    @_known_keywords
    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(parameters, lr)
        if not isinstance(betas, Sequence) or len(betas) != 2:
            raise ArgumentError(f"{type(self).__name__}: betas={betas!r} must be two numbers, such as (0.9, 0.999).")
        self.betas = _share(betas[0], "Adam", "betas[0]"), _share(betas[1], "Adam", "betas[1]")
        self.eps = _positive(eps, "Adam", "eps")
        self._means = self._zeros()
        self._squares = self._zeros()
        self._times = [0] * len(self.parameters)  # a parameter without gradient does not take part in a step

    def _remembered(self) -> dict[str, list[Any]]:
        return {"mean": self._means, "square": self._squares, "time": self._times}

    def _alike(self, places: list[int]) -> bool:
        return len({self._times[place] for place in places}) == 1

    def _count(self, place: int) -> int:
        """The number of this step for the parameters of a place."""
        places = self._places(place)
        time = self._times[places[0]] + 1
        for one in places:
            self._times[one] = time
        return time

    @_entrywise
    def _move(self, place: int, old: Any, gradient: Any, new: np.ndarray) -> None:
        (beta1, beta2), m, s, t = self.betas, self._means[place], self._squares[place], self._count(place)
        m *= beta1
        m += np.multiply(gradient, 1 - beta1, out=new)
        s *= beta2
        s += np.multiply(np.multiply(gradient, gradient, out=new), 1 - beta2, out=new)
        np.sqrt(s, out=new)
        new /= math.sqrt(1 - beta2**t)
        new += max(self.eps, _SMALLEST[new.dtype])  # of float16, eps would be 0
        np.divide(m, new, out=new)
        new *= self.lr / (1 - beta1**t)
        np.subtract(old, new, out=new)


class AdamW(Adam):
    """Adam with a weight decay that the gradients do not see (Loshchilov and Hutter 2019, algorithm 2).

    Each step first multiplies the parameters by ``1 - lr * decay``.

    Parameters
    ----------
    parameters : iterable of Tensor
    lr, betas, eps
        As in `Adam`.
    decay : float from 0 on
        How strongly parameters are drawn to 0.

    Examples
    --------
    >>> import tinyattn as ta
    >>> w = ta.tensor([1.0], requires_grad=True)
    >>> w.grad = [0.0]
    >>> AdamW([w], lr=0.1, decay=0.5).step()
    >>> w.data
    array([0.95])
    """

    @_known_keywords
    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        decay: float = 0.01,
    ) -> None:
        super().__init__(parameters, lr, betas, eps)
        if not (isinstance(decay, (int, float, np.number)) and 0 <= decay < math.inf):
            raise ArgumentError(f"AdamW: decay={decay!r} must be a number from 0 on.")
        self.decay = float(decay)

    @_entrywise
    def _move(self, place: int, old: Any, gradient: Any, new: np.ndarray) -> None:
        shrunk = old * new.dtype.type(1 - self.lr * self.decay)
        super()._move(place, shrunk, gradient, new)


# -- the learning rate over time, and the size of a step ---------------------------------------------------------


def cosine(lr: float, steps: int, warmup: int = 0, floor: float = 0.0) -> Schedule:
    """A learning rate that rises evenly for ``warmup`` steps and then falls along half a cosine.

    Parameters
    ----------
    lr : float
        The highest.
    steps : int
        After so many steps it has fallen to ``floor``, and stays there.
    warmup : int
        So many steps it takes to rise.
    floor : float
        The lowest.

    Returns
    -------
    callable
        The rate of step 1, 2, ...: for ``train.fit(..., schedule=)``.

    Examples
    --------
    >>> rate = cosine(1.0, steps=6, warmup=2)
    >>> [round(rate(step), 3) for step in range(1, 8)]
    [0.5, 1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """
    lr = _positive(lr, "cosine", "lr")
    if not all(isinstance(n, (int, np.integer)) for n in (steps, warmup)) or not 0 <= warmup < steps:
        raise ArgumentError(f"cosine: warmup={warmup!r} must be from 0 to less than steps={steps!r}.")
    floor = one_number(floor, "cosine", "floor")

    def rate(step: int) -> float:
        if warmup and step <= warmup:
            return lr * step / warmup
        done = min(1.0, max(0, step - warmup) / (steps - warmup))
        return floor + (lr - floor) * (1 + math.cos(math.pi * done)) / 2

    return rate


def inverse_root(lr: float, warmup: int) -> Schedule:
    """A learning rate that rises evenly, and then falls with 1/√step (Vaswani et al. 2017, section 5.3).

    Parameters
    ----------
    lr : float
        The highest, reached after ``warmup`` steps; the paper's is 1/√(d · warmup).
    warmup : int

    Returns
    -------
    callable
        The rate of step 1, 2, ...

    Examples
    --------
    >>> rate = inverse_root(1.0, warmup=4)
    >>> [rate(step) for step in (1, 4, 16)]
    [0.25, 1.0, 0.5]
    """
    lr = _positive(lr, "inverse_root", "lr")
    if not isinstance(warmup, (int, np.integer)) or warmup < 1:
        raise ArgumentError(f"inverse_root: warmup={warmup!r} must be from 1 on.")
    return lambda step: lr * min(step / warmup, math.sqrt(warmup / max(step, 1)))


def clip_gradients(parameters: Iterable[Tensor], norm: float) -> float:
    """Shorten all gradients by one factor, so that together they are no longer than ``norm``.

    Parameters
    ----------
    parameters : iterable of Tensor
    norm : float
        The most that the root of the sum of all squares may be.

    Returns
    -------
    float
        What it was before.

    Raises
    ------
    NanError
        When a gradient is nan or infinite; nothing has been changed then.

    Examples
    --------
    >>> import tinyattn as ta
    >>> w = ta.tensor([0.0, 0.0], requires_grad=True)
    >>> w.grad = [3.0, 4.0]
    >>> clip_gradients([w], 1.0)
    5.0
    >>> w.grad
    array([0.6, 0.8])
    """
    norm = _positive(norm, "clip_gradients", "norm")
    moved = [(p, p.grad) for p in _checked(parameters, "clip_gradients") if p.grad is not None]
    total = _length([grad for _, grad in moved])
    broken = [] if math.isfinite(total) else [describe(p) for p, grad in moved if not np.isfinite(grad).all()]
    if broken:
        first = broken[0]
        raise NanError(
            message(
                f"clip_gradients: the gradient of {first} is not finite.",
                "A factor cannot mend it.",
                "Run the step inside ta.detect_nan() to see which operation made it.",
            )
        )
    if total > norm:
        for p, grad in moved:
            p.grad = grad * p.dtype.type(norm / total)
    return total


def _length(gradients: list[Any]) -> float:
    """The root of the sum of all squares; squares that are too large for float64 are taken of smaller numbers."""
    with np.errstate(over="ignore"):
        total = math.sqrt(sum(float(np.square(grad, dtype=np.float64).sum()) for grad in gradients))
    if math.isfinite(total):
        return total
    largest = [float(np.abs(grad).max()) for grad in gradients if grad.size]
    if not all(map(math.isfinite, largest)):
        return math.inf
    return max(largest) * _length([grad / max(largest) for grad in gradients])


@functools.lru_cache(maxsize=64)
def _number_array(number: float, dtype: np.dtype[Any]) -> np.ndarray:
    """A number as an array without axes: small arrays are multiplied by it in half the time of a Python number."""
    return np.array(number, dtype)


def _next_buffer(old: Any, used: np.ndarray) -> np.ndarray:
    """Where the next step may write: the array that was just given up, unless a recorded graph still holds it."""
    if old.__class__ is not np.ndarray:
        return used  # a 0-d tensor keeps a number, not the array
    free = sys.getrefcount(old) <= _ALONE and old.base is None and old.flags.writeable
    return old if free else np.empty(used.shape, used.dtype)


_ALONE = (lambda old: sys.getrefcount(old))(np.empty(0))  # counted where nobody else holds it: Pythons differ


try:  # the plain functions under the signal module's: those turn numbers into enums, which costs more than a small step
    from _signal import getsignal as _get_handler  # type: ignore[import-not-found]
    from _signal import signal as _set_handler
except ImportError:  # another Python than CPython
    from signal import getsignal as _get_handler
    from signal import signal as _set_handler


_SMALLEST = {np.dtype(kind): float(np.finfo(kind).tiny) for kind in (np.float16, np.float32, np.float64)}


class _HeldBack:
    """Ctrl-C waits from here to `release`; a second one acts at once.  Other threads than the main one never see it."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, Any]] = []
        self.before: Any = _get_handler(signal.SIGINT)
        if not callable(self.before):  # it is ignored, or handled outside Python: leave it so
            self.before = None
            return
        try:
            _set_handler(signal.SIGINT, self._note)
        except ValueError:  # another thread than the main one
            self.before = None

    def _note(self, number: int, frame: Any) -> None:
        self.seen.append((number, frame))
        if len(self.seen) > 1:
            self.before(number, frame)

    def release(self) -> None:
        if self.before is not None:
            _set_handler(signal.SIGINT, self.before)
            if self.seen:
                self.before(*self.seen[0])


def _checked(parameters: Iterable[Tensor], name: str) -> list[Tensor]:
    if callable(getattr(parameters, "parameters", None)):
        raise ArgumentTypeError(f"{name}: a model was given.\n  Write {name}(model.parameters(), ...).")
    if isinstance(parameters, Tensor):
        raise ArgumentTypeError(f"{name}: one tensor was given.\n  Write a list: {name}([W], ...).")
    if not hasattr(parameters, "__iter__"):
        what = "the method itself" if callable(parameters) else f"a {type(parameters).__name__}"
        raise ArgumentTypeError(f"{name}: {what} was given.\n  Write {name}(model.parameters(), ...), with brackets.")
    found = list({id(p): p for p in parameters}.values())  # a shared one moves once
    for p in found:
        if not isinstance(p, Tensor) or not p.is_leaf or not p.requires_grad:
            what = describe(p) if isinstance(p, Tensor) else type(p).__name__
            raise ArgumentTypeError(
                message(
                    f"{name}: {what} cannot be learned.",
                    "A parameter is a leaf tensor with requires_grad=True.",
                    "Make it with ta.tensor(..., requires_grad=True).",
                )
            )
    if not found:
        raise ArgumentError(
            message(
                f"{name}: there is no parameter.",
                "A model finds the parameters that are stored in its attributes.",
                "Write self.W = ta.tensor(..., requires_grad=True) in its __init__.",
            )
        )
    return found


def _positive(value: float, name: str, what: str) -> float:
    if not (isinstance(value, (int, float, np.number)) and 0 < value < math.inf):
        raise ArgumentError(f"{name}: {what}={value!r} must be a number above 0.")
    return float(value)


def _share(value: float, name: str, what: str) -> float:
    if not (isinstance(value, (int, float, np.number)) and 0 <= value < 1):
        raise ArgumentError(f"{name}: {what}={value!r} must be from 0 up to, but not including, 1.")
    return float(value)
