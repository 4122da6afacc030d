"""The whole loss as one SymPy formula of `Sum` over `IndexedBase` entries, and its derivative by a general entry.

One formula per leaf, whatever the lengths: `diff` by `X[p, q]` with free `p`, `q` gives Kronecker deltas inside the
sums, which are summed away afterwards. A length is a number, or a symbol where the caller gives one for the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyattn.errors import ArgumentError
from tinyattn.symbolic.definition import (
    Add,
    Apply,
    Bracket,
    Element,
    Expression,
    Group,
    Letter,
    Multiply,
    Number,
    Over,
    Position,
    Power,
    Scalar,
    Size,
    walk,
)
from tinyattn.symbolic.entrywise import holds
from tinyattn.symbolic.fitting import Fitted, fit
from tinyattn.symbolic.operands import array_parameters
from tinyattn.symbolic.referee import SymbolicNumbers, apart, definition_of, exact, relation

Length = Callable[[int, int], Any]  # (node, axis) -> a number or a symbol


class WholeLoss:
    """A recorded loss as one SymPy expression.

    Attributes
    ----------
    expression : sympy.Expr
        The loss.
    bases : dict of int to sympy.IndexedBase or sympy.Symbol
        What stands for each leaf.
    arrays : dict of str to array
        The recorded value of everything that the expression mentions, by printed name.
    tests : dict of str to callable
        What decides each condition; in the expression it is a function with values 1 and 0 and derivative 0, because
        SymPy moves the condition of a `Piecewise` out of the `Sum` that its index belongs to.
    """

    def __init__(
        self, graph: Any, leaves: Sequence[int], length: Length | None = None, symbols: Mapping[int, str] | None = None
    ) -> None:
        import sympy

        self.symbols = symbols or {}

        self.sympy = sympy
        self.graph = graph
        self.leaves = frozenset(leaves)
        self.length = length or (lambda node, axis: sympy.Integer(graph.nodes[node].shape[axis]))
        self.bases: dict[int, Any] = {}
        self.arrays: dict[str, Any] = {}
        self.tests: dict[str, Callable[..., int]] = {}
        self._fresh = count()
        self.expression = self._loss(graph.nodes[graph.outputs[0]])

    def _loss(self, last: Any) -> Any:
        """Give the one number that is differentiated; of a result of several their sum, each times its cotangent."""
        zeros = (self.sympy.Integer(0),) * len(last.shape)
        if last.value.size == 1:
            return self.entry(last.index, zeros)
        at = tuple(self.fresh() for _ in last.shape)
        cotangent = self.sympy.IndexedBase(
            self.sympy.Symbol(f"{self.symbols.get(last.index, f'x{last.index}')}_bar", real=True)
        )
        limits = [(index, 0, self.length(last.index, axis) - 1) for axis, index in enumerate(at)]
        return self.sympy.Sum(cotangent[at] * self.entry(last.index, at), *limits)

    def entry(self, index: int, at: tuple[Any, ...]) -> Any:
        """Give one entry of a node, at SymPy indices, in terms of the leaves."""
        node = self.graph.nodes[index]
        if node.op is None or index in self.leaves:
            return self._leaf(node, at)
        shapes = dict(
            zip(node.op.names_of(len(node.inputs)), (self.graph.nodes[i].shape for i in node.inputs), strict=True)
        )
        extra = array_parameters(node.params, self.graph.nodes[node.inputs[0]].shape if node.inputs else ())
        shapes |= {name: value.shape for name, value in extra.items()}
        fitted = fit(
            definition_of(node, self.graph), {name: tuple(shape) for name, shape in shapes.items()}, tuple(node.shape)
        )
        return _Entry(self, node, fitted, extra).at(at)

    def _leaf(self, node: Any, at: tuple[Any, ...]) -> Any:
        if node.index not in self.leaves and not node.shape and float(node.value) == int(node.value):
            return self.sympy.Integer(int(node.value))
        name = self.symbols.get(node.index, f"x{node.index}")
        self.arrays[name] = node.value
        return self._named(node.index, name, at)

    def _named(self, key: int, name: str, at: tuple[Any, ...], **kind: bool) -> Any:
        symbol = self.sympy.Symbol(name, **(kind or {"real": True}))
        base = self.bases.setdefault(key, self.sympy.IndexedBase(symbol) if at else symbol)
        return base[at] if at else base

    def parameter(self, node: Any, name: str, value: NDArray[Any], at: tuple[Any, ...]) -> Any:
        """Give an entry of an array parameter: its number where the place is known, else an indexed symbol."""
        if all(getattr(each, "is_Integer", False) for each in at):
            return exact(value[tuple(int(each) for each in at)])
        printed = f"{name}{node.index}"
        self.arrays[printed] = value
        whole = value.dtype.kind in "biu"
        return self.sympy.IndexedBase(self.sympy.Symbol(printed, **({"integer": True} if whole else {"real": True})))[
            at
        ]

    def test(self, sides: list[tuple[Any, str, Any]]) -> Any:
        """Give 1 or 0 for conditions, as a function of both sides of each."""
        name = f"holds{len(self.tests)}"
        signs = [sign for _, sign, _ in sides]
        self.tests[name] = lambda *at: int(
            all(holds(a, s, b) for a, s, b in zip(at[::2], signs, at[1::2], strict=True))
        )
        kind = type(name, (self.sympy.Function,), {"fdiff": lambda function, argindex=1: self.sympy.Integer(0)})
        return kind(*(exact(side) for left, _, right in sides for side in (left, right)))

    def fresh(self, stem: str = "k") -> Any:
        """Give an index symbol that was not used before."""
        return self.sympy.Symbol(f"{stem}{next(self._fresh)}", integer=True)

    def derivative(self, leaf: int) -> tuple[tuple[Any, ...], Any]:
        """Differentiate by a general entry of a leaf; gives the free indices and the formula."""
        shape = self.graph.nodes[leaf].shape
        free = tuple(self.fresh("p") for _ in shape)
        if leaf not in self.bases:
            return free, self.sympy.Integer(0)
        entry = self.bases[leaf][free] if free else self.bases[leaf]
        return free, sum_away(self.expression.diff(entry), frozenset(free))


class _Entry:
    """One entry of one operation, from its fitted definition."""

    def __init__(self, loss: WholeLoss, node: Any, fitted: Fitted, extra: dict[str, Any]) -> None:
        self.loss = loss
        self.node = node
        self.fitted = fitted
        self.extra = extra
        self.numbers = SymbolicNumbers()
        self.slots = {name: slot for slot, name in enumerate(node.op.names_of(len(node.inputs)))}
        self.letters: dict[str, Any] = {}

    def at(self, places: tuple[Any, ...]) -> Any:
        """Bind the letters of the left side and compute."""
        sympy = self.loss.sympy
        for part, place in zip(self.fitted.output.indices, places, strict=True):
            if isinstance(part, Letter):
                self.letters[part.name] = place
            elif isinstance(part, Group):
                rest = place
                for letter in reversed(part.letters[1:]):
                    self.letters[letter] = sympy.Mod(rest, self._length(letter))
                    rest = sympy.floor(rest / self._length(letter))
                self.letters[part.letters[0]] = rest
        return self.value(self.fitted.value)

    def _length(self, letter: str) -> Any:
        for part in walk(self.fitted.value):
            if isinstance(part, Element) and part.name in self.slots:
                for axis, position in enumerate(part.indices):
                    if position == Letter(letter):
                        return self.loss.length(self.node.inputs[self.slots[part.name]], axis)
        for axis, position in enumerate(self.fitted.output.indices):
            if position == Letter(letter):
                return self.loss.length(self.node.index, axis)
        return self.loss.sympy.Integer(self.fitted.sizes[letter])

    def value(self, tree: Expression) -> Any:
        """Build the SymPy expression of a part of the definition."""
        match tree:
            case Number(value):
                return self.numbers.number(value)
            case Letter(name):
                return self.letters[name]
            case Size(of, axis):
                return self._length(of) if axis is None else self.loss.length(self.node.inputs[self.slots[of]], axis)
            case Scalar(name):
                return self.numbers.pi() if name == "pi" else exact(self.extra[name][()])
            case Element():
                return self._element(tree)
            case Add(terms):
                return self.loss.sympy.Add(*map(self.value, terms))
            case Multiply(factors):
                return self._product(factors)
            case Power(base, exponent):
                return self.numbers.power(self.value(base), self.value(exponent))
            case Apply(function, arguments):
                return self._apply(function, list(map(self.value, arguments)))
            case Over(kind, letters, body):
                return self._over(kind, letters, body)
            case Bracket():
                return self._bracket(tree)

    def _element(self, element: Element) -> Any:
        at = tuple(self._place(each) for each in element.indices)
        if element.name in self.slots:
            return self.loss.entry(self.node.inputs[self.slots[element.name]], at)
        return self.loss.parameter(self.node, element.name, self.extra[element.name], at)

    def _place(self, position: Position) -> Any:
        if isinstance(position, Group):
            place = self.loss.sympy.Integer(0)
            for letter in position.letters:
                place = place * self._length(letter) + self.letters[letter]
            return place
        return self.value(position)  # type: ignore[arg-type]  # fitted definitions hold no `...`

    def _bracket(self, bracket: Bracket) -> Any:
        sides = [(self.value(each.left), each.sign, self.value(each.right)) for each in bracket.conditions]
        condition = self.loss.sympy.And(*(relation(*each) for each in sides))
        if condition == True or condition == False:  # noqa: E712
            return self.loss.sympy.Integer(condition == True)  # noqa: E712  # a SymPy condition
        return self.loss.test(sides)

    def _apply(self, function: str, values: list[Any]) -> Any:
        """Write functions with a kink as products with a condition."""
        if function in ("maximum", "minimum"):
            left, right = values
            low, high = (right, left) if function == "maximum" else (left, right)
            return left * self.loss.test([(low, "<", high)]) + right * self.loss.test([(high, "<=", low)])
        if function in ("abs", "sign"):
            (x,) = values
            sign = self.loss.test([(x, ">", 0)]) - self.loss.test([(x, "<", 0)])
            return sign * x if function == "abs" else sign
        return self.numbers.apply(function, values)

    def _product(self, factors: tuple[Expression, ...]) -> Any:
        """Look at the conditions first: a false one hides the rest."""
        result = self.loss.sympy.Integer(1)
        for factor in sorted(factors, key=lambda each: not isinstance(each, Bracket)):
            result *= self.value(factor)
            if result == 0:
                break
        return result

    def _over(self, kind: str, letters: tuple[str, ...], body: Expression) -> Any:
        if kind in ("max", "min", "prod"):
            raise ArgumentError(
                f"{self.node.op_name}: SymPy cannot differentiate {kind}_ as a whole, but entry by entry it can:\n"
                "  write to_sympy(x, form='elements'), or sympy_gradients(..., method='chain')."
            )
        saved = dict(self.letters)
        limits = []
        for letter in letters:
            self.letters[letter] = self.loss.fresh()
            limits.append((self.letters[letter], 0, self._length(letter) - 1))
        inside = self.value(body)
        self.letters.clear()
        self.letters.update(saved)
        return self.loss.sympy.Sum(inside, *limits)


def sum_away(tree: Any, free: frozenset[Any]) -> Any:
    """Carry out every sum over a Kronecker delta: `Sum(KroneckerDelta(k, p) * f(k), k)` is `f(p)`.

    A free index `p` of the derivative lies within the lengths, so no condition is lost.
    """
    import sympy

    if not tree.has(sympy.KroneckerDelta):
        return tree
    if not isinstance(tree, sympy.Sum):
        return tree.func(*(sum_away(each, free) for each in tree.args)) if tree.args else tree
    inside, limits = sum_away(tree.function, free), list(tree.limits)
    if isinstance(inside, sympy.Add):
        return sympy.Add(*(sum_away(sympy.Sum(term, *limits), free) for term in inside.args))
    if isinstance(inside, sympy.Sum):
        inside, limits = inside.function, [*inside.limits, *limits]
    return _sum_product_away(inside, limits, free)


def _sum_product_away(inside: Any, limits: list[Any], free: frozenset[Any]) -> Any:
    """Do so for one product under several sums."""
    import sympy

    factors = sympy.Mul.make_args(inside)
    for delta in (each for each in factors if isinstance(each, sympy.KroneckerDelta)):
        for limit in limits:
            other = delta.args[1] if delta.args[0] == limit[0] else delta.args[0]
            if limit[0] in delta.args and other in free:
                rest = sympy.Mul(*(each for each in factors if each is not delta)).xreplace({limit[0]: other})
                return _sum_product_away(rest, [each for each in limits if each is not limit], free)
    return sympy.Sum(inside, *limits) if limits else inside


def whole_gradients(graph: Any, leaves: Sequence[int], digits: int) -> dict[int, NDArray[np.float64]]:
    """Differentiate the whole formula by each leaf and evaluate it at the recorded numbers."""
    found: dict[int, NDArray[np.float64]] = {}
    for group in apart(graph, leaves):
        loss = WholeLoss(graph, group)
        found.update((leaf, evaluate_derivative(loss, leaf, *loss.derivative(leaf), digits=digits)) for leaf in group)
    return {leaf: found[leaf] for leaf in leaves}


def evaluate_derivative(
    loss: WholeLoss, leaf: int, free: tuple[Any, ...], formula: Any, digits: int, lengths: dict[Any, int] | None = None
) -> NDArray[np.float64]:
    """Evaluate a derivative at the recorded numbers, with many digits, at every entry of the leaf."""
    import mpmath
    import sympy

    shape = loss.graph.nodes[leaf].shape
    scalars = {str(symbol): symbol for symbol in formula.free_symbols if not isinstance(symbol, sympy.Indexed)}
    with mpmath.workdps(digits):
        numbers = {name: _many_digits(value) for name, value in loss.arrays.items()}
        functions: dict[str, Any] = {"KroneckerDelta": lambda a, b: int(a == b), "Mod": lambda a, b: a % b}
        functions |= loss.tests | {f"at_{name}": _reader(value) for name, value in numbers.items()}
        known = {
            symbol: numbers[name] for name, symbol in scalars.items() if name in numbers and not np.ndim(numbers[name])
        }
        known |= lengths or {}
        compute = sympy.lambdify([*free, *known], _with_readers(formula), [functions, "mpmath"])
        result = np.zeros(shape)
        for place in np.ndindex(*shape):
            result[place] = float(compute(*place, *known.values()))
    return result


def _with_readers(formula: Any) -> Any:
    """Write every array entry as a function of its indices."""
    import sympy

    return formula.replace(
        lambda part: isinstance(part, sympy.Indexed),
        lambda part: sympy.Function(f"at_{part.base.label}")(*part.indices),
    )


def _reader(array: Any) -> Callable[..., Any]:
    """Read an entry; outside of the array is 0, for there a condition beside it is false."""

    def read(*at: Any) -> Any:
        place = tuple(map(int, at))
        inside = all(0 <= each < length for each, length in zip(place, array.shape, strict=True))
        return array[place] if inside else 0

    return read


def _many_digits(value: Any) -> Any:
    import mpmath

    array = np.asarray(value)
    if array.dtype.kind in "biu":
        return array if array.ndim else array[()]
    result = np.empty(array.shape, dtype=object)
    for place in np.ndindex(*array.shape):
        result[place] = mpmath.mpf(float(array[place]))
    return result if array.ndim else result[()]
