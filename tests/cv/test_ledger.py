"""A row of the ledger on disk: what was proved comes back, and nothing wrong is believed."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sparsecv.cv.engine import Surface
from sparsecv.cv.ledger import Ledger
from sparsecv.cv.settings import Settings
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds

Array = NDArray[np.float64]
TAUS = np.array([1, 2, 4], dtype=np.intp)
ARRAYS = ("error", "objective", "lower", "upper", "exact", "searched", "bound", "trees")


def data_of(cv: Any = 4, p: int = 5, n: int = 20) -> RowFolds:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return RowFolds(X, X[:, 0] - X[:, 3] + rng.standard_normal(n), make_folds(cv, n), True)


def ledger_of(data: RowFolds, settings: Settings | None = None) -> Ledger:
    with Surface(data, TAUS, settings) as surface:
        surface.visit([0.3])
        surface.prove()
    return surface.ledger


def fresh(data: RowFolds) -> Ledger:
    return Ledger(data, TAUS, [0.3])


def stored_row(known: Ledger) -> Any:
    """All problems of a row, as they come back from a file."""
    return json.loads(json.dumps(known.stored(0, np.arange(known.k + 1))))


def assert_equal(found: Ledger, expected: Ledger, rtol: float = 0.0) -> None:
    """Answers of folds are kept where they are proved, or where Algorithm 1 has ended."""
    kept = expected.exact | expected.complete(0)
    kept[:, :, -1] = True
    for name in ARRAYS:
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert ours.dtype == theirs.dtype, name
        if name in ("error", "objective"):
            ours, theirs = ours[kept], theirs[kept]
        np.testing.assert_allclose(ours, theirs, rtol=rtol, err_msg=name)
    for name in ("n_mio", "n_nodes", "seconds", "history"):
        assert getattr(found, name)[0] == getattr(expected, name)[0], name
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
    # errors are fitted again; a search's and a tree's differ from that by rounding
    assert_equal(again, known, rtol=1e-12)
    once_more = fresh(data)
    once_more.restore(0, stored_row(again))
    assert_equal(once_more, again)


def test_open_intervals_come_back() -> None:
    data = data_of()
    known = ledger_of(data)
    known.exact[0, 1, 2] = known.exact[0, 0, 0] = False
    known.lower[0, 1, 2], known.upper[0, 0, 0] = 0.0, np.inf
    known.exact[0, 1, data.folds.k], known.bound[0, 1, data.folds.k] = False, 0.25
    again = fresh(data)
    again.restore(0, stored_row(known))
    assert_equal(again, known)
    assert not again.complete(0)


def test_the_interval_of_a_proved_fold_stays() -> None:
    """Supports that tie have different errors, and a bound may be of any of them."""
    known = ledger_of(data_of())
    error = known.error[0, 1, :2].copy()
    assert known.exact[0, 1, :2].all()
    known.narrow(0, 1, np.arange(2), 2.0 * error, 3.0 * error)
    np.testing.assert_array_equal(known.lower[0, 1, :2], error)
    np.testing.assert_array_equal(known.upper[0, 1, :2], error)


def test_stored_ends_that_rounding_moves_past_known_ends_can_be_stored_again() -> None:
    known, again = ledger_of(data_of()), fresh(data_of())
    known.exact[0, 1, 2] = False
    for low, high in ((1.0, np.nextafter(3.0, 0.0)), (3.0, 5.0)):
        known.lower[0, 1, 2], known.upper[0, 1, 2] = low, high
        again.restore(0, stored_row(known))
    assert again.lower[0, 1, 2] < again.upper[0, 1, 2]
    fresh(data_of()).restore(0, stored_row(again))


def test_errors_are_fitted_not_read() -> None:
    """Bounds of exact folds follow their supports, whatever the file says."""
    data = data_of()
    known = ledger_of(data)
    stored = stored_row(known)
    assert not {"error", "objective", "best_objective"} & set(stored)
    stored["lower"] = stored["upper"] = np.full((3, 5), 7.0).tolist()
    stored["bound"] = np.full((3, 5), 1e9).tolist()
    again = fresh(data)
    again.restore(0, stored)
    np.testing.assert_array_equal(again.lower, known.error)
    np.testing.assert_array_equal(again.upper, known.error)
    assert (again.bound <= again.objective).all()


def wrong_contents(stored: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Every field missing, of another kind, shape or range, one at a time."""
    cases: list[tuple[str, dict[str, Any]]] = []

    def case(name: str, value: Any, what: str) -> None:
        changed = copy.deepcopy(stored)
        changed[name] = value
        cases.append((f"{name} {what}", changed))

    for name in stored:
        missing = copy.deepcopy(stored)
        del missing[name]
        cases.append((f"{name} missing", missing))
        for value in (None, "x", {}, {"a": 1}, True, [None], [["x"]], 1e400, float("nan"), -1):
            case(name, value, repr(value))
    for name, entry in stored.items():
        if isinstance(entry, list) and entry and name != "history":
            case(name, entry[:-1], "shorter")
            if name != "supports":  # one more that nobody chose does no harm
                case(name, [*entry, entry[-1]], "longer")
            case(name, [entry], "deeper")
    for name in ("lower", "upper", "choice"):
        for value in (-1, -0.5, float("nan"), None, "1", 10**30):
            table = copy.deepcopy(stored[name])
            table[1][2] = value
            case(name, table, f"with {value!r}")
    for name in ("exact", "searched"):
        for value in (2, None, "true", 0.5):
            table = copy.deepcopy(stored[name])
            table[1][-1] = value
            case(name, table, f"with {value!r}")
    for support in ([5], [-1], [1, 0], [2, 2], [0.0], ["0"], [True], [[0]], 0, [0, 1, 2, 3, 4]):
        case("supports", [support, *stored["supports"][1:]], f"with {support!r}")
    case("supports", [], "empty")
    table = copy.deepcopy(stored["choice"])
    table[0][0] = len(stored["supports"])
    case("choice", table, "of no support")
    crossed = copy.deepcopy(stored["lower"])
    crossed[0][0] = stored["upper"][0][0] + 1.0
    case("lower", crossed, "above upper")
    for value in (1.5, "3", -2, 10**400, [3]):
        case("n_mio", value, repr(value)[:9])
        case("n_nodes", value, repr(value)[:9])
    case("seconds", 10**400, "beyond doubles")
    for problems in ([0, 1, 2, 3, 5], [0, 1, 2, 4, 3], [0, 1, 2, 3, 3], [0.0, 1.0, 2.0, 3.0, 4.0]):
        case("problems", problems, repr(problems))
    case("history", [[1.0, "x"]], "with words")
    case("history", [3.0], "flat")
    return cases


def test_wrong_contents_are_refused_whole() -> None:
    data = data_of()
    stored = stored_row(ledger_of(data))
    untouched = fresh(data)
    believed = []
    for what, content in wrong_contents(stored):
        known = fresh(data)
        try:
            known.restore(0, content)
        except (ValueError, TypeError, KeyError):
            for name in (*ARRAYS, "choice", "n_mio", "n_nodes", "seconds"):
                np.testing.assert_array_equal(getattr(known, name), getattr(untouched, name), what)
            assert not known.supports
            assert not known.answered(0)
        else:
            believed.append(what)
    assert believed == []


@pytest.mark.parametrize("content", [None, [], "row", 3, {}])
def test_what_is_no_row_is_refused(content: Any) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        fresh(data_of()).restore(0, content)


def test_another_row_is_refused() -> None:
    data = data_of()
    stored = stored_row(ledger_of(data))
    for known in (Ledger(data, TAUS, [0.4]), Ledger(data, TAUS[:2], [0.3])):
        with pytest.raises(ValueError, match="other γ, τ or folds"):
            known.restore(0, stored)
    fewer = data_of(5)  # another number of folds
    with pytest.raises(ValueError, match="other γ, τ or folds"):
        fresh(fewer).restore(0, stored)
