"""Tensors that notice being read, for a function that is recorded to become a program.

A recorded program is only right if nothing of it was decided by the numbers that happened to be there.  So the
arguments of the function are `Watched`: comparisons become operations of the program, and turning a tensor into
plain numbers in the learner's own code is refused with the line and what to write instead.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import tinyattn as ta
from tinyattn.arguments import constant
from tinyattn.errors import GraphError, message
from tinyattn.mode import mode
from tinyattn.names import line_of
from tinyattn.ops import Op
from tinyattn.places import OUTSIDE, find_place
from tinyattn.tensor import Tensor, apply

_slot: Any = Tensor.__dict__["_value"]
_data: Any = Tensor.__dict__["data"]


def _private(name: str, forward: Any, inputs: tuple[str, ...]) -> Op:
    """An op of programs only: it has no rule, so no gradient flows through it."""
    return Op(name, forward, (None,) * len(inputs), "", inputs=inputs, sample=lambda rng: [])


_TESTS: dict[str, Any] = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
_TESTS_OF_ONE: dict[str, Any] = {
    "logical_not": np.logical_not, "isfinite": np.isfinite, "isnan": np.isnan, "isinf": np.isinf,
    "signbit": np.signbit,
}  # fmt: skip
TESTS = {name: _private(name, ufunc, ("a", "b")) for name, ufunc in _TESTS.items()}
TESTS |= {name: _private(name, ufunc, ("x",)) for name, ufunc in _TESTS_OF_ONE.items()}
DETACH = _private("detach", lambda x: x, ("x",))


def _test(name: str) -> Any:
    op = TESTS[name]

    def compare(self: Tensor, other: Any) -> Any:
        return apply(op, (self, other if isinstance(other, Tensor) else constant(other, self.dtype)))

    return compare


def _reader(name: str) -> Any:
    """A method of Tensor that gives plain numbers, allowed inside the package only."""
    original = getattr(Tensor, name)

    def read(self: Tensor, *args: Any) -> Any:
        refuse_outside(name, sys._getframe(1))
        return original(self, *args)

    return read


SPELLED = {
    "__bool__": "if t, or t in a condition", "__float__": "float(t)", "__int__": "int(t)", "item": "t.item()",
    "tolist": "t.tolist()", "numpy": "t.numpy()", "__array__": "np.asarray(t)", "__format__": "f'{t:...}'",
    "assign": "t.assign(...)", "exchange": "t.exchange(...)", "backward": "t.backward()",
}  # fmt: skip


def refuse_outside(name: str, frame: Any) -> None:
    """Refuse a reading that the learner's own code asks for; the package's own readings are compared later."""
    if find_place(frame.f_code.co_filename) is not OUTSIDE:
        return
    path, line, _ = line_of(frame.f_code, frame.f_lasti)
    place = f"{path.replace(chr(92), '/').rsplit('/', 1)[-1]}:{line}"
    spelled = SPELLED.get(name, name)
    if mode.watch is None:  # kept somewhere by the function, and read when the recording was over
        raise GraphError(
            message(
                f"compile: {spelled} at {place} reads a tensor that was made while a function was recorded.",
                "Its numbers are those of the recording, not those of a call; a program keeps nothing on the side.",
                "Let the function return it.",
            )
        )
    if name in ("assign", "exchange", "backward"):
        raise GraphError(
            message(
                f"compile: {spelled} at {place} changes something outside the function.",
                "A compiled function computes results; what else it does would happen once, while it is recorded.",
                "Return what you need, and do the rest with the result; gradients come from ta.value_and_grad.",
            )
        )
    if name == "comparison":
        raise GraphError(
            message(
                f"compile: a comparison at {place} reads the numbers of a tensor from outside.",
                "What comes out would be a constant of the program, whatever the tensor holds later.",
                "Give the tensor as an argument: comparisons of arguments, and of what comes from them, are recorded.",
            )
        )
    raise GraphError(
        message(
            f"compile: {spelled} at {place} reads the numbers of a tensor.",
            "The program is recorded once and run on other numbers, so nothing in it may be decided by these.",
            "Write ta.where(x > 0, a, b) for a choice, x.detach() for a constant; or leave this function uncompiled.",
        )
    )


class Watched(Tensor):
    """A tensor of a function that is being recorded."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def data(self) -> np.ndarray:
        """The numbers, for the package's own checks."""
        refuse_outside("t.data", sys._getframe(1))
        numbers: Numbers = _data.__get__(self).view(Numbers)
        numbers.source = self
        return numbers

    def detach(self) -> Tensor:
        """The same numbers; gradients do not flow through."""
        return apply(DETACH, (self,))

    __bool__, __float__, __int__ = _reader("__bool__"), _reader("__float__"), _reader("__int__")
    item, tolist, numpy = _reader("item"), _reader("tolist"), _reader("numpy")
    __array__, backward = _reader("__array__"), _reader("backward")
    assign, exchange = _reader("assign"), _reader("exchange")
    __iadd__, __isub__ = Tensor.__add__, Tensor.__sub__  # a stand-in is a leaf, what it stands for need not be one
    __imul__, __itruediv__ = Tensor.__mul__, Tensor.__truediv__
    __eq__, __ne__ = _test("equal"), _test("not_equal")
    __lt__, __le__ = _test("less"), _test("less_equal")
    __gt__, __ge__ = _test("greater"), _test("greater_equal")
    __and__, __rand__ = _test("logical_and"), _test("logical_and")
    __or__, __ror__ = _test("logical_or"), _test("logical_or")
    __xor__, __rxor__ = _test("logical_xor"), _test("logical_xor")
    __hash__ = object.__hash__

    def __invert__(self) -> Tensor:
        return apply(TESTS["logical_not"], (self,))

    def __format__(self, spec: str) -> str:
        if spec:
            refuse_outside("__format__", sys._getframe(1))
        return super().__format__(spec)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        if self.dtype.kind == "b":  # a mask & a tensor
            name = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor"}.get(
                name, name
            )
        if method == "__call__" and name in TESTS and not kwargs:
            like = next(x.dtype for x in inputs if isinstance(x, Tensor))
            return apply(TESTS[name], tuple(x if isinstance(x, Tensor) else constant(x, like) for x in inputs))
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        before = len(readings)
        result = super().__array_function__(function, types, args, kwargs)
        if not isinstance(result, (Tensor, list, tuple)):
            del readings[before:]  # a check of the package's own, such as np.any in a rule
            if function not in _SHAPE_ONLY:
                refuse_outside(f"np.{function.__name__}(t)", sys._getframe(1))
        return result


