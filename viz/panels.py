"""What the page shows of each step, as plain data: tables of numbers, formulas, the source line, the worked entry.

Numbers become text here, once, so that page and listing show the same; the page's script only puts them in
place.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np

from viz import numeric, story, tables, values, worked
from viz.formulas import Formula, RuleBook
from viz.labels import visible
from viz.trace import Step, Trace, seed_of
from viz.view import slot_names

MOST_ROWS = MOST_COLUMNS = 8
"""The page shows at most so much of an array, and a summary of the rest."""

DIGITS = 4
"""Digits of the largest entry; the others have as many decimals."""

_MOST_CROSSING = 4
_MOST_MOVES = 150_000  # so many operations, times two, may the numeric derivatives run again


class Panels:
    """The steps of a trace with everything that the page needs, each array and formula once.

    Attributes
    ----------
    tables : list
        ``{"s": shape, "r": rows of numbers, ...}``, referred to by number.
    formulas : list
        ``{"m": MathML, "mi": MathML in index form}`` or ``{"t": text}``, referred to by number.
    steps : list of dict
    """

    def __init__(self, trace: Trace) -> None:
        self.trace, self.graph = trace, trace.graph
        self.book = RuleBook(self.graph)
        self.tables: list[dict[str, Any]] = []
        self.formulas: list[dict[str, str]] = []
        self._seen: dict[str, int] = {}
        self._work: dict[int, worked.Worked | None] = {}
        leaves = sum(step.kind == "check" for step in trace.steps)
        self._moves = max(2, min(numeric.MOST_ENTRIES, _MOST_MOVES // max(1, leaves * len(self.graph.nodes))))
        self.steps = [self._step(step) for step in trace.steps]

    # What is shared -----------------------------------------------------------------------------------

    def _table(self, array: values.Array, scale: str = "signed") -> int:
        return self._once(self.tables, table_data(array, scale))

    def _definition(self, definition: str) -> list[int]:
        return [self._once(self.formulas, {"t": definition})] if definition else []

    def _formula(self, formula: Formula) -> list[int]:
        if not formula.index:
            return []
        return [self._once(self.formulas, {"m": formula.matrix_math, "mi": formula.index_math})]

    def _once(self, shelf: list[dict[str, Any]], data: dict[str, Any]) -> int:
        key = json.dumps([id(shelf), data])
        if key not in self._seen:
            self._seen[key] = len(shelf)
            shelf.append(data)
        return self._seen[key]

    # Steps --------------------------------------------------------------------------------------------

    def _step(self, step: Step) -> dict[str, Any]:
        comparison = numeric.compare(self.graph, step.node, self._moves) if step.kind == "check" else None
        made: dict[str, Any] = {"k": step.kind, "n": step.node, "say": story.sentence(self.trace, step, comparison)}
        if step.kind == "pull":
            made |= {"t": step.target, "slot": step.slot, "no": step.number, "of": step.of}
        if ask := story.question(self.trace, step):
            made["ask"] = ask
        if comparison is not None:
            made["bad"] = not comparison.agrees
        fill = getattr(self, f"_{step.kind}")
        made["p"], made["f"] = fill(step, comparison) if step.kind == "check" else fill(step)
        if step.kind == "pull" and (work := self._worked(step)) is not None:
            made["w"] = work
        return made

    def _forward(self, step: Step) -> tuple[list[Any], list[int]]:
        node = self.graph.nodes[step.node]
        box = self.trace.box[self.trace.home[node.index]]
        if box.kind == "fold":
            return self._fold(list(box.members)), []
        value = self._value(node.index)
        if node.op is None or box.kind == "constant":
            return [["", "value", visible(node.name), value]], []
        shown = self._operands(step.node, range(len(node.inputs)))
        rules = self.book.of(step.node)
        assert rules is not None
        formulas = self._formula(rules.forward)
        return [*shown, ["→", "result", visible(node.name), value]], [*formulas, *self._definition(rules.definition)]

    def _fold(self, members: list[int]) -> list[Any]:
        """What goes into a fold, and what comes out of it."""
        inside, graph = set(members), self.graph
        into = dict.fromkeys(s for m in members for s in graph.nodes[m].inputs if s not in inside)
        outside = {m for m in members if any(reader not in inside for reader, _ in graph.consumers(m))}
        leaving = sorted(outside | (inside & set(graph.outputs)))

        def part(sign: str, key: str, index: int) -> list[Any]:
            return [sign, key, visible(graph.nodes[index].name), self._value(index)]

        shown = [part("", "operand", index) for index in list(into)[:_MOST_CROSSING]]
        return shown + [part("→", "result", index) for index in leaving[:_MOST_CROSSING]]

    def _seed(self, step: Step) -> tuple[list[Any], list[int]]:
        assert step.value is not None
        return [["", "seed", visible(self.graph.nodes[step.node].name), self._table(step.value)]], []

    def _pull(self, step: Step) -> tuple[list[Any], list[int]]:
        node, target = self.graph.nodes[step.node], self.graph.nodes[step.target]
        assert step.value is not None
        rules = self.book.of(step.node)
        rule = rules.backward.get(step.slot, Formula()) if rules is not None else Formula()
        upstream = ["", "upstream", visible(node.name), self._table(np.asarray(node.grad))]
        work = self._worked_out(step)
        if work is not None and work.diagonal is not None:
            slope = f"∂{visible(node.name)}/∂{visible(target.name)}"
            local = [["⊙", "slope", slope, self._table(work.diagonal)]]
        else:
            local = self._read_by(step, rule)
        result = ["=", "contribution", visible(target.name), self._table(step.value)]
        formulas = self._formula(rule) or self._definition(rules.definition if rules is not None else "")
        return [upstream, *local, result], formulas

    def _read_by(self, step: Step, rule: Formula) -> list[Any]:
        """The operands and the result, as far as the rule reads them."""
        node = self.graph.nodes[step.node]
        if not rule.index:
            return self._operands(step.node, range(len(node.inputs)))
        read = [
            slot
            for slot, source in enumerate(node.inputs)
            if _mentions(rule.index, self.graph.nodes[source].name) and source != step.target
        ]
        shown = self._operands(step.node, read, "rule")
        if _mentions(rule.index, node.name):
            shown.append(["", "result", visible(node.name), self._value(node.index)])
        return shown

    def _sum(self, step: Step) -> tuple[list[Any], list[int]]:
        target, name = self.graph.nodes[step.target], visible(self.graph.nodes[step.target].name)
        parts: list[Any] = []
        if step.target in self.trace.seeded:
            parts.append(["", "seed", name, self._table(seed_of(self.graph, step.target))])
        for contribution in self.trace.arriving.get(step.target, ()):
            source = visible(self.graph.nodes[contribution.node].name)
            parts.append(["+" if parts else "", "part", source, self._table(contribution.value)])
        return [*parts, ["=", "gradient", name, self._table(np.asarray(target.grad))]], []

    def _leaf(self, step: Step) -> tuple[list[Any], list[int]]:
        node = self.graph.nodes[step.target]
        name = visible(node.name)
        value, gradient = self._value(node.index), self._table(np.asarray(node.grad))
        return [["", "value", name, value], ["", "gradient", name, gradient]], []

    def _check(self, step: Step, comparison: numeric.Comparison) -> tuple[list[Any], list[int]]:
        name = visible(self.graph.nodes[step.node].name)
        gradient = self._table(np.asarray(self.graph.nodes[step.node].grad))
        return [["", "gradient", name, gradient], ["≈", "numeric", name, self._table(comparison.numeric)]], []

    def _operands(self, index: int, slots: Any, caption: str = "operand") -> list[Any]:
        node, names = self.graph.nodes[index], slot_names(self.graph.nodes[index])
        shown = []
        for slot in slots:
            source = node.inputs[slot]
            own = visible(self.graph.nodes[source].name)
            letter = names[slot] if slot < len(names) and len(node.inputs) > 1 else ""
            said = f"{letter} = {own}" if letter and letter != own else own
            shown.append(["", caption, said, self._value(source)])
        return shown

    def _value(self, index: int) -> int:
        node = self.graph.nodes[index]
        return self._table(node.value, tables.scale_of(node.op_name, node.value))

    def _worked_out(self, step: Step) -> worked.Worked | None:
        if id(step) not in self._work:
            assert step.value is not None
            self._work[id(step)] = worked.worked_out(self.graph, step.node, step.slot, step.value)
        return self._work[id(step)]

    def _worked(self, step: Step) -> dict[str, Any] | None:
        """The worked entries of a pull, where upstream and contribution are shown entry by entry."""
        node = self.graph.nodes[step.node]
        assert step.value is not None
        if not (_whole(node.shape) and _whole(step.value.shape)):
            return None
        work = self._worked_out(step)
        if work is None:
            return None
        terms = {
            str(entry): " ".join(f"{out}*{values.number(slope, 3)}" for out, slope in found)
            for entry, found in work.entries.items()
        }
        return {"e": terms, "c": work.chosen}


def _mentions(formula: str, name: str) -> bool:
    """Whether a name stands in a formula as a whole word, without the bar of a gradient."""
    plain = name.replace("·", "")
    at = formula.find(plain)
    while at >= 0:
        before, after = formula[at - 1 : at], formula[at + len(plain) : at + len(plain) + 1]
        if not (before.isalnum() or before == "\u0305") and not (after.isalnum() or after in ("\u0304", "\u0305")):
            return True
        at = formula.find(plain, at + 1)
    return False


def _whole(shape: tuple[int, ...]) -> bool:
    rows, columns = values.table_shape(shape)
    return rows <= MOST_ROWS and columns <= MOST_COLUMNS


def table_data(array: values.Array, scale: str = "signed") -> dict[str, Any]:
    """An array as the page gets it: rows of finished numbers, and a summary where it is cut off.

    >>> import numpy as np
    >>> table_data(np.array([[0.5, -1.0]]))
    {'s': [1, 2], 'r': ['0.500 -1.000']}
    """
    rows, columns = values.table_shape(array.shape)
    data: dict[str, Any] = {"s": list(array.shape)}
    if scale != "signed":
        data["h"] = scale
    if array.size == 0:
        return data
    matrix = array.reshape(rows, columns)[:MOST_ROWS, :MOST_COLUMNS]
    if array.ndim == 0:
        written = [[values.number(float(array))]]
    else:
        written = values.cells(matrix, DIGITS - 1 if scale == "share" else None, DIGITS)
    data["r"] = [" ".join(row) for row in written]
    if len(array.shape) > 2:
        leading = [",".join(map(str, at)) for at in product(*map(range, array.shape[:-1]))]
        data["i"] = leading[:MOST_ROWS]
    if rows > MOST_ROWS or columns > MOST_COLUMNS:
        data["cut"] = values.Summary.of(array).parts()
    return data


