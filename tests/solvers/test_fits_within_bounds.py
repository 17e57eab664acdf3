"""Fits of many supports within bounds at once, each of which starts from the fit before."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from support.inside import fit_supports

from sparsecv import Constraints
from sparsecv.solvers import SparseRidgeProblem


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("seed", range(6))
def test_each_fit_is_the_best_within_bounds_whatever_stood_before_it(
    seed: int, offset: float
) -> None:
    """Supports follow one another that contain the one before, that overlap, and that do not."""
    random = np.random.default_rng(seed)
    n, p = 25, 60 if seed % 2 else 12
    X = random.standard_normal((n, p))
    X[:, 3] = X[:, 2] + 1e-3 * X[:, 3]
    X[:, 5] = -X[:, 4]
    X += offset * (random.random(p) < 0.1)
    y = X[:, :4] @ [1.0, -1.0, 2.0, 1.0] + random.standard_normal(n)
    bounds = {j: ((-0.3, 0.2), (0.0, np.inf), (-np.inf, 0.1))[j % 3] for j in range(p)}
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=8, constraints=Constraints(bounds=bounds))
    gammas, most = np.array([1e-3, 1.0, 100.0]), 8
    supports = np.full((gammas.size, 9, most), -1)
    for g in range(gammas.size):
        order = random.permutation(p)
        for t in range(9):
            one = order[: t + 1] if t < 4 else random.permutation(p)[: 1 + t % most]
            supports[g, t, : one.size] = np.sort(one)
    coef, objective = fit_supports(problem, gammas, supports)
    low, high = np.array([bounds[j] for j in range(p)]).T
    for g, gamma in enumerate(gammas):
        for t, row in enumerate(supports[g]):
            one = row[row >= 0]
            A = np.vstack([X[:, one], np.sqrt(gamma / 2.0) * np.eye(one.size)])
            right = np.append(y, np.zeros(one.size))
            best = lsq_linear(A, right, (low[one], high[one]), method="bvls", tol=1e-14)
            found = coef[g, t, : one.size]
            assert ((low[one] <= found) & (found <= high[one])).all()
            value = ((A @ found - right) ** 2).sum()
            assert value <= 2.0 * best.cost * (1.0 + 1e-9)
            assert objective[g, t] == pytest.approx(value, rel=1e-7)
