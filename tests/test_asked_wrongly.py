"""What the parts around the engine are asked for wrongly is refused in words, in the name of what was called."""

from __future__ import annotations

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import data, handover, nn, symbolic, torch_state
from tinyattn.models import Characters, Tagger, compare_taggers, split_corpus, train_chars

TEXT = Characters("to be " * 30)
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
    "a training's width": (lambda: train_chars(TEXT, d_model=8), "Write d=... here"),
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
    "a handed function": (lambda: handover.to_function(lambda x: x * 2), r"with 0 examples: missing.*\n.*\n.*each"),
    "a handed module": (lambda: handover.to_function(nn.Linear(2, 1)), "called with 0 examples: missing .*'x'"),
    "too many examples": (lambda: handover.to_function(lambda x: x * 2, np, [1.0], [2.0]), "with 2 examples: too many"),
    "no namespace": (lambda: handover.to_function(lambda x: x * 2, [1.0]), r"xp is a list.*\n.*\n.*\(f, np, x\)"),
    "axes in a text": (lambda: handover.to_function(lambda x: x * 2, np, [1.0], dynamic="n"), "dynamic is a str"),
    "lengths in a text": (lambda: ta.derive(X.sum(), X, dims="n d"), "write dims={'X': 'n d'}"),
    "a proof of no op": (lambda: symbolic.prove_at_sizes("softmax"), "there are no calls of str at explicit sizes"),
    "a text to train on": (lambda: train_chars("to be"), r"text is a str; Characters.*\n.*Characters\(text\)\)"),
    "steps of text": (lambda: train_chars(TEXT, steps="a"), "train_chars: steps='a' must be a whole"),
    "a batch below 1": (lambda: train_chars(TEXT, batch=0), "train_chars: batch=0 must be a whole"),
    "a rate of text": (lambda: train_chars(TEXT, lr="a"), "train_chars: lr='a' must be one number"),
    "a corpus of nothing": (lambda: split_corpus(None), r"split_corpus.*NoneType.*\n.*data.read_conllu\(path\)"),
    "taggers of nothing": (lambda: compare_taggers("corpus"), r"compare_taggers.*str.*\n.*split_corpus\(sentences\)"),
    "a tagger's kind": (lambda: Tagger(3, 2, ["self attention"]), "Tagger: kind=.* must be one of"),
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
