"""A recorded graph as a plain function of parameters and inputs, in any NumPy-like namespace."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinyattn.errors import ArgumentTypeError, message
from tinyattn.handover.program import Program
from tinyattn.handover.recording import Dynamic, record
from tinyattn.handover.words import words_of
from tinyattn.tensor import Tensor


class Function:
    """A recorded computation as a function: ``f(parameters, *inputs)``.

    It has no state and writes nothing, so that it can be compiled, differentiated, mapped and spread over devices.
    Printing it lists its steps.

    Attributes
    ----------
    parameters : dict from str to array
        What the first argument may be: the parameters by name, with the numbers that they had.
    inputs : dict from str to array
        The inputs by name and in order, with the numbers that they had; an input left out of a call has these.

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> from tinyattn import handover
    >>> x, w = ta.tensor([1.0, 2.0]), ta.tensor([3.0, 4.0], requires_grad=True)
    >>> y = (x * w).sum()
    >>> f = handover.to_function(y, np)
    >>> float(f(f.parameters)), float(f({"w": np.array([1.0, 1.0])}, x=np.array([5.0, 6.0])))
    (11.0, 11.0)
    >>> print(f)
    x = input, shape (2,)...
    w = parameter, shape (2,)...
    multiply = multiply(x, w)...
    y = sum(multiply)...
    """

    def __init__(self, program: Program, xp: Any) -> None:
        self.program, self.words = program, words_of(xp)
        self.parameters = {name: self.words.array(array) for name, array in program.parameters.items()}
        self.inputs = {name: self.words.array(array) for name, array in program.inputs.items()}

    def __call__(self, parameters: Any, *inputs: Any, **named: Any) -> Any:
        """Compute the result, or a tuple of several."""
        given = self.program.bind(parameters, inputs, named)
        return self.program.results(self.program.run(self.words, given))

    def intermediates(self, parameters: Any, *inputs: Any, **named: Any) -> dict[str, Any]:
        """Compute every step, by its name with its scope before it.

        Parameters
        ----------
        parameters, *inputs, **named
            As in a call.

        Returns
        -------
        dict from str to array

        Examples
        --------
        >>> import numpy as np, tinyattn as ta
        >>> with ta.scope("head"):
        ...     S = ta.tensor([1.0, 2.0]) * 2.0
        >>> f = to_function(S, np)
        >>> f.intermediates(f.parameters)["head/S"]
        array([2., 4.])
        """
        values = self.program.run(self.words, self.program.bind(parameters, inputs, named))
        titles = ("/".join([*step.scope, step.name]) for step in self.program.steps)
        return dict(zip(titles, values, strict=True))

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        inputs = "".join(f", {name}" for name in self.program.inputs)
        return f"<Function f(parameters{inputs}): {len(self.program.steps)} steps in {self.words.xp.__name__}>"


def to_function(what: Any, xp: Any = np, *args: Any, dynamic: Dynamic | None = None, model: Any = None) -> Function:
    """Make a plain function of a recorded graph, in a NumPy-like namespace.

    Parameters
    ----------
    what : Tensor, list of Tensor, Graph, or callable
        A result or the graph behind it: leaves that require a gradient become parameters, other tensors become
        inputs, everything else is fixed.  Or a function of tensors and arrays, such as a `Module`: what its
        arguments ``args`` decide, follows them.
    xp : module
        ``numpy``, ``jax.numpy``, ``torch``, or another namespace of the array API standard.
    *args
        For a function: an example of its arguments.  Arrays and tensors become inputs, anything else is fixed.
    dynamic : mapping from str to sequence or mapping, optional
        For a function: axes whose lengths may differ later, ``{"x": ("batch", "n", None)}``, or by number
        ``{"x": {0: "batch"}}``; lengths of the same name are equal.  Masks and tables of positions reach as far as in
        the example.
    model : Module, optional
        Gives the parameters its names for them, when ``what`` is not the module itself.

    Returns
    -------
    Function
        Called as ``f(parameters, *inputs)``; ``f.parameters`` are the recorded ones.

    Raises
    ------
    GraphError
        When a number follows the arguments in a way that was not recorded, or an operation has no saying.

    Examples
    --------
    >>> import numpy as np, tinyattn as ta
    >>> layer = ta.nn.Linear(2, 1, rng=0)
    >>> f = to_function(layer, np, ta.tensor(np.ones((3, 2))), dynamic={"x": ("n", None)})
    >>> f
    <Function f(parameters, x): 5 steps in numpy>
    >>> x = np.array([[1.0, 2.0]])
    >>> bool((f(f.parameters, x) == layer(x).data).all())
    True
    """
    if isinstance(xp, (np.ndarray, Tensor, list, tuple, int, float)):
        told = f"to_function: xp is a {type(xp).__name__}; the namespace of a library is needed."
        raise ArgumentTypeError(message(told, "Examples of arguments come after it.", "Write to_function(f, np, x)."))
    return Function(record(what, args, dynamic, model), xp)
