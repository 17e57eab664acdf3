"""Weights of rows in stability-regularised selection: whole numbers count as copies of a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.commands import run_json
from support.learners import label_of, made
from support.tables import Array, write_csv

from sparsecv import Constraints, SparseRidge, SparseRidgeCV, StabilityCV
from sparsecv.errors import InputError

SCALED_RIDGE = make_pipeline(StandardScaler(), Ridge())
CASES: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (SparseRidge(), {"tau": [1, 2, 4], "gamma": [0.1, 5.0]}, {}),
    (SparseRidge(), {"gamma": [0.1, 5.0], "tau": [1, 3]}, {"solver": "heuristic"}),
    (SparseRidge(constraints=Constraints(include=[3])), {"tau": [1, 3], "gamma": [5.0]}, {}),
    (SparseRidge(), {"tau": [1, 4]}, {"loss": "absolute"}),
    (SCALED_RIDGE, {"ridge__alpha": [0.1, 50.0]}, {}),
    (Ridge(), {"alpha": [1.0, 50.0], "fit_intercept": [True]}, {"search": "coordinate"}),
]


@pytest.mark.parametrize(("estimator", "grid", "options"), CASES, ids=str)
def test_whole_weights_are_copies_in_one_fold(
    estimator: Any, grid: dict[str, Any], options: dict[str, Any]
) -> None:
    """A row of weight 3 counts as three rows of its fold; a row of weight 0 counts as none."""
    X, y = made(24, 4)
    label = label_of(24, 4)
    times = np.random.default_rng(1).integers(0, 4, 24)
    many = np.repeat(np.arange(24), times)

    def fitted(rows: Any, weights: Any) -> StabilityCV:
        own = label[rows]
        pairs = [(np.flatnonzero(own != j), np.flatnonzero(own == j)) for j in range(4)]
        search = StabilityCV(clone(estimator), grid, cv=pairs, lambdas=[0.0, 0.5, 5.0], **options)
        return search.fit(X[rows], y[rows], sample_weight=weights)

    one, other = fitted(np.arange(24), times), fitted(many, None)
    for name in ("cv_error", "stability", "corrected"):
        np.testing.assert_allclose(one.cv_results_[name], other.cv_results_[name], rtol=1e-8)
    for name in ("nested_error", "outer_error"):
        np.testing.assert_allclose(
            one.lambda_results_[name], other.lambda_results_[name], rtol=1e-8
        )
    assert (one.best_params_, one.lambda_) == (other.best_params_, other.lambda_)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-7)


def test_projections_are_fitted_and_judged_with_weights() -> None:
    X, y = made(30, 4)
    weights = np.random.default_rng(1).uniform(0.2, 4.0, 30)
    label = label_of(30, 3)
    pairs = [(np.flatnonzero(label != j), np.flatnonzero(label == j)) for j in range(3)]
    estimator = SparseRidgeCV(rule="projected", gammas=[1.0, 20.0], cv=4)
    search = StabilityCV(estimator, {"taus": [1, 2]}, cv=pairs, lambdas=0.0)
    search.fit(X, y, sample_weight=weights)
    for i, tau in enumerate([1, 2]):
        losses = []
        for train, test in pairs:
            model = clone(estimator).set_params(taus=[1, 2])
            model = model.fit(X[train], y[train], sample_weight=weights[train]).at_size(tau)
            squares = np.square(y[test] - model.predict(X[test]))
            losses.append(np.average(squares, weights=weights[test]))
        assert search.cv_results_["cv_error"][i] == pytest.approx(np.mean(losses))


def test_the_rule_stability_takes_weights() -> None:
    X, y = made(24, 4)
    times = np.random.default_rng(1).integers(1, 4, 24)
    rows = np.repeat(np.arange(24), times)
    model = SparseRidgeCV(cv=4, gammas=[0.1, 5.0], rule="stability", standardize=False)
    one = clone(model).fit(X, y, sample_weight=times, groups=np.arange(24))
    other = clone(model).fit(X[rows], y[rows], groups=np.arange(24)[rows])
    assert (one.tau_, one.gamma_) == (other.tau_, other.gamma_)
    a, b = one.choices_["stability"], other.choices_["stability"]
    assert a.criterion == pytest.approx(b.criterion, rel=1e-9)
    assert a.lambda_ == b.lambda_


def test_pipelines_get_weights_through_metadata_routing() -> None:
    X, y = made(30, 4)
    weights = np.random.default_rng(1).uniform(0.2, 4.0, 30)
    grid = {"ridge__alpha": [0.1, 50.0]}
    plain = StabilityCV(SCALED_RIDGE, grid, cv=4, random_state=0).fit(X, y, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        steps = StandardScaler(), Ridge()
        asking = make_pipeline(*(step.set_fit_request(sample_weight=True) for step in steps))
        search = StabilityCV(asking, grid, cv=4, random_state=0)
        outer = make_pipeline(search.set_fit_request(sample_weight=True))
        found = outer.fit(X, y, sample_weight=weights)[-1]
    np.testing.assert_allclose(found.cv_results_["cv_error"], plain.cv_results_["cv_error"])
    np.testing.assert_allclose(found.predict(X), plain.predict(X))


def test_what_takes_no_weights_says_so() -> None:
    X, y = made(20)
    with pytest.raises(InputError, match="KNeighborsRegressor takes no weights"):
        StabilityCV(KNeighborsRegressor(), {"n_neighbors": [2]}).fit(X, y, np.arange(20))
    search = StabilityCV(Ridge(), {"alpha": [1.0]}, cv=4)
    with pytest.raises(InputError, match="finite and >= 0"):
        search.fit(X, y, -np.arange(20.0))
    pairs = [(np.arange(5, 20), np.arange(5)), (np.arange(5), np.arange(5, 20))]
    weights = np.arange(20) >= 5
    with pytest.raises(InputError, match="fold 1 of 2 has no row with a weight above 0"):
        StabilityCV(Ridge(), {"alpha": [1.0]}, cv=pairs, lambdas=0.0).fit(X, y, weights)


def table_of(folder: Path, X: Array, weights: Array, y: Array) -> Path:
    names = ["a", "b", "c", "d", "w"]
    return write_csv(folder / "t.csv", np.column_stack([X, weights]), y, names)


@pytest.mark.parametrize("learner", ["sparse-ridge", "projected", "cart", "svm"])
def test_the_command_weighs_rows(
    learner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = made(40, 4)
    weights = np.random.default_rng(2).integers(0, 5, 40)
    options = ["--folds", "4", "--lambda", "1", "--learner", learner, "--seed", "3"]
    if learner in ("sparse-ridge", "projected"):
        options += ["--tau", "1:3", "--gamma", "0.5,5"]
    command = ["stability", table_of(tmp_path, X, weights, y), *options]
    found = run_json(*command, "--weights", "w", quiet=False, folder=tmp_path)
    assert "weights w" in capsys.readouterr().out
    assert found["weights"] == "w"
    if learner == "sparse-ridge":
        grid = {"gamma": [0.5, 5.0], "tau": [1, 2, 3]}
        search = StabilityCV(SparseRidge(), grid, cv=4, lambdas=[0.0, 1.0], random_state=3)
        search.fit(X, y, sample_weight=weights)
        assert found["best_params"] == search.best_params_
        assert found["cv_error"] == pytest.approx(
            search.cv_results_["cv_error"][search.best_index_]
        )
    assert found["cv_error"] != run_json(*command, "--drop", "w", folder=tmp_path)["cv_error"]


def test_the_test_error_is_weighted(tmp_path: Path) -> None:
    X, y = made(40, 4)
    weights = np.random.default_rng(2).uniform(0.1, 5.0, 40)
    options = ["--tau", "2", "--gamma", "1", "--lambda", "0", "--test", "0.25", "--weights", "w"]
    table = table_of(tmp_path, X, weights, y)
    found = run_json("stability", table, *options, folder=tmp_path)
    order = np.random.default_rng(0).permutation(40)
    rows, held = np.sort(order[10:]), np.sort(order[:10])
    model = SparseRidge(tau=2, gamma=1.0).fit(X[rows], y[rows], sample_weight=weights[rows])
    squares = np.square(y[held] - model.predict(X[held]))
    expected = np.average(squares, weights=weights[held])
    assert found["test_error"] == pytest.approx(expected)
