"""Diagonals fitted at nodes, and the tree that fits them, against enumeration."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.brute_force import optimum
from support.fresh import draws
from support.inside import (
    GramForm,
    Leaves,
    Limits,
    Search,
    diagonal,
    extraction,
    largest_diagonal,
)
from support.problems import ugly_problem
from support.stand_ins import StandIn

from sparsecv import Constraints
from sparsecv.solvers import (
    SparseRidgeProblem,
    Status,
    branch_and_bound,
    perspective_relaxation,
    solve_sizes,
)
from sparsecv.solvers.branching.sdp_nodes import RefittedTree
from sparsecv.solvers.relaxation.extraction import allowed


def best_below(problem: SparseRidgeProblem, state: np.ndarray, picks: int) -> float:
    """The least objective of a node's supports."""
    inside, free = np.flatnonzero(state == 1), np.flatnonzero(state == 0)
    options = itertools.combinations(free.tolist(), picks)
    return min(problem.objective(np.array([*inside, *chosen], dtype=int)) for chosen in options)


def with_diagonal(rng: np.random.Generator) -> tuple[SparseRidgeProblem, GramForm]:
    """An ugly problem whose Gram matrix allows a diagonal."""
    while True:
        problem = ugly_problem(int(rng.integers(2**32)))
        problem = problem.replace(gamma=10.0 ** rng.uniform(-8, 8))
        gram = GramForm.of(problem)
        if problem.tau < problem.p and not gram.scaled:
            return problem, gram


def test_bounds_of_nodes_hold_and_their_diagonals_are_allowed() -> None:
    for note, rng in draws(150, 71):
        problem, gram = with_diagonal(rng)
        p, ridge = problem.p, problem.gamma / 2.0
        state = rng.choice(3, size=p, p=(0.6, 0.2, 0.2)).astype(np.int8)
        picks = problem.tau - int((state == 1).sum())
        if not 0 < picks < int((state == 0).sum()):
            continue
        best = best_below(problem, state, picks)
        beta = rng.normal(size=p) * (state != 2)
        start = diagonal.Fitted(diagonal.interior(gram), Leaves.one(state, beta, 0.0, -np.inf))
        plain = diagonal.fit_diagonal(gram, ridge, picks, start, best, 0)
        found = diagonal.fit_diagonal(gram, ridge, picks, start, best)
        assert plain.bound <= found.bound <= best * (1 + 1e-12) + 1e-14 * problem.yy, note
        left = state != 2
        Q = (gram.G - np.diag(found.D))[np.ix_(left, left)]
        assert np.linalg.eigvalsh(Q)[0] >= -1e-14 * np.trace(gram.G), note
        np.testing.assert_array_equal(found.D > 0.0, state == 0, err_msg=note)


def test_bounds_of_nodes_hold_under_groups_and_signs() -> None:
    fitted = 0
    for note, rng in draws(80, 74):
        p = int(rng.integers(4, 9))
        X = rng.normal(size=(int(rng.integers(p + 2, 30)), p))
        X += rng.normal(size=(X.shape[0], 1)) * rng.choice([0.0, 1.0])
        y = X @ rng.normal(size=p) + rng.normal(size=X.shape[0])
        groups = [0, 1, *rng.integers(0, p - 1, size=p - 2).tolist()]
        positive = np.flatnonzero(rng.random(p) < 0.3).tolist()
        asked, tau = Constraints(groups=groups, positive=positive), 2
        problem = SparseRidgeProblem(
            X, y, gamma=10.0 ** rng.uniform(-3, 2), tau=tau, constraints=asked
        )
        units, ridge = np.arange(problem.constraints.n_units), problem.gamma / 2.0
        gram = GramForm.of_units(problem, units)
        state = rng.choice(3, size=units.size, p=(0.8, 0.1, 0.1)).astype(np.int8)
        inside, free = np.flatnonzero(state == 1), np.flatnonzero(state == 0)
        picks = tau - inside.size
        if not gram.fits or not 0 < picks < free.size:
            continue
        best = min(
            problem.objective(problem.constraints.columns_of([*inside, *chosen]))
            for chosen in itertools.combinations(free.tolist(), picks)
        )
        of_column = state[gram.grouping.unit]
        beta = rng.normal(size=gram.b.size) * (of_column == 0) * (positive == [])
        start = diagonal.Fitted(diagonal.interior(gram), Leaves.one(state, beta, 0.0, -np.inf))
        plain = diagonal.fit_diagonal(gram, ridge, picks, start, best, 0)
        found = diagonal.fit_diagonal(gram, ridge, picks, start, best)
        assert plain.bound <= found.bound <= best * (1 + 1e-12) + 1e-14 * problem.yy, note
        fitted += found.bound > plain.bound + 1e-3 * (best - plain.bound)
        left = of_column != 2
        Q = (gram.G - np.diag(found.D))[np.ix_(left, left)]
        assert np.linalg.eigvalsh(Q)[0] >= -1e-14 * np.trace(gram.G), note
    assert fitted > 0


