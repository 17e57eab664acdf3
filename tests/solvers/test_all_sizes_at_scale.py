"""The all-sizes tree on more columns, masks of several words, far-off units."""

from itertools import combinations

import numpy as np
import pytest
from support.brute_force import Data, Support, rounding
from support.problems import keeps_digits, plain, problem_of
from support.trees import exact_of, key

from sparsecv.solvers import Status, best_subsets
from sparsecv.solvers.core.limits import Limits


@pytest.mark.parametrize(
    ("p", "n", "gamma", "noise"),
    [(16, 12, 0.1, 1.0), (18, 200, 1e-6, 4.0), (22, 60, 1e4, 1.0), (26, 300, 1.0, 2.0)],
)
def test_one_search_equals_one_search_per_size(p: int, n: int, gamma: float, noise: float) -> None:
    data = plain(p, n, p, gamma, noise)
    problem = problem_of(data)
    found = best_subsets(problem)
    assert found.status is Status.OPTIMAL
    assert np.all(np.diff(found.objective) <= 1e-12 * found.objective[0])
    assert np.all(found.lower_bound <= found.objective)
    for i, s in enumerate(found.sizes):
        alone = best_subsets(problem, sizes=[s])
        assert alone.objective[0] == pytest.approx(found.objective[i], rel=1e-12)
        assert key(alone.supports[0]) == key(found.supports[i])
    order = np.random.default_rng(p).permutation(p)
    other = best_subsets(problem_of(Data(data.X[:, order], data.y, gamma)))
    np.testing.assert_allclose(other.objective, found.objective, rtol=1e-11)
    assert [key(sorted(order[s])) for s in other.supports] == [key(s) for s in found.supports]


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
    assert key(found.supports[2]) == tuple(planted)
    for i, s in enumerate([1, 2, 3] if p < 100 else [1, 2]):
        least, support = least_by_normal_equations(data, s)
        assert key(found.supports[i]) == support
        assert found.objective[i] == pytest.approx(least, rel=1e-10)
        assert found.lower_bound[i] <= least
    if found.status is not Status.OPTIMAL:
        members = [set(node.members.tolist()) for node in found.open_nodes]
        assert all(m <= set(range(p)) for m in members)


@pytest.mark.parametrize("gamma", [1e-20, 1e-12, 1e12, 1e30, 1e100])
@pytest.mark.parametrize("shape", ["tall", "wide", "equal columns"])
def test_gamma_far_off_the_data(gamma: float, shape: str) -> None:
    X, y, _ = plain(4, 12, 6)
    X, y = (X[:4], y[:4]) if shape == "wide" else (X, y)
    if shape == "equal columns":
        X[:, 5] = X[:, 0]
    found = best_subsets(problem_of(Data(X, y, gamma)))
    assert found.status is Status.OPTIMAL or not keeps_digits(Data(X, y, gamma))
    assert np.all(np.isfinite(found.objective))
    assert np.all(found.lower_bound <= found.objective)
    exact = exact_of(Data(X, y, gamma))
    for i, s in enumerate(found.sizes):
        own = float(exact[s][key(found.supports[i])])
        assert own <= float(min(exact[s].values())) + rounding(own, float(y @ y))


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e100])
def test_any_unit_of_y(scale: float) -> None:
    X, y, gamma = plain(4, 12, 6)
    plain_found = best_subsets(problem_of(Data(X, y, gamma)))
    found = best_subsets(problem_of(Data(X, y * scale, gamma)))
    np.testing.assert_allclose(found.objective, plain_found.objective * scale**2, rtol=1e-10)
    assert np.all(found.lower_bound > 0.999 * found.objective)
