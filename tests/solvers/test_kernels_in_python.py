"""Every kernel on problems so small that it can also run as plain Python.

With ``NUMBA_DISABLE_JIT=1`` the same tests show which lines of the kernels they reach (.ci/run),
and that an index out of range, which compiled code does not notice, is an error there.
"""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from sparsecv.solvers import (
    SparseRidgeProblem,
    best_by_enumeration,
    best_subsets,
    best_subsets_rows_deleted,
    branch_and_bound,
    heuristic_path,
    heuristic_support,
    perspective_relaxation,
    support_path,
)

Array = NDArray[np.float64]
KINDS = ("plain", "collinear", "wide", "ties", "one column")


def rows(kind: str, n: int = 12, p: int = 6) -> tuple[Array, Array]:
    """A small table of a kind that is hard on rounding."""
    random = np.random.default_rng(KINDS.index(kind))
    if kind == "wide":
        n = 4
    X = random.standard_normal((n, p))
    y = X[:, 0] - X[:, 2] + 0.5 * random.standard_normal(n)
    if kind == "collinear":
        X[:, 3] = X[:, 0] + 1e-7 * random.standard_normal(n)
        X[:, 4] = X[:, 1]
    elif kind == "ties":
        X = np.kron(np.eye(p), np.ones((2, 1)))
        y = X.sum(axis=1)
    elif kind == "one column":
        y = 3.0 * X[:, 1] + 1e-9 * random.standard_normal(n)
    return X, y


def problem(kind: str, gamma: float, tau: int = 3) -> SparseRidgeProblem:
    return SparseRidgeProblem(*rows(kind), gamma=gamma, tau=tau)


def least(given: SparseRidgeProblem, size: int) -> float:
    every = combinations(range(given.p), size)
    return min(given.objective(np.array(s, dtype=np.intp)) for s in every)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_trees(kind: str, gamma: float) -> None:
    given = problem(kind, gamma)
    expected = [least(given, size) for size in range(1, given.p + 1)]
    sizes = np.arange(1, given.p + 1)
    slack = 1e-9 * given.yy
    found = best_subsets(given, sizes=sizes)
    np.testing.assert_allclose(found.objective, expected, rtol=1e-8, atol=slack)
    assert (found.lower_bound <= np.array(expected) + 1e-14 * given.yy).all()
    loose = best_subsets(given, sizes=sizes, tol=0.3)
    assert (loose.lower_bound <= np.array(expected) + 1e-14 * given.yy).all()
    path = support_path(given, [gamma, 2.0 * gamma], sizes)
    np.testing.assert_allclose(path.objective[0], expected, rtol=1e-8, atol=slack)
    errors = path.squared_errors(*rows(kind))
    predicted = path.predict(rows(kind)[0])
    np.testing.assert_allclose(errors, ((rows(kind)[1] - predicted) ** 2).sum(-1), atol=1e-9)


@pytest.mark.parametrize("kind", ["plain", "collinear", "ties"])
def test_deleted_rows(kind: str) -> None:
    X, y = rows(kind)
    given = SparseRidgeProblem(X, y, gamma=1.0, tau=3)
    found = best_subsets_rows_deleted(given, X, y, sizes=[1, 2, 3])
    for i in range(0, y.size, 4):
        alone = SparseRidgeProblem(np.delete(X, i, 0), np.delete(y, i), gamma=1.0, tau=3)
        for t, size in enumerate((1, 2, 3)):
            expected = least(alone, size)
            assert found.objective[t, i] == pytest.approx(expected, rel=1e-8)
            assert found.lower_bound[t, i] <= expected * (1.0 + 1e-12)


def test_a_full_list_of_ties_keeps_the_first() -> None:
    p = 12  # every support of a size is as good: more than the lists hold
    given = SparseRidgeProblem(np.eye(p), np.ones(p), gamma=1.0, tau=4)
    found = best_subsets(given, sizes=[2, 3])
    assert [s.tolist() for s in found.supports] == [[0, 1], [0, 1, 2]]
    shared = best_subsets_rows_deleted(given, np.zeros((2, p)), np.zeros(2), sizes=[2])
    assert shared.supports[shared.choice[0, 0]].tolist() == [0, 1]


@pytest.mark.parametrize("kind", ["plain", "wide", "one column"])
def test_enumeration(kind: str) -> None:
    given = problem(kind, 1.0)
    for size, support in enumerate(best_by_enumeration(given, np.arange(1, 6)), start=1):
        assert given.objective(support) == pytest.approx(least(given, size), rel=1e-9)


@pytest.mark.parametrize("kind", ["plain", "collinear"])
def test_heuristics(kind: str) -> None:
    given = problem(kind, 0.5)
    best = least(given, 3)
    start = np.array([1, 4, 5])
    assert given.objective(heuristic_support(given, warm_starts=[start])) >= best * (1 - 1e-12)
    by_size = heuristic_path(given, [1, 2, 3], warm_starts=[start])
    assert sorted(by_size) == [1, 2, 3]
    assert given.objective(by_size[3]) >= best * (1 - 1e-12)
    assert given.objective(by_size[1]) == pytest.approx(least(given, 1), rel=1e-9)


@pytest.mark.parametrize("kind", ["plain", "collinear", "wide"])
@pytest.mark.parametrize("gamma", [0.01, 10.0])
def test_relaxation_and_branching(kind: str, gamma: float) -> None:
    given = problem(kind, gamma)
    best = least(given, 3)
    assert perspective_relaxation(given).bound <= best * (1.0 + 1e-12)
    solved = branch_and_bound(given)
    assert solved.objective == pytest.approx(best, rel=1e-8)
    assert solved.lower_bound <= best * (1.0 + 1e-12)
