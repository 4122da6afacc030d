"""The training loop: it learns, shows how far it is, and stops where it should with what it has."""

from __future__ import annotations

import gc
import io
import os
import signal
import subprocess
import sys
import weakref

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn, train
from tinyattn.terminal import ProgressBar

CHILD = """
import sys
import tinyattn as ta
from tinyattn import nn, train

model = nn.Linear(1, 1, rng=0)
steps = 0

def loss(model, batch):
    global steps
    steps += 1
    if steps == 3:
        print("ready", flush=True)
        sys.stdin.readline()          # the interrupt comes while the parent holds this step
        {after}
    return ta.sum(model([[1.0]]) ** 2)

try:
    history = train.fit(model, [None], loss, epochs=1000, optimiser=ta.optim.SGD(model.parameters(), lr=0.1))
except KeyboardInterrupt:
    print("at once", steps, flush=True)
else:
    whole = all(p.grad is not None for p in model.parameters())
    print("kept", history.steps, history.interrupted, whole, flush=True)
"""


def child(after: str = "pass") -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", CHILD.format(after=after)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


@pytest.mark.skipif(os.name == "nt", reason="another process cannot send Ctrl-C there")
def test_ctrl_c_stops_after_the_step_and_keeps_what_was_learned() -> None:
    run = child()
    assert run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGINT)
    out, err = run.communicate("\n", timeout=60)
    assert out == "kept 3 True True\n"
    assert "Stopped after 3 of 1000 steps; what was learned is kept." in err


@pytest.mark.skipif(os.name == "nt", reason="another process cannot send Ctrl-C there")
def test_a_second_ctrl_c_stops_at_once() -> None:
    run = child(after="import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    assert run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate("\n", timeout=60)
    assert out == "at once 3\n"


def line() -> tuple[nn.Linear, list]:
    x = np.linspace(-1.0, 1.0, 8)[:, None]
    return nn.Linear(1, 1, rng=0), [(x[i : i + 2], 3 * x[i : i + 2] + 1) for i in range(0, 8, 2)]


def squared(model: nn.Module, batch: tuple[np.ndarray, np.ndarray]) -> ta.Tensor:
    return ta.mse(model(batch[0]), batch[1])


def test_it_learns_a_line() -> None:
    model, batches = line()
    history = train.fit(model, batches, squared, epochs=300, progress=False)
    np.testing.assert_allclose([model.W.data[0, 0], model.b.data[0]], [3.0, 1.0], atol=1e-2)
    assert history.steps == 1200 and len(history.epochs) == 300 and not history.interrupted
    assert history.epochs[-1] < 1e-3 < history.epochs[0]
    assert history.epochs[0] == pytest.approx(np.mean(history.losses[:4]))


def test_the_same_seed_gives_the_same_bits() -> None:
    results = []
    for _ in range(2):
        model, batches = line()
        history = train.fit(model, batches, squared, epochs=3, progress=False)
        results.append((history.losses, model.W.tolist()))
    assert results[0] == results[1]


def test_two_graphs_never_live_at_once() -> None:
    alive: list[weakref.ref] = []

    def loss(model: nn.Module, batch: object) -> ta.Tensor:
        assert not any(graph() is not None for graph in alive)
        value = squared(model, batch)
        alive.append(weakref.ref(value))
        return value

    model, batches = line()
    gc.disable()
    try:
        train.fit(model, batches, loss, epochs=2, progress=False)
    finally:
        gc.enable()
    assert len(alive) == 8


def test_training_mode_is_on_inside_and_as_before_outside() -> None:
    model, batches = line()
    seen = []
    model.eval()
    train.fit(model, batches, lambda m, b: seen.append(m.training) or squared(m, b), epochs=1, progress=False)
    assert seen == [True] * 4 and model.training is False


def test_progress_is_shown_with_the_loss() -> None:
    model, batches = line()
    shown = io.StringIO()
    train.fit(model, batches, squared, epochs=5, label="a line", stream=shown)
    assert shown.getvalue().splitlines()[-1].startswith("a line: 20 of 20 (100 %), loss ")


def test_a_loss_that_is_nan_is_not_followed() -> None:
    model, batches = line()
    before = model.state_dict()
    with pytest.raises(ta.NanError, match=r"nan in step 1[^0-9]"):
        train.fit(model, batches, lambda m, b: squared(m, b) * np.nan, progress=False)
    assert (model.W.data == before["W"]).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("batches", "loss", "epochs", "words"), [
    ([], squared, 1, "no batch"),
    (iter([1]), squared, 1, r"list\(batches\)"),
    ([1], lambda m, b: 1.0, 1, "float; one number as a tensor"),
    ([1], lambda m, b: m([[1.0], [2.0]]), 1, r"\(2, 1\); one number as a tensor"),
    ([1], squared, 0, "epochs=0"),
])
def test_what_cannot_be_is_refused_in_words(batches, loss, epochs: int, words: str) -> None:
    with pytest.raises(ta.TinyattnError, match=words):
        train.fit(nn.Linear(1, 1, rng=0), batches, loss, epochs=epochs, progress=False)


def test_a_bar_of_ones_own_goes_on_over_several_trainings() -> None:
    shown = io.StringIO()
    with ProgressBar(16, "twice", stream=shown) as bar:
        for _ in range(2):
            model, batches = line()
            train.fit(model, batches, squared, epochs=2, progress=bar)
    assert shown.getvalue().splitlines()[-1].startswith("twice: 16 of 16")


@pytest.mark.parametrize(("options", "words"), [
    ({"schedule": 0.1}, "schedule=0.1 is no function"),
    ({"optimiser": ta.optim.SGD}, "is no optimiser"),
    ({"validate": lambda model: None}, "validate gave a NoneType"),
    ({"steps": 0}, "steps=0 must be a whole number"),
    ({"checkpoint": "no-such-folder/a.npz"}, "there is no folder"),
    ({"batches": {"a": 1}}, "batches is a dict"),
    ({"model": None}, "model is a NoneType"),
    ({"loss": "mse"}, r"loss is a str; a function is needed.\n.*\n  Write loss=lambda model, batch"),
    ({"validate": "loss"}, "validate is a str; a function is needed"),
    ({"validate": lambda model: "good"}, "validate gave a str"),
    ({"schedule": lambda step: "fast"}, "schedule gave 'fast' in step 1; a learning rate is needed"),
    ({"schedule": lambda step: -0.1}, "schedule gave -0.1 in step 1"),
    ({"clip": "a"}, "clip='a' must be one number"),
    ({"clip": 0}, "clip=0 must be above 0"),
    ({"progress": "bar"}, "progress is a str; True, False or a ProgressBar"),
    ({"resume": "a.npz"}, "resume='a.npz' must be True or False"),
    ({"label": None}, "label is a NoneType; a text"),
    ({"stream": "stdout"}, "stream is a str; a text stream"),
    ({"ascii": 2}, "ascii=2 must be True or False"),
    ({"rng": "a"}, "rng='a' is not a source"),
    ({"checkpoint": 3}, "a path is needed, not a int"),
    ({"optimizer": None}, "fit: there is no argument 'optimizer'(.|\n)*Write optimiser="),
])  # fmt: skip
def test_what_is_no_part_of_a_training_is_refused_in_words(options: dict, words: str) -> None:
    given = {"model": ta.nn.Linear(1, 1, rng=0), "batches": [[[1.0]]], **options}
    with pytest.raises(ta.TinyattnError, match=words):
        ta.train.fit(**{"loss": lambda model, x: ta.mse(model(x), x), "epochs": 2, "progress": False, **given})
