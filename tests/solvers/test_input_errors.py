"""Bad input is told apart from what a bug raises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.inside import fit_supports, main
from support.problems import plain
from support.stand_ins import StandIn

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.errors import InputError
from sparsecv.solvers import (
    SparseRidgeProblem,
    solve,
    support_path,
)


def test_gamma_that_rounds_to_zero_counts_as_zero() -> None:
    X, y, _ = plain(0, 12, 3)
    X = np.hstack([X, X])
    zero, tiny = (SparseRidgeProblem(X, y, gamma=gamma, tau=2) for gamma in (0.0, 1e-40))
    assert tiny.objective([0, 3]) == pytest.approx(zero.objective([0]))
    pair = np.array([[[0, 3]]])
    coef, objective = fit_supports(tiny, np.array([1e-40]), pair)
    np.testing.assert_allclose(coef[0, 0], zero.fit([0, 3]).coef)
    assert objective[0, 0] == pytest.approx(zero.objective([0]))
    path = support_path(tiny, [1.0, 1e-40, 0.0], [3, 6])
    assert path.proved.all()
    np.testing.assert_allclose(path.objective[1], zero.objective(range(6)))
    np.testing.assert_allclose(path.objective[2], zero.objective(range(6)))
    assert solve(tiny.replace(tau=6)).objective == pytest.approx(zero.objective(range(6)))


def bug(*_: Any, **__: Any) -> Any:
    raise ValueError("operands could not be broadcast together")


def test_a_bug_is_not_bad_input(stand_in: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    X, y, _ = plain(0, 12, 3)
    stand_in(fold_unit=bug)
    stand_in(best_model=bug)
    runs = [
        lambda: SparseRidgeCV(cv=3, gammas=[1.0], rule="minimum").fit(X, y),
        lambda: SparseRidge(2).fit(X, y),
        lambda: main(["fit", "diabetes", "--tau", "2", "--quiet"]),
    ]
    for run in runs:
        with pytest.raises(ValueError, match="broadcast") as caught:
            run()
        assert not isinstance(caught.value, InputError)


@pytest.mark.parametrize("factor", [1e-139, 1e140])
def test_values_that_can_be_squared_are_solved(factor: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 6)), rng.normal(size=30)
    plain = solve(SparseRidgeProblem(X, y, gamma=0.0, tau=2))
    found = solve(SparseRidgeProblem(factor * X, y, gamma=0.0, tau=2))
    assert found.support.tolist() == plain.support.tolist()
    assert found.objective == pytest.approx(plain.objective, rel=1e-9)


@pytest.mark.parametrize(("short", "long"), [(1e-75, 1e80), (1e-148, 1e12), (1e-10, 1e146)])
def test_columns_too_short_beside_y_are_refused(short: float, long: float) -> None:
    """Squares of their coefficients, or the inverse of γ/2, are no numbers of 64 bits."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((20, 12))
    y = X[:, [3, 5, 8, 11]] @ [2.0, -1.0, 1.0, 0.5] + 0.3 * rng.standard_normal(20)
    for gamma in (0.0, 1.0):
        with pytest.raises(InputError, match="rescale them"):
            SparseRidgeProblem(short * X, long * y, gamma=gamma * short**2, tau=3)
