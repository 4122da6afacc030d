"""Modules: parameters under the names of attributes, scopes, state, and what is shown of them."""

from __future__ import annotations

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn


class Block(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(2, 3, rng=0)
        self.rest = [nn.Linear(3, 3, bias=False, rng=1), nn.Linear(3, 1, rng=2)]
        self.by_name = {"extra": nn.Linear(1, 1, rng=3)}
        self.gain = ta.tensor(2.0, requires_grad=True)
        self.note = "not a parameter"

    def forward(self, x: ta.Tensor) -> ta.Tensor:
        for layer in [self.first, *self.rest]:
            x = layer(x)
        return self.by_name["extra"](x) * self.gain


NAMES = [
    "first.W", "first.b", "rest.0.W", "rest.1.W", "rest.1.b", "by_name.extra.W", "by_name.extra.b", "gain",
]


def test_parameters_are_found_in_attributes_lists_and_dictionaries() -> None:
    block = Block()
    assert [name for name, _ in block.named_parameters()] == NAMES
    assert len(block.parameters()) == len(NAMES)


def test_no_call_of_the_base_constructor_is_needed() -> None:
    assert Block().training is True


def test_a_shared_part_is_learned_once_and_has_one_name() -> None:
    block = Block()
    block.again = block.first
    assert [name for name, _ in block.named_parameters()] == NAMES


def test_a_frozen_tensor_is_kept_but_not_learned() -> None:
    layer = nn.Linear(2, 1, rng=0)
    layer.W.requires_grad = False
    assert [name for name, _ in layer.named_parameters()] == ["b"]
    assert list(layer.state_dict()) == ["W", "b"]


def test_train_and_eval_reach_every_part() -> None:
    block = Block()
    block.eval()
    assert [module.training for _, module in block.named_modules()] == [False] * 5
    assert block.train() is block and block.rest[1].training


def test_zero_grad_forgets_every_gradient() -> None:
    block = Block()
    block(ta.tensor([[1.0, 2.0]])).sum().backward()
    assert all(p.grad is not None for p in block.parameters())
    block.zero_grad()
    assert all(p.grad is None for p in block.parameters())


def test_scopes_follow_the_attributes() -> None:
    block = Block()
    y = block(ta.tensor([[1.0, 2.0]]))
    scopes = {node.scope for node in ta.Graph.of(y).nodes}
    assert {("Block",), ("Block", "first"), ("Block", "rest[0]"), ("Block", "by_name[extra]")} <= scopes


def test_a_result_is_named_by_the_line_that_stores_it() -> None:
    layer = nn.Linear(2, 2, rng=0)
    hidden = layer(ta.tensor([[1.0, 2.0]]))
    graph = ta.Graph.of(ta.tanh(hidden), variables={})
    node = graph.find("hidden")
    assert node.op_name == "add" and node.file.endswith("test_nn_module.py")


def test_a_result_that_is_stored_nowhere_keeps_the_layers_own_name() -> None:
    attention = nn.SelfAttention(2, rng=0)
    assert ta.Graph.of(ta.sum(attention(ta.tensor([[1.0, 2.0]])))).find("output").op_name == "matmul"


def test_what_is_passed_through_unchanged_keeps_its_name() -> None:
    class Same(nn.Module):
        def forward(self, x: ta.Tensor) -> ta.Tensor:
            return x

    first = ta.exp(ta.tensor([1.0]))
    second = Same()(first)
    assert second is first and ta.Graph.of(ta.sum(second), variables={}).find("first")


def test_state_goes_into_an_equal_model_and_is_a_copy() -> None:
    one, two = Block(), Block()
    one.gain.assign(7.0)
    state = one.state_dict()
    two.load_state_dict(state)
    state["gain"][...] = 0.0
    assert float(two.gain) == 7.0 and float(one.gain) == 7.0


@pytest.mark.parametrize(("change", "words"), [
    (lambda state: state.pop("gain"), "missing gain"),
    (lambda state: state.update(other=np.ones(2)), "not known here other"),
    (lambda state: state.update({"first.W": np.ones((3, 2))}), r"first.W is \(2, 3\) here, \(3, 2\) in"),
    (lambda state: state.update({"first.W": np.full((2, 3), "a")}), "where numbers are expected"),
])
def test_a_state_that_does_not_fit_changes_nothing(change, words: str) -> None:
    block = Block()
    before = block.state_dict()
    state = {name: array + 1 for name, array in before.items()}
    change(state)
    with pytest.raises(ta.TinyattnError, match=words):
        block.load_state_dict(state)
    assert all((array == before[name]).all() for name, array in block.state_dict().items())


def test_the_summary_counts_every_number_once() -> None:
    block = Block()
    text = block.summary()
    assert text.splitlines()[-1].split() == ["total", str(sum(p.size for p in block.parameters()))]
    assert "rest.0" in text and "by_name.extra" in text and text.isascii()


def test_the_repr_shows_parts_and_sizes() -> None:
    assert repr(Block()).splitlines()[:2] == ["Block(", "  first: Linear(2, 3)"]
    assert "rest.0: Linear(3, 3, bias=False)" in repr(Block())


def test_a_module_without_forward_says_what_to_write() -> None:
    with pytest.raises(ta.ArgumentTypeError, match="def forward"):
        nn.Module()(1)


def test_layers_without_seed_differ_from_each_other() -> None:
    assert not (nn.Linear(3, 3).W == nn.Linear(3, 3).W).any()


def test_the_same_seed_gives_the_same_layer() -> None:
    assert (nn.SelfAttention(3, rng=5).W_q == nn.SelfAttention(3, rng=5).W_q).all()


@pytest.mark.parametrize("rng", ["0", 1.5, True, -1])
def test_a_source_of_chance_that_is_none_is_refused(rng: object) -> None:
    with pytest.raises(ta.ArgumentTypeError, match="source of random numbers"):
        nn.Linear(1, 1, rng=rng)
