"""Word vectors from the user's own file, in GloVe's text form.

A line is a word and its numbers, with spaces between.  Stands on ``lines``.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tinyattn.data.lines import Path, file_name, lines_of_file, lines_of_text
from tinyattn.errors import ArgumentError, ArgumentTypeError, DataFileError, ShapeError, message

_LOOKED_AT = 100  # lines from which the number of numbers is seen


class WordVectors(NamedTuple):
    """Words and the matrix with their vectors, shape (number of words, width): row i belongs to word i."""

    words: tuple[str, ...]
    matrix: npt.NDArray[np.floating]


def read_glove(path: Path, limit: int | None = None, dtype: npt.DTypeLike = np.float64) -> WordVectors:
    """Read word vectors in GloVe's text form: a word, then its numbers, a line each.

    The width is that of most of the first hundred lines, so that a word may be a number, and may contain
    spaces (``. . .`` in GloVe's largest file).  A first line with the two sizes, as word2vec writes it, is
    passed over when its width is right.  Of a word that comes twice the first vector is kept, with a warning.

    Parameters
    ----------
    path : str or path
        The file, in UTF-8.
    limit : int, optional
        Read only so many words: the files begin with the commonest.
    dtype : dtype, optional
        float64, or float32 for large files.

    Returns
    -------
    WordVectors
        ``words, matrix = read_glove(path)``

    Raises
    ------
    DataFileError
        With file and line: too many or too few numbers, one that is not finite, no word, not UTF-8.
    MissingFileError
        When there is none.
    OSError
        When the file cannot be read.
    """
    name = file_name(path, "parse_glove")
    return _table(lines_of_file(name, "a text with word vectors"), name, limit, dtype)


def parse_glove(
    text: str, path: str = "", limit: int | None = None, dtype: npt.DTypeLike = np.float64
) -> WordVectors:
    r"""Read word vectors from a text instead of a file; see `read_glove`.

    Parameters
    ----------
    text : str
        The lines.
    path : str, optional
        What to call the text in error messages.
    limit, dtype
        As for `read_glove`.

    Returns
    -------
    WordVectors

    Examples
    --------
    >>> words, matrix = parse_glove("cat 1 2\n1984 3 4\n. . . 5 6e-1\n")
    >>> words
    ('cat', '1984', '. . .')
    >>> matrix
    array([[1. , 2. ],
           [3. , 4. ],
           [5. , 0.6]])
    >>> parse_glove("cat 1 2\ndog 1\n", "my.txt")
    Traceback (most recent call last):
        ...
    tinyattn.errors.DataFileError: my.txt, line 2: 1 number after the word; 2 were expected, as in most lines.
    """
    return _table(lines_of_text(text), path, limit, dtype)


def vectors_for(
    words: Iterable[str], table: tuple[Iterable[str], npt.ArrayLike], unknown: npt.ArrayLike | None = None
) -> npt.NDArray[np.floating]:
    r"""The vectors of a sentence's words, a word a row; a word is looked up as it is, then in lower case.

    Parameters
    ----------
    words : iterable of str, length n
        A sentence, split.
    table : WordVectors
        What `read_glove` gave: v words, and a matrix of shape (v, d).
    unknown : array_like, shape (d,) or number, optional
        The vector of a word that has none.  Without it such a word is an error.

    Returns
    -------
    ndarray, shape (n, d)

    Examples
    --------
    >>> table = parse_glove("i 1 2\nsaw 3 4\n")
    >>> vectors_for(["I", "saw"], table)
    array([[1., 2.],
           [3., 4.]])
    >>> vectors_for(["I", "sow"], table)
    Traceback (most recent call last):
        ...
    tinyattn.errors.ArgumentError: vectors_for: no vector for 'sow'.
      The table has 2 words, and it is none of them, in lower case neither.
      Take another word, or say unknown=0 for a vector of zeros.
    """
    if isinstance(words, str):
        raise ArgumentTypeError(
            "vectors_for: a text; a list of words was expected. Write split_sentence(text)."
        )
    known, matrix = list(table[0]), np.asarray(table[1])
    if matrix.ndim != 2 or len(known) != len(matrix):
        raise ShapeError(
            f"vectors_for: {len(known)} words, but a matrix of shape {matrix.shape}; a row each was expected."
        )
    row = {word: place for place, word in reversed(list(enumerate(known)))}
    wanted = list(words)
    places = [row.get(word, row.get(word.lower(), -1)) for word in wanted]
    missing = list(dict.fromkeys(word for word, place in zip(wanted, places, strict=True) if place < 0))
    if missing and unknown is None:
        raise ArgumentError(
            message(
                f"vectors_for: no vector for {', '.join(map(repr, missing))}.",
                f"The table has {len(known)} words, and it is none of them, in lower case neither.",
                "Take another word, or say unknown=0 for a vector of zeros.",
            )
        )
    found = matrix[places] if places else matrix[:0].copy()
    if missing:
        found[np.array(places) < 0] = _unknown_vector(unknown, matrix.shape[1])
    return found


def _unknown_vector(unknown: npt.ArrayLike | None, width: int) -> npt.NDArray[np.generic]:
    vector = np.asarray(unknown)
    if vector.shape not in ((), (width,)):
        raise ShapeError(
            f"vectors_for: unknown has shape {vector.shape}; ({width},) was expected, as vectors have."
        )
    return vector


def _table(
    lines: Iterator[tuple[int, str]], path: str, limit: int | None, dtype: npt.DTypeLike
) -> WordVectors:
    _check_options(limit, dtype)
    lines = ((number, line.replace("\t", " ").rstrip(" ")) for number, line in lines)
    lines = ((number, line) for number, line in lines if line)
    head = list(islice(lines, _LOOKED_AT))
    if not head:
        raise DataFileError("nothing in it; lines with a word and its numbers were expected.", path)
    width = _width(head)
    if _is_header(head[0][1], width, path, alone=len(head) == 1):
        head = head[1:]
    first_line: dict[str, int] = {}
    rows: list[npt.NDArray[np.floating]] = []
    repeated: list[tuple[int, str]] = []
    for number, line in chain(head, lines):
        if limit is not None and len(rows) >= limit:
            break
        word, numbers = _word_and_numbers(line, width, path, number)
        if word in first_line:
            repeated.append((number, word))
            continue
        first_line[word] = number
        rows.append(_row(numbers, dtype, path, number))
    if repeated:
        _warn_of(repeated, first_line, path)
    return WordVectors(tuple(first_line), np.stack(rows))


def _check_options(limit: int | None, dtype: npt.DTypeLike) -> None:
    if limit is not None and (
        isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1
    ):
        raise ArgumentError(f"limit={limit!r}: a number of words from 1 on was expected, or None for all.")
    try:
        floating = np.dtype(dtype).kind == "f"
    except TypeError:
        floating = False
    if not floating:
        raise ArgumentError(f"dtype={dtype!r}: float64 or float32 was expected.")


def _width(head: list[tuple[int, str]]) -> int:
    """How many numbers follow a word: what most of the first lines say; of equal answers the first."""
    counts = Counter(_numbers_at_the_end(line) for _, line in head)
    del counts[0]
    return counts.most_common(1)[0][0] if counts else 0


def _numbers_at_the_end(line: str) -> int:
    fields = line.split(" ")
    count = 0
    while count < len(fields) - 1 and _number(fields[-1 - count]) is not None:
        count += 1
    return count


def _is_header(line: str, width: int, path: str, alone: bool) -> bool:
    """True for word2vec's first line, ``400000 50``: how many words, how many numbers."""
    fields = line.split(" ")
    if len(fields) != 2 or not all(field.isascii() and field.isdecimal() for field in fields):
        return False
    if alone:
        raise DataFileError("only the two sizes that word2vec writes first, and no word after them.", path, 1)
    if width == 1 and fields[1] != "1":  # a word that is a number, and its one number
        return False
    if fields[1] != str(width):
        raise DataFileError(
            f"the sizes, as word2vec writes them first, promise {fields[1][:20]} numbers for each word;"
            f" most lines have {width}.",
            path,
            1,
        )
    return True


def _word_and_numbers(line: str, width: int, path: str, number: int) -> tuple[str, list[float]]:
    fields = line.rsplit(" ", width) if width else [line]
    if len(fields) <= max(width, 1):
        raise DataFileError(_count(_numbers_at_the_end(line), width), path, number)
    values: list[float] = []
    for place, field in enumerate(fields[1:], 1):
        value = _number(field)
        if value is None:
            raise DataFileError(_no_number(fields, place, line), path, number)
        values.append(value)
    word = fields[0]
    if not word.strip(" "):
        raise DataFileError(f"no word before the {width} numbers.", path, number)
    surplus = _numbers_at_the_end(word)
    if surplus:  # "at name@example.org" is a word, "cat 7" is none
        raise DataFileError(_count(width + surplus, width), path, number)
    return word, values


def _no_number(fields: list[str], place: int, line: str) -> str:
    """What to say of a field that is no number: it belongs to the word when nothing before it is one."""
    width, at_the_end = len(fields) - 1, _numbers_at_the_end(line)
    if place + at_the_end == width and all(_number(field) is None for field in fields[1:place]):
        return _count(at_the_end, width)
    return f"number {place} after the word is {fields[place][:40]!r}, which is no number."


def _row(values: list[float], dtype: npt.DTypeLike, path: str, number: int) -> npt.NDArray[np.floating]:
    with np.errstate(over="ignore"):
        row: npt.NDArray[np.floating] = np.array(values, dtype=dtype)
    if not np.isfinite(row).all():
        place = int(np.argmin(np.isfinite(row)))
        raise DataFileError(
            f"number {place + 1} after the word is {values[place]:g}, not finite as {row.dtype}.",
            path,
            number,
        )
    return row


def _number(field: str) -> float | None:
    """The number, also ``nan`` and ``inf``; None for what is none, as ``1_000`` outside Python."""
    try:
        return None if "_" in field or not field.isascii() else float(field)
    except ValueError:
        return None


def _count(found: int, expected: int) -> str:
    if not expected:
        return "no number in the line; a word and its numbers with spaces between were expected."
    verb = "was" if expected == 1 else "were"
    return f"{found} number{'s' * (found != 1)} after the word; {expected} {verb} expected, as in most lines."


def _warn_of(repeated: list[tuple[int, str]], first_line: dict[str, int], path: str) -> None:
    number, word = repeated[0]
    more = f", and {len(repeated) - 1} more" if len(repeated) > 1 else ""
    where = f"{path}, line {number}" if path else f"line {number}"
    warnings.warn(
        f"{where}: {word!r} stands in line {first_line[word]} already{more}; the first vector is kept.",
        stacklevel=4,
    )
