"""Supports of every size in one pass: near the optimum, deterministic, at the sizes asked for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from brute_force import plain
from problems import ugly_problem

from sparsecv.solvers import SparseRidgeProblem, best_subsets, heuristic_path


@pytest.mark.parametrize(("n", "p"), [(60, 12), (10, 20), (200, 30)])
def test_near_the_optimum(n: int, p: int) -> None:
    X, y, gamma = plain(p, n, p, 1.0, noise=2.0)
    problem = SparseRidgeProblem(X, y, gamma=gamma, tau=p)
    sizes = range(1, 9)
    exact = best_subsets(problem, sizes=sizes)
    found = heuristic_path(problem, sizes)
    for k, least in zip(sizes, exact.objective, strict=True):
        assert found[k].size == k
        assert (np.diff(found[k]) > 0).all()
        assert problem.objective(found[k]) <= least * 1.05
        assert problem.objective(found[k]) >= least * (1.0 - 1e-9)
    again = heuristic_path(problem, [8, 3, 3])
    assert list(again) == [3, 8]
    np.testing.assert_array_equal(again[8], found[8])


@pytest.mark.parametrize("seed", range(40))
def test_ugly_data(seed: int) -> None:
    problem = ugly_problem(seed, 8)
    found = heuristic_path(problem, range(1, problem.p + 1))
    values = [problem.objective(found[k]) for k in range(1, problem.p + 1)]
    assert all(np.unique(found[k]).size == k for k in found)
    # a size never does worse than the one below, up to rounding of the Gram matrix
    assert all(b <= a * (1.0 + 1e-6) + 1e-9 * problem.yy for a, b in itertools.pairwise(values))


def test_warm_starts_can_only_help() -> None:
    X, y, gamma = plain(3, 40, 25, 0.1, noise=3.0)
    problem = SparseRidgeProblem(X, y, gamma=gamma, tau=25)
    exact = best_subsets(problem, sizes=range(1, 11))
    warm = heuristic_path(problem, range(1, 11), warm_starts=exact.supports)
    for k, least in zip(range(1, 11), exact.objective, strict=True):
        assert problem.objective(warm[k]) == pytest.approx(least, rel=1e-9)


def test_more_columns_than_are_looked_at() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 900))
    y = X[:, 700] - X[:, 5] + 0.1 * rng.standard_normal(40)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    found = heuristic_path(problem, [1, 2, 45])
    np.testing.assert_array_equal(found[2], [5, 700])
    assert found[45].size == 45  # more than rows
    every = heuristic_path(problem, [500])
    assert every[500].size == 500


@pytest.mark.parametrize("sizes", [[], [0], [7], [-1, 2]])
def test_bad_sizes(sizes: list[int]) -> None:
    X, y, gamma = plain(1, 10, 6)
    with pytest.raises(ValueError, match="sizes"):
        heuristic_path(SparseRidgeProblem(X, y, gamma=gamma, tau=1), sizes)
