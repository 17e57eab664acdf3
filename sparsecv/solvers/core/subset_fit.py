"""Ridge fits on a support, from the rows of [X y]: by QR, of least norm, and within bounds."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..kernels.linalg import EPS
from .bounded_fit import fits_inside, new_bounded_fit
from .rows import FLAT_SLOPE, LOST_SHARE, ZERO_IN_COMBINATION, Array, Index, Rows, triangle_of

# The reach of a fit is Σ ℓ_j|β_j|, with ℓ_j the lengths of the columns. Up to this many times the
# length of y, the objective is read from a triangular factor, and rounding moves it by some 1e-12
# of yᵀy at most. Where the reach is longer, columns cancel each other, and the objective is
# computed anew from the coefficients. The value is a choice.
MAX_REACH_IN_LENGTHS_OF_Y = 1e4


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
    data: Rows,
    columns: Index,
    ridge: float,
    R: Array,
    bounds: tuple[Array, Array] | None = None,
) -> SubsetFit:
    """The fit of least ‖y − X_Sβ‖² + ridge ‖β‖² on some columns S, of least norm if there are more.

    The fit comes from QR of [X_S; √ridge I], and from singular values where columns may depend on
    each other and the ridge is too small. A pivot of QR does not tell: rounding leaves a column
    that depends on others more than 1e-13 of its length where its coefficients on them are large.

    data: The table [X y]. Its ``dependent_share`` is the share of the largest singular value,
        columns at length 1, up to which a singular value of X counts as 0.
    columns: The s columns S, distinct positions among those of X.
    ridge: γ/2 ≥ 0.
    R, shape (s + 1, s + 1): What :func:`augmented_triangle` gives of these.
    bounds: The least and the greatest coefficient of every column, shape (s,) each.
    Returns: The fit, with s coefficients in the order of ``columns``.
    """
    s, share = columns.size, data.share_of_fits(ridge)
    # The largest singular value is at most √s, so that s·share is at least the share of it.
    dependent = not independent_columns(inflation_factors(R[:s, :s]), s * share)
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
    most = MAX_REACH_IN_LENGTHS_OF_Y**2 * yy
    if np.vdot(fit.coef, fit.coef) * np.vdot(R, R) <= most:  # At least the square of ``reach``.
        return fit
    reach = float(np.abs(fit.coef) @ np.linalg.norm(R[:, :-1], axis=0))
    if reach * reach <= most:
        return fit
    objective = attained(data, columns, ridge, fit.coef)
    if data.reduced:
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
    null, shape (s, s − r): Orthonormal; any combination of these columns, divided by ``lengths``
        and added to β, leaves Xβ as it is.
    off: Up to this number the entries of null vectors count as 0.
    """

    lengths: Array
    left: Array
    values: Array
    right: Array
    null: Array
    off: float

    @classmethod
    def of(cls, X: Array, share: float) -> Rank:
        """X, shape (m, s), m ≥ s. share: As :func:`least_norm_fit` takes it."""
        lengths = np.linalg.norm(X, axis=0)
        lengths[lengths == 0.0] = 1.0
        U, values, V = sla.svd(X / lengths, full_matrices=False)
        r = int(np.sum(values > share * values[0]))
        # What counts as 0 beside the largest singular value moves null vectors as far as it is of
        # the least one that counts.
        apart = values[0] / values[r - 1] if r else 0.0
        off = min(share * apart, max(ZERO_IN_COMBINATION, 64.0 * EPS * apart))
        return cls(lengths, U[:, :r], values[:r], V[:r], V[r:].T, off)

    def moves(self, preferred: NDArray[np.bool_] | None = None) -> tuple[Array, Index]:
        """Combinations that leave Xβ as it is, each with a coefficient that it alone moves, by 1.

        That coefficient belongs to a column that is about as short as any in the combination, so
        that a combination moves no coefficient by much more than 1. Null vectors give them by
        Gauss's elimination with complete pivoting, where an entry counts in the unit of its
        coefficient. An entry that is only rounding becomes 0, as it would count for much where its
        column is much shorter than others.

        preferred, shape (s,): The first combinations move these coefficients, and the others do
            not.
        Returns: The combinations, shape (s, at most s − r), and which coefficient each moves by 1.
        """
        units, null, pivots = 1.0 / self.lengths[:, None], self.null.copy(), list[int]()
        first = np.zeros(units.size, dtype=bool) if preferred is None else preferred
        for k in range(null.shape[1] + 1):
            sizes = np.abs(null)
            null[sizes <= self.off * sizes.max(axis=0, initial=1.0)] = 0.0
            worth = np.abs(null[:, k:]) * units
            if worth[first].any():
                worth[~first] = 0.0
            if not worth.any():
                break
            i, j = divmod(int(np.argmax(worth)), worth.shape[1])
            null[:, [k, k + j]] = null[:, [k + j, k]]
            null[:, k] /= null[i, k]
            others = np.where(np.arange(null.shape[1]) == k, 0.0, null[i])
            null -= null[:, k, None] * others
            pivots.append(i)
        at = np.array(pivots, dtype=np.intp)
        return units * null[:, : at.size] * self.lengths[at], at


