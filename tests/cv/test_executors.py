"""Cross-validation gives the same bits in threads, in processes and on a Dask cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.tree import DecisionTreeRegressor
from support.clusters import same_results
from support.inside import (
    Checkpoint,
    CheckpointFolder,
    CVResult,
    RowFolds,
    RowTable,
    Settings,
    cross_validate,
    make_folds,
)
from support.problems import regression

from sparsecv import SparseRidgeCV, StabilityCV

distributed = pytest.importorskip("distributed")


def rows(n: int, p: int, cv: Any, seed: int = 0) -> RowFolds:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 3] = X[:, 2]  # ties
    return RowFolds(
        RowTable(X, X[:, 0] - X[:, 2] + rng.standard_normal(n), True), make_folds(cv, n)
    )


CASES: dict[str, tuple[Any, ...]] = {
    "K folds": (rows(60, 10, 5), [1.0, 10.0], range(1, 11), Settings()),
    "leave-one-out": (rows(1100, 6, "loo"), [1.0], range(1, 7), Settings()),
    "beyond 45 columns": (rows(60, 48, 3), [1.0, 200.0], [1, 2, 3], Settings(prove="all")),
    "leave-one-out beyond": (rows(60, 48, "loo"), [1.0], [1, 2, 3], Settings(prove="all")),
    "grid": (rows(60, 8, 4), [1.0], range(1, 9), Settings("grid")),
}


@pytest.fixture(scope="module")
def plain() -> dict[str, CVResult]:
    return {name: cross_validate(*case) for name, case in CASES.items()}


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_threads_and_processes(backend: str, plain: dict[str, CVResult]) -> None:
    for name, case in CASES.items():
        with parallel_config(backend, n_jobs=2):
            same_results(cross_validate(*case), plain[name])


def test_a_cluster(client: Any, plain: dict[str, CVResult]) -> None:
    for name, case in CASES.items():
        with parallel_config("dask", client=client):
            same_results(cross_validate(*case), plain[name])


def test_estimators(client: Any) -> None:
    X, y = regression(60, 6, {0: 1.0, 1: -1.0}, seed=3)
    for rule in ("projected", "stability"):
        expected = SparseRidgeCV(rule=rule, gammas=[1.0, 10.0]).fit(X, y)
        with parallel_config("dask", client=client):
            found = SparseRidgeCV(rule=rule, gammas=[1.0, 10.0]).fit(X, y)
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        np.testing.assert_array_equal(
            found.cv_results_["cv_error"], expected.cv_results_["cv_error"]
        )
        assert found.cv_error_ == expected.cv_error_


def test_stability(client: Any) -> None:
    X, y = regression(60, 4, {0: 1.0}, seed=4)
    grid = {"max_depth": [1, 2, 3]}
    options: dict[str, Any] = {"cv": 3, "random_state": 0}
    learner = DecisionTreeRegressor(random_state=0)
    expected = StabilityCV(learner, grid, **options).fit(X, y)
    with parallel_config("dask", client=client):
        found = StabilityCV(learner, grid, **options).fit(X, y)
    assert found.best_params_ == expected.best_params_
    assert found.nested_error_ == expected.nested_error_
    for name in ("cv_error", "stability", "corrected"):
        np.testing.assert_array_equal(found.cv_results_[name], expected.cv_results_[name])


def test_the_time_limit_holds(client: Any) -> None:
    """Units get shares of the time, and what they leave is bracketed."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((60, 40)) + 2.0 * rng.standard_normal((60, 1))
    data = RowFolds(RowTable(X, rng.standard_normal(60), True), make_folds(6, 60))
    with parallel_config("dask", client=client):
        found = cross_validate(data, [1e-3], [5, 15, 20], Settings(time_limit=0.1))
    assert str(found.status) == "time limit"
    assert (found.table("lower") <= found.table("cv_error")).all()
    assert (found.table("cv_error") <= found.table("upper")).all()


def test_units_are_kept_as_they_come(client: Any, tmp_path: Path) -> None:
    """Folds that end before an interrupt are not done again."""
    data, gammas, taus, settings = CASES["K folds"]
    kept = Checkpoint(CheckpointFolder(tmp_path), data.digest(), {})

    def until_two(what: str, done: int, *_: object) -> None:
        if what.startswith("fitting the folds") and done == 2:  # the time left may follow
            raise KeyboardInterrupt

    with parallel_config("dask", client=client), pytest.raises(KeyboardInterrupt):
        cross_validate(data, gammas, taus, settings, checkpoint=kept, progress=until_two)
    told: list[tuple[str, int, int]] = []
    with parallel_config("dask", client=client):
        again = cross_validate(
            data, gammas, taus, settings, checkpoint=kept, progress=lambda *one: told.append(one)
        )
    assert kept.reused == gammas
    assert next(one for one in told if one[0] == "fitting the folds")[2] <= data.folds.k - 1
    same_results(again, cross_validate(data, gammas, taus, settings))
