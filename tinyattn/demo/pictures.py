"""What the demo writes: the graph as SVG, DOT and text, the weights as a heat map."""

from __future__ import annotations

import os
import tempfile

import tinyattn as ta
from tinyattn import nn
from tinyattn._viz import load_viz
from tinyattn.demo.paper import Paper, listed
from tinyattn.demo.sentence import Input
from tinyattn.errors import ArgumentError, GraphError, MissingLibraryError, MissingToolError, message

MOST_WORDS = 30  # in the heat map: beyond that nobody can read it
_WHAT = {
    "graph.svg": "the computation graph: values, gradients, shapes",
    "graph.dot": "the graph in Graphviz's language",
    "graph.txt": "the graph as a listing, a line a node",
    "weights.svg": "the attention weights as a heat map",
    "weights.dot": "the heat map in Graphviz's language",
    "weights.txt": "the weights as a table",
}


def prepare(folder: str) -> str:
    """Make the folder and see that it can be written to and drawn for, before anything is computed for it.

    Returns
    -------
    str
        The folder's full path.

    Raises
    ------
    ArgumentError
        When it cannot be made or written to.
    MissingLibraryError
        When another module stands in the way of the pictures.
    """
    load_viz()
    path = os.path.abspath(os.path.expanduser(folder))
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:
        raise ArgumentError(
            message(
                f"Nothing can be written into {path}: {getattr(error, 'strerror', None) or error}.",
                "The demo puts its pictures there.",
                "Name another folder with --out.",
            )
        ) from None
    return path


def write(given: Input, loss: ta.Tensor, steps: nn.AttentionSteps, folder: str, paper: Paper) -> None:
    """Draw both pictures, write each in three forms, and say where they are."""
    viz = load_viz()
    graph = ta.Graph.of(loss, variables={}, gradients=True)
    title = "Self-attention on " + " ".join(given.words)
    few = given.words[:MOST_WORDS]
    drawings = {
        "graph": viz.draw(graph, title=title if len(title) <= 80 else title[:79] + "…"),
        "weights": viz.attention(steps.weights.data[: len(few), : len(few)], few),
    }
    written: list[list[str]] = []
    refused: dict[str, list[str]] = {}
    for name, what in _WHAT.items():
        stem = name.partition(".")[0]
        try:
            drawings[stem].save(os.path.join(folder, name))
            written.append([os.path.join(folder, name), what])
        except (MissingToolError, MissingLibraryError, GraphError) as error:  # the listing needs neither
            refused.setdefault(str(error), []).append(name)
    paper.table(written)
    if len(few) < len(given.words):
        paper.text(f"The heat map has the first {len(few)} of the {len(given.words)} words.")
    for reason, names in refused.items():
        paper.lines(f"Not written: {listed(names)}.\n  {reason}")

