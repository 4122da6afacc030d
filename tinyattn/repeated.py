"""Backward passes that come again: when one is written out, and when a text that was written is used.

A training loop records the same graph in every step, only with other numbers.  So when a pass from one line of the
learner's code has come so often that the loop has cost as much as writing it out, it is written: `tinyattn.straight`
for a whole graph, `tinyattn.stretches` for a long one that repeats itself.  Every bit and every error is as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tinyattn.kernels.small import all_finite
from tinyattn.quick import quick_walk
from tinyattn.straight import Found, LeftToTheLoop, Written, results, straight_line
from tinyattn.stretches import PRICE, stretched
from tinyattn.tensor import Tensor

COST = 30  # passes by the loop that writing one out costs; it costs up to 60
LONGEST = 600  # results that are written out
MOST = 4  # so many texts that did not last are written for one line: then the graph there is always a new one
LASTED = 50  # passes with one text
KNOWN = 64  # lines of code
ADVANCE, EARNED = 5000, 1000  # results that may be written out, and one more for each so many that the loop walks over:
# lines without end, such as one for each length of a sentence, must not be a loss


class Passes:
    """The passes that began at one line of code, from one shape: a text for them, and what the loop has done."""

    __slots__ = ("fitted", "nodes", "texts", "walked", "written")

    def __init__(self) -> None:
        self.written: Written | None = None
        self.fitted = self.nodes = self.texts = self.walked = 0

    def learn(self, output: Tensor, walked: int) -> None:
        """Count what the loop walked over because no text fitted, and write one when it is time."""
        self.walked += walked
        budget.nodes += walked / EARNED
        self.nodes = self.nodes or len(results(output, LONGEST + 1))
        price = self.nodes if self.nodes <= LONGEST else PRICE
        if self.walked < COST * price:
            return
        write = straight_line if self.nodes <= LONGEST else stretched
        self.texts = 0 if self.fitted >= LASTED else self.texts
        self.fitted, self.nodes, self.walked, self.written = 0, 0, 0, None
        if self.texts >= MOST or budget.nodes < price:
            return
        self.texts += 1
        try:
            self.written = write(output)
        except (LeftToTheLoop, RecursionError, MemoryError):
            return  # the gradients are there: what fails here is no concern of the learner
        budget.nodes -= price


budget = SimpleNamespace(nodes=float(ADVANCE))
_known: dict[Any, Passes] = {}


def repeated_walk(starts: Sequence[tuple[Tensor, Any]]) -> Found:
    """What `quick_walk` gives, by a text where there is one that fits; and whether all of it is finite.

    Parameters
    ----------
    starts : pairs of a result and its cotangent
        Where to start, and with what.
    """
    if len(starts) > 1:
        return _by_loop(starts)
    ((output, seed),) = starts
    op, x = output.op, output._left[0] if output._left.__class__ is tuple else output._left
    if x is not None and not x._shape and x.op is not None:  # of a mean: what was summed says more
        x = x._left[0] if x._left.__class__ is tuple else x._left
    # Names and numbers, because an operation would be kept alive with all that its rules hold.
    key = op and (id(output.code), output.lasti, op.name, x._shape, x.op and x.op.name)
    passes = _known.get(key)
    if passes is None:
        passes = _new_passes(key)
    elif (written := passes.written) is not None and (found := written(output, seed)) is not None:
        passes.walked, passes.fitted = 0, passes.fitted + 1
        return found
    found = _by_loop(starts)
    passes.learn(output, output.order - found[1] + 1)
    return found


def _new_passes(key: Any) -> Passes:
    """One more line; when there are many, those without a text make room, or all."""
    if len(_known) >= KNOWN:
        for other, passes in _known.copy().items():
            if passes.written is None:
                _known.pop(other, None)
        if 2 * len(_known) >= KNOWN:
            _known.clear()
    return _known.setdefault(key, Passes())


def forget() -> None:
    """Begin anew, as if no pass had been made."""
    _known.clear()
    budget.nodes = float(ADVANCE)


def _by_loop(starts: Sequence[tuple[Tensor, Any]]) -> Found:
    cotangents, oldest = quick_walk(starts)
    return cotangents, oldest, all_finite(cotangents.values())
