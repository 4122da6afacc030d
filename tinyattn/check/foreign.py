"""Functions written for PyTorch or JAX, checked by the same means: their gradient is taken for a rule.

Values come from the function itself at float64 arrays; nothing of tinyattn's engine takes part in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyattn.check.gradients import check_gradients
from tinyattn.check.handwritten import Handwritten, names_of
from tinyattn.check.inside import Call, jax_calls, torch_calls
from tinyattn.check.report import Report, Row
from tinyattn.errors import ArgumentError, message, optional_library

Arrays = list[np.ndarray]
_CHECKED = "A function written for it is checked by running it."


class Foreign:
    """A function of another library's arrays, seen as one of NumPy arrays.

    Attributes
    ----------
    name : str
    names : list of str
        The inputs.
    point : list of ndarray
        Where to check, in float64.
    """

    library = ""

    def __init__(self, name: str, names: Sequence[str], point: Arrays) -> None:
        self.name, self.names, self.point = name, list(names), point

    def calls(self) -> list[Call]:
        """The rules of one's own that the function calls."""
        raise NotImplementedError

    def alone(self, call: Call) -> Foreign:
        """One of them as a function of its own."""
        raise NotImplementedError

    def value(self, *arrays: Any) -> np.ndarray:
        """The result, a single array."""
        raise NotImplementedError

    def pull(self, g: Any, *arrays: Any) -> tuple[np.ndarray, ...]:
        """Reverse mode: a gradient for each input."""
        raise NotImplementedError

    def push(self, tangents: Arrays) -> np.ndarray:
        """Forward mode at the point."""
        raise NotImplementedError

    def slope(self, g: np.ndarray, tangents: Arrays) -> Foreign:
        """The gradient along a direction, as a function of its own."""
        raise NotImplementedError

    def not_again(self) -> str:
        """Why the gradient cannot be differentiated again; "" where it can."""
        return ""


def check_foreign(
    function: Foreign, order: int, modes: Sequence[str], rtol: float | None, atol: float | None, seed: int
) -> Report:
    """Check a function of another library.

    Parameters
    ----------
    function : Foreign
    order : int
        1, or 2 for gradients of gradients as well.
    modes, rtol, atol, seed
        As in `check_gradients`.
    """
    rng = np.random.default_rng(seed)
    report: Report | None = None
    name = function.name
    for n in range(1, order + 1):
        report = _one_order(function, n, modes, rtol, atol, seed, report)
        if report.verdict == "wrong" and n == 1:
            _look_inside(function, report, lambda each: _one_order(each, 1, ("reverse",), rtol, atol, seed, None))
        if not report or n == order:
            break
        if reason := function.not_again():
            report.note(f"order {n + 1} is not looked at: {reason}")
            break
        g = rng.normal(size=np.shape(function.value(*function.point)))
        function = function.slope(g, [rng.normal(size=x.shape) for x in function.point])
    assert report is not None
    report.name = name
    return report


def _look_inside(function: Foreign, report: Report, check: Callable[[Foreign], Report]) -> None:
    """Blame a rule of one's own that the function calls, if one of them is wrong by itself."""
    try:
        calls = function.calls()
    except Exception:
        calls = []
    wrong = []
    for call in reversed(calls):
        try:
            found = check(function.alone(call))
        except Exception:  # what cannot be called by itself is passed over
            continue
        if found.verdict == "wrong" and found.blame is not None:
            found.blame.op, found.blame.file, found.blame.line = call.name, call.file, call.line
            found.blame.node = ""
            wrong.append(found)
    if wrong:
        report.blame, report.faults = wrong[0].blame, wrong[0].faults
        names = [each.blame.op for each in wrong if each.blame is not None]
        report.others = [name for name in dict.fromkeys(names) if report.blame is None or name != report.blame.op]
        return
    if report.blame is not None:
        report.blame.part = "gradient"
    own = sorted({call.name for call in calls})
    by_itself = (
        f"each rule of your own in it is right by itself ({', '.join(own)})" if own else "it has no rule of its own"
    )
    report.note(
        f"{by_itself}; {function.library} does not show the forwards of its operations, so that none of those can be "
        "pointed at: check parts of the function by themselves"
    )


