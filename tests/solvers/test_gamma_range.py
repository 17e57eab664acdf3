"""Supports along γ against the enumeration of every support."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from support.brute_force import (
    Array,
    Matrix,
    exact_given,
    exact_moments,
    exact_objective,
    rounding,
)
from support.fresh import plain_run
from support.inside import Limits, envelope
from support.problems import ugly_problem

from sparsecv.solvers import SparseRidgeProblem, Status, supports_along_gamma
from sparsecv.solvers.leaps.gamma_range import GammaRange

LOW, HIGH = 1e-4, 1e4


def objectives(problem: SparseRidgeProblem, size: int, gammas: Array) -> tuple[Array, Array]:
    """Every support of a size, and their objectives at every γ, shape (γ, supports)."""
    X, y = problem.triangle[:, :-1], problem.triangle[:, -1]
    supports = np.array(list(combinations(range(problem.p), size)))
    U, s, _ = np.linalg.svd(X[:, supports].transpose(1, 0, 2), full_matrices=False)
    along = np.einsum("irk,r->ik", U, y)
    rest = np.square(y - np.einsum("irk,ik->ir", U, along)).sum(axis=1)
    t = gammas[:, None, None] / 2.0
    return supports, rest + (along**2 * t / (s * s + t)).sum(axis=2)


@pytest.mark.parametrize("seed", range(0, 100, 3 if plain_run() else 1))
def test_supports_equal_enumeration_at_random_gammas_and_at_breakpoints(seed: int) -> None:
    problem = ugly_problem(seed, 8)
    along, status = supports_along_gamma(problem, LOW, HIGH, sizes=np.arange(1, problem.p + 1))
    unknown = [one for row in along.values() for one in row if one.support is None]
    assert (status is Status.OPTIMAL) == (not unknown)
    # Rounding leaves the support of one size of one of these problems open at a few γ.
    assert len(unknown) <= (10 if seed == 51 else 0)
    assert all(one.high - one.low <= 1e-5 * one.high for one in unknown)
    random = 10.0 ** np.random.default_rng(seed).uniform(-4.0, 4.0, 1000)
    for size, intervals in along.items():
        assert intervals[0].low == LOW
        assert max(one.high for one in intervals) == HIGH
        ends = np.array([end for one in intervals for end in one[:2]])
        gammas = np.concatenate([random, ends, ends * (1.0 + 1e-7), ends * (1.0 - 1e-7)])
        gammas = gammas[(gammas >= LOW) & (gammas <= HIGH)]
        supports, values = objectives(problem, size, gammas)
        for gamma, row in zip(gammas.tolist(), values, strict=True):
            found = [one.support for one in intervals if one.low <= gamma <= one.high]
            if any(support is None for support in found):
                continue
            listed = [row[(supports == one).all(axis=1)].item() for one in found]
            least = float(row.min())
            assert min(listed) <= least + rounding(least, problem.yy)
            if gamma not in ends:  # A listed support is optimal but for nine digits of γ.
                assert max(listed) <= least + 1e-6 * least + rounding(least, problem.yy)


def best_pair_is_listed(listed: Sequence[Any], gamma: float, joint: Matrix) -> bool:
    """Whether the best pair of four columns at γ, by exact arithmetic, is listed there, or open."""
    here = [one.support for one in listed if one.low <= gamma <= one.high]
    values = {s: exact_objective(joint, gamma, s) for s in combinations(range(4), 2)}
    best = min(values, key=lambda support: values[support])
    return any(support is None or tuple(support) == best for support in here)


@pytest.mark.parametrize("steps", [-3, -2, -1, 1, 2, 3])
def test_of_matrices_the_support_is_listed_that_is_the_best_by_their_last_digits(
    steps: int,
) -> None:
    G = np.kron(np.eye(2), [[1.0, 1.0], [1.0, 1.0 + 2.0**-27]])
    G[3, 3] += steps * 2.0**-52
    b = np.array([0.3, 0.3001, 0.3, 0.3001])
    problem = SparseRidgeProblem.from_gram(G, b, 4.0, gamma=1.0, tau=2)
    along, _ = supports_along_gamma(problem, 1e-12, 1e-10, sizes=[2])
    assert best_pair_is_listed(along[2], 1e-11, exact_given(G, b, 4.0))


def test_at_a_tiny_gamma_nearly_equal_columns_explain_what_lies_between_them() -> None:
    X = np.eye(5)[:, [0, 0, 2, 3]]
    X[1, :2] = 5e-15, -5e-15
    y = np.array([0.0, 1.0, 0.0015, 0.0015, 0.0])
    along, _ = supports_along_gamma(SparseRidgeProblem(X, y, gamma=1.0, tau=2), 2.5e-24, 1e-20)
    assert best_pair_is_listed(along[2], 3e-24, exact_moments(X, y))


def test_supports_that_tie_but_for_tiny_singular_values_are_all_listed() -> None:
    X = np.eye(5)[:, [0, 0, 0, 3]]
    X[1, :3] = 4e-15, -5e-15, 5e-15
    y = np.array([0.0, 1.0, 0.3, 0.0015, 0.0])
    along, _ = supports_along_gamma(SparseRidgeProblem(X, y, gamma=1.0, tau=2), 2.5e-24, 1e-20)
    assert best_pair_is_listed(along[2], 3e-24, exact_moments(X, y))


@pytest.mark.parametrize("seed", range(12))
def test_a_range_from_zero_begins_with_the_supports_of_plain_best_subset(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(20, 6)), rng.normal(size=20)
    problem = SparseRidgeProblem(X, y, gamma=0.0, tau=6)
    along, _ = supports_along_gamma(problem, 0.0, 10.0)
    for size, intervals in along.items():
        best = min(combinations(range(6), size), key=problem.objective)
        assert intervals[0].low == 0.0
        assert intervals[0].support is not None
        assert tuple(intervals[0].support.tolist()) == best


@pytest.mark.parametrize(("case", "seed"), [(0, 3), (0, 6), (1, 0), (1, 6)])
def test_supports_that_rounding_leaves_open_take_few_trees(case: int, seed: int) -> None:
    """Interpolating fits at a tiny γ, or columns that hardly matter, differ by rounding alone."""
    rng = np.random.default_rng(seed)
    if case == 0:
        X = rng.normal(size=(3, 6))
        X[:, 1] = X[:, 0] + 1e-5 * rng.normal(size=3)
        y, low, high = rng.normal(size=3), 0.0, 20.0
    else:
        X = rng.normal(size=(9, 6)) * 10.0 ** rng.uniform(-5, 5, size=6)
        y, low = X @ rng.normal(size=6), float(np.square(X).sum(axis=0).max())
        high = 10.0 * low
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=6)
    search = GammaRange([problem], np.arange(1, 7), Limits(100.0))
    search.run(low, high)
    assert search.n_trees < 300
    along, status = supports_along_gamma(problem, low, high)
    assert status in (Status.OPTIMAL, Status.UNPROVED)
    for size, intervals in along.items():
        assert intervals[0].low == low
        assert max(one.high for one in intervals) == high
        for gamma in np.exp(rng.uniform(np.log(max(low, 1e-6)), np.log(high), 50)).tolist():
            supports, (values,) = objectives(problem, size, np.array([gamma]))
            found = [one.support for one in intervals if one.low <= gamma <= one.high]
            if all(support is not None for support in found):
                listed = min(values[(supports == one).all(axis=1)].item() for one in found)
                assert listed <= values.min() + rounding(float(values.min()), problem.yy)


@pytest.mark.parametrize(("seed", "levels", "numbers"), [(0, (3, 3, 3), 1), (2, (3, 4), 2)])
def test_all_levels_of_factors_in_a_long_table_are_told_apart(
    seed: int, levels: tuple[int, ...], numbers: int
) -> None:
    """Supports of nearly all columns span the same space, and differ by their ridge terms alone.

    The coefficients of a fit are small where its ridge term is, and so is what rounding adds.
    """
    rng, n = np.random.default_rng(seed), 2000 if numbers == 2 else 1500
    codes = []
    columns = [rng.normal(size=(n, numbers))]
    for count in levels:
        codes.append(rng.integers(0, count, n))
        columns.append((codes[-1][:, None] == np.arange(count)) * 1.0)
    X = np.hstack(columns)
    y = X @ rng.normal(size=X.shape[1]) + 0.5 * rng.normal(size=n)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    problem = SparseRidgeProblem(X, y - y.mean(), gamma=1.0, tau=1)
    sizes = np.arange(1, problem.p)
    along, status = supports_along_gamma(problem, LOW, HIGH, sizes=sizes)
    assert status is Status.OPTIMAL
    gammas = 10.0 ** rng.uniform(-4.0, 4.0, 50)
    for size, intervals in along.items():
        supports, values = objectives(problem, size, gammas)
        for gamma, row in zip(gammas.tolist(), values, strict=True):
            found = [one.support for one in intervals if one.low <= gamma <= one.high]
            listed = min(row[(supports == one).all(axis=1)].item() for one in found)
            assert listed <= row.min() * (1.0 + 1e-11)


@pytest.mark.parametrize("seed", range(0, 40, 4 if plain_run() else 1))
def test_bounds_on_the_fit_of_all_columns_hold(seed: int) -> None:
    problem = ugly_problem(seed, 8)
    whole = GammaRange([problem], np.array([1]), Limits())
    bound, joint = np.empty(1), exact_moments(problem.data.X, problem.data.y)
    for gamma in (1e-8, 1e-4, 1.0, 1e4):
        envelope.objective_bounds(whole.whole.made.fits, whole.lengths, gamma / 2.0, bound)
        least = exact_objective(joint, gamma, range(problem.p))
        assert 0.0 <= bound[0] <= least


def test_columns_of_zeros_have_one_support_at_every_gamma() -> None:
    problem = SparseRidgeProblem(np.zeros((2, 3)), np.array([-0.5, 0.4]), gamma=0.0, tau=2)
    along, status = supports_along_gamma(problem, 0.0, 1e-6)
    assert status is Status.OPTIMAL
    for size, intervals in along.items():
        (one,) = intervals
        assert (one.low, one.high) == (0.0, 1e-6)
        assert one.support is not None
        assert one.support.tolist() == list(range(size))
