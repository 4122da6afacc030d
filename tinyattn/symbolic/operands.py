"""What a definition may mention, taken from one call: the inputs by name, whole-number arrays, scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def operands_of(op: Any, inputs: Sequence[Array], params: Mapping[str, Any]) -> dict[str, Array]:
    """Give every array that the definition of a call may mention, by the name it has there.

    Parameters
    ----------
    op : Op
        The operation; only its names are read.
    inputs : sequence of array
        The values of the inputs, by slot.
    params : mapping of name to anything
        The parameters of the call; those that are not numbers are left out.
    """
    named = dict(zip(op.names_of(len(inputs)), map(np.asarray, inputs), strict=True))
    return named | array_parameters(params, tuple(inputs[0].shape) if len(inputs) else ())


def array_parameters(
    params: Mapping[str, Any], shape: tuple[int, ...], wanted: frozenset[str] | None = None
) -> dict[str, Array]:
    """Give the numeric parameters as arrays, all or the wanted ones; a NumPy key also gives `index` and `position`.

    `index` is the one whole-number array of the key, `index0`, `index1`, ... are several; `position` is the flat place
    of every entry that the key reads (in an array of the parameter `shape`, where the call has one, else of the first
    input).
    """
    found = {
        name: np.asarray(value)
        for name, value in params.items()
        if (wanted is None or name in wanted) and is_numeric(value)
    }
    if "key" in params:
        key, shape = params["key"], tuple(params.get("shape", shape))
        parts = list(key) if isinstance(key, tuple) else [key]
        at = [place for place, part in enumerate(parts) if isinstance(part, np.ndarray)]
        for number, place in enumerate(at):
            name = "index" if len(at) == 1 else f"index{number}"
            found[name] = np.where(parts[place] < 0, parts[place] + _length(parts, place, shape), parts[place])
        if at:
            found["position"] = np.asarray(np.arange(int(np.prod(shape))).reshape(shape)[key])
    return found


def is_numeric(value: Any) -> bool:
    """Say whether a parameter is a number or an array of numbers (and not axis=None or a name)."""
    if value is None or isinstance(value, (str, slice, np.dtype, type)) or value is Ellipsis:
        return False
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:
        return False


def _length(parts: Sequence[Any], at: int, shape: tuple[int, ...]) -> int:
    """Give the length of the axis that the array at some place of a key indexes."""
    dots = next((place for place, part in enumerate(parts) if part is Ellipsis), len(parts))
    if at < dots:
        return shape[sum(part is not None for part in parts[:at])]
    return shape[len(shape) - sum(part is not None for part in parts[at:])]
