"""From what is handed over, a result, a graph or a function, to a `Program`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinyattn.errors import ArgumentError, ArgumentTypeError, GraphError, TinyattnError, message
from tinyattn.graph import Graph, Node
from tinyattn.handover.following import Comparison, Following, Recording, Still, Watched, check_alike
from tinyattn.handover.program import Argument, Given, Program, Size, Step
from tinyattn.handover.table import TABLE
from tinyattn.mode import switched
from tinyattn.tensor import Tensor, tensor

Dynamic = Mapping[str, Sequence[str | None] | Mapping[int, str]]
_SHORTEST = 3
_MARK = "\0"  # stands before the number of an argument, as a name that nobody else has


def record(what: Any, args: tuple[Any, ...] = (), dynamic: Dynamic | None = None, model: Any = None) -> Program:
    """Make a `Program` of a result, a graph, or a function with an example of its arguments."""
    if isinstance(what, (Graph, Tensor, list, tuple)):
        if args or dynamic:
            raise ArgumentError(message(
                "a recorded graph was given, and arguments or dynamic axes beside it.",
                "A graph has the numbers and lengths that it was recorded with.",
                "Give the function that records it: to_jax(model, x, dynamic={'x': ('n', None)}).",
            ))  # fmt: skip
        graph = what if isinstance(what, Graph) else Graph.of(what, names=_names_of(model))
        single = isinstance(what, Tensor) or (isinstance(what, Graph) and len(graph.outputs) == 1)
        return _program([Recording(graph, {}, {}, [])], {}, {}, single)
    if not callable(what):
        raise ArgumentTypeError(f"a result, a Graph or a function is handed over, not a {type(what).__name__}.")
    return _of_function(what, args, _axes_named({} if dynamic is None else dynamic), model)


# -- functions ---------------------------------------------------------------------------------------------------------


def _of_function(f: Callable[..., Any], args: tuple[Any, ...], dynamic: dict[str, Any], model: Any) -> Program:
    owner = model if model is not None else f if hasattr(f, "named_parameters") else getattr(f, "__self__", None)
    names = _argument_names(f, len(args))
    _check_call(f, args)
    arrays = {name: _array_of(x) for name, x in zip(names, args, strict=True) if _is_array(x)}
    axes = _checked_axes(dynamic, arrays)
    single = [True]

    def recorded(numbers: dict[str, np.ndarray], lengths: dict[str, int]) -> Recording:
        values = [_like(x, numbers[name]) if name in numbers else x for name, x in zip(names, args, strict=True)]
        seen: list[Comparison] = []
        with switched(watch_comparison=lambda *made: seen.append(_comparison(*made))):
            result = _called(f, values, lengths, axes)
        single[0] = isinstance(result, Tensor)
        marked = [(f"{_MARK}{at}", x) for at, x in enumerate(values) if isinstance(x, Tensor)]
        graph = Graph.of(result, names=[*_names_of(owner), *marked], variables=_variables_of(f))
        return Recording(graph, numbers, lengths, seen)

    recordings = [recorded(*each) for each in _examples(arrays, axes)]
    check_alike(recordings)
    return _program(recordings, {f"{_MARK}{at}": name for at, name in enumerate(names)}, axes, single[0])


def _axes_named(dynamic: object) -> dict[str, Any]:
    if not isinstance(dynamic, Mapping):
        told = f"dynamic is a {type(dynamic).__name__}; names of arguments with names of axes are needed."
        raise ArgumentTypeError(message(told, "", "Write dynamic={'x': ('n', None)}."))
    return dict(dynamic)


def _argument_names(f: Callable[..., Any], count: int) -> list[str]:
    """The names of the parameters of a function, as far as there are arguments; made up where it has none."""
    try:
        given = [each for each in inspect.signature(_target(f)).parameters.values()
                 if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    except (TypeError, ValueError):
        given = []
    names = [each.name for each in given][:count]
    return names + [f"x{at}" for at in range(len(names), count)]


def _target(f: Callable[..., Any]) -> Callable[..., Any]:
    """Where the arguments of a function, or of a module, stand."""
    is_module = hasattr(f, "named_parameters") and hasattr(f, "forward")
    return f.forward if is_module else f  # type: ignore[attr-defined]


def _is_array(x: Any) -> bool:
    return isinstance(x, (Tensor, np.ndarray, list))


def _array_of(x: Any) -> np.ndarray:
    array = x.data if isinstance(x, Tensor) else np.asarray(x)
    if array.dtype.kind not in "fiub":
        raise ArgumentTypeError(f"an example of the arguments holds {array.dtype}; numbers are needed.")
    return array


def _like(x: Any, numbers: np.ndarray) -> Any:
    """Numbers as the function was given them: a fresh tensor for a tensor, an array for an array."""
    return tensor(numbers, requires_grad=x.requires_grad) if isinstance(x, Tensor) else numbers.copy()


def _checked_axes(dynamic: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, tuple[str | None, ...]]:
    for name, axes in dynamic.items():
        if name not in arrays:
            known = ", ".join(arrays) or "none"
            raise ArgumentError(f"dynamic: no array argument is named {name!r}; there are {known}.")
        if isinstance(axes, Mapping):  # as ONNX's own exporters have it
            dynamic[name] = axes = tuple(axes.get(axis) for axis in range(arrays[name].ndim))
        if len(tuple(axes)) != arrays[name].ndim:
            raise ArgumentError(message(
                f"dynamic: {name} has shape {arrays[name].shape}, and {len(tuple(axes))} axes are named.", "",
                "Give one entry for each axis: a name where the length may differ, None where it may not.",
            ))  # fmt: skip
        for axis, n in zip(axes, arrays[name].shape, strict=True):
            if axis is not None and n < _SHORTEST:
                raise ArgumentError(message(
                    f"dynamic: axis {axis!r} of {name} has length {n} in the example.",
                    "Shorter ones are tried, to see what follows the length.",
                    f"Give an example of at least {_SHORTEST}, as long as the longest that will be needed.",
                ))  # fmt: skip
    return {name: tuple(axes) for name, axes in dynamic.items()}


def _examples(
    arrays: dict[str, np.ndarray], axes: dict[str, tuple[str | None, ...]]
) -> list[tuple[dict[str, np.ndarray], dict[str, int]]]:
    """The arguments as given; then others: for each dynamic axis one with only that shorter, then all shorter."""
    longest: dict[str, int] = {}
    for name, own in axes.items():
        for axis, n in zip(own, arrays[name].shape, strict=True):
            if axis is not None and longest.setdefault(axis, n) != n:
                raise ArgumentError(f"dynamic: axis {axis!r} has length {longest[axis]} and {n} in the example.")
    shorter = [{**longest, axis: n - 1} for axis, n in longest.items()]
    lengths = [longest, *shorter, {axis: max(2, n - 2) for axis, n in longest.items()}]
    rng = np.random.default_rng(0)

    def other(name: str, sizes: dict[str, int]) -> np.ndarray:
        own = axes.get(name, (None,) * arrays[name].ndim)
        part = arrays[name][tuple(slice(None) if axis is None else slice(sizes[axis]) for axis in own)]
        mixed = rng.permutation(part.reshape(-1)).reshape(part.shape)
        return mixed * rng.uniform(0.7, 1.0, part.shape).astype(part.dtype) if part.dtype.kind == "f" else mixed

    for name, array in arrays.items():
        if array.dtype.kind != "f" and (array == array.reshape(-1)[:1].reshape((1,) * array.ndim)).all():
            raise ArgumentError(message(
                f"the argument {name} holds the same value everywhere, so what it is used for cannot be followed.",
                "", "Give an example in which its entries differ.",
            ))  # fmt: skip
    return [(arrays, longest), *(({name: other(name, each) for name in arrays}, each) for each in lengths[1:])]


def _check_call(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Refuse a function that cannot be called with the examples that were given, before it is."""
    try:
        inspect.signature(_target(f)).bind(*args)
    except TypeError as error:
        raise ArgumentTypeError(message(
            f"the function cannot be called with {len(args)} examples: {error}.",
            "It is run on an example of each argument, to record what it does.",
            "Give one for each after the function: to_jax(model, x).",
        )) from None  # fmt: skip
    except ValueError:  # a function of C, which does not say what it takes
        return


