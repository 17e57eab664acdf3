"""Every h(γ, τ) against enumeration; intervals where a limit was hit; parallel folds."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from cv_brute_force import (
    Bracket,
    assert_within,
    brute_force,
    fold_errors,
    in_fold,
    inside,
    ridge,
    standardised,
)
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sparsecv.cv import fold_solvers
from sparsecv.cv.engine import Budget, cross_validate, interruptible
from sparsecv.cv.results import CVResult
from sparsecv.cv.settings import Settings, checked_gammas, checked_taus, default_taus, log_grid
from sparsecv.design.design import Protocol, Summary, make_design
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import Folds, make_folds
from sparsecv.errors import InputError
from sparsecv.solvers.branching import sizes as size_solvers

Array = NDArray[np.float64]
KINDS = ["normal", "collinear", "binary", "levels", "integers"]
PROTOCOLS = [
    Protocol(name, scale, intercept)
    for scale in ("unit-variance", "unit-norm", "none")
    for name, intercept in (("honest", True), ("honest", False), ("paper", True))
]
pytestmark = pytest.mark.filterwarnings("ignore::sparsecv.errors.ConstantColumnWarning")
deterministic = settings(
    deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), max_examples=60
)


def columns(kind: str, n: int, p: int, rng: np.random.Generator) -> Array:
    """Columns of the sort that real tables have."""
    if kind == "collinear":
        return rng.standard_normal((n, 1)) + 1e-2 * rng.standard_normal((n, p))
    if kind == "binary":
        return (rng.random((n, p)) < 0.4).astype(float)
    if kind == "levels":
        return np.eye(max(p - 1, 1), p)[rng.integers(0, max(p - 1, 1), n)]
    if kind == "integers":
        return rng.integers(-2, 3, (n, p)).astype(float)
    return rng.standard_normal((n, p)) + 10.0 * rng.integers(0, 2, p)


class Case:
    """One data set with its folds, solved by the package and by enumeration."""

    def __init__(
        self, X: Array, y: Array, protocol: Protocol, cv: Any, gammas: Sequence[float]
    ) -> None:
        names = [f"x{j}" for j in range(X.shape[1])]
        self.design = make_design(Summary.of(X, y), protocol, names)
        self.folds = make_folds(cv, y.size, seed=0)
        self.refit = protocol.refit_intercept
        self.data = RowFolds(*self.design.apply(X, y), self.folds, self.refit)
        self.A, self.b, kept = standardised(
            X, y, protocol=protocol.name, scale=protocol.scale, intercept=protocol.intercept
        )
        np.testing.assert_array_equal(kept, self.design.kept)
        self.gammas = np.array(gammas)
        self.taus = np.arange(1, self.design.p + 1)
        self.pairs = [self.folds.split(j) for j in range(self.folds.k)]

    def truth(self) -> Bracket:
        return brute_force(self.A, self.b, self.pairs, self.gammas, self.taus, self.refit)

    def run(self, method: str, **options: Any) -> CVResult:
        return cross_validate(self.data, self.gammas, self.taus, Settings(method, **options))

    def check_supports(self, result: CVResult) -> None:
        """Refitting every reported support on its fold gives the reported error."""
        for one in result.by_gamma:
            for t in range(self.taus.size):
                total = 0.0
                for j, (train, test) in enumerate(self.pairs):
                    support = one.supports[one.choice[t, j]]
                    assert support.size == self.taus[t]
                    A, b, H, target = in_fold(self.A, self.b, train, test, self.refit)
                    beta = ridge(A[:, support], b, one.gamma)[0]
                    total += float(np.sum((target - H[:, support] @ beta) ** 2))
                rows = self.folds.sizes.sum()
                scale = float(np.mean(self.b**2))
                np.testing.assert_allclose(
                    one.cv_error[t], total / rows, rtol=1e-5, atol=1e-9 * scale
                )


def draw_case(draw: Callable[[Any], Any], low: float, high: float) -> Case:
    """A small random instance; hypothesis chooses its shape, a seed its numbers."""
    n, p = draw(st.integers(2, 11)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X = columns(draw(st.sampled_from(KINDS)), n, p, rng)
    if p > 1 and draw(st.booleans()):
        X[:, draw(st.integers(0, p - 1))] = X[:, draw(st.integers(0, p - 1))]
    if p > 1 and draw(st.integers(0, 3)) == 0:
        X[:, draw(st.integers(0, p - 1))] = 3.3
    y = draw(st.sampled_from([0.0, 1.0])) * X[:, 0] + rng.standard_normal(n)
    if draw(st.integers(0, 4)) == 0:
        y = np.round(y)
    assume((np.ptp(X, axis=0) > 0).any() and np.ptp(y) > 0)
    kind = draw(st.sampled_from(["loo", "k", "size", "pairs", "permuted"]))
    cv: Any = kind
    if kind == "k":
        cv = draw(st.integers(2, n))
    elif kind == "size":
        cv = f"size:{draw(st.integers(1, n // 2))}"
    elif kind == "permuted":
        cv = [(np.delete(np.arange(n), i), [i]) for i in rng.permutation(n)]
    elif kind == "pairs":
        cv = []
        for _ in range(draw(st.integers(1, 3))):
            order = rng.permutation(n)
            ends = sorted(rng.choice(np.arange(1, n + 1), 2, replace=False))
            cv.append((order[: ends[0]], order[ends[0] : ends[1]]))
    gammas = [10.0 ** draw(st.floats(low, high)) for _ in range(2)]
    return Case(X, y, draw(st.sampled_from(PROTOCOLS)), cv, gammas)


@given(st.data())
@deterministic
def test_exact_and_grid_equal_enumeration(data: st.DataObject) -> None:
    case = draw_case(data.draw, -8.0, 8.0)
    truth = case.truth()
    for method in ("exact", "grid"):
        result = case.run(method)
        assert result.complete
        assert_within(result.table("cv_error"), truth, what=method)
        np.testing.assert_array_equal(result.table("lower"), result.table("cv_error"))
        np.testing.assert_array_equal(result.table("upper"), result.table("cv_error"))
        best = result.best()
        assert best.certified
        assert_within(np.array([best.cv_error]), _least(truth), what="best")


def _least(truth: Bracket) -> Bracket:
    return truth._replace(
        low=truth.low.min(keepdims=True)[0],
        high=truth.high.min(keepdims=True)[0],
        slack=truth.slack.max(keepdims=True)[0],
    )


@given(st.data())
@settings(deterministic, max_examples=40)
def test_reported_supports_reproduce_the_errors(data: st.DataObject) -> None:
    case = draw_case(data.draw, -3.0, 8.0)
    for method in ("exact", "grid"):
        case.check_supports(case.run(method))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("cv", ["loo", 3, "size:2"])
@pytest.mark.parametrize(("n", "p"), [(5, 7), (7, 7), (14, 6)])
def test_shapes_and_protocols(protocol: Protocol, cv: Any, n: int, p: int) -> None:
    rng = np.random.default_rng([n, p])
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-1, 2, p) + rng.integers(0, 3, p)
    y = X[:, 0] + X[:, 1] + rng.standard_normal(n) + 5.0
    case = Case(X, y, protocol, cv, [1e-2, 30.0])
    truth = case.truth()
    for method in ("exact", "grid"):
        assert_within(case.run(method).table("cv_error"), truth, what=method)


@pytest.mark.parametrize("gamma", [1e-8, 1e-6, 1e-4, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("cv", ["loo", 4])
def test_extreme_gammas(gamma: float, cv: Any) -> None:
    rng = np.random.default_rng(3)
    for n, p in ((6, 7), (12, 5)):
        X = rng.standard_normal((n, p))
        y = X @ rng.standard_normal(p) + rng.standard_normal(n)
        case = Case(X, y, Protocol(), cv, [gamma])
        for method in ("exact", "grid"):
            result = case.run(method)
            assert result.complete
            assert_within(result.table("cv_error"), case.truth(), what=method)


@pytest.mark.parametrize(("n", "p", "cv"), [(13, 12, 3), (30, 11, 5), (8, 10, "loo")])
def test_up_to_twelve_columns(n: int, p: int, cv: Any) -> None:
    rng = np.random.default_rng(p)
    X = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1))
    X[:, p - 1] = X[:, 0]
    y = X[:, :3].sum(axis=1) + rng.standard_normal(n)
    case = Case(X, y, Protocol(), cv, [0.3])
    truth = case.truth()
    result = case.run("exact")
    assert_within(result.table("cv_error"), truth)
    case.check_supports(result)


@pytest.mark.parametrize("cv", [3, "loo"])
def test_more_columns_than_the_trees_take(cv: Any) -> None:
    """Beyond 45 columns single sizes are branched on: the same numbers."""
    rng = np.random.default_rng(0)
    n, p = 12, 48
    X = rng.standard_normal((n, p))
    y = X[:, 3] - X[:, 40] + 0.3 * rng.standard_normal(n)
    case = Case(X, y, Protocol(), cv, [1.0])
    case.taus = np.array([1, 2])
    truth = case.truth()
    for method in ("exact", "grid"):
        result = case.run(method)
        assert result.complete
        assert_within(result.table("cv_error"), truth, what=method)


@pytest.mark.parametrize("gamma", [1e-8, 1.0, 1e8])
def test_two_rows(gamma: float) -> None:
    X = np.array([[1.0, 2.0, 0.0], [2.0, 7.0, 1.0]])
    y = np.array([1.0, 4.0])
    for protocol in PROTOCOLS:
        for cv in ("loo", 2, [([0], [1])]):
            case = Case(X, y, protocol, cv, [gamma])
            truth = case.truth()
            for method in ("exact", "grid"):
                assert_within(case.run(method).table("cv_error"), truth, what=method)


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
    data = RowFolds(*_raw(X, y), make_folds("loo", 10), True)
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


# ---------------------------------------------------------------------------- limits


def limit_nodes(monkeypatch: pytest.MonkeyPatch, nodes: int) -> None:
    """Stop every search of a fold after ``nodes`` nodes."""

    def limited(solver: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **options: solver(*args, **{**options, "node_limit": nodes})

    for module, name in (
        (size_solvers, "best_subsets"),
        (fold_solvers, "best_subsets_rows_deleted"),
        (fold_solvers, "solve"),
    ):
        monkeypatch.setattr(module, name, limited(getattr(module, name)))


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
    best, least = result.best(), _least(truth)
    bound = np.array([best.lower_bound])
    assert inside(np.zeros(1), np.array([best.upper]), least).all()
    assert inside(bound, np.maximum(bound, least.high), least).all()
    if best.certified:
        assert_within(np.array([best.cv_error]), least, 4e-9, what="certified")
    assert result.complete == exact.all()


@given(st.data(), st.integers(0, 12))
@settings(deterministic, max_examples=60)
def test_intervals_under_node_limits(data: st.DataObject, nodes: int) -> None:
    case = draw_case(data.draw, -6.0, 6.0)
    truth = case.truth()
    for method in ("exact", "grid"):
        with pytest.MonkeyPatch.context() as monkeypatch:
            limit_nodes(monkeypatch, nodes)
            result = case.run(method)
        check_bounds(case, result, truth, f"{method}, {nodes} nodes")


@pytest.mark.parametrize("cv", ["loo", 4])
@pytest.mark.parametrize("method", ["exact", "grid"])
def test_limits_leave_intervals(cv: Any, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits above do bite: some intervals are open, and more nodes close them."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((12, 7)) + rng.standard_normal((12, 1))
    case = Case(X, X[:, :3].sum(axis=1) + 2 * rng.standard_normal(12), Protocol(), cv, [0.1])
    truth = case.truth()
    open_sizes = []
    for nodes in (1, 3, 10, 10_000):
        with monkeypatch.context() as patch:
            limit_nodes(patch, nodes)
            result = case.run(method)
        check_bounds(case, result, truth, f"{nodes} nodes")
        open_sizes.append(int((~result.table("exact")).sum()))
    assert open_sizes[0] > 0
    assert open_sizes[-1] == 0
    assert open_sizes == sorted(open_sizes, reverse=True)


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
    assert not bounded.best().certified
    solved = case.run("exact")
    lower, upper, h = bounded.table("lower"), bounded.table("upper"), solved.table("cv_error")
    assert (lower <= h * (1 + 1e-9)).all()
    assert (h <= upper * (1 + 1e-9)).all()
    exact = bounded.table("exact").astype(bool)
    np.testing.assert_allclose(bounded.table("cv_error")[exact], h[exact], rtol=1e-9)
    assert bounded.best().lower_bound <= h.min() * (1 + 1e-9)


@pytest.mark.parametrize("method", ["exact", "grid"])
def test_no_search_begins_after_the_time_limit(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 50))
    case = Case(X, X[:, 0] + rng.standard_normal(40), Protocol(), 5, [1.0])
    case.taus = np.array([1, 4, 9])
    searched: list[float] = []

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def search(*args: Any, **options: Any) -> Any:
            searched.append(options["time_limit"])
            return real(*args, **options)

        return search

    for name in ("solve", "solve_sizes"):
        monkeypatch.setattr(fold_solvers, name, counted(getattr(fold_solvers, name)))
    (result,) = case.run(method, time_limit=1e-9).by_gamma
    assert searched == []
    assert result.n_mio == 0
    assert not result.mio_by_tau.any()
    assert result.status == "time limit"
    assert result.supports
    (result,) = case.run(method, time_limit=100.0).by_gamma
    assert len(searched) == (15 if method == "grid" else 5)
    assert all(0.0 < seconds < 100.0 for seconds in searched)
    assert result.exact.all()
    assert result.status == "optimal"
    assert (result.mio_by_tau == 5).all()


def test_more_columns_than_rows_is_bounded_at_any_size() -> None:
    """Far too many columns for any tree: still intervals that hold the incumbents."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 200))
    case = Case(X, X[:, 0] + rng.standard_normal(30), Protocol(), 3, [1.0])
    case.taus = np.array([1, 5, 20])
    result = case.run("exact", time_limit=1e-9)
    lower, error, upper = (result.table(name) for name in ("lower", "cv_error", "upper"))
    assert np.isfinite(upper).all()
    assert (lower <= error).all()
    assert (error <= upper).all()
    one = brute_force(case.A, case.b, case.pairs, case.gammas, [1], True)
    assert inside(lower[:, :1], upper[:, :1], one).all()


