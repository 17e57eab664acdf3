"""The scikit-learn estimators: conventions, units, names, messages."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.tables import Array, five_columns

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.cv.engine import Surface
from sparsecv.cv.settings import DEFAULT_GAMMAS
from sparsecv.errors import UnprovedWarning
from sparsecv.solvers.core.result import Status

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


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
        model = SparseRidgeCV(cv=4, taus=[2, 3], gammas=[0.5, 5.0], random_state=0, **options)
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


def test_support_is_the_best_one() -> None:
    X, y = five_columns()
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    model = SparseRidge(tau=2, gamma=1.0).fit(X, y)
    from itertools import combinations

    def objective(S: tuple[int, ...]) -> float:
        A = scaled[:, list(S)]
        beta = np.linalg.solve(A.T @ A + 0.5 * np.eye(len(S)), A.T @ (y - y.mean()))
        return float(np.sum((y - y.mean() - A @ beta) ** 2) + 0.5 * beta @ beta)

    assert tuple(model.support_) == min(combinations(range(5), 2), key=objective)


def test_cv_agrees_with_the_single_estimator() -> None:
    X, y = five_columns()
    chosen = SparseRidgeCV(cv="loo", gammas=[0.3, 3.0]).fit(X, y)
    again = SparseRidge(tau=chosen.tau_, gamma=chosen.gamma_).fit(X, y)
    np.testing.assert_array_equal(chosen.support_, again.support_)
    np.testing.assert_allclose(chosen.coef_, again.coef_, rtol=1e-12)
    np.testing.assert_allclose(chosen.intercept_, again.intercept_, rtol=1e-12)


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


def test_the_data_are_left_alone() -> None:
    X, y = five_columns()
    before = X.copy(), y.copy()
    SparseRidge().fit(X, y)
    SparseRidgeCV(cv=3, gammas=1.0).fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize("model", [SparseRidge(tau=2), SparseRidgeCV(cv=3, gammas=[1.0, 2.0])])
def test_clone_and_pickle(model: Any) -> None:
    X, y = five_columns()
    assert clone(model).get_params() == model.get_params()
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    assert not hasattr(clone(fitted), "coef_")


# ---------------------------------------------------------------------------- cross-validation


def test_cv_results() -> None:
    X, y = five_columns()
    options = {"cv": 4, "taus": [1, 3, 5], "gammas": [0.1, 10.0], "random_state": 1}
    model = SparseRidgeCV(rule="minimum", **options).fit(X, y)
    results = model.cv_results_
    assert set(results) == {
        "gamma", "tau", "cv_error", "std_error", "lower", "upper", "exact", "mio_by_tau",
    }  # fmt: skip
    assert results["gamma"].tolist() == [0.1, 0.1, 0.1, 10.0, 10.0, 10.0]
    assert results["tau"].tolist() == [1, 3, 5, 1, 3, 5]
    flat, results = results, model.surface_
    assert set(results) == set(flat) | {"n_mio", "n_nodes", "seconds"}
    assert results["gamma"].tolist() == [0.1, 10.0]
    assert results["tau"].tolist() == [1, 3, 5]
    for name in ("cv_error", "std_error", "lower", "upper", "exact", "mio_by_tau"):
        assert results[name].shape == (2, 3)
        np.testing.assert_array_equal(results[name].ravel(), flat[name])
    for name in ("n_mio", "n_nodes", "seconds"):
        assert results[name].shape == (2,)
    assert results["exact"].all()
    least = results["cv_error"].min()
    assert model.cv_error_ == least
    g, t = np.argwhere(results["cv_error"] == least)[0]
    assert (model.gamma_, model.tau_) == (results["gamma"][g], results["tau"][t])
    assert model.support_.size == model.tau_
    assert model.certified_
    within = results["cv_error"].min(axis=0) <= least + results["std_error"][g, t]
    assert model.tau_1se_ == results["tau"][within.argmax()]
    assert model.tau_1se_ <= model.tau_
    assert model.n_nodes_ == results["n_nodes"].sum()
    assert SparseRidgeCV(rule="repeated", **options).fit(X, y).n_nodes_ > model.n_nodes_
    assert model.folds_.k == 4
    assert model.folds_.sizes.sum() == 40


def test_defaults() -> None:
    X, y = five_columns(n=20, p=4)
    model = SparseRidgeCV(random_state=0).fit(X, y)
    assert np.isin(DEFAULT_GAMMAS, model.cv_results_["gamma"]).all()
    assert model.trace_[0].gamma in DEFAULT_GAMMAS
    on_grid = SparseRidgeCV(random_state=0, gammas=DEFAULT_GAMMAS).fit(X, y)
    assert model.cv_error_ <= on_grid.cv_error_
    assert DEFAULT_GAMMAS.size == 10
    np.testing.assert_allclose(DEFAULT_GAMMAS[[0, -1]], [1e-4, 1e4])
    assert model.surface_["tau"].tolist() == [1, 2, 3, 4]
    assert model.folds_.k == 5


def test_error_is_the_mean_over_rows_of_refits() -> None:
    """h by hand: Ridge on the support reported for each fold, intercept refitted there."""
    X, y = five_columns()
    splits = list(KFold(5).split(X))
    model = SparseRidgeCV(cv=splits, taus=[5], gammas=2.0).fit(X, y)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    total = 0.0
    for train, test in splits:
        ridge = Ridge(alpha=1.0).fit(scaled[train], y[train])
        total += float(np.sum((y[test] - ridge.predict(scaled[test])) ** 2))
    np.testing.assert_allclose(model.cv_error_, total / 40, rtol=1e-10)


def test_splitters_and_pairs_are_the_same_folds() -> None:
    X, y = five_columns()
    loo = SparseRidgeCV(cv="loo", gammas=1.0).fit(X, y)
    for cv in (LeaveOneOut(), 40, list(LeaveOneOut().split(X))):
        found = SparseRidgeCV(cv=cv, gammas=1.0).fit(X, y)
        np.testing.assert_allclose(
            found.cv_results_["cv_error"], loo.cv_results_["cv_error"], rtol=1e-10
        )
    groups = np.arange(40) // 8
    pairs = list(GroupKFold(5).split(X, y, groups))
    grouped = SparseRidgeCV(cv=pairs, gammas=1.0).fit(X, y)
    assert grouped.folds_.kind == "custom"
    np.testing.assert_array_equal(np.sort(grouped.folds_.sizes), [8] * 5)


def test_random_state() -> None:
    X, y = five_columns()

    def errors(seed: Any) -> Array:
        model = SparseRidgeCV(cv=4, gammas=1.0, random_state=seed).fit(X, y)
        return np.asarray(model.cv_results_["cv_error"])

    np.testing.assert_array_equal(errors(3), errors(3))
    np.testing.assert_array_equal(errors(3), errors(np.random.RandomState(3)))
    unstated = SparseRidgeCV(cv=4, gammas=1.0).fit(X, y).cv_results_["cv_error"]
    np.testing.assert_array_equal(errors(0), unstated)  # the same folds every time
    assert (errors(3) != errors(4)).any()


@pytest.mark.parametrize("cv", [4, "loo"])
def test_threads_change_nothing(cv: Any) -> None:
    X, y = five_columns()
    one, two = (
        SparseRidgeCV(cv=cv, gammas=[0.1, 1.0], random_state=0, n_jobs=n).fit(X, y) for n in (1, 2)
    )
    for name, values in one.cv_results_.items():
        if name != "seconds":
            np.testing.assert_array_equal(values, two.cv_results_[name], err_msg=name)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    single, double = (SparseRidge(tau=2, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-12)


def test_methods_agree() -> None:
    X, y = five_columns()
    exact, grid, auto = (
        SparseRidgeCV(cv=4, gammas=1.0, method=m, random_state=0).fit(X, y)
        for m in ("exact", "grid", "auto")
    )
    np.testing.assert_allclose(
        exact.cv_results_["cv_error"], grid.cv_results_["cv_error"], rtol=1e-10
    )
    np.testing.assert_array_equal(exact.cv_results_["cv_error"], auto.cv_results_["cv_error"])
    assert grid.surface_["n_mio"].tolist() == [20]


def test_verbose_prints_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = five_columns()
    SparseRidgeCV(cv=3, gammas=[0.5, 2.0], rule="repeated", verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert sum("3 of 3" in line for line in lines) == 6  # Each of six partitions has three folds.
    SparseRidgeCV(cv=3, gammas=[0.5, 2.0]).fit(X, y)
    assert capsys.readouterr().out == ""


class Recorder:
    """A callback that keeps what it is told: the names above a task, its own, begin or end."""

    max_propagation_depth = 1

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.told.append(("setup",))

    def teardown(self, estimator: Any, context: Any) -> None:
        self.told.append(("teardown",))

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.told.append((*self._path(context), "begin"))

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        self.told.append((*self._path(context), "end"))

    def _path(self, context: Any) -> tuple[str, ...]:
        above = () if context.parent is None else self._path(context.parent)
        return (*above, context.task_name)


def test_callbacks_of_scikit_learn() -> None:
    """Stages and units; every task that began ends; also below a grid search."""
    pytest.importorskip("sklearn.callback")
    X, y = five_columns()
    heard = Recorder()
    model = SparseRidgeCV(cv=3, gammas=[0.5, 2.0], rule="minimum")
    assert model.set_callbacks(heard) is model
    model.fit(X, y)
    fold = [("fit", "folds", "folds", word) for word in ("begin", "end")]
    rows = [("fit", "the models of all rows", word) for word in ("begin", "end")]
    stages = [*rows, ("fit", "folds", "begin"), *3 * fold, ("fit", "folds", "end")]
    assert heard.told == [
        ("setup",),
        ("fit", "begin"),
        *stages,
        ("fit", "end"),
        ("teardown",),
    ]
    assert not hasattr(clone(SparseRidgeCV()), "_skl_callbacks")

    above = Recorder()
    search = GridSearchCV(SparseRidgeCV(cv=3, gammas=1.0), {"fit_intercept": [True, False]}, cv=2)
    search.set_callbacks(above).fit(X, y)
    assert above.told.count(("setup",)) == 1
    fits = [line for line in above.told if line[-2:] == ("fit", "begin")]
    assert len(fits) >= 5  # two settings, two folds, and the best one again
    begun = sorted(line[:-1] for line in above.told if line[-1] == "begin")
    assert begun == sorted(line[:-1] for line in above.told if line[-1] == "end")


def test_a_default_fit_leaves_large_trees_open() -> None:
    """Trees of more columns than rows cannot prune at a tiny γ: what is open is marked."""
    X = np.random.default_rng(0).uniform(size=(20, 36))
    y = X[:, :3].sum(axis=1) + 0.1 * np.random.default_rng(1).standard_normal(20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnprovedWarning)
        model = SparseRidgeCV(cv=3, gammas=[1e-6, 100.0], taus=range(1, 31)).fit(X, y)
    tiny, large = model.surface_["exact"]
    assert not tiny.all()
    assert large[:3].all()
    assert model.status_ == "node limit"
    results = model.cv_results_
    assert (results["lower"] <= results["cv_error"]).all()
    assert (results["cv_error"] <= results["upper"]).all()


def test_a_default_fit_beyond_45_columns_does_not_warn() -> None:
    X, y = hard(p=50)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnprovedWarning)
        model = SparseRidgeCV(gammas=[1.0, 10.0], taus=range(1, 6)).fit(X, y)
    assert not model.certified_


def test_time_limit_warns_and_brackets() -> None:
    X, y = hard()
    model = SparseRidgeCV(cv=3, gammas=[1e-3], taus=[5, 10, 20], time_limit=1e-6, random_state=0)
    with pytest.warns(UnprovedWarning, match="CV error"):
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


def test_unproved_final_model_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds proved, the model on all rows not."""
    X, y = hard()

    def forget(self: Surface) -> None:
        """What is known where the time is up before the model's own tree has ended."""
        model = np.s_[:, :, self.ledger.k]
        self.ledger.exact[model] = False
        self.ledger.bound[model] *= 0.5
        self.ledger.note_limit(0, Status.TIME_LIMIT)

    monkeypatch.setattr(Surface, "prove", forget)
    monkeypatch.setattr(Surface, "prove_model", lambda *_: None)
    options: dict[str, Any] = {"random_state": 0, "rule": "minimum", "time_limit": 600}
    model = SparseRidgeCV(cv=3, gammas=[1e-3], taus=[2], **options)
    with pytest.warns(UnprovedWarning, match="final model has a relative gap"):
        model.fit(X, y)
    assert model.certified_
    assert model.status_ == "time limit"
    assert model.gap_ > 0
    assert model.lower_bound_ <= model.objective_


def test_no_time_gives_estimates_alone() -> None:
    X, y = hard()
    options: dict[str, Any] = {"cv": 3, "gammas": [1e-3, 1.0], "taus": [1, 2], "rule": "minimum"}
    exact = SparseRidgeCV(**options).fit(X, y)
    with pytest.warns(UnprovedWarning, match="the pair of least estimate"):
        model = SparseRidgeCV(time_limit=0, **options).fit(X, y)
    assert model.status_ == "time limit"
    assert not model.certified_
    assert not model.cv_results_["exact"].any()
    assert model.n_nodes_ == 0
    assert model.cv_error_ == model.cv_results_["cv_error"].min()
    h = exact.cv_results_["cv_error"]
    assert (model.cv_results_["lower"] <= h * (1 + 1e-9)).all()
    assert (h <= model.cv_results_["upper"] * (1 + 1e-9)).all()
    lower, upper = model.cv_error_bounds_
    assert lower <= h.min() * (1 + 1e-9)
    assert model.cv_error_ <= upper
    assert model.lower_bound_ <= exact.objective_ * (1 + 1e-9) or model.tau_ != exact.tau_
    assert model.support_.size == model.tau_


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


# ---------------------------------------------------------------------------- columns
