"""Tensor: an array, how it was made, and the operators.

Every operation goes through `apply`: run the op's forward, and note on the result which op it was, what went
in, and where in the learner's code it was written.  These notes *are* the computation graph; they point
from results to inputs only, so a graph is freed as soon as nobody holds its result.
This file stands on `tinyattn.ops`; `autodiff` and `graph` read what is noted here.
"""

from __future__ import annotations

import itertools
import operator
import sys
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyattn import explain, names, ops
from tinyattn.errors import ShapeError
from tinyattn.mode import mode, switches
from tinyattn.ops import elementwise, linear
from tinyattn.ops import shape as shapes
from tinyattn.places import ENGINE, PACKAGE, note_place, outside_package, place_of, recent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, DTypeLike

ndarray = np.ndarray
new_order = itertools.count(1).__next__  # the next creation number
_frame = sys._getframe


class Notes:
    """What few tensors carry: a name, a gradient, a scope, a line outside the package, arrays kept for a rule.

    It is made when the first of these is set, so that the other tensors of a long graph do not pay for it.
    """

    __slots__ = ("grad", "name", "saved", "scope", "site")

    def __init__(self) -> None:
        nothing: Any = None
        self.grad = self.name = self.saved = self.site = nothing
        self.scope: tuple[str, ...] = ()


latest = SimpleNamespace(assigned=0)
"""The creation number that the last `assign` anywhere gave: a graph that is all newer cannot be stale."""


class Noted:
    """An attribute of a tensor that is kept in its `Notes`."""

    def __init__(self, slot: str, default: Any = None) -> None:
        self.slot, self.default = slot, default

    def __get__(self, x: Any, owner: Any = None) -> Any:
        return self if x is None else self.default if x.notes is None else getattr(x.notes, self.slot)

    def __set__(self, x: Any, value: Any) -> None:
        if x.notes is not None or value is not self.default:
            setattr(x.own_notes(), self.slot, value)


def _operators(op: ops.Op) -> tuple[Callable[[Any, Any], Tensor], Callable[[Any, Any], Tensor]]:
    """The methods of one operator: with the tensor on the left, and with it on the right."""
    forward = op.forward

    def left(self: Any, other: Any) -> Tensor:
        if other.__class__ is Tensor:
            if self._dtype is other._dtype:
                try:
                    value = forward(self._value, other._value)
                except Exception as error:
                    raise explain.failed_call(op, (self, other), (), error) from None
                return _recorded(op, value, self, other, (), self.requires_grad or other.requires_grad, 2)
        return binary(op, self, other)

    def right(self: Any, other: Any) -> Tensor:
        return binary(op, other, self)

    return left, right


def _in_place(op: ops.Op) -> Callable[[Any, Any], Tensor]:
    """``t -= x`` is ``t = t - x``, but for a leaf with a gradient, whose update would not be what was meant."""

    def update(self: Any, other: Any) -> Tensor:
        if self.op is None and self.requires_grad:
            raise explain.in_place(self)
        return binary(op, self, other)

    return update


def _refused(symbol: str) -> Callable[..., Any]:
    """An operator of Python that has no gradient worth having."""

    def refuse(self: Any, *others: Any) -> Any:
        raise explain.no_rule_for(symbol, self)

    return refuse


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, object], Any]:
    """A comparison is not differentiable: it gives a plain boolean array, which `where` and masks take."""
    return lambda self, other: compared(compare, self, other)


