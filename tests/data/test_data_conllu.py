"""Tagged sentences: what is read, what is passed over, and what each refusal says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyattn.data import UPOS, Sentence, parse_conllu, read_conllu
from tinyattn.errors import ArgumentError, ArgumentTypeError, DataFileError, MissingFileError


def row(number: object, word: str, tag: str) -> str:
    """A line with ten columns."""
    return f"{number}\t{word}\t_\t{tag}" + 6 * "\t_"


SAW = "\n".join(
    ["# sent_id = 1", "# text = I saw a saw", row(1, "I", "PRON"), row(2, "saw", "VERB"), row(3, "a", "DET")]
    + [row(4, "saw", "NOUN"), "", ""]
)


def test_words_tags_and_comments_are_read() -> None:
    (sentence,) = parse_conllu(SAW)
    assert list(sentence) == [("I", "PRON"), ("saw", "VERB"), ("a", "DET"), ("saw", "NOUN")]
    assert (sentence.sent_id, sentence.text, len(sentence)) == ("1", "I saw a saw", 4)


def test_text_comment_keeps_its_own_equals_signs() -> None:
    (sentence,) = parse_conllu("# text = a = b\n" + row(1, "a", "X"))
    assert sentence.text == "a = b"


@pytest.mark.parametrize(
    "text",
    [
        SAW.rstrip("\n"),
        SAW.rstrip("\n") + "\n",
        SAW + "\n\n \n",
        "\n\n" + SAW,
        SAW.replace("\n", "\r\n"),
        "\ufeff" + SAW,
    ],
    ids=["no end of line", "no blank line", "blank lines", "blank lines first", "CRLF", "byte order mark"],
)
def test_blank_lines_line_ends_and_bom_do_no_harm(text: str, tmp_path: Path) -> None:
    wanted = parse_conllu(SAW)
    assert parse_conllu(text) == wanted
    path = tmp_path / "a.conllu"
    path.write_bytes(text.encode())
    assert read_conllu(path) == read_conllu(str(path)) == wanted


def test_ranges_and_empty_nodes_are_passed_over() -> None:
    lines = [row("0.1", "now", "ADV"), row(1, "I", "PRON"), row("2-3", "don't", "_"), row(2, "do", "AUX")]
    lines += [row(3, "n't", "PART"), row("3.1", "see", "VERB"), row("10.12", "x", "_"), row(4, "see", "VERB")]
    (sentence,) = parse_conllu("\n".join(lines))
    assert sentence.words == ("I", "do", "n't", "see")


def test_only_tabs_separate_columns_and_only_newlines_lines() -> None:
    odd = "a\u2028b\x0b\x85"
    lines = [row(1, "2 000", "NUM"), row(2, "_", "PUNCT"), row(3, "#", "SYM"), row(4, odd, "X")]
    (sentence,) = parse_conllu("\n".join(lines))
    assert sentence.words == ("2 000", "_", "#", odd)


def test_sentences_are_equal_by_words_and_tags_and_print_themselves() -> None:
    one = Sentence(["I", "saw"], ["PRON", "VERB"], sent_id="1")
    assert one == Sentence(("I", "saw"), ("PRON", "VERB"), sent_id="2")
    assert one != Sentence(["I", "saw"], ["PRON", "NOUN"])
    assert one != ["I", "saw"] and len({one, Sentence(["I", "saw"], ["PRON", "VERB"])}) == 1
    assert repr(one) == "Sentence('I/PRON saw/VERB')"
    with pytest.raises(ArgumentError, match="1 words, but 2 tags"):
        Sentence(["I"], ["PRON", "VERB"])


GOOD = row(1, "I", "PRON")

REFUSALS = {
    "nine columns": (GOOD + "\n2\tsaw\t_\tVERB\t_\t_\t0\t_\t_\n", 2, "9 columns; 10 columns between tabs"),
    "eleven columns": (GOOD + "\t_\n", 1, "11 columns"),
    "one column": ("saw\n", 1, "1 column; 10 columns between tabs"),
    "spaces": ("# c\n" + GOOD.replace("\t", "  "), 2, "no tab in the line, 10 pieces between spaces"),
    "number is a word": (
        GOOD + "\n" + row("two", "saw", "VERB"),
        2,
        "column 1 is 'two'; the word's number 2",
    ),
    "number is empty": (row("", "I", "PRON"), 1, "column 1 is ''"),
    "other digits": (row("\u0661", "I", "PRON"), 1, "column 1 is"),
    "gap": (GOOD + "\n" + row(3, "saw", "VERB"), 2, "word number '3' where 2 was expected"),
    "from zero": (row(0, "I", "PRON"), 1, "word number '0' where 1 was expected"),
    "leading zero": (row("01", "I", "PRON"), 1, "word number '01' where 1"),
    "huge number": (row("9" * 9999, "I", "PRON"), 1, "word number '9999"),
    "missing blank line": (GOOD + "\n" + GOOD, 2, "a blank line must stand between two sentences"),
    "unfinished range": (row("2-", "I", "PRON"), 1, "column 1 is '2-'"),
    "unknown tag": (
        GOOD + "\n\n\n" + row(1, "saw", "VBD"),
        4,
        "column 4 of 'saw' is 'VBD', which is no universal tag",
    ),
    "tag in lower case": (row(1, "saw", "verb"), 1, "did you mean VERB?"),
    "no tag": (row(1, "saw", "_"), 1, "'saw' has no tag ('_' in column 4)"),
    "empty tag": (row(1, "saw", ""), 1, "'saw' has no tag"),
    "empty word": (row(1, "", "VERB"), 1, "column 2, the word, is empty"),
    "blank word": (row(1, " ", "VERB"), 1, "column 2, the word, is empty"),
    "only comments": (GOOD + "\n\n# text = nothing\n# more\n", 3, "a sentence without words"),
    "only a range": (row("1-2", "I", "PRON"), 1, "a sentence without words"),
    "empty": ("", None, "no sentence in it"),
    "only blank lines": ("\n\n", None, "no sentence in it"),
}


@pytest.mark.parametrize("case", REFUSALS, ids=list(REFUSALS))
def test_refusal_names_file_line_and_expectation(case: str, tmp_path: Path) -> None:
    text, line, says = REFUSALS[case]
    path = str(tmp_path / "mine.conllu")
    Path(path).write_bytes(text.encode())
    for read in (lambda: read_conllu(path), lambda: parse_conllu(text, path)):
        with pytest.raises(DataFileError) as caught:
            read()
        assert (caught.value.path, caught.value.line) == (path, line)
        place = path + (f", line {line}: " if line else ": ")
        assert str(caught.value).startswith(place) and says in str(caught.value)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < len(path) + 250


def test_unknown_tag_lists_the_seventeen() -> None:
    assert len(UPOS) == len(set(UPOS)) == 17
    with pytest.raises(DataFileError) as caught:
        parse_conllu(row(1, "saw", "VBD"))
    assert str(caught.value).startswith("line 1: column 4 of 'saw' is 'VBD'")
    assert " ".join(UPOS) in str(caught.value)


FOREIGN = {
    "Latin-1": (b"# \xe9\n", 1, "byte 2 of the file (0xe9) does not belong to UTF-8"),
    "Latin-1 later": (SAW.encode() + b"# \xff", 8, f"byte {len(SAW) + 2} of the file (0xff)"),
    "after a byte order mark": (b"\xef\xbb\xbf# \xff", 1, "byte 5 of the file"),
    "cut in a character": ("# 锁".encode()[:-1], 1, "byte 2 of the file (0xe9)"),
    "binary": (
        SAW.encode() + b"\n\0\1\2",
        9,
        f"byte {len(SAW) + 1} of the file is NUL, so this is a binary file",
    ),
    "gzip": (b"\x1f\x8b\x08\x00 0123", None, "compressed with gzip; unpack it first"),
    "UTF-16": (SAW.encode("utf-16"), None, "UTF-16 text; save it as UTF-8"),
    "ZIP": (b"PK\x03\x04rest", None, "a ZIP archive"),
}


@pytest.mark.parametrize("case", FOREIGN, ids=list(FOREIGN))
def test_what_is_no_utf8_text_is_refused_with_the_byte(case: str, tmp_path: Path) -> None:
    data, line, says = FOREIGN[case]
    path = tmp_path / "foreign.conllu"
    path.write_bytes(data)
    with pytest.raises(DataFileError) as caught:
        read_conllu(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)
    assert says in str(caught.value) and "CoNLL-U text" in str(caught.value)


def test_a_missing_file_and_a_folder_are_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "here.conllu").write_text("", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"(?s)no file .*nowhere\.conllu.*is here\.conllu") as caught:
        read_conllu(tmp_path / "nowhere.conllu")
    assert isinstance(caught.value, MissingFileError)
    with pytest.raises(DataFileError, match="this is a folder"):
        read_conllu(tmp_path)


def test_text_in_the_place_of_a_path_is_explained() -> None:
    with pytest.raises(ArgumentError, match=r"write parse_conllu\(text\)"):
        read_conllu(SAW)
    with pytest.raises(ArgumentError, match="no NUL"):
        read_conllu("a\0b")
    with pytest.raises(ArgumentTypeError, match="not int"):
        read_conllu(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="not bytes"):
        read_conllu(_BytesPath())  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"data\.decode\(\)"):
        parse_conllu(b"1\tI")  # type: ignore[arg-type]


class _BytesPath:
    def __fspath__(self) -> bytes:
        return b"a"


@pytest.mark.parametrize(
    ("name", "sentences", "words"),
    [
        ("ud_english_ewt/train", 2000, 32100),
        ("ud_english_ewt/dev", 500, 6688),
        ("ud_chinese_gsdsimp/train", 350, 7841),
        ("ud_chinese_gsdsimp/dev", 150, 3363),
    ],
)
def test_treebanks_are_read_whole(shared: Path, name: str, sentences: int, words: int) -> None:
    found = read_conllu(shared / "data" / f"{name}.conllu")
    assert (len(found), sum(map(len, found))) == (sentences, words)
    assert all(sentence.sent_id and sentence.text for sentence in found)
