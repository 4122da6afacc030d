"""What is checked: a function of tensors, a layer, an operation, seen as a function of arrays with a gradient.

A subject can be evaluated at arrays near the point, and recorded at the point: then there is a graph, reverse mode
and forward mode.  Layers bring their parameters as further inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinyattn import autodiff
from tinyattn import functions as ta
from tinyattn.errors import ArgumentError, ArgumentTypeError, GradientLost, message
from tinyattn.graph import Graph
from tinyattn.mode import no_grad
from tinyattn.ops import Op
from tinyattn.tensor import Tensor, apply, tensor

Arrays = list[np.ndarray]


class Input:
    """One thing to differentiate by.

    Attributes
    ----------
    name : str
    value : ndarray of float
    parameter : bool
        True for a parameter of a layer, False for an argument.
    """

    __slots__ = ("name", "parameter", "value")

    def __init__(self, name: str, value: np.ndarray, parameter: bool = False) -> None:
        self.name, self.value, self.parameter = name, value, parameter


class Recorded:
    """A subject recorded at one point.

    Attributes
    ----------
    outputs : list of ndarray
    leaves : list of int
        The node of each input; -1 for an input that the result does not depend on.
    pushed : Graph or None
        What forward mode differentiates, after `push`; None when nothing moves.
    """

    def __init__(
        self, outputs: list[Tensor], leaves: list[Tensor], names: list[str], variables: dict[str, Any]
    ) -> None:
        self._outputs, self._leaves = outputs, leaves
        self.outputs = [np.asarray(y.data) for y in outputs]
        named = list(zip(names, leaves, strict=True))
        self.graph: Any = Graph.of(outputs, names=named, variables=variables)
        places = {node.name: node.index for node in self.graph.nodes}
        self.leaves = [places.get(name, -1) for name in names]
        self.pushed: Any = None

    def pull(self, cotangents: Arrays) -> Arrays:
        """Reverse mode, by the engine: the gradient of each input for given cotangents of the outputs."""
        pairs = zip(self._outputs, cotangents, strict=True)
        starts = [(y, _seed(np.asarray(c, y.dtype))) for y, c in pairs if y.requires_grad]
        found = autodiff.propagate(starts, self._leaves) if starts else {}
        return [np.asarray(found.get(x, np.zeros(x.shape, x.dtype))) for x in self._leaves]

    def _moving(self) -> list[int]:
        return [place for place, y in enumerate(self._outputs) if y.requires_grad]

    def push(self, tangents: Arrays) -> Arrays:
        """Forward mode, by the engine: how each output changes along directions of the inputs."""
        moving = [y for y in self._outputs if y.requires_grad]
        seeds = [tensor(np.ones(y.shape, y.dtype), requires_grad=True) for y in moving]
        starts = list(zip(moving, seeds, strict=True))
        found = autodiff.propagate(starts, self._leaves, create_graph=True) if starts else {}
        inner = [
            ta.sum(found[x] * np.asarray(t, x.dtype)) for x, t in zip(self._leaves, tangents, strict=True) if x in found
        ]
        total = sum(inner[1:], start=inner[0]) if inner else None
        slopes = autodiff.gradients_of(total, seeds) if total is not None and total.requires_grad else []
        if slopes:
            names = {f"{place}th seed": seed for place, seed in zip(self._moving(), seeds, strict=True)}
            assert total is not None
            self.pushed = Graph.of(total, names=names, variables={})
        changes = dict(zip(map(id, moving), slopes, strict=False))
        return [np.asarray(changes[id(y)].data) if id(y) in changes else np.zeros(y.shape) for y in self._outputs]


def _seed(c: np.ndarray) -> Any:
    return c[()] if c.shape == () else c


@contextmanager
def silence() -> Any:
    """Where a gradient is lost the report says so, with the line; a warning for each of many calls would say less."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GradientLost)
        yield


