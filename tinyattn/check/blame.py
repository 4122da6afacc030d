"""Node by node: each rule of a graph held against differences of its own forward, until one does not fit.

A node is looked at by itself, at the numbers that were recorded, with a random cotangent: what its rule passes back
to each input against what the forward alone says.  So one wrong rule is found in a graph of hundreds, and a right
rule behind a wrong one is not suspected.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tinyattn.check.bounded import Bounded
from tinyattn.check.bounding import bounded_run
from tinyattn.check.numeric import GOOD, Slope, analytic, scale_of, slope_of
from tinyattn.check.replay import composed_graph, forward_of

MANY = 256  # entries that are looked at one by one; of more, the wrong one is found by halving


class Fault:
    """A rule that does not fit its forward.

    Attributes
    ----------
    node : Node
    slot : int
        Which input.
    entry : tuple of int
    found, expected : float
        What the rule gives there, and what the forward says.
    problem : str
        Words for what is not a number: an error that was raised, a wrong shape, nan.
    g, got, want : ndarray
        Cotangent, what the rule passed back, and what it should have (nan where that was not looked at).
    """

    __slots__ = ("entry", "expected", "found", "g", "got", "node", "problem", "slot", "want")

    def __init__(self, node: Any, slot: int, g: np.ndarray, problem: str = "") -> None:
        self.node, self.slot, self.g, self.problem = node, slot, g, problem
        self.entry: tuple[int, ...] = ()
        self.found = self.expected = float("nan")
        self.got: Any = None
        self.want: Any = None


class Local:
    """One node by itself."""

    def __init__(self, graph: Any, node: Any, rng: np.random.Generator) -> None:
        self.graph, self.node, self.op = graph, node, node.op
        self.inputs = [graph.nodes[source].value for source in node.inputs]
        self.params = tuple(node.params.values())
        self.wanted = [graph.nodes[source].requires_grad for source in node.inputs]
        self.g = np.asarray(rng.normal(size=node.shape), dtype=node.dtype)
        self.rng = rng
        self.closely = False
        self.written: list[str] = []  # what the rule writes into though others need it
        self.wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in self.inputs]
        self.spread: Any = None  # what each value may be off by, times its cotangent
        self.noise, self.allowed = self._bounds()

    def forward(self, inputs: list[Any]) -> Any:
        """The value of the node for other inputs."""
        result = forward_of(self.op, [x[()] if x.shape == () else x for x in inputs], self.params)
        return np.asarray(result[0] if self.op.saves else result)

    def rule(self, g: np.ndarray) -> list[Any]:
        """What the rule passes back."""
        inputs = [x[()] if x.shape == () else np.array(x) for x in self.inputs]
        result = self.op.forward(*inputs, *self.params)
        y, saved = result if self.op.saves else (result, None)
        given, before = np.array(g), np.array(y)
        made = list(self.op.pull(given[()], y, saved, inputs, self.params, self.wanted))
        pairs = [("the incoming gradient", g, given), ("its result", before, y)]
        pairs += [("its input", old, new) for old, new in zip(self.inputs, inputs, strict=True)]
        self.written = [name for name, old, new in pairs if not _same(old, new)]
        return made

    def _bounds(self) -> tuple[float, list[Any]]:
        """What one value of <g, forward> may be off by, and what each entry of the rule may."""
        size = float(np.abs(np.nan_to_num(self.node.value.astype(np.float64), posinf=0, neginf=0)).max(initial=0.0))
        noise = float(np.abs(self.g).sum()) * size * 1e-14
        allowed: list[Any] = [None] * len(self.inputs)
        with np.errstate(all="ignore"):
            for way in (self._own_bounds, self._composed_bounds):
                try:
                    y, allowed = way()
                except Exception:
                    continue
                self.spread = _safe(np.abs(self.g) * y.e)
                noise = float(np.add.reduce(self.spread, axis=None)) + 1e-320
                break
        return noise, allowed

    def _own_bounds(self) -> tuple[Any, list[Any]]:
        wide, _ = self._bounded(self.wide)
        exact = [Bounded.exact(x) for x in self.inputs]
        y, saved = self._bounded(self.inputs)
        made = self.op.pull(Bounded.exact(self.g), y, saved, exact, self.params, self.wanted)
        return wide, [None if c is None else np.asarray(Bounded.lift(c).e) for c in made]

    def _composed_bounds(self) -> tuple[Any, list[Any]]:
        """A fused op that does not run on these numbers, by its composed form."""
        graph, places = composed_graph(self.graph, self.node)
        run = bounded_run(graph, wide=False)
        totals = run.backward({graph.outputs[0]: Bounded.exact(self.g)})
        found = [totals.get(places.get(slot, -1)) for slot in range(len(self.inputs))]
        return run.values[graph.outputs[0]], [None if c is None else np.asarray(c.e) for c in found]

    def _bounded(self, inputs: list[Any]) -> tuple[Any, Any]:
        values = [Bounded.exact(x) for x in inputs]
        result = (
            Bounded.apply_op(self.op, (*values, *self.params))
            if not self.op.saves
            else self.op.forward(*values, *self.params)
        )
        y, saved = result if self.op.saves else (result, None)
        return Bounded.lift(y), saved

    def error_of(self, slot: int, got: np.ndarray) -> np.ndarray:
        """What each entry of a rule's result may be off by."""
        e = self.allowed[slot]
        if e is None or e.shape != got.shape:
            most = float(np.abs(_safe(got)).max(initial=0.0))
            e = np.full(got.shape, 1e3 * float(np.finfo(got.dtype).eps) * most)
        return np.asarray(4 * e)

    def along(self, slot: int, direction: np.ndarray, size: float = 0.0) -> Slope:
        """How <g, forward> changes along a direction of one input; ``size`` is that of x times its gradient."""
        g = self.g.astype(np.float64)
        noise = self.noise + 2.3e-16 * size

        def phi(t: Any) -> Any:
            moved = list(self.wide)
            moved[slot] = moved[slot] + t * direction
            return np.add.reduce(g * self.forward(moved), axis=None)

        with np.errstate(all="ignore"):
            found = slope_of(phi, noise, good=0.0 if self.closely else GOOD)
            return self._sharper(found, slot, direction)

    def _sharper(self, found: Slope, slot: int, direction: np.ndarray) -> Slope:
        """A complex step in place of a difference, where the two agree: it has no rounding to speak of."""
        h, moved = 1e-30, list(self.wide)
        moved[slot] = analytic(moved[slot] + 1j * h * direction)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                y = self.forward(moved) if self.op.composed is None else self.op.composed(*moved, *self.params)
            changes = np.asarray(y).view(np.ndarray).imag / h
            beside = float(np.add.reduce(self.g * changes, axis=None))
        except Exception:
            return found
        lost = abs(beside) < 1e-250 and found.value != 0  # so small a step times so small a number is nothing
        if lost or found.kink or not np.isfinite(beside) or not abs(beside - found.value) <= found.error:
            return found
        spread = self.noise if self.spread is None else float(np.add.reduce(self.spread[changes != 0], axis=None))
        better = Slope(beside, min(found.error, 4 * spread + 1e-15 * abs(beside)), found.step)
        better.remainder, better.left, better.right = found.remainder, found.left, found.right
        return better


