"""Which boxes and arrows a picture of a graph has, before anything is said about their looks.

Casts are passed over, scalars that stem only from constants become one constant, and a graph that is too
large to read is folded: the deepest scopes first, then siblings that are alike, then the middle of the run.
A box keeps the numbers of the nodes it stands for, so nothing is lost, only put away.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from viz import runs, together
from viz.values import number
from viz.words import Words

if TYPE_CHECKING:
    from tinyattn.graph import Graph, Node

Scope = tuple[str, ...]

_ORDER_FREE = {"add", "multiply", "maximum", "minimum"}
_LONGEST_FORMULA = 40
_MOST_RUNS = 40
_TOO_FEW = 8


@dataclass(frozen=True, slots=True)
class Box:
    """One box of the picture: a node, or a fold that stands for several."""

    key: str
    members: tuple[int, ...]
    kind: str  # "parameter", "input", "constant", "op" or "fold"
    title: str
    scope: Scope
    output: bool
    formula: str = ""  # how a constant came about, when it was calculated from others


@dataclass(frozen=True, slots=True)
class Arrow:
    """A value that goes into an operation; ``slot`` is None where a fold hides which operand it is."""

    key: str
    source: str
    target: str
    slot: int | None
    label: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class View:
    """The boxes in graph order, the arrows, and what was folded, each as a few words."""

    graph: Graph
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    folded: tuple[str, ...] = ()


def view_of(
    graph: Graph,
    words: Words,
    *,
    scopes: bool = True,
    max_nodes: int = 60,
    depth: int | None = None,
    fold: Sequence[str] = (),
) -> View:
    """The picture of a graph in boxes and arrows, with at most ``max_nodes`` boxes where folding allows.

    Parameters
    ----------
    graph : Graph
    words : Words
    scopes : bool
        Whether boxes stand in the frames of their scopes.
    max_nodes : int
        How many boxes there may be before more is folded.
    depth : int, optional
        Scopes nested deeper than this are folded; 0 folds all of them.
    fold : sequence of str
        Names of scopes that are folded in any case.
    """
    sources, outputs = _drawn_inputs(graph)
    formulas = _settled_formulas(graph, sources, outputs)
    for index in formulas:
        sources[index] = ()
    seen = _reached(sources, outputs)
    consumers: dict[int, list[int]] = {index: [] for index in seen}
    for index in seen:
        for source, _ in sources[index]:
            consumers[source].append(index)
    boxes = tuple(_box(graph, index, consumers[index], outputs, formulas, scopes) for index in seen)
    arrows = tuple(
        Arrow(f"e{index}-{slot}", f"n{source}", f"n{index}", slot, _slot_label(graph.nodes[index], slot))
        for index in seen
        for source, slot in sources[index]
    )
    view = View(graph, boxes, arrows)
    cut = {box.key: at for box in boxes if (at := _asked(box.scope, depth, fold)) is not None}
    if cut:
        view = _merged(view, together.parted(view, cut), lambda group: _name_at(group, cut))
    return _folded(view, words, max_nodes)


def slot_names(node: Node) -> tuple[str, ...]:
    """The names of an operation's inputs, one a slot, as its record calls them."""
    if node.op is None:
        return ()
    if node.op.variadic:
        return tuple(str(slot) for slot in range(len(node.inputs)))
    return tuple(node.op.input_names)


Sources = list[tuple[tuple[int, int], ...]]


def _drawn_inputs(graph: Graph) -> tuple[Sources, frozenset[int]]:
    """Per node its inputs as (node, slot), and the outputs, with hidden nodes passed over."""
    through = list(range(len(graph.nodes)))
    sources: Sources = []
    for node in graph.nodes:
        sources.append(tuple((through[source], slot) for slot, source in enumerate(node.inputs)))
        if node.hidden and node.inputs:
            through[node.index] = through[node.inputs[0]]
    return sources, frozenset(through[index] for index in graph.outputs)


