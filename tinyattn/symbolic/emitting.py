"""A derivation as a NumPy program: one function that gives the loss and the gradients, to be run by itself.

Every line of the derivation is one line of code, by `np.einsum` or, where it can, by `@`, `.T` and `*`. Arrays have
one axis for each index; what is merged or kept in the learner's code is reshaped at the beginning and at the end.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Sequence
from fractions import Fraction

from tinyattn.symbolic.derivation import Lines
from tinyattn.symbolic.terms import Exact, Expr, Head, Index, Quantity, Term

LETTERS = "ijklmnopqrstuvwxyzabcdefghIJKLMNOPQRSTUVWXYZABCDEFGH"
RESERVED = frozenset(("np", "softmax", "sigmoid", "erf", "gradients", "math", *keyword.kwlist))


class Names:
    """Valid and distinct Python names for tensors and lengths."""

    def __init__(self) -> None:
        self._taken: set[str] = set(RESERVED)

    def new(self, wanted: str) -> str:
        """Give a name as close to the wanted one as Python allows."""
        word = "".join(letter if letter.isidentifier() or letter.isdigit() else "_" for letter in wanted) or "x"
        if not word.isidentifier():
            word = "_" + word
        name, count = word, 1
        while name in self._taken:
            count += 1
            name = f"{word}_{count}"
        self._taken.add(name)
        return name


class Program:
    """Writes the program of a derivation.

    Parameters
    ----------
    lines : Lines
        The derivation.
    style : {"einsum", "matrix"}
        Whether contractions are written with `np.einsum` throughout, or with `@` and `*` where that is possible.
    """

    def __init__(self, lines: Lines, style: str) -> None:
        self.lines, self.style = lines, style
        self.names = Names()
        self.used: set[str] = set()
        graph = lines.graph
        self.forward, _ = lines.in_order()
        self.called: dict[Quantity, str] = {}
        known = [index for index in lines.quantities if graph.nodes[index].op is None or index in lines.given]
        every = [lines.quantities[index] for index in known if self._mentioned(lines.quantities[index])]
        numbers = [q for q in every if graph.nodes[q.node].kind == "constant" and not q.axes]
        self.called.update((q, repr(float(graph.nodes[q.node].value))) for q in numbers)
        self.leaves = [q for q in every if q not in numbers]
        inputs = [*self.leaves, *self._parameters()]
        for quantity in (*inputs, *(line.quantity for line in self.forward)):
            if quantity not in self.called:
                self.called[quantity] = self.names.new(quantity.name)
        for line in lines.backward:
            self.called[line.quantity] = self.names.new(f"d{self.called[lines.quantities[line.node]]}")
        self.inputs = inputs
        self.sizes: dict[int, str] = {}

    def _mentioned(self, quantity: Quantity) -> bool:
        return quantity.head is not None or quantity.node in self.lines.wrt

    def _parameters(self) -> list[Quantity]:
        return [each for each in self.lines.definitions.parameters.values() if each.head is not None]

    def source(self) -> str:
        """Give the text of the program."""
        body = self._opening()
        seed = self.lines.adjoints.get(self.lines.output)
        if seed is not None and seed.head is not None:
            self.called[seed] = self.names.new(f"d{self.called[self.lines.quantities[self.lines.output]]}")
            last = self.called[self.lines.quantities[self.lines.output]]
        statements = [f"{self.called[line.quantity]} = {self.expression(line.expr, line.out)}" for line in self.forward]
        if seed is not None and seed in self.called:
            statements.append(f"{self.called[seed]} = np.ones_like({last})")
        statements += [
            f"{self.called[line.quantity]} = {self.expression(line.expr, line.out)}" for line in self.lines.backward
        ]
        result = self.called.get(self.lines.quantities[self.lines.output], "0.0")
        gradients = ", ".join(self._gradient(index) for index in self.lines.wrt if index not in self.lines.blocked)
        arguments = ", ".join(self.called[quantity] for quantity in self.inputs)
        parts = ["import numpy as np", "", *self._helpers(), "", f"def gradients({arguments}):"]
        parts += [f"    {line}" for line in (*self._lengths(), *body, *statements)]
        return "\n".join([*parts, f"    return {result}, {{{gradients}}}", ""])

    def _gradient(self, index: int) -> str:
        quantity = self.lines.quantities[index]
        line = next((each for each in self.lines.backward if each.node == index), None)
        shape = "(" + "".join(f"{self._axis(axis)}, " for axis in quantity.axes).rstrip() + ")"
        value = self.called[line.quantity] if line else "1.0"
        value = f"{value}.reshape({shape})" if any(len(axis) != 1 for axis in quantity.axes) else value
        return f"{quantity.name!r}: {value}"

    def _axis(self, axis: tuple[int, ...]) -> str:
        return " * ".join(self._size(cls) for cls in axis) or "1"

    def _size(self, cls: int) -> str:
        if cls not in self.sizes:
            self.sizes[cls] = self.names.new(self.lines.length_name(cls))
        return self.sizes[cls]

    def _opening(self) -> list[str]:
        """Give one axis to each index where the learner's arrays have merged or kept axes."""
        changed = []
        for quantity in self.inputs:
            if any(len(axis) != 1 for axis in quantity.axes):
                shape = "(" + "".join(f"{self._size(cls)}, " for cls in quantity.classes).rstrip() + ")"
                name = self.called[quantity]
                changed.append(f"{name} = np.reshape({name}, {shape})")
        return changed

    def _lengths(self) -> list[str]:
        """Read the lengths off the inputs; how a merged axis is split is a number."""
        found: dict[int, str] = {}
        for quantity in self.inputs:
            for at, axis in enumerate(quantity.axes):
                if len(axis) == 1 and axis[0] not in found:
                    found[axis[0]] = f"{self.called[quantity]}.shape[{at}]"
        lengths = self.lines.axes.lengths.length
        return [f"{name} = {found.get(cls, lengths[cls])}" for cls, name in self.sizes.items()]

    def _helpers(self) -> list[str]:
        return [line for name in sorted(self.used) for line in ("", *_HELPERS[name])]

    # -- one formula ------------------------------------------------------------------------------------------

    def expression(self, expr: Expr, out: tuple[Index, ...]) -> str:
        """Write a formula as an expression whose axes are `out`."""
        if not expr:
            return f"np.zeros({self._shape(out)})" if out else "0.0"
        written = ""
        full = max((_covered(term, out) for term in expr), default=0) == len(out)
        for at, term in enumerate(expr):
            part = self._term(term, out, full and _covered(term, out) < len(out))
            if at:
                written += f" - {part}" if term.coef < 0 else f" + {part}"
            else:
                written = f"-{part}" if term.coef < 0 else part
        return written

    def _shape(self, out: Iterable[Index]) -> str:
        return "(" + "".join(f"{self._size(index.cls)}, " for index in out).rstrip() + ")"

    def _term(self, term: Term, out: tuple[Index, ...], loose: bool = False) -> str:
        """Write a term; a loose one may leave axes of length 1 for NumPy to stretch beside a full one."""
        factors = [(self._factor(head, at, power), at) for head, at, power in term.factors if at]
        scalars = [self._factor(head, at, power) for head, at, power in term.factors if not at]
        used = {index for _, at in factors for index in at}
        for index in (*(() if loose else out), *term.dummies):
            if index not in used:
                factors.append((f"np.ones({self._size(index.cls)})", (index,)))
        kept = tuple(index for index in out if index in used) if loose else out
        core = self._contraction(factors, kept) if factors else ""
        if loose and kept and kept != out:
            core = f"{_closed(core)}[{', '.join(':' if index in used else 'None' for index in out)}]"
        above, below = self._front(term)
        parts = [part for part in (*above, *scalars, core) if part]
        return " * ".join(parts or ["1.0"]) + "".join(f" / {part}" for part in below)

    def _front(self, term: Term) -> tuple[list[str], list[str]]:
        coef = abs(Fraction(term.coef))
        above = [str(coef.numerator)] if coef.numerator != 1 else []
        below = [str(coef.denominator)] if coef.denominator != 1 else []
        for cls, power in term.sizes:
            (above if power > 0 else below).append(_to_power(self._size(cls), abs(Fraction(power))))
        return above, below

    def _contraction(self, factors: Sequence[tuple[str, tuple[Index, ...]]], out: tuple[Index, ...]) -> str:
        if len(factors) == 1 and factors[0][1] == out:
            return factors[0][0]
        if all(at == out for _, at in factors):
            return " * ".join(code for code, _ in factors)
        simple = self._as_matrices(factors, out) if self.style == "matrix" else None
        if simple is not None:
            return simple
        letters: dict[Index, str] = {}
        for _, at in factors:
            for index in at:
                letters.setdefault(index, LETTERS[len(letters)])
        left = ",".join("".join(letters[index] for index in at) for _, at in factors)
        right = "".join(letters[index] for index in out)
        return f'np.einsum("{left}->{right}", {", ".join(_bare(code) for code, _ in factors)})'

    def _as_matrices(self, factors: Sequence[tuple[str, tuple[Index, ...]]], out: tuple[Index, ...]) -> str | None:
        """Write a product of two matrices, or a transpose, in the usual way."""
        if len(factors) == 1 and len(out) == 2 and factors[0][1] == out[::-1]:
            return f"{_closed(factors[0][0])}.T"
        if len(factors) != 2 or len(out) != 2 or any(len(at) != 2 for _, at in factors):
            return None
        (one, first), (other, second) = factors
        if out[0] not in first:
            (one, first), (other, second) = (other, second), (one, first)
        shared = [index for index in first if index in second]
        if len(shared) != 1 or shared[0] in out or out[0] not in first or out[1] not in second:
            return None
        left = _closed(one) if first[0] is out[0] else f"{_closed(one)}.T"
        right = _closed(other) if second[1] is out[1] else f"{_closed(other)}.T"
        return f"{left} @ {right}"

    def _factor(self, head: Head, at: tuple[Index, ...], power: Exact) -> str:
        base = self._base(head, at)
        return base if power == 1 else _to_power(base, power)

    def _base(self, head: Head, at: tuple[Index, ...]) -> str:
        match head.kind:
            case "ref":
                return self.called[head.data]
            case "index":
                return f"np.arange({self._size(at[0].cls)})"
            case "scalar":
                return "np.pi" if head.data[1] is None else repr(head.data[1])
            case "sum":
                return f"({self.expression(head.inners[0], head.params)})"
            case "fn":
                return self._function(head)
            case "softmax":
                self.used.add("softmax")
                axes = head.data[0] if len(head.data) == 1 else head.data
                return f"softmax({self.expression(head.inners[0], head.params)}, {axes})"
            case "cond":
                left, right = (self._side(inner, head.params) for inner in head.inners)
                return f"(1.0 * ({left} {head.data} {right}))"
            case _:
                inside = self.expression(head.inners[0], (*head.params, *head.bound))
                axes = tuple(range(len(head.params), len(head.params) + len(head.bound)))
                return f"np.{head.kind}({inside}, axis={axes})"

    def _side(self, expr: Expr, out: tuple[Index, ...]) -> str:
        """Write one side of a comparison, which NumPy stretches."""
        if len(expr) == 1 and expr[0].factors and _covered(expr[0], out) < len(out):
            return (
                self._term(expr[0], out, loose=True) if expr[0].coef > 0 else f"-{self._term(expr[0], out, loose=True)}"
            )
        if len(expr) == 1 and not expr[0].factors and not expr[0].sizes:
            return str(expr[0].coef)
        return self.expression(expr, out) if expr else "0"

    def _function(self, head: Head) -> str:
        arguments = [self.expression(inner, head.params) for inner in head.inners]
        if head.data == "power":
            return f"({arguments[0]}) ** ({arguments[1]})"
        if head.data in _HELPERS:
            self.used.add(head.data)
            return f"{head.data}({arguments[0]})"
        return f"np.{head.data}({', '.join(arguments)})"


