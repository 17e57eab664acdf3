"""The γ step, alternating minimisation and the search over sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.fresh import examples
from support.inside import (
    DEFAULT_GAMMAS,
    WINGS,
    FixedSupports,
    FoldMoments,
    MomentFolds,
    Protocol,
    RowFolds,
    RowTable,
    RunPlan,
    Settings,
    Summary,
    Surface,
    alternate,
    alternating,
    cross_validate,
    grown_grid,
    least_is_proved,
    make_design,
    make_folds,
    make_synthetic,
)
from support.stand_ins import StandIn

from sparsecv import SparseRidgeCV
from sparsecv.cv.gamma_step import gamma_step
from sparsecv.errors import InputError
from sparsecv.selection.weights import soft_least
from sparsecv.solvers import Status

Array = NDArray[np.float64]


def folds_of(seed: int, cv: str | int = "loo", n: int = 40, p: int = 8) -> RowFolds:
    X, y, _ = make_synthetic(n, p, 3, 0.6, 1.0, seed=seed)
    return RowFolds(RowTable(X, y, bool(seed % 2)), make_folds(cv, n, seed=seed))


@settings(max_examples=examples(60))
@given(st.integers(0, 1000), st.sampled_from(["loo", 4, 7]), st.floats(-8, 8))
def test_fixed_supports_are_ridge_fits(seed: int, cv: str | int, exponent: float) -> None:
    """h with the supports fixed equals refits, and its slope the difference quotient."""
    data, gamma = folds_of(seed, cv), 10.0**exponent
    rng = np.random.default_rng(seed)
    supports = [
        np.sort(rng.choice(data.p, rng.integers(1, data.p + 1), replace=False)).astype(np.intp)
        for _ in range(data.folds.k)
    ]
    fixed = FixedSupports.of(data, supports)
    total = 0.0
    for j, support in enumerate(supports):
        fit = data.training(j).replace(gamma=gamma).fit(support)
        H, t = data.held_out(j)
        total += float(np.sum((t - H[:, support] @ fit.coef) ** 2))
    assert fixed.at(gamma)[0] == pytest.approx(total / data.folds.n, rel=1e-7)
    step = 1e-4 * gamma
    quotient = (fixed.at(gamma + step)[0] - fixed.at(gamma - step)[0]) / (2 * step)
    scale = abs(fixed.at(gamma)[0]) / gamma
    assert fixed.at(gamma)[1] == pytest.approx(quotient, rel=1e-3, abs=1e-6 * scale)


@settings(max_examples=examples(40))
@given(st.integers(0, 1000), st.floats(-6, 6))
def test_the_gamma_step_finds_the_best_of_a_fine_grid(seed: int, exponent: float) -> None:
    data = folds_of(seed)
    one = cross_validate(data, [1.0], [3]).by_gamma[0]
    fixed = FixedSupports.of(data, [one.supports[c] for c in one.choice[0]])
    best, error = gamma_step(fixed, 10.0**exponent)
    assert 1e-4 <= best <= 1e4
    assert error == pytest.approx(fixed.at(best)[0], rel=1e-12)
    grid = min(fixed.at(g)[0] for g in np.geomspace(1e-4, 1e4, 400))
    assert error <= grid * (1 + 1e-9)
    if 1.001e-4 < best < 0.999e4:
        assert abs(fixed.at(best)[1]) * best <= 1e-6 * error


def test_the_gamma_step_tells_supports_apart_that_are_cut_differently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With groups the folds' supports may be {0, 1} and {2}, or {0} and {1, 2}, at one size."""
    data = folds_of(0, 2)
    surface = Surface(data, [2])
    surface.visit([1.0])
    search = alternating._Alternation(surface, alternating._GammaSteps(surface))
    search.errors = {1.0: surface.cv_error(1.0)}
    for cut in (2, 1):
        supports = np.split(np.arange(3), [cut])
        monkeypatch.setattr(surface, "supports", lambda *_, found=supports: found)
        gamma, _, error = search.propose(1.0)
        assert (gamma, error) == gamma_step(FixedSupports.of(data, supports), 1.0)


