"""``curve``, ``gradients``, ``embedding`` and ``waveform``: numbers over steps, by layer, in the plane, over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tinyattn.arguments import known_arguments, one_number, whole_number
from tinyattn.errors import ArgumentError, ShapeError, message
from tinyattn.terminal import table
from viz import colours, data, values
from viz.choices import check_theme, heading_of
from viz.drawing import AnyTheme, Drawing, Parts
from viz.heatmap import labels_of
from viz.labels import visible
from viz.plots import SERIES, Plot, decades, span
from viz.words import Words

if TYPE_CHECKING:
    from tinyattn.graph import Graph
    from tinyattn.tensor import Tensor

MOST_BARS = 60
MOST_WORDS = 200


@known_arguments
def curve(
    y: Sequence[float] | values.Array | Mapping[str, Sequence[float]],
    *,
    log: bool = False,
    x_title: str | None = None,
    y_title: str | None = None,
    title: str | None = None,
    theme: AnyTheme = "auto",
    lang: Literal["en", "zh"] | None = None,
) -> Drawing:
    """Draw numbers over steps: a loss while training, or several to compare.

    Parameters
    ----------
    y : sequence of float, shape (n,), or mapping of name to one
    log : bool
        A vertical axis in powers of ten; what is not above 0 leaves a gap.
    x_title, y_title, title : str, optional
    theme : {"auto", "light", "dark"}
    lang : {"en", "zh"}, optional

    Returns
    -------
    Drawing

    Examples
    --------
    >>> import viz
    >>> print(viz.curve({"train": [2.0, 1.0, 0.5], "test": [2.1, 1.5, 1.6]}, title="Loss").text)
    Loss
           steps   first    last  smallest  at step
    -----  -----  ------  ------  --------  -------
    train      3  2.0000  0.5000    0.5000        2
    test       3  2.1000  1.6000    1.5000        1
    <BLANKLINE>
    """
    words = Words(lang)
    given = y if isinstance(y, Mapping) else {"": y}
    lines = {str(name): _numbers(each, "curve", 1) for name, each in given.items()}
    if not lines or not any(len(line) for line in lines.values()):
        raise ArgumentError("curve: there is no number to draw.")
    if len(lines) > len(SERIES):
        raise ArgumentError(f"curve: {len(lines)} lines; more than {len(SERIES)} could not be told apart.")
    heading = heading_of(title, words("curve title"))
    head = ["", *(words(key) for key in ("steps", "first", "last", "smallest", "at step"))]
    rows = [_curve_row(visible(name), line) for name, line in lines.items()]

    def plot(shade: colours.Theme) -> str:
        heights = {name: _logarithm(line) if log else line for name, line in lines.items()}
        low, high = span(heights.values())
        length = max(map(len, lines.values()))
        up = decades(*_rounded(low, high)) if log else None
        ends = _rounded(low, high) if log else (low, high)
        across = x_title or words("step")
        area = Plot(heading, across, y_title or "", (0, max(length - 1, 1)), ends, shade, y_ticks=up)
        for series, line in enumerate(heights.values()):
            area.line(np.arange(len(line), dtype=float), line, series)
        area.legend([name for name in lines if name])
        return area.source()

    content = {"lines": {name: values.jsonable(line) for name, line in lines.items()}}
    return _drawing("curve", heading, theme, words.lang, plot, _listed(heading, rows, head), content)


@known_arguments
def gradients(
    source: Tensor | Graph | Any,
    *,
    title: str | None = None,
    theme: AnyTheme = "auto",
    lang: Literal["en", "zh"] | None = None,
) -> Drawing:
    """Draw how large the gradient of each parameter is, in the order in which they are used.

    Parameters
    ----------
    source : Tensor, Graph or Module
        A loss, whose backward pass is then run for the picture alone; or a module after ``backward``.
    title : str, optional
    theme : {"auto", "light", "dark"}
    lang : {"en", "zh"}, optional

    Returns
    -------
    Drawing
        Bars in powers of ten: the root of the mean square of the entries.

    Examples
    --------
    >>> import tinyattn as ta
    >>> import viz
    >>> w = ta.tensor([3.0, 4.0], requires_grad=True)
    >>> print(viz.gradients(ta.sum(w * w)).text)
    Size of the gradients
       shape  gradient  value
    -  -----  --------  -----
    w  (2,)      7.071  3.536
    <BLANKLINE>
    """
    words = Words(lang)
    found = _leaves(source)
    if not found:
        instead = "Write requires_grad=True for what is learned."
        raise ArgumentError(message("gradients: there is no parameter.", "", instead))
    heading = heading_of(title, words("gradients title"))
    rows = [
        (visible(name), str(value.shape), _size_words(grad, words), values.number(_size(value)))
        for name, value, grad in found
    ]

    def plot(shade: colours.Theme) -> str:
        shown = found[:MOST_BARS]
        sizes = [_size(grad) if grad is not None else 0.0 for _, _, grad in shown]
        logs = [math.log10(size) for size in sizes if 0 < size < math.inf]
        low, high = math.floor(min(logs, default=0.0)) - 0.5, math.ceil(max(logs, default=1.0))
        count = len(shown)
        places = [(float(count - 1 - at), visible(name)) for at, (name, _, _) in enumerate(shown)]
        height = max(60.0, 20.0 * count)
        ends, up = (low, float(high)), (-0.5, count - 0.5)
        area = Plot(heading, words("gradient size"), "", ends, up, shade, decades(low, high), places, height)
        for (place, _), size, row in zip(places, sizes, rows):
            if 0 < size < math.inf:
                area.bar(math.log10(size), place)
            at = math.log10(size) if 0 < size < math.inf else area.x_range[0]
            area.words_at(row[2], at, place)
        return area.source()

    head = ["", words("shape"), words("gradient"), words("value")]
    content = {
        "parameters": [
            {"name": name, "shape": list(value.shape), "gradient": None if grad is None else _finite(_size(grad))}
            for name, value, grad in found
        ]
    }
    return _drawing("gradients", heading, theme, words.lang, plot, _listed(heading, rows, head), content)


@known_arguments
def embedding(
    vectors: Tensor | values.Array,
    labels: Sequence[str],
    groups: Sequence[str] | None = None,
    *,
    title: str | None = None,
    theme: AnyTheme = "auto",
    lang: Literal["en", "zh"] | None = None,
) -> Drawing:
    """Draw word vectors in the plane in which they differ most, found by a singular value decomposition.

    Parameters
    ----------
    vectors : Tensor or array, shape (n, d)
    labels : sequence of str, length n
    groups : sequence of str, length n, optional
        Words of one group get the same sign.
    title : str, optional
    theme : {"auto", "light", "dark"}
    lang : {"en", "zh"}, optional

    Returns
    -------
    Drawing
        The axes tell which share of the variance they hold.

    Examples
    --------
    >>> import viz
    >>> print(viz.embedding([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]], ["I", "you", "cat", "dog"]).text)
    Embedding in two dimensions
    The first axis holds 90 % of the variance, the second 10 %.
               1        2
    ---  -------  -------
    I     3.0000   0.0000
    you  -3.0000   0.0000
    cat   0.0000   1.0000
    dog   0.0000  -1.0000
    <BLANKLINE>
    """
    words = Words(lang)
    matrix, names = _numbers(vectors, "embedding", 2), labels_of(labels, "embedding: labels")
    kinds = [""] * len(names) if groups is None else labels_of(groups, "embedding: groups")
    if len(names) != len(matrix) or len(kinds) != len(matrix):
        what = f"embedding(vectors: {matrix.shape}, {len(names)} labels, {len(kinds)} groups) does not fit."
        instead = "Give a label, and a group, for each row."
        raise ShapeError(message(what, "Each row is the vector of one word.", instead))
    if not names or len(names) > MOST_WORDS or not np.isfinite(matrix).all():
        why = f"It needs between 1 and {MOST_WORDS} words, with finite numbers."
        raise ArgumentError(message(f"embedding: {len(names)} words cannot be drawn.", why, "Choose some of the rows."))
    plane, shares = in_the_plane(matrix)
    heading = heading_of(title, words("embedding title"))
    said = words("variance", first=f"{100 * shares[0]:.0f}", second=f"{100 * shares[1]:.0f}")
    order = list(dict.fromkeys(kinds))
    if len(order) > len(SERIES):
        raise ArgumentError(f"embedding: {len(order)} groups; more than {len(SERIES)} could not be told apart.")

    def plot(shade: colours.Theme) -> str:
        first, second = (f"{words('axis', number=at + 1)}: {100 * share:.0f} %" for at, share in enumerate(shares))
        area = Plot(heading, first, second, span([plane[:, 0]]), span([plane[:, 1]]), shade)
        for (x, y), name, kind in zip(plane, names, kinds):
            area.point(float(x), float(y), order.index(kind), visible(name))
        if groups is not None:
            area.legend([visible(kind) for kind in order], points=True)
        return area.source()

    rows = [(visible(name), float(x), float(y), visible(kind)) for name, (x, y), kind in zip(names, plane, kinds)]
    shown: list[Any] = rows if groups is not None else [row[:3] for row in rows]
    listing = _listed(f"{heading}\n{said}", shown, ["", "1", "2", *([words("group")] if groups is not None else [])])
    content = {"labels": names, "groups": kinds, "plane": values.jsonable(plane), "shares": [float(s) for s in shares]}
    return _drawing("embedding", heading, theme, words.lang, plot, listing, content)


def in_the_plane(matrix: values.Array) -> tuple[values.Array, tuple[float, float]]:
    """Rows by the two directions in which they differ most, (n, 2), and the share of the variance of each.

    The sign of a direction is chosen so that its largest entry is positive, so that pictures do not flip.
    """
    centred = matrix - matrix.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    plane = np.zeros((len(matrix), 2))
    count = min(2, len(sizes))
    plane[:, :count] = left[:, :count] * sizes[:count]
    signs = np.sign(plane[np.argmax(np.abs(plane), axis=0), [0, 1]])
    plane = plane * np.where(signs == 0, 1.0, signs)
    plane[np.abs(plane) < 1e-12 * max(1.0, float(np.abs(plane).max(initial=0.0)))] = 0.0
    total = float((sizes**2).sum()) or 1.0
    shares = [float(size**2) / total for size in sizes[:2]] + [0.0, 0.0]
    return plane, (shares[0], shares[1])


@known_arguments
def waveform(
    samples: Tensor | values.Array,
    rate: int,
    *,
    frame: int | None = None,
    hop: int | None = None,
    title: str | None = None,
    theme: AnyTheme = "auto",
    lang: Literal["en", "zh"] | None = None,
) -> Drawing:
    """Draw a sound over time, with the borders of the frames that it is cut into.

    Parameters
    ----------
    samples : Tensor or array, shape (n,)
    rate : int
        Samples in a second.
    frame, hop : int, optional
        Length of a frame and the way from one to the next, in samples; without them no frames are shown.
    title : str, optional
    theme : {"auto", "light", "dark"}
    lang : {"en", "zh"}, optional

    Returns
    -------
    Drawing

    Examples
    --------
    >>> import numpy as np
    >>> import viz
    >>> print(viz.waveform(np.sin(np.arange(100)), 50, frame=20, hop=10).text)
    Waveform
    100 samples at 50 in a second: 2 s. Largest size 1.
    9 frames of 20 samples (0.4 s), a new one every 10 (0.2 s).
    <BLANKLINE>
    """
    words = Words(lang)
    wave = _numbers(samples, "waveform", 1)
    if not wave.size or not 1 <= one_number(rate, "waveform", "rate") < math.inf:
        what = f"waveform(samples: {wave.shape}, rate={rate}) cannot be drawn."
        raise ArgumentError(message(what, "It needs samples, and how many are in a second."))
    cut = _frames(len(wave), frame, hop)
    heading = heading_of(title, words("wave title"))
    top = float(np.abs(wave[np.isfinite(wave)]).max(initial=0.0))
    seconds = values.number(len(wave) / rate)
    said = [visible(heading), words("wave", count=len(wave), rate=rate, seconds=seconds, top=values.number(top))]
    if cut is not None:
        count, length, way = cut
        times = {"long": values.number(length / rate), "every": values.number(way / rate)}
        said.append(words("frames", count=count, length=length, hop=way, **times))

    def plot(shade: colours.Theme) -> str:
        times = np.arange(len(wave)) / rate
        area = Plot(heading, words("seconds"), "", (0.0, len(wave) / rate), (-top or -1.0, top or 1.0), shade)
        for at in range(cut[0] if cut is not None and cut[0] <= 200 else 0):
            assert cut is not None
            area.mark(at * cut[2] / rate)
        area.line(times, wave)
        return area.source()

    content = {"samples": len(wave), "rate": rate, "frames": None if cut is None else list(cut)}
    return _drawing("waveform", heading, theme, words.lang, plot, "\n".join(said) + "\n", content)


# What they share ------------------------------------------------------------------------------------------


def _drawing(
    kind: str,
    title: str,
    theme: AnyTheme,
    lang: str,
    plot: Callable[[colours.Theme], str],
    listing: str,
    content: dict[str, Any],
) -> Drawing:
    check_theme(theme)
    parts = Parts(
        dot=lambda: plot("dark" if theme == "dark" else "light"),
        text=lambda: listing,
        alt_text=lambda: listing,
        data=lambda: {"format": data.FORMAT, "kind": kind, "title": title, **content},
    )
    return Drawing(title, theme, parts, lang)


def _numbers(given: Any, name: str, axes: int) -> values.Array:
    """The numbers of a tensor, an array or nested lists, with so many axes."""
    array = np.asarray(given.data if hasattr(given, "requires_grad") else given)
    if array.dtype.kind not in "biuf" and array.size:
        raise ArgumentError(f"{name}: numbers are needed; their dtype is {array.dtype}.")
    if array.ndim != axes:
        wanted = "(n,)" if axes == 1 else "(n, d)"
        raise ShapeError(f"{name}: an array of shape {wanted} is needed, not {array.shape}.")
    return array.astype(np.float64)


def _listed(heading: str, rows: Sequence[Sequence[Any]], head: Sequence[str]) -> str:
    lines = "\n".join(visible(line) for line in heading.split("\n"))
    return f"{lines}\n{table(rows, head, ascii=True)}\n"


def _curve_row(name: str, line: values.Array) -> tuple[Any, ...]:
    if not len(line):
        return name, 0, "", "", "", ""
    smallest = int(np.nanargmin(line)) if np.isfinite(line).any() else 0
    return name, len(line), float(line[0]), float(line[-1]), float(line[smallest]), smallest


def _logarithm(line: values.Array) -> values.Array:
    return np.log10(line, where=line > 0, out=np.full(line.shape, np.nan))


def _rounded(low: float, high: float) -> tuple[float, float]:
    return math.floor(low), math.ceil(high)


def _leaves(source: Any) -> list[tuple[str, values.Array, values.Array | None]]:
    """Name, value and gradient of every parameter."""
    if hasattr(source, "named_parameters"):
        return [(name, leaf.data, leaf.grad) for name, leaf in source.named_parameters()]
    from tinyattn.graph import Graph

    graph = source if isinstance(source, Graph) else Graph.of(source, gradients=True)
    return [(node.name, node.value, node.grad) for node in graph.nodes if node.kind == "parameter"]


def _size(array: values.Array) -> float:
    """The root of the mean square: a size that does not grow with the number of entries."""
    flat = np.asarray(array, np.float64)
    return float(np.sqrt(np.mean(flat * flat))) if flat.size else 0.0


def _size_words(grad: values.Array | None, words: Words) -> str:
    if grad is None:
        return words("not computed")
    return words("zero") if values.is_zero(grad) else values.number(_size(grad))


def _finite(x: float) -> float | str:
    return x if math.isfinite(x) else values.number(x)


def _frames(length: int, frame: int | None, hop: int | None) -> tuple[int, int, int] | None:
    if frame is None:
        return None
    frame = whole_number(frame, "waveform", "frame")
    way = frame if hop is None else whole_number(hop, "waveform", "hop")
    if frame < 1 or way < 1:
        raise ArgumentError(f"waveform(frame={frame}, hop={hop}): both are numbers of samples, at least 1.")
    return max(0, 1 + (length - frame) // way), frame, way
