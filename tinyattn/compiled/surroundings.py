"""What a function finds outside: variables, models, and the words for the tensors among them."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from tinyattn.names import variable_names
from tinyattn.tensor import Tensor


def outside_words(f: Callable[..., Any]) -> dict[int, str]:
    """The learner's words for tensors that a function finds outside: variables, and parameters by their path."""
    found: dict[int, str] = {}
    seen = seen_by(f)
    for name, value in seen.items():
        if hasattr(value, "named_parameters"):
            for path, leaf in value.named_parameters():
                found.setdefault(id(leaf), path)
        elif isinstance(value, dict):
            found.update({id(x): str(key) for key, x in value.items() if isinstance(x, Tensor)})
        elif isinstance(value, (list, tuple)):
            found.update({id(x): f"{name}_{at}" for at, x in enumerate(value) if isinstance(x, Tensor)})
    found.update(variable_names({name: x for name, x in seen.items() if isinstance(x, Tensor)}))
    return found


def tensors_seen_by(f: Callable[..., Any]) -> list[Tensor]:
    """The tensors that a function finds outside, by themselves, in models, lists and dictionaries."""
    found: list[Tensor] = []
    for value in seen_by(f).values():
        if isinstance(value, Tensor):
            found.append(value)
        elif hasattr(value, "parameters") and hasattr(value, "named_modules"):
            found += value.parameters()
        elif isinstance(value, (list, tuple, dict)):
            inside = value.values() if isinstance(value, dict) else value
            found += [x for x in inside if isinstance(x, Tensor)]
    return found


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


def _variables_of(g: Any) -> dict[str, Any]:
    """The values of the free and global variables in the code of a function."""
    code = getattr(g, "__code__", None)
    if code is None:
        return {}
    found = {name: g.__globals__[name] for name in code.co_names if name in g.__globals__}
    for name, cell in zip(code.co_freevars, getattr(g, "__closure__", None) or (), strict=False):
        with contextlib.suppress(ValueError):  # not assigned yet
            found[name] = cell.cell_contents
    return found


def modules_seen_by(f: Callable[..., Any]) -> list[Any]:
    """Modules whose switch between learning and use a program depends on."""
    return modules_in(seen_by(f).values())


def modules_in(values: Iterable[Any]) -> list[Any]:
    """The modules among some values, with all their parts."""
    found: dict[int, Any] = {}
    for value in values:
        if hasattr(value, "named_modules"):
            found.update((id(module), module) for _, module in value.named_modules())
    return list(found.values())
