"""A new operation is one record and one short ``def``, under 20 lines; everything else follows by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from repository import script
from support import close, differences, first_along, gradients, second_gradients

import tinyattn as ta
from tinyattn.ops import REGISTRY, Op

# What a user writes, exactly; run in the fixture below and taken out of the rule book again.
LOGADDEXP = '''
from tinyattn.ops import Op, register
from tinyattn.ops.helpers import sum_to

_logaddexp = register(Op(
    "logaddexp",
    np.logaddexp,
    (lambda g, y, a, b: sum_to(g * np.exp(a - y), a.shape),
     lambda g, y, a, b: sum_to(g * np.exp(b - y), b.shape)),
    "y[...] = log(exp(a[...]) + exp(b[...]))",
    inputs=("a", "b"),
    composed=lambda a, b: np.log(np.exp(a) + np.exp(b)),
    sample=lambda rng: [((rng.normal(size=(2, 3)), rng.normal(size=3)), ())],
))


def logaddexp(a: ta.Tensor, b: ta.Tensor) -> ta.Tensor:
    """Add two numbers that are given by their logarithms, and give the logarithm of the sum.

    >>> logaddexp(ta.tensor(0.0), ta.tensor(0.0))
    tensor(0.69314718, shape=())
    """
    return _logaddexp(a, b)
'''
DOCSTRING = LOGADDEXP[LOGADDEXP.index('    """') : LOGADDEXP.rindex('"""') + 4]
SHAPES = ((2, 3), (3,))


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    """The names that the lines above define."""
    space: dict[str, Any] = {"np": np, "ta": ta, "__name__": "a_users_module"}
    exec(compile(LOGADDEXP, __file__, "exec"), space)
    yield space
    del REGISTRY["logaddexp"]


@pytest.fixture
def op(names: dict[str, Any]) -> Op:
    return REGISTRY["logaddexp"]


@pytest.fixture
def loss(names: dict[str, Any], rng: np.random.Generator) -> ta.Tensor:
    """A number that depends on two parameters by way of the new function."""
    a, b = (ta.tensor(rng.normal(size=shape), requires_grad=True, name=name) for shape, name in zip(SHAPES, "ab"))
    y = names["logaddexp"](a, b)
    return (y * y).sum()


def arrays(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.normal(size=shape) for shape in SHAPES]


def test_it_takes_fewer_than_20_lines() -> None:
    written = [line for line in LOGADDEXP.replace(DOCSTRING, "").split("\n") if line.strip()]
    assert len(written) < 20, written


def test_it_computes_what_numpy_computes(names: dict[str, Any], rng: np.random.Generator) -> None:
    a, b = arrays(rng)
    close(names["logaddexp"](ta.tensor(a), ta.tensor(b)).data, np.logaddexp(a, b), atol=0)


def test_its_gradient_agrees_with_differences(names: dict[str, Any], rng: np.random.Generator) -> None:
    inputs, g = arrays(rng), rng.normal(size=(2, 3))
    value = lambda *xs: names["logaddexp"](*map(ta.tensor, xs)).data
    for got, want in zip(gradients(names["logaddexp"], inputs, g), differences(value, inputs, g), strict=True):
        close(got, want, rtol=1e-8, atol=1e-9)


def test_its_second_order_agrees_with_differences_of_the_first(names: dict[str, Any], rng: np.random.Generator) -> None:
    inputs, g, directions = arrays(rng), rng.normal(size=(2, 3)), arrays(rng)
    f = names["logaddexp"]
    found = second_gradients(f, inputs, g, directions)
    for got, want in zip(found, first_along(f, inputs, g, directions), strict=True):
        close(got, want, rtol=1e-7, atol=1e-8)


def test_every_way_to_the_gradient_agrees(loss: ta.Tensor) -> None:
    report = ta.compare(ta.Graph.of(loss, gradients=True), ["a", "b"])
    assert report, str(report)
    assert set(report.found) >= {"autograd", "formula", "sympy", "difference"}


def test_its_rule_is_held_against_the_definition(op: Op) -> None:
    from tinyattn.symbolic.rules import prove_rule

    (inputs, params), *_ = op.sample(np.random.default_rng(0))
    assert prove_rule(op, inputs, dict(zip(op.param_names, params, strict=True)))


def test_a_wrong_rule_would_be_named(names: dict[str, Any], op: Op, rng: np.random.Generator) -> None:
    wrong = Op("logaddexp", op.forward, (op.vjps[0], op.vjps[0]), op.definition, inputs=("a", "b"), sample=op.sample)
    a, b = (ta.tensor(rng.normal(size=(2, 3)), requires_grad=True, name=name) for name in "ab")
    y = wrong(a, b)
    report = ta.compare((y * y).sum(), [a, b])
    assert not report and report.op == "logaddexp"


def test_its_gradient_is_derived_as_a_formula(loss: ta.Tensor) -> None:
    derivation = ta.derive(ta.Graph.of(loss), ["a", "b"])
    assert derivation.prove()
    assert "exp" in str(derivation)


def test_it_is_drawn(loss: ta.Tensor) -> None:
    pytest.importorskip("graphviz")
    import viz

    picture = viz.draw(loss, gradients=True)
    assert "logaddexp(a, b)" in picture.text
    assert "logaddexp" in picture.dot


def test_it_is_compiled_and_handed_over_by_its_composed_form(names: dict[str, Any], rng: np.random.Generator) -> None:
    from tinyattn import handover

    a, b = arrays(rng)
    f = lambda a: ta.sum(names["logaddexp"](a, b))
    want, slopes = ta.value_and_grad(f)(a)
    value, found = ta.value_and_grad(ta.compile(f))(a)
    close(value.data, want.data, rtol=1e-14)
    close(found.data, slopes.data, rtol=1e-14)
    handed = handover.to_function(f(ta.tensor(a, requires_grad=True)))
    close(handed(handed.parameters), want.data, rtol=1e-14)


def test_it_is_documented(names: dict[str, Any], root: Path) -> None:
    generate = script(root / "docs" / "generate.py")
    page = generate.operations_page(REGISTRY, generate.PUBLIC | {"logaddexp": names["logaddexp"]})
    (row,) = (line for line in page.split("\n") if line.startswith("| [`logaddexp`]"))
    _, _, formula, derivatives, *_ = row.split("|")
    assert formula.strip() == "`y_ia = log(exp(a_ia) + exp(b_a))`"
    assert derivatives.strip().startswith("`ā_ia = ȳ_ia exp(a_ia) / (") and "`b̄_a = " in derivatives
    assert "### logaddexp" in page and ">>> ta.logaddexp(ta.tensor(0.0)" in page


def test_bad_shapes_are_told_by_the_names_in_the_users_function(names: dict[str, Any]) -> None:
    with pytest.raises(ta.ShapeError, match=r"logaddexp\(a: \(2, 3\), b: \(4, 3\)\)"):
        names["logaddexp"](ta.tensor(np.zeros((2, 3))), ta.tensor(np.zeros((4, 3))))


def test_two_ops_of_one_name_are_refused(names: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="logaddexp"):
        exec(compile(LOGADDEXP, __file__, "exec"), {"np": np, "ta": ta, "__name__": "a_users_module"})


@pytest.mark.parametrize(
    "forward", [lambda x: float(x.sum()), lambda x: x.tolist(), lambda x: None], ids=["float", "list", "None"]
)
def test_a_forward_that_gives_no_array_is_refused_by_name(forward):
    op = Op("mine", forward, (lambda g, y, x: g,), "y[...] = x[...]", sample=lambda rng: [])
    with pytest.raises(ta.RuleError, match=r"the forward of mine gave a (float|list|NoneType), not an array"):
        ta.apply(op, (ta.tensor([1.0, 2.0]),))
