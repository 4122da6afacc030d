"""A program: its text, and running it on the numbers of tensors."""

from __future__ import annotations

import contextvars
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyattn.compiled.entrance import NO_NUMBER
from tinyattn.compiled.lines import Line, Lines
from tinyattn.compiled.recording import Record, name_steps, record_checked, tensors_in
from tinyattn.compiled.surroundings import outside_words, underlying
from tinyattn.compiled.writing import Writer
from tinyattn.files import write_whole
from tinyattn.tensor import Tensor, new_leaf

ndarray = np.ndarray


class Program:
    """The straight-line program of one function for arguments of certain shapes and types.

    Attributes
    ----------
    name : str
        The function in it.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        call: Callable[[list[Tensor], Record], Any],
        arrays: Sequence[Any],
        names: Sequence[str],
        twice: bool,
    ) -> None:
        self.name = _identifier(getattr(underlying(f), "__name__", type(f).__name__))
        found = record_checked(f, arrays, call, twice)
        outside_names = outside_words(f)
        given = {id(x): name for x, name in zip(found.arguments, names, strict=True)}
        name_steps(found, {**outside_names, **given})
        results = tensors_in(found.result)
        lines = Lines(found, results, list(names), outside_names)
        self.outside = [x for x, _ in lines.outside]
        self.inputs = [*lines.arguments, *(line for _, line in lines.outside)]
        self.result = rebuilt(found.result, iter([new_leaf(Tensor, np.float64(0), False) for _ in results]))
        self._writer = Writer(self.inputs, lines.every, lines.results)
        self._texts = self._title(f, found), self._checked(self._writer, lines)
        self._numbers = [x.dtype.type if x.shape == () else None for x in results]
        self._floats = [at for at, x in enumerate(results) if x.dtype.kind == "f"]
        self.free: list[Any] = [self._instance()]
        self._expected = [(x.shape, x.dtype) for x in self.outside]
        self.kinds, self.shapes = [x.dtype.type for x in results], [x.shape for x in results]
        self.leaves: list[Any] = []
        self.enter: Any = None  # the short way in, once it is there

    def _title(self, f: Callable[..., Any], found: Record) -> str:
        from tinyattn import __version__

        place = next((step.place for step in found.steps if ".py:" in step.place), "")
        return (
            f"{self.name}: a program of NumPy calls, recorded{f' from {place.split(chr(58))[0]}' if place else ''}"
            f" by tinyattn {__version__}.\n\n"
            "``run`` has one line for each quantity.  The last argument of a call is the array that its result is\n"
            "written to; b0, b1, ... are made once, and written over when nobody wants their numbers any more.\n"
            "What is returned lies in arrays of its own.  One thread at a time."
        )

    def _checked(self, writer: Writer, lines: Lines) -> str:
        """The function that a reader of the file calls: it checks shapes and types first."""
        names = [writer.name(line) for line in self.inputs]
        self.name = writer.fresh(self.name)
        rows = [
            f'    ("{name}", {line.shape}, {writer.dtype(line.dtype)}),'
            for name, line in zip(names, self.inputs, strict=True)
        ]
        shown = _shown(self.result, iter(range(len(lines.results))))
        return "\n".join([
            f"def {self.name}({', '.join(names)}):",
            f'    """Give {_described(writer, lines.results)}."""',
            f"    check({', '.join(names)})",
            f"    results = run({', '.join(names)})",
            f"    return {shown}",
            "", "",
            "EXPECTED = (", *rows, ")", "", "",
            "def check(*given):",
            '    """Refuse arrays of another shape or type: this program is for these only."""',
            "    for array, (name, shape, dtype) in zip(given, EXPECTED):",
            "        array = np.asarray(array)",
            "        if array.shape != shape or array.dtype != dtype:",
            '            found = f"has shape {array.shape} and dtype {array.dtype}"',
            '            raise ValueError(f"{name} {found}; this program is for {shape} and {np.dtype(dtype)}")',
        ])  # fmt: skip

    def _instance(self) -> tuple[Any, Any]:
        """The function ``run`` with arrays of its own, and the context in which NumPy does not warn."""
        space: dict[str, Any] = {"__name__": f"tinyattn program {self.name}"}
        space.update(self._writer.heavy())
        exec(compile(self._writer.module(*self._texts, whole=False), f"<{self.name}, compiled>", "exec"), space)
        with np.errstate(all="ignore"):
            quiet = contextvars.copy_context()
        return space["run"], quiet

    @property
    def source(self) -> str:
        """The text of a Python module; it needs NumPy only."""
        return self._writer.module(*self._texts)

    def still_fits(self) -> bool:
        """Whether the tensors from outside still have the type that the program was written for."""
        for x, (shape, dtype) in zip(self.outside, self._expected, strict=True):
            value = x._value
            if value.dtype is not dtype or value.shape != shape:
                return False
        return True

    def values(self, arrays: Sequence[Any], instead: dict[int, Any] | None = None) -> list[Any] | None:
        """Run on arrays; None where the tape has to say it: a number that does not exist, or a row out of range.

        ``instead`` has other numbers for tensors from outside, by their identity.
        """
        outside = [x._value if instead is None else instead.get(id(x), x._value) for x in self.outside]
        try:
            instance = self.free.pop()
        except IndexError:  # another thread is in it, or this is a call inside the call
            instance = self._instance()
        run, quiet = instance
        try:
            found = quiet.run(run, *arrays, *outside)
        except NO_NUMBER:
            return None
        finally:
            self.free.append(instance)
        for at in self._floats:
            x = found[at]
            if x.__class__ is ndarray:
                flat = x.ravel()
                if not math.isfinite(flat.dot(flat)):
                    return None
            elif not math.isfinite(x):
                return None
        return found  # type: ignore[no-any-return]

    def tensors(self, found: Sequence[Any]) -> list[Tensor]:
        """The results as tensors without a past."""
        return [
            new_leaf(Tensor, x if kind is None else kind(x), False)
            for x, kind in zip(found, self._numbers, strict=False)
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the module to a file, whole or not at all."""
        write_whole(path, self.source)


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "function"


def rebuilt(result: Any, fresh: Any) -> Any:
    """The same result with other tensors in it, taken from an iterator."""
    if isinstance(result, Tensor):
        return next(fresh)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(rebuilt(part, fresh) for part in result))
    if isinstance(result, (list, tuple)):
        return type(result)(rebuilt(part, fresh) for part in result)
    if isinstance(result, dict):
        return {key: rebuilt(part, fresh) for key, part in result.items()}
    return result


def _shown(result: Any, numbers: Any) -> str:
    """The result as the saved function builds it."""
    if isinstance(result, Tensor):
        return f"results[{next(numbers)}]"
    if isinstance(result, tuple):
        inside = ", ".join(_shown(part, numbers) for part in result)
        return f"({inside}{',' if len(result) == 1 else ''})"
    if isinstance(result, list):
        return f"[{', '.join(_shown(part, numbers) for part in result)}]"
    if isinstance(result, dict):
        return "{" + ", ".join(f"{key!r}: {_shown(part, numbers)}" for key, part in result.items()) + "}"
    return repr(result)


def _described(writer: Writer, lines: list[Line]) -> str:
    words = ["a constant" if line.constant else writer.name(line) for line in lines]
    return ", ".join(words) if words else "nothing that is computed"
