"""What, in a recording, follows the arguments: found by comparing recordings that were made with different ones.

A recorded graph holds numbers.  Some of them would be others for other arguments: lengths in a ``reshape``, a mask
that was an argument, a table of positions.  Where two or more recordings differ, the difference must have an
explanation here; what has none cannot be handed over, and is named.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tinyattn.errors import GraphError, message
from tinyattn.graph import Graph, Node
from tinyattn.handover.program import Block, Compared, Filled, Given, Size, StepValue

_MASKS = {("where", "condition"), ("softmax", "keep"), ("scaled_dot_product_attention", "keep")}


class Comparison(NamedTuple):
    """A comparison that was made while a function was recorded: the numbers of both sides, and what came out."""

    compare: str
    left: np.ndarray
    right: Any
    result: np.ndarray


class Recording(NamedTuple):
    """One recording: its graph, the arrays given by name, the lengths by axis name, and the comparisons."""

    graph: Graph
    arrays: dict[str, np.ndarray]
    lengths: dict[str, int]
    comparisons: list[Comparison]


class Watched(NamedTuple):
    """The right side of a comparison, where that is a tensor."""

    numbers: np.ndarray


class Still(NamedTuple):
    """The numbers of a node, or its largest along some axes, taken out of the graph and put back as a constant."""

    node: int
    axes: tuple[int, ...] = ()


class Following:
    """Explains the numbers of a recording by the arguments.

    Parameters
    ----------
    recordings : list of Recording
        The first is the one to hand over; the others have other numbers, and other lengths where those may differ.
    """

    def __init__(self, recordings: list[Recording]) -> None:
        self.recordings = recordings
        self.nodes = list(zip(*(each.graph.nodes for each in recordings), strict=True))

    def parameter(self, node: int, name: str) -> Any:
        """An operation's parameter, with what follows the arguments in place of numbers."""
        versions = self.nodes[node]
        values = [np.asarray(x) if isinstance(x := each.params[name], np.generic) else x for each in versions]
        if (versions[0].op_name, name) in _MASKS:
            values = [_without_repeats(value) if isinstance(value, np.ndarray) else value for value in values]
        return self._explained(values, versions[0], name)

    def _explained(self, values: list[Any], node: Node, name: str) -> Any:
        first = values[0]
        if all(isinstance(value, np.ndarray) for value in values):
            return self._array(values, node, name)
        if all(isinstance(value, tuple) and len(value) == len(first) for value in values):
            return tuple(self._explained(list(each), node, name) for each in zip(*values, strict=True))
        if all(isinstance(value, slice) for value in values):
            ends = zip(*((value.start, value.stop, value.step) for value in values), strict=True)
            return slice(*(self._explained(list(each), node, name) for each in ends))
        if all(type(value) is int for value in values):
            size = self.size(values)
            if size is None:
                raise refused(node, f"its {name} {first}")
            return size
        if any(type(value) is not type(first) or value != first for value in values):
            raise refused(node, f"its {name}")
        return first

    def size(self, values: list[int]) -> int | Size | None:
        """A whole number as a constant, or as what it says about the lengths; None when no such form fits."""
        if len(set(values)) == 1:
            return values[0]
        lengths = [each.lengths for each in self.recordings]
        axes = tuple(axis for place, axis in enumerate(lengths[0], 1) if values[place] != values[0])
        if not axes:
            return None
        factor = values[0] // math.prod(lengths[0][axis] for axis in axes)
        forms = [Size(factor, axes, 0)]
        if len(axes) == 1:
            at = 1 + list(lengths[0]).index(axes[0])
            slope = (values[0] - values[at]) // (lengths[0][axes[0]] - lengths[at][axes[0]])
            forms.append(Size(slope, axes, values[0] - slope * lengths[0][axes[0]]))
        return next((form for form in forms if self._fits(form, values)), None)

    def _fits(self, form: Size, values: list[int]) -> bool:
        found = [form.factor * math.prod(each.lengths[axis] for axis in form.axes) + form.offset
                 for each in self.recordings]  # fmt: skip
        return found == values

    def shape(self, node: int) -> tuple[int | Size | None, ...]:
        """The lengths of a node's axes; None where one follows the arguments in no simple way."""
        shapes = [each.value.shape for each in self.nodes[node]]
        return tuple(self.size(list(each)) for each in zip(*shapes, strict=True))

    def leaf(self, node: int) -> Any:
        """A constant: its numbers, or what they follow; a `Still` when they were taken from the graph itself."""
        versions = self.nodes[node]
        values = [each.value for each in versions]
        if still := self._still(node, values):
            return still
        if values[0].ndim == 0 and not _same(values) and all(float(value).is_integer() for value in values):
            size = self.size([int(value) for value in values])
            if size is not None:
                return size
        return self._array(values, versions[0], "")

    def _array(self, values: list[np.ndarray], node: Node, name: str) -> Any:
        if _same(values):
            return values[0]
        key = node.op_name in ("index", "scatter_add")
        for argument in self.recordings[0].arrays:
            given = [each.arrays[argument] for each in self.recordings]
            if found := next(_as_given(argument, given, values, stretch=not key and bool(name)), None):
                return found
        if made := self._compared(values, node):
            return made
        sizes = [self.size(list(each)) for each in zip(*(value.shape for value in values), strict=True)]
        whole = values[0]
        if None not in sizes and all(
            value.size <= whole.size and np.array_equal(value, whole[tuple(map(slice, value.shape))])
            for value in values
        ):
            known: Any = tuple(sizes)
            alike = whole.size > 0 and bool((whole == whole.reshape(-1)[0]).all())
            return Filled(np.array(whole.reshape(-1)[0]), known) if alike else Block(whole, known)
        raise refused(node, f"its {name}" if name else "its numbers")

    def _compared(self, values: list[np.ndarray], node: Node) -> Compared | None:
        """The result of a comparison with a tensor, as a mask or as zeros and ones."""
        dtype = "" if values[0].dtype == bool else values[0].dtype.name
        for made in zip(*(each.comparisons for each in self.recordings), strict=False):
            results = [each.result for each in made]
            for negated in (False, True):
                if not _all_equal([~each if negated else each for each in results], values):
                    continue
                left = self._node_of([each.left for each in made])
                right = self._side([each.right for each in made], node)
                if left is not None and right is not None:
                    return Compared(made[0].compare, left, right, negated, dtype)
        return None

    def _side(self, sides: list[Any], node: Node) -> Any:
        """What a tensor was compared with: another one, a number, or an array."""
        if all(isinstance(side, Watched) for side in sides):
            index = self._node_of([side.numbers for side in sides])
            return None if index is None else StepValue(index)
        if all(isinstance(side, (int, float)) and side == sides[0] for side in sides):
            return sides[0]
        return self._array([np.asarray(side) for side in sides], node, "comparison")

    def _node_of(self, arrays: list[np.ndarray]) -> int | None:
        """The node that has these very arrays for its numbers."""
        for versions in self.nodes:
            if all(_is_same(each.value, array) for each, array in zip(versions, arrays, strict=True)):
                return int(versions[0].index)
        return None

    def _still(self, leaf: int, values: list[np.ndarray]) -> Still | None:
        """Numbers that a node has too, bit for bit: ``x.detach()``, ``x.data``, or the largest as logsumexp shifts by.

        Round numbers prove nothing, unless they differ between recordings.
        """
        telling = not _same(values) or len(np.unique(values[0][values[0] % 1 != 0])) > 1
        used = min((reader for reader, _ in self.recordings[0].graph.consumers(leaf)), default=0)
        shifted = values[0].ndim > 0 and 1 in values[0].shape and values[0].dtype.kind == "f"
        for versions in self.nodes:
            index, own = versions[0].index, [each.value for each in versions]
            if index >= (leaf if versions[0].op is None else used) or versions[0].kind == "constant":
                continue  # it was not there yet when the constant was used, or is one itself
            computed = versions[0].op is not None and telling and _all_equal(own, values)
            if computed or _one_memory(own, values):
                return Still(index)
            if shifted and (axes := _largest_along(own, values)):
                return Still(index, axes)
        return None


