"""Stability-regularised nested cross-validation against a plain, line-by-line Algorithm 1."""

from __future__ import annotations

import itertools
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsecv import SparseRidge, SparseRidgeCV, StabilityCV
from sparsecv.cli.main import main
from sparsecv.design.folds import make_folds
from sparsecv.errors import InputError, UnprovedWarning
from sparsecv.solvers import api as backends
from sparsecv.stability import (
    Adaptive,
    EstimatorLearner,
    Grid,
    Recipe,
    SparseRidgeLearner,
    at_weight,
    cart,
    checked_loss,
    descend,
    job,
    largest_tau,
    partial_errors,
    select,
    svm,
    xgboost,
)
from sparsecv.stability.estimator import REFIT_SECONDS
from sparsecv.stability.learners import ProjectedSizes, learner_of
from sparsecv.tables.synthetic import make_synthetic

Array = NDArray[np.float64]
LAMBDAS = (0.0, 0.1, 1.0, 10.0)


def made(n: int = 40, p: int = 5, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X[:, 0] - 2.0 * X[:, 1] + rng.standard_normal(n)


def label_of(n: int, k: int, seed: int = 0) -> NDArray[np.intp]:
    label = np.arange(n) % k
    np.random.default_rng(seed).shuffle(label)
    return label


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


LEARNERS = [
    (Ridge(), {"alpha": [0.01, 1.0, 10.0, 100.0]}),
    (DecisionTreeRegressor(random_state=0), {"max_depth": [1, 2, 4], "min_samples_split": [2, 6]}),
    (SparseRidge(), {"tau": [1, 2, 3, 5], "gamma": [0.1, 5.0]}),
]


@pytest.mark.parametrize(("model", "values"), LEARNERS, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize(("n", "k"), [(24, 3), (25, 4)])
def test_algorithm_one(model: Any, values: dict[str, Any], n: int, k: int) -> None:
    X, y = made(n)
    label = label_of(n, k)
    pairs = [(np.flatnonzero(label != t), np.flatnonzero(label == t)) for t in range(k)]
    found = StabilityCV(model, values, cv=pairs, lambdas=LAMBDAS).fit(X, y)
    names = list(values)
    candidates = [
        dict(zip(names, point, strict=True)) for point in itertools.product(*values.values())
    ]
    error, weight, best, outer = algorithm_one(model, candidates, X, y, label, LAMBDAS)
    np.testing.assert_allclose(found.lambda_results_["outer_error"], outer, rtol=1e-9)
    assert found.nested_error_ == pytest.approx(error, rel=1e-9)
    assert found.lambda_ == weight
    assert found.best_params_ == candidates[best]
    assert found.n_fits_ == len(candidates) * (1 + k + k * (k - 1) // 2)


def test_nothing_inside_an_outer_fold_has_seen_it() -> None:
    """Perturbing the outer fold's rows changes no inner score, stability or choice."""
    X, y = made(30)
    label = label_of(30, 3)
    for model, values in LEARNERS:
        grid = Grid(values)

        def errors(
            X: Array, y: Array, model: Any = model, values: Any = values, grid: Grid = grid
        ) -> Any:
            if isinstance(model, SparseRidge):
                learner: Any = SparseRidgeLearner(
                    X, y, values["tau"], values["gamma"], solver="heuristic"
                )
            else:
                learner = EstimatorLearner(model, grid, X, y, checked_loss("squared"))
            return partial_errors(learner, label, grid.size)

        before = errors(X, y)
        for t in range(3):
            X2, y2 = X.copy(), y.copy()
            y2[label == t] += 100.0 * np.arange(1, 1 + (label == t).sum())
            X2[label == t] *= -3.0
            after = errors(X2, y2)
            np.testing.assert_array_equal(after.inner[:, t], before.inner[:, t])
            np.testing.assert_array_equal(after.inner_stability[:, t], before.inner_stability[:, t])
            assert not np.array_equal(after.held_out[:, t], before.held_out[:, t])


def test_lambda_zero_is_ordinary_nested_cross_validation() -> None:
    X, y = made(30)
    values = {"alpha": [0.01, 1.0, 10.0, 100.0]}
    folds = KFold(3, shuffle=True, random_state=1)
    found = StabilityCV(Ridge(), values, cv=folds, lambdas=[0.0, 1.0]).fit(X, y)
    scoring = "neg_mean_squared_error"
    pairs = list(folds.split(X))
    expected = []
    for t, (train, test) in enumerate(pairs):
        inner = []
        for other, (_, held) in enumerate(pairs):
            if other != t:
                inside = np.setdiff1d(train, held)
                place = {row: i for i, row in enumerate(train)}
                inner.append(([place[r] for r in inside], [place[r] for r in held]))
        chosen = GridSearchCV(Ridge(), values, cv=inner, scoring=scoring).fit(X[train], y[train])
        expected.append(np.mean((y[test] - chosen.predict(X[test])) ** 2))
    assert found.lambda_results_["nested_error"][0] == pytest.approx(np.mean(expected), rel=1e-12)
    plain = GridSearchCV(Ridge(), values, cv=pairs, scoring=scoring).fit(X, y)
    assert found.params_without_stability_ == plain.best_params_
    alone = StabilityCV(Ridge(), values, cv=folds, lambdas=0.0).fit(X, y)
    assert alone.best_params_ == plain.best_params_
    assert alone.nested_error_ is None
    np.testing.assert_allclose(
        alone.cv_results_["cv_error"], -plain.cv_results_["mean_test_score"], rtol=1e-12
    )


def test_large_weights_choose_stable_models() -> None:
    X, y = made(30)
    values = {"alpha": [1e-3, 1.0, 1e6]}
    found = StabilityCV(Ridge(), values, cv=5, lambdas=[1e6], random_state=0).fit(X, y)
    assert found.best_index_ == int(np.argmin(found.cv_results_["stability"]))
    results = found.cv_results_
    np.testing.assert_allclose(
        results["criterion"], results["cv_error"] + 1e6 * results["stability"]
    )


def test_ties_take_the_smaller_lambda() -> None:
    X, y = made(20)
    found = StabilityCV(Ridge(), {"alpha": [1.0]}, cv=4, lambdas=[5.0, 0.5, 0.0]).fit(X, y)
    assert found.lambda_ == 0.0
    np.testing.assert_array_equal(found.lambda_results_["lambda"], [0.0, 0.5, 5.0])


# coordinate descent


def test_coordinate_descent_visits_lines() -> None:
    grid = Grid({"a": [0, 1, 2, 3], "b": [0, 1, 2]}, {"a": 2})
    table = np.add.outer((np.arange(4) - 1.0) ** 2, (np.arange(3) - 2.0) ** 2)
    asked: list[list[int]] = []

    def value(candidates: list[int]) -> Array:
        asked.append(candidates)
        return table.ravel()[candidates]

    assert grid.params(descend(grid, value)) == {"a": 1, "b": 2}
    assert asked[0] == [6, 7, 8]  # b at a = 2 first: a has a start
    assert asked[1] == [2, 5, 8, 11]
    assert len(asked) == 4  # another round, in which nothing moves


@pytest.mark.parametrize(("model", "values"), LEARNERS[1:], ids=lambda v: type(v).__name__)
def test_coordinate_descent_equals_a_plain_one(model: Any, values: dict[str, Any]) -> None:
    """Algorithm 1 with θ searched by descent: chosen by criteria of the full table."""
    X, y = made(30)
    label = label_of(30, 3)
    grid = Grid(values, {next(iter(values)): values[next(iter(values))][1]})
    learner = EstimatorLearner(model, grid, X, y, checked_loss("squared"))
    errors = partial_errors(learner, label, grid.size)
    search = Adaptive(learner, label, grid)
    found = search.select(LAMBDAS)
    assert errors.inner is not None
    assert errors.inner_stability is not None
    for (a, weight), t in itertools.product(enumerate(LAMBDAS), range(3)):
        inner = errors.inner[:, t] + weight * errors.inner_stability[:, t]
        chosen = descend(grid, lambda c, inner=inner: inner[c])
        assert found.inner_choice[a, t] == chosen
        assert found.outer[a, t] == pytest.approx(errors.held_out[chosen, t], rel=1e-12)
    outside = errors.cv_error + found.lambda_ * errors.stability
    assert found.theta == descend(grid, lambda c: outside[c])
    assert search.n_fits <= grid.size * 7  # kept, so never more than all of them


def test_descent_in_the_estimator() -> None:
    X, y = made(40)
    recipe = cart()
    options: dict[str, Any] = {"search": "coordinate", "start": recipe.start, "random_state": 0}
    found = StabilityCV(recipe.estimator, recipe.param_grid, **options).fit(X, y)
    assert found.n_fits_ < 90 * 16
    assert found.cv_results_["params"][found.best_index_] == found.best_params_
    assert set(found.best_params_) == {"max_depth", "min_samples_split"}
    assert found.lambda_results_["nested_error"].size == 11
    one = StabilityCV(recipe.estimator, recipe.param_grid, lambdas=0.5, **options).fit(X, y)
    assert one.lambda_ == 0.5
    assert one.nested_error_ is None


# sparse ridge along paths


@pytest.mark.parametrize("shape", [(30, 6), (12, 15)])
@pytest.mark.parametrize(("intercept", "scale"), [(True, True), (False, True), (True, False)])
def test_the_path_is_what_the_estimator_fits(
    shape: tuple[int, int], intercept: bool, scale: bool
) -> None:
    X, y = made(*shape)
    X = X * np.geomspace(1.0, 30.0, shape[1]) + 3.0
    taus, gammas = [1, 2, 4], [0.5, 20.0]
    path = SparseRidgeLearner(
        X, y, taus, gammas, solver="exact", fit_intercept=intercept, standardize=scale
    )
    training = np.arange(0, shape[0] - 3)
    predicted = path.predictions(training, range(path.size))
    for c, (gamma, tau) in enumerate(itertools.product(gammas, taus)):
        model = SparseRidge(tau, gamma, fit_intercept=intercept, standardize=scale)
        model.fit(X[training], y[training])
        np.testing.assert_allclose(predicted[c], model.predict(X), rtol=1e-7, atol=1e-9)
    some = path.predictions(training, [4, 1])
    np.testing.assert_allclose(some, predicted[[4, 1]], rtol=1e-9)


def test_heuristic_and_rounded_paths_are_near_the_optimum() -> None:
    X, y = made(40, 12)
    training = np.arange(30)
    options: dict[str, Any] = {"taus": range(1, 9), "gammas": [0.1, 10.0]}
    errors = {
        solver: SparseRidgeLearner(X, y, solver=solver, **options)(training, range(16))
        for solver in ("exact", "heuristic", "rounding")
    }
    inside = {name: values[:, training].sum(axis=1) for name, values in errors.items()}
    assert (inside["heuristic"] <= inside["exact"] * 1.01).all()
    assert (inside["rounding"] <= inside["exact"] * 1.3).all()


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


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), n=st.integers(6, 20), k=st.integers(3, 5))
def test_fast_and_plain_sparse_ridge_agree(seed: int, n: int, k: int) -> None:
    """The paths and clones of the estimator, one fit each, choose alike."""
    X, y = made(n, 3, seed)
    values = {"gamma": [0.3, 30.0], "tau": [1, 2, 3]}
    label = label_of(n, k, seed)
    grid = Grid(values)
    plain = EstimatorLearner(SparseRidge(), grid, X, y, checked_loss("squared"))
    fast = SparseRidgeLearner(X, y, values["tau"], values["gamma"])
    a, b = partial_errors(plain, label, 6), partial_errors(fast, label, 6)
    for name in ("held_out", "stability", "inner", "inner_stability", "trained", "without"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_projections_of_all_sizes_at_once_are_those_of_each(seed: int) -> None:
    X, y = made(18, 3, seed)
    X[:, 2] = 0.0
    X[4:8, 2] = [1.0, 2.0, 0.5, 3.0]  # constant where their fold is left out
    label = (np.arange(18) // 4).clip(max=3)
    model = SparseRidgeCV(rule="projected", gammas=[0.1, 10.0], cv=3)
    grid, loss = Grid({"taus": [2, 1]}), checked_loss("squared")
    fast = learner_of(model, grid, X, y, loss, {}, "auto")
    assert isinstance(fast, ProjectedSizes)
    assert not isinstance(
        learner_of(clone(model).set_params(rule="minimum"), grid, X, y, loss, {}, "auto"),
        ProjectedSizes,
    )
    a = partial_errors(EstimatorLearner(model, grid, X, y, loss), label, 2)
    b = partial_errors(fast, label, 2)
    for name in ("held_out", "stability", "inner", "inner_stability", "trained", "without"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-9, atol=1e-12)
    three = learner_of(model, Grid({"taus": [3, 2]}), X, y, loss, {}, "auto")
    losses = three(np.flatnonzero(label != 1), [0, 1])  # that fold alone has a third column
    np.testing.assert_array_equal(losses[0], losses[1])


def test_sizes_chosen_by_stability() -> None:
    X, y = made(30, 4)
    model = SparseRidgeCV(rule="projected", gammas=[0.1, 10.0], random_state=1)
    found = StabilityCV(model, {"taus": [1, 2, 4]}, cv=3, random_state=0).fit(X, y)
    tau = found.best_params_["taus"]
    assert found.best_estimator_.tau_ == tau
    own = clone(model).fit(X, y).at_size(tau)
    np.testing.assert_allclose(found.predict(X), own.predict(X), rtol=1e-9)


def test_the_estimators_own_backend_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = made(20, 3)
    calls = []
    native = backends._BACKENDS["native"]

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return native(*args, **kwargs)

    monkeypatch.setitem(backends._BACKENDS, "highs", counted)
    values = {"tau": [1, 2], "gamma": [1.0]}
    options: dict[str, Any] = {"cv": 4, "lambdas": [0.0, 1.0], "random_state": 0}
    own = StabilityCV(SparseRidge(backend="highs"), values, **options).fit(X, y)
    assert len(calls) == 2 * (1 + 4 + 6) + 1
    path = StabilityCV(SparseRidge(), values, **options).fit(X, y)
    np.testing.assert_allclose(
        own.lambda_results_["outer_error"], path.lambda_results_["outer_error"], rtol=1e-9
    )


# losses and learners


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


def test_ready_made_learners() -> None:
    X, y = made(40)
    for recipe in (cart(), svm(p=5, n=40)):
        found = StabilityCV(
            recipe.estimator,
            {name: values[::3] for name, values in recipe.param_grid.items()},
            cv=3,
            lambdas=[0.0, 1.0],
        ).fit(X, y)
        assert np.isfinite(found.predict(X)).all()
    assert isinstance(cart(classification=True).estimator, DecisionTreeClassifier)
    assert list(svm(classification=True).param_grid) == ["svc__C"]
    assert cart().param_grid["max_depth"] == list(range(1, 11))
    assert cart().param_grid["min_samples_split"] == list(range(2, 11))


def test_xgboost() -> None:
    pytest.importorskip("xgboost", reason="the extra trees is not installed")
    recipe = xgboost()
    assert len(recipe.param_grid["subsample"]) == 100
    X, y = made(30)
    small = {"max_depth": [1, 3], "subsample": [0.5, 1.0]}
    found = StabilityCV(recipe.estimator.set_params(n_estimators=5), small, cv=3, lambdas=[0, 1])
    assert np.isfinite(found.fit(X, y).predict(X)).all()


# plumbing


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


def test_rescaled_refit() -> None:
    X, y = made(40)
    values = {"tau": [2], "gamma": [4.0]}
    found = StabilityCV(SparseRidge(), values, cv=5, lambdas=0.0, rescale="gamma").fit(X, y)
    assert found.best_params_["gamma"] == 4.0
    assert found.best_estimator_.gamma == pytest.approx(4.0 * 40 / 32)
    plain = StabilityCV(SparseRidge(), values, cv=5, lambdas=0.0).fit(X, y)
    assert plain.best_estimator_.gamma == 4.0
    none = StabilityCV(SparseRidge(), values, cv=5, lambdas=0.0, refit=False).fit(X, y)
    assert not hasattr(none, "best_estimator_")


@pytest.mark.parametrize("search", ["grid", "coordinate"])
def test_a_checkpoint_is_gone_on_from(tmp_path: Path, search: str) -> None:
    X, y = made(30)
    values = {"max_depth": [1, 2, 3], "min_samples_split": [2, 5]}
    calls = []

    class Counted(DecisionTreeRegressor):
        def fit(self, *args: Any, **kwargs: Any) -> Any:
            calls.append(1)
            if len(calls) == limit:
                raise KeyboardInterrupt
            return super().fit(*args, **kwargs)

    model = Counted(random_state=0)
    options: dict[str, Any] = {"cv": 3, "lambdas": [0.0, 1.0], "search": search}
    options["random_state"] = 0
    limit = 10**9
    whole = StabilityCV(model, values, **options).fit(X, y)
    total = len(calls)
    calls.clear()
    limit = 12
    with pytest.raises(KeyboardInterrupt):
        StabilityCV(model, values, checkpoint=tmp_path, **options).fit(X, y)
    limit = 10**9
    calls.clear()
    again = StabilityCV(model, values, checkpoint=tmp_path, **options).fit(X, y)
    assert len(calls) == total - 11
    np.testing.assert_array_equal(
        again.lambda_results_["outer_error"], whole.lambda_results_["outer_error"]
    )
    for file in tmp_path.glob("*.json"):  # cut off while they were written
        file.write_bytes(b"")
    StabilityCV(model, values, checkpoint=tmp_path, **options).fit(X, y)
    calls.clear()
    StabilityCV(model, values, checkpoint=tmp_path, **options).fit(X, 2.0 * y)  # other data
    assert len(calls) == total


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lambdas": [-1.0]}, "lambdas"),
        ({"lambdas": []}, "lambdas"),
        ({"lambdas": ["x"]}, "lambdas"),
        ({"loss": "cubed"}, "loss"),
        ({"search": "random"}, "search"),
        ({"param_grid": {}}, "param_grid"),
        ({"param_grid": {"alpha": []}}, "param_grid"),
        ({"param_grid": {"beta": [1]}}, "'beta'"),
        ({"start": {"beta": 1}}, "'beta'"),
        ({"rescale": "gamma"}, "'gamma'"),
        ({"cv": 2}, "3 folds"),
        ({"checkpoint": "."}, "random_state"),
        ({"cv": [(np.arange(10), np.arange(10, 20))]}, "exactly once"),
        ({"loss": "hinge"}, "decision_function|two classes"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str) -> None:
    X, y = made(20)
    given = {"param_grid": {"alpha": [1.0, 2.0]}} | options
    with pytest.raises((InputError, AttributeError), match=words):
        StabilityCV(Ridge(), **given).fit(X, y)


def test_one_weight_needs_two_folds_only() -> None:
    X, y = made(20)
    found = StabilityCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=2, lambdas=1.0).fit(X, y)
    assert found.lambda_ == 1.0
    label = label_of(20, 2)
    learner = EstimatorLearner(Ridge(), Grid({"alpha": [1.0, 2.0]}), X, y, checked_loss("squared"))
    errors = partial_errors(learner, label, 2, nested=False)
    assert at_weight(errors, 1.0) in (0, 1)
    with pytest.raises(InputError, match="two folds left out"):
        select(errors)


class Shifted(Ridge):
    """Its repr is the same whatever it hides."""

    def __init__(self, alpha: float = 1.0, hidden: Any = None) -> None:
        super().__init__(alpha=alpha)
        self.hidden = hidden

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return "Shifted()"

    def predict(self, X: Any) -> Any:
        return super().predict(X) + self.hidden


def test_checkpoints_tell_estimators_apart(tmp_path: Path) -> None:
    X, y = made(20)
    options: dict[str, Any] = {"cv": 4, "lambdas": 0.0, "random_state": 0, "checkpoint": tmp_path}
    first = StabilityCV(Shifted(hidden=0.0), {"alpha": [1.0]}, **options).fit(X, y)
    second = StabilityCV(Shifted(hidden=5.0), {"alpha": [1.0]}, **options).fit(X, y)
    assert second.cv_results_["cv_error"][0] > first.cv_results_["cv_error"][0] + 10.0
    with pytest.raises(InputError, match="loss by its name"):
        StabilityCV(Ridge(), {"alpha": [1.0]}, loss=squared, **options).fit(X, y)
    with pytest.raises(InputError, match="parameters of fit"):
        StabilityCV(Ridge(), {"alpha": [1.0]}, **options).fit(X, y, sample_weight=np.ones(20))


def test_weights_of_rows_go_with_their_rows() -> None:
    X, y = made(20)
    pairs = list(KFold(4).split(X))
    weight = np.random.default_rng(0).uniform(0.1, 2.0, size=20)
    found = StabilityCV(Ridge(), {"alpha": [1.0]}, cv=pairs, lambdas=0.0)
    found.fit(X, y, sample_weight=weight)
    parts = []
    for train, test in pairs:
        model = Ridge().fit(X[train], y[train], sample_weight=weight[train])
        parts.append(np.mean((y[test] - model.predict(X[test])) ** 2))
    assert found.cv_results_["cv_error"][0] == pytest.approx(np.mean(parts))


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


def test_losses_that_overflow_are_refused() -> None:
    X, y = made(20)
    with pytest.raises(InputError, match="not finite"):
        StabilityCV(Ridge(), {"alpha": [1.0]}, loss=lambda y, f: y * np.inf).fit(X, y)


def test_warning_filters_stay_as_they_were() -> None:
    X, y = made(30)
    before = list(warnings.filters)
    values = {"max_depth": [1, 2, 3], "min_samples_split": [2, 5]}
    StabilityCV(DecisionTreeRegressor(), values, n_jobs=4, random_state=0).fit(X, y)
    StabilityCV(SparseRidge(), {"tau": [1], "gamma": [1.0]}, n_jobs=4).fit(X, y)
    assert list(warnings.filters) == before


def test_a_fit_without_refit_forgets_the_model_before() -> None:
    X, y = made(20)
    found = StabilityCV(Ridge(), {"alpha": [1.0]}, cv=4, lambdas=0.0).fit(X, y)
    found.set_params(refit=False).fit(X, y)
    with pytest.raises(NotFittedError):
        found.predict(X)


# the command line


def table_of(path: Path, labels: bool = False) -> Path:
    X, y = made(40, 4)
    y = (y > 0).astype(float) if labels else y
    head = ",".join([*(f"x{j}" for j in range(4)), "y"])
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=head, comments="")
    return path


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    table, file, picture = table_of(tmp_path / "t.csv"), tmp_path / "r.json", tmp_path / "p.png"
    arguments = ["stability", str(table), "--json", str(file), "--seed", "3", "--folds", "4"]
    grid = ["--gamma", "0.1:10:3", "--tau", "1:3", "--lambda", "0.1,1", "--test", "0.25"]
    assert main([*arguments, *grid, "--plot", str(picture), "--solver", "exact"]) == 0
    printed = capsys.readouterr().out
    found = json.loads(file.read_text())
    assert picture.stat().st_size > 5000
    assert f"{found['nested_error']:.6g}" in printed
    assert [line["lambda"] for line in found["lambdas"]] == [0.0, 0.1, 1.0]
    assert (found["n_train"], found["n_test"]) == (30, 10)
    assert len(found["candidates"]) == 9
    X, y = made(40, 4)
    order = np.random.default_rng(3).permutation(40)
    rows = np.sort(order[10:])
    values = {"gamma": np.geomspace(0.1, 10.0, 3).tolist(), "tau": [1, 2, 3]}
    same = StabilityCV(SparseRidge(), values, cv=4, lambdas=[0.0, 0.1, 1.0], random_state=3)
    same.fit(X[rows], y[rows])
    assert found["best_params"] == pytest.approx(same.best_params_)
    assert found["nested_error"] == pytest.approx(same.nested_error_)
    held = np.sort(order[:10])
    error = np.mean((y[held] - same.predict(X[held])) ** 2)
    assert found["test_error"] == pytest.approx(error)


@pytest.mark.parametrize(
    ("learner", "classify"),
    [("projected", False), *itertools.product(["cart", "svm", "xgboost"], [False, True])],
)
def test_learners_on_the_command_line(
    tmp_path: Path, learner: str, classify: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if learner == "xgboost":
        pytest.importorskip("xgboost", reason="the extra trees is not installed")
        import xgboost as xgb

        kind = xgb.XGBClassifier if classify else xgb.XGBRegressor
        small = Recipe(kind(n_estimators=3, n_jobs=1), {"max_depth": [1, 2], "subsample": [1.0]})
        monkeypatch.setattr(job, "xgboost", lambda *_: small)
    table, file = table_of(tmp_path / "t.csv", classify), tmp_path / "r.json"
    options = ["--learner", learner, "--folds", "3", "--lambda", "1", "--test", "0.2", "--quiet"]
    options += ["--classify"] if classify else []
    assert main(["stability", str(table), *options, "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert found["loss"] == ("zero-one" if classify else "squared")
    assert found["test_error"] >= 0.0
    assert found["search"] == ("coordinate" if learner in ("cart", "xgboost") else "grid")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--learner", "lasso"], "--learner"),
        (["--learner", "cart", "--tau", "2"], "--tau"),
        (["--learner", "cart", "--plot", "p.png"], "--plot"),
        (["--gamma", "auto"], "--gamma auto"),
        (["--lambda", "x"], "--lambda"),
        (["--lambda", "-1"], "--lambda"),
        (["--lambda", "1:2"], "--lambda"),
        (["--test", "1"], "--test"),
        (["--classify"], "sparse-ridge|labels"),
        (["--learner", "projected", "--solver", "rounding"], "solver"),
        (["--learner", "cart", "--classify"], "--classify"),
        (["--loss", "cubed"], "loss"),
        (["--search", "x"], "search"),
        (["--folds", "1"], "folds"),
        (["--tau", "9"], "tau"),
        (["--jobs", "0"], "--jobs"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_bad_commands(
    tmp_path: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stability", str(table_of(tmp_path / "t.csv")), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sparsecv: error: ")
    assert err.count("\n") == 1
    assert re.search(words, err)


@parametrize_with_checks(
    [
        StabilityCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3, lambdas=[0.0, 1.0]),
        StabilityCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3, lambdas=[0.0, 1.0]),
        StabilityCV(SparseRidge(), {"tau": [1], "gamma": [0.1, 1.0]}, cv=3, lambdas=[0.0, 1.0]),
    ]
)
def test_scikit_learn_compatibility(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("solver", ["exact", "heuristic", "rounding"])
def test_the_solver_of_sparse_ridge(solver: str) -> None:
    made = make_synthetic(40, 8, 4, 0.7, 0.5, seed=3)
    gammas, taus = [0.1, 10.0], [1, 2, 4, 6]
    found = StabilityCV(
        SparseRidge(), {"gamma": gammas, "tau": taus}, solver=solver, random_state=0
    ).fit(made.X, made.y)
    learner = SparseRidgeLearner(made.X, made.y, taus, gammas, solver=solver)
    errors = partial_errors(learner, make_folds(5, 40, seed=0).label, 8)
    np.testing.assert_allclose(found.cv_results_["cv_error"], errors.cv_error)
    np.testing.assert_allclose(found.cv_results_["stability"], errors.stability)
    limit = found.best_estimator_.time_limit
    assert limit is None if solver == "exact" else limit == REFIT_SECONDS


def test_a_final_model_that_cannot_be_proved_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsecv.stability.estimator.REFIT_SECONDS", 0.2)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 80))
    y = X[:, :10].sum(axis=1) + 3.0 * rng.standard_normal(60)
    with pytest.warns(UnprovedWarning, match="time limit"):
        found = StabilityCV(SparseRidge(), {"gamma": [0.01], "tau": [12]}, cv=3).fit(X, y)
    assert found.best_estimator_.status_ == "time limit"
    assert found.best_estimator_.support_.size == 12


def test_the_solver_belongs_to_sparse_ridge() -> None:
    made = make_synthetic(20, 4, 2, 0.3, 2.0, seed=0)
    grid = {"gamma": [1.0, 10.0], "tau": [1, 2]}
    with pytest.raises(InputError, match="solver must be"):
        StabilityCV(SparseRidge(), grid, solver="best").fit(made.X, made.y)
    for search in (
        StabilityCV(Ridge(), {"alpha": [1.0, 2.0]}, solver="exact"),
        StabilityCV(SparseRidge(backend="highs"), grid, solver="exact"),
        StabilityCV(SparseRidge(), grid, loss="absolute", solver="heuristic"),
    ):
        with pytest.raises(InputError, match="solver belongs to"):
            search.fit(made.X, made.y)
