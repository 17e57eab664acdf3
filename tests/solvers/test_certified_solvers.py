"""Families of problems an attack found holes with, on fresh seeds, against exact arithmetic."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sparsecv.solvers import (
    SparseRidgeProblem,
    Spectrum,
    best_subsets,
    centre_bound,
    dual_bounds,
    ellipsoid,
    perspective_relaxation,
    solve,
)
from sparsecv.solvers.branching.single import branch_and_bound
from sparsecv.solvers.limits import Limits
from sparsecv.solvers.relaxation.screening import screen
from tests.brute_force import Data, exact_objectives
from tests.exact import as_exact, exact_moments, exact_objective
from tests.fresh import draws

Array = NDArray[np.float64]
P = 36  # more columns than the all-sizes tree takes


def offset_columns(rng: np.random.Generator, noise: float, gamma: float) -> SparseRidgeProblem:
    """Columns far from 0, y next to a multiple of the first, padded with small ones."""
    n, q = int(rng.integers(4, 25)), int(rng.integers(4, 9))
    X = rng.normal(size=(n, q)) + 10.0 ** rng.uniform(2, 6)
    X = np.hstack([X, 1e-3 * rng.normal(size=(n, P - q))])
    y = X[:, 0] * rng.normal()
    y = y + noise * rng.normal(size=n) * float(np.sqrt(np.mean(y * y)))
    length = float(np.square(X).sum(axis=0).max())
    return SparseRidgeProblem(X, y, gamma=2.0 * length * gamma, tau=int(rng.integers(1, 5)))


def one_factor(rng: np.random.Generator, noise: float, gamma: float) -> SparseRidgeProblem:
    """Standardised columns that share one factor, y next to a multiple of the first."""
    n = int(rng.integers(5, 60))
    X = rng.normal(size=(n, 1)) + 10.0 ** rng.uniform(-6, -1) * rng.normal(size=(n, P))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, 0] * rng.normal() + noise * rng.normal(size=n)
    return SparseRidgeProblem(X, y, gamma=2.0 * n * gamma, tau=int(rng.integers(1, 5)))


FAMILIES = {"offset": offset_columns, "one factor": one_factor}


def attained(problem: SparseRidgeProblem, supports: list[list[int]]) -> Fraction:
    """The least exact objective of some supports, and of all of the first four columns."""
    joint = exact_moments(problem._rows[:, : problem.p], problem._rows[:, problem.p])
    size = min(problem.tau, 4)
    few = [list(S) for S in itertools.combinations(range(4), size)]
    return min(exact_objective(joint, problem.gamma, S) for S in [*supports, *few])


def assert_below(bound: float, value: Fraction, note: str) -> None:
    assert Fraction(bound) <= value, f"{note}: {bound} above {float(value)} by {bound - value!r}"


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_no_bound_above_an_attained_objective(name: str) -> None:
    """γ from 1e-8 to 1 of diag(G), noise 0 to 1e-3: exact arithmetic has the last word."""
    family = list(FAMILIES).index(name)
    noises = [0.0, 0.0, 1e-8, 1e-6, 1e-3]
    for note, rng in draws(40, family):
        low, high = (-7.5, -3.5) if rng.random() < 0.7 else (-8.0, 0.0)
        gamma = 10.0 ** rng.uniform(low, high)
        problem = FAMILIES[name](rng, float(rng.choice(noises)), gamma)
        fresh = SparseRidgeProblem(
            problem._rows[:, :P], problem._rows[:, P], gamma=problem.gamma, tau=problem.tau
        )
        found = solve(fresh, tol=0.0 if rng.random() < 0.5 else 1e-6, node_limit=3000)
        value = attained(problem, [found.support.tolist()])
        own = exact_objective(
            exact_moments(problem._rows[:, :P], problem._rows[:, P]), problem.gamma, found.support
        )
        assert_below(found.lower_bound, value, note)
        if found.status == "optimal":
            assert float(own - value) <= 1e-5 * float(own), note
        betas = []
        for extract in (False, True):
            relaxed = perspective_relaxation(problem, extract=extract)
            assert_below(relaxed.bound, value, f"{note}, extract={extract}")
            betas.append(relaxed.beta)
        coef = np.zeros(P)
        coef[found.support] = problem.fit(found.support).coef
        for beta in (*betas, coef, np.zeros(P), 1e3 * coef):
            assert_below(float(dual_bounds(problem, beta)[problem.tau - 1]), value, note)
            assert_below(centre_bound(problem, beta), value, note)
            assert_below(screen(problem, beta, found.objective).bound, value, note)


def ugly_data(rng: np.random.Generator) -> Data:
    """At most nine columns, collinear, duplicated, offset, of any scale; y anything."""
    n, p = int(rng.integers(2, 14)), int(rng.integers(2, 8))
    X = rng.normal(size=(n, p))
    flaw = int(rng.integers(7))
    if flaw == 1:
        X[:, 1] = X[:, 0]
    elif flaw == 2:
        X[:, 1] = X[:, 0] + 10.0 ** rng.uniform(-9, -3) * rng.normal(size=n)
    elif flaw == 3:
        X = X + 10.0 ** rng.uniform(1, 6)
    elif flaw == 4:
        X = X * 10.0 ** rng.uniform(-5, 5, size=p)
    elif flaw == 5:
        X = rng.integers(-2, 3, size=(n, p)).astype(float)
    y = rng.normal(size=n) if rng.random() < 0.5 else X @ rng.normal(size=p)
    if rng.random() < 0.3:
        y = X[:, 0] * rng.normal() + 10.0 ** rng.uniform(-9, -2) * rng.normal(size=n)
    length = float(np.square(X).sum(axis=0).max()) or 1.0
    return Data(X, y, length * 10.0 ** rng.uniform(-8, 8 if rng.random() < 0.2 else 1))


def test_every_call_on_ugly_problems() -> None:
    """Bounds of every search, finished or cut short, at or below the exact optimum."""
    for note, rng in draws(60, 10):
        data = ugly_data(rng)
        p = data.X.shape[1]
        tau = int(rng.integers(1, p + 1))
        exact = exact_objectives(data)
        value = min(f for S, f in exact.items() if len(S) == tau)
        problem = SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=tau)
        fresh = problem.replace()
        try:
            found = solve(problem, tol=0.0)
        except ValueError:  # γ is lost beside dependent columns
            continue
        assert_below(found.lower_bound, value, note)
        own = exact[tuple(int(i) for i in found.support)]
        if found.status == "optimal":
            assert float(own - value) <= 1e-5 * float(own), note
        for limit in (None, 0, 1, 3):
            cut = branch_and_bound(fresh, tol=0.0, limits=Limits(None, limit))
            assert_below(cut.lower_bound, value, f"{note}, node limit {limit}")
        every = best_subsets(problem, tol=0.0, node_limit=int(rng.integers(0, 30)))
        for size, bound in zip(every.sizes, every.lower_bound, strict=True):
            least = min(f for S, f in exact.items() if len(S) == size)
            assert_below(float(bound), least, f"{note}, size {size}")


def test_given_matrices_are_bounded_themselves() -> None:
    """from_gram: below the exact optimum of the matrices as given, rounding of theirs and all."""
    for note, rng in draws(60, 11):
        data = ugly_data(rng)
        G, b, yy = data.X.T @ data.X, data.X.T @ data.y, float(data.y @ data.y)
        p = G.shape[0]
        tau = int(rng.integers(1, p + 1))
        joint = as_exact(np.block([[0.5 * (G + G.T), b[:, None]], [b[None], np.array([[yy]])]]))
        gamma = max(data.gamma, 1e-7 * float(np.diag(G).max()))
        problem = SparseRidgeProblem.from_gram(G, b, yy, gamma=gamma, tau=tau)
        value = min(exact_objective(joint, gamma, S) for S in itertools.combinations(range(p), tau))
        assert_below(solve(problem, tol=0.0).lower_bound, value, note)
        assert_below(branch_and_bound(problem, tol=0.0).lower_bound, value, note)
        assert_below(perspective_relaxation(problem).bound, value, note)


def test_ellipsoids_hold_the_optimum() -> None:
    """Theorem 1 around relaxations, fits and anything else, for ε of both signs."""
    for note, rng in draws(40, 12):
        data = ugly_data(rng)
        p = data.X.shape[1]
        tau = int(rng.integers(1, p + 1))
        problem = SparseRidgeProblem(data.X, data.y, gamma=data.gamma, tau=tau)
        try:
            every = [(problem.objective(S), S) for S in itertools.combinations(range(p), tau)]
        except ValueError:
            continue
        upper, best = min(every)
        beta = np.zeros(p)
        beta[list(best)] = problem.fit(best).coef
        spectrum = Spectrum.of(problem)
        rows = rng.normal(size=(4, p))
        for epsilon in (0.0, 0.1 * data.gamma, 0.9 * data.gamma, -1.8 * spectrum.least()):
            if not -2.0 * spectrum.least() <= epsilon < data.gamma:
                continue
            centres = [None, np.zeros(p), beta + 1e-3 * rng.normal(size=p) * np.abs(beta).max()]
            for centre in centres:
                region = ellipsoid(problem, upper, epsilon=epsilon, beta=centre, spectrum=spectrum)
                low, high = region.prediction_range(rows)
                scale = 1e-9 * np.abs(rows) @ np.abs(beta)
                predicted = rows @ beta
                assert (low <= predicted + scale).all(), f"{note}, ε = {epsilon}"
                assert (predicted <= high + scale).all(), f"{note}, ε = {epsilon}"


def test_wide_problems_of_both_trees() -> None:
    """36 to 59 columns of ordinary data: the two trees agree, and so do a search cut short."""
    for note, rng in draws(12, 13):
        n, p = int(rng.integers(20, 80)), int(rng.integers(36, 60))
        X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
        y = X[:, :4] @ rng.normal(size=4) + rng.normal(size=n)
        tau = int(rng.integers(1, 5))
        problem = SparseRidgeProblem(X, y, gamma=10.0 ** rng.uniform(-1, 2), tau=tau)
        found = solve(problem, tol=0.0)
        other = best_subsets(problem, sizes=[tau], tol=0.0, time_limit=20.0)
        if other.proved[0]:
            assert found.objective <= other.objective[0] * (1.0 + 1e-8), note
        for limit in (0, 2, 10):
            cut = solve(problem, tol=0.0, node_limit=limit)
            assert cut.lower_bound <= found.objective * (1.0 + 1e-12), f"{note}, {limit}"
