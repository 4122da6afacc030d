"""What the engine's errors say, put together only when something has failed.

Each function here gives an exception and leaves the raising to its caller: ``raise explain.immutable(t)`` says at
the place of the fault what is refused, and the sentences do not stand in the way of the code.  Every message has
the three parts of `tinyattn.errors.message`.  ``REASONS`` says for an operation, by its name, why a call cannot
work; an operation of your own raises its own `ShapeError` in its forward, or is explained by NumPy's words.
"""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyattn import elsewhere
from tinyattn.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GraphError,
    IndexRangeError,
    NanError,
    RuleError,
    ShapeError,
    TinyattnError,
    message,
)
from tinyattn.names import as_written, describe, known_name, place_text
from tinyattn.places import caller_variables

if TYPE_CHECKING:
    from tinyattn.ops import Op
    from tinyattn.tensor import Tensor

Shapes = Sequence[tuple[int, ...]]
Reason = tuple[str, str]

# -- a call that an operation cannot carry out -------------------------------------------------------------------


def failed_call(op: Op, inputs: Sequence[Tensor], params: tuple[Any, ...], error: Exception) -> Exception:
    """Turn whatever a forward raised into words about this operation and these operands."""
    if isinstance(error, TinyattnError):
        return error
    if not isinstance(error, (ValueError, IndexError, TypeError, MemoryError, FloatingPointError, Warning)):
        error.add_note(f"while computing {op.name}")  # a fault inside an op of one's own: its traceback is wanted
        return error
    variables = caller_variables(sys._getframe(1))
    inputs = [as_written(x, variables) for x in inputs]
    names = [known_name(x, variables) for x in inputs]
    shapes = [x.shape for x in inputs]
    named = dict(zip(op.param_names, params, strict=True))
    shown = _pairs(names, shapes)
    extra = "".join(f", {name}={value}" for name, value in named.items() if isinstance(value, (int, float, str, tuple)))
    usual = _broadcast if "broadcast" in str(error) and len(shapes) > 1 else None  # for an op of one's own
    reason = REASONS.get(op.name, usual)
    try:
        why, instead = reason(names, shapes, named) if reason else ("", "")
    except (ValueError, IndexError, TypeError):
        why, instead = "", ""
    places = ((name, place_text(x)) for name, x in zip(reversed(names), reversed(inputs), strict=True))
    made = next((f"{name} was made at {place}." for name, place in places if place), "")
    advice = f"{instead} {made}".strip()
    call = f"{op.name}({shown}{extra})"
    words = str(error).rstrip(".")
    if isinstance(error, (FloatingPointError, Warning)):  # warnings turned into errors, or np.errstate(all="raise")
        return NanError(message(f"{call}: {words}.", "", made))
    if "negative integer power" in words:
        why, advice = "Whole numbers to a negative power are no whole numbers.", "Write ta.tensor(..., dtype=float)."
        return DTypeError(message(f"{call}: the base is of {inputs[0].dtype}.", why, f"{advice} {made}".strip()))
    if isinstance(error, MemoryError):
        return ShapeError(message(f"{call}: the result does not fit into memory.", "", made))
    if isinstance(error, IndexError):
        return IndexRangeError(message(f"{op.name}({shown}): {words}.", why, advice))
    if isinstance(error, TypeError) and "numpy boolean" in words:
        advice = f"Write ta.tensor(..., dtype=float); for masks work on t.data. {made}".strip()
        call = f"{op.name}({_pairs(names, [x.dtype for x in inputs])})"
        return DTypeError(message(f"{call} is not defined.", "True and False are no numbers here.", advice))
    if isinstance(error, TypeError):
        return DTypeError(message(f"{op.name}({_pairs(names, [x.dtype for x in inputs])}): {words}.", why, advice))
    return ShapeError(message(f"{call} does not fit." if why else f"{call}: {words}.", why, advice))


_SIGNS = {"gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!="}


