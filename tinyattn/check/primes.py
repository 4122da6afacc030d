"""Two finite fields: a small one in ordinary float arrays, as fast as floats, and a large one in Python integers.

Numbers of the small field lie between -p/2 and p/2 with p just below 2^23.  So a product is below 2^44, and a matrix
product may add 512 of them before a float64 rounds: it is one ordinary call of BLAS and one reduction.
exp, log and the like are pseudo-random functions: all that an identity between a forward and its rule may use of
them is which of them it is, and its derivative.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from tinyattn.check.duck import CannotRun

DRAWN = 16_384  # random numbers drawn at once


class SmallPrime:
    """The integers modulo 2^23 - 15 in float64 arrays.

    Parameters
    ----------
    seed : int
        What the pseudo-random functions are made from.
    """

    p = 2**23 - 15
    half = 2.0**22 - 4  # no reduced number is larger
    limit = 2.0**53 - 2.0**23  # no number may become larger: float64 would round it
    together = 256  # products, and as many of tangents, that may be added up before that
    dtype: Any = np.float64
    number: Any = float  # what a key is made of

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self._keys: dict[str, list[Any]] = {}
        self._left = np.empty(0)  # random numbers that nobody has taken yet

    def reduced(self, t: Any) -> Any:
        """Bring whole numbers below the limit back between -p/2 and p/2."""
        if t.__class__ is not np.ndarray or t.ndim == 0:
            return self.array(t - self.p * np.rint(t / self.p))
        q = t * (1.0 / self.p)
        np.rint(q, q)
        q *= -self.p
        q += t
        return q

    def tightened(self, t: Any) -> Any:
        """The same, done to the array itself where that is possible."""
        if t.__class__ is not np.ndarray or t.ndim == 0 or not t.flags.writeable:
            return self.reduced(t)
        q = t * (1.0 / self.p)
        np.rint(q, q)
        q *= self.p
        t -= q
        return t

    def array(self, x: Any) -> Any:
        """What arithmetic on 0-d arrays gave, as an array again."""
        return x if x.__class__ is np.ndarray else np.array(x, dtype=self.dtype)

    def sum_of(self, x: Any, most_x: float, y: Any, most_y: float) -> tuple[Any, float]:
        """The sum of two arrays that are the caller's own, and how large it may be."""
        if most_x + most_y > self.limit:
            x, y, most_x, most_y = self.tightened(x), self.tightened(y), self.half, self.half
        return x + y, most_x + most_y

    def dot(self, a: Any, b: Any) -> int:
        """The sum of the products of reduced numbers, from 0 to p - 1."""
        if a.size <= self.together:
            return int(np.vdot(a, b) if a.size else 0) % self.p
        products = a * b
        if products.shape[-1] <= self.together:
            products = np.add.reduce(products, axis=-1)
        return int(np.add.reduce(self.reduced(products), axis=None)) % self.p

    def random(self, shape: tuple[int, ...]) -> Any:
        """Any numbers; drawn many at once, because a draw costs more than a number."""
        size = math.prod(shape)
        if self._left.size < size:
            bits = self.rng.bit_generator.random_raw(max(size, DRAWN) // 2 + 1).view(np.int32)
            self._left = self.tightened((bits >> 9).astype(float))
        taken, self._left = self._left[:size], self._left[size:]
        return taken.reshape(shape)

    def of_floats(self, x: np.ndarray) -> Any:
        """The number that a float is, exactly: mantissa times a power of two."""
        finite = np.isfinite(x)
        if not finite.all():
            x = np.where(finite, x, 7.0)  # what is infinite or nan is hidden, never computed with
        if (np.abs(x) < 2**52).all() and (x == np.rint(x)).all():
            return self.reduced(np.array(x, dtype=float))
        mantissa, exponent = np.frexp(x)
        power = _powers_of_two(self.p)[exponent - 53 + 1200]
        return self.reduced(self.reduced(mantissa * 2.0**53) * power)

    def matmul(self, a: Any, b: Any, bound: float) -> tuple[Any, float]:
        """Matrix product and how large it may be; ``bound`` is that of one product of entries.

        As many terms at once as the limit allows: mostly all of them, in one ordinary call.
        """
        length = max(a.shape[-1], 1)
        if length * bound <= self.limit:
            if a.ndim > 2 == b.ndim and a.flags.c_contiguous:  # one product for the whole batch
                return (a.reshape(-1, length) @ b).reshape(*a.shape[:-1], b.shape[1]), length * bound
            return self.array(a @ b), length * bound
        most = int(self.limit / bound)
        cut = [slice(start, start + most) for start in range(0, length, most)]
        pieces = [self.reduced(a[..., part] @ (b[part] if b.ndim == 1 else b[..., part, :])) for part in cut]
        return self.array(sum(pieces[1:], start=pieces[0])), len(pieces) * self.half

    def einsum(self, text: str, a: Any, b: Any, terms: float) -> tuple[Any, float]:
        """Contract two reduced operands; ``terms`` products are added up."""
        bound = terms * self.half * self.half
        if bound <= self.limit:
            return self.array(np.einsum(text, a, b)), bound
        high = np.rint(b / 2048.0)
        first, second = (self.reduced(np.einsum(text, a, part)) for part in (high, b - high * 2048.0))
        return first * 2048.0 + second, 2049 * self.half

    def inverse(self, a: Any) -> Any:
        """1 / a: by one inversion for all, from products of products.  1 / 0 is 0, which nothing should ask."""
        a = np.asarray(a)
        if a.all():
            return self.reduced(self._inverse(a.ravel())).reshape(a.shape)
        return np.where(a == 0, 0.0, self.inverse(np.where(a == 0, 1.0, a)))

    def _inverse(self, flat: Any) -> Any:
        if flat.size <= 32:
            return np.array([pow(int(v), -1, self.p) for v in flat.tolist()], dtype=float)
        odd = flat.size % 2
        pairs = np.append(flat, 1.0) if odd else flat
        left, right = pairs[0::2], pairs[1::2]
        both = self._inverse(self.reduced(left * right))
        out = np.empty(pairs.size)
        out[0::2], out[1::2] = self.reduced(both * right), self.reduced(both * left)
        return out[:-1] if odd else out

    def function(self, name: str, a: Any) -> Any:
        """A pseudo-random function of a name: a square with random roots, which is all that is needed of it."""
        k, m = self._keys_of(name)
        return self.tightened(self.array((a + k) * (a + m)))

    def function_of_two(self, name: str, a: Any, b: Any) -> Any:
        """A pseudo-random function of two numbers."""
        return self.function(name, self.reduced(self.function(name + " left", a) * (b + self._keys_of(name)[0])))

    def _keys_of(self, name: str) -> list[Any]:
        if name not in self._keys:
            self._keys[name] = [self.number(v) for v in self.rng.integers(1, self.p // 4, 2)]
        return self._keys[name]


class LargePrime(SmallPrime):
    """The integers modulo 2^61 - 1 as Python integers in object arrays: slow, and a chance of 4e-19 to miss a fault."""

    p = 2**61 - 1
    half = 2.0**61
    limit = 2.0**250  # Python's integers have none, but small ones are faster
    dtype = object
    number = int

    def reduced(self, t: Any) -> Any:
        """Bring integers between 0 and p - 1."""
        return t % self.p if t.__class__ is np.ndarray and t.ndim else np.array(int(t) % self.p, dtype=object)

    tightened = reduced

    def random(self, shape: tuple[int, ...]) -> Any:
        """Any numbers."""
        return self.reduced(np.array(self.rng.integers(1, self.p, shape), dtype=object))

    def of_floats(self, x: np.ndarray) -> Any:
        """The number that a float is, exactly: a fraction."""
        return np.array(_from_float(x, self.p), dtype=object)

    def inverse(self, a: Any) -> Any:
        """1 / a for each entry."""
        return np.array(_inverses(a, self.p), dtype=object)

    def einsum(self, text: str, a: Any, b: Any, terms: float) -> tuple[Any, float]:
        """Contract two operands."""
        return self.reduced(self.array(np.einsum(text, a, b))), self.half


@functools.cache
def _powers_of_two(p: int) -> np.ndarray:
    return np.array([pow(2, e, p) for e in range(-1200, 1100)], dtype=float)


def _one_float(value: float, p: int) -> int:
    if not math.isfinite(value):
        return 7
    top, bottom = float(value).as_integer_ratio()
    return top * pow(bottom, -1, p) % p


_from_float = np.frompyfunc(_one_float, 2, 1)
_inverses = np.frompyfunc(lambda value, p: pow(int(value), -1, p) if value else 0, 2, 1)


def labels_of(subscripts: str) -> tuple[list[str], str]:
    """The labels of an einsum text with an explicit result and no dots."""
    text = subscripts.replace(" ", "")
    if "..." in text:
        raise CannotRun("np.einsum with ...")
    left, arrow, right = text.partition("->")
    if not arrow:
        named = left.replace(",", "")
        right = "".join(sorted(c for c in set(named) if named.count(c) == 1))
    return left.split(","), right
