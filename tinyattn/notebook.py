"""How tensors, graphs and reports look in a notebook: plain tables, with no script, and nothing fetched.

Drawings, pages and derivations show themselves.  Whatever fails here is shown as text: a notebook shall not stop
because something cannot be drawn.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyattn.show import gradient_state

if TYPE_CHECKING:
    from tinyattn.check.report import Report
    from tinyattn.tensor import Tensor

_MOST_ROWS, _MOST_TABLES = 12, 4


def tensor_html(x: Tensor) -> str:
    """A tensor as a table of its numbers, under a line with name, shape and gradient; and one of its gradient.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> w = ta.tensor([1.0, 2.0], requires_grad=True, name="w")
    >>> print(tensor_html(w))
    <div class="tinyattn">
    <p><b>w</b> shape (2,), gradient not computed</p>
    <table><tr><td>1</td><td>2</td></tr></table>
    </div>
    """
    grad = x.grad if x.is_leaf else None
    parts = [f"<p>{_headline(x)}</p>", *_tables(x.data)]
    if grad is not None:
        parts += ["<p>gradient</p>", *_tables(grad)]
    return '<div class="tinyattn">\n' + "\n".join(parts) + "\n</div>"


def _headline(x: Tensor) -> str:
    facts = [f"shape {x.shape}"]
    facts += [] if x.dtype == np.float64 else [str(x.dtype)]
    if x.op is not None:
        facts.append(f"made by {x.op.name}")
    elif state := gradient_state(x):
        facts.append(f"gradient {state}")
    name = f"<b>{html.escape(x.name)}</b> " if x.name else ""
    return name + html.escape(", ".join(facts))


def _tables(array: np.ndarray) -> list[str]:
    """One table for each matrix; of many matrices the first few, with their place in front."""
    if array.ndim <= 2:
        return [_table(np.atleast_2d(array))]
    places = list(np.ndindex(array.shape[:-2]))
    shown = [f"<p>[{', '.join(map(str, place))}]</p>\n{_table(array[place])}" for place in places[:_MOST_TABLES]]
    left = len(places) - _MOST_TABLES
    return shown + ([f"<p>… and {left} more</p>"] if left > 0 else [])


def _table(matrix: np.ndarray) -> str:
    rows = [f"<tr>{''.join(f'<td>{cell}</td>' for cell in _shortened(map(_number, row)))}</tr>" for row in matrix]
    return f"<table>{''.join(_shortened(rows, '<tr><td>⋮</td></tr>'))}</table>"


def _shortened(cells: Any, dots: str = "…") -> list[str]:
    """The first and last of many."""
    every = list(cells)
    half = _MOST_ROWS // 2
    return every if len(every) <= _MOST_ROWS else [*every[:half], dots, *every[-half:]]


def _number(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, np.floating) else str(value)


def graph_bundle(graph: Any) -> dict[str, str]:
    """A graph as its drawing, with the listing as its text; only its ``repr`` where nothing draws.

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    dict from str to str
        By media type.

    Examples
    --------
    >>> import tinyattn as ta
    >>> sorted(graph_bundle(ta.Graph.of(ta.tensor([1.0]) * 2.0)))
    ['image/svg+xml', 'text/plain']
    """
    from tinyattn._viz import load_viz

    try:
        bundle: dict[str, str] = load_viz().draw(graph)._repr_mimebundle_()
    except Exception as error:  # a notebook must show something whatever is broken
        return {"text/plain": f"{graph!r}\n\n{error}"}
    return bundle


def text_html(shown: object) -> str:
    """Whatever says everything in its text, with its columns kept.

    Examples
    --------
    >>> text_html("a < b")
    '<pre class="tinyattn">a &lt; b</pre>'
    """
    return f'<pre class="tinyattn">{html.escape(str(shown))}</pre>'


def report_html(report: Report) -> str:
    """A report of a check: its verdict, its notes and a table of what was held against what.

    Parameters
    ----------
    report : Report

    Examples
    --------
    >>> import tinyattn as ta
    >>> report = ta.check_gradients(ta.tanh, [0.5], order=1, modes=("reverse",))
    >>> report_html(report).splitlines()[1]
    '<p><b>tanh: the gradient is right.</b></p>'
    """
    headline, *rest = report.text().split("\n")
    heads = ("input", "order", "way", "held against", "it gives", "should be", "difference", "allowed")
    rows = [(row.input, row.order, row.way, row.oracle, f"{row.found:.6g}", f"{row.expected:.6g}",
             f"{row.difference:.1e}", f"{row.allowed:.1e}") for row in report.rows]  # fmt: skip
    told = rest[: len(rest) - len(rows) - 2] if rows else rest  # its last lines are the same table as text
    parts = [f"<p><b>{html.escape(headline)}</b></p>", *(f"<p>{html.escape(line.strip())}</p>" for line in told)]
    cells = ["".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows]
    marks = ["" if row.passed else ' class="wrong"' for row in report.rows]
    body = "".join(f"<tr{mark}>{row}</tr>" for mark, row in zip(marks, cells, strict=True))
    head = "".join(f"<th>{each}</th>" for each in heads)
    return '<div class="tinyattn">\n' + "\n".join([*parts, f"<table><tr>{head}</tr>{body}</table>"]) + "\n</div>"