def _called(f: Callable[..., Any], values: list[Any], lengths: dict[str, int], axes: Any) -> Any:
    try:
        result = f(*values)
    except TinyattnError as error:
        if not axes:
            raise
        raise GraphError(message(
            f"with {', '.join(f'{axis} = {n}' for axis, n in lengths.items())} the function fails: {error}",
            "Shorter lengths than in the example are tried, to see what follows them.",
            "Leave the axis that must keep its length out of dynamic=...",
        )) from error  # fmt: skip
    results = [result] if isinstance(result, Tensor) else result
    if not isinstance(results, (list, tuple)) or not results or not all(isinstance(y, Tensor) for y in results):
        raise ArgumentTypeError(f"the function gives a {type(result).__name__}; a tensor, or several, is needed.")
    return result


def _comparison(compare: Any, left: Tensor, right: Any, result: Any) -> Comparison:
    side = Watched(right.data) if isinstance(right, Tensor) else right
    return Comparison(compare.__name__, left.data, side, np.asarray(result))


def _names_of(model: Any) -> list[tuple[str, Tensor]]:
    return list(model.named_parameters()) if hasattr(model, "named_parameters") else []


def _variables_of(f: Any) -> dict[str, Any]:
    """Where names of tensors are looked for: what a function closes over, and what it uses of its module."""
    code, space = getattr(f, "__code__", None), getattr(f, "__globals__", {})
    if code is None:
        return {}
    inside = {name: space[name] for name in code.co_names if name in space}
    for name, cell in zip(code.co_freevars, f.__closure__ or (), strict=True):
        try:
            inside[name] = cell.cell_contents
        except ValueError:  # a variable that is not bound yet
            continue
    return inside


