"""The scikit-learn estimators: conventions, units, names, messages."""

from __future__ import annotations

import gc
import time
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.fresh import plain_run
from support.inside import DEFAULT_GAMMAS, Need, Surface
from support.problems import many_alike
from support.stand_ins import StandIn
from support.tables import Array, five_columns

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.errors import (
    ConstantColumnWarning,
    InputError,
    LoweredSizeWarning,
    UnprovedWarning,
)
from sparsecv.solvers import Status

pd = pytest.importorskip("pandas")


def hard(n: int = 60, p: int = 40) -> tuple[Array, Array]:
    """Columns and noise that make the trees too large for a moment."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) + rng.standard_normal((n, 1))
    return X, X[:, ::4].sum(axis=1) + 6.0 * rng.standard_normal(n)


@parametrize_with_checks(
    [
        SparseRidge(),
        SparseRidge(tau=1, gamma=0.1, fit_intercept=False, standardize=False),
        SparseRidgeCV(cv=3, gammas=[0.1, 10.0], taus=[1]),
        SparseRidgeCV(),
    ]
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    weighs = check.func.__name__.startswith("check_sample_weight_equivalence")
    if weighs and plain_run() and isinstance(estimator, SparseRidgeCV):
        estimator = clone(estimator).set_params(gammas=[0.1, 10.0])  # all default γ take 30 s
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


# ---------------------------------------------------------------------------- the model


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("cross_validated", [True, False])
def test_coefficients_are_those_of_ridge(
    fit_intercept: bool, standardize: bool, cross_validated: bool
) -> None:
    X, y = five_columns()
    options: dict[str, Any] = {"fit_intercept": fit_intercept, "standardize": standardize}
    model: Any
    if cross_validated:
        model = SparseRidgeCV(cv=4, taus=[2, 3], gammas=[0.5, 5.0], rule="minimum", **options)
        gamma = model.fit(X, y).gamma_
    else:
        gamma = 5.0
        model = SparseRidge(tau=3, gamma=gamma, **options).fit(X, y)
    scale = X.std(axis=0) if standardize else np.ones(5)
    S = model.support_
    ridge = Ridge(alpha=gamma / 2, fit_intercept=fit_intercept, solver="svd")
    ridge.fit((X / scale)[:, S], y)
    expected = np.zeros(5)
    expected[S] = ridge.coef_ / scale[S]
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, ridge.intercept_, rtol=1e-8, atol=1e-12)
    predicted = ridge.predict((X / scale)[:, S])
    np.testing.assert_allclose(model.predict(X), predicted, rtol=1e-8)
    np.testing.assert_allclose(model.score(X, y), ridge.score((X / scale)[:, S], y), rtol=1e-8)
    objective = np.sum((y - predicted) ** 2) + gamma / 2 * np.sum(ridge.coef_**2)
    np.testing.assert_allclose(model.objective_, objective, rtol=1e-8)
    assert 0.0 <= model.lower_bound_ <= model.objective_
    assert model.gap_ <= 1e-6
    assert model.status_ == "optimal"
    assert model.n_nodes_ > 0


def test_tau_defaults_to_ten() -> None:
    X, y = five_columns(n=30, p=12)
    assert SparseRidge().fit(X, y).support_.size == 10
    X, y = five_columns(n=30, p=4)
    assert SparseRidge().fit(X, y).support_.size == 4


@pytest.mark.parametrize("data", ["list", "float32", "int", "F", "series"])
def test_inputs_of_other_kinds(data: str) -> None:
    X, y = np.round(10.0 * five_columns()[0]), np.round(five_columns()[1])
    expected = SparseRidge(tau=2).fit(X, y)
    kinds: dict[str, Any] = {
        "list": (X.tolist(), y.tolist()),
        "float32": (X.astype(np.float32), y.astype(np.float32)),
        "int": (X.astype(int), y.astype(int)),
        "F": (np.asfortranarray(X), y),
        "series": (pd.DataFrame(X), pd.Series(y)),
    }
    found = SparseRidge(tau=2).fit(*kinds[data])
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-12)


# ---------------------------------------------------------------------------- cross-validation


def test_cv_results() -> None:
    X, y = five_columns()
    options = {"cv": 4, "taus": [1, 3, 5], "gammas": [0.1, 10.0], "random_state": 1}
    model = SparseRidgeCV(rule="minimum", **options).fit(X, y)
    flat, results = model.cv_results_, model.surface_
    assert flat["gamma"].tolist() == [0.1, 0.1, 0.1, 10.0, 10.0, 10.0]
    assert flat["tau"].tolist() == [1, 3, 5, 1, 3, 5]
    assert set(results) == set(flat) | {"n_mio", "n_nodes", "seconds"}
    for name in set(flat) - {"gamma", "tau"}:
        assert results[name].shape == (2, 3)
        np.testing.assert_array_equal(results[name].ravel(), flat[name])
    least = results["cv_error"].min()
    assert model.cv_error_ == least
    g, t = np.argwhere(results["cv_error"] == least)[0]
    assert (model.gamma_, model.tau_) == (results["gamma"][g], results["tau"][t])
    assert model.support_.size == model.tau_
    within = results["cv_error"].min(axis=0) <= least + results["std_error"][g, t]
    assert model.tau_1se_ == results["tau"][within.argmax()] <= model.tau_
    assert model.n_nodes_ == results["n_nodes"].sum()
    assert SparseRidgeCV(rule="projected", **options).fit(X, y).n_nodes_ > model.n_nodes_


def test_defaults() -> None:
    X, y = five_columns(n=20, p=4)
    model = SparseRidgeCV().fit(X, y)
    assert model.rule_ == "projected"
    assert model.trace_ == []
    minimum = SparseRidgeCV(rule="minimum").fit(X, y)
    assert minimum.trace_[0].gamma in DEFAULT_GAMMAS
    on_grid = SparseRidgeCV(rule="minimum", gammas=DEFAULT_GAMMAS).fit(X, y)
    assert minimum.cv_error_ <= on_grid.cv_error_
    for one in (model, minimum):
        assert np.isin(DEFAULT_GAMMAS, one.cv_results_["gamma"]).all()
    assert DEFAULT_GAMMAS.size == 10
    np.testing.assert_allclose(DEFAULT_GAMMAS[[0, -1]], [1e-4, 1e4])
    assert model.surface_["tau"].tolist() == [0, 1, 2, 3, 4]
    assert model.folds_.k == 5


def test_verbose_prints_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = five_columns()
    SparseRidgeCV(cv=3, gammas=[0.5, 2.0], verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    done = [line for line in lines if "partition" in line and "3 of 3" in line]
    assert len(done) == 2  # Each of two partitions has three folds.
    SparseRidgeCV(cv=3, gammas=[0.5, 2.0]).fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("weighted", [False, True])
def test_the_size_0_is_the_mean_alone(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X, y, w = rng.standard_normal((20, 3)), rng.standard_normal(20) + 3.0, rng.uniform(0, 2, 20)
    weights = w if weighted else None
    model = SparseRidge(tau=0).fit(X, y, sample_weight=weights)
    mean = np.average(y, weights=weights)
    assert model.support_.size == 0
    assert not model.coef_.any()
    assert (model.tau_, model.status_, model.gap_) == (0, "optimal", 0.0)
    np.testing.assert_allclose(model.predict(X), mean)
    loss = float(np.sum((1.0 if weights is None else w) * (y - mean) ** 2))
    assert model.objective_ == pytest.approx(loss)
    assert model.row_influence()["stays"].all()
    assert model.near_best(10.0)["columns"].tolist() == [[]]
    with pytest.raises(InputError, match="size 0"):
        model.report("page.html", audit=True)
    with pytest.raises(InputError, match=r"size 0|weights"):
        model.certificate("proof.txt")
    with pytest.raises(InputError, match="size of 0 is too small"):
        SparseRidge(tau=0, constraints=Constraints(include=[0])).fit(X, y)


def test_a_default_fit_leaves_large_trees_open(stand_in: StandIn) -> None:
    """Trees of more columns than rows cannot prune at a tiny γ: what is open is marked."""
    # On a busy machine the second of the limit is one of the processor.
    stand_in(all_seconds=time.process_time)
    X = np.random.default_rng(0).uniform(size=(20, 44))
    y = X[:, :3].sum(axis=1) + 0.1 * np.random.default_rng(1).standard_normal(20)
    model = SparseRidgeCV(
        cv=3, gammas=[1e-6, 100.0], taus=range(1, 8), rule="minimum", time_limit=1.0
    )
    with pytest.warns(UnprovedWarning, match="It is not proved that no pair"):
        model.fit(X, y)
    tiny, large = model.surface_["exact"]
    assert not tiny.all()
    assert large[:3].all()
    assert model.status_ == "time limit"
    results = model.cv_results_
    assert (results["lower"] <= results["cv_error"]).all()
    assert (results["cv_error"] <= results["upper"]).all()


@pytest.mark.parametrize(
    ("limit", "words"), [(1e-6, "CV error"), (0, "It is not proved that no pair")]
)
def test_time_limit_warns_and_brackets(limit: float, words: str) -> None:
    X, y = hard()
    options: dict[str, Any] = {"gammas": [1e-3], "taus": [5, 10, 20], "time_limit": limit}
    model = SparseRidgeCV(cv=3, rule="minimum", **options)
    with pytest.warns(UnprovedWarning, match=words):
        model.fit(X, y)
    assert not model.certified_
    assert model.status_ == "time limit"
    results = model.cv_results_
    assert (results["lower"] <= results["cv_error"]).all()
    assert (results["cv_error"] <= results["upper"]).all()
    assert not results["exact"].all()
    assert model.lower_bound_ <= model.objective_
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(("p", "positive"), [(2000, False), (50, True)])
def test_intervals_end_with_the_time(p: int, positive: bool) -> None:
    """Of a wide table, and within bounds, where an interval needs a bounded fit of every size."""
    X = np.random.default_rng(0).standard_normal((60, p))
    signs = Constraints(positive=True) if positive else None
    model = SparseRidgeCV(gammas=[1.0], taus=[1, 2], time_limit=1e-3, constraints=signs)
    with pytest.warns(UnprovedWarning):
        model.fit(X, X[:, :2].sum(axis=1))
    assert np.isinf(model.cv_results_["upper"]).any()


def test_unproved_final_model_warns(stand_in: StandIn) -> None:
    """Folds proved, the model on all rows not."""
    X, y = hard()

    def forget(self: Surface, need: Need) -> None:
        """What is known where the time is up before the model's own tree has ended."""
        model = np.s_[:, :, self.ledger.k]
        self.ledger.cells.exact[model] = False
        self.ledger.cells.bound[model] *= 0.5
        self.ledger.worsen_status(0, Status.TIME_LIMIT)

    stand_in(prove=forget)
    stand_in(prove_model=lambda *_: None, prove_rest=lambda *_: None)
    options: dict[str, Any] = {"random_state": 0, "rule": "minimum", "time_limit": 600}
    model = SparseRidgeCV(cv=3, gammas=[1e-3], taus=[2], **options)
    with pytest.warns(UnprovedWarning, match="final model has a relative gap"):
        model.fit(X, y)
    assert model.certified_
    assert model.status_ == "time limit"
    assert model.gap_ > 0
    assert model.lower_bound_ <= model.objective_


