"""Search for good supports of every size up to τ, without a proof.

A support is a set of units: columns, or groups of columns that join together. Of every size the
best few supports that no single swap improves are kept. Each support gives one of the next larger
size, by the unit that raises its gain most, and one of the next smaller size. A
size whose objective is above the mean of its neighbours' has probably missed a better support, so
some members of its supports are exchanged. Where one size alone is wanted, members are exchanged
until that has failed many times in a row.

A support that is found here is a start for a proof, so all numbers in this module are choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem, checked_sizes
from ..core.threads import on_one_thread
from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import Array, Ints, allocated, column_worth
from .rounding import complete_support
from .swaps import (
    Swaps,
    Units,
    attained_gain,
    factor_units,
    join,
    leave,
    moved_products,
    new_swaps,
    new_units,
    recompute,
    settle,
    swap_from,
    wide_gain,
    without,
)

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
# They end after so many in any case, as rounding may let gains grow for ever: a choice.
MAX_EXCHANGES = 20_000
# So many exchanges of one size, some microseconds each, are made between two looks at the clock.
EXCHANGES = 20


@on_one_thread
def heuristic_support(
    problem: SparseRidgeProblem,
    *,
    warm_starts: Sequence[Support] = (),
    time_limit: float | None = None,
) -> Support:
    """Search for a good support of τ columns, the same in every run that no time limit ends.

    Supports of every size up to τ + 2 are grown by adding, removing and swapping columns. Then some
    columns of the best supports of τ columns are exchanged, over and over. Where columns are in
    groups, whole groups are added, removed and swapped, and τ counts groups.

    Parameters
    ----------
    problem : SparseRidgeProblem
    warm_starts : sequence of integer arrays, optional
        Supports of at most τ columns or groups; others than the constraints allow are ignored.
    time_limit : float, optional
        Seconds after which the best support so far is returned.

    Returns
    -------
    ndarray of intp
        The columns of the support, increasing: τ columns, or those of τ groups.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, heuristic_support
    >>> problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
    >>> heuristic_support(problem)
    array([1, 2])
    """
    limits, tau = Limits(time_limit), problem.tau
    starts = [np.unique(start) for start in warm_starts]
    sizes = [tau, min(tau + 2, problem.constraints.max_size)]
    grower = SupportGrower(problem, sizes, starts, single=True)
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

    A size is a number of units, columns or groups of columns that join together. The Gram matrix is
    formed once. What is found at one γ does not depend on the γ before. What is found for a size
    does not depend on larger sizes beyond the size's window.

    problem: Gives the data, the constraints on columns and a γ at which columns are selected; its τ
        is not used.
    sizes: In 1..p, and not below the number of included units; other sizes raise a ValueError.
    starts: Supports whose units the search is to use in any case.
    single: Whether :meth:`search` follows, which needs several supports of a size.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        sizes: Iterable[int],
        starts: Sequence[Support] = (),
        single: bool = False,
    ) -> None:
        self.wanted, rules = checked_sizes(problem, list(sizes)).tolist(), problem.constraints
        most = min(self.wanted[-1] + (0 if single else LOOK_AHEAD), rules.max_size)
        share = MAX_COLUMNS_OF_ONE_SIZE if single else correlated_columns(problem.data.n)
        self.rules, self.yy, self.least = rules, problem.yy, rules.min_size
        places, self.since, columns, G, b = promising_columns(problem, most, starts, share)
        self.units, bounds = rules.left.units[places], None
        order = np.argsort(columns)
        # The columns of the search, increasing, and the unit of each, numbered as in the search.
        self.columns = columns[order]
        self.unit = np.repeat(np.arange(places.size), np.diff(rules.left.first)[places])[order]
        first = np.append(0, np.cumsum(np.diff(rules.left.first)[places]))
        if rules.bounded:
            bounds = rules.lower[columns], rules.upper[columns]
        elif rules.grouped:
            G, b, first = principal_directions(G, b, first)
        m, widths = self.units.size, np.diff(first)
        kept = rules.left.include[places]
        self.windows = windows(self.least, self.wanted[-1], most, self.since, widths, single)
        width = max((one.width for one in self.windows), default=1)
        current = new_swaps(G, b, int(np.sort(widths)[::-1][: most + 1].sum()))
        self.sizes = allocated(
            Sizes,
            {"m": m, "most": most, "width": width},
            kept=np.ones(1, dtype=np.int64),
            supports=np.full((most + 1, width, most), -1, dtype=np.int64),
            gains=np.full((most + 1, width), -np.inf),
            units=new_units(first, kept, bounds, b),
            current=current,
        )

    def at(self, gamma: float, starts: Sequence[Support], limits: Limits) -> dict[int, Support]:
        """One support of each size at one γ, as a dictionary from size to increasing columns.

        starts: Supports to improve; those with a unit that the search does not use are ignored.
        limits: Once a limit is reached, starts count as they are, and sizes without a support get
            one by forward selection.
        """
        known, ridge = self.sizes, gamma / 2.0
        known.gains[:], known.unused[:], known.size[:] = -np.inf, 0, 0
        known.kept[0], known.units.of["allowed"][:-1] = 1, 1
        known.goal[: self.least] = np.flatnonzero(known.units.of["kept"])
        enter_goal(known, ridge, self.least, 0)
        for window in self.windows:
            self._search_window(window, ridge, starts, limits)
        for k in np.flatnonzero(known.gains[: self.wanted[-1] + 1, 0] == -np.inf).tolist():
            if k > self.least:  # a limit was reached
                known.goal[: k - 1] = known.supports[k - 1, 0, : k - 1]
                known.goal[k - 1] = known.next_unit[k - 1, 0, 0]
                enter_goal(known, ridge, k, 0)
        return dict(zip(self.wanted, self._columns_of(known.supports[self.wanted, 0]), strict=True))

    def search(self, gamma: float, size: int, starts: Sequence[Support], limits: Limits) -> Support:
        """A support of one size at one γ, after exchanges until these fail.

        starts, limits: Those of :meth:`at`.
        """
        self.at(gamma, starts, limits)
        failed, number, ridge = 0, 1, gamma / 2.0
        while failed < MAX_FAILED_EXCHANGES and number < MAX_EXCHANGES:
            if limits.reached(0) is not None:
                break
            failed = exchange_one_size(self.sizes, ridge, size, number, failed)
            number += EXCHANGES
        return self._columns_of(self.sizes.supports[[size], 0])[0]

    def improved(self, gamma: float, start: Support) -> Support:
        """The best support known of a start's size, after swaps from the start.

        gamma: That of all calls so far.
        start: Its units are as many as one of the sizes.
        """
        size = self.rules.units(start).size
        if not self._enter(start, gamma / 2.0, self.least, size, MAX_SWAPS):
            return start
        return self._columns_of(self.sizes.supports[[size], 0])[0]

    def _enter(self, start: Support, ridge: float, low: int, high: int, swaps: int) -> bool:
        """Enter a start of more than ``low`` and at most ``high`` units, if all are searched."""
        units = self.rules.units(start)
        k, known = units.size, np.isin(units, self.units).all() and self.rules.allowed(start)
        if not (known and low < k <= high):
            return False
        self.sizes.goal[:k] = np.searchsorted(self.units, units)
        enter_goal(self.sizes, ridge, k, swaps)
        return True

    def _columns_of(self, supports: NDArray[np.int64]) -> list[Support]:
        """The problem's columns, increasing, of units of the search, one support in each row."""
        # A support ends by −1, which marks the last place of a row, where no unit is.
        inside = np.zeros((len(supports), self.units.size + 1), dtype=bool)
        inside[np.arange(len(supports))[:, None], supports] = True
        rows, places = np.nonzero(inside[:, self.unit])
        ends = np.searchsorted(rows, np.arange(len(supports) + 1)).tolist()
        return [self.columns[places[a:b]] for a, b in pairwise(ends)]

    def _search_window(
        self, window: Window, ridge: float, starts: Sequence[Support], limits: Limits
    ) -> None:
        """Search a window; the windows of smaller sizes have been searched before."""
        known, low, top = self.sizes, window.low, window.top
        known.kept[0], known.units.of["allowed"][:-1] = window.width, self.since <= top
        # What windows before have found beyond their own sizes is forgotten.
        known.gains[low + 1 :], known.unused[low + 1 :] = -np.inf, 0
        known.unused[low] = 0
        known.unused[low, : window.width, 0] = known.gains[low, : window.width] > -np.inf
        for start in starts:
            swaps = MAX_SWAPS if limits.reached(0) is None else 0
            self._enter(start, ridge, low, top, swaps)
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


