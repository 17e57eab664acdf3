"""Ridge fits on many supports by compiled code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels import fits
from ..kernels.linalg import Array
from .bounded_fit import fits_inside, new_bounded_fit
from .problem import SparseRidgeProblem
from .subset_fit import least_curvature

# Up to so many columns of a table, all fits share one factor of all its columns. With more columns
# supports have few of them, and each set of supports gets a factor of its own. It is a choice.
MAX_COLUMNS_OF_ONE_FACTOR = 45


class FitTable(NamedTuple):
    """A factor of the columns that some supports have, and the supports as places in it.

    columns, shape (m + 1, rows): One column of the factor per row, y last.
    triangular: Whether all below the diagonal of the factor is 0.
    used, shape (m,): The columns of the problem.
    supports, shape (γ, τ, most): Places in ``used``, ended by −1.
    """

    columns: Array
    triangular: bool
    used: NDArray[np.intp]
    supports: NDArray[np.int64]


def fit_supports(
    problem: SparseRidgeProblem, gammas: Array, supports: NDArray[np.int64]
) -> tuple[Array, Array]:
    """Ridge fits on given supports at every γ, within the problem's bounds on coefficients.

    Supports that compiled code does not fit precisely enough are fitted by ``problem.fit``.

    problem: Its γ and τ are not used.
    gammas, shape (γ,).
    supports, shape (γ, τ, most): Increasing columns, ended by −1.
    Returns coef, shape (γ, τ, most): In the order of the supports, 0 beyond them.
    Returns objective, shape (γ, τ).
    """
    coef, objective = np.zeros(supports.shape), np.full(supports.shape[:2], np.nan)
    quick_fits(problem, gammas, supports, coef, objective)
    for g in np.flatnonzero(np.isnan(objective).any(axis=1)).tolist():
        at = problem.replace(gamma=float(gammas[g]))
        for t in np.flatnonzero(np.isnan(objective[g])).tolist():
            row = supports[g, t]
            fit = at.fit(row[row >= 0])
            coef[g, t, : fit.coef.size], objective[g, t] = fit.coef, fit.objective
    return coef, objective


def quick_fits(
    problem: SparseRidgeProblem,
    gammas: Array,
    supports: NDArray[np.int64],
    coef: Array,
    objective: Array,
    lacking: Array | None = None,
) -> None:
    """Ridge fits of supports, within the problem's bounds on coefficients, by compiled code.

    Where that is not precise enough, the objective is NaN.

    gammas, shape (γ,): Used in place of the problem's γ.
    supports, shape (γ, τ, most): Increasing columns, ended by −1.
    coef, objective, shape (γ, τ, most) and (γ, τ): Take the fits. Coefficients are in the order of
        the support, and stay as they are beyond its end.
    lacking, shape (γ, τ): Zeros on entry; takes the most by which the objective of a fit within
        bounds exceeds the least one. By default nobody asks for that, which saves its time.
    """
    for part, table in _tables(problem, supports):
        _fit(problem, table, gammas[part], coef[part], objective[part])
        if problem.constraints.bounded:
            of_part = None if lacking is None else lacking[part]
            given = supports[part], gammas[part], coef[part], objective[part], of_part
            _fit_within_bounds(problem, table, *given)


def _tables(
    problem: SparseRidgeProblem, supports: NDArray[np.int64]
) -> Iterator[tuple[slice, FitTable]]:
    """The tables that serve some γ each, and which γ they serve."""
    if problem.p <= MAX_COLUMNS_OF_ONE_FACTOR:
        yield slice(None), FitTable(*problem.data.columns, np.arange(problem.p), supports)
        return
    # The supports of a γ have few of the columns, and the γ that follow each other with the same
    # supports share a factor of these.
    changes = (supports[1:] != supports[:-1]).any(axis=(1, 2))
    for a, b in pairwise([0, *(np.flatnonzero(changes) + 1).tolist(), len(supports)]):
        used, placed = placed_columns(supports[a:b], problem.p)
        if 2 * used.size > problem.p:  # One triangle of all columns serves every γ.
            base = problem.triangle[:, np.append(used, problem.p)]
        else:  # A triangle of the columns used has fewer rows.
            base = np.column_stack([problem.data.X[:, used], problem.data.y])
        if base.shape[0] > 2 * base.shape[1]:  # Many fits on few columns pay for one factorisation.
            base = np.asarray(np.linalg.qr(base, mode="r"))
        triangular = not np.tril(base, -1).any()
        yield slice(a, b), FitTable(np.ascontiguousarray(base.T), triangular, used, placed)


def _room(table: FitTable, most: int) -> fits.FitRoom:
    """Work space for fits of at most so many columns of a table."""
    order = np.empty((3, max(most, 1)), dtype=np.int64)
    work = np.empty((most + 1, table.columns.shape[1]))
    return fits.FitRoom(np.empty((most + 1, most + 1)), work, order)


def _fit(
    problem: SparseRidgeProblem, table: FitTable, gammas: Array, coef: Array, objective: Array
) -> None:
    """Fit the supports of a table without bounds on coefficients."""
    most = table.supports.shape[2]
    room = _room(table, most)
    surely = fits.LEAST_SINGULAR_VALUE_OF_QUICK_FITS
    without_ridge = max(surely, most * problem.data.dependent_share)
    for g, gamma in enumerate(gammas):
        least = surely if gamma > 0.0 else without_ridge
        given = table.columns, gamma / 2.0, table.triangular, table.supports[g]
        fits.ridge_fits(*given, coef[g], objective[g], room, least)


def _fit_within_bounds(
    problem: SparseRidgeProblem,
    table: FitTable,
    given: NDArray[np.int64],
    gammas: Array,
    coef: Array,
    objective: Array,
    lacking: Array | None,
) -> None:
    """Fit again, within the problem's bounds, the supports whose ridge fits lie outside of them.

    given, shape (γ, τ, most): The table's supports, as columns of the problem, ended by −1.
    gammas, shape (γ,): The γ that the table serves.
    coef, objective, shape (γ, τ, most) and (γ, τ): Hold the ridge fits, and take the new ones. The
        objective of a support whose ridge fit lies outside the bounds becomes NaN where all columns
        of the table together have no fit at that γ.
    lacking: As :func:`quick_fits` takes it, for the γ of the table.
    """
    asked, m = problem.constraints, table.used.size
    # The number −1, which ends a support, has no bounds.
    lower, upper = np.append(asked.lower, -np.inf), np.append(asked.upper, np.inf)
    outside = ((coef < lower[given]) | (coef > upper[given])).any(axis=2) & np.isfinite(objective)
    lower, upper = lower[table.used], upper[table.used]
    room, every, ridge, curvature = _room(table, m), np.arange(m)[None], 0.0, 0.0
    R, of_all, value = room.R, np.empty((1, m)), np.empty(1)
    for g in np.flatnonzero(outside.any(axis=1)).tolist():
        # The factor of all columns, which the fit leaves in R, serves every support at this γ. It
        # holds the ridge, so that fits within the bounds add none. 1 is returned for a failed fit.
        whole = table.columns, float(gammas[g]) / 2.0, table.triangular, every
        if fits.ridge_fits(*whole, of_all, value, room, 0.0) > 0:
            objective[g, outside[g]] = np.nan
            continue
        inside, loss = new_bounded_fit(R, lower, upper), np.zeros(objective.shape[1])
        marked, off = outside[g].astype(np.int8), np.zeros(loss.size)
        if lacking is not None:
            ridge, curvature, off = whole[1], least_curvature(R[:m, :m]), lacking[g]
        fits_inside(inside, table.supports[g], marked, coef[g], loss, off, ridge, curvature)
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