def test_single_fit_under_a_time_limit() -> None:
    X, y = hard()
    with pytest.warns(UnprovedWarning, match="time limit"):
        model = SparseRidge(tau=10, gamma=1e-3, time_limit=1e-6).fit(X, y)
    assert model.status_ == "time limit"
    assert model.gap_ > 0
    assert model.lower_bound_ < model.objective_
    assert model.support_.size == 10
    solved = SparseRidge(tau=2, gamma=1e-3).fit(X, y)
    assert solved.status_ == "optimal"


# ---------------------------------------------------------------------------- warnings


def many(p: int = 60) -> tuple[Array, Array]:
    """Correlated columns with much noise: nothing is proved at once. The last one is constant."""
    X, y = many_alike(8.0, p)
    return np.column_stack([X, np.full(120, 3.0)]), y


MODELS: dict[str, Any] = {
    "SparseRidge": SparseRidge(20, 0.01, time_limit=1e-3),
    "SparseRidgeCV": SparseRidgeCV(gammas=0.01, taus=[12], time_limit=0, rule="minimum"),
    "search": GridSearchCV(SparseRidge(tau=20, time_limit=1e-3), {"gamma": [0.01]}, cv=2),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_the_file_of_a_warning_is_that_of_the_caller(name: str) -> None:
    model = clone(MODELS[name])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*many())
    mine = [one for one in caught if one.category in (UnprovedWarning, ConstantColumnWarning)]
    assert {one.category for one in mine} == {UnprovedWarning, ConstantColumnWarning}
    assert {one.filename for one in mine} == {__file__}


def test_a_size_beyond_the_columns_that_vary_is_said_at_the_call() -> None:
    X, y = many(3)
    with pytest.warns(LoweredSizeWarning, match="3 of the 4 columns vary") as caught:
        SparseRidge(tau=4).fit(X, y)
    assert {one.filename for one in caught} == {__file__}


@pytest.mark.parametrize("kind", [SparseRidge, SparseRidgeCV])
def test_a_fit_keeps_no_array_of_the_user(kind: Any) -> None:
    """The memory of X is free once the user drops it, and what is asked later needs no X."""
    X = np.random.default_rng(0).standard_normal((60, 4))
    there, model = weakref.ref(X), kind().fit(X, X[:, 0] + 1.0)
    del X
    gc.collect()
    assert there() is None
    assert len(model.alternatives(2)) >= 4
    assert model.compare().index.size > 1
