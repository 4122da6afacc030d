"""PyTorch as an independent witness: outputs and all gradients agree to 1e-12 in float64, over 200 random calls.

Every random number is drawn here, and weights go over by `torch_state`, so both compute from the same bits.
"""

from __future__ import annotations

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn, optim, weights
from tinyattn.torch_state import load_torch_state, torch_state

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

TIGHT = 1e-12
MASKS = ["none", "causal", "padding", "both"]


def leaf(array: np.ndarray):
    return torch.tensor(array, dtype=torch.float64, requires_grad=True)


def far(ours, theirs) -> float:
    """The largest distance, in units of the largest number where that is above 1."""
    a, b = np.asarray(getattr(ours, "data", ours)), theirs.detach().numpy()
    assert a.shape == b.shape
    return float(np.abs(a - b).max(initial=0.0) / max(1.0, np.abs(b).max(initial=0.0)))


def to_torch(module: nn.Module) -> dict:
    return {name: torch.tensor(array) for name, array in torch_state(module).items()}


def shaken(module: nn.Module, rng: np.random.Generator) -> nn.Module:
    """Every parameter random, biases and gains too."""
    for p in module.parameters():
        p.assign(p.data + 0.3 * rng.normal(size=p.shape))
    return module


def gradients_as_torch_has_them(module: nn.Module) -> dict[str, np.ndarray]:
    """Our gradients under PyTorch's names: a module that holds them as numbers, translated."""
    state = module.state_dict()
    slopes = {name: np.zeros(p.shape) if p.grad is None else p.grad for name, p in module.named_parameters()}
    module.load_state_dict(slopes)
    found = torch_state(module)
    module.load_state_dict(state)
    return found


def assert_all_agree(ours, theirs, module, other, inputs) -> None:
    assert far(ours, theirs) < TIGHT
    for x, y in inputs:
        assert far(x.grad, y.grad) < TIGHT
    slopes = gradients_as_torch_has_them(module)
    assert slopes.keys() == dict(other.named_parameters()).keys()
    for name, p in other.named_parameters():
        assert far(slopes[name], p.grad) < TIGHT, name


def words(rng: np.random.Generator, batch: int, m: int) -> np.ndarray:
    """True where there is a word; PyTorch gives nan for a query that sees none, so the first always is one."""
    keep = rng.random((batch, m)) < 0.7
    keep[:, 0] = True
    return keep


def masks(kind: str, n: int, m: int, batch: int, rng: np.random.Generator) -> tuple[dict, dict]:
    """The same masks in our words and in theirs, where True hides."""
    ours: dict = {}
    theirs: dict = {}
    if kind in ("causal", "both"):
        ours["causal"] = True
        theirs["attn_mask"] = torch.tensor(~nn.masks.causal(n, m))
    if kind in ("padding", "both"):
        keep = words(rng, batch, m)
        ours["keep"], theirs["key_padding_mask"] = nn.masks.padding(keep), torch.tensor(~keep)
    return ours, theirs


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("kind", MASKS)
def test_multi_head_attention(kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, MASKS.index(kind)])
    heads, batch, n = (int(x) for x in rng.integers(1, 5, size=3))
    d, bias, cross = heads * int(rng.integers(1, 5)), bool(seed % 2), bool(seed // 2 % 2)
    m = n + int(rng.integers(0, 4)) if cross else n
    d_keys, d_values = (int(x) for x in rng.integers(2, 7, size=2)) if cross else (d, d)
    layer = shaken(nn.MultiHeadAttention(d, heads, d_keys=d_keys, d_values=d_values, bias=bias, rng=seed), rng)
    other = torch.nn.MultiheadAttention(
        d, heads, bias=bias, kdim=d_keys, vdim=d_values, batch_first=True, dtype=torch.float64
    )
    other.load_state_dict(to_torch(layer))
    shapes = [(batch, n, d), (batch, m, d_keys), (batch, m, d_values)] if cross else [(batch, n, d)]
    arrays, c = [rng.normal(size=shape) for shape in shapes], rng.normal(size=(batch, n, d))
    ours, theirs = [ta.tensor(x, requires_grad=True) for x in arrays], [leaf(x) for x in arrays]
    mine, torchs = masks(kind, n, m, batch, rng)
    steps = layer.steps(*ours, **mine)
    output, found = other(*(theirs if cross else theirs * 3), **torchs, average_attn_weights=False)
    assert far(steps.weights, found) < TIGHT
    ta.sum(steps.output * c).backward()
    (output * torch.tensor(c)).sum().backward()
    assert_all_agree(steps.output, output, layer, other, zip(ours, theirs, strict=True))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_encoder_layer(norm: str, activation: str, kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, MASKS.index(kind), len(activation), len(norm)])
    heads, batch, n, hidden = (int(x) for x in rng.integers(1, 6, size=4))
    d = heads * int(rng.integers(2, 5))
    block = shaken(nn.TransformerBlock(d, heads, hidden, norm=norm, activation=activation, rng=seed), rng)
    other = torch.nn.TransformerEncoderLayer(
        d, heads, hidden, dropout=0.0, activation=activation, batch_first=True, norm_first=norm == "pre",
        dtype=torch.float64,
    )  # fmt: skip
    other.load_state_dict(to_torch(block))
    x, c = rng.normal(size=(batch, n, d)), rng.normal(size=(batch, n, d))
    mine, torchs = masks(kind, n, n, batch, rng)
    names = {"attn_mask": "src_mask", "key_padding_mask": "src_key_padding_mask"}
    torchs = {names[name]: mask for name, mask in torchs.items()}
    a, b = ta.tensor(x, requires_grad=True), leaf(x)
    ours, theirs = block(a, **mine), other(b, **torchs)
    ta.sum(ours * c).backward()
    (theirs * torch.tensor(c)).sum().backward()
    assert_all_agree(ours, theirs, block, other, [(a, b)])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_encoder_layer_without_any_bias(norm: str, rng) -> None:
    block = shaken(nn.TransformerBlock(4, 2, 6, norm=norm, bias=False, norm_bias=False, rng=1), rng)
    other = torch.nn.TransformerEncoderLayer(
        4, 2, 6, dropout=0.0, batch_first=True, norm_first=norm == "pre", bias=False, dtype=torch.float64
    )
    other.load_state_dict(to_torch(block))
    x = rng.normal(size=(2, 3, 4))
    a, b = ta.tensor(x, requires_grad=True), leaf(x)
    ours, theirs = block(a), other(b)
    ta.sum(ours**2).backward()
    (theirs**2).sum().backward()
    assert_all_agree(ours, theirs, block, other, [(a, b)])