def test_budget() -> None:
    assert Budget(None).share(5.0) is None
    budget = Budget(10.0)
    first = budget.share(4.0)
    assert first is not None
    assert 2.0 < first <= 2.5
    assert Budget(1e-12).share(3.0) == 0.0
    whole = budget.share(0.1)
    assert whole is not None
    assert whole <= 10.0


# ---------------------------------------------------------------------------- the rest


@pytest.mark.parametrize("method", ["exact", "grid"])
@pytest.mark.parametrize("cv", ["loo", 20, "size:7"])
def test_parallel_folds_give_the_same_numbers(method: str, cv: Any) -> None:
    rng = np.random.default_rng(4)
    X = (rng.random((60, 8)) < 0.3).astype(float)  # ties, where the order of work could matter
    X[:, 7] = X[:, 0]
    y = np.round(X[:, :4].sum(axis=1) + rng.standard_normal(60))
    case = Case(X, y, Protocol(), cv, [1e-3, 1.0])
    serial = case.run(method, n_jobs=1)
    for n_jobs in (2, 3, -1):
        parallel = case.run(method, n_jobs=n_jobs)
        for name in ("cv_error", "std_error", "lower", "upper", "exact", "n_nodes", "n_mio"):
            np.testing.assert_array_equal(parallel.table(name), serial.table(name), err_msg=name)
        for one, other in zip(parallel.by_gamma, serial.by_gamma, strict=True):
            for t in range(8):
                for j in range(case.folds.k):
                    np.testing.assert_array_equal(
                        one.supports[one.choice[t, j]], other.supports[other.choice[t, j]]
                    )


