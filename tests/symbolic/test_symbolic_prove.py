"""What proves must also refuse: wrong lines, wrong rules, wrong tables."""

import numpy as np
import pytest
import sympy
from symbolic.models import attention
from symbolic.mutants import (
    AUTOMATIC,
    BY_HAND,
    MODELS,
    MUTATIONS,
    changed_result,
    clone,
    mutated_lines,
    with_rule,
)

import tinyattn as ta
from tinyattn.errors import ArgumentError
from tinyattn.ops import REGISTRY
from tinyattn.symbolic.canonical import Heads
from tinyattn.symbolic.comparing import compare_graph
from tinyattn.symbolic.derivation import Lines
from tinyattn.symbolic.explicit import CALLS, SIZES, prove_at_sizes
from tinyattn.symbolic.opbook import op_formulas
from tinyattn.symbolic.pulling import slopes
from tinyattn.symbolic.rules import ALL_SIZES, EXPLICIT, WRONG, prove_rule
from tinyattn.symbolic.terms import Index, Quantity, Term

# -- every rule of the rule book ------------------------------------------------------------------------------

# Operations with a call that no formula for all sizes covers; there SymPy decides at the sizes of the sampler.
AT_EXPLICIT_SIZES = {
    "prod": "a product over an axis",
    "index": "entries by number",
    "scatter_add": "entries by number",
    "take_along_axis": "entries by number",
    "put_along_axis": "entries by number",
    "concatenate": "entries by number",
    "stack": "entries by number",
    "pad": "entries by number",
    "reshape": "one that cuts across axes",
    "einsum": "a diagonal",
    "max": "of one number",
    "min": "of one number",
}


@pytest.mark.parametrize("op", REGISTRY.values(), ids=lambda op: op.name)
def test_rule_is_proved_for_all_sizes_or_agrees_with_sympy(op):
    verdicts = []
    for inputs, params in op.sample(np.random.default_rng(0)):
        proof = prove_rule(op, inputs, dict(zip(op.param_names, params, strict=True)))
        assert proof, str(proof)
        verdicts.append(proof.verdict)
    if op.name not in AT_EXPLICIT_SIZES:
        assert set(verdicts) == {ALL_SIZES}
    else:
        assert EXPLICIT in verdicts


@pytest.mark.parametrize("name", CALLS)
def test_rule_that_has_no_proof_for_all_sizes_agrees_with_sympy_at_sizes_1_to_4(name):
    proof = prove_at_sizes(REGISTRY[name])
    assert proof and proof.verdict == "agrees with SymPy at sizes 1, 2, 3, 4", str(proof)


def test_every_operation_without_proof_for_all_sizes_has_calls_at_explicit_ones():
    assert set(AT_EXPLICIT_SIZES) <= set(CALLS)
    with pytest.raises(ArgumentError, match="no calls of tanh"):
        prove_at_sizes(REGISTRY["tanh"])


def test_a_rule_with_a_case_of_its_own_at_the_kink_is_proved_away_from_it():
    """At base 0 the slope of a power to the exponent is 0 by convention; elsewhere it is y log(a)."""
    power = REGISTRY["power"]
    proof = prove_rule(power, [np.ones((2, 3)), np.ones(3)], {})
    assert proof.verdict == ALL_SIZES and "away from the kink" in proof.why and "base is 0" in proof.why
    wrong = changed_result(power, 1, lambda g: 2 * g)
    assert prove_rule(wrong, [np.full((2, 3), 1.5), np.full(3, 2.0)], {}).verdict == WRONG


def test_a_rule_that_is_right_for_two_numbers_only_is_refused_at_size_3():
    """For two numbers the slope of the product is the other one: x.sum() - x."""
    op = changed_result(REGISTRY["prod"], 0, lambda g: g)
    op.vjps = (lambda g, y, x, axis, keepdims: np.ones(x.shape) * _kept(g, axis, keepdims)
               * (x.sum(axis=axis, keepdims=True) - x if x.size > 1 else 1.0),)  # fmt: skip
    assert _of_one_axis(op, (2,)) and not _of_one_axis(op, (2, 3))


def _kept(g, axis, keepdims):
    return g if keepdims else np.expand_dims(g, axis)


def _of_one_axis(op, sizes):
    for size in sizes:
        inputs = [np.linspace(1.5, 2.5, size)]
        if not prove_rule(op, inputs, {"axis": (0,), "keepdims": False}):
            return False
    return True


