"""What may be given where a tensor, an axis, a shape or a mask is expected: checked, and brought into one form.

Whatever does not fit is refused in the name of the operation, before anything is computed.  The rule book wants axes
as tuples of non-negative numbers, shapes without -1, masks and indices as arrays of their own.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypeVar

import numpy as np

from tinyattn import explain
from tinyattn.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    IndexRangeError,
    ShapeError,
    TinyattnError,
    message,
)
from tinyattn.mode import mode, switches
from tinyattn.ops import elementwise
from tinyattn.tensor import Constant, Tensor, apply, new_leaf, number_or_array

if TYPE_CHECKING:  # numpy.typing costs a tenth of importing NumPy, and only type checkers read it
    from numpy.typing import ArrayLike, DTypeLike

    TensorLike: TypeAlias = Tensor | ArrayLike
    Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
    F = TypeVar("F", bound=Callable[..., Any])


TAKES_ANY = 8  # `inspect.CO_VARKEYWORDS`


def takes_any(function: Any) -> bool:
    """Whether a function takes every keyword, by ``**options``."""
    return bool(function.__code__.co_flags & TAKES_ANY)


def argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """What a function can be given by name."""
    code = getattr(function, "__wrapped__", function).__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names[1:] if names[:1] in (("self",), ("cls",)) else names


def refuse_unknown(name: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Answer a keyword that a function does not have, such as PyTorch's ``dim``, with the names that it has."""
    for keyword in given:
        if keyword not in known:
            raise explain.unknown_argument(name, keyword, known)


def known_arguments(function: F) -> F:
    """Let a function answer the keywords of other libraries in words.

    One that takes ``**unknown`` answers them itself, because a wrapper costs a third of a microsecond; whoever asks
    for its signature, as ``help`` does, is shown the one without.
    """
    name, known = function.__name__, argument_names(function)
    all_known, code = frozenset(known), function.__code__
    if takes_any(function):
        plain: Any = code.replace(co_flags=code.co_flags & ~TAKES_ANY)
        shown = FunctionType(plain, function.__globals__, name, function.__defaults__)
        shown.__annotations__ = {at: kind for at, kind in function.__annotations__.items() if at != "unknown"}
        function.__wrapped__ = shown  # type: ignore[attr-defined]
        return function

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not all_known.issuperset(kwargs):
            refuse_unknown(name, kwargs, known)
        return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def known_to_start(start: F, known: Sequence[str], name: str = "") -> F:
    """Let an ``__init__`` answer keywords of other libraries in the name of a class; mostly that of what is made."""

    @functools.wraps(start)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        refuse_unknown(name or type(self).__name__, kwargs, known)
        start(self, *args, **kwargs)

    return wrapper  # type: ignore[return-value]


# -- operands ----------------------------------------------------------------------------------------------------------


def values_of(x: Any) -> Any:
    """The array inside a tensor; anything else as it is."""
    return x._value if isinstance(x, Tensor) else x


def compared(compare: Any, x: Any, other: Any) -> Any:
    """A comparison of a tensor's numbers.  It is not recorded; who has to know of it all the same, watches."""
    try:
        result = compare(x._value, values_of(other))
    except (ValueError, TypeError) as error:
        raise explain.failed_comparison(compare, x, other, error) from None
    if switches.set and mode.watch_comparison is not None:
        mode.watch_comparison(compare, x, other, result)
    return result


def as_array(data: Any, dtype: DTypeLike | None = None, name: str = "") -> np.ndarray:
    """Numbers that the engine can hold as an array; others are refused in the name of the operation."""
    try:
        return _numbers(data, dtype)
    except TinyattnError as error:
        error.args = (f"{name}: {error}" if name else str(error),)
        raise


