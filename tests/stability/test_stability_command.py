"""The stability command."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from support.commands import run_json
from support.learners import made
from support.tables import write_csv

from sparsecv import SparseRidge, StabilityCV
from sparsecv.cli.main import main
from sparsecv.stability.recipes import Recipe


def table_of(path: Path, labels: bool = False) -> Path:
    X, y = made(40, 4)
    y = (y > 0).astype(float) if labels else y
    return write_csv(path, X, y)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    table, file, picture = table_of(tmp_path / "t.csv"), tmp_path / "r.json", tmp_path / "p.png"
    arguments = ["stability", str(table), "--json", str(file), "--seed", "3", "--folds", "4"]
    grid = ["--gamma", "0.1:10:3", "--tau", "1:3", "--lambda", "0.1,1", "--test", "0.25"]
    assert main([*arguments, *grid, "--plot", str(picture), "--solver", "exact"]) == 0
    printed = capsys.readouterr().out
    found = json.loads(file.read_text())
    assert picture.stat().st_size > 5000
    assert f"{found['nested_error']:.6g}" in printed
    assert [line["lambda"] for line in found["lambdas"]] == [0.0, 0.1, 1.0]
    assert (found["n_train"], found["n_test"]) == (30, 10)
    assert len(found["candidates"]) == 9
    X, y = made(40, 4)
    order = np.random.default_rng(3).permutation(40)
    rows = np.sort(order[10:])
    values = {"gamma": np.geomspace(0.1, 10.0, 3).tolist(), "tau": [1, 2, 3]}
    same = StabilityCV(SparseRidge(), values, cv=4, lambdas=[0.0, 0.1, 1.0], random_state=3)
    same.fit(X[rows], y[rows])
    assert found["best_params"] == pytest.approx(same.best_params_)
    assert found["nested_error"] == pytest.approx(same.nested_error_)
    held = np.sort(order[:10])
    error = np.mean((y[held] - same.predict(X[held])) ** 2)
    assert found["test_error"] == pytest.approx(error)


@pytest.mark.parametrize(
    ("learner", "classify"),
    [("projected", False), *itertools.product(["cart", "svm", "xgboost"], [False, True])],
)
def test_learners_on_the_command_line(
    tmp_path: Path, learner: str, classify: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if learner == "xgboost":
        pytest.importorskip("xgboost", reason="the extra trees is not installed")
        import xgboost as xgb

        kind = xgb.XGBClassifier if classify else xgb.XGBRegressor
        small = Recipe(kind(n_estimators=3, n_jobs=1), {"max_depth": [1, 2], "subsample": [1.0]})
        monkeypatch.setattr("sparsecv.stability.command.recipe", lambda *_, **__: small)
    options = ["--learner", learner, "--folds", "3", "--lambda", "1", "--test", "0.2"]
    options += ["--classify"] if classify else []
    table = table_of(tmp_path / "t.csv", classify)
    found = run_json("stability", table, *options, folder=tmp_path)
    assert found["loss"] == ("zero-one" if classify else "squared")
    assert found["test_error"] >= 0.0
    assert found["search"] == ("coordinate" if learner in ("cart", "xgboost") else "grid")


@pytest.mark.parametrize("learner", ["sparse-ridge", "projected"])
def test_the_saved_model_predicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learner: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table_of(Path("t.csv"))
    arguments = ["stability", "t.csv", "--learner", learner, "--gamma", "0.1,1", "--tau", "1:3"]
    assert main([*arguments, "--save", "m.json", "--json", "r.json", "--quiet"]) == 0
    saved, found = json.loads(Path("m.json").read_text()), json.loads(Path("r.json").read_text())
    best = found["best_params"]
    assert saved["features"] == ["x0", "x1", "x2", "x3"]
    assert len(saved["support"]) <= best.get("tau", 3)
    assert main(["predict", "m.json", "t.csv", "--out", "p.csv"]) == 0
    assert main(["stability", "t.csv", "--learner", "cart", "--save", "m.json"]) == 2


def test_groups_and_missing_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = made(40, 4)
    lines = [",".join(map(repr, map(float, row))) for row in np.column_stack([X, y])]
    lines = [f"g{i % 8},{line}" for i, line in enumerate(lines)]
    lines[5] = "g5,,1,1,1,1"
    Path("t.csv").write_text("\n".join(["who,a,b,c,d,y", *lines]) + "\n")
    common = ["stability", "t.csv", "--gamma", "1", "--tau", "1,2", "--folds", "4"]
    common += ["--groups", "who", "--missing", "drop"]
    found = run_json(*common)
    assert (found["n_train"], found["groups"], found["folds"]["k"]) == (39, "who", 4)
    by_hand = StabilityCV(SparseRidge(), {"gamma": [1.0], "tau": [1, 2]}, random_state=0)
    rows, kept = np.delete(np.arange(40), 5), np.arange(40) % 8
    from sparsecv.design.folds import make_folds

    folds = make_folds(4, 39, seed=0, groups=kept[rows])
    by_hand.set_params(cv=[folds.split(j) for j in range(4)]).fit(X[rows], y[rows])
    errors = [line["cv_error"] for line in found["candidates"]]
    np.testing.assert_allclose(errors, by_hand.cv_results_["cv_error"], rtol=1e-12)
    assert main([*common, "--test", "0.2"]) == 2
