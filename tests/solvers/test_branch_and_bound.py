"""Branch-and-bound against enumeration, the all-sizes tree, and itself when cut short."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.brute_force import optimum
from support.fresh import examples, plain_run
from support.inside import (
    GramForm,
    Limits,
    Relaxer,
    Search,
    SizeAlone,
    Tree,
    at_root,
    make_synthetic,
)
from support.problems import ugly_problem
from support.stand_ins import StandIn, standing_in

from sparsecv.solvers import (
    Answer,
    SparseRidgeProblem,
    Status,
    branch_and_bound,
    perspective_relaxation,
    solve,
)


def between(problem: SparseRidgeProblem, **options: Any) -> tuple[Answer, float]:
    """What a search returns, with the least objective between its bound and its incumbent."""
    found, best = branch_and_bound(problem, **options), optimum(problem)
    assert found.lower_bound <= best * (1 + 1e-12) + 1e-14 * problem.yy
    assert found.objective >= best * (1 - 1e-9) - 1e-13 * problem.yy
    return found, best


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_a_size_goes_on_where_it_stopped(seed: int, more: int) -> None:
    """Stopped again and again, with supports from elsewhere in between, as in one go."""
    problem, rng = ugly_problem(seed), np.random.default_rng(seed)
    whole, best = between(problem, tol=0.0)
    search, bound, nodes = SizeAlone(problem, tol=0.0), 0.0, 0
    for _ in range(500):
        if rng.random() < 0.2:
            search.offer(rng.permutation(problem.p)[: problem.tau])
        found = search.run(Limits(None, nodes))
        assert found.lower_bound >= bound
        assert found.lower_bound <= best * (1 + 1e-12) + 1e-14 * problem.yy
        assert found.objective >= best * (1 - 1e-9) - 1e-13 * problem.yy
        if found.status is not Status.NODE_LIMIT:
            break
        assert found.n_nodes >= nodes
        bound, nodes = found.lower_bound, found.n_nodes + more
    assert found.status is whole.status
    assert found.objective == pytest.approx(whole.objective, rel=1e-9, abs=1e-13 * problem.yy)
    assert search.run(Limits()).n_nodes == found.n_nodes


@pytest.mark.parametrize("head_start", [0.0, 3e5, np.inf])
def test_stops_change_no_search(head_start: float, stand_in: StandIn) -> None:
    """Stopped in the plain tree, or in the tree after it, a search has the nodes of one go."""
    stand_in(FITTING_SUPPORTS=head_start)
    stand_in(HEAD_START_SUPPORTS=head_start)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 40))
    y = X[:, :8].sum(axis=1) + 3.0 * rng.standard_normal(60)
    problem = SparseRidgeProblem(X, y, gamma=0.1, tau=15)
    whole = branch_and_bound(problem)
    assert whole.n_nodes > 300
    search, runs = SizeAlone(problem, tol=1e-6), 0
    while search.answer.status is not Status.OPTIMAL:
        search.run(Limits(None, search.answer.n_nodes + 50))
        runs += 1
    assert runs > 5
    assert search.answer.objective == whole.objective
    # The head start ends between two looks at its work, which come at other nodes with stops.
    share = 0.0 if head_start == np.inf else 0.15
    assert abs(search.answer.n_nodes - whole.n_nodes) <= share * whole.n_nodes
    seconds = [entry[0] for entry in search.answer.history]
    assert seconds == sorted(seconds)


def test_supports_are_visited_once_the_turn_is_long_enough() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 20))
    X[:, 1] = X[:, 0] + 1e-9 * X[:, 1]
    problem = SparseRidgeProblem(X, X[:, 2] + rng.standard_normal(40), gamma=1e-9, tau=3)
    search = SizeAlone(problem, tol=0.0)
    assert search.run(Limits(), 1139).status is Status.NODE_LIMIT
    assert search.run(Limits(), 1140).status is Status.OPTIMAL  # C(20, 3)


def test_many_columns() -> None:
    X, y, _ = make_synthetic(80, 700, 4, 0.4, 10.0, seed=3)  # beyond every enumeration workspace
    problem = SparseRidgeProblem(X, y, gamma=5.0, tau=2)
    found = branch_and_bound(problem)
    first = np.array([problem.fit([j]).gain for j in range(problem.p)])
    order = np.argsort(-first)[:60]
    best = min(problem.objective(S) for S in itertools.combinations(order, 2))
    assert found.objective <= best * (1 + 1e-9)
    assert found.status is Status.OPTIMAL
    assert X.shape[1] == problem.p


@pytest.mark.parametrize("seed", range(20))
def test_enumeration_finds_the_best_subset_from_a_poor_incumbent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, tau = int(rng.integers(6, 10)), int(rng.integers(2, 4))
    X = rng.standard_normal((30, p)) + rng.standard_normal((30, 1)) * rng.choice([0.0, 1.0])
    y = X @ rng.standard_normal(p) + rng.standard_normal(30)
    problem = SparseRidgeProblem(X, y, gamma=10.0 ** rng.uniform(-2, 2), tau=tau)
    every = sorted(
        (problem.objective(support), support) for support in itertools.combinations(range(p), tau)
    )
    for value, support in every[1:6:2]:
        gram = GramForm.of(problem)
        tree, relaxer = Tree(gram, problem, 0.0), Relaxer.of(problem, gram, np.arange(p))
        tree.enter(np.array(support), 0)
        tree.add(at_root.relaxed_node(relaxer, value))
        assert Search(tree).run(Limits()) is Status.OPTIMAL
        assert float(tree.now["upper"][0]) == pytest.approx(every[0][0], rel=1e-9)


@pytest.mark.parametrize("seed", range(0, 12, 2 if plain_run() else 1))
def test_residual_form_at_the_root(seed: int, stand_in: StandIn) -> None:
    """Many more columns than rows, screened before any Gram matrix of all of them is formed."""
    rng = np.random.default_rng(seed)
    n, p, tau = int(rng.integers(3, 12)), int(rng.integers(30, 80)), 2
    X = rng.standard_normal((n, p)) / np.sqrt(n)
    y = X[:, 0] - X[:, p // 2] + 0.3 * rng.standard_normal(n)
    problem = SparseRidgeProblem(X, y, gamma=10.0 ** rng.uniform(-4, 3), tau=tau)
    gram = branch_and_bound(problem, tol=0.0)
    stand_in(wants_gram_at_the_root=lambda problem: False)
    for nodes in (0, 1, 3, None):
        found = branch_and_bound(problem, tol=0.0, limits=Limits(None, nodes))
        best = optimum(problem)
        assert found.lower_bound <= best * (1 + 1e-12)
        assert found.objective >= best * (1 - 1e-9)
    np.testing.assert_allclose(found.objective, gram.objective, rtol=1e-9)
    assert found.status is Status.OPTIMAL


def test_screening_leaves_fewer_columns_than_picks() -> None:
    X = np.eye(12, 10) * np.array([9.0, 8.0, 7.0, *([0.0] * 7)])
    y = 0.3 * np.random.default_rng(0).standard_normal(12)
    y[:3] += 5.0
    problem = SparseRidgeProblem(X, y, gamma=1e-3, tau=5)
    found = branch_and_bound(problem)
    assert set(found.support) >= {0, 1, 2}
    assert found.support.size == 5
    np.testing.assert_allclose(found.objective, problem.objective([0, 1, 2]), rtol=1e-9)
    assert found.status is Status.OPTIMAL


def hard(seed: int = 0, n: int = 60, p: int = 70, tau: int = 8) -> SparseRidgeProblem:
    X, y, _ = make_synthetic(n, p, tau, 0.7, 1.0, seed=seed)
    return SparseRidgeProblem(X, y, gamma=1.0, tau=tau)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_share_one_tree(n_jobs: int) -> None:
    for seed in range(3):
        problem = hard(seed, tau=5)
        alone = branch_and_bound(problem)
        together = branch_and_bound(problem, n_jobs=n_jobs)
        np.testing.assert_allclose(together.objective, alone.objective, rtol=2e-6)
        assert together.lower_bound <= alone.objective
        assert together.status is Status.OPTIMAL
        cut = branch_and_bound(problem, n_jobs=n_jobs, limits=Limits(None, 40))
        assert cut.lower_bound <= alone.objective
        assert cut.objective >= alone.objective * (1 - 1e-6)


def test_a_rounded_relaxation_is_improved_among_its_own_columns() -> None:
    """Of many columns those of largest |g| are swapped, and g is nearly 0 where β is not."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 620))
    problem = SparseRidgeProblem(
        X, 10.0 * X[:, 5] + 0.1 * rng.standard_normal(40), gamma=1e-6, tau=1
    )
    root, beta, other = at_root.Root.of(problem), np.zeros(620), np.array([610])
    beta[5] = problem.fit([5]).coef[0]
    relaxer = Relaxer.of(problem, None, root.units, state=root.state)
    relaxer.start(beta, 1e-3)
    incumbent = at_root.Incumbent(problem, [])
    incumbent.support, incumbent.objective = other, problem.objective(other)
    at_root.improve_incumbent(incumbent, root, relaxer, None)
    assert incumbent.support.tolist() == [5]


