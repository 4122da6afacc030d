"""The gradient rules of the rule book, proved equal to what the definition demands.

A rule is run on arrays of formulas (`tracing.py`), so that it becomes a formula itself; the definition gives the
cotangent by the one rule of `pulling.py`. Both are written out and compared. What no formula can say is compared
with SymPy at explicit sizes instead, and the result says so; `explicit.py` does that for sizes 1 to 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyattn.errors import TinyattnError
from tinyattn.symbolic.derivation import Lines
from tinyattn.symbolic.opbook import CallGraph, weighted_sum
from tinyattn.symbolic.proving import Expander, difference
from tinyattn.symbolic.recognising import OWN
from tinyattn.symbolic.scope import ImpossibleError, NotTraceable, Scope
from tinyattn.symbolic.terms import Expr, Index, Quantity, Term, fresh
from tinyattn.symbolic.tracing import Traced
from tinyattn.symbolic.ways import Formula

ALL_SIZES = "proved for all sizes"
EXPLICIT = "agrees with SymPy at this size"
WRONG = "WRONG"
TOO_MANY_ANSWERS = 32
NO_TRACE = (NotTraceable, TinyattnError, TypeError, AttributeError, ValueError, LookupError, ArithmeticError)


class RuleProof:
    """What is known of the rule of one call.

    Attributes
    ----------
    op : str
    verdict : str
        "proved for all sizes", "agrees with SymPy at this size", or "WRONG".
    why : str
        Why it is not proved for all sizes, or which input's rule is wrong and by how much.
    """

    __slots__ = ("op", "verdict", "why")

    def __init__(self, op: str, verdict: str, why: str = "") -> None:
        self.op, self.verdict, self.why = op, verdict, why

    def __bool__(self) -> bool:
        return self.verdict != WRONG

    def __str__(self) -> str:
        return f"{self.op}: {self.verdict}" + (f" ({self.why})" if self.why else "")


def prove_rule(op: Any, inputs: Sequence[Any], params: Mapping[str, Any]) -> RuleProof:
    """Prove the gradient rule of an operation for the kind of call that the arguments show.

    Parameters
    ----------
    op : Op
    inputs : sequence of array
        A valid call; only its shapes matter for a proof, its numbers where there is none.
    params : mapping of name to anything

    Returns
    -------
    RuleProof
        False if the rule is wrong.
    """
    graph = CallGraph(op, inputs, params)
    try:
        mismatch = _proved(op, graph, params)
        away = mismatch is not None and bool(op.kinks) and _proved(op, graph, params, away=True) is None
        why = "" if mismatch is None else f"the terms of the rule for {mismatch} could not be matched"
    except NO_TRACE as reason:
        mismatch, away, why = "", False, str(reason).splitlines()[0] if str(reason) else type(reason).__name__
    if mismatch is None:
        return RuleProof(op.name, ALL_SIZES)
    proved = away or _proved_at_own_lengths(op, graph, params)
    wrong = _against_formula(op, graph, inputs, params) if proved or mismatch else None
    if wrong is not None:
        return wrong
    if proved:
        return RuleProof(op.name, ALL_SIZES, f"away from the kink: {op.kinks}" if away else "")
    return rule_at_this_size(op, inputs, params, why)


def _proved_at_own_lengths(op: Any, graph: CallGraph, params: Mapping[str, Any]) -> bool:
    """Trace the rule with lengths that nothing else has, growing and falling: it may ask which axis is longer."""
    try:
        return all(_proved(op, graph, params, own=own) is None for own in (OWN, OWN[::-1]))
    except NO_TRACE:
        return False


def _against_formula(op: Any, graph: CallGraph, inputs: Sequence[Any], params: Mapping[str, Any]) -> RuleProof | None:
    """Compare the rule with the derived formula in numbers, where the terms differ."""
    leaves = list(range(len(inputs)))
    formula = Formula(Lines(graph, leaves, seeded=True), seed=lambda shape: np.random.default_rng(7).normal(size=shape))
    right = {leaf: formula.gradient(leaf)[0] for leaf in leaves}
    return _compared(
        op, inputs, params, np.random.default_rng(7).normal(size=graph.nodes[-1].shape), right, "the formula"
    )


def _proved(
    op: Any, graph: CallGraph, params: Mapping[str, Any], away: bool = False, own: Sequence[int] = ()
) -> str | None:
    """Give the first input whose rule is not proved; None if all are, whatever is answered to each question."""
    waiting: list[tuple[bool, ...]] = [()]
    for answers in waiting:
        mismatch, asked = _mismatch(op, graph, params, answers, away, own)
        if mismatch is not None:
            return mismatch
        waiting += [(*asked[:at], not asked[at]) for at in range(len(answers), len(asked))]
        if len(waiting) > TOO_MANY_ANSWERS:
            raise NotTraceable("too many branches on values")
    return None


def _mismatch(
    op: Any, graph: CallGraph, params: Mapping[str, Any], answers: Sequence[bool], away: bool, own: Sequence[int]
) -> tuple[str | None, list[bool]]:
    """Give the first input whose rule is not the derived cotangent, term by term, and the answers that were given."""
    leaves = [node.index for node in graph.nodes if node.op is None]
    lines = Lines(graph, leaves, seeded=True)
    classes = dict.fromkeys(cls for quantity in lines.quantities.values() for cls in quantity.classes)
    parameters = lines.definitions.parameters.values()
    classes |= dict.fromkeys(cls for quantity in parameters for cls in quantity.classes)
    lengths = list(lines.axes.lengths.length)
    for cls, length in zip(classes, own, strict=False):
        lengths[cls] = length
    scope = Scope(lines.heads, lengths, tuple(classes), answers, away, bool(own))
    try:
        return _unlike(op, lines, scope, leaves, params), scope.asked
    except ImpossibleError:
        return None, scope.asked


def _unlike(op: Any, lines: Lines, scope: Scope, leaves: Sequence[int], params: Mapping[str, Any]) -> str | None:
    """Trace the rule in a scope; give the first input for which it is not the derived cotangent."""
    graph, result = lines.graph, lines.quantities[lines.graph.outputs[0]]
    arrays = [Traced.of(scope, lines.quantities[leaf]) for leaf in leaves]
    g = Traced.of(scope, lines.adjoint(graph.outputs[0]))
    y: Any = Traced.of(scope, result)
    values = _traced_params(scope, lines, graph.nodes[-1], params)
    saved = None
    if op.saves:
        y, saved = op.forward(*arrays, *values)
    rules = op.pull(g, y, saved, arrays, tuple(values), [True] * len(arrays))
    out, meaning = lines.forward[-1].out, lines.forward[-1].definition
    expander = Expander(lines.heads, {result: (out, meaning)}, scope.everywhere)
    for leaf, found in zip(leaves, rules, strict=True):
        line = next(each for each in lines.backward if each.node == leaf)
        if found is None:
            found = arrays[0]._new(tuple(tuple(Index(c) for c in axis) for axis in lines.quantities[leaf].axes), ())
        if not _same(lines, expander, found, lines.unnamed(line.expr), line.out, lines.quantities[leaf]):
            return lines.quantities[leaf].name
    return None


def _traced_params(scope: Scope, lines: Lines, node: Any, params: Mapping[str, Any]) -> list[Any]:
    """Give parameters as the rule wants them; masks and other arrays that the definition mentions as formulas."""
    values = []
    for name, value in params.items():
        quantity = lines.definitions.parameters.get((node.index, name))
        if isinstance(value, np.ndarray) and value.ndim and quantity is not None:
            array = Traced.of(scope, quantity)
            values.append(array == 1 if value.dtype == bool else array)
        elif isinstance(value, float) and value != int(value):
            values.append(Traced(scope, (), (Term(factors=(lines.heads.scalar(name, value),)),)))
        else:
            values.append(value)
    return values


def _same(lines: Lines, expander: Expander, found: Traced, expr: Expr, out: tuple[Index, ...], leaf: Quantity) -> bool:
    flat = tuple(index for axis in found.axes for index in axis)
    if [[index.cls for index in axis] for axis in found.axes] != [list(axis) for axis in leaf.axes]:
        raise NotTraceable("the rule's result has another make-up than the input")
    names = dict(zip(flat, out, strict=True))
    mine = tuple(fresh(term, names) for term in lines.unnamed(found.expr))
    labels = {index: label for label, index in enumerate(out)}
    return not difference(expander.expand(mine), expander.expand(expr), labels)


def rule_at_this_size(op: Any, inputs: Sequence[Any], params: Mapping[str, Any], why: str) -> RuleProof:
    """Compare the rule with SymPy's derivative of the definition at the numbers of this call."""
    from tinyattn.symbolic.referee import sympy_gradients

    graph, seed = weighted_sum(op, inputs, params)
    leaves = list(range(len(inputs)))
    right = sympy_gradients(graph, leaves, method="chain")
    wrong = _compared(op, inputs, params, seed, right, "SymPy")
    return wrong if wrong is not None else RuleProof(op.name, EXPLICIT, why)


