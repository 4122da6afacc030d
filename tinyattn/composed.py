"""Functions made of other functions, each in a line or two: no gradient rule is needed, they inherit it.

Inside, results have names of their own, so a drawing of ``mean`` shows ``total`` and ``count``.
"""

from __future__ import annotations

import builtins
import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tinyattn import functions as ta
from tinyattn.arguments import (
    argument_names,
    axis_tuple,
    boolean,
    constant,
    floating,
    in_range,
    known_arguments,
    one_axis,
    one_number,
    operand,
    refuse_unknown,
    whole_array,
    whole_number,
    yes_or_no,
)
from tinyattn.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DTypeError,
    IndexRangeError,
    ShapeError,
    message,
)
from tinyattn.explain import unfit
from tinyattn.ops import elementwise, fused
from tinyattn.places import ENGINE, find_place, outside_package
from tinyattn.tensor import Tensor, apply

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tinyattn.arguments import Axis, TensorLike

F = TypeVar("F", bound=Callable[..., Any])


def named_by_caller(function: F) -> F:
    """Let the result carry the caller's line and variable, as the result of a single op does; an error too."""
    name, known = function.__name__, argument_names(function)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        refuse_unknown(name, kwargs, known)
        try:
            result = function(*args, **kwargs)
        except (ShapeError, AxisError, DTypeError, ArgumentError, ArgumentTypeError, IndexRangeError) as error:
            if not name.startswith("_") and not str(error).startswith((f"{name}(", f"{name}:")):
                error.args = (f"{name}: {error}",)
            raise
        if isinstance(result, Tensor) and result.op is not None and result.site is not None:
            frame = sys._getframe(1)
            while find_place(frame.f_code.co_filename) is ENGINE and frame.f_back is not None:
                frame = frame.f_back
            result.code, result.lasti = frame.f_code, frame.f_lasti
            site = outside_package(frame)
            result.site = None if site == (result.code, result.lasti) else site
        return result

    return wrapper  # type: ignore[return-value]


# -- means and spreads ------------------------------------------------------------------------------------


