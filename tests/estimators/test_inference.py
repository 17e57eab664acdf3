"""Sizes by a criterion, inference after the search, and what fits nearly as well."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from support.inside import Comparison, infer

from sparsecv import Constraints, SparseRidge, SparseRidgeCV, load
from sparsecv.errors import ConstantColumnWarning, UnprovedWarning
from sparsecv.solvers import SparseRidgeProblem, Status


def drawn(n: int = 80, p: int = 8, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, p)) * np.arange(1, p + 1)
    return X, 5.0 + X[:, 0] + 0.3 * X[:, 2] + 2.0 * random.standard_normal(n)


def residual_squares(X: Any, y: Any, columns: Any, intercept: bool = True) -> float:
    table = np.column_stack([X[:, list(columns)], np.full(len(y), float(intercept))])
    left = y - table @ np.linalg.lstsq(table, y, rcond=None)[0]
    return float(left @ left)


def least(X: Any, y: Any, name: str, intercept: bool = True) -> tuple[int, ...]:
    """The columns of least criterion, by enumeration."""
    n, p = X.shape
    best = (np.inf, ())
    for k in range(min(p, n - 2) + 1):
        chosen = float(len(list(itertools.combinations(range(p), k))))
        penalty = {"aic": 2.0 * k, "bic": k * np.log(n), "ebic": k * np.log(n) + 2 * np.log(chosen)}
        for columns in itertools.combinations(range(p), k):
            squares = residual_squares(X, y, columns, intercept)
            best = min(best, (n * np.log(squares) + penalty[name], columns))
    return best[1]


@pytest.mark.parametrize("name", ["aic", "bic", "ebic"])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_size_of_least_criterion_is_that_of_enumeration(name: str, intercept: bool) -> None:
    for seed in range(6):
        X, y = drawn(24, 7, seed)
        model = SparseRidge(tau=name, fit_intercept=intercept).fit(X, y)
        found = least(X, y, name, intercept)
        assert tuple(model.support_) == found
        assert (model.tau_, model.gamma_, model.status_) == (len(found), 0.0, "optimal")
        squares = residual_squares(X, y, found, intercept)
        assert model.objective_ == pytest.approx(squares)
        assert model.lower_bound_ == pytest.approx(squares, rel=1e-6)


def test_no_column_at_all_may_have_the_least_criterion(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    X, y = random.standard_normal((60, 3)), random.standard_normal(60)
    model = SparseRidge(tau="ebic").fit(X, y)
    assert (model.tau_, model.support_.size, model.status_) == (0, 0, "optimal")
    assert model.predict(X) == pytest.approx(np.full(60, y.mean()))
    assert model.inference().empty
    assert model.near_best(0.1)["columns"][0] == []
    assert (model.importance()["without"] == 1.0).all()
    assert "τ = 0" in model.summary()
    assert model.path_["tau"].tolist() == [0]
    assert model.compare()["tau"].tolist() == [0] * len(model.compare())
    assert model.alternatives(2)["columns"].tolist() == [[]]
    with pytest.raises(ValueError, match="no column"):
        model.to_sklearn()
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert (again.tau_, again.support_.size, again.gamma_) == (0, 0, 0.0)
    assert again.predict(X) == pytest.approx(model.predict(X))


def test_a_fit_without_errors_ends() -> None:
    X, _ = drawn(60, 12)
    model = SparseRidge(tau="bic").fit(X, X[:, 0] + X[:, 5])
    assert {0, 5} <= set(model.support_)
    assert model.status_ == "optimal"


def test_a_criterion_at_its_limit_is_not_proved() -> None:
    X, y = drawn(60, 12)
    with pytest.warns(UnprovedWarning):
        model = SparseRidge(tau="aic", time_limit=0.0).fit(X, y)
    assert model.status_ == "time limit"
    assert model.lower_bound_ <= model.objective_
    with pytest.raises(ValueError, match="proved to be the best"):
        model.inference()


def test_criteria_serve_groups_and_refuse_bounds() -> None:
    X, y = drawn()
    groups = Constraints(groups={"pair": [0, 1]}, include=[7], count="groups")
    model = SparseRidge(tau="bic", constraints=groups).fit(X, y)
    assert set(model.support_) >= {0, 1, 7}
    table = model.inference()
    assert 0 not in table["position"].tolist()
    assert 7 in table["position"].tolist()
    with pytest.raises(ValueError, match="serves no signs or bounds"):
        SparseRidge(tau="bic", constraints=Constraints(positive=True)).fit(X, y)


def test_where_all_columns_are_in_inference_is_that_of_least_squares() -> None:
    X, y = drawn(60, 3)
    table = SparseRidge(tau=3, gamma=0.7).fit(X, y).inference(0.9)
    centred = X - X.mean(axis=0)
    inverse = np.linalg.inv(centred.T @ centred)
    coef = inverse @ centred.T @ y
    sigma = np.sqrt(residual_squares(X, y, range(3)) / 56)
    error = sigma * np.sqrt(np.diag(inverse))
    assert table.attrs["sigma"] == pytest.approx(sigma)
    assert "56 degrees of freedom" in table.attrs["sigma_source"]
    assert table["coef"].to_numpy() == pytest.approx(coef)
    assert table["std_error"].to_numpy() == pytest.approx(error)
    p = 2.0 * student.sf(np.abs(coef) / error, 56)
    assert table["p_low"].to_numpy() == pytest.approx(p, rel=1e-6)
    assert table["p_high"].to_numpy() == pytest.approx(p, rel=1e-6)
    assert table["low"].to_numpy() == pytest.approx(coef - student.ppf(0.95, 56) * error)
    assert table["high"].to_numpy() == pytest.approx(coef + student.ppf(0.95, 56) * error)
    table = SparseRidge(tau=3, gamma=0.7).fit(X, y).inference(sigma=sigma)
    assert table["p_high"].to_numpy() == pytest.approx(2.0 * norm.sf(np.abs(coef) / error))


@pytest.mark.parametrize("sigma", [2.0, None])
@pytest.mark.parametrize("options", [{"tau": "bic"}, {"tau": 2}, {"tau": 2, "gamma": 5.0}])
def test_the_same_columns_are_selected_exactly_in_the_regions(
    options: dict[str, Any], sigma: float | None
) -> None:
    X, y = drawn(50, 6, 4)
    model = SparseRidge(**options).fit(X, y)
    table = model.inference(sigma=sigma)
    chosen, every = model.support_, X - X.mean(axis=0)
    eta = np.linalg.pinv(every[:, chosen]).T
    left = y - y.mean() - every @ np.linalg.lstsq(every, y, rcond=None)[0]
    squares = left @ left
    for i, (_, region) in enumerate(table.attrs["regions"].items()):
        value, direction = eta[:, i] @ y, eta[:, i] / (eta[:, i] @ eta[:, i])
        for at in value + table["std_error"].iloc[i] * np.linspace(-12.0, 12.0, 25):
            moved = y + (at - value) * direction
            if sigma is None:  # The length of what the test of 0 leaves is given, and not σ.
                rest = squares + (value**2 - at**2) * (direction @ direction)
                if rest <= 0.0:
                    assert options["tau"] == 2 or not any(low < at < high for low, high in region)
                    continue
                moved += left * (np.sqrt(rest / squares) - 1.0)
            same = np.array_equal(SparseRidge(**options).fit(X, moved).support_, chosen)
            assert same == any(low < at < high for low, high in region)


def test_ends_by_a_criterion_belong_to_their_own_sets() -> None:
    X, y = drawn(60, 6, 2)
    model = SparseRidge(tau="bic").fit(X, y)
    found, every = infer(model._kept_fit()), X - X.mean(axis=0)
    (ends, _), errors = found.intervals(0.9), found.tests.std_errors
    assert np.isfinite(ends).all()
    eta = np.linalg.pinv(every[:, model.support_]).T
    left = y - y.mean() - every @ np.linalg.lstsq(every, y, rcond=None)[0]
    for side in ends.T:
        laws = found.tests.laws(np.arange(len(side)), side / errors)[0]
        for i, (law, mean, error) in enumerate(zip(laws, side, errors, strict=True)):
            assert law.p_value(mean / error) == pytest.approx([0.1, 0.1], rel=1e-4)
            value, direction = eta[:, i] @ y, eta[:, i] / (eta[:, i] @ eta[:, i])
            for at in value + error * np.linspace(-9.0, 9.0, 15):
                more = ((value - mean) ** 2 - (at - mean) ** 2) * (direction @ direction)
                rest = 1.0 + more / (left @ left)
                inside = any(low < at < high for low, high in error * law.outer)
                if rest > 0.0:
                    moved = y + (at - value) * direction + left * (np.sqrt(rest) - 1.0)
                    chosen = SparseRidge(tau="bic").fit(X, moved).support_
                    assert np.array_equal(chosen, model.support_) == inside
                else:
                    assert not inside


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 100.0, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("options", [{"tau": "aic"}, {"tau": 2}, {"tau": 2, "gamma": 5.0}])
def test_units_of_columns_and_of_the_response_do_not_matter(
    options: dict[str, Any], unit: float
) -> None:
    X, y = drawn(60, 6, 2)
    model = SparseRidge(**options).fit(X, y)
    scale = 10.0 ** np.arange(-3, 3)
    other = SparseRidge(**options).fit(3.0 + X * scale, unit * (y - 7.0))
    for sigma in (None, 2.0):
        one = model.inference(sigma=sigma)
        two = other.inference(sigma=None if sigma is None else unit * sigma)
        ratio = unit / scale[model.support_]
        assert np.isfinite(one[["low", "high"]].to_numpy()).all()
        for name in ("coef", "std_error", "low", "high"):
            assert two[name].to_numpy() == pytest.approx(one[name].to_numpy() * ratio, rel=1e-6)
        for name in ("p_low", "p_high"):
            assert two[name].to_numpy() == pytest.approx(one[name].to_numpy(), rel=1e-6)


def test_a_copy_of_a_column_changes_nothing_but_the_search() -> None:
    X, y = drawn(60, 5, 6)
    one = SparseRidge(tau=2, gamma=0.0).fit(X, y).inference(sigma=2.0)
    two = SparseRidge(tau=2, gamma=0.0).fit(np.column_stack([X, X[:, :1]]), y).inference(sigma=2.0)
    assert two["position"].tolist() == one["position"].tolist()
    assert two["p_high"].to_numpy() == pytest.approx(one["p_high"].to_numpy(), rel=1e-6)


@pytest.mark.parametrize(("tau", "sigma"), [(2, 1.0), ("aic", None)])
def test_p_values_of_null_columns_are_uniform(tau: Any, sigma: float | None) -> None:
    random, found = np.random.default_rng(8), []
    while len(found) < 400:
        X, y = random.standard_normal((40, 6)), random.standard_normal(40)
        p = infer(SparseRidge(tau=tau, gamma=0.0).fit(X, y)._kept_fit(), sigma).p_values()
        if p.size:
            found.append(p[int(random.integers(len(p))), 1])
    share = np.mean(np.array(found)[:, None] <= [0.05, 0.2, 0.5], axis=0)
    # Three standard errors of the shares of 400 draws; a naive test rejects .16 at level .05.
    assert (abs(share - [0.05, 0.2, 0.5]) < [0.033, 0.06, 0.075]).all()


def test_few_degrees_of_freedom_need_a_given_sigma() -> None:
    X, y = drawn()
    model = SparseRidge(tau=2).fit(X[:38], y[:38])
    with pytest.raises(ValueError, match="leaves 29 degrees of freedom"):
        model.inference()
    assert model.inference(sigma=2.0).attrs["sigma_source"] == "given"


def test_a_column_that_others_determine_is_not_tested() -> None:
    random = np.random.default_rng(1)
    X = random.standard_normal((50, 3))
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    y = X[:, 0] + random.standard_normal(50)
    table = SparseRidge(tau=4, gamma=0.0).fit(X, y).inference(sigma=1.0)
    assert table["p_low"].isna().tolist() == [True, True, False, True]


def test_features_that_the_same_fit_lacks_stand_in_the_order_of_their_columns() -> None:
    """The best fit is on 1, 4 and 5, and the best without one of them lacks all three."""
    rng = np.random.default_rng(34)
    X = rng.standard_normal((15, 8))
    y = X @ np.ones(8) + 3.0 * rng.standard_normal(15)
    for unit in 10.0 ** np.arange(-9, 10):
        worth = SparseRidge(tau=3, gamma=0.0, standardize=False).fit(X, unit * y).importance()
        assert worth["position"].tolist()[:3] == [1, 4, 5], unit
        assert np.ptp(worth["without"].to_numpy()[:3]) <= 1e-12


def test_near_best_and_importance_are_those_of_enumeration() -> None:
    X, y = drawn(40, 6, 5)
    model = SparseRidge(tau=3, gamma=2.0).fit(pd.DataFrame(X, columns=list("abcdef")), y)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    centred = y - y.mean()
    values = {(): float(centred @ centred)}
    for k in (1, 2, 3):
        for columns in itertools.combinations(range(6), k):
            A = scaled[:, columns]
            b = A.T @ centred
            fit = np.linalg.solve(A.T @ A + np.eye(k), b)
            values[columns] = float(centred @ centred - b @ fit)
    best = min(values.values())
    table = model.near_best(0.1)
    expected = {columns for columns, value in values.items() if value <= 1.1 * best}
    assert {tuple(columns) for columns in table["columns"]} == expected
    assert table["excess"].to_numpy() == pytest.approx(table["objective"] / best - 1.0, abs=1e-9)
    assert table.attrs["complete"]
    assert table["names"][0] == ["abcdef"[j] for j in model.support_]
    worth = model.importance()
    for name, row in worth.iterrows():
        j = "abcdef".index(str(name))
        lacking = min(value for columns, value in values.items() if j not in columns)
        having = min(value for columns, value in values.items() if j in columns)
        assert row["without"] == pytest.approx(lacking / best)
        assert row["with_"] == pytest.approx(having / best)
    assert worth["proved"].all()


def test_no_worth_is_below_one_where_a_later_search_meets_a_better_support(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit has ended the first search before it has met column 0, which matters most."""
    X, y = drawn(40, 5)
    y = y + 5.0 * X[:, 0]
    model = SparseRidge(tau=2, gamma=2.0).fit(X, y)
    expected, calls, best = model.importance(), [0], Comparison.best

    def ended(self: Comparison, problem: Any, limits: Any = None) -> Any:
        calls[0] += 1
        if calls[0] > 1:
            return best(self, problem, limits)
        rules = replace(problem.constraints, exclude=np.arange(5) == 0)
        how: dict[str, Any] = {"gamma": problem.given_gamma, "constraints": rules}
        answer, value = best(self, SparseRidgeProblem.from_rows(problem.data, **how), limits)
        return replace(answer, status=Status.TIME_LIMIT), value

    monkeypatch.setattr(Comparison, "best", ended)
    found = model.importance()
    assert 0 in model.support_
    assert not found["proved"].any()
    assert (found[["without", "with_"]].min(axis=1) == 1.0).all()
    assert found.loc["x0", "with_"] == 1.0
    assert found.loc["x0", "without"] == pytest.approx(expected.loc["x0", "without"])


