"""Graph: a recorded computation as plain data, for everything that looks at one.

Drawings, formulas, checks and hand-overs read a `Graph` and never a Tensor.  Nodes stand in a stable order (by
creation, so inputs come first), refer to each other by number, and carry names, scopes and source lines.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyattn import names as naming
from tinyattn.autodiff import propagate, seed_for
from tinyattn.errors import ArgumentTypeError
from tinyattn.ops import Op
from tinyattn.places import caller_variables
from tinyattn.show import Pictured
from tinyattn.tensor import Constant, Tensor


class Node:
    """One tensor of a graph.

    Attributes
    ----------
    index : int
        Position in the graph: 0, 1, ... in the order of creation.
    op : Op or None
        The operation that made it; None for a leaf.
    inputs : tuple of int
        The nodes that went in, by slot; ``x * x`` has the same number twice.
    params : dict
        The op's parameters by name.
    value : ndarray, read-only
    grad : ndarray or None
    gradient_state : "not needed", "not computed" or "computed"
    kind : "parameter", "input", "constant" or "op"
    name : str
        Unique within the graph.
    named : bool
        True when the name is the learner's own, not one made up.
    scope : tuple of str
    file, line, function : where it was made, outside the package; line is 0 when that is not known
    """

    index: int
    op: Op | None
    inputs: tuple[int, ...]
    params: dict[str, Any]
    value: np.ndarray
    grad: np.ndarray | None
    kind: str
    requires_grad: bool
    name: str
    named: bool
    scope: tuple[str, ...]
    file: str
    line: int
    function: str

    @property
    def gradient_state(self) -> str:
        """The gradient in words: "not computed" is not the same as 0."""
        return "not needed" if not self.requires_grad else "not computed" if self.grad is None else "computed"

    @property
    def op_name(self) -> str:
        """The op's name; empty for a leaf."""
        return self.op.name if self.op is not None else ""

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers."""
        return self.value.dtype

    @property
    def hidden(self) -> bool:
        """True for book-keeping, such as casts, that drawings leave out."""
        return self.op is not None and self.op.hidden

    def __repr__(self) -> str:
        return f"Node({self.index}, {self.name!r}, {self.op_name or self.kind}, shape={self.shape})"


class Contribution:
    """One vector-Jacobian product of a backward pass: what ``node`` passes back through ``slot`` to ``target``."""

    __slots__ = ("node", "slot", "target", "value")

    def __init__(self, node: int, slot: int, target: int, value: np.ndarray) -> None:
        self.node, self.slot, self.target, self.value = node, slot, target, value


class Graph(Pictured):
    """A recorded computation: its nodes, its outputs and, when asked for, its backward pass.

    Attributes
    ----------
    nodes : tuple of Node
        In the order of creation, so that inputs come first; a node's ``index`` is its position.
    outputs : tuple of int
        The nodes of the results.
    contributions : tuple of Contribution
        Every vector-Jacobian product of the backward pass in its order; empty unless gradients were asked for.

    Examples
    --------
    >>> import tinyattn as ta
    >>> x = ta.tensor([1.0, 2.0], requires_grad=True)
    >>> loss = (x * x).sum()
    >>> graph = ta.Graph.of(loss)
    >>> [(node.name, node.op_name, node.inputs) for node in graph.nodes]
    [('x', '', ()), ('multiply', 'multiply', (0, 0)), ('loss', 'sum', (1,))]
    """

    def __init__(
        self, nodes: tuple[Node, ...], outputs: tuple[int, ...], contributions: tuple[Contribution, ...] = ()
    ) -> None:
        self.nodes, self.outputs, self.contributions = nodes, outputs, contributions
        self._consumers: dict[int, tuple[tuple[int, int], ...]] | None = None

    @staticmethod
    def of(
        y: Tensor | Sequence[Tensor],
        *,
        names: Mapping[str, Tensor] | Sequence[tuple[str, Tensor]] | None = None,
        variables: Mapping[str, Any] | None = None,
        gradients: bool = False,
    ) -> Graph:
        """Read the graph behind one or several results.

        Parameters
        ----------
        y : Tensor or sequence of Tensor
            The results.
        names : mapping from str to Tensor, or sequence of pairs, optional
            Names that win over all others; pairs may give two tensors the same name.
        variables : mapping, optional
            Where to look for variables that hold a tensor of the graph; the caller's by default.
        gradients : bool
            Whether to run the backward pass for the nodes' ``grad``; no ``.grad`` of a tensor is touched.
        """
        outputs = [y] if isinstance(y, Tensor) else list(y) if isinstance(y, (list, tuple)) else []
        if not outputs or not all(isinstance(x, Tensor) for x in outputs):
            raise ArgumentTypeError(f"Graph.of: a tensor or a list of tensors is needed, not {type(y).__name__}.")
        tensors = tensors_behind(outputs)
        number = {id(x): i for i, x in enumerate(tensors)}
        seen = variables if variables is not None else caller_variables(sys._getframe(1))
        given = naming.given_names(names)
        titles = naming.titles(tensors, given, naming.variable_names(dict(seen)))
        nodes = tuple(_node(x, number, title) for x, title in zip(tensors, titles, strict=True))
        contributions = _run_backward(outputs, nodes, number) if gradients else ()
        return Graph(nodes, tuple(number[id(x)] for x in outputs), contributions)

    def consumers(self, index: int) -> tuple[tuple[int, int], ...]:
        """Who reads a node, as pairs of node number and slot."""
        if self._consumers is None:
            found: dict[int, list[tuple[int, int]]] = {}
            for node in self.nodes:
                for slot, source in enumerate(node.inputs):
                    found.setdefault(source, []).append((node.index, slot))
            self._consumers = {source: tuple(readers) for source, readers in found.items()}
        return self._consumers.get(index, ())

    def find(self, name: str) -> Node:
        """The node of a name."""
        for node in self.nodes:
            if node.name == name:
                return node
        known = ", ".join(node.name for node in self.nodes if node.named)
        raise KeyError(f"no node is named {name!r}; there are {known}")

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"Graph({len(self.nodes)} nodes, outputs {', '.join(self.nodes[i].name for i in self.outputs)})"


def tensors_behind(outputs: Sequence[Tensor]) -> list[Tensor]:
    """The tensors behind some results, in the order of the nodes of their graph."""
    seen = set(outputs)
    waiting = list(seen)
    for y in waiting:  # it grows on the way
        new = [x for x in y.inputs if x not in seen]
        seen.update(new)
        waiting += new
    # A leaf that was assigned since is newer than its readers; it still comes first.
    return sorted(seen, key=lambda x: (x.order if x.inputs else min(x.order, 0), x.order))


def _node(x: Tensor, number: dict[int, int], title: tuple[str, bool]) -> Node:
    node = Node()
    node.index, node.op, (node.name, node.named) = number[id(x)], x.op, title
    node.inputs = tuple(number[id(source)] for source in x.inputs)
    node.params = dict(zip(x.op.param_names, x.params, strict=True)) if x.op is not None else {}
    node.value, node.scope, node.requires_grad = x.data, x.scope, x.requires_grad
    node.grad = x._grad if isinstance(x._grad, np.ndarray) else None
    leaf = "parameter" if x.requires_grad else "constant" if type(x) is Constant else "input"
    node.kind = "op" if x.op is not None else leaf
    node.file, node.line, node.function = naming.source_place(x) or ("", 0, "")
    return node


def _run_backward(
    outputs: Sequence[Tensor], nodes: tuple[Node, ...], number: dict[int, int]
) -> tuple[Contribution, ...]:
    """Fill in every gradient on the way from the outputs to the leaves, and list the contributions."""
    made: list[Contribution] = []

    def watch(node: Tensor, slot: int, contribution: Any) -> None:
        target = number[id(node.inputs[slot])]
        made.append(Contribution(number[id(node)], slot, target, np.asarray(contribution)))

    starts = [(y, seed_for(y, None if y.size == 1 else np.ones(y.shape), "gradients")) for y in outputs]
    propagate(starts, observe=watch)
    for node in nodes:
        node.grad = None
    arriving = [(number[id(y)], np.asarray(seed)) for y, seed in starts]
    for target, value in [*arriving, *((c.target, c.value) for c in made)]:
        before = nodes[target].grad
        nodes[target].grad = value if before is None else before + value
    return tuple(made)
