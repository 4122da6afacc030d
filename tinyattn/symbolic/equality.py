"""Two recorded results proved to be the same function of their leaves, for all sizes: a fused operation and its parts.

Both are unfolded through the definitions of everything in between, also inside functions and parentheses, and their
difference is written out. If nothing is left, they are equal; if something is left, numbers decide whether they differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from tinyattn.errors import ArgumentTypeError
from tinyattn.symbolic.canonical import Heads, collected
from tinyattn.symbolic.certificate import Claim
from tinyattn.symbolic.derivation import Lines
from tinyattn.symbolic.proving import Expander
from tinyattn.symbolic.reading import raised
from tinyattn.symbolic.terms import Exact, Expr, Factor, Head, Index, Quantity, Term, fresh, opened, opened_whole, times
from tinyattn.symbolic.tidying import softmax_factor

Definition = tuple[tuple[Index, ...], Expr]


def prove_equal(first: Any, second: Any) -> Claim:
    """Prove that two tensors of one shape are the same function of the leaves that they were made from.

    Parameters
    ----------
    first, second : Tensor
        Two results, for example of a fused operation and of the same thing in steps.

    Returns
    -------
    Claim
        `holds` says whether it is proved; `counterexample` says what is left, or how far the numbers are apart.

    Examples
    --------
    >>> import tinyattn as ta
    >>> x = ta.tensor([1.0, 2.0], requires_grad=True, name="x")
    >>> print(prove_equal(ta.softmax(x), ta.exp(x) / ta.exp(x).sum()))
    the two results: proved for all sizes (2 terms)
    """
    from tinyattn.graph import Graph

    for which in (first, second):
        if not hasattr(which, "requires_grad"):
            raise ArgumentTypeError(f"prove_equal: a {type(which).__name__} was given; two results are needed.")
    gap = first - second
    graph = Graph.of(gap)
    leaves = [node.index for node in graph.nodes if node.op is None]
    lines = Lines(graph, leaves)
    last = lines.forward[-1]
    meanings = {line.quantity: (line.out, line.definition) for line in lines.forward[:-1]}
    same, labels = _same_arrays(lines), {index: label for label, index in enumerate(last.out)}
    given = ""
    for known, words in _givens(lines):
        given = words
        unfolded = Unfolding(lines.heads, meanings | known, same).of(last.definition)
        terms = tuple(Expander(lines.heads, {}).expand(unfolded))
        rest = collected(terms, labels)
        if not rest:
            break
    op = graph.nodes[graph.nodes[last.node].inputs[0]].op_name
    message = "" if not rest else _numbers(first, second, len(rest))
    return Claim("the two results", op, last.node, not rest, len(terms), message, given)


def _same_arrays(lines: Lines) -> dict[Quantity, Quantity]:
    """Find parameter arrays with the same numbers, such as one mask that two operations were given."""
    first: dict[object, Quantity] = {}
    same: dict[Quantity, Quantity] = {}
    for (node, name), quantity in lines.definitions.parameters.items():
        array = lines.axes.arrays[node][name]
        key = (quantity.classes, array.dtype.kind, array.tobytes())
        same[quantity] = first.setdefault(key, quantity)
    return same


def _givens(lines: Lines) -> Iterator[tuple[dict[Quantity, Definition], str]]:
    """Give what recorded arrays may be taken for at every size, and say it in words: nothing to begin with."""
    yield {}, ""
    hot, said = _one_hot(lines)
    if hot:
        yield hot, said
    yield from _masks(lines)


def _one_hot(lines: Lines) -> tuple[dict[Quantity, Definition], str]:
    """Find arrays that are 1 at the class which an array of whole numbers names, and 0 elsewhere."""
    arrays: list[tuple[Quantity, Any]] = [
        (quantity, lines.axes.arrays[node][name]) for (node, name), quantity in lines.definitions.parameters.items()
    ]
    for index, quantity in lines.quantities.items():
        if lines.graph.nodes[index].kind in ("input", "constant"):
            arrays.append((quantity, lines.graph.nodes[index].value))
    found: dict[Quantity, Definition] = {}
    words: list[str] = []
    for hot, array in arrays:
        for chosen, numbers in arrays:
            same_rows = hot.classes[:-1] == chosen.classes and numbers.dtype.kind in "iu" and hot not in found
            if same_rows and array.ndim and (array == (numbers[..., None] == np.arange(array.shape[-1]))).all():
                out = tuple(map(Index, hot.classes))
                named = Term(factors=((lines.heads.of(chosen), out[:-1], 1),))
                counted = Term(factors=(lines.heads.index(out[-1]),))
                found[hot] = (out, (Term(factors=(lines.heads.make("cond", "==", ((named,), (counted,))),)),))
                words.append(f"{hot.name} of node {hot.node} is 1 at {chosen.name} and 0 elsewhere")
    return found, ", ".join(words)


def _masks(lines: Lines) -> Iterator[tuple[dict[Quantity, Definition], str]]:
    """Read each mask as what it may be made of, a smaller mask or being causal or both, by the recorded numbers."""
    masks = [(quantity, lines.axes.arrays[node][name] != 0) for (node, name), quantity in
             lines.definitions.parameters.items() if quantity.boolean]  # fmt: skip
    masks.sort(key=lambda each: len(each[0].classes))
    for causal in (False, True):
        found: dict[Quantity, Definition] = {}
        words: list[str] = []
        for place, (mask, array) in enumerate(masks):
            for other, smaller in (*masks[:place], (None, np.True_)):
                made = _made_of(lines.heads, mask, array, other, smaller, causal) if other not in found else None
                if made is not None:
                    found[mask] = made
                    names = [f"{other.name} of node {other.node}"] if other is not None else []
                    words.append(f"{mask.name} of node {mask.node} is {' and '.join(names + ['causal'] * causal)}")
                    break
        if found:
            yield found, ", ".join(words)


def _made_of(
    heads: Heads, mask: Quantity, array: Any, other: Quantity | None, smaller: Any, causal: bool
) -> Definition | None:
    """Give a mask as another one that is spread, or cut by j - m <= i - n on its last two axes; None if it is not."""
    places = [tuple(map(Index, axis)) for axis in mask.axes]
    out = tuple(index for axis in places for index in axis)
    factors: list[Factor] = []
    if other is not None:
        pairs = list(zip(other.axes[::-1], places[::-1], strict=False))[::-1]  # the last axes stand below each other
        at = tuple(index for axis, own in pairs if axis for index in own)
        if other.classes != tuple(index.cls for index in at) or len(other.axes) > len(places):
            return None
        factors.append((heads.of(other), at, 1))
    if not causal and (other is None or other.classes == mask.classes):
        return None
    if causal:
        if array.ndim < 2 or any(len(axis) != 1 for axis in mask.axes[-2:]):
            return None
        smaller = smaller & np.tri(array.shape[-2], array.shape[-1], array.shape[-1] - array.shape[-2], dtype=bool)
        i, j = [(Term(factors=(heads.index(at),)), Term(-1, sizes=((at.cls, 1),))) for at in out[-2:]]
        factors.append(heads.make("cond", "<=", (j, i)))
    return (out, (Term(factors=tuple(factors)),)) if (array == smaller).all() else None


def _numbers(first: Any, second: Any, left: int) -> str:
    apart = float(np.abs(first.data - second.data).max()) if first.data.size else 0.0
    if apart > 1e-9 * max(1.0, float(np.abs(first.data).max())):
        return f"the results are {apart:.3g} apart at the recorded numbers"
    return f"undecided: {left} terms are left, but the recorded numbers agree"


class Unfolding:
    """Replaces tensors by their definitions, named numbers by their values, equal arrays by one: everywhere."""

    def __init__(
        self, heads: Heads, meanings: Mapping[Quantity, Definition], same: Mapping[Quantity, Quantity]
    ) -> None:
        self.heads, self.meanings, self.same = heads, dict(meanings), dict(same)
        self._done: dict[Quantity, Definition] = {}

    def of(self, expr: Expr) -> Expr:
        """Unfold a formula."""
        return tuple([self._term(term) for term in expr])

    def _term(self, term: Term) -> Term:
        result = Term(term.coef, (), term.dummies, term.sizes)
        for head, at, power in term.factors:
            result = times(result, self._factor(head, at, power))
        return result

    def _factor(self, head: Head, at: tuple[Index, ...], power: Exact) -> Term:
        if head.kind == "ref" and head.data in self.meanings:
            out, expr = self._meaning(head.data)
            names = dict(zip(out, at, strict=True))
            inside = tuple([fresh(term, names) for term in expr])
            return raised(self.heads, inside, power)
        if head.kind == "ref" and head.data in self.same:
            return Term(factors=((self.heads.of(self.same[head.data]), at, power),))
        if head.kind == "scalar" and head.data[1] is not None:
            return raised(self.heads, (Term(Fraction(repr(head.data[1]))),), power)
        if not head.inners:
            return Term(factors=((head, at, power),))
        return self._rebuilt(head, at, power)

    def _meaning(self, quantity: Quantity) -> Definition:
        if quantity not in self._done:
            out, expr = self.meanings[quantity]
            self._done[quantity] = (out, self.of(expr))
        return self._done[quantity]

    def _rebuilt(self, head: Head, at: tuple[Index, ...], power: Exact) -> Term:
        if head.kind == "softmax":
            new: Factor = softmax_factor(self.heads, self.of(opened(head, at)), [at[place] for place in head.data])
            return Term(factors=((new[0], new[1], power),))
        if head.bound:
            own, body = opened_whole(head, at)
            return Term(factors=(self.heads.make(head.kind, head.data, (self.of(body),), own, power),))
        inners = tuple(self.of(opened(head, at, which)) for which in range(len(head.inners)))
        if head.kind == "cond" and head.data == "==":
            for side, other in (inners, inners[::-1]):
                if _is_one(side) and (tests := self._tests(other)) is not None:
                    return tests
        if head.kind == "sum":
            return raised(self.heads, inners[0], power)
        return Term(factors=(self.heads.make(head.kind, head.data, inners, (), power),))

    def _tests(self, expr: Expr) -> Term | None:
        """Give [a b = 1] for conditions and masks as [a = 1] [b = 1]; None for anything else."""
        if len(expr) != 1 or expr[0].coef != 1 or expr[0].dummies or expr[0].sizes or not expr[0].factors:
            return None
        result = Term()
        for head, at, power in expr[0].factors:
            mask = head.kind == "ref" and head.data.boolean
            if power != 1 or not (mask or head.kind == "cond"):
                return None
            one = self.heads.make("cond", "==", ((Term(factors=((head, at, 1),)),), (Term(),))) if mask else None
            result = times(result, Term(factors=(one or (head, at, 1),)))
        return result


def _is_one(expr: Expr) -> bool:
    return len(expr) == 1 and expr[0].coef == 1 and not expr[0].factors and not expr[0].sizes and not expr[0].dummies
