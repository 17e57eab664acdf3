"""Where a limit is met: intervals that hold h, proofs only where there are, time that is used."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clocks import WorkClock
from support.cross_validations import Case, draw_case, least_of
from support.folds import Bracket, assert_within, inside
from support.inside import (
    LEAPS,
    CVResult,
    Ledger,
    Limits,
    Need,
    Protocol,
    RowFolds,
    RowTable,
    Settings,
    Surface,
    UnitConstraints,
    Way,
    alternate,
    cross_validate,
    least_is_proved,
    make_folds,
)
from support.stand_ins import StandIn, real, until_closed

from sparsecv import SparseRidgeCV
from sparsecv.cv.executor import TimedReport
from sparsecv.cv.fold_proofs import FoldForms, prove_fold
from sparsecv.cv.settings import default_taus
from sparsecv.errors import UnprovedWarning
from sparsecv.schedule import LEAST_SECONDS_AT_FIRST_GAMMA
from sparsecv.solvers import (
    Answer,
    SparseRidgeProblem,
    best_subsets_rows_deleted,
    solve,
    support_path,
)

pytestmark = pytest.mark.filterwarnings("ignore::sparsecv.errors.ConstantColumnWarning")


def limit_nodes(stand_in: StandIn, nodes: int, only_shared: bool = False) -> None:
    """Stop every search after ``nodes`` nodes, or only those of trees that folds share."""

    def limited(solver: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **options: solver(
            *args, **{**options, "limits": options["limits"].within(nodes=nodes)}
        )

    best = real("best_support_of_a_fold")
    stand_in(
        best_support_of_a_fold=lambda *of, **options: best(*of, **options, node_limit=nodes),
        best_subsets_rows_deleted=limited(best_subsets_rows_deleted),
    )
    if not only_shared:
        ways = (Way(LEAPS, nodes=nodes),)
        stand_in(ways=lambda *_: ways)
        stand_in(prove_sizes=lambda prover, need: prover.rows.tolist())
        stand_in(FIRST_NODES=nodes)
        stand_in(NODES_OF_A_PROOF=nodes)


def check_bounds(case: Case, result: CVResult, truth: Bracket, what: str) -> None:
    """Intervals hold h, and nothing claims a proof it does not have."""
    lower, upper, error = (result.table(name) for name in ("lower", "upper", "cv_error"))
    exact = result.table("exact").astype(bool)
    assert (lower <= error).all()
    assert (error <= upper).all()
    held = inside(lower, upper, truth)
    assert held.all(), f"{what}: {lower[~held]}, {upper[~held]} miss {truth.low[~held]}"
    proved = inside(error, error, truth) | ~exact
    assert proved.all(), f"{what}: {error[~proved]} called exact, not {truth.low[~proved]}"
    best, least = result.best(), least_of(truth)
    bound = np.array([best.lower_bound])
    assert inside(np.zeros(1), np.array([best.upper]), least).all()
    assert inside(bound, np.maximum(bound, least.high), least).all()
    if least_is_proved(result):
        assert_within(np.array([best.cv_error]), least, 4e-9, what="certified")
    assert result.complete == exact.all()


@given(st.data(), st.integers(0, 12), st.booleans())
def test_intervals_under_node_limits(data: st.DataObject, nodes: int, only_shared: bool) -> None:
    case = draw_case(data.draw, -6.0, 6.0)
    truth = case.truth()
    for method in ("exact", "grid"):
        with ExitStack() as stack:
            limit_nodes(until_closed(stack), nodes, only_shared)
            result = case.run(method, time_limit=None)
        check_bounds(case, result, truth, f"{method}, {nodes} nodes")


@pytest.mark.parametrize(
    ("method", "cv", "only_shared"),
    [
        ("exact", "loo", False),
        ("exact", "loo", True),
        ("exact", 4, False),
        ("grid", "loo", False),
        ("grid", 4, False),
    ],
)
def test_limits_leave_intervals(method: str, cv: Any, only_shared: bool) -> None:
    """The limits above do bite: some intervals are open, and more nodes close them."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((12, 7)) + rng.standard_normal((12, 1))
    case = Case(X, X[:, :3].sum(axis=1) + 2 * rng.standard_normal(12), Protocol(), cv, [0.1])
    truth = case.truth()
    open_sizes = []
    for nodes in (1, 3, 10, 10_000):
        with ExitStack() as stack:
            limit_nodes(until_closed(stack), nodes, only_shared)
            result = case.run(method, time_limit=None)
        check_bounds(case, result, truth, f"{nodes} nodes")
        open_sizes.append(int((~result.table("exact")).sum()))
    # What the shared tree leaves open is solved fold by fold.
    assert only_shared or open_sizes[0] > 0
    assert open_sizes[-1] == 0
    assert open_sizes == sorted(open_sizes, reverse=True)


