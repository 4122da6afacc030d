"""Likely mistakes by name: a wrong gradient is held against the ones that people are known to write.

Each candidate is computed from values of the forward alone (its Jacobian by differences, the cotangent, the
numbers at hand), so it works for operations that nobody has seen before.  The first that gives the same numbers as
the wrong rule is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinyattn.check.blame import Fault
from tinyattn.check.places import wrong_places
from tinyattn.check.scene import Mistake, Scene


def likely_mistake(fault: Fault, graph: Any) -> Mistake | None:
    """Name the known mistake that gives the same wrong numbers; None when none does."""
    if fault.got is None:
        return None
    scene = Scene(fault, graph)
    with np.errstate(all="ignore"):
        if scene.got is not None and scene.got.shape != scene.x.shape:
            return _by_shape(scene)
        factor = _constant_factor(scene) if scene.want.size > 1 else None
        for candidates in (_simple, *(_FAMILIES if factor is None else ())):
            found = _first_same(scene, candidates)
            if found is not None:
                return found
        return _by_ratio(scene) or factor or _constant_factor(scene)


def _first_same(scene: Scene, candidates: Callable[[Scene], Candidates]) -> Mistake | None:
    """The first candidate of a family with the numbers of the wrong rule; a family that cannot be tried has none."""
    try:
        for name, candidate, text in candidates(scene):
            if scene.same(candidate):
                return Mistake(name, text)
    except Exception:
        return None
    return None


Candidates = Iterator[tuple[str, Any, str]]


def _by_shape(scene: Scene) -> Mistake | None:
    got, x = scene.got, scene.x
    assert got is not None
    for slot, other in enumerate(scene.inputs):
        if slot != scene.slot and got.shape == other.shape and got.size != x.size:
            return Mistake(
                "gradients exchanged", "the shape is that of the other input: the order of the results is wrong"
            )
    if got.size == x.size:
        if got.ndim == x.ndim and got.shape == x.shape[::-1]:
            text = f"the gradient has shape {got.shape}, the input {x.shape}: one factor or the result is transposed"
            return Mistake("transposed", text)
        return Mistake("wrong shape", f"the numbers fit, but not the shape: end with .reshape({x.shape})")
    if got.ndim >= x.ndim and _stretches(x.shape, got.shape):
        return Mistake(
            "missing sum over a broadcast axis",
            f"the input of shape {x.shape} was copied to {got.shape} going forward; going backward the copies' "
            "gradients are added: "
            f"sum over the axes that were stretched",
        )
    if got.shape == scene.g.shape:
        text = f"the gradient has the shape of the result; that of the input is {x.shape}: "
        more = "put 0 where the forward left entries out" if got.size < x.size else "add up what belongs to one entry"
        return Mistake("wrong shape", text + more)
    if got.size < x.size:
        return Mistake(
            "summed too much",
            f"the gradient of an input of shape {x.shape} has {got.size} numbers: an axis was summed that must stay",
        )
    return None


def _stretches(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether broadcasting makes the one shape of the other."""
    padded = (1,) * (len(large) - len(small)) + small
    return all(a in (1, b) for a, b in zip(padded, large, strict=True))


def _simple(scene: Scene) -> Candidates:
    want, g = scene.want, scene.g
    yield "sign", -want, "every entry has the other sign: a minus is missing or one too many"
    yield "detached branch", np.zeros(want.shape), "nothing flows back to this input: it was treated as a constant"
    if scene.jacobian is not None:
        left_out = scene.jacobian.sum(axis=0).reshape(want.shape)
        yield (
            "incoming gradient left out",
            left_out,
            "the rule gives the slope alone; multiply it by g, the gradient that comes in (chain rule)",
        )
    yield from wrong_places(scene)
    if g.shape == want.shape:
        yield (
            "local slope left out",
            g,
            "the incoming gradient is passed on as it is; multiply it by the slope of the operation",
        )


