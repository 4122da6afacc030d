"""`check_rule`: plain NumPy with a gradient written by hand.

The two functions are made into an operation, so everything that is known about checking operations serves them: the
rule is run on floats, on numbers with bounds and on exact numbers, and the forward on tensors, to see which path was
forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyattn.arguments import known_arguments
from tinyattn.check.gradients import MODES, check_gradients, check_numbers, combined
from tinyattn.check.handwritten import Handwritten
from tinyattn.check.report import Report
from tinyattn.errors import ArgumentError, ArgumentTypeError, message
from tinyattn.ops import Op
from tinyattn.tensor import Tensor


@known_arguments
def check_rule(
    forward: Callable[..., Any] | Op,
    backward: Callable[..., Any] | Sequence[Callable[..., Any]] | None = None,
    sample: Any = None,
    *,
    order: int = 1,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    name: str = "",
    definition: str = "",
    saves: bool = False,
    oracles: Sequence[str] | None = None,
) -> Report:
    """Check a gradient that was written by hand for a function of NumPy arrays.

    Parameters
    ----------
    forward : callable or Op
        ``forward(*inputs)`` gives one array, or a tuple of several.  An `Op` brings its own rules and samples.
    backward : callable, or one callable for each input
        ``backward(g, *inputs)`` or ``backward(g, y, *inputs)``, told apart by how many arguments it takes: from the
        gradient ``g`` of the result the gradient of the input, or a tuple with one for each.  ``backward(g)`` alone is
        called right after the forward, which has kept what is needed, on its object for instance.  Of several results,
        ``g`` and ``y`` are tuples.
    sample : array, tuple of arrays, list of such tuples, or a function of a random generator that gives one of these
        Where to check.
    order : int
        2 checks the gradient of the gradient too; the rule must then run on tensors.
    rtol, atol : float, optional
        A tolerance of your own instead of the computed bounds.
    seed : int
        Where random numbers come from.
    name : str
        What the report calls it; the name of ``forward`` otherwise.
    definition : str
        The meaning in index notation, such as ``"y[..., i] = exp(x[..., i]) / sum_j exp(x[..., j])"``; the report can
        then show the formula that should have held, and formulas and SymPy are asked too.
    saves : bool
        True when the forward returns ``(result, cache)`` and the backward takes ``(g, cache)``.
    oracles : sequence of "formula" and "sympy", optional
        As in `check_gradients`; there must be a definition.

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np
    >>> def softmax(x):
    ...     e = np.exp(x - x.max())
    ...     return e / e.sum()
    >>> def right(g, y, x):
    ...     return y * (g - (g * y).sum())
    >>> def wrong(g, y, x):
    ...     return g * y * (1 - y)
    >>> x = np.array([0.5, -1.0, 2.0])
    >>> bool(check_rule(softmax, right, x))
    True
    >>> check_rule(softmax, wrong, x).mistake
    'only the diagonal of the softmax Jacobian'
    """
    check_numbers("check_rule", rtol, atol, seed)
    rng = np.random.default_rng(seed)
    if isinstance(forward, Op):
        return check_gradients(forward, order=order, rtol=rtol, atol=atol, seed=seed, name=name, oracles=oracles)
    points = _points(sample(rng) if callable(sample) else sample)
    if forward is None or backward is None or not points:
        raise ArgumentError(
            message(
                "check_rule: a backward and a sample are needed.",
                "",
                "Write check_rule(forward, backward, np.array([1.0, 2.0])).",
            ),
        )
    each = backward if isinstance(backward, (tuple, list)) else (backward,)
    for what, given in (("forward", forward), *(("backward", one) for one in each)):
        if given is not None and not callable(given):
            raise ArgumentTypeError(
                message(
                    f"check_rule: {what} is a {type(given).__name__}; a function of arrays is needed.",
                    "It is called with the sample, and with arrays beside it.",
                    "Write check_rule(forward, backward, np.array([1.0, 2.0])).",
                )
            )
    title = name or getattr(forward, "__name__", "forward")
    reports = []
    for inputs in points:
        written = Handwritten(forward, backward, inputs, saves)
        op = written.op("the function" if title == "<lambda>" else title, definition)
        modes = ("reverse",) if order == 1 else MODES  # forward mode wants rules that run on tensors
        options: dict[str, Any] = {"rtol": rtol, "atol": atol, "seed": seed, "oracles": oracles}
        reports.append(check_gradients(op, *inputs, order=order, modes=modes, **options))
        for note in written.notes:
            reports[-1].note(note)
    return combined(reports)


def _points(sample: Any) -> list[tuple[np.ndarray, ...]]:
    """The points to check at, each a tuple of float arrays."""
    if sample is None:
        return []
    if isinstance(sample, list) and sample and all(isinstance(each, tuple) for each in sample):
        return [_arrays(each) for each in sample]
    return [_arrays(sample if isinstance(sample, tuple) else (sample,))]


def _arrays(inputs: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
    arrays = []
    for x in inputs:
        array = np.asarray(x.data if isinstance(x, Tensor) else x)
        if array.dtype.kind not in "fiub":
            raise ArgumentTypeError(f"check_rule: the sample holds {array.dtype}, no numbers.")
        arrays.append(array if array.dtype.kind == "f" else array.astype(float))
    return tuple(arrays)
