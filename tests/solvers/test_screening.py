"""Screening keeps every optimal support, ties included."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fresh import examples

from sparsecv.solvers import SparseRidgeProblem
from sparsecv.solvers.relaxation.perspective import perspective_relaxation, screen


@settings(max_examples=examples(200))
@given(st.integers(0, 2**32 - 1))
def test_every_optimal_support_survives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 25)), int(rng.integers(2, 9))
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    if rng.random() < 0.3:
        X[:, 1] = X[:, 0]  # exact ties
    if rng.random() < 0.3:
        y = X[:, :2].sum(axis=1) + 0.1 * y
    tau = int(rng.integers(1, p + 1))
    problem = SparseRidgeProblem(X, y, gamma=10 ** rng.uniform(-2, 3), tau=tau)
    supports = [frozenset(S) for S in itertools.combinations(range(p), tau)]
    objective = np.array([problem.objective(sorted(S)) for S in supports])
    best = objective.min()
    optimal = [S for S, f in zip(supports, objective, strict=True) if f <= best * (1 + 1e-9)]
    for beta in (perspective_relaxation(problem).beta, rng.normal(size=p), np.zeros(p)):
        for upper in (best, 1.05 * best):
            found = screen(problem, beta, float(upper))
            assert found.bound <= best * (1 + 1e-9)
            for S in optimal:
                assert set(found.included.tolist()) <= S
                assert not S & set(found.excluded.tolist())


def test_it_fixes_columns_where_the_bound_is_tight() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    y = X[:, 2] - X[:, 7] + 0.05 * rng.normal(size=200)
    problem = SparseRidgeProblem(X, y, gamma=20.0, tau=2)
    found = screen(problem, perspective_relaxation(problem).beta, problem.objective([2, 7]))
    assert found.included.tolist() == [2, 7]
    assert found.excluded.size == 10
