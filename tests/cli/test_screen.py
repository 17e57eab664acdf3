"""What an analyst reads on the screen of ``cv`` and ``fit``, and the exit status."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.commands import Capture, hard_csv, run_json
from support.tables import growing_columns, write_csv

from sparsecv import SparseRidgeCV
from sparsecv.cli import screen
from sparsecv.cli.main import main

MINIMUM = ["--folds", "3", "--gamma", "1", "--rule", "minimum"]


def many(p: int, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Independent columns whose effects fall by size, with little noise: trees are small."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p))
    return X, X @ np.linspace(5.0, 1.0, p) + 0.1 * rng.standard_normal(n)


# ---------------------------------------------------------------------------- the answer


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--scale", "none"],
        ["--scale", "unit-norm"],
        ["--weights", "x1"],
        ["--protocol", "paper"],
    ],
)
def test_rmse_r2_and_standardised_coefficients(options: list[str], capsys: Capture) -> None:
    X, y = growing_columns()
    X[:, 1] = np.arange(40) % 4
    write_csv(Path("t.csv"), X, y)
    document = run_json("cv", "t.csv", *MINIMUM, *options)
    weight = X[:, 1] if "--weights" in options else np.ones(40)
    mean = np.average(y, weights=weight)
    variance = float(np.average((y - mean) ** 2, weights=weight))
    if "paper" in options:
        variance = 1.0
    chosen = document["chosen"]
    assert chosen["rmse"] ** 2 == pytest.approx(chosen["cv_error"])
    assert chosen["r2"] == pytest.approx(1.0 - chosen["cv_error"] / variance, rel=1e-9)
    model = document["model"]
    for name, coef, effect in zip(
        model["support"], model["coef"], model["standardized_coef"], strict=True
    ):
        x = X[:, int(name[1:])]
        spread = np.sqrt(np.average((x - np.average(x, weights=weight)) ** 2, weights=weight))
        assert effect == pytest.approx(coef * spread, rel=1e-9)
    assert main(["cv", "t.csv", *MINIMUM, *options]) == 0
    out = capsys.readouterr().out
    assert f"{chosen['r2']:.3f}, 1 − CV error / variance of y about its mean" in " ".join(
        out.split()
    )
    shown = [line.split()[1] for line in out.splitlines() if re.match("│ x[0-9]", line)]
    order = np.argsort(-np.abs(model["standardized_coef"]))
    assert shown == [model["support"][i] for i in order]


def test_a_response_that_does_not_vary_has_no_r2(capsys: Capture) -> None:
    Path("t.csv").write_text("a,b,y\n1,2,3\n2,1,3\n3,5,3\n4,4,3\n")
    document = run_json("cv", "t.csv", "--folds", "2", "--gamma", "1")
    assert (document["chosen"]["r2"], document["chosen"]["rmse"]) == (None, 0.0)
    capsys.readouterr()
    assert main(["cv", "t.csv", "--folds", "2", "--gamma", "1"]) == 0
    out = capsys.readouterr().out
    assert "R²" not in out
    assert "-0 " not in out


def test_the_same_gammas_as_in_python() -> None:
    X, y = growing_columns()
    write_csv(Path("t.csv"), X, y)
    document = run_json("cv", "t.csv", "--folds", "4", "--rule", "minimum")
    model = SparseRidgeCV(cv=4, rule="minimum").fit(X, y)
    assert [one["gamma"] for one in document["results"]] == model.surface_["gamma"].tolist()
    assert document["chosen"]["gamma"] == model.gamma_
    assert document["chosen"]["cv_error"] == pytest.approx(model.cv_error_, rel=1e-12)


# ---------------------------------------------------------------------------- estimates


@pytest.mark.parametrize("command", [["cv", "--rule", "minimum"], ["fit"]])
def test_only_a_limit_that_was_named_exits_with_one(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("sparsecv.cv.settings.PROVING_SECONDS", 0.1)
    hard_csv(Path("hard.csv"))
    arguments = [command[0], "hard.csv", *command[1:], "--tau", "15", "--gamma", "0.01"]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert "100 columns: what 0.1 s of search do not prove is estimated" in err
    assert "≈" in out
    assert "not proved" in out
    document = run_json(*arguments, "--time-limit", "0.1", status=1)
    assert document["model"]["proved"] is False
    assert document["model"]["gap"] > 0.0


# ---------------------------------------------------------------------------- long tables


def test_long_tables_are_cut_unless_asked_for(capsys: Capture) -> None:
    """Sizes around the chosen one, and the columns of largest effect."""
    p = screen.MAX_TABLE_ROWS + 4
    write_csv(Path("t.csv"), *many(p, 60))
    quick = ["--folds", "2", "--gamma", "1", "--rule", "minimum", "--time-limit", "0"]
    chosen = run_json("cv", "t.csv", *quick, status=1)["chosen"]["tau"]
    capsys.readouterr()
    for command, start in (["cv", *quick], "│ +[0-9]+ "), (["fit", "--tau", str(p)], "│ x"):
        shown = []
        for more in ([], ["--table"]):
            main([command[0], "t.csv", *command[1:], *more])
            out = capsys.readouterr().out
            assert ("--table shows them" in out) == (not more)
            rows = [line.split()[1] for line in out.splitlines() if re.match(start, line)]
            shown.append(rows)
        assert len(shown[0]) == screen.ROWS_AROUND
        assert set(shown[0]) <= set(shown[1])
        assert len(shown[1]) == p
        assert str(chosen) in shown[0] or command[0] == "fit"
