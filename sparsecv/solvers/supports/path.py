"""Search for good supports of every size up to τ, without a proof.

Of every size the best few supports that no single swap improves are kept. Each support gives one of
the next larger size, by the column that raises its gain most, and one of the next smaller size. A
size whose objective is above the mean of its neighbours' has probably missed a better support, so a
few members of its best support are exchanged.
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
from .greedy import complete_support, forward_order
from .local_search import MAX_PROMISING_COLUMNS, promising_columns
from .swaps import Swaps, add_member, attained_gain, new_swaps, recompute, remove_member, swap_from

Support = NDArray[np.intp]


class GrowerSettings(NamedTuple):
    """Tuning numbers of the supports of every size; supports are starts, which proofs improve."""

    # Swaps from one start end after this many exchanges of one member, at a support that further
    # swaps may improve.
    swaps: int = 30
    # The search uses the columns most correlated with y: ``columns_per_size`` for each size up to
    # the largest size, no fewer than ``least_columns``, and no more than ``MAX_PROMISING_COLUMNS``.
    columns_per_size: int = 100
    least_columns: int = 600
    # Two supports of a size whose gains differ by at most this share of the gain count as one
    # support. It is well above rounding.
    same_share: float = 1e-12
    # A start is passed over where its objective is more than this many times the best objective of
    # its size.
    most_ratio: float = 2.0
    # Passes from the largest size down end after this many, each after a pass up; one more pass up
    # follows.
    passes: int = 2
    # Each row (work, kept, rounds) is for problems whose columns times largest size are at most
    # ``work``; of every size so many supports are kept, and so many rounds of :func:`exchange`
    # follow.
    efforts: tuple[tuple[float, int, int], ...] = ((5e3, 3, 4), (3e4, 1, 1), (np.inf, 2, 0))
    # Members of a size's best support are exchanged where its objective exceeds the mean of both
    # neighbours' by more than this share of the mean.
    excess_share: float = 1e-3
    # At most this many members are exchanged at once, and at most half of the support.
    exchanged_members: int = 3
    # The arrays of a new support are updated from those of the current support where the columns to
    # add or remove, times this number, are at most its size; else they are computed anew, which
    # costs less.
    updates_per_size: float = 2.5
    # Columns times sizes that are worked on between two looks at the clock.
    clock_work: int = 1_000_000


SETTINGS = GrowerSettings()


class SupportGrower:
    """Good supports of several sizes of one problem, at one γ after the other.

    The Gram matrix is formed once. What is found at one γ does not depend on the γ before.

    problem: Gives the data and a γ at which columns are selected; its τ is not used.
    sizes: In 1..p; other sizes raise a ValueError.
    starts: Supports whose columns the search is to use in any case.
    limits: Where the time left does not suffice for the Gram matrix, the search uses fewer columns.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        sizes: Iterable[int],
        starts: Sequence[Support] = (),
        limits: Limits | None = None,
    ) -> None:
        self.wanted = sorted({int(size) for size in sizes})
        p = problem.p
        if not self.wanted or self.wanted[0] < 1 or self.wanted[-1] > p:
            raise ValueError(f"sizes must lie in 1..{p}; got {self.wanted}")
        # where rows are few, their Gram matrix costs less than a triangular factor of them
        factor = problem.rows
        head, y = factor[:, :p], factor[:, p]
        most = self.wanted[-1]
        needed = np.concatenate([np.zeros(0, dtype=np.intp), *starts])
        # with these columns the Gram matrix takes no longer than the search for supports
        per_size = SETTINGS.columns_per_size * most
        share = min(MAX_PROMISING_COLUMNS, max(SETTINGS.least_columns, per_size))
        n, limits = head.shape[0], limits or Limits()
        while share > most and not limits.affords(2.0 * n * min(share, p) ** 2):
            share = max(share // 2, most)
        columns = promising_columns(head, y, needed, share)
        if columns.size < p and limits.affords(2.0 * n * p * most):
            order = forward_order(head, y, min(most, problem.rank_bound), problem.gamma)
            columns = np.union1d(columns, order)
        if columns.size < most:
            columns = np.arange(p, dtype=np.intp)
        self.columns, m = columns, columns.size
        self.G, self.b = _products(head if m == p else head[:, columns], y)
        self.yy = problem.yy
        width, self.rounds = next(e[1:] for e in SETTINGS.efforts if m * most <= e[0])
        self.chunk = max(1, SETTINGS.clock_work // (m * most))
        of_size, capacity = (most + 1, width), most + 1
        self.sizes = Sizes(
            allowed=np.ones(m, dtype=np.int8),
            supports=np.full((*of_size, most), -1, dtype=np.int64),
            gains=np.empty(of_size),
            next_gain=np.empty((*of_size, 2)),
            next_column=np.empty((*of_size, 2), dtype=np.int64),
            unused=np.empty((*of_size, 2), dtype=np.int8),
            goal=np.empty(capacity, dtype=np.int64),
            mark=np.zeros(m, dtype=np.int8),
            size=np.zeros(1, dtype=np.int64),
            current=new_swaps(self.G, self.b, capacity),
        )

    def at(self, gamma: float, starts: Sequence[Support], limits: Limits) -> dict[int, Support]:
        """One support of each size at one γ, as a dictionary from size to increasing columns.

        starts: Supports to improve; those with a column that the search does not use are ignored.
        limits: Once a limit is reached, sizes without a support get one by forward selection.
        """
        most, columns, known, ridge = self.wanted[-1], self.columns, self.sizes, gamma / 2.0
        known.gains[:], known.unused[:], known.size[:] = -np.inf, 0, 0
        enter_goal(known, ridge, 0, 0)
        for start in starts:
            k = start.size
            if 1 <= k <= most and np.isin(start, columns).all() and limits.reached(0) is None:
                known.goal[:k] = np.searchsorted(columns, np.sort(start))
                enter_goal(known, ridge, k, SETTINGS.swaps)
        self._extend(ridge, limits)
        for number in range(self.rounds):
            for first in range(2, most, self.chunk):
                if limits.reached(0) is None:
                    last = min(first + self.chunk, most)
                    exchange(known, ridge, self.yy, first, last, number)
            self._extend(ridge, limits)
        supports = known.supports[:, 0]
        missing = np.flatnonzero(known.gains[:, 0] == -np.inf)
        if missing.size:  # a limit was reached
            k = int(missing[0])
            order = complete_support(self.G, self.b, ridge, supports[k - 1, : k - 1], most)
            for size in missing:
                supports[size, :size] = order[:size]
        rows = np.sort(np.where(supports < 0, columns[-1] + 1, columns[supports]), axis=1)
        return {k: rows[k, :k].astype(np.intp) for k in self.wanted}

    def _extend(self, ridge: float, limits: Limits) -> None:
        """Pass up and down the sizes while supports are left that gave none of the next size."""
        most, known = self.wanted[-1], self.sizes
        for number in range(2 * SETTINGS.passes + 1):
            if not known.unused.any():
                return
            for first in range(1, most + 1, self.chunk):
                if limits.reached(0) is not None:
                    return
                last = min(first + self.chunk, most + 1)
                if number % 2 == 0:
                    extend(known, ridge, self.yy, first, last, 1)
                else:
                    extend(known, ridge, self.yy, most - first, most - last, -1)


def _products(within: Array, y: Array) -> tuple[Array, Array]:
    """XᵀX and Xᵀy, of rows ``within`` of X and y."""
    return np.asarray(within.T @ within), np.asarray(within.T @ y)


class Sizes(NamedTuple):
    """The best supports of every size, and the arrays of one support, the current support.

    ``most`` is the largest size, ``width`` the number of supports that are kept of every size. In
    arrays that end in 2, entry 0 is for the next larger size and entry 1 for the next smaller size.
    """

    allowed: NDArray[np.int8]  # (p,) 0 for a column that may not come into the current support
    supports: NDArray[np.int64]  # (most + 1, width, most) by size and rank, ended by −1
    gains: Array  # (most + 1, width) gains of the supports, −∞ where there is none
    next_gain: Array  # (most + 1, width, 2) the gain with the next column added, or removed
    next_column: NDArray[np.int64]  # (most + 1, width, 2) the column to add, and to remove
    unused: NDArray[np.int8]  # (most + 1, width, 2) 1 until the support has given the next size's
    goal: NDArray[np.int64]  # (most + 1,) a support that the current support is to become
    mark: NDArray[np.int8]  # (p,) marks of columns, all 0 between two calls
    size: NDArray[np.int64]  # (1,) number of columns of the current support
    current: Swaps  # the current support with its arrays


@kernel(inner=True)
def move_to(s, ridge, k):
    """Make ``goal[:k]`` the current support, by few updates or anew; returns the support's gain."""
    n, trial, mark, goal = s.size[0], s.current.support, s.mark, s.goal
    for a in range(k):
        mark[goal[a]] = 1
    updates = k - n
    for a in range(n):
        updates += 2 * (mark[trial[a]] == 0)
        mark[trial[a]] += 2
    s.size[0] = k
    if n == 0 or SETTINGS.updates_per_size * updates > k:
        for a in range(n):
            mark[trial[a]] = 0
        for a in range(k):
            mark[goal[a]], trial[a] = 0, goal[a]
        return recompute(s.current, ridge, k)
    place = 0
    for e in range(k):
        if mark[goal[e]] == 1:
            while place < n and mark[trial[place]] != 2:
                place += 1
            if place < n:
                remove_member(s.current, n, place)
                mark[trial[place]] = 0
            else:
                n += 1
            add_member(s.current, ridge, n, place, goal[e])
            mark[goal[e]] = 3
            place += 1
    while n > k:
        while mark[trial[place]] != 2:
            place += 1
        remove_member(s.current, n, place)
        mark[trial[place]] = 0
        n -= 1
        move_last_member(s.current, n, place)
    for a in range(k):
        mark[goal[a]] = 0
    return attained_gain(s.current, ridge, k)


@kernel(inner=True)
def move_last_member(s, n, place):
    """Move the member in place n to the empty ``place``."""
    s.support[place], s.beta[place] = s.support[n], s.beta[n]
    for j in range(s.c.shape[0]):
        s.V[place, j] = s.V[n, j]
    for e in range(n + 1):
        s.A[place, e] = s.A[n, e]
    for e in range(n + 1):
        s.A[e, place] = s.A[e, n]


@kernel(inner=True)
def most_helpful(s, ridge, k):
    """The allowed column that raises the current support's gain most, and by how much; −1: none."""
    current = s.current
    for a in range(k):
        s.mark[current.support[a]] = 1
    best, which = 0.0, -1
    for j in range(current.b.shape[0]):
        score = current.c[j] * current.c[j] / max(current.d[j], 1e-12 * (current.G[j, j] + ridge))
        if s.mark[j] == 0 and s.allowed[j] == 1 and (which < 0 or score > best):
            best, which = max(0.0, score), j
    for a in range(k):
        s.mark[current.support[a]] = 0
    return which, best


@kernel(inner=True)
def improve_and_keep(s, ridge, k, gain, most):
    """Improve the current support by at most ``most`` swaps, and keep a result among the best.

    gain: That of the current support, which has k columns.
    """
    current, gains, width = s.current, s.gains, s.gains.shape[1]
    gain = swap_from(current, ridge, k, s.allowed, most, gain)
    gain = gain if gain >= 0.0 else 0.0  # NaN becomes 0 as well
    rank = width
    while rank > 0 and not gains[k, rank - 1] * (1.0 + SETTINGS.same_share) >= gain:
        rank -= 1
    if rank == width or (rank > 0 and gain >= gains[k, rank - 1] * (1.0 - SETTINGS.same_share)):
        return
    for r in range(width - 1, rank, -1):
        gains[k, r] = gains[k, r - 1]
        for e in range(2):
            s.next_gain[k, r, e] = s.next_gain[k, r - 1, e]
            s.next_column[k, r, e] = s.next_column[k, r - 1, e]
            s.unused[k, r, e] = s.unused[k, r - 1, e]
        for a in range(k):
            s.supports[k, r, a] = s.supports[k, r - 1, a]
    gains[k, rank] = gain
    for a in range(k):
        s.supports[k, rank, a] = current.support[a]
    s.unused[k, rank, 0], s.unused[k, rank, 1] = k + 1 < gains.shape[0], k > 1
    s.next_column[k, rank, 0], more = most_helpful(s, ridge, k)
    s.next_gain[k, rank, 0] = gain + more
    least = np.inf
    for a in range(k):
        loss = current.beta[a] * current.beta[a] / max(current.A[a, a], 1e-300)
        if loss < least:
            least, s.next_column[k, rank, 1] = loss, current.support[a]
    s.next_gain[k, rank, 1] = gain - least


@kernel
def enter_goal(s, ridge, k, most):
    """Improve ``goal[:k]`` by at most ``most`` swaps, and keep a result among the best."""
    improve_and_keep(s, ridge, k, move_to(s, ridge, k), most)


@kernel(inner=True)
def promising(s, yy, k, gain):
    """Whether a support of size k with this gain is new, and its objective near enough the best.

    The objective is ``yy`` less the gain, and is compared by ``SETTINGS.most_ratio``.
    """
    for rank in range(s.gains.shape[1]):
        if abs(gain - s.gains[k, rank]) <= SETTINGS.same_share * gain:
            return False
    most = SETTINGS.most_ratio * (yy - s.gains[k, 0])
    return s.gains[k, 0] == -np.inf or yy - gain <= most


@kernel
def extend(s, ridge, yy, first, last, way):
    """Make supports of the sizes range(first, last, way) from those of the size before.

    way: 1 to add the column that raises a support's gain most; −1 to remove the column whose
        removal lowers the gain least.
    """
    to = (1 - way) // 2
    for k in range(first, last, way):
        before = k - way
        for rank in range(s.gains.shape[1]):
            if s.unused[before, rank, to] == 0:
                continue
            s.unused[before, rank, to] = 0
            if promising(s, yy, k, s.next_gain[before, rank, to]):
                m, column = 0, s.next_column[before, rank, to]
                for a in range(before):
                    if s.supports[before, rank, a] != column:
                        s.goal[m] = s.supports[before, rank, a]
                        m += 1
                if way > 0:
                    s.goal[m] = column
                improve_and_keep(s, ridge, k, move_to(s, ridge, k), SETTINGS.swaps)


@kernel
def exchange(s, ridge, yy, first, last, number):
    """Exchange members of the best supports of sizes whose objective is above the neighbours' mean.

    The members that leave may not come back until the exchange and one swap are done.

    first, last: The sizes are first..last − 1.
    number: The round, which decides which members leave.
    """
    current = s.current
    for k in range(first, last):
        middle = 0.5 * (s.gains[k - 1, 0] + s.gains[k + 1, 0])
        if not yy - s.gains[k, 0] > (1.0 + SETTINGS.excess_share) * (yy - middle):
            continue
        for a in range(k):
            s.goal[a] = s.supports[k, 0, a]
        move_to(s, ridge, k)
        barred = min(SETTINGS.exchanged_members, k // 2, current.b.shape[0] - k)
        for e in range(barred):
            a = (7 * number + e * (k // barred)) % k
            s.goal[e] = current.support[a]
            s.allowed[s.goal[e]] = 0
            remove_member(current, k, a)
            which, _ = most_helpful(s, ridge, k)
            add_member(current, ridge, k, a, which)
        gain = swap_from(current, ridge, k, s.allowed, 1, attained_gain(current, ridge, k))
        for e in range(barred):
            s.allowed[s.goal[e]] = 1
        improve_and_keep(s, ridge, k, gain, SETTINGS.swaps)
