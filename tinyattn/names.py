"""Names from the learner's own code, for drawings and for errors.

A node keeps the code object and the offset of the instruction that made it.  The instruction after that
one, if it stores, names the variable: in ``Q = X @ W_q`` the node of ``@`` is followed by a store to ``Q``.
Nothing is looked up until somebody wants to read a name.
"""

from __future__ import annotations

import collections
import functools
import itertools
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tinyattn.errors import ArgumentTypeError, message
from tinyattn.places import caller_variables

if TYPE_CHECKING:
    from tinyattn.tensor import Tensor

_STORES = {"STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"}


@functools.lru_cache(maxsize=4096)
def _targets(code: Any) -> dict[int, str]:
    """For each instruction that a store follows: its offset, and the variable stored to.

    During a call the offset may point into the call's inline cache, so every place up to the store counts.
    """
    import dis

    found: dict[int, str] = {}
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "COPY", "EXTENDED_ARG")]
    for before, after in itertools.pairwise(instructions):
        if after.opname in _STORES:
            target = after.argval[0] if isinstance(after.argval, tuple) else after.argval
            if isinstance(target, str) and target.isidentifier():  # not pytest's own "@py_assert1"
                found.update(dict.fromkeys(range(before.offset, after.offset, 2), target))
    return found


def stored_target(code: Any, lasti: int) -> str | None:
    """The variable that the result of an instruction is stored in, if the next one stores it."""
    return None if code is None else _targets(code).get(lasti)


@functools.lru_cache(maxsize=4096)
def _lines(code: Any) -> list[int]:
    """The source line of each instruction, two bytes apart."""
    return [start or code.co_firstlineno for start, *_ in code.co_positions()]


def line_of(code: Any, lasti: int) -> tuple[str, int, str]:
    """File, line and function of an instruction."""
    lines = _lines(code)
    return code.co_filename, lines[lasti // 2] if 0 <= lasti // 2 < len(lines) else code.co_firstlineno, code.co_name


def source_place(x: Tensor) -> tuple[str, int, str] | None:
    """File, line and function outside the package where a tensor was made; None when that is not known."""
    if x.site is not None:
        return line_of(*x.site)
    return None if x.code is None else line_of(x.code, x.lasti)


def place_text(x: Tensor) -> str:
    """``lesson.py:12``, or nothing when the place is not known, or is inside Python itself."""
    place = source_place(x)
    if place and place[0].startswith("<frozen "):  # ``python -m tinyattn check`` made it
        return ""
    return f"{place[0].replace(chr(92), '/').rsplit('/', 1)[-1]}:{place[1]}" if place else ""


def variable_names(variables: dict[str, Any]) -> dict[int, str]:
    """Tensors among variables, by identity; the first name in alphabetical order when there are several."""
    from tinyattn.tensor import Tensor

    found: dict[int, str] = {}
    for name in sorted(variables, key=lambda n: (n.startswith("_"), n)):
        if isinstance(variables[name], Tensor) and name.isidentifier() and not name.startswith("__"):
            found.setdefault(id(variables[name]), name)
    return found


def title(x: Tensor, variables: dict[int, str]) -> tuple[str, bool]:
    """What to call a tensor, and whether that is the learner's own word.

    The order: the name it was given, the variable that holds it, the variable its line stores, its op.
    """
    if own := x.given_name or variables.get(id(x)):
        return str(own), True
    if type(x).__name__ == "Constant":
        value = x.data
        return (f"{value[()]:g}" if value.ndim == 0 and value.dtype.kind != "b" else "constant"), False
    stored = stored_target(x.code, x.lasti)
    if stored and not (x.op is not None and x.op.hidden):
        return stored, True
    return (x.op.name if x.op is not None else "input"), False


def given_names(names: Any) -> dict[int, str]:
    """Which tensor is to be called what: from a mapping of names to tensors, or from pairs of both."""
    pairs = list(names.items()) if isinstance(names, Mapping) else () if names is None else names
    for pair in pairs if isinstance(pairs, (list, tuple)) else [None]:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not hasattr(pair[1], "requires_grad"):
            what = "Graph.of: names holds something else than a name and its tensor."
            raise ArgumentTypeError(message(what, "", "Write names={'Q': Q, 'K': K}."))
    return {id(x): str(name) for name, x in pairs}


def titles(tensors: list[Tensor], given: dict[int, str], variables: dict[int, str]) -> list[tuple[str, bool]]:
    """A unique title for each tensor of a graph; ``given`` names win, and repeats get a running number."""
    found = [(given[id(x)], True) if given.get(id(x)) else title(x, variables) for x in tensors]
    total = collections.Counter(name for name, _ in found)
    used: collections.Counter[str] = collections.Counter()
    unique = []
    for name, own in found:
        text = name
        while total[name] > 1 and (text == name or text in total):  # somebody's own name may look like a numbered one
            used[name] += 1
            text = f"{name}·{used[name]}"
        unique.append((text, own))
    return unique


def as_written(x: Tensor, variables: dict[str, Any]) -> Tensor:
    """What a cast that nobody wrote was made of: of the list in ``X @ [1, 2]`` floats are made first."""
    while x.op is not None and x.op.hidden and x.inputs and not title(x, variable_names(variables))[1]:
        x = x.inputs[0]
    return x


def known_name(x: Tensor, variables: dict[str, Any] | None = None) -> str:
    """The title of a tensor in an error: among ``variables``, or those of the caller outside the package."""
    here = variables if variables is not None else caller_variables(sys._getframe(1))
    name, own = title(x, variable_names(here))
    if own:
        return name
    return f"{name}(...)" if x.op is not None else {"input": "tensor", "constant": "array"}.get(name, name)


def describe(x: Tensor) -> str:
    """A tensor as errors show it: its name and shape."""
    return f"{known_name(x)}: {x.shape}"
