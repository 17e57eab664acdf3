"""Bounds of leaves hold for every support below, at any coefficients and any weight."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fresh import examples
from support.inside import FREE, IN, OUT, CutForm, GramForm, Leaves, expand
from support.problems import ugly_problem

from sparsecv.solvers.relaxation.ellipsoid import ShiftedForm


def below(state: np.ndarray, size: int) -> list[tuple[int, ...]]:
    """The supports of a size that keep the included columns and none of the excluded ones."""
    inside, out = set(np.flatnonzero(state == IN)), set(np.flatnonzero(state == OUT))
    every = combinations(range(state.size), size)
    return [support for support in every if inside <= set(support) and not out & set(support)]


@settings(max_examples=examples(100))
@given(seed=st.integers(0, 10_000), size=st.floats(1e-3, 1e3))
def test_bounds_hold_at_any_coefficients_and_any_gamma(seed: int, size: float) -> None:
    problem, rng = ugly_problem(seed, 6, zero=False), np.random.default_rng(seed)
    states = rng.choice([FREE, FREE, IN, OUT], size=(8, problem.p)).astype(np.int8)
    length = np.sqrt(np.diag(problem.G)) + np.sqrt(problem.gamma)
    beta = np.where(states == OUT, 0.0, size * rng.standard_normal(states.shape) / length)
    leaves, gram = Leaves.of(states, beta, np.zeros(8)), GramForm.of(problem, extract=False)
    for gamma in (problem.gamma, 10.0 * problem.gamma):
        at = problem.replace(gamma=gamma)
        forms = ShiftedForm(gram, gamma, 0.0), CutForm(at, np.arange(problem.p), gram)
        bounds = [leaves.bounds(form, problem.tau) for form in forms]
        for state, *found in zip(states, *bounds, strict=True):
            least = min((at.objective(S) for S in below(state, problem.tau)), default=np.inf)
            assert max(found) <= least * (1.0 + 1e-12)


@settings(max_examples=examples(100))
@given(seed=st.integers(0, 10_000))
def test_what_leaves_are_worth_is_that_of_their_best_support(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = rng.choice([FREE, IN, OUT], size=(6, 5)).astype(np.int8)
    worth, k = rng.random((6, 5)), int(rng.integers(1, 5))
    most = Leaves.at_zero(states, 5).most_worth(worth, k)
    for state, row, found in zip(states, worth, most, strict=True):
        supports = [S for s in range(k + 1) for S in below(state, s)]
        if supports:
            assert found >= max(row[list(S)].sum() for S in supports) - 1e-12


@settings(max_examples=examples(100))
@given(seed=st.integers(0, 10_000))
def test_fits_of_any_leaves_are_those_of_their_columns(seed: int) -> None:
    """Also of leaves that share no node with their neighbours."""
    rng = np.random.default_rng(seed)
    problem = ugly_problem(seed, 6, zero=False)
    states = rng.choice([FREE, FREE, IN, OUT], size=(9, problem.p)).astype(np.int8)
    leaves, yy = Leaves.at_zero(states, problem.p), problem.yy
    members = states != OUT
    loss = [one for fits in expand(problem, leaves, np.zeros((0, problem.p))) for one in fits.loss]
    expected = [problem.objective(np.flatnonzero(row)) for row in members if row.any()]
    if problem.gamma > 1e-6 * float(np.diag(problem.G).max()):
        np.testing.assert_allclose(loss, expected, rtol=1e-6, atol=1e-9 * yy)
