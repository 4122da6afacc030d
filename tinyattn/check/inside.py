"""Rules of one's own inside a function of another library: who was called, with what, and where it is written.

PyTorch and JAX do not show the forwards of their operations, so their graphs cannot be walked node by node.  But the
rules that people write themselves, `autograd.Function` and `custom_vjp`, can be listened to while the function runs;
each is then checked by itself, at the numbers that it was called with.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any


class Call:
    """One call of a rule of one's own.

    Attributes
    ----------
    name : str
    function : callable
        What can be called again.
    args : tuple
    file, line : where its backward is written; "" and 0 when that is not known
    """

    def __init__(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], backward: Any) -> None:
        self.name, self.function, self.args = name, function, args
        code = getattr(inspect.unwrap(backward), "__code__", None) if callable(backward) else None
        self.file: str = "" if code is None else code.co_filename
        self.line: int = 0 if code is None else code.co_firstlineno


def torch_calls(torch: Any, run: Callable[[], Any]) -> list[Call]:
    """Every call of an ``autograd.Function`` of one's own while something runs, in order."""
    calls: list[Call] = []
    before: list[tuple[Any, Any]] = []
    context = torch.autograd.function.FunctionCtx

    def listening(kind: Any, forward: Any) -> Any:
        def heard(*args: Any, **kwargs: Any) -> Any:
            given = args[1:] if args and isinstance(args[0], context) else args
            held = tuple(x.detach() if isinstance(x, torch.Tensor) else x for x in given)
            calls.append(Call(kind.__name__, kind.apply, held, kind.backward))
            return forward(*args, **kwargs)

        return staticmethod(heard)

    try:
        for kind in _subclasses(torch.autograd.Function):
            forward = vars(kind).get("forward")
            if isinstance(forward, staticmethod) and not kind.__module__.startswith("torch."):
                before.append((kind, forward))
                kind.forward = listening(kind, forward.__func__)
        run()
    finally:
        for kind, forward in before:
            kind.forward = forward
    return calls


def _subclasses(kind: Any) -> Iterator[Any]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


def jax_calls(jax: Any, run: Callable[[], Any]) -> list[Call]:
    """Every call of a ``custom_vjp`` function while something runs with ``jit`` switched off, in order."""
    calls: list[Call] = []
    kind = jax.custom_vjp
    plain = kind.__call__

    def heard(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and not any(isinstance(x, jax.core.Tracer) for x in args):
            calls.append(Call(getattr(self, "__name__", "custom_vjp"), self, args, getattr(self, "bwd", None)))
        return plain(self, *args, **kwargs)

    kind.__call__ = heard
    try:
        run()
    finally:
        kind.__call__ = plain
    return calls
