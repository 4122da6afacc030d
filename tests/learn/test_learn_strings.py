"""Chinese readers get Chinese titles and printed words: only strings differ, and none is missing."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tinyattn.learn import command, library
from tinyattn.learn.lesson import Cell, Lesson, LessonError, read_lesson, strings
from tinyattn.learn.outputs import Output, outputs
from tinyattn.terminal import display_width

CHINESE = library.lessons("zh")
ENGLISH = dict(zip([lesson.number for lesson in CHINESE], library.lessons(), strict=True))
# Words that are names here: of functions, of arrays, of the letters of a formula.
NAMES = "softmax relu log log_softmax max sum sum_j exp zero_grad keepdims attend dW dA dB dQ dK dq W_q W_k W_o Wq d_k"
# Words of the sentences, and of the data, that a lesson is about.
DATA = "saw the they you old small new dog table needs has in on king queen man woman cat paris france berlin germany"
SAME = {*NAMES.split(), *DATA.split()}


def by_name(lesson: Lesson) -> str:
    return lesson.path.stem


def pairs(lesson: Lesson) -> Iterator[tuple[Cell, Cell]]:
    for english, chinese in zip(ENGLISH[lesson.number].cells, lesson.cells, strict=True):
        if english.is_code:
            yield english, chinese


class Blank(ast.NodeTransformer):
    """Takes the texts out of a program; what is computed between them, and how it is formatted, stays."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        return ast.JoinedStr([self.visit(each) for each in node.values if isinstance(each, ast.FormattedValue)])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        return ast.FormattedValue(self.visit(node.value), node.conversion, node.format_spec)


def without_texts(code: str) -> tuple[str, list[str]]:
    """What a program does apart from its texts, and its comments."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return ast.dump(Blank().visit(ast.parse(code))), comments


def texts(node: ast.AST) -> Iterator[str]:
    """The texts under a node that a reader sees: not those that are looked for, no formats, no docstrings."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    below = [node.value] if isinstance(node, ast.FormattedValue) else ast.iter_child_nodes(node)
    for each in below:
        is_docstring = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if not is_docstring and not isinstance(each, ast.Compare):
            yield from texts(each)


