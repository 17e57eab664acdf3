"""Prediction intervals equal jackknife+ and CV+ written plainly, and survive files and pickles."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from support.brute_force import Data, enumerate_size
from support.problems import three_matter

import sparsecv
from sparsecv import Constraints, SparseRidgeCV
from sparsecv.errors import InputError

Array = NDArray[np.float64]


def plain_interval(
    model: SparseRidgeCV, X: Array, y: Array, new: Array, coverage: float
) -> tuple[Array, Array]:
    """Barber et al. 2021, Sections 1 and 3, with every fold's best subset found by enumeration.

    Returns: The ends of the intervals, and the absolute residual of every row held out.
    """
    low, high, residuals = [], [], np.empty(len(y))
    spread, n = X.std(axis=0), len(y)
    for j in range(model.folds_.k):
        train, test = model.folds_.split(j)
        A = X[train] / spread
        data = Data(A - A.mean(axis=0), y[train] - y[train].mean(), model.gamma_)
        columns = list(enumerate_size(data, model.tau_).best()[0])
        ridge = Ridge(model.gamma_ / 2.0, tol=1e-12).fit(A[:, columns], y[train])
        at = ridge.predict((new / spread)[:, columns])
        for i in test:
            residuals[i] = abs(y[i] - ridge.predict((X[[i]] / spread)[:, columns])[0])
            low.append(at - residuals[i])
            high.append(at + residuals[i])
    alpha = 1.0 - coverage
    lower = np.sort(low, axis=0)[math.floor(alpha * (n + 1) + 1e-9) - 1]
    upper = np.sort(high, axis=0)[math.ceil((1.0 - alpha) * (n + 1) - 1e-9) - 1]
    return np.column_stack([lower, upper]), residuals


@pytest.mark.parametrize("cv", ["loo", 5, "size:4"])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_they_are_those_of_the_definition(cv: Any, coverage: float) -> None:
    X, y = three_matter(30, 5)
    new = np.random.default_rng(5).standard_normal((7, 5))
    model = SparseRidgeCV(cv=cv, gammas=[0.5, 20.0], rule="minimum").fit(X, y)
    found = model.predict_interval(new, coverage)
    ends, residuals = plain_interval(model, X, y, new, coverage)
    np.testing.assert_allclose(found, ends, rtol=1e-8)
    np.testing.assert_allclose(model._fold_models_.residual, residuals, rtol=1e-6)
    assert (found[:, 0] < found[:, 1]).all()


@pytest.mark.parametrize("options", [{}, {"constraints": Constraints(include=[0])}])
def test_residuals_are_those_of_the_cv_error(options: dict[str, Any]) -> None:
    X, y = three_matter(30, 5)
    model = SparseRidgeCV(gammas=[0.5, 20.0], rule="projected", **options).fit(X, y)
    residual = model._fold_models_.residual
    assert np.mean(residual**2) == pytest.approx(model.cv_error_, rel=1e-8)
    pair = SparseRidgeCV(gammas=[0.5, 20.0], rule="minimum", **options).fit(X, y)
    assert np.mean(pair._fold_models_.residual**2) == pytest.approx(pair.cv_error_, rel=1e-8)


def test_too_few_rows_give_infinite_ends() -> None:
    X, y = three_matter(9, 5)
    model = SparseRidgeCV(cv="loo", gammas=1.0, taus=[1, 2]).fit(X, y)
    assert np.isfinite(model.predict_interval(X[:2], 0.9)).all()  # 9 = 1/0.1 − 1 rows suffice
    assert np.isinf(model.predict_interval(X[:2], 0.91)).all()


def test_new_responses_are_covered_as_often_as_said() -> None:
    hits = []
    for seed in range(20):
        X, y = three_matter(80, 5, seed)
        model = SparseRidgeCV(cv="loo", gammas=[1.0]).fit(X[:40], y[:40])
        low, high = model.predict_interval(X[40:], 0.8).T
        hits.append(np.mean((low <= y[40:]) & (y[40:] <= high)))
    assert 0.74 <= np.mean(hits) <= 0.88


def test_files_and_pickles_keep_them(tmp_path: Path) -> None:
    X, y = three_matter(30, 5)
    model = SparseRidgeCV(gammas=1.0).fit(X, y)
    file = tmp_path / "m.json"
    model.save(file)
    assert json.loads(file.read_text())["intervals"] is None
    with pytest.raises(InputError, match="keeps nothing for intervals"):
        sparsecv.load(file).predict_interval(X)
    model.save(file, intervals=True)
    expected = model.predict_interval(X, 0.8)
    np.testing.assert_allclose(sparsecv.load(file).predict_interval(X, 0.8), expected)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_interval(X, 0.8), expected)
    broken = json.loads(file.read_text())
    broken["intervals"]["fold"][0] = 99
    file.write_text(json.dumps(broken))
    with pytest.raises(InputError, match="'intervals' does not hold"):
        sparsecv.load(file)
    broken.pop("intervals")
    file.write_text(json.dumps(broken))  # as earlier versions wrote it
    np.testing.assert_allclose(sparsecv.load(file).predict(X), model.predict(X))
