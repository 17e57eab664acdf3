"""Screening (EC.1, first paper): columns that are in every, or in no, optimal support."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import Array
from .dual_bound import IN, OUT
from .relaxer import Relaxer

# A column is fixed where the bound for the opposite exceeds the given objective by this share of
# yᵀy, which is more than the objective may be off by rounding.
OBJECTIVE_SHARE = 1e-10


@dataclass(frozen=True)
class Screening:
    """Columns fixed for one τ, and a certified lower bound on the optimal objective.

    Attributes
    ----------
    included, excluded : ndarray of int
        Columns that are in every optimal support of size τ, and columns that are in none.
    bound : float
        Proved lower bound on the optimal objective.
    """

    included: NDArray[np.intp]
    excluded: NDArray[np.intp]
    bound: float


def checked_beta(problem: SparseRidgeProblem, beta: ArrayLike) -> Array:
    """The coefficients as an array (p,); a ValueError where they are not p finite numbers."""
    values = np.asarray(beta, dtype=np.float64)
    if values.shape != (problem.p,) or not np.isfinite(values).all():
        raise ValueError(f"beta must be {problem.p} finite numbers; got shape {values.shape}")
    return values


def screen(problem: SparseRidgeProblem, beta: ArrayLike, upper: float) -> Screening:
    """Find columns of every optimal support, or of none, by a dual bound at any coefficients.

    With r = y − Xβ, the best scale s and v_i = (2/γ)(s·x_iᵀr)², the bound is
    2s·rᵀy − s²‖r‖² − (sum of the τ largest v). With column i included, v_i replaces the τ-th
    largest v; with column i excluded, the (τ+1)-th replaces v_i. Where that bound is above
    ``upper``, no optimum includes, or excludes, column i. The scaling is that of eq. (1); the rule
    printed in the first paper has the scaling of another paper.

    Parameters
    ----------
    problem : SparseRidgeProblem
        The result holds for this problem's τ.
    beta : array, shape (p,)
        Any coefficients; those that solve the perspective relaxation fix the most columns.
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
    problem.refuse_constraints("screen")
    relaxer = Relaxer.of(problem, None, np.arange(problem.p))
    relaxer.start(checked_beta(problem, beta), 0.0)
    bound = relaxer.bound()
    # strictly above ``upper``, as an optimum may have the objective ``upper``
    target = np.nextafter(upper + OBJECTIVE_SHARE * problem.yy + problem.data_loss(upper), np.inf)
    state, _ = relaxer.decided(bound, target)
    return Screening(np.flatnonzero(state == IN), np.flatnonzero(state == OUT), bound)