def _same(before: Any, after: Any) -> bool:
    return np.array_equal(before, after, equal_nan=True)


def _safe(x: Any) -> np.ndarray:
    return np.nan_to_num(np.asarray(x, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def fault_of(graph: Any, index: int, rng: np.random.Generator, closely: bool = False) -> Fault | None:
    """Look at one node; None when each of its rules fits its forward.

    ``closely`` looks at single entries at once: along a direction through all of them a small fault of one is lost.
    """
    node = graph.nodes[index]
    local = Local(graph, node, rng)
    local.closely = closely
    try:
        with np.errstate(all="ignore"):
            made = local.rule(local.g)
    except Exception as error:
        return Fault(
            node,
            0,
            local.g,
            f"its rule raised {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
        )
    if local.written:
        problem = f"its rule writes into {' and '.join(local.written)}, which others still need: let it work on a copy"
        return Fault(node, 0, local.g, problem)
    for slot, want in enumerate(local.wanted):
        if want:
            found = _look(local, slot, made[slot])
            if found is not None:
                return found
    return None


def _look(local: Local, slot: int, c: Any) -> Fault | None:
    x = local.inputs[slot]
    fault = Fault(local.node, slot, local.g)
    if c is None:
        c = np.zeros(x.shape, x.dtype)
    got = np.asarray(c)
    fault.got = got
    if got.shape != x.shape:
        fault.problem = f"its rule gives shape {got.shape} where the input has {x.shape}"
        return fault
    if x.size == 0:
        return None
    got = got.astype(np.float64)
    error = local.error_of(slot, np.asarray(c))
    if not local.closely and _fits_along(local, slot, got, error):
        return None
    return _worst(local, slot, got, error, fault)


def _fits_along(local: Local, slot: int, got: np.ndarray, error: np.ndarray) -> bool:
    """Whether the rule's result agrees with the forward along one random direction."""
    direction = local.rng.normal(size=got.shape) * scale_of(local.wide[slot])
    size = float(np.add.reduce(np.abs(_safe(got) * _safe(local.wide[slot])), axis=None))
    slope = local.along(slot, direction, size)
    if slope.kink or not np.isfinite(slope.error):
        return not slope.kink  # without a difference there is nothing to hold it against
    found, allowed = np.add.reduce(got * direction, axis=None), np.add.reduce(error * np.abs(direction), axis=None)
    return bool(abs(found - slope.value) <= slope.error + allowed + 1e-320)


def _worst(local: Local, slot: int, got: np.ndarray, error: np.ndarray, fault: Fault) -> Fault | None:
    """The entry that is off by most, of those that are off by more than rounding."""
    scale = scale_of(local.wide[slot])
    places = _suspects(local, slot, got, error, scale)
    want = np.full(got.shape, np.nan)
    wrong: list[tuple[float, tuple[int, ...]]] = []
    for place in places:
        unit = np.zeros(got.shape)
        unit[place] = scale[place]
        slope = local.along(slot, unit)
        if not np.isfinite(slope.error):
            continue
        slope.error += (
            2.3e-16 * abs(local.wide[slot][place]) / scale[place] * abs(slope.value) / slope.step
        )  # x + h is rounded too
        value = slope.value / scale[place]
        want[place] = value
        gap = abs(got[place] - value)
        between = slope.kink and min(slope.left, slope.right) <= got[place] * scale[place] <= max(
            slope.left, slope.right
        )
        if slope.kink == "infinite" or between:
            continue
        if not gap <= slope.error / scale[place] + error[place] + 1e-320:
            wrong.append((gap if np.isfinite(gap) else np.inf, place))
    if not wrong:
        return None
    fault.entry = max(wrong)[1]
    fault.found, fault.expected = float(got[fault.entry]), float(want[fault.entry])
    fault.want = want
    return fault


def _suspects(local: Local, slot: int, got: np.ndarray, error: np.ndarray, scale: np.ndarray) -> list[tuple[int, ...]]:
    """All entries of a small input; of a large one those left after halving it towards the wrong ones."""
    places = list(np.ndindex(*got.shape))
    while len(places) > MANY:
        halves = [places[: len(places) // 2], places[len(places) // 2 :]]
        offs = []
        for half in halves:
            at = tuple(np.array(half).T)
            direction = np.zeros(got.shape)
            direction[at] = local.rng.normal(size=len(half)) * scale[at]
            slope = local.along(slot, direction)
            allowed = slope.error + float(np.add.reduce(error * np.abs(direction), axis=None)) + 1e-320
            gap = abs(float(np.add.reduce(got * direction, axis=None)) - slope.value)
            offs.append(gap / allowed if np.isfinite(gap) else np.inf)
        places = halves[int(np.argmax(offs))]
    return places


def faults_of(graph: Any, rng: np.random.Generator, only: tuple[int, ...] | None = None) -> list[Fault]:
    """Every node whose rule does not fit, the one nearest the result first."""
    found = []
    for node in reversed(graph.nodes):
        if node.op is None or not node.requires_grad or (only is not None and node.index not in only):
            continue
        fault = fault_of(graph, node.index, rng, closely=only is not None)
        if fault is not None:
            found.append(fault)
    return found