# -- programs ----------------------------------------------------------------------------------------------------------


def _program(recordings: list[Recording], marks: dict[str, str], axes: Any, single: bool) -> Program:
    graph, following = recordings[0].graph, Following(recordings)
    arguments: list[Argument] = []
    steps: dict[int, list[Step]] = {}
    named = {node.index: marks.get(node.name, "") for node in graph.nodes}
    taken = {name for name in marks.values()}
    for node in graph.nodes:
        name = named[node.index] or (f"{node.name}·own" if node.name in taken else node.name)
        if node.op is not None:
            steps.setdefault(node.index, []).insert(0, _operation(node, name, following))
        elif named[node.index] or node.kind == "parameter" or (not marks and node.kind == "input"):
            kind = "input" if named[node.index] or node.kind == "input" else "parameter"
            still = None if kind == "parameter" or named[node.index] else following.leaf(node.index)
            if isinstance(still, Still):
                steps.setdefault(still.node, []).append(_still_step(node, name, still))
                continue
            arguments.append(Argument(name, kind, node.value, axes.get(name, ())))
            steps.setdefault(node.index, []).insert(0, _step(node, name, "argument", {"name": name}))
        else:
            _constant(node, name, following, steps)
    _arrays_among_arguments(recordings[0].arrays, arguments, axes)
    order = [step for index in sorted(steps) for step in steps[index]]
    shapes = [following.shape(index) for index in graph.outputs]
    return Program(_in_order(arguments, list(marks.values())), order, graph.outputs, single, shapes)


def _in_order(arguments: list[Argument], names: list[str]) -> list[Argument]:
    """Inputs in the order in which the function has them."""
    place = {name: at for at, name in enumerate(names)}
    return sorted(arguments, key=lambda each: (each.kind == "input", place.get(each.name, 0)))


def _arrays_among_arguments(arrays: dict[str, np.ndarray], arguments: list[Argument], axes: Any) -> None:
    """Arrays that no leaf stands for, such as masks and indices, are arguments all the same."""
    known = {argument.name for argument in arguments}
    arguments.extend(Argument(name, "input", array, axes.get(name, ()))
                     for name, array in arrays.items() if name not in known)  # fmt: skip


def _constant(node: Node, name: str, following: Following, steps: dict[int, list[Step]]) -> None:
    found = following.leaf(node.index)
    if isinstance(found, Still):
        steps.setdefault(found.node, []).append(_still_step(node, name, found))
    elif isinstance(found, Given) and found == Given(found.argument):
        steps.setdefault(node.index, []).insert(0, _step(node, name, "argument", {"name": found.argument}))
    else:
        params = {"value": found, "dtype": node.dtype} if isinstance(found, Size) else {"value": found}
        steps.setdefault(node.index, []).insert(0, _step(node, name, "constant", params))


def _operation(node: Node, name: str, following: Following) -> Step:
    if node.op_name not in TABLE:
        return _step(node, name, node.op_name, {"inside": _composed(node, name, following)})
    params = {each: following.parameter(node.index, each) for each in node.params}
    whole = node.op_name not in ("cast", "size_of") and any(
        following.nodes[source][0].dtype.kind != "f" for source in node.inputs
    )
    return _step(node, name, node.op_name, params)._replace(
        dtype=node.dtype.name if whole and node.dtype.kind == "f" else ""
    )


def _composed(node: Node, name: str, following: Following) -> Program:
    """An operation without a saying of its own, by the simpler ones that its record is composed of."""
    if node.op is None or node.op.composed is None:
        names = ", ".join(["w", *(node.op.input_names if node.op else ()), *node.params])
        raise GraphError(message(
            f"the operation {node.op_name!r} ({name}) has no saying in other libraries.",
            "It is not of the rule book, and its record has no composed form.",
            f"Write handover.say({node.op_name!r}, lambda {names}: ...).",
        ))  # fmt: skip
    recordings, marks = [], {f"{_MARK}{slot}": f"input {slot}" for slot in range(len(node.inputs))}
    for versions, outer in zip(following.nodes[node.index], following.recordings, strict=True):
        leaves = [tensor(outer.graph.nodes[source].value, requires_grad=True) for source in node.inputs]
        result = node.op.composed(*leaves, *versions.params.values())
        graph = Graph.of(result, names=list(zip(marks, leaves, strict=True)), variables={})
        recordings.append(Recording(graph, outer.arrays, outer.lengths, []))
    inner = _program(recordings, marks, {}, True)
    inner.arguments = [each for each in inner.arguments if each.name in marks.values()]
    return inner


def _still_step(node: Node, name: str, still: Still) -> Step:
    return Step(node.index, name, node.scope, "still", (still.node,), {"axes": still.axes}, "")


def _step(node: Node, name: str, op: str, params: dict[str, Any]) -> Step:
    place = f"{node.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{node.line}" if node.line else ""
    return Step(node.index, name, node.scope, op, node.inputs, params, place)
