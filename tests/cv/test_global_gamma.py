"""The certified least CV error against the enumeration of every support on dense grids of γ."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from support.brute_force import Array, exact_moments
from support.constrained import exact_fit, exact_value
from support.fresh import plain_run
from support.inside import Limits, RowFolds, RowTable, cross_validate, make_folds
from support.problems import regression

from sparsecv import SparseRidgeCV
from sparsecv.cv.global_gamma import global_minimum
from sparsecv.solvers import Status

LOW, HIGH = 1e-4, 1e4
CASES = ("plain", "duplicate", "whole numbers", "nearly dependent", "scales", "one-hot")


def instance(seed: int) -> RowFolds:
    """A table of few rows, with equal columns or equal rows in some, and its folds."""
    rng = np.random.default_rng(seed)
    n, p, case = int(rng.integers(4, 21)), int(rng.integers(1, 9)), CASES[seed % len(CASES)]
    X = rng.normal(size=(n, p))
    if case == "duplicate":
        X[:, -1] = X[:, 0]
    elif case == "whole numbers":
        X = rng.integers(-1, 2, size=(n, p)).astype(float)
    elif case == "nearly dependent":
        X[:, -1] = X[:, 0] + 1e-6 * rng.normal(size=n)
    elif case == "scales":
        X = X * 10.0 ** rng.uniform(-2.0, 2.0, size=p)
    elif case == "one-hot":
        X = np.eye(p)[rng.integers(0, p, size=n)]
    y = X @ rng.normal(size=p) + rng.normal(size=n) * 10.0 ** rng.uniform(-2.0, 1.0)
    if seed % 7 == 0:
        X[1], y[1] = X[0], y[0]
    folds = "loo" if rng.random() < 0.5 else int(rng.integers(2, min(n, 6) + 1))
    return RowFolds(RowTable(X, y, bool(rng.random() < 0.5)), make_folds(folds, n, seed=seed))


def enumerated(data: RowFolds, size: int) -> Callable[[Array], Array]:
    """h at γ for one size, with every fold's lexicographically first best support."""
    supports = np.array(list(combinations(range(data.p), size)))
    parts = []
    for j in range(data.folds.k):
        rows, (H, targets) = data.training(j).triangle, data.held_out(j)
        X, y = rows[:, supports].transpose(1, 0, 2), rows[:, -1]
        U, s, V = np.linalg.svd(X, full_matrices=False)
        along = np.einsum("irk,r->ik", U, y)
        rest = np.square(y - np.einsum("irk,ik->ir", U, along)).sum(axis=1)
        coef = np.einsum("ric,ikc->irk", H[:, supports], V) * (s * along)[:, None, :]
        parts.append((along**2, s * s, rest, coef, targets, float(y @ y)))

    def h(gammas: Array) -> Array:
        t = gammas[:, None, None] / 2.0
        total = np.zeros(gammas.size)
        for energy, squares, rest, coef, targets, yy in parts:
            objective = rest + (energy * t / (squares + t)).sum(axis=2)
            gain = (energy * squares / (squares + t)).sum(axis=2)
            values = np.where(objective.min(axis=1, keepdims=True) < yy / 2.0, objective, -gain)
            least = values.min(axis=1, keepdims=True)
            first = (values <= least + 1e-12 * abs(least)).argmax(axis=1)
            predicted = (coef[first] / (squares[first] + t[:, 0])[:, None, :]).sum(axis=2)
            total += np.square(targets - predicted).sum(axis=1)
        return total / data.total

    return h


def polished(h: Callable[[Array], Array], grid: Array) -> float:
    """The least h on a grid and, by a scalar optimiser, around the best three of its values."""
    values = h(grid)
    least = float(values.min())
    for i in np.argsort(values)[:3].tolist():
        ends = grid[[max(i - 1, 0), min(i + 1, grid.size - 1)]]
        found = minimize_scalar(
            lambda x: h(np.exp([x]))[0],
            bounds=np.log(ends),
            method="bounded",
            options={"xatol": 1e-7},
        )
        least = min(least, float(found.fun))
    return least


@pytest.mark.parametrize("seed", range(24 if plain_run() else 100))
def test_the_interval_contains_the_least_error_and_pairs_outside_have_larger_ones(
    seed: int,
) -> None:
    data = instance(seed)
    found = global_minimum(data, np.arange(1, data.p + 1))
    assert found.status is Status.OPTIMAL
    grid = np.geomspace(LOW, HIGH, 120)
    surfaces = {size: enumerated(data, size) for size in range(1, data.p + 1)}
    at_found = float(surfaces[found.tau](np.array([found.gamma]))[0])
    assert found.upper * (1.0 - 1e-4) <= at_found <= found.upper * (1.0 + 1e-9)
    least = min(at_found, *(polished(h, grid) for h in surfaces.values()))
    assert found.lower <= least * (1.0 + 1e-9)
    assert least >= found.upper * (1.0 - 1e-4)
    gammas = 10.0 ** np.random.default_rng(seed).uniform(-4.0, 4.0, 200)
    for size, h in surfaces.items():
        kept = np.zeros(gammas.size, bool)
        for _, low, high in found.left[found.left[:, 0] == size]:
            kept |= (low <= gammas) & (gammas <= high)
        assert (h(gammas)[~kept] >= found.upper * (1.0 - 1e-9)).all()


