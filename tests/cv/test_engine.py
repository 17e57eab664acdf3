"""Every h(γ, τ) against enumeration; parallel folds; order, counts and progress."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cross_validations import PROTOCOLS, Array, Case, draw_case, least_of
from support.folds import assert_within, fold_errors, inside
from support.fresh import plain_run
from support.inside import (
    CVResult,
    Protocol,
    RowFolds,
    RowTable,
    Settings,
    Summary,
    cross_validate,
    least_is_proved,
    make_design,
    make_folds,
    make_synthetic,
)
from support.problems import regression
from support.stand_ins import StandIn, real

pytestmark = pytest.mark.filterwarnings("ignore::sparsecv.errors.ConstantColumnWarning")


def right_results(case: Case, truth: Any, **options: Any) -> Iterator[CVResult]:
    """Yield what the methods exact and grid give, once it is known to be complete and the truth."""
    for method in ("exact", "grid"):
        result = case.run(method, **options)
        assert result.complete
        assert_within(result.table("cv_error"), truth, what=method)
        yield result


@given(st.data())
def test_exact_and_grid_equal_enumeration(data: st.DataObject) -> None:
    case = draw_case(data.draw, -6.0, 8.0)
    truth = case.truth()
    for result in right_results(case, truth):
        np.testing.assert_array_equal(result.table("lower"), result.table("cv_error"))
        np.testing.assert_array_equal(result.table("upper"), result.table("cv_error"))
        best = result.best()
        assert least_is_proved(result)
        # Of errors that differ by at most ``rounding`` the one of fewest columns is the choice.
        low, high = best.cv_error - result.rounding, best.cv_error
        assert inside(np.array([low]), np.array([high]), least_of(truth)).all()


@given(st.data())
def test_reported_supports_reproduce_the_errors(data: st.DataObject) -> None:
    case = draw_case(data.draw, -3.0, 8.0)
    for method in ("exact", "grid"):
        case.check_supports(case.run(method))


CORNERS = [
    *[(n, p, cv, 30.0) for n, p in ((5, 7), (7, 7), (14, 6)) for cv in ("loo", 3, "size:2")],
    *[(2, 3, cv, 10.0**k) for cv in ("loo", 2, [([0], [1])]) for k in (-8, 0, 8)],
    *[(12, 5, cv, 10.0**k) for cv in ("loo", 4) for k in (-8, -6, -4, 4, 6, 8)],
]


@pytest.mark.parametrize(
    ("number", "protocol"),
    [
        (i, protocol)
        for i in range(len(CORNERS))
        for j, protocol in enumerate(PROTOCOLS)
        if (i + i // 3 + j) % 3 == 0 or not plain_run()  # every kind of folds meets every protocol
    ],
)
def test_shapes_and_protocols(number: int, protocol: Protocol) -> None:
    n, p, cv, gamma = CORNERS[number]
    rng = np.random.default_rng([n, p])
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-1, 2, p) + rng.integers(0, 3, p)
    y = X[:, 0] + X[:, 1] + rng.standard_normal(n) + 5.0
    case = Case(X, y, protocol, cv, [1e-2, gamma])
    assert len(list(right_results(case, case.truth()))) == 2


@pytest.mark.parametrize("cv", [3, "loo"])
def test_more_columns_than_the_trees_take(cv: Any) -> None:
    """Beyond 45 columns single sizes are branched on: the same numbers."""
    rng = np.random.default_rng(0)
    n, p = 12, 48
    X = rng.standard_normal((n, p))
    y = X[:, 3] - X[:, 40] + 0.3 * rng.standard_normal(n)
    case = Case(X, y, Protocol(), cv, [1.0])
    case.taus = np.array([1, 2])
    assert len(list(right_results(case, case.truth(), prove="all"))) == 2


def test_row_order_of_leave_one_out_does_not_matter() -> None:
    """Rows too influential to be deleted by a down-date, in folds that are not in row order."""
    rng = np.random.default_rng(0)
    n = 9
    X = np.column_stack([np.eye(n)[:, 4], np.eye(n)[:, 7], rng.standard_normal(n)])
    y = rng.standard_normal(n)
    order = rng.permutation(n)
    permuted = [(np.delete(np.arange(n), i), [i]) for i in order]
    for gamma in (1e-8, 1e-6, 1.0):
        loo = Case(X, y, Protocol(), "loo", [gamma])
        truth, expected = loo.truth(), loo.run("exact")
        assert_within(expected.table("cv_error"), truth)
        for cv in (n, f"{n}", permuted, "size:1"):
            case = Case(X, y, Protocol(), cv, [gamma])
            found = case.run("exact")
            assert_within(found.table("cv_error"), truth, what=str(cv))
            case.check_supports(found)


def test_large_means_cost_no_digits() -> None:
    """A nearly perfect fit far from zero: centring must not leave a residual of its own."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(10)
    X, y = (x + 1e4)[:, None], 5e-3 * x + 1e-6 * rng.standard_normal(10) + 1e4
    data = RowFolds(RowTable(*_raw(X, y), True), make_folds("loo", 10))
    shared = cross_validate(data, [1e-4], [1], Settings("exact")).table("cv_error")
    single = cross_validate(data, [1e-4], [1], Settings("grid")).table("cv_error")
    np.testing.assert_allclose(shared, single, rtol=1e-9)


def _raw(X: Array, y: Array) -> tuple[Array, Array]:
    return make_design(Summary.of(X, y), Protocol("honest", "none"), ["x"]).apply(X, y)


