"""Markdown and code for a terminal: headings, lists, tables and emphasis, wrapped, in colour or without.

Only what lessons use is understood; everything else is shown as it stands.
"""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Iterator

from tinyattn.terminal import ascii_form, display_width, table

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_BLANK = "\x00"  # a blank inside `code`, where a line must not break
_NOT_FIRST = "，。、；：？！）》」』”’…%,.;:?!)]}"
_NOT_LAST = "（《「『“‘([{"
_BOLD, _ITALIC, _CODE, _OFF = "\x1b[1m", "\x1b[3m", "\x1b[36m", "\x1b[0m"


def rendered(text: str, width: int = 80, colour: bool = False, ascii: bool = False) -> str:
    """Markdown as lines of a terminal.

    Parameters
    ----------
    text : str
        Paragraphs, ``#`` headings, ``-`` and ``1.`` lists, ``|`` tables, bold, italic and code.
    width : int
        Columns; Chinese letters take two.
    colour : bool
        Whether to use the terminal's colours.
    ascii : bool
        Write tables in ASCII.

    Examples
    --------
    >>> print(rendered("Each word **asks**, and every word answers.", width=24))
    Each word asks, and
    every word answers.
    >>> print(rendered("- 查询（query）问，键（key）答。", width=20))
    - 查询（query）问，
      键（key）答。
    """
    return "\n\n".join(_block(block, width, colour, ascii) for block in blocks(text))


def blocks(text: str) -> Iterator[list[str]]:
    """Paragraphs, lists, tables and headings, parted by blank lines."""
    lines: list[str] = []
    for line in [*text.split("\n"), ""]:
        if lines and (not line.strip() or lines[0].startswith("#")):
            yield lines
            lines = []
        if line.strip():
            lines.append(line)


def _block(lines: list[str], width: int, colour: bool, ascii: bool) -> str:
    first = lines[0]
    if first.startswith("#"):
        return _heading(first, colour)
    if first.startswith("|"):
        return _table(lines, ascii)
    if first.startswith("    "):
        return "\n".join(lines)
    return "\n".join(_item(start, words, width, colour) for start, words in items(lines))


def _heading(line: str, colour: bool) -> str:
    words = _marked(line.lstrip("#").strip(), colour).replace(_BLANK, " ")
    if colour:
        return f"{_BOLD}{words}{_OFF}"
    return words + ("\n" + "=" * display_width(words) if line.startswith("# ") else "")


def _table(lines: list[str], ascii: bool) -> str:
    rows = [[_plain(cell.strip()) for cell in line.strip().strip("|").split("|")] for line in lines]
    body = [row for row in rows[1:] if set("".join(row)) - set("-: ")]
    head = rows[0]
    if ascii:
        head, body = [ascii_form(cell) for cell in head], [[ascii_form(cell) for cell in row] for row in body]
    return table(body, head, ascii=ascii)


def items(lines: list[str]) -> Iterator[tuple[str, str]]:
    """A list item by item, or one paragraph; the words of an item in one line."""
    start, words = "", ""
    for line in lines:
        found = re.match(r"(\s*(?:[-*]|\d+\.)\s+)(?=\S)", line)
        if found is None:
            words = _glued(words, line.strip())
            continue
        if words:
            yield start, words
        start, words = found[1], line[found.end() :].strip()
    yield start, words


def _glued(before: str, after: str) -> str:
    """Two lines as one; beside a Chinese letter stands no blank."""
    letters = display_width(before[-1:]) == 1 == display_width(after[:1])
    return before + (" " if letters else "") + after


def _item(start: str, words: str, width: int, colour: bool) -> str:
    indent = " " * display_width(start)
    lines = wrap(_marked(words, colour), max(width - len(indent), 16))
    return "\n".join((start if at == 0 else indent) + line for at, line in enumerate(lines))


def _marked(words: str, colour: bool) -> str:
    """Emphasis as colours, or without its signs; blanks in code become unbreakable."""
    parts = re.split(r"(`[^`]+`)", words)
    for at, part in enumerate(parts):
        if at % 2:
            inner = part.strip("`").replace(" ", _BLANK)
            parts[at] = f"{_CODE}{inner}{_OFF}" if colour else f"`{inner}`"
        else:
            bold, italic = (rf"{_BOLD}\1{_OFF}", rf"{_ITALIC}\1{_OFF}") if colour else (r"\1", r"\1")
            part = re.sub(r"\*\*(.+?)\*\*", bold, part)
            parts[at] = re.sub(r"(?<![A-Za-z0-9*])\*(?![\s*])([^*]+?)\*(?![A-Za-z0-9*])", italic, part)
    return "".join(parts)


def _plain(words: str) -> str:
    return _marked(words, colour=False).replace(_BLANK, " ")


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines; between Chinese letters a line may end anywhere, but not before a comma.

    >>> wrap("查询问，键答，值给出内容。", 10)
    ['查询问，键', '答，值给出', '内容。']
    """
    lines, line, used, gap = [], "", 0, ""
    for unit in _units(text):
        if unit == " ":
            gap = " " if line else ""
            continue
        wide = display_width(_ANSI.sub("", unit).replace(_BLANK, " "))
        if line and used + len(gap) + wide > width:
            lines.append(line)
            line, used, gap = "", 0, ""
        line, used, gap = line + gap + unit, used + len(gap) + wide, ""
    lines.append(line)
    return [line.replace(_BLANK, " ") for line in lines]


def _units(text: str) -> list[str]:
    """What stays together: a word, a Chinese letter with the punctuation that belongs to it, a blank."""
    units: list[str] = []
    for part in re.findall(r"\x1b\[[0-9;]*m| +|[^\s\x1b]", text):
        last = units[-1] if units else " "
        inside = _ANSI.sub("", last)
        if part.startswith(" "):
            units.append(" ")
        elif last == " " or not (_sticks(inside, part) or not inside):
            units.append(part)
        else:
            units[-1] = last + part
    return units


def _sticks(before: str, part: str) -> bool:
    if part.startswith("\x1b") or part in _NOT_FIRST or before[-1:] in _NOT_LAST:
        return True
    return display_width(part) < 2 and display_width(before[-1:]) < 2


def coloured(code: str) -> str:
    r"""Python in the terminal's colours; a text that is no Python stays as it is.

    >>> coloured("x = 1").replace("\x1b", "ESC")
    'x = ESC[36m1ESC[0m'
    """
    lines = code.split("\n")
    for row, start, end, kind in reversed(list(paints(code))):
        line, paint = lines[row], _PAINTS[kind]
        lines[row] = f"{line[:start]}{paint}{line[start:end]}{_OFF}{line[end:]}"
    return "\n".join(lines)


def paints(code: str) -> Iterator[tuple[int, int, int, str]]:
    """What is coloured in a piece of Python: row, first and last column, kind; nothing in a text that is no Python.

    >>> list(paints("x = 1  # one"))
    [(0, 4, 5, 'number'), (0, 7, 12, 'comment')]
    """
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for token in tokens:
        kind = _kind(token)
        if kind and token.start[0] == token.end[0]:
            yield token.start[0] - 1, token.start[1], token.end[1], kind


_KINDS = {tokenize.STRING: "string", tokenize.NUMBER: "number", tokenize.COMMENT: "comment"}
_PAINTS = {"keyword": "\x1b[35m", "string": "\x1b[32m", "number": "\x1b[36m", "comment": "\x1b[2m"}


def _kind(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return "keyword" if keyword.iskeyword(token.string) else ""
    return _KINDS.get(token.type, "")
