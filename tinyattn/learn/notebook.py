"""A lesson as a notebook: the same cells, the same bytes every time, no outputs."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tinyattn.learn.lesson import Cell, Lesson


def notebook(lesson: Lesson, lang: str) -> str:
    """The text of an ``.ipynb`` file.

    Parameters
    ----------
    lesson : Lesson
        Read in that language, so that its code prints in it.
    lang : {"en", "zh"}
        The language of the prose; English where there is no translation.

    Returns
    -------
    str
        Notebook format 4.5.  A cell's id is made from its place and content, so the bytes are stable.
    """
    cells = [_cell(at, cell, lang) for at, cell in enumerate(lesson.cells)]
    facts = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(facts, ensure_ascii=False, indent=1) + "\n"


def _cell(at: int, cell: Cell, lang: str) -> dict[str, Any]:
    source = cell.code if cell.is_code else cell.text(lang)
    mark = hashlib.sha256(f"{at} {source}".encode()).hexdigest()[:12]
    shared = {"id": mark, "metadata": {"tags": [f"{key}:{value}" for key, value in sorted(_shown(cell).items())]}}
    lines = source.splitlines(keepends=True)
    if cell.is_code:
        return {"cell_type": "code", "execution_count": None, **shared, "outputs": [], "source": lines}
    return {"cell_type": "markdown", **shared, "source": lines}


def _shown(cell: Cell) -> dict[str, str]:
    return {key: value for key, value in cell.tags.items() if not key.startswith("of")}