def _numbers(data: Any, dtype: DTypeLike | None) -> np.ndarray:
    if isinstance(data, Tensor):
        data = data._value
    elif isinstance(data, (list, tuple)) and any(isinstance(part, Tensor) for part in data):
        raise explain.list_of_tensors()
    elif hides_entries(data):
        raise explain.masked()
    try:
        array = np.asarray(data)
        wanted = array.dtype if dtype is None else np.dtype(dtype)
        wanted = np.dtype(wanted.type) if wanted.kind in "fiub" else wanted  # the one that NumPy itself uses
    except (ValueError, TypeError, OverflowError) as error:
        raise explain.not_an_array(data, error) from None
    for kind in (array.dtype, wanted):  # what is given first: NumPy would make nan of None, and drop imaginary parts
        if kind.kind not in "fiub" or kind.itemsize > 8:
            raise explain.not_numbers(kind)
    array = array.astype(wanted, copy=False)
    return array if array.dtype is wanted else array.view(wanted)  # what a pickle gives is only equal


def hides_entries(data: Any) -> bool:
    """Whether this is one of NumPy's masked arrays, with something masked."""
    return hasattr(data, "filled") and bool(np.any(data.mask))


_constants: dict[tuple[Any, Any, Any], np.ndarray] = {}


def constant(value: Any, like: Any = None, name: str = "", single: bool = False) -> Tensor:
    """A number or array inside an expression as a tensor; a Python number takes the dtype of ``like``.

    It is kept as NumPy's kind of number for a ``single`` number, and as an array without axes for arrays: either is the
    cheaper partner there, by a factor of two and more.
    """
    kind = type(value)
    if kind is float or kind is int or kind is bool:
        if like is None or (like.kind != "f" and (kind is float or (kind is int and like.kind == "b"))):
            return new_leaf(Constant, as_array(value, None, name)[()], False)
        key = (kind, like, value)
        array = _constants.get(key)
        if array is None:
            try:
                with np.errstate(over="ignore"):
                    array = np.array(value, like)
            except OverflowError:
                raise explain.does_not_fit(value, like, name) from None
            if value != 0 and len(_constants) < 1000:  # 0.0 and -0.0 are equal keys, but not equal numbers
                _constants[key] = array
        return new_leaf(Constant, array[()] if single else array, False)
    return new_leaf(Constant, number_or_array(np.array(as_array(value, None, name))), False)


def operand(x: Any, name: str) -> Tensor:
    """Anything that holds numbers as a tensor; what does not is refused in the name of the operation."""
    return x if isinstance(x, Tensor) else constant(x, None, name)


def as_tensors(operands: Any) -> tuple[Tensor, ...]:
    """Make tensors of all operands; Python numbers take the dtype of the first tensor or array among them."""
    if all(isinstance(x, Tensor) for x in operands):
        return tuple(operands)
    like = next((x.dtype for x in operands if hasattr(x, "dtype")), None)
    return tuple(x if isinstance(x, Tensor) else constant(x, like) for x in operands)


def floating(x: Tensor) -> Tensor:
    """The tensor itself, or whole numbers cast to float64 where an operation needs fractions."""
    return x if x._dtype.kind == "f" else apply(elementwise.cast, (x,), (np.dtype(np.float64),))


def operand_list(tensors: Any, name: str) -> tuple[Tensor, ...]:
    """The tensors of a list, or the rows of an array."""
    if isinstance(tensors, (np.ndarray, Tensor)) or not isinstance(tensors, Sequence):
        tensors = tuple(tensors) if isinstance(tensors, (np.ndarray, Tensor)) and tensors.ndim else tensors
    if not isinstance(tensors, Sequence) or isinstance(tensors, str):
        raise ArgumentTypeError(message(f"{name}: a list of tensors is needed.", "", f"Write {name}([a, b])."))
    if not tensors:
        raise ArgumentError(f"{name}: the list is empty, so the result would have no shape.")
    return tuple(operand(x, name) for x in tensors)

# -- numbers and switches ----------------------------------------------------------------------------------------------


def whole_number(value: Any, name: str, what: str) -> int:
    """A whole number, or words: 1.0 and True are not meant here."""
    if type(value) is int:
        return value
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return operator.index(value)
    except TypeError:
        array = isinstance(value, (Tensor, np.ndarray))
        why = "It counts axes or sizes, so it must be a whole number."
        joined = array and name in ("concatenate", "stack")
        instead = f"Several tensors go into a list: {name}([a, b])." if joined else ""
        shown = what if array else f"{what}={value!r}"
        raise ArgumentTypeError(message(f"{name}: {shown} is a {type(value).__name__}.", why, instead)) from None


