"""A training that stops and goes on ends at the same bits as one that does not stop; early stop; validation."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn, optim, train, weights
from tinyattn.checkpoints import load_checkpoint, save_checkpoint

BATCHES = [np.random.default_rng(i).integers(0, 7, size=(2, 6)) for i in range(5)]


class Crash(Exception):
    pass


def model() -> nn.GPT:
    return nn.GPT(7, 8, 2, 1, 5, dropout=0.2, rng=3)


def loss(model: nn.GPT, batch: np.ndarray) -> ta.Tensor:
    return model.loss(batch)


def crashing(at: int):
    """A loss that fails in its n-th call, as when the machine is switched off."""
    calls = iter(range(1, 10**6))

    def failing(model: nn.GPT, batch: np.ndarray) -> ta.Tensor:
        if next(calls) == at:
            raise Crash
        return loss(model, batch)

    return failing


def interrupting(at: int):
    calls = iter(range(1, 10**6))

    def pressing(model: nn.GPT, batch: np.ndarray) -> ta.Tensor:
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGINT)
        return loss(model, batch)

    return pressing


def run(function=loss, made=None, **options) -> tuple[nn.GPT, train.History]:
    learned = model() if made is None else made
    settings = {"optimiser": optim.AdamW(learned.parameters()), "schedule": optim.cosine(0.01, 20, 4), "epochs": 4,
                "clip": 1.0, "progress": False, "rng": 11}  # fmt: skip
    return learned, train.fit(learned, BATCHES, function, **{**settings, **options})


def same(one: tuple[nn.GPT, train.History], other: tuple[nn.GPT, train.History]) -> bool:
    numbers = zip(one[0].state_dict().values(), other[0].state_dict().values(), strict=True)
    return all(np.array_equal(a, b) for a, b in numbers) and one[1].losses == other[1].losses and (
        one[1].epochs == other[1].epochs and one[1].validations == other[1].validations and one[1].best == other[1].best
    )


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
@pytest.mark.parametrize("at", [1, 7, 13, 20])
def test_after_a_crash_it_goes_on_to_the_same_bits(at: int, ending: str, tmp_path: Path) -> None:
    if ending == "safetensors":
        pytest.importorskip("safetensors")
    whole, path = run(), tmp_path / f"a.{ending}"
    with pytest.raises(Crash):
        run(crashing(at), checkpoint=path)
    assert path.exists() == (at > 5)
    assert same(run(checkpoint=path, resume=True), whole)
    assert same(run(checkpoint=path, resume=True), whole), "going on from the end changes nothing"


@pytest.mark.skipif(os.name == "nt", reason="a process cannot send itself Ctrl-C there")
@pytest.mark.parametrize("at", [3, 5, 12])
def test_after_ctrl_c_in_an_epoch_it_goes_on_to_the_same_bits(at: int, tmp_path: Path) -> None:
    whole = run()
    _, history = run(interrupting(at), checkpoint=tmp_path / "a.npz", every=100)
    assert history.interrupted and history.steps == at
    assert same(run(checkpoint=tmp_path / "a.npz", resume=True), whole)


def test_another_optimiser_with_momentum_goes_on_too(tmp_path: Path) -> None:
    def made(**options):
        learned = model()
        return run(made=learned, optimiser=optim.SGD(learned.parameters(), 0.01, 0.9), schedule=None, **options)

    made(checkpoint=tmp_path / "a.npz", epochs=2)
    assert same(made(checkpoint=tmp_path / "a.npz", resume=True), made())


def test_a_generator_shared_by_model_and_training_goes_on_too(tmp_path: Path) -> None:
    def shared(**options):
        source = np.random.default_rng(5)
        return run(made=nn.GPT(7, 8, 2, 1, 5, dropout=0.2, rng=source), rng=source, **options)

    shared(checkpoint=tmp_path / "a.npz", epochs=1)
    assert same(shared(checkpoint=tmp_path / "a.npz", resume=True), shared())


def test_early_stop_gives_the_numbers_of_the_best_epoch(tmp_path: Path) -> None:
    values, kept = iter([3.0, 1.0, 2.0, 1.0, 5.0, 0.0]), []

    def validate(model: nn.GPT) -> float:
        assert not model.training
        kept.append(model.state_dict())
        return next(values)

    learned, history = run(validate=validate, patience=2, epochs=6)
    assert (history.best, history.stopped_early, history.validations) == (2, True, [3.0, 1.0, 2.0, 1.0])
    assert all(np.array_equal(array, kept[1][name]) for name, array in learned.state_dict().items())
    assert "stopped early; epoch 2 was the best" in repr(history) and learned.training


def test_early_stop_goes_on_to_the_same_bits_too(tmp_path: Path) -> None:
    """The best numbers are in the checkpoint, too."""

    def early(function=loss, **options):
        return run(function, validate=lambda model: abs(float(model.embedding.table.data.mean()) - 0.03), patience=2,
                   epochs=12, **options)

    whole = early()
    with pytest.raises(Crash):
        early(crashing(5 * whole[1].best + 3), checkpoint=tmp_path / "a.npz")
    assert same(early(checkpoint=tmp_path / "a.npz", resume=True), whole) and whole[1].stopped_early


def test_without_validation_patience_looks_at_the_mean_loss() -> None:
    _, history = run(patience=1, epochs=50, optimiser=None, schedule=lambda step: 0.01 if step <= 15 else 1.0)
    assert history.stopped_early and history.best == int(np.argmin(history.epochs)) + 1 == len(history.epochs) - 1


def test_the_schedule_and_the_clip_are_used() -> None:
    rates, lengths = [], []

    class Watching(optim.SGD):
        def step(self) -> None:
            rates.append(self.lr)
            lengths.append(np.sqrt(sum((p.grad**2).sum() for p in self.parameters if p.grad is not None)))
            super().step()

    learned = model()
    run(made=learned, optimiser=Watching(learned.parameters(), 9.0), schedule=lambda s: s / 100, clip=0.01, epochs=1)
    assert rates == [0.01, 0.02, 0.03, 0.04, 0.05] and max(lengths) <= 0.01 * (1 + 1e-12)


def other_kind() -> dict:
    learned = model()
    return {"made": learned, "optimiser": optim.SGD(learned.parameters(), 0.1)}


@pytest.mark.parametrize(("options", "words"), [
    (lambda: {"made": nn.GPT(7, 4, 2, 1, 5, dropout=0.2, rng=3)}, r"is \(7, 4\) here, \(7, 8\)"),
    (lambda: {"made": nn.GPT(7, 8, 2, 1, 5, rng=3)}, "sources of random numbers"),
    (other_kind, "its optimiser is 'AdamW', here it is 'SGD'"),
    (lambda: {"rng": np.random.Generator(np.random.MT19937(0))}, "does not belong"),
], ids=["sizes", "dropout", "optimiser", "generator"])
def test_a_checkpoint_of_another_training_is_refused_and_changes_nothing(options, words: str, tmp_path: Path) -> None:
    run(checkpoint=tmp_path / "a.npz", epochs=1)
    given = options()
    learned = given.pop("made", None) or model()
    before = learned.state_dict()
    with pytest.raises(ta.DataFileError, match=words):
        run(made=learned, checkpoint=tmp_path / "a.npz", resume=True,
            **{"optimiser": optim.AdamW(learned.parameters()), **given})
    assert all(np.array_equal(before[name], array) for name, array in learned.state_dict().items())


def test_files_that_are_no_checkpoint_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    for write, words in (
        (lambda: weights.save(model(), path), "no checkpoint"),
        (lambda: path.write_bytes(b"PK\x03\x04 and no more"), "cannot be read"),
        (lambda: weights.save_arrays(path, {"W": np.ones(1)}, '{"format": "tinyattn checkpoint 1"}'), "no checkpoint"),
    ):
        write()
        with pytest.raises(ta.DataFileError, match=words):
            run(checkpoint=path, resume=True)


def test_more_batches_than_before_are_refused(tmp_path: Path) -> None:
    run(checkpoint=tmp_path / "a.npz", epochs=1)
    learned = model()
    with pytest.raises(ta.DataFileError, match="5 batches there, 4 here"):
        train.fit(learned, BATCHES[:4], loss, optimiser=optim.AdamW(learned.parameters()), progress=False, rng=11,
                  checkpoint=tmp_path / "a.npz", resume=True)


def test_every_kind_of_generator_can_be_kept(tmp_path: Path) -> None:
    for kind in (np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64):
        path = tmp_path / f"{kind.__name__}.npz"
        run(rng=np.random.Generator(kind(1)), checkpoint=path, epochs=1)
        whole = run(rng=np.random.Generator(kind(1)))
        assert same(run(rng=np.random.Generator(kind(1)), checkpoint=path, resume=True), whole)


@pytest.mark.parametrize(("options", "words"), [
    ({"resume": True}, "no file"), ({"patience": 0}, "patience=0"), ({"every": 0}, "every=0"),
    ({"checkpoint": "a.pickle", "epochs": 1}, "says no format"),
])
def test_what_cannot_be_is_refused_in_words(options: dict, words: str) -> None:
    with pytest.raises(ta.TinyattnError, match=words):
        run(**options)


PARTS = {
    "another order": (lambda: (nn.Linear(1, 1), "a.npz", None, None), "model is a str"),
    "no optimiser": (lambda: ("a.npz", nn.Linear(1, 1), np.random.default_rng(0), None), "optimiser is a Generator"),
    "a class": (lambda: ("a.npz", nn.Linear, None, None), "model is a type"),
    "a seed": (lambda: ("a.npz", nn.Linear(1, 1), optim.Adam([ta.tensor(1.0, requires_grad=True)]), 0), "rng is a int"),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("do", [save_checkpoint, load_checkpoint], ids=["save", "load"])
def test_parts_that_keep_nothing_are_refused_in_words(do, name: str) -> None:
    parts, words = PARTS[name]
    with pytest.raises(ta.ArgumentTypeError, match=f"{do.__name__}: {words}"):
        do(*parts())


def test_notes_that_json_cannot_hold_and_a_missing_file_are_told_in_words(tmp_path: Path) -> None:
    model, rng = nn.Linear(1, 1, rng=0), np.random.default_rng(0)
    parts = model, optim.SGD(model.parameters(), lr=0.1), rng
    for notes, words in (({"a": rng}, "notes hold a Generator"), ("text", "notes is a str"), ({(1,): 2}, "as JSON")):
        with pytest.raises(ta.ArgumentTypeError, match=words):
            save_checkpoint(tmp_path / "a.npz", *parts, notes=notes)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ta.MissingFileError, match="there is no file"):
        load_checkpoint(tmp_path / "a.npz", *parts)


def changed_notes(**notes):
    return lambda arrays, about: about["notes"].update(notes)


def changed_arrays(**changed):
    return lambda arrays, about: arrays.update({f"more/{name}": array for name, array in changed.items()})


@pytest.mark.parametrize(("change", "words"), [
    (changed_notes(place=99), "place 99"),
    (changed_notes(place=-1), "place -1"),
    (changed_notes(place="x"), "invalid literal"),
    (changed_notes(best=3), "its best epoch is 3"),
    (changed_notes(value="x"), "could not convert"),
    (changed_arrays(order=np.array([0, 0, 1, 2, 3])), "order of batches"),
    (changed_arrays(order=np.arange(5.0)), "order of batches"),
    (changed_arrays(losses=np.array(1.0)), "losses are none"),
    (changed_arrays(losses=np.ones((2, 2))), "losses are none"),
    (changed_arrays(losses=np.ones(2)), "after 2 steps and 1 epochs"),
    (lambda arrays, about: arrays.pop("more/losses"), "'losses' is missing"),
    (lambda arrays, about: arrays.update({"more/best/embedding.table": np.ones((9, 9))}), "another model"),
    (lambda arrays, about: arrays.update({"optimiser/lr": np.array(np.nan)}), "no finite number"),
    (lambda arrays, about: about.update(kind="Adam"), "its optimiser is 'Adam'"),
    (lambda arrays, about: about.pop("kind"), "'kind' is missing"),
], ids=range(15))  # fmt: skip
def test_a_checkpoint_that_was_tampered_with_changes_nothing(change, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    run(checkpoint=path, epochs=1)
    arrays, about = ta.weights.load_arrays(path), json.loads(ta.weights.load_notes(path))
    change(arrays, about)
    ta.weights.save_arrays(path, arrays, json.dumps(about))
    learned = model()
    before = learned.state_dict()
    with pytest.raises(ta.DataFileError, match=words):
        run(made=learned, checkpoint=path, resume=True)
    assert all(np.array_equal(before[name], array) for name, array in learned.state_dict().items())


def test_a_training_ends_after_so_many_steps_and_goes_on_from_within_an_epoch(tmp_path: Path) -> None:
    whole = run()
    first = run(steps=7, checkpoint=tmp_path / "a.npz")
    assert first[1].steps == 7 and len(first[1].epochs) == 1 and not first[1].interrupted
    assert same(run(checkpoint=tmp_path / "a.npz", resume=True), whole)
