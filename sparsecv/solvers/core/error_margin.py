"""How far rounding may move the squared errors of ridge fits on rows that they were not fitted to.

A fit by Householder's QR is the exact fit of columns X + E and a response y + e with |E_j| ≤ ε ℓ_j
and |e| ≤ ε |y|, where ℓ_j is the length of column j with the ridge weight, and ε is ``Rows.off``.
That settles the objective. The prediction at a row x that was not among the training rows may still
be far off: where the training rows hardly tell two columns apart, noise of their difference has
large coefficients, and x may see it. With A = [X; √(γ/2) I] = QR, coefficients β, and residuals
r = [y; 0] − Aβ, the prediction moves by at most

    ε [ |xᵀR⁻¹| (|y| + Σ ℓ_j|β_j|) / (1 − η) + Σ ℓ_j |xᵀ(RᵀR)⁻¹|_j |r| ]
      + |xᵀR⁻¹| |r| η² (2 + η) / (1 − η)²,          η = ε Σ ℓ_j |row j of R⁻¹|.

Proof: let F = E R⁻¹, so that |F| ≤ η, and A + E = (Q + F)R. In g = Rβ the fit moves by
(Q + F)⁺(r + e − Fg), and Qᵀr = 0, so that (Q + F)⁺r = M⁻¹Fᵀr with M = (Q + F)ᵀ(Q + F), where
|M − I| ≤ 2η + η² and |M⁻¹| ≤ 1/(1 − η)². xᵀR⁻¹Fᵀr = xᵀ(RᵀR)⁻¹Eᵀr gives the second term.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from .problem import SparseRidgeProblem
from .quick_fits import placed_columns, quick_fits
from .rounding import LEAST_LEFT, MOST_ETA, MOST_SPREAD_WITHOUT_RIDGE
from .rows import triangle_of
from .subset_fit import Rank, independent_columns, inverse_and_inflation

Array = NDArray[np.float64]
Index = NDArray[np.intp]
# Tables of up to so many columns have one factor for the margins of all supports; with more columns
# those that the supports use have one, if they are at most so many, or twice as many as the largest
# support has. It is a choice.
MAX_SHARED = 45


class Sensitivity(NamedTuple):
    """What decides how far rounding moves the predictions of a fit at some rows x.

    along: |xᵀR⁻¹| of every row, or its square summed over rows and rooted.
    across: Σ ℓ_j |xᵀ(RᵀR)⁻¹|_j likewise, or an upper bound: ``along`` times ``spread``.
    spread: Σ ℓ_j |row j of R⁻¹|; ∞ where the columns are dependent.
    off: ε.
    """

    along: Array
    across: Array
    spread: Array | float
    off: float

    def moved(self, reach: Array | float, residual: Array | float) -> Array:
        """How far predictions may move; ∞ where nothing is known.

        reach: |y| + Σ ℓ_j|β_j|.
        residual: |r|, the root of the objective.
        """
        eta = np.minimum(self.off * np.asarray(self.spread), MOST_ETA)
        # The sum xᵀβ is rounded as well, by at most ε Σ |x_jβ_j| ≤ ε |xᵀR⁻¹| Σ ℓ_j|β_j|, which
        # doubles the first term.
        first = 2.0 * self.along * reach / (1.0 - eta) + self.across * residual
        second = self.along * residual * eta**2 * (2.0 + eta) / (1.0 - eta) ** 2
        with np.errstate(invalid="ignore"):  # A row of zeros does not move.
            return np.where(eta < MOST_ETA, self.off * first + second, np.inf)


def moved_errors(errors: Array, moved: Array) -> Array:
    """By how much sums of squared errors move if their residuals move by a vector of some length.

    errors: Σ e².
    moved: The length of the vector, at least.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        found = 2.0 * np.sqrt(errors) * moved + moved * moved
    return np.where(np.isnan(found), np.inf, found)


def moved_by_any(
    problem: SparseRidgeProblem, columns: Index, gamma: float, rows: Array, targets: Array
) -> float:
    """How far the residuals of any fit on some of these columns may move, in length over the rows.

    The result is ∞ where coefficients have bounds, as then it depends on what a fit has left.

    rows, targets, shape (r, p) and (r,): What the fits predict.
    """
    if problem.constraints.bounded:
        return math.inf
    return _shared(problem, columns, gamma, rows, targets)[0]


