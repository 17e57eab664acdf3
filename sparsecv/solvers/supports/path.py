"""Good supports of every size up to τ: a few of each, led up and down the sizes and improved.

Kept are the best local optima of every size under swaps of one. Each leads to a support of the size
above, by the column that helps it most, and to one of the size below. A size that lies above the
line between its neighbours has probably missed something: it is shaken.
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
from .beam import PROMISING, promising_columns
from .greedy import complete_support, forward_order
from .swaps import afresh, join, leave, settled_gain, swap_from

Support = NDArray[np.intp]
SWAPS = 30  # at most, at every size
FEW_COLUMNS, COLUMNS_PER_SIZE = 600, 100  # that are looked at
SAME = 1e-12  # relative difference of gains that counts as none
SLACK = 2.0  # times the best objective of a size: above that a start is not tried
PASSES = 2  # down the sizes, at most, each time supports are led on; up once more
# Up to so many columns times sizes, so many supports are kept of every size, and so many rounds of
# shaking follow. The last entry is for all larger problems. Measured by heuristic_path.py.
EFFORTS = ((5_000, 3, 4), (30_000, 1, 1), (np.inf, 2, 0))
OFF_LINE = 1e-3  # relative distance above the neighbours' mean from which a size is shaken
SHAKEN = 3  # members that are exchanged when it is
NEAR = 2.5  # exchanges that cost what a support made afresh does are its size over this
STEPS = 100_000  # squared sizes times columns between two looks at the clock, about


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
        share = min(PROMISING, max(FEW_COLUMNS, COLUMNS_PER_SIZE * most))
        columns = promising_columns(head, y, needed, share)
        if columns.size < p:
            order = forward_order(head, y, min(most, problem.rank_bound), problem.gamma)
            columns = np.union1d(columns, order)
        if columns.size < most:
            columns = np.arange(p, dtype=np.intp)
        self.columns, m = columns, columns.size
        self.G, self.b = _products(head if m == p else head[:, columns], y)
        self.yy = problem.yy
        width, self.rounds = next(effort[1:] for effort in EFFORTS if m * most <= effort[0])
        self.chunk = max(1, STEPS // (m * most))
        of_size, room = (most + 1, width), most + 1
        self.sizes = Sizes(
            G=self.G,
            b=self.b,
            allowed=np.ones(m, dtype=np.int8),
            supports=np.full((*of_size, most), -1, dtype=np.int64),
            gains=np.empty(of_size),
            near=np.empty((*of_size, 2)),
            step=np.empty((*of_size, 2), dtype=np.int64),
            fresh=np.empty((*of_size, 2), dtype=np.int8),
            aim=np.empty(room, dtype=np.int64),
            trial=np.empty(room, dtype=np.int64),
            mark=np.zeros(m, dtype=np.int8),
            now=np.zeros(1, dtype=np.int64),
            A=np.empty((room, room)),
            beta=np.empty(max(m, room)),
            V=np.empty((room, m)),
            c=np.empty(m),
            d=np.empty(m),
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
                enter(known, ridge, k, SWAPS)
        self._lead_on(ridge, limits)
        for number in range(self.rounds):
            for first in range(2, most, self.chunk):
                if limits.reached(0) is None:
                    last = min(first + self.chunk, most)
                    shake(known, ridge, self.yy, first, last, SWAPS, number)
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
        for number in range(2 * PASSES + 1):
            if not known.fresh.any():
                return
            up = number % 2 == 0
            for first in range(1, most + 1, self.chunk):
                if limits.reached(0) is not None:
                    return
                last = min(first + self.chunk, most + 1)
                if up:
                    upwards(known, ridge, self.yy, first, last, SWAPS)
                else:
                    downwards(known, ridge, self.yy, most - first, most - last, SWAPS)


def _products(within: Array, y: Array) -> tuple[Array, Array]:
    """XᵀX and Xᵀy."""
    return np.asarray(within.T @ within), np.asarray(within.T @ y)


class Sizes(NamedTuple):
    """The best supports of every size, where each leads, and what is kept of the one at hand."""

    G: Array
    b: Array
    allowed: NDArray[np.int8]  # 0: a column that may not join for now
    # by size and rank
    supports: NDArray[np.int64]  # (most + 1, width, most)
    gains: Array  # (most + 1, width), −∞ where nothing is known
    near: Array  # (most + 1, width, 2) gain with one column more, and with one less
    step: NDArray[np.int64]  # (most + 1, width, 2) which column that is
    fresh: NDArray[np.int8]  # (most + 1, width, 2) whether it has not led there yet
    aim: NDArray[np.int64]  # a support to go to
    mark: NDArray[np.int8]  # (p,) zeros between two calls
    # the support at hand, ``now[0]`` columns, as in ``swaps``
    trial: NDArray[np.int64]
    now: NDArray[np.int64]
    A: Array
    beta: Array
    V: Array
    c: Array
    d: Array


@kernel(inner=True)
def go(s, ridge, k):  # type: ignore[no-untyped-def]
    """Have the support at hand be ``aim[:k]``, by exchanges where it is near; returns its gain."""
    n, trial, mark, aim = s.now[0], s.trial, s.mark, s.aim
    for a in range(k):
        mark[aim[a]] = 1
    apart = k - n
    for a in range(n):
        apart += 2 * (mark[trial[a]] == 0)
        mark[trial[a]] += 2
    s.now[0] = k
    if n == 0 or NEAR * apart > k:
        for a in range(n):
            mark[trial[a]] = 0
        for a in range(k):
            mark[aim[a]], trial[a] = 0, aim[a]
        return afresh(s.G, s.b, ridge, trial, k, s.A, s.beta, s.V, s.c, s.d)
    place = 0
    for e in range(k):
        if mark[aim[e]] == 1:
            while place < n and mark[trial[place]] != 2:
                place += 1
            if place < n:
                leave(n, place, s.A, s.beta, s.V, s.c, s.d)
                mark[trial[place]] = 0
            else:
                n += 1
            join(s.G, ridge, trial, n, place, aim[e], s.A, s.beta, s.V, s.c, s.d)
            mark[aim[e]] = 3
            place += 1
    while n > k:
        while mark[trial[place]] != 2:
            place += 1
        leave(n, place, s.A, s.beta, s.V, s.c, s.d)
        mark[trial[place]] = 0
        n -= 1
        take_place(s, n, place)
    for a in range(k):
        mark[aim[a]] = 0
    return settled_gain(s.G, s.b, ridge, trial, k, s.A, s.beta, s.V, s.c, s.d)


@kernel(inner=True)
def take_place(s, n, place):  # type: ignore[no-untyped-def]
    """Move member n into the free place."""
    s.trial[place], s.beta[place] = s.trial[n], s.beta[n]
    for j in range(s.c.shape[0]):
        s.V[place, j] = s.V[n, j]
    for e in range(n + 1):
        s.A[place, e] = s.A[n, e]
    for e in range(n + 1):
        s.A[e, place] = s.A[e, n]


@kernel(inner=True)
def most_helpful(s, ridge, k):  # type: ignore[no-untyped-def]
    """The column allowed that helps most beside ``trial[:k]``, and by how much; −1 for none."""
    for a in range(k):
        s.mark[s.trial[a]] = 1
    best, which = 0.0, -1
    for j in range(s.b.shape[0]):
        score = s.c[j] * s.c[j] / max(s.d[j], 1e-12 * (s.G[j, j] + ridge))
        if s.mark[j] == 0 and s.allowed[j] == 1 and (which < 0 or score > best):
            best, which = max(0.0, score), j
    for a in range(k):
        s.mark[s.trial[a]] = 0
    return which, best


@kernel(inner=True)
def improve_and_keep(s, ridge, k, gain, swaps):  # type: ignore[no-untyped-def]
    """Swaps from the support at hand; it is kept where it is new and among the best of its size."""
    trial, gains, width = s.trial, s.gains, s.gains.shape[1]
    gain = swap_from(s.G, s.b, ridge, trial, k, s.allowed, s.A, s.beta, s.V, s.c, s.d, swaps, gain)
    gain = gain if gain >= 0.0 else 0.0  # NaN included
    rank = width
    while rank > 0 and not gains[k, rank - 1] * (1.0 + SAME) >= gain:
        rank -= 1
    if rank == width or (rank > 0 and gain >= gains[k, rank - 1] * (1.0 - SAME)):
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
        s.supports[k, rank, a] = trial[a]
    s.fresh[k, rank, 0], s.fresh[k, rank, 1] = k + 1 < gains.shape[0], k > 1
    s.step[k, rank, 0], more = most_helpful(s, ridge, k)
    s.near[k, rank, 0] = gain + more
    least = np.inf
    for a in range(k):
        loss = s.beta[a] * s.beta[a] / max(s.A[a, a], 1e-300)
        if loss < least:
            least, s.step[k, rank, 1] = loss, trial[a]
    s.near[k, rank, 1] = gain - least


@kernel
def enter(s, ridge, k, swaps):  # type: ignore[no-untyped-def]
    """Swaps from ``aim[:k]``."""
    improve_and_keep(s, ridge, k, go(s, ridge, k), swaps)


@kernel(inner=True)
def promising(s, yy, k, gain):  # type: ignore[no-untyped-def]
    """Whether a support of size k with this gain is none of those kept, and near the best."""
    for rank in range(s.gains.shape[1]):
        if abs(gain - s.gains[k, rank]) <= SAME * gain:
            return False
    return s.gains[k, 0] == -np.inf or yy - gain <= SLACK * (yy - s.gains[k, 0])


@kernel
def upwards(s, ridge, yy, first, last, swaps):  # type: ignore[no-untyped-def]
    """Sizes first..last − 1 from those of the size below and the column that helps them most."""
    for k in range(first, last):
        for rank in range(s.gains.shape[1]):
            if s.fresh[k - 1, rank, 0] == 1:
                s.fresh[k - 1, rank, 0] = 0
                if promising(s, yy, k, s.near[k - 1, rank, 0]):
                    for a in range(k - 1):
                        s.aim[a] = s.supports[k - 1, rank, a]
                    s.aim[k - 1] = s.step[k - 1, rank, 0]
                    improve_and_keep(s, ridge, k, go(s, ridge, k), swaps)


@kernel
def downwards(s, ridge, yy, first, last, swaps):  # type: ignore[no-untyped-def]
    """Sizes first..last + 1 from those of the size above less the column they miss least."""
    for k in range(first, last, -1):
        for rank in range(s.gains.shape[1]):
            if s.fresh[k + 1, rank, 1] == 1:
                s.fresh[k + 1, rank, 1] = 0
                if promising(s, yy, k, s.near[k + 1, rank, 1]):
                    m = 0
                    for a in range(k + 1):
                        if s.supports[k + 1, rank, a] != s.step[k + 1, rank, 1]:
                            s.aim[m] = s.supports[k + 1, rank, a]
                            m += 1
                    improve_and_keep(s, ridge, k, go(s, ridge, k), swaps)


@kernel
def shake(s, ridge, yy, first, last, swaps, number):  # type: ignore[no-untyped-def]
    """Sizes first..last − 1, where off the line, with a few members barred for a moment."""
    p = s.b.shape[0]
    for k in range(first, last):
        middle = 0.5 * (s.gains[k - 1, 0] + s.gains[k + 1, 0])
        if not yy - s.gains[k, 0] > (1.0 + OFF_LINE) * (yy - middle):
            continue
        for a in range(k):
            s.aim[a] = s.supports[k, 0, a]
        go(s, ridge, k)
        barred = min(SHAKEN, k // 2, p - k)
        for e in range(barred):
            a = (7 * number + e * (k // barred)) % k
            s.aim[e] = s.trial[a]
            s.allowed[s.aim[e]] = 0
            leave(k, a, s.A, s.beta, s.V, s.c, s.d)
            which, _ = most_helpful(s, ridge, k)
            join(s.G, ridge, s.trial, k, a, which, s.A, s.beta, s.V, s.c, s.d)
        gain = settled_gain(s.G, s.b, ridge, s.trial, k, s.A, s.beta, s.V, s.c, s.d)
        work = (s.A, s.beta, s.V, s.c, s.d)
        gain = swap_from(s.G, s.b, ridge, s.trial, k, s.allowed, *work, 1, gain)
        for e in range(barred):
            s.allowed[s.aim[e]] = 1
        improve_and_keep(s, ridge, k, gain, swaps)
