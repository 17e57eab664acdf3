"""Supports whose value is near the least: the tree that hands them out against enumeration."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from support.brute_force import exact_moments, exact_objective
from support.inside import Comparison, Limits, Rows, UnitConstraints

from sparsecv.solvers import SparseRidgeProblem, Status


def values_of_all(problem, weight):
    """The value of every support that counts."""
    found = {}
    for size in np.flatnonzero(np.isfinite(weight)).tolist():
        for support in itertools.combinations(range(problem.p), size):
            objective = problem.objective(list(support)) if size else problem.yy
            found[support] = weight[size] * objective
    return found


def test_the_best_by_a_criterion_comes_with_a_bound_that_holds_at_every_limit() -> None:
    random = np.random.default_rng(3)
    for nodes in (0, 1, 3, 10, 30, 100, 1000):
        X = random.standard_normal((50, 9))
        y = X[:, :3].sum(axis=1) + 3.0 * random.standard_normal(50)
        problem = SparseRidgeProblem(X, y, gamma=0.0, tau=1)
        weight = np.exp(2.0 * np.arange(10) / 50)
        limits = Limits(node_limit=nodes)
        proof = Comparison(weight).near_best(problem, limits=limits).answers[0]
        size = proof.support.size
        least = min(
            problem.objective(list(T)) for T in itertools.combinations(range(9), size) if size
        )
        assert proof.lower_bound <= least * (1.0 + 1e-9)
        if proof.status is Status.OPTIMAL:
            best = min(values_of_all(problem, weight).values())
            assert weight[size] * proof.objective == pytest.approx(best, rel=1e-9)
        if nodes < 3:
            assert proof.status is Status.NODE_LIMIT
    assert proof.status is Status.OPTIMAL


@pytest.mark.parametrize(("penalty", "within"), [(1.0, 0.5), (1e12, 0.0)])
def test_the_first_bound_counts_the_rounding_of_fits(penalty: float, within: float) -> None:
    """Two columns leave 1e-11 of y; weights put them first, or tell nothing of sizes."""
    for seed in range(8):
        random = np.random.default_rng(seed)
        X = random.standard_normal((8, 4))
        y = X[:, 0] + X[:, 1] + 1e-11 * random.standard_normal(8)
        weight = np.full(5, penalty**2.5)
        weight[2] = penalty
        problem = SparseRidgeProblem(X, y, gamma=1e-20 * within, tau=1)
        best = Comparison(weight).near_best(problem, within).answers[0]
        moments = exact_moments(X, y)
        supports = itertools.combinations(range(4), best.size)
        least = min(exact_objective(moments, problem.given_gamma, T) for T in supports)
        assert Fraction(best.lower_bound) <= least


def test_too_many_supports_end_the_list_and_are_said() -> None:
    random = np.random.default_rng(4)
    X, y = random.standard_normal((40, 10)), random.standard_normal(40)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    found = Comparison(np.ones(11)).near_best(problem, 10.0, most=50)
    assert found.answers[0].status is Status.NODE_LIMIT
    assert len(found.answers) == 50
    whole = Comparison(np.ones(11)).near_best(problem, 10.0)
    assert (whole.answers[0].status, len(whole.answers)) == (Status.OPTIMAL, 1024)


def test_more_than_64_columns_take_masks_of_several_words() -> None:
    random = np.random.default_rng(5)
    X = random.standard_normal((300, 70))
    y = X[:, 66] + X[:, 3] + 0.5 * random.standard_normal(300)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    found = Comparison(np.ones(3)).near_best(problem, 0.5)
    assert found.answers[0].status is Status.OPTIMAL
    assert found.answers[0].support.tolist() == [3, 66]
    pairs = [T for k in range(3) for T in itertools.combinations(range(70), k)]
    limit = 1.5 * found.value[0]
    values = [problem.objective(list(T)) if T else problem.yy for T in pairs]
    assert len(found.answers) == sum(value <= limit for value in values)


def test_a_working_gamma_that_may_add_anything_leaves_the_list_in_doubt() -> None:
    # So many columns of so few rows have too many bases for zero_loss to be known.
    random = np.random.default_rng(0)
    X, y = random.standard_normal((8, 20)), random.standard_normal(8)
    problem = SparseRidgeProblem(X, y, gamma=0.0, tau=1)
    assert not np.isfinite(problem.at_unit_length().zero_loss(problem.yy))
    weight = np.append(np.exp(np.arange(3) / 3.0), [np.inf] * 18)
    found = Comparison(weight).near_best(problem, 0.1)
    values = values_of_all(problem, weight)
    limit = 1.1 * min(values.values())
    assert {T for T, value in values.items() if value < limit * (1.0 - 1e-9)} <= {
        tuple(one.support.tolist()) for one in found.answers
    }
    assert found.answers[0].status is Status.PRECISION


def test_a_criterion_of_one_size_counts_supports_of_that_size() -> None:
    """Where units count more than once, no good support of other numbers of units may count."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 5)), rng.standard_normal(20)
    rules = UnitConstraints.of(5, cost=[3, 3, 2, 2, 2])
    problem = SparseRidgeProblem.from_rows(Rows(np.column_stack([X, y])), constraints=rules)
    pairs = [one for one in itertools.combinations(range(5), 2) if rules.size_of(one) == 5]
    least = min(problem.objective(np.array(one)) for one in pairs)
    weight = np.full(13, np.inf)
    weight[5] = 1.0
    _, value = Comparison(weight).best(problem)
    assert value == pytest.approx(least)


def test_units_of_no_coefficient_are_listed_with_and_without_under_constraints() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((12, 4))
    X[:, 2] = 0.0
    y = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.standard_normal(12)
    rules = UnitConstraints.of(4, include=[0])
    rows = Rows(np.column_stack([X, y]))
    problem = SparseRidgeProblem.from_rows(rows, gamma=0.0, constraints=rules)
    found = Comparison(np.exp(2.0 * np.arange(5) / 12), by_rank=True).near_best(problem)
    supports = {tuple(one.support.tolist()) for one in found.answers}
    assert found.complete
    assert supports == {
        one
        for pair in supports
        for one in ({*pair} - {2}, {*pair} | {2})
        for one in [tuple(sorted(one))]
    }


def test_a_list_that_has_no_time_is_not_complete() -> None:
    rng = np.random.default_rng(2)
    column = rng.standard_normal((30, 1))
    X, y = np.repeat(column, 12, axis=1), column[:, 0] + rng.standard_normal(30)
    problem = SparseRidgeProblem(X, y, gamma=0.0, tau=1)
    found = Comparison(np.ones(13), by_rank=True).near_best(problem, 0.1, Limits(0.0))
    assert not found.complete


def test_a_response_of_zeros_leaves_the_list_open() -> None:
    problem = SparseRidgeProblem(np.eye(4), np.zeros(4), gamma=0.0, tau=2)
    assert not Comparison(np.ones(3)).near_best(problem, 0.01).complete
