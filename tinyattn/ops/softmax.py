"""Softmax and its logarithm: what couples all the numbers of a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.kernels import softmax as kernel
from tinyattn.kernels.small import sums_along
from tinyattn.ops.describing import calls, letters
from tinyattn.ops.helpers import where_asked
from tinyattn.ops.record import Call, Op, register


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
    "softmax", kernel.softmax, (softmax_rule,), _softmax_definition, params=("axis", "keep"),
    sample=calls(((2, 3), 1, None), ((2, 3), 0, None), ((3,), 0, None), ((2, 2, 3), 1, None), ((2, 3), 1, _KEEP)),
))


def _log_softmax_rule(g: Any, y: Any, x: Any, axis: int) -> Any:
    """The gradient g - softmax(x) sum(g); with exp(y) for the softmax the exact check could not decide."""
    return g - where_asked(softmax(x, axis, None), g, axis) * g.sum(axis=axis, keepdims=True)


def _log_softmax_definition(call: Call) -> str:
    here, other, there = _row(call)
    return f"y[{here}] = x[{here}] - log(sum_{other} exp(x[{there}]))"


log_softmax = register(Op(
    "log_softmax", kernel.log_softmax, (_log_softmax_rule,), _log_softmax_definition, params=("axis",),
    sample=calls(((2, 3), 1), ((2, 3), 0), ((3,), 0), ((2, 2, 3), 1)),
))
