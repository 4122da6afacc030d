"""``tinyattn book``: write the lessons as pages into a folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tinyattn.files import check_folder, write_folder_whole
from tinyattn.learn.book import book
from tinyattn.learn.words import Sayings, language_of_the_locale
from tinyattn.terminal import say

_LANGUAGES = {"en": ("en",), "zh": ("zh",), "both": ("en", "zh")}


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``tinyattn book`` with these words after it.

    Returns
    -------
    int
        0.  What cannot be done is raised as a TinyattnError or an OSError, for the command line to say.
    """
    arguments = _parser().parse_args(argv)
    check_folder(arguments.out, "book")
    pages = book(_LANGUAGES[arguments.lang])
    write_folder_whole(arguments.out, pages, "book")
    size = sum(len(text.encode("utf-8")) for text in pages.values()) / 1e6
    says = Sayings(language_of_the_locale() if arguments.lang == "both" else arguments.lang)
    say(says("book written", path=f"{arguments.out}/index.html", count=len(pages), size=size), arguments.ascii)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tinyattn book",
        description="Write the lessons as pages, with what every cell gives. They open from disk, without a network.",
    )
    parser.add_argument(
        "-o", "--out", default="tinyattn-book", metavar="DIR", help="folder of the book (default: %(default)s)"
    )
    parser.add_argument(
        "--lang", choices=list(_LANGUAGES), default="both", help="English, Chinese in zh/, or one of them"
    )
    parser.add_argument("--ascii", action="store_true", help="say it in ASCII signs")
    return parser
