"""Columns of text in data frames: they become 0/1 columns, as on the command line."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score
from support.inside import main, resolve

import sparsecv
from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError

CITIES = ["Bonn", "Oslo", "Rome"]
GROUP = {"city": [f"city={level}" for level in CITIES]}


def frame_and_response(n: int = 60, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.standard_normal(n),
            "city": rng.choice(CITIES, n),
            "new": rng.choice(["no", "yes"], n),
            "b": rng.standard_normal(n),
        }
    )
    y = frame["a"] + 2.0 * (frame["city"] == "Rome") + (frame["new"] == "yes")
    return frame, y + 0.3 * rng.standard_normal(n)


def dummies(frame: pd.DataFrame) -> pd.DataFrame:
    cities = {f"city={level}": 1.0 * (frame["city"] == level) for level in CITIES}
    new = 1.0 * (frame["new"] == "yes")
    return pd.DataFrame({"a": frame["a"], **cities, "new=yes": new, "b": frame["b"]})


KINDS: dict[str, Any] = {
    "pandas": lambda frame: frame,
    "object": lambda frame: frame.astype({"city": object, "new": object}),
    "category": lambda frame: frame.astype(
        {"city": pd.CategoricalDtype(["Rome", "unused", "Oslo", "Bonn"]), "new": "category"}
    ),
    "polars": pl.from_pandas,
    "polars categories": lambda frame: pl.from_pandas(frame).with_columns(
        pl.col("city").cast(pl.Categorical)
    ),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", [SparseRidge(tau=2), SparseRidgeCV(cv=3, gammas=[0.1, 1.0])])
def test_a_frame_is_fitted_as_dummies_made_by_hand(kind: str, model: Any) -> None:
    frame, y = frame_and_response()
    given, by_hand = KINDS[kind](frame), dummies(frame)
    found = clone(model).fit(given, y)
    expected = clone(model).set_params(constraints=Constraints(groups=GROUP)).fit(by_hand, y)
    assert found.coef_names_.tolist() == by_hand.columns.tolist()
    assert found.levels_ == {"city": CITIES, "new": ["no", "yes"]}
    assert found.n_features_in_ == 4
    assert found.feature_names_in_.tolist() == ["a", "city", "new", "b"]
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.predict(given), expected.predict(by_hand), rtol=1e-9)
    np.testing.assert_allclose(found.predict(frame), found.predict(given), rtol=1e-12)
    part = found.transform(given)
    np.testing.assert_array_equal(part, by_hand.to_numpy()[:, found.support_])
    names = by_hand.columns[found.support_]
    assert found.get_feature_names_out().tolist() == names.tolist()
    assert (
        pickle.loads(pickle.dumps(found)).predict(given).tolist() == found.predict(given).tolist()
    )


def test_a_model_from_a_file_selects_the_columns_of_a_frame_with_text(tmp_path: Path) -> None:
    frame, y = frame_and_response()
    model = SparseRidge(tau=3).fit(frame, y)
    model.save(tmp_path / "m.json")
    of_file = sparsecv.load(tmp_path / "m.json")
    np.testing.assert_array_equal(of_file.transform(frame), model.transform(frame))
    np.testing.assert_array_equal(of_file.transform(dummies(frame)), model.transform(frame))


def test_names_that_are_numbers() -> None:
    frame, y = frame_and_response()
    expected = SparseRidge(tau=3).fit(frame, y)
    numbered = frame.set_axis(range(4), axis=1)
    model = SparseRidge(tau=3).fit(numbered, y)
    assert model.coef_names_[:2].tolist() == ["0", "1=Bonn"]
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_allclose(model.predict(numbered), expected.predict(frame), rtol=1e-12)


def test_levels_enter_together() -> None:
    frame, y = frame_and_response()
    groups = Constraints(count="groups")
    for tau in (1, 2, 3, 4):
        model = SparseRidge(tau=tau, constraints=groups).fit(frame, y)
        chosen = set(model.coef_names_[model.support_])
        assert len(chosen & set(GROUP["city"])) in (0, 3)
        units = {name.partition("=")[0] for name in chosen}
        assert len(units) == tau
        model = SparseRidge(tau=tau).fit(frame, y)
        units = {name.partition("=")[0] for name in model.coef_names_[model.support_]}
        assert len(units) + ("city" in units) <= tau
    path = SparseRidgeCV(cv=3, gammas=[1.0], constraints=groups).fit(frame, y).path_
    assert path["tau"].tolist() == [0, 1, 2, 3, 4]
    model = SparseRidgeCV(cv=3, gammas=[1.0]).fit(frame, y)
    assert model.taus_.tolist() == [0, 1, 2, 3, 4, 5]
    sets = [tuple(columns) for columns in model.path_["columns"]]
    assert all(now != before for before, now in itertools.pairwise(sets))


def test_names_and_positions_mean_the_columns_of_the_frame() -> None:
    frame, y = frame_and_response()
    rules = Constraints(include=["city"], exclude=[3], bounds={"new": (0.0, 0.1)})
    model = SparseRidge(tau=4, constraints=rules).fit(frame, y)
    assert model.support_.tolist() == [0, 1, 2, 3, 4]
    assert model.coef_[4] <= 0.1
    by_hand = Constraints(
        groups=GROUP, include=GROUP["city"], exclude=["b"], bounds={"new=yes": (0.0, 0.1)}
    )
    expected = SparseRidge(tau=4, constraints=by_hand)
    np.testing.assert_allclose(model.coef_, expected.fit(dummies(frame), y).coef_, rtol=1e-9)
    groups = Constraints(groups={"place": ["city", "b"]})
    model = SparseRidge(tau=1, constraints=groups).fit(frame, y)
    assert model.support_.tolist() in ([1, 2, 3, 5], [0], [4])


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_levels(kind: str) -> None:
    frame, y = frame_and_response()
    model = SparseRidge(tau=3).fit(KINDS[kind](frame), y)
    other = frame.astype({"city": object})
    other.loc[[2, 7], "city"] = ["Lima", "Paris"]
    given = pl.from_pandas(other) if "polars" in kind else other
    words = "column 'city' holds 'Lima', 'Paris', which is none of its levels: 'Bonn', 'Oslo'"
    with pytest.raises(InputError, match=words) as caught:
        model.predict(given)
    assert "data row 3 (2 in all, also in 8)" in str(caught.value)
    zero = SparseRidge(tau=3, unknown="zero").fit(KINDS[kind](frame), y)
    expected = dummies(other).to_numpy() @ zero.coef_ + zero.intercept_
    np.testing.assert_allclose(zero.predict(given), expected, rtol=1e-12)


def test_missing_text() -> None:
    frame, y = frame_and_response()
    holed = frame.astype({"city": object})
    holed.loc[[4, 9], "city"] = None
    with pytest.raises(InputError, match=r"missing value in column 'city', data row 5 \(2 in all"):
        SparseRidge().fit(holed, y)
    with pytest.raises(InputError, match="missing value in column 'city', data row 5"):
        SparseRidge().fit(frame, y).predict(holed)
    # A missing text is a level of its own, as a text of that name would be.
    options: dict[str, Any] = {"cv": 4, "gammas": [0.3], "taus": [3], "missing": "mean"}
    model = SparseRidgeCV(**options).fit(holed, y)
    assert model.levels_["city"][-1] == "(missing)"
    named = holed.fillna({"city": "(missing)"})
    same = SparseRidgeCV(**options | {"missing": None}).fit(named, y)
    assert dict(zip(model.coef_names_, model.coef_, strict=True)) == pytest.approx(
        dict(zip(same.coef_names_, same.coef_, strict=True)), rel=1e-9
    )
    np.testing.assert_allclose(model.predict(holed), same.predict(named))
    # Where fit has seen no missing text, that of a new row counts as the mean of all rows.
    by_hand = dummies(frame)
    whole = SparseRidgeCV(**options).fit(frame, y)
    filled = dummies(holed)
    filled.loc[[4, 9], GROUP["city"]] = by_hand[GROUP["city"]].mean().to_numpy()
    np.testing.assert_allclose(whole.predict(holed), filled @ whole.coef_ + whole.intercept_)


def test_all_columns_with_missing_values_are_named() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 4.0], "g": ["u", "v", None, "u"]})
    with pytest.raises(InputError) as caught:
        SparseRidgeCV().fit(frame, [1.0, 2.0, 3.0, 4.0])
    assert str(caught.value) == (
        "X: missing value in column 'a', data row 2; missing value in column 'g', data row 3; "
        "fill it in, remove the row, or pass missing='mean'"
    )


def test_missing_numbers_of_pandas_beside_text() -> None:
    frame, y = frame_and_response()
    holed = frame.assign(new=(frame["new"] == "yes").astype(float))
    holed.loc[[4, 9], "new"] = np.nan
    options: dict[str, Any] = {"cv": 4, "gammas": [0.3], "taus": [3], "missing": "mean"}
    by_hand = SparseRidgeCV(**options).fit(holed, y)
    for kind in ("boolean", "Int64", "Float64", object):
        other = holed.astype({"new": kind})
        other.loc[[4, 9], "new"] = pd.NA
        model = SparseRidgeCV(**options).fit(other, y)
        assert list(model.levels_) == ["city"]
        np.testing.assert_array_equal(model.predict(other), by_hand.predict(holed))
        with pytest.raises(InputError, match=r"NaN in column 'new'"):
            SparseRidge().fit(other, y)


def test_a_column_with_the_name_of_a_level(tmp_path: Path) -> None:
    frame, y = frame_and_response()
    frame["new=no"] = 3.0 * frame["a"]
    with pytest.raises(InputError, match="duplicate column name 'new=no'"):
        SparseRidge().fit(frame, y)
    frame.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match="duplicate column name 'new=no'"):
        resolve(tmp_path / "t.csv")


def test_what_is_no_factor() -> None:
    frame, y = frame_and_response()
    numbers = frame.assign(city=pd.Series([1, 2, 3] * 20, dtype=object), new=[True, False] * 30)
    model = SparseRidge(tau=2).fit(numbers, y)
    assert model.levels_ == {}
    assert model.coef_names_.tolist() == list(numbers.columns)


CODES = np.random.default_rng(1).integers(1, 13, 60)
CODED: dict[str, Any] = {
    "pandas": lambda codes: pd.DataFrame({"c": pd.Categorical(codes)}),
    "pandas floats": lambda codes: pd.DataFrame({"c": pd.Categorical(codes.astype(float))}),
    "pandas text": lambda codes: pd.DataFrame({"c": pd.Categorical(codes.astype(str))}),
    "text": lambda codes: pd.DataFrame({"c": codes.astype(str)}),
    "objects": lambda codes: pd.DataFrame({"c": pd.Series(codes.astype(str), dtype=object)}),
    "text of floats": lambda codes: pd.DataFrame({"c": codes.astype(float).astype(str)}),
    "arrow in pandas": lambda codes: pd.DataFrame(
        {"c": pd.array(codes.tolist(), dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.int64())))}
    ),
    "polars Enum": lambda codes: pl.DataFrame(
        {"c": pl.Series(codes.astype(str)).cast(pl.Enum([str(k) for k in range(1, 13)]))}
    ),
    "polars Categorical": lambda codes: pl.DataFrame(
        {"c": pl.Series(codes.astype(str)).cast(pl.Categorical)}
    ),
    "polars text": lambda codes: pl.DataFrame({"c": codes.astype(str)}),
    "pyarrow": lambda codes: pa.table({"c": pa.array(codes).dictionary_encode()}),
    "pyarrow text": lambda codes: pa.table({"c": pa.array(codes.astype(str)).dictionary_encode()}),
}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("cells", [[3, 1, 2], [True, False], [2.5, 1.0], ["u", "v", "w"]])
def test_categories_of_numbers_and_truths_are_exported_where_cells_may_be_missing(
    cells: list[Any], missing: bool
) -> None:
    column = pd.Series(pd.Categorical([*cells * 20][:40]))
    column[5] = None if missing else column[5]
    X, y = pd.DataFrame({"c": column, "a": np.arange(40) % 7}), np.sin(np.arange(40.0))
    y += column.astype(str) == str(cells[0])
    model = SparseRidge(tau=2, missing="mean").fit(X, y)
    np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X), rtol=1e-9)


def test_categories_that_no_encoder_takes_are_refused_in_one_line() -> None:
    pairs = pd.Categorical.from_codes(np.arange(40) % 2, [(1, 2), (2, 1)])  # type: ignore[list-item]
    model = SparseRidge(tau=1).fit(pd.DataFrame({"c": pairs}), np.arange(40) % 2)
    with pytest.raises(InputError, match=r"to_sklearn: column 'c' holds tuples .* astype\(str\)"):
        model.to_sklearn()


@pytest.mark.parametrize("kind", CODED)
def test_a_category_is_a_factor_whatever_its_values(kind: str, tmp_path: Path) -> None:
    """Every kind of frame gives the same levels, and models take every other kind."""
    y = np.sin(CODES) + 0.1 * np.random.default_rng(2).standard_normal(60)
    model = SparseRidge(tau=11).fit(CODED[kind](CODES), y)
    assert model.levels_ == {"c": [str(k) for k in range(1, 13)]}
    assert model.score(CODED[kind](CODES), y) > 0.9
    means = {k: y[k == CODES].mean() for k in range(1, 13)}
    loose = SparseRidge(tau=11, gamma=1e-9).fit(CODED[kind](CODES), y)
    np.testing.assert_allclose(loose.predict(CODED[kind](CODES)), [means[k] for k in CODES])
    expected = model.predict(CODED[kind](CODES))
    model.save(tmp_path / "m.json")
    loaded = sparsecv.load(tmp_path / "m.json")
    for other in CODED.values():
        np.testing.assert_allclose(model.predict(other(CODES)), expected, rtol=1e-12)
        np.testing.assert_allclose(loaded.predict(other(CODES)), expected, rtol=1e-12)
    plain = pd.DataFrame({"c": CODES})
    np.testing.assert_allclose(model.predict(plain), expected, rtol=1e-12)
    if "pyarrow" not in kind:
        found = model.to_sklearn().predict(CODED[kind](CODES))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_levels_of_true_and_false_and_of_intervals() -> None:
    frame, y = frame_and_response()
    yes = frame["new"] == "yes"
    for cells in (
        pd.Categorical(yes),
        pd.Categorical(yes.astype(str)),
        yes.astype(str).str.upper(),
    ):
        model = SparseRidge(tau=2).fit(frame.assign(new=cells), y)
        assert model.levels_["new"] == ["False", "True"]
        expected = SparseRidge(tau=2).fit(frame, y).predict(frame)
        np.testing.assert_allclose(model.predict(frame.assign(new=yes)), expected, rtol=1e-12)
    cut = frame.assign(a=pd.cut(frame["a"], [-9, 0, 9]))
    assert SparseRidge(tau=1).fit(cut, y).levels_["a"] == ["(-9, 0]", "(0, 9]"]


def test_a_declared_factor_may_have_any_number_of_levels() -> None:
    frame, y = frame_and_response()
    for many in ([f"id{i}" for i in range(60)], [str(i) for i in range(60)]):
        with pytest.raises(InputError, match=r"identifier; declare it .*astype\('category'\)"):
            SparseRidge().fit(frame.assign(extra=many), y)
        declared = frame.assign(extra=pd.Categorical(many))
        assert len(SparseRidge(tau=1).fit(declared, y).levels_["extra"]) == 60
    many = pd.DataFrame({"c": pd.Categorical(np.arange(15_000))})
    with pytest.raises(InputError, match=r"'c' has 15,000 levels; merge levels"):
        SparseRidge(tau=1).fit(many, np.arange(15_000.0))


DAYS = pd.date_range("2024-01-01", periods=60)
TIMES: dict[str, tuple[Any, str]] = {
    "dates": (DAYS, "dates.*dt.year"),
    "dates of a zone": (DAYS.tz_localize("UTC"), "dates.*dt.year"),
    "objects": (pd.Series(DAYS.date, dtype=object), "dates.*dt.year"),
    "category": (pd.Categorical(DAYS), "dates.*dt.year"),
    "arrow": (pd.array(DAYS.date, dtype=pd.ArrowDtype(pa.date32())), "dates.*dt.year"),
    "text": (DAYS.astype(str), "dates.*dt.year"),
    "periods": (DAYS.to_period("D"), "periods.*dt.month"),
    "category of periods": (pd.Categorical(DAYS.to_period("M")), "periods.*dt.month"),
    "durations": (DAYS - DAYS[0], "durations.*total_seconds"),
    "category of durations": (pd.Categorical(DAYS - DAYS[0]), "durations.*total_seconds"),
    "objects of durations": (
        pd.Series((DAYS - DAYS[0]).to_pytimedelta(), dtype=object),
        "durations.*total_seconds",
    ),
    "times of day": (pd.Series(DAYS.time, dtype=object), r"times of day.*time\.hour"),
}


@pytest.mark.parametrize("kind", TIMES)
def test_cells_on_time_are_refused_with_what_pandas_can_do(kind: str) -> None:
    frame, y = frame_and_response()
    cells, words = TIMES[kind]
    with pytest.raises(InputError, match=f"column 'extra' is not numeric: it holds {words}"):
        SparseRidge().fit(frame.assign(extra=cells), y)


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_cells_on_time_in_other_frames(make: Any) -> None:
    y = np.arange(60.0)
    for cells in (DAYS.date.tolist(), (DAYS - DAYS[0]).to_pytimedelta().tolist()):
        with pytest.raises(InputError, match="column 'extra' is not numeric: it holds d"):
            SparseRidge().fit(make({"x": y, "extra": cells}), y)


def test_factors_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x,1": rng.standard_normal(60), "code": CODES, "half": CODES / 2})
    frame["y"] = np.sin(CODES) + 0.1 * frame["x,1"]
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet", index=False)
    frame.to_excel("t.xlsx", index=False)
    X, y = frame.drop(columns="y"), frame["y"]
    declared = X.astype({"code": "category", "half": "category"})
    expected = SparseRidge(tau=2, gamma=0.1).fit(declared, y)
    for table in ("t.csv", "t.parquet", "t.xlsx"):
        command = ["fit", table, "--tau", "2", "--gamma", "0.1", "--factor", "code,half"]
        assert main([*command, "--save", "m.json", "--quiet"]) == 0
        model = sparsecv.load("m.json")
        np.testing.assert_allclose(model.predict(X), expected.predict(declared), rtol=1e-9)
    declared.assign(y=y).to_parquet("c.parquet", index=False)
    assert resolve("c.parquet").coding.levels == expected.levels_
    assert resolve("t.csv", factors=["x,1"]).coding.levels.keys() == {"x,1"}
    assert resolve("t.csv").coding.levels == {}


def test_an_identifier_is_refused_unless_it_is_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"who": [f"id{i // 2}" for i in range(240)], "x": np.arange(240) % 7.0})
    frame.assign(y=np.arange(240.0)).to_csv("t.csv", index=False)
    assert main(["fit", "t.csv", "--tau", "1"]) == 2
    assert "declare it a factor with --factor 'who'" in capsys.readouterr().err
    assert main(["fit", "t.csv", "--tau", "1", "--factor", "who", "--quiet"]) == 0
    assert main(["fit", "t.csv", "--tau", "1", "--factor", "whom", "--quiet"]) == 2
    assert "--factor names 'whom', which is no feature; did you mean 'who'?" in (
        capsys.readouterr().err
    )
    assert main(["fit", "t.csv", "--tau", "1", "--factor", "y", "--quiet"]) == 2


def test_a_saved_model_takes_the_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame, y = frame_and_response()
    model = SparseRidgeCV(cv=3, gammas=[0.1], unknown="zero").fit(frame, y)
    model.save("m.json")
    loaded = sparsecv.load("m.json")
    other = frame.astype({"city": object})
    other.loc[3, "city"] = "Lima"
    np.testing.assert_allclose(loaded.predict(other), model.predict(other), rtol=1e-12)
    np.testing.assert_allclose(loaded.predict(dummies(frame)), model.predict(frame), rtol=1e-12)
    other.to_csv("t.csv", index=False)
    assert main(["predict", "m.json", "t.csv", "--out", "p.csv"]) == 0
    found = pd.read_csv("p.csv")["prediction"]
    np.testing.assert_allclose(found, model.predict(other), rtol=1e-12)
    assert main(["predict", "m.json", "t.csv", "--out", "p.csv", "--unknown", "error"]) == 1
    assert pd.read_csv("p.csv")["prediction"].isna().sum() == 1
    smaller = model.at_size(2)
    np.testing.assert_allclose(smaller.predict(other).shape, (60,))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_blanks_around_levels(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table loses them, so that a model takes the frame that it came from."""
    monkeypatch.chdir(tmp_path)
    (frame, y), table = frame_and_response(), f"t.{suffix}"
    frame["city"] = frame["city"].replace({"Oslo": " Oslo", "Rome": "Rome  "})
    whole = frame.assign(y=y)
    _ = whole.to_csv(table, index=False) if suffix == "csv" else whole.to_parquet(table)
    options = ["--gamma", "0.1", "--save", "m.json", "--quiet", "--no-nested"]
    assert main(["cv", table, *options]) == 0
    assert main(["predict", "m.json", table, "--out", "p.csv"]) == 0
    expected = pd.read_csv("p.csv")["prediction"].to_numpy()
    model = sparsecv.load("m.json")
    assert "city=Oslo" in model.feature_names_in_
    np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-12)