def _one_order(
    function: Foreign,
    n: int,
    modes: Sequence[str],
    rtol: float | None,
    atol: float | None,
    seed: int,
    before: Report | None,
) -> Report:
    op = Handwritten(function.value, lambda g, y, *arrays: function.pull(g, *arrays), tuple(function.point)).op(
        function.name
    )
    op.input_names = tuple(function.names)
    report = check_gradients(op, *function.point, order=1, modes=("reverse",), rtol=rtol, atol=atol, seed=seed)
    report.exact, report.order = "", n  # its numbers are the library's own
    if n > 1:
        report.notes = [note for note in report.notes if not note.startswith("the function is constant")]
    for row in report.rows:
        row.order = n
    if before is not None:
        report.rows = before.rows + report.rows
        report.notes = before.notes + [note for note in report.notes if note not in before.notes]
    if report and "forward" in modes:
        _forward(function, n, report, np.random.default_rng(seed))
    return report


def _forward(function: Foreign, n: int, report: Report, rng: np.random.Generator) -> None:
    """Forward mode against reverse mode, which has passed."""
    tangents = [rng.normal(size=x.shape) for x in function.point]
    try:
        pushed = function.push(tangents)
    except NotImplementedError as error:
        report.note(f"forward mode is not looked at: {str(error) or 'the library has none here'}")
        return
    g = rng.normal(size=np.shape(pushed))
    pulled = function.pull(g, *function.point)
    found = float(np.add.reduce(g * pushed, axis=None))
    terms = [c * t for c, t in zip(pulled, tangents, strict=True)]
    size = float(sum(np.add.reduce(np.abs(each), axis=None) for each in terms)) + float(
        np.add.reduce(np.abs(g * pushed), axis=None)
    )
    row = Row(
        "all",
        n,
        "forward",
        "reverse mode",
        found,
        float(sum(np.add.reduce(each, axis=None) for each in terms)),
        1e-11 * size + 1e-300,
    )
    report.rows.append(row)
    if not row.passed:
        report.verdict = "wrong"
        report.note("forward mode and reverse mode of the function disagree")


# -- PyTorch --------------------------------------------------------------------------------------------------


