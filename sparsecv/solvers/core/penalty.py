"""Penalty factors as an invertible step: columns are scaled, unpenalised columns projected out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg as sla

from .constraints import Array, Index
from .independence import DEPENDENT_SHARE


class PenaltyStep(NamedTuple):
    """What penalty factors f make of rows of [X y]; the penalty of what is left is (γ/2)|β|².

    Column j becomes x_j/√f_j where f_j > 0. Columns with f_j = 0 are projected out of the others
    and of y, as the intercept is: for any β the best coefficients of those columns follow.

    p: Number of given columns.
    counted, free: Columns with f_j > 0, and with f_j = 0.
    roots, shape (counted,): √f_j.
    fitted, shape (free, counted + 1): Coefficients of the fit on the free columns of each column of
        the [X y] that is left, before it was divided by √f_j.
    lengths, shape (counted + 1,): Lengths of the columns x_j/√f_j and of y before the projection,
        over the least singular value of the free columns at unit length: the projection is off by
        rounding of these numbers.
    zero, shape (counted,): Columns of which the free columns leave at most ``DEPENDENT_SHARE`` of
        the length: they count as combinations of the free columns, and become 0.
    low, high, shape (counted,): Bounds on the given coefficients; None where there are none.
    """

    p: int
    counted: Index
    free: Index
    roots: Array
    fitted: Array
    lengths: Array
    zero: Index
    low: Array | None = None
    high: Array | None = None

    @classmethod
    def of(cls, rows: Array, factors: Array) -> PenaltyStep:
        """The step of training rows [X y], shape (n, p + 1), with factors (p,)."""
        p = factors.size
        counted, free = np.flatnonzero(factors > 0.0), np.flatnonzero(factors == 0.0)
        roots = np.sqrt(factors[counted])
        long = np.linalg.norm(rows[:, np.append(counted, p)], axis=0)
        scaled = long / np.append(roots, 1.0)
        if free.size == 0:
            nothing = np.zeros((0, counted.size + 1))
            return cls(p, counted, free, roots, nothing, scaled, np.zeros(0, dtype=np.intp))
        others, Z = rows[:, np.append(counted, p)], rows[:, free]
        lengths = np.linalg.norm(Z, axis=0)
        lengths[lengths == 0.0] = 1.0
        U, values, V = sla.svd(Z / lengths, full_matrices=False)
        kept = values > DEPENDENT_SHARE * values[0]
        basis = U[:, kept]
        along = basis.T @ others
        left = others - basis @ along
        along += basis.T @ left  # once more for the digits that the first step has lost
        left = others - basis @ along
        fitted = (V[kept].T @ (along / values[kept, None])) / lengths[:, None]
        short = np.linalg.norm(left, axis=0) <= DEPENDENT_SHARE * long
        scaled /= min(float(values[kept].min(initial=1.0)), 1.0)
        return cls(p, counted, free, roots, fitted, scaled, np.flatnonzero(short[:-1]))

    def apply(self, rows: Array) -> Array:
        """What the step makes of rows [X y], shape (m, p + 1), be they training rows or others."""
        left = rows[:, np.append(self.counted, self.p)]
        if self.free.size:
            left = left - rows[:, self.free] @ self.fitted
            left[:, self.zero] = 0.0
        left[:, :-1] /= self.roots
        return np.ascontiguousarray(left)

    def support(self, columns: Index) -> Index:
        """The given columns that stand for a support, with all that are not penalised."""
        return np.sort(np.append(self.counted[columns], self.free))

    def own(self, support: Index) -> Index:
        """The columns that are left, of a support of given columns."""
        return np.flatnonzero(np.isin(self.counted, support))

    def coefficients(self, beta: Array) -> Array:
        """Coefficients of the p given columns, from those of the columns that are left."""
        coef = np.zeros(self.p)
        # Rounding of the roots may not take a coefficient out of its bounds.
        coef[self.counted] = np.clip(beta / self.roots, self.low, self.high)
        coef[self.free] = self.fitted[:, -1] - self.fitted[:, :-1] @ coef[self.counted]
        return coef
