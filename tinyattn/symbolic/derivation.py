"""From a recorded loss to the lines of its forward and backward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinyattn.errors import GraphError
from tinyattn.symbolic.auxiliary import Renaming, named, repeated
from tinyattn.symbolic.canonical import Heads
from tinyattn.symbolic.definition import Element, walk
from tinyattn.symbolic.pulling import contributions, placed
from tinyattn.symbolic.reading import Axes, Definitions
from tinyattn.symbolic.terms import ONE, Expr, Factor, Head, Index, Quantity, Term, mentioned
from tinyattn.symbolic.tidying import Pattern, tidy


class Line:
    """One line of a derivation: a tensor, its indices, and the formula of an entry.

    Attributes
    ----------
    quantity : Quantity
        What is defined.
    out : tuple of Index
        Its indices.
    expr : Expr
        The formula as it is printed.
    node : int
        The node of the graph that the line belongs to.
    absorbed : tuple of int
        Unnamed nodes that were written into this line.
    rule : str
        Forward the operation's name; backward which rule gave the line, in words.
    phase : {"forward", "backward"}
        Which pass it belongs to.
    """

    __slots__ = ("absorbed", "definition", "expr", "node", "out", "phase", "quantity", "rule")

    def __init__(
        self, quantity: Quantity, out: tuple[Index, ...], expr: Expr, node: int, rule: str, phase: str,
        absorbed: tuple[int, ...] = (), definition: Expr | None = None,
    ) -> None:  # fmt: skip
        self.quantity, self.out, self.expr, self.node, self.rule, self.phase = quantity, out, expr, node, rule, phase
        self.absorbed = absorbed
        self.definition = expr if definition is None else definition


class Lines:
    """All lines of a derivation, forward and backward.

    Parameters
    ----------
    graph : Graph
        The record; its first output is the loss.
    wrt : sequence of int
        The nodes to derive by.
    seeded : bool
        Whether the cotangent of the output is kept as a name even where the output is one number, for which it is 1.

    Attributes
    ----------
    given : dict of int to str
        Nodes whose operation the index notation cannot express, and why. Their values are taken as given, like those
        of leaves.
    blocked : dict of int to int
        Nodes whose gradient would have to come back through such a node, and which one. They have no backward line.
    """

    def __init__(self, graph: Any, wrt: Sequence[int], seeded: bool = False) -> None:
        self.graph, self.wrt, self.seeded = graph, tuple(wrt), seeded
        self.heads = Heads()
        self.output = graph.outputs[0]
        wanted = _ancestors(graph, self.output)
        self.axes = Axes(graph, wanted)
        self.reached = set(self.wrt)  # and what depends on them
        names = _display_names(graph, wanted)
        self.quantities = {index: self._quantity(index, names[index]) for index in wanted}
        self.definitions = Definitions(self.axes, self.quantities, self.heads)
        self.forward: list[Line] = []
        self.absorbed_by: dict[int, list[int]] = {}
        self.given: dict[int, str] = {}
        self.blocked: dict[int, int] = {}
        self._read(wanted)
        self._block(wanted)
        self.adjoints: dict[int, Quantity] = {}
        self.names: dict[int, str] = {}
        self.backward: list[Line] = []
        self._derive()
        self.auxiliary: list[Line] = []
        self.renamed: dict[Head, Head] = {}
        self._name_repeated()

    def _quantity(self, index: int, name: str) -> Quantity:
        axes = tuple([self.axes.lengths.atoms(axis) for axis in self.axes.nodes[index]])
        return Quantity(name, "value" if index in self.reached else "constant", index, axes)

    def _read(self, wanted: Sequence[int]) -> None:
        """Read every definition; write small unnamed ones into their consumers."""
        uses, reader = self._uses(wanted)
        for index in wanted:
            node = self.graph.nodes[index]
            if node.op is None:
                continue
            try:
                out, expr = self.definitions.of(index)
            except GraphError as reason:
                self.given[index] = str(reason)
                if not self.reached.isdisjoint(node.inputs):
                    self.reached.add(index)
                    self.quantities[index].kind = "value"
                continue
            if any(head.varies for term in expr for head, _, _ in term.factors):
                self.reached.add(index)
                self.quantities[index].kind = "value"
            swallowed = [each for each in node.inputs if each in self.definitions.inlined]
            absorbed = [deep for each in swallowed for deep in (*self.absorbed_by.get(each, ()), each)]
            once = uses.get(index) == 1
            small = _is_length(expr) or (not node.named and (_is_plain(expr) or (once and _small(expr))))
            small = small or (once and _is_sum_of_a_mean(self.graph, node, reader[index]))
            if small and index != self.output and index not in self.wrt:
                self.definitions.inlined[index] = (out, expr)
                self.absorbed_by[index] = absorbed
                continue
            shown = tidy(self.heads, expr, out, []) if _worth_tidying(expr) else expr
            quantity = self.quantities[index]
            line = Line(quantity, out, shown, index, node.op_name, "forward", tuple(dict.fromkeys(absorbed)), expr)
            self.forward.append(line)

    def _uses(self, wanted: Sequence[int]) -> tuple[dict[int, int], dict[int, Any]]:
        """Count how often definitions mention each node, and give the last to do so.

        Softmax, above and below, mentions its input twice; a length that is read off mentions no entry.
        """
        uses: dict[int, int] = {}
        reader: dict[int, Any] = {}
        for index in wanted:
            node = self.graph.nodes[index]
            if node.op is None:
                continue
            mentioned_names = [part.name for part in walk(self.axes.fitted[index].value) if isinstance(part, Element)]
            for name, source in zip(node.op.names_of(len(node.inputs)), node.inputs, strict=True):
                if name in mentioned_names:
                    uses[source] = uses.get(source, 0) + mentioned_names.count(name)
                    reader[source] = node
        return uses, reader

    def _block(self, wanted: Sequence[int]) -> None:
        """Note which gradients cannot be derived; refuse where none is left."""
        for index in reversed(wanted):
            if index in self.reached and (index in self.given or index in self.blocked):
                through = index if index in self.given else self.blocked[index]
                for source in self.graph.nodes[index].inputs:
                    if source in self.reached:
                        self.blocked.setdefault(source, through)
        if self.output in self.given:
            raise GraphError(self.given[self.output])
        if self.wrt and all(index in self.blocked for index in self.wrt):
            raise GraphError(self.given[self.blocked[self.wrt[0]]])

    def free(self) -> list[int]:
        """Give what the derivation is by: the wanted nodes that have a line, and given values that depend on others."""
        every = dict.fromkeys((*self.wrt, *(index for index in self.given if index in self.reached)))
        return [index for index in every if index not in self.blocked]

    def length_name(self, cls: int) -> str:
        """Give the name of a size class."""
        return self.names.get(cls, f"n{cls}")

    def adjoint(self, index: int) -> Quantity:
        """Give the cotangent of a node."""
        if index not in self.adjoints:
            value = self.quantities[index]
            self.adjoints[index] = Quantity(value.name, "adjoint", index, value.axes)
        return self.adjoints[index]

    def _derive(self) -> None:
        """Go backward through the lines, collecting what each tensor gets from each of its consumers."""
        gets: dict[int, list[tuple[Line, Term, tuple[Index, ...], frozenset[str]]]] = {}
        places: dict[int, tuple[Index, ...]] = {}
        for line in reversed(self.forward):
            index = line.node
            if index not in self.reached or index in self.blocked:
                continue
            if index != self.output:
                if index not in gets:
                    continue
                self._finish(index, gets, places)
            seed = Term(factors=self.seed(line)) if self.seed(line) else ONE
            for quantity, at, term, ways in contributions(self.heads, line.definition, seed):
                source = quantity.node
                if source not in places:
                    places[source] = tuple([Index(cls) for cls in quantity.classes])
                gets.setdefault(source, []).append((line, placed(term, at, places[source]), places[source], ways))
        done = {line.node for line in self.backward}
        for index in self.free():
            if index not in done and index != self.output:
                self._finish(index, gets, places)

    def seed(self, line: Line) -> tuple[Factor, ...]:
        """Give the cotangent of an entry of a line; nothing, that is 1, for a loss of one number."""
        if line.node == self.output and not line.out and not self.seeded:
            return ()
        return ((self.heads.of(self.adjoint(line.node)), line.out, 1),)

    def _finish(self, index: int, gets: Mapping[int, Any], places: Mapping[int, tuple[Index, ...]]) -> None:
        """Write the line of a cotangent from everything that it gets."""
        entries = gets.get(index, [])
        value = self.quantities[index]
        out = places.get(index) or tuple([Index(cls) for cls in value.classes])
        consumers = list({line.node: line for line, _, _, _ in entries}.values())
        patterns = [found for line in consumers if (found := self._pattern(line)) is not None]
        expr = tidy(self.heads, tuple([term for _, term, _, _ in entries]), out, patterns)
        ways = sorted(frozenset().union(*(ways for _, _, _, ways in entries))) if entries else []
        rule = ", ".join(ways) or ("swap" if entries else "not used by the result")
        if len(consumers) > 1:
            rule = "fan-out: add the contributions" + ("" if rule == "swap" else f" ({rule})")
        self.backward.append(Line(self.adjoint(index), out, expr, index, rule, "backward"))

    def _name_repeated(self) -> None:
        """Give names to what occurs several times; the lines that say what they mean stand before their first use."""
        every = [*self.forward, *self.backward]
        found = repeated(line.expr for line in every)
        if not found:
            return
        own = {line.expr[0].factors[0][0]: line for line in self.forward if _is_one_factor(line)}
        table = {head: self.heads.of(own[head].quantity) for head in found if head in own}
        taken = {quantity.name for quantity in self.quantities.values()}
        auxiliaries = list(named([head for head in found if head not in own], taken, self.output))
        table.update((each.head, self.heads.of(each.quantity)) for each in auxiliaries)
        renaming = Renaming(self.heads, table)
        for line in every:
            if line.phase == "backward" or not _is_one_factor(line) or line.expr[0].factors[0][0] not in own:
                line.expr = renaming.of(line.expr)
        for each in auxiliaries:
            expr = renaming.inside(each.head)
            self.auxiliary.append(Line(each.quantity, each.head.params, expr, self.output, "where", "forward"))
        self.renamed = {name: head for head, name in table.items()}

    def unnamed(self, expr: Expr) -> Expr:
        """Put the meanings back in the place of the names that were given to repeated parts."""
        return Renaming(self.heads, self.renamed).of(expr) if self.renamed else expr

    def in_order(self) -> tuple[list[Line], list[Line]]:
        """Give the forward lines, each name before its first use, and the backward lines."""
        if not self.auxiliary:
            return self.forward, self.backward
        forward: list[Line] = []
        waiting = {line.quantity: line for line in self.auxiliary}

        def place(line: Line) -> None:
            for quantity in mentioned(line.expr):
                if quantity in waiting:
                    needed = waiting.pop(quantity)
                    needed.node = line.node
                    place(needed)
                    forward.append(needed)

        for line in self.forward:
            place(line)
            forward.append(line)
        for line in self.backward:
            place(line)
        return forward, self.backward

    def _pattern(self, line: Line) -> Pattern | None:
        return Pattern.of(line.quantity, line.out, line.definition)


def _is_one_factor(line: Line) -> bool:
    """Say whether a line is nothing but one factor at its own indices, such as a maximum."""
    if len(line.expr) != 1 or len(line.expr[0].factors) != 1:
        return False
    term = line.expr[0]
    head, at, power = term.factors[0]
    return at == line.out and power == 1 == term.coef and not term.sizes and not term.dummies and head.kind != "ref"


def _ancestors(graph: Any, output: int) -> list[int]:
    found, waiting = {output}, [output]
    while waiting:
        for source in graph.nodes[waiting.pop()].inputs:
            if source not in found:
                found.add(source)
                waiting.append(source)
    return sorted(found)


def _display_names(graph: Any, wanted: Sequence[int]) -> dict[int, str]:
    """Give every node a name for print: the learner's own, a number as itself, else T1, ... (A1, ... for leaves)."""
    taken = {graph.nodes[index].name for index in wanted if graph.nodes[index].named}
    names: dict[int, str] = {}
    counts = {"T": 0, "A": 0}
    for index in wanted:
        node = graph.nodes[index]
        if node.named:  # a running number goes below: H·2 would read as twice H
            below = node.name.replace("·", "_")
            names[index] = node.name if below in taken else below
            continue
        if node.kind == "constant" and node.shape == ():
            names[index] = f"{float(node.value):.4g}"
            continue
        stem = "A" if node.op is None else "T"
        while True:
            counts[stem] += 1
            if f"{stem}{counts[stem]}" not in taken:
                break
        names[index] = f"{stem}{counts[stem]}"
    return names


