"""Attention tile by tile: no matrix of n x m scores is ever held, so memory grows with n and not with its square.

The idea is FlashAttention's (Dao et al. 2022, arXiv:2205.14135): scores of some queries and some keys at a time, small
enough to stay in the cache; forward keeps one or two numbers a row, and backward computes the scores again from
them.  What is ours is what makes it cheap in NumPy, where every pass over a tile costs:

* No row maximum.  |q . k| is at most |q| |k| (Cauchy-Schwarz).  Where that bound is small, exp can neither overflow
  nor lose a row, so nothing is subtracted.  The maximum and the subtraction would cost more than exp itself.
  Larger scores take the careful way: a running maximum.
* No division of the weights.  With e = exp(scores) and l the sums of its rows, the result is (e v) / l, and going
  back 1/l goes into the cotangent, which is small.
* The correction of softmax going back is one more column in a product: [g, -D] [v, 1]^T is g v^T - D.

What is left to do for each score is one exp forward, and one exp and one multiplication back.  The plain form is
`tinyattn.kernels.attention`; tests hold the two equal.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tinyattn.kernels import threads
from tinyattn.kernels.allocator import warm
from tinyattn.ops.helpers import sum_to

SIDE = {"f": 320, "d": 256}  # queries and keys of a tile, by dtype.char: 400 and 512 KB; half or twice is slower
AREA = 65_536  # from so many scores on, tiles pay
GROUP = 2 * AREA  # scores at once of short sequences, several heads together: fewer calls, still in the cache
FEW = 4  # so many parts at least, where the sizes allow it
SAFE = {"f": 40.0, "d": 300.0}  # by dtype.char: up to here exp(score) is far from overflow, also when summed


class Saved(NamedTuple):
    """What forward keeps for each row: the sum of its exponentials, and the shift where there was one."""

    sums: Any  # (heads..., n)
    shifts: Any  # (heads..., n); None where no head needed one


Share = tuple[slice, ...]  # of each leading axis


def shares(heads: tuple[int, ...], n: int, m: int, side: int) -> Iterator[Share]:
    """Parts of all heads, by sizes alone: one head of a long sequence, several of short ones."""
    together = max(1, GROUP // (min(n, side) * min(m, side))) if min(n, m) < side else 1
    steps = []
    for size in reversed(heads):  # whole last axes while they fit, then a part of the next one
        steps.append(min(size, together))
        together = max(1, together // size)
    axes = zip(heads, reversed(steps), strict=True)
    return itertools.product(*(tuple(sides(0, size, step)) for size, step in axes))


class Heads:
    """The work on one share: its rows, in the layouts that the products want.

    Of a short sequence most is a view, because copies would take longer than products with strided rows.
    """

    def __init__(self, share: Share, q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> None:
        self.q = np.multiply(q[share], scale, order="C")  # (..., n, d)
        self.k, self.v = k[share], v[share]  # (..., m, d), (..., m, d_v)
        self.kt = np.ascontiguousarray(self.k.mT)  # (..., d, m)  a transposed view is up to twice as slow
        *self.heads, self.n, _ = self.q.shape
        self.m, self.scale, self.side = self.k.shape[-2], scale, SIDE[self.q.dtype.char]
        self.long = self.n > self.side or self.m > self.side
        if self.long:  # read by many tiles
            self.k, self.v = np.ascontiguousarray(self.k), np.ascontiguousarray(self.v)
        self.keep = None if keep is None else keep[share]  # (..., n, m)
        self.behind = self.m - self.n if causal else None  # causal is aligned at the end: key <= query + behind
        self.room = np.empty(math.prod(self.heads) * min(self.n, self.side) * min(self.m, self.side), self.q.dtype)

    def large(self) -> bool:
        """Whether a score may be so large that exp needs a shift."""
        longest = [np.vecdot(x, x).max(initial=0.0) for x in (self.q, self.k)]
        return not longest[0] * longest[1] < SAFE[self.q.dtype.char] ** 2

    # -- which tiles ----------------------------------------------------------------------------------------------

    def pieces(self, i: slice, j: slice) -> Iterator[tuple[slice, slice]]:
        """What has to be computed of a tile: nothing above the diagonal; on it two steps of a stair, not the square."""
        if self.behind is None or j.stop <= i.start + self.behind + 1:
            yield i, j
            return
        half = (i.start + i.stop + 1) // 2 if i.stop - i.start > self.side // 2 else i.stop
        for rows in (slice(i.start, half), slice(half, i.stop)):
            columns = slice(j.start, min(j.stop, rows.stop + self.behind))
            if rows.start < rows.stop and columns.start < columns.stop:
                yield rows, columns

    def scores(self, i: slice, j: slice) -> Any:
        """The scores of one tile, (..., rows, columns), in memory that every tile uses again."""
        return np.matmul(self.q[..., i, :], self.kt[..., j], out=self.tile(self.room, i, j))

    def tile(self, room: Any, i: slice, j: slice) -> Any:
        """The beginning of ``room`` as a tile, (..., rows, columns)."""
        rows, columns = i.stop - i.start, j.stop - j.start
        return room[: math.prod(self.heads) * rows * columns].reshape((*self.heads, rows, columns))

    def hide(self, tile: Any, i: slice, j: slice) -> None:
        """Set what is hidden to 0, in place."""
        if self.behind is not None and j.stop > i.start + self.behind + 1:
            diagonal = i.start + self.behind - j.start
            tile *= _triangle(i.stop - i.start, j.stop - j.start, diagonal, tile.dtype.char)
        if self.keep is not None:
            tile *= self.keep[..., i, j]

    def lower(self, tile: Any, i: slice, j: slice) -> None:
        """Set what is hidden to minus infinity, in place: before a maximum is taken."""
        if self.behind is not None and j.stop > i.start + self.behind + 1:
            diagonal = i.start + self.behind - j.start
            later = _triangle(i.stop - i.start, j.stop - j.start, diagonal, tile.dtype.char) == 0
            np.copyto(tile, -np.inf, where=later)
        if self.keep is not None:
            np.copyto(tile, -np.inf, where=~self.keep[..., i, j])

    # -- forward --------------------------------------------------------------------------------------------------

    def means(self, i: slice) -> tuple[Any, Any]:
        """exp(scores) v summed over the keys, (..., rows, d_v), and the sums of the rows, (..., rows)."""
        ones = np.ones(self.side, self.q.dtype)
        total = np.zeros((*self.heads, i.stop - i.start, self.v.shape[-1]), self.q.dtype)
        sums = np.zeros(total.shape[:-1], self.q.dtype)
        for j in sides(0, self.m, self.side):
            for rows, columns in self.pieces(i, j):
                tile = self.scores(rows, columns)
                np.exp(tile, out=tile)
                self.hide(tile, rows, columns)
                here = slice(rows.start - i.start, rows.stop - i.start)
                total[..., here, :] += tile @ self.v[..., columns, :]
                sums[..., here] += tile @ ones[: columns.stop - columns.start]
        return total, sums

    def careful_means(self, i: slice) -> tuple[Any, Any, Any]:
        """The same with a running maximum, and that: whenever it grows, what was summed so far shrinks."""
        total = np.zeros((*self.heads, i.stop - i.start, self.v.shape[-1]), self.q.dtype)
        sums, shift = np.zeros(total.shape[:-1], self.q.dtype), np.zeros(total.shape[:-1], self.q.dtype)
        highest = np.full_like(sums, -np.inf)
        for j in sides(0, self.m, self.side):
            for rows, columns in self.pieces(i, j):
                tile = self.scores(rows, columns)
                self.lower(tile, rows, columns)
                here = slice(rows.start - i.start, rows.stop - i.start)
                before, now = highest[..., here], np.maximum(highest[..., here], tile.max(axis=-1))
                shift[..., here] = np.where(now == -np.inf, 0, now)  # a row that has seen nothing yet
                shrink = np.exp(before - shift[..., here])
                highest[..., here] = now
                np.subtract(tile, shift[..., here, None], out=tile)
                np.exp(tile, out=tile)
                total[..., here, :] = total[..., here, :] * shrink[..., None] + tile @ self.v[..., columns, :]
                sums[..., here] = sums[..., here] * shrink + tile.sum(axis=-1)
        return total, sums, shift

    # -- backward -------------------------------------------------------------------------------------------------

    def weights(self, i: slice, j: slice, shifts: Any) -> Any:
        """exp(scores - shift) of one tile, once more, 0 where hidden: the row's sum times the weights."""
        tile = self.scores(i, j)
        if shifts is None:
            np.exp(tile, out=tile)
            self.hide(tile, i, j)
            return tile
        self.lower(tile, i, j)
        np.subtract(tile, shifts[..., i, None], out=tile)
        return np.exp(tile, out=tile)

    def back(self, g: Any, y: Any, sums: Any, shifts: Any, keys: slice, out: list[Any]) -> None:
        """The cotangents of some keys and their values, and what these keys add to the queries', into ``out``."""
        g1, v1t = _with_column(g, y, sums), _with_row_of_ones(self.v)  # (..., n, d_v + 1), (..., d_v + 1, m)
        apart = self.long and not all(x.flags.c_contiguous for x in out)  # much is added up, in one piece of memory
        d_q, d_k, d_v = into = [np.empty(x.shape, x.dtype) if apart else x for x in out]
        places = ((i, j) for j in sides(keys.start, keys.stop, self.side) for i in sides(0, self.n, self.side))
        tiles = [piece for i, j in places for piece in self.pieces(i, j)]
        put = np.matmul if tiles == [(slice(0, self.n), slice(0, self.m))] else _add_product
        for x in into if put is _add_product else ():
            x[...] = 0
        other = np.empty_like(self.room)
        for i, j in tiles:
            tile = self.weights(i, j, shifts)  # (..., rows, columns)
            own = slice(j.start - keys.start, j.stop - keys.start)
            put(tile.mT, g1[..., i, :-1], d_v[..., own, :])
            slopes = np.matmul(g1[..., i, :], v1t[..., j], out=self.tile(other, i, j))
            slopes *= tile  # (..., rows, columns)  the cotangent of the scores
            put(slopes, self.k[..., j, :], d_q[..., i, :])
            put(slopes.mT, self.q[..., i, :], d_k[..., own, :])
        d_q *= self.scale
        if apart:
            for whole, part in zip(out, into, strict=True):
                whole[...] = part