def windows(
    least: int,
    largest_size: int,
    top: int,
    since: NDArray[np.intp],
    widths: NDArray[np.int64],
    single: bool,
) -> list[Window]:
    """The windows of the sizes least + 1..largest_size; none goes beyond ``top``.

    since, widths: The size from which on each unit may be in a support, and its number of columns.
    single: Whether all sizes are one window, of which one size is searched further.
    """
    found, low = list[Window](), least
    for number, high in enumerate([largest_size] if single else window_ends(largest_size)):
        if high <= low:
            continue
        whole = high == FIRST_WINDOW * 2**number
        beyond = min(high + LOOK_AHEAD, top) if whole else high
        m = int(widths[since <= beyond].sum())
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
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], Array, Array]:
    """The columns of the units among which supports of up to ``most`` units are searched.

    They are the units that are included or in ``starts``, those of about ``share`` columns that are
    most correlated with y, and at every size 1, 2, 4, 8, … those of the columns that are most
    correlated with the residual of forward selection among the columns so far. The gains of all
    p columns are thus computed once for every doubling of the size. After it the units suffice for
    twice the size and ``LOOK_AHEAD`` more. All units are searched where these are fewer than
    ``most``.

    Returns: The units, numbered as in ``constraints.left``, increasing; the size from which on each
        may be in a support; their columns C, by unit; X_CᵀX_C; and X_Cᵀy. Every product of two
        columns is computed once.
    """
    # Where rows are few, their Gram matrix costs less than a triangular factor of them.
    rules, left, head, y = (
        problem.constraints,
        problem.constraints.left,
        problem.data.X,
        problem.data.y,
    )
    m, widths, none = left.units.size, np.diff(left.first), np.empty(0, dtype=np.intp)

    def every_unit() -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], Array, Array]:
        within = np.asarray(head) if rules.plain else head[:, left.columns]
        since = np.zeros(m, dtype=np.intp)
        return np.arange(m), since, left.columns, within.T @ within, within.T @ y

    def columns_of(units: NDArray[np.intp]) -> NDArray[np.intp]:
        ends = np.cumsum(widths[units])
        places = np.repeat(left.first[units] - ends + widths[units], widths[units])
        return left.columns[places + np.arange(places.size)]

    def nearest(slopes: Array) -> NDArray[np.intp]:
        """All units, those with the column most correlated with a residual first."""
        worth = np.abs(slopes) / lengths
        if rules.bounded:
            worth[np.where(slopes > 0.0, rules.upper <= 0.0, rules.lower >= 0.0)] = 0.0
        by_unit = np.maximum.reduceat(worth[left.columns], left.first[:-1])
        return np.argsort(-by_unit, kind="stable")

    if left.columns.size <= share:
        return every_unit()
    lengths = np.maximum(np.sqrt(problem.squared_lengths), 1e-300)
    order = nearest(np.asarray(y @ head))
    first = order[: max(int(np.sum(np.cumsum(widths[order]) <= share)), 1)]
    given = left.place[rules.unit[np.concatenate([none, *starts])]]
    units = np.union1d(np.append(first, np.flatnonzero(left.include)), given[given >= 0])
    since = np.full(m, m)
    since[units] = 0
    columns = columns_of(units)
    within = head[:, columns]
    G, b = within.T @ within, within.T @ y
    size, ridge, step = 1, problem.gamma / 2.0, min(MAX_COLUMNS_OF_A_STEP, share)
    while units.size < m and size <= min(most, problem.rank_bound, b.size):
        order = complete_support(G, b, ridge, none, size)
        normal = G[np.ix_(order, order)] + ridge * np.eye(size)
        coef = np.linalg.lstsq(normal, b[order], rcond=None)[0]
        order = nearest(np.asarray((y - within[:, order] @ coef) @ head))
        number = max(int((since[order[:step]] == m).sum()), 2 * size + LOOK_AHEAD - units.size)
        new = np.sort(order[since[order] == m][:number])
        since[new], units = size, np.append(units, new)
        columns = np.append(columns, columns_of(new))
        more = head[:, columns[b.size :]]
        cross = within.T @ more
        G, b = np.block([[G, cross], [cross.T, more.T @ more]]), np.append(b, more.T @ y)
        within, size = np.hstack([within, more]), 2 * size
    if units.size < most:
        return every_unit()
    units, order = np.sort(units), np.argsort(left.place[rules.unit[columns]], kind="stable")
    return units, since[units], columns[order], G[np.ix_(order, order)], b[order]