def _shared(
    problem: SparseRidgeProblem, columns: Index, gamma: float, rows: Array, targets: Array
) -> tuple[float, float]:
    """How far the residuals of any fit on some of these columns may move, and |xᵀR⁻¹| of all rows.

    One factor of all columns bounds the fits on all subsets of them at this γ and all larger ones:
    |xᵀR⁻¹| and η grow with the columns and fall with γ, Σ ℓ_j|β_j| ≤ |Aβ| η/ε, and the objective is
    at most |y|². Bounds on coefficients allow β = 0, so that Aβ is the point next to y in a convex
    set that holds 0, and |Aβ| ≤ |y|. A fit within bounds moves, besides, by at most |xᵀR⁻¹| times
    the root of what its objective exceeds the least one by, as :func:`support_margin` says.

    rows, targets, shape (r, p) and (r,): What the fits predict.
    """
    if columns.size == 0:
        return math.inf, math.inf
    inverse, spread = np.empty((0, 0)), math.inf
    if columns.size == problem.p < len(problem.triangle) and problem.data.columns[1]:
        # The factor at γ = 0, which the searches have made already, bounds the fits at every γ.
        inverse, inflation = inverse_and_inflation(problem.triangle[:-1, :-1])
        spread = _spread(inflation)
    if not spread <= MOST_SPREAD_WITHOUT_RIDGE:
        inverse, inflation = inverse_and_inflation(problem.factor(columns, gamma)[:-1, :-1])
        spread = _spread(inflation)
    if not math.isfinite(spread):
        return math.inf, math.inf
    along = _norm(rows[:, columns] @ inverse)
    length, off = math.sqrt(problem.yy), problem.data.off
    at = Sensitivity(along, along * spread, spread, off)
    moved = at.moved(length * (1.0 + spread), length) + off * _norm(targets)
    return float(moved), float(along)


def moved_by_path(
    problem: SparseRidgeProblem,
    gammas: Array,
    supports: NDArray[np.int64],
    rows: Array,
    targets: Array,
) -> float:
    """What :func:`moved_by_any` says of given supports and γ; ∞ where it would take too long.

    Parameters are as of :func:`path_margins`.
    """
    if problem.constraints.bounded:
        return math.inf
    return _shared_by_path(problem, gammas, supports, rows, targets)[0]


def _shared_by_path(
    problem: SparseRidgeProblem,
    gammas: Array,
    supports: NDArray[np.int64],
    rows: Array,
    targets: Array,
) -> tuple[float, float]:
    """What :func:`_shared` says of given supports and γ; ∞ where it would take too long."""
    columns = np.arange(problem.p)
    if problem.p > MAX_SHARED:
        columns = np.unique(supports[supports >= 0]).astype(np.intp)
        if columns.size > max(2 * supports.shape[2], MAX_SHARED):
            return math.inf, math.inf
    return _shared(problem, columns, float(gammas.min()), rows, targets)


