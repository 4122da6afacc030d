"""`compile`: a function of tensors that runs as a straight-line NumPy program."""

from __future__ import annotations

import inspect
import os
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyattn.arguments import constant, known_arguments, values_of
from tinyattn.autodiff import gradients_of, reachable
from tinyattn.compiled.entrance import entrance, has_entrance
from tinyattn.compiled.program import Program, rebuilt
from tinyattn.compiled.recording import Record, tensors_in
from tinyattn.compiled.surroundings import modules_in, modules_seen_by, underlying
from tinyattn.errors import ArgumentTypeError, GraphError, message
from tinyattn.mode import mode, switches
from tinyattn.ops import Op
from tinyattn.tensor import Tensor, apply

MOST = 64
"""How many programs are kept for one function; the one that was used longest ago goes first."""

CHECKED = 2
"""So many programs of a function are recorded twice, on different numbers, to see that nothing depends on them."""


@known_arguments
def compile(f: Callable[..., Any]) -> Compiled:
    """Turn a function of tensors into a straight-line program of NumPy calls.

    The first call with arguments of new shapes, types or settings records the function on the tape and writes the
    program; later calls run it.  The results are those of the tape, to the last bit where the same NumPy calls are
    made; single numbers are computed as Python floats, in double precision.

    Parameters
    ----------
    f : callable
        Takes tensors or arrays, also inside lists, tuples and dictionaries, and settings; gives tensors.  It may use
        tensors from outside, such as the parameters of a model.  Transforms are functions too:
        ``ta.compile(ta.value_and_grad(f))``.

    Returns
    -------
    Compiled
        Called as ``f`` is.  ``backward(...)`` is ``f(...)`` and the backward pass from it, in one program.
        ``source`` is the program's text, ``save(path)`` writes it to a file that needs NumPy only.

    Examples
    --------
    >>> import tinyattn as ta
    >>> step = ta.compile(ta.value_and_grad(lambda w, x: ((x @ w) ** 2).sum()))
    >>> loss, slope = step(ta.tensor([1.0, 2.0]), ta.tensor([[1.0, 0.0], [0.0, 3.0]]))
    >>> float(loss), slope.tolist()
    (37.0, [2.0, 36.0])
    """
    if not callable(f):
        raise ArgumentTypeError(
            message(f"compile: a function is needed, not a {type(f).__name__}.", "", "Write ta.compile(f).")
        )
    return Compiled(f)