class TorchFunction(Foreign):
    """A function of torch tensors, or a torch module with its parameters."""

    library = "PyTorch"

    def __init__(self, f: Any, inputs: Sequence[Any]) -> None:
        self.torch = torch = optional_library("torch", _CHECKED)
        tensors = [
            x if isinstance(x, torch.Tensor) else torch.as_tensor(np.asarray(x)) if _is_array(x) else x for x in inputs
        ]
        self.fixed = [None if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in tensors]
        moving = [x for x in tensors if isinstance(x, torch.Tensor) and x.is_floating_point()]
        titles = names_of(f.forward if isinstance(f, torch.nn.Module) else f, len(self.fixed))
        names = [title for title, x in zip(titles, self.fixed, strict=True) if x is None]
        self.parameters: list[str] = []
        if isinstance(f, torch.nn.Module):
            owned = dict(f.named_parameters())
            self.parameters = list(owned)
            moving += list(owned.values())
            names += self.parameters
            f = _as_function(torch, f, self.parameters, len(moving) - len(self.parameters))
        self.f = f
        super().__init__(_title(f), names, _points([x.detach().cpu().double().numpy() for x in moving]))

    def tensors(self, arrays: Sequence[Any], grad: bool = False) -> list[Any]:
        """The arrays as float64 tensors."""
        return [
            self.torch.tensor(_floats(x).copy(), requires_grad=grad) if not self.torch.is_tensor(x) else x
            for x in arrays
        ]

    def call(self, tensors: Sequence[Any]) -> Any:
        """Run the function with its fixed arguments in their places; several results become one row."""
        given = iter(tensors)
        args = [next(given) if x is None else x for x in self.fixed]
        return _one_result(self.f(*args, *given), self.torch.is_tensor, self.torch.cat)

    def value(self, *arrays: Any) -> np.ndarray:
        """The result, a single array."""
        with self.torch.no_grad():
            y = self.call(self.tensors(arrays)).detach()
            if y.dtype in (self.torch.float32, self.torch.float16, self.torch.bfloat16):
                what = f"check: {self.name} gives {y.dtype} for float64 tensors, too coarse for differences."
                raise ArgumentError(message(what, "", "Let it compute in the dtype of its inputs."))
            return np.asarray(y.double().numpy())

    def calls(self) -> list[Call]:
        """The autograd functions of one's own that the function calls."""
        return torch_calls(self.torch, lambda: self.value(*self.point))

    def alone(self, call: Call) -> Foreign:
        """One of them as a function of its own."""
        return TorchFunction(call.function, call.args)

    def not_again(self) -> str:
        """Whether a backward says itself that it can be differentiated once only."""
        xs = self.tensors(self.point, grad=True)
        y = self.call(xs)
        if not y.requires_grad:
            return ""
        g = self.torch.ones_like(y, requires_grad=True)
        found = self.torch.autograd.grad(y, xs, g, create_graph=True, allow_unused=True)
        waiting, seen = [c.grad_fn for c in found if c is not None], set()
        while waiting:
            step = waiting.pop()
            if step is None or step in seen:
                continue
            seen.add(step)
            if type(step).__name__ == "Error":  # what PyTorch puts where nobody may differentiate again
                return "a backward is marked once_differentiable"
            waiting += [each for each, _ in step.next_functions]
        return ""

    def pull(self, g: Any, *arrays: Any) -> tuple[np.ndarray, ...]:
        """Reverse mode, by ``torch.autograd.grad``."""
        xs = self.tensors(arrays, grad=True)
        y = self.call(xs)
        if not y.requires_grad:
            return tuple(np.zeros(x.shape) for x in xs)
        found = self.torch.autograd.grad(y, xs, self.torch.tensor(np.array(g), dtype=y.dtype), allow_unused=True)
        return tuple(
            np.zeros(x.shape) if c is None else np.asarray(c.detach().numpy()) for c, x in zip(found, xs, strict=True)
        )

    def push(self, tangents: Arrays) -> np.ndarray:
        """Forward mode, by ``torch.autograd.functional.jvp``, which differentiates the backward."""
        if reason := self.not_again():
            raise NotImplementedError(reason)
        xs = tuple(self.tensors(self.point))
        _, pushed = self.torch.autograd.functional.jvp(lambda *each: self.call(each), xs, tuple(self.tensors(tangents)))
        return np.asarray(pushed.detach().numpy())

    def slope(self, g: np.ndarray, tangents: Arrays) -> Foreign:
        """The gradient along a direction."""
        torch, base = self.torch, self

        def directional(*xs: Any) -> Any:
            with torch.enable_grad():
                leaves = [x if x.requires_grad else x.detach().requires_grad_(True) for x in xs]
                y = base.call(leaves)
                if not y.requires_grad:
                    return torch.zeros((), dtype=torch.float64)
                found = torch.autograd.grad(y, leaves, torch.tensor(g), create_graph=True, allow_unused=True)
                return sum(
                    ((c * torch.tensor(t)).sum() for c, t in zip(found, tangents, strict=True) if c is not None),
                    torch.zeros((), dtype=torch.float64),
                )

        second = TorchFunction(directional, self.tensors(self.point))
        second.name, second.names = f"gradient of {self.name}", self.names
        return second


def _as_function(torch: Any, module: Any, names: Sequence[str], count: int) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        return torch.func.functional_call(module, dict(zip(names, values[count:], strict=True)), values[:count])

    run.__name__ = type(module).__name__
    return run


# -- JAX -------------------------------------------------------------------------------------------------------


