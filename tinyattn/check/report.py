"""What a check found, as data and as words."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

from tinyattn.check.blame import Fault
from tinyattn.check.scene import Mistake
from tinyattn.terminal import table


class Row:
    """One comparison of two ways to the same number.

    Attributes
    ----------
    input : str
        The input, or "all" for a direction through all of them.
    order : int
    way, oracle : str
        What was checked, "reverse" or "forward", and what it was held against.
    found, expected : float
    difference, allowed : float
        How far they are apart, and how far they may be.
    """

    __slots__ = ("allowed", "difference", "expected", "found", "input", "oracle", "order", "way")

    def __init__(
        self, input: str, order: int, way: str, oracle: str, found: float, expected: float, allowed: float
    ) -> None:
        self.input, self.order, self.way, self.oracle = input, order, way, oracle
        self.found, self.expected, self.allowed = float(found), float(expected), float(allowed)
        same = self.found == self.expected or (math.isnan(self.found) and math.isnan(self.expected))
        self.difference = 0.0 if same else abs(self.found - self.expected)

    @property
    def passed(self) -> bool:
        """Whether the two are as near as they must be."""
        return self.difference <= self.allowed

    def __repr__(self) -> str:
        ways = f"{self.way} - {self.oracle}"
        return f"Row({self.input}, order {self.order}, {ways}: {self.difference:.1e} of {self.allowed:.1e})"


_CLEAR = 1.7  # a slope between that of a wrong gradient, 1, and that of a right one, 2, decides nothing


class Blame:
    """Where the fault is.

    Attributes
    ----------
    op : str
        The operation whose rule is wrong.
    node : str
        What the learner calls its result.
    index : int
        The node of ``report.graph``; -1 where there is none.
    file, line : where it was written; "" and 0 when that is not known
    input : str
        Which input of the operation the wrong gradient belongs to.
    part : "rule" or "forward"
        What of the operation is wrong.
    entry : tuple of int
    found, expected : float
        The worst entry: what the rule gives, and what the forward says.
    problem : str
        Words, where it is not a matter of numbers.
    formula : str
        What should have held; "" when the operation has no definition.
    mistake : Mistake or None
    ask_sympy : callable or None
        Gives what SymPy derives for this entry from the definition alone, None where it does not; asked when needed.
    """

    def __init__(self, op: str, node: str, index: int = -1) -> None:
        self.op, self.node, self.index = op, node, index
        self.file, self.line, self.input = "", 0, ""
        self.entry: tuple[int, ...] = ()
        self.found = self.expected = math.nan
        self.problem = self.formula = ""
        self.part = "rule"
        self.mistake: Mistake | None = None
        self.ask_sympy: Callable[[], float | None] | None = None

    @cached_property
    def sympy(self) -> float | None:
        """What SymPy derives for the entry from the definition of the operation; None where that was not possible."""
        return self.ask_sympy() if self.ask_sympy is not None else None

    def _referee(self) -> str:
        """Whose side SymPy takes."""
        value = self.sympy
        if value is None or math.isnan(self.expected):
            return ""
        room = 1e-6 * max(abs(self.found - self.expected), 1e-300)
        room = max(room, 1e-9 * abs(value))
        says = f"SymPy, from the definition alone: {value:.10g}"
        if abs(self.found - self.expected) < 3 * room:
            return says
        if abs(value - self.expected) <= room:
            return f"{says}, as the forward says"
        if abs(value - self.found) <= room:
            return f"{says}, as the rule says; it is the forward that does not compute its definition"
        return f"{says}, which is neither: look at the definition too"

    @property
    def place(self) -> str:
        """``lesson.py:12``; empty when the place is not known."""
        return f"{self.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{self.line}" if self.line else ""

    def __repr__(self) -> str:
        return (
            f"Blame(op={self.op!r}, node={self.node!r}, place={self.place!r}, input={self.input!r}, entry={self.entry})"
        )

    def lines(self) -> list[str]:
        """In words."""
        where = f", at {self.place}" if self.place else ""
        made = f", which makes {self.node}" if self.node and self.node != self.op else ""
        lines = [f"first wrong {self.part}: {self.op}{made}{where}"] if self.op else []
        if self.problem:
            lines.append(f"{'input ' + self.input + ': ' if self.input else ''}{self.problem}")
        if not math.isnan(self.expected) or (self.entry and not self.problem):
            at = f", entry {list(self.entry)}" if self.entry else ""
            near = abs(self.found - self.expected) < 1e-8 * abs(self.expected)
            digits = ".17g" if near else ".10g"
            off = f", off by {abs(self.found - self.expected):.1e}, more than rounding" if near else ""
            lines.append(
                f"input {self.input}{at}: the rule gives {self.found:{digits}}, "
                f"the forward says {self.expected:{digits}}{off}"
            )
        if self.formula:
            lines.append(f"what should have held: {self.formula}")
        if self.entry and (referee := self._referee()):
            lines.append(referee)
        if self.mistake is not None:
            lines += [f"likely mistake: {self.mistake.name}", f"  {self.mistake.text}"]
        return lines


class Report:
    """What a check found; true when the gradient is right.

    Attributes
    ----------
    name : str
        What was checked.
    verdict : "right", "wrong" or "undecided"
    rows : list of Row
        Every comparison.
    notes : list of str
        What is not a fault but worth knowing: kinks, constants, chance, precision.
    blame : Blame or None
        The first wrong rule.
    others : list of str
        Further operations whose rules are wrong.
    exact : str
        What the exact check says: "equal", "different", "right, but not decidable exactly", or why it was not made.
    remainder : float
        How fast the Taylor remainder falls: 2 is right, 1 is wrong.
    order : int
        The order that was reached; where something is wrong, the order at which it is.
    graph : Graph or None
        What was recorded, for pictures.
    """

    def __init__(self, name: str) -> None:
        self.name, self.verdict, self.order = name, "right", 1
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self.blame: Blame | None = None
        self.others: list[str] = []
        self.exact, self.remainder = "", math.nan
        self.graph: Any = None
        self.faults: list[Fault] = []

    def __bool__(self) -> bool:
        return self.verdict == "right"

    @property
    def mistake(self) -> str:
        """The name of the likely mistake; empty when there is none, or none is known."""
        return self.blame.mistake.name if self.blame is not None and self.blame.mistake is not None else ""

    def note(self, text: str) -> None:
        """Add a note once."""
        if text not in self.notes:
            self.notes.append(text)

    def text(self, full: bool = True) -> str:
        """The report in words; ``full`` with the table of all comparisons, not only of those that failed."""
        lines = [f"{self.name}: {self._headline()}"]
        if self.blame is not None:
            lines += ["  " + line for line in self.blame.lines()]
        if self.others:
            lines.append(f"  also wrong: {', '.join(self.others)}")
        lines += ["  " + note for note in self.notes]
        if self.exact:
            lines.append(f"  exact check: {self.exact}")
        if not math.isnan(self.remainder) and self.verdict != "undecided":
            lines.append(f"  Taylor remainder: {self._remainder()}")
        rows = [row for row in self.rows if full or not row.passed]
        if rows:
            cells = [
                [
                    r.input,
                    r.order,
                    r.way,
                    r.oracle,
                    f"{r.found:.6g}",
                    f"{r.expected:.6g}",
                    f"{r.difference:.1e}",
                    f"{r.allowed:.1e}",
                    "" if r.passed else "<--",
                ]
                for r in rows
            ]
            heads = ["input", "order", "way", "held against", "it gives", "should be", "difference", "allowed", ""]
            lines += ["  " + line.rstrip() for line in table(cells, heads).splitlines()]
        return "\n".join(lines)

    def _headline(self) -> str:
        of = "" if self.order == 1 else f" of order {self.order}"
        if self.verdict == "right":
            return f"the gradient is right{' up to order ' + str(self.order) if self.order > 1 else ''}."
        if self.verdict == "wrong":
            return f"the gradient{of} is WRONG."
        return f"the gradient{of} could not be checked."

    def _remainder(self) -> str:
        if math.isinf(self.remainder):
            return "nothing is left, the function is linear along the direction"
        if self.verdict == "right" and self.remainder < _CLEAR:
            return f"tells nothing here (slope {self.remainder:.2f}): it is lost in rounding, or crosses a kink"
        return f"falls with slope {self.remainder:.2f} (2 is right, 1 is wrong)"

    def __str__(self) -> str:
        return self.text(full=self.verdict == "right" or not any(not row.passed for row in self.rows))

    def __repr__(self) -> str:
        return f"Report({self.name!r}, {self.verdict}{', mistake=' + repr(self.mistake) if self.mistake else ''})"

    def _repr_html_(self) -> str:
        """For notebooks: the words and a table."""
        from tinyattn.notebook import report_html

        return report_html(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; what is not a finite number is text."""
        blame = None
        if self.blame is not None:
            b = self.blame
            blame = {
                "op": b.op,
                "node": b.node,
                "place": b.place,
                "input": b.input,
                "entry": list(b.entry),
                "found": _plain(b.found),
                "expected": _plain(b.expected),
                "problem": b.problem,
                "formula": b.formula,
                "sympy": None if b.sympy is None else _plain(b.sympy),
                "mistake": None if b.mistake is None else {"name": b.mistake.name, "text": b.mistake.text},
            }
        rows = [{name: _plain(getattr(row, name)) for name in (*Row.__slots__, "passed")} for row in self.rows]
        return {
            "name": self.name,
            "verdict": self.verdict,
            "order": self.order,
            "blame": blame,
            "others": self.others,
            "notes": self.notes,
            "exact": self.exact,
            "taylor_slope": _plain(self.remainder),
            "rows": rows,
        }


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
