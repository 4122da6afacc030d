"""What a function finds outside: variables, models, and the words for the tensors among them."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from tinyattn.names import variable_names
from tinyattn.tensor import Tensor


def outside_words(f: Callable[..., Any]) -> dict[int, str]:
    """The learner's words for tensors that a function finds outside: variables, and parameters by their path."""
    found: dict[int, str] = {}
    seen = seen_by(f)
    for name, value in _opened(seen):
        if _is_model(value):
            for path, leaf in value.named_parameters():
                found.setdefault(id(leaf), path)
        elif isinstance(value, Tensor):
            found.setdefault(id(value), name)
    found.update(variable_names({name: x for name, x in seen.items() if isinstance(x, Tensor)}))
    return found


def tensors_seen_by(f: Callable[..., Any]) -> list[Tensor]:
    """The tensors that a function finds outside, by themselves, in models, lists and dictionaries."""
    found: list[Tensor] = []
    for _, value in _opened(seen_by(f)):
        found += value.parameters() if _is_model(value) else [value] if isinstance(value, Tensor) else []
    return found


def modules_seen_by(f: Callable[..., Any]) -> list[Any]:
    """Modules whose switch between learning and use a program depends on."""
    return modules_in(seen_by(f))


def modules_in(values: dict[str, Any]) -> list[Any]:
    """The modules among some values, with all their parts."""
    models = [value for _, value in _opened(values) if _is_model(value)]
    return list({id(module): module for model in models for _, module in model.named_modules()}.values())


def _is_model(value: Any) -> bool:
    return not inspect.ismodule(value) and hasattr(value, "named_modules")


def _opened(values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values with their names, and in the place of lists, tuples and dictionaries what is in them."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from ((str(key), part) for key, part in value.items())
        elif isinstance(value, (list, tuple)):
            yield from ((f"{name}_{at}", part) for at, part in enumerate(value))
        else:
            yield name, value


def underlying(f: Callable[..., Any]) -> Callable[..., Any]:
    """The learner's function inside a decorator, or inside a transform such as ``ta.value_and_grad(f)``."""
    while True:
        f = inspect.unwrap(f)
        cells = zip(getattr(getattr(f, "__code__", None), "co_freevars", ()), getattr(f, "__closure__", None) or ())
        inside = {name: cell.cell_contents for name, cell in cells if name in ("f", "target")}
        if getattr(f, "__module__", "") != "tinyattn.transforms" or not inside:
            return f
        f = next(iter(inside.values()))


def seen_by(f: Callable[..., Any]) -> dict[str, Any]:
    """What a function finds outside: the variables that its code mentions, what its object has, and what the
    functions find that it mentions.
    """
    found: dict[str, Any] = {}
    waiting, known = [underlying(f)], set()
    while waiting:
        g = inspect.unwrap(waiting.pop())
        if id(g) in known:
            continue
        known.add(id(g))
        owner = getattr(g, "__self__", None if inspect.isfunction(g) else g)
        ours = str(getattr(g, "__module__", "")).startswith("tinyattn.")
        new = ({} if ours else _variables_of(g)) | ({} if owner is None else {"": owner})
        for value in list(new.values()):  # parts of an object, one level deep
            if hasattr(value, "__dict__") and not inspect.ismodule(value) and not callable(value):
                new = {**vars(value), **new}
        found = {**new, **found}
        waiting += [value for value in new.values() if inspect.isfunction(value) or inspect.ismethod(value)]
    return found


def _names_in(code: Any) -> set[str]:
    """The global names in a code object and in those inside it, such as a list that is built in one line."""
    inside = [part for part in code.co_consts if inspect.iscode(part)]
    return set(code.co_names).union(*map(_names_in, inside))


def _variables_of(g: Any) -> dict[str, Any]:
    """The values of the free and global variables in the code of a function."""
    code = getattr(g, "__code__", None)
    if code is None:
        return {}
    found = {name: g.__globals__[name] for name in _names_in(code) if name in g.__globals__}
    for name, cell in zip(code.co_freevars, getattr(g, "__closure__", None) or (), strict=False):
        with contextlib.suppress(ValueError):  # not assigned yet
            found[name] = cell.cell_contents
    return found
