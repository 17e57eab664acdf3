"""Bounds on a fold's error against enumeration, the paper's examples and a conic solver."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fresh import examples
from support.inside import GramForm, Spectrum
from support.problems import ugly_problem

from sparsecv.cv import bounds, fold_bounds
from sparsecv.solvers import (
    SparseRidgeProblem,
    ellipsoid,
    heuristic_support,
    perspective_relaxation,
)


def fold_problem(
    seed: int,
) -> tuple[SparseRidgeProblem, SparseRidgeProblem, np.ndarray, np.ndarray]:
    """All rows, the rows outside a fold, and the fold."""
    rng = np.random.default_rng(seed)
    whole = ugly_problem(seed, 7)
    gamma = 10.0 ** rng.uniform(-4, 4)
    X, y = whole.rows[:, : whole.p], whole.rows[:, whole.p]
    X, y = np.vstack([X, rng.normal(size=(2, whole.p))]), np.append(y, rng.normal(size=2))
    m = 1 if rng.random() < 0.5 else int(rng.integers(1, y.size))
    out = rng.permutation(y.size)[:m]
    inside = np.setdiff1d(np.arange(y.size), out)
    full = SparseRidgeProblem(X, y, gamma=gamma, tau=whole.tau)
    training = SparseRidgeProblem(X[inside], y[inside], gamma=gamma, tau=whole.tau)
    return full, training, X[out], y[out]


def optimal_models(problem: SparseRidgeProblem) -> list[np.ndarray]:
    """Coefficients of every support that is optimal up to rounding."""
    fits = [(S, problem.fit(S)) for S in combinations(range(problem.p), problem.tau)]
    least = min(fit.objective for _, fit in fits)
    found = []
    for S, fit in fits:
        if fit.objective <= least * (1 + 1e-10):
            beta = np.zeros(problem.p)
            beta[list(S)] = fit.coef
            found.append(beta)
    return found


def holds(low: float, high: float, errors: list[float]) -> bool:
    scale = 1e-7 * max(max(errors), 1e-6)
    return any(low - scale <= h <= high + scale for h in errors)


def in_region(region: Any, beta: np.ndarray) -> bool:
    """Theorem 1: (β − centre)ᵀ(XᵀX + (ε/2)I)(β − centre) ≤ radius²."""
    step, spectrum, shift = beta - region.centre, region.spectrum, region.epsilon / 2.0
    along = spectrum.directions @ step
    rest = max(float(step @ step - along @ along), 0.0)
    value = float((spectrum.squares + shift) @ along**2) + shift * rest
    return value <= region.radius**2 * (1.0 + 1e-6) + 1e-300


def exact(values: np.ndarray) -> np.ndarray:
    """Numbers as fractions."""
    return np.vectorize(Fraction, otypes=[object])(values.astype(object))


def semidefinite(M: np.ndarray) -> bool:
    """Whether no eigenvalue of a symmetric matrix of fractions is below 0, by elimination."""
    M = M.copy()
    for i in range(len(M)):
        if M[i, i] < 0 or (M[i, i] == 0 and (M[i, i:] != 0).any()):
            return False
        if M[i, i] > 0:
            M[i + 1 :, i + 1 :] -= np.outer(M[i + 1 :, i], M[i, i + 1 :]) / M[i, i]
    return True


@settings(max_examples=examples(100))
@given(st.integers(0, 2**31), st.booleans())
def test_the_spectrum_bounds_the_products_of_the_columns(seed: int, merged: bool) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 9)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-6, 3, size=p)
    if p > 2:
        X[:, 0] = X[:, 1] * (1.0 + 10.0 ** rng.uniform(-13, -1) * rng.normal(size=n))
    problem = SparseRidgeProblem(X, rng.normal(size=n), gamma=1.0, tau=1)
    if merged:
        spectrum = Spectrum.of_gram(GramForm.of(problem, extract=False), n)
    else:
        spectrum = Spectrum.of(problem)
    table, V = exact(X), exact(spectrum.directions)
    seen = V.T @ (exact(spectrum.squares)[:, None] * V)
    unseen = Fraction(spectrum.lost) * (exact(np.eye(p)) - V.T @ V)
    assert spectrum.lost <= 1e-12 * np.linalg.norm(X) ** 2
    assert semidefinite(table.T @ table - seen + unseen)


@settings(max_examples=examples(300))
@given(st.integers(0, 2**31))
def test_every_bound_holds_the_truth(seed: int) -> None:
    full, training, H, t = fold_problem(seed)
    models = optimal_models(training)
    errors = [float(np.sum((t - H @ beta) ** 2)) for beta in models]
    support = heuristic_support(training)
    upper = training.objective(support)
    exact = min(full.objective(S) for S in combinations(range(full.p), full.tau))
    relaxed = perspective_relaxation(full)
    spectrum = Spectrum.of(training)
    rng = np.random.default_rng(seed)
    for lower in (relaxed.bound, exact * (1 - 1e-9)):
        low = bounds.objective_gap_bound(lower, upper)
        assert low <= max(errors) * (1 + 1e-7) + 1e-9 * training.yy
    for epsilon in spectrum.epsilons(training.gamma):
        relaxation = perspective_relaxation(training, epsilon=max(epsilon, 0.0))
        anywhere = relaxation.beta + 0.1 * rng.normal(size=training.p)
        for centre in (relaxation.beta, anywhere):
            region = ellipsoid(training, upper, epsilon=epsilon, beta=centre, spectrum=spectrum)
            assert any(in_region(region, beta) for beta in models)
            ranges = [
                bound(region, H, t)
                for bound in (bounds.row_bounds, bounds.spread_bounds, bounds.region_bounds)
            ]
            for low, high in ranges:
                assert holds(low, high, errors)
            least, most = ranges[2]  # problem (9) is at least as good as the closed forms
            assert least >= max(low for low, _ in ranges[:2]) * (1 - 1e-5) - 1e-9 * training.yy
            assert most <= min(high for _, high in ranges[:2]) * (1 + 1e-5) + 1e-9 * training.yy
        if epsilon >= 0.0:
            low, high = bounds.compute_bounds(
                training, relaxation, relaxed.bound, upper, H, t, epsilon=epsilon
            )
            assert holds(low, high, errors)
    centres = [perspective_relaxation(training, extract=e).beta for e in (False, True)]
    low, high = bounds.fold_bounds(training, centres, relaxed.bound, upper, H, t)
    assert holds(low, high, errors)


def test_first_example_of_the_paper() -> None:
    """EC.2: (15) is stronger than (19) there, 625/121 against 625/319."""
    X, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 5.0])
    full = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    training = SparseRidgeProblem(X[:2], y[:2], gamma=1.0, tau=1)
    upper = training.objective([0])
    assert full.objective([0]) == pytest.approx(2.4137931)
    assert upper == pytest.approx(5 / 11)
    assert bounds.objective_gap_bound(full.objective([0]), upper) == pytest.approx(625 / 319)
    region = ellipsoid(training, upper)
    assert region.centre == pytest.approx([10 / 11])
    low, high = bounds.row_bounds(region, X[2:], y[2:])
    assert low == pytest.approx(625 / 121, rel=1e-5)
    assert high == pytest.approx(625 / 121, rel=1e-5)


def test_second_example_of_the_paper() -> None:
    """EC.2: (15) is weaker than (19) there; 9/7 is the gap, the bound (2 − √(5/4·9/7))²."""
    X = np.array([[1.0, 1.0], [-2.0, 0.0], [2.0, 1.0]])
    y = np.array([0.0, 3.0, 3.0])
    full = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    training = SparseRidgeProblem(X[1:], y[1:], gamma=1.0, tau=1)
    relaxation = perspective_relaxation(training)
    assert relaxation.value == pytest.approx(75 / 7)
    assert relaxation.beta == pytest.approx([-3 / 7, 17 / 7], abs=1e-6)
    upper = training.objective([1])
    assert upper == pytest.approx(12.0)
    assert upper - relaxation.bound == pytest.approx(9 / 7)
    region = ellipsoid(training, upper, beta=relaxation.beta)
    assert region.spread_bound(X[:1]) == pytest.approx(5 / 4 * 9 / 7)
    low, _ = bounds.row_bounds(region, X[:1], y[:1])
    assert low == pytest.approx((2 - np.sqrt(5 / 4 * 9 / 7)) ** 2, rel=1e-5)
    exact = full.objective([1])
    assert exact == pytest.approx(72 / 5)
    assert bounds.objective_gap_bound(exact, upper) == pytest.approx(2.4)


@pytest.mark.parametrize("seed", range(6))
def test_problem_nine_against_a_conic_solver(seed: int) -> None:
    """The convex minimum as a QCQP, the maximum through its exact semidefinite form."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed: pip install sparsecv[mosek]")
    rng = np.random.default_rng(seed)
    n, p, m = 12, 4, 1 + seed % 4
    training = SparseRidgeProblem(rng.normal(size=(n, p)), rng.normal(size=n), gamma=0.5, tau=2)
    H, t = rng.normal(size=(m, p)), 2.0 * rng.normal(size=m)
    region = ellipsoid(training, training.objective([0, 1]) * (1.0 if seed % 2 else 1.3))
    low, high = bounds.region_bounds(region, H, t)
    M = training.G
    root = np.linalg.cholesky(M).T
    beta = cp.Variable(p)
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(t - H @ beta)),
        [cp.norm(root @ (beta - region.centre)) <= region.radius],
    )
    problem.solve(solver="CLARABEL")
    assert low == pytest.approx(problem.value, rel=1e-4, abs=1e-6)
    # S-lemma: the least c with c − ||t − Hβ||² ≥ 0 on the ellipsoid
    lam, c = cp.Variable(nonneg=True), cp.Variable()
    A, b, d = H.T @ H, -H.T @ t, float(t @ t)
    E, e, f = M, -M @ region.centre, region.centre @ M @ region.centre - region.radius**2
    block = cp.bmat(
        [
            [lam * E - A, cp.reshape(lam * e - b, (p, 1), order="F")],
            [
                cp.reshape(lam * e - b, (1, p), order="F"),
                cp.reshape(c - d + lam * f, (1, 1), order="F"),
            ],
        ]
    )
    problem = cp.Problem(cp.Minimize(c), [block >> 0])
    problem.solve(solver="CLARABEL")
    assert high == pytest.approx(problem.value, rel=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_serve_other_gammas(seed: int) -> None:
    """Whatever the bounds at every γ are, what follows from them is below every optimum."""
    rng = np.random.default_rng(seed)
    problem = ugly_problem(seed, 6)
    gammas = np.append(10.0 ** rng.uniform(-3.0, 3.0, 7), [0.0, 1.0])
    gammas[1] = gammas[0]
    least = np.array(
        [
            [
                min(
                    problem.replace(gamma=gamma).objective(support)
                    for support in combinations(range(problem.p), size)
                )
                for size in (1, min(2, problem.p))
            ]
            for gamma in gammas.tolist()
        ]
    )
    known = least * np.where(rng.random(least.shape) < 0.3, 0.0, rng.uniform(0.7, 1.0, least.shape))
    found = fold_bounds.bounds_along_gamma(gammas, known)
    assert (found >= known * (1.0 - 1e-12)).all()
    assert (found <= least * (1.0 + 1e-9) + 1e-12 * problem.yy).all()
    order = np.argsort(gammas)
    assert (np.diff(found[order], axis=0) >= 0.0).all()


def test_a_bound_at_one_gamma_is_a_chord_from_zero_and_a_level() -> None:
    found = fold_bounds.bounds_along_gamma(
        np.array([4.0, 1.0, 2.0, 8.0]), np.array([[0.0], [0], [6], [0]])
    )
    np.testing.assert_allclose(found[:, 0], [6.0, 3.0, 6.0, 6.0], rtol=1e-14)
    found = fold_bounds.bounds_along_gamma(np.array([1.0, 2.0, 3.0]), np.array([[4.0], [0], [8]]))
    np.testing.assert_allclose(found[:, 0], [4.0, 6.0, 8.0], rtol=1e-14)
