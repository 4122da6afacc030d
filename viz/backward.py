"""The backward view of a graph: what is passed back along each arrow, and where it is added up.

The layout stays that of the forward picture; arrows are dashed and point to the operand.  Where a value was
used several times its cotangent is a sum, drawn as one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from viz import values
from viz.trace import Trace
from viz.view import View

if TYPE_CHECKING:
    from viz.view import Arrow

Direction = Literal["forward", "backward", "both"]


@dataclass(frozen=True)
class Passed:
    """What goes back along the arrows of a view.

    Attributes
    ----------
    along : dict of str to array or None
        By the arrow's key: the contribution, or None for a bundle of several.
    sums : dict of str to int
        Boxes whose gradient is added up, and from how many contributions.
    """

    along: dict[str, values.Array | None] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)


def passed_back(view: View) -> Passed:
    """Find what goes back along the arrows of a view, whose graph has its gradients.

    Examples
    --------
    >>> import tinyattn as ta
    >>> from viz.view import view_of
    >>> from viz.words import Words
    >>> x = ta.tensor([1.0, 2.0], requires_grad=True)
    >>> passed = passed_back(view_of(ta.Graph.of(ta.sum(x * x), gradients=True), Words("en")))
    >>> sorted(passed.along), passed.sums
    (['e1-0', 'e1-1', 'e2-0'], {'n0': 2})
    """
    home = Trace.homes(view)
    exact = {arrow.key for arrow in view.arrows if arrow.slot is not None}
    bundles = {(arrow.source, arrow.target): arrow.key for arrow in view.arrows if arrow.slot is None}
    along: dict[str, values.Array | None] = {}
    for c in view.graph.contributions:
        key = f"e{c.node}-{c.slot}"
        if key in exact:
            along[key] = c.value
        elif bundle := bundles.get((home.get(c.target, ""), home.get(c.node, ""))):
            along[bundle] = None
    counts: dict[str, int] = {}
    for arrow in view.arrows:
        counts[arrow.source] = counts.get(arrow.source, 0) + (arrow.key in along)
    return Passed(along, {key: count for key, count in counts.items() if count > 1})


def sum_key(box: str) -> str:
    """The id of the sum in front of a box."""
    return f"s{box}"


def goes_back(arrow: Arrow, passed: Passed, direction: Direction) -> bool:
    """Whether an arrow carries a cotangent in this view."""
    return direction != "forward" and arrow.key in passed.along
