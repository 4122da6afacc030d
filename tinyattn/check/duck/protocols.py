"""`Duck`: NumPy's protocols, by which the rule book's plain NumPy runs on ducks unchanged.

The tables here are those of ufuncs; what other functions of NumPy do is in `tinyattn.check.numpy_calls`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyattn.check.duck.arithmetic import Calculating
from tinyattn.check.duck.shape import Axes, CannotRun, plain_numbers


class Duck(Calculating):
    """An array of numbers that are not floats, with NumPy's methods and protocols."""

    __slots__ = ()
    __array_priority__ = 1000.0

    # -- what a subclass says -------------------------------------------------------------------------------

    @classmethod
    def contracted(cls, subscripts: str, operands: Sequence[Any]) -> Any:
        """What `np.einsum` gives."""
        raise NotImplementedError

    def tight(self) -> Any:
        """Made ready for parts to be added up by NumPy itself; nothing, mostly."""
        return self

    def tidied(self) -> Any:
        """What must be done after parts were added up by NumPy itself; nothing, mostly."""
        return self

    # -- NumPy's protocols ------------------------------------------------------------------------------------

    @classmethod
    def apply_op(cls, op: Any, operands: tuple[Any, ...]) -> Any:
        """What `Op.__call__` asks: ops that write into fresh arrays are done part by part."""
        if op.name in WRITERS:
            x = cls.lift(operands[0]).tight()
            return x.each(lambda p: op.forward(p, *operands[1:])).tidied()
        result = op.forward(*operands)
        return result[0] if op.saves else result

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise CannotRun("np.asarray")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        targets = kwargs.pop("out", None)
        if kwargs.keys() - {"axis", "keepdims", "dtype", "order"}:  # the order in memory: here is none
            raise CannotRun(f"np.{ufunc.__name__} with {', '.join(sorted(kwargs))}")
        if targets is not None:
            if method != "__call__" or len(targets) != 1 or not isinstance(targets[0], type(self)):
                raise CannotRun(f"np.{ufunc.__name__} with out=")
            return targets[0].become(self.lift(_call(type(self), ufunc, inputs)))
        if method == "__call__":
            return _call(type(self), ufunc, inputs)
        if method == "at" and ufunc is np.add and isinstance(inputs[0], type(self)):
            return _add_at(*inputs)
        if method == "reduce":
            return _reduce(ufunc, *inputs, **{k: v for k, v in kwargs.items() if k in ("axis", "keepdims", "dtype")})
        if method == "outer" and ufunc is np.multiply:
            left, right = (type(self).lift(x).ravel() for x in inputs)
            return left[:, None] * right[None, :]
        raise CannotRun(f"np.{ufunc.__name__}.{method}")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from tinyattn.check.numpy_calls import FUNCTIONS

        ours = FUNCTIONS.get(function)
        if ours is None:
            raise CannotRun(f"np.{function.__name__}")
        return ours(type(self), *args, **kwargs)

    # -- methods that are NumPy's functions ------------------------------------------------------------------

    def var(self, axis: Axes = None, **options: Any) -> Any:
        """Mean of the squared distances from the mean."""
        return np.var(self, axis=axis, **options)

    def std(self, axis: Axes = None, **options: Any) -> Any:
        """Root of the variance."""
        return np.std(self, axis=axis, **options)

    def cumsum(self, axis: int | None = None) -> Any:
        """Sums of all entries up to each."""
        return np.cumsum(self, axis=axis)

    def clip(self, low: Any = None, high: Any = None, **limits: Any) -> Any:
        """Entries cut off at limits."""
        return np.clip(self, low, high, **limits)

    def repeat(self, repeats: Any, axis: int | None = None) -> Any:
        """Each entry several times."""
        return np.repeat(self, repeats, axis)

    def take(self, indices: Any, axis: int | None = None) -> Any:
        """Entries by number."""
        return np.take(self, indices, axis)


WRITERS = {"scatter_add", "put_along_axis"}
"""Linear ops whose forward makes an array of zeros and writes into it."""


def _add_at(target: Any, index: Any, value: Any) -> None:
    """``np.add.at``: part by part, then tidied."""
    value = target.lift(value).tight()
    target.tight().written(lambda own, part: np.add.at(own, index, part), value)
    target.become(target.tidied())


def _pair(cls: type[Duck], inputs: tuple[Any, ...]) -> tuple[Any, Any]:
    return cls.lift(inputs[0]), cls.lift(inputs[1])


_TWO: dict[Any, Callable[[Any, Any], Any]] = {
    np.add: lambda a, b: a.plus(b), np.subtract: lambda a, b: a.minus(b), np.multiply: lambda a, b: a.times(b),
    np.true_divide: lambda a, b: a.over(b), np.matmul: lambda a, b: a.matrix_product(b),
    np.maximum: lambda a, b: a.joined(lambda ab: np.where(a.data >= b.data, ab[0], ab[1]), [a, b]),
    np.minimum: lambda a, b: a.joined(lambda ab: np.where(a.data <= b.data, ab[0], ab[1]), [a, b]),
}  # fmt: skip
_ONE: dict[Any, Callable[[Any], Any]] = {
    np.negative: lambda x: x.negated(), np.positive: lambda x: x.copy(), np.absolute: abs,
    np.square: lambda x: x.times(x), np.reciprocal: lambda x: x.lift(1.0).over(x), np.conjugate: lambda x: x.copy(),
    np.expm1: lambda x: x.mapped("exp") - 1.0, np.log1p: lambda x: (x + 1.0).mapped("log"),
    np.log2: lambda x: x.mapped("log") / math.log(2), np.log10: lambda x: x.mapped("log") / math.log(10),
    np.exp2: lambda x: (x * math.log(2)).mapped("exp"), np.tan: lambda x: x.mapped("sin") / x.mapped("cos"),
    np.sinh: lambda x: (x.mapped("exp") - (-x).mapped("exp")) / 2.0,
    np.cosh: lambda x: (x.mapped("exp") + (-x).mapped("exp")) / 2.0,
}  # fmt: skip
_MAPPED = {np.exp: "exp", np.log: "log", np.sqrt: "sqrt", np.tanh: "tanh", np.sin: "sin", np.cos: "cos"}
_PLAIN = {
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isfinite, np.isnan, np.isinf,
    np.signbit, np.logical_and, np.logical_or, np.logical_not, np.sign, np.floor, np.ceil, np.rint,
}  # fmt: skip


def _call(cls: type[Duck], ufunc: Any, inputs: tuple[Any, ...]) -> Any:
    if ufunc in _MAPPED:
        return inputs[0].mapped(_MAPPED[ufunc])
    if ufunc in _TWO:
        return _TWO[ufunc](*_pair(cls, inputs))
    if ufunc in _ONE:
        return _ONE[ufunc](inputs[0])
    if ufunc in _PLAIN:
        return ufunc(*map(plain_numbers, inputs))
    if ufunc is np.power:
        return cls.lift(inputs[0]) ** inputs[1]
    if ufunc.__name__.startswith("erf"):
        return inputs[0].mapped("erf")
    raise CannotRun(f"np.{ufunc.__name__}")


def _reduce(ufunc: Any, x: Any, axis: Axes = 0, keepdims: bool = False, dtype: Any = None) -> Any:
    name = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}.get(ufunc)
    if name is None:
        raise CannotRun(f"np.{ufunc.__name__}.reduce")
    return getattr(x, name)(axis=axis, keepdims=keepdims)