def principal_directions(
    G: Array, b: Array, first: NDArray[np.int64]
) -> tuple[Array, Array, NDArray[np.int64]]:
    """The Gram matrix of each unit's principal directions in place of its columns.

    The penalty of a unit does not change. Directions without length go, as that of the indicators
    of all levels of a factor about their means; one direction of a unit stays in any case.

    G, b, first: Those of the columns; columns of unit u are first[u] … first[u+1] − 1.
    Returns: The same of the directions.
    """
    G, b, stay, ends = G.copy(), b.copy(), np.ones(b.size, dtype=bool), [0]
    for begin, end in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
        if end - begin > 1:
            squares, directions = np.linalg.eigh(G[begin:end, begin:end])
            G[:, begin:end] = G[:, begin:end] @ directions
            G[begin:end] = directions.T @ G[begin:end]
            b[begin:end] = directions.T @ b[begin:end]
            stay[begin : end - 1] = squares[:-1] > 1e-12 * squares[-1]
        ends.append(ends[-1] + int(stay[begin:end].sum()))
    return G[np.ix_(stay, stay)], b[stay], np.array(ends)


@by_reference()
class Sizes(NamedTuple):
    """The best supports of every size, and the arrays of one support, the current support.

    Supports are lists of units. ``most`` is the largest size, ``width`` the number of supports that
    are kept of every size. In arrays that end in 2, entry 0 is for the next larger size and entry 1
    for the next smaller size.
    """

    kept: Annotated[Ints, "1"]  # how many supports of a size are kept, at most ``width``
    supports: Ints  # (most + 1, width, most) by size and rank, ended by −1
    gains: Annotated[Array, "most+1 width"]  # gains of the supports, −∞ where there is none
    next_gain: Annotated[Array, "most+1 width 2"]  # with the next unit added, or removed
    next_unit: Annotated[Ints, "most+1 width 2"]  # the unit to add, and to remove
    unused: Annotated[NDArray[np.int8], "most+1 width 2"]  # 1 until the support has given the next
    # size's
    goal: Annotated[Ints, "most+1"]  # a support that the current support is to become
    mark: Annotated[NDArray[np.int8], "m"]  # marks of units, all 0 between two calls
    size: Annotated[Ints, "1"]  # number of units of the current support
    units: Units  # all units, and those of the current support
    current: Swaps  # the current support with its arrays


