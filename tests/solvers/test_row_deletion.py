"""The shared leave-one-out tree against one solve per deleted row and against enumeration."""

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.answers import objectives
from support.brute_force import (
    Data,
    exact_least_norm,
    exact_moments,
    exact_objective,
    inner_product,
)
from support.deleted_rows import (
    Exact,
    check,
    chosen,
    exact_of,
    residual_of,
    solve,
    without,
)
from support.fresh import examples
from support.inside import DeletedRowSubsets, Limits
from support.problems import plain, problem_of, ugly
from support.trees import every_stop, key, known_best

from sparsecv import Constraints
from sparsecv.solvers import (
    SparseRidgeProblem,
    Status,
    best_subsets,
    best_subsets_rows_deleted,
)


@pytest.mark.parametrize(
    ("n", "p", "gamma"),
    [(120, 11, 1.0), (40, 12, 1e-6), (13, 12, 0.5), (9, 12, 3.0), (60, 8, 1e7), (30, 1, 1e-3)],
)
def test_equals_one_search_per_row_at_size(n: int, p: int, gamma: float) -> None:
    data = plain(n + p, n, p, gamma, noise=2.0)
    found, status, _ = solve(data)
    assert status is Status.OPTIMAL
    assert found.skipped.size == 0
    for i in range(n):
        rest = without(data, i)
        alone = best_subsets(problem_of(rest))
        np.testing.assert_allclose(found.objective[:, i], objectives(alone), rtol=1e-9)
        for a in range(p):
            assert chosen(found, a, i) == key(alone[a].support)
            columns = list(alone[a].support)
            beta = problem_of(rest).fit(columns).coef
            expected = data.y[i] - data.X[i, columns] @ beta
            assert found.residual[a, i] == pytest.approx(expected, rel=1e-7, abs=1e-9)


# --- rows that cannot be taken out ----------------------------------------------------------------


@pytest.mark.parametrize(("n", "p"), [(1, 1), (1, 3), (4, 4), (3, 6)])
def test_rows_that_determine_the_fit_are_skipped(n: int, p: int) -> None:
    found, _, _ = solve(plain(n * p, n, p, 1e-8))
    np.testing.assert_array_equal(found.skipped, np.arange(n))
    for array in (found.objective, found.residual, found.low, found.high):
        assert np.isnan(array).all()
    assert all(s.size for s in found.supports)


def test_no_row_is_skipped_beside_all_levels_of_factors() -> None:
    random = np.random.default_rng(3)
    levels = [np.eye(k)[random.integers(k, size=60)] for k in (4, 3)]
    X = np.column_stack([*levels, 1000.0 * random.standard_normal((60, 2))])
    X -= X.mean(axis=0)
    y = X @ random.standard_normal(9) + random.standard_normal(60)
    data = Data(X, y - y.mean(), 0.0)
    found, status, _ = solve(data)
    assert found.skipped.size == 0
    assert status is Status.OPTIMAL
    for i in range(0, 60, 5):
        alone = best_subsets(problem_of(without(data, i)))
        objective = [answer.objective for answer in alone]
        np.testing.assert_allclose(found.objective[:, i], objective, rtol=1e-9)


def test_one_row_of_full_leverage_is_skipped_and_the_rest_are_right() -> None:
    data = plain(9, 15, 5, 1e-8)
    data.X[:, 2] = 0.0
    data.X[6, 2] = 100.0
    found, status, _ = solve(data)
    np.testing.assert_array_equal(found.skipped, [6])
    check(data, found, status, exact_of(data))


@pytest.mark.parametrize("spike", [1e2, 1e3, 1e4, 3e4])
def test_objectives_are_right_when_one_row_dwarfs_the_rest(spike: float) -> None:
    data = plain(2, 12, 3, 0.5)
    data.y[4] = spike
    for limits in (None, *(Limits(node_limit=k) for k in range(6))):
        found, status, _ = solve(data, limits=limits)
        check(data, found, status, exact_of(data))


# --- ties -----------------------------------------------------------------------------------------


