"""Supports along a path of γ and of every size: against enumeration and trees, on ugly data."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from support.answers import lower_bounds, objectives, proofs, supports
from support.fresh import plain_run
from support.inside import LEAPS, Limits, SupportPath, Way, enumerated, plan
from support.problems import plain, regression
from support.stand_ins import StandIn

from sparsecv.solvers import (
    SparseRidgeProblem,
    Status,
    best_subsets,
    solve,
    solve_sizes,
    support_path,
)
from sparsecv.solvers.paths import path_of_one_tree


def test_ties_go_to_the_first_support() -> None:
    X, y, gamma = plain(0, 12, 3)
    doubled = SparseRidgeProblem(np.hstack([X, X]), y, gamma=gamma, tau=1)
    path = support_path(doubled, [gamma, 100.0 * gamma], [1, 2, 3])
    for g in range(2):
        tree = best_subsets(doubled.replace(gamma=float(path.gammas[g])), sizes=[1, 2, 3])
        for ours, theirs in zip(path.at(g), supports(tree), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("solver", ["auto", "exact", "heuristic", "rounding"])
@pytest.mark.parametrize("p", [6, 48])
def test_fits_predictions_and_errors_are_those_of_its_supports(solver: str, p: int) -> None:
    X, y, _ = plain(4, 30, p, noise=1.0)
    problem = SparseRidgeProblem(X[:20], y[:20], gamma=1.0, tau=1)
    gammas, sizes = [0.01, 1.0, 100.0], [1, 2, 4]
    path = support_path(problem, gammas, sizes, solver=solver)
    predicted, errors = path.predict(X[20:]), path.squared_errors(X[20:], y[20:])
    for g, gamma in enumerate(gammas):
        at_gamma = problem.replace(gamma=gamma)
        least = objectives(solve_sizes(at_gamma, sizes=sizes))
        for t, size in enumerate(sizes):
            support = path.support(g, t)
            assert support.size == size
            fit = at_gamma.fit(support)
            np.testing.assert_allclose(path.coef[g, t, :size], fit.coef, rtol=1e-9, atol=1e-12)
            assert path.objective[g, t] == pytest.approx(fit.objective, rel=1e-10)
            expected = X[20:, support] @ fit.coef
            np.testing.assert_allclose(predicted[g, t], expected, rtol=1e-8, atol=1e-10)
            assert errors[g, t] == pytest.approx(np.sum((y[20:] - expected) ** 2), rel=1e-8)
            assert path.lower_bound[g, t] <= least[t] * (1.0 + 1e-10)
            if path.proved[g, t]:
                assert path.objective[g, t] == pytest.approx(least[t], rel=1e-10)
    assert path.proved.all() or solver != "exact"
    if solver in ("heuristic", "rounding"):
        assert not path.proved.any()
        assert (path.lower_bound == 0.0).all()
    known = SupportPath.of(problem, gammas, path.sizes, path.supports)
    np.testing.assert_array_equal(known.coef, path.coef)
    np.testing.assert_array_equal(known.objective, path.objective)
    assert not known.proved.any()
    assert (path.status is Status.OPTIMAL) == path.proved.all()
    assert known.status is Status.UNPROVED
    with pytest.raises(ValueError, match="solver must be one of"):
        support_path(problem, gammas, sizes, solver="quick")


@pytest.mark.parametrize("solver", ["auto", "exact"])
@pytest.mark.parametrize("p", [12, 60])
def test_a_path_without_time_proves_nothing(solver: str, p: int) -> None:
    X, y, _ = plain(6, 25, p, noise=2.0)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    path = support_path(problem, [0.1, 10.0], [1, 3, 7], solver=solver, limits=Limits(0.0))
    assert path.status is Status.TIME_LIMIT
    assert not path.proved.any()
    assert not path.searched.any()
    assert (path.n_nodes == 0).all()
    assert (path.lower_bound <= path.objective).all()
    heuristic = support_path(problem, [0.1, 10.0], [1, 3, 7], solver="heuristic")
    np.testing.assert_array_equal(path.supports[0], heuristic.supports[0])
    np.testing.assert_array_equal(path.supports[1], path.supports[0])
    assert not np.allclose(path.coef[1], path.coef[0])


def test_sizes_that_a_short_tree_leaves_open_are_not_called_proved() -> None:
    X, y, _ = plain(6, 25, 60, noise=2.0)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    path = support_path(problem, [0.01, 1.0], [8, 9, 10], solver="estimate")
    assert (path.status is Status.OPTIMAL) == path.proved.all()
    for g, gamma in enumerate([0.01, 1.0]):
        alone = solve_sizes(problem.replace(gamma=gamma), sizes=[8, 9, 10], limits=Limits(1.0))
        assert (path.lower_bound[g] <= objectives(alone) * (1.0 + 1e-12)).all()


@pytest.mark.parametrize("nodes", [0, 20, 200, None])
def test_one_tree_at_every_gamma_has_bounds_that_hold(nodes: int | None) -> None:
    X, y, _ = plain(7, 25, 10)
    problem, gammas = SparseRidgeProblem(X, y, gamma=1.0, tau=1), [0.1, 10.0]
    for gamma in gammas:
        at_gamma, limits = problem.replace(gamma=gamma), Limits(node_limit=nodes)
        path = path_of_one_tree(at_gamma, range(1, 10), [np.arange(4)], limits)
        assert nodes is not None or path.proved.all()
        assert nodes != 0 or not path.proved[:, 2:6].any()
        for t, size in enumerate(range(1, 10)):
            every = (at_gamma.objective(S) for S in combinations(range(10), size))
            least, found = min(every), at_gamma.objective(path.support(0, t))
            assert path.lower_bound[0, t] <= least * (1.0 + 1e-12)
            assert not path.proved[0, t] or found <= least * (1.0 + 1e-9)


def test_a_limit_of_nodes_ends_all_searches_of_a_gamma(stand_in: StandIn) -> None:
    """A tree that has had the nodes of a γ leaves none for searches of single sizes.

    Where the limit was reached at a γ, the tree and the searches of the next γ have a tenth of it.
    """
    stand_in(NODES_OF_A_PROOF=1000)
    turns = Way(LEAPS, nodes=50), Way(plan.ALONE, nodes=10_000)
    stand_in(ways=lambda *_: turns)
    X, y = regression(60, 25, [1.0] * 10, seed=3, noise=3.0)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    path = support_path(problem, [0.1, 0.2, 0.3], range(1, 26), limits=Limits(node_limit=100))
    assert not path.proved.all(axis=1).any()
    assert path.n_trees.tolist() == [1, 1, 1]
    assert (path.n_nodes <= [101, 11, 11]).all()  # The root is not counted beforehand.
    best = [one.objective for one in best_subsets(problem.replace(gamma=0.1), sizes=path.sizes)]
    assert (path.lower_bound[0] <= best).all()
    assert (path.objective[0] >= best * np.array(1.0 - 1e-12)).all()


@pytest.mark.parametrize("gamma", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("sizes", [[0], [1], [0, 1]])
def test_a_path_refuses_a_gamma_below_0_at_every_size(gamma: float, sizes: list[int]) -> None:
    problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
    with pytest.raises(ValueError, match="gamma must be a finite number >= 0"):
        support_path(problem, [gamma], sizes)


def test_a_path_has_every_size_asked_for_once_and_in_order() -> None:
    problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
    for sizes in ([2, 0, 1], [0, 0, 1, 2], [[0, 1], [2, 2]]):
        path = support_path(problem, [1.0], sizes)
        assert path.sizes.tolist() == [0, 1, 2]
        assert [one.tolist() for one in path.at(0)] == [[], [1], [1, 2]]
    assert support_path(problem, [1.0], 0).sizes.tolist() == [0]
    for wrong in ([0.0], [False], [0.0, 1.0]):
        with pytest.raises(ValueError, match="sizes must be whole numbers"):
            support_path(problem, [1.0], wrong)


def test_columns_of_zeros() -> None:
    X, y, _ = plain(1, 9, 4)
    X[:, 2] = 0.0
    nothing = SparseRidgeProblem(X, 0.0 * y, gamma=1.0, tau=1)
    assert [s.tolist() for s in support_path(nothing, [1.0], [1, 2]).at(0)] == [[0], [0, 1]]


def test_enumeration_of_many_columns() -> None:
    X, y, _ = plain(5, 10, 50, noise=2.0)
    for gamma in (0.01, 1.0, 100.0):
        problem = SparseRidgeProblem(X, y, gamma=gamma, tau=1)
        sizes = np.array([1, 2, 4])
        assert plan.few_supports(problem, sizes)
        tree = solve_sizes(problem, sizes=sizes)
        assert proofs(tree).all()
        for ours, theirs in zip(enumerated(problem, sizes, []), objectives(tree), strict=True):
            assert ours.objective == pytest.approx(theirs, rel=1e-10)
            assert ours.status is Status.OPTIMAL
    assert not plan.few_supports(problem, [10])
    nothing = SparseRidgeProblem(X, 0.0 * y, gamma=1.0, tau=1)
    assert [p.support.tolist() for p in enumerated(nothing, np.array([2]), [])] == [[0, 1]]


def test_columns_of_very_different_length() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4)) * np.array([1e13, 1.0, 1e-4, 1e-3])
    y = 1e5 * X[:, 2] + 1e4 * X[:, 3] + 0.3 * rng.standard_normal(40)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    for gammas in ([1e2, 1e-8], [1e-8, 1e2]):
        path = support_path(problem, gammas, [2])
        for g, gamma in enumerate(gammas):
            at_gamma = problem.replace(gamma=gamma)
            best = min(combinations(range(4), 2), key=at_gamma.objective)
            np.testing.assert_array_equal(path.support(g, 0), best)


def alike(n: int = 40, p: int = 20) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Columns of which every one is worth nearly the same where γ is large."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) + 3.0 * rng.standard_normal((n, 1))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, :4].sum(axis=1) + rng.standard_normal(n)
    return X, y - y.mean()


@pytest.mark.parametrize("gamma", [100.0] if plain_run() else [100.0, 1e3])
def test_sizes_alone_are_those_of_the_tree(gamma: float) -> None:
    X, y = alike(p=26)
    problem = SparseRidgeProblem(X, y, gamma=gamma, tau=26)
    tree = best_subsets(problem)
    assert tree[0].n_nodes > 2 * plan.NODES_OF_FIRST_TURN
    found = solve_sizes(problem)
    assert proofs(found).all()
    assert found[0].n_nodes < tree[0].n_nodes / 2
    np.testing.assert_allclose(objectives(found), objectives(tree), rtol=1e-12)
    assert np.all(lower_bounds(found) <= objectives(tree))
    path = support_path(problem, [1.0, gamma], np.arange(1, 27))
    assert path.proved.all()
    for support, objective in zip(path.at(1), objectives(tree), strict=True):
        assert problem.objective(support) == pytest.approx(objective, rel=1e-12)
    one = solve(problem.replace(tau=9))
    assert one.status is Status.OPTIMAL
    assert one.objective == pytest.approx(tree[8].objective, rel=1e-9)


@pytest.mark.parametrize("gamma", [100.0] if plain_run() else [0.1, 100.0])
def test_many_true_columns_are_proved_by_sizes_alone(gamma: float) -> None:
    """The tree of all sizes has over 100 million nodes here; each size alone has few."""
    X, y = regression(200, 35, dict.fromkeys(range(35), 1.0), seed=0)
    problem = SparseRidgeProblem(X - X.mean(axis=0), y - y.mean(), gamma=gamma, tau=35)
    limits = Limits(None, 100_000_000)
    path = support_path(problem, [gamma], np.arange(1, 36), limits=limits)
    assert path.proved.all()
    assert (path.objective[0] * (1.0 - 1e-6) <= path.lower_bound[0]).all()
    assert (np.diff(path.objective[0]) <= 1e-9 * problem.yy).all()


@pytest.mark.parametrize("room", [1e9, 0.0])
def test_sizes_that_branching_does_not_settle_go_back_to_the_tree(
    room: float, stand_in: StandIn
) -> None:
    """Also where there is no room to keep a search until the next turn."""
    ways = (Way(LEAPS, nodes=500), Way(plan.ALONE, nodes=1), Way(plan.ALONE, nodes=300), Way(LEAPS))
    stand_in(ways=lambda *_: ways)
    stand_in(MAX_OPEN_BYTES=room)
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((22, 18)), rng.standard_normal(22)
    problem = SparseRidgeProblem(X, y, gamma=1e-3, tau=18)
    tree, found = best_subsets(problem), solve_sizes(problem)
    assert proofs(found).all()
    np.testing.assert_allclose(objectives(found), objectives(tree), rtol=1e-10)
    assert np.all(lower_bounds(found) <= objectives(found))
    assert found[0].n_nodes > tree[0].n_nodes


@pytest.mark.slow
def test_time_that_easy_sizes_leave_goes_to_the_others() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 80)) + rng.standard_normal((1000, 1))
    y = X[:, ::8].sum(axis=1) + 20.0 * rng.standard_normal(1000)
    problem = SparseRidgeProblem(X - X.mean(axis=0), y - y.mean(), gamma=1.0, tau=1)
    solve_sizes(problem, sizes=[1, 2], limits=Limits(time_limit=0.5))  # compiles
    seconds = 8.0
    found = solve_sizes(problem, sizes=np.arange(1, 31), limits=Limits(time_limit=seconds))
    assert proofs(found).all() or found[0].seconds >= 0.9 * seconds
    assert found[0].seconds <= seconds + 30.0
    assert np.all(lower_bounds(found) <= objectives(found))


def test_a_tree_that_ends_after_its_own_limit_lists_supports_for_other_gammas(
    stand_in: StandIn,
) -> None:
    """Searches of sizes alone take turns with the tree, which ends in its next turn."""
    stand_in(NODES_OF_A_PROOF=1_000)
    X, y = regression(60, 34, [1.0, 1.0, 1.0], seed=1, noise=3.0)
    problem, sizes = SparseRidgeProblem(X, y, gamma=1.0, tau=1), np.arange(1, 35)
    path = support_path(problem, [1.0, 1.02, 1.01], sizes)
    assert path.proved.all()
    # Sizes that were proved before the tree ended are left out.
    listed = path.listed[1.0][0] > 0.0
    assert listed.sum() > 10
    assert path.searched[0].all()
    assert not path.searched[2][listed[1:]].any()
    for g, gamma in enumerate(path.gammas.tolist()):
        alone = best_subsets(problem.replace(gamma=gamma), sizes=sizes)
        np.testing.assert_allclose(path.objective[g], objectives(alone), rtol=1e-12)


@pytest.mark.parametrize(("n", "p"), [(30, 34), (40, 32)])
@pytest.mark.parametrize("high", [1.1, 1e4])
def test_lists_at_two_gammas_prove_what_is_best_in_between(n: int, p: int, high: float) -> None:
    X, y = regression(n, p, [1.0, 1.0, 1.0], seed=1, noise=5.0)
    problem, sizes = SparseRidgeProblem(X, y, gamma=1.0, tau=1), np.arange(1, p + 1)
    inside = np.geomspace(1.0, high, 9)[1:-1]
    # The first tree is large, so that those after it leave lists, whatever the number of columns.
    path = support_path(problem, [1.02, high, 1.0, 1.01, *inside], sizes)
    assert path.proved.all()
    assert high > 1.1 or path.searched[3:].mean() < 0.8
    for g, gamma in enumerate(path.gammas.tolist()):
        alone = best_subsets(problem.replace(gamma=gamma), sizes=sizes)
        np.testing.assert_allclose(path.objective[g], objectives(alone), rtol=1e-12)
        assert np.all(path.lower_bound[g] <= objectives(alone))
    # What the trees have listed proves sizes of another path, and the answers stay the same.
    told = support_path(problem, [1.005, *inside], sizes, listed=path.listed)
    assert told.proved.all()
    assert told.searched[0].mean() < 0.8
    fresh = support_path(problem, [1.005, *inside], sizes)
    np.testing.assert_array_equal(told.supports, fresh.supports)
    np.testing.assert_array_equal(told.coef, fresh.coef)
