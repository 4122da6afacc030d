"""The teacher's folder: a plan whose minutes add up and whose numbers are true, pictures, steppers, solutions."""

from __future__ import annotations

import html
import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from pages import StrictPage, formulas

import tinyattn as ta
from tinyattn.learn import command, library, teacher
from tinyattn.learn.exercises import every_exercise, find_exercise
from tinyattn.learn.lesson import LessonError
from tinyattn.learn.outputs import outputs
from tinyattn.learn.teacher import parts_of_the_plan, teacher_folder

LANGS = ("en", "zh")


@pytest.fixture(scope="module")
def folders() -> dict[str, dict[str, str]]:
    return {lang: teacher_folder(lang) for lang in LANGS}


def shape_of(plan: str) -> list[str]:
    """What a plan is made of, without its words: headings, rows, entries, links and exercises in their order."""
    made = []
    for line in plan.split("\n"):
        kind = re.match(r"(#+ |\||- |\d\. )?", line)
        made += [(kind[0] if kind else "") + str(re.findall(r"\]\((\S+?)\)|`(\d\d\.\w+)`", line))] if line else []
    return [one for one in made if one != "[]"]


# -- the plan ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGS)
def test_there_are_four_lessons_of_45_and_of_90_minutes(lang: str) -> None:
    plans = parts_of_the_plan(lang)
    assert len(plans) == 4
    for plan in plans:
        rows = re.findall(r"^\|.*\| (\d+) \| (\d+) \|$", plan, re.MULTILINE)
        assert rows[0] == ("45", "90")
        short, long = ([int(row[which]) for row in rows[1:]] for which in (0, 1))
        assert (sum(short), sum(long)) == (45, 90) and len(rows) > 6


def test_both_languages_have_the_same_plan() -> None:
    english, chinese = (parts_of_the_plan(lang) for lang in LANGS)
    for one, other in zip(english, chinese, strict=True):
        assert shape_of(one) == shape_of(other)
        numbers = (sorted(re.findall(r"\d+\.\d+|\d{2,}", plan.replace("90", ""))) for plan in (one, other))
        assert len({tuple(some) for some in numbers}) == 1


def test_plans_that_differ_are_told_apart() -> None:
    assert shape_of("# A\n\n- [x](a.svg)") != shape_of("# 一\n\n- [图](b.svg)")
    assert shape_of("# A\n\n| a | 1 |") != shape_of("# 一")


@pytest.mark.parametrize("lang", LANGS)
def test_exercises_of_the_plan_exist_and_take_the_minutes_that_it_says(lang: str) -> None:
    text = "\n".join(parts_of_the_plan(lang))
    named = re.findall(r"`(\d\d\.\w+)`(?:[^`(（]{0,12}[(（](\d+))?", text)
    assert len(named) >= 12
    for name, minutes in named:
        assert not minutes or int(minutes) == find_exercise(name).minutes, name


@pytest.mark.parametrize("lang", LANGS)
def test_the_plan_meets_the_confusions_of_the_lessons(lang: str) -> None:
    """Each plan lists what one will hear, what is right, and what shows it; nothing is left empty."""
    for plan in parts_of_the_plan(lang):
        rows = [line.strip("|").split("|") for line in plan.split("\n") if line.count("|") == 4]
        bodies = [row for row in rows if not set("".join(row)) <= set("- ")]
        bodies = [row for row in bodies if not row[1].strip().isdigit()]
        assert len(bodies) >= 5 and all(cell.strip() for row in bodies for cell in row)


def computed() -> dict[str, list[str]]:
    """Numbers of the plan, each worked out here: by plan, as they are written."""
    x = ta.tensor(5.0, requires_grad=True)
    ta.multiply(x, x).backward()
    u = ta.tensor(2.0, requires_grad=True)
    y = (3 * u) * (3 * u)
    y.backward()
    once = u.grad.item()
    y.backward()
    s = np.exp([2.0, 1, 0]) / np.exp([2.0, 1, 0]).sum()
    truth = s * (np.array([1.0, 0, 0]) - s[0])
    K, W_q = np.array([[1.0, 1], [1, 0], [0, 1], [1, 0]]), np.array([[0.0, 1], [2, 0], [1, 0]])
    words = np.array([[1.0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]])
    scores = words @ W_q @ K.T
    table = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return {
        "1": [f"{x.grad.item():.0f}", f"{once:.0f}", f"{u.grad.item():.0f}", "120",
              f"({1 + 10 + 100}, {2 + 20 + 200})", f"{(max(1e-5, 0) - max(-1e-5, 0)) / 2e-5:.1f}"],
        "2": [f"({truth[0]:.4f}, −{-truth[1]:.4f}, −{-truth[2]:.4f})", f"{s[0] * (1 - s[0]):.4f}",
              f"{table[1, 0]:.2f}", f"{table[0, 1]:.2f}", *(f"{sum(column):.2f}" for column in table.T[[1, 2]]),
              f"{2 * 512 * 64:,}", f"{512 * 512:,}"],
        "3": [f"{1 / 16}", f"{4 * 8 * 8}", f"{np.sqrt(64):.0f}"],
        "4": ["100", "10"],
    }  # fmt: skip


