"""Sizes in which a unit counts its coefficients, against a fit of every support."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold
from support.counted_attacks import counted_units, problem_of
from support.fresh import draws
from support.inside import Limits, UnitConstraints

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError, UnprovedWarning
from sparsecv.solvers import SparseRidgeProblem, best_subsets_rows_deleted, solve, support_path


def test_no_search_errs_where_units_count_more_than_once() -> None:
    for number, (note, rng) in enumerate(draws(240, 91)):
        wrong = list(counted_units(rng, number))
        assert not wrong, f"{note}: {wrong}"


def test_sizes_and_models_of_constraints() -> None:
    unit = [0, 0, 0, 1, 2, 2]
    rules = UnitConstraints.of(6, unit=unit, include=[3], cost=[2, 2, 2, 1, 2, 2])
    assert rules.sizes.tolist() == [1, 3, 5]
    assert [sorted(one) for one in rules.models(4)] in ([[1, 2], [0, 1]], [[0, 1], [1, 2]])
    assert rules.count_models(4) == 3
    assert rules.most_columns(3) == 4
    assert rules.by_units.max_size == 3
    assert rules.restricted([0, 3, 4]).max_size == 5


@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_a_column_that_is_left_of_a_factor_counts_as_the_factor(gamma: float) -> None:
    """Every unit has one column, the first counts twice, and two columns are nearly the same."""
    rng = np.random.default_rng(0)
    rules = UnitConstraints.of(5, unit=[0, 0, 1, 2, 3], cost=[2, 2, 1, 1, 1])
    rules = rules.restricted([0, 2, 3, 4])
    X = rng.standard_normal((40, 4))
    X[:, 2] = X[:, 1] + 1e-9 * rng.standard_normal(40)
    y = X @ [3.0, 2.0, 0.5, 0.1] + rng.standard_normal(40)
    problem = problem_of(X, y, gamma, rules)
    path = support_path(problem, [gamma], [1, 2, 3], solver="exact")
    assert [rules.size_of(path.support(0, t)) for t in range(3)] == [1, 2, 3]
    with pytest.raises(InputError, match="groups of columns"):
        solve(problem.replace(tau=2), backend="highs")


def test_a_size_above_the_number_of_columns_loses_as_much_as_all_columns() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    X[:, 2] = X[:, 1]
    given = SparseRidgeProblem.from_gram(X.T @ X, X.T @ y, y @ y, gamma=1e-3, tau=3)
    how = {"gamma": 1e-3, "constraints": UnitConstraints.of(3, cost=[2, 1, 1])}
    problems = [SparseRidgeProblem.from_rows(given.data, tau=tau, **how) for tau in (3, 4)]
    losses = [problem.data_loss(1.0) for problem in problems]
    assert 0.0 < losses[0] == losses[1]


def test_open_nodes_answer_sizes_above_their_number_of_columns() -> None:
    """Each unit has one column, and some count more: a tree that is cut brackets every fold."""
    rules = UnitConstraints.of(6, cost=[2, 2, 1, 1, 3, 1])
    every = [np.array(one) for k in range(7) for one in combinations(range(6), k)]
    counts, sizes = np.array([rules.size_of(one) for one in every]), np.arange(1, 11)
    for note, rng in draws(120, 92):
        X = rng.standard_normal((14, 6))
        y = X @ [1.0, 0.9, 0.8, 0.7, 0.0, 0.0] + 0.8 * rng.standard_normal(14)
        problem = problem_of(X, y, 1.0, rules)
        limits = Limits(node_limit=int(rng.integers(1, 8)))
        found, _, _ = best_subsets_rows_deleted(problem, X, y, sizes=sizes, limits=limits)
        for i in np.setdiff1d(np.arange(14), found.skipped).tolist():
            left = problem_of(np.delete(X, i, axis=0), np.delete(y, i), 1.0, rules)
            objectives = np.array([left.objective(one) for one in every])
            for t, size in enumerate(sizes.tolist()):
                best = every[int(np.where(counts <= size, objectives, np.inf).argmin())]
                residual = float(y[i] - X[i, best] @ left.fit(best).coef)
                inside = found.low[t, i] - 1e-9 <= residual <= found.high[t, i] + 1e-9
                assert inside, f"{note}, row {i}, size {size}"


def test_no_column_of_a_factor_is_left_in_some_folds() -> None:
    """A fold of the rows has one column of a pair that counts two, beside near copies."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    X[10:, 1] = 0.0
    X[:, 3] = X[:, 2] + 1e-9 * rng.standard_normal(40)
    y = X @ [3.0, 1.0, 2.0, 0.5] + rng.standard_normal(40)
    asked = {"gammas": [0.0], "taus": [1, 2, 3], "rule": "minimum", "cv": KFold(4)}
    pair = Constraints(groups={"g": [0, 1]})
    with pytest.warns(UnprovedWarning):
        model = SparseRidgeCV(**asked, nested=True, constraints=pair).fit(X, y)
    assert model.path_["tau"].tolist() == [1, 2, 3]