class Numbers(np.ndarray):
    """The numbers of a watched tensor in the package's own hands; their maximum, which shifts exponents, is watched."""

    source: Tensor | None = None

    def max(self, axis: Any = None, keepdims: bool = False, **settings: Any) -> Any:  # type: ignore[override]
        """The largest, as a tensor without gradient."""
        if self.source is None:
            return np.asarray(self).max(axis=axis, keepdims=keepdims, **settings)
        return ta.max(self.source.detach(), axis, keepdims)


_ARGUMENTS = constant.__code__.co_filename
_SHAPE_ONLY = {np.shape, np.ndim, np.size, np.ones_like, np.zeros_like, np.empty_like, np.result_type}


class WatchedWhole(Watched):
    """Watched whole numbers or booleans.

    They come back as indices and masks of operations; every reading is listed, so that it can be told which tensor
    such a mask is.
    """

    __slots__ = ()

    @property
    def _value(self) -> Any:
        if sys._getframe(1).f_code.co_filename == _ARGUMENTS:
            readings.append(self)
        return _slot.__get__(self)

    @_value.setter
    def _value(self, value: Any) -> None:
        _slot.__set__(self, value)

    @property  # type: ignore[misc]
    def data(self) -> np.ndarray:
        """The numbers, for the package's own checks."""
        frame = sys._getframe(1)
        refuse_outside("t.data", frame)
        if frame.f_code.co_filename == _ARGUMENTS:
            readings.append(self)
        return _data.__get__(self)  # type: ignore[no-any-return]


Watched.__name__ = WatchedWhole.__name__ = "Tensor"  # as Python's own messages shall call them
readings: list[Tensor] = []
"""Whole-number tensors that the package read since the last operation; one recording at a time uses it."""


def raw(x: Tensor) -> Any:
    """The numbers of a tensor, without notice."""
    return _slot.__get__(x)
