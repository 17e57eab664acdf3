"""Weights of whole numbers are repeated rows whose copies stay in one fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.model_selection import LeaveOneGroupOut, cross_validate
from support.fresh import plain_run
from support.inside import RowFolds, RowTable, make_folds
from support.inside import cross_validate as evaluate

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError

GAMMAS = [0.05, 1.0, 40.0]
pytestmark = pytest.mark.filterwarnings("ignore::sparsecv.errors.ConstantColumnWarning")


class Problem:
    """A table, whole weights some of which are 0, and the same table with rows repeated."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(12, 26)), int(rng.integers(1, 11))
        self.X = rng.standard_normal((n, p)) + rng.integers(0, 4, p)
        if p > 2 and seed % 3 == 0:  # columns that resemble each other, but no ties
            self.X[:, 1] = self.X[:, 0] + 0.1 * rng.standard_normal(n)
        self.y = self.X[:, 0] - self.X[:, p // 2] + rng.standard_normal(n) + 3.0
        self.weights = rng.integers(1, 5, n).astype(float)
        if seed % 2:
            none = rng.choice(n, 3, replace=False)  # These rows have no part, whatever they hold.
            self.weights[none], self.X[none], self.y[none] = 0.0, 1e6, -1e6
        self.rows = np.repeat(np.arange(n), self.weights.astype(int))
        self.groups = rng.permutation(np.arange(n) % int(rng.integers(4, 7)))
        self.options: dict[str, Any] = {
            "fit_intercept": bool(rng.integers(2)),
            "standardize": bool(rng.integers(2)),
        }

    def pairs(self, k: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """K folds of the rows, each with some weight."""
        order = np.argsort(self.weights == 0.0, kind="stable")
        label = np.empty(self.y.size, dtype=int)
        label[order] = np.arange(self.y.size) % k
        return [(np.flatnonzero(label != j), np.flatnonzero(label == j)) for j in range(k)]

    def repeated(
        self, pairs: list[tuple[NDArray[np.intp], NDArray[np.intp]]]
    ) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """The same folds of the repeated rows."""
        return [
            (
                np.flatnonzero(np.isin(self.rows, train)),
                np.flatnonzero(np.isin(self.rows, test)),
            )
            for train, test in pairs
        ]


def assert_same(weighted: SparseRidgeCV, repeated: SparseRidgeCV) -> None:
    """Supports, h and coefficients."""
    for name in ("cv_error", "lower", "upper"):
        np.testing.assert_allclose(
            weighted.cv_results_[name], repeated.cv_results_[name], rtol=1e-9, err_msg=name
        )
    assert weighted.cv_results_["exact"].all()
    assert repeated.cv_results_["exact"].all()
    assert (weighted.tau_, weighted.gamma_) == (repeated.tau_, repeated.gamma_)
    np.testing.assert_array_equal(weighted.support_, repeated.support_)
    size = np.abs(repeated.coef_).max()
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9, atol=1e-9 * size)
    assert weighted.intercept_ == pytest.approx(repeated.intercept_, rel=1e-9, abs=1e-9 * size)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-8)


@pytest.mark.parametrize(
    ("rule", "seed"),
    [
        *(("minimum", seed) for seed in range(0, 50, 3 if plain_run() else 1)),
        *((None, seed) for seed in range(0, 20, 3 if plain_run() else 1)),
    ],
)
@pytest.mark.parametrize("kind", ["loo", "k", "groups"])
def test_weights_are_repeated_rows(kind: str, rule: str | None, seed: int) -> None:
    one = Problem(seed)
    X, y = one.X[one.rows], one.y[one.rows]
    common: dict[str, Any] = {"gammas": GAMMAS, "rule": rule, **one.options}
    given: dict[str, Any] = {"sample_weight": one.weights}
    if kind == "loo":
        weighted = SparseRidgeCV(cv="loo", **common).fit(one.X, one.y, **given)
        repeated = SparseRidgeCV(cv=LeaveOneGroupOut(), **common).fit(X, y, groups=one.rows)
    elif kind == "k":
        pairs = one.pairs(4)
        weighted = SparseRidgeCV(cv=pairs, **common).fit(one.X, one.y, **given)
        repeated = SparseRidgeCV(cv=one.repeated(pairs), **common).fit(X, y)
    else:
        splitter = LeaveOneGroupOut()
        weighted = SparseRidgeCV(cv=splitter, **common).fit(
            one.X, one.y, groups=one.groups, **given
        )
        repeated = SparseRidgeCV(cv=splitter, **common).fit(X, y, groups=one.groups[one.rows])
    assert_same(weighted, repeated)
    if rule is None:
        assert weighted.rule_ == "projected"
        assert weighted.reference_error_ == pytest.approx(repeated.reference_error_, rel=1e-8)
        np.testing.assert_allclose(
            weighted.path_["distance"], repeated.path_["distance"], rtol=1e-6, atol=1e-12
        )


