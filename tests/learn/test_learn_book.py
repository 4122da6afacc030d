"""The book: every lesson with everything its cells give, valid pages, links that lead somewhere, equal bytes."""

from __future__ import annotations

import contextlib
import hashlib
import html
import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from pages import StrictPage, formulas

import tinyattn as ta
from tinyattn import cli
from tinyattn.errors import MissingToolError
from tinyattn.learn import library
from tinyattn.learn.book import LessonPage, Place, book, own_ids, page_name
from tinyattn.learn.exercises import exercises
from tinyattn.learn.lesson import Lesson, LessonError, read_lesson
from tinyattn.learn.outputs import outputs

LESSONS = [read_lesson(path) for path in library.paths()]
STEMS = [lesson.path.stem for lesson in LESSONS]
CLOCK = re.compile(r", \d+\.\d+ ms$", re.MULTILINE)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return book(("en", "zh"))


@pytest.fixture(scope="module")
def read(pages: dict[str, str]) -> dict[str, StrictPage]:
    return {name: StrictPage(text) for name, text in pages.items()}


def test_there_is_a_page_for_each_lesson_in_each_language(pages: dict[str, str]) -> None:
    wanted = {"index.html", *(f"{stem}.html" for stem in STEMS)}
    assert set(pages) == wanted | {f"zh/{name}" for name in wanted}


def test_every_page_is_nested_named_and_in_order(read: dict[str, StrictPage]) -> None:
    assert {name: page.troubles for name, page in read.items() if page.troubles} == {}
    assert {name: page.lang for name, page in read.items() if "zh/" in name} == {
        name: "zh-Hans" for name in read if "zh/" in name
    }
    assert {page.lang for name, page in read.items() if "zh/" not in name} == {"en"}
    titles = [page.texts["title"][0] for page in read.values()]
    assert len(set(titles)) == len(titles)


def test_pages_in_frames_are_whole_pages(read: dict[str, StrictPage]) -> None:
    frames = [frame for page in read.values() for frame in page.frames]
    assert len(frames) >= 2 and all(StrictPage(frame).counts["button"] > 4 for frame in frames)
    for frame in frames:
        assert [one for one in StrictPage(frame).troubles if "th" not in one and "svg" not in one] == []


def test_nothing_is_loaded_from_anywhere(pages: dict[str, str], read: dict[str, StrictPage]) -> None:
    assert {name: page.loads for name, page in read.items() if page.loads} == {}
    addresses = {found for text in pages.values() for found in re.findall(r"https?://[\w.-]+", text)}
    assert addresses <= {"http://www.w3.org"}  # names of languages, not places
    assert not any("url(" in text.replace("url(#", "") or "@import" in text for text in pages.values())
    assert all("default-src 'none'" in text for text in pages.values())


def test_every_link_leads_to_a_page_and_a_place_in_it(read: dict[str, StrictPage]) -> None:
    broken = []
    for name, page in read.items():
        for link in page.links:
            address, _, place = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(name), address)) if address else name
            if target not in read or (place and place not in read[target].ids):
                broken.append((name, link))
    assert broken == []


def test_the_pages_are_a_chain_with_contents_and_the_other_language(read: dict[str, StrictPage]) -> None:
    for at, stem in enumerate(STEMS):
        links = read[f"{stem}.html"].links
        assert "index.html" in links and f"zh/{stem}.html" in links
        assert f"../{stem}.html" in read[f"zh/{stem}.html"].links
        for step in (-1, 1):
            if 0 <= at + step < len(STEMS):
                assert links.count(f"{STEMS[at + step]}.html") >= 2  # above and below
    assert {f"{stem}.html" for stem in STEMS} <= set(read["index.html"].links)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.path.stem)
