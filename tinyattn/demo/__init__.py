"""``tinyattn demo``: the whole path once, on one sentence, in about fifteen seconds.

A sentence becomes vectors; one self-attention step is printed with all its numbers; its gradient is checked in
four ways; a tagger with attention is trained against one without; pictures are written.
"""

from __future__ import annotations

from tinyattn import nn
from tinyattn.demo import gradients, pictures, sentence, step, tagger
from tinyattn.demo.paper import Paper, numbered, shown
from tinyattn.demo.sentence import Options
from tinyattn.errors import RuleError

__all__ = ["Options", "run"]


def run(options: Options) -> int:
    """Run the demo and print it.

    Parameters
    ----------
    options : Options

    Returns
    -------
    int
        0, or 1 when the gradient check failed.

    Raises
    ------
    TinyattnError
        When the sentence, a file or the folder cannot be used.
    KeyboardInterrupt
        After Ctrl-C.
    """
    paper = Paper(options.ascii)
    folder = pictures.prepare(options.out)
    given = sentence.read(options)
    corpus = tagger.corpus_of(options)

    paper.lines("tinyattn demo: " + " ".join(map(shown, given.words[:20])) + (" …" if len(given.words) > 20 else ""))
    sentence.describe(given, options, paper)
    layer = nn.SelfAttention(given.d, rng=options.seed)
    loss, steps = gradients.record(given.x, layer)

    paper.heading(f"1. One self-attention step, seen from {numbered(given.words)[given.chosen]}")
    step.show(given, layer, steps, paper)
    paper.heading("2. What is remarkable")
    step.remark(given, layer, steps, options.position, paper)
    paper.heading("3. The gradient, four ways")
    try:
        good = gradients.check(given, layer, paper)
    except RuleError as error:
        paper.lines(str(error))
        return 1
    if good:
        paper.heading("4. What attention is good for: tagging words")
        if not tagger.compare(corpus, options, paper):
            raise KeyboardInterrupt
    paper.heading(f"{5 if good else 4}. Pictures")
    pictures.write(given, loss, steps, folder, paper)
    return 0 if good else 1