def _add_product(a: Any, b: Any, out: Any) -> None:
    """``out += a @ b``."""
    out += a @ b


def sides(start: int, stop: int, step: int) -> Iterator[slice]:
    """An axis, or a part of it, cut into the sides of tiles."""
    return (slice(first, min(first + step, stop)) for first in range(start, stop, step))


@functools.lru_cache(maxsize=4)
def _triangle(rows: int, columns: int, diagonal: int, char: str) -> Any:
    """1 where the key is not after the query, as numbers: multiplying costs a third of choosing."""
    triangle = np.tri(rows, columns, diagonal, dtype=char)
    triangle.flags.writeable = False
    return triangle


def _with_column(g: Any, y: Any, sums: Any) -> Any:
    """[g, -D] / l, where D = sum(g y) is what softmax takes off every slope of a row."""
    g1 = np.empty((*g.shape[:-1], g.shape[-1] + 1), g.dtype)  # (..., n, d_v + 1)
    np.divide(g, sums[..., None], out=g1[..., :-1])
    np.negative(np.vecdot(g1[..., :-1], y), out=g1[..., -1])
    return g1


def _with_row_of_ones(v: Any) -> Any:
    """[v, 1] transposed, so that [g, -D] [v, 1]^T is g v^T - D: one product and no pass for the subtraction."""
    v1t = np.ones((*v.shape[:-2], v.shape[-1] + 1, v.shape[-2]), v.dtype)  # (..., d_v + 1, m)
    v1t[..., :-1, :] = v.mT
    return v1t


