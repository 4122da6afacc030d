"""``modules``: a model as the tree of its modules, with the parameters of each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tinyattn.arguments import known_arguments
from tinyattn.errors import ArgumentTypeError, message
from viz import colours, data, dot, labels
from viz.choices import check_theme, heading_of, one_of
from viz.drawing import AnyTheme, Drawing, Parts
from viz.labels import visible
from viz.svg import Mark
from viz.words import Words

if TYPE_CHECKING:
    from tinyattn.nn import Module


@dataclass
class Part:
    """One module: its name, its class, its own parameters by name and shape, its parts."""

    key: str
    name: str
    kind: str
    own: dict[str, tuple[int, ...]] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)

    def count(self) -> int:
        """How many numbers it owns itself."""
        return sum(math.prod(shape) for shape in self.own.values())

    def total(self) -> int:
        """How many numbers there are, with those of its parts."""
        return self.count() + sum(part.total() for part in self.parts)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Part]]:
        """Every part with its depth, from the top."""
        yield depth, self
        for part in self.parts:
            yield from part.walk(depth + 1)


@known_arguments
def modules(
    model: Module,
    *,
    direction: Literal["LR", "TB"] = "TB",
    theme: AnyTheme = "auto",
    title: str | None = None,
    lang: Literal["en", "zh"] | None = None,
) -> Drawing:
    """Draw a model as a tree: which modules it has, and what each has to learn.

    Parameters
    ----------
    model : Module
    direction : {"LR", "TB"}
    theme : {"auto", "light", "dark"}
    title : str, optional
    lang : {"en", "zh"}, optional

    Returns
    -------
    Drawing

    Examples
    --------
    >>> import tinyattn as ta
    >>> import viz
    >>> print(viz.modules(ta.nn.SelfAttention(4, 3, rng=0)).text)
    SelfAttention: SelfAttention, 40 numbers
      W_q (4, 3), W_k (4, 3), W_v (4, 4)
    <BLANKLINE>
    """
    check_theme(theme)
    one_of("direction", direction, ("LR", "TB"))
    words = Words(lang)
    if not (hasattr(model, "named_modules") and hasattr(model, "named_parameters")):
        raise ArgumentTypeError(
            message(
                f"modules: a Module is needed, not {type(model).__name__}.",
                "Only a module has parts with names.",
                "To draw what was computed, write viz.draw(y).",
            )
        )
    tree = tree_of(model)
    heading = heading_of(title, words("tree title", name=visible(tree.name)))
    said = _text(tree, words)
    parts = Parts(
        dot=lambda: _dot(tree, heading, direction, "dark" if theme == "dark" else "light", words),
        text=lambda: said,
        alt_text=lambda: said,
        data=lambda: {"format": data.FORMAT, "kind": "modules", "title": heading, "root": _plain(tree)},
        marks=lambda: {part.key: Mark("op", visible(part.name)) for _, part in tree.walk()},
    )
    return Drawing(heading, theme, parts, words.lang)


def tree_of(model: Any) -> Part:
    """The tree of a model, from the names of its modules and parameters."""
    found: dict[str, Part] = {}
    for number, (path, module) in enumerate(model.named_modules()):
        owner, name = _owner(path, found)
        part = Part(f"n{number}", name or type(module).__name__, type(module).__name__)
        if path:
            found[owner].parts.append(part)
        found[path] = part
    for path, leaf in model.named_parameters():
        owner, name = _owner(path, found)
        found[owner].own[name] = tuple(leaf.shape)
    return found[""]


def _owner(path: str, found: dict[str, Part]) -> tuple[str, str]:
    """The module that a part belongs to, and what the part is called there: ``heads.0`` for one of a list."""
    owner = next((above for above in _above(path.rpartition(".")[0]) if above in found), "")
    return owner, path[len(owner) + 1 :] if owner else path


def _above(path: str) -> Iterator[str]:
    """A path and the shorter ones that it begins with; the last is the model itself."""
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""


def _text(tree: Part, words: Words) -> str:
    lines = []
    for depth, part in tree.walk():
        lines.append("  " * depth + words("tree line", name=visible(part.name), kind=part.kind, count=part.total()))
        if part.own:
            lines.append("  " * (depth + 1) + ", ".join(f"{visible(name)} {shape}" for name, shape in part.own.items()))
    return "\n".join(lines) + "\n"


def _dot(tree: Part, title: str, direction: str, theme: colours.Theme, words: Words) -> str:
    roles = colours.palette(theme)
    graph = dot.new_graph(theme, rankdir=direction, ranksep="0.35", nodesep="0.25")
    heading = labels.text(title, dot.NAME_SIZE + 2, colour=roles["text"], bold=True)
    graph.attr("graph", label=labels.label(heading), labelloc="t", labeljust="l")
    for _, part in tree.walk():
        rows = [labels.text(part.name, dot.NAME_SIZE, colour=roles["text"], bold=True)]
        rows.append(labels.text(part.kind, dot.TEXT_SIZE, colour=roles["muted"]))
        for name, shape in part.own.items():
            rows.append(labels.text(f"{name} {shape}", dot.TEXT_SIZE, colour=roles["text"]))
        if part.parts:
            rows.append(labels.text(words("tree own", count=part.total()), dot.TEXT_SIZE, colour=roles["muted"]))
        label = labels.label(labels.table([[labels.tag("TD", row)] for row in rows]))
        kind = "parameter" if part.own else "op"
        look = {"style": "filled", "fillcolor": roles[kind], "color": roles[f"{kind} line"]}
        graph.node(part.key, label=label, id=part.key, **look)
        for inner in part.parts:
            graph.edge(part.key, inner.key, id=f"e{part.key}-{inner.key}", arrowhead="none")
    return str(graph.source)


def _plain(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "class": part.kind,
        "parameters": {name: list(shape) for name, shape in part.own.items()},
        "parts": [_plain(inner) for inner in part.parts],
    }
