"""JAX as a witness: values and gradients agree to 1e-12 in float64, for models, lessons and 200 random graphs.

And the functions are what JAX wants them to be: they can be compiled, differentiated, mapped, and spread over devices.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from handover.agree import FEW, MODELS, TIGHT, all_agree, far, graph_loss, model_loss, slopes
from repository import ROOT

import tinyattn as ta
from tinyattn import handover, nn

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    """JAX computes in float64 here, and as it likes elsewhere."""
    with jax.enable_x64(True):
        yield


def agrees(loss: ta.Tensor) -> None:
    f = handover.to_jax(loss)
    value, found = jax.jit(jax.value_and_grad(f))(f.parameters)
    wanted = slopes(loss)
    assert far(value, loss) < TIGHT
    assert found.keys() == wanted.keys()
    assert max((far(found[name], wanted[name]) for name in wanted), default=0) < TIGHT


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_model_of_the_lessons_agrees(model: Any) -> None:
    agrees(model_loss(model))


@pytest.mark.parametrize("seed", FEW)
def test_a_random_graph_agrees(seed: int) -> None:
    agrees(graph_loss(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", sorted(set(range(200)) - set(FEW)))
def test_every_random_graph_agrees(seed: int) -> None:
    agrees(graph_loss(seed))


@pytest.mark.slow
def test_whatever_a_lesson_computes_agrees(computed: list[ta.Tensor]) -> None:
    def values(results: list[ta.Tensor]) -> Any:
        f = handover.to_jax(results)
        return jax.jit(f)(f.parameters)

    all_agree(computed, values, agrees)


def test_a_wrong_gradient_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(handover.TABLE, "tanh", lambda w, x: w.still(w.tanh(x)))
    w = ta.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(AssertionError):
        agrees(ta.tanh(w * 2.0).sum())


KINKS = {
    "relu": lambda x: ta.relu(x), "abs": lambda x: ta.abs(x), "clip": lambda x: ta.clip(x, 0.0, 1.0),
    "max": lambda x: x.max(), "min": lambda x: x.min(axis=0, keepdims=True),
    "maximum": lambda x: ta.maximum(x, x * 2.0), "product": lambda x: x.prod(), "power": lambda x: (x + 0.0) ** 2,
    "leaky": lambda x: ta.leaky_relu(x), "norm": lambda x: ta.norm(x * 0.0),
    "nothing kept": lambda x: ta.softmax(x, keep=[False, False, False, False]) * 3.0,
    "not read": lambda x: ta.softmax(x + np.array([np.nan, 0, 0, 0]), keep=[False, True, True, True]),
    "all ignored": lambda x: ta.cross_entropy(x[None], [2], ignore_index=2),
}  # fmt: skip


@pytest.mark.parametrize("name", KINKS)
def test_where_a_slope_jumps_jax_decides_as_the_engine_does(name: str) -> None:
    x = ta.tensor([0.0, 1.0, 1.0, -2.0], requires_grad=True)
    agrees((KINKS[name](x) * 1.5).sum())


# -- what JAX does with functions --------------------------------------------------------------------------------------


@pytest.fixture
def layer() -> nn.TransformerBlock:
    return nn.TransformerBlock(6, 2, 8, rng=0)


def squares(layer: Any) -> Any:
    return lambda x: (layer(x) ** 2).sum()


def test_it_can_be_compiled_for_several_shapes(layer: Any, rng: np.random.Generator) -> None:
    x = ta.tensor(rng.normal(size=(3, 4, 6)))
    f = handover.to_jax(layer, x, dynamic={"x": ("batch", "n", None)})
    compiled = jax.jit(f)
    for shape in ((3, 4, 6), (1, 2, 6), (5, 3, 6)):
        other = rng.normal(size=shape)
        assert far(compiled(f.parameters, other), layer(ta.tensor(other))) < TIGHT


def test_it_can_be_differentiated_twice_and_forward(layer: Any, rng: np.random.Generator) -> None:
    x = ta.tensor(rng.normal(size=(2, 6)))
    f = handover.to_jax(squares(layer), x)
    direction = rng.normal(size=(2, 6))
    slope = jax.grad(f, argnums=1)
    forward = jax.jit(lambda x, v: jax.jvp(lambda x: slope(f.parameters, x), (x,), (v,))[1])
    assert far(forward(x.data, direction), ta.hvp(squares(layer), x, direction)) < 1e-11


def test_it_can_be_mapped_over_a_batch_of_inputs_and_of_parameters(layer: Any, rng: np.random.Generator) -> None:
    x = ta.tensor(rng.normal(size=(3, 6)))
    f, many = handover.to_jax(layer, x), rng.normal(size=(4, 3, 6))
    mapped = jax.jit(jax.vmap(f, in_axes=(None, 0)))(f.parameters, many)
    assert far(mapped, layer(ta.tensor(many))) < TIGHT
    two = jax.tree.map(lambda p: np.stack([p, p * 0.5]), f.parameters)
    one, half = jax.jit(jax.vmap(f, in_axes=(0, None)))(two, x.data)
    assert far(one, layer(x)) < TIGHT
    assert far(half, jax.jit(f)(jax.tree.map(lambda p: p * 0.5, f.parameters), x.data)) < TIGHT


def test_gradients_for_each_sentence_by_themselves(layer: Any, rng: np.random.Generator) -> None:
    x = ta.tensor(rng.normal(size=(3, 6)))
    f, many = handover.to_jax(squares(layer), x, model=layer), rng.normal(size=(2, 3, 6))
    each = jax.jit(jax.vmap(jax.grad(f), in_axes=(None, 0)))(f.parameters, many)
    for at, sentence in enumerate(many):
        for name, p in layer.named_parameters():
            assert far(each[name][at], ta.grad(squares(layer)(ta.tensor(sentence)), p)) < TIGHT


def test_indices_and_masks_are_arguments_under_jit() -> None:
    model = nn.GPT(7, 4, 2, 1, 6, rng=0)
    ids = np.array([[0, 3, 1, 2, 5, 4], [1, 1, 0, 6, 2, 3], [6, 5, 4, 3, 2, 1]])
    f = handover.to_jax(model.loss, ids, dynamic={"ids": ("batch", "n")})
    value, found = jax.jit(jax.value_and_grad(f))(f.parameters, ids[:2, 1:])
    loss = model.loss(ids[:2, 1:])
    loss.backward()
    assert far(value, loss) < TIGHT
    assert all(far(found[name], p.grad) < TIGHT for name, p in model.named_parameters())


def test_scopes_are_in_the_program_that_jax_makes() -> None:
    f = handover.to_jax(nn.MultiHeadAttention(4, 2, rng=0), ta.tensor(np.arange(12.0).reshape(3, 4) / 7))
    text = jax.jit(f).lower(f.parameters).as_text(debug_info=True)
    assert "MultiHeadAttention/weights" in text


def test_float32_is_told() -> None:
    w = ta.tensor([1.0, 2.0], requires_grad=True)
    with jax.enable_x64(False), pytest.warns(UserWarning, match="jax_enable_x64"):
        f = handover.to_jax((w * w).sum())
    with jax.enable_x64(False):
        assert f(f.parameters).dtype == np.float32


SHARDED = """
import jax, numpy as np, tinyattn as ta
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from tinyattn import handover, nn
jax.config.update("jax_enable_x64", True)
assert len(jax.devices()) == 4
rng = np.random.default_rng(0)
layer, x = nn.TransformerBlock(6, 2, 8, rng=0), rng.normal(size=(8, 5, 6))
f = handover.to_jax(lambda x: (layer(x) ** 2).mean(), ta.tensor(x), model=layer)
mesh = Mesh(np.array(jax.devices()), ("batch",))
spread = jax.device_put(x, NamedSharding(mesh, PartitionSpec("batch")))
everywhere = jax.device_put(f.parameters, NamedSharding(mesh, PartitionSpec()))
assert {shard.data.shape for shard in spread.addressable_shards} == {(2, 5, 6)}
value, found = jax.jit(jax.value_and_grad(f))(everywhere, spread)
loss = (layer(ta.tensor(x)) ** 2).mean()
loss.backward()
far = [abs(float(value) - float(loss.data))]
far += [float(np.abs(np.asarray(found[name]) - p.grad).max()) for name, p in layer.named_parameters()]
print(max(far))
"""


def test_a_batch_that_is_spread_over_four_devices_gives_the_same_gradients() -> None:
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", SHARDED], env=os.environ | flags, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) < TIGHT
