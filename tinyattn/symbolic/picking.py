"""Reading and writing some entries of an array of formulas: by place, by row and column, or where a condition holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tinyattn.symbolic.canonical import Heads
from tinyattn.symbolic.pulling import heads_group
from tinyattn.symbolic.recognising import Axes, one_in_each_row, product_of_lengths
from tinyattn.symbolic.scope import NotTraceable
from tinyattn.symbolic.terms import Expr, Index, Term, fresh, settled, times


class Picking:
    """The part of `Traced` that stands behind `x[...]`, `take_along_axis` and questions about entries."""

    if TYPE_CHECKING:  # axes, formula and arithmetic are those of `Traced`

        def __getattr__(self, name: str) -> Any: ...

    def __getitem__(self: Any, key: Any) -> Any:
        if self._picks(key):
            hot, gone, rows = self._picked(key)
            hot = Term(1, hot.factors, gone)
            return self._new(rows, tuple(settled(fresh(times(term, hot), {})) for term in self.expr))
        parts = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in [part for part in parts if not isinstance(part, (np.ndarray, Picking))]:
            at = parts.index(Ellipsis)
            missing = self.ndim - sum(part is not None and part is not Ellipsis for part in parts)
            parts[at : at + 1] = [slice(None)] * missing
        axes, rest = [], list(self.axes)
        for part in parts:
            axis = () if part is None else rest.pop(0)
            if part is None or (isinstance(part, slice) and part == slice(None)):
                axes.append(axis)
            elif axis or not isinstance(part, int):  # the one entry of a kept axis may be read by number
                raise NotTraceable("entries by number")
        return self._new((*axes, *rest), self.expr)

    def _at(self: Any, index: Any, axis: int) -> tuple[Any, tuple[Index, ...]]:
        """Give [index = j] for every place j along an axis, and the index that j is; one place in each row."""
        whole = self.axes[axis]
        if not isinstance(index, Picking) or len(whole) != 1 or index.axes[axis]:
            raise NotTraceable("places that are not one in each row")
        own = (Index(whole[0].cls),)
        every = self._new((), (Term(factors=(self.heads.index(own[0]),)),))
        wide = index._compared(every, "==")
        return wide._new((*wide.axes[:axis], own, *wide.axes[axis + 1 :]), wide.expr), own

    def taken(self: Any, index: Any, axis: int) -> Any:
        """Read one entry in each row, as np.take_along_axis."""
        hot, _ = self._at(index, axis % self.ndim)
        return (self * hot).sum(axis=axis % self.ndim, keepdims=True)

    def put(self: Any, index: Any, values: Any, axis: int) -> None:
        """Write one entry in each row, as np.put_along_axis."""
        hot, _ = self._at(index, axis % self.ndim)
        self._becomes(self + hot * (self._lifted(values) - self.taken(index, axis)))

    def any(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Answer as the scope says; along an axis, whether a sum of conditions is not 0."""
        if axis is not None:
            if not is_count(self.expr):
                raise NotTraceable("a branch on values")
            return self.sum(axis=axis, keepdims=keepdims)._compared(0, "!=")
        answer = self.scope.ask()
        if not answer and self.opposite is not None:
            self.scope.fix(self.opposite.expr, 1)
        return answer

    def all(self: Any) -> bool:
        """Answer as the scope says."""
        return bool(self.scope.ask())

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        if self._picks(key):
            self._write(key, self._lifted(value))
            return
        if not isinstance(key, Picking) or isinstance(value, Picking) or value != 0:
            raise NotTraceable("entries by number")
        while key.ndim < self.ndim:
            key = key._with_axis(key.ndim)
        self._becomes(self * ~key)

    def _picks(self: Any, key: Any) -> bool:
        """Say whether a key names one entry for each row, by places in memory or by row and column."""
        if isinstance(key, Picking):
            return self.ndim == 1 and not is_count(key.expr)
        return isinstance(key, tuple) and len(key) == self.ndim == 2 and all(
            isinstance(part, (Picking, np.ndarray)) for part in key
        )  # fmt: skip

    def _picked(self: Any, key: Any) -> tuple[Term, tuple[Index, ...], Axes]:
        """Give the brackets that pick, the indices that they fix, and the axes of what is picked."""
        if isinstance(key, Picking):
            return one_in_each_row(self.scope, self.axes[0], key.axes, key.expr)
        every, column = key
        whole, (across,) = self.axes
        if product_of_lengths(self.scope, int(self.shape[0])) is None:
            raise NotTraceable("rows by numbers that may count something else")
        if not np.array_equal(every, np.arange(int(self.shape[0]))) or not isinstance(column, Picking):
            raise NotTraceable("entries by number")
        if column.ndim != 1 or [each.cls for each in column.axes[0]] != [each.cls for each in whole]:
            raise NotTraceable("places that are not one in each row")
        names = dict(zip(column.axes[0], whole, strict=True))
        hot = tuple(fresh(term, names) for term in column.expr)
        sides = ((Term(factors=(self.heads.index(across),)),), hot)
        return Term(factors=(self.heads.make("cond", "==", sides),)), (across,), (whole,)

    def _write(self: Any, key: Any, value: Any) -> None:
        """Write one entry in each row."""
        hot, gone, axes = self._picked(key)
        if value.ndim and value.axes != self[key].axes:
            raise NotTraceable("values of another make-up than the places")
        rows = self._new(axes, tuple(settled(fresh(Term(t.coef, t.factors, t.dummies + gone, t.sizes), {}))
                                     for t in multiplied(self.heads, self.expr, (hot,))))  # fmt: skip
        change = value - rows
        names = dict(zip([i for axis in change.axes for i in axis], [i for axis in axes for i in axis], strict=True))
        moved = tuple(fresh(term, names) for term in change.expr)
        self._becomes(self._new(self.axes, (*self.expr, *multiplied(self.heads, (hot,), moved))))


def is_count(expr: Expr) -> bool:
    """Say whether a formula is a sum of brackets."""
    return bool(expr) and all(
        term.coef > 0 and term.factors and all(head.kind == "cond" for head, _, _ in term.factors) for term in expr
    )


def multiplied(heads: Heads, left: Expr, right: Expr) -> Expr:
    """Give the product of two formulas as one term; nothing, if one is 0."""
    if not left or not right:
        return ()
    one, other = (expr[0] if len(expr) == 1 else heads_group(heads, expr) for expr in (left, right))
    return (times(one, other),)
