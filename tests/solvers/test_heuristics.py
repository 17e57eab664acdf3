"""Heuristic supports: never worse than their parts, often optimal, always the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.brute_force import optimum
from support.fresh import examples
from support.problems import grown, regression, ugly_problem

from sparsecv.solvers import SparseRidgeProblem, heuristic_support
from sparsecv.solvers.supports.rounding import forward_order


def correlated(seed: int, n: int, p: int, tau: int, gamma: float = 0.1) -> SparseRidgeProblem:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 1.5 * rng.standard_normal((n, 1))
    y = X[:, :tau].sum(axis=1) + 3.0 * rng.standard_normal(n)
    return SparseRidgeProblem(X, y, gamma=gamma, tau=tau)


@pytest.mark.slow
@settings(max_examples=examples(120))
@given(st.integers(0, 2**32 - 1))
def test_a_support_of_tau_columns_whatever_the_data(seed: int) -> None:
    problem = ugly_problem(seed)
    support = heuristic_support(problem)
    assert support.tolist() == sorted(set(support.tolist()))
    assert support.size == problem.tau
    assert support.min() >= 0
    assert support.max() < problem.p
    np.testing.assert_array_equal(support, heuristic_support(problem))
    assert problem.objective(support) >= optimum(problem) * (1 - 1e-9) - 1e-13 * problem.yy


@pytest.mark.slow
def test_mostly_optimal_on_small_problems() -> None:
    hits = 0
    for seed in range(30):
        problem = correlated(seed, 15, 12, 5, gamma=0.01)
        found = problem.objective(heuristic_support(problem))
        hits += found <= optimum(problem) * (1 + 1e-9)
    assert hits >= 29


def test_a_time_limit_ends_the_restarts() -> None:
    problem = correlated(3, 60, 200, 12, gamma=1e-3)
    hurried = heuristic_support(problem, time_limit=0.0)
    patient = heuristic_support(problem)
    assert hurried.size == patient.size == 12
    assert problem.objective(patient) <= problem.objective(hurried) * (1 + 1e-12)


def test_warm_starts_are_never_lost() -> None:
    problem = correlated(5, 40, 60, 8, gamma=1e-3)
    best = heuristic_support(problem)
    again = heuristic_support(problem, warm_starts=[best], time_limit=0.0)
    assert problem.objective(again) <= problem.objective(best) * (1 + 1e-12)


def test_many_columns_are_narrowed_down() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 900))
    y = X[:, [800, 7, 55]] @ np.array([5.0, -4.0, 3.0]) + 0.1 * rng.standard_normal(50)
    problem = SparseRidgeProblem(X, y, gamma=0.1, tau=3)
    assert heuristic_support(problem).tolist() == [7, 55, 800]


def test_forward_steps_go_on_where_columns_depend_on_those_taken() -> None:
    """With no ridge and fewer rows than columns nothing is left of most columns."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 150))
        X -= X.mean(axis=0)
        with np.errstate(all="raise"):
            order = forward_order(X, X @ rng.normal(size=150), 150)
        assert sorted(order.tolist()) == list(range(150))


@pytest.mark.parametrize("p", [60, 2500])
def test_larger_sizes_do_not_change_the_supports_of_smaller_ones(p: int) -> None:
    """Sizes are searched in windows, so that a run may go on to larger sizes."""
    X, y = regression(80, p, dict.fromkeys(range(0, 40, 2), 1.0), seed=p)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    few, more = grown(problem, range(1, 17)), grown(problem, range(1, 41))
    for size, support in few.items():
        np.testing.assert_array_equal(support, more[size])
    for size, support in grown(problem, range(1, 33)).items():
        np.testing.assert_array_equal(support, more[size])
