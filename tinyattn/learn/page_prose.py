"""Markdown and code of a lesson as HTML: headings, lists, tables, emphasis, formulas, coloured Python.

The same small Markdown as in a terminal (:mod:`tinyattn.learn.prose`); formulas become MathML.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from tinyattn.learn.formulas import BREAK, with_math
from tinyattn.learn.prose import blocks, items, paints

_EMPHASIS = re.compile(
    r"`([^`]+)`|\[([^\]]+)\]\(([\w./#-]+)\)|\*\*(.+?)\*\*|(?<![A-Za-z0-9*])\*(?![\s*])([^*]+?)\*(?![A-Za-z0-9*])"
)
_LESSON = re.compile(r"([Ll]essons? )(\d\d)|(第)(\d\d)(课)")
_SMALL = re.compile(r"\d+e-\d+")  # a line must not end inside 1e-5


class PageProse:
    """The prose of one page.

    Parameters
    ----------
    lessons : mapping of str to str
        Where the pages of the lessons are, by number; what names a lesson is linked.

    Attributes
    ----------
    sections : list of (id, text)
        The second-level headings so far, for a list of them.

    Examples
    --------
    >>> PageProse({}).html("The error is *about* h².")
    '<p>The error is <em>about</em> <math><msup><mi>h</mi><mn>2</mn></msup></math>.</p>'
    """

    def __init__(self, lessons: Mapping[str, str]) -> None:
        self.lessons = lessons
        self.sections: list[tuple[str, str]] = []

    def html(self, text: str) -> str:
        """Markdown as HTML."""
        return "\n".join(self._block(block) for block in blocks(text))

    def _block(self, lines: list[str]) -> str:
        first = lines[0]
        if first.startswith("#"):
            return self._heading(first)
        if first.startswith("|"):
            return self._table(lines)
        if first.startswith("    "):
            inside = "\n".join(line[4:] for line in lines)
            return f'<pre class="quoted">{html.escape(inside, quote=False)}</pre>'
        return self._list(list(items(lines)))

    def _heading(self, line: str) -> str:
        level = min(len(line) - len(line.lstrip("#")), 6)
        words = line.lstrip("#").strip()
        if level != 2:
            return f"<h{level}>{self.inline(words)}</h{level}>"
        mark = f"part-{len(self.sections) + 1}"
        self.sections.append((mark, words))
        return f'<h2 id="{mark}">{self.inline(words)}</h2>'

    def _table(self, lines: list[str]) -> str:
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
        body = [row for row in rows[1:] if set("".join(row)) - set("-: ")]
        head = "".join(f'<th scope="col">{self.inline(cell)}</th>' for cell in rows[0])
        lines = ["".join(self._cell(cell, at == 0 and not rows[0][0]) for at, cell in enumerate(row)) for row in body]
        inside = "\n".join(f"<tr>{line}</tr>" for line in lines)
        return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{inside}\n</tbody>\n</table></div>'

    def _cell(self, cell: str, is_head: bool) -> str:
        return f'<th scope="row">{self.inline(cell)}</th>' if is_head else f"<td>{self.inline(cell)}</td>"

    def _list(self, entries: list[tuple[str, str]]) -> str:
        """A list, or a paragraph; a paragraph that is a formula and no more stands by itself."""
        if entries[0][0] == "":
            words = entries[0][1]
            alone = re.fullmatch(r"<math>(.*?)</math>([.,:;]?)", self.inline(words).replace(BREAK, ""))
            if alone is not None and "</math>" not in alone[1]:
                return f'<p class="formula"><math display="block">{alone[1]}</math></p>'
            rest = "\n" + self._list(entries[1:]) if entries[1:] else ""
            return f"<p>{self.inline(words)}</p>{rest}"
        kind = "ol" if entries[0][0].strip()[0].isdigit() else "ul"
        inside = "\n".join(f"<li>{self.inline(words)}</li>" for _, words in entries)
        return f"<{kind}>\n{inside}\n</{kind}>"

    def inline(self, words: str) -> str:
        """One run of Markdown: emphasis, code, formulas, and links to the lessons that are named."""
        made, done = [], 0
        for found in _EMPHASIS.finditer(words):
            made.append(self._plain(words[done : found.start()]))
            code, link, address, strong, leaning = found.groups()
            if code:
                made.append(f"<code>{html.escape(code, quote=False)}</code>")
            elif link:
                made.append(f'<a href="{address}">{self.inline(link)}</a>')
            else:
                made.append(f"<strong>{self.inline(strong)}</strong>" if strong else f"<em>{self.inline(leaning)}</em>")
            done = found.end()
        return "".join([*made, self._plain(words[done:])])

    def _plain(self, words: str) -> str:
        return "".join(math or self._linked(html.escape(part, quote=False)) for part, math in with_math(words))

    def _linked(self, words: str) -> str:
        whole = _SMALL.sub(r'<span class="whole">\g<0></span>', words)
        return _LESSON.sub(self._link, whole)

    def _link(self, found: re.Match[str]) -> str:
        target = self.lessons.get(found[2] or found[4])
        return f'<a href="{target}">{found[0]}</a>' if target else found[0]


def plain(text: str) -> str:
    """A text in which formulas are typed as in Python, and stay so; only `code` is marked.

    >>> plain("First `x` = x - x.max().")
    'First <code>x</code> = x - x.max().'
    """
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def page_code(code: str) -> str:
    """Python as coloured HTML.

    >>> page_code("x = 1")
    'x = <span class="number">1</span>'
    """
    marks: dict[int, list[tuple[int, int, str]]] = {}
    for row, start, end, kind in paints(code):
        marks.setdefault(row, []).append((start, end, kind))
    return "\n".join(_line(line, marks.get(row, [])) for row, line in enumerate(code.split("\n")))


def _line(line: str, marks: list[tuple[int, int, str]]) -> str:
    made, done = "", 0
    for start, end, kind in marks:
        made += html.escape(line[done:start], quote=False)
        made += f'<span class="{kind}">{html.escape(line[start:end], quote=False)}</span>'
        done = end
    return made + html.escape(line[done:], quote=False)
