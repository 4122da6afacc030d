"""What the parts around the engine are asked for wrongly is refused in words, in the name of what was called."""

from __future__ import annotations

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import data, nn, symbolic, torch_state
from tinyattn.models import Characters, train_chars

X = ta.tensor([1.0, 2.0], requires_grad=True)


def gpt() -> nn.GPT:
    return nn.GPT(5, 4, 2, 1, 4, rng=0)


ASKED_WRONGLY = {
    "parts of nothing": (lambda: ta.backward_in_parts("loss", [1.0]), "parts: loss_of is a str; a function"),
    "parts by another name": (lambda: ta.backward_in_parts(len, [1.0], chunks=2), "no argument 'chunks'"),
    "a sweep of nothing": (lambda: ta.sweep("f", {"n": [1]}), "sweep: function is a str; a function is needed"),
    "a sweep of too many": (lambda: ta.sweep(len, {"n": [1]}, jobs=10**15), "sweep: jobs=1000000000000000"),
    "a sweep's workers": (lambda: ta.sweep(len, {"n": [1]}, n_jobs=2), "no argument 'n_jobs'(.|\n)*Write jobs="),
    "characters of nothing": (lambda: Characters(None), r"a NoneType.\n  Write Characters\(read_text\(path\)\)"),
    "characters of bytes": (lambda: Characters(b"to be"), "text is a bytes"),
    "a training's width": (lambda: train_chars(Characters("to be " * 30), d_model=8), "Write d=... here"),
    "a batch of nothing": (lambda: data.pad_batch(None), r"pad_batch: a NoneType was given.*\n  Write pad_batch\("),
    "a batch of text": (lambda: data.pad_batch("text"), "pad_batch: a str was given"),
    "words of nothing": (lambda: data.Vocabulary(None), r"a list of texts was expected.\n  Write Vocabulary\("),
    "words of numbers": (lambda: data.Vocabulary(np.ones((2, 2))), "a list of texts was expected"),
    "frames without end": (lambda: data.frames(np.ones(3), 10**15, 1, pad=True), "than any computer has room for"),
    "a proof of arrays": (lambda: symbolic.prove_equal([1.0], X), "prove_equal: a list was given; two results"),
    "a state of nothing": (lambda: torch_state.torch_state("model"), "torch_state: a str was given; a module"),
    "a prefix of nothing": (lambda: torch_state.load_torch_state(nn.Linear(1, 1), {}, None), "prefix is a NoneType"),
    "a state's strictness": (lambda: nn.Linear(1, 1).load_state_dict({}, strict=False), "all has to fit"),
    "vectors' padding": (lambda: nn.Embedding.from_pretrained(np.ones((2, 2)), padding_idx=0), "no argument 'padding"),
    "a text's length": (lambda: gpt().generate([1], max_new_tokens=3), "generate: (.|\n)*Write steps=... here"),
    "a loss's index": (lambda: gpt().loss([1, 2], ignore_index=-1), "loss: (.|\n)*Write ignore=... here"),
    "a mode of PyTorch's": (lambda: ta.compile(len, mode="fast"), "compile: there is no argument 'mode'"),
    "a formula's size": (lambda: ta.derive(X.sum(), X, sizes=3), "derive: there is no argument 'sizes'"),
    "a comparison's size": (lambda: ta.compare(X.sum(), [X], sizes=3), "compare: there is no argument 'sizes'"),
}


@pytest.mark.parametrize("name", ASKED_WRONGLY)
def test_what_is_asked_for_wrongly_is_refused_in_words(name: str) -> None:
    ask, words = ASKED_WRONGLY[name]
    with pytest.raises(ta.TinyattnError, match=words):
        ask()


def test_more_parts_than_examples_are_as_many_parts_as_examples() -> None:
    """A billion parts of three examples are three, and take no longer."""
    w = ta.tensor(2.0, requires_grad=True)
    examples = np.arange(3.0)
    losses = [float(ta.backward_in_parts(lambda x: (w * x).mean(), examples, parts=parts)) for parts in (3, 10**9)]
    assert losses[0] == losses[1] == 2.0 and w.grad == 2.0


def test_words_may_come_one_by_one() -> None:
    assert data.Vocabulary(word for word in ("I", "saw")).words == ("<unknown>", "I", "saw")
