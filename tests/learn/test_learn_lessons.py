"""The lessons themselves: each runs, keeps the house's form, and its two languages say the same."""

from __future__ import annotations

import ast
import cProfile
import re
import runpy
from pathlib import Path

import pytest

from tinyattn.learn import library
from tinyattn.learn.lesson import Cell, Lesson, fingerprint, read_lesson
from tinyattn.learn.prose import rendered
from tinyattn.learn.session import steps_of
from tinyattn.terminal import display_width

PATHS = library.paths()
LESSONS = [read_lesson(path) for path in PATHS]
LONGEST_CELL, MOST_WORDS, SCREENS, SCREEN = 15, 120, 8, 45
TERMS = {
    "查询": "query",
    "键": "key",
    "词元": "token",
    "注意力": "attention",
    "梯度": "gradient",
    "秩": "rank",
}
MOST_CALLS = 8_000_000
"""Calls of functions that a lesson may make.  Lessons shall take under ten seconds; a test that looks at the clock
fails on a busy machine, so here the work is counted (a call takes about a microsecond).  `python -m benchmarks.lessons`
takes the time."""


def by_name(lesson: Lesson) -> str:
    return lesson.path.stem


def code_cells(lesson: Lesson) -> list[Cell]:
    return [cell for cell in lesson.cells if cell.is_code]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_lesson_runs_as_a_plain_script(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINYATTN_HOME", str(tmp_path / "home"))
    assert calls_of(path) < MOST_CALLS


def calls_of(path: Path) -> int:
    """How many functions are called while a file runs, Python's and those of libraries."""
    counter = cProfile.Profile()
    counter.runcall(runpy.run_path, str(path))
    return sum(entry.callcount for entry in counter.getstats())


def test_the_work_of_a_file_is_counted(tmp_path: Path) -> None:
    counts = []
    for rounds in (0, 0, 5000):  # the first brings what Python keeps afterwards
        file = tmp_path / f"rounds_{rounds}.py"
        file.write_text(f"for i in range({rounds}):\n    abs(i)\n", encoding="utf-8")
        counts.append(calls_of(file))
    assert 5000 <= counts[2] - counts[1] < 5010


def test_there_are_lessons_and_their_numbers_differ() -> None:
    numbers = [lesson.number for lesson in LESSONS]
    assert "10" in numbers and len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("lesson", LESSONS, ids=by_name)
def test_what_a_lesson_needs_comes_before_it(lesson: Lesson) -> None:
    assert all(number < lesson.number for number in lesson.needs)
    assert set(lesson.needs) <= {other.number for other in LESSONS}


@pytest.mark.parametrize("lesson", LESSONS, ids=by_name)
def test_a_code_cell_fits_the_eye(lesson: Lesson) -> None:
    for cell in code_cells(lesson):
        lines = [line for line in cell.code.split("\n") if line.strip()]
        assert len(lines) <= LONGEST_CELL, f"line {cell.line}: {len(lines)} lines"
        assert max(map(display_width, lines)) <= 92, f"line {cell.line}"


@pytest.mark.parametrize("lesson", LESSONS, ids=by_name)
def test_an_explanation_is_short_and_a_lesson_has_at_most_eight_screens(lesson: Lesson) -> None:
    for cell in lesson.cells:
        assert len(cell.text("en").split()) <= MOST_WORDS, f"line {cell.line}"
    shown = sum(
        rendered(cell.text("en"), 80).count("\n") + 2 if not cell.is_code else cell.code.count("\n") + 2
        for cell in lesson.cells
    )
    assert shown <= SCREENS * SCREEN


@pytest.mark.parametrize("lesson", LESSONS, ids=by_name)
def test_a_lesson_has_its_rhythm(lesson: Lesson) -> None:
    """It asks, lets the reader predict, has something to look at, checks, and ends in three lines."""
    assert any("picture" in cell.tags for cell in lesson.cells)
    assert "**Question.**" in lesson.cells[0].text("en")
    predictions = [at for at, cell in enumerate(lesson.cells) if cell.tags.get("role") == "predict"]
    assert len(predictions) >= 2
    assert all(lesson.cells[at + 1].is_code for at in predictions)  # and then it is seen
    assert (
        sum(isinstance(node, ast.Assert) for cell in code_cells(lesson) for node in ast.walk(ast.parse(cell.code))) >= 8
    )
    last = lesson.cells[-1].text("en")
    assert last.startswith("## Summary") and len(re.findall("^- ", last, re.MULTILINE)) == 3


@pytest.mark.parametrize("lesson", LESSONS, ids=by_name)
def test_no_assert_is_true_of_whatever_it_is_given(lesson: Lesson) -> None:
    """An assert of a constant, or of a tuple, could not fail."""
    for cell in code_cells(lesson):
        for node in ast.walk(ast.parse(cell.code)):
            assert not (isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant | ast.Tuple))


@pytest.mark.parametrize("lesson", [x for x in LESSONS if "zh" in x.titles], ids=by_name)
def test_the_chinese_belongs_to_the_english_beside_it(lesson: Lesson) -> None:
    """When this fails: read the Chinese again, mend it, then put the new fingerprint into its mark."""
    for cell in lesson.cells:
        if not cell.is_code:
            assert set(cell.texts) == {"en", "zh"}, f"line {cell.line}: a language is missing"
            wanted = fingerprint(cell.texts["en"])
            assert cell.tags["of zh"] == wanted, f'line {cell.line}: the translation must say of="{wanted}"'
            assert _shape(cell.texts["en"]) == _shape(cell.texts["zh"]), f"line {cell.line}"


