"""The optimizers for PySINDy: equations are the best ones, and scikit-learn's rules hold."""

from __future__ import annotations

import importlib
import pickle
import sys
from contextlib import nullcontext
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, PredefinedSplit
from support.clocks import WorkClock
from support.stand_ins import StandIn

from sparsecv.errors import InputError, UnprovedWarning

REASON = "PySINDy is not installed: pip install 'sparsecv[pysindy]'"
pysindy = pytest.importorskip("pysindy", reason=REASON)
ours = importlib.import_module("sparsecv.integrations.pysindy")
SparseRidgeOptimizer, SparseRidgeCVOptimizer = (
    ours.SparseRidgeOptimizer,
    ours.SparseRidgeCVOptimizer,
)


def system(seed: int = 0, n: int = 40, p: int = 5, q: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-1, 1, p)
    W = rng.standard_normal((p, q)) * (rng.random((p, q)) < 0.5)
    return X, X @ W + 0.1 * rng.standard_normal((n, q))


def objective(X: np.ndarray, y: np.ndarray, support: tuple[int, ...], alpha: float) -> float:
    if not support:
        return float(y @ y)
    A = np.vstack([X[:, support], np.sqrt(alpha) * np.eye(len(support))])
    b = np.concatenate([y, np.zeros(len(support))])
    return float(np.square(b - A @ np.linalg.lstsq(A, b, rcond=None)[0]).sum())


def least(X: np.ndarray, y: np.ndarray, alpha: float) -> list[float]:
    """The least objective of every size."""
    p = X.shape[1]
    return [min(objective(X, y, S, alpha) for S in combinations(range(p), k)) for k in range(p + 1)]


@pytest.mark.parametrize("alpha", [0.0, 1e-5, 1.0])
@pytest.mark.parametrize("caps", [None, (1, 3), (4, 0)])
@pytest.mark.parametrize("total", [None, 1, 4])
def test_the_best_equations(total: int | None, caps: Any, alpha: float) -> None:
    X, Y = system(1)
    if total is None and caps is None:
        with pytest.raises(InputError, match="target_sparsity or group_sparsity"):
            SparseRidgeOptimizer(target_sparsity=None).fit(X, Y)
        return
    found = SparseRidgeOptimizer(total, caps, alpha).fit(X, Y)
    by_size = [least(X, y, alpha) for y in Y.T]
    most = [5, 5] if caps is None else caps
    known = min(
        by_size[0][a] + by_size[1][b]
        for a, b in product(range(most[0] + 1), range(most[1] + 1))
        if total is None or a + b <= total
    )
    assert np.sum(found.objective_) == pytest.approx(known, rel=1e-9)
    assert np.sum(found.lower_bound_) <= known * (1.0 + 1e-12)
    assert np.all(found.proved_)
    assert np.all(np.asarray(found.gap_) <= 2e-6)
    residual = Y - X @ found.coef_.T
    attained = np.square(residual).sum() + alpha * np.square(found.coef_).sum()
    assert attained == pytest.approx(known, rel=1e-8)
    assert (found.ind_ == (found.coef_ != 0.0)).all()
    assert found.complexity == np.count_nonzero(found.coef_)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("order", ["target", "feature"])
@pytest.mark.parametrize("sizes", [{"target_sparsity": 4}, {"group_sparsity": (3, 3)}])
def test_constraints_fix_coefficients(sizes: dict[str, Any], order: str, normalize: bool) -> None:
    X, Y = system(2)
    left, right = np.zeros((3, 2, 5)), np.array([4.0, 0.0, -1.0])
    left[0, 0, 1], left[1, 0, 2], left[2, 1, 3] = 2.0, 1.0, 1.0
    rows = left if order == "target" else left.transpose(0, 2, 1)
    options = {"target_sparsity": None, "alpha": 0.1, "normalize_columns": normalize} | sizes
    opt = SparseRidgeOptimizer(
        constraint_lhs=rows.reshape(3, -1), constraint_rhs=right, constraint_order=order, **options
    )
    opt.fit(X, Y)
    assert opt.coef_[0, 1] == pytest.approx(2.0)
    assert opt.coef_[0, 2] == 0.0
    assert opt.coef_[1, 3] == pytest.approx(-1.0)
    most = sizes.get("group_sparsity", (5, 5))
    scale = np.linalg.norm(X, axis=0) if normalize else np.ones(5)
    U, best = X / scale, {}
    for t, fixed in enumerate([{1: 2.0, 2: 0.0}, {3: -1.0}]):
        weights = {j: value * scale[j] for j, value in fixed.items()}
        y = Y[:, t] - sum(U[:, j] * w for j, w in weights.items())
        free = [j for j in range(5) if j not in fixed]
        best[t] = [
            0.1 * sum(w * w for w in weights.values()) + f for f in least(U[:, free], y, 0.1)
        ]
    known = min(
        best[0][a] + best[1][b]
        for a, b in product(range(4), range(5))
        if a + 1 <= most[0] and b + 1 <= most[1] and a + b + 2 <= sizes.get("target_sparsity", 10)
    )
    assert np.sum(opt.objective_) == pytest.approx(known, rel=1e-9)


