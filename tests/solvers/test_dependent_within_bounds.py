"""Fits at γ = 0 within bounds, of columns that depend on each other exactly or nearly."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from support.brute_force import exact_moments
from support.constrained import (
    DependentColumns,
    Rules,
    bounded_ridge,
    exact_bounded,
    exact_least_norm_within,
    exact_value,
    value,
)
from support.fresh import draws

from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.errors import UnprovedWarning
from sparsecv.solvers import SparseRidgeProblem, solve

X = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, -1.0], [2.0, 1.0, 0.0], [1.0, 3.0, 1.0]])
Y = np.array([0.0, 1.0, 2.0, 1.0])


def test_a_cell_at_no_penalty_is_the_limit_of_small_penalties() -> None:
    """Both training sets have two rows of three columns, so that many fits have no error."""
    model = SparseRidgeCV(
        cv=[([0, 1], [2, 3]), ([2, 3], [0, 1])],
        taus=[3],
        gammas=[0.0, 1e-12, 1e-9],
        rule="minimum",
        standardize=False,
        constraints=Constraints(bounds={2: (-0.05, 9.0)}),
    )
    with pytest.warns(UnprovedWarning):
        model.fit(X, Y)
    assert model.cv_results_["cv_error"] == pytest.approx(1.4616, rel=1e-6)
    # How far rounding moves predictions of the fit of least norm within bounds is not known.
    assert model.cv_results_["gamma"][~model.cv_results_["exact"]].tolist() == [0.0]
    assert not model.certified_


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_sign_leaves_the_fit_of_least_norm(fit_intercept: bool) -> None:
    model = SparseRidge(
        tau=3,
        gamma=0.0,
        standardize=False,
        fit_intercept=fit_intercept,
        constraints=Constraints(positive=[2]),
    ).fit(X[:2], Y[:2])
    assert model.coef_ == pytest.approx([0.2, 0.4, 0.0], abs=1e-12)


def test_fits_within_bounds_have_the_least_norm() -> None:
    """Columns that are equal, proportional or combined, of every support of two sizes."""
    for note, rng in draws(600, 47):
        drawn = DependentColumns.drawn(rng)
        p = drawn.X.shape[1]
        whole = SparseRidgeProblem(drawn.X, drawn.y, gamma=0.0, tau=p, **drawn.rules.keywords)
        for size in {p, max(2, p - 1)}:
            for support in combinations(range(p), size):
                loss, beta = exact_least_norm_within(drawn.rows, drawn.rules, support)
                found = whole.fit(support)
                assert drawn.error(support, found.coef, beta) <= 1e-12, (note, support)
                assert abs(found.objective - float(loss)) <= 1e-12 * whole.yy, (note, support)


@pytest.mark.parametrize("power", [0, 10, 25, 40])
def test_fits_of_least_norm_keep_their_digits_in_any_units(power: int) -> None:
    """Sums and differences of two columns, in units up to 2⁸⁰ apart, and a column on its own."""
    short, rest = np.array([1.0, 2.0, 0.0, 1.0, 3.0]), np.array([0.0, 1.0, 1.0, -1.0, 2.0])
    table = np.column_stack([short, rest, short + rest, short - rest, [1.0, 0.0, 0.0, 0.0, 1.0]])
    table *= 2.0 ** np.array([-power, power, power, 0, -power])
    y, open_end = np.array([3.0, 1.0, -2.0, 4.0, 5.0]), np.full(5, np.inf)
    rules = Rules.bounds(-open_end, open_end)
    for high in (np.inf, 0.25):
        drawn = DependentColumns(table, y, rules._replace(upper=np.append(high, open_end[1:])))
        _, beta = exact_least_norm_within(drawn.rows, drawn.rules, tuple(range(5)))
        whole = SparseRidgeProblem(table, y, gamma=0.0, tau=5, **drawn.rules.keywords)
        assert drawn.error(tuple(range(5)), whole.fit(range(5)).coef, beta) <= 1e-14


def test_the_fit_of_many_columns_is_the_limit_of_small_penalties() -> None:
    """Up to 20 columns of a few rows, whose coefficients have signs, bounds, or neither."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(2, 9)), int(rng.integers(2, 21))
        table, y = rng.normal(size=(n, p)), rng.normal(size=n)
        for j in range(1, p):
            if rng.random() < 0.3:
                table[:, j] = rng.choice([-1.0, 1.0, 2.0]) * table[:, rng.integers(j)]
        bounds = {
            j: (-0.1 * rng.integers(0, 4), 0.1 * rng.integers(0, 4)) if j % 3 else (0.0, np.inf)
            for j in range(p)
            if rng.random() < 0.6
        }
        asked = Constraints(bounds=bounds)
        at = SparseRidgeProblem(table, y, gamma=0.0, tau=p, constraints=asked)
        limit = at.fit(range(p)).coef
        near = [at.replace(gamma=gamma).fit(range(p)).coef for gamma in (2e-7, 1e-7)]
        assert limit == pytest.approx(2.0 * near[1] - near[0], abs=1e-6), seed


