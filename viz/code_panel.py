"""The learner's own lines for the code panel: those that made a node, with what stands between them."""

from __future__ import annotations

import linecache
import os
from typing import TYPE_CHECKING, Any

from viz.labels import visible

if TYPE_CHECKING:
    from tinyattn.graph import Graph

MOST_GAP = 3
"""So many lines between two that made a node are shown; a larger gap is left out."""

MOST_LINES = 160


def code_of(graph: Graph) -> list[dict[str, Any]]:
    """The source of a graph: for each file its lines as (number, text), a None where lines are left out.

    A file that cannot be read any more, such as a line typed at a prompt, gives no lines.
    """
    wanted: dict[str, set[int]] = {}
    for node in graph.nodes:
        if node.file and node.line > 0:
            wanted.setdefault(node.file, set()).add(node.line)
    panels = []
    for file, numbers in wanted.items():
        lines = linecache.getlines(file)
        kept = _kept(lines, numbers)
        if kept:
            panels.append({"file": visible(os.path.basename(file)), "lines": _moved_left(kept)})
    return panels


def place_of(graph: Graph, index: int, panels: list[dict[str, Any]]) -> tuple[int, int] | None:
    """Where a node's line is: the number of its panel and of its line."""
    node = graph.nodes[index]
    name = visible(os.path.basename(node.file)) if node.file else ""
    for at, panel in enumerate(panels):
        if panel["file"] == name and any(line and line[0] == node.line for line in panel["lines"]):
            return at, node.line
    return None


def _kept(lines: list[str], wanted: set[int]) -> list[Any]:
    kept: list[Any] = []
    last = 0
    for number in sorted(number for number in wanted if number <= len(lines))[:MOST_LINES]:
        if last and number - last > MOST_GAP + 1:
            kept.append(None)
        elif last:
            kept.extend(_line(lines, between) for between in range(last + 1, number))
        kept.append(_line(lines, number))
        last = number
    return kept


def _line(lines: list[str], number: int) -> tuple[int, str]:
    return number, "".join(visible(c) if c != "\t" else "    " for c in lines[number - 1].rstrip("\n\r"))


def _moved_left(kept: list[Any]) -> list[Any]:
    """The lines without the blanks that all of them begin with."""
    spaces = [len(line[1]) - len(line[1].lstrip()) for line in kept if line and line[1].strip()]
    return [line and (line[0], line[1][min(spaces, default=0) :]) for line in kept]