def least_norm_fit(X: Array, y: Array, share: float) -> SubsetFit:
    """The fit of least ‖β‖ among those of least ‖y − Xβ‖², by singular values.

    share: With columns scaled to length 1, singular values up to this share of the largest count
        as 0.
    """
    rank = Rank.of(X, share)
    along = rank.left.T @ y
    coef = (rank.right.T @ (along / rank.values)) / rank.lengths
    if rank.null.size:
        coef = shortened(coef, rank.moves()[0])
        # Moves of which entries that are only rounding became 0 have changed Xβ a little.
        for _ in range(2):
            again = rank.left.T @ (y - X @ coef)
            coef = coef + (rank.right.T @ (again / rank.values)) / rank.lengths
    residual = y - X @ coef
    return SubsetFit(coef, float(residual @ residual), float(along @ along))


def fit_within(
    R: Array,
    ridge: float,
    fit: SubsetFit,
    bounds: tuple[Array, Array],
    share: float = LOST_SHARE,
) -> SubsetFit:
    """The best fit within bounds on the coefficients, but for what its field ``lacking`` says.

    R, shape (s + 1, s + 1): What :func:`augmented_triangle` gives, which holds the ridge.
    ridge: γ/2, from which ``lacking`` is computed.
    fit: The ridge fit, whose coefficients are outside the bounds.
    bounds: The least and the greatest coefficient of every column, shape (s,) each.
    share: A column of which others leave at most this share of its length counts as dependent.
    """
    s = fit.coef.size
    curvature = least_curvature(R[:s, :s])
    every, marked = np.arange(s)[None], np.ones(1, dtype=np.int8)
    inside, coef = new_bounded_fit(R, *bounds, share), fit.coef[None].copy()
    loss, lacking = np.zeros((2, 1))
    fits_inside(inside, every, marked, coef, loss, lacking, ridge, curvature)
    gain = max(float(R[:s, s] @ R[:s, s] - loss[0]), 0.0)
    return SubsetFit(coef[0], float(R[s, s] ** 2 + loss[0]), gain, float(lacking[0]))


