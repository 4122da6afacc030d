r"""Text files as lines: UTF-8, any line end, and errors that name the line.

The readers of CoNLL-U and GloVe text stand on this.  A line ends at ``\n`` or ``\r\n`` and nowhere else:
words may hold the other characters that Python's ``splitlines`` would cut at.  Stands on ``errors`` and ``files``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from tinyattn.errors import ArgumentError, ArgumentTypeError, DataFileError, message
from tinyattn.files import missing_file

_FOREIGN = (
    (b"\x1f\x8b", "compressed with gzip; unpack it first"),
    (b"PK\x03\x04", "a ZIP archive; unpack it first"),
    (b"BZh", "compressed with bzip2; unpack it first"),
    (b"\xff\xfe", "UTF-16 text; save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text; save it as UTF-8"),
)

Path = str | os.PathLike[str]


def file_name(path: object, parser: str) -> str:
    r"""The path as text, or a refusal that says what to write when it cannot be one.

    Parameters
    ----------
    path : str or path
        What the user gave.
    parser : str
        The function that takes the text itself, for the message.

    Returns
    -------
    str

    Examples
    --------
    >>> file_name("corpus.conllu", "parse_conllu")
    'corpus.conllu'
    >>> file_name("1\tI\t_\tPRON\n", "parse_conllu")
    Traceback (most recent call last):
        ...
    tinyattn.errors.ArgumentError: This is no file name: '1\tI\t_\tPRON\n'.
      A file name has no line break in it.
      For the text itself write parse_conllu(text).
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(
            message(f"A file name was expected, not {type(path).__name__}.", "", "Write the path as a text.")
        )
    name = os.fspath(path)
    if not isinstance(name, str):
        raise ArgumentTypeError(
            message("A file name must be text, not bytes.", "", "Write os.fsdecode(path).")
        )
    if not name:
        raise ArgumentError("'' is no name of a file.")
    if "\n" in name or "\0" in name:
        shown = name if len(name) <= 40 else name[:37] + "..."
        why = "A file name has no line break in it." if "\n" in name else "A file name has no NUL in it."
        instead = f"For the text itself write {parser}(text)." if parser and "\n" in name else ""
        raise ArgumentError(message(f"This is no file name: {shown!r}.", why, instead))
    return name


def lines_of_file(path: str, expected: str) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers, read one by one.

    Parameters
    ----------
    path : str
        The file.
    expected : str
        What the file should be, for the messages: ``"CoNLL-U text"``.

    Yields
    ------
    (int, str)
        Line number from 1, and the line without its end.

    Raises
    ------
    DataFileError
        When a line is not UTF-8, or holds NUL bytes as no text does.
    MissingFileError
        When there is none.
    OSError
        When the file cannot be read.
    """
    try:
        stream = open(path, "rb")
    except (FileNotFoundError, NotADirectoryError):
        raise missing_file(path) from None
    except IsADirectoryError:
        raise DataFileError(f"{expected} was expected; this is a folder.", path) from None
    with stream:
        start = 0
        for number, raw in enumerate(stream, 1):
            if number == 1:
                _refuse_foreign(raw, path, expected)
                raw, start = (raw[3:], 3) if raw.startswith(b"\xef\xbb\xbf") else (raw, 0)
            yield number, _decoded(raw, start, path, number, expected)
            start += len(raw)


def lines_of_text(text: str) -> Iterator[tuple[int, str]]:
    r"""The lines of a text with their numbers, by the same rules as `lines_of_file`.

    >>> list(lines_of_text("a\r\nb\n"))
    [(1, 'a'), (2, 'b')]
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(
            message(
                f"The text itself was expected, not {type(text).__name__}.", "", "Bytes: write data.decode()."
            )
        )
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[-1] == "":
        lines.pop()
    return ((number, line.removesuffix("\r")) for number, line in enumerate(lines, 1))


def _refuse_foreign(raw: bytes, path: str, expected: str) -> None:
    for magic, what in _FOREIGN:
        if raw.startswith(magic):
            raise DataFileError(f"{expected} was expected; the file is {what}.", path)


def _decoded(raw: bytes, start: int, path: str, number: int, expected: str) -> str:
    if (zero := raw.find(b"\0")) >= 0:
        raise DataFileError(
            f"{expected} was expected; byte {start + zero} of the file is NUL, so this is a binary file.",
            path,
            number,
        )
    try:
        return raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as trouble:
        raise DataFileError(
            f"{expected} in UTF-8 was expected; byte {start + trouble.start} of the file"
            f" (0x{raw[trouble.start]:02x}) does not belong to UTF-8. Save the file as UTF-8.",
            path,
            number,
        ) from None
