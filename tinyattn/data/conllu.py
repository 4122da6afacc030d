"""Tagged sentences: the CoNLL-U reader, and the corpus written by hand for this package.

CoNLL-U has a word a line in ten columns between tabs, and a blank line after each sentence.  Read here
are the number, the word and its universal tag: no lemma, no tree.  Stands on ``lines``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from tinyattn.data.lines import Path, file_name, lines_of_file, lines_of_text
from tinyattn.errors import ArgumentError, DataFileError, message

UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM",
    "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X",
)  # fmt: skip
"""The seventeen universal part-of-speech tags, in alphabetical order."""

_COLUMNS = 10


class Sentence:
    """Words with their tags.  Iterating gives (word, tag) pairs; `len` is the number of words.

    Parameters
    ----------
    words, tags : iterable of str, length n
        One tag for each word.
    sent_id, text : str, optional
        From the comments of the file, empty where it has none.

    Examples
    --------
    >>> s = Sentence(["I", "saw", "a", "saw"], ["PRON", "VERB", "DET", "NOUN"])
    >>> s
    Sentence('I/PRON saw/VERB a/DET saw/NOUN')
    >>> [word for word, tag in s if tag == "NOUN"]
    ['saw']
    """

    __slots__ = ("sent_id", "tags", "text", "words")

    def __init__(self, words: Iterable[str], tags: Iterable[str], sent_id: str = "", text: str = "") -> None:
        self.words, self.tags = tuple(words), tuple(tags)
        self.sent_id, self.text = sent_id, text
        if len(self.words) != len(self.tags):
            raise ArgumentError(
                f"Sentence: {len(self.words)} words, but {len(self.tags)} tags; each word needs one."
            )

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(zip(self.words, self.tags, strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sentence):
            return NotImplemented
        return self.words == other.words and self.tags == other.tags

    def __hash__(self) -> int:
        return hash((self.words, self.tags))

    def __repr__(self) -> str:
        return "Sentence({!r})".format(" ".join(f"{word}/{tag}" for word, tag in self))


def read_conllu(path: Path) -> list[Sentence]:
    """Read the words and universal tags of a CoNLL-U file.

    Comments, ranges of words written together (``2-3``) and words not spoken (``8.1``) are passed over.
    A missing blank line at the end, Windows line ends and a byte order mark do no harm.

    Parameters
    ----------
    path : str or path
        The file, in UTF-8.

    Returns
    -------
    list of Sentence
        At least one, each with at least one word.

    Raises
    ------
    DataFileError
        With file and line: not ten columns, a number out of order, an unknown or missing tag, a sentence
        without words, no sentence at all, not UTF-8.
    MissingFileError
        When there is none.
    OSError
        When the file cannot be read.

    Examples
    --------
    >>> read_conllu("missing.conllu")
    Traceback (most recent call last):
        ...
    tinyattn.errors.MissingFileError: there is no file missing.conllu.
      ...
    """
    name = file_name(path, "parse_conllu")
    return _sentences(lines_of_file(name, "CoNLL-U text"), name)


def parse_conllu(text: str, path: str = "") -> list[Sentence]:
    r"""Read CoNLL-U from a text instead of a file; see `read_conllu`.

    Parameters
    ----------
    text : str
        The lines.
    path : str, optional
        What to call the text in error messages.

    Returns
    -------
    list of Sentence

    Examples
    --------
    >>> row = "{}\t{}\t_\t{}" + 6 * "\t_"
    >>> lines = ["# text = We saw", row.format(1, "We", "PRON"), row.format(2, "saw", "VERB")]
    >>> parse_conllu("\n".join(lines))
    [Sentence('We/PRON saw/VERB')]
    >>> parse_conllu(row.format(2, "We", "PRON"), "mine.conllu")
    Traceback (most recent call last):
        ...
    tinyattn.errors.DataFileError: mine.conllu, line 1: word number '2' where 1 was expected; ...
    """
    return _sentences(lines_of_text(text), path)


def sample_corpus(language: str = "english", part: str = "train") -> list[Sentence]:
    """The corpus that comes with the package: short sentences in which one word stands in two roles.

    Parameters
    ----------
    language : {"english", "chinese"}
        60 and 40 sentences to learn from.
    part : {"train", "held-out"}
        In each held-out sentence (12 and 8) one word stands in both roles.  None of these sentences is in the
        training part, but all their words are, each in all the roles it has.

    Returns
    -------
    list of Sentence

    Examples
    --------
    >>> sample_corpus("english", "held-out")[0]
    Sentence('I/PRON saw/VERB a/DET saw/NOUN')
    >>> len(sample_corpus("chinese"))
    40
    """
    if language not in ("english", "chinese") or part not in ("train", "held-out"):
        raise ArgumentError(
            message(
                f"sample_corpus({language!r}, {part!r}): there is no such part.",
                'The languages are "english" and "chinese", the parts "train" and "held-out".',
                "For a file of your own write read_conllu(path).",
            )
        )
    name = language + ("" if part == "train" else "-held-out") + ".conllu"
    return read_conllu(os.path.join(os.path.dirname(__file__), "sample", name))


def _sentences(lines: Iterable[tuple[int, str]], path: str) -> list[Sentence]:
    found: list[Sentence] = []
    block: list[tuple[int, str]] = []
    for number, line in lines:
        if line.strip(" "):
            block.append((number, line))
        elif block:
            found.append(_sentence(block, path))
            block = []
    if block:
        found.append(_sentence(block, path))
    if not found:
        raise DataFileError("no sentence in it; CoNLL-U text with at least one word was expected.", path)
    return found


def _sentence(block: list[tuple[int, str]], path: str) -> Sentence:
    """One sentence from its numbered lines, comments included."""
    words: list[str] = []
    tags: list[str] = []
    about = {"sent_id": "", "text": ""}
    for number, line in block:
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            if key.strip() in about:
                about[key.strip()] = value.strip()
            continue
        columns = _columns(line, path, number)
        if _is_range_or_empty_node(columns[0]):
            continue
        _check_number(columns[0], len(words) + 1, path, number)
        _check_word(columns[1], columns[3], path, number)
        words.append(columns[1])
        tags.append(columns[3])
    if not words:
        raise DataFileError(
            "a sentence without words: no line with a plain number before the next blank line.",
            path,
            block[0][0],
        )
    return Sentence(words, tags, about["sent_id"], about["text"])


def _columns(line: str, path: str, number: int) -> list[str]:
    columns = line.split("\t")
    if len(columns) == _COLUMNS:
        return columns
    if len(columns) == 1 and len(line.split()) > 1:
        what = f"no tab in the line, {len(line.split())} pieces between spaces"
    else:
        what = f"{len(columns)} column{'s' * (len(columns) > 1)}"
    raise DataFileError(
        f"{what}; {_COLUMNS} columns between tabs were expected (number, word, lemma, universal tag, ...).",
        path,
        number,
    )


def _is_range_or_empty_node(identity: str) -> bool:
    """True for ``2-3`` (words written together) and ``8.1`` (a word that is not spoken)."""
    for mark in "-.":
        first, found, second = identity.partition(mark)
        if found and _is_number(first) and _is_number(second):
            return True
    return False


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _check_number(identity: str, expected: int, path: str, number: int) -> None:
    if identity == str(expected):
        return
    if not _is_number(identity):
        what = f"column 1 is {_short(identity)}; the word's number {expected} was expected"
    elif identity == "1":
        what = f"word number 1 where {expected} was expected; a blank line must stand between two sentences"
    else:
        what = (
            f"word number {_short(identity)} where {expected} was expected; numbers run from 1 without gaps"
        )
    raise DataFileError(what + ".", path, number)


def _check_word(word: str, tag: str, path: str, number: int) -> None:
    if not word.strip():
        raise DataFileError("column 2, the word, is empty.", path, number)
    if tag in UPOS:
        return
    if tag in ("_", ""):
        what = f"{_short(word)} has no tag ({tag!r} in column 4)"
    else:
        what = f"column 4 of {_short(word)} is {_short(tag)}, which is no universal tag"
        what += f" (did you mean {tag.upper()}?)" if tag.upper() in UPOS else ""
    raise DataFileError(f"{what}; one of {' '.join(UPOS)} was expected.", path, number)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
