"""FieldArray: dual numbers over a finite field that carry a float, the numbers of the exact check.

Three parts: the number, its tangent (None where nothing moves), and the float that decides comparisons and maxima.
Reverse mode by an op's rules and forward mode by these tangents share the forward and nothing else; two numbers of
a finite field are equal or not, so there is no tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyattn.check.duck import Axes, CannotRun, Duck
from tinyattn.check.primes import LargePrime, SmallPrime, labels_of

DEEPEST = 150  # floats that may wait for one another
THIN = 64  # entries of a matrix from which on its tangents are a column times a row


class Floats:
    """Floats that wait until somebody asks for them; what they are made from may change in the meantime."""

    __slots__ = ("depth", "make", "value")

    def __init__(self, make: Any, depth: int = 0, value: Any = None) -> None:
        self.make, self.depth, self.value = make, depth, value
        if depth > DEEPEST:
            self()  # asked for now, before those that wait for one another become too many

    def __call__(self) -> Any:
        """The floats."""
        if self.value is None:
            with np.errstate(all="ignore"):
                self.value = np.asarray(self.make())
            self.make, self.depth = None, 0
        return self.value


class FieldArray(Duck):
    """Numbers of a finite field; `field_of` makes a kind with keys of its own.

    Numbers are brought back into the field only before they would become too large, and then where they are: whoever
    looks at the same memory sees another name of the same number.

    Attributes
    ----------
    r : ndarray
        The numbers.
    t : ndarray or None
        Their tangents.
    most, most_t : float
        What no number, and no tangent, exceeds.
    thin : tuple of two ndarrays, or None
        Column and row whose product the tangents of a matrix are: a product with it is then a product with a vector.
    data : ndarray
        The floats that decide comparisons; they wait until somebody compares.
    """

    __slots__ = state = ("_inverse", "floats", "most", "most_t", "r", "t", "thin")
    numbers: SmallPrime
    lifted: dict[float, FieldArray]

    def __init__(self, r: Any, t: Any, floats: Floats, most: float = 0.0, most_t: float = 0.0) -> None:
        self.r, self.t, self.floats = r, t, floats
        self.most = most or self.numbers.half
        self.most_t = most_t or self.numbers.half
        self.thin: Any = None
        self._inverse: Any = None  # one over each number, once somebody asked

    @property
    def parts(self) -> tuple[Any, ...]:
        """The ordinary arrays this one is made of."""
        self.tight()
        return self.r, self.t, self.data

    @property
    def data(self) -> np.ndarray:
        """The floats that decide comparisons, computed when first asked for."""
        return self.floats()  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.r.shape  # type: ignore[no-any-return]

    @classmethod
    def made_of(cls, *parts: Any) -> Any:
        """An array from its parts."""
        r, t, floats = parts
        return cls(r, t, Floats(None, 0, floats))

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Any:
        """Tangents of what does not move."""
        return np.zeros(shape, cls.numbers.dtype)

    @classmethod
    def lift(cls, x: Any) -> Any:
        """Plain numbers, exactly: a float is a fraction."""
        if x.__class__ is cls:
            return x
        if isinstance(x, (float, int)):
            known = cls.lifted.get(x)
            if known is not None:
                return known
        try:
            array = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError):
            raise CannotRun(f"a {type(x).__name__} among exact numbers") from None
        new = cls(cls.numbers.of_floats(array), None, Floats(None, 0, array))
        if isinstance(x, (float, int)):
            cls.lifted[x] = new.fixed()
        return new

    @classmethod
    def leaf(cls, value: Any, tangent: bool = True) -> Any:
        """Random numbers, and random tangents, with the floats of an array.

        The tangents of a matrix are a column times a row.  A rule that is off by D is then missed if a @ D @ b is 0
        by chance, which is as good as never, as before; and all products with these tangents cost next to nothing.
        """
        array, n = np.asarray(value, dtype=np.float64), cls.numbers
        new = cls(n.random(array.shape), None, Floats(None, 0, array))
        if tangent and array.ndim == 2 and array.size > THIN:
            new.thin = n.random((array.shape[0], 1)), n.random((1, array.shape[1]))
            new.t = n.tightened(new.thin[0] * new.thin[1])
        elif tangent:
            new.t = n.random(array.shape)
        return new

    def known(self, value: Any) -> Any:
        """The same numbers with floats that were computed before."""
        self.floats = Floats(None, 0, np.asarray(value, dtype=np.float64))
        return self

    def foreseen(self, value: Any) -> Any:
        """The same numbers with floats that ``value()`` gives; what they were made from is let go."""
        return type(self)(self.r, self.t, Floats(value), self.most, self.most_t)

    def still(self) -> Any:
        """The same numbers without tangents."""
        return self if self.t is None else type(self)(self.r, None, self.floats, self.most)

    # -- bounds -------------------------------------------------------------------------------------------------

    def tight(self) -> Any:
        """The same numbers, brought back between -p/2 and p/2."""
        self.tight_r()
        if self.t is not None:
            self.tight_t()
        return self

    def tight_r(self) -> Any:
        """The numbers alone, brought back."""
        if self.most > self.numbers.half:
            self.r, self.most = self.numbers.tightened(self.r), self.numbers.half
        return self.r

    def tight_t(self) -> Any:
        """The tangents alone, brought back."""
        if self.most_t > self.numbers.half:
            self.t, self.most_t = self.numbers.tightened(self.t), self.numbers.half
        return self.t

    def _fit(self, other: Any, terms: float) -> tuple[float, float]:
        """Make factors small enough for sums of so many products; gives the bounds of a product and of its tangent."""
        a, b = self, other
        top = self.numbers.limit / terms
        if a.most * b.most > top:
            (a if a.most > b.most else b).tight_r()
            if a.most * b.most > top:
                a.tight_r(), b.tight_r()
        moved = 0.0
        if a.t is not None:
            if 2 * a.most_t * b.most > top:
                a.tight_t() if a.most_t > b.most else b.tight_r()
                if 2 * a.most_t * b.most > top:
                    a.tight_t(), b.tight_r()
            moved = a.most_t * b.most
        if b.t is not None:
            if 2 * a.most * b.most_t > top:
                b.tight_t() if b.most_t > a.most else a.tight_r()
                if 2 * a.most * b.most_t > top:
                    b.tight_t(), a.tight_r()
            moved = moved + a.most * b.most_t
        return a.most * b.most, moved

    def _new(self, r: Any, t: Any, make: Any, depth: int, most: float = 0.0, most_t: float = 0.0) -> Any:
        n = self.numbers
        r = r if r.__class__ is np.ndarray else n.array(r)
        t = t if t is None or t.__class__ is np.ndarray else n.array(t)
        return self.__class__(r, t, Floats(make, depth + 1), most, most_t)

    def each(self, function: Any) -> Any:
        """The same move of numbers, done to every part."""
        r, t = self.r, self.t
        moved = np.asarray(function(r), dtype=r.dtype)
        t, floats = None if t is None else np.asarray(function(t), dtype=t.dtype), self.floats
        new = self._new(moved, t, lambda: function(floats()), floats.depth, self.most, self.most_t)
        return new if moved.base is None else self.seen_by(new)

    @classmethod
    def joined(cls, function: Any, pieces: Sequence[Any]) -> Any:
        """One array from several, part by part."""
        lifted = [cls.lift(x) for x in pieces]
        r = np.asarray(function([x.r for x in lifted]), dtype=cls.numbers.dtype)
        t, most_t = None, 0.0
        if any(x.t is not None for x in lifted):
            parts = [cls.zeros(x.shape) if x.t is None else x.t for x in lifted]
            t = np.asarray(function(parts), dtype=cls.numbers.dtype)
            most_t = max(x.most_t for x in lifted if x.t is not None)
        floats = [x.floats for x in lifted]
        depth, most = max(each.depth for each in floats), max(x.most for x in lifted)
        return lifted[0]._new(r, t, lambda: function([each() for each in floats]), depth, most, most_t)

    # Whether a cotangent is 0 is asked of the number itself: its floats need not be computed for that.

    def __eq__(self, other: object) -> Any:
        if self.floats.value is None and isinstance(other, (int, float)) and other == 0:
            return self.tight_r() == 0
        return super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        return ~np.asarray(self == other)

    __hash__ = None  # type: ignore[assignment]

    # -- arithmetic -------------------------------------------------------------------------------------------

    def _fit_sum(self, other: Any) -> None:
        limit = self.numbers.limit
        if self.most + other.most > limit:
            self.tight_r(), other.tight_r()
        if self.t is not None and other.t is not None and self.most_t + other.most_t > limit:
            self.tight_t(), other.tight_t()

    def plus(self, other: Any) -> Any:
        """Sum."""
        a, b, x, y = self, other, self.floats, other.floats
        a._fit_sum(b)
        r = a.numbers.array(a.r + b.r)
        if a.t is not None and b.t is not None:
            t, most_t = a.t + b.t, a.most_t + b.most_t
        else:
            t, most_t = (b.t, b.most_t) if a.t is None else (a.t, a.most_t)
            t = t if t is None or t.shape == r.shape else np.broadcast_to(t, r.shape)
        return a._new(r, t, lambda: x() + y(), max(x.depth, y.depth), a.most + b.most, most_t)

    def minus(self, other: Any) -> Any:
        """Difference."""
        a, b, x, y = self, other, self.floats, other.floats
        if b.t is not None and a.t is None:
            return a.plus(b.negated())
        a._fit_sum(b)
        r = a.numbers.array(a.r - b.r)
        t, most_t = (a.t, a.most_t) if b.t is None else (a.t - b.t, a.most_t + b.most_t)
        t = t if t is None or t.shape == r.shape else np.broadcast_to(t, r.shape)
        return a._new(r, t, lambda: x() - y(), max(x.depth, y.depth), a.most + b.most, most_t)

    def negated(self) -> Any:
        """The other sign."""
        t, floats = None if self.t is None else -self.t, self.floats
        return self._new(-self.r, t, lambda: -floats(), floats.depth, self.most, self.most_t)

    def times(self, other: Any) -> Any:
        """Product."""
        a, b, x, y = self, other, self.floats, other.floats
        most, most_t = a._fit(b, 1.0)
        t = None
        if a.t is not None:
            t = a.t * b.r
        if b.t is not None:
            t = a.r * b.t if t is None else t + a.r * b.t
        return a._new(a.r * b.r, t, lambda: x() * y(), max(x.depth, y.depth), most, most_t)

    def over(self, other: Any) -> Any:
        """Quotient."""
        x, y = self.floats, other.floats
        result = self.times(other.inverted())
        result.floats = Floats(lambda: x() / y(), max(x.depth, y.depth) + 1)
        return result

    def inverted(self) -> Any:
        """One over each number; the numbers themselves are inverted once."""
        n, floats = self.numbers, self.floats
        if self._inverse is None:
            self._inverse = n.inverse(self.tight_r())
        r, t = self._inverse, None
        if self.t is not None:
            t = n.tightened(n.array(n.tightened(n.array(r * r)) * -self.tight_t()))
        return self._new(r, t, lambda: 1.0 / floats(), floats.depth)

    def raised(self, other: Any) -> Any:
        """Power, as a pseudo-random function of base and exponent."""
        a, b, n, x, y = self.tight(), other.tight(), self.numbers, self.floats, other.floats
        shape, depth = np.broadcast_shapes(a.shape, b.shape), max(x.depth, y.depth)
        r = n.function_of_two("power", a.r, b.r) + np.zeros(shape, n.dtype)
        result = a._new(r, None, lambda: np.power(x(), y()), depth)
        moving = []
        if a.t is not None:
            slope = b.still().times(a.still().raised(b.still() - 1.0))
            moving.append(slope.times(type(a)(a.t, None, x)))
        if b.t is not None:
            base: Any = np.where(a.data == 0, 1.0, a.still()) if (a.data == 0).any() else a.still()
            moving.append(base.mapped("log").times(result).times(type(b)(b.t, None, y)))
        if moving:
            result.t = (moving[0] if len(moving) == 1 else moving[0].plus(moving[1])).tight_r()
        return result

    def matrix_product(self, other: Any) -> Any:
        """Matrix product."""
        a, b, n, x, y = self, other, self.numbers, self.floats, other.floats
        length = max(a.shape[-1], 1)
        a._fit(b, float(min(length, n.together)))
        r, most = n.matmul(a.r, b.r, a.most * b.most)
        moving = []
        if a.t is not None:
            thin = a.thin is not None and b.r.ndim <= 2
            moving.append(a._times_thin(b) if thin else n.matmul(a.t, b.r, a.most_t * b.most))
        if b.t is not None:
            moving.append(n.matmul(a.r, b.t, a.most * b.most_t) if b.thin is None else b._thin_times(a))
        t, most_t = moving[0] if moving else (None, 0.0)
        if len(moving) == 2:
            t, most_t = n.sum_of(*moving[0], *moving[1])
        return a._new(r, t, lambda: x() @ y(), max(x.depth, y.depth), most, most_t)

    def _thin_times(self, left: Any) -> tuple[Any, float]:
        """``left @ t`` for the thin tangents of a matrix."""
        n, (column, row) = self.numbers, self.thin
        found, most = n.matmul(left.r, column, left.most * n.half)
        found = n.tightened(found) if most > n.half else found
        return found * row if left.r.ndim > 1 else found * row[0], n.half * n.half

    def _times_thin(self, right: Any) -> tuple[Any, float]:
        """``t @ right`` for the thin tangents of a matrix."""
        n, (column, row) = self.numbers, self.thin
        found, most = n.matmul(row, right.r, right.most * n.half)
        found = n.tightened(found) if most > n.half else found
        return column * found if right.r.ndim > 1 else column[:, 0] * found, n.half * n.half

    def added_up(self, axis: Axes, keepdims: bool) -> Any:
        """Sum along axes."""
        axes: Any = tuple(axis) if isinstance(axis, (list, tuple)) else axis

        def total(part: Any) -> Any:
            return _sum(part, axis=axes, keepdims=keepdims)

        limit, most = self.numbers.limit, max(self.r.size, 1)
        if self.most * most > limit:
            self.tight_r()
        if self.t is not None and self.most_t * most > limit:
            self.tight_t()
        r = self.numbers.array(total(self.r))
        terms = max(self.r.size // max(r.size, 1), 1)
        t, floats = None if self.t is None else total(self.t), self.floats
        return self._new(r, t, lambda: total(floats()), floats.depth, self.most * terms, self.most_t * terms)

    def tidied(self) -> Any:
        """Numbers back into the field after NumPy added some up."""
        n = self.numbers
        t = None if self.t is None else n.reduced(np.array(self.t, dtype=n.dtype))
        return type(self)(n.reduced(np.array(self.r, dtype=n.dtype)), t, self.floats)

    @classmethod
    def contracted(cls, subscripts: str, operands: Sequence[Any]) -> Any:
        """``einsum``: two operands at a time."""
        names, result = labels_of(subscripts)
        x, labels = operands[0].tight(), names[0]
        if len(operands) == 1:
            return x.each(lambda p: np.einsum(f"{labels}->{result}", p)).tidied()
        for at, (y, own) in enumerate(zip(operands[1:], names[1:], strict=True), 1):
            later = result + "".join(names[at + 1 :])
            kept = "".join(c for c in dict.fromkeys(labels + own) if c in later)
            kept = result if at == len(operands) - 1 else kept
            x, labels = cls._two(x.tight(), labels, y.tight(), own, kept), kept
        return x

    @classmethod
    def _two(cls, a: Any, left: str, b: Any, right: str, kept: str) -> Any:
        n, text, x, y = cls.numbers, f"{left},{right}->{kept}", a.floats, b.floats
        sizes = {
            **dict(zip(left, a.shape, strict=True)),
            **{c: size for c, size in zip(right, b.shape, strict=True) if size != 1},
        }
        terms = float(math.prod(sizes.get(c, 1) for c in set(left + right) - set(kept)))
        r, most = n.einsum(text, a.r, b.r, terms)
        parts = [
            n.reduced(n.einsum(text, one, other, terms)[0])
            for one, other in ((a.t, b.r), (a.r, b.t))
            if one is not None and other is not None
        ]
        t = None if not parts else parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return a._new(r, t, lambda: np.einsum(text, x(), y()), max(x.depth, y.depth), most, 2 * n.half)

    def mapped(self, name: str) -> Any:
        """Exp and its like: a pseudo-random number, and the tangent that the derivative gives."""
        n, floats = self.numbers, self.floats
        function: Any = _erf if name == "erf" else getattr(np, name)
        result = self._new(n.function(name, self.tight_r()), None, lambda: function(floats()), floats.depth)
        if self.t is not None:
            slope = _SLOPES[name](self.still(), result)
            moved = slope.times(type(self)(self.t, None, floats, self.most_t))
            result.t, result.most_t = moved.r, moved.most
        return result

    # -- questions --------------------------------------------------------------------------------------------

    def along(self, cotangent: Any) -> int:
        """The sum of all products of entries of a cotangent with the tangents, from 0 to p - 1."""
        n = self.numbers
        if self.thin is not None:
            column, row = self.thin
            found, _ = n.matmul(cotangent.tight_r(), row.T, n.half * n.half)
            return n.dot(n.tightened(found), column)
        return 0 if self.t is None else n.dot(cotangent.tight_r(), self.tight_t())


_sum: Any = np.add.reduce


def _erf(x: np.ndarray) -> np.ndarray:
    return np.asarray(_erf_of_each(x), dtype=np.float64)


_erf_of_each = np.frompyfunc(math.erf, 1, 1)
_SLOPES = {
    "exp": lambda x, y: y,
    "log": lambda x, y: 1.0 / x,
    "sqrt": lambda x, y: y.inverted() / 2.0,
    "tanh": lambda x, y: 1.0 - y * y,
    "sin": lambda x, y: x.mapped("cos"),
    "cos": lambda x, y: -x.mapped("sin"),
    "erf": lambda x, y: 2.0 * (-(x * x)).mapped("exp") / math.sqrt(math.pi),
}


def field_of(seed: int = 0, large: bool = False) -> type[FieldArray]:
    """A kind of `FieldArray` with pseudo-random functions of its own.

    Examples
    --------
    >>> import numpy as np
    >>> kind = field_of(seed=1)
    >>> x = kind.leaf(np.array([2.0, 3.0]))
    >>> y = x * x / x - x
    >>> bool((y.r % kind.numbers.p == 0).all() and (y.t % kind.numbers.p == 0).all())
    True
    """
    numbers = LargePrime(seed) if large else SmallPrime(seed)
    return type("FieldArray", (FieldArray,), {"numbers": numbers, "lifted": {}, "__slots__": ()})
