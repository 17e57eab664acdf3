"""How many coefficients a support counts, and which of several tied supports is the answer."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from support.fresh import draws
from support.inside import Comparison, Rows, coefficients
from support.tie_attacks import TIES, drawn_table, whole_rank

from sparsecv import Constraints, SparseRidge
from sparsecv.errors import ConstantColumnWarning, InputError
from sparsecv.selection import row_influence
from sparsecv.solvers import SparseRidgeProblem

COUNTS = {"counts": 90, "ties": 90}


@pytest.mark.parametrize("name", TIES)
def test_nothing_said_is_wrong(name: str) -> None:
    for number, (note, rng) in enumerate(draws(COUNTS[name], 9700 + list(TIES).index(name))):
        wrong = list(TIES[name](rng, number))
        assert not wrong, f"{note}: {wrong}"


def test_coefficients_are_joint_ranks_and_their_bounds_hold() -> None:
    for note, rng in draws(300, 9720):
        table = drawn_table(rng)
        n, units = len(table.y), [np.array(unit) for unit in table.units]
        centred = table.X - table.X.mean(axis=0)
        data, ones = Rows(np.column_stack([centred, table.y])), np.ones((n, 1))
        counts = coefficients.Coefficients(data, units)
        included = rng.random(len(units)) < 0.2
        least = counts.least(included)
        rank = {}
        for k in range(len(units) + 1):
            for some in combinations(range(len(units)), k):
                columns = np.array(sorted(j for u in some for j in units[u]), dtype=np.intp)
                rank[some] = whole_rank(np.hstack([ones, table.X[:, columns]])) - 1
                assert data.ranks([columns]).tolist() == [rank[some]], note
                members = np.isin(np.arange(len(units)), some)
                assert counts.of(members[None]).tolist() == [rank[some]], note
                spanned = [
                    u for u in range(len(units)) if u not in some and _joined(rank, table, some, u)
                ]
                assert counts.spanned(members).tolist() == spanned, note
        for some, count in rank.items():
            free = [u for u in some if not included[u]]
            others = [tuple(v for v in some if v != u) for u in free]
            redundant = any(rank[other] == count for other in others)
            if set(np.flatnonzero(included)) <= set(some) and not redundant:
                assert least[len(free)] <= count, note


def _joined(rank, table, some, u):
    """Whether a unit adds no coefficient to some units."""
    columns = [j for v in (*some, u) for j in table.units[v]]
    ones = np.ones((len(table.y), 1))
    return whole_rank(np.hstack([ones, table.X[:, columns]])) - 1 == rank[some]


def test_two_factors_that_share_a_level_count_it_once() -> None:
    random = np.random.default_rng(20261128)
    retired = random.random(60) < 0.3
    table = pd.DataFrame(
        {
            "job": np.where(retired, "retired", random.choice(["full", "part"], 60)),
            "hours": np.where(retired, "retired", random.choice(["day", "night"], 60)),
            "age": random.standard_normal(60),
        }
    )
    y = 0.9 * (table["job"] == "full") + 0.55 * (table["hours"] == "day")
    y = y + random.standard_normal(60)
    model = SparseRidge(tau="bic").fit(table, y)
    assert {name.split("=")[0] for name in model.get_feature_names_out()} == {"job", "hours"}
    assert model.status_ == "optimal"


@pytest.mark.parametrize("seed", range(20))
def test_a_list_of_the_best_has_every_tie_or_is_not_complete(seed: int) -> None:
    random = np.random.default_rng(20261140 + seed)
    X = random.integers(-2, 3, (10, 3)).astype(float)
    X[:, 1] = 2.0 * X[:, 0]
    y = X[:, 0] + random.integers(-2, 3, 10)
    found = SparseRidge(tau=1, gamma=0).fit(X, y).near_best(0)
    listed = {tuple(columns) for columns in found["columns"]}
    assert ((0,) in listed) == ((1,) in listed)
    assert found.attrs["complete"]


def test_a_list_of_perfect_fits_is_not_called_complete() -> None:
    random = np.random.default_rng(1)
    X, y = random.standard_normal((3, 9)), random.standard_normal(3)
    model = SparseRidge(tau=7, gamma=0).fit(X, y)
    for within in (0.0, 0.1):
        found = model.near_best(within)
        assert len(found) < 492  # Every pair of columns, and every set of up to seven, is perfect.
        assert not found.attrs["complete"]


@pytest.mark.parametrize("rule", ["aic", "bic", "ebic"])
def test_the_row_that_a_column_hangs_on_decides(rule: str) -> None:
    random = np.random.default_rng(20261128)
    X = random.standard_normal((20, 5))
    X[:, 0] = np.arange(20) == 7
    y = X[:, 1] + random.standard_normal(20) + 8.0 * X[:, 0]
    model = SparseRidge(tau=rule).fit(X, y)
    assert 0 in model.support_
    kept = np.arange(20) != 7
    row = model.row_influence().loc[7]
    assert row["columns"] == SparseRidge(tau=rule).fit(X[kept], y[kept]).support_.tolist()
    assert not row["stays"]
    assert row["proved"]


def test_a_support_of_too_many_coefficients_for_the_rows_is_behind_any_other() -> None:
    random = np.random.default_rng(0)
    X, y = random.standard_normal((5, 4)), random.standard_normal(5)
    problem = SparseRidgeProblem(X - X.mean(axis=0), y - y.mean(), gamma=0.0, tau=4)
    weight = np.array([1.0, 1.4, 2.0, 2.7, np.inf])
    every, one = np.arange(4), np.array([1])
    compared = Comparison(weight, by_rank=True)
    assert row_influence.lead_of(problem, every, one, compared) == -1.0
    assert row_influence.lead_of(problem, one, every, compared) == 0.0
    assert row_influence.lead_of(problem, every, every, compared) == 0.0
    assert np.isfinite(
        row_influence.lead_of(problem, np.array([0, 1]), one, row_influence.fixed_size(1))
    )


@pytest.mark.parametrize("rule", ["aic", "bic", "ebic"])
def test_a_criterion_refuses_rows_that_are_too_few_for_every_model(rule: str) -> None:
    X, y = np.random.default_rng(0).standard_normal((4, 3)), np.array([1.0, 3.0, 2.0, 5.0])
    stay = SparseRidge(rule, constraints=Constraints(include=[0, 1, 2]))
    with pytest.raises(InputError, match="4 is too few for the intercept and the columns that"):
        stay.fit(X, y)
    with pytest.raises(InputError, match=r"0\.5 is too few"):
        SparseRidge(rule).fit(X, y, sample_weight=[0.1, 0.2, 0.1, 0.1])
    assert stay.set_params(fit_intercept=False).fit(X, y).support_.tolist() == [0, 1, 2]


def test_a_tie_without_a_row_is_broken_as_in_the_table_without_it() -> None:
    """Without its row 4 the first factor has two levels, which are those of the second factor."""
    first, second = np.array(list("bbcbacb")), np.array([0, 0, 1, 0, 0, 1, 0])
    number = np.array([-2.0, 8.0, -3.0, 8.0, 2.0, 3.0, 4.0])
    y = np.array([-3.978, -1.066, 1.109, 1.137, 0.086, 0.975, 0.918])
    X = np.column_stack([number, first[:, None] == list("abc"), second[:, None] == [0, 1]])
    rules = Constraints(groups=["number"] + 3 * ["first"] + 2 * ["second"])
    model = SparseRidge(tau="aic", constraints=rules).fit(X, y)
    np.testing.assert_array_equal(model.support_, [0, 4, 5])
    told = model.row_influence().loc[4]
    with pytest.warns(ConstantColumnWarning):
        without = SparseRidge(tau="aic", constraints=rules).fit(np.delete(X, 4, 0), np.delete(y, 4))
    np.testing.assert_array_equal(without.support_, [0, 2, 3])
    assert told["proved"]
    assert not told["stays"]
    assert set(told["names"]) == {"x0", "first (3 columns)"}


def test_leads_on_six_rows_are_numbers_where_other_columns_are_taken() -> None:
    for note, rng in draws(60, 9721):
        X, y = rng.standard_normal((6, 4)), rng.standard_normal(6)
        found = SparseRidge(tau="aic").fit(X, y).row_influence()
        assert not found["lead"][~found["stays"]].isna().any(), note
