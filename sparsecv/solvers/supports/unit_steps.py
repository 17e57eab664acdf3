"""Good supports under constraints, without a proof: forward steps and swaps of whole units.

Every support is a function of the problem's data, γ and the starts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from ..kernels.worth import unit_worths

Support = NDArray[np.intp]


class StepSettings(NamedTuple):
    """Tuning numbers of forward steps and swaps of units: choices, as supports are only starts."""

    # Where coefficients have bounds, this many units that promise most are tried by a bounded fit.
    # Doubled, a step takes twice the time.
    tried: int = 4
    # A support is left after this many swaps, though further swaps may improve it. Doubled, a
    # search that still improves goes on for twice as long.
    swaps: int = 30
    # A swap drops one of this many units, those that add the least to the objective. Doubled, a
    # swap takes twice the time.
    dropped: int = 12


SETTINGS = StepSettings()


class UnitSteps:
    """Forward steps and swaps of the units of one problem at its γ."""

    def __init__(self, problem: SparseRidgeProblem) -> None:
        self.problem, self.asked = problem, problem.constraints
        self.H, self.b = problem.G + 0.5 * problem.gamma * np.eye(problem.p), problem.b
        self.single = np.array([c[0] if c.size == 1 else -1 for c in self.asked.columns])
        self.several = [u for u, c in enumerate(self.asked.columns) if c.size > 1]

    def supports(
        self, sizes: Iterable[int], starts: Sequence[Support] = (), limits: Limits | None = None
    ) -> dict[int, Support]:
        """A support of every size, a number of units, by forward steps and then swaps.

        starts: Allowed supports that may serve where they have a wanted size.
        limits: Where they are reached no more swaps are tried.
        """
        limits, wanted = limits or Limits(), sorted(set(sizes))
        found: dict[int, Support] = {}
        inside = self.asked.least.copy()
        while wanted and int(inside.sum()) <= wanted[-1]:
            size = int(inside.sum())
            if size in wanted:
                options = [self.asked.columns_of(np.flatnonzero(inside))]
                options += [s for s in starts if self.asked.units(s).size == size]
                values = [self.problem.objective(s) for s in options]
                best = options[int(np.argmin(values))]
                found[size] = self.swapped(best, min(values), limits)
                better = np.zeros_like(inside)
                better[self.asked.units(found[size])] = True
                inside = better
            if size == wanted[-1]:
                break
            inside[self.best_addition(inside)] = True
        return found

    def swapped(self, support: Support, value: float, limits: Limits) -> Support:
        """The support after swaps of one unit, each of which lowers the objective."""
        for _ in range(SETTINGS.swaps):
            units = self.asked.units(support)
            best, improved = value, support
            for u in self.cheapest(support, units):
                if limits.reached(0) is not None:
                    return improved
                rest = np.zeros(self.asked.n_units, dtype=bool)
                rest[units] = True
                rest[u] = False
                if not self.asked.allowed(self.asked.columns_of(np.flatnonzero(rest))):
                    continue
                added = self.best_addition(rest, barred=int(u))
                if added < 0:
                    continue
                rest[added] = True
                tried = self.asked.columns_of(np.flatnonzero(rest))
                objective = self.problem.objective(tried)
                if objective < best * (1.0 - 1e-10):
                    best, improved = objective, tried
            if improved is support:
                break
            support, value = improved, best
        return support

    def cheapest(self, support: Support, units: Support) -> list[int]:
        """The units of a support that may be dropped at the least rise of the objective."""
        A = np.linalg.pinv(self.H[np.ix_(support, support)], hermitian=True)
        beta, place = A @ self.b[support], np.full(self.problem.p, -1)
        place[support] = np.arange(support.size)
        rises = []
        for u in units.tolist():
            at = place[self.asked.columns[u]]
            rises.append(float(beta[at] @ np.linalg.lstsq(A[np.ix_(at, at)], beta[at])[0]))
        order = np.argsort(rises, kind="stable")
        droppable = [int(units[i]) for i in order if not self.asked.include[units[i]]]
        return droppable[: SETTINGS.dropped]

    def best_addition(self, inside: NDArray[np.bool_], barred: int = -1) -> int:
        """The unit that lowers the objective most among those that may join; −1 for none."""
        gains = self.gains(np.flatnonzero(inside[self.asked.unit]))
        for u in range(self.asked.n_units):
            shut = inside[u] or u == barred or self.asked.exclude[u]
            if shut or self.asked.lacks_parent(u, inside):
                gains[u] = -1.0
        best = int(np.argmax(gains))
        if gains[best] < 0.0 or not self.asked.bounded:
            return best if gains[best] >= 0.0 else -1
        values = {}
        for u in np.argsort(-gains, kind="stable")[: SETTINGS.tried].tolist():
            if gains[u] >= 0.0:
                with_u = inside.copy()
                with_u[u] = True
                values[u] = self.problem.objective(self.asked.columns_of(np.flatnonzero(with_u)))
        return int(min(values, key=lambda u: values[u]))

    def gains(self, support: Support) -> Array:
        """By how much each unit lowers the objective when it joins a support, shape (m,).

        With bounds the gain is what the unit's columns promise one by one within their bounds.
        """
        c, d, V = self.b.copy(), np.diag(self.H).copy(), np.zeros((0, self.problem.p))
        if support.size:
            H = self.H[np.ix_(support, support)]
            L = sla.cholesky(H + 1e-13 * np.diag(np.diag(H)) + 1e-300 * np.eye(support.size))
            V = sla.solve_triangular(L, self.H[support], trans="T")
            w = sla.solve_triangular(L, self.b[support], trans="T")
            c, d = c - V.T @ w, d - np.einsum("ij,ij->j", V, V)
        d, gains = np.maximum(d, 1e-12 * np.diag(self.H) + 1e-300), np.zeros(self.asked.n_units)
        if self.asked.bounded:
            coef = np.zeros(self.problem.p)
            coef[support] = self.problem.fit(support).coef
            slope = self.b - self.H @ coef
            unit_worths(self.asked.unit, slope, d, self.asked.lower, self.asked.upper, gains)
            return gains
        alone = self.single >= 0
        gains[alone] = c[self.single[alone]] ** 2 / d[self.single[alone]]
        for u in self.several:
            at = self.asked.columns[u]
            left = self.H[np.ix_(at, at)] - V[:, at].T @ V[:, at]
            left += 1e-12 * np.diag(np.diag(self.H)[at]) + 1e-300 * np.eye(at.size)
            gains[u] = c[at] @ np.linalg.solve(left, c[at])
        return gains