def path_margins(
    problem: SparseRidgeProblem,
    gammas: Array,
    supports: NDArray[np.int64],
    rows: Array,
    targets: Array,
    errors: Array,
    enough: Array,
    moved: float | None = None,
) -> Array:
    """How far rounding may have moved the squared errors of fits on given supports, shape (γ, τ).

    What :func:`_shared` says bounds the margins of all supports at once, and then those of one γ;
    within bounds on coefficients all supports are fitted again for that. A support for
    which that is too much is looked at alone.

    problem: The training problem; its γ and τ do not count.
    supports, shape (γ, τ, most): Columns, ended by −1.
    rows, targets, shape (r, p) and (r,): What the fits predict.
    errors, shape (γ, τ): The sums of squared errors as they were computed.
    enough, shape (γ, τ): Margins up to these need not be any smaller; ∞ where none is wanted.
    moved: What :func:`moved_by_path` says; by default it is asked here.
    """
    if np.isinf(enough).all():
        return np.full(errors.shape, np.inf)
    given = gammas, supports, rows, targets, errors
    if problem.constraints.bounded:
        fitted = _fitted_within(problem, *given[:-1], np.isfinite(enough))
        found = fitted.margins(errors, *_shared_by_path(problem, *given[:-1]))
    else:
        fitted = Fitted(errors, np.zeros(errors.shape))
        if moved is None:
            moved = moved_by_path(problem, *given[:-1])
        found = moved_errors(errors, np.array(moved))
    # The least γ moves fits the most. Where its bound is too much for several supports of a γ, the
    # bound of that γ costs one factor, and a look at every support costs one factor each.
    if gammas.size > 1:
        for g in np.flatnonzero((~(found <= enough)).sum(axis=1) > 1).tolist():
            own = _shared_by_path(problem, gammas[[g]], supports[[g]], rows, targets)
            found[g] = np.minimum(found[g], fitted.at(g).margins(errors[g], *own))
    for g, gamma in enumerate(gammas.tolist()):
        looked_at = np.flatnonzero(~(found[g] <= enough[g]))
        if looked_at.size == 0:
            continue
        at_gamma = problem.replace(gamma=gamma)
        # Sizes whose units count more than once often have a support, and its error, in common.
        known = dict[tuple[bytes, float], float]()
        for t in looked_at.tolist():
            support = supports[g, t][supports[g, t] >= 0].astype(np.intp)
            one = support.tobytes(), float(errors[g, t])
            if one not in known:
                known[one] = support_margin(at_gamma, support, rows, targets, one[1])
            found[g, t] = known[one]
    return found


class Fitted(NamedTuple):
    """What fits on given supports give at some rows.

    errors, shape (γ, τ): The sums of squared errors; NaN where they are unknown.
    lacking, shape (γ, τ): What the objective exceeds the least one within the bounds by at most.
    """

    errors: Array
    lacking: Array

    def at(self, g: int) -> Fitted:
        """The record of the g-th γ."""
        return Fitted(self.errors[g], self.lacking[g])

    def margins(self, claimed: Array, moved: float, along: float) -> Array:
        """How far errors that somebody claims may be from exact ones; ∞ where nothing is known.

        moved, along: As of :func:`_shared`.
        """
        with np.errstate(invalid="ignore"):  # A number that is unknown is NaN or ∞.
            all_moved = moved + along * np.sqrt(self.lacking)
            found = moved_errors(self.errors, all_moved) + np.abs(self.errors - claimed)
        return np.where(np.isnan(found), np.inf, found)


def _fitted_within(
    problem: SparseRidgeProblem,
    gammas: Array,
    supports: NDArray[np.int64],
    rows: Array,
    targets: Array,
    wanted: NDArray[np.bool_],
) -> Fitted:
    """The fits within bounds on the supports that are wanted; of others nothing is known.

    Errors that are claimed may come from updates of other fits, or from a fit of which nobody knows
    what it has left, so that all are fitted again by one call of compiled code.

    wanted: Shape (γ, τ); other parameters are as of :func:`path_margins`.
    """
    errors, lacking = np.full((2, *wanted.shape), np.nan)
    some = np.flatnonzero(wanted.any(axis=1))
    asked = np.where(wanted[some, :, None], supports[some], -1)
    coef, objective, left = np.zeros(asked.shape), *np.zeros((2, *asked.shape[:2]))
    quick_fits(problem, gammas[some], asked, coef, objective, left)
    used, places = placed_columns(asked, problem.p)
    spread = np.zeros((*asked.shape[:2], used.size + 1))  # The place −1 is the last one.
    np.put_along_axis(spread, places, coef, 2)
    residual = spread[:, :, :-1] @ rows[:, used].T - targets
    known = wanted[some] & np.isfinite(objective)
    errors[some] = np.where(known, np.einsum("gtr,gtr->gt", residual, residual), np.nan)
    lacking[some] = left
    return Fitted(errors, lacking)


