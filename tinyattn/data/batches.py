"""Sentences of different length in one array, and how good tags are.

Which place of a batch is real is never read off the numbers in it: `pad_batch` says it in a mask.  Stands on
``text`` and ``conllu``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from tinyattn.data.conllu import UPOS, Sentence
from tinyattn.data.text import Vocabulary
from tinyattn.errors import ArgumentError, ArgumentTypeError, ShapeError, message

Ids = npt.NDArray[np.int64]
Keep = npt.NDArray[np.bool_]


def pad_batch(lists: Iterable[npt.ArrayLike], fill: int = 0) -> tuple[Ids, Keep]:
    """Put lists of numbers of different length under each other, filled up at the end.

    Parameters
    ----------
    lists : iterable of integer lists or arrays, each of shape (n_i,)
        The sentences as numbers; none may be empty.
    fill : int, optional
        The number that stands where there is no word.

    Returns
    -------
    ids : ndarray of int64, shape (batch, n)
        n is the length of the longest.
    keep : ndarray of bool, shape (batch, n)
        True where a word stands, whatever its number.

    Examples
    --------
    >>> ids, keep = pad_batch([[5, 0, 7], [3]])
    >>> ids
    array([[5, 0, 7],
           [3, 0, 0]])
    >>> keep
    array([[ True,  True,  True],
           [ True, False, False]])
    """
    if isinstance(fill, bool) or not isinstance(fill, (int, np.integer)):
        raise ArgumentTypeError(f"pad_batch: fill={fill!r} must be a whole number, as the others are.")
    if isinstance(lists, str) or not isinstance(lists, Iterable):
        what = f"pad_batch: a {type(lists).__name__} was given; a list of lists of whole numbers is needed."
        raise ArgumentTypeError(message(what, "", "Write pad_batch([[5, 0, 7], [3]])."))
    rows = [_row(numbers, place) for place, numbers in enumerate(lists)]
    if not rows:
        raise ArgumentError(message("pad_batch: there is no sentence.", "A batch has at least one."))
    shape = (len(rows), max(map(len, rows)))
    ids, keep = np.full(shape, fill, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        keep[place, : len(row)] = True
    return ids, keep


def tagged_batch(
    sentences: Sequence[Sentence], vocabulary: Vocabulary, tags: Sequence[str] = UPOS
) -> tuple[Ids, Ids, Keep]:
    """Tagged sentences as arrays that a model learns from.

    Parameters
    ----------
    sentences : sequence of Sentence, length batch
        What to learn from.
    vocabulary : Vocabulary
        Gives each word its number.
    tags : sequence of str, optional
        Gives each tag its number: the place in this list.

    Returns
    -------
    ids : ndarray of int64, shape (batch, n)
        Words, 0 where there is none.
    targets : ndarray of int64, shape (batch, n)
        Tags, -1 where there is none: the number that losses and `tagging_accuracy` pass over.
    keep : ndarray of bool, shape (batch, n)
        True where a word stands.

    Examples
    --------
    >>> s = Sentence(["I", "run"], ["PRON", "VERB"])
    >>> ids, targets, keep = tagged_batch([s], Vocabulary(["I", "run"]))
    >>> ids, targets
    (array([[1, 2]]), array([[10, 15]]))
    """
    number = {tag: place for place, tag in enumerate(tags)}
    for place, sentence in enumerate(sentences):
        for word, tag in sentence:
            if tag not in number:
                raise ArgumentError(
                    f"tagged_batch: {word!r} in sentence {place} has the tag {tag!r}, which is none of"
                    f" {' '.join(tags)}."
                )
    ids, keep = pad_batch([vocabulary.ids(sentence.words) for sentence in sentences])
    targets, _ = pad_batch([[number[tag] for tag in sentence.tags] for sentence in sentences], fill=-1)
    return ids, targets, keep


class MostFrequentTag:
    """The tagger that every other must beat: each word gets its commonest tag, whatever stands beside it.

    Parameters
    ----------
    sentences : iterable of Sentence
        Where the counts come from.  Of equally frequent tags the one seen first is taken.
    lower : bool, optional
        Count and look up in lower case.

    Examples
    --------
    >>> seen = [Sentence(["I", "saw", "it"], ["PRON", "VERB", "PRON"])]
    >>> MostFrequentTag(seen).tags_for(["I", "saw", "a", "saw"])
    ['PRON', 'VERB', 'PRON', 'VERB']
    """

    def __init__(self, sentences: Iterable[Sentence], lower: bool = False) -> None:
        self.lower = lower
        counts: dict[str, Counter[str]] = {}
        overall: Counter[str] = Counter()
        for sentence in sentences:
            for word, tag in sentence:
                counts.setdefault(word.lower() if lower else word, Counter())[tag] += 1
                overall[tag] += 1
        if not overall:
            raise ArgumentError("MostFrequentTag: there is no sentence to count in.")
        self._best = {word: count.most_common(1)[0][0] for word, count in counts.items()}
        self.for_unknown = overall.most_common(1)[0][0]

    def tags_for(self, words: Iterable[str]) -> list[str]:
        """One tag for each word; an unknown word gets the tag that is most frequent of all."""
        if isinstance(words, str):
            raise ArgumentTypeError(
                "tags_for: a text; a list of words was expected. Write split_sentence(text)."
            )
        return [self._best.get(word.lower() if self.lower else word, self.for_unknown) for word in words]


def tagging_accuracy(predicted: npt.ArrayLike, gold: npt.ArrayLike, ignore: int | str = -1) -> float:
    """The part of the tags that is right.

    Parameters
    ----------
    predicted, gold : array_like, the same shape
        Tags as numbers or as text.
    ignore : int or str, optional
        Places where `gold` is this are not counted.

    Returns
    -------
    float
        From 0 to 1; nan when nothing is left to count, since 0 of 0 is not "all right".

    Examples
    --------
    >>> tagging_accuracy([[1, 2, 3], [1, 9, 9]], [[1, 2, 4], [1, -1, -1]])
    0.75
    """
    ours, theirs = _tags(predicted, "predicted"), _tags(gold, "gold")
    if ours.shape != theirs.shape:
        raise ShapeError(
            message(
                f"tagging_accuracy(predicted: {ours.shape}, gold: {theirs.shape}) does not fit.",
                "Each predicted tag is compared with the one at the same place.",
                "Give both the same shape.",
            )
        )
    if (ours.dtype.kind == "U") != (theirs.dtype.kind == "U") and theirs.size:
        raise ArgumentTypeError(
            "tagging_accuracy: one side has numbers, the other text; both must be the same."
        )
    counted = np.ones(theirs.shape, dtype=np.bool_)
    if (theirs.dtype.kind == "U") == isinstance(ignore, str):
        counted = theirs != ignore
    if not counted.any():
        return float("nan")
    return float(np.mean((ours == theirs)[counted]))


def _row(numbers: npt.ArrayLike, place: int) -> Ids:
    if isinstance(numbers, str):
        raise ArgumentTypeError(
            message(
                f"pad_batch: sentence {place} is text.",
                "A batch holds numbers.",
                "Write vocabulary.ids(words).",
            )
        )
    row = _as_array(numbers, f"pad_batch: sentence {place}")
    if row.ndim != 1:
        raise ShapeError(
            f"pad_batch: sentence {place} has shape {row.shape}; a list of numbers was expected."
        )
    if row.size == 0:
        raise ArgumentError(
            message(
                f"pad_batch: sentence {place} is empty.",
                "It has no word that could be attended to.",
                "Leave it out.",
            )
        )
    if row.dtype.kind not in "iu":
        raise ArgumentTypeError(
            f"pad_batch: sentence {place} holds {row.dtype}; whole numbers were expected."
        )
    if row.dtype == np.uint64 and row.max() > np.iinfo(np.int64).max:
        raise ArgumentError(f"pad_batch: sentence {place} holds {row.max()}, which is too large for a word number.")
    return row.astype(np.int64)


def _tags(values: npt.ArrayLike, name: str) -> npt.NDArray[np.generic]:
    array = _as_array(values, f"tagging_accuracy: {name}")
    if array.dtype.kind not in "iuUb" and array.size:
        raise ArgumentTypeError(
            f"tagging_accuracy: {name} holds {array.dtype}; tags are whole numbers or text."
        )
    return array


def _as_array(values: npt.ArrayLike, where: str) -> npt.NDArray[np.generic]:
    try:
        return np.asarray(values)
    except ValueError:  # rows of different length
        raise ShapeError(f"{where} has rows of different length; pad them first (pad_batch).") from None