def test_many_rows_share_trees_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave-one-out in several shared trees, serial and parallel, equals one tree."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((50, 5))
    y = X[:, 0] + rng.standard_normal(50)
    case = Case(X, y, Protocol(), "loo", [0.5])
    whole = case.run("exact")
    assert whole.by_gamma[0].n_mio == 1
    monkeypatch.setattr(fold_solvers, "FOLDS_PER_TREE", 7)
    for n_jobs in (1, 2):
        blocks = case.run("exact", n_jobs=n_jobs)
        assert blocks.by_gamma[0].n_mio == 8
        np.testing.assert_allclose(blocks.table("cv_error"), whole.table("cv_error"), rtol=1e-12)
        case.check_supports(blocks)


def test_counts() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    y = X[:, 0] + rng.standard_normal(30)
    case = Case(X, y, Protocol(), 6, [1.0])
    grid, exact = case.run("grid").by_gamma[0], case.run("exact").by_gamma[0]
    assert grid.n_mio == 30
    assert grid.mio_by_tau.tolist() == [6] * 5
    assert exact.n_mio == 6
    assert exact.n_nodes > 0
    shared = Case(X, y, Protocol(), "loo", [1.0]).run("exact").by_gamma[0]
    assert shared.n_mio == 1


def test_a_subset_of_taus_gives_the_same_errors() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 7))
    y = X[:, 0] + rng.standard_normal(20)
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


