"""The lessons as static pages: prose, coloured code, what it gives, formulas, pictures, steppers, exercises.

A page needs no network, no script of its own and nothing beside itself; it follows the reader's light or dark
setting.  The bytes are the same in every run.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from tinyattn._viz import load_viz
from tinyattn.errors import TinyattnError
from tinyattn.learn import library
from tinyattn.learn.exercises import Exercise, find_exercise
from tinyattn.learn.lesson import Cell, Lesson
from tinyattn.learn.outputs import Output, outputs
from tinyattn.learn.page_prose import PageProse, page_code, plain
from tinyattn.learn.words import Sayings
from tinyattn.symbolic.layout import mathml

FIRST_OF_ATTENTION = "08"
_HTML_LANG = {"en": "en", "zh": "zh-Hans"}


@dataclass(frozen=True)
class Place:
    """Where a page stands: its language, and the way to the same page in the other one, if there is one."""

    lang: str
    other: str = ""

    def to_other(self, name: str) -> str:
        """The address of the same page in the other language."""
        return f"{self.other}{name}"


def book(langs: tuple[str, ...]) -> dict[str, str]:
    """All pages of the book by their path in its folder.

    Parameters
    ----------
    langs : tuple of {"en", "zh"}
        The first stands in the folder itself, the second in a folder of its name.

    Raises
    ------
    LessonError
        When a cell of a lesson fails.
    """
    pages: dict[str, str] = {}
    for at, lang in enumerate(langs):
        lessons = library.lessons(lang)
        folder = f"{lang}/" if at else ""
        other = ("" if len(langs) == 1 else "../") if at else "".join(f"{one}/" for one in langs[1:])
        place = Place(lang, other)
        pages[f"{folder}index.html"] = contents_page(lessons, place)
        for number, lesson in enumerate(lessons):
            around = (lessons[number - 1] if number else None, (*lessons, None)[number + 1])
            pages[folder + page_name(lesson)] = LessonPage(lesson, place, lessons, around).html()
    return pages


def page_name(lesson: Lesson) -> str:
    """The file of a lesson's page."""
    return f"{lesson.path.stem}.html"


def whole_page(title: str, lang: str, body: str) -> str:
    """A document in the book's dress."""
    pages = import_module(f"{load_viz().__name__}.page")
    styles = (Path(__file__).parent / "assets" / "book.css").read_text(encoding="utf-8")
    made: str = pages.document(title=title, lang=_HTML_LANG[lang], styles=styles, body=body)
    return made


# -- the contents ---------------------------------------------------------------------------------------------


def contents_page(lessons: list[Lesson], place: Place) -> str:
    """The first page: what the lessons are, in their order."""
    says = Sayings(place.lang)
    prose = PageProse({})
    hours = round(sum(lesson.minutes for lesson in lessons) / 60)
    gradients = [lesson for lesson in lessons if lesson.number < FIRST_OF_ATTENTION]
    attention = [lesson for lesson in lessons if lesson.number >= FIRST_OF_ATTENTION]
    body = (
        f"{_skip(says)}<header>{_nav(says, place, 'index.html', None, None, at_contents=True)}</header>\n"
        f'<main id="text">\n<h1>{says("book title")}</h1>\n'
        f"<p>{prose.inline(says('book about', count=len(lessons), hours=hours))}</p>\n"
        f"<p>{prose.inline(says('book how'))}</p>\n"
        f"<h2>{says('part gradients')}</h2>\n{_lesson_table(gradients, lessons, says)}\n"
        f"<h2>{says('part attention')}</h2>\n{_lesson_table(attention, lessons, says)}\n</main>\n"
    )
    return whole_page(says("book"), place.lang, body)


def _lesson_table(some: list[Lesson], lessons: list[Lesson], says: Sayings) -> str:
    names = {lesson.number: page_name(lesson) for lesson in lessons}
    prose = PageProse({})
    heads = "".join(f'<th scope="col">{says(key)}</th>' for key in ("number", "title", "minutes", "needs"))
    rows = []
    for lesson in some:
        needs = ", ".join(f'<a href="{names[need]}">{need}</a>' for need in lesson.needs) or "—"
        title = f'<a href="{page_name(lesson)}">{prose.inline(lesson.title(says.lang))}</a>'
        rows.append(
            f'<tr><td>{lesson.number}</td><th scope="row">{title}</th><td>{lesson.minutes}</td><td>{needs}</td></tr>'
        )
    return table("lessons", heads, rows)