def _settled_formulas(graph: Graph, sources: Sources, outputs: frozenset[int]) -> dict[int, str]:
    """The calculated scalars that stem only from constants and sizes, with the formula of each.

    They are drawn as one constant.  Where such a scalar is itself the output nothing is folded, because
    then the calculation is what the picture is about.
    """
    known: dict[int, str] = {}
    formulas: dict[int, str] = {}
    for node in graph.nodes:
        inputs = sources[node.index]
        if node.shape != () or node.hidden:
            continue
        if node.kind == "constant":
            known[node.index] = node.name if node.named else number(float(node.value))
        elif node.op_name == "size_of":
            known[node.index] = node.name if node.named else number(float(node.value))
            formulas[node.index] = ""
        elif inputs and all(source in known for source, _ in inputs):
            formulas[node.index] = _formula(node.op_name, [known[source] for source, _ in inputs])
            known[node.index] = node.name if node.named else formulas[node.index]
    return {} if outputs & formulas.keys() else formulas


_SIGNS = {"add": "+", "subtract": "-", "multiply": "·", "divide": "/", "power": "^"}


def _formula(op_name: str, operands: list[str]) -> str:
    if op_name in _SIGNS and len(operands) == 2:
        written = f" {_SIGNS[op_name]} ".join(f"({x})" if " " in x else x for x in operands)
    else:
        written = f"{op_name}({', '.join(operands)})"
    return written if len(written) <= _LONGEST_FORMULA else "…"


def _reached(sources: Sources, outputs: frozenset[int]) -> list[int]:
    waiting, seen = sorted(outputs), set(outputs)
    while waiting:
        for source, _ in sources[waiting.pop()]:
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return sorted(seen)


def _box(
    graph: Graph,
    index: int,
    consumers: list[int],
    outputs: frozenset[int],
    formulas: dict[int, str],
    scopes: bool,
) -> Box:
    node = graph.nodes[index]
    kind = "constant" if index in formulas else node.kind
    scope = node.scope if scopes else ()
    if scopes and kind in ("parameter", "constant") and not scope and index not in outputs:
        scope = _common([graph.nodes[c].scope for c in consumers])  # a weight stands where it is used
    return Box(f"n{index}", (index,), kind, node.name, scope, index in outputs, formulas.get(index, ""))


def _common(scopes: Sequence[Scope]) -> Scope:
    if not scopes:
        return ()
    low, high = min(scopes), max(scopes)
    differs = (at for at, (one, other) in enumerate(zip(low, high)) if one != other)
    return low[: next(differs, min(len(low), len(high)))]


def _slot_label(node: Node, slot: int) -> str:
    """The operand's name where exchanging the operands would change the result, else nothing."""
    if len(node.inputs) < 2 or node.op_name in _ORDER_FREE:
        return ""
    names = slot_names(node)
    return names[slot] if slot < len(names) else str(slot)


# Folding --------------------------------------------------------------------------------------------------