def test_everything_that_a_lesson_prints_as_a_script_is_in_its_page(
    lesson: Lesson, read: dict[str, StrictPage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script is run by other means than the book's, so that no line can be missing in both."""
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        names = runpy.run_path(str(lesson.path))
    lines = [CLOCK.sub("", line) for line in printed.getvalue().split("\n") if line.strip()]
    derived = str(names["derivation"]).split("\n") if "derivation" in names else []
    shown = "\n".join(read[page_name(lesson)].texts["samp"]).split("\n")
    graded = [line for line in lines if not line.startswith(f"{lesson.number}.")]  # in the language of the machine
    missing = [line for line in graded if line not in shown and line not in derived]
    assert [line for line in missing if not line.startswith("  ")] == [] and len(lines) >= 8


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.path.stem)
def test_a_page_has_every_cell_and_what_it_gives(lesson: Lesson, read: dict[str, StrictPage]) -> None:
    page = read[page_name(lesson)]
    given = outputs(lesson, "en")
    code = [text for text in page.texts["pre"] if text not in page.texts["samp"]]
    for at, cell in enumerate(lesson.cells):
        if cell.is_code:
            assert cell.code in code
            assert all(out.value in page.texts["samp"] for out in given[at] if out.kind == "text")
    kinds = [out.kind for some in given for out in some]
    assert page.counts.get("iframe", 0) == kinds.count("page")
    assert page.counts.get("svg", 0) == kinds.count("picture")
    tables = sum(text.startswith("|") for cell in lesson.cells for text in cell.text("en").split("\n\n"))
    assert page.counts.get("table", 0) == kinds.count("derivation") + tables


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.path.stem)
def test_exercises_come_with_their_stub_and_three_folded_hints_and_no_solution(
    lesson: Lesson, lang: str, pages: dict[str, str], read: dict[str, StrictPage]
) -> None:
    name = ("zh/" if lang == "zh" else "") + page_name(lesson)
    word = "练习" if lang == "zh" else "Exercise"
    hints = [text for text in read[name].texts["summary"] if re.fullmatch(r"(Hint |提示)[123]", text)]
    assert len(hints) == 3 * len(exercises(lesson.number)) > 0
    for exercise in exercises(lesson.number):
        assert any(text.startswith(f"{word} {exercise.name}") for text in read[name].texts["h3"])
        assert any(f"def {exercise.function}(" in text for text in read[name].texts["pre"])
        box = pages[name].split(f'id="exercise-{exercise.name.replace(".", "-")}"')[1].split("</div>")[0]
        assert exercise.solution_source().strip() not in html.unescape(re.sub("<[^>]*>", "", box))
    assert "<details open" not in pages[name]


def test_what_was_to_be_guessed_is_folded(pages: dict[str, str]) -> None:
    text = pages["07_softmax.html"]
    asked = sum(cell.tags.get("role") == "predict" for cell in library.find("07").cells)
    assert text.count('<details class="answer">') == asked == text.count('<div class="predict">')


def test_formulas_are_well_formed(pages: dict[str, str]) -> None:
    counts = {name: len(formulas(text.split("<iframe")[0])) for name, text in pages.items()}
    assert counts["07_softmax.html"] > 15 and sum(counts.values()) > 300
    assert 'display="block"' in pages["07_softmax.html"]
    derived = pages["06_sympy.html"].split('class="derivation"')[1].split("</table>")[0]
    assert len(formulas(derived)) >= 4


def test_a_derivation_shows_itself_in_a_notebook_as_formulas() -> None:
    x = ta.tensor([1.0, 2.0], requires_grad=True, name="x")
    assert len(formulas(ta.derive(ta.sum(x * x), x)._repr_html_())) >= 4


def test_pictures_of_a_chinese_page_speak_chinese(pages: dict[str, str]) -> None:
    assert "键回答" in pages["zh/10_one_query.html"] or "回答" in pages["zh/10_one_query.html"].split("<svg")[1]
    assert "query asks" in pages["10_one_query.html"].split("<svg")[1]
    assert "query asks" not in pages["zh/10_one_query.html"].split("<svg")[1].split("</svg>")[0]


def test_a_page_does_not_know_where_and_how_fast_it_was_made(
    pages: dict[str, str], read: dict[str, StrictPage]
) -> None:
    here = str(library.folder().parent)
    assert [name for name, text in pages.items() if here in text] == []
    printed = ["\n".join(page.texts.get("samp", [])) for page in read.values()]
    assert not any(CLOCK.search(text) for text in printed) and any("proved for all sizes" in text for text in printed)


def test_one_language_has_no_link_to_the_other() -> None:
    lesson = library.find("01")
    text = LessonPage(lesson, Place("zh"), [lesson], (None, None)).html()
    assert "hreflang" not in text and '<html lang="zh-Hans">' in text and not StrictPage(text).troubles


