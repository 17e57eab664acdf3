"""Bounds on one fold's held-out error without solving its problem (Section 2, first paper).

h_j is the sum of squared errors of an optimal solution of fold j's training problem on the rows
that the fold holds out, at one γ and τ. Most functions bound h_j; :func:`fold_bounds` takes the
best of all bounds. An ellipsoid of Theorem 1 holds the optimal coefficients; it depends on ε, the
part of γ that its relaxation leaves out of the perspective term.

Theorems 1 and 2 and Corollary 1 concern the training problem alone:
:func:`sparsecv.solvers.ellipsoid` builds the ellipsoid of Theorem 1, and the ellipsoid's methods
``prediction_range`` (Theorem 2), ``spread_bound`` (Corollary 1) and ``error_range`` (problem 9)
follow from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Answer
from ..solvers.core.rounding import STEP_SHARE
from ..solvers.relaxation.ellipsoid import Ellipsoid, Spectrum, ellipsoid
from ..solvers.relaxation.gram import GramForm

Array = NDArray[np.float64]
Bounds = tuple[float, float]


def squared_error_bounds(low: Array, high: Array) -> tuple[Array, Array]:
    """Least and greatest square of numbers known to lie in [low, high]: Corollary 2, first paper.

    For a prediction in [ξ_lo, ξ_hi] call it with low = ξ_lo − y and high = ξ_hi − y. Squares are
    moved outwards by the share ``STEP_SHARE`` of themselves, which is more than their rounding.

    Parameters
    ----------
    low, high : arrays of one shape
        Ends of the intervals.

    Returns
    -------
    least, greatest : ndarrays of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> least, greatest = squared_error_bounds(np.array([-1.0, 2.0]), np.array([3.0, 4.0]))
    >>> least.round(6), greatest.round(6)
    (array([0., 4.]), array([ 9., 16.]))
    """
    least = np.maximum(np.maximum(low, -high), 0.0)
    return least**2 * (1.0 - STEP_SHARE), np.maximum(low**2, high**2) * (1.0 + STEP_SHARE)


def row_bounds(region: Ellipsoid, rows: ArrayLike, targets: ArrayLike) -> Bounds:
    """Bound h_j row by row: Theorem 2 with Corollary 2, first paper.

    Parameters
    ----------
    region : Ellipsoid
        A region that contains the optimal coefficients of the training problem (Theorem 1).
    rows, targets : arrays, shape (m, p) and (m,)
        The fold's held-out rows and responses.

    Returns
    -------
    lower, upper : float
        In the units of y².

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv import bounds
    >>> from sparsecv.solvers import SparseRidgeProblem, ellipsoid
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> training = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> rows, targets = np.array([[0.0, 1.0, 0.0, 0.0]]), np.array([2.5])
    >>> region = ellipsoid(training, training.objective([1, 3]))
    >>> low, high = bounds.row_bounds(region, rows, targets)
    >>> low <= (2.5 - 2.0) ** 2 <= high  # the optimum predicts 2
    True
    """
    t = np.asarray(targets, dtype=np.float64)
    low, high = region.prediction_range(rows)
    least, most = squared_error_bounds(low - t, high - t)
    return float(least.sum()), float(most.sum())


def spread_bounds(region: Ellipsoid, rows: ArrayLike, targets: ArrayLike) -> Bounds:
    """Bound h_j for the whole fold at once: Corollary 1, first paper, with W the held-out rows.

    Parameters
    ----------
    region : Ellipsoid
        Around a point, with the optimal coefficients inside (Theorem 1).
    rows, targets : arrays, shape (m, p) and (m,)
        The fold's held-out rows and responses.

    Returns
    -------
    lower, upper : float
        In the units of y².

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv import bounds
    >>> from sparsecv.solvers import SparseRidgeProblem, ellipsoid
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> training = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> rows, targets = np.array([[0.0, 1.0, 0.0, 0.0]]), np.array([2.5])
    >>> region = ellipsoid(training, training.objective([1, 3]))
    >>> low, high = bounds.spread_bounds(region, rows, targets)
    >>> low <= (2.5 - 2.0) ** 2 <= high  # the optimum predicts 2
    True
    """
    H = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    error = float(np.linalg.norm(np.asarray(targets, dtype=np.float64) - H @ region.centre))
    spread = float(np.sqrt(region.spread_bound(H)))
    return max(error - spread, 0.0) ** 2, (error + spread) ** 2


def region_bounds(region: Ellipsoid, rows: ArrayLike, targets: ArrayLike) -> Bounds:
    """Bound h_j by its least and greatest value over the ellipsoid: problem (9), first paper.

    At least as good as :func:`row_bounds` and :func:`spread_bounds`, whose bounds are taken where
    XᵀX is singular or so nearly that the least value loses its digits to the greatest.

    Parameters
    ----------
    region : Ellipsoid
        A region that contains the optimal coefficients of the training problem (Theorem 1).
    rows, targets : arrays, shape (m, p) and (m,)
        The fold's held-out rows and responses.

    Returns
    -------
    lower, upper : float
        In the units of y².

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv import bounds
    >>> from sparsecv.solvers import SparseRidgeProblem, ellipsoid
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> training = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> rows, targets = np.array([[0.0, 1.0, 0.0, 0.0]]), np.array([2.5])
    >>> region = ellipsoid(training, training.objective([1, 3]))
    >>> low, high = bounds.region_bounds(region, rows, targets)
    >>> low <= (2.5 - 2.0) ** 2 <= high  # the optimum predicts 2
    True
    """
    closed = row_bounds(region, rows, targets), spread_bounds(region, rows, targets)
    kinds = region.error_range(rows, targets), *closed
    return max(low for low, _ in kinds), min(high for _, high in kinds)


def objective_gap_bound(full_lower: float, fold_upper: float) -> float:
    """h_j ≥ u* − f^(N_j)(z): Corollary 3, first paper.

    Parameters
    ----------
    full_lower : float
        u*, or any lower bound on the optimal objective on all rows at the same γ and τ. All rows
        have to be the training and the held-out rows of the fold, each once.
    fold_upper : float
        Objective of any support of at most τ columns on the rows outside the fold.

    Returns
    -------
    float
        At least 0; the share ``STEP_SHARE`` of both numbers is taken off for their rounding.

    Examples
    --------
    >>> from sparsecv import bounds
    >>> round(bounds.objective_gap_bound(5.5, 5.25), 6)
    0.25
    """
    difference = full_lower - fold_upper
    return max(difference - STEP_SHARE * (abs(full_lower) + abs(fold_upper)), 0.0)


def bounds_along_gamma(gammas: Array, lower: Array) -> Array:
    """Lower bounds on a problem's optimum at every γ, from lower bounds at every γ.

    A support's objective is concave and increasing in γ and not negative at γ = 0, as it is the
    least of functions of γ that are straight lines, one for all coefficients that the constraints
    allow. So is the least objective of all supports. The least concave and increasing function
    above the given bounds is therefore a bound.

    gammas, shape (γ,), and lower, shape (γ, τ): γ ≥ 0, and bounds for every τ.
    Returns, shape (γ, τ): The bounds, lowered for rounding, by which they may be below ``lower``.
    """
    # At γ = 0 the bound is 0. The largest bound counts where a γ occurs several times.
    x, place = np.unique(np.append(0.0, gammas), return_inverse=True)
    known = np.zeros((x.size, lower.shape[1]))
    np.maximum.at(known, place[1:], lower)
    increasing = np.maximum.accumulate(known)
    for t, y in enumerate(increasing.T.tolist()):
        corners = [0]  # Of the least concave function, among the points seen so far.
        for i in range(1, x.size):
            while len(corners) > 1 and _is_below(x, y, corners[-2], corners[-1], i):
                corners.pop()
            corners.append(i)
        increasing[:, t] = np.interp(x, x[corners], np.array(y)[corners])
    return increasing[place[1:]] * (1.0 - STEP_SHARE)


def _is_below(x: Array, y: list[float], left: int, middle: int, right: int) -> bool:
    """Whether the middle one of three points of a curve is not above the other two's chord."""
    rise = (y[middle] - y[left]) * (x[right] - x[left])
    return bool(rise <= (y[right] - y[left]) * (x[middle] - x[left]))