def open_rows(search: Search) -> list[bytes]:
    """The open nodes of all threads."""
    return sorted(
        tree.open.nodes.state[row].tobytes() for tree in search.trees for row in tree.waiting
    )


def root_tree(problem: SparseRidgeProblem) -> Tree:
    _, root, gram = at_root.reduced_root(problem, [], 1e-6, None, Limits())
    assert gram is not None
    tree = Tree(gram, problem, 1e-6)
    tree.add(root.node.afresh())
    return tree


def test_every_open_node_is_kept_when_the_tree_is_split() -> None:
    search = Search(root_tree(hard(tau=8)), 3)
    while search.trees[0].waiting.size < 12:
        search.trees[0].advance(5)
    rows, bound = open_rows(search), search.bound
    search._split()
    assert len(search.trees) == 3
    assert open_rows(search) == rows
    assert search.bound == bound
    lost = search.trees[0].waiting.size
    search.trees[0].clear()  # its nodes are lost on purpose
    search._share()
    assert len(open_rows(search)) == len(rows) - lost
    assert search.trees[0].waiting.size > 0


def test_without_room_for_more_nodes_it_goes_deep() -> None:
    """A table that is full before the loop looks again would let the search go on nowhere."""
    problem = hard(tau=7)
    with standing_in(FIRST_ROWS=8, most_nodes=lambda tree: 2 * tree.gram.b.size + 24):
        tree = root_tree(problem)
        for _ in range(10):
            tree.advance(1_000_000)
        assert tree.waiting.size == 0
        assert tree.open.nodes.size == tree._most()
        deep = branch_and_bound(problem)
        cut = branch_and_bound(problem, limits=Limits(None, 30))
    best = branch_and_bound(problem)
    assert cut.lower_bound <= best.objective
    assert deep.status is Status.OPTIMAL
    assert deep.objective == pytest.approx(best.objective, rel=2e-6)
    assert float(tree.now["upper"][0]) == pytest.approx(best.objective, rel=2e-6)


