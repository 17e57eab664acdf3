"""One tree for many neighbours, against enumeration of each of them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.brute_force import models, optimum
from support.constrained import random_rules
from support.fresh import examples
from support.inside import (
    IN,
    OUT,
    GramForm,
    Leaves,
    LeftOut,
    Limits,
    Search,
    Tree,
    certificate,
    search_alone,
    solve_jointly,
)
from support.problems import ugly_problem

from sparsecv.solvers import SparseRidgeProblem, Status, heuristic_support, perspective_relaxation
from sparsecv.solvers.branching.row_deletion import bound_nodes
from sparsecv.solvers.core.certificate_file import IntegerScale


def folds_of(
    seed: int, most_columns: int = 10
) -> tuple[SparseRidgeProblem, LeftOut, list[SparseRidgeProblem]]:
    """A problem, its rows left out one or a few at a time, and the problems without them.

    In half of the problems columns are in groups, some of which must be in, or out. Rows of zeros
    are rows of weight 0.
    """
    rng = np.random.default_rng(seed)
    problem = ugly_problem(seed, most_columns)
    X, y = problem.rows[:, : problem.p], problem.rows[:, problem.p]
    n = y.size + 3
    X, y = np.vstack([X, rng.normal(size=(3, problem.p))]), np.append(y, rng.normal(size=3))
    how: dict[str, Any] = {"gamma": 10.0 ** rng.uniform(-3, 4), "tau": problem.tau}
    grouped = np.random.default_rng([seed, 1])
    if grouped.random() < 0.5:
        how["gamma"] = 10.0 ** grouped.uniform(-5, 8)
        X[: grouped.integers(3)] = 0.0
        y[~X.any(axis=1)] = 0.0
        kinds = tuple(kind for kind in ("include", "exclude") if grouped.random() < 0.2)
        rules = random_rules(grouped, problem.p, ("groups", *kinds))
        m = len(rules.units)
        how["tau"] = int(grouped.choice([s for s in range(1, m + 1) if any(rules.models(s))]))
        how |= rules.keywords
    problem = SparseRidgeProblem(X, y, **how)
    size = 1 if rng.random() < 0.6 else int(rng.integers(1, max(2, n // 2)))
    parts = np.array_split(rng.permutation(n), max(n // size, 2))
    order = np.concatenate(parts)
    start = np.cumsum([0, *(part.size for part in parts)]).astype(np.int64)
    left_out = LeftOut.of(problem, X[order].copy(), y[order].copy(), start, n)
    folds = []
    for part in parts:
        kept = np.setdiff1d(np.arange(n), part)
        folds.append(SparseRidgeProblem(X[kept], y[kept], **how))
    return problem, left_out, folds


def jointly(
    problem: SparseRidgeProblem,
    left_out: LeftOut,
    folds: list[SparseRidgeProblem],
    **options: Any,
) -> Any:
    """The proofs of the search of all rows, where one support is the incumbent of all problems."""

    def objectives(which: Any, support: Any) -> Any:
        return np.array([folds[j].objective(support) for j in which])

    starts = [heuristic_support(problem)] * (len(folds) + 1)
    upper = objectives(range(len(folds)), starts[0])
    return solve_jointly(left_out, problem, starts, upper, objectives, **options)


def gram_of(left_out: LeftOut, fold: SparseRidgeProblem) -> Any:
    """XᵀX of a fold's rows, in the columns of the tree."""
    rows = left_out.turned(fold.rows[:, : fold.p])
    return rows.T @ rows