def fold_bounds(
    training: SparseRidgeProblem,
    centres: Sequence[Array],
    full_lower: float,
    upper: float,
    rows: ArrayLike,
    targets: ArrayLike,
    *,
    spectrum: Spectrum | None = None,
) -> Bounds:
    """The best bounds on h_j, a fold's sum of squared held-out errors, from several ellipsoids.

    h_j is the sum for an optimal solution of the training problem. Every ellipsoid holds that
    solution, and so gives an interval that holds h_j; the intervals are intersected. An ellipsoid
    has a centre and a number ε, the part of γ that its relaxation leaves out of the perspective
    term. For each centre the intervals are those of problem (9) and Corollary 2 with ε = 0, with
    parts of γ (ε > 0, for what XᵀX does not see) and with parts of the least eigenvalue moved into
    the perspective (ε < 0). The lower bound is that of Corollary 3 where it is larger.

    Parameters
    ----------
    training : SparseRidgeProblem
        The problem without the fold, at the γ and τ of h_j and without constraints.
    centres : sequence of arrays, shape (p,)
        Coefficients near the optimum of a relaxation, at least one: the first without a diagonal
        taken from XᵀX, for ε ≥ 0, the last with one, for ε ≤ 0. Any coefficients give bounds.
    full_lower : float
        Lower bound on the optimal objective on the training and the held-out rows together; 0,
        which is always one, where they are not all rows.
    upper : float
        Objective of a support of at most τ columns on the training rows.
    rows, targets : arrays, shape (m, p) and (m,)
        The rows that the fold holds out.
    spectrum : Spectrum, optional
        Eigenvalues of the training rows' XᵀX, where the caller has them.

    Returns
    -------
    lower, upper : float
        Bounds on h_j.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv import bounds
    >>> from sparsecv.solvers import SparseRidgeProblem, perspective_relaxation
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> training = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> rows, targets = np.array([[0.0, 1.0, 0.0, 0.0]]), np.array([2.5])
    >>> full = SparseRidgeProblem(np.vstack([X, rows]), np.append(y, targets), gamma=1.0, tau=2)
    >>> centres, upper = [perspective_relaxation(training).beta], training.objective([1, 3])
    >>> bound = perspective_relaxation(full).bound
    >>> low, high = bounds.fold_bounds(training, centres, bound, upper, rows, targets)
    >>> low <= (2.5 - 2.0) ** 2 <= high  # the optimum predicts 2
    True
    """
    spectrum = spectrum or Spectrum.of(training)
    low, high = objective_gap_bound(full_lower, upper), np.inf
    for epsilon in spectrum.epsilons(training.gamma):
        near = centres
        if epsilon != 0.0:
            near = centres[-1:] if epsilon < 0.0 else centres[:1]
        for centre in near:
            region = ellipsoid(training, upper, epsilon=epsilon, beta=centre, spectrum=spectrum)
            least, most = region_bounds(region, rows, targets)
            low, high = max(low, least), min(high, most)
    return low, max(high, low)


