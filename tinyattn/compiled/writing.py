"""Lines as the text of a Python module that needs NumPy only.

The module has the arrays that are made once, their views, the constants, a function ``run`` with one line for each
quantity, and a function with the learner's name that checks what it is given.  The same lines give the same text.
"""

from __future__ import annotations

import base64
import keyword
import math
import re
import unicodedata
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyattn.compiled.lines import Line, lines_in, numbers_of
from tinyattn.compiled.phrases import (
    CLOSED,
    HELPER_NEEDS,
    HELPERS,
    NUMPY_NAME,
    PHRASES,
    SIGN,
    VIEWS,
    no_phrase,
    number_phrase,
)
from tinyattn.compiled.storing import Stores

HEAVY = 1 << 16  # bytes
LONGEST = 88  # how long an expression of numbers may grow before it is given a name
DTYPES = {"float32": "f4", "float64": "f8", "float16": "f2", "int64": "i8", "int32": "i4", "bool": "np.bool_"}
_TAKEN = {"np", "math", "base64", "zlib", "run", "check", "EXPECTED", "results", *DTYPES.values()}
_TAKEN |= {"float", "bool", "abs", "zip"}


class Writer:
    """Writes the lines of one program.

    Parameters
    ----------
    inputs : list of Line
        Arguments of ``run``, in order.
    every : list of Line
    results : list of Line
    """

    def __init__(self, inputs: Sequence[Line], every: list[Line], results: list[Line]) -> None:
        self.inputs, self.every, self.results = inputs, every, results
        self.stores = Stores(every, results)
        self.imported: set[str] = set()
        self.helpers: dict[str, None] = {}
        self.body: list[tuple[str, str]] = []
        self.constants: dict[Any, tuple[str, Any]] = {}
        self.premade: list[tuple[str, str]] = []
        self._static: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._used: set[str] = set(_TAKEN) | set(HELPERS) | set(PHRASES) | set(NUMPY_NAME.values())
        self._text: dict[int, tuple[str, int]] = {}
        self._cells: dict[int, str] = {}
        self._unpacked: set[int] = set()
        self._checks: set[str] = set()
        self._last_number: dict[str, int] = {}
        self._count_uses()
        for line in inputs:
            self.name(line)
        self._write()

    # -- words -------------------------------------------------------------------------------------------------------

    def name(self, line: Line) -> str:
        """The variable of a line: the learner's word, or the operation's, with a number where it is taken."""
        if id(line) not in self._names:
            over = self.stores.over.get(id(line))
            if over is not None and line.name and line.name == over.name:  # a sum that grows keeps its name
                self._names[id(line)] = self.name(over)
                return self._names[id(line)]
            turned = line.op == "transpose" and not line.inputs[0].constant and not line.inputs[0].number
            word = f"{self.name(line.inputs[0])}_T" if turned else _word(line)
            self._names[id(line)] = self.fresh(line.name or line.hint or word)
        return self._names[id(line)]

    def fresh(self, wanted: str) -> str:
        """A word that nothing else has: the one that is wanted, with a number where it is taken."""
        word = re.sub(r"\W", "_", unicodedata.normalize("NFKC", wanted)) or "x"
        word = word if word.isidentifier() and not keyword.iskeyword(word) else f"_{word}"
        number, found = self._last_number.get(word, 1), word
        while found in self._used or re.fullmatch(r"b\d+", found):
            number += 1
            found = f"{word}_{number}"
        self._used.add(found)
        self._last_number[word] = number
        return found

    def np(self, name: str) -> str:
        """A function of NumPy, imported by its own name."""
        self.imported.add(name)
        return name

    def helper(self, name: str) -> str:
        """A function that is written at the top of the module."""
        self.helpers[name] = None
        self.imported.update(HELPER_NEEDS[name].split())
        return name

    def check_rows(self, numbers: Line, size: int) -> None:
        """Look once whether whole numbers that are given are rows of an array."""
        text = f"{self.helper('check_rows')}({self.operand(numbers)}, {size})"
        if text not in self._checks:
            self._checks.add(text)
            self.body.append((text, ""))

    def dtype(self, dtype: Any) -> str:
        """A short word for a type of numbers."""
        return DTYPES.get(str(np.dtype(dtype)), f"np.{np.dtype(dtype)}")

    def fixed(self, array: Any) -> str:
        """A constant array, made once."""
        array = np.asarray(array)
        key = (array.shape, str(array.dtype), array.tobytes())
        if key not in self.constants:
            self.constants[key] = self.fresh(_constant_word(array)), array
        return self.constants[key][0]

    def param(self, param: Any) -> str:
        """A parameter: a line, or a constant array."""
        if isinstance(param, Line):
            return self.number(param) if param.number else self.operand(param)
        if isinstance(param, (np.ndarray, np.generic)):
            return repr(param.item()) if param.ndim == 0 else self.fixed(param)
        return repr(param)

    def key(self, key: Any) -> str:
        """What stands between the brackets of an index."""
        parts = key if isinstance(key, tuple) else (key,)
        texts = [
            _slice(part) if isinstance(part, slice) else "..." if part is Ellipsis else self.param(part)
            for part in parts
        ]
        return ", ".join(texts) + ("," if isinstance(key, tuple) and len(parts) == 1 else "") or "()"

    def number(self, x: Line) -> str:
        """A single number as Python writes it."""
        return self._number(x)[0]

    def _number(self, x: Line) -> tuple[str, int]:
        if x.constant:
            value = x.value.item()
            if isinstance(value, float) and not math.isfinite(value):
                return f"float('{value}')", CLOSED
            return repr(value), SIGN if not isinstance(value, bool) and value < 0 else CLOSED
        return self._text.get(id(x)) or (self.name(x), CLOSED)

    def operand(self, x: Line) -> str:
        """An operand of NumPy; a single number stands in an array of its own, which NumPy takes faster."""
        if x.constant:
            return self.fixed(x.value)
        if not x.number:
            return self.name(x)
        if id(x) not in self._cells:
            cell = self._cells[id(x)] = self.fresh(f"{_word(x) if not x.name else x.name}_cell")
            self.premade.append((f"{cell} = np.empty((), {self.dtype(x.dtype)})", ""))
            self.body.append((f"{cell}.fill({self.number(x)})", ""))
        return self._cells[id(x)]

    # -- lines -------------------------------------------------------------------------------------------------------

    def _count_uses(self) -> None:
        self.uses: dict[int, int] = {}
        self.reader: dict[int, Line] = {}
        for line in self.every:
            for x in line.needs():
                self.uses[id(x)] = self.uses.get(id(x), 0) + 1
                self.reader[id(x)] = line
        for line in self.results:
            self.uses[id(line)] = self.uses.get(id(line), 0) + 2
        self.entries: dict[int, list[Line]] = {}
        for line in self.every:
            if line.number and line.op == "index" and numbers_of(line.params[0], line.inputs[0].shape):
                self.entries.setdefault(id(line.inputs[0]), []).append(line)

    def _write(self) -> None:
        for at, slot in enumerate(self.stores.slots):
            self.premade.append((f"b{at} = np.empty({slot[0]}, {self.dtype(slot[1])})", ""))
        for line in self.inputs:
            if line.shape == () and line.dtype.kind == "f":
                self.body.append((f"{self.name(line)} = float({self.name(line)})", ""))
        backward = False
        for line in self.every:
            if line.backward != backward and not backward:
                backward = True
                self.body.append(("# the way back", ""))
            if line.number:
                self._write_number(line)
            else:
                self._write_array(line)

    def _comment(self, line: Line) -> str:
        shape = str(line.shape) if line.shape else "number"
        return f"{shape}  {line.op}" + (f"  {line.place}" if ".py:" in line.place and not line.backward else "")

    def _write_number(self, line: Line) -> None:
        if line.op == "index":
            return self._unpack(line)
        array = next((x for x in line.inputs if x.shape != ()), None)
        if array is not None or line.op in ("einsum", "matmul"):
            texts = [self.operand(x) for x in line.inputs]
            text = f"float({PHRASES[line.op](self, line, texts, None)})"
            if line.dtype.kind == "b":
                text = text.replace("float", "bool", 1)
            bind = CLOSED
        else:
            pairs = [self._number(x) for x in line.inputs]
            text, bind = number_phrase(self, line, [text for text, _ in pairs], [bind for _, bind in pairs])
        reader = self.reader.get(id(line))
        same = reader is not None and reader.number and reader.op not in ("maximum", "minimum", "where", "index")
        wanted = line.name and not (reader is not None and reader.name == line.name)
        if array is None and self.uses.get(id(line)) == 1 and same and not wanted and len(text) < LONGEST:
            self._text[id(line)] = text, bind
            return
        self._put(f"{self.name(line)} = {text}", line)

    def _unpack(self, line: Line) -> None:
        """Take numbers out of an array: all of them at once, where several are wanted."""
        source = line.inputs[0]
        if id(source) in self._unpacked:
            return
        place = numbers_of(line.params[0], source.shape)
        wanted = self.entries.get(id(source), [])
        if place is None or len(place) < len(source.shape) or len(wanted) < 3 or source.size > 16 * len(wanted):
            inside = self.key(line.params[0])
            text = f"{self.operand(source)}.item({inside})" if place else f"{self.operand(source)}[{inside}].item()"
            return self._put(f"{self.name(line)} = {text}", line)
        self._unpacked.add(id(source))
        stem = self.name(source) if not source.constant else "entry"
        named = {entry.params[0]: entry for entry in wanted}
        for entry in wanted:
            entry.name = f"{stem}_{'_'.join(map(str, entry.params[0]))}"

        def nested(prefix: tuple[int, ...]) -> str:
            if len(prefix) == len(source.shape):
                return self.name(named[prefix]) if prefix in named else "_"
            inside = ", ".join(nested((*prefix, i)) for i in range(source.shape[len(prefix)]))
            inside += "," if source.shape[len(prefix)] == 1 else ""
            return f"({inside})" if prefix else inside

        self._put(f"{nested(())} = {self.operand(source)}.tolist()", line)
        return None

    def _write_array(self, line: Line) -> None:
        operands = [self.operand(x) for x in line.inputs if not (x.number and line.op in _TAKES_NUMBERS)]
        storage = self.stores.of.get(id(line))
        if id(line) in self.stores.views:
            text = VIEWS[line.op](self, line, operands, None)
            source = line.inputs[0]
            if self._fixed_memory(source) and not list(self._moving(line)):
                self._static[id(line)] = ""
                self.premade.append(
                    (f"{self.name(line)} = {self._memory(source)}{text[len(operands[0]) :]}", self._comment(line))
                )
                return
            return self._put(f"{self.name(line)} = {text}", line)
        assert storage is not None
        phrase = PHRASES.get(line.op)
        if phrase is None:
            raise no_phrase(line.op)
        over = self.stores.over.get(id(line))
        out = self.name(over) if over is not None else None if storage.new else f"b{storage.slot}"
        text = phrase(self, line, operands, out)
        first, *rest = [text] if isinstance(text, str) else text
        returns = not re.match(r"copyto\(|\w+\.fill\(", first)
        if returns:
            self._put(f"{self.name(line)} = {first}", line)
        else:
            self._put(first, line)
            self.body.append((f"{self.name(line)} = {out}", ""))
        for more in rest:
            self.body.append((more, ""))
        return None

    def _moving(self, line: Line) -> Any:
        return lines_in(line.params)

    def _fixed_memory(self, source: Line) -> bool:
        """Whether a line's numbers are at the same place in every call."""
        storage = self.stores.of.get(id(source))
        if id(source) in self.stores.views:
            return id(source) in self._static
        return source.constant or (storage is not None and not storage.new)

    def _memory(self, source: Line) -> str:
        """The array that holds a line's numbers, by the name that it has outside ``run``."""
        if source.constant or id(source) in self.stores.views:
            return self.operand(source)
        return f"b{self.stores.of[id(source)].slot}"

    def _put(self, text: str, line: Line) -> None:
        self.body.append((text, self._comment(line)))

    # -- the module ----------------------------------------------------------------------------------------------------

    def result_text(self, line: Line, seen: set[int]) -> str:
        """A result as it is handed out: an array that nobody else has."""
        if line.constant:
            return f"{self.fixed(line.value)}.copy()" if line.shape else self.number(line)
        if line.number:
            return self.number(line)
        storage = self.stores.of.get(id(line))
        own = storage is not None and storage.new and id(storage) not in seen
        if storage is not None:
            seen.add(id(storage))
        return self.name(line) if own else f"{self.name(line)}.copy()"

    def run_text(self) -> str:
        """The function ``run``."""
        seen: set[int] = set()
        results = [self.result_text(line, seen) for line in self.results]
        end = (f"return {', '.join(results)}{',' if len(results) == 1 else ''}", "")
        arguments = ", ".join(self.name(line) for line in self.inputs)
        return "\n".join([f"def run({arguments}):", *_aligned([*self.body, end], "    ")])

    def heavy(self) -> dict[str, Any]:
        """Constants that are too large to be written into a text that is run at once."""
        return {name: array for name, array in self.constants.values() if array.nbytes > HEAVY}

    def module(self, title: str, checked: str, whole: bool = True) -> str:
        """The text.

        Parameters
        ----------
        title : str
            The docstring.
        checked : str
            The function that checks what it is given.
        whole : bool
            Whether large constants are written in it.
        """
        run, left_out = self.run_text(), {} if whole else self.heavy()
        dtypes = [f"{short} = np.{long}" for long, short in DTYPES.items() if "." not in short]
        constants = [
            (f"{name} = {_constant_text(self, array)}", "")
            for name, array in self.constants.values()
            if name not in left_out
        ]
        used = "\n".join([run, checked, *(text for text, _ in [*constants, *self.premade])])
        dtypes = [text for text in dtypes if re.search(rf"\b{text[:2]}\b", used)]
        packed = "base64." in used
        imports = (
            ["import base64"] * packed
            + ["import math"] * ("math." in used + "".join(HELPERS[name] for name in self.helpers))
            + ["import zlib"] * packed
        )
        parts = [f'"""{title}\n"""', "", *imports, *([""] if imports else []), "import numpy as np"]
        if self.imported:
            parts.append(f"from numpy import {', '.join(sorted(self.imported))}")
        parts += ["", *dtypes]
        for name in self.helpers:
            parts.append(("\n" + HELPERS[name] + "\n").rstrip("\n") if name != "erf" else HELPERS[name].strip("\n"))
        if self.helpers:
            parts += ["", ""]
        if constants:
            parts += ["# constants", *_aligned(constants, "")]
        if self.premade:
            parts += [
                "# arrays that are made once and written to in every call, and views of them",
                *_aligned(self.premade, ""),
            ]
        return "\n".join([*parts, "", "", run, "", "", checked, ""])


