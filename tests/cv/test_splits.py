"""The ledger of splits: errors of models that are judged on several sets, and their proofs."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from support.inside import Limits, RowFolds, RowTable, make_folds
from support.studies import Array

from sparsecv.cv.executor import OutOfTime
from sparsecv.cv.splits import Split, SplitLedger, Splits
from sparsecv.solvers import SparseRidgeProblem

Index = Any


class Pairs(Splits):
    """The models without two of the folds, which predict both, at γ times a factor of the split."""

    def __init__(self, data: RowFolds, stretch: float = 1.0) -> None:
        self.data, self.stretch = data, stretch
        self.pairs = list(combinations(range(data.folds.k), 2))
        self.sets_of = list(np.arange(2 * len(self.pairs)).reshape(-1, 2))

    def rows(self, m: int) -> list[Index]:
        """The rows of both folds of a pair."""
        return [self.data.folds.split(j)[1] for j in self.pairs[m]]

    def split(self, m: int) -> Split:
        tests = self.rows(m)
        train = np.setdiff1d(np.arange(self.data.folds.n), np.concatenate(tests))
        folds = [self.data.one_fold(train, test) for test in tests]
        none = np.empty(0, dtype=np.intp)
        return Split(
            folds[0].training(0),
            lambda columns: [one.held_out(0, columns) for one in folds],
            none,
            self.stretch,
        )


def table(n: int = 24, p: int = 4) -> tuple[Array, Array, RowFolds]:
    """Rows without an intercept in three folds."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, p))
    y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n)
    return X, y, RowFolds(RowTable(X, y, False), make_folds(3, n, seed=0))


def run(what: str, unit: Any, shared: Any, tasks: Any) -> list[Any]:
    """Units of work one after the other, without limits."""
    return [unit(shared, *task, Limits()) for task in tasks]


def best_errors(X: Array, y: Array, splits: Pairs, m: int, gamma: float, tau: int) -> list[float]:
    """Errors on both folds of the best of all subsets, from normal equations."""
    tests = splits.rows(m)
    train = np.setdiff1d(np.arange(y.size), np.concatenate(tests))
    found = []
    for columns in combinations(range(X.shape[1]), tau):
        A = X[np.ix_(train, columns)]
        beta = np.linalg.solve(A.T @ A + gamma / 2.0 * np.eye(tau), A.T @ y[train])
        objective = np.sum((y[train] - A @ beta) ** 2) + gamma / 2.0 * beta @ beta
        errors = [float(np.sum((y[t] - X[np.ix_(t, columns)] @ beta) ** 2)) for t in tests]
        found.append((objective, errors))
    return min(found)[1]


@pytest.mark.parametrize("stretch", [1.0, 3.0])
def test_errors_are_those_of_the_best_subsets_on_every_set(stretch: float) -> None:
    X, y, data = table()
    splits, gammas, taus = Pairs(data, stretch), [5.0, 0.2], np.array([1, 2, 3])
    ledger = SplitLedger(splits, taus, run)
    rows = ledger.visit(gammas, "auto", "pairs")
    assert ledger.of_splits.proved[rows].all()
    for g, gamma in zip(rows, gammas, strict=True):
        for m, sets in enumerate(splits.sets_of):
            for t, tau in enumerate(taus.tolist()):
                expected = best_errors(X, y, splits, m, gamma * stretch, tau)
                np.testing.assert_allclose(ledger.of_sets.error[g, t, sets], expected, rtol=1e-9)
    assert (ledger.of_sets.margin[rows] <= 1e-9 * ledger.of_sets.error[rows]).all()


def test_only_wanted_models_are_proved_and_each_once() -> None:
    """A proof changes the errors of the models that it proves, and of no other."""
    X, y, data = table()
    splits, taus, asked = Pairs(data), np.array([1, 2, 3]), list[tuple[Any, ...]]()

    def noted(what: str, unit: Any, shared: Any, tasks: Any) -> list[Any]:
        asked.extend((m, gammas.tolist(), sizes.tolist()) for m, gammas, sizes, *_ in tasks)
        return run(what, unit, shared, tasks)

    ledger = SplitLedger(splits, taus, noted)
    rows = ledger.visit([5.0, 0.2], "heuristic", "pairs")
    assert not ledger.of_splits.proved.any()
    ledger.of_sets.error[rows] *= 2.0  # Now an error tells whether a proof has replaced it.
    wanted = np.zeros(ledger.of_splits.proved.shape, dtype=bool)
    wanted[rows[1], 1, 2] = True
    before, asked[:] = ledger.of_sets.error.copy(), []
    assert ledger.prove(wanted, "proofs", None)
    assert asked == [(2, [0.2], [2])]
    changed = ledger.of_sets.error != before
    assert changed[rows[1], 1, splits.sets_of[2]].all()
    assert changed.sum() == 2
    np.testing.assert_allclose(
        ledger.of_sets.error[rows[1], 1, splits.sets_of[2]],
        best_errors(X, y, splits, 2, 0.2, 2),
        rtol=1e-9,
    )
    assert not ledger.prove(wanted, "proofs", None)
    assert len(asked) == 1