def test_sizes_of_several_supports_are_those_of_each() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        p = int(rng.integers(1, 10))
        unit = rng.integers(0, 4, p)
        rules = UnitConstraints.of(p, unit=unit, cost=rng.integers(1, 6, 4)[unit])
        rows = np.full((6, p + 1), -1)
        right = []
        for row in rows:
            some = np.flatnonzero(rng.random(p) < 0.4)
            row[: some.size] = rng.permutation(some)
            # Each unit of which the support has a column counts once.
            right.append(sum(int(rules.cost[rules.unit[unit == u][0]]) for u in {*unit[some]}))
        assert rules.sizes_of(rows).tolist() == right
        assert [rules.size_of(row[row >= 0]) for row in rows] == right


def factors(n: int = 90) -> tuple[pd.DataFrame, np.ndarray]:
    """Two numbers, a factor of four levels that explains y, and one of nine that does not."""
    rng = np.random.default_rng(4)
    level = rng.integers(0, 4, n)
    X = pd.DataFrame(
        {
            "a": rng.standard_normal(n),
            "b": rng.standard_normal(n),
            "four": [f"l{k}" for k in level],
            "nine": [f"m{k}" for k in rng.integers(0, 9, n)],
        }
    )
    return X, 2.0 * X["a"].to_numpy() + np.array([0.0, 2.0, -1.0, 1.0])[level] + rng.normal(size=n)


def test_a_factor_counts_its_levels_but_one() -> None:
    X, y = factors()
    model = SparseRidge(tau=4).fit(X, y)
    assert model.path_["tau"].tolist()[-1] == 4
    assert set(model.path_["names"].iloc[-1]) == {"a", "four (4 levels)"}
    assert "no other set of at most 4 coefficients" in " ".join(model.summary().split())
    assert model.near_best(0.0)["columns"].iloc[0] == model.support_.tolist()
    assert SparseRidge(tau=3, constraints=Constraints(include=["four"])).fit(X, y).tau_ == 3
    with pytest.raises(InputError, match="a size of 2 is too small"):
        SparseRidge(tau=2, constraints=Constraints(include=["four"])).fit(X, y)
    with pytest.raises(InputError, match="count must be 'coefficients' or 'groups'"):
        SparseRidge(constraints=Constraints(count="levels")).fit(X, y)


def test_other_searches_count_groups() -> None:
    X, y = factors()
    model = SparseRidgeCV(gammas=[1.0], cv=3, rule="minimum", method="grid").fit(X, y)
    assert model.taus_.tolist() == [0, 1, 2, 3, 4]
    sizes = SparseRidgeCV(gammas=[1.0], cv=3).fit(X, y).taus_.tolist()
    assert sizes == [0, 1, 2, 3, 4, 5, *range(8, 14)]


def test_more_than_45_features_count_groups_and_the_summary_says_so() -> None:
    X, y = factors(120)
    rng = np.random.default_rng(5)
    X = X.assign(**{f"z{j}": rng.standard_normal(len(X)) for j in range(43)})
    model = SparseRidgeCV(gammas=[1.0], taus=[1, 2, 3], cv=3, rule="minimum").fit(X, y)
    assert "with more than 45 features sizes count groups" in " ".join(model.summary().split())