def _of_the_jacobian(scene: Scene) -> Candidates:
    if scene.jacobian is None:
        return
    jacobian, g, shape = scene.jacobian, scene.g.ravel(), scene.want.shape
    softmax = _looks_like_softmax(scene)
    if jacobian.shape[0] == jacobian.shape[1]:
        of = "softmax Jacobian" if softmax else "Jacobian"
        why = (
            "every output of a row depends on every input of it: y (g - sum(g y))"
            if softmax
            else "outputs depend on other entries too"
        )
        yield (
            f"only the diagonal of the {of}",
            (np.diag(jacobian) * g).reshape(shape),
            f"only the slope of each output by its own input is used; {why}",
        )
        yield (
            "transposed",
            (jacobian @ g).reshape(shape),
            "the Jacobian was applied where its transpose is needed: J g in place of Jᵀ g",
        )
    products = jacobian * g[:, None]
    feeds = np.abs(jacobian) > 1e-9 * max(float(np.abs(jacobian).max(initial=0.0)), 1e-300)
    for first, which in ((False, "last"), (True, "first")):
        order = feeds if first else feeds[::-1]
        at = np.argmax(order, axis=0)
        at = at if first else len(g) - 1 - at
        only = np.where(feeds.any(axis=0), np.take_along_axis(products, at[None], 0)[0], 0.0).reshape(shape)
        if _is_broadcast(scene):
            yield (
                "missing sum over a broadcast axis",
                only,
                f"only the {which} of the copies counts; the gradients of all copies are added",
            )
        else:
            yield (
                "overwritten instead of accumulated",
                only,
                f"an entry that is used several times keeps only the {which} contribution; "
                "contributions are added (+=)",
            )
    counts = np.maximum(feeds.sum(axis=0), 1)
    yield (
        "averaged instead of summed",
        (products.sum(axis=0) / counts).reshape(shape),
        "contributions of several uses are added, not averaged",
    )


def _is_broadcast(scene: Scene) -> bool:
    return scene.x.shape != scene.y.shape and len(scene.inputs) > 1 and scene.op.name not in ("matmul", "einsum")


def _looks_like_softmax(scene: Scene) -> bool:
    y, x = scene.y, scene.x
    if y.shape != x.shape or y.ndim == 0 or (y < 0).any():
        return False
    return any(
        np.allclose(y.sum(axis=a), np.round(y.sum(axis=a)))
        and np.allclose(np.maximum(y.sum(axis=a), 0), y.sum(axis=a) > 0.5)
        for a in range(y.ndim)
    )


def _of_softmax(scene: Scene) -> Candidates:
    y, g, x = scene.y, scene.g, scene.x
    if not _looks_like_softmax(scene):
        return
    yield (
        "softmax without its correction",
        g * y,
        "the sum over the row is missing: y (g - sum(g y)), because the weights share one total",
    )
    yield (
        "only the diagonal of the softmax Jacobian",
        g * y * (1 - y),
        "the other entries of the row count too: y (g - sum(g y))",
    )
    for axis in range(y.ndim):
        yield (
            "wrong axis",
            y * (g - (g * y).sum(axis=axis, keepdims=True)),
            f"the correction is summed along axis {axis}; it belongs along the axis of the softmax",
        )
    yield (
        "wrong axis",
        y * (g - (g * y).sum()),
        "the correction is summed over everything; it belongs along the axis of the softmax, keepdims=True",
    )
    keep = scene.params.get("keep", y > 0)
    if keep is not None and not np.all(keep):
        for axis in range(y.ndim):
            e = np.exp(x - x.max(axis=axis, keepdims=True))
            p = e / e.sum(axis=axis, keepdims=True)
            for masked in (np.where(keep, g, 0.0), g):
                full = p * (masked - (masked * p).sum(axis=axis, keepdims=True))
                yield (
                    "mask applied after softmax",
                    full,
                    "hidden entries still take part in the total; mask the scores before softmax, "
                    "not the weights after it",
                )
                yield (
                    "mask applied after softmax",
                    np.where(keep, full, 0.0),
                    "hidden entries still take part in the total; mask the scores before softmax",
                )


def _other_parameters(scene: Scene) -> Candidates:
    """The right gradient of the same operation with another axis, without its mask, with the mask turned round."""
    for name, value in scene.params.items():
        for other, mistake, text in _alternatives(scene, name, value):
            jacobian = scene.jacobian_of(scene.inputs, {**scene.params, name: other})
            if jacobian is not None and jacobian.shape[0] == scene.g.size:
                yield mistake, (scene.g.ravel() @ jacobian).reshape(scene.x.shape), text


def _alternatives(scene: Scene, name: str, value: Any) -> Iterator[tuple[Any, str, str]]:
    ndim = scene.x.ndim
    if name in ("axis", "axes") and isinstance(value, (int, tuple)):
        for axis in range(ndim):
            other = axis if isinstance(value, int) else (axis,)
            if other != value and (isinstance(value, int) or len(value) == 1):
                yield other, "wrong axis", f"this is the gradient along axis {axis}; the forward works along {value}"
    if isinstance(value, np.ndarray) and value.dtype == bool:
        yield (
            ~value,
            "condition the wrong way round",
            f"{name} is used turned round: what is kept and what is hidden are exchanged",
        )
        yield (
            np.ones_like(value),
            "mask left out",
            f"{name} is not used going backward; what was hidden must get gradient 0",
        )


