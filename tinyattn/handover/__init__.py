"""Handing over: a recorded graph as a plain function, for JAX, for PyTorch, or as an ONNX file.

What is handed over is a result, a `Graph`, or better a function with an example of its arguments: then masks and
indices can be arguments too, and lengths may differ later.  What the operations mean in other libraries stands in
`tinyattn.handover.table`, in the few words of `tinyattn.handover.words`.  The libraries are imported when they are
needed, and not before.
"""

from __future__ import annotations

from tinyattn.handover.function import Function, to_function
from tinyattn.handover.jax_function import to_jax
from tinyattn.handover.onnx_file import to_onnx
from tinyattn.handover.table import TABLE, say
from tinyattn.handover.torch_module import to_torch
from tinyattn.handover.words import Words

__all__ = ["TABLE", "Function", "Words", "say", "to_function", "to_jax", "to_onnx", "to_torch"]