def one_number(value: Any, name: str, what: str) -> float:
    """One real number without gradient, or words: it is a setting of the operation, not an operand."""
    plain = values_of(value)
    watched = isinstance(value, Tensor) and value.requires_grad
    if watched or not isinstance(plain, (int, float, np.number, np.ndarray)) or np.ndim(plain) > 0:
        shown = f"{what}={value!r}" if not isinstance(value, (Tensor, np.ndarray)) else what
        raise ArgumentTypeError(message(f"{name}: {shown} must be one number without gradient."))
    return float(plain)


def function_given(f: object, name: str, what: str, instead: str = "") -> None:
    """Refuse what cannot be called, where a function is wanted."""
    if not callable(f):
        wrong = f"{name}: {what} is a {type(f).__name__}; a function is needed."
        raise ArgumentTypeError(message(wrong, "", instead))


def yes_or_no(value: Any, name: str, what: str) -> bool:
    """True or False, or words."""
    if value is not False and not isinstance(value, (bool, np.bool_)):
        shown = f"{what}={value!r}"
        shown = shown if len(shown) < 60 else f"{what}, a {type(value).__name__},"
        raise ArgumentTypeError(f"{name}: {shown} must be True or False.")
    return bool(value)

# -- axes and shapes ---------------------------------------------------------------------------------------------------


def one_axis(axis: Any, ndim: int, name: str, x: Tensor | None = None) -> int:
    """One axis as a non-negative number."""
    if type(axis) is int and -ndim <= axis < ndim:
        return axis % ndim
    number = whole_number(axis, name, "axis")
    if not -ndim <= number < ndim:
        count = "is no axis" if ndim == 0 else "is 1 axis" if ndim == 1 else f"are {ndim} axes"
        why = f"There {count}" + (f", so axis goes from {-ndim} to {ndim - 1}." if ndim else ".")
        what = f"axis {number} does not exist."
        raise AxisError(message(f"{name}: {what}", why)) if x is None else explain.unfit(AxisError, name, x, what, why)
    return number % ndim


def axis_tuple(axis: Any, x: Tensor, name: str) -> tuple[int, ...]:
    """An axis argument, that is None for all, a number or several, as a tuple of non-negative numbers."""
    ndim = x.ndim
    if axis is None:
        return every_axis(ndim)
    if isinstance(axis, (tuple, list)):
        found = tuple(one_axis(a, ndim, name, x) for a in axis)
        if len(set(found)) < len(found):
            what = f"axis={tuple(axis)} names an axis twice."
            raise explain.unfit(AxisError, name, x, what, "Each axis can be named once.")
        return found
    return (one_axis(axis, ndim, name, x),)


@functools.cache
def every_axis(ndim: int) -> tuple[int, ...]:
    """All axes, for an array of so many."""
    return tuple(range(ndim))


