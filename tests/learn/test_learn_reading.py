"""Reading a lesson file: its cells, its languages, its head, and what is said where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyattn.learn import library
from tinyattn.learn.lesson import LessonError, fingerprint, parse, read_lesson
from tinyattn.learn.prose import coloured, rendered, wrap
from tinyattn.terminal import display_width

HEAD = '# %% [markdown] lang="en"\n# # 77 A title\n#\n# **Needs** 03, 07 · **Minutes** 25\n'


def lesson_file(folder: Path, text: str, name: str = "77_try.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_prose_and_its_translation_are_one_cell() -> None:
    cells = parse(
        '# %% [markdown] lang="en"\n# One.\n#\n# Two.\n# %% [markdown] lang="zh" of="abc"\n# 一。\n# %%\n\nx = 1\n\n'
    )
    assert [cell.is_code for cell in cells] == [False, True]
    assert cells[0].texts == {"en": "One.\n\nTwo.", "zh": "一。"} and cells[1].code == "x = 1"
    assert cells[0].text("zh") == "一。" and cells[1].line == 7


def test_prose_that_is_not_translated_is_shown_in_english() -> None:
    (cell,) = parse('# %% [markdown] lang="en"\n# Only English.\n')
    assert cell.text("zh") == "Only English."


def test_tags_are_read() -> None:
    _, cell = parse(
        '# %% [markdown] lang="en" role="predict"\n# Guess.\n# %% picture="weights" exercise="10.x"\ny = 2\n'
    )
    assert cell.tags == {"picture": "weights", "exercise": "10.x"}


def test_comments_before_the_first_cell_are_left_out() -> None:
    (cell,) = parse("# made by hand\n\n# %%\nx = 1\n")
    assert cell.code == "x = 1" and cell.line == 3


def test_the_head_gives_title_needs_and_minutes(tmp_path: Path) -> None:
    lesson = read_lesson(lesson_file(tmp_path, HEAD))
    assert (lesson.number, lesson.title("en"), lesson.needs, lesson.minutes) == (
        "77",
        "A title",
        ("03", "07"),
        25,
    )
    assert lesson.title("zh") == "A title"


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("x = 1\n# %%\n", 1, "before the first cell"),
        (HEAD + "# %% [markdwn]\n# A\n", 5, "the mark of a cell"),
        (HEAD + "# %% [markdown]\n# A\nx = 1\n", 7, "begins with #"),
        (HEAD + "# %% [markdown]\n#\n", 5, "empty"),
        (HEAD + '# %%\nx = 1\n# %% [markdown] lang="zh" of="1"\n# 一\n', 7, "right after the prose"),
        ("# %%\nx = 1\n", 1, "begins with a cell of prose"),
        ('# %% [markdown] lang="en"\n# # 77 A title\n', 1, "what it needs"),
        (HEAD.replace("# # 77", "# #"), 1, "title with the number"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, text: str, line: int, word: str) -> None:
    path = lesson_file(tmp_path, text)
    with pytest.raises(LessonError, match=word) as caught:
        read_lesson(path)
    assert caught.value.line == line and str(path) in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(LessonError, match="cannot be read"):
        read_lesson(tmp_path / "77_none.py")
    (tmp_path / "77_bad.py").write_bytes(b"# %%\n\xff")
    with pytest.raises(LessonError, match="UTF-8"):
        read_lesson(tmp_path / "77_bad.py")
    with pytest.raises(LessonError, match="no cell"):
        parse("")


def test_a_fingerprint_sees_words_but_not_line_breaks() -> None:
    assert fingerprint("a b\nc") == fingerprint("a\nb c") != fingerprint("a b d")


@pytest.mark.parametrize("wanted", ["10", "10_one_query", "one_query", "10_one_query.py", "ONE_QUERY"])
def test_a_lesson_is_found_by_number_or_name(wanted: str) -> None:
    assert library.find(wanted).path.name == "10_one_query.py"


@pytest.mark.parametrize("wanted", ["99", "nonsense", "", "1x"])
def test_a_lesson_that_is_not_there_is_told_with_those_that_are(wanted: str) -> None:
    with pytest.raises(LessonError, match="10_one_query"):
        library.find(wanted)


def test_lessons_of_an_installed_wheel_are_found_inside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "tinyattn"
    (package / "tutorials").mkdir(parents=True)
    (package / "learn").mkdir()
    monkeypatch.setattr(library, "__file__", str(package / "learn" / "library.py"))
    assert library.folder() == package / "tutorials"


def test_tutorials_of_another_package_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tutorials").mkdir()
    (tmp_path / "tinyattn" / "learn").mkdir(parents=True)
    monkeypatch.setattr(library, "__file__", str(tmp_path / "tinyattn" / "learn" / "library.py"))
    with pytest.raises(LessonError, match="install tinyattn again"):
        library.folder()


@pytest.mark.parametrize("width", [16, 20, 33, 80])
def test_wrapped_lines_keep_the_width_and_every_word(width: int) -> None:
    text = "查询（query）决定每个词看多少，`W_q` 是它的矩阵。 Each word asks, every other word answers."
    lines = wrap(text, width)
    assert max(map(display_width, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_line_begins_with_no_comma_and_ends_with_no_opening_bracket() -> None:
    for width in range(8, 30):
        for line in wrap("一二三，四五六（七八）九十。一二三，四五六（七八）九十。", width):
            assert line[0] not in "，）。" and line[-1] != "（"


def test_markdown_is_shown_without_its_signs() -> None:
    text = "# 10 One\n\n**Bold** and *thin* and `x * y`.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | **2** |"
    assert rendered(text, 40).split("\n\n") == [
        "10 One\n======",
        "Bold and thin and `x * y`.",
        "- one\n- two",
        "a  b\n─  ─\n1  2",
    ]
    assert "\x1b" in rendered(text, 40, colour=True) and rendered("a\n查", 40) == "a查"


def test_stars_in_code_and_products_stay() -> None:
    assert rendered("`a * b` and 2 * 3 * 4", 60) == "`a * b` and 2 * 3 * 4"


def test_coloured_code_is_the_same_code() -> None:
    import re

    code = 'for x in range(3):  # three\n    print(f"{x}", "查询")\n'
    assert re.sub(r"\x1b\[\d+m", "", coloured(code)) == code and "\x1b" in coloured(code)
    assert coloured("for (") == "for ("
