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
from ..core.plan import FIRST_WINDOW, window_ends
from ..core.problem import SparseRidgeProblem, checked_sizes, checked_support
from ..core.threads import on_one_thread
from ..kernels.linalg import TIE
from .members import new_swaps, new_units
from .promising import LOOK_AHEAD, correlated_columns, principal_directions, promising_columns
from .rounding import Support
from .sizes import MAX_SWAPS, enter_goal, grow, new_sizes

# Each row (columns, work, width, rounds) is for windows of at most ``columns`` columns, and columns
# times largest size at most ``work``. Of every size ``width`` supports are kept, and members are
# exchanged in ``rounds`` rounds. The numbers are choices. More effort made paths of 120 and
# 200 columns twice as slow, for objectives that were .1 % lower.
EFFORTS = ((100, 2e3, 3, 3), (np.inf, 3e4, 1, 1), (np.inf, np.inf, 2, 0))
# The first number where a single size is wanted, whose support is the start of a proof: a choice.
MAX_COLUMNS_OF_ONE_SIZE = 2000
# Of one size three supports are kept, and exchanges end after this many failures in a row.
SINGLE_SIZE_WIDTH = 3
MAX_FAILED_EXCHANGES = 200
# They end after so many in any case, as rounding may let gains grow for ever: a choice.
MAX_EXCHANGES = 20_000
# So many exchanges of one size, some microseconds each, are made between two looks at the clock.
EXCHANGES = 20
# Of every six passes over the sizes of a window five extend supports, up and down in turn, and the
# last one exchanges members. The number is a choice.
PASSES = 6


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

    Raises
    ------
    ValueError
        A warm start that names columns outside 0..p−1, or a negative time limit.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, heuristic_support
    >>> problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
    >>> heuristic_support(problem)
    array([1, 2])
    """
    limits, tau = Limits(time_limit), problem.tau
    starts = [checked_support(problem.p, start) for start in warm_starts]
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
    whole : bool
        Whether the window has its full length, as it has in a search of larger sizes.
    width, rounds : int
        How many supports of a size are kept, and how many passes exchange members.
    chunk : int
        How many sizes are worked on between two looks at the clock.
    """

    low: int
    high: int
    top: int
    whole: bool
    width: int
    rounds: int
    chunk: int