class FoldMargins:
    """The margins of the errors of one fold, asked for at one γ after the other.

    Up to ``MAX_SHARED`` columns a bound on what rounding does to the fit of any support is kept,
    with the least γ so far, from which on the bound holds.
    """

    def __init__(self) -> None:
        self._gamma, self._moved = math.inf, math.inf

    def of(
        self,
        problem: SparseRidgeProblem,
        gammas: Array,
        supports: Callable[[], NDArray[np.int64]],
        rows: Array,
        targets: Array,
        errors: Array,
        enough: Array,
    ) -> Array:
        """How far rounding may have moved the fold's sums of squared errors, shape (γ, τ).

        supports: Gives the supports of these errors; it is called where the bound that is kept does
            not suffice.
        problem, gammas, rows, targets, errors, enough: As of :func:`path_margins`.
        """
        moved = None
        if problem.p <= MAX_SHARED:
            if (least := float(gammas.min())) < self._gamma:
                self._moved = moved_by_any(problem, np.arange(problem.p), least, rows, targets)
                self._gamma = least
            moved = self._moved
            found = moved_errors(errors, np.array(moved))
            if (found <= enough).all():
                return found
        return path_margins(problem, gammas, supports(), rows, targets, errors, enough, moved)


def support_margin(
    problem: SparseRidgeProblem, support: Index, rows: Array, targets: Array, error: float
) -> float:
    """How far rounding may have moved the squared error of the fit on one support; ∞ if unknown.

    The error is compared with that of a fit from the problem's own rows, as it may come from
    updates of other fits.

    problem: The training problem at its γ.
    rows, targets, shape (r, p) and (r,): What the fit predicts.
    error: Σ (target − prediction)² as it was computed.
    """
    (fit, R), columns = problem.fit_and_factor(support), rows[:, support]
    own = float(np.sum((targets - columns @ fit.coef) ** 2))
    gamma, off = problem.given_gamma, problem.data.off
    T = R[:-1, :-1]
    inverse, inflation = inverse_and_inflation(T)
    lengths = np.linalg.norm(T, axis=0)
    reach = math.sqrt(problem.yy) + float(lengths @ np.abs(fit.coef))
    residual = math.sqrt(max(fit.objective, 0.0))
    share = problem.data.share_of_fits(gamma / 2.0)
    if support.size == 0:
        moved = np.zeros(len(rows))
    elif not independent_columns(inflation, support.size * share):
        if gamma > 0.0:  # The fit has lost its digits.
            return math.inf
        rules, given = problem.constraints, (R, fit.coef, columns)
        if rules.bounded:
            bounds = rules.lower[support], rules.upper[support]
            moved = _moved_within(*given, bounds, share, off, reach, residual)
        else:
            moved = _moved_least_norm(*given, share, off, reach, residual)
    else:
        at = _sensitivity(columns, T, inverse, inflation, off)
        if problem.constraints.bounded:
            # A fit within bounds moves by at most |R⁻ᵀ| times what its slope moves, for which
            # Σ ℓ_j |row j of R⁻¹| stands, and by what its objective may exceed the least one by.
            at = at._replace(across=at.along * at.spread)
        moved = at.moved(reach, residual) + at.along * math.sqrt(fit.lacking)
    moved_by = _norm(moved) + off * _norm(targets)
    return float(moved_errors(np.array(own), np.array(moved_by))) + abs(own - error)


def sensitivity(
    problem: SparseRidgeProblem, columns: Index, gamma: float, rows: Array
) -> Sensitivity:
    """The :class:`Sensitivity` of the fit on some columns at a γ, at rows of shape (r, p)."""
    T = problem.factor(columns, gamma)[:-1, :-1]
    return _sensitivity(rows[:, columns], T, *inverse_and_inflation(T), problem.data.off)


def _sensitivity(
    rows: Array, T: Array, inverse: Array, inflation: Array, off: float
) -> Sensitivity:
    """The :class:`Sensitivity` at rows of shape (r, s), whose s columns have the triangle T.

    inverse, inflation: What :func:`inverse_and_inflation` gives of T.
    """
    spread = _spread(inflation)
    if not math.isfinite(spread):
        nothing = np.full(len(rows), np.inf)
        return Sensitivity(nothing, nothing, math.inf, off)
    V = rows @ inverse
    along = np.sqrt(np.einsum("ij,ij->i", V, V))
    across = np.abs(V @ inverse.T) @ np.linalg.norm(T, axis=0)
    return Sensitivity(along, across, spread, off)


