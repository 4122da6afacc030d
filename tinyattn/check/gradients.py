"""`check_gradients`: the layers of a check, cheap ones first, and the verdict."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyattn.arguments import known_arguments, one_number
from tinyattn.check import pointing
from tinyattn.check.bounded import Bounded
from tinyattn.check.bounding import bounded_run, pulled_plainly
from tinyattn.check.exact import exact_check
from tinyattn.check.fused import fused_faults
from tinyattn.check.numeric import Slope, analytic, complex_slope, scale_of, slope_of
from tinyattn.check.replay import Replay, words_of
from tinyattn.check.report import Report, Row
from tinyattn.check.subject import Arrays, Recorded, Subject, op_subjects, silence
from tinyattn.check.textbook import ORACLES, hold_against_definitions, not_its_definition
from tinyattn.errors import ArgumentError, message
from tinyattn.ops import Op
from tinyattn.places import caller_variables

MODES = ("reverse", "forward")
DEEP = 3000  # nodes of a graph that is still run on bounded and exact numbers


@known_arguments
def check_gradients(
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
    """Check the gradient of a function, a layer or an operation, and say what is wrong with it if something is.

    A random direction is tried first, against differences, the complex step and the exact check.  Only when one of
    them disagrees are single entries and single nodes looked at, until the first wrong rule is found.

    Parameters
    ----------
    f : callable, module or Op
        Takes tensors and returns a tensor, or several.  An `Op` may be given without inputs: its own samples are used.
    *inputs : array_like or Tensor
        The point.  Floating-point numbers are differentiated by; everything else (masks, word numbers, text) is
        passed on as it is.  A layer's parameters are differentiated by as well.
    order : int
        1 for gradients, 2 for gradients of gradients as well, and so on.
    modes : sequence of "reverse" and "forward"
        Vector-Jacobian products, Jacobian-vector products, or both.
    rtol, atol : float, optional
        A tolerance of your own.  Without it, what rounding allows is computed from the graph itself.
    seed : int
        Where the random directions come from.
    name : str
        What the report calls it.
    oracles : sequence of "formula" and "sympy", optional
        What is asked besides values and the exact check: formulas derived from the definitions of the operations, and
        SymPy, which knows nothing but these definitions and takes its time.  Without it the formulas are asked where
        there are any, and SymPy about the entry that is to blame.  What cannot be asked is noted if it is named here.

    Returns
    -------
    Report
        True when the gradient is right; printed, it says what was compared or what is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> import tinyattn as ta
    >>> from tinyattn.check import check_gradients
    >>> scores = np.array([[1.0, 2.0, 0.5]])
    >>> bool(check_gradients(lambda x: ta.softmax(x), scores))
    True
    >>> report = check_gradients(lambda x: ta.tanh(x).detach() * x, scores, order=1)
    >>> bool(report), report.mistake
    (False, 'detached branch')
    """
    _check_arguments(order, modes, oracles)
    check_numbers("check_gradients", rtol, atol, seed)
    rng = np.random.default_rng(seed)
    if isinstance(f, Op):
        subjects = op_subjects(f, inputs, rng, name)
    else:
        variables = caller_variables(sys._getframe(1))
        subjects = [Subject(f, inputs, name or _title(f), variables)]
    with np.errstate(all="ignore"):  # what is not finite is looked for, and said in the report
        return combined([_Check(each, rng, rtol, atol, tuple(modes), oracles).run(order) for each in subjects])


def _title(f: Any) -> str:
    own = getattr(f, "__name__", "")
    return type(f).__name__ if not own else "the function" if own == "<lambda>" else str(own)


def _check_arguments(order: int, modes: Sequence[str], oracles: Sequence[str] | None) -> None:
    if not isinstance(modes, (tuple, list)) or not modes or not all(_is_one_of(mode, MODES) for mode in modes):
        raise ArgumentError(
            message(
                f"check_gradients: modes={modes!r} is not known.", "", 'Write modes=("reverse",), ("forward",) or both.'
            )
        )
    asked = () if oracles is None else oracles
    if not isinstance(asked, (tuple, list)) or not all(_is_one_of(oracle, ORACLES) for oracle in asked):
        raise ArgumentError(
            message(
                f"check_gradients: oracles={oracles!r} is not known.",
                "",
                'Write oracles=("formula",), ("sympy",) or both; differences and the exact check are always made.',
            )
        )
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise ArgumentError(f"check_gradients: order={order!r} must be a whole number from 1 on.")


def _is_one_of(word: object, known: Sequence[str]) -> bool:
    return isinstance(word, str) and word in known


def check_numbers(name: str, rtol: object, atol: object, seed: object) -> None:
    """Refuse tolerances and a seed that are none, before anything is computed."""
    for what, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not one_number(value, name, what) >= 0:
            raise ArgumentError(f"{name}: {what}={value!r} must be a number from 0 on.")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ArgumentError(f"{name}: seed={seed!r} must be a whole number from 0 on.")


def combined(reports: list[Report]) -> Report:
    """One report for several points: the first that is not right, with the others' notes and rows."""
    chosen = next((r for r in reports if r.verdict == "wrong"), None) or next((r for r in reports if not r), reports[0])
    for other in reports:
        if other is not chosen:
            chosen.rows = (
                other.rows + chosen.rows if other.verdict == "right" and chosen.verdict == "right" else chosen.rows
            )
            for note in other.notes:
                chosen.note(note)
            if chosen.verdict == "right" and other.exact not in ("equal", ""):
                chosen.exact = other.exact
    return chosen


