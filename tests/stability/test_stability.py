"""Stability-regularised nested cross-validation against a plain, line-by-line Algorithm 1."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import ParameterGrid
from sklearn.tree import DecisionTreeRegressor
from support.inside import EstimatorLearner, checked_loss
from support.learners import LAMBDAS, LEARNERS, Array, label_of, made

from sparsecv import SparseRidge, StabilityCV
from sparsecv.errors import InputError
from sparsecv.stability import criterion, partial_errors, select


def squared(y: Array, predicted: Array) -> Array:
    return (y - predicted) ** 2


def algorithm_one(
    model: Any,
    candidates: list[dict[str, Any]],
    X: Array,
    y: Array,
    label: NDArray[np.intp],
    lambdas: Any,
    loss: Any = squared,
) -> tuple[float, float, int, Array]:
    """Algorithm 1 of the stability paper, its lines in order, nothing shared."""
    n, k = y.size, int(label.max()) + 1
    outer = np.empty((len(lambdas), k))

    def fit(rows: NDArray[np.bool_], theta: dict[str, Any]) -> Array:
        fitted = clone(model).set_params(**theta).fit(X[rows], y[rows])
        return loss(y, fitted.predict(X))

    for a, weight in enumerate(lambdas):  # 4
        for t in range(k):  # 5
            best, least = 0, np.inf
            rest = label != t
            for number, theta in enumerate(candidates):  # 8
                mu, scores = 0.0, []
                whole = fit(rest, theta)  # 10
                for t2 in range(k):  # 11
                    if t2 == t:
                        continue
                    here = fit(rest & (label != t2), theta)  # 15
                    scores.append(here[label == t2].mean())  # 16
                    mu = max(mu, np.abs(here[rest] - whole[rest]).mean())  # 17
                value = np.mean(scores) + weight * mu  # 20
                if value < least:  # 23
                    best, least = number, value
            outer[a, t] = fit(rest, candidates[best])[label == t].mean()  # 25
    nested = outer.mean(axis=1)  # 28
    star = int(np.argmin(nested))  # 31
    values = []
    for theta in candidates:  # 33
        full = fit(np.ones(n, dtype=bool), theta)
        mu, scores = 0.0, []
        for t in range(k):
            here = fit(label != t, theta)
            scores.append(here[label == t].mean())  # 38
            mu = max(mu, np.abs(here - full).mean())  # 39
        values.append(np.mean(scores) + lambdas[star] * mu)
    return float(nested[star]), float(lambdas[star]), int(np.argmin(values)), outer


@pytest.mark.parametrize(("model", "values"), LEARNERS, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize(("n", "k"), [(24, 3), (25, 4)])
def test_algorithm_one(model: Any, values: dict[str, Any], n: int, k: int) -> None:
    X, y = made(n)
    label = label_of(n, k)
    pairs = [(np.flatnonzero(label != t), np.flatnonzero(label == t)) for t in range(k)]
    found = StabilityCV(model, values, cv=pairs, lambdas=LAMBDAS).fit(X, y)
    candidates = list(ParameterGrid(values))
    error, weight, best, outer = algorithm_one(model, candidates, X, y, label, LAMBDAS)
    np.testing.assert_allclose(found.lambda_results_["outer_error"], outer, rtol=1e-9)
    assert found.nested_error_ == pytest.approx(error, rel=1e-9)
    assert found.lambda_ == weight
    assert found.best_params_ == candidates[best]


def test_ties_take_the_smaller_lambda() -> None:
    X, y = made(20)
    found = StabilityCV(Ridge(), {"alpha": [1.0]}, cv=4, lambdas=[5.0, 0.5, 0.0]).fit(X, y)
    assert found.lambda_ == 0.0
    np.testing.assert_array_equal(found.lambda_results_["lambda"], [0.0, 0.5, 5.0])


def test_threads_and_seeds_do_not_matter() -> None:
    X, y = made(40, 8)
    values = {"tau": [1, 3, 5], "gamma": [0.1, 1.0, 10.0]}
    one = StabilityCV(SparseRidge(), values, random_state=3).fit(X, y)
    two = StabilityCV(SparseRidge(), values, random_state=3, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(
        one.lambda_results_["outer_error"], two.lambda_results_["outer_error"]
    )
    three = StabilityCV(SparseRidge(), values, random_state=4).fit(X, y)
    assert not np.array_equal(one.folds_.label, three.folds_.label)


def test_one_weight_needs_two_folds_only() -> None:
    X, y = made(20)
    found = StabilityCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=2, lambdas=1.0).fit(X, y)
    assert found.lambda_ == 1.0
    label = label_of(20, 2)
    learner = EstimatorLearner(
        Ridge(), [{"alpha": 1.0}, {"alpha": 2.0}], X, y, checked_loss("squared")
    )
    errors = partial_errors(learner, label, 2, nested=False)
    assert np.isfinite(criterion(errors, 1.0)).all()
    with pytest.raises(InputError, match="two folds left out"):
        select(errors)


def test_a_loss_of_that_name_is_not_the_built_in_one() -> None:
    X, y = made(20)
    values = {"tau": [1, 2], "gamma": [1.0]}

    def squared(y: Array, predicted: Array) -> Array:
        return 1000.0 * np.abs(y - predicted)

    options: dict[str, Any] = {"cv": 4, "lambdas": 0.0, "random_state": 0}
    own = StabilityCV(SparseRidge(), values, loss=squared, **options).fit(X, y)
    absolute = StabilityCV(SparseRidge(), values, loss="absolute", **options).fit(X, y)
    np.testing.assert_allclose(
        own.cv_results_["cv_error"], 1000.0 * absolute.cv_results_["cv_error"]
    )


def test_warning_filters_stay_as_they_were() -> None:
    X, y = made(30)
    before = list(warnings.filters)
    values = {"max_depth": [1, 2, 3], "min_samples_split": [2, 5]}
    StabilityCV(DecisionTreeRegressor(), values, n_jobs=4, random_state=0).fit(X, y)
    StabilityCV(SparseRidge(), {"tau": [1], "gamma": [1.0]}, n_jobs=4).fit(X, y)
    assert list(warnings.filters) == before