def _folded(view: View, words: Words, max_nodes: int) -> View:
    for depth in range(max((len(box.scope) for box in view.boxes), default=0), 0, -1):
        if len(view.boxes) > max_nodes:
            view = _without_scopes(view, depth, max_nodes)
    view = _without_runs(view, max_nodes)
    if len(view.boxes) > max_nodes:
        head = max(1, (max_nodes - 1) // 2)
        tail = max(1, max_nodes - 1 - head)
        middle = {box.key: "middle" for box in view.boxes[head:-tail]}
        view = _merged(view, middle, lambda _: (words("run fold"), ()))
    told = Counter((box.title, len(box.members)) for box in view.boxes if box.kind == "fold")
    folded = (
        ("" if times == 1 else f"{times} × ") + words("fold told", name=title, count=size)
        for (title, size), times in told.items()
    )
    return replace(view, folded=tuple(folded))


def _without_scopes(view: View, depth: int, max_nodes: int) -> View:
    """Fold the scopes of a depth, and those that are alike; or runs of what is in them, if that tells more."""
    deepest = {box.key: box.scope for box in view.boxes if len(box.scope) == depth}
    folded = _merged(view, together.parted(view, deepest), _scope_name)
    if len(folded.boxes) > max_nodes:
        folded = _merged(folded, together.allowed(folded, _siblings(folded)), _sibling_name)
    if len(folded.boxes) > max_nodes:
        return folded
    runs_only = _without_runs(view, max_nodes)
    told = len(folded.boxes) < len(runs_only.boxes) or len(folded.boxes) < _TOO_FEW
    return runs_only if told and len(runs_only.boxes) <= max_nodes else folded


def _asked(scope: Scope, depth: int | None, fold: Sequence[str]) -> Scope | None:
    """The scope that a box is folded into because the caller asked for it."""
    for at, part in enumerate(scope):
        if part in fold or at == depth:
            return scope[: at + 1]
    return None


def _name_at(group: Sequence[Box], cut: Mapping[str, Scope]) -> tuple[str, Scope]:
    scope = cut[group[0].key]
    return scope[-1], scope[:-1]


Namer = Callable[[Sequence[Box]], tuple[str, Scope]]
"""The title of a fold and the scope it stands in."""


def _scope_name(group: Sequence[Box]) -> tuple[str, Scope]:
    return group[0].scope[-1], group[0].scope[:-1]


def _sibling_name(group: Sequence[Box]) -> tuple[str, Scope]:
    return f"{_stem(group[0].title)} × {len(group)}", group[0].scope


def _stem(title: str) -> str:
    """A title without the number at its end: ``head 1`` and ``blocks[0]`` are one of several."""
    return re.sub(r"[\s·#\[(]*\d+[\])]?$", "", title) or title


def _without_runs(view: View, max_nodes: int) -> View:
    """Fold repeated runs of the same operations, the longest first, as long as there are too many boxes."""
    nodes = view.graph.nodes

    def label(box: Box) -> Hashable:
        if box.output:
            return box.key
        return box.scope, nodes[box.members[0]].op_name if box.kind == "op" else re.sub(r"\d+", "#", box.title)

    def name(box: Box) -> str:
        if box.kind == "op":
            return nodes[box.members[0]].op_name
        return _stem(box.title) if re.search(r"[\s·#\[(]\d+[\])]?$", box.title) else box.title  # norm1 is a name

    for _ in range(_MOST_RUNS):
        found = runs.run_of(view.boxes, view.arrows, label, name) if len(view.boxes) > max_nodes else None
        if found is None:
            return view
        inside, title = found
        scope = _common([box.scope for box in view.boxes if box.key in inside])
        view = _merged(view, dict.fromkeys(inside, title), lambda _, t=title, s=scope: (t, s))  # type: ignore[misc]
    return view


def _merged(view: View, group_of: Mapping[str, Hashable], namer: Namer) -> View:
    """The view with each group of boxes as one; a box alone in its group stays as it is."""
    groups: dict[Hashable, list[Box]] = {}
    for box in view.boxes:
        name = ("group", group_of[box.key]) if box.key in group_of else ("alone", box.key)
        groups.setdefault(name, []).append(box)
    home: dict[str, str] = {}
    boxes: list[Box] = []
    for group in groups.values():
        box = group[0] if len(group) == 1 else _fold(group, namer)
        boxes.append(box)
        home.update((member.key, box.key) for member in group)
    boxes.sort(key=lambda b: b.members[-1])
    return replace(view, boxes=tuple(boxes), arrows=_rejoined(view.arrows, boxes, home))


def _fold(group: Sequence[Box], namer: Namer) -> Box:
    members = tuple(sorted(index for box in group for index in box.members))
    title, scope = namer(group)
    return Box(f"f{members[0]}", members, "fold", title, scope, any(box.output for box in group))


def _rejoined(arrows: Sequence[Arrow], boxes: Sequence[Box], home: dict[str, str]) -> tuple[Arrow, ...]:
    """Arrows between the new boxes; those that begin or end at a fold are bundled."""
    folds = {box.key for box in boxes if box.kind == "fold"}
    kept: list[Arrow] = []
    bundles: Counter[tuple[str, str]] = Counter()
    for arrow in arrows:
        source, target = home[arrow.source], home[arrow.target]
        if source == target:
            continue
        if source in folds or target in folds:
            bundles[source, target] += arrow.count
        else:
            kept.append(replace(arrow, source=source, target=target))
    for (source, target), count in bundles.items():
        label = f"×{count}" if count > 1 else ""
        kept.append(Arrow(f"e{source}-{target}", source, target, None, label, count))
    return tuple(kept)


def _siblings(view: View) -> dict[str, Hashable]:
    """Folds that stand beside each other, do the same operations and differ only by a number in the name."""
    kinds: dict[str, Hashable] = {}
    for box in view.boxes:
        if box.kind == "fold":
            ops = Counter(view.graph.nodes[i].op_name for i in box.members)
            kinds[box.key] = (box.scope, re.sub(r"\d+", "#", box.title), tuple(sorted(ops.items())))
    return kinds
