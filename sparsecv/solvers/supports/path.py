"""Search for good supports of every size up to τ, without a proof.

Of every size the best few supports that no single swap improves are kept. Each support gives one of
the next larger size, by the column that raises its gain most, and one of the next smaller size. A
size whose objective is above the mean of its neighbours' has probably missed a better support, so
some members of its supports are exchanged. Where one size alone is wanted, members are exchanged
until that has failed many times in a row.

A support that is found here is a start for a proof, so all numbers in this module are choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.threads import on_one_thread
from ..kernels.compiled import kernel
from ..kernels.linalg import Array, Ints, allocated
from .rounding import complete_support, largest
from .swaps import Swaps, add_member, attained_gain, new_swaps, recompute, remove_member, swap_from

Support = NDArray[np.intp]

# Swaps from one support end after this many exchanges of one member.
MAX_SWAPS = 100
# Two supports of a size whose gains differ by at most this share of the gain count as one support.
# It is well above rounding.
SAME_SHARE = 1e-12
# Each row (columns, work, width, rounds) is for windows of at most ``columns`` columns, and columns
# times largest size at most ``work``. Of every size ``width`` supports are kept, and ``rounds``
# rounds of :func:`exchange` follow. The numbers are choices. More effort made paths of 120 and
# 200 columns twice as slow, for objectives that were .1 % lower.
EFFORTS = ((100, 2e3, 3, 3), (np.inf, 3e4, 1, 1), (np.inf, np.inf, 2, 0))
# Sizes are searched in windows, 1..16, 17..32, 33..64 and so on. So a size's support is the same
# however many sizes are wanted, up to the end of its window. The number is a choice.
FIRST_WINDOW = 16
# A whole window is searched this many sizes beyond its end, as a support may come from a larger
# one. The last window is not where it is cut short. The number is a choice.
LOOK_AHEAD = 3
# A support gives a start for the next size only if the start's objective is at most this many times
# the best objective of that size. The number is measured. With 2, objectives of 100 spectral
# columns were no lower, and the search took about 1.6 times as long.
MAX_OBJECTIVE_RATIO = 1.2
# Supports are searched among the columns that are most correlated with y. These are as many as the
# product below divided by the number of rows, but at least 50 and at most 200. The more rows there
# are, the fewer columns are correlated with y by chance. The numbers are measured with 50 columns
# in place of 200. Four tables of up to 155 rows then had objectives that were 8 to 40 % larger on
# average. For two tables of 800 rows and more the difference was below .4 %.
MAX_CORRELATED_COLUMNS = 200
LEAST_CORRELATED_COLUMNS = 50
CORRELATED_COLUMNS_TIMES_ROWS = 40_000
# After a step of forward selection the search also uses so many columns that are most correlated
# with what the step leaves of y, at most as many as are most correlated with y: a choice.
MAX_COLUMNS_OF_A_STEP = 100
# The first number where a single size is wanted, whose support is the start of a proof: a choice.
MAX_COLUMNS_OF_ONE_SIZE = 2000
# Of one size three supports are kept, and exchanges end after this many failures in a row.
SINGLE_SIZE_WIDTH = 3
MAX_FAILED_EXCHANGES = 200


@on_one_thread
def heuristic_support(
    problem: SparseRidgeProblem,
    *,
    warm_starts: Sequence[Support] = (),
    time_limit: float | None = None,
) -> Support:
    """Search for a good support of τ columns, the same in every run that no time limit ends.

    Supports of every size up to τ + 2 are grown by adding, removing and swapping columns. Then some
    columns of the best supports of τ columns are exchanged, over and over.

    Parameters
    ----------
    problem : SparseRidgeProblem
    warm_starts : sequence of integer arrays, optional
        Supports of at most τ columns.
    time_limit : float, optional
        Seconds after which the best support so far is returned.

    Returns
    -------
    ndarray of intp, shape (τ,)
        The columns of the support, increasing.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, heuristic_support
    >>> problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
    >>> heuristic_support(problem)
    array([1, 2])
    """
    problem.refuse_constraints("heuristic_support")
    limits, tau = Limits(time_limit), problem.tau
    starts = [np.unique(start) for start in warm_starts]
    grower = SupportGrower(problem, [tau, min(tau + 2, problem.p)], starts, single=True)
    return grower.search(problem.gamma, tau, starts, limits)


class Window(NamedTuple):
    """A range of sizes that are searched together, and how thoroughly.

    Attributes
    ----------
    low, high : int
        The window finds supports of the sizes low + 1..high. Those of ``low`` columns are known.
    top : int
        The search goes on to this size, as a support may come from a larger one.
    width, rounds : int
        How many supports of a size are kept, and how many rounds of :func:`exchange` follow.
    chunk : int
        How many sizes are worked on between two looks at the clock.
    """

    low: int
    high: int
    top: int
    width: int
    rounds: int
    chunk: int


class SupportGrower:
    """Good supports of several sizes of one problem, at one γ after the other.

    The Gram matrix is formed once. What is found at one γ does not depend on the γ before. What is
    found for a size does not depend on larger sizes beyond the size's window.

    problem: Gives the data and a γ at which columns are selected; its τ is not used.
    sizes: In 1..p; other sizes raise a ValueError.
    starts: Supports whose columns the search is to use in any case.
    single: Whether :meth:`search` follows, which needs several supports of a size.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        sizes: Iterable[int],
        starts: Sequence[Support] = (),
        single: bool = False,
    ) -> None:
        self.wanted = sorted({int(size) for size in sizes})
        p = problem.p
        if not self.wanted or self.wanted[0] < 1 or self.wanted[-1] > p:
            raise ValueError(f"sizes must lie in 1..{p}; got {self.wanted}")
        most = min(self.wanted[-1] + (0 if single else LOOK_AHEAD), p)
        share = MAX_COLUMNS_OF_ONE_SIZE if single else correlated_columns(problem.data.n)
        self.columns, self.since, self.G, self.b = promising_columns(problem, most, starts, share)
        m, self.yy = self.columns.size, problem.yy
        self.windows = windows(self.wanted[-1], most, self.since, single)
        width = max(one.width for one in self.windows)
        self.sizes = allocated(
            Sizes,
            {"p": m, "most": most, "width": width},
            allowed=np.ones(m, dtype=np.int8),
            supports=np.full((most + 1, width, most), -1, dtype=np.int64),
            current=new_swaps(self.G, self.b, most + 1),
        )

    def at(self, gamma: float, starts: Sequence[Support], limits: Limits) -> dict[int, Support]:
        """One support of each size at one γ, as a dictionary from size to increasing columns.

        starts: Supports to improve; those with a column that the search does not use are ignored.
        limits: Once a limit is reached, starts count as they are, and sizes without a support get
            one by forward selection.
        """
        columns, known, ridge = self.columns, self.sizes, gamma / 2.0
        known.gains[:], known.unused[:], known.size[:] = -np.inf, 0, 0
        known.kept[0] = 1
        enter_goal(known, ridge, 0, 0)
        for window in self.windows:
            self._search_window(window, ridge, starts, limits)
        supports, most = known.supports[:, 0], self.wanted[-1]
        missing = np.flatnonzero(known.gains[: most + 1, 0] == -np.inf)
        if missing.size:  # a limit was reached
            k = int(missing[0])
            order = complete_support(self.G, self.b, ridge, supports[k - 1, : k - 1], most)
            for size in missing:
                supports[size, :size] = order[:size]
        rows = np.sort(np.where(supports < 0, columns[-1] + 1, columns[supports]), axis=1)
        return {k: rows[k, :k].astype(np.intp) for k in self.wanted}

    def search(self, gamma: float, size: int, starts: Sequence[Support], limits: Limits) -> Support:
        """A support of one size at one γ, after exchanges until these fail.

        starts, limits: Those of :meth:`at`.
        """
        self.at(gamma, starts, limits)
        known, failed, number = self.sizes, 0, 0
        gains = known.gains[size]
        while failed < MAX_FAILED_EXCHANGES and limits.reached(0) is None:
            before, number = float(gains[0]), number + 1
            exchange(known, gamma / 2.0, np.inf, size, size + 1, number)
            failed = 0 if gains[0] > before * (1.0 + SAME_SHARE) else failed + 1
        return np.sort(self.columns[known.supports[size, 0, :size]])

    def _search_window(
        self, window: Window, ridge: float, starts: Sequence[Support], limits: Limits
    ) -> None:
        """Search a window; the windows of smaller sizes have been searched before."""
        known, low, top = self.sizes, window.low, window.top
        known.kept[0], known.allowed[:] = window.width, self.since <= top
        # What windows before have found beyond their own sizes is forgotten.
        known.gains[low + 1 :], known.unused[low + 1 :] = -np.inf, 0
        known.unused[low] = 0
        known.unused[low, : window.width, 0] = known.gains[low, : window.width] > -np.inf
        for start in starts:
            k = start.size
            if low < k <= top and np.isin(start, self.columns).all():
                known.goal[:k] = np.searchsorted(self.columns, np.sort(start))
                enter_goal(known, ridge, k, MAX_SWAPS if limits.reached(0) is None else 0)
        self._extend(window, ridge, limits)
        for number in range(window.rounds):
            for first in range(max(low + 1, 2), top, window.chunk):
                if limits.reached(0) is None:
                    last = min(first + window.chunk, top)
                    exchange(known, ridge, self.yy, first, last, number)
            self._extend(window, ridge, limits)

    def _extend(self, window: Window, ridge: float, limits: Limits) -> None:
        """Pass up and down a window while supports are left that gave none of the next size.

        Passes down are two at most, each after a pass up, and one more pass up follows.
        """
        known, (low, _, top, _, _, chunk) = self.sizes, window
        for number in range(2 * 2 + 1):
            up = number % 2 == 0
            if not (known.unused[low:top, :, 0].any() or known.unused[low + 2 :, :, 1].any()):
                return
            end = top + up  # Supports of ``low`` columns are known, and no pass down changes them.
            for first in range(low + 1, end, chunk):
                if limits.reached(0) is not None:
                    return
                last = min(first + chunk, end)
                if up:
                    extend(known, ridge, self.yy, first, last, 1)
                else:
                    extend(known, ridge, self.yy, top + low - first, top + low - last, -1)


