"""Random fold schemes on fresh seeds: intervals hold h by enumeration, τ is the best one."""

from __future__ import annotations

import dataclasses
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import TimeSeriesSplit
from support.brute_force import exact_moments
from support.constrained import exact_fit, exact_value
from support.fold_attacks import FOLDS
from support.folds import brute_force, in_fold, inside, standardised
from support.fresh import draws
from support.inside import (
    CellProver,
    Leaves,
    Ledger,
    Limits,
    RowFolds,
    RowTable,
    RunPlan,
    Settings,
    cross_validate,
    make_folds,
)
from support.stand_ins import StandIn

from sparsecv import SparseRidgeCV
from sparsecv.cv.fold_proofs import ProofRun
from sparsecv.cv.needs import of_everything
from sparsecv.cv.shared_tree import SharedTree
from sparsecv.errors import UnprovedWarning
from sparsecv.solvers import Answer, Status, solve


@pytest.mark.parametrize("tol", [0.0, 0.99])
def test_rows_that_no_fold_sees(tol: float) -> None:
    """Corollary 3 needs the optimum on the rows of the fold, not on all rows."""
    rng = np.random.default_rng(55)
    X = rng.normal(size=(40, 5))
    y = X[:, 0] + X[:, 1] / 2 + rng.normal(size=40)
    cv, gamma, taus = TimeSeriesSplit(4), 0.1, np.arange(1, 6)
    A, b, _ = standardised(X, y, scale="none", intercept=True)
    truth = brute_force(A, b, list(cv.split(X)), [gamma], taus, True)
    fitted = SparseRidgeCV(cv=cv, gammas=[gamma], method="search", tol=tol, standardize=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedWarning)
        fitted.fit(X, y)
    held = inside(fitted.surface_["lower"][:, 1:], fitted.surface_["upper"][:, 1:], truth)
    assert held.all(), f"wrong at τ = {taus[~held[0]]}"
    if tol == 0.0:
        assert fitted.certified_
        assert fitted.tau_ == taus[np.argmin(truth.low[0])]
        assert fitted.cv_error_ == pytest.approx(truth.low.min())


def test_intervals_at_gamma_zero_hold_the_error_where_two_pairs_of_columns_nearly_tie() -> None:
    """What rounding and the working γ add to the objective is more than the pairs differ by."""
    for seed in (0, 15, 19):
        rng = np.random.default_rng(seed)
        x, along, across, left = np.linalg.qr(rng.standard_normal((8, 4)))[0].T
        apart, tilt = 10.0 ** rng.uniform(-8, -6), 10.0 ** rng.uniform(-5, -4)
        X = np.column_stack([x, x + apart * along, x + apart * (along + tilt * across)])
        y = along + tilt * (0.5 + 0.01 * rng.standard_normal()) * across
        y += 10.0 ** rng.uniform(-3, -2) * left
        joint, row, target = exact_moments(X, y), rng.standard_normal(3), rng.standard_normal(1)
        fits = [exact_fit(joint, 0.0, list(pair), {}) for pair in ((0, 1), (0, 2), (1, 2))]
        best = min(fits, key=lambda beta: exact_value(joint, 0.0, beta))
        error = float(target[0] - sum(Fraction(float(row[j])) * v for j, v in best.items())) ** 2
        folds = make_folds([(np.arange(8), np.array([8]))], 9)
        data = RowFolds(RowTable(np.vstack([X, row]), np.append(y, target)), folds)
        result = cross_validate(data, [0.0], [1, 2], Settings("exact"))
        low, high = (float(result.table(name)[0, 1]) for name in ("lower", "upper"))
        assert low * (1.0 - 1e-6) <= error <= high * (1.0 + 1e-6), seed


@pytest.mark.parametrize("number", [2582, 2656])
def test_errors_at_gamma_zero_are_not_those_at_the_working_gamma(number: int) -> None:
    """In these draws a trace of ridge moved errors that were called exact by 1e-10 of them."""
    rng = np.random.default_rng([20261125, 18, number])
    assert list(FOLDS["dependent rows"](rng, number)) == []


