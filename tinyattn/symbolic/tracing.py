"""An array of formulas: run a gradient rule of the rule book on it, and the rule itself becomes a formula.

Rules are plain NumPy, so they also run on this class through NumPy's own protocols. What comes out holds for all
lengths, for a length is a `SymbolicLength`, a whole number that remembers which size class it stands for. What a
rule does that no formula can say (an entry by number, a branch on values) raises `NotTraceable`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tinyattn.symbolic.holding import exponential, raised_apart
from tinyattn.symbolic.picking import Picking, is_count, multiplied
from tinyattn.symbolic.proving import number_of
from tinyattn.symbolic.pulling import heads_group
from tinyattn.symbolic.recognising import UNUSUAL, Axes, array_formula, product_of_lengths
from tinyattn.symbolic.scope import NotTraceable, Scope, SymbolicLength
from tinyattn.symbolic.terms import Expr, Index, Quantity, Term, fresh, opened, scaled, settled, times


class Traced(Picking):
    """An array whose general entry is a formula over the indices of its axes."""

    __array_priority__ = 1000
    dtype = np.dtype(object)

    def __init__(self, scope: Scope, axes: Axes, expr: Expr) -> None:
        self.scope, self.axes, self.expr = scope, axes, expr
        self.heads, self.lengths = scope.heads, scope.lengths
        self.viewed: Traced | None = None  # the array that this one shows in another shape: writing reaches it
        self.opposite: Traced | None = None  # for a condition that was made by `~`

    @classmethod
    def of(cls, scope: Scope, quantity: Quantity) -> Traced:
        """Give a tensor as an array of its own entries."""
        axes = tuple(tuple(Index(each) for each in axis) for axis in quantity.axes)
        flat = tuple(index for axis in axes for index in axis)
        return cls(scope, axes, (Term(factors=((scope.heads.of(quantity), flat, 1),)),))

    # -- what NumPy code looks at -----------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes; 1 for one that is kept."""
        return tuple(self._length(axis) for axis in self.axes)

    def _length(self, axis: tuple[Index, ...]) -> int:
        if not axis:
            return 1
        return SymbolicLength(math.prod(self.lengths[index.cls] for index in axis), tuple(index.cls for index in axis))

    @property
    def size(self) -> int:
        """The number of entries."""
        return self._length(tuple(index for axis in self.axes for index in axis))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @property
    def data(self) -> Any:
        """Numbers in the place of the formulas, of a kind that is always finite."""
        return np.zeros(self.shape, dtype=object)

    # -- arithmetic -------------------------------------------------------------------------------------------

    def _new(self, axes: Axes, expr: Expr) -> Traced:
        return Traced(self.scope, axes, expr)

    def _becomes(self, other: Traced) -> Traced:
        """Be overwritten, as an array is by `out=`."""
        self.axes, self.expr = other.axes, other.expr
        if self.viewed is not None:
            self.viewed.expr = other.expr  # of the same indices
        return self

    def _lifted(self, other: Any) -> Traced:
        if isinstance(other, Traced):
            return other
        if isinstance(other, np.ndarray) and other.ndim:
            return self._counting(other)
        return self._new((), self._number(other))

    def _counting(self, array: np.ndarray[Any, Any]) -> Traced:
        """Give 0, 1, 2, ... along a whole axis as the index of that axis."""
        classes = [cls for cls in self.scope.classes if self.lengths[cls] == array.size]
        if array.ndim != 1 or len(classes) != 1 or not np.array_equal(array, np.arange(array.size)):
            return self._new(*array_formula(self.scope, array))
        index = Index(classes[0])
        return self._new(((index,),), (Term(factors=(self.heads.index(index),)),))

    def _number(self, value: Any) -> Expr:
        """Give a number as an exact formula; roots of lengths and of the circle number are recognised."""
        if isinstance(value, float) and math.isfinite(value) and value > 0 and value != int(value):
            for power in (2, -2):
                square = value**power
                if math.isclose(square, math.pi, rel_tol=1e-14):
                    head, at, _ = self.heads.scalar("pi", None)
                    return (Term(factors=((head, at, Fraction(1, power)),)),)
                if math.isclose(square * math.pi, 2, rel_tol=1e-14):  # of gelu
                    head, at, _ = self.heads.scalar("pi", None)
                    root = self._new((), (Term(Fraction(2), factors=((head, at, Fraction(-1)),)),))._function("sqrt")
                    return root.expr if power == 2 else (1 / root).expr
                classes = [cls for cls in self.scope.classes if math.isclose(self.lengths[cls], square, rel_tol=1e-14)]
                if self.scope.own and len(classes) == 1:
                    return (Term(sizes=((classes[0], Fraction(1, power)),)),)
        if isinstance(value, int) and value >= UNUSUAL and not isinstance(value, SymbolicLength):
            if value in self.scope.counted:
                return self.scope.counted[value]
            made = product_of_lengths(self.scope, value)
            if made is not None:
                return (made,)
        return _number(value)

    def astype(self, dtype: Any) -> Traced:
        """Change nothing: formulas are exact."""
        return self

    def _aligned(self, other: Traced) -> tuple[Axes, Expr, Expr]:
        """Broadcast two arrays: common axes, and both formulas over them."""
        count = max(self.ndim, other.ndim)
        left = ((),) * (count - self.ndim) + self.axes
        right = ((),) * (count - other.ndim) + other.axes
        axes: list[tuple[Index, ...]] = []
        names: dict[Index, Index] = {}
        for mine, yours in zip(left, right, strict=True):
            if mine and yours:
                if [each.cls for each in mine] != [each.cls for each in yours]:
                    raise NotTraceable("axes of different make-up meet")
                names.update(zip(yours, mine, strict=True))
                axes.append(mine)
            else:
                own = tuple(Index(each.cls) for each in yours)
                names.update(zip(yours, own, strict=True))
                axes.append(mine or own)
        return tuple(axes), self.expr, tuple(fresh(term, names) for term in other.expr)

    def __mul__(self, other: Any) -> Traced:
        axes, left, right = self._aligned(self._lifted(other))
        return self._new(axes, multiplied(self.heads, left, right))

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Traced:
        axes, left, right = self._aligned(self._lifted(other))
        return self._new(axes, (*left, *right))

    __radd__ = __add__

    def __neg__(self) -> Traced:
        return self._new(self.axes, scaled(self.expr, -1))

    def __sub__(self, other: Any) -> Traced:
        return self + (-self._lifted(other))

    def __rsub__(self, other: Any) -> Traced:
        return (-self).__add__(other)

    def __pow__(self, power: Any) -> Traced:
        if isinstance(power, Traced):
            axes, left, right = self._aligned(power)
            exact = right[0].coef if len(right) == 1 and not right[0].factors and not right[0].sizes else None
            if exact is None:
                return self._new(axes, (Term(factors=(self.heads.make("fn", "power", (left, right)),)),))
            return self._new(axes, (raised_apart(self.heads, left, exact),))
        return self._new(self.axes, (raised_apart(self.heads, self.expr, Fraction(power)),))

    def __truediv__(self, other: Any) -> Traced:
        return self * self._lifted(other) ** -1

    def __rtruediv__(self, other: Any) -> Traced:
        return self._lifted(other) * self**-1

    def __matmul__(self, other: Any) -> Traced:
        left, right = self, self._lifted(other)
        row, column = left.ndim == 1, right.ndim == 1
        left = left.reshape((1, -1)) if row else left
        right = right.reshape((-1, 1)) if column else right
        # a[..., i, j, 1] * b[..., 1, j, k] summed over j
        wide = left._with_axis(left.ndim) * right._with_axis(right.ndim - 2)
        result = wide.sum(axis=wide.ndim - 2)
        if row:
            result = result._without_axis(result.ndim - 2)
        return result._without_axis(result.ndim - 1) if column else result

    # -- comparisons ------------------------------------------------------------------------------------------

    def _compared(self, other: Any, sign: str, swap: bool = False) -> Traced:
        axes, left, right = self._aligned(self._lifted(other))
        sides = (right, left) if swap else (left, right)
        return self._new(axes, (Term(factors=(self.heads.make("cond", sign, sides),)),))

    def __eq__(self, other: object) -> Any:
        return self._compared(other, "==")

    def __ne__(self, other: object) -> Any:
        return self._compared(other, "!=")

    def __lt__(self, other: Any) -> Traced:
        return self._compared(other, "<")

    def __gt__(self, other: Any) -> Traced:
        return self._compared(other, "<", swap=True)

    def __le__(self, other: Any) -> Traced:
        return self._compared(other, "<=")

    def __ge__(self, other: Any) -> Traced:
        return self._compared(other, "<=", swap=True)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> Any:
        if isinstance(other, Traced):
            return self * other
        if not np.any(other):
            return np.zeros((), dtype=bool)
        return self if np.all(other) else self * other

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        if isinstance(other, Traced):
            return ~(~self & ~other)
        if np.any(other):
            raise NotTraceable("a condition on numbers")
        return self

    __ror__ = __or__

    def __invert__(self) -> Traced:
        if self.opposite is not None:
            return self.opposite
        made = 1 - self
        if len(self.expr) == 1 and len(self.expr[0].factors) == 1:  # the opposite of [g = 0] is [g ≠ 0]
            head, at, _ = self.expr[0].factors[0]
            if head.kind == "cond" and head.data in ("==", "!=") and not self.expr[0].dummies:
                sides = (opened(head, at, 0), opened(head, at, 1))
                sign = "!=" if head.data == "==" else "=="
                made = self._new(self.axes, (Term(factors=(self.heads.make("cond", sign, sides),)),))
        made.opposite = self
        return made

    def __bool__(self) -> bool:
        number = number_of(self.expr)
        if number is None:
            raise NotTraceable("a branch on values")
        return bool(number)

    def __int__(self) -> int:
        """Give a whole number that stands for the formula; or 0, where a count may be that."""
        if self.ndim or not is_count(self.expr):
            raise NotTraceable("a whole number made of values")
        if self.scope.ask():
            return self.scope.number_for(self.expr)
        self.scope.fix(self.expr, 0)
        return 0

    # -- shape ------------------------------------------------------------------------------------------------

    def _with_axis(self, at: int) -> Traced:
        return self._new((*self.axes[:at], (), *self.axes[at:]), self.expr)

    def _without_axis(self, at: int) -> Traced:
        return self._new((*self.axes[:at], *self.axes[at + 1 :]), self.expr)

    def transpose(self, *axes: Any) -> Traced:
        """Reorder the axes."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return self._new(tuple(self.axes[axis] for axis in (order or range(self.ndim)[::-1])), self.expr)

    @property
    def T(self) -> Traced:
        """All axes reversed."""
        return self._new(self.axes[::-1], self.expr)

    @property
    def mT(self) -> Traced:
        """The last two axes exchanged."""
        return self._new((*self.axes[:-2], self.axes[-1], self.axes[-2]), self.expr)

    def reshape(self, *shape: Any) -> Traced:
        """Merge and split axes, where the new ones are made of the same size classes."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        flat = [index for axis in self.axes for index in axis]
        axes: list[tuple[Index, ...]] = []
        known = math.prod(int(length) for length in wanted if length != -1)
        total = math.prod(self.lengths[index.cls] for index in flat)
        for length in wanted:
            if isinstance(length, SymbolicLength):
                axes.append(tuple(flat[: len(length.classes)]))
                del flat[: len(length.classes)]
                if tuple(index.cls for index in axes[-1]) != length.classes:
                    raise NotTraceable("a reshape across axes")
                continue
            need = total // known if length == -1 else int(length)
            taken: list[Index] = []
            while math.prod(self.lengths[index.cls] for index in taken) != need:
                if not flat:
                    raise NotTraceable("a reshape across axes")
                taken.append(flat.pop(0))
            axes.append(tuple(taken))
        if flat and axes and all(self.lengths[index.cls] == 1 for index in flat):
            axes[-1] += tuple(flat)
        elif flat:
            raise NotTraceable("a reshape across axes")
        made = self._new(tuple(axes), self.expr)
        made.viewed = self
        return made

    # -- reductions -------------------------------------------------------------------------------------------

    def sum(self, axis: Any = None, keepdims: bool = False) -> Traced:
        """Add up along axes."""
        gone = self._numbers(axis)
        over = tuple(index for at in gone for index in self.axes[at])
        expr = tuple(Term(term.coef, term.factors, term.dummies + over, term.sizes) for term in self.expr)
        return self._reduced(gone, keepdims, tuple(settled(fresh(term, {})) for term in expr))

    def largest(self, kind: str, axis: Any, keepdims: bool) -> Traced:
        """Take the largest or smallest along axes."""
        gone = self._numbers(axis)
        over = tuple(index for at in gone for index in self.axes[at])
        own = {index: Index(index.cls) for index in over}
        body = tuple(fresh(term, own) for term in self.expr)
        expr = (Term(factors=(self.heads.make(kind, None, (body,), tuple(own.values())),)),) if over else self.expr
        return self._reduced(gone, keepdims, expr)

    def _numbers(self, axis: Any) -> list[int]:
        if axis is None:
            return list(range(self.ndim))
        return [each % self.ndim for each in (axis if isinstance(axis, tuple) else (axis,))]

    def _reduced(self, gone: list[int], keepdims: bool, expr: Expr) -> Traced:
        axes = [() if at in gone else axis for at, axis in enumerate(self.axes) if keepdims or at not in gone]
        return self._new(tuple(axes), expr)

    # -- NumPy's protocols ------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if (out := options.pop("out", None)) is not None and isinstance(out[0], Traced):
            return out[0]._becomes(self.__array_ufunc__(ufunc, method, *inputs, **options))
        if method == "reduce":
            axis, keepdims = options.get("axis", 0 if len(inputs) < 2 else inputs[1]), options.get("keepdims", False)
            if ufunc is np.add:
                return inputs[0].sum(axis=axis, keepdims=keepdims)
            if ufunc in (np.maximum, np.minimum):
                return inputs[0].largest("max" if ufunc is np.maximum else "min", axis, keepdims)
        if method == "__call__" and ufunc is np.bitwise_and:
            mine, other = inputs if isinstance(inputs[0], Traced) else inputs[::-1]
            return mine & other
        if method == "__call__" and ufunc is np.bitwise_or:
            mine, other = inputs if isinstance(inputs[0], Traced) else inputs[::-1]
            return mine | other
        if method == "__call__" and ufunc in _BINARY:
            left = inputs[0] if isinstance(inputs[0], Traced) else self._lifted(inputs[0])
            return _BINARY[ufunc](left, inputs[1])
        if method == "__call__" and ufunc is np.isfinite:
            return self._new(self.axes, (Term(),))
        if method == "__call__" and ufunc in _UNARY:
            return inputs[0]._function(_UNARY[ufunc])
        raise NotTraceable(f"np.{ufunc.__name__}")

    def _function(self, name: str) -> Traced:
        if name == "negative":
            return -self
        if name == "sqrt":
            return self ** Fraction(1, 2)
        if name == "exp":
            return self._new(self.axes, (exponential(self.heads, self.expr),))
        return self._new(self.axes, (Term(factors=(self.heads.make("fn", name, (self.expr,)),)),))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where:
            return self._chosen(*args)
        if function is np.expand_dims:
            return args[0]._with_axis(args[1] % (args[0].ndim + 1))
        if function is np.broadcast_to:
            return args[0].spread(args[1])
        if function is np.take_along_axis:
            return args[0].taken(args[1], kwargs.get("axis", args[2] if len(args) > 2 else -1))
        if function is np.put_along_axis and isinstance(args[0], Traced):
            return args[0].put(args[1], args[2], kwargs.get("axis", args[3] if len(args) > 3 else -1))
        if function is np.einsum:
            return _einsum(*args)
        if function is np.any:
            raise NotTraceable("a branch on values")
        raise NotTraceable(f"np.{function.__name__}")

    def _chosen(self, condition: Any, a: Any, b: Any) -> Any:
        if isinstance(condition, np.ndarray) and (condition.all() or not condition.any()):
            return self._lifted(a if condition.all() else b)
        where = self._lifted(condition)
        if self.scope.away and [(head.kind, head.data) for t in where.expr for head, _, _ in t.factors] == _EQUAL:
            return self._lifted(b)
        if isinstance(b, float) and math.isinf(b):
            return _Bounded(where * a + ~where * self._new((), (Term(factors=(self.heads.scalar("∞", None),)),)), b)
        yes, no = self._lifted(a), self._lifted(b)
        return where * yes + ~where * no if no.expr else where * yes

    def spread(self, shape: tuple[int, ...]) -> Traced:
        """Repeat along axes, as np.broadcast_to."""
        axes = ((),) * (len(shape) - self.ndim) + self.axes
        full = []
        for axis, length in zip(axes, shape, strict=True):
            if axis or length == 1:
                full.append(axis)
            elif isinstance(length, SymbolicLength):
                full.append(tuple(Index(cls) for cls in length.classes))
            else:
                raise NotTraceable("a length that is only a number")
        return self._new(tuple(full), self.expr)