def test_progress_and_finished() -> None:
    X = np.random.default_rng(0).standard_normal((10, 3))
    case = Case(X, X[:, 0] + 1.0, Protocol(), 4, [1.0, 2.0])
    ticks: list[tuple[float, int, int]] = []
    finished: list[float] = []
    cross_validate(
        case.data,
        case.gammas,
        case.taus,
        progress=lambda g, i, k: ticks.append((g, i, k)),
        finished=lambda result: finished.append(result.gamma),
    )
    assert finished == [1.0, 2.0]
    for gamma in (1.0, 2.0):
        done = [i for g, i, _ in ticks if g == gamma]
        assert done == [0, 1, 2, 3, 4]
    assert {k for _, _, k in ticks} == {4}


def test_known_results_are_taken() -> None:
    X = np.random.default_rng(0).standard_normal((10, 3))
    case = Case(X, X[:, 0] + 1.0, Protocol(), 4, [1.0, 2.0])
    first = case.run("exact")
    stored = {r.gamma: r for r in first.by_gamma}
    fresh: list[float] = []
    again = cross_validate(
        case.data,
        [1.0, 3.0, 2.0],
        case.taus,
        known=stored.get,
        finished=lambda result: fresh.append(result.gamma),
    )
    assert fresh == [3.0]
    assert again.by_gamma[0] is stored[1.0]
    assert again.by_gamma[2] is stored[2.0]