def test_no_objective_is_below_what_coefficients_attain() -> None:
    """Two of three columns are 1e-16 to 1e-12 apart; tables are held as rows or as a triangle."""
    for seed in range(120):
        rng = np.random.default_rng(seed)
        n, apart = int(rng.choice([6, 10, 30])), 10.0 ** rng.uniform(-16.0, -12.0)
        table, y = rng.normal(size=(n, 3)), rng.normal(size=n)
        table[:, 1] = table[:, 0] + apart * rng.normal(size=n)
        lower, upper = np.full(3, -np.inf), np.full(3, np.inf)
        bounds = [{}, {0: (-1e13, 1e13)}, {0: (0.0, np.inf)}][seed % 3]
        for j, (low, high) in bounds.items():
            lower[j], upper[j] = low, high
        rules = Rules.bounds(lower, upper)
        asked = Constraints(bounds=bounds)
        problem = SparseRidgeProblem(table, y, gamma=0.0, tau=2, constraints=asked)
        joint = exact_moments(table, y)
        for support in combinations(range(3), 2):
            try:
                least = exact_bounded(joint, 0.0, rules, support)
            except ZeroDivisionError:  # The columns are equal.
                continue
            fit = problem.fit(support)
            own = {j: Fraction(float(v)) for j, v in zip(support, fit.coef, strict=True)}
            own_value = float(exact_value(joint, 0.0, own))
            assert fit.objective >= float(least) * (1.0 - 1e-12), (seed, support)
            assert fit.objective >= own_value * (1.0 - 1e-12), (seed, support)
            if n < 30:
                assert fit.objective == pytest.approx(own_value, rel=1e-11), (seed, support)
        found = solve(problem)
        assert found.objective == problem.objective(found.support)


@pytest.mark.parametrize(("n", "p", "tau"), [(8, 8, 2), (8, 8, 4), (6, 20, 2), (10, 50, 2)])
@pytest.mark.parametrize("kind", ["signs", "bounds", "pairs"])
def test_small_supports_of_more_columns_than_rows_are_proved(
    n: int, p: int, tau: int, kind: str
) -> None:
    rng = np.random.default_rng(n * p)
    table, y = rng.normal(size=(n, p)), rng.normal(size=n)
    table[:, 1] = table[:, 0]
    units, low, high = [[j] for j in range(p)], np.full(p, -np.inf), np.full(p, np.inf)
    if kind == "signs":
        # Of a support of equal columns with an open end nothing is proved.
        table[:, 1], low[:] = rng.normal(size=n), 0.0
    elif kind == "bounds":
        low[:], high[:] = -0.2, 0.3
    else:
        units = [[j, j + 1] for j in range(0, p, 2)]
        table[:, 1], tau = rng.normal(size=n), tau // 2
    none = frozenset[int]()
    rules = Rules(units, none, none, low, high)
    asked = rules.keywords["constraints"]
    found = solve(SparseRidgeProblem(table, y, gamma=0.0, tau=tau, constraints=asked), tol=0.0)
    fits = (bounded_ridge(table, y, 0.0, rules, support) for support in rules.models(tau))
    least = min(value(table, y, 0.0, beta) for beta in fits)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(least, rel=1e-9, abs=1e-13)
    assert found.lower_bound <= least * (1.0 + 1e-12)
