"""Any text as a name, and any small graph, in every form."""

import json
import re

import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed (extra: verify)")

from hypothesis import given, settings
from hypothesis import strategies as st
from svg import texts

import tinyattn as ta
import viz
from viz.labels import visible


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=30))
def test_any_text_can_be_a_name(name):
    x = ta.tensor([1.0], name=name)
    drawing = viz.draw(x, title="t", legend=False)
    assert visible(name).replace("\xa0", " ") in texts(drawing.svg)
    assert drawing.text.count("\n") == 2 and json.loads(drawing.json)


@settings(max_examples=40, deadline=None)
@given(st.text(min_size=1, max_size=30))
def test_any_text_can_be_a_name_in_the_replay(name):
    x = ta.tensor([1.0], requires_grad=True, name=name)
    with ta.scope(name):
        loss = ta.sum(x * x)
    text = viz.step(loss, title=name).html
    picture = "<svg" + text.split("<svg", 1)[1].split("</svg>")[0] + "</svg>"
    assert visible(name).replace("\xa0", " ") in texts(picture)
    assert text.count("<script") == 2 and json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=12), min_size=1, max_size=4))
def test_any_tokens_have_their_place(tokens):
    weights = [[1.0 / len(tokens)] * len(tokens)] * len(tokens)
    shown = texts(viz.attention(weights, tokens).svg)
    assert all(f"{visible(token)} ({at})".replace("\xa0", " ") in shown for at, token in enumerate(tokens, 1))
    assert viz.attention_page(weights, tokens).html.count("<th scope=") == 2 * len(tokens)
