"""SymPy as referee: the gradient of a recorded loss, derived by SymPy alone from the definitions.

Nothing here knows a gradient rule, neither the engine's nor those of `derive.py`. Three ways:

* **whole**: the loss as one formula of nested `Sum` over `IndexedBase` entries, with lengths as numbers or as symbols;
  SymPy differentiates it by an entry with free indices, once per leaf. Each further layer makes it some twenty times
  longer, so it serves one block.
* **elements**: the loss as one formula of explicit entries, each entry a symbol; `diff` by every one. Readable and
  feasible for tiny sizes only; this is what "just use SymPy" means.
* **chain**: every operation by itself, entry by entry: SymPy differentiates its definition, and the total derivative
puts
  the numbers together. Any depth; the chain rule is ours, every derivative is SymPy's.

Symbols are made with `Symbol`, never read from text: for SymPy `Q`, `S`, `N`, `E`, `I`, `O` are words of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinyattn.errors import ArgumentError
from tinyattn.symbolic.entrywise import Numbers, entrywise
from tinyattn.symbolic.operands import array_parameters, operands_of

Array = NDArray[Any]
WHOLE_LIMIT = (
    8000  # occurrences of leaves in the written-out loss times entries times the largest sum; beyond, node by node
)


def sympy_gradients(
    graph: Any, leaves: Sequence[int], *, method: str = "auto", digits: int = 30
) -> dict[int, NDArray[np.float64]]:
    """Derive the gradient of a recorded loss with SymPy and evaluate it at the recorded numbers.

    Parameters
    ----------
    graph : Graph
        A recorded computation with one output of one number.
    leaves : sequence of int
        The nodes to differentiate by; they may stand in the middle of the graph too.
    method : {"auto", "whole", "chain", "elements"}
        See the head of this module; ``auto`` takes ``whole`` while the written-out loss is short, else ``chain``.
    digits : int
        Decimal digits of the evaluation (mpmath). The result is rounded to float64 once, at the end.

    Returns
    -------
    dict of int to ndarray
        For each leaf an array of the leaf's shape.
    """
    if len(graph.outputs) != 1 or graph.nodes[graph.outputs[0]].value.size != 1:
        raise ArgumentError(
            "SymPy derives the gradient of one number, but the graph ends in "
            f"{[graph.nodes[each].shape for each in graph.outputs]}.\n"
            "  Write the loss as one number, for example (y * c).sum()."
        )
    chosen = choose_method(graph, leaves) if method == "auto" else method
    if chosen == "whole":
        from tinyattn.symbolic.whole import whole_gradients

        return whole_gradients(graph, leaves, digits)
    if chosen == "chain":
        return _chain(graph, leaves, digits)
    if chosen == "elements":
        return _elements(graph, leaves, digits)
    raise ArgumentError(f"method {method!r} is not known; use 'auto', 'whole', 'chain' or 'elements'.")


def choose_method(graph: Any, leaves: Sequence[int]) -> str:
    """Say which way `sympy_gradients` takes by itself."""
    count: dict[int, int] = {}
    for node in graph.nodes:
        if node.op is None:
            count[node.index] = 1
            continue
        if node.op_name in _NOT_WHOLE:
            return "chain"
        text = definition_of(node, graph)
        names = node.op.names_of(len(node.inputs))
        count[node.index] = sum(
            count[source] * max(1, text.count(f"{name}[")) for name, source in zip(names, node.inputs, strict=True)
        )
    entries = sum(int(graph.nodes[leaf].value.size) for leaf in leaves)
    largest = max(int(node.value.size) for node in graph.nodes)
    return "whole" if count[graph.outputs[0]] * entries * largest <= WHOLE_LIMIT else "chain"


_NOT_WHOLE = frozenset(("max", "min", "prod", "norm"))


def definition_of(node: Any, graph: Any) -> str:
    """Give the text of the definition of a recorded call."""
    shapes = tuple(tuple(graph.nodes[each].shape) for each in node.inputs)
    return str(node.op.definition_text(shapes, dict(node.params)))


class SymbolicNumbers(Numbers):
    """SymPy expressions as the numbers of a definition."""

    def __init__(self) -> None:
        import sympy

        self.sympy = sympy

    def number(self, value: Fraction) -> Any:
        """Give an exact rational."""
        return self.sympy.Rational(value.numerator, value.denominator)

    def pi(self) -> Any:
        """Give the symbol of the circle number."""
        return self.sympy.pi

    def power(self, base: Any, exponent: Any) -> Any:
        """Raise to a power."""
        return self.sympy.sympify(base) ** exact(exponent)

    def apply(self, function: str, arguments: list[Any]) -> Any:
        """Apply a function; where it has a kink, as cases, since SymPy's own derivative there is not ours."""
        s = self.sympy
        values = [exact(each) for each in arguments]
        if function in ("maximum", "minimum"):
            left, right = values
            inside = left > right if function == "maximum" else left < right
            return s.Piecewise((left, inside), (right, True))
        (x,) = values
        if function == "sigmoid":
            return 1 / (1 + s.exp(-x))
        if function == "abs":
            return s.Piecewise((x, x > 0), (-x, True))
        if function == "sign":
            return s.Piecewise((1, x > 0), (-1, x < 0), (0, True))
        return getattr(s, function)(x)

    def extreme(self, kind: str, values: list[Any]) -> Any:
        """Give the largest or smallest of several values."""
        return (self.sympy.Max if kind == "max" else self.sympy.Min)(*map(exact, values))

    def bracket(self, comparisons: list[tuple[Any, str, Any]]) -> Any:
        """Decide where both sides are numbers, else give two cases."""
        condition = self.sympy.And(*(relation(left, sign, right) for left, sign, right in comparisons))
        if condition in (True, False):
            return 1 if condition else 0
        return self.sympy.Piecewise((1, condition), (0, True))


