"""Attention tile by tile: no matrix of n x m scores is ever held, so memory grows with n and not with its square.

The idea is FlashAttention's (Dao et al. 2022, arXiv:2205.14135): scores of some queries and some keys at a time, small
enough to stay in the cache; forward keeps one or two numbers a row, and backward computes the scores again from
them.  What is ours is what makes it cheap in NumPy, where every pass over a tile costs:

* No row maximum, and exp2 in place of exp where it is faster (`tinyattn.kernels.heads`).  Only where the sum of a
  row cannot be trusted, its part of the queries takes the careful way: a running maximum.
* No division of the weights.  With e = exp(scores) and l the sums of its rows, the result is (e v) / l, and going
  back 1/l goes into the cotangent, which is small.
* The correction of softmax going back is one more column in a product: [g, -D] [v, 1]^T is g v^T - D.
* A tile is narrow along the axis whose sums it completes, which are then added up in small pieces, and wide along
  the other, so that there are few of them: after each call a thread may have to wait for Python's lock.

What is left to do for each score is one exp forward, and one exp and one multiplication back.  The plain form is
`tinyattn.kernels.attention`; tests hold the two equal.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from tinyattn.kernels import threads
from tinyattn.kernels.allocator import warm
from tinyattn.kernels.heads import Whole, power, sides, triangle_of, trusted
from tinyattn.kernels.small import all_finite
from tinyattn.ops.helpers import sum_to

NARROW, WIDE = 160, 640  # of a tile: 400 KB in float32; half is slower, and so is more: it leaves the cache
FEW = 4  # so many parts at least, where the sizes allow it


class Saved(NamedTuple):
    """What forward keeps for each row: the sum of its exponentials, and the shift where there was one."""

    sums: Any  # (heads..., n)
    shifts: Any  # (heads..., n); None where no row needed one


Place = tuple[int, ...]  # along the leading axes: one head
Part = tuple[Place, int, slice]  # a head, and a stretch of its queries or keys with its number


class Head:
    """The work on one head: its rows, in the layouts that the products want."""

    def __init__(self, whole: Whole, place: Place) -> None:
        self.scale = whole.scale
        self.power, factor = power(whole.q.dtype.char)
        self.q, self.k, self.v = (np.ascontiguousarray(x[place]) for x in (whole.q, whole.k, whole.v))
        self.kt = np.array(self.k.T, order="C")  # (d, m)  a transposed view is up to twice as slow
        self.kt *= self.q.dtype.type(self.scale * factor)  # so that the scores need no pass for it
        self.n, self.m = whole.n, whole.m
        self.keep = None if whole.keep is None else whole.keep[place]  # (n, m)
        # Query i sees the keys up to i + behind: all of them, or when causal, which is aligned at the end, fewer.
        self.behind = self.m - self.n if whole.causal else self.m
        self.room = np.empty(NARROW * WIDE, self.q.dtype)

    # -- one tile -------------------------------------------------------------------------------------------------

    def scores(self, i: slice, j: slice) -> Any:
        """The scores of some queries and keys, (rows, columns), in memory that every tile uses again."""
        return np.dot(self.q[i], self.kt[:, j], out=tile_in(self.room, i, j))

    def corner(self, tile: Any, i: slice, j: slice) -> tuple[Any, Any]:
        """The corner of a tile outside of which no key is later than its query, and 1 there for those that are not."""
        all_see = i.start + self.behind + 1 - j.start  # so many of these keys are seen by the first query already
        rows = max(0, j.stop - j.start - all_see)
        cut = all_see if all_see > NARROW else 0  # whole rows lie close together: a third of the time
        part = tile[:rows, cut:]
        return part, triangle_of(*part.shape, all_see - cut - 1, tile.dtype.char)

    def hide(self, tile: Any, i: slice, j: slice) -> None:
        """Set what is hidden to 0, in place."""
        part, triangle = self.corner(tile, i, j)
        part *= triangle
        if self.keep is not None:
            tile *= self.keep[i, j]

    def lower(self, tile: Any, i: slice, j: slice) -> None:
        """Set what is hidden to minus infinity, in place: before a maximum is taken."""
        part, triangle = self.corner(tile, i, j)
        np.copyto(part, -np.inf, where=triangle == 0)
        if self.keep is not None:
            np.copyto(tile, -np.inf, where=~self.keep[i, j])

    def weights(self, i: slice, j: slice, shifts: Any = None) -> Any:
        """exp(scores - shift), (rows, columns), 0 where hidden: the row's sum times the weights."""
        tile = self.scores(i, j)
        if shifts is not None:
            self.lower(tile, i, j)
            np.subtract(tile, shifts[i, None], out=tile)
        self.power(tile, out=tile)
        if shifts is None and (self.keep is not None or j.stop > i.start + self.behind + 1):
            self.hide(tile, i, j)
        return tile

    # -- forward --------------------------------------------------------------------------------------------------

    def seen(self, i: slice) -> int:
        """How many keys the last of some queries may see."""
        return int(min(self.m, max(0, i.stop + self.behind)))

    def means(self, queries: slice) -> tuple[Any, Any]:
        """exp(scores) v summed over the keys, (rows, d_v), and the sums of the rows, (rows,)."""
        total = np.zeros((queries.stop - queries.start, self.v.shape[1]), self.q.dtype)
        sums, ones = np.zeros(len(total), self.q.dtype), np.ones(WIDE, self.q.dtype)
        for i in sides(queries.start, queries.stop, NARROW):
            here = slice(i.start - queries.start, i.stop - queries.start)
            total_here, sums_here = total[here], sums[here]
            for j in sides(0, self.seen(i), WIDE):
                tile = self.weights(i, j)  # (rows, columns)
                total_here += tile.dot(self.v[j])
                sums_here += tile.dot(ones[: j.stop - j.start])
        return total, sums

    def blind(self, queries: slice) -> Any:
        """Which of some queries see no key at all, (rows,)."""
        last = np.arange(queries.start, queries.stop) + self.behind  # key that is not later
        if self.keep is None:
            return last < 0
        return np.array([not self.keep[i, : max(0, end + 1)].any() for i, end in enumerate(last, queries.start)])

    def careful_means(self, queries: slice) -> tuple[Any, Any, Any]:
        """The same with a running maximum, and that: whenever it grows, what was summed so far shrinks."""
        total = np.zeros((queries.stop - queries.start, self.v.shape[1]), self.q.dtype)
        sums, shifts = np.zeros(len(total), self.q.dtype), np.zeros(len(total), self.q.dtype)
        highest = np.full_like(sums, -np.inf)
        for i in sides(queries.start, queries.stop, NARROW):
            here = slice(i.start - queries.start, i.stop - queries.start)
            for j in sides(0, self.seen(i), WIDE):
                tile = self.scores(i, j)
                self.lower(tile, i, j)
                before, now = highest[here], np.maximum(highest[here], tile.max(axis=-1))
                shifts[here] = np.where(now == -np.inf, 0, now)  # 0 for a row that has seen nothing yet
                shrink = self.power(before - shifts[here])
                highest[here] = now
                np.subtract(tile, shifts[here, None], out=tile)
                self.power(tile, out=tile)
                total[here] = total[here] * shrink[:, None] + tile.dot(self.v[j])
                sums[here] = sums[here] * shrink + tile.sum(axis=-1)
        return total, sums, shifts

    # -- backward -------------------------------------------------------------------------------------------------

    def back(self, g: Any, y: Any, sums: Any, shifts: Any, keys: slice, out: list[Any]) -> None:
        """The cotangents of some keys and their values, and what these keys add to the queries', into ``out``."""
        g1, v1t = _with_column(g, y, sums), _with_row_of_ones(self.v)  # (n, d_v + 1), (d_v + 1, m)
        g = np.ascontiguousarray(g1[:, :-1])  # (n, d_v)
        d_q, other = out[0], np.empty_like(self.room)
        if not d_q.flags.c_contiguous:
            d_q = np.empty(d_q.shape, d_q.dtype)  # much is added up: in one piece of memory
        d_q[...] = 0
        for j in sides(keys.start, keys.stop, NARROW):
            k, v1t_j = self.k[j], v1t[:, j]
            d_k, d_v = np.zeros_like(k), np.zeros((len(k), g.shape[1]), g.dtype)
            for i in sides(max(0, j.start - self.behind), self.n, WIDE):  # from the first query that may see a key
                tile = self.weights(i, j, shifts)  # (rows, columns)
                d_v += tile.T.dot(g[i])
                slopes = np.dot(g1[i], v1t_j, out=tile_in(other, i, j))
                slopes *= tile  # (rows, columns)  the cotangent of the scores
                d_k += slopes.T.dot(self.q[i])
                here = d_q[i]
                here += slopes.dot(k)
            np.multiply(d_k, self.scale, out=out[1][j])
            out[2][j] = d_v
        np.multiply(d_q, self.scale, out=out[0])


