"""Checkpoints: everything a training needs to go on as if it had not stopped, in one file that is written whole.

That is the parameters, what the optimiser remembers, the state of every source of random numbers that the model or the
training draws from, how far the epoch is, and the history.  The file is a `.npz` or `.safetensors` of `weights`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyattn.arguments import known_arguments
from tinyattn.errors import ArgumentTypeError, DataFileError, TinyattnError, message
from tinyattn.weights import load_arrays, load_notes, save_arrays

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from tinyattn.nn.module import Module
    from tinyattn.optim import Optimiser

__all__ = ["load_checkpoint", "save_checkpoint"]

_FORMAT = "tinyattn checkpoint 1"


@known_arguments
def save_checkpoint(
    path: str | os.PathLike[str],
    model: Module,
    optimiser: Optimiser,
    rng: np.random.Generator,
    arrays: dict[str, np.ndarray] | None = None,
    notes: dict[str, Any] | None = None,
) -> None:
    """Write all that a training needs to go on.

    Parameters
    ----------
    path : str or path
        Ends in ``.npz`` or ``.safetensors``.
    model : Module
        With its parameters, and the generators that stand in its attributes, or those of its parts.
    optimiser : Optimiser
    rng : numpy Generator
        Where the order of the batches comes from.
    arrays, notes : dict, optional
        What else there is: arrays, and whatever JSON can hold.

    Examples
    --------
    >>> import numpy as np, os, tempfile, tinyattn as ta
    >>> path, rng = os.path.join(tempfile.mkdtemp(), "a.npz"), np.random.default_rng(0)
    >>> model = ta.nn.Linear(1, 1, rng=0)
    >>> optimiser = ta.optim.Adam(model.parameters())
    >>> save_checkpoint(path, model, optimiser, rng, notes={"epoch": 3})
    >>> first = rng.random()
    >>> load_checkpoint(path, model, optimiser, rng)
    ({}, {'epoch': 3})
    >>> first == rng.random()
    True
    """
    _check_parts("save_checkpoint", model, optimiser, rng)
    for what, given in (("arrays", arrays), ("notes", notes)):
        if given is not None and not isinstance(given, dict):
            raise ArgumentTypeError(f"save_checkpoint: {what} is a {type(given).__name__}; a dictionary is needed.")
    parts = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "more": arrays or {}}
    flat = {f"{part}/{name}": array for part, each in parts.items() for name, array in each.items()}
    states = [source.bit_generator.state for source in _generators(model, rng)]
    about = {"format": _FORMAT, "kind": type(optimiser).__name__, "generators": states, "notes": notes or {}}
    save_arrays(path, flat, _as_json(about))


@known_arguments
def load_checkpoint(
    path: str | os.PathLike[str],
    model: Module,
    optimiser: Optimiser,
    rng: np.random.Generator,
    take: Callable[[dict[str, np.ndarray], dict[str, Any]], None] | None = None,
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Bring back what `save_checkpoint` wrote; all of it, or after an error nothing.

    Parameters
    ----------
    path : str or path
    model, optimiser, rng
        Made as they were made when it was written; they are changed in place.
    take : callable, optional
        ``take(arrays, notes)`` gets what else was given, and may refuse it with ValueError, TypeError or KeyError.

    Returns
    -------
    arrays, notes : dict
        What else was given.

    Raises
    ------
    MissingFileError
        When there is no such file.
    DataFileError
        When the file is none of these, or belongs to another model, optimiser or way of drawing random numbers.

    Examples
    --------
    >>> import numpy as np, os, tempfile, tinyattn as ta
    >>> path, rng = os.path.join(tempfile.mkdtemp(), "a.npz"), np.random.default_rng(0)
    >>> model = ta.nn.Linear(1, 1, rng=0)
    >>> optimiser = ta.optim.SGD(model.parameters(), lr=0.1)
    >>> save_checkpoint(path, model, optimiser, rng, arrays={"losses": np.ones(2)})
    >>> load_checkpoint(path, model, optimiser, rng)
    ({'losses': array([1., 1.])}, {})
    """
    _check_parts("load_checkpoint", model, optimiser, rng)
    flat, about = load_arrays(path), _about(path)
    parts: dict[str, dict[str, np.ndarray]] = {"model": {}, "optimiser": {}, "more": {}}
    for name, array in flat.items():
        part, _, rest = name.partition("/")
        parts.setdefault(part, {})[rest] = array
    before, remembered = model.state_dict(), optimiser.state_dict()
    sources = _generators(model, rng)
    states = [source.bit_generator.state for source in sources]
    try:
        if about["kind"] != type(optimiser).__name__:
            raise ValueError(f"its optimiser is {about['kind']!r}, here it is {type(optimiser).__name__!r}")
        if len(about["generators"]) != len(sources):
            raise ValueError(f"{len(about['generators'])} sources of random numbers there, {len(sources)} here")
        model.load_state_dict(parts["model"])
        optimiser.load_state_dict(parts["optimiser"])
        for source, state in zip(sources, about["generators"]):
            source.bit_generator.state = state
        if take is not None:
            take(dict(parts["more"]), about["notes"])
    except (TinyattnError, ValueError, TypeError, KeyError) as error:
        model.load_state_dict(before)
        optimiser.load_state_dict(remembered)
        for source, state in zip(sources, states):
            source.bit_generator.state = state
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise DataFileError(f"does not belong to this training: {why}", str(path)) from None
    return parts["more"], about["notes"]


def _check_parts(name: str, model: object, optimiser: object, rng: object) -> None:
    """Refuse what keeps nothing that could be written, such as arguments in another order."""
    for what, given in (("model", model), ("optimiser", optimiser)):
        if not callable(getattr(given, "state_dict", None)) or isinstance(given, type):
            shown = f"{name}: {what} is a {type(given).__name__}, and remembers nothing."
            raise ArgumentTypeError(message(shown, "", f"Write {name}(path, model, optimiser, rng)."))
    if not isinstance(rng, np.random.Generator):
        what = f"{name}: rng is a {type(rng).__name__}; a generator is needed, whose state can be kept."
        raise ArgumentTypeError(message(what, "", "Write rng = np.random.default_rng(seed), and draw from that."))


def _as_json(about: dict[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            return value.tolist()
        raise ArgumentTypeError(f"save_checkpoint: notes hold a {type(value).__name__}, which JSON cannot hold.")

    try:
        return json.dumps(about, default=plain)
    except (TypeError, ValueError) as error:
        if isinstance(error, ArgumentTypeError):
            raise
        raise ArgumentTypeError(f"save_checkpoint: notes cannot be written as JSON: {error}.") from None


def _about(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        about = json.loads(load_notes(path))
        if about["format"] == _FORMAT and isinstance(about["generators"], list) and isinstance(about["notes"], dict):
            return dict(about)
    except (ValueError, TypeError, KeyError):
        pass
    raise DataFileError("is no checkpoint of a training.\n  `weights.load` reads weights alone.", str(path))


def _generators(model: Module, rng: np.random.Generator) -> list[np.random.Generator]:
    """Every source of random numbers, each once: the training's, and those in attributes of the model's parts."""
    found = {id(rng): rng}
    for _, part in model.named_modules():
        for value in vars(part).values():
            if isinstance(value, np.random.Generator):
                found.setdefault(id(value), value)
    return list(found.values())
