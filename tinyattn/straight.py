"""A backward pass that comes again, written out in a straight line.

A training loop records the same graph in every step, only with other numbers.  `quick_walk` finds out each time anew
whose turn it is and where a cotangent belongs; on small arrays that costs more than the rules themselves.  So when a
pass from one place in the learner's code has come a few times, it is written out as Python, one line for each
vector-Jacobian product.  On arrays of 4 x 8 that takes a node with two inputs from 0.95 to 0.5 microseconds.

The text begins with a condition that holds for the same graph only: the same operations on the same inputs, shapes
and dtypes, made in the same order.  Where it does not hold, `quick_walk` does the work as before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np

from tinyattn.kernels.small import FEW, all_finite, by_sign
from tinyattn.ops import REGISTRY, Op, reductions
from tinyattn.ops.elementwise import relu
from tinyattn.ops.helpers import care
from tinyattn.ops.linear import matmul
from tinyattn.quick import quick_walk
from tinyattn.tensor import Tensor

Found = tuple[dict[Tensor, Any], int, bool]  # cotangents of the leaves, the oldest result, whether all are finite

PATIENCE = 3  # so many passes in a row that no text fits, until one is written
WORTH = 20  # nodes that are written out at the cost of one pass over them: a long graph has to come more often
LONGEST = 600  # nodes
MOST = 4  # so many texts that did not last are written for one place: then the graph there is always a new one
LASTED = 50  # passes with one text
PLACES = 64
ADVANCE = 5000  # nodes that may be written out; each more is earned by EARNED nodes that the loop walks over, because
EARNED = 1000  # it costs as much as 30 of them: places without end, such as one for each length, must not be a loss


class LeftToTheLoop(Exception):
    """A graph is not written out."""


def stretched(output: Tensor) -> Callable[[Tensor, Any], Found | None] | None:
    """The backward pass from the end of a long graph: see `tinyattn.stretches`."""
    from tinyattn import stretches  # late, because it stands on this file

    return stretches.stretched(output)


class Place:
    """What is known of the passes that begin at one place: a text for one of them, and how often none fitted."""

    __slots__ = ("fitted", "missed", "texts", "walk")

    def __init__(self) -> None:
        self.walk: Callable[[Tensor, Any], Found | None] | None = None
        self.fitted = self.missed = self.texts = 0

    def learn(self, output: Tensor, nodes: int) -> None:
        """Count a pass that no text fitted, and write one when it is time."""
        self.missed += 1
        purse.nodes += nodes / EARNED
        long = nodes > LONGEST
        if not long and (self.missed < PATIENCE or self.missed * WORTH < nodes):
            return
        self.texts = 0 if self.fitted >= LASTED else self.texts
        self.fitted, self.missed, self.walk, price = 0, 0, None, min(nodes, LONGEST)
        if self.texts >= MOST or purse.nodes < price:
            return
        self.texts += 1
        try:
            self.walk = (stretched if long else straight_line)(output)
        except (LeftToTheLoop, RecursionError, MemoryError):
            return  # the gradients are there: what fails here is no concern of the learner
        purse.nodes -= price


purse = SimpleNamespace(nodes=float(ADVANCE))
_places: dict[Any, Place] = {}


def straight_walk(starts: Sequence[tuple[Tensor, Any]]) -> Found:
    """What `quick_walk` gives, by a text where there is one that fits; and whether all of it is finite.

    Parameters
    ----------
    starts : pairs of a result and its cotangent
        Where to start, and with what.
    """
    if len(starts) > 1:
        return _by_loop(starts)
    ((output, seed),) = starts
    op, x = output.op, output._left[0] if output._left.__class__ is tuple else output._left
    if x is not None and not x._shape and x.op is not None:  # of a mean: what was summed says more
        x = x._left[0] if x._left.__class__ is tuple else x._left
    # Names and numbers, because an operation would be kept alive with all that its rules hold.
    key = op and (id(output.code), output.lasti, op.name, x._shape, x.op and x.op.name)
    place = _places.get(key)
    if place is None:
        place = _new_place(key)
    elif (walk := place.walk) is not None and (found := walk(output, seed)) is not None:
        place.missed, place.fitted = 0, place.fitted + 1
        return found
    found = _by_loop(starts)
    place.learn(output, output.order - found[1] + len(found[0]))
    return found


def _new_place(key: Any) -> Place:
    """One more place; when there are many, those without a text make room, or all."""
    if len(_places) >= PLACES:
        for other, place in _places.copy().items():
            if place.walk is None:
                _places.pop(other, None)
        if 2 * len(_places) >= PLACES:
            _places.clear()
    return _places.setdefault(key, Place())


def forget() -> None:
    """Begin anew, as if no pass had been made."""
    _places.clear()
    purse.nodes = float(ADVANCE)


def _by_loop(starts: Sequence[tuple[Tensor, Any]]) -> Found:
    cotangents, oldest = quick_walk(starts)
    return cotangents, oldest, all_finite(cotangents.values())


def straight_line(output: Tensor) -> Callable[[Tensor, Any], Found | None]:
    """Write out the backward pass from a result, as a function of such a result and its cotangent.

    The function gives what `straight_walk` gives, or None when it is handed another graph.  It meets no rule but the
    engine's own, which depend on nothing but their arguments; a learner's is watched by the loop, and called once.
    """
    return Text(_results(output)).function()  # type: ignore[no-any-return]


class Text:
    """The text under construction: the condition, the lines, and what the names in them stand for.

    A tensor ``n3`` has its cotangent in ``g3``.
    """

    def __init__(self, nodes: list[Tensor]) -> None:
        if not all(_is_ours(node.op) for node in nodes) or sum(len(node.inputs) for node in nodes) > 3 * LONGEST:
            raise LeftToTheLoop
        self.given: dict[str, Any] = {"all_finite": all_finite}
        self.conditions: list[str] = []
        self.lines: list[str] = []
        self.names: dict[Tensor, str] = {}
        self.arrived: set[Tensor] = {nodes[0]}
        self.nodes = nodes
        self._tensor(nodes[0], "output")
        self._turn(nodes[0])
        for newer, node in itertools.pairwise(nodes):
            self._in_order(newer, node)
            self._turn(node)

    def function(self) -> Any:
        """The text as a function."""
        exec(compile(self.source(), "<a backward pass>", "exec"), self.given)
        return self.given["line"]

    def leaves(self) -> list[str]:
        """The names of the leaves."""
        return [name for x, name in self.names.items() if x.op is None]

    def source(self) -> str:
        """The whole text."""
        leaves = self.leaves()
        found = ", ".join(f"{name}: g{name[1:]}" for name in leaves)
        condition = "\n        and ".join(self.conditions)
        return "\n    ".join([
            "def line(output, g0):", "if not (", f"    {condition}", "):", "    return None", *self.lines,
            f"found = {{{found}}}", f"if len(found) < {len(leaves)}: return None",
            f"return found, {self.names[self.nodes[-1]]}.order, all_finite([{self._together()}])\n",
        ])  # fmt: skip

    def _together(self) -> str:
        """The cotangents of the leaves, small ones of one kind added up: if one is not finite, the sum is not."""
        groups: dict[Any, list[str]] = {}
        for x, name in self.names.items():
            if x.op is None:
                groups.setdefault((x._shape, x._dtype) if x.size < FEW else x, []).append(f"g{name[1:]}")
        return ", ".join(" + ".join(group) for group in groups.values())

    def _tensor(self, x: Tensor, path: str) -> None:
        """A tensor that needs a gradient: named where it is met first; later it must be the same one."""
        if x in self.names:
            self.conditions.append(f"{path} is {self.names[x]}")
            return
        name = self.names[x] = f"n{len(self.names)}"
        self.conditions += [f"({name} := {path}).op is {self._given(x.op)}", f"{name}.requires_grad"]
        if x.op is None:
            self.conditions += self._kind(x, name)
        else:
            self.conditions.append(f"({name}.notes is None or {name}.notes.grad is None)")  # else it is to be kept
            if x.params or not x.op.plain:  # else its inputs' kinds tell its own
                self.conditions += self._kind(x, name)

    def _in_order(self, newer: Tensor, older: Tensor) -> None:
        """One is newer than the next: so all are different, and sums are made in the same order."""
        if not any(x is older for x in newer.inputs):  # else it is older anyway
            self.conditions.append(f"{self.names[older]}.order < {self.names[newer]}.order")

    def _kind(self, x: Tensor, name: str) -> list[str]:
        return [f"{name}._shape == {self._given(x._shape)}", f"{name}._dtype is {self._given(x._dtype)}"]

    def _given(self, thing: Any) -> str:
        """The name by which the text knows a thing."""
        for name, other in self.given.items():
            if other is thing or (thing.__class__ is tuple is other.__class__ and other == thing):
                return name
        name = f"k{len(self.given)}"
        self.given[name] = thing
        if isinstance(thing, Op):
            for part in ("forward", "vjps"):  # somebody may exchange them
                self.given[f"{name}_{part}"] = getattr(thing, part)
                self.conditions.append(f"{name}.{part} is {name}_{part}")
        return name

    def _turn(self, node: Any) -> None:
        """A node passes on what has come together for it: one line for each input that needs a gradient."""
        name, paths = self.names[node], self._paths(node)
        for x, path in zip(node.inputs, paths, strict=True):
            if x.requires_grad:
                self._tensor(x, path)
            else:
                self.conditions += [f"not {path}.requires_grad", *self._kind(x, path)]
        values, wanted = ", ".join(f"{path}._value" for path in paths), [x.requires_grad for x in node.inputs]
        call = f"(g{name[1:]}, {name}._value"
        if node.op.plain:
            params = f", *{name}.params" if node.params else ""
            made = [f"{self._given(rule)}{call}, {values}{params})" for rule in rules_of(node)]
        else:
            pull = f"{self._given(node.op)}.pull{call}, {name}.saved, [{values}], {name}.params, {wanted})"
            self.lines.append(f"pulled = {pull}")
            made = [f"pulled[{slot}]" for slot in range(len(paths))]
        for slot, x in enumerate(node.inputs):
            if wanted[slot]:
                self._arrive(x, made[slot])
        self.lines.append(f"del g{name[1:]}" if node.op.plain else f"del pulled, g{name[1:]}")

    def _paths(self, node: Any) -> list[str]:
        """Where the inputs of a node are found."""
        name, count = self.names[node], len(node.inputs)
        if node._left.__class__ is tuple:
            self.conditions.append(f"{name}._left.__class__ is tuple and len({name}._left) == {count}")
            return [f"{name}._left[{slot}]" for slot in range(count)]
        if not node.op.plain:  # a plain one always has as many
            right = "None" if count == 1 else "not None"
            self.conditions.append(f"{name}._left.__class__ is not tuple and {name}._right is {right}")
        return [f"{name}._left", f"{name}._right"][:count]

    def _arrive(self, x: Tensor, made: str) -> None:
        """Something is passed on to a tensor: the first, or added to what is there."""
        g = f"g{self.names[x][1:]}"
        self.lines.append(f"{g} = {g} + {made}" if x in self.arrived else f"{g} = {self._first(x, made)}")
        self.arrived.add(x)

    def _first(self, x: Tensor, made: str) -> str:
        """What a tensor has after the first arrival."""
        return made


def rules_of(node: Any) -> list[Any]:
    """The rule of each input of a node, in the shortest form that gives the same on these shapes."""
    return [_shortest(rule, node, slot) for slot, rule in enumerate(node.op.vjps)]


def _shortest(rule: Any, node: Any, slot: int) -> Any:
    if rule in _SHORT:
        return _SHORT[rule](node, rule)
    x, shape, even = node.inputs[slot], node._shape, node.op.even and node.op.even[slot]
    if even and x._shape == shape:  # nothing was copied, so nothing is to be summed back
        return even
    if even and len(shape) == 2 and x._shape == shape[1:] and 0 < node.size < FEW and node._dtype.char in "fd":
        ones = np.ones(shape[0], node._dtype)
        return lambda g, y, a, b: ones.dot(even(g, y, a, b))  # a bias under rows: `small.column_sums`
    return rule


def _of_left(node: Any, rule: Any) -> Any:
    """A product of two matrices of which the first is small is `dot` without further questions; here g and b.T."""
    return (lambda g, y, a, b: g.dot(b.T)) if _two_matrices(node) and node.size < FEW else rule


def _of_right(node: Any, rule: Any) -> Any:
    return (lambda g, y, a, b: a.T.dot(g)) if _two_matrices(node) and node.inputs[0].size < FEW else rule


def _two_matrices(node: Any) -> bool:
    return all(len(x._shape) == 2 for x in node.inputs)


def _of_sum(node: Any, rule: Any) -> Any:
    """A sum over everything spreads one number; see `small.spread`."""
    (x,) = node.inputs
    if node._shape or not x._shape or x._dtype.kind != "f":
        return rule

    def spread(g: Any, y: Any, x: Any, axis: Any, keepdims: Any) -> Any:
        out = np.empty(x.shape, x.dtype)
        out[...] = g
        return out

    return spread


def _of_relu(node: Any, rule: Any) -> Any:
    """Floats are rectified by their sign, unless somebody looks for what is not finite."""
    if node._dtype.kind != "f":
        return rule
    return lambda g, y, x: rule(g, y, x) if care.wanted else by_sign(g, y)


_SHORT = {
    matmul.vjps[0]: _of_left,
    matmul.vjps[1]: _of_right,
    reductions.sum.vjps[0]: _of_sum,
    relu.vjps[0]: _of_relu,
}


def _is_ours(op: Op | None) -> bool:
    """Whether an operation is one of the engine's own, which are held to their contract by tests and by the loop."""
    if op is None or REGISTRY.get(op.name) is not op:
        return False
    return all(map(_ours, op.vjps if op.vjps.__class__ is tuple else [op.vjps]))


def _ours(rule: Any) -> bool:
    modules = [getattr(part, "__module__", None) or "" for part in (rule, getattr(rule, "even", rule))]
    return all(module.startswith(("tinyattn.ops.", "tinyattn.kernels.")) for module in modules)


def _results(output: Tensor) -> list[Tensor]:
    """What the output was computed from and what needs a gradient, without leaves, newest first."""
    found, seen = [output], {output}
    for node in found:
        new = {x: None for x in node.inputs if x.requires_grad and x.op is not None and x not in seen}
        seen.update(new)  # each once, also where x * x has it twice
        found += new
    return sorted(found, key=attrgetter("order"), reverse=True)
