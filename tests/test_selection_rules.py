"""Rules that choose (τ, γ): against their definitions, in the estimator and on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from sparsecv import SparseRidge, SparseRidgeCV, risk
from sparsecv.cli import main
from sparsecv.errors import InputError

Array = NDArray[np.float64]


def made(n: int = 30, p: int = 5, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 2.0
    return X, X[:, 0] - X[:, 1] + 1.5 * rng.standard_normal(n)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("cv", [KFold(5), "loo"])
def test_the_corrected_error_is_that_of_refitted_models(intercept: bool, cv: Any) -> None:
    X, y = made()
    options: dict[str, Any] = {"standardize": False, "fit_intercept": intercept}
    gammas, taus = [0.1, 10.0], [1, 2, 4]
    found = SparseRidgeCV(cv=cv, gammas=gammas, taus=taus, rule="corrected", **options).fit(X, y)
    surface = [
        [risk.corrected_k_fold(SparseRidge(t, g, **options), X, y, cv=cv).value for t in taus]
        for g in gammas
    ]
    choice = found.choices_["corrected"]
    g, t = np.unravel_index(int(np.argmin(surface)), (2, 3))
    assert (found.gamma_, found.tau_) == (gammas[g], taus[t])
    assert choice.criterion == pytest.approx(np.min(surface), rel=1e-7)
    assert found.cv_error_ == pytest.approx(found.cv_results_["cv_error"][g, t])
    assert found.certified_
    np.testing.assert_array_equal(
        found.support_, SparseRidge(found.tau_, found.gamma_, **options).fit(X, y).support_
    )


def test_rules_side_by_side() -> None:
    X, y = made(60, 8)
    found = {
        rule: SparseRidgeCV(gammas=[1.0, 30.0], random_state=0, rule=rule).fit(X, y)
        for rule in ("minimum", "one-se", "corrected")
    }
    plain = found["minimum"]
    for rule, model in found.items():
        assert set(model.choices_) == {"minimum", "one-se", "corrected"}
        choice = plain.choices_[rule]
        assert (model.tau_, model.gamma_) == (choice.tau, choice.gamma)
        assert model.support_.size == model.tau_
    assert found["one-se"].tau_ == plain.tau_1se_ <= plain.tau_
    assert found["one-se"].gamma_ == plain.gamma_
    assert plain.cv_error_ <= found["one-se"].cv_error_
    # the corrected one is not forced on large problems
    big = SparseRidgeCV(cv="loo", gammas=np.geomspace(0.1, 10.0, 45)).fit(X, y)
    assert set(big.choices_) == {"minimum", "one-se"}


def test_rules_that_cannot_be_used() -> None:
    X, y = made()
    with pytest.raises(InputError, match="rule must be"):
        SparseRidgeCV(rule="best").fit(X, y)
    with pytest.raises(InputError, match="every tau"):
        SparseRidgeCV(rule="one-se", method="search", gammas=1.0).fit(X, y)
    rows = np.arange(30)
    overlapping = [(rows[10:], rows[:10]), (rows[5:], rows[:5])]
    with pytest.raises(InputError, match="every row once"):
        SparseRidgeCV(rule="corrected", cv=overlapping, gammas=1.0).fit(X, y)
    fine = SparseRidgeCV(cv=overlapping, gammas=1.0).fit(X, y)
    assert set(fine.choices_) == {"minimum", "one-se"}


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = made(60, 6)
    table, file = tmp_path / "t.csv", tmp_path / "r.json"
    head = ",".join([*(f"x{j}" for j in range(6)), "y"])
    np.savetxt(table, np.column_stack([X, y]), delimiter=",", header=head, comments="")
    common = ["cv", str(table), "--gamma", "1,30", "--folds", "5", "--json", str(file)]
    for rule in ("minimum", "one-se", "corrected"):
        assert main([*common, "--rule", rule]) == 0
        document = json.loads(file.read_text())
        same = SparseRidgeCV(cv=5, gammas=[1.0, 30.0], random_state=0, rule=rule).fit(X, y)
        assert document["rule"] == rule
        assert len(document["model"]["support"]) == same.tau_
        assert document["rules"][rule]["tau"] == same.tau_
        assert document["rules"][rule]["gamma"] == pytest.approx(same.gamma_)
        assert document["rules"]["corrected"]["criterion"] == pytest.approx(
            same.choices_["corrected"].criterion
        )
        if rule != "minimum":
            assert "rules:" in capsys.readouterr().out
    for options in (["--rule", "best"], ["--rule", "one-se", "--method", "search"]):
        assert main(["cv", str(table), "--gamma", "1", *options]) == 2
        assert "rule" in capsys.readouterr().err