class Compiled:
    """A function with its programs: one for each combination of shapes, types and settings that it was called with.

    Examples
    --------
    >>> import tinyattn as ta
    >>> double = compile(lambda x: x + x)
    >>> double(ta.tensor([1.0, 2.0]))
    tensor([2., 4.], shape=(2,))
    >>> print(double.source[double.source.index("def run") :].split("return")[0].rstrip())
    def run(x):
        total = add(x, x)  # (2,)  add
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self.__name__ = getattr(underlying(f), "__name__", type(f).__name__)
        self.__doc__ = getattr(f, "__doc__", None)
        self.__wrapped__ = f
        self._programs: dict[Any, Program] = {}
        self._latest: Program | None = None
        self._modules: list[Any] = []
        self._enter: dict[Any, Any] = {}  # the short ways into programs, by the shapes of the arguments
        self._enter_backward: dict[Any, Any] = {}

    # -- running -----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute what the function computes."""
        if not kwargs and not switches.set:
            result = self._entered(self._enter, args)
            if result is not None:
                return result
        if switches.set and mode.watch is not None:  # somebody wants to see the operations: a recording, detect_nan
            return self.f(*args, **kwargs)
        arrays, tensors, key = flattened(args, kwargs)
        program = self._program("value", key, arrays, tensors, args, kwargs)
        one = isinstance(program.result, Tensor)
        if one and mode.recording and any(x.requires_grad for x in (*tensors, *program.outside)):
            return self._recorded(program, tensors, args, kwargs)
        found = program.values(arrays)
        if found is None:
            return self._by_tape(args, kwargs)
        if has_entrance(args, kwargs, program.result) and not (one and any(x.requires_grad for x in program.outside)):
            program.enter = program.enter or entrance(program, args, self._modules, False, one)
            self._remember(self._enter, program, args)
        return rebuilt(program.result, iter(program.tensors(found)))

    def backward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Compute the value, and add the gradients to ``.grad`` of every leaf it depends on.

        Returns
        -------
        Tensor
            The value, without a past.

        Examples
        --------
        >>> import tinyattn as ta
        >>> w = ta.tensor([1.0, -2.0], requires_grad=True)
        >>> step = ta.compile(lambda: (w * w).sum())
        >>> step.backward()
        tensor(5., shape=())
        >>> w.grad
        array([ 2., -4.])
        """
        if not kwargs and not switches.set:
            result = self._entered(self._enter_backward, args)
            if result is not None:
                return result  # type: ignore[no-any-return]
        if switches.set and mode.watch is not None:
            return self._backward_by_tape(args, kwargs)
        arrays, tensors, key = flattened(args, kwargs)
        program = self._program("backward", key, arrays, tensors, args, kwargs)
        found = program.values(arrays)
        if found is None:
            return self._backward_by_tape(args, kwargs)
        for place, g in zip(program.leaves, found[1:], strict=True):
            x = tensors[place] if place.__class__ is int else place
            if x.op is not None:
                x.backward(g)
                continue
            notes = x.own_notes()
            g = g if g.__class__ is np.ndarray else np.array(g, x.dtype)
            notes.grad = g if notes.grad is None else np.add(notes.grad, g)
        behind = [x for x in (*tensors, *program.outside) if x.op is not None and x.requires_grad]
        if has_entrance(args, kwargs, program.result[0]) and not behind:
            program.enter = program.enter or entrance(program, args, self._modules, True, False)
            self._remember(self._enter_backward, program, args)
        return program.tensors(found[:1])[0]

    def _entered(self, table: dict[Any, Program], args: tuple[Any, ...]) -> Any:
        """What the short way in gives; None where there is none for these arguments."""
        try:
            program = table.get(tuple([x.shape for x in args]))
        except AttributeError:  # an argument without a shape
            return None
        if program is None:
            return None
        self._latest = program
        return program.enter(args)

    def _remember(self, table: dict[Any, Any], program: Program, args: Any) -> None:
        if len(table) > MOST:
            table.clear()
        table[tuple([x.shape for x in args])] = program

    def _by_tape(self, args: Any, kwargs: Any) -> Any:
        """The same by the tape: a number that is not finite, or a row that does not exist."""
        result = self.f(*args, **kwargs)
        return rebuilt(result, iter([x.detach() for x in tensors_in(result)]))

    def _backward_by_tape(self, args: Any, kwargs: Any) -> Tensor:
        y = self.f(*args, **kwargs)
        y.backward()
        return y.detach()  # type: ignore[no-any-return]

    def _recorded(self, program: Program, tensors: list[Tensor], args: Any, kwargs: Any) -> Any:
        """The result as one operation of a graph, so that gradients go through it."""
        inputs = tuple({id(x): x for x in (*tensors, *program.outside) if x.requires_grad}.values())
        if len({x.dtype for x in inputs}) > 1:  # an op would bring them to one type
            return self.f(*args, **kwargs)
        return apply(self._op(program, inputs, tensors, args, kwargs), inputs)

    def _op(self, program: Program, inputs: tuple[Tensor, ...], tensors: list[Tensor], args: Any, kwargs: Any) -> Op:
        """The whole function as one operation; its gradient is another program, gradients of that go by the tape."""

        def numbers(given: Any) -> tuple[list[Any], dict[int, Any]]:
            """The arrays of the arguments, and of the inputs by identity, with the numbers that the op is given."""
            known = {id(x): array for x, array in zip(inputs, given, strict=True)}
            return [known.get(id(x), values_of(x)) for x in tensors], known

        def forward(*given: Any) -> Any:
            if any(type(array) is not type(values_of(x)) or array.dtype != x.dtype for array, x in zip(given, inputs)):
                raise other_numbers_than_floats(self.__name__)
            arrays, known = numbers(given)
            found = program.values(arrays, known)
            if found is not None:
                return values_of(program.tensors(found)[0])
            if all(array is values_of(x) for array, x in zip(given, inputs, strict=True)):
                return values_of(self._by_tape(args, kwargs))
            return values_of(composed(*map(constant, given)))

        def composed(*given: Tensor) -> Any:
            place = {id(x): y for x, y in zip(inputs, given, strict=True)}
            swap = [place.get(id(x), x) for x in tensors]
            again, more = _rebuild_arguments(args, kwargs, iter(swap))
            return self.f(*again, **more)

        def rule(g: Any, y: Any, *given: Any) -> Any:
            arrays, known = numbers(given)
            places = [next((n for n, x in enumerate(tensors) if x is y), y) for y in inputs]
            key = flattened(args, kwargs)[2], tuple(map(_place_key, places))
            pull = self._program("pull", key, [*arrays, g], tensors, args, kwargs, places)
            found = pull.values([*arrays, g], known)
            if found is None:
                return [values_of(x) for x in gradients_of(composed(*inputs), list(inputs), g)]
            return [x if x.__class__ is np.ndarray else kind(x) for x, kind in zip(found, pull.kinds, strict=True)]

        names = tuple(f"x{n}" for n in range(len(inputs)))
        meaning = "no formula: this is a program; look at the function itself, compiled.f"
        return Op(
            f"compiled {self.__name__}", forward, rule, meaning, inputs=names, composed=composed, sample=_no_calls
        )

    # -- programs ----------------------------------------------------------------------------------------------------

    def _program(
        self, kind: str, key: Any, arrays: list[Any], tensors: list[Tensor], args: Any, kwargs: Any,
        places: list[Any] | None = None,
    ) -> Program:  # fmt: skip
        if not self._programs:
            self._modules = modules_seen_by(self.f)
        key = (kind, key, tuple([module.training for module in self._modules]))
        program = self._programs.get(key)
        if program is not None and program.still_fits():
            self._latest = program
            return program
        names = argument_names(self.f, args, kwargs)
        leaves: list[Any] = []

        def call(stand_ins: list[Tensor], found: Record) -> Any:
            again, more = _rebuild_arguments(args, kwargs, iter(stand_ins))
            y = self.f(*again, **more)
            if kind == "value":
                return y
            if not isinstance(y, Tensor):
                raise not_one_tensor(self.__name__, kind)
            if kind == "pull":
                assert places is not None
                targets = [stand_ins[place] if isinstance(place, int) else found.stand_in(place) for place in places]
                return gradients_of(y, targets, stand_ins[-1], create_graph=True)
            wanted = [n for n, x in enumerate(tensors) if x.requires_grad]
            behind = reachable([y]) if y.requires_grad else []
            outside = [x for x in reversed(behind) if x.op is None and not any(x is s for s in stand_ins)]
            used = [n for n in wanted if any(stand_ins[n] is x for x in behind)]
            originals = {id(other): x for x, other in found.outside.values()}
            leaves[:] = [*used, *(originals[id(x)] for x in outside)]
            targets = [*(stand_ins[n] for n in used), *outside]
            return [y, *gradients_of(y, targets, None, create_graph=True)]

        names += ["g"] * (len(arrays) - len(names))
        twice = sum(known[0] == kind for known in self._programs) < CHECKED
        program = Program(self.f, call, arrays, names, twice)
        program.leaves = leaves
        self._programs.pop(key, None)
        while len(self._programs) >= MOST:
            del self._programs[next(iter(self._programs))]
        self._programs[key] = self._latest = program
        return program

    @property
    def program(self) -> Program:
        """The program that ran last."""
        if self._latest is None:
            raise GraphError(
                message(
                    f"compile: {self.__name__} has no program yet.",
                    "It is written for the shapes and types of the first call.",
                    "Call it once, then look at .source.",
                )
            )
        return self._latest

    @property
    def programs(self) -> list[Program]:
        """All programs, one for each combination of shapes, types and settings."""
        return list(self._programs.values())

    @property
    def source(self) -> str:
        """The text of the program that ran last: a Python module that needs NumPy only."""
        return self.program.source

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program that ran last to a file, whole or not at all."""
        self.program.save(path)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __reduce__(self) -> Any:
        return compile, (self.f,)

    def __repr__(self) -> str:
        count = len(self._programs)
        return f"compile({self.__name__}), {count} program{'' if count == 1 else 's'}"


