"""The rule book: one `Op` record per operation, a file per family.

Everything here is plain NumPy and knows no Tensor.  ``REGISTRY`` holds every record by name; adding an op
means one record here and one short typed ``def`` in `tinyattn.functions`.
"""

from tinyattn.ops import elementwise, fused, indexing, linear, reductions, shape, softmax
from tinyattn.ops.record import REGISTRY, Call, Op, register

__all__ = [
    "REGISTRY", "Call", "Op", "elementwise", "fused", "indexing", "linear", "reductions", "register", "shape",
    "softmax",
]