def test_unfinished_proofs_of_rows_that_no_fold_sees(stand_in: StandIn) -> None:
    """The same where the models of all rows are proved and the folds are not."""
    rng = np.random.default_rng(55)
    X = rng.normal(size=(40, 5))
    y = X[:, 0] + X[:, 1] / 2 + rng.normal(size=40)
    X, y, _ = standardised(X, y, intercept=True)
    data = RowFolds(RowTable(X, y, True), make_folds(TimeSeriesSplit(4), 40))
    taus, gamma = np.arange(1, 6), 0.1
    ledger = Ledger(data, taus, [gamma])
    found = [solve(data.full().replace(gamma=gamma, tau=int(tau)), tol=0.0) for tau in taus]
    for t, one in enumerate(found):
        cell = 0, t, ledger.k
        ledger.enter_support(cell, one.support, one.objective, one.lower_bound, proved=False)
        ledger.offer(0, t, np.arange(data.folds.k), one.support)

    def run(batch: Any) -> list[Status]:
        return [
            batch.enter(index, batch.unit(batch.shared, *task, Limits()))
            for index, task in enumerate(batch.tasks)
        ]

    work = ProofRun(Limits(1e-9), None, run, print, print)
    prover = CellProver(ledger, [0], work, RunPlan.of(Settings(prove="all"), data))
    assert prover.prove(of_everything) == [0]
    unfinished = dataclasses.replace(found[0], status=Status.TIME_LIMIT)
    stand_in(branch_and_bound_of_folds=lambda *_, **__: unfinished)
    for t in range(taus.size):
        prover.prove_folds([(0, t, j) for j in range(data.folds.k)])
    truth = brute_force(X, y, data.folds.pairs, [gamma], taus, True)
    low, high = ledger.sums(ledger.cells.lower)[0], ledger.sums(ledger.cells.upper)[0]
    held = inside(low / data.total, high / data.total, truth)
    assert held.all(), f"wrong at τ = {taus[~held[0]]}"
    assert ledger.cells.lower[0, :, : data.folds.k].all()


def test_the_incumbent_of_an_unfinished_search_may_be_optimal() -> None:
    """A fold's interval holds the error of the incumbent, which may lie below no open node."""
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(30, 5)), rng.normal(size=30)
    gamma, taus = 1.0, np.array([2])
    data = RowFolds(RowTable(X, y), make_folds("loo", y.size))
    ledger = Ledger(data, taus, [gamma])
    shared, known = SharedTree.of(ledger, 0), np.array([0, 1])
    assert shared is not None
    beta = np.zeros((1, 5))
    beta[0, 2:4] = data.training(0).replace(gamma=gamma).fit([2, 3]).coef
    found = Answer(
        size=2,
        support=known,
        objective=data.training(0).replace(gamma=gamma).objective(known),
        lower_bound=0.0,
        status=Status.TIME_LIMIT,
        # The support (2, 3) alone is open.
        leaves=Leaves.of(np.array([[2, 2, 1, 1, 2]], dtype=np.int8), beta, np.ones(1)),
    )
    shared.enter_fold(0, 0, found)
    error = ledger.incumbent.error[0, 0, 0]
    assert np.isfinite(ledger.cells.upper[0, 0, 0])
    assert ledger.cells.lower[0, 0, 0] <= error <= ledger.cells.upper[0, 0, 0]
    assert (0, 0) in shared.open
    # An imprecise answer leaves no nodes, from which the fold would be searched again in vain.
    shared.enter_fold(0, 0, dataclasses.replace(found, rounding=found.objective))
    assert (0, 0) not in shared.open


@pytest.mark.parametrize("taus", [[11], [1, 11], [10, 11]])
def test_gamma_zero_where_centring_takes_a_rank(taus: list[int]) -> None:
    """h(11) is that of least-norm fits, whichever other sizes are asked for."""
    errors, expected = [], []
    for seed in (0, 6, 8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((12, 11))
        X[:, 1] = X[:, 0] + rng.standard_normal(12)
        y = X[:, 2] + rng.standard_normal(12)
        found = SparseRidgeCV(cv="loo", gammas=[0.0], taus=taus, rule="minimum").fit(X, y)
        errors.append([found.surface_[name][0, -1] for name in ("lower", "upper")])
        A, b, _ = standardised(X, y, intercept=True)
        left = []
        for i in range(12):
            train = np.delete(np.arange(12), i)
            M, c, h, t = in_fold(A, b, train, np.array([i]), True)
            left.append(t[0] - h[0] @ np.linalg.lstsq(M, c, rcond=1e-12)[0])
        expected.append(np.mean(np.square(left)))
    np.testing.assert_allclose(errors, np.transpose([expected, expected]), rtol=1e-7)


COUNTS = {"fold schemes": 60, "leave-one-out": 4, "dependent rows": 20}


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_nothing_said_is_wrong(name: str, count: int) -> None:
    for number, (note, rng) in enumerate(draws(count, 30 + list(FOLDS).index(name))):
        wrong = list(FOLDS[name](rng, number))
        assert not wrong, f"{note}: {wrong}"
