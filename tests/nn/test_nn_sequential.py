"""Sequential: the same as its parts by hand, a Module like any other, and words for what is no part."""

from __future__ import annotations

import operator
import re

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn
from tinyattn.elsewhere import IN_NN, NEAREST


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 3, rng=0), ta.relu, nn.Sequential(nn.Linear(3, 3, rng=1), nn.Dropout(0.5, rng=2)))


def test_it_computes_what_its_parts_compute_by_hand_with_the_same_gradients(rng) -> None:
    x, whole = rng.normal(size=(5, 4)), model().eval()
    first, relu, (second, dropout) = whole
    ta.sum(whole(x) ** 2).backward()
    gradients = [p.grad for p in whole.parameters()]
    whole.zero_grad()
    ta.sum(dropout(second(relu(first(x)))) ** 2).backward()
    assert [g.tolist() for g in gradients] == [p.grad.tolist() for p in whole.parameters()]


def test_it_is_a_module_with_names_scopes_and_a_mode() -> None:
    whole = model()
    names = ["parts.0.W", "parts.0.b", "parts.2.parts.0.W", "parts.2.parts.0.b"]
    assert [name for name, _ in whole.named_parameters()] == names == list(whole.state_dict())
    y = whole(np.ones((2, 4)))
    assert y.scope == ("Sequential", "parts[2]", "parts[1]")
    assert not whole.eval()[2][1].training and whole.train()[2][1].training
    assert repr(whole).startswith("Sequential(Linear, relu, Sequential\n  parts.0: Linear(4, 3)\n  parts.2: ")


def test_parts_are_had_by_number_and_a_slice_shares_them() -> None:
    whole = model()
    assert len(whole) == 3 and whole[1] is ta.relu and whole[-1] is whole.parts[2]
    assert isinstance(whole[:2], nn.Sequential) and whole[:2][0] is whole[0]


MISTAKES = {
    "no part": (lambda: nn.Sequential(), "Sequential: there is no part"),
    "a list": (lambda: nn.Sequential([ta.relu]), r"part 0 is a list.*\n.*\n  Write Sequential\(\*parts\)"),
    "a class": (lambda: nn.Sequential(ta.relu, nn.Linear), r"part 1 is the class Linear.*\n  Write Linear\(...\)"),
    "text": (lambda: nn.Sequential("relu"), "part 0 is a str, which cannot be called"),
    "a keyword": (lambda: nn.Sequential(layers=[ta.relu]), "no argument 'layers'.\n  It takes none by name."),
    "beyond": (lambda: model()[3], "there is no part 3 among 3"),
    "by name": (lambda: model()["relu"], "there is no part 'relu' among 3"),
    "widths": (lambda: nn.Sequential(nn.Linear(4, 3), nn.Linear(4, 3))(np.ones((2, 4))), "rows must have width 4"),
    "a mask": (lambda: model()(np.ones((2, 4)), mask=None), "Sequential: there is no argument 'mask'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_no_part_is_refused_in_words(name: str) -> None:
    call, words = MISTAKES[name]
    with pytest.raises(ta.TinyattnError, match=words):
        call()


@pytest.mark.parametrize(("name", "instead"), [
    ("ReLU", "Write ta.relu."),
    ("ModuleList", "Instead: a list of modules in an attribute."),
    ("CrossEntropyLoss", r"Write ta.cross_entropy\(scores, targets\)."),
    ("MultiheadAttention", r"Write nn.MultiHeadAttention\(d, heads\)."),
])  # fmt: skip
def test_a_name_of_pytorch_is_answered_with_ours(name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=rf"module 'tinyattn.nn' has no attribute '{name}'.\n  {instead}"):
        getattr(nn, name)


def test_every_replacement_that_is_code_names_what_is_there() -> None:
    """A table that sends a reader to a function that does not exist would be worse than none."""
    words = " ".join([*NEAREST.values(), *IN_NN.values()])
    paths = re.findall(r"\bta\.((?:nn\.|optim\.|train\.|weights\.)?\w+)", words)
    assert len(paths) > 50 and all(operator.attrgetter(path)(ta) for path in paths)
    assert all(hasattr(nn, name) for name in re.findall(r"\bnn\.(\w+)", words))
