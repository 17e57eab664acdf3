"""A tree's leaves carried over to a neighbouring problem: still a partition, still a proof."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.brute_force import optimum
from support.fresh import examples
from support.problems import ugly_problem

from sparsecv.solvers import SparseRidgeProblem, Status, branch_and_bound
from sparsecv.solvers.branching.certificate import Certificate, certify
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.relaxation.gram import GramForm


def holds(leaf: NDArray[np.int8], support: tuple[int, ...]) -> bool:
    chosen = np.zeros(leaf.size, dtype=bool)
    chosen[list(support)] = True
    return bool(chosen[leaf == 1].all() and not chosen[leaf == 2].any())


def wide(
    seed: int, n: int = 40, p: int = 60, tau: int = 6, noise: float = 2.0
) -> SparseRidgeProblem:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + rng.standard_normal((n, 1))
    y = X[:, :tau].sum(axis=1) + 2.0 * rng.standard_normal(n)
    return SparseRidgeProblem(X, y, gamma=20.0, tau=tau)


def without_row(problem: SparseRidgeProblem, i: int) -> SparseRidgeProblem:
    rows = np.delete(problem._rows, i, axis=0)
    return SparseRidgeProblem(rows[:, :-1], rows[:, -1], gamma=problem.gamma, tau=problem.tau)


@settings(max_examples=examples(100))
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.01, 0.5]), st.sampled_from([0, 1, 5, None])
)
def test_leaves_are_a_partition(seed: int, margin: float, nodes: int | None) -> None:
    problem = ugly_problem(seed, most_columns=9)
    support = branch_and_bound(problem).support
    found = certify(problem, support, margin=margin, limits=Limits(None, nodes))
    assert found is not None
    assert found.tau == problem.tau
    for chosen in itertools.combinations(range(problem.p), problem.tau):
        assert sum(holds(leaf, chosen) for leaf in found.leaves) == 1


def test_leaves_of_a_larger_tree_are_a_partition() -> None:
    problem = wide(0)
    found = certify(problem, branch_and_bound(problem).support, margin=0.05)
    assert found is not None
    assert found.size > 10
    rng = np.random.default_rng(0)
    for _ in range(300):
        chosen = tuple(rng.choice(problem.p, problem.tau, replace=False).tolist())
        assert sum(holds(leaf, chosen) for leaf in found.leaves) == 1


@settings(max_examples=examples(150))
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 4, None]))
def test_any_certificate_of_the_right_shape_is_sound(
    seed: int, other: int, nodes: int | None
) -> None:
    """Even the leaves of an unrelated problem: only the work changes, never the answer."""
    problem = ugly_problem(seed, most_columns=9)
    rng = np.random.default_rng(other)
    stranger = SparseRidgeProblem(
        rng.standard_normal((12, problem.p)), rng.standard_normal(12), gamma=0.5, tau=problem.tau
    )
    given_leaves = certify(stranger, np.arange(problem.tau), margin=0.02)
    assert given_leaves is not None
    found = branch_and_bound(
        problem,
        tol=0.0,
        gram=GramForm.of(problem),
        certificate=given_leaves,
        limits=Limits(None, nodes),
    )
    best = optimum(problem)
    assert found.lower_bound <= best * (1 + 1e-12) + 1e-14 * problem.yy
    assert found.objective >= best * (1 - 1e-9) - 1e-13 * problem.yy
    if nodes is None:
        assert found.objective <= best * (1 + 1e-9) + 1e-9 * problem.yy


@pytest.mark.parametrize("seed", range(4))
def test_neighbours_are_settled_and_right(seed: int) -> None:
    problem = wide(seed)
    whole = branch_and_bound(problem, tol=0.0)
    certificate = certify(problem, whole.support, margin=0.02)
    assert certificate is not None
    settled = 0
    for i in range(12):
        fold = without_row(problem, i)
        alone = branch_and_bound(fold, tol=0.0)
        carried = branch_and_bound(
            fold,
            tol=0.0,
            gram=GramForm.of(fold),
            warm_starts=[whole.support],
            certificate=certificate,
        )
        np.testing.assert_allclose(carried.objective, alone.objective, rtol=1e-9)
        assert carried.status is Status.OPTIMAL
        assert carried.lower_bound <= alone.objective
        settled += carried.work.n_branched == 0
    nearby = branch_and_bound(
        problem.replace(gamma=21.0), gram=GramForm.of(problem), certificate=certificate, tol=0.0
    )
    alone = branch_and_bound(problem.replace(gamma=21.0), tol=0.0)
    np.testing.assert_allclose(nearby.objective, alone.objective, rtol=1e-9)
    assert settled > 0


def test_a_certificate_of_another_shape_is_refused() -> None:
    problem = wide(0)
    certificate = Certificate(5, np.zeros((1, 60), dtype=np.int8), np.zeros((1, 60)), np.zeros(1))
    with pytest.raises(ValueError, match="the certificate is of τ = 5 and 60 columns"):
        branch_and_bound(problem, gram=GramForm.of(problem), certificate=certificate)


def test_too_large_a_tree_is_not_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsecv.solvers.branching.certificate.MOST_LEAVES", 3)
    problem = wide(0)
    assert certify(problem, branch_and_bound(problem).support, margin=0.3) is None
