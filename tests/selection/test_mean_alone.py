"""The size 0, the mean alone, among the sizes of a cross-validation."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.model_selection import KFold
from support.inside import RULES, main

from sparsecv import Constraints, SparseRidgeCV, load
from sparsecv.errors import InputError

Array = NDArray[np.float64]


def noise(n: int = 60, p: int = 6, seed: int = 0) -> tuple[Array, Array]:
    """Columns and a response that have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)), rng.standard_normal(n) + 3.0


def error_of_the_mean(model: SparseRidgeCV, y: Array, intercept: bool = True) -> float:
    """The CV error of the means of training rows, or of 0, on the folds of a model."""
    folds = model._run_.held_out.study.data.folds  # type: ignore[union-attr]
    total = 0.0
    for train, test in folds.splits():
        total += np.square(y[test] - (y[train].mean() if intercept else 0.0)).sum()
    return float(total / y.size)


@pytest.mark.parametrize("rule", list(RULES))
@pytest.mark.parametrize("cv", [5, "loo", KFold(3)])
def test_every_rule_knows_the_error_of_the_mean(rule: str, cv: Any) -> None:
    X, y = noise(24, 4)
    options: dict[str, Any] = {"gammas": [0.1, 10.0, 1000.0], "time_limit": None}
    model = SparseRidgeCV(rule=rule, cv=cv, **options).fit(X, y)
    first = model.path_.iloc[0]
    assert (first["tau"], list(first["columns"]), first["proved"]) == (0, [], True)
    assert first["cv_error"] == pytest.approx(error_of_the_mean(model, y), rel=1e-12)
    assert model.taus_.tolist() == [0, 1, 2, 3, 4]
    assert model.certified_
    if rule in ("minimum", "one-se", "projected"):  # These compare CV errors.
        assert model.cv_error_ <= first["cv_error"] * (1.0 + 1e-12)


@pytest.mark.parametrize(
    "how", [{"gammas": "global:0.1:100"}, {"method": "search"}, {"prove": "all"}]
)
def test_every_method_finds_the_mean_where_it_predicts_best(how: dict[str, Any]) -> None:
    X, y = noise(40, 3, seed=3)
    options = {"rule": "minimum", "gammas": [0.1, 1.0], "cv": 4, "time_limit": None} | how
    model = SparseRidgeCV(**options).fit(X, y)
    assert (model.tau_, model.support_.size, model.certified_) == (0, 0, True)
    assert model.cv_error_ == pytest.approx(error_of_the_mean(model, y), rel=1e-9)
    lower, upper = model.cv_error_bounds_
    assert lower <= model.cv_error_ * (1.0 + 1e-12)
    assert upper >= model.cv_error_ * (1.0 - 1e-12)


def test_noise_has_the_mean_alone_as_its_model(tmp_path: Path) -> None:
    X, y = noise()
    model = SparseRidgeCV().fit(X, y)
    assert (model.tau_, model.certified_) == (0, True)
    np.testing.assert_allclose(model.predict(X), y.mean())
    assert (model.path_["cv_error"] >= model.cv_error_).all()
    text = " ".join(model.summary().split())
    assert "chosen τ = 0 of 6 features" in text
    assert "none: the model predicts" in text
    assert "the mean alone, as no size that may be chosen has less CV error" in text
    assert "predicts as well" not in text
    assert "τ = 0 has one model, the mean alone" in model.claim_
    assert "the average is over τ from 1 to 6" in model.claim_
    model.save(tmp_path / "m.json")
    np.testing.assert_array_equal(load(tmp_path / "m.json").predict(X), model.predict(X))
    model.report(tmp_path / "page.html")
    assert "the model predicts" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not any("γ = " in line for line in model.summary().splitlines()[:3])
    assert np.isnan(model.path_["gamma"][0])
    assert np.isfinite(model.path_["gamma"][1:]).all()
    compared = model.compare()
    np.testing.assert_array_equal(np.isnan(compared["gamma"]), compared["tau"] == 0)
    other = model.at_size(2)
    assert other.support_.size == 2
    assert model.at_size(0).support_.size == 0
    with pytest.raises(InputError, match="no column"):
        model.to_sklearn()
    least = SparseRidgeCV(rule="minimum", cv=4, gammas=[0.1]).fit(*noise(40, 3, seed=3))
    assert least.tau_ == 0
    with pytest.raises(InputError, match="the mean alone has the least CV error"):
        least.certificate(tmp_path / "c.txt")


