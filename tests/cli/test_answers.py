"""Options that ask for more than the model: sizes, subsets, criteria, intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.commands import Capture, check_model, complaint, run_json
from support.inside import RULES, main

from sparsecv import SparseRidge, SparseRidgeCV

NAMES = ["a", "b", "c c", "d"]


@pytest.fixture
def table() -> tuple[pd.DataFrame, str]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((50, 4)), columns=NAMES)
    frame["y"] = frame["a"] - 0.5 * frame["b"] + rng.standard_normal(50)
    frame.to_csv("t.csv", index=False)
    return frame, "t.csv"


@pytest.mark.parametrize("rule", list(RULES))
def test_choices_and_sizes_are_those_of_the_estimator(
    rule: str, table: tuple[pd.DataFrame, str]
) -> None:
    frame, path = table
    command = ["cv", path, "--gamma", "0.1,10", "--rule", rule]
    model = SparseRidgeCV(gammas=[0.1, 10.0], rule=rule).fit(frame[NAMES], frame["y"])
    document = run_json(*command, "--compare", "--no-nested")
    assert (document["rule"], document["rule_status"]) == (rule, "optimal")
    for choice in model.compare().itertuples():
        name = choice.Index
        said = document["rules"][name]
        assert said["tau"] == choice.tau
        assert said["gamma"] == (None if np.isnan(choice.gamma) else pytest.approx(choice.gamma))
        assert said["criterion"] == pytest.approx(choice.criterion)
        assert said["certified"]
        assert choice.certified
        assert ("lambda" in said) == (name == "stability")
        assert said.get("lambda", np.nan) == pytest.approx(choice.lambda_, nan_ok=True)
    if rule == "projected":
        assert document["reference_error"] == pytest.approx(model.reference_error_)
        for t, said in enumerate(document["sizes"]):
            assert said["support"] == model.path_["names"][t]
            said["distance"] /= document["reference_error"]  # The frame has shares.
            for name in ("tau", "cv_error", "distance"):
                assert said[name] == pytest.approx(model.path_[name][t], rel=1e-6, abs=1e-9)
    check_model(document["model"], model, NAMES)
    found = run_json(*command, "--size", "3")
    other = model.at_size(3)
    assert found["chosen"]["tau"] == 3
    assert found["chosen"]["gamma"] == pytest.approx(other.gamma)
    assert found["chosen"]["cv_error"] == pytest.approx(other.cv_error_)
    check_model(found["model"], other, NAMES)
    assert found["nested"] is None


def test_tables_are_those_of_the_estimators(
    table: tuple[pd.DataFrame, str], capsys: pytest.CaptureFixture[str]
) -> None:
    frame, path = table
    asked = ["--n-best", "2", "--criteria"]
    found = run_json("cv", path, "--gamma", "0.1,10", "--no-nested", *asked)
    model = SparseRidgeCV(gammas=[0.1, 10.0]).fit(frame[NAMES], frame["y"])
    for name in ("aic", "bic", "ebic", "cp"):
        np.testing.assert_allclose(found["criteria"][name], model.criteria_[name], rtol=1e-9)
    own = model.alternatives(2)
    np.testing.assert_allclose(found["alternatives"]["cv_error"], own["cv_error"], rtol=1e-9)
    assert own["names"].tolist() == [[NAMES[c] for c in some] for some in own["columns"]]
    assert found["alternatives"]["columns"] == own["names"].tolist()
    assert model.path_["names"].iloc[-1] == NAMES
    fitted = run_json("fit", path, "--tau", "3", "--gamma", "0.1", *asked)
    plain = SparseRidge(tau=3, gamma=0.1).fit(frame[NAMES], frame["y"])
    np.testing.assert_allclose(
        fitted["alternatives"]["objective"], plain.alternatives(2)["objective"], rtol=1e-9
    )
    np.testing.assert_allclose(fitted["criteria"]["cp"], plain.criteria_["cp"], rtol=1e-9)
    capsys.readouterr()
    shown = ["--table", "--html", "page.html", *asked]
    assert main(["cv", path, "--gamma", "0.1,10", "--no-nested", *shown]) == 0
    assert "Alternatives" in Path("page.html").read_text(encoding="utf-8")
    screen = " ".join(capsys.readouterr().out.split())
    for words in ("EBIC", "the best subsets", *NAMES):
        assert words in screen
    assert main(["fit", path, "--tau", "2", *asked]) == 0
    assert "the best subsets" in capsys.readouterr().out


@pytest.mark.parametrize("folds", ["loo", "5"])
def test_predict_prints_the_intervals_of_the_estimator(
    folds: str, table: tuple[pd.DataFrame, str]
) -> None:
    frame, path = table
    how = ["--gamma", "0.1,10", "--folds", folds, "--no-nested", "--quiet"]
    assert main(["cv", path, *how, "--save", "m.json"]) == 0
    assert main(["predict", "m.json", path, "--coverage", "0.8", "--out", "p.csv"]) == 0
    cv: Any = folds if folds == "loo" else int(folds)
    own = SparseRidgeCV(cv=cv, gammas=[0.1, 10.0]).fit(frame[NAMES], frame["y"])
    found = pd.read_csv("p.csv")
    np.testing.assert_allclose(found["prediction"], own.predict(frame[NAMES]), rtol=1e-9)
    expected = own.predict_interval(frame[NAMES], 0.8)
    np.testing.assert_allclose(found[["lower", "upper"]], expected, rtol=1e-9)
    assert main(["predict", "m.json", path, "--out", "p.csv"]) == 0
    assert list(pd.read_csv("p.csv").columns) == ["prediction"]


def test_a_model_without_intervals_says_so(
    table: tuple[pd.DataFrame, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", table[1], "--tau", "1", "--save", "m.json", "--quiet"]) == 0
    words = ["keeps nothing for intervals"]
    complaint(capsys, ["predict", "m.json", table[1], "--coverage", "0.9"], words)


@pytest.mark.parametrize("tau", ["2", "aic", "bic", "EBIC"])
def test_a_fit_by_size_or_criterion_has_the_inference_of_the_estimator(
    tau: str, table: tuple[pd.DataFrame, str], capsys: Capture
) -> None:
    frame, path = table
    found = run_json("fit", path, "--tau", tau, "--inference")
    own = SparseRidge(tau=int(tau) if tau.isdigit() else tau.lower()).fit(frame[NAMES], frame["y"])
    check_model(found["model"], own, NAMES)
    assert found["criterion"] == (None if tau.isdigit() else tau.lower())
    assert (found["tau"], found["gamma"]) == (own.tau_, 1.0 if tau.isdigit() else 0.0)
    said, expected = found["inference"], own.inference()
    assert said["column"] == expected.index.tolist()
    for name in ("coef", "std_error", "p_low", "p_high", "low", "high"):
        known = [np.nan if value is None else value for value in said[name]]
        finite = np.where(np.isfinite(expected[name]), expected[name], np.nan)
        np.testing.assert_allclose(known, finite, rtol=1e-6)
    for name in ("level", "sigma", "sigma_source", "event", "conditional_on", "complete"):
        assert said[name] == expected.attrs[name]
    capsys.readouterr()
    assert main(["fit", path, "--tau", tau, "--inference", "--html", "page.html"]) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    screen = " ".join(capsys.readouterr().out.split())
    for words in ("p-values and intervals", "45 degrees of freedom", "these columns are selected"):
        assert words in screen
        assert words in " ".join(page.split())
    assert main(["fit", path, "--tau", tau]) == 0
    assert "p-value" not in capsys.readouterr().out


def test_no_column_may_be_of_least_criterion(
    table: tuple[pd.DataFrame, str], capsys: Capture
) -> None:
    frame, path = table
    noise = np.random.default_rng(3).standard_normal(50)
    frame.assign(y=noise).to_csv(path, index=False)
    asked = ["--criteria", "--n-best", "2", "--html", "page.html", "--plot", "picture.png"]
    assert main(["fit", path, "--tau", "ebic", "--save", "m.json", "--inference", *asked]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "τ = 0 of 4 features" in screen
    assert "there is nothing to test" in screen
    assert "no other set of features has a smaller EBIC" in screen
    assert main(["predict", "m.json", path, "--out", "p.csv"]) == 0
    np.testing.assert_allclose(pd.read_csv("p.csv")["prediction"], noise.mean())
    own = SparseRidge(tau="ebic").fit(frame[NAMES], noise)
    others = own.alternatives(2)
    assert others["columns"].tolist() == [[]]
    np.testing.assert_allclose(others["objective"], own.objective_)
    with pytest.raises(ValueError, match="no column"):
        own.to_sklearn()


def test_inference_that_is_not_covered_is_refused_in_one_line(
    table: tuple[pd.DataFrame, str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, path = table
    frame.assign(w=1.0 + np.arange(50) % 2)[["w", *NAMES, "y"]].to_csv("w.csv", index=False)
    frame.head(34).to_csv("short.csv", index=False)
    holed = frame.copy()
    holed.loc[0, "a"] = np.nan
    holed.to_csv("holed.csv", index=False)
    for command, words in (
        ("w.csv --weights w", ["weights", "without"]),
        (f"{path} --positive all", ["signs or bounds", "without"]),
        ("holed.csv --missing mean", ["missing values", "leave out"]),
        ("short.csv", ["29 degrees of freedom", "30 are needed", "fewer columns"]),
    ):
        with monkeypatch.context() as patched:  # Nothing is searched for before it is refused.
            patched.delattr("sparsecv.cli.fit.fit_table")
            complaint(capsys, ["fit", *command.split(), "--tau", "2", "--inference"], words)
    late = ["fit", path, "--time-limit", "0", "--tau", "2", "--inference"]
    complaint(capsys, late, ["proved to be the best", "time_limit"])
    assert main(["fit", "holed.csv", "--tau", "2", "--missing", "drop", "--inference"]) == 0
