"""The tagger and the model of characters: what they learn, what they keep, and what is said when they cannot."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import cli, data, train
from tinyattn.models import KINDS, Characters, Tagger, compare_taggers, read_text, split_corpus, train_chars
from tinyattn.models.chars import samples

SMALL = {"steps": 60, "layers": 1, "d": 16, "heads": 2, "length": 16, "batch": 8, "progress": False}
TEXT = "to be or not to be, that is the question.\n" * 40


@pytest.fixture(scope="module")
def results() -> list:
    split = split_corpus(data.sample_corpus("english"), data.sample_corpus("english", "held-out"))
    return compare_taggers(split, progress=False)


def test_the_sample_corpus_is_where_context_decides(results: list) -> None:
    ambiguous = {result.kind: result.right["ambiguous"] for result in results}
    assert tuple(ambiguous) == KINDS
    plain, blind, seeing = (ambiguous[kind] for kind in KINDS[1:])
    assert seeing > plain + 5 and seeing > blind + 5 and abs(plain - ambiguous[KINDS[0]]) <= 2


def test_without_attention_equal_words_get_equal_tags_whatever_stands_beside_them(results: list) -> None:
    ids = np.array([[5, 3, 7, 3]])
    scores = results[1].model(ids, np.ones((1, 4), bool)).data[0]
    assert np.array_equal(scores[1], scores[3])
    scores = results[3].model(ids, np.ones((1, 4), bool)).data[0]
    assert not np.array_equal(scores[1], scores[3])


def test_padding_changes_no_tag(results: list, rng) -> None:
    model, words = results[3].model, rng.integers(1, 9, size=(1, 4))
    padded = model(np.hstack([words, np.zeros((1, 3), int)]), np.array([[True] * 4 + [False] * 3])).data
    np.testing.assert_allclose(padded[:, :4], model(words, np.ones((1, 4), bool)).data, rtol=1e-12, atol=1e-13)


def test_the_parts_of_a_treebank_have_nothing_in_common_and_everything_together() -> None:
    sentences = [data.Sentence([f"w{i}"], ["X"]) for i in range(1000)]
    split = split_corpus(sentences)
    assert [len(part) for part in split] == [810, 90, 100]
    assert sorted(s.words[0] for part in split for s in part) == sorted(s.words[0] for s in sentences)
    assert split_corpus(sentences, sentences[:3]).judged == sentences[:3]
    with pytest.raises(ta.ArgumentError, match="9 sentences; at least 10"):
        split_corpus(sentences[:9])


def test_the_tagger_on_the_command_line_prints_all_four(capsys) -> None:
    assert cli.main(["train", "tagger", "--language", "chinese", "--ascii"]) == 0
    out = capsys.readouterr().out
    assert all(kind in out for kind in KINDS) and out.isascii() and "chance alone" in out


def test_a_list_of_names_and_a_text_are_told_apart() -> None:
    names, text = Characters("\n".join(f"name{i}" for i in range(50))), Characters(TEXT)
    assert names.names and not text.names
    everything = names.text_of(names.learned) + names.text_of(names.held_out)
    assert everything[0] == everything[-1] == "\n"
    assert sorted(everything.split()) == sorted(f"name{i}" for i in range(50))
    assert text.text_of(text.learned) + text.text_of(text.held_out) == TEXT


def test_it_learns_a_text_by_heart_and_writes_it() -> None:
    text = Characters(TEXT)
    model, history = train_chars(text, **{**SMALL, "steps": 300, "lr": 0.02})
    assert history.validations[-1] < 0.3 < 2 < history.losses[0]
    assert all(p.dtype == np.float32 for p in model.parameters())
    written = "\n".join(samples(model, text, 2, temperature=0))
    assert "to be or not to be, that is the question." in written
    assert samples(model, text, 1, seed=3) == samples(model, text, 1, seed=3)


def test_names_are_written_one_by_one_up_to_their_end() -> None:
    text = Characters("\n".join(sorted({a + b + "na" for a in "bcdfghk" for b in "iou"})))
    model, _ = train_chars(text, **SMALL)
    written = samples(model, text, 5)
    assert len(written) == 5 and not any("\n" in name for name in written)


def test_a_training_of_characters_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    text, options = Characters(TEXT), {**SMALL, "steps": 100, "dropout": 0.1}
    whole = train_chars(text, **options)
    path, save, calls = tmp_path / "a.npz", train.save_checkpoint, []

    def saving_once(*given) -> None:
        calls.append(given)
        if len(calls) == 2:
            raise RuntimeError("the machine is switched off")
        save(*given)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(train, "save_checkpoint", saving_once)
        train_chars(text, checkpoint=path, **options)
    resumed = train_chars(text, checkpoint=path, resume=True, **options)
    assert resumed[1].losses == whole[1].losses and len(whole[1].losses) == 100
    numbers = [model.state_dict() for model, _ in (whole, resumed)]
    assert all(np.array_equal(numbers[0][name], numbers[1][name]) for name in numbers[0])


def run(tmp_path: Path, *words: str) -> int:
    small = ["--steps", "60", "--layers", "1", "--width", "16", "--heads", "2", "--length", "16", "--batch", "8"]
    return cli.main(["train", "chars", str(tmp_path / "text.txt"), "--out", str(tmp_path / "out"), *small, *words])


def test_characters_on_the_command_line_keep_curve_numbers_and_weights(tmp_path: Path, capsys) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    assert run(tmp_path, "--samples", "2") == 0
    said = capsys.readouterr().out
    assert "Held-out loss" in said and "steps a second" in said
    with open(tmp_path / "out" / "loss.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["step"]) for row in rows] == list(range(1, 61))
    assert [row["step"] for row in rows if row["held_out"]] == ["50"]
    assert (tmp_path / "out" / "training.npz").exists()
    drawable = importlib.util.find_spec("graphviz") is not None
    assert (tmp_path / "out" / "loss.svg").exists() == drawable
    assert run(tmp_path, "--resume") == 0 and "learned in 60 steps" in capsys.readouterr().out


def test_chinese_text_is_learned_as_well(tmp_path: Path, capsys) -> None:
    (tmp_path / "text.txt").write_text("注意力让每个词看见别的词，也看见自己。\n" * 20, encoding="utf-8")
    assert run(tmp_path) == 0
    assert "词" in capsys.readouterr().out


@pytest.mark.parametrize(("content", "words", "said"), [
    (b"too short", [], "9 characters, 6 different ones; too few"),
    (b"a" * 500, [], "1 different ones"),
    ("é".encode("latin-1") * 300, [], "line 1: is not text in UTF-8"),
    (TEXT.encode(), ["--heads", "3"], "width 16 cannot be shared equally among 3 heads"),
    (TEXT.encode(), ["--temperature", "-1"], "temperature=-1.0"),
    (TEXT.encode(), ["--dropout", "2"], "dropout=2.0"),
], ids=["short", "one letter", "latin-1", "heads", "temperature", "dropout"])  # fmt: skip
def test_what_cannot_be_done_ends_with_2_and_words(content: bytes, words: list, said: str, tmp_path, capsys) -> None:
    (tmp_path / "text.txt").write_bytes(content)
    assert run(tmp_path, *words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [
    ["train"], ["train", "painter"], ["train", "chars"], ["train", "chars", "x", "--steps", "0"],
    ["train", "chars", "x", "--rate", "nan"],
], ids=" ".join)  # fmt: skip
def test_what_is_not_understood_ends_with_2(words: list, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2


def test_a_missing_file_is_named(tmp_path: Path, capsys) -> None:
    assert run(tmp_path) == 2
    assert "there is no file" in (said := capsys.readouterr().err) and "text.txt." in said
    with pytest.raises(FileNotFoundError):
        read_text(tmp_path / "text.txt")


def test_a_kind_that_is_not_known_is_refused() -> None:
    with pytest.raises(ta.ArgumentError, match="'no attention'"):
        Tagger(3, 2, "attention")


@pytest.mark.slow
@pytest.mark.parametrize(("language", "gain"), [("ud_english_ewt", 2.0), ("ud_chinese_gsdsimp", -5.0)])
def test_on_a_treebank_the_numbers_fall_as_reported(language: str, gain: float, shared: Path) -> None:
    """In English position and attention bring more than chance does; in Chinese there are too few sentences."""
    folder = shared / "data" / language
    split = split_corpus(data.read_conllu(folder / "train.conllu"), data.read_conllu(folder / "dev.conllu"))
    right = [result.right["all"] for result in compare_taggers(split, progress=False)]
    words = sum(map(len, split.judged))
    assert 100 * (right[3] - right[1]) / words > gain and right[1] / words > 0.65


def test_few_steps_go_on_to_many_and_none_is_added(tmp_path: Path, capsys) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    assert run(tmp_path, "--steps", "30", "--resume") == 0
    said = capsys.readouterr().out
    assert "begins anew" in said and "learned in 30 steps" in said and "Held-out loss" in said
    assert run(tmp_path, "--steps", "60", "--resume") == 0 and "learned in 60 steps" in capsys.readouterr().out
    assert run(tmp_path, "--resume", "--layers", "2") == 2
    assert "--resume needs the text, --layers" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["chars", "x"], ["tagger"]], ids=" ".join)
def test_a_seed_below_0_is_refused(words: list, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", *words, "--seed", "-1"])
    assert ended.value.code == 2 and "no whole number from 0 on" in capsys.readouterr().err


def test_heads_that_do_not_fit_are_refused_before_anything_is_learned(capsys) -> None:
    assert cli.main(["train", "tagger", "--width", "10", "--heads", "3"]) == 2
    said = capsys.readouterr()
    assert "width 10 cannot be shared equally" in said.err and "no attention" not in said.err