@kernel(inner=True)
def move_to(s, ridge, k):
    """Make ``goal[:k]`` the current support, by few updates or anew; returns the support's gain."""
    n, current, units, mark, goal = s.size[0], s.current, s.units, s.mark, s.goal
    columns = 0
    for a in range(k):
        mark[goal[a]] = 1
        columns += units.of[goal[a] + 1].first - units.of[goal[a]].first
    updates = columns
    for a in range(n):
        u = units.of[a].member
        updates += (1 - 2 * mark[u]) * (units.of[u + 1].first - units.of[u].first)
    s.size[0] = k
    # More updates cost more than to compute all anew. A column that is held at a bound other than 0
    # changes b. Rounding errors of b would stay, because ``attained_gain`` corrects β and c alone;
    # so all is computed anew where b is not as it was given.
    if n == 0 or 2.5 * updates > columns or moved_products(current, units):
        for a in range(k):
            mark[goal[a]], units.of[a].member = 0, goal[a]
        return recompute(current, units, ridge, k)
    for a in range(n - 1, -1, -1):
        u = units.of[a].member
        if mark[u] == 0:
            leave(current, units, n, a)
            n -= 1
        mark[u] = 0
    if n == k and units.now[0].bounded:
        settle(current, units, ridge, k)  # A unit that joins would do so.
    for a in range(k):
        if mark[goal[a]] == 1:
            mark[goal[a]] = 0
            n += 1
            join(current, units, ridge, n, goal[a])
    return attained_gain(current, units, ridge, k, -np.inf)


