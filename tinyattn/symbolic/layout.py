"""One small layout tree for formulas, and four ways to write it: Unicode, ASCII, LaTeX, MathML.

A layout is a tuple whose first entry says what it is::

    ("id", "W_q")            a name             ("num", "2")             a number
    ("ix", "ia")             indices, one letter each                   ("space",)               a thin blank
    ("bar", x)               a cotangent        ("op", "⊙")              an operator, with blanks around
    ("row", (x, y, ...))     side by side       ("fence", "(", x, ")")   in brackets
    ("sub", x, y)            y below right      ("sup", x, y)            y above right
    ("frac", x, y)           a quotient         ("sqrt", x)              a root
    ("sum", "Σ", x)          a sum sign with the indices x               ("fn", "exp")  an upright word
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unicodedata import normalize

Layout = tuple[Any, ...]

SPACE: Layout = ("space",)
PLUS: Layout = ("op", "+")
MINUS: Layout = ("op", "−")
ONES: Layout = ("fn", "1")
TRANSPOSE: Layout = ("fn", "T")


def row(*parts: Layout) -> Layout:
    """Put layouts side by side."""
    return parts[0] if len(parts) == 1 else ("row", parts)


def fenced(inside: Layout, left: str = "(", right: str = ")") -> Layout:
    """Put a layout in brackets."""
    return ("fence", left, inside, right)


def spaced(factors: list[Layout]) -> Layout:
    """Put factors side by side with a space between them; of none there is 1."""
    parts: list[Layout] = []
    for factor in factors:
        parts += [SPACE, factor] if parts else [factor]
    return row(*parts) if parts else ("num", "1")


def is_sum(tree: Layout) -> bool:
    """Whether there is a plus or minus between the parts, so that a factor beside them needs brackets."""
    return tree[0] == "row" and (PLUS in tree[1] or MINUS in tree[1])


# -- text -----------------------------------------------------------------------------------------------------

_SUPERSCRIPTS = str.maketrans("0123456789-+()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺⁽⁾ⁿ")


def text(tree: Layout) -> str:
    """Write a layout as a line of Unicode text."""
    return _TEXT[tree[0]](tree)


def barred(name: str) -> str:
    """Put a bar over a name; one that goes on after `_` is barred before it.

    >>> barred("S"), barred("W_q")
    ('S̄', 'W̄_q')
    """
    stem, mark, rest = name.partition("_")
    return (
        (normalize("NFC", stem + "\u0304") if len(stem) == 1 else "".join(letter + "\u0305" for letter in stem))
        + mark
        + rest
    )


def _text_sub(tree: Layout) -> str:
    base, below = text(tree[1]), text(tree[2])
    if tree[1][0] in ("id", "bar") and "_" in base:
        base = f"({base})"
    return f"{base}_{below}" if _one_word(below) else f"{base}_({below})"


def _one_word(below: str) -> bool:
    return below.replace("'", "").replace("_", "").replace(",", "").isalnum()


def _text_sup(tree: Layout) -> str:
    base, above = text(tree[1]), text(tree[2])
    if tree[2] == TRANSPOSE:
        return base + "ᵀ"
    if tree[1][0] in ("frac", "row", "sub") and tree[1][0] != "sub":
        base = f"({base})"
    if all(letter in "0123456789-" for letter in above):
        return base + above.translate(_SUPERSCRIPTS)
    return f"{base}^{above}" if above.isalnum() or above.startswith("(") else f"{base}^({above})"


def _text_frac(tree: Layout) -> str:
    above, below = text(tree[1]), text(tree[2])
    if is_sum(tree[1]):
        above = f"({above})"
    if is_sum(tree[2]) or tree[2][0] == "row":
        below = f"({below})"
    return f"{above}/{below}" if len(above) + len(below) < 9 and " " not in above + below else f"{above} / {below}"


def _text_sqrt(tree: Layout) -> str:
    inside = text(tree[1])
    return f"√{inside}" if inside.isalnum() or (inside.startswith("(") and inside.endswith(")")) else f"√({inside})"


_TEXT: dict[str, Callable[[Layout], str]] = {
    "id": lambda tree: str(tree[1]),
    "ix": lambda tree: str(tree[1]),
    "num": lambda tree: str(tree[1]),
    "fn": lambda tree: "ᵀ" if tree == TRANSPOSE else str(tree[1]),
    "op": lambda tree: f" {tree[1]} ",
    "sign": lambda tree: str(tree[1]),
    "space": lambda tree: " ",
    "bar": lambda tree: barred(text(tree[1])),
    "row": lambda tree: "".join([_TEXT[part[0]](part) for part in tree[1]]),
    "fence": lambda tree: f"{tree[1]}{text(tree[2])}{tree[3]}",
    "sub": _text_sub,
    "sup": _text_sup,
    "frac": _text_frac,
    "sqrt": _text_sqrt,
    "sum": lambda tree: f"{tree[1]}_{text(tree[2])}" if _one_word(text(tree[2])) else f"{tree[1]}_({text(tree[2])})",
}

# -- LaTeX ----------------------------------------------------------------------------------------------------

_LATEX_SIGNS = {
    "⊙": r"\odot", "⊘": r"\oslash", "·": r"\cdot", "−": "-", "≤": r"\le", "≠": r"\ne", "Σ": r"\sum", "max": r"\max",
    "min": r"\min", "∧": r"\wedge",
}  # fmt: skip
_LATEX_WORDS: dict[str, str] = {
    "1": r"\mathbf{1}", "T": r"\top", "exp": r"\exp", "log": r"\log", "sin": r"\sin", "cos": r"\cos",
    "tanh": r"\tanh", "max": r"\max", "min": r"\min", "π": r"\pi",
}  # fmt: skip
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "^": r"\^{}",
    "~": r"\~{}",
}


def latex(tree: Layout) -> str:
    """Write a layout as LaTeX (math mode, without dollar signs)."""
    return _LATEX[tree[0]](tree)


def latex_name(name: str) -> str:
    r"""Write a name as LaTeX: the part after `_` as subscript, several letters upright.

    >>> print(latex_name("W_q"), latex_name("scores"))
    W_{q} \mathrm{scores}
    """
    stem, _, rest = name.partition("_")
    if not stem:
        return _latex_word(name)
    return _latex_word(stem) + (f"_{{{_latex_word(rest)}}}" if rest else "")


_GREEK = dict(zip(
    "alpha beta gamma delta epsilon eps zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega"
    .split(), "αβγδεεζηθκλμνξπρστφχψω", strict=True,
))  # fmt: skip


def _greek(word: str) -> tuple[str, str]:
    """Part a name such as sigma2 into the letter that it spells, if any, and the number behind it."""
    stem = word.rstrip("0123456789")
    return _GREEK.get(stem, ""), word[len(stem) :]


def _latex_word(word: str) -> str:
    letter, below = _greek(word)
    if letter:
        spelled = "epsilon" if letter == "ε" else word.removesuffix(below) if below else word
        return rf"\{spelled}" + (f"_{{{below}}}" if below else "")
    if len(word) == 1 and word.isascii() and word.isalpha():
        return word
    safe = "".join(_LATEX_SPECIAL.get(letter, letter) for letter in word)
    if word.isdigit():
        return word
    if word[:1].isalpha() and word[1:].isdigit() and word.isascii():
        return f"{word[0]}_{{{word[1:]}}}"
    return rf"\mathrm{{{safe}}}" if word.isascii() else rf"\text{{{safe}}}"


def _parted(number: str) -> tuple[str, str]:
    """Part 2e-05 into 2 and -5; the first is empty for 1, the second where there is no power of ten."""
    mantissa, _, power = number.partition("e")
    return ("" if mantissa == "1" else mantissa, str(int(power))) if power else (number, "")


def _latex_number(number: str) -> str:
    mantissa, power = _parted(number)
    return (rf"{mantissa} \cdot " if mantissa else "") + f"10^{{{power}}}" if power else mantissa


def _latex_op(tree: Layout) -> str:
    return f" {_LATEX_SIGNS.get(tree[1], tree[1])} "


def _latex_base(tree: Layout) -> str:
    base = latex(tree)
    if "_{" in base and tree[0] in ("id", "bar"):
        return f"({base})"
    return f"{{{base}}}" if tree[0] in ("row", "sup", "sub", "frac") else base


def _latex_bar(tree: Layout) -> str:
    name = str(tree[1][1]) if tree[1][0] == "id" else ""
    stem = name.partition("_")[0]
    return (
        rf"\bar{{{latex(tree[1])}}}"
        if len(name) == 1 or name in _GREEK
        else rf"\overline{{{latex(tree[1])}}}"
        if stem
        else latex(tree[1])
    )


_LATEX: dict[str, Callable[[Layout], str]] = {
    "id": lambda tree: latex_name(tree[1]),
    "ix": lambda tree: str(tree[1]),
    "num": lambda tree: _latex_number(str(tree[1])),
    "fn": lambda tree: _LATEX_WORDS.get(tree[1], rf"\operatorname{{{tree[1]}}}"),
    "op": _latex_op,
    "sign": lambda tree: _LATEX_SIGNS.get(tree[1], str(tree[1])),
    "space": lambda tree: r"\,",
    "bar": _latex_bar,
    "row": lambda tree: _latex_row([_LATEX[part[0]](part) for part in tree[1]]),
    "fence": lambda tree: rf"\left{tree[1]}{latex(tree[2])}\right{tree[3]}",
    "sub": lambda tree: f"{_latex_base(tree[1])}_{{{latex(tree[2])}}}",
    "sup": lambda tree: f"{_latex_base(tree[1])}^{{{latex(tree[2])}}}",
    "frac": lambda tree: rf"\frac{{{latex(tree[1])}}}{{{latex(tree[2])}}}",
    "sqrt": lambda tree: rf"\sqrt{{{latex(tree[1])}}}",
    "sum": lambda tree: f"{_LATEX_SIGNS.get(tree[1], tree[1])}_{{{latex(tree[2])}}} ",
}


def _latex_row(parts: list[str]) -> str:
    """Join LaTeX, keeping a command word apart from a letter that follows."""
    joined = ""
    for part in parts:
        if joined and part[:1].isalpha() and joined[-1].isalpha() and "\\" in joined[-12:].rsplit(" ", 1)[-1]:
            joined += " "
        joined += part
    return joined


# -- MathML ---------------------------------------------------------------------------------------------------

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def mathml(tree: Layout) -> str:
    """Write a layout as MathML Core, without the surrounding `math` element."""
    return _MATHML[tree[0]](tree)


def escaped(word: str) -> str:
    """Make a text safe inside HTML."""
    return word.translate(_ESCAPES)


def _mathml_name(name: str) -> str:
    stem, rest = _mathml_parts(name)
    return f"<msub><mi>{escaped(stem)}</mi><mi>{escaped(rest)}</mi></msub>" if rest else f"<mi>{escaped(stem)}</mi>"


def _mathml_parts(name: str) -> tuple[str, str]:
    """Part a name into what stands on the line and what stands below."""
    stem, _, rest = name.partition("_")
    if not stem or not rest:
        letter, rest = _greek(name)
        return (letter, rest) if letter else (name, "")
    return _greek(stem)[0] or stem, _greek(rest)[0] or rest


def _mathml_number(number: str) -> str:
    mantissa, power = _parted(number)
    if not power:
        return f"<mn>{mantissa}</mn>"
    front = f"<mn>{mantissa}</mn><mo>·</mo>" if mantissa else ""
    return f"<mrow>{front}<msup><mn>10</mn><mn>{power.replace('-', '−')}</mn></msup></mrow>"


def _letters(word: str) -> list[str]:
    """Part indices into letters; a prime stays with its letter."""
    found: list[str] = []
    for letter in word:
        if letter in "'0123456789" and found:
            found[-1] += letter
        else:
            found.append(letter)
    return found


def _mathml_sub(tree: Layout) -> str:
    base = mathml(tree[1])
    if "<msub>" in base:
        base = f"<mrow><mo>(</mo>{base}<mo>)</mo></mrow>"
    return f"<msub>{base}{_mathml_one(tree[2])}</msub>"


_BAR = "border-top:0.06em solid;padding-top:0.12em"  # an accent would touch the letter where no mathematical font is


def _mathml_bar(tree: Layout) -> str:
    stem, rest = _mathml_parts(str(tree[1][1]))
    over = f'<mrow style="{_BAR}"><mi>{escaped(stem)}</mi></mrow>'
    return f"<msub>{over}<mi>{escaped(rest)}</mi></msub>" if rest else over


def _mathml_one(tree: Layout) -> str:
    """Give exactly one element, as scripts and fractions need it."""
    inside = mathml(tree)
    return f"<mrow>{inside}</mrow>" if tree[0] in ("row", "sum", "fence", "ix") else inside


def _mathml_sum(tree: Layout) -> str:
    sign = f"<mo>{'∑' if tree[1] == 'Σ' else tree[1]}</mo>" if tree[1] == "Σ" else f"<mi>{tree[1]}</mi>"
    return f"<munder>{sign}{_mathml_one(tree[2])}</munder>"


_MATHML: dict[str, Callable[[Layout], str]] = {
    "id": lambda tree: _mathml_name(tree[1]),
    "ix": lambda tree: "".join(f"<mi>{letter}</mi>" for letter in _letters(tree[1])),
    "num": lambda tree: _mathml_number(str(tree[1])),
    "fn": lambda tree: (
        '<mi mathvariant="normal">⊤</mi>'
        if tree == TRANSPOSE
        else f'<mi mathvariant="normal">{"𝟏" if tree[1] == "1" else tree[1]}</mi>'
    ),
    "op": lambda tree: f"<mo>{escaped(tree[1])}</mo>",
    "sign": lambda tree: f"<mo>{escaped(tree[1])}</mo>",
    "space": lambda tree: '<mspace width="0.17em"></mspace>',
    "bar": _mathml_bar,
    "row": lambda tree: "".join(mathml(part) for part in tree[1]),
    "fence": lambda tree: f"<mrow><mo>{tree[1]}</mo>{mathml(tree[2])}<mo>{tree[3]}</mo></mrow>",
    "sub": _mathml_sub,
    "sup": lambda tree: f"<msup>{_mathml_one(tree[1])}{_mathml_one(tree[2])}</msup>",
    "frac": lambda tree: f"<mfrac>{_mathml_one(tree[1])}{_mathml_one(tree[2])}</mfrac>",
    "sqrt": lambda tree: f"<msqrt>{mathml(tree[1])}</msqrt>",
    "sum": _mathml_sum,
}

# -- ASCII ----------------------------------------------------------------------------------------------------


def ascii_text(tree: Layout) -> str:
    """Write a layout in ASCII: a cotangent `S̄` is `dS`, `Q̄ = 1/√d · S̄ K` becomes `dQ = 1/sqrt(d) * dS K`."""
    return in_ascii(text(_unbarred(tree)))


def _unbarred(tree: Layout) -> Layout:
    if tree[0] == "bar":
        return ("id", f"d{text(tree[1])}")
    if tree[0] == "sqrt":
        return ("id", f"sqrt({text(_unbarred(tree[1]))})")
    if tree[0] == "row":
        return ("row", tuple(map(_unbarred, tree[1])))
    return tuple(_unbarred(part) if isinstance(part, tuple) else part for part in tree)


_ASCII = str.maketrans({
    "Σ": "sum", "⊙": "*", "⊘": "/", "·": "*", "−": "-", "≤": "<=", "≥": ">=", "≠": "!=", "ᵀ": "^T", "π": "pi", "×": "x",
    "²": "^2", "³": "^3", "⁴": "^4", "¹": "1", "⁻": "^-", "√": "sqrt", "′": "'", "∧": "and",
})  # fmt: skip


def in_ascii(line: str) -> str:
    """Write the signs of a line of text in ASCII."""
    return line.translate(_ASCII)
