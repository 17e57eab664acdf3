"""The error to expect on new data is an outer cross-validation of the whole fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit
from support.commands import run_json
from support.inside import MomentFolds, make_folds
from support.stand_ins import StandIn, real
from support.studies import Array, made, study_of
from support.tables import write_csv

from sparsecv import Constraints, SparseRidgeCV
from sparsecv.errors import InputError, UnprovedWarning
from sparsecv.selection import nested

OPTIONS: list[dict[str, Any]] = [
    {"nested": 3},
    {"nested": True, "cv": "loo"},
    {"nested": 4, "cv": "size:6", "rule": "projected"},
    {"nested": True, "cv": KFold(3, shuffle=True, random_state=1)},
    {"nested": True, "cv": TimeSeriesSplit(3)},
    {"nested": 3, "rule": "corrected", "gammas": None},
    {"nested": 3, "rule": "stability", "cv": 3},
    {"nested": 3, "rule": "projected", "fit_intercept": False},
    {"nested": 3, "rule": "projected", "standardize": False},
    {"nested": 3, "method": "search", "taus": [1, 2, 4]},
    {"nested": 3, "constraints": Constraints(positive=[0])},
]


def by_hand(model: SparseRidgeCV, X: Array, y: Array, weights: Any, groups: Any) -> Array:
    """Error and standard error, by a loop over fits of the model itself."""
    n, cv = y.size, model.cv
    drawn = isinstance(cv, (int, str))
    units = n if groups is None else np.unique(groups).size
    outer: Any = model.nested
    if outer is True:
        outer = cv if not drawn else units if units <= 30 else 10
    folds = make_folds(outer, n, X=X, groups=groups)
    inner = clone(model).set_params(nested=False)
    sums, sizes = [], []
    for j in range(folds.k):
        train, test = folds.split(j)
        given = {"sample_weight": weights, "groups": groups}
        part = {name: None if v is None else v[train] for name, v in given.items()}
        predicted = inner.fit(X[train], y[train], **part).predict(X[test])
        counts = np.ones(test.size) if weights is None else weights[test]
        sums.append(counts @ (y[test] - predicted) ** 2)
        sizes.append(counts.sum())
    error = np.sum(sums) / np.sum(sizes)
    means = np.array(sums) / sizes
    variance = np.average((means - error) ** 2, weights=sizes) / (len(sizes) - 1)
    return np.array([error, np.sqrt(variance)])


@pytest.mark.filterwarnings("ignore::sparsecv.errors.UnprovedWarning")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_is_a_loop_over_fits(options: dict[str, Any]) -> None:
    X, y = made(31, 4)
    model = SparseRidgeCV(**{"gammas": [1.0, 30.0], "rule": "minimum"} | options).fit(X, y)
    expected = by_hand(model, X, y, None, None)
    assert model.nested_error_ == expected[0]
    np.testing.assert_allclose(model.nested_std_error_, expected[1], rtol=1e-12)
    plain = clone(model).set_params(nested=False).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, model.coef_)  # the fit itself is the same
    assert not hasattr(plain, "nested_error_")


@pytest.mark.parametrize("grouped", [False, True])
def test_as_many_folds_as_rows_or_groups_are_leave_one_out_again(grouped: bool) -> None:
    X, y = made(31, 3)
    groups = np.arange(31) // 7 if grouped else None
    k = 5 if grouped else 31
    one, two = (
        SparseRidgeCV(cv=cv, nested=3, rule="minimum", gammas=[1.0]).fit(X, y, groups=groups)
        for cv in (k, "loo")
    )
    assert one.nested_error_ == pytest.approx(two.nested_error_, rel=1e-9)
    unit = "group" if grouped else "row"
    with pytest.raises(InputError, match=f"every {unit} is a fold, and there is no other"):
        one.partitions(2)


@pytest.mark.parametrize("cv", [2, "loo", GroupKFold(3)])
def test_weights_and_groups_go_along(cv: Any) -> None:
    X, y = made(24, 3)
    rng = np.random.default_rng(3)
    groups, weights = np.array(list("abcdef") * 4), rng.uniform(0.5, 2.0, 24)
    weights[0] = 0.0
    model = SparseRidgeCV(cv=cv, gammas=[1.0, 30.0], rule="minimum", nested=True)
    model.fit(X, y, sample_weight=weights, groups=groups)
    expected = by_hand(model, X, y, weights, groups)
    found = [model.nested_error_, model.nested_std_error_]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("rule", [None, "minimum", "stability", "projected"])
def test_held_out_rows_leave_no_trace(rule: str | None, stand_in: StandIn) -> None:
    X, y = made(30, 5)
    models: list[Array] = []
    inside = real("fitted_outside")

    def kept(*args: Any) -> Any:
        found = inside(*args)
        models.append(np.append(found[0].coef, found[0].intercept))
        return found

    stand_in(fitted_outside=kept)
    held = make_folds(3, 30, seed=0).split(1)[1]
    for change in (0.0, 1e3):
        z, Z = y.copy(), X.copy()
        z[held] += change
        Z[held] *= 1.0 + change
        nested.nested_error(study_of(Z, z, rule=rule, time_limit=60.0), 5, 3)
    np.testing.assert_array_equal(models[1], models[4])
    assert (models[0] != models[3]).any()


def test_paper_units_are_those_of_the_cv_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_in: StandIn
) -> None:
    monkeypatch.chdir(tmp_path)
    stand_in(NESTED=real("NESTED")._replace(max_seconds_unasked=np.inf))
    X, y = made(40, 4)
    write_csv(Path("t.csv"), X, y)
    found = []
    for more in ([], ["--protocol", "paper"], ["--protocol", "paper", "--no-nested"]):
        found.append(run_json("cv", "t.csv", "--gamma", "1", *more)["nested"])
    assert found[0]["folds"] == found[1]["folds"] == 10
    # both take the mean of y and its spread from training rows
    assert found[1]["error"] * y.var() == pytest.approx(found[0]["error"], rel=0.2)
    assert found[2] is None


def test_what_would_take_long_is_not_nested_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_in: StandIn
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = made(40, 4)
    write_csv(Path("t.csv"), X, y)
    common = "cv", "t.csv", "--gamma", "1"
    stand_in(NESTED=real("NESTED")._replace(max_seconds_unasked=0.0))
    assert run_json(*common)["nested"] is None
    assert run_json(*common, "--nested")["nested"]["folds"] == 10
    # What is expected grows with the number of outer folds: ten for 40 rows, and one for each of 20
    # groups.
    study, groups = study_of(X, y), np.arange(40) // 2
    stand_in(NESTED=real("NESTED")._replace(max_seconds_unasked=1.0))
    assert nested.nested_by_default(study, 0.09)
    assert not nested.nested_by_default(study, 0.09, groups)
    assert nested.nested_by_default(study, 0.04, groups)
    # Every outer fit has as many folds as the fit.
    stand_in(NESTED=real("NESTED")._replace(max_folds_unasked=4))
    assert not nested.nested_by_default(study, 0.04, groups)


def test_sizes_are_cut_where_a_rare_column_is_constant() -> None:
    X, y = made(24, 3)
    X[:, 2] = 0.0
    X[4, 2] = 1.0
    model = SparseRidgeCV(cv="loo", gammas=1.0, taus=[3], rule="minimum", nested=6).fit(X, y)
    assert np.isfinite(model.nested_error_)


def test_folds_of_moments_are_refused() -> None:
    data = MomentFolds.__new__(MomentFolds)
    with pytest.raises(InputError, match="nested needs the rows in memory"):
        nested.refuse_nested(data, 5, True)


@pytest.mark.filterwarnings("ignore::sparsecv.errors.ConstantColumnWarning")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", ["minimum", "projected"])
def test_a_column_that_is_constant_in_the_rows_of_an_outer_fold(rule: str, weighted: bool) -> None:
    X, y = made(120, 4)
    X[:, 3] = np.arange(120) == 7
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 120) if weighted else None
    model = SparseRidgeCV(gammas=[1.0, 30.0], rule=rule, nested=3, cv=4)
    expected = by_hand(model, X, y, weights, None)
    model.fit(X, y, sample_weight=weights)
    assert model.nested_error_ == pytest.approx(expected[0], rel=1e-9)


def test_at_size_and_refits_forget_it() -> None:
    X, y = made(30, 4)
    model = SparseRidgeCV(gammas=1.0, rule="projected", nested=3).fit(X, y)
    assert model.nested_error_ > 0.0
    assert not hasattr(model.at_size(2), "nested_error_")
    assert hasattr(model, "nested_std_error_")
    assert not hasattr(model.set_params(nested=False).fit(X, y), "nested_error_")


def test_no_outer_fold_begins_after_the_time_limit() -> None:
    X, y = made(n=40, p=4)
    model = SparseRidgeCV(gammas=[1.0], nested=8, time_limit=1e-3)
    with pytest.warns(UnprovedWarning):
        model.fit(X, y)
    assert model._run_.expected.folds < 8
    assert model.nested_error_ > 0.0


def test_outer_folds_that_hold_out_rows_of_weight_zero_alone() -> None:
    X, y = made(40, 3)
    weights = np.repeat([1.0, 0.0], [13, 27])
    model = SparseRidgeCV(cv="time:5", gammas=[1.0], rule="minimum", nested=2)
    with pytest.raises(InputError, match="all rows that the outer folds of nested hold out have"):
        model.fit(X, y, sample_weight=weights)


def test_one_outer_fold_has_no_standard_error() -> None:
    X, y = made(40, 4)
    weights = np.repeat([1.0, 0.0], [20, 20])
    model = SparseRidgeCV(cv="time:5", gammas=[1.0], rule="minimum", nested=2)
    model.fit(X, y, sample_weight=weights)
    first, second = model._run_.expected.sums
    assert first[1] > 0.0 == second[1]
    assert model.nested_error_ > 0.0
    assert np.isnan(model.nested_std_error_)
    text = " ".join(model.summary().split())
    assert f"to quote {model.nested_error_:.6g}, the error to expect" in text