def test_ties_of_a_row_are_settled_by_its_own_fits() -> None:
    # without row 0, columns 0 and 1 are equal and leave nearly nothing; without row 1, much is left
    X = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    y = np.array([-1.1394562628812208, 3.493407245304055, -2.4414427990357748])
    data = Data(X, y, 2.873442630600854e-06)
    check_ranges(data, [found for found, *_ in every_stop(data, solve)], exact_of(data))


# --- limits ---------------------------------------------------------------------------------------


def check_ranges(data: Data, stops: list[DeletedRowSubsets], exact: Exact) -> None:
    """Every stop brackets the residual of the optimum, and of the support finally returned."""
    final = stops[-1]
    yy = float(data.y @ data.y)
    for i in np.setdiff1d(np.arange(data.y.size), final.skipped):
        for a, s in enumerate(final.sizes):
            for support in known_best(exact[i][s], chosen(final, a, i), yy):
                r = residual_of(data, i, support)
                slack = 1e-9 * (abs(r) + math.sqrt(yy))
                for found in stops:
                    assert found.low[a, i] - slack <= r <= found.high[a, i] + slack


@settings(max_examples=examples(50))
@given(data=ugly(max_columns=4, max_rows=5, mild=True, zero=False), draw=st.data())
def test_ranges_hold_wherever_the_search_stops(data: Data, draw: st.DataObject) -> None:
    p = data.X.shape[1]
    options: dict[str, Any] = {}
    if draw.draw(st.booleans(), label="some sizes and warm starts"):
        options["sizes"] = draw.draw(st.sets(st.integers(1, p), min_size=1).map(list))
        options["warm_starts"] = [draw.draw(st.sets(st.integers(0, p - 1)).map(list))]
    exact = exact_of(data)
    stops = every_stop(data, solve, **options)
    for k, (found, status, work) in enumerate(stops):
        check(data, found, status, exact)
        assert work.n_nodes <= max(k, 1)
        assert status in (Status.NODE_LIMIT, Status.OPTIMAL)
    if data.y.size > 1:
        check_ranges(data, [found for found, *_ in stops], exact)


@settings(max_examples=examples(50))
@given(data=ugly(max_columns=4, max_rows=5))
@example(data=Data(np.array([[-7e-11, 2.0]]), np.zeros(1), 0.0))  # Its row is all of column 0.
@example(data=Data(np.array([[0.0, 1.0], [7e-11, 2.0], [0.0, 3.0]]), np.zeros(3), 0.0))
def test_objectives_are_right_wherever_the_search_stops_in_ugly_data(data: Data) -> None:
    exact = exact_of(data)
    for found, status, _ in every_stop(data, solve):
        check(data, found, status, exact)
    assert status is Status.OPTIMAL
    np.testing.assert_array_equal(found.low, found.residual)
    np.testing.assert_array_equal(found.high, found.residual)


# --- what is refused, many columns, fits with a row deleted ---------------------------------------


def test_zero_columns_do_not_count_as_columns() -> None:
    data = plain(0, 12, 6)
    wide = np.zeros((12, 168 + 20))
    wide[:, 150:156] = data.X
    found, _, _ = solve(Data(wide, data.y, 1.0), sizes=[1, 2])
    few, _, _ = solve(data, sizes=[1, 2])
    np.testing.assert_allclose(found.objective, few.objective, rtol=1e-11)
    assert all(s.min() >= 150 for s in found.supports)


def test_residuals_are_those_at_gamma_zero_beside_a_long_column() -> None:
    data = plain(6, 14, 5, 0.0)
    X = data.X * np.array([1.0, 1e7, 1.0, 1e-2, 1.0])
    data = Data(X, data.y, 0.0)
    found, _, _ = solve(data, sizes=[5])
    assert found.skipped.size == 0
    for i in range(14):
        rest = without(data, i)
        rows = [[Fraction(float(v)) for v in row] for row in rest.X]
        beta, rank = exact_least_norm(rows, [Fraction(float(v)) for v in rest.y])
        left = Fraction(float(data.y[i])) - inner_product([Fraction(float(v)) for v in X[i]], beta)
        assert rank == 5
        assert found.residual[0, i] == pytest.approx(float(left), rel=1e-11)


