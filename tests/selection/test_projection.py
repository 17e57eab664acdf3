"""Projections of the average onto best subsets: against enumeration and plain folds."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.model_selection import KFold
from support.brute_force import Data, enumerate_all, rounding
from support.fresh import examples
from support.inside import PARTITIONS, RowFolds, RowTable, linear_peers, make_folds
from support.problems import ugly
from support.stand_ins import StandIn, real
from support.studies import averaged_model

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError, UnprovedWarning
from sparsecv.selection.projection import choose_size
from sparsecv.solvers import SparseRidgeProblem, support_path

Array = NDArray[np.float64]
RIDGES = np.array([0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0]) / 100.0


def made(n: int = 24, p: int = 4, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 20.0, p) + 2.0
    return X, X[:, 0] - X[:, 1] / 3.0 + 2.0 * rng.standard_normal(n)


def subset(A: Array, b: Array, gamma: float, size: int) -> Array:
    """Coefficients of the best subset of a size, by trying each."""
    best, least = np.zeros(A.shape[1]), np.inf
    for support in combinations(range(A.shape[1]), size):
        columns = list(support)
        S = A[:, columns]
        coef = np.linalg.solve(S.T @ S + gamma / 2.0 * np.eye(size), S.T @ b)
        value = float(np.sum((b - S @ coef) ** 2) + gamma / 2.0 * coef @ coef)
        if value < least:
            least, best = value, np.zeros(A.shape[1])
            best[columns] = coef
    return best


class Chain(NamedTuple):
    """What the whole chain gives, step by step."""

    distance: Array
    error: Array
    reference: float
    gamma: Array
    tau: int
    coef: Array
    average: Array


def plain_chain(X: Array, y: Array, gammas: Array, partitions: list[Any]) -> Chain:
    """Average and project in every fold and on all rows, without any of the package's code."""
    n, p = X.shape
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)

    def average(A: Array, b: Array, weights: Array) -> Array:
        found = np.zeros(p)
        for g, gamma in enumerate(gammas):
            for t in range(p):
                found += weights[g, t] * subset(A, b, gamma, t + 1)
        return found

    def split(train: Array, test: Array) -> tuple[Array, Array, Array, Array]:
        mean, level = scaled[train].mean(axis=0), y[train].mean()
        return scaled[train] - mean, y[train] - level, scaled[test] - mean, y[test] - level

    def errors(train: Array, test: Array) -> Array:
        A, b, H, t = split(train, test)
        sparse = [[subset(A, b, gamma, s + 1) for s in range(p)] for gamma in gammas]
        return np.array([[np.sum((t - H @ beta) ** 2) for beta in row] for row in sparse])

    steps = np.diff(np.log(gammas))
    stretch = np.append(steps, 0.0) + np.append(0.0, steps)

    def weigh(surface: Array, rows: int) -> Array:
        weights = stretch[:, None] * (surface / surface.min()) ** (-rows / 10.0)
        weights[weights < 1e-4 * weights.max()] = 0.0
        return weights / weights.sum()

    every = [sum(errors(*folds.split(j)) for j in range(folds.k)) for folds in partitions]
    weights = weigh(np.mean(every, axis=0), n)
    ridges = RIDGES * n
    distance, error = np.zeros((2, ridges.size, p + 1))
    reference, folds = 0.0, partitions[0]
    block = folds.label % min(folds.k, 5)
    for j in range(folds.k):
        train, test = folds.split(j)
        mine = block[test[0]]
        rest = [c for c in np.unique(block) if c != mine]
        inner = sum(
            errors(np.flatnonzero((block != mine) & (block != c)), np.flatnonzero(block == c))
            for c in rest
        )
        A, b, H, t = split(train, test)
        beta = average(A, b, weigh(inner, int((block != mine).sum())))
        reference += np.sum((t - H @ beta) ** 2) / n
        for g, ridge in enumerate(RIDGES * n):
            for s in range(p + 1):
                sparse = subset(A, A @ beta, ridge, s)
                distance[g, s] += np.sum((H @ (beta - sparse)) ** 2) / n
                error[g, s] += np.sum((t - H @ sparse) ** 2) / n
    at, sizes = distance.argmin(axis=0), np.arange(p + 1)
    at[0] = at[1]
    least, own = distance.min(axis=0), error[at, sizes]
    # The size 0 comes before all pairs of γ and a larger size.
    pairs = np.append(own[0], every[0].min(axis=0) / n)
    costly = (sizes > pairs.argmin()) & (own > pairs.min())
    costly |= (sizes > 0) & (own > own[0])
    allowed = np.where(costly, np.inf, least)
    shares = np.minimum(0.03, 0.5 * sizes / n)
    near = np.flatnonzero(allowed <= shares * reference)
    s = int(near[0]) if near.size else int(allowed.argmin())
    beta = average(scaled, y - y.mean(), weights)
    coef = subset(scaled, scaled @ beta, ridges[at[s]], s) / X.std(axis=0)
    averaged_model_all = beta / X.std(axis=0)
    return Chain(least, own, reference, ridges[at], s, coef, averaged_model_all)


