"""Record a function twice, on two sets of numbers, and make sure that both records say the same.

What comes out is a list of steps, forward and backward alike, because gradients inside the function are recorded as
any other operation.  Whatever differs between the two records was decided by numbers, by chance or by something
that changed meanwhile, and is refused by name.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tinyattn as ta
from tinyattn.compiled import watched
from tinyattn.compiled.expanding import EXPANDED
from tinyattn.compiled.surroundings import tensors_seen_by
from tinyattn.compiled.watched import Watched, WatchedWhole, raw
from tinyattn.errors import GraphError, message
from tinyattn.mode import mode, switched
from tinyattn.names import place_text, title
from tinyattn.ops import Op
from tinyattn.places import OUTSIDE, find_place
from tinyattn.tensor import Constant, Tensor, new_leaf, new_order, number_or_array

_one_at_a_time = allocate_lock()
_HERE = os.path.dirname(os.path.abspath(__file__))
_CALLERS = tuple(os.path.join(_HERE, name) for name in ("function.py", "program.py", "recording.py"))


class Step:
    """One recorded operation: what it was, what went in, and what came out.

    ``params`` holds a tensor in the place of an array of whole numbers or booleans that is one of the record's own.
    """

    __slots__ = ("hint", "inputs", "op", "params", "place", "result", "rule", "title")

    def __init__(self, op: Op, inputs: tuple[Tensor, ...], params: tuple[Any, ...], result: Tensor) -> None:
        self.op, self.inputs, self.params, self.result = op, inputs, params, result
        self.rule = mode.scope[:1] == ("backward",)
        self.title, self.hint, self.place = "", "", ""


class Record:
    """What one call of a function did.

    Attributes
    ----------
    arguments : list of Tensor
        Stand-ins of the tensors and arrays among the arguments.
    steps : list of Step
    result : Any
        What the function returned.
    slopes : dict of int to Tensor
        For a tensor by identity: whose cotangent it is a part of.
    """

    def __init__(self, arguments: list[Tensor], start: int, seen: Sequence[Tensor] = ()) -> None:
        self.arguments, self.start = arguments, start
        self.steps: list[Step] = []
        self.result: Any = None
        self.slopes: dict[int, Tensor] = {}
        self._kept: list[Any] = []  # so that an identity stays that of one object
        self._known: dict[int, Tensor] = {}
        self.outside: dict[int, tuple[Tensor, Tensor]] = {}
        self.inner: dict[int, Tensor] = {}  # tensors that the function makes of plain numbers
        self._read: list[Tensor] = []
        self._seen = {id(raw(x)): x for x in seen}
        self._orders: list[tuple[Tensor, int]] = []

    def stand_in(self, x: Tensor) -> Tensor:
        """A watched tensor in the place of one from outside, so that rules may ask how large its numbers are."""
        if isinstance(x, Watched):
            return x
        if id(x) not in self.outside:
            source = x if x.order <= self.start else self._seen.get(id(raw(x))) if type(x) is Tensor else None
            if source is None or raw(source) is not raw(x):
                return x  # made inside
            self._kept.append(x)
            self._orders.append((source, source.order))
            other = new_leaf(Watched if x.dtype.kind == "f" else WatchedWhole, raw(x), x.requires_grad)
            other.order = x.order
            self.outside[id(x)] = source, other  # the tensor itself, or for w.detach() the tensor w
        return self.outside[id(x)][1]

    def note(self, node: Tensor) -> None:
        """See a result as it is recorded: what `mode.watch` is for."""
        op: Any = node.op
        inputs = _give_inputs(node, [self.stand_in(x) for x in node.inputs])
        self.inner.update((id(x), x) for x in inputs if type(x) is Tensor)
        params = self._own(op, inputs, node.params)
        node.__class__ = WatchedWhole if raw(node).dtype.kind != "f" else Watched
        if raw(node).dtype.kind != "f":
            node.requires_grad = False
        op = EXPANDED.get(op.name, op)
        if op.name in ("where", "softmax") or op.composed is not None:
            node.params = params  # so that the rule's mask is known to be this one
        if op.composed is not None:
            # Copies, so that what one input owes another one is counted outside of this operation only.
            inputs = _give_inputs(node, [x * 1 if x.dtype.kind == "f" else x for x in inputs])
            plain = op.composed(*inputs, *params)
            node.op, node.order = op, new_order()  # it comes after them
            plain = plain if plain.dtype == raw(node).dtype else ta.astype(plain, raw(node).dtype)
            self.steps.append(Step(watched.DETACH, (plain,), (), node))
        else:
            self.steps.append(Step(op, inputs, params, node))

    def compared(self, compare: Any, x: Any, other: Any, result: Any) -> None:
        """See a comparison that is not recorded: what `mode.watch_comparison` is for."""
        if x.order <= self.start:  # `ta.leaky_relu(w)` compares as well as the learner's own line
            frame: Any = sys._getframe(1)
            while frame.f_back is not None and find_place(frame.f_code.co_filename) is not OUTSIDE:
                frame = frame.f_back
            watched.refuse_outside("comparison", frame)

    def pulled(self, node: Tensor, slot: int, contribution: Any) -> None:
        """See a vector-Jacobian product: what `mode.watch_backward` is for."""
        self._kept.append(contribution)
        self.slopes.setdefault(id(contribution), node.inputs[slot])

    def _own(self, op: Op, inputs: tuple[Tensor, ...], params: tuple[Any, ...]) -> tuple[Any, ...]:
        """Put tensors in the place of arrays that were read from them."""
        self._read += [x for x in watched.readings if not any(x is y for y in (*inputs, *self._read))]
        watched.readings.clear()
        return tuple([self._known_array(param) for param in params])

    def _known_array(self, param: Any) -> Any:
        """The tensor that an array was read from, or the array itself."""
        if isinstance(param, tuple):
            return tuple([self._known_array(part) for part in param])
        if not isinstance(param, np.ndarray):
            return param
        match = next((x for x in self._read if _same_numbers(param, raw(x))), None)
        if match is not None:
            self._read = [x for x in self._read if x is not match]
            self._kept.append(param)
            same = raw(match).size != param.size or match.shape == param.shape
            self._known[id(param)] = match if same else ta.reshape(match, param.shape)
        return self._known.get(id(param), param)

    def finish(self) -> None:
        """Refuse what the function did that no program can repeat, and drop the steps that no result needs."""
        if left := [*self._read, *watched.readings]:
            raise reads_numbers(left[0])
        for x in self.inner.values():
            if x.code is None:  # `ta.tensor` notes where it is called, detach does not
                raise detached_outside(x)
        for x, order in self._orders:
            if x.order != order:
                raise changed_outside(x)
        needed = {id(x) for x in tensors_in(self.result)}
        kept = []
        for step in reversed(self.steps):
            if id(step.result) in needed:
                needed.update(id(x) for x in (*step.inputs, *tensors_in(step.params)))
                kept.append(step)
        self.steps = kept[::-1]


def _give_inputs(node: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    """Let a node come from other tensors of the same numbers."""
    node._left, node._right = inputs if len(inputs) == 2 else (inputs[0] if len(inputs) == 1 else tuple(inputs), None)
    return tuple(inputs)


def detached_outside(x: Tensor) -> GraphError:
    """Say that the numbers of a tensor from outside came in without the tensor."""
    return GraphError(
        message(
            f"compile: the function uses the numbers of a tensor from outside without the tensor"
            f"{' at ' + place_text(x) if place_text(x) else ''}.",
            "w.detach() of such a tensor gives the numbers of now, and the program would keep them for ever.",
            "Give the tensor as an argument; detach() of an argument is part of the program.",
        )
    )


def changed_outside(x: Tensor) -> GraphError:
    """Say that the function assigns a tensor from outside."""
    return GraphError(
        message(
            f"compile: the function changes {place_text(x) or 'a tensor from outside'} by assign.",
            "A program computes results; what else a function does would happen once, while it is recorded.",
            "Return the new numbers, and assign them outside.",
        )
    )


def reads_numbers(x: Tensor) -> GraphError:
    """Say that the function takes numbers out of a tensor in a way that no program can repeat."""
    whose = f"what was made at {place_text(x)}" if place_text(x) else "an argument"
    return GraphError(
        message(
            f"compile: the numbers of {whose} are made something else of.",
            "A program can use whole numbers and masks as they are given: as indices, masks and targets.",
            "Make of them outside what is needed (a joined mask, a one-hot array), and give that as an argument.",
        )
    )


def _same_numbers(param: np.ndarray, value: Any) -> bool:
    """Whether an array is another one, perhaps in another shape or spread over more axes."""
    value = np.asarray(value)
    if (param.dtype.kind == "b") != (value.dtype.kind == "b"):
        return False
    if param.size == value.size:
        return np.array_equal(param.ravel(), value.ravel())
    try:
        return np.array_equal(param, np.broadcast_to(value, param.shape))
    except ValueError:
        return False


def record(f: Callable[..., Any], arrays: Sequence[Any], call: Callable[[list[Tensor], Record], Any]) -> Record:
    """Call a function on stand-ins for its arrays, and list what it does.

    Parameters
    ----------
    f : callable
        What ``call`` calls.
    arrays : sequence of array
    call : callable
        Takes the stand-ins and the record, and gives the result of the function.
    """
    leaves = [_stand_in(array) for array in arrays]
    start = max((x.order for x in leaves), default=new_order())
    found = Record(leaves, start, tensors_seen_by(f))
    watched.readings.clear()
    watchers = {"watch": found.note, "watch_backward": found.pulled, "watch_comparison": found.compared}
    with switched(**watchers, recording=True), np.errstate(all="ignore"):
        found.result = call(leaves, found)
    found.finish()
    return found


def _stand_in(array: Any) -> Tensor:
    number = array.dtype.kind == "f"
    leaf = new_leaf(Watched if number else WatchedWhole, number_or_array(np.array(array)), False)
    leaf.requires_grad = number
    return leaf


def other_numbers(array: Any, rng: np.random.Generator) -> Any:
    """Numbers of the same kind, sign and range, for a second record."""
    array = np.asarray(array)
    if array.dtype.kind == "f":
        return (array * rng.uniform(0.5, 1.5, array.shape)).astype(array.dtype)
    if array.dtype.kind == "b":
        return rng.random(array.shape) < 0.5
    if array.size == 0:
        return array
    low, high = int(array.min()), int(array.max())
    if low == high:  # another number, too, so that it is not taken for a constant
        return np.full_like(array, high + 1 if high < 1 else high - 1)
    return rng.integers(low, high, array.shape, endpoint=True).astype(array.dtype)


def record_checked(f: Callable[..., Any], arrays: Sequence[Any], call: Any, twice: bool) -> Record:
    """Record on the numbers given and, if wanted, again on others; refuse what differs."""
    with _one_at_a_time:
        first = record(f, arrays, call)
        if twice:
            rng = np.random.default_rng(0)
            second = _record_again(f, [other_numbers(array, rng) for array in arrays], call)
            again = next((x for at, x in second.inner.items() if at in first.inner), None)
            if again is not None:  # what is made inside is another tensor each time; this one was assigned
                raise changed_outside(again)
            _compare(first, second, getattr(f, "__name__", "the function"))
    return first


def _record_again(f: Callable[..., Any], arrays: Sequence[Any], call: Any) -> Record:
    try:
        return record(f, arrays, call)
    except Exception as error:
        name, why = getattr(f, "__name__", "the function"), str(error).split("\n")[0]
        raise _differs(name, f"fails on other numbers ({why})", "") from error


def tensors_in(result: Any) -> list[Tensor]:
    """The tensors of a result, in order, also inside lists, tuples and dictionaries."""
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [x for part in result for x in tensors_in(part)]
    if isinstance(result, dict):
        return [x for part in result.values() for x in tensors_in(part)]
    return []


def _compare(first: Record, second: Record, name: str) -> None:
    """Refuse what differs between two records of one function."""
    if len(first.steps) != len(second.steps):
        raise _differs(name, "does another number of operations", "")
    places = {id(x): -1 - n for n, x in enumerate(first.arguments)}
    others = {id(x): -1 - n for n, x in enumerate(second.arguments)}
    for number, (one, two) in enumerate(zip(first.steps, second.steps, strict=True)):
        how = _difference(one, two, places, others, first.start)
        if how:
            raise _differs(name, how, place_text(one.result))
        places[id(one.result)] = others[id(two.result)] = number
    ends = [[_end(x, table) for x in tensors_in(found.result)] for found, table in ((first, places), (second, others))]
    if ends[0] != ends[1]:
        raise _differs(name, "returns other things", "")


def _difference(one: Step, two: Step, places: dict[int, int], others: dict[int, int], start: int) -> str:
    """What two steps do differently, in words; nothing where they are the same."""
    if one.op.name != two.op.name or len(one.inputs) != len(two.inputs):
        return f"does {one.op.name} once and {two.op.name} the other time"
    if one.result.shape != two.result.shape:
        return f"gives {one.op.name} another shape"
    for x, y in zip(one.inputs, two.inputs, strict=True):
        if not _same_operand(x, y, places, others, start):
            return f"gives {one.op.name} other constants"
    return "" if _same(one.params, two.params, places, others) else f"gives {one.op.name} other settings"


def _end(x: Tensor, places: dict[int, int]) -> Any:
    return places.get(id(x), (x.shape, np.asarray(raw(x)).tobytes()))


def _same_operand(x: Tensor, y: Tensor, places: dict[int, int], others: dict[int, int], start: int) -> bool:
    if id(x) in places or id(y) in others:
        return places.get(id(x)) == others.get(id(y))
    return _same_constant(x, y, start)


def _same_constant(x: Tensor, y: Tensor, start: int) -> bool:
    """Whether two constants are the same; one from outside the function is the very same tensor."""
    if x.order <= start or y.order <= start:
        return raw(x) is raw(y)
    return _same_array(raw(x), raw(y))


def _same_array(a: Any, b: Any) -> bool:
    return a is b or (a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes())


def _same(a: Any, b: Any, places: dict[int, int], others: dict[int, int]) -> bool:
    if a is b and not isinstance(a, Tensor):
        return True
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return places.get(id(a)) == others.get(id(b))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y, places, others) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return _same_array(a, b)
    return type(a) is type(b) and bool(a == b or (a != a and b != b))


def _differs(name: str, how: str, where: str) -> GraphError:
    return GraphError(
        message(
            f"compile: {name}, recorded twice, {how}" + (f" at {where}." if where else "."),
            "Something was decided by the numbers, by chance (dropout), or by what changed between two calls; "
            "a program that is recorded once would repeat one of them for ever.",
            "Give what changes as an argument (a mask for dropout), choose with ta.where, or do not compile this.",
        )
    )


def name_steps(found: Record, given: dict[int, str]) -> None:
    """Give each step the learner's word for its result; the cotangent of ``Q`` is ``d_Q``."""
    words: dict[int, str] = dict(given)
    words.update((id(other), given[id(x)]) for x, other in found.outside.values() if id(x) in given)
    targets = dict(found.slopes)
    for step in found.steps:
        result = step.result
        if id(result) not in targets and step.op.name == "add":  # contributions to one cotangent are added up
            parts = [targets.get(id(x)) for x in step.inputs]
            if parts[0] is not None and parts[0] is parts[1]:
                targets[id(result)] = parts[0]
        target = targets.get(id(result))
        step.rule = step.rule or target is not None
        if target is not None and id(target) in words:
            step.title = f"d_{words[id(target)]}"
        elif target is not None:
            step.hint = f"d_{target.op.name}" if target.op is not None else "d_given"
        elif not step.rule:
            word, own = title(result, {})
            made_here = result.code is not None and result.code.co_filename.startswith(_CALLERS)
            step.title = word if own and not made_here else ""
        same = _same_but_for_one(step)
        if step.title or id(same) in words:
            words[id(result)] = step.title or words[id(same)]
        step.place = place_text(result)


def _same_but_for_one(step: Step) -> Tensor | None:
    """What is multiplied by 1: that is how a transform marks what it differentiates."""
    if step.op.name != "multiply" or type(step.inputs[1]) is not Constant:
        return None
    x, one = step.inputs
    return x if raw(one).shape == () and raw(one) == 1 else None