@pytest.mark.parametrize("seed", range(16))
def test_layer_norm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, eps = int(rng.integers(2, 9)), float(10.0 ** -rng.integers(2, 8))
    shape = (*(int(x) for x in rng.integers(1, 4, size=int(rng.integers(0, 3)))), d)
    layer, other = shaken(nn.LayerNorm(d, eps), rng), torch.nn.LayerNorm(d, eps, dtype=torch.float64)
    other.load_state_dict(to_torch(layer))
    x, c = rng.normal(size=shape) * 3 + 1, rng.normal(size=shape)
    a, b = ta.tensor(x, requires_grad=True), leaf(x)
    ours, theirs = layer(a), other(b)
    ta.sum(ours * c).backward()
    (theirs * torch.tensor(c)).sum().backward()
    assert_all_agree(ours, theirs, layer, other, [(a, b)])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ignore", [None, -1, 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(reduction: str, smoothing: float, ignore: int | None, seed: int) -> None:
    rng = np.random.default_rng([seed, len(reduction)])
    classes, shape = int(rng.integers(3, 7)), tuple(int(x) for x in rng.integers(1, 5, size=int(rng.integers(1, 3))))
    x, targets = 3 * rng.normal(size=(*shape, classes)), rng.integers(0, classes, size=shape)
    if ignore == -1:
        targets = np.where(rng.random(shape) < 0.3, -1, targets)
    if ignore is not None:
        targets.flat[0] = 0  # where all are ignored PyTorch gives nan, and we 0
    a, b = ta.tensor(x, requires_grad=True), leaf(x)
    ours = ta.cross_entropy(a, targets, ignore_index=ignore, label_smoothing=smoothing, reduction=reduction)
    theirs = torch.nn.functional.cross_entropy(
        b.reshape(-1, classes), torch.tensor(targets.reshape(-1)), ignore_index=-100 if ignore is None else ignore,
        label_smoothing=smoothing, reduction=reduction,
    )  # fmt: skip
    theirs = theirs.reshape(shape) if reduction == "none" else theirs
    c = rng.normal(size=ours.shape)
    ta.sum(ours * c).backward()
    (theirs * torch.tensor(c)).sum().backward()
    assert far(ours, theirs) < TIGHT and far(a.grad, b.grad) < TIGHT


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_fifty_steps_of_an_optimiser(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start, data = [rng.normal(size=(3, 4)), rng.normal(size=4)], rng.normal(size=(5, 3))
    lr, decay, momentum = 10.0 ** rng.uniform(-3, -1), rng.uniform(0, 0.5), rng.uniform(0, 0.95)
    betas = {} if name == "SGD" else {"betas": (rng.uniform(0.5, 0.95), rng.uniform(0.9, 0.999)), "eps": 1e-6}
    special = {"SGD": {"momentum": momentum}, "AdamW": {"decay": decay}}.get(name, {})
    torchs = {"weight_decay" if key == "decay" else key: value for key, value in special.items()}
    ours, theirs = [ta.tensor(x, requires_grad=True) for x in start], [leaf(x) for x in start]
    one = getattr(optim, name)(ours, lr=lr, **betas, **special)
    other = getattr(torch.optim, name)(theirs, lr=lr, **betas, **torchs)
    schedule = optim.cosine(lr, 50, 5)
    for step in range(1, 51):
        one.lr = other.param_groups[0]["lr"] = schedule(step)
        one.zero_grad(), other.zero_grad()
        ta.mean(ta.tanh(data @ ours[0] + ours[1]) ** 2).backward()
        (torch.tanh(torch.tensor(data) @ theirs[0] + theirs[1]) ** 2).mean().backward()
        if seed % 2:
            optim.clip_gradients(ours, 0.1)
            total = torch.sqrt(sum((p.grad**2).sum() for p in theirs))
            for p in theirs:
                p.grad *= min(1.0, float(0.1 / total))
        one.step(), other.step()
    for a, b in zip(ours, theirs, strict=True):
        assert far(a, b) < TIGHT


# -- weights from there and back ------------------------------------------------------------------------------------


class Gpt2(torch.nn.Module):
    """A GPT-2 with the names of its state, written on PyTorch's own parts; `Conv1D` computes x @ weight + bias."""

    def __init__(self, words: int, d: int, heads: int, layers: int, length: int, linear: bool) -> None:
        super().__init__()
        self.heads, self.linear = heads, linear
        body = {"wte": torch.nn.Embedding(words, d), "wpe": torch.nn.Embedding(length, d)}
        body["ln_f"] = torch.nn.LayerNorm(d)
        body["h"] = torch.nn.ModuleList([self.block(d) for _ in range(layers)])
        self.transformer = torch.nn.ModuleDict(body)
        self.lm_head = torch.nn.Linear(d, words, bias=False)
        self.lm_head.weight = self.transformer.wte.weight
        self.double()

    def block(self, d: int):
        def conv(n: int, m: int):
            layer = torch.nn.Linear(n, m)
            if not self.linear:
                layer.weight = torch.nn.Parameter(layer.weight.detach().T.contiguous())
            return layer

        attn = torch.nn.ModuleDict({"c_attn": conv(d, 3 * d), "c_proj": conv(d, d)})
        attn.register_buffer("bias", torch.tril(torch.ones(9, 9)).view(1, 1, 9, 9))
        mlp = torch.nn.ModuleDict({"c_fc": conv(d, 4 * d), "c_proj": conv(4 * d, d)})
        norms = {"ln_1": torch.nn.LayerNorm(d), "ln_2": torch.nn.LayerNorm(d)}
        return torch.nn.ModuleDict({**norms, "attn": attn, "mlp": mlp})

    def apply_to(self, layer, x):
        return layer(x) if self.linear else x @ layer.weight + layer.bias

    def forward(self, ids):
        body, (n,) = self.transformer, ids.shape
        x = body.wte(ids) + body.wpe(torch.arange(n))
        for block in body.h:
            qkv = self.apply_to(block.attn.c_attn, block.ln_1(x)).split(x.shape[-1], dim=-1)
            q, k, v = (part.view(n, self.heads, -1).transpose(0, 1) for part in qkv)
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.apply_to(block.attn.c_proj, y.transpose(0, 1).reshape(n, -1))
            inner = torch.nn.functional.gelu(self.apply_to(block.mlp.c_fc, block.ln_2(x)), approximate="tanh")
            x = x + self.apply_to(block.mlp.c_proj, inner)
        return self.lm_head(body.ln_f(x))


@pytest.mark.parametrize("linear", [False, True], ids=["GPT-2", "copies with Linear"])
@pytest.mark.parametrize("whole", [True, False], ids=["with head", "body alone"])
def test_a_gpt2_gives_the_same_scores_with_its_weights_here(linear: bool, whole: bool, tmp_path) -> None:
    torch.manual_seed(0)
    theirs, ours = Gpt2(11, 8, 2, 3, 9, linear), nn.GPT(11, 8, 2, 3, 9, rng=0)
    state = theirs.state_dict() if whole else theirs.transformer.state_dict()
    load_torch_state(ours, state)
    ids = np.array([3, 1, 4, 1, 5, 9, 2])
    assert far(ours(ids), theirs(torch.tensor(ids))) < TIGHT


def test_our_gpt_goes_back_to_gpt2() -> None:
    theirs, ours = Gpt2(11, 8, 2, 3, 9, linear=False), nn.GPT(11, 8, 2, 3, 9, rng=5)
    lacking = theirs.load_state_dict(to_torch(ours), strict=False)
    assert not lacking.unexpected_keys
    assert all(name.endswith("attn.bias") or name == "lm_head.weight" for name in lacking.missing_keys)
    ids = np.array([3, 1, 4])
    assert far(ours(ids), theirs(torch.tensor(ids))) < TIGHT


def encoder_of_theirs(norm_first=True, heads=2, activation="gelu", eps=1e-5):
    layer = torch.nn.TransformerEncoderLayer(
        4, heads, 6, activation=activation, norm_first=norm_first, layer_norm_eps=eps, dtype=torch.float64
    )
    last_norm = torch.nn.LayerNorm(4, dtype=torch.float64)
    return torch.nn.TransformerEncoder(layer, 2, last_norm, enable_nested_tensor=False).eval()


@pytest.mark.parametrize("setting", [
    {"norm_first": False}, {"heads": 4}, {"activation": "relu"}, {"activation": torch.nn.ReLU()}, {"eps": 1e-6},
    {"activation": torch.nn.GELU(approximate="tanh")},
], ids=str)  # fmt: skip
def test_a_module_of_theirs_that_computes_otherwise_is_refused_though_its_weights_fit(setting) -> None:
    theirs, ours = encoder_of_theirs(**setting), nn.TransformerEncoder(2, 4, 2, 6, activation="gelu", rng=0)
    load_torch_state(ours, theirs.state_dict())  # a state cannot tell
    with pytest.raises(ta.ArgumentError, match=r"layers\.0\."):
        load_torch_state(ours, theirs)


@pytest.mark.parametrize("activation", ["gelu", torch.nn.GELU(), torch.nn.functional.gelu], ids=["a", "b", "c"])
def test_a_module_of_theirs_that_computes_the_same_is_taken_with_its_weights(activation, rng) -> None:
    theirs, x = encoder_of_theirs(activation=activation), rng.normal(size=(3, 4))
    ours, more = nn.TransformerEncoder(2, 4, 2, 6, activation="gelu", rng=0), torch.nn.ModuleDict({"body": theirs})
    load_torch_state(ours, theirs)
    assert far(ours(x), theirs(torch.tensor(x))) < TIGHT
    load_torch_state(ours, more, prefix="body.")
    assert far(ours(x), theirs(torch.tensor(x))) < TIGHT


def pairs():
    yield nn.MultiHeadAttention(4, 2, bias=True, rng=0), torch.nn.MultiheadAttention(4, 2)
    yield nn.MultiHeadAttention(4, 2, d_keys=3, bias=True, rng=0), torch.nn.MultiheadAttention(4, 2, kdim=3, vdim=3)
    yield nn.TransformerBlock(4, 2, 6, rng=0), torch.nn.TransformerEncoderLayer(4, 2, 6)
    yield (
        nn.TransformerEncoder(2, 4, 2, 6, rng=0),
        torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 6), 2, torch.nn.LayerNorm(4)),
    )
    yield (
        nn.TransformerBlock(4, 2, 6, bias=False, norm_bias=False, rng=0),
        torch.nn.TransformerEncoderLayer(4, 2, 6, bias=False),
    )
    yield (
        nn.TransformerEncoder(2, 4, 2, 6, last_norm=False, rng=0),
        torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 6), 2),
    )
    yield nn.Linear(3, 2, rng=0), torch.nn.Linear(3, 2)
    yield nn.Embedding(3, 2, rng=0), torch.nn.Embedding(3, 2)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("place", range(8))
def test_a_file_of_theirs_comes_here_and_goes_back_bit_for_bit(place: int, tmp_path) -> None:
    library = pytest.importorskip("safetensors.torch")
    ours, theirs = list(pairs())[place]
    theirs.double()
    library.save_file(theirs.state_dict(), tmp_path / "theirs.safetensors")
    load_torch_state(ours, tmp_path / "theirs.safetensors")
    weights.save_arrays(tmp_path / "back.safetensors", torch_state(ours))
    back = library.load_file(tmp_path / "back.safetensors")
    assert back.keys() == theirs.state_dict().keys()
    assert all(torch.equal(back[name], array) for name, array in theirs.state_dict().items())
