"""Small supports of many columns by looking at every one: some ten nanoseconds each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem, checked_sizes
from ..core.result import Proof, Status, Work, nothing_left
from ..core.rows import DEPENDENT_SHARE
from ..kernels.every_support import advance, new_enumeration
from ..kernels.linalg import EPS
from ..leaps.all_sizes import ranking
from ..supports.rounding import pad_support


class _Enumerator:
    """The columns of a problem at unit length, and the supports of one size that are the best."""

    def __init__(self, problem: SparseRidgeProblem, most: int, limits: Limits) -> None:
        self.problem, self.limits = problem, limits
        self.active = problem.data.active
        R = problem.factor(self.active, problem.given_gamma)
        lengths = np.linalg.norm(R[:, :-1], axis=0)
        lengths[lengths == 0.0] = 1.0
        self.columns, self.y = R[:, :-1] / lengths, np.ascontiguousarray(R[:, -1])
        # QR loses up to u for each row of a column, elimination and projection 16u for each pick
        self.off = 0.5 * problem.data.lost + EPS * (problem.p + 8.0 * (most + 2.0))
        self.status, self.visited = Status.OPTIMAL, 0

    def candidates(
        self, k: int, starts: list[NDArray[np.intp]]
    ) -> tuple[list[NDArray[np.intp]], float]:
        """The starts and any better support, and a lower bound on the objective of all supports.

        One of the supports is the best of at most k columns, up to rounding. Where a limit is
        reached, ``status`` says so, the bound is 0, and the best support may be missing.
        """
        if k == 0:  # nothing explains y
            return [np.empty(0, dtype=np.intp)], self.problem.yy
        work = new_enumeration(self.columns, self.y, k, self.off, DEPENDENT_SHARE)
        fits = [self.problem.fit(start) for start in starts]
        if fits:
            best = fits[ranking(fits, starts)[0]]
            work.now["objective"] = best.objective * (1.0 + 1e-12)
            work.now["gain"] = best.gain * (1.0 - 1e-12)
        while not advance(work, k, 2_000_000):  # some 20 ms between two looks at the clock
            reached = self.limits.reached(0)
            if reached is not None:
                self.status = reached
                break
        self.visited += int(work.now["visited"][0])
        least = max(float(work.now["least_root"][0]), 0.0) ** 2
        found = [*starts, *([self.active[work.found]] if work.found[0] >= 0 else [])]
        if self.status is not Status.OPTIMAL:
            return found, 0.0
        if work.now["dependent_supports"][0] > 0:  # they are worth what fewer columns are
            fewer, bound = self.candidates(k - 1, [])
            return [*found, *fewer], min(least, bound)
        return found, least


def enumerated(
    problem: SparseRidgeProblem,
    sizes: NDArray[np.intp],
    starts: Sequence[NDArray[np.intp]],
    limits: Limits | None = None,
) -> list[Proof]:
    """Minimise ||y − Xβ||² + (γ/2)||β||² over every support of each size; a proof per size.

    problem: Its τ is not used.
    starts: Supports; where they are good, most others are passed over by a rougher formula.
    """
    limits = limits or Limits()
    wanted = checked_sizes(problem, sizes)
    search = _Enumerator(problem, int(wanted[-1]), limits)
    proofs = []
    for size in wanted.tolist():
        given = [start for start in starts if start.size == size]
        found, least = search.candidates(min(size, search.active.size), given)
        options = [pad_support(s, size, problem.p) for s in found] or [np.arange(size)]
        fits = [problem.fit(s) for s in options]
        chosen = ranking(fits, options)[0]
        objective, status = fits[chosen].objective, search.status
        bound = min(least, objective) * (1.0 - 64.0 * EPS) - problem.data_loss(
            objective, size, True
        )
        bound = max(bound, 0.0)
        # Once every support is visited only rounding leaves a gap; a millionth counts as none.
        least_gap = max(nothing_left(problem.given_yy), bound + 1e-6 * objective)
        if status is Status.OPTIMAL and objective > least_gap:
            status = Status.PRECISION
        work = Work(search.visited, limits.elapsed())
        proofs.append(Proof(options[chosen], objective, bound, status, work))
    return proofs