def test_reaches_the_semidefinite_relaxation() -> None:
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 12))
    problem = SparseRidgeProblem(X, X.sum(1) + rng.normal(size=200), gamma=1e-2, tau=5)
    gram, ridge, best = GramForm.of(problem), 5e-3, optimum(problem)
    M, z = cp.Variable((13, 13), PSD=True), cp.Variable(12)
    B, beta = M[1:, 1:], M[0, 1:]
    cones = [cp.SOC(z[i] + B[i, i], cp.hstack([2 * beta[i], z[i] - B[i, i]])) for i in range(12)]
    value = gram.yy - 2 * gram.b @ beta + cp.trace((gram.G + ridge * np.eye(12)) @ B)
    limits = [M[0, 0] == 1, z <= 1, cp.sum(z) <= 5]
    least = cp.Problem(cp.Minimize(value / gram.yy), [*cones, *limits]).solve(solver="CLARABEL")
    start = diagonal.Fitted(diagonal.interior(gram), Leaves.root(12, 12))
    found = diagonal.fit_diagonal(gram, ridge, 5, start, best, 100)
    alone = perspective_relaxation(problem, extract=True, gram=gram).bound
    gap = best - gram.yy * least
    assert found.bound <= gram.yy * least * (1 + 1e-6)
    assert best - found.bound < 1.1 * gap < 0.6 * (best - alone)


@pytest.mark.parametrize("kept", [10_000, 1])
def test_the_tree_is_right_wherever_it_stops(kept: int, stand_in: StandIn) -> None:
    """Also where hardly a node may be kept."""
    stand_in(MIN_NODES_PER_REFIT=1)
    stand_in(most_fitted_nodes=lambda tree: kept)
    for note, rng in draws(60, 72):
        problem, gram = with_diagonal(rng)
        best = optimum(problem)
        tree = RefittedTree(gram, problem, 0.0)
        tree.enter(np.arange(problem.tau, dtype=np.intp), 0)
        free = np.zeros(problem.p, dtype=np.int8)
        tree.add(Leaves.one(free, np.zeros(problem.p), 0.0, -np.inf))
        search = Search(tree)
        for _ in range(2000):
            ended = search.run(Limits(None, search.n_nodes + 1 + int(rng.integers(1, 4))))
            known = min(search.bound, float(tree.now["upper"][0]))
            assert known <= best * (1 + 1e-9) + 1e-13 * problem.yy, note
            if ended is Status.OPTIMAL:
                break
        assert ended is Status.OPTIMAL, note
        found = problem.objective(np.sort(search.support))
        assert found <= best * (1 + 1e-6) + 1e-9 * problem.yy, note


