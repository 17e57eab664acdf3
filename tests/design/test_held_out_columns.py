"""Held-out rows of which only the columns that models have are made."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from support.inside import (
    Protocol,
    RowFolds,
    RowTable,
    Summary,
    SupportPath,
    make_design,
    make_folds,
)

Array = NDArray[np.float64]
# Wide folds of more than a megabyte, and folds whose rows are kept whole: rows and columns.
SHAPES = [(180, 2200), (60, 30), (90, 8)]


def folds_of(
    X: Array, y: Array, intercept: bool, weights: Array | None, missing: str | None
) -> RowFolds:
    """Three folds of rows that a design has scaled."""
    filled = np.where(np.isnan(X), 0.0, X)
    protocol = Protocol("honest", "unit-variance", intercept=intercept)
    design = make_design(Summary.of(filled, y), protocol, [f"x{j}" for j in range(X.shape[1])])
    return RowFolds(RowTable.of(design, X, y, weights, missing), make_folds(3, y.size, seed=1))


@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("missing", ["mean", None])
def test_errors_are_those_of_whole_rows(
    n: int, p: int, intercept: bool, weighted: bool, missing: str | None
) -> None:
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, p)) * rng.uniform(0.1, 10.0, p) + 100.0
    y = X[:, 1] - X[:, 4] + rng.standard_normal(n)
    if missing is not None:
        X[rng.random((n, p)) < 0.02] = np.nan
    weights = rng.integers(0, 3, n).astype(np.float64) if weighted else None
    data = folds_of(X, y, intercept, weights, missing)
    supports = np.full((2, 3, 3), -1, dtype=np.int64)
    supports[0, 0, :1], supports[0, 1, :2], supports[0, 2] = 4, (1, 4), (0, 1, 6)
    supports[1, 0, :1], supports[1, 1, :2], supports[1, 2] = 1, (4, p - 1), (1, 4, p - 1)
    for j in range(3):
        path = SupportPath.of(data.training(j), [0.5, 20.0], np.array([1, 2, 3]), supports)
        np.testing.assert_array_equal(path.used, [0, 1, 4, 6, p - 1])
        whole = path.squared_errors(*data.held_out(j))
        alone = path.squared_errors(*data.held_out(j, path.used), path.used)
        np.testing.assert_allclose(alone, whole, rtol=1e-9)
        more = np.arange(0, p)[np.isin(np.arange(p), path.used) | (np.arange(p) % 7 == 0)]
        wider = path.squared_errors(*data.held_out(j, more), more)
        np.testing.assert_allclose(wider, whole, rtol=1e-9)


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_what_was_asked_for_before_moves_no_bit(n: int, p: int) -> None:
    rng = np.random.default_rng(p)
    X, y = rng.standard_normal((n, p)) + 3.0, rng.standard_normal(n)
    data, again = (folds_of(X, y, True, None, None) for _ in range(2))
    columns = np.array([0, 3, p - 2])
    first = data.held_out(1, columns)
    again.held_out(1)
    again.held_out(1, np.array([1, 2]))
    for one, other in zip(first, again.held_out(1, columns), strict=True):
        np.testing.assert_array_equal(one, other)
    none, targets = data.held_out(1, np.array([], dtype=np.intp))
    assert none.shape == (len(targets), 0)
    assert targets @ targets == pytest.approx(data.held_out(1)[1] @ data.held_out(1)[1])
