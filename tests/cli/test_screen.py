"""What an analyst reads on the screen of ``cv`` and ``fit``, and the exit status."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.commands import Capture, hard_csv, run_json
from support.inside import main
from support.problems import many_alike
from support.stand_ins import StandIn, real
from support.tables import growing_columns, write_csv

from sparsecv import SparseRidgeCV

MINIMUM = ["--folds", "3", "--gamma", "1", "--rule", "minimum"]


def rows_of(out: str, title: str) -> list[str]:
    """The lines of the table below a title, without its heads."""
    lines = out.split(f"{title}\n")[1].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("──"))
    ends = (i for i in range(start, len(lines)) if re.match("[A-Z…τ]|$", lines[i]))
    return lines[start + 1 : next(ends)]


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
    shown = [line.split()[0] for line in rows_of(out, "The model, fitted to all rows")]
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
    command: list[str], stand_in: StandIn, capsys: Capture
) -> None:
    stand_in(DEFAULT_SECONDS=0.1)
    hard_csv(Path("hard.csv"))
    arguments = [command[0], "hard.csv", *command[1:], "--tau", "15", "--gamma", "0.01"]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert "100 columns: what 0.1 s do not prove is estimated" in err
    assert "≈" in out
    assert "not proved" in out
    document = run_json(*arguments, "--time-limit", "0.1", status=1)
    assert document["model"]["proved"] is False
    assert document["model"]["gap"] > 0.0


# ---------------------------------------------------------------------------- long tables


def test_long_tables_are_cut_unless_asked_for(capsys: Capture) -> None:
    """Sizes around the chosen one, and the columns of largest effect."""
    p = 64
    write_csv(Path("t.csv"), *many(p, 80))
    quick = ["--folds", "2", "--gamma", "1", "--rule", "minimum", "--time-limit", "0"]
    chosen = run_json("cv", "t.csv", *quick, status=1)["chosen"]["tau"]
    capsys.readouterr()
    tables = (
        (["cv", *quick], "Every size"),
        (["fit", "--tau", str(p)], "The model, fitted to all rows"),
    )
    for command, title in tables:
        shown = []
        for more in ([], ["--table"]):
            main([command[0], "t.csv", *command[1:], *more])
            out = capsys.readouterr().out
            assert ("--table shows them" in out) == (not more)
            assert (len(out.splitlines()) <= 60) == (not more)
            shown.append([line.split()[0] for line in rows_of(out, title)])
        assert 3 <= len(shown[0]) < p
        assert set(shown[0]) <= set(shown[1])
        assert len(shown[1]) == p + (command[0] == "cv")  # The mean alone is a size.
        assert str(chosen) in shown[0] or command[0] == "fit"


def test_the_table_of_the_model_is_cut_last(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside tables of many rows the coefficients and the intercept of 13 columns are shown."""
    monkeypatch.setenv("COLUMNS", "80")
    write_csv(Path("t.csv"), *many(30, 80))
    asked = ["--gamma", "1", "--size", "13", "--criteria", "--time-limit", "0"]
    main(["cv", "t.csv", *asked])
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 60
    assert len(rows_of(out, "The model, fitted to all rows")) == 13
    assert "The intercept is " in out
    assert 3 <= len(rows_of(out, "Every size")) < 13


Array = NDArray[np.float64]


def three_of_eight() -> tuple[Array, Array]:
    """The first three columns make y; one rule finds them, another takes five."""
    rng = np.random.default_rng(37)
    X = rng.standard_normal((40, 8))
    return X, X[:, :3] @ [2.0, 1.5, 1.0] + 1.5 * rng.standard_normal(40)


TABLE = Path("t.csv")
CORRECTED = ["--gamma", "0.1,1,10", "--rule", "corrected"]


def test_one_pair_is_the_chosen_one(capsys: Capture) -> None:
    X, y = three_of_eight()
    document = run_json("cv", write_csv(TABLE, X, y), *CORRECTED, quiet=False)
    chosen, best = document["chosen"], document["best"]
    assert (chosen["tau"], best["tau"]) == (5, 3)
    assert len(document["model"]["support"]) == 5
    assert document["rule"] == chosen["rule"] == "corrected"
    out = capsys.readouterr().out
    sizes = rows_of(out, "Every size")
    (row,) = [line for line in sizes if "chosen" in line]
    assert row.split()[0] == "5"
    (row,) = [line for line in sizes if "least" in line]
    assert row.split()[0] == "3"
    flat = " ".join(out.split())
    (error,) = re.findall(r"CV error (\S+) ±", flat[: flat.index("RMSE")])
    assert error == f"{chosen['cv_error']:.6g}"
    assert flat.startswith(f"chosen τ = 5 of 8 features, γ = {chosen['gamma']:g} columns x")
    (row,) = [line for line in out.splitlines() if line.startswith("minimum ")]
    assert row.split()[1:4] == ["3", f"{best['gamma']:g}", f"{best['cv_error']:.6g}"]


def test_without_time_the_choice_is_an_estimate(capsys: Capture) -> None:
    arguments = ["--gamma", "1", "--tau", "2,15", "--time-limit", "0", "--rule", "minimum"]
    document = run_json("cv", write_csv(TABLE, *many_alike(8.0)), *arguments, status=1, quiet=False)
    chosen, (one,) = document["chosen"], document["results"]
    assert chosen["lower"] < chosen["cv_error"] <= chosen["upper"]
    assert document["best"]["certified"] is chosen["certified"] is False
    assert one["cv_error"] == [None, None]
    out = capsys.readouterr().out
    assert f"CV error ≈{chosen['cv_error']:.6g} ± " in " ".join(out.split())
    for row, error in zip(rows_of(out, "Every size"), one["incumbent"], strict=True):
        assert f" ≈{error:.6g} " in row
    assert "[0, " not in out  # Bounds that say nothing are not printed.


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    """Whatever the rule looks at: this one draws other partitions."""
    arguments = ["cv", "diabetes", "--gamma", "0.01:100:9", "--rule", "projected", "--no-nested"]
    documents = [run_json(*arguments), run_json(*arguments, "--time-limit", "9000")]
    for document in documents:
        for part in (document, *document["results"]):
            del part["seconds"]
    assert documents[0] == documents[1]


def test_a_proved_choice_whose_model_is_left_with_a_gap(stand_in: StandIn) -> None:
    search = real("search_model")
    no_time = lambda *args: search(*args[:-1], args[-1].within(0.0))  # noqa: E731
    stand_in(search_model=no_time)
    options = ["--gamma", "1", "--tau", "15", "--rule", "minimum", "--time-limit", "900"]
    document = run_json("cv", write_csv(TABLE, *many_alike(1.0)), *options, status=1)
    assert (document["chosen"]["certified"], document["model"]["proved"]) == (True, False)
