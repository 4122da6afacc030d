"""``tinyattn check ... --sweep seed=0:50 n=1,4,16``: the same check at many seeds and sizes."""

from __future__ import annotations

import argparse
import copy
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tinyattn.check.report import Report
from tinyattn.errors import ArgumentError, TinyattnError, message
from tinyattn.sweeps import sweep
from tinyattn.terminal import table

VERDICTS = ("right", "wrong", "undecided")

Check = Callable[[argparse.Namespace], Report]


def swept(check: Check, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Check at every combination of what ``--sweep`` lists, here, on several cores or by a scheduler's workers.

    Returns
    -------
    list of dict
        For each setting, in order: "setting", "verdict", "report" (plain data, None where nothing could be checked) and
        "text".
    """
    ranges = ranges_of(options.sweep)
    _refuse_what_stays_open(ranges, options.shape or [])
    found = sweep(partial(_checked_at, check, options), ranges, jobs=options.jobs, scheduler=options.scheduler)
    return [outcome.result for outcome in found]


def ranges_of(words: Sequence[str]) -> dict[str, list[int]]:
    """What ``--sweep`` lists, by name.

    >>> ranges_of(["seed=0:3", "n=1,8"])
    {'seed': [0, 1, 2], 'n': [1, 8]}
    """
    ranges: dict[str, list[int]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        try:
            start, colon, end = text.partition(":")
            values = list(range(int(start), int(end))) if colon else [int(part) for part in text.split(",")]
        except ValueError:
            values = []
        if not equals or not name.isidentifier() or not values or min(values) < 0 or name in ranges:
            raise ArgumentError(
                message(
                    f"--sweep {word}: that is not a name with whole numbers.",
                    "",
                    "Write, for example, --sweep seed=0:50 n=1,4,16.",
                )
            )
        ranges[name] = values
    return ranges


def summary(name: str, records: Sequence[dict[str, Any]]) -> str:
    """How many were right at each size; then the first that was not, in full.

    >>> print(summary("f", [{"setting": {"seed": s, "n": 2}, "verdict": "right", "text": ""} for s in (0, 1)]))
    f: 2 checks, all right.
    n  right  wrong  undecided
    ─  ─────  ─────  ─────────
    2      2      0          0
    """
    counts: dict[tuple[int, ...], Counter[str]] = {}
    for record in records:
        sizes = tuple(value for key, value in record["setting"].items() if key != "seed")
        counts.setdefault(sizes, Counter())[record["verdict"]] += 1
    heads = [key for key in records[0]["setting"] if key != "seed"]
    others = [record for record in records if record["verdict"] != "right"]
    count = f"{len(records)} check{'s' * (len(records) != 1)}"
    lines = [f"{name}: {count}, {f'{len(others)} not right' if others else 'all right'}."]
    lines.append(table([[*sizes, *(found[each] for each in VERDICTS)] for sizes, found in counts.items()],
                       [*heads, *VERDICTS]))  # fmt: skip
    if others:
        where = ", ".join(f"{key}={value}" for key, value in others[0]["setting"].items())
        lines += ["", f"The first of them, at {where}:", others[0]["text"]]
    return "\n".join(lines)


def _checked_at(check: Check, options: argparse.Namespace, /, **place: int) -> dict[str, Any]:
    """One check, as plain data that can travel."""
    here = copy.copy(options)
    here.seed = place.get("seed", options.seed)
    here.shape = options.shape and [
        ",".join(str(place.get(part, part)) for part in sizes(text)) for text in options.shape
    ]
    try:
        report = check(here)
    except Exception as error:  # whatever the user's function raises at this size; the others go on
        text = str(error) if isinstance(error, TinyattnError) else f"{type(error).__name__}: {error}"
        return {"setting": place, "verdict": "undecided", "report": None, "text": text}
    return {"setting": place, "verdict": report.verdict, "report": report.as_dict(), "text": str(report)}


def sizes(text: str) -> list[str]:
    """The parts of a shape as it is written.

    >>> sizes("n, 4"), sizes("3x4")
    (['n', '4'], ['3', '4'])
    """
    return [part.strip() for part in re.split(r",|(?<=\d)x(?=\d)", text) if part.strip()]


def _refuse_what_stays_open(ranges: dict[str, list[int]], shapes: Sequence[str]) -> None:
    used = {part for text in shapes for part in sizes(text)}
    free = sorted(part for part in used if not part.isdigit() and part not in ranges)
    if free:
        raise ArgumentError(
            message(
                f"--shape has {', '.join(free)}, and --sweep does not say which sizes.",
                "",
                f"Write, for example, --sweep {free[0]}=1,4,16.",
            )
        )
    idle = [name for name in ranges if name != "seed" and name not in used]
    if idle:
        raise ArgumentError(
            message(
                f"--sweep gives values for {', '.join(idle)}, and no --shape has that size.",
                "",
                f"Write, for example, --shape {idle[0]},4.",
            )
        )
