"""Program: a recorded computation as steps over named arguments, to be run in the words of any namespace.

What was recorded with fixed numbers is here with what they stand for: a length of an argument is a `Size`, a mask or
index that was an argument is a `Given`, a table that follows a length is a `Block` of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tinyattn.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from tinyattn.handover.table import TABLE
from tinyattn.handover.words import Words


class Size(NamedTuple):
    """A number that follows lengths: ``factor * product of the lengths + offset``."""

    factor: int
    axes: tuple[str, ...]
    offset: int


class Given(NamedTuple):
    """An argument where a mask or an index stands: new axes, entries left out at the ends, perhaps the opposite."""

    argument: str
    new_axes: tuple[int, ...] = ()
    window: tuple[slice, ...] = ()
    negated: bool = False


class Block(NamedTuple):
    """The beginning of a table that was recorded at its longest; ``sizes`` has an entry for each axis."""

    table: np.ndarray
    sizes: tuple[int | Size, ...]


class Filled(NamedTuple):
    """A table that holds one number everywhere."""

    number: np.ndarray
    sizes: tuple[int | Size, ...]


class Compared(NamedTuple):
    """The result of comparing a step with numbers, an argument or another step, as truth or as 0 and 1."""

    compare: str
    step: int
    other: Any
    negated: bool = False
    dtype: str = ""


class StepValue(NamedTuple):
    """The value of a step, where a parameter refers to it."""

    step: int


class Argument(NamedTuple):
    """What comes from outside: a parameter or an input, with the numbers that it was recorded with."""

    name: str
    kind: str  # "parameter" or "input"
    value: np.ndarray
    axes: tuple[str | None, ...] = ()  # names of the axes whose length may differ


class Step(NamedTuple):
    """One node: an argument, a constant, or an operation on earlier steps."""

    number: int
    name: str
    scope: tuple[str, ...]
    op: str  # "argument", "constant", "still" (no gradient), or the name of an operation
    inputs: tuple[int, ...]
    params: dict[str, Any]
    place: str
    dtype: str = ""  # where whole numbers go in and fractions come out: the dtype to compute in


class Program:
    """Steps in an order in which they can be computed.

    Parameters
    ----------
    arguments : sequence of Argument
    steps : sequence of Step
    outputs : tuple of int
        The steps that are the results.
    single : bool
        Whether the one result stands alone, not in a tuple.
    shapes : list of tuple
        Of each result: the lengths of its axes, None where one follows the arguments in no simple way.
    """

    def __init__(
        self, arguments: list[Argument], steps: list[Step], outputs: tuple[int, ...], single: bool, shapes: list[Any]
    ) -> None:
        self.arguments, self.steps, self.outputs, self.single = arguments, steps, outputs, single
        self.shapes = shapes
        self.by_name = {argument.name: argument for argument in arguments}
        self.where_axis = {axis: (argument.name, place) for argument in reversed(arguments)
                           for place, axis in enumerate(argument.axes) if axis is not None}  # fmt: skip

    def __deepcopy__(self, memo: Any) -> Program:
        """Nothing in it changes, so a copy of what holds it may hold the same."""
        return self

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The numbers of the parameters, by name."""
        return {each.name: each.value for each in self.arguments if each.kind == "parameter"}

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """The numbers that the inputs had, by name."""
        return {each.name: each.value for each in self.arguments if each.kind == "input"}

    def bind(self, parameters: Any, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, from how the function was called; what is left out has its recorded numbers."""
        wanted = list(self.inputs)
        if not isinstance(parameters, Mapping):
            raise ArgumentTypeError(message(
                f"The first argument holds the parameters; this is a {type(parameters).__name__}.",
                "It is a mapping from their names to arrays.",
                "Write f(f.parameters, ...), or a mapping with the same names.",
            ))  # fmt: skip
        if len(inputs) > len(wanted):
            raise ArgumentError(f"{len(inputs)} inputs were given; there are {len(wanted)}: {_listed(wanted)}.")
        given = {**dict(zip(wanted, inputs, strict=False)), **named}
        foreign = [name for name in given if name not in wanted]
        twice = [name for name in named if name in wanted[: len(inputs)]]
        if foreign or twice:
            what = f"no input is named {_listed(foreign)}" if foreign else f"{_listed(twice)} was given twice"
            raise ArgumentError(f"{what}; the inputs are {_listed(wanted)}.")
        odd = [*self.parameters.keys() - parameters.keys(), *parameters.keys() - self.parameters.keys()]
        if odd:
            known = _listed(list(self.parameters))
            raise ArgumentError(message(f"parameters: {_listed(sorted(odd))} is missing or one too many.",
                                        f"There are {known}."))  # fmt: skip
        return {**self.inputs, **given, **parameters}

    def run(self, w: Words, given: Mapping[str, Any], constants: Callable[[int, Any], Any] | None = None) -> list[Any]:
        """The value of every step, in the words of a namespace.

        Parameters
        ----------
        w : Words
        given : mapping
            The arguments by name, arrays of the namespace or of NumPy.
        constants : callable, optional
            ``constants(number, array)`` gives a constant of a step as an array of the namespace.
        """
        arrays = {name: w.array(array) for name, array in given.items()}
        for argument in self.arguments:
            _check_shape(argument, arrays[argument.name])
        lengths = {axis: w.length(arrays[name], place) for axis, (name, place) in self.where_axis.items()}
        return self.run_with(w, arrays, lengths, constants or (lambda index, array: w.constant(array)))

    def run_with(self, w: Words, arrays: Mapping[str, Any], lengths: Mapping[str, Any], constants: Any) -> list[Any]:
        """The same, with arrays of the namespace and the lengths by the names of their axes."""
        run = Run(w, arrays, lengths, constants)
        for step in self.steps:
            with w.inside(step.scope, step.name):
                run.values[step.number] = run.value_of(step)
        return [run.values[step.number] for step in self.steps]

    def results(self, values: list[Any]) -> Any:
        """The results among the values of all steps."""
        place = {step.number: at for at, step in enumerate(self.steps)}
        found = tuple(values[place[index]] for index in self.outputs)
        return found[0] if self.single else found

    def __str__(self) -> str:
        """One line a step, like a typed program."""
        names = {step.number: step.name for step in self.steps}
        return "\n".join(_line(step, names, self.by_name) for step in self.steps)


class Run:
    """One run of a program: what is known so far, and how a step is computed from it."""

    def __init__(self, w: Words, arrays: Mapping[str, Any], lengths: Mapping[str, Any], constants: Any) -> None:
        self.w, self.arrays, self.lengths, self.constants = w, arrays, lengths, constants
        self.values: dict[int, Any] = {}

    def value_of(self, step: Step) -> Any:
        """The value of one step."""
        w, inputs = self.w, [self.values[source] for source in step.inputs]
        if step.op == "argument":
            return self.arrays[step.params["name"]]
        if step.op == "still":
            axes = step.params["axes"]
            return w.still(w.max(inputs[0], axes, True) if axes else inputs[0])
        if step.op == "constant":
            value, dtype = self.filled_in(step, step.params["value"]), step.params.get("dtype")
            return value if dtype is None else w.float_of(value, w.constant(np.zeros((), dtype)))
        if step.dtype:
            inputs = [w.astype(x, w.dtype(step.dtype)) for x in inputs]
        inner = step.params.get("inside")
        if isinstance(inner, Program):
            given = {f"input {slot}": x for slot, x in enumerate(inputs)}
            return inner.results(inner.run_with(w, {**self.arrays, **given}, self.lengths, self.constants))
        return TABLE[step.op](w, *inputs, **{name: self.filled_in(step, x) for name, x in step.params.items()})

    def filled_in(self, step: Step, x: Any) -> Any:
        """A parameter with lengths, arguments and steps filled in.

        Arrays in a key stay NumPy's, because what is read from them decides which axes there are.
        """
        w = self.w
        if isinstance(x, np.ndarray):
            return x if "key" in step.params else self.constants(step.number, x)
        if isinstance(x, Size):
            return w.size(x.factor, [self.lengths[axis] for axis in x.axes], x.offset)
        if isinstance(x, Given):
            return self._given(x)
        if isinstance(x, StepValue):
            return self.values[x.step]
        if isinstance(x, Compared):
            return self._compared(step, x)
        if isinstance(x, (Block, Filled)):
            sizes = tuple(self.filled_in(step, size) for size in x.sizes)
            if isinstance(x, Filled):
                return w.broadcast_to(self.constants(step.number, x.number), sizes)
            _check_length(sizes, x.table.shape)
            return w.beginning(self.constants(step.number, x.table), sizes)
        if isinstance(x, tuple):
            return tuple(self.filled_in(step, each) for each in x)
        if isinstance(x, slice):
            return slice(*(self.filled_in(step, each) for each in (x.start, x.stop, x.step)))
        return x

    def _given(self, x: Given) -> Any:
        array = self.arrays[x.argument]
        if x.window:
            array = self.w.getitem(array, x.window)
        array = self.w.expand(array, x.new_axes) if x.new_axes else array
        return ~array if x.negated else array

    def _compared(self, step: Step, x: Compared) -> Any:
        truth = getattr(operator, x.compare)(self.values[x.step], self.filled_in(step, x.other))
        truth = ~truth if x.negated else truth
        return self.w.astype(truth, self.w.dtype(x.dtype)) if x.dtype else truth


def _check_length(sizes: tuple[Any, ...], longest: tuple[int, ...]) -> None:
    for size, most in zip(sizes, longest, strict=True):
        if type(size) is int and size > most:
            raise ShapeError(message(
                f"a length of {size} is needed, and {most} was the longest that was recorded.",
                "A mask or a table of positions follows this length.", "Record with a longer example.",
            ))  # fmt: skip


def _check_shape(argument: Argument, array: Any) -> None:
    """Lengths that were recorded as fixed must be what they were, or a wrong number would come out somewhere."""
    old, new = argument.value.shape, tuple(array.shape)
    fits = len(old) == len(new) and all(
        axis is not None or type(n) is not int or n == m
        for n, m, axis in zip(new, old, argument.axes or (None,) * len(old), strict=True)
    )
    if not fits:
        instead = f"Record it again, or hand over a function: dynamic={{{argument.name!r}: {_example(old)}}}."
        raise ShapeError(message(
            f"{argument.name} has shape {new}, and was recorded with {old}.",
            "The shapes of a recorded graph are fixed, apart from the axes named in dynamic=...",
            instead if argument.kind == "input" else "Make the model in the new size and hand that over.",
        ))  # fmt: skip


def _example(shape: tuple[int, ...]) -> str:
    return repr(("n", *[None] * (len(shape) - 1)))


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "none"


def _line(step: Step, names: dict[int, str], arguments: Mapping[str, Argument]) -> str:
    if step.op == "argument":
        argument = arguments[step.params["name"]]
        text = f"{argument.kind}, shape {_shape_text(argument)}"
    elif step.op == "constant":
        text = "constant"
    else:
        text = f"{step.op}({', '.join(names[source] for source in step.inputs)})"
    place = f"    # {step.place}" if step.place else ""
    return f"{'/'.join([*step.scope, step.name])} = {text}{place}"


def _shape_text(argument: Argument) -> str:
    axes = argument.axes or (None,) * argument.value.ndim
    shown = [axis or str(n) for axis, n in zip(axes, argument.value.shape, strict=True)]
    return f"({', '.join(shown)}{',' if len(shown) == 1 else ''})"
