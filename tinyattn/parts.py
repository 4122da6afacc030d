"""A batch in parts: one graph for each part, each in a thread of its own where there are cores.

Two graphs at once keep two cores busy with everything that a step does, not with its matrix products only.
Stands on `autodiff`; the threads are those of `tinyattn.kernels.threads`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyattn.arguments import function_given, known_arguments, values_of
from tinyattn.autodiff import propagate, seed_for
from tinyattn.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from tinyattn.kernels.allocator import warm
from tinyattn.kernels.small import owned
from tinyattn.kernels.threads import run
from tinyattn.mode import mode, switched
from tinyattn.tensor import Tensor, new_leaf, tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@known_arguments
def backward_in_parts(
    loss_of: Callable[..., Tensor], *batch: ArrayLike | Tensor, parts: int = 2, reduction: str = "mean"
) -> Tensor:
    """Compute ``loss_of(*batch).backward()`` part by part of the batch, on all cores.

    The gradients of all parts are added to the same leaves, in the order of the parts, so that the result does not
    depend on how many cores there are: only ``parts`` matters, and that in the last bits.  On two cores a step of a
    Transformer takes about two thirds of the time.

    Parameters
    ----------
    loss_of : callable
        ``loss_of(*part)`` gives the loss of a part of the batch, one number as a tensor.  It is called once for each
        part, perhaps at the same time, so it must change nothing and draw no random numbers.
    *batch : array_like or Tensor, shape (B, ...)
        All with the same number of examples; each is cut along its first axis.  A leaf that requires a gradient gets
        its own.
    parts : int from 1
        How many; where possible as many as there are cores.
    reduction : "mean" or "sum"
        How the loss of a batch comes from those of its examples: with "mean" a part counts by its number of examples.

    Returns
    -------
    Tensor
        The loss of the whole batch, as a constant.

    Raises
    ------
    ShapeError
        When the batch is empty, or its members have different numbers of examples.
    GraphError
        When there is nothing to differentiate.  No gradient has been touched then.

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> model = ta.nn.Linear(2, 1, rng=0)
    >>> x, y = np.ones((6, 2)), np.zeros((6, 1))
    >>> loss = backward_in_parts(lambda x, y: ta.mse(model(x), y), x, y)
    >>> model.W.grad.shape, loss.requires_grad
    ((2, 1), False)
    """
    if reduction not in ("mean", "sum"):
        raise ArgumentError(f"backward_in_parts: reduction={reduction!r} must be 'mean' or 'sum'.")
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1:
        raise ArgumentError(f"backward_in_parts: parts={parts!r} must be a whole number from 1.")
    function_given(loss_of, "backward_in_parts", "loss_of", "Write lambda x, y: ta.mse(model(x), y).")
    size = _examples(batch)
    parts = min(parts, size)
    cuts = [slice(size * i // parts, size * (i + 1) // parts) for i in range(parts)]
    work = [_Part(batch, cut, (cut.stop - cut.start) / size if reduction == "mean" else 1.0) for cut in cuts
            if cut.stop > cut.start]  # fmt: skip
    warm()
    settings = {name: getattr(mode, name) for name in ("scope", "watch", "watch_backward")}
    special = any(settings.values())

    def one(part: _Part) -> None:
        with _as_outside(settings) if special else nullcontext():
            part.compute(loss_of)

    run(one, work)
    for x, g in _sums(work, size):
        x.own_notes().grad = g if x.grad is None else np.add(x.grad, g)
    return tensor(sum(part.loss * part.loss.dtype.type(part.weight) for part in work))


def _as_outside(settings: dict[str, Any]) -> AbstractContextManager[None]:
    """Scopes and watchers are those of the thread that asked."""
    return switched(**settings)


def _examples(batch: tuple[Any, ...]) -> int:
    """How many examples a batch has."""
    shapes = [np.shape(values_of(x)) for x in batch]
    sizes = {shape[0] if shape else 0 for shape in shapes}
    if len(sizes) != 1 or 0 in sizes:
        raise ShapeError(
            message(
                f"backward_in_parts: the batch has the shapes {', '.join(map(str, shapes)) or 'of nothing'}.",
                "It is cut along the first axis, which must have the same length everywhere, and at least 1.",
                "Write what all examples share inside loss_of.",
            )
        )
    return int(sizes.pop())


class _Part:
    """Some examples, and what came out for them."""

    def __init__(self, batch: tuple[Any, ...], cut: slice, weight: float) -> None:
        self.cut, self.weight = cut, weight
        self.leaves: dict[Tensor, Tensor] = {}  # one of the batch -> that of this part
        self.members = [self._member(x) for x in batch]
        self.loss: Any = None
        self.found: dict[Tensor, Any] = {}

    def _member(self, x: Any) -> Any:
        if not isinstance(x, Tensor):
            return np.asarray(x)[self.cut]
        part = new_leaf(Tensor, values_of(x)[self.cut], x.requires_grad)  # a view: no copy of the batch is made
        part.given_name = x.name
        if not x.requires_grad:
            return part
        if not x.is_leaf:
            raise ArgumentError(
                message(
                    "backward_in_parts: a member of the batch is a result, not a leaf.",
                    "Each part has a graph of its own, which begins at its part of the batch.",
                    "Compute it inside loss_of.",
                )
            )
        self.leaves[x] = part
        return part

    def compute(self, loss_of: Callable[..., Tensor]) -> None:
        """Forward and backward; the graph is gone when this ends."""
        loss = loss_of(*self.members)
        if not isinstance(loss, Tensor) or loss.size != 1:
            what = f"a tensor of shape {loss.shape}" if isinstance(loss, Tensor) else type(loss).__name__
            raise ArgumentTypeError(f"backward_in_parts: loss_of gave {what}; one number as a tensor is needed.")
        self.loss = loss.data
        self.found = propagate([(loss, seed_for(loss, None, "backward_in_parts") * loss.dtype.type(self.weight))])


def _sums(work: list[_Part], size: int) -> Iterator[tuple[Tensor, Any]]:
    """Every leaf with its gradient: the parts added up in their order, or put together along the batch."""
    own = {leaf for part in work for leaf in part.leaves.values()}
    shared = {x: None for part in work for x in part.found if x not in own and x.op is None}
    for x in shared:
        found = [part.found.pop(x) for part in work if x in part.found]
        total = found.pop(0)
        total = owned(total)
        for g in found:
            total += g
        yield x, total
    for x in work[0].leaves:
        total = np.empty(x.shape, x.dtype)  # every example is in one of the parts
        for part in work:
            total[part.cut] = part.found.get(part.leaves[x], 0)
        yield x, total
