"""Risk estimates against their definitions, and the bounds against simulations."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_score
from support.learners import inner_search
from support.problems import regression

from sparsecv import SparseRidge, risk
from sparsecv.errors import InputError

Array = NDArray[np.float64]


def made(n: int = 20) -> tuple[Array, Array]:
    return regression(n, 3, {0: 1.0})


# estimates


def test_k_fold_and_leave_one_out() -> None:
    X, y = made()
    folds = KFold(4, shuffle=True, random_state=0)
    found = risk.k_fold(Ridge(), X, y, cv=folds)
    parts = -cross_val_score(Ridge(), X, y, cv=folds, scoring="neg_mean_squared_error")
    np.testing.assert_allclose(found.parts, parts)
    assert found.value == pytest.approx(parts.mean())
    assert found.standard_error == pytest.approx(parts.std(ddof=1) / 2.0)
    loo = risk.leave_one_out(LinearRegression(), X, y)
    H = np.column_stack([np.ones(20), X])
    hat = H @ np.linalg.solve(H.T @ H, H.T)
    closed = ((y - hat @ y) / (1.0 - np.diag(hat))) ** 2
    np.testing.assert_allclose(loo.parts, closed, rtol=1e-9)
    assert risk.leave_p_out(LinearRegression(), X, y, 1).value == pytest.approx(loo.value)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_leave_p_out_is_the_mean_over_all_subsets(p: int) -> None:
    X, y = made(8)
    total = []
    for held in itertools.combinations(range(8), p):
        train = [i for i in range(8) if i not in held]
        model = Ridge().fit(X[train], y[train])
        total.append(np.mean((y[list(held)] - model.predict(X[list(held)])) ** 2))
    found = risk.leave_p_out(Ridge(), X, y, p)
    assert found.exact
    assert found.value == pytest.approx(np.mean(total), rel=1e-12)
    some = risk.leave_p_out(Ridge(), X, y, p, most=5)
    assert not some.exact
    assert some.parts.size == 5
    many = risk.leave_p_out(Ridge(), X, y, p, most=400 if p < 2 else 27, n_jobs=2)
    assert abs(many.value - found.value) <= 5.0 * many.standard_error + 1e-12


@pytest.mark.parametrize("model", [Ridge(), SparseRidge(2, 0.5)], ids=["ridge", "sparse"])
def test_both_forms_of_the_corrected_error(model: Any) -> None:
    """Its definition, and (5.1): R̂ + n_T/(nK) Σ_j (error on V_j − error on T_j)."""
    X, y = made(20)
    k, n = 4, 20
    pairs = list(KFold(k).split(X))
    found = risk.corrected_k_fold(model, X, y, cv=pairs)
    whole = np.mean((y - model.fit(X, y).predict(X)) ** 2)
    apart, on_all, held = [], [], []
    for train, test in pairs:
        losses = (y - model.fit(X[train], y[train]).predict(X)) ** 2
        apart.append(losses[test].mean() - losses[train].mean())
        on_all.append(losses.mean())
        held.append(losses[test].mean())
    assert found.value == pytest.approx(np.mean(held) + whole - np.mean(on_all), rel=1e-12)
    n_train = n - n // k
    second = whole + n_train / (n * k) * np.sum(apart)
    assert found.value == pytest.approx(second, rel=1e-12)


def test_repeated_folds() -> None:
    X, y = made(30)
    found = risk.repeated_k_fold(Ridge(), X, y, k=3, repeats=6, random_state=1)
    assert found.parts.size == 6
    assert np.unique(found.parts).size == 6
    assert found.value == pytest.approx(found.parts.mean())
    again = risk.repeated_k_fold(Ridge(), X, y, k=3, repeats=6, random_state=1)
    np.testing.assert_array_equal(found.parts, again.parts)
    corrected = risk.repeated_k_fold(Ridge(), X, y, k=3, repeats=6, corrected=True, random_state=1)
    assert corrected.value < found.value


def test_nested_cross_validation() -> None:
    X, y = made(24)
    values = {"alpha": [0.01, 1.0, 100.0]}
    pairs = list(KFold(4).split(X))
    found = risk.nested_cv(Ridge(), values, X, y, cv=pairs)
    for t, (_, test) in enumerate(pairs):
        chosen = inner_search(values, X, y, pairs, t)
        assert found.params[t] == chosen.best_params_
        error = np.mean((y[test] - chosen.predict(X[test])) ** 2)
        assert found.parts[t] == pytest.approx(error, rel=1e-12)
    assert found.value == pytest.approx(found.parts.mean())
    cheap = risk.nested_cv(Ridge(), values, X, y, cv=pairs, inner="development")
    for t, (train, _) in enumerate(pairs):
        dev = pairs[(t + 1) % 4][1]
        left = np.setdiff1d(train, dev)
        errors = [
            np.mean((y[dev] - Ridge(alpha=a).fit(X[left], y[left]).predict(X[dev])) ** 2)
            for a in values["alpha"]
        ]
        assert cheap.params[t] == {"alpha": values["alpha"][int(np.argmin(errors))]}


def test_a_development_set() -> None:
    X, y = made(40)
    labels = (y > 0).astype(int)
    found = risk.development_set(LogisticRegression(), {"C": [0.01, 1.0]}, X, labels, size=0.25)
    assert found.errors.shape == (2,)
    assert found.value == found.errors.min()
    expected = np.sqrt(2.0 / 10.0 * np.log(2 * 2 / 0.05))
    assert found.excess == pytest.approx(expected)
    with pytest.raises(InputError, match="loss_bound"):
        risk.development_set(Ridge(), {"alpha": [1.0]}, X, 100.0 * y)
    scaled = risk.development_set(Ridge(), {"alpha": [1.0]}, X, y, loss_bound=50.0, size=0.5)
    assert scaled.excess == pytest.approx(50.0 * np.sqrt(2.0 / 20.0 * np.log(2 / 0.05)))


def test_folds_of_classifiers_are_stratified() -> None:
    X, _ = made(20)
    y = np.array([1] * 4 + [0] * 16)
    found = risk.k_fold(LogisticRegression(), X, y, cv=4)
    assert found.parts.size == 4  # every training part has three of the rare class
    assert risk.repeated_k_fold(LogisticRegression(), X, y, k=4, repeats=3).parts.size == 3


# bounds


def test_formulas() -> None:
    M, mu, n, k, delta = 2.0, 0.01, 100, 5, 0.1
    found = risk.stability_bound(0.3, mu, n=n, k=k, loss_bound=M, delta=delta)
    assert found == pytest.approx(0.3 + np.sqrt((M**2 + 6 * M * k * mu) / (2 * k * delta)))
    found = risk.training_error_bound(0.3, mu, n=n, loss_bound=M, delta=delta)
    assert found == pytest.approx(0.3 + np.sqrt((M**2 + 12 * M * n * mu) / (2 * n * delta)))
    lam, L = 0.5, 3.0
    spread = (4 * lam + L) * np.sqrt(np.log(1 / delta) / (2 * n))
    options: dict[str, Any] = {"n": n, "stability": lam, "loss_bound": L, "delta": delta}
    split = {"n_train": 75, "n_validation": 25}
    assert risk.cv_deviation(**options, **split) == pytest.approx(lam * 25 / 75 + spread)
    assert risk.leave_p_out_deviation(p=10, **options) == pytest.approx(lam * 10 / 90 + spread)
    assert risk.k_fold_deviation(k=k, **options) == pytest.approx(lam / 4 + spread)
    assert risk.corrected_deviation(n_train=80, **options) == pytest.approx(
        2 * lam * (1 / 100 + 1 / 80) + 3 * spread
    )
    assert risk.corrected_k_fold_deviation(k=k, **options) == pytest.approx(
        6 * lam / 100 + 3 * spread
    )
    chosen = risk.selection_excess(models=7, **options)
    assert chosen == pytest.approx(
        12 * lam / 100 + 6 * (4 * lam + L) * np.sqrt(np.log(7 / delta) / n)
    )
    assert risk.k_fold_lower_bound(n=n, k=k, stability=lam) == pytest.approx(
        lam / (2 * 25) - 2 * lam / 100
    )
    # Corollary 5.1 follows from Theorem 5.1
    for k in (2, 4, 5, 10, 20, 50, 100):
        first = risk.corrected_deviation(n_train=n - n // k, **options)
        assert first <= risk.corrected_k_fold_deviation(k=k, **options) + 1e-12


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 0.1])
def test_bounds_are_no_nan_where_losses_are_0_and_delta_is_tiny(delta: float) -> None:
    none: dict[str, Any] = {"n": 10, "stability": 0.0, "loss_bound": 0.0, "delta": delta}
    assert risk.cv_deviation(n_train=5, n_validation=5, **none) == 0.0
    assert risk.corrected_deviation(n_train=5, **none) == 0.0
    assert risk.selection_excess(models=3, **none) == 0.0
    assert risk.development_set_bound(n_dev=10, models=3, delta=delta, loss_bound=0.0) == 0.0
    some = none | {"loss_bound": 1.0}
    spread = np.sqrt(-np.log(delta) / 20)
    assert risk.cv_deviation(n_train=5, n_validation=5, **some) == pytest.approx(spread)


def test_the_stability_of_ridge_is_infinite_where_it_overflows() -> None:
    def found(gamma: float, row: float, target: float) -> tuple[float, float]:
        return risk.ridge_stability(gamma=gamma, n=10, row_bound=row, target_bound=target)

    assert found(1e-300, 1e10, 1.0) == (np.inf, np.inf)
    assert found(5e-324, 1.0, 1.0) == (np.inf, np.inf)
    assert found(1.0, 1e200, 0.0) == (0.0, 0.0)  # Where every y is 0, so are all coefficients.


@pytest.mark.parametrize(("n", "k"), [(60, 2), (60, 3), (90, 2)])
def test_the_lower_bound_is_attained(n: int, k: int) -> None:
    """Theorem 4.1's learner: uniformly stable with 3λ/t, K-fold error off by λ/(2K²) − 2λ/n.

    Rows are points x_m = M·S_m of a grid, with S_m = 1 + 1/2 + … + 1/m, and y = x ± ε. After t
    training rows the learner predicts λ·S_min(m, t) ± ε at x_m.
    """
    stability, m = 1.5, np.arange(1, n + 1)
    sums, noise, M = np.cumsum(1.0 / m), 0.75 / n, max(np.log(n), 3.0)
    targets = M * sums + noise * np.where(m <= n // 2, 1.0, -1.0)

    def losses(training: Any) -> Array:
        side = np.sign(np.median(M * sums[training]) - M * sums)
        predicted = stability * sums[np.minimum(m, training.size) - 1] + noise * side
        return np.abs(predicted - targets)

    rng, gaps = np.random.default_rng(k), []
    for _ in range(200):
        rows = rng.integers(0, n, size=n)
        held = np.array_split(np.arange(n), k)
        errors = [losses(np.delete(rows, fold))[rows[fold]].mean() for fold in held]
        gaps.append(abs(np.mean(errors) - losses(rows).mean()))
    least = risk.k_fold_lower_bound(n=n, k=k, stability=stability)
    assert least > 0.0
    assert np.mean(gaps) >= least
    for t in (2, 5, n // 2, n):
        rows = rng.integers(0, n, size=n)[:t]
        for i in range(t):
            change = np.abs(losses(rows) - losses(np.delete(rows, i)))
            assert change.max() <= 3.0 * stability / t + 1e-12
    assert losses(rows).max() <= (M + 1.0) ** 2


def bounded(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Rows in the unit ball and |y| ≤ 1."""
    X = rng.uniform(-1.0, 1.0, size=(n, 2)) / np.sqrt(2.0)
    return X, np.clip(0.8 * X[:, 0] + 0.2 * rng.uniform(-1.0, 1.0, size=n), -1.0, 1.0)