class Subject:
    """A function of tensors with its arguments.

    Parameters
    ----------
    f : callable
        Takes tensors; returns a tensor, or a tuple, list or dict of them.
    args : sequence
        Floating-point arrays and tensors are differentiated by; everything else is passed on as it is.
    name : str
    variables : mapping
        Where names of tensors are looked up.
    """

    def __init__(
        self, f: Callable[..., Any], args: Sequence[Any], name: str = "", variables: dict[str, Any] | None = None
    ) -> None:
        if not callable(f):
            raise ArgumentTypeError(f"check: {f!r} cannot be called; a function, a layer or an Op is needed.")
        self.f, self.args, self.variables = f, list(args), variables or {}
        self.name = name or getattr(f, "__name__", type(f).__name__)
        self.places: list[int] = []
        self.inputs: list[Input] = []
        self._collect(_argument_names(f, len(self.args)))
        self.parameters: list[Tensor] = []
        if hasattr(f, "named_parameters"):
            for title, leaf in f.named_parameters():
                self.parameters.append(leaf)
                self.inputs.append(Input(self._unique(title), np.array(leaf.data), True))
        if not self.inputs:
            raise ArgumentError(
                message(
                    f"check: nothing to differentiate {self.name} by.",
                    "No argument is an array or tensor of floating-point numbers, and there are no parameters.",
                    "Whole numbers are taken for word numbers: write 1.0 instead of 1."
                    if any(_holds_whole_numbers(arg) for arg in self.args)
                    else "Give an array, such as np.array([1.0, 2.0]), or ta.tensor(...).",
                )
            )
        if all(x.value.size == 0 for x in self.inputs):
            raise ArgumentError(f"check: all inputs of {self.name} are empty, so there is nothing to look at.")

    def _collect(self, names: list[str]) -> None:
        for place, (arg, title) in enumerate(zip(self.args, names, strict=True)):
            array = _float_array(arg)
            if array is None:
                if isinstance(arg, Tensor):
                    self.args[place] = arg.detach()
                continue
            self.places.append(place)
            own = arg.given_name if isinstance(arg, Tensor) else None
            self.inputs.append(Input(self._unique(own or title), array))

    def _unique(self, name: str) -> str:
        taken = {x.name for x in self.inputs}
        number, unique = 2, name
        while unique in taken:
            number, unique = number + 1, f"{name}·{number}"
        return unique

    @property
    def point(self) -> Arrays:
        """The numbers of all inputs."""
        return [x.value for x in self.inputs]

    @contextmanager
    def _parameters_at(self, arrays: Sequence[np.ndarray]) -> Any:
        """The parameters with other numbers, of any precision, for the length of a block."""
        before = [
            (leaf.order, leaf.exchange(np.array(array))) for leaf, array in zip(self.parameters, arrays, strict=True)
        ]
        try:
            yield
        finally:
            for leaf, (order, array) in zip(self.parameters, before, strict=True):
                leaf.exchange(np.asarray(array))
                leaf.order = order  # graphs recorded before are not stale: the numbers are the same again

    def call(self, arrays: Sequence[np.ndarray], grad: bool) -> tuple[list[Tensor], list[Tensor]]:
        """Run the function on fresh leaves; gives the outputs and the leaves."""
        args, count = list(self.args), len(self.places)
        leaves = [tensor(array, requires_grad=grad) for array in arrays[:count]]
        for place, leaf in zip(self.places, leaves, strict=True):
            args[place] = leaf
        outputs = flat_outputs(self.f(*args), self.name)
        return outputs, [*leaves, *self.parameters]

    def evaluate(self, arrays: Sequence[np.ndarray]) -> Arrays:
        """The values at other numbers, in float64."""
        with self._parameters_at(arrays[len(self.places) :]), no_grad(), np.errstate(all="ignore"), silence():
            outputs, _ = self.call(arrays, False)
            return [np.asarray(y.data, dtype=np.float64) for y in outputs]

    def record(self, arrays: Sequence[np.ndarray] | None = None) -> Recorded:
        """Run and record at the point, or at other numbers."""
        where = self.point if arrays is None else arrays
        with np.errstate(all="ignore"), silence():
            if arrays is None:
                outputs, leaves = self.call(where, True)
                return Recorded(outputs, leaves, [x.name for x in self.inputs], self.variables)
            with self._parameters_at(where[len(self.places) :]):
                outputs, leaves = self.call(where, True)
                return Recorded(outputs, leaves, [x.name for x in self.inputs], self.variables)

    def slope(self, cotangents: Arrays, tangents: Arrays) -> Subject:
        """The gradient along a direction, as a subject of its own: its gradient is the second order."""

        def directional(*args: Any) -> Tensor:
            found = flat_outputs(self.f(*args), self.name)
            with_grad = [(y, c) for y, c in zip(found, cotangents, strict=True) if y.requires_grad]
            total: Any = 0.0
            leaves = [args[place] for place in self.places] + self.parameters
            for y, c in with_grad:
                pulled = autodiff.gradients_of(y, leaves, np.asarray(c, y.dtype), create_graph=True)
                for x, v in zip(pulled, tangents, strict=True):
                    total = total + ta.sum(x * np.asarray(v, x.dtype))
            return total if with_grad else tensor(0.0)

        return _Slope(self, directional)


