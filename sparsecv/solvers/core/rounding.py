"""What rounding may do to objectives, and to bounds on them: every margin that is taken off.

A computed fit is the exact fit of columns and a response that are off by a share ``Rows.off`` of
their lengths. The functions here say how far that moves an objective, for any fit, for the fit of a
given support, for all fits of a tree, and for what a search with a larger γ finds. What rounding
does to errors on other rows is in :mod:`~.error_margin`, and to the dual bound in
``relaxation.dual_bound``.

**How large Σ ℓ_j|β_j| may be.** Two bounds hold for every support that may be optimal, and the
smaller one is used:

- Σ ℓ_j|β_j| ≤ |y| Σ √v_j, where v_j is the variance inflation factor of column j beside all columns
  (with the ridge): beside fewer columns the factor is smaller, and |β_j| is at most |y| times the
  root of the j-th diagonal entry of (XᵀX + γ/2 I)⁻¹;
- Σ ℓ_j|β_j| ≤ 2√(f Σ ℓ_j²/γ), as (γ/2)|β|² is at most the objective. Along a range of γ the
  difference f − g takes the place of f, where g is the least objective on all columns at γ/2, less
  its rounding: then (γ/4)|β|² ≤ f − g.

A group of several columns X without bounds enters a tree as XV, where X = USVᵀ: its columns are
then orthogonal, and the penalty is the same. Rounding of these columns is relative to the largest
singular value of the group, which takes the place of ℓ_j in both bounds. Columns of XV that are
left out may together take 2s/γ of an objective, s the sum of their squared lengths, which is taken
off every bound (at γ = 0 they count as 0). Within bounds on coefficients the first bound is
doubled, as such a fit explains at most ‖Xβ‖ ≤ 2|y|. The margin has no cap. A size of all columns is
proved by being the only support, unless coefficients have bounds.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..kernels.linalg import EPS, Array
from .problem import SparseRidgeProblem
from .rows import DEPENDENT_SHARE, LOST_SHARE, NOTHING_LEFT_OF_YY
from .subset_fit import inflation_factors

# A support counts as proved optimal where rounding leaves no other support more than this share of
# the objective below it, besides the second share, of yᵀy, for fits that leave only rounding errors
# of y.
CERTAIN_SHARE, CERTAIN_SHARE_OF_YY = 1e-5, 1e-20
# Sums and updates from node to node lose at most this share of an objective, as a node is computed
# anew where it has lost four digits: some 1e-12 in tests.
UPDATED_SHARE = 1e-11
# Supports in a tree tie, so that fresh fits compare them, where their losses differ by a share of
# at most ``UPDATED_SHARE`` and so much for each unit of the largest variance inflation factor, or
# by the second number if that is less. What is proved does not depend on this window.
TIED_PER_INFLATION, MOST_TIED = 20.0 * EPS, 1e-5
# A bound by branch and bound, or by another solver, gives up this share of itself, and a fit that
# is the bound besides the second share, of yᵀy. A bound of an unfinished tree has to exceed an
# incumbent by the first share to count as proof; an incumbent is optimal where a bound is within
# that share of it; and the share replaces a smaller gap at which a caller wants nodes to be pruned.
# Both are choices, far above rounding.
BOUND_SHARE, FITTED_SHARE_OF_YY = 1e-9, 1e-12
# Ranges of predictions and ellipsoids are widened by ``BOUND_SHARE`` of their widths, those of open
# nodes also by that of their numbers. Squares are widened by the first share here, of yᵀy, and
# predictions by the second share of themselves. The formulas lose some 1e-15 to 1e-13 of the same
# numbers, and the shares are choices.
WIDENED_SHARE_OF_YY, WIDENED_SHARE_OF_CENTRE = 1e-13, 1e-12
# A square, or a difference of two numbers, of intervals of errors is widened by this share; so is a
# product of up to three numbers lowered. Either takes at most four roundings of relative error
# 1.1e-16, less than half of the share together.
STEP_SHARE = 1e-15
# Sums of floating-point numbers are taken to be off by at most this share of the sum of their
# absolute values. A sum of m terms is off by at most m times 1.1e-16, so that this serves sums of
# up to 9,000 terms. Longer sums take a larger share (``cv.error_bounds.bound_cell``).
SUM_SHARE = 1e-12
# CV errors whose relative difference is at most this share count as equal, as rounding may have
# caused the difference. Two errors in a comparison may each be off by as much, so that the least
# error counts as proved where no lower bound is below it by more than twice this share (in cv/needs
# and in selection/claims). The ledger also takes a proved support in place of a fold's answer
# only where that lowers the training objective by more than this share, a list of near-best
# supports takes values that rounding explains up to this share above its limit, and certificates
# show that the objectives of other subsets are larger by more than this share. A number that is
# compared with a whole one, or a logarithm, may be off by as much. It is a choice.
EQUAL_SHARE = 1e-9
# Outside solvers see objectives less yᵀy, and round relative to yᵀy. The share is a choice.
SOLVER_SHARE_OF_YY = 2e-9
# A column is screened out where its bound exceeds an objective by more than this share of yᵀy, as
# an objective may be off by less than that. It is a choice.
SCREENED_SHARE_OF_YY = 1e-10
# The part of a squared length that lies along singular vectors, or beside them, is off by at most
# this share of the whole; so is an objective less what a deleted row takes, as a share of both.
# Sums of 100 terms lose a tenth of the share. It is a choice.
DIFFERENCE_SHARE = 1e-13
# What exchanging a column changes in an objective is off by less than this share of yᵀy times the
# root of a column's variance inflation factor. It is a choice.
EXCHANGED_SHARE_OF_YY = 1e-14
# Where every row of a response is one that a tree leaves out, a row is skipped if what the others
# have of yᵀy is below this share of it, as then it has fewer than six correct digits. A column of
# which others leave at most this share of the squared length, the ridge counted with both, leaves
# XᵀX six digits, too few for a proof by the relaxation. The held-out rows of a grid of γ are fitted
# to five digits where the least CV error is at most this share of the largest. Choices.
SIX_DIGITS_OF_SQUARES = 1e-10
# A column that others determine up to this share of its length has no coefficient of its own for
# inference. The value is a choice: rounding a table moves angles by some 1e-16.
OWN_SHARE = 1e-10
# A column counts as one that a dependence touches where its entry in a null vector of length 1 is
# above this number. Rounding makes of 0 some 1e-15; a smaller limit costs time alone.
TOUCHED = 1e-12
# Principal components of a group that are shorter than this share of the group's length are left
# out, and count as rounding of the data.
COMPONENT_SHARE = 1e-14
# A singular value of X, or an eigenvalue of XᵀX, of at most this share of the largest counts as 0
# in an ellipsoid, and the ridge alone bounds β along its direction.
UNSEEN_SHARE = 1e-11
# The steps towards a diagonal that is extracted need a regular matrix: XᵀX gets this share of its
# largest eigenvalue besides. What D may be too large by is taken off again. It is a choice.
SHIFT_SHARE = 1e-8
# A claimed objective of a certificate is lowered by this share and written with 12 digits. The
# share exceeds what rounding of the objective (some 1e-13 of it) and of the digits (5e-12) may add.
# It is a choice.
CLAIMED_BELOW = 2e-11
# A leaf of a certificate is written where its bound, in floating point, exceeds what it has to
# reach by this share of yᵀy: what rounding may add in sums of some thousand products.
WRITTEN_SHARE_OF_YY = 1e-11
# The checker of certificates wants the eigenvalues of G − D above 1e-13 of the largest, and adds up
# what rounding leaves. A diagonal is used where they exceed this share in floating point. It is a
# choice.
LEAST_EIGENVALUE_SHARE = 1e-12
# Rounding moves the predictions of a fit by at most this share of the length of y: some ten times
# what LEAST_SINGULAR_VALUE_OF_QUICK_FITS says, below which rows that are removed are not looked at.
MOVED_SHARE = 1e-9
# A CV error is called exact only where its margin is at most this share of it. The share is far
# below what a user reads of an error, and far above what rounding takes of one where columns are
# not nearly dependent, some 1e-12. It is a choice.
EXACT_SHARE = 1e-6
# The formula of ``error_margin`` holds for η < 1. Beyond this number nothing is claimed. It is a
# choice.
MOST_ETA = 0.5
# Where 1 − h is smaller, h the leverage of a row in the fit on all rows, deleting the row from that
# fit has no margin here, and the fold has to be looked at alone. It is a choice.
LEAST_LEFT = 1e-6
# The factor at γ = 0 bounds the margins of all columns where its Σ ℓ_j |row j of R⁻¹| is at most
# this number. Margins are then below 1e-8 of most errors. It is a choice.
MOST_SPREAD_WITHOUT_RIDGE = 1e3


class Searched(Protocol):
    """What a tree of all sizes says of its own rounding.

    reach, inflation: Σ ℓ_j|β_j| + |y| is at most ``reach`` times |y| in the fits of all nodes, and
        the variance inflation factors of all columns add up to ``inflation``.
    stretch: What :func:`coefficient_spread` is multiplied by for the tree.
    """

    @property
    def reach(self) -> float: ...
    @property
    def inflation(self) -> float: ...
    @property
    def stretch(self) -> float: ...
    def left_out(self, at: SparseRidgeProblem) -> float:
        """The share of an objective by which supports that were passed over may be better."""


def tree_margin(problem: SparseRidgeProblem, objective: Array, tree: Searched) -> Array:
    """What rounding in a tree, and a working γ, may add to these objectives; of the same shape."""
    spread = tree.stretch * coefficient_spread(problem)
    reach, working, updates = tree.reach, working_reach(problem, tree.stretch), 0.0
    if working < reach:
        # What column j adds to a loss is off by at most 2u√(v_j·added·full), v_j its inflation and
        # ``full`` the objective of all columns, so that a loss is off by 2u√(Σ v_j) of an objective
        # at most. Twice that is taken. The other reach is far above it.
        reach, updates = working, 2.0 * EPS * math.sqrt(tree.inflation)
    margin = rounding_margin(objective, problem.yy, reach, spread, problem.data.off)
    margin += (tree.left_out(problem) + updates) * objective
    return np.asarray(margin + problem.zero_loss(objective))


def rounding_margin(
    value: Array,
    yy: float | Array,
    reach: float | Array,
    spread: float | Array,
    off: float,
    least: float | Array = 0.0,
) -> Array:
    """What is taken off a bound f for rounding: 1e-11 f + 2√f δ + δ², δ = off·(|y| + Σ ℓ_j|β_j|).

    A computed fit is exact for columns and y that are off by the share ``off`` of their lengths, so
    that the root of f is off by δ. The sum is at most reach·|y|, and at most |y| + spread·√f, as a
    support that is better than the best known has (γ/2)|β|² ≤ f. It also has (γ/4)|β|² ≤ f − g, if
    no coefficients have an objective below g at γ/2, so that √(f − g) may take the place of √f.
    The module's docstring says what bounds the sum.

    value: Objectives f; the result has the same shape.
    yy: yᵀy.
    reach: The number ``reach`` of a tree, see ``depth_first.begin``.
    spread: The number :func:`coefficient_spread` of the problem; ∞ where γ does not bound β.
    off: ``Rows.off`` of the problem's data.
    least: The number g, where searches work with the given γ; 0 says nothing.
    """
    length, above = np.sqrt(yy), np.maximum(value - least, 0.0)
    # Where reach or spread is ∞ and has the factor 0, fmin takes the other number.
    delta = off * np.fmin(length * reach, length + spread * np.sqrt(above))
    return UPDATED_SHARE * value + 2.0 * np.sqrt(value) * delta + delta * delta


def left_of_perfect_fits(n: float, squares: float) -> float:
    """What rounding may leave of a sum of n squared errors where a fit is perfect.

    squares: The sum of the squares of what is predicted.
    """
    return n * EPS * squares


def exact_margin(errors: Array, room: float | Array = 0.0) -> Array:
    """The largest margins at which errors are called exact: a share of each, and ``room``.

    room: What rounding may leave of the error of a perfect fit.
    """
    return EXACT_SHARE * errors + room


def share_of_products(terms: int) -> float:
    """A sum of so many products is off by at most this share of the sum of their absolute values.

    That is four times what terms + 8 roundings of EPS/2 lose.
    """
    return 2.0 * (terms + 8) * EPS


def eigenvalue_loss(size: int, scale: float) -> float:
    """What computed eigenvalues of a symmetric matrix, or singular values, may be off by.

    That is a small multiple of size·u times their largest absolute value (backward stability), for
    which 8 size·u is taken; also by so much Cholesky's method may hide that the least eigenvalue is
    below 0 (Rump 2006).

    size: The number of rows of the matrix, or of rows and columns together.
    scale: The largest absolute value of an eigenvalue, at least, such as the trace of XᵀX.
    """
    return 4.0 * size * EPS * scale


def projection_loss(columns: int, picks: int) -> float:
    """What QR of a factor and projections on picked columns move a column by, as a share of it.

    QR loses at most EPS for each of the columns of the factor, and elimination and projection at
    most 8 EPS for each of the picked columns.
    """
    return EPS * (columns + 8.0 * (picks + 2.0))


def coefficient_spread(problem: SparseRidgeProblem, gamma: float | None = None) -> float:
    """2√(Σ ℓ_j²/γ): Σ ℓ_j|β_j| of a fit of objective 2f is at most this number times √f.

    The working γ at most doubles the objective of a support whose status may be optimal.

    gamma: By default the γ that searches work with.
    """
    return 2.0 * math.sqrt(
        problem.data.sum_of_squares / (problem.gamma if gamma is None else gamma)
    )


def working_reach(problem: SparseRidgeProblem, stretch: float = 1.0) -> float:
    """An upper bound on (|y| + Σ ℓ_j|β_j|)/|y| for optimal fits; ∞ where nothing bounds β.

    Here β are the coefficients at the problem's working γ, and ℓ_j the columns' lengths.

    stretch: What lengths of columns are multiplied by for what rounding moves them by.
    """
    length, most = math.sqrt(problem.yy), problem.longest_coefficients(stretch)
    if length == 0.0 or math.isinf(most):
        return math.inf
    return 1.0 + stretch * math.sqrt(problem.data.sum_of_squares) * most / length


def certain(objective: Array, margin: Array, yy: float | Array, off: float) -> NDArray[np.bool_]:
    """Whether a margin for rounding is so small that a finished search counts as proof.

    off: ``Rows.off`` of the data. In a long table rounding hides a larger share of yᵀy, which is
        1.2e6·off²: see :func:`all_certain`.
    """
    share = max(CERTAIN_SHARE_OF_YY, 1.2e6 * off * off)
    small = margin <= CERTAIN_SHARE * objective + share * yy
    return np.asarray(small | (objective <= NOTHING_LEFT_OF_YY * yy))


def all_certain(problem: SparseRidgeProblem, spread: float) -> bool:
    """Whether :func:`rounding_margin` is small enough for :func:`certain` at every objective f.

    Of the margin, 2√f·off·spread·√f is at most 0.9e-5 f here, and 2√f·off·|y| is at most
    0.9e-6 f + off²yᵀy/0.9e-6. Nothing is said of matrices that were given, which are off as well.
    """
    return problem.data.gram is None and 2.0 * problem.data.off * spread <= 0.9e-5


def attained_margin(problem: SparseRidgeProblem, upper: Array) -> Array:
    """By how much a search may put the objective of an optimum too high, where that is ≤ ``upper``.

    The result has the shape of ``upper``. The optimum is that at the given γ. The working γ adds at
    most ``added_at_given`` to its objective, or ``zero_loss`` where that is larger.
    Rounding of the factor adds :func:`rounding_margin`. Where the working γ is the larger one, it
    does not bound the coefficients. Σ ℓ_j|β_j| ≤ √p ``_reach`` does, or the given γ where columns
    are dependent up to rounding.
    """
    reach, spread, added = np.inf, coefficient_spread(problem), 0.0
    if problem.gamma > problem.given_gamma:
        length, added = math.sqrt(problem.yy) or 1.0, problem.added_at_given(float(np.max(upper)))
        reach, spread = 1.0 + math.sqrt(problem.p) * problem._reach() / length, np.inf
        if problem.given_gamma > 0.0 and problem.moved > 0.0:
            reach, spread = np.inf, coefficient_spread(problem, problem.given_gamma)
    with np.errstate(invalid="ignore"):
        margin = rounding_margin(upper, problem.yy, reach, spread, problem.data.off)
    margin += np.maximum(problem.zero_loss(upper), added)
    return np.minimum(margin, 1e300)  # Ranges multiply it with numbers that may be 0.


def support_bound(
    problem: SparseRidgeProblem, support: NDArray[np.intp], given_gamma: bool = False
) -> float:
    """A lower bound on the exact objective of a support: that of its fit less rounding; at least 0.

    The margin is :func:`rounding_margin` with the variance inflation factors of the support: where
    columns nearly depend on each other the bound may be 0.

    support: Increasing columns; there may be none.
    given_gamma: Whether no working γ bounds the coefficients, as the bound is for the given γ.
    """
    gamma = problem.given_gamma if given_gamma else problem.gamma
    fit, reach = problem.fit(support), _reach_of(problem, support, gamma)
    spread = coefficient_spread(problem, gamma) if gamma > 0.0 else math.inf
    share = DEPENDENT_SHARE if problem.given_gamma == 0.0 else LOST_SHARE
    if gamma < problem.gamma and reach > 3.0 * support.size / share:
        # Columns count as dependent: their fit is that of some that are not.
        length = math.sqrt(problem.yy) or 1.0
        reach = 1.0 + math.sqrt(support.size) * problem._reach() / length
    if math.isinf(reach) and math.isinf(spread):
        return 0.0
    with np.errstate(invalid="ignore"):
        off = problem.data.off
        margin = rounding_margin(np.array(fit.objective), problem.yy, reach, spread, off)
    return max(float(fit.objective - fit.lacking - margin), 0.0)


def _reach_of(
    problem: SparseRidgeProblem, columns: NDArray[np.intp], gamma: float | None = None
) -> float:
    """A bound on (Σ ℓ_j|β_j| + |y|)/|y| of the fit on s columns; ∞ where their rank is less.

    gamma: By default the γ that searches work with.
    """
    s = columns.size
    factors = inflation_factors(problem.factor(columns, gamma)[:s, :s])
    return 1.0 + 2.0 * float(np.sqrt(factors).sum())
