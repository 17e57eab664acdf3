"""Good supports without a proof: beam search, swaps of one and two, restarts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.threads import on_one_thread
from ..kernels.completion import completion_work
from ..kernels.linalg import Array
from .beam_kernels import pair_swap
from .greedy import complete_support, forward_order
from .rounding import largest
from .swaps import swap_search

WIDTH = 10  # supports the beam carries side by side
PAIR_COLUMNS = 300  # columns offered when two members are exchanged at once
SWAPS = 200  # of one column, at most, from a start
RESTARTS = 40  # without improvement before the search gives up
PROMISING = 5000  # columns beyond which the search is confined to the most promising ones

Support = NDArray[np.intp]


@on_one_thread
def heuristic_support(
    problem: SparseRidgeProblem,
    *,
    warm_starts: Sequence[Support] = (),
    width: int = WIDTH,
    time_limit: float | None = None,
) -> Support:
    """Search for a good support of τ columns; deterministic unless the time limit cuts it short.

    Forward selection, beam search and the warm starts are each improved by swaps of one column;
    the best goes on by swaps of two and by restarts that drop some of its columns and bar them
    from coming straight back.

    Parameters
    ----------
    problem : SparseRidgeProblem
    warm_starts : supports, optional
        Of at most τ columns.
    width : int
        Supports the beam search carries.
    time_limit : float, optional
        Seconds after which the best support so far is returned.

    Returns
    -------
    ndarray of intp, shape (τ,), increasing

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, heuristic_support
    >>> problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
    >>> heuristic_support(problem)
    array([1, 2])
    """
    limits = Limits(time_limit)
    p, tau, ridge = problem.p, problem.tau, problem.gamma / 2.0
    head, y = problem._base[:, :p], problem._base[:, p]
    order = forward_order(head, y, tau, problem.gamma)
    columns = promising_columns(head, y, np.concatenate([order, *warm_starts]))
    within = head[:, columns]
    search = LocalSearch(within.T @ within, within.T @ y, ridge, tau)
    starts = [np.searchsorted(columns, np.unique(start)) for start in [order, *warm_starts]]
    search.improve(starts, limits, width)
    return np.sort(columns[search.best])


def promising_columns(
    head: Array, y: Array, needed: NDArray[np.intp], most: int | None = None
) -> NDArray[np.intp]:
    """All columns, or the most correlated with y where a Gram matrix of all would be too large.

    head, y, shape (r, p) and (r,).
    needed: Columns that stay in any case.
    most: How many of the others do, at most; ``PROMISING`` by default.
    Returns: Increasing.
    """
    p, most = head.shape[1], PROMISING if most is None else most
    if p <= most:
        return np.arange(p)
    score = np.abs(head.T @ y) / np.maximum(np.sqrt(np.einsum("ij,ij->j", head, head)), 1e-300)
    return np.union1d(largest(score, most), needed)


def beam(
    G: Array, b: Array, ridge: float, tau: int, width: int = WIDTH, limits: Limits | None = None
) -> list[Support]:
    """Forward selection that carries the ``width`` best supports of every size.

    G, b, shape (p, p) and (p,).
    ridge: γ/2.
    Returns, list of supports of τ columns, best first; empty where limits are reached on the way.
    """
    p = b.size
    tau = min(tau, p)
    full = np.diag(G) + ridge
    supports = np.zeros((1, 0), dtype=np.intp)
    V = np.zeros((1, tau, p))
    c, d, gain = b[None].copy(), full[None].copy(), np.zeros(1)
    for level in range(tau):
        if limits is not None and limits.reached(0) is not None:
            return []
        score = gain[:, None] + c * c / np.maximum(d, 1e-12 * full)
        np.put_along_axis(score, supports, -np.inf, axis=1)
        parent, added = _distinct(score, supports, width)
        supports = np.concatenate([supports[parent], added[:, None]], axis=1)
        rows = np.arange(added.size)
        gain, V, c, d = score[parent, added], V[parent], c[parent], d[parent]
        length = np.sqrt(np.maximum(d[rows, added], 1e-12 * full[added]))
        taken = V[rows, :level, added]
        V[:, level] = (G[added] - np.einsum("sq,sqp->sp", taken, V[:, :level])) / length[:, None]
        c = c - V[:, level] * (c[rows, added] / length)[:, None]
        d = d - V[:, level] ** 2
    return [np.sort(s) for s in supports]


def _distinct(score: Array, supports: Support, width: int) -> tuple[Support, Support]:
    """The best (parent, column) pairs that lead to different supports, best first."""
    s, p = score.shape
    most = min(s * p, s * width + width)
    flat = np.argpartition(-score.ravel(), most - 1)[:most]
    flat = flat[np.argsort(-score.ravel()[flat], kind="stable")]
    seen: set[frozenset[int]] = set()
    chosen = []
    for k in flat:
        if not np.isfinite(score.flat[k]):
            break
        key = frozenset([*supports[k // p].tolist(), int(k % p)])
        if key not in seen:
            seen.add(key)
            chosen.append(k)
            if len(chosen) == width:
                break
    picked = np.array(chosen, dtype=np.intp)
    return picked // p, picked % p


class LocalSearch:
    """The best support so far on Gram matrices, and moves that improve it.

    G, b, shape (p, p) and (p,).
    ridge: γ/2.
    """

    def __init__(self, G: Array, b: Array, ridge: float, tau: int) -> None:
        self.G, self.b = np.ascontiguousarray(G), np.ascontiguousarray(b)
        self.ridge, self.tau, p = ridge, tau, b.size
        self.best, self.gain = np.arange(tau, dtype=np.int64), -np.inf
        self.anywhere = np.ones(p, dtype=np.int8)
        self.A, self.beta = np.empty((tau + 1, tau + 1)), np.empty(max(p, tau + 1))
        self.V, self.c, self.d = np.empty((tau + 1, p)), np.empty(p), np.empty(p)

    def enter(
        self, start: Support, allowed: NDArray[np.int8] | None = None, swaps: int = SWAPS
    ) -> bool:
        """Improve a start by swaps of one; whether it is the new best.

        start: Filled up or cut to τ columns.
        allowed, shape (p,), optional: 0 for columns that are not added at first.
        swaps: At most.
        """
        support = self._filled(start)
        gain = self._swaps(support, self.anywhere if allowed is None else allowed, swaps)
        if allowed is not None and gain < self.gain:
            gain = self._swaps(support, self.anywhere, swaps)
        if gain > self.gain * (1.0 + 1e-12):
            self.best, self.gain = np.sort(support), gain
            return True
        return False

    def improve(self, starts: Sequence[Support], limits: Limits, width: int = WIDTH) -> None:
        """Swaps from every start and from the beam, then pair swaps and restarts from the best.

        width: Of the beam.
        """
        for start in starts:  # none is lost where the time is up
            self.enter(start, swaps=SWAPS if limits.reached(0) is None else 0)
        for start in beam(self.G, self.b, self.ridge, self.tau, width, limits):
            if limits.reached(0) is None:
                self.enter(start)
        self.pairs(limits)
        self.restart(limits)

    def _filled(self, start: Support) -> NDArray[np.int64]:
        filled = complete_support(self.G, self.b, self.ridge, start, self.tau)
        return filled.astype(np.int64)

    def _swaps(self, support: NDArray[np.int64], allowed: NDArray[np.int8], most: int) -> float:
        work = (self.A, self.beta, self.V, self.c, self.d)
        found = swap_search(self.G, self.b, self.ridge, support, self.tau, allowed, *work, most)
        return float(found)

    def pairs(self, limits: Limits) -> None:
        """Exchange two members at once while that helps, among the most promising columns."""
        if self.tau < 2 or self.b.size < self.tau + 2:
            return
        p, tau = self.b.size, self.tau
        while True:
            offered = self._offered()
            work = (
                completion_work(tau, min(p, PAIR_COLUMNS + tau), 1),
                np.zeros(tau, dtype=np.int64),
                np.zeros(p, dtype=np.int64),
            )
            support, gain = self.best.copy(), self.gain
            for number in range(tau * (tau - 1) // 2):
                if limits.reached(0) is not None:
                    return
                new = pair_swap(
                    self.G, self.b, self.ridge, support, tau, gain, number, offered, work
                )
                if new > gain:
                    break
            else:
                return
            if not self.enter(support):
                return

    def _offered(self) -> NDArray[np.int8]:
        """Columns worth offering beside the members: those that would help most alone."""
        p = self.b.size
        offered = np.ones(p, dtype=np.int8)
        if p > PAIR_COLUMNS + self.tau:
            S = self.best
            inverse = np.linalg.inv(self.G[np.ix_(S, S)] + self.ridge * np.eye(self.tau))
            residual = self.b - self.G[:, S] @ (inverse @ self.b[S])
            left = np.diag(self.G) + self.ridge
            left = left - np.einsum("ij,ij->i", self.G[:, S] @ inverse, self.G[:, S])
            value = residual**2 / np.maximum(left, 1e-12 * np.diag(self.G) + 1e-300)
            value[S] = np.inf
            offered[:] = 0
            offered[largest(value, PAIR_COLUMNS + self.tau)] = 1
        return offered

    def restart(self, limits: Limits, most: int = RESTARTS) -> None:
        """Drop some members, bar them, refill and swap; until ``most`` in a row did not help."""
        if self.tau < 2 or self.b.size <= self.tau:
            return
        failed, number = 0, 0
        while failed < most and limits.reached(0) is None:
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
