"""Masks: who may look at whom.  Boolean, a row for each word that asks, True where it may; join them with ``&``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tinyattn.arguments import boolean, known_arguments, yes_or_no
from tinyattn.errors import ShapeError, message
from tinyattn.nn.module import check_size

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Mask = NDArray[np.bool_]


@known_arguments
def causal(n: int, m: int | None = None) -> Mask:
    """Each of n words looks at itself and what came before; with m > n the n words are the last of m.

    Returns
    -------
    ndarray of bool, shape (n, m)

    Examples
    --------
    >>> causal(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    >>> causal(1, 3).astype(int)
    array([[1, 1, 1]])
    """
    n, m = _sizes(n, m, "causal")
    return _triangle(n, m)


@known_arguments
def window(n: int, reach: int, m: int | None = None) -> Mask:
    """Each of n words looks at most ``reach`` words to the left and to the right; aligned at the end, as `causal`.

    Returns
    -------
    ndarray of bool, shape (n, m)

    Examples
    --------
    >>> window(4, 1).astype(int)
    array([[1, 1, 0, 0],
           [1, 1, 1, 0],
           [0, 1, 1, 1],
           [0, 0, 1, 1]])
    >>> (window(3, 1) & causal(3)).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [0, 1, 1]])
    """
    return np.abs(distances(n, m)) <= check_size(reach, "window", "reach", least=0)


@known_arguments
def padding(keep: ArrayLike) -> Mask:
    """Nobody looks at padding: hide the columns of what is no word.  The rows stay, a loss ignores those.

    Parameters
    ----------
    keep : bool array, shape (..., m)
        True where there is a word, as `tinyattn.data.pad_batch` gives it.

    Returns
    -------
    ndarray of bool, shape (..., 1, m)

    Examples
    --------
    >>> padding([[True, True, False], [True, True, True]]).shape
    (2, 1, 3)
    """
    words = boolean(keep, "padding", "keep")
    if words.ndim < 1:
        raise ShapeError("padding: keep is a single truth; one for each word is needed, shape (..., m).")
    return words[..., None, :]


@known_arguments
def distances(n: int, m: int | None = None) -> NDArray[np.int64]:
    """How far key j lies to the right of query i; negative to the left.  The last query stands at the last key.

    Returns
    -------
    ndarray of int, shape (n, m)

    Examples
    --------
    >>> distances(2, 3)
    array([[-1,  0,  1],
           [-2, -1,  0]])
    """
    n, m = _sizes(n, m, "distances")
    return np.arange(m) - np.arange(m - n, m)[:, None]


def visible(
    keep: ArrayLike | None, is_causal: bool, n: int, m: int, bias: NDArray[np.float64] | float | None = None
) -> Mask | None:
    """All masks in one, or None when everybody may look at everything; a bias of minus infinity hides, too.

    Examples
    --------
    >>> visible([True, False], True, 2, 2).astype(int)
    array([[1, 0],
           [1, 0]])
    """
    mask = None if keep is None else boolean(keep, "attention", "keep")
    if mask is not None:
        _check_fits(mask, n, m)
    if yes_or_no(is_causal, "attention", "causal"):
        mask = _triangle(n, m) if mask is None else mask & _triangle(n, m)
    if bias is not None and np.isneginf(bias).any():
        open_pairs = ~np.isneginf(bias)
        mask = open_pairs if mask is None else mask & open_pairs
    return mask


def _triangle(n: int, m: int) -> Mask:
    return np.tri(n, m, m - n, dtype=bool)


def _sizes(n: int, m: int | None, name: str) -> tuple[int, int]:
    """How many words ask and answer; a mask for more than a million is a slip: it has a truth for each pair."""
    n = check_size(n, name, "n", least=0, most=1 << 20)
    return n, n if m is None else check_size(m, name, "m", least=0, most=1 << 20)


def _check_fits(mask: Mask, n: int, m: int) -> None:
    last = mask.shape[-2:]
    if all(size in (1, wanted) for size, wanted in zip(last[::-1], (m, n))):
        return
    raise ShapeError(
        message(
            f"attention: keep has shape {mask.shape}, which does not broadcast to (..., {n}, {m}).",
            f"It says for each of {n} queries which of {m} keys it may look at.",
            "Write nn.masks.padding(keep) for a mask of words, shape (..., m).",
        )
    )
