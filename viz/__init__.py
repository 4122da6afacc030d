"""Pictures of what tinyattn computed: ``viz.draw(y)`` and ``viz.attention(weights, tokens)``.

Every picture is a :class:`Drawing`: DOT and text always, SVG and PNG through Graphviz, which lays out
everything here.  The package reads a ``Graph`` and never a tensor's private parts; nothing in ``tinyattn``
imports it at import time, and importing it is cheap, because each name is fetched when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from viz.attention_pages import attention_page
    from viz.comparing import diff
    from viz.drawing import Drawing
    from viz.figures import curve, embedding, gradients, waveform
    from viz.graphs import draw
    from viz.heatmap import attention
    from viz.module_tree import modules
    from viz.page import Page
    from viz.stepping import step

__all__ = [
    "Drawing", "Page", "attention", "attention_page", "curve", "diff", "draw", "embedding", "gradients", "modules",
    "step", "waveform",
]  # fmt: skip

__tinyattn_viz__ = True
"""The mark by which tinyattn tells this package from another module that happens to be called viz."""

# A submodule never has the name of a public function: importing it would put the module in its place.
_HOME = {
    "Drawing": "viz.drawing",
    "Page": "viz.page",
    "attention": "viz.heatmap",
    "attention_page": "viz.attention_pages",
    "curve": "viz.figures",
    "diff": "viz.comparing",
    "draw": "viz.graphs",
    "embedding": "viz.figures",
    "gradients": "viz.figures",
    "modules": "viz.module_tree",
    "step": "viz.stepping",
    "waveform": "viz.figures",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'viz' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
