"""SymPy, from the definitions alone, gives the gradients that the engine gives; and it gives others when they are
others.
"""

import numpy as np
import pytest
from symbolic.models import MODELS, attention, causal, relu_attention, self_attention

import tinyattn as ta
from tinyattn.errors import ArgumentError
from tinyattn.ops import REGISTRY
from tinyattn.symbolic.opbook import weighted_sum
from tinyattn.symbolic.referee import sympy_gradients
from tinyattn.symbolic.whole import WholeLoss, evaluate_derivative

QUICK = [
    model
    for model in MODELS
    if model.__name__ not in ("transformer_block", "multi_head", "hessian_vector", "fused_attention")
]


def _graph(model, **sizes):
    loss, leaves = model(**sizes)
    graph = ta.Graph.of(loss, gradients=True)
    wanted = [next(node.index for node in graph.nodes if node.name == leaf.name) for leaf in leaves]
    return graph, wanted


@pytest.mark.parametrize("model", QUICK, ids=lambda model: model.__name__)
def test_engine_agrees_with_sympy_operation_by_operation(model):
    graph, leaves = _graph(model)
    for leaf, gradient in sympy_gradients(graph, leaves, method="chain").items():
        np.testing.assert_allclose(graph.nodes[leaf].grad, gradient, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("model", [attention, relu_attention])
def test_engine_agrees_with_the_whole_loss_differentiated_at_once(model):
    graph, leaves = _graph(model)
    for method in ("whole", "elements") if model is relu_attention else ("whole",):
        for leaf, gradient in sympy_gradients(graph, leaves, method=method).items():
            np.testing.assert_allclose(graph.nodes[leaf].grad, gradient, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "op", [op for op in REGISTRY.values() if op.name not in ("size_of", "cast")], ids=lambda op: op.name
)
def test_rules_agree_with_sympy(op):
    """One call of every operation, weighted and summed, as one formula where SymPy can, else entry by entry."""
    inputs, params = op.sample(np.random.default_rng(5))[0]
    graph, seed = weighted_sum(op, inputs, dict(zip(op.param_names, params, strict=True)))
    y, saved = op.forward(*inputs, *params) if op.saves else (op(*inputs, *params), None)
    rules = op.pull(seed, y, saved, list(inputs), params, [True] * len(inputs))
    for leaf, gradient in sympy_gradients(graph, list(range(len(inputs)))).items():
        np.testing.assert_allclose(rules[leaf], gradient, rtol=1e-11, atol=1e-13)


def test_a_wrong_gradient_is_not_confirmed():
    graph, leaves = _graph(attention)
    wrong = graph.nodes[leaves[0]].grad * (1 + 1e-9)
    right = sympy_gradients(graph, leaves)[leaves[0]]
    assert np.abs(wrong - right).max() > 1e-10 * np.abs(right).max()


def test_lengths_may_stay_symbols():
    """One derivation with symbols for lengths serves five sizes, to 4 units in the last place of the largest entry
    of any gradient.
    """
    loss, leaves = attention()
    derivation = ta.derive(loss, wrt=leaves, dims={"Q": "n d", "K": "m d", "V": "m k"})
    graph = derivation.graph
    indices = list(derivation.lines.wrt)
    symbolic = WholeLoss(graph, indices, derivation._symbolic_length)
    derivatives = [symbolic.derivative(leaf) for leaf in indices]
    rng = np.random.default_rng(3)
    for _ in range(5):
        sizes = dict(zip("nmdk", rng.integers(2, 5, 4).tolist(), strict=True))
        other, theirs = _graph(attention, **sizes)
        loss = WholeLoss(other, theirs)
        for leaf, (free, formula) in zip(theirs, derivatives, strict=True):
            symbols = {symbol: sizes[str(symbol)] for symbol in formula.free_symbols if str(symbol) in sizes}
            assert symbols
            value = evaluate_derivative(loss, leaf, free, formula, 30, symbols)
            largest = max(np.abs(other.nodes[each].grad).max() for each in theirs)
            assert np.abs(value - other.nodes[leaf].grad).max() <= 4 * np.spacing(largest)


def test_self_attention_of_four_words_agrees():
    graph, leaves = _graph(self_attention, n=4, d=2, k=2)
    found = sympy_gradients(graph, leaves)
    for leaf in leaves:
        np.testing.assert_allclose(graph.nodes[leaf].grad, found[leaf], rtol=1e-12, atol=1e-14)


def test_masks_hide_in_the_whole_formula_too():
    graph, leaves = _graph(causal)
    found = sympy_gradients(graph, leaves[:1], method="whole")
    np.testing.assert_allclose(graph.nodes[leaves[0]].grad, found[leaves[0]], rtol=1e-12, atol=1e-14)


def test_what_sympy_cannot_do_is_answered_in_words():
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ArgumentError, match="gradient of one number"):
        sympy_gradients(ta.Graph.of(x * 2), [0])
    with pytest.raises(ArgumentError, match="cannot differentiate max_"):
        sympy_gradients(ta.Graph.of(x.max()), [0], method="whole")
    with pytest.raises(ArgumentError, match="not known"):
        sympy_gradients(ta.Graph.of(x.sum()), [0], method="magic")