def _is_length(expr: Expr) -> bool:
    """Say whether a node is nothing but a number made of lengths; it is written out wherever it is used."""
    return len(expr) == 1 and not expr[0].factors and not expr[0].dummies


def _is_sum_of_a_mean(graph: Any, node: Any, reader: Any) -> bool:
    """Say whether a sum stands inside of `mean`: the same line of the learner's code divides it by a length."""
    if node.op_name != "sum" or reader.op_name != "divide" or reader.inputs[0] != node.index:
        return False
    place = (node.file, node.line, node.function)
    return graph.nodes[reader.inputs[1]].op_name == "size_of" and place == (reader.file, reader.line, reader.function)


def _is_plain(expr: Expr) -> bool:
    """Say whether an unnamed node is one array with a factor or turned over, written out wherever it is used."""
    return (
        len(expr) == 1
        and not expr[0].dummies
        and all(head.kind in _PLAIN and power in (1, -1) for head, _, power in expr[0].factors)
        and _arrays(expr[0]) <= 1
    )


def _small(expr: Expr) -> bool:
    """Say whether an unnamed node that is used once reads better inside of its reader than on a line of its own.

    Such are a product of up to three arrays, a sum of two, and a power of these: `c / √(v + eps)`.
    """
    if len(expr) == 1 and len(expr[0].factors) == 1 and expr[0].factors[0][0].kind == "sum":
        (inside,) = expr[0].factors[0][0].inners
        return not expr[0].dummies and len(inside) == 2 and _small(inside)
    if not all(head.kind in _PLAIN for term in expr for head, _, _ in term.factors):
        return False
    if len(expr) == 1:
        return _arrays(expr[0]) <= 3
    return len(expr) == 2 and all(len(term.factors) <= 1 and not term.dummies for term in expr)


_PLAIN = ("ref", "scalar", "cond")


def _arrays(term: Term) -> int:
    return sum(1 for head, at, _ in term.factors if at and head.kind == "ref")


def _worth_tidying(expr: Expr) -> bool:
    return any(head.kind == "fn" and head.data == "exp" for term in expr for head, _, _ in term.factors)
