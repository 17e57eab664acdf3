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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem, checked_sizes
from ..core.threads import on_one_thread
from ..kernels.linalg import allocated
from .members import new_swaps, new_units
from .promising import LOOK_AHEAD, correlated_columns, principal_directions, promising_columns
from .rounding import Support
from .sizes import MAX_SWAPS, SAME_SHARE, Sizes, enter_goal, exchange, extend

# Each row (columns, work, width, rounds) is for windows of at most ``columns`` columns, and columns
# times largest size at most ``work``. Of every size ``width`` supports are kept, and ``rounds``
# rounds of :func:`exchange` follow. The numbers are choices. More effort made paths of 120 and
# 200 columns twice as slow, for objectives that were .1 % lower.
EFFORTS = ((100, 2e3, 3, 3), (np.inf, 3e4, 1, 1), (np.inf, np.inf, 2, 0))
# Sizes are searched in windows, 1..16, 17..32, 33..64 and so on. So a size's support is the same
# however many sizes are wanted, up to the end of its window. The number is a choice.
FIRST_WINDOW = 16
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
        last = self.wanted[-1]
        (missing,) = np.nonzero(known.gains[self.least : last + 1, 0] == -np.inf)
        if missing.size > 0:  # a limit was reached
            extend(known, ridge, self.yy, self.least + int(missing[0]), last + 1, 1, 0)
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
            before = float(self.sizes.gains[size, 0])
            exchange(self.sizes, ridge, np.inf, size, size + 1, number, EXCHANGES)
            better = self.sizes.gains[size, 0] > before * (1.0 + SAME_SHARE)
            failed, number = 0 if better else failed + EXCHANGES, number + EXCHANGES
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
                    exchange(known, ridge, self.yy, first, last, number, 1)
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
                    extend(known, ridge, self.yy, first, last, 1, MAX_SWAPS)
                else:
                    first, last = top + low - first, top + low - last
                    extend(known, ridge, self.yy, first, last, -1, MAX_SWAPS)


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
