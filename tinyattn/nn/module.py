"""Module: parameters under the names of attributes, and a `forward` that runs inside a scope of that name.

Nothing needs to be registered: what is looked for is found by walking the attributes, and lists, tuples and
dictionaries among them.  Written on public tensor operations only.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Mapping
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from tinyattn.arguments import (
    argument_names,
    as_array,
    known_arguments,
    known_to_start,
    refuse_unknown,
    takes_any,
    yes_or_no,
)
from tinyattn.errors import ArgumentError, ArgumentTypeError, ShapeError, listed, message
from tinyattn.mode import scope
from tinyattn.names import describe, stored_target
from tinyattn.places import outside_package
from tinyattn.tensor import Tensor
from tinyattn.terminal import table

Self = TypeVar("Self", bound="Module")


class Module:
    """A part of a model: it owns parameters, and `forward` says what it computes from them.

    A leaf tensor with gradient that is stored in an attribute is a parameter, a module that is stored in an
    attribute is a part.  The attribute's name is what drawings, `state_dict` and `summary` call it.

    Attributes
    ----------
    training : bool
        True while learning.  What behaves otherwise then, such as dropout, looks here; see `train`, `eval`.

    Examples
    --------
    >>> import tinyattn as ta
    >>> class Scale(ta.nn.Module):
    ...     def __init__(self):
    ...         self.factor = ta.tensor(3.0, requires_grad=True)
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> scale = Scale()
    >>> y = scale([1.0, 2.0])
    >>> y
    tensor([3., 6.], shape=(2,), made by multiply)
    >>> y.scope
    ('Scale',)
    >>> scale.named_parameters()
    [('factor', tensor(3., shape=(), name='factor', grad: not computed))]
    """

    training: bool = True
    _scope_name: str = ""
    _arguments: tuple[str, ...] = ()

    def __init_subclass__(cls, passes_on_to: type[Module] | None = None, **options: Any) -> None:
        """Let the class answer, when it is made, keywords that it does not have, with the names that it has."""
        super().__init_subclass__(**options)
        start = vars(cls).get("__init__")
        if isinstance(start, FunctionType):
            more = () if passes_on_to is None else passes_on_to._arguments
            cls._arguments = tuple(dict.fromkeys(argument_names(start) + more))
            if passes_on_to is not None or not takes_any(start):
                cls.__init__ = known_to_start(start, cls._arguments, cls.__name__)  # type: ignore[method-assign]

    def __setattr__(self, name: str, value: Any) -> None:
        for path, part in _parts(name, value, "[{}]"):
            if isinstance(part, Module):
                if not part._scope_name:
                    object.__setattr__(part, "_scope_name", path)
            elif part.requires_grad and part.given_name is None:
                part.given_name = path
        object.__setattr__(self, name, value)

    if not TYPE_CHECKING:  # type checkers shall still see a misspelt attribute

        def __getattr__(self, name: str) -> NoReturn:
            """Say of an attribute that is not there, such as PyTorch's ``weight``, what there is instead."""
            own = [] if name.startswith("__") else [path for path, _ in Module._own_parts(self)]
            from tinyattn.elsewhere import no_attribute

            raise AttributeError(no_attribute(type(self).__name__, name, own), name=name, obj=self)

    @property
    def scope_name(self) -> str:
        """What drawings call it: the attribute it is stored in, or its class when it is in none."""
        return self._scope_name or type(self).__name__

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; each kind of module says how."""
        raise ArgumentTypeError(
            message(
                f"{type(self).__name__} has no forward.",
                "A module says in its method forward what it computes.",
                "Write def forward(self, x): ... in the class.",
            )
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` inside the module's scope; ``Q = layer(x)`` calls the result Q."""
        known = _known_to(getattr(self.forward, "__func__", None)) if kwargs else None
        if known is not None and not known[0].issuperset(kwargs):
            refuse_unknown(type(self).__name__, kwargs, known[1])  # such as PyTorch's attn_mask
        with scope(self.scope_name):
            result = self.forward(*args, **kwargs)
        if isinstance(result, Tensor) and result.op is not None and not any(result is x for x in args):
            _name_after_caller(result, sys._getframe(1))
        return result

    # -- parts and parameters -------------------------------------------------------------------------------

    def named_modules(self) -> list[tuple[str, Module]]:
        """List the module itself, under the name "", and then every part of it, each once, with its name."""
        found: dict[int, tuple[str, Module]] = {}

        def collect(name: str, module: Module) -> None:
            found[id(module)] = (name, module)
            for path, part in module._own_parts():
                if isinstance(part, Module) and id(part) not in found:
                    collect(f"{name}.{path}" if name else path, part)

        collect("", self)
        return list(found.values())

    def _own_parts(self) -> Iterator[tuple[str, Module | Tensor]]:
        for name, value in vars(self).items():
            yield from _parts(name, value, ".{}")

    def _named_leaves(self) -> dict[str, Tensor]:
        """Every leaf tensor with gradient, each once, the parts in the order in which they were stored."""
        found: dict[str, Tensor] = {}
        seen: set[int] = set()

        def collect(prefix: str, module: Module) -> None:
            seen.add(id(module))
            for path, part in module._own_parts():
                if id(part) in seen:
                    continue
                if isinstance(part, Module):
                    collect(f"{prefix}{path}.", part)
                elif part.is_leaf:
                    if prefix + path in found:
                        raise ArgumentError(_same_name(prefix + path, type(self).__name__))
                    seen.add(id(part))
                    found[prefix + path] = part

        collect("", self)
        return found

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        """What can be learned, as pairs of name and tensor; a shared tensor comes once.

        Examples
        --------
        >>> import tinyattn as ta
        >>> [name for name, _ in ta.nn.SelfAttention(2, rng=0).named_parameters()]
        ['W_q', 'W_k', 'W_v']
        """
        return [(name, leaf) for name, leaf in self._named_leaves().items() if leaf.requires_grad]

    def parameters(self) -> list[Tensor]:
        """What can be learned, for an optimiser.  A list, so it can be gone through more than once."""
        return [leaf for _, leaf in self.named_parameters()]

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for leaf in self.parameters():
            leaf.zero_grad()

    def train(self: Self, mode: bool = True) -> Self:
        """Say that learning is going on, here and in every part."""
        mode = yes_or_no(mode, "Module.train", "mode")
        for _, module in self.named_modules():
            module.training = mode
        return self

    def astype(self: Self, dtype: Any) -> Self:
        """Give every leaf its numbers in another floating-point type, in place; float32 takes half the time.

        Do this before an optimiser is made: it keeps arrays of the type that it found.

        Examples
        --------
        >>> import numpy as np, tinyattn as ta
        >>> ta.nn.Linear(2, 1, rng=0).astype(np.float32)([[1.0, 2.0]]).dtype
        dtype('float64')
        >>> ta.nn.Linear(2, 1, rng=0).astype(np.float32)(np.float32([[1.0, 2.0]])).dtype
        dtype('float32')
        """
        try:
            target = np.dtype(dtype)
        except (TypeError, ValueError):
            raise ArgumentTypeError(f"astype: {dtype!r} must be float32 or float64.") from None
        if target not in (np.float32, np.float64):
            raise ArgumentTypeError(f"astype: {target} must be float32 or float64.")
        for leaf in self._named_leaves().values():
            leaf.exchange(leaf.numpy().astype(target))
            leaf.zero_grad()
        return self

    def eval(self: Self) -> Self:
        """Say that learning is over, here and in every part."""
        return self.train(False)

    # -- keeping and bringing back --------------------------------------------------------------------------

    def state_dict(self) -> dict[str, np.ndarray]:
        """Copy the numbers of every leaf tensor, learned or not, by name.

        Examples
        --------
        >>> import tinyattn as ta
        >>> {name: array.shape for name, array in ta.nn.Linear(2, 3, rng=0).state_dict().items()}
        {'W': (2, 3), 'b': (3,)}
        """
        return {name: leaf.numpy() for name, leaf in self._named_leaves().items()}

    @known_arguments
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take numbers from a mapping as `state_dict` gives it; all of them, or after an error none.

        Parameters
        ----------
        state : mapping from str to array_like
            Exactly the names of this model, each with the shape that it has here.

        Raises
        ------
        ArgumentError
            A name is missing, or there is one that the model does not know.
        ShapeError
            A shape is another one.
        """
        if not isinstance(state, Mapping):
            raise ArgumentTypeError(
                message(
                    f"load_state_dict: a {type(state).__name__}; a mapping from names to arrays is needed.",
                    "It is what state_dict() gives.",
                    "For a file write ta.weights.load(model, path).",
                )
            )
        leaves = self._named_leaves()
        missing, foreign = [n for n in leaves if n not in state], [n for n in state if n not in leaves]
        if missing or foreign:
            raise ArgumentError(
                message(
                    f"load_state_dict: missing {listed(missing)}; not known here {listed(foreign)}.",
                    f"The state belongs to another model than this {type(self).__name__}.",
                    f"The names here are {listed(list(leaves))}.",
                )
            )
        arrays = {name: as_array(state[name], name=f"load_state_dict: {name}") for name in leaves}
        for name, leaf in leaves.items():
            if arrays[name].shape != leaf.shape:
                raise ShapeError(
                    message(
                        f"load_state_dict: {name} is {leaf.shape} here, {arrays[name].shape} in the state.",
                        "The state belongs to a model of another size; nothing has been changed.",
                        "Make the model with the sizes it was saved with.",
                    )
                )
            if arrays[name].dtype.kind not in "fiub":
                raise ArgumentTypeError(f"load_state_dict: {name} holds {arrays[name].dtype}, no numbers.")
        for name, leaf in leaves.items():
            leaf.assign(arrays[name])

    # -- looking --------------------------------------------------------------------------------------------

    def sizes(self) -> str:
        """What stands between the brackets of the repr; each kind of module says its own sizes."""
        return ""

    def summary(self) -> str:
        """Every parameter with its shape and how many numbers it has, as a table.

        Examples
        --------
        >>> import tinyattn as ta
        >>> print(ta.nn.Linear(4, 3, rng=0).summary())
        part   kind    parameter  shape   numbers
        -----  ------  ---------  ------  -------
               Linear  W          (4, 3)       12
                       b          (3,)          3
        total                                  15
        """
        rows: list[list[object]] = []
        names = {id(leaf): name for name, leaf in self._named_leaves().items()}
        for path, module in self.named_modules():
            own = [leaf for _, leaf in module._own_parts() if isinstance(leaf, Tensor) and id(leaf) in names]
            own = list({id(leaf): leaf for leaf in own}.values())  # one that has two names here comes once
            for place, leaf in enumerate(own):
                name = names.pop(id(leaf), "").removeprefix(path + "." if path else "")
                first = [path, type(module).__name__] if place == 0 else ["", ""]
                rows.append([*first, name, str(leaf.shape), leaf.size])
            if not own:
                rows.append([path, type(module).__name__])
        rows.append(["total", "", "", "", sum(leaf.size for leaf in self._named_leaves().values())])
        return table(rows, ["part", "kind", "parameter", "shape", "numbers"], ascii=True)

    @recursive_repr()
    def __repr__(self) -> str:
        parts = [(path, part) for path, part in self._own_parts() if isinstance(part, Module)]
        inside = "".join("\n  " + f"{path}: {part!r}".replace("\n", "\n  ") for path, part in parts)
        sizes = self.sizes() + ("\n" if inside else "")
        return f"{type(self).__name__}({sizes.strip(chr(10))}{inside}{chr(10) if inside else ''})"


@functools.lru_cache(maxsize=256)
def _known_to(forward: Any) -> tuple[frozenset[str], tuple[str, ...]] | None:
    """The keywords of a forward, as a set and in order; None where it takes any."""
    if not isinstance(forward, FunctionType) or takes_any(forward):
        return None
    names = argument_names(forward)
    return frozenset(names), names


def _parts(name: str, value: Any, pattern: str) -> Iterator[tuple[str, Module | Tensor]]:
    """The modules and tensors in an attribute, also in lists, tuples and dictionaries, each with its path."""
    if isinstance(value, (Module, Tensor)):
        yield name, value
    elif isinstance(value, (list, tuple, dict)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from _parts(name + pattern.format(key), part, pattern)


def _name_after_caller(result: Tensor, frame: Any) -> None:
    """Name the result after the variable that the caller stores it in; without one it keeps its own name."""
    if stored_target(frame.f_code, frame.f_lasti) is None:
        return
    result.code, result.lasti = frame.f_code, frame.f_lasti
    site = outside_package(frame)
    result.site = None if site == (result.code, result.lasti) else site


def _same_name(name: str, module: str) -> str:
    return message(
        f"{module}: two parameters are called {name!r}.",
        "In state_dict and in files each needs a name of its own.",
        "Give the dictionaries in its attributes keys that differ as text, and have no dot.",
    )


def check_size(value: object, layer: str, what: str, least: int = 1, most: int = 1 << 40) -> int:
    """A size that is a whole number from 1 on, or a refusal that names the layer and what the size is for."""
    if isinstance(value, (Tensor, np.ndarray)):
        kind = "tensor" if isinstance(value, Tensor) else "array"
        given = f"{what} is {kind} of shape {value.shape}; it"
    else:
        given = f"{what}={value!r}"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ArgumentError(f"{layer}: {given} must be a whole number from {least} on.")
    if value > most:
        raise ArgumentError(f"{layer}: {given} is more than {most}, which no computer has room for.")
    return int(value)


def check_width(x: Tensor, width: int, layer: str) -> None:
    """Refuse rows that are not as wide as the layer's weights."""
    if x.ndim < 1 or x.shape[-1] != width:
        raise ShapeError(
            message(
                f"{layer}({describe(x)}): the rows must have width {width}.",
                "Each row is one token; its width is that of the layer's weights.",
                f"Give x with shape (..., {width}), or make the layer for the width that x has.",
            )
        )
