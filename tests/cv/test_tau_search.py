"""Algorithm 1: every interval holds the truth, and the τ it returns is the best one."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv.cv.engine import cross_validate
from sparsecv.cv.settings import Settings
from sparsecv.design.design import Protocol, Summary, make_design
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.design.moment_folds import MomentFolds
from sparsecv.design.moments import fold_moments
from sparsecv.tables.row_source import ArraySource
from sparsecv.tables.synthetic import make_synthetic


def test_search_on_streamed_moments() -> None:
    """Folds known by their moments only are searched like rows."""
    made = make_synthetic(90, 8, 3, 0.5, 1.0, seed=7)
    folds = make_folds(5, 90, seed=0)
    assert folds.label is not None
    design = make_design(Summary.of(made.X, made.y), Protocol(), [f"x{j}" for j in range(8)])
    source = ArraySource(made.X, made.y, [f"x{j}" for j in range(8)])
    streamed = MomentFolds(fold_moments(source, folds), design, folds)
    rows = RowFolds(*design.apply(made.X, made.y), folds, True)
    taus = np.arange(1, 9)
    exact = cross_validate(rows, [1.0], taus).by_gamma[0]
    for bounds in ("best", "paper"):
        result = cross_validate(streamed, [1.0], taus, Settings("search", bounds=bounds))
        one = result.by_gamma[0]
        assert (one.lower <= exact.cv_error * (1 + 1e-8)).all()
        assert (one.upper >= exact.cv_error * (1 - 1e-8)).all()
        assert exact.cv_error[result.best().tau_index] <= exact.cv_error.min() / 0.99


def test_folds_that_gram_matrices_cannot_tell_apart_are_solved_from_rows() -> None:
    """γ tiny beside the columns: objectives from down-dates are not good enough."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 50)) * 10.0 ** rng.uniform(-1, 1, size=50)
    y = X[:, :2] @ np.ones(2) + 0.01 * rng.normal(size=30)
    data = RowFolds(X, y, make_folds("loo", 30), False)
    taus = np.arange(1, 3)
    exact = cross_validate(data, [1e-3], taus).by_gamma[0]
    grid = cross_validate(data, [1e-3], taus, Settings("grid")).by_gamma[0]
    np.testing.assert_allclose(exact.cv_error, grid.cv_error, rtol=1e-6)
    np.testing.assert_array_less(exact.lower, grid.upper * (1 + 1e-9) + 1e-300)


@pytest.mark.slow
@pytest.mark.parametrize("bounds", ["best", "paper"])
@pytest.mark.parametrize("method", ["search", "bounds"])
def test_intervals_are_finite_whatever_the_time(bounds: str, method: str) -> None:
    """Folds that nobody had time for, or whose ε gives no ellipsoid, get an interval as well."""
    made = make_synthetic(30, 40, 3, 0.5, 1.0, seed=3)
    data = RowFolds(made.X, made.y, make_folds("loo", 30), False)
    taus = np.arange(1, 4)
    for gamma, limit in ((1e-6, None), (1.0, 1e-9)):
        settings_ = Settings(method, bounds=bounds, time_limit=limit)
        one = cross_validate(data, [gamma], taus, settings_).by_gamma[0]
        assert np.isfinite(one.upper).all()
        assert np.isfinite(np.array(one.history)).all()
        assert (one.lower <= one.cv_error).all()
        assert (one.cv_error > 0).all()


def test_a_search_beyond_double_precision_is_not_called_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dataclasses import replace

    from sparsecv.cv import shared_tree
    from sparsecv.solvers import Status, solve

    def imprecise(*arguments: object, **options: object) -> object:
        return replace(solve(*arguments, **options), status=Status.PRECISION)  # type: ignore[arg-type]

    monkeypatch.setattr(shared_tree, "best_support", imprecise)
    made = make_synthetic(30, 8, 3, 0.7, 1.0, seed=1)
    data = RowFolds(made.X, made.y, make_folds(5, 30, seed=0), False)
    result = cross_validate(
        data, [0.1], np.arange(1, 9), Settings("search", bounds="paper", tol=0.0)
    )
    assert result.by_gamma[0].status == "precision limit"
    assert not result.best().certified
    assert (result.by_gamma[0].lower < result.by_gamma[0].upper).any()
