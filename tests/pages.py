"""Read a page strictly: what is not nested, named or linked as it should be is listed.

It is itself tested on pages that are wrong, in ``learn/test_learn_book.py``.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "source"}
LOADS = {"src", "srcset", "data", "poster", "action", "background"}
BLOCKS = {"p", "div", "ul", "ol", "table", "pre", "h1", "h2", "h3", "figure", "details", "section"}


class StrictPage(HTMLParser):
    """A page, its troubles and its contents.

    Attributes
    ----------
    troubles : list of str
    ids, links, loads, frames : list of str
        In the order of the page.
    levels : list of int
        Of the headings.
    texts : dict
        The text inside elements of a kind, one entry an element: ``texts["samp"]``.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.troubles: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.levels: list[int] = []
        self.frames: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.counts: dict[str, int] = {}
        self.lang = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.troubles += [f"<{tag}> is never closed" for tag in self._open]
        self.troubles += [f"id {one!r} twice" for one in set(self.ids) if self.ids.count(one) > 1]
        self._check_headings()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if len(known) < len(attrs):
            self.troubles.append(f"<{tag}> has an attribute twice")
        if tag in BLOCKS and "p" in self._open:
            self.troubles.append(f"<{tag}> inside <p>")
        self._note(tag, known)
        if tag not in VOID:
            self._open.append(tag)
        if tag in ("h1", "h2", "h3", "h4", "samp", "title", "pre", "summary", "math"):
            self.texts.setdefault(tag, []).append("")

    def _note(self, tag: str, known: dict[str, str | None]) -> None:
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.levels.append(int(tag[1]))
        if tag == "html":
            self.lang = known.get("lang") or ""
        if known.get("id"):
            self.ids.append(known["id"] or "")
        if tag == "a":
            self.links.append(known.get("href") or "")
        if tag == "iframe":
            self.frames.append(known.get("srcdoc") or "")
            if not known.get("title"):
                self.troubles.append("<iframe> without title")
        if tag == "img" and "alt" not in known:
            self.troubles.append("<img> without alt")
        if tag == "svg" and "math" not in self._open and not (known.get("role") and known.get("aria-labelledby")):
            self.troubles.append("<svg> without role and words")
        if tag == "th" and not known.get("scope"):
            self.troubles.append("<th> without scope")
        addresses = [value or "" for key, value in known.items() if key in LOADS or (key == "href" and tag != "a")]
        self.loads += [one for one in addresses if not one.startswith(("data:", "#"))]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.troubles.append(f"</{tag}> at line {self.getpos()[0]}, open: {self._open[-3:]}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for tag in set(self._open) & set(self.texts):
            self.texts[tag][-1] += data

    def _check_headings(self) -> None:
        before = 0
        for level in self.levels:
            if level > before + 1:
                self.troubles.append(f"h{level} after h{before}")
            before = level
        if self.counts.get("h1", 0) != 1:
            self.troubles.append(f"{self.counts.get('h1', 0)} h1")


def formulas(text: str) -> list[ET.Element]:
    """Every formula of a page, read as XML; raises where one is not well formed."""
    found, at = [], text.find("<math")
    while at >= 0:
        end = text.index("</math>", at) + len("</math>")
        found.append(ET.fromstring(text[at:end]))
        at = text.find("<math", end)
    return found