def dependent_fit_within(
    R: Array, fit: SubsetFit, bounds: tuple[Array, Array], share: float
) -> SubsetFit:
    """The fit of least ‖β‖ among the fits of least ‖y − Xβ‖² within the bounds, X of lower rank.

    It is the limit of the ridge fits within the bounds as the ridge goes to 0: these minimise ‖y −
    Xβ‖² + ridge ‖β‖², so that none has a longer β than this fit, and what they converge to has the
    least ‖y − Xβ‖². All fits of least ‖y − Xβ‖² within the bounds have the same Xβ, as the square
    is strictly convex in Xβ, and every β within the bounds with that Xβ is such a fit. So any one
    fit is computed first, and then the shortest that differs from it by a combination that leaves
    Xβ as it is.

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
        rank = Rank.of(X[:, free], share)

        coef[free] = shortest_within(coef[free], rank, low[free], high[free])
    residual = y - R[:, :s] @ coef
    objective = float(residual @ residual)
    return SubsetFit(coef, objective, max(float(y @ y) - objective, 0.0))


def shortened(coef: Array, moves: Array) -> Array:
    """The shortest of the vectors coef + moves·t.

    moves, shape (s, d): Combinations as :meth:`Rank.moves` gives them. The matrix of their products
        has a small condition number, and products of combinations of short columns with
        combinations of long ones are small, so that coefficients of long columns keep digits, too.
    """
    if moves.shape[1]:
        factor = sla.cho_factor(moves.T @ moves)
        for _ in range(2):  # The second step restores digits that the first has lost.
            coef = coef - moves @ sla.cho_solve(factor, moves.T @ coef)
    return coef


def shortest_within(coef: Array, rank: Rank, low: Array, high: Array) -> Array:
    """The shortest of the vectors between ``low`` and ``high`` that have the Xβ of ``coef``.

    This is an active set method. Some coefficients are fixed at bounds. The coefficients go towards
    the shortest vector with these fixed, and the first that reaches a bound on the way is fixed
    there. Where none does, a coefficient is freed that shortens the vector when it leaves its
    bound. Of several such coefficients the first is taken, which keeps the method from running in a
    circle (Bland's rule).

    coef, shape (s,): Within the bounds.
    rank: Of the columns X.
    """
    s, fixed = coef.size, (coef <= low) | (coef >= high)
    # Coefficients so far beyond a bound, and slopes so small beside their terms, are rounding.
    slack = LOST_SHARE * float(np.abs(coef) @ rank.lengths) / rank.lengths
    for _ in range(20 * s + 20):
        moves, at = rank.moves(fixed)
        held = int(fixed[at].sum())
        shortest = shortened(coef, moves[:, held:])
        outside = np.flatnonzero((shortest < low - slack) | (high + slack < shortest))
        if outside.size:
            step = shortest - coef
            bound = np.where(step > 0.0, high, low)
            shares = (bound - coef)[outside] / step[outside]
            stopped = outside[np.argmin(shares)]
            coef = np.clip(coef + shares.min() * step, low, high)
            coef[stopped] = bound[stopped]
            fixed[stopped] = True
            continue
        coef = np.clip(shortest, low, high)
        slopes, terms = moves[:, :held].T @ coef, np.abs(moves[:, :held]).T @ np.abs(coef)
        places = at[:held]
        shorter = np.where(slopes > 0.0, low[places] < coef[places], coef[places] < high[places])
        leaves = places[shorter & (np.abs(slopes) > LOST_SHARE * terms)]
        if not leaves.size:
            break
        fixed[leaves.min()] = False
    return coef


def independent_columns(inflation: Array, least_value: float) -> bool:
    """Whether no singular value of a triangle, its columns at length 1, is below ``least_value``.

    The sum of the inflation factors is the square of ‖R⁻¹‖, columns at length 1, in the Frobenius
    norm, and one over that norm bounds every singular value from below. So False says nothing.

    inflation: The triangle's :func:`inflation_factors`.
    """
    return bool(inflation.sum() * least_value**2 <= 1.0)


def inflation_factors(R: Array) -> Array:
    """Variance inflation factors of the columns of an upper triangle; ∞ where it is singular."""
    return inverse_and_inflation(R)[1]


def least_curvature(R: Array) -> float:
    """A number c with ‖Rd‖² ≥ c Σ ℓ_i²d_i² for every d, where ℓ_i is the length of column i of R.

    The least eigenvalue of the Gram matrix at unit length is at least 1 over the sum of the
    variance inflation factors; half of it is taken.
    """
    return 0.5 / float(inflation_factors(R).sum())


def inverse_and_inflation(R: Array) -> tuple[Array, Array]:
    """The inverse of an upper triangle, and what :func:`inflation_factors` says of it."""
    if R.size == 0:
        return R, np.empty(0)
    inverse, failed = sla.lapack.dtrtri(R)
    found = np.einsum("ij,ij->i", inverse, inverse) * np.einsum("ij,ij->j", R, R)
    singular = failed or not np.isfinite(found).all()
    return inverse, np.full(R.shape[0], np.inf) if singular else found


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