class Whole:
    """All heads of a call, with as many leading axes for every part, and at least one; nothing is copied."""

    def __init__(self, q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> None:
        masks = () if keep is None else keep.shape[:-2]
        self.lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2], masks)
        self.heads = self.lead or (1,)
        self.n, self.m = q.shape[-2], k.shape[-2]
        self.q, self.k, self.v = (
            part if part.shape[:-2] == self.heads else np.broadcast_to(part, self.heads + part.shape[-2:])
            for part in (q, k, v)
        )
        self.keep = None if keep is None else np.broadcast_to(keep, (*self.heads, self.n, self.m))
        self.causal, self.scale, self.side = causal, scale, SIDE[q.dtype.char]

    def parts(self, size: int) -> list[tuple[Share, int, slice]]:
        """Heads, and where these are few, stretches of an axis of that size, each with its number."""
        heads = list(shares(self.heads, self.n, self.m, self.side))
        count = min(-(-FEW // len(heads)), -(-size // self.side))
        step = -(-size // (count * self.side)) * self.side
        return [(share, place, cut) for place, cut in enumerate(sides(0, size, step)) for share in heads]

    def of(self, share: Share) -> Heads:
        """The work on one part."""
        return Heads(share, self.q, self.k, self.v, self.keep, self.causal, self.scale)

    def full(self, x: Any) -> Any:
        """An array of results with at least one leading axis, to write into."""
        return x if self.lead else x[None]

    def like(self, x: Any, width: int) -> Any:
        """A new array, (..., rows of x, width), which lies in memory as x does: so joining the heads is free."""
        return np.empty_like(x, shape=(*self.lead, x.shape[-2], width))


def fit(q: Any, k: Any, v: Any) -> bool:
    """Whether tiles can do it and pay: many scores, and ordinary finite numbers."""
    heads = math.prod(np.broadcast_shapes(q.shape[:-2], k.shape[:-2]))
    many = heads * q.shape[-2] * k.shape[-2] >= AREA
    return (
        many and q.dtype.char in SAFE and q.dtype == k.dtype == v.dtype and k.shape[-2] == v.shape[-2]
        and all(bool(np.isfinite(part).all()) for part in (q, k, v))
    )  # fmt: skip


def forward(q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> tuple[Any, Saved]:
    """The weighted means of the values, and what backward needs: one or two numbers a row."""
    warm()
    whole = Whole(q, k, v, keep, causal, scale)
    y = whole.like(q, v.shape[-1])
    sums = np.empty((*whole.heads, whole.n), q.dtype)
    shifts = np.zeros_like(sums)
    careful, y_full = [], whole.full(y)

    def work(part: tuple[Share, int, slice]) -> None:
        share, _, queries = part
        heads = whole.of(share)
        if large := heads.large():
            careful.append(share)
        y_here, sums_here, shifts_here = (x[share] for x in (y_full, sums, shifts))
        for i in sides(queries.start, queries.stop, whole.side):
            if large:
                total, row_sums, shift = heads.careful_means(i)
                shifts_here[..., i] = shift
            else:
                total, row_sums = heads.means(i)  # (..., rows, d_v), (..., rows)
            row_sums[row_sums == 0] = 1  # a query that sees nothing gets 0 / 1
            sums_here[..., i] = row_sums
            np.divide(total, row_sums[..., None], out=y_here[..., i, :])

    threads.run(work, whole.parts(whole.n))
    return y, Saved(sums, shifts if careful else None)


def rule(g: Any, y: Any, saved: Saved, q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> Any:
    """The cotangents of queries, keys and values."""
    whole = Whole(q, k, v, keep, causal, scale)
    d_q, d_k, d_v = (whole.like(x, x.shape[-1]) for x in (q, k, v))
    parts = whole.parts(whole.m)
    more = [np.empty_like(d_q) for _ in range(parts[-1][1])]  # each stretch of keys has something for every query
    g_full, y_full, dk_full, dv_full, *dq_full = (whole.full(x) for x in (g, y, d_k, d_v, d_q, *more))

    def work(part: tuple[Share, int, slice]) -> None:
        share, place, keys = part
        shifts = None if saved.shifts is None else saved.shifts[share]
        out = [dq_full[place][share], dk_full[share][..., keys, :], dv_full[share][..., keys, :]]
        whole.of(share).back(g_full[share], y_full[share], saved.sums[share], shifts, keys, out)

    threads.run(work, parts)
    for other in more:
        d_q += other
    return tuple(sum_to(d, x.shape) for d, x in zip((d_q, d_k, d_v), (q, k, v), strict=True))
