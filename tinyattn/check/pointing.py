"""From "something disagrees" to what is wrong: a kink, chance, nan, a wrong rule, a path that was not recorded."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyattn.check.blame import Fault, faults_of
from tinyattn.check.definitions import sympy_of_node
from tinyattn.check.exact import exact_check
from tinyattn.check.fused import fused_faults
from tinyattn.check.kinks import only_kinks
from tinyattn.check.mistakes import likely_mistake
from tinyattn.check.replay import Replay, forward_of, words_of
from tinyattn.check.report import Blame
from tinyattn.check.scene import Mistake
from tinyattn.errors import GradientLost

if TYPE_CHECKING:
    from tinyattn.check.gradients import Step


def point(step: Step, kind: str, error: Exception | None = None) -> None:
    """Find out what disagrees, and enter it in the report.

    Parameters
    ----------
    step : Step
    kind : "numbers", "exact" or "error"
        A comparison of numbers failed; only the exact check did; or the engine raised ``error``.
    """
    if kind == "exact":
        _only_exactly(step)
        return
    if kind == "numbers" and any(slope.kink for slope in step.slopes) and only_kinks(step):
        return
    report, graph = step.report, step.recorded.graph
    if kind == "numbers" and not step.halted and all(row.passed for row in report.rows if row.order == step.order):
        step.bent = True  # every comparison holds: there is a kink close by, but not at the point
        if step.exact is not None and not step.exact:
            _only_exactly(step)
        return
    if kind == "numbers" and _left_the_range(step):
        return
    report.verdict = "wrong"
    faults = faults_of(graph, step.rng)
    if not faults and step.exact is not None and step.exact.wrong:
        faults, _ = _closely(step, step.exact.wrong)
    faults = faults or fused_faults(graph, step.rng)
    if faults:
        _enter(step, faults)
        return
    if error is not None:
        report.note(f"the backward pass raised {type(error).__name__}: {words_of(error)}")
        return
    if _lost_on_tensors(step) or _unrecorded(step):
        return
    _not_added_up(step)


def _enter(step: Step, faults: list[Fault]) -> None:
    """The first wrong rule into the report, and the names of the others."""
    report, graph = step.report, step.recorded.graph
    report.faults = faults
    report.blame = blame_for(faults[0], graph)
    first = (faults[0].node.op_name, report.blame.input)
    seen: list[str] = []
    for fault in faults[1:]:
        words = f"{fault.node.op_name}, which makes {fault.node.name}"
        if (fault.node.op_name, "") != first and words not in seen:
            seen.append(words)
    report.others = seen


def enter_fused(step: Step, faults: list[Fault]) -> None:
    """Blame a fused rule that is off from its composed form by more than rounding."""
    step.report.verdict = "wrong"
    _enter(step, faults)
    step.report.note(f"{faults[0].node.op_name} was held against its composed form here")


def blame_for(fault: Fault, graph: Any) -> Blame:
    """Everything that is known about a wrong rule."""
    node = fault.node
    blame = Blame(node.op_name, node.name, node.index)
    if graph.nodes[node.inputs[0]].kind != "parameter" or len(graph) > len(node.inputs) + 1:
        blame.file, blame.line = node.file, node.line  # of an op by itself the line says only who asked
    own = node.op.names_of(len(node.inputs))[fault.slot]
    source = graph.nodes[node.inputs[fault.slot]]
    blame.input = own if not source.named or source.name == own else f"{own} (here {source.name})"
    blame.entry, blame.found, blame.expected, blame.problem = fault.entry, fault.found, fault.expected, fault.problem
    blame.formula = formula_of(node, graph, fault.slot)
    if node.op.definition and fault.entry:
        blame.ask_sympy = lambda: _sympy_at(graph, fault)
    try:
        blame.mistake = likely_mistake(fault, graph)
    except Exception:  # a name is a help, never a reason to fail
        blame.mistake = None
    return blame


def _sympy_at(graph: Any, fault: Fault) -> float | None:
    derived = sympy_of_node(graph, fault.node, fault.slot, fault.g)
    return None if derived is None else float(derived[fault.entry])


def formula_of(node: Any, graph: Any, slot: int) -> str:
    """The formula that the rule should have followed, derived from the definition; "" without one."""
    op = node.op
    shapes = [graph.nodes[source].shape for source in node.inputs]
    if not op.definition:
        return ""
    try:
        from tinyattn.symbolic import op_formulas

        _, derivatives = op_formulas(op, shapes, node.params)
        if "=" in derivatives[slot]:
            return str(derivatives[slot])
    except Exception:  # not every definition can be derived from; the text is the next best
        pass
    try:
        return f"the gradient of {op.definition_text(tuple(shapes), node.params)}"
    except Exception:
        return ""


# -- only the exact check disagrees ---------------------------------------------------------------------------


def _only_exactly(step: Step) -> None:
    report, graph = step.report, step.recorded.graph
    suspects = step.exact.wrong
    faults, digits = _closely(step, suspects)
    if faults:
        report.verdict, report.exact = "wrong", "different"
        _enter(step, faults)
        return
    again = exact_check(graph, seed=1, composed=step.fused) if step.fused else None
    names = ", ".join(sorted({graph.nodes[at].op_name for at in suspects})) or "the graph"
    if again:
        report.exact = f"equal, {names} by the composed form"
        return
    agrees = "" if digits is None else f"; it agrees with its forward to {int(digits)} digits"
    report.exact = (
        f"right, but not decidable exactly ({names}): the rule is not written through the values of its forward, "
        f"or rounds a constant{agrees}"
    )


def _closely(step: Step, suspects: tuple[int, ...]) -> tuple[list[Fault], float | None]:
    """Wrong rules among the suspects, and to how many digits the others agree; None where that cannot be said.

    With fifty digits where a rule runs on them, by differences of floats where it does not.
    """
    from tinyattn.check.digits import fault_in_digits

    faults: list[Fault] = []
    least, unasked = 50.0 if suspects else None, []
    for at in suspects:
        try:
            with np.errstate(all="ignore"):
                fault, digits = fault_in_digits(step.recorded.graph, at, step.rng)
        except Exception:  # it does not run on such numbers
            least = None
            unasked.append(at)
            continue
        if fault is not None:
            faults.append(fault)
        elif least is not None:
            least = min(least, digits)
    if unasked and not faults:
        faults = faults_of(step.recorded.graph, step.rng, tuple(unasked))
    return faults, least


# -- precision ----------------------------------------------------------------------------------------------------


def _left_the_range(step: Step) -> bool:
    """Whether the rules are right, but float32 (or less) cannot hold a number on the way."""
    report, graph = step.report, step.recorded.graph
    narrow = [x.value.dtype for x in step.subject.inputs if x.value.dtype != np.float64]
    if not narrow or not step.exact or step.exact.cut:
        return False
    wide = step.subject.record(step.wide).pull(step.cotangents)
    for slope, g, direction, e in zip(step.slopes, wide, step.directions, step.errors, strict=True):
        along = float(np.add.reduce(np.asarray(g, np.float64) * direction, axis=None))
        allowed = (
            slope.error
            + 1e-6 * abs(slope.value)
            + float(np.add.reduce(np.nan_to_num(e, posinf=0.0) * np.abs(direction), axis=None))
        )
        if not abs(along - slope.value) <= allowed:
            return False
    where = _out_of_range(graph, step)
    if where is None:
        return False
    report.rows = [row for row in report.rows if row.passed or row.order != step.order]
    at = f" at {where.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{where.line}" if where.line else ""
    report.note(
        f"in float64 this gradient is right; in {narrow[0]} a number on the way back through {where.op_name}{at} "
        "is too large or too small to be held"
    )
    step.bent = True
    return True


def _out_of_range(graph: Any, step: Step) -> Any:
    """The first node, going backward, at which a number leaves the range of its precision."""
    found: list[Any] = []
    large: dict[tuple[int, int], Any] = {}

    def run(dtype: Any, watch: Any) -> None:
        def given(value: Any) -> Any:
            array = np.asarray(value)
            return array.astype(dtype) if dtype is not None and array.dtype.kind == "f" else array

        with np.errstate(all="ignore"):
            replay = Replay(graph, given, lambda node: given(node.value))
            replay.forward()
            seeds = {
                at: np.asarray(c, dtype or graph.nodes[at].dtype)
                for c, at in zip(step.cotangents, graph.outputs, strict=True)
            }
            replay.backward({at: c for at, c in seeds.items() if graph.nodes[at].requires_grad}, watch)

    def compare(node: int, slot: int, c: Any) -> None:
        other, smallest = large.get((node, slot)), float(np.finfo(c.dtype).tiny)
        lost = (
            ~np.isfinite(c)
            if other is None
            else (~np.isfinite(c) & np.isfinite(other)) | ((np.abs(other) < smallest) & (other != 0))
        )
        if lost.any() and not found:
            found.append(graph.nodes[node])

    run(np.float64, lambda node, slot, c: large.__setitem__((node, slot), c))
    run(None, compare)
    return found[0] if found else None


# -- rules that lose the recording ---------------------------------------------------------------------------


def _lost_on_tensors(step: Step) -> bool:
    """Right numbers, but a rule that tensors do not survive: forward mode and higher orders lose their way there."""
    report, graph = step.report, step.recorded.graph
    if step.order > 1:
        graph = step.check.before
    elif any(not row.passed and row.way == "reverse" for row in report.rows):
        return False
    for node in reversed(graph.nodes):
        if node.op is not None and node.requires_grad and (why := _why_lost(graph, node)):
            enter_lost(report, node, why)
            return True
    return False


def not_again(step: Step, error: Exception) -> None:
    """The gradient could not be recorded, so there is no gradient of it."""
    report, graph = step.report, step.check.before
    report.verdict = "wrong"
    for node in reversed(graph.nodes):
        if node.op is not None and node.requires_grad and (why := _why_lost(graph, node)):
            enter_lost(report, node, why)
            return
    report.note(f"the gradient cannot be differentiated again: {type(error).__name__}: {words_of(error)}")


def enter_lost(report: Any, node: Any, why: str) -> None:
    """Blame a rule that does not run on tensors."""
    blame = Blame(node.op_name, node.name, node.index)
    blame.file, blame.line = node.file, node.line
    blame.problem = (
        f"the rule is right for numbers, but {why}; forward mode and gradients of gradients need it to run on tensors: "
        "write it with operators and NumPy functions, without np.asarray, float(), out= or assignment into an array"
    )
    blame.mistake = Mistake(
        "rule not recorded", "a gradient inside the rule ends where a tensor is turned into a plain array"
    )
    report.blame = blame


def _why_lost(graph: Any, node: Any) -> str:
    """Why the rule of a node cannot be recorded; "" when it can."""
    from tinyattn.tensor import Tensor, tensor

    op = node.op
    if op.composed is not None or op.saves:
        return ""
    inputs = [
        tensor(graph.nodes[source].value, requires_grad=graph.nodes[source].requires_grad) for source in node.inputs
    ]
    g = tensor(np.ones(node.shape, node.dtype), requires_grad=True)
    wanted = [x.requires_grad for x in inputs]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", GradientLost)
        try:
            made = op.pull(g, op(*inputs, *node.params.values()), None, inputs, tuple(node.params.values()), wanted)
        except Exception as error:
            return f"on tensors it raises {type(error).__name__}: {words_of(error)}"
    if any(want and c is not None and not isinstance(c, Tensor) for want, c in zip(wanted, made, strict=True)):
        return "given tensors it returns a plain array"
    return "it turns a tensor into a plain array on the way" if any(w.category is GradientLost for w in heard) else ""


# -- what was not recorded ------------------------------------------------------------------------------------


def _unrecorded(step: Step) -> bool:
    """The rules are right for what was recorded; then something that depends on the input was not recorded."""
    report, graph = step.report, step.recorded.graph
    changed = _changed_constants(step)
    hidden = [
        step.subject.inputs[slot].name
        for slot, at in enumerate(step.recorded.leaves)
        if at < 0 and any(not row.passed and row.input == step.subject.inputs[slot].name for row in report.rows)
    ]
    if not changed and not hidden:
        return False
    blame = Blame("", "")
    if changed:
        node = graph.nodes[changed[0]]
        readers = graph.consumers(node.index)
        if readers:
            reader = graph.nodes[readers[0][0]]
            blame.file, blame.line, blame.index = reader.file, reader.line, node.index
            title = node.name if node.named else "a constant"
            at = f" at {blame.place}" if blame.place else ""
            blame.problem = (
                f"{title} of shape {node.shape} changes with the input, but was not recorded: "
                f"it goes into {reader.op_name} (which makes {reader.name}){at}"
            )
    else:
        blame.problem = f"the result changes with {', '.join(hidden)}, but nothing of that was recorded"
    blame.mistake = Mistake(
        "detached branch",
        "a part of the way from the input to the result is hidden from the engine: "
        "detach(), .data, float(), np.asarray or no_grad",
    )
    report.blame = blame
    return True


def _changed_constants(step: Step) -> list[int]:
    """Leaves without gradient that have other numbers when the input is moved a little."""
    graph = step.recorded.graph
    moved = [
        (x + 1e-4 * d).astype(each.value.dtype)
        for x, d, each in zip(step.wide, step.directions, step.subject.inputs, strict=True)
    ]
    try:
        other = step.subject.record(moved).graph
    except Exception:
        return []
    if len(other) != len(graph) or any(a.op_name != b.op_name for a, b in zip(graph.nodes, other.nodes, strict=True)):
        return []
    leaves = [(a, b) for a, b in zip(graph.nodes, other.nodes, strict=True) if a.op is None and not a.requires_grad]
    return [a.index for a, b in leaves if a.shape != b.shape or not np.array_equal(a.value, b.value, equal_nan=True)]


def _not_added_up(step: Step) -> None:
    """Every rule is right by itself: contributions were not added up, or the forward is not what was recorded."""
    report = step.report
    off = [
        x.name
        for x, got, want, e in zip(
            step.subject.inputs, step.gradients, getattr(step, "bounded", step.gradients), step.errors, strict=True
        )
        if not (np.abs(got - want) <= 16 * e + 1e-300).all()
    ]
    if off:
        report.note(f"every rule is right by itself, but their contributions to {', '.join(off)} were not added up")
    elif step.exact and not step.exact.cut and _is_what_was_recorded(step):
        report.verdict, report.remainder = "right", float("nan")
        report.rows = [row for row in report.rows if row.passed or row.order != step.order]
        step.bent = True
        report.note(
            "there are kinks so close by that differences cross them, and say nothing; every rule by itself and the "
            "exact check hold, and near the point the function is what was recorded at it"
        )
    else:
        report.note(
            "every rule is right by itself: the function computes something else near the point than "
            "what was recorded at it"
        )


def _is_what_was_recorded(step: Step) -> bool:
    """Whether the recorded forwards give the values of the function around the point too, so that nothing is hidden."""
    for slot in range(len(step.directions)):
        tangents = [d if i == slot else None for i, d in enumerate(step.directions)]
        function, recorded = step.phi(tangents), step.replayed(tangents)
        for power in (8, 12, 16, 20):
            for h in (2.0**-power, -(2.0**-power)):
                try:
                    apart = abs(function(h) - float(recorded(h)))
                except Exception:
                    return False
                if not apart <= 4 * step.noise:
                    return False
    return True


# -- chance inside an operation ---------------------------------------------------------------------------------


def chance_inside(graph: Any) -> str:
    """The first operation whose own forward is a matter of chance; "" where there is none."""
    for node in graph.nodes:
        if node.op is None:
            continue
        inputs = [graph.nodes[source].value for source in node.inputs]
        with np.errstate(all="ignore"):
            runs = [forward_of(node.op, inputs, tuple(node.params.values())) for _ in range(2)]
        first, second = (run[0] if node.op.saves else run for run in runs)
        if not np.array_equal(first, second, equal_nan=True):
            return f"{node.op_name}{f', which makes {node.name}' if node.named else ''}"
    return ""


# -- values that are not numbers --------------------------------------------------------------------------------


def not_finite(step: Step) -> None:
    """The result itself is nan or infinite: say which operation made it first."""
    report, graph = step.report, step.recorded.graph
    if step.order > 1:
        report.note(f"order {step.order} is not looked at: the gradient of order {step.order - 1} is not finite here")
        report.order = step.order - 1
        return
    report.verdict = "undecided"
    for node in graph.nodes:
        bad = ~np.isfinite(node.value)
        if (
            node.op is not None
            and bad.any()
            and all(np.isfinite(graph.nodes[source].value).all() for source in node.inputs)
        ):
            entry = [int(i) for i in np.argwhere(bad)[0]]
            where = f" at {node.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{node.line}" if node.line else ""
            report.note(
                f"the result is not finite: {node.op_name}{where}, which makes {node.name}, "
                f"first made {node.value[tuple(entry)]} at entry {entry}"
            )
            return
    report.note("the result is not finite, because what goes in is not")
