"""Outer-approximation cuts hold at every support, and touch f where they are made."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.inside import CutForm, GramForm, Limits, extraction, largest_diagonal
from support.problems import plain, problem_of, ugly_problem

from sparsecv.solvers import SparseRidgeProblem
from sparsecv.solvers.backends.cuts import FrontierCuts


def form_of(problem: SparseRidgeProblem, extract: bool = True) -> CutForm:
    gram = GramForm.of(problem, extract=False)
    if extract:
        plain = extraction(gram.G, problem.p, gram.rounding.eps)
        off = gram.rounding.of_trace(np.diag(gram.G))
        gram = replace(gram, D=largest_diagonal(gram.G, problem.gamma / 2.0, off, plain))
    return CutForm(problem, np.arange(problem.p, dtype=np.intp), gram)


def values(problem: SparseRidgeProblem) -> list[tuple[np.ndarray, float]]:
    found = []
    for support in itertools.combinations(range(problem.p), problem.tau):
        z = np.zeros(problem.p)
        z[list(support)] = 1.0
        found.append((z, problem.objective(support)))
    return found


@given(seed=st.integers(0, 10_000), extract=st.booleans(), size=st.floats(1e-3, 1e3))
def test_any_coefficients_give_a_valid_cut(seed: int, extract: bool, size: float) -> None:
    problem = ugly_problem(seed, 6)
    form = form_of(problem, extract)
    rng = np.random.default_rng(seed)
    length = np.sqrt(np.diag(problem.G)) + np.sqrt(problem.gamma)
    betas = [np.zeros(problem.p), size * rng.standard_normal(problem.p) / length]
    cuts = [form.cut(beta) for beta in betas]
    every = values(problem)
    for support in itertools.combinations(range(problem.p), problem.tau):
        cuts.append(form.at_support(np.array(support)))
    for cut in cuts:
        for z, objective in every:
            largest = abs(cut.constant) + float(cut.slopes @ z)
            assert cut.at(z) <= objective * (1.0 + 1e-12) + 1e-14 * largest


@pytest.mark.parametrize("extract", [False, True])
@pytest.mark.parametrize(("n", "p"), [(30, 6), (4, 7), (12, 5)])
def test_cuts_are_tangents_where_they_are_made(n: int, p: int, extract: bool) -> None:
    """f(z) = yᵀ(I + (2/γ) X D_z Xᵀ)⁻¹y (EC.1, first paper), slopes by finite differences."""
    X, y, gamma = data = plain(p, n, p, 0.7)
    problem = problem_of(data, 3)
    form = form_of(problem, extract)

    def f(z: np.ndarray) -> float:
        inner = np.eye(y.size) + (2.0 / gamma) * (X * z) @ X.T
        return float(y @ np.linalg.solve(inner, y))

    for z, objective in values(problem):
        cut = form.at_support(np.flatnonzero(z))
        assert cut.at(z) == pytest.approx(objective, rel=1e-7)
        for i, step in enumerate(1e-6 * np.eye(p) if not extract else []):
            slope = (f(z + step) - f(z - step)) / 2e-6
            assert -cut.slopes[i] == pytest.approx(slope, rel=1e-4, abs=1e-7)


@given(seed=st.integers(0, 10_000), most=st.integers(1, 60))
@example(606, 1)
def test_a_frontier_bounds_every_support(seed: int, most: int) -> None:
    """Cuts hold at every support; once the tree is done no support looks better than the best."""
    problem = ugly_problem(seed, 7, zero=False)
    form = form_of(problem)
    every = values(problem)
    best = min(objective for _, objective in every)
    frontier = FrontierCuts(form)
    for leaves in (most, np.inf):
        frontier.grow(best, Limits(), leaves)
        cuts = frontier.cuts()
        assert len(cuts) == frontier.size
        for z, objective in every:
            at_z = max(cut.at(z) for cut in cuts)
            assert at_z <= objective * (1.0 + 1e-9) + 1e-12 * problem.yy
    largest = max(abs(cut.constant) + float(cut.slopes.sum()) for cut in cuts)
    for z, _ in every:
        at_z = max(cut.at(z) for cut in cuts)
        assert at_z >= best * (1.0 - 1e-9) - 1e-13 * largest - form.margin
    assert problem.objective(frontier.support) >= best * (1.0 - 1e-12)


@given(seed=st.integers(0, 10_000))
def test_the_diagonal_leaves_a_semidefinite_matrix(seed: int) -> None:
    problem = ugly_problem(seed, 9)
    G, ridge = problem.G, problem.gamma / 2.0
    D = largest_diagonal(G, ridge, 1e-14, np.zeros(problem.p))
    left = np.linalg.eigvalsh(G - np.diag(D))
    assert left[0] >= -1e-13 * problem.p * np.abs(left).max()
    assert D.min() > -1e-3 * ridge  # so γ/2 + D stays positive


def test_the_diagonal_is_larger_than_the_least_eigenvalue() -> None:
    X = plain(0, 50, 8)[0]
    G = X.T @ X
    D = largest_diagonal(G, 0.5, 1e-14, np.zeros(8))
    assert D.sum() > 8 * np.linalg.eigvalsh(G)[0] * 1.05
    coded = np.column_stack([X, np.eye(2)[np.arange(50) % 2]])
    coded -= coded.mean(axis=0)  # both levels of a factor: XᵀX is singular
    G = coded.T @ coded
    D = largest_diagonal(G, 0.5, 1e-14, np.zeros(10))
    assert D[:8].min() > 1.0
    assert abs(D[8:]).max() < 1e-3
