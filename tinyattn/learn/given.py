"""What the reader gave a lesson on the command line: a file of word vectors."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

vectors: Path | None = None
"""The file that ``tinyattn learn 8 --vectors FILE`` names."""


@contextmanager
def vectors_from(path: Path | None) -> Iterator[None]:
    """Let a file be the one that the reader gave, for a while."""
    global vectors
    before, vectors = vectors, path
    try:
        yield
    finally:
        vectors = before


def vectors_file() -> Path | None:
    """The file of word vectors that the reader gave, with ``--vectors``, to ``tinyattn learn`` or to the script.

    Returns
    -------
    Path or None
        None where none was given, as in a notebook or a test.

    Examples
    --------
    >>> from tinyattn.learn import vectors_file
    >>> print(vectors_file())
    None
    """
    if vectors is not None or not re.fullmatch(r"\d\d_\w+", Path(sys.argv[0]).stem):
        return vectors
    parser = argparse.ArgumentParser(prog=Path(sys.argv[0]).name, allow_abbrev=False)
    parser.add_argument("--vectors", type=Path, metavar="FILE", help="word vectors in GloVe's text form")
    chosen: Path | None = parser.parse_known_args()[0].vectors
    return chosen
