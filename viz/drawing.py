"""``Drawing``: one picture in every form it can be wanted in.

Text forms (DOT, listing, JSON) need no program.  SVG, PNG and PDF are laid out by Graphviz when they are
first asked for.  A file is written only when told to, and then whole or not at all.
"""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tinyattn.errors import ArgumentError, TinyattnError, message
from tinyattn.files import path_text, write_whole
from viz import data, page, render, svg

AnyTheme = Literal["auto", "light", "dark"]

_LONGEST_PRINT = 200
_TEXT_SUFFIXES = (".dot", ".gv", ".txt", ".json", ".html")


@dataclass(frozen=True)
class Parts:
    """What a kind of picture supplies; each part is made when it is first wanted."""

    dot: Callable[[], str]
    text: Callable[[], str]
    alt_text: Callable[[], str]
    data: Callable[[], dict[str, Any]]
    marks: Callable[[], Mapping[str, svg.Mark]] = dict


class Drawing:
    """A picture, made by :func:`viz.draw` or :func:`viz.attention`.

    In a notebook it shows itself.  ``save`` writes it, in the format that the file's name ends in.
    """

    def __init__(self, title: str, theme: AnyTheme, parts: Parts, lang: str = "en") -> None:
        self.title, self.lang = title, lang
        self.theme = theme
        self._parts = parts
        self._made: dict[str, str] = {}

    @property
    def dot(self) -> str:
        """The graph in Graphviz's language; the same text in every process."""
        return self._once("dot", self._parts.dot)

    @property
    def text(self) -> str:
        """The listing of a graph, one line a node, or the table of a heat map."""
        return self._once("text", self._parts.text)

    @property
    def alt_text(self) -> str:
        """What a reader who does not see the picture is told."""
        return self._once("alt_text", self._parts.alt_text)

    @property
    def json(self) -> str:
        """The picture as data, with a format number; numbers are exact where arrays are small."""
        return self._once("json", lambda: data.written(self._parts.data()))

    @property
    def svg(self) -> str:
        """The picture for a page; it follows the reader's light or dark setting unless a theme was given."""
        return self._once("svg", lambda: self.render("svg").decode("utf-8"))

    @property
    def html(self) -> str:
        """The picture and its text as a page that needs nothing beside itself."""
        return self._once("html", self._page)

    def _page(self) -> str:
        listing = html.escape(str(self))
        details = f"<details><summary>.text</summary>\n<pre>{listing}</pre></details>"
        body = f"<main>\n{self.svg}\n{details}\n</main>\n"
        styles = page.asset("picture.css")
        theme = None if self.theme == "auto" else self.theme
        return page.document(title=self.title, lang=self.lang, styles=styles, body=body, theme=theme)

    def render(self, form: str, *, renderer: str | None = None, seconds: float = render.SECONDS) -> bytes:
        """The picture as bytes.

        Parameters
        ----------
        form : {"svg", "png", "pdf", "eps"}
        renderer : str, optional
            The Graphviz program, by path or name; otherwise the one that is found.
        seconds : float
            How long the layout may take.
        """
        if not isinstance(form, str) or form not in render.FORMATS:
            raise ArgumentError(f"The picture has no form {form!r}; it has {', '.join(render.FORMATS)}.")
        drawn = render.draw(self.dot, form, renderer=renderer, seconds=seconds)
        if form != "svg":
            return drawn
        return svg.finished(
            drawn.decode("utf-8"),
            title=self.title,
            description=self.alt_text,
            marks=self._parts.marks(),
            auto=self.theme == "auto",
        ).encode("utf-8")

    def save(self, path: str | os.PathLike[str], *, renderer: str | None = None) -> None:
        """Write the picture to a file; the end of its name chooses the format.

        Parameters
        ----------
        path : str or path
            Ends in .svg, .png, .pdf, .eps, .html, .dot, .gv, .txt or .json.  A missing folder is made.
        renderer : str, optional
            The Graphviz program, by path or name; otherwise the one that is found.

        Raises
        ------
        ArgumentError
            The name has another ending.
        MissingToolError
            No Graphviz program was found, or the one that was found cannot write this format.
        """
        suffix = os.path.splitext(path_text(path))[1].lower()
        if suffix not in (*_TEXT_SUFFIXES, *(f".{form}" for form in render.FORMATS)):
            known = ", ".join([*(f".{form}" for form in render.FORMATS), *_TEXT_SUFFIXES])
            raise ArgumentError(
                message(
                    f"A picture cannot be saved as {os.fspath(path)!r}.",
                    f"The ending chooses the format, and {suffix or 'no ending'!r} is none that is known.",
                    f"End the name in one of {known}.",
                )
            )
        content = self._content(suffix, renderer)
        os.makedirs(os.path.dirname(os.path.abspath(os.fspath(path))), exist_ok=True)
        write_whole(path, content)

    def show(self) -> None:
        """Show the picture here: drawn in a notebook, as the text listing in a terminal."""
        display(self, str(self))

    def _content(self, suffix: str, renderer: str | None) -> str | bytes:
        if suffix in (".dot", ".gv"):
            return self.dot
        if suffix == ".txt":
            return self.text
        if suffix == ".json":
            return self.json
        if suffix == ".html":
            return self.html
        if suffix == ".svg" and renderer is None:
            return self.svg
        return self.render(suffix[1:], renderer=renderer)

    def _once(self, form: str, make: Callable[[], str]) -> str:
        if form not in self._made:
            self._made[form] = make()
        return self._made[form]

    def __str__(self) -> str:
        lines = self.text.rstrip("\n").split("\n")
        if len(lines) <= _LONGEST_PRINT:
            return "\n".join(lines)
        rest = len(lines) - _LONGEST_PRINT
        return "\n".join([*lines[:_LONGEST_PRINT], f"... {rest} more lines, in .text"])

    def __repr__(self) -> str:
        return f"<Drawing {self.title!r}: .save('picture.svg'), .show(), .text, .dot>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """For notebooks: the picture and its text; only the text, with the reason, where nothing draws."""
        try:
            return {"text/plain": str(self), "image/svg+xml": self.svg}
        except TinyattnError as error:
            return {"text/plain": f"{self}\n\n{error}"}
        except Exception as error:  # a notebook must show something whatever is broken
            return {"text/plain": f"{self!r}\n\nThe picture could not be drawn: {error!r}"}


def display(shown: object, text: str) -> None:
    """Show an object in a notebook, or its text in a terminal."""
    if "IPython" in sys.modules:
        from importlib import import_module

        shell = import_module("IPython").get_ipython()
        if shell is not None and getattr(shell, "kernel", None) is not None:
            import_module("IPython.display").display(shown)
            return
    from tinyattn.terminal import say

    say(text)
