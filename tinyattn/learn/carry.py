"""Carry a function into another process, wherever it was written: script, notebook, prompt or lesson.

``pickle`` knows functions by the name of their module only, so what a learner wrote at a prompt cannot be
pickled.  Here its code object travels, together with the names from outside that it uses.  Both ends run the
same Python, which is what ``marshal`` needs.
"""

from __future__ import annotations

import importlib
import marshal
import pickle
import sys
import types
from typing import Any

_Packed = tuple[Any, ...]


def pack(function: Any) -> bytes:
    """A function as bytes.

    Names from outside that cannot travel (an open file, a class made at a prompt) stay behind; the function
    then fails on them by name, as it should.

    >>> unpack(pack(lambda x: 2 * x))(21)
    42
    """
    return marshal.dumps(_packed(function, {}))


def unpack(data: bytes) -> Any:
    """The function again."""
    made: dict[int, Any] = {}
    function = _unpacked(marshal.loads(data), made)
    return function


def _packed(value: Any, seen: dict[int, int]) -> _Packed | None:
    if isinstance(value, types.ModuleType):
        return ("module", value.__name__)
    if isinstance(value, types.FunctionType) and not _importable(value):
        return _packed_function(value, seen)
    try:
        data = pickle.dumps(value)
    except Exception:  # whatever a type's own pickling raises
        return None
    return ("value", data) if getattr(type(value), "__module__", "") != "__main__" else None


def _importable(function: types.FunctionType) -> bool:
    """Whether the other process finds it by import: it belongs to a module that was itself imported."""
    module = sys.modules.get(function.__module__ or "")
    known = module is not None and module.__name__ != "__main__" and getattr(module, "__spec__", None) is not None
    return known and getattr(module, function.__qualname__, None) is function


def _packed_function(function: types.FunctionType, seen: dict[int, int]) -> _Packed:
    if id(function) in seen:
        return ("again", seen[id(function)])
    number = seen[id(function)] = len(seen)
    names = {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}
    cells = [_cell(cell) for cell in function.__closure__ or ()]
    return (
        "function", number, function.__name__, function.__code__,
        _some(names, seen),
        tuple(_packed(value, seen) for value in function.__defaults__ or ()),
        _some(function.__kwdefaults__ or {}, seen),
        tuple(_packed(value, seen) for value in cells),
    )  # fmt: skip


def _some(values: dict[str, Any], seen: dict[int, int]) -> dict[str, _Packed]:
    packed = {name: _packed(value, seen) for name, value in values.items()}
    return {name: one for name, one in packed.items() if one is not None}


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _names(code: types.CodeType) -> set[str]:
    """The names that a piece of code may look up outside, with those of the functions inside it."""
    inner = [_names(part) for part in code.co_consts if isinstance(part, types.CodeType)]
    return set(code.co_names).union(*inner)


def _unpacked(packed: _Packed | None, made: dict[int, Any]) -> Any:
    if packed is None:
        return None
    kind, first = packed[0], packed[1]
    if kind == "module":
        return importlib.import_module(first)
    if kind == "value":
        return pickle.loads(first)
    if kind == "again":
        return made[first]
    _, number, name, code, names, defaults, keywords, cells = packed
    outside: dict[str, Any] = {"__name__": "__answer__", "__builtins__": __builtins__}
    closure = tuple(types.CellType() for _ in cells)
    function = made[number] = types.FunctionType(code, outside, name, None, closure)
    for cell, value in zip(closure, cells):
        cell.cell_contents = _unpacked(value, made)
    outside.update({key: _unpacked(value, made) for key, value in names.items()})
    function.__defaults__ = tuple(_unpacked(value, made) for value in defaults) or None
    function.__kwdefaults__ = {key: _unpacked(value, made) for key, value in keywords.items()} or None
    return function
