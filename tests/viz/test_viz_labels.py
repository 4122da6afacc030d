"""Text, numbers and colours in a picture."""

import itertools

import numpy as np
import pytest

from viz import colours, labels, values
from viz.words import _LANGUAGES


def test_wide_characters_count_a_whole_em_and_accents_nothing():
    assert labels.em_width("查询Ｑ") == 3.0
    assert labels.em_width("😀") == 1.0
    assert labels.em_width("é") == labels.em_width("e\u0301")


def test_text_that_graphviz_would_guess_gets_a_cell_of_its_own_width():
    assert labels.text("abc", 10) == '<FONT POINT-SIZE="10">abc</FONT>'
    cell = labels.text("中文", 10)
    assert 'WIDTH="22"' in cell and cell.startswith("<TABLE") and "中文" in cell


def test_has_wide_is_about_glyphs_that_need_a_special_font():
    assert labels.has_wide("a 中") and labels.has_wide("😀")
    assert not labels.has_wide("∂L/∂W · √d ᵀ é")


@pytest.mark.parametrize("control", ["\x00", "\x07", "\x1b", "\u202e", "\ud800", "\ufffe", "\x85"])
def test_what_xml_cannot_hold_is_made_visible(control):
    shown = labels.visible(f"a{control}b")
    assert control not in shown and shown[0] == "a" and shown[-1] == "b"
    shown.encode("utf-8")


def test_entries_keep_three_digits_of_the_largest_and_zero_is_not_a_rounded_number():
    assert values.cells(np.array([[0.25, 0.125]])) == [["0.250", "0.125"]]
    assert values.cells(np.array([[2.0, -1e-9, 0.0, 0.5]])) == [["2.00", "0.00", "0", "0.50"]]
    assert values.cells(np.array([[1.0, -3.0]])) == [["1", "-3"]]
    assert values.cells(np.array([[1e-5, 2e7]])) == [["1e-05", "2e+07"]]
    assert values.cells(np.array([[np.nan, np.inf], [-np.inf, -0.0]])) == [["nan", "inf"], ["-inf", "0"]]
    assert values.cells(np.array([[True, False]])) == [["True", "False"]]


def test_number_alone():
    shown = [values.number(x) for x in (0.0, -0.0, 5.0, 1 / 3, 1e12, -2.5e-7, float("inf"))]
    assert shown == ["0", "0", "5", "0.3333", "1e+12", "-2.5e-07", "inf"]


def test_summary_counts_what_is_not_finite_and_survives_having_nothing_else():
    only_strange = values.Summary.of(np.array([np.nan, np.inf, np.nan]))
    assert only_strange.parts() == [("nan", "×2"), ("inf", "×1")]
    assert values.Summary.of(np.zeros((0, 3))).parts() == []
    assert values.Summary.of(np.array([1e308, 1e308])).parts()[0] == ("min", "1e+308")


def test_jsonable_has_words_where_json_has_no_number():
    assert values.jsonable(np.array([[1.5, np.nan], [np.inf, -np.inf]])) == [[1.5, "nan"], ["inf", "-inf"]]
    assert values.jsonable(np.array(2)) == 2
    assert values.jsonable(np.array(np.nan)) == "nan"


THEMES = ("light", "dark")


@pytest.mark.parametrize("theme", THEMES)
def test_every_text_can_be_read_on_what_lies_behind_it(theme):
    """Contrast of at least 4.5, the level AA of the Web Content Accessibility Guidelines."""
    roles = colours.palette(theme)
    grounds = ["background", "cluster fill", "parameter", "input", "constant", "op", "fold"]
    for ink, ground in itertools.product(("text", "muted"), grounds):
        assert colours.contrast(roles[ink], roles[ground]) >= 4.5, (ink, ground)
    assert colours.contrast(roles["strange text"], roles["strange"]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_numbers_can_be_read_on_every_step_of_a_heat_table(theme):
    for scale, step in itertools.product(("signed", "share"), range(-8, 9)):
        ground = colours.heat(step, scale, theme)
        assert colours.contrast(colours.ink(ground), ground) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_lines_stand_out_from_the_ground(theme):
    roles = colours.palette(theme)
    for line in ("edge", "parameter line", "input line", "constant line", "op line", "fold line", "cluster"):
        assert colours.contrast(roles[line], roles["background"]) >= 3.0, line


def test_each_light_colour_has_one_dark_partner():
    """The style sheet finds a colour by its code, so no code may stand for two things."""
    codes = [*colours.LIGHT.values()]
    codes += [colours.heat(step, "signed", "light") for step in range(-8, 9)]
    codes += [colours.heat(step, "share", "light") for step in range(1, 9)]
    codes += colours.INKS
    assert len(set(codes)) == len(codes)
    assert colours.LIGHT.keys() == colours.DARK.keys()


def test_steps_are_symmetric_and_finite():
    assert [colours.level(x, "signed", 4.0) for x in (-4.0, -2.0, 0.0, 2.0, 4.0)] == [-8, -4, 0, 4, 8]
    assert colours.level(float("nan"), "signed", 1.0) == 0
    assert colours.level(3.0, "share", 1.0) == 8


def test_both_languages_have_the_same_words_with_the_same_gaps():
    english, chinese = _LANGUAGES["en"], _LANGUAGES["zh"]
    assert english.keys() == chinese.keys()
    for key, words in english.items():
        gaps = {part.split("}")[0] for part in words.split("{")[1:]}
        assert gaps == {part.split("}")[0] for part in chinese[key].split("{")[1:]}, key
