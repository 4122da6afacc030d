"""The command line of the pictures: ``tinyattn draw``, ``tinyattn step``, ``tinyattn attention``.

The file is the learner's own and is run as Python runs it; what it prints is seen, what it raises is shown
with its own lines.
"""

from __future__ import annotations

import argparse
import os
import sys
import tokenize
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from tinyattn.errors import ArgumentError, message
from tinyattn.terminal import say

if TYPE_CHECKING:
    from viz.drawing import Drawing
    from viz.page import Page

Made = TypeVar("Made")

_TARGET = "a file and a name in it: a function without arguments, or a tensor, such as lesson.py:loss"


def main_draw(argv: Sequence[str]) -> int:
    """Draw the computation graph of a tensor: ``tinyattn draw FILE.py:NAME -o graph.svg``.

    Parameters
    ----------
    argv : sequence of str
        The words after ``draw``.

    Returns
    -------
    int
        The exit code.
    """
    parser = _parser("draw", "Draw the computation graph of a tensor, or list it when no file is given.")
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", help="its ending chooses the format: .svg .png .pdf .html .dot .txt .json")
    add("--show", metavar="WORDS", help="what boxes show, with commas: op,shape,value,grad,rule,formula")
    add("--view", choices=("forward", "backward", "both"), default="forward")
    add("--direction", choices=("LR", "TB"), default="LR")
    add("--depth", type=int, metavar="N", help="fold the scopes that are nested deeper")
    add("--fold", metavar="SCOPES", default="", help="names of scopes to fold, with commas")
    add("--max-nodes", type=int, default=60, metavar="N", help="fold until there are about so many (default: 60)")
    add("--theme", choices=("auto", "light", "dark"), default="auto")
    add("--gradients", action="store_true", help="run a backward pass, so that boxes have their gradients")
    options = parser.parse_args(argv)

    def made(y: Any, space: dict[str, Any]) -> Drawing:
        from viz.graphs import draw

        shown: dict[str, Any] = {"show": options.show.split(",")} if options.show else {}
        backwards = options.gradients or options.view != "forward"
        return draw(
            _graph(y, space, backwards),
            view=options.view,
            direction=options.direction,
            depth=options.depth,
            fold=[name for name in options.fold.split(",") if name],
            max_nodes=options.max_nodes,
            theme=options.theme,
            title=options.title,
            lang=options.lang,
            **shown,
        )

    drawing = _of_target(options.target, made)
    if options.output is None:
        say(str(drawing), options.ascii)
    else:
        drawing.save(options.output)
        say(f"{options.output}: {drawing.title}", options.ascii)
    return 0


def main_step(argv: Sequence[str]) -> int:
    """Write the replay of a computation: ``tinyattn step FILE.py:NAME -o page.html --open``.

    Parameters
    ----------
    argv : sequence of str
        The words after ``step``.

    Returns
    -------
    int
        The exit code.
    """
    parser = _parser("step", "Replay a computation as a page, a vector-Jacobian product at a time.")
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", help="the page, .html, or its text, .txt; printed when not given")
    add("--open", action="store_true", help="open the page in the browser")
    add("--max-nodes", type=int, metavar="N", help="fold until there are about so many boxes")
    add("--direction", choices=("LR", "TB"), default="LR")
    options = parser.parse_args(argv)
    if options.open and options.output is None:
        parser.error("--open needs -o FILE.html")

    def made(y: Any, space: dict[str, Any]) -> Page:
        from viz.stepping import MOST_NODES, step

        limit = MOST_NODES if options.max_nodes is None else options.max_nodes
        graph, title = _graph(y, space, True), options.title
        return step(graph, title=title, lang=options.lang, max_nodes=limit, direction=options.direction)

    return _finish(_of_target(options.target, made), options)


def main_attention(argv: Sequence[str]) -> int:
    """Draw attention weights: ``tinyattn attention FILE.py:NAME --tokens "I saw a saw" -o weights.svg``.

    Parameters
    ----------
    argv : sequence of str
        The words after ``attention``.

    Returns
    -------
    int
        The exit code.
    """
    what = "Draw attention weights: a matrix, one for each head, or all steps of an attention."
    parser = _parser("attention", what)
    add = parser.add_argument
    add("--tokens", required=True, metavar="WORDS", help="the words that ask, with blanks between them")
    add("--keys", metavar="WORDS", help="the words that answer, where they are others")
    add("-o", "--output", metavar="FILE", help=".svg .png .dot .txt .json, or .html for a page to point at")
    add("--open", action="store_true", help="open the page in the browser")
    add("--theme", choices=("auto", "light", "dark"), default="auto")
    options = parser.parse_args(argv)
    page_wanted = (options.output or "").lower().endswith((".html", ".htm"))
    if options.open and not page_wanted:
        parser.error("--open needs -o FILE.html")
    tokens, keys = options.tokens.split(), options.keys.split() if options.keys else None

    def made(weights: Any, space: dict[str, Any]) -> Drawing | Page:
        if page_wanted:
            from viz.attention_pages import attention_page

            return attention_page(weights, tokens, keys, title=options.title, lang=options.lang)
        from viz.heatmap import attention

        return attention(weights, tokens, keys, title=options.title, theme=options.theme, lang=options.lang)

    return _finish(_of_target(options.target, made), options)


