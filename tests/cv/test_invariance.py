"""What a fold answers is a function of its training rows: replace what it must not see."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.fresh import plain_run
from support.inside import (
    LEAPS,
    WINGS,
    Folds,
    Ledger,
    Limits,
    Need,
    RowFolds,
    RowTable,
    Settings,
    Surface,
    UnitConstraints,
    Way,
    cross_validate,
    make_folds,
)
from support.stand_ins import StandIn

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.solvers import best_subsets_rows_deleted, branch_and_bound, support_path

pytestmark = pytest.mark.filterwarnings("ignore")

Array = NDArray[np.float64]
REGIMES = {"few columns": (24, 6), "more than 45 columns": (50, 47), "p > n": (18, 50)}
FOLDS: dict[str, Any] = {
    "K folds": 4,
    "leave-one-out": "loo",
    "folds of a size": "size:6",
    "ordered": TimeSeriesSplit(3),
}
METHODS = ("exact", "search", "grid")
LIMITS: dict[str, float | None] = {"none": None, "small": 1e-9, "estimates": 0.0}
GAMMAS = [0.05, 5.0]
TAUS = np.array([1, 3])


class Table(NamedTuple):
    """Rows as a fold is made of them."""

    X: Array
    y: Array
    weights: Array | None


def table_of(regime: str, weighted: bool) -> Table:
    n, p = REGIMES[regime]
    rng = np.random.default_rng(n + p)
    X = rng.standard_normal((n, p)) + rng.standard_normal((n, 1)) + 3.0
    y = X[:, 0] - X[:, 1] + X[:, 2] + 3.0 * rng.standard_normal(n)
    return Table(X, y, rng.integers(1, 4, n).astype(float) if weighted else None)


def replaced(table: Table, test: NDArray[np.intp]) -> Table:
    """The same rows, those of one fold by something else altogether."""
    rng = np.random.default_rng(1)
    X, y = table.X.copy(), table.y.copy()
    X[test] = 40.0 * rng.standard_normal(X[test].shape) - 7.0
    y[test] = X[test, 3] * 90.0 + 500.0
    weights = None if table.weights is None else table.weights.copy()
    if weights is not None:
        weights[test] *= 9.0
    return Table(X, y, weights)


def ledger_of(
    table: Table,
    folds: Any,
    method: str,
    limit: float | None,
    asked: UnitConstraints | None = None,
) -> Ledger:
    data = RowFolds(RowTable(table.X, table.y, True, table.weights, constraints=asked), folds)
    settings = Settings(method, time_limit=limit)
    with Surface(data, TAUS, settings, search_tau=WINGS.search_tau) as surface:
        surface.visit(GAMMAS)
        surface.prove()
    assert list(surface.rows.values()) == [0, 1]
    return surface.ledger


def assert_same_fold(ours: Ledger, theirs: Ledger, g: int, j: int) -> None:
    problems = [known.problem(g, j) for known in (ours, theirs)]
    for t in range(TAUS.size):
        exact = ours.cells.exact[g, t, j], theirs.cells.exact[g, t, j]
        if exact[0] != exact[1]:  # What is proved first depends on all folds' errors.
            least, other = sorted((ours, theirs), key=lambda known: not known.cells.exact[g, t, j])
            assert least.answer.objective[g, t, j] <= other.answer.objective[g, t, j] * (1.0 + 1e-9)
            continue
        mine, yours = ours.support(g, t, j), theirs.support(g, t, j)
        np.testing.assert_array_equal(mine, yours)
        fits = [problem.fit(mine) for problem in problems]
        np.testing.assert_array_equal(fits[0].coef, fits[1].coef)
        assert fits[0].objective == fits[1].objective
        # Objectives of a tree that leave-one-out folds share are differences, good to rounding.
        shared = ours.data.folds.leave_one_out and all(exact)
        assert ours.answer.objective[g, t, j] == pytest.approx(
            theirs.answer.objective[g, t, j], rel=1e-8 if shared else 1e-13
        )


@pytest.fixture(autouse=True)
def swaps_of_a_first_gamma_end_by_themselves(stand_in: StandIn) -> None:
    """On a busy machine the clock would end them in one run and not in the other."""
    stand_in(LEAST_SECONDS_AT_FIRST_GAMMA=60.0)


def check_folds(table: Table, folds: Folds, some: Iterable[int], *asked: Any) -> None:
    """Other numbers in the held-out rows of some folds change nothing of these folds."""
    ours = ledger_of(table, folds, *asked)
    for j in some:
        theirs = ledger_of(replaced(table, folds.split(j)[1]), folds, *asked)
        for g in range(len(GAMMAS)):
            assert_same_fold(ours, theirs, g, j)


def some_of(*lists: Iterable[str]) -> list[tuple[str, ...]]:
    """Every second combination in a plain run; every two entries stand together in some."""
    every = itertools.product(*(enumerate(one) for one in lists))
    taken = []
    for combination in every:
        numbers, entries = zip(*combination, strict=True)
        if sum(numbers) % 2 == 0 or not plain_run():
            taken.append(entries)
    return taken


@pytest.mark.parametrize(
    ("regime", "kind", "limit", "weights"), some_of(REGIMES, FOLDS, LIMITS, ["", "weights"])
)
def test_a_fold_does_not_see_its_held_out_rows(
    regime: str, kind: str, limit: str, weights: str
) -> None:
    weighted = bool(weights)
    table = table_of(regime, weighted)
    proving = regime != "few columns" and limit == "none"
    folds = make_folds(FOLDS[kind], table.y.size, seed=0, X=table.X)
    for method in ("exact", "search") if proving and weighted else METHODS:
        some = (folds.k - 1,) if proving else (0, folds.k - 1)
        check_folds(table, folds, some, method, LIMITS[limit])


@pytest.mark.parametrize(
    ("regime", "kind", "limit"),
    [
        one
        for one in some_of(REGIMES, FOLDS, LIMITS)
        if one[0] == "few columns" or one[2] != "none"  # Proofs of so many columns take long.
    ],
)
def test_a_constrained_fold_does_not_see_its_held_out_rows(
    regime: str, kind: str, limit: str
) -> None:
    table = table_of(regime, True)
    width = table.X.shape[1]
    units = np.arange(width)
    units[1] = 0
    low = np.full(width, -np.inf)
    low[::2] = 0.0
    folds = make_folds(FOLDS[kind], table.y.size, seed=0, X=table.X)
    for method, least in (("exact", low), ("grid", low), ("exact", -np.inf)):
        asked = UnitConstraints.of(width, unit=units, bounds=(least, np.inf))
        check_folds(table, folds, (0, folds.k - 1), method, LIMITS[limit], asked)


UNITS: dict[str, dict[str, Any]] = {
    "plain": {"rule": "minimum"},
    "no intercept": {"fit_intercept": False},
    "bounds": {"constraints": Constraints(bounds={0: (-0.5, 0.7), 1: (-0.2, 0.4)})},
    "included": {"constraints": Constraints(include=[1])},
    "missing values": {"missing": "mean"},
    "averages": {},
}


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("options", UNITS)
def test_folds_in_order_take_the_scale_of_their_training_rows(options: str, weighted: bool) -> None:
    """Later rows, neither trained on nor held out, change no error, but do change the model."""
    X, y, weights = table_of("few columns", weighted)
    X, y = np.vstack([X] * 8) + 0.1 * np.arange(192.0)[:, None] * np.eye(6)[2], np.tile(y, 8)
    weights = None if weights is None else np.tile(weights, 8)
    if options == "missing values":
        X[[3, 60, 110], [0, 1, 3]] = np.nan
    later = np.arange(140, 192)
    found = []
    for factor in (1.0, 100.0):
        X[later] *= factor
        cv = list(TimeSeriesSplit(3).split(np.arange(140)))
        model = SparseRidgeCV(cv=cv, gammas=[5.0, 50.0], **UNITS[options])
        found.append(model.fit(X, y, sample_weight=weights))
    for name in ("cv_error", "std_error"):
        np.testing.assert_array_equal(found[0].surface_[name], found[1].surface_[name])
    assert found[0].cv_error_ == found[1].cv_error_
    assert not np.array_equal(found[0].coef_, found[1].coef_)
    if options == "plain":
        whole = SparseRidge(found[1].tau_, found[1].gamma_).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(found[1].coef_, whole.coef_, rtol=1e-9)


def test_an_error_in_order_of_time_by_hand() -> None:
    """Every fold divides its columns by the standard deviations of its training rows."""
    X, y, _ = table_of("few columns", False)
    folds = list(TimeSeriesSplit(3).split(y))
    model = SparseRidgeCV(cv=folds, gammas=[5.0], taus=[6], rule="minimum").fit(X, y)
    total, rows = 0.0, 0
    for train, test in folds:
        pipeline = make_pipeline(StandardScaler(), Ridge(2.5)).fit(X[train], y[train])
        total += float(np.sum((y[test] - pipeline.predict(X[test])) ** 2))
        rows += test.size
    assert model.cv_error_ == pytest.approx(total / rows, rel=1e-10)


def test_what_is_left_by_an_interrupt(stand_in: StandIn) -> None:
    """After Ctrl-C what is not proved is an estimate of the training rows, and is called so."""
    X, y, _ = table_of("p > n", False)
    data = RowFolds(RowTable(X, y, True), make_folds(4, y.size, seed=0))
    taus = np.array([2, 4, 7])
    with Surface(data, taus) as surface:
        surface.visit(GAMMAS)
    exact = cross_validate(data, GAMMAS, taus, Settings(prove="all")).table("cv_error")
    for last in (0, 1, 3):
        calls = itertools.count()

        def interrupted(*args: Any, calls: Any = calls, last: int = last, **options: Any) -> Any:
            if next(calls) == last:
                raise KeyboardInterrupt
            return branch_and_bound(*args, **options)

        stand_in(branch_and_bound_of_folds=interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            cross_validate(data, GAMMAS, taus, Settings(prove="all"))
        partial = caught.value.partial  # type: ignore[attr-defined]
        assert not partial.complete
        assert str(partial.status) == "interrupted"
        assert np.isfinite(partial.table("upper")).all()
        assert (partial.table("lower") <= exact * (1.0 + 1e-9)).all()
        assert (exact <= partial.table("upper") * (1.0 + 1e-9)).all()
        differs = 0
        for one, gamma in zip(partial.by_gamma, GAMMAS, strict=True):
            assert not one.exact.all()
            known = surface.result([gamma]).by_gamma[0].fold_error
            differs += np.count_nonzero(one.fold_error != known)
        assert differs <= last  # proved before the interrupt


@pytest.mark.parametrize("kind", FOLDS)
def test_an_open_fold_of_few_columns_does_not_see_its_held_out_rows(
    kind: str, stand_in: StandIn
) -> None:
    """Trees end after some nodes, and folds are estimated from their own rows."""
    stand_in(FIRST_NODES=20)
    stand_in(ways=lambda *_: (Way(LEAPS),))
    stand_in(prove_sizes=one_round_of_few_nodes)
    shorten_shared_trees(stand_in)
    rng = np.random.default_rng(2)
    X = rng.standard_normal((26, 22)) + rng.standard_normal((26, 1))
    table = Table(X, X[:, :3].sum(axis=1) + 3.0 * rng.standard_normal(26), None)
    folds = make_folds(FOLDS[kind], 26, seed=0, X=X)
    assert not ledger_of(table, folds, "exact", None).cells.exact.all()
    check_folds(table, folds, (0, folds.k - 1), "exact", None)


def one_round_of_few_nodes(prover: Any, need: Need) -> list[int]:
    """Search every open problem by a tree of 30 nodes."""
    prover.nodes, tried = 30, set[int]()
    while near := prover._next(need, tried, -1.0):
        tried.update(near)
        prover._search(need, near)
    return prover.rows.tolist()


def shorten_shared_trees(stand_in: StandIn) -> None:
    """End every tree that leave-one-out folds share after 30 nodes."""

    def short(*args: Any, limits: Limits, **options: Any) -> Any:
        return best_subsets_rows_deleted(*args, limits=limits.within(nodes=30), **options)

    stand_in(best_subsets_rows_deleted=short)


def estimates_of(table: Table, folds: Folds, asked: UnitConstraints | None = None) -> Ledger:
    """What visits alone find: three γ at once, then one near each end and one in the middle."""
    data = RowFolds(RowTable(table.X, table.y, True, constraints=asked), folds)
    with Surface(data, np.arange(1, 9)) as surface:
        for gammas in ([1.0, 0.03, 30.0], [3.0], [0.3], [90.0], [0.001]):
            surface.visit(gammas)
    return surface.ledger


def assert_same_estimates(ours: Ledger, theirs: Ledger, j: int) -> None:
    """What is proved of fold j, its supports and its coefficients agree to the last bit."""
    rows = range(len(ours.gammas))
    np.testing.assert_array_equal(ours.cells.exact[rows, :, j], theirs.cells.exact[rows, :, j])
    for g, t in itertools.product(rows, range(ours.taus.size)):
        mine, yours = ours.support(g, t, j), theirs.support(g, t, j)
        np.testing.assert_array_equal(mine, yours)
        fits = [known.problem(g, j).fit(mine) for known in (ours, theirs)]
        np.testing.assert_array_equal(fits[0].coef, fits[1].coef)


@pytest.mark.parametrize(("n", "p", "seed"), [(200, 30, 1), (24, 30, 0), (16, 28, 1)])
def test_an_estimate_does_not_depend_on_the_tree_of_all_rows(n: int, p: int, seed: int) -> None:
    """The held-out rows decide whether the tree of all rows ends, and not how a fold is answered.

    With 200 rows the tree of all rows ends in one of the two tables alone.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, p))
    table = Table(X, X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(n), None)
    folds = make_folds(4, n, seed=0)
    ours = estimates_of(table, folds)
    for j in (0, 3):
        theirs = estimates_of(replaced(table, folds.split(j)[1]), folds)
        assert_same_estimates(ours, theirs, j)
        if n == 200:
            assert ours.cells.exact[0, :, ours.k].all()
            assert not theirs.cells.exact[0, :, ours.k].all()