def failed_comparison(compare: Any, x: Tensor, other: Any, error: Exception) -> Exception:
    """``x > y`` of shapes that do not broadcast, or of something that has no numbers."""
    variables, sign = caller_variables(sys._getframe(1)), _SIGNS.get(compare.__name__, compare.__name__)
    left = known_name(x, variables)
    if "broadcast" not in str(error):
        what = f"{left} {sign} ...: a {type(other).__name__} cannot be compared with numbers."
        return ArgumentTypeError(message(what, "", f"Write a number, or an array of the shape {x.shape}."))
    right = known_name(other, variables) if hasattr(other, "requires_grad") else f"this {type(other).__name__}"
    shapes = (x.shape, getattr(other, "shape", None) or np.shape(other))
    why, instead = _broadcast((left, right), shapes, {})
    return ShapeError(message(f"{left} {sign} {right} does not fit: {shapes[0]} and {shapes[1]}.", why, instead))


def unfit(kind: type[Exception], name: str, x: Tensor, what: str, why: str = "", instead: str = "") -> Exception:
    """An argument that does not fit one operand: ``sum(X: (2, 3)): axis 2 ...``, and where X was made."""
    place = place_text(x)
    made = f"{known_name(x)} was made at {place}." if place else ""
    return kind(message(f"{name}({describe(x)}): {what}", why, f"{instead} {made}".strip()))


def _pairs(names: Sequence[str], facts: Sequence[Any]) -> str:
    return ", ".join(f"{name}: {fact}" for name, fact in zip(names, facts, strict=True))


def _broadcast(names: Sequence[str], shapes: Shapes, params: dict[str, Any]) -> Reason:
    for axis in range(1, max(map(len, shapes)) + 1):
        sizes = [shape[-axis] for shape in shapes if len(shape) >= axis]
        if len({size for size in sizes if size != 1}) > 1:
            shown = " and ".join(map(str, sizes))
            return f"Axis -{axis} has the sizes {shown}; they must be equal, or one of them 1.", _hint(names, shapes)
    return "", ""


def _hint(names: Sequence[str], shapes: Shapes) -> str:
    (left, right), (a, b) = names[:2], shapes[:2]
    if len(a) == len(b) == 2 and a == b[::-1]:
        return f"Did you mean {right}.mT, shape {a}?"
    if len(b) == 1 and len(a) == 2 and b[0] == a[0]:
        return f"Did you mean {right}[:, None], shape {(b[0], 1)}, one number for each row?"
    if len(a) == 1 and len(b) == 2 and a[0] == b[0]:
        return f"Did you mean {left}[:, None], shape {(a[0], 1)}, one number for each row?"
    return "Insert an axis of size 1 with expand_dims, or reshape one of them."


def _where(names: Sequence[str], shapes: Shapes, params: dict[str, Any]) -> Reason:
    why, instead = _broadcast(names, shapes, params)
    if why:
        return why, instead
    condition = params["condition"].shape
    why, _ = _broadcast([*names, "condition"], [*shapes, condition], params)
    return f"The condition has shape {condition}. {why}", "It needs one True or False for each entry of the result."


def _matmul(names: Sequence[str], shapes: Shapes, params: dict[str, Any]) -> Reason:
    (left, right), (a, b) = names, shapes
    if not a or not b:
        return "A matrix product needs at least one axis on both sides.", f"Write {left} * {right} for a number."
    inner, where_inner = (b[0], "only axis") if len(b) == 1 else (b[-2], "second-to-last axis")
    if a[-1] == inner:
        why = f"The batch axes {a[:-2]} and {b[:-2]} do not broadcast."
        return why, "Insert an axis of size 1 with expand_dims, or reshape one of them."
    why = f"The last axis of {left} ({a[-1]}) must equal the {where_inner} of {right} ({inner})."
    if len(b) >= 2 and a[-1] == b[-1]:
        return why, f"Did you mean {left} @ {right}.mT? That gives shape {(*b[:-2], *a[-2:-1], b[-2])}."
    if len(a) >= 2 and a[-2] == inner:
        width = b[-1:] if len(b) > 1 else ()
        return why, f"Did you mean {left}.mT @ {right}? That gives shape {(*a[:-2], a[-1], *width)}."
    return why, f"Check how {left} and {right} were made."


