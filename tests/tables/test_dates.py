"""Columns of dates become numbers on request, in files and in the tables that are predicted."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.tables import check, refused

from sparsecv import SparseRidge
from sparsecv.cli.main import main
from sparsecv.errors import InputError
from sparsecv.tables.coding import Coding
from sparsecv.tables.datasets import locate
from sparsecv.tables.features import FeatureRows
from sparsecv.tables.sources import open_table

PARTS = ["day.year", "day.month", "day.weekday", "day.days"]


def dated(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2023-11-20") + pd.to_timedelta(rng.integers(-90, 400, n), unit="D")
    frame = pd.DataFrame({"day": day, "x": rng.standard_normal(n)})
    frame["y"] = frame["x"] + 0.1 * day.month + 0.01 * (day - day[0]).days
    return frame


def numbers(day: pd.Series, first: pd.Timestamp) -> Any:
    days = (day - first) / pd.Timedelta(days=1)
    parts = [day.dt.year, day.dt.month, day.dt.day_of_week + 1, days]
    return np.column_stack([part.to_numpy(dtype=float) for part in parts])


def save(frame: pd.DataFrame, path: Path) -> Path:
    _ = frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("hours", [False, True])
def test_dates_become_numbers(tmp_path: Path, suffix: str, hours: bool) -> None:
    frame = dated()
    if hours:
        frame["day"] += pd.to_timedelta(np.arange(len(frame)) % 24, unit="h")
    path = save(frame, tmp_path / f"t.{suffix}")
    expected = np.column_stack([numbers(frame["day"], frame["day"][0]), frame[["x", "y"]]])
    source = open_table(path, one_hot=True)
    check(source, expected, [*PARTS, "x"], "y")
    assert source.coding.dates == {"day": str(frame["day"][0])}
    refused(path, "'day' holds dates", "--one-hot")
    refused(save(frame[["x", "day"]], path), "target column 'day'", one_hot=True)


def test_dates_of_other_centuries(tmp_path: Path) -> None:
    dates = ["2000-01-01", "1492-10-12", "2600-03-01"]
    path = save(pd.DataFrame({"day": dates, "y": [1.0, 2.0, 3.0]}), tmp_path / "t.csv")
    X, _ = open_table(path, one_hot=True).load()
    days = (np.array(dates, dtype="M8[D]") - np.datetime64("2000-01-01")).astype(float)
    np.testing.assert_array_equal(X[:, 3], days)
    np.testing.assert_array_equal(X[:, 0], [2000.0, 1492.0, 2600.0])


def test_cells_that_are_no_dates(tmp_path: Path) -> None:
    frame = dated().astype({"day": str})
    frame.loc[7, "day"] = "soon"
    path = save(frame, tmp_path / "t.csv")
    for missing in (None, "mean"):
        words = "'day' holds dates, and 'soon' is none", "data row 8"
        refused(path, *words, one_hot=True, missing=missing)
    frame["day"] = "5.1.2024"
    refused(save(frame, path), "'day' holds dates", "'5.1.2024'", "2024-01-31", one_hot=True)
    frame = dated()
    frame.loc[4, "day"] = None
    path = save(frame, path)
    refused(path, "missing value in column 'day'", "data row 5", one_hot=True)
    X, _ = open_table(path, one_hot=True, missing="mean").load()
    assert np.isnan(X[4, :4]).all()
    assert not np.isnan(np.delete(X, 4, axis=0)).any()


def test_a_cell_that_is_no_date_is_not_filled(tmp_path: Path) -> None:
    path = save(pd.DataFrame({"day": ["2024-01-02", "soon", None]}), tmp_path / "t.csv")
    coding = Coding(["day"], {}, {"day": "2024-01-01"})
    rows = FeatureRows(locate(path)[0], coding, ["day.days"], fills={"day.days": 7.0})
    assert np.concatenate(list(rows.blocks())).ravel().tolist() == [1.0, np.inf, 7.0]
    assert "'soon'" in rows.faults.message()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("command", ["fit", "cv"])
def test_a_model_of_dates_predicts_new_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, command: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    frame = dated()
    save(frame, Path(f"t.{suffix}"))
    options = ["--gamma", "0.1", "--one-hot", "--save", "m.json", "--quiet"]
    options += ["--tau", "5"] if command == "fit" else ["--no-nested", "--tau", "5"]
    assert main([command, f"t.{suffix}", *options]) == 0
    new = dated().iloc[5:].reset_index(drop=True)
    save(new.drop(columns="y"), Path(f"n.{suffix}"))
    assert main(["predict", "m.json", f"n.{suffix}", "--out", "p.csv"]) == 0
    model = SparseRidge.load("m.json")
    assert model.feature_names_in_.tolist() == [*PARTS, "x"]
    X = np.column_stack([numbers(new["day"], frame["day"][0]), new["x"]])
    expected = X @ model.coef_ + model.intercept_
    np.testing.assert_allclose(pd.read_csv("p.csv")["prediction"], expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict(new.astype({"day": str})), expected, rtol=1e-12)
    bad = new.astype({"day": str})
    bad.loc[2, "day"] = "soon"
    save(bad, Path("bad.csv"))
    capsys.readouterr()
    assert main(["predict", "m.json", "bad.csv", "--out", "p.csv"]) == 1
    assert "'day' holds dates, and 'soon' is none, data row 3" in capsys.readouterr().err
    assert pd.read_csv("p.csv")["prediction"].isna().sum() == 1
    document = json.loads(Path("m.json").read_text())
    for first in ("soon", "", 3, "2024-01-31T00:00:00+05:00", "99999-01-01"):
        Path("m.json").write_text(json.dumps(document | {"dates": {"day": first}}))
        with pytest.raises(InputError, match="damaged model file: 'dates'"):
            SparseRidge.load("m.json")
