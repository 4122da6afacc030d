"""``step``: the replay of a computation as one page, a vector-Jacobian product at a time."""

from __future__ import annotations

import html
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tinyattn.arguments import known_arguments, whole_number
from tinyattn.errors import ArgumentError, GraphError, MissingToolError, message
from viz import code_panel, dot, page, render, svg, text
from viz.choices import heading_of, one_of
from viz.labels import visible
from viz.page import Page
from viz.page_words import PAGE_WORDS
from viz.panels import Panels
from viz.trace import Step, Trace
from viz.view import View, view_of
from viz.words import Words

if TYPE_CHECKING:
    from tinyattn.graph import Graph
    from tinyattn.tensor import Tensor

MOST_NODES = 250
"""Beyond so many boxes even the steps are folded; a page for everything could not be read."""


@known_arguments
def step(
    y: Tensor | Sequence[Tensor] | Graph,
    *,
    names: Mapping[str, Tensor] | None = None,
    title: str | None = None,
    lang: Literal["en", "zh"] | None = None,
    max_nodes: int = MOST_NODES,
    direction: Literal["LR", "TB"] = "LR",
) -> Page:
    """Replay a computation: forward a node a step, then backward, a contribution to a gradient a step.

    The page is one file: the graph with the current node lit, the numbers that go in and come out, the local
    rule as a formula, your source line, and one plain sentence for each step.  At the end each parameter's
    gradient stands beside its numeric derivative.  It needs no network; no ``.grad`` changes.

    Parameters
    ----------
    y : Tensor, list of Tensor, or Graph
        What was computed, usually a loss.  A Graph must have its gradients: ``Graph.of(loss, gradients=True)``.
    names : mapping of str to Tensor, optional
        Names for tensors, before those found in the calling code.
    title : str, optional
    lang : {"en", "zh"}, optional
        The language that the page opens in; it can be switched in the page.
    max_nodes : int
        Fold until there are at most about so many boxes, and step over what was folded at once.
    direction : {"LR", "TB"}
        The graph from left to right, or from top to bottom.

    Returns
    -------
    Page

    Raises
    ------
    GraphError
        When nothing in the computation requires a gradient, so that there is no backward pass.

    Examples
    --------
    >>> import tinyattn as ta
    >>> import viz
    >>> x = ta.tensor([1.0, 2.0], requires_grad=True)
    >>> loss = ta.sum(x * x)
    >>> print(viz.step(loss).text.split("All steps")[1])
    <BLANKLINE>
     1. x, shape (2,), is a parameter: its gradient is wanted.
     2. Forward: multiply is multiply(x, x), shape (2,).
     3. Forward: loss is sum(multiply), shape ().
     4. Backward begins: the gradient of loss with respect to itself is 1.
     5. Contribution 1 of 1 to multiply: ...
    """
    words = Words(lang)
    one_of("direction", direction, ("LR", "TB"))
    if whole_number(max_nodes, "step", "max_nodes") < 4:
        raise ArgumentError(f"max_nodes={max_nodes}; a picture needs at least 4 boxes.")
    graph = _graph(y, names)
    heading = heading_of(title, words("replay title", names=text.output_names(graph, words)))
    replay = _Replay(view_of(graph, words, max_nodes=max_nodes), words, heading, direction)
    while replay.size() > page.WARN_BYTES and (boxes := len(replay.view.boxes)) > _FEWEST_NODES:
        smaller = max(_FEWEST_NODES, boxes // 2)
        folded = view_of(graph, words, max_nodes=smaller)
        if len(folded.boxes) == boxes:
            break
        replay = _Replay(folded, words, heading, direction)
        told = words("list").join(folded.folded)
        warnings.warn(f"The page would have been larger than 1 MB, so more was folded: {told}.", stacklevel=2)
    return Page(heading, replay.html, replay.text())


def _graph(y: Any, names: Mapping[str, Tensor] | None) -> Graph:
    from tinyattn.graph import Graph

    if isinstance(y, Graph) and names:
        instead = "Write Graph.of(y, names=..., gradients=True)."
        raise ArgumentError(message("step(graph) takes no names.", "A Graph already holds them.", instead))
    graph = y if isinstance(y, Graph) else Graph.of(y, names=names, gradients=True)
    if any(graph.nodes[index].grad is not None for index in graph.outputs):
        return graph
    instead = "Write Graph.of(loss, gradients=True), or give step the loss itself."
    raise GraphError(message("step(graph): this Graph holds no backward pass.", instead=instead))


_FEWEST_NODES = 30
_GAP = "<div><i>⋮</i></div>"


MOST_LINES = 300
"""Lines of the listing in the page; all of it is in the page's text."""


class _Replay:
    """The parts of one page."""

    def __init__(self, view: View, words: Words, title: str, direction: str) -> None:
        self.view, self.words, self.title, self.direction = view, words, title, direction
        self.graph = view.graph
        self.trace = Trace(view)
        self.panels = Panels(self.trace)
        self.code = code_panel.code_of(self.graph)
        self.sentences = [made.pop("say") for made in self.panels.steps]

    def size(self) -> int:
        """About how many bytes the page will have, before anything is laid out."""
        data = [self.panels.steps, self.panels.tables, self.panels.formulas, self.sentences]
        letters = sum(len(json.dumps(part, ensure_ascii=False).encode("utf-8", "replace")) for part in data)
        return 50_000 + 1000 * len(self.view.boxes) + letters

    def text(self) -> str:
        """The listing of the graph, then every step in words."""
        which = 1 if self.words.lang == "zh" else 0
        width = len(str(len(self.sentences)))
        lines = [f"{at:>{width}}. {said[which]}" for at, said in enumerate(self.sentences, 1)]
        if width < 2:
            lines = [f" {line}" for line in lines]
        heading = PAGE_WORDS[self.words.lang]["steps"]
        return "\n".join([visible(self.title), "", text.listing(self.graph, self.words), heading, *lines]) + "\n"

    def _listing(self) -> str:
        lines = text.listing(self.graph, self.words).split("\n")
        if len(lines) > MOST_LINES:
            lines[MOST_LINES:] = [self.words("more", count=len(lines) - MOST_LINES)]
        return "\n".join(lines)

    # The page -----------------------------------------------------------------------------------------

    def html(self) -> str:
        used = {at for step in self.trace.steps for at in (step.node, step.target)}
        pictures, levels = self._levels(used)
        parts = {
            "TITLE": html.escape(visible(self.title)),
            "PICTURES": pictures,
            "CODE": self._code(),
            "STEPS": self._steps(),
            "FORMULAS": self._formulas(),
            "LISTING": html.escape(self._listing()),
            "LEVELS": _level_options(len(levels)),
            "COUNT": str(len(self.sentences)),
        }
        body = page.filled(page.asset("stepper.html"), parts)
        data = {
            "words": PAGE_WORDS,
            "nodes": {str(at): place for at in used if (place := code_panel.place_of(self.graph, at, self.code))},
            "tables": self.panels.tables,
            "steps": self.panels.steps,
            "levels": levels,
        }
        return page.document(
            title=visible(self.title),
            lang=self.words.lang,
            styles=page.asset("stepper.css"),
            body=body,
            data=data,
            script=page.asset("stepper.js"),
        )

    def _levels(self, used: set[int]) -> tuple[str, list[dict[str, Any]]]:
        """The picture unfolded, then folded to each depth; and where nodes and operands are in each."""
        deepest = max((len(box.scope) for box in self.view.boxes), default=0)
        views = [self.view]
        for depth in range(deepest - 1, -1, -1):
            views.append(view_of(self.graph, self.words, max_nodes=len(self.graph.nodes) + 4, depth=depth))
        pictures, levels = [], []
        for at, view in enumerate(views):
            drawn = self._picture(view, f"L{at}-")
            if not drawn.startswith("<svg"):
                return drawn, []
            pictures.append(drawn if at == 0 else drawn.replace("<svg", '<svg hidden style="display:none"', 1))
            levels.append(_places(view, self.trace.steps, used))
        return "\n".join(pictures), levels

    def _picture(self, view: View, prefix: str) -> str:
        style = dot.Style(
            show=frozenset(("op", "shape")),
            direction=self.direction,
            theme="light",
            legend=False,
            title="",
            words=self.words,
        )
        marks = {box.key: svg.Mark(box.kind + " output" * box.output, visible(box.title)) for box in view.boxes}
        marks |= {arrow.key: svg.Mark("", "→") for arrow in view.arrows}
        try:
            drawn = render.draw(dot.source(view, style), "svg").decode("utf-8")
        except MissingToolError as error:
            return f"<pre>{html.escape(str(error))}</pre>"
        said = text.sentence(view, self.words)
        return page.embedded(svg.finished(drawn, title=self.title, description=said, marks=marks, auto=False), prefix)

    def _code(self) -> str:
        blocks = []
        for at, panel in enumerate(self.code):
            lines = [
                f'<div id="c{at}-{line[0]}"><i>{line[0]}</i>{html.escape(line[1])}</div>' if line else _GAP
                for line in panel["lines"]
            ]
            blocks.append(f"<small>{html.escape(panel['file'])}</small>\n" + "\n".join(lines))
        return "\n".join(blocks)

    def _formulas(self) -> str:
        """One element each: MathML in both notations, or the words of a definition."""
        shelf = []
        for formula in self.panels.formulas:
            if "t" in formula:
                shelf.append(f"<code>{html.escape(formula['t'])}</code>")
            else:
                both = [formula["m"] and f"<math>{formula['m']}</math>", f"<math>{formula['mi']}</math>"]
                shelf.append(f"<div>{''.join(both)}</div>")
        return "\n".join(shelf)

    def _steps(self) -> str:
        return "\n".join(
            f'<li><span lang="en">{html.escape(english)}</span><span lang="zh">{html.escape(chinese)}</span></li>'
            for english, chinese in self.sentences
        )


def _places(view: View, steps: Sequence[Step], used: set[int]) -> dict[str, Any]:
    """Per node its box, per contribution its arrow, per box the arrows that come in."""
    home = Trace.homes(view)
    arrows = {(arrow.source, arrow.target): arrow.key for arrow in view.arrows if arrow.slot is None}
    slots = {arrow.key for arrow in view.arrows if arrow.slot is not None}
    edges: dict[str, str] = {}
    for step in steps:
        if step.kind == "pull":
            exact = f"e{step.node}-{step.slot}"
            key = exact if exact in slots else arrows.get((home[step.target], home[step.node]))
            if key:
                edges[f"{step.node}-{step.slot}"] = key
    into: dict[str, list[str]] = {}
    for arrow in view.arrows:
        into.setdefault(arrow.target, []).append(arrow.key)
    return {"box": {str(index): home[index] for index in sorted(used)}, "edge": edges, "into": into}


def _level_options(count: int) -> str:
    options = ['<option value="0" data-word="unfolded">unfolded</option>']
    options += [
        f'<option value="{at}" data-word="depth" data-n="{count - 1 - at}">folded to depth {count - 1 - at}</option>'
        for at in range(1, count)
    ]
    return "".join(options)