@pytest.mark.parametrize("apart", [1e-1, 1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("seed", range(4))
def test_groups_of_which_few_digits_are_left_are_evaluated_afresh(seed: int, apart: float) -> None:
    """Groups have a column nearly in common: where one has left, the other needs a fresh factor."""
    rng = np.random.default_rng(seed)
    n, groups = 16, np.array([0, 0, 1, 2, 2, 3, 3, 3])
    X = rng.standard_normal((n, groups.size))
    X[:, 4] = X[:, 0] + apart * X[:, 4]
    X[:, 5] = X[:, 0] + apart * X[:, 5]
    y = X[:, 1] + X[:, 6] + rng.standard_normal(n)
    rules = Constraints(groups=groups.tolist())
    problem = SparseRidgeProblem(X, y, gamma=1e-6, tau=4, constraints=rules)
    found, status, _ = best_subsets_rows_deleted(problem, X, y)
    assert found.skipped.size == 0
    assert status is Status.OPTIMAL
    for s, size in enumerate(found.sizes.tolist()):
        for i in range(n):
            rest = SparseRidgeProblem(
                np.delete(X, i, 0), np.delete(y, i), gamma=1e-6, tau=size, constraints=rules
            )
            least = min(
                rest.objective(np.flatnonzero(np.isin(groups, some)))
                for some in combinations(range(4), size)
            )
            assert found.objective[s, i] == pytest.approx(least, rel=1e-7)


@pytest.mark.parametrize("height", [1e3, 2e5])
def test_a_row_that_outweighs_all_others_is_left_to_a_search_of_its_own(height: float) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        signal = rng.normal(size=12)
        X = signal[:, None] + 1e-7 * rng.normal(size=(12, 2))
        X[0], y = 1.0, np.append(height, signal[1:])
        problem = SparseRidgeProblem(X, y, gamma=1e-15, tau=1)
        found, _, _ = best_subsets_rows_deleted(problem, X, y)
        assert 0 in found.skipped
        assert np.isnan(found.objective[:, 0]).all()


@pytest.mark.parametrize("seed", [343, 825, 1214])
def test_a_row_that_leaves_few_digits_beside_nearly_equal_columns_is_skipped(seed: int) -> None:
    """Row 1 has nearly all of yᵀy; without row 0 or 2 two columns nearly interpolate y."""
    rng = np.random.default_rng(seed)
    share, base = 10.0 ** rng.uniform(-3, -1), rng.normal(size=3)
    X = base[:, None] * (1.0 + share * rng.normal(size=(3, 2)))
    third = X[:, 1] * (1.0 + share * 10.0 ** rng.uniform(-4, -2) * rng.normal(size=3))
    X, y = np.column_stack([X, third]), rng.normal(size=3)
    y[1] = rng.choice([-1, 1]) * 10.0 ** rng.uniform(1, 5)
    gamma = 2.0 * float((X**2).sum(axis=0).max()) * 10.0 ** rng.uniform(-14, -10)
    problem = SparseRidgeProblem(X, y, gamma=gamma, tau=2)
    found, _, _ = best_subsets_rows_deleted(problem, X, y, sizes=[2])
    for i in (0, 2):
        if i not in found.skipped:
            joint = exact_moments(np.delete(X, i, 0), np.delete(y, i))
            pairs = combinations(range(3), 2)
            least = float(min(exact_objective(joint, gamma, pair) for pair in pairs))
            assert found.objective[0, i] == pytest.approx(least, rel=2e-5)


def test_what_a_group_has_left_out_is_not_called_proved() -> None:
    """A column of 9e-14 explains 0.8 % of y in its row, by which its group is the best."""
    X, y = np.zeros((5, 4)), np.array([1.0, 1.0, 1.002, 0.0, 0.1])
    X[range(4), range(4)] = 1.0, 9e-14, 1.0, 1.0
    pairs = Constraints(groups=[*"aabb"])
    problem = SparseRidgeProblem(X, y, gamma=2e-24, tau=1, constraints=pairs)
    moments = exact_moments(X[:4], y[:4])
    assert exact_objective(moments, 2e-24, [0, 1]) < exact_objective(moments, 2e-24, [2, 3])
    found, *_ = best_subsets_rows_deleted(problem, X, y, sizes=[1])
    assert 4 in found.skipped or found.supports[found.choice[0, 4]].tolist() == [0, 1]