def _einsum(names: Sequence[str], shapes: Shapes, params: dict[str, Any]) -> Reason:
    seen: dict[str, tuple[str, int]] = {}
    for name, labels, shape in zip(names, params["subscripts"].split("->")[0].split(","), shapes, strict=True):
        for label, size in zip(labels, shape, strict=False):
            other, before = seen.setdefault(label, (name, size))
            if before != size and 1 not in (before, size):
                return f"Label {label!r} has size {before} in {other} and {size} in {name}.", "One label, one size."
    return "", "Write one letter per axis, for example 'ij,jk->ik'."


def _empty(names: Sequence[str], shapes: Shapes, params: dict[str, Any]) -> Reason:
    return "An empty axis has no largest or smallest number.", "Check that there is at least one row, or pad it."


def _reshape(names: Sequence[str], shapes: Shapes, params: dict[str, Any]) -> Reason:
    old, new = math.prod(shapes[0]), math.prod(params["shape"])
    why = f"{names[0]} has {old} numbers, the new shape {params['shape']} has room for {new}."
    return why, "One size may be -1."


def _broadcast_to(names: Sequence[str], shapes: Shapes, params: dict[str, Any]) -> Reason:
    why = f"Read from the right, each size of {shapes[0]} must be 1 or the one of {params['shape']}."
    return why, f"Insert axes of size 1 into {names[0]} with expand_dims first."


def _join(names: Sequence[str], shapes: Shapes, params: dict[str, Any]) -> Reason:
    first, axis = shapes[0], params["axis"]
    for name, shape in zip(names, shapes, strict=True):
        if len(shape) != len(first):
            return f"{names[0]} has {len(first)} axes and {name} has {len(shape)}.", "Add axes with expand_dims."
        for a, (left, right) in enumerate(zip(first, shape, strict=True)):
            if a != axis and left != right:
                return f"Axis {a} is {left} in {names[0]} and {right} in {name}; only the joined axis may differ.", ""
    return "", ""


def _index(names: Sequence[str], shapes: Shapes, params: dict[str, Any]) -> Reason:
    why = f"{names[0]} has shape {shapes[0]}; indices run from 0, or from -size, to size - 1."
    return why, "Check the index against that shape."


def _layer_norm(names: Sequence[str], shapes: Shapes, params: dict[str, Any]) -> Reason:
    return f"Gain and bias need one number for each of the {shapes[0][-1:]} entries of a row.", "Give both that shape."


def _attention(names: Sequence[str], shapes: Shapes, params: dict[str, Any]) -> Reason:
    q, k, v = shapes
    if min(len(q), len(k), len(v)) < 2:
        why = "Queries, keys and values are matrices: one row per position."
        return why, f"Write {names[0]}[None] for a single row."
    if q[-1] != k[-1]:
        return f"A query has width {q[-1]} and a key {k[-1]}; their dot product needs equal widths.", ""
    if k[-2] != v[-2]:
        return f"There are {k[-2]} keys and {v[-2]} values; each key needs its value.", ""
    if params["keep"] is not None:
        mask = params["keep"].shape
        return f"The mask has shape {mask}; it must broadcast to (..., {q[-2]}, {k[-2]}): queries by keys.", ""
    return "The batch axes do not broadcast.", ""


REASONS: dict[str, Callable[[Sequence[str], Shapes, dict[str, Any]], Reason]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "power", "maximum", "minimum"), _broadcast),
    "where": _where,
    **dict.fromkeys(("max", "min"), _empty),
    **dict.fromkeys(("concatenate", "stack"), _join),
    **dict.fromkeys(("index", "take_along_axis"), _index),
    "matmul": _matmul,
    "einsum": _einsum,
    "reshape": _reshape,
    "broadcast_to": _broadcast_to,
    "layer_norm": _layer_norm,
    "scaled_dot_product_attention": _attention,
}
"""Why a call cannot work and what to write instead, from the operands' names and shapes and the parameters."""

