"""Sequential: parts one after the other.  A model whose parts need more than one input says so in a `Module`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tinyattn.errors import ArgumentError, ArgumentTypeError, IndexRangeError, message
from tinyattn.nn.module import Module
from tinyattn.tensor import Tensor

if TYPE_CHECKING:
    from tinyattn.arguments import TensorLike

Part = Callable[..., Tensor]


class Sequential(Module):
    """Parts one after the other: each gets what the one before it gave.

    Parameters
    ----------
    *parts : Module or callable
        What has parameters is a module; a function such as ``ta.relu`` stands among them as it is.

    Attributes
    ----------
    parts : list

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> model = ta.nn.Sequential(ta.nn.Linear(4, 3, rng=0), ta.relu, ta.nn.Linear(3, 2, rng=1))
    >>> model(np.ones((5, 4))).shape
    (5, 2)
    >>> [name for name, _ in model.named_parameters()]
    ['parts.0.W', 'parts.0.b', 'parts.2.W', 'parts.2.b']
    >>> model
    Sequential(Linear, relu, Linear
      parts.0: Linear(4, 3)
      parts.2: Linear(3, 2)
    )
    """

    def __init__(self, *parts: Part) -> None:
        for place, part in enumerate(parts):
            if not callable(part) or isinstance(part, type):
                raise _no_part(part, place)
        if not parts:
            raise ArgumentError("Sequential: there is no part; at least one module or function is needed.")
        self.parts = list(parts)

    def forward(self, x: TensorLike) -> Tensor:
        """Go through the parts.

        Parameters
        ----------
        x : Tensor, of a shape that the first part takes

        Returns
        -------
        Tensor, of the shape that the last part gives
        """
        first, *others = self.parts
        x = first(x)
        for part in others:
            x = part(x)
        return x

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, place: int | slice) -> Part:
        """One part by its number; of a slice a Sequential of the same parts."""
        try:
            found = self.parts[place]
        except (IndexError, TypeError):
            raise IndexRangeError(f"Sequential: there is no part {place!r} among {len(self.parts)}.") from None
        return Sequential(*found) if isinstance(found, list) else found

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    def sizes(self) -> str:
        """The parts by their kinds."""
        return ", ".join(getattr(part, "__name__", type(part).__name__) for part in self.parts)


def _no_part(part: object, place: int) -> Exception:
    """Something that cannot be called, or a class where a module is meant."""
    if isinstance(part, type):
        what = f"Sequential: part {place} is the class {part.__name__}, not a module of it."
        return ArgumentTypeError(message(what, "", f"Write {part.__name__}(...), with its sizes."))
    what = f"Sequential: part {place} is a {type(part).__name__}, which cannot be called."
    instead = "Write Sequential(*parts)." if isinstance(part, (list, tuple)) else "Give a module, or a function."
    return ArgumentTypeError(message(what, "Each part is called with what the one before it gave.", instead))