def _conditions(scene: Scene) -> Candidates:
    want, g = scene.want, scene.g
    if want.shape != g.shape:
        return
    off = np.abs(want) <= 1e-9 * max(float(np.abs(g).max(initial=0.0)), 1e-300)
    if off.any() and not off.all():
        yield (
            "condition the wrong way round",
            np.where(off, g, 0.0),
            "gradient flows exactly where it should not: turn the comparison round",
        )
        yield "mask left out", g, "gradient flows everywhere; where the forward cut off, it must be 0"


def _transposes(scene: Scene) -> Candidates:
    text = "one of the two factors, or the result, is transposed: for y = a @ b the rules are g @ b.T and a.T @ g"
    want = scene.want
    if want.ndim >= 2 and want.shape[-1] == want.shape[-2]:
        yield "transposed", np.swapaxes(want, -1, -2), text
    if len(scene.inputs) == 2 and scene.g.ndim >= 2:
        other = scene.inputs[1 - scene.slot]
        if other.ndim < 2:
            return
        for left, right in ((scene.g, other), (other, scene.g)):
            for a in (left, np.swapaxes(left, -1, -2)):
                for b in (right, np.swapaxes(right, -1, -2)):
                    right_order = (
                        a is scene.g and b is not other if scene.slot == 0 else b is scene.g and a is not other
                    )
                    if a.shape[-1] == b.shape[-2] and not right_order:  # that would be right, were it a product
                        try:
                            yield "transposed", a @ b, text
                        except ValueError:
                            continue


def _swapped(scene: Scene) -> Candidates:
    for slot, other in enumerate(scene.inputs):
        if slot != scene.slot and other.shape == scene.x.shape:
            jacobian = scene.jacobian_of(scene.inputs, scene.params, slot)
            if jacobian is not None:
                yield (
                    "gradients exchanged",
                    (scene.g.ravel() @ jacobian).reshape(other.shape),
                    "this is the gradient of the other input: the order of the results is wrong",
                )


def _elsewhere(scene: Scene) -> Candidates:
    """The slope taken at the result instead of the input, and the other way round."""
    if scene.x.shape != scene.y.shape or scene.jacobian is None or len(scene.inputs) != 1:
        return
    at_result = scene.jacobian_of([scene.y], scene.params)
    if at_result is not None:
        yield (
            "slope taken at the wrong place",
            (scene.g.ravel() @ at_result).reshape(scene.x.shape),
            "the slope belongs to the input x, but the result y went in",
        )
    known = _known_rule(scene)
    if known is not None:
        for place, text in (
            (scene.x, "the rule is written for the result y, but the input x went in"),
            (scene.y, "the rule wants x where y went in"),
        ):
            try:
                yield (
                    "slope taken at the wrong place",
                    np.asarray(known(scene.g, place, place, *scene.params.values())),
                    text,
                )
            except Exception:
                continue


def _known_rule(scene: Scene) -> Any:
    """The engine's own rule for an operation that gives the same values: a hand-written tanh is a tanh."""
    from tinyattn.ops import REGISTRY

    for op in REGISTRY.values():
        if (
            len(op.input_names) == 1
            and not op.param_names
            and not op.saves
            and isinstance(op.vjps, tuple)
            and op.vjps[0] is not None
        ):
            try:
                value = np.asarray(op.forward(scene.x))
            except Exception:
                continue
            if value.shape == scene.y.shape and np.allclose(value, scene.y, rtol=1e-12, atol=0):
                return op.vjps[0]
    return None


def _constant_factor(scene: Scene) -> Mistake | None:
    got, want = scene.got, scene.want
    assert got is not None
    big = np.isfinite(want) & (np.abs(want) > 1e-6 * float(np.abs(want[np.isfinite(want)]).max(initial=0.0)))
    if not big.any():
        return None
    ratios = got[big] / want[big]
    factor = float(np.median(ratios))
    if (
        not np.isfinite(factor)
        or not np.abs(ratios - factor).max() <= 1e-7 * abs(factor)
        or abs(factor - 1) < 1e-9
        or factor == 0
    ):
        return None
    everywhere = np.abs(got - factor * want)[np.isfinite(want)]
    if not everywhere.max() <= 1e-6 * float(np.abs(got).max()):
        return None
    name, words = _words_for(factor, scene)
    if ratios.size < 2 and not words:
        return None
    return Mistake(name, f"every entry is {factor:.10g} times the right one{words}")


