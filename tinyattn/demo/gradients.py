"""The gradient of a loss four ways, held against each other by `ta.compare`.

Autograd; the derived formulas; SymPy from the definitions alone; central differences. How far they may be apart is
a bound of the rounding errors that comes with the comparison.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import tinyattn as ta
from tinyattn import nn
from tinyattn.demo.paper import Paper
from tinyattn.demo.sentence import Input
from tinyattn.symbolic.comparing import Report

WEIGHTS = ("W_q", "W_k", "W_v")
SYMPY_WORDS, SYMPY_WIDTH = 4, 2
WHOLE_WORDS, WHOLE_WIDTH = 8, 4  # up to here SymPy takes the whole sentence, in a second or two

_EVERY, _SOME = 64, 8  # entries of a weight whose difference quotient is taken: four runs of the layer for each
_QUICK = 2_000  # numbers in a sentence up to which a run is so fast that it may be many

Array = npt.NDArray[np.float64]


def loss_of(steps: nn.AttentionSteps, x: ta.Tensor) -> ta.Tensor:
    """How far the outputs are from the words they stand for: the mean of the squared differences.

    Parameters
    ----------
    steps : AttentionSteps
    x : Tensor, shape (n, d)

    Returns
    -------
    Tensor, shape ()
    """
    difference = steps.output - x
    loss = ta.mean(difference * difference)
    return loss


def record(x: Array, layer: nn.SelfAttention) -> tuple[ta.Tensor, nn.AttentionSteps]:
    """Run the layer and the loss on the engine, recorded."""
    rows = ta.tensor(x, name="x")
    steps = layer.steps(rows)
    return loss_of(steps, rows), steps


def check(given: Input, layer: nn.SelfAttention, paper: Paper) -> bool:
    """Compare the ways, print tables, and say whether all agree."""
    small_x, small = _small(given.x, layer)
    whole = small_x.shape == given.x.shape
    ways = ("autograd", "formula", "sympy", "difference")
    entries = min(_EVERY if given.x.size <= _QUICK else _SOME, given.d**2)
    loss, report = compare(given.x, layer, ways if whole else ("autograd", "formula", "difference"), entries)
    reports = [report] if whole else [report, compare(small_x, small, ("autograd", "formula", "sympy"))[1]]
    _explain(given, small_x, loss, entries, paper)
    _print(reports, {name: getattr(layer, name).shape for name in WEIGHTS}, paper)
    good = all(reports)
    for report in reports:
        if report.blame:
            paper.lines(report.blame)
    paper.text(
        "All four ways agree."
        if good
        else "They do not agree: the gradient rule of an operation is wrong. What is learned with it cannot be trusted."
    )
    return good


def compare(x: Array, layer: nn.SelfAttention, ways: tuple[str, ...], entries: int = _EVERY) -> tuple[float, Report]:
    """Hold several ways to the gradients of the layer's weights against each other.

    Parameters
    ----------
    x : ndarray, shape (n, d)
    layer : SelfAttention
    ways : tuple of str
        As `ta.compare` names them.
    entries : int
        How many entries of each weight the differences look at.

    Returns
    -------
    loss : float
    report : Report
    """
    loss, _ = record(x, layer)
    return float(loss), ta.compare(loss, [layer.W_q, layer.W_k, layer.W_v], methods=ways, entries=entries)


def _print(reports: list[Report], shapes: dict[str, tuple[int, ...]], paper: Paper) -> None:
    """Print a row for each weight, and one for each two ways: where they use up most of what is allowed."""
    pairs = sorted((pair for report in reports for pair in report.pairs), key=lambda pair: -pair.over)
    numbers = ["apart by", "allowed", "verdict"]
    of_weights: dict[str, list[str]] = {}
    of_ways: dict[str, list[str]] = {}
    for pair in pairs:
        cells = [*pair.cells()[:2], "agree" if pair.passed else "DO NOT AGREE"]
        of_weights.setdefault(pair.leaf, [pair.leaf, str(shapes[pair.leaf]), pair.ways, *cells])
        of_ways.setdefault(pair.ways, [pair.ways, pair.leaf, *cells])
    paper.table([of_weights[name] for name in WEIGHTS], ["weight", "shape", "farthest apart", *numbers])
    paper.table([of_ways[ways] for ways in sorted(of_ways)], ["two ways", "at", *numbers])


def _explain(given: Input, small_x: Array, loss: float, entries: int, paper: Paper) -> None:
    n, d = small_x.shape
    paper.text(f"The loss is mean((output - x)²) = {loss:.6f}. Its gradient by autograd is compared with")
    paper.item("the formula that `ta.derive` derives for it, which holds for all sizes;")
    what = whole = "of the whole sentence"
    if small_x.shape != given.x.shape:
        what = f"of the first {n} words at width {d}, because the whole would be slow"
    paper.item(f"SymPy, which derives it by itself from the definitions of the operations: {what};")
    some = "" if entries == given.d**2 else f", {entries} of {given.d**2} entries of each weight"
    paper.item(f"central differences: {whole}{some}.")
    paper.text(
        "What is allowed is not guessed: it is a bound of the rounding errors of both ways, worked out for these "
        "numbers. Shown is where two ways use up most of it."
    )


def _small(x: Array, layer: nn.SelfAttention) -> tuple[Array, nn.SelfAttention]:
    """All of it while it is small; else the first words at a small width, and that corner of each weight."""
    n, d = x.shape
    if n <= WHOLE_WORDS and d <= WHOLE_WIDTH:
        return x, layer
    d = min(SYMPY_WIDTH, d)
    corner = {name: array[:d, :d] for name, array in layer.state_dict().items()}
    return x[:SYMPY_WORDS, :d], _layer_with(corner)


def _layer_with(state: dict[str, np.ndarray]) -> nn.SelfAttention:
    (d, d_k), (_, d_v) = state["W_q"].shape, state["W_v"].shape
    layer = nn.SelfAttention(d, d_k, d_v, rng=0)
    layer.load_state_dict(state)
    return layer
