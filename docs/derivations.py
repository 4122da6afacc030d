"""Write `derivations.md`: attention, layer norm and cross-entropy as the tool derives them.

    python3 docs/derivations.py            writes it
    python3 docs/derivations.py --check    says whether it is out of date, exit code 1

Every program on the page is run, and what stands below it is what it gave. A test holds the page current.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

PAGE = Path(__file__).resolve().parent / "derivations.md"
sys.path.insert(0, str(PAGE.parent.parent))  # the packages beside this folder, installed or not

from tinyattn.files import write_whole  # noqa: E402

HEAD = """\
# Derivations

<!-- This file is made by `python3 docs/derivations.py`. Change that file, or the code it runs, instead. -->

What `ta.derive` prints for three computations. Nothing here was typed in by hand: the formulas come from the recorded
computation and the definitions of its operations, by one rule. *Replace the factor by the output's cotangent and
sum over the indices that are missing.* `S̄` is the gradient of the loss with respect to `S`, with the same shape.

How to read the notations:

| sign | meaning |
|---|---|
| `X Y`, `Xᵀ` | matrix product, transpose |
| `X ⊙ Y`, `X^(⊙2)` | product and power entry by entry |
| `1` beside a matrix | the vector of ones: `X 1` sums each row, `v 1ᵀ` repeats `v` along rows, `1 wᵀ` `w` down columns |
| `Σ_j` | the sum over all `j` |
| `[i = j]` | 1 where it holds, 0 elsewhere |
| `n × d` | the shape, lengths as symbols; what holds, holds for all of them |

The last column of each table names the node of the graph, and the unnamed nodes that were written into the line.
`ta.compare(L, wrt=[...])` holds these formulas against autograd, SymPy, complex steps and differences.
"""

SECTIONS = (
    (
        "Attention",
        """
        import numpy as np
        import tinyattn as ta

        rng = np.random.default_rng(0)
        Q = ta.tensor(rng.normal(size=(3, 2)), requires_grad=True)   # n queries of width d
        K = ta.tensor(rng.normal(size=(4, 2)), requires_grad=True)   # m keys
        V = ta.tensor(rng.normal(size=(4, 5)), requires_grad=True)   # m values of width k
        C = ta.tensor(rng.normal(size=(3, 5)))                       # what the loss wants
        S = Q @ K.mT / ta.sqrt(ta.size_of(K, axis=-1))
        P = ta.softmax(S)
        O = P @ V
        L = (O * C).sum()
        d = ta.derive(L, wrt=[Q, K, V], dims={"Q": "n d", "K": "m d", "V": "m k"})
        """,
        "Q",
        "The line of `S̄` is the softmax rule: each weight times how much better its key is than the average of "
        "the row.",
    ),
    (
        "Layer norm",
        """
        import numpy as np
        import tinyattn as ta

        rng = np.random.default_rng(0)
        X = ta.tensor(rng.normal(size=(3, 4)), requires_grad=True)
        g = ta.tensor(rng.normal(size=4), requires_grad=True)
        b = ta.tensor(rng.normal(size=4), requires_grad=True)
        C = ta.tensor(rng.normal(size=(3, 4)))
        Y = ta.layer_norm(X, g, b)
        L = (Y * C).sum()
        d = ta.derive(L, wrt=[X, g, b], dims={"X": "n d"})
        """,
        "X",
        "What occurs several times gets a name: `U` are the centred rows, `v` their variances. The two corrections in "
        "`X̄` are there because the mean and the variance of a row depend on each of its entries.",
    ),
    (
        "Cross-entropy",
        """
        import numpy as np
        import tinyattn as ta

        rng = np.random.default_rng(0)
        X = ta.tensor(rng.normal(size=(5, 3)))
        W = ta.tensor(rng.normal(size=(3, 4)), requires_grad=True)
        Z = X @ W                                                    # n rows of k scores
        L = ta.cross_entropy(Z, np.array([0, 3, 1, 1, 2]))
        d = ta.derive(L, wrt=[W], dims={"X": "n d", "W": "d k"})
        """,
        "W",
        "The gradient with respect to the scores is the probability minus 1 at the right class, divided by the number "
        "of rows. A line with a condition on indices has no matrix form, and is shown by indices in both views.",
    ),
)


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with ``--check`` say whether it is out of date."""
    text = page()
    current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
    if "--check" in arguments:
        if not current:
            print(f"{PAGE.name} is out of date: run python3 docs/derivations.py")
        return 0 if current else 1
    if not current:
        write_whole(PAGE, text)
        print(f"wrote {PAGE.name}")
    return 0


def page() -> str:
    """The page, whole."""
    return HEAD + "".join(section(*each) for each in SECTIONS)


def section(title: str, program: str, leaf: str, words: str) -> str:
    """One computation: its program, both notations, the formulas typeset, the proof, the gradient as a program."""
    source = dedent(program).strip()
    derivation = run(source)
    parts = [
        f"\n## {title}\n",
        fence("python", source + "\nprint(d)"),
        fence("text", str(derivation)),
        words + "\n",
        "The same in index notation:\n",
        fence("text", derivation.text("index")),
        "Typeset:\n",
        fence("math", derivation.latex("matrix")),
        f"The gradient with respect to `{leaf}` without other gradients, `d.closed_form({leaf})`, and one entry of it "
        f"at the size above, `d.expand({leaf}, entry=(0, 0))`:\n",
        fence("text", f"{derivation.closed_form(leaf)}\n{derivation.expand(leaf, entry=(0, 0))}"),
        "The proof, `print(d.prove())` (without its time):\n",
        fence("text", proof(derivation)),
        'As a program, `print(d.code("matrix"))`:\n',
        fence("python", derivation.code("matrix").strip()),
    ]
    return "\n".join(parts)


def run(source: str) -> Any:
    """Run a program of the page; gives the derivation that it made."""
    space: dict[str, Any] = {"__name__": "__derivations__"}
    exec(compile(source, "derivations.md", "exec"), space)
    return space["d"]


def proof(derivation: Any) -> str:
    """What the proof says, line by line."""
    certificate = derivation.prove()
    return "\n".join(str(claim) for claim in certificate.claims)


def fence(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text}\n```\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
