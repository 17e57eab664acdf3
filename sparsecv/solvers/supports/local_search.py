"""Search for a good support, without a proof: swaps of one and two columns, and restarts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.threads import on_one_thread
from ..kernels.completion import completion_work
from ..kernels.linalg import Array
from .greedy import complete_support, forward_order
from .rounding import largest
from .swaps import new_swaps, pair_swap, recompute, swap_search

Support = NDArray[np.intp]


# A support that is found here is a start for a proof, so all of these numbers are choices.
#
# When two members are exchanged at once, at most so many columns outside the support may come in:
# those that would raise the gain most.
PAIR_COLUMNS = 300
# Swaps from one start end after so many exchanges of one member.
MAX_SWAPS = 200
# The search ends after so many restarts in a row that find no better support.
MAX_FAILED_RESTARTS = 40
# Problems of more columns are searched on so many columns, those most correlated with y. Their Gram
# matrix takes 200 MB.
MAX_PROMISING_COLUMNS = 5000


@on_one_thread
def heuristic_support(
    problem: SparseRidgeProblem,
    *,
    warm_starts: Sequence[Support] = (),
    time_limit: float | None = None,
) -> Support:
    """Search for a good support of τ columns, the same in every run that no time limit ends.

    The support of forward selection and the warm starts are improved by swaps of one column. The
    best support is improved further by swaps of two columns, and by restarts that remove some of
    its columns and forbid these to come back at once.

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
    limits = Limits(time_limit)
    p, tau, ridge = problem.p, problem.tau, problem.gamma / 2.0
    head, y = problem.triangle[:, :p], problem.triangle[:, p]
    order = forward_order(head, y, tau, problem.gamma)
    columns = promising_columns(head, y, np.concatenate([order, *warm_starts]))
    within = head[:, columns]
    search = LocalSearch(within.T @ within, within.T @ y, ridge, tau)
    starts = [np.searchsorted(columns, np.unique(start)) for start in [order, *warm_starts]]
    search.improve(starts, limits)
    return np.sort(columns[search.best])


def promising_columns(
    head: Array, y: Array, needed: NDArray[np.intp], most: int | None = None
) -> NDArray[np.intp]:
    """All columns, increasing; or of more than ``most`` those most correlated with y.

    head, y: Columns of X (r, p) and y (r,).
    needed: Columns that are always among the result.
    most: By default ``MAX_PROMISING_COLUMNS``.
    """
    p, most = head.shape[1], MAX_PROMISING_COLUMNS if most is None else most
    if p <= most:
        return np.arange(p)
    score = np.abs(head.T @ y) / np.maximum(np.sqrt(np.einsum("ij,ij->j", head, head)), 1e-300)
    return np.union1d(largest(score, most), needed)


class LocalSearch:
    """The best support of τ columns so far, its gain, and moves that improve the support.

    G, b: XᵀX (p, p) and Xᵀy (p,).
    ridge: γ/2.
    """

    def __init__(self, G: Array, b: Array, ridge: float, tau: int) -> None:
        self.swaps, self.ridge, self.tau = new_swaps(G, b, tau), ridge, tau
        self.G, self.b = self.swaps.G, self.swaps.b
        self.best, self.gain = np.arange(tau, dtype=np.int64), -np.inf
        self.anywhere = np.ones(b.size, dtype=np.int8)

    def enter(
        self, start: Support, allowed: NDArray[np.int8] | None = None, swaps: int = MAX_SWAPS
    ) -> bool:
        """Improve a start by at most ``swaps`` single swaps; whether the result is the new best.

        start: A support, which is filled up or cut to τ columns.
        allowed: (p,), 0 for columns that may come in only after the other columns were tried.
        """
        support = self.swaps.support
        support[:] = complete_support(self.G, self.b, self.ridge, start, self.tau)
        first = self.anywhere if allowed is None else allowed
        gain = float(swap_search(self.swaps, self.ridge, self.tau, first, swaps))
        if allowed is not None and gain < self.gain:
            gain = float(swap_search(self.swaps, self.ridge, self.tau, self.anywhere, swaps))
        # Gains are negative where double precision has lost every digit of a dependent support.
        if gain - self.gain > 1e-12 * abs(gain):
            self.best, self.gain = np.sort(support), gain
            return True
        return False

    def improve(self, starts: Sequence[Support], limits: Limits) -> None:
        """Swaps from every start, then pair swaps and restarts from the best support."""
        for start in starts:  # without time left, a start counts as it is
            self.enter(start, swaps=MAX_SWAPS if limits.reached(0) is None else 0)
        self.pairs(limits)
        self.restart(limits)

    def pairs(self, limits: Limits) -> None:
        """Exchange two members of the best support at once, until no exchange raises the gain."""
        if self.tau < 2 or self.b.size < self.tau + 2:
            return
        p, tau = self.b.size, self.tau
        while True:
            offered = self._offered()
            completion = completion_work(tau, int(offered.sum()), 1)
            work = (completion, np.zeros(tau, dtype=np.int64), np.zeros(p, dtype=np.int64))
            support, gain = self.best.copy(), self.gain
            for number in range(tau * (tau - 1) // 2):
                if limits.reached(0) is not None:
                    return
                new = pair_swap(self.G, self.b, self.ridge, support, gain, number, offered, work)
                if new > gain:
                    break
            else:
                return
            if not self.enter(support):
                return

    def _offered(self) -> NDArray[np.int8]:
        """Which columns :meth:`pairs` may use: an array (p,) of 0 and 1.

        These are the members of the best support, and the columns that would each raise the gain
        most when added to the support.
        """
        s, full = self.swaps, np.diag(self.G) + self.ridge
        s.support[:] = self.best
        recompute(s, self.ridge, self.tau)
        with np.errstate(over="ignore"):  # columns that depend on the support at γ = 0
            value = s.c**2 / np.maximum(s.d, 1e-12 * full)
        value[self.best] = np.inf
        offered = np.zeros(self.b.size, dtype=np.int8)
        offered[largest(value, PAIR_COLUMNS + self.tau)] = 1
        return offered

    def restart(self, limits: Limits) -> None:
        """Replace some members of the best support by forward selection, and improve the result.

        The removed members may come back only after swaps among the other columns. Restarts end
        where ``MAX_FAILED_RESTARTS`` in a row have found no better support.
        """
        if self.tau < 2 or self.b.size <= self.tau:
            return
        failed, number = 0, 0
        while failed < MAX_FAILED_RESTARTS and limits.reached(0) is None:
            number += 1
            count = 1 + number % max(1, self.tau // 2)
            first = (number * 7) % self.tau
            which = (first + np.arange(count) * max(1, self.tau // count)) % self.tau
            dropped = np.unique(self.best[which])
            if dropped.size > self.b.size - self.tau:
                failed += 1
                continue
            kept = np.setdiff1d(self.best, dropped)
            allowed = self.anywhere.copy()
            allowed[dropped] = 0
            start = complete_support(self.G, self.b, self.ridge, kept, self.tau, dropped)
            if self.enter(start, allowed):
                self.pairs(limits)
                failed = 0
            else:
                failed += 1
