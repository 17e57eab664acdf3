"""Missing values: which rows are left out, and what folds fill in from training rows alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from support.commands import run_json
from support.inside import Protocol, RowFolds, RowTable, main, prepare, resolve
from support.tables import refused, write

from sparsecv import SparseRidge


def holed(n: int = 60, p: int = 4, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * [1.0, 10.0, 0.1, 1.0][:p] + 3.0
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(p)])
    frame["y"] = X[:, 0] + 0.2 * X[:, 1] + 0.3 * rng.standard_normal(n)
    for j, rows in enumerate(([3, 17], [3, 4, 40, 41], [], [59])):
        frame.loc[rows, f"x{j}"] = np.nan
    return frame


def save(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, na_rep="NA")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx"])
@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_rows_that_are_read(tmp_path: Path, suffix: str, missing: str) -> None:
    frame = holed()
    frame.loc[[7, 8], "y"] = np.nan
    path = tmp_path / f"t{suffix}"
    if suffix == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        save(frame, path)
    source = resolve(path, missing=missing)
    wanted = frame.dropna() if missing == "drop" else frame.dropna(subset="y")
    X, y = source.load()
    rounding = 1e-14 if suffix == ".xlsx" else 0.0  # A workbook keeps 16 digits.
    np.testing.assert_allclose(np.column_stack([X, y]), wanted.to_numpy(), rtol=rounding)
    (note,) = (text for text in source.notes() if "left out" in text)
    assert note.startswith(f"{len(frame) - len(wanted)} of 60 rows")
    refused(path, "x0", "--missing drop or mean", load=True)


def test_what_cannot_be_filled(tmp_path: Path) -> None:
    frame = holed()
    frame["x2"] = np.nan
    for suffix in (".csv", ".parquet"):
        path = save(frame, tmp_path / f"t{suffix}")
        refused(path, "'x2' has no value", "--exclude 'x2'", missing="mean")
    frame["x2"] = np.where(np.arange(60) == 4, np.inf, 1.0)
    path = save(frame, tmp_path / "i.parquet")
    refused(path, "infinite value in column 'x2', data row 5", missing="mean")
    path = write(tmp_path / "two.csv", "a,y\n1,2\n,3\n,4\n")
    refused(path, "--missing drop leaves 1 of 3 rows", "'a' (2)", missing="drop")
    refused(path, "must be drop or mean", missing="zero")


def test_text_weights_and_groups(tmp_path: Path) -> None:
    frame = holed()
    frame["city"] = np.where(np.arange(60) % 3 == 0, "Oslo", "Rome")
    frame.loc[[5, 6], "city"] = None
    frame["w"] = np.arange(1.0, 61.0)
    frame["g"] = [f"g{i // 6}" for i in range(60)]
    for suffix in (".csv", ".parquet"):
        path = save(frame, tmp_path / f"t{suffix}")
        options: Any = {"target": "y", "weights": "w", "groups": "g"}
        source = resolve(path, missing="drop", **options)
        kept = frame.dropna()
        np.testing.assert_array_equal(source.weights, kept["w"])
        assert source.groups is not None
        np.testing.assert_array_equal(source.groups, kept["g"])
        source = resolve(path, missing="mean", **options)
        X, _ = source.load()
        at = [source.feature_names.index(f"city={one}") for one in ("Oslo", "Rome", "(missing)")]
        assert X[[5, 6]][:, at].tolist() == [[0.0, 0.0, 1.0]] * 2
        assert X[:, at].sum(axis=1).tolist() == [1.0] * len(X)
        assert not np.isnan(np.delete(X, [5, 6], axis=0)[:, at]).any()


@pytest.mark.parametrize(
    ("role", "cell"), [("weights", -1.0), ("weights", None), ("groups", None), ("offset", None)]
)
def test_rows_at_fault_are_those_of_the_file(tmp_path: Path, role: str, cell: Any) -> None:
    frame = holed().rename(columns={"x2": role})
    frame[role] = np.abs(frame[role])
    frame.loc[20, role] = cell
    options: Any = {"target": "y", role: role}
    for suffix in (".csv", ".parquet"):  # Rows 4 and 18 of the file are left out.
        path = save(frame, tmp_path / f"t{suffix}")
        refused(path, role, "data row 21", missing="drop", **options)


def test_fills_of_weighted_rows_are_those_of_copied_rows() -> None:
    frame, counts = holed(), np.random.default_rng(0).integers(0, 4, 60)
    X, y = frame.drop(columns="y"), frame["y"]
    weighted = SparseRidge(tau=3, missing="mean").fit(X, y, sample_weight=counts)
    rows = np.repeat(np.arange(60), counts)
    copied = SparseRidge(tau=3, missing="mean").fit(X.iloc[rows], y.iloc[rows])
    plain = SimpleImputer().fit(X.iloc[rows])
    np.testing.assert_allclose(weighted.coef_, copied.coef_, rtol=1e-9)
    for model in (weighted, copied):
        filled = pd.DataFrame(plain.transform(X), columns=X.columns)
        np.testing.assert_allclose(model.predict(X), model.predict(filled), rtol=1e-12)


@pytest.mark.parametrize("folds", ["loo", "5"])
@pytest.mark.parametrize("protocol", [Protocol(), Protocol("paper"), Protocol(intercept=False)])
def test_folds_fill_from_their_training_rows_alone(
    tmp_path: Path, folds: str, protocol: Protocol
) -> None:
    """Changing held-out rows, also which of their values are missing, changes no training row."""
    source = resolve(save(holed(), tmp_path / "t.parquet"), missing="mean")
    data = prepare(source, folds, protocol).data
    assert isinstance(data, RowFolds)
    given = data.rows.given
    for j in range(min(data.folds.k, 6)):
        train, test = data.folds.split(j)
        fills = SimpleImputer().fit(given[train, :-1])
        rows, held = given.copy(), fills.transform(given[test, :-1])
        rows[train, :-1] = fills.transform(given[train, :-1])
        means, scale = rows[train].mean(axis=0), data.rows.scale
        if not data.refit_intercept:
            means = np.zeros_like(means)
        expected = (rows[train] - means) / scale
        problem = data.training(j)
        np.testing.assert_allclose(problem.squared_lengths, (expected[:, :-1] ** 2).sum(axis=0))
        H, t = data.held_out(j)
        wanted = (np.column_stack([held, given[test, -1]]) - means) / scale
        beta = np.array([1.0, -2.0, 0.5, 3.0])
        error = np.sum((t - H @ beta) ** 2)
        np.testing.assert_allclose(error, np.sum((wanted[:, -1] - wanted[:, :-1] @ beta) ** 2))
        assert not data.covers(j)
        other = given.copy()
        other[test, :-1] = 77.0
        other[test[0], 2] = np.nan
        table = RowTable(
            other[:, :-1],
            other[:, -1],
            data.refit_intercept,
            design=data.rows.design,
            missing="mean",
        )
        again = RowFolds(table, data.folds)
        # The training problem is a function of the training rows.
        np.testing.assert_array_equal(again.training(j).rows, data.training(j).rows)


def test_a_saved_model_fills_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = holed()
    save(frame, tmp_path / "t.csv")
    for command in (["fit", "t.csv", "--tau", "3"], ["cv", "t.csv", "--tau", "3", "--gamma", "1"]):
        model = ["--missing", "mean", "--save", "m.json", "--quiet"]
        assert main([*command, *model]) == 0
        assert main(["predict", "m.json", "t.csv", "--out", "p.csv"]) == 0
        full = frame.fillna(frame.mean())
        save(full, tmp_path / "full.csv")
        assert main(["predict", "m.json", "full.csv", "--out", "q.csv"]) == 0
        found, expected = pd.read_csv("p.csv"), pd.read_csv("q.csv")
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert main(["fit", "full.csv", "--tau", "3", "--save", "n.json", "--quiet"]) == 0
    assert main(["predict", "n.json", "t.csv", "--out", "p.csv"]) == 1
    assert "missing value in column" in capsys.readouterr().err
    lacking = frame.drop(columns="y").isna().any(axis=1).to_numpy()
    assert not (pd.read_csv("p.csv")["prediction"].isna().to_numpy() & ~lacking).any()


def test_rules_with_missing_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save(holed(), tmp_path / "t.csv")
    common = ["cv", "t.csv", "--missing", "mean", "--gamma", "0.1,1"]
    for rule in ("one-se", "corrected", "projected"):
        assert run_json(*common, "--rule", rule)["chosen"]["cv_error"] > 0.0
    assert main([*common, "--rule", "stability"]) == 2
    assert main(["cv", "t.csv", "--missing", "drop", "--gamma", "1", "--rule", "stability"]) == 0