def without_each_row(problem: SparseRidgeProblem, X: Any, y: Any) -> list[SparseRidgeProblem]:
    given = {"gamma": problem.gamma, "tau": problem.tau}
    return [SparseRidgeProblem(np.delete(X, j, 0), np.delete(y, j), **given) for j in range(y.size)]


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(st.integers(0, 2**31), st.sampled_from([0, 1, 7, 500]), st.sampled_from([1, 3, 6, 20_000]))
@example(35, 7, 6)  # A leaf of one support holds a worse support for some of the problems.
@example(0, 7, 20_000)  # Here and below a leaf's support is worse than what a problem knows.
@example(4, 500, 20_000)
def test_every_neighbour_is_solved(seed: int, patience: int, most_nodes: int) -> None:
    problem, left_out, folds = folds_of(seed)
    found = jointly(problem, left_out, folds, max_leaves=patience, most_nodes=most_nodes)
    for j, fold in enumerate(folds):
        best, scale = optimum(fold), 1e-9 * problem.yy + 4.0 * found[j].rounding
        if not found[j].proved:
            alone = search_alone(left_out, problem, j, found[j])
            if not alone.proved:
                assert alone.n_nodes > 0
                alone = search_alone(left_out, problem, j, alone, branch=True)
            assert alone.proved
            assert alone.status is Status.OPTIMAL
            support = alone.support
        else:
            support = found[j].support
        assert fold.objective(support) <= best * (1 + 1e-7) + scale


@settings(max_examples=examples(60))
@given(st.integers(0, 2**31), st.integers(0, 40), st.sampled_from([0.01, 0.3]))
def test_every_support_lies_below_a_leaf(seed: int, most_nodes: int, raised: float) -> None:
    problem = ugly_problem(seed, 8)
    tree = Tree(GramForm.of(problem), problem, 0.0)
    tree.enter(heuristic_support(problem), 0)
    tree.keep_leaves()
    tree.add(Leaves.root(problem.p, problem.p, 1.0))
    Search(tree).run(Limits().within(nodes=most_nodes))
    tree.go_on(raised)
    Search(tree).run(Limits().within(nodes=2 * most_nodes))
    state, beta, _, bound, _ = tree.leaves()
    assert not beta[state == 2].any()
    for support in combinations(range(problem.p), problem.tau):
        inside = np.isin(np.arange(problem.p), support)
        below = ((state != 1) | inside).all(axis=1) & ((state != 2) | ~inside).all(axis=1)
        assert below.any()
        least = problem.objective(support)
        assert (bound[below] <= least * (1 + 1e-7) + 1e-9 * problem.yy).all()