class _Check:
    """One subject, checked to some order."""

    def __init__(
        self,
        subject: Subject,
        rng: np.random.Generator,
        rtol: float | None,
        atol: float | None,
        modes: tuple[str, ...],
        oracles: Sequence[str] | None = None,
    ) -> None:
        self.subject, self.rng, self.modes = subject, rng, modes
        self.named_oracles = oracles is not None
        self.oracles = ("formula",) if oracles is None else tuple(oracles)
        self.given = None if rtol is None and atol is None else (rtol or 0.0, atol or 0.0)
        self.report = Report(subject.name)
        self.before: Any = None  # the graph of the order before

    def run(self, order: int) -> Report:
        subject = self.subject
        for n in range(1, order + 1):
            self.report.order = n
            step = Step(subject, n, self)
            if not step.run() or n == order:
                break
            if step.constant:
                if n == 1:
                    self.report.note(
                        "the function is constant here: it does not depend on its inputs, and every gradient is 0"
                    )
                break
            if step.bent:
                self.report.note(f"order {n + 1} is not looked at: here the gradient jumps, or cannot be held")
                break
            subject, self.before = subject.slope(step.cotangents, step.directions), self.report.graph
        return self.report

    def allow(self, computed: float, expected: float) -> float:
        """What two numbers may differ by: the caller's tolerance, or what was computed."""
        return computed if self.given is None else self.given[1] + self.given[0] * abs(expected)


