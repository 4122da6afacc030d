"""Padding, and measuring tags."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tinyattn.data import (
    MostFrequentTag,
    Sentence,
    Vocabulary,
    pad_batch,
    read_conllu,
    tagged_batch,
    tagging_accuracy,
)
from tinyattn.errors import ArgumentError, ArgumentTypeError, ShapeError

SAW = Sentence(["I", "saw", "a", "saw"], ["PRON", "VERB", "DET", "NOUN"])
RUN = Sentence(["We", "run"], ["PRON", "VERB"])


def test_mask_comes_from_lengths_not_from_numbers() -> None:
    ids, keep = pad_batch([[0, 0], [0]], fill=0)
    assert keep.tolist() == [[True, True], [True, False]] and keep.dtype == np.bool_
    assert ids.tolist() == [[0, 0], [0, 0]] and ids.dtype == np.int64


def test_fill_stands_only_where_nothing_is() -> None:
    ids, keep = pad_batch([[7], np.array([1, 2, 3], dtype=np.int8), (4, 5)], fill=-1)
    assert ids.tolist() == [[7, -1, -1], [1, 2, 3], [4, 5, -1]]
    assert keep.sum(axis=1).tolist() == [1, 3, 2]


@pytest.mark.parametrize(
    ("lists", "error", "says"),
    [
        ([], ArgumentError, "there is no sentence"),
        ([[1], []], ArgumentError, "sentence 1 is empty"),
        ([[1], [0.5]], ArgumentTypeError, "sentence 1 holds float64; whole numbers"),
        ([[True]], ArgumentTypeError, "holds bool"),
        ([["saw"]], ArgumentTypeError, "whole numbers were expected"),
        (["saw"], ArgumentTypeError, r"vocabulary\.ids"),
        ([[[1, 2]]], ShapeError, r"sentence 0 has shape \(1, 2\)"),
        ([[[1, 2], [3]]], ShapeError, "rows of different length"),
        ([3], ShapeError, r"shape \(\)"),
    ],
)
def test_bad_batches_are_refused_in_words(lists: list[object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        pad_batch(lists)  # type: ignore[arg-type]


def test_tagged_batch_gives_words_targets_and_mask() -> None:
    vocabulary = Vocabulary.of([SAW])
    ids, targets, keep = tagged_batch([SAW, RUN], vocabulary, tags=["NOUN", "PRON", "VERB", "DET"])
    assert ids.tolist() == [[2, 1, 3, 1], [0, 0, 0, 0]]
    assert targets.tolist() == [[1, 2, 3, 0], [1, 2, -1, -1]]
    assert keep.tolist() == [[True] * 4, [True, True, False, False]]
    with pytest.raises(ArgumentError, match="'a' in sentence 0 has the tag 'DET', which is none of"):
        tagged_batch([SAW], vocabulary, tags=["NOUN", "PRON", "VERB"])


def test_most_frequent_tag_ignores_the_neighbours() -> None:
    more = Sentence(["The", "saw", "and", "wood"], ["DET", "NOUN", "CCONJ", "NOUN"])
    tagger = MostFrequentTag([SAW, more])
    assert tagger.tags_for(["saw", "saw", "THE"]) == ["NOUN", "NOUN", "NOUN"]
    assert tagger.for_unknown == "NOUN"
    assert MostFrequentTag([SAW, more], lower=True).tags_for(["THE"]) == ["DET"]
    assert MostFrequentTag([SAW]).tags_for(["saw", "saw"]) == ["VERB", "VERB"], (
        "of equal counts the first seen"
    )
    with pytest.raises(ArgumentError, match="no sentence to count in"):
        MostFrequentTag([])
    with pytest.raises(ArgumentTypeError):
        tagger.tags_for("saw")


def test_accuracy_counts_only_what_is_there() -> None:
    assert tagging_accuracy([[1, 2, 3], [1, 9, 9]], [[1, 2, 4], [1, -1, -1]]) == 0.75
    assert tagging_accuracy([0, 1], [0, 0], ignore=0) != tagging_accuracy([0, 1], [0, 0])
    assert tagging_accuracy(["NOUN", "VERB"], ["NOUN", "NOUN"]) == 0.5
    assert tagging_accuracy(["NOUN", "VERB"], ["NOUN", "_"], ignore="_") == 1.0


def test_accuracy_of_nothing_is_nan_not_perfect() -> None:
    assert math.isnan(tagging_accuracy([[1, 2]], [[-1, -1]]))
    assert math.isnan(tagging_accuracy([], []))


def test_accuracy_refuses_what_cannot_be_compared() -> None:
    with pytest.raises(ShapeError, match=r"predicted: \(2,\), gold: \(1, 2\)"):
        tagging_accuracy([1, 2], [[1, 2]])
    with pytest.raises(ArgumentTypeError, match="one side has numbers, the other text"):
        tagging_accuracy([1], ["NOUN"])
    with pytest.raises(ArgumentTypeError, match="predicted holds float64"):
        tagging_accuracy([0.7], [1])
    with pytest.raises(ShapeError, match="gold has rows of different length"):
        tagging_accuracy([[1, 2], [3, 4]], [[1, 2], [3]])  # type: ignore[list-item]


@pytest.mark.parametrize(("name", "right"), [("ud_english_ewt", 0.831), ("ud_chinese_gsdsimp", 0.727)])
def test_baseline_on_treebanks_is_the_known_one(shared: Path, name: str, right: float) -> None:
    train, dev = (read_conllu(shared / "data" / name / f"{part}.conllu") for part in ("train", "dev"))
    tagger = MostFrequentTag(train, lower=True)
    predicted = [tag for sentence in dev for tag in tagger.tags_for(sentence.words)]
    assert round(tagging_accuracy(predicted, [tag for s in dev for tag in s.tags]), 3) == right


def test_numbers_that_would_be_changed_in_silence_are_refused() -> None:
    with pytest.raises(ArgumentError, match="too large"):
        pad_batch([[2**63]])
    with pytest.raises(ArgumentTypeError, match=r"fill=0.5"):
        pad_batch([[1]], fill=0.5)
