"""PyTorch as a witness: values and gradients agree to 1e-12 in float64; the module is one, and can be exported."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from handover.agree import MODELS, TIGHT, all_agree, far, graph_loss, model_loss, slopes
from repository import ROOT

import tinyattn as ta
from tinyattn import handover, nn, weights

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def agrees(loss: ta.Tensor) -> Any:
    module = handover.to_torch(loss)
    y = module()
    wanted = slopes(loss)
    assert far(y.detach().numpy(), loss) < TIGHT
    if wanted:
        y.backward()
    found = dict(module.named_parameters())
    assert found.keys() == wanted.keys()
    for name, p in found.items():
        assert far(np.zeros(p.shape) if p.grad is None else p.grad.numpy(), wanted[name]) < TIGHT, name
    return module


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_model_of_the_lessons_agrees(model: Any) -> None:
    agrees(model_loss(model))


@pytest.mark.parametrize("seed", range(200))
def test_a_random_graph_agrees(seed: int) -> None:
    agrees(graph_loss(seed))


@pytest.mark.slow
def test_whatever_a_lesson_computes_agrees(computed: list[ta.Tensor]) -> None:
    def values(results: list[ta.Tensor]) -> Any:
        return [y.detach().numpy() for y in handover.to_torch(results)()]

    all_agree(computed, values, agrees)


@pytest.mark.parametrize("function", [ta.relu, ta.abs, lambda x: ta.clip(x, 0.0, 1.0), ta.max, ta.leaky_relu, ta.prod])
def test_where_a_slope_jumps_torch_decides_as_the_engine_does(function: Any) -> None:
    x = ta.tensor([0.0, 1.0, 1.0, -2.0], requires_grad=True)
    agrees((function(x) * 1.5).sum())


@pytest.fixture
def layer() -> nn.TransformerBlock:
    return nn.TransformerBlock(6, 2, 8, rng=0)


@pytest.fixture
def x(rng: np.random.Generator) -> ta.Tensor:
    return ta.tensor(rng.normal(size=(3, 4, 6)))


def test_the_module_has_the_parameters_under_their_names_and_takes_a_state(layer: Any, x: ta.Tensor) -> None:
    module = handover.to_torch(layer, x)
    assert [name for name, _ in module.named_parameters()] == [name for name, _ in layer.named_parameters()]
    other = nn.TransformerBlock(6, 2, 8, rng=5)
    module.load_state_dict({name: torch.tensor(array) for name, array in other.state_dict().items()})
    assert far(module(torch.tensor(x.data)).detach().numpy(), other(x)) < TIGHT


def test_weights_go_over_and_come_back_by_a_file(layer: Any, x: ta.Tensor, tmp_path: Any) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    module = handover.to_torch(layer, x)
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(0.5)
    safetensors.save_file(module.state_dict(), tmp_path / "theirs.safetensors")
    weights.load(layer, tmp_path / "theirs.safetensors")
    assert far(module(torch.tensor(x.data)).detach().numpy(), layer(x)) < TIGHT
    weights.save(layer, tmp_path / "ours.safetensors")
    again = handover.to_torch(nn.TransformerBlock(6, 2, 8, rng=7), x)
    again.load_state_dict(safetensors.load_file(tmp_path / "ours.safetensors"))
    assert torch.equal(again(torch.tensor(x.data)), module(torch.tensor(x.data)))


def test_a_step_of_an_optimiser_is_the_same(layer: Any, x: ta.Tensor) -> None:
    module = handover.to_torch(lambda x: (layer(x) ** 2).mean(), x, model=layer)
    theirs, ours = torch.optim.SGD(module.parameters(), lr=0.1), ta.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        theirs.zero_grad()
        module(torch.tensor(x.data)).backward()
        theirs.step()
        ours.zero_grad()
        (layer(x) ** 2).mean().backward()
        ours.step()
    found = dict(module.named_parameters())
    assert all(far(found[name].detach().numpy(), p) < TIGHT for name, p in layer.named_parameters())


@pytest.mark.parametrize("kind", ["learned", "sinusoidal", "rotary", "distance"])
def test_torch_export_takes_it_with_other_batches_and_lengths(kind: str) -> None:
    model = nn.GPT(7, 8, 2, 1, 6, position=kind, rng=0)
    ids = np.array([[0, 3, 1, 2, 5, 4], [1, 1, 0, 6, 2, 3], [6, 5, 4, 3, 2, 1], [2, 0, 2, 0, 1, 3]])
    module = handover.to_torch(model, ids, dynamic={"ids": ("batch", "n")})
    exported = torch.export.export(module, module.example_inputs(), dynamic_shapes=module.dynamic_shapes())
    for other in (ids, ids[:2, :4].copy(), ids[1:, 1:].copy()):
        assert far(exported.module()(torch.tensor(other)).detach().numpy(), model(other)) < TIGHT
    names = {spec.target for spec in exported.graph_signature.input_specs if spec.kind.name == "PARAMETER"}
    assert names == {name for name, _ in model.named_parameters()}


def test_every_step_can_be_looked_at_by_its_name(x: ta.Tensor) -> None:
    module = handover.to_torch(nn.MultiHeadAttention(6, 2, rng=0), x)
    assert module.intermediates(torch.tensor(x.data))["MultiHeadAttention/weights"].shape == (3, 2, 4, 4)


def test_it_goes_to_float32_like_any_module(layer: Any, x: ta.Tensor) -> None:
    module = handover.to_torch(layer, x).float()
    y = module(torch.tensor(x.data, dtype=torch.float32))
    assert y.dtype == torch.float32
    assert float(np.abs(y.detach().numpy() - layer(x).data).max()) < 1e-5


def test_it_can_be_copied_and_compiled(layer: Any, x: ta.Tensor) -> None:
    module, numbers = handover.to_torch(layer, x), torch.tensor(x.data)
    twin = copy.deepcopy(module)
    with torch.no_grad():
        next(iter(twin.parameters())).zero_()
    assert far(module(numbers).detach().numpy(), layer(x)) < TIGHT
    assert far(twin(numbers).detach().numpy(), layer(x)) > 1e-3
    compiled = torch.compile(module, backend="eager")
    assert far(compiled(numbers).detach().numpy(), layer(x)) < TIGHT


def test_it_can_be_pickled_and_saved_with_what_it_has_learned(tmp_path: Any) -> None:
    model = nn.GPT(7, 8, 2, 1, 6, rng=0)  # it has a mask and positions that follow the length
    ids = np.array([[0, 3, 1, 2, 5, 4], [1, 1, 0, 6, 2, 3], [6, 5, 4, 3, 2, 1]])
    module = handover.to_torch(model, ids, dynamic={"ids": ("batch", "n")}).float().eval()
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(0.5)
    torch.save(module, tmp_path / "module.pt")
    shorter = torch.tensor(ids[:1, :4])
    for again in (torch.load(tmp_path / "module.pt", weights_only=False), pickle.loads(pickle.dumps(module))):
        assert torch.equal(again(shorter), module(shorter))
        assert not again.training
        assert {name: b.dtype for name, b in again.named_buffers()} == {
            name: b.dtype for name, b in module.named_buffers()
        }
        again(shorter).sum().backward()
        assert all(p.grad is not None for p in again.parameters())


def test_a_module_is_read_back_by_a_program_that_has_recorded_nothing(layer: Any, x: ta.Tensor, tmp_path: Any) -> None:
    module = handover.to_torch(layer, x)
    torch.save(module, tmp_path / "module.pt")
    read = "import sys, torch; print(torch.load(sys.argv[1], weights_only=False)().sum().item())"
    done = subprocess.run(
        [sys.executable, "-c", read, str(tmp_path / "module.pt")], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) == module().sum().item()


def test_a_name_that_every_module_has_gets_a_stroke() -> None:
    training = ta.tensor([1.0, 2.0], requires_grad=True)
    module = handover.to_torch((training * training).sum())
    assert [name for name, _ in module.named_parameters()] == ["training_"]
    assert float(module().detach()) == 5.0
