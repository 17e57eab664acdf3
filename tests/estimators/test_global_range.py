"""The least CV error over every τ and a range of γ, asked for by ``gammas="global"``."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from support.inside import main
from support.problems import regression

from sparsecv import SparseRidgeCV
from sparsecv.errors import InputError
from sparsecv.plots import over_gamma
from sparsecv.plots.over_gamma import plot_supports
from sparsecv.solvers import SparseRidgeProblem, supports_along_gamma

X, Y = regression(40, 5, {0: 2.0, 3: 1.0}, seed=4)


def test_the_certified_pair_is_chosen_and_no_other_gamma_is_better() -> None:
    model = SparseRidgeCV(cv="loo", gammas="global").fit(X, Y)
    found = model.minimum_
    assert model.certified_
    assert (model.tau_, model.gamma_) == (found.tau, found.gamma)
    low, high = model.cv_error_bounds_
    assert low <= model.cv_error_ <= high * (1.0 + 1e-12)
    assert high - low <= 1e-4 * high
    least = SparseRidgeCV(cv="loo", rule="minimum")
    grid = clone(least).set_params(gammas=np.geomspace(1e-4, 1e4, 50)).fit(X, Y)
    alternated = clone(least).fit(X, Y)
    assert low <= min(grid.cv_error_, alternated.cv_error_)
    assert model.cv_error_ <= min(grid.cv_error_, alternated.cv_error_) * (1.0 + 1e-4)


def test_a_range_and_a_tolerance_can_be_named() -> None:
    model = SparseRidgeCV(cv=4, gammas="global:0:2", tol=1e-6).fit(X, Y)
    assert model.minimum_.span == (0.0, 2.0)
    assert model.minimum_.gap <= 1e-6
    assert model.gamma_ <= 2.0


def test_outer_folds_search_the_range_too() -> None:
    model = SparseRidgeCV(cv=3, gammas="global", nested=2).fit(X, Y)
    assert np.isfinite(model.nested_error_)


def test_the_command_prints_the_bounds_and_writes_the_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture, document = tmp_path / "h.png", tmp_path / "h.json"
    files = ["--plot", str(picture), "--json", str(document)]
    options = ["--folds", "5", "--gamma", "global:0:10", "--no-nested"]
    assert main(["cv", "diabetes", *options, *files]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "≤ least CV error ≤" in printed
    claim = "no pair (τ, γ) has a smaller CV error than the chosen one by more than 0.01 %"
    assert f"{claim} (rule minimum; τ from 0 to 10; every γ from 0 to 10)" in printed
    found = json.loads(document.read_text())["global"]
    assert found["certified"]
    assert found["lower_bound"] <= found["upper_bound"]
    assert picture.stat().st_size > 10_000


def test_supports_are_drawn_for_every_size(tmp_path: Path) -> None:
    data = load_diabetes(as_frame=True)
    rows = data.data.to_numpy() * 20.0
    problem = SparseRidgeProblem(rows, data.target.to_numpy() - 152.0, gamma=1.0, tau=10)
    along, _ = supports_along_gamma(problem, 1e-3, 1e3)
    plot_supports(along, str(tmp_path / "s.png"), "diabetes", names=list(data.data.columns))
    assert (tmp_path / "s.png").stat().st_size > 10_000
    point, _ = supports_along_gamma(problem, 0.0, 1e-300, sizes=[10])
    with pytest.raises(InputError, match="range of gamma > 0"):
        plot_supports(point, str(tmp_path / "t.png"))


def test_supports_of_a_range_from_0_are_drawn_below_their_first_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = list[Any]()
    monkeypatch.setattr(over_gamma, "save", lambda figure, path: drawn.append(figure))
    problem = SparseRidgeProblem(
        np.diag([1.0, 9.0, 2.0]), np.array([3.0, 2.0, 1.0]), gamma=1.0, tau=1
    )
    along, _ = supports_along_gamma(problem, 0.0, 1e3)
    first, *_, last = along[1]
    assert first.low == 0.0 < first.high < last.high
    plot_supports(along, str(tmp_path / "s.png"))
    low, high = drawn[0].axes[0].get_xlim()
    assert (low, high) == pytest.approx((0.01 * first.high, 1e3))