@pytest.mark.parametrize("seed", [45, 60, 107])
def test_every_support_lies_below_one_leaf_where_the_search_improves_its_incumbent(
    seed: int,
) -> None:
    """A node that the new incumbent closes is a leaf, and is not branched on."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 8)) @ (np.eye(8) + 0.6 * rng.standard_normal((8, 8)))
    noise = rng.standard_normal(3), rng.standard_normal(30) * rng.choice([1, 0.1])
    y = 1e4 * (X[:, :3] @ noise[0] + noise[1])
    problem = SparseRidgeProblem(X, y, gamma=float(rng.choice([0.1, 1, 30])), tau=3)
    supports = [np.array(one) for one in combinations(range(8), 3)]
    fourth = sorted(supports, key=problem.objective)[3]
    form = certificate.Form.of(problem, GramForm.of(problem), np.zeros(8), np.ones(8))
    state = certificate.leaves_of(form, fourth, 0.01).state
    for support in supports:
        inside = np.isin(np.arange(8), support)
        below = ((state != 1) | inside).all(axis=1) & ((state != 2) | ~inside).all(axis=1)
        assert below.sum() == 1


@pytest.mark.parametrize("seed", range(8))
def test_a_leaf_is_closed_by_the_coefficients_that_are_written(seed: int) -> None:
    """The goal is what a leaf just reaches; beside that of a short column others are rounded."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 4)) * [1.0, 1e-10, 1.0, 1.0]
    y = X @ [1.0, 1e10, 0.5, 0.0] + rng.standard_normal(30)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    form = certificate.Form.of(problem, GramForm.of(problem), np.zeros(4), np.ones(4))
    beta = np.linalg.lstsq(X, y)[0] * (1.0 + 0.02 * rng.standard_normal(4))
    leaf = Leaves.one(np.zeros(4, dtype=np.int8), beta, 0.0, -np.inf)
    room = certificate.WRITTEN_SHARE_OF_YY * form.gram.yy
    goal = float(form.bounds(leaf)[0]) - 1.0001 * room
    units = IntegerScale.of([["1"]] * 5, np.ones(4), 1.0)
    (point,), (closed,) = certificate.points_of([form], [goal], [[np.arange(2)]], leaf, units)
    columns, power, whole = point
    written = np.zeros((1, 4))
    written[0, columns] = np.ldexp(np.array(whole, dtype=float), -power)
    assert closed == (form.bounds(leaf._replace(beta=written))[0] - goal > room)


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(st.integers(0, 2**31))
def test_bounds_around_moved_centres_hold(seed: int) -> None:
    """objective(β) ≥ bound + (β − centre)ᵀ(G_j + shift I)(β − centre) for τ-sparse β."""
    problem, left_out, folds = folds_of(seed, 6)
    ridge = problem.gamma / 2.0
    relaxation = perspective_relaxation(problem.unconstrained(), extract=seed % 2 == 0)
    rng = np.random.default_rng(seed)
    for shift in (0.0, 0.3 * ridge, -0.7 * float(left_out.least.min())):
        shifts = np.full(left_out.count, shift)
        beta, bound = left_out.centres(relaxation, ridge, problem.tau, shifts)
        for j, fold in enumerate(folds):
            G = gram_of(left_out, fold)
            M = G + shift * np.eye(len(G))
            for S in list(models(fold))[:10]:
                fitted = np.zeros(problem.p)
                fitted[S] = fold.fit(S).coef
                other = fitted + np.isin(np.arange(problem.p), S) * rng.normal(size=problem.p)
                for point in (fitted, other):
                    value = fold.yy - 2 * fold.b @ point + point @ fold.G @ point
                    value += ridge * point @ point
                    step = left_out.turned(point[None])[0] - beta[j]
                    least = bound[j] + step @ M @ step
                    assert least <= value + 1e-8 * (problem.yy + value)


@settings(max_examples=examples(80))
@given(st.integers(0, 2**31))
def test_both_bounds_of_a_node_hold_at_any_coefficients(seed: int) -> None:
    """The quick bound, which a target of −∞ asks for, and that of the largest worths."""
    problem, left_out, folds = folds_of(seed, 8)
    rng, ridge, k = np.random.default_rng(seed), problem.gamma / 2.0, len(folds)
    dp = left_out.problems(ridge, -left_out.least, 0.0, True)
    state = rng.choice(3, size=(5, left_out.units.size), p=(0.7, 0.1, 0.2)).astype(np.int8)
    state[:, left_out.include > 0] = IN
    near = np.linalg.solve(left_out.gram.quadratic(ridge), left_out.gram.b)
    beta = near * rng.normal(1.0, 0.5, size=(5, near.size)) * (state[:, dp.owner] != OUT)
    lam = rng.uniform(size=5) * np.abs(left_out.gram.b).max() / np.sqrt(ridge)
    nodes = Leaves.of(state, beta, lam)
    for target in (-np.inf, np.inf):
        bounds, count = np.empty((5, k)), np.zeros(k, dtype=np.intp)
        rest = np.full(k, target), 5, count, bounds, np.empty((0, near.size))
        bound_nodes(dp, nodes, problem.tau, *rest)
        for j, fold in enumerate(folds):
            for support in models(fold):
                inside = np.isin(left_out.units, fold.constraints.units(support))
                below = ((state != IN) | inside).all(axis=1) & ((state != OUT) | ~inside).all(
                    axis=1
                )
                most = fold.objective(support) * (1.0 + 1e-9) + 1e-13 * problem.yy
                assert (bounds[below, j] <= most).all()


