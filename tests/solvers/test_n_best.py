"""The n best supports of every size equal those of enumeration, ties among them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from support.answers import objectives, proofs
from support.brute_force import Data, Size, enumerate_all
from support.inside import Limits, Rows, UnitConstraints, n_best_subsets

from sparsecv import Constraints
from sparsecv.solvers import Answer, SparseRidgeProblem
from sparsecv.solvers.leaps.records import pruned_up_to


def check_bounds(found: list[Answer], every: Size) -> None:
    """The bound of an answer holds for all supports but those before it."""
    left = dict(zip(every.supports, every.objective.tolist(), strict=True))
    for one in found:
        assert one.lower_bound <= min(left.values()) * (1.0 + 1e-12) + 1e-12
        del left[tuple(one.support.tolist())]


def test_tied_supports_come_in_lexicographic_order() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 1))
    problem = SparseRidgeProblem(np.repeat(x, 6, axis=1), x[:, 0], gamma=1.0, tau=1)
    for size, found in enumerate(n_best_subsets(problem, [1, 2, 3], 4), start=1):
        expected = list(combinations(range(6), size))[:4]
        assert [tuple(one.support.tolist()) for one in found] == expected


@pytest.mark.parametrize("constrained", [False, True])
def test_ties_with_the_worst_displace_no_better_support(constrained: bool) -> None:
    """Of 120 supports 36 tie as the best, and contain the last column; the others tie, too."""
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((2, 30))
    X = np.column_stack([np.repeat(x[:, None], 9, axis=1), z])
    y = 3.0 * z + 0.5 * x + 0.1 * rng.standard_normal(30)
    rules = UnitConstraints.of(10, bounds=(-9.0, 9.0)) if constrained else None
    problem = SparseRidgeProblem.from_rows(Rows(np.column_stack([X, y])), constraints=rules)
    problem = problem.replace(gamma=1.0)
    truth = sorted(problem.objective(np.array(s)) for s in combinations(range(10), 3))
    for n in (10, 40, 110):
        found = n_best_subsets(problem, [3], n)[0]
        np.testing.assert_allclose(objectives(found), truth[:n], rtol=1e-8)
        assert len({tuple(one.support) for one in found}) == n


def test_what_a_limit_leaves_is_not_called_proved() -> None:
    """Every rank that is called proved is right, however early the search ends."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 12))
    y = X @ rng.standard_normal(12) + 3.0 * rng.standard_normal(40)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    every = enumerate_all(Data(X, y, 1.0))
    counts = []
    for nodes in (1, 20, 100, 500, 10**6):
        ranked = n_best_subsets(problem, range(1, 13), 5, limits=Limits(None, nodes))
        for size, found in enumerate(ranked, start=1):
            truth, proved = np.sort(every[size].objective)[: len(found)], proofs(found)
            assert (np.diff(proved.astype(int)) <= 0).all()
            np.testing.assert_allclose(objectives(found)[proved], truth[proved], rtol=1e-9)
            check_bounds(found, every[size])
        counts.append(sum(int(proofs(found).sum()) for found in ranked))
    assert counts == sorted(counts)
    assert counts[0] < counts[-1] == sum(min(5, every[s].objective.size) for s in range(1, 13))


def test_many_columns_are_ranked_without_a_proof() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 200))
    problem = SparseRidgeProblem(X, X[:, 0] - X[:, 1], gamma=1.0, tau=1)
    known = [np.array([0, 1]), np.array([0, 5]), np.array([7])]
    one, two = n_best_subsets(problem, [1, 2], 3, known=known)
    assert [found.support.tolist() for found in two] == [[0, 1], [0, 5]]
    assert [found.support.tolist() for found in one] == [[7]]
    assert not proofs([*one, *two]).any()


def test_supersets_bound_the_rank_where_a_node_is_pruned() -> None:
    """The combinatorial claim, for every family of subsets of few columns."""
    for p in range(1, 6):
        for s in range(1, p):
            subsets = list(combinations(range(p), s))
            larger = {c: set(c) for c in combinations(range(p), s + 1)}
            for mask in range(1, 2 ** len(subsets)):
                family = [set(c) for i, c in enumerate(subsets) if mask >> i & 1]
                above = sum(any(f <= c for f in family) for c in larger.values())
                if s + 2 <= pruned_up_to(p, len(family)):
                    assert above >= len(family), (p, s, family)
            if len(subsets) > 10:
                break
    assert [pruned_up_to(10, n) for n in (1, 2, 3, 4, 10, 11)] == [11, 10, 10, 9, 9, 8]


def test_under_constraints_a_limit_leaves_only_what_is_right() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 20))
    y = X @ rng.standard_normal(20) + 3.0 * rng.standard_normal(40)
    labels = [j // 2 for j in range(20)]
    problem = SparseRidgeProblem(
        X, y, gamma=1.0, tau=3, constraints=Constraints(groups=labels, positive=[0, 5])
    )
    (every,) = n_best_subsets(problem, [3], 6)
    assert proofs(every).all()
    assert len(every) == 6
    for nodes in (1, 5, 20, 60):
        (found,) = n_best_subsets(problem, [3], 6, limits=Limits(None, nodes))
        proved = proofs(found)
        known = objectives(every)[: len(found)]
        np.testing.assert_allclose(objectives(found)[proved], known[proved], rtol=1e-9)


def test_a_bound_holds_of_supports_that_are_better_by_less_than_a_tree_looks_for() -> None:
    """Coefficients of at most 8e-10 are all that tells the second best support from others."""
    x = np.array([-0.18, -0.1, 0.33, -0.67, -0.07, 1.39, -0.34, 0.38, -0.27, -0.21])
    z = np.array([0.07, 0.05, 0.74, -0.55, -0.28, -0.63, -0.3, -0.92, -0.36, 0.54])
    y = np.array([-0.13, -0.07, 0.52, -0.76, -0.15, 0.97, -0.39, 0.02, -0.35, 0.0])
    X, high = np.column_stack([x, -x, z, x]), [np.inf, 4e-10, 8e-10, 4e-10]
    bounds = {j: (0.0, high[j]) for j in range(4)}
    problem = SparseRidgeProblem(X, y, gamma=1e-4, tau=1, constraints=Constraints(bounds=bounds))
    left = {}
    for j in range(4):
        b, square = float(X[:, j] @ y), float(X[:, j] @ X[:, j]) + 0.5e-4
        beta = min(max(b / square, 0.0), high[j])
        left[j] = float(y @ y) - 2.0 * b * beta + square * beta * beta
    for one in n_best_subsets(problem, [1], 2)[0]:
        assert one.lower_bound <= min(left.values()) * (1.0 + 1e-13)
        del left[int(one.support[0])]