def _no_calls(rng: Any) -> list[Any]:
    return []


def other_numbers_than_floats(name: str) -> GraphError:
    """Say that a program has no exact or complex reading."""
    return GraphError(
        message(
            f"compile: {name} is a program here, for floating-point numbers of one type.",
            "Exact and complex numbers go through the operations that it was made from.",
            "Use the function itself, compiled.f, for that.",
        )
    )


def not_one_tensor(name: str, kind: str) -> GraphError:
    """Say that a backward pass starts from one tensor."""
    return GraphError(
        message(
            f"compile: {name} does not return one tensor, so {kind} does not know where to start.",
            "A backward pass goes from one number to everything that it depends on.",
            "Return the loss alone, or compile ta.value_and_grad of it.",
        )
    )


# -- arguments ------------------------------------------------------------------------------------------------------


def flattened(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], list[Tensor], Any]:
    """The arrays among arguments, the tensors that hold them, and a key of everything else."""
    arrays: list[Any] = []
    tensors: list[Tensor] = []
    key = [_flat(x, arrays, tensors) for x in args]
    if kwargs:
        key.append(tuple((name, _flat(x, arrays, tensors)) for name, x in kwargs.items()))
    return arrays, tensors, tuple(key)


def _flat(x: Any, arrays: list[Any], tensors: list[Tensor]) -> Any:
    if isinstance(x, Tensor):
        value = values_of(x)
        arrays.append(value)
        tensors.append(x)
        return value.shape, value.dtype, x.requires_grad
    if isinstance(x, (np.ndarray, np.generic)):
        leaf = Tensor.detach(_as_tensor(x))
        arrays.append(values_of(leaf))
        tensors.append(leaf)
        return leaf.shape, leaf.dtype, False
    if isinstance(x, (list, tuple)):
        return (type(x), *(_flat(part, arrays, tensors) for part in x))
    if isinstance(x, dict):
        return (dict, *((name, _flat(part, arrays, tensors)) for name, part in x.items()))
    try:
        hash(x)
    except TypeError:
        raise ArgumentTypeError(
            message(
                f"compile: an argument of type {type(x).__name__} cannot be told from another one.",
                "There is one program for each setting, so a setting must be hashable.",
                "Give tensors, arrays, numbers, texts, or lists, tuples and dictionaries of them.",
            )
        ) from None
    if type(x) in _PLAIN:
        return type(x), x
    return type(x), x, tuple([module.training for module in modules_in({"": x, **getattr(x, "__dict__", {})})])


