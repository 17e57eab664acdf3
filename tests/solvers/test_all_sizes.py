"""The all-sizes tree against enumeration: optima, bounds, ties, limits, warm starts, wide masks."""

from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from support.answers import ended, lower_bounds, objectives, proofs, supports
from support.brute_force import Data, Support
from support.fresh import examples
from support.inside import Limits, linalg
from support.problems import plain, problem_of, ugly
from support.trees import every_stop, exact_of, key

from sparsecv import Constraints
from sparsecv.solvers import (
    SparseRidgeProblem,
    Status,
    best_subsets,
    solve,
    support_path,
)
from sparsecv.solvers.leaps import tree


def test_an_optimal_warm_start_is_kept_at_once() -> None:
    data = plain(12, 25, 10)
    problem = problem_of(data)
    best = best_subsets(problem)
    again = best_subsets(problem, warm_starts=supports(best), limits=Limits(node_limit=0))
    np.testing.assert_array_equal(objectives(again), objectives(best))
    assert best_subsets(problem, warm_starts=supports(best))[0].n_nodes <= best[0].n_nodes


def test_free_members_are_ordered_by_falling_steps_and_then_by_place() -> None:
    compute = getattr(linalg.order_steps, "py_func", linalg.order_steps)
    random = np.random.default_rng(4)
    for u in range(40):
        step = random.integers(0, max(u // 3, 1), u) / 3.0 if u % 2 else random.random(u)
        order, rank = np.full((2, u + 2), -1)
        compute(np.append(step, [9.0, np.inf]), u, order, rank)
        np.testing.assert_array_equal(order[:u], np.argsort(-step, kind="stable"))
        assert (order[u:] == -1).all()


# --- ties ---------------------------------------------------------------------------------------


# Losses of these equal columns are 1e-6 of the objective and differ by rounding of the objective.
THREE_EQUAL = np.repeat(
    [
        [0.04168609500320237],
        [-0.5939635479318255],
        [0.5578286549899927],
        [-0.1831330027646046],
        [1.2404357222667848],
        [0.22265830012836169],
        [1.1210843695863189],
    ],
    3,
    axis=1,
)
THEIR_RESPONSE = np.array([-2.0, -2.0, 1.0, 2.0, -1.0, 2.0, -1.0])
# The last column is the difference of two others, each rounded: pairs of the three tie.
DIFFERENCE = np.random.default_rng(5).standard_normal((7, 4))
DIFFERENCE = np.column_stack([DIFFERENCE, DIFFERENCE[:, 3] - DIFFERENCE[:, 2]])
ITS_RESPONSE = DIFFERENCE[:, 2] + DIFFERENCE[:, 3] + 0.5 * DIFFERENCE[:, 0]


@settings(max_examples=examples(150))
@given(data=ugly(max_columns=5, mild=True))
@example(data=Data(THREE_EQUAL, THEIR_RESPONSE, 10.0**-2.5))
@example(data=Data(DIFFERENCE, ITS_RESPONSE, 0.0))
def test_exact_ties_go_to_the_lexicographically_first(data: Data) -> None:
    exact = exact_of(data)
    yy, p = exact[0][()], data.X.shape[1]
    full = exact[p][tuple(range(p))]
    found = best_subsets(problem_of(data))
    for one in found:
        least = min(exact[one.size].values())
        loss, gain = least - full, yy - least
        if one.size < p and min(loss, gain) < Fraction(1, 10**6) * yy:
            continue  # all that tells supports apart is rounding
        # Two supports may differ by the rounding of a sum of columns, and tie (docs/theory.md).
        tied = [S for S, f in exact[one.size].items() if f - least <= 1e-12 * min(least, gain)]
        assert key(one.support) == min(tied)


@pytest.mark.parametrize("copies", [2, 5, 9, 12])
@pytest.mark.parametrize("gamma", [1e-2, 1.0, 1e5])
def test_equal_columns_are_taken_from_the_left(copies: int, gamma: float) -> None:
    """Of nine copies more supports tie than a list holds, so that the last in order make way."""
    rng = np.random.default_rng(copies)
    x = rng.standard_normal(20)
    X = np.repeat(x[:, None], copies, axis=1)
    found = best_subsets(problem_of(Data(X, x + rng.standard_normal(20), gamma)))
    assert [key(one.support) for one in found] == [tuple(range(one.size)) for one in found]


@pytest.mark.parametrize(
    ("apart", "shares"),
    [
        (1e-2, -0.95e-12 * np.arange(43)),  # Each ties with the one before.
        (3e-3, np.append(np.full(97, 8e-11), 0.0)),  # More than a list holds tie; the last is best.
    ],
)
def test_what_ties_keeps_the_bound(apart: float, shares: Any) -> None:
    """Each of k columns leaves 0.4 (1 + share) of y; two others nearly equal each other."""
    k, gamma = shares.size, 1e-6
    X = np.zeros((k + 3, k + 2))
    left = 0.4 * (1.0 + shares)
    X[0, :k] = np.sqrt((1.0 - left) / left)
    X[1 + np.arange(k), np.arange(k)] = X[k + 1, k:] = 1.0
    X[k + 2, k + 1] = apart
    problem = SparseRidgeProblem(X, np.eye(k + 3)[0], gamma=gamma, tau=1)
    squares = [Fraction(x) ** 2 for x in X[0, :k].tolist()]
    ridge = 1 + Fraction(gamma) / 2
    least = min(1 - square / (square + ridge) for square in squares)
    path = support_path(problem, [gamma], [1])
    for bound in (best_subsets(problem)[0].lower_bound, float(path.lower_bound[0, 0])):
        assert Fraction(bound) <= least


# --- limits -------------------------------------------------------------------------------------


def test_stopping_never_loosens_bounds_nor_incumbents() -> None:
    stops = every_stop(plain(2, 20, 9, noise=2.0))
    assert len(stops) > 30
    for before, after in pairwise(stops):
        assert np.all(objectives(after) <= objectives(before) * (1.0 + 1e-12))
        assert np.all(lower_bounds(after) >= lower_bounds(before) * (1.0 - 1e-9))


# --- sizes that are closed by a diagonal --------------------------------------------------------


@pytest.mark.parametrize("asked", [Constraints(groups=[*"cbahgfed"]), Constraints(exclude=[2])])
def test_a_diagonal_stands_in_the_order_of_the_columns_of_the_tree(asked: Constraints) -> None:
    data = plain(1, 30, 8, noise=3.0)
    problem = SparseRidgeProblem(data.X, data.y, gamma=1.0, tau=2, constraints=asked)
    search = tree.Leaps(problem, np.arange(1, 8))
    search.extract()
    columns, D = search.table.columns, search.tree.extracted
    X = problem.triangle[:, columns]
    np.testing.assert_allclose(search.table.gram().G, X.T @ X)
    assert D.min() > 0.0
    assert np.linalg.eigvalsh(X.T @ X - np.diag(D)).min() > 0.0


@pytest.mark.parametrize(("gamma", "closes"), [(1e-4, 0), (100.0, 1)])
def test_a_tree_needs_fewer_nodes_once_it_has_a_diagonal(gamma: float, closes: int) -> None:
    """At the larger γ the ridge alone closes sizes before, and the diagonal closes more."""
    problem = problem_of(plain(3, 100, 20, gamma, noise=4.0))
    whole, halfway = (tree.Leaps(problem, np.arange(1, 21)) for _ in range(2))
    assert whole.run(Limits()) is Status.OPTIMAL
    assert halfway.run(Limits(node_limit=300)) is Status.NODE_LIMIT
    assert halfway.now("closes") == closes
    halfway.extract()
    assert halfway.run(Limits()) is Status.OPTIMAL
    assert halfway.n_nodes < 0.9 * whole.n_nodes
    for mine, same in zip(halfway.candidates(1), whole.candidates(1), strict=True):
        np.testing.assert_array_equal(mine[0], same[0])


def test_tau_gives_the_default_sizes() -> None:
    problem = problem_of(plain(0, 9, 6)).replace(tau=3)
    found = best_subsets(problem)
    np.testing.assert_array_equal([one.size for one in found], [1, 2, 3])
    larger = best_subsets(problem, sizes=[5])
    assert larger[0].support.size == 5


# --- more columns, masks of several words, far-off units ----------------------------------------


@pytest.mark.parametrize(
    ("p", "n", "gamma", "noise"),
    [(16, 12, 0.1, 1.0), (18, 200, 1e-6, 4.0), (22, 60, 1e4, 1.0), (26, 300, 1.0, 2.0)],
)
def test_one_search_equals_one_search_per_size(p: int, n: int, gamma: float, noise: float) -> None:
    data = plain(p, n, p, gamma, noise)
    problem = problem_of(data)
    found = best_subsets(problem)
    assert ended(found) is Status.OPTIMAL
    assert np.all(np.diff(objectives(found)) <= 1e-12 * found[0].objective)
    assert np.all(lower_bounds(found) <= objectives(found))
    for one in found:
        alone = best_subsets(problem, sizes=[one.size])
        assert alone[0].objective == pytest.approx(one.objective, rel=1e-12)
        assert key(alone[0].support) == key(one.support)
    order = np.random.default_rng(p).permutation(p)
    other = best_subsets(problem_of(Data(data.X[:, order], data.y, gamma)))
    np.testing.assert_allclose(objectives(other), objectives(found), rtol=1e-11)
    assert [key(sorted(order[s])) for s in supports(other)] == [key(s) for s in supports(found)]


def least_by_normal_equations(data: Data, s: int) -> tuple[float, Support]:
    """Fine for well conditioned columns, and fast for many supports."""
    X, y, gamma = data
    M = X.T @ X + gamma / 2.0 * np.eye(X.shape[1])
    b = X.T @ y
    supports = np.array(list(combinations(range(X.shape[1]), s)))
    blocks = M[supports[:, :, None], supports[:, None, :]]
    gain = np.einsum(
        "ij,ij->i", b[supports], np.linalg.solve(blocks, b[supports][..., None])[..., 0]
    )
    best = int(np.argmax(gain))
    return float(y @ y - gain[best]), key(supports[best])


@pytest.mark.parametrize("p", [64, 65, 70, 129])
def test_columns_beyond_one_machine_word(p: int) -> None:
    rng = np.random.default_rng(p)
    X = rng.standard_normal((200, p))
    planted = [1, p - 6, p - 1]
    y = X[:, planted] @ np.array([1.0, -2.0, 3.0]) + 0.1 * rng.standard_normal(200)
    data = Data(X, y, 1e-3)
    found = best_subsets(problem_of(data), sizes=[1, 2, 3], limits=Limits(node_limit=100_000))
    assert key(found[2].support) == tuple(planted)
    for i, s in enumerate([1, 2, 3] if p < 100 else [1, 2]):
        least, support = least_by_normal_equations(data, s)
        assert key(found[i].support) == support
        assert found[i].objective == pytest.approx(least, rel=1e-10)
        assert found[i].lower_bound <= least
    for one in found:
        assert one.proved or (one.leaves is not None and one.leaves.state.shape[1] == p)


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e100])
def test_any_unit_of_y(scale: float) -> None:
    X, y, gamma = plain(4, 12, 6)
    plain_found = best_subsets(problem_of(Data(X, y, gamma)))
    found = best_subsets(problem_of(Data(X, y * scale, gamma)))
    np.testing.assert_allclose(objectives(found), objectives(plain_found) * scale**2, rtol=1e-10)
    assert np.all(lower_bounds(found) > 0.999 * objectives(found))


