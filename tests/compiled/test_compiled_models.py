"""Models of `tinyattn.nn`, compiled, learn as the tape does; and the benchmark that trains one is right."""

from __future__ import annotations

import numpy as np
import pytest
from repository import ROOT, script
from symbolic import models

import tinyattn as ta
from tinyattn import nn

X = np.random.default_rng(0).normal(size=(5, 8))
IDS = np.array([3, 1, 4, 1, 5])
KEEP = np.array([True, True, True, False, False])


def squares(model, **given):
    return lambda x, **more: (model(x, **given, **more) ** 2).sum()


def cases():
    layers = {
        "Linear": nn.Linear(8, 3, rng=0), "LayerNorm": nn.LayerNorm(8), "RMSNorm": nn.RMSNorm(8),
        "MLP": nn.MLP(8, 16, rng=0), "SelfAttention": nn.SelfAttention(8, rng=0),
        "heads": nn.MultiHeadAttention(8, 2, bias=True, rng=0),
        "heads fused": nn.MultiHeadAttention(8, 2, fused=True, rng=0),
        "additive": nn.MultiHeadAttention(8, 2, score="additive", rng=0),
        "relu": nn.MultiHeadAttention(8, 2, normalise="relu", rng=0),
        "linear": nn.LinearAttention(8, rng=0), "block": nn.TransformerBlock(8, 2, rng=0),
        "encoder": nn.TransformerEncoder(2, 8, 2, rng=0),
    }  # fmt: skip
    for name, model in layers.items():
        yield name, model, squares(model), (X,), {}
    heads, fused = layers["heads"], layers["heads fused"]
    yield "mask given", heads, squares(heads), (X,), {"keep": KEEP}
    yield "mask from outside", heads, squares(heads, keep=KEEP), (X,), {}
    yield "causal", heads, squares(heads, causal=True), (X,), {}
    yield "fused, mask given", fused, squares(fused, causal=True), (X,), {"keep": KEEP}
    for position in ("learned", "sinusoidal", "rotary", "distance"):
        gpt = nn.GPT(words=10, d=8, heads=2, layers=2, length=16, position=position, rng=0)
        loss = lambda ids, right, gpt=gpt: ta.cross_entropy(gpt(ids), right)
        yield f"GPT {position}", gpt, loss, (IDS, IDS[::-1].copy()), {}
    ignoring = lambda ids, right: ta.cross_entropy(gpt(ids), right, ignore_index=1, label_smoothing=0.1)
    yield "GPT, a batch", gpt, ignoring, (np.stack([IDS, IDS[::-1]]), np.stack([IDS[::-1], IDS])), {}


CASES = {name: rest for name, *rest in cases()}


@pytest.mark.parametrize("name", CASES)
def test_a_model_has_the_same_loss_and_gradients_also_with_other_weights(name):
    model, loss, args, kwargs = CASES[name]
    compiled, rng = ta.compile(loss), np.random.default_rng(1)
    parameters = model.parameters()
    for _ in range(2):
        model.zero_grad()
        want = loss(*args, **kwargs)
        want.backward()
        slopes = [p.grad for p in parameters]
        model.zero_grad()
        value = compiled.backward(*args, **kwargs)
        assert value.item() == pytest.approx(want.item(), rel=1e-13)
        for got, right in zip([p.grad for p in parameters], slopes, strict=True):
            assert (got is None) == (right is None)
            if right is not None:
                np.testing.assert_allclose(got, right, rtol=1e-11, atol=1e-12)
        for p in parameters:
            p.assign(p.data + 0.1 * rng.normal(size=p.shape))
    assert len(compiled.programs) == 1


@pytest.mark.parametrize("model", models.MODELS, ids=lambda model: model.__name__)
def test_every_computation_of_the_lessons_agrees(model, monkeypatch):
    """The leaves become arguments; everything else is as the lessons have it."""
    loss, leaves = model()
    given = [x.data for x in leaves]

    def computed(*arguments):
        waiting = iter(arguments)
        maker = type("Given", (models.Maker,), {"leaf": lambda self, name, *shape: next(waiting)})
        with monkeypatch.context() as patch:
            patch.setattr(models, "Maker", maker)
            return model()[0]

    used = [n for n, slope in enumerate(ta.grad(loss, leaves)) if slope.data.any()]
    both = ta.value_and_grad(computed, tuple(used))
    compiled = ta.compile(both)
    for factor in (1.0, 0.7):
        arguments = [array * factor for array in given]
        (value, slopes), (ours, our_slopes) = both(*map(ta.tensor, arguments)), compiled(*arguments)
        assert ours.item() == pytest.approx(value.item(), rel=1e-13)
        for got, want in zip(our_slopes, slopes, strict=True):
            np.testing.assert_allclose(got.data, want.data, rtol=1e-11, atol=1e-13)
    assert len(compiled.programs) == 1


# -- the benchmark -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def microgpt():
    return script(ROOT / "benchmarks" / "microgpt.py")


@pytest.fixture
def names(tmp_path, microgpt):
    path = tmp_path / "names.txt"
    path.write_text("\n".join(["anna", "bob", "eve", "abe", "nan"] * 4), encoding="utf-8")
    return microgpt.read_names(path)


def test_microgpt_has_the_size_and_the_losses_of_the_engine_of_scalars(microgpt, names):
    coded, words = names
    model = microgpt.MicroGPT(words, np.random.default_rng(0))
    other = microgpt.ScalarGPT(microgpt.MicroGPT(words, np.random.default_rng(0)))
    assert sum(p.size for p in microgpt.MicroGPT(27, np.random.default_rng(0)).parameters()) == 4192
    ours = microgpt.train(model, coded, 3)
    theirs = [other.learn(coded[step].tolist(), step) for step in range(3)]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_microgpt_learns(microgpt, names):
    coded, words = names
    losses = microgpt.train(microgpt.MicroGPT(words, np.random.default_rng(0)), coded, 60)
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10])


def test_the_adapter_of_the_measuring_driver_computes_the_right_gradients():
    adapter = script(ROOT / "benchmarks" / "adapter_compiled.py")
    rng = np.random.default_rng(0)
    sizes = (3, 4, 4, 1)
    given = {"X": rng.normal(size=(4, 3)), "y": np.sign(rng.normal(size=(4, 1)))}
    for i in range(3):
        given[f"W{i}"], given[f"b{i}"] = rng.normal(size=sizes[i : i + 2]), rng.normal(size=sizes[i + 1])
    found = []
    for family in (adapter.mlp, adapter.mlp_scalar):
        step, result = family({"sizes": sizes, "samples": 4, "lr": 0.01}, given)
        step()
        found.append(result())
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-13)
    for name, slope in found[0][1].items():
        np.testing.assert_allclose(found[1][1][name].reshape(slope.shape), slope, rtol=1e-11, atol=1e-13)
