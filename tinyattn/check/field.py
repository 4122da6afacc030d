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


class FieldArray(Duck):
    """Numbers of a finite field; `field_of` makes a kind with keys of its own.

    Attributes
    ----------
    r : ndarray
        The numbers.
    t : ndarray or None
        Their tangents.
    s : ndarray
        The floats that decide comparisons.
    """

    __slots__ = ("r", "s", "t")
    numbers: SmallPrime
    lifted: dict[float, FieldArray]

    def __init__(self, r: Any, t: Any, s: Any) -> None:
        self.r, self.t, self.s = r, t, s

    @property
    def parts(self) -> tuple[Any, ...]:
        """The ordinary arrays this one is made of."""
        return self.r, self.t, self.s

    @property
    def data(self) -> np.ndarray:
        """The floats that decide comparisons."""
        return self.s  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.s.shape  # type: ignore[no-any-return]

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

    # -- arithmetic -------------------------------------------------------------------------------------------

    def plus(self, other: Any) -> Any:
        """Sum."""
        a, b, n = self, other, self.numbers
        s = np.asarray(a.s + b.s)
        r = n.reduced(a.r + b.r)
        if a.t is None or b.t is None:
            only = b.t if a.t is None else a.t
            return type(a)(r, only if only is None or only.shape == s.shape else np.broadcast_to(only, s.shape), s)
        return type(a)(r, n.reduced(a.t + b.t), s)

    def negated(self) -> Any:
        """The other sign."""
        if self.numbers.dtype is object:
            return self.each(np.negative).tidied()
        return type(self)(-self.r, None if self.t is None else -self.t, -self.s)

    def times(self, other: Any) -> Any:
        """Product."""
        a, b, n = self, other, self.numbers
        t = None
        if a.t is not None:
            t = a.t * b.r
        if b.t is not None:
            t = a.r * b.t if t is None else t + a.r * b.t
        return type(a)(n.reduced(a.r * b.r), None if t is None else n.reduced(t), np.asarray(a.s * b.s))

    def over(self, other: Any) -> Any:
        """Quotient."""
        a, b, n = self, other, self.numbers
        inverse = n.inverse(b.r)
        r = n.reduced(a.r * inverse)
        t = None
        if b.t is not None:
            t = n.reduced(r * -b.t)
        if a.t is not None:
            t = n.array(a.t + np.zeros(r.shape, n.dtype)) if t is None else t + a.t
        return type(a)(r, None if t is None else n.reduced(n.reduced(t) * inverse), np.asarray(a.s / b.s))

    def raised(self, other: Any) -> Any:
        """Power, as a pseudo-random function of base and exponent."""
        a, b, n = self, other, self.numbers
        s = np.asarray(np.power(a.s, b.s))
        result = type(a)(n.array(n.function_of_two("power", a.r, b.r) + np.zeros(s.shape, n.dtype)), None, s)
        moving = []
        if a.t is not None:
            moving.append(b.still().times(a.still().raised(b.still() - 1.0)).times(type(a)(a.t, None, a.s)))
        if b.t is not None:
            base = np.where(a.s == 0, 1.0, a.still()) if (a.s == 0).any() else a.still()
            moving.append(base.mapped("log").times(result).times(type(a)(b.t, None, b.s)))
        if moving:
            total = moving[0] if len(moving) == 1 else moving[0].plus(moving[1])
            result.t = total.r
        return result

    def still(self) -> Any:
        """The same numbers without tangents."""
        return type(self)(self.r, None, self.s)

    def matrix_product(self, other: Any) -> Any:
        """Matrix product."""
        a, b, n = self, other, self.numbers
        t = None
        if a.t is not None:
            t = n.matmul(a.t, b.r)
        if b.t is not None:
            second = n.matmul(a.r, b.t)
            t = second if t is None else n.reduced(t + second)
        return type(a)(n.matmul(a.r, b.r), t, np.asarray(a.s @ b.s))

    def added_up(self, axis: Axes, keepdims: bool) -> Any:
        """Sum along axes."""
        n, axes = self.numbers, tuple(axis) if isinstance(axis, (list, tuple)) else axis
        parts = [None if p is None else np.asarray(np.add.reduce(p, axis=axes, keepdims=keepdims), dtype=p.dtype) for p in self.parts]
        return type(self)(n.reduced(parts[0]), None if parts[1] is None else n.reduced(parts[1]), parts[2])

    def tidied(self) -> Any:
        """Numbers back into the field after NumPy added some up."""
        n = self.numbers
        return type(self)(n.reduced(np.array(self.r, dtype=n.dtype)), None if self.t is None else n.reduced(np.array(self.t, dtype=n.dtype)), self.s)

    @classmethod
    def contracted(cls, subscripts: str, operands: Sequence[Any]) -> Any:
        """``einsum``: two operands at a time."""
        names, result = labels_of(subscripts)
        x, labels = operands[0], names[0]
        if len(operands) == 1:
            return x.each(lambda p: np.einsum(f"{labels}->{result}", p)).tidied()
        for at, (y, own) in enumerate(zip(operands[1:], names[1:], strict=True), 1):
            later = result + "".join(names[at + 1 :])
            kept = "".join(c for c in dict.fromkeys(labels + own) if c in later)
            kept = result if at == len(operands) - 1 else kept
            x, labels = cls._two(x, labels, y, own, kept), kept
        return x

    @classmethod
    def _two(cls, a: Any, left: str, b: Any, right: str, kept: str) -> Any:
        n, text = cls.numbers, f"{left},{right}->{kept}"
        sizes = {**dict(zip(left, a.shape, strict=True)), **{c: size for c, size in zip(right, b.shape, strict=True) if size != 1}}
        terms = math.prod(sizes.get(c, 1) for c in set(left + right) - set(kept))
        t = None
        if a.t is not None:
            t = n.einsum(text, a.t, b.r, terms)
        if b.t is not None:
            second = n.einsum(text, a.r, b.t, terms)
            t = second if t is None else n.reduced(t + second)
        return cls(n.einsum(text, a.r, b.r, terms), t, np.asarray(np.einsum(text, a.s, b.s)))

    def mapped(self, name: str) -> Any:
        """exp and its like: a pseudo-random number, and the tangent that the derivative gives."""
        n = self.numbers
        s = np.asarray(_erf(self.s) if name == "erf" else getattr(np, name)(self.s))
        r = n.function(name, n.same(self.r))
        result = type(self)(r, None, s)
        if self.t is not None:
            slope = _SLOPES[name](self.still(), result)
            result.t = n.reduced(slope.r * self.t)
        return result

    # -- questions --------------------------------------------------------------------------------------------

    def inner(self, other: Any) -> int:
        """The sum of all products of entries, as one number from 0 to p - 1."""
        n = self.numbers
        products = n.reduced(self.r * other)
        return int(np.add.reduce(products, axis=None)) % n.p


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