def check_alike(recordings: list[Recording]) -> None:
    """Refuse recordings that are not the same graph: something outside it decided which operations were run."""
    first = recordings[0].graph.nodes
    for other in (each.graph.nodes for each in recordings[1:]):
        for one, two in itertools.zip_longest(first, other):
            if one is None or two is None or _kind(one) != _kind(two):
                node = one or two
                what = " and ".join(dict.fromkeys(each.op_name or each.kind for each in (one, two) if each))
                raise GraphError(message(
                    f"the function records another graph for other arguments: {len(first)} and {len(other)} steps, "
                    f"the first difference at {_called(node)} ({what}).",
                    "A Python if or for over numbers or lengths decided, and a recorded graph has no choice in it.",
                    "Hand over the part without the choice, or leave that length out of dynamic=...",
                ))  # fmt: skip


def refused(node: Node, what: str) -> GraphError:
    """What is said when a number follows the arguments in a way that was not recorded."""
    return GraphError(message(
        f"{_called(node)}: {what} would be another one for other arguments, and how is not recorded.",
        "It was computed outside the recorded operations: with NumPy, in Python, or by chance.",
        "Compute it outside the function and hand it in as an argument, or write it in tensor operations; "
        "where chance is meant, such as dropout, write model.eval() before.",
    ))  # fmt: skip


