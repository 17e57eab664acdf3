"""The best small supports of many columns: every support is looked at, in some ten nanoseconds.

At γ = 0 under constraints every support that obeys them is fitted, within signs and bounds. Where
all coefficients of a support have two bounds, weak duality gives a bound for any columns: with the
fit β, its residual r and slopes g = Xᵀr, no d that stays within the bounds has ‖r − Xd‖² below ‖r‖²
− 2gᵀd, and the largest gᵀd is a sum over columns. Rounding moves r and g by some (rows + columns +
8)·4u of |y| + Σ ℓ_i|β_i|. Supports of clearly independent columns have ``support_bound``. Nothing
is proved of other supports of dependent columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem, checked_sizes
from ..core.result import Answer, Status, Work
from ..core.rounding import SUM_SHARE, projection_loss, share_of_products, support_bound
from ..core.rows import DEPENDENT_SHARE, LOST_SHARE
from ..core.ties import ranking
from ..kernels.enumeration import every_support, visit
from ..kernels.linalg import TIE
from ..supports.rounding import pad_support


class Enumeration:
    """The best supports of some sizes, of which every one is visited; it goes on where it stopped.

    Where units count more than once, every support is visited that no further unit fits into.

    problem: Its τ is not used.
    starts: Supports; where they are good, most others are passed over by a rougher formula. Under
        constraints they are not used.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        sizes: NDArray[np.intp],
        starts: Sequence[NDArray[np.intp]] = (),
    ) -> None:
        self.problem, self.sizes, self.starts = problem, checked_sizes(problem, sizes), starts
        if problem.constraints.plain:
            self.search = _Enumerator(problem, int(self.sizes[-1]))
        else:
            self.models = [_ModelsOfSize(problem, size) for size in self.sizes.tolist()]

    def run(self, limits: Limits) -> list[Answer]:
        """Visit supports until none is left or a limit of time is reached; an answer per size."""
        if not self.problem.constraints.plain:
            return [each.run(limits) for each in self.models]
        return [self._best(size, limits) for size in self.sizes.tolist()]

    def _best(self, size: int, limits: Limits) -> Answer:
        """The best support of a size where no constraints are asked for.

        Once a limit is reached it is the best known support, with the bound 0; without any the
        first columns serve. The work is what was visited for all sizes so far.
        """
        problem, search = self.problem, self.search
        given = [start for start in self.starts if start.size == size]
        found, least, status = search.candidates(min(size, search.active.size), given, limits)
        options = [pad_support(s, size, problem.p) for s in found] or [np.arange(size)]
        fits = [problem.fit(s) for s in options]
        chosen = ranking(fits, options)[0]
        objective = fits[chosen].objective
        bound = min(least, objective) * (1.0 - SUM_SHARE)
        work = Work(search.visited, limits.elapsed())
        return _answer(problem, (size, options[chosen], objective), bound, status, work)


class _Enumerator:
    """The columns of a problem at unit length, and the supports of each size that are the best."""

    def __init__(self, problem: SparseRidgeProblem, most: int) -> None:
        self.problem = problem
        self.active = problem.data.active
        R = problem.factor(self.active, problem.given_gamma)
        lengths = np.linalg.norm(R[:, :-1], axis=0)
        lengths[lengths == 0.0] = 1.0
        self.columns, self.y = R[:, :-1] / lengths, np.ascontiguousarray(R[:, -1])
        self.off = 0.5 * problem.data.lost + projection_loss(problem.p, most)
        # The searches that were begun, by size, and the supports that each has started from.
        self.begun: dict[int, tuple[Any, list[NDArray[np.intp]]]] = {}

    @property
    def visited(self) -> int:
        """Supports visited so far."""
        return sum(int(work.now["visited"][0]) for work, _ in self.begun.values())

    def candidates(
        self, k: int, starts: list[NDArray[np.intp]], limits: Limits
    ) -> tuple[list[NDArray[np.intp]], float, Status]:
        """The starts and any better support, and a lower bound on the objective of all supports.

        One of the supports is the best of at most k columns, up to rounding. Where a limit is
        reached, the status says so, the bound is 0, and the best support may be missing. A search
        that goes on keeps the starts that it began with.
        """
        if k == 0:  # nothing explains y
            return [np.empty(0, dtype=np.intp)], self.problem.yy, Status.OPTIMAL
        if k not in self.begun:
            self.begun[k] = self._begin(k, starts), starts
        (work, starts), status = self.begun[k], Status.OPTIMAL
        while not visit(work, k, 2_000_000):  # some 20 ms between two looks at the clock
            reached = limits.reached(0)
            if reached is not None:
                status = reached
                break
        least = max(float(work.now["least_root"][0]), 0.0) ** 2
        found = [*starts, *([self.active[work.found[:k]]] if work.found[0] >= 0 else [])]
        if status is not Status.OPTIMAL:
            return found, 0.0, status
        # A support of dependent columns fits no better than its independent ones, which are fewer.
        if work.now["dependent_supports"][0] > 0:
            fewer, bound, status = self.candidates(k - 1, [], limits)
            return [*found, *fewer], min(least, bound), status
        return found, least, status

    def _begin(self, k: int, starts: list[NDArray[np.intp]]) -> Any:
        """The search of all supports of k columns, which knows the best of some of them."""
        share = DEPENDENT_SHARE if self.problem.given_gamma == 0.0 else LOST_SHARE
        work = every_support(self.columns, self.y, k, self.off, share)
        fits = [self.problem.fit(start) for start in starts]
        if fits:
            best = fits[ranking(fits, starts)[0]]
            work.now["objective"] = best.objective * (1.0 + TIE)
            work.now["gain"] = best.gain * (1.0 - TIE)
        return work