def test_constraints_that_all_say_zero() -> None:
    X, Y = system(3)
    left = np.eye(10)[:5]
    opt = SparseRidgeOptimizer(3, constraint_lhs=left, constraint_rhs=np.zeros(5)).fit(X, Y)
    assert not opt.coef_[0].any()
    assert opt.proved_


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"target_sparsity": 0}, "target_sparsity"),
        ({"target_sparsity": True}, "target_sparsity"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": np.nan}, "alpha"),
        ({"constraint_order": "row"}, "constraint_order"),
        ({"group_sparsity": (1,)}, "group_sparsity"),
        ({"group_sparsity": (1, 2.5)}, "group_sparsity"),
        ({"constraint_lhs": np.eye(10)[:1]}, "constraint_rhs"),
        ({"constraint_lhs": np.ones((1, 10)), "constraint_rhs": [1.0]}, "10 entries"),
        ({"constraint_lhs": np.eye(3), "constraint_rhs": np.ones(3)}, r"\(3, 10\)"),
        ({"constraint_lhs": np.eye(10)[[0, 0]], "constraint_rhs": [1, 2]}, "contradicts"),
        ({"constraint_lhs": np.eye(10), "constraint_rhs": np.ones(10)}, "raise it"),
        ({"constraint_lhs": np.eye(10)[:1], "constraint_rhs": [1], "unbias": True}, "unbias"),
    ],
)
def test_one_line_says_what_is_wrong(options: dict[str, Any], says: str) -> None:
    X, Y = system()
    with pytest.raises(InputError, match=says):
        SparseRidgeOptimizer(**options).fit(X, Y)
    opt = SparseRidgeOptimizer()
    with pytest.raises(InputError, match=says):
        opt.set_params(**options).fit(X, Y)


def test_clone_set_params_and_pickle() -> None:
    X, Y = system()
    guess = np.ones(5)
    opt = SparseRidgeOptimizer(3, alpha=0.5, initial_guess=guess, constraint_order="feature")
    again = clone(opt)
    assert str(again.get_params()) == str(opt.get_params())
    assert opt.set_params(alpha=0.0) is opt
    opt.fit(X, Y[:, 0])
    assert opt.initial_guess is guess
    clone(opt)
    kept = pickle.loads(pickle.dumps(opt))
    np.testing.assert_array_equal(kept.coef_, opt.coef_)
    np.testing.assert_array_equal(kept.predict(X), opt.predict(X))
    with pytest.raises(ValueError, match="initial_guess"):
        opt.fit(X, Y)


def test_grid_search() -> None:
    X, Y = system()
    grid = {"target_sparsity": [1, 3, 6], "alpha": [0.0, 1.0]}
    search = GridSearchCV(SparseRidgeOptimizer(), grid, cv=3).fit(X, Y)
    assert search.best_params_["target_sparsity"] in (3, 6)
    model = pysindy.SINDy(optimizer=SparseRidgeOptimizer())
    assert model.set_params(optimizer__alpha=0.25).optimizer.alpha == 0.25


def test_weights_count_rows() -> None:
    X, Y = system()
    weights = np.random.default_rng(0).integers(0, 3, X.shape[0])
    twice = np.repeat(np.arange(X.shape[0]), weights)
    options = {"target_sparsity": 3, "alpha": 0.3}
    a = SparseRidgeOptimizer(**options).fit(X, Y, sample_weight=weights)
    b = SparseRidgeOptimizer(**options).fit(X[twice], Y[twice])
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-8)
    X[3, 0] = np.nan
    rest = np.arange(X.shape[0]) != 3
    c = SparseRidgeOptimizer(**options).fit(X, Y, sample_weight=weights)
    d = SparseRidgeOptimizer(**options).fit(X[rest], Y[rest], sample_weight=weights[rest])
    np.testing.assert_allclose(c.coef_, d.coef_)