@pytest.mark.parametrize("size", SIZES)
def test_norm_agrees_with_sympy_away_from_0_and_is_0_there(size):
    x = ta.tensor(np.linspace(0.5, 1.5, size), requires_grad=True, name="x")
    symbols = sympy.symbols(f"x:{size}", positive=True)
    length = sympy.sqrt(sum(symbol**2 for symbol in symbols))
    right = [float(length.diff(symbol).subs(dict(zip(symbols, x.data.tolist(), strict=True)))) for symbol in symbols]
    np.testing.assert_allclose(ta.grad(ta.norm(x), x), right, rtol=1e-14)
    zero = ta.tensor(np.zeros(size), requires_grad=True)
    np.testing.assert_array_equal(ta.grad(ta.norm(zero), zero), np.zeros(size))


@pytest.mark.parametrize(("old", "new", "definition"), [
    ((1, 2), (2, 1, 1), "y[i,j,k] = x[0,i]"), ((6,), (1, 2, 3), "y[k,i,j] = x[(i j)]"), ((1, 1), (), "y[] = x[0,0]"),
    ((2, 1, 3), (6, 1), "y[(i j),k] = x[i,0,j]"),
])  # fmt: skip
def test_reshape_that_adds_or_drops_axes_of_length_1_is_proved_for_all_sizes(old, new, definition):
    reshape, x = REGISTRY["reshape"], np.arange(float(np.prod(old, dtype=int))).reshape(old)
    assert reshape.definition_text((old,), {"shape": new}) == definition
    assert prove_rule(reshape, [x], {"shape": new}).verdict == ALL_SIZES


def test_rule_of_cross_entropy_is_proved_where_lengths_can_be_told_from_numbers():
    """Its rule divides by a count; with 53 rows and 59 classes the count is known for the number of rows."""
    rng = np.random.default_rng(0)
    for reduction in ("mean", "sum", "none"):
        params = {"targets": rng.integers(0, 59, 53), "ignore": None, "smoothing": 0.0, "reduction": reduction}
        assert prove_rule(REGISTRY["cross_entropy"], [rng.normal(size=(53, 59))], params).verdict == ALL_SIZES


@pytest.mark.parametrize("wrong_where_some", [True, False])
def test_a_rule_that_asks_whether_any_entry_is_0_must_be_right_whatever_the_answer(wrong_where_some):
    def rule(g, y, x):
        return g * (1 - y * y) * (2 if (g == 0).any() is wrong_where_some else 1)

    assert prove_rule(clone(REGISTRY["tanh"], (rule,)), [np.ones(3)], {}).verdict != ALL_SIZES


def test_a_rule_that_writes_in_place_is_proved():
    def rule(g, y, x):
        d = g * y
        np.multiply(d, y, out=d)
        d[g == 0] = 0
        return g - d

    assert prove_rule(clone(REGISTRY["tanh"], (rule,)), [np.ones(3)], {}).verdict == ALL_SIZES


# -- the table of derivatives ---------------------------------------------------------------------------------

FUNCTIONS = ("exp", "log", "sin", "cos", "tanh", "sigmoid", "erf")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivative_of_each_function_is_proved_by_sympy(name):
    x = sympy.Symbol("x", positive=True)
    claimed = _as_sympy(_slope(name), x)
    true = _functions(x)[name].diff(x)
    assert sympy.simplify((claimed - true).rewrite(sympy.exp)) == 0


# What has a kink is proved piece by piece: with both sides of the kink as symbols of their own.
PIECES = [
    ("abs", lambda t: (t,), lambda x: sympy.Piecewise((x, x > 0), (-x, True))),
    ("sign", lambda t: (t,), lambda x: sympy.Piecewise((1, x > 0), (-1, True))),
    ("maximum", lambda t: (t, 0), lambda x, y: sympy.Piecewise((x, x > y), (y, True))),  # relu
    ("maximum", lambda t: (t, sympy.Symbol("u", real=True)), lambda x, y: sympy.Piecewise((x, x > y), (y, True))),
    ("minimum", lambda t: (t, sympy.Symbol("u", real=True)), lambda x, y: sympy.Piecewise((x, x < y), (y, True))),
]