@pytest.mark.parametrize(("seconds", "allowed"), [(0.2, 4.0), (4.2, 0.3), (4.6, None)])
def test_a_relaxation_after_a_search_has_a_limit(
    seconds: float, allowed: float | None, stand_in: StandIn
) -> None:
    """After the limit it has as long as the search, and ends with the grace of the run."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 12)), rng.standard_normal(40)
    relaxed, left = real("relaxation_of_a_fold"), list[float | None]()

    def search(problem: SparseRidgeProblem, *_: Any, **how: Any) -> Answer:
        clock.now += seconds
        return solve(problem, node_limit=0)

    def relaxation(*problem: Any, limits: Limits, **how: Any) -> Any:
        left.append(limits.remaining())
        return relaxed(*problem, limits=limits, **how)

    stand_in(search_of_a_fold=search, relaxation_of_a_fold=relaxation)
    forms = FoldForms(RowFolds(RowTable(X, y, True), make_folds(8, 40)))
    with WorkClock() as clock:
        limits = Limits(4.0)  # and a grace of half a second
        found, low, high = prove_fold(forms, 0, (1e-3, 6), np.inf, [], 0.0, "", limits)
    assert not found.proved
    if allowed is None:
        assert (left, low, high) == ([], 0.0, np.inf)
    else:
        assert left == [pytest.approx(allowed)]
        assert 0.0 <= low < high < np.inf


@pytest.mark.parametrize("method", ["exact", "grid"])
@pytest.mark.parametrize("cv", ["loo", 5, [(range(20), range(20, 40)), (range(30), [35])]])
def test_time_limit_leaves_intervals(method: str, cv: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 30)) + rng.standard_normal((40, 1))
    y = X[:, :8].sum(axis=1) + 4 * rng.standard_normal(40)
    case = Case(X, y, Protocol(), cv, [1e-3, 1.0])
    case.taus = np.array([2, 8, 15])
    bounded = case.run(method, time_limit=1e-9)
    assert not bounded.complete
    assert not least_is_proved(bounded)
    solved = case.run("exact")
    lower, upper, h = bounded.table("lower"), bounded.table("upper"), solved.table("cv_error")
    assert (lower <= h * (1 + 1e-9)).all()
    assert (h <= upper * (1 + 1e-9)).all()
    exact = bounded.table("exact").astype(bool)
    np.testing.assert_allclose(bounded.table("cv_error")[exact], h[exact], rtol=1e-9)
    assert bounded.best().lower_bound <= h.min() * (1 + 1e-9)


@pytest.mark.parametrize("method", ["exact", "grid"])
def test_no_search_begins_after_the_time_limit(method: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 50))
    case = Case(X, X[:, 0] + rng.standard_normal(40), Protocol(), 5, [1.0])
    case.taus = np.array([1, 2, 4])
    for limit in (0.0, 1e-9):
        (result,) = case.run(method, time_limit=limit, prove="all").by_gamma
        assert (result.n_mio, result.n_nodes, result.status) == (0, 0, "time limit")
        assert not result.mio_by_tau.any()
        assert not result.exact.any()
        assert result.supports
    (result,) = case.run(method, time_limit=100.0, prove="all").by_gamma
    assert result.exact.all()
    assert result.status == "optimal"
    assert (result.mio_by_tau == 5).all()


def test_shares_of_limits() -> None:
    assert Limits(None).share(5.0).remaining() is None
    limits = Limits(10.0)
    first = limits.share(4.0).remaining()
    assert first is not None
    assert 2.0 < first <= 2.5
    assert Limits(1e-12).share(3.0).remaining() == 0.0
    whole = limits.share(0.1).remaining()
    assert whole is not None
    assert 9.0 < whole <= 10.0
    assert limits.within(None).remaining() == pytest.approx(10.0, abs=1.0)
    assert limits.within(0.5).remaining() == pytest.approx(0.5, abs=0.1)
    assert limits.within(50.0).remaining() == pytest.approx(10.0, abs=1.0)


@pytest.mark.parametrize("gram", [0.3, 5.0])
def test_estimates_after_the_time_limit(gram: float) -> None:
    """One Gram matrix a fold, hardly a swap, no search: late γ take the supports of the nearest."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 170))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(60)
    case = Case(X, y, Protocol(), 5, [])
    case.taus = np.arange(1, 9)
    units = (
        ("promising_columns", gram),
        ("complete_support", 0.0),
        ("grow", 0.01),
        ("gamma_step", 0.1),
        ("branch_and_bound_of_folds", 0.1),
    )
    with WorkClock(units=units) as clock:
        surface = Surface(case.data, case.taus, Settings("exact", time_limit=1.0))
        result = alternate(surface)
    late = Counter(name for name, began in clock.begun if began >= 1.0)
    assert late.pop("grow", 0) <= 6 * (1 + round(LEAST_SECONDS_AT_FIRST_GAMMA / 0.01))
    assert late.pop("promising_columns", 0) <= 5
    assert late.pop("complete_support", 0) <= 6
    assert not late
    assert clock.now <= 1.0 + 6 * (gram + LEAST_SECONDS_AT_FIRST_GAMMA + 0.02)
    lower, error, upper = (result.table(name) for name in ("lower", "cv_error", "upper"))
    assert np.isfinite(error).all()
    assert (lower <= error).all()
    assert (error <= upper).all()
    case.check_supports(result)  # ridge fits, each at its own γ


