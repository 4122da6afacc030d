"""From a sentence to vectors: which words it has, which one is followed, and the row of numbers for each."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tinyattn import data, nn
from tinyattn.demo.paper import Paper, listed, shown
from tinyattn.errors import ArgumentError, message

MOST_WORDS = 500

Vectors = npt.NDArray[np.float64]


class Options(NamedTuple):
    """What the user asked for; the names are those of the command line."""

    sentence: str = "I saw a saw"
    word: str | None = None
    position: bool = False
    corpus: str | None = None
    vectors: str | None = None
    out: str = "tinyattn-demo"
    width: int | None = None
    seed: int = 0
    ascii: bool = False


class Input(NamedTuple):
    """The sentence as numbers."""

    words: list[str]
    chosen: int  # the place of the word that is followed
    vectors: Vectors  # (n, d), equal words have equal rows
    x: Vectors  # (n, d), the same, or with positions added
    notes: list[str]  # where the vectors come from, and what was missing

    @property
    def d(self) -> int:
        """Width of a row."""
        return int(self.x.shape[1])


def read(options: Options) -> Input:
    """Split the sentence, choose the word, and look the vectors up.

    Raises
    ------
    ArgumentError
        No word, too many, or a word to follow that is not in the sentence.
    """
    readable = options.sentence.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    words = data.split_sentence(readable)
    if not words:
        raise ArgumentError(
            message(
                "The sentence is empty, so there is nothing that could attend to anything.",
                "",
                'Give at least one word: --sentence "I saw a saw".',
            )
        )
    if len(words) > MOST_WORDS:
        raise ArgumentError(
            message(
                f"The sentence has {len(words)} words; the demo takes up to {MOST_WORDS}.",
                "Every word attends to every word, so the table of scores grows with the square.",
            )
        )
    chosen = _chosen(words, options.word)
    vectors, notes = _made_up(options, words) if options.vectors is None else _from_file(options, words)
    waves = nn.sinusoidal(*vectors.shape)
    return Input(words, chosen, vectors, vectors + waves if options.position else vectors, notes)


def describe(given: Input, options: Options, paper: Paper) -> None:
    """Say what the sentence became, and what its numbers do and do not mean."""
    n, d = given.x.shape
    paper.text(f"{n} word{'s' * (n > 1)}, each a row of {d} number{'s' * (d > 1)}: x has shape ({n}, {d}).")
    for note in given.notes:
        paper.text(note)
    if options.position:
        paper.text("To each row the waves of its position are added (--position), so equal words differ.")


def shown_path(path: str) -> str:
    """A path as it can be printed."""
    return "".join(sign if sign.isprintable() else "?" for sign in path)


def _chosen(words: list[str], wanted: str | None) -> int:
    """The word that was asked for, by itself or by its place; else the first that comes again, else the first."""
    if wanted is None:
        return next((place for place, word in enumerate(words) if words.count(word) > 1), 0)
    wanted = wanted.strip()
    if wanted in words:
        return words.index(wanted)
    if wanted.isascii() and wanted.isdecimal() and 1 <= int(wanted[:9]) <= len(words):
        return int(wanted) - 1
    few = [f"'{shown(word)}'" for word in dict.fromkeys(words)][:12]
    raise ArgumentError(
        message(
            f"The word '{shown(wanted)}' is not in the sentence.",
            f"Its words are {listed(few)}{', and more' if len(set(words)) > 12 else ''}.",
            f"Give one of them with --word, or its place from 1 to {len(words)}.",
        )
    )


def _made_up(options: Options, words: list[str]) -> tuple[Vectors, list[str]]:
    d = 4 if options.width is None else options.width
    rng = np.random.default_rng(options.seed)
    table = {word: rng.normal(size=d) for word in dict.fromkeys(words)}
    note = (
        f"Each distinct word has a vector of random numbers (seed {options.seed}; --vectors FILE takes learned ones). "
        "So the weights below say nothing about the language; they show how the numbers come about."
    )
    return np.array([table[word] for word in words]), [note]


def _from_file(options: Options, words: list[str]) -> tuple[Vectors, list[str]]:
    assert options.vectors is not None
    if options.width is not None:
        raise ArgumentError(
            message(
                "--width and --vectors do not go together.",
                "The file decides how wide its vectors are.",
                "Leave one of them out.",
            )
        )
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        table = data.read_glove(options.vectors)
    notes = [f"The vectors come from {shown_path(options.vectors)}.", *(str(doubt.message) for doubt in doubts)]
    unknown = _unknown(words, table)
    if unknown:
        names = listed([f"'{shown(word)}'" for word in unknown[:5]]) + (" and more" if len(unknown) > 5 else "")
        notes.append(f"There is none for {names}: random numbers stand in (seed {options.seed}).")
    rng = np.random.default_rng(options.seed)
    spread = float(np.std(table.matrix)) or 1.0
    made_up = {word: rng.normal(0.0, spread, table.matrix.shape[1]) for word in unknown}
    found = data.vectors_for(words, table, unknown=0.0).astype(np.float64)
    rows = [made_up.get(word, vector) for word, vector in zip(words, found, strict=True)]
    return np.array(rows), notes


def _unknown(words: list[str], table: data.WordVectors) -> list[str]:
    known = set(table.words)
    return [word for word in dict.fromkeys(words) if word not in known and word.lower() not in known]