@pytest.mark.parametrize("cv", ["pairs", 2])
def test_rows_of_weight_zero_are_no_rows_under_the_default_rule(cv: Any) -> None:
    """Two folds have inner folds that are drawn from the rows that count."""
    one = Problem(7)
    there = one.weights > 0.0
    numbers = np.cumsum(there) - 1
    pairs = one.pairs(4 if cv == "pairs" else 2)
    rest = [(numbers[a[there[a]]], numbers[b[there[b]]]) for a, b in pairs]
    common: dict[str, Any] = {"gammas": GAMMAS, **one.options}
    every = SparseRidgeCV(cv=pairs, **common).fit(one.X, one.y, sample_weight=one.weights)
    some = SparseRidgeCV(cv=rest, **common)
    some.fit(one.X[there], one.y[there], sample_weight=one.weights[there])
    assert_same(every, some)


@pytest.mark.parametrize("method", ["exact", "grid", "search"])
@pytest.mark.parametrize("cv", ["loo", 5])
def test_every_method_takes_weights(method: str, cv: Any) -> None:
    one = Problem(4)
    weights = 0.3 * one.weights
    options: dict[str, Any] = {"cv": cv, "gammas": [5.0], "taus": [1, 2, 3], "tol": 0.0}
    options["rule"] = "minimum"
    exact = SparseRidgeCV(**options).fit(one.X, one.y, sample_weight=weights)
    found = SparseRidgeCV(method=method, **options).fit(one.X, one.y, sample_weight=weights)
    assert (found.tau_, found.gamma_) == (exact.tau_, exact.gamma_)
    assert found.cv_error_ == pytest.approx(exact.cv_error_, rel=1e-9)
    np.testing.assert_array_equal(found.support_, exact.support_)
    assert (found.cv_results_["lower"] <= exact.cv_results_["cv_error"] * (1 + 1e-9)).all()
    assert (exact.cv_results_["cv_error"] <= found.cv_results_["upper"] * (1 + 1e-9)).all()


def test_weights_beyond_the_trees() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 48))
    y = X[:, 3] - X[:, 40] + 0.3 * rng.standard_normal(24)
    weights = rng.integers(1, 4, 24).astype(float)
    rows = np.repeat(np.arange(24), weights.astype(int))
    common: dict[str, Any] = {"gammas": [1.0, 10.0], "taus": [1, 2, 3], "prove": "all"}
    common["rule"] = "minimum"
    for cv, groups in (("loo", np.arange(24)), (LeaveOneGroupOut(), np.arange(24) % 4)):
        weighted = SparseRidgeCV(cv=cv, **common).fit(X, y, sample_weight=weights, groups=groups)
        repeated = SparseRidgeCV(cv=LeaveOneGroupOut(), **common).fit(
            X[rows], y[rows], groups=groups[rows]
        )
        assert_same(weighted, repeated)


