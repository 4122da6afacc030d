"""Fifty digits: a rule held against its forward where floats are too coarse to say which of them is right.

The exact check tells "equal" from "different", but not a wrong rule from a right one that is no identity of
arithmetic, such as exp(log(z)) for z.  With fifty digits the two are far apart: a right rule agrees to forty, one that
rounds a constant to sixteen, and a fault of one part in a million millions to twelve.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from tinyattn.check.blame import Fault, Local
from tinyattn.check.duck import Axes, Duck
from tinyattn.check.numeric import scale_of
from tinyattn.check.primes import labels_of
from tinyattn.check.replay import forward_of

MP: Any = mpmath.mp.clone()
MP.dps = 80  # fifty, and thirty for small entries beside large ones
STEP = MP.mpf(10) ** -15  # a central difference of this step is right to about thirty digits
AGREED = 1e-25  # relative difference along a direction at which single entries need no look
FARTHEST = 1e6  # how far an entry may be moved, at most
FEW = 8  # entries of a large input that are looked at one by one
SMALL = 64  # entries of an input of which every one is
ROUNDED = 1e-14  # a constant that was rounded to a float is not a fault


class ManyDigits(Duck):
    """An array of numbers with fifty digits.

    Examples
    --------
    >>> import numpy as np
    >>> third = ManyDigits.lift(np.array([1.0])) / 3.0
    >>> float((third * 3.0 - 1.0).v[0])
    0.0
    """

    __slots__ = state = ("v",)

    def __init__(self, v: Any) -> None:
        self.v = np.asarray(v, dtype=object)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The numbers."""
        return (self.v,)

    @property
    def data(self) -> np.ndarray:
        """The nearest floats."""
        return np.asarray(_floats(self.v), dtype=float)

    @classmethod
    def made_of(cls, *parts: Any) -> Any:
        """An array from its numbers."""
        return cls(*parts)

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Any:
        """Zeros."""
        return _make(np.zeros(shape))

    @classmethod
    def lift(cls, x: Any) -> Any:
        """Floats, exactly."""
        return x if isinstance(x, cls) else cls(_make(np.asarray(x, dtype=float)))

    def plus(self, other: Any) -> Any:
        """Sum."""
        return ManyDigits(self.v + other.v)

    def negated(self) -> Any:
        """The other sign."""
        return ManyDigits(-self.v)

    def times(self, other: Any) -> Any:
        """Product."""
        return ManyDigits(self.v * other.v)

    def over(self, other: Any) -> Any:
        """Quotient."""
        return ManyDigits(self.v / other.v)

    def raised(self, other: Any) -> Any:
        """Power."""
        return ManyDigits(_power(self.v, other.v))

    def matrix_product(self, other: Any) -> Any:
        """Matrix product."""
        return ManyDigits(np.matmul(self.v, other.v))

    def added_up(self, axis: Axes, keepdims: bool) -> Any:
        """Sum along axes."""
        axes: Any = tuple(axis) if isinstance(axis, (list, tuple)) else axis
        total: Any = np.add.reduce
        return ManyDigits(total(self.v, axis=axes, keepdims=keepdims))

    @classmethod
    def contracted(cls, subscripts: str, operands: Sequence[Any]) -> Any:
        """``einsum``."""
        labels_of(subscripts)
        return cls(np.einsum(subscripts, *[x.v for x in operands]))

    def mapped(self, name: str) -> Any:
        """Exp and its like."""
        return ManyDigits(_MAPPED[name](self.v))


_make = np.frompyfunc(lambda v: MP.mpf(float(v)), 1, 1)
_floats = np.frompyfunc(float, 1, 1)
_power = np.frompyfunc(lambda a, b: a**b, 2, 1)
_MAPPED = {name: np.frompyfunc(getattr(MP, name), 1, 1) for name in ("exp", "log", "sqrt", "tanh", "sin", "cos", "erf")}


def fault_in_digits(graph: Any, index: int, rng: np.random.Generator) -> tuple[Fault | None, float]:
    """Hold the rule of one node against fifty-digit differences of its forward.

    Parameters
    ----------
    graph : Graph
    index : int
        The node.
    rng : Generator

    Returns
    -------
    fault : Fault or None
        The entry that is off by more than a rounded constant explains.
    digits : float
        To how many digits the rule agrees otherwise.

    Raises
    ------
    Exception
        Of whatever kind, when forward or rule do not run on such numbers.
    """
    local = _Local(graph, graph.nodes[index], rng)
    rounded = Local(graph, graph.nodes[index], rng).allowed
    made = local.rule()
    least = 50.0
    for slot, want in enumerate(local.wanted):
        if want and local.op.differentiable and local.values[slot].size:
            fault, digits = local.look(slot, made[slot], rounded[slot])
            if fault is not None:
                return fault, digits
            least = min(least, digits)
    return None, least


