"""Draw the pictures of the README: one attention head on "I saw a saw", and its weights.

    .venv/bin/python docs/pictures.py       writes docs/pictures/*.svg

They show the numbers of the tour in the README, and a test holds them current.  The renderer is graphviz-pure, which
draws the same on every machine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))  # the packages beside this folder, installed or not
os.environ.setdefault("TINYATTN_DOT", "graphviz-pure")

import tinyattn as ta  # noqa: E402
import viz  # noqa: E402
from tinyattn.files import write_whole  # noqa: E402

WORDS = ["I", "saw", "a", "saw"]


def main() -> int:
    """Write every picture."""
    for name, text in pictures().items():
        write_whole(DOCS / "pictures" / name, text)
        print(f"wrote pictures/{name}")
    return 0


def pictures() -> dict[str, str]:
    """Each picture as SVG, by the name of its file."""
    X = ta.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, 1.0]])  # a row for each word; both saws alike
    W_q = ta.tensor([[1.0, 0.5], [-0.5, 1.0]], requires_grad=True)
    W_k = ta.tensor([[1.5, -0.5], [0.5, 1.0]], requires_grad=True)
    W_v = ta.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    S = Q @ K.mT / ta.sqrt(ta.size_of(K, -1))
    P = ta.softmax(S, axis=-1)
    Y = P @ V
    graph = ta.Graph.of(Y, gradients=True)
    english, chinese = "One attention head on “I saw a saw”", "句子 I saw a saw 上的一个注意力头"
    going_back = {"view": "backward", "show": ("op", "rule", "grad"), "direction": "TB"}
    return {
        "attention-backward.svg": viz.draw(graph, title="The way back: each box with its rule", **going_back).svg,
        "attention-backward.zh.svg": viz.draw(graph, title="反向传播：每个框里写着它的规则", lang="zh", **going_back).svg,
        "attention-graph.svg": viz.draw(graph, title=english, direction="TB").svg,
        "attention-graph.zh.svg": viz.draw(graph, title=chinese, direction="TB", lang="zh").svg,
        "attention-weights.svg": viz.attention(P, WORDS).svg,
        "attention-weights.zh.svg": viz.attention(P, WORDS, lang="zh").svg,
    }


if __name__ == "__main__":
    sys.exit(main())