# -- numbers that a tensor cannot hold ---------------------------------------------------------------------------


def list_of_tensors() -> Exception:
    """A list with tensors in it, where plain numbers are expected."""
    what = "a list that holds tensors was given where numbers are expected."
    return ArgumentTypeError(
        message(what, "Its numbers could be copied, but the gradient would be lost.", "Write ta.stack([...]).")
    )


def not_an_array(data: Any, error: Exception) -> Exception:
    """Rows of several lengths, text, and whatever else NumPy makes no array of."""
    words = str(error).rstrip(".")
    instead = "Rows must be equally long." if "inhomogeneous" in words else ""
    return ArgumentTypeError(message(f"cannot make an array of this {type(data).__name__}: {words}.", "", instead))


def masked() -> Exception:
    """A masked array with entries that do not count."""
    why = "A tensor has no mask, so what is hidden there would become ordinary numbers."
    what = "a masked array with hidden entries was given where numbers are expected."
    return ArgumentTypeError(message(what, why, "Write array.filled(0), and hand the mask to ta.where or keep=."))


def not_numbers(dtype: Any) -> Exception:
    """An array of text, objects, complex or very long numbers."""
    return DTypeError(
        message(
            f"an array of {dtype} was given where numbers are expected.",
            "Tensors hold float16, float32, float64, integers or bool.",
            "Convert it first, for example with np.asarray(data, dtype=float).",
        )
    )


def no_slope(dtype: Any) -> Exception:
    """Whole numbers that shall have a gradient."""
    return DTypeError(
        message(
            f"tensor of {dtype} with requires_grad=True: a whole number cannot move a little, so it has no slope.",
            "",
            "Write floating-point numbers: 1.0 instead of 1, or dtype=float.",
        )
    )


# -- what a tensor refuses ---------------------------------------------------------------------------------------


def no_length(x: Tensor) -> Exception:
    """``len`` of a single number."""
    what = f"len({describe(x)}): a 0-d tensor has no length."
    return ArgumentTypeError(message(what, "", "It is one number: float(t)."))


def not_one_number(x: Tensor) -> Exception:
    """``float``, ``item`` or truth of several numbers."""
    return ArgumentError(
        message(
            f"{describe(x)} has {x.size} numbers, so it is not one number.",
            "float, item, truth and an empty format need exactly one.",
            "Pick an entry first, reduce with .sum() or .mean(), or ask (t > 0).all().",
        )
    )


_NO_RULE = {
    "//": "t / x, or t.data // x for the numbers",
    "%": "t - (t.data // x) * x, whose gradient is the one of t % x between its jumps",
    "divmod": "divmod(t.data, x)",
    "round": "t.data.round()",
    "~": "~t.data for a mask",
    "&": "(t > 0) & (t < 1): comparisons give masks",
    "|": "(t < 0) | (t > 1): comparisons give masks",
    "^": "(t > 0) ^ (t > 1) for masks, t ** x for a power",
}


def no_rule_for(symbol: str, x: Tensor) -> Exception:
    """An operator of Python that jumps from value to value, or works on bits."""
    why = "It jumps between whole values, so its slope is 0 wherever it has one."
    if symbol in "~&|^":
        why = "It works on bits and masks, which have no slope."
    wrong = f"{symbol} is not supported on a tensor; it was asked for {describe(x)}."
    return ArgumentTypeError(message(wrong, why, f"Write {_NO_RULE[symbol]}."))


def unknown_argument(function: str, wrong: str, known: Sequence[str]) -> Exception:
    """A keyword that a function does not have: mostly PyTorch's, or a slip of the pen."""
    near, instead = elsewhere.argument(wrong, known), elsewhere.DONE_OTHERWISE.get(wrong, "")
    if not near and not instead:
        near = next(iter(difflib.get_close_matches(wrong, known, 1)), "")
    if near:
        instead = f"Write {near}=...{elsewhere.TOLD.get(near, ' here')}."
    arguments = f"Its {'arguments are' if len(known) > 1 else 'only argument is'} {', '.join(known)}."
    if not known:
        arguments = "It takes none by name."
    return ArgumentTypeError(message(f"{function}: there is no argument {wrong!r}.", arguments, instead))


