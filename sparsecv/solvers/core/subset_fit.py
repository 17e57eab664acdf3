"""Ridge fits on a support, from the rows of [X y]: by QR, of least norm, and within bounds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla

from ..kernels.fits import independent
from .bounded_fit import fit_inside, new_bounded_fit
from .rows import DEPENDENT_SHARE, Array, Index, Rows, triangle_of


class SubsetFit(NamedTuple):
    """Ridge fit on one support.

    ``gain`` = yᵀy − objective. The objective and the gain are each computed as a sum of squares and
    not as a difference; two supports are compared by the smaller of the two, which has more digits.
    ``lacking`` bounds what the objective of a fit within bounds exceeds the optimum by, which is
    0 but for slopes of the size of rounding errors.
    """

    coef: Array
    objective: float
    gain: float
    lacking: float = 0.0


def ridge_fit(
    data: Rows, columns: Index, ridge: float, bounds: tuple[Array, Array] | None = None
) -> SubsetFit:
    """The fit of least ‖y − X_Sβ‖² + ridge ‖β‖² on some columns S, of least norm if there are more.

    The fit comes from QR of [X_S; √ridge I], and from singular values where columns may depend on
    each other and the ridge is too small. A pivot of QR does not tell: rounding leaves a column
    that depends on others more than 1e-13 of its length where its coefficients on them are large.

    data: The table [X y]. Its ``dependent_share`` is the share of the largest singular value,
        columns at length 1, up to which a singular value of X counts as 0.
    columns: The s columns S, distinct positions among those of X.
    ridge: γ/2 ≥ 0.
    bounds: The least and the greatest coefficient of every column, shape (s,) each.
    Returns: The fit, with s coefficients in the order of ``columns``.
    """
    # With a ridge no column depends on others, whatever the data are off by: a singular value
    # counts as 0 only where the fit itself loses its digits.
    s, share = columns.size, data.dependent_share if ridge == 0.0 else DEPENDENT_SHARE
    R = augmented_triangle(data, columns, ridge)
    # The largest singular value is at most √s, so that s·share is at least the share of it.
    if not independent(R, s, s * share):
        fit = least_norm_fit(R[:, :s], R[:, s], share)
    else:
        coef, _ = sla.lapack.dtrtrs(R[:s, :s], R[:s, s])
        fit = SubsetFit(coef, float(R[s, s] ** 2), float(R[:s, s] @ R[:s, s]))
    return fit if bounds is None else fit_within(R, ridge, fit, bounds)


def least_norm_fit(X: Array, y: Array, share: float) -> SubsetFit:
    """The fit of least ‖β‖ among those of least ‖y − Xβ‖², by singular values.

    share: With columns scaled to length 1, singular values up to this share of the largest count
        as 0.
    """
    lengths = np.linalg.norm(X, axis=0)
    lengths[lengths == 0.0] = 1.0
    U, values, V = sla.svd(X / lengths, full_matrices=False)
    rank = int(np.sum(values > share * values[0]))
    along = U[:, :rank].T @ y
    coef = (V[:rank].T @ (along / values[:rank])) / lengths
    if rank < lengths.size:  # Any combination of these columns of ``null`` leaves Xβ as it is.
        null = V[rank:].T / lengths[:, None]
        coef -= null @ np.linalg.lstsq(null, coef, rcond=None)[0]
    residual = y - X @ coef
    return SubsetFit(coef, float(residual @ residual), float(along @ along))


def fit_within(R: Array, ridge: float, fit: SubsetFit, bounds: tuple[Array, Array]) -> SubsetFit:
    """The fit within bounds on the coefficients; ``fit``, the ridge fit, where it is within them.

    R, shape (s + 1, s + 1): What :func:`augmented_triangle` gives.
    bounds: The least and the greatest coefficient of every column, shape (s,) each.
    """
    low, high = bounds
    if (low <= fit.coef).all() and (fit.coef <= high).all():
        return fit
    s = fit.coef.size
    # The least eigenvalue of the Gram matrix at unit length is at least 1 over the sum; half of it
    # is taken.
    curvature = 0.5 / float(inflation_factors(R[:s, :s]).sum())
    inside = new_bounded_fit(R, low, high)
    inside.coef[:] = np.clip(fit.coef, low, high)
    loss, lacking = fit_inside(inside, s, ridge, curvature)
    gain = max(float(R[:s, s] @ R[:s, s]) - loss, 0.0)
    return SubsetFit(inside.coef, float(R[s, s] ** 2) + loss, gain, lacking)


def inflation_factors(R: Array) -> Array:
    """Variance inflation factors of the columns of an upper triangle; ∞ where it is singular."""
    inverse, failed = sla.lapack.dtrtri(R)
    if failed or not np.isfinite(inverse).all():
        return np.full(R.shape[0], np.inf)
    return np.asarray(np.square(inverse).sum(axis=1) * np.square(R).sum(axis=0))


def augmented_triangle(data: Rows, columns: Index, ridge: float) -> Array:
    """R, shape (s + 1, s + 1), of the QR factorisation of [X_S y] on [√ridge I, 0].

    columns: The s columns S of X.
    """
    # If many columns are fitted, factoring a table of more rows once saves time.
    if 4 * columns.size < data.X.shape[1]:
        X, y = data.X[:, columns], data.y
    else:
        X, y = data.triangle[:, columns], data.triangle[:, -1]
    s, rows = columns.size, y.size
    if ridge > 0.0 and ridge >= np.einsum("ij,ij->", X, X):
        # Beside so large a ridge, QR would lose the digits of X.
        R = np.zeros((s + 1, s + 1))
        R[:s, :s] = sla.cholesky(X.T @ X + ridge * np.eye(s), check_finite=False)
        R[:s, s] = sla.solve_triangular(R[:s, :s], X.T @ y, trans="T", check_finite=False)
        R[s, s] = math.sqrt(max(float(y @ y - R[:s, s] @ R[:s, s]), 0.0))
        return R
    whole = np.zeros((rows + s, s + 1))
    whole[:rows, :s] = X
    whole[:rows, s] = y
    whole[rows + np.arange(s), np.arange(s)] = math.sqrt(ridge)
    if rows == s + 1 and not np.tril(whole[:rows], -1).any():
        # Zeros of two triangles stay zero, so that their factorisation takes a quarter of the time.
        below = np.vstack([whole[rows:], np.zeros(s + 1)])
        R = np.triu(sla.lapack.dtpqrt(s + 1, min(s + 1, 16), whole[:rows], below)[0])
    else:
        R = triangle_of(whole)
    if R.shape[0] < s + 1:  # The data have one row, and zeros complete R to s + 1 rows.
        R = np.vstack([R, np.zeros((s + 1 - R.shape[0], s + 1))])
    # In exact arithmetic no pivot is smaller than √ridge.
    at, pivot = np.arange(s), R.diagonal()[:s].copy()
    R[at, at] = np.copysign(np.maximum(np.abs(pivot), math.sqrt(ridge)), pivot)
    return R
