"""Nearly dependent columns and γ = 0: what is proved there holds in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from support.brute_force import exact_given, exact_moments, exact_objective
from support.constrained import Rules, exact_bounded
from support.fresh import draws
from support.inside import independence, linalg, plan
from support.stand_ins import standing_in

from sparsecv import Constraints
from sparsecv.solvers import (
    SparseRidgeProblem,
    Status,
    available_backends,
    best_subsets,
    best_subsets_rows_deleted,
    branch_and_bound,
    solve,
    support_path,
)


def test_the_support_of_all_columns_is_bounded_by_more_than_its_fit() -> None:
    """The fit of 170 columns near a line exceeds the optimum by more than 1e-9 of it."""
    rng, gamma = np.random.default_rng(0), 1.6e-23
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    X = turn @ np.vstack([1.0 + rng.random(170), 3e-13 * rng.normal(size=170), np.zeros(170)])
    y = turn @ np.array([0.5, 1.0, 0.5])
    problem = SparseRidgeProblem(X, y, gamma=gamma, tau=170)
    # With t = γ/2 the least objective is t·yᵀ(XXᵀ + tI)⁻¹y.
    joint = exact_moments(X.T, np.zeros(170))
    joint[3] = [Fraction(float(value)) for value in y] + [Fraction(0)]
    for row in range(3):
        joint[row][3] = joint[3][row]
    least = -Fraction(gamma) / 2 * exact_objective(joint, gamma, range(3))
    assert branch_and_bound(problem).lower_bound <= least
    if "highs" in available_backends():
        assert solve(problem, backend="highs").lower_bound <= least


@pytest.mark.parametrize("apart", [3e-7, 1e-6, 1e-5])
def test_dependent_columns_beside_a_short_one_have_a_fit_of_least_squares(apart: float) -> None:
    """Column 2 is twice column 0; column 1 is short, and the share ``apart`` of it leads to y."""
    for seed in range(6):
        turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(7, 7)))[0]
        first = 12.0 * turn[:, 0] + 0.3 * turn[:, 2]
        short = 1.8e-6 * (turn[:, 0] + apart * turn[:, 1])
        X = np.column_stack([first, short, 2.0 * first, turn[:, 2] + 0.1 * turn[:, 0]])
        y = turn[:, 1] + 1e-3 * turn[:, 4]
        problem = SparseRidgeProblem(X, y, gamma=0.0, tau=4)
        least = float(exact_objective(exact_moments(X, y), 0.0, [0, 1, 3]))
        assert problem.objective(range(4)) == pytest.approx(least, rel=1e-9)
        asked = SparseRidgeProblem(
            X, y, gamma=0.0, tau=4, constraints=Constraints(include=[0, 1, 2])
        )
        assert branch_and_bound(asked).lower_bound <= least


@pytest.mark.parametrize("gamma", [1e-25, 1e-24, 2.1e-24, 4e-24, 1e-22])
def test_a_tiny_gamma_bounds_coefficients_of_columns_that_count_as_dependent(gamma: float) -> None:
    """Columns 0 and 1 differ by 3e-14, which explains y in part, as γ/2 is as small."""
    X = np.eye(5)[:, [0, 0, 2, 3]]
    X[1, :2] = 1.5e-14, -1.5e-14
    y = np.array([0.0, 1.0, 0.004, 0.004, 0.0])
    found = solve(SparseRidgeProblem(X, y, gamma=gamma, tau=2))
    joint = exact_moments(X, y)
    least = min(exact_objective(joint, gamma, s) for s in combinations(range(4), 2))
    assert found.lower_bound <= least


def test_all_columns_are_not_called_optimal_where_their_fit_loses_digits() -> None:
    """Coefficients of 1e10 cancel each other: the only support of its size has no exact fit."""
    checked = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((6, 3))
        X[:, 1] = X[:, 0] + 2e-11 * rng.standard_normal(6)
        y = rng.standard_normal(6)
        (found,) = best_subsets(SparseRidgeProblem(X, y, gamma=0.0, tau=3), sizes=[3])
        if found.proved:
            exact = exact_objective(exact_moments(X, y), 0.0, [0, 1, 2])
            assert found.objective <= float(exact) * (1.0 + 4e-6)
            checked += 1
    assert checked < 40


def test_coefficients_beside_the_inverse_keep_the_digits_of_back_substitution() -> None:
    """A product of the inverse triangle and the right side is off by up to a million units."""
    compute = getattr(linalg.trailing_inverse, "py_func", linalg.trailing_inverse)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, apart = rng.standard_normal((12, 5)), 10.0 ** rng.uniform(-8, -6)
        X[:, 1:3] = X[:, :1] + apart * X[:, 1:3]
        y = X @ rng.standard_normal(5) + 1e-3 * rng.standard_normal(12)
        R = np.linalg.qr(np.column_stack([X, y]), mode="r")
        A, beta = np.zeros((1, 5, 5)), np.zeros((1, 5))
        compute(R, 0, 5, A, beta, 0)
        size = np.abs(R[:5, :5]) @ np.abs(beta[0])
        assert np.linalg.norm(R[:5, :5] @ beta[0] - R[:5, 5]) <= 1e-15 * size.max(), seed


def test_a_fit_of_included_columns_nearly_the_same_reaches_the_optimum() -> None:
    """The only support is fitted within signs, where coefficients are some 1 over the distance."""
    none = frozenset[int]()
    signs = np.array([0.0, 0.0, -np.inf, -np.inf]), np.full(4, np.inf)
    rules = Rules([[0]], none, none, *signs)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, apart = rng.standard_normal((8, 4)), 10.0 ** rng.uniform(-9, -6)
        X[:, 1:] = X[:, :1] + apart * X[:, 1:]
        y = X @ rng.standard_normal(4) / apart + rng.standard_normal(8)
        asked = Constraints(include=[0, 1, 2, 3], positive=[0, 1])
        found = solve(SparseRidgeProblem(X, y, gamma=1e-16, tau=4, constraints=asked))
        least = float(exact_bounded(exact_moments(X, y), 1e-16, rules, (0, 1, 2, 3)))
        assert found.lower_bound <= least * (1.0 + 1e-15), seed
        assert found.objective == pytest.approx(least, rel=1e-4), seed


def test_polynomials_on_a_short_curve_are_proved() -> None:
    t = np.linspace(0.0, 0.3, 200)
    columns = [t**a * np.exp(b * t) for a in range(8) for b in range(7)]
    X = np.column_stack(columns) * 10.0 ** np.linspace(-3, 3, len(columns))
    y = 3.0 * t + np.exp(2.0 * t) + 1e-3 * np.random.default_rng(0).standard_normal(t.size)
    for gamma in (1e-12, 0.0):
        problem = SparseRidgeProblem(X, y, gamma=gamma, tau=3)
        assert plan.loses_digits(problem)
        found = solve(problem)
        assert found.status is Status.OPTIMAL
        every = [problem.fit(S).objective for S in combinations(range(X.shape[1]), 2)]
        assert found.objective <= min(every)


def test_few_columns_whose_tree_loses_digits_are_proved_all_the_same() -> None:
    t = np.linspace(0.0, 0.3, 60)
    X = np.column_stack([t**a * np.exp(b * t) for a in range(4) for b in range(4)])
    y = np.sin(9.0 * t) + 0.1 * np.random.default_rng(0).standard_normal(t.size)
    for gamma in (0.0, 1e-9):
        for tau in (1, 2, 3):
            problem = SparseRidgeProblem(X, y, gamma=gamma, tau=tau)
            found = solve(problem)
            with standing_in(MOST_SUPPORTS=0):  # Leaps and bounds in place of enumeration.
                other = branch_and_bound(problem)
            least = min(problem.objective(S) for S in combinations(range(16), tau))
            for one in (found, other):
                assert one.objective == pytest.approx(least, rel=1e-9)
                assert one.lower_bound <= least * (1.0 + 1e-12)
            assert found.status is Status.OPTIMAL
            assert found.gap <= 2e-6


def test_matrices_given_at_gamma_zero_take_their_own_loss_off_the_bound() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 5)) * [1.0, 1e4, 1e-3, 1.0, 10.0], rng.standard_normal(30)
    G, b, yy = X.T @ X, X.T @ y, float(y @ y)
    joint = exact_given(G, b, yy)
    for tau in (1, 2, 3):
        problem = SparseRidgeProblem.from_gram(G, b, yy, gamma=0.0, tau=tau)
        unit = problem.at_unit_length()
        assert unit is not problem
        own = problem.data_loss(yy, given_gamma=True)
        assert unit.data_loss(yy, given_gamma=True) == pytest.approx(own, rel=1e-9)
        assert 0.0 < own < unit.data_loss(yy) < problem.data_loss(yy)
        least = min(exact_objective(joint, 0.0, S) for S in combinations(range(5), tau))
        found = solve(problem, tol=0.0)
        assert found.lower_bound <= float(least)
        assert found.objective == pytest.approx(float(least), rel=1e-9)
    twice = np.repeat(np.repeat(G, 2, axis=0), 2, axis=1)
    singular = SparseRidgeProblem.from_gram(twice, np.repeat(b, 2), yy, gamma=0.0, tau=2)
    assert solve(singular).lower_bound == 0.0  # nothing bounds the coefficients there


@pytest.mark.parametrize("steps", [-3, -2, -1, 1, 2, 3])
def test_of_given_matrices_nothing_is_proved_that_their_last_digits_decide(steps: int) -> None:
    G = np.kron(np.eye(2), [[1.0, 1.0], [1.0, 1.0 + 2.0**-44]])
    G[3, 3] += steps * 2.0**-52
    b, gamma = np.tile([0.3, 0.3 + 2.0**-23], 2), 1e-3 * 2.0**-44
    problem = SparseRidgeProblem.from_gram(G, b, 4.0, gamma=gamma, tau=2)
    joint = exact_given(G, b, 4.0)
    pairs = list(combinations(range(4), 2))
    least = min(exact_objective(joint, gamma, pair) for pair in pairs)
    row = np.zeros((1, 4)), np.zeros(1)
    lacking, _, _ = best_subsets_rows_deleted(problem, *row, sizes=[2])
    path = support_path(problem, [2.0 * gamma, gamma], sizes=[2])
    proved = [one.support for one in (best_subsets(problem)[1], solve(problem)) if one.proved]
    proved += [lacking.supports[lacking.choice[0, 0]]] * (not lacking.skipped.size)
    proved += [path.supports[1, 0]] * bool(path.proved[1, 0])
    for support in proved:
        assert exact_objective(joint, gamma, support.tolist()) <= least * (1 + Fraction(1, 10**5))


def test_every_basis_is_as_independent_as_is_said() -> None:
    for note, rng in draws(60, 94):
        m, p = int(rng.integers(2, 9)), int(rng.integers(2, 8))
        X = rng.standard_normal((m, p))
        for _ in range(int(rng.integers(0, 4))):
            i, j, k = rng.integers(0, p, 3)
            X[:, i] = [X[:, j], -X[:, j], X[:, j] + X[:, k], X[:, j] - 2.0 * X[:, k]][
                int(rng.integers(4))
            ]
        X = X[:, np.linalg.norm(X, axis=0) > 0.0]
        if X.shape[1] == 0:  # sums of the few columns may all be 0
            continue
        X = X / np.linalg.norm(X, axis=0)
        found, rank = independence(X), int(np.linalg.matrix_rank(X, tol=1e-9))
        assert found.full == (rank == X.shape[1]), note
        assert found.least > 0.0, note
        for basis in combinations(range(X.shape[1]), rank):
            values = np.linalg.svd(X[:, basis], compute_uv=False)
            if values[-1] > 1e-9:
                assert found.least <= values[-1], note


@pytest.mark.parametrize("seed", range(12))
def test_no_objective_of_a_tree_lies_below_the_optimum(seed: int) -> None:
    """Two columns differ by few digits, which the scaling of the columns must not round."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        n, p = int(rng.integers(4, 7)), int(rng.integers(2, 4))
        X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-3.0, 3.0, p)
        near = 10.0 ** rng.uniform(-11.0, -8.0) * np.abs(X[:, 0]).max()
        X[:, 1] = X[:, 0] * rng.uniform(0.5, 3.0) + near * rng.normal(size=n)
        y = rng.normal(size=n)
        found, joint = best_subsets(SparseRidgeProblem(X, y, gamma=0.0, tau=p)), exact_moments(X, y)
        for one in found:
            least = float(exact_objective(joint, 0.0, one.support))
            assert one.objective >= least * (1.0 - 1e-7) - 1e-10 * (y @ y)
