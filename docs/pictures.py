"""Draw the pictures of the README: one attention head on "I saw a saw", and its weights.

    .venv/bin/python docs/pictures.py       writes docs/pictures/*.svg

The renderer is graphviz-pure, which draws the same on every machine; a test holds the files current.
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))  # the packages beside this folder, installed or not

import tinyattn as ta  # noqa: E402
import viz  # noqa: E402
from tinyattn.files import write_whole  # noqa: E402

WORDS = "I saw a saw".split()


def main() -> int:
    """Write every picture."""
    for name, text in pictures().items():
        write_whole(DOCS / "pictures" / name, text)
        print(f"wrote pictures/{name}")
    return 0


def pictures() -> dict[str, str]:
    """Each picture as SVG, by the name of its file."""
    X = ta.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, 1.0]])  # a vector for each word; both saws alike
    W_q = ta.tensor([[1.0, 0.5], [-0.5, 1.0]], requires_grad=True)
    W_k = ta.tensor([[1.5, -0.5], [0.5, 1.0]], requires_grad=True)
    W_v = ta.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    scores = Q @ K.mT / ta.sqrt(ta.size_of(K, -1))
    weights = ta.softmax(scores)
    Y = weights @ V
    graph = ta.Graph.of(Y, gradients=True)
    return {
        "attention-graph.svg": drawn(viz.draw(graph, title="One attention head on “I saw a saw”", direction="TB")),
        "attention-weights.svg": drawn(viz.attention(weights, WORDS)),
        "attention-graph.zh.svg": drawn(viz.draw(graph, title="“I saw a saw” 上的一个注意力头", direction="TB", lang="zh")),
        "attention-weights.zh.svg": drawn(viz.attention(weights, WORDS, lang="zh")),
    }


def drawn(drawing: viz.Drawing) -> str:
    """A drawing as SVG, by the renderer that is the same everywhere."""
    return drawing.svg


if __name__ == "__main__":
    sys.exit(main())