def _spread(inflation: Array) -> float:
    """Σ ℓ_j |row j of R⁻¹|, ℓ_j the length of column j of R; ∞ where R is singular."""
    return float(np.sqrt(inflation).sum())


def deleted_row_margins(
    problem: SparseRidgeProblem,
    columns: Index,
    gamma: float,
    rows: Array,
    targets: Array,
    factor: Array,
    errors: Array,
) -> Array:
    """How far rounding may move the squared errors of rows that are each deleted in turn.

    With h the leverage of the row in the fit of all rows on some columns, the fit without the row
    has |xᵀR⁻¹|² = l = h/(1 − h), and columns whose inflation grows by at most 1/(1 − h); both are
    no larger for fewer columns and a larger γ. The fit of all rows is the exact one of a table in
    which the row, too, is moved, while the row that is deleted is not. That moves the prediction by
    l ε (|y| + Σ ℓ_j|β_j|), and by ε Σ ℓ_j|xᵀ(RᵀR)⁻¹|_j times the deleted residual, besides.

    problem: The problem with all rows.
    columns: Columns that no support goes beyond.
    gamma: The least γ of the fits.
    rows, targets, shape (n, p) and (n,): The rows that are deleted, and their responses.
    factor, shape (n,), and errors, shape (..., n): The squared error of a row is (factor · deleted
        residual)², for the fits along the axes before the last.
    Returns: Margins of the same shape as ``errors``; ∞ where the columns may be dependent without a
        row, so that the fit without that row has to be looked at by itself.
    """
    at = sensitivity(problem, columns, gamma, rows)
    if not math.isfinite(float(at.spread)):  # The columns are dependent.
        return np.full(errors.shape, np.inf)
    left = 1.0 - np.minimum(at.along**2, 1.0)
    fine = left > max(LEAST_LEFT, 10.0 * at.off * float(at.spread))  # ε · spread may be off h.
    left = np.where(fine, left, 1.0)
    root = at.along / np.sqrt(left)
    spread, length = at.spread / np.sqrt(left), math.sqrt(problem.yy)
    without = Sensitivity(root + root**2, root * spread, spread + root**2, at.off)
    residual = np.sqrt(errors.max(axis=tuple(range(errors.ndim - 1)))) / factor + length
    moved = factor * (without.moved(length * (1.0 + spread), residual) + at.off * np.abs(targets))
    return moved_errors(errors, np.where(fine, moved, np.inf))


class _Row(NamedTuple):
    """The row space of columns that depend on each other, and what rounding turns it by.

    basis, shape (s, r): Orthonormal; coefficients of least norm are combinations of it.
    inverse, shape (s, rows): Of the columns, the one of least norm.
    turned, shape (r,): By what rounding moves predictions as the row space turns.
    """

    basis: Array
    inverse: Array
    turned: Array


def _row_space(T: Array, coef: Array, columns: Array, share: float, off: float) -> _Row | None:
    """The :class:`_Row` of columns T, shape (rows, s); None where their rank is not clear.

    The columns that depend on each other up to rounding count as dependent: the claim is one about
    data within ε of those given. With P the projection on the null space and A⁺ the inverse, β
    moves by P Eᵀ(A⁺)ᵀβ to first order (Wedin 1973), where Eᵀ(A⁺)ᵀβ is at most ε ℓ_j |(A⁺)ᵀβ| in
    entry j. Twice that is taken where the least singular value that does not count as 0 is 1,000
    times what rounding moves; else nothing is claimed.

    coef, shape (s,): The coefficients of least norm.
    columns, shape (r, s): The rows that are predicted.
    """
    rank = Rank.of(T, share)
    if rank.values.size == 0:
        none = np.empty((T.shape[1], 0))
        return _Row(none, np.zeros((T.shape[1], T.shape[0])), np.zeros(len(columns)))
    if rank.values[-1] < 1e3 * off * rank.values[0] * len(coef):
        return None
    # With X = left σ right D, and D rightᵀ = Q S by QR, the inverse of X is Q S⁻ᵀ σ⁻¹ leftᵀ.
    Q, S = np.linalg.qr(rank.lengths[:, None] * rank.right.T)
    inverse = Q @ sla.solve_triangular(S, (rank.left / rank.values).T, trans="T")
    null = np.abs(columns - (columns @ Q) @ Q.T)
    turned = float(np.linalg.norm(inverse.T @ coef))
    return _Row(Q, inverse, 2.0 * off * (null @ np.linalg.norm(T, axis=0)) * turned)