@pytest.mark.parametrize("optimizer", [SparseRidgeOptimizer, SparseRidgeCVOptimizer])
def test_rows_and_weights_that_are_refused(optimizer: Any) -> None:
    X, Y = system()
    alone = np.where(np.arange(40)[:, None] == 7, [0, 0, 1.0, 0, 0], X * [1, 1, 0, 1, 1])
    tiny = X * [1, 1, 1e-170, 1, 1]
    for x, weights, says in (
        (X, np.ones(41), r"sample_weight needs one number, or one for each of 40 rows"),
        (X, np.arange(-1.0, 39.0), r"finite numbers >= 0"),
        (X, np.full(40, np.nan), r"finite numbers >= 0"),
        (X, "many", "sample_weight must hold numbers"),
        (alone, np.arange(40) != 7, "column 2 of the library is zero, or nearly"),
        (tiny, None, "column 2 of the library is zero, or nearly"),
        (np.full(X.shape, "a"), None, "the library must hold numbers"),
    ):
        with pytest.raises(InputError, match=says):
            optimizer(normalize_columns=True).fit(x, Y, sample_weight=weights)
    found = optimizer().fit(X.astype(object), Y.astype(object), sample_weight=2)
    np.testing.assert_array_equal(found.coef_, optimizer().fit(X, Y, sample_weight=2.0).coef_)


def test_normalised_columns_and_unbiased_coefficients() -> None:
    X, Y = system(4)
    X *= 1e9  # unbias keeps coefficients below 1e-14 where columns are long
    Y *= 1e-7
    opt = SparseRidgeOptimizer(4, alpha=10.0, normalize_columns=True, unbias=True).fit(X, Y)
    assert opt.complexity == 4
    for t in range(2):
        S = np.flatnonzero(opt.coef_[t])
        np.testing.assert_allclose(opt.coef_[t, S], np.linalg.lstsq(X[:, S], Y[:, t])[0], rtol=1e-8)
    X[:, 2] = 0.0
    with pytest.raises(InputError, match="column 2"):
        opt.fit(X, Y)


def test_a_limit_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 150)), rng.standard_normal(60)
    opt = SparseRidgeOptimizer(
        None, (12,), alpha=1e-3, regression_timeout=0.01, verbose=True, unbias=True
    )
    with pytest.warns(UnprovedWarning, match="not proved"):
        opt.fit(X, y)
    assert opt.proved_ == [False]
    assert opt.status_ != ["optimal"]
    assert opt.lower_bound_[0] <= opt.objective_[0]
    assert "sparsecv: " in capsys.readouterr().out