def _words_for(factor: float, scene: Scene) -> tuple[str, str]:
    sizes = {f"{size}": float(size) for size in (*scene.x.shape, *scene.y.shape) if size > 1}
    total = float(scene.x.size)
    counts = {n for n in (*sizes.values(), total, total / max(scene.y.size, 1), scene.y.size / max(total, 1)) if n >= 2}
    off = "off by a constant factor"
    if any(abs(factor - n) < 1e-7 * n for n in counts) and _averages(scene, factor):
        return "gradient of the mean without 1/n", f": the mean divides by {factor:.0f}, and so does its gradient"
    if _is_broadcast(scene) and any(abs(factor * n - 1) < 1e-7 for n in counts):
        return "averaged instead of summed", ": the gradients of copies are added, not averaged"
    said = [words for value, words in _COMMON.items() if abs(factor - value) < 1e-7 * abs(value)]
    for n in sorted(counts):
        near = [
            f"{'' if sign > 0 else 'minus '}{words}, where {n:.0f} is a size of this call"
            for value, words in (
                (n, f"{n:.0f}"),
                (1 / n, f"1/{n:.0f}"),
                (math.sqrt(n), f"√{n:.0f}"),
                (1 / math.sqrt(n), f"1/√{n:.0f}"),
                (n / (n - 1) if n > 2 else 0.0, f"{n:.0f}/{n - 1:.0f}"),
                ((n - 1) / n if n > 2 else 0.0, f"{n - 1:.0f}/{n:.0f}"),
            )
            for sign in (1, -1)
            if abs(factor - sign * value) < 1e-7 * abs(value) and not (said and words == f"{abs(factor):.0f}")
        ]
        said += near[:1]
    return off, f": {', or '.join(said[:2])}" if said else ""


_COMMON = {2.0: "a 2 too many", 0.5: "a factor 2 is missing", -2.0: "a 2 and the sign", -0.5: "a factor 2 and the sign"}


def _averages(scene: Scene, n: float) -> bool:
    """Whether the operation divides by how many there are: a constant comes back as it is, or a loss says mean."""
    if "mean" in [value for value in scene.params.values() if isinstance(value, str)] or "mean" in scene.op.name:
        return True
    try:
        inputs = list(scene.inputs)
        inputs[scene.slot] = np.full(scene.x.shape, 2.0)
        if np.allclose(scene.forward(inputs, scene.params), 2.0) and scene.y.size < scene.x.size:
            return True
        if _divides_by(scene, n):
            return True
        once = scene.forward(scene.inputs, scene.params)
        twice = scene.forward([np.concatenate([x, x]) for x in scene.inputs], scene.params)
        return once.shape == () and bool(np.allclose(once, twice))
    except Exception:
        return False


def _divides_by(scene: Scene, n: float) -> bool:
    """Whether one number comes out, and a step on the way divides by n."""
    from tinyattn.check.paths import traced

    graph = traced(scene) if scene.y.shape == () else None
    divided = (
        [graph.nodes[node.inputs[1]] for node in graph.nodes if node.op_name == "divide"] if graph is not None else []
    )
    return any(
        each.kind == "constant" and each.shape == () and abs(float(each.value) - n) < 1e-7 * n for each in divided
    )


def _by_ratio(scene: Scene) -> Mistake | None:
    """Entry by entry off by x, y or a power of them."""
    got, want, x, y = scene.got, scene.want, scene.x, scene.y
    assert got is not None
    factors = {"x": x, "y": y} if y.shape in (x.shape, ()) else {"x": x}
    if (x > 0).all():
        factors["log(x)"] = np.log(x)
    names = scene.op.names_of(len(scene.inputs))
    for slot, other in enumerate(scene.inputs):
        if slot != scene.slot and other.shape == want.shape:
            factors[names[slot]] = other
            if (other > 0).all():
                factors[f"log({names[slot]})"] = np.log(other)
    for name, factor in factors.items():
        for power, words in (
            (1, f"a factor {name} too many"),
            (-1, f"a factor {name} is missing"),
            (2, f"multiplied by {name} where it is divided"),
            (-2, f"divided by {name} where it is multiplied"),
        ):
            for sign in (1.0, -1.0):
                candidate = sign * want * factor**power
                if scene.same(candidate):
                    return Mistake("wrong power", f"{words}{'' if sign > 0 else ', and the sign'}")
    return None


def _paths(scene: Scene) -> Candidates:
    from tinyattn.check.paths import candidates_by_path

    yield from candidates_by_path(scene)


_FAMILIES: tuple[Callable[[Scene], Candidates], ...] = (
    _of_softmax, _of_the_jacobian, _conditions, _transposes, _swapped, _other_parameters, _elsewhere, _paths,
)  # fmt: skip