_PLAIN = {int, float, bool, str, bytes, complex, type(None)}


def _as_tensor(x: Any) -> Tensor:
    from tinyattn.arguments import operand

    return operand(x, "compile")


def _rebuild_arguments(args: Any, kwargs: Any, stand_ins: Any) -> tuple[Any, Any]:
    return _swap(args, stand_ins), _swap(kwargs, stand_ins)


def _swap(x: Any, stand_ins: Any) -> Any:
    """The arguments with other tensors in the places of tensors and arrays."""
    if isinstance(x, (Tensor, np.ndarray, np.generic)):
        return next(stand_ins)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(_swap(part, stand_ins) for part in x))
    if isinstance(x, (list, tuple)):
        return type(x)(_swap(part, stand_ins) for part in x)
    if isinstance(x, dict):
        return {name: _swap(part, stand_ins) for name, part in x.items()}
    return x


def _place_key(place: Any) -> Any:
    return place if isinstance(place, int) else ("outside", id(place))


def argument_names(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """A word for each array among the arguments: the parameter's, with a number inside lists."""
    try:
        parameters = list(inspect.signature(underlying(f)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), "x")
    plain += [f"{rest}_{n}" for n in range(len(args) - len(plain))]
    found: list[str] = []
    for name, x in (*zip(plain, args, strict=False), *kwargs.items()):
        _name_arrays(name, x, found)
    return found


def _name_arrays(name: str, x: Any, found: list[str]) -> None:
    if isinstance(x, (Tensor, np.ndarray, np.generic)):
        found.append(name)
    elif isinstance(x, (list, tuple)):
        for at, part in enumerate(x):
            _name_arrays(f"{name}_{at}", part, found)
    elif isinstance(x, dict):
        for key, part in x.items():
            _name_arrays(str(key), part, found)
