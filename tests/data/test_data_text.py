"""Splitting sentences and numbering words."""

from __future__ import annotations

import numpy as np
import pytest

from tinyattn.data import Sentence, Vocabulary, split_sentence
from tinyattn.errors import ArgumentError, ArgumentTypeError, IndexRangeError

SPLITS = {
    "I saw a saw": "I saw a saw",
    "  I\tsaw\u3000it\n": "I saw it",
    "I saw it.": "I saw it .",
    "Wait... what?!": "Wait ... what ? !",
    '"So," she said (twice).': '" So , " she said ( twice ) .',
    "don't well-known 3.14 a_b": "don't well-known 3.14 a_b",
    "...": "...",
    "?!": "? !",
    "5% $5 C++": "5 % $5 C++",
    "我用锁锁门": "我 用 锁 锁 门",
    "我用锁锁门。": "我 用 锁 锁 门 。",
    "我，你": "我 ， 你",
    "“好”": "“ 好 ”",
    "孩子 画 花": "孩子 画 花",
    "孩子 画 花。": "孩子 画 花 。",
    "我saw一把saw": "我 saw 一 把 saw",
    "我 saw一把saw": "我 saw 一 把 saw",
    "I saw 一把锁": "I saw 一 把 锁",
    "我用锁锁门。 他画一幅画。": "我 用 锁 锁 门 。 他 画 一 幅 画 。",
    "你好,world!": "你 好 , world !",
    "カタカナ": "カ タ カ ナ",
    "𠮷𠮷": "𠮷 𠮷",
    "한국어 단어": "한국어 단어",
    "": "",
    " \t\n": "",
}


@pytest.mark.parametrize("text", SPLITS, ids=repr)
def test_sentence_is_split(text: str) -> None:
    assert split_sentence(text) == SPLITS[text].split()


@pytest.mark.parametrize("text", SPLITS, ids=repr)
def test_nothing_is_lost_but_blanks(text: str) -> None:
    assert "".join(split_sentence(text)) == "".join(text.split())


def test_a_mark_stays_with_its_character() -> None:
    assert split_sentence("葛\U000e0100が\u3099x\u0301.") == ["葛\U000e0100", "が\u3099", "x\u0301", "."]


def test_longest_known_word_is_taken() -> None:
    words = {"孩子", "代", "代表", "代表团", "表"}
    assert split_sentence("孩子代表我", words) == ["孩子", "代表", "我"]
    assert split_sentence("代表团", words) == ["代表团"]
    assert split_sentence("孩 子代表", words) == ["孩", "子代表"], "blanks decide where there are some"


def test_wrong_types_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="not list"):
        split_sentence(["a"])  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="a set or list of words"):
        split_sentence("a", words="abc")


def test_vocabulary_order_is_by_count_then_as_they_come() -> None:
    vocabulary = Vocabulary.of([["b", "a", "c"], ["c", "a"], ["d"]])
    assert vocabulary.words == ("<unknown>", "a", "c", "b", "d") == tuple(vocabulary)
    assert len(vocabulary) == 5
    ids = vocabulary.ids(["d", "x", "a", "<unknown>"])
    assert ids.dtype == np.int64 and ids.tolist() == [4, 0, 1, 0]
    assert vocabulary.ids([]).shape == (0,) and vocabulary.ids([]).dtype == np.int64


def test_vocabulary_takes_sentences_thresholds_and_lower_case() -> None:
    sentences = [Sentence(["The", "saw"], ["DET", "NOUN"]), Sentence(["the", "can"], ["DET", "NOUN"])]
    assert Vocabulary.of(sentences).words == ("<unknown>", "The", "saw", "the", "can")
    vocabulary = Vocabulary.of(sentences, at_least=2, lower=True)
    assert vocabulary.words == ("<unknown>", "the")
    assert vocabulary.ids(["THE", "saw"]).tolist() == [1, 0]
    assert "The" in vocabulary and "saw" not in vocabulary and "<unknown>" not in vocabulary
    assert vocabulary.missing(["saw", "the", "Saw", "saw"]) == ["saw", "Saw"]
    assert [vocabulary.word(number) for number in (0, 1)] == ["<unknown>", "the"]


def test_the_word_unknown_in_a_text_is_the_unknown_word() -> None:
    assert Vocabulary.of([["<unknown>", "a"]]).words == ("<unknown>", "a")


def test_vocabulary_refusals() -> None:
    with pytest.raises(ArgumentError, match="'a' stands there twice"):
        Vocabulary(["a", "b", "a"])
    with pytest.raises(ArgumentError, match="'A' is not in lower case"):
        Vocabulary(["A"], lower=True)
    with pytest.raises(IndexRangeError, match="0 to 1"):
        Vocabulary(["a"]).word(2)
    with pytest.raises(IndexRangeError):
        Vocabulary(["a"]).word(-1)
    for call in (
        lambda: Vocabulary("ab"),
        lambda: Vocabulary.of(["I saw"]),
        lambda: Vocabulary(["a"]).ids("a"),
    ):
        with pytest.raises(ArgumentTypeError, match="list of words was expected"):
            call()