@pytest.mark.parametrize("lesson", LESSONS, ids=by_name)
def test_emphasis_is_shown_as_such_and_no_star_is_left_of_it(lesson: Lesson) -> None:
    """A star between a letter and a word is taken for a product: in Chinese, where no blank stands beside it."""
    for cell in lesson.cells:
        for lang, text in cell.texts.items():
            shown = re.sub(r"`[^`]*`", "", rendered(text, 10_000))
            assert "*" not in re.sub(r" \* ", "", shown), f"line {cell.line}, {lang}"


def _shape(text: str) -> list[str]:
    """Headings, list items and table rows in their order."""
    return re.findall(r"^(#+ |- |\||\d+\. )", text, re.MULTILINE)


@pytest.mark.parametrize("lesson", [x for x in LESSONS if "zh" in x.titles], ids=by_name)
def test_a_term_has_its_english_where_it_is_first_used_in_chinese(lesson: Lesson) -> None:
    """Each of these stands with its English in the same cell, the first time in each lesson."""
    for term, english in TERMS.items():
        first = next((cell.text("zh") for cell in lesson.cells if not cell.is_code and term in cell.text("zh")), None)
        assert first is None or english in first, f"{term}（{english}）"


def glossary() -> list[list[str]]:
    """The rows of the list of words: English, Chinese, meaning, its translation, lesson."""
    text = (library.folder() / "GLOSSARY.md").read_text(encoding="utf-8")
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in text.split("\n") if line.startswith("| ")]
    return [row for row in rows if re.fullmatch(r"\d\d", row[-1])]


def prose(lesson: Lesson, lang: str) -> str:
    """All of it in one line, without marks of emphasis; where Chinese is broken stands no blank."""
    text = "\n".join(cell.text(lang) for cell in lesson.cells if not cell.is_code).replace("*", "")
    if lang == "zh":
        text = re.sub(r"(?<![a-zA-Z,])\n|\n(?![a-zA-Z])", "", text)
    return text.replace("\n", " ")


def test_the_list_of_words_has_every_term() -> None:
    rows = glossary()
    pairs = {(chinese, english) for row in rows for chinese in row[1].split("，") for english in row[0].split(", ")}
    assert set(TERMS.items()) <= pairs
    assert len({row[0] for row in rows}) == len(rows) > 60 and all(all(row) and len(row) == 5 for row in rows)
    assert [row[-1] for row in rows] == sorted(row[-1] for row in rows)  # in the order of the lessons


@pytest.mark.parametrize("row", glossary(), ids=lambda row: row[0])
def test_a_word_of_the_list_stands_in_its_lesson(row: list[str]) -> None:
    (lesson,) = [one for one in LESSONS if one.number == row[-1]]
    assert all(chinese in prose(lesson, "zh") for chinese in row[1].split("，"))
    assert any(english.lower() in prose(lesson, "en").lower() for english in row[0].split(", "))


@pytest.mark.parametrize("lesson", [x for x in LESSONS if "zh" in x.titles], ids=by_name)
def test_a_lesson_calls_things_by_the_names_of_the_list(lesson: Lesson) -> None:
    """Where a lesson gives the English of a Chinese word in brackets, both are those of the list."""
    names = {english: row[1].split("，") for row in glossary() for english in row[0].split(", ")}
    text = prose(lesson, "zh")
    for found in re.finditer(r"（([a-zA-Z][a-zA-Z -]+)）", text):
        english = found[1] if found[1] in names else found[1].removesuffix("s")
        before = text[: found.start()]
        assert english in names and any(before.endswith(chinese) for chinese in names[english]), found[0]


@pytest.mark.parametrize("lesson", LESSONS, ids=by_name)
def test_steps_hold_every_cell_once_and_are_the_same_in_both_languages(lesson: Lesson) -> None:
    steps = steps_of(lesson, "en")
    assert [number for step in steps for number in step] == list(range(len(lesson.cells)))
    assert steps == steps_of(lesson, "zh") and all(steps)


@pytest.mark.parametrize("lesson", LESSONS, ids=by_name)
def test_pictures_of_a_lesson_have_different_names(lesson: Lesson) -> None:
    names = [cell.tags["picture"] for cell in lesson.cells if "picture" in cell.tags]
    assert len(set(names)) == len(names)


def test_what_is_often_thought_is_settled_by_an_assert_of_its_lesson() -> None:
    text = (library.folder() / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| (\d\d) \| `([^|]+)` \|$", text, re.MULTILINE)
    assert len(rows) >= 28
    for thought, number, wanted in rows:
        (lesson,) = [one for one in LESSONS if one.number == number]
        asserts = [
            ast.get_source_segment(cell.code, node)
            for cell in code_cells(lesson)
            for node in ast.walk(ast.parse(cell.code))
            if isinstance(node, ast.Assert)
        ]
        assert any(wanted in str(one) for one in asserts), f"{thought}: lesson {number} has no assert of {wanted}"


def test_the_index_lists_every_lesson_as_it_is() -> None:
    text = (library.folder() / "README.md").read_text(encoding="utf-8")
    for lesson in LESSONS:
        needs = ", ".join(lesson.needs) or "—"
        row = f"| [{lesson.number}]({lesson.path.name}) | {lesson.title('en')} | {lesson.minutes} | {needs} |"
        assert row in text, f"tutorials/README.md should say: {row}"
    assert f"In all {sum(lesson.minutes for lesson in LESSONS)} minutes." in text
