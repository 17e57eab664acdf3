"""Centring, scaling, constant columns, and the way back to the user's units."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.brute_force import ridge
from support.folds import standardised
from support.inside import Protocol, Summary, make_design

from sparsecv.errors import ConstantColumnWarning, InputError

SCALES = ("unit-variance", "unit-norm", "none")
NAMES = ["a", "b", "c", "d"]
SETTINGS = [
    Protocol(name, scale, intercept)
    for name in ("honest", "paper")
    for scale in SCALES
    for intercept in ((True, False) if name == "honest" else (True,))
]


def table(n: int = 12, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)) * [1.0, 10.0, 1e-3, 5.0] + [0.0, 3.0, 1.0, -70.0]
    return X, 3.0 * X[:, 1] + rng.standard_normal(n) + 20.0


def designed(X: NDArray[np.float64], y: NDArray[np.float64], protocol: Protocol) -> Any:
    return make_design(Summary.of(X, y), protocol, NAMES[: X.shape[1]])


@pytest.mark.parametrize("protocol", SETTINGS)
def test_solved_columns(protocol: Protocol) -> None:
    X, y = table()
    design = designed(X, y, protocol)
    A, b = design.apply(X, y)
    expected, response, kept = standardised(
        X, y, protocol=protocol.name, scale=protocol.scale, intercept=protocol.intercept
    )
    np.testing.assert_allclose(A, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(b, response, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(design.kept, kept)
    assert (design.p, design.p_raw) == (4, 4)
    if protocol.name == "honest":
        assert design.y_scale == 1.0


@pytest.mark.parametrize("protocol", SETTINGS)
def test_coefficients_in_original_units(protocol: Protocol) -> None:
    X, y = table()
    design = designed(X, y, protocol)
    A, b = design.apply(X, y)
    beta = ridge(A, b, 0.7)
    coef, intercept = design.coefficients(beta)
    solved = (A @ beta) * design.y_scale + design.y_shift
    np.testing.assert_allclose(X @ coef + intercept, solved, rtol=1e-10)
    if not protocol.intercept:
        assert intercept == 0.0


@pytest.mark.parametrize("scale", SCALES)
def test_without_an_intercept_a_column_of_ones_is_one(scale: str) -> None:
    X, y = table()
    X[:, 1], X[:, 3] = 1.0, 0.0
    with pytest.warns(ConstantColumnWarning, match="^all-zero column dropped: 'd'$"):
        design = designed(X, y, Protocol("honest", scale, intercept=False))
    np.testing.assert_array_equal(design.kept, [0, 1, 2])
    A, b = design.apply(X, y)
    np.testing.assert_array_equal(A[:, 1], 1.0)
    np.testing.assert_array_equal(b, y)
    with pytest.raises(InputError, match="every feature column is all-zero"):
        designed(0.0 * X, y, Protocol("honest", scale, intercept=False))


def test_a_constant_column_with_rounding_noise_is_constant() -> None:
    X, y = table()
    X[:, 0] = 1e6 * (1.0 + 2e-16 * np.arange(12) % 3)
    with pytest.warns(ConstantColumnWarning, match="'a'"):
        designed(X, y, Protocol())


def test_columns_far_from_zero_are_not_constant() -> None:
    X, y = table()
    X[:, 0] = 1e8 + np.arange(12.0)
    X[:, 1] *= 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        design = designed(X, y, Protocol())
    assert design.p == 4


def test_refusals() -> None:
    X, y = table()
    with pytest.raises(InputError, match="protocol must be one of honest, paper; got 'kind'"):
        Protocol("kind")
    with pytest.raises(InputError, match=r"scale must be one of .*; got 'big'"):
        Protocol("honest", "big")
    with pytest.raises(InputError, match="paper protocol"):
        Protocol("paper", intercept=False)
    with pytest.raises(InputError, match="at least 2 rows"):
        designed(X[:1], y[:1], Protocol())
    with pytest.raises(InputError, match="every feature column is constant"):
        designed(np.ones((12, 4)), y, Protocol())
    with pytest.raises(InputError, match="response is constant"):
        designed(X, np.full(12, 0.1), Protocol("paper"))
    designed(X, np.full(12, 0.1), Protocol("honest"))


def test_the_problem_of_all_rows_bears_an_offset() -> None:
    """A mean beside an offset of 1e8 is rounded by 1e-8, a hundredth of the smallest spread."""
    X, y = table(n=60)
    X = 1e8 + X * [1e-6, 1.0, 1.0, 1.0] / X.std(axis=0)
    rows = np.column_stack([X, y])
    origin = rows[0]
    exact = rows.astype(np.longdouble) - origin
    exact -= exact.mean(axis=0)
    exact[:, :4] /= np.sqrt((exact[:, :4] ** 2).mean(axis=0))
    problem = designed(X, y, Protocol()).problem(X, y)
    np.testing.assert_allclose(problem.G, exact[:, :4].T @ exact[:, :4], atol=1e-8)
    np.testing.assert_allclose(problem.b, exact[:, :4].T @ exact[:, 4], rtol=1e-9)
