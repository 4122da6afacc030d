"""The gradient held against the definitions of the operations, by formulas and by SymPy, and what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tinyattn.check.definitions import CannotSay, by_formula, by_sympy, value_by_definition
from tinyattn.check.report import Blame
from tinyattn.check.scene import Mistake

if TYPE_CHECKING:
    from tinyattn.check.gradients import Step

ORACLES = ("formula", "sympy")
LARGEST = 4096  # entries of a value that its definition is asked about, one after the other


def hold_against_definitions(step: Step) -> int:
    """Compare the gradient of each input along its direction; gives how often it differs.

    An oracle that cannot be asked is passed over; of one that the caller named, the reason is noted.
    """
    failed = 0
    places = [slot for slot, at in enumerate(step.recorded.leaves) if at >= 0 and not step.slopes[slot].kink]
    for oracle in step.check.oracles:
        ask, title = (by_formula, "formula") if oracle == "formula" else (by_sympy, "SymPy")
        try:
            found = ask(step.recorded.graph, [step.recorded.leaves[slot] for slot in places], step.cotangents)
        except CannotSay as reason:
            if step.check.named_oracles:
                step.report.note(f"{title} was not asked: {reason}")
            _note_unreadable(step)
            continue
        for slot in places:
            value, error = found[step.recorded.leaves[slot]]
            failed += not _fits(step, slot, title, value, error)
    return failed


def _note_unreadable(step: Step) -> None:
    """A definition that is no definition is of no use to anybody."""
    from tinyattn.ops import REGISTRY
    from tinyattn.symbolic import parse

    for op in {id(node.op): node.op for node in step.recorded.graph.nodes if node.op is not None}.values():
        if op is REGISTRY.get(op.name) or not isinstance(op.definition, str) or not op.definition:
            continue
        try:
            parse(op.definition)
        except Exception as error:
            step.report.note(f"the definition of {op.name} cannot be read: {str(error).splitlines()[0]}")


def _fits(step: Step, slot: int, title: str, value: np.ndarray, error: np.ndarray) -> bool:
    direction, gradient = step.directions[slot], step.gradients[slot]
    if not (np.isfinite(gradient).all() and np.isfinite(value).all() and np.isfinite(error).all()):
        return True  # what is not finite is judged by values
    terms = float(np.add.reduce(np.abs(value * direction), axis=None))
    allowed = step.error_along(slot, direction) + float(np.add.reduce(error * np.abs(direction), axis=None))
    allowed = 2 * allowed + 4e-16 * direction.size * terms
    found, expected = (float(np.add.reduce(g * direction, axis=None)) for g in (gradient, value))
    name = step.subject.inputs[slot].name
    return not np.isfinite(allowed) or step.row(name, "reverse", title, found, expected, allowed)


def not_its_definition(step: Step) -> None:
    """Every rule fits its forward, but a definition says otherwise: then a forward is not what its definition says."""
    report, graph = step.report, step.recorded.graph
    for node in graph.nodes:
        if node.op is None or node.value.size > LARGEST:
            continue
        try:
            meant = value_by_definition(graph, node)
        except CannotSay:
            continue
        value = node.value.astype(np.float64)
        room = 1e-9 if node.dtype == np.float64 else 1e-4
        gap = np.abs(value - meant)
        if not value.size or not gap.max() > room * float(np.abs(meant).max()):
            continue
        entry = tuple(int(i) for i in np.unravel_index(int(np.argmax(gap)), gap.shape))
        shapes = tuple(graph.nodes[source].shape for source in node.inputs)
        blame = Blame(node.op_name, node.name, node.index)
        blame.file, blame.line, blame.entry, blame.part = node.file, node.line, entry, "forward"
        blame.problem = (
            f"the rule fits it, but it does not compute its definition: entry {list(entry)} is "
            f"{value[entry]:.10g}, where {node.op.definition_text(shapes, dict(node.params))} gives {meant[entry]:.10g}"
        )
        blame.mistake = Mistake("forward differs from its definition", "correct the forward, or the definition")
        report.verdict, report.blame = "wrong", blame
        return
    report.rows = [row for row in report.rows if row.passed or row.oracle not in ("formula", "SymPy")]
    report.note("the formula says otherwise, but every forward computes its definition: nothing is held against it")