@pytest.mark.parametrize("cv", [3, "size:6", "loo", KFold(3)])
@pytest.mark.parametrize("seed", [0, 8])  # By 8 the nearest size has more columns and more error.
def test_the_chain_equals_the_one_written_plainly(cv: Any, seed: int) -> None:
    X, y = made(18, 4, seed)
    gammas = np.array([0.5, 4.0, 20.0])
    found = SparseRidgeCV(cv=cv, gammas=gammas, rule="projected").fit(X, y)
    partitions = [make_folds(cv, 18, seed=0, X=X)]
    if cv in (3, "size:6"):
        partitions += [partitions[0].again(0, number) for number in range(1, PARTITIONS)]
    plain = plain_chain(X, y, gammas, partitions)
    sizes = found.path_
    np.testing.assert_allclose(
        sizes["distance"] * found.reference_error_, plain.distance, rtol=1e-7, atol=1e-10
    )
    np.testing.assert_allclose(sizes["cv_error"], plain.error, rtol=1e-7)
    assert np.isnan(sizes["gamma"][0])  # The mean alone has no coefficient for γ.
    np.testing.assert_allclose(sizes["gamma"][1:], plain.gamma[1:])
    assert found.reference_error_ == pytest.approx(plain.reference)
    assert found.tau_ == plain.tau
    np.testing.assert_allclose(found.coef_, plain.coef, rtol=1e-7, atol=1e-10)
    assert found.cv_error_ == pytest.approx(plain.error[plain.tau])
    assert found.certified_
    assert sizes["proved"].all()
    run = found._run_
    average, intercept = averaged_model(run.study, run.choice.projection.average)
    np.testing.assert_allclose(average, plain.average, rtol=1e-7, atol=1e-10)
    assert intercept == pytest.approx(y.mean() - X.mean(axis=0) @ plain.average)


@given(data=ugly(), seed=st.integers(0, 2**16))
@settings(max_examples=examples(60))
def test_ugly_columns(data: Data, seed: int) -> None:
    """Duplicate, dependent, constant and badly scaled columns; predictions of any model."""
    rng = np.random.default_rng(seed)
    p = data.X.shape[1]
    coef = rng.standard_normal(p) * rng.integers(0, 2, p) / np.maximum(1.0, np.abs(data.X).max(0))
    problem = SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=1)
    target = problem.predicting(coef)
    fitted = data.X @ coef
    np.testing.assert_allclose(target.yy, fitted @ fitted, rtol=1e-9, atol=1e-300)
    try:
        path = support_path(target, [data.gamma], np.arange(1, p + 1))
    except ValueError as error:
        if "too small" not in str(error):
            raise
        return
    every = enumerate_all(Data(data.X, fitted, data.gamma))
    for t in range(p):
        value, _ = every[t + 1].of(path.support(0, t))
        room = rounding(every[t + 1].least, float(fitted @ fitted))
        assert value <= every[t + 1].least + 10.0 * room + 1e-300