class _Bounded:
    """An array with -inf or inf where a condition does not hold. All that may be done with it is what it is made for:
    take the largest or the smallest entry. What that is does not matter, for it must cancel.
    """

    def __init__(self, array: Traced, bound: float) -> None:
        self._array, self._bound, self.shape = array, bound, array.shape

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Traced:
        if method == "reduce" and ufunc is (np.maximum if self._bound < 0 else np.minimum):
            return self._array.__array_ufunc__(ufunc, method, self._array, *inputs[1:], **options)  # type: ignore
        raise NotTraceable("an infinite number")


_EQUAL = [("cond", "==")]


def _number(value: Any) -> Expr:
    """Give a number as an exact formula; a length as a power of its size classes."""
    if isinstance(value, SymbolicLength):
        return (settled(Term(sizes=tuple(sorted((cls, value.classes.count(cls)) for cls in set(value.classes))))),)
    number = float(value) if not isinstance(value, (int, Fraction)) else value
    if isinstance(number, float):
        if not math.isfinite(number):
            raise NotTraceable("an infinite number")
        written = repr(number)
        if len(written) > 10:
            raise NotTraceable(f"the number {written}, which is no short decimal and no root of a length")
        number = Fraction(written)
    return (Term(number),) if number else ()


def _einsum(text: str, *arrays: Any) -> Traced:
    inputs, _, output = text.partition("->")
    first = next(array for array in arrays if isinstance(array, Traced))
    letters: dict[str, tuple[Index, ...]] = {}
    term = Term()
    for word, array in zip(inputs.split(","), arrays, strict=True):
        names: dict[Index, Index] = {}
        for letter, axis in zip(word, array.axes, strict=True):
            own = letters.setdefault(letter, tuple(Index(each.cls) for each in axis))
            if [each.cls for each in own] != [each.cls for each in axis]:
                raise NotTraceable("labels of different make-up")
            names.update(zip(axis, own, strict=True))
        body = tuple(fresh(part, names) for part in array.expr)
        if not body:
            return first._new(tuple(letters[letter] for letter in output), ())
        term = times(term, body[0] if len(body) == 1 else heads_group(first.heads, body))
    gone = tuple(index for letter, own in letters.items() if letter not in output for index in own)
    whole = settled(Term(term.coef, term.factors, term.dummies + gone, term.sizes))
    return first._new(tuple(letters[letter] for letter in output), (whole,))


_UNARY = {
    np.exp: "exp",
    np.log: "log",
    np.sqrt: "sqrt",
    np.sin: "sin",
    np.cos: "cos",
    np.tanh: "tanh",
    np.negative: "negative",
}
_BINARY: dict[Any, Any] = {
    np.add: Traced.__add__, np.subtract: Traced.__sub__, np.multiply: Traced.__mul__, np.true_divide:
    Traced.__truediv__, np.matmul: Traced.__matmul__, np.power: Traced.__pow__, np.equal: Traced.__eq__,
    np.not_equal: Traced.__ne__, np.greater: Traced.__gt__, np.less: Traced.__lt__, np.greater_equal: Traced.__ge__,
    np.less_equal: Traced.__le__,
}  # fmt: skip