def test_default_taus_and_grids() -> None:
    assert default_taus(10, 7).tolist() == [1, 2, 3, 4, 5, 6, 7]
    large = default_taus(100, 500)
    top = int(large[-1])
    assert large.tolist() == list(range(1, top + 1))
    assert top * np.log(top) <= 100 < (top + 1) * np.log(top + 1)
    np.testing.assert_allclose(log_grid(0.1, 10.0, 3), [0.1, 1.0, 10.0])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], "gamma"),
        ([0.0], "gamma must be finite and > 0; got 0"),
        ([1.0, -2.0], "got -2"),
        ([np.nan], "got nan"),
        ([np.inf], "got inf"),
    ],
)
def test_bad_gammas(values: list[float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        checked_gammas(values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], "tau"),
        ([0], "tau must lie between 1 and p = 4, .*; got 0"),
        ([1, 5], "got 5"),
        ([1.5], "whole numbers"),
        ([True], "whole numbers"),
        (["1"], "whole numbers"),
    ],
)
def test_bad_taus(values: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        checked_taus(values, 4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "fast"}, "method must be one of auto, exact, grid.*; got 'fast'"),
        ({"backend": "abacus"}, "backend.*abacus"),
        ({"time_limit": 0.0}, "time_limit must be > 0"),
        ({"time_limit": -1.0}, "time_limit must be > 0"),
        ({"time_limit": np.nan}, "time_limit must be > 0"),
    ],
)
def test_bad_settings(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Settings(**options)


def test_gamma_too_small_for_dependent_columns() -> None:
    """Below what double precision can tell from zero: one line, not a division by zero."""
    X = np.random.default_rng(0).standard_normal((6, 3))
    X[:, 1] = X[:, 0]
    for cv in (2, "loo"):
        case = Case(X, X[:, 0] + X[:, 2] ** 2, Protocol(), cv, [1e-30])
        with pytest.raises(InputError, match="gamma"):
            case.run("exact")


def test_folds_of_one_training_row() -> None:
    folds: Folds = make_folds([([0], [1, 2, 3]), ([3], [0])], 4)
    assert folds.k == 2
    X = np.random.default_rng(0).standard_normal((4, 2))
    for protocol in PROTOCOLS:
        case = Case(X, np.arange(4.0), protocol, [([0], [1, 2, 3]), ([3], [0])], [0.1])
        assert_within(case.run("exact").table("cv_error"), case.truth())


def test_a_column_of_ones_can_be_selected_where_there_is_no_intercept() -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.standard_normal((14, 3)), np.full(14, 2.0), np.zeros(14)])
    for cv in ("loo", 4):
        case = Case(X, 5.0 + rng.standard_normal(14), Protocol(intercept=False), cv, [0.1, 3.0])
        result = case.run("exact")
        assert_within(result.table("cv_error"), case.truth())
        assert all(one.models[0].tolist() == [3] for one in result.by_gamma)


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible() as stop:
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            signal.raise_signal(signal.SIGINT)
            assert not stop.is_set()
    finally:
        signal.signal(signal.SIGINT, previous)
