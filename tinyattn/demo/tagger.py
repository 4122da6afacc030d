"""A small tagger with attention against the same without: what a word's neighbours are good for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import tinyattn as ta
from tinyattn import data, nn, train
from tinyattn.demo.paper import Paper, shown
from tinyattn.demo.sentence import Options, shown_path
from tinyattn.errors import ArgumentError, message
from tinyattn.terminal import ProgressBar

WIDTH = 32
STEPS = 250
STARTS = 3  # random starts on the sample corpus, whose accuracies vary with them
_SMALL = 100  # up to so many sentences are one batch
_BATCH = 32
_HIDDEN = 0.15
_LONGEST_WAVE = 30.0
_MOST_SHOWN = 4
_LONGEST_SHOWN = 12

Ids = npt.NDArray[np.int64]
Keep = npt.NDArray[np.bool_]
Batch = tuple[Ids, Ids, Keep]


class Tagger(nn.Module):
    """Embedding, position, self-attention (or none) and a linear layer: one tag for each word.

    Parameters
    ----------
    words, tags : int
        How many of each.
    with_attention : bool
        Without it every word is tagged by itself, from its vector and its position.
    rng : numpy Generator

    Examples
    --------
    >>> tagger = Tagger(20, 5, True, np.random.default_rng(0))
    >>> tagger(np.array([[3, 1, 4]]), np.array([[True, True, False]])).shape
    (1, 3, 5)
    """

    def __init__(self, words: int, tags: int, with_attention: bool, rng: np.random.Generator) -> None:
        self.embedding = nn.Embedding(words, WIDTH, scale=0.03, rng=rng)
        self.position = nn.SinusoidalPosition(WIDTH, base=_LONGEST_WAVE)  # short waves: neighbours matter
        self.attention = nn.SelfAttention(WIDTH, rng=rng) if with_attention else None
        self.linear = nn.Linear(WIDTH, tags, rng=rng)
        self.rng = rng

    def forward(self, ids: Ids, keep: Keep) -> ta.Tensor:
        """Score every tag for every word.

        Parameters
        ----------
        ids : int array, shape (b, n)
        keep : bool array, shape (b, n)
            False where a shorter sentence has ended.

        Returns
        -------
        Tensor, shape (b, n, tags)
        """
        if self.training:  # some words are hidden, so that the neighbours must be enough
            ids = np.where(self.rng.random(ids.shape) < _HIDDEN, 0, ids)
        x = self.position(self.embedding(ids))  # (b, n, d)
        if self.attention is not None:
            context = self.attention(x, keep=keep[:, None, :])  # (b, n, d)
            x = x + context
        scores: ta.Tensor = self.linear(x)  # (b, n, tags)
        return scores


class Corpus(NamedTuple):
    """Tagged sentences to learn from and to be judged by, with the numbers of their words and tags."""

    train: list[data.Sentence]
    held_out: list[data.Sentence]
    vocabulary: data.Vocabulary
    tags: list[str]
    source: str


def corpus_of(options: Options) -> Corpus:
    """The user's treebank with every tenth sentence held out, or the sample corpus in the sentence's language."""
    if options.corpus is not None:
        sentences = data.read_conllu(options.corpus)
        if len(sentences) < 2:
            raise ArgumentError(
                message(
                    f"{shown_path(options.corpus)} has one sentence.",
                    "One is held out to judge by, so nothing is left to learn from.",
                    "Give a treebank with at least two, better with a thousand.",
                )
            )
        held_out = sentences[1::10]
        learned = [sentence for place, sentence in enumerate(sentences) if place % 10 != 1]
        source = f"{shown_path(options.corpus)}, every tenth sentence held out"
    else:
        language = "chinese" if any("\u3400" <= sign <= "\u9fff" for sign in options.sentence) else "english"
        learned, held_out = data.sample_corpus(language), data.sample_corpus(language, "held-out")
        source = f"the {language.capitalize()} sample corpus"
    vocabulary = data.Vocabulary.of([sentence.words for sentence in learned], lower=True)
    tags = sorted({tag for sentence in [*learned, *held_out] for tag in sentence.tags})
    return Corpus(learned, held_out, vocabulary, tags, source)


def compare(corpus: Corpus, options: Options, paper: Paper) -> bool:
    """Train both taggers, print what they can, and say whether the training was completed."""
    starts = STARTS if options.corpus is None else 1
    paper.text(
        f"Embedding, position, self-attention and a linear layer of width {WIDTH} learn tags from {corpus.source}: "
        f"{len(corpus.train)} sentence{'s' * (len(corpus.train) > 1)} to learn from, {len(corpus.held_out)} to be "
        "judged by. Beside it learns the same model without attention, which sees of each word only itself and its "
        "place."
        + (f" Both learn from {starts} random starts; accuracies are means." if starts > 1 else "")
    )
    paper.flush()
    models: dict[str, list[Tagger]] = {}
    for label, with_attention in (("without attention", False), ("with attention", True)):
        models[label] = learn(corpus, with_attention, options.seed, starts, label, options.ascii)
        if len(models[label]) < starts:
            return False
    _print_accuracies(corpus, models, paper)
    _print_tags(corpus, {label: each[0] for label, each in models.items()}, options, paper)
    return True


def learn(
    corpus: Corpus, with_attention: bool, seed: int, starts: int, label: str, ascii: bool = False
) -> list[Tagger]:
    """Train taggers from several starts, each about 250 steps and at least once through the corpus.

    Returns
    -------
    list of Tagger
        Fewer than ``starts`` when Ctrl-C ended it.
    """
    size = len(corpus.train) if len(corpus.train) <= _SMALL else _BATCH
    by_length = sorted(corpus.train, key=len)  # sentences of one batch are about equally long
    batches = [
        data.tagged_batch(by_length[start : start + size], corpus.vocabulary, corpus.tags)
        for start in range(0, len(by_length), size)
    ]
    epochs = max(1, STEPS // len(batches))
    learned: list[Tagger] = []
    with ProgressBar(starts * epochs * len(batches), f"{label:<17}", ascii=ascii) as bar:
        for rng in np.random.default_rng(seed).spawn(starts):
            model = Tagger(len(corpus.vocabulary), len(corpus.tags), with_attention, rng)
            optimiser = ta.optim.Adam(model.parameters(), lr=0.01)
            if train.fit(model, batches, loss, optimiser=optimiser, epochs=epochs, rng=rng, progress=bar).interrupted:
                break
            learned.append(model.eval())
    return learned


def loss(model: Tagger, batch: Batch) -> ta.Tensor:
    """Cross-entropy of the tags, where there is a word."""
    ids, targets, keep = batch
    return ta.cross_entropy(model(ids, keep), targets, ignore_index=-1)


def predict(model: Tagger, corpus: Corpus, words: Sequence[str]) -> list[str]:
    """The tag with the highest score for each word."""
    ids = corpus.vocabulary.ids(words)[None]
    with ta.no_grad():
        scores = model(ids, np.ones(ids.shape, dtype=bool))
    return [corpus.tags[int(best)] for best in scores.data[0].argmax(axis=-1)]


def two_roles(sentence: data.Sentence) -> list[int]:
    """The places of words that stand in this sentence with more than one tag.

    Examples
    --------
    >>> two_roles(data.Sentence(["I", "saw", "a", "saw"], ["PRON", "VERB", "DET", "NOUN"]))
    [1, 3]
    """
    tags: dict[str, set[str]] = {}
    for word, tag in sentence:
        tags.setdefault(word.lower(), set()).add(tag)
    return [place for place, word in enumerate(sentence.words) if len(tags[word.lower()]) > 1]


def count_right(corpus: Corpus, tags_for: Callable[[Sequence[str]], Sequence[str]]) -> tuple[int, int]:
    """How many held-out words get their tag, and how many of those that stand in two roles."""
    right = hard = 0
    for sentence in corpus.held_out:
        correct = [a == b for a, b in zip(tags_for(sentence.words), sentence.tags, strict=True)]
        right += sum(correct)
        hard += sum(correct[place] for place in two_roles(sentence))
    return right, hard


def _print_accuracies(corpus: Corpus, models: dict[str, list[Tagger]], paper: Paper) -> None:
    words = sum(len(sentence) for sentence in corpus.held_out)
    hard = sum(len(two_roles(sentence)) for sentence in corpus.held_out)
    counts = {"most frequent tag": [count_right(corpus, data.MostFrequentTag(corpus.train, lower=True).tags_for)]}
    for label, taggers in models.items():
        counts[label] = [count_right(corpus, partial(predict, tagger, corpus)) for tagger in taggers]
    means = {label: np.mean(each, axis=0) for label, each in counts.items()}
    rows = [
        [label, f"{mean[0] / words:.1%}", f"{mean[1] / hard:.1%}" if hard else "none there"]
        for label, mean in means.items()
    ]
    paper.table(rows, ["held-out tags right", f"all {words} words", f"{hard} words in two roles"])
    gain = float(means["with attention"][0] - means["without attention"][0])
    amount = f"{abs(gain):.1f}".removesuffix(".0")
    verdict = (
        f"Attention gets {amount} more of the {words} held-out words right." if gain > 0
        else "Attention did not help here." if gain == 0
        else f"Attention gets {amount} fewer of the {words} held-out words right."
    )  # fmt: skip
    if max(means[label][0] for label in models) < means["most frequent tag"][0]:
        verdict += " Neither model is as good as giving each word its most frequent tag: they learn only briefly."
    paper.text(verdict + (" So few words are judged that another --seed moves this by a few." if words < 500 else ""))


def _print_tags(corpus: Corpus, models: dict[str, Tagger], options: Options, paper: Paper) -> None:
    judged = [sentence for sentence in corpus.held_out if two_roles(sentence) and len(sentence) <= _LONGEST_SHOWN]
    shortest = sorted(judged, key=len)[:_MOST_SHOWN]
    chosen = [sentence for sentence in judged if sentence in shortest][:_MOST_SHOWN]
    if chosen:
        paper.gap()
        paper.text(
            "Held-out sentences in which a word has two roles, tagged by the models from the first start (* is wrong):"
        )
    for sentence in chosen:
        _print_sentence(list(sentence.words), list(sentence.tags), corpus, models, paper)
    words = data.split_sentence(options.sentence, corpus.vocabulary.words)
    if len(words) > _LONGEST_SHOWN or any(tuple(words) == sentence.words for sentence in chosen):
        return
    paper.text("Your sentence:")
    missing = [shown(word) for word in corpus.vocabulary.missing(words)]
    if missing:
        paper.text(f"(The corpus does not have {', '.join(missing)}: the taggers see an unknown word.)")
    _print_sentence(words, None, corpus, models, paper)


def _print_sentence(
    words: list[str], tags: list[str] | None, corpus: Corpus, models: dict[str, Tagger], paper: Paper
) -> None:
    rows = [["right", *tags]] if tags else []
    for label, model in models.items():
        found = predict(model, corpus, words)
        marks = ["" if tags is None or tag == tags[place] else "*" for place, tag in enumerate(found)]
        rows.append([label, *(tag + mark for tag, mark in zip(found, marks, strict=True))])
    paper.table(rows, ["", *map(shown, words)])
