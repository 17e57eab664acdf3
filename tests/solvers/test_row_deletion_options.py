"""The shared tree: sizes, warm starts, what is refused; fits with a row deleted."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.brute_force import (
    Array,
    Data,
    Support,
    exact_least_norm,
    inner_product,
    ridge,
    value,
)
from support.deleted_rows import check, chosen, exact_of, residual_of, solve, without
from support.fresh import examples
from support.problems import plain, problem_of, ugly

from sparsecv.solvers import Status, best_subsets_rows_deleted
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.core.plan import MAX_COLUMNS
from sparsecv.solvers.leaps.deleted_rows import deleted_fits


@settings(max_examples=examples(50))
@given(data=ugly(max_columns=4, max_rows=5), draw=st.data())
def test_sizes_and_warm_starts_change_nothing(data: Data, draw: st.DataObject) -> None:
    p = data.X.shape[1]
    sizes = draw.draw(st.lists(st.integers(1, p), min_size=1))
    starts = draw.draw(st.lists(st.sets(st.integers(0, p - 1)).map(list), max_size=3))
    found = solve(data, sizes=sizes, warm_starts=[*starts, *starts[:1]])
    np.testing.assert_array_equal(found.sizes, sorted(set(sizes)))
    assert found.status is Status.OPTIMAL
    check(data, found, exact_of(data))


@pytest.mark.parametrize(
    ("rows", "targets"),
    [
        (np.zeros((5, 3)), np.zeros(5)),
        (np.zeros((5, 4)), np.zeros(4)),
        (np.zeros(4), np.zeros(1)),
        (np.zeros((5, 4)), np.zeros((5, 1))),
    ],
)
def test_rows_must_fit_the_problem(rows: Array, targets: Array) -> None:
    with pytest.raises(ValueError, match="rows must be"):
        best_subsets_rows_deleted(problem_of(plain(0, 5, 4)), rows, targets)


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(ValueError, match=str(MAX_COLUMNS)):
        solve(plain(0, 3, MAX_COLUMNS + 1))


def test_zero_columns_do_not_count_as_columns() -> None:
    data = plain(0, 12, 6)
    wide = np.zeros((12, MAX_COLUMNS + 20))
    wide[:, 150:156] = data.X
    found = solve(Data(wide, data.y, 1.0), sizes=[1, 2])
    few = solve(data, sizes=[1, 2])
    np.testing.assert_allclose(found.objective, few.objective, rtol=1e-11)
    assert all(s.min() >= 150 for s in found.supports)


def test_columns_beyond_one_machine_word() -> None:
    rng = np.random.default_rng(3)
    n, p = 90, 68
    X = np.linalg.qr(rng.standard_normal((n, p)))[0] * 10.0
    y = 2.0 * X[:, 66] - 3.0 * X[:, 5] + X[:, 64] + 0.05 * rng.standard_normal(n)
    data = Data(X, y, 0.1)
    found = solve(data, sizes=[1, 2, 3], limits=Limits(node_limit=20_000))
    assert found.skipped.size == 0
    wanted = [(5,), (5, 66), (5, 64, 66)]
    for a in range(3):
        assert {chosen(found, a, i) for i in range(n)} == {wanted[a]}
        for i in (0, 44, 89):
            assert found.residual[a, i] == pytest.approx(residual_of(data, i, wanted[a]), rel=1e-9)
    for i in (0, 44, 89):
        rest = without(data, i)
        one = [
            value(rest.X[:, [j]], rest.y, 0.1, ridge(rest.X[:, [j]], rest.y, 0.1)) for j in range(p)
        ]
        assert found.objective[0, i] == pytest.approx(min(one), rel=1e-10)
        assert found.lower_bound[0, i] <= min(one)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("support", [(0,), (1, 3), (0, 2, 4), (0, 1, 2, 3, 4)])
def test_deleted_fits(gamma: float, support: Support) -> None:
    data = plain(6, 14, 5, gamma)
    fits = deleted_fits(problem_of(data), np.array(support), data.X, data.y)
    for i in range(14):
        rest = without(data, i)
        fit = problem_of(rest).fit(support)
        assert fits.objective[i] == pytest.approx(fit.objective, rel=1e-10)
        assert fits.gain[i] == pytest.approx(fit.gain, rel=1e-8)
        assert fits.residual[i] == pytest.approx(residual_of(data, i, support), rel=1e-9)


def test_deleted_fits_are_those_at_gamma_zero_beside_a_long_column() -> None:
    data = plain(6, 14, 5, 0.0)
    X = data.X * np.array([1.0, 1e7, 1.0, 1e-2, 1.0])
    data = Data(X, data.y, 0.0)
    columns = np.arange(5)
    fits = deleted_fits(problem_of(data), columns, data.X, data.y)
    for i in range(14):
        rest = without(data, i)
        rows = [[Fraction(float(v)) for v in row] for row in rest.X]
        beta, rank = exact_least_norm(rows, [Fraction(float(v)) for v in rest.y])
        left = Fraction(float(data.y[i])) - inner_product([Fraction(float(v)) for v in X[i]], beta)
        assert rank == 5
        assert fits.residual[i] == pytest.approx(float(left), rel=1e-11)