def table(kind: str, heads: str, rows: list[str], caption: str = "") -> str:
    """A table that scrolls by itself where the window is narrow."""
    inside = "\n".join(rows)
    title = f"<caption>{caption}</caption>\n" if caption else ""
    return (
        f'<div class="wide"><table class="{kind}">\n{title}<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{inside}\n</tbody></table></div>\n"
    )


def _skip(says: Sayings) -> str:
    return f'<a class="skip" href="#text">{says("skip")}</a>\n'


def _nav(
    says: Sayings,
    place: Place,
    name: str,
    before: Lesson | None,
    after: Lesson | None,
    *,
    at_contents: bool = False,
    at_end: bool = False,
) -> str:
    """The links to the pages around; those of the end show the titles, those of the head only arrows."""
    links = [] if at_contents else [f'<a href="index.html">{says("contents")}</a>']
    for lesson, rel, key, arrow in ((before, "prev", "previous page", "←"), (after, "next", "next page", "→")):
        if lesson is None:
            continue
        words = html.escape(says(key, title=lesson.title(says.lang)))
        shown = f"{arrow} {words}" if at_end else f'{arrow} {lesson.number}<span class="unseen"> {words}</span>'
        links.append(f'<a rel="{rel}" href="{page_name(lesson)}">{shown}</a>')
    if place.other:
        code, target = _HTML_LANG["en" if says.lang == "zh" else "zh"], place.to_other(name)
        words = says("other language")
        links.append(f'<a class="language" hreflang="{code}" lang="{code}" href="{target}">{words}</a>')
    label = says("navigation end" if at_end else "navigation")
    return f'<nav aria-label="{label}">{"".join(links)}</nav>'


# -- a lesson -------------------------------------------------------------------------------------------------