@pytest.mark.parametrize("gamma", [1e-6, 0.1])
def test_all_levels_of_a_factor_take_hardly_larger_trees(gamma: float) -> None:
    """A tree drops a level first, and then takes the nodes that it would take without a level."""
    random = np.random.default_rng(5)
    X, level = random.standard_normal((400, 20)), random.integers(0, 4, 400)
    y = X[:, :3].sum(axis=1) + (level == 2) + 3.0 * random.standard_normal(400)
    levels = (level[:, None] == np.arange(4)).astype(float)
    table = np.column_stack([X, levels])
    table -= table.mean(axis=0)
    every, fewer = (
        best_subsets(
            problem_of(Data(columns, y - y.mean(), gamma)), sizes=range(1, columns.shape[1] + 1)
        )
        for columns in (table, table[:, :-1])
    )
    assert proofs(every).all()
    assert every[0].n_nodes <= 2 * fewer[0].n_nodes
    better = objectives(every)[: len(fewer)] <= objectives(fewer) * (1.0 + 1e-9)
    assert better.all()


def test_bounds_hold_for_what_the_factor_of_a_long_table_loses() -> None:
    """QR of a million equal rows loses more than a fit of few rows does."""
    n, slope, gamma = 10**6, 1.0 + 2.0**-50, 1e-6
    x = np.full(n, slope)
    y = 2.0 * x
    y[0] += 0.02
    a, b, first, ridge = map(Fraction, (slope, 2.0 * slope, float(y[0]), gamma))
    square, product = n * a * a, (n - 1) * a * b + a * first
    exact = (n - 1) * b * b + first * first - product**2 / (square + ridge / 2)
    found = solve(SparseRidgeProblem(x[:, None], y, gamma=gamma, tau=1))
    assert Fraction(found.lower_bound) <= exact
