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


class FieldArray(Duck):
    """Numbers of a finite field; `field_of` makes a kind with keys of its own.

    Numbers are brought back into the field only before they would become too large.

    Attributes
    ----------
    r : ndarray
        The numbers.
    most : float
        What no number or tangent exceeds.
    t : ndarray or None
        Their tangents.
    data : ndarray
        The floats that decide comparisons; they wait until somebody compares.
    """

    __slots__ = ("_s", "depth", "most", "r", "t")
    numbers: SmallPrime
    lifted: dict[float, FieldArray]

    def __init__(self, r: Any, t: Any, s: Any, depth: int = 0, most: float = 0.0) -> None:
        self.r, self.t, self._s = r, t, s
        self.most = most or self.numbers.half
        self.depth = depth
        if depth > DEEPEST:
            self.data  # noqa: B018 - asked for now, before the floats that wait for it become too many

    @property
    def parts(self) -> tuple[Any, ...]:
        """The ordinary arrays this one is made of."""
        return self.r, self.t, self.data

    @property
    def data(self) -> np.ndarray:
        """The floats that decide comparisons, computed when first asked for."""
        s = self._s
        if s.__class__ is not np.ndarray:
            s = np.asarray(s() if callable(s) else s)
            self._s, self.depth = s, 0
        return s  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.r.shape  # type: ignore[no-any-return]

    @classmethod
    def made_of(cls, *parts: Any) -> Any:
        """An array from its parts."""
        return cls(*parts)

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
        new = cls(cls.numbers.of_floats(array), None, array)
        if isinstance(x, (float, int)):
            cls.lifted[x] = new
        return new

    @classmethod
    def leaf(cls, value: Any, tangent: bool = True) -> Any:
        """Random numbers, and random tangents, with the floats of an array."""
        array = np.asarray(value, dtype=np.float64)
        return cls(cls.numbers.random(array.shape), cls.numbers.random(array.shape) if tangent else None, array)

    def known(self, value: Any) -> Any:
        """The same numbers with floats that were computed before."""
        self._s, self.depth = np.asarray(value, dtype=np.float64), 0
        return self

    def still(self) -> Any:
        """The same numbers without tangents."""
        return self if self.t is None else self._new(self.r, None, lambda: self.data, (self,), self.most)

    def tight(self) -> Any:
        """The same numbers, brought back between -p/2 and p/2."""
        n = self.numbers
        if self.most > n.half:
            self.r = n.reduced(self.r)
            self.t = None if self.t is None else n.reduced(self.t)
            self.most = n.half
        return self

    def _new(self, r: Any, t: Any, s: Any, parents: Sequence[Any], most: float = 0.0) -> Any:
        n = self.numbers
        r = r if r.__class__ is np.ndarray else n.array(r)
        t = t if t is None or t.__class__ is np.ndarray else n.array(t)
        return type(self)(r, t, s, 1 + max([p.depth for p in parents]), most)

    def each(self, function: Any) -> Any:
        """The same move of numbers, done to every part."""
        r, t = self.r, self.t
        moved = np.asarray(function(r), dtype=r.dtype)
        return self._new(
            moved,
            None if t is None else np.asarray(function(t), dtype=t.dtype),
            lambda: function(self.data),
            (self,),
            self.most,
        )

    @classmethod
    def joined(cls, function: Any, pieces: Sequence[Any]) -> Any:
        """One array from several, part by part."""
        lifted = [cls.lift(x) for x in pieces]
        r = np.asarray(function([x.r for x in lifted]), dtype=cls.numbers.dtype)
        t = None
        if any(x.t is not None for x in lifted):
            t = np.asarray(
                function([cls.zeros(x.shape) if x.t is None else x.t for x in lifted]), dtype=cls.numbers.dtype
            )
        return lifted[0]._new(r, t, lambda: function([x.data for x in lifted]), lifted, max([x.most for x in lifted]))

    # Whether a cotangent is 0 is asked of the number itself: its floats need not be computed for that.

    def __eq__(self, other: object) -> Any:
        if self._s.__class__ is not np.ndarray and isinstance(other, (int, float)) and other == 0:
            return self.tight().r == 0
        return super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        return ~np.asarray(self == other)

    __hash__ = None

    # -- arithmetic -------------------------------------------------------------------------------------------

    def plus(self, other: Any) -> Any:
        """Sum."""
        a, b = self, other
        if a.most + b.most > a.numbers.limit:
            a.tight()
            b.tight()
        r = a.numbers.array(a.r + b.r)
        if a.t is None or b.t is None:
            t = b.t if a.t is None else a.t
            t = t if t is None or t.shape == r.shape else np.broadcast_to(t, r.shape)
        else:
            t = a.t + b.t
        return a._new(r, t, lambda: a.data + b.data, (a, b), a.most + b.most)

    def minus(self, other: Any) -> Any:
        """Difference."""
        a, b = self, other
        if a.most + b.most > a.numbers.limit or (b.t is not None and a.t is None):
            return a.plus(b.negated())
        r = a.numbers.array(a.r - b.r)
        t = a.t if b.t is None else a.t - b.t
        t = t if t is None or t.shape == r.shape else np.broadcast_to(t, r.shape)
        return a._new(r, t, lambda: a.data - b.data, (a, b), a.most + b.most)

    def negated(self) -> Any:
        """The other sign."""
        return self._new(-self.r, None if self.t is None else -self.t, lambda: -self.data, (self,), self.most)

    def _fit(self, other: Any, terms: float = 2.0) -> float:
        """Reduce factors whose products would be too large; gives the bound of one product."""
        a, b, limit = self, other, self.numbers.limit
        if a.most * b.most * terms > limit:
            (a if a.most > b.most else b).tight()
            if a.most * b.most * terms > limit:
                a.tight()
                b.tight()
        return a.most * b.most  # type: ignore[no-any-return]

    def times(self, other: Any) -> Any:
        """Product."""
        a, b = self, other
        bound = a._fit(b)
        t = None
        if a.t is not None:
            t = a.t * b.r
        if b.t is not None:
            t = a.r * b.t if t is None else t + a.r * b.t
        return a._new(a.r * b.r, t, lambda: a.data * b.data, (a, b), bound if t is None else 2 * bound)

    def over(self, other: Any) -> Any:
        """Quotient."""
        a, b, n = self.tight(), other.tight(), self.numbers
        inverse = n.inverse(b.r)
        r = n.reduced(a.r * inverse)
        t = None
        if b.t is not None:
            t = -(r * b.t)
        if a.t is not None:
            t = a.t + np.zeros(r.shape, n.dtype) if t is None else t + a.t
        t = None if t is None else n.reduced(n.reduced(n.array(t)) * inverse)
        return a._new(r, t, lambda: a.data / b.data, (a, b))

    def raised(self, other: Any) -> Any:
        """Power, as a pseudo-random function of base and exponent."""
        a, b, n = self.tight(), other.tight(), self.numbers
        shape = np.broadcast_shapes(a.shape, b.shape)
        r = n.function_of_two("power", n.same(a.r), n.same(b.r)) + np.zeros(shape, n.dtype)
        result = a._new(r, None, lambda: np.power(a.data, b.data), (a, b))
        moving = []
        if a.t is not None:
            slope = b.still().times(a.still().raised(b.still() - 1.0))
            moving.append(slope.times(a._new(a.t, None, lambda: a.data, (a,))))
        if b.t is not None:
            base: Any = np.where(a.data == 0, 1.0, a.still()) if (a.data == 0).any() else a.still()
            moving.append(base.mapped("log").times(result).times(b._new(b.t, None, lambda: b.data, (b,))))
        if moving:
            result.t = (moving[0] if len(moving) == 1 else moving[0].plus(moving[1])).tight().r
        return result

    def matrix_product(self, other: Any) -> Any:
        """Matrix product."""
        a, b, n = self, other, self.numbers
        bound = a._fit(b, 2.0 * max(a.shape[-1], 1))
        r, most = n.matmul(a.r, b.r, bound)
        t = None
        if a.t is not None:
            t, most = n.matmul(a.t, b.r, bound)
        if b.t is not None:
            second, _ = n.matmul(a.r, b.t, bound)
            if t is not None and 2 * most > n.limit:
                t, second = n.reduced(t), n.reduced(second)
            t, most = (second, most) if t is None else (t + second, min(2 * most, n.limit))
        return a._new(r, t, lambda: a.data @ b.data, (a, b), most)

    def added_up(self, axis: Axes, keepdims: bool) -> Any:
        """Sum along axes."""
        axes: Any = tuple(axis) if isinstance(axis, (list, tuple)) else axis

        def total(part: Any) -> Any:
            return part.sum(axis=axes, keepdims=keepdims)

        if self.most * max(self.size, 1) > self.numbers.limit:
            self.tight()
        r = self.numbers.array(total(self.r))
        terms = self.size // max(r.size, 1)
        return self._new(
            r, None if self.t is None else total(self.t), lambda: total(self.data), (self,), self.most * max(terms, 1)
        )

    def tidied(self) -> Any:
        """Numbers back into the field after NumPy added some up."""
        n = self.numbers
        t = None if self.t is None else n.reduced(np.array(self.t, dtype=n.dtype))
        return self._new(n.reduced(np.array(self.r, dtype=n.dtype)), t, lambda: self.data, (self,))

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
        n, text = cls.numbers, f"{left},{right}->{kept}"
        sizes = {
            **dict(zip(left, a.shape, strict=True)),
            **{c: size for c, size in zip(right, b.shape, strict=True) if size != 1},
        }
        terms = float(math.prod(sizes.get(c, 1) for c in set(left + right) - set(kept)))
        r, most = n.einsum(text, a.r, b.r, terms)
        parts = [
            n.reduced(n.einsum(text, x, y, terms)[0])
            for x, y in ((a.t, b.r), (a.r, b.t))
            if x is not None and y is not None
        ]
        t = None if not parts else parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return a._new(r, t, lambda: np.einsum(text, a.data, b.data), (a, b), max(most, 2 * n.half))

    def mapped(self, name: str) -> Any:
        """Exp and its like: a pseudo-random number, and the tangent that the derivative gives."""
        n = self.tight().numbers
        r = n.function(name, n.same(self.r))
        result = self._new(r, None, lambda: _erf(self.data) if name == "erf" else getattr(np, name)(self.data), (self,))
        if self.t is not None:
            slope = _SLOPES[name](self.still(), result)
            result.t = n.reduced(slope.tight().r * self.t)
        return result

    # -- questions --------------------------------------------------------------------------------------------

    def inner(self, other: Any) -> int:
        """The sum of all products of entries with those of a plain array of the field, from 0 to p - 1."""
        n = self.tight().numbers
        products = n.reduced(n.array(self.r * n.reduced(other)))
        return int(np.add.reduce(products, axis=None)) % int(n.p)


def _erf(x: np.ndarray) -> np.ndarray:
    return np.asarray(_erf_of_each(x), dtype=np.float64)


_erf_of_each = np.frompyfunc(math.erf, 1, 1)
_SLOPES = {
    "exp": lambda x, y: y,
    "log": lambda x, y: 1.0 / x,
    "sqrt": lambda x, y: 1.0 / (2.0 * y),
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
    >>> y.r, y.t
    (array([0., 0.]), array([0., 0.]))
    """
    numbers = LargePrime(seed) if large else SmallPrime(seed)
    return type("FieldArray", (FieldArray,), {"numbers": numbers, "lifted": {}, "__slots__": ()})
