"""`compare`: several ways to the same gradients, and a report that says who is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tinyattn.arguments import known_arguments
from tinyattn.errors import ArgumentError, GraphError
from tinyattn.show import Worded
from tinyattn.symbolic.derivation import Lines
from tinyattn.symbolic.deriving import Derivation, graph_of
from tinyattn.symbolic.layout import text
from tinyattn.symbolic.ways import (
    SAMPLE,
    Formula,
    Found,
    by_autograd,
    by_complex_step,
    by_difference,
    by_formula,
    by_sympy,
)
from tinyattn.terminal import display_width

METHODS = ("autograd", "formula", "sympy", "complex", "difference")


class Pair:
    """Two ways compared for one leaf.

    Attributes
    ----------
    leaf : str
    first, second : str
        The ways.
    difference, bound : float
        At the entry where difference over bound is largest.
    over : float
        Difference over bound there; more than 1 is too much.
    passed : bool
        Whether every entry is within the sum of both bounds.
    entry : tuple of int
        The worst entry; `values` are both numbers there.
    """

    __slots__ = ("bound", "difference", "entry", "first", "leaf", "over", "passed", "second", "values")

    def __init__(self, leaf: str, first: str, second: str, one: Any, other: Any) -> None:
        self.leaf, self.first, self.second = leaf, first, second
        gap, bound = np.abs(one[0] - other[0]), one[1] + other[1]
        seen = (
            ~np.isnan(other[0]) | np.isnan(one[0]) if second in ("complex", "difference") else np.ones(gap.shape, bool)
        )
        seen &= ~np.isnan(one[0]) if first in ("complex", "difference") else True
        over = np.where(seen, np.where(gap == 0, 0.0, gap / np.maximum(bound, 1e-300)), 0.0)
        over = np.where(np.isnan(over), np.inf, over)
        self.over = float(over.max()) if over.size else 0.0
        self.passed = self.over <= 1.0
        at = tuple(int(each) for each in np.unravel_index(int(np.argmax(over)), gap.shape)) if gap.size else ()
        self.entry = at
        self.difference = float(gap[at]) if gap.size else 0.0
        self.bound = float(bound[at]) if gap.size else 0.0
        self.values = (float(one[0][at]), float(other[0][at])) if gap.size else (0.0, 0.0)

    @property
    def ways(self) -> str:
        """Both ways, `autograd - formula`."""
        return f"{self.first} - {self.second}"

    def cells(self) -> tuple[str, str, str]:
        """Give difference, bound and verdict in words."""
        return f"{self.difference:.1e}", f"{self.bound:.1e}", "agree" if self.passed else "DIFFER"


class Report(Worded):
    """What `compare` found; true if all ways agree on all leaves.

    Attributes
    ----------
    pairs : tuple of Pair
    unavailable : dict of str to str
        Ways that could not be gone, and why.
    blame : str
        Where the engine's gradient is the odd one out: the first wrong gradient, the operation whose backward rule
        made it, and the formula that should have held.
    op : str
        The operation to blame, "" if none.
    sympy_way : str
        How SymPy went: it differentiated the whole loss at once, or every operation by itself where that would be
        too long.
    """

    def __init__(self, leaves: Sequence[str], found: dict[str, dict[str, Any]], unavailable: dict[str, str]) -> None:
        self.leaves, self.found, self.unavailable = tuple(leaves), found, unavailable
        self.pairs = tuple(
            Pair(leaf, first, second, found[first][leaf], found[second][leaf])
            for leaf in leaves
            for first, second in combinations([way for way in found if leaf in found[way]], 2)
        )  # fmt: skip
        self.blame, self.op, self.sympy_way = "", "", ""

    def __bool__(self) -> bool:
        return all(pair.passed for pair in self.pairs)

    def camps(self) -> list[list[str]]:
        """Give the groups of ways that agree with each other on every leaf, the largest first."""
        against = {(pair.first, pair.second) for pair in self.pairs if not pair.passed}
        camps: list[list[str]] = []
        for way in self.found:
            home = next((camp for camp in camps if all((other, way) not in against for other in camp)), None)
            if home is None:
                camps.append([way])
            else:
                home.append(way)
        return sorted(camps, key=lambda camp: -len(camp))

    def rows(self) -> list[tuple[str, ...]]:
        """Give every comparison: leaf, pair of ways, difference, bound, verdict."""
        return [(pair.leaf, pair.ways, *pair.cells()) for pair in self.pairs]

    def of_leaves(self) -> list[tuple[str, ...]]:
        """Give a row for each leaf: its name, the two ways that are farthest apart, difference, bound, verdict."""
        pairs = [_farthest([pair for pair in self.pairs if pair.leaf == leaf]) for leaf in self.leaves]
        return [(pair.leaf, pair.ways, *pair.cells()) for pair in pairs if pair is not None]

    def of_ways(self) -> list[tuple[str, ...]]:
        """Give a row for each pair of ways: the leaf where they are farthest apart, difference, bound, verdict."""
        every = dict.fromkeys(pair.ways for pair in self.pairs)
        pairs = [_farthest([pair for pair in self.pairs if pair.ways == ways]) for ways in every]
        return [(pair.ways, pair.leaf, *pair.cells()) for pair in pairs if pair is not None]

    def __str__(self) -> str:
        lines = [*_table(("leaf", "farthest apart", *_COLUMNS), self.of_leaves()), ""]
        lines += _table(("ways", "at", *_COLUMNS), self.of_ways())
        lines += [f"not compared: {way} ({why})" for way, why in self.unavailable.items()]
        lines += [f"sympy {self.sympy_way}"] if self.sympy_way and "sympy" in self.found else []
        worst = [pair for pair in self.pairs if not pair.passed]
        if worst:
            pair = max(worst, key=lambda each: each.over)
            first, second = pair.values
            lines.append(
                f"worst: {pair.leaf}{list(pair.entry)}: {pair.first} {first!r}, {pair.second} {second!r}, "
                f"{_ulps(first, second)} units in the last place apart"
            )
            lines.append("; ".join(_said(camp) for camp in self.camps()))
        if self.blame:
            lines.append(self.blame)
        return "\n".join(lines)


_COLUMNS = ("difference", "bound", "verdict")


def _farthest(pairs: list[Pair]) -> Pair | None:
    return max(pairs, key=lambda pair: pair.over, default=None)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(display_width, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  ".join(cell + " " * (width - display_width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]


def _said(camp: list[str]) -> str:
    return f"{', '.join(camp[:-1])} and {camp[-1]} agree" if len(camp) > 1 else f"{camp[0]} stands alone"


def _ulps(first: float, second: float) -> str:
    gap = abs(first - second) / np.spacing(max(abs(first), abs(second), 1e-300))
    return f"{gap:.3g}" if np.isfinite(gap) else "infinitely many"


@known_arguments
def compare(
    result: Any, wrt: Sequence[Any] | Any, *, methods: Sequence[str] = METHODS, entries: int = SAMPLE
) -> Report:
    """Compute the gradients of a recorded loss in several ways and hold them against each other.

    Parameters
    ----------
    result : Tensor or Graph
        The loss, one number; a Graph must have been made with ``gradients=True``.
    wrt : Tensor or sequence of Tensor
        What to derive by (names or node numbers, if `result` is a Graph).
    methods : sequence of str
        Some of "autograd" (the engine), "formula" (the derived lines), "sympy" (SymPy from the definitions alone),
        "complex" (complex step) and "difference" (central differences).
    entries : int
        How many entries of each tensor "complex" and "difference" look at, for each costs several runs forward;
        where there are more, they are drawn at random, always the same.

    Returns
    -------
    Report
        Its truth value says whether all agree within their bounds, which are derived for each entry and not guessed.
    """
    unknown = [way for way in methods if way not in METHODS]
    if unknown or not methods:
        raise ArgumentError(f"compare: {unknown or 'no method'} is not known; choose from {', '.join(METHODS)}.")
    graph, tensors = graph_of(result, wrt, gradients=True)
    try:
        lines, reason = Derivation(graph, list(tensors)).lines, ""
    except GraphError as problem:
        lines, reason = None, str(problem).splitlines()[0]
    return compare_graph(graph, list(tensors), methods, lines, reason, entries)


def compare_graph(
    graph: Any, leaves: Sequence[int], methods: Sequence[str], lines: Lines | None, reason: str = "",
    entries: int = SAMPLE,
) -> Report:  # fmt: skip
    """Compare on a recorded graph with gradients; `lines` None where no formula exists, for the given reason."""
    bounds, formula = by_formula(lines) if lines is not None else (None, None)
    ways: dict[str, Callable[[], Found | None]] = {
        "autograd": lambda: by_autograd(graph, leaves, bounds),
        "formula": lambda: bounds,
        "sympy": lambda: by_sympy(graph, leaves),
        "complex": lambda: by_complex_step(graph, leaves, bounds, entries),
        "difference": lambda: by_difference(graph, leaves, entries),
    }
    names = {leaf: (lines.quantities if lines is not None else graph.nodes)[leaf].name for leaf in leaves}
    found: dict[str, dict[str, Any]] = {}
    unavailable: dict[str, str] = {}
    for way in methods:
        try:
            result = ways[way]()
        except (GraphError, TypeError) as problem:
            unavailable[way] = str(problem).splitlines()[0]
            continue
        if result is None:
            unavailable[way] = reason
        else:
            found[way] = {names[leaf]: value for leaf, value in result.items()}
    if lines is not None and "formula" in methods:
        for leaf in (each for each in leaves if each in lines.blocked):
            unavailable[f"formula for {names[leaf]}"] = lines.given[lines.blocked[leaf]].splitlines()[0]
    report = Report([names[leaf] for leaf in leaves], found, unavailable)
    if "sympy" in found:
        from tinyattn.symbolic.referee import choose_method

        whole = choose_method(graph, leaves) == "whole"
        report.sympy_way = "differentiated the whole loss at once" if whole else "went operation by operation"
    if lines is not None and formula is not None and not report and "autograd" in found:
        _find_blame(report, graph, lines, formula)
    return report


def _find_blame(report: Report, graph: Any, lines: Lines, formula: Formula) -> None:
    """Name the first gradient, going backward, that differs from its formula."""
    from tinyattn.symbolic.certificate import operations_behind

    for line in lines.backward:
        node = graph.nodes[line.node]
        right, bound = formula.gradient(line.node)
        wrong = np.zeros(node.shape) if node.grad is None else np.asarray(node.grad, dtype=np.float64)
        gap = np.abs(wrong - right)
        if not (gap <= 4 * bound).all():
            at = tuple(
                int(each) for each in np.unravel_index(int(np.argmax(np.nan_to_num(gap, nan=np.inf))), gap.shape)
            )
            ops = operations_behind(lines, line)
            report.op = ops
            shown = text(_layout(lines, line))
            report.blame = (
                f"first wrong gradient: {lines.quantities[line.node].name}, made by the backward rule of {ops}: "
                f"entry {list(at)} is {float(wrong[at]):.10g} and should be {float(right[at]):.10g}\n"
                f"  it should have been {shown}"
            )
            return


def _layout(lines: Lines, line: Any) -> Any:
    from tinyattn.symbolic.deriving import Step, letters_of

    return Step(line, letters_of(lines)).layout("matrix")
