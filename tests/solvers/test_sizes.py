"""Trees that would visit nearly every support: sizes are branched on alone instead."""

import numpy as np
import pytest
from numpy.typing import NDArray

from sparsecv.solvers import (
    SparseRidgeProblem,
    Status,
    best_subsets,
    solve,
    solve_sizes,
    support_path,
)
from sparsecv.solvers.branching import size_sweep
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.core.plan import ALONE, FIRST_NODES, LEAPS, Way


def alike(n: int = 40, p: int = 20) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Columns of which every one is worth nearly the same where γ is large."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) + 3.0 * rng.standard_normal((n, 1))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, :4].sum(axis=1) + rng.standard_normal(n)
    return X, y - y.mean()


@pytest.mark.parametrize("gamma", [100.0, 1e4])
def test_sizes_alone_are_those_of_the_tree(gamma: float) -> None:
    X, y = alike()
    problem = SparseRidgeProblem(X, y, gamma=gamma, tau=20)
    tree = best_subsets(problem)
    assert tree.n_nodes > 2 * FIRST_NODES
    found = solve_sizes(problem)
    assert found.status is Status.OPTIMAL
    assert found.proved.all()
    assert found.n_nodes < tree.n_nodes / 2
    np.testing.assert_allclose(found.objective, tree.objective, rtol=1e-12)
    assert np.all(found.lower_bound <= tree.objective)
    path = support_path(problem, [1.0, gamma], np.arange(1, 21))
    assert path.proved.all()
    for support, objective in zip(path.at(1), tree.objective, strict=True):
        assert problem.objective(support) == pytest.approx(objective, rel=1e-12)
    one = solve(problem.replace(tau=9))
    assert one.status is Status.OPTIMAL
    assert one.objective == pytest.approx(tree.objective[8], rel=1e-9)


def test_sizes_that_branching_does_not_settle_go_back_to_the_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways = (Way(LEAPS, nodes=500), Way(ALONE, nodes=1), Way(LEAPS))
    monkeypatch.setattr(size_sweep, "ways", lambda *_: ways)
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((22, 18)), rng.standard_normal(22)
    problem = SparseRidgeProblem(X, y, gamma=1e-3, tau=18)
    tree, found = best_subsets(problem), solve_sizes(problem)
    assert found.proved.all()
    assert found.status is Status.OPTIMAL
    np.testing.assert_allclose(found.objective, tree.objective, rtol=1e-10)
    assert np.all(found.lower_bound <= found.objective)
    assert found.n_nodes > tree.n_nodes


@pytest.mark.slow
def test_time_that_easy_sizes_leave_goes_to_the_others() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 80)) + rng.standard_normal((1000, 1))
    y = X[:, ::8].sum(axis=1) + 20.0 * rng.standard_normal(1000)
    problem = SparseRidgeProblem(X - X.mean(axis=0), y - y.mean(), gamma=1.0, tau=1)
    solve_sizes(problem, sizes=[1, 2], limits=Limits(time_limit=0.5))  # compiles
    seconds = 8.0
    found = solve_sizes(problem, sizes=np.arange(1, 31), limits=Limits(time_limit=seconds))
    assert found.proved.all() or found.seconds >= 0.9 * seconds
    assert found.seconds <= seconds + 30.0
    assert np.all(found.lower_bound <= found.objective)
