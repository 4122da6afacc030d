"""The gradient of a loss three ways: autograd, SymPy from the definitions alone, central differences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import tinyattn as ta
from tinyattn import nn
from tinyattn.demo.paper import Paper
from tinyattn.demo.sentence import Input

WEIGHTS = ("W_q", "W_k", "W_v")
SYMPY_WORDS, SYMPY_WIDTH = 4, 2
WHOLE_WORDS, WHOLE_WIDTH = 8, 4  # up to here SymPy takes the whole sentence, in a second or two

_STEP = 1e-5
_MOST_ENTRIES = 64
_ROUNDING = 1e-12  # autograd and SymPy differ by rounding alone: some ten operations of 1e-16 each
_TRUNCATION = 1e-7  # a difference is off by about h² = 1e-10, and by 1e-16 / h = 1e-11 of the loss

Array = npt.NDArray[np.float64]


class Row(NamedTuple):
    """How far two ways are apart for one weight."""

    difference: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the difference is within the tolerance; nan never is."""
        return self.difference <= self.tolerance


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
    """Compare the three ways, print a table, and say whether all agree."""
    loss, _ = record(given.x, layer)
    found = _autograd(loss, layer)
    rng = np.random.default_rng(0)
    entries = {name: _some_entries(found[name].shape, rng) for name in WEIGHTS}
    numeric = {name: by_differences(given.x, layer, name, entries[name]) for name in WEIGHTS}
    by_difference = {
        name: _compare(
            [found[name][place] for place in entries[name]], numeric[name], _TRUNCATION, abs(float(loss))
        )
        for name in WEIGHTS
    }
    small_x, small = _small(given.x, layer)
    by_sympy = against_sympy(small_x, small)
    _explain(given, small_x, float(loss), len(entries["W_q"]), paper)
    rows = []
    for name in WEIGHTS:
        one, other = by_sympy[name], by_difference[name]
        verdict = "agree" if one.agrees and other.agrees else "DO NOT AGREE"
        largest = float(np.abs(found[name]).max())
        cells = [f"{value:.1e}" for value in (one.difference, one.tolerance, other.difference, other.tolerance)]
        rows.append([name, str(found[name].shape), largest, *cells, verdict])
    headers = ["weight", "shape", "largest", "SymPy: off by", "allowed", "differences: off by", "allowed", "verdict"]
    paper.table(rows, headers)
    good = all(row.agrees for table in (by_sympy, by_difference) for row in table.values())
    paper.text(
        "All three ways agree."
        if good
        else "They do not agree: the gradient rule of an operation is wrong. What is learned with it cannot be trusted."
    )
    return good


def _explain(given: Input, small_x: Array, loss: float, entries: int, paper: Paper) -> None:
    d = given.d
    paper.text(f"The loss is mean((output - x)²) = {loss:.6f}. Its gradient by autograd is compared with")
    whole = small_x.shape == given.x.shape
    what = (
        "of the whole sentence"
        if whole
        else f"of the first {len(small_x)} words at width {small_x.shape[1]}, because the whole would be slow"
    )
    paper.item(f"SymPy, which derives it by itself from the definitions of the operations: {what};")
    some = "" if entries == d * d else f", {entries} of {d * d} entries of each weight"
    paper.item(f"central differences with step {_STEP:g}: of the whole sentence{some}.")
    paper.text(
        f"Allowed is a share of the largest gradient or of the loss, whichever is larger: {_ROUNDING:g} for SymPy, "
        f"since nothing but rounding parts the two; {_TRUNCATION:g} for differences, which leave out terms of the "
        f"size of the step squared."
    )


def _autograd(loss: ta.Tensor, layer: nn.SelfAttention) -> dict[str, Array]:
    gradients = ta.grad(loss, [layer.W_q, layer.W_k, layer.W_v])
    return {name: g.numpy() for name, g in zip(WEIGHTS, gradients, strict=True)}


def _some_entries(shape: tuple[int, ...], rng: np.random.Generator) -> list[tuple[int, ...]]:
    """All places of a small weight; of a large one some, drawn at random."""
    places = list(np.ndindex(*shape))
    if len(places) <= _MOST_ENTRIES:
        return places
    return [places[int(j)] for j in rng.choice(len(places), _MOST_ENTRIES, replace=False)]


def by_differences(x: Array, layer: nn.SelfAttention, name: str, places: list[tuple[int, ...]]) -> list[float]:
    """The slope of the loss along some entries of one weight, by central differences.

    Parameters
    ----------
    x : ndarray, shape (n, d)
    layer : SelfAttention
        Not changed: a copy is moved.
    name : str
        Which weight.
    places : list of index tuples

    Returns
    -------
    list of float, one for each place
    """
    copy = _layer_with(layer.state_dict())
    weight: ta.Tensor = getattr(copy, name)
    start, slopes = weight.numpy(), []
    with ta.no_grad():
        for place in places:
            values = []
            for step in (_STEP, -_STEP):
                moved = start.copy()
                moved[place] += step
                weight.assign(moved)
                values.append(float(record(x, copy)[0]))
            weight.assign(start)
            slopes.append((values[0] - values[1]) / (2 * _STEP))
    return slopes


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


def against_sympy(x: Array, layer: nn.SelfAttention) -> dict[str, Row]:
    """Compare autograd with what SymPy derives by itself from the definitions.

    Parameters
    ----------
    x : ndarray, shape (n, d), both small
    layer : SelfAttention

    Returns
    -------
    dict from the weight's name to Row
    """
    from tinyattn.symbolic import sympy_gradients

    loss, _ = record(x, layer)
    graph = ta.Graph.of(loss, variables={})
    leaves = {name: graph.find(name).index for name in WEIGHTS}
    derived = sympy_gradients(graph, list(leaves.values()))
    found = _autograd(loss, layer)
    return {
        name: _compare(found[name].ravel(), derived[leaves[name]].ravel(), _ROUNDING, abs(float(loss)))
        for name in WEIGHTS
    }


def _compare(one: npt.ArrayLike, other: npt.ArrayLike, share: float, scale: float) -> Row:
    """The largest difference, and the share of the largest number or of ``scale`` that is allowed."""
    a, b = np.asarray(one), np.asarray(other)
    largest = max(float(np.abs(b).max()), scale)
    return Row(float(np.abs(a - b).max()), share * largest)
