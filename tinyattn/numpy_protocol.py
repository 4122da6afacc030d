"""NumPy's own spellings on tensors: ``np.exp(t)``, ``array + t``, ``np.concatenate([t, t])``.

An explicit table says which NumPy function is which of ours.  What is not in it is refused with the nearest
thing that is, because letting NumPy convert the tensor would lose the gradient without a word.
"""

from __future__ import annotations

import copy as copy_module
import sys
import warnings
from collections.abc import Callable
from opcode import opmap
from typing import Any

import numpy as np

from tinyattn import composed, elsewhere, functions
from tinyattn.arguments import values_of
from tinyattn.errors import ArgumentTypeError, GradientLost, message
from tinyattn.mode import mode
from tinyattn.names import describe
from tinyattn.places import OUTSIDE, find_place
from tinyattn.tensor import Tensor

_PLAIN_UFUNCS = {
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isfinite, np.isnan, np.isinf,
    np.signbit, np.logical_and, np.logical_or, np.logical_not, np.logical_xor,
}
"""Ufuncs whose result is true or false: they have no gradient, so plain arrays are right."""

UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: functions.add, np.subtract: functions.subtract, np.multiply: functions.multiply,
    np.true_divide: functions.divide, np.negative: functions.negative, np.power: functions.power,
    np.absolute: functions.abs, np.exp: functions.exp, np.log: functions.log, np.sqrt: functions.sqrt,
    np.sin: functions.sin, np.cos: functions.cos, np.tanh: functions.tanh, np.maximum: functions.maximum,
    np.minimum: functions.minimum, np.matmul: functions.matmul, np.square: composed.square,
    np.reciprocal: composed.reciprocal, np.positive: lambda x: x,
}

REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.add: functions.sum, np.multiply: functions.prod, np.maximum: functions.max, np.minimum: functions.min,
}

FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: functions.sum, np.max: functions.max, np.min: functions.min, np.prod: functions.prod,
    np.amax: functions.max, np.amin: functions.min,
    np.mean: composed.mean, np.var: composed.var, np.std: composed.std, np.where: functions.where,
    np.clip: functions.clip, np.reshape: functions.reshape, np.transpose: functions.transpose,
    np.matrix_transpose: functions.matrix_transpose, np.expand_dims: functions.expand_dims,
    np.squeeze: functions.squeeze, np.broadcast_to: functions.broadcast_to, np.concatenate: functions.concatenate,
    np.stack: functions.stack, np.take_along_axis: functions.take_along_axis, np.einsum: functions.einsum,
    np.swapaxes: composed.swapaxes, np.moveaxis: composed.moveaxis, np.flip: composed.flip, np.split: composed.split,
    np.trace: composed.trace, np.outer: composed.outer, np.dot: composed.dot,
    np.linalg.norm: lambda x, ord=None, axis=None, keepdims=False: _norm(x, ord, axis, keepdims),
}

_SHAPES: dict[Any, Callable[..., Any]] = {
    np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim, np.size: lambda x: x.size, np.ones_like: np.ones_like,
    np.zeros_like: np.zeros_like, np.empty_like: np.empty_like, np.result_type: np.result_type,
}

_PLAIN_FUNCTIONS = {
    np.argmax, np.argmin, np.argsort, np.allclose, np.array_equal, np.isclose, np.array2string, np.array_repr,
    np.array_str, np.count_nonzero, np.any, np.all, np.isin, np.searchsorted, np.nonzero, np.array_equiv,
    np.may_share_memory, np.shares_memory, np.can_cast, np.unique, np.iscomplexobj, np.isrealobj, np.min_scalar_type,
}
"""Functions whose result is whole numbers, booleans or text."""


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What NumPy calls when a ufunc meets a tensor."""
    name = f"np.{ufunc.__name__}"
    if kwargs.get("out") is not None:
        wrong = f"{name}: out= would write into an array, where no gradient can follow."
        raise ArgumentTypeError(message(wrong, "", f"Write y = {name}(...)."))
    if ufunc in _PLAIN_UFUNCS and method == "__call__":
        return ufunc(*map(values_of, inputs), **kwargs)
    table = {"__call__": UFUNCS, "reduce": REDUCTIONS}.get(method, {})
    if method == "outer" and ufunc is np.multiply:
        return composed.outer(*inputs)
    function = table.get(ufunc)
    if function is None:
        raise ArgumentTypeError(_not_supported(name if method == "__call__" else f"{name}.{method}"))
    taken = {"axis": kwargs.pop("axis", 0), "keepdims": kwargs.pop("keepdims", False)} if method == "reduce" else {}
    if kwargs:
        raise ArgumentTypeError(f"{name} on a tensor takes no {', '.join(sorted(kwargs))}.")
    return function(*inputs, **taken)


def call_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What NumPy calls when one of its functions meets a tensor."""
    ours = FUNCTIONS.get(function)
    if ours is not None:
        try:
            return ours(*args, **kwargs)
        except TypeError as error:
            said = str(error).splitlines()[0].rstrip(".")
            sought = "there is no argument" if isinstance(error, ArgumentTypeError) else "argument"
            if sought not in said:
                raise
            wrong = f"{_spelled(function)} on a tensor: {said}."
            raise ArgumentTypeError(message(wrong, "Only the arguments that tinyattn has are taken.")) from None
    if function in _SHAPES:
        return _SHAPES[function](*map(values_of, args), **kwargs)
    if function is np.pad:
        return _np_pad(*args, **kwargs)
    if function in _PLAIN_FUNCTIONS:
        return function(*(_plain(a) for a in args), **{name: _plain(value) for name, value in kwargs.items()})
    raise ArgumentTypeError(_not_supported(_spelled(function)))