def tile_in(room: Any, i: slice, j: slice) -> Any:
    """The beginning of ``room`` as a tile, (rows, columns)."""
    rows, columns = i.stop - i.start, j.stop - j.start
    return room[: rows * columns].reshape(rows, columns)


def _with_column(g: Any, y: Any, sums: Any) -> Any:
    """[g, -D] / l, where D = sum(g y) is what softmax takes off every slope of a row."""
    g1 = np.empty((len(g), g.shape[1] + 1), g.dtype)  # (n, d_v + 1)
    np.divide(g, sums[:, None], out=g1[:, :-1])
    np.negative(np.vecdot(g1[:, :-1], y), out=g1[:, -1])
    return g1


def _with_row_of_ones(v: Any) -> Any:
    """[v, 1] transposed, so that [g, -D] [v, 1]^T is g v^T - D: one product and no pass for the subtraction."""
    v1t = np.ones((v.shape[1] + 1, len(v)), v.dtype)  # (d_v + 1, m)
    v1t[:-1] = v.T
    return v1t


def parts(heads: tuple[int, ...], size: int) -> list[Part]:
    """Every head, and where these are few, stretches of an axis of that size, each with its number."""
    places = list(itertools.product(*map(range, heads)))
    count = min(-(-FEW // len(places)), -(-size // WIDE))
    step = -(-size // (count * NARROW)) * NARROW
    return [(place, number, cut) for number, cut in enumerate(sides(0, size, step)) for place in places]


def forward(q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> tuple[Any, Saved] | None:
    """The weighted means of the values, and one or two numbers a row; None where something is not finite."""
    warm()
    whole = Whole(q, k, v, keep, causal, scale)
    y = whole.like(q, v.shape[-1])
    sums = np.empty((*whole.heads, whole.n), q.dtype)
    shifts = np.zeros_like(sums)
    careful, y_full = [], whole.full(y)

    def work(part: Part) -> None:
        place, _, queries = part
        head = Head(whole, place)
        total, row_sums = head.means(queries)  # (rows, d_v), (rows,)
        good = trusted(row_sums)
        if not good.all():
            blind = head.blind(queries)
            if not (good | (row_sums == 0) & blind).all():
                total, row_sums, shifts[place][queries] = head.careful_means(queries)
                careful.append(place)
            row_sums[blind] = 1  # what sees nothing gets 0 / 1; where every score is -inf, 0 / 0 is left to show
        sums[place][queries] = row_sums
        np.divide(total, row_sums[:, None], out=y_full[place][queries])

    with np.errstate(over="ignore", invalid="ignore"):  # looked at afterwards
        threads.run(work, parts(whole.heads, whole.n))
        return (y, Saved(sums, shifts if careful else None)) if all_finite([y]) else None


def rule(g: Any, y: Any, saved: Saved, q: Any, k: Any, v: Any, keep: Any, causal: bool, scale: Any) -> Any:
    """The cotangents of queries, keys and values."""
    whole = Whole(q, k, v, keep, causal, scale)
    d_q, d_k, d_v = (whole.like(x, x.shape[-1]) for x in (q, k, v))
    todo = parts(whole.heads, whole.m)
    more = [np.empty_like(d_q) for _ in range(todo[-1][1])]  # each stretch of keys has something for every query
    g_full, y_full, dk_full, dv_full, *dq_full = (whole.full(x) for x in (g, y, d_k, d_v, d_q, *more))

    def work(part: Part) -> None:
        place, number, keys = part
        shifts = None if saved.shifts is None else saved.shifts[place]
        out = [dq_full[number][place], dk_full[place], dv_full[place]]
        Head(whole, place).back(g_full[place], y_full[place], saved.sums[place], shifts, keys, out)

    threads.run(work, todo)
    for other in more:
        d_q += other
    return tuple(sum_to(d, x.shape) for d, x in zip((d_q, d_k, d_v), (q, k, v), strict=True))
