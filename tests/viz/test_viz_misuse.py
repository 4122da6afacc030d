"""A picture asked for wrongly is refused in words: what is no word, no list, no colour, no file."""

import numpy as np
import pytest

import tinyattn as ta
import viz

W = np.array([[0.5, 0.5], [1.0, 0.0]])
WORDS = ["I", "saw"]


def loss():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    return (x * x).sum()


ASKED_WRONGLY = {
    "words of nothing": (lambda: viz.attention(W, None), r"tokens is a NoneType; a list of words.*\n  Write \['I'"),
    "words of a number": (lambda: viz.attention_page(W, 2), "attention_page: tokens is a int"),
    "keys of a number": (lambda: viz.attention(W, WORDS, 2), "keys is a int"),
    "labels of nothing": (lambda: viz.embedding(W, None), "embedding: labels is a NoneType"),
    "groups of a number": (lambda: viz.embedding(W, WORDS, 3), "embedding: groups is a int"),
    "weights of nothing": (lambda: viz.attention(None, WORDS), r"weights is None.*\n  Write layer.steps\(x\)"),
    "a rate in text": (lambda: viz.waveform([0.0], "8000"), "waveform: rate='8000' must be one number"),
    "a frame in text": (lambda: viz.waveform([0.0], 8000, frame="a"), "waveform: frame='a'"),
    "a hop in text": (lambda: viz.waveform([0.0], 8000, frame=2, hop=0.5), "waveform: hop=0.5"),
    "a theme": (lambda: viz.diff(loss(), loss(), theme="drak"), "theme='drak'; it is 'auto', 'light' or 'dark'"),
    "a theme of a list": (lambda: viz.curve([1.0], theme=["dark"]), "theme=a list; it is 'auto'"),
    "a theme of modules": (lambda: viz.modules(ta.nn.Linear(1, 1), theme="blue"), "theme='blue'"),
    "a direction": (lambda: viz.modules(ta.nn.Linear(1, 1), direction="UP"), "direction='UP'; it is 'LR' or 'TB'"),
    "a direction of steps": (lambda: viz.step(loss(), direction=1), "direction=1; it is 'LR' or 'TB'"),
    "a title": (lambda: viz.curve([1.0], title=3), "title is a int; a text is needed"),
    "a language": (lambda: viz.curve([1.0], lang=["en"]), r"lang=\['en'\] is not known"),
    "what a box shows": (lambda: viz.draw(loss(), show="op"), r"show='op' is no list.\n  Write show="),
    "what a box cannot show": (lambda: viz.draw(loss(), show=[W]), "show has(.|\\n)*a box can show"),
    "a view": (lambda: viz.draw(loss(), view=["both"]), "view=a list; it is 'forward', 'backward' or 'both'"),
    "many boxes": (lambda: viz.draw(loss(), max_nodes="all"), "draw: max_nodes='all' is a str"),
    "many steps": (lambda: viz.step(loss(), max_nodes=None), "step: max_nodes=None is a NoneType"),
    "names in a text": (lambda: viz.draw(loss(), names="x"), r"names holds something else.*\n  Write names={'Q': Q"),
    "names of numbers": (lambda: viz.draw(loss(), names={"x": 1.0}), "names holds something else"),
    "names of nothing": (lambda: viz.draw(loss(), names=3), "names holds something else"),
    "a file of nothing": (lambda: viz.draw(loss()).save(None), "a path is needed, not a NoneType"),
    "a page of nothing": (lambda: viz.step(loss()).save(3), "a path is needed, not a int"),
    "a form": (lambda: viz.draw(loss()).render(["svg"]), r"no form \['svg'\]"),
    "a renderer": (lambda: viz.draw(loss()).render("svg", renderer=3), "renderer is a int"),
    "graphviz's direction": (lambda: viz.draw(loss(), rankdir="TB"), "Write direction=... here"),
    "graphviz's file": (lambda: viz.draw(loss(), filename="a.svg"), r"Write .save\('graph.svg'\)"),
    "matplotlib's size": (lambda: viz.attention(W, WORDS, figsize=(3, 3)), "a picture is as large as what it shows"),
    "a slip": (lambda: viz.curve([1.0], tilte="a"), "curve: there is no argument 'tilte'(.|\n)*Write title="),
}


@pytest.mark.parametrize("name", ASKED_WRONGLY)
def test_a_picture_asked_for_wrongly_is_refused_in_words(name):
    ask, words = ASKED_WRONGLY[name]
    with pytest.raises(ta.TinyattnError, match=words):
        ask()


def test_names_may_be_pairs_and_words_anything_that_can_be_gone_through():
    y = loss()
    assert "total" in viz.draw(y, names=[("total", y)]).text
    assert viz.attention(W, (word for word in WORDS)).text == viz.attention(W, np.array(WORDS)).text
