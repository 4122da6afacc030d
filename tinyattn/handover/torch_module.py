"""A recorded graph as a PyTorch module: the parameters are its parameters, constants are buffers."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tinyattn.errors import optional_library
from tinyattn.handover.program import Program
from tinyattn.handover.recording import Dynamic, record
from tinyattn.handover.words import TorchWords


def to_torch(what: Any, *args: Any, dynamic: Dynamic | None = None, model: Any = None) -> Any:
    """Make a PyTorch module of a recorded graph, with its parameters under their names.

    Parameters
    ----------
    what, *args, dynamic, model
        As in `to_function`.

    Returns
    -------
    torch.nn.Module
        Called with the inputs, in order or by name; one that is left out has its recorded numbers.  ``inputs`` has
        their names, ``example_inputs()`` and ``dynamic_shapes()`` are what ``torch.export.export`` wants, and
        ``intermediates(...)`` gives every step by name.  It can be copied, and pickled with ``torch.save``.

    Raises
    ------
    MissingLibraryError
        When PyTorch is not installed.

    Examples
    --------
    >>> import torch, tinyattn as ta
    >>> w = ta.tensor([3.0, 4.0], requires_grad=True)
    >>> module = to_torch((w * w).sum())
    >>> module().backward()
    >>> module.w.grad
    tensor([6., 8.], dtype=torch.float64)
    """
    return _module_of(record(what, args, dynamic, model))


def _module_of(program: Program) -> Any:
    return _module_class(optional_library("torch", "It is what the computation is handed over to."))(program)


@functools.cache
def _module_class(torch: Any) -> Any:
    """The class of the modules; made here, because PyTorch is imported only when it is asked for."""

    class Recorded(torch.nn.Module):  # type: ignore[misc]
        """A recorded computation."""

        def __init__(self, program: Program) -> None:
            super().__init__()
            self.program, self.words, self.inputs = program, TorchWords(torch), tuple(program.inputs)
            self._places = {}
            for name, array in program.parameters.items():
                self._places[name] = _put(torch, self, name, torch.nn.Parameter(torch.tensor(array)))
            self._buffers_of: dict[int, str] = {}
            with torch.no_grad():
                self._run(())  # shows which constants there are

        def forward(self, *inputs: Any, **named: Any) -> Any:
            """Compute the result, or a tuple of several."""
            return self.program.results(self._run(inputs, **named))

        def intermediates(self, *inputs: Any, **named: Any) -> dict[str, Any]:
            """Compute every step, by its name with its scope before it."""
            values = self._run(inputs, **named)
            return {"/".join([*each.scope, each.name]): x for each, x in zip(self.program.steps, values, strict=True)}

        def example_inputs(self) -> tuple[Any, ...]:
            """The inputs as they were recorded."""
            return tuple(torch.tensor(array) for array in self.program.inputs.values())

        def dynamic_shapes(self) -> Any:
            """Which lengths may differ, as ``torch.export.export`` wants to be told."""
            free = torch.export.Dim.DYNAMIC  # which lengths are equal, and how long they may be, it finds out itself
            own = [{at: free for at, axis in enumerate(argument.axes) if axis is not None}
                   for argument in self.program.arguments if argument.kind == "input"]  # fmt: skip
            return (tuple(own),) if own else None

        def extra_repr(self) -> str:
            """What the module shows of itself when printed."""
            return f"inputs={', '.join(self.inputs) or 'none'}, steps={len(self.program.steps)}"

        def __reduce__(self) -> Any:
            """For pickles and copies, which do not find a class made in a function: the module is built again.

            Its buffers are found by where in memory the program's constants are, which no file can tell.
            """
            built = ("program", "words", "_buffers_of")
            return _module_of, (self.program,), {name: x for name, x in self.__dict__.items() if name not in built}

        def _run(self, inputs: tuple[Any, ...], **named: Any) -> Any:
            own = {name: _found(self, path) for name, path in self._places.items()}
            some = next((x for x in (*own.values(), *inputs, *named.values()) if torch.is_tensor(x)), None)
            self.words.device = None if some is None else some.device
            return self.program.run(self.words, self.program.bind(own, inputs, named), self._constant)

        def _constant(self, step: int, array: np.ndarray) -> Any:
            if id(array) not in self._buffers_of:
                name = f"constant_{len(self._buffers_of)}"
                self.register_buffer(name, torch.tensor(array), persistent=False)
                self._buffers_of[id(array)] = name
            return getattr(self, self._buffers_of[id(array)])

    return Recorded


def _put(torch: Any, module: Any, name: str, parameter: Any) -> list[str]:
    """Register a parameter under its name; what stands before a dot becomes a part of the module."""
    *parts, last = name.split(".")
    path = []
    for part in parts:
        own = part if part in module._modules or not hasattr(module, part) else f"{part}_"
        if own not in module._modules:
            module.add_module(own, torch.nn.Module())
        module = module._modules[own]
        path.append(own)
    last = f"{last}_" if hasattr(module, last) else last  # such as "training", which every module has
    module.register_parameter(last, parameter)
    return [*path, last]


def _found(module: Any, path: list[str]) -> Any:
    return functools.reduce(getattr, path, module)