def test_worth_beside_a_perfect_fit_and_without_time() -> None:
    X, y = drawn(30, 4)
    y = X[:, 0] + X[:, 1]
    worth = SparseRidge(tau=2, gamma=0.0, standardize=False, fit_intercept=False).fit(X, y)
    assert worth.importance()["with_"][:2].tolist() == [1.0, 1.0]
    with pytest.warns(UnprovedWarning):
        late = SparseRidge(tau=2, time_limit=0).fit(*drawn(30, 4))
    found = late.importance()
    assert not found["proved"].any()
    assert found[["without", "with_"]].isna().any(axis=1).all()  # No search has begun.


def test_a_response_that_does_not_vary_has_rows_and_near_models() -> None:
    X, _ = drawn(30, 4)
    with pytest.warns(ConstantColumnWarning):
        model = SparseRidge(tau=2, gamma=0.0).fit(X, np.full(30, 3.0))
    assert len(model.row_influence()) == 30
    assert False not in model.row_removals(2)["stays"].tolist()
    assert not model.near_best(0.01).attrs["complete"]


def test_worth_within_constraints_and_after_cross_validation() -> None:
    X, y = drawn()
    asked = Constraints(include=[1], exclude=[4], groups={"pair": [0, 2]}, count="groups")
    worth = SparseRidge(tau=2, constraints=asked).fit(X, y).importance()
    assert np.isnan(worth.loc["x1", "without"])
    assert worth.loc["x1", "with_"] == 1.0
    assert worth.loc["x4", "without"] == 1.0
    assert np.isnan(worth.loc["x4", "with_"])
    assert worth.loc["pair (2 columns)", "without"] > 1.0
    model = SparseRidgeCV(taus=[1, 2, 3], rule="minimum").fit(X, y)
    assert f"up to {model.tau_} features" in model.near_best().attrs["about"]
    assert model.near_best(0.0)["columns"][0] == model.support_.tolist()
    for bad in (-1.0, np.nan, [1.0]):
        with pytest.raises(ValueError, match="within"):
            model.near_best(bad)