def _called(node: Node) -> str:
    place = f" at {node.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{node.line}" if node.line else ""
    return f"{node.name} ({node.op_name or node.kind}, shape {node.shape}{place})"


def _kind(node: Node) -> tuple[Any, ...]:
    return node.op_name, node.kind, node.inputs, node.value.ndim, node.dtype


# -- arrays ------------------------------------------------------------------------------------------------------------


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f")


def _same(values: list[np.ndarray]) -> bool:
    return all(_equal(values[0], value) for value in values)


def _all_equal(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    return all(_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def _is_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are one; numbers without axes are copied, so there the number decides."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return a.strides == b.strides and np.shares_memory(a, b) if a.ndim else bool(a == b)


def _one_memory(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    return all(a.shape == b.shape and np.shares_memory(a, b) for a, b in zip(ours, theirs, strict=True))


def _without_repeats(mask: np.ndarray) -> np.ndarray:
    """The mask before it was broadcast: axes along which it only repeats itself have size 1."""
    return mask[(..., *(slice(0, 1) if step == 0 else slice(None) for step in mask.strides))]


def _largest_along(ours: list[np.ndarray], theirs: list[np.ndarray]) -> tuple[int, ...]:
    """The axes along which the second arrays are the largest of the first ones; none when they are not."""
    x, y = ours[0], theirs[0]
    if x.ndim != y.ndim or x.dtype != y.dtype or 0 in x.shape:
        return ()
    axes = tuple(axis for axis, (n, m) in enumerate(zip(x.shape, y.shape, strict=True)) if m == 1 != n)
    whole = [each.max(axis=axes, keepdims=True) for each in ours] if axes else []
    return axes if axes and _all_equal(whole, theirs) else ()


def _as_given(argument: str, given: list[np.ndarray], values: list[np.ndarray], stretch: bool) -> Iterator[Given]:
    """The ways in which arrays are an argument: with new axes, without its first or last entries, or negated."""
    rank, own = values[0].ndim, given[0].ndim
    if own > rank or (own == 0 and rank):
        return
    both = (False, True) if given[0].dtype == bool == values[0].dtype else (False,)
    for negated, places in itertools.product(both, itertools.combinations(range(rank), own)):
        new = tuple(axis for axis in range(rank) if axis not in places)
        seen = [np.expand_dims(~each if negated else each, new) for each in given]
        if all(_stretches(a, b, stretch) for a, b in zip(seen, values, strict=True)):
            yield Given(argument, new, (), negated)
    if own == rank:
        for window in _windows(given, values):
            cut = [each[window] for each in given]
            if _all_equal(cut, values):
                yield Given(argument, (), window)


def _stretches(a: np.ndarray, b: np.ndarray, stretch: bool) -> bool:
    if a.shape != b.shape and (not stretch or any(n not in (m, 1) for n, m in zip(a.shape, b.shape, strict=True))):
        return False
    return bool((a == b).all())


def _windows(given: list[np.ndarray], values: list[np.ndarray]) -> Iterator[tuple[slice, ...]]:
    """All but the first or last few entries of each axis, the same number of them in every recording."""
    gaps = {tuple(n - m for n, m in zip(a.shape, b.shape, strict=True)) for a, b in zip(given, values, strict=True)}
    if len(gaps) > 1 or any(gap < 0 for gap in next(iter(gaps))):
        return
    ends = [(slice(None),) if gap == 0 else (slice(None, -gap), slice(gap, None)) for gap in next(iter(gaps))]
    yield from itertools.product(*ends)
