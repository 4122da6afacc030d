"""A report as a page of its own: the verdict in words, the comparisons, and the graph with the faulty node marked."""

from __future__ import annotations

from html import escape
from typing import Any

from tinyattn.check.report import Report
from tinyattn.errors import TinyattnError

_STYLE = """
:root { color-scheme: light dark; --bad: #c8102e; --good: #1a7f37; --line: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem } h1.wrong { color: var(--bad) } h1.right { color: var(--good) }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { border-bottom: 1px solid var(--line); padding: .25rem .7rem; text-align: left }
td.number { text-align: right } tr.off { color: var(--bad); font-weight: 600 }
figure { overflow-x: auto; margin: 1rem 0 } pre { overflow-x: auto } li.blame { font-weight: 600 }
mark { background: none; color: var(--bad); font-weight: 700 }
"""


def page(report: Report) -> str:
    """The report as HTML that needs no network.

    Examples
    --------
    >>> import tinyattn as ta
    >>> from tinyattn.check import check_gradients
    >>> html = page(check_gradients(lambda x: ta.sum(x * x), [1.0, 2.0]))
    >>> "<h1" in html and "http" not in html.replace("http://www.w3.org", "")
    True
    """
    text = str(report).splitlines()
    parts = [f'<h1 class="{report.verdict}">{escape(text[0])}</h1>']
    if report.blame is not None:
        lines = [f'<li class="blame">{escape(line)}</li>' for line in report.blame.lines()]
        parts.append(f"<ul>{''.join(lines)}</ul>")
    notes = [*report.notes, *([f"exact check: {report.exact}"] if report.exact else [])]
    if report.others:
        notes.insert(0, f"also wrong: {', '.join(report.others)}")
    if notes:
        parts.append(f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>")
    parts.append(_table(report))
    parts.append(_picture(report))
    title = escape(f"{report.name}: {report.verdict}")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _table(report: Report) -> str:
    rows = []
    for row in report.rows:
        words = [row.input, str(row.order), row.way, row.oracle]
        numbers = [f"{row.found:.6g}", f"{row.expected:.6g}", f"{row.difference:.1e}", f"{row.allowed:.1e}"]
        cells = "".join(f"<td>{escape(word)}</td>" for word in words) + "".join(
            f'<td class="number">{escape(n)}</td>' for n in numbers
        )
        rows.append(f"<tr{'' if row.passed else ' class=off'}>{cells}</tr>")
    if not rows:
        return ""
    heads = ("input", "order", "way", "held against", "it gives", "should be", "difference", "allowed")
    top = "".join(f"<th>{head}</th>" for head in heads)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _picture(report: Report) -> str:
    """The graph as a drawing where it can be drawn, as a list of steps otherwise; the faulty node marked in both."""
    graph = report.graph
    if graph is None:
        return ""
    at = report.blame.index if report.blame is not None else -1
    try:
        from tinyattn._viz import load_viz

        svg = str(load_viz().draw(graph, max_nodes=200).svg)
    except (TinyattnError, ImportError, OSError):
        return f"<pre>{_listing(graph, at)}</pre>"
    mark = (
        f"<style>#n{at} polygon,#n{at} path,#n{at} ellipse{{stroke:#c8102e;stroke-width:4}}</style>" if at >= 0 else ""
    )
    start = svg.index("<svg")
    return f"<figure>{svg[start:].replace('</svg>', mark + '</svg>', 1)}</figure>"


def _listing(graph: Any, at: int) -> str:
    lines = []
    for node in graph.nodes:
        sources = ", ".join(graph.nodes[source].name for source in node.inputs)
        line = escape(
            f"{node.name}: {node.shape} = {node.op_name}({sources})" if node.op_name else f"{node.name}: {node.shape}"
        )
        lines.append(f"<mark>{line}   &lt;-- here</mark>" if node.index == at else line)
    return "\n".join(lines)
