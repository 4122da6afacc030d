"""What only moves numbers about: shapes, places, parts of an array, and writing into it; done on every part alike.

Knows nothing of adding or multiplying, and nothing of NumPy's protocols: those are in `arithmetic` and `protocols`.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Part = Any
Axes = int | tuple[int, ...] | None


class CannotRun(Exception):
    """A call that these numbers do not know; whoever replays a graph says so, and goes another way."""


class Shaped:
    """An array made of parts: its shape, its entries, and how they are written."""

    __slots__ = ("__weakref__", "_is_fixed", "_origin", "_views")
    state: tuple[str, ...]
    _is_fixed: bool
    _origin: tuple[Any, Any]
    _views: list[Any]

    # -- what a subclass says -------------------------------------------------------------------------------

    @property
    def parts(self) -> tuple[Part, ...]:
        """The ordinary arrays this one is made of; None stands for zeros."""
        raise NotImplementedError

    @property
    def data(self) -> np.ndarray:
        """The floats that decide comparisons."""
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype[Any]:
        """What rules see when they ask for the dtype."""
        return np.dtype(object)

    @classmethod
    def made_of(cls, *parts: Part) -> Any:
        """An array from its parts."""
        raise NotImplementedError

    @classmethod
    def lift(cls, x: Any) -> Any:
        """A plain array or number as an array of these numbers."""
        raise NotImplementedError

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Part:
        """A part that was left out because it is all zeros."""
        return np.zeros(shape)

    # -- shape ------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.parts[0].shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many entries there are."""
        return int(math.prod(self.shape))

    @property
    def T(self) -> Any:
        """All axes in reverse order."""
        return self.each(lambda p: p.T)

    @property
    def mT(self) -> Any:
        """The last two axes exchanged."""
        return self.each(lambda p: p.swapaxes(-1, -2))

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.data!r})"

    def each(self, function: Callable[[Part], Part]) -> Any:
        """The same move of numbers, done to every part."""
        parts = [None if p is None else np.asarray(function(p), dtype=p.dtype) for p in self.parts]
        new = self.made_of(*parts)
        return self.seen_by(new) if any(p is not None and p.base is not None for p in parts) else new

    @classmethod
    def joined(cls, function: Callable[[list[Part]], Part], pieces: Sequence[Any]) -> Any:
        """One array from several, part by part."""
        lifted = [cls.lift(x) for x in pieces]
        parts: list[Part] = []
        for column in zip(*(x.parts for x in lifted), strict=True):
            if all(p is None for p in column):
                parts.append(None)
            else:
                given = [cls.zeros(x.shape) if p is None else p for x, p in zip(lifted, column, strict=True)]
                parts.append(np.asarray(function(given), dtype=given[0].dtype))
        return cls.made_of(*parts)

    def reshape(self, *shape: Any) -> Any:
        """The same numbers in another shape."""
        return self.each(lambda p: p.reshape(*shape))

    def transpose(self, *axes: Any) -> Any:
        """The axes in another order."""
        return self.each(lambda p: p.transpose(*axes))

    def swapaxes(self, a: int, b: int) -> Any:
        """Two axes exchanged."""
        return self.each(lambda p: p.swapaxes(a, b))

    def squeeze(self, axis: Axes = None) -> Any:
        """Without axes of size 1."""
        return self.each(lambda p: p.squeeze(axis))

    def ravel(self) -> Any:
        """As one row."""
        return self.reshape(-1)

    flatten = ravel

    def copy(self) -> Any:
        """The same numbers in an array of their own."""
        new = object.__new__(type(self))
        for name in self.state:
            setattr(new, name, getattr(self, name))
        return new

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """These numbers have no precision to change."""
        return self.copy()

    def item(self) -> Any:
        """The one entry."""
        return self.reshape(())

    def __getitem__(self, key: Any) -> Any:
        part = self.each(lambda p: p[key])
        if getattr(part, "_is_fixed", False):
            part._origin = self, key
        return part

    # -- writing ------------------------------------------------------------------------------------------------
    # An array that is written into becomes another one: whoever was made from it before keeps what it was made from.

    def fixed(self) -> Any:
        """The same array, which must not be written into, because others hold it too."""
        self._is_fixed = True
        return self

    def seen_by(self, view: Any) -> Any:
        """Remember an array that would look into the memory of this one: it is of no use once this one is written."""
        if not hasattr(self, "_views"):
            self._views = []
        self._views.append(weakref.ref(view))
        return view.fixed()

    def become(self, other: Any) -> Any:
        """Take the numbers of another array, as an array does that is written into; a part of one writes through."""
        if other.shape != self.shape:
            raise CannotRun(f"writing {other.shape} into {self.shape}")
        other = other.astype(self.dtype)
        if hasattr(self, "_origin"):
            whole, key = self._origin
            whole[key] = other
        elif getattr(self, "_is_fixed", False):
            raise CannotRun("writing into an array that others see")
        self._spoil_views()
        for name in self.state:
            setattr(self, name, getattr(other, name))
        return self

    def _spoil_views(self) -> None:
        for reference in getattr(self, "_views", ()):
            view = reference()
            if view is not None:
                view._spoil_views()
                for name in view.state:
                    setattr(view, name, None)  # whoever asks it anything fails, and says that it cannot run
        self._views = []

    def written(self, write: Callable[[Part, Part], Any], value: Any) -> Any:
        """Write numbers into every part: ``write(part, part of the value)``."""

        def both(pair: list[Part]) -> Part:
            own = np.array(pair[0])
            write(own, pair[1])
            return own

        return self.become(self.joined(both, [self, value]))

    def __setitem__(self, key: Any, value: Any) -> None:
        def write(own: Part, part: Part) -> None:
            own[key] = part

        self.written(write, value)

    def fill(self, value: Any) -> None:
        """One number in every place."""
        self[...] = value


def plain_numbers(x: Any) -> Any:
    """The floats of a duck; anything else as it is."""
    return x.data if isinstance(x, Shaped) else x
