"""How a tensor looks when it is printed: its numbers, its shape, its name, its gradient; and a graph in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tinyattn.tensor import Tensor


def gradient_state(x: Tensor) -> str:
    """The gradient in words: not needed (empty), not computed, zero, or there."""
    if not x.requires_grad:
        return ""
    grad = x._grad if isinstance(x._grad, np.ndarray) else None
    if grad is None:
        return "not computed"
    return "there" if grad.any() else "zero"


def tensor_text(x: Tensor) -> str:
    """The ``repr`` of a tensor."""
    start = "tensor("
    numbers = np.array2string(np.asarray(x.data), separator=", ", prefix=start, threshold=200, precision=8)
    facts = [f"shape={x.shape}"]
    if x.dtype != np.float64:
        facts.append(f"dtype={x.dtype}")
    if x.given_name:
        facts.append(f"name={x.given_name!r}")
    state = gradient_state(x)
    if x.op is not None and x.requires_grad:
        facts.append(f"made by {x.op.name}")
    elif state:
        facts.append(f"grad: {state}")
    return f"{start}{numbers}, {', '.join(facts)})"


class Pictured:
    """What a notebook shows as its drawing."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from tinyattn.notebook import graph_bundle

        return graph_bundle(self)


class Worded:
    """What a notebook shows as its text, with the columns kept."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from tinyattn.notebook import text_html

        return text_html(self)