def _closed(code: str) -> str:
    """Put brackets around what an attribute or an index would take only the end of."""
    depth = 0
    for letter in code:
        depth += (letter in "([") - (letter in ")]")
        if letter == " " and depth == 0:
            return f"({code})"
    return code


def _covered(term: Term, out: tuple[Index, ...]) -> int:
    """Count the indices of the result that a term mentions."""
    used = {index for _, at, _ in term.factors for index in at}
    return sum(index in used for index in out)


def _bare(code: str) -> str:
    """Drop brackets that the commas of a call make needless."""
    return code[1:-1] if code.startswith("(") and code.endswith(")") and _closes_last(code) else code


def _closes_last(code: str) -> bool:
    depth = 0
    for at, letter in enumerate(code):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and at < len(code) - 1:
            return False
    return True


def _to_power(base: str, power: Exact) -> str:
    if power == 1:
        return base
    if power == Fraction(1, 2):
        return f"np.sqrt({_bare(base)})"
    if power == Fraction(-1, 2):
        return f"(1 / np.sqrt({_bare(base)}))"
    if power == -1:
        return f"(1 / {base})"
    return f"{base} ** {int(power) if power == int(power) and power > 0 else float(power)!r}"


_HELPERS = {
    "softmax": (
        "def softmax(x, axis):",
        "    e = np.exp(x - x.max(axis, keepdims=True))  # the shift cancels",
        "    return e / e.sum(axis, keepdims=True)",
        "",
    ),
    "sigmoid": ("def sigmoid(x):", "    return (np.tanh(x / 2) + 1) / 2", ""),
    "erf": ("def erf(x):", "    from math import erf as of_each", "    return np.vectorize(of_each)(x)", ""),
}
