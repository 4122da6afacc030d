"""Curves, sizes of gradients, words in the plane, waveforms."""

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from svg import SVG, texts

import tinyattn as ta
import viz
import viz.colours
from tinyattn.errors import ArgumentError, GraphError, MissingToolError, ShapeError
from viz.figures import in_the_plane
from viz.plots import Plot, decades, ticks


def lines(drawing):
    """The places of every line in a drawing, by the series' colour in the light theme."""
    root = ET.fromstring(drawing.svg)
    found = {}
    for path in root.iter(f"{SVG}path"):
        numbers = [float(x) for x in re.findall(r"-?\d+\.?\d*", path.get("d"))]
        found.setdefault(path.get("stroke"), []).append(np.array(numbers).reshape(-1, 2))
    return found


# Curves ---------------------------------------------------------------------------------------------------


def test_a_curve_falls_where_the_numbers_fall():
    drawing = viz.curve([4.0, 2.0, 1.0, 1.5])
    (places,) = lines(drawing)[viz.colours.LIGHT["series 1"]]
    heights = -places[::3, 1]
    assert heights[0] > heights[1] > heights[3] > heights[2]
    np.testing.assert_allclose((heights[0] - heights[1]) / (heights[1] - heights[2]), 2.0, atol=0.02)


def test_several_curves_differ_by_stroke_and_are_named():
    drawing = viz.curve({"train": [1.0, 0.5], "验证": [1.0, 0.8]}, title="Loss", y_title="loss")
    assert {"train", "验证", "Loss", "loss", "step"} <= set(texts(drawing.svg))
    assert "style=dashed" in drawing.dot and "style=solid" in drawing.dot


def test_missing_numbers_break_a_line_and_a_long_one_is_thinned():
    drawing = viz.curve([1.0, 2.0, np.nan, 1.0, np.inf, 3.0, 1.0])
    assert len(lines(drawing)[viz.colours.LIGHT["series 1"]]) == 2
    y = np.zeros(50_000)
    y[33_333] = 1.0
    dot = viz.curve(y).dot
    assert len(dot) < 150_000 and ",286.36" in dot  # the one peak is kept: 300 · 1.05 / 1.1
    assert max(map(len, re.findall(r'pos="([^"]*)"', dot))) < 16_384


def test_powers_of_ten():
    shown = texts(viz.curve([1.0, 0.1, 0.001, 0.0], log=True).svg)
    assert {"1", "0.1", "0.01", "0.001"} <= set(shown)
    assert [words for _, words in decades(-2.0, 1.0)] == ["0.01", "0.1", "1", "10"]
    assert len(decades(-100, 100)) < 12


@pytest.mark.parametrize("ends", [(0, 1), (-3e-9, 2e-9), (0, 1e6), (99.5, 100.5), (-7, 123)])
def test_ticks_are_few_round_and_inside(ends):
    found = [place for place, _ in ticks(*ends)]
    assert 2 <= len(found) <= 12 and all(ends[0] - 1e-12 <= place <= ends[1] * (1 + 1e-9) + 1e-12 for place in found)


def test_the_text_of_a_curve_tells_first_last_and_smallest():
    assert "train      3  2.0000  0.5000    0.5000        2" in viz.curve({"train": [2.0, 1.0, 0.5]}).text
    assert json.loads(viz.curve([1.0, np.nan]).json)["lines"] == {"": [1.0, "nan"]}


def test_curves_that_cannot_be_drawn():
    with pytest.raises(ArgumentError, match="no number"):
        viz.curve([])
    with pytest.raises(ShapeError, match=r"\(n,\) is needed, not \(2, 2\)"):
        viz.curve(np.zeros((2, 2)))
    with pytest.raises(ArgumentError, match="more than 6"):
        viz.curve({str(i): [1.0] for i in range(7)})
    with pytest.raises(ArgumentError, match="'auto', 'light' or 'dark'"):
        viz.curve([1.0], theme="blue")
    with pytest.raises(ArgumentError, match="numbers are needed"):
        viz.curve(["a"])
    assert viz.curve([5.0]).svg and viz.curve([2.0, 2.0]).svg and viz.curve([np.nan]).svg


def test_a_plot_follows_the_theme_and_is_the_same_each_time():
    auto, dark = viz.curve([1.0, 2.0]), viz.curve([1.0, 2.0], theme="dark")
    assert f"stroke:{viz.colours.DARK['series 1']}" in auto.svg and viz.colours.DARK["series 1"] in dark.svg
    assert auto.dot == viz.curve([1.0, 2.0]).dot


