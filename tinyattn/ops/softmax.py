"""Softmax and its logarithm: what couples all the numbers of a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.ops.describing import calls, letters
from tinyattn.ops.helpers import sums_along, where_asked
from tinyattn.ops.record import Call, Op, register


def _highest(x: Any, axis: int) -> Any:
    """The largest entry along an axis, for a shift that cancels; where there is none, any shift will do."""
    if x.shape[axis] == 0:
        return np.zeros(tuple(1 if a == axis % x.ndim else size for a, size in enumerate(x.shape)), x.dtype)
    return np.maximum.reduce(x, axis=axis, keepdims=True)


def _shifted_exp(x: Any, axis: int) -> Any:
    """exp(x - the largest entry): no overflow, and the shift cancels in every ratio.

    Small entries need no shift.  If the squares of all entries add up to less than 60 squared, none is beyond 60;
    that product costs a fifth of finding and subtracting the largest of each row.
    """
    if x.dtype.kind == "f" and x.dtype.itemsize >= 4:
        entries = x.ravel()
        if entries.dot(entries) < 3600:
            return np.exp(x)
    return np.exp(x - _highest(x, axis))


def softmax_forward(x: Any, axis: int, keep: Any) -> Any:
    """The exponentials of a row divided by their sum."""
    if keep is not None:
        return _kept_softmax(x, axis, keep)
    e = _shifted_exp(x, axis)
    return e / sums_along(e, axis)


def _kept_softmax(x: Any, axis: int, keep: Any) -> Any:
    """Hidden entries get weight 0 and are not read; a row with nothing kept is a row of zeros."""
    keep = np.broadcast_to(keep, x.shape)
    nothing = ~keep.any(axis=axis, keepdims=True)
    shift = np.where(nothing, 0.0, _highest(np.where(keep, x, -np.inf), axis))
    e = np.where(keep, np.exp(np.where(keep, x - shift, 0.0)), 0.0)
    return e / np.where(nothing, 1.0, np.add.reduce(e, axis=axis, keepdims=True))


def softmax_rule(g: Any, y: Any, x: Any, axis: int, keep: Any) -> Any:
    """The gradient y (g - sum(g y)): every output depends on every input, so the sum couples the whole row."""
    if keep is not None:
        g = np.where(keep, g, 0.0)  # what was hidden is not read going back either
    y = where_asked(y, g, axis)
    gy = g * y
    return gy - y * sums_along(gy, axis)


def _row(call: Call) -> tuple[str, str, str]:
    """The indices of an entry, the letter of another one in its row, and the indices of that."""
    *names, other = letters(len(call.shapes[0]) + 1)
    there = [other if axis == call.params["axis"] else name for axis, name in enumerate(names)]
    return ",".join(names), other, ",".join(there)


def _softmax_definition(call: Call) -> str:
    here, other, there = _row(call)
    top, below = (f"exp(x[{at}])" for at in (here, there))
    if call.params["keep"] is not None:
        top, below = f"[keep[{here}] == 1] * {top}", f"[keep[{there}] == 1] * {below}"
    return f"y[{here}] = {top} / sum_{other} {below}"


_KEEP = np.array([[True, True, False], [True, False, True]])

softmax = register(Op(
    "softmax", softmax_forward, (softmax_rule,), _softmax_definition, params=("axis", "keep"),
    sample=calls(((2, 3), 1, None), ((2, 3), 0, None), ((3,), 0, None), ((2, 2, 3), 1, None), ((2, 3), 1, _KEEP)),
))


def _log_softmax(x: Any, axis: int) -> Any:
    shifted = x - _highest(x, axis)
    return shifted - np.log(np.add.reduce(np.exp(shifted), axis=axis, keepdims=True))


def _log_softmax_rule(g: Any, y: Any, x: Any, axis: int) -> Any:
    """The gradient g - softmax(x) sum(g); with exp(y) for the softmax the exact check could not decide."""
    return g - where_asked(softmax(x, axis, None), g, axis) * g.sum(axis=axis, keepdims=True)


def _log_softmax_definition(call: Call) -> str:
    here, other, there = _row(call)
    return f"y[{here}] = x[{here}] - log(sum_{other} exp(x[{there}]))"


log_softmax = register(Op(
    "log_softmax", _log_softmax, (_log_softmax_rule,), _log_softmax_definition, params=("axis",),
    sample=calls(((2, 3), 1), ((2, 3), 0), ((3,), 0), ((2, 2, 3), 1)),
))
