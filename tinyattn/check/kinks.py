"""Kinks: points without a slope, where a difference and a rule may disagree and both be right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tinyattn.check.numeric import Slope, scale_of, slope_of
from tinyattn.check.replay import Replay

if TYPE_CHECKING:
    from tinyattn.check.gradients import Step

ENTRIES = 256  # entries of an input that are looked at one by one for kinks


def only_kinks(step: Step) -> bool:
    """Whether every entry away from kinks is right, and every entry at one lies between both sides."""
    report = step.report
    noted: list[str] = []
    for slot, slope in enumerate(step.slopes):
        if not slope.kink:
            if any(
                not row.passed and row.input == step.subject.inputs[slot].name and row.order == step.order
                for row in report.rows
            ):
                return False
            continue
        words = _entries(step, slot)
        if words is None:
            return False
        noted += words
    report.rows = [row for row in report.rows if row.passed or row.order != step.order]
    report.remainder = float("nan")
    if report.exact == "different":
        report.exact = "different at the kink, where a rule may choose its slope"
    step.bent = True
    for each in noted[:3]:
        report.note(each)
    if len(noted) > 3:
        report.note(f"and {len(noted) - 3} more such points")
    return True


def _entries(step: Step, slot: int) -> list[str] | None:
    x = step.subject.inputs[slot]
    scale = scale_of(step.wide[slot])
    places = list(np.ndindex(*x.value.shape))
    if len(places) > ENTRIES:
        chosen = step.rng.choice(len(places), ENTRIES, replace=False)
        places = [places[at] for at in sorted(chosen)]
    words = []
    for place in places:
        unit = np.zeros(x.value.shape)
        unit[place] = scale[place]
        tangents = [unit if i == slot else None for i in range(len(step.directions))]
        slope = slope_of(step.phi(tangents), step.noise)
        found = float(step.gradients[slot][place] * scale[place])
        allowed = slope.error + step.error_along(slot, unit)
        if slope.kink:
            if not _at_a_kink(slope, found, step.noise):
                return None
            words.append(_kink_words(step, slot, place, slope, float(scale[place])))
        elif not abs(found - slope.value) <= allowed and np.isfinite(slope.error):
            return None
    return words


def _at_a_kink(slope: Slope, found: float, noise: float) -> bool:
    """Whether a slope is one of those that may be chosen where there is none."""
    if slope.kink == "infinite":
        return not np.isnan(found)
    sides = [side for side in (slope.left, slope.right) if np.isfinite(side)]
    if slope.kink == "edge":
        return not np.isnan(found)
    width = abs(slope.right - slope.left)
    return min(sides) - 1e-4 * width <= found <= max(sides) + 1e-4 * width


def _kink_words(step: Step, slot: int, place: tuple[int, ...], slope: Slope, scale: float) -> str:
    x = step.subject.inputs[slot]
    at = f"{x.name}{list(place)}" if place else x.name
    node = _kink_node(step, slot, place, scale)
    by = ""
    if node is not None:
        where = f" at {node.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{node.line}" if node.line else ""
        decided = f" (decided: {node.op.kinks})" if node.op.kinks else ""
        by = f" of {node.op_name}{where}{decided}"
    if slope.kink == "infinite":
        return f"infinite slope at {at} = {float(x.value[place]):g}{by}: no difference can be held against it"
    if slope.kink == "edge":
        return f"edge at {at} = {float(x.value[place]):g}{by}: there are values on one side only"
    ones = [np.ones_like(c) for c in step.cotangents]
    unit = np.zeros(x.value.shape)
    unit[place] = scale
    plain = slope_of(step.phi([unit if i == slot else None for i in range(len(step.directions))], ones), step.noise)
    found = float(step.recorded.pull(ones)[slot][place])
    left, right = plain.left / scale, plain.right / scale
    return (
        f"kink at {at} = {float(x.value[place]):g}{by}: slope {left:.4g} on the left, {right:.4g} on the right, "
        f"the gradient says {found:.4g}. That is not a fault"
    )


def _kink_node(step: Step, slot: int, place: tuple[int, ...], scale: float) -> Any:
    """The first operation whose own result has a kink there."""
    graph, leaf = step.recorded.graph, step.recorded.leaves[slot]
    if leaf < 0:
        return None

    def values(by: float) -> list[Any]:
        def given(node: Any) -> Any:
            value = node.value.astype(np.float64)
            if node.index == leaf:
                value[place] += by * scale
            return value

        with np.errstate(all="ignore"):
            return Replay(graph, np.asarray, given).forward()

    step_size = 2.0**-16
    ahead, middle, behind = values(step_size), values(0.0), values(-step_size)
    for node in graph.nodes:
        if node.op is None:
            continue
        right, left = ahead[node.index] - middle[node.index], middle[node.index] - behind[node.index]
        with np.errstate(all="ignore"):
            size = np.maximum(np.abs(right), np.abs(left))
            bent = np.abs(right - left) > 1e-2 * size + 1e-13
            steep = size > 1e-1 * np.sqrt(step_size) * np.maximum(np.abs(middle[node.index]), 1e-3)
            if np.any((bent | steep) & (size > 0)) or np.isnan(right).any() != np.isnan(left).any():
                return node
    return None
