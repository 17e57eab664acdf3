"""Stability-regularised nested cross-validation against a plain, line-by-line Algorithm 1."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import ParameterGrid
from sklearn.tree import DecisionTreeRegressor
from support.learners import LAMBDAS, LEARNERS, Array, label_of, made

from sparsecv import SparseRidge, StabilityCV
from sparsecv.errors import InputError
from sparsecv.selection.partial_errors import FoldLosses, checked_lambdas, losses_of
from sparsecv.stability import (
    EstimatorLearner,
    criterion,
    partial_errors,
    recipe,
    select,
)
from sparsecv.stability.algorithm import AlgorithmOne, descent
from sparsecv.stability.losses import checked_loss


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
    assert found.n_fits_ == len(candidates) * (1 + k + k * (k - 1) // 2)


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
        ({"start": {"alpha": "x"}}, "'x'"),
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
    learner = EstimatorLearner(
        Ridge(), [{"alpha": 1.0}, {"alpha": 2.0}], X, y, checked_loss("squared")
    )
    errors = partial_errors(learner, label, 2, nested=False)
    assert np.isfinite(criterion(errors, 1.0)).all()
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
    weighted = StabilityCV(Ridge(), {"alpha": [1.0]}, **options)
    weighted.fit(X, y, sample_weight=np.arange(1.0, 21.0))
    assert weighted.cv_results_["cv_error"][0] != first.cv_results_["cv_error"][0]
    tree = StabilityCV(DecisionTreeRegressor(), {"max_depth": [1]}, **options)
    with pytest.raises(InputError, match="parameters of fit"):
        tree.fit(X, y, check_input=True)


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
    with pytest.raises((NotFittedError, AttributeError)):
        found.predict(X)


# --- coordinate descent over hyperparameters ------------------------------------------------------


def test_coordinate_descent_visits_lines() -> None:
    table = np.add.outer((np.arange(4) - 1.0) ** 2, (np.arange(3) - 2.0) ** 2)
    asked: list[list[int]] = []

    def value(candidates: list[int]) -> Array:
        asked.append(candidates)
        return table.ravel()[candidates]

    best = descent({"a": [0, 1, 2, 3], "b": [0, 1, 2]}, {"a": 2})(value)
    assert np.unravel_index(best, table.shape) == (1, 2)
    assert asked[0] == [6, 7, 8]  # b at a = 2 first: a has a start
    assert asked[1] == [2, 5, 8, 11]
    assert len(asked) == 4  # another round, in which nothing moves


@pytest.mark.parametrize(("model", "values"), LEARNERS[1:], ids=lambda v: type(v).__name__)
def test_coordinate_descent_equals_a_plain_one(model: Any, values: dict[str, Any]) -> None:
    """Algorithm 1 with θ searched by descent: chosen by criteria of the full table."""
    X, y = made(30)
    label = label_of(30, 3)
    down = descent(values, {next(iter(values)): values[next(iter(values))][1]})
    candidates = list(ParameterGrid(values))
    learner = EstimatorLearner(model, candidates, X, y, checked_loss("squared"))
    errors = partial_errors(learner, label, len(candidates))
    losses = FoldLosses(label, len(candidates), lambda tasks: losses_of(learner, tasks), False)
    found = AlgorithmOne(losses, down).select(checked_lambdas(LAMBDAS), every=False)
    assert errors.inner is not None
    assert errors.inner_stability is not None
    for (a, weight), t in itertools.product(enumerate(LAMBDAS), range(3)):
        inner = errors.inner[:, t] + weight * errors.inner_stability[:, t]
        chosen = down(lambda c, inner=inner: inner[c])
        assert found.inner_choice[a, t] == chosen
        assert found.outer[a, t] == pytest.approx(errors.held_out[chosen, t], rel=1e-12)
    outside = errors.cv_error + found.lambda_ * errors.stability
    assert found.theta == down(lambda c: outside[c])
    assert losses.n_fits <= len(candidates) * 7  # kept, so never more than all of them


def test_descent_in_the_estimator() -> None:
    X, y = made(40)
    cart = recipe("cart", 40, 5)
    options: dict[str, Any] = {"search": "coordinate", "start": cart.start, "random_state": 0}
    found = StabilityCV(cart.estimator, cart.param_grid, **options).fit(X, y)
    assert found.n_fits_ < 90 * 16
    assert found.cv_results_["params"][found.best_index_] == found.best_params_
    assert set(found.best_params_) == {"max_depth", "min_samples_split"}
    assert found.lambda_results_["nested_error"].size == 11
    one = StabilityCV(cart.estimator, cart.param_grid, lambdas=0.5, **options).fit(X, y)
    assert one.lambda_ == 0.5
    assert one.nested_error_ is None