def test_folds_that_a_shared_tree_leaves_open_have_one_kind_of_answer(
    stand_in: StandIn,
) -> None:
    """The tree that folds share ends for reasons of all rows; it decides nothing but proofs."""
    shorten_shared_trees(stand_in)
    rng = np.random.default_rng(2)
    X = rng.standard_normal((26, 22)) + rng.standard_normal((26, 1))
    table = Table(X, X[:, :3].sum(axis=1) + 3.0 * rng.standard_normal(26), None)
    ours = estimates_of(table, make_folds("loo", 26))
    rows = range(len(ours.gammas))
    left = np.argwhere(~ours.cells.exact[rows, :, : ours.k])
    assert left.size
    for j in range(ours.k):
        path = support_path(ours.problem(0, j), ours.gammas, ours.taus, solver="heuristic")
        for g, t in left[left[:, 2] == j, :2].tolist():
            np.testing.assert_array_equal(ours.support(g, t, j), path.support(g, t))


@pytest.mark.parametrize(
    ("kind", "constrained"),
    [*((kind, False) for kind in FOLDS), ("K folds", True), ("ordered", True)],
)
def test_estimates_of_short_trees(kind: str, constrained: bool, stand_in: StandIn) -> None:
    """With trees of so few nodes some folds are proved, at some γ, and others are not.

    Under constraints no tree serves several folds, so that leave-one-out is a number of folds.
    """
    rng = np.random.default_rng(4)
    X = rng.standard_normal((20, 18)) + rng.standard_normal((20, 1))
    table = Table(X, X[:, :3].sum(axis=1) + 2.0 * rng.standard_normal(20), None)
    low = np.where(np.arange(18) < 6, 0.0, -np.inf)
    asked = UnitConstraints.of(18, bounds=(low, np.inf)) if constrained else None
    folds = make_folds(FOLDS[kind], 20, seed=0, X=X)
    nodes = estimates_of(table, folds, asked).work.n_nodes[0] / folds.k
    stand_in(FIRST_NODES=nodes / (0.08 if constrained else 1.0))
    stand_in(ways=lambda *_: (Way(LEAPS),))
    ours = estimates_of(table, folds, asked)
    for j in (0, folds.k - 1):
        theirs = estimates_of(replaced(table, folds.split(j)[1]), folds, asked)
        assert_same_estimates(ours, theirs, j)
    proved = ours.cells.exact[: len(ours.gammas), :, : folds.k].all(axis=1)
    assert 0 < proved.sum() < proved.size
