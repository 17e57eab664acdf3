"""Good supports under constraints, without a proof: forward steps and swaps of whole units.

Every support is a function of the problem's data, γ and the starts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import EPS, Array, unit_worths

Support = NDArray[np.intp]


class StepSettings(NamedTuple):
    """Tuning numbers of forward steps and swaps of units: choices, as supports are only starts."""

    # Where coefficients have bounds, this many units that promise most are tried by a bounded fit.
    tried: int = 4
    # A support is left after this many swaps, though further swaps may improve it.
    swaps: int = 30
    # A swap drops one of this many units, those that add the least to the objective.
    dropped: int = 12
    # A swap is fitted unless what it is expected to leave is above the best known objective by this
    # share of yᵀy, for what rounding takes from the expectation.
    doubt: float = 1e-9


SETTINGS = StepSettings()


class Regressed(NamedTuple):
    """What the regression on a support S leaves of the columns, which become swaps of S's units.

    With H = XᵀX + γ/2 I, A is the inverse of H_SS up to rounding, P = A H_S and β = A b_S.

    place, shape (p,): Places of the columns in S, −1 outside S.
    columns: The columns of every unit.
    of_length: For every number k of columns, the units that have k columns, shape (m,), and their
        columns, shape (m, k).
    A, P, beta, shape (|S|, |S|), (|S|, p) and (|S|,): The arrays that the equations above define.
    c, shape (p,): b − HβS, which is what the columns have in common with the residual.
    left: For every entry of ``of_length`` its units' blocks of H − H_S'P, shape (m, k, k).
    """

    place: NDArray[np.intp]
    columns: Sequence[Support]
    of_length: Sequence[tuple[Support, Support]]
    A: Array
    P: Array
    beta: Array
    c: Array
    left: Sequence[Array]

    def rise(self, unit: int) -> float:
        """By how much the objective rises when a unit of S is dropped."""
        at = self.place[self.columns[unit]]
        return float(self.beta[at] @ np.linalg.solve(self.A[np.ix_(at, at)], self.beta[at]))

    def without(self, unit: int) -> Regressed:
        """What is left, in ``c`` and ``left`` alone, when a unit of S is dropped."""
        at = self.place[self.columns[unit]]
        P, A = self.P[at], self.A[np.ix_(at, at)]
        more, blocks = np.asarray(np.linalg.solve(A, P), dtype=np.float64), []
        for (_, columns), left in zip(self.of_length, self.left, strict=True):
            blocks.append(left + _products(P[:, columns], more[:, columns]))
        return self._replace(c=self.c + more.T @ self.beta[at], left=blocks)


def _products(first: Array, second: Array) -> Array:
    """For matrices F_u and S_u of shape (k, r), given as (r, m, k), the m products F_uS_u'."""
    if first.shape[2] == 1:
        return np.asarray(np.einsum("rm,rm->m", first[:, :, 0], second[:, :, 0])[:, None, None])
    return np.asarray(first.transpose(1, 2, 0) @ second.transpose(1, 0, 2))


