"""A model of characters: it learns from any text, or a list of names, and then writes more of the kind."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyattn import nn, optim, train
from tinyattn.arguments import argument_names, one_number, refuse_unknown
from tinyattn.errors import ArgumentTypeError, DataFileError, message
from tinyattn.files import read_whole
from tinyattn.mode import no_grad
from tinyattn.nn.module import check_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinyattn.tensor import Tensor

    Ids = NDArray[np.int64]

EPOCH = 50  # steps
_LONGEST_NAME = 40
_FEWEST_NAMES = 20
_JUDGED = 4  # batches that the held-out loss is measured on


class Characters:
    r"""A text as numbers: which characters there are, and what is learned from and held out.

    Parameters
    ----------
    text : str
        A list of short lines is taken as a list of names, whose order does not matter: it is shuffled.
    seed : int

    Attributes
    ----------
    characters : str
        All there are, sorted; the number of one is its place.
    names : bool
        Whether it is a list of names.
    learned, held_out : ndarray of int
        Nine tenths and one tenth.

    Examples
    --------
    >>> text = Characters("to be or not to be\n" * 9)
    >>> text.characters, text.names
    ('\n benort', False)
    >>> text.text_of(text.ids_of("to be"))
    'to be'
    """

    def __init__(self, text: str, seed: int = 0) -> None:
        _check_text(text)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        self.names = len(set(lines)) >= _FEWEST_NAMES and max(map(len, lines)) <= _LONGEST_NAME
        if self.names:
            order = np.random.default_rng(seed).permutation(len(lines))
            text = "\n" + "\n".join(lines[place] for place in order) + "\n"
        self.characters = "".join(sorted(set(text)))
        self._number = {character: number for number, character in enumerate(self.characters)}
        ids, cut = self.ids_of(text), len(text) - max(len(text) // 10, 2)
        self.learned, self.held_out = ids[:cut], ids[cut:]

    def ids_of(self, text: str) -> Ids:
        """The numbers of characters that the text has."""
        return np.array([self._number[character] for character in text], dtype=np.int64)

    def text_of(self, ids: Sequence[int] | Ids) -> str:
        """The characters of some numbers."""
        return "".join(self.characters[number] for number in ids)


class Windows(Sequence[Any]):
    """Batches of windows that begin anywhere in a text: drawn anew each time one is asked for."""

    def __init__(self, ids: Ids, batch: int, length: int, batches: int, rng: np.random.Generator) -> None:
        self.ids, self.batch, self.length, self.batches, self.rng = ids, batch, length, batches, rng

    def __len__(self) -> int:
        return self.batches

    def __getitem__(self, place: Any) -> Any:
        if place >= self.batches:
            raise IndexError(place)
        starts = self.rng.integers(0, len(self.ids) - self.length, size=self.batch)
        return self.ids[starts[:, None] + np.arange(self.length + 1)]  # (batch, length + 1)


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        what = f"Characters: the text is a {type(text).__name__}."
        raise ArgumentTypeError(message(what, "", "Write Characters(read_text(path)) for a file."))


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a text file, and refuse what is none or too short to learn from.

    Raises
    ------
    MissingFileError, DataFileError

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> path.write_text("to be or not to be " * 9, encoding="utf-8")
    171
    >>> len(read_text(path))
    171
    """
    content = read_whole(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataFileError("is not text in UTF-8.", str(path), line) from None
    if len(text) < 100 or len(set(text)) < 2:
        amount = f"{len(text)} characters, {len(set(text))} different ones"
        raise DataFileError(f"has {amount}; too few to learn from.", str(path))
    return text.replace("\r\n", "\n")


def train_chars(
    text: Characters,
    *,
    steps: int = 1000,
    layers: int = 4,
    d: int = 64,
    heads: int = 4,
    length: int = 64,
    batch: int = 16,
    lr: float = 3e-3,
    dropout: float = 0.0,
    seed: int = 0,
    **options: Any,
) -> tuple[nn.GPT, train.History]:
    """Train a decoder on windows of a text; in float32, and with heads in one op.

    Parameters
    ----------
    text : Characters
    steps : int
        Epochs have 50; the last may have fewer.
    layers, d, heads, length, dropout
        As in `tinyattn.nn.GPT`.
    batch : int
        How many windows in a step.
    lr : float
        The highest learning rate; it rises, and falls along a cosine.
    seed : int
    **options
        More for `tinyattn.train.fit`: checkpoint, resume, progress, ...

    Returns
    -------
    GPT, History
        With the held-out loss after every 50 steps in ``history.validations``; see `held_out_loss`.

    Examples
    --------
    >>> text = Characters("to be or not to be " * 9)
    >>> model, history = train_chars(text, steps=3, layers=1, d=8, heads=2, length=8, batch=2, progress=False)
    >>> history.steps, model.length
    (3, 8)
    """
    refuse_unknown("train_chars", options, argument_names(train_chars) + argument_names(train.fit))
    _check_sizes(text, steps=steps, length=length, batch=batch)
    rng, lr = nn.init.generator(seed), one_number(lr, "train_chars", "lr")
    length = min(length, len(text.held_out) - 1, len(text.learned) - 1)
    model = nn.GPT(len(text.characters), d, heads, layers, length, dropout=dropout, rng=rng).astype(np.float32)
    batches = Windows(text.learned, batch, length, EPOCH, rng)
    optimiser = optim.AdamW(model.parameters(), betas=(0.9, 0.99), decay=0.1)
    schedule = optim.cosine(lr, steps, min(100, steps // 10), lr / 10)
    history = train.fit(
        model, batches, _loss, optimiser=optimiser, epochs=-(-steps // EPOCH), steps=steps, rng=rng, schedule=schedule,
        clip=1.0, validate=lambda model: held_out_loss(model, text, batch), **options,
    )  # fmt: skip
    return model, history


def _check_sizes(text: object, **sizes: object) -> None:
    if not isinstance(text, Characters):
        what = f"train_chars: text is a {type(text).__name__}; Characters are needed."
        raise ArgumentTypeError(message(what, "", "Write train_chars(Characters(text))."))
    for name, size in sizes.items():
        check_size(size, "train_chars", name)


def held_out_loss(model: nn.GPT, text: Characters, batch: int = 16) -> float:
    """The loss on windows of the held-out part, the same ones every time.

    Parameters
    ----------
    model : GPT
    text : Characters
    batch : int
        How many windows are taken at once.

    Examples
    --------
    >>> text = Characters("to be or not to be " * 9)
    >>> model = nn.GPT(len(text.characters), 8, 2, 1, 8, rng=0)
    >>> 1 < held_out_loss(model, text) < 4
    True
    """
    judged = Windows(text.held_out, batch, model.length, _JUDGED, np.random.default_rng(0))
    with no_grad():
        return float(np.mean([float(model.loss(windows).data) for windows in judged]))


def _loss(model: nn.GPT, windows: Ids) -> Tensor:
    return model.loss(windows)


def samples(
    model: nn.GPT, text: Characters, count: int, *, temperature: float = 0.8, top_k: int | None = None, seed: int = 0
) -> list[str]:
    """Let the model write: names, each up to the end of its line; or one text of some lines' length.

    Parameters
    ----------
    model : GPT
    text : Characters
    count : int
        How many names, or lines of 60 characters.
    temperature, top_k
        As in `tinyattn.nn.GPT.generate`.
    seed : int
    """
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "rng": rng}
    begin = text.ids_of("\n") if "\n" in text.characters else text.learned[:1]
    if text.names:
        end = int(begin[0])
        return [text.text_of(model.generate(begin, _LONGEST_NAME, end=end, **options)).strip() for _ in range(count)]
    return text.text_of(model.generate(begin, 60 * count, **options)).strip("\n").split("\n")