@kernel(inner=True)
def most_helpful(s, ridge, k):
    """The allowed unit that raises the current support's gain most, and by how much; −1: none."""
    current, units = s.current, s.units
    for a in range(k):
        s.mark[units.of[a].member] = 1
    if units.now[0].n_wide > 0:
        factor_units(current, units, ridge, k)
    best, which, c, bounded = 0.0, -1, current.c, units.now[0].bounded
    for j in range(c.shape[0]):
        length = max(current.d[j], 1e-12 * (current.G[j, j] + ridge))
        score = c[j] * c[j] / length
        if which >= 0 and score <= best:  # as most columns are; bounds only lower what one gains
            continue
        u = units.columns[j].unit
        alone = units.of[u + 1].first - units.of[u].first == 1
        if s.mark[u] == 1 or units.of[u].allowed != 1 or not alone:
            continue
        if bounded and length > 0.0:
            score = column_worth(c[j], length, units.columns[j].lower, units.columns[j].upper)
        if which < 0 or score > best:
            best, which = max(0.0, score), u
    for a in range(units.now[0].n_wide):
        u = units.of[a].wide
        if s.mark[u] == 0 and units.of[u].allowed == 1:
            score = wide_gain(current, units, ridge, c, 0, u, best)
            if which < 0 or score > best:
                best, which = max(0.0, score), u
    for a in range(k):
        s.mark[units.of[a].member] = 0
    return which, best


@kernel(inner=True)
def least_helpful(s, ridge, k):
    """The unit that lowers the current support's gain least, and by how much; −1 if none leaves."""
    current, units, least, which = s.current, s.units, np.inf, -1
    for i in range(k):
        u = units.of[i].member
        a = units.columns[units.of[u].first].place
        if units.of[u].kept == 1:
            continue
        if units.of[u + 1].first - units.of[u].first == 1 and a >= 0:
            loss = current.beta[a] * current.beta[a] / max(current.A[a, a], 1e-300)
        else:
            loss, _ = without(current, units, ridge, u)
        if loss < least:
            least, which = loss, u
    return which, least


