"""Ridge fits on a support, from the rows of [X y]: by QR, of least norm, and within bounds."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla

from ..kernels.fits import independent
from ..kernels.linalg import EPS
from .bounded_fit import fit_inside, new_bounded_fit
from .rows import DEPENDENT_SHARE, Array, Index, Rows, triangle_of

# Where Σ ℓ_j|β_j| is more than this number times the length of y, ℓ_j the lengths of columns, an
# objective is evaluated from the coefficients. Below it rounding moves the objective by some 1e-12
# of yᵀy at most. The value is a choice.
LONG_COEFFICIENTS = 1e4
# A slope of the loss up to this share of what its products sum to counts as 0 where dependent
# columns have bounds. Rounding leaves some 1e-14 of it; the value is a choice.
FLAT_SLOPE = 1e-10


class SubsetFit(NamedTuple):
    """Ridge fit on one support.

    ``gain`` = yᵀy − objective. The objective and the gain are each computed as a sum of squares and
    not as a difference; two supports are compared by the smaller of the two, which has more digits.
    ``lacking`` bounds what the objective of a fit within bounds exceeds the optimum by, which is
    0 but for slopes of the size of rounding errors. It is ∞ for dependent columns, as these may
    differ by less than what counts as 0.
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
    dependent = not independent(R, s, s * share)
    if dependent:
        fit = least_norm_fit(R[:, :s], R[:, s], share)
    else:
        coef, _ = sla.lapack.dtrtrs(R[:s, :s], R[:s, s])
        fit = SubsetFit(coef, float(R[s, s] ** 2), float(R[:s, s] @ R[:s, s]))
    if bounds is not None and ((fit.coef < bounds[0]) | (bounds[1] < fit.coef)).any():
        if dependent:
            fit = dependent_fit_within(R, fit, bounds, share)
        else:
            fit = fit_within(R, ridge, fit, bounds)
    if bounds is not None and dependent:
        fit = fit._replace(lacking=math.inf)
    return evaluated(data, columns, ridge, fit, R)


def evaluated(data: Rows, columns: Index, ridge: float, fit: SubsetFit, R: Array) -> SubsetFit:
    """The fit with the objective of its coefficients, where these are so long that it matters.

    Coefficients of length β are off by some EPS·β, and so is their residual from that of a factor,
    to which QR has moved the columns. An objective read from the factor may then lie below any that
    coefficients attain.

    R, shape (s + 1, s + 1): What :func:`augmented_triangle` gives.
    """
    yy = fit.objective + fit.gain
    most = LONG_COEFFICIENTS**2 * yy
    if np.vdot(fit.coef, fit.coef) * np.vdot(R, R) <= most:  # At least the square of ``reach``.
        return fit
    reach = float(np.abs(fit.coef) @ np.linalg.norm(R[:, :-1], axis=0))
    if reach * reach <= most:
        return fit
    objective = attained(data, columns, ridge, fit.coef)
    if data.rows.shape[0] != data.n:  # A triangle has columns that QR has moved.
        off = 0.25 * data.lost * (math.sqrt(yy) + reach)
        objective += 2.0 * math.sqrt(objective) * off + off * off
    return fit._replace(objective=objective, gain=max(yy - objective, 0.0))


def attained(data: Rows, columns: Index, ridge: float, coef: Array) -> float:
    """‖y − X_Sβ‖² + ridge ‖β‖² of given coefficients, as if it were computed with twice the digits.

    Every product and every sum of a row is split into its rounded value and its rounding error
    (Dekker 1971; Ogita, Rump & Oishi 2005, Algorithm 5.3), and the errors are summed apart.
    """
    high, low = data.y.copy(), np.zeros_like(data.y)
    for j, weight in zip(columns.tolist(), coef.tolist(), strict=True):
        x = np.asarray(data.X[:, j])
        product = -weight * x
        x_head, head = _head(x), _head(np.float64(-weight))
        x_tail, tail = x - x_head, -weight - head
        error = x_tail * tail - (((product - x_head * head) - x_tail * head) - x_head * tail)
        total = high + product
        moved = total - high
        low += error + ((high - (total - moved)) + (product - moved))
        high = total
    residual = high + low
    return float(residual @ residual + ridge * (coef @ coef))


def _head(values: Any) -> Any:
    """The first 26 bits of numbers; what is left of them has at most 26 bits, too."""
    spread = 134217729.0 * values
    return spread - (spread - values)


class Rank(NamedTuple):
    """Singular values of a matrix X, its columns at length 1, that do not count as 0.

    lengths, shape (s,): Of the columns; 1 for columns of zeros.
    left, values, right, shape (m, r), (r,) and (r, s): X is ``left`` diag(``values``) ``right``
        diag(``lengths``), but for singular values that count as 0.
    null, shape (s, s − r): Any combination of these columns, added to β, leaves Xβ as it is.
    """

    lengths: Array
    left: Array
    values: Array
    right: Array
    null: Array

    @classmethod
    def of(cls, X: Array, share: float) -> Rank:
        """X, shape (m, s), m ≥ s. share: As :func:`least_norm_fit` takes it."""
        lengths = np.linalg.norm(X, axis=0)
        lengths[lengths == 0.0] = 1.0
        U, values, V = sla.svd(X / lengths, full_matrices=False)
        r = int(np.sum(values > share * values[0]))
        return cls(lengths, U[:, :r], values[:r], V[:r], V[r:].T / lengths[:, None])


