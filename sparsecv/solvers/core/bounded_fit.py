"""Least squares with bounds on the coefficients, by an active set (Stark & Parker 1995), compiled.

The free coefficients are fitted with the others at their bounds. Where the fit leaves a bound, β
goes towards the fit as far as the bounds allow, and coefficients that are stopped stay there. Where
the fit is within the bounds, the coefficient whose column gains most is freed.

All numbers come from Householder's QR of the free columns F, so that they are exact for columns and
y that are off by some units of rounding of their lengths: there slopes of free coefficients are 0,
and the slope of another column is a product of what F leaves of the column and of y. That product
keeps its digits where the column is nearly in the span of F.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.fits import ridge_triangle
from ..kernels.linalg import EPS, Ints, add, allocated, dot, most_worth
from .rows import LOST_SHARE

Array = NDArray[np.float64]
# Share of the curvature of the objective that makes up for slopes that a fit has left, which are of
# the size of rounding errors; the rest bounds what dropping units adds. The value is a choice.
LACKING_SHARE = 1e-3
# How many roundings of a product of columns, at most, make up the error of a slope that is computed
# without what the free columns leave of the column. The value is a choice on the safe side.
ROUNDINGS = 100.0


@by_reference()
class BoundedFit(NamedTuple):
    """What fits within bounds read and write, for p columns of a triangular factor R of [X y]."""

    columns_of: Array  # (p+1, p+1) one column of R per row; the last row is work space
    y: Array  # (p+1,) the last column of R
    lengths: Array  # (p,) of the columns
    nothing: Array  # (p,) length up to which what other columns leave of a column counts as 0
    lower: Array  # (p,) bounds on the coefficients
    upper: Array  # (p,)
    coef: Annotated[Array, "p"]  # within the bounds
    fitted: Annotated[Array, "p"]  # the fit on the free columns
    free: Annotated[NDArray[np.int8], "p"]  # 1 for the free columns
    columns: NDArray[np.int64]  # (p,) the columns of the support at hand
    places: Annotated[Ints, "p"]  # the free columns among them
    triangle: Annotated[Array, "p+1 p+1"]
    work: Annotated[Array, "p+1 p+1"]
    left: Annotated[Array, "p+1"]  # what the free columns leave of another column


def new_bounded_fit(R: Array, lower: Array, upper: Array, share: float = LOST_SHARE) -> BoundedFit:
    """Allocate the arrays for the columns of a factor R (p + 1, p + 1), all of them at hand.

    What the columns leave of y, the last entry of R, is taken for 0. A column of which others leave
    at most ``share`` of its length counts as dependent on them.
    """
    lengths = np.sqrt(np.einsum("ij,ij->j", R[:, :-1], R[:, :-1]))
    return allocated(
        BoundedFit,
        {"p": lower.size},
        columns_of=np.ascontiguousarray(R.T),
        y=np.append(R[:-1, -1], 0.0),
        lengths=lengths,
        nothing=share * lengths,
        lower=lower,
        upper=upper,
        columns=np.arange(lower.size),
    )


@kernel(inner=True)
def fit_free(fit, m):
    """Fit the free columns among ``fit.columns[:m]``, others fixed at ``fit.coef``, to ``fitted``.

    A free column that depends on the others is fixed where its coefficient is, one in a round: once
    it is fixed, the next may be independent. ``places`` takes the free columns and ``triangle``
    their factor. Row c of ``work`` takes what the free columns before the c-th leave of it, and the
    row after those of the free columns takes what all of them leave of y.
    Returns: The number of free columns.
    """
    # Row p of ``columns_of`` is the response of the factor: y less what fixed columns fit of it.
    # The factor has its product with the free columns in column n, and a diagonal of at most 0.
    p, T = fit.coef.shape[0], fit.triangle
    no_ridge, triangular, untested = 0.0, True, 0.0
    y, dependent, n = fit.columns_of[p], True, 0
    while dependent:
        n, dependent = 0, False
        for a in range(p + 1):
            y[a] = fit.y[a]
        for a in range(m):
            i = fit.columns[a]
            if fit.free[i] == 1:
                fit.places[n] = i
                n += 1
            elif fit.coef[i] != 0.0:
                add(y, fit.columns_of[i], -fit.coef[i], i + 1)
        ridge_triangle(T, fit.columns_of, fit.places, n, no_ridge, triangular, fit.work, untested)
        for c in range(n):
            if not dependent and -T[c, c] <= fit.nothing[fit.places[c]]:
                fit.free[fit.places[c]], dependent = 0, True
    for a in range(n - 1, -1, -1):
        total = T[a, n]
        for c in range(a + 1, n):
            total -= T[a, c] * fit.fitted[fit.places[c]]
        fit.fitted[fit.places[a]] = total / T[a, a]
    return n


@kernel(inner=True)
def move_to_fit(fit, m):
    """Move ``fit.coef`` towards fits on its free columns until a fit is within the bounds.

    A coefficient that reaches its bound on the way stays there.
    Returns: The number of free columns, and whether any coefficient changed.
    """
    coef, fitted, changed = fit.coef, fit.fitted, False
    while True:
        n = fit_free(fit, m)
        step, stopped = 1.0, False
        for a in range(n):
            i = fit.places[a]
            if fitted[i] > fit.upper[i]:
                step = min(step, max((fit.upper[i] - coef[i]) / (fitted[i] - coef[i]), 0.0))
                stopped = True
            elif fitted[i] < fit.lower[i]:
                step = min(step, max((fit.lower[i] - coef[i]) / (fitted[i] - coef[i]), 0.0))
                stopped = True
        for a in range(n):
            i = fit.places[a]
            move, bound = fitted[i] - coef[i], min(max(fitted[i], fit.lower[i]), fit.upper[i])
            before = coef[i]
            if not stopped:
                coef[i] = fitted[i]
            elif bound != fitted[i] and max((bound - coef[i]) / move, 0.0) <= step:
                fit.free[i], coef[i] = 0, bound
            else:
                coef[i] = min(max(coef[i] + step * move, fit.lower[i]), fit.upper[i])
            changed = changed or coef[i] != before
        if not stopped:
            return n, changed


@kernel(inner=True)
def steepest(fit, m, n, refused, ridge, curvature):
    """Find the fixed column whose coefficient gains most once it is free.

    The arrays are those that ``fit_free`` leaves, with ``fit.coef`` its fit on n free columns:
    ``fit.work[c]`` is what the free columns before the c-th leave of it, which has the length
    |T_cc| in the factor ``fit.triangle``, and ``fit.work[n]`` is what all of them leave of y. A
    column gains g²/ℓ², where the free columns leave ℓ of its length, and g is its slope: the
    product of what they leave of the column and of y. ``fit.left`` is work space.

    m, n: The columns at hand are ``fit.columns[:m]``, and n of them are free.
    refused: A column that is not freed, or −1.
    ridge, curvature: Numbers that :func:`fit_inside` explains; the weights w_i are
        ``LACKING_SHARE`` times the larger of ridge and curvature·ℓ_i².
    Returns: The column, −1 where none gains more than rounding; and the most by which changes d_i
        of fixed coefficients within their bounds lower the loss, as far as the terms
        w_id_i² − 2 g_id_i tell.
    """
    rows, y, at, most, lacking = fit.y.shape[0], fit.work[n], -1, 0.0, 0.0
    length, size = np.sqrt(dot(y, y, rows)), np.sqrt(dot(fit.y, fit.y, rows))
    for a in range(m):
        size += abs(fit.coef[fit.columns[a]]) * fit.lengths[fit.columns[a]]
    for a in range(m):
        i = fit.columns[a]
        if fit.free[i] == 1:
            continue
        w = LACKING_SHARE * max(ridge, curvature * fit.lengths[i] ** 2)
        below, above = fit.lower[i] - fit.coef[i], fit.upper[i] - fit.coef[i]
        # What the free columns leave of y is orthogonal to them up to rounding, so that the slope
        # is the column's product with it. That tells a slope that clearly points out of the bounds.
        slope = dot(fit.columns_of[i], y, rows)
        clear = (rows + 8.0) * ROUNDINGS * EPS * fit.lengths[i] * size
        upwards, downwards = above > 0.0 and slope > -clear, below < 0.0 and slope < clear
        if w == 0.0 and not upwards and not downwards:
            continue
        for r in range(rows):
            fit.left[r] = fit.columns_of[i, r]
        for c in range(n):
            share = dot(fit.work[c], fit.left, rows) / fit.triangle[c, c] ** 2
            add(fit.left, fit.work[c], -share, rows)
        slope, left = dot(fit.left, y, rows), np.sqrt(dot(fit.left, fit.left, rows))
        # Columns that rounding has moved are what the fit is of, so that this product alone is
        # rounded: one rounding for every term, and eight to spare.
        off = (rows + 8.0) * EPS * left * length
        if w > 0.0:
            lacking += most_worth(slope, off, w, below, above)
        elif (above > 0.0 and slope >= -off) or (below < 0.0 and slope <= off):
            lacking = np.inf  # Without curvature nothing bounds what the column may gain.
        room = above > 0.0 if slope > 0.0 else below < 0.0
        independent = left > fit.nothing[i]
        if room and independent and i != refused and abs(slope) > most * left:
            at, most = i, abs(slope) / left
    # A slope up to this share of the terms that it is summed from is rounding: a choice.
    return at if most > 4.0 * EPS * size else -1, lacking


@kernel(inner=True)
def fit_inside(fit, m, ridge, curvature):
    """Fit ``fit.columns[:m]`` within the bounds on coefficients, from ``fit.coef`` on.

    Coefficients start within their bounds. Any others differ from those found by some d, and their
    objective by ‖Rd‖² − 2 slopeᵀd. Of ‖Rd‖² the share ``LACKING_SHARE`` is at least Σ w_id_i² / 2,
    and what the terms w_id_i² − 2 slope_id_i are at their least, the loss may lack to the least.
    The rest of ‖Rd‖² is left for what dropping units adds.

    ridge, curvature: Numbers with ‖Rd‖² ≥ ridge·Σ d_i² and ‖Rd‖² ≥ curvature·Σ ℓ_i²d_i², ℓ_i the
        lengths of columns. The weights w_i are the larger of the two, times the share.
    Returns: The loss, without what all columns leave of y (the square of the last entry of R), and
        a bound on what it exceeds the least loss within the bounds by.
    """
    for a in range(m):
        i = fit.columns[a]
        fit.free[i] = fit.lower[i] < fit.coef[i] < fit.upper[i]
    n, _ = move_to_fit(fit, m)
    at, lacking = steepest(fit, m, n, -1, ridge, curvature)
    # Every change of β lowers the objective, so that no active set comes back; the limit only ends
    # what rounding would let run in a circle.
    for _ in range(20 * m + 20):
        if at < 0:
            break
        fit.free[at] = 1
        n, changed = move_to_fit(fit, m)
        at, lacking = steepest(fit, m, n, -1 if changed else at, ridge, curvature)
    return dot(fit.work[n], fit.work[n], fit.y.shape[0]), lacking


@kernel
def fits_inside(fit, supports, outside, coef, loss, lacking, ridge, curvature):
    """Fit every row of ``supports`` that is marked in ``outside`` within the bounds.

    A fit starts from the last fit in the columns that both have. Most supports contain the support
    before, so that fewer columns are freed or fixed on the way. Between two fits ``fit.free`` marks
    the columns that the last fit has; its entries are 0 on entry and at the end.

    supports: (c, most), columns in each row, ended by −1.
    outside: (c,), 1 for the rows that are fitted.
    coef: (c, most), in the order of ``supports``: coefficients to start from where the last fit has
        none, and then the fits.
    loss: (c,), takes ‖y − Xβ‖² of these rows, less what all p columns of the factor leave of y.
    ridge, curvature: Numbers such that any change d of coefficients changes the fitted values by a
        vector of squared length at least ridge·Σ d_i², and at least curvature·Σ ℓ_i²d_i², with ℓ_i
        the lengths of columns.
    lacking: (c,), takes the most by which the loss of each of these rows exceeds the least loss
        within the bounds.
    """
    m, known, most = 0, fit.free, supports.shape[1]
    for c in range(supports.shape[0]):
        if outside[c] == 0:
            continue
        for a in range(m):
            known[fit.columns[a]] = 1
        for a in range(most):
            i = supports[c, a]
            if i >= 0 and known[i] == 0:
                fit.coef[i] = min(max(coef[c, a], fit.lower[i]), fit.upper[i])
        for a in range(m):
            known[fit.columns[a]] = 0
        m = 0
        while m < most and supports[c, m] >= 0:
            fit.columns[m] = supports[c, m]
            m += 1
        loss[c], lacking[c] = fit_inside(fit, m, ridge, curvature)
        for a in range(m):
            i = fit.columns[a]
            coef[c, a], known[i] = fit.coef[i], 0