class Step:
    """One order of one subject.

    Attributes
    ----------
    cotangents, directions : lists of ndarray
        The random weights of the outputs, and the random direction of each input.
    """

    def __init__(self, subject: Subject, order: int, check: _Check) -> None:
        self.subject, self.order, self.check = subject, order, check
        self.rng, self.report = check.rng, check.report
        self.constant = False
        self.random = self.bent = self.halted = False
        self.exact: Any = None
        self.fused: frozenset[int] = frozenset()
        self.cotangents: Arrays = []
        self.directions = [
            _in_precision(self.rng.normal(size=x.value.shape) * scale_of(x.value.astype(np.float64)), x.value.dtype)
            for x in subject.inputs
        ]
        self.noise = 0.0
        self.errors: Arrays = []
        self.slopes: list[Slope] = []
        self.gradients: Arrays = []

    @property
    def wide(self) -> Arrays:
        """The point in float64."""
        return [x.value.astype(np.float64) for x in self.subject.inputs]

    def run(self) -> bool:
        """Go through the layers; False when there is nothing more to do."""
        report = self.report
        try:
            self.recorded = self.subject.record()
        except Exception as error:
            if self.order == 1:
                raise
            pointing.not_again(self, error)
            return False
        report.graph = self.recorded.graph
        if not self._look_at_values():
            return False
        try:
            self.gradients = [np.asarray(g, np.float64) for g in self.recorded.pull(self.cotangents)]
        except Exception as error:
            pointing.point(self, "error", error)
            return False
        self._find_noise()
        decided = self._exactly()
        failed = self._reverse() + self._forward()
        self._look_for_a_constant()
        apart = hold_against_definitions(self) if self.order == 1 else 0
        if failed or not decided:
            pointing.point(self, "exact" if not failed else "numbers")
        if report.verdict == "right" and (faults := fused_faults(self.recorded.graph, self.rng)):
            pointing.enter_fused(self, faults)
        elif report.verdict == "right" and apart:
            not_its_definition(self)
        return report.verdict == "right"

    # -- the values -------------------------------------------------------------------------------------------

    def _look_at_values(self) -> bool:
        """Two calls must agree, and be numbers."""
        report, subject = self.report, self.subject
        first, second = subject.evaluate(self.wide), subject.evaluate(self.wide)
        self.cotangents = [_in_precision(self.rng.normal(size=y.shape), y.dtype) for y in self.recorded.outputs]
        same = len(first) == len(second) and all(
            a.shape == b.shape and np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True)
        )
        if not same:
            self.random = True
            report.note(
                "two calls at the same point give different results: chance is involved. What was recorded once is "
                "checked; give a fixed seed to check the function itself."
            )
            if chance := pointing.chance_inside(self.recorded.graph):
                report.verdict = "undecided"
                report.note(f"{chance}: its forward gives something else each time, for the same inputs")
                return False
        if not all(np.isfinite(y).all() for y in self.recorded.outputs):
            pointing.not_finite(self)
            return False
        if any(x.value.dtype != np.float64 for x in subject.inputs):
            kinds = sorted({str(x.value.dtype) for x in subject.inputs if x.value.dtype != np.float64})
            report.note(
                f"inputs are {' and '.join(kinds)}: differences are taken in float64, and the gradient may be off "
                f"by what {kinds[0]} rounds"
            )
        self.constant = not any(self.recorded.graph.nodes[at].requires_grad for at in self.recorded.graph.outputs)
        return True

    def _look_for_a_constant(self) -> None:
        """A function that is recorded, but does not change: flat all around, or where a step function is level."""
        flat = all(slope.value == 0 and not slope.kink for slope in self.slopes)
        if self.order == 1 and flat and not self.constant and not any(g.any() for g in self.gradients):
            self.report.note("the function is constant near this point: it did not change, and every gradient is 0")

    def phi(self, tangents: Sequence[Any], weights: Arrays | None = None) -> Callable[[float], float]:
        """The weighted result along a direction, as a function of one number."""
        point, weights = self.wide, self.cotangents if weights is None else weights
        if self.random:
            return self.replayed(tangents)

        def value(t: float) -> float:
            moved = [x if d is None else x + t * d for x, d in zip(point, tangents, strict=True)]
            outputs = self.subject.evaluate(moved)
            return float(sum(np.add.reduce(c * y, axis=None) for c, y in zip(weights, outputs, strict=True)))

        return value

    def replayed(self, tangents: Sequence[Any]) -> Callable[[Any], Any]:
        """The same through the recorded forwards, which also run on complex numbers."""
        graph = self.recorded.graph
        given = {at: d for at, d in zip(self.recorded.leaves, tangents, strict=True) if at >= 0}

        def value(t: Any) -> Any:
            def leaf(node: Any) -> Any:
                d = given.get(node.index)
                x = node.value.astype(np.float64)
                return x if d is None else analytic(x + t * d)

            replay = Replay(graph, np.asarray, leaf)
            with np.errstate(all="ignore"):
                values = replay.forward()
            if replay.cut:
                raise ValueError(next(iter(replay.cut.values())))
            outputs = [np.asarray(values[at]).view(np.ndarray) for at in graph.outputs]
            return sum(np.add.reduce(c * y, axis=None) for c, y in zip(self.cotangents, outputs, strict=True))

        return value

    # -- what rounding allows ----------------------------------------------------------------------------------

    def _find_noise(self) -> None:
        """Run the graph on numbers that carry bounds: the error of the values, and of every gradient."""
        graph = self.recorded.graph
        size = sum(
            float(np.add.reduce(np.abs(c) * np.abs(y), axis=None))
            for c, y in zip(self.cotangents, self.recorded.outputs, strict=True)
        )
        self.noise = 1e-13 * size
        self.errors = [np.full(x.value.shape, np.nan) for x in self.subject.inputs]
        if len(graph) > DEEP:
            return
        with np.errstate(all="ignore"):
            bounded = bounded_run(graph, wide=True)
            at_outputs = [bounded.values[at].e for at in graph.outputs]
            self.noise = (
                float(
                    sum(
                        np.add.reduce(np.abs(c) * e, axis=None)
                        for c, e in zip(self.cotangents, at_outputs, strict=True)
                    )
                )
                + 4e-16 * size
            )
            narrow = (
                bounded if all(node.dtype == np.float64 for node in graph.nodes) else bounded_run(graph, wide=False)
            )
            seeds = {
                at: Bounded.exact(np.asarray(c, graph.nodes[at].dtype))
                for c, at in zip(self.cotangents, graph.outputs, strict=True)
                if graph.nodes[at].requires_grad
            }
            totals = narrow.backward(seeds, cut=lambda index, g: pulled_plainly(narrow, index, g))
        self.errors = [
            np.asarray(totals[at].e) if at in totals else np.zeros(x.value.shape)
            for at, x in zip(self.recorded.leaves, self.subject.inputs, strict=True)
        ]
        self.bounded = [
            np.asarray(totals[at].v, np.float64) if at in totals else np.zeros(x.value.shape)
            for at, x in zip(self.recorded.leaves, self.subject.inputs, strict=True)
        ]

    def error_along(self, slot: int, direction: np.ndarray) -> float:
        """What the gradient of an input may be off by, along a direction."""
        e = self.errors[slot]
        g = np.nan_to_num(self.gradients[slot], nan=0.0, posinf=0.0, neginf=0.0)
        most = float(np.abs(g).max(initial=0.0))
        eps = float(np.finfo(self.subject.inputs[slot].value.dtype).eps)
        e = np.where(np.isfinite(e), e, 1e3 * eps * most)
        return float(np.add.reduce(e * np.abs(direction), axis=None)) + 2e-16 * direction.size * float(
            np.add.reduce(np.abs(g * direction), axis=None)
        )

    # -- the comparisons ----------------------------------------------------------------------------------------

    def row(self, name: str, way: str, oracle: str, found: float, expected: float, allowed: float) -> bool:
        """Enter a comparison; whether it passed."""
        row = Row(name, self.order, way, oracle, found, expected, self.check.allow(allowed, expected))
        self.report.rows.append(row)
        return row.passed

    def _reverse(self) -> int:
        """Each input by itself: the gradient along a random direction against values of the function."""
        failed = 0
        for slot, x in enumerate(self.subject.inputs):
            if x.value.size == 0:
                self.slopes.append(Slope(0.0, 0.0))
                continue
            tangents = [d if i == slot else None for i, d in enumerate(self.directions)]
            found = float(np.add.reduce(self.gradients[slot] * self.directions[slot], axis=None))
            bound = self.error_along(slot, self.directions[slot])
            size = np.abs(np.nan_to_num(self.gradients[slot], posinf=0.0, neginf=0.0)) * np.abs(self.wide[slot])
            noise = self.noise + 2.3e-16 * float(np.add.reduce(size, axis=None))  # x + h is rounded too
            slope = slope_of(self.phi(tangents), noise, found, bound)
            self.slopes.append(slope)
            if np.isfinite(slope.error):
                failed += not self.row(
                    x.name, "reverse", "differences", found, slope.value, slope.error + bound
                ) or bool(slope.kink)
            self._remember(slope.remainder)
            failed += not self._beside(slot, x.name, found, slope, bound, tangents)
        return failed

    def _remember(self, remainder: float) -> None:
        worst = self.report.remainder
        if not np.isnan(remainder) and (np.isnan(worst) or remainder < worst):
            self.report.remainder = remainder

    def _beside(self, slot: int, name: str, found: float, slope: Slope, bound: float, tangents: Sequence[Any]) -> bool:
        """The complex step, where the forwards run on complex numbers and it agrees with the differences."""
        try:
            beside = complex_slope(self.replayed(tangents))
        except Exception:
            return True
        if (
            slope.kink
            or not np.isfinite(beside)
            or not abs(beside - slope.value) <= slope.error + 4 * self._plain_bound(bound, slot)
        ):
            return True
        return self.row(
            name, "reverse", "complex step", found, beside, 4 * bound + 16 * self.noise + 4e-16 * abs(beside)
        )

    def _plain_bound(self, bound: float, slot: int) -> float:
        eps = float(np.finfo(self.subject.inputs[slot].value.dtype).eps)
        return bound * 2.3e-16 / eps

    def _forward(self) -> int:
        """Forward mode, and the two modes against each other."""
        if "forward" not in self.check.modes or self.constant:
            return 0
        try:
            with silence():  # a rule that loses the recording is blamed by name
                pushed = self.recorded.push(self.directions)
        except Exception as error:
            self.report.note(f"forward mode does not run: {type(error).__name__}: {words_of(error)}")
            self.halted = True
            return 1
        found = float(sum(np.add.reduce(c * p, axis=None) for c, p in zip(self.cotangents, pushed, strict=True)))
        along = [float(np.add.reduce(g * d, axis=None)) for g, d in zip(self.gradients, self.directions, strict=True)]
        bound = self._forward_bound()
        values = [s.value for s in self.slopes]
        if all(np.isfinite(s.error) and not s.kink for s in self.slopes):
            return not self.row(
                "all", "forward", "differences", found, sum(values), sum(s.error for s in self.slopes) + 4 * bound
            )
        if np.isfinite(found) and np.isfinite(sum(along)):
            return not self.row("all", "forward", "reverse mode", found, sum(along), 8 * bound)
        return 0

    def _forward_bound(self) -> float:
        """What rounding allows the forward mode: its own graph on numbers that carry bounds."""
        graph = self.recorded.pushed
        total = sum(self.error_along(i, d) for i, d in enumerate(self.directions))
        if graph is None or len(graph) > DEEP:
            return total
        with np.errstate(all="ignore"):
            run = bounded_run(graph, wide=False)
            top = graph.outputs[0]
            found = run.backward(
                {top: Bounded.exact(np.ones((), graph.nodes[top].dtype))},
                cut=lambda index, g: pulled_plainly(run, index, g),
            )
        for place, c in enumerate(self.cotangents):
            at = next((node.index for node in graph.nodes if node.name == f"{place}th seed"), -1)
            if at in found:
                total += float(np.add.reduce(np.abs(c) * found[at].e, axis=None))
                total += 2e-16 * c.size * float(np.add.reduce(np.abs(c * found[at].v), axis=None))
        return total if np.isfinite(total) else float("inf")

    def _exactly(self) -> bool:
        """The exact check, and the recorded bounds entry by entry."""
        graph, report = self.recorded.graph, self.report
        if len(graph) > DEEP:
            report.exact = f"not made: the graph has {len(graph)} nodes"
            return True
        self.exact = exact_check(graph, seed=int(self.rng.integers(2**31)))
        fused = frozenset(at for at in self.exact.wrong if graph.nodes[at].op.composed is not None)
        self.fused = fused
        if self.exact.cut:
            names = sorted({graph.nodes[at].op_name for at in self.exact.cut})
            report.exact = f"not decided for {', '.join(names)}: {next(iter(self.exact.cut.values()))}"
            return bool(self.exact)
        if report.exact in ("", "equal"):  # what an order before could not decide is not forgotten
            report.exact = "equal" if self.exact else "different"
        return bool(self.exact)


def _in_precision(x: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Random numbers that a precision can hold, so that nothing is rounded when they go in."""
    return np.asarray(x, dtype=dtype if dtype.kind == "f" else np.float64).astype(np.float64)


__all__ = ["Recorded", "Step", "check_gradients"]
