"""The process in which an answer is tried: it may print, exit, loop for ever or eat memory without harm.

Reads the exercise's name, the language and the packed function from standard input, and writes the verdict as
JSON to what was standard output when it started.  Nothing the answer prints gets there.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict

_MEMORY = 4 << 30
_PRINTED = 2000


class _Short(io.StringIO):
    """Keeps the beginning of what is printed, whatever is done to it; printing for ever fills no memory."""

    def write(self, text: str) -> int:
        if self.tell() < _PRINTED:
            super().write(text[: _PRINTED - self.tell()])
        return len(text)

    def close(self) -> None:
        """Stay open."""


def main() -> None:
    """Judge one answer."""
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    name, lang, data = pickle.load(sys.stdin.buffer)
    _limit_memory()
    from tinyattn.learn import grading
    from tinyattn.learn.carry import unpack
    from tinyattn.learn.exercises import find_exercise
    from tinyattn.learn.judge import judge

    grading.switched_off = True  # a module of the learner's that is imported here may grade, too
    printed = _Short()
    with redirect_stdout(printed), redirect_stderr(io.StringIO()):
        verdict = judge(find_exercise(name), unpack(data), lang)
    with os.fdopen(out, "w", encoding="utf-8") as stream:
        json.dump({**asdict(verdict), "printed": printed.getvalue()}, stream)


def _limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.RLIM_INFINITY))
    except (ImportError, ValueError, OSError):  # Windows has no such limit; macOS refuses this one
        return


if __name__ == "__main__":
    main()
