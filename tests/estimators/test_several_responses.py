"""Several responses at once: each as if fitted alone, and one budget of coefficients for all."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, KFold
from support.tables import Array

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.errors import ConstantColumnWarning, InputError, UnprovedWarning


def data(q: int, n: int = 30, p: int = 6) -> tuple[Array, Array]:
    """Columns of different lengths; every response has columns and noise of its own."""
    rng = np.random.default_rng(q)
    X = rng.standard_normal((n, p)) * np.linspace(0.1, 10.0, p) + np.arange(p)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    coef = rng.standard_normal((p, q)) * (rng.random((p, q)) < 0.6)
    noise = rng.standard_normal((n, q)) * np.linspace(0.2, 2.0, q)
    return X, scaled @ coef + noise + 10.0 * np.arange(q)


def least_by_size(X: Array, y: Array, gamma: float, weights: Array | None) -> list[float]:
    """The least objective of every size 0..p, by all subsets of standardised columns."""
    w = np.ones(len(y)) if weights is None else weights
    mean = np.average(X, axis=0, weights=w)
    Z = (X - mean) / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
    Z, t = Z * np.sqrt(w)[:, None], (y - np.average(y, weights=w)) * np.sqrt(w)

    def objective(S: tuple[int, ...]) -> float:
        A = Z[:, S]
        beta = np.linalg.solve(A.T @ A + gamma / 2.0 * np.eye(len(S)), A.T @ t)
        return float(np.sum((t - A @ beta) ** 2) + gamma / 2.0 * beta @ beta)

    p = X.shape[1]
    return [min(map(objective, combinations(range(p), k))) for k in range(p + 1)]


def assert_alone(model: Any, t: int, alone: Any) -> None:
    """Response t of a fit to several is what a fit to it alone gives."""
    np.testing.assert_array_equal(model.support_[t], alone.support_)
    np.testing.assert_allclose(model.coef_[t], alone.coef_, rtol=1e-9, atol=1e-12)
    for name in ("intercept_", "objective_", "lower_bound_"):
        np.testing.assert_allclose(getattr(model, name)[t], getattr(alone, name), rtol=1e-9)
    assert model.tau_[t] == alone.tau_
    assert model.status_[t] == alone.status_


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 1.0])
@pytest.mark.parametrize("q", [2, 3])
def test_every_response_has_its_best_subset(q: int, gamma: float, weighted: bool) -> None:
    X, Y = data(q)
    weights = np.arange(30) % 4.0 if weighted else None
    taus = [3, 1, 6][:q]
    model = SparseRidge(tau=taus, gamma=gamma).fit(X, Y, sample_weight=weights)
    for t, tau in enumerate(taus):
        assert_alone(model, t, SparseRidge(tau=tau, gamma=gamma).fit(X, Y[:, t], weights))
        least = least_by_size(X, Y[:, t], gamma, weights)[tau]
        assert model.objective_[t] == pytest.approx(least, rel=1e-9)
    assert model.coef_.shape == (q, 6)
    assert model.predict(X).shape == (30, q)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_.T + model.intercept_)
    assert model.gap_.max() <= 1e-6
    assert model.status_ == ["optimal"] * q
    assert not hasattr(model, "total_objective_")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 1.0])
@pytest.mark.parametrize(("q", "tau", "total"), [(2, None, 1), (2, 3, 5), (3, None, 7), (3, 2, 4)])
def test_one_budget_for_all(q: int, tau: Any, total: int, gamma: float, weighted: bool) -> None:
    X, Y = data(q)
    weights = np.arange(30) % 4.0 if weighted else None
    model = SparseRidge(tau=tau, total=total, gamma=gamma).fit(X, Y, sample_weight=weights)
    least = [least_by_size(X, y, gamma, weights) for y in Y.T]
    sizes = product(range((tau or 6) + 1), repeat=q)
    best = min(
        sum(f[k] for f, k in zip(least, at, strict=True)) for at in sizes if sum(at) <= total
    )
    assert model.total_objective_ == pytest.approx(best, rel=1e-6)
    assert model.total_objective_ == pytest.approx(model.objective_.sum())
    assert best * (1.0 - 2e-6) <= model.total_lower_bound_ <= best * (1.0 + 1e-9)
    assert (model.total_status_, model.total_gap_ <= 1e-6) == ("optimal", True)
    assert np.count_nonzero(model.coef_) <= total
    assert max(map(len, model.support_)) <= (tau or 6)
    for t, support in enumerate(model.support_):
        if support.size:
            alone = SparseRidge(tau=support.size, gamma=gamma).fit(X, Y[:, t], weights)
            np.testing.assert_allclose(model.coef_[t], alone.coef_, rtol=1e-9)
        else:
            assert model.intercept_[t] == pytest.approx(np.average(Y[:, t], weights=weights))


@pytest.mark.parametrize("total", [4, 6, 12])
def test_a_budget_that_leaves_no_residual_is_proved(total: int) -> None:
    """At γ = 0, with more columns than rows, bounds stay below objectives by rounding alone."""
    X, Y = data(2, n=5)
    model = SparseRidge(total=total, gamma=0.0).fit(X, Y)
    assert model.total_status_ == "optimal"
    assert model.total_lower_bound_ <= model.total_objective_
    if total == 12:
        assert model.total_objective_ <= 1e-20


@pytest.mark.parametrize("n", [5, 8, 100])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_response_does_not_depend_on_the_others(n: int, fit_intercept: bool) -> None:
    """Neither on their order nor on their scale, with more rows than columns and with fewer."""
    X, Y = data(3, n=n)
    Y *= [1.0, 1e8, 1e-8]
    single = SparseRidge(tau=2, gamma=0.5, fit_intercept=fit_intercept)
    alone = [SparseRidge(**single.get_params()).fit(X, y) for y in Y.T]
    for order in ([0, 1, 2], [2, 0, 1], [1, 0]):
        single.fit(X, Y[:, order])
        for t, response in enumerate(order):
            assert_alone(single, t, alone[response])


@pytest.mark.parametrize("rule", ["minimum", "projected"])
@pytest.mark.parametrize("cv", ["loo", 4, "pairs"])
def test_cross_validation_is_that_of_every_response(cv: Any, rule: str) -> None:
    X, Y = data(3, n=24, p=4)
    options: dict[str, Any] = {"gammas": [0.1, 10.0], "rule": rule}
    pairs = list(KFold(3).split(X))
    weights = 1.0 + np.arange(24) % 2
    folds = iter(pairs) if cv == "pairs" else cv  # an iterator gives the folds once
    model = SparseRidgeCV(cv=folds, **options).fit(X, Y, sample_weight=weights)
    assert len(model.estimators_) == 3
    for t, y in enumerate(Y.T):
        alone = SparseRidgeCV(cv=pairs if cv == "pairs" else cv, **options)
        alone.fit(X, y, sample_weight=weights)
        assert_alone(model, t, alone)
        assert (model.gamma_[t], model.cv_error_[t]) == (alone.gamma_, alone.cv_error_)
        assert model.certified_[t] == alone.certified_
        np.testing.assert_array_equal(
            model.estimators_[t].cv_results_["cv_error"], alone.cv_results_["cv_error"]
        )
        np.testing.assert_array_equal(model.predict(X)[:, t], model.estimators_[t].predict(X))
    assert model.rule_ == rule
    assert model.cv_error_bounds_.shape == (3, 2)
    if rule == "projected":
        assert model.estimators_[1].at_size(2).tau_ == 2


@pytest.mark.parametrize("seed", [None, 3, np.random.RandomState(3)], ids=str)
def test_all_responses_have_the_same_folds_and_partitions(seed: Any) -> None:
    X, Y = data(2, n=24, p=4)
    Y[:, 1] = Y[:, 0]
    options: dict[str, Any] = {"gammas": 1.0, "rule": "projected"}
    model = SparseRidgeCV(cv=3, random_state=seed, **options).fit(X, Y)
    first, second = (one.cv_results_["cv_error"] for one in model.estimators_)
    np.testing.assert_array_equal(first, second)
    if seed is not None:
        assert model.cv_error_[0] == model.cv_error_[1]


def test_groups_and_the_nested_error() -> None:
    X, Y = data(2, n=24, p=3)
    groups = np.arange(24) // 3
    options: dict[str, Any] = {"cv": 4, "gammas": 1.0, "nested": 3}
    model = SparseRidgeCV(**options).fit(X, Y, groups=groups)
    alone = SparseRidgeCV(**options).fit(X, Y[:, 1], groups=groups)
    assert model.nested_error_[1] == alone.nested_error_
    assert model.nested_std_error_.shape == (2,)


@pytest.mark.parametrize("kind", [SparseRidge, SparseRidgeCV])
def test_selection_is_the_union(kind: Any) -> None:
    X, Y = data(3)
    frame, responses = pd.DataFrame(X, columns=list("abcdef")), pd.DataFrame(Y)
    model = SparseRidge(tau=1) if kind is SparseRidge else SparseRidgeCV(taus=[1], gammas=1.0)
    model.fit(frame, responses)
    union = sorted(set(np.concatenate(model.support_).tolist()))
    assert model.get_support(indices=True).tolist() == union
    np.testing.assert_array_equal(model.transform(frame), X[:, union])
    scores = [kind(**model.get_params()).fit(X, y).score(X, y) for y in Y.T]
    assert model.score(frame, Y) == pytest.approx(np.mean(scores))


@pytest.mark.parametrize(
    "model", [SparseRidge(tau=2), SparseRidgeCV(cv=3, gammas=1.0, rule="projected")], ids=repr
)
def test_fits_to_one_response_and_to_several_leave_nothing_behind(
    model: Any, tmp_path: Path
) -> None:
    X, Y = data(2)
    one = set(vars(model.fit(X, Y[:, 0])))
    with pytest.warns(DataConversionWarning):
        column = model.fit(X, Y[:, :1])
    assert column.coef_.shape == (6,)
    assert column.predict(X).shape == (30,)
    several = set(vars(model.fit(X, Y)))
    with pytest.raises(InputError, match="a file holds one response"):
        model.save(tmp_path / "model.json")
    assert set(vars(model.fit(X, Y[:, 0]))) == one
    assert set(vars(model.fit(X, Y))) == several
    if isinstance(model, SparseRidgeCV):
        with pytest.raises(InputError, match="each of estimators_"):
            model.at_size(2)


def test_total_in_a_grid_search_and_with_constant_columns() -> None:
    X, Y = data(2)
    search = GridSearchCV(SparseRidge(), {"total": [1, 4, 12]}, cv=3).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    X[:, 2] = 4.0
    with pytest.warns(ConstantColumnWarning, match="'x2'") as caught:
        model = SparseRidge(total=12).fit(X, Y)
    assert len(caught) == 1
    assert model.tau_.tolist() == [5, 5]
    with pytest.warns(ConstantColumnWarning, match="response 2 of 2 is 3 in every row"):
        model.fit(X, np.column_stack([Y[:, 0], np.full(30, 3.0)]))
    np.testing.assert_allclose(model.predict(X)[:, 1], 3.0)


def test_limits_bracket_the_total() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 60)) + rng.standard_normal((60, 1))
    Y = X[:, ::4] @ rng.standard_normal((15, 2)) + 6.0 * rng.standard_normal((60, 2))
    with pytest.warns(UnprovedWarning, match="time limit reached, and the relative gap is"):
        model = SparseRidge(total=24, gamma=1e-3, time_limit=0.01).fit(X, Y)
    assert model.total_status_ == "time limit"
    assert 0.0 <= model.total_lower_bound_ < model.total_objective_
    assert np.count_nonzero(model.coef_) <= 24
    with pytest.warns(UnprovedWarning, match="time limit") as caught:
        model = SparseRidge(tau=[20, 1], gamma=1e-3, time_limit=0.01).fit(X, Y)
    assert len(caught) == 1
    assert model.status_[0] == "time limit"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"tau": [1, 2, 3]}, "tau needs one number, or one for each of 2 responses"),
    ({"tau": [1]}, "one for each of 2 responses"),
    ({"tau": [1, 7]}, "p = 6"),
    ({"tau": [1, 0]}, "p = 6"),
    ({"tau": [1, 2.5]}, "tau"),
    ({"tau": [[1], [1, 2]]}, "tau"),
    ({"total": 0}, "total must be a whole number between 1 and 12"),
    ({"total": 13}, "between 1 and 12"),
    ({"total": 2.0}, "total"),
    ({"total": True}, "total"),
    ({"total": "3"}, "total"),
    ({"total": 6, "tau": [2, 3]}, "between 1 and 5, the sum of tau"),
    ({"total": 3, "backend": "highs"}, "native"),
]


@pytest.mark.parametrize(("options", "words"), BAD, ids=repr)
def test_bad_sizes_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        SparseRidge(**options).fit(*data(2))
    assert "\n" not in str(caught.value)


def test_total_needs_several_responses() -> None:
    X, Y = data(2)
    with pytest.raises(InputError, match="total is a budget of several responses"):
        SparseRidge(total=3).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="y"):
        SparseRidge().fit(X, np.stack([Y, Y], axis=2))
    Y[3, 1] = np.nan
    with pytest.raises(ValueError, match="y contains NaN"):
        SparseRidge().fit(X, Y)
