"""``detect_nan``: stop at the operation that *first makes* a nan or an infinity, going forward or backward.

Blaming the operation at which a nan is noticed is often wrong: in ``sqrt(sqrt(x - 2))`` the outer root passes on
what the inner one made.  So every result is compared with what went in: an op is to blame when an entry of its
result is not finite although nothing of that kind went in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinyattn import names
from tinyattn.errors import NanError, message
from tinyattn.mode import switched
from tinyattn.places import caller_variables
from tinyattn.tensor import Tensor


@contextmanager
def detect_nan() -> Iterator[None]:
    """Raise at the operation that first makes a nan or an infinity.

    Raises
    ------
    NanError
        With the op, the entry, the values that went in, the names and the source line.

    Examples
    --------
    >>> import tinyattn as ta
    >>> x = ta.tensor([4.0, 1.0], requires_grad=True)
    >>> with ta.detect_nan():
    ...     y = ta.sqrt(ta.sqrt(x - 2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tinyattn.errors.NanError: sqrt first made nan, at entry [1] of its result.
      ...
    """
    with np.errstate(all="ignore"), switched(watch=_watch_forward, watch_backward=_watch_backward):
        yield


def first_made(result: np.ndarray, inputs: list[np.ndarray], same_place: bool) -> tuple[int, ...] | None:
    """The first entry of a result that is nan or infinite by the op's own doing, None when there is none.

    With ``same_place`` an entry depends on the entries in its own place only; else on all of them.
    """
    for test in (np.isnan, np.isinf):
        made = test(result)
        if not made.any():
            continue
        for x in inputs:
            # A nan explains a nan and an infinity; an infinity explains only an infinity.
            source = np.isnan(x) if test is np.isnan else ~np.isfinite(x)
            made = made & ~(np.broadcast_to(source, result.shape) if same_place else source.any())
        if made.any():
            return tuple(int(i) for i in np.argwhere(made)[0])
    return None


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether entries of an input stand over entries of the result, as in entry-by-entry operations."""
    return len(shape) <= len(to) and all(size in (1, wide) for size, wide in zip(shape[::-1], to[::-1], strict=False))


def _watch_forward(node: Tensor) -> None:
    assert node.op is not None
    result = np.asarray(node.data)
    if result.dtype.kind != "f" or np.isfinite(result).all():
        return
    definition = node.op.definition_text(tuple(x.shape for x in node.inputs), node.params)
    entry_by_entry = definition.startswith("y[...]") and "sum_" not in definition
    entry = first_made(result, [np.asarray(x.data) for x in node.inputs], entry_by_entry)
    if entry is not None:
        what = f"{node.op.name} first made {_word(result[entry])}, at entry {list(entry)} of its result."
        raise _blame(node, what, _values(node, entry))


def _watch_backward(node: Tensor, slot: int, contribution: Any) -> None:
    assert node.op is not None
    array = contribution
    if not isinstance(array, np.ndarray):
        array = np.asarray(getattr(contribution, "data", contribution))
    if array.dtype.kind != "f" or np.isfinite(array).all() or not all(np.isfinite(x.data).all() for x in node.inputs):
        return
    entry = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
    x = node.inputs[slot]
    name = names.known_name(x, caller_variables(_caller()))
    made = f"the backward pass of {node.op.name} first made {_word(array[entry])}"
    why = f"There {name} is {x.data[entry]:.6g}: the slope of {node.op.name} is not finite at that point."
    raise _blame(node, f"{made}, at entry {list(entry)} of the gradient of {name}.", why)


def _caller() -> Any:
    import sys

    return sys._getframe(1)


def _word(value: Any) -> str:
    return "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"


def _values(node: Tensor, entry: tuple[int, ...]) -> str:
    """What went in: the entries in the same place where there are such, the inputs' ranges otherwise."""
    seen = caller_variables(_caller())
    parts = []
    for x in node.inputs:
        array, name = np.asarray(x.data), names.known_name(x, seen)
        if _broadcasts(array.shape, node.shape):
            parts.append(f"{name} = {np.broadcast_to(array, node.shape)[entry]:.6g}")
        else:
            least, largest = np.min(array, initial=np.inf), np.max(array, initial=-np.inf)
            parts.append(f"{name}: {array.shape} from {least:.6g} to {largest:.6g}")
    return f"There went in {', '.join(parts)}."


def _blame(node: Tensor, what: str, why: str) -> NanError:
    place = names.place_text(node)
    own = names.stored_target(node.code, node.lasti)
    where = f"The result is {own!r}, made at {place}." if own and place else f"It was made at {place}." if place else ""
    return NanError(message(what, why, where))
