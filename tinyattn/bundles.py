"""Small parameters side by side in one long array, so that an optimiser moves them all in a few calls of NumPy.

A call costs about as much as the work on a thousand numbers, and a step of Adam makes a dozen for each parameter.
Every parameter keeps an array of its own shape, which is a piece of the long one.  The next step writes another long
array, of which nobody may hold a piece: what a learner or a recorded graph holds never changes.  Stands on `tensor`
only.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyattn.tensor import Tensor, latest, new_order

SMALL = 2**14
"""A parameter of more bytes moves by itself: there the work costs more than the calls."""

_LONG = 2**17  # about so many bytes, and what an optimiser remembers of them, stay in the cache from call to call
_GAP = 8  # pieces begin at multiples of so many numbers: that is 16 bytes or more, as for an array of one's own


class Strip:
    """A long array and its pieces, one for each shape; numbers between the pieces are 0 and mean nothing."""

    def __init__(self, shapes: Sequence[tuple[int, ...]], dtype: np.dtype[Any]) -> None:
        sizes = [math.prod(shape) for shape in shapes]
        gap = _GAP if any(shapes) else 1  # single numbers are not worth one
        starts = [0, *itertools.accumulate(-(-size // gap) * gap for size in sizes)]
        self.array = np.zeros(starts[-1], dtype)
        self.pieces = [
            self.array[start : start + size].reshape(shape) for start, size, shape in zip(starts, sizes, shapes)
        ]
        self._alone = self._holders()

    def _holders(self) -> list[int]:
        """How many hold the array, and each piece: a view of a piece counts as one of the array."""
        return list(map(sys.getrefcount, [self.array, *self.pieces]))

    def is_free(self) -> bool:
        """Whether nobody holds anything of it, as when it was made."""
        return self._holders() == self._alone


class Bundle:
    """Some parameters of one dtype: all of them arrays, or all of them single numbers.

    A step of an optimiser asks whether they are `ready`, writes the array that is `free` from ``old`` and
    ``gradient``, and then lets the parameters `take` it.
    """

    def __init__(self, parameters: Sequence[Tensor], places: list[int]) -> None:
        self.places = places
        self.parameters = [parameters[place] for place in places]
        self.dtype = self.parameters[0].dtype
        self._shapes = [p.shape for p in self.parameters]
        self._single_numbers = not any(self._shapes)
        gradients = self.strip()
        self.gradient, self._gradients = gradients.array, gradients.pieces
        self._now = self.strip()
        self.old = self._now.array
        self._strips = [self._now]
        self._given: Sequence[Any] = [None] * len(places)  # the values that the parameters were given

    def strip(self) -> Strip:
        """A new long array for these parameters, all 0."""
        return Strip(self._shapes, self.dtype)

    def ready(self) -> bool:
        """Lay gradients and numbers side by side; False where one has no gradient, or another dtype than it had."""
        as_given = True
        for p, given, piece in zip(self.parameters, self._given, self._gradients):
            notes: Any = p.notes  # what p.grad does, but for the call
            gradient = None if notes is None else notes.grad
            if gradient is None:
                return False
            piece[...] = gradient
            if p._value is not given:
                as_given = False
        return as_given or self._collect()

    def _collect(self) -> bool:
        """Copy the numbers of all parameters: before the first step, and when one was assigned in between."""
        if any(p.dtype != self.dtype for p in self.parameters):
            return False
        strip = self.free()
        for p, piece in zip(self.parameters, strip.pieces):
            piece[...] = p._value
        self._now, self.old = strip, strip.array
        return True

    def free(self) -> Strip:
        """A long array to write in: one of those before, if nobody holds it, or a new one."""
        for strip in self._strips:
            if strip.is_free():
                return strip
        made = self.strip()
        self._strips = [*self._strips[-2:], made]  # the last three made are enough: in use, to collect in, the next
        return made

    def take(self, strip: Strip) -> None:
        """Give each parameter its piece: `Tensor.exchange` for all of them."""
        values = list(strip.array) if self._single_numbers else strip.pieces
        for p, value in zip(self.parameters, values):
            p._value = value
            p.order = latest.assigned = new_order()
        self._now, self.old, self._given = strip, strip.array, values


def bundled(parameters: Sequence[Tensor]) -> list[Bundle]:
    """The small ones among some parameters, those together that can be; one alone would gain nothing by it."""
    together: defaultdict[Any, list[int]] = defaultdict(list)
    filled: Counter[Any] = Counter()
    for place, p in enumerate(parameters):
        size = p.size * p.dtype.itemsize
        if size <= SMALL:
            kind = p.dtype, p.shape == ()
            together[kind, filled[kind] // _LONG].append(place)
            filled[kind] += size
    return [Bundle(parameters, places) for places in together.values() if len(places) > 1]
