"""What a wrong rule is looked at with: its numbers, the right ones, and the Jacobian of the forward by differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.check.blame import Fault

LARGEST = 20_000  # entries of a Jacobian that is still computed


class Mistake:
    """A known mistake.

    Attributes
    ----------
    name : str
        Short, the same each time: "sign", "transposed", ...
    text : str
        What it means here, and what to write.
    """

    __slots__ = ("name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    def __repr__(self) -> str:
        return f"Mistake({self.name!r})"


class Scene:
    """Everything a candidate may look at.

    Attributes
    ----------
    x, y, g : ndarray
        The input that the rule is wrong for, the result, the cotangent.
    got, want : ndarray
        What the rule gave and what it should have.
    jacobian : ndarray, shape (y.size, x.size), or None when it would be too large
    """

    def __init__(self, fault: Fault, graph: Any) -> None:
        node = fault.node
        self.fault, self.node, self.op, self.slot = fault, node, node.op, fault.slot
        self.inputs = [_wide(graph.nodes[source].value) for source in node.inputs]
        self.params = dict(node.params)
        self.x, self.y, self.g = self.inputs[fault.slot], _wide(node.value), _wide(fault.g)
        self.got = _wide(fault.got) if fault.got is not None else None
        self.jacobian = self.jacobian_of(self.inputs, self.params)
        if self.jacobian is not None and np.isfinite(self.jacobian).all():
            self.want = (self.g.ravel() @ self.jacobian).reshape(self.x.shape)
        else:
            self.jacobian = None
            self.want = fault.want if fault.want is not None else np.full(self.x.shape, np.nan)

    def forward(self, inputs: list[Any], params: dict[str, Any]) -> np.ndarray:
        """The forward on other inputs or parameters."""
        result = self.op.forward(*[x[()] if x.shape == () else x for x in inputs], *params.values())
        return np.asarray(result[0] if self.op.saves else result, dtype=np.float64)

    def jacobian_of(self, inputs: list[Any], params: dict[str, Any], slot: int | None = None) -> Any:
        """All derivatives by one input, by differences; None where that is too much or does not work."""
        slot = self.slot if slot is None else slot
        x = inputs[slot]
        try:
            with np.errstate(all="ignore"):
                if x.size == 0 or x.size * self.forward(inputs, params).size > LARGEST:
                    return None
                columns = []
                for place in np.ndindex(*x.shape):
                    columns.append(self._column(inputs, params, slot, place))
        except Exception:
            return None
        return np.stack(columns, axis=-1)

    def _column(self, inputs: list[Any], params: dict[str, Any], slot: int, place: tuple[int, ...]) -> np.ndarray:
        def moved(by: float) -> np.ndarray:
            changed = list(inputs)
            changed[slot] = inputs[slot].copy()
            changed[slot][place] += by
            return self.forward(changed, params).ravel()

        step = 1e-3 * min(max(abs(float(inputs[slot][place])), 1e-3), 1.0)
        near, far = moved(step) - moved(-step), moved(2 * step) - moved(-2 * step)
        return np.asarray((8 * near - far) / (12 * step))

    def same(self, candidate: Any, scale: float = 1.0) -> bool:
        """Whether a candidate gives the numbers of the wrong rule, and is not simply right."""
        got = self.got
        candidate = np.asarray(candidate, dtype=np.float64)
        if got is None or candidate.shape != got.shape or not np.isfinite(candidate).all():
            return False
        size = max(float(np.abs(candidate).max(initial=0.0)), float(np.abs(got).max(initial=0.0)))
        if not np.abs(candidate - got).max(initial=0.0) <= 2e-7 * size:
            return False
        return candidate.shape != self.want.shape or not np.abs(candidate - self.want).max(initial=0.0) <= 1e-9 * size


def _wide(x: Any) -> np.ndarray:
    array = np.asarray(x)
    return array.astype(np.float64) if array.dtype.kind == "f" else array