def _compared(
    op: Any, inputs: Sequence[Any], params: Mapping[str, Any], seed: Any, right: Mapping[int, Any], by: str
) -> RuleProof | None:
    """Run the rule on numbers; None if it gives what it should."""
    arrays = [np.asarray(array, dtype=np.float64) for array in inputs]
    y, saved = op.forward(*arrays, *params.values()) if op.saves else (op(*arrays, *params.values()), None)
    found = op.pull(seed, y, saved, arrays, tuple(params.values()), [True] * len(arrays))
    for leaf, value in enumerate(found):
        name = op.names_of(len(arrays))[leaf]
        mine = np.zeros(arrays[leaf].shape) if value is None else np.asarray(value)
        if mine.shape != arrays[leaf].shape:
            return RuleProof(op.name, WRONG, f"the rule for {name} gives shape {mine.shape}, not {arrays[leaf].shape}")
        gap = np.abs(mine - right[leaf])
        if mine.size and not gap.max() <= 1e-11 * max(1.0, float(np.abs(right[leaf]).max())):
            at = tuple(
                int(each) for each in np.unravel_index(int(np.argmax(np.nan_to_num(gap, nan=np.inf))), gap.shape)
            )
            return RuleProof(
                op.name, WRONG, f"{name}, entry {at}: the rule gives {mine[at]:.6g}, {by} {right[leaf][at]:.6g}"
            )
    return None
