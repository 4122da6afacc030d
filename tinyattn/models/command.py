"""``tinyattn train tagger`` and ``tinyattn train chars``: train, print what came out, keep curve and weights."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyattn import data
from tinyattn.errors import DataFileError, MissingLibraryError, MissingToolError
from tinyattn.files import write_whole
from tinyattn.models import chars, tagger
from tinyattn.nn.gpt import choose
from tinyattn.terminal import say, say_table

__all__ = ["main"]


def main(words: Sequence[str]) -> int:
    """Run ``tinyattn train`` with the words that follow it.

    Returns
    -------
    int
        0; 130 when Ctrl-C ended it early.
    """
    options = _parser().parse_args(words)
    run: Any = options.run
    code: int = run(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tinyattn train", description="Train a small model, and see what it can do.")
    commands = parser.add_subparsers(metavar="MODEL", required=True)
    _add_tagger(commands)
    _add_chars(commands)
    return parser


def _add_tagger(commands: Any) -> None:
    parser = commands.add_parser(
        "tagger", help="part-of-speech tags, with and without attention and position",
        description="Four taggers on the same sentences: the most frequent tag, no attention, attention without "
        "position, attention with it. The table says how many held-out words each gets right.",
    )  # fmt: skip
    add = parser.add_argument
    add("--corpus", metavar="FILE", help="CoNLL-U file to learn from (default: the sample corpus)")
    add("--held-out", metavar="FILE", help="CoNLL-U file to be judged by (default: every tenth sentence)")
    add("--language", choices=("english", "chinese"), default="english", help="of the sample corpus")
    add("--epochs", type=_count, default=30, metavar="N", help="at most so many (default: %(default)s)")
    add("--width", type=_count, default=32, metavar="D", help="width of a word (default: %(default)s)")
    add("--heads", type=_count, default=4, metavar="H", help="heads of attention (default: %(default)s)")
    _add_common(parser)
    parser.set_defaults(run=_tagger)


def _add_chars(commands: Any) -> None:
    parser = commands.add_parser(
        "chars", help="a model that continues a text, character by character",
        description="A Transformer learns to continue a text or a list of names, and writes some at the end. "
        "Loss curve, numbers and weights are kept in a folder; --resume goes on from there.",
    )  # fmt: skip
    add = parser.add_argument
    add("file", metavar="FILE", help="text in UTF-8; short lines are taken as names")
    add("--steps", type=_count, default=1000, metavar="N", help="batches to learn from, in all (default: %(default)s)")
    add("--layers", type=_count, default=4, metavar="L", help="blocks (default: %(default)s)")
    add("--width", type=_count, default=64, metavar="D", help="width of a character (default: %(default)s)")
    add("--heads", type=_count, default=4, metavar="H", help="heads of each block (default: %(default)s)")
    add("--length", type=_count, default=64, metavar="N", help="characters it looks back on (default: %(default)s)")
    add("--batch", type=_count, default=16, metavar="B", help="windows in a step (default: %(default)s)")
    add("--rate", type=_positive, default=3e-3, metavar="LR", help="highest learning rate (default: %(default)s)")
    add("--dropout", type=float, default=0.0, metavar="P", help="share dropped while learning (default: %(default)s)")
    add("--samples", type=_count, default=10, metavar="N", help="names, or lines, to write (default: %(default)s)")
    add("--temperature", type=float, default=0.8, metavar="T", help="how daring (default: %(default)s)")
    add("--top-k", type=_count, metavar="K", help="choose among the K likeliest only")
    add("--out", default="tinyattn-chars", metavar="DIR", help="folder for what is kept (default: %(default)s)")
    add("--resume", action="store_true", help="go on from the weights in that folder")
    _add_common(parser)
    parser.set_defaults(run=_chars)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="start of all random numbers (default: 0)")
    parser.add_argument("--ascii", action="store_true", help="print ASCII signs only, as far as the words allow it")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number


# -- tagger ---------------------------------------------------------------------------------------------------------


def _tagger(options: argparse.Namespace) -> int:
    if options.corpus is None:
        sentences = data.sample_corpus(options.language)
        held_out = data.sample_corpus(options.language, "held-out")
    else:
        sentences, held_out = data.read_conllu(options.corpus), None
    if options.held_out is not None:
        held_out = data.read_conllu(options.held_out)
    split = tagger.split_corpus(sentences, held_out)
    uses = zip(("to learn from", "to stop by", "to be judged by"), split)
    parts = [f"{len(part)} sentences {use} ({sum(map(len, part))} words)" for use, part in uses if part]
    say("; ".join(parts) + ".", options.ascii)
    sys.stdout.flush()
    results = tagger.compare_taggers(
        split, epochs=options.epochs, d=options.width, heads=options.heads, seed=options.seed, ascii=options.ascii
    )
    _print_table(split, results, options.ascii)
    return 0 if len(results) == len(tagger.KINDS) else 130


def _print_table(split: tagger.Split, results: Sequence[tagger.Result], ascii: bool) -> None:
    vocabulary = data.Vocabulary.of([s.words for s in split.learned], lower=True)
    kinds = [kinds for sentence in tagger.word_kinds(split, vocabulary) for kinds in sentence]
    totals = {heading: sum(heading in each for each in kinds) for heading in ("all", "known", "unknown", "ambiguous")}
    rows = []
    for result in results:
        shares = [f"{result.right[h] / n:.1%}" if n else "none" for h, n in totals.items()]
        numbers = sum(p.size for p in result.model.parameters()) if result.model is not None else 0
        epochs = len(result.history.epochs) if result.history is not None else 0
        rows.append([result.kind, *shares, numbers or "", epochs or ""])
    say("", ascii)
    say_table(rows, ["held-out words right", *(f"{h} {n}" for h, n in totals.items()), "numbers", "epochs"], ascii)
    say("", ascii)
    say(_verdict(results, totals["all"]), ascii)


def _verdict(results: Sequence[tagger.Result], words: int) -> str:
    """Say what attention brought, with how far chance alone moves such a number."""
    if len(results) < len(tagger.KINDS):
        return "Stopped; not every tagger has learned."
    plain, best = results[1].right["all"], max(r.right["all"] for r in results[2:])
    share = (plain + best) / 2 / words
    chance = 200 * (share * (1 - share) / words) ** 0.5
    gain = 100 * (best - plain) / words
    compared = f"gets {abs(gain):.1f} points {'more' if gain >= 0 else 'fewer'} right than the one without"
    by_chance = f"for {words} words chance alone moves a share by up to about {chance:.1f} points"
    return f"The better tagger with attention {compared}; {by_chance}."


# -- chars ----------------------------------------------------------------------------------------------------------


def _chars(options: argparse.Namespace) -> int:
    text = chars.Characters(chars.read_text(options.file), options.seed)
    choose([0.0], options.temperature, options.top_k, np.random.default_rng(0))  # refused now, not after the training
    os.makedirs(options.out, exist_ok=True)
    what = "a list of names" if text.names else "a text"
    say(
        f"{what.capitalize()}: {len(text.learned)} characters to learn from, {len(text.held_out)} held out, "
        f"{len(text.characters)} different.", options.ascii,
    )  # fmt: skip
    sys.stdout.flush()
    model, history = _learn_chars(text, options)
    numbers, done = sum(p.size for p in model.parameters()), history.steps
    pace = f" ({done / history.seconds:.1f} steps a second)" if history.seconds > 0 and not options.resume else ""
    say(f"{numbers} numbers learned in {done} steps of {options.batch} windows{pace}.", options.ascii)
    first = f"{history.validations[0]:.3f} after {chars.EPOCH} steps, " if done > chars.EPOCH else ""
    say(f"Held-out loss {first}{chars.held_out_loss(model, text, options.batch):.3f} now.", options.ascii)
    _keep(history, options)
    say("", options.ascii)
    settings: dict[str, Any] = {"temperature": options.temperature, "top_k": options.top_k, "seed": options.seed}
    for line in chars.samples(model, text, options.samples, **settings):
        say(f"  {line}", options.ascii)
    return 130 if history.interrupted else 0


def _learn_chars(text: chars.Characters, options: argparse.Namespace) -> tuple[Any, Any]:
    kept = os.path.join(options.out, "training.npz")
    if options.resume and not os.path.exists(kept):
        say(f"There is no {kept} to go on from; this begins anew.", options.ascii)
    try:
        return chars.train_chars(
            text, steps=options.steps, layers=options.layers, d=options.width, heads=options.heads,
            length=options.length, batch=options.batch, lr=options.rate, dropout=options.dropout, seed=options.seed,
            ascii=options.ascii, checkpoint=kept, resume=options.resume, label="characters",
        )  # fmt: skip
    except DataFileError as error:
        same = "--resume needs the text, --layers, --width, --heads, --length and --dropout that it began with."
        raise DataFileError(f"{error}\n  {same}") from None


def _keep(history: Any, options: argparse.Namespace) -> None:
    """Write the losses as a table, and as a picture where one can be drawn."""
    held_out = {(place + 1) * chars.EPOCH: value for place, value in enumerate(history.validations)}
    lines = ["step,loss,held_out"]
    for step, loss in enumerate(history.losses, 1):
        lines.append(f"{step},{loss:.6f},{held_out[step]:.6f}" if step in held_out else f"{step},{loss:.6f},")
    table = os.path.join(options.out, "loss.csv")
    write_whole(table, "\n".join(lines) + "\n")
    kept = [table, os.path.join(options.out, "training.npz")]
    try:
        from tinyattn._viz import load_viz

        picture = os.path.join(options.out, "loss.svg")
        curves, x_title = {"learned": history.epochs, "held out": history.validations}, f"{chars.EPOCH} steps"
        if len(history.epochs) < 2:  # no line yet
            curves, x_title = {"learned": history.losses}, "steps"
        load_viz().curve(curves, title="Loss", x_title=x_title).save(picture)
        kept.insert(0, picture)
    except (MissingLibraryError, MissingToolError, ModuleNotFoundError) as error:
        say(f"No picture of the curve: {str(error).splitlines()[0]}", options.ascii, sys.stderr)
    say(f"Kept: {', '.join(kept)}", options.ascii)