class _Slope(Subject):
    """A directional gradient: evaluated with recording on, because a gradient is computed inside."""

    def __init__(self, base: Subject, f: Callable[..., Any]) -> None:
        self.f, self.args, self.variables, self.name = f, base.args, base.variables, f"gradient of {base.name}"
        self.places, self.inputs, self.parameters = base.places, base.inputs, base.parameters

    def evaluate(self, arrays: Sequence[np.ndarray]) -> Arrays:
        """The values at other numbers."""
        with self._parameters_at(arrays[len(self.places) :]), np.errstate(all="ignore"), silence():
            outputs, _ = self.call(arrays, True)
            return [np.asarray(y.data, dtype=np.float64) for y in outputs]


def op_subjects(op: Op, args: Sequence[Any], rng: np.random.Generator, name: str = "") -> list[Subject]:
    """An operation at the arrays and parameters given, or at its own samples."""
    sample: Any = op.sample  # people leave it None
    if not args and sample is None:
        what = f"check: {op.name} has no sample, and no inputs are given."
        raise ArgumentError(message(what, "", "Give the inputs, or the Op a sample=lambda rng: [(inputs, params)]."))
    calls = [op.split(tuple(args))] if args else op.sample(rng)
    subjects = []
    for inputs, params in calls:
        arrays = [np.asarray(x.data if isinstance(x, Tensor) else x) for x in inputs]
        arrays = [x if x.dtype.kind == "f" else x.astype(float) for x in arrays]
        _check_record(op, arrays, tuple(params))

        def run(*xs: Any, params: tuple[Any, ...] = params) -> Tensor:
            return apply(op, xs, params)

        subject = Subject(run, arrays, name or op.name)
        for each, title in zip(subject.inputs, op.names_of(len(arrays)), strict=True):
            each.name = title
        subjects.append(subject)
    return subjects


def _check_record(op: Op, inputs: Arrays, params: tuple[Any, ...]) -> None:
    """What the engine takes for granted of an op of its own."""
    if isinstance(op.vjps, tuple) and not op.variadic and len(op.vjps) != len(inputs):
        raise ArgumentError(f"check: {op.name} has {len(op.vjps)} rules for {len(inputs)} inputs; each needs one.")
    with np.errstate(all="ignore"):
        result = op.forward(*[np.array(x)[()] for x in inputs], *params)
    if op.saves and not (isinstance(result, tuple) and len(result) == 2):
        raise ArgumentError(f"check: {op.name} says saves=True, but its forward does not return (result, saved).")
    y = result[0] if op.saves else result
    if not isinstance(y, (np.ndarray, np.generic, float)) or np.asarray(y).dtype.kind not in "fc":
        kind = str(np.asarray(y).dtype) if isinstance(y, (np.ndarray, np.generic)) else type(y).__name__
        what = f"check: the forward of {op.name} gives {kind}; an array of floating-point numbers is needed."
        raise ArgumentTypeError(what)


def flat_outputs(y: Any, name: str) -> list[Tensor]:
    """The tensors in a result: one, or those in tuples, lists and dicts."""
    if isinstance(y, Tensor):
        return [y]
    if isinstance(y, dict):
        y = list(y.values())
    if isinstance(y, (tuple, list)) and y:
        return [each for part in y if part is not None for each in flat_outputs(part, name)]
    raise ArgumentTypeError(
        message(
            f"check: {name} returned a {type(y).__name__}; a tensor is needed.",
            "Without a tensor nothing was recorded, so there is no gradient to check.",
            "Compute with tensors to the end; for plain NumPy with a gradient written by hand there is ta.check_rule.",
        )
    )


def _float_array(arg: Any) -> np.ndarray | None:
    """The numbers of an argument to differentiate by; None for all others."""
    if isinstance(arg, Tensor):
        return np.array(arg.data) if arg.dtype.kind == "f" else None
    if isinstance(arg, (bool, int, str, bytes)) or arg is None or callable(arg):
        return None
    if isinstance(arg, (float, np.ndarray, np.generic, list, tuple)):
        try:
            array = np.array(arg)
        except ValueError:
            return None
        return array if array.dtype.kind == "f" else None
    return None


def _holds_whole_numbers(arg: Any) -> bool:
    if isinstance(arg, (list, tuple)) or (isinstance(arg, int) and not isinstance(arg, bool)):
        arg = np.asarray(arg, dtype=object) if isinstance(arg, int) else np.array(arg, dtype=object)
        return bool(arg.size) and all(isinstance(each, int) for each in arg.flat)
    return getattr(getattr(arg, "dtype", None), "kind", "") in ("i", "u")


def _argument_names(f: Any, count: int) -> list[str]:
    """What the function itself calls its arguments."""
    import inspect

    function = f.forward if hasattr(f, "named_parameters") and hasattr(f, "forward") else f
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    return names + [f"input {i + 1}" for i in range(len(names), count)]
