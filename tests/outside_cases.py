"""Problems that tests of the back ends outside share."""

from __future__ import annotations

import numpy as np
from brute_force import Data

from sparsecv.solvers import Solution, SparseRidgeProblem, solve


def problem_of(data: Data, tau: int) -> SparseRidgeProblem:
    return SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=tau)


def hard() -> tuple[SparseRidgeProblem, Solution]:
    """A problem its relaxation does not settle."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 12))
    problem = SparseRidgeProblem(X, rng.standard_normal(40), gamma=0.1, tau=4)
    return problem, solve(problem, tol=0.0)
