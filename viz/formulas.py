"""The formula of a node and the rule of each of its operands, under the learner's names.

They are derived from the operation's definition by :mod:`tinyattn.symbolic`; where that has no answer the
definition itself is what is shown.  Names that are no words are replaced by the op's own letters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from viz import view as viewing

if TYPE_CHECKING:
    from tinyattn.graph import Graph, Node

LONGEST_NAME = 12


@dataclass(frozen=True, slots=True)
class Formula:
    """One formula in the notations it has: text and MathML, matrix and index form."""

    matrix: str = ""
    index: str = ""
    matrix_math: str = ""
    index_math: str = ""

    @property
    def text(self) -> str:
        """The matrix form where there is one, else the index form."""
        return self.matrix or self.index


@dataclass(frozen=True, slots=True)
class Rules:
    """What is known of one node: its formula, its textbook definition, the rule of each operand by slot."""

    forward: Formula
    definition: str
    backward: dict[int, Formula]


class RuleBook:
    """The formulas of the nodes of a graph; equal calls are derived once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._known: dict[Any, Rules] = {}

    def of(self, index: int) -> Rules | None:
        """The formulas of a node; None for a leaf."""
        node = self.graph.nodes[index]
        if node.op is None:
            return None
        sources = [self.graph.nodes[source] for source in node.inputs]
        names = [_name(s, slot) for s, slot in zip(sources, viewing.slot_names(node))]
        own = _name(node, "y")
        slots = [slot for slot, source in enumerate(sources) if source.requires_grad and node.requires_grad]
        key = (node.op.name, own, tuple(names), tuple(s.shape for s in sources), tuple(slots), _params(node))
        if key not in self._known:
            self._known[key] = _rules(node, sources, names, own, slots)
        return self._known[key]


def _params(node: Node) -> str:
    return repr({key: getattr(value, "tolist", lambda v=value: v)() for key, value in node.params.items()})


def _name(node: Node, otherwise: str) -> str:
    """A node's name if it can stand in a formula, else a letter."""
    name = node.name.replace("·", "")
    plain = name.isidentifier() and len(name) <= LONGEST_NAME
    if node.kind == "constant" and not node.named and node.value.size == 1:
        return node.name if node.name.replace(".", "", 1).lstrip("-").isdigit() else otherwise
    return name if plain else (otherwise if otherwise.isidentifier() else f"x{otherwise}")


def _rules(node: Node, sources: list[Node], names: list[str], own: str, slots: list[int]) -> Rules:
    """Derive the rules of a single call, with its operands under their names."""
    op = node.op
    assert op is not None
    definition = op.definition_text(tuple(source.shape for source in sources), node.params)
    try:
        from tinyattn.symbolic.deriving import Derivation
        from tinyattn.symbolic.opbook import CallGraph

        call = CallGraph(op, [source.value for source in sources], node.params)
        for leaf, name in zip(call.nodes, [*names, own]):
            leaf.name = name
        if node.shape == ():
            _go_on(call)
        steps = Derivation(call, slots or [0]).steps
    except Exception:  # the symbolic side knows not every operation; the definition is always there
        return Rules(Formula(), definition, {})
    last = len(sources)
    forward = next((_formula(step) for step in steps if step.phase == "forward" and step.node == last), Formula())
    backward = {step.node: _formula(step) for step in steps if step.phase == "backward" and step.node in slots}
    return Rules(forward, definition, backward)


def _go_on(call: Any) -> None:
    """Let a number not be the end: the cotangent of the end is 1, and would be missing in the rules."""
    from tinyattn.ops import REGISTRY

    make, number = type(call.nodes[0]), len(call.nodes)
    factor = make(number, "then", 1.0, None, (), {})
    end = make(number + 1, "end", call.nodes[-1].value, REGISTRY["multiply"], (number - 1, number), {})
    call.nodes = (*call.nodes, factor, end)
    call.outputs = (end.index,)


def _formula(step: Any) -> Formula:
    from tinyattn.symbolic.layout import mathml, text

    matrix, matrix_math = "", ""
    if step.matrix is not None:
        matrix, matrix_math = text(step.matrix), _barred(mathml(step.matrix))
    return Formula(matrix, text(step.index), matrix_math, _barred(mathml(step.index)))


_LONG_BAR = re.compile(r'<mover accent="true">(<mi>[^<]{2,}</mi>)<mo stretchy="true">¯</mo></mover>')


def _barred(math: str) -> str:
    """Bars over whole words as a line of the page: browsers stretch the sign only with fonts made for it."""
    return _LONG_BAR.sub(r'<mrow class="bar">\1</mrow>', math)