class Tensor:
    """An array that remembers how it was made, so that gradients can be followed back through it.

    Make leaves with `tinyattn.tensor`; every operation on tensors gives tensors.

    Attributes
    ----------
    data : ndarray, read-only
        The numbers.
    grad : ndarray or None
        The gradient of a leaf after ``backward``; an own array that may be written to.
    requires_grad : bool
        True when a gradient is wanted, or needed on the way to one.
    shape, dtype, ndim, size
        As in NumPy.

    Examples
    --------
    >>> import tinyattn as ta
    >>> x = ta.tensor([1.0, 2.0], requires_grad=True)
    >>> y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    array([2., 4.])
    """

    __slots__ = (
        "__weakref__", "_dtype", "_left", "_right", "_shape", "_value", "code", "lasti", "notes", "op", "order",
        "params", "requires_grad",
    )  # fmt: skip

    _value: Any  # ndarray, or a NumPy scalar for 0-d: a fifth of the cost of a 0-d array
    _shape: tuple[int, ...]  # of the value, noted once, because asking an array costs ten times as much
    _dtype: np.dtype[Any]
    op: ops.Op | None
    _left: Any  # the input, or the first of two; otherwise all of them as a tuple
    _right: Tensor | None  # a tuple for one or two would double what the cycle collector has to walk through
    params: tuple[Any, ...]
    order: int  # creation number; `assign` renews it, which is how a stale graph is noticed
    requires_grad: bool
    code: Any  # where the name is: code object and instruction offset, never a frame
    lasti: int
    notes: Notes | None

    given_name = Noted("name")
    scope = Noted("scope", ())
    site = Noted("site")  # code object and offset of the line outside the package, where that is another place
    saved = Noted("saved")  # what a fused forward keeps for its rule
    _grad = Noted("grad")  # None, the gradient, or RETAIN on a result whose gradient shall be kept

    # -- looking ----------------------------------------------------------------------------------------

    @property
    def data(self) -> np.ndarray:
        """The numbers, as a read-only array; `assign` changes a leaf."""
        view = np.asarray(self._value).view()
        view.flags.writeable = False
        return view

    @data.setter
    def data(self, value: Any) -> None:
        raise explain.set_data(self)

    shape: tuple[int, ...] = property(operator.attrgetter("_shape"), doc="The sizes of the axes.")  # type: ignore[assignment]
    dtype: np.dtype[Any] = property(operator.attrgetter("_dtype"), doc="The type of the numbers.")  # type: ignore[assignment]

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return int(self._value.size)

    @property
    def is_leaf(self) -> bool:
        """True for a tensor that was given, not computed."""
        return self.op is None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What it was computed from, by slot: the same tensor twice in ``x * x``."""
        if self._right is not None:
            return (self._left, self._right)
        return self._left if self._left.__class__ is tuple else () if self._left is None else (self._left,)

    @property
    def name(self) -> str | None:
        """The name it was given, or the one the learner's own code stores it under; None when unknown."""
        return self.given_name or names.stored_target(self.code, self.lasti)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged: the transpose of each matrix."""
        if len(self._shape) == 2:  # the commonest case without the function's checks: two thirds of its time
            return unary(shapes.transpose, self, ((1, 0),))
        return functions.matrix_transpose(self)

    @property
    def T(self) -> Tensor:
        """All axes in reverse order: the transpose of a matrix."""
        return functions.transpose(self)

    def __len__(self) -> int:
        if not self.shape:
            raise explain.no_length(self)
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def item(self) -> Any:
        """The one number of a tensor with one entry, as a Python number."""
        if self._shape and self.size != 1:
            raise explain.not_one_number(self)
        return float(self._value) if isinstance(self._value, np.floating) else self._value.item()

    def tolist(self) -> Any:
        """The numbers as nested Python lists."""
        return self._value.tolist()

    def numpy(self) -> np.ndarray:
        """A copy of the numbers that may be written to; the graph does not follow it."""
        return np.array(self._value)

    def __float__(self) -> float:
        if self.requires_grad:
            numpy_protocol.warn_where_stored(self, _frame(1))
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __repr__(self) -> str:
        from tinyattn.show import tensor_text

        return tensor_text(self)

    def own_notes(self) -> Notes:
        """Its `Notes`, made now if it had none."""
        if self.notes is None:
            self.notes = Notes()
        return self.notes

    # -- gradients ----------------------------------------------------------------------------------------

    @property
    def grad(self) -> np.ndarray | None:
        """The gradient: of a leaf after `backward`, of a result only after `retain_grad`."""
        grad = None if self.notes is None else self.notes.grad
        if self.op is not None and grad is None and self.requires_grad:
            warnings.warn(explain.missing_grad(self), stacklevel=2)
        return None if grad is RETAIN else grad

    @grad.setter
    def grad(self, value: ArrayLike | None) -> None:
        array = None if value is None else np.array(as_array(value, self.dtype, "grad"))
        if array is not None and array.shape != self.shape:
            raise ShapeError(f"{names.describe(self)}.grad must have that shape; the array given has {array.shape}.")
        self._grad = array

    def backward(self, seed: ArrayLike | None = None) -> None:
        """Compute the gradient of this tensor to every leaf, and add it to their ``.grad``.

        Parameters
        ----------
        seed : array_like, shape of this tensor, optional
            The cotangent to start from; may be left out for a single number, where it is 1.

        Raises
        ------
        GraphError
            When there is nothing to differentiate, more than one number and no seed, or a leaf that was
            assigned since.  No gradient has been touched then.
        ShapeError
            When the seed does not have this tensor's shape.

        Examples
        --------
        >>> import tinyattn as ta
        >>> w = ta.tensor([1.0, -2.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> w.grad
        array([ 2., -4.])
        """
        autodiff.backward(self, seed)

    def retain_grad(self) -> Tensor:
        """Keep this result's gradient at the next `backward`, as a leaf does."""
        if self.op is not None and self._grad is None:
            self._grad = RETAIN
        return self

    def zero_grad(self) -> None:
        """Forget the gradient; the next `backward` starts from nothing."""
        if self.notes is not None:
            self.notes.grad = None

    def detach(self) -> Tensor:
        """The same numbers as a constant: gradients do not flow through it."""
        leaf = new_leaf(Tensor, self._value, False)
        leaf.given_name = self.given_name
        return leaf

    def assign(self, value: ArrayLike) -> Tensor:
        """Give a leaf new numbers, as an optimiser does; graphs made before can no longer run backward.

        Parameters
        ----------
        value : array_like, shape of this tensor
            Copied, in this tensor's dtype.
        """
        if self.op is not None:
            raise explain.not_a_leaf(self, "assigned")
        array = as_array(value)
        if array.shape != self.shape:
            raise ShapeError(f"{names.describe(self)}.assign: the new array has shape {array.shape}, not {self.shape}.")
        self.exchange(np.array(array, dtype=self.dtype))
        return self

    def exchange(self, array: np.ndarray) -> Any:
        """Give a leaf an array of its shape without copying it, and get the old one: for optimisers."""
        old, self._value, self._dtype = self._value, number_or_array(array), array.dtype
        self.order = latest.assigned = new_order()
        return old

    # -- operators ----------------------------------------------------------------------------------------

    __add__, __radd__ = _operators(elementwise.add)
    __sub__, __rsub__ = _operators(elementwise.subtract)
    __mul__, __rmul__ = _operators(elementwise.multiply)
    __truediv__, __rtruediv__ = _operators(elementwise.divide)
    __matmul__, __rmatmul__ = _operators(linear.matmul)
    __iadd__, __isub__ = _in_place(elementwise.add), _in_place(elementwise.subtract)
    __imul__, __itruediv__ = _in_place(elementwise.multiply), _in_place(elementwise.divide)
    __eq__, __ne__ = _comparison(operator.eq), _comparison(operator.ne)
    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)
    __hash__ = object.__hash__

    __floordiv__ = __rfloordiv__ = _refused("//")
    __mod__ = __rmod__ = _refused("%")
    __divmod__ = __rdivmod__ = _refused("divmod")
    __round__, __invert__ = _refused("round"), _refused("~")
    __and__ = __rand__ = _refused("&")
    __or__ = __ror__ = _refused("|")
    __xor__ = __rxor__ = _refused("^")

    def __pow__(self, exponent: Any) -> Tensor:
        if type(exponent) is int:
            return unary(elementwise.integer_power, self, (exponent,))
        return binary(elementwise.power, self, exponent)

    def __rpow__(self, base: Any) -> Tensor:
        return binary(elementwise.power, base, self)

    def __neg__(self) -> Tensor:
        return unary(elementwise.negative, self)

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return unary(elementwise.absolute, self)

    def __getitem__(self, key: Any) -> Tensor:
        return functions.index(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise explain.immutable(self)

    # -- NumPy's spellings ------------------------------------------------------------------------------------

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return numpy_protocol.as_plain_array(self, dtype, copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_protocol.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return numpy_protocol.call_function(function, args, kwargs)

    @classmethod
    def apply_op(cls, op: ops.Op, operands: tuple[Any, ...]) -> Tensor:
        """Record ``op``: what `Op.__call__` does when an operand is a Tensor."""
        inputs, params = op.split(operands)
        return apply(op, as_tensors(inputs), params)

    def __deepcopy__(self, memo: Any) -> Tensor:
        if self.op is not None:
            raise explain.not_a_leaf(self, "copied without its graph")
        twin = new_leaf(type(self), self._value, self.requires_grad)
        twin.given_name, twin._grad = self.given_name, None if self._grad is None else self._grad.copy()
        return memo.setdefault(id(self), twin)  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        if self.op is not None:
            raise explain.not_a_leaf(self, "pickled with its graph")
        return tensor, (np.asarray(self._value), self.requires_grad, None, self.given_name)

    # Methods such as t.sum() are functions of `tinyattn.functions`, set from its table.  A real __getattr__ would
    # double the cost of every attribute, so only the type checker is shown one.
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Constant(Tensor):
    """A number or array that was written inside an expression, such as the 2 in ``2 * x``."""

    __slots__ = ()


RETAIN = object()


def tensor(
    data: ArrayLike, requires_grad: bool = False, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor:
    """Make a leaf tensor from numbers; the array is copied, so later writes to it do no harm.

    Parameters
    ----------
    data : array_like, any shape
        Numbers; nested lists are float64 as soon as one is written with a point.
    requires_grad : bool
        Whether `backward` shall fill ``.grad``; needs a floating-point dtype.
    dtype : dtype, optional
        float16, float32, float64, an integer or bool.
    name : str, optional
        What drawings and errors call it; otherwise the variable it is stored in.

    Raises
    ------
    DTypeError
        For text, objects and complex numbers, and for integers that require a gradient.

    Examples
    --------
    >>> import tinyattn as ta
    >>> ta.tensor([[1.0, 2.0]], requires_grad=True)
    tensor([[1., 2.]], shape=(1, 2), grad: not computed)
    """
    array = np.array(as_array(data, dtype, "tensor"))
    if yes_or_no(requires_grad, "tensor", "requires_grad") and array.dtype.kind != "f":
        raise explain.no_slope(array.dtype)
    leaf = new_leaf(Tensor, number_or_array(array), requires_grad)
    leaf.given_name = name
    note_place(leaf, _frame(1))
    return leaf


def number_or_array(array: np.ndarray) -> Any:
    return array[()] if array.shape == () else array


def new_leaf(cls: type[Tensor], value: Any, requires_grad: bool) -> Tensor:
    leaf = cls()
    leaf._value, leaf._shape, leaf._dtype = value, value.shape, value.dtype
    leaf.op = leaf._left = leaf._right = leaf.notes = leaf.code = None
    leaf.params, leaf.requires_grad, leaf.lasti = (), requires_grad, -1
    leaf.order = new_order()
    return leaf


def binary(op: ops.Op, a: Any, b: Any, up: int = 3) -> Tensor:
    """Apply an op of two inputs, of which one may be a number or an array: `apply` without its other cases."""
    if not isinstance(a, Tensor):
        a = constant(a, b._dtype, op.name, not b._shape)
    elif not isinstance(b, Tensor):
        b = constant(b, a._dtype, op.name, not a._shape)
    if a._dtype is not b._dtype:
        return apply(op, (a, b))
    try:
        value = op.forward(a._value, b._value)
    except Exception as error:
        raise explain.failed_call(op, (a, b), (), error) from None
    return _recorded(op, value, a, b, (), a.requires_grad or b.requires_grad, up)


def unary(op: ops.Op, x: Any, params: tuple[Any, ...] = ()) -> Tensor:
    """Apply an op of one input: `apply` without what it needs for several."""
    if x.__class__ is not Tensor and not isinstance(x, Tensor):
        x = constant(x, name=op.name)
    try:
        value = op.forward(x._value, *params) if params else op.forward(x._value)
    except Exception as error:
        raise explain.failed_call(op, (x,), params, error) from None
    return _recorded(op, value, x, None, params, x.requires_grad and op.differentiable, 3)


def apply(op: ops.Op, inputs: tuple[Tensor, ...], params: tuple[Any, ...] = ()) -> Tensor:
    """Run one operation and note on the result how it came about.

    Parameters
    ----------
    op : Op
        A record of the rule book, or one of your own.
    inputs : tuple of Tensor, shapes as the op wants them
        What can be differentiated; tensors of several dtypes are brought to the common one by recorded
        casts.
    params : tuple
        The op's parameters, in the order of ``op.param_names``.

    Examples
    --------
    >>> import tinyattn as ta
    >>> from tinyattn.ops import REGISTRY
    >>> ta.apply(REGISTRY["sum"], (ta.tensor([[1.0, 2.0], [3.0, 4.0]]),), ((0,), False))
    tensor([4., 6.], shape=(2,))
    """
    if len(inputs) == 1 and not op.saves:
        return unary(op, inputs[0], params)
    dtype = inputs[0]._dtype
    if any([x._dtype is not dtype for x in inputs]):
        inputs = _one_dtype(inputs)
    requires, saved = op.differentiable and any([x.requires_grad for x in inputs]), None
    try:
        value = op.forward(*[x._value for x in inputs], *params)
        if op.saves:
            value, saved = value
    except Exception as error:
        raise explain.failed_call(op, inputs, params, error) from None
    left, right = inputs if len(inputs) == 2 else (inputs, None)
    node = _recorded(op, value, left, right, params, requires, 2)  # the caller may be the learner's own line
    if saved is not None and node.op is not None:
        node.saved = saved
    return node


def _recorded(op: ops.Op, value: Any, left: Any, right: Any, params: Any, requires: bool, up: int) -> Tensor:
    """A result with the note of how it came about: this is the one place where the graph grows."""
    node = Tensor()
    # Three at a time: Python makes a tuple of four and takes it apart again, which costs a twentieth of a node.
    node._value, node.op, node.params = value, op, params
    node._left, node._right, node.requires_grad = left, right, requires
    try:
        node._shape, node._dtype = value.shape, value.dtype
    except AttributeError:
        raise explain.no_array(op, value) from None
    node.notes, node.order = None, new_order()
    if switches.set:
        return _recorded_specially(node, _frame(2))
    if switches.nameless:
        node.code, node.lasti = None, -1
        return node
    # Note where in the learner's code this is: code object and offset, which cost next to nothing to keep.
    frame: Any = _frame(up)
    code = frame.f_code
    if code is not recent.outside:  # in a loop it is, which saves a third of finding the place
        try:
            while (place := place_of[code.co_filename]) is ENGINE:
                frame = frame.f_back
                code = frame.f_code
        except (KeyError, AttributeError):  # a file met for the first time, or no caller in Python
            note_place(node, _frame(2))
            return node
        if place is PACKAGE:
            node.site = outside_package(frame)
        else:
            recent.outside = code
    node.code, node.lasti = code, frame.f_lasti
    return node


def _recorded_specially(node: Tensor, frame: Any) -> Tensor:
    """What is rarer than a plain recorded operation: no_grad, scopes, detect_nan, rules being recorded."""
    if mode.rule_of is not None or switches.nameless:  # a recorded rule stands where its op stands
        node.code, node.lasti, node.site = None, -1, mode.rule_of
    else:
        note_place(node, frame)
    node.scope = mode.scope
    if mode.watch is not None:
        mode.watch(node)
    if not mode.recording:
        node.op, node._left, node._right, node.params, node.requires_grad = None, None, None, (), False
    return node


def _one_dtype(inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Bring operands of several dtypes to the common one, by recorded casts."""
    dtype = np.result_type(*(x.dtype for x in inputs))
    return tuple(x if x.dtype == dtype else apply(elementwise.cast, (x,), (dtype,)) for x in inputs)


# Imported last, because they need what is defined above.
from tinyattn.arguments import as_array, as_tensors, compared, constant, known_arguments, yes_or_no  # noqa: E402, I001
from tinyattn import autodiff, functions, numpy_protocol  # noqa: E402

tensor = known_arguments(tensor)

__all__ = ["Constant", "Tensor", "apply", "tensor"]
