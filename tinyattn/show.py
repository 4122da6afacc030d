"""How a tensor looks when it is printed: its numbers, its shape, its name, the state of its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
