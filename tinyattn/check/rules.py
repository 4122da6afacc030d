"""`check_rule`: plain NumPy with a gradient written by hand.

The two functions are made into an operation, so everything that is known about checking operations serves them: the
rule is run on floats, on numbers with bounds and on exact numbers, and the forward on tensors, to see which path was
forgotten.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyattn.check.duck import Duck
from tinyattn.check.gradients import MODES, check_gradients, combined
from tinyattn.check.report import Report
from tinyattn.errors import ArgumentError, ArgumentTypeError, message
from tinyattn.ops import Op
from tinyattn.tensor import Tensor


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
    oracles: Sequence[str] | None = None,
) -> Report:
    """Check a gradient that was written by hand for a function of NumPy arrays.

    Parameters
    ----------
    forward : callable or Op
        ``forward(*inputs)`` gives one array.  An `Op` brings its own rules and samples.
    backward : callable, or one callable for each input
        ``backward(g, *inputs)`` or ``backward(g, y, *inputs)``, told apart by how many arguments it takes: from the
        gradient ``g`` of the result the gradient of the input, or a tuple with one for each.
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
    rng = np.random.default_rng(seed)
    if isinstance(forward, Op):
        return check_gradients(forward, order=order, rtol=rtol, atol=atol, seed=seed, name=name, oracles=oracles)
    points = _points(sample(rng) if callable(sample) else sample)
    if backward is None or not points:
        raise ArgumentError(
            message(
                "check_rule: a backward and a sample are needed.",
                "",
                "Write check_rule(forward, backward, np.array([1.0, 2.0])).",
            ),
        )
    title = name or getattr(forward, "__name__", "forward")
    reports = []
    for inputs in points:
        op = op_of(forward, backward, inputs, "the function" if title == "<lambda>" else title, definition)
        modes = ("reverse",) if order == 1 else MODES  # forward mode wants rules that run on tensors
        options: dict[str, Any] = {"rtol": rtol, "atol": atol, "seed": seed, "oracles": oracles}
        reports.append(check_gradients(op, *inputs, order=order, modes=modes, **options))
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


def op_of(
    forward: Callable[..., Any], backward: Any, inputs: tuple[np.ndarray, ...], name: str, definition: str = ""
) -> Op:
    """An operation of a forward and a backward in plain NumPy."""
    names = _names(forward, len(inputs))
    return Op(
        name,
        forward_of(forward),
        _rules(backward, len(inputs)),
        definition,
        sample=lambda rng: [(inputs, ())],
        inputs=names,
    )


def forward_of(forward: Callable[..., Any]) -> Callable[..., Any]:
    """The forward, with a plain number as result made an array."""

    def run(*inputs: Any) -> Any:
        y = forward(*inputs)
        return (
            y if isinstance(y, (np.ndarray, np.generic, Duck, Tensor)) else np.asarray(y, dtype=np.result_type(*inputs))
        )

    return run


def _rules(backward: Any, count: int) -> Any:
    if not callable(backward):
        rules = tuple(backward)
        if len(rules) != count:
            raise ArgumentError(f"check_rule: {len(rules)} rules for {count} inputs; one for each is needed.")
        return tuple(_one_rule(rule, count) for rule in rules)
    run = _with_result(backward, count)

    def joint(g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        made = run(g, y, *inputs)
        made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        if len(made) != count:
            raise ArgumentError(f"the backward gave {len(made)} gradients for {count} inputs")
        return tuple(_like(c, x) for c, x in zip(made, inputs, strict=True))

    return joint


def _one_rule(rule: Callable[..., Any], count: int) -> Callable[..., Any]:
    run = _with_result(rule, count)
    return lambda g, y, *inputs: run(g, y, *inputs)


def _like(c: Any, x: Any) -> Any:
    """A contribution in the dtype of its input: float64 for a float32 input is not the fault sought here."""
    if c is None or isinstance(c, (Duck, Tensor)) or isinstance(x, (Duck, Tensor)):
        return c
    array = np.asarray(c)
    return array.astype(x.dtype)[()] if array.dtype != x.dtype else array[()]


def _with_result(backward: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The backward as ``rule(g, y, *inputs)``, whichever of its two forms it has."""
    try:
        parameters = inspect.signature(backward).parameters.values()
    except (TypeError, ValueError):
        return backward
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return backward
    needed = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)
    if needed == count + 2:
        return backward
    if needed == count + 1:
        return lambda g, y, *inputs: backward(g, *inputs)
    raise ArgumentError(
        message(
            f"check_rule: the backward takes {needed} arguments; for {count} inputs it is called with {count + 1} "
            f"or {count + 2}.",
            "",
            "Write backward(g, *inputs) or backward(g, y, *inputs).",
        )
    )


def _names(forward: Callable[..., Any], count: int) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(forward).parameters.values()
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    except (TypeError, ValueError):
        names = []
    return tuple(names) + tuple(f"x{i}" for i in range(len(names), count))
