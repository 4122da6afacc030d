"""The public functions: one short ``def`` per op, in NumPy's spelling.

Each checks its arguments, brings them into the form that the rule book wants (axes as tuples of non-negative
numbers, shapes without -1), and applies its op.  Functions that are made of these are in `tinyattn.composed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from tinyattn import explain
from tinyattn.arguments import (
    argument_names,
    axis_tuple,
    boolean,
    constant,
    every_axis,
    expand_subscripts,
    floating,
    full_shape,
    in_range,
    key_part,
    known_arguments,
    mask_for,
    one_axis,
    one_number,
    operand,
    operand_list,
    refuse_unknown,
    shape_tuple,
    values_of,
    whole_array,
    whole_number,
    yes_or_no,
)
from tinyattn.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError, message
from tinyattn.late import Method
from tinyattn.ops import elementwise, fused, indexing, linear, reductions
from tinyattn.ops import shape as shapes
from tinyattn.ops import softmax as softmaxes
from tinyattn.tensor import Tensor, apply, binary, unary

if TYPE_CHECKING:  # numpy.typing costs a tenth of importing NumPy, and only type checkers read it
    from numpy.typing import ArrayLike, DTypeLike

    from tinyattn.arguments import Axis, TensorLike


def _two(op: Any, a: TensorLike, b: TensorLike) -> Tensor:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return binary(op, a, b)
    return apply(op, (operand(a, op.name), operand(b, op.name)))


# -- arithmetic, entry by entry ---------------------------------------------------------------------------


def add(a: TensorLike, b: TensorLike) -> Tensor:
    """Add entry by entry, with broadcasting.

    Parameters
    ----------
    a : Tensor, any shape
    b : Tensor, shape that broadcasts with that of a

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.add([1.0, 2.0], 10)
    tensor([11., 12.], shape=(2,))
    """
    return _two(elementwise.add, a, b)


def subtract(a: TensorLike, b: TensorLike) -> Tensor:
    """Subtract entry by entry, with broadcasting.

    Parameters
    ----------
    a : Tensor, any shape
    b : Tensor, shape that broadcasts with that of a

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.subtract([1.0, 2.0], 1)
    tensor([0., 1.], shape=(2,))
    """
    return _two(elementwise.subtract, a, b)


def multiply(a: TensorLike, b: TensorLike) -> Tensor:
    """Multiply entry by entry, with broadcasting.

    Parameters
    ----------
    a : Tensor, any shape
    b : Tensor, shape that broadcasts with that of a

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.multiply([1.0, 2.0], [3.0, 4.0])
    tensor([3., 8.], shape=(2,))
    """
    return _two(elementwise.multiply, a, b)


def divide(a: TensorLike, b: TensorLike) -> Tensor:
    """Divide entry by entry, with broadcasting.

    Parameters
    ----------
    a : Tensor, any shape
    b : Tensor, shape that broadcasts with that of a

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.divide([1.0, 2.0], 2)
    tensor([0.5, 1. ], shape=(2,))
    """
    return _two(elementwise.divide, a, b)


def negative(x: TensorLike) -> Tensor:
    """Change the sign of each entry.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.negative([1.0, -2.0])
    tensor([-1.,  2.], shape=(2,))
    """
    return unary(elementwise.negative, x)


def power(a: TensorLike, b: TensorLike) -> Tensor:
    """Raise to a power; base and exponent may both be differentiated.

    Parameters
    ----------
    a : Tensor, any shape
        The base.
    b : Tensor, shape that broadcasts with that of a; or int
        The exponent.  A Python int needs no logarithm, so the base may be negative.

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.power([-2.0, 3.0], 2)
    tensor([4., 9.], shape=(2,))
    """
    exponent: object = b
    if type(exponent) is int:
        return apply(elementwise.integer_power, (operand(a, "power"),), (exponent,))
    return _two(elementwise.power, a, b)


def abs(x: TensorLike) -> Tensor:
    """Take the absolute value; the slope at 0 is 0 here.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.abs([-1.5, 2.0])
    tensor([1.5, 2. ], shape=(2,))
    """
    return unary(elementwise.absolute, x)


def exp(x: TensorLike) -> Tensor:
    """Raise e to each entry.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.exp([0.0, 1.0])
    tensor([1.        , 2.71828183], shape=(2,))
    """
    return unary(elementwise.exp, x)


def log(x: TensorLike) -> Tensor:
    """Take the natural logarithm.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.log([1.0])
    tensor([0.], shape=(1,))
    """
    return unary(elementwise.log, x)


def sqrt(x: TensorLike) -> Tensor:
    """Take the square root.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.sqrt([9.0])
    tensor([3.], shape=(1,))
    """
    return unary(elementwise.sqrt, x)


def sin(x: TensorLike) -> Tensor:
    """Take the sine of an angle in radians.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.sin([0.0])
    tensor([0.], shape=(1,))
    """
    return unary(elementwise.sin, x)


def cos(x: TensorLike) -> Tensor:
    """Take the cosine of an angle in radians.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.cos([0.0])
    tensor([1.], shape=(1,))
    """
    return unary(elementwise.cos, x)


def tanh(x: TensorLike) -> Tensor:
    """Take the hyperbolic tangent, which squeezes any number between -1 and 1.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.tanh([0.0])
    tensor([0.], shape=(1,))
    """
    return unary(elementwise.tanh, x)


def sigmoid(x: TensorLike) -> Tensor:
    """Compute 1 / (1 + exp(-x)) without overflow.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.sigmoid([0.0])
    tensor([0.5], shape=(1,))
    """
    return unary(elementwise.sigmoid, x)


def erf(x: TensorLike) -> Tensor:
    """Compute the error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.erf([0.0])
    tensor([0.], shape=(1,))
    """
    return unary(elementwise.erf, x)


def relu(x: TensorLike) -> Tensor:
    """Keep positive entries, make the others 0; the slope at 0 is 0 here.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.relu([-1.0, 2.0])
    tensor([0., 2.], shape=(2,))
    """
    return unary(elementwise.relu, x)


def maximum(a: TensorLike, b: TensorLike) -> Tensor:
    """Take the larger of two entries; a tie shares the gradient equally.

    Parameters
    ----------
    a : Tensor, any shape
    b : Tensor, shape that broadcasts with that of a

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.maximum([1.0, 5.0], 3)
    tensor([3., 5.], shape=(2,))
    """
    return _two(elementwise.maximum, a, b)


def minimum(a: TensorLike, b: TensorLike) -> Tensor:
    """Take the smaller of two entries; a tie shares the gradient equally.

    Parameters
    ----------
    a : Tensor, any shape
    b : Tensor, shape that broadcasts with that of a

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.minimum([1.0, 5.0], 3)
    tensor([1., 3.], shape=(2,))
    """
    return _two(elementwise.minimum, a, b)


@known_arguments
def clip(x: TensorLike, low: float | None = None, high: float | None = None) -> Tensor:
    """Move entries below ``low`` up to it and entries above ``high`` down to it; the slope at a bound is 0.

    Parameters
    ----------
    x : Tensor, any shape
    low, high : float, optional
        At least one of them.

    Raises
    ------
    ArgumentError
        When low is above high, or neither is given.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.clip([-2.0, 0.5, 7.0], 0, 1)
    tensor([0. , 0.5, 1. ], shape=(3,))
    """
    given = ((low, "low"), (high, "high"))
    bounds = [None if bound is None else one_number(bound, "clip", name) for bound, name in given]
    if bounds[0] is not None and bounds[1] is not None and bounds[0] > bounds[1]:
        raise ArgumentError(f"clip: low={low} is above high={high}, so nothing lies between.")
    if bounds == [None, None]:
        raise ArgumentError("clip: neither low nor high is given, so there is nothing to do.")
    return apply(elementwise.clip, (operand(x, "clip"),), tuple(bounds))


@known_arguments
def where(condition: ArrayLike | Tensor, a: TensorLike, b: TensorLike) -> Tensor:
    """Take ``a`` where the condition holds and ``b`` elsewhere; what is not taken gets a gradient of exactly 0.

    Parameters
    ----------
    condition : array of bool, shape that broadcasts with those of a and b
    a, b : Tensor, shapes that broadcast

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.
    ArgumentTypeError
        When the condition is not boolean.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.where([True, False], [1.0, 2.0], 0)
    tensor([1., 0.], shape=(2,))
    """
    chosen = boolean(condition, "where", "condition")
    like = next((values_of(x).dtype for x in (a, b) if hasattr(x, "dtype")), None)
    left, right = (x if isinstance(x, Tensor) else constant(x, like, "where") for x in (a, b))
    return apply(elementwise.where, (left, right), (chosen,))


def astype(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """Convert to another floating-point dtype; the gradient is converted back.

    Parameters
    ----------
    x : Tensor, any shape
    dtype : dtype
        float16, float32 or float64.

    Raises
    ------
    ArgumentTypeError
        For any other dtype.

    Examples
    --------
    >>> import numpy as np
    >>> import tinyattn as ta
    >>> ta.astype([1.0], np.float32)
    tensor([1.], shape=(1,), dtype=float32)
    """
    tensor = operand(x, "astype")
    try:
        if dtype is None:
            raise TypeError
        target = np.dtype(dtype)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"astype: {dtype!r} is not a dtype.") from None
    if target.kind != "f" or target.itemsize > 8:
        instead = "For whole numbers take t.data.astype(...)."
        raise ArgumentTypeError(message(f"astype: {target} has no gradient.", "", instead))
    return tensor if tensor.dtype == target else apply(elementwise.cast, (tensor,), (target,))


# -- sums and their kin ---------------------------------------------------------------------------------------


def _reduce(op: Any, x: TensorLike, axis: Axis, keepdims: bool) -> Tensor:
    tensor = x if isinstance(x, Tensor) else operand(x, op.name)
    return unary(op, tensor, (axis_tuple(axis, tensor, op.name), yes_or_no(keepdims, op.name, "keepdims")))


@known_arguments
def sum(x: TensorLike, axis: Axis = None, keepdims: bool = False, **unknown: Never) -> Tensor:
    """Add up along the given axes; all of them by default.

    Parameters
    ----------
    x : Tensor, any shape
    axis : int, tuple of int or None
        The axes to reduce; None means all.
    keepdims : bool
        Whether reduced axes stay, with size 1.

    Raises
    ------
    AxisError
        When x has no such axis, or an axis is named twice.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
    tensor([4., 6.], shape=(2,))
    """
    if unknown:
        refuse_unknown("sum", unknown, argument_names(sum))
    if axis is None and keepdims is False and x.__class__ is Tensor:  # the commonest, without the checks: a third less
        return unary(reductions.sum, x, (every_axis(len(x._shape)), False))
    return _reduce(reductions.sum, x, axis, keepdims)


@known_arguments
def max(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Find the largest entry along the given axes; ties share the gradient equally.

    Parameters
    ----------
    x : Tensor, any shape
    axis : int, tuple of int or None
        The axes to reduce; None means all.
    keepdims : bool
        Whether reduced axes stay, with size 1.

    Raises
    ------
    AxisError
        When x has no such axis, or an axis is named twice.
    ShapeError
        When an axis has size 0.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.max([[1.0, 2.0], [3.0, 0.0]], axis=1)
    tensor([2., 3.], shape=(2,))
    """
    return _reduce(reductions.max, x, axis, keepdims)


