"""Coordinate descent over hyperparameters."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import ParameterGrid
from support.learners import LAMBDAS, LEARNERS, Array, label_of, made

from sparsecv import StabilityCV
from sparsecv.selection.partial_errors import FoldLosses, checked_lambdas, losses_of
from sparsecv.stability import EstimatorLearner, partial_errors, recipe
from sparsecv.stability.algorithm import AlgorithmOne, descent
from sparsecv.stability.losses import checked_loss


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
