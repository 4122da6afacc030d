"""``python -m benchmarks.microgpt NAMES``: a GPT of 4,192 numbers learns to make up names.

The model and the schedule are those of microgpt (Andrej Karpathy, February 2026), which trains it with one Python
object for each number: 1 layer, 4 heads, width 16, at most 16 characters, RMSNorm, relu, no biases, one name a step,
1,000 steps of Adam with a rate that falls evenly to 0.  Here it is written twice: with `tinyattn.nn`, compiled, and
with an engine of scalars of our own, whose first steps run beside it on the same numbers: its losses must be the same,
and its time for all steps is what its first ones took, in proportion.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import tinyattn as ta
from tinyattn import nn
from tinyattn.terminal import say

WIDTH, HEADS, LENGTH, STEPS, RATE, BETAS, EPS = 16, 4, 16, 1000, 0.01, (0.85, 0.99), 1e-8


# -- the model, with arrays --------------------------------------------------------------------------------------------


class MicroGPT(nn.Module):
    """Scores every character as the next one, after each prefix of a name."""

    def __init__(self, words: int, rng: np.random.Generator) -> None:
        self.characters = nn.Embedding(words, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.attention = nn.MultiHeadAttention(WIDTH, HEADS, fused=True)
        self.widen = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH, bias=False)
        self.score = nn.Linear(WIDTH, words, bias=False)
        for leaf in self.parameters():
            leaf.assign(rng.normal(0, 0.08, leaf.shape))

    def forward(self, ids: Any) -> ta.Tensor:
        x = self.characters(ids) + self.places(np.arange(len(ids)))  # (n, d)
        x = ta.rms_norm(x, 1.0)  # (n, d)
        x = x + self.attention(ta.rms_norm(x, 1.0), causal=True)  # (n, d)
        x = x + self.narrow(ta.relu(self.widen(ta.rms_norm(x, 1.0))))  # (n, d)
        return self.score(x)  # (n, words)


def train(model: MicroGPT, names: list[np.ndarray], steps: int = STEPS) -> list[float]:
    """Learn from one name a step; the losses."""
    optimiser = ta.optim.Adam(model.parameters(), lr=RATE, betas=BETAS, eps=EPS)
    loss_of = ta.compile(lambda ids, following: ta.cross_entropy(model(ids), following))
    losses = []
    for step in range(steps):
        name = names[step % len(names)]
        losses.append(loss_of.backward(name[:-1], name[1:]).item())
        optimiser.lr = RATE * (1 - step / STEPS)
        optimiser.step()
        optimiser.zero_grad()
    return losses


# -- the same, one object for each number ------------------------------------------------------------------------------


class Number:
    """A number that remembers what it was made of, and how fast it changes with each."""

    __slots__ = ("grad", "parts", "slopes", "value")

    def __init__(self, value: float, parts: tuple[Number, ...] = (), slopes: tuple[float, ...] = ()) -> None:
        self.value, self.parts, self.slopes, self.grad = value, parts, slopes, 0.0

    def __add__(self, other: Any) -> Number:
        if isinstance(other, Number):
            return Number(self.value + other.value, (self, other), (1.0, 1.0))
        return Number(self.value + other, (self,), (1.0,))

    def __mul__(self, other: Any) -> Number:
        if isinstance(other, Number):
            return Number(self.value * other.value, (self, other), (other.value, self.value))
        return Number(self.value * other, (self,), (other,))

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Any) -> Number:
        return self + other * -1.0

    def __truediv__(self, other: Number) -> Number:
        return self * other**-1.0

    def __pow__(self, power: float) -> Number:
        return Number(self.value**power, (self,), (power * self.value ** (power - 1),))

    def exp(self) -> Number:
        y = math.exp(self.value)
        return Number(y, (self,), (y,))

    def log(self) -> Number:
        return Number(math.log(self.value), (self,), (1 / self.value,))

    def relu(self) -> Number:
        return Number(max(0.0, self.value), (self,), (float(self.value > 0),))

    def backward(self) -> None:
        """Add to every number behind this one how fast this one changes with it."""
        order: list[Number] = []
        seen: set[Number] = set()
        waiting: list[tuple[Number, bool]] = [(self, False)]
        while waiting:
            x, done = waiting.pop()
            if done:
                order.append(x)
            elif x not in seen:
                seen.add(x)
                waiting.append((x, True))
                waiting.extend((part, False) for part in x.parts)
        self.grad = 1.0
        for x in reversed(order):
            for part, slope in zip(x.parts, x.slopes, strict=True):
                part.grad += slope * x.grad


Row = list[Number]


def total(numbers: Iterable[Number]) -> Number:
    first, *rest = numbers
    for x in rest:
        first = first + x
    return first


def product(row: Row, weights: list[Row]) -> Row:
    """``row @ weights``."""
    return [total(x * w[column] for x, w in zip(row, weights, strict=True)) for column in range(len(weights[0]))]


def rms_norm(row: Row) -> Row:
    mean = total(x * x for x in row) * (1 / len(row))
    scale = (mean + 1e-5) ** -0.5
    return [x * scale for x in row]


def softmax(scores: Row) -> Row:
    largest = max(x.value for x in scores)
    powers = [(x + -largest).exp() for x in scores]
    whole = total(powers)
    return [x / whole for x in powers]


class ScalarGPT:
    """The model on `Number` objects, with the weights of a `MicroGPT`."""

    def __init__(self, model: MicroGPT) -> None:
        arrays = {name: leaf.data for name, leaf in model.named_parameters()}
        self.weights = {name: [[Number(v) for v in row] for row in a.tolist()] for name, a in arrays.items()}
        self.numbers = [x for rows in self.weights.values() for row in rows for x in row]
        self.means, self.squares = [0.0] * len(self.numbers), [0.0] * len(self.numbers)

    def scores(self, ids: list[int]) -> list[Row]:
        """The scores of the next character after each prefix."""
        w, found = self.weights, []
        keys: list[Row] = []
        values: list[Row] = []
        for place, character in enumerate(ids):
            pairs = zip(w["characters.table"][character], w["places.table"][place], strict=True)
            x = rms_norm([a + b for a, b in pairs])
            y = rms_norm(x)
            query = product(y, w["attention.W_q"])
            keys.append(product(y, w["attention.W_k"]))
            values.append(product(y, w["attention.W_v"]))
            mixed: Row = []
            for start in range(0, WIDTH, WIDTH // HEADS):
                part = slice(start, start + WIDTH // HEADS)
                match = [total(a * b for a, b in zip(query[part], key[part], strict=True)) for key in keys]
                weights = softmax([m * (1 / math.sqrt(WIDTH // HEADS)) for m in match])
                columns = zip(*(value[part] for value in values), strict=True)
                mixed += [total(a * v for a, v in zip(weights, column, strict=True)) for column in columns]
            x = [a + b for a, b in zip(x, product(mixed, w["attention.W_o"]), strict=True)]
            wide = [z.relu() for z in product(rms_norm(x), w["widen.W"])]
            x = [a + b for a, b in zip(x, product(wide, w["narrow.W"]), strict=True)]
            found.append(product(x, w["score.W"]))
        return found

    def learn(self, name: list[int], step: int) -> float:
        """One step of Adam on one name; its loss."""
        scores = self.scores(name[:-1])
        losses = [softmax(row)[right].log() * -1.0 for row, right in zip(scores, name[1:], strict=True)]
        loss = total(losses) * (1 / len(losses))
        loss.backward()
        rate, (b1, b2) = RATE * (1 - step / STEPS), BETAS
        for n, x in enumerate(self.numbers):
            self.means[n] = b1 * self.means[n] + (1 - b1) * x.grad
            self.squares[n] = b2 * self.squares[n] + (1 - b2) * x.grad**2
            mean, square = self.means[n] / (1 - b1 ** (step + 1)), self.squares[n] / (1 - b2 ** (step + 1))
            x.value -= rate * mean / (square**0.5 + EPS)
            x.grad = 0.0
        return loss.value


# -- side by side ------------------------------------------------------------------------------------------------------


def read_names(path: str | os.PathLike[str], seed: int = 42) -> tuple[list[np.ndarray], int]:
    """The names of a file in an order of chance, each as numbers between two marks of its ends; how many numbers."""
    names = Path(path).read_text(encoding="utf-8").split()
    characters = sorted(set("".join(names)))
    number = {character: n for n, character in enumerate(characters)}
    end = len(characters)
    np.random.default_rng(seed).shuffle(names)
    coded = [np.array([end, *(number[c] for c in name), end][: LENGTH + 1]) for name in names]
    return coded, end + 1


def measure(path: str | os.PathLike[str], scalar_steps: int = 5, runs: int = 3) -> dict[str, float]:
    """Train, and run the first steps of the scalar engine beside it.

    Returns
    -------
    dict
        ``seconds`` of all steps, the best of several runs, each with the writing of its programs; ``busy``, how long a
        core worked for it, which is less where others use the machine too; ``scalar`` seconds of all steps; ``ratio``;
        ``first`` and ``last``, the mean losses of the first and the last 100 steps; ``apart``, how much the losses of
        the two engines differ at most.
    """
    names, words = read_names(path)
    best, busy, losses = float("inf"), float("inf"), []
    for _ in range(runs):
        model = MicroGPT(words, np.random.default_rng(0))
        start, worked = time.perf_counter(), time.process_time()
        losses = train(model, names)
        best, busy = min(best, time.perf_counter() - start), min(busy, time.process_time() - worked)
    other = ScalarGPT(MicroGPT(words, np.random.default_rng(0)))
    start = time.perf_counter()
    theirs = [other.learn(names[step].tolist(), step) for step in range(scalar_steps)]
    each = (time.perf_counter() - start) / sum(len(name) - 1 for name in names[:scalar_steps])
    scalar = each * sum(len(names[step % len(names)]) - 1 for step in range(STEPS))
    return {
        "seconds": best, "busy": busy, "scalar": scalar, "ratio": scalar / best,
        "first": float(np.mean(losses[:100])), "last": float(np.mean(losses[-100:])),
        "apart": max(abs(a - b) for a, b in zip(losses, theirs, strict=False)),
    }  # fmt: skip


def rows(path: str | os.PathLike[str], scalar_steps: int = 5) -> list[list[str]]:
    """The figures as rows of a table: what, measured, goal."""
    found = measure(path, scalar_steps)
    return [
        ["microgpt, 1,000 steps", f"{found['seconds']:.2f} s, core busy {found['busy']:.2f} s", "1.0 s"],
        ["engine of scalars, same steps", f"{found['scalar']:.0f} s ({found['ratio']:.0f} times)", "100 times"],
        ["loss, first and last 100 steps", f"{found['first']:.2f}, {found['last']:.2f}", ""],
        ["losses of the two differ by", f"{found['apart']:.0e}", "1e-9"],
    ]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.microgpt", description=__doc__)
    shared = os.environ.get("TINYATTN_SHARED", "")
    found = os.path.join(shared, "data", "names", "names.txt") if shared else None
    parser.add_argument("names", nargs="?", default=found, help="a text file with one name a line")
    parser.add_argument("--scalar-steps", type=int, default=5, help="how many steps the engine of scalars takes")
    options = parser.parse_args(argv)
    if options.names is None or not os.path.exists(options.names):
        say(f"{options.names or 'No file'}: a text file with one name a line is needed.")
        return 2
    for what, measured, goal in rows(options.names, options.scalar_steps):
        say(f"{what:32} {measured:28} {f'goal {goal}' if goal else ''}".rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
