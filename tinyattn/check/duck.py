"""Duck: arrays of other numbers that the rule book's plain NumPy runs on unchanged.

A duck is made of a few ordinary arrays of one shape, its parts: a value and the bound of its error, or a number of a
finite field, its tangent and a float that decides comparisons.  What only moves numbers about is done here, on
every part alike; a subclass says how its numbers are added and multiplied, and what exp makes of them.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Part = Any
Axes = int | tuple[int, ...] | None


class CannotRun(Exception):
    """A call that these numbers do not know; whoever replays a graph says so, and goes another way."""


class Duck:
    """An array of numbers that are not floats, with NumPy's methods and protocols."""

    __slots__ = ("__weakref__", "_is_fixed", "_origin", "_views")
    __array_priority__ = 1000.0
    state: tuple[str, ...]
    _is_fixed: bool
    _origin: tuple[Any, Any]
    _views: list[Any]

    # -- what a subclass says -------------------------------------------------------------------------------

    @property
    def parts(self) -> tuple[Part, ...]:
        """The ordinary arrays this one is made of; None stands for zeros."""
        raise NotImplementedError

    @property
    def data(self) -> np.ndarray:
        """The floats that decide comparisons."""
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype[Any]:
        """What rules see when they ask for the dtype."""
        return np.dtype(object)

    @classmethod
    def made_of(cls, *parts: Part) -> Any:
        """An array from its parts."""
        raise NotImplementedError

    @classmethod
    def lift(cls, x: Any) -> Any:
        """A plain array or number as an array of these numbers."""
        raise NotImplementedError

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Part:
        """A part that was left out because it is all zeros."""
        return np.zeros(shape)

    def plus(self, other: Any) -> Any:
        """Sum, entry by entry."""
        raise NotImplementedError

    def minus(self, other: Any) -> Any:
        """Difference, entry by entry."""
        return self.plus(other.negated())

    def times(self, other: Any) -> Any:
        """Product, entry by entry."""
        raise NotImplementedError

    def over(self, other: Any) -> Any:
        """Quotient, entry by entry."""
        raise NotImplementedError

    def negated(self) -> Any:
        """Each entry with the other sign."""
        raise NotImplementedError

    def raised(self, other: Any) -> Any:
        """Power, entry by entry, with an array as exponent."""
        raise NotImplementedError

    def matrix_product(self, other: Any) -> Any:
        """What ``@`` gives."""
        raise NotImplementedError

    def added_up(self, axis: Axes, keepdims: bool) -> Any:
        """Sum along axes."""
        raise NotImplementedError

    @classmethod
    def contracted(cls, subscripts: str, operands: Sequence[Any]) -> Any:
        """What `np.einsum` gives."""
        raise NotImplementedError

    def mapped(self, name: str) -> Any:
        """A function of each entry: exp, log, sqrt, tanh, sin, cos, erf."""
        raise CannotRun(f"np.{name}")

    def tight(self) -> Any:
        """Made ready for parts to be added up by NumPy itself; nothing, mostly."""
        return self

    def tidied(self) -> Any:
        """What must be done after parts were added up by NumPy itself; nothing, mostly."""
        return self

    # -- shape ------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.parts[0].shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many entries there are."""
        return int(math.prod(self.shape))

    @property
    def T(self) -> Any:
        """All axes in reverse order."""
        return self.each(lambda p: p.T)

    @property
    def mT(self) -> Any:
        """The last two axes exchanged."""
        return self.each(lambda p: p.swapaxes(-1, -2))

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.data!r})"

    __hash__ = None  # type: ignore[assignment]

    def each(self, function: Callable[[Part], Part]) -> Any:
        """The same move of numbers, done to every part."""
        parts = [None if p is None else np.asarray(function(p), dtype=p.dtype) for p in self.parts]
        new = self.made_of(*parts)
        return self.seen_by(new) if any(p is not None and p.base is not None for p in parts) else new

    @classmethod
    def joined(cls, function: Callable[[list[Part]], Part], pieces: Sequence[Any]) -> Any:
        """One array from several, part by part."""
        lifted = [cls.lift(x) for x in pieces]
        parts: list[Part] = []
        for column in zip(*(x.parts for x in lifted), strict=True):
            if all(p is None for p in column):
                parts.append(None)
            else:
                given = [cls.zeros(x.shape) if p is None else p for x, p in zip(lifted, column, strict=True)]
                parts.append(np.asarray(function(given), dtype=given[0].dtype))
        return cls.made_of(*parts)

    # -- writing ------------------------------------------------------------------------------------------------
    # An array that is written into becomes another one: whoever was made from it before keeps what it was made from.

    def fixed(self) -> Any:
        """The same array, which must not be written into, because others hold it too."""
        self._is_fixed = True
        return self

    def seen_by(self, view: Any) -> Any:
        """Remember an array that would look into the memory of this one: it is of no use once this one is written."""
        if not hasattr(self, "_views"):
            self._views = []
        self._views.append(weakref.ref(view))
        return view.fixed()

    def become(self, other: Any) -> Any:
        """Take the numbers of another array, as an array does that is written into; a part of one writes through."""
        if other.shape != self.shape:
            raise CannotRun(f"writing {other.shape} into {self.shape}")
        other = other.astype(self.dtype)
        if hasattr(self, "_origin"):
            whole, key = self._origin
            whole[key] = other
        elif getattr(self, "_is_fixed", False):
            raise CannotRun("writing into an array that others see")
        self._spoil_views()
        for name in self.state:
            setattr(self, name, getattr(other, name))
        return self

    def _spoil_views(self) -> None:
        for reference in getattr(self, "_views", ()):
            view = reference()
            if view is not None:
                view._spoil_views()
                for name in view.state:
                    setattr(view, name, None)  # whoever asks it anything fails, and says that it cannot run
        self._views = []

    def written(self, write: Callable[[Part, Part], Any], value: Any) -> Any:
        """Write numbers into every part: ``write(part, part of the value)``."""

        def both(pair: list[Part]) -> Part:
            own = np.array(pair[0])
            write(own, pair[1])
            return own

        return self.become(self.joined(both, [self, value]))

    def __setitem__(self, key: Any, value: Any) -> None:
        def write(own: Part, part: Part) -> None:
            own[key] = part

        self.written(write, value)

    def fill(self, value: Any) -> None:
        """One number in every place."""
        self[...] = value

    def __iadd__(self, other: Any) -> Any:
        return self.become(self + other)

    def __isub__(self, other: Any) -> Any:
        return self.become(self - other)

    def __imul__(self, other: Any) -> Any:
        return self.become(self * other)

    def __itruediv__(self, other: Any) -> Any:
        return self.become(self / other)

    # -- shape, continued ---------------------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> Any:
        """The same numbers in another shape."""
        return self.each(lambda p: p.reshape(*shape))

    def transpose(self, *axes: Any) -> Any:
        """The axes in another order."""
        return self.each(lambda p: p.transpose(*axes))

    def swapaxes(self, a: int, b: int) -> Any:
        """Two axes exchanged."""
        return self.each(lambda p: p.swapaxes(a, b))

    def squeeze(self, axis: Axes = None) -> Any:
        """Without axes of size 1."""
        return self.each(lambda p: p.squeeze(axis))

    def ravel(self) -> Any:
        """As one row."""
        return self.reshape(-1)

    flatten = ravel

    def copy(self) -> Any:
        """The same numbers in an array of their own."""
        new = object.__new__(type(self))
        for name in self.state:
            setattr(new, name, getattr(self, name))
        return new

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """These numbers have no precision to change."""
        return self.copy()

    def item(self) -> Any:
        """The one entry."""
        return self.reshape(())

    def __getitem__(self, key: Any) -> Any:
        part = self.each(lambda p: p[key])
        if getattr(part, "_is_fixed", False):
            part._origin = self, key
        return part

    # -- arithmetic -------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return self.plus(self.lift(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self.minus(self.lift(other))

    def __rsub__(self, other: Any) -> Any:
        return self.lift(other).minus(self)

    def __mul__(self, other: Any) -> Any:
        return self.times(self.lift(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self.over(self.lift(other))

    def __rtruediv__(self, other: Any) -> Any:
        return self.lift(other).over(self)

    def __neg__(self) -> Any:
        return self.negated()

    def __pos__(self) -> Any:
        return self.copy()

    def __abs__(self) -> Any:
        return self.joined(lambda ab: np.where(self.data < 0, ab[1], ab[0]), [self, self.negated()])

    def __matmul__(self, other: Any) -> Any:
        return self.matrix_product(self.lift(other))

    def __rmatmul__(self, other: Any) -> Any:
        return self.lift(other).matrix_product(self)

    def __pow__(self, exponent: Any) -> Any:
        whole = _whole(exponent)
        return self.raised(self.lift(exponent)) if whole is None else self.multiplied_out(whole)

    def __rpow__(self, base: Any) -> Any:
        return self.lift(base).raised(self)

    def multiplied_out(self, exponent: int) -> Any:
        """A whole power, by squaring."""
        if exponent < 0:
            return self.lift(1.0).over(self.multiplied_out(-exponent))
        result, square = None, self
        while exponent:
            if exponent & 1:
                result = square if result is None else result.times(square)
            exponent >>= 1
            square = square.times(square) if exponent else square
        return self.each(np.zeros_like) + 1.0 if result is None else result

    # -- comparisons ------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> Any:
        return self.data == plain_numbers(other)

    def __ne__(self, other: object) -> Any:
        return self.data != plain_numbers(other)

    def __lt__(self, other: Any) -> Any:
        return self.data < plain_numbers(other)

    def __le__(self, other: Any) -> Any:
        return self.data <= plain_numbers(other)

    def __gt__(self, other: Any) -> Any:
        return self.data > plain_numbers(other)

    def __ge__(self, other: Any) -> Any:
        return self.data >= plain_numbers(other)

    def any(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """Whether an entry differs from 0."""
        return self.data.any(axis=axis, keepdims=keepdims)

    def all(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """Whether all entries differ from 0."""
        return self.data.all(axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None) -> Any:
        """The place of the largest entry."""
        return self.data.argmax(axis)

    def argmin(self, axis: int | None = None) -> Any:
        """The place of the smallest entry."""
        return self.data.argmin(axis)

    # -- reductions -------------------------------------------------------------------------------------------

    def sum(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """Sum along axes."""
        return self.added_up(axis, keepdims)

    def mean(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """Sum along axes, by how many there are."""
        total = self.added_up(axis, keepdims)
        return total / float(self.size // max(total.size, 1))

    def dot(self, other: Any) -> Any:
        """Product of vectors and matrices."""
        return self @ other

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

    def prod(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """Product along axes."""
        rows, shape = self.rows(axis, keepdims)
        result = rows[..., 0] if rows.shape[-1] else self.lift(np.ones(rows.shape[:-1]))
        for i in range(1, rows.shape[-1]):
            result = result.times(rows[..., i])
        return result.reshape(shape)

    def max(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """The largest entry along axes."""
        return self._chosen(axis, keepdims, np.argmax)

    def min(self, axis: Axes = None, keepdims: bool = False) -> Any:
        """The smallest entry along axes."""
        return self._chosen(axis, keepdims, np.argmin)

    def _chosen(self, axis: Axes, keepdims: bool, best: Callable[..., Any]) -> Any:
        rows, shape = self.rows(axis, keepdims)
        at = np.ravel(best(rows.data, axis=-1))
        at = at + rows.shape[-1] * np.arange(at.size)
        return rows.each(lambda p: p.reshape(-1).take(at).reshape(shape))

    def rows(self, axis: Axes, keepdims: bool) -> tuple[Any, tuple[int, ...]]:
        """The axes to reduce as one last axis, and the shape of the reduction."""
        axes = (
            tuple(range(self.ndim)) if axis is None else (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
        )
        axes = tuple(a % self.ndim for a in axes)
        rest = tuple(a for a in range(self.ndim) if a not in axes)
        shape = tuple(1 if a in axes else size for a, size in enumerate(self.shape) if keepdims or a not in axes)
        length = math.prod(self.shape[a] for a in axes)
        if axes == (self.ndim - 1,):
            return self, shape
        return self.transpose(rest + axes).reshape((*(self.shape[a] for a in rest), length)), shape

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
        if kwargs.keys() - {"axis", "keepdims", "dtype"}:
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


def _add_at(target: Any, index: Any, value: Any) -> None:
    """``np.add.at``: part by part, then tidied."""
    value = target.lift(value).tight()
    target.tight().written(lambda own, part: np.add.at(own, index, part), value)
    target.become(target.tidied())


WRITERS = {"scatter_add", "put_along_axis"}
"""Linear ops whose forward makes an array of zeros and writes into it."""


def plain_numbers(x: Any) -> Any:
    """The floats of a duck; anything else as it is."""
    return x.data if isinstance(x, Duck) else x


def _whole(exponent: Any) -> int | None:
    if isinstance(exponent, Duck) or isinstance(exponent, (bool, np.bool_)):
        return None
    if isinstance(exponent, (int, np.integer)):
        return int(exponent)
    return int(exponent) if isinstance(exponent, float) and exponent.is_integer() and abs(exponent) < 64 else None


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
