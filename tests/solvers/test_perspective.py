"""The perspective relaxation: certificates, a conic solver, and bounds from any coefficients."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.brute_force import optimum
from support.fresh import examples
from support.inside import GramForm, LeftOut, Limits
from support.problems import regression

from sparsecv.solvers import SparseRidgeProblem, perspective_relaxation, relaxation_path, screen


def random_problem(seed: int, most: int = 9) -> SparseRidgeProblem:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 20)), int(rng.integers(1, most + 1))
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    if p > 2 and rng.random() < 0.3:
        X[:, 1] = X[:, 0]
    if p > 3 and rng.random() < 0.2:
        X[:, 3] = 0.0
    gamma = 10.0 ** rng.uniform(-4, 4)
    return SparseRidgeProblem(X, y, gamma=gamma, tau=int(rng.integers(1, p + 1)))


@settings(max_examples=examples(150))
@given(st.integers(0, 2**32 - 1), st.booleans(), st.floats(0.0, 0.9))
def test_bound_below_value_and_below_the_optimum(seed: int, extract: bool, part: float) -> None:
    problem = random_problem(seed)
    found = perspective_relaxation(problem, epsilon=part * problem.gamma, extract=extract)
    best = optimum(problem)
    assert found.bound <= found.value
    assert found.bound <= best * (1 + 1e-12)
    assert found.z.min() >= 0.0
    assert found.z.max() <= 1.0
    assert found.z.sum() <= problem.tau * (1 + 1e-9)
    assert (found.z[found.beta != 0.0] > 0.0).all()
    # the value is the relaxation's objective at (β, z)
    if not extract:
        epsilon = part * problem.gamma
        used = found.beta != 0.0
        residual = problem.triangle[:, -1] - problem.triangle[:, :-1] @ found.beta
        value = residual @ residual + epsilon / 2 * found.beta @ found.beta
        value += (problem.gamma - epsilon) / 2 * np.sum(found.beta[used] ** 2 / found.z[used])
        assert value == pytest.approx(found.value, rel=1e-6, abs=1e-9 * problem.yy)
    if found.converged:
        assert found.value <= best * (1 + 2e-8) + 1e-11 * problem.yy


def test_converges_on_most_and_says_where_not() -> None:
    rng = np.random.default_rng(0)
    reached = 0
    for seed in range(100):
        n, p = int(rng.integers(5, 50)), int(rng.integers(2, 40))
        problem = SparseRidgeProblem(
            rng.normal(size=(n, p)),
            rng.normal(size=n),
            gamma=10.0 ** rng.uniform(-2, 4),
            tau=int(rng.integers(1, p + 1)),
        )
        found = perspective_relaxation(problem)
        reached += found.converged
        assert found.converged == (found.gap <= 2e-8), seed
    assert reached >= 95


def test_path_and_warm_start_reach_the_same_values() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(50, 20)), rng.normal(size=50)
    problem = SparseRidgeProblem(X, y, gamma=2.0, tau=20)
    path = relaxation_path(problem, range(1, 21))
    alone = [perspective_relaxation(problem.replace(tau=t)) for t in range(1, 21)]
    for one, other in zip(path, alone, strict=True):
        assert one.value == pytest.approx(other.value, rel=3e-8)
    values = [one.value for one in path]
    assert all(a >= b * (1 - 1e-7) for a, b in itertools.pairwise(values))
    assert values[-1] == pytest.approx(problem.objective(np.arange(20)), rel=1e-7)


def test_agrees_with_a_conic_solver() -> None:
    cvxpy = pytest.importorskip("cvxpy", reason="cvxpy (extra mosek) is not installed")
    rng = np.random.default_rng(3)
    for _ in range(12):
        n, p = int(rng.integers(4, 25)), int(rng.integers(2, 15))
        X, y = rng.normal(size=(n, p)), rng.normal(size=n)
        gamma = 10.0 ** rng.uniform(-1, 3)
        tau, epsilon = int(rng.integers(1, p + 1)), gamma * float(rng.choice([0.0, 0.3]))
        found = perspective_relaxation(
            SparseRidgeProblem(X, y, gamma=gamma, tau=tau), epsilon=epsilon
        )
        beta, z = cvxpy.Variable(p), cvxpy.Variable(p)
        perspective = sum(cvxpy.quad_over_lin(beta[i], z[i]) for i in range(p))
        objective = (
            cvxpy.sum_squares(y - X @ beta)
            + (gamma - epsilon) / 2 * perspective
            + epsilon / 2 * cvxpy.sum_squares(beta)
        )
        program = cvxpy.Problem(cvxpy.Minimize(objective), [z >= 0, z <= 1, cvxpy.sum(z) <= tau])
        # older ones of cvxpy cannot write quad_over_lin of two variables as a quadratic form
        value = program.solve(solver="CLARABEL", use_quad_obj=False)
        assert found.value == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_small_gammas_with_dependent_columns(seed: int) -> None:
    """Coordinate descent alone crawls there."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(8, 30)), int(rng.integers(35, 80))
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    gamma, tau = 10.0 ** rng.uniform(-4, -2), int(rng.integers(2, n))
    found = perspective_relaxation(SparseRidgeProblem(X, y, gamma=gamma, tau=tau))
    assert found.bound <= found.value
    assert found.gap < 1e-3
    z, K = found.z, np.eye(n)
    assert z.sum() <= tau * (1 + 1e-9)
    assert ((z >= 0) & (z <= 1)).all()
    K += (2.0 / gamma) * (X * z) @ X.T
    at_z = float(y @ np.linalg.solve(K, y))  # the least objective at this z
    assert found.bound <= at_z * (1 + 1e-9)
    assert at_z == pytest.approx(found.value, rel=1e-4)