def does_not_fit(value: Any, dtype: Any, function: str) -> Exception:
    """A Python number beside a tensor whose dtype cannot hold it."""
    shown = repr(value) if not isinstance(value, int) or value.bit_length() < 100 else "this whole number"
    why = "A Python number takes the dtype of the tensor beside it."
    instead = "Write ta.tensor(...) around the number, or ta.astype(x, float)." if dtype.kind != "f" else ""
    return ArgumentError(message(f"{function}: {shown} does not fit into {dtype}.", why, instead))


def immutable(x: Tensor) -> Exception:
    """``t[i] = v``."""
    return GraphError(
        message(
            f"{describe(x)}[...] = ... would change an array that a graph may have recorded.",
            "Tensors are immutable, so that no gradient can be computed from numbers that changed.",
            "Write t = ta.where(mask, new, t), or for a leaf: a = t.numpy(); a[...] = new; t.assign(a).",
        )
    )


def set_data(x: Tensor) -> Exception:
    """``t.data = array``."""
    if x.op is not None:
        return not_a_leaf(x, "assigned")
    if x.requires_grad:
        return in_place(x)
    return GraphError(message(f"{describe(x)}.data cannot be set.", "", "Write t.assign(array)."))


def in_place(x: Tensor) -> Exception:
    """``W -= lr * W.grad``."""
    return GraphError(
        message(
            f"{describe(x)} is a leaf with a gradient; updating it in place would corrupt recorded graphs.",
            "An update is not part of the computation that is differentiated.",
            "Write W.assign(W.data - lr * W.grad), or use an optimiser: opt.step().",
        )
    )


def note_rule(node: Tensor, error: Exception) -> None:
    """Say of what a learner's rule raised whose rule it was."""
    if not isinstance(error, TinyattnError) and node.op is not None:
        shapes = ", ".join(str(x.shape) for x in node.inputs)
        made = f", made at {place}" if (place := place_text(node)) else ""
        error.add_note(f"while the rule of {node.op.name} computed a gradient for {shapes}{made}")


_FOR_LEAVES = {
    "assigned": ("Its numbers follow from its inputs.", "Assign a leaf, or start a new one: ta.tensor(t.data)."),
    "copied without its graph": ("", "Copy the numbers: ta.tensor(t.data), or t.detach()."),
    "pickled with its graph": ("", "Save the numbers: np.save(path, t.data)."),
}


def not_a_leaf(x: Tensor, done: str) -> Exception:
    """Something that can only be done to a leaf, asked of a result."""
    return GraphError(message(f"{_result(x)}, so it cannot be {done}.", *_FOR_LEAVES[done]))


def missing_grad(x: Tensor) -> str:
    """``y.grad`` of a result, as a warning."""
    return message(
        f"{_result(x)}, and only leaves keep their gradient.",
        "Gradients of results would use memory, and sums over several backward passes would mislead.",
        "Call .retain_grad() on it before backward, or ta.grad(loss, x).",
    )


def _result(x: Tensor) -> str:
    return f"{describe(x)} is the result of {_made_by(x)}"


def _made_by(x: Tensor) -> str:
    return x.op.name if x.op is not None else "nothing"


# -- gradients that cannot be ------------------------------------------------------------------------------------


def stale(leaf: Tensor, reader: Tensor) -> Exception:
    """A leaf that was assigned after the forward pass."""
    return GraphError(
        message(
            f"{describe(leaf)} was assigned new numbers after {_made_by(reader)} had used the old ones.",
            "The gradient would belong to neither; nothing has been changed.",
            "Run the forward pass again, then backward.",
        )
    )


