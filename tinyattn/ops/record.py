"""Op: everything that is known about one operation, in one record, and the registry of them all.

A record holds the forward, the gradient rules, the textbook definition, a sampler and words about the
points without a derivative.  The engine runs it, the checker tests it, the symbolic side derives from its
definition, the picture shows it; none of them needs to know any operation by name.

Rules are written once, in plain NumPy.  Given arrays they compute numbers; given Tensors the same lines are
recorded, which is how gradients of gradients come about; given exact numbers they check themselves.
This package knows no Tensor: whatever wants to record an operation has a class method ``apply_op``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]


class Call:
    """What a definition may depend on: the shapes of the inputs and the parameters by name."""

    __slots__ = ("params", "shapes")

    def __init__(self, shapes: tuple[tuple[int, ...], ...], params: dict[str, Any]) -> None:
        self.shapes, self.params = shapes, params


class Op:
    """One operation: forward, gradient rules, definition, sampler.

    Parameters
    ----------
    name : str
        The name that drawings, errors and the registry use.
    forward : callable
        ``forward(*inputs, *params)`` in plain NumPy; the leading parameters are the differentiable inputs.
        With ``saves`` it returns the result and what the rule will want again.
    vjps : tuple of callables, or one callable
        For each input ``rule(g, y, *inputs, *params)``: the vector-Jacobian product, that is the cotangent
        of this input, from the cotangent ``g`` of the result ``y``.  None for an input without derivative.
        One callable serves all inputs and returns a tuple; with ``saves`` it is
        ``rule(g, y, saved, *inputs, *params)``.
    definition : str or callable
        The meaning in index notation, or a function of a `Call` that returns it.
    sample : callable
        ``sample(rng)`` gives a list of valid calls ``(inputs, params)``, away from kinks.
    kinks : str
        What is decided where there is no derivative; empty where there is one everywhere.
    composed : callable, optional
        The same operation from simpler ones.  Where it is given, ``forward`` and ``vjps`` are a fast form
        for float arrays only, and gradients of gradients go through this one.
    variadic : bool
        True when the op takes any number of inputs before its parameters.
    saves : bool
        True when ``forward`` returns ``(result, saved)``.
    hidden : bool
        True for book-keeping, such as casts, that drawings leave out.

    Examples
    --------
    >>> import numpy as np
    >>> from tinyattn.ops import REGISTRY
    >>> multiply = REGISTRY["multiply"]
    >>> print(multiply.definition)
    y[...] = a[...] * b[...]
    >>> a, b, g = np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([1.0, 1.0])
    >>> multiply.vjps[0](g, a * b, a, b)
    array([3., 4.])
    """

    __slots__ = (
        "composed", "definition", "differentiable", "even", "forward", "hidden", "input_names", "kinks", "name",
        "param_names", "plain", "sample", "saves", "variadic", "vjps",
    )

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        vjps: tuple[Rule | None, ...] | Rule,
        definition: str | Callable[[Call], str],
        *,
        sample: Callable[[Any], list[tuple[tuple[Any, ...], tuple[Any, ...]]]],
        inputs: tuple[str, ...] = ("x",),
        params: tuple[str, ...] = (),
        kinks: str = "",
        composed: Callable[..., Any] | None = None,
        variadic: bool = False,
        saves: bool = False,
        hidden: bool = False,
    ) -> None:
        self.name, self.forward, self.definition, self.sample = name, forward, definition, sample
        self.input_names, self.param_names, self.kinks, self.composed = inputs, params, kinks, composed
        self.variadic, self.saves, self.hidden = variadic, saves, hidden
        self.vjps: Any = vjps
        self.differentiable = vjps != (None,)
        # For `tinyattn.quick`: 1 or 2 where each input has a rule, and there are no parameters when there are two; and
        # what the rules of two inputs of one shape do before `summed_back` sums nothing.
        single = isinstance(vjps, tuple) and None not in vjps and not variadic and not saves
        self.plain = len(inputs) if single and (len(inputs) == 1 or not params) else 0
        rules: Any = vjps if self.plain == 2 else ()
        evens = [getattr(rule, "even", None) for rule in rules]
        self.even = tuple(evens) if evens and None not in evens else None

    def __repr__(self) -> str:
        return f"Op({self.name})"

    def __call__(self, *operands: Any) -> Any:
        """Run on arrays, or be recorded when one operand is a Tensor."""
        for operand in operands:
            recorder = getattr(type(operand), "apply_op", None)
            if recorder is not None:
                return recorder(self, operands)
        result = self.forward(*operands)
        return result[0] if self.saves else result

    def split(self, operands: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Part the operands into differentiable inputs and parameters."""
        count = len(operands) - len(self.param_names) if self.variadic else len(self.input_names)
        return operands[:count], operands[count:]

    def names_of(self, count: int) -> tuple[str, ...]:
        """Names of the inputs by slot; a variadic op numbers them: x0, x1, ..."""
        if not self.variadic:
            return self.input_names[:count]
        return tuple(f"{self.input_names[0]}{slot}" for slot in range(count))

    def pull(self, g: Any, y: Any, saved: Any, inputs: list[Any], params: tuple[Any, ...], wanted: list[bool]) -> Any:
        """One vector-Jacobian product: the contribution to each wanted input, None for the others."""
        if isinstance(self.vjps, tuple):
            rules = zip(self.vjps, wanted, strict=True)
            return [rule(g, y, *inputs, *params) if want and rule is not None else None for rule, want in rules]
        return self.vjps(g, y, *((saved,) if self.saves else ()), *inputs, *params)

    def definition_text(self, shapes: tuple[tuple[int, ...], ...], params: tuple[Any, ...] | dict[str, Any]) -> str:
        """The definition of one particular call, as text in index notation; parameters in order or by name."""
        if isinstance(self.definition, str):
            return self.definition
        named = params if isinstance(params, dict) else dict(zip(self.param_names, params, strict=True))
        return self.definition(Call(shapes, named))


REGISTRY: dict[str, Op] = {}


def register(op: Op) -> Op:
    """Enter a record into the rule book; two ops of one name would hide each other, so that is refused."""
    if op.name in REGISTRY:
        raise ValueError(f"there is already an op named {op.name!r}")
    REGISTRY[op.name] = op
    return op