@pytest.mark.parametrize("side", [1, -1], ids=["above", "below"])
@pytest.mark.parametrize(("name", "at", "function"), PIECES, ids=["abs", "sign", "relu", "maximum", "minimum"])
def test_derivative_of_a_function_with_a_kink_is_proved_by_sympy_on_either_side(name, at, function, side):
    """With distance `step` > 0 from the kink, to one side of it; at the kink the slope is a convention."""
    x, y, step = sympy.Symbol("x", real=True), sympy.Symbol("y", real=True), sympy.Symbol("step", positive=True)
    point = at(side * step)
    if len(point) == 2 and point[1] != 0:
        point = (point[1] + side * step, point[1])
    arguments = (x, y)[: len(point)]
    place = dict(zip(arguments, point, strict=True))
    claimed = _slopes_at(name, point)
    for which, argument in enumerate(arguments):
        if which in claimed or point[which] != 0:
            true = function(*arguments).diff(argument).subs(place)
            assert sympy.simplify(claimed.get(which, 0) - true) == 0


def test_at_a_kink_the_slope_is_what_the_table_of_operations_says():
    u = sympy.Symbol("u", real=True)
    half = sympy.Rational(1, 2)
    assert _slopes_at("abs", (sympy.Integer(0),)) == {0: 0}
    assert _slopes_at("maximum", (sympy.Integer(0), 0)) == {0: 0}
    assert _slopes_at("maximum", (u, u)) == _slopes_at("minimum", (u, u)) == {0: half, 1: half}


def _slopes_at(name, point):
    """Give the claimed slopes at a point of SymPy numbers; 0 for an argument stays a number, as in relu."""
    heads, i = Heads(), Index(0)
    entries, values = [], {}
    for name_of, value in zip("xy", point, strict=False):
        quantity = Quantity(name_of, "value", 0, ((0,),))
        fixed = value == 0 and name_of == "y"
        entries.append(() if fixed else (Term(factors=((heads.of(quantity), (i,), 1),)),))
        values[name_of] = value
    head, at, _ = heads.make("fn", name, tuple(entries))
    return {
        which: sympy.simplify(sum((_piece(term, values) for term in slope), sympy.Integer(0)))
        for which, slope in slopes(heads, head, at) if entries[which]
    }  # fmt: skip


def _piece(term, values):
    product = sympy.Rational(str(term.coef))
    for head, _, power in term.factors:
        inner = [sum((_piece(each, values) for each in part), sympy.Integer(0)) for part in head.inners]
        if head.kind == "ref":
            base = values[head.data.name]
        elif head.kind == "cond":
            gap = sympy.simplify(inner[0] - inner[1])
            base = int(bool(gap == 0 if head.data == "==" else gap < 0))
        else:
            assert head.data == "sign"
            base = sympy.sign(inner[0])
        product *= base ** sympy.Rational(str(power))
    return product


def test_derivatives_of_a_power_are_proved_by_sympy():
    """Base and exponent stand in `x` and `x^2`; the derivative by each is taken with the other fixed."""
    heads = Heads()
    i = Index(0)
    x, a, b = sympy.Symbol("x", positive=True), sympy.Symbol("a", positive=True), sympy.Symbol("b", positive=True)
    entry = (Term(factors=((heads.of(Quantity("x", "value", 0, ((0,),))), (i,), 1),)),)
    square = (Term(factors=((entry[0].factors[0][0], (i,), 2),)),)
    head, at, _ = heads.make("fn", "power", (entry, square))
    true = {0: (a**b).diff(a), 1: (a**b).diff(b)}
    for which, slope in slopes(heads, head, at):
        at_point = true[which].subs({a: x, b: x**2})
        assert sympy.simplify(_as_sympy(slope, x) - at_point) == 0


def test_a_wrong_derivative_is_not_proved():
    x = sympy.Symbol("x", positive=True)
    assert sympy.simplify((_as_sympy(_slope("exp"), x) - sympy.log(x)).rewrite(sympy.exp)) != 0


def _slope(name):
    heads = Heads()
    i = Index(0)
    entry = Term(factors=((heads.of(Quantity("x", "value", 0, ((0,),))), (i,), 1),))
    head, at, _ = heads.make("fn", name, ((entry,),))
    ((_, slope),) = slopes(heads, head, at)
    return slope


def _functions(x):
    return {
        "exp": sympy.exp(x), "log": sympy.log(x), "sin": sympy.sin(x), "cos": sympy.cos(x), "tanh": sympy.tanh(x),
        "sigmoid": 1 / (1 + sympy.exp(-x)), "erf": sympy.erf(x),
    }  # fmt: skip


