"""Arrays as small coloured tables inside a label: every entry its number, its colour only a hint."""

from __future__ import annotations

import math
from itertools import product
from typing import Literal

import numpy as np

from viz import colours, labels, values
from viz.colours import Scale, Theme

Align = Literal["LEFT", "CENTER", "RIGHT"]


def entry_table(array: values.Array, scale: Scale, theme: Theme, size: float) -> str:
    """An array entry by entry, the last axis across; each slice of a deeper array carries its index.

    Parameters
    ----------
    array : array of any shape with entries
    scale : {"signed", "share"}
        Colours around zero, or from 0 to 1.
    theme : {"light", "dark"}
    size : float
        Size of the digits in points.
    """
    height, across = values.table_shape(array.shape)
    matrix = array.reshape(height, across)
    texts = values.cells(matrix, 2 if scale == "share" else None)
    rows = heat_rows(matrix, texts, scale, theme, size)
    if array.ndim > 2:
        muted = colours.palette(theme)["muted"]
        each = array.shape[-2]
        for at, index in enumerate(product(*map(range, array.shape[:-2]))):
            name = f"[{','.join(map(str, index))}]"
            rows[at * each].insert(0, labels.tag("TD", labels.text(name, size, colour=muted), rowspan=each))
    return labels.table(rows, cellspacing=1, cellpadding=2)


def heat_rows(
    matrix: values.Array, texts: list[list[str]], scale: Scale, theme: Theme, size: float
) -> list[list[str]]:
    """The cells of a matrix, (n, m), coloured by step, with the given texts on them."""
    finite = matrix[np.isfinite(matrix)]
    largest = float(np.abs(finite.astype(float)).max()) if finite.size else 0.0
    widest = max((labels.em_width(text) for row in texts for text in row), default=0.0)
    width = round(widest * size + 6)
    return [
        [heat_cell(float(x), text, scale, theme, size, largest, width) for x, text in zip(line, row)]
        for line, row in zip(matrix, texts)
    ]


def heat_cell(
    x: float, text: str, scale: Scale, theme: Theme, size: float, largest: float, width: int
) -> str:
    """One entry; nan and the infinities have their own colour besides the word."""
    roles = colours.palette(theme)
    if math.isfinite(x):
        background = colours.heat(colours.level(x, scale, largest), scale, theme)
        ink = colours.ink(background)
    else:
        background, ink = roles["strange"], roles["strange text"]
    return labels.tag("TD", labels.text(text, size, colour=ink), bgcolor=background, width=width)


def scale_of(op_name: str, array: values.Array) -> Scale:
    """Shares for the result of a softmax, signed for everything else."""
    shares = op_name == "softmax" and array.size > 0 and bool(((array >= 0) & (array <= 1)).all())
    return "share" if shares else "signed"