@pytest.mark.parametrize("seed", range(4))
def test_a_bound_of_several_threads_is_that_of_all_their_nodes(
    seed: int, stand_in: StandIn
) -> None:
    """A tree that goes on with others keeps a part of its nodes: its own bound says nothing."""
    stand_in(HEAD_START_SUPPORTS=1e5)
    stand_in(MAX_SHARE_CLOSED=0.0)
    seen: list[Search] = []
    run = Search.run

    def watched(self: Search, *arguments: Any) -> Status | None:
        seen.append(self)
        return run(self, *arguments)

    stand_in(run_search=watched)
    problem = hard(seed=seed, p=80, tau=8)
    found = branch_and_bound(problem, limits=Limits(node_limit=400), n_jobs=2)
    assert found.status is Status.NODE_LIMIT
    assert len(set(map(id, seen))) == 2
    assert len(seen[-1].trees) == 2
    assert found.lower_bound <= seen[-1].bound
    assert found.n_nodes == 1 + seen[-1].n_nodes


@pytest.mark.slow
def test_history_of_the_gap() -> None:
    found = solve(hard(p=120, tau=10), node_limit=3000)
    seconds, objective, bound = np.array(found.history).T
    assert (np.diff(seconds) > 0).all()
    assert (np.diff(bound / objective) > 0).all()
    assert found.objective <= objective[-1] * (1 + 1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 5]))
@settings(max_examples=examples(60))
def test_never_below_the_relaxation_alone(seed: int, nodes: int) -> None:
    """Stopped at the root or near it, small γ and wide data: what residuals keep, Gram loses."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(4, 20)), int(rng.integers(12, 30))
    X = rng.normal(size=(n, p)) + 10.0 ** rng.uniform(-2, 3) * rng.normal(size=(n, 1))
    y = X[:, :4] @ rng.normal(size=4) + 10.0 ** rng.uniform(-4, 1) * rng.normal(size=n)
    gamma = float(np.square(X).sum(axis=0).max()) * 10.0 ** rng.uniform(-8, 0)
    problem = SparseRidgeProblem(X, y, gamma=gamma, tau=int(rng.integers(1, 8)))
    alone = max(perspective_relaxation(problem, extract=e).bound for e in (False, True))
    found = branch_and_bound(problem, tol=0.0, limits=Limits(None, nodes))
    assert found.lower_bound >= min(alone, found.objective) * (1.0 - 1e-6) - 2e-12 * problem.yy


@pytest.mark.parametrize("seed", range(4))
def test_a_finished_search_closes_the_gap(seed: int) -> None:
    """A node that is pruned too early leaves a gap, however valid the bound is."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 50)) + 0.8 * rng.standard_normal((80, 1))
    y = X[:, :10].sum(axis=1) + 6.0 * rng.standard_normal(80)
    found = branch_and_bound(SparseRidgeProblem(X, y, gamma=1.0, tau=6))
    assert found.status is Status.OPTIMAL
    assert found.gap <= 1e-6
    assert found.n_nodes > 20
