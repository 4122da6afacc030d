"""A backward pass written out in a straight line of Python.

`quick_walk` finds out whose turn it is and where a cotangent belongs; on small arrays that costs more than the rules
themselves.  Here the pass through one graph becomes a text, one line for each vector-Jacobian product.  On arrays of
4 x 8 that takes a node with two inputs from 0.9 to 0.5 microseconds.  `tinyattn.repeated` decides when it is worth it.

The text begins with a condition that holds for the same graph only: the same operations on the same inputs, shapes
and dtypes, made in the same order.  Where it does not hold, the loop does the work.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from tinyattn.kernels.small import FEW, all_finite, by_sign
from tinyattn.ops import REGISTRY, Op, reductions
from tinyattn.ops.elementwise import relu
from tinyattn.ops.linear import matmul
from tinyattn.tensor import Tensor

Found = tuple[dict[Tensor, Any], int, bool]  # cotangents of the leaves, the oldest result, whether all are finite
Written = Callable[[Tensor, Any], Found | None]  # from a result and its cotangent; None for another graph

MANY_INPUTS = 1800  # of all results together; Python takes no longer texts


class LeftToTheLoop(Exception):
    """A graph is not written out."""


def straight_line(output: Tensor) -> Written:
    """Write out the backward pass from a result.

    It meets no rule but the engine's own, which depend on nothing but their arguments; a learner's is watched by the
    loop, and called once.

    Raises
    ------
    LeftToTheLoop
        For a graph with a learner's own operations, or one of very many inputs.
    """
    return Text(results(output)).function()  # type: ignore[no-any-return]


class Text:
    """The text under construction: the condition, the lines, and what the names in them stand for.

    A tensor ``n3`` has its cotangent in ``g3``.
    """

    def __init__(self, nodes: list[Tensor]) -> None:
        if not all(_is_ours(node.op) for node in nodes) or sum(len(node.inputs) for node in nodes) > MANY_INPUTS:
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
        return self.run(self.source(), "written")

    def run(self, source: str, name: str) -> Any:
        """The function of that name that a text defines; it knows what is given, which must not know it: a cycle."""
        exec(compile(source, "<a backward pass>", "exec"), self.given)
        return self.given.pop(name)

    def leaves(self) -> list[str]:
        """The names of the leaves."""
        return [name for x, name in self.names.items() if x.op is None]

    def source(self) -> str:
        """The whole text."""
        leaves = self.leaves()
        found = ", ".join(f"{name}: g{name[1:]}" for name in leaves)
        condition = "\n        and ".join(self.conditions)
        return "\n    ".join([
            "def written(output, g0):", "if not (", f"    {condition}", "):", "    return None", *self.lines,
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
    """Floats are rectified by their sign; a cotangent that is not finite stays so, and the careful pass follows."""
    return (lambda g, y, x: by_sign(g, y)) if node._dtype.kind == "f" else rule


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


def results(output: Tensor, most: int | None = None) -> list[Tensor]:
    """What the output was computed from and what needs a gradient, without leaves, newest first; or ``most`` of it."""
    found, seen = [output], {output}
    for node in found:
        new = {x: None for x in node.inputs if x.requires_grad and x.op is not None and x not in seen}
        seen.update(new)  # each once, also where x * x has it twice
        found += new
        if most is not None and len(found) >= most:
            break
    return sorted(found, key=attrgetter("order"), reverse=True)
