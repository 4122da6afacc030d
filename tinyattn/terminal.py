"""Text for a terminal: what it cannot show is said in ASCII, columns line up, a bar shows progress.

Everything that is printed for a reader goes through ``say`` or ``say_table``, so that a terminal without the
letters (an old code page, ``LC_ALL=C``) still gets every number and formula.  This module knows nothing of
tensors; it stands on the standard library.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from types import TracebackType
from typing import SupportsFloat, TextIO, TypeGuard

__all__ = ["ProgressBar", "ascii_form", "can_encode", "display_width", "say", "say_table", "table"]

_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ", "0123456789+-ni", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ₙₖᵢⱼ", "0123456789+-nkij", strict=True))
# Symbols of formulas and pictures.  What stands for a cell of a picture (boxes, bars) keeps its width of one.
_SYMBOLS = {
    "ᵀ": "^T", "⊤": "^T", "√": "sqrt", "∂": "d", "∇": "grad ", "∑": "sum", "∏": "prod", "∫": "int",
    "∞": "inf", "×": "x", "÷": "/", "±": "+-", "−": "-", "⊙": "*", "⊘": "/", "⊗": "x", "∗": "*", "∘": "o", "½": "1/2",
    "′": "'", "∼": "~", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~=", "≡": "==", "∈": "in", "∀": "for all ",
    "ℝ": "R", "→": "->", "←": "<-", "↔": "<->", "⇒": "=>", "↦": "|->", "↑": "^", "↓": "v", "▲": "^",
    "▼": "v", "▶": ">", "◀": "<", "…": "...", "–": "-", "—": "--", "‘": "'", "’": "'", "“": '"', "”": '"',
    "⟨": "<", "⟩": ">", "•": "*", "●": "*", "○": "o", "■": "#", "□": ".", "✓": "ok", "✔": "ok", "✗": "x",
    "✘": "x", "‖": "||", "░": ".", "▒": ":", "▓": "%", "█": "#", "▁": "_", "▂": ".", "▃": "-", "▄": ":",
    "▅": "=", "▆": "+", "▇": "*", "·": ".", "\u00a0": " ", "\u2009": " ",
} | _RAISED | _LOWERED
_MARKS = {"\u0304": "d{}", "\u0305": "d{}", "\u0307": "{}dot", "\u0302": "{}hat", "\u0303": "{}tilde"}


def say(text: str = "", ascii: bool = False, stream: TextIO | None = None) -> None:
    """Print a text; where the terminal cannot encode it, print its ASCII form.

    Parameters
    ----------
    text : str
        One line or several.
    ascii : bool
        Use the ASCII form in any case.
    stream : text stream, optional
        Where to print; standard output if not given.

    Examples
    --------
    >>> say("S̄ = V̄ᵀ / √d_k", ascii=True)
    dS = dV^T / sqrt(d_k)
    """
    stream = sys.stdout if stream is None else stream
    if ascii or not can_encode(text, stream):
        text = _encodable(ascii_form(text), stream)
    print(text, file=stream)


def say_table(rows: Iterable[Sequence[object]], headers: Sequence[str] = (), ascii: bool = False,
              stream: TextIO | None = None) -> None:
    """Print a table; where a cell cannot be encoded, all take their ASCII form before they are lined up.

    Examples
    --------
    >>> say_table([("Q̄", 0.5), ("K̄", -1.25)], ["∂L/∂", "largest"], ascii=True)
    dL/d  largest
    ----  -------
    dQ     0.5000
    dK    -1.2500
    """
    stream = sys.stdout if stream is None else stream
    rows = [tuple(row) for row in rows]
    if ascii or not can_encode(table(rows, headers), stream):
        ascii, headers = True, [_encodable(ascii_form(head), stream) for head in headers]
        rows = [[_encodable(ascii_form(cell), stream) if isinstance(cell, str) else cell for cell in row]
                for row in rows]
    print(table(rows, headers, ascii=ascii), file=stream)


def can_encode(text: str, stream: TextIO | None = None) -> bool:
    """Whether a stream (standard output if not given) has every letter of a text.

    Examples
    --------
    >>> import io
    >>> can_encode("∂L", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    False
    """
    try:
        text.encode(_encoding(sys.stdout if stream is None else stream))
    except UnicodeEncodeError:
        return False
    return True


def ascii_form(text: str) -> str:
    """Write the symbols of formulas and pictures in ASCII; letters of other scripts stay as they are.

    Parameters
    ----------
    text : str
        A formula, a line of a table, a picture made of boxes.

    Returns
    -------
    str
        The same, as it is typed on any keyboard.

    Examples
    --------
    >>> ascii_form("scores = Q Kᵀ / √d_k, Q̄ = ∂L/∂Q, Q̇, x² ≤ ∞, 查询 …")
    'scores = Q K^T / sqrt(d_k), dQ = dL/dQ, Qdot, x^2 <= inf, 查询 ...'
    >>> ascii_form("s̅c̅o̅r̅e̅s̅ = W̄_q ⊘ T̅1̅")
    'dscores = dW_q / dT1'
    """
    if text.isascii():
        return text
    marks = "".join(_MARKS)
    text = re.sub(r"(?<!\w)[^\W\d_](?![^\W_])", lambda one: unicodedata.normalize("NFD", one[0]), text)
    text = re.sub("(?:\\w[\u0304\u0305]){2,}", lambda word: "d" + re.sub("[\u0304\u0305]", "", word[0]), text)
    text = re.sub(rf"([^\W_]+)([{marks}])", lambda found: _MARKS[found[2]].format(found[1]), text)
    text = re.sub(r"√([^\W_]\w*(?:\[[^\]]*\])?)", r"sqrt(\1)", text)
    text = text.replace(" · ", " * ")
    text = re.sub(f"([{''.join(_RAISED)}]+)", r"^\1", text)
    text = re.sub(f"([{''.join(_LOWERED)}]+)", r"_\1", text)
    text = re.sub("(?<![Ͱ-Ͽ])[Ͱ-Ͽ](?![Ͱ-Ͽ])", lambda letter: _greek(letter[0]), text)
    return "".join(_SYMBOLS.get(sign) or _box(sign) for sign in text)


def display_width(text: str) -> int:
    """Columns that a line takes in a terminal: Chinese letters take two, combining marks none.

    Examples
    --------
    >>> display_width("saw"), display_width("看见"), display_width("S̄")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.category(sign) in ("Mn", "Me", "Cf", "Cc")
               else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def table(rows: Iterable[Sequence[object]], headers: Sequence[str] = (), *, ascii: bool = False) -> str:
    """Line up rows in columns: numbers to the right, words to the left.

    Parameters
    ----------
    rows : iterable of sequences
        Cells are numbers or texts.  The floating numbers of a column get the same number of digits; format
        them yourself where you want others.  Rows may be of different length.
    headers : sequence of str, optional
        What stands above the columns, over a line.
    ascii : bool
        Write every cell and the line in ASCII.

    Returns
    -------
    str
        The table, without a line break at its end.

    Examples
    --------
    >>> print(table([("我", 0.25, 1), ("看见", -1.5, 20)], ["word", "score", "count"]))
    word    score  count
    ────  ───────  ─────
    我     0.2500      1
    看见  -1.5000     20
    """
    body = [list(row) for row in rows]
    width = max((len(row) for row in [headers, *body]), default=0)
    columns = [[row[j] if j < len(row) else "" for row in body] for j in range(width)]
    line = "-" if ascii else "─"
    finished = []
    for j, column in enumerate(columns):
        head = headers[j] if j < len(headers) else ""
        cells = [head, *_as_texts(column)]
        cells = [(ascii_form(cell) if ascii else cell).replace("\n", " ") for cell in cells]
        wide = max(map(display_width, cells))
        right = any(map(_is_number, column)) and all(_is_number(cell) or cell == "" for cell in column)
        padded = [_pad(cell, wide, right) for cell in cells]
        finished.append([padded[0], line * wide, *padded[1:]])
    lines = ["  ".join(parts).rstrip() for parts in zip(*finished, strict=True)]
    return "\n".join(lines if headers else lines[2:])


class ProgressBar:
    """How far a long job is: one line that is drawn anew, or a line now and then where that cannot be.

    Parameters
    ----------
    total : int
        How many steps there are.
    label : str
        What is going on.
    stream : text stream, optional
        Where to draw; standard error if not given, so that results on standard output stay clean.
    ascii : bool
        Draw with ASCII signs in any case.
    clock : function, optional
        Gives seconds; another one makes a test independent of time.

    Examples
    --------
    >>> with ProgressBar(20, "training", stream=sys.stdout) as bar:
    ...     for step in range(20):
    ...         bar.step(note=f"loss {1 / (step + 1):.2f}" if step == 9 else "")
    training: 2 of 20 (10 %)
    training: 4 of 20 (20 %)
    training: 6 of 20 (30 %)
    training: 8 of 20 (40 %)
    training: 10 of 20 (50 %), loss 0.10
    training: 12 of 20 (60 %)
    training: 14 of 20 (70 %)
    training: 16 of 20 (80 %)
    training: 18 of 20 (90 %)
    training: 20 of 20 (100 %)
    """

    cells = 24
    pause = 0.1  # seconds between two drawings of the line
    patience = 30.0  # seconds after which a log gets a line in any case

    def __init__(self, total: int, label: str = "", *, stream: TextIO | None = None, ascii: bool = False,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.label, self.done, self.note = max(int(total), 0), label, 0, ""
        self._stream = sys.stderr if stream is None else stream
        self._line = bool(getattr(self._stream, "isatty", lambda: False)())
        self._ascii = ascii or not can_encode(label + "█░", self._stream)
        self._clock = clock
        self._start = self._shown_at = clock()
        self._shown = 0
        self._width = 0

    def step(self, steps: int = 1, note: str = "") -> None:
        """Go on by some steps; the note (a loss, say) stands at the end of the line."""
        self.update(self.done + steps, note)

    def update(self, done: int, note: str = "") -> None:
        """Say how many steps are done in all."""
        self.done, self.note = done, note
        now = self._clock()
        if self._line:
            due = now - self._shown_at >= self.pause or done >= self.total or self._width == 0
        else:
            due = done >= self.total or now - self._shown_at >= self.patience or self._tenths() > self._shown
        if due:
            self._show(now)

    def close(self) -> None:
        """End the line, so that what is printed next starts on its own."""
        if self._line and self._width:
            self._show(self._clock())
            self._write("\n")
            self._width = 0

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def _tenths(self) -> int:
        return 10 * self.done // self.total if self.total else 0

    def _show(self, now: float) -> None:
        self._shown_at, self._shown = now, self._tenths()
        text = self._drawn(now) if self._line else self._said()
        text = _encodable(ascii_form(text) if self._ascii or not can_encode(text, self._stream) else text,
                          self._stream)
        if self._line:
            text = _cut(text, shutil.get_terminal_size().columns - 1)
            width = display_width(text)
            self._write("\r" + text + " " * (self._width - width))
            self._width = width
        else:
            self._write(text + "\n")

    def _said(self) -> str:
        start = f"{self.label}: " if self.label else ""
        share = f" ({100 * self.done // self.total} %)" if self.total else ""
        return f"{start}{self.done} of {self.total}{share}" + (f", {self.note}" if self.note else "")

    def _drawn(self, now: float) -> str:
        share = min(self.done / self.total, 1.0) if self.total else 1.0
        full = round(self.cells * share)
        parts = [self.label, "█" * full + "░" * (self.cells - full), f"{self.done}/{self.total}"]
        spent = now - self._start
        if 0 < share < 1 and spent >= 1:
            parts.append(f"{spent * (1 - share) / share:.0f} s left")
        return "  ".join(part for part in [*parts, self.note] if part)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (BrokenPipeError, ValueError):  # nobody reads any more; the work goes on
            self._line, self._width = False, 0


def _encoding(stream: TextIO) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def _encodable(text: str, stream: TextIO) -> str:
    """Give a text that a stream takes: accents go, what is left is escaped by its number."""
    encoding = _encoding(stream)
    if can_encode(text, stream):
        return text
    plain = "".join(sign if can_encode(sign, stream) else
                    "".join(part for part in unicodedata.normalize("NFKD", sign)
                            if not unicodedata.combining(part)) for sign in text)
    return plain.encode(encoding, "backslashreplace").decode(encoding)


def _greek(letter: str) -> str:
    name = unicodedata.name(letter, "").split()
    if len(name) != 4 or name[2] != "LETTER":
        return letter
    return name[3].capitalize() if name[1] == "CAPITAL" else name[3].lower()


def _box(sign: str) -> str:
    if not "─" <= sign <= "╿":
        return sign
    return "-" if sign in "─━┄┅┈┉╌╍" else "=" if sign == "═" else "|" if sign in "│┃┆┇┊┋╎╏║" else "+"


def _is_float(cell: object) -> TypeGuard[SupportsFloat]:
    return isinstance(cell, Real) and not isinstance(cell, Integral)  # bool is among the integers


def _is_number(cell: object) -> bool:
    if not isinstance(cell, str):
        return isinstance(cell, Real) and not isinstance(cell, bool)
    try:
        float(cell.replace("−", "-").removesuffix("%"))
    except ValueError:
        return False
    return True


def _as_texts(column: Sequence[object]) -> list[str]:
    """Write the cells of a column; its floating numbers alike, with powers of ten where digits run out."""
    sizes = [abs(float(cell)) for cell in column if _is_float(cell)]
    largest = max((size for size in sizes if 0 < size < float("inf")), default=1.0)
    pattern = ".4f" if 1e-2 <= largest < 1e5 else ".2e"
    return [format(float(cell), pattern) if _is_float(cell) else str(cell) for cell in column]


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def _cut(text: str, width: int) -> str:
    while display_width(text) > max(width, 1):
        text = text[:-1]
    return text
