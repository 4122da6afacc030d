"""Arrays of 50-digit numbers that graphs can be replayed on: the truth that error bounds are held against."""

from __future__ import annotations

import mpmath
import numpy as np

from tinyattn.check.duck import Duck
from tinyattn.check.primes import labels_of

MP = mpmath.mp.clone()
MP.dps = 50

_make = np.frompyfunc(lambda v: MP.mpf(float(v)), 1, 1)
_floats = np.frompyfunc(float, 1, 1)
_power = np.frompyfunc(lambda a, b: a**b, 2, 1)
_MAPPED = {name: np.frompyfunc(getattr(MP, name), 1, 1) for name in ("exp", "log", "sqrt", "tanh", "sin", "cos", "erf")}


class ManyDigits(Duck):
    """An array of mpmath numbers."""

    __slots__ = ("v",)

    def __init__(self, v):
        self.v = np.asarray(v, dtype=object)

    parts = property(lambda self: (self.v,))
    shape = property(lambda self: self.v.shape)
    data = property(lambda self: np.asarray(_floats(self.v), dtype=float))

    @classmethod
    def made_of(cls, *parts):
        return cls(*parts)

    @classmethod
    def lift(cls, x):
        return x if isinstance(x, cls) else cls(_make(np.asarray(x, dtype=float)))

    def plus(self, other):
        return ManyDigits(self.v + other.v)

    def negated(self):
        return ManyDigits(-self.v)

    def times(self, other):
        return ManyDigits(self.v * other.v)

    def over(self, other):
        return ManyDigits(self.v / other.v)

    def raised(self, other):
        return ManyDigits(_power(self.v, other.v))

    def matrix_product(self, other):
        return ManyDigits(np.matmul(self.v, other.v))

    def added_up(self, axis, keepdims):
        return ManyDigits(np.add.reduce(self.v, axis=axis, keepdims=keepdims))

    @classmethod
    def contracted(cls, subscripts, operands):
        labels_of(subscripts)
        return cls(np.einsum(subscripts, *[x.v for x in operands]))

    def mapped(self, name):
        return ManyDigits(_MAPPED[name](self.v))