@known_arguments
def min(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Find the smallest entry along the given axes; ties share the gradient equally.

    Parameters
    ----------
    x : Tensor, any shape
    axis : int, tuple of int or None
        The axes to reduce; None means all.
    keepdims : bool
        Whether reduced axes stay, with size 1.

    Raises
    ------
    AxisError
        When x has no such axis, or an axis is named twice.
    ShapeError
        When an axis has size 0.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.min([[1.0, 2.0], [3.0, 0.0]], axis=1)
    tensor([1., 0.], shape=(2,))
    """
    return _reduce(reductions.min, x, axis, keepdims)


@known_arguments
def prod(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Multiply along the given axes; the gradient is right where entries are 0, too.

    Parameters
    ----------
    x : Tensor, any shape
    axis : int, tuple of int or None
        The axes to reduce; None means all.
    keepdims : bool
        Whether reduced axes stay, with size 1.

    Raises
    ------
    AxisError
        When x has no such axis, or an axis is named twice.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.prod([2.0, 3.0])
    tensor(6., shape=())
    """
    return _reduce(reductions.prod, x, axis, keepdims)


def size_of(x: TensorLike, axis: Axis = None) -> Tensor:
    """The length of an axis, or the product of several, as a number that stays a symbol in formulas.

    Parameters
    ----------
    x : Tensor, any shape
    axis : int, tuple of int or None
        The axes to count; None means all.

    Returns
    -------
    Tensor, shape ()
        A constant: the length does not depend on the numbers.

    Raises
    ------
    AxisError
        When x has no such axis, or an axis is named twice.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.size_of([[1.0, 2.0, 3.0]], axis=-1)
    tensor(3., shape=())
    """
    tensor = operand(x, "size_of")
    return apply(reductions.size_of, (tensor,), (axis_tuple(axis, tensor, "size_of"),))


# -- products ------------------------------------------------------------------------------------------------


def matmul(a: TensorLike, b: TensorLike) -> Tensor:
    """Multiply matrices; vectors and batches of matrices as in NumPy.

    Parameters
    ----------
    a : Tensor, shape (..., n, d) or (d,)
    b : Tensor, shape (..., d, m) or (d,)
        Leading axes broadcast.

    Returns
    -------
    Tensor, shape (..., n, m)
        A vector has lost its axis: (d,) with (d, m) gives (m,), (d,) with (d,) a single number.

    Raises
    ------
    ShapeError
        When the inner sizes differ, or leading axes do not broadcast.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.matmul([[1.0, 2.0]], [[3.0], [4.0]])
    tensor([[11.]], shape=(1, 1))
    """
    return _two(linear.matmul, a, b)


@known_arguments
def einsum(subscripts: str, *operands: TensorLike) -> Tensor:
    """Sum of products in index notation: one letter per axis, letters missing on the right are summed.

    Parameters
    ----------
    subscripts : str
        Such as ``ij,jk->ik``.  ``...`` stands for any further axes; a letter may come twice in one operand.
    *operands : Tensor, shapes that the subscripts name

    Raises
    ------
    ShapeError
        When an operand has another number of axes than are named, or a letter two sizes.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.einsum("ij,jk->ik", [[1.0, 2.0]], [[3.0], [4.0]])
    tensor([[11.]], shape=(1, 1))
    """
    text: object = subscripts  # a call that is not checked may bring the operands first
    if not isinstance(text, str):
        wrong = "einsum: the first argument is the text of subscripts."
        raise ArgumentTypeError(message(wrong, "", "Write einsum('ij,jk->ik', a, b)."))
    tensors = tuple(operand(x, "einsum") for x in operands)
    ranks = [t.ndim for t in tensors]
    left = subscripts.replace(" ", "").partition("->")[0].split(",")
    if len(left) != len(tensors) or not tensors:
        raise ArgumentError(f"einsum({subscripts!r}): {len(left)} operands are named and {len(tensors)} given.")
    for labels, tensor in zip(left, tensors, strict=True):
        named = len(labels.replace("...", ""))
        if named > tensor.ndim or ("..." not in labels and named != tensor.ndim):
            what = f"{labels!r} of {subscripts!r} names {named} axes, not {tensor.ndim}."
            raise explain.unfit(ShapeError, "einsum", tensor, what, "One letter for each axis.")
    return apply(linear.einsum, tensors, (expand_subscripts(subscripts, ranks),))


# -- shape -------------------------------------------------------------------------------------------------------


def reshape(x: TensorLike, *shape: Any) -> Tensor:
    """Arrange the same numbers, row by row, in another shape.

    Parameters
    ----------
    x : Tensor, any shape
    *shape : int, or one tuple of int
        One size may be -1: what is left over.

    Raises
    ------
    ShapeError
        When the numbers do not fill the shape.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.reshape([[1.0, 2.0], [3.0, 4.0]], (4,))
    tensor([1., 2., 3., 4.], shape=(4,))
    """
    tensor = operand(x, "reshape")
    return apply(shapes.reshape, (tensor,), (full_shape(shape_tuple(shape, "reshape"), tensor),))


def transpose(x: TensorLike, *axes: Any) -> Tensor:
    """Reorder the axes; without ``axes`` they are reversed.

    Parameters
    ----------
    x : Tensor, any shape
    *axes : int, or one tuple of int
        Result axis i is axis ``axes[i]`` of x.

    Raises
    ------
    AxisError
        When the axes do not name each axis once.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.transpose([[1.0, 2.0]])
    tensor([[1.],
            [2.]], shape=(2, 1))
    """
    tensor = operand(x, "transpose")
    given = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes
    if given is None or given == ():
        return apply(shapes.transpose, (tensor,), (tuple(reversed(range(tensor.ndim))),))
    order = axis_tuple(tuple(given), tensor, "transpose")
    if len(order) != tensor.ndim:
        what = f"axes={tuple(given)} must name each of the {tensor.ndim} axes once."
        raise explain.unfit(AxisError, "transpose", tensor, what)
    return apply(shapes.transpose, (tensor,), (order,))


def matrix_transpose(x: TensorLike) -> Tensor:
    """Exchange the last two axes, the transpose of each matrix; also ``x.mT``.

    Parameters
    ----------
    x : Tensor, shape (..., n, m)

    Returns
    -------
    Tensor, shape (..., m, n)

    Raises
    ------
    AxisError
        When x has fewer than two axes.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.matrix_transpose([[1.0, 2.0]])
    tensor([[1.],
            [2.]], shape=(2, 1))
    """
    tensor = operand(x, "matrix_transpose")
    ndim = tensor.ndim
    if ndim < 2:
        hint = "For a row of a vector write x[None, :], for a column x[:, None]."
        raise explain.unfit(AxisError, "matrix_transpose", tensor, "a matrix has two axes.", "", hint)
    order = (1, 0) if ndim == 2 else (*range(ndim - 2), ndim - 1, ndim - 2)
    return apply(shapes.transpose, (tensor,), (order,))


@known_arguments
def expand_dims(x: TensorLike, axis: Axis) -> Tensor:
    """Insert axes of size 1 at the given places of the result.

    Parameters
    ----------
    x : Tensor, any shape
    axis : int or tuple of int

    Raises
    ------
    AxisError
        When the result has no such axis, or a place is named twice.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.expand_dims([1.0, 2.0], 0)
    tensor([[1., 2.]], shape=(1, 2))
    """
    tensor = operand(x, "expand_dims")
    wanted = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    ndim = tensor.ndim + len(wanted)
    found = tuple(sorted(one_axis(a, ndim, "expand_dims") for a in wanted))
    if len(set(found)) < len(found):
        raise explain.unfit(AxisError, "expand_dims", tensor, f"axis={axis} names a place twice.")
    return apply(shapes.expand_dims, (tensor,), (found,))


@known_arguments
def squeeze(x: TensorLike, axis: Axis = None) -> Tensor:
    """Drop axes of size 1; all of them by default.

    Parameters
    ----------
    x : Tensor, any shape
    axis : int, tuple of int or None

    Raises
    ------
    ShapeError
        When an axis that is named has another size.
    AxisError
        When x has no such axis, or an axis is named twice.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.squeeze([[1.0, 2.0]])
    tensor([1., 2.], shape=(2,))
    """
    tensor = operand(x, "squeeze")
    if axis is None:
        found = tuple(a for a, size in enumerate(tensor.shape) if size == 1)
    else:
        found = axis_tuple(axis, tensor, "squeeze")
        for a in found:
            if tensor.shape[a] != 1:
                what = f"axis {a} has size {tensor.shape[a]}."
                raise explain.unfit(ShapeError, "squeeze", tensor, what, "Only an axis of size 1 can be dropped.")
    return apply(shapes.squeeze, (tensor,), (found,))


def broadcast_to(x: TensorLike, shape: Any) -> Tensor:
    """Repeat along axes of size 1 (and new leading axes) until the shape is reached.

    Parameters
    ----------
    x : Tensor, any shape
    shape : tuple of int

    Raises
    ------
    ShapeError
        When x does not broadcast to it.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.broadcast_to([1.0, 2.0], (2, 2))
    tensor([[1., 2.],
            [1., 2.]], shape=(2, 2))
    """
    return apply(shapes.broadcast_to, (operand(x, "broadcast_to"),), (shape_tuple((shape,), "broadcast_to"),))


@known_arguments
def concatenate(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Join tensors along an axis that they have.

    Parameters
    ----------
    tensors : sequence of Tensor, shapes equal but for the axis
    axis : int

    Raises
    ------
    ShapeError
        When the other axes differ.
    ArgumentError
        When the list is empty.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.concatenate([[1.0], [2.0, 3.0]])
    tensor([1., 2., 3.], shape=(3,))
    """
    pieces = operand_list(tensors, "concatenate")
    return apply(shapes.concatenate, pieces, (one_axis(axis, pieces[0].ndim, "concatenate", pieces[0]),))


@known_arguments
def stack(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Join tensors of one shape along a new axis.

    Parameters
    ----------
    tensors : sequence of Tensor, all of one shape
    axis : int
        Where the new axis stands in the result.

    Raises
    ------
    ShapeError
        When the shapes differ.
    ArgumentError
        When the list is empty.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.stack([[1.0, 2.0], [3.0, 4.0]], axis=1)
    tensor([[1., 3.],
            [2., 4.]], shape=(2, 2))
    """
    pieces = operand_list(tensors, "stack")
    return apply(shapes.stack, pieces, (one_axis(axis, pieces[0].ndim + 1, "stack"),))


@known_arguments
def pad(x: TensorLike, pad_width: Any, value: float = 0.0) -> Tensor:
    """Put a border of one value around.

    Parameters
    ----------
    x : Tensor, any shape
    pad_width : int, pair of int, or a pair for each axis
        How many entries before and after, as in NumPy.
    value : float

    Raises
    ------
    ArgumentError
        When the widths are negative or do not fit the axes.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.pad([1.0], (1, 2))
    tensor([0., 1., 0., 0.], shape=(4,))
    """
    tensor = operand(x, "pad")
    try:
        pairs = np.broadcast_to(np.asarray(pad_width), (tensor.ndim, 2))
    except ValueError:
        why = f"Give a (before, after) pair for each of the {tensor.ndim} axes."
        raise explain.unfit(ArgumentError, "pad", tensor, f"pad_width={pad_width!r} does not fit.", why) from None
    if pairs.dtype.kind not in "iu" or (pairs < 0).any():
        raise explain.unfit(ArgumentError, "pad", tensor, f"widths must be whole numbers from 0, got {pad_width!r}.")
    widths = tuple((int(before), int(after)) for before, after in pairs)
    return apply(shapes.pad, (tensor,), (widths, one_number(value, "pad", "value")))


# -- indexing ----------------------------------------------------------------------------------------------------


def index(x: TensorLike, key: Any) -> Tensor:
    """Read entries, ``x[key]``; repeated entries add up going back.

    Parameters
    ----------
    x : Tensor, any shape
    key : int, slice, array of int or bool, None, ..., or a tuple of these
        Whatever NumPy takes as a key.

    Raises
    ------
    IndexRangeError
        When an index is outside its axis, or is no whole number.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.index([1.0, 2.0, 3.0], [0, 0, 2])
    tensor([1., 1., 3.], shape=(3,))
    """
    tensor = operand(x, "index")
    parts = tuple(key_part(part) for part in key) if isinstance(key, tuple) else key_part(key)
    return apply(indexing.index, (tensor,), (parts,))


@known_arguments
def take_along_axis(x: TensorLike, indices: ArrayLike, axis: int = -1) -> Tensor:
    """For each place along an axis read the entry that ``indices`` names there.

    Parameters
    ----------
    x : Tensor, shape (..., n, ...)
        n entries along the axis.
    indices : array of int, shape (..., k, ...)
        As many axes as x; the others broadcast to those of x.
    axis : int

    Returns
    -------
    Tensor, shape (..., k, ...)

    Raises
    ------
    ShapeError
        When the shapes do not go together.
    IndexRangeError
        When an index is outside the axis.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.take_along_axis([[1.0, 2.0], [3.0, 4.0]], [[1], [0]], axis=1)
    tensor([[2.],
            [3.]], shape=(2, 1))
    """
    tensor = operand(x, "take_along_axis")
    along = one_axis(axis, tensor.ndim, "take_along_axis", tensor)
    array = whole_array(indices, "take_along_axis", "indices")
    if array.ndim != tensor.ndim:
        what, instead = f"indices have {array.ndim} axes.", "Write np.expand_dims(indices, axis)."
        raise explain.unfit(ShapeError, "take_along_axis", tensor, what, "They need as many as x has.", instead)
    full = tuple(size if a == along else tensor.shape[a] for a, size in enumerate(array.shape))
    if any(size not in (1, wide) for size, wide in zip(array.shape, full, strict=True)):
        what = f"indices of shape {array.shape} differ from x in an axis other than {along}."
        raise explain.unfit(ShapeError, "take_along_axis", tensor, what)
    return apply(indexing.take_along_axis, (tensor,), (np.broadcast_to(array, full), along))


# -- fused ops ---------------------------------------------------------------------------------------------------


@known_arguments
def softmax(x: TensorLike, axis: int = -1, keep: ArrayLike | None = None, **unknown: Never) -> Tensor:
    """Turn scores into weights that are positive and sum to 1 along an axis.

    ``y_i = exp(x_i) / sum_j exp(x_j)``

    Parameters
    ----------
    x : Tensor, shape (..., n)
        Scores of any size; the largest is subtracted first, which changes nothing but prevents overflow.
    axis : int
        The axis along which the weights sum to 1.
    keep : array of bool, shape that broadcasts to that of x, optional
        Where False, the weight is 0 and the score is not read; a row with nothing kept is a row of zeros.

    Raises
    ------
    AxisError
        When x has no such axis, or an axis is named twice.
    ShapeError
        When keep does not broadcast to the shape of x.
    ArgumentTypeError
        When keep is not boolean.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.softmax([0.0, 0.0])
    tensor([0.5, 0.5], shape=(2,))
    >>> ta.softmax([0.0, 5.0], keep=[True, False])
    tensor([1., 0.], shape=(2,))
    """
    if unknown:
        refuse_unknown("softmax", unknown, argument_names(softmax))
    tensor = operand(x, "softmax")
    along = one_axis(axis, len(tensor._shape), "softmax", tensor)
    mask = None if keep is None else mask_for(keep, tensor._shape, "softmax", tensor)
    return unary(softmaxes.softmax, floating(tensor), (along, mask))


@known_arguments
def log_softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """The logarithm of `softmax`, finite where softmax itself would round to 0.

    ``y_i = x_i - log sum_j exp(x_j)``

    Parameters
    ----------
    x : Tensor, shape (..., n)
        Scores of any size.
    axis : int
        The axis along which the weights would sum to 1.

    Raises
    ------
    AxisError
        When x has no such axis, or an axis is named twice.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.log_softmax([0.0, 1000.0])
    tensor([-1000.,     0.], shape=(2,))
    """
    tensor = operand(x, "log_softmax")
    return apply(softmaxes.log_softmax, (floating(tensor),), (one_axis(axis, tensor.ndim, "log_softmax", tensor),))


@known_arguments
def layer_norm(x: TensorLike, gain: TensorLike, bias: TensorLike, eps: float = 1e-5) -> Tensor:
    """Bring each row to mean 0 and variance 1, then scale and shift each entry.

    ``y_i = (x_i - mean) / sqrt(variance + eps) * gain_i + bias_i`` (Ba, Kiros and Hinton 2016, section 3).

    Parameters
    ----------
    x : Tensor, shape (..., d)
    gain : Tensor, shape (d,)
    bias : Tensor, shape (d,)
    eps : float
        Added to the variance, so that a row of equal numbers does no harm.

    Raises
    ------
    ShapeError
        When gain or bias has not one number for each entry of a row.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.layer_norm([[1.0, 3.0]], [1.0, 1.0], [0.0, 0.0], eps=0)
    tensor([[-1.,  1.]], shape=(1, 2))
    """
    rows, scale, shift = (operand(part, "layer_norm") for part in (x, gain, bias))
    width = rows.shape[-1:]
    if not width or scale.shape != width or shift.shape != width:
        what = f"gain {scale.shape} and bias {shift.shape} do not fit."
        why = "They need one number for each entry of a row." if width else "x needs at least one axis."
        raise explain.unfit(ShapeError, "layer_norm", rows, what, why, f"Give both the shape {width}." if width else "")
    params = (one_number(eps, "layer_norm", "eps"),)
    return apply(fused.layer_norm, (floating(rows), floating(scale), floating(shift)), params)


@known_arguments
def cross_entropy(
    x: TensorLike,
    targets: ArrayLike,
    *,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """The loss of predicting classes by scores: minus the log of the probability given to the right one.

    ``y = -mean_i log_softmax(x_i)[targets_i]``

    Parameters
    ----------
    x : Tensor, shape (..., c)
        Scores ("logits") of c classes.
    targets : array of int, shape (...)
        The number of the right class in each row.
    ignore_index : int, optional
        Rows with this target do not count; when none counts, the loss is 0.
    label_smoothing : float from 0 to 1
        This share of the target is spread evenly over all classes.
    reduction : "mean", "sum" or "none"
        The mean is over the rows that count.

    Returns
    -------
    Tensor, shape (), or (...) without reduction

    Raises
    ------
    ShapeError
        When there is not one target for each row.
    IndexRangeError
        When there is no class of that number.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.cross_entropy([[0.0, 0.0]], [1])
    tensor(0.69314718, shape=())
    """
    scores, right = operand(x, "cross_entropy"), whole_array(targets, "cross_entropy", "targets")
    if scores.ndim < 1 or right.shape != scores.shape[:-1] or scores.shape[-1] == 0:
        why = "The last axis of x is the classes; there is one target for each row before it."
        hint = f"Give targets of shape {scores.shape[:-1]}."
        what = f"targets of shape {right.shape} do not fit."
        raise explain.unfit(ShapeError, "cross_entropy", scores, what, why, hint)
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(f"cross_entropy: reduction={reduction!r} must be 'mean', 'sum' or 'none'.")
    smoothing = one_number(label_smoothing, "cross_entropy", "label_smoothing")
    ignored = None if ignore_index is None else whole_number(ignore_index, "cross_entropy", "ignore_index")
    if not 0 <= smoothing <= 1:
        raise ArgumentError(f"cross_entropy: label_smoothing={label_smoothing} must lie between 0 and 1.")
    counted = right if ignored is None else np.where(right == ignored, 0, right)
    in_range(counted, scores.shape[-1], "cross_entropy", "target", scores)
    return apply(fused.cross_entropy, (floating(scores),), (right, ignored, smoothing, reduction))


@known_arguments
def scaled_dot_product_attention(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    *,
    keep: ArrayLike | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Each query takes a weighted mean of the values, in one fused op.

    ``y = softmax(scale * q kᵀ) v`` (Vaswani et al. 2017, section 3.2.1).  `tinyattn.nn.attention` does the
    same step by step, and takes a bias.

    Parameters
    ----------
    q : Tensor, shape (..., n, d_k)
        Queries, one row per position that asks.
    k : Tensor, shape (..., m, d_k)
        Keys, one row per position that answers.
    v : Tensor, shape (..., m, d_v)
        Values, what each position passes on.
    keep : array of bool, shape that broadcasts to (..., n, m), optional
        True where a query may attend to a key.  A query that may attend to nothing gets zeros.
    causal : bool
        Whether a query may only attend to keys up to its own position, aligned at the end.
    scale : float, optional
        The factor on the dot products, 1/sqrt(d_k) by default.

    Returns
    -------
    Tensor, shape (..., n, d_v)

    Raises
    ------
    ShapeError
        When the widths of q and k or the numbers of keys and values differ.
    ArgumentTypeError
        When keep is not boolean.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.scaled_dot_product_attention([[0.0]], [[1.0], [2.0]], [[1.0], [3.0]])
    tensor([[2.]], shape=(1, 1))
    """
    name = "scaled_dot_product_attention"
    tensors = tuple(floating(operand(x, name)) for x in (q, k, v))
    mask = None if keep is None else boolean(keep, name, "keep")
    factor = None if scale is None else one_number(scale, name, "scale")
    return apply(fused.scaled_dot_product_attention, tensors, (mask, yes_or_no(causal, name, "causal"), factor))


# -- methods -----------------------------------------------------------------------------------------------------


class Missing:
    """A method of other libraries that a tensor does not have: asking for it names the nearest one that it has."""

    def __init__(self, name: str, nearest: str) -> None:
        self.name, self.nearest = name, nearest

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        raise AttributeError(f"a tensor has no {self.name!r}; use {self.nearest} instead.")


MISSING = {
    "absolute": ".abs()", "add_": ".assign(...)", "all": "(t > 0).all()", "allclose": "np.allclose(t.data, u.data)",
    "amax": ".max(axis)", "amin": ".min(axis)", "any": "(t > 0).any()", "argmax": "t.data.argmax(...)",
    "argmin": "t.data.argmin(...)", "argsort": ".data.argsort(...)", "bmm": "a @ b", "ceil": "np.ceil(t.data)",
    "chunk": ".split(parts)", "clamp": ".clip(low, high)", "clone": ".detach()",
    "copy": ".detach(), or .numpy() for an array", "copy_": ".assign(...)",
    "cpu": ".data (everything is on the CPU here)", "cuda": ".data (everything is on the CPU here)",
    "cumsum": "a product with a triangle of ones", "detach_": ".detach()", "diag": "t[np.arange(n), np.arange(n)]",
    "diagonal": "t[np.arange(n), np.arange(n)]", "dim": ".ndim", "div": "a / b", "double": ".astype(np.float64)",
    "eq": "t == u", "equal": "np.array_equal(t.data, u.data)", "exp2": "2.0 ** t", "expand": ".broadcast_to(shape)",
    "expand_as": ".broadcast_to(u.shape)", "expm1": "ta.exp(t) - 1", "fill": ".assign(...)", "fill_": ".assign(...)",
    "flatten": ".reshape(-1)", "float": ".astype(float)", "floor": "np.floor(t.data)",
    "gather": "ta.take_along_axis(t, indices, axis)", "ge": "t >= u", "gt": "t > u", "half": ".astype(np.float16)",
    "index_select": "t[indices]", "int": ".data.astype(int)", "isfinite": "np.isfinite(t.data)",
    "isinf": "np.isinf(t.data)", "isnan": "np.isnan(t.data)", "le": "t <= u", "log10": "ta.log(t) / math.log(10)",
    "log1p": "ta.log(1 + t)", "log2": "ta.log(t) / math.log(2)", "long": ".data.astype(int)", "lt": "t < u",
    "masked_fill_": ".masked_fill(mask, value)", "masked_select": "t[mask]", "median": "np.median(t.data)",
    "mm": "a @ b", "movedim": ".moveaxis(a, b)", "mul": "a * b", "mul_": ".assign(...)", "mv": "t @ v",
    "ndimension": ".ndim", "ne": "t != u", "neg": "-t", "new_zeros": "ta.tensor(np.zeros(shape))",
    "nonzero": "np.nonzero(t.data)", "numel": ".size", "permute": ".transpose(...)", "pow": "t ** exponent",
    "ravel": ".reshape(-1)", "repeat": "ta.broadcast_to(...)",
    "requires_grad_": "ta.tensor(t.data, requires_grad=True)", "reshape_as": ".reshape(u.shape)",
    "roll": "ta.concatenate([t[-1:], t[:-1]])", "round": ".data.round()", "rsqrt": "1 / ta.sqrt(t)",
    "sign": "np.sign(t.data)", "sort": "t[np.argsort(t.data)]", "sub": "a - b", "sub_": ".assign(...)",
    "swapdims": ".swapaxes(a, b)", "t": ".mT", "take": "t[indices]",
    "take_along_dim": "ta.take_along_axis(t, indices, axis)", "tan": "ta.sin(t) / ta.cos(t)",
    "tile": "ta.broadcast_to(...)", "to": ".astype(dtype) (everything is on the CPU here)",
    "topk": "t[np.argsort(-t.data)[:k]]", "tril": "ta.where(np.tri(n, dtype=bool), t, 0.0)",
    "triu": "ta.where(np.tri(n, dtype=bool).T, t, 0.0)", "type": ".astype(dtype)", "unbind": "list(t)",
    "unique": "np.unique(t.data)", "unsqueeze": ".expand_dims(axis)", "view": ".reshape(...)",
    "view_as": ".reshape(u.shape)", "where": "ta.where(condition, t, other)", "zero_": ".assign(...)",
}  # fmt: skip
"""Methods of other libraries, with the nearest thing here; what begins with a dot is a method or attribute of it."""

METHODS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        abs, add, subtract, multiply, divide, negative, exp, log, sqrt, sin, cos, tanh, sigmoid, erf, relu, clip,
        sum, max, min, prod, reshape, transpose, squeeze,
        expand_dims, broadcast_to, astype, softmax, log_softmax, pad, take_along_axis, matmul, maximum, minimum,
    )
}  # fmt: skip

COMPOSED: tuple[str, ...] = (
    "mean", "var", "std", "norm", "logsumexp", "square", "reciprocal", "softplus", "silu", "gelu", "swapaxes",
    "moveaxis", "flip", "split", "trace", "dot", "outer", "masked_fill",
)  # fmt: skip
"""Methods from `tinyattn.composed`, which comes with the first of them."""


def add_methods(functions: dict[str, Callable[..., Any]]) -> None:
    """Let tensors have these functions as methods, with the tensor as first argument."""
    METHODS.update(functions)
    for name, function in functions.items():
        setattr(Tensor, name, function)


add_methods(METHODS)
setattr(Tensor, "__contains__", lambda self, value: bool((self == value).any()))  # noqa: B010
for _name in COMPOSED:
    setattr(Tensor, _name, Method(_name, "tinyattn.composed"))
for _name in ("__copy__", "__dlpack__", "__dlpack_device__", "_repr_html_"):
    setattr(Tensor, _name, Method(_name, "tinyattn.numpy_protocol"))
for _name, _nearest in MISSING.items():
    setattr(Tensor, _name, Missing(_name, _nearest))