def relation(left: Any, sign: str, right: Any) -> Any:
    """Give a SymPy condition for a comparison of the grammar."""
    import sympy

    kinds = {"==": "Eq", "!=": "Ne", "<": "Lt", "<=": "Le", ">": "Gt", ">=": "Ge"}
    return getattr(sympy, kinds[sign])(exact(left), exact(right))


def exact(value: Any) -> Any:
    """Give a number as SymPy's; a float64 as the exact fraction that it is."""
    import sympy

    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return sympy.Integer(int(value))
    if isinstance(value, (float, np.floating)):
        return sympy.Rational(*float(value).as_integer_ratio()) if np.isfinite(value) else sympy.Float(float(value))
    return value


def symbol_array(name: str, shape: tuple[int, ...]) -> Array:
    """Give an array of real symbols, `name_0_1` and so on."""
    import sympy

    entries = np.empty(shape, dtype=object)
    for place in np.ndindex(*shape):
        entries[place] = sympy.Symbol("_".join([name, *map(str, place)]), real=True)
    return entries


def written_out(graph: Any, leaves: Sequence[int]) -> tuple[Any, dict[int, Array]]:
    """Give the loss as one SymPy expression of explicit entries, and the symbols of the leaves.

    Every value that no leaf reaches is put in as the exact number that was recorded.
    """
    symbols = {leaf: symbol_array(f"x{leaf}", graph.nodes[leaf].shape) for leaf in leaves}
    values: dict[int, Array] = {}
    for node in graph.nodes:
        if node.index in symbols:
            values[node.index] = symbols[node.index]
        elif node.op is None or not any(values[each].dtype == object for each in node.inputs):
            values[node.index] = np.asarray(node.value)
        else:
            values[node.index] = _apply_definition(node, graph, [_exactly(values[each]) for each in node.inputs])
    return values[graph.outputs[0]].reshape(())[()], symbols


def _exactly(array: Array) -> Array:
    if array.dtype == object:
        return array
    result = np.empty(array.shape, dtype=object)
    for place in np.ndindex(*array.shape):
        result[place] = exact(array[place])
    return result


def _apply_definition(node: Any, graph: Any, inputs: list[Array]) -> Array:
    operands = operands_of(node.op, inputs, node.params)
    for name, value in array_parameters(node.params, inputs[0].shape if inputs else ()).items():
        operands[name] = value if value.dtype.kind in "biu" else _exactly(value)
    return entrywise(definition_of(node, graph), operands, tuple(node.shape), SymbolicNumbers())


def apart(graph: Any, leaves: Sequence[int]) -> list[list[int]]:
    """Part what is differentiated by at once: leaves, and each value in the middle of the graph by itself.

    Where `h = tanh(x)` stands for itself in a formula, the formula's derivative by `x` misses what comes through `h`.
    """
    true = [leaf for leaf in leaves if graph.nodes[leaf].op is None]
    return [*([true] if true else []), *([leaf] for leaf in leaves if leaf not in true)]


def _elements(graph: Any, leaves: Sequence[int], digits: int) -> dict[int, NDArray[np.float64]]:
    found: dict[int, NDArray[np.float64]] = {}
    for group in apart(graph, leaves):
        found |= _elements_of(graph, group, digits)
    return {leaf: found[leaf] for leaf in leaves}