def strong(draw: int) -> tuple[Any, Any]:
    """Three of seven columns matter so much that R² is above .9."""
    random = np.random.default_rng([draw, 5])
    X = random.standard_normal((80, 7))
    X[:, 1] += X[:, 0]
    return X, X[:, :3] @ [3.0, -3.0, 1.5] + random.standard_normal(80)


def test_large_p_values_of_coefficients_that_no_search_finds_by_chance_are_pointed_out() -> None:
    X, y = strong(1)
    model = SparseRidge(tau="bic").fit(pd.DataFrame(X, columns=list("abcdefg")), y)
    found = model.inference()
    assert (found.loc[["a", "b", "c"], "p_low"] > 0.05).all()
    assert (found["coef"] / found["std_error"]).abs()[["a", "b", "c"]].min() > 13.0
    assert found.attrs["hidden"] == ["a", "b", "c"]
    assert "a, b, c: the p-value is large because of what it conditions on" in " ".join(
        model.summary().split()
    )
    for other in (model.inference(sigma=1.0), SparseRidge(tau=3, gamma=0.0).fit(X, y).inference()):
        assert (other["p_high"].to_numpy()[:3] < 1e-9).all()
        assert other.attrs["hidden"] == []


@pytest.mark.parametrize("sigma", [1.0, None])
def test_columns_that_do_not_matter_are_hardly_ever_called_hidden(sigma: float | None) -> None:
    random, wrong = np.random.default_rng(9), 0
    for _ in range(60):
        X, y = random.standard_normal((45, 5)), random.standard_normal(45)
        found = infer(SparseRidge(tau=1, gamma=0.0).fit(X, y)._kept_fit(), sigma)
        wrong += bool(found.hidden(0.95).any())
        # All columns together exceed the bound as often as Fisher's test of them all rejects.
        assert found.hidden(1e-12).sum() == (found.p_values()[:, 1] >= 1.0 - 1e-12).sum()
    assert wrong <= 3  # The bound is exceeded with a probability of at most .05 for each table.