def _moved_least_norm(
    R: Array,
    coef: Array,
    columns: Array,
    share: float,
    off: float,
    reach: float,
    residual: float,
) -> Array:
    """How far predictions of the fit of least norm move, if dependent columns stay dependent.

    Besides what :func:`_row_space` says, β moves by A⁺(e − Eβ) + (AᵀA)⁺Eᵀr to first order (Wedin
    1973). Twice that is taken.

    R, shape (s + 1, s + 1): The factor of the columns and of y.
    columns, shape (r, s): The rows that are predicted.
    """
    T = R[:-1, :-1]
    row = _row_space(T, coef, columns, share, off)
    if row is None:
        return np.full(len(columns), np.inf)
    along = columns @ row.inverse
    across = np.abs(along @ row.inverse.T) @ np.linalg.norm(T, axis=0)
    lost = np.linalg.norm(along, axis=1) * 2.0 * reach + across * residual
    return np.asarray(2.0 * off * lost + row.turned)


def _moved_within(
    R: Array,
    coef: Array,
    columns: Array,
    bounds: tuple[Array, Array],
    share: float,
    off: float,
    reach: float,
    residual: float,
) -> Array:
    """What :func:`_moved_least_norm` says of a fit within bounds.

    Nothing is claimed where columns with bounds are part of a dependence. Else the coefficients of
    the other columns are βF = Qc with an orthonormal basis Q of their row space, and c and the
    coefficients with bounds are those of independent columns. Such a fit moves by at most |R⁻ᵀ|
    times what its slope moves, R of those columns, and slopes that the fit has left moved it by at
    most |R⁻ᵀ| times their length.

    bounds: The least and the greatest coefficient of every column, shape (s,) each.
    """
    T, y = R[:-1, :-1], R[:-1, -1]
    free = np.isinf(bounds[0]) & np.isinf(bounds[1])
    held, nothing = ~free, np.full(len(columns), np.inf)
    row = _row_space(T[:, free], coef[free], columns[:, free], share, off) if free.any() else None
    if row is None:
        return nothing
    Q, lengths = row.basis, np.linalg.norm(T, axis=0)
    whole = triangle_of(np.column_stack([T[:, free] @ Q, T[:, held], y]))
    k = whole.shape[1] - 1
    if len(whole) <= k:
        return nothing
    inverse, inflation = inverse_and_inflation(whole[:k, :k])
    if not independent_columns(inflation, k * share):
        return nothing
    longest = np.append(np.abs(Q).T @ lengths[free], lengths[held])
    spread = float(longest @ np.sqrt(np.einsum("ij,ij->i", inverse, inverse)))
    V = np.column_stack([columns[:, free] @ Q, columns[:, held]]) @ inverse
    along = np.sqrt(np.einsum("ij,ij->i", V, V))
    slopes = whole[:, :k].T @ (whole[:, k] - whole[:, :k] @ np.append(Q.T @ coef[free], coef[held]))
    here, (low, high) = coef[held], (bounds[0][held], bounds[1][held])
    own = slopes[Q.shape[1] :]
    own[(here <= low) & (own < 0.0) | (here >= high) & (own > 0.0)] = 0.0
    left = _norm(inverse.T @ slopes)
    at = Sensitivity(along, along * spread, spread, off)
    return np.asarray(at.moved(reach, residual) + along * left + row.turned)


def _norm(values: Array) -> Array:
    """The length of a vector."""
    return np.asarray(np.sqrt(np.sum(np.square(values))))