def test_few_factors_of_many_levels_are_all_tried() -> None:
    """Six factors of 30 levels have 180 columns and six sizes, of which the largest is the best."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 30, (900, 6))
    frame = pd.DataFrame({f"f{j}": [f"l{k:02d}" for k in level[:, j]] for j in range(6)})
    effect = rng.standard_normal((6, 30))
    y = effect[np.arange(6), level].sum(axis=1) + rng.standard_normal(900)
    for count, each in (("groups", 1), ("coefficients", 29)):
        rules = Constraints(count=count)
        model = SparseRidgeCV(gammas=[1.0], cv=3, rule="minimum", constraints=rules).fit(frame, y)
        assert model.taus_.tolist() == [each * k for k in range(7)]
        assert model.tau_ == 6 * each
        assert str(6 * each) in model.claim_


def test_a_fold_whose_training_rows_lack_a_level_is_predicted() -> None:
    """Shuffled folds lack the level of one row; unknown="zero" helps, as the message says."""
    frame, y = frame_and_response()
    frame = frame.astype({"city": object})
    frame.loc[3, "city"] = "Lima"
    folds = KFold(4, shuffle=True, random_state=0)
    model = SparseRidge(tau=2)
    with pytest.raises(InputError, match=r"none of its levels.*; pass unknown='zero'"):
        cross_val_score(model, frame, y, cv=folds, error_score="raise")
    scores = cross_val_score(model.set_params(unknown="zero"), frame, y, cv=folds)
    assert np.isfinite(scores).all()
