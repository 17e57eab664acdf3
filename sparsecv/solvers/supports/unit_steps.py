"""Good supports under constraints, without a proof: forward steps and swaps of whole units.

Every support is a function of the problem's data, γ and the starts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import EPS, Array, unit_worths

Support = NDArray[np.intp]


class UnitSteps:
    """Forward steps and swaps of the units of one problem at its γ.

    H is XᵀX + γ/2 I, and a regression on S has the coefficients H_SS⁻¹b_S. For every
    number k of columns, ``of_length`` has the units of k columns, shape (m,), and their columns,
    shape (m, k).
    """

    def __init__(self, problem: SparseRidgeProblem) -> None:
        self.problem, self.rules = problem, problem.constraints
        self.H, self.b = problem.G + 0.5 * problem.gamma * np.eye(problem.p), problem.b
        lengths = np.array([c.size for c in self.rules.columns])
        each = [np.flatnonzero(lengths == k) for k in np.unique(lengths)]
        self.of_length = [
            (units, np.stack([self.rules.columns[u] for u in units])) for units in each
        ]

    def supports(
        self, sizes: Iterable[int], starts: Sequence[Support] = (), limits: Limits | None = None
    ) -> dict[int, Support]:
        """A support of every size, a number of units, by forward steps and then swaps.

        starts: Allowed supports that may serve where they have a wanted size.
        limits: Where they are reached no more swaps are tried, and the units left join in the order
            of what each of them promised then.
        """
        limits, wanted = limits or Limits(), sorted(set(sizes))
        found: dict[int, Support] = {}
        inside, promised = self.rules.include.copy(), None
        while wanted and int(inside.sum()) <= wanted[-1]:
            size = int(inside.sum())
            if size in wanted:
                options = [self.columns(inside)]
                options += [s for s in starts if self.rules.units(s).size == size]
                found[size] = options[0]
                if promised is None:
                    values = [self.problem.objective(s) for s in options]
                    best = options[int(np.argmin(values))]
                    found[size] = self.swapped(best, min(values), limits)
                    better = np.zeros_like(inside)
                    better[self.rules.units(found[size])] = True
                    inside = better
            if size == wanted[-1]:
                break
            if promised is None and limits.reached(0) is not None:
                promised = self.gains(inside)
            inside[self.best_addition(inside, promised, compared=promised is None)] = True
        return found

    def swapped(self, support: Support, value: float, limits: Limits) -> Support:
        """The support after at most 30 swaps of one unit, each of which lowers the objective."""
        for _ in range(30):
            best, improved = value, support
            inside = np.zeros(self.rules.n_units, dtype=bool)
            inside[self.rules.units(support)] = True
            for u, rise in self.cheapest(support):
                if limits.reached(0) is not None:
                    return improved
                rest = inside.copy()
                rest[u] = False
                gains = self.gains(rest)
                added = self.best_addition(rest, gains, barred=u)
                # without bounds a swap leaves what is expected of it, but for rounding
                expected = -np.inf if self.rules.bounded else value + rise - gains[added]
                if added < 0 or expected > best + 1e-9 * self.problem.yy:
                    continue
                rest[added] = True
                tried = self.columns(rest)
                objective = self.problem.objective(tried)
                if objective < best * (1.0 - 1e-10):
                    best, improved = objective, tried
            if improved is support:
                break
            support, value = improved, best
        return support

    def columns(self, inside: NDArray[np.bool_]) -> Support:
        """The columns of the units that are marked in ``inside``."""
        return self.rules.columns_of(np.flatnonzero(inside))

    def inverse_factor(self, support: Support) -> Array:
        """The inverse of the Cholesky factor of H_SS."""
        k, H = support.size, self.H[np.ix_(support, support)]
        # The shift is what rounding may take from the least eigenvalue of columns of length 1.
        shift = 1e-13 + 4.0 * EPS * k * k
        inverse = np.linalg.inv(np.linalg.cholesky(H + np.diag(shift * np.diag(H) + 1e-300)))
        return np.asarray(inverse)

    def cheapest(self, support: Support) -> list[tuple[int, float]]:
        """The 12 units that may be dropped at the least rise of the objective, and the rises."""
        inverse, place = self.inverse_factor(support), np.full(self.problem.p, -1)
        A, beta = inverse.T @ inverse, inverse.T @ (inverse @ self.b[support])
        place[support], rises = np.arange(support.size), []
        for u in self.rules.units(support).tolist():
            if not self.rules.include[u]:
                at = place[self.rules.columns[u]]
                rises.append((float(beta[at] @ np.linalg.solve(A[np.ix_(at, at)], beta[at])), u))
        return [(u, rise) for rise, u in sorted(rises)[:12]]

    def best_addition(
        self,
        inside: NDArray[np.bool_],
        gains: Array | None = None,
        barred: int = -1,
        compared: bool = True,
    ) -> int:
        """The unit that lowers the objective most among those that may join; −1 for none.

        gains, shape (m,): Those of :meth:`gains`, which are computed where they are not given.
        compared: With bounds, whether the units of largest gains are compared by fits.
        """
        gains = self.gains(inside) if gains is None else gains.copy()
        gains[inside | self.rules.exclude] = -1.0
        if barred >= 0:
            gains[barred] = -1.0
        best = int(np.argmax(gains))
        if gains[best] < 0.0 or not (self.rules.bounded and compared):
            return best if gains[best] >= 0.0 else -1
        values = {}
        for u in np.argsort(-gains, kind="stable")[:4].tolist():
            if gains[u] >= 0.0:
                with_u = inside.copy()
                with_u[u] = True
                values[u] = self.problem.objective(self.columns(with_u))
        return int(min(values, key=lambda u: values[u]))

    def gains(self, inside: NDArray[np.bool_]) -> Array:
        """By how much each unit lowers the objective when it joins others, shape (m,).

        With bounds the gain is what the unit's columns promise one by one within their bounds.
        """
        support, gains = self.columns(inside), np.zeros(self.rules.n_units)
        inverse = self.inverse_factor(support)
        V = inverse @ self.H[support]
        slope, least = self.b - V.T @ (inverse @ self.b[support]), 1e-12 * np.diag(self.H) + 1e-300
        if self.rules.bounded:
            coef = np.zeros(self.problem.p)
            coef[support] = self.problem.fit(support).coef
            left = np.maximum(np.diag(self.H) - np.einsum("sj,sj->j", V, V), least)
            lower, upper = self.rules.lower, self.rules.upper
            unit_worths(self.rules.unit, self.b - self.H @ coef, left, lower, upper, gains)
            return gains
        for units, at in self.of_length:
            c, within = slope[at], V[:, at]
            # the block of every unit that regression on the support leaves
            left = self.H[at[:, :, None], at[:, None, :]]
            left = left - within.transpose(1, 2, 0) @ within.transpose(1, 0, 2)
            left += least[at][:, :, None] * np.eye(at.shape[1])
            gains[units] = (c * np.linalg.solve(left, c[:, :, None])[:, :, 0]).sum(axis=1)
        # No unit raises the objective. A negative gain comes from rounding, where the columns of a
        # unit nearly depend on those of the support.
        return np.maximum(gains, 0.0)