def windows(largest_size: int, top: int, since: NDArray[np.intp], single: bool) -> list[Window]:
    """The windows of the sizes up to ``largest_size``; none goes beyond ``top``.

    since: The size from which on each column may be in a support.
    single: Whether all sizes are one window, of which one size is searched further.
    """
    found, low = list[Window](), 0
    for high in [largest_size] if single else window_ends(largest_size):
        whole = high == FIRST_WINDOW * 2 ** len(found)
        beyond = min(high + LOOK_AHEAD, top) if whole else high
        m = int((since <= beyond).sum())
        width, rounds = next(
            effort for most, work, *effort in EFFORTS if m <= most and m * high <= work
        )
        chunk = max(1, 1_000_000 // (m * high))
        width = SINGLE_SIZE_WIDTH if single else width
        found.append(Window(low, high, beyond, width, rounds, chunk))
        low = high
    return found


def window_ends(largest_size: int) -> list[int]:
    """The last sizes of windows, of which the last one is ``largest_size``.

    Examples
    --------
    >>> window_ends(40)
    [16, 32, 40]
    """
    ends = [FIRST_WINDOW]
    while ends[-1] < largest_size:
        ends.append(2 * ends[-1])
    return [*ends[:-1], largest_size]


def correlated_columns(n: int | None) -> int:
    """How many columns that are correlated with y are searched, from n rows.

    n: None where rows are not known, which then count as few.

    Examples
    --------
    >>> correlated_columns(100), correlated_columns(400), correlated_columns(10_000)
    (200, 100, 50)
    """
    most = CORRELATED_COLUMNS_TIMES_ROWS // (n or 1)
    return max(LEAST_CORRELATED_COLUMNS, min(MAX_CORRELATED_COLUMNS, most))


def promising_columns(
    problem: SparseRidgeProblem, most: int, starts: Sequence[Support], share: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], Array, Array]:
    """The columns among which supports of up to ``most`` columns are searched.

    They are the columns of ``starts``, the ``share`` columns that are most correlated with y, and
    at every size 1, 2, 4, 8, … those that are most correlated with the residual of forward
    selection among the columns so far. The gains of all p columns are thus computed once for every
    doubling of the size. After it the columns suffice for twice the size and ``LOOK_AHEAD`` more.
    All columns are searched where these are fewer than ``most``.

    Returns: The columns C, increasing; the size from which on each may be in a support; X_CᵀX_C;
        and X_Cᵀy. Every product of two columns is computed once.
    """
    # Where rows are few, their Gram matrix costs less than a triangular factor of them.
    p, head, y = problem.p, problem.data.X, problem.data.y
    columns, since = np.arange(p), np.zeros(p, dtype=np.intp)
    if p > share:
        lengths, none = np.maximum(np.sqrt(problem.squared_lengths), 1e-300), columns[:0]
        first = largest(np.abs(y @ head) / lengths, share)
        columns, since[:] = np.union1d(first, np.concatenate([none, *starts])), p
        since[columns] = 0
    within = np.asarray(head) if columns.size == p else head[:, columns]
    G, b = within.T @ within, within.T @ y
    size, ridge, step = 1, problem.gamma / 2.0, min(MAX_COLUMNS_OF_A_STEP, share)
    while columns.size < p and size <= min(most, problem.rank_bound, columns.size):
        order = complete_support(G, b, ridge, none, size)
        normal = G[np.ix_(order, order)] + ridge * np.eye(size)
        coef = np.linalg.lstsq(normal, b[order], rcond=None)[0]
        left = (y - within[:, order] @ coef) @ head
        nearest = np.argsort(-np.abs(left) / lengths, kind="stable")
        number = max(int((since[nearest[:step]] == p).sum()), 2 * size + LOOK_AHEAD - columns.size)
        new = np.sort(nearest[since[nearest] == p][:number])
        since[new] = size
        more, columns = head[:, new], np.append(columns, new)
        cross = within.T @ more
        G, b = np.block([[G, cross], [cross.T, more.T @ more]]), np.append(b, more.T @ y)
        within, size = np.hstack([within, more]), 2 * size
    if columns.size < most:
        within = np.asarray(head)
        return np.arange(p), np.zeros(p, dtype=np.intp), within.T @ within, within.T @ y
    order = np.argsort(columns)
    columns = columns[order]
    return columns, since[columns], G[np.ix_(order, order)], b[order]


