"""SparseRidgeProblem: fits, Gram form, sharing, validation, files."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.brute_force import Data, exact_objectives, fit_rounding, ridge, value
from support.problems import gram_of, plain, problem_of, ugly

from sparsecv.errors import InputError
from sparsecv.solvers import SparseRidgeProblem

X0 = np.arange(12.0).reshape(4, 3) ** 1.5
Y0 = np.array([1.0, -2.0, 0.5, 3.0])


@pytest.mark.parametrize(("n", "p"), [(1, 1), (1, 4), (2, 5), (5, 5), (9, 4), (30, 6)])
@pytest.mark.parametrize("gamma", [1e-6, 0.3, 2.0, 1e5])
def test_fit_equals_least_squares_on_the_augmented_system(n: int, p: int, gamma: float) -> None:
    X, y, _ = data = plain(n + 10 * p, n, p, gamma)
    problem = problem_of(data)
    for s in range(p + 1):
        for support in combinations(range(p), s):
            columns = list(support)
            fit = problem.fit(columns)
            expected = ridge(X[:, columns], y, gamma)
            if s <= n:  # beyond that √γ decides and lstsq itself loses digits
                np.testing.assert_allclose(fit.coef, expected, rtol=1e-8, atol=1e-11)
            direct = value(X[:, columns], y, gamma, fit.coef)
            assert fit.objective == pytest.approx(direct, rel=1e-10, abs=1e-12)
            assert fit.objective + fit.gain == pytest.approx(y @ y, rel=1e-13)
            assert problem.objective(columns) == fit.objective


@given(data=ugly(max_columns=4, max_rows=5))
def test_objectives_are_exact_to_rounding(data: Data) -> None:
    problem = problem_of(data)
    for support, f in exact_objectives(data).items():
        lost = fit_rounding(data, support, float(f))
        assert abs(problem.objective(support) - float(f)) <= lost


@pytest.mark.parametrize("gamma", [1e4, 1e6, 1e8, 1e12])
def test_gain_and_coefficients_keep_their_digits_at_large_gamma(gamma: float) -> None:
    data = plain(8, 12, 4, gamma)
    yy = sum(f for s, f in exact_objectives(data).items() if s == ())
    for support, f in exact_objectives(data).items():
        fit = problem_of(data).fit(support)
        assert fit.gain == pytest.approx(float(yy - f), rel=1e-12)
        columns = list(support)
        A = data.X[:, columns]
        expected = np.linalg.solve(A.T @ A + gamma / 2.0 * np.eye(len(columns)), A.T @ data.y)
        np.testing.assert_allclose(fit.coef, expected, rtol=1e-12)


def test_columns_in_any_order_give_the_same_fit() -> None:
    problem = problem_of(plain(5, 20, 6))
    a, b = problem.fit([1, 3, 5]), problem.fit(np.array([5, 1, 3]))
    np.testing.assert_allclose(a.coef, b.coef[[1, 2, 0]], rtol=1e-12)
    assert a.objective == pytest.approx(b.objective, rel=1e-13)


@pytest.mark.parametrize(
    "support", [[-1], [3], [0.7], [1, 1], [True, False, True], ["a"], [None], [np.nan], [2**63]]
)
def test_a_support_lists_different_columns(support: list[Any]) -> None:
    problem = SparseRidgeProblem(np.eye(3), np.array([1.0, 3.0, 2.0]), gamma=1.0, tau=2)
    problem.fit([2])
    for asked in (problem.fit, problem.objective, problem.factor):
        with pytest.raises(InputError, match=r"different columns in 0\.\.2; got"):
            asked(support)


def test_constraints_of_another_type_are_refused() -> None:
    rules: Any = {"include": [0]}
    with pytest.raises(InputError, match="constraints must be None or"):
        SparseRidgeProblem(np.eye(3), np.ones(3), gamma=1.0, tau=2, constraints=rules)


@given(data=ugly(max_columns=5, max_rows=6, mild=True, zero=False), draw=st.data())
def test_from_gram_equals_the_problem_built_from_data(data: Data, draw: st.DataObject) -> None:
    p = data.X.shape[1]
    support = draw.draw(st.sets(st.integers(0, p - 1)).map(sorted))
    yy = float(data.y @ data.y)
    a, b = problem_of(data).fit(support), gram_of(data).fit(support)
    condition = 1.0 + 2.0 * float(np.square(data.X).sum()) / data.gamma
    assert abs(a.objective - b.objective) <= 1e-14 * condition * yy + 1e-10 * a.objective


def test_from_gram_symmetrises() -> None:
    data = plain(1, 9, 3)
    G = data.X.T @ data.X
    skew = np.array([[0.0, 1.0, 2.0], [-1.0, 0.0, 3.0], [-2.0, -3.0, 0.0]])
    b, yy = data.X.T @ data.y, float(data.y @ data.y)
    a = SparseRidgeProblem.from_gram(G + skew, b, yy, gamma=1.0, tau=1)
    np.testing.assert_allclose(a.G, G, rtol=1e-12, atol=1e-12)


def test_from_gram_keeps_small_columns_beside_large_ones() -> None:
    data = plain(6, 30, 4)
    scaled = Data(data.X * np.array([1e-6, 1.0, 1e6, 1e3]), data.y, 1e-9)
    for j in range(4):
        exact = problem_of(scaled).fit([j])
        fit = gram_of(scaled).fit([j])
        assert fit.gain == pytest.approx(exact.gain, rel=1e-9)


def test_replace_shares_the_data_and_leaves_the_original_alone() -> None:
    problem = problem_of(plain(4, 10, 5), tau=2)
    other = problem.replace(tau=4)
    assert (other.tau, other.gamma, other.n, other.p) == (4, 1.0, 10, 5)
    assert other.triangle is problem.triangle
    np.testing.assert_array_equal(other.factor(), problem.factor())
    heavier = problem.replace(gamma=7.0)
    assert (heavier.tau, heavier.gamma) == (2, 7.0)
    assert heavier.triangle is problem.triangle
    fresh = problem_of(Data(*plain(4, 10, 5)[:2], 7.0))
    assert heavier.objective([0]) == pytest.approx(fresh.objective([0]), rel=1e-13)
    assert not np.allclose(heavier.factor(), problem.factor())
    assert (problem.tau, problem.gamma) == (2, 1.0)
    assert problem.replace().objective([1, 2]) == problem.objective([1, 2])


def test_data_are_not_held_by_reference() -> None:
    X, y = X0.copy(), Y0.copy()
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    before = problem.objective([0, 1])
    X[:] = 0.0
    y[:] = 0.0
    assert problem.objective([0, 1]) == before


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (X0.astype(int).tolist(), Y0.tolist()),
        (np.asfortranarray(X0), Y0[::1]),
        (X0.astype(np.float32), Y0.astype(np.float32)),
        (X0 > 3.0, Y0 > 0.0),
    ],
)
def test_any_array_like_is_taken(X: Any, y: Any) -> None:
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    same = SparseRidgeProblem(np.array(X, float), np.array(y, float), gamma=1.0, tau=1)
    assert problem.objective([0, 2]) == same.objective([0, 2])


def test_tau_may_be_a_numpy_integer() -> None:
    problem = SparseRidgeProblem(X0, Y0, gamma=1.0, tau=np.int32(2))  # type: ignore[arg-type]
    assert type(problem.tau) is int


def test_predictions_of_a_long_table_are_off_by_what_their_terms_are() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    data = SparseRidgeProblem(np.column_stack([x, x]), rng.normal(size=3000), gamma=1.0, tau=1).data
    assert data.lost > 0.0
    assert data.predicting(np.zeros(2)).lost == data.lost
    assert data.predicting(np.ones(2)).n == data.n  # The table has as many rows as before.
    assert np.isfinite(data.predicting(np.array([1.0, -1.0])).lost)  # The prediction is rounding.
    assert data.predicting(np.array([1.0, 0.0])).lost == pytest.approx(data.lost)
    assert data.predicting(np.array([1.0, -0.9])).lost == pytest.approx(19.0 * data.lost)