def test_the_model_of_all_rows_is_proved_where_one_fold_is_listed(
    stand_in: StandIn,
) -> None:
    """The short tree of all rows is left open, and a later search proves its sizes."""
    limit_nodes(stand_in, 2)
    X = np.array([[-0.7, -0.36, 0.93], [-0.73, -1.0, 0.45], [1.41, 1.36, -1.39]])
    case = Case(X, np.array([1.0, -1.0, 1.0]), Protocol(), [([0, 2], [1])], [0.1, 1.0])
    check_bounds(case, case.run("exact", time_limit=None), case.truth(), "one fold")


def test_time_left_of_a_stage() -> None:
    told: list[str] = []

    def tell(what: str, done: int, total: int, detail: str = "") -> None:
        told.append(f"{what} {done}/{total}")

    with WorkClock() as clock:
        pace = TimedReport(tell, Limits(50.0))
        steps = [
            (0.0, "folds", 0, ""),
            (0.5, "folds", 1, ""),  # The time is too little to say anything of.
            (1.5, "folds", 4, ", about 3 s left"),  # 2 s for 4: 3 s for 6
            (18.0, "folds", 5, ", about 20 s left"),  # 20 s for 5, and 20 of the 30 s left
            (24.0, "folds", 6, ", about 6 s left"),  # 44 s for 6: 29 s for 4, but 6 s are left
            (0.0, "folds", 10, ""),
            (0.0, "others", 0, ""),  # Another stage has its own clock.
            (1.0, "others", 5, ", about 1 s left"),
        ]
        for seconds, what, done, left in steps:
            clock.now += seconds
            pace(what, done, 10)
            assert told[-1] == f"{what}{left} {done}/10"
        pace = TimedReport(tell, Limits())
        pace("rows", 0, 2)
        clock.now += 100.0
        pace("rows", 1, 2)
        assert told[-1] == "rows, about 100 s left 1/2"