@named_by_caller
def mean(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Average along the given axes: the sum divided by how many there are.

    Parameters
    ----------
    x : Tensor, any shape
    axis : int, tuple of int or None
        The axes to reduce; None means all.
    keepdims : bool
        Whether reduced axes stay, with size 1.

    Raises
    ------
    ShapeError
        When there is nothing to average.
    AxisError
        When x has no such axis, or an axis is named twice.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.mean([1.0, 2.0, 6.0])
    tensor(3., shape=())
    """
    x = _some(x, axis, "mean")
    total = ta.sum(x, axis, keepdims)
    count = ta.size_of(x, axis)
    return total / count


def _some(x: TensorLike, axis: Axis, name: str) -> Tensor:
    """A floating-point tensor that has something to average; of nothing there is no mean."""
    tensor = operand(x, name)
    if math.prod(tensor.shape[a] for a in axis_tuple(axis, tensor, name)) == 0:
        hint = "Check that there is at least one row."
        raise unfit(ShapeError, name, tensor, "the average of nothing does not exist.", "An axis has size 0.", hint)
    return floating(tensor)


@named_by_caller
def var(x: TensorLike, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Average squared distance from the mean.

    Parameters
    ----------
    x : Tensor, any shape
    axis : int, tuple of int or None
        The axes to reduce; None means all.
    ddof : int
        Taken off the count; 1 estimates the variance behind a sample.
    keepdims : bool
        Whether reduced axes stay, with size 1.

    Raises
    ------
    ShapeError
        When there is nothing to average.
    ArgumentError
        When ddof leaves nothing to divide by.
    AxisError
        When x has no such axis, or an axis is named twice.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.var([1.0, 3.0])
    tensor(1., shape=())
    """
    x = _some(x, axis, "var")
    ddof = whole_number(ddof, "var", "ddof")
    count = ta.size_of(x, axis)
    if float(count.data) <= ddof:
        what = f"{int(count.data)} numbers with ddof={ddof} leave nothing to divide by."
        raise unfit(ArgumentError, "var", x, what)
    distance = x - mean(x, axis, keepdims=True)
    total = ta.sum(distance * distance, axis, keepdims)
    return total / (count - ddof) if ddof else total / count


@named_by_caller
def std(x: TensorLike, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Square root of the variance; the slope is 0 where all entries are equal.

    Parameters
    ----------
    x : Tensor, any shape
    axis : int, tuple of int or None
        The axes to reduce; None means all.
    ddof : int
        Taken off the count, as in `var`.
    keepdims : bool
        Whether reduced axes stay, with size 1.

    Raises
    ------
    ShapeError
        When there is nothing to average.
    ArgumentError
        When ddof leaves nothing to divide by.
    AxisError
        When x has no such axis, or an axis is named twice.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.std([1.0, 3.0])
    tensor(1., shape=())
    """
    variance = var(x, axis, ddof, keepdims)
    return root_with_zero_slope(variance)


def root_with_zero_slope(x: Tensor) -> Tensor:
    """The square root, with slope 0 at 0 where it would be infinite."""
    zero = x == 0
    return ta.sqrt(x) if not np.any(zero) else ta.where(zero, 0.0, ta.sqrt(ta.where(zero, 1.0, x)))


@named_by_caller
def norm(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Length of a vector, the square root of the sum of squares; its slope at the zero vector is 0.

    Parameters
    ----------
    x : Tensor, any shape
    axis : int, tuple of int or None
        The axes of a vector; None takes all entries as one.
    keepdims : bool
        Whether reduced axes stay, with size 1.

    Raises
    ------
    AxisError
        When x has no such axis, or an axis is named twice.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.norm([3.0, 4.0])
    tensor(5., shape=())
    """
    x = operand(x, "norm")
    axes = axis_tuple(axis, x, "norm")  # first: a message shall name x, not its squares
    squares = square(x)
    return root_with_zero_slope(ta.sum(squares, axes, keepdims))


@named_by_caller
def logsumexp(x: TensorLike, axis: Axis = -1, keepdims: bool = False) -> Tensor:
    """Logarithm of the sum of exponentials, without overflow.

    ``y = log sum_i exp(x_i)``

    Parameters
    ----------
    x : Tensor, any shape
    axis : int, tuple of int or None
        The axes to sum over; None means all.
    keepdims : bool
        Whether reduced axes stay, with size 1.

    Raises
    ------
    AxisError
        When x has no such axis, or an axis is named twice.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.logsumexp([1000.0, 1000.0])
    tensor(1000.69314718, shape=())
    """
    x = floating(operand(x, "logsumexp"))
    axes = axis_tuple(axis, x, "logsumexp")
    highest = x.data.max(axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(highest), highest, 0.0).astype(x.dtype)  # cancels, so it is a constant
    total = ta.sum(ta.exp(x - shift), axes, keepdims=True)
    result = ta.log(total) + shift
    return result if yes_or_no(keepdims, "logsumexp", "keepdims") else ta.squeeze(result, axes)


# -- entry by entry ------------------------------------------------------------------------------------------


@named_by_caller
def square(x: TensorLike) -> Tensor:
    """Multiply each entry with itself.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.square([-3.0])
    tensor([9.], shape=(1,))
    """
    return apply(elementwise.integer_power, (operand(x, "square"),), (2,))


@named_by_caller
def reciprocal(x: TensorLike) -> Tensor:
    """Divide 1 by each entry.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.reciprocal([4.0])
    tensor([0.25], shape=(1,))
    """
    return 1 / operand(x, "reciprocal")


@named_by_caller
def softplus(x: TensorLike) -> Tensor:
    """Compute log(1 + exp(x)) without overflow; a smooth relu.

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.softplus([0.0])
    tensor([0.69314718], shape=(1,))
    """
    x = floating(operand(x, "softplus"))
    return logsumexp(ta.stack([x, np.zeros_like(x.data)]), axis=0)


@named_by_caller
def silu(x: TensorLike) -> Tensor:
    """Multiply each entry by its sigmoid, also called swish.

    ``y = x / (1 + exp(-x))`` (Elfwing, Uchibe and Doya 2017).

    Parameters
    ----------
    x : Tensor, any shape

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.silu([0.0])
    tensor([0.], shape=(1,))
    """
    x = operand(x, "silu")
    return x * ta.sigmoid(x)


@named_by_caller
def gelu(x: TensorLike, approximate: str = "none") -> Tensor:
    """Multiply by the share of a normal distribution that lies below.

    ``y = x/2 * (1 + erf(x / sqrt(2)))`` (Hendrycks and Gimpel 2016).

    Parameters
    ----------
    x : Tensor, any shape
    approximate : "none" or "tanh"
        The exact form with erf, or the tanh form of section 2 of the paper.

    Raises
    ------
    ArgumentError
        For another word.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.gelu([0.0, 1.0])
    tensor([0.        , 0.84134475], shape=(2,))
    """
    x = operand(x, "gelu")
    if isinstance(approximate, str) and approximate == "none":
        return x / 2 * (1 + ta.erf(x / math.sqrt(2)))
    if isinstance(approximate, str) and approximate == "tanh":
        return apply(fused.gelu_tanh, (floating(x),))
    raise ArgumentError(f"gelu: approximate={approximate!r} must be 'none' or 'tanh'.")


@named_by_caller
def leaky_relu(x: TensorLike, slope: float = 0.01) -> Tensor:
    """Keep positive entries and multiply the others by a small slope.

    Parameters
    ----------
    x : Tensor, any shape
    slope : float

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.leaky_relu([-2.0, 3.0], slope=0.5)
    tensor([-1.,  3.], shape=(2,))
    """
    x = operand(x, "leaky_relu")
    return ta.where(x > 0, x, x * one_number(slope, "leaky_relu", "slope"))


# -- shape -------------------------------------------------------------------------------------------------------


@named_by_caller
def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """Exchange two axes.

    Parameters
    ----------
    x : Tensor, any shape
    axis1, axis2 : int

    Raises
    ------
    AxisError
        When x has no such axis.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.swapaxes([[1.0, 2.0]], 0, 1)
    tensor([[1.],
            [2.]], shape=(2, 1))
    """
    x = operand(x, "swapaxes")
    order = list(range(x.ndim))
    a, b = (one_axis(axis, x.ndim, "swapaxes", x) for axis in (axis1, axis2))
    order[a], order[b] = order[b], order[a]
    return ta.transpose(x, order)


@named_by_caller
def moveaxis(x: TensorLike, source: Any, destination: Any) -> Tensor:
    """Move axes to new places, the others keep their order.

    Parameters
    ----------
    x : Tensor, any shape
    source : int or tuple of int
        The axes to move.
    destination : int or tuple of int
        Where each of them goes.

    Raises
    ------
    AxisError
        When x has no such axis, or an axis is named twice.
    ArgumentError
        When there are not as many places as axes.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.moveaxis([[1.0, 2.0]], 0, -1)
    tensor([[1.],
            [2.]], shape=(2, 1))
    """
    x = operand(x, "moveaxis")
    froms, tos = axis_tuple(source, x, "moveaxis"), axis_tuple(destination, x, "moveaxis")
    if len(froms) != len(tos):
        raise unfit(ArgumentError, "moveaxis", x, f"{len(froms)} axes cannot move to {len(tos)} places.")
    order = [axis for axis in range(x.ndim) if axis not in froms]
    for to, axis in sorted(zip(tos, froms, strict=True)):
        order.insert(to, axis)
    return ta.transpose(x, order)


@named_by_caller
def flip(x: TensorLike, axis: Axis = None) -> Tensor:
    """Reverse the order along the given axes.

    Parameters
    ----------
    x : Tensor, any shape
    axis : int, tuple of int or None
        None reverses all.

    Raises
    ------
    AxisError
        When x has no such axis, or an axis is named twice.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.flip([1.0, 2.0])
    tensor([2., 1.], shape=(2,))
    """
    x = operand(x, "flip")
    axes = axis_tuple(axis, x, "flip")
    return x[tuple(slice(None, None, -1) if a in axes else slice(None) for a in range(x.ndim))]


@known_arguments
def split(x: TensorLike, sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Cut along an axis into equal parts, or before the given places.

    Parameters
    ----------
    x : Tensor, shape (..., n, ...)
    sections : int or sequence of int
        How many equal parts, or before which entries to cut.
    axis : int

    Returns
    -------
    list of Tensor

    Raises
    ------
    ShapeError
        When the parts would not be equal.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.split([1.0, 2.0, 3.0, 4.0], 2)
    [tensor([1., 2.], shape=(2,)), tensor([3., 4.], shape=(2,))]
    """
    x = operand(x, "split")
    along = one_axis(axis, x.ndim, "split", x)
    size = x.shape[along]
    if isinstance(sections, (list, tuple, np.ndarray)):
        edges = [builtins.min(builtins.max(whole_number(edge, "split", "sections"), 0), size) for edge in sections]
    else:
        parts = whole_number(sections, "split", "sections")
        if parts < 1 or size % parts:
            what = f"axis {along} of size {size} cannot be cut into {parts} equal parts."
            raise unfit(ShapeError, "split", x, what)
        edges = [size // parts * i for i in range(1, parts)]
    starts, ends = [0, *edges], [*edges, size]
    before = (slice(None),) * along
    return [x[(*before, slice(start, end))] for start, end in zip(starts, ends, strict=True)]


# -- products ------------------------------------------------------------------------------------------------------


@named_by_caller
def trace(x: TensorLike) -> Tensor:
    """Add up the diagonal of each matrix.

    Parameters
    ----------
    x : Tensor, shape (..., n, n)

    Returns
    -------
    Tensor, shape (...)

    Raises
    ------
    ShapeError
        When the matrices are not square.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.trace([[1.0, 2.0], [3.0, 4.0]])
    tensor(5., shape=())
    """
    x = operand(x, "trace")
    return ta.einsum("...ii->...", x)


@named_by_caller
def outer(a: TensorLike, b: TensorLike) -> Tensor:
    """Multiply each entry of a vector with each entry of another.

    Parameters
    ----------
    a : Tensor, shape (n,)
        More axes are taken as one, row by row.
    b : Tensor, shape (m,)

    Returns
    -------
    Tensor, shape (n, m)

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.outer([1.0, 2.0], [3.0, 4.0])
    tensor([[3., 4.],
            [6., 8.]], shape=(2, 2))
    """
    left, right = ta.reshape(operand(a, "outer"), -1, 1), ta.reshape(operand(b, "outer"), 1, -1)
    return left * right


@named_by_caller
def dot(a: TensorLike, b: TensorLike) -> Tensor:
    """Dot product of vectors; for matrices the same as `matmul`.

    Parameters
    ----------
    a : Tensor, shape (d,) or (n, d)
    b : Tensor, shape (d,) or (d, m)
        A 0-d operand multiplies.

    Raises
    ------
    ShapeError
        When the sizes differ, or b has more than two axes: `matmul` and `einsum` say what is meant.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.dot([1.0, 2.0], [3.0, 4.0])
    tensor(11., shape=())
    """
    left, right = operand(a, "dot"), operand(b, "dot")
    if left.ndim == 0 or right.ndim == 0:
        return left * right
    if right.ndim > 2:
        why = "More than two axes mean different things to different people."
        raise unfit(ShapeError, "dot", right, f"it has {right.ndim} axes.", why, "Write matmul or einsum.")
    return left @ right


@named_by_caller
def cosine_similarity(a: TensorLike, b: TensorLike, axis: int = -1, eps: float = 1e-8) -> Tensor:
    """Dot product of two vectors divided by their lengths: 1 for the same direction, 0 for a right angle.

    ``y = sum_i a_i b_i / max(|a| |b|, eps)``

    Parameters
    ----------
    a : Tensor, shape (..., d)
    b : Tensor, shape that broadcasts with that of a
    axis : int
        The axis of a vector.
    eps : float
        The least product of lengths to divide by.

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.cosine_similarity([1.0, 0.0], [1.0, 1.0])
    tensor(0.70710678, shape=())
    """
    left, right = operand(a, "cosine_similarity"), operand(b, "cosine_similarity")
    axis_tuple(axis, max(left, right, key=lambda x: x.ndim), "cosine_similarity")
    products = ta.sum(left * right, axis)
    lengths = norm(left, axis) * norm(right, axis)
    return products / ta.maximum(lengths, one_number(eps, "cosine_similarity", "eps"))


# -- layers without weights --------------------------------------------------------------------------------------------


@named_by_caller
def masked_fill(x: TensorLike, mask: ArrayLike, value: float) -> Tensor:
    """Put a number where the mask is True; nothing flows back from there.

    Parameters
    ----------
    x : Tensor, any shape
    mask : array of bool, shape that broadcasts with that of x
    value : float

    Raises
    ------
    ArgumentTypeError
        When the mask is not boolean.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.masked_fill([1.0, 2.0], [False, True], 0.0)
    tensor([1., 0.], shape=(2,))
    """
    name = "masked_fill"
    return ta.where(boolean(mask, name, "mask"), one_number(value, name, "value"), operand(x, name))


@named_by_caller
def rms_norm(x: TensorLike, gain: TensorLike, eps: float = 1e-5) -> Tensor:
    """Divide each row by its root mean square, then scale each entry.

    ``y_i = x_i / sqrt(mean of squares + eps) * gain_i`` (Zhang and Sennrich 2019).

    Parameters
    ----------
    x : Tensor, shape (..., d)
    gain : Tensor, shape (d,)
    eps : float
        Added to the mean square, so that a row of zeros does no harm.

    Raises
    ------
    ShapeError
        When there is not one gain for each entry of a row.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.rms_norm([[3.0, 4.0]], [1.0, 1.0], eps=0.0)
    tensor([[0.84852814, 1.13137085]], shape=(1, 2))
    """
    x = operand(x, "rms_norm")
    scale = gain if isinstance(gain, Tensor) else constant(gain, x.dtype, "rms_norm")
    if not x.ndim:
        raise unfit(ShapeError, "rms_norm", x, "x needs at least one axis.", "", "Write x[None] for a row of one.")
    if scale.shape not in ((), x.shape[-1:]):
        why, instead = "It needs one number for each entry of a row.", f"Give it the shape {x.shape[-1:]}."
        raise unfit(ShapeError, "rms_norm", x, f"gain {scale.shape} does not fit.", why, instead)
    root = ta.sqrt(mean(square(x), -1, keepdims=True) + one_number(eps, "rms_norm", "eps"))
    return x / root * scale


@named_by_caller
def mse(prediction: TensorLike, target: TensorLike) -> Tensor:
    """Mean squared error.

    Parameters
    ----------
    prediction : Tensor, any shape
    target : Tensor, shape of the prediction

    Returns
    -------
    Tensor, shape ()

    Raises
    ------
    ShapeError
        When the shapes differ: broadcasting here would compare each number with many.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.mse([1.0, 2.0], [1.0, 4.0])
    tensor(2., shape=())
    """
    p, t = _of_one_shape(operand(prediction, "mse"), operand(target, "mse"), "mse")
    return mean(square(p - t))


def _of_one_shape(x: Tensor, target: Tensor, name: str) -> tuple[Tensor, Tensor]:
    if x.shape != target.shape:
        why = "The shapes must be equal: broadcasting would compare each number with many."
        raise unfit(ShapeError, name, x, f"the target has shape {target.shape}.", why, "Reshape the target.")
    return x, target


@named_by_caller
def binary_cross_entropy_with_logits(x: TensorLike, target: TensorLike) -> Tensor:
    """Mean loss of saying yes or no by scores, without overflow.

    The mean of ``-t log sigmoid(x) - (1 - t) log(1 - sigmoid(x))``.

    Parameters
    ----------
    x : Tensor, any shape
        Scores; their sigmoid is the probability of yes.
    target : Tensor, shape of x
        1 for yes, 0 for no, or a probability.

    Returns
    -------
    Tensor, shape ()

    Raises
    ------
    ShapeError
        When the shapes differ.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.binary_cross_entropy_with_logits([0.0], [1.0])
    tensor(0.69314718, shape=())
    """
    name = "binary_cross_entropy_with_logits"
    scores, t = _of_one_shape(operand(x, name), operand(target, name), name)
    return mean(softplus(scores) - scores * t)


@named_by_caller
def embedding(table: TensorLike, ids: ArrayLike) -> Tensor:
    """Look up rows of a table by number; a row that is read twice gets both gradients.

    Parameters
    ----------
    table : Tensor, shape (words, d)
        A row for each word.
    ids : array of int, any shape (...)

    Returns
    -------
    Tensor, shape (..., d)

    Raises
    ------
    ShapeError
        When the table is not a matrix.
    IndexRangeError
        When there is no row of that number.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.embedding([[1.0, 2.0], [3.0, 4.0]], [1, 1])
    tensor([[3., 4.],
            [3., 4.]], shape=(2, 2))
    """
    rows, numbers = operand(table, "embedding"), whole_array(ids, "embedding", "ids")
    if rows.ndim != 2:
        raise unfit(ShapeError, "embedding", rows, "the table must be a matrix, one row for each word.")
    in_range(numbers, rows.shape[0], "embedding", "id", rows)
    return rows[numbers]


@known_arguments
def one_hot(ids: ArrayLike, classes: int) -> Tensor:
    """Rows with a single 1, at the place of the number.

    Parameters
    ----------
    ids : array of int, any shape (...)
    classes : int

    Returns
    -------
    Tensor, shape (..., classes)

    Raises
    ------
    IndexRangeError
        When an id is outside 0 to classes - 1.
    ArgumentError
        When there are ids and no classes.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.one_hot([1, 0], 3)
    tensor([[0., 1., 0.],
            [1., 0., 0.]], shape=(2, 3))
    """
    numbers = whole_array(ids, "one_hot", "ids")
    if whole_number(classes, "one_hot", "classes") < 1 and numbers.size:
        raise ArgumentError(f"one_hot: classes={classes} leaves no place for the 1.")
    in_range(numbers, classes, "one_hot", "id")
    return operand((np.arange(classes) == numbers[..., None]).astype(float), "one_hot")


@named_by_caller
def dropout(x: TensorLike, p: float, rng: np.random.Generator | int, training: bool = True) -> Tensor:
    """Set entries to 0 with probability p and scale the rest up, so that the mean stays.

    Srivastava et al. 2014.

    Parameters
    ----------
    x : Tensor, any shape
    p : float from 0 to 1
        The share of entries that are dropped.
    rng : numpy Generator or int
        Where chance comes from; a seed gives the same entries every time.
    training : bool
        When False, x is returned as it is.

    Raises
    ------
    ArgumentError
        When p is not from 0 to 1.
    ArgumentTypeError
        When rng is not a source of chance.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.dropout([1.0, 1.0, 1.0, 1.0], 0.5, rng=0)
    tensor([2., 0., 0., 0.], shape=(4,))
    """
    x = operand(x, "dropout")
    share = one_number(p, "dropout", "p")
    if not 0 <= share <= 1:
        raise ArgumentError(f"dropout: p={p} must lie between 0 and 1.")
    if not isinstance(rng, np.random.Generator) and (not isinstance(rng, (int, np.integer)) or rng < 0):
        wrong = f"dropout: rng={rng!r} is not a source of chance."
        raise ArgumentTypeError(message(wrong, "", "Give a seed, or np.random.default_rng(seed)."))
    if not yes_or_no(training, "dropout", "training") or share == 0:
        return x
    source = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
    kept = source.random(x.shape) >= share
    return x * kept.astype(x.dtype) / (1 - share) if share < 1 else x * 0.0


ta.add_methods({name: globals()[name] for name in ta.COMPOSED})
