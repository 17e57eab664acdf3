"""What any coefficients prove of every optimal support: bounds, and columns in or out (EC.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from .dual_bound import IN, OUT
from .relaxer import Relaxer

# Columns are fixed where the bound exceeds the objective by this share of yᵀy: what a fresh fit of
# an objective may be off by. Twice as much fixes fewer columns.
OBJECTIVE_SHARE = 1e-10


@dataclass(frozen=True)
class Screening:
    """Columns fixed for the problem's τ (and for no other τ).

    ``included`` are in every optimal support, ``excluded`` in none that an optimum needs: every
    optimal support of size τ is made of included columns and free ones.
    """

    included: NDArray[np.intp]
    excluded: NDArray[np.intp]
    bound: float


def checked_beta(problem: SparseRidgeProblem, beta: ArrayLike) -> Array:
    """Validate coefficients.

    beta, shape (p,).
    Returns, shape (p,).
    Raises ValueError: Not p finite numbers.
    """
    values = np.asarray(beta, dtype=np.float64)
    if values.shape != (problem.p,) or not np.isfinite(values).all():
        raise ValueError(f"beta must be {problem.p} finite numbers; got shape {values.shape}")
    return values


def screen(problem: SparseRidgeProblem, beta: ArrayLike, upper: float) -> Screening:
    """Fix columns by a dual bound at any coefficients and a feasible objective.

    With v_i = (2/γ)(s·x_iᵀr)², r = y − Xβ and the best scale s, the bound is
    2s·rᵀy − s²||r||² − (sum of the τ largest v). Forcing column i in replaces the τ-th largest v
    by v_i, forcing it out brings in the (τ+1)-th; where that lifts the bound above ``upper`` no
    optimum does it. The printed rule has the scaling of another paper; this is eq. (1)'s.

    Parameters
    ----------
    problem : SparseRidgeProblem
        Its τ is the one screened for.
    beta : array, shape (p,)
        Best near the optimum of the perspective relaxation.
    upper : float
        Objective of any support of at most τ columns.

    Returns
    -------
    Screening

    Raises
    ------
    ValueError
        ``beta`` is not p finite numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, perspective_relaxation, screen
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> found = screen(problem, perspective_relaxation(problem).beta, problem.objective([1, 3]))
    >>> found.included, found.excluded
    (array([1]), array([2]))
    """
    relaxer = Relaxer.of(problem, None, np.arange(problem.p))
    relaxer.start(checked_beta(problem, beta), 0.0)
    bound = relaxer.bound()
    # strictly above: an optimum as good as ``upper`` is one of those that are asked for
    target = np.nextafter(upper + OBJECTIVE_SHARE * problem.yy + problem.data_loss(upper), np.inf)
    state, _ = relaxer.decided(bound, target)
    return Screening(np.flatnonzero(state == IN), np.flatnonzero(state == OUT), bound)
