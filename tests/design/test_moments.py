"""Folds known by their moments give the CV errors of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from support.folds import assert_within, brute_force, standardised
from support.problems import regression

from sparsecv.cv.engine import cross_validate
from sparsecv.design import prepare as pipeline
from sparsecv.design.design import Protocol, Summary, make_design
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import Folds, make_folds
from sparsecv.design.moment_folds import MomentFolds
from sparsecv.design.moments import FoldMoments
from sparsecv.errors import ConstantColumnWarning, InputError
from sparsecv.tables.dask_table import DaskTable

Array = NDArray[np.float64]
PROTOCOLS = [
    Protocol("honest", "unit-variance"),
    Protocol("honest", "unit-norm"),
    Protocol("honest", "none"),
    Protocol("honest", "unit-variance", intercept=False),
    Protocol("paper", "unit-variance"),
    Protocol("paper", "unit-norm"),
]


def table(n: int = 60, p: int = 5, seed: int = 0) -> tuple[Array, Array]:
    return regression(n, p, {0: 1.0, 2: -1.0}, seed=seed, shared=1.0)


def both(X: Array, y: Array, folds: Folds, protocol: Protocol) -> tuple[RowFolds, MomentFolds]:
    names = [f"x{j}" for j in range(X.shape[1])]
    design = make_design(Summary.of(X, y), protocol, names)
    rows = RowFolds(*design.apply(X, y), folds, protocol.refit_intercept)
    assert folds.label is not None
    moments = FoldMoments.of(np.column_stack([X, y]), folds.label, folds.k)
    streamed = make_design(moments.summary(), protocol, names)
    np.testing.assert_array_equal(streamed.kept, design.kept)
    np.testing.assert_allclose(streamed.scale, design.scale, rtol=1e-9)
    return rows, MomentFolds([moments], streamed)


def assert_same_cv(
    X: Array, y: Array, protocol: Protocol, folds: Folds, rtol: float = 1e-8
) -> None:
    rows, moments = both(X, y, folds, protocol)
    gammas, taus = [1e-2, 1.0, 1e3], np.arange(1, rows.p + 1)
    expected = cross_validate(rows, gammas, taus)
    found = cross_validate(moments, gammas, taus)
    np.testing.assert_allclose(found.table("cv_error"), expected.table("cv_error"), rtol=rtol)
    np.testing.assert_allclose(
        found.table("std_error"), expected.table("std_error"), rtol=100 * rtol, atol=rtol
    )
    # Beyond some 1e-7 the digits that an offset leaves a fit of are too few for a proof.
    assert found.complete or rtol > 1e-7


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_equal_to_rows(protocol: Protocol) -> None:
    """Also in large and small units, with means of a million, and with more columns than rows."""
    X, y = table()
    folds = make_folds(4, len(y), seed=0)
    assert_same_cv(X, y, protocol, folds)
    wide, short = table(n=9, p=12)
    assert_same_cv(wide, short, protocol, make_folds(3, 9, seed=0))
    for factor in (1e-6, 1e6):
        assert_same_cv(X, factor * y, protocol, folds)
    if protocol.intercept:
        assert_same_cv(X * [1.0, 1e-4, 1e4, 1.0, 10.0], y, protocol, folds)
        assert_same_cv(X + 1e6, y - 1e6, protocol, folds)


@pytest.mark.filterwarnings("ignore::sparsecv.errors.ConstantColumnWarning")
def test_constant_and_duplicate_columns() -> None:
    X, y = table(n=20)
    X[:, 1] = 7.0
    X[:, 3] = X[:, 2]
    folds = make_folds(4, 20, seed=0)
    # a column constant in one training set only: its coefficient there is zero
    X[:, 4] = 0.0
    X[folds.split(2)[1], 4] = [1.0, 2.0, 1.0, -1.0, 3.0]
    for protocol in PROTOCOLS:
        rows, moments = both(X, y, folds, protocol)
        A, b, kept = standardised(
            X, y, protocol=protocol.name, scale=protocol.scale, intercept=protocol.intercept
        )
        assert kept.tolist() == ([0, 2, 3, 4] if protocol.intercept else [0, 1, 2, 3, 4])
        assert rows.p == moments.p == kept.size
        gammas, taus = [1e-3, 1.0], [1, 2, 3, 4]
        pairs = [folds.split(j) for j in range(4)]
        truth = brute_force(A, b, pairs, gammas, taus, protocol.refit_intercept)
        for data in (rows, moments):
            found = cross_validate(data, gammas, taus)
            assert_within(found.table("cv_error"), truth, 1e-8, what=protocol.name)


# ------------------------------------------------------------------------------ far from zero


@pytest.mark.parametrize("scale", ["unit-variance", "none"])
@pytest.mark.parametrize("offset", [1e5, 1e7, 1e8])
def test_offsets_without_an_intercept(offset: float, scale: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) + offset
    y = X[:, 0] - X[:, 2] + 0.4 * rng.standard_normal(60)
    protocol = Protocol("honest", scale, intercept=False)
    # rows in memory lose as many digits: predictions are sums of terms of the offset's size
    assert_same_cv(X, y, protocol, make_folds(4, 60, seed=0), rtol=1e-10 + 4e-15 * offset)


def test_offsets_that_take_every_digit_are_refused() -> None:
    da = pytest.importorskip("dask.array")
    X, y = table()
    X[:, 3] = 1e8 + 1e-2 * X[:, 3]
    X[:, 4] = 1e12  # a level: its coefficient alone is at stake
    lazy = DaskTable(da.from_array(X, chunks=(20, 5)), da.from_array(y, chunks=20))
    with pytest.raises(InputError, match=r"column 'x3' has a mean of 1e\+08 beside"):
        pipeline.prepare(lazy, "4", Protocol(intercept=False))
    with pytest.warns(ConstantColumnWarning, match="'x4'"):
        pipeline.prepare(lazy, "4", Protocol())


@pytest.mark.parametrize("intercept", [True, False])
def test_training_is_a_function_of_the_rows_it_trains_on(intercept: bool) -> None:
    X, y = table()
    folds = make_folds(4, y.size, seed=0)
    protocol = Protocol("honest", "none", intercept)
    _, held = folds.split(2)
    _, before = both(X, y, folds, protocol)
    for size in (1e-3, 1.0, 1e12, 1e15):
        noise = np.random.default_rng(1)
        X[held] = size * noise.standard_normal((held.size, 5))
        y[held] = size * noise.standard_normal(held.size)
        _, after = both(X, y, folds, protocol)
        for name in ("G", "b", "yy"):
            one, two = (getattr(data.training(2), name) for data in (before, after))
            np.testing.assert_array_equal(one, two)


def test_a_column_of_one_value_in_training_is_exactly_zero() -> None:
    X, y = table()
    folds = make_folds(4, y.size, seed=0)
    train, _ = folds.split(1)
    X[train, 3] = 0.1 + 1e8  # no binary fraction: its mean is rounded
    rows, moments = both(X, y, folds, Protocol("honest", "none"))
    for data in (rows, moments):
        problem = data.training(1)
        assert not problem.G[3].any()
        assert problem.b[3] == 0.0
    # a last digit that differs is no constant
    X[train[7], 3] = np.nextafter(X[train[7], 3], np.inf)
    rows, moments = both(X, y, folds, Protocol("honest", "none"))
    expected = (X[train, 3] - X[train[0], 3]).sum() ** 2 * (1.0 - 1.0 / train.size)
    np.testing.assert_allclose(moments.training(1).G[3, 3], expected, rtol=1e-9)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_equal_columns_are_equal_in_every_bit(protocol: Protocol) -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(30, 200)), int(rng.integers(4, 30))
        X = rng.standard_normal((n, p)) + 10.0 * rng.standard_normal(p)
        a, b = np.sort(rng.choice(p, 2, replace=False))
        X[:, b] = X[:, a]
        y = X[:, a] + rng.standard_normal(n)
        _, moments = both(X, y, make_folds(4, n, seed=0), protocol)
        scatter = moments._moments.total().scatter
        np.testing.assert_array_equal(scatter[a], scatter[b])
        for problem in (moments.full(), moments.training(1)):
            np.testing.assert_array_equal(problem.triangle[:, a], problem.triangle[:, b])