def test_without_a_program_that_draws_the_listing_stands_in_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*words: object, **more: object) -> bytes:
        raise MissingToolError("nothing that draws is installed")

    monkeypatch.setattr("viz.render.draw", none)
    lesson = library.find("10")
    page = StrictPage(LessonPage(lesson, Place("en"), [lesson], (None, None)).html())
    assert not page.troubles and "svg" not in page.counts
    assert any("query asks" in text and "0.53" in text for text in page.texts["samp"])


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    sums = []
    for seed in ("1", "2"):
        place = tmp_path / seed
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "tinyattn", "book", "-o", str(place)]
        subprocess.run(command, env=environment, check=True, capture_output=True, cwd=tmp_path)
        files = sorted(path for path in place.rglob("*") if path.is_file())
        sums.append([(str(path.relative_to(place)), hashlib.sha256(path.read_bytes()).digest()) for path in files])
    assert sums[0] == sums[1] and len(sums[0]) == 2 * len(LESSONS) + 3


# -- the command ------------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of lessons with one small lesson."""
    place = tmp_path / "lessons"
    place.mkdir()
    (place / "77_small.py").write_text(
        '# %% [markdown] lang="en"\n# # 77 Small\n#\n# **Needs** — · **Minutes** 60\n# %%\nprint("<b>", end="")\n',
        encoding="utf-8",
    )
    monkeypatch.setattr(library, "folder", lambda: place)
    monkeypatch.chdir(tmp_path)
    return place


def test_the_command_writes_the_folder_and_says_so(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["book", "-o", "site", "--lang", "en"]) == 0
    assert "site/index.html (2 pages" in capsys.readouterr().out
    text = (tmp_path / "site" / "77_small.html").read_text(encoding="utf-8")
    assert "<samp>&lt;b&gt;</samp>" in text and not StrictPage(text).troubles
    assert cli.main(["book", "-o", "site", "--lang", "zh"]) == 0  # its own book is replaced
    assert "已写成" in capsys.readouterr().out


def test_a_folder_that_is_no_book_is_left_alone(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "thesis.txt").write_text("years of work")
    (small / "77_small.py").unlink()  # it is told before a lesson is read
    assert cli.main(["book", "-o", "site"]) == 2
    assert "is no book" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["thesis.txt"]


def test_a_lesson_that_fails_makes_no_book(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (small / "77_small.py").open("a") as stream:
        stream.write('# %%\nassert 1 == 2, "one is not two"\n')
    with pytest.raises(LessonError, match="one is not two"):
        book(("en",))
    assert cli.main(["book", "-o", "site"]) == 2
    assert "77_small.py, line 8" in capsys.readouterr().err and not (tmp_path / "site").exists()


# -- the reader of pages says no --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<h1>a</h1><p><b>x</p></b>", "</p> at line"),
        ("<h1>a</h1><div>", "<div> is never closed"),
        ("<h1>a</h1><h3>b</h3>", "h3 after h1"),
        ("<h2>b</h2>", "0 h1"),
        ('<h1 id="a">a</h1><p id="a">b</p>', "id 'a' twice"),
        ("<h1>a</h1><p>x<div>y</div></p>", "<div> inside <p>"),
        ("<h1>a</h1><table><tr><th>x</th></tr></table>", "<th> without scope"),
        ('<h1>a</h1><img src="data:,">', "<img> without alt"),
        ('<h1>a</h1><iframe srcdoc="x"></iframe>', "<iframe> without title"),
    ],
)
def test_a_page_that_is_wrong_is_told(body: str, said: str) -> None:
    assert any(said in trouble for trouble in StrictPage(body).troubles)


def test_an_address_that_is_loaded_is_told_and_a_link_is_not() -> None:
    text = '<h1>a</h1><img alt="" src="http://localhost/x.png"><a href="http://localhost">x</a>'
    assert StrictPage(text).loads == ["http://localhost/x.png"]


def test_ids_are_changed_in_tags_only() -> None:
    assert own_ids('<g id="n0"><text>a id="b"</text></g>', "c-") == '<g id="c-n0"><text>a id="b"</text></g>'
