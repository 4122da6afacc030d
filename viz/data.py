"""A picture as plain data, for other programs: JSON with a format number.

Numbers are exact where an array is small, else summarised; nan and the infinities are words, because JSON
has none.  Files are named without their folder, so that the text is the same on every machine.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from viz import values
from viz.view import View, slot_names

if TYPE_CHECKING:
    from tinyattn.graph import Node
    from viz.formulas import RuleBook

FORMAT = 1
"""Raised when a reader of the old form would misread the new one."""

MOST_ENTRIES = 1000


def written(data: dict[str, Any]) -> str:
    r"""The JSON text: one key order, readable characters, one line end at the end.

    >>> written({"format": 1, "name": "查询"})
    '{\n "format": 1,\n "name": "查询"\n}\n'
    """
    text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False, default=str) + "\n"
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is no character


def graph_data(view: View, title: str, book: RuleBook | None = None) -> dict[str, Any]:
    """Nodes, edges by slot, and how the picture folds them."""
    graph = view.graph
    return {
        "format": FORMAT,
        "kind": "graph",
        "title": title,
        "nodes": [_node(node) | _formulas(node.index, book) for node in graph.nodes],
        "outputs": list(graph.outputs),
        "boxes": [
            {"id": b.key, "kind": b.kind, "title": b.title, "nodes": list(b.members), "scope": list(b.scope)}
            for b in view.boxes
        ],
        "arrows": [
            {"id": a.key, "from": a.source, "to": a.target, "slot": a.slot, "count": a.count}
            for a in view.arrows
        ],
        "folded": list(view.folded),
    }


def _formulas(index: int, book: RuleBook | None) -> dict[str, Any]:
    rules = book.of(index) if book is not None else None
    if rules is None:
        return {}
    by_slot = {str(slot): rule.index for slot, rule in rules.backward.items()}
    return {"definition": rules.definition, "formula": rules.forward.index, "rules": by_slot}


def array_data(array: values.Array) -> dict[str, Any]:
    """An array as nested lists, or its summary when it is large."""
    if array.size <= MOST_ENTRIES:
        return {"entries": values.jsonable(array)}
    found = values.Summary.of(array)
    finite = {"min": found.low, "mean": found.mean, "max": found.high}
    shown = {key: x if x == x else "nan" for key, x in finite.items()}
    return {"summary": {**shown, "nan": found.nans, "inf": found.infinities}}


def _node(node: Node) -> dict[str, Any]:
    gradient: dict[str, Any] = {"state": node.gradient_state}
    if node.gradient_state == "computed" and node.grad is not None:
        gradient |= array_data(node.grad)
    names = slot_names(node)
    return {
        "id": f"n{node.index}",
        "name": node.name,
        "named": node.named,
        "kind": node.kind,
        "op": node.op_name,
        "inputs": [
            {"from": f"n{source}", "slot": slot, "operand": names[slot] if slot < len(names) else str(slot)}
            for slot, source in enumerate(node.inputs)
        ],
        "params": {key: _plain(value) for key, value in node.params.items()},
        "shape": list(node.shape),
        "dtype": str(node.dtype),
        "scope": list(node.scope),
        "hidden": node.hidden,
        "value": array_data(node.value),
        "gradient": gradient,
        "file": os.path.basename(node.file or ""),
        "line": node.line,
    }


def _plain(value: object) -> Any:
    """A parameter of an operation as something JSON can hold."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return values.jsonable(np.asarray(value))
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return array_data(value)
    return str(value).split(" at 0x")[0]