class _Local:
    """One node by itself, with fifty digits."""

    def __init__(self, graph: Any, node: Any, rng: np.random.Generator) -> None:
        self.node, self.op, self.rng = node, node.op, rng
        self.values = [graph.nodes[source].value for source in node.inputs]
        self.inputs = [ManyDigits.lift(x) for x in self.values]
        self.params = tuple(node.params.values())
        self.wanted = [graph.nodes[source].requires_grad for source in node.inputs]
        self.g = np.asarray(rng.normal(size=node.shape))
        self.weights = ManyDigits.lift(self.g)
        terms = self.weights * self.forward(self.inputs)[0]
        self.middle, self.size = terms.sum().v.item(), float(sum(abs(v) for v in terms.v.flat))

    def forward(self, inputs: list[Any]) -> tuple[Any, Any]:
        result = forward_of(self.op, inputs, self.params)
        y, saved = result if self.op.saves else (result, None)
        return ManyDigits.lift(y), saved

    def rule(self) -> list[Any]:
        y, saved = self.forward(self.inputs)
        made = self.op.pull(self.weights, y, saved, self.inputs, self.params, self.wanted)
        return [None if c is None else ManyDigits.lift(c) for c in made]

    def along(self, slot: int, direction: np.ndarray) -> Any:
        """The slope of <g, forward> along a direction; None at a kink."""
        ends = []
        for sign in (1, -1):
            inputs = list(self.inputs)
            inputs[slot] = inputs[slot] + ManyDigits(ManyDigits.lift(direction).v * (sign * STEP))
            ends.append((self.weights * self.forward(inputs)[0]).sum().v.item())
        right, left = (ends[0] - self.middle) / STEP, (self.middle - ends[1]) / STEP
        bent = abs(right - left) > MP.mpf(1e-6) * (abs(right) + abs(left))
        return None if bent else (right + left) / 2

    def look(self, slot: int, c: Any, rounded: Any) -> tuple[Fault | None, float]:
        """The entry of one input that is off, or to how many digits all of them agree.

        A small entry may be what is left of large ones: ``rounded`` is what rounding, of constants too, leaves there.
        """
        if c.shape != self.values[slot].shape:
            raise ValueError("the shapes differ")
        scale = scale_of(self.values[slot].astype(float))
        if scale.max(initial=0.0) > FARTHEST:
            raise ValueError("a step that is felt is too large to be a small one")
        places = list(np.ndindex(*c.shape))
        if c.size > SMALL:
            direction = self.rng.normal(size=c.shape) * scale
            slope = self.along(slot, direction)
            if slope is not None and (gap := self._gap(c, direction, slope)) < AGREED:
                return None, _digits(gap)
            places = self._suspects(slot, c, direction, slope)
        size, least = max(abs(float(v)) for v in c.v.flat), 50.0
        worst: tuple[float, tuple[int, ...], float] = (0.0, (), 0.0)
        for place in places:
            unit = np.zeros(c.shape)
            unit[place] = scale[place]
            want = self.along(slot, unit)
            if want is None:
                continue
            want /= MP.mpf(float(scale[place]))
            left = 1e-15 * size if rounded is None or rounded.shape != c.shape else min(rounded[place], 1e-15 * size)
            left += float(MP.mpf(1e-75) * self.size / (STEP * float(scale[place])))  # what eighty digits leave of it
            off = float(abs(c.v[place] - want))
            gap = off / max(abs(float(want)), left, 1e-300)
            least = min(least, _digits(gap))
            if off > ROUNDED * abs(float(want)) + left and gap > worst[0]:
                worst = gap, place, float(want)
        if not worst[0]:
            return None, least
        fault = Fault(self.node, slot, self.g)
        fault.entry, fault.got = worst[1], c.data
        fault.found, fault.expected = float(c.v[worst[1]]), worst[2]
        return fault, least

    def _gap(self, c: Any, direction: np.ndarray, slope: Any) -> float:
        """How far rule and forward are apart along a direction, by the size of the terms that are added up."""
        terms = c.v * ManyDigits.lift(direction).v
        size = max(float(sum(abs(v) for v in terms.flat)), abs(float(slope)), 1e-300)
        return float(abs(sum(terms.flat) - slope)) / size

    def _suspects(self, slot: int, c: Any, direction: np.ndarray, slope: Any) -> list[tuple[int, ...]]:
        """A few entries left after halving the input towards what is off; slopes of two halves add up to the whole."""
        places = list(np.ndindex(*c.shape))
        while len(places) > FEW:
            part = np.zeros(c.shape)
            at = tuple(np.array(places[: len(places) // 2]).T)
            part[at] = direction[at]
            first = self.along(slot, part)
            if slope is None or first is None:  # a kink somewhere: entries tell, as far as they can be asked
                return places[:: max(1, len(places) // FEW)]
            rest = slope - first
            offs = [self._gap(c, part, first), self._gap(c, direction - part, rest)]
            half = int(offs[1] > offs[0])
            places = places[len(places) // 2 :] if half else places[: len(places) // 2]
            direction, slope = (direction - part, rest) if half else (part, first)
        return places


def _digits(gap: float) -> float:
    return 50.0 if gap == 0 else -float(np.log10(gap))
