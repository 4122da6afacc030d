"""The seam to Graphviz: which program, which message."""

import os
import stat
import sys
import sysconfig

import pytest

import tinyattn as ta
import viz
from tinyattn.errors import GraphError, MissingLibraryError, MissingToolError
from viz import render

DOT = 'digraph { n0 [label="a"]; n1 [label="b"]; n0 -> n1 }'
CHINESE = 'digraph { n0 [label="查询"] }'


@pytest.fixture
def nothing(monkeypatch):
    """A machine without any renderer."""
    monkeypatch.delenv(render.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setattr(sysconfig, "get_path", lambda *scheme: os.devnull)
    monkeypatch.setattr(sys, "executable", "")


def program(folder, name, body="exit 0"):
    """A small program by this name, in a folder."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


needs_shell = pytest.mark.skipif(os.name != "posix", reason="the stand-in programs are shell scripts")


@needs_shell
def test_order_setting_then_dot_then_pure_on_the_path_then_pure_beside_python(nothing, monkeypatch, tmp_path):
    places = {name: tmp_path / name for name in ("set", "path", "scripts")}
    for place in places.values():
        place.mkdir()
    beside = program(places["scripts"], "graphviz-pure")
    monkeypatch.setattr(sysconfig, "get_path", lambda *scheme: str(places["scripts"]))
    assert render.find() == beside
    monkeypatch.setenv("PATH", str(places["path"]))
    on_path = program(places["path"], "graphviz-pure")
    assert render.find() == on_path
    dot = program(places["path"], "dot")
    assert render.find() == dot
    named = program(places["set"], "my-dot")
    monkeypatch.setenv(render.VARIABLE, named)
    assert render.find() == named
    assert render.find("graphviz-pure") == on_path


def test_a_named_program_that_is_missing_is_told_and_not_replaced(monkeypatch):
    monkeypatch.setenv(render.VARIABLE, "no-such-dot")
    with pytest.raises(MissingToolError, match="TINYATTN_DOT names 'no-such-dot'"):
        render.find()
    with pytest.raises(MissingToolError, match="argument renderer names '/nowhere/dot'"):
        render.find("/nowhere/dot")


def test_without_a_renderer_the_message_says_that_the_graph_is_fine_and_what_to_install(nothing):
    assert render.find() is None
    with pytest.raises(MissingToolError) as caught:
        render.draw(DOT, "svg")
    said = str(caught.value)
    for part in ("No Graphviz renderer was found", "Your graph is fine", ".dot", "pip install graphviz-pure"):
        assert part in said
    for part in ("apt install graphviz", "brew install graphviz", "winget install graphviz", "PDF"):
        assert part in said


@pytest.mark.parametrize("form", ["pdf", "eps"])
def test_pdf_with_the_pip_renderer_names_the_way_out(form):
    with pytest.raises(MissingToolError, match=f"A .{form} file needs Graphviz itself") as caught:
        render.draw(DOT, form, renderer="graphviz-pure")
    assert "not recognized" not in str(caught.value)


@needs_shell
def test_a_renderer_under_another_name_that_knows_no_pdf_gives_the_same_message(tmp_path):
    disguised = program(tmp_path, "dot", """echo 'Format: "pdf" not recognized.' >&2; exit 1""")
    with pytest.raises(MissingToolError, match="needs Graphviz itself"):
        render.draw(DOT, "pdf", renderer=disguised)


def test_chinese_in_png_with_the_pip_renderer_is_refused_but_svg_is_drawn():
    with pytest.raises(MissingToolError, match=r"Chinese.*\n.*\n.*\.svg"):
        render.draw(CHINESE, "png", renderer="graphviz-pure")
    assert "查询" in render.draw(CHINESE, "svg", renderer="graphviz-pure").decode("utf-8")


@pytest.mark.parametrize(("fonts", "refused"), [("", True), ("NotoSansCJK.ttc", False)], ids=["no font", "a font"])
def test_chinese_in_png_is_refused_where_no_font_has_it(fonts, refused, monkeypatch, tmp_path):
    program, asked = tmp_path / "dot", tmp_path / "fc-list"
    for file, says in ((program, "picture"), (asked, fonts)):
        file.write_text(f"#!/bin/sh\nprintf '{says}'\n", encoding="utf-8")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    if refused:
        with pytest.raises(MissingToolError, match="no font on this machine"):
            render.draw(CHINESE, "png", renderer=str(program))
    else:
        assert render.draw(CHINESE, "png", renderer=str(program)) == b"picture"
    assert render.draw(DOT, "png", renderer=str(program)) == b"picture"


def test_png_is_a_png():
    assert render.draw(DOT, "png", renderer="graphviz-pure").startswith(b"\x89PNG")


def test_warnings_of_the_renderer_stay_off_the_terminal(capfd):
    render.draw(CHINESE, "svg", renderer="graphviz-pure")
    assert capfd.readouterr() == ("", "")


def test_a_broken_graph_is_an_error_in_words():
    with pytest.raises(GraphError, match="could not draw this graph") as caught:
        render.draw("digraph { -> }", "svg", renderer="graphviz-pure")
    assert ".text" in str(caught.value)


@needs_shell
def test_a_layout_that_takes_too_long_is_stopped_with_words(tmp_path):
    slow = program(tmp_path, "dot", "exec sleep 20")
    with pytest.raises(GraphError, match=r"stopped after 0\.2 s") as caught:
        render.draw(DOT, "svg", renderer=slow, seconds=0.2)
    assert "max_nodes" in str(caught.value)


def test_where_no_process_can_be_started_the_first_message_comes(monkeypatch):
    """In a browser the graphviz package raises a plain OSError."""
    from graphviz.backend import execute

    def refuse(*args, **options):
        raise OSError(138, "emscripten does not support processes")

    monkeypatch.setattr(execute, "run_check", refuse)
    with pytest.raises(MissingToolError, match=r"(?s)No Graphviz renderer.*does not support processes"):
        render.draw(DOT, "svg", renderer="graphviz-pure")


@needs_shell
def test_a_program_that_vanishes_between_finding_and_running_gives_the_first_message(monkeypatch):
    monkeypatch.setattr(render, "find", lambda setting=None: "/nowhere/dot")
    with pytest.raises(MissingToolError, match="No Graphviz renderer"):
        render.draw(DOT, "svg")


def test_the_settings_of_the_graphviz_package_are_left_alone():
    from graphviz.backend import dot_command

    before = dot_command.DOT_BINARY
    render.draw(DOT, "svg", renderer="graphviz-pure")
    assert dot_command.DOT_BINARY == before


def test_without_the_library_it_is_said_what_to_install_and_the_listing_is_still_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    drawing = viz.draw((x * x).sum())
    assert "multiply(x, x)" in drawing.text
    for picture in (lambda: drawing.dot, lambda: drawing.svg, lambda: render.draw(DOT, "svg")):
        with pytest.raises(MissingLibraryError, match="pip install graphviz"):
            picture()