class Sizes(NamedTuple):
    """The best supports of every size, and the arrays of one support, the current support.

    ``most`` is the largest size, ``width`` the number of supports that are kept of every size. In
    arrays that end in 2, entry 0 is for the next larger size and entry 1 for the next smaller size.
    """

    kept: Annotated[Ints, "1"]  # how many supports of a size are kept, at most ``width``
    allowed: NDArray[np.int8]  # (p,) 0 for a column that may not come into the current support
    supports: Ints  # (most + 1, width, most) by size and rank, ended by −1
    gains: Annotated[Array, "most+1 width"]  # gains of the supports, −∞ where there is none
    next_gain: Annotated[Array, "most+1 width 2"]  # with the next column added, or removed
    next_column: Annotated[Ints, "most+1 width 2"]  # the column to add, and to remove
    unused: Annotated[NDArray[np.int8], "most+1 width 2"]  # 1 until the support has given the next
    # size's
    goal: Annotated[Ints, "most+1"]  # a support that the current support is to become
    mark: Annotated[NDArray[np.int8], "p"]  # marks of columns, all 0 between two calls
    size: Annotated[Ints, "1"]  # number of columns of the current support
    current: Swaps  # the current support with its arrays


@kernel(inner=True)
def move_to(s, ridge, k):
    """Make ``goal[:k]`` the current support, by few updates or anew; returns the support's gain."""
    n, current, mark, goal = s.size[0], s.current, s.mark, s.goal
    trial, updates = current.support, k
    for a in range(k):
        mark[goal[a]] = 1
    for a in range(n):
        updates += 1 - 2 * mark[trial[a]]
    s.size[0] = k
    if n == 0 or 2.5 * updates > k:  # more updates cost more than to compute all arrays anew
        for a in range(k):
            mark[goal[a]], trial[a] = 0, goal[a]
        return recompute(current, ridge, k)
    for a in range(n - 1, -1, -1):
        if mark[trial[a]] == 0:
            remove_member(current, n, a)
            n -= 1
            if a < n:
                move_last_member(current, n, a)
        mark[trial[a]] = 0
    for a in range(k):
        if mark[goal[a]] == 1:
            mark[goal[a]] = 0
            n += 1
            add_member(current, ridge, n, n - 1, goal[a])
    return attained_gain(current, ridge, k, -np.inf)


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
    current, gains, width = s.current, s.gains, s.kept[0]
    gain = swap_from(current, ridge, k, s.allowed, most, gain)
    gain = gain if gain >= 0.0 else 0.0  # NaN becomes 0 as well
    rank = width
    while rank > 0 and not gains[k, rank - 1] * (1.0 + SAME_SHARE) >= gain:
        rank -= 1
    if rank == width or (rank > 0 and gain >= gains[k, rank - 1] * (1.0 - SAME_SHARE)):
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

    Its objective, ``yy`` less the gain, may be a little larger than the best of the size.
    """
    for rank in range(s.kept[0]):
        if abs(gain - s.gains[k, rank]) <= SAME_SHARE * gain:
            return False
    return s.gains[k, 0] == -np.inf or yy - gain <= MAX_OBJECTIVE_RATIO * (yy - s.gains[k, 0])


@kernel
def extend(s, ridge, yy, first, last, way):
    """Make supports of the sizes range(first, last, way) from those of the size before.

    way: 1 to add the column that raises a support's gain most; −1 to remove the column whose
        removal lowers the gain least.
    """
    to = (1 - way) // 2
    for k in range(first, last, way):
        before = k - way
        for rank in range(s.kept[0]):
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
                improve_and_keep(s, ridge, k, move_to(s, ridge, k), MAX_SWAPS)


@kernel
def exchange(s, ridge, yy, first, last, number):
    """Exchange members of supports of sizes whose objective is above the mean of the neighbours'.

    The members that leave may not come back until swaps of the other columns have ended.

    yy: yᵀy, or infinity where every size counts, whatever its objective.
    first, last: The sizes are first..last − 1.
    number: The round, which decides which members of which support leave.
    """
    current, width = s.current, s.kept[0]
    for k in range(first, last):
        if yy < np.inf:
            middle = yy - 0.5 * (s.gains[k - 1, 0] + s.gains[k + 1, 0])
            if not yy - s.gains[k, 0] > 1.001 * middle:
                continue
        rank = number % (width + 1) - 1  # every other exchange or so is of the best support
        if rank < 0 or s.gains[k, rank] == -np.inf:
            rank = 0
        for a in range(k):
            s.goal[a] = s.supports[k, rank, a]
        move_to(s, ridge, k)
        leaving, seed = min(1 + number % max(1, k // 2), current.b.shape[0] - k), number
        for e in range(leaving):
            for _ in range(3):  # numbers that look random, by a linear congruence
                seed = (seed * 1103515245 + 12345) % 2147483648
            a = (seed // 1024) % k
            while s.allowed[current.support[a]] == 0:
                a = (a + 1) % k
            s.goal[e] = current.support[a]
            s.allowed[s.goal[e]] = 0
            remove_member(current, k, a)
            which, _ = most_helpful(s, ridge, k)
            add_member(current, ridge, k, a, which)
        gain = attained_gain(current, ridge, k, -np.inf)
        gain = swap_from(current, ridge, k, s.allowed, MAX_SWAPS, gain)
        for e in range(leaving):
            s.allowed[s.goal[e]] = 1
        improve_and_keep(s, ridge, k, gain, MAX_SWAPS)
