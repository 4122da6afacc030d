"""The sample corpus: sound, its ambiguous words balanced, and only neighbours give the held-out tags away."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from tinyattn.data import MostFrequentTag, Sentence, Vocabulary, sample_corpus
from tinyattn.errors import ArgumentError

LANGUAGES = ("english", "chinese")
TWO_ROLES = {
    "english": "back book can cook fly light park plant play saw watch".split(),
    "chinese": "代表 会 包 希望 画 背 花 计划 锁".split(),
}


def roles(sentences: list[Sentence]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for word, tag in sentence:
            counts[word.lower()][tag] += 1
    return counts


def words_in_two_roles(sentence: Sentence) -> set[str]:
    return {word for word, tags in roles([sentence]).items() if len(tags) > 1}


@pytest.mark.parametrize(
    ("language", "part", "count"),
    [
        ("english", "train", 60),
        ("english", "held-out", 12),
        ("chinese", "train", 40),
        ("chinese", "held-out", 8),
    ],
)
def test_corpus_has_its_size_and_short_sentences(language: str, part: str, count: int) -> None:
    sentences = sample_corpus(language, part)
    assert len(sentences) == count
    assert all(3 <= len(sentence) <= 9 for sentence in sentences)
    assert [s.sent_id for s in sentences] == [f"{language}-{part}-{n:02d}" for n in range(1, count + 1)]
    assert len(set(sentences)) == count


@pytest.mark.parametrize("language", LANGUAGES)
def test_text_comment_is_what_the_words_make(language: str) -> None:
    for sentence in sample_corpus(language) + sample_corpus(language, "held-out"):
        if language == "chinese":
            assert sentence.text == "".join(sentence.words)
        else:
            assert sentence.text.replace(".", " .") == " ".join(sentence.words)


def test_sentences_of_the_lecture_are_held_out() -> None:
    english, chinese = (set(s.text for s in sample_corpus(language, "held-out")) for language in LANGUAGES)
    assert {"I saw a saw", "I can open a can", "They watch a watch"} <= english
    assert {"我用锁锁门", "他画一幅画"} <= chinese


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_ambiguous_word_has_two_roles_that_are_balanced(language: str) -> None:
    counts = roles(sample_corpus(language))
    assert sorted(word for word, tags in counts.items() if len(tags) > 1) == sorted(TWO_ROLES[language])
    for word in TWO_ROLES[language]:
        (_, more), (_, less) = counts[word].most_common()
        assert "NOUN" in counts[word] and less >= 3 and more - less <= 1, (word, counts[word])


@pytest.mark.parametrize("language", LANGUAGES)
def test_held_out_sentences_are_new_and_their_words_are_not(language: str) -> None:
    train, held = sample_corpus(language), sample_corpus(language, "held-out")
    counts = roles(train)
    assert not {s.words for s in train} & {s.words for s in held}
    for sentence in held:
        assert len(words_in_two_roles(sentence)) == 1
        for word, tag in sentence:
            assert counts[word.lower()][tag], (word, tag)
    assert Vocabulary.of(train, lower=True).missing(word for s in held for word in s.words) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_tagger_without_context_does_better_than_chance_on_them(language: str) -> None:
    tagger = MostFrequentTag(sample_corpus(language), lower=True)
    right = total = 0
    for sentence in sample_corpus(language, "held-out"):
        two = words_in_two_roles(sentence)
        for (word, tag), guess in zip(sentence, tagger.tags_for(sentence.words), strict=True):
            if word.lower() in two:
                total, right = total + 1, right + (tag == guess)
    assert total >= 16 and right == total / 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_place_in_the_sentence_does_not_give_the_role_away(language: str) -> None:
    """In places 2 and 3, where most ambiguous words stand, both roles are about equally frequent."""
    places: dict[int, Counter[bool]] = defaultdict(Counter)
    for sentence in sample_corpus(language):
        for place, (word, tag) in enumerate(sentence, 1):
            if word.lower() in TWO_ROLES[language]:
                places[place][tag == "NOUN"] += 1
    for place in (2, 3):
        noun, other = places[place][True], places[place][False]
        assert min(noun, other) >= 0.7 * max(noun, other), (place, noun, other)


def test_unknown_part_is_refused_with_the_choices() -> None:
    for language, part in (("german", "train"), ("english", "dev")):
        with pytest.raises(ArgumentError, match='"english" and "chinese", the parts "train" and "held-out"'):
            sample_corpus(language, part)
