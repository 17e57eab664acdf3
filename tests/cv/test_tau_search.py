"""Algorithm 1: every interval holds the truth, and the τ it returns is the best one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.folds import brute_force, inside
from support.fresh import examples
from support.problems import ugly_problem

from sparsecv.cv.engine import cross_validate
from sparsecv.cv.settings import Settings
from sparsecv.design.design import Protocol, Summary, make_design
from sparsecv.design.fold_data import MomentFolds, RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.design.moments import fold_moments
from sparsecv.errors import InputError
from sparsecv.tables.row_source import ArraySource
from sparsecv.tables.synthetic import make_synthetic


def small_folds(seed: int) -> tuple[RowFolds, float]:
    rng = np.random.default_rng(seed)
    problem = ugly_problem(seed, 6)
    X, y = problem.rows[:, : problem.p], problem.rows[:, problem.p]
    X, y = np.vstack([X, rng.normal(size=(4, problem.p))]), np.append(y, rng.normal(size=4))
    X = X / np.maximum(np.abs(X).max(axis=0), 1e-9)  # scaled as the design would
    if rng.random() < 0.3:
        X = X[:5]
        y = y[:5]  # more columns than training rows
    refit = bool(rng.random() < 0.5)
    if refit:
        X, y = X - X.mean(axis=0), y - y.mean()
    cv = "loo" if rng.random() < 0.5 else int(rng.integers(2, y.size))
    return RowFolds(X, y, make_folds(cv, y.size, seed=seed), refit), 10.0 ** rng.uniform(-4, 4)


def truth_of(data: RowFolds, gamma: float, taus: np.ndarray) -> object:
    pairs = [data.folds.split(j) for j in range(data.folds.k)]
    return brute_force(data.X, data.y, pairs, [gamma], taus, data.refit_intercept)


@pytest.mark.slow
@settings(max_examples=examples(180))
@given(st.integers(0, 2**31), st.sampled_from(["best", "paper"]))
def test_bounds_hold_the_truth(seed: int, bounds: str) -> None:
    data, gamma = small_folds(seed)
    taus = np.arange(1, data.p + 1)
    truth = truth_of(data, gamma, taus)
    result = cross_validate(data, [gamma], taus, Settings("bounds", bounds=bounds))
    low, high = result.table("lower"), result.table("upper")
    assert inside(low, high, truth, 1e-6).all()
    assert result.by_gamma[0].n_mio == 0


@pytest.mark.slow
@settings(max_examples=examples(120))
@given(
    st.integers(0, 2**31),
    st.sampled_from(["best", "paper"]),
    st.sampled_from([0.0, 0.01, 0.2]),
    st.sampled_from([None, 0, 2]),
)
@example(263149217, "best", 0.2, None)  # an open τ of lower estimate than the one found
def test_search_finds_the_best_tau(seed: int, bounds: str, tol: float, most: int | None) -> None:
    data, gamma = small_folds(seed)
    taus = np.arange(1, data.p + 1)
    truth = truth_of(data, gamma, taus)
    result = cross_validate(
        data, [gamma], taus, Settings("search", bounds=bounds, tol=tol, mio_limit=most)
    )
    one, best = result.by_gamma[0], result.best()
    assert inside(result.table("lower"), result.table("upper"), truth, 1e-6).all()
    rounding = (1e-6 + 10 * truth.slack.max()) * truth.size**2
    least = float(truth.high.min())
    assert best.lower_bound <= least * (1 + 1e-6) + rounding
    if most is None:
        assert one.status == "optimal"
        assert best.certified
        chosen = float(truth.low[0, best.tau_index])
        assert chosen * (1 - tol) <= least * (1 + 1e-6) + rounding
    else:
        assert one.n_mio <= most


def test_history_only_narrows_and_ends_where_the_result_is() -> None:
    made = make_synthetic(60, 12, 5, 0.7, 1.0, seed=2)
    data = RowFolds(made.X, made.y, make_folds("loo", 60), False)
    taus = np.arange(1, 13)
    for bounds in ("best", "paper"):
        result = cross_validate(data, [0.1], taus, Settings("search", bounds=bounds, tol=0.0))
        one = result.by_gamma[0]
        low, high = np.zeros(12), np.full(12, np.inf)
        solved = 0
        for count, t, least, most in one.history:
            assert count >= solved
            assert least >= low[int(t)] - 1e-12
            assert most <= high[int(t)] + 1e-12
            low[int(t)], high[int(t)], solved = least, most, count
        assert solved == one.n_mio
        np.testing.assert_allclose(low, one.lower, rtol=1e-9)
        np.testing.assert_allclose(high, one.upper, rtol=1e-9)


@pytest.mark.parametrize("folds", ["loo", "size:6", "5"])
def test_our_bounds_need_fewer_problems_than_the_papers(folds: str) -> None:
    made = make_synthetic(80, 14, 5, 0.7, 1.0, seed=1)
    data = RowFolds(made.X, made.y, make_folds(folds, 80), False)
    taus = np.arange(1, 15)
    exact = cross_validate(data, [0.1], taus).by_gamma[0]
    counts = {}
    for bounds in ("best", "paper"):
        result = cross_validate(data, [0.1], taus, Settings("search", bounds=bounds))
        chosen = exact.cv_error[result.best().tau_index]
        assert chosen <= exact.cv_error.min() / 0.99
        counts[bounds] = result.by_gamma[0].n_mio
    assert counts["best"] <= counts["paper"] <= 14 * data.folds.k


@pytest.mark.parametrize("p", [50, 60])
def test_exact_beyond_one_tree_is_the_grids(p: int) -> None:
    """Leave-one-out by the tree of all rows, and one problem per fold and τ, agree."""
    made = make_synthetic(40 if p == 50 else 90, p, 4, 0.5, 2.0, seed=p)
    data = RowFolds(made.X, made.y, make_folds("loo", made.y.size), True)
    taus = np.arange(1, 5)
    exact = cross_validate(data, [20.0], taus, Settings("exact", prove="all"))
    grid = cross_validate(data, [20.0], taus, Settings("grid"))
    assert exact.complete
    assert grid.complete
    np.testing.assert_allclose(exact.by_gamma[0].cv_error, grid.by_gamma[0].cv_error, rtol=1e-7)
    assert exact.by_gamma[0].n_mio < 0.5 * grid.by_gamma[0].n_mio
    search = cross_validate(data, [20.0], taus, Settings("search", tol=1e-9))
    assert search.best().tau == grid.best().tau


def test_little_time_gives_intervals_that_hold() -> None:
    made = make_synthetic(60, 50, 6, 0.8, 1.0, seed=5)
    data = RowFolds(made.X, made.y, make_folds("loo", 60), True)
    taus = np.arange(1, 7)
    exact = cross_validate(data, [5.0], taus, Settings("exact", prove="all")).by_gamma[0]
    for method in ("exact", "search"):
        hurried = cross_validate(data, [5.0], taus, Settings(method, time_limit=0.05))
        one = hurried.by_gamma[0]
        assert (one.lower <= exact.cv_error * (1 + 1e-9)).all()
        assert (one.upper >= exact.cv_error * (1 - 1e-9)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tol": -0.1}, "tol must lie in"),
        ({"tol": 1.0}, "tol must lie in"),
        ({"bounds": "none"}, "bounds must be one of best, paper"),
        ({"mio_limit": -1}, "mio_limit must be a whole number"),
    ],
)
def test_bad_settings_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings("search", **given)  # type: ignore[arg-type]


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
        settings_ = Settings(method, bounds=bounds, time_limit=limit, mio_limit=0)
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