_TAKES_NUMBERS = {"pack", "stack", "broadcast_to", "reshape", "expand_dims", "squeeze"}


def _word(line: Line) -> str:
    return _WORDS.get(line.op) or f"{line.op}_"


_WORDS = {
    "row_sums": "totals", "index": "entry", "input": "given", "matmul": "product", "multiply": "product",
    "add": "total", "subtract": "difference", "divide": "ratio", "sum": "total", "exp": "e", "reshape": "reshaped",
    "transpose": "transposed", "broadcast_to": "spread", "where": "chosen", "negative": "minus", "sqrt": "root",
    "scatter_add": "placed", "pack": "packed", "maximum": "larger", "minimum": "smaller", "power": "raised",
    "greater": "above", "less": "below", "equal": "same",
}  # fmt: skip


def _slice(part: slice) -> str:
    start, stop, step = ("" if edge is None else str(edge) for edge in (part.start, part.stop, part.step))
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


def _aligned(lines: Sequence[tuple[str, str]], indent: str) -> list[str]:
    """Put comments in one column, where they fit."""
    column = min(max((len(text) for text, comment in lines if comment and len(text) <= 60), default=0), 60)
    return [indent + (f"{text:{column}}  # {comment}" if comment else text) for text, comment in lines]


def _constant_word(array: np.ndarray) -> str:
    if array.size and (array == 1).all() and array.ndim:
        return "ones_" + "x".join(map(str, array.shape))
    if array.ndim == 0 and array.dtype.kind in "fiu":
        return "c" + re.sub(r"\W", "_", f"{array.item():.6g}")
    return "mask" if array.dtype == bool else "given"


