"""Models saved with --one-hot predict from the tables and frames they came from."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sparsecv import SparseRidgeCV
from sparsecv.cli.main import main
from sparsecv.errors import InputError


def factors(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.standard_normal(n)})
    frame["city"] = rng.choice(["Oslo", "Rome", "Bonn"], n)
    frame["new"] = rng.choice(["yes", "no"], n)
    levels = frame["city"].map({"Oslo": 0.0, "Rome": 2.0, "Bonn": -1.0})
    frame["y"] = frame["size"] + levels + (frame["new"] == "yes") + 0.1 * rng.standard_normal(n)
    return frame


def saved(frame: pd.DataFrame, *options: str) -> tuple[SparseRidgeCV, Any]:
    """The model of a table, which predicts the frame as the command predicts its file."""
    frame.to_csv("t.csv", index=False)
    assert main(["cv", "t.csv", *options, "--gamma", "0.1", "--save", "m.json", "--quiet"]) == 0
    assert main(["predict", "m.json", "t.csv", "--out", "p.csv"]) == 0
    expected = pd.read_csv("p.csv")["prediction"].to_numpy()
    model = SparseRidgeCV.load("m.json")
    np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-12)
    return model, expected


def test_frames_with_text_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = factors()
    model, expected = saved(frame, "--one-hot")
    np.testing.assert_allclose(model.predict(frame.drop(columns="y")), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict(pl.from_pandas(frame)), expected, rtol=1e-12)
    mixed = frame.astype({"city": "category"})
    np.testing.assert_allclose(model.predict(mixed), expected, rtol=1e-12)
    encoded = pd.DataFrame({name: _encoded(frame, str(name)) for name in model.feature_names_in_})
    np.testing.assert_allclose(model.predict(encoded), expected, rtol=1e-12)
    with pytest.raises(InputError, match="'Paris', which is none of its levels: 'Bonn', 'Oslo'"):
        model.predict(frame.replace({"city": {"Rome": "Paris"}}))
    with pytest.raises(InputError, match="needs column 'city'"):
        model.predict(frame.drop(columns="city"))
    frame.loc[3, "city"] = None
    with pytest.raises(InputError, match="missing value in column 'city', data row 4"):
        model.predict(frame)
    with pytest.raises(InputError, match="'size' holds text, data row 1"):
        model.predict(factors().assign(size="large"))


def _encoded(frame: pd.DataFrame, name: str) -> pd.Series:
    column, _, level = name.partition("=")
    return (frame[column] == level).astype(float) if level else frame[column]


def test_frames_with_missing_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = factors()
    frame.loc[[3, 9], "size"] = np.nan
    frame.loc[5, "city"] = None
    saved(frame, "--one-hot", "--missing", "mean")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_blanks_around_levels(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table loses them, so that a model takes the frame that it came from."""
    monkeypatch.chdir(tmp_path)
    frame, table = factors(), f"t.{suffix}"
    frame["city"] = frame["city"].replace({"Oslo": " Oslo", "Rome": "Rome  "})
    if suffix == "csv":
        frame.to_csv(table, index=False)
    else:
        frame.to_parquet(table)
    options = ["--one-hot", "--gamma", "0.1", "--save", "m.json", "--quiet", "--no-nested"]
    assert main(["cv", table, *options]) == 0
    assert main(["predict", "m.json", table, "--out", "p.csv"]) == 0
    expected = pd.read_csv("p.csv")["prediction"].to_numpy()
    model = SparseRidgeCV.load("m.json")
    assert "city=Oslo" in model.feature_names_in_
    np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-12)
