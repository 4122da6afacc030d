"""The short way into a program and out of it, for a call like the last one.

Everything that `function.Compiled` finds out about a call by looking takes longer than a small program.  So for each
program there is one more function, written out for its arguments: it compares shapes and types one by one, runs, looks
whether everything is finite, and hands out.  It gives None where anything is unusual, and nothing has happened then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyattn.tensor import Tensor, new_leaf

NO_NUMBER = (ArithmeticError, ValueError, IndexError)
"""What Python and NumPy raise where there is no number, or no such row: the tape says it better."""


def entrance(
    program: Any, args: Sequence[Any], modules: Sequence[Any], backward: bool, differentiable: bool
) -> Callable[[tuple[Any, ...]], Any]:
    """Write the function for a program whose arguments are tensors and arrays, one after the other.

    Parameters
    ----------
    program : Program
    args : sequence of Tensor or ndarray
        The arguments of a call that it was right for.
    modules : sequence of Module
        Whose switches between learning and use must be as they are now.
    backward : bool
        Whether gradients are added to ``.grad``; otherwise the results are handed out.
    differentiable : bool
        Whether a result would have to be recorded for an argument that requires a gradient.
    """
    space: dict[str, Any] = {
        "Tensor": Tensor, "new_leaf": new_leaf, "isfinite": math.isfinite, "NO_NUMBER": NO_NUMBER, "free": program.free,
        "modules": modules, "flags": [module.training for module in modules], "array": np.array, "ndarray": np.ndarray,
    }  # fmt: skip
    text = ["def enter(args):"]
    text += _looked_at(space, program, args, modules, backward, differentiable)
    count = len(program.kinds)
    results = "".join(f"r{n}, " for n in range(count))
    given = "".join(f", v{n}" for n in range(len(args) + len(program.outside)))
    text += [
        "    try: run, quiet = free.pop()",
        "    except IndexError: return None",
        f"    try: {results}= quiet.run(run{given})",
        "    except NO_NUMBER: return None",
        "    finally: free.append((run, quiet))",
        *_finite(program),
    ]
    for n, (kind, shape) in enumerate(zip(program.kinds, program.shapes, strict=True)):
        if shape == ():
            space[f"k{n}"] = kind
            text.append(f"    r{n} = {f'array(r{n}, k{n})' if backward and n else f'k{n}(r{n})'}")
    text += _added(space, program) if backward else [f"    return {_handed_out(program.result, iter(range(count)))}"]
    exec(compile("\n".join(text), "<entrance>", "exec"), space)
    return space["enter"]  # type: ignore[no-any-return]


def _looked_at(
    space: dict[str, Any],
    program: Any,
    args: Sequence[Any],
    modules: Sequence[Any],
    backward: bool,
    differentiable: bool,
) -> list[str]:
    """Compare the arguments, and the tensors from outside, with those that the program was written for."""
    text = [f"    if len(args) != {len(args)}: return None"]
    text += [f"    {''.join(f'a{n}, ' for n in range(len(args)))}= args"] if args else []
    if modules:
        text.append("    if [module.training for module in modules] != flags: return None")
    for n, x in enumerate(args):
        kind = "Tensor" if isinstance(x, Tensor) else "ndarray"
        text.append(f"    if a{n}.__class__ is not {kind}: return None")
        if (backward or differentiable) and isinstance(x, Tensor):
            text.append(f"    if a{n}.requires_grad is not {bool(x.requires_grad)}: return None")
            if backward and x.requires_grad:
                text.append(f"    if a{n}.op is not None: return None")
    for n, x in enumerate(program.outside, len(args)):
        space[f"a{n}"] = x
    for n, x in enumerate([*args, *program.outside]):
        space[f"d{n}"] = x.dtype
        text.append(f"    v{n} = a{n}{'._value' if isinstance(x, Tensor) else ''}")
        text.append(f"    if v{n}.dtype is not d{n} or v{n}.shape != {x.shape}: return None")
    return text


def _finite(program: Any) -> list[str]:
    """The sum of all squares is finite where all numbers are; a product with itself is the quickest look."""
    parts, text = [], []
    for n, (kind, shape) in enumerate(zip(program.kinds, program.shapes, strict=True)):
        if np.dtype(kind).kind != "f":
            continue
        if shape == ():
            parts.append(f"r{n} * r{n}")
        else:
            text.append(f"    f{n} = r{n}.ravel()")
            parts.append(f"float(f{n}.dot(f{n}))")
    return [*text, f"    if not isfinite({' + '.join(parts)}): return None"] if parts else []


def _added(space: dict[str, Any], program: Any) -> list[str]:
    """Add the gradients to the leaves' own."""
    text = []
    for n, place in enumerate(program.leaves, 1):
        if not isinstance(place, int):
            space[f"l{n}"] = place
        leaf = f"a{place}" if isinstance(place, int) else f"l{n}"
        text += [
            f"    notes = {leaf}.notes or {leaf}.own_notes()",
            f"    notes.grad = r{n} if notes.grad is None else notes.grad + r{n}",
        ]
    return [*text, "    return new_leaf(Tensor, r0, False)"]


def _handed_out(result: Any, numbers: Any) -> str:
    if isinstance(result, Tensor):
        return f"new_leaf(Tensor, r{next(numbers)}, False)"
    opening, closing = "()" if isinstance(result, tuple) else "[]"
    inside = "".join(f"{_handed_out(part, numbers)}, " for part in result)
    return f"{opening}{inside}{closing}"


def has_entrance(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> bool:
    """Whether a call is of the common form: tensors and arrays one after the other, and tensors out of it."""
    return not kwargs and all(type(x) is Tensor or _ordinary(x) for x in args) and _plain(result)


def _ordinary(x: Any) -> bool:
    """Whether an argument is an array that goes into a program as it is."""
    return type(x) is np.ndarray and x.dtype.isnative and x.dtype.kind in "fiub" and x.dtype is np.dtype(x.dtype.str)


def _plain(result: Any) -> bool:
    if isinstance(result, Tensor):
        return True
    return type(result) in (tuple, list) and all(_plain(part) for part in result)