def _elements_of(graph: Any, leaves: Sequence[int], digits: int) -> dict[int, NDArray[np.float64]]:
    loss, symbols = written_out(graph, leaves)
    order = [symbol for leaf in leaves for symbol in symbols[leaf].flat]
    numbers = [number for leaf in leaves for number in graph.nodes[leaf].value.flat]
    derivatives = iter(_evaluate([loss.diff(symbol) for symbol in order], order, numbers, digits))
    return {leaf: _filled(graph.nodes[leaf].shape, derivatives) for leaf in leaves}


def derivative_elements(graph: Any, leaf: int) -> Array:
    """Give SymPy's derivative of the written-out loss by every entry of a leaf, as an array of expressions."""
    loss, symbols = written_out(graph, [leaf])
    result = np.empty(graph.nodes[leaf].shape, dtype=object)
    for place in np.ndindex(*result.shape):
        result[place] = loss.diff(symbols[leaf][place])
    return result


def _chain(graph: Any, leaves: Sequence[int], digits: int) -> dict[int, NDArray[np.float64]]:
    """Add up the total derivative from the loss to the leaves, every local derivative by SymPy."""
    import mpmath

    with mpmath.workdps(digits):
        zero = mpmath.mpf(0)
        total: dict[int, Array] = {
            graph.outputs[0]: np.full(graph.nodes[graph.outputs[0]].shape, mpmath.mpf(1), dtype=object)
        }
        wanted = _reached_from(graph, leaves)
        for node in reversed(graph.nodes):
            if node.op is None or node.index not in total or wanted.isdisjoint(node.inputs):
                continue
            for slot, place, out, slope in _local_derivatives(node, graph, wanted, digits):
                source = node.inputs[slot]
                if source not in total:
                    total[source] = np.full(graph.nodes[source].shape, zero, dtype=object)
                total[source][place] += total[node.index][out] * slope
    empty = {leaf: np.zeros(graph.nodes[leaf].shape) for leaf in leaves}
    return {leaf: np.array(total.get(leaf, empty[leaf]), dtype=np.float64) for leaf in leaves}


def _reached_from(graph: Any, leaves: Sequence[int]) -> set[int]:
    reached = set(leaves)
    for node in graph.nodes:
        if any(each in reached for each in node.inputs):
            reached.add(node.index)
    return reached


def _local_derivatives(
    node: Any, graph: Any, wanted: set[int], digits: int
) -> Iterator[tuple[int, tuple[int, ...], tuple[int, ...], Any]]:
    """Give (slot, place in the input, place in the output, derivative) for one operation."""
    inputs = [symbol_array(f"s{slot}", graph.nodes[each].shape) for slot, each in enumerate(node.inputs)]
    where = {
        symbol: (slot, place)
        for slot, array in enumerate(inputs)
        if node.inputs[slot] in wanted
        for place in np.ndindex(*array.shape)
        for symbol in [array[place]]
    }
    output = _apply_definition(node, graph, inputs)
    entries, places = [], []
    for out in np.ndindex(*node.shape):
        value = exact(output[out])
        for symbol in sorted(value.free_symbols & where.keys(), key=lambda each: where[each]):
            entries.append(value.diff(symbol))
            places.append((*where[symbol], out))
    order = [symbol for array in inputs for symbol in array.flat]
    numbers = [number for each in node.inputs for number in np.asarray(graph.nodes[each].value).flat]
    for (slot, place, out), slope in zip(places, _evaluate(entries, order, numbers, digits), strict=True):
        yield slot, place, out, slope


def _evaluate(entries: list[Any], symbols: list[Any], numbers: list[Any], digits: int) -> list[Any]:
    """Evaluate expressions at exact float64 numbers with many digits."""
    import mpmath
    import sympy

    if not entries:
        return []
    with mpmath.workdps(digits):
        names = sympy.symbols(f"v:{len(symbols)}", real=True)
        renamed = [entry.xreplace(dict(zip(symbols, names, strict=True))) for entry in entries]
        compute = sympy.lambdify([names], renamed, modules="mpmath", cse=True)
        return list(compute([mpmath.mpf(float(number)) for number in numbers]))


def _filled(shape: tuple[int, ...], values: Iterator[Any]) -> NDArray[np.float64]:
    result = np.zeros(shape)
    for place in product(*map(range, shape)):
        result[place] = float(next(values))
    return result
