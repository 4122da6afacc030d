"""The listing of a graph: one line a node, like a small typed program.

It is the first view of a graph, the text for readers who do not see the picture, and what tests compare.
Everything is iterative: a chain of 100,000 nodes is listed in seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from tinyattn.terminal import display_width
from viz import values
from viz.labels import visible
from viz.view import View
from viz.words import Words

if TYPE_CHECKING:
    from tinyattn.graph import Graph, Node

_MOST_ENTRIES = 6
_WIDEST_NAME = 24
_ALT_LINES = 60


def listing(
    graph: Graph, words: Words, *, scopes: bool = True, said: Callable[[int], list[str]] | None = None
) -> str:
    """All nodes of a graph in order, with shapes, values and gradients.

    Parameters
    ----------
    graph : Graph
    words : Words
        The language of the listing.
    scopes : bool
        Write a line where another scope begins, and indent what is inside it.
    said : callable, optional
        Lines to put below the line of a node, by its number.
    """
    return "\n".join(_lines(graph, words, scopes, said)) + "\n"


def line_of(graph: Graph, node: Node, words: Words, width: int = 0) -> str:
    """The line of one node: name, shape, how it was made, value, gradient."""
    name = visible(node.name)
    head = f"{name}{' ' * (width - display_width(name))} : {_shape(node)} = {_made_by(graph, node, words)}"
    return f"{head}  |  {value_text(node, words)}  |  {words('gradient')} {gradient_text(node, words)}"


def value_text(node: Node, words: Words) -> str:
    """The value in a few words: the entries when they are few, else smallest, mean and largest."""
    return _array_text(node.value, words)


def gradient_text(node: Node, words: Words) -> str:
    """The gradient in a few words; one that was not computed is not a zero."""
    if node.gradient_state != "computed" or node.grad is None:
        return words("not needed" if node.gradient_state == "not needed" else "not computed")
    return words("zero") if values.is_zero(node.grad) else _array_text(node.grad, words)


def sentence(view: View, words: Words) -> str:
    """What the picture shows, in one or two sentences."""
    graph = view.graph
    kinds = Counter(node.kind for node in graph.nodes)
    present = [kind for kind in ("parameter", "input", "constant", "op") if kinds[kind]]
    parts = words("list").join(f"{words(kind)} ×{kinds[kind]}" for kind in present)
    said = words("counts", nodes=len(graph.nodes), parts=parts, names=output_names(graph, words))
    return said + (" " + words("folded line", what=words("list").join(view.folded)) if view.folded else "")


def output_names(graph: Graph, words: Words) -> str:
    """The names of the outputs, joined as a reader would say them."""
    return words.joined([visible(graph.nodes[index].name) for index in graph.outputs])


def alternative(view: View, words: Words) -> str:
    """The text that stands for the picture: a sentence, then the listing, cut off when it is long."""
    lines = [sentence(view, words)]
    for line in _lines(view.graph, words, scopes=True):
        if len(lines) > _ALT_LINES:
            lines.append(words("more", count=len(view.graph.nodes) + 1 - _ALT_LINES))
            break
        lines.append(line)
    return "\n".join(lines)


def _lines(
    graph: Graph, words: Words, scopes: bool, said: Callable[[int], list[str]] | None = None
) -> Iterator[str]:
    needed = (display_width(n.name) + 2 * len(n.scope) * scopes for n in graph.nodes[:1000])
    width = min(_WIDEST_NAME, max(needed, default=0))
    scope: tuple[str, ...] = ()
    indent = 0
    for node in graph.nodes:
        if scopes and node.scope != scope:
            scope, indent = node.scope, 2 * len(node.scope)
            yield f"# {' / '.join(visible(part) for part in scope)}" if scope else "#"
        yield " " * indent + line_of(graph, node, words, width - indent)
        for line in said(node.index) if said is not None else ():
            yield f"{' ' * indent}    {line}"
    yield "return " + ", ".join(visible(graph.nodes[index].name) for index in graph.outputs)


def _shape(node: Node) -> str:
    """The shape, and the dtype where it is not the usual one."""
    shape = str(node.shape)
    return shape if node.dtype == np.float64 else f"{shape} {node.dtype}"


def _made_by(graph: Graph, node: Node, words: Words) -> str:
    if not node.op_name:
        return words(node.kind)
    operands = [visible(graph.nodes[index].name) for index in node.inputs]
    options = [
        f"{key}={visible(_option(value))}"
        for key, value in node.params.items()
        if value is not None and value is not False  # nothing was asked for
    ]
    return f"{node.op_name}({', '.join(operands + options)})"


def _option(value: object) -> str:
    """A parameter of an operation; an array or a long text is told by its shape or its beginning."""
    shape = getattr(value, "shape", None)
    if shape:
        return f"array{tuple(shape)}"
    if shape == ():
        return str(value)
    text = repr(value)
    return text if len(text) <= 40 and " at 0x" not in text else f"{text[:30].split(' at 0x')[0]}…"


def _array_text(array: values.Array, words: Words) -> str:
    if array.size == 0:
        return words("empty")
    if array.size == 1:
        return values.number(float(array.reshape(-1)[0]))
    if array.size <= _MOST_ENTRIES:
        return one_line(values.cells(array.reshape(values.table_shape(array.shape))))
    return " ".join(f"{words(key)} {number}" for key, number in values.Summary.of(array).parts())


def one_line(rows: list[list[str]]) -> str:
    """A small table on one line.

    >>> one_line([["1", "0"], ["0", "1"]])
    '[1 0; 0 1]'
    """
    return "[" + "; ".join(" ".join(row) for row in rows) + "]"
