"""Refits without one row, and the checks of a result of the tree for all deleted rows."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from sparsecv.solvers import Status, best_subsets_rows_deleted

from .brute_force import EPS, Data, Support, exact_objectives, exact_sizes, ridge
from .inside import DeletedRowSubsets
from .problems import problem_of
from .trees import key

Exact = list[dict[int, dict[Support, Fraction]]]


def solve(data: Data, **options: Any) -> tuple[DeletedRowSubsets, Status, Any]:
    return best_subsets_rows_deleted(problem_of(data), data.X, data.y, **options)


def without(data: Data, i: int) -> Data:
    return Data(np.delete(data.X, i, axis=0), np.delete(data.y, i), data.gamma)


def exact_of(data: Data) -> Exact:
    """Objectives without each row."""
    return [
        exact_sizes(exact_objectives(data, (data.X[i], float(data.y[i]))))
        for i in range(data.y.size)
    ]


def chosen(found: DeletedRowSubsets, s: int, i: int) -> Support:
    return key(found.supports[found.choice[s, i]])


def residual_of(data: Data, i: int, support: Support) -> float:
    """Deleted residual of row i by an explicit refit."""
    columns = list(support)
    rest = without(data, i)
    beta = ridge(rest.X[:, columns], rest.y, data.gamma)
    return float(data.y[i] - data.X[i, columns] @ beta)


def condition(data: Data) -> float:
    """Square root of the largest variance inflation factor."""
    X, gamma = data.X, problem_of(data).gamma
    p = X.shape[1]
    R = np.linalg.qr(np.vstack([X, math.sqrt(gamma / 2.0) * np.eye(p)]), mode="r")
    inverse = np.linalg.inv(R)
    return float(np.sqrt((np.square(inverse).sum(axis=1) * np.square(R).sum(axis=0)).max()))


def rounding(data: Data, objective: float, residual: float) -> float:
    """Rounding allowed in f − r²/(1 − h): a difference loses some ulp of what is subtracted."""
    size = math.sqrt(objective) + abs(residual)
    total = math.sqrt(float(data.y @ data.y))
    added = problem_of(data).data_loss(objective)  # by the tiny γ that searches have for γ = 0
    return added + 1e-9 * objective + 64.0 * EPS * condition(data) * size * (total + abs(residual))


def check(data: Data, found: DeletedRowSubsets, status: Status, exact: Exact) -> None:
    """Shapes, skipped rows, objectives; optimality once the search is done."""
    n, p = data.X.shape
    k = found.sizes.size
    skipped = np.isin(np.arange(n), found.skipped)
    for array in (found.objective, found.residual, found.low, found.high):
        assert array.shape == (k, n)
        assert np.isnan(array[:, skipped]).all()
        assert np.isfinite(array[:, ~skipped]).all()
    assert np.all((found.low <= found.residual) | np.isnan(found.residual))
    assert np.all((found.residual <= found.high) | np.isnan(found.residual))
    for i in np.flatnonzero(~skipped):
        for a, s in enumerate(found.sizes):
            support = chosen(found, a, int(i))
            assert len(support) == s
            assert list(support) == sorted(set(support))
            assert support[-1] < p
            values = exact[i][s]
            least, own = min(values.values()), float(values[support])
            slack = rounding(data, max(own, 0.0), float(found.residual[a, i]))
            assert abs(found.objective[a, i] - own) <= slack
            if status is Status.OPTIMAL:
                assert own - float(least) <= slack