def test_no_gamma_step_is_taken_twice_on_the_same_supports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An alternation that begins anew after proofs takes over the steps of the one before."""
    surface, taken = Surface(folds_of(0, 2), [1, 2, 3]), list[tuple[float, float]]()

    def counted(fixed: FixedSupports, gamma: float, **ends: float) -> tuple[float, float]:
        taken.append((gamma, float(fixed.coef.sum())))
        return gamma_step(fixed, gamma, **ends)

    monkeypatch.setattr(alternating, "gamma_step", counted)
    steps = alternating._GammaSteps(surface)
    first = alternating._Alternation(surface, steps).run(None)
    before = len(taken)
    again = alternating._Alternation(surface, steps).run(None)
    assert before == len(set(taken)) == len(taken) > 0
    assert first == again


@pytest.mark.parametrize("cv", ["loo", 5])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_default_start_is_as_good_as_a_fine_grid(cv: str | int, seed: int) -> None:
    data = folds_of(seed, cv, n=60, p=10)
    taus = np.arange(1, 11)
    found = alternate(Surface(data, taus))
    grid = cross_validate(data, np.geomspace(1e-4, 1e4, 60), taus)
    assert found.best().cv_error <= grid.best().cv_error * 1.001
    assert found.trace
    assert found.ended in {"converged", "cycle"}
    assert (np.diff(found.gammas) > 0).all()


def test_every_step_of_the_trace_is_exact_and_follows_from_the_one_before() -> None:
    data = folds_of(3)
    taus = np.arange(1, 9)
    found = alternate(Surface(data, taus), start=5.0)
    assert found.trace[0].gamma == 5.0
    for step, following in zip(found.trace, found.trace[1:], strict=False):
        assert following.gamma == step.next_gamma
        assert step.predicted < step.cv_error
    for step in found.trace:
        exact = cross_validate(data, [step.gamma], taus)
        assert step.tau == exact.best().tau
        assert step.cv_error == pytest.approx(exact.best().cv_error, rel=1e-12)


def test_searches_alternate_too() -> None:
    data = folds_of(4)
    taus = np.arange(1, 9)
    found = alternate(
        Surface(data, taus, Settings("search"), search_tau=WINGS.search_tau), start=1.0
    )
    exact = alternate(Surface(data, taus), start=1.0)
    assert found.best().cv_error <= exact.best().cv_error / 0.99
    assert found.status is Status.OPTIMAL


def test_more_columns_start_at_the_best_of_ten() -> None:
    X, y, _ = make_synthetic(60, 50, 2, 0.3, 8.0, seed=1)
    data = RowFolds(RowTable(X, y), make_folds(3, 60))
    found = alternate(Surface(data, [1, 2]))
    grid = cross_validate(data, DEFAULT_GAMMAS, [1, 2], Settings(prove="all"))
    best = grid.best()
    assert least_is_proved(grid)
    assert found.trace[0].gamma == best.gamma
    assert found.trace[0].tau == best.tau
    assert found.trace[0].cv_error == pytest.approx(best.cv_error, rel=1e-9)
    assert set(DEFAULT_GAMMAS) <= set(found.gammas)
    assert found.best().cv_error <= best.cv_error
    assert least_is_proved(found)


def test_iterations_and_time_are_limits(stand_in: StandIn) -> None:
    data = folds_of(5)
    taus = np.arange(1, 9)
    stand_in(MAX_ITERATIONS=1)
    assert len(alternate(Surface(data, taus), start=1e4).trace) == 1
    for start in (-1.0, 0.0, np.inf, np.nan):
        with pytest.raises(InputError, match="gamma must be"):
            alternate(Surface(data, taus), start=start)
    hurried = alternate(Surface(data, taus, Settings(time_limit=1e-9)), start=1.0)
    assert hurried.ended == "time limit"
    assert hurried.trace


def run_plan(seconds: float) -> RunPlan:
    data = RowFolds(RowTable(np.eye(3), np.arange(3.0)), make_folds("loo", 3))
    return RunPlan.of(Settings(time_limit=seconds), data)


class Curve:
    """A surface of one size whose CV error is a function of log10 γ."""

    def __init__(self, error: Any) -> None:
        self.error = error
        self.plan = run_plan(600.0)
        self.errors: dict[float, Array] = {}

    def visit(self, gammas: Any) -> None:
        for gamma in np.asarray(gammas).tolist():
            self.errors[gamma] = np.array([self.error(np.log10(gamma))])

    def cv_error(self, gamma: float) -> Array:
        return self.errors[gamma]


def visited(
    curve: Curve, score: Any = lambda errors: float(errors.min()), least: float = 0.0
) -> tuple[Array, str]:
    """The γ of the grid; rounding moves the errors at γ below ``least``."""

    def spent() -> bool:
        return curve.plan.out_of_time

    curve.visit(DEFAULT_GAMMAS.tolist())
    grid, said = grown_grid(
        curve.visit, lambda g: score(curve.cv_error(g)), spent, lambda gamma: gamma < least
    )
    assert sorted(grid) == sorted(gamma for gamma in curve.errors if gamma >= least)
    return np.sort(grid), said


def test_the_default_grid_goes_no_lower_than_rounding_allows() -> None:
    whole, said = visited(Curve(lambda x: 20.0 + x), least=1e-7)
    assert 1e-7 <= whole[0] < 1e-6
    assert "rounding would move CV errors" in said
    short, said = visited(Curve(lambda x: 20.0 + x), least=1e-2)
    assert short.tolist() == [gamma for gamma in DEFAULT_GAMMAS if gamma >= 1e-2]
    assert "rounding would move CV errors" in said
    inside, said = visited(Curve(lambda x: 1.0 + (x - 1.0) ** 2), least=1e-2)
    assert (inside[0], said) == (short[0], "")
    one, said = visited(Curve(lambda x: 20.0 + x), least=5e3)
    assert one.tolist() == [1e4]
    assert "rounding would move CV errors" in said


def test_an_alternation_may_have_one_gamma_that_rounding_leaves_alone() -> None:
    """Of nearly equal columns that are not scaled only the largest γ of the grid is left."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    X[:, 1] = X[:, 0] + 1e-9 * X[:, 1]
    table = RowTable(1e10 * X, y + X[:, 0], refit_intercept=True)
    result = alternate(Surface(RowFolds(table, make_folds(5, 20)), [1, 2, 3]))
    assert result.gammas.tolist() == [1e4]
    assert result.ended == "converged"
    assert "rounding would move CV errors" in result.edge