@pytest.mark.parametrize("part", [0.0, 0.4])
def test_residual_form_is_the_same_relaxation(part: float) -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(15, 420)), rng.normal(size=15)
    for gamma in (0.1, 3.0, 200.0):
        problem = SparseRidgeProblem(X, y, gamma=gamma, tau=5)
        form = GramForm.of(problem, extract=False)
        by_gram = perspective_relaxation(problem, epsilon=part * gamma, gram=form)
        by_rows = perspective_relaxation(problem, epsilon=part * gamma)
        assert by_rows.converged
        assert by_rows.value == pytest.approx(by_gram.value, rel=1e-7)
        np.testing.assert_allclose(by_rows.z, by_gram.z, atol=1e-3)


@pytest.mark.parametrize("extract", [False, True])
@pytest.mark.parametrize("heavy", [1e3, 1e6, 1e8])
def test_leaving_out_heavy_rows_keeps_the_bound(heavy: float, extract: bool) -> None:
    """What is left is a rounding error of what there was: the bound may be poor, never wrong."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(20, 5)), rng.normal(size=20)
        X[:3] *= heavy
        y[:3] *= heavy
        whole = SparseRidgeProblem(X, y, gamma=0.1, tau=2)
        rest = SparseRidgeProblem(X[3:], y[3:], gamma=0.1, tau=2)
        gram = LeftOut.of(whole, X[:3], y[:3], np.array([0, 3]), 20).form(0)
        found = perspective_relaxation(whole, gram=gram, extract=extract)
        assert found.bound <= optimum(rest) * (1 + 1e-12)


@pytest.mark.parametrize("extract", [False, True])
def test_a_path_that_has_no_time_left_still_bounds_every_size(extract: bool) -> None:
    X, y = regression(40, 8, [1.0, 1.0, 1.0], seed=3)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    path = relaxation_path(problem, range(1, 9), extract=extract, limits=Limits(0.0))
    for tau, found in enumerate(path, start=1):
        assert 0.0 <= found.bound <= optimum(problem.replace(tau=tau))


@pytest.mark.parametrize("seed", [*range(8), 308])
def test_columns_twice_and_hardly_a_ridge(seed: int) -> None:
    """All that is left of a direction's slope is rounding: it once went to infinity (308)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((5, 4))
    X[:, 1], X[:, 3] = X[:, 0], -0.8 * X[:, 0] + rng.standard_normal(5)
    y = 2.0 * X @ rng.standard_normal(4) + 1e-3 * rng.standard_normal(5)
    problem = SparseRidgeProblem(X, y, gamma=10.0 ** rng.uniform(-6, -3), tau=2)
    found = perspective_relaxation(problem, extract=False)
    assert found.converged
    assert np.isfinite(found.beta).all()
    assert found.bound <= min(found.value, optimum(problem)) * (1 + 1e-12) + 1e-14 * problem.yy


@settings(max_examples=examples(200))
@given(st.integers(0, 2**32 - 1))
def test_every_optimal_support_survives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 25)), int(rng.integers(2, 9))
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    if rng.random() < 0.3:
        X[:, 1] = X[:, 0]  # exact ties
    if rng.random() < 0.3:
        y = X[:, :2].sum(axis=1) + 0.1 * y
    tau = int(rng.integers(1, p + 1))
    problem = SparseRidgeProblem(X, y, gamma=10 ** rng.uniform(-2, 3), tau=tau)
    supports = [frozenset(S) for S in itertools.combinations(range(p), tau)]
    objective = np.array([problem.objective(sorted(S)) for S in supports])
    best = objective.min()
    optimal = [S for S, f in zip(supports, objective, strict=True) if f <= best * (1 + 1e-9)]
    for beta in (perspective_relaxation(problem).beta, rng.normal(size=p), np.zeros(p)):
        for upper in (best, 1.05 * best):
            found = screen(problem, beta, float(upper))
            assert found.bound <= best * (1 + 1e-9)
            for S in optimal:
                assert set(found.included.tolist()) <= S
                assert not S & set(found.excluded.tolist())


def test_screening_fixes_columns_where_the_bound_is_tight() -> None:
    X, y = regression(200, 12, {2: 1.0, 7: -1.0}, noise=0.05)
    problem = SparseRidgeProblem(X, y, gamma=20.0, tau=2)
    found = screen(problem, perspective_relaxation(problem).beta, problem.objective([2, 7]))
    assert found.included.tolist() == [2, 7]
    assert found.excluded.size == 10


@pytest.mark.parametrize("merged", [False, True])
def test_the_bound_of_screening_is_not_above_an_exact_fit(merged: bool) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(1, 6)), int(rng.integers(1, 8))
        X = rng.normal(size=(n, p))
        y = X @ rng.normal(size=p)
        if merged:
            moments = X.T @ X, X.T @ y, float(y @ y)
            problem = SparseRidgeProblem.from_gram(*moments, gamma=0.0, tau=p)
        else:
            problem = SparseRidgeProblem(X, y, gamma=0.0, tau=p)
        assert screen(problem, perspective_relaxation(problem).beta, float(y @ y)).bound == 0.0


def test_shares_add_up_to_tau_where_coefficients_differ_by_all_digits() -> None:
    X = np.array([[100001.0, 100001.0, 100000.0, 100002.0, 100001.0, 1100000.0]])
    problem = SparseRidgeProblem(X, np.array([-2.0]), gamma=1e-3, tau=4)
    assert perspective_relaxation(problem).z.sum() <= 4.0 + 1e-9