@kernel(inner=True)
def improve_and_keep(s, ridge, k, gain, most):
    """Improve the current support by at most ``most`` swaps, and keep a result among the best.

    gain: That of the current support, which has k units.
    """
    gains, width = s.gains, s.kept[0]
    gain = swap_from(s.current, s.units, ridge, k, most, gain)
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
            s.next_unit[k, r, e] = s.next_unit[k, r - 1, e]
            s.unused[k, r, e] = s.unused[k, r - 1, e]
        for a in range(k):
            s.supports[k, r, a] = s.supports[k, r - 1, a]
    gains[k, rank] = gain
    for a in range(k):
        s.supports[k, rank, a] = s.units.of[a].member
    s.next_unit[k, rank, 0], more = most_helpful(s, ridge, k)
    s.next_unit[k, rank, 1], less = least_helpful(s, ridge, k)
    s.next_gain[k, rank, 0], s.next_gain[k, rank, 1] = gain + more, gain - less
    s.unused[k, rank, 0] = k + 1 < gains.shape[0] and s.next_unit[k, rank, 0] >= 0
    s.unused[k, rank, 1] = k > 1 and s.next_unit[k, rank, 1] >= 0


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

    way: 1 to add the unit that raises a support's gain most; −1 to remove the unit whose
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
                m, unit = 0, s.next_unit[before, rank, to]
                for a in range(before):
                    if s.supports[before, rank, a] != unit:
                        s.goal[m] = s.supports[before, rank, a]
                        m += 1
                if way > 0:
                    s.goal[m] = unit
                improve_and_keep(s, ridge, k, move_to(s, ridge, k), MAX_SWAPS)


@kernel(inner=True)
def may_leave(units, a):
    """Whether the member of number ``a`` may leave, and come back later."""
    u = units.of[a].member
    return units.of[u].allowed == 1 and units.of[u].kept == 0


@kernel
def exchange(s, ridge, yy, first, last, number):
    """Exchange members of supports of sizes whose objective is above the mean of the neighbours'.

    The members that leave may not come back until swaps of the other columns have ended. Every size
    has a support on entry. ``goal`` is work space: it takes the support, and then the members that
    have left.

    yy: yᵀy, or infinity where every size counts, whatever its objective.
    first, last: The sizes are first..last − 1.
    number: The round, which decides which members of which support leave.
    """
    current, units, width = s.current, s.units, s.kept[0]
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
        outside, inside, seed = -k, 0, number
        for u in range(s.mark.shape[0]):
            outside += units.of[u].allowed
        for a in range(k):
            inside += may_leave(units, a)
        # Of the units outside at least one is left to join for every member that leaves.
        leaving = min(1 + number % max(1, k // 2), outside, inside)
        for e in range(leaving):
            for _ in range(3):  # numbers that look random, by a linear congruence
                seed = (seed * 1103515245 + 12345) % 2147483648
            a = (seed // 1024) % k
            while not may_leave(units, a):
                a = (a + 1) % k
            s.goal[e] = units.of[a].member
            units.of[s.goal[e]].allowed = 0
            leave(current, units, k, a)
            which, _ = most_helpful(s, ridge, k - 1)
            join(current, units, ridge, k, which)
        gain = attained_gain(current, units, ridge, k, -np.inf)
        gain = swap_from(current, units, ridge, k, MAX_SWAPS, gain)
        for e in range(leaving):
            units.of[s.goal[e]].allowed = 1
        improve_and_keep(s, ridge, k, gain, MAX_SWAPS)


@kernel
def exchange_one_size(s, ridge, k, number, failed):
    """Exchange members of supports of one size ``EXCHANGES`` times, or until that fails too often.

    number: The round of the first exchange. failed: So many exchanges in a row have failed before.
    Returns: How many in a row have failed at the end.
    """
    for e in range(EXCHANGES):
        if failed < MAX_FAILED_EXCHANGES:
            before = s.gains[k, 0]
            exchange(s, ridge, np.inf, k, k + 1, number + e)
            failed = 0 if s.gains[k, 0] > before * (1.0 + SAME_SHARE) else failed + 1
    return failed
