"""PyTorch computes the same values, gradients and second gradients, where it is installed."""

import numpy as np
import pytest
from public_calls import CALLS
from support import close, gradients, second_gradients

import tinyattn as ta

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: verify)")
pytestmark = pytest.mark.torch

WITH_TORCH = [call for call in CALLS if call.torchs is not None]
each_call = pytest.mark.parametrize("call", WITH_TORCH, ids=str)
ONLY_OURS = {"astype", "dropout"}
"""Functions without a counterpart: a gradient through a cast and back, and chance."""


def test_every_function_has_a_counterpart_or_a_reason():
    assert {call.name for call in CALLS} - {call.name for call in WITH_TORCH} == ONLY_OURS


def theirs(call, seed):
    leaves = [torch.tensor(x, requires_grad=True) for x in call.inputs()]
    y = call.torchs(torch, *leaves)
    first = torch.autograd.grad(y, leaves, torch.tensor(seed(tuple(y.shape))), create_graph=True)
    return leaves, y, first


@each_call
def test_value_and_gradient(call):
    rng = np.random.default_rng(11)
    g = rng.normal(size=np.shape(call.ours(ta, *map(ta.tensor, call.inputs()))))
    _, y, first = theirs(call, lambda shape: g.reshape(shape))
    close(call.ours(ta, *map(ta.tensor, call.inputs())), y.detach().numpy(), rtol=1e-11)
    for ours, other in zip(gradients(lambda *xs: call.ours(ta, *xs), call.inputs(), g), first, strict=True):
        close(ours, other.detach().numpy(), rtol=1e-10)


@each_call
def test_second_gradient(call):
    if call.name == "scaled_dot_product_attention":
        kernel = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    else:
        kernel = torch.enable_grad()
    rng = np.random.default_rng(12)
    g = rng.normal(size=np.shape(call.ours(ta, *map(ta.tensor, call.inputs()))))
    directions = [rng.normal(size=x.shape) for x in call.inputs()]
    with kernel:
        leaves, _, first = theirs(call, lambda shape: g.reshape(shape))
        total = sum((torch.tensor(d) * slope).sum() for d, slope in zip(directions, first, strict=True))
        want = torch.autograd.grad(total, leaves, allow_unused=True) if total.requires_grad else [None] * len(leaves)
    found = second_gradients(lambda *xs: call.ours(ta, *xs), call.inputs(), g, directions)
    for ours, other, x in zip(found, want, call.inputs(), strict=True):
        close(
            ours,
            np.zeros(x.shape) if other is None else other.detach().numpy(force=True),
            rtol=1e-8,
            atol=1e-9,
        )


def test_agreement_can_fail():
    """tanh is not sin: a wrong counterpart is noticed."""
    x = np.array([0.3, 1.0])
    with pytest.raises(AssertionError):
        close(ta.tanh(x), torch.sin(torch.tensor(x)).numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mixed_dtypes_promote_the_same_way(dtype):
    a, b = np.ones((2, 3), "float32"), np.ones(3, dtype)
    ours = ta.tensor(a, requires_grad=True) * ta.tensor(b, requires_grad=True)
    assert str(ours.dtype) == str((torch.tensor(a) * torch.tensor(b)).dtype).removeprefix("torch.")