def least_norm_fit(X: Array, y: Array, share: float) -> SubsetFit:
    """The fit of least ‖β‖ among those of least ‖y − Xβ‖², by singular values.

    share: With columns scaled to length 1, singular values up to this share of the largest count
        as 0.
    """
    rank = Rank.of(X, share)
    along = rank.left.T @ y
    coef = (rank.right.T @ (along / rank.values)) / rank.lengths
    if rank.null.size:
        coef -= rank.null @ np.linalg.lstsq(rank.null, coef, rcond=None)[0]
    residual = y - X @ coef
    return SubsetFit(coef, float(residual @ residual), float(along @ along))


def fit_within(
    R: Array,
    ridge: float,
    fit: SubsetFit,
    bounds: tuple[Array, Array],
    share: float = DEPENDENT_SHARE,
) -> SubsetFit:
    """A fit within bounds on the coefficients; ``fit`` is the ridge fit, which is outside them.

    R, shape (s + 1, s + 1): What :func:`augmented_triangle` gives.
    bounds: The least and the greatest coefficient of every column, shape (s,) each.
    share: As :func:`new_bounded_fit` takes it.
    """
    s = fit.coef.size
    # The least eigenvalue of the Gram matrix at unit length is at least 1 over the sum; half of it
    # is taken.
    curvature = 0.5 / float(inflation_factors(R[:s, :s]).sum())
    inside = new_bounded_fit(R, *bounds, share)
    inside.coef[:] = np.clip(fit.coef, *bounds)
    loss, lacking = fit_inside(inside, s, ridge, curvature)
    gain = max(float(R[:s, s] @ R[:s, s]) - loss, 0.0)
    return SubsetFit(inside.coef, float(R[s, s] ** 2) + loss, gain, lacking)


def dependent_fit_within(
    R: Array, fit: SubsetFit, bounds: tuple[Array, Array], share: float
) -> SubsetFit:
    """The fit of least ‖β‖ among the fits of least ‖y − Xβ‖² within the bounds, X of lower rank.

    It is the limit of the ridge fits within the bounds as the ridge goes to 0: these minimise
    ‖y − Xβ‖² + ridge ‖β‖², so that none has a longer β than this fit, and what they converge to has
    the least ‖y − Xβ‖². All fits of least ‖y − Xβ‖² within the bounds have the same Xβ, as the
    square is strictly convex in Xβ. Those coefficients β within the bounds with that Xβ are all of
    them. So any one fit is computed first, and then the shortest that differs from it by a
    combination that leaves Xβ as it is.

    A coefficient whose slope is not 0 is at the same bound in all these fits. Coefficients of other
    columns alone are moved; that the slope of one is rounding does not matter, as then it is only
    moved where that leaves Xβ.
    """
    s, (low, high) = fit.coef.size, bounds
    rank, y = Rank.of(R[:, :s], share), R[:, s]
    # Without the singular values that count as 0, dependent columns are so up to rounding.
    X = rank.left @ (rank.values[:, None] * rank.right) * rank.lengths
    X[:, ~R[:, :s].any(axis=0)] = 0.0
    some = fit_within(triangle_of(np.column_stack([X, y])), 0.0, fit, bounds, share)
    residual, coef = y - X @ some.coef, some.coef.copy()
    reach = float(np.linalg.norm(y) + np.abs(coef) @ rank.lengths)
    free = np.abs(residual @ X) <= FLAT_SLOPE * rank.lengths * reach
    if free.any():
        null = Rank.of(X[:, free], share).null
        coef[free] = shortest_within(coef[free], null, low[free], high[free])
    residual = y - R[:, :s] @ coef
    objective = float(residual @ residual)
    return SubsetFit(coef, objective, max(float(y @ y) - objective, 0.0))


def shortest_within(coef: Array, null: Array, low: Array, high: Array) -> Array:
    """The shortest of the vectors coef + null·t between ``low`` and ``high``.

    coef, shape (s,): Within the bounds. null, shape (s, d).

    With null = QT, Q orthonormal, and v = Qᵀcoef + Tt the vectors are e + Qv, where e is what Q
    leaves of coef. The shortest v with Gv ≥ h, the bounds of single entries, is found by least
    squares (Lawson & Hanson 1974, Chapter 23, LDP): the u ≥ 0 of least |Gᵀu|² + (hᵀu − 1)² is
    positive for some rows of G only, these are independent, and of all v with Gv = h there the
    shortest is the one that is asked for.
    """
    if null.shape[1] == 0:
        return coef
    Q, T = np.linalg.qr(null)
    now = Q.T @ coef
    size = float(np.linalg.norm(now))
    if size <= 8.0 * EPS * float(np.linalg.norm(coef)):
        return coef
    rest = coef - Q @ now
    # Every row has length 1, and v is in units of the length that it has now. A bound that no
    # vector of at most this length reaches does not count.
    weight = np.linalg.norm(Q, axis=1)
    moves = weight > DEPENDENT_SHARE
    rows = Q[moves] / weight[moves, None]
    scale = size * weight[moves]
    G = np.vstack([rows, -rows])
    h = np.append((low - rest)[moves] / scale, (rest - high)[moves] / scale)
    G, h = G[h > -1.0], h[h > -1.0]
    m, d = G.shape
    v = np.zeros(d)
    if m:
        R = np.zeros((m + 1, m + 1))
        factor = triangle_of(np.vstack([np.column_stack([G.T, v]), np.append(h, 1.0)]))
        R[: factor.shape[0]] = factor
        weights = new_bounded_fit(R, np.zeros(m), np.full(m, np.inf))
        fit_inside(weights, m, 0.0, 0.0)
        active = weights.coef > 0.0
        v = np.linalg.lstsq(G[active], h[active], rcond=None)[0]
    step = sla.solve_triangular(T, size * v - now)
    return np.asarray(np.clip(coef + null @ step, low, high))


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
