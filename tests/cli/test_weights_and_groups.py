"""``--weights`` and ``--groups``: as in the estimators, from every kind of table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.commands import Capture, check_model, run_json
from support.inside import main

from sparsecv import SparseRidge, SparseRidgeCV

NAMES = ["w", "a", "b", "c", "d", "town", "y"]


def table(n: int = 60) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Columns, response, weights (some 0) and twelve groups."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, 4)) * [1.0, 5.0, 0.2, 1.0] + 3.0
    y = X[:, 0] + 0.3 * X[:, 1] + rng.standard_normal(n)
    return X, y, rng.integers(0, 8, n) / 2.0, rng.integers(0, 12, n)


def write(kind: str, towns: list[str]) -> str:
    """The same table as a file, weights first and groups last but one."""
    X, y, w, _ = table()
    numbers = np.column_stack([w, X])
    path = f"t.{kind}"
    if kind == "parquet":
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(numbers, columns=NAMES[:5])
        frame["town"], frame["y"] = towns, y
        frame.to_parquet(path)
        return path
    mark, decimal = (";", ",") if kind == "txt" else (",", ".")
    lines = [mark.join(NAMES)]
    for row, town, t in zip(numbers, towns, y, strict=True):
        cells = [repr(float(v)).replace(".", decimal) for v in row]
        lines.append(mark.join([*cells, town, repr(float(t)).replace(".", decimal)]))
    Path(path).write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("kind", "words", "folds", "rule"),
    [
        ("csv", "text", "4", "projected"),
        ("txt", "numbers", "loo", "minimum"),
        ("parquet", "text", "4", "minimum"),
        ("parquet", "numbers", "4", "projected"),
    ],
)
def test_as_in_the_estimator(kind: str, words: str, folds: str, rule: str) -> None:
    X, y, w, g = table()
    towns = [f"town {i}" if words == "text" else str(i) for i in g]
    path = write(kind, towns)
    groups = towns if words == "text" else g
    arguments = ["--folds", folds, "--gamma", "0.1,10", "--rule", rule]
    document = run_json("cv", path, *arguments, "--weights", "w", "--groups", "TOWN")
    cv: Any = folds if folds == "loo" else int(folds)
    model = SparseRidgeCV(cv=cv, gammas=[0.1, 10.0], rule=rule).fit(
        X, y, sample_weight=w, groups=groups
    )
    assert (document["weights"], document["groups"]) == ("w", "town")
    assert document["feature_names"] == ["a", "b", "c", "d"]
    assert document["folds"]["sizes"] == model.folds_.sizes.tolist()
    assert document["folds"]["k"] == (12 if folds == "loo" else 4)
    for one, errors in zip(document["results"], model.surface_["cv_error"], strict=True):
        np.testing.assert_allclose(one["cv_error"], errors, rtol=1e-10)
    chosen = document["chosen"]
    assert (chosen["tau"], chosen["gamma"]) == (model.tau_, model.gamma_)
    check_model(document["model"], model, NAMES[1:])


def test_fit_takes_weights_and_leaves_groups_out_of_the_features(capsys: Capture) -> None:
    X, y, w, g = table()
    path = write("csv", [f"town {i}" for i in g])
    arguments = ["fit", path, "--tau", "2", "--weights", "w", "--groups", "town"]
    document = run_json(*arguments)
    model = SparseRidge(tau=2).fit(X, y, sample_weight=w)
    assert (document["weights"], document["groups"]) == ("w", "town")
    check_model(document["model"], model, NAMES[1:])
    assert document["model"]["objective"] == pytest.approx(model.objective_, rel=1e-10)
    assert main([*arguments, "--save", "m.json"]) == 0
    assert "weights w, groups town" in " ".join(capsys.readouterr().out.split())
    Path("new.csv").write_text("d,c,b,a\n1,2,3,4\n")  # weights are not needed to predict
    assert main(["predict", "m.json", "new.csv"]) == 0
    value = float(capsys.readouterr().out.split()[1])
    assert value == pytest.approx(float(model.predict([[4.0, 3.0, 2.0, 1.0]])[0]), rel=1e-9)


def test_many_groups_are_no_identifier() -> None:
    """What no text column may have, a level for every few rows, is what groups are for."""
    rng = np.random.default_rng(0)
    lines = ["who,a,y"] + [f"p{i // 2},{a},{a + i % 3}" for i, a in enumerate(rng.random(400))]
    Path("t.csv").write_text("\n".join(lines))
    found = run_json("cv", "t.csv", "--groups", "who", "--folds", "200", "--gamma", "1")
    assert found["feature_names"] == ["a"]
    assert found["folds"]["sizes"] == [2] * 200