def _constant_text(w: Writer, array: np.ndarray) -> str:
    """A constant array as it is made in the module: as a call of NumPy where there is one, written out, or packed."""
    dtype, shape = w.dtype(array.dtype), array.shape
    if array.ndim == 0:
        return f"np.array({w.number(_as_line(array))}, {dtype})"
    if array.size and (array == array.flat[0]).all() and np.isfinite(array.flat[0]):
        value = array.flat[0].item()
        return f"np.ones({shape}, {dtype})" if value == 1 else f"np.full({shape}, {value!r}, {dtype})"
    if array.dtype == bool and array.ndim == 2:
        n, m = shape
        for k in (0, m - n):
            if np.array_equal(array, np.tri(n, m, k, dtype=bool)):
                return f"np.tri({n}, {m}, {k}, dtype=bool)"
    flat = array.ravel()
    if array.dtype.kind in "iu" and array.size > 1 and np.array_equal(flat, np.arange(flat.size)):
        made = f"np.arange({flat.size}, dtype={dtype})"
        return made if array.ndim == 1 else f"{made}.reshape({shape})"
    if array.size <= 64 and (array.dtype.kind != "f" or np.isfinite(array).all()):
        made = f"np.array({array.tolist()}, {dtype})"
        return made if array.size else f"np.empty({shape}, {dtype})"
    packed = base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode("ascii")
    return f'np.frombuffer(zlib.decompress(base64.b64decode("{packed}")), {dtype}).reshape({shape})'


def _as_line(array: np.ndarray) -> Line:
    line = Line("constant", (), (), array.shape, array.dtype)
    line.value = array
    return line
