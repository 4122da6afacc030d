"""How far a learner has come: one small file in the user's data folder, written whole."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tinyattn.files import write_whole

_FORMAT = 1


def home() -> Path:
    """The folder for the user's data: TINYATTN_HOME, or where the platform keeps such things."""
    chosen = os.environ.get("TINYATTN_HOME")
    if chosen:
        return Path(chosen).expanduser()
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "tinyattn"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "tinyattn"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "tinyattn"


class Progress:
    """What is known of a learner; each change is written at once.

    A file that cannot be read is put aside, not overwritten; a folder that cannot be written makes the
    lessons forgetful, not unusable.  ``trouble`` then holds one line for the reader.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.path = (home() if folder is None else folder) / "progress.json"
        self.trouble = ""
        self._facts = self._read()

    def step(self, lesson: str, fingerprint: str) -> int:
        """The step at which a lesson was left; 0 for a new lesson, or one that has changed since."""
        entry = self._entry("lessons", lesson)
        at = entry.get("step", 0)
        known = entry.get("fingerprint") == fingerprint
        return at if known and isinstance(at, int) and at >= 0 else 0

    def changed(self, lesson: str, fingerprint: str) -> bool:
        """Whether a lesson was left in the middle and has changed since."""
        entry = self._entry("lessons", lesson)
        return bool(entry.get("step")) and entry.get("fingerprint") != fingerprint

    def done(self, lesson: str) -> bool:
        """Whether a lesson has been gone through to its end once."""
        return bool(self._entry("lessons", lesson).get("done"))

    def keep(self, lesson: str, fingerprint: str, step: int, done: bool = False) -> None:
        """Note where a lesson was left; what is done stays done."""
        facts = {"step": step, "fingerprint": fingerprint, "done": done or self.done(lesson)}
        self._write("lessons", lesson, facts)

    def exercise(self, name: str) -> dict[str, Any]:
        """What is known of an exercise: ``passed``, ``tries``, ``hints``, ``revealed``."""
        return self._entry("exercises", name)

    def keep_exercise(self, name: str, **facts: Any) -> None:
        """Change what is known of an exercise."""
        self._write("exercises", name, {**self.exercise(name), **facts})

    def _entry(self, part: str, name: str) -> dict[str, Any]:
        group = self._facts.get(part)
        entry = group.get(name) if isinstance(group, dict) else None
        return dict(entry) if isinstance(entry, dict) else {}

    def _read(self) -> dict[str, Any]:
        try:
            facts = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            self._put_aside(str(error))
            return {}
        if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
            self._put_aside("it is of another form")
            return {}
        return facts

    def _put_aside(self, why: str) -> None:
        aside = self.path.with_name("progress-unreadable.json")
        try:
            os.replace(self.path, aside)
            self.trouble = f"{self.path} could not be read ({why}); it is now {aside.name}."
        except OSError:
            self.trouble = f"{self.path} could not be read ({why}); counting starts anew."

    def _write(self, part: str, name: str, facts: dict[str, Any]) -> None:
        self._facts = self._read() or self._facts  # another window may have written meanwhile
        self._facts["format"] = _FORMAT
        group = self._facts.get(part)
        self._facts[part] = {**(group if isinstance(group, dict) else {}), name: facts}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, json.dumps(self._facts, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        except OSError as error:
            self.trouble = f"Where you are could not be kept in {self.path.parent}: {error.strerror}."
