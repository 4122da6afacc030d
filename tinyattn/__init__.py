"""tinyattn: automatic differentiation and self-attention, small enough to read.

>>> import tinyattn as ta
>>> x = ta.tensor([1.0, 2.0], requires_grad=True)
>>> loss = (x * x).sum()
>>> loss.backward()
>>> x.grad
array([2., 4.])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyattn import late  # first: it says what a plain import does not load

# isort: split
from tinyattn.tensor import Tensor, apply, tensor  # second: the parts of the engine import each other through it

# isort: split
from tinyattn.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DataFileError,
    DTypeError,
    GradientLost,
    GraphError,
    IndexRangeError,
    MissingFileError,
    MissingLibraryError,
    MissingToolError,
    NanError,
    RuleError,
    ShapeError,
    SweepError,
    TinyattnError,
)
from tinyattn.functions import (
    abs,
    add,
    astype,
    broadcast_to,
    clip,
    concatenate,
    cos,
    cross_entropy,
    divide,
    einsum,
    erf,
    exp,
    expand_dims,
    index,
    layer_norm,
    log,
    log_softmax,
    matmul,
    matrix_transpose,
    max,
    maximum,
    min,
    minimum,
    multiply,
    negative,
    pad,
    power,
    prod,
    relu,
    reshape,
    scaled_dot_product_attention,
    sigmoid,
    sin,
    size_of,
    softmax,
    sqrt,
    squeeze,
    stack,
    subtract,
    sum,
    take_along_axis,
    tanh,
    transpose,
    where,
)
from tinyattn.mode import no_grad, no_names, scope
from tinyattn.ops import Op

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tinyattn.compiled import compile
    from tinyattn.composed import (
        binary_cross_entropy_with_logits,
        cosine_similarity,
        dot,
        dropout,
        embedding,
        flip,
        gelu,
        leaky_relu,
        logsumexp,
        masked_fill,
        mean,
        moveaxis,
        mse,
        norm,
        one_hot,
        outer,
        reciprocal,
        rms_norm,
        silu,
        softplus,
        split,
        square,
        std,
        swapaxes,
        trace,
        var,
    )
    from tinyattn.detect import detect_nan
    from tinyattn.graph import Graph
    from tinyattn.kernels.threads import set_threads
    from tinyattn.parts import backward_in_parts
    from tinyattn.sweeps import sweep
    from tinyattn.transforms import elementwise_grad, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
    from tinyattn.versions import show_versions


def __getattr__(name: str) -> Any:
    return late.public(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *late.HOMES, *late.PARTS})


# Written out, because type checkers take it as the list of what is public.
__all__ = [
    "ArgumentError", "ArgumentTypeError", "AxisError", "DTypeError", "DataFileError", "GradientLost",
    "Graph", "GraphError", "IndexRangeError", "MissingFileError", "MissingLibraryError", "MissingToolError", "NanError",
    "Op", "RuleError", "ShapeError", "SweepError", "Tensor", "TinyattnError", "abs", "add", "apply", "astype",
    "backward_in_parts", "binary_cross_entropy_with_logits", "broadcast_to", "clip", "compile", "concatenate", "cos",
    "cosine_similarity", "cross_entropy", "detect_nan", "divide", "dot", "dropout", "einsum", "elementwise_grad",
    "embedding", "erf", "exp", "expand_dims", "flip", "gelu", "grad", "hessian", "hvp", "index",
    "jacobian", "jvp", "layer_norm", "leaky_relu", "log", "log_softmax", "logsumexp", "masked_fill",
    "matmul", "matrix_transpose", "max", "maximum", "mean", "min", "minimum", "moveaxis", "mse",
    "multiply", "negative", "no_grad", "no_names", "norm", "one_hot", "outer", "pad", "power", "prod", "reciprocal",
    "relu", "reshape", "rms_norm", "scaled_dot_product_attention", "scope", "set_threads", "show_versions",
    "sigmoid", "silu", "sin", "size_of", "softmax", "softplus", "split", "sqrt", "square", "squeeze", "stack",
    "std", "subtract", "sum", "swapaxes", "sweep", "take_along_axis", "tanh", "tensor", "trace", "transpose",
    "value_and_grad", "var", "vjp", "where",
]  # fmt: skip