def test_another_size_without_fitting_again() -> None:
    X, y = made(40, 6)
    whole = SparseRidgeCV(gammas=[1.0, 30.0], rule="projected").fit(X, y)
    before = whole.coef_.copy()
    for t, size in enumerate(whole.path_["tau"]):
        model = whole.at_size(size)
        assert model.tau_ == size == np.count_nonzero(model.coef_) == model.support_.size
        np.testing.assert_equal(whole.path_["gamma"][t], model.gamma_ if size else np.nan)
        assert model.cv_error_ == whole.path_["cv_error"][t]
        if size == 0:
            continue  # The size 0 alone leaves nothing to choose.
        one = SparseRidgeCV(gammas=[1.0, 30.0], rule="projected", taus=[int(size)])
        one.fit(X, y)  # the average is that of all sizes
        assert one.tau_ == size
        np.testing.assert_allclose(one.coef_, model.coef_, rtol=1e-9)
        np.testing.assert_allclose(one.predict(X), model.predict(X))
        np.testing.assert_array_equal(one.surface_["tau"], np.arange(1, 7))
        assert one.alternatives(2)["tau"].unique().tolist() == [size]
        assert one.criteria_["tau"].tolist() == one.path_["tau"].tolist() == [size]
    np.testing.assert_array_equal(whole.coef_, before)
    np.testing.assert_array_equal(whole.at_size(whole.tau_).coef_, before)
    with pytest.raises(InputError, match="size must be one of 0 to 6; got 7"):
        whole.at_size(7)
    with pytest.raises(InputError, match="tau must lie between"):
        SparseRidgeCV(gammas=1.0, rule="projected", taus=[9]).fit(X, y)


def test_choice_of_the_size() -> None:
    distance = np.array([8.0, 4.0, 1.0, 0.5])
    for enough, size in ((10.0, 0), (4.0, 1), (1.5, 2), (0.9, 3), (0.1, 3)):
        assert choose_size(distance, enough) == size
    assert choose_size(np.zeros(3), 0.0) == 0
    allowed = np.array([True, True, True, False])
    assert choose_size(distance, 0.1, allowed) == 2  # No allowed size is near.
    assert choose_size(distance, 0.9, allowed) == 2
    assert choose_size(distance, 1.5, allowed) == 2
    assert choose_size(distance, 0.1, ~allowed) == 3  # the fourth alone is left
    assert choose_size(distance, 0.1, np.zeros(4, dtype=bool)) == 3


@pytest.mark.parametrize("seed", range(3))
def test_many_rows_keep_effects_that_they_show(seed: int) -> None:
    """Known normal columns: the default's excess test error is near that of the least CV error."""
    n, p, r2, rng = 5_000, 46, 0.2, np.random.default_rng(seed)
    covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    X = rng.standard_normal((n, p)) @ np.linalg.cholesky(covariance).T
    beta = np.zeros(p)
    beta[rng.permutation(p)[:8]] = np.geomspace(1.0, 0.05, 8)
    noise = beta @ covariance @ beta * (1.0 - r2) / r2
    y = X @ beta + np.sqrt(noise) * rng.standard_normal(n)

    def excess(coef: Array) -> float:
        return float((coef - beta) @ covariance @ (coef - beta) / noise)

    model = SparseRidgeCV().fit(X, y)
    assert model.rule_ == "projected"
    least = model._run_.choices["minimum"]
    pair: Any = {"taus": [least.tau], "gammas": [least.gamma], "rule": "minimum"}
    single = SparseRidgeCV(time_limit=0.0, **pair).fit(X, y)
    assert excess(model.coef_) <= 1.3 * excess(single.coef_)


def nearly_dependent(seed: int = 0) -> tuple[Array, Array]:
    """Smooth spectra of few components, and a response that their small differences explain."""
    rng = np.random.default_rng(seed)
    at = np.linspace(0.0, 1.0, 50)
    parts = np.exp(-((at - rng.uniform(0, 1, 8)[:, None]) ** 2) / 0.05)
    amount = rng.uniform(0.0, 1.0, (90, 8))
    X = amount @ parts + 1e-6 * rng.standard_normal((90, 50))
    return X, 10.0 * amount[:, 0] + 0.05 * rng.standard_normal(90)


