"""``draw``: the computation graph of a tensor as a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from tinyattn.arguments import known_arguments, whole_number
from tinyattn.errors import ArgumentError, ArgumentTypeError, message
from viz import backward, data, dot, text
from viz.choices import check_theme, heading_of, one_of
from viz.drawing import AnyTheme, Drawing, Parts
from viz.formulas import RuleBook
from viz.labels import visible
from viz.svg import Mark
from viz.view import View, view_of
from viz.words import Words

if TYPE_CHECKING:
    from tinyattn.graph import Graph
    from tinyattn.tensor import Tensor

Show = Literal["op", "shape", "value", "grad", "rule", "formula"]


@known_arguments
def draw(
    y: Tensor | Sequence[Tensor] | Graph,
    *,
    show: Iterable[Show] = ("op", "shape", "value", "grad"),
    view: backward.Direction = "forward",
    direction: Literal["LR", "TB"] = "LR",
    names: Mapping[str, Tensor] | None = None,
    scopes: bool = True,
    depth: int | None = None,
    fold: Sequence[str] = (),
    max_nodes: int = 60,
    theme: AnyTheme = "auto",
    legend: bool = True,
    title: str | None = None,
    gradients: bool = False,
    lang: Literal["en", "zh"] | None = None,
) -> Drawing:
    """Draw how a tensor was computed: every value, every gradient, under the names of your own code.

    Parameters
    ----------
    y : Tensor, list of Tensor, or Graph
        What was computed.
    show : iterable of {"op", "shape", "value", "grad", "rule", "formula"}
        What stands in each box; "rule" is the local derivative rule of each operand.
    view : {"forward", "backward", "both"}
        Which way the arrows go: operands into operations, or gradients back, with what is passed back on
        each arrow and a sum where a value was used several times.
    direction : {"LR", "TB"}
        From left to right, or from top to bottom.
    names : mapping of str to Tensor, optional
        Names for tensors, before those found in the calling code.
    scopes : bool
        Draw each ``with ta.scope("head 1")`` as a frame around its operations.
    depth : int, optional
        Fold the scopes that are nested deeper than this; 0 folds all.
    fold : sequence of str
        Names of scopes to fold.
    max_nodes : int
        Fold until there are at most about so many boxes, and say what was folded.
    theme : {"auto", "light", "dark"}
        Colours; "auto" follows the reader's setting in a browser, and is light elsewhere.
    legend : bool
        Explain the kinds of boxes below the picture.
    title : str, optional
    gradients : bool
        Run a backward pass for the picture alone, so that every box has its gradient; no ``.grad`` changes.
        A backward view always does.
    lang : {"en", "zh"}, optional
        The language of the words in the picture.

    Returns
    -------
    Drawing

    Examples
    --------
    >>> import tinyattn as ta
    >>> import viz
    >>> x = ta.tensor([1.0, 2.0], requires_grad=True)
    >>> y = ta.sum(x * x)
    >>> print(viz.draw(y, gradients=True).text)
    x        : (2,) = parameter  |  [1 2]  |  gradient [2 4]
    multiply : (2,) = multiply(x, x)  |  [1 4]  |  gradient [1 1]
    y        : () = sum(multiply, axis=(0,))  |  5  |  gradient 1
    return y
    <BLANKLINE>
    """
    words = Words(lang)
    _check_choices(show := _tuple_of(show), direction, theme, max_nodes)
    one_of("view", view, get_args(backward.Direction))
    graph = _graph(y, names, gradients, view)
    picture = view_of(graph, words, scopes=scopes, max_nodes=max_nodes, depth=depth, fold=fold)
    book = RuleBook(graph) if {"rule", "formula"} & set(show) else None
    heading = heading_of(title, words("graph title", names=text.output_names(graph, words)))
    style = dot.Style(
        show=frozenset(show),
        direction=direction,
        theme="dark" if theme == "dark" else "light",
        legend=legend,
        title=heading,
        words=words,
        flow=view,
        passed=backward.passed_back(picture) if view != "forward" else backward.Passed(),
        book=book,
    )
    parts = Parts(
        dot=lambda: dot.source(picture, style),
        text=lambda: text.listing(graph, words, scopes=scopes, said=_formulas(book, frozenset(show))),
        alt_text=lambda: text.alternative(picture, words),
        data=lambda: data.graph_data(picture, heading, book),
        marks=lambda: _marks(picture, words),
    )
    return Drawing(heading, theme, parts, words.lang)


def _formulas(book: RuleBook | None, show: frozenset[str]) -> Callable[[int], list[str]] | None:
    """What a listing adds to the line of a node."""
    if book is None:
        return None

    def said(index: int) -> list[str]:
        rules = book.of(index)
        if rules is None:
            return []
        forward = [rules.forward.text or rules.definition] if "formula" in show else []
        return forward + [rule.text for rule in rules.backward.values() if "rule" in show]

    return said


def _graph(y: Any, names: Mapping[str, Tensor] | None, gradients: bool, view: str) -> Graph:
    from tinyattn.graph import Graph

    if isinstance(y, Graph):
        if view != "forward" and not y.contributions:
            raise ArgumentError(
                message(
                    f"draw(graph, view={view!r}): this Graph holds no backward pass.",
                    instead="Write Graph.of(y, gradients=True), or give draw the tensor.",
                )
            )
        if names or gradients:
            raise ArgumentError(
                message(
                    "draw(graph) takes neither names nor gradients.",
                    "A Graph already holds both.",
                    "Write Graph.of(y, names=..., gradients=...), or give draw the tensor.",
                )
            )
        return y
    return Graph.of(y, names=names, gradients=gradients or view != "forward")


def _tuple_of(show: object) -> tuple[Any, ...]:
    if isinstance(show, str) or not isinstance(show, Iterable):
        raise ArgumentTypeError(message(f"show={show!r} is no list.", "", "Write show=('op', 'shape')."))
    return tuple(show)


def _check_choices(show: tuple[str, ...], direction: str, theme: str, max_nodes: int) -> None:
    known = get_args(Show)
    for name in show:
        if not isinstance(name, str) or name not in known:
            raise ArgumentError(f"show has {name!r}; a box can show {', '.join(map(repr, known))}.")
    if not isinstance(direction, str) or direction not in ("LR", "TB"):
        raise ArgumentError(f"direction={direction!r}; it is 'LR' (left to right) or 'TB' (top to bottom).")
    check_theme(theme)
    if whole_number(max_nodes, "draw", "max_nodes") < 4:
        raise ArgumentError(f"max_nodes={max_nodes}; a picture needs at least 4 boxes.")


def _marks(view: View, words: Words) -> dict[str, Mark]:
    """For the pointer: a box's line of the listing, an arrow's two ends."""
    nodes = view.graph.nodes
    titles = {box.key: visible(box.title) for box in view.boxes}
    marks = {}
    for box in view.boxes:
        one = box.kind != "fold"
        said = text.line_of(view.graph, nodes[box.members[0]], words) if one else titles[box.key]
        marks[box.key] = Mark(box.kind + (" output" if box.output else ""), said)
    for arrow in view.arrows:
        operand = f" ({arrow.label})" if arrow.label else ""
        marks[arrow.key] = Mark("", f"{titles[arrow.source]} → {titles[arrow.target]}{operand}")
    return marks