def trajectories() -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Three trajectories of x' = -2x, y' = x - y² with a little noise, and their derivatives."""
    rng = np.random.default_rng(0)
    states, slopes, labels = [], [], []
    for label in range(3):
        x = rng.uniform(-2, 2, (30, 2))
        slope = np.column_stack([-2.0 * x[:, 0], x[:, 0] - x[:, 1] ** 2])
        states.append(x)
        slopes.append(slope + 0.05 * rng.standard_normal(slope.shape))
        labels += [label] * 30
    return states, slopes, np.array(labels)


@pytest.mark.parametrize("grouped", [True, False])
def test_sizes_by_cross_validation_over_trajectories(grouped: bool) -> None:
    states, slopes, labels = trajectories()
    opt = SparseRidgeCVOptimizer(groups=labels if grouped else None, max_size=4, cv=3)
    model = pysindy.SINDy(optimizer=opt, feature_library=pysindy.PolynomialLibrary(2))
    model.fit(states, t=0.1, x_dot=slopes)
    fitted = model.optimizer
    assert fitted.sizes_ == [1, 2]
    assert fitted.proved_ == [True, True]
    assert set(fitted.alpha_) <= {0.0, 1e-5, 1e-2}
    np.testing.assert_allclose(fitted.coef_[0, 1], -2.0, atol=0.1)
    library = np.asarray(model.feature_library.fit_transform(np.vstack(states)))
    for t, (size, alpha, error) in enumerate(
        zip(fitted.sizes_, fitted.alpha_, fitted.cv_error_, strict=True)
    ):
        squares = 0.0
        y = np.vstack(slopes)[:, t]
        for train, test in LeaveOneGroupOut().split(y, groups=labels):
            best = SparseRidgeOptimizer(size, alpha=alpha).fit(library[train], y[train])
            squares += np.square(y[test] - library[test] @ best.coef_[0]).sum()
        assert error == pytest.approx(squares / y.size, rel=1e-6)


@pytest.mark.parametrize("kind", ["pairs", "numbers", "splitter", "masks"])
def test_folds_name_rows_as_they_are_given(kind: str) -> None:
    """Rows with NaN are left out of the folds that hold them, and the other rows stay in theirs."""
    X, Y = system(n=41)
    X[5, 1] = np.nan
    numbers = np.arange(41) // 14
    splitter = PredefinedSplit(numbers)
    pairs = list(splitter.split())
    masks = [[np.isin(np.arange(41), rows) for rows in pair] for pair in pairs]
    cv = {"pairs": pairs, "numbers": numbers, "splitter": splitter, "masks": masks}[kind]
    found = SparseRidgeCVOptimizer(cv=cv, max_size=3).fit(X, Y)
    kept = np.delete(np.arange(41), 5)
    right = SparseRidgeCVOptimizer(cv=numbers[kept], max_size=3).fit(X[kept], Y[kept])
    assert found.cv_error_ == right.cv_error_
    assert found.alpha_ == right.alpha_
    np.testing.assert_array_equal(found.coef_, right.coef_)


def test_what_cross_validation_is_refused_or_finds_nothing_in() -> None:
    X, Y = system()
    for options, says in (
        ({"cv": 1}, "cv"),
        ({"max_size": 0}, "max_size"),
        ({"groups": np.zeros(40)}, "one trajectory"),
        ({"groups": np.zeros(7)}, "one entry per row"),
        ({"groups": ["a", 1, None, 2.0] * 10}, "row 2 has no group"),
    ):
        with pytest.raises(InputError, match=says):
            SparseRidgeCVOptimizer(**options).fit(X, Y)
    Y[:, 1] = 0.0
    opt = clone(SparseRidgeCVOptimizer(max_size=3)).fit(X, Y)
    assert opt.sizes_[1] == 0
    assert opt.models_[1] is None
    pickle.loads(pickle.dumps(opt))


@pytest.mark.parametrize("delay", [0.0, 0.7, 1.2])
@pytest.mark.parametrize("sizes_by_cv", [True, False])
def test_all_equations_share_one_limit(
    sizes_by_cv: bool, delay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven equations that each take all of their share, and are late, end within the limit."""
    given: list[float] = []

    def take(seconds: float) -> None:
        given.append(seconds)
        clock.now += seconds + delay

    class Watched(ours.SparseRidgeCV):  # type: ignore[misc, name-defined]
        def fit(self, *rows: Any, **how: Any) -> Any:
            take(self.time_limit)
            return self.set_params(time_limit=None).fit_as_ever(*rows, **how)

        fit_as_ever = ours.SparseRidgeCV.fit

    def watched(problem: Any, time_limit: float, **how: Any) -> Any:
        take(time_limit)
        return solve(problem, **how)

    solve = ours.solve
    monkeypatch.setattr(ours, "SparseRidgeCV", Watched)
    monkeypatch.setattr(ours, "solve", watched)
    X, Y = system(3, p=4, q=7)
    Y[:, 2] = 0.0  # is no work, and what its share leaves goes to the others
    if sizes_by_cv:
        optimizer = SparseRidgeCVOptimizer(cv=2, max_size=2)
    else:
        optimizer = SparseRidgeOptimizer(None, [2, 2, 0, 2, 2, 2, 2], regression_timeout=20)
    with WorkClock() as clock:
        optimizer.fit(X, Y)
    assert optimizer.regression_timeout == 20
    assert len(given) == 6
    assert given[0] == pytest.approx(19.0 / 7.0)
    assert clock.now == pytest.approx(19.0 + min(delay, 1.0))


def test_one_line_shows_all_equations(stand_in: StandIn) -> None:
    shown: list[Any] = []
    stand_in(display=lambda steps: shown.append(steps) or nullcontext(steps))
    X, Y = system(3, q=3)
    SparseRidgeCVOptimizer(cv=2).fit(X, Y)
    assert len(shown) == 1
    assert shown[0].done >= 2


def test_without_pysindy_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pysindy.optimizers.base", None)
    monkeypatch.delitem(sys.modules, "sparsecv.integrations.pysindy")
    with pytest.raises(ImportError, match=r"sparsecv\[pysindy\]"):
        importlib.import_module("sparsecv.integrations.pysindy")
