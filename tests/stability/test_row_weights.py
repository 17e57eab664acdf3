"""Weights of rows in stability-regularised selection: whole numbers count as copies of a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.learners import label_of, made

from sparsecv import Constraints, SparseRidge, SparseRidgeCV, StabilityCV

SCALED_RIDGE = make_pipeline(StandardScaler(), Ridge())
CASES: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (SparseRidge(), {"tau": [1, 2, 4], "gamma": [0.1, 5.0]}, {}),
    (SparseRidge(constraints=Constraints(include=[3])), {"tau": [1, 3], "gamma": [5.0]}, {}),
    (SparseRidge(), {"tau": [1, 4]}, {"loss": "absolute"}),
    (SCALED_RIDGE, {"ridge__alpha": [0.1, 50.0]}, {}),
    (Ridge(), {"alpha": [1.0, 50.0], "fit_intercept": [True]}, {}),
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


def test_the_rule_stability_takes_weights() -> None:
    X, y = made(24, 4)
    times = np.random.default_rng(1).integers(1, 4, 24)
    rows = np.repeat(np.arange(24), times)
    model = SparseRidgeCV(cv=4, gammas=[0.1, 5.0], rule="stability", standardize=False)
    one = clone(model).fit(X, y, sample_weight=times, groups=np.arange(24))
    other = clone(model).fit(X[rows], y[rows], groups=np.arange(24)[rows])
    assert (one.tau_, one.gamma_) == (other.tau_, other.gamma_)
    a, b = one._run_.choices["stability"], other._run_.choices["stability"]
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