def test_nearly_dependent_columns_are_no_trap() -> None:
    """The grid and γ⊥ go as low as such columns need, and few columns come near the average."""
    X, y = nearly_dependent()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedWarning)
        model = SparseRidgeCV().fit(X, y)
    assert model.rule_ == "projected"
    assert model.surface_["gamma"].min() < 1e-5
    assert model.path_["gamma"].min() < 1e-4 * 90
    assert model.tau_ < 25
    least = model._run_.choices["minimum"]
    assert model.tau_ <= least.tau or model.cv_error_ <= least.cv_error
    assert model.cv_error_ < 0.1 * np.var(y)


@pytest.mark.parametrize("kind", ["constant", "two rows", "duplicate", "exact", "offset"])
def test_odd_tables(kind: str) -> None:
    X, y = made(20, 4)
    if kind == "constant":
        y = np.full(20, 3.0)
    elif kind == "two rows":
        X, y = X[:2], y[:2]
    elif kind == "duplicate":
        X = np.column_stack([X, X])
    elif kind == "exact":
        y = 3.0 * X[:, 2]
    else:
        X, y = X + 1e6, y - 1e6
    cv: Any = 2 if kind == "two rows" else 4
    with np.errstate(all="ignore"):
        model = SparseRidgeCV(cv=cv, gammas=[0.01, 1.0], rule="projected")
        if kind == "constant":
            with pytest.warns(UserWarning, match="nothing to explain"):
                model.fit(X, y)
        else:
            model.fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert 0.0 <= model.cv_error_ < np.inf
    assert model.certified_
    if kind == "exact":
        assert 2 in model.support_
        np.testing.assert_allclose(model.predict(X), y, atol=0.05)
    if kind == "offset":
        near = SparseRidgeCV(cv=cv, gammas=[0.01, 1.0], rule="projected")
        near.fit(X - 1e6, y + 1e6)
        np.testing.assert_allclose(model.path_["cv_error"], near.path_["cv_error"], rtol=1e-5)


@pytest.mark.parametrize("limit", [60.0, None, 600.0])
def test_more_columns_than_trees_reach_are_estimated(limit: Any) -> None:
    """No warning says that proofs are missing, as the rule asks for none."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 60))
    y = X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(50)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnprovedWarning)
        model = SparseRidgeCV(gammas=[1.0, 20.0], rule="projected", time_limit=limit).fit(X, y)
    assert not model.certified_
    assert set(range(3)) <= set(model.support_.tolist())
    assert model.status_ == "not proved"  # nor was anything to be proved


def test_lasso_and_ridge_of_the_picture() -> None:
    X, y = made(30, 5)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()
    folds = make_folds(3, 30, seed=0)
    found = linear_peers(RowFolds(RowTable(X, y, True), folds), np.arange(1, 6))
    assert (np.diff(found["lasso"]) <= 1e-12).all()
    total = 0.0
    for j in range(3):
        train, test = folds.split(j)
        full = SparseRidge(5, 1e-6).fit(X[train], y[train])
        total += float(np.sum((y[test] - full.predict(X[test])) ** 2)) / 30.0
    assert found["ridge"].min() == found["ridge"].max() <= total * 1.01
    assert found["lasso"][-1] == pytest.approx(total, rel=0.2)
    weighted = RowFolds(RowTable(X, y, True, np.ones(30)), folds)
    assert linear_peers(weighted, np.arange(1, 6)) == {}


def test_with_many_folds_a_sample_of_folds_says_which_ridges_are_tried(
    stand_in: StandIn,
) -> None:
    X, y = made(60, 4)

    def projected(most: int) -> Any:
        asked = real("PROJECTION")._replace(max_folds_at_every_ridge=most)
        stand_in(PROJECTION=asked)
        found = SparseRidgeCV(cv="loo", gammas=[0.1, 1.0, 10.0]).fit(X, y)._run_.choice
        assert found is not None
        assert found.projection is not None
        return found.projection

    every, some = projected(60), projected(10)
    for own, other in zip(every.sizes, some.sizes, strict=True):
        # A size that keeps its ridge weight keeps its errors, which are those of all folds.
        assert other.distance >= own.distance
        if other.gamma == own.gamma:
            assert (other.distance, other.cv_error) == (own.distance, own.cv_error)
    assert any(own.gamma == other.gamma for own, other in zip(every.sizes, some.sizes, strict=True))
    assert projected(59).chosen == every.chosen