def _spelled(function: Any) -> str:
    return f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)


def _norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Tensor:
    if ord is not None:
        why = "Only the root of the sum of squares is here, without ord."
        raise ArgumentTypeError(message(f"np.linalg.norm(ord={ord!r}) on a tensor is not supported.", why))
    return composed.norm(x, axis, keepdims)


def _plain(x: Any) -> Any:
    return np.asarray(values_of(x)) if isinstance(x, Tensor) else x


def _np_pad(x: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Tensor:
    if mode != "constant":
        raise ArgumentTypeError(message(f"np.pad(mode={mode!r}) on a tensor: only 'constant' has a gradient here."))
    return functions.pad(x, pad_width, kwargs.get("constant_values", 0.0))


_NEAREST = {
    "np.floor_divide": "t / x", "np.log1p": "ta.log(1 + x)", "np.expm1": "ta.exp(x) - 1",
    "np.cumsum": "a matrix product with a triangle of ones", "np.tensordot": "ta.einsum", "np.vdot": "ta.dot",
    "np.inner": "ta.einsum", "np.repeat": "ta.broadcast_to", "np.tile": "ta.broadcast_to",
    "np.hstack": "ta.concatenate", "np.vstack": "ta.concatenate", "np.append": "ta.concatenate",
    "np.take": "t[indices]", "np.diag": "t * np.eye(n)", "np.average": "(w * t).sum() / w.sum()",
    "np.median": "t[np.argsort(t.data)[t.size // 2]]", "np.sort": "t[np.argsort(t.data)]",
    "np.put_along_axis": "ta.where", "np.copyto": "t.assign(array)", "np.full_like": "ta.broadcast_to",
    "np.round": "t.data.round()", "np.add.at": "ta.index, whose gradient adds",
    "np.add.accumulate": "a matrix product with a triangle of ones", "np.fabs": "ta.abs(x)",
    "np.float_power": "ta.power(a, b)", "np.exp2": "2.0 ** x", "np.cbrt": "ta.power(x, 1 / 3)",
    "np.hypot": "ta.sqrt(a * a + b * b)", "np.fmax": "ta.maximum(a, b)", "np.fmin": "ta.minimum(a, b)",
    "np.sinh": "(ta.exp(x) - ta.exp(-x)) / 2", "np.cosh": "(ta.exp(x) + ta.exp(-x)) / 2",
    "np.ravel": "ta.reshape(x, -1)", "np.ptp": "ta.max(x) - ta.min(x)", "np.diff": "x[..., 1:] - x[..., :-1]",
    "np.fliplr": "ta.flip(x, 1)", "np.flipud": "ta.flip(x, 0)", "np.rollaxis": "ta.moveaxis(x, source, destination)",
    "np.roll": "ta.concatenate([x[-n:], x[:-n]])", "np.unstack": "list(x)", "np.array_split": "ta.split(x, places)",
    "np.atleast_2d": "x[None]", "np.nansum": "ta.where(np.isnan(x.data), 0.0, x).sum()",
    "np.vecdot": "ta.sum(a * b, axis=-1)", "np.select": "ta.where(condition, a, b)",
    "np.column_stack": "ta.stack([a, b], axis=-1)", "np.dstack": "ta.stack([a, b], axis=-1)",
    "np.linalg.matmul": "a @ b", "np.linalg.outer": "ta.outer(a, b)", "np.linalg.trace": "ta.trace(x)",
    "np.linalg.matrix_norm": "ta.norm(x, axis=(-2, -1))", "np.linalg.vector_norm": "ta.norm(x)",
    "np.linalg.vecdot": "ta.sum(a * b, axis=-1)", "np.linalg.diagonal": "ta.einsum('...ii->...i', x)",
}
"""What is refused, with the nearest thing that is there; what `ta` is asked for, too, is in `elsewhere.NEAREST`."""


def _not_supported(name: str) -> str:
    nearest = _NEAREST.get(name) or elsewhere.NEAREST.get(name.removeprefix("np."))
    return message(
        f"{name} is not supported on a tensor.",
        "Converting the tensor to an array would lose its gradient silently, so it is refused.",
        (f"Write {nearest}. " if nearest else "") + f"Where no gradient is wanted, write {name}(t.data).",
    )


def as_plain_array(x: Tensor, dtype: Any, copy: bool | None) -> np.ndarray:
    """``np.asarray(t)``: a read-only array, with a warning where a gradient would be lost on the way."""
    if x.requires_grad and mode.recording and _gradient_would_be_lost():
        _warn_of_loss(x)
    array = x.data
    if dtype is not None and array.dtype != np.dtype(dtype):
        if copy is False:
            raise ValueError(f"np.asarray({describe(x)}, copy=False): the dtype {np.dtype(dtype)} needs a copy.")
        return array.astype(dtype)
    return array.copy() if copy else array


_STORE_ITEM = opmap["STORE_SUBSCR"]


def warn_where_stored(x: Tensor, frame: Any) -> None:
    """``float(t)`` is asked for on purpose; at ``z[0] = t`` it is NumPy that asks, and a gradient is lost."""
    if mode.recording and frame.f_code.co_code[frame.f_lasti] == _STORE_ITEM:
        _warn_of_loss(x)


def _warn_of_loss(x: Tensor) -> None:
    warnings.warn(
        message(
            f"{describe(x)} was turned into a plain array; its gradient ends there.",
            "NumPy asked for the numbers, as np.array([t, t]), z[0] = t or np.asarray(t) do.",
            "Write ta.stack([t, t]) or ta.where(...) to keep the gradient, t.data to say that it is not wanted.",
        ),
        GradientLost,
        stacklevel=_depth_outside(),
    )


_READERS = (
    "numpy.testing", "numpy._core.arrayprint", "numpy.lib._npyio", "matplotlib", "pandas", "_pytest"
)


def _gradient_would_be_lost() -> bool:
    """False when whoever asks only reads, such as assert_allclose or a plot."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(_READERS):
            return False
        if find_place(frame.f_code.co_filename) is OUTSIDE and not module.startswith("numpy"):
            return True
        frame = frame.f_back
    return True


_LIBRARIES = ("numpy", "torch", "jax")


def _depth_outside() -> int:
    """How many frames up the line is that should be blamed in a warning: the first that is no library's."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and not _is_the_learners(frame):
        depth, frame = depth + 1, frame.f_back
    return depth


def _is_the_learners(frame: Any) -> bool:
    library = str(frame.f_globals.get("__name__", "")).split(".")[0] in _LIBRARIES
    return find_place(frame.f_code.co_filename) is OUTSIDE and not library


# -- methods that other libraries call, beside those that NumPy does ---------------------------------------------------


def to_dlpack(
    x: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """The numbers for a library that speaks DLPack, as a copy of their own.

    The protocol lets an array be shared read-only, but not every library that says that it knows this keeps to it:
    PyTorch 2.13 writes.  So the graph's own memory is given away only to somebody who asks for no copy.
    """
    if x.requires_grad and mode.recording:
        _warn_of_loss(x)
    if copy is not False:
        return x.numpy().__dlpack__()
    if max_version is None or max_version[0] < 1:
        why = "What was recorded must not be written to, and this reader does not know of read-only memory."
        raise BufferError(message(f"{describe(x)}: its memory cannot be shared.", why, "Leave copy=False out."))
    return x.data.__dlpack__(max_version=max_version, dl_device=dl_device, copy=False)


def _dlpack_device(x: Tensor) -> tuple[int, int]:
    """The processor: 1 is its number in DLPack."""
    return (1, 0)


def _copied(x: Tensor) -> Tensor:
    """``copy.copy``: a result cannot change, so it is its own copy; a leaf gets a twin."""
    return x if x.op is not None else copy_module.deepcopy(x)


def _html(x: Tensor) -> str:
    """For notebooks: a table."""
    from tinyattn.notebook import tensor_html

    return tensor_html(x)


for _name, _method in (
    ("__dlpack__", to_dlpack), ("__dlpack_device__", _dlpack_device), ("__copy__", _copied), ("_repr_html_", _html),
):  # fmt: skip
    setattr(Tensor, _name, _method)
