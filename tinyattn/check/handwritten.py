"""A forward and a backward in plain NumPy, whichever way people write the two, as one operation.

The backward may take ``(g, *inputs)`` or ``(g, y, *inputs)``, or ``(g)`` alone where the forward keeps what it will
want on an object, or ``(g, cache)`` where the forward returns ``(y, cache)``.  Several results are checked as one row.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyattn.check.duck import Duck
from tinyattn.errors import ArgumentError, ArgumentTypeError, message
from tinyattn.ops import Op
from tinyattn.tensor import Tensor

Arrays = tuple[np.ndarray, ...]


class Handwritten:
    """The two functions at one point.

    Parameters
    ----------
    forward : callable
    backward : callable, or one for each input
    inputs : tuple of ndarray
        The point.
    saves : bool
        Whether the forward returns ``(y, cache)`` and the backward takes ``(g, cache)``.

    Attributes
    ----------
    names : tuple of str
        What the forward calls its inputs.
    notes : list of str
        Arrays that are written into though others need them.
    """

    def __init__(self, forward: Callable[..., Any], backward: Any, inputs: Arrays, saves: bool = False) -> None:
        self._forward, self.inputs, self.saves = forward, inputs, saves
        self.names = names_of(forward, len(inputs))
        self.shapes: list[tuple[int, ...]] = []  # of several results
        self.notes: list[str] = []
        self._look_at_forward()
        if callable(backward):
            self._backward = self._in_form(backward)
            self.rules: Any = self._joint
            self._look_at_backward()
        else:
            self.rules = self._one_each(tuple(backward))

    def op(self, name: str, definition: str = "") -> Op:
        """Both as an operation."""
        inputs = self.inputs
        return Op(name, self.forward, self.rules, definition, sample=lambda rng: [(inputs, ())], inputs=self.names)

    # -- forward ------------------------------------------------------------------------------------------------

    def _run(self, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """The result, as it was written, and what the forward keeps."""
        result = self._forward(*map(_own, inputs))
        if not self.saves:
            return result, None
        if not isinstance(result, tuple) or len(result) != 2:
            raise ArgumentError(
                "check_rule: with saves=True the forward returns two things, (result, what the backward wants again)."
            )
        return result

    def forward(self, *inputs: Any) -> Any:
        """The result as one array; several results as one row."""
        y = self._run(inputs)[0]
        if isinstance(y, (tuple, list)):
            y = np.concatenate([_flat(each) for each in y])
        if isinstance(y, (np.ndarray, np.generic)):
            return y if y.dtype.kind in "fcO" else y.astype(float)
        if isinstance(y, (Duck, Tensor)) or any(isinstance(x, (Duck, Tensor)) for x in inputs):
            return y
        return np.asarray(y, dtype=np.result_type(*inputs))

    def _look_at_forward(self) -> None:
        given = [np.array(x) for x in self.inputs]
        with np.errstate(all="ignore"):
            result = self._forward(*[x[()] if x.shape == () else x for x in given])
        self._note_changes("forward", zip(map("its input {}".format, self.names), self.inputs, given, strict=True))
        y = result[0] if self.saves and isinstance(result, tuple) and result else result
        for each in y if isinstance(y, (tuple, list)) and y else [y]:
            if not isinstance(each, (np.ndarray, np.generic, float, int)) or np.asarray(each).dtype.kind not in "fiub":
                among = f" among {len(y)} results" if isinstance(y, (tuple, list)) else ""
                hint = "Write saves=True if the second is what the backward wants again." if among else ""
                what = f"check_rule: the forward returned a {type(each).__name__}{among}; arrays are needed."
                raise ArgumentTypeError(message(what, "", hint))
        if isinstance(y, (tuple, list)):
            self.shapes = [np.shape(each) for each in y]

    def _note_changes(self, who: str, arrays: Any) -> None:
        changed = [name for name, before, after in arrays if not np.array_equal(before, after, equal_nan=True)]
        if changed:
            self.notes.append(
                f"the {who} writes into {' and '.join(changed)}, which others still need: let it work on a copy"
            )

    # -- backward -----------------------------------------------------------------------------------------------

    def _in_form(self, backward: Callable[..., Any]) -> Callable[..., Any]:
        """The backward as ``rule(g, y, *inputs)``, whichever of its forms it has."""
        count = len(self.inputs)
        if self.saves:
            return lambda g, y, *inputs: backward(g, self._run(inputs)[1])
        needed, rest = _arguments(backward)
        if needed is None or needed == count + 2 or (rest and needed == 2):
            return backward
        if needed == count + 1 or (rest and needed == 1):
            return lambda g, y, *inputs: backward(g, *inputs)
        if rest:
            return backward
        if needed == 1:  # the forward keeps on an object what the backward wants

            def after_forward(g: Any, y: Any, *inputs: Any) -> Any:
                self._run(inputs)
                return backward(g)

            return after_forward
        raise ArgumentError(
            message(
                f"check_rule: the backward takes {needed} arguments; for {count} inputs it is called with {count + 1} "
                f"or {count + 2}, or with 1.",
                "",
                "Write backward(g, *inputs) or backward(g, y, *inputs).",
            )
        )

    def _joint(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        made = self._backward(self._parted(_own(g)), self._parted(_own(y)), *map(_own, inputs))
        return tuple(_like(c, x) for c, x in zip(self._each(made), inputs, strict=True))

    def _parted(self, x: Any) -> Any:
        """One long row as the several results that it stands for."""
        if not self.shapes:
            return x
        parts, start = [], 0
        for shape in self.shapes:
            size = math.prod(shape)
            parts.append(x[start : start + size].reshape(shape))
            start += size
        return tuple(parts)

    def _each(self, made: Any) -> tuple[Any, ...]:
        count = len(self.inputs)
        if isinstance(made, (tuple, list)):
            gradients = tuple(made)
        elif count == 1:
            gradients = (made,)
        else:
            raise ArgumentError(
                f"the backward returned a {type(made).__name__} where a tuple of {count} gradients is needed"
            )
        if len(gradients) != count:
            raise ArgumentError(f"the backward gave {len(gradients)} gradients for {count} inputs")
        return gradients

    def _one_each(self, rules: tuple[Callable[..., Any], ...]) -> tuple[Callable[..., Any], ...]:
        count = len(self.inputs)
        if self.saves:
            raise ArgumentError("check_rule: with saves=True there is one backward for all inputs.")
        if len(rules) != count:
            raise ArgumentError(f"check_rule: {len(rules)} rules for {count} inputs; one for each is needed.")

        def made_of(rule: Callable[..., Any], slot: int) -> Callable[..., Any]:
            run = self._in_form(rule)
            return lambda g, y, *inputs: _like(
                run(self._parted(_own(g)), self._parted(_own(y)), *map(_own, inputs)), inputs[slot]
            )

        return tuple(made_of(rule, slot) for slot, rule in enumerate(rules))

    def _look_at_backward(self) -> None:
        """Whether it writes into what it is given; what else is wrong with it shows later."""
        try:
            with np.errstate(all="ignore"):
                y = np.array(self.forward(*self.inputs))
                before = [np.linspace(0.5, 1.6, y.size).reshape(y.shape), y, *self.inputs]
                given = [np.array(x) for x in before]
                g, result, *inputs = (x[()] if x.shape == () else x for x in given)
                self._backward(self._parted(g), self._parted(result), *inputs)
        except Exception:
            return
        names = ["the incoming gradient g", "the result y", *map("the input {}".format, self.names)]
        self._note_changes("backward", zip(names, before, given, strict=True))


def _own(x: Any) -> Any:
    """An array that may be written into."""
    return x.copy()[()] if isinstance(x, np.ndarray) else x


def _flat(x: Any) -> Any:
    return x.reshape(-1) if isinstance(x, (np.ndarray, np.generic, Duck, Tensor)) else np.reshape(x, -1)


def _arguments(function: Callable[..., Any]) -> tuple[int | None, bool]:
    """How many arguments must be given by place, and whether more may follow; None where nobody knows."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None, False
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = sum(p.kind in by_place and p.default is p.empty for p in parameters)
    return needed, any(p.kind is p.VAR_POSITIONAL for p in parameters)


def _like(c: Any, x: Any) -> Any:
    """A contribution in the dtype of its input: float64 for a float32 input is not the fault sought here."""
    if isinstance(c, Duck) and isinstance(x, Duck) and x.dtype.kind == "f":
        return c.astype(x.dtype)  # what is rounded away then counts in its bound
    if c is None or isinstance(c, (Duck, Tensor)) or isinstance(x, (Duck, Tensor)):
        return c
    array = np.asarray(c)
    return array.astype(x.dtype)[()] if array.dtype != x.dtype else array[()]


def names_of(forward: Callable[..., Any], count: int) -> tuple[str, ...]:
    """What a function calls its first arguments; those without a name get a number."""
    try:
        parameters = inspect.signature(forward).parameters.values()
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    except (TypeError, ValueError):
        names = []
    return tuple(names) + tuple(f"x{i}" for i in range(len(names), count))