def test_constant_response_has_no_error() -> None:
    X = np.random.default_rng(0).standard_normal((8, 3))
    case = Case(X, np.full(8, 0.1), Protocol(), "loo", [1.0])
    for method in ("exact", "grid"):
        assert case.run(method).table("cv_error").max() < 1e-30


@pytest.mark.parametrize("cv", ["loo", 4])
def test_standard_error_is_that_of_the_mean_over_folds(cv: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3))
    case = Case(X, X[:, 0] + rng.standard_normal(12), Protocol(), cv, [1.0])
    one = case.run("exact").by_gamma[0]
    errors = fold_errors(case.A, case.b, case.pairs, case.gammas, case.taus, True)[0][0]
    means = errors / case.folds.sizes
    expected = means.std(axis=1, ddof=1) / np.sqrt(case.folds.k)
    np.testing.assert_allclose(one.std_error, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("method", "cv"), [("exact", "loo"), ("exact", 20), ("exact", "size:7"), ("grid", 20)]
)
def test_parallel_folds_give_the_same_numbers(method: str, cv: Any) -> None:
    rng = np.random.default_rng(4)
    X = (rng.random((60, 8)) < 0.3).astype(float)  # ties, where the order of work could matter
    X[:, 7] = X[:, 0]
    y = np.round(X[:, :4].sum(axis=1) + rng.standard_normal(60))
    case = Case(X, y, Protocol(), cv, [1e-3, 1.0])
    serial = case.run(method, n_jobs=1)
    for n_jobs in (3, -1):
        parallel = case.run(method, n_jobs=n_jobs)
        for name in ("cv_error", "std_error", "lower", "upper", "exact", "n_nodes", "n_mio"):
            np.testing.assert_array_equal(parallel.table(name), serial.table(name), err_msg=name)
        for one, other in zip(parallel.by_gamma, serial.by_gamma, strict=True):
            for t in range(8):
                for j in range(case.folds.k):
                    np.testing.assert_array_equal(
                        one.supports[one.choice[t, j]], other.supports[other.choice[t, j]]
                    )


def test_many_rows_share_trees_in_blocks(stand_in: StandIn) -> None:
    """Leave-one-out in several shared trees, serial and parallel, equals one tree."""
    X, y = regression(50, 5, {0: 1.0}, seed=5)
    case = Case(X, y, Protocol(), "loo", [0.5])
    whole = case.run("exact")
    assert whole.by_gamma[0].n_mio == 1
    stand_in(FOLDS_PER_TREE=7)
    for n_jobs in (1, 2):
        blocks = case.run("exact", n_jobs=n_jobs)
        assert blocks.by_gamma[0].n_mio == 8
        np.testing.assert_allclose(blocks.table("cv_error"), whole.table("cv_error"), rtol=1e-12)
        case.check_supports(blocks)


def test_a_subset_of_taus_gives_the_same_errors() -> None:
    X, y = regression(20, 7, {0: 1.0})
    for cv in ("loo", 4):
        case = Case(X, y, Protocol(), cv, [0.1, 10.0])
        every = case.run("exact").table("cv_error")
        found = cross_validate(case.data, case.gammas, [5, 2, 5, 7])
        assert found.taus.tolist() == [2, 5, 7]
        np.testing.assert_allclose(found.table("cv_error"), every[:, [1, 4, 6]], rtol=1e-10)


def test_gamma_order_and_repeats_are_kept() -> None:
    X = np.random.default_rng(0).standard_normal((10, 3))
    case = Case(X, X[:, 0] + X[:, 1] ** 2, Protocol(), 3, [5.0, 0.1, 5.0])
    result = case.run("auto")
    assert result.gammas.tolist() == [5.0, 0.1, 5.0]
    assert [r.gamma for r in result.by_gamma] == [5.0, 0.1, 5.0]
    table = result.table("cv_error")
    np.testing.assert_array_equal(table[0], table[2])


def test_a_column_of_ones_can_be_selected_where_there_is_no_intercept() -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.standard_normal((14, 3)), np.full(14, 2.0), np.zeros(14)])
    for cv in ("loo", 4):
        case = Case(X, 5.0 + rng.standard_normal(14), Protocol(intercept=False), cv, [0.1, 3.0])
        result = case.run("exact")
        assert_within(result.table("cv_error"), case.truth())
        assert all(one.models[0].tolist() == [3] for one in result.by_gamma)


def test_an_ignored_ctrl_c_stays_ignored(stand_in: StandIn) -> None:
    unit = real("fold_unit")

    def pressed(*given: Any) -> Any:
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.raise_signal(signal.SIGINT)
        return unit(*given)

    stand_in(fold_unit=pressed)
    X, y = regression(20, 4, {0: 1.0})
    case = Case(X, y, Protocol(), 4, [1.0])
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert case.run("exact").complete
    finally:
        signal.signal(signal.SIGINT, previous)


def test_the_history_of_a_search_tightens_bounds_to_those_of_the_result() -> None:
    X, y, _ = make_synthetic(40, 8, 4, 0.7, 1.0, seed=1)
    data = RowFolds(RowTable(X, y), make_folds("loo", 40))
    settings = Settings("search", bounds="paper", tol=0.0)
    searched = cross_validate(data, [0.1], np.arange(1, 9), settings).by_gamma[0]
    lower, upper = np.zeros(8), np.full(8, np.inf)
    for _, t, low, high in searched.history:
        assert low >= lower[int(t)] - 1e-12
        assert high <= upper[int(t)] + 1e-12
        lower[int(t)], upper[int(t)] = low, high
    assert {int(step[0]) for step in searched.history} == set(range(searched.n_mio + 1))
    np.testing.assert_allclose(lower, searched.lower)
    np.testing.assert_allclose(upper, searched.upper)
