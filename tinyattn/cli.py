"""The command line: ``tinyattn demo``, ``learn``, ``book``, and the pictures: ``draw``, ``step``, ``attention``.

Whatever goes wrong on purpose is said in words and without a stack trace.  Exit codes: 0; 1 when a check failed;
2 when what was asked for cannot be done; 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from tinyattn.errors import TinyattnError, missing_library
from tinyattn.terminal import say

__all__ = ["main"]

Command = Callable[[Sequence[str]], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after ``tinyattn``; those of this process when not given.

    Returns
    -------
    int
        The exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in _COMMANDS:
        return _in_words(_COMMANDS[words[0]], words[1:], "--ascii" in words)
    _parser().parse_args(words)  # --help, --version, or what is wrong
    _parser().print_help()
    return 0 if not words else 2


def _in_words(command: Command, words: Sequence[str], ascii: bool) -> int:
    """Run a command; what cannot be done is said in words."""
    try:
        code = command(words)
        sys.stdout.flush()
        return code
    except TinyattnError as error:
        text = str(error)
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        text = f"{error.filename or repr('')}: {error.strerror}" if error.filename is not None else str(error)
    except KeyboardInterrupt:
        say("\nStopped.", ascii, sys.stderr)
        return 130
    sys.stdout.flush()
    say(f"tinyattn: {text}", ascii, sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    from tinyattn import __version__

    parser = argparse.ArgumentParser(
        prog="tinyattn",
        description="Self-attention and its gradients, step by step.",
        epilog="tinyattn COMMAND --help says more.",
    )
    parser.add_argument("--version", action="version", version=f"tinyattn {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND")
    commands.add_parser("demo", help="the whole path once, on one sentence", add_help=False)
    commands.add_parser("learn", help="lessons to step through", add_help=False)
    commands.add_parser("book", help="the lessons as pages, with what they give", add_help=False)
    commands.add_parser("train", help="a tagger, or a model of characters, on your own text", add_help=False)
    commands.add_parser("check", help="is a gradient right, and if not, which rule is wrong?", add_help=False)
    commands.add_parser("draw", help="the computation graph of a tensor in your file", add_help=False)
    commands.add_parser("step", help="its replay as a page, a vector-Jacobian product at a time", add_help=False)
    commands.add_parser("attention", help="attention weights as a heat map or a page", add_help=False)
    return parser


def _demo_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tinyattn demo",
        description="One sentence through self-attention: every number, its gradient checked in four ways, a "
        "tagger with attention against one without, and pictures. Takes less than half a minute.",
    )
    add = parser.add_argument
    add("--sentence", default="I saw a saw", help='the sentence (default: "%(default)s"); Chinese needs no blanks')
    add("--word", metavar="WORD", help="the word to follow, or its place (default: the first that comes again)")
    add("--position", action="store_true", help="add positions, so that equal words can be told apart")
    add("--corpus", metavar="FILE", help="CoNLL-U file to train the tagger on (default: the sample corpus)")
    add("--vectors", metavar="FILE", help="GloVe text file for the vectors (default: random ones)")
    add("--out", default="tinyattn-demo", metavar="DIR", help="folder for the pictures (default: %(default)s)")
    add("--width", type=_width, metavar="D", help="width of the random vectors (default: 4)")
    add("--seed", type=_seed, default=0, metavar="N", help="start of all random numbers (default: %(default)s)")
    add("--ascii", action="store_true", help="print ASCII signs only, as far as the words allow it")
    return parser


def _width(text: str) -> int:
    return _whole(text, 1, 64)


def _seed(text: str) -> int:
    return _whole(text, 0, 2**32 - 1)


def _whole(text: str, least: int, most: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
    return number


def _demo(words: Sequence[str]) -> int:
    options = vars(_demo_parser().parse_args(words))
    try:
        from tinyattn.demo import Options, run

        return run(Options(**options))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("tinyattn"):
            raise
        raise missing_library(error.name, "The demonstration needs it.") from error


def _learn(words: Sequence[str]) -> int:
    from tinyattn.learn.command import main as learn

    return learn(words)


def _book(words: Sequence[str]) -> int:
    from tinyattn.learn.book_command import main as book

    return book(words)


def _train(words: Sequence[str]) -> int:
    from tinyattn.models.command import main as train

    return train(words)


def _check(words: Sequence[str]) -> int:
    from tinyattn.check.command import main as check

    return check(words)


def _picture(name: str) -> Command:
    """A command of the pictures, fetched when it is wanted and only from our own ``viz``."""

    def run(words: Sequence[str]) -> int:
        from importlib import import_module

        from tinyattn._viz import load_viz

        commands = import_module(f"{load_viz().__name__}.commands")
        code: int = getattr(commands, f"main_{name}")(words)
        return code

    return run


_COMMANDS: dict[str, Command] = {
    "demo": _demo,
    "learn": _learn,
    "book": _book,
    "train": _train,
    "check": _check,
    **{name: _picture(name) for name in ("draw", "step", "attention")},
}