def wrong_rule(node: Tensor, slot: int, contribution: Any) -> Exception:
    """A rule whose result has another shape or dtype than the input that it is for."""
    x, op = node.inputs[slot], node.op
    assert op is not None
    name, place = op.names_of(len(node.inputs))[slot], place_text(node)
    shape = getattr(contribution, "shape", None)
    dtype = getattr(contribution, "dtype", None)
    given = f"shape {shape} and dtype {dtype}"
    instead = "Where the forward broadcasts, end the rule in sum_to(g, x.shape)."
    if shape is None or dtype is None:
        given, instead = f"a {type(contribution).__name__}", "Write the rule with NumPy's operators and functions."
    elif shape == x.shape:
        instead = "Leave conversions out of forward and rule: result and gradient have the dtype of the input."
    return RuleError(
        message(
            f"the rule of {op.name} for {name} gave {given}; {name} has {x.shape} and {x.dtype}.",
            "A gradient has the shape and the dtype of its input."
            + (f" The op was applied at {place}." if place else ""),
            instead,
        )
    )


def no_array(op: Op, value: Any) -> Exception:
    """A forward, most likely a reader's own, that gives something else than an array."""
    return RuleError(
        message(
            f"the forward of {op.name} gave a {type(value).__name__}, not an array.",
            "A result has a shape and a dtype, which its gradient is held to.",
            "Return what NumPy gives, or np.asarray(...) of it.",
        )
    )


def nothing_to_differentiate(y: Tensor, asked: str) -> Exception:
    """A result that depends on no leaf with a gradient."""
    return GraphError(
        message(
            f"{asked}: {describe(y)} does not depend on anything that requires a gradient.",
            "No leaf was made with requires_grad=True, or the result was detached or made inside no_grad.",
            "Write ta.tensor(..., requires_grad=True) for what you want the gradient of.",
        )
    )


def seed_needed(y: Tensor, asked: str) -> Exception:
    """Backward of several numbers, without weights for them."""
    return GraphError(
        message(
            f"{asked}: {describe(y)} has {y.size} numbers; a gradient belongs to one number.",
            "Which one is meant?",
            f"For a loss write y.sum() or y.mean(); for weights of your own {asked}(seed) with shape {y.shape};"
            " for all derivatives ta.jacobian(f, x).",
        )
    )


def seed_shape(y: Tensor, asked: str, shape: tuple[int, ...]) -> Exception:
    """A seed that does not weight each number of the result."""
    what = f"{asked}: the seed has shape {shape}; {describe(y)} needs one of its own shape."
    return ShapeError(message(what, "It weights each number of the result."))


def not_recorded() -> Exception:
    """``grad`` to a tensor that was not watched."""
    what = "grad: one of the tensors has requires_grad=False."
    return GraphError(
        message(what, "Nothing was recorded for it.", "Make it with requires_grad=True before the forward pass.")
    )


def not_tensors() -> Exception:
    """``grad(loss, wrt)`` with anything but tensors for wrt."""
    what = "grad(loss, wrt): wrt must be a tensor or a list of tensors."
    return ArgumentTypeError(message(what, "", "Write ta.grad(loss, [W, b])."))


def no_function(f: Any, asked: str, needed: str = "a function") -> Exception:
    """A number, an array or a result where a function of tensors is differentiated."""
    kind = type(f).__name__
    what = f"{asked}: {needed} is needed, not {'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}."
    why = "It is called with tensors, so that what it computes is recorded."
    return ArgumentTypeError(message(what, why, f"Write ta.{asked}(lambda x: ..., ...), or the name of a function."))


def not_a_tensor_result(y: Any, f: Any, asked: str) -> Exception:
    """A function under `grad` that returned something that was not recorded."""
    return ArgumentTypeError(
        message(
            f"{asked}: {getattr(f, '__name__', 'the function')} returned a {type(y).__name__}; a tensor is needed.",
            "Without a tensor nothing was recorded.",
            "Compute with tensors to the end; drop float(...) or .data.",
        )
    )