def test_rows_of_weight_zero_do_not_change_which_columns_are_searched() -> None:
    """The number of columns that estimates search depends on the number of rows that count."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((360, 220))
    X[:, 1:] += 0.7 * X[:, :-1]
    y = X[:, :30] @ rng.standard_normal(30) + 5.0 * rng.standard_normal(360)
    weights = rng.uniform(0.5, 2.0, 360)
    weights[rng.permutation(360)[:90]] = 0.0
    label, fits = rng.integers(0, 5, 360), []
    for rows in (np.arange(360), np.flatnonzero(weights)):
        some = label[rows]
        folds = [(np.flatnonzero(some != j), np.flatnonzero(some == j)) for j in range(5)]
        model = SparseRidgeCV(cv=folds, time_limit=0.0)  # Estimates take what time they take.
        fits.append(model.fit(X[rows], y[rows], sample_weight=weights[rows]))
    every, counted = fits
    np.testing.assert_array_equal(every.support_, counted.support_)
    np.testing.assert_allclose(every.coef_, counted.coef_, rtol=1e-9, atol=1e-12)
    assert every.cv_error_ == pytest.approx(counted.cv_error_, rel=1e-9)


def test_a_row_of_weight_zero_is_bracketed_as_if_it_were_not_there() -> None:
    """Beyond 45 columns every fold of leave-one-out takes one row out, if only of zeros."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((70, 48))
    y = X[:, 3] - X[:, 40] + 0.3 * rng.standard_normal(70)
    weights = np.ones(70)
    weights[[0, 9, 69]] = 0.0
    there = weights > 0.0
    common: dict[str, Any] = {
        "cv": "loo",
        "gammas": [1.0],
        "taus": [2, 4],
        "method": "search",
        "tol": 0.99,
    }
    with_them = SparseRidgeCV(**common).fit(X, y, sample_weight=weights)
    without = SparseRidgeCV(**common).fit(X[there], y[there])
    for name in ("lower", "upper", "cv_error"):
        np.testing.assert_allclose(
            with_them.cv_results_[name], without.cv_results_[name], rtol=1e-6, atol=1e-9
        )


def test_a_row_of_weight_two_allows_as_many_sizes_as_two_rows() -> None:
    """Beyond 168 columns the number of rows decides how many sizes there are."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 180))
    y = X[:, 3] - X[:, 100] + 0.3 * rng.standard_normal(40)
    groups, twice = np.arange(40) % 4, np.repeat(np.arange(40), 2)
    common: dict[str, Any] = {"cv": LeaveOneGroupOut(), "gammas": [1.0], "time_limit": 0}
    common["rule"] = "minimum"
    weighted = SparseRidgeCV(**common).fit(X, y, sample_weight=np.full(40, 2.0), groups=groups)
    repeated = SparseRidgeCV(**common).fit(X[twice], y[twice], groups=groups[twice])
    assert weighted.taus_.tolist() == repeated.taus_.tolist()
    assert weighted.taus_[-1] * np.log(weighted.taus_[-1]) > 40.0
    np.testing.assert_array_equal(weighted.support_, repeated.support_)
    assert weighted.cv_error_ == pytest.approx(repeated.cv_error_, rel=1e-9)


@pytest.mark.parametrize("rule", ["minimum", None])
def test_a_fold_that_holds_out_weight_zero_alone_is_no_fold(rule: str | None) -> None:
    """It has no error, so that standard errors over folds do not count it."""
    one = Problem(7)
    there = one.weights > 0.0
    pairs, every = one.pairs(4), np.arange(one.y.size)
    none = np.flatnonzero(~there)
    pairs = [(train, np.setdiff1d(test, none)) for train, test in pairs]
    common: dict[str, Any] = {"gammas": GAMMAS, "rule": rule, **one.options}
    fits = [
        SparseRidgeCV(cv=folds, **common).fit(one.X, one.y, sample_weight=one.weights)
        for folds in (pairs, [*pairs, (every[there], none)])
    ]
    without, with_it = fits
    assert_same(with_it, without)
    np.testing.assert_allclose(
        with_it.cv_results_["std_error"], without.cv_results_["std_error"], rtol=1e-9
    )
    np.testing.assert_allclose(
        with_it.path_["std_error"], without.path_["std_error"], rtol=1e-9, atol=1e-12
    )


def test_a_fold_of_weight_zero_has_no_part_in_a_correction() -> None:
    one = Problem(8)
    fold, weights = np.arange(one.y.size) % 5, one.weights.copy()
    weights[fold > 2] = 0.0
    every, kept = np.full(fold.size, True), fold <= 2
    paths = []
    for some in (every, kept):
        model = SparseRidgeCV(cv=fold[some], rule="corrected", gammas=GAMMAS, **one.options)
        model.fit(one.X[some], one.y[some], sample_weight=weights[some])
        paths.append(model.compare().loc["corrected"])
    assert paths[0]["criterion"] == pytest.approx(paths[1]["criterion"], rel=1e-9)


@pytest.mark.parametrize("seed", range(50))
def test_one_pair(seed: int) -> None:
    one = Problem(seed)
    tau = 1 + seed % one.X.shape[1]
    for gamma in GAMMAS:
        weighted = SparseRidge(tau, gamma, **one.options).fit(
            one.X, one.y, sample_weight=one.weights
        )
        repeated = SparseRidge(tau, gamma, **one.options).fit(one.X[one.rows], one.y[one.rows])
        np.testing.assert_array_equal(weighted.support_, repeated.support_)
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9, atol=1e-12)
        assert weighted.intercept_ == pytest.approx(repeated.intercept_, rel=1e-9, abs=1e-9)
        assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)


def test_a_row_of_nearly_all_the_weight_is_predicted_from_the_others() -> None:
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((24, 3)), rng.uniform(1.0, 2.0, 24)
    y, weights[5] = X[:, 0] + rng.standard_normal(24), 1e12
    data = RowFolds(RowTable(X, y, True, weights), make_folds("loo", 24))
    found = evaluate(data, [1.0], [1, 2])
    (one,), problem, (row, target) = found.by_gamma, data.training(5), data.held_out(5)
    assert found.complete
    for t in range(2):
        support = one.supports[one.choice[t, 5]]
        residual = target - row[:, support] @ problem.replace(gamma=1.0).fit(support).coef
        assert one.fold_error[t, 5] == pytest.approx(float(residual @ residual), rel=1e-12)


def test_one_weight_for_all_scales_the_penalty() -> None:
    """Weights w and γ w have the coefficients of weights 1 and γ."""
    one = Problem(2)
    common: dict[str, Any] = {"cv": 4, "rule": "minimum"}
    plain = SparseRidgeCV(gammas=GAMMAS, **common).fit(one.X, one.y)
    doubled = SparseRidgeCV(gammas=2.0 * np.array(GAMMAS), **common).fit(
        one.X, one.y, sample_weight=2.0
    )
    np.testing.assert_allclose(
        doubled.cv_results_["cv_error"], plain.cv_results_["cv_error"], rtol=1e-9
    )
    np.testing.assert_allclose(doubled.coef_, plain.coef_, rtol=1e-9, atol=1e-12)


def test_metadata_routing() -> None:
    """scikit-learn's own cross-validation hands weights and groups to every fit."""
    one = Problem(8)
    n = one.y.size
    outer = [(np.arange(n) % 3 != j, np.arange(n) % 3 == j) for j in range(3)]
    splits = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in outer]
    with config_context(enable_metadata_routing=True):
        model = SparseRidgeCV(cv=LeaveOneGroupOut(), gammas=[0.5, 5.0], rule="minimum")
        model.set_fit_request(sample_weight=True, groups=True).set_score_request(
            sample_weight=False
        )
        found = cross_validate(
            model,
            one.X,
            one.y,
            cv=splits,
            params={"sample_weight": one.weights, "groups": one.groups},
            return_estimator=True,
        )["estimator"]
    for (train, _), routed in zip(splits, found, strict=True):
        X, y, weights = one.X[train], one.y[train], one.weights[train]
        direct = SparseRidgeCV(cv=LeaveOneGroupOut(), gammas=[0.5, 5.0], rule="minimum").fit(
            X, y, sample_weight=weights, groups=one.groups[train]
        )
        np.testing.assert_array_equal(routed.coef_, direct.coef_)
        assert routed.cv_error_ == direct.cv_error_