def open_node_range(
    gram: GramForm,
    found: Answer,
    problem: SparseRidgeProblem,
    rows: Array,
    targets: Array,
    spectrum: Spectrum,
) -> Bounds:
    """Bound h_j from the open nodes of a search, in the union of one ellipsoid for every node.

    An optimal solution is the incumbent, or lies below an open node in the ellipsoid of Theorem 1
    around the coefficients of the node; ellipsoids of several ε are intersected. The result does
    not include the error of the incumbent.

    gram, spectrum: Gram form and eigenvalues of the training rows.
    found: The incumbent and the open nodes, of which there are some. Every support that is better
        than the incumbent lies below one of them.
    problem: A problem that has the γ and τ of the search.
    rows, targets: Held-out rows and responses of the fold, shape (m, p) and (m,), in the columns of
        ``gram``.
    """
    assert found.leaves is not None
    n_nodes = found.leaves.size
    low, high = np.zeros(n_nodes), np.full(n_nodes, np.inf)
    for epsilon in spectrum.epsilons(problem.gamma):
        regions = spectrum.regions(gram, problem, found, epsilon)
        ends = regions.prediction_ranges(rows)
        least, most = squared_error_bounds(*(end - targets for end in ends))
        low = np.maximum(low, least.sum(axis=1))
        high = np.minimum(high, most.sum(axis=1))
        # With at most this many open nodes a fold of several rows is bounded as a whole (problem
        # 9). That takes an optimisation for every node and every ε. With more open nodes every row
        # has a bound of its own. The number is a choice.
        if targets.size > 1 and n_nodes <= 30:
            for i in range(n_nodes):
                least_error, most_error = regions.one(i).error_range(rows, targets)
                low[i], high[i] = max(low[i], least_error), min(high[i], most_error)
    return float(low.min()), float(high.max())
