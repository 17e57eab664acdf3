"""A row of the ledger as a checkpoint keeps it: what was proved comes back to the last bit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.inside import (
    WINGS,
    Ledger,
    RowFolds,
    RowTable,
    Settings,
    SupportPath,
    Surface,
    make_folds,
)

TAUS = np.array([1, 2, 4], dtype=np.intp)
ARRAYS = ("error", "objective", "lower", "upper", "exact", "searched", "bound", "trees")
COUNTS = ("n_mio", "n_nodes", "seconds")


def data_of(cv: Any = 4, p: int = 5, n: int = 20) -> RowFolds:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return RowFolds(
        RowTable(X, X[:, 0] - X[:, 3] + rng.standard_normal(n), True), make_folds(cv, n)
    )


def ledger_of(data: RowFolds, settings: Settings | None = None) -> Ledger:
    with Surface(data, TAUS, settings, search_tau=WINGS.search_tau) as surface:
        surface.visit([0.3])
        surface.prove()
    return surface.ledger


def fresh(data: RowFolds) -> Ledger:
    return Ledger(data, TAUS, [0.3])


def stored_row(known: Ledger) -> Any:
    """All problems of a row, as they come back from a file."""
    return json.loads(json.dumps(known.stored(0, np.arange(known.k + 1))))


def arrays_of(known: Ledger) -> dict[str, NDArray[Any]]:
    return {**known.answer.named(), **known.cells.named(), **known.work.named()}


def assert_equal(found: Ledger, expected: Ledger) -> None:
    """Answers of folds are kept where they are proved, or where Algorithm 1 has ended."""
    kept = expected.cells.exact | expected.complete(0)
    kept[:, :, -1] = True
    own, other = arrays_of(found), arrays_of(expected)
    for name in ARRAYS:
        ours, theirs = own[name], other[name]
        assert ours.dtype == theirs.dtype, name
        if name in ("error", "objective"):
            ours, theirs = ours[kept], theirs[kept]
        np.testing.assert_array_equal(ours, theirs, name)
    for name in COUNTS:
        assert own[name][0] == other[name][0], name
    assert found.history[0] == expected.history[0]
    assert found.complete(0) == expected.complete(0)
    for _, t, j in np.argwhere(kept).tolist():
        np.testing.assert_array_equal(found.support(0, t, j), expected.support(0, t, j))


@pytest.mark.parametrize(
    ("cv", "p", "settings"),
    [
        (4, 5, Settings()),
        ("loo", 5, Settings()),
        ("loo", 5, Settings("search", tol=0.0)),
        (4, 5, Settings("search", tol=0.5)),
        (4, 5, Settings("grid")),
        (4, 48, Settings(prove="all")),
        ("loo", 48, Settings()),
    ],
)
def test_round_trip_through_json(cv: Any, p: int, settings: Settings) -> None:
    data = data_of(cv, p)
    known = ledger_of(data, settings)
    stored = stored_row(known)
    again = fresh(data)
    again.restore(0, stored)
    assert_equal(again, known)
    once_more = fresh(data)
    once_more.restore(0, stored_row(again))
    assert_equal(once_more, again)


def test_open_intervals_come_back() -> None:
    data = data_of()
    known = ledger_of(data)
    known.cells.exact[0, 1, 2] = known.cells.exact[0, 0, 0] = False
    known.cells.lower[0, 1, 2], known.cells.upper[0, 0, 0] = 0.0, np.inf
    known.cells.exact[0, 1, data.folds.k], known.cells.bound[0, 1, data.folds.k] = False, 0.25
    again = fresh(data)
    again.restore(0, stored_row(known))
    assert_equal(again, known)
    assert not again.complete(0)


def test_the_interval_of_a_proved_fold_stays() -> None:
    """Supports that tie have different errors, and a bound may be of any of them."""
    known = ledger_of(data_of())
    error = known.answer.error[0, 1, :2].copy()
    assert known.cells.exact[0, 1, :2].all()
    known.narrow(0, 1, np.arange(2), 2.0 * error, 3.0 * error)
    np.testing.assert_array_equal(known.cells.lower[0, 1, :2], error)
    np.testing.assert_array_equal(known.cells.upper[0, 1, :2], error)


def test_stored_ends_that_rounding_moves_past_known_ends_can_be_stored_again() -> None:
    known, again = ledger_of(data_of()), fresh(data_of())
    known.cells.exact[0, 1, 2] = False
    for low, high in ((1.0, np.nextafter(3.0, 0.0)), (3.0, 5.0)):
        known.cells.lower[0, 1, 2], known.cells.upper[0, 1, 2] = low, high
        again.restore(0, stored_row(known))
    assert again.cells.lower[0, 1, 2] < again.cells.upper[0, 1, 2]
    fresh(data_of()).restore(0, stored_row(again))


def test_upper_bounds_that_would_overflow_in_a_sum_are_infinite() -> None:
    """The sum over four folds of 1e308 is no finite number; warnings are errors here."""
    ledger = fresh(data_of())
    ledger.narrow(0, 0, np.arange(4), 0.0, 1e308)
    assert ledger.sums(ledger.cells.upper)[0, 0] == np.inf
    ledger.narrow(0, 0, np.arange(4), 0.0, 2.0)
    assert ledger.sums(ledger.cells.upper)[0, 0] == 8.0


def test_a_foreign_support_changes_no_estimate_before_it_is_proved() -> None:
    """An incumbent of another problem has seen the held-out rows: it is a bound, not an answer."""
    data, sizes = data_of(), np.array([1])
    ledger = Ledger(data, sizes, [0.3])
    for j in range(5):  # Column 4, which says nothing of y, is every answer.
        path = SupportPath.of(data.problem(j), [0.3], sizes, np.array([[[4]]]))
        error = path.squared_errors(*data.held_out(j))[0] if j < 4 else 0.0
        ledger.enter_answers([0], j, path, error)
    before = ledger.tables([0])["cv_error"]
    ledger.offer(0, 0, np.arange(4), np.array([0]))
    assert (ledger.incumbent.objective[0, 0, :4] < ledger.answer.objective[0, 0, :4]).all()
    np.testing.assert_array_equal(ledger.tables([0])["cv_error"], before)
    ledger.mark_proved(0, 0, np.arange(4))
    assert ledger.tables([0])["cv_error"] < before
