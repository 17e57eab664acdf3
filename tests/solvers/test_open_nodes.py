"""What is left open at a stop, and the prediction ranges that follow from it."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.answers import ended, lower_bounds, objectives, supports
from support.brute_force import (
    Array,
    Data,
    Support,
    ridge,
)
from support.doors import known_without_tree
from support.fresh import examples
from support.inside import FREE, IN, OUT, Leaves, Limits, expand
from support.problems import gram_of, plain, problem_of, ugly
from support.trees import every_stop, exact_of, key, known_best, tied

from sparsecv.solvers import Answer, SparseRidgeProblem, Status, best_subsets
from sparsecv.solvers.leaps.open_nodes import prediction_ranges


def leaf(p: int, fixed: list[int], free: list[int]) -> list[int]:
    """The state of a node of p columns that keeps some and may drop others."""
    return [IN if j in fixed else FREE if j in free else OUT for j in range(p)]


def children(p: int, fixed: list[int], free: list[int], pending: int) -> Leaves:
    """A node itself where ``pending`` is −1, else the leaves that each lack one free column."""
    states = [leaf(p, fixed, free)]
    if pending >= 0:
        states = [leaf(p, [*fixed, *free[:j]], free[j + 1 :]) for j in range(pending)]
    return Leaves.at_zero(np.array(states, dtype=np.int8), p)


def holds(leaves: Leaves, support: Support) -> bool:
    """Whether a support lies below a leaf, straight from the definition."""
    inside = np.isin(np.arange(leaves.state.shape[1]), support)
    wrong = ((leaves.state == IN) & ~inside) | ((leaves.state == OUT) & inside)
    return bool((~wrong.any(axis=1)).any())


def prediction(data: Data, support: Support, rows: Array) -> Array:
    columns = list(support)
    return np.asarray(rows[:, columns] @ ridge(data.X[:, columns], data.y, data.gamma))


# --- open nodes -----------------------------------------------------------------------------------


@settings(max_examples=examples(100))
@given(data=ugly())
def test_every_better_support_lies_below_an_open_node(data: Data) -> None:
    exact = exact_of(data)
    for found in every_stop(data):
        for one in found:
            own = exact[one.size][tuple(one.support.tolist())]
            slack = 1e-9 * float(own) + tied(data, one.support, exact[one.size])
            better = [S for S, f in exact[one.size].items() if float(own - f) > slack]
            leaves = one.leaves
            assert not better or leaves is not None
            assert leaves is None or all(holds(leaves, S) for S in better)


def test_open_nodes_name_the_columns_of_the_problem_beside_zero_columns() -> None:
    data = plain(7, 30, 6, noise=3.0)
    data.X[:, [0, 3]] = 0.0
    found = best_subsets(problem_of(data), limits=Limits(node_limit=3))
    leaves = next(one.leaves for one in found if one.leaves is not None)
    assert (leaves.state[:, [0, 3]] == OUT).all()
    assert (leaves.state != OUT).any()


def test_a_leaf_of_no_column_says_nothing_of_any_size() -> None:
    assert list(expand(problem_of(plain(3, 20, 6)), children(6, [], [4], 1), np.eye(6))) == []


@pytest.mark.parametrize("gamma", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize(
    ("fixed", "free", "pending"),
    [
        ([], [0, 1, 2, 3, 4, 5], 6),
        ([], [5, 3, 1], 2),
        ([2, 4], [5, 0, 1], 3),
        ([2], [0], 1),
        ([1, 3], [0, 5], -1),
        ([], [0, 1, 2, 3, 4, 5], -1),
        ([2], [], -1),
    ],
)
def test_children_are_ridge_fits(
    gamma: float, fixed: list[int], free: list[int], pending: int
) -> None:
    data = plain(3, 20, 6, gamma)
    rows = np.random.default_rng(1).standard_normal((4, 6))
    (fits,) = expand(problem_of(data), children(6, fixed, free, pending), rows)
    sets = [[*fixed, *free]]
    if pending >= 0:
        sets = [[*fixed, *free[:j], *free[j + 1 :]] for j in range(pending)]
        np.testing.assert_array_equal(fits.low, [max(len(fixed) + j, 1) for j in range(pending)])
        assert fits.high == len(fixed) + len(free) - 1
    else:
        np.testing.assert_array_equal(fits.low, [max(len(fixed), 1)])
        assert fits.high == len(fixed) + len(free)
    assert fits.centre.shape == fits.spread.shape == (len(sets), 4)
    problem = problem_of(data)
    for c, members in enumerate(sets):
        A, x = data.X[:, members], rows[:, members]
        M = A.T @ A + gamma / 2.0 * np.eye(len(members))
        assert fits.loss[c] == pytest.approx(problem.objective(members), rel=1e-10)
        np.testing.assert_allclose(
            fits.centre[c], x @ np.linalg.solve(M, A.T @ data.y), rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            fits.spread[c],
            np.einsum("ij,ji->i", x, np.linalg.solve(M, x.T)),
            rtol=1e-9,
            atol=1e-12,
        )


# --- ranges ---------------------------------------------------------------------------------------


def ranges(problem: SparseRidgeProblem, found: list[Answer], rows: Array) -> tuple[Array, Array]:
    """Ranges of the predictions at ``rows`` that a stopped search leaves."""
    fits = [problem.fit(one.support) for one in found]
    predicted = np.array(
        [rows[:, one.support] @ fit.coef for one, fit in zip(found, fits, strict=True)]
    )
    upper, sizes = (
        np.array([[fit.objective] for fit in fits]),
        np.array([one.size for one in found]),
    )
    known = [one.leaves for one in found if one.leaves is not None]
    leaves = known[0] if known else Leaves.root(problem.p, problem.p).some(slice(0))
    return prediction_ranges(problem, leaves, rows, sizes, predicted, upper)


def check_ranges(data: Data, stops: list[list[Answer]], rows: Array) -> None:
    """Ranges hold the prediction of a unique optimum, and of the support finally returned."""
    exact = exact_of(data)
    final, problem = stops[-1], problem_of(data)
    yy, length = float(data.y @ data.y), np.square(data.X).sum(axis=0)
    for found in stops:
        low, high = ranges(problem, found, rows)
        assert low.shape == high.shape == (len(found), rows.shape[0])
        assert np.all(low <= high)
        for i, s in enumerate(one.size for one in found):
            for support in known_best(exact[s], key(final[i].support), yy):
                x = rows[:, list(support)]
                M = length[list(support)] + data.gamma / 2.0
                scale = math.sqrt(yy) * np.sqrt(np.square(x) @ (1.0 / M))  # of a prediction
                expected = prediction(data, support, rows)
                assert np.all(low[i] <= expected + 1e-9 * scale)
                assert np.all(expected <= high[i] + 1e-9 * scale)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(data=ugly(max_columns=5, max_rows=7, mild=True, zero=False), seed=st.integers(0, 2**32 - 1))
def test_ranges_hold_the_optimum_wherever_the_search_stops(data: Data, seed: int) -> None:
    rows = np.random.default_rng(seed).standard_normal((3, data.X.shape[1]))
    rows[0] = data.X[0]
    check_ranges(data, every_stop(data), rows)


@pytest.mark.parametrize(("n", "gamma"), [(5, 1e-3), (8, 1.0), (30, 1e3)])
def test_ranges_of_a_longer_search(n: int, gamma: float) -> None:
    data = plain(n, n, 7, gamma, noise=2.0)
    rows = np.vstack([np.eye(7), np.random.default_rng(0).standard_normal((5, 7))])
    stops = every_stop(data)
    check_ranges(data, stops, rows)
    low, high = ranges(problem_of(data), stops[0], rows)
    assert (high - low).max() > 0.0


def test_an_incumbent_without_an_objective_bounds_nothing() -> None:
    """A row of zeros has a spread of 0 and the gap is infinite: no warning, and no NaN."""
    problem = SparseRidgeProblem(np.eye(4), np.arange(4.0), gamma=1.0, tau=2)
    root = Leaves.root(4, 4)
    rows, sizes = np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]), np.array([2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low, high = prediction_ranges(
            problem, root, rows, sizes, np.zeros((1, 2)), np.array([[np.inf]])
        )
    assert (low == -np.inf).all()
    assert (high == np.inf).all()


# --- the whole problem left open ------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1e-4, 1e-2, 1.0, 1e3, 1e7])
@pytest.mark.parametrize(("n", "p"), [(1, 3), (4, 9), (10, 11), (12, 40)])
def test_primal_and_dual_agree(n: int, p: int, gamma: float) -> None:
    data = plain(n, n, p, gamma)
    rows = np.vstack([data.X[:1], np.random.default_rng(p).standard_normal((3, p))])
    whole = Leaves.root(p, p)
    # the moments alone give p + 1 data rows: the primal way
    (primal,) = expand(gram_of(data), whole, rows)
    (dual,) = expand(problem_of(data), whole, rows)
    yy = float(data.y @ data.y)
    assert dual.loss[0] == pytest.approx(primal.loss[0], rel=1e-6, abs=1e-12 * yy)
    np.testing.assert_allclose(dual.centre, primal.centre, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(dual.spread, primal.spread, rtol=1e-6)
    assert (dual.low.tolist(), dual.high) == (primal.low.tolist(), primal.high)


@settings(max_examples=examples(100))
@given(data=ugly(max_columns=5, max_rows=4, mild=True, zero=False), seed=st.integers(0, 2**32 - 1))
def test_the_ranges_of_the_whole_problem(data: Data, seed: int) -> None:
    rows = np.random.default_rng(seed).standard_normal((3, data.X.shape[1]))
    found = known_without_tree(problem_of(data))
    check_ranges(data, [found, best_subsets(problem_of(data))], rows)


@pytest.mark.parametrize("seed", [1, 33, 50, 53, 56, 65, 100, 101])
def test_dual_ranges_with_equal_columns_and_a_tiny_gamma(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((5, 3))[:, [0, 0, 1, 0, 1, 2]]  # XXᵀ is singular
    data = Data(X, X @ rng.standard_normal(6) + 0.3 * rng.standard_normal(5), 1e-8)
    problem, rows = problem_of(data), rng.standard_normal((20, 6))
    found = known_without_tree(problem)
    low, high = ranges(problem, found, rows)
    for i, support in enumerate(supports(best_subsets(problem))):
        expected = rows[:, support] @ problem.fit(support).coef
        assert np.all(low[i] <= expected + 1e-6)
        assert np.all(expected <= high[i] + 1e-6)


@pytest.mark.parametrize("length", [1e2, 1e4, 7e4, 1e5, 3e5])
def test_dual_bound_of_long_dependent_rows(length: float) -> None:
    X = np.array([[0.0, 5e-5, -length], [0.0, -5e-5, length]])
    data = Data(X, np.array([2.125, -2.125]), 1e-8)
    found = known_without_tree(problem_of(data))
    exact = exact_of(data)
    for one in found:
        assert one.lower_bound <= min(exact[one.size].values())


@pytest.mark.parametrize("n", [30, 250])
def test_too_many_columns_to_branch_on(n: int) -> None:
    p = 168 + 40
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, p))
    planted = [7, 90, 199]
    y = X[:, planted] @ np.array([5.0, -6.0, 7.0]) + 0.1 * rng.standard_normal(n)
    data, sizes = Data(X, y, 0.5), [1, 3, 10, p]
    problem = problem_of(data)
    poor = [np.array([0, 1, 2]), np.array([3])]
    found = best_subsets(problem, sizes=sizes, warm_starts=[*poor, planted])
    assert ended(found) is Status.NODE_LIMIT
    assert all(one.leaves is not None and one.leaves.size == 1 for one in found if not one.proved)
    assert [s.size for s in supports(found)] == sizes
    assert found[1].support.tolist() == planted
    assert np.all(lower_bounds(found) <= objectives(found))
    for i, s in enumerate(sizes):
        for _ in range(200):
            support = np.sort(rng.choice(p, s, replace=False))
            assert found[i].lower_bound <= problem.objective(support)
            assert found[i].objective <= problem.objective(support) * (1.0 + 1e-12)
    rows = rng.standard_normal((6, p))
    low, high = ranges(problem, found, rows)
    for i, support in enumerate(supports(found)):
        fit = problem.fit(support)
        assert np.all(low[i] <= rows[:, support] @ fit.coef)
        assert np.all(rows[:, support] @ fit.coef <= high[i])
    # all columns: the only support there is
    assert found[-1].objective == pytest.approx(problem.objective(np.arange(p)), rel=1e-9)
    assert found[-1].lower_bound == pytest.approx(found[-1].objective, rel=1e-5)


def test_a_spread_that_loses_its_digits_is_computed_afresh() -> None:
    """Columns 0 and 1 differ by 1e-6, and γ/2 is 1e-12; the optimum is column 2, and predicts 0."""
    tested = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((6, 3))
        X[:, 1] = X[:, 0] + 1e-6 * rng.standard_normal(6)
        error, low, high = 0.5 * rng.standard_normal(6), 0.0, 10.0
        for _ in range(50):  # The share of column 2 from which column 2 fits best, but for 1e-5.
            share = 0.5 * (low + high)
            problem = SparseRidgeProblem(X, X[:, 1] + share * X[:, 2] + error, gamma=2e-12, tau=1)
            objective = [problem.objective([j]) for j in range(3)]
            if objective[2] < min(objective[:2]) * (1.0 - 1e-5):
                high = share
            else:
                low = share
        if objective[2] < min(objective[:2]):
            tested += 1
            leaves = children(3, [], [0, 1, 2], 2)
            rows, upper = np.array([[5.0, 1.0, 0.0]]), np.array([[objective[1]]])
            known = (rows[:, 1:2] @ problem.fit([1]).coef)[None]
            ends = prediction_ranges(problem, leaves, rows, np.array([1]), known, upper)
            assert ends[0][0, 0] <= 0.0 <= ends[1][0, 0]
    assert tested > 20