def shown(code: str) -> Iterator[str]:
    """What is printed or is a title, and every other text of several words."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            yield from texts(node)
        if isinstance(node, ast.keyword) and (node.arg or "").endswith("title"):
            yield from texts(node.value)
    yield from (text for text in texts(tree) if re.search("[a-z] [a-z]", text))


def english_in(code: str) -> list[str]:
    words = {word for text in shown(code) for word in re.findall(r"[A-Za-z][A-Za-z_]+", text)}
    return sorted(words - SAME)


@pytest.mark.parametrize("lesson", CHINESE, ids=by_name)
def test_every_piece_stands_in_its_lesson(lesson: Lesson) -> None:
    code = "\n".join(cell.code for cell in ENGLISH[lesson.number].cells)
    pieces = strings(lesson.path, "zh")
    assert pieces and [piece for piece in pieces if piece not in code] == []


@pytest.mark.parametrize("lesson", CHINESE, ids=by_name)
def test_the_chinese_program_differs_in_its_texts_alone(lesson: Lesson) -> None:
    for english, chinese in pairs(lesson):
        assert without_texts(english.code) == without_texts(chinese.code), f"line {english.line}"
        lines = english.code.split("\n"), chinese.code.split("\n")
        assert len(lines[0]) == len(lines[1])  # messages point to lines of the file
        assert max(map(display_width, lines[1])) <= 100, f"line {english.line}"
    assert lesson.fingerprint == ENGLISH[lesson.number].fingerprint  # who changes the language stays where they were


@pytest.mark.parametrize("lesson", CHINESE, ids=by_name)
def test_no_printed_word_or_title_is_left_in_english(lesson: Lesson) -> None:
    """When this fails: add the piece of code to `tutorials/strings.zh.toml`, or the word to the names above."""
    for _, chinese in pairs(lesson):
        if "exercise" not in chinese.tags:
            assert english_in(chinese.code) == [], f"line {chinese.line}"


@pytest.mark.parametrize("lesson", CHINESE, ids=by_name)
def test_the_chinese_program_runs_and_gives_the_same_numbers(lesson: Lesson) -> None:
    english, chinese = (outputs(each, "zh") for each in (ENGLISH[lesson.number], lesson))
    for cell, one, other in zip(lesson.cells, english, chinese, strict=True):
        assert [each.kind for each in one] == [each.kind for each in other]
        assert "exercise" in cell.tags or numbers_in(one) == numbers_in(other), f"line {cell.line}"


def numbers_in(given: list[Output]) -> list[str]:
    printed = "\n".join(each.value for each in given if each.kind == "text")
    return re.findall(r"(?<![\w.])\d+\.\d+", printed)


def test_what_would_change_more_than_texts_is_seen() -> None:
    code = 'print("slope", slope)  # the slope\n'
    assert without_texts(code) == without_texts(code.replace('"slope"', '"斜率"'))
    assert without_texts(code) != without_texts(code.replace("slope", "斜率"))
    assert without_texts(code) != without_texts(code.replace("the slope", "斜率"))
    assert without_texts('f"{x:.2f} a"') != without_texts('f"{x:.3f} a"')
    assert without_texts('f"{x} a"') == without_texts('f"甲 {x}"')


def test_what_is_not_translated_is_seen() -> None:
    assert english_in('print("斜率", x, f"and {y:.2f}")') == ["and"]
    assert english_in('viz.curve({"two words": y}, x_title="steps", title="softmax")') == ["steps", "two", "words"]
    assert english_in('def f():\n    """A docstring stays."""\n    return "add"') == []


def small(folder: Path, table: str) -> Path:
    folder.mkdir()
    head = '# %% [markdown] lang="en"\n# # 77 Small\n#\n# **Needs** — · **Minutes** 5\n'
    (folder / "77_small.py").write_text(f'{head}# %%\nprint("total", 3)\n', encoding="utf-8")
    (folder / "strings.zh.toml").write_text(table, encoding="utf-8")
    return folder / "77_small.py"


def test_the_strings_of_a_language_stand_in_the_code_that_is_shown_and_run(tmp_path: Path) -> None:
    path = small(tmp_path / "mine", "['77']\n'\"total\"' = '\"总数\"'\n")
    english, chinese = read_lesson(path), read_lesson(path, "zh")
    assert english.cells[1].code == 'print("total", 3)' and chinese.cells[1].code == 'print("总数", 3)'
    assert outputs(chinese, "zh")[1][0].value == "总数 3"
    (path.parent / "strings.zh.toml").unlink()
    assert read_lesson(path, "zh") == english


@pytest.mark.parametrize(
    "table", ["['77']\n'a' =", "['77']\n'a' = 3", "77 = 'a'"], ids=["no value", "a number", "no table"]
)
def test_a_table_of_strings_that_cannot_be_read_is_told(table: str, tmp_path: Path) -> None:
    path = small(tmp_path / "mine", table)
    with pytest.raises(LessonError, match=r"strings\.zh\.toml"):
        read_lesson(path, "zh")
    assert read_lesson(path).cells[1].code == 'print("total", 3)'


@pytest.mark.parametrize("plain", [False, True], ids=["as it is", "--ascii"])
def test_a_session_prints_and_shows_chinese(
    plain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINYATTN_HOME", str(tmp_path / "home"))
    assert command.main(["3", "--all", "--lang", "zh", *["--ascii"] * plain]) == 0
    said = capsys.readouterr().out
    assert 'print("斜率：", x.grad)' in said and "\n斜率： 36.0\n" in said and "slope:" not in said


def test_a_terminal_without_chinese_letters_gets_every_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINYATTN_HOME", str(tmp_path / "home"))
    bytes_ = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(bytes_, encoding="ascii", write_through=True))
    assert command.main(["3", "--all", "--lang", "zh"]) == 0
    assert rb"\u659c\u7387: 36.0" in bytes_.getvalue()