def test_default_taus_and_grids() -> None:
    assert default_taus(10, 7).tolist() == [1, 2, 3, 4, 5, 6, 7]
    large = default_taus(100, 500)
    top = int(large[-1])
    assert large.tolist() == list(range(1, top + 1))
    assert top * np.log(top) <= 100 < (top + 1) * np.log(top + 1)
    # Columns decide how far sizes go, as the time of a size depends on them; sizes count units.
    units = UnitConstraints.of(200, unit=np.arange(200) // 2)
    assert default_taus(100, 200, units).tolist() == large.tolist()
    assert default_taus(100, 160, UnitConstraints.of(160, unit=np.arange(160) // 2))[-1] == 80
    # Six factors of 30 levels are few sizes, and all of them are tried.
    factors = UnitConstraints.of(180, unit=np.arange(180) // 30)
    assert default_taus(3000, 180, factors).tolist() == [1, 2, 3, 4, 5, 6]
    assert default_taus(10, 180, factors).tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("p", "rule"), [(40, "minimum"), (50, "one-se")])
def test_the_chosen_model_is_proved_although_the_errors_take_all_the_time(
    p: int, rule: str, stand_in: StandIn
) -> None:
    """Proofs of CV errors that would never end leave time for the model's proof, which is short."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((100, p)) + rng.standard_normal((100, 1))
    y = X[:, :4].sum(axis=1) + 4.0 * rng.standard_normal(100)

    def never_ends(self: Any, need: Need) -> list[int]:
        while self.work.limits.reached(0) is None:
            time.sleep(0.01)
        return self.rows.tolist()

    stand_in(**{"prove_cells" if p > 45 else "prove_sizes": never_ends})
    # Up to 45 columns estimates would prove the model.

    def heuristic(*given: Any, **named: Any) -> Any:
        return support_path(*given, **{**named, "solver": "heuristic"})

    stand_in(path_of_a_fold=heuristic)
    model = SparseRidgeCV(rule=rule, gammas=[1.0, 20.0], taus=range(1, 7), time_limit=3.0)
    with pytest.warns(UnprovedWarning):
        model.fit(X, y)
    assert not model.surface_["exact"].all()
    assert model.gap_ < 1e-6


def test_intervals_do_not_go_on_long_after_the_time_limit(stand_in: StandIn) -> None:
    """Each takes little time, and there are 30 folds at ten γ."""
    real = Ledger.bracket

    def slow(self: Ledger, *given: Any, **named: Any) -> None:
        time.sleep(0.1)
        real(self, *given, **named)

    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 50))
    data = RowFolds(RowTable(X, X[:, 0] + rng.standard_normal(60), True), make_folds(30, 60))
    stand_in(bracket=slow)
    started = time.monotonic()
    settings = Settings(time_limit=0.5)
    found = cross_validate(data, np.geomspace(0.1, 10.0, 10), range(1, 5), settings)
    assert time.monotonic() - started < 20.0  # All intervals would take 30 seconds.
    assert np.isinf(found.table("upper")).any()


def test_a_call_ends_by_its_time_limit_where_the_table_has_a_text_column() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((266, 126)) + rng.standard_normal((266, 1))
    frame = pd.DataFrame(X).rename(columns="x{}".format).assign(t=rng.choice(list("abcdef"), 266))
    y = X[:, :5].sum(axis=1) + 2.0 * (frame["t"] == "a") + 3.0 * rng.standard_normal(266)
    started = time.monotonic()
    with pytest.warns(UnprovedWarning):
        model = SparseRidgeCV(time_limit=2.0, prove="all").fit(frame, y)
    assert time.monotonic() - started < 60.0
    assert np.isfinite(model.path_["cv_error"]).all()
