"""Good supports of every size up to τ: a few of each, led up and down the sizes and improved.

The best local optima of every size under single swaps are kept. Each support leads to one of the
size above, by the column that helps it most, and to one of the size below. A size whose objective
lies above the line between its neighbours' has probably missed a support: its best one is shaken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..kernels.compiled import kernel
from ..kernels.linalg import Array
from .beam import SETTINGS as LOCAL
from .beam import promising_columns
from .greedy import complete_support, forward_order
from .swaps import Swaps, afresh, attained_gain, join, leave, new_swaps, swap_from

Support = NDArray[np.intp]


class GrowerSettings(NamedTuple):
    """Tuning numbers of the supports of every size."""

    # Swaps from one start, at most. Where a search needs more its support is no local optimum.
    swaps: int = 30
    # The search is confined to this many promising columns for each size up to the largest, and
    # to ``least_columns`` at least. Twice as many take four times the memory of the Gram matrix.
    columns_per_size: int = 100
    least_columns: int = 600
    # Two supports of a size whose gains differ by at most this share count as one.
    same_share: float = 1e-12
    # A start is tried where its objective is at most this many times the best of its size.
    most_ratio: float = 2.0
    # Passes down the sizes, at most, each time supports lead on; one more goes up.
    passes: int = 2
    # For each row: up to so many columns times sizes, so many supports of every size are kept and
    # so many rounds of exchanges (:func:`shake`) follow. Measured by experiments/heuristic_path.
    efforts: tuple[tuple[float, int, int], ...] = ((5e3, 3, 4), (3e4, 1, 1), (np.inf, 2, 0))
    # A size is shaken where its objective exceeds the mean of its two neighbours by this share.
    excess_share: float = 1e-3
    # Members that are exchanged when a size is shaken.
    shaken_members: int = 3
    # A support is reached by exchanges from the one at hand where fewer than its size over this
    # number are needed: beyond, forming all arrays afresh costs less.
    sizes_per_exchange: float = 2.5
    # Columns times sizes of the work between two looks at the clock.
    clock_work: int = 100_000


SETTINGS = GrowerSettings()


class SupportGrower:
    """Good supports of several sizes at one γ after the other, without a proof; deterministic.

    Of every size the best few supports that no swap of one improves are kept. They come from those
    of the size below and the column that helps most, from those of the size above less the column
    they miss least, from warm starts, and from exchanges of a few members where a size lies above
    the line between its neighbours.
    The Gram matrix is formed once; what is found at one γ does not depend on those before.

    problem: Gives the data; its τ is not used.
    sizes: In 1..p.
    starts: What may be started from at the first γ, at its γ.
    Raises ValueError: Sizes out of 1..p.
    """

    def __init__(
        self, problem: SparseRidgeProblem, sizes: Iterable[int], starts: Sequence[Support] = ()
    ) -> None:
        self.wanted = sorted({int(size) for size in sizes})
        p = problem.p
        if not self.wanted or self.wanted[0] < 1 or self.wanted[-1] > p:
            raise ValueError(f"sizes must lie in 1..{p}; got {self.wanted}")
        # few more rows than columns: a Gram matrix costs less than the factor it would come from
        factor = problem._short
        head, y = factor[:, :p], factor[:, p]
        most = self.wanted[-1]
        needed = np.concatenate([np.zeros(0, dtype=np.intp), *starts])
        # the Gram matrix should not take longer than the supports that are made from it
        per_size = SETTINGS.columns_per_size * most
        share = min(LOCAL.promising_columns, max(SETTINGS.least_columns, per_size))
        columns = promising_columns(head, y, needed, share)
        if columns.size < p:
            order = forward_order(head, y, min(most, problem.rank_bound), problem.gamma)
            columns = np.union1d(columns, order)
        if columns.size < most:
            columns = np.arange(p, dtype=np.intp)
        self.columns, m = columns, columns.size
        self.G, self.b = _products(head if m == p else head[:, columns], y)
        self.yy = problem.yy
        width, self.rounds = next(e[1:] for e in SETTINGS.efforts if m * most <= e[0])
        self.chunk = max(1, SETTINGS.clock_work // (m * most))
        of_size, room = (most + 1, width), most + 1
        self.sizes = Sizes(
            allowed=np.ones(m, dtype=np.int8),
            supports=np.full((*of_size, most), -1, dtype=np.int64),
            gains=np.empty(of_size),
            near=np.empty((*of_size, 2)),
            step=np.empty((*of_size, 2), dtype=np.int64),
            fresh=np.empty((*of_size, 2), dtype=np.int8),
            aim=np.empty(room, dtype=np.int64),
            mark=np.zeros(m, dtype=np.int8),
            now=np.zeros(1, dtype=np.int64),
            at=new_swaps(self.G, self.b, room),
        )

    def at(self, gamma: float, starts: Sequence[Support], limits: Limits) -> dict[int, Support]:
        """The supports at one γ.

        starts: Those with a column that is not looked at are passed over.
        limits: Once they are reached sizes are filled by forward steps alone.
        Returns, dict of int to ndarray of intp, increasing columns.
        """
        most, columns, known, ridge = self.wanted[-1], self.columns, self.sizes, gamma / 2.0
        known.gains[:], known.fresh[:], known.now[:] = -np.inf, 0, 0
        enter(known, ridge, 0, 0)
        for start in starts:
            k = start.size
            if 1 <= k <= most and np.isin(start, columns).all() and limits.reached(0) is None:
                known.aim[:k] = np.searchsorted(columns, np.sort(start))
                enter(known, ridge, k, SETTINGS.swaps)
        self._lead_on(ridge, limits)
        for number in range(self.rounds):
            for first in range(2, most, self.chunk):
                if limits.reached(0) is None:
                    last = min(first + self.chunk, most)
                    shake(known, ridge, self.yy, first, last, number)
            self._lead_on(ridge, limits)
        supports = known.supports[:, 0]
        missing = np.flatnonzero(known.gains[:, 0] == -np.inf)
        if missing.size:  # the time was up
            k = int(missing[0])
            order = complete_support(self.G, self.b, ridge, supports[k - 1, : k - 1], most)
            for size in missing:
                supports[size, :size] = order[:size]
        rows = np.sort(np.where(supports < 0, columns[-1] + 1, columns[supports]), axis=1)
        return {k: rows[k, :k].astype(np.intp) for k in self.wanted}

    def _lead_on(self, ridge: float, limits: Limits) -> None:
        """Up and down the sizes while there are supports that have not led to their neighbours."""
        most, known = self.wanted[-1], self.sizes
        for number in range(2 * SETTINGS.passes + 1):
            if not known.fresh.any():
                return
            for first in range(1, most + 1, self.chunk):
                if limits.reached(0) is not None:
                    return
                last = min(first + self.chunk, most + 1)
                if number % 2 == 0:
                    lead(known, ridge, self.yy, first, last, 1)
                else:
                    lead(known, ridge, self.yy, most - first, most - last, -1)


def _products(within: Array, y: Array) -> tuple[Array, Array]:
    """XᵀX and Xᵀy."""
    return np.asarray(within.T @ within), np.asarray(within.T @ y)


class Sizes(NamedTuple):
    """The best supports of every size, where each leads, and what is kept of the one at hand.

    Entries [..., 0] of the arrays of two lead to the size above, entries [..., 1] to the one below.
    """

    allowed: NDArray[np.int8]  # (p,) 0 for a column that may not join for now
    supports: NDArray[np.int64]  # (most + 1, width, most) by size and rank
    gains: Array  # (most + 1, width) −∞ where no support is known
    near: Array  # (most + 1, width, 2) gain with one column more, and with one column less
    step: NDArray[np.int64]  # (most + 1, width, 2) which column that is
    fresh: NDArray[np.int8]  # (most + 1, width, 2) whether the support has not led there yet
    aim: NDArray[np.int64]  # (most + 1,) a support to go to
    mark: NDArray[np.int8]  # (p,) zeros between two calls
    now: NDArray[np.int64]  # (1,) columns of the support at hand
    at: Swaps  # the support at hand


@kernel(inner=True)
def go(s, ridge, k):  # type: ignore[no-untyped-def]
    """Have the support at hand be ``aim[:k]``, by exchanges where few do; returns its gain."""
    n, trial, mark, aim = s.now[0], s.at.support, s.mark, s.aim
    for a in range(k):
        mark[aim[a]] = 1
    exchanges = k - n
    for a in range(n):
        exchanges += 2 * (mark[trial[a]] == 0)
        mark[trial[a]] += 2
    s.now[0] = k
    if n == 0 or SETTINGS.sizes_per_exchange * exchanges > k:
        for a in range(n):
            mark[trial[a]] = 0
        for a in range(k):
            mark[aim[a]], trial[a] = 0, aim[a]
        return afresh(s.at, ridge, k)
    place = 0
    for e in range(k):
        if mark[aim[e]] == 1:
            while place < n and mark[trial[place]] != 2:
                place += 1
            if place < n:
                leave(s.at, n, place)
                mark[trial[place]] = 0
            else:
                n += 1
            join(s.at, ridge, n, place, aim[e])
            mark[aim[e]] = 3
            place += 1
    while n > k:
        while mark[trial[place]] != 2:
            place += 1
        leave(s.at, n, place)
        mark[trial[place]] = 0
        n -= 1
        take_place(s.at, n, place)
    for a in range(k):
        mark[aim[a]] = 0
    return attained_gain(s.at, ridge, k)


@kernel(inner=True)
def take_place(s, n, place):  # type: ignore[no-untyped-def]
    """Move member n into the free place."""
    s.support[place], s.beta[place] = s.support[n], s.beta[n]
    for j in range(s.c.shape[0]):
        s.V[place, j] = s.V[n, j]
    for e in range(n + 1):
        s.A[place, e] = s.A[n, e]
    for e in range(n + 1):
        s.A[e, place] = s.A[e, n]


@kernel(inner=True)
def most_helpful(s, ridge, k):  # type: ignore[no-untyped-def]
    """The allowed column that adds most to the gain of the k at hand, and how much; −1 for none."""
    at = s.at
    for a in range(k):
        s.mark[at.support[a]] = 1
    best, which = 0.0, -1
    for j in range(at.b.shape[0]):
        score = at.c[j] * at.c[j] / max(at.d[j], 1e-12 * (at.G[j, j] + ridge))
        if s.mark[j] == 0 and s.allowed[j] == 1 and (which < 0 or score > best):
            best, which = max(0.0, score), j
    for a in range(k):
        s.mark[at.support[a]] = 0
    return which, best


@kernel(inner=True)
def improve_and_keep(s, ridge, k, gain, swaps):  # type: ignore[no-untyped-def]
    """Swaps from the support at hand; a new support among the best of its size is kept."""
    at, gains, width = s.at, s.gains, s.gains.shape[1]
    gain = swap_from(at, ridge, k, s.allowed, swaps, gain)
    gain = gain if gain >= 0.0 else 0.0  # NaN included
    rank = width
    while rank > 0 and not gains[k, rank - 1] * (1.0 + SETTINGS.same_share) >= gain:
        rank -= 1
    if rank == width or (rank > 0 and gain >= gains[k, rank - 1] * (1.0 - SETTINGS.same_share)):
        return
    for r in range(width - 1, rank, -1):
        gains[k, r] = gains[k, r - 1]
        for e in range(2):
            s.near[k, r, e], s.step[k, r, e] = s.near[k, r - 1, e], s.step[k, r - 1, e]
            s.fresh[k, r, e] = s.fresh[k, r - 1, e]
        for a in range(k):
            s.supports[k, r, a] = s.supports[k, r - 1, a]
    gains[k, rank] = gain
    for a in range(k):
        s.supports[k, rank, a] = at.support[a]
    s.fresh[k, rank, 0], s.fresh[k, rank, 1] = k + 1 < gains.shape[0], k > 1
    s.step[k, rank, 0], more = most_helpful(s, ridge, k)
    s.near[k, rank, 0] = gain + more
    least = np.inf
    for a in range(k):
        loss = at.beta[a] * at.beta[a] / max(at.A[a, a], 1e-300)
        if loss < least:
            least, s.step[k, rank, 1] = loss, at.support[a]
    s.near[k, rank, 1] = gain - least


@kernel
def enter(s, ridge, k, swaps):  # type: ignore[no-untyped-def]
    """Swaps from ``aim[:k]``."""
    improve_and_keep(s, ridge, k, go(s, ridge, k), swaps)


@kernel(inner=True)
def promising(s, yy, k, gain):  # type: ignore[no-untyped-def]
    """Whether a support of size k with this gain is none of those kept, and near the best."""
    for rank in range(s.gains.shape[1]):
        if abs(gain - s.gains[k, rank]) <= SETTINGS.same_share * gain:
            return False
    most = SETTINGS.most_ratio * (yy - s.gains[k, 0])
    return s.gains[k, 0] == -np.inf or yy - gain <= most


@kernel
def lead(s, ridge, yy, first, last, way):  # type: ignore[no-untyped-def]
    """Sizes from ``first`` on, before ``last``, from the supports of the size before each.

    way: 1 up the sizes, where the column that helps a support most joins it; −1 down the sizes,
        where the column that the support misses least leaves it.
    """
    to = (1 - way) // 2
    for k in range(first, last, way):
        before = k - way
        for rank in range(s.gains.shape[1]):
            if s.fresh[before, rank, to] == 0:
                continue
            s.fresh[before, rank, to] = 0
            if promising(s, yy, k, s.near[before, rank, to]):
                m, column = 0, s.step[before, rank, to]
                for a in range(before):
                    if s.supports[before, rank, a] != column:
                        s.aim[m] = s.supports[before, rank, a]
                        m += 1
                if way > 0:
                    s.aim[m] = column
                improve_and_keep(s, ridge, k, go(s, ridge, k), SETTINGS.swaps)


@kernel
def shake(s, ridge, yy, first, last, number):  # type: ignore[no-untyped-def]
    """Exchange members of sizes first..last − 1 whose objective is above their neighbours' mean.

    The members that leave are barred until the exchange and one swap are done.
    """
    at = s.at
    for k in range(first, last):
        middle = 0.5 * (s.gains[k - 1, 0] + s.gains[k + 1, 0])
        if not yy - s.gains[k, 0] > (1.0 + SETTINGS.excess_share) * (yy - middle):
            continue
        for a in range(k):
            s.aim[a] = s.supports[k, 0, a]
        go(s, ridge, k)
        barred = min(SETTINGS.shaken_members, k // 2, at.b.shape[0] - k)
        for e in range(barred):
            a = (7 * number + e * (k // barred)) % k
            s.aim[e] = at.support[a]
            s.allowed[s.aim[e]] = 0
            leave(at, k, a)
            which, _ = most_helpful(s, ridge, k)
            join(at, ridge, k, a, which)
        gain = swap_from(at, ridge, k, s.allowed, 1, attained_gain(at, ridge, k))
        for e in range(barred):
            s.allowed[s.aim[e]] = 1
        improve_and_keep(s, ridge, k, gain, SETTINGS.swaps)
