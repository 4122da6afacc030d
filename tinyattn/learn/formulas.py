"""Formulas in the prose of a lesson: find them, read them, write them as MathML.

A lesson writes ``x̄ = s · (g − Σⱼ gⱼ sⱼ)`` in plain Unicode.  Here such a line becomes the layout tree of
:mod:`tinyattn.symbolic.layout`, and that writes the MathML.  Nothing is guessed: a quotient stays a line with a
slash, a word that is not known as a name ends the formula, and what would not show the same signs in the same
order as the source is left as text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from unicodedata import normalize

from tinyattn.symbolic.layout import TRANSPOSE, Layout, escaped, mathml

FUNCTIONS = ("exp", "log", "tanh", "sin", "cos", "softmax", "relu", "diag", "mean", "max", "abs", "Var")
"""Words that are written upright, and after which a single letter may follow."""

NAMES = ("score", "scores", "weights", "hidden", "hv", "slope")
"""Words that stand for a number or a table in the lessons."""

_BELOW = dict(zip("₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₙₘₐₓₜ", "0123456789ijknmaxt"))
_ABOVE = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ˣᵀⁿᵐᵏ", "0123456789−+xTnmk"))
_RELATIONS, _OPERATORS, _BRACKETS = "=≈≠≤≥", "+−·×/±⊙→∈", {"(": ")", "[": "]"}
_LETTERS = r"[A-Za-zα-ωΑ-ΡΤ-Ω]"
_TOKEN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?(?:e[-−]?\d+)?)"
    rf"|(?P<word>{_LETTERS}+\u0304?′?(?:_[A-Za-z0-9]+)?)"
    rf"|(?P<below>[{''.join(_BELOW)}]+)|(?P<above>[{''.join(_ABOVE)}]+)"
    rf"|(?P<sign>[{_RELATIONS}{re.escape(_OPERATORS)},<>√Σ()\[\]])|(?P<blank> +)"
)
_GOES_ON = re.compile(rf"[A-Za-z0-9_-]| ?[{_RELATIONS}{re.escape(_OPERATORS)}]")
"""After a formula: a word that it would cut, or an operator whose operand could not be read."""

BREAK = "</math><math>"
"""Where a line may end inside a long formula."""

_LONG = 30


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


class _NoFormula(Exception):
    """What stands here is not part of a formula."""


def with_math(text: str) -> list[tuple[str, str]]:
    """Part a text into what is prose and what is a formula.

    Parameters
    ----------
    text : str
        Without Markdown.

    Returns
    -------
    list of (text, MathML)
        The text of each part in order; its MathML, or "" where it is prose.

    Examples
    --------
    >>> [part for part, math in with_math("The error is 6h + h²: at h = 0.1 it shows.") if math]
    ['6h + h²', 'h = 0.1']
    >>> with_math("With = instead of +=, a dog.")
    [('With = instead of +=, a dog.', '')]
    """
    text = normalize("NFD", text) if "\u0304" in normalize("NFD", text) else text
    parts: list[tuple[str, str]] = []
    at = done = 0
    while at < len(text):
        end, math = _formula_at(text, at)
        if not math:
            at = _next_start(text, at)
            continue
        parts += [(text[done:at], "")] if at > done else []
        parts.append((text[at:end], math))
        at = done = end
    return [*parts, (text[done:], "")] if done < len(text) else parts


def _next_start(text: str, at: int) -> int:
    """The next place where a formula could begin: not inside a word or a number."""
    token = _TOKEN.match(text, at)
    inside = token is not None and token.lastgroup in ("word", "number", "blank", "below", "above")
    return token.end() if token is not None and inside else at + 1


def _formula_at(text: str, start: int) -> tuple[int, str]:
    """The longest formula that begins here: its end and its MathML, or no MathML."""
    if text[start] == " " or (start and re.match(r"[\w'-]", text[start - 1], re.ASCII)):
        return start, ""
    reader = _Reader(text, start)
    tree = reader.read()
    if not _worth(text[start : reader.end]) or _GOES_ON.match(text, reader.end):
        return start, ""
    math = BREAK.join(mathml(("row", part)) for part in _in_pieces(tree, reader.end - start))
    right = shown(math) == signs(text[start : reader.end])
    return (reader.end, f"<math>{math}</math>") if right else (start, "")


def _in_pieces(tree: tuple[Layout, ...], length: int) -> list[tuple[Layout, ...]]:
    """A long formula in pieces that begin with a relation: a browser breaks lines between formulas, never in one."""
    cuts = [at for at, part in enumerate(tree) if part[0] == "op" and part[1] in _RELATIONS and length > _LONG]
    return [tree[start:end] for start, end in zip([0, *cuts], [*cuts, len(tree)])]


def _worth(text: str) -> bool:
    """Whether a formula says more than its letters do: an operator between operands, a script, a root, a bar."""
    if not re.search(f"{_LETTERS}|[√{''.join(_ABOVE)}]", text):
        return False
    scripts = "".join(_BELOW) + "".join(_ABOVE) + "√Σ_′\u0304"
    return any(sign in text for sign in scripts + _RELATIONS + _OPERATORS + "<>")


class _Reader:
    """Read a formula from a place on; ``end`` is where its last operand ends."""

    def __init__(self, text: str, start: int) -> None:
        self.text, self.at, self.end = text, start, start

    def read(self) -> tuple[Layout, ...]:
        """The parts of the longest formula that stands here; none where there is none."""
        best: tuple[Layout, ...] = ()
        parts: list[Layout] = []
        while True:
            try:
                operand = self._next(parts, inside=False)
            except _NoFormula:
                return best
            if operand:
                best, self.end = tuple(parts), self.at

    def _next(self, parts: list[Layout], inside: bool) -> bool:
        """Read one more operand or operator; whether a formula may end after it."""
        token = self._token()
        blank = token.kind == "blank"
        if blank:
            self.at = token.end
            token = self._token()
        after_operand = bool(parts) and parts[-1][0] not in ("op", "sign")
        if token.kind == "sign" and token.text in _RELATIONS + _OPERATORS + "<>,":
            return self._operator(token, parts, inside, after_operand)
        part = self._operand(token, parts)
        if blank and after_operand:
            if token.kind == "word" and not self._may_follow(token):
                raise _NoFormula
            parts.append(("space",))
        parts.append(part)
        return True

    def _may_follow(self, token: _Token) -> bool:
        """Whether a word right after an operand is a factor, not the prose going on: `n × m scores` ends at m."""
        goes_on = re.match(rf" ?[(\[√]| {_LETTERS}\b", self.text[self.at :]) is not None
        return goes_on if token.text in FUNCTIONS else token.text not in NAMES

    def _operator(self, token: _Token, parts: list[Layout], inside: bool, after_operand: bool) -> bool:
        leads = token.text in "−+" and not (parts and parts[-1][0] == "op" and parts[-1][1] in "−+")
        if (token.text == "," and not inside) or not (after_operand or leads):
            raise _NoFormula
        self.at = token.end
        is_sign = token.text == "," or not after_operand
        parts.append(("sign" if is_sign else "op", token.text))
        return False

    def _operand(self, token: _Token, parts: list[Layout]) -> Layout:
        if token.kind == "number":
            self.at = token.end
            part: Layout = ("num", token.text)
        elif token.kind == "word":
            part = self._word(token, parts)
        elif token.text == "√":
            self.at = token.end
            return ("sqrt", self._operand(self._token(), []))
        elif token.text == "Σ":
            return self._sum(token)
        elif token.text in _BRACKETS:
            part = self._bracket(token)
        else:
            raise _NoFormula
        return self._scripts(part)

    def _word(self, token: _Token, parts: list[Layout]) -> Layout:
        stem = re.sub(r"[\u0304′]|_.*", "", token.text)
        marked = stem != token.text
        if stem in FUNCTIONS and not marked:
            self.at = token.end
            return ("fn", stem)
        known = len(stem) == 1 or stem in NAMES or re.fullmatch(r"d[A-Z]|W[a-z]|[a-z]{2}ᵀ", stem)
        if not known or (token.text == "a" and not self._is_a_name(token, parts)):
            raise _NoFormula
        self.at = token.end
        name = re.sub("[\u0304′]", "", token.text)
        named: Layout = ("bar", ("id", name)) if "\u0304" in token.text else ("id", name)
        return ("sup", named, ("sign", "′")) if "′" in token.text else named

    def _is_a_name(self, token: _Token, parts: list[Layout]) -> bool:
        """Whether an `a` is no article: an operator or a bracket is beside it."""
        before = not parts and self.text[: token.start].rstrip(" ").endswith(("(", "[", *_RELATIONS, *_OPERATORS))
        near = bool(parts) and parts[-1][0] in ("op", "sign", "fn")
        after = re.match(rf" ?[{_RELATIONS}{re.escape(_OPERATORS)})\]]", self.text[token.end :])
        return before or near or after is not None

    def _sum(self, token: _Token) -> Layout:
        self.at = token.end
        below = _TOKEN.match(self.text, self.at)
        if below is None or below.lastgroup != "below":
            return ("sign", "∑")
        self.at = below.end()
        return ("sum", "Σ", ("ix", "".join(_BELOW[letter] for letter in below[0])))

    def _bracket(self, token: _Token) -> Layout:
        close = _BRACKETS[token.text]
        self.at = token.end
        parts: list[Layout] = []
        while True:
            following = self._token()
            if following.text == close and parts:
                self.at = following.end
                return ("fence", token.text, ("row", tuple(parts)), close)
            self._next(parts, inside=True)

    def _scripts(self, part: Layout) -> Layout:
        """What stands below and above right of an operand."""
        for kind, letters, layout in (("below", _BELOW, "sub"), ("above", _ABOVE, "sup")):
            found = _TOKEN.match(self.text, self.at)
            if found is None or found.lastgroup != kind:
                continue
            self.at = found.end()
            word = "".join(letters[letter] for letter in found[0])
            script: Layout = ("num", word) if word.lstrip("−+").isdigit() else ("id", word)
            part = (layout, part, TRANSPOSE if word == "T" else script)
        return part

    def _token(self) -> _Token:
        found = _TOKEN.match(self.text, self.at)
        if found is None or found.lastgroup is None:
            raise _NoFormula
        return _Token(found.lastgroup, found[0], found.start(), found.end())


# -- is it still the same? ------------------------------------------------------------------------------------

_LEVEL = {**_BELOW, **_ABOVE, "ᵀ": "⊤", "Σ": "∑", "_": "", "√": "", " ": "", "\u0304": ""}


def signs(text: str) -> str:
    """The signs of a formula in Unicode in their order, without blanks, roots and bars.

    >>> signs("sᵢ = Wᵀ √d_k")
    'si=W⊤dk'
    """
    return "".join(_LEVEL.get(letter, letter) for letter in text)


def shown(math: str) -> str:
    """The signs that MathML shows, in their order.

    >>> shown("<msup><mi>x</mi><mn>2</mn></msup><mo>&lt;</mo>")
    'x2<'
    """
    text = re.sub("<[^>]*>", "", math)
    for letter in '<>"&':
        text = text.replace(escaped(letter), letter)
    return "".join(text.split())
