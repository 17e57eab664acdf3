"""Every step of a fit asks for the time: what is left out once it is up, and what is said of it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from support.clocks import WorkClock
from support.fresh import plain_run
from support.inside import CLOCK, Limits
from support.limit_attacks import LIMITS
from support.studies import made

from sparsecv import SparseRidgeCV
from sparsecv.cv.executor import Late

pytestmark = pytest.mark.filterwarnings("ignore::sparsecv.errors.UnprovedWarning")


def fitted(limit: float | None, **named: Any) -> SparseRidgeCV:
    """A default fit of a table with more columns than one tree takes; five folds."""
    X, y = made(60, 50)
    return SparseRidgeCV(time_limit=limit, n_jobs=1, **named).fit(X, y)


@pytest.mark.parametrize("gammas", [None, [1.0, 10.0]])
def test_no_unit_begins_after_the_grace(gammas: list[float] | None) -> None:
    with WorkClock.of_a_fit() as clock:
        whole = fitted(None, gammas=gammas)
        units = int(clock.now)
    assert whole.rule_ == "projected"
    rules = set[str]()
    for limit in [0.5, *range(2, units + 12, 9 if plain_run() else 5)]:
        with WorkClock.of_a_fit() as clock:
            found = fitted(limit, gammas=gammas)
        latest = limit + max(0.5, 0.05 * limit)
        # Nothing is known without the first answers of the five folds.
        begun = clock.begun[5:]
        assert [one for one in begun if one[1] > latest] == []
        assert clock.now <= max(latest + 1.0, 5.0)
        rules.add(found.rule_)
        assert np.isfinite(found.cv_error_)
        if found.rule_ == "minimum":
            assert (found.status_, found.certified_) == ("time limit", False)
            assert found.cv_error_ == found.surface_["cv_error"].min()
    assert rules == {"minimum", "projected"}
    with WorkClock.of_a_fit():
        late = fitted(100.0 * units, gammas=gammas)
    # A limit that is not reached changes nothing.
    np.testing.assert_array_equal(late.coef_, whole.coef_)
    assert late.cv_error_ == whole.cv_error_
    assert late.status_ == whole.status_


def test_a_round_of_sizes_that_is_not_finished_is_dropped() -> None:
    """The sizes of the round before stay, with the errors that they had."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 60)) + rng.standard_normal((300, 1))
    y = X @ rng.standard_normal(60) + rng.standard_normal(300)  # All columns count.
    long = SparseRidgeCV(gammas=[1.0], time_limit=None).fit(X, y)
    # The first round takes five units, and the second ends after the surface's part of the time.
    with WorkClock.of_a_fit():
        short = SparseRidgeCV(gammas=[1.0], time_limit=26.0).fit(X, y)
        shorter = SparseRidgeCV(gammas=[1.0], time_limit=8.0).fit(X, y)
    assert shorter.taus_.size < long.taus_.size
    assert shorter.status_ == "time limit"
    assert short.taus_.size in (shorter.taus_.size, long.taus_.size)
    some = np.isin(long.taus_, shorter.taus_)
    np.testing.assert_allclose(
        shorter.surface_["cv_error"], long.surface_["cv_error"][:, some], rtol=1e-9
    )


def test_outer_folds_are_left_out_once_the_time_is_up() -> None:
    X, y = made(60, 50)
    with WorkClock.of_a_fit():
        model = SparseRidgeCV(gammas=[1.0], nested=4, time_limit=None).fit(X, y)
        whole = model._run_.expected.folds
        model = SparseRidgeCV(gammas=[1.0], nested=4, time_limit=80.0).fit(X, y)
    assert whole == 4
    assert 1 <= model._run_.expected.folds < 4
    assert np.isfinite(model.nested_error_)


@pytest.mark.parametrize("rule", ["stability", "corrected", "projected"])
def test_a_rule_that_cannot_choose_in_time_is_named(rule: str) -> None:
    with WorkClock.of_a_fit():
        model = fitted(0.1, gammas=[1.0, 10.0], rule=rule)
    assert model.rule_ == "minimum"
    assert model.status_ == "time limit"
    assert f"the time limit came before {rule} could choose" in model.summary()


def test_what_becomes_of_late_units() -> None:
    def unit(shared: int, limits: Limits) -> int:
        return shared

    cases = {  # What the clock says: within the limit, after it, and after the grace.
        Late.DONE: (1, 1, 1),
        Late.AFTER_GRACE: (1, 1, None),
        Late.LEFT_OUT: (1, None, None),
    }
    now = CLOCK.now()
    limits = Limits(100.0), Limits(0.0), Limits(0.0, latest=now - 1.0)
    for late, expected in cases.items():
        assert tuple(late.unit(unit)(1, one) for one in limits) == expected


def test_parts_of_a_run_keep_its_grace() -> None:
    with WorkClock() as clock:
        whole = Limits(100.0)
        parts = [whole.share(10.0), whole.within(5.0), pickle.loads(pickle.dumps(whole.share(4.0)))]
        assert whole.longer(3.0).remaining() == pytest.approx(103.0)
        assert whole.longer(50.0).remaining() == pytest.approx(105.0)
        assert Limits().longer(1.0).remaining() is None
        clock.now = 104.9
        assert not any(one.overdue for one in (whole, *parts))
        assert all(one.reached(0) is not None for one in (whole, *parts))
        clock.now = 105.1
        assert all(one.overdue for one in (whole, *parts))
        assert not Limits().overdue


def test_open_errors_are_counted_on_the_screen() -> None:
    X, y = made(40, 6)
    assert "CV errors of" not in SparseRidgeCV().fit(X, y).summary()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 30)) + rng.standard_normal((60, 1))
    y = X[:, :8].sum(axis=1) + 4.0 * rng.standard_normal(60)
    model = SparseRidgeCV(rule="minimum", gammas=[1.0, 30.0], time_limit=1e-9).fit(X, y)
    some = ~model.surface_["exact"].astype(bool)
    error, lower, upper = (model.surface_[name][some] for name in ("cv_error", "lower", "upper"))
    bounded = np.isfinite(upper)
    assert bounded.any()
    width = 100.0 * np.max((upper - lower)[bounded] / error[bounded])
    text = " ".join(model.summary().split())
    assert f"{some.sum()} CV errors of {some.size} are not proved" in text
    shown = float(text.split("the widest interval is ")[1].split(" %")[0].replace(",", ""))
    assert shown == pytest.approx(width, rel=0.06)


@pytest.mark.parametrize("number", range(8))
def test_random_limits(number: int) -> None:
    assert list(LIMITS["limits"](np.random.default_rng([7, number]), number)) == []


def test_errors_of_alternatives_end_with_the_time() -> None:
    """The errors of the folds that are done are no error of all folds."""
    X, y = made(40, 4)
    model = SparseRidgeCV(gammas=[1.0], rule="minimum", n_jobs=1, time_limit=3.0).fit(X, y)
    units = [("fold_errors", 2.0)]
    with WorkClock(units=units) as clock:
        late = model.alternatives(2)
    assert [at for _, at in clock.begun] == [0.0, 2.0]
    assert late["cv_error"].isna().all()
    assert late["std_error"].isna().all()
    assert late["proved"].all()
    model.set_params(time_limit=20.0)
    model.fit(X, y)
    with WorkClock(units=units) as clock:
        found = model.alternatives(2)
    assert len(clock.begun) == 5
    assert np.isfinite(found["cv_error"]).all()
    assert found["columns"].tolist() == late["columns"].tolist()
