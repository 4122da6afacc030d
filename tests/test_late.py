"""What a plain ``import tinyattn`` loads, and that what comes later is the same as if it had been there at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tinyattn as ta
from tinyattn.late import HOMES, PARTS

LATER = {
    "autodiff", "check", "composed", "elsewhere", "explain", "graph", "names", "numpy_protocol", "quick", "show",
    "transforms",
}  # fmt: skip


def said(code: str) -> list[str]:
    """The words that a program of its own prints."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_a_plain_import_loads_tensors_their_arithmetic_and_no_more() -> None:
    loaded = said("import sys, tinyattn; print(*(name for name in sys.modules if name.startswith('tinyattn.')))")
    families = {name for name in loaded if name.startswith("tinyattn.ops.")}
    assert {"tinyattn.tensor", "tinyattn.functions"} <= set(loaded)
    assert not {f"tinyattn.{name}" for name in LATER} & set(loaded)
    assert families == {f"tinyattn.ops.{name}" for name in ("record", "describing", "helpers", "elementwise", "linear")}


@pytest.mark.parametrize("used", ["ta.sum(x)", "ta.stack([x, x])", "x[[0, 0]]", "x @ x", "ta.softmax(x)"])
def test_the_registry_is_complete_and_in_one_order_whatever_was_used_first(used: str) -> None:
    from tinyattn.ops import REGISTRY

    start = f"import tinyattn as ta; x = ta.tensor([1.0]); {used}"
    assert said(f"{start}; from tinyattn.ops import REGISTRY; print(*REGISTRY)") == list(REGISTRY)


def test_an_operation_of_ones_own_stands_last_and_cannot_take_the_name_of_one_that_comes_later() -> None:
    code = """
from tinyattn.ops import Op, register
mine = lambda name: Op(name, lambda x: x, (lambda g, y, x: g,), "y[...] = x[...]", sample=lambda rng: [])
register(mine("mine"))
try:
    register(mine("softmax"))
except ValueError as error:
    from tinyattn.ops import REGISTRY
    print(list(REGISTRY)[-1], error)
"""
    assert said(code) == "mine there is already an op named 'softmax'".split()


@pytest.mark.parametrize("first", [
    "x.mean()", "ta.Tensor.mean(x)", "copy.copy(x)", "np.from_dlpack(x.detach())", "np.exp(x)", "x._repr_html_()",
    "ta.grad(lambda x: x * x)(2.0)", "ta.Graph.of(x)", "ta.nn", "float(x.mean().grad is None)",
])  # fmt: skip
def test_each_part_may_be_what_a_program_uses_first(first: str) -> None:
    start = "import copy, warnings; warnings.simplefilter('ignore'); import numpy as np, tinyattn as ta; "
    assert said(f"{start}x = ta.tensor([1.0, 3.0], requires_grad=True); {first}; print('done')") == ["done"]


def test_an_error_is_explained_although_nothing_failed_before() -> None:
    code = "import tinyattn as ta\ntry: ta.tensor([1.0]) @ ta.tensor([1.0, 2.0])\nexcept ta.ShapeError as e: print(e)"
    assert "matmul(tensor: (1,), tensor: (2,))" in " ".join(said(code))


def test_every_public_name_can_be_listed_and_had() -> None:
    assert {*ta.__all__, *HOMES, *PARTS} <= set(dir(ta)) and len(set(ta.__all__)) == len(ta.__all__)
    assert said("import tinyattn as ta; print('derive' in dir(ta), 'train' in dir(ta))") == ["True", "True"]
    assert all(hasattr(ta, name) for name in [*ta.__all__, *HOMES, *PARTS])
    assert set(HOMES) - set(ta.__all__) == {"derive", "compare", "check_gradients", "check_rule"}
    assert vars(ta)["grad"] is ta.grad, "the second time it is simply there"


@pytest.mark.parametrize("text", ["ta.nonsense", "ta.ops.nonsense", "ta.explain.nonsense", "ta.check.nonsense"])
def test_what_is_nowhere_is_not_found(text: str) -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        eval(text)


def test_a_part_gives_its_place_to_the_module_once_it_was_asked_for_something() -> None:
    """So whatever is changed in the module, by a test's monkeypatch, by a reload, is changed for the engine as well."""
    code = """
import tinyattn as ta, tinyattn.arguments as arguments, tinyattn.functions as functions
first = functions.explain
import tinyattn.explain as module
right, module.failed_call = module.failed_call, lambda *_: ta.ShapeError("other words")
for words in (module.failed_call, right):
    module.failed_call = words
    try:
        ta.tensor([1.0, 2.0]) @ ta.tensor([1.0])
    except ta.ShapeError as error:
        print(str(error).split("(")[0].replace(" ", "-"))
print(first is module, first.stale is module.stale, arguments.explain is module is functions.explain)
"""
    assert said(code) == ["other-words", "matmul", "False", "True", "True"]


def test_the_registry_stays_as_it_is_while_somebody_goes_through_it() -> None:
    code = """
import tinyattn as ta
from tinyattn.ops import REGISTRY
print(sum(1 for name in REGISTRY if ta.compile) == len(REGISTRY))  # it asks for the registry when it is loaded
"""
    assert said(code) == ["True"]


def test_a_method_that_comes_late_may_be_reached_by_super() -> None:
    code = """
import numpy as np, tinyattn as ta
from tinyattn.tensor import new_leaf
class Loud(ta.Tensor):
    def mean(self):
        print("once")
        return super().mean()
print(float(new_leaf(Loud, np.array([1.0, 3.0]), False).mean()))
"""
    assert said(code) == ["once", "2.0"]
