"""Valid calls of every public function that computes, with what PyTorch calls the same thing.

One table for several witnesses: differences, definitions, PyTorch.  ``ours`` takes the package and tensors,
``torchs`` takes PyTorch and its tensors; inputs are made by ``shapes`` from a seeded generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MASK = np.array([[True, False, True], [True, True, False]])
CAUSAL = np.tri(3, 3, dtype=bool)
TARGETS = np.array([2, 0, 1, 2])


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.5, 2.0, shape)


def anywhere(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape)


def away_from_zero(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.3, 2.0, shape) * rng.choice([-1.0, 1.0], shape)


def spread_out(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """No two entries are close, so that maxima and comparisons are decided."""
    return (rng.permutation(np.prod(shape, dtype=int)) * 0.37 - 1.1 + rng.uniform(0, 0.05)).reshape(shape)


@dataclass(frozen=True)
class PublicCall:
    """One valid call."""

    name: str
    ours: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    torchs: Callable[..., Any] | None = None
    numbers: Callable[..., np.ndarray] = anywhere
    label: str = ""

    def inputs(self, seed: int = 5) -> tuple[np.ndarray, ...]:
        rng = np.random.default_rng(seed)
        return tuple(np.asarray(self.numbers(rng, shape)) for shape in self.shapes)

    def __str__(self) -> str:
        return f"{self.name}-{self.label}" if self.label else self.name


def _elementwise() -> list[PublicCall]:
    same = ["negative", "exp", "sin", "cos", "tanh", "sigmoid", "erf", "square"]
    calls = [
        PublicCall(n, lambda ta, x, n=n: getattr(ta, n)(x), ((2, 3),), lambda torch, x, n=n: getattr(torch, n)(x))
        for n in same
    ]
    calls += [
        PublicCall(
            n,
            lambda ta, x, n=n: getattr(ta, n)(x),
            ((2, 3),),
            lambda torch, x, n=n: getattr(torch, n)(x),
            positive,
        )
        for n in ("log", "sqrt", "reciprocal")
    ]
    calls += [
        PublicCall(
            n,
            lambda ta, x, n=n: getattr(ta, n)(x),
            ((2, 3),),
            lambda torch, x, n=n: getattr(torch, n)(x),
            away_from_zero,
        )
        for n in ("abs", "relu")
    ]
    functional = [("softplus", "softplus"), ("silu", "silu"), ("gelu", "gelu")]
    calls += [
        PublicCall(
            n,
            lambda ta, x, n=n: getattr(ta, n)(x),
            ((2, 3),),
            lambda torch, x, m=m: getattr(torch.nn.functional, m)(x),
        )
        for n, m in functional
    ]
    return [
        *calls,
        PublicCall(
            "gelu",
            lambda ta, x: ta.gelu(x, "tanh"),
            ((2, 3),),
            lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
            label="tanh",
        ),
        PublicCall(
            "leaky_relu",
            lambda ta, x: ta.leaky_relu(x, 0.2),
            ((2, 3),),
            lambda torch, x: torch.nn.functional.leaky_relu(x, 0.2),
            away_from_zero,
        ),
        PublicCall("power", lambda ta, x: ta.power(x, 3), ((2, 3),), lambda torch, x: x**3, label="whole"),
        PublicCall("power", lambda ta, x: x**-2, ((2, 3),), lambda torch, x: x**-2, away_from_zero, "negative"),
        PublicCall("power", lambda ta, x: x**0, ((2, 3),), lambda torch, x: x**0, label="zero"),
        PublicCall("power", lambda ta, x: 2.0**x, ((2, 3),), lambda torch, x: 2.0**x, label="of-number"),
        PublicCall(
            "clip",
            lambda ta, x: ta.clip(x, -0.5, 0.8),
            ((2, 3),),
            lambda torch, x: torch.clamp(x, -0.5, 0.8),
            spread_out,
        ),
        PublicCall(
            "where",
            lambda ta, a, b: ta.where(MASK, a, b),
            ((2, 3), (3,)),
            lambda torch, a, b: torch.where(torch.tensor(MASK), a, b),
        ),
        PublicCall(
            "masked_fill",
            lambda ta, x: ta.masked_fill(x, MASK, -7.0),
            ((2, 3),),
            lambda torch, x: x.masked_fill(torch.tensor(MASK), -7.0),
        ),
        PublicCall("astype", lambda ta, x: ta.astype(ta.astype(x, "float32"), float) * 0 + x, ((2, 3),)),
    ]


def _binary() -> list[PublicCall]:
    forms = [
        ("same", ((2, 3), (2, 3))),
        ("row", ((2, 3), (3,))),
        ("both", ((2, 1), (3,))),
        ("number", ((), (2, 3))),
    ]
    calls = []
    for label, shapes in forms:
        for n in ("add", "subtract", "multiply", "divide"):
            torchs = lambda torch, a, b, n=n: getattr(torch, n)(a, b)
            calls.append(
                PublicCall(n, lambda ta, a, b, n=n: getattr(ta, n)(a, b), shapes, torchs, away_from_zero, label)
            )
        calls.append(
            PublicCall(
                "power",
                lambda ta, a, b: ta.power(a, b),
                shapes,
                lambda torch, a, b: torch.pow(a, b),
                positive,
                label,
            )
        )
        for n in ("maximum", "minimum"):
            torchs = lambda torch, a, b, n=n: getattr(torch, n)(a, b + 0.11)
            calls.append(
                PublicCall(n, lambda ta, a, b, n=n: getattr(ta, n)(a, b + 0.11), shapes, torchs, spread_out, label)
            )
    return calls


def _reductions() -> list[PublicCall]:
    calls = []
    for label, axis, keep in (("all", None, False), ("last", -1, True), ("two", (0, 2), False)):
        for n in ("sum", "mean"):
            torchs = lambda torch, x, n=n, axis=axis, keep=keep: getattr(torch, n)(
                x, dim=(0, 1, 2) if axis is None else axis, keepdim=keep
            )
            calls.append(
                PublicCall(
                    n,
                    lambda ta, x, n=n, a=axis, k=keep: getattr(ta, n)(x, a, k),
                    ((2, 3, 4),),
                    torchs,
                    label=label,
                )
            )
        for n, theirs in (("max", "amax"), ("min", "amin")):
            torchs = lambda torch, x, n=theirs, axis=axis, keep=keep: getattr(torch, n)(
                x, dim=(0, 1, 2) if axis is None else axis, keepdim=keep
            )
            calls.append(
                PublicCall(
                    n,
                    lambda ta, x, n=n, a=axis, k=keep: getattr(ta, n)(x, a, k),
                    ((2, 3, 4),),
                    torchs,
                    spread_out,
                    label,
                )
            )
        for n in ("var", "std"):
            torchs = lambda torch, x, n=n, axis=axis, keep=keep: getattr(torch, n)(
                x, dim=(0, 1, 2) if axis is None else axis, correction=1, keepdim=keep
            )
            calls.append(
                PublicCall(
                    n,
                    lambda ta, x, n=n, a=axis, k=keep: getattr(ta, n)(x, a, 1, k),
                    ((2, 3, 4),),
                    torchs,
                    label=label,
                )
            )
        calls.append(
            PublicCall(
                "norm",
                lambda ta, x, a=axis, k=keep: ta.norm(x, a, k),
                ((2, 3, 4),),
                lambda torch, x, axis=axis, keep=keep: torch.linalg.vector_norm(x, dim=axis, keepdim=keep),
                label=label,
            )
        )
        calls.append(
            PublicCall(
                "logsumexp",
                lambda ta, x, a=axis, k=keep: ta.logsumexp(x, a, k),
                ((2, 3, 4),),
                lambda torch, x, axis=axis, keep=keep: torch.logsumexp(
                    x, dim=(0, 1, 2) if axis is None else axis, keepdim=keep
                ),
                label=label,
            )
        )
    return [
        *calls,
        PublicCall("prod", lambda ta, x: ta.prod(x, 1), ((2, 3),), lambda torch, x: torch.prod(x, 1)),
        PublicCall(
            "prod",
            lambda ta, x: ta.prod(x * MASK),
            ((2, 3),),
            lambda torch, x: torch.prod(x * torch.tensor(MASK)),
            label="zeros",
        ),
        PublicCall("size_of", lambda ta, x: x * ta.size_of(x, -1), ((2, 3),), lambda torch, x: x * x.shape[-1]),
    ]


def _products() -> list[PublicCall]:
    shapes = {
        "matrices": ((2, 3), (3, 4)),
        "vectors": ((3,), (3,)),
        "matrix-vector": ((2, 3), (3,)),
        "vector-matrix": ((3,), (3, 4)),
        "batches": ((2, 2, 3), (2, 3, 4)),
        "batch-matrix": ((2, 2, 3), (3, 4)),
        "stretched": ((2, 1, 2, 3), (4, 3, 2)),
        "batch-vector": ((2, 2, 3), (3,)),
        "vector-batch": ((3,), (2, 3, 4)),
    }
    calls = [
        PublicCall("matmul", lambda ta, a, b: ta.matmul(a, b), s, lambda torch, a, b: torch.matmul(a, b), label=label)
        for label, s in shapes.items()
    ]
    subscripts = {
        "ij,jk->ik": ((2, 3), (3, 4)),
        "ii->i": ((3, 3),),
        "ii": ((3, 3),),
        "iij->ij": ((2, 2, 3),),
        "i,j->ji": ((2,), (3,)),
        "bhid,bhjd->bhij": ((2, 2, 3, 2), (2, 2, 4, 2)),
        "...ij,...jk->...ik": ((2, 2, 3), (2, 3, 2)),
        "ij,kj,k->i": ((2, 3), (4, 3), (4,)),
        "ij->": ((2, 3),),
        "ij,ij->ij": ((2, 3), (2, 3)),
        "ijj->": ((2, 3, 3),),
    }
    calls += [
        PublicCall(
            "einsum",
            lambda ta, *xs, t=text: ta.einsum(t, *xs),
            s,
            lambda torch, *xs, t=text: torch.einsum(t, *xs),
            label=text.replace("...", "etc"),
        )
        for text, s in subscripts.items()
    ]
    return [
        *calls,
        PublicCall("dot", lambda ta, a, b: ta.dot(a, b), ((3,), (3,)), lambda torch, a, b: torch.dot(a, b)),
        PublicCall("outer", lambda ta, a, b: ta.outer(a, b), ((2,), (3,)), lambda torch, a, b: torch.outer(a, b)),
        PublicCall("trace", lambda ta, x: ta.trace(x), ((3, 3),), lambda torch, x: torch.trace(x)),
        PublicCall(
            "cosine_similarity",
            lambda ta, a, b: ta.cosine_similarity(a, b),
            ((2, 3), (2, 3)),
            lambda torch, a, b: torch.nn.functional.cosine_similarity(a, b, dim=-1),
        ),
    ]


def _shapes() -> list[PublicCall]:
    x3 = ((2, 3, 4),)
    rows = np.array([0, 1, 1, 0])
    along = np.array([[[0, 2, 1, 1]], [[2, 2, 0, 1]]])
    return [
        PublicCall("reshape", lambda ta, x: ta.reshape(x, 4, -1), x3, lambda torch, x: x.reshape(4, -1)),
        PublicCall("transpose", lambda ta, x: ta.transpose(x, (2, 0, 1)), x3, lambda torch, x: x.permute(2, 0, 1)),
        PublicCall("transpose", lambda ta, x: ta.transpose(x), x3, lambda torch, x: x.permute(2, 1, 0), label="all"),
        PublicCall("matrix_transpose", lambda ta, x: ta.matrix_transpose(x), x3, lambda torch, x: x.mT),
        PublicCall("swapaxes", lambda ta, x: ta.swapaxes(x, 0, -1), x3, lambda torch, x: x.swapaxes(0, -1)),
        PublicCall("moveaxis", lambda ta, x: ta.moveaxis(x, 0, -1), x3, lambda torch, x: x.moveaxis(0, -1)),
        PublicCall("expand_dims", lambda ta, x: ta.expand_dims(x, 1), x3, lambda torch, x: x.unsqueeze(1)),
        PublicCall("squeeze", lambda ta, x: ta.squeeze(x), ((2, 1, 3, 1),), lambda torch, x: x.squeeze()),
        PublicCall(
            "broadcast_to",
            lambda ta, x: ta.broadcast_to(x, (2, 2, 3)),
            ((2, 1),),
            lambda torch, x: x.expand(2, 2, 3),
        ),
        PublicCall("flip", lambda ta, x: ta.flip(x, (0, 2)), x3, lambda torch, x: x.flip((0, 2))),
        PublicCall(
            "concatenate",
            lambda ta, *xs: ta.concatenate(xs, axis=-1),
            ((2, 1), (2, 3), (2, 2)),
            lambda torch, *xs: torch.cat(xs, dim=-1),
        ),
        PublicCall(
            "stack",
            lambda ta, *xs: ta.stack(xs, axis=1),
            ((2, 3), (2, 3)),
            lambda torch, *xs: torch.stack(xs, dim=1),
        ),
        PublicCall(
            "split",
            lambda ta, x: ta.concatenate([p * (i + 1) for i, p in enumerate(ta.split(x, 2, axis=2))], axis=2),
            x3,
            lambda torch, x: torch.cat([p * (i + 1) for i, p in enumerate(torch.split(x, 2, dim=2))], dim=2),
        ),
        PublicCall(
            "pad",
            lambda ta, x: ta.pad(x, ((1, 0), (0, 2)), 1.5),
            ((2, 3),),
            lambda torch, x: torch.nn.functional.pad(x, (0, 2, 1, 0), value=1.5),
        ),
        PublicCall("index", lambda ta, x: x[1, :, ::2], x3, lambda torch, x: x[1, :, ::2], label="basic"),
        PublicCall("index", lambda ta, x: x[rows], x3, lambda torch, x: x[torch.tensor(rows)], label="rows-twice"),
        PublicCall("index", lambda ta, x: ta.index(x, MASK), x3, lambda torch, x: x[torch.tensor(MASK)], label="mask"),
        PublicCall(
            "index",
            lambda ta, x: x[rows, :, np.array([3, 0, 0, 3])],
            x3,
            lambda torch, x: x[torch.tensor(rows), :, torch.tensor([3, 0, 0, 3])],
            label="pairs",
        ),
        PublicCall("index", lambda ta, x: x[..., None, 1], x3, lambda torch, x: x[..., None, 1], label="ellipsis"),
        PublicCall(
            "take_along_axis",
            lambda ta, x: ta.take_along_axis(x, along, axis=1),
            x3,
            lambda torch, x: torch.take_along_dim(x, torch.tensor(along), dim=1),
        ),
        PublicCall(
            "embedding",
            lambda ta, table: ta.embedding(table, [[0, 2], [2, 2]]),
            ((3, 4),),
            lambda torch, table: torch.nn.functional.embedding(torch.tensor([[0, 2], [2, 2]]), table),
        ),
    ]


def _layers() -> list[PublicCall]:
    def torch_ce(torch: Any, x: Any, **options: Any) -> Any:
        return torch.nn.functional.cross_entropy(x, torch.tensor(TARGETS), **options)

    forms = [
        {},
        {"ignore_index": 2},
        {"label_smoothing": 0.1},
        {"reduction": "sum"},
        {"reduction": "none", "label_smoothing": 0.2},
        {"ignore_index": 0, "label_smoothing": 0.1, "reduction": "mean"},
    ]
    calls = [
        PublicCall(
            "cross_entropy",
            lambda ta, x, f=form: ta.cross_entropy(x, TARGETS, **f),
            ((4, 3),),
            # PyTorch's own default for ignore_index is out of range here
            lambda torch, x, f=form: torch_ce(torch, x, **f),
            label="-".join(form) or "plain",
        )
        for form in forms
    ]
    for label, options in (
        ("plain", {}),
        ("causal", {"causal": True}),
        ("masked", {"keep": CAUSAL}),
        ("scale", {"scale": 0.3}),
    ):
        theirs = {
            "plain": {},
            "causal": {"is_causal": True},
            "masked": {"attn_mask": CAUSAL},
            "scale": {"scale": 0.3},
        }[label]

        def torchs(torch: Any, q: Any, k: Any, v: Any, theirs: Any = theirs) -> Any:
            named = {n: torch.tensor(o) if isinstance(o, np.ndarray) else o for n, o in theirs.items()}
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, **named)

        calls.append(
            PublicCall(
                "scaled_dot_product_attention",
                lambda ta, q, k, v, o=options: ta.scaled_dot_product_attention(q, k, v, **o),
                ((2, 3, 4), (2, 3, 4), (2, 3, 5)),
                torchs,
                label=label,
            )
        )
    return [
        *calls,
        PublicCall("softmax", lambda ta, x: ta.softmax(x, 0), ((3, 2),), lambda torch, x: torch.softmax(x, 0)),
        PublicCall(
            "softmax",
            lambda ta, x: ta.softmax(x, keep=MASK),
            ((2, 3),),
            lambda torch, x: torch.softmax(x.masked_fill(~torch.tensor(MASK), -torch.inf), -1),
            label="keep",
        ),
        PublicCall(
            "log_softmax",
            lambda ta, x: ta.log_softmax(x),
            ((3, 2),),
            lambda torch, x: torch.log_softmax(x, -1),
        ),
        PublicCall(
            "layer_norm",
            lambda ta, x, g, b: ta.layer_norm(x, g, b, 1e-3),
            ((2, 3, 4), (4,), (4,)),
            lambda torch, x, g, b: torch.nn.functional.layer_norm(x, (4,), g, b, 1e-3),
        ),
        PublicCall(
            "rms_norm",
            lambda ta, x, g: ta.rms_norm(x, g, 1e-3),
            ((2, 4), (4,)),
            lambda torch, x, g: torch.nn.functional.rms_norm(x, (4,), g, 1e-3),
        ),
        PublicCall(
            "mse",
            lambda ta, a, b: ta.mse(a, b),
            ((2, 3), (2, 3)),
            lambda torch, a, b: torch.nn.functional.mse_loss(a, b),
        ),
        PublicCall(
            "binary_cross_entropy_with_logits",
            lambda ta, x: ta.binary_cross_entropy_with_logits(x, MASK),
            ((2, 3),),
            lambda torch, x: torch.nn.functional.binary_cross_entropy_with_logits(x, torch.tensor(MASK).double()),
        ),
        PublicCall("dropout", lambda ta, x: ta.dropout(x, 0.4, rng=3), ((3, 4),)),
    ]


CALLS = [*_elementwise(), *_binary(), *_reductions(), *_products(), *_shapes(), *_layers()]

NOT_IN_THE_TABLE = {
    "tensor": "makes leaves",
    "one_hot": "takes whole numbers only",
    "apply": "records any op",
    "grad": "transform",
    "value_and_grad": "transform",
    "vjp": "transform",
    "jvp": "transform",
    "jacobian": "transform",
    "hessian": "transform",
    "hvp": "transform",
    "elementwise_grad": "transform",
    "no_grad": "switch",
    "scope": "switch",
}
