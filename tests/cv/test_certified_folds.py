"""Random fold schemes on fresh seeds: intervals hold h by enumeration, τ is the best one."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.model_selection import ShuffleSplit, TimeSeriesSplit

from sparsecv import SparseRidgeCV
from sparsecv.cv import prove
from sparsecv.cv.engine import cross_validate
from sparsecv.cv.ledger import Page
from sparsecv.cv.settings import Settings
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.errors import UnprovedWarning
from sparsecv.solvers import Limits, Status, best_subsets, solve
from tests.cv_brute_force import brute_force, inside, standardised
from tests.fresh import draws

Pairs = list[tuple[NDArray[np.intp], NDArray[np.intp]]]


def random_pairs(rng: np.random.Generator, n: int) -> Pairs:
    """Training and held-out rows that need not be all rows, may overlap from fold to fold."""
    pairs = []
    for _ in range(int(rng.integers(1, 5))):
        rows = rng.permutation(n)
        held, left = int(rng.integers(1, n // 2)), int(rng.integers(0, n // 3))
        pairs.append((np.sort(rows[held + left :]), np.sort(rows[:held])))
    return pairs


def scheme(rng: np.random.Generator, n: int) -> Any:
    kind = int(rng.integers(6))
    if kind == 0:
        return TimeSeriesSplit(int(rng.integers(2, 5)))
    if kind == 1:
        shares = {"train_size": rng.uniform(0.3, 0.6), "test_size": rng.uniform(0.1, 0.4)}
        return ShuffleSplit(3, random_state=int(rng.integers(1000)), **shares)
    if kind == 2:
        return int(rng.integers(2, 6))
    if kind == 3:
        return "loo"
    return random_pairs(rng, n)


def check(
    X: Any, y: Any, cv: Any, gamma: float, refit: bool, settings: Settings, note: str
) -> None:
    data = RowFolds(X, y, make_folds(cv, y.size, seed=0), refit)
    taus = np.arange(1, X.shape[1] + 1)
    pairs = [data.folds.split(j) for j in range(data.folds.k)]
    truth = brute_force(X, y, pairs, [gamma], taus, refit)
    result = cross_validate(data, [gamma], taus, settings)
    held = inside(result.table("lower"), result.table("upper"), truth, 1e-6)
    assert held.all(), f"{note}: {settings.method} at τ = {taus[~held[0]]}"
    best = result.best()
    if settings.method == "search" and best.certified:
        rounding = (1e-6 + 10.0 * truth.slack.max()) * truth.size**2
        chosen, least = float(truth.low[0, best.tau_index]), float(truth.high.min())
        assert chosen <= least * (1.0 + 1e-6) / (1.0 - settings.tol) + rounding, note


@pytest.mark.parametrize("method", ["search", "bounds"])
def test_rows_that_no_fold_sees(method: str) -> None:
    """Corollary 3 needs the optimum on the rows of the fold, not on all rows."""
    rng = np.random.default_rng(55)
    X = rng.normal(size=(40, 5))
    y = X[:, 0] + X[:, 1] / 2 + rng.normal(size=40)
    cv, gamma, taus = TimeSeriesSplit(4), 0.1, np.arange(1, 6)
    A, b, _ = standardised(X, y, intercept=True)
    truth = brute_force(A, b, list(cv.split(X)), [gamma], taus, True)
    fitted = SparseRidgeCV(cv=cv, gammas=[gamma], method=method, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedWarning)
        fitted.fit(X, y)
    held = inside(fitted.surface_["lower"], fitted.surface_["upper"], truth)
    assert held.all(), f"wrong at τ = {taus[~held[0]]}"
    if method == "search":
        assert fitted.certified_
        assert fitted.tau_ == 3
        assert fitted.cv_error_ == pytest.approx(1.2990977540)


def test_unfinished_proofs_of_rows_that_no_fold_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where the models of all rows are proved and the folds are not."""
    rng = np.random.default_rng(55)
    X = rng.normal(size=(40, 5))
    y = X[:, 0] + X[:, 1] / 2 + rng.normal(size=40)
    X, y, _ = standardised(X, y, intercept=True)
    data = RowFolds(X, y, make_folds(TimeSeriesSplit(4), 40), True)
    taus, gamma = np.arange(1, 6), 0.1
    page = Page(data, gamma, taus)
    found = [solve(data.full().replace(gamma=gamma, tau=int(tau)), tol=0.0) for tau in taus]
    page.models = [one.support for one in found]
    page.model_bound = np.array([one.lower_bound for one in found])
    page.take_over()
    options: dict[str, Any] = {"everything": True, "n_jobs": 1, "tell": print, "save": print}
    prover = prove.Prover(data, [page], Limits(1e-9), **options)
    prover.run()
    unfinished = dataclasses.replace(found[0], status=Status.TIME_LIMIT)
    monkeypatch.setattr(prove, "branch_and_bound", lambda *_, **__: unfinished)
    for t, j in np.ndindex(page.lower.shape):
        proof = prove.prove_fold(prover._folding, *prover._task(page, t, j, None), Limits())
        prover._enter(page, t, j, proof)
    truth = brute_force(X, y, data.folds.pairs, [gamma], taus, True)
    low, high = page.sums()
    held = inside(low / data.total, high / data.total, truth)
    assert held.all(), f"wrong at τ = {taus[~held[0]]}"
    assert page.lower.all()