@pytest.mark.filterwarnings("ignore:not every fold and model was proved")
def test_a_grid_of_which_rounding_leaves_one_ridge_weight_ends_there() -> None:
    (one,), said = visited(Curve(lambda x: 20.0 + x), least=DEFAULT_GAMMAS[-1])
    assert one == DEFAULT_GAMMAS[-1]
    assert "rounding would move CV errors" in said
    X = 1e6 * np.arange(1.0, 21.0)[:, None]  # The held-out rows are fitted but for rounding.
    model = SparseRidgeCV(fit_intercept=False, standardize=False).fit(X, X[:, 0])
    assert model.coef_ == pytest.approx([1.0])


def test_the_default_grid_goes_on_past_an_end_while_that_helps() -> None:
    inside, said = visited(Curve(lambda x: 1.0 + (x - 1.0) ** 2))
    np.testing.assert_allclose(inside, DEFAULT_GAMMAS)
    assert said == ""
    flat, said = visited(Curve(lambda x: 1.0 + 1e-6 * x))  # least at the end, by nothing
    assert (flat.size, said) == (10, "")
    low, said = visited(Curve(lambda x: 1.0 + (x + 7.0) ** 2))
    assert low[0] < 1e-7 < low[1] * 10.0
    assert (low[-1], said) == (1e4, "")
    np.testing.assert_allclose(low[1:] / low[:-1], 10.0 ** (8.0 / 9.0))  # the same ratio
    high, said = visited(Curve(lambda x: 1.0 + (x - 6.0) ** 2))
    assert high[0] == pytest.approx(1e-4)
    assert 1e6 < high[-1] < 1e8
    assert said == ""
    bottom, said = visited(Curve(lambda x: 20.0 + x))
    assert 1e-10 <= bottom[0] < 1e-9
    assert "the grid goes no lower than 1e-10" in said


def test_the_default_grid_says_why_it_ended() -> None:
    spent = Curve(lambda x: 20.0 + x)
    spent.plan = run_plan(1e-9)
    assert "the time was up" in visited(spent)[1]
    spent.plan = run_plan(0.0)  # estimates, whatever they take
    spent.errors.clear()
    assert "no lower" in visited(spent)[1]


def test_an_average_goes_on_where_its_weight_is() -> None:
    """One size that is best at the end, where all others are far worse, carries little weight."""

    class Two(Curve):
        def visit(self, gammas: Any) -> None:
            super().visit(gammas)
            for gamma in self.errors:
                x = np.log10(gamma)
                errors = np.append(3.0 + 0.01 * x, np.full(999, 3.2 + (x - 1.0) ** 2))
                self.errors[gamma] = errors

    assert visited(Two(float))[0][0] < 1e-4
    averaged = visited(Two(float), score=lambda errors: soft_least(errors, 100))[0]
    np.testing.assert_allclose(averaged, DEFAULT_GAMMAS)


