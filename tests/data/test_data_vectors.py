"""Word vectors in GloVe's text form."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from tinyattn.data import WordVectors, parse_glove, read_glove, vectors_for
from tinyattn.errors import ArgumentError, ArgumentTypeError, DataFileError, ShapeError


def test_words_and_numbers_are_read_exactly(tmp_path: Path) -> None:
    text = "the 0.5 -1.25 3\ncat 6.1e-05 +2 -0\n"
    path = tmp_path / "v.txt"
    path.write_text(text, encoding="utf-8")
    words, matrix = read_glove(path)
    assert words == ("the", "cat") and matrix.dtype == np.float64
    assert matrix.tolist() == [[0.5, -1.25, 3.0], [6.1e-05, 2.0, 0.0]]
    assert read_glove(str(path), dtype=np.float32).matrix.dtype == np.float32
    assert isinstance(read_glove(path), WordVectors)


def test_words_may_have_spaces_or_be_numbers() -> None:
    words, matrix = parse_glove(
        "1984 4 5 6\n. . . 1 2 3\nat name@example.org 7 8 9\nnan 1 1 1\na\u00a0b 0 0 0\n\x85 1 2 3"
    )
    assert words == ("1984", ". . .", "at name@example.org", "nan", "a\u00a0b", "\x85")
    assert matrix[:3].tolist() == [[4, 5, 6], [1, 2, 3], [7, 8, 9]]


@pytest.mark.parametrize(
    "text", ["a 1 2 \r\nb 3 4 \r\n", "\ufeffa 1 2\nb 3 4", "a\t1\t2\nb\t3\t4\n", "a 1 2\n\nb 3 4\n\n"]
)
def test_line_ends_tabs_blanks_and_bom_do_no_harm(text: str) -> None:
    words, matrix = parse_glove(text)
    assert words == ("a", "b") and matrix.tolist() == [[1, 2], [3, 4]]


def test_limit_reads_the_first_words_and_nothing_after_them() -> None:
    words, matrix = parse_glove("a 1 2\nb 3 4\nc broken\n" + 200 * "d x\n", limit=2)
    assert words == ("a", "b") and matrix.shape == (2, 2)


def test_word2vec_head_is_passed_over() -> None:
    assert parse_glove("2 3\na 1 2 3\nb 4 5 6\n").words == ("a", "b")
    assert parse_glove("1984 7\nb 4\n").words == ("1984", "b"), "one number a word: that is a word"


def test_first_vector_of_a_repeated_word_is_kept_with_a_warning() -> None:
    with pytest.warns(
        UserWarning, match="^my.txt, line 3: 'a' stands in line 1 already; the first vector is kept"
    ):
        words, matrix = parse_glove("a 1\nb 2\na 3\n", "my.txt")
    assert words == ("a", "b") and matrix.tolist() == [[1], [2]]
    with pytest.warns(UserWarning, match="^line 2: 'a' stands in line 1 already, and 2 more;"):
        parse_glove("a 1\na 2\na 3\nb 1\nb 2\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse_glove("a 1\nA 2\n")


REFUSALS = {
    "too few": ("a 1 2\nb 3 4\nc 5\n", 3, "1 number after the word; 2 were expected"),
    "too few under a word with spaces": ("a 1 2\n. . . 5\n", 2, "1 number after the word; 2 were expected"),
    "too many": ("a 1 2\nb 3 4\nc 5 6 7\n", 3, "3 numbers after the word; 2 were expected"),
    "no word": ("a 1 2\n 3 4\n", 2, "no word before the 2 numbers"),
    "only numbers": ("a 1 2\n3 4\n", 2, "1 number after the word; 2 were expected"),
    "only a word": ("a 1 2\nb 3 4\nc\n", 3, "0 numbers after the word"),
    "text": ("hello there\ngeneral\n", 1, "no number in the line"),
    "not a number": ("a 1 2 3\nb 4 x 6\n", 2, "number 2 after the word is 'x', which is no number"),
    "comma": ("a 1 2 3\nb 4 5 1,5\n", 2, "number 3 after the word is '1,5'"),
    "underscore": ("a 1 2 3\nb 4 5 1_000\n", 2, "'1_000', which is no number"),
    "other digits": ("a 1 2 3\nb 4 5 \u0661\n", 2, "which is no number"),
    "two blanks": ("a 1 2 3\nb 4  6\n", 2, "number 2 after the word is '', which is no number"),
    "nan": ("a 1 2\nb nan 2\n", 2, "number 1 after the word is nan, not finite"),
    "inf": ("a 1 2\nb 1 -inf\n", 2, "number 2 after the word is -inf, not finite"),
    "too large": ("a 1 2\nb 1 1e999\n", 2, "number 2 after the word is inf"),
    "wrong head": ("2 4\na 1 2 3\nb 4 5 6\n", 1, "promise 4 numbers for each word; most lines have 3"),
    "only a head": ("2 4\n", 1, "only the two sizes"),
    "empty": ("", None, "nothing in it; lines with a word and its numbers"),
    "blank": ("\n \n", None, "nothing in it"),
}


@pytest.mark.parametrize("case", REFUSALS, ids=list(REFUSALS))
def test_refusal_names_file_line_and_expectation(case: str, tmp_path: Path) -> None:
    text, line, says = REFUSALS[case]
    path = tmp_path / "mine.txt"
    path.write_bytes(text.encode())
    with pytest.raises(DataFileError) as caught:
        read_glove(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)
    assert says in str(caught.value)


def test_numbers_beyond_float32_are_refused_not_made_infinite() -> None:
    assert parse_glove("a 1e39\nb 1\n").matrix[0, 0] == 1e39
    with pytest.raises(DataFileError, match="is 1e\\+39, not finite as float32"):
        parse_glove("a 1e39\nb 1\n", dtype="float32")


def test_a_binary_file_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(b"2 3\na \0\0\x80?")
    with pytest.raises(
        DataFileError, match="line 2: a text with word vectors was expected; byte 6 of the file is NUL"
    ):
        read_glove(path)


def test_options_are_checked() -> None:
    for limit in (0, -1, 1.5, True):
        with pytest.raises(ArgumentError, match="from 1 on"):
            parse_glove("a 1\n", limit=limit)  # type: ignore[arg-type]
    for dtype in (int, "complex128", "nonsense"):
        with pytest.raises(ArgumentError, match="float64 or float32"):
            parse_glove("a 1\n", dtype=dtype)
    with pytest.raises(ArgumentError, match=r"parse_glove\(text\)"):
        read_glove("a 1\nb 2\n")


TABLE = parse_glove("i 1 2\nsaw 3 4\nI 5 6\n")


def test_words_get_their_rows_as_they_are_or_in_lower_case() -> None:
    assert vectors_for(["I", "Saw", "i"], TABLE).tolist() == [[5, 6], [3, 4], [1, 2]]
    assert vectors_for([], TABLE).shape == (0, 2)
    found = vectors_for(["saw"], TABLE)
    found[:] = 0
    assert TABLE.matrix[1].tolist() == [3, 4], "the table is not touched"


def test_unknown_words_are_named_or_given_a_vector() -> None:
    with pytest.raises(ArgumentError, match="no vector for 'sow', 'seen'"):
        vectors_for(["sow", "saw", "seen", "sow"], TABLE)
    assert vectors_for(["sow", "saw"], TABLE, unknown=0).tolist() == [[0, 0], [3, 4]]
    assert vectors_for(["sow", "saw"], TABLE, unknown=[7, 8]).tolist() == [[7, 8], [3, 4]]
    with pytest.raises(ShapeError, match=r"shape \(3,\); \(2,\) was expected"):
        vectors_for(["sow"], TABLE, unknown=[1, 2, 3])


def test_table_and_words_are_checked() -> None:
    with pytest.raises(ShapeError, match=r"2 words, but a matrix of shape \(3, 2\)"):
        vectors_for(["a"], (["a", "b"], np.zeros((3, 2))))
    with pytest.raises(ArgumentTypeError, match="list of words"):
        vectors_for("saw", TABLE)


def test_real_vectors_are_read(shared: Path) -> None:
    words, matrix = read_glove(shared / "data/glove_50d/glove.6B.50d.2000words.txt")
    assert len(words) == 2000 and matrix.shape == (2000, 50)
    assert words[0] == "the" and matrix[0, :3].tolist() == [0.418, 0.24968, -0.41242]
