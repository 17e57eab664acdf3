"""One budget of coefficients for all equations of a system, against all allocations of sizes."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from support.tables import Array

from sparsecv.integrations.budget import solve_budget
from sparsecv.solvers import SparseRidgeProblem


def data(q: int, n: int = 30, p: int = 6) -> tuple[Array, Array]:
    """Columns about their means; every equation has columns and noise of its own."""
    rng = np.random.default_rng(q)
    X = rng.standard_normal((n, p))
    coef = rng.standard_normal((p, q)) * (rng.random((p, q)) < 0.6)
    Y = X @ coef + rng.standard_normal((n, q)) * np.linspace(0.2, 2.0, q)
    return X - X.mean(axis=0), Y - Y.mean(axis=0)


def equations(X: Array, Y: Array, gamma: float, tau: int) -> list[SparseRidgeProblem]:
    return [SparseRidgeProblem(X, y, gamma=gamma, tau=tau) for y in Y.T]


def least_by_size(X: Array, y: Array, gamma: float) -> list[float]:
    """The least objective of every size 0..p, by all subsets."""

    def objective(S: tuple[int, ...]) -> float:
        A = X[:, S]
        beta = np.linalg.solve(A.T @ A + gamma / 2.0 * np.eye(len(S)), A.T @ y)
        return float(np.sum((y - A @ beta) ** 2) + gamma / 2.0 * beta @ beta)

    p = X.shape[1]
    return [min(map(objective, combinations(range(p), k))) for k in range(p + 1)]


@pytest.mark.parametrize("gamma", [0.0, 1.0])
@pytest.mark.parametrize(("q", "tau", "total"), [(2, 6, 1), (2, 3, 5), (3, 6, 7), (3, 2, 4)])
def test_one_budget_for_all(q: int, tau: int, total: int, gamma: float) -> None:
    X, Y = data(q)
    problems = equations(X, Y, gamma, tau)
    found = solve_budget(problems, total)
    least = [least_by_size(X, y, gamma) for y in Y.T]
    sizes = product(range(tau + 1), repeat=q)
    best = min(
        sum(f[k] for f, k in zip(least, at, strict=True)) for at in sizes if sum(at) <= total
    )
    assert found.objective == pytest.approx(best, rel=1e-6)
    assert best * (1.0 - 2e-6) <= found.lower_bound <= best * (1.0 + 1e-9)
    assert (found.status, found.gap <= 1e-6) == ("optimal", True)
    supports = [proof.support for proof in found.answers]
    assert sum(map(len, supports)) <= total
    assert max(map(len, supports)) <= tau
    attained = [one.objective(S) for one, S in zip(problems, supports, strict=True)]
    assert found.objective == pytest.approx(sum(attained))


@pytest.mark.parametrize("total", [4, 6, 12])
def test_a_budget_that_leaves_no_residual_is_proved(total: int) -> None:
    """At γ = 0, with more columns than rows, bounds stay below objectives by rounding alone."""
    found = solve_budget(equations(*data(2, n=5), 0.0, 6), total)
    assert found.status == "optimal"
    assert found.lower_bound <= found.objective
    if total == 12:
        assert found.objective <= 1e-20


def test_limits_bracket_the_total() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 60)) + rng.standard_normal((60, 1))
    Y = X[:, ::4] @ rng.standard_normal((15, 2)) + 6.0 * rng.standard_normal((60, 2))
    found = solve_budget(equations(X, Y, 1e-3, 60), 24, time_limit=0.01)
    assert found.status == "time limit"
    assert 0.0 <= found.lower_bound < found.objective
    assert sum(proof.support.size for proof in found.answers) <= 24
