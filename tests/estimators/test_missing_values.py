"""``missing`` fills NaN inside the folds, and in the rows it predicts."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from support.inside import main, resolve

import sparsecv
from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError


def holed(n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3)) + 1.0
    y = X @ [2.0, 1.0, 0.5] + 0.3 * rng.standard_normal(n)
    X[[3, 9, 40], 0] = np.nan
    X[[3, 20], 2] = np.nan
    return X, y


def test_errors_and_predictions_by_hand(tmp_path: Path) -> None:
    X, y = holed()
    common: dict[str, Any] = {"gammas": [0.5], "taus": [3], "standardize": False}
    model = SparseRidgeCV(missing="mean", nested=5, rule="minimum", **common).fit(X, y)
    pipeline = make_pipeline(SimpleImputer(), Ridge(0.25))
    folds = KFold(5, shuffle=True, random_state=0)
    expected = np.mean((y - cross_val_predict(pipeline, X, y, cv=folds)) ** 2)
    assert model.cv_error_ == pytest.approx(expected, rel=1e-9)
    assert model.nested_error_ == pytest.approx(expected, rel=1e-9)
    wanted = pipeline.fit(X, y).predict(X)
    np.testing.assert_allclose(model.predict(X), wanted, rtol=1e-9)
    assert np.isnan(X[3, 0])  # The caller's rows stay as they are.
    model.save(tmp_path / "m.json")
    again = sparsecv.load(tmp_path / "m.json")
    np.testing.assert_allclose(again.predict(X), wanted, rtol=1e-9)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert clone(model).missing == "mean"


def test_pandas_na_among_objects_is_a_missing_value() -> None:
    X = np.random.default_rng(0).standard_normal((30, 3))
    y = X[:, 0] + 0.5 * X[:, 1] ** 2
    holes = X.copy()
    holes[[3, 7], 1] = np.nan
    frame = pd.DataFrame(holes, columns=list("abc")).astype({"b": object})
    frame.loc[[3, 7], "b"] = pd.NA
    model = SparseRidgeCV(missing="mean", gammas=1.0)
    plain = clone(model).fit(holes, y)
    for table in (frame, frame.to_numpy()):
        fitted = clone(model).fit(table, y)
        np.testing.assert_array_equal(fitted.coef_, plain.coef_)
        np.testing.assert_allclose(fitted.predict(table), plain.predict(holes), rtol=1e-12)
        with pytest.raises(InputError, match="NaN in column"):
            SparseRidge().fit(table, y)
    assert frame.loc[3, "b"] is pd.NA, "fit changes X"
    with pytest.raises(ValueError, match="NaN"):
        SparseRidge().fit(X, pd.Series([pd.NA, *y[1:]], dtype=object))


def test_a_model_at_given_size_fills_missing_values_by_all_rows() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 6))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(60)
    X[rng.random(X.shape) < 0.1] = np.nan
    whole = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    found, expected = SparseRidge(tau=2, missing="mean").fit(X, y), SparseRidge(tau=2).fit(whole, y)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-12)
    np.testing.assert_allclose(found.predict(X), expected.predict(whole), rtol=1e-12)
    np.testing.assert_allclose(
        found.alternatives(2)["objective"], expected.alternatives(2)["objective"]
    )
    one = found.at_size(1)
    np.testing.assert_allclose(one.predict(X), expected.at_size(1).predict(whole), rtol=1e-12)


def test_the_model_of_another_size_fills_missing_values() -> None:
    X, y = holed()
    model = SparseRidgeCV(missing="mean", rule="minimum", gammas=[1.0]).fit(X, y)
    other = model.at_size(2)
    assert other.missing == "mean"
    assert np.isfinite(other.predict(X)).all()
    own = model.at_size(int(model.tau_))
    np.testing.assert_array_equal(own.predict(X), model.predict(X))


def with_text() -> tuple[pd.DataFrame, Any]:
    """Rows with missing numbers, and with missing text that says something of the response."""
    X, y = holed()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    town = np.random.default_rng(1).choice(["Bern", "Oslo", "Rome"], len(y)).astype(object)
    town[::5] = None
    return frame.assign(town=town), y + 3.0 * np.array([one is None for one in town])


def test_intervals_fill_missing_values_fold_by_fold(tmp_path: Path) -> None:
    """Every fold's model fills the rows that it predicts by the means of its own training rows."""
    X, y = holed()
    options: dict[str, Any] = {"gammas": [0.5], "taus": [3], "standardize": False}
    model = SparseRidgeCV(missing="mean", rule="minimum", cv="loo", **options).fit(X, y)
    new = X[:8]
    every, errors = np.empty((8, len(y))), np.empty(len(y))
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        one = make_pipeline(SimpleImputer(), Ridge(0.25)).fit(X[others], y[others])
        every[:, i], errors[i] = one.predict(new), abs(y[i] - one.predict(X[[i]])[0])
    rank = int(np.ceil(0.8 * (len(y) + 1) - 1e-9))
    expected = np.column_stack(
        [
            np.sort(every - errors, axis=1)[:, len(y) - rank],
            np.sort(every + errors, axis=1)[:, rank - 1],
        ]
    )
    np.testing.assert_allclose(model.predict_interval(new, 0.8), expected, rtol=1e-8)
    model.save(tmp_path / "m.json", intervals=True)
    again = sparsecv.load(tmp_path / "m.json")
    np.testing.assert_allclose(again.predict_interval(new, 0.8), expected, rtol=1e-8)


def test_missing_text_is_a_level_in_files_intervals_and_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = with_text()
    model = SparseRidgeCV(missing="mean", gammas=[0.5], rule="minimum", cv=4).fit(X, y)
    assert "town=(missing)" in model.get_feature_names_out()
    words = " ".join(model.summary().split())
    assert "Missing values are a level of their own, (missing), of town." in words
    assert "for the model by the mean of all rows: 3 in a, 2 in c." in words
    assert "a level of their own" in " ".join(model.report().html.split())  # type: ignore[union-attr]
    assert "town (4 levels)" in words
    np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X), rtol=1e-9)
    model.save("python.json", intervals=True)
    again = sparsecv.load("python.json")
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-9)
    expected = model.predict_interval(X)
    np.testing.assert_allclose(again.predict_interval(X), expected, rtol=1e-9)
    X.assign(y=y).to_csv("t.csv", index=False)
    command = ["cv", "t.csv", "--missing", "mean", "--folds", "4", "--gamma", "0.5"]
    command += ["--rule", "minimum", "--no-nested", "--save", "command.json", "--quiet"]
    assert main(command) == 0
    for saved in ("python.json", "command.json"):
        assert main(["predict", saved, "t.csv", "--coverage", "0.9", "--out", "p.csv"]) == 0
        found = pd.read_csv("p.csv")
        np.testing.assert_allclose(found["prediction"], model.predict(X), rtol=1e-7)
        np.testing.assert_allclose(found[["lower", "upper"]], expected, rtol=1e-7)


def test_missing_text_is_no_level_where_its_rows_are_left_out(tmp_path: Path) -> None:
    """A cell that says "(missing)" is a level, and an empty one is still left out."""
    X, y = with_text()
    frame = X.assign(y=y).drop(columns=["a", "c"])
    frame.loc[[1, 2], "town"] = "(missing)"
    frame.to_csv(tmp_path / "t.csv", index=False)
    source = resolve(tmp_path / "t.csv", missing="drop")
    assert source.rows_left_out == int(frame["town"].isna().sum())
    assert source.coding.with_missing == []
