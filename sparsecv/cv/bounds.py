"""Bounds on one fold's held-out error for whoever calls Python: those of Section 2, first paper.

The module adds the first paper's Algorithm 2 (:func:`compute_bounds`) to the bounds by which
intervals are made (:mod:`sparsecv.cv.fold_bounds`), and has all of them under one name. Without it
a fit has the same intervals, and nobody could compare them with the paper's.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.relaxation.ellipsoid import Spectrum, ellipsoid
from ..solvers.relaxation.perspective import Relaxation
from .fold_bounds import (
    Bounds,
    fold_bounds,
    objective_gap_bound,
    region_bounds,
    row_bounds,
    spread_bounds,
    squared_error_bounds,
)

__all__ = [
    "compute_bounds",
    "fold_bounds",
    "objective_gap_bound",
    "region_bounds",
    "row_bounds",
    "spread_bounds",
    "squared_error_bounds",
]


def compute_bounds(
    training: SparseRidgeProblem,
    relaxation: Relaxation,
    full_lower: float,
    upper: float,
    rows: ArrayLike,
    targets: ArrayLike,
    *,
    epsilon: float = 0.0,
    spectrum: Spectrum | None = None,
) -> Bounds:
    """Bound one fold's error by Algorithm 2 of the first paper (its last line corrected).

    The bounds are those of Theorem 2 and Corollary 2 around the fold's relaxation; the lower bound
    is that of Corollary 3 where it is larger.

    Parameters
    ----------
    training : SparseRidgeProblem
        The problem without the fold.
    relaxation : Relaxation
        Its perspective relaxation at ``epsilon``.
    full_lower : float
        Lower bound on the optimal objective on all rows (v̄ in the paper); 0 where the training and
        the held-out rows are not all rows.
    upper : float
        Objective of a rounded support on the training rows (u).
    rows, targets : arrays, shape (m, p) and (m,)
        The rows that the fold holds out.
    epsilon : float
        The part of γ that the relaxation and the ellipsoid leave out of the perspective term.
    spectrum : Spectrum, optional
        Eigenvalues of the training rows' XᵀX, where the caller has them.

    Returns
    -------
    lower, upper : float
        Bounds on the sum of squared errors, in the units of y².

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv import bounds
    >>> from sparsecv.solvers import SparseRidgeProblem, perspective_relaxation
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> training = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> rows, targets = np.array([[0.0, 1.0, 0.0, 0.0]]), np.array([2.5])
    >>> full = SparseRidgeProblem(np.vstack([X, rows]), np.append(y, targets), gamma=1.0, tau=2)
    >>> relaxation, upper = perspective_relaxation(training), training.objective([1, 3])
    >>> bound = perspective_relaxation(full).bound
    >>> low, high = bounds.compute_bounds(training, relaxation, bound, upper, rows, targets)
    >>> low <= (2.5 - 2.0) ** 2 <= high  # the optimum predicts 2
    True
    """
    region = ellipsoid(training, upper, epsilon=epsilon, beta=relaxation.beta, spectrum=spectrum)
    low, high = row_bounds(region, rows, targets)
    return max(low, objective_gap_bound(full_lower, upper)), high
