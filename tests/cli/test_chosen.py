"""One model is presented as the model; limits and what is proved are said as they are."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.commands import Capture, run_json
from support.problems import many_alike
from support.tables import write_csv

from sparsecv.cv.prove import Prover

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
    lines = out.splitlines()
    (row,) = [line for line in lines if "chosen" in line and line.startswith("│")]
    assert row.split()[1] == "5"
    (row,) = [line for line in lines if "least" in line and re.match("│ +3 ", line)]
    flat = " ".join(out.split())
    (error,) = re.findall(r"CV error (\S+) ±", flat[: flat.index("RMSE")])
    assert error == f"{chosen['cv_error']:.6g}"
    assert flat.startswith(f"chosen τ = 5 of 8 features, γ = {chosen['gamma']:g} columns x")
    (row,) = [line for line in lines if line.startswith("│ minimum")]
    assert row.split()[3::2][:3] == ["3", f"{best['gamma']:g}", f"{best['cv_error']:.6g}"]


def test_without_time_the_choice_is_an_estimate(capsys: Capture) -> None:
    arguments = ["--gamma", "1", "--tau", "2,15", "--time-limit", "0", "--rule", "minimum"]
    document = run_json("cv", write_csv(TABLE, *many_alike(8.0)), *arguments, status=1, quiet=False)
    chosen, (one,) = document["chosen"], document["results"]
    assert chosen["lower"] < chosen["cv_error"] <= chosen["upper"]
    assert document["best"]["certified"] is chosen["certified"] is False
    assert one["cv_error"] == [None, None]
    out = capsys.readouterr().out
    assert f"CV error ≈{chosen['cv_error']:.6g} ± " in " ".join(out.split())
    rows = [line for line in out.splitlines() if re.match("│ +[0-9]+ ", line)]
    for row, error in zip(rows, one["incumbent"], strict=True):
        assert f" ≈{error:.6g} " in row
    assert "[0, " not in out  # Bounds that say nothing are not printed.


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    """Whatever the rule looks at: this one draws other partitions."""
    arguments = ["cv", "diabetes", "--gamma", "0.01:100:9", "--rule", "repeated"]
    documents = [run_json(*arguments), run_json(*arguments, "--time-limit", "9000")]
    for document in documents:
        for part in (document, *document["results"]):
            del part["seconds"]
    assert documents[0] == documents[1]


def test_a_proved_choice_whose_model_is_left_with_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Prover._model
    monkeypatch.setattr(Prover, "_model", lambda *args: real(*args[:-1], args[-1].within(0.0)))
    options = ["--gamma", "1", "--tau", "15", "--rule", "minimum", "--time-limit", "900"]
    document = run_json("cv", write_csv(TABLE, *many_alike(1.0)), *options, status=1)
    assert (document["chosen"]["certified"], document["model"]["proved"]) == (True, False)
