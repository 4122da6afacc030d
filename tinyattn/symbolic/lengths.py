"""Which axes of a recorded computation have the same length, as a matter of the operations and not of the numbers.

Every axis of every tensor gets a number; the shape rule of an operation joins the numbers of axes that one letter
runs over (`matmul` joins the contracted axes, `add` the broadcast ones). What is joined is one *size class*,
whatever the lengths of this run; two classes may well be equally long. An axis of length 1 that is kept or stretched
is no class at all, and a merged axis (h d) is a tuple of classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


class Lengths:
    """Union-find over axes, where a set may be bound to a tuple of other sets."""

    def __init__(self) -> None:
        self._parent: list[int] = []
        self._group: dict[int, tuple[int, ...]] = {}
        self.length: list[int] = []

    def new(self, length: int) -> int:
        """Give the number for one more axis."""
        self._parent.append(len(self._parent))
        self.length.append(length)
        return len(self._parent) - 1

    def find(self, axis: int) -> int:
        """Give the representative of an axis."""
        parent = self._parent
        while parent[axis] != axis:
            parent[axis] = parent[parent[axis]]
            axis = parent[axis]
        return axis

    def join(self, first: int, second: int) -> bool:
        """Make two axes one class; False where they cannot be (other lengths, other make-up)."""
        first, second = self.find(first), self.find(second)
        if first == second:
            return True
        if self.length[first] != self.length[second]:
            return False
        if first in self._group and second in self._group:
            left, right = self.atoms(first), self.atoms(second)
            if [self.length[each] for each in left] != [self.length[each] for each in right]:
                return False
            for one, other in zip(left, right, strict=True):
                self.join(one, other)
            return True
        if first in self._group:
            first, second = second, first
        if first in self.atoms(second) and second in self._group:
            return False
        self._parent[max(first, second) if second not in self._group else first] = (
            min(first, second) if second not in self._group else second
        )
        return True

    def bind(self, axis: int, parts: Sequence[int]) -> bool:
        """Say that an axis is made of others, row-major; of none if it is an axis of length 1 that is kept or
        stretched.
        """
        axis = self.find(axis)
        if axis in self._group:
            old = self.atoms(axis)
            new = [atom for part in parts for atom in self.atoms(part)]
            if [self.length[each] for each in old] != [self.length[each] for each in new]:
                return False
            for one, other in zip(old, new, strict=True):
                self.join(one, other)
            return True
        if any(axis in self.atoms(part) for part in parts):
            return False
        self._group[axis] = tuple(parts)
        return True

    def atoms(self, axis: int) -> tuple[int, ...]:
        """Give the size classes that make up an axis."""
        axis = self.find(axis)
        if axis not in self._group:
            return (axis,)
        return tuple(atom for part in self._group[axis] for atom in self.atoms(part))


POSITIONS = ("n", "m", "l", "t", "s", "r", "p", "b")
WIDTHS = ("d", "k", "e", "f", "w", "c", "g", "v")


def name_lengths(
    lengths: Lengths, axes: Iterable[tuple[int, ...]], given: Mapping[int, str], taken: set[str]
) -> dict[int, str]:
    """Name every size class: as the user says, else n, m, ... for rows and d, k, ... for last axes.

    Parameters
    ----------
    lengths : Lengths
        The classes.
    axes : iterable of tuple of int
        The axes of each tensor, in the order in which names are handed out.
    given : mapping of int to str
        Names that the user chose, by class.
    taken : set of str
        Names of tensors, which no length should have too. Where keys are called `k`, widths are d_k and d_v.
    """
    names = {lengths.find(cls): name for cls, name in given.items()}
    fresh = _Fresh(set(names.values()) | taken)
    widths = (WIDTHS[0], "d_k", "d_v", *WIDTHS[1:]) if "k" in taken else WIDTHS
    for row in axes:
        for at, axis in enumerate(row):
            atoms = lengths.atoms(axis)
            last = at == len(row) - 1 and len(row) > 1
            for place, cls in enumerate(atoms):
                if cls not in names:
                    head = len(atoms) > 1 and place < len(atoms) - 1
                    names[cls] = fresh.name(("h", "a", *POSITIONS) if head else widths if last else POSITIONS)
    return names


class _Fresh:
    """Hands out names that were not used before."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._counts: dict[str, int] = {}

    def name(self, pool: Sequence[str]) -> str:
        """Give the first free name of a pool, then numbered ones."""
        name = next((each for each in pool if each not in self._taken), None)
        while name is None:
            self._counts[pool[0]] = number = self._counts.get(pool[0], 0) + 1
            name = f"{pool[0]}{number}" if f"{pool[0]}{number}" not in self._taken else None
        self._taken.add(name)
        return name
