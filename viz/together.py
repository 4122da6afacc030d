"""Which boxes may be folded into one: a fold must not be left and entered again.

A module that is called twelve times leaves twelve runs of operations under one name.  As one box they would
feed themselves; so each run becomes a box of its own.  Heads computed in turns may still become one box each,
because no path leads out of a head and back into it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from viz.view import Arrow, Box, View

Groups = Mapping[str, Hashable]


def parted(view: View, groups: Groups) -> dict[str, Hashable]:
    """The groups, with each that may not be one box parted into its runs.

    Parameters
    ----------
    view : View
    groups : mapping of box key to group
    """
    made: dict[str, Hashable] = dict(groups)
    sources, readers = _sources(view.arrows), _readers(view.arrows)
    for name, members in _members(groups).items():
        if not may_be_one(view.boxes, sources, members):
            made.update((key, (name, run)) for key, run in _runs(view.boxes, readers, members).items())
    return made


def allowed(view: View, groups: Groups) -> dict[str, Hashable]:
    """The groups without those that may not be one box."""
    sources = _sources(view.arrows)
    return {
        key: name
        for name, members in _members(groups).items()
        if may_be_one(view.boxes, sources, members)
        for key in members
    }


def may_be_one(boxes: Sequence[Box], sources: Mapping[str, set[str]], group: set[str]) -> bool:
    """True when no path leaves a group of boxes and comes back to it.

    Parameters
    ----------
    boxes : sequence of Box
        In the order in which they were computed.
    sources : mapping of box key to the keys that it reads
    group : set of str
    """
    left = len(group)
    behind: set[str] = set()  # outside the group, and reached from it
    for box in boxes:
        if box.key in group:
            left -= 1
            if not behind.isdisjoint(sources.get(box.key, ())):
                return False
        elif left < len(group):
            read = sources.get(box.key, set())
            if not group.isdisjoint(read) or not behind.isdisjoint(read):
                behind.add(box.key)
        if not left:
            return True
    return True


def _runs(boxes: Sequence[Box], readers: Mapping[str, list[str]], group: set[str]) -> dict[str, int]:
    """The number of the run that each box of a group is in; a leaf is in that of its first reader."""
    run, inside = 0, False
    found: dict[str, int] = {}
    for box in boxes:
        if box.kind in ("op", "fold"):
            run += box.key in group and not inside
            inside = box.key in group
            if inside:
                found[box.key] = run
    for key in group - found.keys():
        found[key] = next((found[reader] for reader in readers.get(key, ()) if reader in found), 0)
    return found


def _members(groups: Groups) -> dict[Hashable, set[str]]:
    members: dict[Hashable, set[str]] = {}
    for key, name in groups.items():
        members.setdefault(name, set()).add(key)
    return members


def _sources(arrows: Sequence[Arrow]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for arrow in arrows:
        found.setdefault(arrow.target, set()).add(arrow.source)
    return found


def _readers(arrows: Sequence[Arrow]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for arrow in arrows:
        found.setdefault(arrow.source, []).append(arrow.target)
    return found