class GrownUnits(NamedTuple):
    """Where a search goes on to larger sizes, as if it had not stopped after a window.

    Attributes
    ----------
    supports : ndarray of int, shape (r, size)
        The units of the supports that are kept of the window's last size, best first.
    current : ndarray of int, shape (k,)
        The units of the support that the search has looked at last. Like those of ``supports``
        they are in the order in which the search has them, by which members are exchanged.
    """

    supports: NDArray[np.intp]
    current: NDArray[np.intp]

    @property
    def size(self) -> int:
        """The last size that the search has grown supports of."""
        return int(self.supports.shape[1])


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
        widths = np.diff(first)
        kept = rules.left.include[places]
        self.windows = windows(self.least, self.wanted[-1], most, self.since, widths, single)
        width = max((one.width for one in self.windows), default=1)
        current = new_swaps(G, b, int(np.sort(widths)[::-1][: most + 1].sum()))
        self.sizes = new_sizes(current, new_units(first, kept, bounds, b), most, width)

    def at(self, gamma: float, starts: Sequence[Support], limits: Limits) -> dict[int, Support]:
        """One support of each size at one γ, as a dictionary from size to increasing columns.

        starts, limits: As of :meth:`find`.
        """
        self.find(gamma, starts, limits)
        found = self._columns_of(self.sizes.supports[self.wanted, 0])
        return dict(zip(self.wanted, found, strict=True))

    def table(self, most: int) -> NDArray[np.int64]:
        """One support of each size at the γ of the last search, shape (τ, most).

        A row has increasing columns, ended by −1.
        """
        rows, columns = self._members(self.sizes.supports[self.wanted, 0])
        found = np.full((len(self.wanted), most), -1, dtype=np.int64)
        first = np.searchsorted(rows, np.arange(len(self.wanted)))
        found[rows, np.arange(rows.size) - first[rows]] = columns
        return found

    def find(
        self,
        gamma: float,
        starts: Sequence[Support],
        limits: Limits,
        before: GrownUnits | None = None,
    ) -> None:
        """Search for one support of each wanted size at one γ.

        The supports that are found stand in ``sizes``, from where :meth:`table` takes the best of
        each size. Nothing there is left from the γ before.

        starts: Supports to improve; those with a unit that the search does not use are ignored.
        limits: Once a limit is reached, starts count as they are, and sizes without a support get
            one by forward selection.
        before: What a search of smaller sizes has :meth:`grown` at this γ. The search goes on from
            there, and finds supports of larger sizes only, if it uses the units of these supports.
        """
        known, ridge = self.sizes, gamma / 2.0
        known.gains[:], known.unused[:] = -np.inf, 0
        low = self.least if before is None else self._enter_grown(before, ridge)
        if low == self.least:
            known.units.of["allowed"][:-1] = 1
            known.goal[:low] = np.flatnonzero(known.units.of["kept"])
            self._set(kept=1, size=0)
            enter_goal(known, ridge, low, 0)
        for window in self.windows:
            if window.low >= low:
                self._search_window(window, ridge, starts, limits)
        last = self.wanted[-1]
        (missing,) = np.nonzero(known.gains[low : last + 1, 0] == -np.inf)
        if missing.size > 0:  # a limit was reached
            low = low + int(missing[0]) - 1
            self._set(low=low, top=last, passes=1, period=PASSES, step=0, swaps=0)
            grow(known, ridge, self.yy, last)

    def grown(self) -> GrownUnits | None:
        """Where a search of more sizes at the γ of the last search can go on; None if nowhere.

        A search of more sizes does the same as this one up to the end of the last window only if
        that window has its full length (``Window.whole``) and its largest size has a support.
        """
        known, size = self.sizes, self.wanted[-1]
        if not (self.windows and self.windows[-1].whole) or known.gains[size, 0] == -np.inf:
            return None
        rows = known.supports[size, known.gains[size] > -np.inf, :size]
        current = known.units.of["member"][: int(known.now["size"][0])]
        return GrownUnits(self.units[rows], self.units[current])

    def _enter_grown(self, before: GrownUnits, ridge: float) -> int:
        """Enter the supports that a search of smaller sizes has grown, in the order it had them.

        Returns: The size from which on to search: the size of these supports, or the least size of
            all if a unit of theirs is not searched or no wanted size is larger.
        """
        size, known = int(before.supports.shape[1]), self.sizes
        units = np.append(before.supports.ravel(), before.current)
        if size >= self.wanted[-1] or not np.isin(units, self.units).all():
            return self.least
        # The next unit of a support is one of those that its window has searched.
        known.units.of["allowed"][:-1] = self.since <= size + LOOK_AHEAD
        for support in (*before.supports, before.current):
            known.goal[: support.size] = np.searchsorted(self.units, support)
            self._set(kept=len(before.supports), size=0)
            enter_goal(known, ridge, support.size, 0)
        return size

    def search(self, gamma: float, size: int, starts: Sequence[Support], limits: Limits) -> Support:
        """The best support found of one size at one γ: that of :meth:`at`, and exchanges from it.

        Members are exchanged until ``MAX_FAILED_EXCHANGES`` in a row, counted in steps of
        ``EXCHANGES``, raise no gain, or until a limit is reached.

        size: One of the sizes of an object that was made with ``single``.
        starts, limits: Those of :meth:`at`.
        """
        self.at(gamma, starts, limits)
        # With a period of 1 every pass is the last of its period, which exchanges members. Step 0,
        # the pass number 1, belongs to :meth:`at`, so that other members are exchanged here. With
        # yᵀy = ∞ the kernel exchanges members of the size whatever its objective is.
        self._set(low=size - 1, top=size, passes=MAX_EXCHANGES, period=1, step=1)
        failed, ended = 0, False
        while not ended and failed < MAX_FAILED_EXCHANGES and limits.reached(0) is None:
            before = float(self.sizes.gains[size, 0])
            ended = grow(self.sizes, gamma / 2.0, np.inf, EXCHANGES)
            better = self.sizes.gains[size, 0] > before * (1.0 + TIE)
            failed = 0 if better else failed + EXCHANGES
        return self._columns_of(self.sizes.supports[[size], 0])[0]

    def improved(self, gamma: float, start: Support) -> Support:
        """The best support known of a start's size, after swaps from the start.

        A start is returned as it is if it has the included units alone, has a unit that the search
        does not use, or is not allowed by the constraints.

        gamma: That of all calls so far.
        start: Its units are as many as one of the sizes.
        """
        size = self.rules.units(start).size
        if not self._enter(start, gamma / 2.0, self.least, size, MAX_SWAPS):
            return start
        return self._columns_of(self.sizes.supports[[size], 0])[0]

    def _enter(self, start: Support, ridge: float, low: int, high: int, swaps: int) -> bool:
        """Enter a start of more than ``low`` and at most ``high`` units, after swaps.

        Returns: Whether it was entered, as it is if all its units are searched and the constraints
            allow it.
        """
        units = self.rules.units(start)
        k, known = units.size, np.isin(units, self.units).all() and self.rules.allowed(start)
        if not (known and low < k <= high):
            return False
        self.sizes.goal[:k] = np.searchsorted(self.units, units)
        enter_goal(self.sizes, ridge, k, swaps)
        return True

    def _set(self, **values: int) -> None:
        """Say how many supports of a size are kept, and which passes :func:`grow` makes."""
        for name, value in values.items():
            self.sizes.now[name] = value

    def _columns_of(self, supports: NDArray[np.int64]) -> list[Support]:
        """The problem's columns, increasing, of units of the search, one support in each row."""
        rows, columns = self._members(supports)
        ends = np.searchsorted(rows, np.arange(len(supports) + 1)).tolist()
        return [columns[a:b] for a, b in pairwise(ends)]

    def _members(self, supports: NDArray[np.int64]) -> tuple[NDArray[np.intp], Support]:
        """The columns of supports of the search.

        supports: Units of the search, one support in each row, ended by −1.
        Returns: For every column its row, and the column of the problem. Rows follow one another,
            and columns increase in each.
        """
        # A support ends by −1, which marks the last place of a row, where no unit is.
        inside = np.zeros((len(supports), self.units.size + 1), dtype=bool)
        inside[np.arange(len(supports))[:, None], supports] = True
        rows, places = np.nonzero(inside[:, self.unit])
        return rows, self.columns[places]

    def _search_window(
        self, window: Window, ridge: float, starts: Sequence[Support], limits: Limits
    ) -> None:
        """Search a window; the windows of smaller sizes have been searched before."""
        known, low, top = self.sizes, window.low, window.top
        known.units.of["allowed"][:-1] = self.since <= top
        self._set(kept=window.width, low=low, top=top, period=PASSES, step=0)
        self._set(passes=PASSES * (window.rounds + 1) - 1)
        # What windows before have found beyond their own sizes is forgotten.
        known.gains[low + 1 :], known.unused[low + 1 :] = -np.inf, 0
        known.unused[low] = 0
        known.unused[low, : window.width, 0] = known.gains[low, : window.width] > -np.inf
        for start in starts:
            swaps = MAX_SWAPS if limits.reached(0) is None else 0
            self._enter(start, ridge, low, top, swaps)
        self._set(swaps=MAX_SWAPS)
        ended = False
        while not ended and limits.reached(0) is None:
            ended = grow(known, ridge, self.yy, window.chunk)


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
        # A window that is cut short at the largest size looks at no larger sizes: a choice.
        whole = high == FIRST_WINDOW * 2**number
        beyond = min(high + LOOK_AHEAD, top) if whole else high
        m = int(widths[since <= beyond].sum())
        width, rounds = next(
            effort for most, work, *effort in EFFORTS if m <= most and m * high <= work
        )
        chunk = max(1, 1_000_000 // (m * high))
        width = SINGLE_SIZE_WIDTH if single else width
        found.append(Window(low, high, beyond, whole, width, rounds, chunk))
        low = high
    return found
