"""Ridge fits on many supports by compiled code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels import fits
from ..kernels.linalg import Array
from .bounded_fit import fits_inside, new_bounded_fit
from .plan import TREE_ONLY
from .problem import SparseRidgeProblem


def quick_fits(
    problem: SparseRidgeProblem,
    gammas: Array,
    supports: NDArray[np.int64],
    coef: Array,
    objective: Array,
) -> None:
    """Fit supports by compiled code.

    Where that is not precise enough, the objective is NaN.

    coef, objective: Take the fits; the shapes are those of
        :func:`~sparsecv.solvers.ridge_fits.fit_supports`.
    """
    asked, given = problem.constraints, supports
    if problem.p <= TREE_ONLY:
        columns, triangular = problem.data.columns
        used = np.arange(problem.p)
    else:
        used, supports = placed_columns(supports, problem.p)
        if 2 * used.size > problem.p:  # One triangle of all columns serves every γ.
            base = problem.triangle[:, np.append(used, problem.p)]
        else:  # A triangle of the columns used has fewer rows.
            base = np.column_stack([problem.data.X[:, used], problem.data.y])
        if base.shape[0] > 2 * base.shape[1]:  # Many fits on few columns pay for one factorisation.
            base = np.asarray(np.linalg.qr(base, mode="r"))
        columns, triangular = np.ascontiguousarray(base.T), not np.tril(base, -1).any()
    most, rows = supports.shape[2], columns.shape[1]
    order = np.empty((3, max(most, 1)), dtype=np.int64)
    room = np.empty((most + 1, most + 1)), np.empty((most + 1, rows)), order
    surely = fits.LEAST_SINGULAR_VALUE_OF_QUICK_FITS
    without_ridge = max(surely, most * problem.data.dependent_share)
    for g, gamma in enumerate(gammas):
        least = surely if gamma > 0.0 else without_ridge
        found = coef[g], objective[g], room, least
        fits.ridge_fits(columns, gamma / 2.0, triangular, supports[g], *found)
    if not asked.bounded:
        return
    # The number −1, which ends a support, has no bounds.
    lower, upper = np.append(asked.lower, -np.inf), np.append(asked.upper, np.inf)
    outside = ((coef < lower[given]) | (coef > upper[given])).any(axis=2) & np.isfinite(objective)
    lower, upper, m = lower[used], upper[used], used.size
    R, work = np.empty((m + 1, m + 1)), np.empty((m + 1, rows))
    for g in np.flatnonzero(outside.any(axis=1)).tolist():
        # The factor of all columns serves every support at this γ.
        ridge = float(gammas[g]) / 2.0
        every = columns, np.arange(m), m, ridge, triangular
        if not fits.ridge_triangle(R, *every, work, 0.0):
            objective[g, outside[g]] = np.nan
            continue
        inside, loss = new_bounded_fit(R, lower, upper), np.zeros(objective.shape[1])
        fits_inside(inside, supports[g], outside[g].astype(np.int8), coef[g], loss)
        objective[g, outside[g]] = R[m, m] ** 2 + loss[outside[g]]


def placed_columns(
    supports: NDArray[np.int64], p: int
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The columns, of p, that some supports have, and the supports as places among these."""
    holds = np.zeros(p + 1, dtype=bool)
    holds[supports] = True  # The number −1, which ends a support, is the last place.
    used = np.flatnonzero(holds[:-1])
    place = np.full(holds.size, -1, dtype=np.int64)
    place[used] = np.arange(used.size)
    return used, place[supports]
