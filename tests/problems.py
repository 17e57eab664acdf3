"""Small training problems, many of them ugly, and their optimum by enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv.solvers import SparseRidgeProblem
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.supports.path import SupportGrower

Support = NDArray[np.intp]


def grown(
    problem: SparseRidgeProblem, sizes: Iterable[int], starts: Sequence[Support] = ()
) -> dict[int, Support]:
    """Good supports of several sizes at the problem's γ."""
    return SupportGrower(problem, sizes, starts).at(problem.gamma, starts, Limits())


def optimum(problem: SparseRidgeProblem) -> float:
    return min(problem.objective(S) for S in itertools.combinations(range(problem.p), problem.tau))


def ugly_problem(seed: int, most_columns: int = 10) -> SparseRidgeProblem:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 25)), int(rng.integers(2, most_columns + 1))
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    kind = int(rng.integers(6))
    if kind == 1:
        X = X @ (np.eye(p) + rng.normal(size=(p, p)))
    elif kind == 2 and p > 2:
        X[:, 1], X[:, 2] = X[:, 0], -X[:, 0]
    elif kind == 3:
        X = rng.integers(-2, 3, size=(n, p)).astype(float)
        y = rng.integers(-3, 4, size=n).astype(float)
    elif kind == 4 and p > 2:
        X[:, 1], X[:, 2] = X[:, 0] + 1e-6 * rng.normal(size=n), 0.0
    elif kind == 5:
        X = X * 10.0 ** rng.uniform(-3, 3, size=p)
    gamma = 10.0 ** rng.uniform(-6, 5)
    return SparseRidgeProblem(X, y, gamma=gamma, tau=int(rng.integers(1, p + 1)))