def _as_sympy(expr, x):
    total = sympy.Integer(0)
    for term in expr:
        product = sympy.Rational(str(term.coef))
        for head, _, power in term.factors:
            inner = [_as_sympy(each, x) for each in head.inners]
            if head.kind == "fn" and head.data == "power":
                product *= (inner[0] ** inner[1]) ** sympy.Rational(str(power))
                continue
            base = {"ref": lambda: x, "scalar": lambda: sympy.pi, "sum": lambda inner=inner: inner[0],
                    "fn": lambda head=head, inner=inner: _functions(inner[0])[head.data]}[head.kind]()  # fmt: skip
            product *= base ** sympy.Rational(str(power))
        total += product
    return total


# -- wrong lines ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_every_mutated_line_is_refused_and_names_the_operation(model, mutation):
    loss, leaves = model()
    derivation = ta.derive(loss, wrt=leaves)
    changed = 0
    for line, changes in mutated_lines(derivation, mutation):
        if not changes:
            assert mutation.idle, f"{mutation.name} should change {line.quantity.name}"
            assert derivation.prove(whole=False)
            continue
        changed += 1
        certificate = derivation.prove(whole=False)
        assert not certificate
        (claim,) = [each for each in certificate.refuted if each.node == line.node]
        assert claim.op and "gives" in claim.counterexample
    assert changed or mutation.name in ("missing length", "wrong transpose")
    assert derivation.prove(whole=False)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_mutated_line_is_seen_by_compare_too(model):
    """The formula then stands alone against the three others."""
    loss, leaves = model()
    graph = ta.Graph.of(loss, gradients=True)
    wanted = [next(node.index for node in graph.nodes if node.name == leaf.name) for leaf in leaves]
    lines = Lines(graph, wanted)
    for line in (each for each in lines.backward if each.node in wanted):
        right = line.expr
        line.expr = MUTATIONS[1](right)
        report = compare_graph(graph, wanted, ("autograd", "formula", "complex", "difference"), lines)
        assert not report and report.camps()[-1] == ["formula"] and len(report.camps()) == 2
        line.expr = right


def test_missing_softmax_correction_is_refused_with_numbers():
    loss, leaves = attention()
    derivation = ta.derive(loss, wrt=leaves)
    line = derivation.line_of("S")
    (term,) = line.expr
    P, _ = term.factors
    line.expr = (
        Term(1, (P, (derivation.lines.heads.of(derivation.lines.adjoint(derivation._index_of("P"))), line.out, 1))),
    )
    certificate = derivation.prove()
    assert not certificate and "softmax" in str(certificate) and "the definitions give" in str(certificate)


# -- wrong rules ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "slot", "name", "change"), AUTOMATIC, ids=[f"{row[0].name}{row[1]} {row[2]}" for row in AUTOMATIC]
)
def test_every_rule_with_wrong_sign_or_factor_is_refused(op, slot, name, change):
    inputs, params = op.sample(np.random.default_rng(0))[0]
    if slot >= len(inputs):
        pytest.skip("this call has fewer inputs")
    proof = prove_rule(changed_result(op, slot, change), inputs, dict(zip(op.param_names, params, strict=True)))
    assert proof.verdict == WRONG and proof.op == op.name and "gives" in proof.why


@pytest.mark.parametrize(
    ("name", "slot", "rule", "wrong", "sample"), BY_HAND, ids=[f"{row[0]}{row[1]} {row[3]}" for row in BY_HAND]
)
def test_rule_as_someone_might_write_it_wrongly_is_refused(name, slot, rule, wrong, sample):
    op = REGISTRY[name]
    mutant = with_rule(op, slot, rule)
    inputs, params = op.sample(np.random.default_rng(0))[sample]
    proof = prove_rule(mutant, inputs, dict(zip(op.param_names, params, strict=True)))
    assert proof.verdict == WRONG and proof.op == name


def test_the_catalogue_has_at_least_sixty_mutants():
    assert len(BY_HAND) + len(AUTOMATIC) >= 60


# -- formulas of operations -----------------------------------------------------------------------------------


def test_formulas_of_operations_come_from_the_definition():
    assert op_formulas(REGISTRY["matmul"], [(2, 3), (3, 4)], {}) == (
        "y_ib = Σ_a a_ia b_ab", ["ā_ia = Σ_b ȳ_ib b_ab", "b̄_ab = Σ_i ȳ_ib a_ia"],
    )  # fmt: skip
    formula, (words,) = op_formulas(REGISTRY["prod"], [(2, 3)], {"axis": (0,), "keepdims": False})
    assert "prod_" in formula and "cannot be expressed" in words
