"""A recorded graph as a JAX function: `to_function` with the namespace ``jax.numpy``."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np

from tinyattn.errors import optional_library
from tinyattn.handover.function import Function
from tinyattn.handover.recording import Dynamic, record


def to_jax(what: Any, *args: Any, dynamic: Dynamic | None = None, model: Any = None) -> Function:
    """Make a JAX function of a recorded graph: for ``jit``, ``grad``, ``vmap`` and several devices.

    Parameters
    ----------
    what, *args, dynamic, model
        As in `to_function`.

    Returns
    -------
    Function
        ``f(parameters, *inputs)``; the parameters are a dictionary, which JAX takes as a tree.

    Raises
    ------
    MissingLibraryError
        When JAX is not installed.

    Warns
    -----
    UserWarning
        When float64 was recorded and JAX is set to compute in float32, which is how it starts.

    Examples
    --------
    >>> import jax, numpy as np, tinyattn as ta
    >>> w = ta.tensor(np.float32([3.0, 4.0]), requires_grad=True)
    >>> f = to_jax((w * w).sum())
    >>> jax.jit(jax.grad(f))(f.parameters)
    {'w': Array([6., 8.], dtype=float32)}
    """
    jax = optional_library("jax", "It is what the computation is handed over to.")
    program = record(what, args, dynamic, model)
    wide = any(argument.value.dtype == np.float64 for argument in program.arguments)
    if wide and jax.dtypes.canonicalize_dtype(np.float64) != np.float64:
        warnings.warn(
            "to_jax: float64 was recorded, and JAX computes in float32 until it is told otherwise: "
            'jax.config.update("jax_enable_x64", True), before anything else.',
            stacklevel=2,
        )
    return Function(program, import_module("jax.numpy"))