@pytest.mark.parametrize("rule", ["minimum", "projected", "stability"])
@pytest.mark.parametrize("partition", [True, False])
def test_a_fold_that_trains_on_rows_of_weight_zero_alone(rule: str, partition: bool) -> None:
    if not partition and rule == "stability":
        pytest.skip("this rule needs a partition")
    X = np.random.default_rng(0).standard_normal((12, 3))
    weights = np.repeat([1.0, 0.0], 6)
    cv = [(np.arange(6), np.arange(6, 12)), (np.arange(6, 12), np.arange(6 if partition else 5))]
    model = SparseRidgeCV(cv=cv, gammas=[1.0], rule=rule)
    with pytest.raises(InputError, match="all training rows of fold 2 of 2 have weight 0: draw"):
        model.fit(X, X[:, 0], sample_weight=weights)


@pytest.mark.parametrize("cv", ["time:3", [(np.arange(6), np.arange(6, 9))], [-1] * 3 + [0] * 6])
def test_folds_that_hold_out_rows_of_weight_zero_alone(cv: Any) -> None:
    X = np.random.default_rng(0).standard_normal((9, 3))
    weights = np.repeat([1.0, 0.0], [2, 7])
    model = SparseRidgeCV(cv=cv, gammas=[1.0], rule="minimum")
    with pytest.raises(InputError, match="all rows that the folds hold out have weight 0"):
        model.fit(X, X[:, 0], sample_weight=weights)