def _parser(name: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"tinyattn {name}", description=description)
    parser.add_argument("target", metavar="FILE.py:NAME", help=_TARGET)
    parser.add_argument("--title", metavar="TEXT")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the words (default: en)")
    parser.add_argument("--ascii", action="store_true", help="print ASCII signs only, as far as the words allow it")
    return parser


def _finish(made: Drawing | Page, options: argparse.Namespace) -> int:
    if options.output is None:
        say(made.text.rstrip("\n"), options.ascii)
        return 0
    made.save(options.output)
    say(f"{options.output}: {made.title}", options.ascii)
    if options.open:
        import webbrowser
        from pathlib import Path

        webbrowser.open(Path(options.output).resolve().as_uri())
    return 0


def _graph(y: Any, space: dict[str, Any], gradients: bool) -> Any:
    """The graph of a result, its nodes named by the variables of the file."""
    from tinyattn.graph import Graph

    return y if isinstance(y, Graph) else Graph.of(y, variables=space, gradients=gradients)


# The learner's file ---------------------------------------------------------------------------------------


def _of_target(target: str, make: Callable[[Any, dict[str, Any]], Made]) -> Made:
    """Run a file, take what a name in it stands for, and make something of it while the file is loaded."""
    path, colon, name = target.rpartition(":")
    if not colon or not path or not name.isidentifier():
        raise ArgumentError(
            message(f"{target!r} is not FILE.py:NAME.", f"What is drawn is {_TARGET}.", "Write lesson.py:loss.")
        )
    with _running(path) as space:
        if name not in space:
            found = sorted(key for key, value in space.items() if _can_be_drawn(value) and not key.startswith("_"))
            instead = f"There are {', '.join(found)}." if found else "Write def model(): ... return loss in it."
            raise ArgumentError(message(f"{path} has no {name!r} at its top level.", "", instead))
        value = space[name]
        if callable(value) and not _is_tensor(value):
            value = _called(value, path, name)
        return make(value, space)


def _can_be_drawn(value: Any) -> bool:
    return _is_tensor(value) or (callable(value) and hasattr(value, "__code__") and not value.__code__.co_argcount)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "requires_grad")


def _called(function: Any, path: str, name: str) -> Any:
    code = getattr(function, "__code__", None)
    needed = code.co_argcount - len(function.__defaults__ or ()) if code is not None else 0
    if needed > 0:
        raise ArgumentError(
            message(
                f"{name} in {path} takes {needed} arguments; it is called without any.",
                "",
                f"Write a function around it: def drawn(): return {name}(...), and name that one.",
            )
        )
    return _in_words(function, path)


@contextmanager
def _running(path: str) -> Iterator[dict[str, Any]]:
    """A file run as Python runs it: as ``__main__``, with its folder first on the path of imports."""
    try:
        with tokenize.open(path) as stream:
            source = stream.read()
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{path} cannot be read: {error}.") from None
    full = os.path.abspath(path)
    main = ModuleType("__main__")
    main.__dict__.update(__file__=full, __builtins__=__builtins__)
    before = sys.modules["__main__"], sys.path[:], sys.argv[:]
    sys.modules["__main__"], sys.argv = main, [path]
    sys.path.insert(0, os.path.dirname(full))
    try:
        _in_words(lambda: exec(compile(source, full, "exec"), main.__dict__), path)
        yield main.__dict__
    finally:
        sys.modules["__main__"], sys.path[:], sys.argv[:] = before


def _in_words(run: Callable[[], Any], path: str) -> Any:
    """Run the learner's code; what it raises is shown from its first own line on."""
    try:
        return run()
    except SystemExit as stop:
        raise ArgumentError(f"{path} ended itself (exit code {stop.code}) before anything could be drawn.") from None
    except Exception as error:
        full, trace = os.path.abspath(path), error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != full:
            trace = trace.tb_next
        lines = "".join(traceback.format_exception(type(error), error, trace)).rstrip()
        raise ArgumentError(f"{path} raised an error, so there is nothing to draw.\n{lines}") from None
