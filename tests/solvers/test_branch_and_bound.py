"""Branch-and-bound against enumeration, the all-sizes tree, and itself when cut short."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecv.solvers import (
    SparseRidgeProblem,
    Status,
    StopFlag,
    best_subsets,
    branch_and_bound,
    solve,
    solve_sizes,
)
from sparsecv.solvers import sizes as sizes_module
from sparsecv.solvers.completion_kernels import complete
from sparsecv.solvers.limits import Limits
from sparsecv.solvers.local_search import improve
from sparsecv.synthetic import make_synthetic


def optimum(problem: SparseRidgeProblem) -> float:
    return min(problem.objective(S) for S in itertools.combinations(range(problem.p), problem.tau))


def ugly_problem(seed: int, most_columns: int = 10) -> SparseRidgeProblem:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 25)), int(rng.integers(2, most_columns + 1))
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    kind = int(rng.integers(6))
    if kind == 1:
        X = X @ (np.eye(p) + rng.normal(size=(p, p)))
    elif kind == 2 and p > 2:
        X[:, 1], X[:, 2] = X[:, 0], -X[:, 0]
    elif kind == 3:
        X = rng.integers(-2, 3, size=(n, p)).astype(float)
        y = rng.integers(-3, 4, size=n).astype(float)
    elif kind == 4 and p > 2:
        X[:, 1], X[:, 2] = X[:, 0] + 1e-6 * rng.normal(size=n), 0.0
    elif kind == 5:
        X = X * 10.0 ** rng.uniform(-3, 3, size=p)
    gamma = 10.0 ** rng.uniform(-6, 5)
    return SparseRidgeProblem(X, y, gamma=gamma, tau=int(rng.integers(1, p + 1)))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 0, 1, 2, 5, 20]))
def test_bounds_hold_whenever_it_stops(seed: int, nodes: int | None) -> None:
    problem = ugly_problem(seed)
    best = optimum(problem)
    found = branch_and_bound(problem, tol=0.0, limits=Limits(None, nodes))
    assert found.lower_bound <= best * (1 + 1e-12) + 1e-14 * problem.yy
    assert found.objective >= best * (1 - 1e-9) - 1e-13 * problem.yy
    assert found.support.size == problem.tau
    if found.status is Status.OPTIMAL:
        assert found.objective <= best * (1 + 3e-6)
        if best > 1e-4 * problem.yy:
            assert found.objective == pytest.approx(best, rel=1e-8)
    elif nodes is None:
        assert found.status is Status.PRECISION


@pytest.mark.parametrize("seed", range(6))
def test_equals_the_all_sizes_tree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = (60, 30) if seed % 2 else (25, 30)
    made = make_synthetic(n, p, 6, 0.6, 2.0, seed=seed)
    problem = SparseRidgeProblem(made.X, made.y, gamma=float(10 ** rng.uniform(-1, 1)), tau=8)
    tree = best_subsets(problem)
    for size in (1, 3, 5, 8):
        found = branch_and_bound(problem.replace(tau=size), tol=0.0)
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(tree.objective[size - 1], rel=1e-8)
        assert found.lower_bound <= tree.objective[size - 1]


def test_many_columns() -> None:
    made = make_synthetic(80, 700, 4, 0.4, 10.0, seed=3)  # beyond every enumeration workspace
    problem = SparseRidgeProblem(made.X, made.y, gamma=5.0, tau=2)
    found = branch_and_bound(problem)
    rows = made.X
    first = np.array([problem.fit([j]).gain for j in range(problem.p)])
    order = np.argsort(-first)[:60]
    best = min(problem.objective(S) for S in itertools.combinations(order, 2))
    assert found.objective <= best * (1 + 1e-9)
    assert found.status is Status.OPTIMAL
    assert rows.shape[1] == problem.p


def test_limits_and_stop() -> None:
    made = make_synthetic(60, 80, 10, 0.8, 0.5, seed=0)
    problem = SparseRidgeProblem(made.X, made.y, gamma=0.05, tau=10)
    assert branch_and_bound(problem, limits=Limits(0.0)).status is Status.TIME_LIMIT
    stopped = StopFlag()
    stopped.set()
    assert branch_and_bound(problem, limits=Limits(stop=stopped)).status is Status.INTERRUPTED
    few = branch_and_bound(problem, limits=Limits(None, 3))
    many = branch_and_bound(problem, limits=Limits(None, 400))
    assert few.status is many.status is Status.NODE_LIMIT
    assert few.lower_bound <= many.lower_bound <= many.objective <= few.objective


def test_solve_uses_it_beyond_a_tree() -> None:
    made = make_synthetic(120, 60, 5, 0.3, 8.0, seed=1)
    problem = SparseRidgeProblem(made.X, made.y, gamma=1.0, tau=5)
    found = solve(problem)
    assert found.status is Status.OPTIMAL
    assert found.gap <= 2e-6
    assert set(found.support) == set(np.flatnonzero(made.beta_true))
    assert found.objective == pytest.approx(problem.objective(found.support), rel=1e-12)


def test_sizes_beyond_a_tree_equal_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_synthetic(60, 24, 6, 0.7, 1.0, seed=2)
    problem = SparseRidgeProblem(made.X, made.y, gamma=0.3, tau=24)
    tree = best_subsets(problem)
    monkeypatch.setattr(sizes_module, "TREE_ONLY", 10)
    monkeypatch.setattr(sizes_module, "FIRST_NODES", 30)
    found = solve_sizes(problem)
    assert found.proved.all()
    assert found.n_trees > 1
    np.testing.assert_allclose(found.objective, tree.objective, rtol=1e-8)
    assert (found.lower_bound <= tree.objective).all()
    short = solve_sizes(problem, time_limit=1e-9)
    assert not short.proved.all()
    assert (short.lower_bound <= tree.objective).all()
    assert (short.objective >= tree.objective * (1 - 1e-9)).all()


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 5])
def test_completion_visits_every_choice(k: int) -> None:
    rng = np.random.default_rng(k)
    for _ in range(10):
        n, p = int(rng.integers(4, 20)), int(rng.integers(k + 2, 10))
        problem = SparseRidgeProblem(
            rng.normal(size=(n, p)), rng.normal(size=n), gamma=10 ** rng.uniform(-2, 2), tau=p
        )
        m = int(rng.integers(0, min(3, p - k)))
        order = rng.permutation(p).astype(np.int64)
        chosen, free = order[:m].copy(), order[m:].copy()
        size, levels = free.size, max(k - 1, 1)
        found = np.zeros(k + 1, dtype=np.int64)
        gain = complete(
            problem.G,
            problem.b,
            problem.gamma / 2,
            chosen,
            m,
            free,
            size,
            k,
            -1.0,
            np.empty((m + 1, size)),
            np.empty(size),
            np.empty(size),
            np.empty((m + 1, m + 1)),
            np.empty((levels, size, size)),
            np.empty((levels, size)),
            np.zeros(k + 1, dtype=np.int64),
            found,
        )
        best = max(problem.fit([*chosen, *rest]).gain for rest in itertools.combinations(free, k))
        assert gain == pytest.approx(best, rel=1e-9, abs=1e-12)
        picked = [*chosen, *free[found[:k]]]
        assert problem.fit(picked).gain == pytest.approx(best, rel=1e-9, abs=1e-12)


def test_swaps_end_where_no_swap_helps() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        X, y = rng.normal(size=(30, 12)), rng.normal(size=30)
        problem = SparseRidgeProblem(X, y, gamma=0.5, tau=4)
        start = rng.choice(12, size=4, replace=False)
        support = improve(problem.G, problem.b, 0.25, start)
        value = problem.objective(support)
        assert value <= problem.objective(start) * (1 + 1e-12)
        for out, new in itertools.product(support, np.setdiff1d(np.arange(12), support)):
            swapped = [*(c for c in support if c != out), new]
            assert problem.objective(swapped) >= value * (1 - 1e-8)
