"""What a teacher needs, as a folder: a plan of four lessons, figures, steppers, solutions and the usual mistakes."""

from __future__ import annotations

import html
import re
import runpy
from collections.abc import Iterator

from tinyattn._viz import load_viz
from tinyattn.learn import grading, library
from tinyattn.learn.book import whole_page
from tinyattn.learn.exercises import Exercise, exercises
from tinyattn.learn.lesson import LessonError
from tinyattn.learn.outputs import outputs
from tinyattn.learn.page_prose import PageProse, page_code, plain
from tinyattn.learn.runner import picture_name
from tinyattn.learn.words import Sayings


def teacher_folder(lang: str) -> dict[str, str]:
    """The files of the folder by their path in it.

    Parameters
    ----------
    lang : {"en", "zh"}

    Raises
    ------
    LessonError
        When a cell of a lesson fails.
    MissingToolError
        When nothing that draws is installed.
    """
    plans = parts_of_the_plan(lang)
    files = {**pictures(lang), "solutions.html": _solutions(lang)}
    for at, plan in enumerate(plans, 1):
        files[f"plan-{at}.html"] = _plan_page(plan, at, len(plans), lang)
        files[f"plan-{at}.md"] = plan
    return {"index.html": _index(plans, sorted(files), lang), **files}


def parts_of_the_plan(lang: str) -> list[str]:
    """The plan of each of the four lessons, as Markdown."""
    path = library.folder() / "teacher" / f"plan.{lang}.md"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise LessonError(f"the plan cannot be read: {error.strerror}.", str(path)) from None
    return [part.strip() + "\n" for part in re.split(r"(?m)^(?=# )", text) if part.strip()]


# -- pictures -------------------------------------------------------------------------------------------------


def pictures(lang: str) -> dict[str, str]:
    """Every picture of the lessons as SVG, every stepper as a page, and the steppers for the board."""
    files: dict[str, str] = {}
    for lesson in library.lessons(lang):
        for at, given in enumerate(outputs(lesson, lang)):
            name = picture_name(lesson, at)
            for one in given:
                if one.kind == "picture":
                    files[f"figures/{name}.svg"] = one.value.svg
                if one.kind == "page":
                    files[f"steppers/{name}.html"] = one.value.html
    board = runpy.run_path(str(library.folder() / "teacher" / "board.py"))["BOARD"]
    with grading.speaking(lang):
        for name, (compute, titles) in board.items():
            page = load_viz().step(compute(), title=titles[lang == "zh"])
            files[f"steppers/{name}.html"] = page.html
    return files


# -- pages ----------------------------------------------------------------------------------------------------


def _page(title: str, lang: str, inside: str, links: list[tuple[str, str]]) -> str:
    says = Sayings(lang)
    shown = "".join(f'<a href="{address}">{html.escape(words, quote=False)}</a>' for address, words in links)
    nav = f'<header><nav aria-label="{says("teacher")}">{shown}</nav></header>\n' if links else ""
    skip = f'<a class="skip" href="#text">{says("skip")}</a>\n' if links else ""
    return whole_page(title, lang, f'{skip}{nav}<main id="text">\n{inside}\n</main>\n')


def _title(plan: str) -> str:
    return plan.split("\n", 1)[0].lstrip("# ")


def _plan_page(plan: str, at: int, count: int, lang: str) -> str:
    says = Sayings(lang)
    links = [("index.html", says("contents"))]
    links += [(f"plan-{one}.html", f"{'←' if one < at else '→'} {one}") for one in (at - 1, at + 1) if 0 < one <= count]
    links += [("solutions.html", says("solutions"))]
    return _page(f"{_title(plan)} – {says('teacher')}", lang, PageProse({}).html(plan), links)


def _index(plans: list[str], names: list[str], lang: str) -> str:
    says, prose = Sayings(lang), PageProse({})
    inside = [f"<h1>{says('teacher')}</h1>", f"<p>{prose.inline(says('teacher about'))}</p>"]
    inside += [f"<h2>{says('plans')}</h2>", "<ul>"]
    inside += [
        f'<li><a href="plan-{at}.html">{prose.inline(_title(plan))}</a> (<a href="plan-{at}.md">Markdown</a>)</li>'
        for at, plan in enumerate(plans, 1)
    ]
    inside += ["</ul>", f'<p><a href="solutions.html">{says("solutions")}</a></p>']
    for folder, heading in (("figures/", "figures"), ("steppers/", "steppers")):
        some = [name for name in names if name.startswith(folder)]
        entries = "".join(f'<li><a href="{name}">{name.removeprefix(folder)}</a></li>' for name in some)
        inside.append(f"<h2>{says(heading)}</h2>\n<ul>{entries}</ul>")
    return _page(says("teacher"), lang, "\n".join(inside), [])


def _solutions(lang: str) -> str:
    """Every exercise with its solution, and what is said to each of the usual wrong answers."""
    says, prose = Sayings(lang), PageProse({})
    inside = [f"<h1>{says('solutions')}</h1>", f"<p>{says('solutions about')}</p>"]
    for lesson in library.lessons():
        inside.append(f"<h2>{lesson.number} {prose.inline(lesson.title(lang))}</h2>")
        for exercise in exercises(lesson.number):
            inside += _solved(exercise, prose, says)
    return _page(
        f"{says('solutions')} – {says('teacher')}", lang, "\n".join(inside), [("index.html", says("contents"))]
    )


def _solved(exercise: Exercise, prose: PageProse, says: Sayings) -> Iterator[str]:
    which = says.lang == "zh"
    minutes = says("exercise minutes", minutes=exercise.minutes)
    yield f"<h3>{says('exercise heading', name=exercise.name)} · {minutes}</h3>"
    yield f"<p>{prose.inline(exercise.task[which])}</p>"
    code = page_code(exercise.solution_source().rstrip())
    yield f'<pre class="code" tabindex="0" role="group" aria-label="{says("solution")}"><code>{code}</code></pre>'
    for heading, texts in (
        ("hints", [hint[which] for hint in exercise.hints]),
        ("mistakes", [wrong.says[which] for wrong in exercise.wrong]),
    ):
        entries = "".join(f"<li>{plain(text)}</li>" for text in texts)
        yield f"<h4>{says(heading)}</h4>\n<ol>{entries}</ol>"