def _bound_in_box(problem: SparseRidgeProblem, support: NDArray[np.intp]) -> float:
    """A lower bound on the objective of a support whose coefficients all have two bounds.

    The bound is 0 where a coefficient lacks a bound. It holds for columns that depend on each
    other, exactly or nearly, and at the given γ: β may be any coefficients, such as those of a fit
    at a larger γ. With r = y − Xβ and low ≤ β + d ≤ high, ‖r − Xd‖² + (γ/2)‖β + d‖² ≥
    ‖r‖² + (γ/2)‖β‖² − 2 gᵀd, with the slopes g = Xᵀr − (γ/2)β. The largest 2 gᵀd within the bounds
    is a sum over columns. Rounding moves slopes by ``off`` and ‖r‖ by ``length``.
    """
    rules, data = problem.constraints, problem.data
    low, high = rules.lower[support], rules.upper[support]
    if not np.isfinite([low, high]).all():
        return 0.0
    X, ridge, coef = data.X[:, support], problem.given_gamma / 2.0, problem.fit(support).coef
    lengths = np.sqrt(data.squares[support])
    residual = data.y - X @ coef
    # No sum of products here has more than rows + columns terms. Columns are off by ``lost`` of
    # their lengths.
    share = share_of_products(sum(X.shape)) + data.lost
    length = share * (math.sqrt(data.yy) + float(np.abs(coef) @ lengths))
    slope, left = residual @ X - ridge * coef, float(np.linalg.norm(residual))
    off = lengths * (share * left + length) + share * ridge * np.abs(coef)
    worth = np.maximum((slope + off) * (high - coef), (slope - off) * (low - coef))
    least = max(left - length, 0.0) ** 2 + ridge * float(coef @ coef)
    # The squares and sums of these two lines lose at most 4 shares.
    return max(least * (1.0 - 4.0 * share) - 2.0 * float(worth.clip(0.0).sum()), 0.0)


class _ModelsOfSize:
    """The best support of a size under constraints, by a fit of every one.

    A further call of :meth:`run` goes on where a limit has ended the one before.
    The bound of a support is its objective, less what a fit within bounds lacks and what rounding
    may have added. It holds at the given γ, whatever γ other searches work with.
    """

    def __init__(self, problem: SparseRidgeProblem, size: int) -> None:
        rules = problem.constraints
        self.problem, self.size = problem, size
        self.left = rules.models(size)
        self.best, self.objective, self.bound = np.empty(0, dtype=np.intp), math.inf, math.inf
        self.visited = 0

    def run(self, limits: Limits) -> Answer:
        """Fit supports until none is left or a limit of time is reached."""
        problem, status = self.problem, Status.OPTIMAL
        for units in self.left:
            support = problem.constraints.columns_of(units)
            value = problem.objective(support)
            least = max(
                support_bound(problem, support, given_gamma=True), _bound_in_box(problem, support)
            )
            self.visited, self.bound = self.visited + 1, min(self.bound, least)
            if value < self.objective:
                self.best, self.objective = support, value
            reached = limits.reached(0)
            if reached is not None:
                status = reached
                break
        bound = min(self.bound, self.objective) if status is Status.OPTIMAL else 0.0
        work = Work(self.visited, limits.elapsed())
        return _answer(problem, (self.size, self.best, self.objective), bound, status, work)


def _answer(
    problem: SparseRidgeProblem,
    found: tuple[int, NDArray[np.intp], float],
    bound: float,
    status: Status,
    work: Work,
) -> Answer:
    """The answer with a bound, from which the rounding of the data is taken off.

    found: A size, its support, and the support's objective.
    """
    size, support, objective = found
    bound = max(bound - problem.data_loss(objective, size, given_gamma=True), 0.0)
    # Once every support is visited only rounding leaves a gap; a millionth counts as none.
    if status is Status.OPTIMAL and objective > max(problem.nothing_left, bound + 1e-6 * objective):
        status = Status.PRECISION
    return Answer(
        size=size,
        support=support,
        objective=objective,
        lower_bound=bound,
        status=status,
        work=work,
    )


def enumerated(
    problem: SparseRidgeProblem,
    sizes: NDArray[np.intp],
    starts: Sequence[NDArray[np.intp]],
    limits: Limits | None = None,
) -> list[Answer]:
    """Minimise ||y − Xβ||² + (γ/2)||β||² over every support of each size; an answer per size.

    problem: Its τ is not used.
    starts: Supports; where they are good, most others are passed over by a rougher formula.
    """
    return Enumeration(problem, sizes, starts).run(limits or Limits())
