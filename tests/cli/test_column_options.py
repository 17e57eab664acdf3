"""Constraints on columns from the command line: names, factors, documents, screens, models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.commands import Capture, check_model, run_json

from sparsecv import Constraints, SparseRidge, SparseRidgeCV

QUICK = ("--gamma", "1", "--no-nested", "--rule", "minimum")


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    town = rng.choice(["ulm", "bonn", "kiel", "jena"], size=60)
    numbers = {name: rng.normal(size=60) for name in ("a", "b", "c")}
    made = pd.DataFrame({**numbers, "town": town})
    made["a:b"] = made["a"] * made["b"]
    effect = made["town"].map({"ulm": 2.0, "bonn": -1.0, "kiel": 0.0, "jena": 1.0})
    made["y"] = made["a"] - 2.0 * made["c"] + effect + made["a:b"] + rng.normal(size=60)
    made.to_csv("t.csv", index=False)
    return made


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that text makes, in their order."""
    made = frame[["a", "b", "c"]].copy()
    for level in sorted(frame["town"].unique()):
        made[f"town={level}"] = (frame["town"] == level).astype(float)
    made["a:b"] = frame["a:b"]
    return made


def test_factors_are_groups_by_themselves(frame: pd.DataFrame) -> None:
    found = run_json("cv", "t.csv", *QUICK)
    dummies = [f"town={level}" for level in ("bonn", "jena", "kiel", "ulm")]
    assert found["constraints"]["groups"] == {"town": dummies}
    assert found["constraints"]["sizes"] == [1, 7]
    assert found["constraints"]["count"] == "coefficients"
    assert found["results"][0]["tau"] == [0, 1, 2, 3, 4, 5, 6, 7]
    X = table(frame)
    model = SparseRidgeCV(
        gammas=[1.0], rule="minimum", constraints=Constraints(groups={"town": dummies})
    )
    model.fit(X, frame["y"])
    assert found["model"]["support"] == [X.columns[j] for j in model.support_]
    assert found["best"]["cv_error"] == pytest.approx(model.cv_error_, rel=1e-9)


def file(asked: dict[str, Any]) -> list[str]:
    """The words that hand a command a file of constraints; ``write`` writes the file."""
    return ["--constraints", json.dumps(asked)]


def write(words: list[str]) -> list[str]:
    """The words of a command, once the texts of --constraints stand in a file."""
    found = list(words)
    for at, word in enumerate(words[:-1]):
        if word == "--constraints":
            Path("c.json").write_text(words[at + 1], encoding="utf-8")
            found[at + 1] = "c.json"
    return found


CASES: list[tuple[list[str], dict[str, Any]]] = [
    (["--include", "b,town"], {"include": ["b", "town"]}),
    (["--exclude", "a"], {"exclude": ["a"]}),
    (["--positive", "all"], {"positive": True}),
    (["--positive", "c,town"], {"positive": ["c", "town"]}),
    (
        file({"bounds": {"c": [-0.5, 2], "a:b": [0, None]}}),
        {"bounds": {"c": (-0.5, 2), "a:b": (0, np.inf)}},
    ),
    (file({"groups": {"pair": ["a", "c"]}}), {"more": {"pair": ["a", "c"]}}),
    (
        [*file({"include": ["b"], "positive": True}), "--positive", "c"],
        {"include": ["b"], "positive": ["c"]},
    ),
    (
        [*file({"include": ["b"]}), "--exclude", "town"],
        {"include": ["b"], "exclude": ["town"]},
    ),
]


@pytest.mark.parametrize(("words", "asked"), CASES, ids=lambda value: " ".join(map(str, value)))
def test_options_ask_what_parameters_ask(
    frame: pd.DataFrame, words: list[str], asked: dict[str, Any]
) -> None:
    X = table(frame)
    groups = {"town": [name for name in X if "=" in name]} | asked.pop("more", {})
    rules = Constraints(groups=groups, **asked)
    found = run_json("fit", "t.csv", "--tau", "4", *write(words))
    model = SparseRidge(4, constraints=rules).fit(X, frame["y"])
    check_model(found["model"], model, X.columns)
    assert found["model"]["objective"] == pytest.approx(model.objective_, rel=1e-12)
    assert found["model"]["proved"]
    assert found["constraints"] is not None


def test_a_checkpoint_is_of_its_constraints(frame: pd.DataFrame, capsys: Capture) -> None:
    common = ["cv", "t.csv", *QUICK]
    for some in ([], ["--positive", "all"], file({"bounds": {"a": [-0.1, 0.1]}})):
        words = write(some)
        plain = run_json(*common, *words)
        for again in (False, True):
            capsys.readouterr()
            kept = run_json(*common, *words, "--checkpoint", "kept")
            assert ("taken over" in capsys.readouterr().err) == again
            assert kept["results"][0]["incumbent"] == plain["results"][0]["incumbent"]
            assert kept["model"] == plain["model"]