class UnitSteps:
    """Forward steps and swaps of the units of one problem at its γ."""

    def __init__(self, problem: SparseRidgeProblem) -> None:
        self.problem, self.asked = problem, problem.constraints
        self.H, self.b = problem.G + 0.5 * problem.gamma * np.eye(problem.p), problem.b
        lengths = np.array([c.size for c in self.asked.columns])
        each = [np.flatnonzero(lengths == k) for k in np.unique(lengths)]
        self.of_length = [
            (units, np.stack([self.asked.columns[u] for u in units])) for units in each
        ]

    def regressed(self, support: Support) -> Regressed:
        """What the regression on a support leaves of the columns."""
        k, place = support.size, np.full(self.problem.p, -1)
        place[support] = np.arange(k)
        # The shift is what rounding may take from the least eigenvalue of columns of length 1.
        H, shift = self.H[np.ix_(support, support)], 1e-13 + 4.0 * EPS * k * k
        inverse = np.linalg.inv(np.linalg.cholesky(H + np.diag(shift * np.diag(H) + 1e-300)))
        V, w = inverse @ self.H[support], inverse @ self.b[support]
        left = [
            self.H[at[:, :, None], at[:, None, :]] - _products(V[:, at], V[:, at])
            for _, at in self.of_length
        ]
        return Regressed(
            place,
            self.asked.columns,
            self.of_length,
            inverse.T @ inverse,
            inverse.T @ V,
            inverse.T @ w,
            self.b - V.T @ w,
            left,
        )

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
        inside, promised = self.asked.least.copy(), None
        while wanted and int(inside.sum()) <= wanted[-1]:
            size = int(inside.sum())
            if size in wanted:
                options = [self.asked.columns_of(np.flatnonzero(inside))]
                options += [s for s in starts if self.asked.units(s).size == size]
                found[size] = options[0]
                if promised is None:
                    values = [self.problem.objective(s) for s in options]
                    best = options[int(np.argmin(values))]
                    found[size] = self.swapped(best, min(values), limits)
                    better = np.zeros_like(inside)
                    better[self.asked.units(found[size])] = True
                    inside = better
            if size == wanted[-1]:
                break
            if promised is None and limits.reached(0) is not None:
                promised = self.gains(inside)
            inside[self.best_addition(inside, promised, compared=promised is None)] = True
        return found

    def swapped(self, support: Support, value: float, limits: Limits) -> Support:
        """The support after swaps of one unit, each of which lowers the objective."""
        worse_by = SETTINGS.doubt * self.problem.yy
        for _ in range(SETTINGS.swaps):
            units, now = self.asked.units(support), self.regressed(support)
            best, improved = value, support
            for u, rise in self.cheapest(now, units):
                if limits.reached(0) is not None:
                    return improved
                rest = np.zeros(self.asked.n_units, dtype=bool)
                rest[units] = True
                rest[u] = False
                if not self.asked.allowed(self.asked.columns_of(np.flatnonzero(rest))):
                    continue
                gains = self.gains(rest) if self.asked.bounded else self.gains_of(now.without(u))
                added = self.best_addition(rest, gains, barred=u)
                if added < 0:
                    continue
                if not self.asked.bounded and value + rise - gains[added] > best + worse_by:
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

    def cheapest(self, now: Regressed, units: Support) -> list[tuple[int, float]]:
        """Units that may be dropped at the least rise of the objective, and the rises."""
        rises = [(now.rise(u), u) for u in units.tolist() if not self.asked.include[u]]
        return [(u, rise) for rise, u in sorted(rises)[: SETTINGS.dropped]]

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
        gains[inside | self.asked.exclude] = -1.0
        gains[[u for u in self.asked.parents if self.asked.lacks_parent(u, inside)]] = -1.0
        if barred >= 0:
            gains[barred] = -1.0
        best = int(np.argmax(gains))
        if gains[best] < 0.0 or not (self.asked.bounded and compared):
            return best if gains[best] >= 0.0 else -1
        values = {}
        for u in np.argsort(-gains, kind="stable")[: SETTINGS.tried].tolist():
            if gains[u] >= 0.0:
                with_u = inside.copy()
                with_u[u] = True
                values[u] = self.problem.objective(self.asked.columns_of(np.flatnonzero(with_u)))
        return int(min(values, key=lambda u: values[u]))

    def gains(self, inside: NDArray[np.bool_]) -> Array:
        """By how much each unit lowers the objective when it joins others, shape (m,).

        With bounds the gain is what the unit's columns promise one by one within their bounds.
        """
        support = self.asked.columns_of(np.flatnonzero(inside))
        now = self.regressed(support)
        if not self.asked.bounded:
            return self.gains_of(now)
        gains, coef = np.zeros(self.asked.n_units), np.zeros(self.problem.p)
        coef[support] = self.problem.fit(support).coef
        slope = self.b - self.H @ coef
        d = np.empty(self.problem.p)
        for (_, at), left in zip(self.of_length, now.left, strict=True):
            d[at] = np.diagonal(left, axis1=1, axis2=2)
        d = np.maximum(d, 1e-12 * np.diag(self.H) + 1e-300)
        unit_worths(self.asked.unit, slope, d, self.asked.lower, self.asked.upper, gains)
        return gains

    def gains_of(self, now: Regressed) -> Array:
        """The gains of :meth:`gains` without bounds, from what a regression leaves of the units."""
        gains = np.zeros(self.asked.n_units)
        for (units, at), left in zip(self.of_length, now.left, strict=True):
            c, least = now.c[at], 1e-12 * self.H[at, at] + 1e-300
            if at.shape[1] == 1:
                gains[units] = c[:, 0] ** 2 / np.maximum(left[:, 0, 0], least[:, 0])
            else:
                more = left + least[:, :, None] * np.eye(at.shape[1])
                gains[units] = (c * np.linalg.solve(more, c[:, :, None])[:, :, 0]).sum(axis=1)
        return gains
