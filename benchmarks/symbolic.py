"""The goals of the symbolic side, measured as ratios in one run on one machine.

    python3 benchmarks/symbolic.py            everything, about a minute
    python3 benchmarks/symbolic.py --quick    without the 4x4 case of naive SymPy
    python3 benchmarks/symbolic.py --mutants  also list the mutants that change nothing, with the reason

"Naive" is what SymPy's users do: write the loss with explicit entries and differentiate by every one. Ours is: derive,
tidy, print both notations, prove for all sizes. The best of several runs is taken for each; seconds are those of the
processor, so that others on the machine do not count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the packages beside this folder, installed or not

import tinyattn as ta
from tinyattn.ops import REGISTRY
from tinyattn.symbolic.deriving import Derivation
from tinyattn.symbolic.referee import written_out
from tinyattn.symbolic.rules import ALL_SIZES, prove_rule
from tinyattn.symbolic.whole import WholeLoss, evaluate_derivative

HERE = Path(__file__).resolve().parent


def main(arguments: Sequence[str]) -> int:
    """Print every goal with what was measured."""
    sizes = ((4, 2, 700),) if "--quick" in arguments else ((4, 2, 700), (4, 4, 1500))
    met = [against_naive(n, d, goal) for n, d, goal in sizes]
    met += [deep_stack(), referee(), rules(), mutants("--mutants" in arguments), seeds(), hash_seeds()]
    return 0 if all(met) else 1


def best(run: Callable[[], Any], times: int) -> float:
    """Seconds of the fastest of several runs."""
    fastest = float("inf")
    for _ in range(times):
        start = time.process_time()
        run()
        fastest = min(fastest, time.process_time() - start)
    return fastest


def report(what: str, measured: str, goal: str, met: bool) -> bool:
    """Print one line."""
    print(f"{'met ' if met else 'MISS'}  {what:58s} {measured:>16s}   goal {goal}", flush=True)
    return met


def attention(n: int, d: int) -> tuple[Any, list[int]]:
    """The recorded graph of one attention with n words of width d, and its leaves."""
    rng = np.random.default_rng(0)
    Q, K, V = (ta.tensor(rng.normal(size=(n, d)), requires_grad=True, name=name) for name in "QKV")
    C = ta.tensor(rng.normal(size=(n, d)), name="C")
    S = Q @ K.mT / ta.sqrt(ta.size_of(K, axis=-1))
    P = ta.softmax(S)
    O = P @ V  # noqa: E741
    L = (O * C).sum()
    graph = ta.Graph.of(L)
    return graph, [node.index for node in graph.nodes if node.name in ("Q", "K", "V")]


def ours(graph: Any, leaves: list[int]) -> Derivation:
    """Derive, tidy, print both notations, prove."""
    derivation = Derivation(graph, leaves)
    derivation.latex("matrix")
    derivation.latex("index")
    assert derivation.prove(whole=False)
    return derivation


def against_naive(n: int, d: int, goal: int) -> bool:
    """Naive `diff` by every entry, with explicit symbols for the leaves and for what the loss wants."""
    import sympy

    graph, leaves = attention(n, d)
    wanted = [node.index for node in graph.nodes if node.name == "C"]
    loss, symbols = written_out(graph, [*leaves, *wanted])
    order = [symbol for leaf in leaves for symbol in symbols[leaf].flat]
    start = time.process_time()
    derivatives = [loss.diff(symbol) for symbol in order]
    naive = time.process_time() - start
    mine = best(lambda: ours(graph, leaves), 100)
    ratio = naive / mine
    what = f"attention {n}x{d}: derive, print, prove; naive diff {naive:.1f} s"
    met = report(what, f"{mine * 1e3:.2f} ms, {ratio:.0f}x", f"{goal}x", ratio >= goal)
    if (n, d) == (4, 2):
        long = sum(len(sympy.latex(each)) for each in derivatives)
        short = len(ours(graph, leaves).latex("matrix"))
        met &= report("its LaTeX: characters of naive over ours", f"{long / short:.0f}x", "500x", long >= 500 * short)
    return met


def stack(layers: int) -> tuple[Any, list[int]]:
    """The recorded graph of self-attention layers one on top of the other."""
    rng = np.random.default_rng(0)
    H = X = ta.tensor(rng.normal(size=(3, 2)), requires_grad=True, name="X")
    for layer in range(layers):
        W_q, W_k, W_v = (ta.tensor(rng.normal(size=(2, 2)), requires_grad=True, name=f"W_{c}{layer}") for c in "qkv")
        Q, K, V = H @ W_q, H @ W_k, H @ W_v
        S = Q @ K.mT / ta.sqrt(ta.size_of(K, axis=-1))
        P = ta.softmax(S)
        H = P @ V
    graph = ta.Graph.of(H.sum(), variables={"X": X})
    return graph, [node.index for node in graph.nodes if node.kind == "parameter"]


def deep_stack() -> bool:
    """256 layers, and how the time grows from 64."""

    def run(graph: Any, leaves: list[int]) -> None:
        derivation = Derivation(graph, leaves)
        derivation.text("matrix")
        assert derivation.prove(whole=False)

    few, many = stack(64), stack(256)
    short, long = best(lambda: run(*few), 3), best(lambda: run(*many), 3)
    lines = len(Derivation(*many).steps)
    met = report(f"256 attention layers, {lines} lines: derive, print, prove", f"{long:.2f} s", "1 s", long < 1)
    return met & report("time of 256 layers over 64", f"{long / short:.1f}x", "6x", long < 6 * short)


def referee() -> bool:
    """SymPy's own derivative of one attention, lengths as symbols, at five sizes."""
    graph, leaves = attention(3, 2)
    derivation = Derivation(graph, leaves)

    def derive() -> list[tuple[WholeLoss, int, Any]]:
        loss = WholeLoss(graph, leaves, derivation._symbolic_length)
        return [(loss, leaf, loss.derivative(leaf)) for leaf in leaves]

    derive()
    seconds = best(derive, 3)
    worst = 0.0
    rng = np.random.default_rng(1)
    for _ in range(5):
        n, d = (int(size) for size in rng.integers(2, 5, 2))
        other, theirs = attention(n, d)
        numbers = WholeLoss(other, theirs)
        reference = ta.symbolic.sympy_gradients(other, theirs, method="chain")
        most = max(np.abs(gradient).max() for gradient in reference.values())
        for leaf, (_, _, (free, formula)) in zip(theirs, derive(), strict=True):
            names = {symbol: _size(str(symbol), n, d) for symbol in formula.free_symbols if len(str(symbol)) == 1}
            value = evaluate_derivative(numbers, leaf, free, formula, 30, names)
            worst = max(worst, float(np.abs(value - reference[leaf]).max() / np.spacing(most)))
    what = "SymPy referee, one attention, all leaves, symbolic lengths"
    met = report(what, f"{seconds:.2f} s", "0.5 s", seconds < 0.5)
    return met & report("its agreement at five sizes, units in the last place", f"{worst:.1f}", "4", worst <= 4)