def test_random_fold_schemes() -> None:
    for note, rng in draws(60, 30):
        n, p = int(rng.integers(12, 41)), int(rng.integers(2, 6))
        X = rng.normal(size=(n, p)) + rng.uniform(0, 2) * rng.normal(size=(n, 1))
        if rng.random() < 0.2:
            X[:, 1] = X[:, 0]
        y = X[:, :2] @ rng.normal(size=2) + 10.0 ** rng.uniform(-3, 1) * rng.normal(size=n)
        refit = bool(rng.random() < 0.5)
        if refit:
            X, y = X - X.mean(axis=0), y - y.mean()
        method = ("search", "bounds", "exact")[int(rng.integers(3))]
        bounds = ("best", "paper", "paper-exact")[int(rng.integers(3))]
        tol = float(rng.choice([0.0, 0.1]))
        settings = Settings(method, bounds=bounds, tol=tol)
        check(X, y, scheme(rng, n), 10.0 ** rng.uniform(-4, 2), refit, settings, note)


@pytest.mark.parametrize("method", ["exact", "search"])
def test_joint_leave_one_out_beyond_45_columns(method: str) -> None:
    """One tree of all rows for every fold, against a tree of the other kind for each."""
    for note, rng in draws(3, 31):
        n, p = int(rng.integers(22, 40)), int(rng.integers(47, 54))
        X = rng.normal(size=(n, p)) + rng.uniform(0, 1.5) * rng.normal(size=(n, 1))
        y = X[:, :3] @ rng.normal(size=3) + 10.0 ** rng.uniform(-1, 0.5) * rng.normal(size=n)
        data = RowFolds(X, y, make_folds("loo", n), bool(rng.random() < 0.5))
        gamma, taus = 10.0 ** rng.uniform(-1, 2), np.arange(1, 4)
        h = np.zeros(taus.size)
        for j in range(n):
            training = data.training(j).replace(gamma=gamma)
            best = best_subsets(training, sizes=taus, tol=0.0)
            assert best.proved.all()
            H, t = data.held_out(j)
            for i, support in enumerate(best.supports):
                h[i] += np.square(t - H[:, support] @ training.fit(support).coef).sum() / n
        for limit in (0.05, None):
            settings = Settings(method, tol=0.0, prove="all", time_limit=limit)
            result = cross_validate(data, [gamma], taus, settings)
            lower, upper = result.table("lower")[0], result.table("upper")[0]
            assert (lower <= h * (1.0 + 1e-7)).all(), note
            assert (upper >= h * (1.0 - 1e-7)).all(), note
            if limit is None:
                assert h[result.best().tau_index] == pytest.approx(h.min(), rel=1e-7), note