@pytest.mark.parametrize("jobs", [1, 2])
def test_equals_the_tree_of_fixed_diagonals(jobs: int, stand_in: StandIn) -> None:
    """Near ties of nearly orthogonal columns; with threads each tree has nodes of its own."""
    stand_in(FITTING_SUPPORTS=0.0)
    stand_in(MIN_NODES_PER_REFIT=1)
    stand_in(FIRST_CHUNK_COLUMNS=0)
    trees: list[RefittedTree] = []
    start = RefittedTree.__init__

    def counted(tree: RefittedTree, *args: Any) -> None:
        trees.append(tree)
        start(tree, *args)

    stand_in(new_refitted_tree=counted)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 60))
    problem = SparseRidgeProblem(X, X[:, :30].sum(1) + rng.normal(size=400), gamma=1e-3, tau=16)
    found = branch_and_bound(problem, tol=0.0, n_jobs=jobs)
    assert len(trees) == jobs
    assert found.status is Status.OPTIMAL
    assert found.lower_bound <= found.objective * (1 + 1e-12)
    stand_in(REFIT_SHARE=1.0)
    fixed = branch_and_bound(problem, tol=0.0)
    assert len(trees) == jobs
    assert found.objective == pytest.approx(fixed.objective, rel=1e-9)


@pytest.mark.slow
def test_every_size_of_eighty_columns() -> None:
    """Half of the columns true and worth nearly the same: sizes that were open after minutes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 80))
    y = X[:, :40].sum(1) + rng.normal(size=1000)
    problem = SparseRidgeProblem(X, y, gamma=1e-3, tau=80)
    found = solve_sizes(problem, sizes=[16, 20, 24, 28], limits=Limits(time_limit=240.0))
    assert all(one.proved for one in found)


@pytest.mark.parametrize("seed", range(20))
def test_one_diagonal_serves_every_gamma_and_size(seed: int) -> None:
    """G − D ⪰ 0, D > 0 on all columns, and bounds with D are below every optimum."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 6)) * 10.0 ** rng.uniform(-2.0, 2.0, size=6)
    if seed % 2:
        X[:, 3] = X[:, 0] + 10.0 ** rng.uniform(-5.0, 0.0) * X[:, 3]
    y = X[:, 0] + rng.normal(size=15)
    gram = GramForm.of(SparseRidgeProblem(X, y, gamma=1.0, tau=1))
    D = diagonal.shared_diagonal(gram)
    assert D.min() >= 0.0
    assert D.sum() >= gram.D.sum()
    R = np.linalg.qr(X / np.linalg.norm(X, axis=0), mode="r")
    scaled = np.diag(D / np.square(X).sum(axis=0))
    assert np.linalg.eigvalsh(R.T @ R - scaled).min() >= -1e-10
    for gamma, tau in ((1e-2, 2), (1.0, 3), (100.0, 1)):
        problem = SparseRidgeProblem(X, y, gamma=gamma, tau=tau)
        found = branch_and_bound(problem, tol=0.0, gram=replace(gram, D=D))
        best = min(problem.objective(s) for s in itertools.combinations(range(6), tau))
        assert found.objective == pytest.approx(best, rel=1e-9)
        assert found.lower_bound <= best * (1.0 + 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_diagonal_is_lowered_until_no_eigenvalue_is_negative(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 6)) * 10.0 ** rng.integers(-3, 4, 6)
    G = X.T @ X
    D = allowed(G, 1.5 * np.diag(G) * rng.random(6), 1e-12)
    assert np.linalg.eigvalsh(G - np.diag(D)).min() >= 0.0


def test_steps_to_the_largest_trace_keep_their_digits_at_many_columns() -> None:
    """Neighbours correlated by .7 leave a fourth more than the least eigenvalue gives."""
    X = np.random.default_rng(0).standard_normal((500, 200))
    for j in range(1, 200):
        X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1.0 - 0.7**2) * X[:, j]
    G = X.T @ X
    plain = extraction(G, 200, 1e-14)
    D = largest_diagonal(G, 1.0, 1e-13, plain)
    assert D.sum() > 1.25 * plain.sum()
    assert np.linalg.eigvalsh(G - np.diag(D))[0] >= -1e-9
