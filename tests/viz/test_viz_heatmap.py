"""The table of attention weights."""

import json

import numpy as np
import pytest
from svg import texts

import tinyattn as ta
import viz
from tinyattn.errors import ArgumentError, ShapeError

WEIGHTS = np.array([[0.75, 0.25, 0.0], [0.125, 0.5, 0.375], [0.5, 0.5, 0.0]])
WORDS = ["I", "saw", "a"]


def test_the_picture_has_the_numbers_the_axes_and_the_sentences():
    shown = texts(viz.attention(WEIGHTS, WORDS).svg)
    wanted = ["query asks ↓", "key answers →", "0.75", "0.50", "0", "I (1)", "saw (2)", "Attention weights"]
    assert set(wanted) <= set(shown)
    assert "'I' (1) looks most at 'I' (1): 0.75" in shown
    assert "'a' (3) looks most at 'I' (1) and 'saw' (2), equally: 0.50" in shown


def test_the_text_is_the_same_table():
    assert viz.attention(WEIGHTS, WORDS, title="Head 1").text == (
        "Head 1\n"
        "query asks (rows) / key answers (columns)\n"
        "         I (1)  saw (2)  a (3)\n"
        "I (1)     0.75     0.25      0\n"
        "saw (2)   0.12     0.50   0.38\n"
        "a (3)     0.50     0.50      0\n"
        "'I' (1) looks most at 'I' (1): 0.75\n"
        "'saw' (2) looks most at 'saw' (2): 0.50\n"
        "'a' (3) looks most at 'I' (1) and 'saw' (2), equally: 0.50\n"
    )


def test_chinese_words_get_room_for_their_width_and_the_sentences_are_chinese():
    drawing = viz.attention([[0.25, 0.75]], ["看见"], ["我", "一把锯子"], lang="zh")
    assert "'看见' (1) 最关注 '一把锯子' (2)：0.75" in texts(drawing.svg)
    assert "查询（提问） ↓" in texts(drawing.svg)
    header = drawing.text.split("\n")[2]
    assert len(header.encode("gbk")) == len(drawing.text.split("\n")[3].encode("gbk"))  # columns line up


def test_keys_may_differ_from_queries():
    drawing = viz.attention(np.full((1, 2), 0.5), ["q"], keys=["k1", "k2"])
    assert json.loads(drawing.json)["keys"] == ["k1", "k2"]
    assert json.loads(drawing.json)["format"] == 1


def test_a_row_of_zeros_a_nan_and_scores_below_zero_are_told_for_what_they_are():
    drawing = viz.attention([[0.0, 0.0], [np.nan, 1.0]], ["a", "b"])
    assert "'a' (1) looks at nothing: all its weights are 0" in drawing.text
    assert "'b' (2) has a weight that is nan" in drawing.text
    assert "nan" in texts(drawing.svg)
    scores = viz.attention([[-2.0, 4.0], [1.0, 0.0]], ["a", "b"])
    assert "-2" in texts(scores.svg)


def test_a_tensor_is_taken_as_it_is():
    weights = ta.softmax(ta.tensor([[0.0, 0.0]], requires_grad=True))
    assert "0.50" in viz.attention(weights, ["q"], ["a", "b"]).text


@pytest.mark.parametrize(
    ("weights", "tokens", "keys", "words"),
    [
        (np.zeros((2, 3)), ["a", "b"], None, r"\(2, 3\), 2 tokens\).*\(2, 2\)(?s:.*)keys="),
        (np.zeros((3, 3)), ["a", "b"], None, r"\(3, 3\), 2 tokens\).*expected.*\(2, 2\)"),
        (np.zeros((1, 2, 4, 4)), list("abcd"), None, r"weights\[0\] has shape \(2, 4, 4\), one table a head"),
        (np.zeros((2, 4, 3)), list("abcd"), None, r"\(2, 4, 3\), 4 tokens\).*\(4, 4\)"),
        (np.zeros(3), list("abc"), None, r"\(3,\).*expected.*\(3, 3\)"),
        (np.zeros((2, 2)), ["a", "b"], ["x"], r"2 tokens and 1 keys.*\(2, 1\)"),
    ],
)
def test_weights_that_do_not_fit_are_refused_with_both_shapes(weights, tokens, keys, words):
    with pytest.raises(ShapeError, match=words):
        viz.attention(weights, tokens, keys)


