"""Slopes from values alone: central differences with a sweep of steps, the Taylor remainder, one-sided differences.

Nothing here knows a rule.  Each slope comes with what it may be off by: the truncation that two orders of the
extrapolation show, and the rounding of the values divided by the step.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyattn.arguments import as_array, function_given, known_arguments, one_number
from tinyattn.errors import ArgumentError

NEAR = (6, 8, 10, 12, 14)  # steps 2^-6 ... 2^-14: enough for a smooth function of ordinary size
FAR = (0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26)
CLOSE = (16, 18, 20, 22, 24)
GOOD = 1e-8  # relative error at which no further steps are tried


class Slope:
    """A slope from differences.

    Attributes
    ----------
    value : float
    error : float
        What it may be off by; infinite when no step gave anything.
    step : float
        The smallest step that it is made from.
    left, right : float
        One-sided slopes at the smallest step that can be trusted.
    kink : str
        "" where left and right meet; "kink" where they do not; "infinite" where they grow without end; "edge"
        where there are values on one side only.
    remainder : float
        How fast the Taylor remainder falls: about 2 where the given slope is right, 1 where it is wrong; infinite for a
        function that is linear along the direction.
    """

    __slots__ = ("error", "kink", "left", "remainder", "right", "step", "value")

    def __init__(self, value: float, error: float, step: float = 1.0) -> None:
        self.value, self.error, self.step = value, error, step
        self.left = self.right = value
        self.kink, self.remainder = "", math.nan

    def __repr__(self) -> str:
        return f"Slope({self.value!r}, error={self.error:.1e}{', ' + self.kink if self.kink else ''})"


class Values:
    """Values of a function of one number at steps to both sides of 0, each computed once."""

    def __init__(self, phi: Callable[[float], float], noise: float) -> None:
        self.phi, self.middle = phi, float(phi(0.0))
        self.noise = max(noise, abs(self.middle) * 1.2e-16)
        self.sides: dict[int, tuple[float, float]] = {}

    def at(self, power: int) -> tuple[float, float]:
        """The values at plus and minus 2^-power."""
        if power not in self.sides:
            step = 2.0**-power
            self.sides[power] = (float(self.phi(step)), float(self.phi(-step)))
        return self.sides[power]

    def central(self, power: int) -> float:
        """The central difference at a step; nan where a value is not finite."""
        ahead, behind = self.at(power)
        difference = (ahead - behind) * 2.0 ** (power - 1)
        return difference if math.isfinite(difference) else math.nan


def slope_of(
    phi: Callable[[float], float],
    noise: float = 0.0,
    claimed: float | None = None,
    off: float = 0.0,
    good: float = GOOD,
) -> Slope:
    """The slope of ``phi`` at 0, with its error.

    Parameters
    ----------
    phi : callable
        Gives a number for a number; at 0 stands the point.
    noise : float
        What one value of it may be off by.
    claimed : float, optional
        A slope to hold the Taylor remainder against.
    off : float
        What that slope may be off by, by its own rounding.
    good : float
        Relative error at which no further steps are tried.

    Examples
    --------
    >>> import math
    >>> found = slope_of(lambda t: math.exp(t), 1e-16)
    >>> abs(found.value - 1) <= found.error < 1e-10
    True
    >>> slope_of(abs).kink
    'kink'
    """
    values = Values(phi, noise)
    found = _best(values, NEAR)
    if not found.error <= good * abs(found.value):
        found = min(found, _best(values, FAR), key=lambda each: each.error)
    _look_at_sides(values, found)
    if found.kink and max(values.sides) < CLOSE[-1]:  # at the point, or beside it?  Nearer steps tell
        for power in CLOSE:
            values.at(power)
        found.kink, found.left, found.right = "", found.value, found.value
        _look_at_sides(values, found)
    if claimed is not None:
        found.remainder = taylor(values, claimed, off)
    return found


def _best(values: Values, powers: tuple[int, ...]) -> Slope:
    """The extrapolated difference whose error is smallest."""
    centrals = {power: values.central(power) for power in powers}
    best = Slope(math.nan, math.inf)
    order = [(powers[i], powers[i + 1]) for i in range(len(powers) - 1)]
    refined = {small: (16 * centrals[small] - centrals[large]) / 15 for large, small in order}
    for (_, first), (_, second) in itertools.pairwise(order):
        rounding = 1.2 * values.noise * 2.0**second
        error = 2 * abs(refined[first] - refined[second]) + abs(refined[first] - centrals[second]) * 1e-4 + rounding
        # A kink a little way off gives far steps another slope; near ones say no, as far as they can be trusted.
        nearer = [abs(centrals[p] - refined[second]) - 1.2 * values.noise * 2.0**p for p in powers if p > second]
        error = max([error, *(gap for gap in nearer if gap > 0)])
        if error < best.error:
            best = Slope(refined[second], error + 1e-320, 2.0**-second)
    return best


def _look_at_sides(values: Values, found: Slope) -> None:
    """One-sided slopes; their gap shrinks with the step where the function is smooth."""
    sides = []
    for power in sorted(values.sides):
        ahead, behind = values.sides[power]
        scale = 2.0**power
        sides.append(((values.middle - behind) * scale, (ahead - values.middle) * scale, 4 * values.noise * scale))
    finer, sides = sides, _trusted(sides)
    if len(sides) < 3 or _settles(finer[len(sides) :], *sides[-1][:2]):
        return
    (left_before, right_before, _), (left, right, noise) = sides[-3], sides[-1]
    steep, steep_before = _steep(left, right), _steep(left_before, right_before)
    gap, gap_before = abs(right - left), abs(right_before - left_before)
    if steep > 2.2 * steep_before and steep > 8 * noise:
        found.kink = "infinite"
    elif math.isfinite(left) != math.isfinite(right):
        found.kink = "edge"
    elif gap > 8 * noise and gap > 0.6 * gap_before and gap > 1e-6 * steep:
        found.kink = "kink"
    else:
        return
    found.left, found.right = left, right


def _steep(left: float, right: float) -> float:
    return max((abs(side) for side in (left, right) if math.isfinite(side)), default=0.0)


def _settles(finer: list[tuple[float, float, float]], left: float, right: float) -> bool:
    """Whether nearer to the point it is flat, or both sides meet: what happens farther off is no kink of the point."""
    steep, gap = _steep(left, right), abs(right - left)
    return any(
        _steep(near, other) + noise < 0.5 * steep or abs(other - near) + 2 * noise < 0.5 * gap
        for near, other, noise in finer
    )


def _trusted(sides: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """The steps down to the smallest at which rounding does not decide."""
    end = len(sides)
    while end and not sides[end - 1][2] * 1e3 < _steep(*sides[end - 1][:2]):
        end -= 1
    return sides[:end]


def taylor(values: Values, claimed: float, off: float = 0.0) -> float:
    """How fast ``phi(h) - phi(0) - h claimed`` falls with h: the slope in a log-log plot."""
    points, straight = [], False
    for power in sorted(values.sides):
        h = 2.0**-power
        ahead = values.sides[power][0]
        rest = abs(ahead - values.middle - h * claimed)
        allowed = 32 * (values.noise + h * (off + abs(claimed) * 1e-16))
        if rest > allowed and math.isfinite(rest):
            points.append((math.log(h), math.log(rest)))
        elif points and math.exp(points[-1][1] - points[-1][0]) * h > 2 * allowed:
            straight = True  # a slope that is off would leave more than this: what was left came from farther away
    if len(points) < 2 or straight:
        return math.inf
    xs, ys = np.array(points[-4:]).T
    fall = float(np.polyfit(xs, ys, 1)[0])
    return fall if fall > 0.5 else math.nan  # beside a jump there is no such thing


class Analytic(np.ndarray):
    """Complex numbers on which whatever drops or turns the imaginary part is refused: there a complex step is wrong."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc in _NOT_ANALYTIC or kwargs.get("out") is not None:
            raise TypeError(f"np.{ufunc.__name__} does not take complex steps")
        plain = [x.view(np.ndarray) if isinstance(x, Analytic) else x for x in inputs]
        return analytic(getattr(ufunc, method)(*plain, **kwargs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in (np.real, np.imag, np.angle, np.linalg.norm, np.var, np.std):
            raise TypeError(f"np.{function.__name__} does not take complex steps")
        return super().__array_function__(function, types, args, kwargs)


_NOT_ANALYTIC = {np.absolute, np.fabs, np.conjugate, np.sign}


def analytic(x: Any) -> Any:
    """Complex numbers as `Analytic`; all others as they are."""
    return np.asarray(x).view(Analytic) if np.iscomplexobj(x) else x


def complex_slope(phi: Callable[[complex], Any]) -> float:
    """The slope from one step beside the real axis: Im phi(ih) / h, with nothing subtracted."""
    h = 1e-30
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error", np.exceptions.ComplexWarning
        )  # a forward that drops the imaginary part is not asked
        slope = float(np.imag(phi(1j * h))) / h
    if abs(slope) < 1e-250:
        raise ArithmeticError("too small for so small a step")
    return slope


def scale_of(x: np.ndarray) -> np.ndarray:
    """How far each entry may be moved: by its own size, so that 1e-8 stays positive; a 0 by the size of the others.

    That is at most 4, where a function may change its ways; but less than a millionth of a huge entry is lost in it.
    """
    size = np.abs(x)
    size = np.where(np.isfinite(size), size, 1.0)
    some = size[size > 0]
    usual = float(np.median(some)) if some.size else 1.0
    return np.where(size > 0, np.maximum(np.minimum(size, 4.0), size * 1e-6), min(usual, 1.0))


@known_arguments
def numeric_gradient(f: Callable[[np.ndarray], Any], x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central differences with one step: the textbook's ``(f(x + h) - f(x - h)) / 2h`` for each entry.

    Parameters
    ----------
    f : callable
        Takes an array; gives one number, or several, whose sum counts.
    x : ndarray
    step : float
        The h; `check_gradients` tries many and says what each may be off by.

    Examples
    --------
    >>> numeric_gradient(lambda x: (x**2).sum(), np.array([1.0, -2.0]), 0.1).round(10)
    array([ 2., -4.])
    """
    function_given(f, "numeric_gradient", "f", "Write numeric_gradient(lambda x: ..., x).")
    h = one_number(step, "numeric_gradient", "step")
    if not 0 < abs(h) < math.inf:
        raise ArgumentError(f"numeric_gradient: step={step!r} must be a number other than 0.")
    x = as_array(x, np.float64, "numeric_gradient")
    gradient = np.empty(x.shape)
    for place in np.ndindex(*x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[place] += h
        behind[place] -= h
        gradient[place] = (np.sum(f(ahead)) - np.sum(f(behind))) / (2 * h)
    return gradient