@settings(max_examples=examples(80))
@given(st.integers(0, 2**31))
def test_least_eigenvalues_and_spreads_are_bounds(seed: int) -> None:
    _, left_out, folds = folds_of(seed, 6)
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(left_out.count, left_out.gram.b.size))
    single = (np.diff(left_out.start) == 1).all()
    spreads = left_out.spreads(H, 0.1, np.arange(left_out.count)) if single else None
    for j, fold in enumerate(folds):
        G = gram_of(left_out, fold)
        values = np.linalg.eigvalsh(G)
        assert left_out.least[j] <= max(values[0], 0.0) + 1e-9 * max(values[-1], 1e-300)
        if spreads is not None:
            exact = H[j] @ np.linalg.solve(G + 0.1 * np.eye(len(G)), H[j])
            assert spreads[j] >= exact * (1 - 1e-9)


def test_relaxations_alone_do_not_branch() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 30)), rng.normal(size=40)
    problem = SparseRidgeProblem(X, y, gamma=0.1, tau=8)
    left_out = LeftOut.of(problem, X, y, np.arange(41), 40)
    found = jointly(problem, left_out, without_each_row(problem, X, y), most_nodes=1)
    alone = [search_alone(left_out, problem, j, found[j]) for j in range(40)]
    assert not any(one.work.n_branched for one in alone)
    assert any(not one.proved for one in alone)
    solved = [search_alone(left_out, problem, j, one, branch=True) for j, one in enumerate(alone)]
    assert all(one.proved for one in solved)


def test_no_time_leaves_everything_open() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(30, 10)), rng.normal(size=30)
    problem = SparseRidgeProblem(X, y, gamma=0.1, tau=4)
    left_out = LeftOut.of(problem, X, y, np.arange(31), 30)
    found = jointly(problem, left_out, without_each_row(problem, X, y), limits=Limits(0.0))
    assert not any(one.proved for one in found)
    one = search_alone(left_out, problem, 0, found[0], Limits(0.0), branch=True)
    assert one.status is Status.TIME_LIMIT
    assert not one.proved


@pytest.mark.parametrize("seed", [100121, *range(100200, 100220)])
def test_what_enumeration_has_passed_over_counts_in_the_bound(seed: int) -> None:
    """Columns nearly the same: a second fit of a better support may come out worse than it is."""
    rng = np.random.default_rng(seed)
    p, n, tau = int(rng.integers(5, 9)), int(rng.integers(8, 14)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, p)) + 10.0 ** rng.uniform(2, 3.0) * rng.normal(size=(n, 1))
    q = p // 2
    X[:, q : 2 * q] = X[:, :q] + rng.normal(size=(n, q)) * 10.0 ** rng.uniform(-4.5, -3)
    y = X[:, 0] + rng.normal(size=n) * 10.0 ** rng.uniform(-0.5, 0.5)
    problem = SparseRidgeProblem(X, y, gamma=10.0 ** rng.uniform(-0.5, 1), tau=tau)
    left_out = LeftOut.of(problem, X.copy(), y.copy(), np.arange(n + 1), n)
    subsets = [list(chosen) for chosen in combinations(range(p), tau)]
    rows = [np.delete(np.arange(n), j) for j in range(n)]
    folds = [SparseRidgeProblem(X[m], y[m], gamma=problem.gamma, tau=tau) for m in rows]
    values = np.array([[fold.objective(subset) for subset in subsets] for fold in folds])
    worse = np.array([rng.choice(np.argsort(row)[1:3]) for row in values])
    starts = [subsets[i] for i in worse] + [subsets[int(values.sum(axis=0).argmin())]]

    def objectives(which: Any, support: Any) -> Any:
        return np.array([folds[int(j)].objective(list(support)) for j in which])

    upper, most = values[np.arange(n), worse], int(rng.integers(1, 8))
    found = solve_jointly(left_out, problem, np.array(starts), upper, objectives, most_nodes=most)
    for j, one in enumerate(found):
        if not one.proved:
            one = search_alone(left_out, problem, j, one, None, branch=False)
        if not one.proved:
            one = search_alone(left_out, problem, j, one, None, branch=True)
        assert one.lower_bound <= values[j].min() * (1.0 + 1e-7), (j, one.rounding)
