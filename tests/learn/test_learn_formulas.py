"""Formulas in prose: which are found, what is left alone, and that nothing is lost or invented."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tinyattn.learn import formulas, library
from tinyattn.learn.formulas import shown, signs, with_math
from tinyattn.learn.page_prose import PageProse


def found(text: str) -> list[str]:
    return [part for part, math in with_math(text) if math]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("For f(x) = x³ school says: the slope is 3x², so 12 at x = 2.", ["f(x) = x³", "3x²", "x = 2"]),
        ("sᵢ = exp(xᵢ) / Σⱼ exp(xⱼ). It stands", ["sᵢ = exp(xᵢ) / Σⱼ exp(xⱼ)"]),
        ("its derivative is s (1 − s)", ["s (1 − s)"]),
        ("W_q, W_k and W_v", ["W_q", "W_k", "W_v"]),
        ("B = weights V", ["B = weights V"]),
        ("softmax(Q Kᵀ / √d_k). Where", ["softmax(Q Kᵀ / √d_k)"]),
        ("y = (a + b) · b takes", ["y = (a + b) · b"]),
        ("sin a sin b + cos a cos b = cos(a − b).", ["sin a sin b + cos a cos b = cos(a − b)"]),
        ("Y[i, j] = Σₖ X[i, k] · W[k, j].", ["Y[i, j] = Σₖ X[i, k] · W[k, j]"]),
        ("分数(2, 1, 0)，而x̄ = s · (g − Σⱼ gⱼ sⱼ)。", ["x̄ = s · (g − Σⱼ gⱼ sⱼ)"]),
        ("the loss −log p of", ["−log p"]),
        ("2⁶⁰ paths", ["2⁶⁰"]),
    ],
)
def test_a_formula_is_found_from_its_first_sign_to_its_last(text: str, wanted: list[str]) -> None:
    from unicodedata import normalize

    assert [normalize("NFC", one) for one in found(text)] == [normalize("NFC", one) for one in wanted]


@pytest.mark.parametrize(
    "text",
    [
        "I saw a saw",
        "A word asks, and a key answers.",
        "With = instead of +=, what would come out?",
        "scores (2, 1, 0) and (20, 10, 0)",
        "a step-by-step walk – one at a time — and/or none",
        "10 − half a dozen",
        "平均值是5。",
        "dS = weights · (dA − 平均)",  # a part in words cannot be read, so nothing of it is
        "x = (1, 2",
        "x ==== y",
        "x_",
        "",
    ],
)
def test_what_is_no_formula_stays_text(text: str) -> None:
    assert found(text) == []
    assert "".join(part for part, _ in with_math(text)) == text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_sign_of_any_lesson_is_lost_or_invented(lang: str) -> None:
    """What the MathML shows is what the lesson wrote, sign by sign; and there is much of it."""
    count = 0
    for lesson in library.lessons():
        for cell in lesson.cells:
            for part, math in with_math(cell.text(lang).replace("\n", " ")):
                if math:
                    ET.fromstring(f"<p>{math}</p>")
                    assert shown(math) == signs(part)
                    count += 1
    assert count > 150


def test_a_writer_that_loses_a_sign_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the formula stays the text it was: better plain than wrong."""
    real = formulas.mathml
    monkeypatch.setattr(formulas, "mathml", lambda tree: real(tree).replace("<mo>−</mo>", "<mo>+</mo>"))
    assert found("s (1 − s)") == [] and found("s (1 + s)") == ["s (1 + s)"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x²", "<msup><mi>x</mi><mn>2</mn></msup>"),
        ("Qᵀ", '<msup><mi>Q</mi><mi mathvariant="normal">⊤</mi></msup>'),
        ("√d_k", "<msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt>"),
        ("a / b", "<mi>a</mi><mo>/</mo><mi>b</mi>"),
        ("W x + b", '<mi>W</mi><mspace width="0.17em"></mspace><mi>x</mi><mo>+</mo><mi>b</mi>'),
        ("V A′", '<mi>V</mi><mspace width="0.17em"></mspace><msup><mi>A</mi><mo>′</mo></msup>'),
        ("x < 1", "<mi>x</mi><mo>&lt;</mo><mn>1</mn>"),
    ],
)
def test_how_it_is_written(text: str, wanted: str) -> None:
    assert with_math(text) == [(text, f"<math>{wanted}</math>")]


def test_a_formula_that_is_a_paragraph_stands_by_itself() -> None:
    made = PageProse({}).html("Look:\n\nx = 2 y.\n\nAnd x = 2 y here.")
    assert made.count('display="block"') == 1 and made.count("<math") == 2


def test_a_long_formula_may_be_broken_before_a_relation_and_nowhere_else() -> None:
    text = "dX[i, k] = Σⱼ G[i, j] · W[k, j] = (G Wᵀ)[i, k]"
    ((_, math),) = with_math(text)
    assert math.count("<math>") == 3 == math.count("<math><mo>=</mo>") + 1
    assert with_math("x = 1")[0][1].count("<math>") == 1
    assert PageProse({}).html(text + ".").count("<math") == 1  # by itself it stays whole


def test_markdown_is_data_not_markup() -> None:
    made = PageProse({}).html("# <b> & `</code><script>` **<i>** *x*\n\n| <a> | b |\n|---|---|\n| <c> | `d` |")
    assert "<script>" not in made and "<b>" not in made and "&lt;b&gt;" in made and "<em>x</em>" in made
    assert '<th scope="col">&lt;a&gt;</th>' in made and "<td>&lt;c&gt;</td>" in made


def test_a_lesson_that_is_named_is_linked_and_no_other_number() -> None:
    prose = PageProse({"07": "07_softmax.html"})
    assert 'href="07_softmax.html">Lesson 07</a>' in prose.inline("Lesson 07 shows; lesson 99 and 07 do not.")
    assert prose.inline("lesson 99 and 07") == "lesson 99 and 07"
    assert 'href="07_softmax.html">第07课</a>' in prose.inline("见第07课。")


def test_a_small_number_is_not_broken() -> None:
    assert PageProse({}).inline("near 1e-5.") == 'near <span class="whole">1e-5</span>.'


def test_a_link_to_a_file_beside_is_a_link_and_an_index_is_none() -> None:
    inline = PageProse({}).inline
    assert inline("see [the *map*](figures/a.svg).") == 'see <a href="figures/a.svg">the <em>map</em></a>.'
    assert "<a" not in inline("X[i, k](y z) and [x](http://localhost)")