def ridge(X: Array, y: Array, rho: float) -> Array:
    return np.linalg.solve(X.T @ X + y.size * rho * np.eye(X.shape[1]), X.T @ y)


def test_ridge_is_as_stable_as_claimed() -> None:
    rng = np.random.default_rng(0)
    for gamma in (1.0, 10.0, 100.0):
        n = 20
        lam, L = risk.ridge_stability(gamma=gamma, n=n, row_bound=1.0, target_bound=1.0)
        rho = gamma / (2.0 * n)
        Z, t = bounded(rng, 500)
        for size in (2, 5, 20):
            for _ in range(20):
                X, y = bounded(rng, size)
                whole = (t - Z @ ridge(X, y, rho)) ** 2
                assert whole.max() <= L
                for i in range(size):
                    less = ridge(np.delete(X, i, 0), np.delete(y, i), rho)
                    change = np.abs(whole - (t - Z @ less) ** 2)
                    assert change.max() <= lam / size


def test_coverage_of_the_bounds() -> None:
    """Ridge on bounded data: every bound holds far more often than it promises."""
    rng = np.random.default_rng(1)
    n, k, rho, delta = 40, 4, 5.0, 0.1
    lam, L = risk.ridge_stability(gamma=2.0 * n * rho, n=n, row_bound=1.0, target_bound=1.0)
    Z, t = bounded(rng, 20_000)
    label = np.arange(n) % k
    options: dict[str, Any] = {"n": n, "k": k, "stability": lam, "loss_bound": L}
    plain = risk.k_fold_deviation(**options, delta=delta / 2)
    corrected = risk.corrected_k_fold_deviation(**options, delta=delta / 6)
    misses = np.zeros(3)
    mu = []
    runs = []
    for _ in range(200):
        X, y = bounded(rng, n)
        whole = ridge(X, y, rho)
        true = np.mean((t - Z @ whole) ** 2)
        held, on_all, apart = [], [], []
        for j in range(k):
            beta = ridge(X[label != j], y[label != j], rho)
            losses = (y - X @ beta) ** 2
            held.append(losses[label == j].mean())
            on_all.append(losses.mean())
            apart.append(np.mean(np.abs((t - Z @ beta) ** 2 - (t - Z @ whole) ** 2)))
        cv = float(np.mean(held))
        corr = cv + np.mean((y - X @ whole) ** 2) - np.mean(on_all)
        misses += [abs(cv - true) > plain, abs(corr - true) > corrected, 0]
        mu.append(max(apart))
        runs.append((cv, true))
    stability = float(np.mean(mu))  # E max_j ≥ max_j E: μ_h is no larger
    for cv, true in runs:
        bound = risk.stability_bound(cv, stability, n=n, k=k, loss_bound=L, delta=delta)
        misses[2] += true > bound
    assert (misses / 200 <= delta).all()


def test_coverage_of_the_development_set_bound() -> None:
    rng = np.random.default_rng(2)
    risks = np.linspace(0.3, 0.7, 10)
    excess = risk.development_set_bound(n_dev=50, models=10, delta=0.1)
    missed = 0
    for _ in range(500):
        errors = rng.binomial(50, risks) / 50
        missed += risks[np.argmin(errors)] - risks.min() > excess
    assert missed / 500 <= 0.1
