"""Learners of the stability layer: sparse ridge along paths, losses, estimators of others."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, ParameterGrid, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.fresh import examples
from support.inside import EstimatorLearner, checked_loss, make_folds, make_synthetic
from support.learners import Array, label_of, made
from support.problems import regression
from support.stand_ins import StandIn, real

from sparsecv import Constraints, SparseRidge, StabilityCV
from sparsecv.errors import InputError, UnprovedWarning
from sparsecv.stability import SparseRidgeLearner, largest_tau, partial_errors


@parametrize_with_checks(
    [
        StabilityCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3, lambdas=[0.0, 1.0]),
        StabilityCV(SparseRidge(), {"tau": [1], "gamma": [0.1, 1.0]}),
    ]
)
def test_scikit_learn_compatibility(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("p", [8, 24])
def test_a_grid_of_sparse_ridge_is_fitted_along_paths(p: int) -> None:
    """Up to 20 columns every model is proved, and beyond the final model gets some seconds."""
    X, y, _ = make_synthetic(40, p, 4, 0.7, 0.5, seed=3)
    gammas, taus = [0.1, 10.0], [1, 2, 4, 6]
    grid = {"gamma": gammas, "tau": taus}
    found = StabilityCV(SparseRidge(), grid, random_state=0).fit(X, y)
    solver = "exact" if p == 8 else "heuristic"
    learner = SparseRidgeLearner(X, y, taus, gammas, solver=solver)
    errors = partial_errors(learner, make_folds(5, 40, seed=0).label, 8)
    np.testing.assert_allclose(found.cv_results_["cv_error"], errors.cv_error)
    np.testing.assert_allclose(found.cv_results_["stability"], errors.stability)
    limit = found.best_estimator_.time_limit
    assert limit == (SparseRidge().time_limit if solver == "exact" else 10.0)


def test_missing_values_are_filled_by_training_rows() -> None:
    """As in a pipeline that fills them, of which a clone is fitted to the training rows."""
    X, y = made(30, 4)
    X[[2, 9, 17, 25], [0, 1, 2, 3]] = np.nan
    filled = make_pipeline(SimpleImputer(), SparseRidge())
    names = {"gamma": [0.1, 10.0], "tau": [1, 3]}
    steps = {f"sparseridge__{name}": values for name, values in names.items()}
    found = [
        StabilityCV(estimator, grid, cv=4, random_state=0).fit(X, y)
        for estimator, grid in ((SparseRidge(missing="mean"), names), (filled, steps))
    ]
    for name in ("cv_error", "stability"):
        one, other = (model.cv_results_[name] for model in found)
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_a_size_that_constraints_do_not_allow_is_lowered() -> None:
    X, y = made(20, 4)
    pair = SparseRidge(constraints=Constraints(groups={"pair": [0, 1]}, count="groups"))
    found = StabilityCV(pair, {"gamma": [1.0], "tau": [3, 4]}, cv=4, random_state=0).fit(X, y)
    assert found.cv_results_["cv_error"][0] == found.cv_results_["cv_error"][1]


def test_an_unknown_solver_is_refused() -> None:
    X, y, _ = make_synthetic(20, 4, 2, 0.3, 2.0, seed=0)
    with pytest.raises(InputError, match="solver must be"):
        SparseRidgeLearner(X, y, [1], [1.0], solver="best")


def test_a_final_model_that_cannot_be_proved_ends(stand_in: StandIn) -> None:
    stand_in(REFIT_SECONDS=0.2)
    X, y = regression(60, 80, [1.0] * 10, noise=3.0)
    with pytest.warns(UnprovedWarning, match="time limit"):
        found = StabilityCV(SparseRidge(), {"gamma": [0.01], "tau": [12]}, cv=3).fit(X, y)
    assert found.best_estimator_.status_ == "time limit"
    assert found.best_estimator_.support_.size == 12


def test_columns_that_are_constant_in_a_fold() -> None:
    X, y = made(12, 3)
    X[:, 2] = 0.0
    X[0, 2] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = SparseRidgeLearner(X, y, [1, 3], [1.0]).predictions(np.arange(1, 12), [0, 1])
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("n", "p", "tau"), [(10, 50, 5), (50, 10, 10), (25, 8, 8), (242, 373, 59), (1, 4, 1)]
)
def test_largest_tau(n: int, p: int, tau: int) -> None:
    found = largest_tau(n, p)
    assert found == tau
    assert found * np.log(found) <= n
    assert found == p or (found + 1) * np.log(found + 1) > n


@settings(max_examples=examples(40))
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(6, 20),
    k=st.integers(3, 5),
    intercept=st.booleans(),
    scale=st.booleans(),
)
def test_fast_and_plain_sparse_ridge_agree(
    seed: int, n: int, k: int, intercept: bool, scale: bool
) -> None:
    """The paths and clones of the estimator, one fit each, choose alike."""
    X, y = made(n, 5, seed)
    X = X * np.geomspace(1.0, 30.0, 5) + 3.0
    values = {"gamma": [0.3, 30.0], "tau": [1, 2, 4]}
    label, options = label_of(n, k, seed), {"fit_intercept": intercept, "standardize": scale}
    plain = EstimatorLearner(
        SparseRidge(**options), list(ParameterGrid(values)), X, y, checked_loss("squared")
    )
    fast = SparseRidgeLearner(X, y, values["tau"], values["gamma"], **options)
    a, b = partial_errors(plain, label, 6), partial_errors(fast, label, 6)
    for name in ("held_out", "stability", "inner", "inner_stability", "trained", "without"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-6, atol=1e-9)
    every = fast.predictions(np.arange(n - 2), range(6))
    np.testing.assert_allclose(fast.predictions(np.arange(n - 2), [4, 1]), every[[4, 1]], rtol=1e-9)


def test_the_estimators_own_backend_is_used(stand_in: StandIn) -> None:
    X, y = made(20, 3)
    calls = []
    native = real("backends")["native"]

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return native(*args, **kwargs)

    stand_in(backends={**real("backends"), "highs": counted})
    values = {"tau": [1, 2], "gamma": [1.0]}
    options: dict[str, Any] = {"cv": 4, "lambdas": [0.0, 1.0], "random_state": 0}
    own = StabilityCV(SparseRidge(backend="highs"), values, **options).fit(X, y)
    assert len(calls) == 2 * (1 + 4 + 6) + 1
    path = StabilityCV(SparseRidge(), values, **options).fit(X, y)
    np.testing.assert_allclose(
        own.lambda_results_["outer_error"], path.lambda_results_["outer_error"], rtol=1e-9
    )


@pytest.mark.parametrize("loss", ["zero-one", "log", "hinge"])
def test_classification(loss: str) -> None:
    X, y = make_classification(60, 6, random_state=0)
    labels = np.array(["no", "yes"])[y]
    model = LinearSVC() if loss == "hinge" else LogisticRegression()
    found = StabilityCV(model, {"C": [0.01, 1.0]}, cv=4, loss=loss, random_state=0)
    found.fit(X, labels)
    assert set(found.predict(X)) <= {"no", "yes"}
    assert found.score(X, labels) > 0.7
    assert list(found.classes_) == ["no", "yes"]
    assert found.loss_ == loss
    share = [np.mean(labels[found.folds_.split(j)[1]] == "yes") for j in range(4)]
    assert max(share) - min(share) < 0.15  # stratified
    assert hasattr(found, "predict_proba") == (loss != "hinge")


def test_losses_are_what_they_say() -> None:
    X, y = made(20)
    values = {"alpha": [1.0]}
    options: dict[str, Any] = {"cv": KFold(4), "lambdas": 0.0}
    scores = {"squared": "neg_mean_squared_error", "absolute": "neg_mean_absolute_error"}
    for loss, scoring in scores.items():
        found = StabilityCV(Ridge(), values, loss=loss, **options).fit(X, y)
        expected = -cross_val_score(Ridge(), X, y, cv=KFold(4), scoring=scoring).mean()
        assert found.cv_results_["cv_error"][0] == pytest.approx(expected)

    def fourth(y: Array, predicted: Array) -> Array:
        return (y - predicted) ** 4

    found = StabilityCV(Ridge(), values, loss=fourth, **options).fit(X, y)
    assert found.loss_ == "fourth"
    with pytest.raises(InputError, match="one number per row"):
        StabilityCV(Ridge(), values, loss=lambda y, f: 1.0, **options).fit(X, y)


def test_stratified_folds_know_their_groups() -> None:
    X, y = make_classification(60, 4, random_state=0)
    groups = np.repeat(np.arange(20), 3)
    found = StabilityCV(LogisticRegression(), {"C": [1.0]}, cv=3).fit(X, y, groups=groups)
    assert np.array_equal(found.folds_.groups, groups)
    assert all(np.unique(found.folds_.label[groups == g]).size == 1 for g in range(20))
