"""A recorded graph as an ONNX file, which ONNX Runtime and many others run."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tinyattn.errors import optional_library
from tinyattn.files import write_whole
from tinyattn.handover.onnx_words import OnnxWords, Value
from tinyattn.handover.program import Argument, Program, Size
from tinyattn.handover.recording import Dynamic, record

OPSET = 18
"""The version of ONNX's operators that is written: the first in which all reductions take their axes alike."""
_FORMAT = 8  # of the file itself; the first that opset 18 was released with


def to_onnx(
    what: Any,
    *args: Any,
    path: str | os.PathLike[str] | None = None,
    dynamic: Dynamic | None = None,
    model: Any = None,
    parameters_as_inputs: bool = False,
) -> Any:
    """Make an ONNX model of a recorded graph, look it over with ONNX's own checker, and write it to a file.

    Parameters
    ----------
    what, *args, dynamic, model
        As in `to_function`.
    path : str or path, optional
        Where to write it.
    parameters_as_inputs : bool
        Whether parameters may be given at every run; the recorded ones stay in the file as what they are otherwise.

    Returns
    -------
    onnx.ModelProto
        In opset 18.  Values have the names of the steps, with their scopes before them.

    Raises
    ------
    MissingLibraryError
        When onnx is not installed.

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> layer = ta.nn.Linear(2, 1, rng=0)
    >>> model = to_onnx(layer, ta.tensor(np.ones((3, 2))), dynamic={"x": ("n", None)})
    >>> [node.op_type for node in model.graph.node]
    ['MatMul', 'Add']
    """
    onnx = optional_library("onnx", "It writes and checks the file.", "onnx onnxruntime")
    program = record(what, args, dynamic, model)
    made = _model(onnx, program, parameters_as_inputs)
    onnx.checker.check_model(made, full_check=True)
    if path is not None:
        write_whole(path, made.SerializeToString())
    return made


def _model(onnx: Any, program: Program, parameters_as_inputs: bool) -> Any:
    words, helper = OnnxWords(bool(program.where_axis)), onnx.helper
    given = {each.name: Value(words, each.name, each.value) for each in program.arguments}
    with np.errstate(all="ignore"):
        values = program.run(words, given)
    results = program.results(values)
    outputs = [_output(words, x, at) for at, x in enumerate([results] if program.single else results)]
    inputs = [each for each in program.arguments if each.kind == "input"]
    parameters = [each for each in program.arguments if each.kind == "parameter"]
    nodes = _needed(words.nodes, [x.name for x in outputs])
    read = {name for node in nodes for name in node.input}
    constants = {name: array for name, array in words.initializers.items() if name in read}
    graph = helper.make_graph(
        nodes, "tinyattn",
        [_input(helper, each) for each in [*inputs, *(parameters if parameters_as_inputs else [])]],
        [helper.make_tensor_value_info(x.name, helper.np_dtype_to_tensor_dtype(x.dtype), _sizes(shape))
         for x, shape in zip(outputs, program.shapes, strict=True)],
        [onnx.numpy_helper.from_array(array, name) for name, array in
         {**{each.name: each.value for each in parameters}, **constants}.items()],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="tinyattn")
    made.ir_version = _FORMAT
    return made


def _needed(nodes: list[Any], outputs: list[str]) -> list[Any]:
    """The nodes that a result is made of: lengths are asked for before it is known whether anything follows them."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if wanted & set(node.output):
            wanted |= set(node.input)
            kept.append(node)
    return kept[::-1]


def _output(words: OnnxWords, x: Value, at: int) -> Value:
    """The result under a name of its own: an argument, a constant or an earlier result cannot be one as it is."""
    with words.inside((), f"output_{at}"):
        made = any(x.name in node.output for node in words.nodes)
        taken = any(x.name in node.input for node in words.nodes if node.op_type == "Identity")
        return x if made and not taken else words.write("Identity", [x], x.example)


def _input(helper: Any, argument: Argument) -> Any:
    axes = argument.axes or (None,) * argument.value.ndim
    sizes = [axis or n for axis, n in zip(axes, argument.value.shape, strict=True)]
    return helper.make_tensor_value_info(argument.name, helper.np_dtype_to_tensor_dtype(argument.value.dtype), sizes)


def _sizes(shape: tuple[Any, ...]) -> list[int | str | None]:
    """Lengths as ONNX has them: numbers, names of lengths that may differ, nothing where it is another one."""
    return [(size.axes[0] if size == Size(1, size.axes[:1], 0) else None) if isinstance(size, Size) else size
            for size in shape]  # fmt: skip