def shape_tuple(shape: tuple[Any, ...], name: str) -> tuple[int, ...]:
    """A shape that was given as one tuple or as several numbers."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return tuple(whole_number(size, name, "shape") for size in sizes)


def full_shape(shape: tuple[int, ...], x: Tensor) -> tuple[int, ...]:
    """Replace the one -1 by what is left over."""
    unknown = shape.count(-1)
    if unknown > 1 or any(size < -1 for size in shape):
        why = "At most one size may be -1, the others must not be negative."
        raise explain.unfit(ShapeError, "reshape", x, f"{shape} is no shape.", why)
    known = math.prod(size for size in shape if size != -1)
    if unknown and (known == 0 or x.size % known):
        why = f"{x.size} numbers cannot be parted into rows of {known}."
        raise explain.unfit(ShapeError, "reshape", x, f"{shape} does not fit.", why)
    return tuple(x.size // known if size == -1 else size for size in shape)


def expand_subscripts(subscripts: str, ranks: list[int]) -> str:
    """Write an einsum text in full: no blanks, capital letters for the axes of ``...``, an explicit result.

    >>> expand_subscripts("...ij, ...jk", [3, 2])
    'Aij,jk->Aik'
    """
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    if not arrow:
        named = left.replace("...", "").replace(",", "")
        result = ("..." if "..." in left else "") + "".join(sorted(c for c in set(named) if named.count(c) == 1))
    operands = left.split(",")
    extra = [rank - len(labels.replace("...", "")) for labels, rank in zip(operands, ranks, strict=True)]
    most = max([n for labels, n in zip(operands, extra, strict=True) if "..." in labels], default=0)
    dots = "ABCDEFGH"[:most]
    full = [labels.replace("...", dots[most - max(n, 0) :]) for labels, n in zip(operands, extra, strict=True)]
    return f"{','.join(full)}->{result.replace('...', dots)}"

# -- masks and indices -------------------------------------------------------------------------------------------------


def _copied(value: Any, name: str, what: str) -> np.ndarray:
    """A copy as an array, so that later writes to a mask or to indices do not reach a recorded graph."""
    try:
        return np.array(values_of(value))
    except (ValueError, TypeError) as error:
        wrong = f"{name}: {what} is no array: {error}."
        raise ArgumentTypeError(message(wrong, "", "Rows must be equally long.")) from None


def boolean(value: Any, name: str, what: str) -> np.ndarray:
    """A mask as a boolean array; numbers are refused, because 0/1, -inf and True mean different things to people."""
    array = _copied(value, name, what)
    if array.dtype != bool:
        added = array.dtype.kind == "f" and np.isneginf(array).any()  # the other convention: 0 to keep, -inf to hide
        instead = f"np.isfinite({what})" if added else f"{what} != 0, or x > 0 for the test you mean"
        why = "It must be boolean; True means yes."
        raise ArgumentTypeError(message(f"{name}: {what} has dtype {array.dtype}.", why, f"Write {instead}."))
    return array


def mask_for(keep: Any, shape: tuple[int, ...], name: str, x: Tensor) -> np.ndarray:
    """A mask broadcast to the shape that it is for."""
    mask = boolean(keep, name, "keep")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        what = f"keep has shape {mask.shape}, which does not broadcast to {shape}."
        raise explain.unfit(ShapeError, name, x, what, "It needs one True or False for each score.") from None


def whole_array(value: Any, name: str, what: str) -> np.ndarray:
    """An array of whole numbers, or words."""
    array = _copied(value, name, what)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(int)
    if array.dtype.kind not in "iu":
        wrong = f"{name}: {what} has dtype {array.dtype}; whole numbers are needed."
        raise ArgumentTypeError(message(wrong, "", f"Write {what}.astype(int) if they are whole."))
    return array


def in_range(array: np.ndarray, size: int, name: str, what: str, x: Tensor | None = None) -> None:
    """Refuse a number outside 0 .. size - 1, and say which and where."""
    outside = (array < 0) | (array >= size)
    if outside.any():
        at = np.unravel_index(int(np.argmax(outside)), array.shape)
        place = f" at position {', '.join(map(str, at))}" if at else ""
        found, why = f"{what} {int(array[at])}{place} is outside 0 to {size - 1}.", f"There are {size}, counted from 0."
        if x is not None:
            raise explain.unfit(IndexRangeError, name, x, found, why)
        raise IndexRangeError(message(f"{name}: {found}", why))


def key_part(part: Any) -> Any:
    """One part of an indexing key: a number, a slice, None, ... or an array that is nobody else's."""
    if isinstance(part, slice):
        edges = (values_of(edge) for edge in (part.start, part.stop, part.step))
        return slice(*(None if edge is None else whole_number(edge, "index", "slice") for edge in edges))
    if part is None or part is Ellipsis or type(part) is int:
        return part
    if isinstance(part, Tensor):
        part = part.data
    elif hides_entries(part):
        raise explain.masked()
    if isinstance(part, (float, str, bytes, dict, set)):
        why = "An index is a whole number, a slice, or an array of whole numbers or booleans."
        raise IndexRangeError(message(f"index: {part!r} is a {type(part).__name__}.", why))
    array = np.asarray(part, dtype=int) if isinstance(part, (list, tuple)) and not len(part) else np.asarray(part)
    if array.dtype.kind not in "iub":
        wrong, instead = f"index: an array of {array.dtype} is no index.", "Write index.astype(int) if they are whole."
        raise IndexRangeError(message(wrong, "Give whole numbers or booleans.", instead))
    if array.ndim == 0 and array.dtype.kind in "iu":
        return int(array)
    return np.array(array)