class LessonPage:
    """The page of one lesson.

    Parameters
    ----------
    lesson : Lesson
    place : Place
    lessons : list of Lesson
        All of them, for links.
    around : pair of Lesson or None
        The one before and the one after.
    """

    def __init__(
        self, lesson: Lesson, place: Place, lessons: list[Lesson], around: tuple[Lesson | None, Lesson | None]
    ) -> None:
        self.lesson, self.place, self.around = lesson, place, around
        self.says = Sayings(place.lang)
        links = {one.number: page_name(one) for one in lessons if one.number != lesson.number}
        self.prose = PageProse(links)

    def html(self) -> str:
        """The whole page."""
        given = outputs(self.lesson, self.place.lang)
        cells = [self._cell(at, cell, given[at]) for at, cell in enumerate(self.lesson.cells)]
        says, name = self.says, page_name(self.lesson)
        top = f"<header>{_nav(says, self.place, name, *self.around)}</header>\n"
        end = f"<footer>{_nav(says, self.place, name, *self.around, at_end=True)}</footer>\n"
        inside = "\n".join([cells[0], self._sections(), *cells[1:]])
        body = f'{_skip(says)}{top}<main id="text">\n{inside}\n</main>\n{end}'
        title = f"{self.lesson.number} {self.lesson.title(self.place.lang)} – {says('book')}"
        return whole_page(title, self.place.lang, body)

    def _sections(self) -> str:
        entries = [f'<li><a href="#{mark}">{self.prose.inline(words)}</a></li>' for mark, words in self.prose.sections]
        heading = self.says("on this page")
        return f'<details class="sections"><summary>{heading}</summary>\n<ul>{"".join(entries)}</ul></details>'

    def _cell(self, at: int, cell: Cell, given: list[Output]) -> str:
        if not cell.is_code:
            inside = self.prose.html(cell.text(self.place.lang))
            kind = "predict" if cell.tags.get("role") == "predict" else "prose"
            other = ' lang="en"' if not {"", self.place.lang} & set(cell.texts) else ""  # not translated yet
            return f'<div class="{kind}"{other}>\n{inside}\n</div>'
        code = (
            f'<pre class="code" tabindex="0" role="group" aria-label="{self.says("code")}">'
            f"<code>{page_code(cell.code)}</code></pre>"
        )
        shown = self._given(at, given)
        if "exercise" in cell.tags:
            return self._exercise(find_exercise(cell.tags["exercise"]), code, shown)
        return f'<div class="cell" id="cell-{at + 1}">\n{code}\n{shown}</div>'

    def _given(self, at: int, given: list[Output]) -> str:
        """What a cell gave; folded where the reader was asked to guess it, but a page that needs room stays open."""
        asked = at > 0 and self.lesson.cells[at - 1].tags.get("role") == "predict"
        made = ""
        for folded, some in groupby(enumerate(given), lambda one: asked and one[1].kind != "page"):
            inside = "".join(self._output(at, number, one) for number, one in some)
            summary = f"<summary>{self.says('folded output')}</summary>"
            made += f'<details class="answer">{summary}\n{inside}</details>\n' if folded else inside
        return made

    def _output(self, at: int, number: int, output: Output) -> str:
        if output.kind == "picture":
            return self._picture(output.value, f"c{at + 1}-{number + 1}-")
        if output.kind == "page":
            frame = output.value._repr_mimebundle_()["text/html"]
            return f'<figure class="framed">\n{frame}\n<figcaption>{self.says("page here")}</figcaption></figure>\n'
        if output.kind == "derivation":
            return self._derivation(output.value)
        return self._printed(output.value)

    def _printed(self, text: str) -> str:
        return (
            f'<pre class="printed" tabindex="0" role="group" aria-label="{self.says("output")}">'
            f"<samp>{html.escape(text, quote=False)}</samp></pre>\n"
        )

    def _picture(self, picture: Any, prefix: str) -> str:
        try:
            svg = picture.svg
        except TinyattnError:  # nothing that draws is installed: the listing says the same
            return self._printed(str(picture))
        label = html.escape(picture.title)
        inside = own_ids(svg, prefix)
        return f'<figure class="picture" tabindex="0" role="group" aria-label="{label}">\n{inside}</figure>\n'

    def _derivation(self, derivation: Any) -> str:
        keys = ("formula", "rule", "shape column")
        head = "".join(f'<th scope="col">{self.says(key)}</th>' for key in keys)
        rows = []
        for step in derivation.steps:
            words = (html.escape(word, quote=False) for word in (step.rule, step.shape))
            formula = f"<math>{mathml(step.layout('matrix'))}</math>"
            rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in (formula, *words))}</tr>")
        return table("derivation", head, rows, self.says("derivation"))

    def _exercise(self, exercise: Exercise, code: str, shown: str) -> str:
        says, which = self.says, self.place.lang == "zh"
        heading = (
            f"{says('exercise heading', name=exercise.name)} · {says('exercise minutes', minutes=exercise.minutes)}"
        )
        return (
            f'<div class="exercise" id="exercise-{exercise.name.replace(".", "-")}">\n<h3>{heading}</h3>\n'
            f"<p>{self.prose.inline(exercise.task[which])}</p>\n{code}\n{shown}{''.join(self._hints(exercise))}"
            f'<p class="how">{self.prose.inline(says("exercise how", number=int(self.lesson.number)))}</p></div>'
        )

    def _hints(self, exercise: Exercise) -> Iterator[str]:
        for at, hint in enumerate(exercise.hints, 1):
            text = plain(hint[self.place.lang == "zh"])
            yield f"<details><summary>{self.says('folded hint', at=at)}</summary>\n<p>{text}</p></details>\n"


def own_ids(svg: str, prefix: str) -> str:
    """An SVG whose ids differ from those of other pictures in the page.

    >>> own_ids('<svg aria-labelledby="t d"><title id="t">id="x"</title></svg>', "p-")
    '<svg aria-labelledby="p-t p-d"><title id="p-t">id="x"</title></svg>'
    """
    return re.sub("<[^<>]+>", lambda tag: _own(tag[0], prefix), svg)


def _own(tag: str, prefix: str) -> str:
    tag = re.sub(r'(?<= )id="', f'id="{prefix}', tag)
    return re.sub(r'aria-labelledby="(\S+) (\S+)"', rf'aria-labelledby="{prefix}\1 {prefix}\2"', tag)
