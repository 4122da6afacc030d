"""Whatever is public in layers, training and models has an example; pytest runs them with the other doctests."""

from __future__ import annotations

import inspect

import pytest

from tinyattn import checkpoints, handover, models, nn, optim, torch_state, train, weights
from tinyattn.nn import init, masks, normalise, scores

MODULES = (nn, masks, scores, normalise, init, optim, train, checkpoints, weights, torch_state, models, handover)


def public(module):
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    for name in names:
        thing = getattr(module, name)
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and (
            hasattr(module, "__all__") or thing.__module__ == module.__name__
        ):
            yield name, thing


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_thing_has_an_example(module) -> None:
    found = dict(public(module))
    assert found
    assert [name for name, thing in found.items() if ">>>" not in (thing.__doc__ or "")] == []


def test_a_thing_without_an_example_would_be_seen() -> None:
    assert ">>>" not in (nn.Module.forward.__doc__ or "")
