"""Part-of-speech tagging: what attention, and what position, add to knowing the word; compared as the numbers fall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

import tinyattn as ta
from tinyattn import data, nn, optim, train
from tinyattn.errors import ArgumentError, ArgumentTypeError, message

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Keep = NDArray[np.bool_]

KINDS = ("most frequent tag", "no attention", "attention without position", "attention with position")
_HIDDEN = 0.15  # share of words that are hidden while learning, so that the neighbours must be enough
_BATCH = 32
_LEAST_STEPS = 300
_PATIENCE = 3
_LEAST_SENTENCES = 10
_ENOUGH = 200  # sentences; of fewer none is kept back to stop by


class Tagger(nn.Module):
    """Embedding, several heads of attention (or none), and a linear layer: one tag for each word.

    Parameters
    ----------
    words, tags : int
        How many of each.
    kind : str
        One of ``KINDS`` but the first.  The position is a learned number for each distance and head.
    d, heads : int
        Width of a word, and how many heads.
    rng : numpy Generator, int or None

    Examples
    --------
    >>> tagger = Tagger(20, 5, "attention with position", d=8, heads=2, rng=0)
    >>> tagger(np.array([[3, 1, 4]]), np.array([[True, True, False]])).shape
    (1, 3, 5)
    """

    def __init__(
        self, words: int, tags: int, kind: str, *, d: int = 32, heads: int = 4, rng: nn.init.Rng = None
    ) -> None:
        if not isinstance(kind, str) or kind not in KINDS[1:]:
            raise ArgumentError(f"Tagger: kind={kind!r} must be one of {', '.join(map(repr, KINDS[1:]))}.")
        self.rng = nn.init.generator(rng)
        self.embedding = nn.Embedding(words, d, scale=0.3, rng=self.rng)
        position = nn.DistanceBias(heads, reach=4) if kind == KINDS[3] else None
        self.attention = None if kind == KINDS[1] else nn.MultiHeadAttention(d, heads, position=position, rng=self.rng)
        self.linear = nn.Linear(d, tags, rng=self.rng)

    def forward(self, ids: Ids, keep: Keep) -> ta.Tensor:
        """Score every tag for every word.

        Parameters
        ----------
        ids : int array, shape (b, n)
        keep : bool array, shape (b, n)
            True where a word stands.

        Returns
        -------
        Tensor, shape (b, n, tags)
        """
        if self.training:
            ids = np.where(self.rng.random(ids.shape) < _HIDDEN, 0, ids)
        x = self.embedding(ids)  # (b, n, d)
        if self.attention is not None:
            x = x + self.attention(x, keep=nn.masks.padding(keep))  # (b, n, d)  the word, and its context
        scores: ta.Tensor = self.linear(x)  # (b, n, tags)
        return scores


class Split(NamedTuple):
    """Sentences to learn from, to stop early by, and to be judged by; nobody saw the last before.

    Examples
    --------
    >>> sentences = data.sample_corpus("english")
    >>> len(Split(sentences[:50], [], sentences[50:]).judged)
    10
    """

    learned: list[data.Sentence]
    tuned: list[data.Sentence]
    judged: list[data.Sentence]


class Result(NamedTuple):
    """How many of the judged words get their tag: of all, of known, unknown and ambiguous ones."""

    kind: str
    right: dict[str, int]
    history: train.History | None
    model: Tagger | None


def _check_kind(what: str, given: object, kind: type | tuple[type, ...], instead: str) -> None:
    if not isinstance(given, kind):
        raise ArgumentTypeError(message(f"{what}: a {type(given).__name__} is none of that.", "", instead))


def split_corpus(sentences: Sequence[data.Sentence], held_out: Sequence[data.Sentence] | None = None) -> Split:
    """Part a treebank: every tenth sentence to be judged by, where nothing is held out, and of the rest one in ten to
    stop by, where there are enough.

    Examples
    --------
    >>> split = split_corpus(data.sample_corpus("english"))
    >>> [len(part) for part in split]
    [54, 0, 6]
    """
    _check_kind("split_corpus: sentences", sentences, (list, tuple), "Write split_corpus(data.read_conllu(path)).")
    if len(sentences) < _LEAST_SENTENCES:
        raise ArgumentError(
            message(
                f"There are {len(sentences)} sentences; at least {_LEAST_SENTENCES} are needed.",
                "Of every ten, some are held out to stop by and to be judged by.",
                "Give a larger treebank.",
            )
        )
    rest, judged = (list(sentences), list(held_out)) if held_out is not None else _every_tenth(sentences)
    return Split(*_every_tenth(rest), judged) if len(rest) >= _ENOUGH else Split(rest, [], judged)


def _every_tenth(sentences: Sequence[data.Sentence]) -> tuple[list[data.Sentence], list[data.Sentence]]:
    """The others, and every tenth."""
    return [s for place, s in enumerate(sentences) if place % 10 != 9], list(sentences[9::10])


def compare_taggers(
    split: Split, *, epochs: int = 30, d: int = 32, heads: int = 4, seed: int = 0, progress: bool = True,
    ascii: bool = False, stream: TextIO | None = None,
) -> list[Result]:  # fmt: skip
    """Train every kind from the same start on the same sentences, and count what each gets right.

    Parameters
    ----------
    split : Split
    epochs : int
        The most; each stops earlier when three in a row are no better on the sentences to stop by.
    d, heads : int
        As in `Tagger`.
    seed : int
    progress, ascii, stream
        As in `tinyattn.train.fit`.

    Returns
    -------
    list of Result, one for each of ``KINDS``; fewer when Ctrl-C ended it

    Examples
    --------
    >>> split = split_corpus(data.sample_corpus("english"))
    >>> results = compare_taggers(split, d=8, heads=2, progress=False)
    >>> [result.kind for result in results] == list(KINDS)
    True
    """
    _check_kind("compare_taggers: split", split, Split, "Write compare_taggers(split_corpus(sentences)).")
    nn.MultiHeadAttention(d, heads, rng=0)  # sizes that do not fit are refused before anything is learned
    vocabulary = data.Vocabulary.of([s.words for s in split.learned], lower=True)
    tags = sorted({tag for part in split for s in part for tag in s.tags})
    kinds = word_kinds(split, vocabulary)
    baseline = data.MostFrequentTag(split.learned, lower=True)
    commonest = [baseline.tags_for(s.words) for s in split.judged]
    found = [Result(KINDS[0], count_right(split, kinds, commonest), None, None)]
    for kind in KINDS[1:]:
        model = Tagger(len(vocabulary), len(tags), kind, d=d, heads=heads, rng=seed)
        history = learn(model, split, vocabulary, tags, epochs, seed, {
            "label": f"{kind:<26}", "progress": progress, "ascii": ascii, "stream": stream})  # fmt: skip
        if history.interrupted:
            break
        predicted = [tags_of(model, s.words, vocabulary, tags) for s in split.judged]
        found.append(Result(kind, count_right(split, kinds, predicted), history, model))
    return found


def learn(
    model: Tagger, split: Split, vocabulary: data.Vocabulary, tags: Sequence[str], epochs: int, seed: int,
    shown: dict[str, Any],
) -> train.History:  # fmt: skip
    """Train one tagger, until the sentences to stop by get no better."""
    by_length = sorted(split.learned, key=len)  # sentences of one batch are about equally long
    parts = [by_length[i : i + _BATCH] for i in range(0, len(by_length), _BATCH)]
    batches = [data.tagged_batch(part, vocabulary, tags) for part in parts]
    if not split.tuned:  # a small corpus is gone through more often, and to the end
        epochs = max(epochs, -(-_LEAST_STEPS // len(batches)))
    options: dict[str, Any] = {"schedule": optim.cosine(0.01, epochs * len(batches), 10), **shown}
    if split.tuned:
        tuning = data.tagged_batch(split.tuned, vocabulary, tags)
        options |= {"patience": _PATIENCE, "validate": lambda model: float(loss(model, tuning).data)}
    optimiser = optim.AdamW(model.parameters(), decay=0.01)
    return train.fit(model, batches, loss, optimiser=optimiser, epochs=epochs, rng=seed, **options)


def loss(model: Tagger, batch: tuple[Ids, Ids, Keep]) -> ta.Tensor:
    """Cross-entropy of the tags, where there is a word."""
    ids, targets, keep = batch
    return ta.cross_entropy(model(ids, keep), targets, ignore_index=-1)


def tags_of(model: Tagger, words: Sequence[str], vocabulary: data.Vocabulary, tags: Sequence[str]) -> list[str]:
    """The tag with the highest score for each word."""
    ids = vocabulary.ids(words)[None]
    model.eval()
    with ta.no_grad():
        scores = model(ids, np.ones(ids.shape, dtype=bool))
    return [tags[int(best)] for best in scores.data[0].argmax(axis=-1)]


def word_kinds(split: Split, vocabulary: data.Vocabulary) -> list[list[list[str]]]:
    """For every judged word, under which headings it counts."""
    seen: dict[str, set[str]] = {}
    for sentence in split.learned:
        for word, tag in sentence:
            seen.setdefault(word.lower(), set()).add(tag)
    return [
        [
            ["all", "known" if word.lower() in vocabulary else "unknown"]
            + (["ambiguous"] if len(seen.get(word.lower(), ())) > 1 else [])
            for word in sentence.words
        ]
        for sentence in split.judged
    ]


def count_right(split: Split, kinds: list[list[list[str]]], predicted: Sequence[Sequence[str]]) -> dict[str, int]:
    """How many of the words under each heading got their tag."""
    right = dict.fromkeys(("all", "known", "unknown", "ambiguous"), 0)
    for sentence, headings, tags in zip(split.judged, kinds, predicted, strict=True):
        for place, (gold, tag) in enumerate(zip(sentence.tags, tags, strict=True)):
            for heading in headings[place]:
                right[heading] += gold == tag
    return right
