"""One self-attention step with all its numbers, and what is remarkable about them."""

from __future__ import annotations

import numpy as np

from tinyattn import nn
from tinyattn.demo.paper import Paper, listed, numbered, row, shown
from tinyattn.demo.sentence import Input

_MOST_ROWS = 12
_MOST_COLUMNS = 10


def show(given: Input, layer: nn.SelfAttention, steps: nn.AttentionSteps, paper: Paper) -> None:
    """Print query, keys, scores, weights, values and output of the chosen word, and the weights of all."""
    names, i = numbered(given.words), given.chosen
    d_k = layer.W_k.shape[1]
    paper.text(
        f"The weights W_q, W_k, W_v have shape {layer.W_q.shape} and are random too. {names[i]} asks with its query"
    )
    paper.lines(f"    q = x[{i + 1}] W_q = {row(steps.q.data[i])}")
    paper.text(f"Each word answers with its key; the score is q·k / √{d_k}, and softmax makes weights of the scores:")
    weights, products = steps.weights.data[i], steps.k.data @ steps.q.data[i]
    places = _most_important(weights)
    paper.table(
        [
            [names[j], row(steps.k.data[j]), products[j], steps.scores.data[i, j], weights[j], row(steps.v.data[j])]
            for j in places
        ],
        ["word", "key k", "q·k", "score", "weight", "value v"],
    )
    if len(places) < len(names):
        rest = 1.0 - float(weights[places].sum())
        paper.text(f"(The {len(names) - len(places)} words left out have {max(rest, 0.0):.3f} of the weight.)")
    paper.text(f"The weights sum to {weights.sum():.6f}. The output is the mean of the values, weighted:")
    paper.lines(f"    output[{i + 1}] = {row(steps.output.data[i])}")
    paper.gap()
    _show_all_weights(names, steps.weights.data, paper)


def _most_important(weights: np.ndarray) -> list[int]:
    """The places with the largest weights, in the order of the sentence."""
    largest = np.argsort(-weights, kind="stable")[:_MOST_ROWS]
    return sorted(int(place) for place in largest)


def _show_all_weights(names: list[str], weights: np.ndarray, paper: Paper) -> None:
    if len(names) <= _MOST_COLUMNS:
        paper.text("The weights of every word. A row asks, a column answers:")
        paper.table([[name, *map(float, line)] for name, line in zip(names, weights, strict=True)], ["", *names])
        return
    paper.text(f"The weights of the first {_MOST_COLUMNS} words; for each the three that it looks at most:")
    rows = []
    for name, line in list(zip(names, weights, strict=True))[:_MOST_COLUMNS]:
        best = np.argsort(-line, kind="stable")[:3]
        rows.append([name, *(f"{names[j]} {line[j]:.3f}" for j in best)])
    paper.table(rows, ["asks", "most", "then", "then"])


def remark(given: Input, layer: nn.SelfAttention, steps: nn.AttentionSteps, position: bool, paper: Paper) -> None:
    """Say what is remarkable: which words come out identical and why, and which one dominates."""
    if len(given.words) == 1:
        paper.text(
            "A single word can only look at itself: its weight is 1 whatever the score, the output is its own value, "
            "and no change of W_q or W_k changes anything: their gradients below are 0."
        )
        return
    _remark_on_ties(given, layer, position, paper)
    _remark_on_the_largest(given, steps.weights.data[given.chosen], paper)


def _remark_on_ties(given: Input, layer: nn.SelfAttention, position: bool, paper: Paper) -> None:
    groups = equal_words(given.words)
    if not groups:
        paper.text("No word comes twice. Try a sentence in which one does, such as the default, I saw a saw.")
        return
    plain, moved = layer.steps(given.vectors), layer.steps(nn.SinusoidalPosition(given.d)(given.vectors))
    for word, places in list(groups.items())[:3]:
        outputs = f"'{shown(word)}' stands at {listed([str(place + 1) for place in places])}; its outputs there"
        without, having = _distance(plain.output.data[places]), _distance(moved.output.data[places])
        tie = "every number is exactly equal" if without == 0 else f"rounding alone parts them, by {without:.0e}"
        if position:
            paper.text(
                f"{outputs} would be identical without positions ({tie}). With them they differ by up to {having:.3f}: "
                "the tie is gone."
            )
        else:
            paper.text(f"{outputs} are identical: {tie}. With positions (--position) they differ by {having:.3f}.")
    if len(groups) > 3:
        paper.text(f"The same holds for {len(groups) - 3} more words that come again.")
    if not position:
        paper.text(
            "Why: equal words have equal queries, keys and values, and a sum over all words does not know their "
            "order. Attention without positions cannot tell them apart."
        )


def equal_words(words: list[str]) -> dict[str, list[int]]:
    """The places of every word that comes more than once.

    Examples
    --------
    >>> equal_words(["I", "saw", "a", "saw"])
    {'saw': [1, 3]}
    """
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        places.setdefault(word, []).append(place)
    return {word: found for word, found in places.items() if len(found) > 1}


def _distance(rows: np.ndarray) -> float:
    """The largest difference between any row and the first; 0 only where every number is exactly equal."""
    return float(np.abs(rows - rows[0]).max())


def _remark_on_the_largest(given: Input, weights: np.ndarray, paper: Paper) -> None:
    names, n, top = numbered(given.words), len(given.words), float(weights.max())
    best = [names[j] for j in range(n) if weights[j] >= top - 1e-12]
    together = f"each {top:.3f}, together {len(best) * top:.3f}" if len(best) > 1 else f"{top:.3f}"
    share = 1 / n
    verdict = (
        f"no word dominates, since an equal share would be {share:.3f}"
        if top < 1.5 * share
        else f"{top / share:.1f} times an equal share of {share:.3f}"
    )
    said = listed(best) if len(best) <= 4 else f"{len(best)} words"
    paper.text(f"{names[given.chosen]} looks most at {said}: {together}; {verdict}.")