def test_the_first_of_supports_that_tie_at_every_gamma_is_certified() -> None:
    """With the columns in another order another support is the first, and h is another."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (8, 4)).astype(float), rng.integers(0, 3, 8).astype(float)
    found = []
    for columns in (X, X[:, ::-1]):
        model = SparseRidgeCV(cv="loo", gammas="global", standardize=False).fit(columns, y)
        found.append(model.minimum_)
        data = RowFolds(RowTable(columns, y, True), make_folds("loo", 8))
        grid = np.append(np.geomspace(LOW, HIGH, 60), model.gamma_)
        least = min(float(enumerated(data, size)(grid).min()) for size in range(1, 5))
        assert model.minimum_.lower * (1.0 - 1e-9) <= least
        assert least <= model.minimum_.upper * (1.0 + 1e-9)
    assert found[1].upper < 0.95 * found[0].lower


def test_shown_errors_are_those_of_cross_validation() -> None:
    data = instance(6)
    found = global_minimum(data, np.arange(1, data.p + 1))
    shown = found.shown
    at = np.arange(3, shown.gammas.size, 20)
    exact = cross_validate(data, shown.gammas[at], shown.taus).table("cv_error")
    np.testing.assert_allclose(shown.cv_error[at], exact, rtol=1e-6)


def test_ridge_alone_takes_many_columns() -> None:
    X, y = regression(30, 60, [1.0] * 4, seed=5)
    data = RowFolds(RowTable(X, y, True), make_folds("loo", 30))
    found = global_minimum(data, [60], tolerance=1e-6)
    least = polished(enumerated(data, 60), np.geomspace(LOW, HIGH, 200))
    assert found.lower <= least <= found.upper * (1.0 + 1e-9)


@pytest.mark.parametrize("seed", [0, 6, 12])
def test_a_range_from_zero_contains_the_least_error_of_plain_best_subset(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(18, 4))
    data = RowFolds(RowTable(X, X[:, 0] + rng.normal(size=18), True), make_folds("loo", 18))
    found = global_minimum(data, [1, 2, 3, 4], low=0.0, high=10.0)
    exact = cross_validate(data, [0.0, 1e-3, 0.1, 1.0, 10.0], [1, 2, 3, 4]).best().cv_error
    assert found.lower <= exact
    assert found.shown.gammas[0] == 0.0


@pytest.mark.parametrize(("low", "high"), [(1e-300, 1e-299), (1e-170, 1e-150), (1e200, 1e300)])
def test_the_least_error_of_extreme_ranges_lies_in_the_range(low: float, high: float) -> None:
    """The product of the two ends of the range is 0 or ∞ in floating point."""
    found = global_minimum(instance(9), [1, 2], low=low, high=high)
    assert low <= found.gamma <= high


def test_more_threads_give_the_same_bits() -> None:
    data = instance(9)
    one, two = (global_minimum(data, [1, 2], n_jobs=jobs) for jobs in (1, 2))
    assert (one.lower, one.upper, one.gamma) == (two.lower, two.upper, two.gamma)


def test_a_limit_leaves_a_valid_interval() -> None:
    data = instance(1)
    found = global_minimum(data, [1, 2], limits=Limits(0.0))
    assert found.status is Status.TIME_LIMIT
    assert found.lower == 0.0


def exact_error(data: RowFolds, gamma: float, size: int) -> Fraction:
    """h in rational numbers: no digit is lost, however small the errors are."""
    total = Fraction(0)
    for j in range(data.folds.k):
        rows = data.training(j).rows
        joint = exact_moments(rows[:, :-1], rows[:, -1])
        supports = combinations(range(data.p), size)
        fits = [exact_fit(joint, gamma, list(columns), {}) for columns in supports]
        beta = min(fits, key=lambda fit: exact_value(joint, gamma, fit))
        for row, target in zip(*data.held_out(j), strict=True):
            predicted = sum(Fraction(float(row[c])) * value for c, value in beta.items())
            total += (Fraction(float(target)) - predicted) ** 2
    return total / data.folds.n


@pytest.mark.parametrize("low", [0.0, 1e-9])
@pytest.mark.parametrize("noise", [1e-9, 0.0])
def test_fits_that_are_nearly_exact_end_with_a_valid_interval(noise: float, low: float) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 4))
    y = X[:, :2] @ [1.0, -2.0] + noise * rng.normal(size=12)
    data = RowFolds(RowTable(X, y), make_folds(3, 12))
    found = global_minimum(data, [1, 2, 3], low=low, high=1.0, limits=Limits(20.0))
    error = exact_error(data, found.gamma, found.tau)
    assert found.lower <= float(error) <= found.upper
    assert found.upper < 1e-15
    assert found.status is not Status.OPTIMAL or found.gap <= 1e-4


@pytest.mark.parametrize("seed", range(6))
def test_no_bound_at_gamma_0_certifies_nothing(seed: int) -> None:
    """Three columns interpolate three rows; in the other fold y is the same in both rows."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(5, 4)), np.array([-1.0, 0.0, 1.0, 2.0, 2.0])
    first, last = np.arange(3), np.arange(3, 5)
    data = RowFolds(RowTable(X, y, True), make_folds([(first, last), (last, first)], 5))
    found = global_minimum(data, [3], low=0.0)
    fitted = cross_validate(data, [found.gamma], [3]).best().cv_error
    assert found.lower <= fitted <= found.upper * (1.0 + 1e-5)


@pytest.mark.parametrize("seed", range(40))
def test_an_optimal_status_means_a_gap_within_the_tolerance(seed: int) -> None:
    data = RowFolds(RowTable(np.ones((3, 1)), y_of(seed), False), make_folds("loo", 3))
    found = global_minimum(data, [1], tolerance=1e-7, limits=Limits(1.0))
    assert found.gap <= 1e-7 or found.status is not Status.OPTIMAL


def y_of(seed: int) -> Array:
    """Three numbers."""
    return np.random.default_rng(seed).normal(size=3)
