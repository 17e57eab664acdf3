"""Folds known by their moments give the CV errors of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from support.folds import assert_within, brute_force, standardised
from support.inside import (
    DaskTable,
    FoldMoments,
    Folds,
    MomentFolds,
    Moments,
    Protocol,
    RowFolds,
    RowMoments,
    RowTable,
    Summary,
    cross_validate,
    make_design,
    make_folds,
    prepare,
)
from support.problems import regression

from sparsecv.errors import ConstantColumnWarning, InputError

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
    rows = RowFolds(RowTable(*design.apply(X, y), protocol.refit_intercept), folds)
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
    # Beyond some 1e-8, from an offset of a million on, rounding may move held-out errors by more
    # than a millionth, which is too much for a proof.
    assert found.complete or rtol > 1e-8


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
        prepare(lazy, "4", Protocol(intercept=False))
    with pytest.warns(ConstantColumnWarning, match="'x4'"):
        prepare(lazy, "4", Protocol())


@pytest.mark.parametrize("intercept", [True, False])
def test_training_is_a_function_of_the_rows_it_trains_on(intercept: bool) -> None:
    X, y = table()
    folds = make_folds(4, y.size, seed=0)
    protocol = Protocol("honest", "none", intercept)
    _, held = folds.split(2)
    _, before = both(X, y, folds, protocol)
    in_memory = RowFolds(RowTable(X.copy(), y.copy(), intercept), folds).training(2)
    assert len(in_memory.rows) == 6  # Also rows in memory are reduced to a triangle.
    for size in (1e-3, 1.0, 1e12, 1e15):
        noise = np.random.default_rng(1)
        X[held] = size * noise.standard_normal((held.size, 5))
        y[held] = size * noise.standard_normal(held.size)
        _, after = both(X, y, folds, protocol)
        np.testing.assert_array_equal(after.training(2).rows, before.training(2).rows)
        same = RowFolds(RowTable(X, y, intercept), folds).training(2)
        np.testing.assert_array_equal(same.rows, in_memory.rows)


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
        for problem in (moments.full(), moments.training(1)):
            np.testing.assert_array_equal(problem.triangle[:, a], problem.triangle[:, b])


# ------------------------------------------------------------------------------ blocks of rows


def assert_moments(found: Moments, rows: Array, weights: Array) -> None:
    """The moments are those of rows, in long doubles, up to what ``height`` says of rounding."""
    wide, w = rows.astype(np.longdouble), weights.astype(np.longdouble)
    origin = wide[0]
    mean = (w @ (wide - origin)) / w.sum()
    centred = np.sqrt(w)[:, None] * ((wide - origin) - mean)
    scatter = centred.T @ centred
    spread = np.sqrt(np.diag(scatter)).astype(np.float64)
    spread[spread == 0.0] = 1.0
    assert found.n == len(rows)
    np.testing.assert_allclose(found.weight, weights.sum(), rtol=1e-14)
    off = np.abs(found.triangle.T @ found.triangle - scatter) / np.outer(spread, spread)
    assert float(off.max()) <= 2.0 * found.height * np.finfo(np.float64).eps
    off = np.abs((found.mean - origin) + found.tail - mean)
    assert float((off / (spread / np.sqrt(found.weight))).max()) < 1e-12
    assert not np.tril(found.triangle, -1).any()


def ugly_rows(rng: np.random.Generator) -> Array:
    """Rows with offsets, short and long columns, a trend, and columns that are nearly dependent."""
    n, p = int(rng.integers(30, 1000)), int(rng.integers(2, 9))
    rows = rng.standard_normal((n, p + 1)) * 10.0 ** rng.integers(-6, 6, p + 1)
    rows[:, 0] = rows[:, -1] + 1e-7 * rows[:, 0]
    rows[:, 1] = rows[:, 1] + np.arange(n)
    return np.asarray(rows + rng.choice([0.0, 1.0, 1e4, 1e8], p + 1))


@pytest.mark.parametrize("seed", range(20))
def test_blocks_of_rows_give_the_moments_of_any_rows(seed: int) -> None:
    """Of folds left out, of two folds left out, and of rows that cut through every fold."""
    rng = np.random.default_rng(seed)
    rows = ugly_rows(rng)
    n = len(rows)
    weights = rng.choice([0.0, 1.0, 2.0, 0.3], n) if seed % 2 else None
    counts = np.ones(n) if weights is None else weights
    for label in (None, rng.permutation(np.arange(n) % 5), rng.permutation(np.arange(n) % 17)):
        moments = RowMoments(rows, weights, label)
        fold = np.arange(n) if label is None else label
        for left_out in ([], [0], [2], [4], [0, 3], [1, 2], [0, 1, 3, 4]):
            for chosen in (~np.isin(fold, left_out), ~np.isin(fold, left_out) & (fold != n // 2)):
                chosen &= counts > 0.0
                assert_moments(moments.of(np.flatnonzero(chosen)), rows[chosen], counts[chosen])
        some = rng.choice(np.flatnonzero(counts), 5, replace=False)
        assert_moments(moments.of(some), rows[some], counts[some])


def test_blocks_serve_training_rows_that_lack_none_of_their_rows() -> None:
    """Values of other rows change no bit, where they share a block with training rows."""
    rng = np.random.default_rng(0)
    rows = ugly_rows(rng)
    label = rng.permutation(np.arange(len(rows)) % 17)
    train = np.flatnonzero(label != 6)
    before = RowMoments(rows, None, label).of(train)
    assert before.height < len(train)  # Blocks have been used.
    rows[label == 6] = 1e9
    after = RowMoments(rows, None, label).of(train)
    for name in ("mean", "tail", "triangle"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))


def test_blocks_do_not_depend_on_weights_of_other_rows() -> None:
    """Weights of 0 among held-out rows move no border of a block, and no bit."""
    rng = np.random.default_rng(2)
    rows, n = rng.standard_normal((399, 5)), 399
    label, found = np.arange(n) // 3, list[Moments]()
    weights = rng.permutation(np.resize([1.0, 2.0, 0.0], n))
    for held_out in ([1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]):
        weights = weights.copy()
        weights[label == 2] = held_out
        found.append(RowMoments(rows, weights, label).of(np.flatnonzero(label != 2)))
    for other in found[1:]:
        for name in ("mean", "tail", "triangle"):
            np.testing.assert_array_equal(getattr(other, name), getattr(found[0], name))


def test_light_rows_far_away_cost_heavy_rows_no_digits() -> None:
    rng = np.random.default_rng(0)
    apart = 2.0**-16 * rng.integers(1, 9, size=(12, 3))
    near, far, exact = 2.0**26 + apart, np.zeros((4, 3)), apart - apart.mean(axis=0)
    light, heavy = np.full(4, 1e-40), np.ones(12)
    parts = [Moments.of(near[:5].copy()), Moments.of(near[5:].copy())]
    weights = np.concatenate([light, heavy])
    for found in (
        Moments.union([Moments.of(far.copy(), light), *parts]),
        Moments.union([Moments.of(far.copy(), light)], near.copy(), heavy),
        Moments.of(np.vstack([far, near]), weights),
    ):
        scatter = found.triangle.T @ found.triangle
        np.testing.assert_allclose(scatter, exact.T @ exact, rtol=1e-6)


def test_no_rows_leave_moments_as_they_are() -> None:
    rows = ugly_rows(np.random.default_rng(1)) + 1e8
    nothing, every = Moments.of(rows[:0].copy()), Moments.of(rows.copy())
    assert Moments.union((nothing, nothing)).n == 0
    for found in (
        Moments.union((nothing, every)),
        Moments.union((every,), rows[:0].copy()),
        Moments.union((nothing,), rows.copy()),
    ):
        np.testing.assert_array_equal(found.triangle, every.triangle)
        np.testing.assert_array_equal(found.mean + found.tail, every.mean + every.tail)