class JaxFunction(Foreign):
    """A function of JAX arrays."""

    library = "JAX"

    def __init__(self, f: Any, inputs: Sequence[Any]) -> None:
        self.jax = jax = optional_library("jax", _CHECKED)
        self.f = f
        arrays = [np.asarray(x) if _is_array(x) or isinstance(x, jax.Array) else x for x in inputs]
        self.fixed = [None if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x for x in arrays]
        moving = [np.asarray(x, dtype=float) for x in arrays if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
        names = [title for title, x in zip(names_of(f, len(inputs)), self.fixed, strict=True) if x is None]
        super().__init__(_title(f), names, _points(moving))

    def calls(self) -> list[Call]:
        """The ``custom_vjp`` functions that the function calls."""
        with self.jax.disable_jit():
            return jax_calls(self.jax, lambda: self.value(*self.point))

    def alone(self, call: Call) -> Foreign:
        """One of them as a function of its own."""
        return JaxFunction(call.function, call.args)

    def wide(self) -> Any:
        """A block in which JAX computes in float64."""
        try:
            return self.jax.enable_x64(True)
        except (AttributeError, TypeError):
            from importlib import import_module

            return import_module("jax.experimental").enable_x64()

    def call(self, *arrays: Any) -> Any:
        """Run the function with its fixed arguments in their places; several results become one row."""
        given = iter(arrays)
        result = self.f(*[next(given) if x is None else x for x in self.fixed])
        return _one_result(result, lambda y: hasattr(y, "dtype"), self.jax.numpy.concatenate)

    def value(self, *arrays: Any) -> np.ndarray:
        """The result, a single array."""
        with self.wide():
            y = self.call(*map(self.jax.numpy.asarray, map(_floats, arrays)))
            if y.dtype.itemsize < 8 and y.dtype.kind not in "iub":
                what = f"check: {self.name} gives {y.dtype} for float64 arrays, too coarse for differences."
                raise ArgumentError(message(what, "", "Let it compute in the dtype of its inputs."))
            return np.asarray(y, dtype=float)

    def pull(self, g: Any, *arrays: Any) -> tuple[np.ndarray, ...]:
        """Reverse mode, by ``jax.vjp``."""
        with self.wide():
            y, pull = self.jax.vjp(self.call, *map(self.jax.numpy.asarray, map(_floats, arrays)))
            return tuple(np.asarray(c, dtype=float) for c in pull(self.jax.numpy.asarray(np.array(g), dtype=y.dtype)))

    def push(self, tangents: Arrays) -> np.ndarray:
        """Forward mode, by ``jax.jvp``."""
        with self.wide():
            point, directions = (tuple(map(self.jax.numpy.asarray, each)) for each in (self.point, tangents))
            try:
                return np.asarray(self.jax.jvp(self.call, point, directions)[1], dtype=float)
            except TypeError as error:
                if "custom_vjp" in str(error):
                    raise NotImplementedError("a custom_vjp function has none") from None
                raise

    def slope(self, g: np.ndarray, tangents: Arrays) -> Foreign:
        """The gradient along a direction."""
        base = self

        def directional(*xs: Any) -> Any:
            _, pull = base.jax.vjp(base.call, *xs)
            return sum((c * t).sum() for c, t in zip(pull(base.jax.numpy.asarray(g)), tangents, strict=True))

        second = JaxFunction(directional, self.point)
        second.name, second.names = f"gradient of {self.name}", self.names
        return second


# -- both -------------------------------------------------------------------------------------------------------


def _is_array(x: Any) -> bool:
    return isinstance(x, (float, list, tuple, np.ndarray, np.generic)) and not isinstance(x, (bool, np.bool_))


def _floats(x: Any) -> np.ndarray:
    if not isinstance(x, (np.ndarray, np.generic, float, int)):
        raise TypeError(f"a {type(x).__name__} where plain numbers are needed")
    if np.iscomplexobj(x):
        raise TypeError("complex numbers where real ones are needed")
    return np.asarray(x, dtype=float)


def _points(arrays: Arrays) -> Arrays:
    if not arrays:
        raise ArgumentError("check: no argument holds floating-point numbers, so there is nothing to differentiate by.")
    return [np.asarray(x, dtype=float) for x in arrays]


def _title(f: Any) -> str:
    name = getattr(f, "__name__", type(f).__name__)
    if name == "apply" and isinstance(getattr(f, "__self__", None), type):
        name = f.__self__.__name__  # of an autograd.Function
    return "the function" if name == "<lambda>" else str(name)


def _one_result(result: Any, is_array: Callable[[Any], bool], joined: Callable[[list[Any]], Any]) -> Any:
    if is_array(result):
        return result
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)) and result:
        return joined([_one_result(each, is_array, joined).reshape(-1) for each in result])
    raise ArgumentError(f"check: the function returned a {type(result).__name__}; an array of the library is needed.")
