"""From a sentence to numbers: splitting it into words, and giving each word a number.

No files here, and no padding: that is ``batches``.  Stands on ``errors`` only.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tinyattn.errors import ArgumentError, ArgumentTypeError, IndexRangeError, message

# Scripts written without blanks: ideographs, kana, and the signs that repeat them.
_IDEOGRAPHS = ((0x3005, 0x3007), (0x3040, 0x30FF), (0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF))


def split_sentence(text: str, words: Collection[str] = ()) -> list[str]:
    """Split a sentence into words: at blanks, and around punctuation; nothing is thrown away but blanks.

    Chinese without blanks is split by character.  When a blank stands between two Chinese characters, the
    sentence counts as split already, and its words stay whole.

    Parameters
    ----------
    text : str
        The sentence.
    words : collection of str, optional
        Known words: in Chinese without blanks the longest one that fits is taken before single characters.

    Returns
    -------
    list of str
        Empty when the text has nothing but blanks.

    Examples
    --------
    >>> split_sentence("I don't see it.")
    ['I', "don't", 'see', 'it', '.']
    >>> split_sentence("我用锁锁门。")
    ['我', '用', '锁', '锁', '门', '。']
    >>> split_sentence("孩子 画 花")
    ['孩子', '画', '花']
    >>> split_sentence("孩子画花", words={"孩子"})
    ['孩子', '画', '花']
    >>> split_sentence("我saw一把saw")
    ['我', 'saw', '一', '把', 'saw']
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"split_sentence: a text was expected, not {type(text).__name__}.")
    if isinstance(words, str):
        raise ArgumentTypeError("split_sentence: words is one text; a set or list of words was expected.")
    chunks = text.split()
    already = any(_is_ideograph(a[-1]) and _is_ideograph(b[0]) for a, b in pairwise(chunks))
    longest = max(map(len, words), default=1)
    found: list[str] = []
    for chunk in chunks:
        for run in _runs(chunk):
            if not _is_ideograph(run[0]):
                found.extend(_without_punctuation_around(run))
            elif already:
                found.append(run)
            else:
                found.extend(_longest_known(run, words, longest))
    return found


class Vocabulary:
    """Words and their numbers.  Number 0 is the unknown word; padding is not a word and has no number.

    Parameters
    ----------
    words : iterable of str
        The words that get the numbers 1, 2, ... in this order.
    lower : bool, optional
        Whether words are looked up in lower case; the given words must be in lower case then.

    Examples
    --------
    >>> v = Vocabulary.of([["I", "saw", "a", "saw"]])
    >>> v.words
    ('<unknown>', 'saw', 'I', 'a')
    >>> v.ids(["I", "saw", "nothing"])
    array([2, 1, 0])
    >>> v.missing(["I", "saw", "nothing"])
    ['nothing']
    """

    UNKNOWN = "<unknown>"

    def __init__(self, words: Iterable[str], lower: bool = False) -> None:
        if isinstance(words, str):
            raise ArgumentTypeError("Vocabulary: one text was given; a list of words was expected.")
        words = tuple(words) if isinstance(words, Iterable) else (None,)
        if not all(isinstance(word, str) for word in words):
            what = "Vocabulary: something else than words was given; a list of texts was expected."
            raise ArgumentTypeError(message(what, "", "Write Vocabulary(['I', 'saw'])."))
        self.lower = lower
        self.words: tuple[str, ...] = (self.UNKNOWN, *words)
        self._ids = {word: number for number, word in enumerate(self.words)}
        if len(self._ids) < len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise ArgumentError(f"Vocabulary: {twice!r} stands there twice; each word has one number.")
        if lower and (capital := next((w for w in self.words if w != w.lower()), None)) is not None:
            raise ArgumentError(
                message(
                    f"Vocabulary: {capital!r} is not in lower case.",
                    "With lower=True it would never be found.",
                )
            )

    @classmethod
    def of(cls, sentences: Iterable[Iterable[str]], at_least: int = 1, lower: bool = False) -> Vocabulary:
        """The words of some sentences: the commonest first, equally common ones as they come.

        Parameters
        ----------
        sentences : iterable of Sentence, or of lists of words
            Where the words come from.
        at_least : int, optional
            A rarer word is left out, so that it is unknown.
        lower : bool, optional
            Count, and later look up, in lower case.

        Returns
        -------
        Vocabulary
        """
        count: Counter[str] = Counter()
        for sentence in sentences:
            if isinstance(sentence, str):
                raise ArgumentTypeError(
                    message(
                        f"Vocabulary.of: the sentence {sentence!r} is a text; a list of words was expected.",
                        "",
                        "Write split_sentence(text).",
                    )
                )
            count.update(word.lower() if lower else word for word in getattr(sentence, "words", sentence))
        del count[cls.UNKNOWN]
        return cls((word for word, times in count.most_common() if times >= at_least), lower)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return self._ids.get(self._form(word), 0) > 0

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def ids(self, words: Iterable[str]) -> npt.NDArray[np.int64]:
        """The numbers of the words, 0 for one that is unknown.

        Parameters
        ----------
        words : iterable of str, length n
            A sentence, split.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        if isinstance(words, str):
            raise ArgumentTypeError(
                message(
                    "Vocabulary.ids: a text; a list of words was expected.", "", "Write split_sentence(text)."
                )
            )
        return np.array([self._ids.get(self._form(word), 0) for word in words], dtype=np.int64)

    def word(self, number: int) -> str:
        """The word with this number.

        >>> Vocabulary(["a", "b"]).word(2)
        'b'
        """
        if not 0 <= number < len(self.words):
            raise IndexRangeError(
                f"Vocabulary.word({number}): the numbers run from 0 to {len(self.words) - 1}."
            )
        return self.words[number]

    def missing(self, words: Iterable[str]) -> list[str]:
        """The words that are unknown, each once, in the order of the sentence."""
        return list(dict.fromkeys(word for word in words if word not in self))

    def _form(self, word: str) -> str:
        return word.lower() if self.lower else word


def _is_ideograph(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _IDEOGRAPHS)


def _runs(chunk: str) -> list[str]:
    """Pieces that are ideographs throughout, or not at all; a mark stays with what it stands on."""
    runs: list[str] = []
    for character in chunk:
        goes_on = runs and (
            unicodedata.category(character).startswith("M")
            or _is_ideograph(character) == _is_ideograph(runs[-1][0])
        )
        if goes_on:
            runs[-1] += character
        else:
            runs.append(character)
    return runs


def _without_punctuation_around(run: str) -> list[str]:
    """``"(so)..."`` becomes ``( so ) ...``: equal signs in a row are one, those inside a word stay."""
    start, end = 0, len(run)
    while start < end and _is_punctuation(run[start]):
        start += 1
    while end > start and _is_punctuation(run[end - 1]):
        end -= 1
    middle = [run[start:end]] if start < end else []
    return _signs(run[:start]) + middle + _signs(run[end:])


def _signs(text: str) -> list[str]:
    signs: list[str] = []
    for character in text:
        if signs and signs[-1][0] == character:
            signs[-1] += character
        else:
            signs.append(character)
    return signs


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P")


def _longest_known(run: str, words: Collection[str], longest: int) -> Iterator[str]:
    """Characters of a run, but known words whole: at each place the longest one that fits."""
    start = 0
    while start < len(run):
        end = next(
            (e for e in range(min(len(run), start + longest), start + 1, -1) if run[start:e] in words),
            start + 1,
        )
        while end < len(run) and unicodedata.category(run[end]).startswith("M"):
            end += 1
        yield run[start:end]
        start = end
