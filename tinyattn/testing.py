"""For your own tests: one line verifies the gradient of a function, a layer or an operation.

>>> import numpy as np
>>> import tinyattn as ta
>>> from tinyattn.testing import assert_gradients
>>> report = assert_gradients(lambda q, k: ta.softmax(q @ k.mT), np.eye(2), np.ones((3, 2)))
>>> report.verdict
'right'

With pytest there are also the fixture ``gradients`` and the marker of the same name, from the plugin
``pytest_tinyattn`` that comes with the package; it imports tinyattn only when a test uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyattn.check.report import Report

__all__ = [
    "GradientsDiffer",
    "assert_gradients",
    "assert_gradients_jax",
    "assert_gradients_torch",
    "assert_rule",
]

MODES = ("reverse", "forward")


class GradientsDiffer(AssertionError):
    """A gradient is wrong, or could not be checked.

    Attributes
    ----------
    gradient_report : Report
        Everything that was found.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(_summary(report))
        self.gradient_report = report


def _summary(report: Report) -> str:
    """The headline and what is to blame; the table of comparisons is in the report itself."""
    lines = str(report).splitlines()
    end = next((at for at, line in enumerate(lines) if line.split()[:2] == ["input", "order"]), len(lines))
    return "\n".join(lines[:end])


def _passed(report: Report) -> Report:
    __tracebackhide__ = True
    if not report:
        raise GradientsDiffer(report)
    return report


def assert_gradients(
    f: Any,
    *inputs: Any,
    order: int = 2,
    modes: Sequence[str] = MODES,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    name: str = "",
    oracles: Sequence[str] | None = None,
) -> Report:
    """Fail with words when a gradient is wrong.

    Parameters
    ----------
    f : callable, module or Op
        As in `tinyattn.check_gradients`, like everything else.
    *inputs : array_like or Tensor
    order, modes, rtol, atol, seed, name, oracles

    Returns
    -------
    Report
        When the gradient is right.

    Raises
    ------
    GradientsDiffer
        An `AssertionError` that names the wrong rule, the entry, both values and the likely mistake.
    """
    __tracebackhide__ = True
    from tinyattn.check import check_gradients

    title = name or _name_of(f)
    tolerances = {"rtol": rtol, "atol": atol}
    return _passed(
        check_gradients(f, *inputs, order=order, modes=modes, seed=seed, name=title, oracles=oracles, **tolerances)
    )


def _name_of(f: Any) -> str:
    own = getattr(f, "__name__", "")
    return "" if own == "<lambda>" else str(own)


def assert_rule(forward: Callable[..., Any], backward: Any, sample: Any, **options: Any) -> Report:
    """Fail with words when a gradient written by hand in plain NumPy is wrong; see `tinyattn.check_rule`.

    Examples
    --------
    >>> import numpy as np
    >>> bool(assert_rule(lambda x: x**2, lambda g, x: 2 * g * x, np.array([1.0, -3.0])))
    True
    """
    __tracebackhide__ = True
    from tinyattn.check import check_rule

    return _passed(check_rule(forward, backward, sample, **options))


def assert_gradients_torch(
    f: Any,
    *inputs: Any,
    order: int = 2,
    modes: Sequence[str] = MODES,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
) -> Report:
    """Fail with words when PyTorch's gradient of a function or module is wrong: for autograd functions of your own.

    Parameters
    ----------
    f : callable or torch.nn.Module
        Takes torch tensors.  It is called in float64; of a module the parameters are differentiated by as well, so it
        must be in float64 itself (``module.double()``).
    *inputs : torch.Tensor or array_like
        Floating-point ones are differentiated by.
    order, modes, rtol, atol, seed
        As in `assert_gradients`.
    """
    __tracebackhide__ = True
    from tinyattn.check.foreign import TorchFunction, check_foreign

    return _passed(check_foreign(TorchFunction(f, inputs), order, modes, rtol, atol, seed))


def assert_gradients_jax(
    f: Any,
    *inputs: Any,
    order: int = 2,
    modes: Sequence[str] = MODES,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
) -> Report:
    """Fail with words when JAX's gradient of a function is wrong: for ``custom_vjp`` rules of your own.

    Parameters
    ----------
    f : callable
        Takes JAX arrays.  It is called in float64.
    *inputs : array_like
        Floating-point ones are differentiated by.
    order, modes, rtol, atol, seed
        As in `assert_gradients`; forward mode is left out where the function has no rule for it.
    """
    __tracebackhide__ = True
    from tinyattn.check.foreign import JaxFunction, check_foreign

    return _passed(check_foreign(JaxFunction(f, inputs), order, modes, rtol, atol, seed))
