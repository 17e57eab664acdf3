"""Every recipe of docs/recipes.md runs, is short, and does what its text says."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

PAGE = Path(__file__).resolve().parent.parent / "docs" / "recipes.md"
MAX_LINES = 8  # of a recipe, blank lines aside; a longer one is no recipe

pytestmark = pytest.mark.slow
if not PAGE.is_file():
    pytest.skip("no pages beside the tests: this is not a checkout", allow_module_level=True)

SECTIONS = {
    text.partition("\n")[0]: re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    for text in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]
}


def several(names: dict[str, Any]) -> None:
    models = names["several"].estimators_
    assert [model.support_.tolist() for model in models] == [
        support.tolist() for support in names["supports"]
    ]
    assert 0 in names["supports"][0]
    assert names["several"].predict(names["X"]).shape == (60, 2)


def penalty(names: dict[str, Any]) -> None:
    """The coefficients are the best of all sets of three columns under the weighted penalty."""
    columns = names["X"].to_numpy() - names["X"].to_numpy().mean(axis=0)
    response = (names["y"] - names["y"].mean()).to_numpy()
    weights = names["f"] * columns.var(axis=0) * 5.0 / 2

    def objective(support: tuple[int, ...]) -> tuple[float, tuple[int, ...], Any]:
        own = columns[:, support]
        beta = np.linalg.solve(own.T @ own + np.diag(weights[list(support)]), own.T @ response)
        rest = response - own @ beta
        return float(rest @ rest + weights[list(support)] @ beta**2), support, beta

    _, support, beta = min(
        (objective(some) for some in combinations(range(columns.shape[1]), 3)),
        key=lambda one: one[0],
    )
    assert tuple(np.flatnonzero(names["coef"])) == support
    np.testing.assert_allclose(names["coef"][list(support)], beta, rtol=1e-8)


def onnx(names: dict[str, Any]) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="the extra test brings onnxruntime")
    session = runtime.InferenceSession(
        names["graph"].SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (answer,) = session.run(None, {"X": names["X"].to_numpy()})
    np.testing.assert_allclose(answer.ravel(), names["model"].predict(names["X"].to_numpy()), 1e-6)


def sql(names: dict[str, Any]) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        names["X"].to_sql("houses", database, index=False)
        answer = pd.read_sql(names["query"], database)["variable"]
    np.testing.assert_allclose(answer, names["model"].predict(names["X"]), rtol=1e-12)


def pmml(names: dict[str, Any]) -> None:
    assert Path("model.pmml").stat().st_size > 0


def screened(names: dict[str, Any]) -> None:
    best = names["screened"].best_estimator_
    assert best["selectkbest"].get_support().sum() == 6
    assert best["sparseridge"].tau_ == names["screened"].best_params_["sparseridge__tau"]


def larger(names: dict[str, Any]) -> None:
    assert set(names["long"].support_) >= {0, 1, 2}
    assert names["long"].certified_


def dates(names: dict[str, Any]) -> None:
    from sparsecv import SparseRidge

    assert names["dated"]["days"].tolist() == list(range(60))
    model = SparseRidge(tau=3).fit(names["dated"], names["y"])
    assert list(model.coef_names_[-2:]) == ["days", "month=January"]


def ordered(names: dict[str, Any]) -> None:
    folds = names["ordered"].folds_
    pairs = [folds.split(j) for j in range(folds.k)]
    assert len(pairs) == 4
    assert all(train.max() < test.min() for train, test in pairs)


def forward(names: dict[str, Any]) -> None:
    assert names["picked"] == ["x0", "x1", "x2"]


def partitions(names: dict[str, Any]) -> None:
    each = [fit.surface_["cv_error"] for fit in names["fits"]]
    assert not np.array_equal(each[0], each[1])
    np.testing.assert_allclose(names["errors"], np.mean(each, axis=0))


def stored(names: dict[str, Any]) -> None:
    assert names["solution"].support.size == 3
    assert names["solution"].status == "optimal"


def median(names: dict[str, Any]) -> None:
    new = names["X"].copy()
    new.iloc[0, 0] = np.nan
    middle = new.assign(x0=new["x0"].fillna(names["X"]["x0"].median()))
    np.testing.assert_allclose(
        names["filled"].predict(new), names["filled"].predict(middle), rtol=1e-12
    )


def on_other_rows(names: dict[str, Any]) -> None:
    """Nothing is searched for on the other rows: the p-values are those of least squares."""
    table, rows = names["table"], names["tested_on"]
    assert {"x0", "x1"} <= set(table.index)
    assert not set(rows) & set(names["chosen_on"])
    A = np.column_stack([names["X"][list(table.index)].iloc[rows], np.ones(rows.size)])
    coef, squares, *_ = np.linalg.lstsq(A, names["y"].iloc[rows], rcond=None)
    free = rows.size - A.shape[1]
    variance = squares[0] / free
    error = np.sqrt(variance * np.diag(np.linalg.inv(A.T @ A)))[:-1]
    np.testing.assert_allclose(table["std_error"], error, rtol=1e-9)
    np.testing.assert_allclose(
        table["p_high"], 2.0 * student.sf(np.abs(coef[:-1]) / error, free), rtol=1e-6
    )


def rare(names: dict[str, Any]) -> None:
    assert names["with_towns"].levels_ == {"town": ["Bonn", "Oslo", "Rome", "other"]}
    assert (names["pooled"]["town"] == "other").sum() == 3


def bins(names: dict[str, Any]) -> None:
    assert names["steps"].levels_ == {"x0": sorted(names["names"])}
    assert names["binned"]["x0"].value_counts().tolist() == [15] * 4
    assert "x0=highest" in names["steps"].get_feature_names_out()


def surveyed(names: dict[str, Any]) -> None:
    weights = names["people"] / names["people"].mean()
    model = names["surveyed"]
    folds = [model.folds_.split(j)[1] for j in range(model.folds_.k)]
    assert np.sort(np.concatenate(folds)).tolist() == list(range(60))
    assert weights.sum() == pytest.approx(60.0)
    assert f"{60} rows" in model.summary()


def crossed(names: dict[str, Any]) -> None:
    """The interaction is a slope for every town, whose columns enter together."""
    parts, columns = names["parts"], names["columns"]
    assert len(parts["town"]) == 3
    assert len(parts["x0:town"]) == 2
    assert {"x0", "x1", *parts["town"], *parts["x0:town"]} == set(columns)
    chosen = set(names["crossed"].get_feature_names_out())
    assert all(chosen >= set(own) or not chosen & set(own) for own in parts.values())
    assert list(names["new"].columns) == list(columns.columns)
    assert names["crossed"].predict(names["new"]).shape == (2,)


def known_part(names: dict[str, Any]) -> None:
    from sparsecv import SparseRidgeCV

    plain = SparseRidgeCV().fit(names["X"], names["y"])
    expected = plain.predict(names["X"].head(3)) + names["listed"].head(3)
    np.testing.assert_allclose(names["predicted"], expected, rtol=1e-9)


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "Several responses": several,
    "Penalty factors": penalty,
    "Predictions elsewhere: ONNX": onnx,
    "Predictions in a database: SQL": sql,
    "Predictions in Java: PMML": pmml,
    "Very many columns: screening inside the folds": screened,
    "A table larger than memory": larger,
    "Dates": dates,
    "Rare levels": rare,
    "Steps in place of a line: quantile bins": bins,
    "Survey weights": surveyed,
    "A factor times a number": crossed,
    "A known part of the response": known_part,
    "Folds in the order of time": ordered,
    "Forward steps": forward,
    "Several partitions into folds": partitions,
    "A training problem in a file": stored,
    "Missing values by their median": median,
    "p-values after cross-validation": on_other_rows,
}


def test_every_recipe_is_checked() -> None:
    assert list(SECTIONS) == list(CHECKS)


@pytest.mark.parametrize("title", SECTIONS)
@pytest.mark.filterwarnings("ignore")
def test_a_recipe_does_what_it_says(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = SECTIONS[title]
    assert len([line for line in block.splitlines() if line.strip()]) <= MAX_LINES
    if "pmml" in block and shutil.which("java") is None:
        pytest.skip("sklearn2pmml needs Java")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 12)), columns=[f"x{j}" for j in range(12)])
    y = X[["x0", "x1", "x2"]] @ [3.0, 2.0, 1.0] + rng.standard_normal(60)
    names: dict[str, Any] = {"X": X, "y": pd.Series(y)}
    try:
        exec(compile(block, str(PAGE), "exec"), names)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("sparsecv"):
            raise
        pytest.skip(f"the extra test brings {error.name}")
    except RuntimeError as error:
        if "SkLearn2PMML" not in str(error):
            raise
        pytest.skip("this sklearn2pmml does not know this version of scikit-learn")
    CHECKS[title](names)