def test_nearly_dependent_columns_take_a_small_gamma() -> None:
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((60, 3))
    X = np.column_stack([parts, parts + 1e-3 * rng.standard_normal((60, 3))])
    y = 1e3 * (X[:, 3] - X[:, 0]) + 0.01 * rng.standard_normal(60)
    model = SparseRidgeCV(rule="minimum").fit(X, y)
    assert model.gamma_ < 1e-5
    assert {0, 3} <= set(model.support_.tolist())
    huge = SparseRidgeCV(rule="minimum", standardize=False, taus=[2]).fit(1e12 * X[:, [0, 0, 1]], y)
    assert np.isfinite(huge.cv_error_)


def test_search_on_streamed_moments() -> None:
    """Folds known by their moments only are searched like rows."""
    X, y, _ = make_synthetic(90, 8, 3, 0.5, 1.0, seed=7)
    folds = make_folds(5, 90, seed=0)
    assert folds.label is not None
    design = make_design(Summary.of(X, y), Protocol(), [f"x{j}" for j in range(8)])
    moments = FoldMoments.of(np.column_stack([X, y]), folds.label, folds.k)
    streamed = MomentFolds([moments], design)
    rows = RowFolds(RowTable(*design.apply(X, y), True), folds)
    taus = np.arange(1, 9)
    exact = cross_validate(rows, [1.0], taus).by_gamma[0]
    for bounds in ("best", "paper"):
        result = cross_validate(streamed, [1.0], taus, Settings("search", bounds=bounds))
        one = result.by_gamma[0]
        assert (one.lower <= exact.cv_error * (1 + 1e-8)).all()
        assert (one.upper >= exact.cv_error * (1 - 1e-8)).all()
        assert exact.cv_error[result.best().tau_index] <= exact.cv_error.min() / 0.99


def test_folds_that_gram_matrices_cannot_tell_apart_are_solved_from_rows() -> None:
    """γ tiny beside the columns: objectives from down-dates are not good enough."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 50)) * 10.0 ** rng.uniform(-1, 1, size=50)
    y = X[:, :2] @ np.ones(2) + 0.01 * rng.normal(size=30)
    data = RowFolds(RowTable(X, y), make_folds("loo", 30))
    taus = np.arange(1, 3)
    exact = cross_validate(data, [1e-3], taus).by_gamma[0]
    grid = cross_validate(data, [1e-3], taus, Settings("grid")).by_gamma[0]
    np.testing.assert_allclose(exact.cv_error, grid.cv_error, rtol=1e-6)
    np.testing.assert_array_less(exact.lower, grid.upper * (1 + 1e-9) + 1e-300)


@pytest.mark.slow
@pytest.mark.parametrize("bounds", ["best", "paper"])
@pytest.mark.parametrize("tol", [0.01, 0.99])
def test_intervals_are_finite_whatever_the_time(bounds: str, tol: float) -> None:
    """Folds that nobody had time for, or whose ε gives no ellipsoid, get an interval as well."""
    X, y, _ = make_synthetic(30, 40, 3, 0.5, 1.0, seed=3)
    data = RowFolds(RowTable(X, y), make_folds("loo", 30))
    taus = np.arange(1, 4)
    for gamma, limit in ((1e-6, None), (1.0, 1e-9)):
        settings_ = Settings("search", bounds=bounds, tol=tol, time_limit=limit)
        one = cross_validate(data, [gamma], taus, settings_).by_gamma[0]
        assert np.isfinite(one.upper).all()
        assert np.isfinite(np.array(one.history)).all()
        assert (one.lower <= one.cv_error).all()
        assert (one.cv_error > 0).all()


@pytest.mark.parametrize("ended", [Status.PRECISION, Status.FAILED, Status.TIME_LIMIT])
def test_a_fold_whose_search_ends_without_a_proof_is_searched_once(
    ended: Status, stand_in: StandIn
) -> None:
    """Outside solvers may fail, or stop, where no limit was reached."""
    from dataclasses import replace

    from sparsecv.solvers import solve

    searches = 0

    def unproved(*arguments: object, **options: object) -> object:
        nonlocal searches
        searches += 1
        assert searches <= 8 * 5 + 1  # one for every τ and fold, and one of all rows
        return replace(solve(*arguments, **options), status=ended)  # type: ignore[arg-type]

    stand_in(best_support_of_a_fold=unproved)
    X, y, _ = make_synthetic(30, 8, 3, 0.7, 1.0, seed=1)
    data = RowFolds(RowTable(X, y), make_folds(5, 30, seed=0))
    result = cross_validate(
        data, [0.1], np.arange(1, 9), Settings("search", bounds="paper", tol=0.0)
    )
    assert result.by_gamma[0].status == str(ended)
    assert not least_is_proved(result)
    assert (result.by_gamma[0].lower < result.by_gamma[0].upper).any()