def _size(name: str, n: int, d: int) -> int:
    return n if name in "nm" else d


def rules() -> bool:
    """Every rule of the rule book, every call of its sampler."""
    start = time.process_time()
    proofs = [
        prove_rule(op, inputs, dict(zip(op.param_names, params, strict=True)))
        for op in REGISTRY.values() for inputs, params in op.sample(np.random.default_rng(0))
    ]  # fmt: skip
    seconds = time.process_time() - start
    proved = sum(proof.verdict == ALL_SIZES for proof in proofs)
    what = f"{len(REGISTRY)} rules, {len(proofs)} calls: {proved} for all sizes, the others at theirs"
    return report(what, f"{seconds:.1f} s", "30 s, none wrong", seconds < 30 and all(proofs))


def mutants(listed: bool) -> bool:
    """Every wrong rule and every wrong line of the tests' catalogue."""
    # The tests' folder of this name; this file, which has the name too, steps aside.
    sys.path[:] = [str(HERE.parent / "tests"), *(place for place in sys.path if place != str(HERE))]
    from symbolic.mutants import tried

    refused, passed, idle = tried()
    count = len(refused) + len(passed)
    what = f"mutants refused by name; {len(idle)} more change nothing"
    met = report(what, f"{len(refused)} of {count}", "all, at least 60", not passed and count >= 60)
    for name in (*(f"let through: {name}" for name in passed), *(idle if listed else ())):
        print(f"      {name}")
    return met


def seeds() -> bool:
    """Attention of random sizes, spreads from 1 to 5: autograd and formula within their bounds."""
    alarms = 0
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        n, m, d, k = rng.integers(1, 5, 4)
        Q, K, V, C = (
            ta.tensor(rng.normal(size=shape) * (1 + seed % 5), requires_grad=True, name=name)
            for name, shape in (("Q", (n, d)), ("K", (m, d)), ("V", (m, k)), ("C", (n, k)))
        )
        loss = (ta.softmax(Q @ K.mT / ta.sqrt(ta.size_of(K, axis=-1))) @ V * C).sum()
        alarms += not ta.compare(loss, [Q, K, V], methods=("autograd", "formula"))
    return report("1,000 seeds of attention compared", f"{alarms} alarms", "no false alarm", not alarms)


def hash_seeds() -> bool:
    """Ten processes with other hash seeds print the same."""
    code = (
        f"import sys; sys.path[:0] = {[str(HERE.parent), str(HERE.parent / 'tests')]!r}\n"
        "import tinyattn as ta; from symbolic.models import MODELS\n"
        "for model in MODELS:\n"
        "    loss, leaves = model(); d = ta.derive(loss, wrt=leaves)\n"
        "    print(d, d.text('index'), d.latex(), d.code('matrix'), d.html())\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            env=os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONUTF8": "1"},
        ).stdout
        for seed in range(10)
    }
    return report("texts of 24 derivations under ten PYTHONHASHSEED values", f"{len(texts)}", "1", len(texts) == 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