def test_nothing_and_too_much_are_refused():
    with pytest.raises(ArgumentError, match="no token"):
        viz.attention(np.zeros((0, 0)), [])
    with pytest.raises(ArgumentError, match="64"):
        viz.attention(np.zeros((65, 65)), ["w"] * 65)
    with pytest.raises(ArgumentError, match="numbers"):
        viz.attention([["x"]], ["w"])
    with pytest.raises(ArgumentError, match="'auto', 'light' or 'dark'"):
        viz.attention([[1.0]], ["w"], theme="blue")
    with pytest.raises(ArgumentError, match="'en', 'zh'"):
        viz.attention([[1.0]], ["w"], lang="fr")


@pytest.mark.parametrize("token", ["<b>", "a|b{c}", "</script>", '"', "\\N", "&lt;", "😀", " ", "", "→"])
def test_any_token_appears_as_it_is(token):
    drawing = viz.attention([[1.0]], [token])
    assert f"{token} (1)" in texts(drawing.svg)
    assert f"'{token}' (1) looks most" in drawing.text


# Stages and heads -----------------------------------------------------------------------------------------


def steps(**options):
    rng = np.random.default_rng(0)
    q, k, v = (ta.tensor(rng.normal(size=(3, 2))) for _ in range(3))
    return ta.nn.attention(q, k, v, return_steps=True, **options)


def test_the_three_stages_stand_beside_each_other():
    found = steps(causal=True)
    drawing = viz.attention(found, WORDS)
    shown = texts(drawing.svg)
    for words in ("Scores: how well each key answers", "Masked: hidden keys at minus infinity"):
        assert words in shown
    assert shown.count("-inf") == 3 and shown.count("query asks ↓") == 3 and shown.count("key answers →") == 3
    maps = json.loads(drawing.json)["maps"]
    np.testing.assert_array_equal(maps[0]["weights"], found.scores.data)
    np.testing.assert_array_equal(maps[2]["weights"], found.weights.data)
    assert drawing.text.count("looks most at") == 3 and "'I' (1) looks most at 'I' (1): 1.00" in drawing.text


def test_without_a_mask_there_are_two_stages():
    assert len(json.loads(viz.attention(steps(), WORDS).json)["maps"]) == 2
    assert len(json.loads(viz.attention(WEIGHTS, WORDS, scores=WEIGHTS * 3).json)["maps"]) == 2


def test_scores_between_0_and_1_are_not_taken_for_weights():
    drawing = viz.attention(WEIGHTS, WORDS, scores=WEIGHTS)
    assert drawing.text.count("looks most at") == 3


def test_heads_stand_beside_each_other():
    drawing = viz.attention(np.stack([WEIGHTS] * 5), WORDS, lang="zh")
    shown = texts(drawing.svg)
    assert {"头 1", "头 5"} <= set(shown) and len(json.loads(drawing.json)["maps"]) == 5


def test_stages_that_do_not_belong_together_and_too_many_heads_are_refused():
    with pytest.raises(ShapeError, match="a stage has shape"):
        viz.attention(WEIGHTS, WORDS, scores=WEIGHTS[:2])
    with pytest.raises(ArgumentError, match="17 heads"):
        viz.attention(np.stack([WEIGHTS] * 17), WORDS)


# The page -------------------------------------------------------------------------------------------------


def test_the_page_has_a_table_for_every_head_of_every_variant():
    page = viz.attention_page({"softmax": np.stack([WEIGHTS] * 2), "relu": WEIGHTS * 2}, WORDS)
    assert page.html.count("<figure") == 3 and page.text.count("looks most at") == 9
    assert 'data-variant="relu" data-head="0"' in page.html and "http:" not in page.html
    plain = page.html.replace("&#x27;", "'")
    assert '<td class="s6">0.75</td>' in plain and "'I' (1) 最关注 'I' (1)：0.75" in plain


def test_tokens_and_names_of_variants_are_text():
    nasty = '"></script><img src=x onerror=alert(1)>'
    page = viz.attention_page({nasty: [[1.0]], "b": [[1.0]]}, [nasty], title=nasty)
    assert "<img" not in page.html and page.html.count("<script") == 2


def test_a_page_without_tables_or_with_too_many_is_refused():
    with pytest.raises(ArgumentError, match="empty"):
        viz.attention_page({}, WORDS)
    with pytest.raises(ArgumentError, match="at most 48"):
        viz.attention_page({str(i): np.stack([WEIGHTS] * 16) for i in range(4)}, WORDS)
    with pytest.raises(ShapeError, match="expected weights"):
        viz.attention_page(WEIGHTS, ["I"])