PRINTED = {
    "01": [r"h = 1e-05\s+32 bits 2.6e-03\s+64 bits 1.8e-11"],
    "10": [r"sums of the columns: \[1.8412 0.865\s+0.4288 0.865 \]", "65,536 numbers, a full one 262,144"],
    "12": [r"d = 512\s+largest weight 0\.9", r"d = 512\s+largest weight: by √d 0.244\s+by d 0.068"],
    "14": ["factor forgotten  the rest shrinks by 10"],
    "15": [r"\{1: 256, 2: 256, 8: 256\}", "h = 2: rank of one head's relevance 4"],
    "16": [r"difference of the two saw: 0.605", "numbers: beside 48  added 24"],
}


@pytest.mark.parametrize("lang", LANGS)
def test_numbers_of_the_plan_are_worked_out_here(lang: str) -> None:
    plans = parts_of_the_plan(lang)
    missing = [
        (plan, number) for plan, some in computed().items() for number in some if number not in plans[int(plan) - 1]
    ]
    assert missing == []


@pytest.mark.parametrize("number", PRINTED)
def test_numbers_that_the_plan_quotes_are_what_the_lesson_prints(number: str) -> None:
    given = outputs(library.find(number), "en")
    text = "\n".join(str(one.value) for some in given for one in some if one.kind == "text")
    assert [wanted for wanted in PRINTED[number] if not re.search(wanted, text)] == []


# -- the folder -------------------------------------------------------------------------------------------------


def test_pages_are_valid_and_links_lead_somewhere(folders: dict[str, dict[str, str]]) -> None:
    for lang, files in folders.items():
        for name in [name for name in files if name.endswith(".html") and "/" not in name]:
            page = StrictPage(files[name])
            assert (page.troubles, page.loads) == ([], [])
            assert page.lang.startswith(lang)
            targets = {os.path.normpath(link.partition("#")[0]) for link in page.links if not link.startswith("#")}
            assert targets <= set(files), name
            formulas(files[name])


def test_both_languages_have_the_same_files(folders: dict[str, dict[str, str]]) -> None:
    assert set(folders["en"]) == set(folders["zh"])
    assert sum(name.endswith(".svg") for name in folders["en"]) >= 5
    assert sum(name.startswith("steppers/") for name in folders["en"]) >= 4


def test_figures_are_pictures_in_the_language_of_the_folder(folders: dict[str, dict[str, str]]) -> None:
    for files in folders.values():
        for name in [name for name in files if name.endswith(".svg")]:
            assert ET.fromstring(files[name]).tag.endswith("svg")
    assert "查询" in folders["zh"]["figures/10_weights.svg"] and "query asks" in folders["en"]["figures/10_weights.svg"]


def test_steppers_of_the_board_show_their_code_and_their_title(folders: dict[str, dict[str, str]]) -> None:
    page = folders["zh"]["steppers/03_adding_up.html"]
    assert "y = total * b" in html.unescape(page) and "<title>相加：(a + b) · b</title>" in page


def test_every_exercise_is_solved_and_every_mistake_listed(folders: dict[str, dict[str, str]]) -> None:
    for which, lang in enumerate(LANGS):
        text = html.unescape(re.sub("<[^>]*>", "", folders[lang]["solutions.html"]))
        for exercise in every_exercise():
            assert exercise.solution_source().strip() in text
            wanted = [*(hint[which] for hint in exercise.hints), *(wrong.says[which] for wrong in exercise.wrong)]
            assert all(one.replace("`", "") in text for one in wanted)


@pytest.mark.slow
def test_the_same_bytes_again(folders: dict[str, dict[str, str]]) -> None:
    assert teacher_folder("zh") == folders["zh"]


def test_no_file_knows_where_it_was_made(folders: dict[str, dict[str, str]]) -> None:
    here = str(library.folder().parent)
    assert [name for files in folders.values() for name, text in files.items() if here in text] == []


# -- the command ------------------------------------------------------------------------------------------------


def test_the_command_writes_the_folder_and_replaces_only_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(teacher, "teacher_folder", lambda lang: {"index.html": lang})
    for _ in range(2):
        assert command.main(["--teacher", "-o", "mine", "--lang", "zh"]) == 0
    assert "教师资料：mine/index.html（1个文件）" in capsys.readouterr().out
    assert (tmp_path / "mine" / "index.html").read_text() == "zh"
    (tmp_path / "mine" / "notes.txt").write_text("my own")
    assert command.main(["--teacher", "-o", "mine", "--lang", "zh"]) == 2
    assert "notes.txt" in capsys.readouterr().err


def test_a_plan_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "folder", lambda: tmp_path)
    with pytest.raises(LessonError, match="the plan cannot be read"):
        parts_of_the_plan("en")
