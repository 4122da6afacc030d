"""What comes with its first use only, so that a plain ``import tinyattn`` loads no more than every program needs.

For parts of the engine something small stands in until then: ``from tinyattn import explain`` takes it, and need not
know.  Public names such as ``ta.grad`` are fetched by the package's ``__getattr__``.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

PARTS = {"nn", "optim", "train", "weights", "torch_state", "models", "data", "check", "symbolic", "learn", "handover"}
"""Modules that are attributes of the package: ``ta.nn``."""

HOMES = {
    "compile": "compiled", "backward_in_parts": "parts", "detect_nan": "detect", "set_threads": "kernels.threads",
    "show_versions": "versions", "derive": "symbolic", "compare": "symbolic", "check_gradients": "check",
    "check_rule": "check", "sweep": "sweeps", "Graph": "graph",
    **dict.fromkeys(
        ("elementwise_grad", "grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"), "transforms"
    ),
    **dict.fromkeys(
        ("binary_cross_entropy_with_logits", "cosine_similarity", "dot", "dropout", "embedding", "flip", "gelu",
         "leaky_relu", "logsumexp", "masked_fill", "mean", "moveaxis", "mse", "norm", "one_hot", "outer",
         "reciprocal", "rms_norm", "silu", "softplus", "split", "square", "std", "swapaxes", "trace", "var"),
        "composed",
    ),
}  # fmt: skip
"""Where the other public names are that a plain import does not load."""

FAMILIES = ("elementwise", "reductions", "softmax", "fused", "indexing", "linear", "shape")
"""The families of operations in `tinyattn.ops`, in the order of the registry."""


def public(name: str) -> Any:
    """What ``ta.name`` is, loaded now; the next time it is simply there."""
    if name in PARTS:
        return import_module(f"tinyattn.{name}")
    if name in HOMES:
        return of_package("tinyattn", HOMES, name)
    raise AttributeError(import_module("tinyattn.elsewhere").missing(name))


def of_package(package: str, homes: Mapping[str, str], name: str) -> Any:
    """What ``package.name`` is, from the module of that package that ``homes`` names; the next time it is simply there.

    >>> of_package("tinyattn.learn", {"grade": "grading"}, "grade").__module__
    'tinyattn.learn.grading'
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    found = getattr(import_module(f"{package}.{homes[name]}"), name)
    setattr(sys.modules[package], name, found)
    return found


def of_the_book(name: str) -> Any:
    """What ``ops.name`` is: the registry, complete and in order whichever family was used first, or `register`."""
    if name not in ("REGISTRY", "register"):
        raise AttributeError(f"module 'tinyattn.ops' has no attribute {name!r}")
    record = import_module("tinyattn.ops.record")
    families = [import_module(f"tinyattn.ops.{family}") for family in FAMILIES]
    ours = {op.name: op for family in families for op in vars(family).values() if isinstance(op, record.Op)}
    with _ordering:
        whole = ours | record.REGISTRY
        if list(whole) != list(record.REGISTRY):  # once: the next to ask may do so while somebody goes through it
            for each in whole:
                record.REGISTRY[each] = record.REGISTRY.pop(each)
    return getattr(record, name)


_ordering = allocate_lock()


class Part(ModuleType):
    """Stands in for a module; with the first thing that it is asked for, the module takes its place everywhere."""

    def __getattr__(self, name: str) -> Any:
        module = import_module(self.__name__)
        for holder in [holder for each, holder in list(sys.modules.items()) if each.startswith("tinyattn")]:
            for key in [key for key, value in list(vars(holder).items()) if value is self]:
                setattr(holder, key, module)
        return getattr(module, name)


class Method:
    """Stands in for a method that a module gives to a class as soon as it is loaded."""

    def __init__(self, name: str, module: str) -> None:
        self.name, self.module = name, module

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        module = import_module(self.module)
        return vars(module.Tensor)[self.name].__get__(instance, owner)  # also where a subclass calls it by super()


def stand_in(package: str, *modules: str) -> None:
    """Put a `Part` into a package for each of some modules; importing one of them replaces it by the module."""
    for name in modules:
        setattr(sys.modules[package], name, Part(f"{package}.{name}"))


stand_in("tinyattn", "autodiff", "explain", "names", "numpy_protocol")
