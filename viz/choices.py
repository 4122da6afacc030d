"""What every picture can be told: a heading, colours, a direction; refused in words where it is none of these."""

from __future__ import annotations

from collections.abc import Sequence

from tinyattn.errors import ArgumentError, ArgumentTypeError


def heading_of(title: object, usual: str) -> str:
    """The title that was given, or the usual one.

    >>> heading_of(None, "Waveform"), heading_of("A song", "Waveform")
    ('Waveform', 'A song')
    """
    if title is None:
        return usual
    if not isinstance(title, str):
        raise ArgumentTypeError(f"title is a {type(title).__name__}; a text is needed.")
    return title


def one_of(what: str, given: object, known: Sequence[str]) -> None:
    """Refuse a word that is not among the known ones.

    >>> one_of("theme", "drak", ("auto", "light", "dark"))
    Traceback (most recent call last):
        ...
    tinyattn.errors.ArgumentError: theme='drak'; it is 'auto', 'light' or 'dark'.
    """
    if not isinstance(given, str) or given not in known:
        *others, last = map(repr, known)
        shown = repr(given) if isinstance(given, (str, int, float)) or given is None else f"a {type(given).__name__}"
        raise ArgumentError(f"{what}={shown}; it is {', '.join(others)} or {last}.")


def check_theme(theme: object) -> None:
    """Refuse colours that there are none of."""
    one_of("theme", theme, ("auto", "light", "dark"))
