"""Which array each line writes to: arrays that are made once, written over where their numbers are no longer wanted.

A line that works entry by entry may write over an operand that nobody reads afterwards; any other line gets an array
that is free.  What is handed to the user lies in an array of its own, new in every call.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from tinyattn.compiled.lines import ENTRYWISE, Line
from tinyattn.ops.indexing import is_basic

ALWAYS_NEW = {"where", "pack", "stack", "integer_power", "erf", "take_along_axis", "put_along_axis"}
"""What NumPy, or the program, can only give as a new array."""


def is_view(line: Line, base: Line, contiguous: bool) -> bool:
    """Whether a line is another look at the numbers of its input, whose own numbers are those of ``base``."""
    if line.number or line.inputs[:1] == () or line.inputs[0].shape == ():
        return False
    if line.op == "reshape":  # of an input it may be a copy; nothing is written over either
        return contiguous or base.op in ("input", "constant")
    return line.op == "transpose" or (line.op == "index" and is_basic(line.params[0]))


class Storage:
    """One array of numbers, and how long they are wanted."""

    __slots__ = ("end", "line", "new", "slot", "start")

    def __init__(self, line: Line, start: int, end: int, new: bool) -> None:
        self.line, self.start, self.end, self.new, self.slot = line, start, end, new, -1


class Stores:
    """Where the numbers of every line are.

    Attributes
    ----------
    of : dict of int to Storage
        By the identity of a line; views have the storage of what they look at.  Inputs and constants have none.
    over : dict of int to Line
        The operand that a line writes over.
    views : set of int
        Lines that are views.
    slots : list of (shape, dtype)
        The arrays that are made once.
    """

    def __init__(self, every: list[Line], results: list[Line]) -> None:
        self.of: dict[int, Storage] = {}
        self.over: dict[int, Line] = {}
        self.views: set[int] = set()
        self.slots: list[tuple[Any, Any]] = []
        self.every, self.results = every, results
        self.contiguous: set[int] = set()
        self._base: dict[int, Line] = {}
        self._find_views()
        self._last_uses()
        self._place()
        self._number_slots()

    def _find_views(self) -> None:
        for line in self.every:
            source = line.inputs[0] if line.inputs else line
            if is_view(line, self.base(source), id(source) in self.contiguous):
                self.views.add(id(line))
                self._base[id(line)] = self.base(source)
                if line.op == "reshape" and id(source) in self.contiguous:
                    self.contiguous.add(id(line))
            elif not line.number:
                self.contiguous.add(id(line))

    def base(self, line: Line) -> Line:
        """The line whose numbers a view looks at; a line itself otherwise."""
        return self._base.get(id(line), line)

    def _last_uses(self) -> None:
        self.last: dict[int, int] = {}
        for at, line in enumerate(self.every):
            for x in line.needs():
                self.last[id(self.base(x))] = at
                self.last[id(x)] = at
        for line in self.results:
            self.last[id(self.base(line))] = self.last[id(line)] = len(self.every)

    def _place(self) -> None:
        handed_out = {id(self.base(line)) for line in self.results}
        for at, line in enumerate(self.every):
            if line.number or line.constant:
                continue
            if id(line) in self.views:
                base = self.of.get(id(self.base(line)))
                if base is not None:
                    self.of[id(line)] = base
                continue
            end, new = self.last.get(id(line), at), id(line) in handed_out or line.op in ALWAYS_NEW
            operand = self._overwritten(line, at) if line.op in ENTRYWISE else None
            if operand is None:
                self.of[id(line)] = Storage(line, at, end, new or line.op == "index")
            else:
                storage = self.of[id(line)] = self.of[id(operand)]
                self.over[id(line)] = operand
                storage.end, storage.new = end, storage.new or id(line) in handed_out

    def _overwritten(self, line: Line, at: int) -> Line | None:
        """An operand whose numbers nobody wants after this line, of the same shape and type."""
        for x in line.inputs:
            storage = self.of.get(id(x))
            if storage is None or id(x) in self.views or x.shape != line.shape or x.dtype != line.dtype:
                continue
            if storage.end == at and self.last.get(id(x)) == at:
                return x
        return None

    def _number_slots(self) -> None:
        """Give storages that are not wanted at the same time the same array."""
        free: dict[Any, list[int]] = {}
        busy: list[tuple[int, int, Any]] = []  # a heap: what is free first
        done: set[int] = set()
        for at, line in enumerate(self.every):
            while busy and busy[0][0] < at:
                _, slot, key = heappop(busy)
                free.setdefault(key, []).append(slot)
            storage = self.of.get(id(line))
            if storage is None or storage.new or id(storage) in done or id(line) in self.views:
                continue
            done.add(id(storage))
            key = (line.shape, line.dtype)
            waiting = free.get(key)
            if waiting:
                storage.slot = waiting.pop()
            else:
                storage.slot = len(self.slots)
                self.slots.append(key)
            heappush(busy, (storage.end, storage.slot, key))
