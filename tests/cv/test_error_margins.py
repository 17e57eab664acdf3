"""A CV error is exact only where rounding leaves it alone: rational numbers judge it."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.folds import about_mean
from support.fresh import draws
from support.heldout_attacks import HELD_OUT, Table, exact_errors, wrong_claims
from support.inside import (
    CVResult,
    DeletedRowSubsets,
    FoldAverages,
    Leaves,
    Ledger,
    Limits,
    RowFolds,
    RowTable,
    RunPlan,
    Settings,
    SizeRound,
    SupportPath,
    cross_validate,
    error_margin,
    inner_weights,
    least_is_proved,
    make_folds,
    split_unit,
)
from support.stand_ins import StandIn
from support.table_attacks import TABLES

from sparsecv import Constraints, SparseRidgeCV
from sparsecv.errors import UnprovedWarning
from sparsecv.selection.projection import ridge_unit
from sparsecv.solvers import SparseRidgeProblem, Status

Array = NDArray[np.float64]


def money_and_total(seed: int = 3, n: int = 20, off: float = 900.0) -> tuple[Array, Array]:
    """Whole dollars near 1e5; the third column is the sum of the others in all rows but one."""
    rng = np.random.default_rng(seed)
    parts = np.round(rng.lognormal(0.0, 0.5, size=(n, 2)) * 1e5)
    total = parts.sum(axis=1)
    total[7] += off
    y = np.round(parts @ np.array([0.2, 0.1]) + rng.standard_normal(n) * 1e3)
    return np.column_stack([parts, total]), y


def surface(
    X: Array,
    y: Array,
    gammas: list[float],
    cv: object = "loo",
    taus: tuple[int, ...] = (1, 2, 3),
    method: str = "exact",
) -> CVResult:
    data = RowFolds(RowTable(X, y, True), make_folds(cv, y.size, seed=0))
    return cross_validate(data, gammas, taus, Settings(method, tol=0.0, prove="all"))


def test_an_ellipsoid_holds_coefficients_at_a_gamma_below_the_one_that_searches_take() -> None:
    """Without row 9 the first column and the third differ by their mean alone, up to 0.05.

    The fold's coefficients are of order 1e14. Searches work at a larger γ, at which they are not.
    """
    cents = np.array([4450.95, 13867.56, 14908.12, 12871.37, 10793.57, 15946.48, 6075.16, 7681.06])
    cents = np.append(cents, [12664.3, 6767.16, 14719.38, 7988.46])
    other = 1e4 * np.array(
        [46.6, 75.4, -7.5, -2.4, -44.9, 47.6, -8.6, -51.5, 19.5, 1.3, 5.8, 241.9]
    )
    first, last = 159464800000.0 + cents, 159464800000.0 + 1e6 * cents
    last[9] += 1e6
    X = np.column_stack([first, 159465666666.0 + other, last])
    y = 1e9 * np.array([40, -53, -155, -97, -108, -122, -18, -92, -80, -12, -106, 217.0])
    truth = exact_errors(
        Table(X, y, None, True), make_folds("loo", 12), [1e-10], np.array([1, 2, 3])
    )
    for method in ("search", "exact"):
        assert not list(wrong_claims(surface(X, y, [1e-10], method=method), truth))


@pytest.mark.parametrize("cv", ["loo", 4])
@pytest.mark.parametrize("gamma", [1e-10, 1e-7])
def test_money_beside_its_total(cv: object, gamma: float) -> None:
    """The fold without row 7 is proved, and its coefficients are noise, which row 7 sees."""
    X, y = money_and_total()
    found, folds = surface(X, y, [gamma], cv), make_folds(cv, y.size, seed=0)
    truth = exact_errors(Table(X, y, None, True), folds, [gamma], np.arange(1, 4))
    assert not list(wrong_claims(found, truth))
    assert found.table("exact")[0].tolist() == [True, True, False]
    assert found.status is Status.PRECISION
    lower, upper = found.table("lower")[0, 2], found.table("upper")[0, 2]
    assert lower <= truth.low[0, 2] <= truth.high[0, 2] <= upper


def test_the_margin_of_one_support_holds_what_rounding_does() -> None:
    """At every γ the margin is at least the distance of the error from the rational one."""
    for seed in range(4):
        X, y = money_and_total(seed)
        rows = np.column_stack([X, y])
        train = np.arange(y.size) != 7
        held = about_mean(rows[[7]], rows[train], True)
        inside = about_mean(rows[train], rows[train], True)
        A, H = (np.array(part, dtype=np.float64) for part in (inside, held))
        for gamma in (1e-10, 1e-6, 1e-2, 1e2, 1e6):
            problem = SparseRidgeProblem(A[:, :-1], A[:, -1], gamma=gamma, tau=3)
            support = np.arange(3)
            coef = problem.fit(support).coef
            error = float(np.sum((H[:, -1] - H[:, :-1] @ coef) ** 2))
            margin = error_margin.support_margin(problem, support, H[:, :-1], H[:, -1], error)
            folds = make_folds([(np.flatnonzero(train), np.array([7]))], y.size)
            truth = exact_errors(Table(X, y, None, True), folds, [gamma], np.array([3])).low[0, 0]
            assert abs(error - truth) <= margin, (seed, gamma)
            if gamma >= 1e2:
                assert margin <= 1e-6 * error, (seed, gamma)


@pytest.mark.parametrize("n", [5, 6, 7, 40])
def test_one_factor_bounds_the_margins_of_all_supports(n: int) -> None:
    """More rows than columns, as many and one more, or fewer: no support moves further."""
    rng = np.random.default_rng(n)
    A, H = rng.standard_normal((n, 6)), rng.standard_normal((4, 6))
    for gamma in (1e-6, 1e-2, 1e2):
        problem = SparseRidgeProblem(A[:, :-1], A[:, -1], gamma=gamma, tau=5)
        moved = error_margin.moved_by_any(problem, np.arange(5), gamma, H[:, :-1], H[:, -1])
        for support in ([0], [1, 3], [0, 2, 4], [0, 1, 2, 3, 4]):
            S = np.array(support)
            residual = H[:, -1] - H[:, S] @ problem.fit(S).coef
            error = float(residual @ residual)
            margin = error_margin.support_margin(problem, S, H[:, :-1], H[:, -1], error)
            assert margin <= 1.01 * error_margin.moved_errors(np.array(error), np.array(moved))


def test_a_tiny_gamma_does_not_send_the_supports_of_others_to_a_look_at_each(
    stand_in: StandIn,
) -> None:
    """Margins hold at every γ of a path; where one factor per γ is enough, nothing else is made."""
    X, y = money_and_total()
    train = np.arange(y.size) != 7
    folds = make_folds([(np.flatnonzero(train), np.array([7]))], y.size)
    rows = np.column_stack([X, y])
    A, H = (
        np.array(about_mean(part, rows[train], True), dtype=np.float64)
        for part in (rows[train], rows[[7]])
    )
    problem = SparseRidgeProblem(A[:, :-1], A[:, -1], gamma=1.0, tau=3)
    gammas = np.array([1e-10, 1e-2, 1e6, 1e8])
    path = SupportPath.of(
        problem, gammas, np.array([2, 3]), np.array([[[0, 1, -1], [0, 1, 2]]] * 4)
    )
    held = H[:, :-1], H[:, -1]
    errors, looked_at = path.squared_errors(*held), list[float]()
    margin_of = error_margin.support_margin

    def counted(at: SparseRidgeProblem, *more: Any) -> float:
        looked_at.append(at.given_gamma)
        return margin_of(at, *more)

    stand_in(support_margin=counted)
    least = 1e-6 * errors
    margins = error_margin.path_margins(problem, gammas, path.supports, *held, errors, least)
    assert set(looked_at).isdisjoint({1e6, 1e8})
    for t, size in enumerate((2, 3)):
        table = Table(X[:, :size], y, None, True)
        truth = exact_errors(table, folds, gammas.tolist(), np.array([size])).low[:, 0]
        assert (abs(errors[:, t] - truth) <= margins[:, t]).all()


def test_sizes_with_one_support_share_a_look_at_it(stand_in: StandIn) -> None:
    """Fits of a support that several sizes have are equal, and their margin is computed once."""
    margin_of, looked_at = error_margin.support_margin, list[tuple[float, int]]()

    def counted(at: SparseRidgeProblem, support: NDArray[np.intp], *more: Any) -> float:
        looked_at.append((at.given_gamma, support.size))
        return margin_of(at, support, *more)

    stand_in(support_margin=counted)
    rng = np.random.default_rng(4)
    A, H = rng.standard_normal((30, 7)), rng.standard_normal((4, 7))
    problem = SparseRidgeProblem(A[:, :-1], A[:, -1], gamma=1.0, tau=5)
    supports = np.full((2, 5, 3), -1)
    supports[:, :2, 0], supports[:, 2:] = 4, [1, 2, 4]
    gammas, held = np.array([0.1, 10.0]), (H[:, :-1], H[:, -1])
    path = SupportPath.of(problem, gammas, np.arange(1, 6), supports)
    errors = path.squared_errors(*held)
    given = problem, gammas, supports, *held
    margins = error_margin.path_margins(*given, errors, np.zeros(errors.shape))
    assert looked_at == [(0.1, 1), (0.1, 3), (10.0, 1), (10.0, 3)]
    for same in (path.coef, errors, margins):
        assert (same[:, 0] == same[:, 1]).all()
        assert (same[:, 2:] == same[:, [2]]).all()
    errors[0, 3] += 1e-3  # An error that somebody claims counts by itself.
    margins = error_margin.path_margins(*given, errors, np.zeros(errors.shape))
    assert margins[0, 3] > 0.99e-3 > margins[0, [2, 4]].max()


def test_a_choice_is_certified_only_by_errors_that_are_exact() -> None:
    X, y = money_and_total()
    model = SparseRidgeCV(cv="loo", rule="minimum", standardize=False, gammas=[1e-10], taus=[3])
    with pytest.warns(UserWarning, match="prove"):
        model.fit(X, y)
    assert not model.certified_
    low, high = model.cv_error_bounds_
    folds = make_folds("loo", y.size)
    truth = exact_errors(Table(X, y, None, True), folds, [1e-10], np.array([3]))
    assert low <= truth.low[0, 0] <= high


def test_at_gamma_zero_dependent_columns_stay_exact_where_held_out_rows_depend_too() -> None:
    X, y = money_and_total(off=0.0)
    found = surface(X, y, [0.0])
    truth = exact_errors(Table(X, y, None, True), make_folds("loo", y.size), [0.0], np.arange(1, 4))
    assert found.table("exact").all()
    assert found.table("cv_error")[0] == pytest.approx(truth.low[0], rel=1e-8)


@pytest.mark.parametrize("factor", [1e-8, 1e-3, 2.0**-20, 2.0**30, 1e3, 1e8])
def test_units_of_y_change_no_statement(factor: float) -> None:
    """Errors have the square of the unit of y; what is exact does not depend on it."""
    X, y = money_and_total()
    for cv in ("loo", 5):
        # Without row 7 all pairs of columns span the same, so that rounding decides between them.
        gammas, taus = [1e-10, 1e-2, 1e4], (1, 3)
        one, other = surface(X, y, gammas, cv, taus), surface(X, factor * y, gammas, cv, taus)
        assert np.array_equal(one.table("exact"), other.table("exact"))
        assert least_is_proved(one) == least_is_proved(other)
        exact = one.table("exact").astype(bool)
        assert not exact.all()
        errors = other.table("cv_error")[exact] / factor**2
        assert errors == pytest.approx(one.table("cv_error")[exact], rel=1e-6)


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**10, 1e-4, 1e6])
def test_units_of_columns_and_weights_change_no_statement(factor: float) -> None:
    """X times c is γ over c², and weights times c are γ times 1/c."""
    X, y = money_and_total()
    folds, taus = make_folds(5, y.size, seed=0), (1, 3)
    weights = np.random.default_rng(1).choice([1.0, 2.0, 3.0], size=y.size)

    def result(c: float, w: float, gammas: list[float]) -> CVResult:
        data = RowFolds(RowTable(c * X, y, True, weights=w * weights), folds)
        return cross_validate(data, gammas, taus, Settings(prove="all"))

    gammas = [1e-9, 1e-1, 1e6]
    one = result(1.0, 1.0, gammas)
    scaled = result(factor, 1.0, [g * factor**2 for g in gammas])
    heavier = result(1.0, factor, [g * factor for g in gammas])
    exact = one.table("exact").astype(bool)
    assert not exact.all()
    for other in (scaled, heavier):
        assert np.array_equal(exact, other.table("exact"))
        assert least_is_proved(other) == least_is_proved(one)
        errors = other.table("cv_error")[exact]
        assert errors == pytest.approx(one.table("cv_error")[exact], rel=1e-6)


@pytest.mark.parametrize("rule", ["minimum", "projected"])
def test_the_default_grid_ends_where_rounding_begins_to_count(rule: str) -> None:
    """Money beside its total: at γ = 1e-4, an end of the default grid, the third size is noise."""
    X, y = money_and_total()
    model = SparseRidgeCV(cv="loo", rule=rule, standardize=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedWarning)
        model.fit(X, y)
    found = model.surface_
    assert found["gamma"].min() > 1e-4
    assert found["exact"].all()
    standardised = SparseRidgeCV(cv="loo", rule="minimum").fit(X[:, :2], y)
    assert standardised.surface_["gamma"].min() <= 1e-4


def test_rules_whose_numbers_rounding_moves_are_not_proved() -> None:
    """Criteria, projections and inner folds take errors on held-out rows, too."""
    X, y = money_and_total()
    for rule in ("one-se", "stability", "corrected", "projected"):
        model = SparseRidgeCV(cv=5, rule=rule, standardize=False, gammas=[1e-10], taus=[3])
        with pytest.warns(UnprovedWarning):
            model.fit(X, y)
        assert not model.certified_, rule


def test_a_projection_has_margins_of_its_own() -> None:
    """The projections of the folds at γ = 0 are noise where the supports that are averaged are."""
    X, y = money_and_total()
    data = RowFolds(RowTable(X, y, True), make_folds(5, y.size, seed=0))
    coefs = [np.array([0.2, 0.1, 0.0]) for _ in range(5)]
    shared = FoldAverages(data, coefs)
    small, large = (np.array([gamma / ridge_unit(data, 5)]) for gamma in (1e-10, 1e4))
    held = next(j for j in range(5) if 7 in data.folds.split(j)[1])
    for ridges, fine in ((small, False), (large, True)):
        one = split_unit(shared, held, ridges, np.array([3]), "exact", None, None, Limits())
        assert one.proved.all()
        distance, error = (bool(off <= 1e-6 * one.errors[1]) for off in one.margins)
        assert distance is error is fine


def test_inner_models_have_margins_of_their_own() -> None:
    X, y = money_and_total()
    data = RowFolds(RowTable(X, y, True), make_folds(5, y.size, seed=0))
    plan = RunPlan.of(Settings(), data)

    def run(_: str, unit: Any, shared: Any, tasks: Any) -> list[Any]:
        return [unit(shared, *task, Limits()) for task in tasks]

    rounds = [SizeRound(np.arange(1, 4), end=3)]
    assert inner_weights(data, np.array([1e4]), rounds, run, plan).proved
    assert not inner_weights(
        data, np.array([1e-10]), [rounds[0]._replace(taus=np.array([3]))], run, plan
    ).proved


def test_held_out_errors_on_fresh_tables() -> None:
    for note, rng in draws(12, 67):
        assert not list(HELD_OUT["held-out errors"](rng, 0)), note


def test_errors_of_realistic_tables() -> None:
    """Money beside shares, rare levels, weights and missing cells, in twelve kinds of folds."""
    for number, (note, rng) in enumerate(draws(12, 68)):
        assert not list(TABLES["realistic tables"](rng, number)), note


def ledger_of_money() -> tuple[Ledger, float]:
    """A ledger whose incumbents are all columns, and the error of the row that sees noise."""
    X, y = money_and_total()
    folds, gamma = make_folds("loo", y.size, seed=0), 1e-10
    ledger = Ledger(RowFolds(RowTable(X, y, True), folds), np.array([3]), [gamma])
    train, held = folds.split(7)
    one = Table(X, y, None, True), SimpleNamespace(k=1, split=lambda _: (train, held))
    return ledger, float(exact_errors(*one, [gamma], np.array([3])).low[0, 0])


def test_the_interval_of_an_unproved_fold_has_the_margin_of_its_incumbent() -> None:
    """Even where no leaf is left below which another support could be."""
    ledger, error = ledger_of_money()
    ledger.offer(0, 0, np.arange(ledger.k), np.arange(3))
    none = Leaves.root(3, 3)
    ledger.bracket(0, 7, none._replace(**{name: part[:0] for name, part in none._asdict().items()}))
    assert ledger.cells.lower[0, 0, 7] <= error <= ledger.cells.upper[0, 0, 7]


def test_the_interval_of_a_fold_that_a_shared_tree_leaves_open_has_a_margin() -> None:
    ledger, error = ledger_of_money()
    ledger.offer(0, 0, np.arange(ledger.k), np.arange(3))
    deleted = ledger.data.deleted_rows
    assert deleted is not None
    factor = deleted.factor[deleted.row_of]
    residual = np.sqrt(ledger.incumbent.error[0, :, : ledger.k]) / factor
    found = DeletedRowSubsets(
        sizes=np.array([3]),
        supports=[np.arange(3)],
        choice=np.zeros(residual.shape, dtype=np.intp),
        objective=ledger.incumbent.objective[0, :, : ledger.k],
        residual=residual,
        low=residual,
        high=np.nextafter(residual, np.inf),
        skipped=np.empty(0, dtype=np.intp),
    )
    ledger.enter_deleted_rows(0, np.arange(ledger.k), found, factor)
    assert not ledger.cells.exact[0, 0, 7]
    assert ledger.cells.lower[0, 0, 7] <= error <= ledger.cells.upper[0, 0, 7]


def test_dependent_columns_and_a_response_of_zeros_raise_no_warning() -> None:
    """One column is twice another, every row is a fold, and there is nothing to explain."""
    column = np.array([-3.0, 0.0, -4.0])
    table = RowTable(np.column_stack([column, 16.0 * column]), np.zeros(3), False)
    data = RowFolds(table, make_folds("loo", 3, seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cross_validate(data, [0.0], (2,), Settings(prove="all"))
    assert (found.table("cv_error") == 0.0).all()


@pytest.mark.parametrize("bounds", [(0.0, np.inf), (-0.1, 0.2)])
def test_errors_within_bounds_have_margins_from_one_factor_and_one_call(
    bounds: tuple[float, float], stand_in: StandIn
) -> None:
    """No support is looked at alone, and a look at one gives no more than all of them have."""
    margin_of, looked_at = error_margin.support_margin, list[float]()

    def counted(at: SparseRidgeProblem, *more: Any) -> float:
        looked_at.append(at.given_gamma)
        return margin_of(at, *more)

    stand_in(support_margin=counted)
    rules = Constraints(bounds=dict.fromkeys(range(6), bounds))
    supports = np.full((3, 4, 5), -1)
    for t, support in enumerate(([0], [1, 3], [0, 1, 4], [0, 1, 2, 3, 5])):
        supports[:, t, : len(support)] = support
    for seed, (n, near) in enumerate([(40, 1.0), (40, 1e-3), (7, 1.0), (5, 1e-2)]):
        rng = np.random.default_rng(seed)
        A, H = rng.standard_normal((n, 7)), rng.standard_normal((4, 7))
        for part in (A, H):  # Two columns may be nearly the same.
            part[:, 1] = part[:, 0] + near * part[:, 1]
        problem = SparseRidgeProblem(A[:, :-1], A[:, -1], gamma=1.0, tau=5, constraints=rules)
        gammas, held = np.array([1e-2, 1.0, 1e2]), (H[:, :-1], H[:, -1])
        path = SupportPath.of(problem, gammas, np.array([1, 2, 3, 5]), supports)
        errors = path.squared_errors(*held)
        enough, given = 1e-6 * errors + 1e-9, (problem, gammas, supports, *held)
        enough[1, 2] = np.inf
        margins = error_margin.path_margins(*given, errors, enough)
        assert np.isinf(margins[1, 2])
        margins[1, 2] = 0.0
        assert (margins <= enough).all()
        off = error_margin.path_margins(*given, errors + 1e-8, np.full(errors.shape, 1.0))
        assert (off >= 0.99e-8).all()
        assert not looked_at
        for g, t in [(0, 0), (0, 2), (1, 1), (2, 3)]:
            at, S = problem.replace(gamma=float(gammas[g])), path.support(g, t)
            alone = margin_of(at, S, *held, float(errors[g, t]))
            assert alone <= 1.01 * margins[g, t] + 1e-14 * errors[g, t], (seed, g, t)