def test_chinese_in_png_is_refused_with_the_way_out(monkeypatch, tmp_path):
    with pytest.raises(MissingToolError, match=r"Save it as \.svg"):
        viz.curve([1.0], title="损失").save(tmp_path / "x.png")
    viz.curve([1.0, 0.5]).save(tmp_path / "y.png")
    assert (tmp_path / "y.png").read_bytes().startswith(b"\x89PNG")


# Gradients ------------------------------------------------------------------------------------------------


def test_gradients_of_a_loss_by_parameter():
    w = ta.tensor([3.0, 4.0], requires_grad=True)
    dead = ta.tensor([1.0], requires_grad=True)
    loss = ta.sum(w * w) + ta.sum(dead * 0.0)
    drawing = viz.gradients(loss)
    found = {p["name"]: p["gradient"] for p in json.loads(drawing.json)["parameters"]}
    assert found["w"] == pytest.approx(np.sqrt((36 + 64) / 2)) and found["dead"] == 0.0
    assert {"w", "dead", "7.071", "zero"} <= set(texts(drawing.svg)) and w.grad is None


def test_gradients_of_a_module_are_those_it_has():
    layer = ta.nn.Linear(2, 2, rng=0)
    assert "not computed" in viz.gradients(layer).text
    ta.sum(layer(ta.tensor([[1.0, 2.0]]))).backward()
    assert "not computed" not in viz.gradients(layer).text
    with pytest.raises(GraphError, match="requires a gradient"):
        viz.gradients(ta.tensor([1.0]) * 2.0)
    with pytest.raises(ArgumentError, match="no parameter"):
        viz.gradients(ta.Graph.of(ta.tensor([1.0]) * 2.0))


# The plane ------------------------------------------------------------------------------------------------


def test_distances_in_the_plane_are_those_of_the_vectors_when_these_are_flat(rng):
    flat = rng.normal(size=(6, 2)) @ np.linalg.qr(rng.normal(size=(5, 2)))[0].T
    plane, shares = in_the_plane(flat)
    assert sum(shares) == pytest.approx(1.0) and shares[0] >= shares[1]
    distance = lambda x: np.linalg.norm(x[:, None] - x[None], axis=-1)
    np.testing.assert_allclose(distance(plane), distance(flat), atol=1e-12)
    np.testing.assert_allclose(in_the_plane(flat[::-1])[0][::-1], plane, atol=1e-12)


def test_words_stand_beside_their_points_and_groups_have_shapes(rng):
    drawing = viz.embedding(rng.normal(size=(4, 3)), ["I", "看见", "a", "<b>"], ["x", "y", "x", "y"], lang="zh")
    assert {"I", "看见", "a", "<b>", "x", "y"} <= set(texts(drawing.svg))
    assert drawing.dot.count("shape=triangle") == 3 and "占方差的" in drawing.text


def test_one_word_one_dimension_and_what_does_not_fit(rng):
    assert viz.embedding([[1.0]], ["I"]).svg and viz.embedding([[1.0], [2.0]], ["a", "b"]).svg
    with pytest.raises(ShapeError, match=r"\(2, 3\), 1 labels"):
        viz.embedding(np.zeros((2, 3)), ["a"])
    with pytest.raises(ArgumentError, match="finite"):
        viz.embedding([[np.nan, 1.0]], ["a"])
    with pytest.raises(ArgumentError, match="more than 6"):
        viz.embedding(np.zeros((7, 2)), list("abcdefg"), list("abcdefg"))


# Sound ----------------------------------------------------------------------------------------------------


def test_a_waveform_has_its_time_and_frames():
    drawing = viz.waveform(np.sin(np.arange(1000)), 500, frame=100, hop=50)
    assert "1000 samples at 500 in a second: 2 s." in drawing.text
    assert "19 frames of 100 samples (0.2 s)" in drawing.text
    marks = lines(drawing)[viz.colours.LIGHT["table line"]]
    assert len(marks) == 19 and "seconds" in texts(drawing.svg)
    assert json.loads(viz.waveform([0.0, 0.0], 8).json)["frames"] is None and viz.waveform([0.0], 8).svg


def test_a_waveform_needs_samples_and_a_rate():
    for samples, rate, options in (([], 8, {}), ([1.0], 0, {}), ([1.0], 8, {"frame": 0})):
        with pytest.raises(ArgumentError):
            viz.waveform(samples, rate, **options)


def test_every_place_in_a_plot_is_finite():
    plot = Plot("t", "x", "y", (0.0, 0.0), (5.0, 5.0), "light")
    plot.line(np.zeros(1), np.full(1, 5.0))
    assert "nan" not in plot.source() and "inf" not in plot.source().replace("invis", "")