@pytest.mark.parametrize("rule", ["projected", "minimum", "one-se"])
def test_the_models_of_larger_sizes_stay_what_they_are_without_it(rule: str) -> None:
    """Neither the average nor the grid of γ depends on the size 0."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 5))
    y = X @ [2.0, -1.0, 0.0, 0.0, 0.0] + rng.standard_normal(50)
    default = SparseRidgeCV(rule=rule).fit(X, y)
    without = SparseRidgeCV(rule=rule, taus=np.arange(1, 6)).fit(X, y)
    assert default.taus_.tolist() == [0, *without.taus_]
    pd.testing.assert_frame_equal(default.path_.iloc[1:].reset_index(drop=True), without.path_)
    assert (default.tau_, default.gamma_) == (without.tau_, without.gamma_)
    np.testing.assert_array_equal(default.coef_, without.coef_)


def test_named_sizes_stay_those_of_the_user() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 4))
    y = 3.0 * X[:, 0] + rng.standard_normal(40)
    assert SparseRidgeCV(taus=[1, 2], rule="minimum").fit(X, y).taus_.tolist() == [1, 2]
    both = SparseRidgeCV(taus=[0, 2, 3], rule="minimum").fit(X, y)
    assert both.taus_.tolist() == [0, 2, 3]
    # No named size may be chosen by the rule's first limit: the mean alone is not chosen for that.
    named = SparseRidgeCV(taus=[0, 2, 3]).fit(X, y)
    assert named.tau_ > 0
    assert named.path_["tau"].tolist() == [0, 2, 3]
    with pytest.raises(InputError, match="nothing to choose"):
        SparseRidgeCV(taus=[0]).fit(X, y)
    rules = Constraints(include=[1])
    assert SparseRidgeCV(constraints=rules, rule="minimum").fit(X, y).taus_.tolist() == [1, 2, 3, 4]


def test_without_an_intercept_the_size_0_predicts_0() -> None:
    X, y = noise()
    model = SparseRidgeCV(fit_intercept=False, rule="minimum", gammas=[1.0]).fit(X, y - 3.0)
    assert model.path_["cv_error"][0] == pytest.approx(error_of_the_mean(model, y - 3.0, False))


def test_wide_tables_have_the_size_0(tmp_path: Path) -> None:
    """Beyond 45 columns sizes grow in rounds, and inner folds have none of size 0."""
    X, y = noise(60, 70, seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparseRidgeCV(random_state=0).fit(X, y)
    first = model.path_.iloc[0]
    assert first["tau"] == 0
    assert first["cv_error"] == pytest.approx(error_of_the_mean(model, y), rel=1e-12)
    assert model.cv_error_ <= first["cv_error"]
    X[:, 0] += 3.0 * y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert SparseRidgeCV(random_state=0).fit(X, y).tau_ > 0


def test_the_command_begins_at_0_and_the_paper_at_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = noise()
    pd.DataFrame(X).assign(y=y).to_csv("t.csv", index=False)
    assert main(["cv", "t.csv", "--no-nested", "--json", "r.json"]) == 0
    found = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert found["chosen"]["tau"] == 0
    of_the_mean = [found["chosen"], found["sizes"][0], *found["rules"].values()]
    assert {one["gamma"] for one in of_the_mean if one["tau"] == 0} == {None}
    assert "the mean alone" in capsys.readouterr().out
    paper = ["--protocol", "paper", "--gamma", "1", "--no-nested", "--json", "p.json"]
    assert main(["cv", "t.csv", *paper]) == 0
    sizes = json.loads(Path("p.json").read_text(encoding="utf-8"))["results"][0]["tau"]
    assert sizes == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("rule", ["minimum", "projected"])
def test_an_audit_of_the_mean_alone_leaves_the_fit_on_the_screen(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = noise()
    pd.DataFrame(X).assign(y=y).to_csv("t.csv", index=False)
    asked = ["--rule", rule, "--no-nested", "--audit", "--json", "r.json", "--html", "page.html"]
    assert main(["cv", "t.csv", *asked]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.index("chosen τ = 0 of 6 features columns none") < text.index(
        "audit none: the model"
    )
    assert "the size 0 has none: name sizes from 1 on" in text
    assert json.loads(Path("r.json").read_text(encoding="utf-8"))["audit"] is None
    assert "the size 0 has" in " ".join(Path("page.html").read_text(encoding="utf-8").split())
    with pytest.raises(InputError, match="the size 0 has none: name sizes"):
        SparseRidgeCV(rule=rule).fit(X, y).report(audit=True)
    assert main(["fit", "t.csv", "--tau", "0", "--audit"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("chosen τ = 0 of 6 features columns none")
    assert "audit none: the model is the mean alone" in text


@pytest.mark.parametrize("seed", range(3))
def test_a_far_row_does_not_hide_a_signal_behind_the_mean(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3))
    X[:, 0] = np.exp(rng.standard_normal(60))
    X[7, 0] = (
        120.0  # It pulls the average of all models far off, and the folds' projections with it.
    )
    y = 3.0 * np.log(X[:, 0]) + 0.5 * rng.standard_normal(60)
    model = SparseRidgeCV(time_limit=None).fit(X, y)
    mean, least = model.path_.iloc[0], SparseRidgeCV(rule="minimum", time_limit=None).fit(X, y)
    assert model.path_["cv_error"].iloc[1:].min() > mean["cv_error"]
    assert least.cv_error_ < mean["cv_error"] - mean["std_error"]
    assert model.tau_ > 0


def test_the_report_names_the_mean_only_where_the_rule_compares_sizes_with_it() -> None:
    rng = np.random.default_rng(11)
    X = rng.standard_normal((60, 5))
    X[:, 0] = np.exp(rng.standard_normal(60))
    X[7, 0] = 120.0
    y = 3.0 * np.log(X[:, 0]) + 0.5 * rng.standard_normal(60) + 0.8 * X[:, 1]
    model = SparseRidgeCV(time_limit=None).fit(X, y)
    told = " ".join(str(model.summary()).split())
    assert model.cv_error_ > model.path_["cv_error"].iloc[0]
    assert "The rule leaves out" in told
    assert "or the mean alone has" not in told
