"""Supports along a path of γ: against enumeration, against single trees, and on ugly data."""

from itertools import combinations

import numpy as np
import pytest
from brute_force import Data, plain, ugly
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import ugly_problem
from sparsecv.stability.sparse_ridge import _coefficients

from sparsecv.solvers import (
    SparseRidgeProblem,
    best_by_enumeration,
    best_subsets,
    few_supports,
    gamma_path,
    solve_sizes,
)


def check(problem: SparseRidgeProblem, gammas: list[float], sizes: list[int]) -> None:
    paths = gamma_path(problem, gammas, sizes)
    assert len(paths) == len(gammas)
    for gamma, supports in zip(gammas, paths, strict=True):
        at_gamma = problem.replace(gamma=gamma)
        for size, support in zip(sorted(set(sizes)), supports, strict=True):
            assert support.size == size
            np.testing.assert_array_equal(support, np.unique(support))
            every = [at_gamma.fit(np.array(S)) for S in combinations(range(problem.p), size)]
            own = at_gamma.fit(support)
            least = min(fit.objective for fit in every)
            assert own.objective <= least * (1.0 + 1e-9) + 1e-14 * problem.yy
            # where the penalty dwarfs everything the objective says little: compare what is gained
            most = max(fit.gain for fit in every)
            assert np.sqrt(own.gain) >= np.sqrt(most) * (1.0 - 1e-8) - 1e-13 * np.sqrt(problem.yy)


@settings(max_examples=200)
@given(data=ugly(), more=st.lists(st.floats(-3.0, 8.0), min_size=0, max_size=3))
def test_ugly_data(data: Data, more: list[float]) -> None:
    p = data.X.shape[1]
    problem = SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=1)
    check(problem, [data.gamma, *(10.0**g for g in more)], list(range(1, p + 1)))


@pytest.mark.parametrize("seed", range(60))
def test_ugly_problems(seed: int) -> None:
    problem = ugly_problem(seed)
    rng = np.random.default_rng(seed)
    sizes = sorted({int(s) for s in rng.integers(1, problem.p + 1, size=3)})
    check(problem, [problem.gamma, 1e-6 if seed % 3 else 1.0, 1e8], sizes)


def test_ties_go_to_the_first_support() -> None:
    X, y, gamma = plain(0, 12, 3)
    doubled = SparseRidgeProblem(np.hstack([X, X]), y, gamma=gamma, tau=1)
    paths = gamma_path(doubled, [gamma, 100.0 * gamma], [1, 2, 3])
    for supports, g in zip(paths, (gamma, 100.0 * gamma), strict=True):
        tree = best_subsets(doubled.replace(gamma=g), sizes=[1, 2, 3])
        for ours, theirs in zip(supports, tree.supports, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_larger_problem_agrees_with_the_tree() -> None:
    X, y, _ = plain(3, 80, 24, noise=3.0)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1).compressed()
    gammas, sizes = np.geomspace(1e-3, 1e4, 8), np.arange(1, 25)
    for gamma, supports in zip(gammas, gamma_path(problem, gammas, sizes), strict=True):
        tree = best_subsets(problem.replace(gamma=float(gamma)), sizes=sizes)
        assert tree.proved.all()
        for ours, theirs in zip(supports, tree.supports, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_columns_of_zeros() -> None:
    X, y, _ = plain(1, 9, 4)
    X[:, 2] = 0.0
    check(SparseRidgeProblem(X, y, gamma=1.0, tau=1), [0.1, 5.0], [1, 3, 4])
    nothing = SparseRidgeProblem(X, 0.0 * y, gamma=1.0, tau=1)
    assert [s.tolist() for s in gamma_path(nothing, [1.0], [1, 2])[0]] == [[0], [0, 1]]


def test_what_is_refused() -> None:
    X, y, gamma = plain(0, 12, 3)
    problem = SparseRidgeProblem(X, y, gamma=gamma, tau=1)
    with pytest.raises(ValueError, match="sizes"):
        gamma_path(problem, [1.0], [0, 1])
    with pytest.raises(ValueError, match="gamma"):
        gamma_path(problem, [0.0], [1])
    dependent = SparseRidgeProblem(np.hstack([X, X]), y, gamma=1.0, tau=1)
    with pytest.raises(ValueError, match="too small"):
        gamma_path(dependent, [1.0, 1e-40], [1])


@pytest.mark.parametrize("gamma", [1e-8, 1.0, 1e6])
def test_coefficients_of_many_supports(gamma: float) -> None:
    X, y, _ = plain(2, 15, 6)
    problem = SparseRidgeProblem(X, y, gamma=gamma, tau=1)
    supports = [np.array(S) for size in (1, 3, 6) for S in combinations(range(6), size)]
    for gram in (None, (problem.G, problem.b)):
        columns, coef = _coefficients(problem, gram, supports)
        for support, found in zip(supports, coef, strict=True):
            dense = np.zeros(6)
            dense[support] = problem.replace(tau=support.size).fit(support).coef
            np.testing.assert_allclose(found, dense[columns], rtol=1e-8, atol=1e-12)


@settings(max_examples=100)
@given(data=ugly(mild=True), warm=st.booleans())
def test_enumeration(data: Data, warm: bool) -> None:
    p = data.X.shape[1]
    problem = SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=1)
    sizes = np.arange(1, p + 1)
    if not few_supports(problem, sizes):
        return
    starts = [np.arange(size) for size in range(1, p + 1)] if warm else []
    for size, support in zip(
        sizes, best_by_enumeration(problem, sizes, starts=starts), strict=True
    ):
        every = [problem.fit(np.array(S)) for S in combinations(range(p), int(size))]
        assert support.size == size
        np.testing.assert_array_equal(support, np.unique(support))
        most = max(fit.gain for fit in every)
        assert problem.fit(support).gain >= most * (1.0 - 1e-8) - 1e-13 * problem.yy


def test_enumeration_of_many_columns() -> None:
    X, y, _ = plain(5, 10, 50, noise=2.0)
    for gamma in (0.01, 1.0, 100.0):
        problem = SparseRidgeProblem(X, y, gamma=gamma, tau=1)
        sizes = np.array([1, 2, 4])
        assert few_supports(problem, sizes)
        tree = solve_sizes(problem, sizes=sizes)
        assert tree.proved.all()
        for ours, theirs in zip(best_by_enumeration(problem, sizes), tree.supports, strict=True):
            assert problem.objective(ours) == pytest.approx(problem.objective(theirs), rel=1e-10)
    assert not few_supports(problem, [10])
    assert not few_supports(problem.replace(gamma=1e-9), [1])
    nothing = SparseRidgeProblem(X, 0.0 * y, gamma=1.0, tau=1)
    assert [s.tolist() for s in best_by_enumeration(nothing, np.array([2]))] == [[0, 1]]


def test_columns_of_very_different_length() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4)) * np.array([1e13, 1.0, 1e-4, 1e-3])
    y = 1e5 * X[:, 2] + 1e4 * X[:, 3] + 0.3 * rng.standard_normal(40)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    for gammas in ([1e2, 1e-8], [1e-8, 1e2]):
        for gamma, supports in zip(gammas, gamma_path(problem, gammas, [2]), strict=True):
            tree = best_subsets(problem.replace(gamma=gamma), sizes=[2])
            np.testing.assert_array_equal(supports[0], tree.supports[0])