def test_a_proof_that_a_limit_ends_changes_no_error() -> None:
    """The support at which a search was ended depends on the limit, and counts for nothing."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 1)) + 0.3 * rng.standard_normal((40, 18))
    y = X @ rng.standard_normal(18) + rng.standard_normal(40)
    data = RowFolds(RowTable(X, y, False), make_folds(3, 40, seed=0))
    ledger = SplitLedger(Pairs(data), np.array([3, 6, 9]), run)
    ledger.visit([0.1], "heuristic", "pairs")
    ledger.of_sets.error *= 2.0
    before = ledger.of_sets.error.copy()
    assert not ledger.prove(np.ones((1, 3, 3), dtype=bool), "proofs", 1)
    assert not ledger.of_splits.proved.any()
    np.testing.assert_array_equal(ledger.of_sets.error, before)


@pytest.mark.parametrize("solver", ["auto", "heuristic"])
def test_more_sizes_leave_what_is_known(solver: str) -> None:
    _, _, data = table(30, 6)
    splits, asked = Pairs(data), list[list[int]]()

    def noted(what: str, unit: Any, shared: Any, tasks: Any) -> list[Any]:
        asked.extend(task[2].tolist() for task in tasks)
        return run(what, unit, shared, tasks)

    small = SplitLedger(splits, np.arange(1, 3), noted, extends=True)
    small.visit([1.0], solver, "pairs")
    large = small.extended(np.arange(1, 6))
    known = large.of_sets.error[0, :2].copy()
    np.testing.assert_array_equal(known, small.of_sets.error[0])
    rows = large.visit([1.0, 9.0], solver, "pairs")
    fresh = SplitLedger(splits, np.arange(1, 6), run)
    fresh.visit([1.0, 9.0], solver, "pairs")
    np.testing.assert_allclose(large.of_sets.error[rows], fresh.of_sets.error[rows], rtol=1e-9)
    assert not np.isnan(large.of_sets.error[rows]).any()
    count = len(asked)
    large.visit([9.0, 1.0], solver, "pairs")
    assert len(asked) == count


def test_models_that_the_time_leaves_out_are_unknown() -> None:
    """Where a unit of work was left out, no model of the visit counts; a later visit has all."""
    _, _, data = table()
    splits, late = Pairs(data), [True]

    def cut(what: str, unit: Any, shared: Any, tasks: Any) -> list[Any]:
        found = run(what, unit, shared, tasks)
        return [None, *found[1:]] if late[0] else found

    ledger = SplitLedger(splits, np.array([1, 2]), cut)
    with pytest.raises(OutOfTime):
        ledger.visit([1.0], "auto", "pairs")
    assert np.isnan(ledger.of_sets.error).all()
    assert not ledger.of_splits.tried.any()
    late[0] = False
    rows = ledger.visit([1.0], "auto", "pairs")
    assert not np.isnan(ledger.of_sets.error[rows]).any()
    late[0] = True
    ledger.of_splits.proved[:], ledger.of_splits.tried[:] = False, False
    wanted = np.ones(ledger.of_splits.proved[:1].shape, dtype=bool)
    assert ledger.prove(wanted, "proofs", None)
    assert not ledger.of_splits.tried[0, :, 0].any()
    assert ledger.of_splits.proved[0, :, 1:].all()


def test_the_problem_of_a_split_has_no_row_of_its_sets() -> None:
    """Other numbers in the rows of both sets change their errors alone, and no support."""
    X, y, data = table()
    other = y.copy()
    other[Pairs(data).rows(0)[1]] = 50.0
    changed = RowFolds(RowTable(X, other, False), data.folds)
    one, two = (Pairs(of).split(0).problem for of in (data, changed))
    assert isinstance(one, SparseRidgeProblem)
    np.testing.assert_array_equal(one.rows, two.rows)
    ledgers = [SplitLedger(Pairs(of), np.array([2]), run) for of in (data, changed)]
    rows = [one.visit([1.0], "auto", "pairs") for one in ledgers]
    errors = [one.of_sets.error[own][0, 0] for one, own in zip(ledgers, rows, strict=True)]
    assert errors[0][0] == errors[1][0]
    assert errors[0][1] != errors[1][1]
